"""What the system does with a block device: mounted, swapped to, or a member of a stack.

As ``native/device/direct/device_use.h`` has it for the prober, which refuses by the same three facts.
"""

import os
import re
import stat
from collections.abc import Iterator
from pathlib import Path

OCTAL = re.compile(r"\\([0-7]{3})")  # how proc(5) writes spaces in a path


def use_of(major: int, minor: int, root: Path = Path("/")) -> str:
    """A clause such as ``is mounted at /``, of the device or of a partition of it; empty where nothing uses it.

    ``root`` is where /sys and /proc are looked for.
    """
    devices = {f"{major}:{minor}": ""}
    place = root / "sys/dev/block" / f"{major}:{minor}"
    for child in sorted(place.iterdir()) if place.is_dir() else []:
        if (child / "partition").exists():
            devices[_text(child / "dev")] = f"has a partition, {child.name}, that "
    return _mounted(devices, root) or _swapped_to(devices, root) or _held(devices, root)


def _mounted(devices: dict[str, str], root: Path) -> str:
    """mountinfo: id parent MAJOR:MINOR root mount-point options [optional …] - type source …

    The source is looked at too: a file system over several devices (btrfs) has a number of its own.
    """
    for line in _text(root / "proc/self/mountinfo").splitlines():
        before, _, after = line.partition(" - ")
        fields, own = before.split(), after.split()
        if len(fields) < 5:
            continue
        source = own[1] if len(own) > 1 else ""
        for number in (fields[2], _number_of(source)):
            if number in devices:
                return f"{devices[number]}is mounted at {OCTAL.sub(lambda octal: chr(int(octal[1], 8)), fields[4])}"
    return ""


def _swapped_to(devices: dict[str, str], root: Path) -> str:
    for line in _text(root / "proc/swaps").splitlines()[1:]:
        number = _number_of(line.split()[0]) if line.split() else ""
        if number in devices:
            return f"{devices[number]}is swapped to"
    return ""


def _held(devices: dict[str, str], root: Path) -> str:
    for number, begins in devices.items():
        for holder in _entries(root / "sys/dev/block" / number / "holders"):
            return f"{begins}is part of {holder.name}"
    return ""


def _entries(directory: Path) -> Iterator[Path]:
    return iter(sorted(directory.iterdir())) if directory.is_dir() else iter(())


def _number_of(path: str) -> str:
    """MAJOR:MINOR of a block device's node; empty of anything else."""
    try:
        status = Path(path).stat()
    except (OSError, ValueError):
        return ""
    return f"{os.major(status.st_rdev)}:{os.minor(status.st_rdev)}" if stat.S_ISBLK(status.st_mode) else ""


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return ""
