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

from spillway.advise.configuration import LEVELED, SEPARATED, UNIVERSAL, Configuration
from spillway.advise.drive import PAGE, ServiceTimes
from spillway.advise.popularity import Classes, classes, scattered
from spillway.advise.traffic import BLOB_RECORD_BYTES, Traffic, tree_bytes
from spillway.advise.workload import Workload
from spillway.lsm import DEFAULT_COSTS, HostCosts
from spillway.models.lsm import Layout
from spillway.models.lsm_reads import COVERED, PAIR_EXTRA_BYTES, block_bytes, pages_of, reads_in_row

FloatArray = NDArray[Any]

BLOOM_BASE = 0.6185  # false positives of a filter of b bits a key are this to the b. Source: (1/2)^(ln 2)
MOST_HITS = 0.98  # of a run's blocks. Source: guess
MOST_X, HALVINGS = 1e18, 20  # reads; and of the bisection for x
ONE_IN = 0.01  # of the gets, that a 99th percentile leaves out
LEAST_HELD = 1e-12  # of the keys: a run with fewer answers nothing
MOST_PUTS, PUTS_STEPS = 100.0, 256  # puts for each key, beyond which runs have every key; points of a table


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
        return float(self.services_us(times, np.array([in_flight]))[0])

    def services_us(self, times: ServiceTimes, in_flight: FloatArray) -> FloatArray:
        """The same for each of several numbers in flight."""
        found: FloatArray = self.blocks * times.part_us(self.block_bytes, in_flight)
        if self.ordered:
            found = found + self.ordered * times.part_us(self.ordered_bytes, in_flight)
        return found

    def slow_us(self, times: ServiceTimes, in_flight: float) -> float:
        """How much longer than in the mean one in a hundred is at the drive: of several blocks one is as slow as one in
        a hundred, and where most find their block in the cache one in a hundred reads one."""
        if self.blocks <= ONE_IN:
            return 0.0
        usual = times.read_us(PAGE, in_flight)
        slow = max(0.0, times.read_p99_us(PAGE, in_flight) - usual)
        block_us = float(times.part_us(self.block_bytes, np.array([in_flight]))[0])
        return slow * math.sqrt(max(1.0, self.blocks)) + max(0.0, 1 - self.blocks) * block_us

    def drive_us(self, times: ServiceTimes) -> float:
        """What it takes of a saturated drive."""
        return self.blocks * times.part_cost_us(self.block_bytes) + self.ordered * times.part_cost_us(
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
    if config.shape == UNIVERSAL:
        sizes = _with_large_run(load, sizes)
    for at, (count, size) in enumerate(sizes):
        held = np.ones_like(left) if at == len(sizes) - 1 else _held(load, size / pair)
        # Files of L0 one after another, as the sum of a geometric series; of a part of a file its part.
        after = left * (1 - held) ** count
        reached = np.where(held > LEAST_HELD, (left - after) / np.maximum(held, LEAST_HELD), left * count)
        each = max(count, LEAST_HELD)
        covered = 1.0
        if 0 < at < len(sizes) - 1:
            covered = (COVERED if config.shape in (LEVELED, SEPARATED) else 1.0) * (1 - traffic.as_loaded)
        by_class = reached / each, (left - after) / each
        own = float(by_class[0].sum()), float(by_class[1].sum())
        found.append(Run(count, size, *own, covered, by_class))
        left = after
    return in_memory, found


def _with_large_run(load: Workload, sizes: list[tuple[float, float]]) -> list[tuple[float, float]]:
    """Of a universal tree L0 may have a run of many memtables: the data that nothing else holds."""
    (count, size), *levels = sizes
    left = load.data_bytes - count * size - sum(each for _, each in levels)
    if count < 1 or left <= size:
        return sizes
    return [(count - 1, size), (1.0, left + size), *levels]


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
    passed, block = false_positives(config), block_bytes(_layout(load, config))
    cached = []
    for each in runs:
        blocks = max(1.0, each.size / block)
        of_scans = load.scans * _sought(load, config, runs, each) if load.scans else 0.0
        reads = (load.gets * each.probed_by_class(passed) + of_scans * _weights(load)) / max(load.reads, 1e-9)
        if load.skew is None:
            cached.append((each.count, Classes(np.array([blocks]), reads)))
        else:
            cached.append((each.count, scattered(Classes(classes(load.pairs, load.skew).count, reads), blocks)))
    return [1 - min(MOST_HITS, hit) for hit in _hits(cached, config.block_cache_bytes / block)]


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


def _layout(load: Workload, config: Configuration) -> Layout:
    """Of blocks: the tree's pairs, and how many of them a block is to hold."""
    return _layout_of(tree_bytes(load, config), config.block_bytes)


@lru_cache(maxsize=256)
def _layout_of(pair_bytes: float, block: int) -> Layout:
    """One for all that have such blocks: how many of them there are does not matter here."""
    return Layout(1.0, float(pair_bytes), block_bytes=float(block))


def _sought(load: Workload, config: Configuration, runs: list[Run], run: Run) -> float:
    """Blocks of one run that a scan reads: it is sought, and has its share of the pairs."""
    return 1 + _share(runs, run) * _blocks_of_pairs(load, config)


def _share(runs: list[Run], run: Run) -> float:
    """Of all pairs, in each of these."""
    return run.size / max(sum(each.count * each.size for each in runs), LEAST_HELD)


def _blocks_of_pairs(load: Workload, config: Configuration) -> float:
    """Full of the pairs of a scan."""
    layout = _layout(load, config)
    return load.scan_pairs * (layout.pair_bytes + PAIR_EXTRA_BYTES) / block_bytes(layout)


def get(load: Workload, config: Configuration, traffic: Traffic, costs: HostCosts = DEFAULT_COSTS) -> Read:
    """A get of a key that exists."""
    in_memory, runs = runs_of(load, config, traffic)
    passed = false_positives(config)
    missed = _missed(load, config, runs)
    looked_into = sum(each.count * each.probed(1.0) for each in runs)
    of_value = 1 - in_memory if config.shape == SEPARATED else 0.0
    of_tree = sum(each.count * each.probed(passed) * miss for each, miss in zip(runs, missed, strict=True))
    blocks = of_tree + of_value
    read_bytes = of_tree * _read_bytes(block_bytes(_layout(load, config))) + of_value * _value_bytes(load)
    return Read(
        blocks=blocks,
        block_bytes=read_bytes / blocks if blocks else PAGE,
        ordered=0.0,
        ordered_bytes=0.0,
        processor_us=(costs.get_ns + costs.probe_ns * looked_into + costs.merge_byte_ns * read_bytes) / 1e3,
    )


def scan(load: Workload, config: Configuration, traffic: Traffic, costs: HostCosts = DEFAULT_COSTS) -> Read:
    """A seek and ``scan_pairs`` steps. Separated values are each read at random."""
    _, runs = runs_of(load, config, traffic)
    layout = _layout(load, config)
    first_bytes = _read_bytes(block_bytes(layout))
    of_values = float(load.scan_pairs) if config.shape == SEPARATED else 0.0
    at_random = ordered = ordered_bytes = 0.0
    whole = 1 + _blocks_of_pairs(load, config)
    for at, (each, miss) in enumerate(zip(runs, _missed(load, config, runs), strict=True)):
        loaded = traffic.as_loaded if at else 0.0
        # Where no other run spans its keys, a run has all pairs of a scan or none, and is else sought in few blocks.
        cases = [(1 - loaded, _sought(load, config, runs, each)), (loaded * _share(runs, each), whole)]
        for chance, sought in cases:
            own_reads, own_pages = reads_in_row(layout, sought)
            missing = each.count * miss * chance
            at_random += missing
            ordered += missing * (own_reads - 1)
            ordered_bytes += missing * max(0.0, own_pages * PAGE - first_bytes)
    blocks = at_random + of_values
    random_bytes = at_random * first_bytes + of_values * _value_bytes(load)
    of_steps = costs.get_ns + costs.probe_ns * sorted_runs(traffic) + costs.next_ns * load.scan_pairs
    return Read(
        blocks=blocks,
        block_bytes=random_bytes / blocks if blocks else PAGE,
        ordered=ordered,
        ordered_bytes=ordered_bytes / ordered if ordered else 0.0,
        processor_us=(of_steps + costs.merge_byte_ns * (random_bytes + ordered_bytes)) / 1e3,
    )


@lru_cache(maxsize=256)
def _read_bytes(stored: float) -> float:
    """Of the drive's pages that hold so many bytes of a file, wherever they begin."""
    return PAGE * pages_of(stored)


def _value_bytes(load: Workload) -> float:
    """Of the pages that hold a separated value, as it lies in a blob file."""
    return _read_bytes(load.pair_bytes + BLOB_RECORD_BYTES)
