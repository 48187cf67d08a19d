"""Reads a suite: ``suite.toml``, the plans next to it, and ``claims.toml`` with what was published."""

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from pathlib import Path
from typing import Any

from spillway import toml
from spillway.errors import SpillwayError
from spillway.plan.document import Plan, load_plan
from spillway.plan.dotted import NoElement, parse_override
from spillway.plan.effects import NoEffect, WithoutEffect
from spillway.plan.layers import keys_given
from spillway.quantity import nearest
from spillway.suite.claims import Claim, check_against, read_claims
from spillway.suite.laws import Scaled, scaled_of
from spillway.suite.scale import Scale, TooSmall, checked_keys, factor_in_words, parse_factor

Document = dict[str, Any]

KEYS = ("name", "title", "summary", "plans", "over_time", "may_fill", "scale")
SCALE_KEYS = ("factor", "keys", "plans")
KEPT = "kept"  # in a suite's directory: states that its plans keep
# Entries of such a directory that are no run directories of plans.
OTHERS = (KEPT, "suite.json", "report.html", "claims.csv", "laws.json")
PLANS = "plans"  # where suites lie, in a checkout and from where the command is called


@dataclass(frozen=True)
class SuitePlan:
    """A plan of a suite: as it is run, and as it stands in the file, with its points in the original's sizes."""

    name: str
    plan: Plan
    original: Plan
    factor: Fraction = Fraction(1)  # between the two
    over_time: bool = False  # whether the report draws its runs over time
    may_fill: bool = False  # whether a run that fills its drive is a result
    chosen: bool = True  # to be run; one that is not is reported where its run is done
    settings: tuple[str, ...] = ()  # keys that the command line overrides

    def point_of(self) -> dict[str, dict[str, Any]]:
        """The point of each run in the original's sizes, by the run's name."""
        pairs = zip(self.plan.arms, self.original.arms, strict=True)
        return {run.name: dict(original.point) for run, original in pairs}

    def loads_of(self, summaries: Mapping[str, Document], directory: Path) -> dict[str, Scaled]:
        """The loads to simulate for these runs, by the runs' names. ``summaries``: their objects of summary.json;
        ``directory``: the plan's run directory. Raises SpillwayError where samples are damaged."""
        found = {}
        for run, original in zip(self.plan.arms, self.original.arms, strict=True):
            if run.name in summaries and (loads := scaled_of(run, original, summaries[run.name], directory)):
                found[run.name] = loads
        return found


@dataclass(frozen=True)
class Suite:
    """A suite, checked, with every plan of it resolved."""

    path: Path  # its directory
    name: str
    title: str
    summary: str
    scale: Scale  # of the plans that have no factor of their own
    plans: list[SuitePlan]
    statements: dict[str, str]  # what a claim says, by its name
    claims: list[Claim]
    unread: dict[str, str] = field(default_factory=dict)  # plans that are not chosen and cannot be read, and why

    @property
    def chosen(self) -> list[SuitePlan]:
        """The plans that are to be run."""
        return [each for each in self.plans if each.chosen]

    def own_factors(self) -> dict[str, str]:
        """The factors of plans that have one of their own, by the plans' names."""
        return {each.name: factor_in_words(each.factor) for each in self.plans if each.factor != self.scale.factor}

    @property
    def runs(self) -> int:
        """The number of runs of the chosen plans."""
        return sum(len(each.plan.arms) * len(each.plan.seeds) for each in self.chosen)


def find_suite(name: str) -> Path:
    """The directory of a suite by its path, or by its name below plans/. Raises SpillwayError."""
    checkout = Path(__file__).parents[2] / PLANS
    for place in (Path(name), Path(PLANS) / name, checkout / name):
        if (place / "suite.toml").is_file():
            return place
    if Path(name).is_dir():
        raise SpillwayError(f"{name}: there is no suite.toml in it; a suite is a directory of plans with one.")
    known = sorted({path.parent.name for base in (Path(PLANS), checkout) for path in base.glob("*/suite.toml")})
    there = f"; there are: {', '.join(known)}" if known else ""
    raise SpillwayError(f"{name}: there is no such suite{there}{nearest(name, known)}")


