"""The statistics of `spillway compare`: closed forms, laws, and the rates at which it is right."""

import importlib.util
import json
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from conftest import ROOT
from scipy import stats

from spillway.compare.blocks import FEWEST, blocked
from spillway.compare.effects import Effect, combined, holm, paired, welch
from spillway.compare.metrics import METRICS
from spillway.compare.rates import (
    DRAWS,
    SERIES,
    STUDIES,
    Rate,
    by_blocks,
    by_repetitions,
    one_run_each,
    power,
    several_arms,
)

TIMES = 1000
# A share of 95 % of 1000 is above this but for one time in a thousand.
LEAST_OF_95 = 0.927


def test_pairs_are_students_t() -> None:
    rng = np.random.default_rng(1)
    a, b = rng.normal(1, 0.1, 5), rng.normal(1.1, 0.1, 5)
    effect, theirs = paired(a, b), stats.ttest_rel(b, a)
    assert effect.p == pytest.approx(theirs.pvalue)
    bounds = theirs.confidence_interval(0.95)
    assert effect.interval() == pytest.approx((bounds.low, bounds.high))


@pytest.mark.parametrize("counts", [(2, 2), (3, 5), (10, 2)])
def test_repetitions_apart_are_welchs_t(counts: tuple[int, int]) -> None:
    rng = np.random.default_rng(2)
    a, b = rng.normal(1, 0.1, counts[0]), rng.normal(1.1, 0.3, counts[1])
    effect, theirs = welch(a, b), stats.ttest_ind(b, a, equal_var=False)
    assert effect.p == pytest.approx(theirs.pvalue)
    bounds = theirs.confidence_interval(0.95)
    assert effect.interval() == pytest.approx((bounds.low, bounds.high))


@pytest.mark.parametrize("form", [paired, welch])
def test_figures_without_noise_differ_or_do_not(form: Callable[..., Effect]) -> None:
    same = form(np.full(3, 0.1 + 0.2), np.full(3, 0.3))
    assert [same.p, same.interval()[0]] == pytest.approx([1.0, 0.0], abs=1e-12)
    other = form(np.zeros(3), np.full(3, 0.1))
    assert other.p == 0.0
    assert other.interval() == pytest.approx((0.1, 0.1))


def test_less_than_a_histogram_step_is_no_difference() -> None:
    step = METRICS["write_p99_us"].slack
    a, b = np.log([100.0, 100.0, 100.0]), np.log([101.0, 101.0, 101.0])
    assert paired(a, b).p == 0.0
    assert paired(a, b, step).p == 1.0
    low, high = paired(a, b, step).interval()
    assert low < 0 < high


def test_the_interval_and_p_agree() -> None:
    """At every level: 0 lies outside of the interval where p is below 1 - level."""
    rng = np.random.default_rng(3)
    for _ in range(200):
        effect = paired(rng.normal(0, 1, 4), rng.normal(0.5, 1, 4), slack=float(rng.choice([0.0, 0.2])))
        for level in (0.8, 0.95, 0.99):
            low, high = effect.interval(level)
            assert (low <= 0 <= high) == (effect.p >= 1 - level)


def test_holms_steps() -> None:
    """The textbook's: 0.01 against 0.05 / 4, 0.04 fails at 0.05 / 3 and so do all above it."""
    verdicts = holm([0.04, 0.01, 0.30, 0.045])
    assert [differs for differs, _ in verdicts] == [False, True, False, False]
    assert [level for _, level in verdicts] == pytest.approx([1 - 0.05 / 3, 1 - 0.05 / 4, 1 - 0.05 / 3, 1 - 0.05 / 3])
    assert holm([0.04])[0] == pytest.approx((True, 0.95))
    assert holm([]) == []


def test_holms_intervals_say_what_its_steps_say() -> None:
    rng = np.random.default_rng(4)
    for _ in range(300):
        effects = [paired(rng.normal(0, 1, 5), rng.normal(rng.choice([0, 2]), 1, 5)) for _ in range(4)]
        for effect, (differs, level) in zip(effects, holm([each.p for each in effects]), strict=True):
            low, high = effect.interval(level)
            assert differs == (not low <= 0 <= high)


