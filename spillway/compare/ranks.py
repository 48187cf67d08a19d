"""Which arm of a sweep is ahead of which at each point, and where that reverses along an axis, in words.

Two arms at one point are compared by throughput: by the repetitions that both ran to their end, turn by
turn, or by blocks of samples where there is one run of each (``effects.py``, ``blocks.py``). One is ahead where the
95 % interval of their ratio leaves 1 out, all pairs and points of the sweep together, by Holm's steps. Whether a run
was steady changes no rank here, and is reported with it.

A reversal is said of two arms and an axis, all other axes at one value: one arm is ahead at some of its values, the
other at others. Points at which either has no figure, or the two are not told apart, count for neither.
"""

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from spillway.compare.blocks import blocked
from spillway.compare.effects import Effect, combined, holm, paired
from spillway.compare.metrics import METRICS
from spillway.plan.sweep import Axis, axes_of, short_names, tick
from spillway.rundir.directory import ArmRecord
from spillway.rundir.samples import Row, measured

Document = dict[str, Any]

RANKED = METRICS["throughput_ops_s"]
MOST_SENTENCES = 4  # of reversals
MOST_POINTS = 4  # in a clause


@dataclass(frozen=True)
class ArmPair:
    """Two arms at one point. Without an effect ``why_none`` says why not."""

    a: str
    b: str
    point: Document
    effect: Effect | None = None  # of b against a
    one_run: bool = False  # of each, so that how runs differ is not in the interval
    steady: bool = True  # both
    why_none: str = ""
    differs: bool = False

    @property
    def times(self) -> float:
        """a as a multiple of b."""
        assert self.effect is not None
        return math.exp(-self.effect.d)

    @property
    def winner(self) -> str:
        """The arm that is ahead; empty where neither is."""
        if not self.differs or self.effect is None:
            return ""
        return self.a if self.effect.d < 0 else self.b


def arm_pairs(arms: Sequence[ArmRecord]) -> list[ArmPair]:
    """Every two arms at every point of a sweep, in the order of the arms, then of the points."""
    names = list(dict.fromkeys(_name(arm) for arm in arms))
    points = {repr(sorted(_point(arm).items())): _point(arm) for arm in arms}
    at = {(_name(arm), repr(sorted(_point(arm).items()))): arm for arm in arms}
    found = [
        _arm_pair(a, b, points[key], at.get((a, key)), at.get((b, key)))
        for a, b in itertools.combinations(names, 2)
        for key in points
    ]
    known = [index for index, pair in enumerate(found) if pair.effect is not None]
    verdicts = holm([effect.p for pair in found if (effect := pair.effect) is not None])
    for index, (differs, _) in zip(known, verdicts, strict=True):
        pair = found[index]
        found[index] = ArmPair(pair.a, pair.b, pair.point, pair.effect, pair.one_run, pair.steady, "", differs)
    return found


def _name(arm: ArmRecord) -> str:
    return str(arm.summary.get("of") or arm.name)


def _point(arm: ArmRecord) -> Document:
    return arm.summary.get("point") or {}


def _arm_pair(a: str, b: str, point: Document, ours: ArmRecord | None, theirs: ArmRecord | None) -> ArmPair:
    for name, arm in ((a, ours), (b, theirs)):
        if arm is None:
            return ArmPair(a, b, point, why_none=f"“{name}” was not run")
    assert ours is not None and theirs is not None
    ends = [_ends(arm) for arm in (ours, theirs)]
    for name, each in ((a, ends[0]), (b, ends[1])):
        if not any(_figure(end) for end in each):
            why = "failed" if any(end.get("failure") for end in each) else "has no whole run with a throughput"
            return ArmPair(a, b, point, why_none=f"“{name}” {why}")
    turns = [(x, y, _figure(x), _figure(y)) for x, y in zip(*ends, strict=False)]
    both = [(x, y, p, q) for x, y, p, q in turns if p is not None and q is not None]
    steady = all(end.get("steady") for x, y, _, _ in both for end in (x, y))
    if len(both) >= 2:
        first = np.array([RANKED.scaled(p) for _, _, p, _ in both])
        second = np.array([RANKED.scaled(q) for _, _, _, q in both])
        return ArmPair(a, b, point, paired(first, second), steady=steady)
    if len(ends[0]) > 1 or len(ends[1]) > 1:
        return ArmPair(a, b, point, why_none="they have fewer than two turns in which both ran to their end")
    effect = _of_blocks(ours, theirs)
    why = "" if effect is not None else "one run of each has too few independent blocks to say"
    return ArmPair(a, b, point, effect, True, steady, why)


