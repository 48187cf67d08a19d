"""Reads the small text files that benchmarks are written in."""

from pathlib import Path

from spillway.errors import SpillwayError

MOST_BYTES = 2**20  # of a script, a job file or a property file: larger is none. Source: guess


def read_small_text(path: Path, kind: str, remedy: str = "") -> str:
    """The text of a file that is to be a ``kind``, such as a fio job file. Raises SpillwayError, with ``remedy`` at the
    end of the sentence."""
    ending = f"; {remedy}." if remedy else "."
    try:
        with path.open("rb") as file:
            raw = file.read(MOST_BYTES + 1)
    except OSError as error:
        raise SpillwayError(f"{path}: the {kind} cannot be read: {error.strerror}{ending}") from error
    if len(raw) > MOST_BYTES:
        raise SpillwayError(f"{path}: this is no {kind}: it is larger than {MOST_BYTES // 2**20} MiB{ending}")
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise SpillwayError(f"{path}: this is no {kind}: it is not text{ending}") from error
    if "\0" in text:
        raise SpillwayError(f"{path}: this is no {kind}: it is not text{ending}")
    return text
