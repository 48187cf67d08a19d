"""LevelDB's simulated tree: what must hold of any load, LevelDB's own limits, and the paper's ordering."""

import math
from dataclasses import replace

import pytest

from spillway.models.leveldb import GROWTH, L0_STOP, L1_BYTES, MIB, Shape, fill_random

SMALL = Shape(write_buffer_bytes=MIB // 4, max_file_bytes=MIB)


@pytest.mark.parametrize("pairs", [1e6, 3e6, 1e7])
def test_every_key_is_in_the_tree_once_or_waits_for_its_merge(pairs: float) -> None:
    done = fill_random(Shape(), pairs)
    distinct = pairs * -math.expm1(-1)
    entries = [size / Shape().table_entry_bytes for size in done.level_bytes]
    assert sum(entries) >= distinct * 0.99 - Shape().memtable_entries
    # Each older version that is still held has a newer one above it.
    last = max(index for index, count in enumerate(entries) if count)
    assert sum(entries) - distinct <= sum(entries[:last]) * 1.01


@pytest.mark.parametrize("pairs", [1e6, 1e7, 3e7])
def test_levels_stay_near_their_limits(pairs: float) -> None:
    done = fill_random(Shape(), pairs)
    l0_table = Shape().memtable_entries * Shape().table_entry_bytes
    assert done.level_bytes[0] <= L0_STOP * l0_table * 1.01
    limit = float(L1_BYTES)
    for level in done.level_bytes[1:-1]:
        # An L0 compaction puts all of L0 into L1 at once; further down a level is over by what one compaction brings.
        assert level <= limit * 1.2 + L0_STOP * l0_table
        limit *= GROWTH


def test_what_fits_into_l0_is_written_twice() -> None:
    pairs = 3 * Shape().memtable_entries
    done = fill_random(Shape(), pairs)
    assert sum(done.compaction_bytes) == 0
    assert done.flush_bytes == pytest.approx(done.level_bytes[0])
    assert 2.0 < done.wa_app < 2.4


def test_more_data_costs_more_and_larger_memtables_less() -> None:
    by_data = [fill_random(SMALL, pairs).wa_app for pairs in (3e5, 1e6, 3e6, 1e7)]
    assert by_data == sorted(by_data)
    by_buffer = [fill_random(replace(Shape(), write_buffer_bytes=mib * MIB), 2e7).wa_app for mib in (4, 16, 32, 64)]
    assert by_buffer == sorted(by_buffer, reverse=True)


def test_overwriting_few_keys_costs_less_than_spreading_out() -> None:
    assert fill_random(Shape(), 5e6, keys=5e5).wa_app < fill_random(Shape(), 5e6, keys=5e6).wa_app


def test_the_same_load_is_written_the_same() -> None:
    assert fill_random(SMALL, 2e6) == fill_random(SMALL, 2e6)


def test_a_load_of_nothing_is_refused() -> None:
    with pytest.raises(ValueError, match="at least one pair"):
        fill_random(Shape(), 0)
