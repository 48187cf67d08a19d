"""What a get and a scan take: blocks read at random, in the drive's service times, and processor time.

    blocks of a get   = sum over runs, newest first, u_i (q_i + (1 - q_i) p) (1 - h_i)                           (M16)
    u_i               = product over newer runs, memtables first, of (1 - q_j): the key is in none of them
    q_i               = share of the keys that run i has a version of, of a get that reaches it; 1 of the last run
    p                 = how often a run without the key is read for it: 1, or a filter's false positives, 0.6185^bits
    blocks of a scan  = sum over runs (1 - h_i), then X bytes in order                                           (M17)
    h_i               = 1 - exp(-x r_i / s_i)              share of a run's blocks in the block cache, s_i its size, r_i
                                                           how often it is read; x such that sum s_i h_i is the cache

The last is Che's approximation of an LRU cache: each block of a small run is read more often than one of a large run,
so that upper levels are in the cache and the last one is not. Source: Che, Tung, Wang, "Hierarchical Web
Caching Systems", IEEE JSAC 20(7), 2002. Of zipfian keys a part of each run is hot.

q_i of uniform keys is the run's share of the data. Of zipfian keys it is taken by classes of equal popularity, as the
simulator of the tree does (native/lsm/key_space.h): a run holds the distinct keys of as many puts as fill it, so that
popular keys are nearly all in each run, and gets find them early.

Indexes and filters are in memory (M29). Holds for keys that exist and blocks that no other program's cache holds.
"""

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spillway.advise.configuration import SEPARATED, Configuration
from spillway.advise.drive import ServiceTimes
from spillway.advise.traffic import Traffic, tree_bytes
from spillway.advise.workload import Workload

FloatArray = NDArray[Any]

BLOOM_BASE = 0.6185  # false positives of a filter of b bits a key are this to the b. Source: (1/2)^(ln 2)
GET_US, PROBE_US = 4.0, 1.0  # processor time of a get, and of each run that it looks into. Source: guess
BLOCK_US = 3.0  # of reading and checking a block of 4 KiB. Source: guess
SEEK_US, NEXT_US = 5.0, 0.4  # of a scan: of each run, and of each pair. Source: guess
MOST_HITS = 0.98  # of a run's blocks. Source: guess
HOT_SHARE = 0.8  # of a run that zipfian requests of exponent 1 hardly reach. Source: guess
MOST_X, HALVINGS = 1e18, 20  # bytes; and of the bisection for x
LEAST_HELD = 1e-12  # of the keys: a run with fewer answers nothing
MOST_PUTS, PUTS_STEPS = 100.0, 256  # puts for each key, beyond which runs have every key; points of a table
READAHEAD_BYTES = 64 * 2**10  # mean of RocksDB's own, which doubles from 8 to 256 KiB. Source: guess


@dataclass(frozen=True)
class Read:
    """One kind of read: ``blocks`` at random, then ``ordered`` reads of ``ordered_bytes`` each in order."""

    blocks: float
    block_bytes: float
    ordered: float
    ordered_bytes: float
    processor_us: float

    @property
    def accesses(self) -> float:
        """Of the drive, one behind the other."""
        return self.blocks + self.ordered

    def service_us(self, times: ServiceTimes, in_flight: float) -> float:
        """Time of the drive and the processor with so many reads in flight, nothing else on the drive."""
        at_random = self.blocks * times.read_us(self.block_bytes, in_flight)
        return self.processor_us + at_random + self.ordered * times.read_us(self.ordered_bytes, in_flight)

    def p99_us(self, times: ServiceTimes, in_flight: float) -> float:
        """Its 99th percentile: of several blocks one is as slow as one in a hundred, the others as usual."""
        if not self.accesses:
            return self.processor_us
        slow = times.read_p99_us(self.block_bytes, in_flight) - times.read_us(self.block_bytes, in_flight)
        return self.service_us(times, in_flight) + max(0.0, slow) * math.sqrt(max(1.0, self.blocks))

    def drive_us(self, times: ServiceTimes) -> float:
        """What it takes of a saturated drive."""
        return self.blocks * times.read_cost_us(self.block_bytes) + self.ordered * times.read_cost_us(
            self.ordered_bytes
        )


def sorted_runs(traffic: Traffic) -> float:
    """Runs that a read may look into."""
    return traffic.l0_files + len(traffic.level_bytes)


def false_positives(config: Configuration) -> float:
    """How often a run without the key is read for it."""
    return float(BLOOM_BASE**config.bits_per_key) if config.bits_per_key else 1.0


@dataclass(frozen=True)
class Run:
    """Sorted runs that are alike: how many (of L0, in the mean), bytes of each, gets that reach each, and find it."""

    count: float
    size: float
    reached: float
    found: float  # of all gets, in each

    def probed(self, passed: float) -> float:
        """How often a get reads a block of each; ``passed``: of those that reach it and find nothing."""
        return self.found + (self.reached - self.found) * passed


