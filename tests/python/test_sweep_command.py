"""`spillway sweep` as a process, with cells as processes: what it prints, how it ends, and what signals leave."""

import csv
import importlib.util
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from conftest import Fake, Invoke
from swept import AXIS, VIRTUAL

ENDLESS = VIRTUAL.replace("duration_s = 1", "duration_s = 300")  # a minute of the fake's, when it is told so

TWO = AXIS.replace(", 1024", "")


@pytest.fixture
def swept_plan(plan_file: Path) -> Path:
    plan_file.write_text(VIRTUAL + TWO)
    return plan_file


def wait_for(what: Callable[[], Any]) -> Any:
    until_s = time.monotonic() + 60
    while not (found := what()):
        assert time.monotonic() < until_s, "it does not come"
        time.sleep(0.02)
    return found


def start(plan: Path, out: Path, *words: str) -> "subprocess.Popen[str]":
    command = [sys.executable, "-m", "spillway.cli", "sweep", str(plan), "--out", str(out), "--no-report", *words]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True)


def rows(out: Path) -> list[dict[str, str]]:
    with (out / "cells.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def done(out: Path) -> list[Path]:
    return list((out / "cells").glob("*"))


def processes_of(out: Path) -> list[int]:
    """The processes of cells of a sweep, by their command lines."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = path.read_bytes().split(b"\0")
        except OSError:
            continue
        if b"spillway.sweep.worker" in words and any(word.startswith(bytes(out)) for word in words):
            found.append(int(path.parent.name))
    return found


def test_it_prints_a_table_names_what_failed_and_goes_on_with_it(
    fake: Fake, swept_plan: Path, tmp_path: Path, invoke: Invoke
) -> None:
    out = tmp_path / "out"
    fake.monkeypatch.setenv("FAKE_WHERE", '{"value_bytes": 100}')
    fake.behave("crashes")
    listed = invoke("sweep", swept_plan, "--out", out, "--list")
    assert [line.split()[-2:] for line in listed.out.splitlines()[1:]] == [["not", "run"]] * 2
    assert not out.exists()
    ended = invoke("sweep", swept_plan, "--out", out, "--jobs", 2, "--retries", 1)
    assert (ended.code, len(fake.requests())) == (1, 3)
    lines = ended.out.splitlines()
    assert lines[0].split()[:4] == ["cell", "state", "operations/s", "p99"]
    assert [line.split()[:3] for line in lines[1:3]] == [
        ["value_bytes", "16", "done"],
        ["value_bytes", "100", "failed"],
    ]
    assert "2 cells run, 0 done before" in lines
    assert f"Table      {out / 'cells.csv'}" in lines
    assert "value_bytes 100: failed, and is tried again" in ended.err
    assert ended.err.splitlines()[-1].startswith("spillway: value_bytes 100: spillway-native run ended with exit code")
    fake.behave("ok")
    again = invoke("sweep", swept_plan, "--out", out, "--json")
    assert (again.code, again.json()["complete"], len(fake.requests())) == (0, True, 4)
    assert [each["attempts"] for each in again.json()["cells"]] == [0, 1]


def only(found: set[int]) -> int | None:
    """The only one; None where there are none yet, or one that is about to end."""
    return found.pop() if len(found) == 1 else None


@pytest.mark.parametrize("number", [signal.SIGINT, pytest.param(signal.SIGTERM, marks=pytest.mark.long)])
def test_a_signal_ends_the_cells_under_way_and_keeps_what_is_done(
    fake: Fake, swept_plan: Path, tmp_path: Path, number: signal.Signals
) -> None:
    out = tmp_path / "out"
    fake.monkeypatch.setenv("FAKE_WHERE", '{"value_bytes": 100}')
    fake.behave("endless")
    swept_plan.write_text(ENDLESS + TWO)
    command = start(swept_plan, out, "--jobs", "2")
    wait_for(lambda: len(done(out)) == 1 and only(set(processes_of(out))))
    command.send_signal(number)
    said, complaints = command.communicate(timeout=60)
    assert command.returncode == 130, complaints
    assert "1 cells run, 0 done before, 1 not run" in said
    assert [row["state"] for row in rows(out)] == ["done", "not run"]
    assert processes_of(out) == []
    assert {each.name for each in out.iterdir()} == {".lock", "cells", "cells.csv", "sweep.json"}
    assert list(tmp_path.glob("**/.run.partial-*")) == []


def test_what_is_killed_ends_with_all_that_it_has_started(fake: Fake, swept_plan: Path, tmp_path: Path) -> None:
    """A worker that is killed is replaced. A sweep that is killed takes its cells along; the same command goes on with
    them, and removes what the kill has left."""
    out = tmp_path / "out"
    fake.monkeypatch.setenv("FAKE_WHERE", '{"value_bytes": 100}')
    fake.behave("endless")
    swept_plan.write_text(ENDLESS + TWO)
    command = start(swept_plan, out, "--retries", "1")
    first = wait_for(lambda: len(done(out)) == 1 and only(set(processes_of(out))))
    os.kill(first, signal.SIGKILL)
    second = wait_for(lambda: only(set(processes_of(out)) - {first}))
    assert command.poll() is None
    command.kill()
    _, complaints = command.communicate()
    assert "value_bytes 100: failed, and is tried again: its worker died: its process was ended by signal SIGKILL" in (
        complaints
    )
    wait_for(lambda: second not in processes_of(out))
    fake.behave("ok")
    again = start(swept_plan, out)
    _, complaints = again.communicate(timeout=60)
    assert again.returncode == 0, complaints
    assert [row["attempts"] for row in rows(out)] == ["0", "1"]
    assert not (out / "work").exists()


KILLED = """
import os, pathlib, signal, sys
left, real = int(sys.argv.pop(1)), pathlib.Path.rename
def rename(path, target):
    global left
    left -= 1
    if left == 0:
        os.kill(os.getpid(), signal.SIGKILL)
    return real(path, target)
pathlib.Path.rename = rename
from spillway.cli import main
main()
"""


@pytest.mark.parametrize("at", [2, *(pytest.param(at, marks=pytest.mark.long) for at in (1, 3, 5, 8, 13, 21, 34))])
def test_a_sweep_that_is_killed_at_any_step_goes_on(fake: Fake, swept_plan: Path, tmp_path: Path, at: int) -> None:
    """Whatever it puts in its place is whole or not there."""
    out = tmp_path / "out"
    words = ["sweep", str(swept_plan), "--out", str(out), "--no-report", "--jobs", "1"]
    killed = subprocess.run(
        [sys.executable, "-c", KILLED, str(at), *words], capture_output=True, text=True, check=False
    )
    assert killed.returncode in (-signal.SIGKILL, 0)
    for file in (*out.glob("*.json"), *out.glob("cells/*/*.json")):
        json.loads(file.read_text())
    again = start(swept_plan, out)
    _, complaints = again.communicate(timeout=60)
    assert again.returncode == 0, complaints
    assert [row["state"] for row in rows(out)] == ["done", "done"]
    assert len(done(out)) == 2
    assert {each.name for each in out.iterdir()} == {".lock", "cells", "cells.csv", "run", "sweep.json"}
    assert len(fake.requests()) <= 3, "but for the one that was under way nothing runs twice"


BAD = [
    (("--on", "nowhere"), "--on is 'nowhere'; it takes one of local, slurm, ray, ray:HOST:PORT, submitit-local."),
    (("--on", "ray:"), "--on is 'ray:'; it takes one of"),
    (("--on", "slurm"), "--on slurm: this machine has no Slurm: "),
    (
        ("--slurm", "partition=a"),
        "--slurm partition=a is of --on slurm, and this is --on local: leave one of them out.",
    ),
    (("--cores", "4000"), "--cores 4000: this machine has "),
    (("--set", "kept.to=a"), "kept.to saves what an arm leaves, and cells run in any order"),
]


@pytest.mark.parametrize(("words", "says"), BAD, ids=[" ".join(words) for words, _ in BAD])
def test_bad_input_is_one_sentence(
    fake: Fake, swept_plan: Path, tmp_path: Path, invoke: Invoke, words: tuple[str, ...], says: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.setenv("PATH", str(tmp_path))
    ended = invoke("sweep", swept_plan, "--out", tmp_path / "out", *words)
    assert (ended.code, ended.out, ended.err.count("\n")) == (2, "", 1)
    assert says in ended.err
    assert ended.err.rstrip().endswith(".")
    assert not (tmp_path / "out" / "cells").exists()
    assert fake.requests() == []


@pytest.mark.parametrize(("where", "package"), [("ray", "ray"), ("slurm", "submitit"), ("submitit-local", "submitit")])
def test_a_package_that_is_not_installed_is_named(
    fake: Fake, swept_plan: Path, tmp_path: Path, invoke: Invoke, where: str, package: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    find = importlib.util.find_spec
    monkeypatch.setattr("importlib.util.find_spec", lambda name, *rest: None if name == package else find(name, *rest))
    ended = invoke("sweep", swept_plan, "--out", tmp_path / "out", "--on", where)
    assert (ended.code, ended.err.count("\n")) == (2, 1)
    extra = {"ray": "ray", "submitit": "slurm"}[package]
    assert f"--on {where} needs " in ended.err
    assert f"which is not installed: `pip install 'spillway[{extra}]'`." in ended.err


@pytest.mark.parametrize(("where", "package"), [("ray", "ray"), ("slurm", "submitit"), ("submitit-local", "submitit")])
def test_a_package_that_is_broken_is_named(
    fake: Fake, swept_plan: Path, tmp_path: Path, invoke: Invoke, where: str, package: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / f"{package}.py").write_text("raise ImportError('libfoo.so.1: no such file\\nand more')")
    monkeypatch.syspath_prepend(tmp_path / "broken")
    for name in [name for name in sys.modules if name.partition(".")[0] == package]:
        monkeypatch.delitem(sys.modules, name)
    ended = invoke("sweep", swept_plan, "--out", tmp_path / "out", "--on", where)
    assert (ended.code, ended.err.count("\n")) == (2, 1)
    assert "which cannot be imported: libfoo.so.1: no such file; `pip install" in ended.err
    assert not (tmp_path / "out").exists() and fake.requests() == []


def test_a_plan_that_is_refused_leaves_nothing(fake: Fake, swept_plan: Path, tmp_path: Path, invoke: Invoke) -> None:
    swept_plan.write_text(VIRTUAL + AXIS.replace("value_bytes", "valu_bytes"))
    ended = invoke("sweep", swept_plan, "--out", tmp_path / "out")
    assert (ended.code, ended.err.count("\n")) == (2, 1)
    assert "did you mean 'load.value_bytes'" in ended.err
    assert not (tmp_path / "out").exists()


def test_an_engine_that_refuses_every_cell_ends_with_2(
    fake: Fake, swept_plan: Path, tmp_path: Path, invoke: Invoke
) -> None:
    fake.behave("bad_input")
    swept_plan.write_text(VIRTUAL)
    ended = invoke("sweep", swept_plan, "--out", tmp_path / "out")
    assert ended.code == 2
    assert ended.err.count("geometry.chanels is not a key") == 2  # when it happens, and at the end
    assert json.loads((tmp_path / "out/sweep.json").read_text())["complete"] is False
    assert not (tmp_path / "out" / "run").exists()
