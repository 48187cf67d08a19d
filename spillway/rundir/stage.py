"""Writes a directory under a hidden name and renames it to its place when it is whole.

The hidden directory ``.OUT.partial-PID`` also reserves ``OUT``: its process holds a lock on it while it runs, so that a
second run to the same place is refused at its start and not after hours at its end. The next run into the same parent
removes what killed processes have left under such names (``spillway/rundir/owner.py``) and logs it.
"""

import errno
import fcntl
import logging
import os
import re
import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from spillway.errors import HostFailed, SpillwayError
from spillway.rundir import owner

LOGGER = logging.getLogger(__name__)
DATA_NOTE = "data_directory"  # in a stage: where the engine's files of its run lie
DATA_NAME = re.compile(r"spillway-[0-9a-f]{12}")  # and how such a directory is called
MOST_SPARE_NAMES = 1000
# The native process of a run that was killed ends with the next event that nobody reads, of which there are five a
# second; an engine that is in the middle of something takes longer. Source: guess
NATIVE_ENDS_S = 3.0
LOCK = ".lock"  # in a directory that takes several runs: says of what kind of work
MOST_KIND = 20  # characters of it. Source: guess
# Errors of the machine, of a disk or of a file server. Any other is of the path that was named.
OF_THE_HOST = frozenset(
    (
        *(errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EREMOTEIO, errno.ESTALE, errno.ETIMEDOUT, errno.EHOSTDOWN),
        *(errno.ENETUNREACH, errno.ECONNRESET, errno.ENOLCK, errno.EBUSY, errno.EAGAIN, errno.ENOMEM, errno.ENOBUFS),
        *(errno.EMFILE, errno.ENFILE),
    )
)


@contextmanager
def staged(out: Path, is_disposable: Callable[[Path], bool] = lambda out: False) -> Iterator[Path]:
    """A hidden directory beside ``out`` that becomes ``out`` at the end, or vanishes when the block raises.

    ``is_disposable`` says whether an existing directory may be replaced. It is called at the start and again at the
    end; until then the old directory stays where it is.

    Raises SpillwayError, before anything is done, where ``out`` exists and may not be replaced, where another process
    is writing it, or where it cannot be written.
    """
    out = settled(out).absolute()
    made = _missing_parents(out)
    stage, begun, lock = out.parent / f".{out.name}.partial-{os.getpid()}", False, None
    try:
        with explained(out):
            out.parent.mkdir(parents=True, exist_ok=True)
        with explained(out), _locked_parent(out.parent):
            _check_free(out, is_disposable)
            stage.mkdir()
            begun = True
            lock = owner.claim(stage)
        yield stage
        _put(stage, out, is_disposable)
    except _Taken as taken:
        kind = HostFailed if isinstance(taken.__cause__, HostFailed) else SpillwayError
        raise kind(str(taken)) from None
    except BaseException:
        if begun:
            owner.remove(stage)
        for parent in made:
            if parent.is_dir() and not any(parent.iterdir()):
                parent.rmdir()
        raise
    finally:
        if lock is not None:
            os.close(lock)


def check_free(out: Path) -> None:
    """To be called before minutes of work. Raises SpillwayError where ``staged`` would refuse ``out``."""
    out = settled(out).absolute()
    if not _is_free(out):
        raise SpillwayError(f"{out}: there is something already; name another --out or remove it.")
    parent = next(each for each in out.parents if os.path.lexists(each))
    if not parent.is_dir() or not os.access(parent, os.W_OK):
        raise SpillwayError(f"{out} cannot be written: name a directory that you may write to with --out.")


def settled(out: Path) -> Path:
    """``out``, as an absolute path where it is ``.`` or contains ``..``: such a path would name another place once the
    working directory has been replaced."""
    if out.name and ".." not in out.parts:
        return out
    absolute = out.absolute()
    return absolute.resolve() if absolute.name == ".." else absolute.parent.resolve() / absolute.name