def test_independent_samples_need_no_blocks() -> None:
    """Of white noise a block is one sample, and the error is the textbook's but for what correlation may hide."""
    values = np.random.default_rng(11).normal(10, 1, 3000)
    found = blocked(values, np.ones(3000))
    assert found is not None
    assert found.samples <= 3
    assert found.se == pytest.approx(values.std() / np.sqrt(3000), rel=0.1)
    assert found.value == pytest.approx(values.mean())


def test_blocks_grow_with_the_memory_of_the_series() -> None:
    lengths = []
    for name in ("independent, 10 %", "AR(1) 0.5, 10 %", "AR(1) 0.9, 10 %", "AR(1) 0.97, 10 %"):
        rng = np.random.default_rng(5)
        found = [blocked(SERIES[name](rng, 6000), np.ones(6000)) for _ in range(20)]
        lengths.append(np.median([each.samples for each in found if each is not None]))
    assert lengths == sorted(lengths)
    assert lengths[0] < 3
    assert lengths[-1] > 30


def test_the_error_of_an_autocorrelated_mean_is_its_own() -> None:
    """AR(1) with 0.9: the variance of a mean is 19 times that of independent samples; over 400 series, in the mean."""
    rng = np.random.default_rng(6)
    found = [blocked(SERIES["AR(1) 0.9, 10 %"](rng, 6000), np.ones(6000)) for _ in range(400)]
    known = [each for each in found if each is not None]
    spread = np.std([each.value for each in known])
    assert len(known) > 390
    assert 0.95 < np.mean([each.se for each in known]) / spread < 1.35


@pytest.mark.parametrize(
    ("part", "whole"),
    [
        ([], []),
        ([1.0] * (FEWEST - 1), [1.0] * (FEWEST - 1)),
        ([0.0] * 100, [0.0] * 100),
        (list(np.linspace(1, 2, 300)), [1.0] * 300),
        ([1.0] * 150 + [2.0] * 150, [1.0] * 300),
    ],
    ids=["nothing", "few samples", "no denominator", "a drift", "a step"],
)
def test_too_few_independent_blocks(part: list[float], whole: list[float]) -> None:
    assert blocked(np.array(part), np.array(whole)) is None


def test_a_series_without_noise_has_no_error() -> None:
    found = blocked(np.full(50, 0.3), np.ones(50))
    assert found is not None
    assert (found.value, found.se) == pytest.approx((0.3, 0.0), abs=1e-12)


def test_a_ratio_of_sums_is_not_a_mean_of_ratios() -> None:
    """Host bytes that come when there is little of the user's: their ratio is that of all bytes."""
    rng = np.random.default_rng(7)
    user = rng.uniform(0, 10, 2000)
    host = 3 * user + rng.normal(0, 1, 2000)
    found = blocked(host, user)
    assert found is not None
    assert found.value == pytest.approx(host.sum() / user.sum())
    assert found.value == pytest.approx(3.0, abs=4 * found.se)
    assert found.se == pytest.approx(np.sqrt(2000) / user.sum(), rel=0.15)


def test_two_estimates_together() -> None:
    effect = combined(1.0, 0.3, 9, 1.5, 0.4, 9)
    assert (effect.d, effect.se, effect.df) == pytest.approx((0.5, 0.5, 0.5**4 / (0.3**4 / 9 + 0.4**4 / 9)))
    assert combined(1.0, 0.0, 9, 1.0, 0.0, 9).p == 1.0


# Rates, each with a fixed seed. scripts/compare_errors.py has them all, with more comparisons.
@pytest.mark.parametrize("count", [3, 5])
@pytest.mark.parametrize("noise", [0.01, 0.10])
@pytest.mark.parametrize("kind", DRAWS)
@pytest.mark.parametrize("turns", [True, False])
def test_equal_sides_are_not_told_apart(kind: str, noise: float, count: int, turns: bool) -> None:
    rng = np.random.default_rng(8)
    found = [by_repetitions(rng, DRAWS[kind], noise, count, 0.0, turns=turns, drift=turns) for _ in range(TIMES)]
    assert sum(each.p > 0.05 for each in found) / TIMES > LEAST_OF_95


def test_a_drift_of_the_machine_is_in_both_sides_of_a_turn_only() -> None:
    """Why turns are paired, and why it is said of two directories that they did not run in turns."""
    equal = {}
    for turns in (True, False):
        rng = np.random.default_rng(9)
        found = [by_repetitions(rng, DRAWS["normal"], 0.02, 5, 0.0, turns=turns, drift=True) for _ in range(TIMES)]
        equal[turns] = sum(each.p > 0.05 for each in found) / TIMES
    assert equal[True] > LEAST_OF_95
    assert equal[False] < 0.75


