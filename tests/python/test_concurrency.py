"""Reads ahead and writes behind on a made-up drive, a program's two runs in words, and the plans of the examples."""

import itertools
import math
import random
import sys
from collections.abc import Iterable
from dataclasses import replace
from types import ModuleType
from typing import Any, cast

import pytest
from conftest import ROOT

from spillway.concurrency import Comparison, MeasuredDrive, Outstanding, Ran
from spillway.concurrency import comparison as compared
from spillway.errors import SpillwayError
from spillway.models import pio
from spillway.profile.document import Estimate, Pio
from spillway.profile.saturation import Saturation
from spillway.ssd.drive import PAGE_BYTES, Done, Drive

sys.path.insert(0, str(ROOT / "examples" / "concurrency"))
import arguments
import btree_lookups
import external_sort
import graph_search
import hash_join


class MadeUpDrive:
    """Completes what is in flight in an order of its own, and knows what it was asked."""

    def __init__(self, seed: int = 1) -> None:
        self.draw = random.Random(seed)
        self.in_flight: dict[int, tuple[str, int, int]] = {}
        self.asked: list[tuple[str, int]] = []
        self.most = {"read": 0, "write": 0, "both": 0}
        self.now_ns = 0

    def submit(self, op: str, offset: int) -> int:
        number = len(self.asked)
        self.asked.append((op, offset))
        self.in_flight[number] = (op, offset, self.now_ns)
        for kind in ("read", "write"):
            now = sum(each[0] == kind for each in self.in_flight.values())
            self.most[kind] = max(self.most[kind], now)
        self.most["both"] = max(self.most["both"], len(self.in_flight))
        return number

    def read(self, offset: int, length: int = PAGE_BYTES) -> int:
        return self.submit("read", offset)

    def write(self, offset: int, length: int = PAGE_BYTES) -> int:
        return self.submit("write", offset)

    def wait(self, at_least: int = 1) -> list[Done]:
        assert 0 < at_least <= len(self.in_flight), "it waits for what is there"
        done = []
        for number in self.draw.sample(sorted(self.in_flight), self.draw.randint(at_least, len(self.in_flight))):
            self.now_ns += 10
            done.append(Done(number, self.in_flight.pop(number)[2], self.now_ns))
        return done


def outstanding(reads: int, writes: int, seed: int = 1) -> tuple[Outstanding, MadeUpDrive]:
    drive = MadeUpDrive(seed)
    return Outstanding(cast(Drive, drive), reads, writes), drive


@pytest.mark.parametrize(("reads", "writes"), [(1, 1), (1, 4), (8, 1), (8, 3), (64, 64)])
def test_no_more_is_in_flight_than_was_allowed(reads: int, writes: int) -> None:
    for seed in range(5):
        io, drive = outstanding(reads, writes, seed)
        draw = random.Random(seed)
        tickets: list[int] = []
        for step in range(500):
            if draw.random() < 0.5:
                tickets.append(io.read(step * PAGE_BYTES))
            elif draw.random() < 0.5 and tickets:
                io.take(tickets.pop(draw.randrange(len(tickets))))
            else:
                io.write(step * PAGE_BYTES)
        for ticket in tickets:
            io.take(ticket)
        io.flush()
        assert drive.most["read"] <= reads
        assert drive.most["write"] <= writes
        assert drive.most["both"] <= (1 if reads == writes == 1 else reads + writes)
        assert not drive.in_flight
        assert io.pages_read == sum(op == "read" for op, _ in drive.asked)
        assert io.pages_written == sum(op == "write" for op, _ in drive.asked)
        assert io.busy_ns > 0


