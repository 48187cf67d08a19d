"""A run directory, or a profile, as one self-contained HTML file that opens offline.

It measures nothing: every figure is in the run directory, or is one of its figures divided by another.
"""

from spillway.report.page import write_report
from spillway.report.profile_page import write_profile_report
from spillway.report.suite_page import write_suite_report

__all__ = ["write_profile_report", "write_report", "write_suite_report"]
