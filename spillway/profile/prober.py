"""Measures points: the conversation with `spillway-native probe`, and how long each point lasts."""

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Protocol

from spillway.errors import Interrupted, RunFailed
from spillway.native.process import Conversation, Event
from spillway.profile.points import PAGE_BYTES, Point, Sample, sample_of

Document = dict[str, Any]

# Virtual time costs only processor time, some microseconds for each page.
VIRTUAL_READS = 4_000
VIRTUAL_WRITES = 32_000
# Garbage is collected in bursts, an erase block at a time, and planes in step with each other: MQSim's drive at full
# wrote at 89 to 138 MB/s in points of half a superblock (an erase block of every plane), at 99 to 115 in points of two.
SUPERBLOCKS = 1.5
MOST_WRITE_PAGES = 100_000
VIRTUAL_IOS_PER_THREAD = 32  # enough that the start of each of k threads has no effect
VIRTUAL_READ_PAGES = 16_384
OPS_PER_THREAD = 4  # M22's threads end together only on average; a thread of fewer operations would show its start
# A write cache starts each point empty and, near the knee, fills at half the rate of the writes: twice its size does.
RAMP_CACHES = 2
STAGGERED_CACHES = 16  # a staggered point has no ramp: what the cache hides is under 1/16 of what is written

RAMP_SHARE = 0.1  # of a real point's seconds: queues fill in milliseconds. Source: guess
# Real drives: a staggered point is given up to this many operations for each thread, and ends by its seconds.
REAL_STAGGERED_OPS = 1_000_000


class NothingMeasured(RunFailed):
    """A point was over before the first of its operations was."""


class Pace(Protocol):
    """How long a point is measured."""

    def timed(self, point: Point) -> Point:
        """``point`` with its ios or seconds, and its ramp."""
        ...


@dataclass(frozen=True)
class VirtualPace:
    """For drives in virtual time: so many operations that a point's figures repeat within a percent or so."""

    cache_bytes: int = 0
    superblock_bytes: int = 0

    def timed(self, point: Point) -> Point:
        """Counts by what is written and how many threads there are."""
        if point.pattern == "staggered":
            return replace(point, ios=self._staggered_ios(point))
        point = replace(point, numjobs=point.k, iodepth=1)  # threads, as both papers have it: here they cost nothing
        base = VIRTUAL_READS
        if point.read_share < 1:
            pages_each = max(1, point.bs_bytes // PAGE_BYTES)
            base = max(VIRTUAL_READS, math.ceil(self._write_pages() / pages_each))
        ios = max(base, VIRTUAL_IOS_PER_THREAD * point.k)
        ramp = 2 * point.k
        if point.read_share < 1:
            ramp += math.ceil(RAMP_CACHES * self.cache_bytes / point.bs_bytes / (1 - point.read_share))
        return replace(point, ios=ios, ramp_ios=ramp)

    def _write_pages(self) -> int:
        superblock = SUPERBLOCKS * self.superblock_bytes / PAGE_BYTES
        return int(min(MOST_WRITE_PAGES, max(VIRTUAL_WRITES, superblock)))

    def _staggered_ios(self, point: Point) -> int:
        pages = VIRTUAL_READ_PAGES
        if point.op == "write":
            pages = max(self._write_pages(), STAGGERED_CACHES * self.cache_bytes // PAGE_BYTES)
        each = math.ceil(pages * PAGE_BYTES / point.bs_bytes / point.numjobs)
        return point.numjobs * max(OPS_PER_THREAD, each)


@dataclass(frozen=True)
class RealPace:
    """For drives in real time: each point lasts ``seconds``, its ramp included."""

    seconds: float

    def timed(self, point: Point) -> Point:
        """The same seconds for every point; a staggered one has no ramp."""
        if point.pattern == "staggered":
            return replace(point, ios=point.numjobs * REAL_STAGGERED_OPS, seconds=self.seconds)
        ramp = RAMP_SHARE * self.seconds
        return replace(point, seconds=self.seconds - ramp, ramp_s=ramp)


class Prober:
    """A target in its initial state, and the samples measured on it so far."""

    def __init__(
        self,
        conversation: Conversation,
        request: Document,
        pace: Pace,
        engine: str = "io_uring",
        on_sample: Callable[[Sample], None] | None = None,
    ) -> None:
        """Opens the target; raises SpillwayError with the native side's sentence where it is refused."""
        self._conversation, self._engine, self._on_sample = conversation, engine, on_sample
        self.pace = pace
        self.samples: list[Sample] = []
        self.fill = 1.0
        self.ready: Event = conversation.ask(request, "ready")
        self.fill = self.ready.get("fill") or 1.0

    def measure(self, point: Point) -> Sample:
        """Measures one point and keeps the sample. Raises NothingMeasured where no operation ended within it,
        Interrupted where it was ended early."""
        timed = replace(self.pace.timed(point), fill=self.fill)
        number = len(self.samples)
        answer = self._conversation.ask(timed.request(number, self._engine), "measurement")
        if not answer["complete"]:
            raise Interrupted("Ended before everything was measured; nothing was kept.")
        if not answer["ios"] or not answer["seconds"]:
            raise NothingMeasured(
                f"The point of {point.k} {point.op}s of {point.bs_bytes} bytes ended before it had measured anything."
            )
        sample = sample_of(timed, answer)
        self.samples.append(sample)
        if self._on_sample is not None:
            self._on_sample(sample)
        return sample

    def prepare(self, kind: str, capacities: float, seconds: float | None = None) -> Event:
        """Writes the target as preconditioning does, ``capacities`` times its size or for ``seconds``, whichever ends
        first. Returns the native side's event."""
        line = {"prepare": {"kind": kind, "capacities": capacities, "seconds": seconds}}
        self.ready = self._conversation.ask(line, "ready")
        return self.ready

    def refill(self, fill: float) -> None:
        """A new emulated drive in the steady state of ``fill``."""
        self.ready = self._conversation.ask({"fill": fill}, "ready")
        self.fill = fill


class Stopwatch:
    """Seconds since it was made, and what is left of a budget."""

    def __init__(self, budget_s: float, clock: Callable[[], float] = time.monotonic) -> None:
        """Starts now."""
        self._clock, self._start, self.budget_s = clock, clock(), budget_s

    @property
    def spent_s(self) -> float:
        """Seconds so far."""
        return self._clock() - self._start

    @property
    def left_s(self) -> float:
        """Seconds left; negative when the budget is overdrawn."""
        return self.budget_s - self.spent_s
