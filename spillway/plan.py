"""Plans: an experiment as TOML, checked and resolved into arms that the native side can run.

A plan names a drive, the state it starts from, an engine with any of its options, and the phases of a load. Its
``[[arms]]`` run in turn, each with some keys of its own; with a ``[sweep]`` each runs at every point of it. Unknown
keys are refused, relations between keys are checked before anything is started, and the resolved form goes into the
run directory.
"""

import copy
import hashlib
import re
import tomllib
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import tomli_w

from spillway import kept, toml, ycsb
from spillway.dotted import flatten, key_parts, look_up, parse_override, put, shared_by, undotted, without
from spillway.errors import SpillwayError
from spillway.plan_checks import check_drive, check_load, check_measured, check_phase, check_prepared, check_until
from spillway.plan_effects import Said, why_idle, why_idle_in_phase
from spillway.plan_keys import (
    ARM_KEYS,
    ENGINE_SETTINGS,
    LOADERS,
    MOST_WHOLE,
    OF_SOME_ARRIVALS,
    OPEN_TABLES,
    PHASE_KEYS,
    PLAN_KEYS,
    PROCEDURES,
    Key,
    optional_size,
    size,
)
from spillway.plan_keys import (
    table as checked_table,
)
from spillway.plan_layers import NOT_INHERITED, Layers, arm_document, inherited, preparation_document
from spillway.preset import preset_dirs, preset_path, whole_drive
from spillway.quantity import check_text, nearest, parse_size
from spillway.sweep import Point, check_arm, check_overrides, sweep_points

Document = dict[str, Any]

PATHS = (
    *("drive.preset_file", "drive.estimate.preset_file", "drive.path", "initial.path", "data_directory"),
    "kept.directory",
)
# Keys that a plan may say above its arms though some of these have no use for them, in the order in which one decides
# about another.
OF_SOME_ARMS = (
    *("drive.estimate.capacity", "drive.estimate.preset", "drive.estimate.preset_file", "drive.path"),
    *("drive.rated_writes", "fs.size", "kept.takes", "cost.currency"),
)
FS_KEYS = ("discard", "placement", "page_cache_bytes", "writeback_bytes", "closed_dirty_bytes")


LONGEST_SLUG = 200  # of the 255 bytes that file systems take; repetitions append to it