def runs_of(load: Workload, config: Configuration, traffic: Traffic) -> tuple[float, list[Run]]:
    """(share of the gets that memtables answer, the sorted runs): L0, then each level. The last has every key."""
    pair = tree_bytes(load, config)
    weights = _weights(load)
    left = weights.copy()  # of the gets, by class of keys, those that nothing newer answers
    if load.puts:  # one memtable is half full in the mean
        left *= 1 - _held(load, 0.5 * config.write_buffer_bytes / load.pair_bytes)
    in_memory = float(1 - left.sum())
    found = []
    sizes = [(traffic.l0_files, traffic.l0_bytes), *((1.0, size) for size in traffic.level_bytes)]
    for at, (count, size) in enumerate(sizes):
        held = np.ones_like(left) if at == len(sizes) - 1 else _held(load, size / pair)
        # Files of L0 one after another, as the sum of a geometric series; of a part of a file its part.
        after = left * (1 - held) ** count
        reached = np.where(held > LEAST_HELD, (left - after) / np.maximum(held, LEAST_HELD), left * count)
        each = max(count, LEAST_HELD)
        found.append(Run(count, size, float(reached.sum()) / each, float((left - after).sum()) / each))
        left = after
    return in_memory, found


@lru_cache(maxsize=64)
def _classes(pairs: int, skew: float) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """Of zipfian keys: (probability of one key of each class, gets of each class, puts, distinct keys of so many)."""
    first = 2.0 ** np.arange(math.floor(math.log2(pairs)) + 1)
    last = np.minimum(2 * first, pairs + 1.0)
    weights = (last ** (1 - skew) - first ** (1 - skew)) / (1 - skew)
    weights /= weights.sum()
    keys = last - first
    puts = np.geomspace(1.0, MOST_PUTS * pairs, PUTS_STEPS)
    distinct = -(keys * np.expm1(-puts[:, None] * weights / keys)).sum(axis=1)
    return weights / keys, weights, puts, distinct


def _weights(load: Workload) -> FloatArray:
    """Share of the gets by class of keys."""
    return np.ones(1) if load.skew is None else _classes(load.pairs, load.skew)[1]


def _held(load: Workload, entries: float) -> FloatArray:
    """Share of the keys of each class that a run of so many entries has."""
    if load.skew is None:
        return np.array([min(1.0, entries / load.pairs)])
    of_key, _, puts, distinct = _classes(load.pairs, load.skew)
    held: FloatArray = -np.expm1(-np.interp(entries, distinct, puts) * of_key)
    return held


def _missed(load: Workload, config: Configuration, runs: list[Run]) -> list[float]:
    """Share of the blocks of each of the runs that is not in the cache."""
    passed = false_positives(config)
    hot = 1 - HOT_SHARE * load.skew if load.skew is not None else 1.0
    cached = [
        (each.count, max(1.0, each.size * hot), (load.gets * each.probed(passed) + load.scans) / max(load.reads, 1e-9))
        for each in runs
    ]
    return [1 - min(MOST_HITS, hit) for hit in _hits(cached, float(config.block_cache_bytes))]


def _hits(runs: list[tuple[float, float, float]], cache_bytes: float) -> list[float]:
    """h_i of runs as (how many alike, bytes, how often each is read)."""
    if sum(count * size for count, size, _ in runs) <= cache_bytes:
        return [1.0 for _ in runs]

    def held(x: float) -> float:
        total = 0.0
        for count, size, probed in runs:
            total -= count * size * math.expm1(-x * probed / size)
        return total

    low, high = 0.0, cache_bytes
    while held(high) < cache_bytes and high < MOST_X:
        low, high = high, 4 * high
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if held(middle) < cache_bytes else (low, middle)
    return [-math.expm1(-high * probed / size) for _, size, probed in runs]


def get(load: Workload, config: Configuration, traffic: Traffic) -> Read:
    """A get of a key that exists."""
    in_memory, runs = runs_of(load, config, traffic)
    passed = false_positives(config)
    missed = _missed(load, config, runs)
    reached = sum(each.count * each.reached for each in runs)
    looked_into = sum(each.count * each.probed(passed) for each in runs)
    of_value = 1 - in_memory if config.shape == SEPARATED else 0.0
    return Read(
        blocks=sum(each.count * each.probed(passed) * miss for each, miss in zip(runs, missed, strict=True)) + of_value,
        block_bytes=max(float(config.block_bytes), float(load.pair_bytes)),
        ordered=0.0,
        ordered_bytes=0.0,
        processor_us=GET_US + PROBE_US * reached + BLOCK_US * looked_into * config.block_bytes / 4096,
    )


def scan(load: Workload, config: Configuration, traffic: Traffic) -> Read:
    """A seek and ``scan_pairs`` steps. Separated values are each read at random."""
    _, each_run = runs_of(load, config, traffic)
    runs, missed = sorted_runs(traffic), _missed(load, config, each_run)
    wanted = load.scan_pairs * load.pair_bytes
    processor = SEEK_US * runs + NEXT_US * load.scan_pairs + BLOCK_US * (runs * config.block_bytes + wanted) / 4096
    separated = config.shape == SEPARATED
    beyond = 0.0 if separated else max(0.0, wanted - config.block_bytes) * missed[-1]
    at_random = sum(each.count * miss for each, miss in zip(each_run, missed, strict=True))
    return Read(
        blocks=at_random + (load.scan_pairs if separated else 0.0),
        block_bytes=max(float(config.block_bytes), float(load.pair_bytes)),
        ordered=beyond / READAHEAD_BYTES,
        ordered_bytes=float(READAHEAD_BYTES),
        processor_us=processor,
    )
