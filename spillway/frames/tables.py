"""Rows as data frames. A column's dtype follows from its name, so that it is the same in every run and in every file.

    string    names, states, words          boolean   yes or no
    Int64     counts and bytes              float64   every other figure

What is not known is NA, in float64 NaN. Units end the names, as in samples.csv. A column that is named by a key of a
plan, such as ``load.value_bytes``, has the narrowest dtype that holds all of its values; so has one of a name that is
not known here, but its numbers are float64.
"""

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from spillway.errors import SpillwayError

if TYPE_CHECKING:
    import pandas as pd

Document = Mapping[str, Any]

TEXT, FLAG, COUNT, FIGURE = "string", "boolean", "Int64", "float64"

_TEXTS = frozenset(
    (
        *("a", "alpha_rule", "arm", "b", "basis", "cause", "cell", "claim", "compression", "currency", "directory"),
        *("drive", "failure", "host", "initial_state", "message", "metric", "model", "name", "of", "op", "ours"),
        *("pacing", "pattern", "phase", "plan", "preset", "procedure", "published", "run", "seeds", "settings", "side"),
        *("stall_cause", "stall_state", "standing", "state", "statement", "steady_reason", "summary", "unit"),
        *("verdict", "wa_device_unknown", "why", "words", "workload", "years_by"),
    )
)
_FLAGS = frozenset(("complete", "measured", "reported", "scaled_capacity", "steady", "virtual_time"))
_COUNTS = frozenset(
    (
        *("attempts", "erases", "iodepth", "ios", "k", "not_found", "not_started", "numjobs", "operations", "reads"),
        *("repetition", "repetitions", "seed", "stall_count", "steady_repetitions", "threads", "unmapped_reads"),
        "writes",
    )
)
_BYTES = re.compile(r"(user|host|nand)_bytes_(written|read|programmed)(_[a-z]+)?")
_UNITS = ("_ops_s", "_mb_s", "_us", "_ms", "_ns", "_s", "_bytes")
_WHOLE = re.compile(r"-?(0|[1-9][0-9]{0,17})")
_NUMBER = re.compile(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?")
_YES, _NO = {"True", "true"}, {"False", "false"}


def pandas() -> Any:
    """The module. Raises SpillwayError where it is not installed."""
    try:
        import pandas as module
    except ImportError as error:
        raise SpillwayError(
            "data frames need pandas, which is not installed: pip install 'spillway[frames]'."
        ) from error
    return module


def dtype_of(name: str) -> str | None:
    """The dtype of a column; None where it follows from the column's values."""
    if "." in name:
        return None
    if name in _TEXTS:
        return TEXT
    if name in _FLAGS:
        return FLAG
    if name in _COUNTS or name.endswith("_bytes") or _BYTES.fullmatch(name) or name.startswith("spill_"):
        return COUNT
    return FIGURE if name.endswith(_UNITS) else None


def frame_of(rows: Sequence[Document], first: Sequence[str] = ()) -> "pd.DataFrame":
    """A data frame with a row for each of ``rows``. Its columns are ``first``, which are there without any row too, and
    the others in the order in which they appear. Raises SpillwayError without pandas."""
    names = dict.fromkeys([*first, *(name for row in rows for name in row)])
    return pandas().DataFrame({name: column([row.get(name) for row in rows], name) for name in names})


def typed(frame: "pd.DataFrame") -> "pd.DataFrame":
    """The same columns with the dtypes of their names. Raises SpillwayError for a value that a column cannot have."""
    return pandas().DataFrame({name: column(frame[name].tolist(), name) for name in frame.columns})


def column(values: Sequence[Any], name: str) -> Any:
    """An array of ``values`` with the dtype of ``name``; None, NaN and an empty text are not known. Raises
    SpillwayError for a value that it cannot hold."""
    known = [None if _is_unknown(value) else value for value in values]
    dtype = dtype_of(name) or _narrowest(known, has_whole="." in name)
    try:
        return pandas().array([_as(dtype, value) for value in known], dtype=dtype)
    except (TypeError, ValueError, OverflowError) as error:
        raise SpillwayError(f"{name}: a column of {dtype} cannot have what it has: {error}.") from error


def _is_unknown(value: Any) -> bool:
    if value is None or isinstance(value, str):
        return not value
    return value is pandas().NA or (isinstance(value, float) and math.isnan(value))


def _as(dtype: str, value: Any) -> Any:
    if value is None:
        return math.nan if dtype == FIGURE else None
    if dtype == TEXT:
        return value if isinstance(value, str) else str(value)
    if dtype == FLAG:
        return _flag(value)
    if dtype == COUNT:
        return int(value) if isinstance(value, str) and _WHOLE.fullmatch(value) else round(float(value))
    return float(value)


def _flag(value: Any) -> bool:
    if isinstance(value, str):
        if value not in _YES | _NO:
            raise ValueError(f"{value!r} is neither True nor False")
        return value in _YES
    return bool(value)


def _narrowest(values: Sequence[Any], *, has_whole: bool) -> str:
    """The dtype that holds all of ``values``; float64 where none is known."""
    known = [value for value in values if value is not None]
    if not known:
        return FIGURE
    texts = [str(value) for value in known]
    if all(text in _YES | _NO for text in texts):
        return FLAG
    if has_whole and all(not isinstance(value, float) and _WHOLE.fullmatch(str(value)) for value in known):
        return COUNT
    numbers = all(isinstance(value, int | float) or _NUMBER.fullmatch(str(value)) for value in known)
    return FIGURE if numbers else TEXT


def flattened(document: Document) -> dict[str, Any]:
    """The values of nested tables by one name each; a unit that ends a table's name ends theirs: ``latency_us`` with
    ``p99`` is ``latency_p99_us``. Elements of a list are numbered."""
    return dict(_leaves(document, "", ""))


def _leaves(document: Document, before: str, unit: str) -> Iterator[tuple[str, Any]]:
    for key, value in document.items():
        if isinstance(value, list) and value and all(isinstance(each, Mapping) for each in value):
            value = {str(index): each for index, each in enumerate(value)}
        if isinstance(value, Mapping):
            base, own = _parted(key)
            yield from _leaves(value, f"{before}{base}_" if base else before, own or unit)
        elif not isinstance(value, list):
            yield f"{before}{key}{'' if key.endswith(unit) else unit}", value


def _parted(key: str) -> tuple[str, str]:
    """A table's name without its unit, and the unit."""
    key = key.removesuffix("by_cause").rstrip("_")
    unit = next((unit for unit in _UNITS if key.endswith(unit)), "")
    return key.removesuffix(unit), unit
