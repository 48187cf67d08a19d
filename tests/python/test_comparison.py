"""Arms set against each other: figures worked out by hand, claims that can be missed, and the page that shows them."""

import re
import tomllib
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest
from browser import complaints, visit
from made_run import STANDING, arm, run
from made_run import second as a_second

from spillway.report import series, words
from spillway.report.arm_outcomes import (
    ArmOutcomes,
    StallHandling,
    mix_of,
    outcomes_of_arms,
    over,
    stall_handling_of,
    unfinished_arms,
)
from spillway.report.charts import Clock
from spillway.report.claims import Claim, bill_rows, claims
from spillway.report.comparison import comparison_panels, diverted_spans
from spillway.report.page import render
from spillway.report.panels import arm_panels
from spillway.rundir.directory import ArmRecord

PLAN = """
name = "made"
summary = "made by hand"
[engine]
name = "rocksdb"
[engine.options]
max_background_jobs = "2"
[[phases]]
name = "write"
workload = "fillrandom"
[[phases]]
name = "settle"
workload = "settle"
measured = false
[[arms]]
name = "rocksdb-1"
[[arms]]
name = "rocksdb-1 hard"
engine.policy = "no-slowdown"
[[arms]]
name = "adoc-1"
engine.policy = "adoc"
engine.adoc.most_jobs = 2
[[arms]]
name = "adoc-4"
engine.policy = "adoc"
engine.adoc.most_jobs = 5
[[arms]]
name = "spillway-1"
engine.name = "spillway"
engine.spill.rollback = "lazy"
"""


def the_arms() -> list[ArmRecord]:
    return [
        arm("rocksdb-1", [100, 100, 20, 100], 4, stalled=(2,), p99=100, worst=2e5),
        arm("rocksdb-1 hard", [140, 140, 0, 100], 4, stalled=(2,), worst=1e6),
        arm("adoc-1", [100, 110, 50, 120], 3, p99=80),
        arm("adoc-4", [120, 120, 120, 116], 2),
        arm("spillway-1", [120, 120, 110, 130], 4, p99=60, worst=9e4, spill_diverting=0.0),
    ]


def compared(arms: list[ArmRecord] | None = None) -> list[ArmOutcomes]:
    return outcomes_of_arms(tomllib.loads(PLAN), arms or the_arms())


def found(rows: list[Claim], claim: str, arms: str) -> Claim:
    (one,) = [row for row in rows if (row.claim, row.arms) == (claim, arms)]
    return one


def test_stall_handling_is_read_from_the_plan() -> None:
    plan = tomllib.loads(PLAN)
    assert stall_handling_of(plan, "rocksdb-1") == StallHandling("rocksdb", True, 1, "")
    assert stall_handling_of(plan, "rocksdb-1 hard") == StallHandling("rocksdb", False, 1, "")
    assert stall_handling_of(plan, "adoc-4") == StallHandling("adoc", True, 4, "")
    assert stall_handling_of(plan, "spillway-1") == StallHandling("spillway", False, 1, "lazy")
    plan["engine"]["options"] |= {"level0_slowdown_writes_trigger": "36", "max_background_compactions": "2"}
    assert stall_handling_of(plan, "adoc-1") == StallHandling("adoc", False, 2, "")
    assert stall_handling_of({}, "alone") == StallHandling("rocksdb", True, None, "")
    plan["arms"][2]["engine"] = {"policy": "flow-control"}  # which puts RocksDB's own triggers out of reach
    assert stall_handling_of(plan, "adoc-1") == StallHandling("flow-control", True, 2, "")


def test_rocksdb_with_other_levels_is_a_rival_of_its_own() -> None:
    """The paper's claims are about RocksDB, and the best rival may be this one."""
    plan = tomllib.loads(PLAN)
    plan["engine"]["options"]["target_file_size_base"] = "4096"
    plan["arms"].append({"name": "small", "engine": {"options": {"target_file_size_base": "512"}}})
    plan["arms"].append({"name": "same", "engine": {"options": {"target_file_size_base": 4096}}})
    assert stall_handling_of(plan, "small") == StallHandling("rocksdb, other levels", True, 1, "")
    assert stall_handling_of(plan, "same") == stall_handling_of(plan, "rocksdb-1")
    arms = [arm("rocksdb-1", [100.0] * 4, 4), arm("small", [110.0] * 4, 4), arm("spillway-1", [120.0] * 4, 4)]
    rows = claims(outcomes_of_arms(plan, arms), "A")
    assert found(rows, "write throughput", "spillway-1 : the best rival").measured == "1.09×"
    assert not [row for row in rows if row.arms == "spillway-1 : small"]


