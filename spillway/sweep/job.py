"""The directory of a sweep, and the files by which it and the processes of its cells speak.

    sweep.json       the plan, the command, and each cell with its state
    cells.csv        a row for each cell, with its figures
    run/             all cells as one run directory, as `spillway run` would have left it, with the report; only while
                     the table is of the same sweep
    cells/ADDRESS/   the run directory of a cell that is done
    failed/ADDRESS/  that of its last attempt, where it failed and had recorded something
    work/ADDRESS-N/  the job of an attempt, removed when its cell is done:
        plan.toml    what the cell runs
        job.json     its address, and where kept states lie; its process holds a lock on it
        submitit/    what submitit has written, where it runs the job
        log          what its process wrote
        run/         the run directory under way
        answer.json  how it ended

A cell comes to ``cells/`` by a rename, whole, so what lies there needs no more than to be there. Two processes that
happen to run one cell do not disturb each other: the first to end it wins. Whatever else lies in these directories is
somebody else's, and stays.
"""

import fcntl
import json
import os
import re
import secrets
import shutil
from collections.abc import Set
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO, Any, Literal

from spillway.errors import DriveFull, HostFailed, Interrupted, RunFailed, SpillwayError
from spillway.rundir import owner
from spillway.rundir.directory import (
    RunRecord,
    check_not_cut_off,
    read_figures,
    whole_directories,
    write_json,
    write_text,
)
from spillway.rundir.stage import explained, remove_leftovers, stages_of
from spillway.sweep.cell import Cell

Document = dict[str, Any]

CELLS, FAILED, WORK, RUN = "cells", "failed", "work", "run"
PLAN, JOB, LOG, ANSWER = "plan.toml", "job.json", "log", "answer.json"
LAST_LINE_BYTES = 4096
OF_A_REPETITION = ("samples.csv", "stalls.csv", "phases.json", "events.json", "result.json")  # that ran to its end
_JOB_NAME = re.compile(r"([0-9a-f]+)-[0-9a-f]{8}")

End = Literal["done", "drive full", "failed", "died", "interrupted"]


@dataclass(frozen=True)
class Job:
    """What the process of a cell is asked for."""

    address: str
    command: list[str]  # of the sweep, for the manifest
    kept: str  # where kept states lie


@dataclass(frozen=True)
class Answer:
    """How the process of a cell ended."""

    end: End
    why: str = ""
    exit_code: int = 0  # of its error
    host: str = ""
    seconds: float = 0.0
    by_host: bool = False  # the machine failed it, as where a disk was full

    @property
    def may_pass(self) -> bool:
        """Whether another attempt may end otherwise: the process died, or the work failed by nothing that was asked."""
        is_work = self.exit_code == RunFailed.exit_code or self.by_host
        return self.end == "died" or (self.end == "failed" and is_work)


def check_places(out: Path) -> None:
    """Raises SpillwayError where something else has the place of a part of a sweep's directory."""
    for part in (CELLS, FAILED, WORK, RUN):
        place = out / part
        if os.path.lexists(place) and (not place.is_dir() or (part == RUN and place.is_symlink())):
            raise SpillwayError(f"{place}: this is no directory of a sweep; remove it or name another --out.")


def write_job(out: Path, cell: Cell, command: list[str], kept: Path) -> Path:
    """Makes the job of a new attempt at ``cell``. Raises SpillwayError where it cannot be written, and leaves nothing
    of it."""
    job = (out / WORK / f"{cell.address}-{secrets.token_hex(4)}").absolute()
    try:
        with explained(job):
            job.mkdir(parents=True)
        write_text(job / PLAN, cell.plan.to_toml())
        write_json(job / JOB, asdict(Job(cell.address, command, str(kept.absolute()))))
    except SpillwayError:
        shutil.rmtree(job, ignore_errors=True)
        raise
    return job


def hold(job: Path) -> IO[str] | None:
    """Locks a job until the file that it returns is closed, at the latest when this process ends. None where the file
    system has no locks, or the job has gone."""
    try:
        file = (job / JOB).open(encoding="utf-8")
        fcntl.flock(file, fcntl.LOCK_SH)
    except OSError:
        return None
    return file


def is_under_way(job: Path) -> bool:
    """Whether the process of a job is there, on whatever machine; False where the file system has no locks."""
    try:
        with (job / JOB).open("r+", encoding="utf-8") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    return False


def jobs_of(out: Path, address: str = "") -> list[tuple[str, Path]]:
    """The jobs that are there, of one cell or of all: each with the address of its cell."""
    named = [(_JOB_NAME.fullmatch(path.name), path.absolute()) for path in sorted((out / WORK).glob(f"{address}*"))]
    return [(match[1], job) for match, job in named if match and match[1].startswith(address) and job.is_dir()]


