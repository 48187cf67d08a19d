"""Compares what a suite measured with what was published: a verdict for each claim.

All points of a claim stand on one basis. ``simulated``: every one of them by the law of its tree, at the original's
size; ``scaled``: every one as it was measured at the suite's scale; ``measured``: the suite was not scaled. A figure
that depends on how much data there is, and of which there is no law that agrees with the measurement, is no figure at
the original's size: alone it is compared with none; only its ratios and trends are. What was not measured is called
that, never guessed.
"""

import csv
import io
import itertools
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from spillway.figures.lifetime import plain
from spillway.quantity import human_bytes
from spillway.suite.claims import BURST, FLAT, STEADY, Claim, Place
from spillway.suite.measured import Measured, best_of, digits

Document = dict[str, Any]
Verdict = Literal["reproduced", "differs", "calibrated", "not measured"]
Basis = Literal["measured", "simulated", "scaled", ""]

VERDICTS: tuple[Verdict, ...] = ("reproduced", "differs", "calibrated", "not measured")
BY_LAW = ("wa_app", "wa_total")  # they depend on how much data there is; the latter's wa_device is as it was measured
MARGIN = 0.02  # relative: what has no repetitions is more than a bound when it is so by more. Source: guess
COLUMNS = ("claim", "statement", "published", "ours", "basis", "verdict", "why")  # of claims.csv


@dataclass(frozen=True)
class Judged:
    """A claim with its verdict."""

    claim: Claim
    published: str
    ours: str
    basis: Basis
    verdict: Verdict
    words: str  # why it differs or what is missing, what the law says, and the claim's remark
    runs: tuple[Measured, ...] = ()  # that it was read from

    @property
    def lifetime(self) -> str:
        """What the runs of a write amplification took of their drives' lives, as measured; empty of other figures."""
        if not self.claim.place.figure.endswith(("wa_app", "wa_device", "wa_total")):
            return ""
        each = (
            ("flash_bytes_per_operation", plain, " flash bytes an operation"),
            ("full_size_years", plain, " years"),
            ("full_size_user_bytes_until_worn", human_bytes, " of user data until worn"),
        )
        said = {name: f"{span}{unit}" for name, form, unit in each if (span := self._span(name, form))}
        if "full_size_years" in said:  # else there is no rate, as in virtual time
            said.pop("full_size_user_bytes_until_worn", None)
        return ", ".join(said.values())

    def _span(self, name: str, form: Callable[[float], str]) -> str:
        """The least and the most of the runs' lifetimes; empty unless all are known."""
        values = [run.lifetime(name) for run in self.runs]
        known = [value for value in values if value is not None]
        if not known or len(known) < len(values):
            return ""
        return " to ".join(dict.fromkeys((form(min(known)), form(max(known)))))


@dataclass(frozen=True)
class _Read:
    """The figures of a claim's runs on their common basis."""

    basis: Basis
    values: list[float]
    measured: list[float]
    words: str  # on the law


Results = Mapping[str, Sequence[Measured]]  # by plan


class _Missing(Exception):
    """A run or a figure that a claim needs is not there."""


class _NoFigure(_Missing):
    """The claim's run was measured, but at a scale from which nothing leads to the original's size."""


class _Unsteady(_Missing):
    """The claim is about the burst of a run that is not steady."""


def runs_by_law(claim: Claim, results: Results) -> list[tuple[str, str]]:
    """The runs, as plan and name, whose law the claim would take; none where it takes none."""
    if any(place.figure not in BY_LAW for place in claim.places):
        return []
    return [
        (place.plan, run.name) for place in claim.places for run in _fitting(place, results.get(place.plan, ()), claim)
    ]


def judge_all(claims: Sequence[Claim], results: Results, states: Mapping[str, str] | None = None) -> list[Judged]:
    """Every claim with its verdict, in their order. ``states``: why a plan has no results."""
    return [_judge(claim, results, states or {}) for claim in claims]


