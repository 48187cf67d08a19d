"""Ctrl-C and SIGTERM during a run: noted and passed on to the native processes; no exception is raised.

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
SIMULATION_GRACE_S = 1.0  # of one that computes alone: it looks for a signal every some milliseconds. Source: guess
SOON_S = 0.05


class Interruption:
    """The handler of SIGINT and SIGTERM. The first signal asks all native processes that run to end cleanly. Each is
    killed its grace later, and all by another signal that comes more than ``ONE_REQUEST_S`` after the first. Without a
    running process the second signal raises KeyboardInterrupt.

    Threads share it: each may have a process."""

    def __init__(self) -> None:
        """Nothing was asked yet."""
        self._asked_s: float | None = None
        # By identity, each with its grace. Single operations on it alone: a handler may come while a lock is held.
        self._running: dict[int, tuple[subprocess.Popen[bytes], float]] = {}

    @property
    def requested(self) -> bool:
        """Whether a signal came."""
        return self._asked_s is not None

    def __call__(self, number: int, frame: FrameType | None) -> None:
        """Handles a signal."""
        now_s = time.monotonic()
        if number == signal.SIGALRM:
            self._end_overdue(now_s)
        elif self._asked_s is None:
            self._asked_s = now_s
            for process, _ in list(self._running.values()):
                _send(process, signal.SIGINT)
            self._end_overdue(now_s)
        elif now_s - self._asked_s >= ONE_REQUEST_S:
            running = list(self._running.values())
            if not running:
                raise KeyboardInterrupt
            for process, _ in running:
                _send(process, signal.SIGKILL)

    @contextmanager
    def passed_on_to(self, process: subprocess.Popen[bytes], grace_s: float | None = None) -> Iterator[None]:
        """Within the block signals are passed on to ``process``, including one that came before the block."""
        self._running[id(process)] = process, GRACE_S if grace_s is None else grace_s
        if self.requested:
            _send(process, signal.SIGINT)
            signal.setitimer(signal.ITIMER_REAL, SOON_S)  # its grace may be the next to pass
        try:
            yield
        finally:
            del self._running[id(process)]

    def _end_overdue(self, now_s: float) -> None:
        """Kills the processes whose grace is over, and comes back when the next one's is."""
        asked_s = now_s if self._asked_s is None else self._asked_s
        left_s = []
        for process, grace_s in list(self._running.values()):
            if now_s - asked_s >= grace_s:
                _send(process, signal.SIGKILL)
            else:
                left_s.append(asked_s + grace_s - now_s)
        # No thread: a handler may come while a lock is held.
        signal.setitimer(signal.ITIMER_REAL, max(SOON_S, min(left_s)) if left_s else 0)


def _send(process: subprocess.Popen[bytes], number: signal.Signals) -> None:
    if process.poll() is None:
        process.send_signal(number)


@contextmanager
def interruptible() -> Iterator[Interruption]:
    """Within the block signals are noted by the Interruption that it yields; nested blocks share the outermost one, and
    so do other threads while it lasts. Outside of the main thread, which alone may handle signals, and of such a block
    ``requested`` stays False."""
    outer = signal.getsignal(signal.SIGINT)
    if isinstance(outer, Interruption):
        yield outer
        return
    if threading.current_thread() is not threading.main_thread():
        yield Interruption()
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
