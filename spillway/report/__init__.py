"""A run directory as one self-contained HTML file that opens offline.

It measures nothing: every figure is in the run directory, or is one of its figures divided by another.
"""

from spillway.report.page import write_report

__all__ = ["write_report"]
