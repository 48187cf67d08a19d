"""Plans: an experiment as TOML, checked and resolved into arms that the native side can run.

A plan names a drive, the state it starts from, an engine with any of its options, and the phases of a load. Its
``[[arms]]`` run in turn, each with some keys of its own; with a ``[sweep]`` each runs at every point of it. Unknown
keys are refused, relations between keys are checked before anything is started, and the resolved form goes into the
run directory.
"""

import tomllib
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import tomli_w

from spillway import toml
from spillway.errors import SpillwayError
from spillway.plan.arm import Arm, slug
from spillway.plan.dotted import parse_override, put, shared_by, undotted, without
from spillway.plan.keys import (
    MOST_WHOLE,
    PLAN_KEYS,
)
from spillway.plan.layers import NOT_INHERITED, Layers, inherited
from spillway.plan.resolve import ArmReader, checked
from spillway.plan.sweep import check_overrides, sweep_points
from spillway.quantity import check_text

Document = dict[str, Any]


@dataclass(frozen=True)
class Plan:
    """A whole experiment."""

    path: Path
    name: str
    summary: str
    seeds: list[int]  # one for each repetition
    arms: list[Arm]  # of a sweep one for each arm and point
    preparations: list[Arm] = field(default_factory=list)  # run before, each for the state that it keeps
    answers: dict[str, str] = field(default_factory=dict)  # to findings of `spillway lint`, by pitfall
    without_effect: tuple[str, ...] = ()  # keys that --set has left without effect, each with why

    @property
    def swept(self) -> bool:
        """Whether the arms are points of a sweep."""
        return any(arm.point for arm in self.arms)

    def to_toml(self) -> str:
        """The resolved plan: what every arm has alike on top, and each arm with what is its own."""
        documents = [arm.document() for arm in self.arms]
        prepared = [arm.document() for arm in self.preparations]
        shared = shared_by([*documents, *prepared])
        # Preparations do not inherit these, so those of the arms stay on top whatever the preparations have.
        shared |= {key: value for key, value in shared_by(documents).items() if key in NOT_INHERITED}
        top = {
            "name": self.name,
            "summary": self.summary,
            "seeds": self.seeds,
            "repetitions": len(self.seeds),
            **shared,
        }
        if len(self.arms) > 1 or self.arms[0].name != self.name or prepared:
            own = zip(self.arms, documents, strict=True)
            top["arms"] = [
                {"name": arm.name, **arm.on_its_sweep(), **without(document, shared)} for arm, document in own
            ]
        if prepared:
            above = inherited(shared)
            top["prepare"] = [without(document, above) for document in prepared]
        if self.answers:
            top["lint"] = {"answers": self.answers}
        return tomli_w.dumps(top)


def load_plan(
    path: Path,
    overrides: tuple[str, ...] = (),
    only: tuple[str, ...] = (),
    properties: Document | None = None,
    scale: Callable[[Document], Document] | None = None,
    may_lack_effect: tuple[str, ...] = (),
) -> Plan:
    """Reads, checks and resolves a plan; ``overrides`` are ``key=value`` texts that win over plan and arms, ``only``
    names the arms that are kept (none: all). Of a sweep, an arm's name stands for all of its points. ``properties`` are
    YCSB's, by their names, and win over ``[ycsb]`` and phases of every arm and preparation; "properties" among them
    takes away what ``[ycsb]`` names. ``scale`` makes of the document as it is written the one that is meant
    (``spillway.suite``). ``may_lack_effect`` are those of the overrides that need no effect. Raises SpillwayError."""
    document = read_document(path) if scale is None else scale(read_document(path))
    where = str(path)
    check_text([where, *overrides, *only, *(f"{key}={value}" for key, value in (properties or {}).items())])
    given = {".".join(key): (key, value) for key, value in map(parse_override, overrides)}
    for name, (key, value) in given.items():
        if key[0] in PLAN_KEYS:
            put(document, key, value, f"--set {name}")
    once = {key: document.pop(key) for key in list(document) if key in PLAN_KEYS}
    plan_level = {key: checked(once, key, spec, where) for key, spec in PLAN_KEYS.items()}
    name = plan_level["name"] or path.stem
    set_by = {name: value for name, (key, value) in given.items() if key[0] not in PLAN_KEYS}
    sweep = document.pop("sweep", None)
    points = sweep_points(sweep, set_by, where)
    axes = list(points[0].values)
    check_overrides(axes, set_by, where)
    late = {f"--set {name}": given[name] for name in set_by if name not in axes}
    tables = _tables(document.pop("arms", None) or [{}], "arms", where)
    own_tables = _tables(document.pop("prepare", []), "prepare", where)
    document = undotted(document, where)
    reader = ArmReader(where, name, path.parent, document, tables, late, properties or {}, own_tables)
    arms = [arm for point in points for arm in reader.arms_at(point)]
    _check_arm_names(where, arms)
    for wanted in only:
        if wanted not in {name for arm in arms for name in (arm.name, arm.of)}:
            known = ", ".join(dict.fromkeys(arm.of or arm.name for arm in arms))
            raise SpillwayError(f"{where}: there is no arm {wanted!r}; by name there are: {known}.")
    preparations = [each for point in points for each in reader.preparations_at(point)]
    written = points if set_by.keys().isdisjoint(axes) else sweep_points(sweep, {}, where)
    layers = Layers(where, path.parent, document, tables, own_tables, points, written, late)
    layers.check_written()
    chosen = [not only or arm.name in only or arm.of in only for arm in arms]
    arms = [arm for arm, is_chosen in zip(arms, chosen, strict=True) if is_chosen]
    needed = _needed(arms, preparations)
    made = [not only or each.settings["kept.to"] in needed for each in preparations]
    asked = {".".join(parse_override(each)[0]) for each in overrides if each not in may_lack_effect}
    shown = {name: given[name] for name in set_by if name in asked and name not in axes}
    layers.check_given(shown, bool(properties), chosen, made)
    preparations = [each for each in _distinct(preparations, where) if not only or each.settings["kept.to"] in needed]
    answers = plan_level["lint"].get("answers", {})
    seeds = _seeds(plan_level, where)
    return Plan(path, name, plan_level["summary"], seeds, arms, preparations, answers, tuple(layers.lost()))


