"""Files that a command was asked to write, wherever they lie."""

import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from spillway.errors import SpillwayError
from spillway.rundir.stage import explained


def check_output(path: Path, key: str) -> None:
    """To be called before minutes of work. Raises SpillwayError for a file that could not be written; ``key`` has named
    it."""
    if path.is_dir():
        raise SpillwayError(f"{key} {path} is a directory: name the file to write.")
    parent = path.absolute().parent
    if not parent.is_dir():
        raise SpillwayError(f"{key} {path}: there is no directory {parent}; make it first.")
    if not os.access(path if _is_special(path) else parent, os.W_OK):
        raise SpillwayError(f"{key} {path} cannot be written: name a file in a directory that you may write to.")


@contextmanager
def whole_file(path: Path, key: str = "--out") -> Iterator[IO[bytes]]:
    """What is written in the block comes to ``path`` at its end, whole; where the block raises, what lay there stays.
    A pipe or a device is written as it is. Raises SpillwayError where it cannot be written; ``key`` has named it."""
    with explained(path, key):
        if _is_special(path):
            with path.open("wb") as file:
                yield file
            return
        target = path.resolve() if path.is_symlink() else path
        partial = target.with_name(f".spillway-{secrets.token_hex(8)}.partial")
        try:
            with partial.open("xb") as file:
                yield file
                file.flush()
                os.fsync(file.fileno())
            if target.exists():
                with suppress(OSError):  # a file system without permissions
                    shutil.copymode(target, partial)
            partial.rename(target)
        finally:
            partial.unlink(missing_ok=True)


def write_output(path: Path, text: str, key: str = "--out") -> None:
    """Writes ``text`` to ``path``, as ``whole_file`` does. Raises SpillwayError."""
    with whole_file(path, key) as file:
        file.write(text.encode())


def _is_special(path: Path) -> bool:
    """Whether it is there and neither a file nor a directory."""
    return path.exists() and not path.is_file() and not path.is_dir()
