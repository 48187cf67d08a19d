"""`spillway lsm simulate` and spillway.lsm: requests, refusals, figures that add up, files touched per compaction."""

import csv
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import Invoke

from spillway.errors import SpillwayError
from spillway.lsm import SHAPES, lsm_request, ratios, simulate

pytestmark = [pytest.mark.native, pytest.mark.usefixtures("real_native")]
DRIVE: dict[str, Any] = {"preset": "nvmevirt-970pro", "set": {"capacity.capacity_bytes": "8GiB"}}
SMALL: dict[str, Any] = {
    "load__num": 200_000,
    "load__value_bytes": 1000,
    "tree__write_buffer_size": "1MiB",
    "tree__target_file_size_base": "1MiB",
    "tree__max_bytes_for_level_base": "4MiB",
}


def small(**more: Any) -> dict[str, Any]:
    return simulate(lsm_request(DRIVE, **(SMALL | more)))


def test_requests_and_results_are_of_the_contract(validator: Any) -> None:
    request = lsm_request(
        DRIVE, fill=0.2, sample_interval_s=0.1, queries=("readrandom:4:100",), settings=("tree.fanout=8",), **SMALL
    )
    validator("lsm-simulate.request.schema.json").validate(request)
    events: list[dict[str, Any]] = []
    result = simulate(request, events.append)
    for event in [*events, result]:
        validator("events.schema.json").validate(event)
    validator("events.schema.json", "lsm-simulate.result").validate(result)
    samples = [event for event in events if event["event"] == "lsm-sample"]
    assert len(samples) > 1
    assert [row["operations"] for row in samples] == sorted(row["operations"] for row in samples)
    for row in samples:  # keys are unique: what is in no memtable lies in a level
        put, in_memtables = row["operations"] * 1016, (row["immutable_memtables"] + 1) * 2**20
        assert 0.98 * (put - in_memtables) <= sum(row["level_bytes"]) <= 1.1 * put, row


@pytest.mark.parametrize("shape", SHAPES)
def test_its_bytes_add_up(shape: str) -> None:
    result = small(tree__shape=shape, load__distribution="uniform")
    of_tree = result["wal_bytes"] + result["flush_bytes"] + result["compaction_bytes_written"]
    assert result["host_bytes_written"] == pytest.approx(of_tree, rel=0.02)
    assert sum(result["host_bytes_written_by_cause"].values()) == result["host_bytes_written"]
    assert sum(level["bytes"] for level in result["levels"]) <= result["held_bytes"]
    derived = ratios(result)
    assert derived.wa_app is not None and derived.wa_device is not None and derived.wa_total is not None
    assert derived.wa_total == pytest.approx(derived.wa_app * derived.wa_device)
    assert derived.space_amplification is not None and derived.space_amplification >= 0.99


@pytest.mark.long
@pytest.mark.parametrize("num", [2_500_000, 5_000_000])
def test_files_touched_in_a_compaction_grow_with_the_fanout(num: int) -> None:
    """M19: the least-overlap policy touches Theta(F) files, R2 >= 0.97 (uniform unique keys). Over the paper's fanouts
    (M26), in the mean over every compaction of a load, out of L0 too, with RocksDB's defaults. The load is large enough
    that L2 is full at every fanout: where it is not, what there is to overlap is less than F."""
    drive = {"preset": "nvmevirt-970pro", "set": {"capacity.capacity_bytes": "16GiB"}}
    fanouts = np.array([2, 4, 8, 16, 32])
    assert num * 1016 > (4 + 4 * fanouts.max()) * 2**20
    every: list[float] = []
    below_l0: list[float] = []
    for fanout in fanouts:
        request = lsm_request(drive, **(SMALL | {"load__num": num, "tree__fanout": int(fanout), "tree__levels": 20}))
        levels = simulate(request)["files_touched"]["by_level"]
        for found, counted in ((every, levels), (below_l0, levels[1:])):
            found.append(sum(each["files"] for each in counted) / sum(each["compactions"] for each in counted))
    for touched in (every, below_l0):
        slope, intercept = np.polyfit(fanouts, touched, 1)
        residual = np.asarray(touched) - (slope * fanouts + intercept)
        assert 1 - residual.var() / np.var(touched) >= 0.97, touched
        assert slope > 0.1


