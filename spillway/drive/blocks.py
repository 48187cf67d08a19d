"""A path → the physical drives under it, and their counters in sysfs.

    path → st_dev → /sys/dev/block/MAJOR:MINOR → the whole disk of a partition → the members of a device-mapper or MD
    stack (slaves/) → ... → drives
    a block device's node → st_rdev → the same
    an NVMe controller's node → its namespace, if it has one

A file system without a device number of its own (btrfs) is looked up in /proc/self/mountinfo; a loop device leads to
the file that backs it. What has no drive (tmpfs, overlay, network file systems) is said to have none, and why.

Host bytes are sectors written, the 7th field of ``stat``, in units of 512 bytes whatever the drive's own sectors are
(Linux, Documentation/block/stat.rst): what the block layer has handed over and the drive has completed.
"""

import os
import re
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

SECTOR_BYTES = 512
MOST_LAYERS = 16  # of a stack, so that a broken tree of links ends
NO_DRIVE = {
    "tmpfs": "a tmpfs lies in memory",
    "ramfs": "a ramfs lies in memory",
    "overlay": "an overlay file system (a container's root) hides the drive under it; name a directory of a volume",
    "nfs": "a network file system's drive is in another machine",
    "nfs4": "a network file system's drive is in another machine",
    "cifs": "a network file system's drive is in another machine",
    "9p": "a file system of the virtual machine's host has no drive here",
    "virtiofs": "a file system of the virtual machine's host has no drive here",
    "zfs": "ZFS does not say which drives a pool lies on in sysfs",
}

# Block devices that are no drive where they have nothing under them: memory, and stacks that are not set up.
NO_HARDWARE = ("ram", "zram", "nullb", "loop", "dm-", "md")


@dataclass(frozen=True)
class Drive:
    """A whole physical drive (or what a virtual machine takes for one)."""

    name: str  # as in /sys/block
    stat: Path  # its counters
    capacity_bytes: int | None
    model: str
    kind: str  # nvme, ata, usb, virtual, scsi

    @property
    def device(self) -> str:
        """Its node, for tools."""
        return f"/dev/{self.name}"


@dataclass(frozen=True)
class Under:
    """The drives under a path, or why there are none."""

    drives: tuple[Drive, ...] = ()
    why_none: str = ""  # one clause without a full stop
    file_system: str = ""


@dataclass(frozen=True)
class Traffic:
    """Bytes since the system was started."""

    written: int
    read: int


def drives_under(path: Path, root: Path = Path("/")) -> Under:
    """The drives that hold ``path``, or of which it is the node; ``root`` is where /sys and /proc are looked for."""
    return _under_path(path, root, 0)


def _under_path(path: Path, root: Path, layer: int) -> Under:
    try:
        found = status(path)
    except OSError as error:
        return Under(why_none=f"{path} cannot be read: {(error.strerror or str(error)).lower()}")
    if stat.S_ISCHR(found.st_mode):
        return _under_characters(f"{os.major(found.st_rdev)}:{os.minor(found.st_rdev)}", root)
    number = found.st_rdev if stat.S_ISBLK(found.st_mode) else found.st_dev
    return _under_number(os.major(number), os.minor(number), root, layer)


def status(path: Path) -> os.stat_result:
    """``os.stat`` of what a path leads to, links followed. Raises OSError."""
    return path.stat()


def _under_characters(number: str, root: Path) -> Under:
    """Of a character device: an NVMe controller leads to its namespace, and a namespace's second node (ng) to it."""
    device = (root / "sys/dev/char" / number).resolve()
    second = re.fullmatch(r"ng(\d+n\d+)", device.name)
    names = [f"nvme{second[1]}"] if second else _namespaces(device) if re.fullmatch(r"nvme\d+", device.name) else None
    if names is None:
        return Under(why_none="it is a character device; name a block device, or a path on its file system")
    if len(names) != 1:
        nodes = " or ".join(f"/dev/{name}" for name in names)
        remedy = f"name one of its {len(names)} namespaces, {nodes}" if names else "it has no namespace"
        return Under(why_none=f"it is the controller of an NVMe drive; {remedy}")
    place = root / "sys/class/block" / names[0]
    if not place.exists():
        return Under(why_none=f"its namespace {names[0]} is no block device in sysfs")
    return _under_device(place, "", root, 0)