@contextmanager
def locked(out: Path, what: str) -> Iterator[None]:
    """Locks ``out``, a directory of several runs, for this process; makes it where it does not exist.

    ``what`` names the kind of work, such as "suite", and is stored in the lock file. Raises SpillwayError where ``out``
    holds another kind of work, is not empty, or is locked by another process.
    """
    with explained(out):
        if out.exists() and not out.is_dir():
            raise SpillwayError(f"{out}: this is a file; name a directory with --out.")
        if out.is_dir() and any(out.iterdir()) and not (out / LOCK).exists():
            raise SpillwayError(
                f"{out}: there is something already that is no {what}'s; name another --out or remove it."
            )
        out.mkdir(parents=True, exist_ok=True)
        lock = (out / LOCK).open("a+", encoding="utf-8", errors="replace")
    with lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise SpillwayError(f"{out}: a {what} is running in it; wait for its end or name another --out.") from None
        except OSError as error:
            reason = (error.strerror or str(error)).lower()
            raise SpillwayError(
                f"{out}: its file system takes no lock ({reason}), so another {what} in it would not be seen; name "
                "another --out."
            ) from error
        lock.seek(0)
        theirs = lock.read(MOST_KIND)
        if theirs not in ("", what):
            raise SpillwayError(f"{out}: this is the directory of a {theirs}, and no {what}'s; name another --out.")
        if not theirs:  # just made, or by an earlier version
            with explained(out):
                lock.write(what)
                lock.flush()
        yield


class _Taken(Exception):
    """``out`` belongs to another run, and is left as it is."""


def _check_free(out: Path, is_disposable: Callable[[Path], bool]) -> None:
    """Raises _Taken where ``out`` may not be replaced or another process is writing it; removes what dead ones left."""
    if os.path.ismount(out):
        raise _Taken(f"{out}: something is mounted there, so it cannot be replaced; name a directory in it with --out.")
    if not _is_free(out) and not _is_disposable(out, is_disposable):
        raise _Taken(f"{out}: there is something already; name another --out or remove it.")
    if any(_is_held(stage) for stage in stages_of(out.parent, out.name)):
        raise _Taken(f"{out}: another run is on its way to it; wait for its end or name another --out.")
    _log_removed([path for stage in stages_of(out.parent) for path in remove_leftovers(stage)])


def _is_free(out: Path) -> bool:
    """Nothing is there, or an empty directory that a rename can replace."""
    return not os.path.lexists(out) or (out.is_dir() and not out.is_symlink() and not any(out.iterdir()))


def _is_disposable(out: Path, is_disposable: Callable[[Path], bool]) -> bool:
    return out.is_dir() and not out.is_symlink() and is_disposable(out)


def remove_leftover_data(parent: Path) -> None:
    """Removes engines' files that killed runs have left in ``parent``, and logs their paths."""
    with suppress(OSError):
        found = sorted(path for path in parent.iterdir() if DATA_NAME.fullmatch(path.name))
        _log_removed([path for path in found if owner.remove_abandoned(path) == "removed"])


def _log_removed(removed: Sequence[Path]) -> None:
    if removed:
        LOGGER.warning("removed what killed runs have left: %s.", ", ".join(map(str, removed)))


def stages_of(parent: Path, name: str = "") -> list[Path]:
    """The hidden directories in ``parent`` that runs are writing: those for ``name``, or all."""
    of_it = re.compile(rf"\.{re.escape(name) if name else '.+'}\.partial-[0-9]+")
    return sorted(path for path in parent.iterdir() if of_it.fullmatch(path.name) and path.is_dir())


def remove_leftovers(stage: Path) -> list[Path]:
    """Removes a stage whose process is dead, and its engine's files, which may lie in shared memory. Leaves any other
    alone. Returns the paths that it has removed."""
    if owner.state_of(stage) != "left behind":
        return []
    data = _data_of(stage)
    of_data = "not ours" if data is None else owner.remove_abandoned(data)
    until_s = time.monotonic() + NATIVE_ENDS_S
    while data is not None and of_data == "in use" and time.monotonic() < until_s:
        time.sleep(0.05)
        of_data = owner.remove_abandoned(data)
    if data is not None and of_data == "not ours" and owner.remove_unmarked(data):
        of_data = "removed"
    inside = data is not None and data.is_relative_to(stage.absolute())
    removed = [data] if data is not None and of_data == "removed" else []
    # The stage says where the files are that could not be removed.
    if of_data == "left behind" or (inside and of_data == "in use") or owner.remove_abandoned(stage) != "removed":
        return removed
    return [stage, *removed]