def read_job(job: Path) -> Job:
    """What a job asks for. Raises SpillwayError where it cannot be read."""
    try:
        return Job(**json.loads((job / JOB).read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError) as error:
        raise SpillwayError(f"{job / JOB}: this is no job of a sweep ({error}); run the sweep again.") from error


def read_answer(job: Path) -> Answer | None:
    """How a job ended; None where its process has not said so."""
    with suppress(OSError):
        list(job.iterdir())  # asks a file server anew which files there are
    try:
        return Answer(**json.loads((job / ANSWER).read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError):
        return None


def answer_to(error: SpillwayError) -> Answer:
    """The answer of a process that ended by ``error``."""
    end: End = "interrupted" if isinstance(error, Interrupted) else "failed"
    return Answer(end, str(error), error.exit_code, by_host=isinstance(error, HostFailed))


def answer_of(end: End, run: RunRecord) -> Answer:
    """The answer of a cell that was run before."""
    return Answer(end, str(run.manifest.get("failure") or ""), DriveFull.exit_code if end == "drive full" else 0)


def last_line(log: Path) -> str:
    """The last line of a log that is not empty; "" where there is none."""
    try:
        with log.open("rb") as file:
            file.seek(0, os.SEEK_END)
            file.seek(max(0, file.tell() - LAST_LINE_BYTES))
            lines = file.read().decode(errors="replace").split("\n")
    except OSError:
        return ""
    return next((line.strip() for line in reversed(lines) if line.strip()), "")


def place_of(out: Path, address: str) -> Path:
    """Where the run directory of a cell that is done lies."""
    return out / CELLS / address


def read_cell(out: Path, address: str, *, removes: bool = True) -> tuple[End, RunRecord] | None:
    """How a cell ended that need not be run again, with its figures; None where it has to be run. One that is damaged
    is removed if ``removes``. Raises SpillwayError where a file cannot be read that may be whole."""
    place = place_of(out, address)
    if not _is_there(place):
        return None
    try:
        run = read_figures(place)
        _check_recorded(run)
    except SpillwayError as error:
        why = error.__cause__
        if isinstance(why, OSError) and not isinstance(why, FileNotFoundError | NotADirectoryError):
            raise  # such as a file server that does not answer
        if removes:
            shutil.rmtree(place, ignore_errors=True)
            if os.path.lexists(place):  # what the cell records anew could not come to its place
                raise SpillwayError(f"{error} It cannot be removed; remove {place} first.") from error
        return None
    end: End = "done" if run.manifest.get("complete") else "drive full"
    return end, run


def _is_there(place: Path) -> bool:
    """Raises SpillwayError where that cannot be told."""
    try:
        place.lstat()
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise SpillwayError(f"{place} cannot be read: {reason}; mend that or name another --out.") from error
    return True


def _check_recorded(run: RunRecord) -> None:
    """Raises SpillwayError where a file of a repetition is missing or was cut off, as in a copy that was not whole."""
    for arm in run.arms:
        whole = whole_directories(arm.summary)
        for each in arm.summary.get("repetitions") or [arm.summary]:
            directory = each.get("directory", "")
            files = OF_A_REPETITION if directory in whole else OF_A_REPETITION[:1]
            if not all((run.path / directory / file).is_file() for file in files):
                raise SpillwayError(f"{run.path}: it has not all that it names; run the sweep again.")
        for directory in whole:
            check_not_cut_off(run.path / directory)


def put(fresh: Path, place: Path, *, replaces: bool) -> None:
    """Renames a run directory to its place. What lies there gives way where it ``replaces``, else it stays and
    ``fresh`` is removed. Raises SpillwayError where neither is possible."""
    with explained(place):
        place.parent.mkdir(parents=True, exist_ok=True)
        if replaces:
            shutil.rmtree(place, ignore_errors=True)
        try:
            fresh.rename(place)
        except OSError:
            if not place.is_dir():
                raise
            shutil.rmtree(fresh, ignore_errors=True)


def remove_jobs(out: Path, address: str = "", keeps: Set[Path] = frozenset()) -> None:
    """Removes the jobs of a cell, or of all but ``keeps``, whose processes have ended or are another machine's, with
    what killed runs of this machine have left outside of them. Those that are under way stay."""
    for _, job in jobs_of(out, address):
        if job in keeps or is_under_way(job):
            continue
        for stage in stages_of(job):
            remove_leftovers(stage)
        if all(owner.state_of(stage) == "not ours" for stage in stages_of(job)):  # given up by whoever wrote it
            shutil.rmtree(job, ignore_errors=True)
    with suppress(OSError):
        (out / WORK).rmdir()
