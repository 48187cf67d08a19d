"""Arms held against each other, as `spillway compare` does: a row for each metric of each pair, with its interval."""

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from spillway.compare import compare, read_sides
from spillway.compare import words as in_words
from spillway.compare.verdicts import Comparison, Finding, Pair
from spillway.errors import SpillwayError
from spillway.frames.keywords import errors_name_keywords, in_keywords
from spillway.frames.run import RunFrames
from spillway.frames.tables import frame_of

if TYPE_CHECKING:
    import pandas as pd

Row = dict[str, Any]

COLUMNS = (
    *("a", "b", "metric", "unit", "value_a", "value_b", "ratio", "ratio_low", "ratio_high"),
    *("difference", "difference_low", "difference_high", "p", "level", "verdict", "words", "basis"),
)
REFUSED = "not ranked"
KEYWORDS = {"metric": "metrics"}  # where a flag has another name


@dataclass(frozen=True, eq=False, repr=False)
class ComparisonFrames:
    """Sides of a comparison, each against the first.

    ``metrics``: ratio = b / a with its interval at ``level``; of a share such as ``stall_share``, difference = b - a.
    ``verdict``: the better side's name, or ``not told apart``; NA where no interval can be had (``words`` says why),
    and ``not ranked`` for a pair that differs in what its figures rest on.
    """

    record: Comparison

    @cached_property
    def metrics(self) -> "pd.DataFrame":
        """A row for each metric of each pair."""
        return frame_of([row for pair in self.record.pairs for row in self._rows(pair)], COLUMNS)

    @cached_property
    def sides(self) -> "pd.DataFrame":
        """A row for each side: its letter in ``words`` and ``notes``, its run and arm, and its standing."""
        rows = [
            {"side": letter, "run": str(side.run), "arm": side.arm, "repetitions": len(side.repetitions)}
            | {"standing": str(side.standing.get("words"))}
            for letter, side in self.record.sides.items()
        ]
        return frame_of(rows, ("side", "run", "arm", "repetitions", "standing"))

    @property
    def notes(self) -> list[str]:
        """Sentences on what the intervals are worth."""
        said = [
            f"{pair.b} against {pair.a}: {note}"
            for pair in self.record.pairs
            if not pair.refused
            for note in in_words.notes(pair, self.record)
        ]
        closing = in_words.closing(self.record)
        return [*said, closing] if closing else said

    @property
    def tables(self) -> tuple[str, ...]:
        """The names of the tables."""
        return ("metrics", "sides")

    def _rows(self, pair: Pair) -> list[Row]:
        names = {"a": self._name(pair.a), "b": self._name(pair.b)}
        if pair.refused:
            return [names | {"verdict": REFUSED, "words": in_keywords(pair.refused, KEYWORDS)}]
        basis = in_words.basis(pair)
        return [names | self._row(finding, pair) | {"basis": basis} for finding in pair.findings]

    def _row(self, finding: Finding, pair: Pair) -> Row:
        metric, effect = finding.metric, finding.effect
        words = in_words.verdict(finding, pair.a, pair.b, self.record.anyway)
        unit = "share" if metric.is_share else metric.unit or "ratio"
        row: Row = {"metric": metric.name, "unit": unit, "value_a": finding.a, "value_b": finding.b, "words": words}
        if effect is None:
            return row
        kind = "difference" if metric.is_share else "ratio"
        values = [each if metric.is_share else math.exp(each) for each in (effect.d, *effect.interval(finding.level))]
        winner = self._name(pair.b if finding.b_is_better else pair.a)
        row |= dict(zip((kind, f"{kind}_low", f"{kind}_high"), values, strict=True))
        return row | {
            "p": effect.p,
            "level": finding.level,
            "verdict": winner if finding.differs else "not told apart",
        }

    def _name(self, letter: str) -> str:
        """An arm's name; with its run where two sides' arms have one name."""
        side, sides = self.record.sides[letter], self.record.sides.values()
        return side.arm if [each.arm for each in sides].count(side.arm) == 1 else side.name

    def __repr__(self) -> str:
        """In words."""
        sides = ", ".join(f"{letter} = {side.arm}" for letter, side in self.record.sides.items())
        return f"ComparisonFrames({sides})"

    def _repr_html_(self) -> str:
        """Metrics and notes, as a notebook shows them."""
        from html import escape

        shown = self.metrics[["a", "b", "metric", "unit", "value_a", "value_b", "words"]]
        notes = "".join(f"<li>{escape(note)}</li>" for note in self.notes)
        return f"<p>{escape(repr(self))}</p>{shown.to_html(index=False, na_rep='–')}<ul>{notes}</ul>"


def compare_arms(
    *runs: "RunFrames | str | Path",
    metrics: Sequence[str] = (),
    varies: Collection[str] = (),
    anyway: bool = False,
) -> ComparisonFrames:
    """Holds every arm of ``runs`` against the first. A run is one that was read, a run directory with all of its arms,
    or ``"RUNDIR:ARM"``. ``metrics``: only these. ``varies``: kinds of difference that are what is compared, such as
    ``versions``. ``anyway``: ranks whatever differs.

    Raises SpillwayError for what is no run, where there are fewer than two sides, for a metric that is not known, and
    where no pair may be ranked: the sentence says what differs.
    """
    words = [str(each.path if isinstance(each, RunFrames) else each) for each in runs]
    if not words:
        raise SpillwayError("compare_arms takes a run with several arms, or several runs: name one.")
    with errors_name_keywords(KEYWORDS):
        found = compare(read_sides(words), metrics, anyway, varies)
        if all(pair.refused for pair in found.pairs):
            raise SpillwayError(found.pairs[0].refused)
    return ComparisonFrames(found)
