"""Figures of a run from its counts: pure functions, and the sentences that show them."""
