"""Repeats a recorded run: what is refused, and how its figures compare with the recorded ones.

Three bases, from the strongest to the weakest:

    exact        counts that the plan and its seeds fix, whatever the machine: held to the byte, seed by seed
    repetitions  means of at least two runs then and now: told apart by Welch's t on logarithms (``spillway/compare``),
                 all figures of all arms together by Holm's steps, so that an equal pair is told apart in 5 % at most
    distance     one run each, or a figure that is not had of all: how far, and nothing is concluded from it

Exact are ``operations``, ``user_bytes_written`` and ``live_user_bytes`` of arms whose phases all end by operations and
draw nothing from a second thread; in virtual time without a store (``engine.name = "raw"``) and with one thread, what
reaches the drive and its flash too. A store's own threads run in real time even in virtual time, so its flushes and
compactions differ from run to run.
"""

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from spillway.compare import compare
from spillway.compare.choice import BLOCKS
from spillway.compare.effects import LEVEL, Effect, holm
from spillway.compare.metrics import METRICS, Metric, table
from spillway.compare.sides import Side, read_whole, side_of
from spillway.compare.standing import differences
from spillway.errors import SpillwayError
from spillway.plan import inputs
from spillway.plan.arm import Arm
from spillway.plan.document import Plan, load_plan
from spillway.rundir.directory import RunRecord, check_not_cut_off

Document = dict[str, Any]

COUNTS = ("operations", "user_bytes_written", "live_user_bytes")
RAW_COUNTS = (*COUNTS, "host_bytes_written", "nand_bytes_programmed")
# Workloads whose writes follow from seed and thread alone. The others draw from what another thread has done so far.
BY_SEED = ("fillseq", "fillrandom", "filluniquerandom", "overwrite", "readrandom", "seekrandom")
NEITHER = ("waitforcompaction", "settle")  # they write nothing of the user's


WIDEST = 10.0  # of an interval, as a share: nobody reads by how much more


@dataclass(frozen=True)
class Recorded:
    """A run directory that can be repeated."""

    path: Path
    run: RunRecord
    plan: Plan
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Figure:
    """One figure of an arm, then and now. ``differs`` is None where nothing is concluded."""

    arm: str
    name: str
    then: float | None
    now: float | None
    form: str
    is_share: bool = False
    basis: str = "distance"  # exact, repetitions or distance
    differs: bool | None = None
    interval: tuple[float, float] | None = None  # of now against then, as a share of then; of a share the difference

    @property
    def ratio(self) -> float | None:
        """Now as a multiple of then; None of a share, and where one is not known or 0."""
        if self.is_share or not self.then or self.now is None:
            return None
        return self.now / self.then

    @property
    def distance(self) -> float | None:
        """How far now is from then, as a share of then; of a share the difference itself."""
        if self.then is None or self.now is None:
            return None
        if self.is_share:
            return abs(self.now - self.then)
        return None if self.ratio is None else abs(self.ratio - 1)

    @property
    def room(self) -> str:
        """The interval in words."""
        low, high = ("more than 1000" if abs(each) > WIDEST else f"{100 * each:+.1f}" for each in self.interval or ())
        return f"{low} to {high} {'points' if self.is_share else '%'}"

    @property
    def verdict(self) -> str:
        """In words."""
        if self.basis == "exact":
            return "differs, and the plan fixes it" if self.differs else "identical"
        if self.then is None and self.now is None:
            return "not known"
        if self.then is None or self.now is None:
            return "known of one only"
        if self.basis == "repetitions":
            said = "told apart by the repetitions" if self.differs else "not told apart"
            return f"{said} ({self.room})" if self.interval else said
        if self.differs is None:
            return "one run each: nothing is concluded"
        return "beyond --within" if self.differs else "within --within"


@dataclass(frozen=True)
class ThenAndNow:
    """All figures, what of the surroundings differs, and the verdict."""

    figures: list[Figure]
    surroundings: list[str]
    within: float | None = None
    notes: list[str] = field(default_factory=list)

    @property
    def differing(self) -> list[Figure]:
        """The figures that differ beyond the stated bounds."""
        return [each for each in self.figures if each.differs]

    @property
    def repeated(self) -> bool:
        """Whether no figure differs beyond the stated bounds."""
        return not self.differing


def read_recorded(path: Path) -> Recorded:
    """The run directory and its plan as it loads now. Raises SpillwayError where it cannot be repeated."""
    _refuse_suites(path)
    run = read_whole(path)
    manifest = run.manifest
    if not manifest.get("complete"):
        why = str(manifest.get("failure") or "it was ended early").rstrip(".")
        raise SpillwayError(
            f"{path} is not complete ({why}), so there is nothing to hold a repetition against: run its plan, "
            f"`spillway run {path / 'plan.toml'}`."
        )
    for arm in run.arms:
        for each in side_of(run, arm.name).whole:
            check_not_cut_off(path / each.directory)
    try:
        plan = load_plan(path / "plan.toml")
    except SpillwayError as error:
        raise SpillwayError(f"{path}: its plan no longer loads, so it cannot be repeated: {error}") from error
    if [arm.name for arm in plan.arms] != [arm.name for arm in run.arms]:
        raise SpillwayError(
            f"{path}: plan.toml and summary.json have different arms: one was changed; run a plan again."
        )
    return Recorded(path, run, plan, _check_inputs(path, run, plan))


