"""The highest rate that is kept: the search on made stores, the verdict on made runs, the command on a fake native."""

import json
import math
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from conftest import PLAN, Fake, Invoke
from made_run import known_seconds, second
from made_run import phase as made_phase

from spillway.cli.sustain import _print_arm
from spillway.errors import SpillwayError
from spillway.plan.document import load_plan
from spillway.quantity import parse_rate, parse_time
from spillway.rundir.samples import Row
from spillway.sustain import Limits, search
from spillway.sustain.tries import ArmResult, Try, rate_name
from spillway.sustain.verdict import (
    MARGIN,
    Judged,
    filled,
    judge_phase,
    offered_operations,
    time_words,
    worst_of,
)

# ---------------------------------------------------------------- the search


@dataclass(frozen=True)
class Made:
    rate: float
    kept: bool


class Store:
    """A store that keeps what ``keeps`` says; it notes what it was asked."""

    def __init__(self, keeps: Callable[[float], bool]) -> None:
        self.keeps = keeps
        self.asked: list[float] = []

    def __call__(self, rate: float) -> Made:
        self.asked.append(rate)
        return Made(rate, self.keeps(rate))


def check_edge(store: Store, lowest: float, highest: float, within: float) -> tuple[float, float]:
    """The answer is an edge of what the store keeps, near enough, and no rate was tried twice or beyond the bounds."""
    found = search(store, lowest, highest, within)
    assert found.kept is not None
    assert found.not_kept is not None
    kept, not_kept = found.kept.rate, found.not_kept.rate
    assert found.kept.kept
    assert not found.not_kept.kept
    assert kept < not_kept <= kept * (1 + within) * (1 + 1e-9)
    assert len(set(store.asked)) == len(store.asked)
    assert all(lowest <= rate <= highest for rate in store.asked)
    assert not [rate for rate in store.asked if kept < rate < not_kept]
    bracket = math.ceil(math.log2(highest / lowest)) + 1
    assert len(store.asked) <= bracket + math.ceil(math.log2(math.log(2) / math.log1p(within)))
    return kept, not_kept


@pytest.mark.parametrize("limit", [1000, 1001, 1999.9, 2000, 12_345, 700_000, 999_999])
@pytest.mark.parametrize("within", [0.05, 0.5, 0.002])
def test_the_edge_of_a_monotone_store_is_found(limit: float, within: float) -> None:
    kept, not_kept = check_edge(Store(lambda rate: rate <= limit), 1000, 1_000_000, within)
    assert kept <= limit < not_kept


def test_a_thousandfold_range_at_5_percent_takes_15_tries_at_most() -> None:
    counts = []
    for exponent in range(300):
        limit = 1000 * 1000 ** (exponent / 300)
        store = Store(lambda rate, limit=limit: rate <= limit)  # type: ignore[misc]
        search(store, 1000, 1_000_000, 0.05)
        counts.append(len(store.asked))
    assert max(counts) == 15


def test_noise_near_the_limit_moves_the_answer_within_the_noise() -> None:
    for seed in range(200):
        rng = random.Random(seed)
        store = Store(lambda rate, rng=rng: rate * rng.uniform(0.9, 1.1) <= 20_000)  # type: ignore[misc]
        kept, not_kept = check_edge(store, 1000, 1_000_000, 0.05)
        assert kept <= 20_000 / 0.9
        assert not_kept >= 20_000 / 1.1


def test_nothing_kept_takes_one_try() -> None:
    store = Store(lambda rate: False)
    found = search(store, 1000, 1_000_000, 0.05)
    assert (found.kept, found.not_kept, store.asked) == (None, Made(1000, False), [1000])


@pytest.mark.parametrize("highest", [1000, 1500, 50_000])
def test_all_kept_ends_with_the_highest(highest: float) -> None:
    store = Store(lambda rate: True)
    found = search(store, 1000, highest, 0.05)
    assert (found.kept, found.not_kept) == (Made(highest, True), None)
    assert store.asked[-1] == highest


def test_a_store_that_recovers_gives_one_edge_and_nothing_above_it_is_tried() -> None:
    # Kept up to 3000, and again from 5000 to 40 000: whichever edge the doubling meets first.
    def keeps(rate: float) -> bool:
        return rate <= 3000 or 5000 <= rate <= 40_000

    assert check_edge(Store(keeps), 1000, 1_000_000, 0.05)[0] == pytest.approx(3000, rel=0.05)
    assert check_edge(Store(keeps), 1400, 1_000_000, 0.05)[0] == pytest.approx(40_000, rel=0.05)


def test_rates_that_round_to_one_end_the_search() -> None:
    store = Store(lambda rate: rate <= 1000.3)
    found = search(store, 1000, 1000.9, 1e-9)
    assert found.kept is not None
    assert len(store.asked) < 5


# ---------------------------------------------------------------- the verdict

PHASE = {
    **{"name": "write", "workload": "overwrite", "rate_ops_s": 1000.0, "duration_s": 60.0, "arrivals": None},
    **{"burst_s": None, "gap_s": None, "gap_rate_ops_s": None},
}


