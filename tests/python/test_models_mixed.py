"""Reads and writes at once: limits in which the answer is known."""

import numpy as np
import pytest

from spillway.errors import SpillwayError
from spillway.models.mixed import (
    Collection,
    Curve,
    added_cost_us,
    between,
    filled,
    fit_collection,
    fit_hold_us,
    hold_at_us,
    mixed_cost_us,
    write_amplification,
)

KS = (1.0, 4.0, 16.0, 64.0)
READ = Curve(KS, (80.0, 20.0, 5.0, 2.5))
WRITE = Curve(KS, (20.0, 8.0, 8.0, 8.0))


def test_a_single_operation_at_a_time_waits_for_nothing_if_nothing_is_held() -> None:
    # One in flight: the costs add, but for the flash that writes leave to reads in the background.
    cost = mixed_cost_us(0.99, 1, READ, Curve(KS, (20.0, 5.0, 1.25, 0.3)), hold_us=0.0)
    assert float(cost) == pytest.approx(float(added_cost_us(0.99, 80.0, 20.0)), rel=0.03)


def test_at_saturation_the_flash_is_shared() -> None:
    cost = mixed_cost_us([0.2, 0.5, 0.8], 10_000, READ, WRITE, hold_us=0.0)
    assert cost == pytest.approx(added_cost_us([0.2, 0.5, 0.8], 2.5, 8.0), rel=0.02)


def test_holding_dies_longer_costs_more_and_hurts_mixes_most() -> None:
    shares = np.array([0.999, 0.5, 0.001])
    free = mixed_cost_us(shares, 16, READ, WRITE, hold_us=0.0)
    held = mixed_cost_us(shares, 16, READ, WRITE, hold_us=2000.0)
    assert (held >= free * 0.999).all()
    assert held[1] / free[1] > 1.3
    assert held[0] / free[0] < 1.05


def test_the_time_dies_are_held_is_found_again() -> None:
    cost = mixed_cost_us([0.5, 0.95], 16, READ, WRITE, hold_us=900.0)
    assert fit_hold_us([0.5, 0.95], [16, 16], cost, READ, WRITE) == pytest.approx(900.0, rel=0.01)


def test_more_in_flight_is_never_slower() -> None:
    costs = mixed_cost_us(0.5, [1, 2, 4, 8, 16, 32, 64, 128], READ, WRITE, hold_us=500.0)
    assert (np.diff(costs) <= 1e-9).all()


@pytest.mark.parametrize("rho", [0.5, 0.8, 0.9])
def test_write_amplification_is_xiang_and_kurkoskis(rho: float) -> None:
    # Of blocks collected in turn, a share v stays valid with A = 1 / (1 - v) and v = exp(-1 / (rho A)).
    a = float(write_amplification(rho))
    assert 1 - 1 / a == pytest.approx(np.exp(-1 / (rho * a)), rel=1e-6)


def test_collection_is_found_from_two_fills_and_tells_a_third() -> None:
    drive = Collection(program_us=2.0, valid_share=0.93)
    costs = [float(drive.cost_us(fill)) for fill in (0.5, 1.0)]
    found = fit_collection((0.5, 1.0), costs)
    assert (found.program_us, found.valid_share) == pytest.approx((2.0, 0.93), rel=1e-6)
    assert filled(WRITE, found, 0.75).saturated_us == pytest.approx(max(8.0, float(drive.cost_us(0.75))))


def test_between_two_fills_reads_cost_what_lies_between() -> None:
    dearer = Curve(KS, tuple(4 * cost for cost in READ.cost_us))
    assert between(READ, dearer, 0.0) == READ
    assert between(READ, dearer, 1.0).cost_us == pytest.approx(dearer.cost_us)
    assert between(READ, dearer, 0.5).cost_us == pytest.approx([2 * cost for cost in READ.cost_us])


def test_dies_are_held_longer_where_writes_cost_more() -> None:
    cheap = Curve(KS, tuple(cost / 4 for cost in WRITE.cost_us))
    assert hold_at_us(800.0, WRITE, WRITE) == 800.0
    assert hold_at_us(800.0, cheap, WRITE, growth=0.5) == pytest.approx(400.0)
    assert hold_at_us(800.0, cheap, WRITE, growth=0.0) == 800.0


def test_a_drive_that_does_not_notice_its_fill() -> None:
    found = fit_collection((0.5, 1.0), (8.0, 8.0))
    assert found.cost_us([0.5, 0.75, 1.0]) == pytest.approx(8.0, rel=0.01)


def test_a_drive_without_spare_flash_is_refused() -> None:
    with pytest.raises(SpillwayError, match="spare flash"):
        write_amplification(1.0)
