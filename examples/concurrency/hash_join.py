"""A hash join that counts what its writes cost, with k_r reads ahead and k_w writes behind (P26).

    python hash_join.py --preset intel-p4510 --build 1000 --probe 4000 --memory 256

The build table is larger than the memory, so it is joined in parts by a hash of the key. There are two ways to get a
part:

    partition   write every part but the first to the drive while both tables are read, and read it back (hybrid hash)
                reads  (R + S) (1 + (P - 1) / P),   writes  (R + S) (P - 1) / P
    scan again  read both tables once for each part, and keep what belongs to it
                reads  (R + S) P,                   writes  0

R, S: pages of the tables. P: parts, so many that one of the build table fits in what memory is left by reading ahead,
writing behind and a page for each part that is written. With a write that costs alpha reads, scanning again is cheaper
up to P = 1 + alpha. A plan compares both by the drive's costs of a page; more of a part in the middle is never best,
since either cost is linear in it.
"""

import math
import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from arguments import at_least, parser_of
from arguments import run as run_command

from spillway.concurrency import Comparison, MeasuredDrive, Outstanding, compare, measured_drive
from spillway.concurrency.comparison import Ran, run
from spillway.errors import SpillwayError
from spillway.ssd.drive import PAGE_BYTES

RECORDS = 40  # of 100 bytes in a page

Record = tuple[int, int]  # key, and what the record holds
Pair = tuple[int, int, int]  # key, and what both records hold
Cost = Callable[[int], float]  # of a page, with so many in flight


@dataclass(frozen=True)
class Plan:
    """How to join, and what it costs by the drive's page costs."""

    parts: int
    writes_parts: bool
    reads_ahead: int
    writes_behind: int
    us: float


def powers_up_to(most: int) -> list[int]:
    """1, 2, 4, … and ``most``."""
    return sorted({*(2**n for n in range(most.bit_length())), most})


def parts_for(build: int, room: int, *, written: bool) -> int | None:
    """The least number of parts of which one fits in ``room`` pages; a part that is written takes a page of it. None
    where there is none."""
    for parts in range(1, build + 1):
        left = room - (parts - 1 if written else 0)
        if left <= 0:
            return None
        if math.ceil(build / parts) <= left:
            return parts
    return None


def planned(build: int, probe: int, memory: int, read_us: Cost, write_us: Cost, k_r: int, k_w: int) -> Plan:
    """The cheapest plan of both kinds, with reads ahead and writes behind in powers of two. Raises SpillwayError where
    the memory is too small for any."""
    found, pages = [], build + probe
    for ahead in powers_up_to(k_r):
        again = parts_for(build, memory - ahead, written=False)
        if again is not None:
            found.append(Plan(again, False, ahead, 1, pages * again * read_us(ahead)))
        for behind in powers_up_to(k_w):
            parts = parts_for(build, memory - ahead - behind, written=True)
            if parts is not None:
                written = pages * (parts - 1) / parts
                us = (pages + written) * read_us(ahead) + written * write_us(behind)
                found.append(Plan(parts, True, ahead, behind, us))
    if not found:
        raise SpillwayError(f"{memory} pages of memory are too few to join {build} pages: give more --memory.")
    return min(found, key=lambda plan: plan.us)


