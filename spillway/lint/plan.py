"""A plan before it runs, against the seven pitfalls.

All arms and points of the sweep are judged together: a plan that varies a key answers the pitfall of not varying it.
Only what the plan says is known; how much an engine will write is not, so user bytes stand for host bytes where
the plan ends a phase by them, as the least that they can be.
"""

from collections.abc import Callable, Sequence
from typing import Any

from spillway.lint.table import Linted, Remark, table_of, with_answers
from spillway.pitfalls import (
    DATA_SET,
    DRIVE_TYPE,
    INITIAL_STATE,
    OVER_PROVISIONING,
    PARTITION,
    SEVERAL,
    SHORT_TEST,
    SIZES,
    SPACE,
    STEADY_CAPACITIES,
    WA_DEVICE,
)
from spillway.plan import ycsb
from spillway.plan.arm import Arm
from spillway.plan.document import Plan
from spillway.plan.keys import PHASE_KEYS, WAITS
from spillway.quantity import human_bytes
from spillway.ssd.preset import presets

READS = ("readrandom", "seekrandom")
FILLS = ("fillseq", "fillrandom", "filluniquerandom", "overwrite")


def lint_plan(plan: Plan, title: str = "") -> Linted:
    """The table of a plan. ``title``: what the table is called; the plan's path unless given."""
    judges: tuple[Callable[[Sequence[Arm]], Remark], ...] = (
        _short_test, _wa_device, _initial_state, _data_set, _space, _over_provisioning, _drive_type,
    )  # fmt: skip
    remarks = [judge(plan.arms) for judge in judges]
    return table_of(title or str(plan.path), "plan", with_answers(remarks, plan.answers, report_stale=True))


def _emulated(arm: Arm) -> bool:
    return bool(arm.settings["drive.kind"] == "emulated")


def _named(values: Sequence[object], most: int = 4) -> str:
    """Distinct values in their order, the rest counted."""
    distinct = list(dict.fromkeys(str(value) for value in values))
    more = len(distinct) - most
    return ", ".join(distinct[:most]) + (f" and {more} more" if more > 0 else "")


def _of(count: int, total: int) -> str:
    return "every arm" if count == total else f"{count} of {total} arms"


# ---------------------------------------------------------------- 1: short tests


def _measured(arm: Arm) -> list[dict[str, Any]]:
    return [phase for phase in arm.phases if phase["measured"] and phase["workload"] not in WAITS]


def _pair_bytes(arm: Arm) -> float:
    return float(arm.settings["load.key_bytes"] + arm.settings["load.value_bytes"])


def written_bytes(arm: Arm) -> float | None:
    """User bytes that the measured phases put; None where a phase ends by time."""
    total = 0.0
    for phase in _measured(arm):
        if phase["duration_s"] is not None and phase["workload"] not in READS:
            return None
        total += _phase_bytes(arm, phase)
    return total


def _phase_bytes(arm: Arm, phase: dict[str, Any]) -> float:
    workload, of = phase["workload"], phase["ycsb"] or {}
    if workload in READS:
        return 0.0
    if workload in (ycsb.LOAD, ycsb.RUN):
        record = of.get("fieldcount", 10) * of.get("fieldlength", 100)
        if workload == ycsb.LOAD:
            return float(record * (phase["operations"] or of.get("insertcount") or of.get("recordcount", 0)))
        mix = {name: of.get(f"{name}proportion", 0) for name in ("read", "update", "insert", "scan", "readmodifywrite")}
        writes = (mix["update"] + mix["insert"] + mix["readmodifywrite"]) / (sum(mix.values()) or 1)
        operations = of.get("operationcount") or (phase["operations"] or 0) * phase["threads"]
        return float(record * operations * writes)
    operations = phase["operations"] or (arm.settings["load.num"] if workload in FILLS else 0)
    share = 1.0
    if workload == "readrandomwriterandom":
        percent = phase["read_write_percent"]
        share = 1 - (90 if percent is None else percent) / 100
    return float(operations * phase["threads"] * share * _pair_bytes(arm))


