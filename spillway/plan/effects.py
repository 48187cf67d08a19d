"""Keys of a plan that could have no effect: each is refused with one sentence.

A plan says some things for several runs at once, so a key is held against all the runs that it is said for: what stands
above the arms against every arm and preparation, an arm's own key against that arm at every point, a key of the sweep
against every point, ``--set`` against what is run. It is refused where it has an effect in none of them. A key of the
plan is held against the runs both as they are written and as ``--set`` has them: ``--set`` may be what gives it its
effect. What ``--set`` has left without effect is printed and not refused: nobody has to rewrite a plan to try it on
another drive.

A phase's key is held against the phase at all points in the same way. Its default says what holds in any case, so it is
taken everywhere.

The resolved plan of a run directory says every key of every run, those of other engines too, and is taken as it is.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from spillway.errors import SpillwayError
from spillway.plan.dotted import flatten
from spillway.plan.keys import (
    ARM_KEYS,
    OF_SOME_ARRIVALS,
    OF_SOME_WORKLOADS,
    OPEN_TABLES,
    PHASE_KEYS,
    POLICY_TABLES,
    PROCEDURES,
    WAITS,
)
from spillway.quantity import whole_number
from spillway.ssd.preset import Traits, preset_path, traits

Document = dict[str, Any]

# No plan that somebody writes gives all of these; a resolved one does, whichever version has written it.
RESOLVED = (
    *("sample_interval_ms", "drive.time_scale", "drive.pacing", "initial.fill", "initial.warmup_capacities"),
    *("fs.discard", "fs.writeback_bytes", "engine.policy", "load.compression_ratio"),
)

_NOTHING: tuple[Any, ...] = ("", {}, None)
_PAIRS = ("load.key_bytes", "load.value_bytes", "load.num")
_FIGURES = ("steady.tests", "cost.drive_price", "cost.currency", "drive.rated_writes", "drive.smart")
_REAL = ("drive.path", "drive.rated_writes", "drive.smart")  # of a drive that is there
_MODEL = ("drive.preset", "drive.preset_file", "drive.capacity")  # each with a counterpart in drive.estimate
_OF_ANY_WORKLOAD = ("name", "workload", "measured")
_TREE = ("fs.discard", "fs.placement", "fs.page_cache_bytes", "fs.writeback_bytes", "fs.closed_dirty_bytes")


@dataclass(frozen=True)
class NoEffect:
    """Why a key has no effect in a run."""

    owner: str  # what it belongs to
    here: str  # what the run has instead
    remedy: str = ""  # what to do if its effect is wanted


@dataclass(frozen=True)
class RunKeys:
    """What a plan says of one run, before anything of it is checked: values by dotted key, and the phases."""

    values: Mapping[str, Any]
    phases: Sequence[Any] = ()
    measures: bool = True  # False: a preparation
    directory: Path = Path()  # that paths of the plan are relative to

    def __getitem__(self, key: str) -> Any:
        """The value of a key, its default where the plan does not say it."""
        return self.values.get(key, ARM_KEYS[key].default)

    @property
    def keys(self) -> list[str]:
        """The keys that it says, those of phases as ``phases.INDEX.KEY``; an empty text or table says nothing."""
        values = dict(self.values)
        for index, phase in enumerate(self.phases):
            values |= {f"phases.{index}.{key}": value for key, value in _table(phase).items()}
        return [key for key, value in values.items() if value not in _NOTHING]

    def says(self, key: str) -> bool:
        """Whether the plan gives the key; a phase is named by index or name."""
        if key.startswith("phases."):
            return key.split(".", 2)[-1] in self.phase(key)
        return self.values.get(key) not in _NOTHING

    def phase(self, key: str) -> Document:
        """The phase that a key names by its index or its name; empty where there is none."""
        part = key.split(".")[1]
        index = whole_number(part)
        if index is not None and index < len(self.phases):
            return _table(self.phases[index])
        named = (_table(phase) for phase in self.phases)
        return next((phase for phase in named if phase.get("name", phase.get("workload")) == part), {})

    @property
    def is_resolved(self) -> bool:
        """Whether it is a run directory's plan."""
        return all(key in self.values for key in RESOLVED)

    @property
    def workloads(self) -> list[Any]:
        """Of its phases."""
        return [phase.get("workload") for phase in self.phases if isinstance(phase, dict)]

    @property
    def on_directory(self) -> bool:
        """No drive is emulated."""
        return bool(self["drive.kind"] == "directory")

    @property
    def is_watched(self) -> bool:
        """A drive model is given the same writes as a plain directory."""
        return bool(self["drive.estimate.preset"] or self["drive.estimate.preset_file"])

    @cached_property
    def drive(self) -> Traits | None:
        """Traits of its drive model; None where it has none, or the preset cannot be read."""
        table = "drive.estimate." if self.on_directory else "drive."
        name, file = self[f"{table}preset"], self[f"{table}preset_file"]
        path = preset_path(name, self.directory / file if isinstance(file, str) and file else None)
        return traits(path, {} if self.on_directory else flatten(_table(self.values.get("drive.set"))))

    @property
    def initial_kind(self) -> Any:
        """What the drive holds at first."""
        procedure = self["initial.procedure"]
        known = isinstance(procedure, str) and procedure in PROCEDURES
        return PROCEDURES[procedure][0] if known else self["initial.kind"]


