"""An external merge sort that counts what its writes cost, with k_r reads ahead and k_w writes behind (P7, P25).

    python external_sort.py --preset intel-p4510 --pages 4000 --memory 256

Runs are sorted in memory and merged, several at a time, until one is left. Of the memory some pages are read ahead,
some are being written, and the rest holds a page of each run that is merged. Which pages a merge needs, and in which
order, is known beforehand: a run's next page is needed when the last record of the one before it has gone (a table in
memory has the last record of each page).

A plan chooses by the drive's costs of a page read and a page written:
- the run size. A run of s times the memory is made by reading its part of the input s times: each scan finds the next
  smallest records. That is s reads and one write for a page. It pays if it saves a merge, which costs a read and a
  write; the more a write costs, the more often.
- the fan-in against reading ahead and writing behind, which take memory from it.
"""

import heapq
import math
import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from arguments import at_least, parser_of
from arguments import run as run_command

from spillway.concurrency import Comparison, MeasuredDrive, Outstanding, compare, measured_drive
from spillway.concurrency.comparison import Ran, run
from spillway.ssd.drive import PAGE_BYTES

RECORDS = 40  # of 100 bytes in a page
MOST_SCANS = 16

Cost = Callable[[int], float]  # of a page, with so many in flight


@dataclass(frozen=True)
class Plan:
    """How to sort, and what it costs by the drive's page costs."""

    scans: int
    fan_in: int
    reads_ahead: int
    writes_behind: int
    passes: int  # merges of all pages
    us: float

    def reads(self, pages: int) -> int:
        """Pages read to sort so many."""
        return pages * (self.scans + self.passes)

    def writes(self, pages: int) -> int:
        """Pages written to sort so many."""
        return pages * (1 + self.passes)


def powers_up_to(most: int) -> list[int]:
    """1, 2, 4, … and ``most``."""
    return sorted({*(2**n for n in range(most.bit_length())), most})


def planned(pages: int, memory: int, read_us: Cost, write_us: Cost, k_r: int, k_w: int) -> Plan:
    """The cheapest plan: all run sizes, and reads ahead and writes behind in powers of two. REQUIRES: memory >= 4"""
    found = []
    for ahead in powers_up_to(k_r):
        for behind in powers_up_to(k_w):
            fan_in = memory - ahead - behind
            if fan_in < 2:
                continue
            for scans in range(1, MOST_SCANS + 1):
                runs = math.ceil(pages / (scans * fan_in))
                passes = merges_of(runs, fan_in)
                us = pages * ((scans + passes) * read_us(ahead) + (1 + passes) * write_us(behind))
                found.append(Plan(scans, fan_in, ahead, behind, passes, us))
    return min(found, key=lambda plan: plan.us)


def merges_of(runs: int, fan_in: int) -> int:
    """Merges of so many runs until one is left."""
    passes = 0
    while runs > 1:
        runs, passes = math.ceil(runs / fan_in), passes + 1
    return passes


@dataclass(frozen=True)
class Run:
    """Sorted records in pages that follow each other, and the last record of each page."""

    first: int
    last: list[int]


