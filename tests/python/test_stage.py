"""Two runs to one place, and what dead ones have left on the way there."""

import errno
import itertools
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from conftest import Fake, Invoke

from spillway.errors import SpillwayError
from spillway.rundir import owner
from spillway.rundir.stage import remove_leftover_data, remove_leftovers, staged

TOKEN = "spillway-0123456789ab"


@contextmanager
def another(out: Path) -> Iterator["subprocess.Popen[str]"]:
    """A process that is on its way to ``out`` until its standard input is closed."""
    code = "import sys, pathlib; from spillway.rundir.stage import staged\n"
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
        "import json, os, pathlib, signal, sys; from spillway.rundir import owner\n"
        "for path in map(pathlib.Path, sys.argv[2:]):\n"
        "    path.mkdir(); owner.claim(path); mark = path / owner.MARK\n"
        "    said = json.loads(mark.read_text()); exec(sys.argv[1]); mark.write_text(json.dumps(said))\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    process = subprocess.Popen([sys.executable, "-c", code, alter or "pass", *map(str, directories)])
    assert process.wait(timeout=60) == -signal.SIGKILL
    return process.pid


def test_leftovers_of_killed_runs_are_removed_with_their_data(
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
    "an earlier boot, where nothing is locked": ("said |= {'boot': 'b', 'machine': 'ours', 'locked': False}", False),
    "a start that is not known": ("said |= {'started': 0}", True),
    "a start that is not known, where nothing is locked": ("said |= {'started': 0, 'locked': False}", False),
    "of another directory": ("said |= {'inode': said['inode'] + 1}", False),
    "of another device": ("said |= {'device': said['device'] + 1}", False),
    "of no directory": ("del said['inode']", False),
    "another version": ("said |= {'spillway_owner': 3}", False),
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
        remove_leftover_data(tmp_path)
        assert stage.exists() is data.exists() is not is_swept


def test_a_process_that_nobody_has_waited_for_has_ended(tmp_path: Path) -> None:
    """As in a container whose first process asks for none of its children."""
    stage = tmp_path / ".other.partial-1"
    code = "import pathlib, sys; from spillway.rundir import owner\n"
    code += "at = pathlib.Path(sys.argv[1]); at.mkdir(); held = owner.claim(at); print(flush=True); sys.stdin.read()"
    words = [sys.executable, "-c", code, str(stage)]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        assert owner.state_of(stage) == "in use"
        process.kill()
        process.stdout.read()  # its end
        wait_for(lambda: ") Z " in Path(f"/proc/{process.pid}/stat").read_text())
        assert owner.remove_abandoned(stage) == "removed"


BEGUN = f"{owner.MARK}.partial"


@pytest.mark.parametrize("inside", [[], [BEGUN], ["precious"], [BEGUN, "precious"]])
def test_a_run_may_be_killed_before_its_engines_files_have_a_mark(tmp_path: Path, inside: list[str]) -> None:
    """Where its stage says that they lie: a directory that is empty but for the mark's beginning."""
    stage, data = tmp_path / ".other.partial-1", tmp_path / TOKEN
    abandoned(stage)
    data.mkdir()
    (stage / "data_directory").write_text(f"{data}\n")
    for name in inside:
        (data / name).touch()
    assert remove_leftovers(stage) == ([stage] if "precious" in inside else [stage, data])
    assert {path.name for path in tmp_path.rglob("*")} == ({TOKEN, *inside} if "precious" in inside else set())


def test_a_copy_of_what_was_left_is_its_users(tmp_path: Path) -> None:
    stage, data = tmp_path / ".run.partial-1", tmp_path / TOKEN
    copies = tmp_path / ".saved-copy.partial-12850", tmp_path / "spillway-aaaaaaaaaaaa"
    abandoned(stage, data)
    for path, copy in zip((stage, data), copies, strict=True):
        (path / "precious").touch()
        shutil.copytree(path, copy)
    with staged(tmp_path / "run"):
        remove_leftover_data(tmp_path)
    assert not stage.exists() and not data.exists()
    assert all((copy / "precious").exists() and (copy / owner.MARK).exists() for copy in copies)


def test_a_stage_of_somebody_else_by_the_same_number_is_left_alone(tmp_path: Path) -> None:
    stage = tmp_path / f".run.partial-{os.getpid()}"
    stage.mkdir()
    (stage / "precious").touch()
    with pytest.raises(SpillwayError, match="name another --out"), staged(tmp_path / "run"):
        pass
    assert (stage / "precious").exists()


def left_with_data(tmp_path: Path) -> tuple[Path, Path]:
    """A stage, and a data directory elsewhere with several files."""
    stage, data = tmp_path / ".other.partial-1", tmp_path / "far" / TOKEN
    data.parent.mkdir()
    abandoned(stage, data)
    (stage / "data_directory").write_text(f"{data}\n")
    for number in range(12):
        (data / f"precious-{number}").touch()
    (data / "database").mkdir()
    (data / "database" / "precious").touch()
    return stage, data


def test_what_cannot_be_removed_is_not_said_to_be_and_is_found_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """As of a file that is immutable."""
    stage, data = left_with_data(tmp_path)
    unlink = os.unlink

    def refuse(path: Any, **given: Any) -> None:
        if Path(path).name == "precious":
            raise PermissionError(errno.EPERM, os.strerror(errno.EPERM))
        unlink(path, **given)

    with monkeypatch.context() as patched:
        patched.setattr(os, "unlink", refuse)
        with staged(tmp_path / "run"):
            remove_leftover_data(data.parent)
    assert caplog.text == ""
    assert (data / owner.MARK).exists() and stage.exists()
    with staged(tmp_path / "next"):
        assert not data.exists() and not stage.exists()
    assert str(data) in caplog.text and str(stage) in caplog.text


def test_a_directory_that_cannot_be_removed_has_its_mark(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    abandoned(tmp_path / TOKEN)

    def refuse(path: Any, **given: Any) -> None:
        raise PermissionError(errno.EPERM, os.strerror(errno.EPERM))

    with monkeypatch.context() as patched:
        patched.setattr(os, "rmdir", refuse)
        assert owner.remove_abandoned(tmp_path / TOKEN) == "left behind"
    assert owner.remove_abandoned(tmp_path / TOKEN) == "removed"


def test_a_sweep_that_is_cut_short_leaves_what_it_has_not_removed_with_its_mark(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stage, data = left_with_data(tmp_path)
    unlink, left = os.unlink, 0

    def cut_short(path: Any, **given: Any) -> None:
        nonlocal left
        left -= 1
        if left < 0:
            raise KeyboardInterrupt
        unlink(path, **given)

    monkeypatch.setattr(os, "unlink", cut_short)
    for count in itertools.count():
        left = 1
        with suppress(KeyboardInterrupt):
            remove_leftovers(stage)
        if not data.exists():
            break
        assert (data / owner.MARK).exists()
        assert count < 50


@pytest.mark.parametrize(
    "kind",
    ["empty", "full", "link", "file", "mark is a directory", "mark is a pipe", "mark without end", "mark is too large"],
)
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
            if kind == "mark is a pipe":
                os.mkfifo(path / owner.MARK)
            if kind in ("mark without end", "mark is too large"):
                (path / owner.MARK).write_text("[" * (50_000 if kind == "mark without end" else 200_000))
    before = sorted(tmp_path.rglob("*"))
    with staged(tmp_path / "run"):
        remove_leftover_data(tmp_path)
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


@pytest.mark.parametrize(
    "moment",
    ["stage", *(pytest.param(step, marks=pytest.mark.long) for step in ("data", "begun", "measured"))],
)
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


def is_disposable(out: Path) -> bool:
    return {path.name for path in out.iterdir()} == {"refused"}


def refused(out: Path) -> Path:
    out.mkdir()
    (out / "refused").touch()
    return out


def names(directory: Path) -> list[str]:
    return sorted(path.name for path in directory.iterdir())


def test_a_disposable_directory_stays_until_it_is_replaced(tmp_path: Path) -> None:
    out = refused(tmp_path / "run")
    with pytest.raises(SpillwayError, match="it failed"), staged(out, is_disposable):
        raise SpillwayError("it failed")
    assert names(out) == ["refused"]
    with staged(out, is_disposable) as stage:
        (stage / "made").touch()
        assert names(out) == ["refused"]
    assert (names(out), names(tmp_path)) == (["made"], ["run"])


@pytest.mark.parametrize("moment", ["while it runs", "while it is looked at"])
def test_a_directory_that_is_no_longer_disposable_stays(tmp_path: Path, moment: str) -> None:
    """As a run that came to its end between a look and the rename, or a plan that was mended."""
    out = refused(tmp_path / "run")
    looks = 0

    def look(path: Path) -> bool:
        nonlocal looks
        looks += 1
        gave = is_disposable(path)
        if moment == "while it is looked at" and looks == 2:
            (path / "precious").touch()
        return gave

    with pytest.raises(SpillwayError, match=r"what this made is in .*run-2"), staged(out, look) as stage:
        (stage / "made").touch()
        if moment == "while it runs":
            (out / "precious").touch()
    assert (names(out), names(tmp_path / "run-2")) == (["precious", "refused"], ["made"])
    assert names(tmp_path) == ["run", "run-2"]


@pytest.mark.parametrize("spent", [False, True])
def test_what_was_made_is_kept_where_it_cannot_be_renamed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, spent: bool
) -> None:
    out = tmp_path / "run"
    if spent:
        refused(out)
    rename = Path.rename

    def refuse(path: Path, target: Path) -> Path:
        if ".partial-" in path.name and path.is_dir():
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return rename(path, target)

    with monkeypatch.context() as patched:
        patched.setattr(Path, "rename", refuse)
        with pytest.raises(SpillwayError, match="free some space") as failed, staged(out, is_disposable) as stage:
            (stage / "made").touch()
    assert f"What this made is in {stage}." in str(failed.value)
    with staged(tmp_path / "next"):
        assert names(stage) == ["made"]
    assert names(tmp_path) == sorted([stage.name, "next", *(["run"] if spent else [])])
    assert not spent or names(out) == ["refused"]


def test_a_link_to_nothing_is_no_free_place(tmp_path: Path) -> None:
    (tmp_path / "run").symlink_to(tmp_path / "nothing")
    with pytest.raises(SpillwayError, match="there is something already"), staged(tmp_path / "run"):
        pytest.fail("it was begun")


@pytest.mark.parametrize("there", ["a link to a directory", "a mount"])
def test_a_place_that_no_rename_can_replace_is_refused_before_anything_runs(
    fake: Fake, plan_file: Path, tmp_path: Path, invoke: Invoke, monkeypatch: pytest.MonkeyPatch, there: str
) -> None:
    """Though it is empty."""
    out, real = tmp_path / "run", tmp_path / "real"
    real.mkdir()
    if there == "a mount":
        out.mkdir()
        monkeypatch.setattr(os.path, "ismount", lambda path: Path(path) == out)
    else:
        out.symlink_to(real)
    ended = invoke("run", plan_file, "--out", out)
    assert (ended.code, ended.err.count("\n"), fake.requests()) == (2, 1, [])
    assert str(out) in ended.err
    assert not any(out.iterdir())
    assert {path.name for path in tmp_path.glob("*run*")} == {"run"}


@pytest.mark.parametrize("name", [".", "../run", "../run/../run", "../presets/../run/."])
def test_a_place_is_replaced_by_whatever_name(
    fake: Fake, plan_file: Path, tmp_path: Path, invoke: Invoke, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """Even from within."""
    out = tmp_path / "run"
    fake.behave("bad_input")
    invoke("run", plan_file, "--out", out)
    fake.behave("ok")
    monkeypatch.chdir(out)
    ended = invoke("run", plan_file, "--out", name)
    assert (ended.code, ended.err) == (0, "")
    assert (out / "arms").is_dir() and (out / "report.html").is_file()
    assert not list(tmp_path.glob(".*"))