def why_without_effect(key: str, run: RunKeys) -> NoEffect | None:
    """Why a key, as ``flatten`` names it, can have no effect in a run; None where it can."""
    table = key.partition(".")[0]
    if key in _FIGURES and not run.measures:
        return NoEffect("runs that are measured", "a preparation is in no figure")
    judges = {
        "phases": _of_phase,
        "cost": _of_cost,
        "ycsb": _of_ycsb,
        "drive": _of_drive,
        "data_directory": _of_drive,
        "initial": _of_initial,
        "kept": _of_kept,
        "fs": _of_file_system,
        "engine": _of_engine,
        "load": _of_load,
    }
    return judges[table](key, run) if table in judges else None


def _of_drive(key: str, run: RunKeys) -> NoEffect | None:
    if run.on_directory:
        here = 'drive.kind is "directory"'
        if key in _MODEL:
            estimate = key.replace("drive.", "drive.estimate.")
            return NoEffect("an emulated drive", here, f"say {estimate} of a drive model that is to watch")
        if key == "data_directory":
            return NoEffect("an emulated drive", f"{here}, whose files lie in drive.path")
        if key in ("drive.set", "drive.time_scale", "drive.pacing"):
            return NoEffect("an emulated drive", here, 'set drive.kind = "emulated"')
        if key == "drive.estimate.capacity" and not run.is_watched:
            return NoEffect("drive.estimate.preset", "no drive model is named there", "name one")
        return None
    if key in _REAL or key.startswith("drive.estimate."):
        return NoEffect('drive.kind = "directory"', 'drive.kind is "emulated"', "set that")
    if key == "drive.time_scale" and run["drive.pacing"] == "off":
        return NoEffect('drive.pacing = "real"', 'drive.pacing is "off"', "set that")
    return None


def _of_initial(key: str, run: RunKeys) -> NoEffect | None:
    if run.on_directory and not run.is_watched:
        here = 'drive.kind is "directory" without drive.estimate'
        return NoEffect("a drive model", here, "name one that is to watch in drive.estimate.preset")
    if run["kept.from"]:
        return NoEffect("a run that starts from no kept state", "kept.from names one")
    kind = run.initial_kind
    # A state that was saved is a disk's as it is a drive's of flash, and every disk is as a trimmed drive.
    of_disks = ("initial.kind", "initial.path") if kind == "file" else ("initial.kind",) if kind == "trimmed" else ()
    if run.drive is not None and run.drive.is_disk and key not in of_disks:
        return NoEffect("drives of flash", "a disk has no state that writing leaves")
    if key == "initial.path" and kind != "file":
        return NoEffect('initial.kind = "file"', f'initial.kind is "{kind}"', "set that")
    is_filled = kind in ("steady", "sequential")
    partition = run["initial.partition"]
    if key == "initial.partition" and partition == "trimmed" and kind == "trimmed":
        return NoEffect("a drive that held data", f'initial.kind is "{kind}"', "set another")
    if key == "initial.compression_ratio" and run.drive is not None and not run.drive.compresses:
        return NoEffect("drives that compress", "this one does not")
    is_written = partition == "preconditioned" or str(run["initial.procedure"]).endswith("precondition")
    filling = key in ("initial.fill", "initial.warmup_capacities")
    if (filling and not is_filled) or (key == "initial.compression_ratio" and not is_filled and not is_written):
        return NoEffect('initial.kind = "steady" or "sequential"', f'initial.kind is "{kind}"', "set one of them")
    return None


