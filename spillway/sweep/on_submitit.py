"""Cells as jobs of Slurm, by submitit; also of submitit's local executor, which needs no Slurm.

A paced cell gets its machine for itself (``--exclusive``), any other the cores that it takes. The file system is shared
by all machines of the cluster: submitit needs that too.

What submitit writes lies in the job of the cell. There a later sweep reads the number of a job of Slurm that goes on
after its sweep was killed.
"""

import subprocess
from collections.abc import Mapping
from contextlib import redirect_stderr, suppress
from io import StringIO
from pathlib import Path
from typing import Any

from spillway.errors import SpillwayError
from spillway.sweep import job as files
from spillway.sweep.cell import Cell
from spillway.sweep.modules import module_of
from spillway.sweep.order import Room
from spillway.sweep.process import run_job

FILES = "submitit"  # in a job: what submitit writes
SCRIPT = "_submission.sh"  # ends the name of what Slurm was given, behind its number of the job
TAGS = ("%j", "%t", "%A", "%a")  # in a path stand for numbers of a job
MOST_QUEUED = 256  # jobs at once, where --jobs does not say. Source: guess
MOST_MINUTES = 24 * 60  # of a job. Source: guess


class SubmititFuture:
    """A job of submitit."""

    def __init__(self, job: Any) -> None:
        """Of a job that was submitted."""
        self._job = job
        self._is_cancelled = False

    def done(self) -> bool:
        """Whether the job has ended."""
        return bool(self._job.done())

    def cancel(self) -> None:
        """Cancels the job."""
        if not self._is_cancelled:
            self._is_cancelled = True
            with suppress(OSError, subprocess.CalledProcessError):  # it has ended meanwhile
                self._job.cancel()

    def why(self) -> str:
        """What the task returned; else the job's state."""
        if self._job.paths.result_pickle.exists():
            with suppress(Exception):  # whatever the task raised; submitit's own errors have no family
                return str(self._job.result())
        return f"its job {self._job.job_id} ended as {self._job.state}"


class Submitit:
    """Submits each cell as a job."""

    def __init__(
        self,
        kind: str,
        out: Path,
        room: Room,
        environment: Mapping[str, str],
        parameters: Mapping[str, str | int] | None = None,
    ) -> None:
        """``kind``: "slurm" or "local". ``parameters``: of submitit's executor, for every job. Raises SpillwayError
        where submitit is not installed, there is no Slurm, a parameter is unknown, or ``out`` is a path that submitit
        does not take."""
        self._name = "--on slurm" if kind == "slurm" else "--on submitit-local"
        self._submitit = module_of("submitit", _imported, "submitit", self._name, "slurm")
        self.room, self._environment = room, dict(environment)
        self._is_slurm = kind == "slurm"
        self.poll_s, self.lag_s = (2.0, 10.0) if self._is_slurm else (0.1, 0.0)
        self._parameters: dict[str, Any] = {"job_name": "spillway", "time": MOST_MINUTES, **(parameters or {})}
        self._futures: list[SubmititFuture] = []
        self._executor: Any = None  # the local one makes its directory, so it is made with the first cell
        if tag := next((tag for tag in TAGS if tag in str(out.absolute())), ""):
            raise SpillwayError(f"--out {out}: submitit reads {tag} in a path as a number; name another --out.")
        if self._is_slurm:
            try:
                self._write_to(out)
                self._of_slurm(cores=1, paced=False)
            except RuntimeError as error:
                raise SpillwayError(f"--on slurm: this machine has no Slurm: {_first_line(error)}.") from error

    def _write_to(self, folder: Path) -> None:
        """One executor for all jobs: it keeps a pause between two of them."""
        if self._executor is None:
            kind = self._submitit.SlurmExecutor if self._is_slurm else self._submitit.LocalExecutor
            self._executor = kind(folder)
        self._executor.folder = folder.absolute()

    def _of_slurm(self, *, cores: int, paced: bool) -> None:
        own = {"cpus_per_task": cores, "exclusive": True if paced else None}
        try:
            self._executor.update_parameters(**(own | self._parameters))
        except (ValueError, TypeError) as error:
            raise SpillwayError(f"--slurm: submitit takes no such parameter: {_first_line(error)}.") from error

    def submit(self, cell: Cell, job: Path) -> SubmititFuture:
        """Submits a job. Raises SpillwayError where Slurm does not take it."""
        try:
            self._write_to(job / FILES)
            if self._is_slurm:
                self._of_slurm(cores=cell.cores, paced=cell.paced)
            else:
                self._executor.update_parameters(timeout_min=MOST_MINUTES)
            with redirect_stderr(StringIO()):  # where submitit repeats what sbatch says
                future = SubmititFuture(self._executor.submit(run_job, str(job), self._environment))
        except (RuntimeError, OSError, subprocess.CalledProcessError) as error:  # submitit's own are kinds of the first
            raise SpillwayError(f"{self._name}: the job was not taken: {_first_line(error)}.") from error
        self._futures.append(future)
        return future

    def adopt(self, job: Path) -> SubmititFuture | None:
        """The job of Slurm for ``job`` that waits or runs. One that Slurm does not know has ended, unless its process
        is there. Those of the local executor are known by that alone."""
        for script in (job / FILES).glob(f"*{SCRIPT}") if self._is_slurm else ():
            with suppress(Exception):  # submitit's errors have no family; what is not adopted ends without its job
                submitted = self._submitit.SlurmJob(folder=job / FILES, job_id=script.name.removesuffix(SCRIPT))
                is_known = submitted.state != "UNKNOWN" or files.is_under_way(job)
                if is_known and not submitted.done():
                    return SubmititFuture(submitted)
        return None

    def close(self) -> None:
        """Cancels the jobs that this one has submitted and that have not ended."""
        for each in self._futures:
            with suppress(Exception):  # nothing can be done about a Slurm that does not answer
                if not each.done():
                    each.cancel()


def _imported() -> Any:
    import submitit

    return submitit


def _first_line(error: BaseException) -> str:
    """The first line of an error that says something, without its full stop."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return (lines[0] if lines else type(error).__name__).rstrip(".")