@pytest.mark.parametrize(("jobs", "threads"), [(1, 1), (2, 1), (3, 2), (5, 4), (8, 6), (20, 15)])
def test_rocksdb_makes_flushes_and_compactions_of_its_jobs(jobs: int, threads: int) -> None:
    plan = {"engine": {"options": {"max_background_jobs": str(jobs)}}}
    assert stall_handling_of(plan, "alone").threads == threads


@pytest.mark.parametrize(
    ("phases", "mix"),
    [
        ([{"workload": "fillrandom"}, {"workload": "settle"}], "A"),
        ([{"workload": "readwhilewriting", "read_write_percent": 10}], "B"),
        ([{"workload": "readwhilewriting", "read_write_percent": 20}], "C"),
        ([{"workload": "fillseq", "measured": False}, {"workload": "seekrandom"}], "D"),
        ([{"workload": "readwhilewriting"}], ""),
        ([{"workload": "overwrite"}, {"workload": "overwrite", "rate_ops_s": 100.0}], ""),
        ([{"workload": "fillrandom"}, {"workload": "seekrandom"}], ""),
    ],
)
def test_the_papers_workloads_are_known_by_their_phases(phases: list[dict[str, object]], mix: str) -> None:
    assert mix_of({"phases": phases}) == mix
    assert mix_of({"arms": [{"phases": phases}]}) == mix


def test_an_outcome_is_what_can_be_counted_by_hand() -> None:
    """rocksdb-1: 320 writes of 1 kB in 4 s, 2 B to the drive and 3 to flash for each; then 4 s and 4 MB of each."""
    made = compared()[0].outcomes[0]
    assert (made.writes, made.seconds, made.settle_s) == (320, 4, 4)
    assert (made.write_ops_s, made.settled_ops_s) == (80, 40)
    assert (made.ratios.wa_app, made.ratios.wa_device) == (2, 1.5)
    assert made.settled_ratios.wa_app == pytest.approx((640e3 + 4e6) / 320e3)
    assert made.settled_ratios.wa_total == pytest.approx((960e3 + 4e6) / 320e3)
    assert made.cpu_percent == 50
    assert made.efficiency == pytest.approx(0.08 / 50)
    assert (made.zero_seconds, made.slowest_second) == (0, 20)
    assert (made.stalls, made.stall_s) == (1, 1)
    assert compared()[1].outcomes[0].zero_seconds == 1


def test_seconds_of_several_samples_are_whole_ones() -> None:
    """Ten samples of a tenth each, nine of them empty, are no second without an operation."""
    record = arm("one", [100.0])
    tenths = [{**a_second((i + 1) / 10, 10 if i == 9 else 0), "dt_s": 0.1} for i in range(10)]
    (alone,) = outcomes_of_arms({}, [replace(record, rows=tenths)])
    assert (alone.outcomes[0].zero_seconds, alone.outcomes[0].slowest_second) == (0, 10)


def test_a_limit_on_writes_has_a_panel_where_there_was_one() -> None:
    limits = (0.0, 2e6, 1e6)
    rows = [a_second(i + 1.0, 100, write_limit_bytes_s=limit) for i, limit in enumerate(limits)]
    limited, free = (replace(arm("one", [100.0] * 3), rows=each) for each in (rows, rows[:1]))
    (panel,) = [each for each in arm_panels(limited, Clock(3)) if each.key == "write-limit"]
    drawn = panel.figure.renderers[0].data_source.data["write_limit_bytes_s"]
    assert [value if value == value else None for value in drawn] == [None, 2.0, 1.0]
    assert not [each for each in arm_panels(free, Clock(3)) if each.key == "write-limit"]


