"""What was published, beside what a suite measured: each claim with a verdict that is computed from both.

``claims.toml`` beside the suite holds them. ``[statements]`` says in a sentence what each claim is (by its name in the
ledger, ``C18``); each ``[[claims]]`` is one published figure of it, or one relation: which plan, arm and point it is
of, which figure, and what that should be. Points and sizes are the original's; a scaled run stands at the original's
point. A figure that was not measured is said to be that, never guessed.
"""

import itertools
import math
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any, Literal

from spillway.amplification import ratio
from spillway.errors import SpillwayError
from spillway.plan import Plan
from spillway.plan_keys import one_of, text
from spillway.quantity import nearest
from spillway.suite.law import Law

Document = dict[str, Any]
Verdict = Literal["reproduced", "differs", "not measured"]

TOLERANCE = 0.15  # relative, where a claim gives none of its own. Source: what is asked of wa_app at the paper's scale
FLAT = 0.10  # relative: a figure that moves less is flat. Source: guess

FIGURES: dict[str, Callable[[Document], float | None]] = {
    **{
        name: (lambda summary, name=name: summary.get(name))  # type: ignore[misc]
        for name in ("wa_app", "wa_device", "wa_total", "throughput_ops_s", "user_mb_s", "space_amplification")
    },
    "latency_p99_us": lambda summary: (summary.get("latency_us") or {}).get("p99"),
    "share_in_stalls": lambda s: ratio((s.get("stalls") or {}).get("seconds"), s.get("duration_s")),
}
BY_LAW = ("wa_app", "wa_total")  # the latter with wa_device as it was measured
TRENDS = ("falls", "rises", "flat")
_KEYS = (
    *("claim", "says", "where", "plan", "arm", "at", "figure", "over", "published", "within", "between", "along"),
    *("trend", "least_at", "most_at", "remark", "why"),
)
_OVER = ("plan", "arm", "at", "figure")


@dataclass(frozen=True)
class Place:
    """One figure of one run: of which plan and arm, at which point of its sweep (keys left out: any, but one run)."""

    plan: str
    arm: str
    at: dict[str, Any]
    figure: str


@dataclass(frozen=True)
class Claim:
    """One published figure or relation."""

    name: str  # of the ledger's
    says: str
    where: str  # of the paper
    place: Place
    over: Place | None = None  # divide by this figure
    published: float | None = None
    within: float = TOLERANCE
    between: tuple[float, float] | None = None
    along: str = ""  # a relation's axis
    trend: str = ""
    least_at: Any = None
    most_at: Any = None
    remark: str = ""
    why: str = ""  # what stands against it, where it differs

    @property
    def plan(self) -> str:
        """The plan that it is read from."""
        return self.place.plan


@dataclass(frozen=True)
class Measured:
    """A run of a plan as claims see it: its arm, its point in the original's sizes, its finished repetitions."""

    arm: str
    point: Mapping[str, Any]
    finished: Sequence[Document]
    failure: str = ""
    law: Law | None = None  # what it would have come to at the original's size

    def figure(self, name: str) -> float | None:
        """The median over the repetitions that were finished."""
        known = [value for each in self.finished if (value := FIGURES[name](each)) is not None]
        return median(known) if known else None

    def judged(self, name: str) -> float | None:
        """The figure that is held against what was published: by the law where it agrees, else as measured."""
        measured, wa_app = self.figure(name), self.figure("wa_app")
        if measured is None or name not in BY_LAW or not wa_app or self.law is None or not self.law.agrees_with(wa_app):
            return measured
        return measured / wa_app * self.law.at_original

    def on_the_law(self, name: str) -> str:
        """What is to be said of a figure that the law changes or does not; empty where there is none."""
        wa_app = self.figure("wa_app")
        if name not in BY_LAW or self.law is None or not wa_app:
            return ""
        law = digits(self.law.at_scale)
        if self.law.agrees_with(wa_app):
            return f"measured at this scale: {digits(self.figure(name) or 0)}; for its wa_app the law says {law}"
        return f"as measured, for the law says {law} of this scale's wa_app, {digits(wa_app)}"


