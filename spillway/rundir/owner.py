"""Directories that one process owns while it works in them, and the removal of those that killed processes left.

Such a directory holds a mark that names its process and the directory itself, and the process holds a lock (flock) on
it: so does whoever it has started to work there, by an inherited handle. A directory is left behind when nobody holds
the lock and its process has ended. That is known of processes of this machine alone:

    the same boot       the process by its number and the time of its start, since numbers come again; by the lock alone
                        from another namespace of numbers (a container), and where a start is not known
    an earlier boot     by the lock, where machine and host have the same names: two virtual machines may share both
    any other           it may be another machine's on a shared file system: not known, and not touched

What has no mark was made by somebody else, and so was a copy, whose mark names another directory: neither is touched.
"""

import fcntl
import json
import os
import shutil
import socket
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal

MARK = ".spillway-owner.json"
VERSION = 2  # of the mark's layout; another one is not ours
BOOT, MACHINE = "/proc/sys/kernel/random/boot_id", "/etc/machine-id"

MOST_BYTES = 2**16  # of a mark or a note: larger is none. Source: guess

State = Literal["left behind", "in use", "not ours"]


@dataclass(frozen=True)
class Owner:
    """What identifies a process on any machine that may share the file system."""

    pid: int
    started: int  # clock ticks since the boot; 0: not known
    pid_namespace: str
    boot: str
    machine: str
    host: str
    device: int  # of the directory, as stat names it
    inode: int
    locked: bool = True  # False: the file system has no locks


def claim(directory: Path) -> int:
    """Locks and marks a directory that this process has just made. Returns a file descriptor; the lock is held until it
    and every copy of it are closed. Raises OSError."""
    handle = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        locked = True
    except OSError:
        locked = False
    try:
        mark = {"spillway_owner": VERSION, **asdict(_this_process(os.fstat(handle), locked))}
        partial = directory / f"{MARK}.partial"
        partial.write_text(json.dumps(mark) + "\n", encoding="utf-8")
        partial.rename(directory / MARK)
    except BaseException:
        os.close(handle)
        raise
    return handle


def state_of(directory: Path) -> State:
    """Whether a process holds ``directory``, has left it behind, or the directory is not ours."""
    with _looked_at(directory) as state:
        return state


def remove_abandoned(directory: Path) -> State | Literal["removed"]:
    """Removes a directory that was left behind, and leaves any other alone. Returns "removed", or its state; that is
    still "left behind" where something in it cannot be removed."""
    with _looked_at(directory) as state:
        return "removed" if state == "left behind" and remove(directory) else state


def remove(directory: Path) -> bool:
    """Removes a claimed directory, its mark last: where removal is cut short or fails, ``remove_abandoned`` can finish
    it. Returns whether the directory is gone."""
    try:
        for each in list(directory.iterdir()):
            if each.name != MARK:
                _remove_tree(each)
        if [each.name for each in directory.iterdir()] == [MARK]:
            _remove_with_mark(directory)
        elif not any(directory.iterdir()):
            directory.rmdir()
    except OSError:
        pass
    return not directory.exists()


def remove_unmarked(directory: Path) -> bool:
    """Removes an empty directory whose process was killed before it wrote its mark. Returns whether the directory is
    gone."""
    partial = directory / f"{MARK}.partial"
    try:
        if directory.is_symlink() or directory.stat().st_uid != os.getuid():
            return False
        if list(directory.iterdir()) == [partial]:
            partial.unlink()
        directory.rmdir()
    except OSError:
        return False
    return True


def _remove_tree(path: Path) -> None:
    """As much of it as can be removed."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        with suppress(OSError):
            path.unlink()


def _remove_with_mark(directory: Path) -> None:
    """The mark comes back where the directory cannot be removed. Raises OSError."""
    text = (directory / MARK).read_bytes()
    (directory / MARK).unlink()
    try:
        directory.rmdir()
    except OSError:
        (directory / MARK).write_bytes(text)
        raise


@contextmanager
def _looked_at(directory: Path) -> Iterator[State]:
    """The lock of one that was left behind is held meanwhile: nobody else removes it too."""
    try:
        handle = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    except OSError:
        yield "not ours"
        return
    try:
        owner = _owner_of(directory, os.fstat(handle))
        is_held, has_locks = False, True
        try:
            if owner is not None:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            is_held = True
        except OSError:
            has_locks = False
        if owner is None:
            yield "not ours"
        else:
            yield "in use" if is_held or not _has_ended(owner, has_locks) else "left behind"
    finally:
        os.close(handle)


def _owner_of(directory: Path, found: os.stat_result) -> Owner | None:
    """Whose directory it is by its mark; None for one that is not ours."""
    if found.st_uid != os.getuid():
        return None
    try:
        document = json.loads(small_text(directory / MARK))
    except (OSError, ValueError, RecursionError):
        return None
    if not isinstance(document, dict) or document.pop("spillway_owner", None) != VERSION:
        return None
    try:
        owner = Owner(**document)
    except TypeError:
        return None
    is_it = (owner.device, owner.inode) == (found.st_dev, found.st_ino)
    return owner if is_it and isinstance(owner.pid, int) and isinstance(owner.started, int) else None


def small_text(path: Path) -> str:
    """The text of a regular file of at most MOST_BYTES. Never blocks, as reading a pipe could. Raises OSError, and
    ValueError for any other file."""
    handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW)
    with os.fdopen(handle, "rb") as file:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            raise ValueError(f"{path} is no regular file")
        raw = file.read(MOST_BYTES + 1)
    if len(raw) > MOST_BYTES:
        raise ValueError(f"{path} is larger than {MOST_BYTES} bytes")
    return raw.decode("utf-8")


def _has_ended(owner: Owner, is_free: bool) -> bool:
    """``is_free``: the file system has locks, and nobody holds the directory's."""
    by_lock = is_free and owner.locked
    if not owner.boot or owner.boot != _text(BOOT):
        here = (_text(MACHINE), socket.gethostname())
        return by_lock and bool(owner.machine and owner.boot) and (owner.machine, owner.host) == here
    if owner.pid_namespace != _pid_namespace() or not owner.started or _start_of(os.getpid()) is None:
        return by_lock
    return _start_of(owner.pid) != owner.started


def _this_process(of: os.stat_result, locked: bool) -> Owner:
    return Owner(
        os.getpid(),
        _start_of(os.getpid()) or 0,
        _pid_namespace(),
        _text(BOOT),
        _text(MACHINE),
        socket.gethostname(),
        of.st_dev,
        of.st_ino,
        locked,
    )


def _pid_namespace() -> str:
    try:
        return str(Path("/proc/self/ns/pid").readlink())
    except OSError:
        return ""


def _start_of(pid: int) -> int | None:
    """When a process began, in clock ticks since the boot; None where there is none, or one that has ended and whose
    parent has not asked for it yet."""
    text = _text(f"/proc/{pid}/stat")
    fields = text.rpartition(")")[2].split()  # from the third on, the state: a name may have blanks
    return int(fields[19]) if len(fields) > 19 and fields[0] not in ("Z", "X") else None


def _text(path: str) -> str:
    try:
        return Path(path).read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return ""
