"""What the tests need of the machine is recognised by trying it."""

import os
from pathlib import Path

import pytest
from needs import has_direct_io, is_cached, need

MEMORY = Path("/dev/shm")


def test_a_file_that_was_just_written_is_cached(tmp_path: Path) -> None:
    with (tmp_path / "file").open("w+b") as file:
        file.write(bytes(1 << 16))
        file.flush()
        assert is_cached(file.fileno())


def test_memory_has_no_direct_io() -> None:
    need(MEMORY.is_dir() and os.access(MEMORY, os.W_OK), f"a file system in memory at {MEMORY}")
    assert not has_direct_io(MEMORY)


def test_a_directory_that_cannot_be_written_has_no_direct_io(tmp_path: Path) -> None:
    assert not has_direct_io(tmp_path / "missing")


@pytest.mark.parametrize(("ci", "ends"), [("true", pytest.fail.Exception), ("false", pytest.skip.Exception)])
def test_what_is_missing_fails_in_ci(monkeypatch: pytest.MonkeyPatch, ci: str, ends: type[BaseException]) -> None:
    monkeypatch.setenv("CI", ci)
    need(True, "anything")
    with pytest.raises(ends, match="this machine lacks"):
        need(False, "a drive")
