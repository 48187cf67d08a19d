"""What gets and scans of `spillway advise` read of the drive: pages, parts of files, read-ahead, trees as loaded."""

from dataclasses import replace
from typing import Any

import fake_lsm
import numpy as np
import pytest
from advised import DRIVE, LOAD, STREAMS

from spillway.advise import reads
from spillway.advise.configuration import DEFAULTS, MIB, SEPARATED, SHAPES, SINGLE, UNIVERSAL, Configuration
from spillway.advise.drive import BULK_BYTES, PAGE, ServiceTimes
from spillway.advise.exact import _in_its_seconds, exact
from spillway.advise.simulated import Setting, Span
from spillway.advise.traffic import Traffic, closed_form
from spillway.advise.workload import Workload

BARE = replace(DEFAULTS, block_cache_bytes=0)
SCANS = replace(LOAD, puts=0.0, gets=0.0, scans=1.0, scan_pairs=50)


def config_of(shape: str, **changes: Any) -> Configuration:
    return replace(DEFAULTS, shape=shape, fanout=1 if shape == SINGLE else 10, **changes)


def traffic_of(load: Workload, config: Configuration, *shares: float, l0_files: float = 0.0, **more: Any) -> Traffic:
    """A tree whose levels below L0 hold these shares of the data."""
    sizes = tuple(share * load.data_bytes for share in shares)
    return replace(closed_form(load, config, DRIVE, 8), l0_files=l0_files, level_bytes=sizes, **more)


# ---------------------------------------------------------------- the drive's time for a part of a file


def test_a_part_of_a_file_takes_from_a_page_to_a_stream() -> None:
    times, k = DRIVE.times, np.array([1.0, 2.0, 4.0, 16.0, 64.0])
    sizes = np.array([PAGE, 2 * PAGE, 16384, 65536, BULK_BYTES, 2 * BULK_BYTES])
    found = np.array([times.part_us(float(size), k) for size in sizes])
    assert list(found[0]) == pytest.approx(list(times.reads_us(PAGE, k)))
    rates = np.array([1200.0, 2200.0, 3000.0, 3060.0, 3060.0])  # of that many streams
    assert list(found[4]) == pytest.approx(list(k * BULK_BYTES / rates))
    assert (np.diff(found, axis=0) > 0).all() and (np.diff(found, axis=1) >= 0).all()
    assert (found[3] < 16 * found[0]).all()


def test_a_saturated_drive_reads_parts_at_the_rate_of_its_streams() -> None:
    times = DRIVE.times
    assert times.part_cost_us(PAGE) == times.read_cost_us(PAGE)
    assert times.part_cost_us(BULK_BYTES) == pytest.approx(BULK_BYTES / 3060.0)
    deep = float(times.part_us(16384.0, np.array([256.0]))[0]) / 256
    assert times.part_cost_us(16384.0) == pytest.approx(deep, rel=0.05)


def test_streams_slower_than_pages_at_random_make_no_part_faster_than_a_page() -> None:
    fast = ServiceTimes({PAGE: [(1, 500.0, 600.0), (16, 900.0, 990.0)]}, STREAMS | {"read": [(1, 1e6)]})
    assert float(fast.part_us(65536.0, np.array([1.0]))[0]) == pytest.approx(500.0)


# ---------------------------------------------------------------- pages, values


@pytest.mark.parametrize(
    ("value", "block", "pages"),
    [(1000, 4096, 2.007), (1000, 16384, 4.767), (4000, 4096, 1.986), (16000, 4096, 4.916), (8, 4096, 1.997)],
)
def test_a_block_begins_anywhere_and_holds_whole_pairs(value: int, block: int, pages: float) -> None:
    """Four pairs of 1,016 bytes are a little more than a page, and lie across two; counted in runs of RocksDB: 1.99."""
    load = replace(LOAD, puts=0.0, gets=1.0, scans=0.0, value_bytes=value)
    config = replace(BARE, block_bytes=block)
    found = reads.get(load, config, traffic_of(load, config, 1.0))
    assert found.blocks == pytest.approx(1.0)
    assert found.block_bytes / PAGE == pytest.approx(pages, abs=0.01)