def _of_kept(key: str, run: RunKeys) -> NoEffect | None:
    starts, keeps = bool(run["kept.from"]), bool(run["kept.to"])
    if key == "kept.takes" and not starts:
        return NoEffect("kept.from", "no state is named there", "name one")
    if key in ("kept.directory", "kept.database") and not starts and not keeps:
        return NoEffect("kept.from and kept.to", "neither names a state", "name one")
    if key == "kept.database" and run["kept.takes"] == "drive" and not keeps:
        return NoEffect("kept.to, or a database that is taken", 'kept.takes is "drive"')
    return None


def _of_file_system(key: str, run: RunKeys) -> NoEffect | None:
    if key == "fs.size" and run.on_directory:
        return NoEffect("an emulated drive", "a directory has the size that it has")
    if key == "fs.size":
        return None
    if run.on_directory and not run.is_watched:
        here = 'drive.kind is "directory" without drive.estimate'
        return NoEffect("a drive model", here, "name one that is to watch in drive.estimate.preset")
    if run.on_directory and key == "fs.page_cache_bytes":
        return NoEffect("an emulated drive", "a drive model that watches is charged with writes alone")
    if key in _TREE and run["engine.name"] == "raw":
        return NoEffect("engines that have files", 'engine.name is "raw", which writes blocks of the drive')
    return None


def _of_engine(key: str, run: RunKeys) -> NoEffect | None:
    here = f'engine.name is "{run["engine.name"]}"'
    table = key.split(".")[1]
    of_rocksdb = dict.fromkeys(("policy", *POLICY_TABLES), "rocksdb")
    owner = {**of_rocksdb, "spill": "spillway", "vlog": "leveldb-vlog"}.get(table)
    if owner is None:
        return None
    if run["engine.name"] != owner:
        return NoEffect(f"the engine {owner}", here, f'set engine.name = "{owner}"')
    policy = POLICY_TABLES.get(table, run["engine.policy"])
    if run["engine.policy"] != policy:
        return NoEffect(f'engine.policy = "{policy}"', f'engine.policy is "{run["engine.policy"]}"', "set that")
    if key in ("engine.vlog.gc_garbage_ratio", "engine.vlog.gc_free_ratio") and run["engine.vlog.gc"] is False:
        return NoEffect("engine.vlog.gc", "that is false", "set it to true")
    if key == "engine.vlog.gc_free_ratio" and run.on_directory and not run.is_watched:
        return NoEffect("a drive model", 'drive.kind is "directory" without drive.estimate')
    return None


def _of_load(key: str, run: RunKeys) -> NoEffect | None:
    working = [each for each in run.workloads if each not in WAITS]
    if not working:
        return NoEffect("phases that read or write", "all phases only wait") if run.workloads else None
    if key in _PAIRS and all(str(each).startswith("ycsb-") for each in working):
        return NoEffect("db_bench's workloads", "all phases are YCSB's", "say the records in [ycsb]")
    return None


def _of_cost(key: str, run: RunKeys) -> NoEffect | None:
    if key == "cost.currency" and run["cost.drive_price"] is None:
        return NoEffect("cost.drive_price", "no price is given", "give one")
    return None


def _of_ycsb(key: str, run: RunKeys) -> NoEffect | None:
    if any(str(each).startswith("ycsb-") for each in run.workloads):
        return None
    return NoEffect("phases of ycsb-load and ycsb-run", "there are none", "add them")


