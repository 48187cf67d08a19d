"""LevelDB's tree under uniform random puts: which tables there are, what compaction rewrites, what that comes to.

    wa_app = (log + flushed tables + sum over compactions of their output) / (pairs * pair_bytes)          (C1)

A simulation of version 1.23's rules on tables as intervals of keys, with the mean number of keys in each:

    entries of n_1, n_2, … keys out of the r possible keys of a range, merged: r (1 - prod(1 - n_i / r))

Rules (db/version_set.cc, db/db_impl.cc, db/dbformat.h), symbols as there:
    L0       a table for each memtable; compacted from kL0_CompactionTrigger = 4 tables on, all that overlap together
    L1..L6   10 MiB, ten times more in each next; the level whose size is most above its limit is compacted, its tables
             in turn, each with what it overlaps in the next level, and with more of its own level where that adds
             nothing to the next one and all stays below 25 tables' size
    output   tables of max_file_size, cut early where one would overlap more than ten tables' size two levels down
    a table without anything below it moves without being written
    writers  delayed by 1 ms each from 8 L0 tables on, stopped at 12; flushes go before compactions, and amid them

Source: LevelDB 1.23's sources for the rules; cascaded-WA paper for what is reproduced (C12, C17-C21).
Holds for: uniform random keys with replacement, one writer without a limit, no compression, no reads.
Ignores: the variance of how many keys lie in a table, seek compactions, the MANIFEST, partial pages at the drive.
Time is only a ratio here, of what a writer puts to what compaction writes meanwhile: it decides how many L0 tables wait
for a compaction. A writer that is held up most of the time, as in the paper, finds 8 to 12.
"""

from bisect import bisect_left, bisect_right
from dataclasses import dataclass, field
from itertools import pairwise

MIB = 2**20
LEVELS = 7  # config::kNumLevels
L0_COMPACTION, L0_SLOWDOWN, L0_STOP = 4, 8, 12  # config::kL0_…
L1_BYTES = 10 * MIB  # MaxBytesForLevel(1)
GROWTH = 10  # of a level over the one before
EXPANDED = 25  # ExpandedCompactionByteSizeLimit, in tables
GRANDPARENTS = 10  # MaxGrandParentOverlapBytes, in tables
DELAY_S = 0.001  # of each write from L0_SLOWDOWN tables on

# Of a memtable: the skiplist's node (a key's pointer and 4/3 links of 8 bytes, aligned) and two length bytes.
# Source: db/skiplist.h (branching 4), util/arena.cc
MEMTABLE_ENTRY_BYTES = 8 + 8 * 4 / 3 + 4 + 2
SEQUENCE_BYTES = 8  # of an internal key
# Of the log: record header 7, batch header 12, tag 1, two lengths. Source: db/log_format.h, db/write_batch.cc
LOG_ENTRY_BYTES = 22
# Of a table's entry: three lengths; and of its block, restarts, index and trailers. Source: table/block_builder.cc; the
# share is that of blocks of 4 KiB with 16 entries between restarts
TABLE_ENTRY_BYTES = 3
TABLE_OVERHEAD = 1.008


@dataclass(frozen=True)
class Shape:
    """A LevelDB and what is put into it. Sizes in bytes."""

    key_bytes: int = 16
    value_bytes: int = 100
    write_buffer_bytes: int = 4 * MIB
    max_file_bytes: int = 2 * MIB
    shared_bytes: float = 6.0  # of a key, with the one before it in a block: those of big-endian numbers, guess
    # The order of runs in virtual time on a small machine; spillway/suite/law.py takes each run's own. Source: guess
    puts_per_s: float = 300_000.0  # of a writer that is neither delayed nor stopped
    compaction_mb_s: float = 100.0  # bytes that compaction writes in a second, in MB

    @property
    def table_entry_bytes(self) -> float:
        """Bytes of one pair in a table."""
        own = self.key_bytes - self.shared_bytes + SEQUENCE_BYTES + TABLE_ENTRY_BYTES + self.value_bytes
        return own * TABLE_OVERHEAD

    @property
    def memtable_entries(self) -> float:
        """Pairs until a memtable is full."""
        each = self.key_bytes + SEQUENCE_BYTES + self.value_bytes + MEMTABLE_ENTRY_BYTES
        return max(1.0, self.write_buffer_bytes / each)


@dataclass
class Written:
    """What a simulated load wrote, in bytes, and what it left."""

    user_bytes: float = 0.0
    log_bytes: float = 0.0
    last_log_bytes: float = 0.0  # of these, those of the pairs in the memtable at the end: that log is still there
    flush_bytes: float = 0.0
    compaction_bytes: list[float] = field(default_factory=lambda: [0.0] * LEVELS)  # by the level written to
    level_bytes: list[float] = field(default_factory=lambda: [0.0] * LEVELS)  # what is there at the end
    seconds: float = 0.0

    @property
    def wa_app(self) -> float:
        """Host bytes / user bytes (C1); no partial pages at the drive."""
        return (self.log_bytes + self.flush_bytes + sum(self.compaction_bytes)) / self.user_bytes