def load_suite(
    directory: Path, scale: str | None = None, only: tuple[str, ...] = (), settings: tuple[str, ...] = ()
) -> Suite:
    """Reads the suite in ``directory`` and resolves its plans; ``scale`` replaces its factor, ``only`` names the plans
    that are chosen (none: all), ``settings`` override keys of these, after the scale. Raises SpillwayError, but not for
    what is wrong in a plan that is not chosen."""
    path = directory / "suite.toml"
    document = _read(path)
    for key in document:
        if key not in KEYS:
            raise SpillwayError(f"{path}: {key} is not a key of a suite{nearest(key, KEYS)}")
    names = _names(document.get("plans"), path)
    chosen = _chosen(names, only, path)
    how = _scale(document.get("scale", {}), scale, path)
    own = _plans_own(document.get("scale", {}), names, path) if scale is None else {}
    timed, filling = (
        _names(document[key], path, key, names) if key in document else [] for key in ("over_time", "may_fill")
    )
    plans: list[SuitePlan] = []
    unread: dict[str, str] = {}
    idle: list[Mapping[str, Sequence[NoEffect]]] = []  # of each chosen plan
    for name in names:
        scaled = replace(how, factor=own.get(name, how.factor))
        try:
            if name in chosen:
                plan, without_effect = _plan_with(directory, name, scaled, settings)
                idle.append(without_effect)
            else:
                plan = _plan(directory, name, scaled)
        except SpillwayError as error:
            if name in chosen:
                raise
            unread[name] = str(error)
            continue
        marked = replace(plan, over_time=name in timed, may_fill=name in filling)
        plans.append(replace(marked, chosen=name in chosen))
    if everywhere := {key: [why for each in idle for why in each[key]] for key in _in_all(idle)}:
        raise WithoutEffect(everywhere)
    statements, claims = read_claims(directory / "claims.toml", names)
    # With settings a plan may have left the points that were published.
    as_published = {each.name: each.original for each in plans if not each.settings}
    check_against(claims, as_published, directory / "claims.toml")
    texts = {key: _text(document.get(key, ""), f"{path}: {key}") for key in ("name", "title", "summary")}
    name = texts["name"] or directory.resolve().name
    return Suite(directory, name, texts["title"] or name, texts["summary"], how, plans, statements, claims, unread)


def factor_of(directory: Path) -> Fraction:
    """The factor that the suite in ``directory`` names itself. Raises SpillwayError."""
    path = directory / "suite.toml"
    return _scale(_read(path).get("scale", {}), None, path).factor


def load_scaled(
    path: Path,
    settings: tuple[str, ...],
    only: tuple[str, ...],
    scale: str | None = None,
    properties: Document | None = None,
) -> Plan:
    """A plan on its own: one that a suite.toml in its directory names is scaled as that says, or by ``scale``, any
    other is taken as it is. The other arguments are those of ``load_plan``. Raises SpillwayError."""
    suite = path.parent / "suite.toml"
    document = _read(suite) if suite.is_file() else {}
    if not document or path.stem not in _names(document.get("plans"), suite):
        if scale not in (None, "1"):
            raise SpillwayError(f"--scale {scale}: {path} is of no suite, so nothing says which keys to multiply.")
        return load_plan(path, settings, only, properties)
    table = document.get("scale", {})
    how = _scale(table, scale, suite)
    if scale is None:
        how = replace(how, factor=_plans_own(table, document["plans"], suite).get(path.stem, how.factor))
    return _scaled(path, settings, only, how, properties)


def _scaled(
    path: Path,
    settings: tuple[str, ...],
    only: tuple[str, ...],
    scale: Scale,
    properties: Document | None = None,
    may_lack_effect: tuple[str, ...] = (),
) -> Plan:
    """A plan with its sizes scaled. Raises TooSmall where it is right but for that, else SpillwayError."""

    def scaled(document: Document) -> Document:
        return scale.applied(document, str(path))

    try:
        plan = load_plan(path, settings, only, properties, scaled, may_lack_effect)
    except (WithoutEffect, NoElement):
        raise
    except SpillwayError as error:
        if scale.factor == 1 or not _is_right(path, settings, only, scale, properties):
            raise
        raise TooSmall(path.stem, scale.factor, str(error).removeprefix(f"{path}: ")) from error
    if scale.factor == 1:
        return plan
    return replace(plan, summary=f"{plan.summary or plan.name} (scaled by {factor_in_words(scale.factor)})")


def _is_right(
    path: Path, settings: tuple[str, ...], only: tuple[str, ...], scale: Scale, properties: Document | None
) -> bool:
    """Whether a plan loads at the original's sizes, and has none that cannot be scaled. Settings that are for other
    plans are wrong at no size."""

    def unscaled(document: Document) -> Document:
        scale.applied(document, str(path))
        return document

    try:
        load_plan(path, settings, only, properties, unscaled)
    except WithoutEffect:
        return True
    except NoElement as error:
        others = tuple(each for each in settings if not _is_of(each, error))
        return len(others) < len(settings) and _is_right(path, others, only, scale, properties)
    except SpillwayError:
        return False
    return True


def _is_of(setting: str, error: NoElement) -> bool:
    """Whether it is this setting that names an element which is not there."""
    return f"--set {'.'.join(parse_override(setting)[0])}" == error.where


def _plan(
    directory: Path, name: str, scale: Scale, settings: tuple[str, ...] = (), may_lack_effect: tuple[str, ...] = ()
) -> SuitePlan:
    """A plan with its sizes scaled. Each key of ``settings`` has an effect, but those that ``may_lack_effect``."""
    path = directory / f"{name}.toml"
    plan = _scaled(path, settings, (), scale, may_lack_effect=may_lack_effect)
    original = plan if scale.factor == 1 else load_plan(path, settings, may_lack_effect=may_lack_effect)
    return SuitePlan(name, plan, original, scale.factor, settings=settings)