@dataclass(frozen=True)
class Arm:
    """One way of running the plan: everything resolved, nothing left to a default."""

    name: str
    settings: dict[str, Any]  # ARM_KEYS by their dotted names
    drive_set: dict[str, str]
    engine_options: dict[str, str]
    phases: list[dict[str, Any]]
    of: str = ""  # of a run of a sweep: the arm's own name
    point: dict[str, Any] = field(default_factory=dict)  # and where on the sweep's axes it stands, by dotted key

    def request(self, directory: Path, seed: int) -> Document:
        """The contract's request of `run` (contract/README.md)."""
        get = self.settings
        return {
            "seed": seed,
            "directory": str(directory),
            "target": self._target(),
            "fs": {
                "size_bytes": get["fs.size"] or 0,
                **{name: get[f"fs.{name}"] for name in FS_KEYS},
            },
            "engine": self._engine(),
            "load": {
                **{name: get[f"load.{name}"] for name in ("key_bytes", "value_bytes", "compression_ratio", "num")},
                "seed": seed,
            },
            "phases": [_requested(phase) for phase in self.phases],
            "sample_interval_ms": get["sample_interval_ms"],
        }

    def _engine(self) -> Document:
        """The engine with its own settings: what a plan says of other engines stays at home."""
        get = self.settings
        engine: Document = {"name": get["engine.name"], "options": self.engine_options}
        for table in ENGINE_SETTINGS.get(get["engine.name"], ()):
            if table == "policy":
                engine[table] = get["engine.policy"]
            elif table != "adoc" or get["engine.policy"] == "adoc":
                own = _settings_of(table)
                engine[table] = {own[key]: get[key] for key in own if get[key] is not None}
        return engine

    def _target(self) -> Document:
        get = self.settings
        if get["drive.kind"] == "directory":
            return {"kind": "directory"} | ({"estimate": self._estimate()} if self.has_estimate() else {})
        return {
            "kind": "emulated",
            "drive": {
                "preset": get["drive.preset"],
                "preset_file": get["drive.preset_file"],
                "preset_dirs": [str(directory.absolute()) for directory in preset_dirs()],
                "set": self.drive_set,
            },
            "initial": self._initial(),
            "time_scale": get["drive.time_scale"],
            "pacing": get["drive.pacing"],
        }

    def _initial(self) -> Document:
        names = ("kind", "fill", "compression_ratio", "warmup_capacities", "path")
        own = {name: self.settings[f"initial.{name}"] for name in names}
        if self.settings["initial.partition"] == "as_is":
            return own
        return own | {"partition": self.settings["initial.partition"], "partition_bytes": self.settings["fs.size"] or 0}

    def has_estimate(self) -> bool:
        """A drive model watches what a plain directory's run writes."""
        return bool(self.settings["drive.estimate.preset"] or self.settings["drive.estimate.preset_file"])

    def _estimate(self) -> Document:
        get = self.settings
        capacity = get["drive.estimate.capacity"]
        return {
            "drive": {
                "preset": get["drive.estimate.preset"],
                "preset_file": get["drive.estimate.preset_file"],
                "preset_dirs": [str(directory.absolute()) for directory in preset_dirs()],
                "set": {} if capacity is None else {"capacity.capacity_bytes": str(capacity)},
            },
            "initial": self._initial(),
        }

    def capacity_bytes(self) -> int | None:
        """The drive's logical capacity, where the plan or its preset states one."""
        if self.settings["drive.kind"] == "directory":
            return None
        if "capacity.capacity_bytes" in self.drive_set:
            return parse_size(self.drive_set["capacity.capacity_bytes"], "drive.capacity")
        return self.preset_capacity_bytes()

    def preset_capacity_bytes(self) -> int | None:
        """What the preset alone says, to tell whether this arm's drive is a scaled one."""
        return whole_drive(self.preset_path(), self.drive_set)[0]

    def preset_physical_bytes(self) -> float | None:
        """The flash of a drive of the preset's own capacity, but for what whole erase blocks add; None: not known."""
        return whole_drive(self.preset_path(), self.drive_set)[1]

    def estimate_whole_drive(self) -> tuple[int | None, float | None]:
        """The same of the estimate's drive: its preset's own capacity, and the flash of that."""
        get = self.settings
        return whole_drive(preset_path(get["drive.estimate.preset"], get["drive.estimate.preset_file"]), {})

    def preset_path(self) -> Path | None:
        """The preset's file, for the manifest."""
        return preset_path(self.settings["drive.preset"], self.settings["drive.preset_file"])

    def on_its_sweep(self) -> Document:
        """Which arm this is and at which point of the sweep; empty without one."""
        return {"of": self.of, "point": dict(self.point)} if self.point else {}

    def document(self) -> Document:
        """The arm as a nested document, for plan.toml."""
        nested: Document = {}
        for key, value in self.settings.items():
            if value not in (None, ""):
                put(nested, key.split("."), value, key)
        nested["drive"]["set"] = dict(self.drive_set)
        nested["engine"]["options"] = dict(self.engine_options)
        nested["phases"] = [{k: v for k, v in phase.items() if v is not None} for phase in self.phases]
        return nested


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


def _settings_of(table: str) -> dict[str, str]:
    """The keys of ``[engine.TABLE]``, and their names in a request, where a size's ends in its unit."""
    keys = [key for key in ARM_KEYS if key.startswith(f"engine.{table}.")]
    sizes = [key for key in keys if ARM_KEYS[key].check in (size, optional_size)]
    return {key: key.rpartition(".")[2] + ("_bytes" if key in sizes else "") for key in keys}


def by_keys_of_a_plan(message: str, target: str) -> str:
    """What the native side says of a request, with a plan's keys where the request has other names for them.
    ``target``: the request's kind, drive.kind of a plan."""
    capacity = "drive.capacity" if target == "emulated" else "drive.estimate.capacity"
    # "--set: " is how the native side calls all of a drive that comes with a request.
    message = re.sub(r"^--set: capacity\.capacity_bytes\b", capacity, message)
    message = re.sub(r"^--set: ", "drive.set: ", message)
    message = message.replace("raise capacity.capacity_bytes", f"raise {capacity}")
    for table in {table for tables in ENGINE_SETTINGS.values() for table in tables} - {"policy"}:
        if f"engine.{table}." in message:
            for key, name in _settings_of(table).items():
                message = re.sub(rf"\b{name}\b", key.rpartition(".")[2], message)
    return message.replace("fs.size_bytes", "fs.size")