@dataclass
class _Table:
    low: float  # of the keys' range [0, 1)
    high: float
    entries: float


class _Level:
    """Tables of a level below L0, in order and apart from one another."""

    def __init__(self) -> None:
        self.tables: list[_Table] = []
        self.lows: list[float] = []
        self.entries = 0.0
        self.pointer = 0.0  # where the next compaction of this level goes on

    def overlapping(self, low: float, high: float) -> tuple[int, int]:
        """Indices [first, last) of tables that share keys with [low, high)."""
        first = bisect_right(self.lows, low) - 1
        if first < 0 or self.tables[first].high <= low:
            first += 1
        return first, bisect_left(self.lows, high)

    def replace(self, first: int, last: int, tables: list[_Table]) -> None:
        self.entries += sum(t.entries for t in tables) - sum(t.entries for t in self.tables[first:last])
        self.tables[first:last] = tables
        self.lows[first:last] = [t.low for t in tables]


class _Tree:
    def __init__(self, shape: Shape, keys: float) -> None:
        self.shape = shape
        self.keys = keys
        self.l0: list[float] = []  # entries of each table
        self.levels = [_Level() for _ in range(LEVELS)]  # of which the first is not used
        self.file_entries = shape.max_file_bytes / shape.table_entry_bytes

    def union(self, width: float, *counts: float) -> float:
        """Different keys among `counts` keys of a range of that width."""
        possible = self.keys * width
        absent = 1.0
        for count in counts:
            absent *= max(0.0, 1.0 - count / possible)
        return possible * (1.0 - absent)

    def level_to_compact(self) -> int | None:
        """The level with the highest score, None where none is at its limit."""
        scores = [len(self.l0) / L0_COMPACTION]
        limit = float(L1_BYTES)
        for level in self.levels[1:-1]:
            scores.append(level.entries * self.shape.table_entry_bytes / limit)
            limit *= GROWTH
        best = max(range(len(scores)), key=scores.__getitem__)
        return best if scores[best] >= 1 else None

    def compact(self, number: int) -> tuple[float, int]:
        """Compacts a level once. Returns the entries written, and the level they went to."""
        below = self.levels[number + 1]
        if number == 0:
            first, last = below.overlapping(0.0, 1.0)
            pieces = self.merged([], self.l0, below.tables[first:last], 0.0, 1.0)
            tables = self.cut(pieces, number + 2)
            below.replace(first, last, tables)
            self.l0.clear()
            return sum(t.entries for t in tables), 1
        level = self.levels[number]
        begin = bisect_left(level.lows, level.pointer)
        begin = 0 if begin >= len(level.tables) else begin
        end = begin + 1
        first, last = below.overlapping(level.tables[begin].low, level.tables[end - 1].high)
        begin, end = self.expanded(level, below, begin, end, first, last)
        inputs = level.tables[begin:end]
        level.pointer = inputs[-1].high
        if first == last and len(inputs) == 1:
            level.replace(begin, end, [])
            below.replace(first, first, inputs)
            return 0.0, number + 1
        below_inputs = below.tables[first:last]
        low = min(t.low for t in (*inputs, *below_inputs))
        high = max(t.high for t in (*inputs, *below_inputs))
        tables = self.cut(self.merged(inputs, [], below_inputs, low, high), number + 2)
        level.replace(begin, end, [])
        below.replace(first, last, tables)
        return sum(t.entries for t in tables), number + 1

    def expanded(self, level: _Level, below: _Level, begin: int, end: int, first: int, last: int) -> tuple[int, int]:
        """More tables of the level, where the next one's inputs stay as they are (SetupOtherInputs)."""
        if first == last:
            return begin, end
        low, high = below.tables[first].low, below.tables[last - 1].high
        low, high = min(low, level.tables[begin].low), max(high, level.tables[end - 1].high)
        more_begin, more_end = level.overlapping(low, high)
        more_low, more_high = level.tables[more_begin].low, level.tables[more_end - 1].high
        entries = sum(t.entries for t in level.tables[more_begin:more_end])
        entries += sum(t.entries for t in below.tables[first:last])
        if entries < EXPANDED * self.file_entries and below.overlapping(more_low, more_high) == (first, last):
            return more_begin, more_end
        return begin, end

    def merged(
        self, upper: list[_Table], whole: list[float], lower: list[_Table], low: float, high: float
    ) -> list[_Table]:
        """The inputs as one run: pieces between all bounds, each with its mean number of keys."""
        bounds = sorted({low, high, *(t.low for t in (*upper, *lower)), *(t.high for t in (*upper, *lower))})
        pieces = []
        u = w = 0
        for left, right in pairwise(bounds):
            width = right - left
            if width <= 0:
                continue
            while u < len(upper) and upper[u].high <= left:
                u += 1
            while w < len(lower) and lower[w].high <= left:
                w += 1
            counts = [entries * width for entries in whole]
            for tables, at in ((upper, u), (lower, w)):
                if at < len(tables) and tables[at].low <= left:
                    table = tables[at]
                    counts.append(table.entries * width / (table.high - table.low))
            if counts:
                pieces.append(_Table(left, right, self.union(width, *counts)))
        return pieces

    def cut(self, pieces: list[_Table], grandparent: int) -> list[_Table]:
        """The run as tables: full ones, and shorter ones where too much would lie below them two levels down."""
        stops = self.stops(self.levels[grandparent], pieces) if grandparent < LEVELS else []
        stops.append(float("inf"))
        next_stop = 0
        tables: list[_Table] = []
        full = self.file_entries * (1 - 1e-9)
        for piece in pieces:
            rate = piece.entries / (piece.high - piece.low)
            left = piece.low
            while left < piece.high:
                while stops[next_stop] <= left:
                    next_stop += 1
                if not tables or tables[-1].entries >= full or left in stops:
                    tables.append(_Table(left, left, 0.0))
                table = tables[-1]
                end = left + (self.file_entries - table.entries) / rate
                right = min(piece.high, stops[next_stop], end)
                if right <= left:  # less room than a step of floating point
                    table.entries = self.file_entries
                    continue
                table.high = right
                table.entries += (right - left) * rate
                left = right
        return tables

    def stops(self, below: _Level, pieces: list[_Table]) -> list[float]:
        """Where ShouldStopBefore ends a table: each ten tables' size of the level two below."""
        if not pieces or not below.tables:
            return []
        first, last = below.overlapping(pieces[0].low, pieces[-1].high)
        stops, seen = [], 0.0
        for table in below.tables[first:last]:
            seen += table.entries
            if seen > GRANDPARENTS * self.file_entries:
                stops.append(table.high)
                seen = 0.0
        return stops