@dataclass(frozen=True)
class Judged:
    """A claim with its verdict."""

    claim: Claim
    published: str
    ours: str
    verdict: Verdict
    words: str  # why it differs or what is missing, and the claim's remark


Results = Mapping[str, Sequence[Measured]]  # by plan


def measured_of(
    arms: Mapping[str, Document], point_of: Mapping[str, Mapping[str, Any]], law_of: Mapping[str, Law | None]
) -> list[Measured]:
    """The runs of a summary's ``arms``; ``point_of`` has their points in the original's sizes, ``law_of`` laws."""
    found = []
    for name, summary in arms.items():
        ended = summary.get("repetitions") or [summary | dict(summary["standing"])]
        finished = [each for each in ended if each.get("complete")]
        failure = next((each["failure"] for each in ended if each.get("failure")), "")
        point = point_of.get(name, {})
        found.append(Measured(summary.get("of") or name, point, finished, failure, law_of.get(name)))
    return found


def judge_all(claims: Sequence[Claim], results: Results) -> list[Judged]:
    """Every claim with its verdict, in their order."""
    return [_judge(claim, results) for claim in claims]


def _judge(claim: Claim, results: Results) -> Judged:
    try:
        if claim.published is not None or claim.between is not None:
            return _figure(claim, results)
        return _relation(claim, results)
    except _Missing as missing:
        return Judged(claim, _published(claim), "–", "not measured", _sentences(str(missing), claim.remark))


class _Missing(Exception):
    """A run that a claim needs is not there."""


def _figure(claim: Claim, results: Results) -> Judged:
    ours = _value(claim.place, results)
    if claim.over is not None:
        below = _value(claim.over, results)
        if not below:
            raise _Missing(f"the figure that it is divided by is {below:g}")
        ours /= below
    if claim.between is not None:
        good = claim.between[0] <= ours <= claim.between[1]
        off = "" if good else "below that" if ours < claim.between[0] else "above that"
    else:
        assert claim.published is not None
        share = ours / claim.published - 1 if claim.published else math.inf
        good = abs(share) <= claim.within
        off = "" if good else f"{abs(share):.0%} {'above' if share > 0 else 'below'}; {claim.within:.0%} are allowed"
    by_law = _found(claim.place, results)[0].on_the_law(claim.place.figure)
    return _said(claim, digits(ours), good, off, by_law)


def _relation(claim: Claim, results: Results) -> Judged:
    """How a figure goes along an axis, or where it is least or most."""
    place = claim.place
    line = [each for each in _found(place, results) if claim.along in each.point]
    known = [(each.point[claim.along], value) for each in line if (value := each.judged(place.figure)) is not None]
    if len(known) < 2 or len(known) < len(line):
        raise _Missing(f"{len(known)} of {len(line)} points over {claim.along} were measured")
    values = [value for _, value in known]
    said = ", ".join(f"{digits(value)} at {at}" for at, value in known)
    if claim.trend:
        highest, lowest = max(values), min(values)
        flat = highest <= lowest * (1 + claim.within)
        pairs = list(itertools.pairwise(values))
        good = {
            "flat": flat,
            "falls": not flat
            and all(after <= before * (1 + FLAT) for before, after in pairs)
            and values[-1] < values[0],
            "rises": not flat
            and all(after >= before * (1 - FLAT) for before, after in pairs)
            and values[-1] > values[0],
        }[claim.trend]
        return _said(claim, said, good, "" if good else f"it does not go as published: {claim.trend}")
    wanted = claim.least_at if claim.least_at is not None else claim.most_at
    best = min(known, key=lambda pair: pair[1]) if claim.least_at is not None else max(known, key=lambda pair: pair[1])
    good = best[0] == wanted
    return _said(claim, said, good, "" if good else f"ours is at {best[0]}")


