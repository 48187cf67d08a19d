"""Which cells may start now: a pure function of what waits, what runs, and what there is room for.

Rules, in their order:

    room        at most so many cells run at once, and on one machine their cores are at most the machine's
    states      of the cells whose preparations make the same kept state, one runs until it is made
    real time   on one machine a paced cell runs alone, after those in virtual time: beside another its times are wrong

On several machines the executor keeps paced cells apart (``Executor``).
"""

from collections.abc import Sequence, Set
from dataclasses import dataclass

from spillway.errors import SpillwayError
from spillway.sweep.cell import Cell


@dataclass(frozen=True)
class Room:
    """What an executor takes."""

    cells: int  # at once
    cores: int | None = None  # of the machine, where all cells run on one; None: on several, which the executor knows

    @property
    def is_one_machine(self) -> bool:
        """Whether all cells run on one machine."""
        return self.cores is not None


def check_fits(cells: Sequence[Cell], room: Room) -> None:
    """Raises SpillwayError for a cell that takes more cores than the machine has: it would never start."""
    most = max((cell.cores for cell in cells), default=0)
    if room.cores is not None and most > room.cores:
        raise SpillwayError(
            f"--cores {most}: this machine has {room.cores}, so no cell could start; give at most those."
        )


def startable(waiting: Sequence[Cell], running: Sequence[Cell], made: Set[str], room: Room) -> list[Cell]:
    """The cells of ``waiting``, in its order, that may start beside ``running``. ``made``: kept states that a cell of
    this sweep has made, or found."""
    if len(running) >= room.cells or (room.is_one_machine and any(cell.paced for cell in running)):
        return []
    chosen: list[Cell] = []
    for cell in waiting:
        beside = [*running, *chosen]
        if len(beside) >= room.cells:
            break
        if _has_cores(cell, beside, room) and not _shares_unmade_state(cell, beside, made) and not cell.paced:
            chosen.append(cell)
    if room.is_one_machine and (chosen or running):
        return chosen
    for cell in waiting:
        beside = [*running, *chosen]
        if len(beside) >= room.cells or (room.is_one_machine and beside):
            break
        if cell.paced and not _shares_unmade_state(cell, beside, made):
            chosen.append(cell)
    return chosen


def _has_cores(cell: Cell, beside: Sequence[Cell], room: Room) -> bool:
    return room.cores is None or sum(each.cores for each in beside) + cell.cores <= room.cores


def _shares_unmade_state(cell: Cell, beside: Sequence[Cell], made: Set[str]) -> bool:
    unmade = cell.states - made
    return any(unmade & other.states for other in beside)