def _tables(tables: Any, what: str, where: str) -> list[Document]:
    if not isinstance(tables, list) or not all(isinstance(table, dict) for table in tables):
        raise SpillwayError(f"{where}: {what} is a list of tables: write [[{what}]] above each.")
    return tables


def _needed(arms: list[Arm], preparations: list[Arm]) -> set[str]:
    """The states that the arms start from, and those that these are made from."""
    needed = {arm.settings["kept.from"] for arm in arms}
    for each in reversed(preparations):  # a state is made after the one that it starts from
        if each.settings["kept.to"] in needed:
            needed.add(each.settings["kept.from"])
    return needed


def _distinct(preparations: list[Arm], where: str) -> list[Arm]:
    """One for each state: a preparation is the same at points that differ in nothing that it has."""
    by_state: dict[str, Arm] = {}
    for each in preparations:
        known = by_state.setdefault(each.settings["kept.to"], each)
        if known.document() != each.document():
            raise SpillwayError(
                f"{where}: prepare: {each.settings['kept.to']} would be made in several ways, at points that differ in "
                "what it is made of: give the [[prepare]] the key of that axis itself, or name the key in kept.to, as "
                'in "loaded-{drive.preset}".'
            )
    return list(by_state.values())


def read_document(path: Path) -> Document:
    """A plan as it is written. Raises SpillwayError."""
    try:
        return toml.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise SpillwayError(f"{path}: the plan cannot be read: {error.strerror}.") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise SpillwayError(f"{path}: this is not TOML: {error}.") from error


def _check_arm_names(where: str, arms: list[Arm]) -> None:
    slugs = [slug(arm.name) for arm in arms]
    for arm, name in zip(arms, slugs, strict=True):
        if not name:
            raise SpillwayError(
                f"{where}: the arm's name {arm.name!r} has no letter or digit to name its directory by."
            )
        if slugs.count(name) > 1:
            raise SpillwayError(f"{where}: two arms are called {arm.name!r} or nearly so; give each a name of its own.")


def _seeds(plan_level: Document, where: str) -> list[int]:
    """One seed for each repetition; where fewer are given, they go on counting from the last."""
    seeds: list[int] = plan_level["seeds"]
    repetitions = plan_level["repetitions"] or len(seeds)
    if repetitions < len(seeds):
        raise SpillwayError(
            f"{where}: repetitions is {repetitions} and there are {len(seeds)} seeds: give one for each at most."
        )
    last = seeds[-1] + repetitions - len(seeds)
    if last > MOST_WHOLE:
        raise SpillwayError(f"{where}: seeds goes on to {last} with {repetitions} repetitions: begin at a smaller one.")
    return seeds + list(range(seeds[-1] + 1, last + 1))