def _refuse_suites(path: Path) -> None:
    if (path / "suite.json").is_file():
        raise SpillwayError(
            f"{path} is a suite's directory: repeat one of its runs, `spillway repeat {path}/PLAN`, or the suite by "
            "`spillway suite`."
        )
    if (path / "about.json").is_file() and (path / "runs.csv").is_file():
        about = _json(path / "about.json")
        command = f"its command, `{about['command']}`," if about.get("command") else "`spillway suite`"
        raise SpillwayError(f"{path} holds a suite's summaries and no runs: {command} runs the suite again.")


def _check_inputs(path: Path, run: RunRecord, plan: Plan) -> tuple[str, ...]:
    """Refuses presets, drive states and times of arrival that are not those of then."""
    changed = sorted({name for arm in run.arms if (name := _changed_preset(path, arm.summary, plan, arm.name))})
    recorded = run.manifest.get("inputs_sha256")
    arms = [*plan.arms, *plan.preparations]
    if not changed and (recorded is None or recorded == inputs.sha256_of(arms)):
        return () if recorded else ("It was recorded before the digests of presets were; its copies of them agree.",)
    files = changed or [each.name for each in inputs.files_of(arms)]
    raise SpillwayError(
        f"{path}: {' or '.join(files)} has changed since it was recorded, so a run now would be of another drive "
        f"or load: bring the file back, or run the plan as it is now, `spillway run {path / 'plan.toml'}`."
    )


def _changed_preset(path: Path, figures: Document, plan: Plan, name: str) -> str:
    """The file of an arm's preset, where the run directory's copy is another."""
    copy = path / figures["directory"] / "preset.toml"
    now = next(arm for arm in plan.arms if arm.name == name).preset_path()
    if now is None or not copy.is_file() or not now.is_file():
        return ""
    return "" if copy.read_bytes() == now.read_bytes() else now.name


def compare_then_and_now(then: Recorded, now: Path, within: float | None = None) -> ThenAndNow:
    """Compares the run directory ``now`` with the recorded one. ``within``: most that figures without a better basis
    may differ, as a share; None: no bound. Raises SpillwayError."""
    again = read_whole(now)
    figures: list[Figure] = []
    surroundings: list[str] = []
    notes = list(then.notes)
    pending: list[tuple[int, Effect]] = []  # of figures that repetitions judge: its place, and the effect
    for arm in then.plan.arms:
        sides = side_of(then.run, arm.name), side_of(again, arm.name)
        surroundings += [each.words for each in differences(*sides) if each.words not in surroundings]
        figures += _exact(arm, *sides)
        pair = compare(sides, anyway=True).pairs[0]
        notes += [each for each in pair.left_out if each not in notes]
        effects = (
            {} if pair.refused or pair.choice.basis == BLOCKS else {each.metric.name: each for each in pair.findings}
        )
        for metric in (each for each in METRICS.values() if not each.is_derived):
            found = effects.get(metric.name)
            if found is not None and found.effect is not None:
                pending.append((len(figures), found.effect))
                figures.append(_figure(arm, metric, found.a, found.b, "repetitions", None))
            else:
                a, b = (metric.known(side.figures) for side in sides)
                figures.append(_figure(arm, metric, a, b, "distance", within))
    for (index, effect), (differs, level) in zip(pending, holm([each.p for _, each in pending]), strict=True):
        low, high = effect.interval(level)
        shares = (max(low, -1.0), min(high, 1.0)) if figures[index].is_share else (math.expm1(low), math.expm1(high))
        figures[index] = _judged(replace(figures[index], interval=shares), differs, within)
    return ThenAndNow(figures, _host(then.run.manifest, again.manifest) + surroundings, within, notes)


def _figure(
    arm: Arm, metric: Metric, then: float | None, now: float | None, basis: str, within: float | None
) -> Figure:
    figure = Figure(arm.name, metric.name, then, now, metric.form, metric.is_share, basis)
    if (then is None) != (now is None):
        return _judged(figure, True, None)
    return _judged(figure, None, within)


def _judged(figure: Figure, differs: bool | None, within: float | None) -> Figure:
    """``within`` is a bound of its own: what keeps to it is not differing for being told apart."""
    if within is not None and figure.distance is not None:
        return replace(figure, differs=figure.distance > within, basis="distance")
    return replace(figure, differs=differs)


def _exact(arm: Arm, then: Side, now: Side) -> list[Figure]:
    """The counts that the plan fixes, of each repetition by its seed."""
    by_seed = {each.seed: each for each in now.whole}
    found = []
    for number, one in enumerate(then.whole, 1):
        other = by_seed.get(one.seed)
        if other is None:
            continue
        ours, theirs = (_json(side.run / each.directory / "result.json") for side, each in ((then, one), (now, other)))
        label = arm.name if len(then.whole) == 1 else f"{arm.name} ({number} of {len(then.whole)})"
        for name in exact_counts(arm):
            a, b = _count(ours, name), _count(theirs, name)
            if a is not None or b is not None:
                found.append(
                    Figure(label, name, a, b, ",.0f", basis="exact", differs=ours.get(name) != theirs.get(name))
                )
    return found


