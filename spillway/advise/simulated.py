"""The same traffic by the simulator of the tree, on the drive's model: bytes, waits and garbage collection in its time.

A tree of 1/f of the data with all sizes of the configuration, and the drive's capacity, divided by f has the same shape
and the same rates, in 1/f of the time: the parallelism, and so every bandwidth, stays. Times are multiplied by f
afterwards. The sync of a file, the read of its index and its record in the manifest take their time once in f times
(``divided_by``). f is as large as keeps the drive's erase blocks enough to choose among, the tree at least
``LEAST_DATA_BYTES``, and files ``LEAST_FILE_BYTES`` where that costs no more than ``MOST_FINE_BYTES`` of data: smaller
requests take longer for each byte.

A single level is simulated as L0 and an L1 without a limit, so that L0 gathers the files that the configuration says.

Every key is in the tree before the first put, in one level, as after a load in order and a compaction of everything.
What is reported is from the ``WARM_ROUNDS``-th time that as many puts were done as there are keys, when the levels
above have filled: the difference of a simulation's two reports, then and at its end. Of static targets the levels above
the last may hold as much as it does. Zipfian puts fill them more slowly, as many of them replace others there.

An experiment (`Span`) is simulated as it is run: the load in order put after put, so that static targets have full
levels above the last one and memtables and L0 are as the load leaves them, then the seconds that are not reported, then
those that are. Loads of few puts write little in seconds, and their steady state is not what is measured.
"""

import json
import math
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from spillway import lsm
from spillway.advise.configuration import (
    BLOB_AGE_CUTOFF,
    LEAST_FANOUT,
    MIB,
    SEPARATED,
    SINGLE,
    UNIVERSAL,
    UNLIMITED,
    Configuration,
    blob_file_bytes,
)
from spillway.advise.drive import Drive
from spillway.advise.popularity import RANKS
from spillway.advise.traffic import Traffic, flushed_bytes, mean_l0_files
from spillway.advise.workload import Workload
from spillway.errors import Interrupted
from spillway.native.interruption import interruptible

Document = dict[str, Any]
Simulate = Callable[[Document], Document]

LEAST_DATA_BYTES = 256 * 2**20  # of a tree that is simulated small. Source: guess: four memtables' worth of files
MOST_DATA_BYTES = 512 * 2**20  # of one of hundreds: some tenths of a second each
LEAST_FILE_BYTES = 1 * MIB  # of a simulated file: one write of a flush or a compaction
MOST_FINE_BYTES = 512 * MIB  # of a tree that is simulated larger for the sake of its files. Source: decision 0059
# Puts for each key before what is reported. Source: simulations of 8 and 16 rounds, from which `wa_app` then differs by
# 10 % (tests/python/test_advise_laws.py)
WARM_ROUNDS, WARM_ZIPFIAN_ROUNDS = 1.5, 3.0
ROUNDS = 1.0  # and in it
# Of a universal tree, which is merged as a whole once in about two rounds: single rounds of zipfian puts write 7.2 to
# 12.9 times what is put, three write 9.2 and eight 9.5. Source: simulations of 96 MiB with memtables of 2 MiB, 0.9
UNIVERSAL_ROUNDS = 3.0
LEVELS = 7  # RocksDB's num_levels
SOFT_PENDING_BYTES, HARD_PENDING_BYTES = 64 * 2**30, 256 * 2**30  # RocksDB's limits of pending compaction bytes
SPREAD_OF = ("put_ops_s", "wa_app", "wa_device", "held_bytes")


def simulator() -> Simulate:
    """The simulator of the tree (native/lsm)."""
    return lsm.simulate


@dataclass(frozen=True)
class Span:
    """Of an experiment behind a load in order: seconds that are not reported, and then those that are."""

    warm_s: float
    measured_s: float


@dataclass(frozen=True)
class Setting:
    """What all simulations of a search share."""

    load: Workload
    drive: Drive
    cores: int
    simulate: Simulate = field(default_factory=simulator)
    costs: lsm.HostCosts = lsm.DEFAULT_COSTS
    most_data_bytes: int = MOST_DATA_BYTES
    span: Span | None = None  # None: the steady state

    @property
    def most_factor(self) -> float:
        """The largest f of any configuration."""
        by_drive = self.drive.capacity_bytes / self.drive.least_capacity_bytes
        by_data = self.load.data_bytes / max(LEAST_DATA_BYTES, min(self.load.data_bytes, self.most_data_bytes))
        return max(1.0, min(by_drive, by_data))

    def factor(self, config: Configuration) -> float:
        """f: by how much data and drive are smaller than asked for."""
        by_files = min(config.file_bytes, flushed_bytes(self.load, config)) / LEAST_FILE_BYTES
        by_cost = self.load.data_bytes / MOST_FINE_BYTES
        return max(1.0, min(self.most_factor, max(by_files, by_cost)))