def test_claims_are_measured_against_what_is_wanted() -> None:
    rows = claims(compared(), "A")
    slow = found(rows, "write throughput", "spillway-1 : rocksdb-1")
    assert (slow.wanted, slow.measured, slow.verdict) == ("at least 1.37×", "1.50×", "met")
    adoc = found(rows, "write throughput", "spillway-1 : adoc-1")
    assert (adoc.measured, adoc.verdict) == ("1.26×", "met")
    assert found(rows, "p99 of writes", "spillway-1 : rocksdb-1").verdict == "missed"  # 0.6, and 0.58 is wanted
    assert found(rows, "p99 of writes", "spillway-1 : adoc-1").verdict == "met"
    assert found(rows, "seconds without an operation", "spillway-1").verdict == "met"
    worst = found(rows, "worst write", "spillway-1 : rocksdb-1 hard")
    assert (worst.measured, worst.verdict) == ("0.09×: 90.0 ms : 1.00 s", "met")
    assert found(rows, "write throughput of 1 thread : 4", "spillway-1 : adoc-4").verdict == "met"
    assert found(rows, "time for an operation, to the end", "spillway-1 : rocksdb-1").verdict == "met"
    assert found(rows, "efficiency (K2)", "spillway-1").verdict == "met"


def twice(name: str, rates: tuple[float, float]) -> ArmRecord:
    """An arm with two repetitions, of as many writes in each second."""
    both = [arm(name, [rate] * 4, 4) for rate in rates]
    return replace(both[0], repetitions=both)


def test_the_best_rival_is_another_one_in_each_repetition() -> None:
    """rocksdb-1 and adoc-1 reach 100 writes a second in turns; ours has 125 and 110: 1.25 and 1.1 times the best."""
    arms = [twice("rocksdb-1", (100, 50)), twice("adoc-1", (50, 100)), twice("spillway-1", (125, 110))]
    rows = claims(compared(arms), "A")
    best = found(rows, "write throughput", "spillway-1 : the best rival")
    assert (best.wanted, best.measured) == ("at least 1.2×", "1.18× (1.10 to 1.25)")
    assert best.verdict == "met in 1 of 2 runs"
    assert found(rows, "wa_total, to the end", "spillway-1 : the best rival").verdict == "met"
    assert found(rows, "worst write", "spillway-1 : the best rival").measured == "1.00× (1.00 to 1.00)"
    without = claims(compared([arms[0], arms[2]]), "A")
    assert not any("best rival" in row.arms for row in without), "one rival has claims of its own"
    assert not any(row.claim == "write throughput" for row in claims(compared(arms), ""))


def test_efficiency_counts_repetitions() -> None:
    """Ours has the higher median, and the best of one of two repetitions."""
    rows = claims(compared([twice("rocksdb-1", (100, 100)), twice("spillway-1", (150, 90))]), "")
    assert found(rows, "efficiency (K2)", "spillway-1").verdict == "met in 1 of 2 runs"


def test_a_claim_that_does_not_hold_is_missed() -> None:
    arms = the_arms()
    arms[4] = arm("spillway-1", [100, 0, 110, 130], 9, p99=90, worst=2e5)
    rows = claims(compared(arms), "A")
    assert {row.claim for row in rows if row.verdict == "missed"} == {
        "write throughput",
        "p99 of writes",
        "seconds without an operation",
        "worst write",
        "time for an operation, to the end",
        "wa_app, to the end",
        "wa_total, to the end",
        "write throughput of 1 thread : 4",
        "efficiency (K2)",
    }


def test_a_claim_without_its_arms_is_not_made() -> None:
    arms = the_arms()
    assert claims(outcomes_of_arms(tomllib.loads(PLAN), arms[:4]), "A") == []
    alone = claims(outcomes_of_arms(tomllib.loads(PLAN), arms[4:]), "A")
    assert [row.claim for row in alone] == ["seconds without an operation"]
    assert not any(row.claim == "throughput" for row in claims(compared(), ""))


