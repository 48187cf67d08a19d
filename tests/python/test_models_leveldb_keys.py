"""LevelDB's tree with its keys: the tree of means where tables have many, fewer bytes where they have two."""

import numpy as np
import pytest

from spillway.models import leveldb
from spillway.models.leveldb import GROWTH, L0_COMPACTION, L0_STOP, L1_BYTES, MIB, Shape
from spillway.models.leveldb_keys import MOST_PAIRS, fill_random

LARGE = Shape(value_bytes=MIB, puts_per_s=512.0, compaction_mb_s=512.0)


def without_log(done: leveldb.Written) -> float:
    return done.wa_app - done.log_bytes / done.user_bytes


@pytest.mark.parametrize("value_bytes", [16_384, 65_536])
def test_where_a_table_has_many_keys_it_is_as_the_tree_of_means(value_bytes: int) -> None:
    shape = Shape(value_bytes=value_bytes, puts_per_s=20_000.0, compaction_mb_s=500.0)
    drawn, means = fill_random(shape, 25_000), leveldb.fill_random(shape, 25_000)
    assert without_log(drawn) == pytest.approx(without_log(means), rel=0.1)
    assert drawn.flush_bytes == pytest.approx(means.flush_bytes, rel=0.02)


# Measured: LevelDB 1.23, values of 1 MiB, spillway run plans/cascaded-wa/value-size.toml --scale, HDD in virtual time
@pytest.mark.parametrize(("pairs", "measured"), [(432, 3.19), (1728, 4.61)])
def test_two_values_a_table_are_as_measured(pairs: int, measured: float) -> None:
    drawn = [without_log(fill_random(LARGE, pairs, seed)) for seed in range(1, 6)]
    assert np.median(drawn) == pytest.approx(measured, rel=0.1)
    if pairs > 1000:
        assert without_log(leveldb.fill_random(LARGE, pairs)) > 1.3 * measured


def test_values_of_1_mib_at_the_papers_size() -> None:
    # 29.0e9 bytes in values of 1 MiB: 8.03 on both SSDs, 8.02 on the disk (cascaded-WA paper, section 5.3, C19).
    assert without_log(fill_random(LARGE, 27_656)) == pytest.approx(8.03, rel=0.15)


@pytest.mark.parametrize("pairs", [200, 2000, 20_000])
def test_every_key_is_there_and_levels_stay_near_their_limits(pairs: int) -> None:
    done = fill_random(LARGE, pairs)
    distinct = len(np.unique(np.random.default_rng(1).integers(0, pairs, pairs)))
    entries = sum(done.level_bytes) / LARGE.table_entry_bytes
    assert distinct - 5 <= entries <= 1.5 * distinct + 50  # what is in the memtable is in no level
    limit = float(L1_BYTES)
    for level in done.level_bytes[1:-1]:
        # L0 goes first up to a score of 12 / 4, and then brings 12 tables of four values.
        assert level <= L0_STOP / L0_COMPACTION * limit + L0_STOP * 4 * LARGE.table_entry_bytes
        limit *= GROWTH


def test_the_last_log_is_that_of_the_memtable_that_is_left() -> None:
    of_one = LARGE.key_bytes + LARGE.value_bytes + leveldb.LOG_ENTRY_BYTES
    assert fill_random(LARGE, 10).last_log_bytes == 2 * of_one  # four values a memtable
    assert fill_random(LARGE, 12).last_log_bytes == 0


def test_the_same_seed_is_the_same_load() -> None:
    assert fill_random(LARGE, 500, seed=3) == fill_random(LARGE, 500, seed=3)
    assert fill_random(LARGE, 500, seed=3) != fill_random(LARGE, 500, seed=4)


@pytest.mark.parametrize("pairs", [0, MOST_PAIRS + 1])
def test_a_load_of_nothing_or_of_too_much_is_refused(pairs: int) -> None:
    with pytest.raises(ValueError, match="puts 1 to"):
        fill_random(LARGE, pairs)