def _goes_until_steady(arm: Arm) -> bool:
    phases = [phase for phase in _measured(arm) if phase["workload"] not in READS]
    return bool(phases) and any(phase.get("until") == "steady" for phase in phases)


def _short_test(arms: Sequence[Arm]) -> Remark:
    short = [arm for arm in arms if not _is_long(arm)]
    if not short:
        return Remark(SHORT_TEST, "ok", f"{_length_words(arms)}: {_long_words(arms)}")
    volume = _volume_words(short)
    looked = (
        f"{_length_words(short)}{f': {volume}' if volume else ''}; nothing makes {_of(len(short), len(arms))} steady"
    )
    return Remark(SHORT_TEST, "finding", looked, _longer(short))


def _only_reads(arm: Arm) -> bool:
    return all(phase["workload"] in READS for phase in _measured(arm))


def _long_words(arms: Sequence[Arm]) -> str:
    if any(map(_goes_until_steady, arms)):
        return 'until = "steady"'
    return "reads alone" if all(map(_only_reads, arms)) else _volume_words(arms)


def _is_long(arm: Arm) -> bool:
    if _goes_until_steady(arm) or _only_reads(arm):
        return True
    written, capacity = written_bytes(arm), arm.capacity_bytes()
    return bool(written and capacity and written >= STEADY_CAPACITIES * capacity)


def _length_words(arms: Sequence[Arm]) -> str:
    """The keys that end the measured phases, with their values."""
    said = []
    for arm in arms:
        for phase in _measured(arm):
            if phase["duration_s"] is not None:
                said.append(f"phases.{phase['name']}.duration_s = {phase['duration_s']:g}")
            elif phase["operations"] is not None:
                said.append(f"phases.{phase['name']}.operations = {phase['operations']}")
            elif phase["workload"] in (ycsb.LOAD, ycsb.RUN):
                key = "recordcount" if phase["workload"] == ycsb.LOAD else "operationcount"
                said.append(f"ycsb.{key} = {(phase['ycsb'] or {}).get(key, 0)}")
            else:
                said.append(f"load.num = {arm.settings['load.num']}")
    return _named(said, 3)


def _volume_words(arms: Sequence[Arm]) -> str:
    shares = []
    for arm in arms:
        written, capacity = written_bytes(arm), arm.capacity_bytes()
        if written is not None and capacity:
            shares.append(written / capacity)
    if not shares:
        return ""
    least, most = min(shares), max(shares)
    several = f"{least:.2g} to {most:.2g}" if f"{least:.2g}" != f"{most:.2g}" else f"{least:.2g}"
    return f"user writes of {several} x the capacity"


def _longer(arms: Sequence[Arm]) -> str:
    until = 'set `until = "steady"` in the measured phase, or ' if "until" in PHASE_KEYS else ""
    capacities = [capacity for arm in arms if (capacity := arm.capacity_bytes())]
    whole = f" ({human_bytes(STEADY_CAPACITIES * max(capacities))})" if capacities else ""
    return f"{until}raise `duration_s` or `operations` until host writes reach 3 x the capacity{whole}"


# ---------------------------------------------------------------- 2: the drive's write amplification


def _wa_device(arms: Sequence[Arm]) -> Remark:
    plain = [arm for arm in arms if not _emulated(arm)]
    if not plain:
        return Remark(WA_DEVICE, "ok", 'drive.kind = "emulated": the model counts NAND bytes')
    blind = [arm for arm in plain if arm.settings["drive.smart"] == "off" and not arm.has_estimate()]
    if blind:
        looked = f'drive.smart = "off" and no drive.estimate in {_of(len(blind), len(arms))}'
        return Remark(WA_DEVICE, "finding", looked, 'set `drive.smart = "auto"`, or `drive.estimate.preset`')
    if all(arm.has_estimate() for arm in plain):
        return Remark(WA_DEVICE, "ok", "drive.estimate: a model of the drive is given the same writes")
    looked = 'drive.smart = "auto" on drive.kind = "directory": not every drive counts its NAND bytes'
    change = "`spillway drive` says what the drive counts; else set `drive.estimate.preset`"
    return Remark(WA_DEVICE, "cannot tell", looked, change)