def _ends(arm: ArmRecord) -> list[Document]:
    """What each repetition came to, with how it ended."""
    summary = arm.summary
    own = {name: (summary.get("standing") or {}).get(name) for name in ("complete", "failure")}
    return summary.get("repetitions") or [summary | own]


def _figure(end: Document) -> float | None:
    return RANKED.known(end) if end.get("complete") and not end.get("failure") else None


def _of_blocks(a: ArmRecord, b: ArmRecord) -> Effect | None:
    """By one run of each: blocks of its measured samples, of a steady run from where it was steady."""
    sides = []
    for arm in (a, b):
        series = RANKED.series(_rows(arm))
        found = None if series is None else blocked(np.array(series[0]), np.array(series[1]))
        if found is None or not found.value > 0 or not math.isfinite(found.value):
            return None
        sides.append((RANKED.scaled(found.value), found.se / found.value, found.df))
    return combined(*sides[0], *sides[1])


def _rows(arm: ArmRecord) -> list[Row]:
    since = (arm.summary.get("standing") or {}).get("steady_since_s") if arm.summary.get("steady") else None
    kept, elapsed = [], 0.0
    for row in measured(arm.rows):
        if elapsed >= (since or 0.0) - 1e-9:
            kept.append(row)
        elapsed += row["dt_s"]
    return kept


# ---------------------------------------------------------------- in words


def ranks_in_words(arms: Sequence[ArmRecord]) -> list[str]:
    """A sentence for each reversal of rank in a sweep, or one that there is none; none of one arm, or of one point."""
    found = arm_pairs(arms)
    axes = axes_of([_point(arm) for arm in arms])
    if not found or not axes:
        return []
    names = short_names([axis.key for axis in axes])
    said = [words for group in _slices(found, axes) if (words := _reversal(group, axes, names))]
    if said:
        more = len(said) - MOST_SENTENCES
        told = said[:MOST_SENTENCES]
        return told + ([f"And {more} more such reversals; the table has the figures."] if more > 0 else [])
    return [_no_reversal(found, axes, names)]


@dataclass(frozen=True)
class _Slice:
    """Two arms along one axis, all others at one value."""

    axis: Axis
    others: Document
    arm_pairs: list[ArmPair]


def _slices(found: Sequence[ArmPair], axes: Sequence[Axis]) -> list[_Slice]:
    groups: dict[str, _Slice] = {}
    for axis in axes:
        for pair in found:
            others = {each.key: pair.point.get(each.key) for each in axes if each is not axis}
            key = repr((axis.key, pair.a, pair.b, sorted(others.items(), key=lambda item: item[0])))
            groups.setdefault(key, _Slice(axis, others, [])).arm_pairs.append(pair)
    return list(groups.values())


def _reversal(group: _Slice, axes: Sequence[Axis], names: dict[str, str]) -> str:
    """The sentence of a reversal and what is to be known of it; empty where there is none."""
    a, b = group.arm_pairs[0].a, group.arm_pairs[0].b
    ahead = [pair for pair in group.arm_pairs if pair.winner == a]
    behind = [pair for pair in group.arm_pairs if pair.winner == b]
    if not ahead or not behind:
        return ""
    where = ", ".join(f"{names[key]} {tick(key, value)}" for key, value in group.others.items())
    key = group.axis.key
    opening = f"At {where}, “{a}”" if where else f"“{a}”"
    words = f"{opening} is ahead of “{b}” {_listed(ahead, key)}, behind {_listed(behind, key)}"
    return f"{words} ({names[key]}).{_reservations(group.arm_pairs, key)}"