class Sorter:
    """Pages on a drive: the input first, and two places of the same size, of which one is read while the other is
    written. A record is a number; they differ, as a key with the place of its record behind it does."""

    def __init__(self, io: Outstanding, records: Sequence[int], plan: Plan, page_records: int = RECORDS) -> None:
        """The records are the input's, page by page."""
        self.io, self.plan, self.page_records = io, plan, page_records
        self.input_pages = math.ceil(len(records) / page_records)
        self.content: dict[int, list[int]] = {
            page: list(records[page * page_records : (page + 1) * page_records]) for page in range(self.input_pages)
        }

    def sort(self) -> list[int]:
        """All records in order, as the last run has them."""
        into, other = self.input_pages, 2 * self.input_pages
        runs = list(self.make_runs(into))
        self.io.flush()
        while len(runs) > 1:
            into, other = other, into
            merged, at = [], into
            for group in range(0, len(runs), self.plan.fan_in):
                merged.append(self.write_run(at, self.merged(runs[group : group + self.plan.fan_in])))
                at += len(merged[-1].last)
            runs = merged
            self.io.flush()
        return [record for run in runs for page in range(len(run.last)) for record in self.content[run.first + page]]

    def make_runs(self, at: int) -> Iterator[Run]:
        """Runs of ``scans`` times the memory, written from page ``at`` on."""
        size = self.plan.scans * self.plan.fan_in
        for first in range(0, self.input_pages, size):
            part = range(first, min(first + size, self.input_pages))
            yield self.write_run(at + first, self.scanned(part))

    def scanned(self, part: range) -> Iterator[int]:
        """The records of a part of the input in order: each scan keeps the smallest that are left and fit."""
        room, passed = self.plan.fan_in * self.page_records, -1
        for _ in range(math.ceil(len(part) / self.plan.fan_in)):
            kept: list[int] = []
            for page in self.pages_read(part):
                kept += [record for record in self.content[page] if record > passed]
                if len(kept) >= 2 * room:
                    kept = sorted(kept)[:room]
            kept = sorted(kept)[:room]
            yield from kept
            passed = kept[-1] if kept else passed

    def merged(self, runs: Sequence[Run]) -> Iterator[int]:
        """The records of the runs in order. Pages are read in the order in which the merge needs them."""
        needed = sorted(
            (run.last[page - 1] if page else -1, number, run.first + page)
            for number, run in enumerate(runs)
            for page in range(len(run.last))
        )
        arriving = self.pages_read([page for _, _, page in needed])

        def records_of(run: Run) -> Iterator[int]:
            for page in range(run.first, run.first + len(run.last)):
                arrived = next(arriving)
                assert arrived == page, "a page came before it was needed"
                yield from self.content[page]

        return heapq.merge(*map(records_of, runs))

    def pages_read(self, pages: Sequence[int]) -> Iterator[int]:
        """The pages in their order, each when it has been read."""
        return (offset // PAGE_BYTES for offset in self.io.in_order(page * PAGE_BYTES for page in pages))

    def write_run(self, first: int, records: Iterator[int]) -> Run:
        """Writes records into pages that follow each other."""
        run = Run(first, [])
        page: list[int] = []
        for record in records:
            page.append(record)
            if len(page) == self.page_records:
                self.write_page(run, page)
                page = []
        if page:
            self.write_page(run, page)
        return run

    def write_page(self, run: Run, records: list[int]) -> None:
        """Writes the run's next page."""
        place = run.first + len(run.last)
        self.io.write(place * PAGE_BYTES)
        self.content[place] = records
        run.last.append(records[-1])


def plan_of(drive: MeasuredDrive, pages: int, memory: int, *, asymmetric: bool = True) -> Plan:
    """The plan for a drive. Not ``asymmetric``: as if a write cost what a read costs."""
    k_r, k_w = drive.reads_at_once, drive.writes_at_once
    return planned(pages, memory, drive.read_us, drive.write_us if asymmetric else drive.read_us, k_r, k_w)


def sorting(records: Sequence[int], plan: Plan) -> Callable[[Outstanding], object]:
    """A program that sorts by a plan, and raises AssertionError where the result is not in order."""

    def program(io: Outstanding) -> None:
        io.reads, io.writes = min(io.reads, plan.reads_ahead), min(io.writes, plan.writes_behind)
        assert Sorter(io, records, plan).sort() == sorted(records), "the result is not in order"

    return program


def records_for(pages: int, seed: int) -> list[int]:
    """Records with random keys, and their places behind the keys."""
    draw, count = random.Random(seed), pages * RECORDS
    return [draw.getrandbits(32) * count + place for place in range(count)]


def compared(drive: MeasuredDrive, pages: int, memory: int) -> Comparison:
    """Sorts one I/O at a time and at once, by the same plan."""
    plan = plan_of(drive, pages, memory)
    return compare("external sort", drive, sorting(records_for(pages, drive.seed), plan))


def by_plan(drive: MeasuredDrive, pages: int, memory: int, *, asymmetric: bool) -> tuple[Plan, Ran]:
    """Sorts at once by the plan that counts asymmetry, or by the one that does not."""
    plan = plan_of(drive, pages, memory, asymmetric=asymmetric)
    program = sorting(records_for(pages, drive.seed), plan)
    return plan, run(drive, program, plan.reads_ahead, plan.writes_behind)


def main() -> None:
    """Prints the sort one I/O at a time beside the sort at once, and what counting asymmetry gains."""
    parser = parser_of(__doc__)
    parser.add_argument("--pages", type=at_least(1), default=4000, help="of 4 KiB of the input")
    parser.add_argument("--memory", type=at_least(4), default=256, help="pages of 4 KiB")
    asked = parser.parse_args()
    drive = measured_drive(asked.preset, profile=asked.profile, seed=asked.seed, fill=asked.fill)
    print(compared(drive, asked.pages, asked.memory).words())
    for asymmetric in (False, True):
        plan, ran = by_plan(drive, asked.pages, asked.memory, asymmetric=asymmetric)
        words = "asymmetry counted" if asymmetric else "a write as a read"
        print(
            f"  {words}  {ran.seconds:10.4f} s   {plan.scans} scans, {plan.passes} merges of {plan.fan_in}, "
            f"{plan.reads_ahead} ahead, {plan.writes_behind} behind: "
            f"{ran.pages_read:,} read, {ran.pages_written:,} written"
        )


if __name__ == "__main__":
    run_command(main)
