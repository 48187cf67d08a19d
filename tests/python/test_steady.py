"""Steady or not: error rates on made series, hostile series, each test by hand, the run's verdict, the cut."""

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from ruptures.detection.dynp import Dynp

from spillway.steady import LEAST_SAMPLES, Round, Verdict, judge, judge_arrays
from spillway.steady import checks as tests_of
from spillway.steady.cut import BATCH, MOST_CUT, begins_with_burst, mser5
from spillway.steady.rates import Rate, error_rates
from spillway.steady.series import MOST_SAMPLES, Array, of_columns, of_rounds
from spillway.steady.synthetic import KINDS, Kind

ROOT = Path(__file__).parents[2]
FIELDS = ("kind", "steady", "noise", "samples", "series", "wrong")
LENGTHS = (60, 200, 1000)
SERIES = 120
# Recorded, not asked for: what an AR(1) of phi 0.8 says in 60 samples is what 7 independent ones would, and of a fall
# that begins late they have 6 to 18.
UNTOLD = {("fall by 20 %, AR(1), phi 0.8", 60), ("fall by 20 % in the last 10-30 %", 60)}


def seen(values: Array, **more: Array) -> Verdict:
    return judge_arrays(np.arange(len(values), dtype=float), {"throughput": np.asarray(values, dtype=float), **more})


def noise(count: int, spread: float, seed: int = 1) -> Array:
    made: Array = 1 + spread * np.random.default_rng(seed).standard_normal(count)
    return made


def change_point(values: Array) -> int:
    """The least-squares change point of ruptures, an implementation that is not ours."""
    search: Any = Dynp
    return int(search(model="l2", min_size=5, jump=BATCH).fit(values).predict(n_bkps=1)[0])


def spans(rates: Array, *, app: float | Array = 4.0, device: float | Array | None = 2.0) -> list[Round]:
    """Seconds of the given throughput, in operations of 1000 user bytes, and amplification."""
    count = len(rates)
    apps = np.broadcast_to(np.asarray(app, dtype=float), count)
    devices = None if device is None else np.broadcast_to(np.asarray(device, dtype=float), count)
    made = []
    for i, rate in enumerate(np.asarray(rates, dtype=float).tolist()):
        host = rate * 1000 * float(apps[i])
        made.append(Round(1.0, rate, rate * 1000, host, None if devices is None else host * float(devices[i])))
    return made


# ------------------------------------------------------------------------------------------------- error rates


@pytest.mark.parametrize(
    "kind",
    [KINDS[0], *(pytest.param(kind, marks=pytest.mark.long) for kind in KINDS[1:])],
    ids=lambda kind: kind.name,
)
def test_at_most_one_verdict_in_twenty_is_wrong(kind: Kind) -> None:
    """Rates of 120 series: 5 % and what chance adds to a rate that is lower by far (the recorded ones are of 1000)."""
    for rate in error_rates(SERIES, 3, [kind], LENGTHS):
        if (rate.kind, rate.samples) not in UNTOLD:
            assert rate.rate <= 0.05, rate


def test_made_series_are_what_they_say() -> None:
    assert len({kind.name for kind in KINDS}) == len(KINDS)
    for kind in KINDS:
        columns = kind.make(np.random.default_rng(1), 400, kind.noises[0])
        for values in columns.values():
            assert values.shape == (400,)
            assert np.isfinite(values).all()
            assert (values >= 0).all()
    related = next(kind for kind in KINDS if kind.name == "AR(1), phi 0.8")
    values = related.make(np.random.default_rng(2), 20_000, 0.05)["throughput"]
    assert values.std() == pytest.approx(0.05, rel=0.05)
    assert np.corrcoef(values[1:], values[:-1])[0, 1] == pytest.approx(0.8, abs=0.02)


def test_the_same_seed_gives_the_same_rates() -> None:
    kind = next(kind for kind in KINDS if kind.name == "fall by 20 %, AR(1), phi 0.8")
    once, again = (error_rates(50, 7, [kind], (60,)) for _ in range(2))
    assert once == again
    assert any(rate.wrong for rate in once), "a rate that is never above zero shows nothing"


