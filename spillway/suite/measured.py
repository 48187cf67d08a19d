"""The runs of a plan as claims see them."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

from spillway.suite.claims import FIGURES, MORE_IS_BETTER
from spillway.suite.law import Law

Document = dict[str, Any]
FULL = ("no space on the drive", "No space left on device")  # an emulated drive's words, and the operating system's


@dataclass(frozen=True)
class Measured:
    """A run of a plan as claims see it: its arm, its point in the original's sizes, its finished repetitions."""

    arm: str
    point: Mapping[str, Any]
    finished: Sequence[Document]
    failure: str = ""
    law: Law | None = None  # what it would have come to at the original's size
    scaled: bool = False
    name: str = ""  # of the run

    @property
    def filled_its_drive(self) -> bool:
        """Whether a repetition ended for want of space, which is no matter of chance: it owed the drive too much."""
        return any(words in self.failure for words in FULL)

    def figures(self, name: str) -> list[float]:
        """Of the repetitions that were finished; what is no number is no figure, and no bound would hold it."""
        values = [FIGURES[name](each) for each in self.finished]
        return [value for value in values if value is not None and math.isfinite(value)]

    def figure(self, name: str) -> float | None:
        """The median over the repetitions that were finished."""
        known = self.figures(name)
        return median(known) if known else None

    def spread(self, name: str) -> float | None:
        """From the lowest to the highest repetition, over the median; None where there are not several."""
        known = self.figures(name)
        return (max(known) - min(known)) / abs(median(known)) if len(known) > 1 and median(known) else None

    def lifetime(self, name: str) -> float | None:
        """A figure of ``spillway.figures.lifetime``, the median over the repetitions that were finished."""
        values = [(each.get("lifetime") or {}).get(name) for each in self.finished]
        known = [value for value in values if value is not None]
        return median(known) if known else None

    def by_law(self, name: str) -> float | None:
        """The figure at the original's size; None where no law agrees with what was measured."""
        measured, wa_app = self.figure(name), self.figure("wa_app")
        if measured is None or not wa_app or self.law is None or self.law.at_original is None:
            return None
        return measured / wa_app * self.law.at_original if self.law.agrees_with(wa_app) else None

    @property
    def of_the_law(self) -> str:
        """How the law compares with what was measured; empty where there is none."""
        wa_app = self.figure("wa_app")
        if self.law is None or not wa_app:
            return ""
        share = self.law.at_scale / wa_app - 1
        return f"the law says {digits(self.law.at_scale)} of this scale's wa_app, {digits(wa_app)} ({share:+.0%})"


def measured_of(
    arms: Mapping[str, Document],
    point_of: Mapping[str, Mapping[str, Any]],
    law_of: Mapping[str, Law],
    scaled: bool = False,
) -> list[Measured]:
    """The runs of a summary's ``arms``; ``point_of`` has their points in the original's sizes, ``law_of`` laws."""
    found = []
    for name, summary in arms.items():
        ended = summary.get("repetitions") or [
            dict(summary["standing"]) | summary
        ]  # of one name, such as kept, the summary's
        finished = [each for each in ended if each.get("complete")]
        failure = next((each["failure"] for each in ended if each.get("failure")), "")
        arm, point = summary.get("of") or name, point_of.get(name, {})
        found.append(Measured(arm, point, finished, failure, law_of.get(name), scaled, name))
    return found


def best_of(runs: Sequence[Measured], figure: str, arm: str) -> Measured | None:
    """The best of several arms at a point: of each repetition the one with the best ``figure``, as if they were the
    runs of one ``arm``. An arm that has filled its drive is none of them, and is named. None where they have not the
    same repetitions, or one has no such figure: it might have been the best."""
    full = [run.name or run.arm for run in runs if run.filled_its_drive]
    runs = [run for run in runs if not run.filled_its_drive]
    if not runs or any(_seeds(run) != _seeds(runs[0]) for run in runs):
        return None
    pick = max if figure in MORE_IS_BETTER else min
    chosen: list[tuple[Measured, Document]] = []
    for repetition in zip(*(run.finished for run in runs), strict=True):
        values = [FIGURES[figure](each) for each in repetition]
        known = [value for value in values if value is not None and math.isfinite(value)]
        if len(known) < len(runs):
            return None
        index = values.index(pick(known))
        chosen.append((runs[index], repetition[index]))
    names = ", ".join(dict.fromkeys(run.name or run.arm for run, _ in chosen))
    finished, scaled = [each for _, each in chosen], any(run.scaled for run in runs)
    without = f"; {', '.join(full)} filled the drive" if full else ""
    return Measured(arm, runs[0].point, finished, scaled=scaled, name=f"the best rival ({names}{without})")


def _seeds(run: Measured) -> list[Any]:
    return [each.get("seed") for each in run.finished]


def digits(value: float) -> str:
    """Three significant digits."""
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"
