import random

import pytest

from spillway.steady import CUSUM_LIMIT_SIGMA, Round, cusum_peak, judge, rounds_of, snia_window


def rounds(
    rates: list[float],
    *,
    wa_app: list[float] | None = None,
    wa_device: list[float] | None = None,
    counters: bool = True,
) -> list[Round]:
    """Rounds of 3 s with the given throughput, in operations/s of 1000 user bytes, and amplification."""
    apps, devices = wa_app or [4.0] * len(rates), wa_device or [2.0] * len(rates)
    made = []
    for rate, app, device in zip(rates, apps, devices, strict=True):
        user = rate * 3 * 1000
        made.append(Round(3.0, rate * 3, user, user * app, user * app * device if counters else None))
    return made


def noisy(mean: float, count: int, seed: int, spread: float = 0.02) -> list[float]:
    rng = random.Random(seed)
    return [mean * rng.gauss(1, spread) for _ in range(count)]


def test_noise_around_one_level_is_steady_from_the_start() -> None:
    verdict = judge(rounds(noisy(10_000, 20, 1)), None)
    assert verdict.steady
    assert verdict.since_s == 0
    assert "throughput, wa_app and wa_device did not move" in verdict.reason


def test_noise_rarely_raises_an_alarm_and_a_step_nearly_always_does() -> None:
    """The textbook's slack and limit: alarms in control are rare, a step of 3 sigma is found."""
    quiet = sum(cusum_peak(noisy(1.0, 20, seed)) > CUSUM_LIMIT_SIGMA for seed in range(200))
    found = 0
    for seed in range(200):
        step = noisy(1.0, 10, seed) + noisy(1.1, 10, seed + 1000)
        found += cusum_peak(step) > CUSUM_LIMIT_SIGMA
    assert quiet <= 10
    # Mean and sigma come from the series itself, so that a step also widens sigma; most are found all the same.
    assert found >= 100


def test_a_burst_at_the_start_is_left_out() -> None:
    rates = [30_000.0, 28_000, 26_000, 20_000, 14_000, *noisy(10_000, 15, 3, 0.01)]
    verdict = judge(rounds(rates), None)
    assert verdict.steady
    assert verdict.since_s is not None
    assert 3 <= verdict.since_s <= 30


def test_throughput_that_swings_is_not_steady() -> None:
    verdict = judge(rounds([10_000.0, 13_000] * 10), None)
    assert not verdict.steady
    assert "varied by 2" in verdict.reason


def test_throughput_that_drifts_is_not_steady() -> None:
    rates = [10_000 * (1 + 0.035 * i) for i in range(20)]
    verdict = judge(rounds(rates), None)
    assert not verdict.steady


def test_steady_throughput_is_not_enough_when_the_drive_still_changes() -> None:
    """Pitfall 1: WA-D can climb long after throughput looks flat."""
    climbing = [1.0 + 0.08 * i for i in range(20)]
    verdict = judge(rounds(noisy(10_000, 20, 5, 0.001), wa_device=climbing), None)
    assert not verdict.steady
    assert "wa_device still moved" in verdict.reason


def test_without_counters_three_capacities_must_be_written() -> None:
    quiet = rounds(noisy(10_000, 20, 1), counters=False)
    assert not judge(quiet, None).steady
    assert not judge(quiet, 2.9).steady
    assert "there were 2.9" in judge(quiet, 2.9).reason
    assert judge(quiet, 3.0).steady


def test_a_short_run_is_never_steady() -> None:
    verdict = judge(rounds([1.0] * 9), 100)
    assert not verdict.steady
    assert "too short" in verdict.reason
    assert not judge([], None).steady


def test_snia_window_by_hand() -> None:
    assert snia_window([99, 99, 10, 10, 10, 10, 10]) == (0, 0)
    spread, excursion = snia_window([8, 9, 10, 11, 12])
    assert spread == pytest.approx(0.4)
    assert excursion == pytest.approx(0.4)
    spread, excursion = snia_window([9, 11, 10, 11, 9])
    assert spread == pytest.approx(0.2)
    assert excursion == pytest.approx(0)


def test_rounds_keep_every_byte() -> None:
    spans = [Round(0.1, i, 10.0 * i, 20.0 * i, 30.0 * i) for i in range(603)]
    gathered = rounds_of(spans)
    assert len(gathered) == 20
    assert sum(each.seconds for each in gathered) == pytest.approx(60.3)
    for name in ("operations", "user_bytes", "host_bytes", "nand_bytes"):
        assert sum(getattr(each, name) for each in gathered) == pytest.approx(
            sum(getattr(each, name) for each in spans)
        )
    assert max(each.seconds for each in gathered) - min(each.seconds for each in gathered) <= 0.1 + 1e-9
    assert rounds_of([]) == []
    assert rounds_of(spans[:3])[0].host_bytes == 0.0
    assert rounds_of([Round(1, 1, 1, 1, None)])[0].nand_bytes is None
