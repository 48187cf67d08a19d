"""What a directory is, read as data frames: a run, a profile, a sweep or a suite."""

from pathlib import Path

from spillway.errors import SpillwayError
from spillway.frames.profile import ProfileFrames, read_profile
from spillway.frames.run import RunFrames, read_run
from spillway.frames.suite import SuiteFrames, read_suite
from spillway.frames.sweep import SweepFrames, read_sweep

Frames = RunFrames | ProfileFrames | SweepFrames | SuiteFrames


def read(path: str | Path) -> Frames:
    """The directory ``path`` by what it is: one that `spillway run`, `profile`, `sweep` or `suite` left.

    Raises SpillwayError for any other, and as the reader of its kind does.
    """
    directory = Path(path)
    if not directory.is_dir():
        raise SpillwayError(f"{directory}: there is no such directory.")
    if (directory / "suite.json").exists():
        return read_suite(directory)
    if (directory / "sweep.json").exists():
        return read_sweep(directory)
    if (directory / "profile.toml").exists():
        return read_profile(directory)
    if (directory / "manifest.json").exists() or (directory / "summary.json").exists():
        return read_run(directory)
    raise SpillwayError(
        f"{directory}: this is neither a run directory (manifest.json) nor one of a profile (profile.toml), a "
        "sweep (sweep.json) or a suite (suite.json): name one of these."
    )