def test_an_interval_by_hand() -> None:
    low, high = Rate("made", True, 0.05, 60, 100, 5).interval()
    # Wilson: (p + z^2/2n +- z sqrt(p(1-p)/n + z^2/4n^2)) / (1 + z^2/n) with z = 1.95996
    assert low == pytest.approx(0.02154, abs=1e-5)
    assert high == pytest.approx(0.11175, abs=1e-5)


def test_the_recorded_error_rates_are_at_most_5_per_cent() -> None:
    """1,000 series each; the command is in the record."""
    record = json.loads((ROOT / "runs" / "bench" / "steady_errors.json").read_text())
    assert "dirty" not in record["commit"]
    rates = [Rate(*(each[name] for name in FIELDS)) for each in record["result"]["rates"]]
    assert {rate.kind for rate in rates} == {kind.name for kind in KINDS}
    assert [rate for rate in rates if rate.rate > 0.05 and (rate.kind, rate.samples) not in UNTOLD] == []


# ----------------------------------------------------------------------------------------------------- hostile


@pytest.mark.parametrize("count", [LEAST_SAMPLES, 60, 1000])
@pytest.mark.parametrize("height", [1e-300, 1e-9, 1.0, 5e4, 1e300])
def test_a_constant_is_steady_from_its_first_sample(count: int, height: float) -> None:
    verdict = seen(np.full(count, height))
    assert verdict.steady, verdict
    assert verdict.since_s == 0


def test_a_store_that_does_nothing_is_not_steady() -> None:
    verdict = seen(np.zeros(100))
    assert not verdict.steady
    assert verdict.reason == "throughput was zero throughout"
    assert all(each.figure is None or math.isfinite(each.figure) for each in verdict.tests)


def test_a_ratio_that_is_zero_throughout_does_not_move() -> None:
    assert seen(noise(100, 0.02), wa_app=np.zeros(100)).steady


def test_a_stall_that_fills_a_tenth_of_the_run_is_not_steady_in_its_last_half() -> None:
    for begin in (100, 120, 150, 180):
        values = noise(200, 0.03)
        values[begin : begin + 20] = 0
        assert not seen(values).steady, begin


def test_a_stall_at_the_start_is_cut_off() -> None:
    values = noise(200, 0.03)
    values[:30] = 0
    verdict = seen(values)
    assert verdict.steady
    assert verdict.since_s == 30, "the first sample behind it: 30 is a whole number of batches"


@pytest.mark.parametrize("place", [0, 30, 100, 199])
@pytest.mark.parametrize("height", [0.0, 1e3, 1e12])
def test_one_giant_outlier_gives_finite_figures(place: int, height: float) -> None:
    values = noise(200, 0.03)
    values[place] = height
    verdict = seen(values)
    assert all(each.figure is not None and math.isfinite(each.figure) for each in verdict.tests)
    if height and place >= 100:
        assert not verdict.steady, "the mean is that of one sample"


@pytest.mark.parametrize("periods", [1, 1.5, 2, 2.5, 3])
def test_a_square_wave_that_was_seen_less_than_four_times_is_not_steady(periods: float) -> None:
    wave = np.where((np.arange(300) / 300 * periods) % 1 < 0.5, 1.3, 0.7)
    assert not seen(wave * noise(300, 0.01)).steady


def test_a_square_wave_that_was_seen_often_is_the_beat_of_a_steady_run() -> None:
    wave = np.where((np.arange(300) / 30) % 1 < 0.5, 1.3, 0.7)
    assert seen(wave * noise(300, 0.01)).steady


def test_a_saw_tooth_is_no_drift_however_steep() -> None:
    """Its line over whole teeth moves by height / teeth: here 16 %, more than what may drift."""
    saw = 1 + 0.8 * (np.arange(300) / 60 % 1 - 0.5)
    verdict = seen(saw * noise(300, 0.01))
    assert verdict.steady, verdict