def _judge(claim: Claim, results: Results, states: Mapping[str, str]) -> Judged:
    try:
        if claim.unmeasured:
            raise _Missing(claim.unmeasured)
        for place in claim.places:
            if place.plan not in results:
                raise _Missing(states.get(place.plan) or f"{place.plan} has not been run")
        return _relation(claim, results) if claim.is_relation else _figure(claim, results)
    except _Missing as missing:
        why = (
            claim.why
            if isinstance(missing, _NoFigure)
            else claim.why_unsteady
            if isinstance(missing, _Unsteady)
            else ""
        )
        return Judged(claim, published(claim), "–", "", "not measured", _sentences(str(missing), why, claim.remark))


def _figure(claim: Claim, results: Results) -> Judged:
    places, runs = claim.places, [_one(place, results) for place in claim.places]
    own, named = len(claim.place.terms), list(zip(places, runs, strict=True))
    terms = [*_in_common(named[:own]), *_in_common(named[own:])]
    read = _read(claim, terms)
    ours, beside = _ratio(claim, read.values), _in_words(claim, read.measured)
    off = _off(claim, ours, _margin(read.basis, terms))
    parts = _in_words(claim, read.values) if len(places) > 1 else ""
    if read.basis == "simulated":
        parts = f"{parts + ', simulated; ' if parts else ''}measured at this scale: {beside}"
    said = f"{digits(ours)}{' (simulated)' if read.basis == 'simulated' else ''}"
    why = off[0] and {-1: claim.why_below, 1: claim.why_above}[off[1]]
    beneath = _beneath(terms) if off[0] and claim.place.against else []
    rivals = [run.name for place, run in terms if place.rivals]
    return _judged(claim, said, read, off, (why, parts, *rivals, *beneath, *_not_steady(terms)), runs)


def _in_common(terms: Sequence[tuple[Place, Measured]]) -> list[tuple[Place, Measured]]:
    """A figure and the rival's that it is divided by, both of the repetitions that both have finished."""
    keys = [run.by_repetition.keys() for _, run in terms]
    if not keys or not all(keys):
        return list(terms)  # one has no figure at all, and says why
    kept = {key for key in keys[0] if all(key in each for each in keys)}
    if not kept:
        names = " and ".join(dict.fromkeys(run.name or run.arm for _, run in terms))
        raise _Missing(f"{terms[0][0].plan} has no repetition that both {names} have finished")
    return [(place, run if kept == set(run.by_repetition) else run.only(kept)) for place, run in terms]


def _ratio(claim: Claim, values: Sequence[float]) -> float:
    """The claim's figure from those of its places: over that of the arm it is held against, and over ``over``."""
    own = len(claim.place.terms)
    ours = _over(values[:own])
    return ours if claim.over is None else _over([ours, _over(values[own:])])


def _over(values: Sequence[float]) -> float:
    if len(values) == 1:
        return values[0]
    if not values[1]:
        raise _Missing(f"the figure that it is divided by is {values[1]:g}")
    return values[0] / values[1]


def _in_words(claim: Claim, values: Sequence[float]) -> str:
    own = len(claim.place.terms)
    sides = [" over ".join(map(digits, side)) for side in (values[:own], values[own:]) if side]
    return " over ".join(f"({side})" for side in sides) if len(values) > 2 else " over ".join(sides)


def _beneath(terms: Iterable[tuple[Place, Measured]]) -> list[str]:
    """What lies beneath a throughput: what a run wrote for an operation, how fast, and how long its writers waited."""
    names = ("wa_app", "wa_device", "host_mb_s", "share_in_stalls")
    found = []
    for place, run in terms:
        told = {name: value for name in names if (value := run.figure(name)) is not None}
        if place.figure.endswith("throughput_ops_s") and len(told) == len(names):
            written = f"wa_app {digits(told['wa_app'])}, wa_device {digits(told['wa_device'])}"
            waited = f"writers in stalls {told['share_in_stalls']:.0%} of the time"
            found.append(f"{run.name or run.arm}: {written}, {digits(told['host_mb_s'])} MB/s to the drive, {waited}")
    return list(dict.fromkeys(found))


