"""Reversals of rank in words: made sweeps whose every rank can be worked out on paper."""

import math
from dataclasses import replace
from typing import Any

import pytest
from conftest import Fake, Invoke
from made_run import arm as made_arm
from made_run import run as made_run
from test_sweep import ARMS, SHORT, write

from spillway.compare.ranks import ONE_RUN, arm_pairs, ranks_in_words
from spillway.report.page import render
from spillway.rundir.directory import ArmRecord

Document = dict[str, Any]
DRIVES = [{"drive.preset": name} for name in ("A", "B", "C")]


def arm_at(of: str, point: Document, rates: list[float | None], *, steady: bool = True, **given: Any) -> ArmRecord:
    """An arm at a point with one repetition for each rate; None: it failed."""
    made = made_arm(f"{of} {point}", [1000.0])
    ends = [
        {
            "throughput_ops_s": rate or 0.0,
            "complete": rate is not None,
            "failure": None if rate is not None else "the drive is full.",
            "steady": steady,
        }
        for rate in rates
    ]
    figures = made.summary | {"of": of, "point": point, "repetitions": ends, "steady": steady} | given
    return replace(made, summary=figures)


def sweep_of(rates: dict[str, list[list[float | None]]], points: list[Document] = DRIVES) -> list[ArmRecord]:
    """For each arm its repetitions at each point, in the order in which a run has them."""
    return [arm_at(of, point, rates[of][i]) for i, point in enumerate(points) for of in rates]


def test_a_reversal_is_said_with_its_ratios() -> None:
    arms = sweep_of(
        {
            "RocksDB": [[1900.0, 1905.0, 1895.0], [800.0, 802.0, 798.0], [3000.0, 3001.0, 3002.0]],
            "WiredTiger": [[1000.0, 1002.0, 998.0], [1000.0, 1001.0, 999.0], [1000.0, 1002.0, 1001.0]],
        }
    )
    assert ranks_in_words(arms) == [
        "“RocksDB” is ahead of “WiredTiger” at A (× 1.90), C (× 3.00), behind at B (× 0.80) (preset)."
    ]
    assert [pair.winner for pair in arm_pairs(arms)] == ["RocksDB", "WiredTiger", "RocksDB"]


def test_a_difference_within_the_spread_is_none() -> None:
    """The second point is reversed by its means, and its repetitions vary by more than that."""
    arms = sweep_of({"a": [[190.0, 191.0, 189.0], [80.0, 140.0, 60.0]], "b": [[100.0, 101.0, 99.0]] * 2}, DRIVES[:2])
    assert ranks_in_words(arms) == [
        "No reversal of rank is shown over preset: “a” is ahead of “b” at 1 of 2 points (× 1.90)."
    ]


def test_ties_and_equal_figures() -> None:
    equal = sweep_of({"a": [[100.0, 100.0]] * 3, "b": [[100.0, 100.0]] * 3})
    assert ranks_in_words(equal) == ["No two arms are told apart by throughput at any point."]
    tied = sweep_of(
        {"a": [[200.0, 200.1], [100.0, 100.1], [50.0, 50.1]], "b": [[100.0, 100.1], [100.0, 100.1], [100.0, 100.1]]}
    )
    assert ranks_in_words(tied) == [
        "“a” is ahead of “b” at A (× 2.00), behind at C (× 0.50) (preset). Not told apart at B."
    ]


REVERSED: dict[str, list[list[float | None]]] = {
    "a": [[200.0, 201.0], [50.0, 50.1], [70.0, 70.1]],
    "b": [[100.0, 100.1], [100.0, 100.1], [100.0, 100.2]],
}
AHEAD_AND_BEHIND = "“a” is ahead of “b” at A (× 2.00), behind at B (× 0.50) (preset)."


