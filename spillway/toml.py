"""TOML as people's editors write it: with or without a byte order mark; all errors have one form."""

import tomllib
from typing import Any

MOST_DEPTH = 50  # of tables and lists: a plan has six. Source: guess


def loads(text: str) -> dict[str, Any]:
    """The document. Raises ``tomllib.TOMLDecodeError``, also for one that is nested deeper than can be read, or has a
    number of thousands of digits."""
    try:
        document = tomllib.loads(text.removeprefix("\ufeff"))
    except RecursionError:
        raise tomllib.TOMLDecodeError(TOO_DEEP) from None
    except tomllib.TOMLDecodeError:
        raise
    except ValueError:  # Python's limit on the digits of a number
        raise tomllib.TOMLDecodeError("a number in it has too many digits") from None
    if _is_deeper(document, MOST_DEPTH):
        raise tomllib.TOMLDecodeError(TOO_DEEP)
    return document


TOO_DEEP = "its tables or lists are nested too deep"


def _is_deeper(document: Any, most: int) -> bool:
    """Whether tables and lists are within each other more than ``most`` times; dotted keys can be by thousands."""
    level = [document]
    for _ in range(most):
        level = [
            inner
            for each in level
            for inner in (each.values() if isinstance(each, dict) else each)
            if isinstance(inner, dict | list)
        ]
        if not level:
            return False
    return True