def test_a_step_in_the_very_middle_is_never_the_end_of_a_burst() -> None:
    for count in (60, 61, 200, 999):
        for level in (0.5, 0.8, 1.25, 2):
            values = noise(count, 0.01)
            values[count // 2 :] *= level
            assert not seen(values).steady, (count, level)


def test_a_burst_of_up_to_45_percent_is_cut_and_a_longer_one_is_not_steady() -> None:
    for seed in range(200):
        rng = np.random.default_rng(seed)
        values = noise(100, 0.05, seed)
        burst = int(rng.integers(1, 60))
        values[:burst] *= rng.uniform(1.3, 3)
        since = seen(values).since_s
        assert (since is not None) == (burst < 100 * MOST_CUT), burst
        assert since is None or since <= 100 * MOST_CUT


@pytest.mark.parametrize("count", [40, 300, 3 * MOST_SAMPLES + 5])
@pytest.mark.parametrize("regular", [True, False])
@pytest.mark.parametrize("burst", [0.0, 0.2])
def test_the_steady_part_begins_with_a_sample(count: int, regular: bool, burst: float) -> None:
    """Whatever intervals the samples are put on; one that is steady throughout begins with the first."""
    rng = np.random.default_rng(count)
    times = np.arange(7.0, 7 + count) if regular else 7 + np.cumsum(rng.uniform(0.2, 3, count))
    values = noise(count, 0.01) * np.where(times < times[0] + burst * (times[-1] - times[0]), 2.0, 1.0)
    verdict = judge_arrays(times, {"throughput": values})
    assert verdict.steady
    assert verdict.since_s in times
    # All of the burst is cut off, and what is cut with it is less than a batch; a long series is judged as its means.
    first = int(np.searchsorted(times, times[0] + burst * (times[-1] - times[0])))
    batch = BATCH * math.ceil(count / MOST_SAMPLES)
    assert verdict.since_s is not None
    assert first <= int(np.searchsorted(times, verdict.since_s)) < first + batch
    if not burst:
        assert verdict.since_s == times[0]


def test_the_order_of_height_and_clock_does_not_matter() -> None:
    """A verdict is about shapes: other units of rate and time change nothing but since_s."""
    values: Array = noise(200, 0.04) * np.where(np.arange(200) < 30, 2.0, 1.0)
    first = seen(values)
    other = judge_arrays(np.linspace(1e6, 1e6 + 199 * 60, 200, dtype=np.float64), {"throughput": values * 7e6})
    assert (first.steady, [round(each.figure or 0, 9) for each in first.tests]) == (
        other.steady,
        [round(each.figure or 0, 9) for each in other.tests],
    )
    assert first.since_s is not None
    assert other.since_s == pytest.approx(first.since_s * 60 + 1e6)


def test_a_long_series_is_judged_as_its_means() -> None:
    assert seen(noise(50_000, 0.3)).steady
    assert not seen(noise(50_000, 0.3) * np.linspace(1, 0.8, 50_000)).steady


# -------------------------------------------------------------------------------------------- each test by hand


def test_cusum_by_hand() -> None:
    assert tests_of.cusum_peak([]) == 0
    assert tests_of.cusum_peak([0.5, 0.5, 0.5]) == 0
    assert tests_of.cusum_peak([2, 2, -1, 2]) == 3  # 1.5, 3, 1.5, 3
    assert tests_of.cusum_peak([-2, -2]) == 3


def test_snia_window_by_hand() -> None:
    assert tests_of.snia_window(np.array([99.0, 99, 10, 10, 10, 10, 10])) == (0, 0)
    spread, excursion = tests_of.snia_window(np.array([8.0, 9, 10, 11, 12]))
    assert spread == pytest.approx(0.4)
    assert excursion == pytest.approx(0.4)
    spread, excursion = tests_of.snia_window(np.array([9.0, 11, 10, 11, 9]))
    assert spread == pytest.approx(0.2)
    assert excursion == pytest.approx(0)


def test_the_long_run_variance_is_that_of_theory() -> None:
    """White noise: sigma^2. AR(1): sigma^2 (1 + phi) / (1 - phi)."""
    for phi, factor in ((0.0, 1.0), (0.6, 4.0), (0.8, 9.0)):
        kind = {0.0: "white noise", 0.6: "AR(1), phi 0.6", 0.8: "AR(1), phi 0.8"}[phi]
        make = next(each.make for each in KINDS if each.name == kind)
        rng = np.random.default_rng(5)
        found = [tests_of.level(make(rng, 3000, 0.05)["throughput"]).variance for _ in range(200)]
        assert np.mean(found) == pytest.approx(0.05**2 * factor, rel=0.1)


def test_the_drift_of_a_line_is_exact_and_is_continued_over_the_run() -> None:
    falling = np.linspace(1.1, 0.9, 100)
    level = tests_of.level(falling)
    assert level.drift == pytest.approx(-0.2 * 100 / 99)
    assert level.variance == pytest.approx(0, abs=1e-20)
    drift, bound = tests_of.drift(level, 1.5)
    assert drift[1] == pytest.approx(0.3 * 100 / 99)
    assert bound[1] == pytest.approx(drift[1])


@pytest.mark.parametrize("period", [12.0, 17.3, 40.0])
def test_a_beat_is_found_by_its_period(period: float) -> None:
    values = 1 + 0.4 * (np.arange(400) / period % 1 - 0.5)
    found, shape = tests_of.beat(values * noise(400, 0.02))
    # Periods are tried in steps of a sixteenth of a frequency of the series; the best one is two of them off at most.
    assert found == pytest.approx(period, rel=2 * period / 400 / 16)
    # The shape is a mean for each bin of the phase. Within a bin the saw-tooth rises, and the noise of its samples is
    # averaged.
    bins = min(int(period), tests_of.BEAT_BINS)
    within, noise_of_bin = 0.4 / bins / math.sqrt(12), 0.02 * math.sqrt(bins / 400)
    assert np.std(values - shape) < math.hypot(within, noise_of_bin)


def test_noise_has_no_beat_and_drift_is_none() -> None:
    assert tests_of.beat(noise(400, 0.05))[0] is None
    assert tests_of.beat(np.linspace(1, 2, 400))[0] is None


def test_a_series_too_noisy_to_decide_says_so() -> None:
    rng = np.random.default_rng(1)
    verdict = seen(np.exp(rng.standard_normal(60)))
    untold = [each for each in verdict.tests if each.name == "bound"]
    assert not verdict.steady
    assert "is too noisy or the run too short to tell" in untold[0].words


def test_every_test_is_shown_and_only_chosen_ones_count() -> None:
    falling: Array = noise(200, 0.02) * np.linspace(1, 0.7, 200, dtype=np.float64)
    times = np.arange(200.0)
    assert not judge_arrays(times, {"throughput": falling}).steady
    verdict = judge_arrays(times, {"throughput": falling}, checks=("end",))
    assert verdict.steady, "that it fell is seen by the tests that were not asked for"
    assert {each.name for each in verdict.tests if not each.passed} >= {"drift", "bound"}
    assert {each.name for each in verdict.tests} >= {"cusum", "range", "slope", "drift", "bound", "end"}
    assert {each.name for each in verdict.tests if each.asked} == {"end"}


# ----------------------------------------------------------------------------------------------------- the cut


def test_mser5_by_hand() -> None:
    """Batches 9, 1, 1, 2, 1, 2, 1, 2: without the first, squares of 1.714 about 1.429 over 7^2 are the least."""
    values = np.repeat([9.0, 1, 1, 2, 1, 2, 1, 2], BATCH)
    assert mser5(values) == BATCH
    assert mser5(np.ones(40)) == 0
    assert mser5(np.concatenate([values, [50.0, 50]])) == BATCH, "what fills no batch is the end, and not looked at"


@pytest.mark.parametrize("share", [0.1, 0.2, 0.3])
@pytest.mark.parametrize("height", [0.5, 1.5, 3.0])
def test_mser5_cuts_where_ruptures_does(share: float, height: float) -> None:
    apart = []
    for seed in range(30):
        values = noise(300, 0.05, seed)
        values[: round(300 * share)] *= height
        found = change_point(values)
        assert found == round(300 * share)
        assert mser5(values) >= found, "nothing of the burst is left"
        apart.append(mser5(values) - found)
    # The bare MSER-5 goes on past the burst where chance makes the rest quieter.
    assert np.quantile(apart, 0.9) <= BATCH


def test_a_drift_does_not_begin_with_a_burst_and_a_burst_does() -> None:
    for seed in range(50):
        assert not begins_with_burst(noise(300, 0.05, seed) * np.linspace(1, 0.8, 300))
        assert begins_with_burst(noise(300, 0.05, seed) * np.where(np.arange(300) < 90, 1.3, 1))


# --------------------------------------------------------------------------------------------- a run's verdict


def test_three_series_of_noise_are_steady_from_the_start() -> None:
    verdict = judge(spans(10_000 * noise(120, 0.02)), None)
    assert verdict.steady
    assert verdict.since_s == 0
    assert verdict.reason == "throughput, wa_app and wa_device passed every test from 0 s on"
    assert [each.series for each in verdict.tests[::6]] == ["throughput", "wa_app", "wa_device"]


def test_a_burst_of_a_run_is_left_out() -> None:
    rates = 10_000 * noise(200, 0.03)
    rates[:40] *= 2
    verdict = judge(spans(rates, app=noise(200, 0.02)), None)
    assert verdict.steady
    assert verdict.since_s == 40


def test_steady_throughput_is_not_enough_when_the_drive_still_changes() -> None:
    """Pitfall 1: WA-D can climb long after throughput looks flat."""
    climbing = 1.5 * np.linspace(1, 1.4, 60) * noise(60, 0.03)
    verdict = judge(spans(10_000 * noise(60, 0.03, 2), device=climbing), None)
    assert not verdict.steady
    assert verdict.reason.startswith("wa_device drifted by 3")


def test_without_counters_three_capacities_must_be_written() -> None:
    quiet = spans(10_000 * noise(60, 0.02), device=None)
    assert judge(quiet, None).reason == "host writes are not known"
    assert judge(quiet, 2.9).reason == "host writes came to 2.9 capacities (at least 3)"
    assert judge(quiet, 3.0).steady


def test_a_short_run_is_never_steady() -> None:
    verdict = judge(spans(np.ones(LEAST_SAMPLES - 1)), 100)
    assert not verdict.steady
    assert "too short: 24 samples" in verdict.reason
    assert not judge([], None).steady
    assert judge(spans(np.ones(LEAST_SAMPLES)), 100).steady


def test_a_run_that_stops_writing_has_no_ratio_to_follow() -> None:
    quiet = spans(noise(100, 0.02))
    reading = [Round(each.seconds, each.operations, 0.0, 0.0, 0.0) for each in quiet]
    assert judge(reading, 5.0).steady, "reads alone: there is nothing to amplify"
    verdict = judge([*quiet[:30], *reading[30:]], 5.0)
    assert not verdict.steady
    assert verdict.reason.startswith("wa_app has no value")
    assert all(each.figure is None or math.isfinite(each.figure) for each in verdict.tests)


def test_a_ratio_weighs_intervals_by_their_denominator() -> None:
    """Half of the intervals have no user bytes: their host bytes count, and nothing is divided by zero."""
    rng = np.random.default_rng(4)
    rounds = [Round(1.0, 100.0, 0.0 if i % 2 else 2e5, float(4e5 * rng.normal(1, 0.03)), None) for i in range(200)]
    recorded = of_rounds(rounds)
    app = next(each for each in recorded.series if each.name == "wa_app")
    assert app.part().mean() == pytest.approx(4, rel=0.01)
    assert judge(rounds, 3.0).steady


def test_spans_of_unequal_length_keep_every_total() -> None:
    rng = np.random.default_rng(1)
    lengths = rng.uniform(0.1, 2, 10_000)
    rounds = [Round(float(s), float(5 * s), float(10 * s), float(20 * s), float(30 * s)) for s in lengths]
    recorded = of_rounds(rounds)
    assert len(recorded.ends_s) == MOST_SAMPLES
    assert recorded.ends_s[-1] == pytest.approx(lengths.sum())
    throughput, app, device = recorded.series
    assert throughput.numerator.sum() == pytest.approx(5 * lengths.sum())
    assert throughput.part() == pytest.approx(5.0)
    assert app.part() == pytest.approx(2.0)
    assert device.part() == pytest.approx(1.5)


def test_equal_times_leave_the_values_as_they_are() -> None:
    values = noise(300, 0.1)
    recorded = of_columns(np.linspace(5, 35, 301)[:-1], {"throughput": values})
    assert recorded.series[0].part() == pytest.approx(values / values.max())
