"""TOML as people's editors write it: with or without a byte order mark; whatever is no TOML is told in one way."""

import tomllib
from typing import Any


def loads(text: str) -> dict[str, Any]:
    """The document. Raises ``tomllib.TOMLDecodeError``, also for one that is nested deeper than can be read."""
    try:
        return tomllib.loads(text.removeprefix("\ufeff"))
    except RecursionError:
        raise tomllib.TOMLDecodeError("its tables or lists are nested too deep") from None
