"""`spillway spill` with the real native side, on a database that a run has left with writes in its spill store."""

from pathlib import Path
from typing import Any

import pytest
from conftest import Invoke

from spillway.native.process import run_native

pytestmark = [pytest.mark.native, pytest.mark.usefixtures("real_native")]


@pytest.fixture
def database(tmp_path: Path) -> Path:
    """A database of 20,000 pairs, most of which were diverted: one L0 file is enough for that, and stays.

    They take two seconds, of which RocksDB has one to write that file and the detector to see it.
    """
    request: dict[str, Any] = {
        "seed": 1,
        "directory": str(tmp_path / "db"),
        "target": {"kind": "directory"},
        "engine": {
            "name": "spillway",
            "options": {
                "write_buffer_size": "1048576",
                "compaction_style": "kCompactionStyleNone",
                "level0_file_num_compaction_trigger": "1",
            },
            "spill": {"store": "region", "rollback": "off", "divert_l0_files": 1, "poll_ms": 5,
                      "generation_bytes": 4 << 20, "capacity_bytes": 1 << 30},
        },
        "load": {"key_bytes": 16, "value_bytes": 1000, "num": 20000, "seed": 1},
        "phases": [{"name": "fill", "workload": "fillseq", "threads": 1, "operations": 20000, "rate_ops_s": 10000,
                    "measured": True}],
    }  # fmt: skip
    assert run_native("run", request)["complete"]
    return tmp_path / "db"


def test_it_is_shown_checked_and_drained(database: Path, invoke: Invoke) -> None:
    shown = invoke("spill", "show", database, "--json").json()
    assert shown["operations"] > 10_000
    assert shown["fits"]
    assert sum(one["operations"] for one in shown["generations"]) == shown["operations"]
    assert invoke("spill", "check", database).code == 0
    drained = invoke("spill", "drain", database, "--json").json()
    assert drained["operations"] == shown["operations"]
    after = invoke("spill", "show", database, "--json").json()
    assert (after["operations"], after["guard"]) == (0, None)


def test_damage_is_reported_with_file_and_offset(database: Path, invoke: Invoke) -> None:
    log = sorted((database / "spill").glob("*.spill"))[0]
    content = bytearray(log.read_bytes())
    content[100_000] ^= 1
    log.write_bytes(content)
    checked = invoke("spill", "check", database)
    assert checked.code == 1
    assert f"damaged  {log} at byte " in checked.out
    drained = invoke("spill", "drain", database)
    assert drained.code != 0
    assert len(drained.err.splitlines()) == 1
    assert str(log) in drained.err


def test_one_that_is_lost_or_does_not_fit_is_no_success(database: Path, invoke: Invoke) -> None:
    (database / "spill").rename(database / "moved")
    checked = invoke("spill", "check", database)
    assert checked.code == 1
    assert "cannot be opened" in checked.out
    (database / "spill").mkdir()
    assert invoke("spill", "check", database, "--json").code == 1


def test_what_only_its_program_can_drain_is_refused_in_one_sentence(database: Path, invoke: Invoke) -> None:
    options = max(database.glob("OPTIONS-*"))
    options.write_text(options.read_text().replace("merge_operator=nullptr", "merge_operator=OfTheProgram"))
    drained = invoke("spill", "drain", database)
    assert drained.code == 2, "as any other bad input"
    assert len(drained.err.splitlines()) == 1
    assert "merge operator OfTheProgram, which only your program has" in drained.err


def test_what_is_no_spill_store_is_refused_in_one_sentence(tmp_path: Path, invoke: Invoke) -> None:
    for command in ("show", "check"):
        ended = invoke("spill", command, tmp_path)
        assert ended.code == 2
        assert "neither a RocksDB database nor a spill store" in ended.err
    assert invoke("spill", "drain", tmp_path).code == 2


@pytest.mark.parametrize(
    ("first", "second", "diverted"),
    [
        ("never", "always", 150),
        ("always", "automatic", 350),  # automatic: keys whose newest value is in the store
        ("always", "never", 350),
        ("never", "never", 0),
    ],
)
def test_a_phase_says_where_its_writes_go(tmp_path: Path, first: str, second: str, diverted: int) -> None:
    phase = {"workload": "fillseq", "threads": 1}
    request: dict[str, Any] = {
        "seed": 1,
        "directory": str(tmp_path / "db"),
        "target": {"kind": "directory"},
        "engine": {"name": "spillway", "spill": {"store": "region", "rollback": "off"}},
        "load": {"key_bytes": 16, "value_bytes": 1000, "num": 200},
        "phases": [
            phase | {"name": "all", "operations": 200, "diversion": first},
            phase | {"name": "three quarters again", "operations": 150, "diversion": second},
        ],
    }
    result = run_native("run", request)
    assert result["engine_statistics"]["spill.diverted_writes"] == diverted
