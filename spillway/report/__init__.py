"""The pages of runs and suites, and what all pages share: charts, panels, the frame that opens offline.

It measures nothing: every figure is in the run directory, or is one of its figures divided by another. The pages of
profiles, of buffer pools and of costs are in the components of these.
"""

from spillway.report.page import write_report
from spillway.report.suite_page import write_suite_report

__all__ = ["write_report", "write_suite_report"]
