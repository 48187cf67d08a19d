"""WiscKey's design, as leveldb-vlog has it, under uniform random puts: what goes to the value log and what to the tree.

    wa_app = (records appended + records moved + tree's flushes and compactions) / (pairs * pair_bytes)          (C1)

The tree is LevelDB's (models/leveldb.py) with addresses of 12 bytes for values, and without a log of its own. Of a
segment whose records were appended between put a and put b, out of K keys, at put n there are still live

    records * K / (b - a) * (exp(-(n - b) / K) - exp(-(n - a) / K))

Garbage collection (native/engine/vlog/collector.h): with each segment that the log begins, the tail is looked at and
one more in turn; one whose first records are garbage by `garbage_ratio` or more is collected: what is live in it is
appended again, and put into the tree again. As many puts as keys leave 1 - 1/e = 63 % garbage at the tail.

Source: Lu et al., WiscKey, FAST'16, sections 3.2 and 3.3 for the design; native/engine/vlog for sizes and rules.
Holds for: uniform random keys with replacement, one writer without a limit, a drive that is never short of space.
Ignores: the sample's error, segments' headers, how long the collector takes, and what models/leveldb.py ignores.
"""

import math
from collections import deque
from dataclasses import dataclass, replace

from spillway.models.leveldb import MIB, Shape, Written
from spillway.models.leveldb import fill_random as fill_tree

ADDRESS_BYTES = 12  # native/engine/vlog/record.h: segment, offset and length
RECORD_BYTES = 5  # of a record: checksum and kind; the two lengths are varints
LOOKS = 2  # for each segment that is begun
LEAST_SEGMENTS = (
    8  # that the drive has room for, where a plan leaves their size to the engine; native/engine/vlog/engine.cc
)
LEAST_SEGMENT_BYTES = 4096


@dataclass(frozen=True)
class LogShape:
    """A value log and when it is collected. Defaults: leveldb-vlog's."""

    segment_bytes: int = 128 * MIB
    garbage_ratio: float = 0.8


@dataclass(frozen=True)
class Separated:
    """What a simulated load wrote, in bytes."""

    user_bytes: float
    log_bytes: float  # appended by writers
    moved_bytes: float  # appended by the collector
    removed_segments: int
    tree: Written

    @property
    def wa_app(self) -> float:
        """Host bytes / user bytes (C1); no partial pages at the drive."""
        tree = self.tree.flush_bytes + sum(self.tree.compaction_bytes)
        return (self.log_bytes + self.moved_bytes + tree) / self.user_bytes


def record_bytes(key_bytes: int, value_bytes: int) -> int:
    """Bytes of a record: pair, checksum, kind and two lengths (native/engine/vlog/record.h)."""
    lengths = sum(max(1, math.ceil(size.bit_length() / 7)) for size in (key_bytes, value_bytes))
    return RECORD_BYTES + lengths + key_bytes + value_bytes


def fill_random(shape: Shape, pairs: float, keys: float | None = None, log: LogShape | None = None) -> Separated:
    """Puts ``pairs`` uniform random keys into an empty leveldb-vlog; returns what was written when the last one is
    acknowledged. ``keys``: out of how many (None: as many as pairs, as db_bench's fillrandom does). ``shape`` is of
    the pairs that are put and of LevelDB's options.

    Raises ValueError for a load of nothing.
    """
    keys = pairs if keys is None else keys
    if pairs < 1 or keys < 1:
        raise ValueError("a load puts at least one pair")
    record = record_bytes(shape.key_bytes, shape.value_bytes)
    log = LogShape() if log is None else log
    moved, removed = _collect(max(1.0, log.segment_bytes / record), log.garbage_ratio, pairs, keys)
    return Separated(
        user_bytes=pairs * (shape.key_bytes + shape.value_bytes),
        log_bytes=pairs * record,
        moved_bytes=moved * record,
        removed_segments=removed,
        tree=fill_tree(replace(shape, value_bytes=ADDRESS_BYTES), pairs + moved, keys),
    )


def _collect(segment: float, garbage_ratio: float, pairs: float, keys: float) -> tuple[float, int]:
    """Records that are moved, and segments that are removed, in a log with segments of so many records."""
    segments: deque[tuple[float, float]] = deque()  # the puts between which each was filled; the head is not among them
    begin = put = moved = waiting = 0.0  # waiting: moved records that are not in a full segment yet
    removed = turn = 0
    while put + max(0.0, segment - waiting) <= pairs:
        put += max(0.0, segment - waiting)
        waiting = max(0.0, waiting - segment)
        segments.append((begin, put))
        begin = put
        for look in range(LOOKS):
            if not segments:
                break
            if look > 0:
                turn = (turn + 1) % len(segments)
            index = 0 if look == 0 else turn
            first, last = segments[index]
            if 1.0 - math.exp((first - put) / keys) < garbage_ratio:
                continue
            span = (last - first) / keys
            share = -math.expm1(-span) / span if span > 0 else 1.0
            live = segment * share * math.exp((last - put) / keys)
            del segments[index]
            removed += 1
            moved += live
            waiting += live
    return moved, removed
