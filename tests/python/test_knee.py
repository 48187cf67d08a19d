"""The knee rules on curves whose answer is known."""

from typing import Any

import numpy as np
import pytest

from spillway.errors import SpillwayError
from spillway.fit import knee

EVERY = np.arange(1, 129)
DOUBLING = 2.0 ** np.arange(0, 9)


def ideal(c: Any, n: float, latency: float = 1.0) -> Any:
    """n served at a time, none waits for another."""
    return np.minimum(np.asarray(c, dtype=float), n) / latency


def occupancy(c: Any, n: int) -> Any:
    """Busy channels of n when c I/Os hit them at random (appendix A, P9)."""
    return n * (1 - (1 - 1 / n) ** np.asarray(c, dtype=float))


@pytest.mark.parametrize("n", [1.0, 4.0, 9.0, 25.0, 64.0])
def test_ideal_saturation_is_found_where_it_is(n: float) -> None:
    found = knee.from_bandwidth(EVERY, ideal(EVERY, n))
    assert found.saturated
    assert found.k.value == pytest.approx(max(n / 1.05, 1), rel=0.01)
    assert found.k.low <= max(n / 1.05, 1) <= found.k.high
    assert found.plateau.value == pytest.approx(n)


def test_what_two_ios_do_does_not_blur_a_knee_at_many() -> None:
    # One read that nothing waits for may be faster than two that wait for each other.
    rates = ideal(DOUBLING, 40.0)
    rates[0] = 3.0
    found = knee.from_bandwidth(DOUBLING, rates)
    assert (found.k.low, found.k.high) == (32.0, 64.0)
    rates[-3:] *= (1.2, 0.8, 1.0)
    blurred = knee.from_bandwidth(DOUBLING, rates)
    assert blurred.k.low < 32.0, "noise near saturation does"


@pytest.mark.parametrize("n", [4.0, 9.0, 25.0])
def test_the_bend_of_latency_is_the_same_place(n: float) -> None:
    found = knee.from_latency(EVERY, EVERY / ideal(EVERY, n, latency=80.0))
    assert found.value == pytest.approx(n, rel=0.1)
    assert found.low <= found.value <= found.high


@pytest.mark.parametrize("seed", range(5))
def test_noise_moves_the_knee_less_than_its_interval(seed: int) -> None:
    random = np.random.default_rng(seed)
    n = 16.0
    noisy = ideal(EVERY, n) * random.normal(1, 0.03, EVERY.size)
    found = knee.from_bandwidth(EVERY, noisy)
    assert found.k.low <= n / 1.05 <= found.k.high
    assert found.k.value == pytest.approx(n / 1.05, rel=0.1)
    assert found.plateau.value == pytest.approx(n, rel=0.06)
    assert knee.from_latency(EVERY, EVERY / noisy).value == pytest.approx(n, rel=0.2)


@pytest.mark.parametrize("n", [4, 8, 16, 32])
def test_random_occupancy_takes_three_times_as_many(n: int) -> None:
    """Appendix A: 95 % of n channels are busy with 3 n I/Os."""
    c = np.arange(1, 8 * n + 1)
    found = knee.from_bandwidth(c, occupancy(c, n))
    exact = np.log(0.05) / np.log(1 - 1 / n)
    assert found.k.value == pytest.approx(exact, rel=0.05)
    assert found.k.value == pytest.approx(3 * n, rel=0.15)


def test_a_coarse_grid_gives_a_wide_interval() -> None:
    fine = knee.from_bandwidth(EVERY, ideal(EVERY, 12))
    coarse = knee.from_bandwidth(DOUBLING, ideal(DOUBLING, 12))
    assert coarse.k.low <= 12 <= coarse.k.high
    assert coarse.k.high - coarse.k.low > 4 * (fine.k.high - fine.k.low)


def test_a_curve_that_still_grows_says_so() -> None:
    found = knee.from_bandwidth(DOUBLING, DOUBLING)
    assert not found.saturated
    assert found.k.high == float("inf")


