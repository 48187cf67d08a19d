"""Spillway: log-structured key-value stores on flash, and the truth about what they cost it."""

__version__ = "0.1.0"