def request(
    setting: Setting,
    config: Configuration,
    until: float,
    seed: int,
    rate_ops_s: float | None = None,
    warm: float | None = None,
) -> Document:
    """The request of `lsm-simulate` for puts alone, ``until`` so many for each key, or seconds of an experiment; at a
    rate, or as fast as can be. ``warm``: when there is a report, in the same measure as ``until``."""
    factor = setting.factor(config)
    load, small = setting.load.scaled(factor), config.scaled(factor)
    single = config.shape == SINGLE
    tree = {
        "shape": "universal" if config.shape == UNIVERSAL else "leveled",
        "fanout": max(LEAST_FANOUT, config.fanout),
        "levels": 2 if single else LEVELS,
        "level0_file_num_compaction_trigger": config.l0_files,
        "level0_slowdown_writes_trigger": config.l0_slowdown,
        "level0_stop_writes_trigger": config.l0_stop,
        "write_buffer_size": small.write_buffer_bytes,
        "max_write_buffer_number": config.write_buffers,
        "target_file_size_base": small.file_bytes,
        "max_bytes_for_level_base": UNLIMITED if single else small.level_base_bytes,
        "soft_pending_compaction_bytes_limit": 0 if single else round(SOFT_PENDING_BYTES / factor),
        "hard_pending_compaction_bytes_limit": 0 if single else round(HARD_PENDING_BYTES / factor),
        "level_compaction_dynamic_level_bytes": config.dynamic_levels,
        "compaction_threads": config.compaction_threads,
        "flush_threads": config.flush_threads,
        "max_subcompactions": config.subcompactions,
        "discard": config.discard,
        "block_size": config.block_bytes,
        "bits_per_key": config.bits_per_key,
        "wal": True,
    }
    if config.shape == SEPARATED:
        tree |= _blobs(small)
    return {
        "seed": seed,
        "divided_by": factor,
        "drive": setting.drive.model(factor, config.extra_op),
        "initial": {"kind": "trimmed" if config.discard else "steady", "fill": 1.0},
        "overwrites_initial": True,  # without discard, the drive is full of stale data
        "tree": tree,
        "spill": {"capacity_bytes": small.spill_bytes if config.spill != "off" else 0},
        "host": asdict(setting.costs)
        | {"cores": setting.cores, "log_dirty_bytes": round(setting.costs.log_dirty_bytes / factor)},
        "load": {
            "key_bytes": load.key_bytes,
            "value_bytes": load.value_bytes,
            "num": load.pairs,
            **_length(setting, load, until, factor, warm),
            "distribution": "uniform" if load.skew is None else "zipfian",
            **({} if load.skew is None else {"zipfian_constant": load.skew, "zipfian_ranks": RANKS}),
            "rate_ops_s": rate_ops_s,
            "settle": False,
        },
        "queries": [],
    }


def _blobs(small: Configuration) -> Document:
    return {
        "enable_blob_files": True,
        "min_blob_size": 0,
        "blob_file_size": blob_file_bytes(small),
        "enable_blob_garbage_collection": True,
        "blob_garbage_collection_age_cutoff": BLOB_AGE_CUTOFF,
    }


def _length(setting: Setting, load: Workload, until: float, factor: float, warm: float | None) -> Document:
    """How long the load is, when it reports, and what is there before."""
    if setting.span is None:
        middle: Document = {} if warm is None else {"report_operations": int(warm * load.pairs)}
        return {"operations": int(until * load.pairs), "preload": "fillseq", **middle}
    seconds = until / factor
    most = math.ceil(seconds * 1e6 / setting.costs.put_us(load.pair_bytes)) + 1
    report: Document = {} if warm is None else {"report_s": warm / factor}
    return {"operations": most, "duration_s": seconds, "preload": "fillseq-unsettled", **report}


def quick(setting: Setting, config: Configuration, seed: int = 1) -> Traffic:
    """From one simulation, the part included in which upper levels fill: for comparing, since it flatters all alike."""
    return _traffic(setting, config, _simulated(setting, config, seed), None)


def _simulated(setting: Setting, config: Configuration, seed: int, rate_ops_s: float | None = None) -> Document:
    """A result with its two reports. Raises Interrupted for one that a signal has ended."""
    warm, until = _ends(setting, config)
    result = setting.simulate(request(setting, config, until, seed, rate_ops_s, warm))
    if not result["complete"]:
        raise Interrupted("A simulation was ended before it was done.")
    return result


