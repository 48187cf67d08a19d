"""Speaks to ``spillway-native``: requests out, events in, interruptions passed on."""
