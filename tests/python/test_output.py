"""Files that a command was asked to write: whole or not at all, and refused before there is work in them."""

import os
import threading
from pathlib import Path
from typing import Any

import pytest
from advised import DRIVE

from spillway.errors import SpillwayError
from spillway.rundir.output import check_output, whole_file, write_output
from spillway.rundir.stage import check_free


def names_in(directory: Path) -> list[str]:
    return [each.name for each in directory.iterdir()]


def test_a_file_is_replaced_when_the_block_ends_and_stays_when_it_raises(tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    path.write_text("old")
    path.chmod(0o640)
    with pytest.raises(ValueError, match="broke"), whole_file(path) as file:
        file.write(b"half")
        assert path.read_text() == "old"
        raise ValueError("it broke")
    assert path.read_text() == "old"
    write_output(path, "new")
    assert path.read_text() == "new" and path.stat().st_mode & 0o777 == 0o640
    assert names_in(tmp_path) == ["x.json"]


def test_a_disk_that_is_full_leaves_what_was_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "x.json"
    path.write_text("old")

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(SpillwayError, match="no space left on device; free some space or name another --json"):
        write_output(path, "new", "--json")
    assert path.read_text() == "old" and names_in(tmp_path) == ["x.json"]


def test_two_at_a_time_leave_one_of_both(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    with whole_file(path) as first, whole_file(path) as second:
        first.write(b"first" * 1000)
        second.write(b"second" * 1000)
    assert path.read_bytes() in (b"first" * 1000, b"second" * 1000)
    assert names_in(tmp_path) == ["x.csv"]


def test_a_link_stays_one_and_a_pipe_is_written(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "file")
    write_output(tmp_path / "link", "text")
    assert (tmp_path / "link").is_symlink() and (tmp_path / "file").read_text() == "text"
    os.mkfifo(tmp_path / "pipe")
    read: list[str] = []
    reader = threading.Thread(target=lambda: read.append((tmp_path / "pipe").read_text()))
    reader.start()
    check_output(tmp_path / "pipe", "--json")
    write_output(tmp_path / "pipe", "text")
    reader.join()
    assert read == ["text"] and (tmp_path / "pipe").is_fifo()
    write_output(Path(os.devnull), "text")
    assert Path(os.devnull).is_char_device()


def test_what_cannot_be_written_is_known_before_the_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for path, says in ((tmp_path, "is a directory"), (tmp_path / "no" / "x", "make it first")):
        with pytest.raises(SpillwayError, match=says):
            check_output(path, "--json")
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "x").write_text("")
    (tmp_path / "file").write_text("")
    for path, says in ((tmp_path / "full", "something already"), (tmp_path / "file", "something already"),
                       (tmp_path / "file" / "x", "may write to")):  # fmt: skip
        with pytest.raises(SpillwayError, match=says):
            check_free(path)
    check_free(tmp_path / "new" / "deep")
    check_output(tmp_path / "x", "--json")
    monkeypatch.setattr(os, "access", lambda *_: False)  # as in a directory that is mounted to be read
    with pytest.raises(SpillwayError, match="may write to"):
        check_output(tmp_path / "x", "--json")
    with pytest.raises(SpillwayError, match="may write to"):
        check_free(tmp_path / "new")


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--options", "a", "--json", "./a"], "--options and --json both name"),
        (["--verify", "--out", "there"], "something already"),
        (["--json", "there"], "--json there is a directory"),
        (["--memory", "1"], "give 327.0 MiB or more"),
        (["--tbw", "0"], "--tbw is 0"),
    ],
)
def test_advice_is_refused_before_it_writes(
    invoke: Any, words: list[str], says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("spillway.advise.drive.of_preset", lambda *_: DRIVE)
    monkeypatch.setattr("spillway.advise.search._Search.simulated_once", None)  # nothing is to be simulated
    Path("there").mkdir()
    Path("there/mine").write_text("mine")
    done = invoke("advise", "--preset", "made", "--data", "100GB", *words)
    assert done.code == 2 and says in done.err and done.err.count("\n") == 1, done.err
    assert [*Path().rglob("*")] == [Path("there"), Path("there/mine")]
