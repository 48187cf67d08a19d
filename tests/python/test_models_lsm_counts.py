"""An LSM tree's reads and rewrites, counted; threads that wait for a drive; the paper's tables (M13-M20; T4, T34)."""

import itertools
import math
import random
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from spillway.errors import SpillwayError
from spillway.models import closed, lsm, lsm_compaction, lsm_reads
from spillway.models.lsm import Costs, Layout
from spillway.models.lsm_reads import SINGLE_LEVEL, Reading
from spillway.reproduce.document import columns
from spillway.suite import find_suite, load_suite

FANOUTS = (2.0, 4.0, 8.0, 16.0, 32.0)
TREES = (*FANOUTS, SINGLE_LEVEL)
PAPER = Layout(data_bytes=6.4e7 * 2064, pair_bytes=2064)
ONE_THREAD = Costs(118.2556, 2.79, 56.07605, 3.53)  # Table 2, k = 1, per access


@pytest.mark.parametrize("fanout", TREES)
@pytest.mark.parametrize("data_bytes", [1e6, 4 * 64 * 2**20, 1e10, 132.1e9, 1e13])
def test_levels_hold_all_data_and_all_but_the_last_are_full(fanout: float, data_bytes: float) -> None:
    layout = replace(PAPER, data_bytes=data_bytes)
    sizes = lsm_reads.level_bytes(layout, fanout)
    assert sizes.sum() == pytest.approx(data_bytes)
    assert 1 <= sizes.size <= lsm_reads.LEVELS
    if fanout == SINGLE_LEVEL:
        assert sizes.size == 1
        return
    targets = 4 * 64 * 2**20 * fanout ** np.arange(sizes.size)
    assert sizes[:-1] == pytest.approx(targets[:-1])
    if sizes.size < lsm_reads.LEVELS:
        assert sizes[-1] <= targets[-1] * (1 + 1e-9)


def test_a_tree_of_fanout_2_ends_where_rocksdb_has_no_more_levels() -> None:
    # Eq 10 has nine levels; six have data, and the last is 29 times the one above it.
    sizes = lsm_reads.level_bytes(PAPER, 2)
    assert sizes.size == 6
    assert lsm.levels(PAPER, 2) > 8.9
    assert sizes[-1] / sizes[-2] == pytest.approx(28.8, abs=0.1)


@pytest.mark.parametrize("fanout", TREES)
def test_blocks_of_a_query_are_those_of_keys_looked_for_one_by_one(fanout: float) -> None:
    layout = replace(PAPER, data_bytes=3e9)
    sizes = lsm_reads.level_bytes(layout, fanout)
    draw = random.Random(1)
    depth = draw.choices(range(1, sizes.size + 1), weights=list(sizes), k=20_000)  # newest first, down to its level
    assert lsm_reads.blocks_of_query(layout, fanout) == pytest.approx(np.mean(depth), rel=0.01)


@pytest.mark.parametrize("fanout", TREES)
def test_filters_leave_the_block_that_has_the_key(fanout: float) -> None:
    reads = [lsm_reads.blocks_of_query(PAPER, fanout, Reading(false_positives=f)) for f in (0.0, 0.01, 0.5, 1.0)]
    assert reads[0] == pytest.approx(1)
    assert reads[1] - 1 == pytest.approx((reads[3] - 1) / 100)
    assert reads[2] - 1 == pytest.approx((reads[3] - 1) / 2)


def test_a_query_skips_a_level_that_has_no_file_for_its_key() -> None:
    whole, single = lsm_reads.blocks_of_query(PAPER, 8), lsm_reads.blocks_of_query(PAPER, SINGLE_LEVEL)
    half = lsm_reads.blocks_of_query(PAPER, 8, Reading(covered=0.5))
    assert half - single == pytest.approx((whole - single) / 2)
    assert lsm_reads.blocks_of_query(PAPER, 8, Reading(covered=0.0)) == pytest.approx(1)
    assert lsm_reads.blocks_of_query(PAPER, SINGLE_LEVEL, Reading(covered=0.5)) == pytest.approx(1)


def test_files_left_in_l0_are_looked_into_by_every_query() -> None:
    settled = lsm_reads.blocks_of_query(PAPER, 8)
    for left in (0.5, 1.0, 3.0):
        assert lsm_reads.blocks_of_query(PAPER, 8, Reading(l0_files=left)) == pytest.approx(settled + left)
        filtered = lsm_reads.blocks_of_query(PAPER, 8, Reading(l0_files=left, false_positives=0.0))
        assert filtered == pytest.approx(1)


