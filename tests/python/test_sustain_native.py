"""The search with the real native side, on a small drive whose time is dilated so that any machine can follow it."""

import json
from pathlib import Path

import pytest
from conftest import SMALL_ROCKSDB, Invoke

from spillway.rundir.directory import read_run

pytestmark = [pytest.mark.native, pytest.mark.usefixtures("real_native")]

PLAN = f"""
name = "small"
sample_interval_ms = 100
[drive]
preset = "quickstart"
capacity = "256MiB"
time_scale = 20
{SMALL_ROCKSDB}[load]
value_bytes = 1000
num = 20000
[[prepare]]
"kept.to" = "loaded"
[[prepare.phases]]
workload = "fillseq"
[kept]
directory = "kept"
from = "loaded"
[[phases]]
name = "write"
workload = "overwrite"
duration_s = 3
"""


@pytest.mark.long
def test_the_edge_is_found_from_a_store_that_is_loaded_once(invoke: Invoke, tmp_path: Path) -> None:
    plan, out = tmp_path / "small.toml", tmp_path / "found"
    plan.write_text(PLAN)
    words = ("sustain", plan, "--out", out, "--from", "100", "--within", "100%")
    first = invoke(*words)
    assert first.code == 0, first.err
    document = json.loads((out / "sustain.json").read_text())["arms"]["small"]
    kept, not_kept = document["kept_ops_s"], document["not_kept_ops_s"]
    assert kept < not_kept <= 2 * kept
    prepared = []
    for each in document["tries"]:
        assert each["kept"] == (each["rate_ops_s"] <= kept)
        assert each["offered_ops_s"] == pytest.approx(each["rate_ops_s"])
        if each["kept"]:
            assert each["achieved_ops_s"] >= 0.99 * each["rate_ops_s"]
        run = read_run(out / each["directory"])
        assert run.manifest["complete"]
        assert run.arms[0].summary["kept"]["from"]["runs"] == 1
        prepared.append(json.loads((run.path / "summary.json").read_text())["prepared"]["loaded"]["reused"])
    assert prepared == [False] + [True] * (len(prepared) - 1)

    stamps = {path: path.stat().st_mtime_ns for path in out.glob("tries/*/manifest.json")}
    assert invoke(*words).code == 0
    none = invoke(*words, "--worst", "1us")
    assert none.code == 1
    assert "not even --from 100 operations/s was kept: the worst write took" in none.err
    assert {path: path.stat().st_mtime_ns for path in out.glob("tries/*/manifest.json")} == stamps


@pytest.mark.long
def test_tries_go_on_until_they_are_steady(invoke: Invoke, tmp_path: Path) -> None:
    """A rate that is ended as steady is judged by its steady part; one that never is is not kept."""
    plan, out = tmp_path / "small.toml", tmp_path / "found"
    plan.write_text(PLAN + 'until = "steady"\n[steady]\ntests = ["end"]\n')
    words = ("sustain", plan, "--out", out, "--from", "1000", "--to", "1000", "--set", "phases.write.duration_s=10")
    ended = invoke(*words)
    (one,) = json.loads((out / "sustain.json").read_text())["arms"]["small"]["tries"]
    phases = read_run(out / one["directory"]).arms[0].phases
    commanded = phases[-1].get("ended_by") == "command"
    assert one["kept"] == (commanded and one["why"] is None)
    assert commanded == (phases[-1]["duration_s"] < 10)
    assert ended.code == (0 if one["kept"] else 1)
    assert commanded, one["why"]  # an even rate, of which each sample has some, ends as it went
    never = invoke(*words, "--set", 'steady.tests=["writes"]', "--out", tmp_path / "never")
    (one,) = json.loads((tmp_path / "never" / "sustain.json").read_text())["arms"]["small"]["tries"]
    assert (never.code, one["kept"], one["not_told"]) == (1, False, True), one["why"]
    assert "was not steady when it came to its limit" in one["why"]
