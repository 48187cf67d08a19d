"""A cell that an earlier sweep has started and that is still under way, as when that sweep was killed.

Its process holds a lock on its job. It ends when its starter has gone, which on this machine takes seconds; a task of a
cluster goes on to its end. Either way it is waited for: started anew beside it, the cell would run twice.
"""

from pathlib import Path

from spillway.sweep import job as files


class Leftover:
    """The future of a process that is known by the lock on its job alone."""

    def __init__(self, job: Path) -> None:
        """Of a job that is under way."""
        self._job = job
        self._is_given_up = False

    def done(self) -> bool:
        """Whether the process has ended, or is not waited for any more."""
        return self._is_given_up or not files.is_under_way(self._job)

    def cancel(self) -> None:
        """Waits no longer. The process belongs to whoever has started it."""
        self._is_given_up = True

    def why(self) -> str:
        """Nothing is known of it."""
        return ""
