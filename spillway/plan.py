"""Plans: an experiment as TOML, checked and resolved into arms that the native side can run.

A plan names a drive, the state it starts from, an engine with any of its options, and the phases of a load. Its
``[[arms]]`` run in turn, each with some keys of its own. Unknown keys are refused, relations between keys are
checked before anything is started, and the resolved form goes into the run directory.
"""

import copy
import re
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tomli_w

from spillway import ycsb
from spillway.errors import SpillwayError
from spillway.plan_keys import (
    ARM_KEYS,
    ENGINE_SETTINGS,
    LOADERS,
    OF_SOME_WORKLOADS,
    OPEN_TABLES,
    PAGE_BYTES,
    PHASE_KEYS,
    PLAN_KEYS,
    WAITS,
    Key,
    size,
)
from spillway.preset import check_preset, preset_dirs, presets
from spillway.quantity import human_bytes, nearest, parse_size
from spillway.simulate import split_setting

Document = dict[str, Any]


@dataclass(frozen=True)
class Arm:
    """One way of running the plan: everything resolved, nothing left to a default."""

    name: str
    settings: dict[str, Any]  # ARM_KEYS by their dotted names
    drive_set: dict[str, str]
    engine_options: dict[str, str]
    phases: list[dict[str, Any]]

    def request(self, directory: Path, seed: int) -> Document:
        """The contract's request of `run` (contract/README.md)."""
        get = self.settings
        return {
            "seed": seed,
            "directory": str(directory),
            "target": self._target(),
            "fs": {
                "size_bytes": get["fs.size"] or 0,
                **{name: get[f"fs.{name}"] for name in ("discard", "page_cache_bytes", "writeback_bytes")},
            },
            "engine": self._engine(),
            "load": {
                **{name: get[f"load.{name}"] for name in ("key_bytes", "value_bytes", "compression_ratio", "num")},
                "seed": seed,
            },
            "phases": self.phases,
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
                own = [key for key in ARM_KEYS if key.startswith(f"engine.{table}.")]
                names = [key.rpartition(".")[2] + ("_bytes" if ARM_KEYS[key].check is size else "") for key in own]
                engine[table] = dict(zip(names, (get[key] for key in own), strict=True))
        return engine

    def _target(self) -> Document:
        get = self.settings
        if get["drive.kind"] == "directory":
            return {"kind": "directory"}
        return {
            "kind": "emulated",
            "drive": {
                "preset": get["drive.preset"],
                "preset_file": get["drive.preset_file"],
                "preset_dirs": [str(directory.absolute()) for directory in preset_dirs()],
                "set": self.drive_set,
            },
            "initial": {
                name: get[f"initial.{name}"]
                for name in ("kind", "fill", "compression_ratio", "warmup_capacities", "path")
            },
            "time_scale": get["drive.time_scale"],
            "pacing": get["drive.pacing"],
        }

    def capacity_bytes(self) -> int | None:
        """The drive's logical capacity, where the plan or its preset states one."""
        if self.settings["drive.kind"] == "directory":
            return None
        if "capacity.capacity_bytes" in self.drive_set:
            return parse_size(self.drive_set["capacity.capacity_bytes"], "drive.capacity")
        stated = self._preset_capacity().get("capacity_bytes")
        return None if stated is None else parse_size(stated, "the preset's capacity.capacity_bytes")

    def preset_capacity_bytes(self) -> int | None:
        """What the preset alone says, to tell whether this arm's drive is a scaled one."""
        stated = self._preset_capacity().get("capacity_bytes")
        return None if stated is None else parse_size(stated, "the preset's capacity.capacity_bytes")

    def _preset_capacity(self) -> Document:
        path = self.preset_path()
        if path is None:
            return {}
        try:
            table = tomllib.loads(path.read_text(encoding="utf-8")).get("capacity", {})
        except (OSError, tomllib.TOMLDecodeError, UnicodeDecodeError):
            return {}  # the native side says what is wrong with it
        return table if isinstance(table, dict) else {}

    def preset_path(self) -> Path | None:
        """The preset's file, for the manifest."""
        if self.settings["drive.preset_file"]:
            return Path(self.settings["drive.preset_file"])
        return next((preset.path for preset in presets() if preset.name == self.settings["drive.preset"]), None)

    def document(self) -> Document:
        """The arm as a nested document, for plan.toml."""
        nested: Document = {}
        for key, value in self.settings.items():
            if value not in (None, ""):
                _put(nested, key.split("."), value, key)
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
    arms: list[Arm]

    def to_toml(self) -> str:
        """The resolved plan: what every arm has alike on top, and each arm with what is its own."""
        documents = [arm.document() for arm in self.arms]
        shared = _shared(documents)
        top = {
            "name": self.name,
            "summary": self.summary,
            "seeds": self.seeds,
            "repetitions": len(self.seeds),
            **shared,
        }
        if len(self.arms) > 1 or self.arms[0].name != self.name:
            own = zip(self.arms, documents, strict=True)
            top["arms"] = [{"name": arm.name, **_without(document, shared)} for arm, document in own]
        return tomli_w.dumps(top)


def load_plan(
    path: Path, overrides: tuple[str, ...] = (), only: tuple[str, ...] = (), properties: Document | None = None
) -> Plan:
    """Reads, checks and resolves a plan; ``overrides`` are ``key=value`` texts that win over plan and arms, ``only``
    names the arms that are kept (none: all), and ``properties`` go into the ``[ycsb]`` of every arm."""
    document = _read(path)
    where = str(path)
    given = [_parse_override(override) for override in overrides]
    for key, value in given:
        if key[0] in PLAN_KEYS:
            _put(document, key, value, f"--set {'.'.join(key)}")
    own = {key: document.pop(key) for key in list(document) if key in PLAN_KEYS}
    plan_level = {key: _checked(own, key, spec, where) for key, spec in PLAN_KEYS.items()}
    name = plan_level["name"] or path.stem
    arm_tables = document.pop("arms", None) or [{}]
    if not isinstance(arm_tables, list) or not all(isinstance(table, dict) for table in arm_tables):
        raise SpillwayError(f"{where}: arms is a list of tables: write [[arms]] above each.")
    arms = []
    for index, table in enumerate(arm_tables):
        label = f"{where}: " if len(arm_tables) == 1 else f"{where}: arms[{index}]: "
        own_table = dict(table)
        arm_name = own_table.pop("name", name if len(arm_tables) == 1 else None)
        if not isinstance(arm_name, str) or not arm_name:
            raise SpillwayError(f"{label}name is missing: several arms are told apart by their names.")
        merged = _overlay(copy.deepcopy(document), _undotted(own_table))
        for key, value in given:
            if key[0] not in PLAN_KEYS:
                _put(merged, key, value, f"--set {'.'.join(key)}")
        if properties:
            merged["ycsb"] = merged.get("ycsb", {}) | properties
        arms.append(_resolve_arm(arm_name, merged, label, path.parent))
    _check_arm_names(where, arms)
    for wanted in only:
        if wanted not in (arm.name for arm in arms):
            known = ", ".join(arm.name for arm in arms)
            raise SpillwayError(f"{where}: there is no arm {wanted!r}; by name there are: {known}.")
    arms = [arm for arm in arms if not only or arm.name in only]
    return Plan(path, name, plan_level["summary"], _seeds(plan_level, where), arms)


def _read(path: Path) -> Document:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise SpillwayError(f"{path}: the plan cannot be read: {error.strerror}.") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise SpillwayError(f"{path}: this is not TOML: {error}.") from error


def _parse_override(override: str) -> tuple[list[str], Any]:
    """``a.b=value``: the value as TOML where it is that, else as a text."""
    key, text = split_setting(override)
    try:
        value = tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        value = text
    return _key_parts(key), value


def _key_parts(key: str) -> list[str]:
    """A dotted key in parts; engine options and preset keys keep their own dots: drive.set.capacity.spare_factor."""
    for table in OPEN_TABLES:
        if key.startswith(table + "."):
            return [*table.split("."), key.removeprefix(table + ".")]
    return key.split(".")


def _put(document: Document, key: list[str], value: Any, where: str) -> None:
    """Sets a dotted key; a list's element is named by its index or by its ``name``."""
    node: Any = document
    for part in key[:-1]:
        node = _element(node, part, where) if isinstance(node, list) else node.setdefault(part, {})
        if not isinstance(node, dict | list):
            raise SpillwayError(f"{where}: {part} is a value, not a table; see plans/quickstart.toml for the keys.")
    if isinstance(node, list):
        raise SpillwayError(f"{where}: name a key of one element, such as phases.0.duration_s=10.")
    node[key[-1]] = value


def _element(elements: list[Any], part: str, where: str) -> Any:
    if part.isdecimal() and int(part) < len(elements):
        return elements[int(part)]
    named = {element.get("name"): element for element in elements if isinstance(element, dict)}
    if part not in named:
        known = ", ".join(str(name) for name in named) or "none"
        raise SpillwayError(f"{where}: there is no element {part!r}; by name there are: {known}.")
    return named[part]


def _undotted(table: Document) -> Document:
    """Quoted dotted keys of an arm (``"engine.options.x" = 1``) as the nested tables they mean."""
    nested: Document = {}
    for key, value in table.items():
        inner: Any = value
        for part in reversed(_key_parts(key)):
            inner = {part: inner}
        _overlay(nested, inner)
    return nested


def _overlay(base: Document, top: Document) -> Document:
    for key, value in top.items():
        if isinstance(value, dict) and isinstance(base.get(key), dict):
            _overlay(base[key], value)
        else:
            base[key] = value
    return base


def _flat(document: Document, prefix: str = "") -> dict[str, Any]:
    """Dotted keys and their values; open tables stay whole."""
    flat: dict[str, Any] = {}
    for key, value in document.items():
        dotted = f"{prefix}{key}"
        if isinstance(value, dict) and dotted not in OPEN_TABLES:
            flat |= _flat(value, dotted + ".")
        else:
            flat[dotted] = value
    return flat


def _checked(document: Document, name: str, key: Key, where: str) -> Any:
    return key.check(document.get(name, copy.copy(key.default)), f"{where}: {name}")


def _resolve_arm(name: str, document: Document, label: str, plan_dir: Path) -> Arm:
    phases_given = document.pop("phases", None)
    flat = _flat(document)
    open_tables = {table: flat.pop(table, {}) for table in OPEN_TABLES}
    known = [*ARM_KEYS, *OPEN_TABLES, *PLAN_KEYS, "phases", "arms"]
    for key in flat:
        if key not in ARM_KEYS:
            raise SpillwayError(f"{label}{key} is not a key of a plan{nearest(key, known)}")
    settings = {key: _checked(flat, key, spec, label.removesuffix(": ")) for key, spec in ARM_KEYS.items()}
    for key in ("drive.preset_file", "drive.path", "initial.path", "data_directory"):
        if settings[key]:
            settings[key] = str((plan_dir / settings[key]).absolute())
    drive_set = _texts(open_tables["drive.set"], f"{label}drive.set")
    if settings["drive.capacity"] is not None:
        if "capacity.capacity_bytes" in drive_set:
            raise SpillwayError(f"{label}drive.capacity and drive.set.capacity.capacity_bytes are one thing: give one.")
        drive_set["capacity.capacity_bytes"] = str(settings["drive.capacity"])
    settings["drive.capacity"] = None  # from here on it is one of the preset's keys
    options = _texts(open_tables["engine.options"], f"{label}engine.options")
    properties = ycsb.layered(open_tables["ycsb"], f"{label}ycsb", plan_dir)
    phases = ycsb.complete_phases(_phases(phases_given, label), properties, label)
    _check_measured(phases, label)
    arm = Arm(name, settings, drive_set, options, phases)
    _check_drive(arm, label)
    _check_load(arm, label)
    return arm


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


def _phases(given: Any, label: str) -> list[dict[str, Any]]:
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
        _check_phase(resolved, where)
        phases.append(resolved | {"given": tuple(phase)})
    names = [phase["name"] for phase in phases]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise SpillwayError(f"{label}phases: two are called {twice!r}; give each a name of its own.")
    if phases[0]["workload"] not in LOADERS:
        raise SpillwayError(
            f"{label}phases[0]: {phases[0]['workload']} would find an empty store; put a fill phase "
            "(with measured = false if it is only the load) before it."
        )
    return phases


def _check_measured(phases: list[dict[str, Any]], label: str) -> None:
    if not any(phase["measured"] for phase in phases):
        raise SpillwayError(f"{label}phases: none is measured; leave out `measured = false` in one of them.")


def _check_phase(phase: dict[str, Any], where: str) -> None:
    for key, workloads in OF_SOME_WORKLOADS.items():
        if phase[key] != PHASE_KEYS[key].default and phase["workload"] not in workloads:
            owners = " and ".join(workloads)
            raise SpillwayError(f"{where}: {key} belongs to {owners}; leave it out of {phase['workload']}.")
    ends = [key for key in ("operations", "duration_s") if phase[key] is not None]
    if phase["workload"] in WAITS:
        if ends or phase["rate_ops_s"] is not None:
            raise SpillwayError(f"{where}: {phase['workload']} ends by itself; leave out {[*ends, 'rate_ops_s'][0]}.")
        return
    # A fill of every key once ends by itself too, as in db_bench.
    itself = ("fillseq", "fillrandom", "filluniquerandom", "overwrite", ycsb.LOAD, ycsb.RUN)  # RUN: spillway/ycsb.py
    if not ends and phase["workload"] not in itself:
        raise SpillwayError(f"{where}: {phase['workload']} has no end: give operations or duration_s.")
    if len(ends) == 2:
        raise SpillwayError(f"{where}: operations and duration_s both end the phase: give one of them.")


def _check_drive(arm: Arm, label: str) -> None:
    get = arm.settings
    if get["cost.currency"] and get["cost.drive_price"] is None:
        raise SpillwayError(f"{label}cost.currency is given without cost.drive_price: give the price, or neither.")
    if get["drive.kind"] == "directory":
        if not get["drive.path"]:
            raise SpillwayError(
                f'{label}drive.kind is "directory" and drive.path is missing: name the directory to run in.'
            )
        if not Path(get["drive.path"]).is_dir():
            raise SpillwayError(f"{label}drive.path: there is no directory {get['drive.path']}; make it first.")
        return
    if get["drive.rated_writes"] is not None:
        raise SpillwayError(
            f'{label}drive.rated_writes is for drive.kind = "directory"; an emulated drive lasts for its preset\'s '
            "wear_levelling.rated_pe_cycles."
        )
    if get["drive.path"]:
        raise SpillwayError(f'{label}drive.path is for drive.kind = "directory"; an emulated drive has none.')
    if get["drive.preset"] and get["drive.preset_file"]:
        raise SpillwayError(f"{label}drive.preset and drive.preset_file both name the drive: give one of them.")
    if get["drive.preset"]:
        check_preset(get["drive.preset"], f"{label}drive.preset")
    if get["drive.preset_file"] and not Path(get["drive.preset_file"]).is_file():
        raise SpillwayError(f"{label}drive.preset_file: there is no file {get['drive.preset_file']}.")
    if get["initial.kind"] == "file" and not Path(get["initial.path"]).is_file():
        raise SpillwayError(f"{label}initial.path: there is no state file {get['initial.path'] or '(none is named)'}.")
    if get["initial.kind"] in ("steady", "sequential") and get["initial.fill"] == 0:
        raise SpillwayError(
            f'{label}initial.fill is 0, so nothing is {get["initial.kind"]}: use initial.kind = "trimmed".'
        )


def _check_load(arm: Arm, label: str) -> None:
    """More valid data than fits cannot end well, and the relation can be seen before anything runs."""
    capacity = arm.capacity_bytes()
    get = arm.settings
    _check_partition(arm, capacity, label)
    if capacity is None:
        return
    capacity = get["fs.size"] or capacity
    packed = 1.0 if arm.engine_options.get("compression") == "kNoCompression" else get["load.compression_ratio"]
    need = ycsb.loaded_bytes(arm.phases, packed)
    if need > capacity:
        raise SpillwayError(
            f"{label}ycsb: the records come to {human_bytes(need)}, and the drive holds {human_bytes(capacity)}: "
            "lower recordcount, fieldcount or fieldlength, or raise drive.capacity."
        )
    if all(phase["workload"] in (ycsb.LOAD, ycsb.RUN, *WAITS) for phase in arm.phases):
        return
    need = get["load.num"] * (get["load.key_bytes"] + get["load.value_bytes"] * packed)
    if need > capacity:
        raise SpillwayError(
            f"{label}load.num = {get['load.num']} pairs come to {human_bytes(need)}, and the "
            f"{'partition' if get['fs.size'] else 'drive'} holds {human_bytes(capacity)}: lower load.num or "
            f"load.value_bytes, or raise {'fs.size' if get['fs.size'] else 'drive.capacity'}."
        )


def _check_partition(arm: Arm, capacity: int | None, label: str) -> None:
    size_bytes = arm.settings["fs.size"]
    if size_bytes is None:
        return
    if arm.settings["drive.kind"] == "directory":
        raise SpillwayError(f"{label}fs.size belongs to an emulated drive: a directory has the size that it has.")
    if size_bytes == 0 or size_bytes % PAGE_BYTES:
        raise SpillwayError(f"{label}fs.size is {size_bytes}; it takes a multiple of {PAGE_BYTES} bytes, a page.")
    if capacity is not None and size_bytes > capacity:
        raise SpillwayError(
            f"{label}fs.size = {human_bytes(size_bytes)} is more than the drive holds ({human_bytes(capacity)}): lower "
            "it or raise drive.capacity."
        )


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
    """A name as a directory's name."""
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")


def _seeds(plan_level: Document, where: str) -> list[int]:
    """One seed for each repetition; where fewer are given, they go on counting from the last."""
    seeds: list[int] = plan_level["seeds"]
    repetitions = plan_level["repetitions"] or len(seeds)
    if repetitions < len(seeds):
        raise SpillwayError(
            f"{where}: repetitions is {repetitions} and there are {len(seeds)} seeds: give one for each at most."
        )
    return seeds + [seeds[-1] + extra for extra in range(1, repetitions - len(seeds) + 1)]


def _shared(documents: list[Document]) -> Document:
    """What all documents have alike, table by table."""
    first, *others = documents
    shared: Document = {}
    for key, value in first.items():
        if isinstance(value, dict):
            shared[key] = _shared([document.get(key, {}) for document in documents])
        elif all(key in other and other[key] == value for other in others):
            shared[key] = value
    return shared


def _without(document: Document, shared: Document) -> Document:
    own: Document = {}
    for key, value in document.items():
        if isinstance(value, dict):
            inner = _without(value, shared.get(key, {}))
            if inner:
                own[key] = inner
        elif key not in shared:
            own[key] = value
    return own