# ---------------------------------------------------------------- 3: initial state


def _state(arm: Arm) -> str:
    get = arm.settings
    if get["kept.from"]:
        return "kept"
    return str(get["initial.kind"]) if _emulated(arm) else "unknown"


def _states_words(arms: Sequence[Arm]) -> str:
    words = []
    for arm in arms:
        get = arm.settings
        if get["kept.from"]:
            words.append("kept.from")
        elif _emulated(arm):
            fill = (
                f", initial.fill = {get['initial.fill']:g}" if get["initial.kind"] in ("steady", "sequential") else ""
            )
            words.append(f'initial.kind = "{get["initial.kind"]}"{fill}')
        else:
            words.append('drive.kind = "directory"')
    return _named(words)


def _initial_state(arms: Sequence[Arm]) -> Remark:
    states = {_state(arm) for arm in arms}
    looked = _states_words(arms)
    if "unknown" in states:
        return Remark(
            INITIAL_STATE, "finding", f"{looked}: what the drive held before is not known",
            "purge and precondition the drive first, and start from `kept.from`; or answer with what you did to it",
        )  # fmt: skip
    if states == {"trimmed"} and not all(map(_is_long, arms)):
        return Remark(
            INITIAL_STATE, "finding", f"{looked} alone: a drive that was never full has nothing to collect yet",
            'set `initial.kind = "steady"`, or add an arm that does',
        )  # fmt: skip
    return Remark(INITIAL_STATE, "ok", looked)


# ---------------------------------------------------------------- 4: data-set size


def data_bytes(arm: Arm) -> float:
    """Bytes of the pairs that the plan's phases load."""
    loads = [phase for phase in arm.phases if phase["workload"] in (ycsb.LOAD, ycsb.RUN)]
    if loads:
        of = loads[0]["ycsb"] or {}
        return float(of.get("recordcount", 0) * of.get("fieldcount", 10) * of.get("fieldlength", 100))
    return float(arm.settings["load.num"] * _pair_bytes(arm))


def _data_set(arms: Sequence[Arm]) -> Remark:
    key = "ycsb.recordcount" if any(phase["ycsb"] for arm in arms for phase in arm.phases) else "load.num"
    shares = [data_bytes(arm) / capacity for arm in arms if (capacity := arm.capacity_bytes())]
    if shares:
        words = f"data set / capacity {_named([f'{share:.2g}' for share in sorted(shares)])}"
    else:
        words = f"data set {_named([human_bytes(data_bytes(arm)) for arm in arms])}, capacity not known"
    by_drive: dict[str, list[float]] = {}
    for arm in arms:
        by_drive.setdefault(_drive(arm), []).append(data_bytes(arm) / (arm.capacity_bytes() or 1))
    if any(max(sizes) >= SEVERAL * min(sizes) > 0 for sizes in by_drive.values()):
        return Remark(DATA_SET, "ok", f"{words} (by {key})")
    return Remark(DATA_SET, "finding", f"{words} (by {key})", _several_sizes(arms[0], key))


def _several_sizes(arm: Arm, key: str) -> str:
    capacity, data = arm.capacity_bytes(), data_bytes(arm)
    count = arm.phases[0]["ycsb"].get("recordcount", 0) if key != "load.num" else arm.settings["load.num"]
    if not capacity or not data or not count:
        return f'sweep it: `[sweep]` with `"{key}" = [...]` from 0.25 to 0.88 of the capacity'
    counts = ", ".join(f"{_rounded(count * share * capacity / data):_}" for share in SIZES)
    return f'sweep it: `[sweep]` with `"{key}" = [{counts}]` (0.25, 0.5, 0.88 of the capacity)'


def _rounded(count: float) -> int:
    """Two figures are enough of a number of pairs."""
    return int(float(f"{count:.2g}"))


# ---------------------------------------------------------------- 5: space amplification


