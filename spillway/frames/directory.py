"""What a directory is, read as data frames: a run, a profile, a sweep or a suite."""

import os
from collections.abc import Callable
from pathlib import Path

from spillway.errors import SpillwayError
from spillway.frames.profile import ProfileFrames, read_profile
from spillway.frames.run import RunFrames, read_run
from spillway.frames.suite import SuiteFrames, read_suite
from spillway.frames.sweep import SweepFrames, read_sweep
from spillway.rundir.directory import is_directory

Frames = RunFrames | ProfileFrames | SweepFrames | SuiteFrames

_READERS: tuple[tuple[tuple[str, ...], Callable[[Path], Frames]], ...] = (
    (("suite.json",), read_suite),
    (("sweep.json",), read_sweep),
    (("profile.toml",), read_profile),
    (("manifest.json", "summary.json"), read_run),
)


def read(path: str | Path) -> Frames:
    """The directory ``path`` by what it is: one that `spillway run`, `profile`, `sweep` or `suite` left.

    Raises SpillwayError for any other, and as the reader of its kind does.
    """
    directory = Path(path)
    if not is_directory(directory):
        raise SpillwayError(f"{directory}: there is no such directory.")
    for names, reader in _READERS:
        if any(os.path.lexists(directory / name) for name in names):
            return reader(directory)
    raise SpillwayError(
        f"{directory}: this is neither a run directory (manifest.json) nor one of a profile (profile.toml), a "
        "sweep (sweep.json) or a suite (suite.json): name one of these."
    )
