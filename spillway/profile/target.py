"""What TARGET names: a preset in virtual or real time, a file, a directory or a block device."""

import stat
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from spillway.errors import SpillwayError
from spillway.native.process import Event, run_native
from spillway.plan.arm import slug
from spillway.profile import grids
from spillway.profile.points import mqssd_point
from spillway.quantity import human_bytes, parse_share, parse_size
from spillway.ssd.preset import check_preset
from spillway.ssd.simulate import DriveChoice, drive_request, flags_for_keys, with_flags

Document = dict[str, Any]

# An emulated drive is as large as this, or as its preset if that is smaller: what one million mapping entries hold
# behaves like what a hundred million hold. Source: guess, held by tests/python/test_profile_native.py
PROFILE_CAPACITY_BYTES = 8 * 2**30
# ... unless that leaves too few erase blocks in a plane for garbage collection to choose among.
LEAST_BLOCKS_PER_PLANE = 64
# The write cache shrinks with the capacity, but holds a few flash pages for every plane, so that programs never starve.
PROFILE_CACHE_BYTES = 8 * 2**20
CACHE_STRIPES = 4
# The mapping cache shrinks in proportion, so that as many accesses miss it. It holds at least a few mapping pages.
LEAST_MAPPING_CACHE_BYTES = 64 * 2**10
# Keys of a request that a flag sets, wherever a target is named.
FLAGS = {"target.destroy_data": "--destroy-data", "target.size_bytes": "--size"}


@dataclass(frozen=True)
class Target:
    """A target as flags name it. ``fill``: share of an emulated drive that holds data; ``size_bytes``: of a file."""

    kind: str  # simulated, paced, file, directory or device
    words: str  # as the user wrote it
    choice: DriveChoice | None = None
    path: Path | None = None
    destroy_data: bool = False
    fill: float = 1.0
    size_bytes: int | None = None

    @property
    def name(self) -> str:
        """For people: as written; a relative path such as ``.`` is resolved."""
        return self.words if self.words.strip("./") or self.path is None else str(self.path.resolve())

    @property
    def label(self) -> str:
        """A name for directories."""
        return slug(self.words.rpartition(":")[2].rpartition("/")[2] or "drive")

    @property
    def emulated(self) -> bool:
        """Whether a drive model answers."""
        return self.choice is not None

    @property
    def real_time(self) -> bool:
        """Whether its time is real and not virtual."""
        return self.kind != "simulated"

    @property
    def may_be_written(self) -> bool:
        """Whether it may be written: with --destroy-data; a drive model and a test file always."""
        return self.emulated or self.destroy_data or self.kind == "directory"

    def request(self, seed: int, initial: str, settings: dict[str, str]) -> Document:
        """The first line of a conversation with the probe. Raises SpillwayError for contradicting flags."""
        drive = drive_request(self.choice) if self.choice is not None else {}
        if drive:
            drive["set"] = settings | drive["set"]  # what the user set counts
        target: Document = {"kind": self.kind}
        if self.emulated:
            target |= {"drive": drive, "initial": {"kind": initial, "fill": self.fill, "warmup_capacities": 0}}
        else:
            target |= {"path": str(self.path), "destroy_data": self.destroy_data, "size_bytes": self.size_bytes}
        return {"seed": seed, "target": target}


def parse_target(
    words: str,
    *,
    paced: bool = False,
    destroy_data: bool = False,
    settings: tuple[str, ...] = (),
    host_stack: str | None = None,
    fill: str = "1.0",
    size: str | None = None,
) -> Target:
    """Reads TARGET and the flags that go with it. Raises SpillwayError for what cannot be profiled."""
    if not words:
        raise SpillwayError("TARGET is empty: name preset:NAME, a file, a directory or a block device.")
    kind, colon, name = words.partition(":")
    if colon and kind == "preset":
        if destroy_data:
            raise SpillwayError(
                "--destroy-data is for files and devices; a preset has no data to destroy: leave it out."
            )
        if size is not None:
            raise SpillwayError(
                "--size is for files and directories; of a preset it is --set capacity.capacity_bytes=SIZE."
            )
        check_preset(name, words)
        share = parse_share(fill, "--fill")
        if share == 0:
            raise SpillwayError("--fill is 0, and a drive without data has nothing to read: give it a share above 0.")
        choice = DriveChoice(preset=name, settings=settings, host_stack=host_stack)
        return Target("paced" if paced else "simulated", words, choice, fill=share)
    for flag, given in (
        ("--paced", paced),
        ("--set", bool(settings)),
        ("--host-stack", host_stack is not None),
        ("--fill", fill != "1.0"),
    ):
        if given:
            raise SpillwayError(f"{flag} is for presets, and {words} is none: leave it out, or name preset:NAME.")
    path = Path(words)
    found = _kind_of(path)
    if found == "device" and size is not None:
        raise SpillwayError(f"--size is for files and directories, and {words} is a device: leave it out.")
    size_bytes = None if size is None else parse_size(size, "--size")
    return Target(found, words, path=path.absolute(), destroy_data=destroy_data, size_bytes=size_bytes)


