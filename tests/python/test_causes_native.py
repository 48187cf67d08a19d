"""Bytes by cause on a plain directory and an emulated drive, of every engine: against its own statistics, where it
counts, and otherwise each against the other."""

from pathlib import Path
from typing import Any

import pytest

from spillway.native.process import run_native
from spillway.rundir.samples import HOST_CAUSES

pytestmark = [pytest.mark.native, pytest.mark.usefixtures("real_native")]

NUM, VALUE_BYTES = 60_000, 100

ROCKSDB = {
    "write_buffer_size": "524288",
    "target_file_size_base": "524288",
    "max_bytes_for_level_base": "2097152",
    "compression": "kNoCompression",
}
BLOB = {"enable_blob_files": "true", "min_blob_size": "64"}
LEVELDB = {"write_buffer_size": "524288", "compression": "kNoCompression"}
ENGINES: dict[str, dict[str, Any]] = {
    "rocksdb": {"name": "rocksdb", "options": ROCKSDB},
    "blob": {"name": "rocksdb", "options": ROCKSDB | BLOB},
    "spillway": {"name": "spillway", "options": ROCKSDB},
    "leveldb": {"name": "leveldb", "options": LEVELDB},
    "leveldb-vlog": {"name": "leveldb-vlog", "options": LEVELDB},
    "wiredtiger": {"name": "wiredtiger", "options": {"cache_size": "8MiB", "log.file_max": "4MiB"}},
}
# The accelerator diverts nothing: what it would divert hangs on threads' times.
NEVER_OPTIONS = {"max_write_buffer_number": "64"}
NEVER = {"divert_l0_files": 10_000, "resume_l0_files": 9_999, "divert_pending": 0.99, "resume_pending": 0.98}
DRIVE = {"set": {"capacity.capacity_bytes": "1GiB", "capacity.spare_factor": "0.2"}}
EMULATED = {"kind": "emulated", "pacing": "off", "initial": {"kind": "trimmed"}, "drive": DRIVE}


def filled(place: Path, engine: dict[str, Any], target: dict[str, Any]) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """The result and the samples of one thread's puts, flushed and compacted."""
    request = {
        "seed": 1,
        "directory": str(place),
        "target": target,
        "engine": engine,
        "load": {"num": NUM, "key_bytes": 16, "value_bytes": VALUE_BYTES, "seed": 1},
        "phases": [
            {"name": "fill", "workload": "fillrandom", "operations": NUM},
            {"name": "settle", "workload": "settle"},
        ],
        "sample_interval_ms": 100,
    }
    events: list[dict[str, Any]] = []
    result = run_native("run", request, events.append)
    return result, [event for event in events if event["event"] == "sample"]


def own_counts(engine: str, statistics: dict[str, int]) -> dict[tuple[str, ...], int]:
    """What the engine itself counts as written for some causes together."""
    if engine in ("rocksdb", "blob"):
        counts = {("wal",): statistics["rocksdb.wal.bytes"]}
        tables = ("flush", "compaction", "manifest", *(("blob",) if engine == "blob" else ()))
        return counts | {tables: statistics["rocksdb.flush.write.bytes"] + statistics["rocksdb.compact.write.bytes"]}
    if engine == "leveldb-vlog":
        return {("blob",): statistics["vlog.appended_bytes"]}
    if engine == "wiredtiger":
        data = statistics["block-manager: bytes written"]
        return {("wal",): statistics["log: log bytes written"], ("flush", "checkpoint", "manifest"): data}
    return {}  # LevelDB counts nothing, and RocksDB not the tables that the accelerator ingests


@pytest.mark.parametrize("engine", ENGINES)
def test_a_directory_has_bytes_by_cause(tmp_path: Path, engine: str) -> None:
    result, samples = filled(tmp_path / "db", ENGINES[engine], {"kind": "directory"})
    by_cause = result["host_bytes_written_by_cause"]
    assert set(by_cause) == set(HOST_CAUSES)
    assert "host_bytes_written" not in result, "no drive was named whose counters could be read"
    parts = [sample["drive"]["host_bytes_written_by_cause"] for sample in samples]
    assert by_cause == {cause: sum(part[cause] for part in parts) for cause in HOST_CAUSES}

    log = by_cause["wal"] + by_cause["spill"] + (by_cause["blob"] if engine == "leveldb-vlog" else 0)
    assert engine == "spillway" or by_cause["spill"] == 0
    # Each pair is logged once, with up to 20 bytes of the log's own; what was diverted once more where it comes back as
    # puts; and WiredTiger pads its records to 128 bytes.
    assert 1 < log / result["user_bytes_written"] < {"wiredtiger": 3, "spillway": 2.5}.get(engine, 1.25)
    assert by_cause["flush"] + by_cause["checkpoint"] > 0
    assert by_cause["user"] == 0
    for causes, counted in own_counts(engine, result["engine_statistics"]).items():
        # RocksDB counts a log record without its frame of 7 bytes; bytes are written before they are counted.
        bound = 0.1 if causes == ("wal",) else 0.02
        assert sum(by_cause[cause] for cause in causes) == pytest.approx(counted, rel=bound), causes


@pytest.mark.parametrize("target", [{"kind": "directory"}, EMULATED], ids=["directory", "drive"])
@pytest.mark.parametrize("engine", ["rocksdb", "blob", "spillway"])
def test_each_cause_has_the_bytes_that_rocksdb_counts(tmp_path: Path, engine: str, target: dict[str, Any]) -> None:
    chosen = ENGINES[engine]
    if engine == "spillway":
        chosen = chosen | {"options": ROCKSDB | NEVER_OPTIONS, "spill": NEVER}
    result, _ = filled(tmp_path / "db", chosen, target)
    by_cause, statistics = result["host_bytes_written_by_cause"], result["engine_statistics"]
    tables = ("flush", "blob") if engine == "blob" else ("flush",)
    counted = {
        ("wal",): statistics["rocksdb.wal.bytes"] + 7 * NUM,  # without the frame of each record
        tables: statistics["rocksdb.flush.write.bytes"],
        ("compaction",): statistics["rocksdb.compact.write.bytes"],
    }
    for causes, expected in counted.items():
        # A drive takes whole pages of 4 KiB, of files of 512 KiB and of what is written of a log at a time.
        assert sum(by_cause[cause] for cause in causes) == pytest.approx(expected, rel=0.03), causes
    named = {cause for causes in counted for cause in causes} | {"manifest"}
    assert {cause for cause, count in by_cause.items() if count > 0} <= named


@pytest.mark.parametrize("engine", ["leveldb", "leveldb-vlog", "wiredtiger"])  # they do not count each cause
def test_shares_by_cause_are_those_of_an_emulated_drive(tmp_path: Path, engine: str) -> None:
    on_files, on_drive = (
        filled(tmp_path / place, ENGINES[engine], target)[0]["host_bytes_written_by_cause"]
        for place, target in (("files", {"kind": "directory"}), ("drive", EMULATED))
    )
    for cause in HOST_CAUSES:
        # How much is compacted, or evicted, hangs on threads' times.
        share = on_drive[cause] / sum(on_drive.values())
        assert on_files[cause] / sum(on_files.values()) == pytest.approx(share, abs=0.15), cause
    same = ("wal", "blob") if engine == "wiredtiger" else ("wal", "blob", "flush")  # eviction is called flush
    for cause in same:
        if on_drive[cause] > sum(on_drive.values()) / 20:  # else most of it is the pages that a drive takes whole
            assert on_files[cause] == pytest.approx(on_drive[cause], rel=0.05), cause
