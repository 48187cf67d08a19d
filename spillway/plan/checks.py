"""Relations between the keys of a plan that can be seen before anything runs, each refused with one sentence."""

from pathlib import Path
from typing import Any

from spillway.errors import SpillwayError
from spillway.plan import ycsb
from spillway.plan.arm import Arm
from spillway.plan.keys import PAGE_BYTES, WAITS
from spillway.quantity import human_bytes, nearest
from spillway.ssd.preset import check_preset


def check_measured(phases: list[dict[str, Any]], label: str) -> None:
    """Raises SpillwayError unless some phase is measured."""
    if not any(phase["measured"] for phase in phases):
        raise SpillwayError(f"{label}phases: none is measured; leave out `measured = false` in one of them.")


def check_prepared(phases: list[dict[str, Any]], label: str) -> None:
    """Raises SpillwayError where a phase of a preparation ends by ``until``: it has no figures that could be steady."""
    for phase in phases:
        if phase["until"] is not None:
            raise SpillwayError(f"{label}phases: a preparation is not measured; leave out `until` in {phase['name']}.")


def check_until(arm: Arm, label: str) -> None:
    """Raises SpillwayError where a phase ends when the run is steady, the test ``writes`` asks for 3 capacities, and
    the capacity is not known."""
    tests = arm.settings["steady.tests"]
    waits = any(phase["until"] == "steady" for phase in arm.phases)
    if waits and arm.settings["drive.kind"] == "directory" and (tests is None or "writes" in tests):
        raise SpillwayError(
            f'{label}until = "steady" asks for host writes of 3 capacities, and that of a directory is not known: '
            'name the other tests, as in steady.tests = ["cusum", "window", "drift", "end"].'
        )


def check_phase(phase: dict[str, Any], where: str) -> None:
    """Raises SpillwayError where a phase that does not end by itself has no end, where two keys end it, where ``until``
    is of a phase that is not measured, or where a key of its arrivals is missing."""
    if phase["workload"] in WAITS:
        return
    ends = [key for key in ("operations", "duration_s") if phase[key] is not None]
    _check_arrivals(phase, where)
    _check_mix(phase, where)
    if phase["until"] is not None and not phase["measured"]:
        raise SpillwayError(f"{where}: until is for a phase that is measured; leave out `measured = false`.")
    # A fill of every key once ends by itself too, as in db_bench; of RUN see spillway/plan/ycsb.py.
    itself = ("fillseq", "fillrandom", "filluniquerandom", "overwrite", ycsb.LOAD, ycsb.RUN)
    if not ends and phase["workload"] not in itself and phase["arrivals"] != "trace":
        raise SpillwayError(f"{where}: {phase['workload']} has no end: give operations or duration_s.")
    if len(ends) == 2:
        raise SpillwayError(f"{where}: operations and duration_s both end the phase: give one of them.")


def _check_arrivals(phase: dict[str, Any], where: str) -> None:
    """What says how operations arrive is all there."""
    process = phase["arrivals"]
    if process is None:
        return
    needs = {"bursts": ("rate_ops_s", "burst_s", "gap_s"), "trace": ("arrivals_file",)}.get(process, ("rate_ops_s",))
    for key in needs:
        if phase[key] is None:
            raise SpillwayError(f'{where}: arrivals = "{process}" needs {key}.')


def _check_mix(phase: dict[str, Any], where: str) -> None:
    """What an exact mix is of is there, and nothing else paces its writer."""
    if phase["exact_mix"] and phase["read_write_percent"] is None:
        raise SpillwayError(f"{where}: exact_mix needs read_write_percent, the share of reads.")
    if phase["exact_mix"] and phase["write_rate_ops_s"] is not None:
        raise SpillwayError(f"{where}: exact_mix and write_rate_ops_s both pace the writer: give one of them.")


