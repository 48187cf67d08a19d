"""Real drives' initial state: the fio job that makes it, and how far from steady a drive model says that it leaves one.

Nothing here writes to a drive, or starts fio.
"""

from spillway.precondition.job import Job, as_text
from spillway.precondition.model import Drive, Residual, drive_of, residuals_of
from spillway.precondition.procedures import PROCEDURES
from spillway.precondition.target import Target, parse_target

__all__ = ["PROCEDURES", "Drive", "Job", "Residual", "Target", "as_text", "drive_of", "parse_target", "residuals_of"]