def _data_of(stage: Path) -> Path | None:
    """Where the note in a stage says that its engine's files lie."""
    with suppress(OSError, ValueError):
        data = Path(owner.small_text(stage / DATA_NOTE).strip())
        if DATA_NAME.fullmatch(data.name) and data.is_absolute() and not data.is_symlink():
            return data
    return None


def _put(stage: Path, out: Path, is_disposable: Callable[[Path], bool]) -> None:
    """Renames the stage to ``out``. Where that fails, or another directory has taken ``out`` meanwhile, keeps the stage
    under another name and raises _Taken with it."""
    try:
        with explained(out), _locked_parent(out.parent):
            if _replaced(stage, out, is_disposable):
                return
            names = (out.with_name(f"{out.name}-{number}") for number in range(2, MOST_SPARE_NAMES))
            spare = next((name for name in names if not os.path.lexists(name)), out)
            if not _renamed(stage, spare):
                raise SpillwayError(f"{out}: there is something already, and in {spare} too.")
    except SpillwayError as error:
        if stage.is_dir():
            _disown(stage)
            raise _Taken(f"{error} What this made is in {stage}.") from error
        raise
    raise _Taken(f"{out}: something was put there while this ran; what this made is in {spare}.")


def _replaced(stage: Path, out: Path, is_disposable: Callable[[Path], bool]) -> bool:
    """``_renamed``, replacing a disposable directory; that is put back where the rename fails. Raises OSError."""
    aside = _put_aside(out, is_disposable)
    try:
        is_in_place = _renamed(stage, out)
    except OSError:
        if aside is not None:
            aside.rename(out)
        raise
    if aside is not None:
        shutil.rmtree(aside, ignore_errors=True)
    return is_in_place


def _put_aside(out: Path, is_disposable: Callable[[Path], bool]) -> Path | None:
    """Renames a disposable ``out`` and returns its new path; None where there is none. Raises OSError."""
    if _is_free(out) or not _is_disposable(out, is_disposable):
        return None
    aside = out.with_name(f".{out.name}.replaced-{os.getpid()}")
    out.rename(aside)
    if is_disposable(aside):  # nobody finds it by its name any more
        return aside
    aside.rename(out)
    return None


def _renamed(stage: Path, out: Path) -> bool:
    """Whether the stage is in its place, where nothing else has come to be. Raises OSError."""
    try:
        stage.rename(out)
    except OSError:
        if not out.exists():
            raise
        return False
    _disown(out)
    return True


def _disown(directory: Path) -> None:
    """Removes the owner's mark, so that ``remove_leftovers`` leaves the directory alone."""
    with suppress(OSError):
        (directory / owner.MARK).unlink(missing_ok=True)


def _missing_parents(path: Path) -> list[Path]:
    """The directories above ``path`` that would have to be made, the innermost first."""
    return [parent for parent in path.parents if not parent.exists()]


@contextmanager
def _locked_parent(parent: Path) -> Iterator[None]:
    """Holds a lock on ``parent``: one process at a time looks for other stages and makes its own."""
    handle = os.open(parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        with suppress(OSError):  # a file system without locks
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def _is_held(stage: Path) -> bool:
    try:
        handle = os.open(stage, os.O_RDONLY | os.O_DIRECTORY)
    except OSError:
        return False  # it has gone
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return _is_alive(int(stage.name.rpartition("-")[2]))
    finally:
        os.close(handle)
    return False


def _is_alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        return True
    return True


@contextmanager
def explained(path: Path, key: str = "--out") -> Iterator[None]:
    """Turns an error of the operating system in the block into one sentence about ``path``, which ``key`` has named.
    Raises SpillwayError, and HostFailed for what another attempt may not meet, such as a full disk."""
    writable = f"name a directory that you may write to with {key}"
    remedies = {
        "No space left on device": f"free some space or name another {key}",
        "Permission denied": writable,
        "Read-only file system": writable,
    }
    try:
        yield
    except OSError as error:
        reason = error.strerror or str(error)
        remedy = remedies.get(reason, f"name another {key}")
        kind = HostFailed if error.errno in OF_THE_HOST else SpillwayError
        raise kind(f"{path} cannot be written: {reason.lower()}; {remedy}.") from error
