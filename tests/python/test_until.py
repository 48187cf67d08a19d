"""Phases that go on until the run is steady, and how the operations of an open loop arrive."""

import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from conftest import Invoke, check_refused
from made_run import second

from spillway.errors import SpillwayError
from spillway.figures.parts import parts
from spillway.plan.arm import Arm
from spillway.plan.document import load_plan
from spillway.plan.keys import STEADY_TESTS
from spillway.run.until import UntilSteady, verdict_on
from spillway.rundir.samples import Row
from spillway.steady import CHECKS, LEAST_SAMPLES, Verdict

PLAN = """
name = "u"
[drive]
preset = "quickstart"
capacity = "64MiB"
pacing = "off"
[[phases]]
workload = "fillrandom"
measured = false
[[phases]]
name = "write"
workload = "overwrite"
duration_s = 600
until = "steady"
"""
FIRST, WRITE = 0, 1  # the phases' indices


def arm_of(tmp_path: Path, text: str = PLAN) -> Arm:
    path = tmp_path / "u.toml"
    path.write_text(text)
    return load_plan(path).arms[0]


def no_writes(text: str = PLAN) -> str:
    """The plan without the test of what was written, which these series would pass soon or never."""
    return text.replace("[drive]", '[steady]\ntests = ["cusum", "window", "drift", "end"]\n[drive]')


def noisy(seed: int, count: int, level: Callable[[int], float]) -> list[Row]:
    rng = random.Random(seed)
    return [second(i + 1.0, level(i) * rng.gauss(1, 0.02)) for i in range(count)]


def followed(arm: Arm, rows: list[Row]) -> tuple[int | None, Any]:
    """After how many samples the phase was told to end, and by which command."""
    seen: list[Row] = []
    until = UntilSteady(arm, seen)
    for row in rows:
        seen.append(row)
        if (command := until.answer({"event": "sample", "phase": row["phase"]})) is not None:
            return len(seen), command
    return None, None


def test_it_ends_the_phase_once_it_is_steady(tmp_path: Path) -> None:
    count, command = followed(arm_of(tmp_path, no_writes()), noisy(1, 400, lambda _: 1000))
    assert command == {"end_phase": WRITE}
    assert count is not None
    assert LEAST_SAMPLES <= count < 100


# 120 MB are written by the burst, and 2 MB a second after it; the capacity is 67 MB.
def test_a_burst_that_is_level_is_not_taken_for_the_steady_part(tmp_path: Path) -> None:
    rows = noisy(2, 600, lambda i: 3000 if i < 20 else 1000)
    count, _ = followed(arm_of(tmp_path), rows)
    assert count is not None
    assert count > 40, "201 MB are written after 60 s, and the steady part is at least half of the run"
    assert sum(row["host_bytes_written"] for row in rows[:count]) >= 3 * 2**26
    alone, _ = followed(arm_of(tmp_path, no_writes()), noisy(2, 600, lambda i: 3000 if i < 60 else 1000))
    assert alone == LEAST_SAMPLES, "who asks for less is told so early"


def test_a_falling_series_never_ends_its_phase(tmp_path: Path) -> None:
    assert followed(arm_of(tmp_path, no_writes()), noisy(3, 500, lambda i: 2000 * 0.995**i)) == (None, None)


def test_the_end_command_is_sent_once_and_only_for_its_own_phase(tmp_path: Path) -> None:
    arm = arm_of(tmp_path, no_writes())
    rows: list[Row] = []
    until = UntilSteady(arm, rows)
    told = []
    for row in noisy(4, 300, lambda _: 1000):
        rows.append(row)
        told.append(until.answer({"event": "sample", "phase": "write"}))
    assert [each for each in told if each] == [{"end_phase": WRITE}]
    other = UntilSteady(arm, rows)
    assert other.answer({"event": "sample", "phase": "fillrandom"}) is None
    assert other.answer({"event": "progress", "phase": "write"}) is None


def test_phases_without_until_get_no_command(tmp_path: Path) -> None:
    arm = arm_of(tmp_path, PLAN.replace('until = "steady"\n', ""))
    assert not UntilSteady(arm, []).is_requested
    assert "until" not in arm.request(tmp_path, 1)["phases"][WRITE]


# A limit that came first makes no figure steady, however the series looks at the end.
@pytest.mark.parametrize(
    ("level", "was"),
    [
        (lambda _: 1000.0, "steady only when it came to its limit"),
        (lambda i: 2000 * 0.99**i, "not steady when it came to its limit: throughput "),
    ],
    ids=["steady", "falls"],
)
def test_a_phase_that_came_to_its_limit_was_not_steady(tmp_path: Path, level: Callable[[int], float], was: str) -> None:
    rows = noisy(5, 100, level)
    verdict = verdict_on(arm_of(tmp_path), rows, [{"name": "write", "complete": True}], 1e12)
    assert not verdict.steady
    assert verdict.reason.startswith(f"the phase write was {was}")
    assert verdict.tests, "what the tests found is told all the same"


