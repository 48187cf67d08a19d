"""Two runs to one place, and what dead ones have left on the way there."""

import itertools
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from conftest import Fake, Invoke

from spillway import owner
from spillway.errors import SpillwayError
from spillway.stage import staged, sweep_data

TOKEN = "spillway-0123456789ab"


@contextmanager
def another(out: Path) -> Iterator["subprocess.Popen[str]"]:
    """A process that is on its way to ``out`` until its standard input is closed."""
    code = "import sys, pathlib; from spillway.stage import staged\n"
    code += (
        "with staged(pathlib.Path(sys.argv[1])) as at: (at / 'made').touch(); print(at, flush=True); sys.stdin.read()"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", code, str(out)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdin is not None and process.stdout is not None
    try:
        process.stdout.readline()
        yield process
    finally:
        process.stdin.close()
        process.wait(timeout=60)
        process.stdout.close()


def test_the_second_of_two_runs_to_one_place_is_refused_at_once(
    fake: Fake, plan_file: Path, tmp_path: Path, invoke: Invoke
) -> None:
    out = tmp_path / "run"
    with another(out):
        ended = invoke("run", plan_file, "--out", out)
        assert (ended.code, ended.err.count("\n")) == (2, 1)
        assert "another run is on its way to it" in ended.err
        assert fake.requests() == []
    assert [path.name for path in out.iterdir()] == ["made"], "the first is not touched"
    assert sorted(path.name for path in tmp_path.iterdir() if "run" in path.name) == ["run"]


def wait_for(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline, "it did not come"
        time.sleep(0.01)


def abandoned(*directories: Path, alter: str = "") -> int:
    """Makes directories as a process does that is killed at once; its number. ``alter`` changes the marks."""
    code = (
        "import json, os, pathlib, signal, sys; from spillway import owner\n"
        "for path in map(pathlib.Path, sys.argv[2:]):\n"
        "    path.mkdir(); owner.claim(path); mark = path / owner.MARK\n"
        "    said = json.loads(mark.read_text()); exec(sys.argv[1]); mark.write_text(json.dumps(said))\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    process = subprocess.Popen([sys.executable, "-c", code, alter or "pass", *map(str, directories)])
    assert process.wait(timeout=60) == -signal.SIGKILL
    return process.pid


def test_what_killed_runs_have_left_beside_it_is_gone_with_its_data(
    fake: Fake, plan_file: Path, tmp_path: Path, invoke: Invoke
) -> None:
    """Of runs to other places too, since the next one of a plan has another name."""
    stages = [tmp_path / f".{name}.partial-1" for name in ("run", "other")]
    data = [tmp_path / "far" / TOKEN, tmp_path / "far" / "spillway-abcdefabcdef"]
    (tmp_path / "far").mkdir()
    abandoned(*stages, *data)
    for stage, its in zip(stages, data, strict=True):
        (stage / "data_directory").write_text(f"{its}\n")
    ended = invoke("run", plan_file, "--out", tmp_path / "run")
    assert ended.code == 0
    assert not any(path.exists() for path in (*stages, *data))
    assert ended.err.count("\n") == 1
    assert ended.err.startswith("spillway: removed what killed runs have left: ")
    assert all(str(path) in ended.err for path in (*stages, *data))
    assert invoke("run", plan_file, "--out", tmp_path / "again").err == ""


def test_engines_files_on_a_plain_directory_are_gone_whose_run_went_to_another_place(
    fake: Fake, plan_file: Path, tmp_path: Path, invoke: Invoke
) -> None:
    place = tmp_path / "disk"
    place.mkdir()
    abandoned(place / TOKEN)
    on = ("--set", "drive.kind=directory", "--set", f"drive.path={place}", "--set", "drive.preset=")
    ended = invoke("run", plan_file, "--out", tmp_path / "run", *on)
    assert (ended.code, list(place.iterdir())) == (0, [])
    assert ended.err == f"spillway: removed what killed runs have left: {place / TOKEN}.\n"


# What a mark says of its process, and whether it is known to have ended.
MARKS = {
    "another start: the number came again": ("said |= {'pid': os.getppid()}", True),
    "alive": ("said |= {'pid': os.getppid(), 'started': owner._start_of(os.getppid())}", False),
    "an earlier boot of this machine": ("said |= {'boot': 'b', 'machine': 'ours'}", True),
    "an earlier boot of another host": ("said |= {'boot': 'b', 'machine': 'ours', 'host': 'h'}", False),
    "an earlier boot of another machine": ("said |= {'boot': 'b', 'machine': 'theirs'}", False),
    "an earlier boot, of whichever machine": ("said |= {'boot': 'b', 'machine': ''}", False),
    "another machine, this boot's name unknown": ("said |= {'boot': ''}", False),
    "another namespace": ("said |= {'pid_namespace': 'n'}", True),
    "another namespace, where nothing is locked": ("said |= {'pid_namespace': 'n', 'locked': False}", False),
    "another version": ("said |= {'spillway_owner': 2}", False),
    "no mark of ours": ("said = ['precious']", False),
    "more than we know": ("said |= {'more': 1}", False),
}


@pytest.mark.parametrize("mark", MARKS)
def test_only_what_is_known_to_be_left_is_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mark: str) -> None:
    alter, is_swept = MARKS[mark]
    texts = owner._text
    monkeypatch.setattr(owner, "_text", lambda path: "ours" if path == "/etc/machine-id" else texts(path))
    stage, data = tmp_path / ".other.partial-1", tmp_path / TOKEN
    abandoned(stage, data, alter=alter)
    with staged(tmp_path / "run"):
        sweep_data(tmp_path)
        assert stage.exists() is data.exists() is not is_swept


@pytest.mark.parametrize("kind", ["empty", "full", "link", "file", "mark is a directory"])
def test_what_only_has_such_a_name_is_left_alone(tmp_path: Path, kind: str) -> None:
    for path in (tmp_path / ".other.partial-1", tmp_path / TOKEN):
        if kind == "link":
            abandoned(tmp_path / f"left-by-{path.name}")
            path.symlink_to(tmp_path / f"left-by-{path.name}")
        elif kind == "file":
            path.write_text("precious")
        else:
            path.mkdir()
            if kind == "full":
                (path / "precious").touch()
            if kind == "mark is a directory":
                (path / owner.MARK).mkdir()
    before = sorted(tmp_path.rglob("*"))
    with staged(tmp_path / "run"):
        sweep_data(tmp_path)
    (tmp_path / "run").rmdir()
    assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.parametrize("noted", ["precious", "spillway-build", "link", "relative", "nothing", "unmarked"])
def test_a_note_of_what_is_no_runs_removes_nothing_but_the_stage(tmp_path: Path, noted: str) -> None:
    names = {"spillway-build": "spillway-build", "unmarked": "spillway-aaaaaaaaaaaa"}
    precious = tmp_path / names.get(noted, "precious")
    precious.mkdir()
    (precious / "file").touch()
    (tmp_path / TOKEN).symlink_to(precious)
    text = {"link": str(tmp_path / TOKEN), "relative": f"../{TOKEN}", "nothing": "\x00"}.get(noted, str(precious))
    stage = tmp_path / ".run.partial-1"
    abandoned(stage)
    (stage / "data_directory").write_text(text)
    with staged(tmp_path / "run"):
        assert not stage.exists()
    assert (precious / "file").exists() and (tmp_path / TOKEN).is_symlink()


@pytest.mark.parametrize("moment", ["stage", "data", "begun", "measured"])
def test_a_killed_run_leaves_nothing_to_the_next_one(
    fake: Fake, plan_file: Path, tmp_path: Path, invoke: Invoke, moment: str
) -> None:
    """However far it was; and a run beside it goes on."""
    fake.behave("endless")
    place = tmp_path / "disk"
    place.mkdir()
    on = ("--set", "drive.kind=directory", "--set", f"drive.path={place}", "--set", "drive.preset=")

    def is_at(moment: str, name: str) -> bool:
        samples = list(tmp_path.glob(f".{name}.partial-*/arms/small/samples.csv"))
        return {
            "stage": lambda: bool(list(tmp_path.glob(f".{name}.partial-*/{owner.MARK}"))),
            "data": lambda: len(list(place.glob(f"spillway-*/{owner.MARK}"))) == 2,
            "begun": lambda: bool(samples),
            "measured": lambda: bool(samples) and len(samples[0].read_text().splitlines()) > 3,
        }[moment]()

    words = [sys.executable, "-m", "spillway.cli", "run", str(plan_file), *on]
    words += ["--set", "phases.0.duration_s=100000", "--out"]
    beside = subprocess.Popen([*words, str(tmp_path / "beside")], stdout=subprocess.DEVNULL)
    wait_for(lambda: is_at("measured", "beside"))
    of_it = sorted([*place.iterdir(), *tmp_path.glob(".beside.partial-*")])
    killed = subprocess.Popen([*words, str(tmp_path / "run")], stdout=subprocess.DEVNULL)
    wait_for(lambda: is_at(moment, "run"))
    killed.kill()
    killed.wait()
    fake.behave("ok")
    try:
        for number in itertools.count():  # the killed run's native process may live on for a moment
            assert invoke("run", plan_file, *on, "--out", tmp_path / f"next-{number}").code == 0
            if sorted([*place.iterdir(), *tmp_path.glob(".*.partial-*")]) == of_it:
                break
            assert number < 50
            time.sleep(0.1)
    finally:
        beside.send_signal(signal.SIGINT)
        assert beside.wait(timeout=60) == 130
    assert list(place.iterdir()) == list(tmp_path.glob(".*.partial-*")) == []


def test_what_was_made_is_kept_where_something_else_came_to_its_place(tmp_path: Path) -> None:
    out = tmp_path / "run"
    with pytest.raises(SpillwayError, match=r"something was put there .* is in .*run-2") as refused:  # noqa: SIM117
        with staged(out) as stage:
            (stage / "made").touch()
            out.mkdir()
            (out / "precious").touch()
    assert refused.value.exit_code == 2
    assert (tmp_path / "run-2/made").exists() and (out / "precious").exists()
    assert not stage.exists()
