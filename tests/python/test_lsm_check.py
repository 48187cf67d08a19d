"""scripts/lsm_check.py: what it asks of the simulator, bytes of levels, and what counts as within the bounds."""

import runpy
from pathlib import Path
from typing import Any

import pytest

from spillway.lsm import DEFAULT_COSTS
from spillway.plan.arm import Arm
from spillway.plan.document import load_plan

PLANS = Path(__file__).parents[2] / "plans"
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
    ("measured", "simulated", "errors"),
    [
        ([0, 50, 500], [0, 50, 500], {1: 0, 2: 0}),
        ([0, 50, 500], [0, 40, 510], {1: 0.2, 2: 0.02}),
        ([0, 4, 500], [0, 0, 500], {2: 0}),  # some files: not compared
        ([0, 5, 500], [0, 4, 500], {1: 0.2, 2: 0}),
        ([0, 0, 500], [0, 8, 500], {1: 2, 2: 0}),  # a level that should hold none is held against some files
        ([9, 50], [8, 50], {1: 0}),  # files of L0 are memtables
        ([13, 50], [26, 50], {0: 1, 1: 0}),
        ([0, 50, 500], [0, 50], {1: 0, 2: 1}),  # a level is missing
        ([0, 50], [0, 50, 6], {1: 0, 2: 1.5}),
        ([], [1, 2], {}),  # of an older run
    ],
)
def test_levels_of_more_than_some_files_are_compared(
    measured: list[float], simulated: list[float], errors: dict[int, float]
) -> None:
    assert CHECK["FEW_FILES"] == 4
    assert CHECK["level_errors"](measured, simulated, [3.0, 1.0]) == pytest.approx(errors)


def test_files_are_as_large_as_the_arm_says() -> None:
    tree = {"write_buffer_size": 4096, "target_file_size_base": 1024, "fanout": 4}
    assert CHECK["file_bytes"]({"tree": tree}) == [4096, 1024]


def test_arms_within_the_bounds_are_counted() -> None:
    def row(ops: float, stalled: float, written: float, levels: dict[int, float]) -> dict[str, Any]:
        return {"ops_s": (100.0, ops), "stall_share": (0.5, stalled), "wa_app": (5.0, written), "level_errors": levels}

    rows = [row(119, 0.59, 5.4, {1: 0.14, 2: 0.1}), row(79, 0.2, 4.4, {2: 0.1, 3: 0.2}), row(81, 0.5, 5.6, {})]
    assert [line.removeprefix("# ") for line in CHECK["within"](rows)] == [
        *("ops_s within 20%: 2 of 3", "wa_app within 10%: 1 of 3", "stall_share within 20%: 2 of 3"),
        *("mean bytes of every level within 15%: 1 of 2", "mean bytes of L1 within 15%: 1 of 1"),
        *("mean bytes of L2 within 15%: 2 of 2", "mean bytes of L3 within 15%: 0 of 1"),
    ]
    stalls = [row(100, share, 5, {}) | {"stall_share": (0.0, share)} for share in (0.0, 0.009, 0.02)]
    assert CHECK["within"](stalls)[2].endswith("2 of 3")  # where nothing stalls, an absolute bound


# ---------------------------------------------------------------- what is asked of the simulator


def arm_of(plan: str, name: str) -> Arm:
    return next(arm for arm in load_plan(PLANS / plan).arms if arm.name == name)


def test_a_plan_with_separated_values_is_asked_as_it_runs() -> None:
    asked = CHECK["request"](arm_of("lsm-check-blobs.toml", "older half, 4 threads, 4000 B"))
    tree, load, host = asked["tree"], asked["load"], asked["host"]
    assert tree["enable_blob_files"] is True and tree["enable_blob_garbage_collection"] is True
    assert tree["blob_garbage_collection_age_cutoff"] == 0.5 and tree["blob_file_size"] == 8 * 2**20
    assert tree["level_compaction_dynamic_level_bytes"] is True and tree["compaction_threads"] == 4
    assert load["distribution"] == "uniform" and load["preload"] == "fillseq" and load["settle"] is False
    assert (load["num"], load["operations"], load["value_bytes"]) == (30_000, 60_000, 4000)
    assert host["put_ns"] == DEFAULT_COSTS.put_ns / 2  # a second of the drive takes two of the machine
    assert host["log_dirty_bytes"] == DEFAULT_COSTS.log_dirty_bytes
    assert "initial" not in asked  # the drive is empty


def test_a_plan_that_loads_a_tree_is_asked_as_it_runs() -> None:
    asked = CHECK["request"](arm_of("lsm-check.toml", "F = 4, 1 MiB, 4 threads, 400 B"), host__put_ns=9000.0)
    assert asked["load"]["distribution"] == "filluniquerandom" and asked["load"]["settle"] is True
    assert not {"preload", "operations"} & set(asked["load"])
    assert "enable_blob_files" not in asked["tree"] and asked["tree"]["fanout"] == 4
    assert asked["initial"] == {"kind": "steady", "fill": 0.3}
    assert asked["host"]["put_ns"] == 9000


def test_a_slowed_drive_is_compared_in_its_own_time() -> None:
    found = {"throughput_ops_s": 100.0, "stalls": {"seconds": 4.0}, "duration_s": 8.0, "bill": None, "wa_app": 2.5}
    result = {
        "ops_s": 190.0, "user_bytes": 100, "host_bytes_written": 240, "nand_bytes_programmed": {"host": 240},
        "stalls": {"stopped_s": {"l0": 1.0}}, "simulated_seconds": 2.0, "held_bytes": 1, "live_user_bytes": 1,
        "levels": [],
    }  # fmt: skip
    row = CHECK["compare"](found, {}, result, ([], []), [1.0, 1.0], 2.0)
    assert row["ops_s"] == (200.0, 190.0) and row["stall_share"] == (0.5, 0.5) and row["wa_app"] == (2.5, 2.4)
