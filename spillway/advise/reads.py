"""What a get and a scan take: blocks read at random, in the drive's service times, and processor time.

    blocks of a get   = sum over runs p_i (1 - h_i)        p_i = 1 of the run that has the key, which is nearly always
                                                           the last; of the others how often they are read all the
                                                           same: 1, or a filter's false positives, 0.6185^bits   (M16)
    blocks of a scan  = sum over runs (1 - h_i), then X bytes in order                                           (M17)
    h_i               = 1 - exp(-x p_i / s_i)              share of a run's blocks in the block cache, s_i its size;
                                                           x such that sum s_i h_i is the cache

The last is Che's approximation of an LRU cache: each block of a small run is read more often than one of a large run,
so that upper levels are in the cache and the last one is not. Source: Che, Tung, Wang, "Hierarchical Web
Caching Systems", IEEE JSAC 20(7), 2002. Of zipfian keys a part of each run is hot.

Indexes and filters are in memory (M29). Holds for keys that exist and blocks that no other program's cache holds.
"""

import math
from dataclasses import dataclass

from spillway.advise.configuration import SEPARATED, Configuration
from spillway.advise.drive import ServiceTimes
from spillway.advise.traffic import Traffic
from spillway.advise.workload import Workload

BLOOM_BASE = 0.6185  # false positives of a filter of b bits a key are this to the b. Source: (1/2)^(ln 2)
GET_US, PROBE_US = 4.0, 1.0  # processor time of a get, and of each run that it looks into. Source: guess
BLOCK_US = 3.0  # of reading and checking a block of 4 KiB. Source: guess
SEEK_US, NEXT_US = 5.0, 0.4  # of a scan: of each run, and of each pair. Source: guess
MOST_HITS = 0.98  # of a run's blocks. Source: guess
HOT_SHARE = 0.8  # of a run that zipfian requests of exponent 1 hardly reach. Source: guess
MOST_X, HALVINGS = 1e18, 20  # bytes; and of the bisection for x
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


def _missed(load: Workload, config: Configuration, traffic: Traffic) -> list[tuple[float, float]]:
    """(number of runs alike, share of their blocks that is not in the cache): L0, then each level."""
    passed = false_positives(config)
    runs = [(traffic.l0_files, traffic.l0_bytes, passed)]
    runs += [(1.0, size, passed) for size in traffic.level_bytes[:-1]]
    runs.append((1.0, traffic.level_bytes[-1], 1.0))
    hot = 1 - HOT_SHARE * load.skew if load.skew is not None else 1.0
    cached = [
        (count, max(1.0, size * hot), (load.gets * probed + load.scans) / max(load.reads, 1e-9))
        for count, size, probed in runs
    ]
    hits = _hits(cached, float(config.block_cache_bytes))
    return [(count, 1 - min(MOST_HITS, hit)) for (count, _, _), hit in zip(cached, hits, strict=True)]


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
    runs, passed = sorted_runs(traffic), false_positives(config)
    looked_into = 1 + (runs - 1) * passed
    *upper, (_, last) = _missed(load, config, traffic)
    of_value = 1.0 if config.shape == SEPARATED else 0.0
    processor = GET_US + PROBE_US * runs + BLOCK_US * looked_into * config.block_bytes / 4096
    return Read(
        blocks=passed * sum(count * missed for count, missed in upper) + last + of_value,
        block_bytes=max(float(config.block_bytes), float(load.pair_bytes)),
        ordered=0.0,
        ordered_bytes=0.0,
        processor_us=processor,
    )


def scan(load: Workload, config: Configuration, traffic: Traffic) -> Read:
    """A seek and ``scan_pairs`` steps. Separated values are each read at random."""
    runs, missed = sorted_runs(traffic), _missed(load, config, traffic)
    wanted = load.scan_pairs * load.pair_bytes
    processor = SEEK_US * runs + NEXT_US * load.scan_pairs + BLOCK_US * (runs * config.block_bytes + wanted) / 4096
    separated = config.shape == SEPARATED
    beyond = 0.0 if separated else max(0.0, wanted - config.block_bytes) * missed[-1][1]
    return Read(
        blocks=sum(count * each for count, each in missed) + (load.scan_pairs if separated else 0.0),
        block_bytes=max(float(config.block_bytes), float(load.pair_bytes)),
        ordered=beyond / READAHEAD_BYTES,
        ordered_bytes=float(READAHEAD_BYTES),
        processor_us=processor,
    )
