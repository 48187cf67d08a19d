"""LevelDB's tree under uniform random puts, with the keys themselves: for loads of few pairs, which large ones make.

    wa_app = (log + flushed tables + sum over compactions of their output) / (pairs * pair_bytes)          (C1)

models/leveldb.py takes tables as intervals that touch one another, with a mean number of keys in each. But a table of
two values has a key at each end, and nothing between its last key and the next table's first. So half of the keys'
range lies in no table, and a compaction of one such table finds half of what that model says in the next level. Here
keys are drawn, and a table reaches from its first to its last.

Rules and symbols as in models/leveldb.py, and two more (db/version_set.cc, db/dbformat.h):
    L0       a table is compacted with those that overlap it, and with those that overlap these
    flush    a table that overlaps nothing in L0 and L1 goes a level down, to L2 at most (kMaxMemCompactLevel)

Source: LevelDB 1.23's sources for the rules; cascaded-WA paper for what is reproduced (C12, C19).
Holds for: as models/leveldb.py, with at most MOST_PAIRS pairs.
Ignores: seek compactions, the MANIFEST, partial pages at the drive, and that a flush may come amid a compaction.
"""

import math
from bisect import bisect_left, bisect_right
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from spillway.models.leveldb import (
    EXPANDED,
    GRANDPARENTS,
    GROWTH,
    L0_COMPACTION,
    L0_STOP,
    L1_BYTES,
    LEVELS,
    LOG_ENTRY_BYTES,
    Shape,
    Written,
    fill_s,
)

MOST_PAIRS = 50_000  # that are drawn: seconds of simulation, and the loads of values of 1 MiB. Source: guess
MOST_FLUSHED_LEVEL = 2  # config::kMaxMemCompactLevel

Keys = NDArray[np.int64]  # of a table, in order


@dataclass
class _Level:
    """Tables of a level: below L0 in order and apart from one another, in L0 by age."""

    ordered: bool
    tables: list[Keys] = field(default_factory=list)
    lows: list[int] = field(default_factory=list)
    highs: list[int] = field(default_factory=list)
    entries: int = 0
    pointer: int = -1  # the last key that was compacted

    def overlapping(self, low: int, high: int) -> list[int]:
        """Indices of tables with keys in [low, high]."""
        if self.ordered:
            return list(range(bisect_left(self.highs, low), bisect_right(self.lows, high)))
        return [i for i in range(len(self.tables)) if self.lows[i] <= high and self.highs[i] >= low]

    def take(self, indices: list[int]) -> list[Keys]:
        """Removes tables and returns them."""
        taken = [self.tables[i] for i in indices]
        for i in reversed(indices):
            del self.tables[i], self.lows[i], self.highs[i]
        self.entries -= sum(map(len, taken))
        return taken

    def add(self, tables: list[Keys]) -> None:
        """Tables that follow one another with none of the level's between them."""
        at = bisect_left(self.lows, int(tables[0][0])) if self.ordered else len(self.tables)
        self.tables[at:at] = tables
        self.lows[at:at] = [int(each[0]) for each in tables]
        self.highs[at:at] = [int(each[-1]) for each in tables]
        self.entries += sum(map(len, tables))

    def range_of(self, indices: list[int]) -> tuple[int, int]:
        """The first and the last key of some tables."""
        return min(self.lows[i] for i in indices), max(self.highs[i] for i in indices)


