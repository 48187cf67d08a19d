"""What point queries and scans read of a levelled tree, counted: eqs 10 and 12 with what they leave out (M16-M20).

    S_i   bytes of level i: C T F^(i-1) as far as the data goes; the last level that there may be takes the rest
    q_i   share of queries that get as far as level i (newest first, each key once): 1 - (S_1 + ... + S_(i-1)) / N
    l_i   share of queries that look for a block there: S_i / N + f c (q_i - S_i / N)
    h_i   share of those blocks that the cache has: 1 - exp(-l_i t / n_i), with t so that sum n_i h_i = its blocks
    blocks of a query = f L0 + sum l_i (1 - h_i)
    pages of a block  = 1 + (B' - 1) / B                                                 read directly, at any offset
    query  = blocks (tau + pages alpha)
    scan   = reads tau + pages alpha          of all runs: each is sought, each is read ahead for its share of the pairs

    N  bytes of pairs    T  bytes of a file    C  files in L0    F  fanout    B'  bytes of a block    B  of a page
    L0  files of L0 that are left    n_i  blocks of level i    f  false positives of a filter, 1 without one
    c   share of the keys between the first and the last key of some file of a level

Eq 10 counts C + log_F(N/CT) runs for every query. Compactions leave fewer than C files in L0, RocksDB has no more than
six levels below it, a query ends where it finds its key, and it skips a level none of whose files has its key in range.
Compactions take files out of levels and leave holes; only the last level has none. The paper's block of 4 KiB holds two
pairs of 2,064 bytes and lies across two pages.

Holds after all compactions, for keys that are in the store, once each, and asked for uniformly. The cache is one LRU
(Che, Tung and Wang 2002). Ignores time on the processor. Source: RocksDB 7.8 (`db/version_set.cc` for targets of levels
and look-ups, `table/block_based/block_prefetcher.cc` for read-ahead).
"""

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from scipy.optimize import brentq

from spillway.errors import SpillwayError
from spillway.models.arrays import PAGE_BYTES, Array, quantity, share
from spillway.models.lsm import Costs, Layout

LEVELS = 6  # below L0. Source: RocksDB's num_levels, 7
SINGLE_LEVEL = math.inf  # the fanout of a tree with one level
PAIR_EXTRA_BYTES = 12  # of a pair in a block: sequence number, lengths. Source: RocksDB, dbformat.h, block_builder.cc
BLOCK_EXTRA_BYTES = 13  # of a block: restarts, trailer. Source: RocksDB, block_builder.cc, format.h
FULL_SHARE = 0.9  # of B': a fuller block ends before a pair that is too large. Source: RocksDB's block_size_deviation
SINGLE_READS = 2  # of a run before it is read ahead. Source: RocksDB's num_file_reads_for_auto_readahead
FIRST_AHEAD_BYTES = 8 * 2**10  # Source: RocksDB's initial_auto_readahead_size
MOST_AHEAD_BYTES = 256 * 2**10  # Source: RocksDB's max_auto_readahead_size


# Levels above the last of trees that `plans/mqssd/queries.toml` loads: 0.35 to 0.85, mean 0.6, whatever the fanout.
# Source: files' ranges in their MANIFESTs, RocksDB 7.8
COVERED = 0.6


@dataclass(frozen=True)
class Reading:
    """What decides on reads besides the layout."""

    l0_files: float = 0.0  # left in L0
    false_positives: float = 1.0  # of a filter; 1: there is none, as in db_bench
    covered: float = 1.0  # c; COVERED in trees of RocksDB
    cache_bytes: float = 0.0  # of the block cache
    levels: int = LEVELS


def level_bytes(layout: Layout, fanout: float, levels: int = LEVELS) -> Array:
    """Bytes of each level below L0 after all compactions, from L1 on; only levels with data. Raises SpillwayError."""
    quantity("fanout", fanout if fanout != SINGLE_LEVEL else 2, least=1)
    if levels < 1:
        raise SpillwayError(f"levels must be at least 1; it is {levels}.")
    left = float(quantity("data_bytes", layout.data_bytes))
    if fanout == SINGLE_LEVEL:
        return np.array([left])
    target = float(quantity("l0_files", layout.l0_files) * quantity("file_bytes", layout.file_bytes))
    found: list[float] = []
    while left > 0:
        found.append(left if len(found) == levels - 1 else min(left, target))
        left -= found[-1]
        target *= fanout
    return np.array(found)


def reached(bytes_by_level: Array) -> Array:
    """The share of queries that get as far as each level: those whose key is there or deeper."""
    shares = bytes_by_level / bytes_by_level.sum()
    return np.asarray(1 - np.concatenate(([0.0], np.cumsum(shares)[:-1])), dtype=np.float64)


@lru_cache(maxsize=256)
def block_bytes(layout: Layout) -> float:
    """Bytes of a data block as RocksDB makes them: whole pairs, up to B' or beyond it by the last one."""
    pair = float(quantity("pair_bytes", layout.pair_bytes)) + PAIR_EXTRA_BYTES
    wanted = float(quantity("block_bytes", layout.block_bytes))
    fitting = math.floor(wanted / pair)
    pairs = fitting if fitting * pair > FULL_SHARE * wanted else fitting + 1
    return pairs * pair + BLOCK_EXTRA_BYTES