def _space(arms: Sequence[Arm]) -> Remark:
    if all(arm.settings["engine.name"] == "raw" for arm in arms):
        return Remark(SPACE, "ok", 'engine.name = "raw": no store, so no space amplification')
    every = min(arm.settings["sample_interval_ms"] for arm in arms)
    return Remark(SPACE, "ok", f"space_bytes is sampled each {every} ms, so its peak too")


# ---------------------------------------------------------------- 6: over-provisioning


def _spare(arm: Arm) -> tuple[object, ...]:
    """What decides how much flash is spare; two arms that differ here differ in over-provisioning."""
    get, own = arm.settings, arm.drive_set
    keys = ("capacity.spare_factor", "capacity.over_provisioning")
    ratio = (get["fs.size"] or 0) / (arm.capacity_bytes() or 1)
    return (
        *(own.get(key) for key in keys),
        ratio or 1.0,
        get["initial.fill"] if _state(arm) in ("steady", "sequential") else 0.0,
    )


def over_provisioning(arm: Arm) -> float | None:
    """(physical - mapped) / mapped of a drive whose every LBA is mapped; None where it is not known."""
    full, physical = arm.preset_capacity_bytes(), arm.preset_physical_bytes()
    return None if not full or physical is None else physical / full - 1


def _over_provisioning(arms: Sequence[Arm]) -> Remark:
    emulated = [arm for arm in arms if _emulated(arm)]
    if not emulated:
        return Remark(
            OVER_PROVISIONING, "cannot tell", 'drive.kind = "directory": the partition is not in the plan',
            "measure once more on a partition of three quarters of the drive, the rest discarded",
        )  # fmt: skip
    known = [op for arm in emulated if (op := over_provisioning(arm)) is not None]
    words = _named([f"{op:.0%}" for op in known])
    figure = f"over-provisioning of the full drive {words}" if words else "over-provisioning not known"
    by_drive: dict[object, set[object]] = {}
    for arm in emulated:
        by_drive.setdefault(_drive(arm), set()).add(_spare(arm))
    if any(len(settings) > 1 for settings in by_drive.values()):
        return Remark(OVER_PROVISIONING, "ok", f"{figure}; it varies on one drive")
    return Remark(OVER_PROVISIONING, "finding", f"{figure}; the same throughout", _more_spare(emulated[0]))


def _more_spare(arm: Arm) -> str:
    capacity = arm.capacity_bytes()
    if not capacity:
        return 'add a point with `"fs.size"` at three quarters of the capacity, from `initial.kind = "trimmed"`'
    part = int(PARTITION * capacity) // 2**20
    size = f'"{part}MiB"' if part else "three quarters of the capacity"
    rest = f'`"initial.fill" = {PARTITION:g}`' if _state(arm) in ("steady", "sequential") else "the rest trimmed"
    return f'add a point with `"fs.size" = {size}` (0.75 of the capacity) and {rest}'


# ---------------------------------------------------------------- 7: types of drive


def _drive(arm: Arm) -> str:
    get = arm.settings
    return str(get["drive.preset"] or get["drive.preset_file"] or get["drive.path"] or "explicit")


def _drive_type(arms: Sequence[Arm]) -> Remark:
    drives = list(dict.fromkeys(_drive(arm) for arm in arms))
    key = "drive.preset" if _emulated(arms[0]) else "drive.path"
    if len(drives) > 1:
        return Remark(DRIVE_TYPE, "ok", f"{key}: {_named(drives)}")
    if key == "drive.path":
        return Remark(DRIVE_TYPE, "finding", f"{key}: one directory", "run it in a directory on another type of drive")
    others = [
        preset.name
        for preset in presets()
        if preset.name in ("intel-p3600", "intel-660p") and preset.name not in drives
    ]
    named = ", ".join(f'"{name}"' for name in [*drives, *others[:2]])
    change = f'sweep it: `[sweep]` with `"drive.preset" = [{named}]`' if others else "sweep `drive.preset`"
    return Remark(DRIVE_TYPE, "finding", f"{key}: {_named(drives)} alone", change)
