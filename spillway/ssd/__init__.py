"""Emulated drives: the presets of this installation, and the requests of ``spillway ssd``."""
