"""The parametric I/O model against the PIO paper's own figures (P2-P10)."""

import numpy as np
import pytest
from recomputed import columns

from spillway.errors import SpillwayError
from spillway.models import pio


def test_speed_ups_of_the_text() -> None:
    assert pio.speedup_of_batched_writes(0.5, [8, 1], 8) == pytest.approx([4.5, 16 / 9])
    assert pio.speedup_of_batched_reads(0.5, [1, 8], 8) == pytest.approx([16 / 9, 1.1077], rel=1e-4)


def test_speed_ups_on_the_whole_grid() -> None:
    grid = columns("pio_speedups.csv")
    fr, alpha, k = grid["fr"], grid["alpha"], grid["k"]
    assert fr.size == 175
    assert pio.cost(fr, alpha) == pytest.approx(grid["cost_unbatched"], abs=5e-5)
    assert pio.speedup_of_batched_writes(fr, alpha, k) == pytest.approx(grid["S_URBW"], abs=1e-6)
    assert pio.speedup_of_batched_reads(fr, alpha, k) == pytest.approx(grid["S_BRUW"], abs=1e-6)
    assert pio.speedup_of_both_batched(fr, alpha, k, k) == pytest.approx(grid["S_BRBW_kr=kw"], abs=1e-6)


def test_bounds_of_the_speed_ups() -> None:
    fr, alpha, k_r, k_w = np.meshgrid(np.linspace(0, 1, 11), [1, 1.5, 4, 16], [1, 3, 80], [1, 8, 19])
    writes, reads = pio.speedup_of_batched_writes(fr, alpha, k_w), pio.speedup_of_batched_reads(fr, alpha, k_r)
    both = pio.speedup_of_both_batched(fr, alpha, k_r, k_w)
    for gain, most in ((writes, k_w), (reads, k_r), (both, np.maximum(k_r, k_w))):
        assert (gain >= 1 - 1e-12).all()
        assert (gain <= most * (1 + 1e-12)).all()
    assert (both >= np.maximum(writes, reads) - 1e-12).all()


def test_asymmetry_helps_writers_and_hurts_readers() -> None:
    alpha = np.linspace(1, 16, 31)
    assert (np.diff(pio.speedup_of_batched_writes(0.5, alpha, 8)) > 0).all()
    assert (np.diff(pio.speedup_of_batched_reads(0.5, alpha, 8)) < 0).all()
    assert np.ptp(pio.speedup_of_batched_writes(0, alpha, 8)) == pytest.approx(0)
    assert np.ptp(pio.speedup_of_batched_reads(1, alpha, 8)) == pytest.approx(0)


def test_all_ones_is_the_external_memory_model() -> None:
    fr = np.linspace(0, 1, 5)
    assert pio.cost(fr, 1).tolist() == [1] * 5
    assert pio.speedup_of_both_batched(fr, 1, 1, 1).tolist() == [1] * 5


def test_empty_channels() -> None:
    table = columns("pio_appendixA.csv")
    n, m = table["n"], table["m"]
    assert pio.empty_channels(n, m) == pytest.approx(table["E_m"], abs=1e-6)
    assert pio.empty_share(n, m) == pytest.approx(table["empty_fraction"], abs=1e-6)
    assert pio.empty_share_of_many(m / n) == pytest.approx(table["exp_approx"], abs=1e-6)
    assert pio.empty_share([4, 8], [4, 8]) == pytest.approx([0.316, 0.344], abs=5e-4)


def test_empty_channels_by_counting() -> None:
    # All ways for 5 I/Os to fall on 3 channels, each as likely as the other.
    ways = np.array(np.meshgrid(*[range(3)] * 5)).reshape(5, -1)
    empty = sum((ways != channel).all(axis=0).mean() for channel in range(3))
    assert float(pio.empty_channels(3, 5)) == pytest.approx(float(empty))


def test_the_asymptote_is_approached_from_below() -> None:
    n = np.array([2, 8, 32, 128, 4096])
    gap = pio.empty_share_of_many(1) - pio.empty_share(n, n)
    assert (gap > 0).all()
    assert (np.diff(gap) < 0).all()
    assert gap[-1] < 1e-4


def test_asymmetry_two_ways() -> None:
    assert float(pio.asymmetry(427, 36)) == pytest.approx(11.86, abs=5e-3)
    # A drive capped at 60 K IOPS for both has no asymmetry by definition, and has one by its slopes (T14).
    assert float(pio.asymmetry(60e3, 60e3)) == 1
    assert float(pio.asymmetry_of_slopes(60e3 / 11, 60e3 / 19)) == pytest.approx(19 / 11)


def test_a_batch_beyond_k_gains_nothing() -> None:
    assert pio.page_cost_us([1, 4, 8, 64], 24.0, 8).tolist() == [24, 6, 3, 3]


def test_out_of_range_is_refused() -> None:
    with pytest.raises(SpillwayError, match="read_share must be between 0 and 1"):
        pio.cost(50, 1)
    with pytest.raises(SpillwayError, match="k_w must be at least 1"):
        pio.speedup_of_batched_writes(0.5, 1, 0)
    with pytest.raises(SpillwayError, match="channels must be at least 1"):
        pio.empty_channels(0, 3)
