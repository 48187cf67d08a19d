"""Makes the arms of a plan at each point of its sweep: defaults taken, keys checked, procedures followed."""

import copy
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from spillway.errors import SpillwayError
from spillway.plan import kept, ycsb
from spillway.plan.arm import Arm
from spillway.plan.checks import (
    check_drive,
    check_load,
    check_measured,
    check_phase,
    check_prepared,
    check_rates,
    check_until,
)
from spillway.plan.dotted import flatten, key_parts, look_up, undotted
from spillway.plan.effects import RunKeys, why_without_effect, why_without_effect_in_phase
from spillway.plan.keys import (
    ARM_KEYS,
    LOADERS,
    OPEN_TABLES,
    PHASE_KEYS,
    PLAN_KEYS,
    PROCEDURES,
    Key,
)
from spillway.plan.keys import (
    table as checked_table,
)
from spillway.plan.layers import arm_document, preparation_document
from spillway.plan.sweep import Point, check_arm
from spillway.quantity import nearest, parse_size

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

Document = dict[str, Any]


@dataclass(frozen=True)
class ArmReader:
    """Makes the arms of a plan at a point of its sweep from what the plan says of all of them and of each."""

    where: str
    plan_name: str
    plan_dir: Path
    shared: Document
    tables: list[Document]
    overrides: dict[str, tuple[list[str], Any]]  # by the option that gave them
    properties: Document  # of YCSB, from the command line
    own_tables: list[Document] = field(default_factory=list)  # of the preparations

    def arms_at(self, point: Point) -> list[Arm]:
        """Every arm at ``point``, in the plan's order. Raises SpillwayError."""
        return [self._arm(index, dict(table), point) for index, table in enumerate(self.tables)]

    def preparations_at(self, point: Point) -> list[Arm]:
        """Every preparation at ``point``, in the plan's order. Raises SpillwayError."""
        return [self._preparation(index, table, point) for index, table in enumerate(self.own_tables)]

    def _preparation(self, index: int, own: Document, point: Point) -> Arm:
        """What it says itself wins over the point: it may be the same at several."""
        label = f"{self.where}: prepare[{index}]: "
        own = undotted(own, label.removesuffix(": "))
        merged = preparation_document(self.shared, own, point.values, self.overrides, label)
        if not checked_table(merged.get("kept", {}), f"{label}kept").get("to"):
            raise SpillwayError(f"{label}kept.to is missing: name the state that it is there for.")
        properties = self._properties_of(merged, label)
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
        properties = self._properties_of(merged, label)
        for key, value in values.items():
            if look_up(merged, key_parts(key)) != value:
                raise SpillwayError(f"{label}{key} is set by another axis or by --set too: leave one of them out.")
        if point.values:
            of, name = name, point.name if unnamed else f"{name}, {point.name}"
        arm = _resolve_arm(name, merged, label, self.plan_dir, properties)
        return replace(arm, of=of, point=values)

    def _properties_of(self, merged: Document, label: str) -> dict[str, str]:
        """The properties of the command line, which also go into ``[ycsb]``."""
        if self.properties:
            own = checked_table(merged.get("ycsb", {}), f"{label}ycsb")
            merged["ycsb"] = own | self.properties
        return {key: text for key, text in self.properties.items() if key != "properties"}

    def _overridden(self, key: str, value: Any) -> Any:
        return self.overrides.get(f"--set {key}", ([], value))[1]


def checked(document: Document, name: str, key: Key, where: str) -> Any:
    """The value of ``name`` in ``document`` or its default, as ``key`` takes it. Raises SpillwayError."""
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
    settings = {key: checked(flat, key, spec, label.removesuffix(": ")) for key, spec in ARM_KEYS.items()}
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
    continues_database = kept.continues_database(settings)
    phases = ycsb.complete_phases(
        _phases(phases_given, label, continues_database, plan_dir), properties, asked, label, continues_database
    )
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
        if why_without_effect(key, RunKeys(settings)) is not None:
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


def _phases(given: Any, label: str, continues_database: bool, plan_dir: Path) -> list[dict[str, Any]]:
    if not isinstance(given, list) or not given or not all(isinstance(phase, dict) for phase in given):
        raise SpillwayError(f"{label}phases are missing: write at least one [[phases]] with a workload.")
    phases = []
    for index, phase in enumerate(given):
        where = f"{label}phases[{index}]"
        for key in phase:
            if key not in PHASE_KEYS:
                raise SpillwayError(f"{where}: {key} is not a key of a phase{nearest(key, PHASE_KEYS)}")
        resolved = {key: checked(phase, key, spec, where) for key, spec in PHASE_KEYS.items()}
        resolved["name"] = resolved["name"] or resolved["workload"]
        if resolved["arrivals_file"]:
            resolved["arrivals_file"] = str((plan_dir / resolved["arrivals_file"]).absolute())
        idle = [key for key in PHASE_KEYS if why_without_effect_in_phase(key, resolved) is not None]
        resolved |= {key: copy.copy(PHASE_KEYS[key].default) for key in idle}  # of other points, or refused with those
        check_phase(resolved, where)
        phases.append(resolved | {"given": tuple(phase)})
    names = [phase["name"] for phase in phases]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise SpillwayError(f"{label}phases: two are called {twice!r}; give each a name of its own.")
    check_rates(phases, label)
    if phases[0]["workload"] not in LOADERS and not continues_database:
        raise SpillwayError(
            f"{label}phases[0]: {phases[0]['workload']} would find an empty store; put a fill phase "
            "(with measured = false if it is only the load) before it."
        )
    return phases