class _Tree:
    def __init__(self, shape: Shape) -> None:
        self.entry_bytes = shape.table_entry_bytes
        self.file_bytes = shape.max_file_bytes
        self.table_entries = math.ceil(self.file_bytes / self.entry_bytes)  # the last one makes it full
        self.levels = [_Level(ordered=number > 0) for number in range(LEVELS)]

    def bytes_of(self, level: _Level, indices: list[int]) -> float:
        return sum(len(level.tables[i]) for i in indices) * self.entry_bytes

    def flush(self, table: Keys) -> None:
        """A table of a memtable, where PickLevelForMemTableOutput puts it."""
        number, low, high = 0, int(table[0]), int(table[-1])
        if not self.levels[0].overlapping(low, high):
            while number < MOST_FLUSHED_LEVEL and not self.levels[number + 1].overlapping(low, high):
                if self.much_below(number + 2, low, high):
                    break
                number += 1
        self.levels[number].add([table])

    def much_below(self, number: int, low: int, high: int) -> bool:
        """Whether a table would overlap more than ten tables' size there."""
        if number >= LEVELS:
            return False
        level = self.levels[number]
        return self.bytes_of(level, level.overlapping(low, high)) > GRANDPARENTS * self.file_bytes

    def level_to_compact(self) -> int | None:
        """The level with the highest score, None where none is at its limit."""
        scores = [len(self.levels[0].tables) / L0_COMPACTION]
        for above, level in enumerate(self.levels[1:-1]):
            scores.append(level.entries * self.entry_bytes / (L1_BYTES * GROWTH**above))
        best = max(range(len(scores)), key=scores.__getitem__)
        return best if scores[best] >= 1 else None

    def compact(self, number: int) -> int:
        """Compacts a level once. Returns the pairs written to the next one."""
        level, below = self.levels[number], self.levels[number + 1]
        inputs = [next((i for i, high in enumerate(level.highs) if high > level.pointer), 0)]
        if level.ordered:
            inputs = [bisect_right(level.highs, level.pointer) % len(level.highs)]
        inputs = self.with_overlapping(level, inputs)
        below_inputs = below.overlapping(*level.range_of(inputs))
        if below_inputs:
            inputs = self.expanded(level, below, inputs, below_inputs)
        low, high = level.range_of(inputs)
        level.pointer = high
        if len(inputs) == 1 and not below_inputs and not self.much_below(number + 2, low, high):
            below.add(level.take(inputs))
            return 0
        merged = np.unique(np.concatenate(level.take(inputs) + below.take(below_inputs)))
        below.add(self.cut(merged, number + 2))
        return len(merged)

    def with_overlapping(self, level: _Level, inputs: list[int]) -> list[int]:
        """In L0 with all that overlap, until no more do (GetOverlappingInputs)."""
        while not level.ordered:
            more = level.overlapping(*level.range_of(inputs))
            if len(more) == len(inputs):
                break
            inputs = more
        return inputs

    def expanded(self, level: _Level, below: _Level, inputs: list[int], below_inputs: list[int]) -> list[int]:
        """More tables of the level, where the next one's inputs stay as they are (SetupOtherInputs)."""
        low, high = level.range_of(inputs)
        below_low, below_high = below.range_of(below_inputs)
        more = self.with_overlapping(level, level.overlapping(min(low, below_low), max(high, below_high)))
        size = self.bytes_of(level, more) + self.bytes_of(below, below_inputs)
        fits = size < EXPANDED * self.file_bytes and below.overlapping(*level.range_of(more)) == below_inputs
        return more if fits else inputs

    def cut(self, keys: Keys, grandparent: int) -> list[Keys]:
        """Keys as tables: full ones, and shorter ones where too much would lie below them two levels down."""
        starts = self.stops(keys, self.levels[grandparent]) if grandparent < LEVELS else []
        tables, begin = [], 0
        for stop in [*starts, len(keys)]:
            while begin < stop:
                end = min(begin + self.table_entries, stop)
                tables.append(keys[begin:end])
                begin = end
        return tables

    def stops(self, keys: Keys, below: _Level) -> list[int]:
        """Before which keys ShouldStopBefore ends a table: each ten tables' size of the level two below."""
        stops, seen = [], 0.0
        for i in below.overlapping(int(keys[0]), int(keys[-1])):
            seen += len(below.tables[i]) * self.entry_bytes
            if seen > GRANDPARENTS * self.file_bytes:
                stops.append(int(np.searchsorted(keys, below.highs[i], side="right")))
                seen = 0.0
        return stops


def fill_random(shape: Shape, pairs: int, seed: int = 1) -> Written:
    """Puts ``pairs`` random keys, out of as many, into an empty LevelDB; returns what was written when the last one is
    acknowledged. The same seed draws the same keys.

    Raises ValueError for a load of nothing, and for one of more than MOST_PAIRS.
    """
    if not 1 <= pairs <= MOST_PAIRS:
        raise ValueError(f"a load whose keys are drawn puts 1 to {MOST_PAIRS} pairs")
    keys = np.random.default_rng(seed).integers(0, pairs, pairs)
    tree, done, entry = _Tree(shape), Written(), shape.table_entry_bytes
    memtable = math.floor(shape.memtable_entries) + 1  # full with the pair that exceeds it
    compaction_s = 0.0  # that the background thread is ahead of the writer
    for begin in range(0, pairs, memtable):
        batch = keys[begin : begin + memtable]
        done.seconds += fill_s(shape, len(batch), len(tree.levels[0].tables))
        done.log_bytes += len(batch) * (shape.key_bytes + shape.value_bytes + LOG_ENTRY_BYTES)
        while True:  # what the background thread did meanwhile; the writer waits for it at L0_STOP tables
            level = tree.level_to_compact()
            waits = len(tree.levels[0].tables) >= L0_STOP
            if level is None or (compaction_s >= done.seconds and not waits):
                break
            written = tree.compact(level) * entry
            done.compaction_bytes[level + 1] += written
            compaction_s += written / 1e6 / shape.compaction_mb_s
            if waits:
                done.seconds = max(done.seconds, compaction_s)
        if level is None:
            compaction_s = max(compaction_s, done.seconds)
        if len(batch) == memtable:
            table = np.unique(batch)
            tree.flush(table)
            done.flush_bytes += len(table) * entry
            compaction_s += len(table) * entry / 1e6 / shape.compaction_mb_s
        else:
            done.last_log_bytes = len(batch) * (shape.key_bytes + shape.value_bytes + LOG_ENTRY_BYTES)
    done.user_bytes = pairs * (shape.key_bytes + shape.value_bytes)
    done.level_bytes = [level.entries * entry for level in tree.levels]
    return done