def test_mixed_and_range_workloads_have_claims_of_their_own() -> None:
    def mixed(name: str, writes: float, reads: float) -> ArmRecord:
        made = arm(name, [writes], workload="readwhilewriting")
        made.phases[0] |= {"reads": reads}
        return made

    rows = claims(compared([mixed("rocksdb-1", 90, 10), mixed("adoc-1", 100, 20), mixed("spillway-1", 140, 9)]), "B")
    gain = found(rows, "write throughput in workload B", "spillway-1 : adoc-1")
    assert (gain.wanted, gain.measured, gain.verdict) == ("at least 1.36×", "1.40×", "met")
    reads = found(rows, "reads in workload B", "spillway-1 : rocksdb-1")
    assert (reads.measured, reads.verdict) == ("0.90×", "missed")

    def ranges(name: str, seeks: float) -> ArmRecord:
        made = arm(name, [0.0], workload="seekrandom")
        made.phases[0] |= {"reads": seeks}
        return made

    rows = claims(compared([ranges("rocksdb-1", 100), ranges("spillway-1", 95)]), "D")
    assert found(rows, "range queries", "spillway-1 : rocksdb-1").verdict == "met"


def test_repetitions_are_paired_and_their_spread_is_shown() -> None:
    """Ratios 1.2, 1.5 and 1.4 of throughput: two of three runs meet 1.37, and the median does."""
    ours, stock = ([[120], [150], [140]], [[100], [100], [100]])
    arms = []
    for name, rates in (("rocksdb-1", stock), ("spillway-1", ours)):
        made = [arm(name, [float(rate) for rate in each]) for each in rates]
        arms.append(replace(made[2], repetitions=made))
    compared_arms = compared(arms)
    row = found(claims(compared_arms, "A"), "write throughput", "spillway-1 : rocksdb-1")
    assert (row.measured, row.verdict) == ("1.40× (1.20 to 1.50)", "met in 2 of 3 runs")
    spread = over(compared_arms[1], lambda outcome: outcome.write_ops_s)
    assert spread is not None
    assert (spread.median, spread.low, spread.high, spread.count) == (140, 120, 150, 3)


def test_what_was_not_finished_counts_in_no_figure() -> None:
    whole, ended, failed = (arm("rocksdb-1", [rate]) for rate in (100.0, 5.0, 7.0))
    ended.result["complete"] = False
    failed.result.clear()
    (one,) = compared([replace(whole, repetitions=[whole, ended, failed])])
    assert [each.writes for each in one.outcomes] == [100]
    assert compared([ended]) == []


def seeded(name: str, rates: Mapping[int, float | None]) -> ArmRecord:
    """An arm with a repetition of each seed, of as many writes in each second; None: it was not finished."""
    made = [arm(name, [rate or 1.0] * 4, 4) for rate in rates.values()]
    for each, rate in zip(made, rates.values(), strict=True):
        each.result["complete"] = rate is not None
    summary = made[0].summary | {
        "repetitions": [{"seed": seed, "throughput_ops_s": rate} for seed, rate in rates.items()]
    }
    return replace(made[0], summary=summary, repetitions=made)


@pytest.mark.parametrize("failed", [1, 2, 3])
def test_repetitions_are_compared_with_those_of_the_same_seed(failed: int) -> None:
    """Ours has 1.5 times the rival's writes with seeds 1 and 2, and misses with seed 3. Whichever of the rival's
    repetitions failed, no ratio is of two seeds, and what was left out is not met."""
    theirs, ours = {1: 100.0, 2: 200.0, 3: 400.0}, {1: 150.0, 2: 300.0, 3: 400.0}
    rival = seeded("rocksdb-1", theirs | {failed: None})
    made = compared([rival, seeded("adoc-1", theirs), seeded("spillway-1", ours)])
    rows = claims(made, "A")
    row = found(rows, "write throughput", "spillway-1 : rocksdb-1")
    kept = sorted(ours[seed] / theirs[seed] for seed in theirs if seed != failed)
    low, high = f"{kept[0]:.2f}", f"{kept[1]:.2f}"
    assert row.measured == f"{sum(kept) / 2:.2f}× ({low} to {high}), 2 of 3 repetitions"
    assert row.verdict == f"met in {sum(each >= 1.37 for each in kept)} of 3 runs"
    best = found(rows, "write throughput", "spillway-1 : the best rival")
    assert best.measured == row.measured
    assert best.verdict == f"met in {sum(each >= 1.2 for each in kept)} of 3 runs"
    assert found(rows, "write throughput", "spillway-1 : adoc-1").verdict == "met in 2 of 3 runs"
    (bars,) = [
        each for each in comparison_panels([each.record for each in made], made, Clock(8)) if "writes" in each.key
    ]
    assert "Medians of 3 repetitions (rocksdb-1 2 of these)" in bars.caption


