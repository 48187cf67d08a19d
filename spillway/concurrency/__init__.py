"""Programs on a drive in virtual time: one I/O in flight against many, beside what PIO promises (P24-P26).

measured.py     a preset's drive: its k_r, k_w and alpha, and what concurrency does to it
outstanding.py  reads ahead and writes behind, as many in flight as the drive is worth
comparison.py   a program one I/O at a time against the same at once, beside S' and S''
"""

from spillway.concurrency.comparison import Comparison, Ran, compare
from spillway.concurrency.measured import MeasuredDrive, measured_drive
from spillway.concurrency.outstanding import Outstanding

__all__ = ["Comparison", "MeasuredDrive", "Outstanding", "Ran", "compare", "measured_drive"]
