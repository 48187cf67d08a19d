"""What a job is to write: a block device that nothing uses, or a file."""

import os
import stat
from dataclasses import dataclass
from pathlib import Path

from spillway.drive.blocks import SECTOR_BYTES
from spillway.drive.use import use_of
from spillway.errors import SpillwayError
from spillway.quantity import check_text, human_bytes, parse_size

# fio reads $NAME and ${NAME} in a job as variables, a backslash as an escape, and drops spaces at a value's end.
UNWRITABLE = '$\\"'
LEAST_BYTES = 2**20  # a drive or a file of less is none. Source: guess


@dataclass(frozen=True)
class Target:
    """``size_bytes``: of what is written, from its start. ``whole_bytes``: of the device; None of a file."""

    path: str
    is_device: bool
    size_bytes: int
    whole_bytes: int | None = None
    is_partition: bool = False

    @property
    def partition(self) -> str:
        """The node of the device's first partition, as Linux names it."""
        if self.path.startswith("/dev/disk/"):
            return f"{self.path}-part1"  # udev's links
        return self.path + ("p1" if self.path[-1].isdigit() else "1")


def parse_target(words: str, *, size: str | None, destroy_data: bool, root: Path = Path("/")) -> Target:
    """Reads DEVICE|FILE. Raises SpillwayError for what is in use, is neither, or holds data without leave.

    ``root`` is where /sys and /proc are looked for.
    """
    check_text([words])
    if not words or not words.isprintable() or words != words.strip() or set(words) & set(UNWRITABLE):
        raise SpillwayError(f"{words!r} cannot be named in a fio job: give a plain path, without $, \\ and quotes.")
    if str(Path(words)) == "-":
        raise SpillwayError("- is fio's standard output: give the file's absolute path, or name another one.")
    size_bytes = None if size is None else parse_size(size, "--size")
    if size_bytes is not None and size_bytes < LEAST_BYTES:
        raise SpillwayError(f"--size is {human_bytes(size_bytes)}: give {human_bytes(LEAST_BYTES)} at least.")
    path = Path(words)
    try:
        status = path.stat()
    except FileNotFoundError:
        return _new_file(path, size_bytes)
    except OSError as error:
        raise SpillwayError(
            f"{path}: {(error.strerror or str(error)).lower()}; name a block device or a file."
        ) from error
    if stat.S_ISBLK(status.st_mode):
        return _device(path, os.major(status.st_rdev), os.minor(status.st_rdev), size_bytes, destroy_data, root)
    if not stat.S_ISREG(status.st_mode):
        raise SpillwayError(f"{path} is neither a block device nor a file: name one of them.")
    return _file(path, status.st_size, size_bytes, destroy_data)


def _device(path: Path, major: int, minor: int, size_bytes: int | None, destroy_data: bool, root: Path) -> Target:
    use = use_of(major, minor, root)
    if use:
        raise SpillwayError(f"{path} {use}: end that first, or name another device.")
    if not destroy_data:
        raise SpillwayError(f"{path} is a drive, and the job would destroy its data: say --destroy-data if it may.")
    place = root / "sys/dev/block" / f"{major}:{minor}"
    sectors = place / "size"
    try:
        whole = int(sectors.read_text(encoding="ascii")) * SECTOR_BYTES
    except (OSError, ValueError) as error:
        raise SpillwayError(f"{path}: its capacity cannot be read from {sectors}; name another device.") from error
    if size_bytes is not None and size_bytes > whole:
        raise SpillwayError(f"--size is {human_bytes(size_bytes)}, and {path} has {human_bytes(whole)}: give less.")
    if whole < LEAST_BYTES:
        raise SpillwayError(f"{path} has {human_bytes(whole)}, so there is nothing to write; name another device.")
    return Target(str(path), True, size_bytes or whole, whole, (place / "partition").exists())


def _file(path: Path, held: int, size_bytes: int | None, destroy_data: bool) -> Target:
    if held and not destroy_data:
        raise SpillwayError(f"{path} holds data, and the job would destroy it: say --destroy-data if it may.")
    if size_bytes is None and held < LEAST_BYTES:
        raise SpillwayError(f"{path} holds {human_bytes(held)}: say with --size how large fio shall make it.")
    return Target(str(path), False, size_bytes or held)


def _new_file(path: Path, size_bytes: int | None) -> Target:
    if path.absolute().is_relative_to("/dev"):
        raise SpillwayError(f"{path}: there is no such device; `lsblk` lists them.")
    if not path.absolute().parent.is_dir():
        raise SpillwayError(f"{path}: there is no directory {path.absolute().parent}; make it first.")
    if size_bytes is None:
        raise SpillwayError(f"{path}: there is no such file; say with --size how large fio shall make it.")
    return Target(str(path), False, size_bytes)