def _not_steady(terms: Iterable[tuple[Place, Measured]]) -> list[str]:
    """Which runs were not steady, of those whose figure should be of their steady part."""
    found = [
        f"{run.name or run.arm} is {unsteady}, so its figure is of all that was measured"
        for place, run in terms
        if place.figure.startswith(STEADY) and (unsteady := _unsteady(run))
    ]
    return list(dict.fromkeys(found))


def _off(claim: Claim, ours: float, margin: float) -> tuple[str, int]:
    """How a figure misses what was published (empty: it does not), and whether it is below (-1) or above (1)."""
    if claim.published is not None:
        share = ours / claim.published - 1 if claim.published else math.inf
        if abs(share) > claim.within:
            side = 1 if share > 0 else -1
            return f"{abs(share):.0%} {'above' if side > 0 else 'below'}; {claim.within:.0%} are allowed", side
    if claim.between is not None:
        low, high = claim.between
        return ("below that", -1) if ours < low else ("above that", 1) if ours > high else ("", 0)
    for bound, side in ((claim.above, -1), (claim.below, 1)):
        if bound is not None and (ours - bound) * -side <= abs(bound) * margin:
            near = abs(ours - bound) <= abs(bound) * margin
            word = "above" if side < 0 else "below"
            how = f"no more than {margin:.1%} from it" if near else f"not {word}"
            return f"it should be {word} {digits(bound)}, and is {how}", side
    return "", 0


def _margin(basis: Basis, terms: Iterable[tuple[Place, Measured]]) -> float:
    """By what a figure has to pass a bound: what the repetitions of its terms are apart, or MARGIN without them."""
    spreads = [run.spread(place.figure) for place, run in terms]
    if basis == "simulated" or None in spreads:
        return MARGIN
    return sum(each for each in spreads if each is not None)


def _relation(claim: Claim, results: Results) -> Judged:
    """How a figure goes along an axis, or where it is least or most."""
    place, along = claim.place, claim.along
    lines = [_fitting(each, results[each.plan], claim) for each in place.terms]
    at_points = [_same_point(run, lines) for run in lines[0]]
    known = [
        runs
        for runs in at_points
        if len(runs) == len(lines) and all(run.figure(place.figure) is not None for run in runs)
    ]
    if len(known) < 2 or len(known) < len(lines[0]):
        raise _Missing(f"{len(known)} of {len(lines[0])} points over {along} were measured")
    named = [list(zip(place.terms, runs, strict=True)) for runs in known]
    terms = [each for pair in named for each in _in_common(pair)]
    read = _read(claim, terms)
    width = len(place.terms)
    values, scaled = (
        [_over(each[start : start + width]) for start in range(0, len(each), width)]
        for each in (read.values, read.measured)
    )
    points = [runs[0].point[along] for runs in known]
    measured, said = _along(points, scaled), _along(points, values)
    beside = f"measured at this scale: {measured}" if read.basis == "simulated" else ""
    ours = f"simulated: {said}" if read.basis == "simulated" else said
    steady = _not_steady(terms)
    if claim.trend:
        good = _goes(claim, values)
        off = "" if good else f"it does not go as published: {claim.trend}"
        return _judged(claim, ours, read, (off, 0), (beside, *steady), [run for pair in named for _, run in pair])
    wanted = claim.least_at if claim.least_at is not None else claim.most_at
    pick = min if claim.least_at is not None else max
    extreme = pick(values)
    best = points[values.index(extreme)]
    there = [value for point, value in zip(points, values, strict=True) if point == wanted]
    good = any(abs(value - extreme) <= abs(extreme) * MARGIN for value in there)
    tie = f"that at {best} is within {MARGIN:.0%} of it" if good and best != wanted else ""
    off = "" if good else f"ours is at {best}"
    return _judged(claim, ours, read, (off, 0), (tie, beside, *steady), [run for pair in named for _, run in pair])