def judged(
    waits: Callable[[int], float | None],
    *,
    writes: Callable[[int], float] = lambda i: 1000,
    not_started: float = 0,
    limits: Limits | None = None,
    key: str = "rate_ops_s",
    **of_phase: Any,
) -> Judged:
    """A minute at 1000/s; ``waits``: the mean latency of each second, in µs."""
    rows: list[Row] = [second(i + 1.0, writes(i), write_latency_mean_us=waits(i)) for i in range(60)]
    done = sum(row["writes"] for row in rows)
    ended = made_phase("write", "overwrite", 0.0, 60.0, done, operations=done, not_started=not_started)
    return judge_phase(PHASE | of_phase, ended, rows, limits or Limits(), key)


def noisy(seed: int, mean: float) -> Callable[[int], float]:
    rng = random.Random(seed)
    return lambda i: mean * rng.expovariate(1)


def test_a_rate_that_is_done_as_it_is_due_is_kept() -> None:
    found = judged(noisy(1, 300))
    assert found.reasons == ()
    assert (found.offered_ops_s, found.achieved_ops_s, found.backlog) == (1000, 1000, 0)
    assert (found.p99_s, found.worst_s) == (100e-6, 1000e-6)


def test_limits_are_of_p99_and_of_the_worst_write() -> None:
    assert judged(noisy(1, 300), limits=Limits(100e-6, 1000e-6)).reasons == ()
    assert judged(noisy(1, 300), limits=Limits(99e-6)).reasons == ("p99 of writes was 100 µs (limit 99 µs)",)
    assert judged(noisy(1, 300), limits=Limits(None, 0.5e-3)).reasons == ("the worst write took 1 ms (limit 500 µs)",)


def test_what_waits_at_the_end_counts_as_a_worst_write() -> None:
    found = judged(noisy(1, 300), not_started=500, limits=Limits(None, 0.1))
    assert found.reasons == ("500 operations waited at the end, for 500 ms (limit 100 ms)",)
    assert judged(noisy(1, 300), not_started=50, limits=Limits(None, 0.1)).reasons == ()


def test_what_is_not_done_or_not_started_is_not_kept() -> None:
    assert judged(noisy(1, 300), writes=lambda i: 995).reasons == ()
    assert judged(noisy(1, 300), writes=lambda i: 985).reasons == ("985 operations/s were done of 1,000 offered",)
    assert judged(noisy(1, 300), not_started=599).reasons == ()
    assert judged(noisy(1, 300), not_started=601).reasons == ("601 operations were not started at the end",)


def test_a_wait_that_rises_is_a_growing_backlog() -> None:
    # 0.5 % more are offered than the store can do: the wait rises by 5 ms a second, and 0.5 % of all are left.
    found = judged(lambda i: 300 + 5000 * i, writes=lambda i: 995, not_started=300)
    assert found.reasons == ("the backlog grew: waits rose by 5 ms in each second",)
    assert found.growth == pytest.approx(5e-3)
    late = judged(lambda i: noisy(i, 300)(0) + max(0, i - 30) * 10_000)
    assert [each.split(":")[0] for each in late.reasons] == ["the backlog grew"]
    stopped = judged(lambda i: None if i % 5 else 300 + 5000 * i)
    assert [each.split(":")[0] for each in stopped.reasons] == ["the backlog grew"], (
        "a second without a write is no gap"
    )


def test_noise_and_stalls_that_recover_are_no_growth() -> None:
    wrong = 0
    for seed in range(200):
        rng = random.Random(seed)
        start = rng.uniform(0, 7)
        stalls = [300 + 1e6 * max(0.0, (i + start) % 7 - 5) * rng.uniform(0.8, 1.2) for i in range(60)]
        wrong += bool(judged(stalls.__getitem__).reasons) + bool(judged(noisy(seed, 5000)).reasons)
    assert wrong <= 8, "2 % of 400"


def test_throughput_that_falls_is_not_kept() -> None:
    found = judged(noisy(1, 300), writes=lambda i: 1200 - 7 * i)
    assert found.reasons[-1] == "throughput fell by 42 % over the run"
    assert judged(noisy(1, 300), writes=lambda i: 1200 - i).reasons == ()
    assert judged(noisy(1, 300), writes=lambda i: 980 + 7 * i).reasons == (), "it rises"


@pytest.mark.parametrize(("burst_s", "gap_s"), [(20, 40), (30, 600), (10, 20), (7, 13)])
def test_arrivals_that_become_fewer_are_no_fall_of_throughput(burst_s: float, gap_s: float) -> None:
    def arrives(i: int) -> bool:
        return i % (burst_s + gap_s) < burst_s

    spec: dict[str, Any] = {"arrivals": "bursts", "burst_s": float(burst_s), "gap_s": float(gap_s)}
    waits = noisy(1, 300)
    kept = judged(lambda i: waits(i) if arrives(i) else None, writes=lambda i: 1000 * arrives(i), **spec)
    assert kept.reasons == ()


