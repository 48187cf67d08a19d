"""Cells as processes of this machine."""

from pathlib import Path

from spillway.sweep.cell import Cell
from spillway.sweep.order import Room
from spillway.sweep.process import CellProcess


class LocalProcesses:
    """Starts each cell at once; the caller keeps to ``room``."""

    poll_s = 0.05
    lag_s = 0.0  # what a process of this machine has written is there

    def __init__(self, cells: int | None, cores: int) -> None:
        """``cells``: at once; None: as many as ``cores``, those of this machine, take."""
        self.room = Room(cores if cells is None else cells, cores)
        self._started: list[CellProcess] = []

    def submit(self, cell: Cell, job: Path) -> CellProcess:
        """Starts the process of a cell. Raises SpillwayError where it cannot be started."""
        process = CellProcess(job)
        self._started = [each for each in self._started if not each.done()]
        self._started.append(process)
        return process

    def adopt(self, job: Path) -> None:
        """Nothing: processes end with the sweep that has started them."""

    def close(self) -> None:
        """Lets go of the processes that run, which then end by themselves."""
        for each in self._started:
            each.let_go()
