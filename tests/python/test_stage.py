"""Two runs to one place, and what dead ones have left on the way there."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from conftest import Fake, Invoke

from spillway.errors import SpillwayError
from spillway.stage import staged

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


def test_what_a_killed_run_has_left_is_gone_with_its_own_data_only(
    fake: Fake, plan_file: Path, tmp_path: Path, invoke: Invoke
) -> None:
    """Its engine's files by the note in its stage; what the note names and no run makes stays."""
    dead = subprocess.Popen([sys.executable, "-c", ""])
    dead.wait()
    left = {"run": TOKEN, "other": "spillway-abcdefabcdef", "run2": "spillway-bbbbbbbbbbbb"}
    for out, name in left.items():
        (tmp_path / name).mkdir()
        stage = tmp_path / f".{out}.partial-{dead.pid}"
        stage.mkdir()
        (stage / "data_directory").write_text(f"{tmp_path / name}\n")
    assert invoke("run", plan_file, "--out", tmp_path / "run").code == 0
    assert not (tmp_path / TOKEN).exists()
    assert not (tmp_path / f".run.partial-{dead.pid}").exists()
    for out in ("other", "run2"):
        assert (tmp_path / left[out]).is_dir() and (tmp_path / f".{out}.partial-{dead.pid}").is_dir(), out


@pytest.mark.parametrize("noted", ["precious", "spillway-build", "link", "relative", "nothing"])
def test_a_note_of_what_is_no_runs_removes_nothing_but_the_stage(tmp_path: Path, noted: str) -> None:
    dead = subprocess.Popen([sys.executable, "-c", ""])
    dead.wait()
    precious = tmp_path / ("spillway-build" if noted == "spillway-build" else "precious")
    precious.mkdir()
    (precious / "file").touch()
    (tmp_path / TOKEN).symlink_to(precious)
    text = {"link": str(tmp_path / TOKEN), "relative": f"../{TOKEN}", "nothing": "\x00"}.get(noted, str(precious))
    stage = tmp_path / f".run.partial-{dead.pid}"
    stage.mkdir()
    (stage / "data_directory").write_text(text)
    with staged(tmp_path / "run"):
        assert not stage.exists()
    assert (precious / "file").exists() and (tmp_path / TOKEN).is_symlink()


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
