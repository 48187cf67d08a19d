"""The files that runs read besides their plan: presets, states of drives, and times of arrival.

A plan names them, so its resolved form stays the same when they are changed. What was run before such a change is not
what the plan stands for now.
"""

import hashlib
from collections.abc import Iterable
from functools import cache
from pathlib import Path

from spillway.plan.arm import Arm
from spillway.ssd.preset import presets

LARGE_BYTES = 2**20  # of a file that is read once for all runs; a smaller one is read in less than a millisecond


def files_of(arms: Iterable[Arm]) -> list[Path]:
    """Each file once, in the order of their paths."""
    named: set[str] = set()
    found: set[Path] = set()
    for arm in arms:
        get = arm.settings
        for table in ("drive", "drive.estimate"):
            named.add(get[f"{table}.preset"])
            found |= {Path(get[f"{table}.preset_file"])} if get[f"{table}.preset_file"] else set()
        found |= {Path(get["initial.path"])} if get["initial.kind"] == "file" else set()
        found |= {Path(phase["arrivals_file"]) for phase in arm.phases if phase["arrivals_file"]}
    return sorted(found | {preset.path for preset in presets() if preset.name in named})


def sha256_of(arms: Iterable[Arm]) -> str:
    """SHA-256 of the names and contents of ``files_of``, without their directories. A file that cannot be read counts
    by its name."""
    digests = []
    for path in files_of(arms):
        try:
            digests.append(f"{path.name} {_digest(path)}")
        except OSError:
            digests.append(path.name)  # the native side says what is wrong with it
    return hashlib.sha256("\n".join(sorted(digests)).encode()).hexdigest()


def _digest(path: Path) -> str:
    about = path.stat()
    if about.st_size < LARGE_BYTES:
        return _read_digest(path)
    return _kept_digest(path, about.st_size, about.st_mtime_ns)


@cache
def _kept_digest(path: Path, size: int, changed_ns: int) -> str:
    """Once for each state of the file: every cell of a sweep may start from one state of a drive."""
    return _read_digest(path)


def _read_digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