def _same_point(run: Measured, lines: Sequence[Sequence[Measured]]) -> list[Measured]:
    """The runs of each line that are at the point of ``run``, of the first line."""
    return [each for line in lines for each in line if each.point == run.point]


def _goes(claim: Claim, values: Sequence[float]) -> bool:
    flat = max(values) <= min(values) * (1 + claim.within)
    if claim.trend == "flat" or flat:
        return flat and claim.trend == "flat"
    steps = list(itertools.pairwise(values))
    if claim.trend == "falls":
        return values[-1] < values[0] and all(after <= before * (1 + FLAT) for before, after in steps)
    return values[-1] > values[0] and all(after >= before * (1 - FLAT) for before, after in steps)


def _read(claim: Claim, terms: Sequence[tuple[Place, Measured]]) -> _Read:
    """The figures of all terms on one basis."""
    measured = [_known(place, run) for place, run in terms]
    if not any(run.scaled for _, run in terms):
        return _Read("measured", measured, measured, "")
    if any(place.figure not in BY_LAW for place, _ in terms):
        return _Read("scaled", measured, measured, "")
    simulated = [run.by_law(place.figure) for place, run in terms]
    known = [value for value in simulated if value is not None]
    of_laws = "; ".join(dict.fromkeys(words for _, run in terms if (words := run.of_the_law)))
    if len(known) == len(terms):
        return _Read("simulated", known, measured, of_laws if len(terms) == 1 else "")
    refused = next((run.of_the_law for (_, run) in terms if run.of_the_law and not _agrees(run)), "")
    reason = refused or "there is no law of such a run"
    if claim.any_size:
        return _Read("scaled", measured, measured, claim.any_size)
    if len(terms) == 1:
        at_scale = f"measured at this scale: {digits(measured[0])}"
        raise _NoFigure(f"there is no figure at the original's size: {reason}. {at_scale[0].upper()}{at_scale[1:]}")
    return _Read("scaled", measured, measured, f"all as measured at this scale, for {reason}")


def _no_burst(place: Place, run: Measured) -> str:
    """Why a run has no burst before a steady part, in a clause; empty where that is not what is asked for."""
    if not place.figure.startswith(BURST) or not run.finished:
        return ""
    return f"{run.name or run.arm} is {_unsteady(run) or 'steady from its start'}, so no burst is told apart in it"


def _unsteady(run: Measured) -> str:
    """That a run is not steady and, where it is known, which test said so; empty of one that is."""
    denied = [each for each in run.finished if not each.get("steady")]
    reasons = list(dict.fromkeys(each["steady_reason"] for each in denied if each.get("steady_reason")))
    return ("not steady" + (f" ({'; '.join(reasons)})" if reasons else "")) if denied else ""


def _agrees(run: Measured) -> bool:
    wa_app = run.figure("wa_app")
    return run.law is not None and bool(wa_app) and run.law.agrees_with(wa_app or 0.0)


def _known(place: Place, run: Measured) -> float:
    value = run.figure(place.figure)
    if value is None:
        if not run.failure and (no_burst := _no_burst(place, run)):
            raise (_Unsteady if _unsteady(run) else _Missing)(no_burst)
        raise _Missing(run.failure or f"{place.plan} has no {place.figure} there")
    if value == 0 and place.figure in BY_LAW:
        raise _Missing(f"nothing reached the drive: all that {place.plan} wrote there was still in the page cache")
    return value


def _judged(
    claim: Claim, ours: str, read: _Read, off: tuple[str, int], more: Sequence[str], runs: Sequence[Measured]
) -> Judged:
    good = not off[0]
    missing = list(dict.fromkeys(run.what_is_missing for run in runs if run.what_is_missing))
    if good and (of_it := [run.what_is_missing for run in runs if run.arm == claim.place.arm and run.what_is_missing]):
        raise _Missing(f"{of_it[0]}; what it finished comes to {ours}")
    more = (*more, *missing)
    words = _sentences(off[0], "" if good else claim.why, *more, read.words, claim.calibrated, claim.remark)
    verdict: Verdict = "differs" if not good else "calibrated" if claim.calibrated else "reproduced"
    return Judged(claim, published(claim), ours, read.basis, verdict, words, tuple(runs))