def test_a_separated_value_is_read_by_itself() -> None:
    load = replace(LOAD, puts=0.0, gets=1.0, scans=0.0)
    config = config_of(SEPARATED, block_cache_bytes=100 * 2**30)
    found = reads.get(load, config, traffic_of(load, config, 0.04))
    of_tree = found.blocks - 1  # the tree of addresses is in the cache, but for what none holds
    assert 0 < of_tree < 0.05
    pages = (1 + 1047 / PAGE + of_tree * (1 + 4126 / PAGE)) / found.blocks
    assert found.block_bytes / PAGE == pytest.approx(pages, rel=0.002)
    fifty = reads.scan(SCANS, config, traffic_of(SCANS, config, 0.04))
    assert fifty.blocks == pytest.approx(50, abs=1.1)


# ---------------------------------------------------------------- read-ahead


def rocksdb_reads(blocks: int, block_bytes: float) -> tuple[int, float]:
    """(reads, bytes) of so many blocks in a row: two by themselves, then with 8, 16, ... 256 KiB beside them."""
    count, held, got = 0, 0.0, 0.0
    while held < blocks:
        ahead = 0 if count < 2 else min(256 * 1024, 8192 * 2 ** (count - 2))
        count, held, got = count + 1, held + (block_bytes + ahead) / block_bytes, got + block_bytes + ahead
    return count, got


@pytest.mark.parametrize("pairs", [7, 50, 400, 3000])
def test_scans_are_read_ahead_as_rocksdb_does(pairs: int) -> None:
    load = replace(SCANS, scan_pairs=pairs)
    found = reads.scan(load, BARE, traffic_of(load, BARE, 1.0))
    block = 4 * 1028 + 13
    blocks = 1 + pairs / 4.013
    (few, less), (many, most) = (rocksdb_reads(round(each), block) for each in (blocks - 1, blocks + 1))
    assert few <= found.accesses <= many
    pages = found.blocks * found.block_bytes + found.ordered * found.ordered_bytes
    assert less <= pages <= most + many * PAGE


def test_a_scan_of_several_runs_begins_to_read_ahead_in_each() -> None:
    one = reads.scan(SCANS, BARE, traffic_of(SCANS, BARE, 1.0))
    two = reads.scan(SCANS, BARE, traffic_of(SCANS, BARE, 0.5, 0.5))
    small = reads.scan(SCANS, BARE, traffic_of(SCANS, BARE, 0.01, 0.99))
    assert (one.blocks, small.blocks, two.blocks) == pytest.approx((1.0, 2.0, 2.0))
    assert two.accesses > small.accesses > one.accesses + 0.9
    assert two.accesses < 2 * one.accesses


def test_what_scans_read_takes_their_share_of_the_cache() -> None:
    """Of a large and a small run, equal seeks: long scans of the large one push the small one's blocks out."""
    config = replace(DEFAULTS, block_cache_bytes=10**9)
    misses = []
    for pairs in (1, 50, 1000):
        load = replace(SCANS, scan_pairs=pairs)
        _, runs = reads.runs_of(load, config, traffic_of(load, config, 0.05, 0.95))
        misses.append(reads._missed(load, config, runs))
    assert misses[0][1] < misses[1][1] < misses[2][1]
    assert misses[0][2] > misses[2][2]


# ---------------------------------------------------------------- trees as a load in order leaves them


@pytest.mark.parametrize("bits", [0, 10])
def test_gets_of_a_tree_that_was_loaded_in_order_read_one_block(bits: int) -> None:
    """Measured of RocksDB's defaults: 0.86 blocks with a cache, as many as with filters."""
    load = replace(LOAD, puts=0.0, gets=1.0, scans=0.0)
    config = replace(BARE, bits_per_key=bits)
    blocks = [
        reads.get(load, config, traffic_of(load, config, 0.05, 0.6, 0.35, as_loaded=share)).blocks
        for share in (0.0, 0.5, 1.0)
    ]
    assert blocks[2] == pytest.approx(1.0)
    assert blocks[0] >= blocks[1] >= blocks[2] and (bits or blocks[0] > 1.3)


