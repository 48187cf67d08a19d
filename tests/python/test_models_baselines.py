"""DAM, PDAM, affine and MQSSD against the MQSSD paper's own figures (M1-M11, T28)."""

from collections.abc import Callable
from itertools import pairwise

import numpy as np
import pytest
from recomputed import TABLE_2, K, rows

from spillway.errors import SpillwayError
from spillway.models import affine, dam, mqssd, pdam
from spillway.models.arrays import throughput_mb_s


def test_dam_knows_neither_order_nor_concurrency() -> None:
    cost = dam.page_cost_us(np.array([[0.1], [100]]), [1, 8, 128], 10.0)
    assert cost.shape == (2, 3)
    assert (cost == 10).all()
    assert dam.page_transfers([0, 1, 4, 5], 4).tolist() == [0, 1, 1, 2]


def test_pdam_gains_up_to_p_and_no_further() -> None:
    assert pdam.page_cost_us(50, [1, 4, 8, 128], 10.0, 8).tolist() == [10, 2.5, 1.25, 1.25]
    assert pdam.page_cost_us(50, [1, 4, 128], 10.0, 1).tolist() == dam.page_cost_us(50, [1, 4, 128], 10.0).tolist()
    assert pdam.cycles([0, 1, 8, 9], 8).tolist() == [0, 1, 1, 2]


def test_affine_run_and_mix_are_the_same_cost() -> None:
    # A run of 50 pages with one random access is a mix with 2 % of random pages.
    run = affine.run_cost_us(50, 100.0, 2.0)
    assert run == pytest.approx(50 * float(affine.page_cost_us(2, 1, 100.0, 2.0)))
    assert affine.page_cost_us(30, [1, 128], 100.0, 2.0).tolist() == [32, 32]


def test_more_random_access_never_makes_it_faster() -> None:
    # As printed, eqs 3, 7 and 8 are a sum of throughputs, with which it does.
    r = np.linspace(0, 100, 201)
    for cost in (affine.page_cost_us(r, 1, 118.0, 2.8), mqssd.page_cost_us(r, 118.0, 2.8)):
        assert (np.diff(throughput_mb_s(cost)) < 0).all()


def test_conversion_of_table_2() -> None:
    assert mqssd.per_access_us(2621.44) == pytest.approx(1)
    assert mqssd.per_access_us(TABLE_2["s"])[[0, -1]] == pytest.approx([118.2556, 3.8071], rel=1e-4)
    assert mqssd.per_access_us(TABLE_2["t"])[[0, -1]] == pytest.approx([56.07605, 0.07706], rel=1e-4)


def test_throughput_of_table_2() -> None:
    expected = {int(row["k"]): row for row in rows("mqssd_table2_per_access.csv")}
    r = np.array([0.1, 1, 10, 100])
    for index, k in enumerate(K):
        row = expected[int(k)]
        for setup, page, side in (("s", "beta", "w"), ("t", "alpha", "r")):
            cost = mqssd.page_cost_us(r, mqssd.per_access_us(TABLE_2[setup][index]), TABLE_2[page][index])
            published = [float(row[f"{side}_mbs_p{p}"]) for p in ("0.001", "0.01", "0.1", "1")]
            assert throughput_mb_s(cost) == pytest.approx(published, abs=0.051)


def test_drops_with_r() -> None:
    def drops(setup: str, page: str) -> tuple[float, float]:
        costs = [mqssd.page_cost_us(r, mqssd.per_access_us(TABLE_2[setup]), TABLE_2[page]) for r in (0.1, 100)]
        return float((costs[1] / costs[0])[0]), float((costs[1] / costs[0])[-1])

    assert drops("s", "beta") == pytest.approx((41.62, 6.43), abs=0.01)
    assert drops("t", "alpha") == pytest.approx((16.62, 1.79), abs=0.01)


def test_wall_time_of_a_thread() -> None:
    # 128 threads that each move 1 GB (2^30 B) at random at the costs of k = 128: 151 s at 909 MB/s.
    cost = mqssd.page_cost_us(100, mqssd.per_access_us(9.98e3), 0.697)
    seconds = float(mqssd.thread_seconds(128, 2**30, cost))
    assert seconds == pytest.approx(128 * 2**30 / (float(throughput_mb_s(cost)) * 1e6))
    assert float(throughput_mb_s(cost)) == pytest.approx(909.4, abs=0.1)


def test_the_map_costs_as_much_as_the_data_only_at_random() -> None:
    assert mqssd.mapping_transfers(1e6, 512, at_random=True, write=False) == pytest.approx(2e6)
    assert mqssd.mapping_transfers(1e6, 512, at_random=True, write=True) == pytest.approx(3e6)
    in_order = float(mqssd.mapping_transfers(1e6, 512, at_random=False, write=False))
    assert in_order == pytest.approx(1e6 / 512 * (1 + 1 / 512))


def test_rational_and_its_poles() -> None:
    curve = mqssd.Rational((1.0, 2.0), (1.0, -0.5))
    assert curve([0, 1]).tolist() == [1, 6]
    assert curve.limit == -4
    assert curve.poles(1, 128) == pytest.approx([2])
    assert mqssd.Rational((1.0, 2.0, 1.0), (1.0, 0.0, 1.0)).poles(-100, 100) == []


def test_saturating_curve_falls_to_its_floor() -> None:
    curve = mqssd.Saturating(1.0, 9.0, 8.0, 1.5)
    drawn = curve(np.geomspace(1, 1e6, 50))
    assert (np.diff(drawn) < 0).all()
    assert float(curve(8)) == pytest.approx(5.5)
    assert drawn[-1] == pytest.approx(curve.limit, abs=0.01)


def test_costs_fall_with_concurrency_in_the_paper() -> None:
    # All but beta at k = 2, which rises (T30).
    rising = {name: [a < b for a, b in pairwise(values)] for name, values in TABLE_2.items()}
    assert {name for name, up in rising.items() if any(up)} == {"beta"}


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: dam.page_cost_us(101, 1, 1), "r_percent must be between 0 and 100"),
        (lambda: mqssd.page_cost_us(-1, 1, 1), "r_percent must be between 0 and 100"),
        (lambda: mqssd.page_cost_us(1, -1, 1), "setup_us must be at least 0"),
        (lambda: affine.page_cost_us(1, 1, 1, 0), "page_us must be greater than 0"),
        (lambda: pdam.page_cost_us(1, 0, 1, 1), "k must be greater than 0"),
        (lambda: pdam.page_cost_us(1, 1, 1, 0.5), "parallelism must be at least 1"),
        (lambda: throughput_mb_s(float("nan")), "page_cost_us must be greater than 0 and finite"),
    ],
)
def test_what_is_out_of_range_is_refused(call: Callable[[], object], words: str) -> None:
    with pytest.raises(SpillwayError, match=words):
        call()