def load_plan(
    path: Path,
    overrides: tuple[str, ...] = (),
    only: tuple[str, ...] = (),
    properties: Document | None = None,
    scale: Callable[[Document], Document] | None = None,
    may_be_idle: tuple[str, ...] = (),
) -> Plan:
    """Reads, checks and resolves a plan; ``overrides`` are ``key=value`` texts that win over plan and arms, ``only``
    names the arms that are kept (none: all). Of a sweep, an arm's name stands for all of its points. ``properties`` are
    YCSB's, by their names, and win over ``[ycsb]`` and phases of every arm and preparation; "properties" among them
    takes away what ``[ycsb]`` names. ``scale`` makes of the document as it is written the one that is meant
    (``spillway.suite``). ``may_be_idle`` are those of the overrides that need no effect."""
    document = read_document(path) if scale is None else scale(read_document(path))
    where = str(path)
    check_text([where, *overrides, *only, *(f"{key}={value}" for key, value in (properties or {}).items())])
    given = {".".join(key): (key, value) for key, value in map(parse_override, overrides)}
    for name, (key, value) in given.items():
        if key[0] in PLAN_KEYS:
            put(document, key, value, f"--set {name}")
    once = {key: document.pop(key) for key in list(document) if key in PLAN_KEYS}
    plan_level = {key: _checked(once, key, spec, where) for key, spec in PLAN_KEYS.items()}
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
    reader = _ArmReader(where, name, path.parent, document, tables, late, properties or {}, own_tables)
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
    asked = {".".join(parse_override(each)[0]) for each in overrides if each not in may_be_idle}
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


@dataclass(frozen=True)
class _ArmReader:
    """Makes the arms of a plan at a point of its sweep from what the plan says of all of them and of each."""

    where: str
    plan_name: str
    plan_dir: Path
    shared: Document
    tables: list[Document]
    overrides: dict[str, tuple[list[str], Any]]  # by what asked for them
    properties: Document  # of YCSB, from the command line
    own_tables: list[Document] = field(default_factory=list)  # of the preparations

    def arms_at(self, point: Point) -> list[Arm]:
        return [self._arm(index, dict(table), point) for index, table in enumerate(self.tables)]

    def preparations_at(self, point: Point) -> list[Arm]:
        return [self._preparation(index, table, point) for index, table in enumerate(self.own_tables)]

    def _preparation(self, index: int, own: Document, point: Point) -> Arm:
        """What it says itself wins over the point: it may be the same at several."""
        label = f"{self.where}: prepare[{index}]: "
        own = undotted(own, label.removesuffix(": "))
        merged = preparation_document(self.shared, own, point.values, self.overrides, label)
        if not checked_table(merged.get("kept", {}), f"{label}kept").get("to"):
            raise SpillwayError(f"{label}kept.to is missing: name the state that it is there for.")
        properties = self._asked(merged, label)
        if "ycsb" not in own and not _has_ycsb(merged.get("phases")):
            merged.pop("ycsb", None)  # inherited for the others
            properties = {}
        arm = _resolve_arm("", merged, label, self.plan_dir, properties, measures=False)
        return replace(arm, name=arm.settings["kept.to"], phases=[ycsb.only_loading(phase) for phase in arm.phases])

    def _arm(self, index: int, own: Document, point: Point) -> Arm:
        alone = len(self.tables) == 1
        label = f"{self.where}: " if alone else f"{self.where}: arms[{index}]: "
        unnamed = alone and "name" not in own
        name = own.pop("name", self.plan_name if alone else None)
        if not isinstance(name, str) or not name:
            raise SpillwayError(f"{label}name is missing: several arms are told apart by their names.")
        of, recorded = own.pop("of", ""), own.pop("point", {})
        if bool(of) != bool(recorded) or not isinstance(of, str) or not isinstance(recorded, dict):
            raise SpillwayError(f"{label}of and point go together: the arm and the point that a run of a sweep has.")
        if recorded and point.values:
            raise SpillwayError(f"{label}point: this is one point of a sweep already; leave out [sweep] or the point.")
        check_arm(list(point.values), own, label)
        values = point.values or {key: self._overridden(key, value) for key, value in recorded.items()}
        if values:
            label += f"at {', '.join(f'{key} = {value!r}' for key, value in values.items())}: "
        merged = arm_document(self.shared, own, values, self.overrides, label)
        properties = self._asked(merged, label)
        for key, value in values.items():
            if look_up(merged, key_parts(key)) != value:
                raise SpillwayError(f"{label}{key} is set by another axis or by --set too: leave one of them out.")
        if point.values:
            of, name = name, point.name if unnamed else f"{name}, {point.name}"
        arm = _resolve_arm(name, merged, label, self.plan_dir, properties)
        return replace(arm, of=of, point=values)

    def _asked(self, merged: Document, label: str) -> dict[str, str]:
        """The properties of the command line, which also go into ``[ycsb]``."""
        if self.properties:
            own = checked_table(merged.get("ycsb", {}), f"{label}ycsb")
            merged["ycsb"] = own | self.properties
        return {key: text for key, text in self.properties.items() if key != "properties"}

    def _overridden(self, key: str, value: Any) -> Any:
        return self.overrides.get(f"--set {key}", ([], value))[1]


