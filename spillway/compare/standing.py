"""Whether two sides may be ranked: their conditions must be alike, but for what is compared.

Each kind of difference has conditions, from the standing in summary.json, the manifest and the resolved plan. An
engine, its options and its settings are what arms are for, so they are no such condition, except for compression: it
changes which bytes are counted. Engines' libraries are compared where both sides have them.
"""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from spillway.compare.metrics import table
from spillway.compare.sides import Side
from spillway.plan.compression import algorithm, default_of, option_of

Document = dict[str, Any]
Conditions = dict[str, Any]  # name → value

ENGINE_DEFAULT = "the engine's default"  # RocksDB's is its build's and its version's


@dataclass(frozen=True)
class Difference:
    """A condition in which two sides differ."""

    kind: str
    what: str
    a: Any
    b: Any

    @property
    def words(self) -> str:
        """A clause such as: initial.kind is steady and trimmed."""
        return f"{self.what} is {_value_in_words(self.a)} and {_value_in_words(self.b)}"


def _value_in_words(value: Any) -> str:
    if value in (None, "", []):
        return "none"
    if isinstance(value, bool):
        return "true" if value else "false"
    return f"{value:g}" if isinstance(value, float) else str(value)


def _from_plan(side: Side, *keys: str) -> Conditions:
    """The plan's values of these keys; a key that ends with a dot stands for all that begin with it."""
    found = {}
    for key, value in side.plan.items():
        if any(key == each or (each.endswith(".") and key.startswith(each)) for each in keys):
            found[key] = value
    return found


def _drive(side: Side) -> Conditions:
    names = {"the drive": "drive", "the drive's capacity in bytes": "capacity_bytes", "the drives": "devices"}
    conditions = {name: side.standing.get(key) for name, key in names.items()}
    keys = ("drive.kind", "drive.preset", "drive.path", "drive.set.", "fs.")
    return conditions | _from_plan(side, *keys) | {"the preset's file": _preset(side)}


def _preset(side: Side) -> str | None:
    """The first digits of the SHA-256 of the preset that the side ran with."""
    path = side.run / side.figures["directory"] / "preset.toml"
    return hashlib.sha256(path.read_bytes()).hexdigest()[:12] if path.is_file() else None


def _initial(side: Side) -> Conditions:
    standing = {
        f"the {key.replace('_', ' ')}": side.standing.get(key)
        for key in ("initial_state", "initial_fill", "initial_partition")
    }
    kept = {"the kept state": side.standing.get("kept")}
    keys = ("initial.path", "initial.warmup_capacities", "initial.compression_ratio", "kept.takes")
    return standing | kept | _from_plan(side, *keys)


def _time(side: Side) -> Conditions:
    return {"the time scale": side.standing.get("time_scale"), "pacing": side.standing.get("pacing")}


def _versions(side: Side) -> Conditions:
    of_run = table(side.manifest, "versions")
    conditions = {f"the version of {name}": of_run.get(name) for name in ("spillway", "spillway-native")}
    build = of_run.get("build_sha256") or of_run.get("executable_sha256")
    return conditions | {"the build of spillway-native": build and str(build)[:12]}


def _libraries(side: Side) -> Conditions:
    return {f"the version of {name}": version for name, version in table(side.figures, "versions").items()}


def _compression(side: Side) -> Conditions:
    engine = str(side.plan.get("engine.name", "rocksdb"))
    option = f"engine.options.{option_of(engine)}"
    others = {
        key: value
        for key, value in side.plan.items()
        if key.startswith("engine.options.") and "compress" in key.rpartition(".")[2] and key != option
    }
    chosen = side.plan.get(option)
    name = (default_of(engine) or ENGINE_DEFAULT) if chosen is None else algorithm(str(chosen))
    return {"the engine's compression": name} | others | _from_plan(side, "load.compression_ratio")


def _workload(side: Side) -> Conditions:
    conditions = _from_plan(side, "load.key_bytes", "load.value_bytes", "load.num", "ycsb.")
    phases = [phase for phase in side.plan.get("phases") or [] if isinstance(phase, dict)]
    conditions["the number of phases"] = len(phases)
    for index, phase in enumerate(phases):
        name = phase.get("name") or index
        conditions |= {f"phases.{name}.{key}": value for key, value in phase.items() if key != "name"}
    return conditions


def _machine(side: Side) -> Conditions:
    host = table(side.manifest, "host")
    return {f"the host's {name}": host.get(name) for name in ("processor", "cores")}


KINDS: dict[str, Callable[[Side], Conditions]] = {
    "drive": _drive,
    "initial": _initial,
    "time": _time,
    "versions": _versions,
    "compression": _compression,
    "workload": _workload,
    "machine": _machine,
}


def differences(a: Side, b: Side) -> list[Difference]:
    """Every fact in which two sides differ. Whether they are steady is a repetition's own, and not among these."""
    found = []
    for kind, conditions_of in KINDS.items():
        ours, theirs = conditions_of(a), conditions_of(b)
        found += [
            Difference(kind, what, ours.get(what), theirs.get(what))
            for what in dict.fromkeys((*ours, *theirs))
            if ours.get(what) != theirs.get(what)
        ]
    ours, theirs = _libraries(a), _libraries(b)
    both = [what for what in ours if what in theirs and ours[what] != theirs[what]]
    return found + [Difference("versions", what, ours[what], theirs[what]) for what in both]
