"""The runs of a plan as claims see them."""

import math
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import median
from typing import Any

from spillway.figures.repetitions import Repetition, counted, numbered
from spillway.suite.claims import FIGURES, MORE_IS_BETTER
from spillway.suite.law import Law

Document = dict[str, Any]
_KEY = "repetition"
FULL = ("no space on the drive", "No space left on device")  # an emulated drive's words, and the operating system's


@dataclass(frozen=True)
class Measured:
    """A run of a plan as claims see it: its arm, its point in the original's sizes, its repetitions."""

    arm: str
    point: Mapping[str, Any]
    repetitions: Sequence[Document]  # those that were tried, in turn; one is finished unless it is said to be not
    asked: int = 0  # how many repetitions the plan asks for, where that is more
    law: Law | None = None  # what it would have come to at the original's size
    scaled: bool = False
    name: str = ""  # of the run

    @property
    def finished(self) -> list[Document]:
        """The repetitions that ran to their end."""
        return list(self.by_repetition.values())

    @property
    def by_repetition(self) -> dict[Repetition, Document]:
        """Those that ran to their end, by their keys."""
        return {key: each for key, each in self._tried() if each.get("complete", True)}

    @property
    def unfinished(self) -> dict[Repetition, str]:
        """Those that did not, and why; an empty text where they were ended early."""
        return {key: each.get("failure") or "" for key, each in self._tried() if not each.get("complete", True)}

    @property
    def failure(self) -> str:
        """Why the first of those that failed did; empty where none has."""
        return next((why for why in self.unfinished.values() if why), "")

    @property
    def full(self) -> set[Repetition]:
        """The repetitions that ended for want of space, which is no matter of chance: they owed the drive too much."""
        return {key for key, why in self.unfinished.items() if any(words in why for words in FULL)}

    @property
    def what_is_missing(self) -> str:
        """Which repetitions were not finished, in a clause; empty where all were."""
        tried, finished = len(self.repetitions), len(self.finished)
        if finished >= max(self.asked, tried):
            return ""
        seeds = ", ".join(f"seed {seed}" for seed, _ in self.unfinished)
        why = self.failure.rstrip(".") or ("it was ended early" if self.unfinished else "the others were not begun")
        those = f" ({seeds}: {why})" if seeds else f" ({why})"
        return f"{self.name or self.arm} finished {counted(finished, max(self.asked, tried))}{those}"

    def only(self, kept: Container[Repetition]) -> "Measured":
        """The same run with those of its finished repetitions that are ``kept``."""
        return replace(self, repetitions=[_with(each, key) for key, each in self.by_repetition.items() if key in kept])

    def _tried(self) -> list[tuple[Repetition, Document]]:
        keys = numbered([each.get("seed") for each in self.repetitions])
        return [(each.get(_KEY, key), each) for key, each in zip(keys, self.repetitions, strict=True)]

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
    asked: int = 0,
) -> list[Measured]:
    """The runs of a summary's ``arms``; ``point_of`` has their points in the original's sizes, ``law_of`` laws.
    ``asked``: the repetitions that the plan asks for."""
    found = []
    for name, summary in arms.items():
        ended = summary.get("repetitions") or [
            dict(summary["standing"]) | summary
        ]  # of one name, such as kept, the summary's
        arm, point = summary.get("of") or name, point_of.get(name, {})
        found.append(Measured(arm, point, ended, asked, law_of.get(name), scaled, name))
    return found


def best_of(runs: Sequence[Measured], figure: str, arm: str) -> Measured | None:
    """The best of several arms at a point: of each repetition the one with the best ``figure``, as if they were the
    runs of one ``arm``. An arm is none of them in a repetition in which it filled its drive, and is named; a repetition
    in which all have filled theirs is left out. None where one did not finish a repetition for another reason, or has
    no such figure: it might have been the best."""
    pick = max if figure in MORE_IS_BETTER else min
    keys = list(dict.fromkeys(key for run in runs for key in (*run.by_repetition, *run.full)))
    chosen: list[tuple[Measured, Document]] = []
    for key in keys:
        there = [run for run in runs if key not in run.full]
        if any(key not in run.by_repetition for run in there):
            return None
        values = [FIGURES[figure](run.by_repetition[key]) for run in there]
        known = [value for value in values if value is not None and math.isfinite(value)]
        if len(known) < len(there):
            return None
        if there:
            best = there[values.index(pick(known))]
            chosen.append((best, _with(best.by_repetition[key], key)))
    if not chosen:
        return None
    names = ", ".join(dict.fromkeys(run.name or run.arm for run, _ in chosen))
    without = "".join(f"; {_filled(run, len(keys))}" for run in runs if run.full)
    scaled = any(run.scaled for run in runs)
    made = [each for _, each in chosen]
    return Measured(arm, runs[0].point, made, scaled=scaled, name=f"the best rival ({names}{without})")


def _filled(run: Measured, count: int) -> str:
    """That a run filled the drive, and in how many of ``count`` repetitions where not in all."""
    often = "" if len(run.full) == count else f" in {counted(len(run.full), count)}"
    return f"{run.name or run.arm} filled the drive{often}"


def _with(each: Document, key: Repetition) -> Document:
    """A repetition with its key, which stays where others are left out."""
    return {**each, _KEY: key}


def digits(value: float) -> str:
    """Three significant digits."""
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"