def test_a_cache_is_an_lru() -> None:
    """Against one that is run: three levels, of which a query looks for a block in each."""
    looked_for, blocks, capacity = np.array([1.0, 0.9, 0.5]), np.array([50.0, 400.0, 2000.0]), 600
    cache: OrderedDict[tuple[int, int], None] = OrderedDict()
    draw, hits, asked = random.Random(7), np.zeros(3), np.zeros(3)
    for turn in range(12_000):
        for level in range(3):
            if draw.random() >= looked_for[level]:
                continue
            block = (level, draw.randrange(int(blocks[level])))
            if turn >= 2_000:
                asked[level] += 1
                hits[level] += block in cache
            cache[block] = None
            cache.move_to_end(block)
            if len(cache) > capacity:
                cache.popitem(last=False)
    expected = lsm_reads.cached(looked_for, blocks, capacity)
    assert expected == pytest.approx(hits / asked, abs=0.02)
    assert float((expected * blocks).sum()) == pytest.approx(capacity, rel=1e-6)


def test_a_cache_of_nothing_and_of_everything() -> None:
    looked_for, blocks = np.array([1.0, 0.5, 0.0]), np.array([10.0, 100.0, 1000.0])
    assert (lsm_reads.cached(looked_for, blocks, 0) == 0).all()
    assert (lsm_reads.cached(looked_for, blocks, 110) == [1, 1, 0]).all()
    shares = [lsm_reads.cached(looked_for, blocks, each) for each in (1e-6, 1, 30, 100, 109.999)]
    assert all((more >= less).all() for less, more in itertools.pairwise(shares))
    data = lsm_reads.blocks_of_query(PAPER, 8, Reading(cache_bytes=2 * PAPER.data_bytes))
    assert data == pytest.approx(0, abs=1e-6)


