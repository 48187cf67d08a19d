"""A cell in a process of its own, which ends when its starter does: it holds one end of a pipe to it.

On this machine the starter is the sweep itself; on another it is the task of a cluster, ``run_job``.
"""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from spillway.errors import SpillwayError
from spillway.native.interruption import GRACE_S
from spillway.sweep.job import LOG, last_line

KILL_AFTER_S = (
    GRACE_S + 10
)  # the process ends its native one after GRACE_S and writes down what there is. Source: guess
SIGNALS = {each.value: each.name for each in signal.Signals}  # the real-time ones have only numbers


class CellProcess:
    """The process of a cell on this machine."""

    def __init__(self, job: Path, environment: Mapping[str, str] | None = None) -> None:
        """Starts it in a session of its own: a Ctrl-C in the terminal reaches it once, by ``cancel``. Raises
        SpillwayError where it cannot be started."""
        self._job = job
        self._cancelled_s: float | None = None
        try:
            with (job / LOG).open("ab") as log:
                self._process = subprocess.Popen(
                    [sys.executable, "-P", "-m", "spillway.sweep.worker", str(job)],
                    stdin=subprocess.PIPE,
                    stdout=log,
                    stderr=log,
                    start_new_session=True,
                    env=None if environment is None else {**os.environ, **environment},
                )
        except OSError as error:
            raise SpillwayError(f"{sys.executable} could not be started: {error.strerror}.") from error

    def done(self) -> bool:
        """Whether it has ended. One that was cancelled and does not end is killed after KILL_AFTER_S."""
        if self._process.poll() is not None:
            self._close()
            return True
        if self._cancelled_s is not None and time.monotonic() - self._cancelled_s > KILL_AFTER_S:
            self._process.kill()
        return False

    def cancel(self) -> None:
        """Asks it to end."""
        if self._cancelled_s is None and self._process.poll() is None:
            self._cancelled_s = time.monotonic()
            self._process.send_signal(signal.SIGINT)

    def why(self) -> str:
        """How it ended, and the last line that it wrote."""
        code = self._process.returncode
        how = f"was ended by signal {SIGNALS.get(-code, -code)}" if code < 0 else f"ended with exit code {code}"
        said = last_line(self._job / LOG)
        return f"its process {how}" + (f": {said}" if said else "")

    def let_go(self) -> None:
        """Closes the pipe: the process ends by itself."""
        self._close()

    def _close(self) -> None:
        if self._process.stdin is not None:
            with suppress(BrokenPipeError):
                self._process.stdin.close()


def run_job(job: str, environment: Mapping[str, str]) -> str:
    """Runs the cell of ``job`` to its end, in the task of a cluster. Returns why it ended without an answer, else "".
    A KeyboardInterrupt, by which clusters cancel tasks, is passed on, and raised when the cell has ended."""
    cell = CellProcess(Path(job), environment)
    try:
        while not cell.done():
            time.sleep(TASK_POLL_S)
    except KeyboardInterrupt:
        cell.cancel()
        while not cell.done():
            with suppress(KeyboardInterrupt):  # it was asked to end already
                time.sleep(TASK_POLL_S)
        raise
    finally:
        cell.let_go()
    return cell.why()


TASK_POLL_S = 0.1