def _listed(of: Sequence[ArmPair], key: str) -> str:
    """``at A (× 1.9), B (× 1.2)``."""
    parts = [f"{_at(pair, key)} (× {_times(pair.times)})" for pair in of[:MOST_POINTS]]
    more = f" and {len(of) - MOST_POINTS} more" if len(of) > MOST_POINTS else ""
    return f"at {', '.join(parts)}{more}"


def _at(pair: ArmPair, key: str) -> str:
    return tick(key, pair.point.get(key))


def _times(value: float) -> str:
    """Two decimals, three where two would say that they are equal."""
    if 0.95 < value < 1.05:
        return f"{value:.3f}"
    return f"{value:.2f}" if 0.1 <= value < 9.95 else f"{value:.2g}" if value < 0.1 else f"{value:,.0f}"


def _reservations(of: Sequence[ArmPair], key: str) -> str:
    """Sentences about points without a rank, and about the standing of the others."""
    said = []
    if equal := [pair for pair in of if pair.effect is not None and not pair.differs]:
        said.append(f"Not told apart at {', '.join(_at(pair, key) for pair in equal[:MOST_POINTS])}.")
    unknown: dict[str, list[str]] = {}
    for pair in of:
        if pair.effect is None:
            unknown.setdefault(pair.why_none, []).append(_at(pair, key))
    said += [f"Nothing is said of {', '.join(places[:MOST_POINTS])}: {why}." for why, places in unknown.items()]
    if moving := [pair for pair in of if pair.winner and not pair.steady]:
        places = ", ".join(_at(pair, key) for pair in moving[:MOST_POINTS])
        said.append(f"Not steady at {places}: there it is a rank of these measured phases, not of a steady state.")
    if any(pair.winner and pair.one_run for pair in of):
        said.append(ONE_RUN)
    return "".join(f" {sentence}" for sentence in said)


ONE_RUN = "By one run of each: how much runs differ is in no interval, so repeat it (--set repetitions=5)."


def _no_reversal(found: Sequence[ArmPair], axes: Sequence[Axis], names: dict[str, str]) -> str:
    """The sentence for a sweep without a reversal of rank."""
    over = " and ".join(names[axis.key] for axis in axes)
    told = [pair for pair in found if pair.winner]
    if not told:
        whys = dict.fromkeys(pair.why_none for pair in found if pair.why_none)
        why = f": {next(iter(whys))}" if whys and not any(pair.effect for pair in found) else ""
        return f"No two arms are told apart by throughput at any point{why}."
    pairs = {(pair.a, pair.b) for pair in found}
    if len(pairs) > 1:
        opening = f"No reversal of rank is shown over {over}; two arms are told apart in {len(told)} of {len(found)}"
        words = f"{opening} comparisons."
    elif len({pair.winner for pair in told}) > 1:
        a, b = told[0].a, told[0].b
        counts = [sum(pair.winner == name for pair in told) for name in (a, b)]
        words = (
            f"“{a}” is ahead of “{b}” at {counts[0]} of {len(found)} points and behind at {counts[1]}, which differ in "
            f"more than one of {over}."
        )
    else:
        winner = told[0].winner
        times = sorted(pair.times if winner == pair.a else 1 / pair.times for pair in told)
        least, most = _times(times[0]), _times(times[-1])
        span = f"× {least}" if least == most else f"× {least} to × {most}"
        loser = told[0].b if winner == told[0].a else told[0].a
        opening = f"No reversal of rank is shown over {over}: “{winner}” is ahead of “{loser}”"
        words = f"{opening} at {len(told)} of {len(found)} points ({span})."
    moving = sum(not pair.steady for pair in told)
    words += f" At {moving} of those not every run was steady." if moving else ""
    return words + (f" {ONE_RUN}" if any(pair.one_run for pair in told) else "")
