"""What a get and a scan take: blocks read at random, in the drive's service times, and processor time.

    blocks of a get   = sum over runs, newest first, u_i (q_i + (1 - q_i) c_i p) (1 - h_i)                       (M16)
    u_i               = product over newer runs, memtables first, of (1 - q_j): the key is in none of them
    q_i               = share of the keys that run i has a version of, of a get that reaches it; 1 of the last run
    p                 = how often a run without the key is read for it: 1, or a filter's false positives, 0.6185^bits
    c_i               = how often such a run has a file whose range holds the key: 1, or of a level that compactions
                        take files out of, L1 to the last but one, COVERED of spillway/models/lsm_reads.py
    blocks of a scan  = sum over runs (1 - h_i), then X bytes in order                                           (M17)
    h_i               = 1 - exp(-x r_i / b_i)              share of a run's reads that the block cache serves, b_i its
                                                           blocks, r_i how often it is read; x such that sum b_i h_i
                                                           are as many as the cache holds

The last is Che's approximation of an LRU cache: each block of a small run is read more often than one of a large run,
so that upper levels are in the cache and the last one is not. Source: Che, Tung, Wang, "Hierarchical Web
Caching Systems", IEEE JSAC 20(7), 2002. Of zipfian keys the blocks of a run are of classes, by the most popular key
that lies in each (popularity.py): r_i / b_i is of a class, and so is h_i.

q_i of uniform keys is the run's share of the data. Of zipfian keys it is taken by classes of equal popularity, as the
simulator of the tree does (popularity.py): a run holds the distinct keys of as many puts as fill it, so that
popular keys are nearly all in each run, and gets find them early.

The processor's part is as in the simulator's queries (`HostCosts`): of the operation, of each run that is looked into
and of each pair; beside it, of the bytes of each block that is read from the drive, what a compaction takes for them.

Indexes and filters are in memory (M29). Holds for keys that exist and blocks that no other program's cache holds.
"""

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spillway.advise.configuration import LEVELED, SEPARATED, Configuration
from spillway.advise.drive import ServiceTimes
from spillway.advise.popularity import Classes, classes, scattered
from spillway.advise.traffic import Traffic, tree_bytes
from spillway.advise.workload import Workload
from spillway.lsm import DEFAULT_COSTS, HostCosts
from spillway.models.lsm_reads import COVERED

FloatArray = NDArray[Any]

BLOOM_BASE = 0.6185  # false positives of a filter of b bits a key are this to the b. Source: (1/2)^(ln 2)
MOST_HITS = 0.98  # of a run's blocks. Source: guess
MOST_X, HALVINGS = 1e18, 20  # reads; and of the bisection for x
ONE_IN = 0.01  # of the gets, that a 99th percentile leaves out
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
        """Time at the drive with so many reads in flight, nothing else on it."""
        at_random = self.blocks * times.read_us(self.block_bytes, in_flight)
        return at_random + self.ordered * times.read_us(self.ordered_bytes, in_flight)

    def services_us(self, times: ServiceTimes, in_flight: FloatArray) -> FloatArray:
        """The same for each of several numbers in flight."""
        at_random = self.blocks * times.reads_us(self.block_bytes, in_flight)
        found: FloatArray = at_random + self.ordered * times.reads_us(self.ordered_bytes, in_flight)
        return found

    def slow_us(self, times: ServiceTimes, in_flight: float) -> float:
        """How much longer than in the mean one in a hundred is at the drive: of several blocks one is as slow as one in
        a hundred, and where most find their block in the cache one in a hundred reads one."""
        if self.blocks <= ONE_IN:
            return 0.0
        usual = times.read_us(self.block_bytes, in_flight)
        slow = max(0.0, times.read_p99_us(self.block_bytes, in_flight) - usual)
        return slow * math.sqrt(max(1.0, self.blocks)) + max(0.0, 1 - self.blocks) * usual

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
    covered: float  # of the keys that it has not, between the first and the last key of one of its files
    by_class: tuple[FloatArray, FloatArray]  # reached and found, by class of keys

    def probed(self, passed: float) -> float:
        """How often a get reads a block of each; ``passed``: of those that look into it and find nothing."""
        return self.found + (self.reached - self.found) * self.covered * passed

    def probed_by_class(self, passed: float) -> FloatArray:
        """The same of the gets of each class of keys; together as many."""
        reached, found = self.by_class
        probed: FloatArray = found + (reached - found) * self.covered * passed
        return probed


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
        has_holes = config.shape in (LEVELED, SEPARATED) and 0 < at < len(sizes) - 1
        by_class = reached / each, (left - after) / each
        own = float(by_class[0].sum()), float(by_class[1].sum())
        found.append(Run(count, size, *own, COVERED if has_holes else 1.0, by_class))
        left = after
    return in_memory, found


