"""scripts/lsm_check.py: which threads RocksDB gives a job, bytes of levels, and what counts as within the bounds."""

import runpy
from pathlib import Path
from typing import Any

import pytest

CHECK = runpy.run_path(str(Path(__file__).parents[2] / "scripts" / "lsm_check.py"))


@pytest.mark.parametrize(("jobs", "threads"), [(1, (1, 1)), (2, (1, 1)), (3, (1, 2)), (5, (1, 4)), (8, (2, 6))])
def test_background_jobs_are_split_as_rocksdb_splits_them(jobs: int, threads: tuple[int, int]) -> None:
    assert CHECK["job_threads"](jobs) == threads


def test_bytes_of_levels_are_those_of_the_statistics() -> None:
    statistics = {"rocksdb.level0.bytes": 5, "rocksdb.level2.bytes": 7, "rocksdb.level2.files": 9}
    statistics |= {"rocksdb.level2.read.bytes": 11, "rocksdb.bytes.written": 13}
    assert CHECK["level_bytes"](statistics) == [5, 0, 7]
    assert CHECK["level_bytes"]({"rocksdb.bytes.written": 13}) == []  # of an older run


def test_means_of_levels_are_of_the_second_half_of_the_puts() -> None:
    course = [(60.0, [9.0]), (20.0, [4.0, 2.0]), (20.0, [6.0, 8.0]), (0.0, [99.0, 99.0])]
    assert CHECK["mean_levels"](course) == pytest.approx([5.8, 4.0])
    assert CHECK["mean_levels"]([]) == []
    samples = [{"operations": count, "level_bytes": [count]} for count in (3, 10)]
    assert CHECK["simulated_course"](samples) == [(3.0, [3.0]), (7.0, [10.0])]


@pytest.mark.parametrize(
    ("measured", "simulated", "error"),
    [
        ([0, 100, 1000], [0, 100, 1000], 0),
        ([0, 100, 1000], [0, 80, 1020], 0.2),
        ([0, 100, 1000], [50, 100, 1000], 50 / 22),  # a level that should be empty is held against the least share
        ([0, 100, 1000], [0, 100], 1),  # a level is missing
        ([0, 5, 1000], [0, 10, 1000], 0),  # both are too small to count
        ([], [1, 2], None),
    ],
)
def test_the_level_that_is_furthest_off_counts(
    measured: list[float], simulated: list[float], error: float | None
) -> None:
    assert CHECK["worst_level"](measured, simulated) == (error if error is None else pytest.approx(error, abs=0.01))


def test_arms_within_the_bounds_are_counted() -> None:
    def row(ops: float, stalled: float, written: float, level: float | None) -> dict[str, Any]:
        return {
            "ops_s": (100.0, ops),
            "stall_share": (0.5, stalled),
            "wa_app": (5.0, written),
            "worst_mean_level_error": level,
            "worst_level_error": None,
        }

    rows = [row(119, 0.59, 5.4, 0.14), row(79, 0.2, 4.4, 0.2), row(81, 0.5, 5.6, None)]
    assert [line.rsplit(": ", 1)[1] for line in CHECK["within"](rows)] == [
        *("2 of 3", "1 of 3", "2 of 3", "1 of 2", "0 of 0"),
    ]
    stalls = [row(100, share, 5, None) | {"stall_share": (0.0, share)} for share in (0.0, 0.009, 0.02)]
    assert CHECK["within"](stalls)[2].endswith("2 of 3")  # where nothing stalls, an absolute bound
