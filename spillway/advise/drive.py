"""What the drive can do: service times by size and concurrency, rates of streams, size and endurance, and its model.

A preset is measured in virtual time, by the points of a profile that are needed (some seconds). A profile directory has
them; where it is of a preset, that is the model, and where it is of a real drive, a model is made from its figures:

    dies          k_r, the reads at once that saturate it, as a power of two
    tR            latency of one random read, less what the command itself takes
    tPROG         flash page bytes * planes / rate of one stream of writes, at the most streams that were measured
    spare factor  1 - rho, with A(rho) = stream rate / steady random rate of writes, A as in spillway/models/mixed.py

Holds for flash. What a profile does not say is not known: the endurance of a real drive, unless its maker's rating is
given.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from scipy.optimize import brentq

from spillway.errors import SpillwayError
from spillway.models.arrays import Array
from spillway.models.mixed import write_amplification
from spillway.native.process import run_native
from spillway.profile import estimate, grids, virtual
from spillway.profile.document import Pio, Profile, read_profile
from spillway.profile.points import Sample, pio_point
from spillway.profile.prober import Prober
from spillway.profile.target import LEAST_BLOCKS_PER_PLANE, parse_target, scaled
from spillway.ssd.preset import check_preset, preset_path, traits
from spillway.ssd.simulate import DriveChoice, drive_request

Document = dict[str, Any]

PAGE = 4096
BLOCK_SIZES = (4096, 16384)  # of a table's blocks: service times between them follow a line
BULK_BYTES = grids.BULK_BYTES  # of an access of a stream
STREAMS_AT_ONCE = (1, 2, 4, 8, 16)  # streams at once, of 256 KiB accesses in order
STREAM_GAIN = 0.05  # doubling the streams buys less than this beyond the knee, as for k_w (spillway/fit/knee.py)
COMMAND_SHARE = 0.3  # of a read's latency that is not tR. Source: guess, between the presets' 0.1 and 0.5
LEAST_AT_ONCE, MOST_AT_ONCE = 0.5, 2**16  # reads, as a fit; the depth of an NVMe queue is the most
MOST_MB_S, MOST_US = 1e6, 1e8  # of a stream, of one access: a thousand times the fastest and the slowest that are known
LEAST_MB_S, LEAST_US = 1e-3, 1e-3
MODEL_PLANES = 4  # of a die of a model made from a profile. Source: guess, usual for TLC
MODEL_PAGE = 16384
MODEL_BLOCK_PAGES = 64


@dataclass(frozen=True)
class ServiceTimes:
    """From samples: reads by block size and reads in flight, and streams. Times in us, rates in MB/s."""

    reads: Mapping[int, Sequence[tuple[int, float, float]]]  # block bytes → (k, mean, p99), k ascending
    streams: Mapping[str, Sequence[tuple[int, float]]]  # read, write → (streams at once, MB/s), ascending

    def read_us(self, block_bytes: float, k: float) -> float:
        """Mean time of one random read with ``k`` in flight."""
        return self._of(block_bytes, k, 1)

    def reads_us(self, block_bytes: float, in_flight: Array) -> Array:
        """``read_us`` for each of several numbers in flight."""
        found: Array = _by_size({size: _curve(points, in_flight) for size, points in self.reads.items()}, block_bytes)
        return found

    def read_p99_us(self, block_bytes: float, k: float) -> float:
        """And its 99th percentile."""
        return self._of(block_bytes, k, 2)

    def read_cost_us(self, block_bytes: float) -> float:
        """Time of the drive for each read when it is saturated: the least of latency / k."""
        return float(_by_size(self._costs, block_bytes))

    def part_us(self, read_bytes: float, in_flight: Array) -> Array:
        """Mean time of a read of a part of a file, with so many in flight. What a file holds was written in order, so
        that neighbouring pages of the drive share pages of its flash and dies: on the line from one page read at random
        to 256 KiB of a stream. Random reads of 16 KiB, whose pages were written at random, take longer."""
        streams = self.streams["read"]
        rates = np.interp(in_flight, [k for k, _ in streams], [rate for _, rate in streams])
        found: Array = _part(self.reads_us(PAGE, in_flight), in_flight * BULK_BYTES / rates, read_bytes)
        return found

    def part_cost_us(self, read_bytes: float) -> float:
        """Time of the drive for each of them when it is saturated."""
        return float(_part(self.read_cost_us(PAGE), BULK_BYTES / self.most_mb_s("read"), read_bytes))

    def stream_mb_s(self, op: str, streams: float = 1) -> float:
        """Rate of so many streams of 256 KiB accesses together."""
        points = self.streams[op]
        return float(np.interp(streams, [k for k, _ in points], [rate for _, rate in points]))

    def most_mb_s(self, op: str) -> float:
        """The highest rate of any number of streams."""
        return self._most[op]

    @cached_property
    def _most(self) -> dict[str, float]:
        return {op: max(rate for _, rate in points) for op, points in self.streams.items()}

    @cached_property
    def _costs(self) -> dict[int, float]:
        return {size: min(mean / k for k, mean, _ in points) for size, points in self.reads.items()}

    def streams_at_once(self) -> int:
        """The streams of writes beyond which doubling them buys less than 5 % (P25)."""
        points = self.streams["write"]
        for (k, rate), (_, doubled) in pairwise(points):
            if doubled < rate * (1 + STREAM_GAIN):
                return k
        return points[-1][0]

    def _of(self, block_bytes: float, k: float, index: int) -> float:
        return float(_by_size({size: _at(points, k, index) for size, points in self.reads.items()}, block_bytes))


def _at(points: Sequence[tuple[int, float, float]], k: float, index: int) -> float:
    """A power of k between two measured k; beyond the last the drive is saturated: twice as many wait twice as long."""
    last = points[-1]
    if k >= last[0]:
        return last[index] * k / last[0]
    above = next(i for i, point in enumerate(points) if point[0] > k)
    if above == 0:
        return points[0][index]
    (low, *_), (high, *_) = points[above - 1], points[above]
    share = math.log(k / low) / math.log(high / low)
    return float(points[above - 1][index] ** (1 - share) * points[above][index] ** share)


def _curve(points: Sequence[tuple[int, float, float]], k: Array) -> Array:
    """The means that ``_at`` finds, for each of several k."""
    at = np.array([each[0] for each in points], dtype=np.float64)
    means = np.array([each[1] for each in points])
    between = np.exp(np.interp(np.log(k), np.log(at), np.log(means)))
    return np.asarray(np.where(k > at[-1], means[-1] * k / at[-1], between), dtype=np.float64)


@dataclass(frozen=True)
class Drive:
    """A drive to advise on. None: not known."""

    name: str
    words: str  # where its figures are from
    request: Document  # the contract's drive
    capacity_bytes: int
    physical_bytes: float | None
    rated_pe_cycles: float | None
    rated_bytes: float | None  # host bytes that the maker warrants
    data_share: float  # logical units / units available to data
    least_capacity_bytes: int  # of a scaled model, which keeps erase blocks to choose among
    times: ServiceTimes
    pio: Pio | None
    program_us: float = 0.0  # of one page of the flash, in which a die does nothing else
    reads_overtake: int = 1  # how many reads pass a queued program
    remarks: tuple[str, ...] = field(default=())

    @property
    def has_endurance(self) -> bool:
        """Whether it is known what the drive takes until it is worn."""
        return self.rated_bytes is not None or bool(self.rated_pe_cycles and self.physical_bytes)

    def model(self, factor: float, extra_op: float) -> Document:
        """The contract's drive with 1/``factor`` of the capacity; ``extra_op`` of it is no part of the partition."""
        capacity = self.capacity_bytes / factor * (1 - extra_op)
        settings = {"capacity.capacity_bytes": str(int(capacity) // PAGE * PAGE)}
        if extra_op:
            settings["capacity.spare_factor"] = f"{1 - self.data_share * (1 - extra_op):.6f}"
        return self.request | {"set": self.request["set"] | settings}


def of_preset(name: str, settings: tuple[str, ...] = (), seed: int = 1, rated_bytes: float | None = None) -> Drive:
    """A preset, measured in virtual time. Raises SpillwayError for what is no preset, or no flash."""
    check_preset(name, "--preset")
    overrides = dict(setting.partition("=")[::2] for setting in settings)
    has = traits(preset_path(name), overrides)
    if has is not None and has.is_disk:
        raise SpillwayError(f"--preset {name} is a disk, and advice is for flash: name a drive of flash.")
    target = parse_target(f"preset:{name}", settings=settings)
    small = scaled(target)
    answers = [virtual.run(each, target, small, seed) for each in (STREAMS, ACCESSES)]
    samples = [sample for answer in answers for sample in answer.samples]
    drive = _modelled(name, drive_request(DriveChoice(preset=name, settings=settings)), rated_bytes)
    kept = {key: value for key, value in small.settings.items() if key.startswith("slc_cache.")}
    return replace(
        drive,
        words=f"preset {name}, measured in virtual time",
        request=drive.request | {"set": kept | drive.request["set"]},
        times=service_times(samples, f"preset {name}"),
        pio=estimate.pio(samples, PAGE),
        remarks=("its SLC cache is taken as full, as in a steady state",) if kept else (),
    )


def of_profile(path: Path, rated_bytes: float | None = None) -> Drive:
    """A drive by its profile directory. Raises SpillwayError for one that is damaged or lacks what is needed."""
    profile = read_profile(path)
    own = _preset_of(profile)
    if own is not None:
        has = traits(preset_path(str(own.preset)), dict(setting.partition("=")[::2] for setting in own.settings))
        if has is not None and has.is_disk:
            raise SpillwayError(f"{path} is a profile of a disk, and advice is for flash: name a drive of flash.")
    times = service_times(profile.samples, str(path))
    pio = profile.pio.get(PAGE)
    if (
        pio is None
        or not LEAST_AT_ONCE <= pio.k_r.value <= MOST_AT_ONCE
        or not LEAST_MB_S <= pio.write_max_mb_s <= MOST_MB_S
    ):
        raise SpillwayError(
            f"{path}: the profile does not say how many reads saturate the drive and how fast it writes at random, "
            "which a model of the drive needs; profile it again with --destroy-data and a larger --budget."
        )
    if own is not None:
        drive = _modelled(profile.name, drive_request(own), rated_bytes)
        return replace(drive, words=f"profile {path}, of preset {own.preset}", times=times, pio=pio)
    drive = _modelled(profile.name, _made_model(profile, times, pio), rated_bytes)
    if rated_bytes is None:
        drive = replace(drive, physical_bytes=None, rated_pe_cycles=None)
    made = "a model of the drive made from its profile stands in for it; its garbage collection is a guess"
    return replace(drive, words=f"profile {path}, of {profile.name}", times=times, pio=pio, remarks=(made,))


# ---------------------------------------------------------------------------------------------------------------------
# Measuring a preset


def _measure_streams(prober: Prober, _: float) -> None:
    for op in ("write", "read"):  # what is read was written in order
        virtual.each(prober, (pio_point("sequential", op, grids.BULK_BYTES, k) for k in STREAMS_AT_ONCE))


def _measure_accesses(prober: Prober, _: float) -> None:
    """Reads come first: they leave the drive as it is."""
    for op in ("read", "write"):
        sizes = list(BLOCK_SIZES) if op == "read" else [PAGE]
        virtual.each(prober, grids.pio_random((op,), sizes, grids.CONCURRENCIES))


STREAMS = virtual.Procedure("streams", "sequential", _measure_streams)
ACCESSES = virtual.Procedure("random accesses", "steady", _measure_accesses)


def service_times(samples: Sequence[Sample], where: str) -> ServiceTimes:
    """Raises SpillwayError for samples without what is needed."""
    reads = {}
    for size in BLOCK_SIZES:
        chosen = sorted(estimate.pio_samples(samples, "random", "read", size), key=lambda each: each.k)
        if len({each.k for each in chosen}) > 1:
            reads[size] = [(k, *_means(chosen, k)) for k in sorted({each.k for each in chosen})]
    if PAGE not in reads:
        raise SpillwayError(
            f"{where}: there are no random reads of 4 KiB at several concurrencies, from which latencies are "
            "predicted; profile the drive again."
        )
    if not all(LEAST_US <= each <= MOST_US for curve in reads.values() for _, *times in curve for each in times):
        raise SpillwayError(
            f"{where}: a random read takes less than {LEAST_US:g} or more than {MOST_US:g} us, which no drive does; "
            "profile the drive again."
        )
    streams: dict[str, list[tuple[int, float]]] = {}
    for op in ("read", "write"):
        largest = [s for s in samples if (s.procedure, s.pattern, s.op) == ("pio", "sequential", op)]
        size = max((each.bs_bytes for each in largest), default=0)
        found = {each.k: each.bandwidth_mb_s for each in largest if each.bs_bytes == size}
        # A profile has one stream of large accesses, and several of smaller ones, which reach the drive's limit too.
        for each in largest:
            if each.k not in found or (each.k > 1 and each.bandwidth_mb_s > found[each.k]):
                found[each.k] = each.bandwidth_mb_s
        streams[op] = sorted(found.items())
    if not streams["write"]:
        raise SpillwayError(
            f"{where}: the drive was only read, and compactions write; profile it with --destroy-data on a file or a "
            "device that may be written to."
        )
    if not streams["read"]:
        raise SpillwayError(f"{where}: there are no reads in order, which compactions do; profile the drive again.")
    if not all(LEAST_MB_S <= rate <= MOST_MB_S for curve in streams.values() for _, rate in curve):
        raise SpillwayError(
            f"{where}: a stream has less than {LEAST_MB_S:g} or more than {MOST_MB_S:g} MB/s, which no drive has; "
            "profile the drive again."
        )
    return ServiceTimes(reads, streams)


def _means(samples: Sequence[Sample], k: int) -> tuple[float, float]:
    own = [each for each in samples if each.k == k]
    mean = float(np.mean([each.latency_mean_us for each in own]))
    return mean, float(np.mean([each.latency_p99_us for each in own]))


def _part(page_us: Any, bulk_us: Any, read_bytes: float) -> Any:
    """Of a read between one page and ``BULK_BYTES``, on a line through both, and beyond. Numbers or arrays of them."""
    return page_us + np.maximum(0.0, bulk_us - page_us) * max(0.0, read_bytes - PAGE) / (BULK_BYTES - PAGE)


def _by_size(values: Mapping[int, Any], size: float) -> Any:
    """A line through the values of two sizes, and beyond them; of one size, in proportion above it. Numbers or arrays
    of them."""
    if len(values) == 1:
        (only, value), *_ = values.items()
        return value * math.sqrt(max(1.0, size / only))
    (small, low), (large, high) = sorted(values.items())
    slope = np.maximum(0.0, (high - low) / (large - small))
    return np.maximum(low + slope * (size - small), 0.5 * low)


# ---------------------------------------------------------------------------------------------------------------------
# The drive's model


def _modelled(name: str, request: Document, rated_bytes: float | None) -> Drive:
    shown = run_native("ssd-show", {"drive": request})
    drive, layout = shown["drive"], shown["layout"]
    geometry = drive["geometry"]
    unit = int(geometry["mapping_unit_bytes"])
    planes = math.prod(int(geometry[key]) for key in ("channels", "chips_per_channel", "dies_per_chip"))
    block = int(geometry["page_bytes"]) * int(geometry["pages_per_block"])
    superblock = planes * int(geometry["planes_per_die"]) * block
    capacity = int(layout["capacity_bytes"])
    return Drive(
        name=name,
        words="",
        request=request,
        capacity_bytes=capacity,
        physical_bytes=float(layout["physical_units"] * unit),
        rated_pe_cycles=float(drive.get("wear_levelling", {}).get("rated_pe_cycles", 0)) or None,
        rated_bytes=rated_bytes,
        data_share=layout["logical_units"] / layout["data_units"],
        least_capacity_bytes=min(capacity, LEAST_BLOCKS_PER_PLANE * superblock),
        times=ServiceTimes({}, {}),
        pio=None,
        program_us=float(np.mean(drive["timing"]["program_ns"])) / 1e3,  # by page of a multi-bit cell
        reads_overtake=int(drive["timing"]["reads_overtake"]),
    )


def _preset_of(profile: Profile) -> DriveChoice | None:
    """The preset that was profiled, with what was set over it; None for a real drive."""
    kind, _, name = str(profile.target.get("words", "")).partition(":")
    if kind != "preset":
        return None
    check_preset(name, f"the profile's {profile.target['words']}")
    command = profile.conditions.get("command")
    words = [str(word) for word in command] if isinstance(command, list) else []
    settings = [value for flag, value in pairwise(words) if flag == "--set"]
    settings += [word.removeprefix("--set=") for word in words if word.startswith("--set=")]
    return DriveChoice(preset=name, settings=tuple(settings))


def _made_model(profile: Profile, times: ServiceTimes, pio: Pio) -> Document:
    """A drive model from a real drive's figures, as settings of a drive without a preset."""
    dies = 2 ** max(0, round(math.log2(pio.k_r.value)))
    channels = min(dies, 8)
    stream = times.most_mb_s("write")
    program_ns = MODEL_PAGE * dies * MODEL_PLANES / (stream * 1e6) * 1e9
    alone = times.read_us(PAGE, 1) * 1e3
    spare = _spare_factor(stream / pio.write_max_mb_s)
    capacity = profile.target.get("size_bytes")
    if not isinstance(capacity, int) or capacity < PAGE:
        raise SpillwayError(
            f"the profile of {profile.name} does not say how large the drive is (target.size_bytes): profile it again."
        )
    settings = {
        "geometry.channels": channels,
        "geometry.chips_per_channel": 1,
        "geometry.dies_per_chip": dies // channels,
        "geometry.planes_per_die": MODEL_PLANES,
        "geometry.pages_per_block": MODEL_BLOCK_PAGES,
        "geometry.page_bytes": MODEL_PAGE,
        "geometry.mapping_unit_bytes": PAGE,
        "capacity.capacity_bytes": capacity // PAGE * PAGE,
        "capacity.spare_factor": f"{spare:.4f}",
        "timing.read_ns": round(alone * (1 - COMMAND_SHARE)),
        "timing.read_command_ns": round(alone * COMMAND_SHARE),
        "timing.program_ns": round(program_ns),
        "timing.channel_mb_s": round(2 * max(stream, times.most_mb_s("read")) / channels) + 1,
        "timing.host_link_mb_s": round(1.1 * max(stream, times.most_mb_s("read"))) + 1,
        "write_cache.bytes": 4 * dies * MODEL_PLANES * MODEL_PAGE,
    }
    return drive_request(DriveChoice()) | {"set": {key: str(value) for key, value in settings.items()}}


def _spare_factor(amplification: float) -> float:
    """The spare factor at which uniform random writes are amplified so; between 3 and 50 %."""

    def excess(rho: float) -> float:
        return float(write_amplification(rho)) - max(amplification, 1.0)

    low, high = 0.5, 0.97
    if excess(low) >= 0:
        return 1 - low
    return 1 - high if excess(high) <= 0 else 1 - float(brentq(excess, low, high))
