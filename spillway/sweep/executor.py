"""The seam to where cells run.

A cell is handed over as a directory, its *job* (``spillway/sweep/job.py``), and answers with files in it. So an
executor starts processes on machines that share this file system, and knows nothing of plans or figures.
"""

from pathlib import Path
from typing import Protocol

from spillway.errors import SpillwayError
from spillway.sweep.cell import Cell
from spillway.sweep.order import Room


class Unplaceable(SpillwayError):
    """No machine that there is could run a cell; others may run."""


class Future(Protocol):
    """A cell that was handed over."""

    def done(self) -> bool:
        """Whether its process has ended, well or not, or will never start. Does not block."""

    def cancel(self) -> None:
        """Asks it to end: one that waits is not started, one that runs is ended as by Ctrl-C. Does not block; ``done``
        says when it has ended. May be called again."""

    def why(self) -> str:
        """Why it ended without an answer, as a clause; "" where nothing is known. REQUIRES: ``done()``."""


class Executor(Protocol):
    """Starts cells. Two paced cells never run beside each other on a machine, and on one that ``room`` calls the only
    one nothing does beside a paced cell: there the caller sees to it (``startable``)."""

    @property
    def room(self) -> Room:
        """What may be submitted at once."""

    @property
    def poll_s(self) -> float:
        """Seconds between two questions whether a future is done."""

    @property
    def lag_s(self) -> float:
        """Seconds after which a file that another machine has written is surely seen here."""

    def submit(self, cell: Cell, job: Path) -> Future:
        """Starts ``cell`` now, or queues it, as a process of its own: ``spillway.sweep.worker`` with ``job``, an
        absolute path. Raises Unplaceable where this cell can run nowhere; any other SpillwayError where nothing can be
        started now, as on a cluster that has gone."""

    def adopt(self, job: Path) -> Future | None:
        """What an earlier sweep has submitted for ``job`` by an executor of this kind, where that has not ended and
        goes on without it; else None."""

    def close(self) -> None:
        """Ends what it has started and still runs, and lets go of the cluster. May be called twice. Does not raise."""
