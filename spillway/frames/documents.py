"""The JSON document at the head of a suite's or a sweep's directory, refused where it is of a later version."""

import json
from pathlib import Path
from typing import Any

from spillway.errors import SpillwayError

Document = dict[str, Any]


def read_head(path: Path, version_key: str, known: int, what: str, command: str) -> Document:
    """The object in ``path``; ``version_key`` is the version of its layout, ``known`` the newest that is read. ``what``
    the directory is, and the ``command`` that makes one, are said in errors. Raises SpillwayError where it is missing,
    damaged or of a later version."""
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        why = (error.strerror or str(error)).lower()
        raise SpillwayError(f"{path}: this is no directory of a {what}: {why}; `{command}` makes one.") from error
    except (ValueError, RecursionError) as error:
        raise SpillwayError(f"{path}: this is not JSON ({error}); run the {what} again.") from error
    if not isinstance(document, dict):
        raise SpillwayError(f"{path}: this is no document of a {what}; run the {what} again.")
    layout = document.get(version_key, known)
    if not isinstance(layout, int) or layout > known:
        raise SpillwayError(
            f"{path}: {version_key} is {layout!r}, and this version of spillway reads up to {known}: read the {what} "
            "with the version that made it, or a later one."
        )
    return document
