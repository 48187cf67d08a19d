"""Published figures, from a suite's ``claims.toml``.

``[statements]`` says in a sentence what each claim is (by its code in docs/SOURCES.md, ``C18``); each ``[[claims]]`` is
one published figure of it, or one relation: which plan, arm and point it is of, which figure, and what that should be.
One that names several ``drives``, or lists plans or arms, is one for each of them. Points and sizes are the original's;
a scaled run stands at the original's point. ``verdicts.py`` holds them against what was measured."""

import itertools
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from spillway import toml
from spillway.errors import SpillwayError
from spillway.figures.amplification import ratio
from spillway.plan.document import Plan
from spillway.plan.keys import one_of, text
from spillway.plan.keys import table as checked_table
from spillway.quantity import nearest

Document = dict[str, Any]

TOLERANCE = 0.15  # relative, where a claim gives none of its own. Source: guess
FLAT = 0.10  # relative: a figure that moves less is flat. Source: guess


def _of_part(summary: Document, part: str, name: str) -> float | None:
    """A figure of the burst before a run's steady part, or of that part (the whole of a run that was not steady)."""
    parts = summary.get("parts") or {}
    if part == "steady" and not parts:
        return summary.get(name)
    return (parts.get(part) or {}).get(name)


def _share(part: float | None, rest: float | None) -> float | None:
    """A part's share of the two; None where one is not known or both are 0."""
    return None if part is None or rest is None else ratio(part, part + rest)


def _mapped_share(summary: Document) -> float | None:
    """The share of the drive's LBAs that holds data after a run that was kept."""
    left = (summary.get("kept") or {}).get("to") or {}
    return (left.get("drive") or {}).get("mapped_share")


FIGURES: dict[str, Callable[[Document], float | None]] = {
    **{
        name: (lambda summary, name=name: summary.get(name))  # type: ignore[misc]
        for name in ("wa_app", "wa_device", "wa_total", "throughput_ops_s", "user_mb_s", "space_amplification")
    },
    "space_amplification_peak": lambda summary: summary.get("space_amplification_peak"),
    "over_provisioning_effective": lambda summary: summary.get("over_provisioning_effective"),
    **{
        f"{part}_{name}": (lambda summary, part=part, name=name: _of_part(summary, part, name))  # type: ignore[misc]
        for part in ("burst", "steady")
        for name in ("wa_app", "wa_device", "wa_total", "throughput_ops_s")
    },
    "host_mb_s": lambda s: ratio((s.get("host_bytes_written") or 0) / 1e6 or None, s.get("duration_s")),
    "host_bytes_read_per_operation": lambda s: ratio(s.get("host_bytes_read"), s.get("operations")),
    "mapped_share": lambda summary: _mapped_share(summary),
    "flash_bytes_per_operation": lambda s: (s.get("lifetime") or {}).get("flash_bytes_per_operation"),
    "latency_p99_us": lambda summary: (summary.get("latency_us") or {}).get("p99"),
    **{
        f"{kind}_latency_{name}_us": (
            lambda summary, kind=kind, name=name: (summary.get(f"{kind}_latency_us") or {}).get(name)  # type: ignore[misc]
        )
        for kind in ("read", "write")
        for name in ("p99", "p99_9", "max")
    },
    "read_throughput_ops_s": lambda s: ratio(s.get("reads"), s.get("duration_s")),
    "write_throughput_ops_s": lambda s: ratio(s.get("writes"), s.get("duration_s")),
    "read_share": lambda s: _share(s.get("reads"), s.get("writes")),
    "slowest_second_share": lambda summary: summary.get("slowest_second_share"),
    **{
        f"settled_{name}": (lambda summary, name=name: (summary.get("bill") or {}).get(name))  # type: ignore[misc]
        for name in ("throughput_ops_s", "wa_app", "wa_total")
    },
    "diverted_share": lambda s: _share(
        *((s.get("spill") or {}).get(f"{name}_writes") for name in ("diverted", "main"))
    ),
    "share_in_stalls": lambda s: ratio((s.get("stalls") or {}).get("seconds"), s.get("duration_s")),
}
# Figures in which the best of several arms has the highest value, and those in which it has the lowest. In others no
# arm is the best.
MORE_IS_BETTER = {
    name for name in FIGURES if name.endswith(("throughput_ops_s", "user_mb_s")) or name == "slowest_second_share"
}
LESS_IS_BETTER = {
    name
    for name in FIGURES
    if name.endswith(("wa_app", "wa_device", "wa_total"))
    or name.startswith(
        ("latency_", "read_latency_", "write_latency_", "space_amplification", "flash_bytes_", "share_in_stalls")
    )
}
STEADY = "steady_"  # begins the names of figures of the steady part; of all that was measured where there is none
BURST = "burst_"  # of the burst before it; none where there is none
TRENDS = ("falls", "rises", "flat")
_TEXTS = ("remark", "why", "why_above", "why_below", "why_unsteady", "calibrated", "any_size", "unmeasured")
_KINDS = ("published", "between", "above", "below", "trend", "least_at", "most_at")
_RELATIONS = ("trend", "least_at", "most_at")
_KEYS = (
    *("claim", "says", "where", "plan", "arm", "against", "at", "drives", "figure", "over", "within", "along", "among"),
    *(*_KINDS, *_TEXTS),
)
_OVER = ("plan", "arm", "against", "at", "figure")