def test_an_own_repetition_that_is_missing_is_not_met() -> None:
    """Also where the plan asks for one that nobody began."""
    arms = [seeded("rocksdb-1", {1: 100.0, 2: 100.0}), seeded("spillway-1", {1: None, 2: 200.0})]
    rows = claims(compared(arms), "A")
    assert found(rows, "write throughput", "spillway-1 : rocksdb-1").verdict == "met in 1 of 2 runs"
    zeros = found(rows, "seconds without an operation", "spillway-1")
    assert (zeros.measured, zeros.verdict) == ("0, 1 of 2 repetitions", "met in 1 of 2 runs")
    efficiency = found(rows, "efficiency (K2)", "spillway-1")
    assert efficiency.measured.endswith("the best is spillway-1, 1 of 2 repetitions")
    assert efficiency.verdict == "met in 1 of 2 runs"
    whole = [seeded(name, {1: rate, 2: rate}) for name, rate in (("rocksdb-1", 100.0), ("spillway-1", 200.0))]
    rows = claims(outcomes_of_arms(tomllib.loads("seeds = [1, 2, 3]\n" + PLAN), whole), "A")
    assert found(rows, "write throughput", "spillway-1 : rocksdb-1").verdict == "met in 2 of 3 runs"


def test_arms_without_a_repetition_in_common_are_not_compared() -> None:
    arms = [seeded("rocksdb-1", {1: 100.0, 2: None}), seeded("spillway-1", {1: None, 2: 200.0})]
    row = found(claims(compared(arms), "A"), "write throughput", "spillway-1 : rocksdb-1")
    assert (row.measured, row.verdict) == ("–, 0 of 2 repetitions", "not measured")


def test_a_seed_that_is_named_twice_is_two_repetitions() -> None:
    rates = {"rocksdb-1": (100, 100), "spillway-1": (150, 100)}
    arms = [twice(name, each) for name, each in rates.items()]
    arms = [replace(each, summary=each.summary | {"repetitions": [{"seed": 7}, {"seed": 7}]}) for each in arms]
    row = found(claims(compared(arms), "A"), "write throughput", "spillway-1 : rocksdb-1")
    assert (row.measured, row.verdict) == ("1.25× (1.00 to 1.50)", "met in 1 of 2 runs")


def test_the_best_rival_names_those_that_finished_nothing() -> None:
    """Of adoc-1 no repetition was finished, and rocksdb-1 hard was never begun; adoc-4 has other threads."""
    arms = [seeded("rocksdb-1", {1: 100.0}), seeded("adoc-1", {1: None}), seeded("spillway-1", {1: 150.0})]
    missing = unfinished_arms(tomllib.loads(PLAN), arms)
    assert [each.name for each in missing] == ["rocksdb-1 hard", "adoc-1", "adoc-4"]
    rows = claims(compared(arms), "A", missing)
    without = "without rocksdb-1 hard, adoc-1, of which no repetition was finished"
    best = found(rows, "write throughput", f"spillway-1 : the best rival, {without}")
    assert (best.measured, best.verdict) == ("1.50×", "met")
    said = "no repetition was finished of: rocksdb-1 hard, adoc-1, adoc-4"
    assert said in render(run(PLAN, arms))
    chosen = render(run(PLAN, arms), ("rocksdb-1", "spillway-1"))
    assert "no repetition was finished of" not in chosen, "the others were not asked for"


def test_the_bill_names_both_ends() -> None:
    rows = dict(bill_rows(compared()))
    assert rows["While writing: operations/s"] == ["80.0", "95.0", "95.0", "119", "120"]
    assert rows["To the end: operations/s"] == ["40.0", "47.5", "54.3", "79.3", "60.0"]
    assert rows["Time to settle after it (s)"] == ["4.00", "4.00", "3.00", "2.00", "4.00"]
    assert rows["While writing: wa_total"] == ["3.00"] * 5
    unsettled = dict(bill_rows(compared([arm("rocksdb-1", [10.0])])))
    assert "To the end: wa_app" not in unsettled


