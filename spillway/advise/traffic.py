"""What puts make a configuration do to the drive, in closed form: to choose what is worth simulating.

    wa_app   = WAL + flush + (1 + min(B1, N) / (C W)) + sum over levels (1 + OVERLAP r_i)        leveled (M13, M15)
             = WAL + flush + 1 + N / (S W)                                                       single level (M18, T4)
             = WAL + flush + UNIVERSAL log2(N / W)                                               universal
             = WAL + the tree of addresses + (1 + relocated) values                              value separation
    relocated = the least of AGE_CUTOFF (R - 1) and T / (time to read and write one value), R how often an address is
                written below L0, T a put's time: a compaction reads the values that it relocates one at a time, and L0
                gathers files meanwhile, so that R falls with it
    a put's time is the longest of what it takes of the drive, of the flush and the compaction threads, of the processor

    S files in L0 at which writers are slowed, which is where a single level keeps them; C, if a rate is asked for
    N bytes of data    W bytes of a memtable    C files in L0   B1 bytes of L1   r_i size of a level / of the one above

Holds up to some tens of percent, as eqs 9 and 11 do (M20); the order of configurations matters here, not the figures.
Ignores stalls, and that the parts of a put's time overlap only in part.
"""

import math
from dataclasses import dataclass, replace
from itertools import pairwise

from spillway.advise.configuration import BLOB_AGE_CUTOFF, LEVELED, SEPARATED, SINGLE, UNIVERSAL, Configuration
from spillway.advise.drive import Drive
from spillway.advise.workload import Workload
from spillway.lsm import DEFAULT_COSTS, HostCosts

LOG_AND_FLUSH = 2  # bytes written for each that is put, before compactions write any
OVERLAP = 0.65  # of the next level's share, as files with the least overlap are picked (M28). Source: guess
UNIVERSAL_REWRITES = 0.75  # of a byte for each doubling of the tree. Source: guess
UNIVERSAL_RUNS, UNIVERSAL_STEP = 3, 4  # runs beside the newest, and how much smaller each is. Source: guess
# A blob's address in the tree, beside the key. Source: RocksDB's BlobIndex (type, file, offset, size, codec: 10 bytes)
# and BlockBuilder (sequence number, three lengths)
BLOB_REFERENCE_BYTES = 21
BLOB_RECORD_BYTES = 32  # of a value in a blob file, beside it and its key. Source: BlobLogRecord::kHeaderSize
BLOB_GARBAGE = 1.5  # space of blob files / live values. Source: guess
MEAN_L0 = 0.75  # of the trigger: files come one by one and leave together. Source: guess
LEAST_L0 = 100.0  # of a trigger above which the data bound the files. Source: guess: none that compacts is higher
BLOCK = 4096  # of a read past the page cache
USED_SHARE = 0.9  # of what limits a put that is reached. Source: guess


@dataclass(frozen=True)
class Traffic:
    """What puts do, for each of them and over time. ``spread``: half of the range over seeds, relative, by figure."""

    put_ops_s: float  # of puts alone, as fast as they are taken
    wa_app: float
    wa_device: float
    read_bytes_per_put: float  # by compactions
    level_bytes: tuple[float, ...]  # of the sorted runs below L0, the largest last
    l0_files: float
    l0_bytes: float  # of each of them
    held_bytes: float  # at most
    delayed_share: float = 0.0  # of the time
    stopped_share: float = 0.0
    worst_wait_s: float = 0.0
    spread: tuple[tuple[str, float], ...] = ()
    simulated: bool = False
    as_loaded: float = 0.0  # share of the levels above the last whose keys no other run spans


def settled(load: Workload, config: Configuration, traffic: Traffic) -> Traffic:
    """Where nothing is put, the tree as it is when compactions have ended: L0 has fewer files than would start one, and
    no level is larger than it may be, as those are that a load of puts has left behind."""
    if load.puts:
        return traffic
    levels = traffic.level_bytes
    if config.shape in (LEVELED, SEPARATED):
        levels = tuple(level_sizes(config, sum(levels)))
    return replace(traffic, l0_files=min(traffic.l0_files, (config.l0_files - 1) / 2), level_bytes=levels)