def _said(claim: Claim, ours: str, good: bool, off: str, by_law: str = "") -> Judged:
    words = _sentences(off, "" if good else claim.why, by_law, claim.remark)
    return Judged(claim, _published(claim), ours, "reproduced" if good else "differs", words)


def _sentences(*parts: str) -> str:
    return " ".join(f"{part[0].upper()}{part[1:].rstrip('.')}." for part in parts if part)


def _published(claim: Claim) -> str:
    if claim.published is not None:
        return digits(claim.published)
    if claim.between is not None:
        low, high = claim.between
        return f"at least {digits(low)}" if math.isinf(high) else f"{digits(low)} to {digits(high)}"
    if claim.trend:
        return claim.trend
    return f"least at {claim.least_at}" if claim.least_at is not None else f"most at {claim.most_at}"


def _value(place: Place, results: Results) -> float:
    found = _found(place, results)
    if len(found) != 1:
        what = ", ".join([place.arm, *(f"{key} = {value}" for key, value in place.at.items())])
        raise _Missing(f"of {place.plan} there {'is no run' if not found else 'are several runs'} {what}")
    value = found[0].judged(place.figure)
    if value is None:
        raise _Missing(found[0].failure or f"{place.plan} has no {place.figure} there")
    return value


def _found(place: Place, results: Results) -> list[Measured]:
    if place.plan not in results:
        raise _Missing(f"{place.plan} has not been run")
    return [
        each
        for each in results[place.plan]
        if each.arm == place.arm and all(each.point.get(key) == value for key, value in place.at.items())
    ]


def digits(value: float) -> str:
    """Three significant digits."""
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"


def read_claims(path: Path, plans: Sequence[str]) -> tuple[dict[str, str], list[Claim]]:
    """Statements and claims of ``claims.toml``, checked; none where there is no such file. Raises SpillwayError."""
    if not path.is_file():
        return {}, []
    try:
        document = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise SpillwayError(f"{path}: this is not TOML that can be read: {error}.") from error
    for key in document:
        if key not in ("statements", "claims"):
            raise SpillwayError(f"{path}: {key} is not a key of claims{nearest(key, ('statements', 'claims'))}")
    statements = {name: text(value, f"{path}: {name}") for name, value in document.get("statements", {}).items()}
    claims = [_read(table, f"{path}: claims[{i}]", plans) for i, table in enumerate(document.get("claims", []))]
    for claim in claims:
        if claim.name not in statements:
            raise SpillwayError(f"{path}: claim {claim.name} has no sentence under [statements]; add one.")
    return statements, claims


def _read(table: Document, where: str, plans: Sequence[str]) -> Claim:
    for key in table:
        if key not in _KEYS:
            raise SpillwayError(f"{where}: {key} is not a key of a claim{nearest(key, _KEYS)}")
    for key in ("claim", "says", "where", "plan", "arm", "figure"):
        if not isinstance(table.get(key), str) or not table[key]:
            raise SpillwayError(f"{where}: {key} is missing; a claim has a text for it.")
    kinds = [key for key in ("published", "between", "trend", "least_at", "most_at") if key in table]
    if len(kinds) != 1:
        said = " and ".join(kinds) or "nothing"
        raise SpillwayError(f"{where}: it says {said}; give one of published, between, trend, least_at and most_at.")
    relation = kinds[0] in ("trend", "least_at", "most_at")
    if relation != bool(table.get("along")):
        raise SpillwayError(
            f"{where}: along names the axis of a trend, a least_at or a most_at, and goes with them only."
        )
    if relation and "over" in table:
        raise SpillwayError(f"{where}: over divides one figure by another, and {kinds[0]} is of several; leave it out.")
    place = _place(table, where, plans)
    if kinds[0] == "trend":
        one_of(*TRENDS)(table["trend"], f"{where}: trend")
    return Claim(
        table["claim"],
        table["says"],
        table["where"],
        place,
        _over(table.get("over"), place, where, plans),
        None if "published" not in table else _number(table["published"], f"{where}: published"),
        _number(table.get("within", FLAT if kinds[0] == "trend" else TOLERANCE), f"{where}: within"),
        _between(table.get("between"), where),
        table.get("along", ""),
        table.get("trend", ""),
        table.get("least_at"),
        table.get("most_at"),
        text(table.get("remark", ""), f"{where}: remark"),
        text(table.get("why", ""), f"{where}: why"),
    )