def test_a_store_that_slows_from_burst_to_burst_is_not_kept() -> None:
    spec: dict[str, Any] = {"arrivals": "bursts", "burst_s": 5.0, "gap_s": 5.0}
    found = judged(noisy(1, 300), writes=lambda i: (1050 - 9 * i) * (i % 10 < 5), **spec)
    assert any("throughput fell" in reason for reason in found.reasons)


def test_arrivals_say_what_was_offered() -> None:
    bursts = PHASE | {"arrivals": "bursts", "burst_s": 2.0, "gap_s": 3.0, "gap_rate_ops_s": 100.0}
    assert offered_operations(PHASE, "rate_ops_s", 60) == 60_000
    assert offered_operations(bursts, "rate_ops_s", 60) == 12 * 2000 + 12 * 300
    assert offered_operations(bursts, "rate_ops_s", 61) == 12 * 2300 + 1000
    assert offered_operations(bursts, "rate_ops_s", 64) == 12 * 2300 + 2000 + 200
    assert offered_operations(PHASE | {"write_rate_ops_s": 50.0}, "write_rate_ops_s", 60) == 3000
    # Of 60 000 by Poisson's process 3 standard deviations are 735.
    assert judged(noisy(1, 300), writes=lambda i: 980, arrivals="poisson").reasons == ()
    assert judged(noisy(1, 300), writes=lambda i: 970, arrivals="poisson").reasons != ()


def test_the_writer_of_readwhilewriting_has_a_rate_of_its_own() -> None:
    found = judged(noisy(1, 300), key="write_rate_ops_s", write_rate_ops_s=1000.0, rate_ops_s=None)
    assert (found.offered_ops_s, found.achieved_ops_s, found.reasons) == (1000, 1000, ())


def test_a_phase_without_a_write_is_not_kept() -> None:
    found = judged(lambda i: None, writes=lambda i: 0, not_started=60_000)
    assert (found.growth, found.worst_s) == (None, 60.0)
    assert found.reasons[0] == "0 operations/s were done of 1,000 offered"


def test_several_are_as_bad_as_their_worst() -> None:
    good, bad = judged(noisy(1, 300)), judged(noisy(1, 300), writes=lambda i: 900, not_started=6000)
    both = worst_of([good, bad, bad])
    assert both.reasons == bad.reasons
    assert (both.achieved_ops_s, both.backlog) == (900, 6000)
    assert MARGIN * 60_000 < 6000


def test_missing_samples_take_the_next_ones_latency() -> None:
    assert filled([None, 1.0, None, None, 4.0, None]).tolist() == [1, 1, 4, 4, 4, 4]
    assert filled([None, None]).size == 0


# ---------------------------------------------------------------- the steady part


def judged_end(burst: list[Row], steady: list[Row], not_started: float = 0, **limits: float) -> Judged:
    rows = [*burst, *steady]
    done = sum(row["writes"] for row in rows)
    ended = made_phase("write", "overwrite", 0.0, float(len(rows)), done, operations=done, not_started=not_started)
    return judge_phase(PHASE | {"until": "steady"}, ended, rows, Limits(**limits), steady=steady)


def test_only_the_steady_part_is_judged() -> None:
    slow = known_seconds(20, write_latency_max_us=9e6, writes=500.0)
    found = judged_end(slow, known_seconds(40), worst_s=0.01)
    assert (found.reasons, found.worst_s, found.achieved_ops_s) == ((), 4000e-6, 1000)
    fast = known_seconds(20, write_latency_max_us=10.0)
    assert judged_end(fast, known_seconds(40, writes=900.0)).reasons == ("900 operations/s were done of 1,000 offered",)
    assert judged_end(fast, known_seconds(40), not_started=500).reasons == (
        "500 operations were not started at the end",
    )
    assert judged_end([], known_seconds(60)).p99_s == 100e-6, "all of it is steady: the phase's own p99"


def test_a_steady_part_of_few_samples_is_not_taken_for_one_whose_waits_do_not_rise() -> None:
    rows = [second(i + 1.0, 995, write_latency_mean_us=300 + 5000 * i, write_latency_p50_us=1.0) for i in range(30)]
    rows = [row | {"write_latency_p99_us": 1.0, "write_latency_p99_9_us": 1.0} for row in rows]
    assert [each.split(":")[0] for each in judged_end(rows[:15], rows[15:]).reasons] == ["the backlog grew"]


def test_a_bound_says_what_it_is() -> None:
    found = judged_end(known_seconds(20), known_seconds(40), p99_s=800e-6)
    assert found.reasons == ("p99 of writes may have been 900 µs (limit 800 µs)",)


def test_arrivals_in_bursts_are_counted_from_where_the_steady_part_begins() -> None:
    bursts = PHASE | {"arrivals": "bursts", "burst_s": 2.0, "gap_s": 3.0, "gap_rate_ops_s": 100.0}
    rows = known_seconds(60)
    ended = made_phase("write", "overwrite", 0.0, 60.0, 60_000, operations=60_000)
    found = judge_phase(bursts, ended, rows, Limits(), steady=rows[2:])  # from the first gap on
    assert found.offered_ops_s == pytest.approx((12 * 2300 - 2000) / 58)