@pytest.mark.parametrize(
    ("more", "sentence"),
    [
        ({"settings": ("tree.fanuot=8",)}, "--set tree.fanuot: there is no such key; did you mean 'tree.fanout'?"),
        ({"settings": ("tree.fanout",)}, "--set tree.fanout: give KEY=VALUE"),
        ({"settings": ("tree.fanout=many",)}, "tree.fanout"),
        ({"tree__shape": "wide"}, "tree.shape"),
        ({"queries": ("writerandom",)}, "--query writerandom: give readrandom or seekrandom"),
        ({"tree__write_buffer_size": "much"}, "tree.write_buffer_size is 'much', which is not a size"),
        ({"load__operations": 300_000}, "load.operations is above load.num"),
        ({"tree__level0_stop_writes_trigger": 2}, "must not fall in this order"),
        ({"grain": 3}, "grain is 3; it takes a power of two"),
        ({"fill": 1.0}, "initial.fill is 1: other data leaves no space"),
        ({"spill__capacity_bytes": "1MiB"}, "spill.capacity_bytes is 1048576, less than two requests"),
        ({"spill__capacity_bytes": "2MiB", "load__value_bytes": "4MiB"}, "spill.capacity_bytes is 2097152"),
    ],
)
def test_what_makes_no_sense_is_refused(more: dict[str, Any], sentence: str) -> None:
    with pytest.raises(SpillwayError) as refused:
        small(**more)
    assert sentence in str(refused.value)


def test_a_tree_that_does_not_fit_the_drive_says_so() -> None:
    drive = {"preset": "nvmevirt-970pro", "set": {"capacity.capacity_bytes": "256MiB"}}
    with pytest.raises(SpillwayError, match="does not fit the drive"):
        simulate(lsm_request(drive, **(SMALL | {"load__num": 2_000_000})))


def test_the_tree_lies_beside_other_data() -> None:
    drive = {"preset": "nvmevirt-970pro", "set": {"capacity.capacity_bytes": "1GiB"}}
    load = SMALL | {"load__num": 100_000, "load__operations": 500_000, "load__distribution": "uniform"}
    amplified = [ratios(simulate(lsm_request(drive, fill=fill, **load))).wa_device or 0 for fill in (0, 0.4, 0.7)]
    assert 1 <= amplified[0] < amplified[1] < amplified[2]
    with pytest.raises(SpillwayError, match="does not fit the drive"):
        simulate(lsm_request(drive, fill=0.95, **load))


@pytest.mark.parametrize("mib", [1, 4, 64])
@pytest.mark.parametrize("spill", [None, "512MiB"])
def test_large_values_are_put_and_logged(mib: int, spill: str | None) -> None:
    num = 1536 // mib
    size = mib * 2**20
    result = simulate(lsm_request(DRIVE, load__num=num, load__value_bytes=size, spill__capacity_bytes=spill))
    assert result["complete"] and result["operations"] == num
    # All but what waits in memory as the load ends (host.log_dirty_bytes).
    assert result["wal_bytes"] + result["spilled_bytes"] >= result["user_bytes"] - 2**26


def test_the_command_prints_a_table_and_writes_its_course(invoke: Invoke, tmp_path: Path) -> None:
    course = tmp_path / "course.csv"
    words = ["--preset", "nvmevirt-970pro", "--capacity", "4GiB", "--data", "200MB", "--value", "1000"]
    run = invoke("lsm", "simulate", *words, "--write-buffer", "1MiB", "--samples", course, "--interval", "0.05")
    assert run.code == 0
    assert "wa_app" in run.out and "L0" in run.out
    with course.open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) > 2 and {"t_s", "operations", "l0_files", "stopped"} <= set(rows[0])
    levels = [sum(int(value) for key, value in row.items() if key.startswith("level")) for row in rows]
    assert 0 < levels[0] < levels[-1] <= 200 * 10**6 * 1.1


def test_host_costs_of_a_file_are_used(invoke: Invoke, tmp_path: Path) -> None:
    costs = tmp_path / "host.json"
    costs.write_text(json.dumps({"put_ns": 1_000_000}))
    words = ["lsm", "simulate", "--preset", "nvmevirt-970pro", "--num", "1000", "--json"]
    rate = json.loads(invoke(*words, "--host", costs).out)["ops_s"]
    assert rate == pytest.approx(1000, rel=0.01)
    assert json.loads(invoke(*words, "--host", costs, "--set", "host.put_ns=500000").out)["ops_s"] > 1.9 * rate


def test_the_commands_bad_input_is_one_sentence(invoke: Invoke, tmp_path: Path) -> None:
    for words, sentence in (
        (("--data", "1GB", "--num", "5"), "--data and --num both"),
        (("--preset", "no-such-drive"), "no-such-drive"),
        (("--samples", tmp_path / "no" / "course.csv", "--num", "1000"), "make it first"),
        (("--samples", tmp_path, "--num", "1000"), "is a directory"),
        (("--fill", "lots"), "--fill is 'lots'"),
        (("--host", tmp_path / "none.json"), "none.json cannot be read"),
    ):
        refused = invoke("lsm", "simulate", *words)
        assert refused.code == 2 and sentence in refused.err and len(refused.err.splitlines()) <= 2, refused.err
