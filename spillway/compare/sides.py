"""The sides of a comparison: an arm of a run directory each, with its repetitions and their standing."""

import os
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from spillway.errors import SpillwayError
from spillway.plan.dotted import flatten
from spillway.quantity import nearest
from spillway.rundir.directory import (
    RunRecord,
    check_not_cut_off,
    check_not_refused,
    is_directory,
    read_figures,
    read_samples,
)
from spillway.rundir.samples import Row, measured
from spillway.rundir.stage import stages_of

Document = dict[str, Any]


@dataclass(frozen=True)
class Repetition:
    """One run of an arm, by its figures in summary.json."""

    directory: str  # below the run directory
    seed: int | None
    steady: bool
    why_left_out: str  # empty where it is whole
    figures: Document


@dataclass(frozen=True)
class Side:
    """An arm as it ran. ``plan``: what its resolved plan says of it, by dotted key, phases as a list of tables."""

    run: Path
    arm: str
    manifest: Document
    plan: Document
    figures: Document  # of the typical repetition
    repetitions: tuple[Repetition, ...]

    @property
    def name(self) -> str:
        """Its name in sentences."""
        return f"{self.run}:{self.arm}"

    @property
    def whole(self) -> list[Repetition]:
        """The repetitions that ran to their end."""
        return [each for each in self.repetitions if not each.why_left_out]

    @property
    def standing(self) -> Document:
        """The ``standing`` object of its figures."""
        standing: Document = self.figures["standing"]
        return standing

    def steady_rows(self, repetition: Repetition) -> list[Row]:
        """The samples of the measured phases, of a steady run from where it was steady. Raises SpillwayError."""
        rows = measured(read_samples(self.run / repetition.directory))
        since = self.standing.get("steady_since_s") or 0.0 if repetition.steady else 0.0
        kept, elapsed = [], 0.0
        for row in rows:
            if elapsed >= since - 1e-9:
                kept.append(row)
            elapsed += row["dt_s"]
        return kept


def read_sides(words: Sequence[str]) -> list[Side]:
    """The sides that ``RUN`` (all of its arms) and ``RUN:ARM`` name, in their order. Raises SpillwayError."""
    runs: dict[Path, RunRecord] = {}
    sides: list[Side] = []
    for word in words:
        path, arm = _parted(word)
        run = runs.setdefault(path.resolve(), read_whole(path))
        names = [each.name for each in run.arms]
        if arm is not None and arm not in names:
            raise SpillwayError(f"{path}: it has no arm {arm!r}{nearest(arm, names)} Its arms: {', '.join(names)}.")
        for name in names if arm is None else [arm]:
            side = side_of(run, name)
            _check_new(side, sides)
            sides.append(side)
    if len(sides) == 1:
        raise SpillwayError(
            f"{sides[0].run}: it has one arm, {sides[0].arm!r}, and a comparison takes two: name a second run."
        )
    for side in sides:
        for repetition in side.whole:
            check_not_cut_off(side.run / repetition.directory)
    return sides


def _parted(word: str) -> tuple[Path, str | None]:
    """RUN or RUN:ARM; a colon may be in either."""
    if Path(word).is_dir():
        return Path(word), None
    colons = [index for index, letter in enumerate(word) if letter == ":"]
    for colon in reversed(colons):
        if word[:colon] and Path(word[:colon]).is_dir():
            return Path(word[:colon]), word[colon + 1 :]
    return Path(word[: colons[0]] if colons and colons[0] else word), None


def read_whole(path: Path) -> RunRecord:
    """A run directory's figures; says of what is none whether it is under way or was cut off. Raises SpillwayError."""
    if not is_directory(path):
        under_way = is_directory(path.parent) and stages_of(path.parent, path.name)
        rest = (
            "one is on its way, or was killed: wait, or run the plan again"
            if under_way
            else "`spillway run PLAN --out DIR` makes one"
        )
        raise SpillwayError(f"{path}: there is no such run directory; {rest}.")
    if not os.path.lexists(path / "summary.json"):
        raise SpillwayError(
            f"{path}: it has no summary.json: it is no run directory, or one that was cut off; run the plan again."
        )
    run = read_figures(path)
    check_not_refused(run)
    if not run.arms:
        raise SpillwayError(f"{path / 'summary.json'}: no arm was run; run the plan again.")
    return run


def side_of(run: RunRecord, name: str) -> Side:
    """An arm of a run directory by its name, which it has. Raises SpillwayError."""
    figures = next(each.summary for each in run.arms if each.name == name)
    several = [each for each in figures.get("repetitions") or [] if each.get("directory")]
    repetitions = [_repetition(each, each) for each in several] or [_repetition(figures, figures["standing"])]
    return Side(run.path, name, run.manifest, _plan_of(run, name), figures, tuple(repetitions))


def _repetition(figures: Document, end: Document) -> Repetition:
    """``end`` has how it ended: of one of several repetitions it is next to its figures."""
    why = end.get("failure") or ("" if end.get("complete") else "it was ended early")
    return Repetition(figures["directory"], figures.get("seed"), bool(figures.get("steady")), why, figures)


def _plan_of(run: RunRecord, name: str) -> Document:
    """What plan.toml says of an arm: what stands above the arms, and over that its own."""
    try:
        plan = tomllib.loads(run.plan_toml)
    except tomllib.TOMLDecodeError as error:
        raise SpillwayError(f"{run.path / 'plan.toml'}: this is no TOML ({error}); run the plan again.") from error
    arms = plan.pop("arms", [])
    if not isinstance(arms, list) or not isinstance(plan.get("phases", []), list):
        raise SpillwayError(f"{run.path / 'plan.toml'}: its arms or phases are no lists; run the plan again.")
    own: Document = next((each for each in arms if isinstance(each, dict) and each.get("name") == name), {})
    return _keys(plan) | _keys(own)


def _keys(document: Document) -> Document:
    """By dotted keys, those of tables that take any key too."""
    found: Document = {}
    for key, value in flatten(document).items():
        found |= {f"{key}.{name}": each for name, each in value.items()} if isinstance(value, dict) else {key: value}
    return found


def _check_new(side: Side, sides: Sequence[Side]) -> None:
    """A side that is there already, by the same name or as a copy of its directory, would be found equal to itself."""
    for other in sides:
        if other.arm != side.arm:
            continue
        if other.run.resolve() == side.run.resolve():
            raise SpillwayError(f"{side.name} is named twice; a run is no different from itself: name another one.")
        marks = [[each.manifest.get(key) for key in ("started", "ended", "command")] for each in (side, other)]
        figures = [[each.figures.get("throughput_ops_s") for each in one.repetitions] for one in (side, other)]
        # Two short runs may share a second, and in virtual time their figures too.
        took_time = side.manifest.get("started") != side.manifest.get("ended")
        if marks[0] == marks[1] and figures[0] == figures[1] and took_time:
            raise SpillwayError(f"{side.name} and {other.name} are the same run under two names; name another one.")