def _of_phase(key: str, run: RunKeys) -> NoEffect | None:
    own, phase = key.split(".", 2)[-1], run.phase(key)
    reason = why_without_effect_in_phase(own, phase)
    says = own == "diversion" and phase.get(own) != PHASE_KEYS[own].default
    if reason is None and says and run["engine.name"] != "spillway":
        here = f'engine.name is "{run["engine.name"]}"'
        return NoEffect("the engine spillway", here, 'set engine.name = "spillway"')
    return reason


def why_without_effect_in_phase(key: str, phase: Document) -> NoEffect | None:
    """Why a key of a phase can have no effect in it; None where it can, or has its default."""
    if key not in PHASE_KEYS or phase.get(key, PHASE_KEYS[key].default) == PHASE_KEYS[key].default:
        return None
    workload, arrivals = phase.get("workload"), phase.get("arrivals")
    here = f'the workload is "{workload}"'
    if key in OF_SOME_WORKLOADS:
        return None if workload in OF_SOME_WORKLOADS[key] else NoEffect(" and ".join(OF_SOME_WORKLOADS[key]), here)
    if workload in WAITS and key not in _OF_ANY_WORKLOAD:
        return NoEffect("phases that read or write", f"{here}, which ends by itself")
    here = "no arrivals are given" if arrivals is None else f'arrivals is "{arrivals}"'
    if key in OF_SOME_ARRIVALS and arrivals != OF_SOME_ARRIVALS[key]:
        return NoEffect(f'arrivals = "{OF_SOME_ARRIVALS[key]}"', here, "set that")
    if key == "rate_share" and not phase.get("rate_of"):
        return NoEffect("rate_of", "no phase is named there", "name one")
    if key == "rate_ops_s" and arrivals == "trace":
        return NoEffect("arrivals that have a rate", "a trace has its own times")
    return None


class WithoutEffect(SpillwayError):
    """Keys that ``--set`` gives have an effect in nothing that is run. ``idle``: why, by key."""

    def __init__(self, idle: Mapping[str, Sequence[NoEffect]]) -> None:
        """At least one key."""
        super().__init__(f"--set {_sentence(*next(iter(idle.items())))}.")
        self.idle = idle


def keys_without_effect(keys: Iterable[str], runs: Sequence[RunKeys]) -> dict[str, list[NoEffect]]:
    """Those of the keys that have an effect in none of the runs that they are said for, each with why."""
    found = {}
    for key in keys:
        reasons = [why_without_effect(_named(key), run) for run in runs if run.says(_named(key))]
        idle = [reason for reason in reasons if reason is not None]
        if idle and len(idle) == len(reasons):
            found[key] = idle
    return found


def check_layer(keys: Iterable[str], runs: Sequence[RunKeys], label: str) -> None:
    """Raises SpillwayError for the first of these keys that has an effect in none of the runs that it is said for."""
    for key, idle in keys_without_effect(keys, runs).items():
        raise SpillwayError(f"{label}{_sentence(key, idle)}.")


def lost(keys: Iterable[str], written: Sequence[RunKeys], runs: Sequence[RunKeys]) -> list[str]:
    """The keys that have an effect in the plan as it is written, and none in the runs that --set has made of it; each
    with why. A key that --set has removed is not listed."""
    before = keys_without_effect(keys, written)
    after = keys_without_effect((key for key in keys if key not in before), runs)
    return [f"{key} ({_here(idle)})" for key, idle in after.items()]


def _table(value: Any) -> Document:
    """A table of a plan that nobody has checked; empty where it is none."""
    return value if isinstance(value, dict) else {}


def _named(key: str) -> str:
    """A key of an open table by the table, of a phase's too."""
    if key.startswith("phases."):
        return ".".join(key.split(".")[:3])
    return next((table for table in OPEN_TABLES if key.startswith(table + ".")), key)


def _sentence(key: str, idle: Sequence[NoEffect]) -> str:
    first = idle[0]
    rest = f", or {first.remedy}" if first.remedy else ""
    return f"{key} belongs to {first.owner}, and {_here(idle)}: leave it out{rest}"


def _here(idle: Sequence[NoEffect]) -> str:
    return idle[0].here if len({each.here for each in idle}) == 1 else "no run has that"