class Table:
    """Records in pages of the drive, from page ``first`` on."""

    def __init__(self, io: Outstanding, first: int) -> None:
        """Without records."""
        self.io, self.first = io, first
        self.content: list[list[Record]] = []
        self._filling: list[Record] = []

    @classmethod
    def loaded(cls, io: Outstanding, first: int, records: Sequence[Record]) -> "Table":
        """Records that are on the drive already."""
        table = cls(io, first)
        table.content = [list(records[at : at + RECORDS]) for at in range(0, len(records), RECORDS)]
        return table

    def append(self, record: Record) -> None:
        """Adds a record; a full page is written."""
        self._filling.append(record)
        if len(self._filling) == RECORDS:
            self.close()

    def close(self) -> None:
        """Writes the page that is being filled."""
        if self._filling:
            self.io.write((self.first + len(self.content)) * PAGE_BYTES)
            self.content.append(self._filling)
            self._filling = []

    def records(self) -> Iterator[Record]:
        """All records, each when its page has been read."""
        pages = range(self.first, self.first + len(self.content))
        for offset in self.io.in_order(page * PAGE_BYTES for page in pages):
            yield from self.content[offset // PAGE_BYTES - self.first]


def part_of(key: int, parts: int) -> int:
    """A hash of the key that does not follow its order."""
    return (key * 0x9E3779B97F4A7C15 >> 32) % parts


def joined(io: Outstanding, build: Table, probe: Table, plan: Plan) -> list[Pair]:
    """Every pair of records with one key, part by part."""
    return _by_parts_written(io, build, probe, plan) if plan.writes_parts else _by_scans(build, probe, plan)


def _matches(table: dict[int, list[int]], probe: Record) -> list[Pair]:
    return [(probe[0], held, probe[1]) for held in table.get(probe[0], ())]


def _by_scans(build: Table, probe: Table, plan: Plan) -> list[Pair]:
    pairs = []
    for part in range(plan.parts):
        table: dict[int, list[int]] = {}
        for key, held in build.records():
            if part_of(key, plan.parts) == part:
                table.setdefault(key, []).append(held)
        for record in probe.records():
            if part_of(record[0], plan.parts) == part:
                pairs += _matches(table, record)
    return pairs


def _by_parts_written(io: Outstanding, build: Table, probe: Table, plan: Plan) -> list[Pair]:
    """The first part is joined at once, and the others are written."""
    at = probe.first + len(probe.content)
    built: list[Table] = []
    probed: list[Table] = []
    for tables, source in ((built, build), (probed, probe)):
        # Keys are not spread evenly over the parts: each gets room for half as much again.
        room = 2 + math.ceil(1.5 * len(source.content) / plan.parts)
        for _ in range(plan.parts):
            tables.append(Table(io, at))
            at += room
    first: dict[int, list[int]] = {}
    for key, held in build.records():
        part = part_of(key, plan.parts)
        if part == 0:
            first.setdefault(key, []).append(held)
        else:
            built[part].append((key, held))
    pairs: list[Pair] = []
    for record in probe.records():
        part = part_of(record[0], plan.parts)
        if part == 0:
            pairs += _matches(first, record)
        else:
            probed[part].append(record)
    for table in (*built, *probed):
        table.close()
    io.flush()
    for part in range(1, plan.parts):
        held_of: dict[int, list[int]] = {}
        for key, held in built[part].records():
            held_of.setdefault(key, []).append(held)
        for record in probed[part].records():
            pairs += _matches(held_of, record)
    return pairs


def tables_for(build: int, probe: int, seed: int) -> tuple[list[Record], list[Record]]:
    """Records of both tables; some keys are in one of them alone, and some several times."""
    draw = random.Random(seed)
    keys = build * RECORDS
    return (
        [(draw.randrange(keys), number) for number in range(build * RECORDS)],
        [(draw.randrange(keys), number) for number in range(probe * RECORDS)],
    )


def expected(build: Sequence[Record], probe: Sequence[Record]) -> list[Pair]:
    """The join in memory, in order."""
    table: dict[int, list[int]] = {}
    for key, held in build:
        table.setdefault(key, []).append(held)
    return sorted((key, held, other) for key, other in probe for held in table.get(key, ()))


def plan_of(drive: MeasuredDrive, build: int, probe: int, memory: int, *, asymmetric: bool = True) -> Plan:
    """The plan for a drive. Not ``asymmetric``: as if a write cost what a read costs."""
    write_us = drive.write_us if asymmetric else drive.read_us
    return planned(build, probe, memory, drive.read_us, write_us, drive.reads_at_once, drive.writes_at_once)


def joining(build: Sequence[Record], probe: Sequence[Record], plan: Plan) -> Callable[[Outstanding], object]:
    """A program that joins by a plan; raises AssertionError where the result is not that of a join in memory."""
    wanted = expected(build, probe)

    def program(io: Outstanding) -> None:
        io.reads, io.writes = min(io.reads, plan.reads_ahead), min(io.writes, plan.writes_behind)
        built = Table.loaded(io, 0, build)
        probed = Table.loaded(io, len(built.content), probe)
        assert sorted(joined(io, built, probed, plan)) == wanted, "the join found other pairs"

    return program


def compared(drive: MeasuredDrive, build: int, probe: int, memory: int) -> Comparison:
    """Joins one I/O at a time and at once, by the same plan."""
    plan = plan_of(drive, build, probe, memory)
    return compare("hash join", drive, joining(*tables_for(build, probe, drive.seed), plan))


def by_plan(drive: MeasuredDrive, build: int, probe: int, memory: int, *, asymmetric: bool) -> tuple[Plan, Ran]:
    """Joins at once by the plan that counts asymmetry, or by the one that does not."""
    plan = plan_of(drive, build, probe, memory, asymmetric=asymmetric)
    program = joining(*tables_for(build, probe, drive.seed), plan)
    return plan, run(drive, program, plan.reads_ahead, plan.writes_behind)


def main() -> None:
    """Prints the join one I/O at a time beside the join at once, and what counting asymmetry gains."""
    parser = parser_of(__doc__)
    parser.add_argument("--build", type=at_least(1), default=1000, help="pages of 4 KiB of the smaller table")
    parser.add_argument("--probe", type=at_least(1), default=4000, help="pages of 4 KiB of the other")
    parser.add_argument("--memory", type=at_least(1), default=256, help="pages of 4 KiB")
    asked = parser.parse_args()
    drive = measured_drive(asked.preset, profile=asked.profile, seed=asked.seed, fill=asked.fill)
    sizes = (asked.build, asked.probe, asked.memory)
    print(compared(drive, *sizes).words())
    for asymmetric in (False, True):
        plan, ran = by_plan(drive, *sizes, asymmetric=asymmetric)
        words = "asymmetry counted" if asymmetric else "a write as a read"
        how = "written" if plan.writes_parts else "scanned again"
        print(
            f"  {words}  {ran.seconds:10.4f} s   {plan.parts} parts, {how}, {plan.reads_ahead} ahead, "
            f"{plan.writes_behind} behind: {ran.pages_read:,} read, {ran.pages_written:,} written"
        )


if __name__ == "__main__":
    run_command(main)
