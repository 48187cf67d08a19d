"""Requests as JSON lines."""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from spillway.errors import SpillwayError

NUMPY = ("item", "dtype")  # what a number of NumPy's has, which notebooks hand over


def encoded(document: Mapping[str, Any]) -> bytes:
    """``document`` as a line. Raises SpillwayError for a value that JSON has not, such as nan, with its key."""
    try:
        return json.dumps(document, allow_nan=False, default=_plain).encode() + b"\n"
    except (TypeError, ValueError) as error:
        key, value = next(_not_json(document, ""), ("the request", None))
        raise SpillwayError(f"{key} is {value!r}; it takes a text, true or false, or a finite number.") from error


def _plain(value: Any) -> Any:
    if all(hasattr(value, name) for name in NUMPY) and not getattr(value, "shape", None):
        return value.item()
    raise TypeError(type(value).__name__)


def _not_json(value: Any, key: str) -> Iterator[tuple[str, Any]]:
    """Keys and values that cannot be encoded, innermost first."""
    if isinstance(value, Mapping):
        for name, each in value.items():
            yield from _not_json(each, f"{key}.{name}" if key else str(name))
    elif isinstance(value, Sequence) and not isinstance(value, str | bytes):
        for at, each in enumerate(value):
            yield from _not_json(each, f"{key}[{at}]")
    else:
        try:
            json.dumps(value, allow_nan=False, default=_plain)
        except (TypeError, ValueError):
            yield key, value
