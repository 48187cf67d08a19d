"""Reads ahead and writes behind on one drive: as many in flight as are allowed, in the order of asking.

A read is asked for early and taken when it is needed. A write is asked for and forgotten, until ``flush``; where as
many as allowed are in flight it waits for one of them. With one read and one write they take turns: one I/O is in
flight.
"""

from collections import deque
from collections.abc import Iterable, Iterator

from spillway.ssd.drive import PAGE_BYTES, Done, Drive


class Outstanding:
    """What a program has outstanding on a drive. A *ticket* stands for a read that was asked for; it is taken once."""

    def __init__(self, drive: Drive, reads: int = 1, writes: int = 1) -> None:
        """At most ``reads`` reads and ``writes`` writes in flight."""
        self.drive, self.reads, self.writes = drive, reads, writes
        self._in_turns = reads == writes == 1
        self._asked: deque[tuple[int, int, int]] = deque()  # ticket, offset, length
        self._reading: dict[int, int] = {}  # number of the I/O → ticket
        self._writing: set[int] = set()
        self._complete: set[int] = set()  # tickets
        self._tickets = 0
        self.pages_read = self.pages_written = 0
        self.busy_ns = 0  # sum of all latencies

    @property
    def free_reads(self) -> int:
        """How many reads that are asked for now go to the drive at once."""
        return 0 if self._asked or (self._in_turns and self._writing) else self.reads - len(self._reading)

    def read(self, offset_bytes: int, length_bytes: int = PAGE_BYTES) -> int:
        """Asks for a read; returns its ticket without waiting. Raises SpillwayError for a place that the drive has
        not."""
        self._tickets += 1
        self._asked.append((self._tickets, offset_bytes, length_bytes))
        self._issue()
        return self._tickets

    def take(self, ticket: int) -> None:
        """Waits until that read is complete. Raises as the drive's ``wait`` does."""
        while ticket not in self._complete:
            self._wait()
        self._complete.discard(ticket)

    def is_complete(self, ticket: int) -> bool:
        """Whether it can be taken without waiting."""
        return ticket in self._complete

    def in_order(self, offsets: Iterable[int]) -> Iterator[int]:
        """Reads pages in the order of ``offsets``, ``reads`` ahead: yields each offset when its page is there.

        At most so many pages are asked for and not yet taken, so they need room for no more.
        """
        ahead: deque[tuple[int, int]] = deque()
        for offset in offsets:
            ahead.append((offset, self.read(offset)))
            if len(ahead) >= self.reads:
                yield self._taken(ahead)
        while ahead:
            yield self._taken(ahead)

    def _taken(self, ahead: deque[tuple[int, int]]) -> int:
        offset, ticket = ahead.popleft()
        self.take(ticket)
        return offset

    def write(self, offset_bytes: int, length_bytes: int = PAGE_BYTES) -> None:
        """Writes behind. Raises SpillwayError for a place that the drive has not, and as the drive's ``wait`` does."""
        while len(self._writing) >= self.writes or (self._in_turns and self._reading):
            self._wait()
        self._writing.add(self.drive.write(offset_bytes, length_bytes))

    def flush(self) -> None:
        """Waits for all writes. Raises as the drive's ``wait`` does."""
        while self._writing:
            self._wait()

    def _issue(self) -> None:
        while self._asked and len(self._reading) < self.reads and not (self._in_turns and self._writing):
            ticket, offset, length = self._asked.popleft()
            self._reading[self.drive.read(offset, length)] = ticket

    def _wait(self) -> None:
        for done in self.drive.wait(1):
            self._note(done)
        self._issue()

    def _note(self, done: Done) -> None:
        self.busy_ns += done.latency_ns
        ticket = self._reading.pop(done.io, None)
        if ticket is None:
            self._writing.discard(done.io)
            self.pages_written += 1
        else:
            self._complete.add(ticket)
            self.pages_read += 1
