"""A run of several arms and seeds that fails: which of them, why, and what is kept of the engine's own log."""

import json
from pathlib import Path
from typing import Any

import pytest
from conftest import PLAN, Fake, Invoke

from spillway.report.words import headline
from spillway.rundir.directory import read_run

ARMS = '\n[[arms]]\nname = "One"\n[[arms]]\nname = "Two, lazy"\n"load.num" = 7\n'
LINES = [f"2026/01/02-03:04:{n % 60:02} {n} a line of the engine's own" for n in range(3000)]  # 150 kB
SAID = "a background job of RocksDB failed; its LOG in the database says why."


@pytest.fixture
def breaks(fake: Fake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Lets the engine fail in the runs with this load or seed."""

    def where(log: str = "\n".join(LINES) + "\n", **values: int) -> None:
        fake.behave("breaks")
        monkeypatch.setenv("FAKE_WHERE", json.dumps(values))
        if log:
            (tmp_path / "log").write_text(log)
            monkeypatch.setenv("FAKE_ENGINE_LOG", str(tmp_path / "log"))
        else:
            monkeypatch.delenv("FAKE_ENGINE_LOG", raising=False)

    return where


def test_a_failure_names_its_arm_and_seed_and_keeps_the_end_of_the_engines_log(
    breaks: Any, plan_file: Path, tmp_path: Path, invoke: Invoke
) -> None:
    plan_file.write_text(f"seeds = [4, 9]\n{PLAN}{ARMS}")
    breaks(num=7, seed=9)
    out = tmp_path / "run"
    ended = invoke("run", plan_file, "--out", out)
    assert (ended.code, ended.err.count("\n")) == (2, 1)
    why = f"“Two, lazy”, seed 9: {SAID} The end of the engine's log is arms/two-lazy-r2/engine.log."
    assert why in ended.err
    run = read_run(out)
    assert run.manifest["failure"] == why
    assert headline(run, {}).startswith(f"This run failed: {why.rstrip('.')}")
    kept = (out / "arms" / "two-lazy-r2" / "engine.log").read_text()
    assert len(kept) <= 64 * 1024 < len(kept) + len(LINES[0]) + 1
    assert kept.splitlines() == LINES[-len(kept.splitlines()) :], "its last lines, each of them whole"
    assert [len(arm.repetitions) for arm in run.arms] == [2, 2], "what was finished is kept"
    finished = [each["complete"] for arm in run.arms for each in arm.summary["repetitions"]]
    assert finished == [True, True, True, False]
    assert [path.parent.name for path in out.rglob("engine.log")] == ["two-lazy-r2"], "of no run that was finished"


def test_a_suite_names_the_arm_and_seed_of_a_failure(breaks: Any, suite: Path, tmp_path: Path, invoke: Invoke) -> None:
    (suite / "b.toml").write_text(f"seeds = [4, 9]\n{(suite / 'b.toml').read_text()}")
    breaks(seed=9)
    ended = invoke("suite", suite, "--out", tmp_path / "out", "--only", "b")
    assert ended.code == 1
    told = [line for line in ended.err.splitlines() if SAID in line]
    assert len(told) == 2, "when it happens, and at the end"
    assert all(", seed 9: " in line and "-r2/engine.log." in line for line in told), told


def test_a_log_that_tells_of_a_full_drive_is_said_to(
    breaks: Any, plan_file: Path, tmp_path: Path, invoke: Invoke
) -> None:
    plan_file.write_text(PLAN + ARMS)
    breaks(log="IO error: No space left on device: no space on the drive: 4096 bytes are needed\n", num=7)
    ended = invoke("run", plan_file, "--out", tmp_path / "run")
    assert "arms/two-lazy/engine.log, which tells of no space on the drive." in ended.err


def test_without_a_log_the_failure_is_what_the_engine_said(
    breaks: Any, plan_file: Path, tmp_path: Path, invoke: Invoke
) -> None:
    plan_file.write_text(PLAN + ARMS)
    breaks(log="", num=7)
    ended = invoke("run", plan_file, "--out", tmp_path / "run")
    assert ended.code == 2
    assert "“Two, lazy”, seed 1: a background job" in ended.err
    assert "engine.log" not in ended.err
    assert list((tmp_path / "run").rglob("engine.log")) == []


def test_a_plan_of_one_run_has_nothing_to_name(breaks: Any, plan_file: Path, tmp_path: Path, invoke: Invoke) -> None:
    breaks()
    ended = invoke("run", plan_file, "--out", tmp_path / "run")
    assert f"spillway: {SAID} The end of the engine's log is arms/small/engine.log." in ended.err


def test_the_point_of_a_sweep_that_failed_has_its_seed(
    breaks: Any, plan_file: Path, tmp_path: Path, invoke: Invoke
) -> None:
    plan_file.write_text(f"seeds = [4, 9]\n{PLAN}\n[sweep]\nload.num = [5, 7]\n")
    breaks(num=7, seed=9)
    ended = invoke("run", plan_file, "--out", tmp_path / "run")
    assert f"num 7, seed 9, failed: {SAID}" in ended.err
    breaks(num=7)
    ended = invoke("run", plan_file, "--out", tmp_path / "other")
    assert f"2 of 4 runs failed; the first, num 7, seed 4: {SAID}" in ended.err
