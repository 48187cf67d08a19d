"""The drive without an engine: its bytes are those that were asked for, and what it cannot do is refused."""

from pathlib import Path
from typing import Any

import pytest

from spillway.errors import SpillwayError
from spillway.native.process import run_native

pytestmark = [pytest.mark.native, pytest.mark.usefixtures("real_native")]

NUM = 200


def asked(directory: Path, workload: str, **changes: Any) -> dict[str, Any]:
    request = {
        "directory": str(directory / "db"),
        "target": {
            "kind": "emulated",
            "pacing": "off",
            "initial": {"kind": "trimmed"},
            "drive": {"set": {"capacity.capacity_bytes": "64MiB", "capacity.spare_factor": "0.2"}},
        },
        "engine": {"name": "raw"},
        "load": {"num": NUM, "key_bytes": 8, "value_bytes": 16384},
        "phases": [{"name": "only", "workload": workload, "operations": NUM}],
    }
    return run_native("run", request | changes)


@pytest.mark.parametrize("workload", ["fillseq", "fillrandom"])
def test_every_value_is_one_write_of_the_drive(tmp_path: Path, workload: str) -> None:
    result = asked(tmp_path, workload)
    assert result["host_bytes_written"] == NUM * 16384
    assert result["host_bytes_written_by_cause"]["user"] == NUM * 16384
    assert result["user_bytes_written"] == NUM * (16384 + 8)
    mapped = result["counters"]["host_writes"]
    assert mapped == NUM


def test_random_writes_of_a_full_drive_cost_more_than_ordered_ones(tmp_path: Path) -> None:
    target = {
        "kind": "emulated",
        "pacing": "off",
        "initial": {"kind": "sequential"},
        "drive": {"set": {"capacity.capacity_bytes": "64MiB", "capacity.spare_factor": "0.2"}},
    }
    load = {"num": 4000, "key_bytes": 8, "value_bytes": 16384}

    def wa_device(workload: str) -> float:
        phases = [{"name": "only", "workload": workload, "operations": 4000}]
        result = asked(tmp_path, workload, target=target, load=load, phases=phases)
        return float(sum(result["nand_bytes_programmed"].values()) / result["host_bytes_written"])

    ordered, random = wa_device("fillseq"), wa_device("fillrandom")
    assert ordered == pytest.approx(1, abs=0.05)
    assert random > 1.2


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"load": {"num": NUM, "value_bytes": 100}}, "load.value_bytes is 100; the engine raw writes blocks of it"),
        ({"load": {"num": NUM, "value_bytes": 0}}, "load.value_bytes is 0; the engine raw writes blocks of it"),
        ({"load": {"num": NUM, "value_bytes": 4097}}, "load.value_bytes is 4097; the engine raw writes blocks of it"),
        ({"load": {"num": NUM, "value_bytes": 128 << 20}}, "so it takes a multiple of 512 up to 67108864"),
        ({"engine": {"name": "raw", "options": {"x": "1"}}}, "x is no option of the engine raw"),
        ({"engine": {"name": "raw", "policy": "adoc"}}, "policy"),
        ({"target": {"kind": "directory"}}, "raw writes to an emulated drive"),
        ({"kept": {"to": "state"}}, "a database of the engine raw cannot be moved"),
        (
            {"phases": [{"name": "scan", "workload": "seekrandom", "operations": 1}]},
            "engine raw has no scans",
        ),
        (
            {"phases": [{"name": "load", "workload": "ycsb-load", "ycsb": {"recordcount": 10}}]},
            "engine raw has no records",
        ),
    ],
)
def test_what_it_cannot_do_is_refused(tmp_path: Path, changes: dict[str, Any], sentence: str) -> None:
    with pytest.raises(SpillwayError, match=sentence) as refused:
        asked(tmp_path, "fillseq", **changes)
    assert refused.value.exit_code == 2
    assert not list(tmp_path.iterdir())