def _place(table: Document, where: str, plans: Sequence[str]) -> Place:
    if table["plan"] not in plans:
        raise SpillwayError(f"{where}: plan is {table['plan']!r}, no plan of the suite{nearest(table['plan'], plans)}")
    one_of(*FIGURES)(table["figure"], f"{where}: figure")
    at = table.get("at", {})
    if not isinstance(at, dict):
        raise SpillwayError(f'{where}: at is {at!r}; it takes a table such as {{ "load.num" = 1000 }}.')
    return Place(table["plan"], table["arm"], at, table["figure"])


def _over(table: Any, place: Place, where: str, plans: Sequence[str]) -> Place | None:
    """The figure to divide by: the claim's own but for what ``over`` says."""
    if table is None:
        return None
    if not isinstance(table, dict) or not table or any(key not in _OVER for key in table):
        raise SpillwayError(f"{where}: over is {table!r}; it takes a table with one or more of {', '.join(_OVER)}.")
    own = {"plan": place.plan, "arm": place.arm, "figure": place.figure}
    return _place({**own, **table, "at": {**place.at, **table.get("at", {})}}, f"{where}: over", plans)


def _between(value: Any, where: str) -> tuple[float, float] | None:
    if value is None:
        return None
    if not isinstance(value, list) or len(value) != 2:
        raise SpillwayError(f"{where}: between is {value!r}; it takes two numbers, such as [0.2, 0.5] or [1, inf].")
    low, high = (_number(each, f"{where}: between") for each in value)
    return low, high


def _number(value: Any, where: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise SpillwayError(f"{where} is {value!r}; it takes a number.")
    return float(value)


def check_against(claims: Sequence[Claim], plans: Mapping[str, Plan], path: Path) -> None:
    """Refuses a claim about an arm or a point that its plan does not have: it could never be measured."""
    for claim in claims:
        for place in (claim.place, claim.over):
            if place is None or place.plan not in plans:
                continue
            runs = plans[place.plan].arms
            arms = list(dict.fromkeys(run.of or run.name for run in runs))
            if place.arm not in arms:
                there = f"there are: {', '.join(arms)}"
                raise SpillwayError(f"{path}: “{claim.says}”: {place.plan} has no arm {place.arm!r}; {there}.")
            fits = [
                run
                for run in runs
                if (run.of or run.name) == place.arm and all(run.point.get(k) == v for k, v in place.at.items())
            ]
            if not fits or (len(fits) > 1 and not claim.along):
                count = "no run" if not fits else f"{len(fits)} runs"
                said = ", ".join(f"{key} = {value!r}" for key, value in place.at.items())
                raise SpillwayError(f"{path}: “{claim.says}”: {place.plan} has {count} of {place.arm} at {said}.")


@dataclass
class Tally:
    """How the claims of one name came out."""

    name: str
    says: str
    judged: list[Judged] = field(default_factory=list)

    @property
    def verdict(self) -> str:
        """``reproduced``, ``differs``, ``in part``, or ``not measured`` where nothing of it was."""
        seen = {each.verdict for each in self.judged}
        if len(seen) == 1:
            return seen.pop()
        return "in part" if "reproduced" in seen else "differs"

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
