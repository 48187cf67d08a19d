"""How far from steady a way of preconditioning leaves a drive, by the drive model: the same writes, in virtual time.

A drive is trimmed, written as the way says, and then given uniform random writes of one mapping unit over half of what
was written. Their ``wa_device`` is held against that of the same writes on a drive that starts in its steady state.

Ignored: what a real controller does beside garbage collection, and everything that is smaller in the scaled drive than
erase blocks and caches say.
"""

import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from spillway.errors import DriveFull, Interrupted, SpillwayError
from spillway.native.process import Event, run_native
from spillway.precondition.order import Units, sprandom_order
from spillway.precondition.target import Target
from spillway.profile.target import parse_target as parse_profile_target
from spillway.profile.target import scaled
from spillway.quantity import human_bytes, parse_size
from spillway.ssd.preset import check_preset
from spillway.ssd.simulate import DriveChoice, drive_request

Document = dict[str, Any]
Watch = Callable[[str, Event], None]

SEED = 1
OP_DIGITS = 4  # of an over-provisioning in a job
MEASURED = 0.5  # of what was written: long enough for two digits, too short to bring the drive to steady itself
ONE_PASS, TWO_STEPS = "sprandom", "once in order, twice at random"
# How a drive that was written in order is overwritten, in capacities.
OVERWRITES = {"once in order": 0.0, "once in order, once at random": 1.0, TWO_STEPS: 2.0}


@dataclass(frozen=True)
class Drive:
    """A drive model that stands for a real drive. ``over_provisioning``: (T - U) / U of the part that is written."""

    words: str
    request: Document
    over_provisioning: float
    unit_bytes: int
    logical_units: int  # of the model
    fill: float  # share of the model that is written


@dataclass(frozen=True)
class Residual:
    """How far from steady one way of preconditioning leaves the drive: ``wa_device`` of the writes after it."""

    way: str
    wa_device: float
    steady: float

    @property
    def deviation(self) -> float:
        """Of ``wa_device`` from its steady value, as a share of that."""
        return self.wa_device / self.steady - 1

    @property
    def words(self) -> str:
        """One line of a table."""
        return f"wa_device {self.wa_device:.2f} after it, steady {self.steady:.2f} ({100 * self.deviation:+.1f} %)"


def drive_of(target: Target, preset: str | None, physical: str | None) -> Drive | None:
    """The model by --preset or --physical; None where neither is given. Raises SpillwayError."""
    if preset is not None and physical is not None:
        raise SpillwayError("--preset and --physical both say how much flash there is: give one of them.")
    if preset is not None:
        return _preset(target, preset)
    return _explicit(target, parse_size(physical, "--physical")) if physical is not None else None


