"""How a run failed: which of its runs did, why, in one sentence, and the command's exit code."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from spillway.errors import DriveFull, SpillwayError
from spillway.plan.arm import Arm
from spillway.plan.document import Plan

Document = dict[str, Any]


@dataclass(frozen=True)
class Failure:
    """A run of an arm, or a preparation, that failed."""

    run: str  # its label
    where: str  # the same for a sentence: arm and seed; empty where the plan has nothing but this run
    error: SpillwayError

    @property
    def filled_its_drive(self) -> bool:
        """Whether what was asked for did not fit the drive."""
        return isinstance(self.error, DriveFull)

    def document(self) -> Document:
        """As the manifest has it."""
        return {"run": self.run, "drive_full": self.filled_its_drive, "why": str(self.error)}


def where(plan: Plan, arm: Arm, seed: int) -> str:
    """A run of a plan in words; empty where the plan has only one."""
    if len(plan.arms) == len(plan.seeds) == 1:
        return ""
    if plan.swept:  # by its point
        return arm.name if len(plan.seeds) == 1 else f"{arm.name}, seed {seed},"
    return f"“{arm.name}”, seed {seed}"


def in_words(plan: Plan, failures: Sequence[Failure], tried: int, *, begun: bool) -> str:
    """Why the run is not what was asked for, in one sentence; empty where nothing failed. ``begun``: an arm was."""
    if not failures:
        return ""
    first = failures[0]
    if not begun:
        return f"{first.run} failed: {first.error}"
    if not plan.swept:
        return f"{first.where}: {first.error}" if first.where else str(first.error)
    count, named = len(failures), first.where or first.run
    those = f"{named} failed" if count == 1 else f"{count} of {tried} runs failed; the first, {named.rstrip(',')}"
    return f"{those}: {first.error}"


def exit_code(failures: Sequence[Failure]) -> int:
    """Of the command: 2 where every run that failed did by what was asked of it."""
    return min(each.error.exit_code for each in failures)


def only_filled(failures: Sequence[Failure]) -> bool:
    """Whether there was a failure, and each is of a drive that was filled."""
    return bool(failures) and all(each.filled_its_drive for each in failures)