def check_rates(phases: list[dict[str, Any]], label: str) -> None:
    """Raises SpillwayError where ``rate_of`` names no earlier phase with operations, or is not a phase's only rate."""
    for index, phase in enumerate(phases):
        named, where = phase["rate_of"], f"{label}phases[{index}]"
        if named is None:
            continue
        if phase["workload"] == "readwhilewriting":
            raise SpillwayError(f"{where}: rate_of is one rate of all threads, and readwhilewriting has two.")
        if phase["rate_ops_s"] is not None or phase["arrivals"] is not None:
            raise SpillwayError(f"{where}: rate_of is a rate of its own, at a constant pace: leave out the others.")
        earlier = {each["name"]: each["workload"] for each in phases[:index]}
        if named not in earlier:
            raise SpillwayError(f"{where}: rate_of is {named!r}, no phase before this one{nearest(named, earlier)}")
        if earlier[named] in WAITS:
            raise SpillwayError(f"{where}: rate_of is {named!r}, which has no operations: name a phase that has.")


def check_drive(arm: Arm, label: str) -> None:
    """Raises SpillwayError unless the drive and its initial state are named, each once."""
    get = arm.settings
    if get["drive.kind"] == "directory":
        if not get["drive.path"]:
            raise SpillwayError(
                f'{label}drive.kind is "directory" and drive.path is missing: name the directory to run in.'
            )
        if not Path(get["drive.path"]).is_dir():
            raise SpillwayError(f"{label}drive.path: there is no directory {get['drive.path']}; make it first.")
        _check_estimate(arm, label)
        return
    if get["data_directory"] and not Path(get["data_directory"]).is_dir():
        raise SpillwayError(f"{label}data_directory: there is no directory {get['data_directory']}; make it first.")
    if get["drive.preset"] and get["drive.preset_file"]:
        raise SpillwayError(f"{label}drive.preset and drive.preset_file both name the drive: give one of them.")
    if get["drive.preset"]:
        check_preset(get["drive.preset"], f"{label}drive.preset")
    if get["drive.preset_file"] and not Path(get["drive.preset_file"]).is_file():
        raise SpillwayError(f"{label}drive.preset_file: there is no file {get['drive.preset_file']}.")
    _check_initial(arm, label)


def _check_estimate(arm: Arm, label: str) -> None:
    get = arm.settings
    if not arm.has_estimate():
        return
    if get["drive.estimate.preset"] and get["drive.estimate.preset_file"]:
        raise SpillwayError(f"{label}drive.estimate.preset and preset_file both name the drive: give one of them.")
    if get["drive.estimate.preset"]:
        check_preset(get["drive.estimate.preset"], f"{label}drive.estimate.preset")
    elif not Path(get["drive.estimate.preset_file"]).is_file():
        raise SpillwayError(f"{label}drive.estimate.preset_file: there is no file {get['drive.estimate.preset_file']}.")
    _check_initial(arm, label)


def _check_initial(arm: Arm, label: str) -> None:
    get = arm.settings
    if get["initial.kind"] == "file" and not Path(get["initial.path"]).is_file():
        raise SpillwayError(f"{label}initial.path: there is no state file {get['initial.path'] or '(none is named)'}.")
    if get["initial.kind"] in ("steady", "sequential") and get["initial.fill"] == 0:
        raise SpillwayError(
            f'{label}initial.fill is 0, so nothing is {get["initial.kind"]}: use initial.kind = "trimmed".'
        )


def check_load(arm: Arm, label: str) -> None:
    """Raises SpillwayError where the load's valid data is more than the drive or its partition holds."""
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
    if size_bytes == 0 or size_bytes % PAGE_BYTES:
        raise SpillwayError(f"{label}fs.size is {size_bytes}; it takes a multiple of {PAGE_BYTES} bytes, a page.")
    if capacity is not None and size_bytes > capacity:
        raise SpillwayError(
            f"{label}fs.size = {human_bytes(size_bytes)} is more than the drive holds ({human_bytes(capacity)}): lower "
            "it or raise drive.capacity."
        )
