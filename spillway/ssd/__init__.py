"""Emulated drives: presets, the requests of ``spillway ssd``, and a drive that a program holds."""

from spillway.ssd.drive import Done, Drive, Io

__all__ = ["Done", "Drive", "Io"]