@dataclass(frozen=True)
class Place:
    """One figure of one run: of which plan and arm, at which point of its sweep (keys left out: any, but one run)."""

    plan: str
    arm: str
    at: dict[str, Any]
    figure: str
    against: tuple[str, ...] = ()  # the figure is divided by this arm's at the same point, or the best of these arms'
    rivals: tuple[str, ...] = ()  # of a term: it is of the best of these, in each repetition

    @property
    def terms(self) -> "tuple[Place, ...]":
        """The figures that it is made of: its own, and that of the arm or of the best arm that it is divided by."""
        if not self.against:
            return (self,)
        own = replace(self, against=())
        if len(self.against) == 1:
            return own, replace(own, arm=self.against[0])
        return own, replace(own, arm=f"the best of {', '.join(self.against)}", rivals=self.against)

    @property
    def of_arms(self) -> "tuple[Place, ...]":
        """Itself; or where it is of the best of several, the same figure of each of these."""
        return tuple(replace(self, arm=arm, rivals=()) for arm in self.rivals) or (self,)


@dataclass(frozen=True)
class Claim:
    """One published figure or relation."""

    name: str  # a code of docs/SOURCES.md
    says: str
    where: str  # of the paper
    place: Place
    over: Place | None = None  # divide by this figure
    published: float | None = None
    within: float = TOLERANCE
    between: tuple[float, float] | None = None
    above: float | None = None  # more than this, by more than the repetitions are apart; also with published
    below: float | None = None
    along: str = ""  # a relation's axis
    among: tuple[Any, ...] = ()  # its points on it; none: all
    trend: str = ""
    least_at: Any = None
    most_at: Any = None
    remark: str = ""
    why: str = ""  # the reason where it differs
    why_above: str = ""  # the same where ours is above what was published
    why_below: str = ""
    why_unsteady: str = ""  # what keeps its runs from being steady, where a figure of their parts is missing for that
    calibrated: str = ""  # what was chosen so that this comes out: it is no finding then
    any_size: str = ""  # why the figure does not depend on how much data there is
    unmeasured: str = ""  # why no plan can measure it

    @property
    def plan(self) -> str:
        """The plan that it is read from."""
        return self.place.plan

    @property
    def places(self) -> tuple[Place, ...]:
        """The figures that it reads."""
        if self.unmeasured:
            return ()
        return (*self.place.terms, *(self.over.terms if self.over else ()))

    @property
    def is_relation(self) -> bool:
        """Whether it is of several points along an axis."""
        return bool(self.along)