def test_a_failed_run_and_a_missing_one_say_nothing_of_their_point() -> None:
    arms = sweep_of(REVERSED | {"b": [[100.0, 100.1], [100.0, 100.1], [None, None]]})
    assert ranks_in_words(arms) == [f"{AHEAD_AND_BEHIND} Nothing is said of C: “b” failed."]
    missing = sweep_of(REVERSED)[:-1]  # the run was ended before b's last point
    assert ranks_in_words(missing) == [f"{AHEAD_AND_BEHIND} Nothing is said of C: “b” was not run."]
    one_left = sweep_of(REVERSED | {"b": [[100.0, 100.1], [100.0, 100.1], [None, 100.0]]})
    (words,) = ranks_in_words(one_left)
    assert words.endswith("C: they have fewer than two turns in which both ran to their end.")


def test_turns_in_which_either_failed_are_left_out_of_both() -> None:
    arms = sweep_of({"a": [[None, 200.0, 201.0], [50.0, 50.1]], "b": [[1e6, 100.0, 100.1], [100.0, 100.1]]}, DRIVES[:2])
    assert ranks_in_words(arms) == [AHEAD_AND_BEHIND]


@pytest.mark.parametrize("nothing", [math.nan, math.inf, 0.0, -5.0])
def test_what_is_no_figure_ranks_nothing(nothing: float) -> None:
    arms = sweep_of(REVERSED | {"b": [[100.0, 100.1], [100.0, 100.1], [nothing, nothing]]})
    assert ranks_in_words(arms) == [f"{AHEAD_AND_BEHIND} Nothing is said of C: “b” has no whole run with a throughput."]


def test_a_figure_that_is_missing_or_no_number() -> None:
    for value in (None, "fast", True):
        arms = sweep_of(REVERSED)
        for end in arms[-1].summary["repetitions"]:
            end["throughput_ops_s"] = value
        assert "Nothing is said of C" in ranks_in_words(arms)[0]


def test_runs_that_are_not_steady_are_ranked_with_a_warning() -> None:
    arms = sweep_of(REVERSED)
    arms[3] = arm_at("b", DRIVES[1], [100.0, 100.1], steady=False)
    (words,) = ranks_in_words(arms)
    assert words.endswith("Not steady at B: there it is a rank of these measured phases, not of a steady state.")


def test_reversals_along_each_axis_with_the_others_at_one_value() -> None:
    points = [{"drive.preset": drive, "load.num": num} for drive in ("A", "B") for num in (1000, 2000)]
    rates = {"a": [[200.0, 201.0], [50.0, 50.1], [200.0, 201.0], [200.0, 201.0]], "b": [[100.0, 100.1]] * 4}
    assert ranks_in_words(sweep_of(rates, points)) == [  # type: ignore[arg-type]
        "At num 2,000, “a” is ahead of “b” at B (× 2.00), behind at A (× 0.50) (preset).",
        "At preset A, “a” is ahead of “b” at 1,000 (× 2.00), behind at 2,000 (× 0.50) (num).",
    ]


def test_a_rank_that_turns_round_only_across_two_axes() -> None:
    points = [{"drive.preset": drive, "load.num": num} for drive in ("A", "B") for num in (1000, 2000)]
    rates = {"a": [[200.0, 201.0], [None, None], [None, None], [50.0, 50.1]], "b": [[100.0, 100.1]] * 4}
    (words,) = ranks_in_words(sweep_of(rates, points))  # type: ignore[arg-type]
    assert words == (
        "“a” is ahead of “b” at 1 of 4 points and behind at 1, which differ in more than one of preset and num."
    )


def test_many_reversals_are_counted() -> None:
    names = ("a", "b", "c", "d")
    rates = {
        name: [[100.0 * (i + 1), 100.1 * (i + 1)], [100.0 * (9 - i), 100.1 * (9 - i)]] for i, name in enumerate(names)
    }
    said = ranks_in_words(sweep_of(rates, DRIVES[:2]))  # type: ignore[arg-type]
    assert len(said) == 5
    assert said[-1] == "And 2 more such reversals; the table has the figures."