def test_reads_go_to_the_drive_in_the_order_in_which_they_were_asked_for() -> None:
    io, drive = outstanding(4, 1)
    tickets = [io.read(page * PAGE_BYTES) for page in range(50)]
    assert len(drive.asked) == 4
    assert io.free_reads == 0
    for ticket in reversed(tickets):
        io.take(ticket)
    assert [offset // PAGE_BYTES for _, offset in drive.asked] == list(range(50))
    assert io.free_reads == 4


def test_pages_in_order_are_asked_for_no_further_ahead_than_there_is_room() -> None:
    for reads in (1, 3, 8):
        io, drive = outstanding(reads, 1)
        taken = 0
        for offset in io.in_order(page * PAGE_BYTES for page in range(40)):
            assert offset == taken * PAGE_BYTES
            taken += 1
            assert len(drive.asked) <= taken + reads - 1
        assert taken == 40


def test_a_flush_waits_for_writes_alone() -> None:
    io, drive = outstanding(8, 8)
    io.read(0)
    io.write(PAGE_BYTES)
    io.flush()
    assert all(op == "read" for op, _, _ in drive.in_flight.values())


# ---------------------------------------------------------------------------------------------------------------------
# Comparisons

# k at once take as long as one, up to k_r = 16 and k_w = 4: the drive that PIO supposes.
IDEAL = Saturation(
    Pio(Estimate(2.0, 2, 2), Estimate(16, 16, 16), Estimate(4, 4, 4)),
    {
        "read": {k: 1e4 * min(k, 16) for k in (1, 2, 4, 8, 16, 32)},
        "write": {k: 5e3 * min(k, 4) for k in (1, 2, 4, 8, 16, 32)},
    },
)


def comparison(many: Ran, one: Ran, saturation: Saturation = IDEAL) -> Comparison:
    gains = saturation.gain("read", many.reads), saturation.gain("write", many.writes)
    alone = saturation.us("write", 1) / saturation.us("read", 1)
    return Comparison("program", "made-up", 16, 4, saturation.pio.alpha.value, *gains, alone, one, many)


def test_the_ideal_drive_makes_both_formulas_one() -> None:
    found = comparison(Ran(0.01, 1000, 0, 15.9, 16, 4), Ran(0.16, 1000, 0, 1.0, 1, 1))
    assert found.speed_up == pytest.approx(16)
    assert found.formula == pytest.approx(float(pio.speedup_of_batched_reads(1, 2, 16)))
    assert found.own_gains == pytest.approx(found.formula)
    assert found.formula_name == "S'"
    assert found.reasons() == ["The program gets what the drive gains."]
    both = comparison(Ran(0.01, 500, 500, 15.9, 16, 4), Ran(0.16, 500, 500, 1.0, 1, 1))
    assert both.formula == pytest.approx(float(pio.speedup_of_both_batched(0.5, 2, 16, 4)))
    assert both.own_gains == pytest.approx(both.formula)
    assert both.formula_name == "S''"


def test_each_cause_has_its_sentence() -> None:
    real = replace(
        IDEAL, iops={op: {k: rate / k**0.5 for k, rate in curve.items()} for op, curve in IDEAL.iops.items()}
    )
    drive_gains_less = comparison(Ran(0.04, 1000, 0, 15.9, 16, 4), Ran(0.16, 1000, 0, 1.0, 1, 1), real)
    assert drive_gains_less.reasons() == [
        "On this drive 16 reads at once are 4.0 times as fast as one after another; "
        "the formula takes them for 16 times.",
        "The program gets what the drive gains.",
    ]
    too_few = comparison(Ran(0.04, 1000, 0, 4.0, 16, 4), Ran(0.16, 1000, 0, 1.0, 1, 1))
    assert too_few.reasons() == ["The program had 4.0 I/Os in flight on average, of 16: it had no more."]
    lost = comparison(Ran(0.02, 1000, 0, 15.0, 16, 4), Ran(0.16, 1000, 0, 1.0, 1, 1))
    assert lost.reasons() == [
        "50% are lost to what the curves of random accesses do not have: order, a mix, pages that are read often."
    ]
    issued = replace(
        comparison(Ran(0.04, 500, 500, 5.0, 16, 4), Ran(0.16, 500, 500, 1.0, 1, 1)),
        threads=Ran(0.02, 500, 500, 15.0, 16, 4),
    )
    assert issued.speed_up_by_threads == pytest.approx(8)
    assert issued.reasons()[0] == ("One thread issues all I/Os, one after another: with a thread for each it is 8.00.")
    more = comparison(Ran(0.008, 1000, 0, 15.0, 16, 4), Ran(0.16, 1000, 0, 1.0, 1, 1))
    assert more.reasons() == ["25% more than random accesses gain: order of access, and reads beside writes."]


def test_a_comparison_in_words(golden: Any) -> None:
    real = replace(
        IDEAL, iops={op: {k: rate / k**0.5 for k, rate in curve.items()} for op, curve in IDEAL.iops.items()}
    )
    reads = comparison(Ran(0.04, 12345, 0, 9.5, 16, 4), Ran(0.16, 12345, 0, 1.0, 1, 1), real)
    both = comparison(Ran(0.05, 6000, 4000, 12.0, 16, 4), Ran(0.16, 6000, 4000, 1.0, 1, 1), real)
    golden("concurrency.txt", f"{reads.words()}\n\n{both.words()}")


def test_a_row_has_a_cell_for_every_figure() -> None:
    row = comparison(Ran(0.04, 1000, 0, 9.5, 16, 4), Ran(0.16, 1000, 0, 1.0, 1, 1)).row()
    assert row["speed_up"] == pytest.approx(4)
    assert (row["one_seconds"], row["many_pages_read"], row["many_in_flight"]) == (0.16, 1000, 9.5)


def test_between_what_was_measured_costs_are_on_straight_lines_and_never_gain_less_than_one() -> None:
    assert IDEAL.us("read", 1) == pytest.approx(100)
    assert IDEAL.us("read", math.sqrt(2)) == pytest.approx(1e6 / 15000)
    assert IDEAL.us("read", 1000) == IDEAL.us("read", 32)
    assert math.isnan(replace(IDEAL, iops={}).us("read", 1))
    falling = replace(IDEAL, iops={"read": {1: 100.0, 2: 90.0}})
    assert falling.gain("read", 2) == 1.0


def test_a_run_counts_what_its_program_did(monkeypatch: pytest.MonkeyPatch) -> None:
    drives: list[MadeUpDrive] = []

    class Opened(MadeUpDrive):
        def __enter__(self) -> "Opened":
            drives.append(self)
            return self

        def __exit__(self, *_: object) -> None:
            pass

    monkeypatch.setattr(MeasuredDrive, "open", lambda self, threads=False: Opened())

    def program(io: Outstanding) -> None:
        for offset in io.in_order(page * PAGE_BYTES for page in range(100)):
            io.write(offset)

    found = compared.compare("copy", MeasuredDrive("made-up", (), IDEAL), program)
    assert (found.one.reads, found.one.writes, found.many.reads, found.many.writes) == (1, 1, 16, 4)
    assert drives[0].most["both"] == 1
    assert drives[1].most["read"] == 16
    assert found.threads is not None
    for ran, drive in zip((found.one, found.many, found.threads), drives, strict=True):
        assert (ran.pages_read, ran.pages_written) == (100, 100)
        assert ran.seconds == drive.now_ns / 1e9
    assert found.one.in_flight == pytest.approx(1)
    assert found.many.in_flight > 2


# ---------------------------------------------------------------------------------------------------------------------
# Searches and look-ups, against the textbook's


def textbook_dfs(neighbours: list[list[int]], root: int = 0) -> list[int]:
    order: list[int] = []
    seen: set[int] = set()

    def visit(vertex: int) -> None:
        seen.add(vertex)
        order.append(vertex)
        for each in neighbours[vertex]:
            if each not in seen:
                visit(each)

    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(10_000)
    try:
        visit(root)
    finally:
        sys.setrecursionlimit(limit)
    return order


def levels_of(neighbours: list[list[int]], root: int = 0) -> dict[int, int]:
    level, at, found = {root: 0}, [root], 0
    while at:
        found += 1
        at = [each for vertex in at for each in neighbours[vertex]]
        at = [each for each in dict.fromkeys(at) if each not in level]
        level |= dict.fromkeys(at, found)
    return level


GRAPHS = [
    graph_search.random_graph(300, 3, seed=1),
    graph_search.random_graph(200, 1, seed=2),  # not all of it is reached
    graph_search.tree(400, 5, seed=3),
    graph_search.laid_out([[1], [2], [3], [0]]),  # a ring
    graph_search.laid_out([[0, 0, 0]]),  # a vertex that is its own neighbour
    graph_search.laid_out([list(range(2000)), *[[] for _ in range(1999)]]),  # a list of several pages
]


@pytest.mark.parametrize("graph", GRAPHS, ids=range(len(GRAPHS)))
@pytest.mark.parametrize("reads", [1, 4, 64])
def test_searches_visit_in_the_textbooks_order(graph: graph_search.Graph, reads: int) -> None:
    level = levels_of(graph.neighbours)
    for seed in range(3):
        io, drive = outstanding(reads, 1, seed)
        order = graph_search.breadth_first(graph, io)
        assert [level[vertex] for vertex in order] == sorted(level.values()), "level by level"
        assert sorted(order) == sorted(level)
        alone, _ = outstanding(1, 1)
        assert order == graph_search.breadth_first(graph, alone)
        pages = sum(len(graph.pages[vertex]) for vertex in order)
        assert io.pages_read == pages == len(drive.asked), "each list is read once"
        for memory in (1, 10, 10_000):
            io, drive = outstanding(reads, 1, seed)
            assert graph_search.depth_first(graph, io, memory) == textbook_dfs(graph.neighbours)
            assert io.pages_read == pages == len(drive.asked)


def test_no_more_lists_are_kept_than_the_memory_holds(monkeypatch: pytest.MonkeyPatch) -> None:
    graph = graph_search.tree(2000, 6, seed=1)
    ahead = graph_search.read_ahead
    most = 0

    def watched(*words: Any) -> None:
        nonlocal most
        ahead(*words)
        most = max(most, len(words[4]))

    monkeypatch.setattr(graph_search, "read_ahead", watched)
    for memory in (1, 7, 40):
        most = 0
        io, _ = outstanding(16, 1)
        graph_search.depth_first(graph, io, memory)
        assert 0 < most <= memory


def test_lists_are_packed_and_those_that_fit_in_a_page_are_in_one() -> None:
    sizes = [1, 0, 511, 512, 513, 3, 2000, 5]
    graph = graph_search.laid_out([[0] * size for size in sizes], property_bytes=0)
    assert [len(pages) for pages in graph.pages] == [1, 1, 1, 1, 2, 1, 4, 1]
    assert graph.pages[0] == graph.pages[1]
    ends = [pages.stop for pages in graph.pages]
    assert ends == sorted(ends)


@pytest.mark.parametrize("fanout", [2, 3, 16, 256])
def test_look_ups_find_what_a_dictionary_does(fanout: int) -> None:
    draw = random.Random(fanout)
    for count in (1, 2, fanout, fanout + 1, 700):
        pairs = [(3 * number + 1, draw.randrange(10**6)) for number in range(count)]
        tree, there = btree_lookups.built(pairs, fanout), dict(pairs)
        assert tree.depth() == max(0, math.ceil(math.log(count, fanout) - 1e-9) - 1)
        keys = [draw.randrange(-5, 3 * count + 10) for _ in range(300)] + [key for key, _ in pairs]
        for reads in (1, 7):
            io, _ = outstanding(reads, 1)
            assert btree_lookups.look_up(tree, io, keys) == [there.get(key) for key in keys]
            assert io.pages_read <= tree.depth() * len(keys)


# ---------------------------------------------------------------------------------------------------------------------
# Sort and join


def plans_to_sort_with() -> Iterable[external_sort.Plan]:
    for scans, fan_in, ahead, behind in itertools.product((1, 2, 5), (2, 3, 8), (1, 4), (1, 3)):
        yield external_sort.Plan(scans, fan_in, ahead, behind, passes=0, us=0.0)


def test_sorted_is_sorted_by_every_plan_and_costs_what_the_plan_says() -> None:
    draw = random.Random(4)
    for plan in plans_to_sort_with():
        for pages in (1, 2, 5, 37):
            records = [draw.getrandbits(20) * 1000 + place for place in range(pages * 4 - draw.randrange(3))]
            io, _ = outstanding(plan.reads_ahead, plan.writes_behind, pages)
            assert external_sort.Sorter(io, records, plan, page_records=4).sort() == sorted(records)
            io.flush()
            runs = math.ceil(pages / (plan.scans * plan.fan_in))
            merges = external_sort.merges_of(runs, plan.fan_in)
            assert io.pages_written == replace(plan, passes=merges).writes(pages)
            # The last run may be of fewer scans.
            assert io.pages_read <= replace(plan, passes=merges).reads(pages)
            if pages % (plan.scans * plan.fan_in) == 0:
                assert io.pages_read == replace(plan, passes=merges).reads(pages)


def test_records_with_one_key_keep_their_order() -> None:
    records = [key * 1000 + place for place, key in enumerate([5, 1, 5, 1, 5, 1] * 20)]
    plan = external_sort.Plan(1, 2, 2, 1, 0, 0.0)
    io, _ = outstanding(2, 1)
    found = external_sort.Sorter(io, records, plan, page_records=3).sort()
    assert [record for record in found if record < 2000] == [1000 + place for place in range(1, 120, 2)]


def costs(read: float, write: float, k: int = 8) -> tuple[external_sort.Cost, external_sort.Cost]:
    return (lambda n: read / min(n, k)), (lambda n: write / min(n, k))


@pytest.mark.parametrize("write", [0.2, 1.0, 3.0, 10.0, 40.0])
@pytest.mark.parametrize(("pages", "memory"), [(10, 8), (100, 12), (400, 64), (3000, 64), (40, 100)])
def test_a_plan_is_the_cheapest_of_all(pages: int, memory: int, write: float) -> None:
    read_us, write_us = costs(1.0, write)
    plan = external_sort.planned(pages, memory, read_us, write_us, 8, 8)
    for scans, ahead, behind in itertools.product(range(1, 17), (1, 2, 4, 8), (1, 2, 4, 8)):
        fan_in = memory - ahead - behind
        if fan_in < 2:
            continue
        passes = external_sort.merges_of(math.ceil(pages / (scans * fan_in)), fan_in)
        us = pages * ((scans + passes) * read_us(ahead) + (1 + passes) * write_us(behind))
        assert plan.us <= us + 1e-9


def test_dear_writes_are_exchanged_for_reads() -> None:
    """With s scans for a merge: s reads instead of 2 and a write saved, up to s = 2 + alpha."""

    def writes(alpha: float) -> int:
        read_us, write_us = costs(1.0, alpha, k=1)
        plan = external_sort.planned(62 * 4, 64, read_us, write_us, 1, 1)
        return plan.writes(1)

    assert [writes(alpha) for alpha in (1.0, 1.9, 2.1, 10.0)] == [2, 2, 1, 1]


def join_plans() -> Iterable[hash_join.Plan]:
    for parts, written, ahead, behind in itertools.product((1, 2, 5), (True, False), (1, 6), (1, 3)):
        yield hash_join.Plan(parts, written, ahead, behind, 0.0)


def test_every_plan_joins_as_in_memory_and_costs_what_it_says() -> None:
    build, probe = hash_join.tables_for(12, 30, seed=2)
    wanted = hash_join.expected(build, probe)
    assert wanted
    for plan in join_plans():
        io, drive = outstanding(plan.reads_ahead, plan.writes_behind)
        built = hash_join.Table.loaded(io, 0, build)
        probed = hash_join.Table.loaded(io, 12, probe)
        assert sorted(hash_join.joined(io, built, probed, plan)) == wanted
        io.flush()
        if not plan.writes_parts:
            assert (io.pages_read, io.pages_written) == (42 * plan.parts, 0)
            continue
        # Each part has a page that is not full.
        written = 42 * (plan.parts - 1) / plan.parts
        assert abs(io.pages_written - written) <= 2 * plan.parts + 0.15 * 42
        assert io.pages_read == 42 + io.pages_written
        places = [offset for op, offset in drive.asked if op == "write"]
        assert len(set(places)) == len(places), "no page is written twice"
        assert min(places, default=42 * PAGE_BYTES) >= 42 * PAGE_BYTES, "the tables are not overwritten"


@pytest.mark.parametrize("write", [0.2, 1.0, 3.0, 10.0, 40.0])
@pytest.mark.parametrize("memory", [8, 20, 60, 130, 400])
def test_a_join_plan_is_the_cheapest_and_fits(memory: int, write: float) -> None:
    read_us, write_us = costs(1.0, write)
    build, probe = 100, 300
    plan = hash_join.planned(build, probe, memory, read_us, write_us, 4, 4)
    part = math.ceil(build / plan.parts)
    buffers = plan.writes_behind + plan.parts - 1 if plan.writes_parts else 0
    assert part + buffers + plan.reads_ahead <= memory
    for ahead, behind, parts in itertools.product((1, 2, 4), (1, 2, 4), range(1, 101)):
        if math.ceil(build / parts) + ahead <= memory:
            assert plan.us <= 400 * parts * read_us(ahead) + 1e-9
        if math.ceil(build / parts) + ahead + behind + parts - 1 <= memory:
            moved = 400 * (parts - 1) / parts
            assert plan.us <= (400 + moved) * read_us(ahead) + moved * write_us(behind) + 1e-9


def test_scanning_again_is_cheaper_up_to_one_more_part_than_a_write_costs() -> None:
    def written(alpha: float) -> bool:
        read_us, write_us = costs(1.0, alpha, k=1)
        return hash_join.planned(150, 300, 54, read_us, write_us, 1, 1).writes_parts

    # Three parts: 3 reads for a page, or 1 + 2/3 reads and 2/3 writes.
    assert [written(alpha) for alpha in (1.0, 1.9, 2.1, 10.0)] == [True, True, False, False]


def test_too_little_memory_is_said() -> None:
    read_us, write_us = costs(1.0, 1.0)
    with pytest.raises(SpillwayError, match="1 pages of memory are too few to join 100 pages: give more --memory"):
        hash_join.planned(100, 100, 1, read_us, write_us, 4, 4)


# ---------------------------------------------------------------- the command lines

COUNTS = [
    (btree_lookups, ("--keys", "--lookups", "--seed")),
    (external_sort, ("--pages", "--memory", "--seed")),
    (graph_search, ("--vertices", "--degree", "--memory", "--seed")),
    (hash_join, ("--build", "--probe", "--memory", "--seed")),
]


@pytest.mark.parametrize("text", ["0", "-1", "nan", "1e3", "1_0", "\u0661", "", "9" * 30])
@pytest.mark.parametrize(("module", "flags"), COUNTS)
def test_a_count_that_is_none_is_refused(
    module: ModuleType, flags: tuple[str, ...], text: str,
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    monkeypatch.setattr(module, "measured_drive", None)
    for flag in flags if text != "0" else flags[:-1]:
        monkeypatch.setattr(sys, "argv", [module.__name__, f"{flag}={text}"])
        with pytest.raises(SystemExit) as ended:
            arguments.run(module.main)
        assert ended.value.code == 2
        assert f"argument {flag}: {text!r} is no whole number from" in capsys.readouterr().err


def test_an_error_is_one_sentence(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(sys, "argv", ["btree_lookups.py", "--preset", "intel-p4511"])
    with pytest.raises(SystemExit) as ended:
        arguments.run(btree_lookups.main)
    said = capsys.readouterr()
    assert ended.value.code == 2 and said.out == ""
    assert said.err.count("\n") == 1 and "did you mean 'intel-p4510'" in said.err