def test_repeated_and_shuffled_points_are_one_curve() -> None:
    c = np.concatenate([EVERY, EVERY])[::-1]
    once, twice = knee.from_bandwidth(EVERY, ideal(EVERY, 10)), knee.from_bandwidth(c, ideal(c, 10))
    assert once == twice


def test_a_drop_beyond_saturation_does_not_hide_it() -> None:
    """Pushed too far, a drive loses throughput (Fig 10): the plateau is then the mean beyond the knee."""
    y = np.where(EVERY <= 10, EVERY, 10 - 0.005 * (EVERY - 10))
    assert knee.from_bandwidth(EVERY, y).k.value == pytest.approx(9.5, abs=0.6)


def test_what_creeps_up_is_not_growth() -> None:
    """4 % more with each doubling beyond saturation: 95 % of the largest bandwidth would come far too late."""
    y = np.minimum(EVERY, 5) * np.maximum(EVERY / 5, 1) ** np.log2(1.04)
    assert knee.from_bandwidth(EVERY, y).k.value == pytest.approx(5, rel=0.05)


def test_a_pause_in_growth_is_not_its_end() -> None:
    """The second thread may gain nothing, and the next ones do (MQSSD, Table 2)."""
    c = np.array([1, 2, 4, 8, 16, 32, 64, 128])
    found = knee.from_bandwidth(c, [1468, 1361, 1581, 2122, 3225, 4597, 5498, 5877])
    assert found.k.value > 32


def test_alpha_is_the_ratio_of_saturated_bandwidths() -> None:
    read = knee.from_bandwidth(EVERY, ideal(EVERY, 80, latency=40e-6))
    write = knee.from_bandwidth(EVERY, ideal(EVERY, 8, latency=11.2e-6))
    found = knee.alpha(read, write)
    assert found.value == pytest.approx(2.8)
    assert found.low <= found.value <= found.high
    assert found.value != pytest.approx(80 / 8)  # P2: alpha is not k_r / k_w


def test_a_capped_drive_shows_its_asymmetry_in_slopes_only() -> None:
    """T14: 60 K IOPS for both, reached by 11 reads or 19 writes."""
    c = np.arange(1, 41)
    read, write = np.minimum(c / 180e-6, 60e3), np.minimum(c / 320e-6, 60e3)
    knees = knee.from_bandwidth(c, read), knee.from_bandwidth(c, write)
    assert knee.alpha(*knees).value == pytest.approx(1.0, rel=0.01)
    assert knee.looks_capped(*knees)
    assert knee.alpha_from_slopes(c, read, c, write).value == pytest.approx(320 / 180, rel=1e-6)
    assert knees[0].k.value == pytest.approx(10.8 / 1.05, rel=0.02)


def test_an_uncapped_drive_does_not_look_capped() -> None:
    read = knee.from_bandwidth(EVERY, ideal(EVERY, 25))
    assert not knee.looks_capped(read, knee.from_bandwidth(EVERY, ideal(EVERY, 9, latency=1.5)))
    assert not knee.looks_capped(read, read)


@pytest.mark.parametrize(
    ("c", "y", "says"),
    [
        ([1, 2, 4], [1, 2, 4], "too few"),
        ([1, 2, 4, 8], [1, 2, 4], "one value for each"),
        ([0, 1, 2, 4], [1, 1, 2, 4], "at least 1"),
        ([1, 2, 4, 8], [1, 2, float("nan"), 8], "above 0"),
    ],
)
def test_curves_that_are_none_are_refused(c: list[float], y: list[float], says: str) -> None:
    with pytest.raises(SpillwayError, match=says):
        knee.from_bandwidth(c, y)


def test_slopes_need_points_below_saturation() -> None:
    with pytest.raises(SpillwayError, match="below saturation"):
        knee.slope(EVERY, ideal(EVERY, 2))
