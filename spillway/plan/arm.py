"""One arm of a plan, with every key resolved, and its request to the native side."""

import hashlib
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from spillway.plan.dotted import put
from spillway.plan.keys import (
    ARM_KEYS,
    ENGINE_SETTINGS,
    OF_SOME_ARRIVALS,
    POLICY_TABLES,
    optional_size,
    size,
    size_of_a_page,
)
from spillway.quantity import parse_size
from spillway.ssd.preset import preset_dirs, preset_path, whole_drive

Document = dict[str, Any]
FS_KEYS = ("discard", "placement", "page_cache_bytes", "writeback_bytes", "closed_dirty_bytes")
UNIT = "_bytes"
SIZES = (size, optional_size, size_of_a_page)  # checks of keys that a plan may write with a unit
LONGEST_SLUG = 200  # of the 255 bytes that file systems take; repetitions append to it


@dataclass(frozen=True)
class Arm:
    """One configuration that the plan runs, with every key resolved."""

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
            elif POLICY_TABLES.get(table, get["engine.policy"]) == get["engine.policy"]:
                own = settings_of(table)
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
        """Whether a drive model receives the writes of this run on a plain directory."""
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
        """The drive's logical capacity in bytes; None where neither plan nor preset states one. Raises SpillwayError
        for a preset whose capacity is no size."""
        if self.settings["drive.kind"] == "directory":
            return None
        if "capacity.capacity_bytes" in self.drive_set:
            return parse_size(self.drive_set["capacity.capacity_bytes"], "drive.capacity")
        return self.preset_capacity_bytes()

    def preset_capacity_bytes(self) -> int | None:
        """The preset's own capacity in bytes: another one than the arm's means a scaled drive. Raises SpillwayError."""
        return whole_drive(self.preset_path(), self.drive_set)[0]

    def preset_physical_bytes(self) -> float | None:
        """Flash of a drive of the preset's own capacity, in bytes, without what whole erase blocks add; None: not
        known. Raises as ``capacity_bytes``."""
        return whole_drive(self.preset_path(), self.drive_set)[1]

    def estimate_whole_drive(self) -> tuple[int | None, float | None]:
        """(capacity, flash) of the estimate's preset, in bytes, as ``preset_capacity_bytes`` and
        ``preset_physical_bytes``. Raises as ``capacity_bytes``."""
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


def native_name(key: str) -> str:
    """The last part of ``key`` as requests and the fields of the native side have it. It is the same word; that of a
    size, which a plan writes with a unit, ends in its unit there: ``_bytes``."""
    name = key.rpartition(".")[2]
    return name if name.endswith(UNIT) or ARM_KEYS[key].check not in SIZES else name + UNIT


def settings_of(table: str) -> dict[str, str]:
    """The keys of ``[engine.TABLE]`` → their names in a request."""
    return {key: native_name(key) for key in ARM_KEYS if key.startswith(f"engine.{table}.")}


def by_keys_of_a_plan(message: str, target: str) -> str:
    """The native side's ``message`` about a request, with the plan's keys in the place of the request's fields.
    ``target``: drive.kind of the plan."""
    capacity = "drive.capacity" if target == "emulated" else "drive.estimate.capacity"
    # "--set: " is how the native side calls all of a drive that comes with a request.
    message = re.sub(r"^--set: capacity\.capacity_bytes\b", capacity, message)
    message = re.sub(r"^--set: ", "drive.set: ", message)
    message = message.replace("raise capacity.capacity_bytes", f"raise {capacity}")
    return re.sub(rf"\b((?:fs|engine)\.[\w.]+){UNIT}\b", lambda size: size[1 if size[1] in ARM_KEYS else 0], message)


def _requested(phase: dict[str, Any]) -> Document:
    """A phase as the contract has it: how operations arrive is a table, and that it waits for steadiness is ours."""
    own = {key: value for key, value in phase.items() if key not in ("arrivals", "until", *OF_SOME_ARRIVALS)}
    own["rate_of"] = own["rate_of"] or ""
    if phase["arrivals"] is None:
        return own
    named = {key.removeprefix("arrivals_"): phase[key] for key in OF_SOME_ARRIVALS if phase[key] is not None}
    return own | {"arrivals": {"process": phase["arrivals"], **named}}


def run_label(arm: str, repetition: int, count: int) -> str:
    """A run for people, and in the failures of a manifest: its arm, and which of ``count`` repetitions, from 0."""
    return arm if count == 1 else f"{arm} ({repetition + 1} of {count})"


def slug(name: str) -> str:
    """A name as a directory's name; a long one is cut, and a digest keeps it distinct."""
    words = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")
    if len(words) <= LONGEST_SLUG:
        return words
    digest = hashlib.sha256(name.encode()).hexdigest()[:12]
    return f"{words[: LONGEST_SLUG - len(digest)].strip('-')}-{digest}"
