"""Sweeps of a buffer pool: the arithmetic on made-up runs, and what is refused before anything is run."""

import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from conftest import Invoke

from spillway.bufferpool import page as bufferpool_page
from spillway.bufferpool import sweep as bufferpool
from spillway.bufferpool import tuned as bufferpool_tuned
from spillway.bufferpool import words as bufferpool_words
from spillway.bufferpool.choice import chosen_write_back
from spillway.bufferpool.pool import Workload, WriteBack, request
from spillway.bufferpool.sweep import Sweep
from spillway.errors import SpillwayError
from spillway.profile.document import UNKNOWN, Estimate, Pio
from spillway.profile.saturation import saturation_of_profile
from spillway.profile.target import Target

DRIVE = Pio(alpha=Estimate(2.8, 2.7, 2.9), k_r=Estimate(80, 64, 96), k_w=Estimate(8.2, 8, 10))
NS = (1, 2, 3, 4, 6, 8, 10, 12, 16, 24, 32)


def ideal(n: int, k: int = 8, read_us: float = 10.0, write_us: float = 28.0, wait: float = 0.0) -> float:
    """Microseconds of a read and a write where k writes at once take as long as one; ``wait`` for each beyond k."""
    return read_us + math.ceil(n / k) * write_us / n + wait * max(0, n - k)


def run(
    n: int, seed: int, cost_us: float, read_us: float = 10.0, writers: str = "queue", way: str = ""
) -> dict[str, Any]:
    pages = 1000
    return {
        "writers": writers,
        "write_back": n,
        "tuned": way,
        "seed": seed,
        "operations": 2 * pages,
        "writes": pages,
        "seconds": pages * cost_us / 1e6,
        "operations_per_s": 2e6 / cost_us * (1 + 0.001 * seed),
        "hits": pages,
        "misses": pages,
        "pages_read": pages,
        "pages_written": pages,
        "pages_prefetched": 0,
        "write_batches": pages // n,
        "read_us": read_us,
        "write_us": cost_us - read_us,
        "latency_mean_us": cost_us,
        "latency_p99_us": cost_us * n,
        "miss_latency_mean_us": cost_us,
        **{f"hand_off_{name}": 1000 if writers == "threads" else None for name in bufferpool.HAND_OFF},
    }


def swept(
    wait: float = 0.0,
    drive: Pio = DRIVE,
    workload: Workload | None = None,
    seeds: int = 3,
    threads_us: float | None = None,
) -> Sweep:
    """``threads_us``: what each thread costs, of a pool that hands its pages to threads beside one that does not."""
    rows = [run(n, seed, ideal(n, wait=wait)) for seed in range(1, seeds + 1) for n in NS]
    if threads_us is not None:
        costs = {n: ideal(n) + (threads_us if n > 1 else 0) for n in NS}
        rows += [run(n, seed, costs[n], writers="threads") for seed in range(1, seeds + 1) for n in NS]
    conditions = {
        "command": ["spillway", "bufferpool"],
        "started": "2026-01-01T00:00:00+00:00",
        "time": "virtual",
        "remarks": ["scaled"],
        "pages": 100_000,
        "operations": 2000,
        "repeats": seeds,
    }
    target = Target("simulated", "preset:made-up")
    return bufferpool._evaluated(target, workload or Workload(), drive, rows, conditions)


def test_the_ideal_drive_gives_the_formula_and_its_peak() -> None:
    found = swept()
    by_n = {step.write_back: step for step in found.steps}
    # Half the ios are reads, and a write alone costs 2.8: the published P5 and the pool's own are the same.
    assert found.own_read_share == 0.5
    assert found.own_cost_ratio == pytest.approx(2.8)
    for n in (1, 2, 4, 8):
        assert by_n[n].speed_up.value == pytest.approx(by_n[n].formula_own_costs)
        assert by_n[n].formula == pytest.approx(by_n[n].formula_own_costs)
    # k_w as it was measured is a little above 8, and so is the formula's last step.
    assert by_n[8].speed_up.value == pytest.approx(1.9 / (0.5 + 0.5 * 2.8 / 8))
    assert by_n[32].formula == pytest.approx(1.9 / (0.5 + 0.5 * 2.8 / 8.2))
    assert found.at_k_w is by_n[8]
    assert found.steps_from_k_w == 0
    # Batches of 16, 24 and 32 are whole rounds of 8 and as fast, those of 10 and 12 are slower.
    assert by_n[10].speed_up.value < by_n[8].speed_up.value
    assert found.growth_past_k_w == pytest.approx(0, abs=1e-9)