def _sentences(*parts: str) -> str:
    return " ".join(f"{part[0].upper()}{part[1:].rstrip('.')}." for part in parts if part)


def published(claim: Claim) -> str:
    """What was published, in words."""
    if claim.published is not None:
        return f"{claim.published:g}"
    if claim.between is not None:
        low, high = claim.between
        return f"at least {digits(low)}" if math.isinf(high) else f"{digits(low)} to {digits(high)}"
    if claim.above is not None or claim.below is not None:
        return f"above {digits(claim.above)}" if claim.above is not None else f"below {digits(claim.below or 0)}"
    if claim.trend:
        return claim.trend
    if claim.least_at is None and claim.most_at is None:
        return "–"
    return f"least at {claim.least_at}" if claim.least_at is not None else f"most at {claim.most_at}"


def _along(points: Sequence[Any], values: Sequence[float]) -> str:
    return ", ".join(f"{digits(value)} at {point}" for point, value in zip(points, values, strict=True))


def _one(place: Place, results: Results) -> Measured:
    if place.rivals:
        runs = [_one(replace(place, arm=arm, rivals=()), results) for arm in place.rivals]
        for run in runs:
            if run.finished or not run.full:
                _known(place, run)
        if not any(run.finished for run in runs):
            raise _Missing(f"each of {', '.join(place.rivals)} filled its drive")
        best = best_of(runs, place.figure, place.arm)
        if best is None:
            raise _Missing(f"{place.plan} has not the same repetitions of {', '.join(place.rivals)}")
        return best
    found = [each for each in results[place.plan] if _is_at(place, each)]
    if len(found) != 1:
        what = ", ".join([place.arm, *(f"{key} = {value}" for key, value in place.at.items())])
        raise _Missing(f"of {place.plan} there {'is no run' if not found else 'are several runs'} {what}")
    return found[0]


def _fitting(place: Place, runs: Sequence[Measured], claim: Claim) -> list[Measured]:
    fitting = [each for each in runs if _is_at(place, each) and (not claim.along or claim.along in each.point)]
    return [each for each in fitting if not claim.among or each.point[claim.along] in claim.among]


def _is_at(place: Place, run: Measured) -> bool:
    return run.arm == place.arm and all(run.point.get(key) == value for key, value in place.at.items())


def as_csv(judged: Iterable[Judged]) -> str:
    """A line for each claim: its name, what it is of, both figures, on what ours stands, the verdict and why."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(COLUMNS)
    for each in judged:
        claim = each.claim
        writer.writerow((claim.name, claim.says, each.published, each.ours, each.basis, each.verdict, each.words))
    return text.getvalue()


@dataclass
class Tally:
    """The verdicts on the claims of one name."""

    name: str
    says: str
    judged: list[Judged] = field(default_factory=list)

    @property
    def verdict(self) -> str:
        """``reproduced``, ``in part``, ``differs``, ``calibrated``, or ``not measured`` where nothing of it was."""
        seen = {each.verdict for each in self.judged}
        if len(seen) == 1:
            return seen.pop()
        if "reproduced" in seen:
            return "in part"
        return "differs" if "differs" in seen else "calibrated"

    @property
    def counts(self) -> str:
        """``3 of 4``: the claims that were reproduced."""
        return f"{sum(1 for each in self.judged if each.verdict == 'reproduced')} of {len(self.judged)}"


def tallies(statements: Mapping[str, str], judged: Sequence[Judged]) -> list[Tally]:
    """The verdicts by the claims' names, in the order of the statements."""
    found = [
        Tally(name, says, [each for each in judged if each.claim.name == name]) for name, says in statements.items()
    ]
    return [each for each in found if each.judged]
