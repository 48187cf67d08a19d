"""Errors that name flags of the command line, as errors that name the keywords of the function that was called."""

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from spillway.errors import SpillwayError

_FLAG = re.compile(r"(?<![\w-])--([a-z][a-z-]*)")


@contextmanager
def errors_name_keywords(names: Mapping[str, str]) -> Iterator[None]:
    """What is said about a flag in the block is said of the keyword that stands for it: that of ``names``, or the
    flag's own with ``_`` for ``-``."""
    try:
        yield
    except SpillwayError as error:
        raise type(error)(in_keywords(str(error), names)) from error


def in_keywords(sentence: str, names: Mapping[str, str]) -> str:
    """``sentence`` with keywords in the place of flags."""
    return _FLAG.sub(lambda flag: names.get(flag[1], flag[1].replace("-", "_")), sentence)