def test_traffic_in_stalls_is_weighed_by_their_seconds() -> None:
    """K19: of two seconds of stall one had no traffic and one two thirds of the busiest second's."""
    rows = [a_second(1, 100), a_second(2, 200, stall_s_l0=1.0), a_second(3, 0, stall_s_l0=1.0), a_second(4, 300)]
    groups = [[each] for each in rows]
    assert series.traffic_mb_s(groups) == pytest.approx([0.3, 0.6, 0, 0.9])
    assert series.traffic_cdf(groups, 0.9)["y"] == [0, 50, 100, 100]
    assert series.traffic_share(groups, 0.9, 0.01, above=False) == 0.5
    assert series.traffic_share(groups, 0.9, 0.9, above=True) == 0
    assert series.traffic_share(groups[:1], 0.9, 0.5, above=True) is None


def test_neighbouring_samples_of_diversion_are_one_span() -> None:
    record = arm("spillway-1", [10.0] * 5)
    for row, diverting in zip(record.rows, (0, 1, 1, 0, 1), strict=True):
        row["spill_diverting"] = float(diverting)
    assert diverted_spans(record) == [(1, 3), (4, 5)]


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    stock, hard, _, _, ours = the_arms()
    for row in ours.rows[1:3]:
        row |= {"spill_diverting": 1.0, "spill_diverted_writes": 50.0, "spill_diverted_bytes": 5e4}
        row |= {"spill_live_bytes": 1e6, "spill_index_bytes": 1e4, "spill_rolled_back_bytes": 0.0}
    path = tmp_path_factory.mktemp("made") / "page.html"
    path.write_text(render(run(PLAN, [stock, hard, ours])))
    return path


@pytest.mark.long
def test_the_page_has_the_papers_figures_and_the_verdicts(page: Path) -> None:
    text = page.read_text()
    for key in ("each-0", "each-2", "bars-writes", "bars-p99", "bars-efficiency", "to-the-end", "traffic-0"):
        assert f'id="compare-{key}"' in text
    for key in ("left-of-the-drive", "stalls", "wa"):
        assert f'id="compare-{key}"' in text
    assert "more than 90\u00a0% for 0\u00a0%" in text
    assert '<td class="verdict missed">missed</td>' in text
    assert '<h3 id="bill">The whole bill</h3>' in text
    assert 'id="arm2-spill-store"' in text


def test_the_headline_is_held_against_the_best_rival(page: Path) -> None:
    """480 writes in 4 s against 380 and 320: 1.26 times the better. With 4 s more for each to settle: 60 a second."""
    said = re.search("<h1>(.*?)</h1>", page.read_text())
    assert said
    assert said[1] == (
        "“spillway-1” did 120 operations a second, 1.26 times the best of the others, “rocksdb-1 hard”. "
        "Counted until everything was settled, 60: 1.26 times “rocksdb-1 hard”."
    )


def test_the_headlines_rivals_may_differ_by_figure() -> None:
    """The fastest is held against the shortest wait, the shortest bill and the least flash, whoever has them."""
    arms = [arm("a", [100] * 4, 4), arm("b", [110] * 4, 4), arm("c", [150] * 4, 4)]
    made = zip(arms, (3e5, 2e5, 1e4), (90.0, 80.0, 60.0), (4.0, 3.0, 5.0), strict=True)
    for one, longest, rate, flash in made:
        one.summary["write_latency_us"] = {"max": longest}
        one.summary["bill"] = {"throughput_ops_s": rate, "wa_total": flash}
    said = words.headline(run(PLAN, arms), {})
    assert "Its longest write took 10 ms, the best of the others’ 200 ms (“b”)." in said
    assert said.endswith("60: 0.67 times “a”, and 5.00 bytes on flash for each of the user’s, to 3.00 of “b”.")
    for one in arms:
        one.summary["bill"] = None
        one.summary["write_latency_us"] = {"max": 0.0}
    assert words.headline(run(PLAN, arms), {}).endswith("1.36 times what the next, “b”, did.")


def test_the_headline_is_about_spillway_where_it_loses_too() -> None:
    """120 writes a second against 150: the fastest is not the one that is asked about. Its longest write is longer."""
    arms = [arm("rocksdb-1", [100] * 4, 4), arm("adoc-1", [150] * 4, 2), arm("spillway-1", [120] * 4, 4)]
    for one, longest in zip(arms, (3e5, 1e4, 2e5), strict=True):
        one.summary["write_latency_us"] = {"max": longest}
    plan = tomllib.loads(PLAN)
    lost = (
        "“spillway-1” did 120 operations a second, 0.80 times the best of the others, “adoc-1”. "
        "Its longest write took 200 ms, the best of the others’ 10 ms (“adoc-1”). "
        "Counted until everything was settled, 60: 0.60 times “adoc-1”."
    )
    assert words.headline(run(PLAN, arms), plan) == lost
    assert words.headline(run(PLAN, arms[::-1]), plan) == lost


