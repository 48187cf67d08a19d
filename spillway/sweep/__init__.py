"""Sweeps in parts, on the cores of this machine or on several machines.

cell.py      a plan in cells, each with an address by what decides on its result; code.py, the package's part in that
order.py     which cells may start: a pure function
sweep.py     runs those that are not done, tries again, reads answers as they come; leftover.py, what a killed sweep
             has left under way
executor.py  the seam to where cells run: local.py, on_submitit.py, on_ray.py; where.py chooses
modules.py   the packages that these need
job.py       the files by which sweep and cells speak; process.py and worker.py, a cell's process seen from both ends
results.py   the table of all cells; gather.py all of them as one run directory
"""

from spillway.sweep.cell import Cell, cells_of
from spillway.sweep.executor import Executor, Future
from spillway.sweep.sweep import Outcome, Settings, Step, run_sweep
from spillway.sweep.where import executor_on

__all__ = ["Cell", "Executor", "Future", "Outcome", "Settings", "Step", "cells_of", "executor_on", "run_sweep"]
