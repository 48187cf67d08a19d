"""Ctrl-C and SIGTERM during a run: noted and passed on to the native process; no exception is raised.

An exception at an arbitrary place would lose what was measured before it, for example between two runs. So a caller
that has results to keep checks ``requested`` between its steps.
"""

import signal
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

SIGNALS = (signal.SIGINT, signal.SIGTERM)

# `timeout -s INT` signals its child and then its child's group: two signals for one request. People who press Ctrl-C
# again have waited for longer. Source: guess
ONE_REQUEST_S = 0.5

# A process that was asked to end and does not is ended. A clean end takes seconds: an engine lets the compactions that
# it has begun write to a drive that is as slow as it is. Source: guess
GRACE_S = 120.0


class Interruption:
    """The handler of SIGINT and SIGTERM. The first signal asks the running native process to end cleanly. The process
    is killed ``GRACE_S`` later, or by another signal that comes more than ``ONE_REQUEST_S`` after the first. Without a
    running process the second signal raises KeyboardInterrupt."""

    def __init__(self) -> None:
        """Nothing was asked yet."""
        self._asked_s: float | None = None
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def requested(self) -> bool:
        """Whether a signal came."""
        return self._asked_s is not None

    def __call__(self, number: int, frame: FrameType | None) -> None:
        """Handles a signal."""
        now_s = time.monotonic()
        if number == signal.SIGALRM:
            self._send(signal.SIGKILL)
        elif self._asked_s is None:
            self._asked_s = now_s
            signal.setitimer(signal.ITIMER_REAL, GRACE_S)  # no thread: a handler may come while a lock is held
            self._send(signal.SIGINT)
        elif now_s - self._asked_s >= ONE_REQUEST_S:
            if self._process is None:
                raise KeyboardInterrupt
            self._send(signal.SIGKILL)

    @contextmanager
    def passed_on_to(self, process: subprocess.Popen[bytes]) -> Iterator[None]:
        """Within the block signals are passed on to ``process``, including one that came before the block."""
        self._process = process
        if self.requested:
            self._send(signal.SIGINT)
        try:
            yield
        finally:
            self._process = None

    def _send(self, number: signal.Signals) -> None:
        if self._process is not None and self._process.poll() is None:
            self._process.send_signal(number)


@contextmanager
def interruptible() -> Iterator[Interruption]:
    """Within the block signals are noted by the Interruption that it yields; nested blocks share the outermost one.
    Outside of the main thread, which alone may handle signals, ``requested`` stays False."""
    if threading.current_thread() is not threading.main_thread():
        yield Interruption()
        return
    outer = signal.getsignal(signal.SIGINT)
    if isinstance(outer, Interruption):
        yield outer
        return
    own = Interruption()
    before = {number: signal.signal(number, own) for number in (*SIGNALS, signal.SIGALRM)}
    try:
        yield own
    finally:
        if own.requested:
            signal.setitimer(signal.ITIMER_REAL, 0)
        for number, handler in before.items():
            signal.signal(number, handler)
