"""The directory of a sweep, and the files by which it and the processes of its cells speak.

    sweep.json       the plan, the command, and each cell with its state
    cells.csv        a row for each cell, with its figures
    run/             all cells as one run directory, as `spillway run` would have left it, with the report
    cells/ADDRESS/   the run directory of a cell that is done
    failed/ADDRESS/  that of its last attempt, where it failed and had recorded something
    work/ADDRESS-N/  the job of an attempt, removed when its cell is done:
        plan.toml    what the cell runs
        job.json     its address, and where kept states lie
        log          what its process wrote
        run/         the run directory under way
        answer.json  how it ended

A cell comes to ``cells/`` by a rename, whole, so what lies there needs no more than to be there. Two processes that
happen to run one cell do not disturb each other: the first to end it wins.
"""

import json
import os
import secrets
import shutil
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

from spillway.errors import DriveFull, Interrupted, RunFailed, SpillwayError
from spillway.rundir.directory import RunRecord, read_figures, write_json, write_text
from spillway.rundir.stage import explained, remove_leftovers, stages_of
from spillway.sweep.cell import Cell

Document = dict[str, Any]

CELLS, FAILED, WORK, RUN = "cells", "failed", "work", "run"
PLAN, JOB, LOG, ANSWER = "plan.toml", "job.json", "log", "answer.json"
LAST_LINE_BYTES = 4096

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

    @property
    def may_pass(self) -> bool:
        """Whether another attempt may end otherwise: the process died, or the work failed by nothing that was asked."""
        return self.end == "died" or (self.end == "failed" and self.exit_code == RunFailed.exit_code)


def write_job(out: Path, cell: Cell, command: list[str], kept: Path) -> Path:
    """Makes the job of a new attempt at ``cell``. Raises SpillwayError where it cannot be written."""
    job = (out / WORK / f"{cell.address}-{secrets.token_hex(4)}").absolute()
    with explained(job):
        job.mkdir(parents=True)
    write_text(job / PLAN, cell.plan.to_toml())
    write_json(job / JOB, asdict(Job(cell.address, command, str(kept.absolute()))))
    return job


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
    return Answer(end, str(error), error.exit_code)


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
    if not place.exists():
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
        return None
    end: End = "done" if run.manifest.get("complete") else "drive full"
    return end, run


def _check_recorded(run: RunRecord) -> None:
    """Raises SpillwayError where the directory of a repetition is missing."""
    for arm in run.arms:
        for each in arm.summary.get("repetitions") or [arm.summary]:
            if not (run.path / each.get("directory", "") / "samples.csv").is_file():
                raise SpillwayError(f"{run.path}: it has not all that it names; run the sweep again.")


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


def remove_jobs(out: Path, address: str = "") -> None:
    """Removes the jobs of a cell, or of all, whose processes have ended or are another machine's, with what killed runs
    of this machine have left outside of them. Those that a process of this machine still writes stay."""
    for job in sorted((out / WORK).glob(f"{address or '*'}-*")):
        for stage in stages_of(job):
            remove_leftovers(stage)
        if not stages_of(job):
            shutil.rmtree(job, ignore_errors=True)
    with suppress(OSError):
        (out / WORK).rmdir()