def _plan_with(
    directory: Path, name: str, scale: Scale, settings: tuple[str, ...]
) -> tuple[SuitePlan, Mapping[str, Sequence[NoEffect]]]:
    """A plan with those of the ``settings`` that have an effect in it, and why keys of the others have none: they are
    for other plans of the suite."""
    idle: dict[str, Sequence[NoEffect]] = {}
    while True:
        try:
            return _plan(directory, name, scale, settings), idle
        except NoElement as error:
            absent = [each for each in settings if _is_of(each, error)]
            if not absent:
                raise
            why = NoEffect(
                "plans that have such a phase", str(error).removeprefix(f"{error.where}: ").removesuffix(".")
            )
            idle |= {key: [why] for each in absent for key in keys_given(each)}
            settings = tuple(each for each in settings if each not in absent)
        except WithoutEffect as error:
            idle |= error.idle
            break
    given = {setting: set(keys_given(setting)) for setting in settings}
    used = tuple(setting for setting in settings if given[setting] - idle.keys() or not given[setting])
    in_part = tuple(setting for setting in used if given[setting] & idle.keys())
    return _plan(directory, name, scale, used, in_part), idle


def _in_all(tables: Sequence[Mapping[str, Any]]) -> list[str]:
    """The keys that all the tables have."""
    return [key for key in tables[0] if all(key in table for table in tables)] if tables else []


def _read(path: Path) -> Document:
    try:
        return toml.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise SpillwayError(f"{path}: the suite cannot be read: {error.strerror}.") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise SpillwayError(f"{path}: this is not TOML: {error}.") from error


def _text(value: Any, what: str) -> str:
    if not isinstance(value, str):
        raise SpillwayError(f"{what} is {value!r}; it takes a text in quotes.")
    return value


def _names(value: Any, path: Path, key: str = "plans", known: Sequence[str] | None = None) -> list[str]:
    """A list of plans that are there, and among the ``known`` ones."""
    if not isinstance(value, list) or not value or not all(isinstance(name, str) and name for name in value):
        raise SpillwayError(f'{path}: {key} is {value!r}; it takes a list of the plans\' names, such as ["fillseq"].')
    for name in value:
        if known is not None and name not in known:
            raise SpillwayError(f"{path}: {key} names {name!r}, no plan of the suite{nearest(name, known)}")
        if Path(name).name != name or name.startswith("."):
            raise SpillwayError(f"{path}: {key} names {name!r}; a plan lies beside suite.toml, under no hidden name.")
        if name in OTHERS:
            raise SpillwayError(
                f"{path}: {key} names {name!r}, which a suite's directory has for itself; rename the plan."
            )
        if not (path.parent / f"{name}.toml").is_file():
            raise SpillwayError(f"{path}: {key} names {name!r}, and there is no {path.parent / name}.toml.")
        if value.count(name) > 1:
            raise SpillwayError(f"{path}: {key} names {name!r} twice.")
    return list(value)


def _chosen(names: list[str], only: tuple[str, ...], path: Path) -> list[str]:
    for name in only:
        if name not in names:
            raise SpillwayError(f"{path}: there is no plan {name!r}; by name there are: {', '.join(names)}.")
    return [name for name in names if not only or name in only]


def _scale(table: Any, given: str | None, path: Path) -> Scale:
    if not isinstance(table, dict):
        raise SpillwayError(f"{path}: scale is {table!r}; it takes a table with factor and keys.")
    for key in table:
        if key not in SCALE_KEYS:
            raise SpillwayError(f"{path}: scale.{key} is not a key of a scale{nearest(key, SCALE_KEYS)}")
    factor = parse_factor(table.get("factor", 1), f"{path}: scale.factor")
    if given is not None:
        factor = parse_factor(given, "--scale")
    keys = checked_keys(table.get("keys", []), f"{path}: scale.keys")
    if factor != 1 and not keys:
        raise SpillwayError(
            f"{path}: scale.keys is missing: name what the factor {factor_in_words(Fraction(factor))} multiplies."
        )
    return Scale(factor, keys)


def _plans_own(table: Document, names: Sequence[str], path: Path) -> dict[str, Fraction]:
    """The factors of plans that have one of their own, by the plans' names."""
    own = table.get("plans", {})
    if not isinstance(own, dict):
        raise SpillwayError(f'{path}: scale.plans is {own!r}; it takes a table such as {{ {names[0]} = "1/16" }}.')
    for name in own:
        if name not in names:
            raise SpillwayError(f"{path}: scale.plans names {name!r}, no plan of the suite{nearest(name, names)}")
    if own and not table.get("keys"):
        raise SpillwayError(f"{path}: scale.keys is missing: name what the factors under scale.plans multiply.")
    return {name: parse_factor(factor, f"{path}: scale.plans.{name}") for name, factor in own.items()}