def test_the_headline_of_several_arms_of_spillway_is_the_fastest_ones() -> None:
    """Against the best of the others, and not against another one of its own."""
    plan = tomllib.loads(PLAN)
    plan["arms"].append({"name": "spillway-2", "engine": {"name": "spillway"}})
    arms = [arm("rocksdb-1", [100] * 4), arm("spillway-1", [120] * 4), arm("spillway-2", [150] * 4)]
    said = words.headline(run(PLAN, arms), plan)
    assert said.startswith(
        "“spillway-2”, the fastest of 2 arms of Spillway, did 150 operations a second, 1.50 times the "
    )
    alone = words.headline(run(PLAN, arms[1:]), plan)
    assert alone == "“spillway-2” did 150 operations a second, 1.25 times what the next, “spillway-1”, did."


def test_the_headline_of_an_arm_that_finished_nothing() -> None:
    def said(*rates: float) -> str:
        arms = [arm(name, [rate]) for name, rate in zip(("rocksdb-1", "spillway-1"), rates, strict=True)]
        return words.headline(run(PLAN, arms), tomllib.loads(PLAN))

    assert said(100, 0) == (
        "“spillway-1” finished no operation; the best of the others, “rocksdb-1”, did 100 operations a second."
    )
    assert said(0, 100) == "“spillway-1” did 100 operations a second, and none of the others finished one."
    assert said(0, 0) == "Of 2 arms none finished an operation."
    assert said(100, 101) == "2 arms, and their throughput is within 2 %."


def test_comparisons_say_once_what_all_arms_have_alike() -> None:
    arms = the_arms()[:2]
    arms[1].summary["standing"] = STANDING | {"steady": False, "pacing_error_us": {"p50": 9.0, "p99": 70.0}}
    (panel,) = [each for each in comparison_panels(arms, [], Clock(4)) if each.key == "throughput"]
    assert panel.standing == (
        "steady drive at the start · 64.0 MiB (scaled down) · time × 1 · pacing error at most 70 µs p99"
        " · steady: rocksdb-1 · not steady: rocksdb-1 hard"
    )


@pytest.mark.browser
@pytest.mark.long
def test_the_page_draws_every_comparison(page: Path) -> None:
    seen = visit(page, "--dump-dom")
    assert complaints(seen.console) == []
    assert seen.output.count('class="bk-Figure"') == page.read_text().count("<figure")


@pytest.mark.browser
@pytest.mark.long
def test_a_phase_is_named_where_its_name_fits(tmp_path: Path) -> None:
    """Of 120 seconds on half a page's width, 60 hold a whole label, 10 a name, and 1 nothing."""
    page = tmp_path / "page.html"
    arms = [arm("rocksdb-1", [100.0] * 60, 60), arm("rocksdb-1 hard", [100.0] * 60, 10), arm("adoc-1", [100.0] * 60, 1)]
    labels = "figure.center.filter((each) => each.type === 'Label').map((each) => each.text)"
    told = f"Bokeh.documents.flatMap((each) => each.roots()).map((figure) => {labels}.join('|')).join(';')"
    script = f"<script>setTimeout(() => {{ document.title = {told}; }}, 3000)</script>"
    page.write_text(render(run(PLAN, arms)).replace("</main>", f"</main>{script}"))
    seen = visit(page, "--dump-dom", "--window-size=1280,2000")
    assert complaints(seen.console) == []
    found = re.search("<title>(.*?)</title>", seen.output)
    assert found
    assert {"write|settle (not measured)", "write|settle", "write|"} <= set(found[1].split(";"))


def test_arms_that_never_stalled_have_no_empty_figure() -> None:
    arms = [arm(name, [100, 110, 120, 100], 2) for name in ("one", "two")]
    panels = comparison_panels(arms, [], Clock(4.0))
    assert panels
    assert [panel.key for panel in panels if not panel.figure.renderers] == []
