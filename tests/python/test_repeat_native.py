"""`spillway repeat` of real runs in virtual time: what is identical to the byte, and what is not."""

import shutil
from pathlib import Path

import pytest
from conftest import Invoke

pytestmark = [pytest.mark.native, pytest.mark.usefixtures("real_native")]

PLAN = """
name = "counts"
[drive]
preset = "quickstart"
capacity = "64MiB"
pacing = "off"
[load]
num = 4000
value_bytes = 4096
[[arms]]
name = "no store"
engine.name = "raw"
[[arms]]
name = "LevelDB"
engine.name = "leveldb"
[[phases]]
workload = "fillrandom"
operations = 8000
"""


KEPT = """
name = "kept"
[drive]
preset = "quickstart"
capacity = "64MiB"
pacing = "off"
[load]
num = 1000
value_bytes = 4096
[engine]
name = "leveldb"
[kept]
from = "loaded"
[[phases]]
workload = "overwrite"
operations = 500
"""


def test_a_missing_kept_state_is_named(invoke: Invoke, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("load.toml").write_text(KEPT.replace('from = "loaded"', 'to = "loaded"').replace("overwrite", "fillseq"))
    Path("p.toml").write_text(KEPT)
    assert invoke("run", "load.toml", "--out", "load").code == 0
    assert invoke("run", "p.toml", "--out", "then").code == 0
    assert invoke("repeat", "then", "--out", "now").code == 0
    shutil.rmtree("runs")
    ended = invoke("repeat", "then", "--out", "again")
    assert (ended.code, ended.out) == (2, "")
    assert "there is no such state in runs/kept" in ended.err
    assert not Path("again").exists()


def test_a_run_in_virtual_time_repeats_to_the_byte(
    invoke: Invoke, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("p.toml").write_text(PLAN)
    assert invoke("run", "p.toml", "--out", "then").code == 0
    ended = invoke("repeat", "then", "--out", "now", "--json")
    assert ended.code == 0, ended.err
    exact = [each for each in ended.json()["figures"] if each["basis"] == "exact"]
    assert [each["figure"] for each in exact if each["arm"] == "no store"] == [
        *("operations", "user_bytes_written", "live_user_bytes", "host_bytes_written", "nand_bytes_programmed")
    ]
    assert len([each for each in exact if each["arm"] == "LevelDB"]) == 3
    assert all(each["then"] == each["now"] > 0 for each in exact)