@lru_cache(maxsize=64)
def _distinct(pairs: int, skew: float) -> tuple[FloatArray, FloatArray]:
    """Of zipfian keys: (numbers of puts, distinct keys of so many)."""
    of = classes(pairs, skew)
    puts = np.geomspace(1.0, MOST_PUTS * pairs, PUTS_STEPS)
    return puts, -(of.count * np.expm1(-puts[:, None] * of.of_each)).sum(axis=1)


def _weights(load: Workload) -> FloatArray:
    """Share of the gets by class of keys."""
    return np.ones(1) if load.skew is None else classes(load.pairs, load.skew).requests


def _held(load: Workload, entries: float) -> FloatArray:
    """Share of the keys of each class that a run of so many entries has."""
    if load.skew is None:
        return np.array([min(1.0, entries / load.pairs)])
    puts, distinct = _distinct(load.pairs, load.skew)
    held: FloatArray = -np.expm1(-np.interp(entries, distinct, puts) * classes(load.pairs, load.skew).of_each)
    return held


def _missed(load: Workload, config: Configuration, runs: list[Run]) -> list[float]:
    """Share of the reads of blocks of each of the runs that the cache does not serve."""
    passed, block_bytes = false_positives(config), _block_bytes(load, config)
    cached = []
    for each in runs:
        blocks = max(1.0, each.size / block_bytes)
        reads = (load.gets * each.probed_by_class(passed) + load.scans * _weights(load)) / max(load.reads, 1e-9)
        if load.skew is None:
            cached.append((each.count, Classes(np.array([blocks]), reads)))
        else:
            cached.append((each.count, scattered(Classes(classes(load.pairs, load.skew).count, reads), blocks)))
    return [1 - min(MOST_HITS, hit) for hit in _hits(cached, config.block_cache_bytes / block_bytes)]


def _hits(runs: list[tuple[float, Classes]], cache_blocks: float) -> list[float]:
    """h_i of runs as (how many alike, blocks by class and how often those are read)."""
    if sum(count * of.count.sum() for count, of in runs) <= cache_blocks:
        return [1.0 for _ in runs]
    blocks = np.concatenate([count * of.count for count, of in runs])
    read = np.concatenate([of.of_each for _, of in runs])

    def held(x: float) -> float:
        return -float((blocks * np.expm1(-x * read)).sum())

    low, high = 0.0, cache_blocks
    while held(high) < cache_blocks and high < MOST_X:
        low, high = high, 4 * high
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if held(middle) < cache_blocks else (low, middle)
    return [
        -float((of.requests * np.expm1(-high * of.of_each)).sum()) / max(float(of.requests.sum()), LEAST_HELD)
        for _, of in runs
    ]


def _block_bytes(load: Workload, config: Configuration) -> float:
    return max(float(config.block_bytes), float(load.pair_bytes))


def get(load: Workload, config: Configuration, traffic: Traffic, costs: HostCosts = DEFAULT_COSTS) -> Read:
    """A get of a key that exists."""
    in_memory, runs = runs_of(load, config, traffic)
    passed = false_positives(config)
    missed = _missed(load, config, runs)
    looked_into = sum(each.count * each.probed(1.0) for each in runs)
    of_value = 1 - in_memory if config.shape == SEPARATED else 0.0
    blocks = sum(each.count * each.probed(passed) * miss for each, miss in zip(runs, missed, strict=True)) + of_value
    block_bytes = _block_bytes(load, config)
    return Read(
        blocks=blocks,
        block_bytes=block_bytes,
        ordered=0.0,
        ordered_bytes=0.0,
        processor_us=(costs.get_ns + costs.probe_ns * looked_into + costs.merge_byte_ns * blocks * block_bytes) / 1e3,
    )


def scan(load: Workload, config: Configuration, traffic: Traffic, costs: HostCosts = DEFAULT_COSTS) -> Read:
    """A seek and ``scan_pairs`` steps. Separated values are each read at random."""
    _, each_run = runs_of(load, config, traffic)
    runs, missed = sorted_runs(traffic), _missed(load, config, each_run)
    wanted = load.scan_pairs * load.pair_bytes
    separated = config.shape == SEPARATED
    beyond = 0.0 if separated else max(0.0, wanted - config.block_bytes) * missed[-1]
    at_random = sum(each.count * miss for each, miss in zip(each_run, missed, strict=True))
    blocks = at_random + (load.scan_pairs if separated else 0.0)
    block_bytes = _block_bytes(load, config)
    of_steps = costs.get_ns + costs.probe_ns * runs + costs.next_ns * load.scan_pairs
    return Read(
        blocks=blocks,
        block_bytes=block_bytes,
        ordered=beyond / READAHEAD_BYTES,
        ordered_bytes=float(READAHEAD_BYTES),
        processor_us=(of_steps + costs.merge_byte_ns * (blocks * block_bytes + beyond)) / 1e3,
    )
