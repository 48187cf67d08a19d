"""YCSB's phases by the real native side, and host bytes of a load against db_bench's own."""

import json
import runpy
from pathlib import Path

import pytest
from conftest import ROOT, Invoke
from needs import need_plugin_and_db_bench

pytestmark = [pytest.mark.native, pytest.mark.usefixtures("real_native")]

PLAN = """
name = "short"
[drive]
preset = "quickstart"
capacity = "512MiB"
pacing = "off"
[initial]
kind = "trimmed"
[ycsb]
properties = "workloadc"
recordcount = 3000
[[phases]]
workload = "ycsb-load"
measured = false
[[phases]]
workload = "ycsb-run"
threads = 2
"""


def test_a_workload_by_ycsbs_flags(tmp_path: Path, invoke: Invoke) -> None:
    plan = tmp_path / "plan.toml"
    plan.write_text(PLAN)
    flags = ("-P", "workloadf", "-p", "operationcount=2000", "-p", "fieldlength=20")
    outcome = invoke("run", plan, "--json", "--out", tmp_path / "out", *flags)
    assert outcome.code == 0, outcome.err
    arm = outcome.json()["arms"]["short"]
    kinds = {kind: latency["count"] for kind, latency in arm["kind_latency_us"].items()}
    assert set(kinds) == {"read", "readmodifywrite"}
    assert sum(kinds.values()) == arm["operations"] == 2000
    assert kinds["read"] == pytest.approx(1000, abs=120)
    # 3000 records of 10 x 20 bytes behind keys of 23 bytes or few less.
    assert arm["live_user_bytes"] == pytest.approx(3000 * 222.9, rel=0.001)
    assert arm["user_bytes_written"] == pytest.approx(kinds["readmodifywrite"] * 222.9, rel=0.001)
    manifest = json.loads((tmp_path / "out" / "manifest.json").read_text())
    assert "-P workloadf -p operationcount=2000" in " ".join(manifest["command"])


def test_host_bytes_are_those_of_db_bench() -> None:
    need_plugin_and_db_bench()
    clients = runpy.run_path(str(ROOT / "scripts" / "against_other_clients.py"))
    count = 50_000
    found = clients["compare"](
        "fillrandom",
        1,
        lambda place: clients["db_bench"](place, count),
        lambda place, seed: clients["our_fill"](place, count, seed),
    )
    assert found["ratio"] == pytest.approx(1, abs=clients["BAR"])
    for side in ("theirs", "ours"):
        by_cause = found["host_bytes_by_cause"][side][0]
        assert by_cause["flush"] > 0.8 * 2 * count * 416
        assert by_cause["compaction"] > by_cause["flush"] / 2, "there was something to agree on"