def read_document(path: Path) -> Document:
    """A plan as it is written. Raises SpillwayError."""
    try:
        return toml.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise SpillwayError(f"{path}: the plan cannot be read: {error.strerror}.") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise SpillwayError(f"{path}: this is not TOML: {error}.") from error


def _checked(document: Document, name: str, key: Key, where: str) -> Any:
    return key.check(document.get(name, copy.copy(key.default)), f"{where}: {name}")


def _has_ycsb(phases: Any) -> bool:
    phases = phases if isinstance(phases, list) else []
    return any(isinstance(phase, dict) and phase.get("workload") in (ycsb.LOAD, ycsb.RUN) for phase in phases)


def _resolve_arm(
    name: str, document: Document, label: str, plan_dir: Path, asked: dict[str, str], *, measures: bool = True
) -> Arm:
    phases_given = document.pop("phases", None)
    flat = flatten(document)
    open_tables = {table: flat.pop(table, {}) for table in OPEN_TABLES}
    known = [*ARM_KEYS, *OPEN_TABLES, *PLAN_KEYS, "phases", "arms"]
    for key in flat:
        if key not in ARM_KEYS:
            raise SpillwayError(f"{label}{key} is not a key of a plan{nearest(key, known)}")
    settings = {key: _checked(flat, key, spec, label.removesuffix(": ")) for key, spec in ARM_KEYS.items()}
    for key in PATHS:
        if settings[key]:
            settings[key] = str((plan_dir / settings[key]).absolute())
    _follow_procedure(settings, flat, label)
    _leave_to_others(settings)
    drive_set = _texts(open_tables["drive.set"], f"{label}drive.set")
    if settings["drive.capacity"] is not None:
        stated = drive_set.setdefault("capacity.capacity_bytes", str(settings["drive.capacity"]))
        if parse_size(stated, f"{label}drive.set.capacity.capacity_bytes") != settings["drive.capacity"]:
            raise SpillwayError(f"{label}drive.capacity and drive.set.capacity.capacity_bytes are one thing: give one.")
    settings["drive.capacity"] = None  # from here on it is one of the preset's keys
    options = _texts(open_tables["engine.options"], f"{label}engine.options")
    settings |= kept.named(settings, options, label)
    properties = ycsb.layered(open_tables["ycsb"], f"{label}ycsb", plan_dir)
    goes_on = kept.goes_on(settings)
    phases = ycsb.complete_phases(_phases(phases_given, label, goes_on, plan_dir), properties, asked, label, goes_on)
    if measures:
        check_measured(phases, label)
    else:
        check_prepared(phases, label)
    arm = Arm(name, settings, drive_set, options, phases)
    kept.check(settings, arm.has_estimate(), label)
    check_drive(arm, label)
    check_until(arm, label)
    check_load(arm, label)
    return arm