def fill_random(shape: Shape, pairs: float, keys: float | None = None) -> Written:
    """Puts ``pairs`` uniform random keys into an empty LevelDB; returns what was written when the last one is
    acknowledged. ``keys``: out of how many (None: as many as pairs, as db_bench's fillrandom does).

    Raises ValueError for a load of nothing.
    """
    keys = pairs if keys is None else keys
    if pairs < 1 or keys < 1:
        raise ValueError("a load puts at least one pair")
    tree = _Tree(shape, keys)
    done = Written()
    entry = shape.table_entry_bytes
    memtable = shape.memtable_entries
    compaction_s = 0.0  # that the background thread is ahead of the writer
    put = 0.0
    while put < pairs:
        batch = min(memtable, pairs - put)
        put += batch
        done.seconds += fill_s(shape, batch, len(tree.l0))
        done.log_bytes += batch * (shape.key_bytes + shape.value_bytes + LOG_ENTRY_BYTES)
        while True:  # what the background thread did meanwhile; the writer waits for it at L0_STOP tables
            level = tree.level_to_compact()
            waits = len(tree.l0) >= L0_STOP
            if level is None or (compaction_s >= done.seconds and not waits):
                break
            entries, into = tree.compact(level)
            done.compaction_bytes[into] += entries * entry
            compaction_s += entries * entry / 1e6 / shape.compaction_mb_s
            if waits:
                done.seconds = max(done.seconds, compaction_s)
        if level is None:
            compaction_s = max(compaction_s, done.seconds)
        if batch == memtable:
            kept = tree.union(1.0, batch)
            tree.l0.append(kept)
            done.flush_bytes += kept * entry
            compaction_s += kept * entry / 1e6 / shape.compaction_mb_s
        else:
            done.last_log_bytes = batch * (shape.key_bytes + shape.value_bytes + LOG_ENTRY_BYTES)
    done.user_bytes = pairs * (shape.key_bytes + shape.value_bytes)
    done.level_bytes = [sum(tree.l0) * entry, *(level.entries * entry for level in tree.levels[1:])]
    return done


def fill_s(shape: Shape, pairs: float, l0_tables: int) -> float:
    """Seconds in which a writer puts ``pairs`` pairs while L0 holds ``l0_tables`` tables."""
    delay = DELAY_S if l0_tables >= L0_SLOWDOWN else 0.0
    return pairs * (1.0 / shape.puts_per_s + delay)
