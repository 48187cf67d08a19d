"""What becomes of a command whose output cannot be written: one sentence, no traceback, never an exit code of 0."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

COMMAND = [
    sys.executable,
    "-m",
    "spillway.cli",
    "ssd",
    "presets",
]  # says so little that all of it is written at the end


def test_a_disk_that_is_full_is_said() -> None:
    with Path("/dev/full").open("w") as full:
        ended = subprocess.run(COMMAND, stdout=full, stderr=subprocess.PIPE, text=True)
    assert ended.returncode == 2
    assert (
        ended.stderr == "spillway: what there is to say cannot be written: no space left on device; free some space.\n"
    )


def test_a_reader_that_has_gone_is_no_error_to_speak_of() -> None:
    reading, writing = os.pipe()
    os.close(reading)
    ended = subprocess.run(COMMAND, stdout=writing, stderr=subprocess.PIPE, text=True)
    os.close(writing)
    assert (ended.returncode, ended.stderr) == (1, "")


@pytest.mark.parametrize("words", [["advise", "--help"], ["ssd", "show", "samsung-990-pro"]])
def test_what_the_locale_cannot_write_is_a_question_mark(words: list[str]) -> None:
    environment = {name: value for name, value in os.environ.items() if name != "HOME"}
    ended = subprocess.run(
        [*COMMAND[:3], *words],
        env=environment | {"PYTHONIOENCODING": "ascii", "LC_ALL": "C", "TERM": "dumb"},
        capture_output=True,
    )
    assert (ended.returncode, ended.stderr) == (0, b"")
    assert ended.stdout.isascii()
