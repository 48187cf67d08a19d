"""The process of a cell: ``python -m spillway.sweep.worker JOB``. Runs it and leaves its answer in the job.

It runs on any machine that shares the file system, and only if that has the same package, spillway-native and presets:
then the cell has the same address there.
"""

import logging
import os
import shutil
import signal
import socket
import sys
import threading
import time
from dataclasses import asdict, replace
from pathlib import Path

from spillway.errors import RunFailed, SpillwayError
from spillway.native.interruption import SIGNALS, interruptible
from spillway.plan.document import load_plan
from spillway.run.execute import Finished, execute
from spillway.rundir.directory import write_json
from spillway.sweep import job as files
from spillway.sweep.cell import address_of
from spillway.sweep.job import Answer, Job

LOGGER = logging.getLogger(__name__)


def main(arguments: list[str]) -> int:
    """Runs the cell of the job that is named; returns the process's exit code."""
    job, begun = Path(arguments[0]), time.monotonic()
    signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)  # Ray's workers block SIGINT, and what they start inherits that
    is_alone = threading.Event()
    lock = files.hold(job)  # to the end of the process: until then another sweep does not run this cell too
    with interruptible():
        threading.Thread(target=_end_with_starter, args=(is_alone,), daemon=True).start()
        try:
            answer = run_cell(job)
        except SpillwayError as error:
            answer = files.answer_to(error)
        if answer.end == "interrupted" and is_alone.is_set():
            answer = Answer("died", "its worker died: what had started it has gone", SpillwayError.exit_code)
        answer = replace(answer, host=socket.gethostname(), seconds=time.monotonic() - begun)
        try:
            write_json(job / files.ANSWER, asdict(answer))
        except SpillwayError as error:  # the sweep reads it in the log, where there is room for that
            LOGGER.error("%s", error)
            return RunFailed.exit_code
        finally:
            if lock is not None:
                lock.close()
    return answer.exit_code


def _end_with_starter(is_alone: threading.Event) -> None:
    """The pipe from the starter ends when that does, however it ends. Then nobody waits for this cell."""
    while os.read(0, 1):  # no buffered file: a thread that waits in one holds its lock, also when the process ends
        pass
    is_alone.set()
    os.kill(os.getpid(), signal.SIGINT)


def run_cell(job: Path) -> Answer:
    """Runs the cell of ``job`` unless it is done, and puts its run directory in its place. Raises SpillwayError."""
    asked, out = files.read_job(job), job.parents[1]
    if (there := files.read_cell(out, asked.address)) is not None:
        return files.answer_of(*there)
    plan, kept = load_plan(job / files.PLAN), Path(asked.kept)
    _check_alike(asked, address_of(plan, kept))
    finished = execute(plan, job / files.RUN, asked.command, None, kept, with_report=False)
    return _kept(finished, out, asked.address)


def _check_alike(asked: Job, address: str) -> None:
    """Another build, or another preset by the same name, would give figures that the address does not stand for."""
    if address != asked.address:
        raise SpillwayError(
            f"{socket.gethostname()} has another spillway, spillway-native or preset than where the sweep was started, "
            "or a file of the plan has changed since: install the same on every machine."
        )


def _kept(finished: Finished, out: Path, address: str) -> Answer:
    """Puts the run directory where it belongs by how it ended."""
    place, code = files.place_of(out, address), finished.exit_code
    if finished.interrupted:
        shutil.rmtree(finished.directory, ignore_errors=True)
        return Answer("interrupted", "ended by Ctrl-C", code)
    if finished.failure and not finished.drive_full:
        files.put(finished.directory, out / files.FAILED / address, replaces=True)
        return Answer("failed", finished.failure, code, by_host=finished.host_failed)
    files.put(finished.directory, place, replaces=False)
    shutil.rmtree(out / files.FAILED / address, ignore_errors=True)
    return Answer("drive full" if finished.failure else "done", finished.failure, code)


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