def test_a_curve_that_creeps_up_has_its_knee_where_doubling_buys_less_than_a_twentieth() -> None:
    # 10 us of reads, and for each batch 20 us and 5 us a write: cost(n) = 15 + 20 / n.
    rate = {n: 1e6 / (10 + 5 + 20 / n) for n in NS}
    # cost(n) < 1.05 cost(2 n) where 20 / n - 21 / (2 n) < 0.75, from n = 12.67 on.
    assert bufferpool._levels_off(rate) == 16
    assert bufferpool._levels_off({1: 1.0, 2: 1.04, 4: 1.2, 8: 1.21}) == 4, "from there on, not only there"
    assert bufferpool._levels_off({1: 1.0, 2: 1.5, 4: 1.2, 8: 1.1}) == 2, "a curve that falls has it at its peak"
    assert bufferpool._levels_off({1: 1.0, 2: 1.06, 3: 1.2, 4: 1.3}) is None, "it still grows at the end"


def test_a_curve_that_falls_beyond_k_w_is_reported_as_falling() -> None:
    found = swept(wait=0.5)
    assert found.largest.write_back == 8
    assert found.growth_past_k_w is not None
    assert found.growth_past_k_w < -0.1
    assert "none to be had" in bufferpool_words.verdict(found)


def test_a_knee_far_from_k_w_is_reported_in_steps() -> None:
    found = swept(drive=Pio(DRIVE.alpha, DRIVE.k_r, Estimate(24, 20, 28)))
    assert found.steps_from_k_w == NS.index(24) - NS.index(8)
    assert "4 steps from the drive's k_w of 24.0" in bufferpool_words.verdict(found)


def test_intervals_are_of_the_ratios_on_one_trace() -> None:
    # The seeds' rates differ by a constant factor, and so not in their ratios.
    step = swept().steps[5]
    assert step.speed_up.high - step.speed_up.low < 1e-9
    assert step.operations_per_s.high - step.operations_per_s.low > 1
    assert math.isnan(swept(seeds=1).steps[5].speed_up.low)


def test_runs_that_differ_have_no_knee() -> None:
    rows = [run(n, seed, ideal(n) * (1 + 0.3 * (seed % 2) * (n > 1))) for seed in (1, 2) for n in NS]
    found = bufferpool._evaluated(Target("simulated", "x"), Workload(), DRIVE, rows, {})
    assert "no knee is told from them; give more --repeats" in bufferpool_words.verdict(found)


def test_each_kind_of_writers_is_compared_with_its_own_start() -> None:
    found = swept(threads_us=2.0)
    (threads,) = found.of_other_writers
    assert (found.writers, threads.writers) == ("queue", "threads")
    assert (found.steps[5].hand_off_us, threads.steps[5].hand_off_us) == (None, 2.0)
    assert threads.at_k_w is not None
    assert threads.at_k_w.speed_up.value == pytest.approx(38 / (10 + 3.5 + 2))
    assert len(found.rows) == 2 * 3 * len(NS)
    (sentence,) = bufferpool_words.others_in_words(found)
    assert sentence.startswith("Written back by a waiting thread for each page it levels off at n_w = 8: 2.45")
    content = bufferpool_words.document(found)
    assert [each["writers"] for each in content["beside"]] == ["threads"]
    page = bufferpool_page.render(found)
    for text in ("measured, from one queue", "measured, by a waiting thread", "Written back by a waiting thread for"):
        assert text in page, text


def test_the_knee_of_writing_alone_is_that_of_its_batches() -> None:
    # 28 us for up to eight writes at once.
    assert swept().batch_knee == 8


