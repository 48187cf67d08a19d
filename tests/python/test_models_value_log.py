"""The simulated value log: what must hold of any load, what collection costs, and measured runs."""

import math

import pytest

from spillway.models.leveldb import MIB, Shape
from spillway.models.leveldb import fill_random as fill_leveldb
from spillway.models.value_log import LogShape, fill_random, record_bytes


def test_a_record_is_as_long_as_the_engine_writes_it() -> None:
    # tests/native/engine_vlog_test.cc holds record_bytes() of the engine to what it appends.
    assert [record_bytes(16, value) for value in (0, 100, 127, 128, 16384)] == [23, 123, 150, 152, 16409]


def test_large_values_are_written_once_and_small_ones_hardly_less_often_than_by_leveldb() -> None:
    by_size = [fill_random(Shape(value_bytes=value), 9e8 / (16 + value)).wa_app for value in (16, 100, 1024, 16384)]
    assert by_size == sorted(by_size, reverse=True)
    assert 1.0 < by_size[-1] < 1.01
    assert by_size[0] == pytest.approx(fill_leveldb(Shape(value_bytes=16), 9e8 / 32).wa_app, rel=0.15)


def test_a_load_of_each_key_once_on_average_collects_nothing() -> None:
    done = fill_random(Shape(), 8e6, log=LogShape(segment_bytes=8 * MIB))
    assert (done.moved_bytes, done.removed_segments) == (0, 0)
    assert done.log_bytes == 8e6 * 123


@pytest.mark.parametrize("ratio", [0.3, 0.5, 0.8, 0.95])
def test_the_log_holds_as_much_garbage_as_is_allowed(ratio: float) -> None:
    keys, record, segment = 1e6, record_bytes(16, 100), 1 * MIB
    done = fill_random(Shape(), 2e7, keys, LogShape(segment, ratio))
    left = (done.log_bytes + done.moved_bytes) / segment - done.removed_segments
    # The log's age at its tail is A puts, with 1 - exp(-A / keys) = ratio; each segment takes up fewer puts than it
    # has records, for of each that is collected 1 - ratio is moved.
    age = -math.log(1 - ratio) * keys
    assert left == pytest.approx(age * record / segment / ratio, rel=0.1)
    assert done.moved_bytes / done.log_bytes == pytest.approx((1 - ratio) / ratio, rel=0.1 + age / 2e7)


def test_collecting_early_costs_more() -> None:
    logs = [LogShape(8 * MIB, ratio) for ratio in (0.3, 0.5, 0.8)]
    costs = [fill_random(Shape(), 5e6, 1e6, log).wa_app for log in logs]
    assert costs == sorted(costs, reverse=True)


def test_a_load_of_nothing_is_refused() -> None:
    with pytest.raises(ValueError, match="at least one pair"):
        fill_random(Shape(), 0)


@pytest.mark.parametrize(
    ("pairs", "value_bytes", "wa_app"),
    # Measured: spillway run plans/value-log.toml
    [(2.5e6, 100, 2.122), (8e6, 100, 2.963), (892_308, 1024, 1.080), (56_585, 16384, 0.999)],
)
def test_measured_runs_come_out_within_10_percent(pairs: float, value_bytes: int, wa_app: float) -> None:
    assert fill_random(Shape(value_bytes=value_bytes), pairs).wa_app == pytest.approx(wa_app, rel=0.1)


def test_the_papers_volume_comes_out_within_15_percent() -> None:
    # 54.0 GiB of pairs of 116 B (section 5.1), with db_bench's decimal keys, of which a block's neighbours share some
    # twelve digits. Nothing is collected.
    done = fill_random(Shape(shared_bytes=12.0), 5.0e8)
    assert done.wa_app == pytest.approx(5.2, rel=0.15)
    assert done.removed_segments == 0