def test_a_slowdown_of_5_percent_is_found_as_stated() -> None:
    """docs/METHODOLOGY.md's table, in turns, to within what 600 comparisons can tell."""
    rates = {(row["run_to_run"], row["repetitions"]): row["found"] for row in power(600, 10) if row["in_turns"]}
    stated = {(0.01, 5): 0.999, (0.02, 5): 0.82, (0.05, 5): 0.22, (0.01, 10): 1.0, (0.02, 10): 0.998, (0.05, 10): 0.51}
    assert {key: rates[key] for key in stated} == pytest.approx(stated, abs=0.06)


@pytest.mark.parametrize("name", SERIES)
def test_equal_runs_by_blocks_are_not_told_apart(name: str) -> None:
    rng = np.random.default_rng(12)
    found = [by_blocks(rng, SERIES[name], 600) for _ in range(400)]
    equal = sum(each is None or each.p > 0.05 for each in found)
    assert equal / 400 > 0.91  # 95 % but for one time in a thousand


def test_blocks_find_a_slowdown() -> None:
    rng = np.random.default_rng(13)
    found = [by_blocks(rng, SERIES["AR(1) 0.5, 10 %"], 3000, effect=-0.05) for _ in range(50)]
    assert all(each is not None and each.p < 0.05 and each.d < 0 for each in found)


def test_blocks_do_not_see_how_runs_differ() -> None:
    """Why one run each is said to be one: equal arms that differ by 2 % from run to run are mostly told apart."""
    rows = [row for row in one_run_each(60, 14) if row["samples"] == 3000 and row["series"].startswith("independent")]
    assert rows[0]["not_told_apart"] > 0.85
    assert rows[1]["not_told_apart"] < 0.5


def test_several_arms_share_one_error_level() -> None:
    assert all(row["none_differs"] > 0.92 for row in several_arms(500, 15))


def test_a_rate_has_an_exact_interval() -> None:
    assert Rate(0, 0).interval() == (0.0, 1.0)
    low, high = Rate(95, 100).interval()
    assert (low, high) == pytest.approx((0.8872, 0.9836), abs=1e-4)


def _script() -> ModuleType:
    path = ROOT / "scripts" / "compare_errors.py"
    sys.path.insert(0, str(path.parent))
    try:
        spec = importlib.util.spec_from_file_location("compare_errors", path)
        assert spec and spec.loader
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
    finally:
        sys.path.remove(str(path.parent))
    return module


def test_the_script_prints_and_records_every_rate(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "rates.json"
    monkeypatch.setattr(sys, "argv", ["compare_errors.py", "--times", "3", "--out", str(out)])
    assert _script().main() == 0
    record = json.loads(out.read_text())
    assert set(STUDIES) < set(record["result"])
    printed = capsys.readouterr().out
    rows = [row for study in STUDIES for row in record["result"][study]]
    assert printed.count(" of 3)") == len(rows)
    assert all(row["low"] <= row["high"] for row in rows)


def test_the_script_refuses_a_run_that_is_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(
        sys, "argv", ["compare_errors.py", "--run", str(tmp_path / "none"), "--out", str(tmp_path / "x")]
    )
    assert _script().main() == 2
    assert "there is no such run directory" in capsys.readouterr().err
    assert not (tmp_path / "x").exists()


def test_the_recorded_rates_are_at_least_what_is_promised() -> None:
    """runs/bench/compare_errors.json: 95 % lie in every interval of a rate of equal sides, or below it."""
    result = json.loads((ROOT / "runs" / "bench" / "compare_errors.json").read_text())["result"]
    assert result["times"] >= 2000
    equal = [row for row in result["equal_by_repetitions"] if row["in_turns"] or not row["drift"]]
    equal += [row for row in result["one_run_each"] if row["run_to_run"] == 0]
    # Of so many intervals one in twenty has not the truth; none may be far from it.
    below = [row for row in equal if row["high"] < 0.95]
    assert len(below) <= len(equal) / 20
    assert all(row["not_told_apart"] > 0.935 for row in equal)
    same = [run["pairs"][0]["metrics"] for run in result["recorded"] if run["plan"] == "compare-same"]
    assert same
    assert all(metrics["throughput_ops_s"]["verdict"] == "not told apart" for metrics in same)