@pytest.mark.parametrize("size", [1, 2, 100, 4095, 4096, 4097, 4165, 8192, 100_000])
def test_pages_of_a_read_are_the_mean_over_all_offsets(size: int) -> None:
    touched = [(offset + size - 1) // 4096 + 1 for offset in range(4096)]
    assert lsm_reads.pages_of(size) == pytest.approx(np.mean(touched))


@pytest.mark.parametrize(
    ("pair", "pairs"),
    [(2064, 2), (52, 64), (988, 4), (1500, 3), (3800, 1), (2500, 2), (4084, 1), (10_000, 1)],
)
def test_a_block_has_whole_pairs(pair: int, pairs: int) -> None:
    block = lsm_reads.block_bytes(Layout(1e9, pair))
    assert block == pairs * (pair + lsm_reads.PAIR_EXTRA_BYTES) + lsm_reads.BLOCK_EXTRA_BYTES


def test_a_run_is_read_ahead_after_two_reads() -> None:
    # Blocks of 4,165 bytes: two alone, then with 8, 16, 32 ... KiB ahead, by hand.
    assert [lsm_reads.reads_in_row(PAPER, blocks)[0] for blocks in (1, 2, 3, 4, 5, 9, 10, 18, 19)] == [
        *(1, 2, 3, 3, 4, 4, 5, 5, 6),
    ]
    reads, pages = zip(*(lsm_reads.reads_in_row(PAPER, blocks) for blocks in np.arange(1, 400, 0.5)), strict=True)
    assert (np.diff(reads) >= 0).all()
    assert (np.diff(pages) >= 0).all()
    assert (np.array(pages) * 4096 > np.arange(1, 400, 0.5) * 4165).all()  # it moves what it is asked for, and more


def test_scans_seek_every_run_and_read_the_pairs_once() -> None:
    single, pages = lsm_reads.reads_of_scan(PAPER, SINGLE_LEVEL, 128 * 2064)
    assert single == 7  # 65 blocks
    for fanout in FANOUTS:
        reads, moved = lsm_reads.reads_of_scan(PAPER, fanout, 128 * 2064)
        assert reads > single
        assert pages < moved < 2 * pages
        more, _ = lsm_reads.reads_of_scan(PAPER, fanout, 128 * 2064, Reading(l0_files=2))
        assert more == pytest.approx(reads + 2, abs=0.2)


def test_times_have_the_shape_and_the_unit_of_the_costs() -> None:
    many = Costs(0, 0, np.array([56.0, 28.0]), np.array([3.5, 1.75]))
    for time in (lsm_reads.query_us(PAPER, 8, many), lsm_reads.scan_us(PAPER, 8, many, 1e5)):
        assert time.shape == (2,)
        assert time[0] == pytest.approx(2 * time[1])
    only_reads = Costs(0, 0, 1.0, 0.0)
    assert lsm_reads.query_us(PAPER, 8, only_reads) == pytest.approx(lsm_reads.blocks_of_query(PAPER, 8))
    assert lsm_reads.scan_us(PAPER, 8, only_reads, 1e5) == pytest.approx(lsm_reads.reads_of_scan(PAPER, 8, 1e5)[0])
    twice = replace(PAPER, block_bytes=2 * 4096)
    assert lsm_reads.query_us(twice, 8, ONE_THREAD) > lsm_reads.query_us(PAPER, 8, ONE_THREAD)


def test_table_3_up_to_a_constant() -> None:
    """M20: queries of one thread over F, within an eighth; of k = 1 to 16 threads too, with the cost of one shared."""
    table, covered = columns("mqssd_table3_query_scan"), Reading(covered=lsm_reads.COVERED)
    alone = np.array([float(lsm_reads.query_us(PAPER, fanout, ONE_THREAD, covered)) for fanout in FANOUTS])
    for row, k in enumerate(table["k"][:5]):
        seen = np.array([table[f"query_F{fanout:g}"][row] for fanout in FANOUTS]) / 3.2e6 * 1e6
        ratio = closed.operation_us(k, alone, 1.0) / seen
        assert np.abs(ratio / np.exp(np.log(ratio).mean()) - 1).max() < 0.125
        # The same constant at every k, where Table 2's costs would have another at each.
        assert ratio.mean() == pytest.approx(0.44, abs=0.03)


def test_table_3_orderings() -> None:
    """T5: by their blocks queries and scans are fastest with the largest fanout; M30: a single level beats them all."""
    queries = [float(lsm_reads.query_us(PAPER, fanout, ONE_THREAD)) for fanout in TREES]
    assert queries == sorted(queries, reverse=True)
    scans = [float(lsm_reads.scan_us(PAPER, fanout, ONE_THREAD, 128 * 2064)) for fanout in TREES]
    assert scans[-1] == min(scans)
    assert scans[-2] == min(scans[:-1])


def test_flash_configuration_reads_as_many_runs_as_the_default_of_its_fanout() -> None:
    # M31: C = 8 makes L1 larger, and saves a part of a level.
    flash = lsm_reads.blocks_of_query(replace(PAPER, l0_files=8), 8)
    assert 0 < lsm_reads.blocks_of_query(PAPER, 8) - flash < 1


def test_threads_by_the_states_of_a_closed_network() -> None:
    """The product form: n of k wait or are served, in order, and the others are on their way in any order."""
    for alone, least, k in ((100.0, 5.0, 1), (100.0, 5.0, 8), (100.0, 5.0, 40), (10.0, 9.0, 6), (7.0, 7.0, 5)):
        delay = alone - least
        weights = [least**n * delay ** (k - n) / math.factorial(k - n) for n in range(k + 1)]
        busy = 1 - weights[0] / sum(weights)
        assert closed.operation_us(k, alone, least) == pytest.approx(least / busy)


def test_threads_are_between_their_bounds() -> None:
    k = np.arange(1, 200)
    cost = closed.operation_us(k, 60.0, 0.8)
    assert cost[0] == pytest.approx(60)
    assert (np.diff(cost) <= 1e-12).all()
    assert (cost >= np.maximum(0.8, 60 / k) * (1 - 1e-12)).all()
    assert (cost <= 60 / k + 0.8).all()
    assert closed.operation_us(4096, 60.0, 0.8) == pytest.approx(0.8)
    assert closed.operation_us(k[:, None], np.array([[60.0, 120.0]]), 0.8).shape == (199, 2)


def test_rewrites_by_hand() -> None:
    # Of four files, L1 is all there is: a compaction of m = 4 files writes them and half of L1 on average.
    small = replace(PAPER, data_bytes=4.0 * 64 * 2**20)
    assert lsm_compaction.rewrites(small, 8) == pytest.approx(1.5, abs=0.01)
    # A single level rewrites half of all data for m files (T4).
    files = PAPER.data_bytes / PAPER.file_bytes
    for taken in (1, 4, 28):
        counted = lsm_compaction.rewrites(PAPER, SINGLE_LEVEL, l0_taken=taken)
        assert counted == pytest.approx(1 + files / 2 / taken, rel=1e-6)
        assert lsm_compaction.rewrites(PAPER, SINGLE_LEVEL, l0_taken=taken, overlap=0.1) == counted


@pytest.mark.parametrize("fanout", FANOUTS)
def test_less_overlap_and_less_data_rewrite_less(fanout: float) -> None:
    by_overlap = [lsm_compaction.rewrites(PAPER, fanout, overlap=each) for each in (0.2, 0.6, 1.0)]
    assert by_overlap == sorted(by_overlap)
    by_size = [lsm_compaction.rewrites(replace(PAPER, data_bytes=each), fanout) for each in (1e8, 1e9, 1e10, 1e11)]
    assert by_size == sorted(by_size)


def test_equation_9_counts_more_rewrites_than_there_are() -> None:
    for fanout in FANOUTS[1:]:
        printed = PAPER.l0_files + fanout * float(lsm.levels(PAPER, fanout))
        assert 0.6 * printed < lsm_compaction.rewrites(PAPER, fanout) < printed


def test_a_block_at_a_time_is_what_table_4_shows() -> None:
    """T34: compaction by one thread, with Table 2's costs and no constant: within 2.3 times, never a fifth of it."""
    table = columns("mqssd_table4_compaction")
    for fanout in FANOUTS:
        times = lsm_compaction.rewrites(PAPER, fanout)
        seen = table[f"F{fanout:g}"][0]
        block, ahead = (
            64 * float(lsm_compaction.pair_us(PAPER, times, ONE_THREAD, size)) / seen
            for size in (lsm_reads.block_bytes(PAPER), 2 * 2**20)
        )
        assert 1 < block < 2.3
        assert ahead < 0.25


def test_reading_ahead_costs_set_ups_only() -> None:
    no_set_up = Costs(0.0, 2.79, 0.0, 3.53)
    small, large = (float(lsm_compaction.pair_us(PAPER, 1.0, no_set_up, size)) for size in (2**20, 2**24))
    assert small == pytest.approx(large, rel=0.01)
    assert large == pytest.approx(2064 / 4096 * (2.79 + 3.53), rel=0.001)
    assert lsm_compaction.pair_us(PAPER, np.array([1.0, 2.0, 4.0]), ONE_THREAD, 2**20).shape == (3,)


@pytest.mark.parametrize(
    "call",
    [
        lambda: lsm_reads.level_bytes(PAPER, 1.0),
        lambda: lsm_reads.level_bytes(PAPER, math.nan),
        lambda: lsm_reads.level_bytes(PAPER, -math.inf),
        lambda: lsm_reads.level_bytes(PAPER, 8, 0),
        lambda: lsm_reads.level_bytes(replace(PAPER, data_bytes=0), 8),
        lambda: lsm_reads.level_bytes(replace(PAPER, data_bytes=math.inf), SINGLE_LEVEL),
        lambda: lsm_reads.level_bytes(replace(PAPER, l0_files=0), 8),
        lambda: lsm_reads.blocks_of_query(PAPER, 8, Reading(false_positives=1.1)),
        lambda: lsm_reads.blocks_of_query(PAPER, 8, Reading(false_positives=math.nan)),
        lambda: lsm_reads.blocks_of_query(PAPER, 8, Reading(covered=1.1)),
        lambda: lsm_reads.blocks_of_query(PAPER, 8, Reading(covered=-0.1)),
        lambda: lsm_reads.blocks_of_query(PAPER, 8, Reading(l0_files=-1)),
        lambda: lsm_reads.blocks_of_query(PAPER, 8, Reading(cache_bytes=-1)),
        lambda: lsm_reads.blocks_of_query(replace(PAPER, pair_bytes=0), 8),
        lambda: lsm_reads.blocks_of_query(replace(PAPER, block_bytes=0), 8),
        lambda: lsm_reads.reads_of_scan(PAPER, 8, 0),
        lambda: lsm_reads.reads_in_row(PAPER, 0),
        lambda: lsm_reads.pages_of(0),
        lambda: closed.operation_us(0, 10, 1),
        lambda: closed.operation_us(1.5, 10, 1),
        lambda: closed.operation_us(closed.MOST_THREADS + 1, 10, 1),
        lambda: closed.operation_us(math.nan, 10, 1),
        lambda: closed.operation_us(4, 10, 11),
        lambda: closed.operation_us(4, 0, 0),
        lambda: lsm_compaction.rewrites(PAPER, 8, overlap=0),
        lambda: lsm_compaction.rewrites(PAPER, 8, l0_taken=0),
        lambda: lsm_compaction.rewrites(PAPER, math.nan),
        lambda: lsm_compaction.pair_us(PAPER, 0, ONE_THREAD, 4096),
        lambda: lsm_compaction.pair_us(PAPER, 1, ONE_THREAD, 0),
    ],
)
def test_what_is_out_of_range_is_refused(call: Callable[[], object]) -> None:
    with pytest.raises(SpillwayError, match="must be"):
        call()


def test_the_suites_counts_are_these() -> None:
    """Claims "counted" of plans/mqssd are of this model, and have its values."""
    claims = load_suite(find_suite("mqssd")).claims
    counted = [claim for claim in claims if claim.where == "counted"]
    assert len(counted) == 12
    for claim in counted:
        fanout = float(claim.place.at["engine.options.max_bytes_for_level_multiplier"])
        files = float(claim.place.at["engine.options.level0_file_num_compaction_trigger"])
        covered = Reading(covered=lsm_reads.COVERED)
        blocks = lsm_reads.blocks_of_query(replace(PAPER, l0_files=files), fanout, covered)
        assert claim.published == pytest.approx(blocks, rel=3e-3)
