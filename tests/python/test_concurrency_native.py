"""The examples on an emulated drive: their results, what concurrency gains, and the commands as they are typed."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from conftest import ROOT

from spillway.concurrency import MeasuredDrive, measured_drive
from spillway.errors import SpillwayError

sys.path.insert(0, str(ROOT / "examples" / "concurrency"))
import btree_lookups
import external_sort
import graph_search
import hash_join

pytestmark = [pytest.mark.native, pytest.mark.usefixtures("real_native")]

# Sixteen dies, and writes that take three times as long as reads: small enough to be measured in a moment.
SETTINGS = (
    "capacity.capacity_bytes=128MiB",
    "geometry.channels=8",
    "geometry.dies_per_chip=2",
    "geometry.planes_per_die=1",
    "geometry.page_bytes=4096",
    "geometry.pages_per_block=64",
    "capacity.spare_factor=0.3",
    "timing.read_ns=[20_000]",
    "timing.program_ns=[60_000]",
    "write_cache.bytes=0",
)


@pytest.fixture(scope="module")
def drive() -> MeasuredDrive:
    return measured_drive("quickstart", settings=SETTINGS)


def test_a_preset_is_measured_as_a_profile_is(drive: MeasuredDrive) -> None:
    assert 4 <= drive.reads_at_once <= 128
    assert 2 <= drive.writes_at_once <= 128
    assert drive.saturation.gain("read", drive.reads_at_once) > 4
    assert drive.read_us(1) > drive.read_us(8) > drive.read_us(64)
    assert drive.saturation.pio.alpha.value > 1


def test_every_drive_that_is_opened_starts_the_same(drive: MeasuredDrive) -> None:
    def times() -> list[int]:
        with drive.open() as opened:
            opened.submit(("write", page * 4096 * 37 % opened.data_bytes, 4096) for page in range(300))
            return [done.completed_ns for done in opened.wait_all()]

    assert times() == times()


def test_searches_with_reads_ahead_are_faster_and_visit_in_the_same_order(drive: MeasuredDrive) -> None:
    by_breadth = graph_search.compared(drive, "bfs", "random", vertices=2000, degree=6, memory=500)
    by_depth = graph_search.compared(drive, "dfs", "tree", vertices=2000, degree=6, memory=500)
    little = graph_search.compared(drive, "dfs", "tree", vertices=2000, degree=6, memory=2)
    assert by_breadth.speed_up > 0.7 * by_breadth.own_gains, "a queue of a whole level is enough to choose from"
    assert by_depth.speed_up > 0.5 * by_depth.own_gains
    assert little.speed_up < 0.5 * by_depth.speed_up, "what is read ahead needs memory"
    for found in (by_breadth, by_depth, little):
        assert found.one.pages_read == found.many.pages_read
        assert found.one.in_flight == pytest.approx(1, abs=0.01)


def test_a_batch_of_look_ups_gets_what_the_drive_gains(drive: MeasuredDrive) -> None:
    found = btree_lookups.compared(drive, keys=20_000, lookups=1500, fanout=32)
    assert found.one.pages_read == found.many.pages_read == 2 * 1500
    # Half of the reads are of the twenty nodes above the leaves, which lie on a few of the dies.
    assert 0.5 * found.own_gains < found.speed_up < 1.1 * found.own_gains
    assert found.many.in_flight > 0.8 * found.many.reads
    assert found.formula_name == "S'"


def test_a_sort_and_a_join_are_faster_at_once(drive: MeasuredDrive) -> None:
    for found in (external_sort.compared(drive, 300, 64), hash_join.compared(drive, 150, 300, 64)):
        assert found.one.pages_read == found.many.pages_read
        assert found.one.pages_written == found.many.pages_written
        assert found.speed_up > 2
        assert found.many.in_flight > 2


def test_counting_asymmetry_is_no_slower_and_writes_no_more(drive: MeasuredDrive) -> None:
    sorts = [(external_sort, (300, 64)), (external_sort, (200, 90))]
    joins = [(hash_join, (150, 300, 64)), (hash_join, (100, 300, 64))]
    fewer = 0
    for example, words in (*sorts, *joins):
        (_, plain), (_, counted) = (example.by_plan(drive, *words, asymmetric=each) for each in (False, True))
        assert counted.seconds < 1.05 * plain.seconds, (example.__name__, words)
        assert counted.pages_written <= plain.pages_written
        fewer += counted.pages_written < plain.pages_written
    assert fewer, "on none of these sizes did it change a plan"


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("graph_search", ("--vertices", "300", "--search", "dfs", "--shape", "tree")),
        ("btree_lookups", ("--keys", "5000", "--lookups", "200")),
        ("external_sort", ("--pages", "100", "--memory", "40")),
        ("hash_join", ("--build", "60", "--probe", "100", "--memory", "40")),
    ],
)
def test_each_prints_its_times_beside_the_formula(
    name: str,
    words: tuple[str, ...],
    drive: MeasuredDrive,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    asked: list[Any] = []

    def given(preset: str, **options: Any) -> MeasuredDrive:
        asked.append((preset, options))
        return drive

    module = sys.modules[name]
    monkeypatch.setattr(module, "measured_drive", given)
    monkeypatch.setattr(sys, "argv", [name, "--preset", "intel-s4610", *words, "--seed", "3"])
    module.main()
    said = capsys.readouterr().out
    assert asked == [("intel-s4610", {"profile": None, "seed": 3, "fill": 1.0})]
    for text in ("one at a time", "at once", "speed-up", "as published", "by own gains"):
        assert text in said, text
    if name in ("external_sort", "hash_join"):
        assert "asymmetry counted" in said


def test_as_it_is_typed() -> None:
    command = [
        sys.executable,
        str(ROOT / "examples" / "concurrency" / "btree_lookups.py"),
        "--preset",
        "quickstart",
        "--keys",
        "3000",
    ]
    said = subprocess.run([*command, "--lookups", "100"], capture_output=True, text=True, check=True).stdout
    assert said.startswith("B-tree look-ups on quickstart: alpha ")


def test_a_preset_or_a_profile_that_is_not_there_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(SpillwayError, match="did you mean"):
        measured_drive("intel-p4511")
    with pytest.raises(SpillwayError, match="there is no such profile"):
        measured_drive("quickstart", profile=tmp_path / "none")