def test_all_pairs_together_have_a_level_of_95_per_cent() -> None:
    """A pair that is told apart by itself, and is not among many that are equal."""
    lone = {"a": [[100.0, 105.0, 110.0]], "b": [[103.05, 106.59, 113.01]]}
    assert [pair.differs for pair in arm_pairs(sweep_of(lone, DRIVES[:1]))] == [True]  # type: ignore[arg-type]
    many = {name: rates * 3 for name, rates in lone.items()}
    many["a"] = [lone["a"][0], [100.0, 101.0, 99.0], [100.0, 102.0, 98.0]]
    many["b"] = [lone["b"][0], [101.0, 99.0, 100.0], [98.0, 100.0, 102.0]]
    assert [pair.differs for pair in arm_pairs(sweep_of(many))] == [False] * 3  # type: ignore[arg-type]


def single(of: str, point: Document, rate: float, *, noise: float = 0.01, samples: int = 100) -> ArmRecord:
    """One run, whose samples alternate about its rate."""
    signs = [1, -1, -1, 1, 1, 1, -1, -1, 1, -1]
    made = made_arm(f"{of} {point}", [rate * (1 + noise * signs[i % 10]) for i in range(samples)])
    return replace(made, summary=made.summary | {"of": of, "point": point, "throughput_ops_s": rate})


def test_one_run_each_is_ranked_by_samples_with_a_note() -> None:
    rates = {"A": (200.0, 100.0), "B": (50.0, 100.0)}
    arms = [single(of, {"d": d}, rate) for d, both in rates.items() for of, rate in zip("ab", both, strict=True)]
    assert ranks_in_words(arms) == [f"{AHEAD_AND_BEHIND.replace('(preset)', '(d)')} {ONE_RUN}"]
    near = [single(of, {"d": d}, 100.0, noise=0.5) for d in "AB" for of in "ab"]
    assert ranks_in_words(near) == ["No two arms are told apart by throughput at any point."]
    short = [single(of, {"d": d}, 100.0 * (1 + (of == "a")), samples=5) for d in "AB" for of in "ab"]
    assert ranks_in_words(short) == [
        "No two arms are told apart by throughput at any point: one run of each has too few independent blocks to say."
    ]
    broken = [single(of, {"d": d}, math.nan) for d in "AB" for of in "ab"]
    assert "No two arms are told apart" in ranks_in_words(broken)[0]


def test_without_anything_to_rank_there_is_no_sentence() -> None:
    assert ranks_in_words([]) == []
    assert ranks_in_words(sweep_of({"a": [[100.0, 101.0]] * 3})) == []  # one arm
    assert ranks_in_words([made_arm("a", [1.0]), made_arm("b", [2.0])]) == []  # no sweep
    assert ranks_in_words(sweep_of({"a": [[1.0, 1.0]], "b": [[2.0, 2.0]]}, DRIVES[:1])) == []  # one point


def test_the_report_says_it_at_its_top() -> None:
    page = render(made_run('summary = ""\n', sweep_of(REVERSED)))
    header = page[page.index("<header>") : page.index("</header>")]
    assert "“a” is ahead of “b” at A (× 2.00), behind at B (× 0.50), C (× 0.70) (preset)." in header
    alone = render(made_run('summary = ""\n', [made_arm("a", [1.0]), made_arm("b", [2.0])]))
    assert 'class="lead ranks"' not in alone


def test_the_terminal_says_it_behind_the_figures(fake: Fake, plan_file: Any, tmp_path: Any, invoke: Invoke) -> None:
    write(plan_file, SHORT + '\n[sweep]\n"load.value_bytes" = [16, 100]\n' + ARMS)
    ended = invoke("run", plan_file, "--out", tmp_path / "run", "--set", "repetitions=2")
    assert ended.code == 0
    assert "No two arms are told apart by throughput at any point" in ended.out  # the fake's arms are one arm
    assert "told apart" not in invoke("run", plan_file, "--arm", "One", "--out", tmp_path / "one").out