def pages_of(read_bytes: float) -> float:
    """Pages that a read of so many bytes touches, on average over all offsets."""
    return 1 + (float(quantity("read_bytes", read_bytes)) - 1) / PAGE_BYTES


def cached(looked_for: Array, blocks: Array, cache_blocks: float) -> Array:
    """The share of look-ups in each level that an LRU cache of ``cache_blocks`` answers.

    ``looked_for``: look-ups of each level in a query; ``blocks``: blocks of each level, asked for uniformly.
    """
    if cache_blocks <= 0:
        return np.zeros_like(blocks)
    wanted = looked_for > 0
    if cache_blocks >= blocks[wanted].sum():
        return np.asarray(wanted, dtype=np.float64)

    def held(log_queries: float) -> float:
        return float((blocks * -np.expm1(-looked_for * math.exp(log_queries) / blocks)).sum()) - cache_blocks

    # Of t queries no more than t times the look-ups of one are in the cache, and of enough of them nearly all blocks.
    low = math.log(cache_blocks / looked_for.sum()) - 1
    high = math.log(blocks.max() / looked_for[wanted].min()) + 5
    queries = math.exp(brentq(held, low, high)) if held(high) > 0 else math.exp(high)
    return np.asarray(-np.expm1(-looked_for * queries / blocks), dtype=np.float64)


def blocks_of_query(layout: Layout, fanout: float, reading: Reading = Reading()) -> float:
    """Blocks that a point query reads from the drive. ``fanout`` SINGLE_LEVEL: all data in one level (eq 12)."""
    false_positives = float(share("false_positives", reading.false_positives))
    l0_files = float(quantity("l0_files", reading.l0_files, above=False))
    cache_bytes = float(quantity("cache_bytes", reading.cache_bytes, above=False))
    sizes = level_bytes(layout, fanout, reading.levels)
    there = sizes / sizes.sum()
    in_range = float(share("covered", reading.covered)) * np.maximum(0.0, reached(sizes) - there)
    looked_for = there + false_positives * in_range
    of_l0 = np.full(math.ceil(l0_files), false_positives * l0_files / max(1, math.ceil(l0_files)))
    all_runs = np.concatenate((of_l0, looked_for))
    all_bytes = np.concatenate((np.full(of_l0.size, layout.file_bytes), sizes))
    block = block_bytes(layout)
    found = cached(all_runs, all_bytes / block, cache_bytes / block)
    return float((all_runs * (1 - found)).sum())


def query_us(layout: Layout, fanout: float, costs: Costs, reading: Reading = Reading()) -> Array:
    """One point query. Shape of the costs (M16)."""
    one = np.asarray(costs.tau_us, dtype=np.float64) + pages_of(block_bytes(layout)) * np.asarray(costs.alpha_us)
    return np.asarray(blocks_of_query(layout, fanout, reading) * one, dtype=np.float64)


def reads_in_row(layout: Layout, blocks: float) -> tuple[float, float]:
    """Reads and pages that ``blocks`` data blocks of one run take, one after another; between whole blocks linear."""
    count = float(quantity("blocks", blocks))
    below, above = _reads(layout, math.floor(count)), _reads(layout, math.ceil(count))
    part = count - math.floor(count)
    return below[0] + part * (above[0] - below[0]), below[1] + part * (above[1] - below[1])


@lru_cache(maxsize=4096)
def _reads(layout: Layout, blocks: int) -> tuple[float, float]:
    block, ahead = block_bytes(layout), FIRST_AHEAD_BYTES
    reads, pages, held = 0, 0.0, 0.0
    while held < blocks:
        size = block if reads < SINGLE_READS else block + ahead
        if reads >= SINGLE_READS:
            ahead = min(2 * ahead, MOST_AHEAD_BYTES)
        reads, pages, held = reads + 1, pages + pages_of(size), held + size / block
    return float(reads), pages


def reads_of_scan(
    layout: Layout, fanout: float, scan_bytes: float, reading: Reading = Reading()
) -> tuple[float, float]:
    """Reads and pages of a scan: every run is sought, and read for its share of the bytes. Nothing is cached."""
    wanted = float(quantity("scan_bytes", scan_bytes))
    sizes = level_bytes(layout, fanout, reading.levels)
    block = block_bytes(layout)
    l0_files = float(quantity("l0_files", reading.l0_files, above=False))
    runs = [(1.0, each / sizes.sum()) for each in sizes] + [(l0_files, layout.file_bytes / layout.data_bytes)]
    reads = pages = 0.0
    for count, part in runs:
        # A seek finds its place anywhere in a block, so that a block more is begun than the bytes fill.
        own_reads, own_pages = reads_in_row(layout, 1 + part * wanted / block)
        reads, pages = reads + count * own_reads, pages + count * own_pages
    return reads, pages


def scan_us(layout: Layout, fanout: float, costs: Costs, scan_bytes: float, reading: Reading = Reading()) -> Array:
    """One scan of ``scan_bytes``. Shape of the costs (M17)."""
    reads, pages = reads_of_scan(layout, fanout, scan_bytes, reading)
    tau, alpha = np.asarray(costs.tau_us, dtype=np.float64), np.asarray(costs.alpha_us, dtype=np.float64)
    return np.asarray(reads * tau + pages * alpha, dtype=np.float64)
