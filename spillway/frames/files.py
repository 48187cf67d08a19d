"""Data frames in files, by the ending of the name: ``.parquet``, which keeps dtypes, and ``.csv``, which people read.

What was written is read back the same from both: of CSV, dtypes follow from the columns' names (``tables.py``).
"""

import os
from collections.abc import Callable
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from spillway.errors import SpillwayError
from spillway.frames.tables import pandas, typed
from spillway.rundir.output import whole_file

if TYPE_CHECKING:
    import pandas as pd

ENDINGS = (".parquet", ".csv")
# Errors of pyarrow and pandas are kinds of these, for what is damaged, or is a table that nobody wrote here.
DAMAGE = (ValueError, LookupError, TypeError, AttributeError, ArithmeticError, NotImplementedError, MemoryError)


def check_ending(path: Path, key: str = "path") -> str:
    """The ending of a file's name, which says how it is written. Raises SpillwayError for any other; ``key`` has named
    the file."""
    if path.suffix not in ENDINGS:
        raise SpillwayError(f"{key} {path}: name a file that ends in {' or '.join(ENDINGS)}.")
    return path.suffix


def write_frame(frame: "pd.DataFrame", path: str | Path, *, key: str = "path") -> Path:
    """Writes a data frame to ``path``, whole or not at all, and returns the path. ``key`` has named it, in errors.
    Raises SpillwayError for another ending, and where it cannot be written."""
    target = Path(path)
    is_parquet = check_ending(target, key) == ".parquet"
    with whole_file(target, key) as file:
        if is_parquet:
            _with_pyarrow(lambda: frame.to_parquet(file, engine="pyarrow", index=False))
        else:  # each letter of the line's end puts a text that has it into quotes
            frame.to_csv(file, index=False, lineterminator="\r\n")
    return target


def read_frame(path: str | Path) -> "pd.DataFrame":
    """A data frame that ``write_frame`` or `spillway export` wrote. Raises SpillwayError where there is none, and for a
    file that is damaged."""
    source = Path(path)
    is_parquet = check_ending(source) == ".parquet"
    try:
        with source.open("rb") as file:
            frame = _with_pyarrow(lambda: pandas().read_parquet(file, engine="pyarrow")) if is_parquet else _csv(file)
        return typed(frame)
    except OSError as error:
        why = (error.strerror or str(error)).lower()
        raise SpillwayError(f"{source}: the file cannot be read: {why}; `spillway export` writes one.") from error
    except DAMAGE as error:
        first = (str(error).strip().splitlines() or ["it says nothing"])[0].rstrip(".")
        raise SpillwayError(f"{source}: this is no data frame in a {source.suffix} file ({first}).") from error


def _csv(file: IO[bytes]) -> "pd.DataFrame":
    """All cells as texts. Raises ValueError for a file that does not end with a line."""
    file.seek(max(0, file.seek(0, os.SEEK_END) - 1))
    if file.read() != b"\n":  # pandas would fill the rest of the line with what is not known
        raise ValueError("it was cut off in its last line")
    file.seek(0)
    frame: pd.DataFrame = pandas().read_csv(file, dtype=str, keep_default_na=False)
    return frame


def _with_pyarrow(work: Callable[[], Any]) -> Any:
    """Raises SpillwayError where pyarrow is not installed."""
    try:
        return work()
    except ImportError as error:
        raise SpillwayError(
            "Parquet files need pyarrow, which is not installed: pip install 'spillway[frames]', or write .csv."
        ) from error