def _ends(setting: Setting, config: Configuration) -> tuple[float, float]:
    """Puts for each key, or seconds of an experiment, before and at the end of what is reported."""
    if setting.span is not None:
        return setting.span.warm_s, setting.span.warm_s + setting.span.measured_s
    warm = WARM_ROUNDS if setting.load.skew is None else WARM_ZIPFIAN_ROUNDS
    return warm, warm + (UNIVERSAL_ROUNDS if config.shape == UNIVERSAL else ROUNDS)


def thorough(setting: Setting, config: Configuration, seeds: Sequence[int], rate_ops_s: float | None = None) -> Traffic:
    """From a simulation of each seed: the mean, with half of the range as the spread. ``rate_ops_s``: of puts."""
    found = []
    for seed in seeds:
        first, last = _simulated(setting, config, seed, rate_ops_s)["reports"]
        found.append(_traffic(setting, config, last, first))
    spread = []
    for name in SPREAD_OF:
        values = [getattr(each, name) for each in found]
        middle = sum(values) / len(values)
        spread.append((name, (max(values) - min(values)) / 2 / middle if middle else 0.0))
    means = {
        name: sum(getattr(each, name) for each in found) / len(found)
        for name in (*SPREAD_OF, "read_bytes_per_put", "l0_files", "delayed_share", "stopped_share")
    }
    worst = max(each.worst_wait_s for each in found)
    return replace(found[0], **means, worst_wait_s=worst, spread=tuple(spread))


def remembering(simulate: Simulate) -> Simulate:
    """The same, which answers a request that it has answered before with the same result."""
    known: dict[str, Document] = {}

    def remembered(asked: Document) -> Document:
        key = json.dumps(asked, sort_keys=True)
        if key in known:
            return known[key]
        result = simulate(asked)
        if result["complete"]:
            known[key] = result
        return result

    return remembered


def in_parallel(work: Callable[[Any], Any], items: Sequence[Any], cores: int) -> list[Any]:
    """``work`` of each item, on as many threads as there are cores: each waits for a process. Raises Interrupted at the
    first Ctrl-C, and what the work raises."""
    with interruptible() as interruption, ThreadPoolExecutor(max_workers=max(1, cores)) as pool:

        def unless_asked(item: Any) -> Any:
            if interruption.requested:
                raise Interrupted("Ended before anything was simulated.")
            return work(item)

        try:
            return list(pool.map(unless_asked, items))
        except BaseException:
            pool.shutdown(wait=True, cancel_futures=True)
            raise


def _traffic(setting: Setting, config: Configuration, last: Document, first: Document | None) -> Traffic:
    """What happened in ``last``, or between ``first`` and ``last``."""

    def between(*path: str) -> float:
        return _at(last, path) - (_at(first, path) if first is not None else 0.0)

    load, factor = setting.load, setting.factor(config)
    seconds, operations = between("simulated_seconds"), max(1.0, between("operations"))
    host = between("host_bytes_written")
    pair = _at(last, ("user_bytes",)) / max(1.0, _at(last, ("operations",)))
    flash = sum(between("nand_bytes_programmed", cause) for cause in last["nand_bytes_programmed"])
    per_put, read_per_put = host / operations, between("host_bytes_read") / operations
    put_us = seconds / operations * 1e6
    wa_device = flash / host if host and flash else 1.0  # of few bytes all may be in the drive's write cache
    held = max(_at(last, ("peak_held_bytes",)) * factor, float(load.data_bytes))
    if setting.span is not None:  # the log is written by the megabyte, or not yet
        per_put = max(per_put, pair)
    levels = sorted((each["level"], each["bytes"]) for each in last["levels"] if each["bytes"] > 0)
    below = [size * factor for level, size in levels if level > 0] or [0.0]
    l0_files = _l0_files(last)
    if setting.span is None:
        l0_files = max(l0_files, mean_l0_files(load, config))
    elif first is not None:
        l0_files = (l0_files + _l0_files(first)) / 2
    stalls = {
        state: sum(between("stalls", state, cause) for cause in last["stalls"][state])
        for state in ("delayed_s", "stopped_s")
    }
    return Traffic(
        put_ops_s=1e6 / put_us,
        wa_app=per_put / pair,
        wa_device=wa_device,
        read_bytes_per_put=read_per_put,
        level_bytes=tuple(below),
        l0_files=l0_files,
        l0_bytes=flushed_bytes(load, config),
        held_bytes=held,
        delayed_share=min(1.0, stalls["delayed_s"] / seconds),
        stopped_share=min(1.0, stalls["stopped_s"] / seconds),
        worst_wait_s=_at(last, ("worst_wait_ms",)) / 1e3 * factor,
        simulated=True,
    )


def _l0_files(result: Document) -> float:
    """When the load ended."""
    return float(sum(each["files"] for each in result["levels"] if each["level"] == 0))


def _at(document: Document | None, path: Sequence[str]) -> float:
    value: Any = document
    for name in path:
        value = value[name]
    return float(value or 0.0)