def test_without_a_known_k_w_the_verdict_omits_it() -> None:
    found = swept(drive=Pio(UNKNOWN, UNKNOWN, UNKNOWN))
    assert (found.at_k_w, found.steps_from_k_w, found.growth_past_k_w) == (None, None, None)
    assert all(math.isnan(step.formula) for step in found.steps)
    assert "k_w is not known" in bufferpool_words.verdict(found)
    assert bufferpool_words.document(found)["steps"][3]["formula"] is None
    assert "–" in bufferpool_words.table(found)[3]
    assert bufferpool_page.render(found).startswith("<!DOCTYPE html>")


def test_prefetch_is_in_the_formula() -> None:
    """P7: reads too are had several at once."""
    step = swept(workload=Workload(prefetch=3)).steps[-1]
    assert step.formula == pytest.approx(1.9 / (0.5 / 4 + 0.5 * 2.8 / 8.2))


def test_the_table_marks_k_w_the_knee_and_the_largest(golden: Any) -> None:
    found = swept(wait=0.5)
    lines = [" | ".join(row) for row in [bufferpool_words.HEADER, *bufferpool_words.table(found)]]
    golden("bufferpool_table.txt", "\n".join([*lines, bufferpool_words.verdict(found)]))


def test_the_report_holds_the_curve_and_the_formula() -> None:
    page = bufferpool_page.render(swept())
    for text in ("What concurrency buys", "P5, as published", "the pool&#39;s own costs", "k_w, knee", "Fig 10"):
        assert text in page, text
    assert "http://" not in page.split("</style>")[0]


def test_a_row_for_every_run() -> None:
    found = swept()
    lines = bufferpool_words.to_csv(found.rows).splitlines()
    assert len(lines) == 1 + 3 * len(NS)
    assert lines[0].startswith("writers,write_back,tuned,seed,operations,")
    json.dumps(bufferpool_words.document(found), allow_nan=False)


@pytest.mark.parametrize(
    ("k_w", "pool_pages", "top"),
    [(8.2, 4096, 32), (1.0, 4096, 10), (40.0, 4096, 128), (8.2, 12, 12), (90.0, 4096, 256)],
)
def test_a_sweep_goes_past_three_times_k_w(k_w: float, pool_pages: int, top: int) -> None:
    drive = Pio(DRIVE.alpha, DRIVE.k_r, Estimate(k_w, k_w, k_w))
    grid = bufferpool._grid(drive, Workload(pool_pages=pool_pages), ())
    assert grid[0] == 1
    assert grid[-1] == top


def test_prefetched_pages_take_the_room_of_written_ones() -> None:
    for write_back, prefetch in ((1, 0), (2, 1), (4, 3), (8, 3)):
        asked = request({}, Workload(prefetch=3), WriteBack(write_back), 1, None)
        assert asked["pool"]["prefetch"] == prefetch
        assert asked["pool"]["tune"] is None


def test_a_pool_that_tunes_itself_prefetches_all_the_same() -> None:
    asked = request({}, Workload(prefetch=3), WriteBack(1, 64), 1, None)["pool"]
    assert (asked["prefetch"], asked["write_back"], asked["tune"]) == (3, 4, {"most": 64})


def test_n_w_from_a_profile_is_of_its_k_w_and_of_the_pools_size() -> None:
    def chosen(k_w: float, pool_pages: int = 4096) -> WriteBack | None:
        drive = Pio(DRIVE.alpha, DRIVE.k_r, Estimate(k_w, k_w, k_w))
        return bufferpool_tuned.write_back_of(drive, Workload(pool_pages=pool_pages))

    factor = bufferpool_tuned.BATCHES
    assert chosen(8.2) == WriteBack(math.ceil(factor * 8.2))
    assert chosen(8.2, pool_pages=20) == WriteBack(5), "no more than a quarter of the pool"
    assert chosen(8.2, pool_pages=2) == WriteBack(1)
    assert chosen(1000) == WriteBack(256)
    assert bufferpool_tuned.write_back_of(Pio(UNKNOWN, UNKNOWN, UNKNOWN), Workload()) is None
    assert list(bufferpool_tuned.ways_of(Pio(UNKNOWN, UNKNOWN, UNKNOWN), Workload())) == ["auto"]