def _namespaces(controller: Path) -> list[str]:
    """Block devices of an NVMe controller's namespaces. With multipath its children are paths, nvmeScCnN, and the
    block device is nvmeSnN of the subsystem (Linux, drivers/nvme/host/multipath.c)."""
    children = controller.iterdir() if controller.is_dir() else iter(())
    found = [re.fullmatch(r"nvme(\d+)(?:c\d+)?n(\d+)", child.name) for child in children]
    return [f"nvme{s}n{n}" for s, n in sorted((int(each[1]), int(each[2])) for each in found if each)]


def drives_of(major: int, minor: int, root: Path = Path("/")) -> Under:
    """The drives of a block device, or of a mounted file system, by its number."""
    return _under_number(major, minor, root, 0)


def _under_number(major: int, minor: int, root: Path, layer: int) -> Under:
    mounted = _mount(f"{major}:{minor}", root)
    kind = mounted[0] if mounted else ""
    start = root / "sys/dev/block" / f"{major}:{minor}"
    if not start.exists() and mounted:
        start = root / "sys/class/block" / Path(os.path.realpath(root / mounted[1].lstrip("/"))).name
        if not mounted[1].startswith("/dev/") or not start.exists():
            why = NO_DRIVE.get(kind, f"a file system of type {kind} has no block device")
            return Under(why_none=why, file_system=kind)
    if not start.exists():
        return Under(why_none=f"there is no block device {major}:{minor} in sysfs", file_system=kind)
    return _under_device(start, kind, root, layer)


def _under_device(start: Path, kind: str, root: Path, layer: int) -> Under:
    found: dict[str, Drive] = {}
    for disk in _physical(start.resolve(), root, layer):
        found.setdefault(disk.name, _drive(disk))
    if not found:
        return Under(why_none=f"{start.resolve().name} has no physical drive under it", file_system=kind)
    return Under(tuple(found[name] for name in sorted(found)), file_system=kind)


def _mount(number: str, root: Path) -> tuple[str, str] | None:
    """File system type and source of the mount with this device number, from mountinfo (proc(5))."""
    try:
        lines = (root / "proc/self/mountinfo").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return None
    for line in reversed(lines):  # the last mount over a place is the one that is seen
        before, separator, after = line.partition(" - ")
        fields, own = before.split(), after.split()
        if separator and len(fields) > 2 and fields[2] == number and len(own) >= 2:
            return own[0], re.sub(r"\\([0-7]{3})", lambda octal: chr(int(octal[1], 8)), own[1])
    return None


def _physical(device: Path, root: Path, layer: int) -> Iterator[Path]:
    """The directories in sysfs of the whole disks under a block device."""
    if layer > MOST_LAYERS:
        return
    if (device / "partition").exists():
        device = device.parent
    members = sorted((device / "slaves").iterdir()) if (device / "slaves").is_dir() else []
    for member in members:
        yield from _physical(member.resolve(), root, layer + 1)
    if members:
        return
    backing = _text(device / "loop/backing_file")
    if backing:
        under = _under_path(root / backing.lstrip("/"), root, layer + 1)
        for drive in under.drives:
            yield drive.stat.parent
        return
    if not device.name.startswith(NO_HARDWARE):
        yield device


def _drive(disk: Path) -> Drive:
    sectors = _text(disk / "size")
    return Drive(
        disk.name,
        disk / "stat",
        int(sectors) * SECTOR_BYTES if sectors.isdecimal() else None,
        _text(disk / "device/model"),
        _kind(disk),
    )


def _kind(disk: Path) -> str:
    place = str(disk)
    if disk.name.startswith("nvme"):
        return "nvme"
    if disk.name.startswith(("vd", "xvd")) or "/virtio" in place:
        return "virtual"
    if "/usb" in place:
        return "usb"
    return "ata" if "/ata" in place or _text(disk / "device/vendor") == "ATA" else "scsi"


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return ""


def traffic(drives: tuple[Drive, ...]) -> Traffic | None:
    """What all of them together have written and read; None where one has no counters."""
    written = read = 0
    for drive in drives:
        fields = _text(drive.stat).split()
        if len(fields) < 7 or not all(field.isdecimal() for field in fields[:7]):
            return None
        read += int(fields[2]) * SECTOR_BYTES
        written += int(fields[6]) * SECTOR_BYTES
    return Traffic(written, read) if drives else None