@contextmanager
def errors_name_flags(target: Target, flags: Mapping[str, str] = FLAGS) -> Iterator[None]:
    """Renames keys in errors of the native side to the flags that set them: those of a drive, and ``flags``."""
    try:
        yield
    except SpillwayError as error:
        sentence = flags_for_keys(str(error), target.choice) if target.choice is not None else str(error)
        raise type(error)(with_flags(sentence, flags)) from error


def _kind_of(path: Path) -> str:
    try:
        mode = path.stat().st_mode
    except OSError as error:
        raise SpillwayError(
            f"{path}: {(error.strerror or str(error)).lower()}; name preset:NAME (`spillway ssd presets` lists them), "
            "a file, a directory or a block device."
        ) from error
    if stat.S_ISBLK(mode):
        return "device"
    if stat.S_ISDIR(mode):
        return "directory"
    if stat.S_ISREG(mode):
        return "file"
    raise SpillwayError(f"{path} is neither a file, a directory nor a block device: name one of them, or preset:NAME.")


def check_size(ready: Event, words: str) -> None:
    """Raises SpillwayError for a target that MQSSD's largest accesses do not fit into, all threads at once."""
    least = max(grids.THREADS) * mqssd_point("read", 1, min(grids.R_PERCENTS)).bs_bytes
    if ready["range_bytes"] < least:
        raise SpillwayError(
            f"{words} holds {human_bytes(ready['range_bytes'])}, too small for {max(grids.THREADS)} threads that move "
            f"1000 pages at a time: give a target of at least {human_bytes(least)}."
        )


@dataclass(frozen=True)
class Scaled:
    """Settings that make a preset small enough to profile in seconds, and what they change, in words."""

    settings: dict[str, str]
    cache_bytes: int
    superblock_bytes: int  # one erase block of every plane
    remarks: list[str]


def scaled(target: Target) -> Scaled:
    """How an emulated drive is scaled down: fewer erase blocks and a smaller write cache, the same parallelism.

    Whatever the user set with --set stays.
    """
    assert target.choice is not None
    shown = run_native("ssd-show", {"drive": drive_request(target.choice)})
    drive, layout = shown["drive"], shown["layout"]
    own = {setting.partition("=")[0].strip() for setting in target.choice.settings}
    settings: dict[str, str] = {}
    remarks = []
    geometry = drive.get("geometry", {})
    planes = _planes(geometry)
    stripe = planes * int(geometry.get("page_bytes", 0))
    superblock = stripe * int(geometry.get("pages_per_block", 0))
    capacity = int(layout.get("capacity_bytes", 0))
    wanted = max(PROFILE_CAPACITY_BYTES, LEAST_BLOCKS_PER_PLANE * superblock)
    if capacity > wanted and not own & {"capacity.capacity_bytes", "capacity.blocks_per_plane"}:
        settings["capacity.capacity_bytes"] = str(wanted)
        remarks.append(f"capacity scaled from {human_bytes(capacity)} to {human_bytes(wanted)}, parallelism unchanged")
        mapping = _bytes(drive.get("mapping_cache", {}).get("bytes", 0))
        if mapping and "mapping_cache.bytes" not in own:
            small_map = max(LEAST_MAPPING_CACHE_BYTES, mapping * wanted // capacity)
            settings["mapping_cache.bytes"] = str(small_map)
            remarks.append(f"mapping cache scaled from {human_bytes(mapping)} to {human_bytes(small_map)}")
    cache = _bytes(drive.get("write_cache", {}).get("bytes", 0))
    small = max(PROFILE_CACHE_BYTES, CACHE_STRIPES * stripe)
    if cache > small and "write_cache.bytes" not in own:
        settings["write_cache.bytes"] = str(small)
        remarks.append(f"write cache scaled from {human_bytes(cache)} to {human_bytes(small)}")
        cache = small
    # A profile is of the steady state, and there this cache is full: points within and points behind it fit no model.
    if drive.get("slc_cache", {}).get("share", 0) and not any(key.startswith("slc_cache.") for key in own):
        settings["slc_cache.share"] = "0"
        remarks.append("measured as if its SLC cache were always full; --set slc_cache.share=SHARE keeps the cache")
    return Scaled(settings, cache, superblock, remarks)


def _planes(geometry: Document) -> int:
    count = 1
    for name in ("channels", "chips_per_channel", "dies_per_chip", "planes_per_die"):
        count *= int(geometry.get(name, 1))
    return count


def _bytes(value: object) -> int:
    return parse_size(value, "a cache's size")
