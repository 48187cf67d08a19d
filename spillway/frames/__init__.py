"""What Spillway measures as pandas data frames, and what a notebook calls: `import spillway` has these names too.

tables.py      rows as data frames: a column's dtype follows from its name
files.py       data frames in Parquet and CSV files
figures.py     the figures of an arm in summary.json as a row
run.py         a run directory
profile.py     a profile directory
sweep.py       the directory of `spillway sweep`
suite.py       that of `spillway suite`; documents.py   what both have at their head
directory.py   any of these, by what it is
charts.py      a report's charts as objects that a notebook shows
compared.py    arms held against each other, with intervals
simulators.py  the simulators as functions, and a table of many calls
commands.py    runs a plan, profiles a drive
keywords.py    errors that name keywords where the command's name flags

pandas and pyarrow are an extra, `frames`; without them a SpillwayError says how they are installed.
"""

from spillway.frames.charts import Chart, Charts
from spillway.frames.commands import presets, profile_drive, run_plan
from spillway.frames.compared import ComparisonFrames, compare_arms
from spillway.frames.directory import Frames, read
from spillway.frames.files import read_frame, write_frame
from spillway.frames.profile import ProfileFrames, read_profile
from spillway.frames.run import RunFrames, read_run
from spillway.frames.simulators import grid, simulate_drive, simulate_lsm
from spillway.frames.suite import SuiteFrames, read_suite
from spillway.frames.sweep import SweepFrames, read_sweep

__all__ = [
    "Chart",
    "Charts",
    "ComparisonFrames",
    "Frames",
    "ProfileFrames",
    "RunFrames",
    "SuiteFrames",
    "SweepFrames",
    "compare_arms",
    "grid",
    "presets",
    "profile_drive",
    "read",
    "read_frame",
    "read_profile",
    "read_run",
    "read_suite",
    "read_sweep",
    "run_plan",
    "simulate_drive",
    "simulate_lsm",
    "write_frame",
]