def read_claims(path: Path, plans: Sequence[str]) -> tuple[dict[str, str], list[Claim]]:
    """Statements and claims of ``claims.toml``, checked; none where there is no such file. Raises SpillwayError."""
    if not path.is_file():
        return {}, []
    try:
        document = toml.loads(path.read_text(encoding="utf-8"))
    except (OSError, tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise SpillwayError(f"{path}: this is not TOML that can be read: {error}.") from error
    for key in document:
        if key not in ("statements", "drives", "claims"):
            near = nearest(key, ("statements", "drives", "claims"))
            raise SpillwayError(f"{path}: {key} is not a key of claims{near}")
    sentences = checked_table(document.get("statements", {}), f"{path}: statements")
    statements = {name: text(value, f"{path}: {name}") for name, value in sentences.items()}
    drives = _drives(document.get("drives"), path)
    listed = document.get("claims", [])
    if not isinstance(listed, list) or not all(isinstance(each, dict) for each in listed):
        raise SpillwayError(f"{path}: claims is a list of tables: write [[claims]] above each.")
    claims = [
        _read(each, where, plans)
        for i, claim in enumerate(listed)
        for one in _of_each(claim, f"{path}: claims[{i}]")
        for each, where in _of_each_drive(one, drives, f"{path}: claims[{i}]")
    ]
    for claim in claims:
        if claim.name not in statements:
            raise SpillwayError(f"{path}: claim {claim.name} has no sentence under [statements]; add one.")
    return statements, claims


def _drives(table: Any, path: Path) -> tuple[str, dict[str, Any]]:
    """The axis that drives are on, and its value for each drive's name."""
    if table is None:
        return "", {}
    if not isinstance(table, dict) or not isinstance(table.get("axis"), str) or len(table) < 2:
        raise SpillwayError(f'{path}: drives takes axis, such as "drive.preset", and a value of it for each name.')
    return table["axis"], {name: value for name, value in table.items() if name != "axis"}


def _at(table: Document, where: str) -> Document:
    at = table.get("at", {})
    if not isinstance(at, dict):
        raise SpillwayError(f'{where}: at is {at!r}; it takes a table such as {{ "load.num" = 1000 }}.')
    return at


def _of_each(table: Document, where: str) -> Iterator[Document]:
    """A claim's table, once for each plan and each arm where it lists them, which what it says then names."""
    lists = {key: value for key in ("plan", "arm") if isinstance(value := table.get(key), list)}
    for key, value in lists.items():
        if len(value) < 2 or len(set(map(str, value))) < len(value):
            raise SpillwayError(f"{where}: {key} is {value!r}; it takes a name, or a list of two or more.")
    for values in itertools.product(*lists.values()):
        said = "".join(f", {value}" for value in values)
        own = {**table, **dict(zip(lists, values, strict=True))}
        yield own | {"says": f"{table.get('says', '')}{said}"} if lists else own


def _of_each_drive(table: Document, drives: tuple[str, dict[str, Any]], where: str) -> Iterator[tuple[Document, str]]:
    """A claim's table, once for each of the drives that it names, with that drive's point and published figure."""
    if "drives" not in table:
        yield table, where
        return
    axis, known = drives
    names, published = table["drives"], table.get("published")
    if not isinstance(names, list) or not names:
        raise SpillwayError(f"{where}: drives is {names!r}; it takes a list of names from [drives].")
    if isinstance(published, list) and len(published) != len(names):
        raise SpillwayError(f"{where}: published has {len(published)} figures for {len(names)} drives.")
    for index, name in enumerate(names):
        if not isinstance(name, str) or name not in known:
            raise SpillwayError(f"{where}: drives names {name!r}; under [drives] there are: {', '.join(known)}.")
        own = {key: value for key, value in table.items() if key != "drives"}
        own |= {"says": f"{table.get('says', '')}, {name}", "at": {axis: known[name], **_at(table, where)}}
        if isinstance(published, list):
            own["published"] = published[index]
        yield own, where


def _read(table: Document, where: str, plans: Sequence[str]) -> Claim:
    for key in table:
        if key not in _KEYS:
            raise SpillwayError(f"{where}: {key} is not a key of a claim{nearest(key, _KEYS)}")
    texts = {key: text(table.get(key, ""), f"{where}: {key}") for key in _TEXTS}
    wanted = ("claim", "says", "where", "plan", *(() if texts["unmeasured"] else ("arm", "figure")))
    for key in wanted:
        if not isinstance(table.get(key), str) or not table[key]:
            raise SpillwayError(f"{where}: {key} is missing; a claim has a text for it.")
    kind = _kind(table, where, bool(texts["unmeasured"]))
    place = _place({"arm": "", "figure": "wa_app", **table}, where, plans)
    if kind == "trend":
        one_of(*TRENDS)(table["trend"], f"{where}: trend")
    return Claim(
        table["claim"],
        table["says"],
        table["where"],
        place,
        over=_over(table.get("over"), place, where, plans),
        published=_maybe(table, "published", where),
        within=_number(table.get("within", FLAT if kind == "trend" else TOLERANCE), f"{where}: within"),
        between=_between(table.get("between"), where),
        above=_maybe(table, "above", where),
        below=_maybe(table, "below", where),
        along=text(table.get("along", ""), f"{where}: along"),
        among=_among(table, where),
        trend=table.get("trend", ""),
        least_at=table.get("least_at"),
        most_at=table.get("most_at"),
        **texts,
    )


def _kind(table: Document, where: str, unmeasured: bool) -> str:
    """What a claim says of its figure."""
    kinds = [key for key in _KINDS if key in table]
    if kinds == ["published", "above"] or kinds == ["published", "below"]:
        kinds = ["published"]
    if len(kinds) != 1 and not (unmeasured and not kinds):
        said = " and ".join(kinds) or "nothing"
        raise SpillwayError(f"{where}: it says {said}; give one of {', '.join(_KINDS)}, or published with a bound.")
    kind = kinds[0] if kinds else ""
    relation = kind in _RELATIONS
    if relation != bool(table.get("along")):
        raise SpillwayError(
            f"{where}: along names the axis of a trend, a least_at or a most_at, and goes with them only."
        )
    if relation and isinstance(table.get("against"), list):
        raise SpillwayError(f"{where}: {kind} is of several points, and the best of several arms is of one.")
    if relation and "over" in table:
        raise SpillwayError(f"{where}: over divides one figure by another, and {kind} is of several; leave it out.")
    return kind


def _place(table: Document, where: str, plans: Sequence[str]) -> Place:
    for key in ("plan", "arm", "figure"):
        text(table.get(key, ""), f"{where}: {key}")
    if table["plan"] not in plans:
        raise SpillwayError(f"{where}: plan is {table['plan']!r}, no plan of the suite{nearest(table['plan'], plans)}")
    one_of(*FIGURES)(table["figure"], f"{where}: figure")
    return Place(table["plan"], table["arm"], _at(table, where), table["figure"], _against(table, where))


def _against(table: Document, where: str) -> tuple[str, ...]:
    """The arm that a figure is divided by, or the arms of which the best one is."""
    given = table.get("against", "")
    if not isinstance(given, list):
        name = text(given, f"{where}: against")
        names = [name] if name else []
    elif len(given) < 2 or len(set(map(str, given))) < len(given):
        raise SpillwayError(f"{where}: against is {given!r}; it takes an arm, or two or more arms to take the best of.")
    else:
        names = [text(each, f"{where}: against") for each in given]
    if table["arm"] in names:
        raise SpillwayError(f"{where}: against is {given!r}, the arm itself; name another.")
    figure = table["figure"]
    if len(names) > 1 and figure not in MORE_IS_BETTER | LESS_IS_BETTER:
        raise SpillwayError(f"{where}: against lists several arms, and of {figure} none is the best; name one arm.")
    return tuple(names)


def _over(table: Any, place: Place, where: str, plans: Sequence[str]) -> Place | None:
    """The figure to divide by: the claim's own but for what ``over`` says."""
    if table is None:
        return None
    if not isinstance(table, dict) or not table or any(key not in _OVER for key in table):
        raise SpillwayError(f"{where}: over is {table!r}; it takes a table with one or more of {', '.join(_OVER)}.")
    against = list(place.against) if len(place.against) > 1 else "".join(place.against)
    own = {"plan": place.plan, "arm": place.arm, "figure": place.figure, "against": against}
    return _place({**own, **table, "at": {**place.at, **_at(table, f"{where}: over")}}, f"{where}: over", plans)


def _among(table: Document, where: str) -> tuple[Any, ...]:
    """The points of a relation, where it is not of all."""
    if "among" not in table:
        return ()
    points = table["among"]
    if not isinstance(points, list) or len(points) < 2 or not table.get("along"):
        raise SpillwayError(f"{where}: among is {points!r}; it takes two or more points on the axis that along names.")
    return tuple(points)


def _between(value: Any, where: str) -> tuple[float, float] | None:
    if value is None:
        return None
    if not isinstance(value, list) or len(value) != 2:
        raise SpillwayError(f"{where}: between is {value!r}; it takes two numbers, such as [0.2, 0.5] or [1, inf].")
    low, high = (_number(each, f"{where}: between") for each in value)
    return low, high


def _maybe(table: Document, key: str, where: str) -> float | None:
    return None if key not in table else _number(table[key], f"{where}: {key}")


def _number(value: Any, where: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise SpillwayError(f"{where} is {value!r}; it takes a number.")
    try:
        return float(value)
    except OverflowError:
        raise SpillwayError(f"{where} is {value}; it takes a number below 1e308.") from None


def check_against(claims: Sequence[Claim], plans: Mapping[str, Plan], path: Path) -> None:
    """Raises SpillwayError for a claim about an arm or a point that its plan does not have: it could never be
    measured."""
    for claim in claims:
        for place in (one for each in claim.places for one in each.of_arms):
            if place.plan not in plans:
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
            for point in claim.among:
                if all(run.point.get(claim.along) != point for run in fits):
                    raise SpillwayError(f"{path}: “{claim.says}”: {place.plan} has no point {claim.along} = {point!r}.")
            if not fits or (len(fits) > 1 and not claim.along):
                count = "no run" if not fits else f"{len(fits)} runs"
                said = ", ".join(f"{key} = {value!r}" for key, value in place.at.items())
                raise SpillwayError(f"{path}: “{claim.says}”: {place.plan} has {count} of {place.arm} at {said}.")