def level_sizes(config: Configuration, data_bytes: float) -> list[float]:
    """Bytes of L1 and the levels below it; at least one level."""
    if config.shape == SINGLE:
        return [data_bytes]
    if config.shape == UNIVERSAL:  # runs in proportion, as a ratio of sizes of 1 % lets them grow
        return [data_bytes / UNIVERSAL_STEP**step for step in reversed(range(UNIVERSAL_RUNS))]
    base = float(config.level_base_bytes)
    if config.dynamic_levels:
        sizes = [data_bytes]
        while sizes[0] > base:
            sizes.insert(0, sizes[0] / config.fanout)
        return sizes[-6:]
    sizes, left = [], data_bytes
    while left > 0 and len(sizes) < 6:
        sizes.append(min(left, base * config.fanout ** len(sizes)))
        left -= sizes[-1]
    return sizes


def tree_bytes(load: Workload, config: Configuration) -> float:
    """Bytes of a pair in the tree: where values are separated, its key and an address."""
    return load.key_bytes + BLOB_REFERENCE_BYTES if config.shape == SEPARATED else float(load.pair_bytes)


def compacted(load: Workload, config: Configuration) -> tuple[float, float]:
    """(bytes that compactions write for each byte of the tree that is flushed, those of them out of L0)."""
    data = load.pairs * tree_bytes(load, config)
    saturated = config.shape == SINGLE and load.rate_ops_s is None
    batch = max(1.0, (config.l0_slowdown if saturated else config.l0_files) * flushed_bytes(load, config))
    if config.shape == UNIVERSAL:
        return UNIVERSAL_REWRITES * math.log2(max(2.0, data / flushed_bytes(load, config))), 1.0
    sizes = level_sizes(config, data)
    first = 1 + min(sizes[0], data) / batch
    rest = sum(1 + OVERLAP * below / above for above, below in pairwise(sizes))
    return first + rest, first


def flushed_bytes(load: Workload, config: Configuration) -> float:
    """Bytes of the tree in a flushed memtable, which holds whole values before they are separated."""
    return config.write_buffer_bytes * tree_bytes(load, config) / load.pair_bytes


def mean_l0_files(load: Workload, config: Configuration) -> float:
    """Files in L0 in the mean; where compactions are off, no more than hold the data once."""
    data = load.pairs * tree_bytes(load, config)
    return MEAN_L0 * min(float(config.l0_files), max(LEAST_L0, data / flushed_bytes(load, config)))


def closed_form(
    load: Workload, config: Configuration, drive: Drive, cores: int, costs: HostCosts = DEFAULT_COSTS
) -> Traffic:
    """Traffic by the formulas above."""
    pair, of_tree = float(load.pair_bytes), tree_bytes(load, config)
    rewrites, out_of_l0 = compacted(load, config)
    of_flush = _flush_us(load, config, drive, costs)
    relocated = blobs = 0.0
    if config.shape == SEPARATED:
        alone = max(costs.put_us(pair), 2 * pair / drive.times.most_mb_s("write"), of_flush)
        relocated, rewrites = _relocated(load, config, drive, costs, rewrites, alone)
        out_of_l0 = min(out_of_l0, rewrites)
        blobs = (pair + BLOB_RECORD_BYTES) * (1 + relocated)
    written = pair + of_tree * (1 + rewrites) + blobs
    read = of_tree * rewrites + relocated * max(BLOCK, pair)
    held = held_bytes(load, config)
    on_flash = _wa_device(config, drive, held)
    merged_us = costs.flush_us(pair) + rewrites * costs.merge_us(of_tree) + relocated * _value_us(load, costs)
    writer_us = costs.put_us(pair)
    of_processor = max(writer_us, (writer_us + merged_us) / cores)
    of_drive = written * on_flash / drive.times.most_mb_s("write") + read / drive.times.most_mb_s("read")
    of_threads = _thread_us(config, drive, of_tree, rewrites, out_of_l0, costs)
    return Traffic(
        put_ops_s=USED_SHARE * 1e6 / max(of_processor, of_drive, of_threads, of_flush),
        wa_app=written / pair,
        wa_device=on_flash,
        read_bytes_per_put=read,
        level_bytes=tuple(level_sizes(config, load.pairs * of_tree)),
        l0_files=mean_l0_files(load, config),
        l0_bytes=flushed_bytes(load, config),
        held_bytes=held,
    )