def exact_counts(arm: Arm) -> tuple[str, ...]:
    """Names of the counts that the arm's plan and a seed determine; none where a phase ends by time or by
    steadiness."""
    phases = arm.phases
    if any(phase.get("duration_s") is not None or phase.get("until") is not None for phase in phases):
        return ()
    if any(phase["workload"] not in (*BY_SEED, *NEITHER) for phase in phases):
        return ()
    alone = all(int(phase.get("threads") or 1) == 1 for phase in phases)
    emulated = arm.settings["drive.kind"] == "emulated" and arm.settings["drive.pacing"] == "off"
    return RAW_COUNTS if alone and emulated and arm.settings["engine.name"] == "raw" else COUNTS


def _count(result: Mapping[str, Any], name: str) -> float | None:
    if name == "live_user_bytes" and result.get("live_user_bytes_exact") is False:
        return None
    value = result.get(name)
    if isinstance(value, dict):
        value = sum(each for each in value.values() if isinstance(each, int | float))
    return float(value) if isinstance(value, int | float) else None


def _host(then: Document, now: Document) -> list[str]:
    """What the manifests say besides what a comparison reads."""
    found = []
    facts: tuple[tuple[str, Callable[[Document], Any]], ...] = (
        ("Python", lambda manifest: table(manifest, "versions").get("python")),
        ("the executable's SHA-256", lambda manifest: str(table(manifest, "versions").get("executable_sha256"))[:12]),
        ("the system", lambda manifest: table(manifest, "host").get("system")),
        ("the memory in bytes", lambda manifest: table(manifest, "host").get("memory_bytes")),
    )
    for what, of in facts:
        if of(then) != of(now):
            found.append(f"{what} is {of(then)} and {of(now)}")
    return found


def _json(path: Path) -> Document:
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise SpillwayError(f"{path}: this is not JSON ({error}); run the plan again.") from error
    return document if isinstance(document, dict) else {}


def verdict(held: ThenAndNow) -> str:
    """One sentence on the whole."""
    parts = []
    exact = [each for each in held.figures if each.basis == "exact"]
    if held.differing:
        names = _names(held.differing)
        return f"Not repeated: {names} {'differ' if len(held.differing) > 1 else 'differs'} beyond what is stated."
    if exact:
        names = ", ".join(dict.fromkeys(each.name for each in exact))
        parts.append(f"the counts that the plan fixes are identical ({names})")
    largest = _largest(held, "repetitions")
    if largest:
        parts.append(f"means of repetitions are within {largest}, and none is told apart at {100 * LEVEL:.0f} %")
    widest = max((each for each in held.figures if each.basis == "repetitions"), key=_width, default=None)
    if widest is not None and widest.interval is not None:
        parts.append(f"the least sure is {widest.name} of {widest.arm}, {widest.room}")
    largest = _largest(held, "distance")
    if largest and held.within is not None:
        parts.append(f"other figures are within {largest}" if exact else f"figures are within {largest}")
    elif largest:
        parts.append(f"one run each has no spread to judge by, and figures are apart by up to {largest}")
    judged = any(each.differs is not None for each in held.figures)
    opening = "Repeated" if judged else "Run again, and nothing states how far figures may be apart"
    return f"{opening}: {'; '.join(parts) or 'no figure is known of both'}."


def _largest(held: ThenAndNow, basis: str) -> str:
    """The largest distance of a basis, and of what; empty where none is known."""
    largest = max((each for each in held.figures if each.basis == basis), key=_far, default=None)
    if largest is None or largest.distance is None:
        return ""
    return f"{100 * largest.distance:.1f} {'points' if largest.is_share else '%'} ({largest.name} of {largest.arm})"


def _far(figure: Figure) -> float:
    return -1.0 if figure.distance is None else figure.distance


def _width(figure: Figure) -> float:
    return 0.0 if figure.interval is None else max(map(abs, figure.interval))


def _names(figures: Sequence[Figure]) -> str:
    names = [f"{each.name} of {each.arm}" for each in figures]
    return ", ".join(names[:MOST_NAMES]) + (f" and {len(names) - MOST_NAMES} more" if len(names) > MOST_NAMES else "")


MOST_NAMES = 6  # in a sentence


def document(held: ThenAndNow, then: Path, now: Path) -> Document:
    """Everything as one JSON object."""
    return {
        "then": str(then),
        "now": str(now),
        "repeated": held.repeated,
        "verdict": verdict(held),
        "within": held.within,
        "surroundings": held.surroundings,
        "notes": held.notes,
        "figures": [
            {
                **{"arm": each.arm, "figure": each.name, "then": each.then, "now": each.now, "ratio": each.ratio},
                **{"basis": each.basis, "interval": each.interval, "differs": each.differs, "verdict": each.verdict},
            }
            for each in held.figures
        ],
    }