def _preset(target: Target, name: str) -> Drive:
    check_preset(name, "--preset")
    whole = drive_request(DriveChoice(preset=name))
    of_preset = run_native("ssd-show", {"drive": whole})
    if of_preset["drive"].get("gc") is None:
        raise SpillwayError(f"--preset {name} is no flash drive: it has no state to be brought to; name another one.")
    layout = of_preset["layout"]
    profiled = parse_profile_target(f"preset:{name}")
    small = scaled(profiled)
    request = profiled.request(SEED, "steady", small.settings)["target"]["drive"]
    shown = run_native("ssd-show", {"drive": request})
    fill = target.size_bytes / (target.whole_bytes or target.size_bytes)
    logical = shown["layout"]["logical_units"]
    capacity = human_bytes(shown["layout"]["capacity_bytes"])
    words = f"the preset {name}" + (f", scaled to {capacity}" if small.remarks else "")
    unit = int(shown["layout"]["capacity_bytes"] // logical)
    spare = layout["data_units"] / layout["logical_units"] / fill - 1
    return _checked(Drive(words, request, spare, unit, logical, fill), f"--preset {name}")


def _explicit(target: Target, physical_bytes: int) -> Drive:
    spare = physical_bytes / target.size_bytes - 1
    if round(spare, OP_DIGITS) <= 0:
        raise SpillwayError(
            f"--physical is {human_bytes(physical_bytes)}, and {human_bytes(target.size_bytes)} are written: a drive "
            "has more flash than it shows; give what its maker states, or a smaller --size."
        )
    request = drive_request(DriveChoice(op=repr(spare)))
    layout = run_native("ssd-show", {"drive": request})["layout"]
    logical = layout["logical_units"]
    unit = int(layout["capacity_bytes"] // logical)
    words = f"a drive of {human_bytes(layout['capacity_bytes'])} with greedy garbage collection"
    return _checked(Drive(words, request, spare, unit, logical, 1.0), "--physical")


def _checked(drive: Drive, flag: str) -> Drive:
    if drive.over_provisioning <= 0:
        raise SpillwayError(f"{flag} leaves no spare flash for random writes: name another drive, or a smaller --size.")
    return drive


def residuals_of(drive: Drive, watch: Watch | None = None) -> list[Residual]:
    """Each way, the one pass last where fio has it for this over-provisioning. Takes seconds. Raises SpillwayError."""
    try:
        return _residuals_of(drive, watch)
    except DriveFull as error:
        raise SpillwayError(
            f"{drive.words} cannot be written at random with an over-provisioning of "
            f"{drive.over_provisioning:.{OP_DIGITS}f}, by its model: name a drive with more "
            "flash (--preset, --physical), or a smaller --size."
        ) from error


def _residuals_of(drive: Drive, watch: Watch | None) -> list[Residual]:
    steady = _simulated(drive, "steady", 0.0, watch)
    found = [Residual(way, _simulated(drive, "sequential", times, watch), steady) for way, times in OVERWRITES.items()]
    if drive.over_provisioning < 1:
        order = sprandom_order(round(drive.fill * drive.logical_units), drive.over_provisioning, SEED)
        # Against a steady drive that is written in the same way: with a small mapping cache the pool's reads count.
        steady = _replayed(drive, "steady", order[:0], watch)
        found.append(Residual(ONE_PASS, _replayed(drive, "trimmed", order, watch), steady))
    return found


def _simulated(drive: Drive, kind: str, overwrites: float, watch: Watch | None) -> float:
    request = {
        "drive": drive.request,
        "initial": {"kind": kind, "fill": drive.fill, "warmup_capacities": overwrites, "path": ""},
        "seed": SEED,
        "workload": {
            **{"name": "randwrite", "bs_bytes": drive.unit_bytes, "iodepth": 1, "range": drive.fill},
            "writes_capacities": MEASURED * drive.fill,
        },
    }
    return float(_asked("ssd-simulate", request, watch)["wa_device"])


def _replayed(drive: Drive, kind: str, order: Units, watch: Watch | None) -> float:
    """The writes of ``order`` and then those that are measured, as a trace through a pool of one page: it writes a page
    as soon as it is given another, and reads that one."""
    units = round(drive.fill * drive.logical_units)
    after = np.random.default_rng(SEED + 1).integers(0, units, int(MEASURED * units))
    with tempfile.TemporaryDirectory() as directory:
        trace = Path(directory) / "trace"
        _write_trace(trace, np.concatenate([order, after]))
        request = {
            "seed": SEED,
            "target": {
                "kind": "simulated",
                "drive": drive.request,
                "initial": {"kind": kind, "fill": drive.fill, "warmup_capacities": 0},
            },
            "pool": {"pages": 1, "page_bytes": drive.unit_bytes, "policy": "lru", "write_back": 1},
            "workload": {"name": "trace", "trace": str(trace), "warmup_operations": len(order)},
        }
        counters = _asked("bufferpool", request, watch)["counters"]
    return float(sum(counters["nand_bytes_programmed"].values()) / counters["host_bytes_written"])


def _write_trace(path: Path, units: Units) -> None:
    with path.open("w", encoding="ascii") as file:
        file.writelines(f"w {unit}\n" for unit in units.tolist())


def _asked(command: str, request: Document, watch: Watch | None) -> Document:
    result = run_native(command, request, None if watch is None else lambda event: watch("drive model", event))
    if not result["complete"]:
        raise Interrupted("the drive model was ended before it had a figure; no job was written.")
    return result