def _follow_procedure(settings: dict[str, Any], given: Document, label: str) -> None:
    """Sets what ``initial.procedure`` stands for; what it says may not be given otherwise."""
    procedure = settings["initial.procedure"]
    if procedure is None:
        return
    kind, partition = PROCEDURES[procedure]
    for key, value in (("initial.kind", kind), ("initial.partition", partition)):
        if key in given and settings[key] != value:
            raise SpillwayError(f'{label}initial.procedure = "{procedure}" means {key} = "{value}": give one of them.')
        settings[key] = value


def _leave_to_others(settings: dict[str, Any]) -> None:
    """Sets back to its default what is for other arms, and what no check and no report of this one is to come upon."""
    for key in OF_SOME_ARMS:
        if why_idle(key, Said(settings)) is not None:
            settings[key] = copy.copy(ARM_KEYS[key].default)


def _texts(table: Any, where: str) -> dict[str, str]:
    """An open table with its values spelled as the native side reads them."""
    if not isinstance(table, dict):
        raise SpillwayError(f"{where} is {table!r}; it takes a table of keys and values.")
    texts: dict[str, str] = {}
    for key, value in table.items():
        if isinstance(value, dict):
            texts |= {f"{key}.{inner}": text for inner, text in _texts(value, f"{where}.{key}").items()}
        elif isinstance(value, bool):
            texts[key] = "true" if value else "false"
        elif isinstance(value, str | int | float | list):
            texts[key] = str(value)
        else:
            raise SpillwayError(f"{where}.{key} is {value!r}; it takes a text, a number or true or false.")
    return texts


def _requested(phase: dict[str, Any]) -> Document:
    """A phase as the contract has it: how operations arrive is a table, and that it waits for steadiness is ours."""
    own = {key: value for key, value in phase.items() if key not in ("arrivals", "until", *OF_SOME_ARRIVALS)}
    if phase["arrivals"] is None:
        return own
    named = {key.removeprefix("arrivals_"): phase[key] for key in OF_SOME_ARRIVALS if phase[key] is not None}
    return own | {"arrivals": {"process": phase["arrivals"], **named}}


def _phases(given: Any, label: str, goes_on: bool, plan_dir: Path) -> list[dict[str, Any]]:
    if not isinstance(given, list) or not given or not all(isinstance(phase, dict) for phase in given):
        raise SpillwayError(f"{label}phases are missing: write at least one [[phases]] with a workload.")
    phases = []
    for index, phase in enumerate(given):
        where = f"{label}phases[{index}]"
        for key in phase:
            if key not in PHASE_KEYS:
                raise SpillwayError(f"{where}: {key} is not a key of a phase{nearest(key, PHASE_KEYS)}")
        resolved = {key: _checked(phase, key, spec, where) for key, spec in PHASE_KEYS.items()}
        resolved["name"] = resolved["name"] or resolved["workload"]
        if resolved["arrivals_file"]:
            resolved["arrivals_file"] = str((plan_dir / resolved["arrivals_file"]).absolute())
        idle = [key for key in PHASE_KEYS if why_idle_in_phase(key, resolved) is not None]
        resolved |= {key: copy.copy(PHASE_KEYS[key].default) for key in idle}  # of other points, or refused with those
        check_phase(resolved, where)
        phases.append(resolved | {"given": tuple(phase)})
    names = [phase["name"] for phase in phases]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise SpillwayError(f"{label}phases: two are called {twice!r}; give each a name of its own.")
    if phases[0]["workload"] not in LOADERS and not goes_on:
        raise SpillwayError(
            f"{label}phases[0]: {phases[0]['workload']} would find an empty store; put a fill phase "
            "(with measured = false if it is only the load) before it."
        )
    return phases


def _check_arm_names(where: str, arms: list[Arm]) -> None:
    slugs = [slug(arm.name) for arm in arms]
    for arm, name in zip(arms, slugs, strict=True):
        if not name:
            raise SpillwayError(
                f"{where}: the arm's name {arm.name!r} has no letter or digit to name its directory by."
            )
        if slugs.count(name) > 1:
            raise SpillwayError(f"{where}: two arms are called {arm.name!r} or nearly so; give each a name of its own.")


def slug(name: str) -> str:
    """A name as a directory's name; a long one is cut, and told from others by a digest."""
    words = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")
    if len(words) <= LONGEST_SLUG:
        return words
    digest = hashlib.sha256(name.encode()).hexdigest()[:12]
    return f"{words[: LONGEST_SLUG - len(digest)].strip('-')}-{digest}"


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
