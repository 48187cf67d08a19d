"""B-trees in the DAM, PDAM and affine model, and the LSM tree in MQSSD (M4-M7, M13-M18, T3, T4, T6)."""

import numpy as np
import pytest
from scipy.optimize import minimize_scalar

from spillway.models import btree, lsm
from spillway.models.arrays import Array

N, B = 1e9, 40.0


def found_by_search(x: float, page_records: float) -> float:
    """Y that minimises (s + Y alpha) / ln(YB), by looking for it."""

    def cost(log_pages: float) -> float:
        pages = float(np.exp(log_pages))
        return (x + pages) / float(np.log(pages * page_records))

    least = float(np.log(1.0001 / page_records))
    bounds = (max(least, -2.0), float(np.log(x)) + 3)
    return float(np.exp(minimize_scalar(cost, bounds=bounds, method="bounded", options={"xatol": 1e-10}).x))


@pytest.mark.parametrize("x", [5.0, 42.0, 100.0, 1e3, 1e5])
@pytest.mark.parametrize("page_records", [16.0, 40.0, 512.0])
def test_exact_optimum_is_the_one_that_a_search_finds(x: float, page_records: float) -> None:
    exact = float(btree.best_point_node_pages(x, 1.0, page_records))
    assert exact == pytest.approx(found_by_search(x, page_records), rel=1e-4)
    assert exact * (np.log(exact * page_records) - 1) == pytest.approx(x)  # T6


def test_neighbours_of_the_optimum_cost_more() -> None:
    best = float(btree.best_point_node_pages(100.0, 1.0, B))
    costs = btree.path_us(N, B, best * np.array([0.5, 0.9, 1.0, 1.1, 2.0]), 100.0, 1.0)
    assert int(np.argmin(costs)) == 2


def test_asymptotic_optimum_is_approached() -> None:
    x = np.array([1e2, 1e4, 1e8, 1e16, 1e32])
    ratio = btree.best_point_node_pages_of_large(x, 1.0) / btree.best_point_node_pages(x, 1.0, np.e)
    assert (np.diff(np.abs(ratio - 1)) < 0).all()
    assert ratio[-1] == pytest.approx(1, abs=0.07)


def test_printed_optimum_is_dear() -> None:
    x = np.array([10.0, 42.0, 100.0, 1e3])

    def path(pages: Array) -> Array:
        return btree.path_us(N, 10.0, pages, x, 1.0)

    least = path(btree.best_point_node_pages(x, 1.0, 10.0))
    waste = path(btree.printed_point_node_pages(x, 1.0)) / least
    assert (np.diff(waste) > 0).all()
    assert ((waste[:3] > 1.4) & (waste[:3] < 3.0)).all()  # T6: 1.4 to 2.9 times
    assert (path(btree.best_point_node_pages_of_large(x, 1.0)) / least < 1.01).all()


def test_scans_want_larger_nodes_than_points() -> None:
    for x in (10.0, 100.0, 1e4):
        assert btree.best_scan_node_pages(x, 1.0) > btree.best_point_node_pages(x, 1.0, B)
    # At s / alpha pages a long scan costs twice its transfer, and no more than that beyond.
    pages, records = float(btree.best_scan_node_pages(100.0, 1.0)), 1e7
    cost = float(btree.operation_us(1e8, B, pages, 100.0, 1.0, records))
    assert cost == pytest.approx(2 * records / B, rel=1e-3)


def test_pdam_is_shallower_and_writes_more() -> None:
    assert btree.operation_cycles(N, B, 8) < btree.operation_transfers(N, B)
    assert btree.operation_cycles(N, B, 1) == btree.operation_transfers(N, B)
    assert btree.write_amplification(8 * 4096, 100) == 8 * btree.write_amplification(4096, 100)


def test_depth_by_hand() -> None:
    assert btree.depth([10, 100, 10_000], 10) == pytest.approx([0, 1, 3])
    assert btree.depth(5, 10) == 0
    assert btree.operation_transfers(10_000, 10, 50) == pytest.approx(3 + 5)
    # log_YB(N/YB) + 1 nodes from the root to the leaf.
    assert btree.path_us(1e6, 10, 10, 90, 1) == pytest.approx((2 + 1) * 100)


LAYOUT = lsm.Layout(data_bytes=6.4e7 * 2064, pair_bytes=2064)
COSTS = lsm.Costs(118.2556, 2.79, 56.07605, 3.53)


def test_setting_up_a_file_is_little_of_rewriting_it() -> None:
    # T31: 0.2 %, where the paper's raw s and t make it 4.4 times the transfer.
    transfer = 64 * 2**20 / 4096 * (2.79 + 3.53)
    whole = float(lsm.file_rewrite_us(LAYOUT, COSTS))
    assert (whole - transfer) / transfer == pytest.approx(0.0017, abs=2e-4)
    raw = float(lsm.file_rewrite_us(LAYOUT, lsm.Costs(3.10e5, 2.79, 1.47e5, 3.53)))
    assert (raw - transfer) / transfer == pytest.approx(4.4, abs=0.02)


def test_shape_of_the_tree() -> None:
    assert lsm.levels(LAYOUT, 2) == pytest.approx(np.log2(6.4e7 * 2064 / (4 * 64 * 2**20)))
    assert lsm.levels(lsm.Layout(1e6, 100), 10) == 0
    fanout = np.array([2.0, 4, 8, 16, 32])
    assert (np.diff(lsm.query_us(LAYOUT, fanout, COSTS)) < 0).all()
    assert lsm.query_us(LAYOUT, 8, COSTS) > lsm.block_read_us(LAYOUT, COSTS)


def test_insert_is_per_pair() -> None:
    # T3: a pair of twice the size costs twice as much; eq 9 as printed is per byte.
    twice = lsm.Layout(LAYOUT.data_bytes, 2 * LAYOUT.pair_bytes)
    assert lsm.insert_us(twice, 8, COSTS) == pytest.approx(2 * lsm.insert_us(LAYOUT, 8, COSTS))


def test_single_level_touches_the_files_that_there_are() -> None:
    # T4: 1,968 files, fewer than the 32,514 pairs of one.
    per_pair = float(lsm.single_level_insert_us(LAYOUT, COSTS))
    files = per_pair / float(lsm.file_rewrite_us(LAYOUT, COSTS)) * LAYOUT.file_bytes / LAYOUT.pair_bytes
    assert files == pytest.approx(1968, abs=1)
    assert LAYOUT.file_bytes / LAYOUT.pair_bytes == pytest.approx(32514, abs=1)


def test_scan_adds_its_pages_to_a_query() -> None:
    added = float(lsm.scan_us(LAYOUT, 8, COSTS, 4096 * 100) - lsm.query_us(LAYOUT, 8, COSTS))
    assert added == pytest.approx(100 * 3.53 + 56.07605 * 4096 * 100 / (64 * 2**20))