def held_bytes(load: Workload, config: Configuration) -> float:
    """At most on the drive: data, what is not yet compacted, the log, and the output of the largest compaction."""
    data = float(load.data_bytes)
    above = config.write_buffer_bytes * (2 * config.l0_files + config.write_buffers)
    if config.shape in (SINGLE, UNIVERSAL):
        return 2 * data + above
    if config.shape == SEPARATED:
        return data * BLOB_GARBAGE + above
    upper = 1 / config.fanout + 1 / config.fanout**2 if config.dynamic_levels else 0.25
    return data * (1 + upper) + above


def _wa_device(config: Configuration, drive: Drive, held: float) -> float:
    """Files die together, so that garbage collection finds more to free than random writes leave (C2)."""
    capacity = drive.capacity_bytes * (1 - config.extra_op)
    used = min(1.0, held / capacity) if config.discard else 1.0
    valid = drive.data_share * (1 - config.extra_op) * used
    return 1 + 0.5 * valid**4 / max(0.05, 1 - valid) * 0.5


def _flush_us(load: Workload, config: Configuration, drive: Drive, costs: HostCosts) -> float:
    """Time of the flush threads: each computes and writes in turn."""
    written = tree_bytes(load, config)
    if config.shape == SEPARATED:
        written += load.pair_bytes + BLOB_RECORD_BYTES
    each = costs.flush_us(load.pair_bytes) + written / drive.times.stream_mb_s("write")
    return each / config.flush_threads


def _value_us(load: Workload, costs: HostCosts) -> float:
    """Of the processor, for a value that is relocated."""
    return (costs.probe_ns + costs.merge_byte_ns * (load.pair_bytes + BLOB_RECORD_BYTES)) / 1e3


def _relocated(
    load: Workload, config: Configuration, drive: Drive, costs: HostCosts, rewrites: float, put_us: float
) -> tuple[float, float]:
    """(values relocated for each put, how often a put's address is then written below L0). ``put_us``: of a put, with
    nothing relocated."""
    record = load.pair_bytes + BLOB_RECORD_BYTES
    one_us = drive.times.read_us(BLOCK, 1) + record / drive.times.stream_mb_s("write") + _value_us(load, costs)
    if load.rate_ops_s is not None and load.puts:
        put_us = max(put_us, 1e6 / (load.rate_ops_s * load.puts))
    most = put_us * min(config.subcompactions, config.compaction_threads) / one_us
    relocated = min(BLOB_AGE_CUTOFF * max(0.0, rewrites - 1), most)
    return relocated, 1 + relocated / BLOB_AGE_CUTOFF


def _thread_us(
    config: Configuration, drive: Drive, of_tree: float, rewrites: float, out_of_l0: float, costs: HostCosts
) -> float:
    """Time of the compaction threads: each reads, merges and writes in turn; L0 is one compaction at a time (P25)."""
    times = drive.times
    entry_us = of_tree / times.stream_mb_s("read") + of_tree / times.stream_mb_s("write") + costs.merge_us(of_tree)
    at_once = min(config.subcompactions, config.compaction_threads)
    return entry_us * max(rewrites / config.compaction_threads, out_of_l0 / at_once)