def test_the_piece_of_a_sample_behind_the_command_is_left_out(tmp_path: Path) -> None:
    arm = arm_of(tmp_path, no_writes())
    ended = [{"name": "write", "complete": True, "ended_by": "command"}]
    rows = noisy(6, 60, lambda _: 1000)
    assert verdict_on(arm, rows, ended, None).steady
    piece = second(60.1, 20, dt_s=0.1) | {"host_bytes_written": 9e9}
    assert verdict_on(arm, [*rows, piece], ended, None).steady
    assert not verdict_on(arm, [*rows, piece, piece], ended, None).steady, "only the last sample is a piece"


def test_a_verdict_rests_on_the_tests_that_are_chosen(tmp_path: Path) -> None:
    assert set(STEADY_TESTS) == set(CHECKS)
    writes = arm_of(tmp_path, PLAN.replace("[drive]", '[steady]\ntests = ["window", "writes"]\n[drive]'))
    rows = noisy(7, 60, lambda _: 1000)
    ended = [{"name": "write", "complete": True, "ended_by": "command"}]
    few = verdict_on(writes, rows, ended, 2 * 2**26)
    assert not few.steady
    assert "2.0 capacities" in few.reason
    enough = verdict_on(writes, rows, ended, 4 * 2**26)
    assert enough.steady
    assert {each.check for each in enough.tests} == set(CHECKS), "all are shown"


BAD = [
    (
        PLAN.replace('preset = "quickstart"\ncapacity = "64MiB"\npacing = "off"', 'kind = "directory"\npath = "."'),
        "asks for host writes of 3 capacities, and that of a directory",
    ),
    (PLAN.replace('until = "steady"', 'until = "soon"'), "until is 'soon'; it takes one of steady"),
    (PLAN.replace('until = "steady"', 'until = "steady"\nmeasured = false'), "until is for a phase that is measured"),
    (PLAN.replace("duration_s = 600\n", "").replace('"overwrite"', '"readrandom"'), "has no end"),
    (PLAN + '[[phases]]\nworkload = "settle"\nuntil = "steady"\n', "until belongs to phases that read or write"),
    (PLAN.replace("[drive]", '[steady]\ntests = ["cosum"]\n[drive]'), r"steady.tests is \['cosum'\]"),
    (PLAN.replace("[drive]", "[steady]\ntests = []\n[drive]"), r"steady.tests is \[\]"),
    (PLAN + 'arrivals = "poisson"\n', 'arrivals = "poisson" needs rate_ops_s'),
    (PLAN + 'arrivals = "burst"\n', "arrivals is 'burst'; it takes one of constant, poisson, bursts, trace"),
    (PLAN + 'arrivals = "bursts"\nrate_ops_s = 5\nburst_s = 1\n', 'arrivals = "bursts" needs gap_s'),
    (PLAN + 'arrivals = "trace"\n', 'arrivals = "trace" needs arrivals_file'),
    (PLAN + 'arrivals = "trace"\narrivals_file = "x"\nrate_ops_s = 1\n', "a trace has its own times"),
    (PLAN + "rate_ops_s = 5\nburst_s = 1\n", 'burst_s belongs to arrivals = "bursts"'),
    (PLAN + 'rate_ops_s = 5\narrivals_file = "x"\n', 'arrivals_file belongs to arrivals = "trace"'),
    (
        PLAN.replace("[[phases]]\nname", '[kept]\nfrom = "k"\n[[phases]]\nname')
        + '[[prepare]]\n"kept.to" = "k"\n[[prepare.phases]]\nworkload = "fillseq"\nuntil = "steady"\n',
        "a preparation is not measured; leave out `until`",
    ),
]


@pytest.mark.parametrize(("text", "why"), BAD)
def test_what_does_not_belong_together_is_refused(text: str, why: str, tmp_path: Path) -> None:
    with pytest.raises(SpillwayError, match=why):
        arm_of(tmp_path, text)


def test_arrivals_reach_the_request_as_a_table(tmp_path: Path) -> None:
    bursts = PLAN + 'rate_ops_s = 5\narrivals = "bursts"\nburst_s = 1\ngap_s = 2.5\n'
    phase = arm_of(tmp_path, bursts).request(tmp_path, 1)["phases"][WRITE]
    assert phase["arrivals"] == {"process": "bursts", "burst_s": 1.0, "gap_s": 2.5}
    assert phase["rate_ops_s"] == 5
    assert not {"burst_s", "gap_s", "until"} & set(phase)
    trace = PLAN + 'arrivals = "trace"\narrivals_file = "times.txt"\n'
    phase = arm_of(tmp_path, trace).request(tmp_path, 1)["phases"][WRITE]
    assert phase["arrivals"] == {"process": "trace", "file": str(tmp_path / "times.txt")}


