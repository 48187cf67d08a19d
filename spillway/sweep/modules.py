"""Packages by which a sweep reaches a cluster: extras, which may be missing or broken."""

import importlib.util
from collections.abc import Callable
from typing import Any

from spillway.errors import SpillwayError


def module_of(name: str, load: Callable[[], Any], called: str, needed_by: str, extra: str) -> Any:
    """The module ``name``, which ``load`` imports. Raises SpillwayError where it is not installed, or is and cannot be
    imported."""
    install = f"`pip install 'spillway[{extra}]'`"
    if importlib.util.find_spec(name) is None:
        raise SpillwayError(f"{needed_by} needs {called}, which is not installed: {install}.")
    try:
        return load()
    except Exception as error:  # a broken package raises anything
        first = (str(error).strip().splitlines() or [type(error).__name__])[0].rstrip(".")
        raise SpillwayError(
            f"{needed_by} needs {called}, which cannot be imported: {first}; {install} installs it anew."
        ) from error