def test_a_steady_part_in_which_nothing_was_due_is_judged_with_what_came_before() -> None:
    bursts = PHASE | {"arrivals": "bursts", "burst_s": 2.0, "gap_s": 98.0}
    rows = [*known_seconds(2), *known_seconds(58, writes=0.0)]
    ended = made_phase("write", "overwrite", 0.0, 60.0, 2000, operations=2000)
    found = judge_phase(bursts, ended, rows, Limits(), steady=rows[30:])
    assert found.offered_ops_s == pytest.approx(2000 / 60)
    assert found.achieved_ops_s == pytest.approx(2000 / 60)


# ---------------------------------------------------------------- words


@pytest.mark.parametrize(
    ("text", "seconds"), [("500us", 5e-4), ("500µs", 5e-4), ("10ms", 0.01), ("1.5 s", 1.5), ("2min", 120), (" 3s ", 3)]
)
def test_times_are_read(text: str, seconds: float) -> None:
    assert parse_time(text, "--p99") == pytest.approx(seconds)


@pytest.mark.parametrize("text", ["", "10", "ms", "10 h", "-1ms", "1e3ms", "nan s", "0ms", "2000min", "10MS", "٣ms"])
def test_bad_times_are_refused_with_a_sentence(text: str) -> None:
    with pytest.raises(SpillwayError, match=r"^--p99 is "):
        parse_time(text, "--p99")


@pytest.mark.parametrize("text", ["", "fast", "0", "-5", "nan", "inf", "1e10", "10%"])
def test_bad_rates_are_refused_with_a_sentence(text: str) -> None:
    with pytest.raises(SpillwayError, match=r"^--from is .* which is not a rate"):
        parse_rate(text, "--from")


def test_times_and_rates_are_written_for_people() -> None:
    seconds = [3e-6, 850e-6, 0.9996e-3, 12.34e-3, 0.9996, 2.5, 1234.0]
    assert [time_words(each) for each in seconds] == ["3 µs", "850 µs", "1 ms", "12.3 ms", "1 s", "2.5 s", "1,234 s"]
    assert [rate_name(each) for each in (1000.0, 1e6, 0.5, 1234567.0)] == ["1000", "1000000", "0.5", "1234567"]


# ---------------------------------------------------------------- the command

TWO_ARMS = """
[[arms]]
name = "small values"
"load.value_bytes" = 100
[[arms]]
name = "large values"
"""


@pytest.fixture
def store(fake: Fake, monkeypatch: pytest.MonkeyPatch) -> Fake:
    """A store that does 9000 operations/s of 1024 bytes, and 40,000 of 100."""
    monkeypatch.setenv("FAKE_CAPACITY", json.dumps({"1024": 9000, "100": 40_000}))
    return fake


def rates_asked(store: Fake) -> list[float]:
    return [request["phases"][-1]["rate_ops_s"] for request in store.requests()]


def sustain(invoke: Invoke, plan: Path, out: Path, *words: str) -> Any:
    return invoke("sustain", plan, "--out", out, "--within", "10%", *words)


def test_the_command_finds_the_edge_of_each_arm(
    invoke: Invoke, store: Fake, plan_file: Path, tmp_path: Path, golden: Callable[[str, str], None]
) -> None:
    plan_file.write_text(PLAN + TWO_ARMS)
    out = tmp_path / "found"
    ended = sustain(invoke, plan_file, out, "--p99", "10ms", "--worst", "30ms")
    assert ended.code == 0, ended.err
    golden("sustain.txt", ended.out.replace(str(out), "runs/sustain-small"))
    golden("sustain.err.txt", ended.err)
    document = json.loads((out / "sustain.json").read_text())
    arms = document["arms"]
    assert list(arms) == ["small values", "large values"]
    assert arms["large values"]["kept_ops_s"] < 9000 <= arms["large values"]["not_kept_ops_s"] * 1.1
    assert arms["small values"]["kept_ops_s"] < 40_000 <= arms["small values"]["not_kept_ops_s"] * 1.1
    for name, arm in arms.items():
        assert arm["ended"]
        assert arm["not_kept_ops_s"] <= 1.1 * arm["kept_ops_s"]
        assert arm["why_not"]
        for each in arm["tries"]:
            rundir = out / each["directory"]
            assert (rundir / "report.html").is_file()
            again = load_plan(rundir / "plan.toml")
            assert [one.name for one in again.arms] == [name]
            assert again.arms[0].phases[-1]["rate_ops_s"] == each["rate_ops_s"]
            assert each["kept"] == (each["why"] is None)
            assert {"p99_s", "worst_s", "backlog", "achieved_ops_s", "offered_ops_s", "growth"} <= each.keys()