@pytest.mark.native
def test_a_real_run_ends_when_it_is_steady(invoke: Invoke, tmp_path: Path) -> None:
    plan = tmp_path / "u.toml"
    paced = PLAN.replace('name = "u"', 'name = "u"\nsample_interval_ms = 20').replace(
        "[[phases]]\nwork", "[load]\nnum = 20000\nvalue_bytes = 400\n[[phases]]\nwork", 1
    )
    plan.write_text(paced + 'rate_ops_s = 5000\n[[phases]]\nname = "after"\nworkload = "overwrite"\noperations = 100\n')
    ended = invoke("run", plan, "--out", tmp_path / "run", "--set", 'steady.tests=["window"]')
    assert ended.code == 0, ended.err
    phases = json.loads((tmp_path / "run" / "arms" / "u" / "phases.json").read_text())
    assert [phase.get("ended_by") for phase in phases] == [None, "command", None]
    assert phases[WRITE]["duration_s"] < 300
    assert phases[2]["operations"] == 100
    whole = json.loads((tmp_path / "run" / "summary.json").read_text())
    assert whole["complete"]


@pytest.mark.native
@pytest.mark.parametrize("text", ["\ufeff0.1\n0.2\n", "\ufeff# seconds\r\n0.1\r\n0.2", "0.1\n0.2"])
def test_a_trace_is_read_as_other_programs_write_it(invoke: Invoke, tmp_path: Path, text: str) -> None:
    """With a byte order mark, with CRLF, without a last newline."""
    plan = tmp_path / "u.toml"
    small = PLAN.replace("[[phases]]\nwork", "[load]\nnum = 20000\nvalue_bytes = 400\n[[phases]]\nwork", 1)
    plan.write_text(small + 'arrivals = "trace"\narrivals_file = "times.txt"\n')
    (tmp_path / "times.txt").write_bytes(text.encode())
    ended = invoke("run", plan, "--out", tmp_path / "run")
    assert ended.code == 0, ended.err
    assert json.loads((tmp_path / "run" / "arms" / "u" / "phases.json").read_text())[WRITE]["operations"] == 2


@pytest.mark.reports
@pytest.mark.native
def test_a_trace_that_cannot_be_read_names_the_line(invoke: Invoke, tmp_path: Path) -> None:
    plan = tmp_path / "u.toml"
    plan.write_text(PLAN + 'arrivals = "trace"\narrivals_file = "times.txt"\n')
    for text, why in [
        ("0.1\n0.2\nx\n", "line 3: not a time in seconds"),
        ("0.2\n\n# a remark\n0.1\n", "line 4: earlier than the time before it; sort the file"),
        ("# nothing\n", "has no arrival times"),
        ("-1\n", "line 1: not a time"),
        ("nan\n", "line 1: not a time"),
        (None, "cannot be read"),
    ]:
        (tmp_path / "times.txt").unlink(missing_ok=True)
        if text is not None:
            (tmp_path / "times.txt").write_text(text)
        refused = invoke("run", plan, "--out", tmp_path / "run")
        assert refused.code == 2
        assert why in refused.err
        check_refused(tmp_path / "run", why)


def test_the_burst_and_the_steady_part_add_up(tmp_path: Path) -> None:
    rows = [second(i + 1.0, 3000 if i < 10 else 1000, write_latency_max_us=float(i)) for i in range(100)]
    idle = second(101.0, 0, measured=0.0)
    found = parts([*rows, idle], Verdict(True, 10.0, "steady"))
    assert found is not None
    assert (found["burst"]["seconds"], found["burst"]["throughput_ops_s"]) == (10, 3000)
    assert (found["steady"]["seconds"], found["steady"]["throughput_ops_s"]) == (90, 1000)
    for key in ("user_bytes_written", "host_bytes_written", "nand_bytes_programmed"):
        of_samples = {"user_bytes_written": 1000, "host_bytes_written": 2000, "nand_bytes_programmed": 3000}[key]
        assert found["burst"][key] + found["steady"][key] == of_samples * sum(row["writes"] for row in rows)
    assert (found["steady"]["wa_app"], found["steady"]["wa_device"], found["steady"]["wa_total"]) == (2, 1.5, 3)
    assert (found["burst"]["write_latency_max_us"], found["steady"]["write_latency_max_us"]) == (9, 99)
    whole = parts(rows, Verdict(True, 0.0, "steady"))
    assert whole is not None
    assert (whole["burst"], whole["steady"]["seconds"]) == (None, 100)
    assert parts(rows, Verdict(False, None, "no")) is None
    silent = [row | {"host_bytes_written": None} for row in rows]
    unknown = parts(silent, Verdict(True, 10.0, "steady"))
    assert unknown is not None
    assert (unknown["steady"]["wa_app"], unknown["steady"]["host_bytes_written"]) == (None, None)
