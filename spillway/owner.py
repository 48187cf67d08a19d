"""Directories that a process has to itself for as long as it works in them, and what killed ones have left.

Such a directory holds a mark that names its process, and the process holds a lock (flock) on it: so does whoever it has
started to work there, by an inherited handle. A directory is left behind when nobody holds the lock and its process has
ended. That is known of processes of this machine alone:

    the same boot       the process by its number and the time of its start, since numbers come again; from another
                        namespace of numbers (a container) by the lock alone
    an earlier boot     every process has ended, where machine and host have the same names
    any other           it may be another machine's on a shared file system: not known, and not touched

What has no mark was made by somebody else, and is not touched either.
"""

import fcntl
import json
import os
import shutil
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal

MARK = ".spillway-owner.json"

State = Literal["left behind", "in use", "not ours"]


@dataclass(frozen=True)
class Owner:
    """A process, as it can be told from all others."""

    pid: int
    started: int  # clock ticks since the boot
    pid_namespace: str
    boot: str
    machine: str
    host: str
    locked: bool = True  # False: the file system has no locks


def claim(directory: Path) -> int:
    """Locks a directory that this process has just made, and marks it. Returns a handle that holds the lock until it
    and its copies are closed. Raises OSError."""
    handle = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        locked = True
    except OSError:
        locked = False
    try:
        partial = directory / f"{MARK}.partial"
        partial.write_text(json.dumps({"spillway_owner": 1, **asdict(_this_process(locked))}) + "\n", encoding="utf-8")
        partial.rename(directory / MARK)
    except BaseException:
        os.close(handle)
        raise
    return handle


def state_of(directory: Path) -> State:
    """Whose a directory is now."""
    with _looked_at(directory) as state:
        return state


def sweep(directory: Path) -> State:
    """Removes a directory that was left behind; any other is as it was. Returns what it was."""
    with _looked_at(directory) as state:
        if state == "left behind":
            shutil.rmtree(directory, ignore_errors=True)
        return state


@contextmanager
def _looked_at(directory: Path) -> Iterator[State]:
    """The lock of one that was left behind is held meanwhile: nobody else removes it too."""
    owner = _owner_of(directory)
    try:
        handle = None if owner is None else os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    except OSError:
        handle = None
    if owner is None or handle is None:
        yield "not ours"
        return
    try:
        is_held, has_locks = False, True
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            is_held = True
        except OSError:
            has_locks = False
        yield "in use" if is_held or not _has_ended(owner, has_locks) else "left behind"
    finally:
        os.close(handle)


def _owner_of(directory: Path) -> Owner | None:
    """Whose directory it is by its mark; None for one that is not ours."""
    try:
        ours = directory.is_dir() and not directory.is_symlink() and directory.stat().st_uid == os.getuid()
        document = json.loads((directory / MARK).read_text(encoding="utf-8")) if ours else None
    except (OSError, ValueError):
        return None
    if not isinstance(document, dict) or document.pop("spillway_owner", None) != 1:
        return None
    try:
        owner = Owner(**document)
    except TypeError:
        return None
    return owner if isinstance(owner.pid, int) and isinstance(owner.started, int) else None


def _has_ended(owner: Owner, is_free: bool) -> bool:
    """``is_free``: nobody holds the directory's lock."""
    here = _this_process(locked=is_free)
    if not owner.boot or owner.boot != here.boot:
        return bool(owner.machine and owner.boot) and (owner.machine, owner.host) == (here.machine, here.host)
    if owner.pid_namespace != here.pid_namespace:
        return is_free and owner.locked
    return _start_of(owner.pid) != owner.started


def _this_process(locked: bool) -> Owner:
    try:
        namespace = str(Path("/proc/self/ns/pid").readlink())
    except OSError:
        namespace = ""
    return Owner(
        os.getpid(),
        _start_of(os.getpid()) or 0,
        namespace,
        _text("/proc/sys/kernel/random/boot_id"),
        _text("/etc/machine-id"),
        socket.gethostname(),
        locked,
    )


def _start_of(pid: int) -> int | None:
    """When a process began, in clock ticks since the boot; None where there is none."""
    text = _text(f"/proc/{pid}/stat")
    fields = text.rpartition(")")[2].split()  # from the third on: a name may have blanks
    return int(fields[19]) if len(fields) > 19 else None


def _text(path: str) -> str:
    try:
        return Path(path).read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return ""