def test_what_was_tried_is_not_run_again(invoke: Invoke, store: Fake, plan_file: Path, tmp_path: Path) -> None:
    out = tmp_path / "found"
    first = sustain(invoke, plan_file, out, "--json")
    asked = rates_asked(store)
    assert sustain(invoke, plan_file, out, "--json").json()["arms"] == first.json()["arms"]
    assert rates_asked(store) == asked
    # Other limits are held against what is there: at 8000/s the p99 is 5.4 ms, and only rates below it are new.
    stricter = sustain(invoke, plan_file, out, "--json", "--p99", "5ms").json()["arms"]["small"]
    assert stricter["not_kept_ops_s"] <= 8000
    assert all(4000 < rate < 8000 for rate in rates_asked(store)[len(asked) :])
    # A try that was damaged, or of another plan, is run again.
    (out / "tries" / "1000-small" / "summary.json").write_text("{")
    count = len(rates_asked(store))
    sustain(invoke, plan_file, out)
    assert rates_asked(store)[count:] == [1000]
    sustain(invoke, plan_file, out, "--set", "load.num=9999", "--to", "2000")
    assert rates_asked(store)[count + 1 :] == [1000, 2000]


UNTIL = PLAN + 'until = "steady"\n[steady]\ntests = ["end"]\n'