def test_scans_of_such_a_tree_stay_in_one_run() -> None:
    levels = (0.05, 0.6, 0.35)
    mixed, loaded = (reads.scan(SCANS, BARE, traffic_of(SCANS, BARE, *levels, as_loaded=each)) for each in (0.0, 1.0))
    alone = reads.scan(SCANS, BARE, traffic_of(SCANS, BARE, 1.0))
    assert loaded.accesses == pytest.approx(alone.accesses)
    assert mixed.accesses > 1.4 * alone.accesses


@pytest.mark.parametrize("shape", SHAPES)
def test_only_an_experiment_has_a_tree_as_it_was_loaded(shape: str) -> None:
    """What compactions have rewritten by the middle of the measurement is no longer so; what is advised is steady."""
    load = replace(LOAD, puts=0.05, gets=0.95, scans=0.0, clients=2)
    config = config_of(shape)
    steady = Setting(load, DRIVE, 4, fake_lsm.simulate)
    assert exact(steady, config, (1,), config).traffic.as_loaded == 0.0
    behind_a_load = replace(steady, span=Span(1.0, 2.0))
    tree = traffic_of(load, config, 0.05, 0.95)
    above = 0.05 * load.data_bytes
    compacting, idle = replace(tree, wa_app=5.0), replace(tree, wa_app=2.0)
    rates = [0.0, 1.0, above / 3 / 2.0 / load.pair_bytes / 2, above]  # 3 bytes a byte, in the two seconds to the middle
    assert [_in_its_seconds(behind_a_load, config, idle, rate).as_loaded for rate in rates] == [1.0, 1.0, 1.0, 1.0]
    found = [_in_its_seconds(behind_a_load, config, compacting, rate).as_loaded for rate in rates]
    assert found[0] > 0.99999 and found[2] == pytest.approx(0.5) and found[3] == 0.0
    assert found == sorted(found, reverse=True)


@pytest.mark.parametrize("shape", SHAPES)
def test_in_seconds_one_compaction_more_or_less_is_what_wa_app_is_known_to(shape: str) -> None:
    """A compaction of four memtables with as much below them, 512 MiB, beside what is put in the seconds."""
    config, steady = config_of(shape), Setting(LOAD, DRIVE, 4, fake_lsm.simulate)
    tree = replace(traffic_of(LOAD, config, 0.05, 0.95), wa_app=5.0, spread=(("wa_app", 0.03), ("held_bytes", 0.1)))
    assert _in_its_seconds(steady, config, tree, 1e4) == tree
    known = []
    for rate in (1e2, 1e4, 1e6):
        spread = dict(_in_its_seconds(replace(steady, span=Span(1.0, 2.0)), config, tree, rate).spread)
        assert spread["held_bytes"] == 0.1 and spread["wa_app"] > 0.03
        known.append(spread["wa_app"])
    assert known == sorted(known, reverse=True)
    if shape == "leveled":
        one = 2 * 4 * 64 * MIB
        assert known[0] == pytest.approx(one / 2 / (1e2 * 2.0 * LOAD.pair_bytes * 5.0), rel=0.02)
        assert known[2] < 0.04


def test_a_universal_trees_large_run_in_l0_is_read_like_any_other() -> None:
    """After a load in order L0 holds runs of half the data, which no level below it has."""
    load = replace(LOAD, puts=0.0, gets=1.0, scans=0.0)
    config = config_of(UNIVERSAL, block_cache_bytes=10**9)
    small = traffic_of(load, config, 0.4, l0_files=3.0, l0_bytes=64.0 * MIB)
    _, runs = reads.runs_of(load, config, small)
    assert sum(each.count * each.size for each in runs) == pytest.approx(load.data_bytes)
    assert sum(each.count for each in runs) == 4
    assert reads.get(load, config, small).blocks > 1.3  # half of the gets look into that run in vain
    _, whole = reads.runs_of(load, config, traffic_of(load, config, 1.0, l0_files=3.0, l0_bytes=64.0 * MIB))
    assert [each.count for each in whole] == [3.0, 1.0]