def test_pools_that_choose_n_w_are_held_against_the_best_fixed_one() -> None:
    rows = [run(n, seed, ideal(n)) for seed in (1, 2, 3) for n in NS]
    rows += [run(8, seed, ideal(8) / 0.96, way="profile") for seed in (1, 2, 3)]
    rows += [run(6 + seed, seed, ideal(8) / 0.98, way="auto") for seed in (1, 2, 3)]
    rows += [run(n, seed, ideal(n) + 1, writers="threads") for seed in (1, 2, 3) for n in NS]
    found = bufferpool._evaluated(Target("simulated", "x"), Workload(), DRIVE, rows, {})
    plain = bufferpool._evaluated(Target("simulated", "x"), Workload(), DRIVE, [r for r in rows if not r["tuned"]], {})
    assert [step.write_back for step in found.steps] == list(NS)
    assert found.knee == plain.knee, "tuned runs are on no curve"
    by_profile, auto = found.tuned
    assert (by_profile.way, auto.way) == ("profile", "auto")
    assert by_profile.of_best.value == pytest.approx(0.96)
    assert auto.of_best.value == pytest.approx(0.98)
    assert auto.write_back == 8
    assert found.of_other_writers[0].tuned == ()
    first, second = bufferpool_words.tuned_in_words(found)
    assert first.startswith(
        "From the drive's k_w a pool that writes back from one queue chooses n_w = 8 and reaches 0.960"
    )
    assert second.endswith("of the rate of the best fixed one, n_w = 8.")
    assert [each["way"] for each in bufferpool_words.document(found)["tuned"]] == ["profile", "auto"]
    conditions: dict[str, Any] = {"command": [], "started": "2026-01-01T00:00", "time": "virtual", "remarks": []}
    conditions |= {"pages": 9, "operations": 9, "repeats": 3}
    assert "While it runs a pool" in bufferpool_page.render(replace(found, conditions=conditions))


@pytest.mark.parametrize("words", ["0", "-1", "8.5", "autto", "", "²"])
def test_a_write_back_that_is_none_is_refused(words: str) -> None:
    with pytest.raises(SpillwayError, match="it takes a number of pages, profile or auto"):
        chosen_write_back(words, Target("simulated", "x"), Workload(), 1, None)


BAD = [
    (("--target", "preset:mqsim-defalt"), "did you mean 'mqsim-default'"),
    (("--target", "no/such/place"), "no such file or directory"),
    (("--target", "preset:mqsim-default", "--sweep", "--write-back", "4"), "give one of them"),
    (("--target", "preset:mqsim-default", "--trace", "no/such/trace"), "--trace no/such/trace: there is no such file"),
    (("--target", "preset:mqsim-default", "--prefetch", "4", "--write-back", "4"), "--prefetch is 4"),
    (("--target", "preset:mqsim-default", "--prefetch", "4096"), "--pool-pages 4096"),
    (("--target", "preset:mqsim-default", "--read-fraction", "2x"), "--read-fraction"),
    (("--target", "preset:mqsim-default", "--page-bytes", "big"), "--page-bytes"),
    (("--target", "preset:mqsim-default", "--policy", "fifo"), "--policy"),
    (("--target", "preset:mqsim-default", "--writers", "thread"), "--writers"),
    (("--target", "preset:mqsim-default", "--writers", "queue", "--writers", "threads"), "only --sweep compares"),
    (("--target", "preset:mqsim-default", "--destroy-data"), "--destroy-data is for files"),
    (("--target", "preset:mqsim-default", "--write-back", "many"), "--write-back is 'many': it takes a number"),
    (("--target", "preset:mqsim-default", "--tuned"), "--tuned is for --sweep"),
    (("--sweep",), "--target"),
]


@pytest.mark.parametrize(("words", "says"), BAD, ids=lambda value: " ".join(value) if isinstance(value, tuple) else "")
def test_bad_input_is_one_sentence(words: tuple[str, ...], says: str, invoke: Invoke) -> None:
    ended = invoke("bufferpool", *words)
    assert (ended.code, ended.out) == (2, "")
    assert says in ended.err
    assert len(ended.err.strip().splitlines()) == 1


def test_a_profile_without_writes_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SpillwayError, match="there is no such profile"):
        saturation_of_profile(tmp_path / "none", 4096)