def test_undecided_tries_are_reported_and_the_search_goes_on_above(
    invoke: Invoke, store: Fake, plan_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Low rates take longer to become steady: they are not kept, and do not end the search."""
    monkeypatch.setenv("FAKE_ENDS_ABOVE", "3000")
    plan_file.write_text(UNTIL)
    ended = sustain(invoke, plan_file, tmp_path / "found")
    assert ended.code == 0, ended.err
    arm = json.loads((tmp_path / "found" / "sustain.json").read_text())["arms"]["small"]
    first, second_try, third = sorted(arm["tries"], key=lambda each: each["rate_ops_s"])[:3]
    for low in (first, second_try):
        assert (low["kept"], low["not_told"]) == (False, True)
        assert "came to its limit" in low["why"]
    assert (third["rate_ops_s"], third["kept"], third["not_told"]) == (4000, True, False)
    assert 4000 <= arm["kept_ops_s"] < arm["not_kept_ops_s"] <= 1.1 * arm["kept_ops_s"]
    assert (arm["not_told_ops_s"], arm["why_not_told"]) == (None, None)
    assert "1,000/s not told: the phase" in ended.err
    assert "Standing of the kept rate" in ended.out


def test_no_rate_is_kept_where_no_try_becomes_steady(
    invoke: Invoke, store: Fake, plan_file: Path, tmp_path: Path
) -> None:
    plan_file.write_text(UNTIL)
    ended = sustain(invoke, plan_file, tmp_path / "found")
    assert ended.code == 1
    arm = json.loads((tmp_path / "found" / "sustain.json").read_text())["arms"]["small"]
    assert arm["kept_ops_s"] is None
    assert 8000 <= arm["not_told_ops_s"] < arm["not_kept_ops_s"] <= 1.1 * arm["not_told_ops_s"]
    assert "no rate was kept by a steady run: nothing speaks against" in ended.err.splitlines()[-1]
    assert "raise duration_s." in ended.err.splitlines()[-1]
    assert "Not told: nothing speaks against" in ended.out
    assert "Keeps" not in ended.out
    assert "Standing of the kept rate" not in ended.out


def test_the_highest_rate_may_be_undecided(invoke: Invoke, store: Fake, plan_file: Path, tmp_path: Path) -> None:
    plan_file.write_text(UNTIL)
    ended = sustain(invoke, plan_file, tmp_path / "found", "--to", "2000")
    assert ended.code == 1
    assert "more may be kept" not in ended.out


def test_all_kept_says_that_more_may_be(invoke: Invoke, store: Fake, plan_file: Path, tmp_path: Path) -> None:
    ended = sustain(invoke, plan_file, tmp_path / "found", "--to", "3000")
    assert ended.code == 0
    assert "Keeps 3,000 operations/s, without a limit on latency." in ended.out
    assert "more may be kept: raise --to" in ended.out
    assert rates_asked(store) == [1000, 2000, 3000]


def test_nothing_kept_says_what_stopped_it(invoke: Invoke, store: Fake, plan_file: Path, tmp_path: Path) -> None:
    plan_file.write_text(PLAN + TWO_ARMS)
    ended = sustain(invoke, plan_file, tmp_path / "found", "--from", "12000")
    assert ended.code == 1
    last = ended.err.splitlines()[-1]
    assert last.startswith(
        "spillway: large values: not even --from 12000 operations/s was kept: 9,000 operations/s were"
    )
    assert "Keeps none of the rates" in ended.out
    assert "small values: not even" not in ended.err, "the other arm is searched all the same"
    assert json.loads((tmp_path / "found" / "sustain.json").read_text())["arms"]["large values"]["kept_ops_s"] is None


def test_every_repetition_has_to_keep_the_rate(invoke: Invoke, store: Fake, plan_file: Path, tmp_path: Path) -> None:
    ended = sustain(invoke, plan_file, tmp_path / "found", "--to", "1000", "--set", "repetitions=3")
    assert ended.code == 0
    assert rates_asked(store) == [1000] * 3


def test_a_try_is_steady_where_each_repetition_was(
    invoke: Invoke, store: Fake, plan_file: Path, tmp_path: Path
) -> None:
    out, words = tmp_path / "found", ("--to", "1000", "--set", "repetitions=3")
    sustain(invoke, plan_file, out, *words)
    summary = out / "tries" / "1000-small" / "summary.json"
    document = json.loads(summary.read_text())

    def try_rate(*steady: bool) -> Any:
        figures = document["arms"]["small"]
        figures["steady"] = True  # of the typical one
        for each, is_steady in zip(figures["repetitions"], steady, strict=True):
            each["steady"] = is_steady
        summary.write_text(json.dumps(document))
        return sustain(invoke, plan_file, out, *words, "--json").json()["arms"]["small"]["tries"][0]

    one_was_not = try_rate(True, False, True)
    assert not one_was_not["steady"]
    assert one_was_not["standing"].endswith(" 2 of 3 repetitions were steady.")
    all_were = try_rate(True, True, True)
    assert all_were["steady"]
    assert "repetitions" not in all_were["standing"]


def test_unmeasured_phases_stay_as_they_are(invoke: Invoke, store: Fake, plan_file: Path, tmp_path: Path) -> None:
    load = '[[phases]]\nworkload = "fillseq"\nmeasured = false\nrate_ops_s = 77\n'
    wait = '[[phases]]\nworkload = "settle"\n'
    plan_file.write_text(PLAN.replace("[[phases]]", load + "[[phases]]") + wait)
    assert sustain(invoke, plan_file, tmp_path / "found", "--to", "1000").code == 0
    assert [each["rate_ops_s"] for each in store.requests()[0]["phases"]] == [77, 1000, None]


def test_a_run_that_fails_is_not_kept(invoke: Invoke, store: Fake, plan_file: Path, tmp_path: Path) -> None:
    store.behave("fails late")
    ended = sustain(invoke, plan_file, tmp_path / "found")
    assert ended.code == 1
    assert "the run failed: the drive is full: no space is left." in ended.err


@pytest.mark.parametrize(("mode", "code"), [("crashes late", 1), ("disk_full late", 2)])
def test_a_run_that_fails_by_itself_is_no_word_against_its_rate(
    invoke: Invoke, store: Fake, plan_file: Path, tmp_path: Path, mode: str, code: int
) -> None:
    out = tmp_path / "found"
    assert sustain(invoke, plan_file, out, "--to", "1000").code == 0
    store.behave(mode)
    ended = sustain(invoke, plan_file, out)
    assert ended.code == code
    assert "small at 2,000 operations/s failed, and not by a full drive" in ended.err
    assert "the same command goes on" in ended.err
    arm = json.loads((out / "sustain.json").read_text())["arms"]["small"]
    assert (arm["ended"], arm["not_kept_ops_s"], [each["rate_ops_s"] for each in arm["tries"]]) == (False, None, [1000])
    store.behave("ok")
    before = len(rates_asked(store))
    assert sustain(invoke, plan_file, out, "--to", "2000").code == 0
    assert rates_asked(store)[before:] == [2000]


READS = PLAN.replace("[[phases]]", '[[phases]]\nworkload = "fillseq"\nmeasured = false\n[[phases]]').replace(
    "fillrandom", "readrandom"
)


@pytest.mark.parametrize(
    ("text", "words", "said"),
    [
        (READS, (), "no measured phase writes at a rate; readrandom does not write"),
        (READS.replace("readrandom", "settle").replace("duration_s = 12\n", ""), (), "settle does not write"),
        (PLAN.replace("fillrandom", "fillseq"), (), "fillseq ends with its keys"),
        (PLAN.replace("duration_s = 12", "operations = 12"), (), "has no duration_s"),
        (UNTIL.replace("duration_s = 12", "operations = 12"), (), 'at which a try ends that until = "steady" does not'),
        (PLAN.replace("duration_s = 12", "duration_s = 1"), (), "has 10 samples, and it takes 26"),
        (PLAN.replace("duration_s = 12", "duration_s = 2.59"), (), "has 25 samples, and it takes 26"),
        (PLAN.replace("[engine", 'pacing = "off"\n[engine'), (), 'drive.pacing is "off"'),
        (PLAN + '[kept]\nto = "later"\n', (), "kept.to: each try starts where the plan does"),
        (PLAN + 'arrivals = "trace"\narrivals_file = "times"\n', (), 'arrivals = "trace" has its own times'),
        (PLAN, ("--from", "5000", "--to", "4000"), "--from 5000 is above --to 4000"),
        (PLAN, ("--p99", "10"), "--p99 is '10', which is not a time"),
        (PLAN, ("--worst", "-1s"), "--worst is '-1s', which is not a time"),
        (PLAN, ("--p99", ""), "--p99 is '', which is not a time"),
        (PLAN, ("--from", "some"), "--from is 'some', which is not a rate"),
        (PLAN, ("--within", "0"), "--within is '0'; it takes a share of at least 0.1 %"),
        (PLAN, ("--within", "near"), "--within is 'near', which is not a share"),
        (PLAN, ("--arm", "other"), "there is no arm 'other'"),
    ],
)
def test_what_cannot_be_searched_is_refused(
    invoke: Invoke, store: Fake, plan_file: Path, tmp_path: Path, text: str, words: tuple[str, ...], said: str
) -> None:
    plan_file.write_text(text)
    ended = invoke("sustain", plan_file, "--out", tmp_path / "found", *words)
    assert ended.code == 2, ended.out
    assert said in ended.err
    assert len(ended.err.splitlines()) == 1
    assert not (tmp_path / "found").exists()
    assert store.requests() == []


def test_a_refused_run_leaves_nothing(invoke: Invoke, store: Fake, plan_file: Path, tmp_path: Path) -> None:
    store.behave("bad_input")
    ended = sustain(invoke, plan_file, tmp_path / "found")
    assert (ended.code, "geometry.chanels" in ended.err) == (2, True)
    assert not (tmp_path / "found").exists()


def test_a_directory_of_something_else_is_refused(invoke: Invoke, store: Fake, plan_file: Path, tmp_path: Path) -> None:
    (tmp_path / "found").mkdir()
    (tmp_path / "found" / "thesis.tex").write_text("years")
    ended = sustain(invoke, plan_file, tmp_path / "found")
    assert (ended.code, "that is no search's" in ended.err) == (2, True)
    assert [path.name for path in (tmp_path / "found").iterdir()] == ["thesis.tex"]


def test_it_goes_on_where_it_was_interrupted(invoke: Invoke, store: Fake, plan_file: Path, tmp_path: Path) -> None:
    out = tmp_path / "found"
    assert sustain(invoke, plan_file, out, "--to", "2000").code == 0
    store.behave("endless")
    words = [str(plan_file), "--out", str(out), "--from", "2000", "--set", "phases.0.duration_s=12"]
    command = [sys.executable, "-m", "spillway.cli", "sustain", *words, "--to", "4000"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True)
    deadline = time.monotonic() + 100
    while not any(len(each.read_text().splitlines()) > 2 for each in out.glob("tries/.4000-*/arms/*/samples.csv")):
        assert time.monotonic() < deadline
        assert process.poll() is None, process.communicate()
        time.sleep(0.01)
    second = sustain(invoke, plan_file, out)
    assert (second.code, "a search is running in it" in second.err) == (2, True)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=100)
    assert process.returncode == 130
    assert "The same command goes on" in err.decode()
    document = json.loads((out / "sustain.json").read_text())["arms"]["small"]
    assert (document["ended"], [each["rate_ops_s"] for each in document["tries"]]) == (False, [2000])
    store.behave("ok")
    before = len(rates_asked(store))
    assert sustain(invoke, plan_file, out, "--to", "4000").code == 0
    assert rates_asked(store)[before:] == [4000]


@pytest.mark.reports
def test_a_ctrl_c_between_two_tries_names_the_directory(
    invoke: Invoke, store: Fake, plan_file: Path, tmp_path: Path, interrupted_report: Callable[[], None]
) -> None:
    interrupted_report()
    out = tmp_path / "found"
    ended = sustain(invoke, plan_file, out)
    assert ended.code == 130
    assert ended.err.endswith(f"ended by Ctrl-C. The same command goes on with what is in {out}.\n")
    arm = json.loads((out / "sustain.json").read_text())["arms"]["small"]
    assert (arm["ended"], [each["rate_ops_s"] for each in arm["tries"]]) == (False, [1000])


def test_an_arm_that_is_refused_leaves_the_tries_before_it(
    invoke: Invoke, store: Fake, plan_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.behave("bad_input")
    monkeypatch.setenv("FAKE_WHERE", '{"value_bytes": 1024}')
    plan_file.write_text(PLAN + TWO_ARMS)
    out = tmp_path / "found"
    ended = sustain(invoke, plan_file, out, "--to", "1000")
    assert (ended.code, ended.err.count("geometry.chanels")) == (2, 1)
    assert ended.err.endswith(f"Once that is mended, the same command goes on with what is in {out}.\n")
    assert [path.name for path in (out / "tries").iterdir()] == ["1000-small-values"]


def test_a_try_stays_until_another_replaces_it(
    invoke: Invoke, store: Fake, plan_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "found"
    assert sustain(invoke, plan_file, out, "--to", "2000").code == 0
    try_rate, summary = (out / "tries" / "1000-small" / name for name in ("plan.toml", "summary.json"))
    before = (try_rate.read_text(), summary.read_text())
    store.behave("bad_input")
    assert sustain(invoke, plan_file, out, "--set", "load.num=9999").code == 2
    assert (try_rate.read_text(), summary.read_text()) == before, "a plan that is refused costs nothing"
    store.behave("crashes late")
    assert sustain(invoke, plan_file, out, "--set", "load.num=9999").code == 1
    assert (try_rate.read_text(), summary.read_text()) == before, "nor does a run that fails"
    store.behave("ok")
    assert sustain(invoke, plan_file, out, "--set", "load.num=9999", "--to", "1000").code == 0
    assert "9999" in try_rate.read_text()
    assert sorted(path.name for path in (out / "tries").iterdir()) == ["1000-small", "2000-small"]


def test_the_search_of_another_plan_is_left_alone(invoke: Invoke, store: Fake, plan_file: Path, tmp_path: Path) -> None:
    out = tmp_path / "found"
    assert sustain(invoke, plan_file, out, "--to", "1000").code == 0
    before = (out / "sustain.json").read_text()
    plan_file.write_text(PLAN.replace('name = "small"', 'name = "other"'))
    ended = sustain(invoke, plan_file, out, "--to", "1000")
    assert (ended.code, "this is the search of the plan 'small'; name another --out" in ended.err) == (2, True)
    assert (out / "sustain.json").read_text() == before


YCSB = """
[ycsb]
recordcount = 100
[[phases]]
workload = "ycsb-load"
measured = false
[[phases]]
workload = "ycsb-run"
duration_s = 12
[phases.ycsb]
readproportion = {reads}
updateproportion = {updates}
"""


def test_a_long_reason_leaves_the_figures_whole(capsys: pytest.CaptureFixture[str]) -> None:
    why = "the run failed: " + "IO error: no space on the drive: 4096 bytes were asked for; " * 4
    failed = Try(64_000, None, (why,), "tries/64000-small", False)
    kept = Try(32_000, judged(noisy(1, 300)), (), "tries/32000-small", False)
    _print_arm(ArmResult("small", [failed, kept], kept, failed, ended=True), Limits())
    table = capsys.readouterr().out
    assert "…" not in table
    assert "32,000 1,000 100 µs 1 ms 0 no kept" in [" ".join(line.split()) for line in table.splitlines()]


def test_ycsb_is_searched_where_it_writes(invoke: Invoke, store: Fake, plan_file: Path, tmp_path: Path) -> None:
    head = PLAN.split("[load]")[0]
    plan_file.write_text(head + YCSB.format(reads=0.5, updates=0.5))
    assert sustain(invoke, plan_file, tmp_path / "mixed", "--to", "2000").code == 0
    assert rates_asked(store) == [1000, 2000]
    plan_file.write_text(head + YCSB.format(reads=1.0, updates=0.0))
    refused = sustain(invoke, plan_file, tmp_path / "reads", "--to", "2000")
    assert (refused.code, "ycsb-run does not write" in refused.err) == (2, True)


def test_points_of_a_sweep_are_searched_each_by_itself(
    invoke: Invoke, store: Fake, plan_file: Path, tmp_path: Path
) -> None:
    plan_file.write_text(PLAN + '\n[sweep]\n"load.value_bytes" = [100, 1024]\n')
    arms = sustain(invoke, plan_file, tmp_path / "found", "--json").json()["arms"]
    assert list(arms) == ["value_bytes 100", "value_bytes 1024"]
    assert arms["value_bytes 100"]["kept_ops_s"] > 4 * arms["value_bytes 1024"]["kept_ops_s"]


def test_a_try_from_another_kept_state_is_run_again(
    invoke: Invoke, store: Fake, plan_file: Path, tmp_path: Path
) -> None:
    state, summary = tmp_path / "loaded", tmp_path / "found" / "tries" / "1000-small" / "summary.json"
    state.mkdir()
    plan_file.write_text(PLAN + f'[kept]\ndirectory = "{tmp_path}"\nfrom = "loaded"\n')

    def kept(size: int) -> None:
        (state / "kept.json").write_text(json.dumps({"runs": 1, "bytes": size, "drive_state": {"held_bytes": size}}))

    def tries(size: int) -> int:
        kept(size)
        assert sustain(invoke, plan_file, tmp_path / "found", "--to", "1000").code == 0
        return len(rates_asked(store))

    assert tries(10) == 1
    # The fake does not say what a run started from.
    document = json.loads(summary.read_text())
    document["arms"]["small"]["kept"] = {"from": {"runs": 1, "bytes": 10, "drive": {"held_bytes": 10}}, "to": None}
    document["arms"]["small"]["kept"]["from"] |= {"path": str(state), "takes": "database", "databases": []}
    summary.write_text(json.dumps(document))
    assert tries(10) == 1
    assert tries(11) == 2


def test_the_rate_of_bursts_is_told_from_the_mean(invoke: Invoke, store: Fake, plan_file: Path, tmp_path: Path) -> None:
    plan_file.write_text(PLAN + 'rate_ops_s = 1\narrivals = "bursts"\nburst_s = 1\ngap_s = 2\n')
    ended = sustain(invoke, plan_file, tmp_path / "found", "--from", "3000", "--to", "3000", "--worst", "1s")
    assert "Keeps 3,000 operations/s in bursts, 1,000 on average with worst write up to 1 s." in ended.out
    assert store.requests()[0]["phases"][0]["arrivals"] == {"process": "bursts", "burst_s": 1, "gap_s": 2}
