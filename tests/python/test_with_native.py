"""The real native side behind the real command: its output is held to the contract, whole runs to their laws."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from conftest import ROOT, SMALL_ROCKSDB, Invoke, check_refused
from jsonschema import Draft202012Validator

from spillway.native.process import Event, find_native, run_native
from spillway.plan.document import load_plan
from spillway.plan.keys import ARM_KEYS, POLICY_TABLES
from spillway.run.execute import execute
from spillway.rundir.directory import read_run
from spillway.ssd.simulate import DriveChoice, WorkChoice, drive_request, precondition_request, simulate_request

pytestmark = [pytest.mark.native, pytest.mark.usefixtures("real_native")]
MakeValidator = Callable[..., Draft202012Validator]

SMALL = ("--channels", "2", "--dies", "1", "--pages-per-block", "64", "--capacity", "64MiB", "--spare-factor", "0.2")

# presets/quickstart.toml
QUICKSTART_WRITE_CACHE_BYTES = 8 << 20
QUICKSTART_PAGE_BYTES = 16384

# Small enough for seconds, large enough for flushes, compactions and garbage collection.
PLAN = f"""
name = "short"
sample_interval_ms = 100
[drive]
preset = "quickstart"
capacity = "512MiB"
{SMALL_ROCKSDB}[load]
value_bytes = 1000
num = 20000
[[phases]]
name = "load"
workload = "fillseq"
measured = false
[[phases]]
name = "overwrite"
workload = "overwrite"
duration_s = 3
[[phases]]
name = "read"
workload = "readrandom"
operations = 2000
"""


@pytest.fixture
def short_plan(tmp_path: Path) -> Path:
    path = tmp_path / "short.toml"
    path.write_text(PLAN)
    return path


def collect(command: str, request: dict[str, Any]) -> tuple[list[Event], Event]:
    events: list[Event] = []
    return events, run_native(command, request, events.append)


def test_what_it_writes_is_of_the_contract(short_plan: Path, tmp_path: Path, validator: MakeValidator) -> None:
    data = tmp_path / "data"
    data.mkdir()
    drive = DriveChoice(channels=2, dies=1, pages_per_block=64, capacity="64MiB", spare_factor="0.2")
    requests: dict[str, dict[str, Any]] = {
        "ssd-simulate": simulate_request(drive, WorkChoice(ios=1000), 1),
        "ssd-precondition": precondition_request(drive, WorkChoice(), 1, tmp_path / "x.state"),
        "ssd-show": {"drive": drive_request(drive)},
        "run": load_plan(short_plan, ("phases.overwrite.duration_s=1",)).arms[0].request(data, 1),
    }
    for command, request in requests.items():
        events, result = collect(command, request)
        for event in [*events, result]:
            validator("events.schema.json").validate(event)
        validator("events.schema.json", f"{command}.result").validate(result)
        assert events[0]["event"] == "started"


@pytest.mark.parametrize(
    "path", sorted((ROOT / "contract" / "examples").glob("ssd-*.request.json")), ids=lambda p: p.name
)
def test_it_takes_the_examples(path: Path, tmp_path: Path) -> None:
    request = json.loads(path.read_text())
    request["drive"]["preset_dirs"] = [str(ROOT / "presets")]
    request["drive"]["set"]["capacity.capacity_bytes"] = "1GiB"
    if "state" in request:
        request["state"] = str(tmp_path / "x.state")
    if "workload" in request:
        request["workload"] |= {"ios": 1000, "writes_capacities": None}
    _, result = collect(path.name.removesuffix(".request.json"), request)
    assert result["complete"]


def test_the_same_seed_gives_the_same_figures(invoke: Invoke) -> None:
    def figures(seed: int) -> dict[str, Any]:
        result: dict[str, Any] = invoke("ssd", "simulate", *SMALL, "--ios", "20000", "--seed", seed, "--json").json()
        return {key: value for key, value in result.items() if not key.endswith(("cpu_seconds", "rss_bytes"))}

    assert figures(1) == figures(1)
    assert figures(1) != figures(2)


def test_nand_bytes_add_up(invoke: Invoke) -> None:
    result = invoke("ssd", "simulate", *SMALL, "--writes", "2", "--json").json()
    assert result["wa_device"] == pytest.approx(
        sum(result["nand_bytes_programmed"].values()) / result["host_bytes_written"]
    )
    assert result["wa_device"] > 1.5
    assert result["host_bytes_written"] == result["ios"] * 4096


def test_a_state_made_once_is_used_again_and_a_cut_one_is_refused(tmp_path: Path, invoke: Invoke) -> None:
    state = tmp_path / "x.state"
    assert invoke("ssd", "precondition", *SMALL, "--out", state).code == 0
    again = invoke("ssd", "simulate", *SMALL, "--state", state, "--ios", "5000", "--json")
    assert again.code == 0
    assert again.json()["wa_device"] > 1.5
    state.write_bytes(state.read_bytes()[:-100])
    cut = invoke("ssd", "simulate", *SMALL, "--state", state)
    assert cut.code == 2
    assert str(state) in cut.err
    assert "truncated" in cut.err


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("--set", "gc.polic=fifo"), "gc.policy"),
        (("--spare-factor", "0"), "--spare-factor is 0"),
        (("--capacity", "4KiB"), "spillway: --capacity: 4096 is smaller"),
        (("--set", "capacity.spare_factor=2"), "capacity.spare_factor"),
        (("--warmup", "1e9"), "--warmup"),
        (("--preset-file", "PRESET"), "geometry.channels"),
    ],
)
def test_bad_drives_name_key_and_mend(tmp_path: Path, invoke: Invoke, words: tuple[str, str], says: str) -> None:
    preset = tmp_path / "bad.toml"
    preset.write_text('name = "bad"\n[geometry]\nchanels = 3\n')
    ended = invoke("ssd", "simulate", *(str(preset) if word == "PRESET" else word for word in words))
    assert (ended.code, ended.out) == (2, "")
    assert says in ended.err
    assert ended.err.count("\n") == 1


@pytest.mark.reports
def test_a_short_run_from_the_user_to_the_nand(short_plan: Path, tmp_path: Path, invoke: Invoke) -> None:
    ended = invoke("run", short_plan, "--out", tmp_path / "run", "--json")
    assert (ended.code, ended.err) == (0, "")
    arm = ended.json()["arms"]["short"]
    assert arm["throughput_ops_s"] > 0
    assert arm["wa_app"] > 1, "a log and a flush are more than the user wrote"
    # What reached flash is what the host wrote, less what waited in the write cache at the end and what was written
    # again or deallocated while it waited there. In a run of seconds that is not nothing.
    run = read_run(tmp_path / "run")
    counters = run.arms[0].result["counters"]
    kept_back = QUICKSTART_WRITE_CACHE_BYTES + 4096 * (
        counters["write_cache_overwrites"] + counters["write_cache_deallocated"]
    )
    assert arm["wa_device"] * arm["host_bytes_written"] >= arm["host_bytes_written"] - kept_back
    assert counters["nand_pages_programmed"] * QUICKSTART_PAGE_BYTES == sum(counters["nand_bytes_programmed"].values())
    assert arm["wa_total"] == pytest.approx(arm["wa_app"] * arm["wa_device"])
    assert arm["space_amplification"] > 0.5
    rows = [row for row in run.arms[0].rows if row["measured"]]
    assert {row["phase"] for row in run.arms[0].rows} >= {"load", "overwrite"}
    # Samples are cut at intervals and the result at phases; together they account for the same bytes.
    assert sum(row["user_bytes_written"] for row in rows) == pytest.approx(arm["user_bytes_written"], rel=0.02)
    assert sum(row["host_bytes_written"] for row in rows) == pytest.approx(arm["host_bytes_written"], rel=0.05)
    assert sum(row["nand_bytes_programmed_gc"] for row in rows) > 0, "a full, steady drive collects garbage"
    assert "readrandom" in (tmp_path / "run" / "report.html").read_text()


@pytest.mark.reports
def test_an_option_that_rocksdb_does_not_have(short_plan: Path, tmp_path: Path, invoke: Invoke) -> None:
    ended = invoke("run", short_plan, "--out", tmp_path / "run", "--set", "engine.options.write_bufer_size=1")
    assert ended.code == 2
    assert "write_bufer_size" in ended.err
    assert ended.err.count("\n") == 1
    check_refused(tmp_path / "run", "write_bufer_size")
    mended = invoke("run", short_plan, "--out", tmp_path / "run")
    assert mended.code == 0, "it gives way to the run of the mended plan"
    assert read_run(tmp_path / "run").manifest["complete"]


@pytest.mark.reports
@pytest.mark.parametrize(
    ("engine", "setting"),
    [
        ("leveldb-vlog", "engine.vlog.segment=2KiB"),
        ("leveldb-vlog", "engine.vlog.segment=1GiB"),
        ("leveldb-vlog", "engine.vlog.min_value=2GiB"),
        ("leveldb-vlog", "engine.vlog.gc_garbage_ratio=0.001"),
        ("spillway", "engine.spill.capacity=1"),
        ("spillway", "engine.spill.generation=8GiB"),
        ("rocksdb", "engine.adoc.most_buffer=1MiB"),
        ("rocksdb", "engine.adoc.least_jobs=30"),
        ("rocksdb", "engine.flow_control.soft_pending=1024GiB"),
        ("rocksdb", "engine.flow_control.least_bytes_s=1000000000"),
        ("rocksdb", "fs.size=1TiB"),
        ("rocksdb", "fs.size=4097"),
    ],
)
def test_a_setting_that_the_native_side_refuses_is_named_as_in_the_plan(
    short_plan: Path, tmp_path: Path, invoke: Invoke, engine: str, setting: str
) -> None:
    short_plan.write_text(re.sub(r"\[engine.options\].*?(?=\[load\])", "", PLAN, flags=re.DOTALL))
    table = setting.split(".")[1]
    policies = [f"engine.policy={POLICY_TABLES[table]}"] if table in POLICY_TABLES else []
    settings = [f"engine.name={engine}", setting, *policies]
    words = [word for each in settings for word in ("--set", each)]
    ended = invoke("run", short_plan, "--out", tmp_path / "run", *words)
    assert (ended.code, ended.err.count("\n")) == (2, 1), ended.err
    if setting.startswith("engine."):
        check_refused(tmp_path / "run", ended.err.removeprefix("spillway: ").strip())
    else:
        assert not (tmp_path / "run").exists(), "no run is made of a plan that contradicts itself"
    named = re.findall(r"\b(?:engine|fs)\.[a-z_.]*[a-z]", ended.err)
    assert named, ended.err
    assert set(named) <= set(ARM_KEYS), ended.err
    table = named[0].rpartition(".")[0]
    assert {f"{table}.{name}" for name in re.findall(r"([a-z_]+) = \d", ended.err)} <= set(ARM_KEYS), ended.err


@pytest.mark.parametrize("engine", ["rocksdb", "leveldb", "leveldb-vlog", "wiredtiger", "spillway"])
def test_on_a_plain_directory_the_estimate_has_host_bytes_by_cause(
    short_plan: Path, tmp_path: Path, invoke: Invoke, engine: str
) -> None:
    place = tmp_path / "place"
    place.mkdir()
    short_plan.write_text(
        f"""
name = "place"
[drive]
kind = "directory"
path = "{place}"
[drive.estimate]
preset = "quickstart"
capacity = "1GiB"
[initial]
kind = "trimmed"
[engine]
name = "{engine}"
[load]
num = 20_000
[[phases]]
workload = "fillrandom"
[[phases]]
workload = "settle"
"""
    )
    summary = invoke("run", short_plan, "--out", tmp_path / "run", "--json").json()
    estimate = summary["arms"]["place"]["estimate"]
    by_cause = estimate["host_bytes_written_by_cause"]
    assert sum(by_cause.values()) == estimate["host_bytes_written"] > 20_000 * 116
    assert by_cause["blob" if engine == "leveldb-vlog" else "wal"] > 20_000 * 100
    assert by_cause["flush"] + by_cause["checkpoint"] > 0


def test_ctrl_c_ends_spillway_native_cleanly(short_plan: Path, tmp_path: Path) -> None:
    out = tmp_path / "run"
    command = [sys.executable, "-m", "spillway.cli", "run", str(short_plan), "--out", str(out)]
    command += ["--set", "phases.overwrite.duration_s=600"]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    deadline = time.monotonic() + 120
    while True:
        assert time.monotonic() < deadline
        assert process.poll() is None, process.communicate()
        found = list(tmp_path.glob(".run.partial-*/arms/short/samples.csv"))
        if found and found[0].read_text().count(",overwrite,") > 3:
            break
        time.sleep(0.05)
    os.killpg(process.pid, signal.SIGINT)
    text, errors = process.communicate(timeout=120)
    assert process.returncode == 130, (text, errors)
    run = read_run(out)
    assert run.manifest["complete"] is False
    assert run.arms[0].summary["throughput_ops_s"] > 0
    assert run.arms[0].summary["standing"]["words"].startswith("INCOMPLETE")


def press_ctrl_c_while_it_prepares(event: Event) -> None:
    if event["event"] == "progress":
        assert event["phase"] == "prepare"
        os.kill(os.getpid(), signal.SIGINT)


def test_ctrl_c_while_a_drive_is_preconditioned_writes_no_state(tmp_path: Path) -> None:
    state = tmp_path / "x.state"
    endless = WorkChoice(initial="sequential", warmup=1e6)
    request = precondition_request(DriveChoice(capacity="64MiB", spare_factor="0.2"), endless, 1, state)
    result = run_native("ssd-precondition", request, press_ctrl_c_while_it_prepares)
    assert result["complete"] is False
    assert list(tmp_path.iterdir()) == []


@pytest.mark.reports
def test_ctrl_c_while_a_run_prepares_its_drive_leaves_a_marked_run_directory(short_plan: Path, tmp_path: Path) -> None:
    plan = load_plan(short_plan, ("initial.kind=sequential", "initial.warmup_capacities=1000000"))
    finished = execute(plan, tmp_path / "run", [], lambda _, event: press_ctrl_c_while_it_prepares(event))
    assert finished.interrupted
    run = read_run(tmp_path / "run")
    assert run.manifest["complete"] is False
    assert run.arms[0].summary["standing"]["words"].startswith("INCOMPLETE")
    assert (tmp_path / "run" / "report.html").stat().st_size > 1000


def test_a_run_that_nobody_reads_ends_by_itself(tmp_path: Path) -> None:
    """Its reader goes in a phase of minutes: it ends with a failure, and what it would have replaced is as before."""
    state = tmp_path / "kept" / "state"
    request: dict[str, Any] = {
        "directory": str(tmp_path / "db"),
        "target": {"kind": "directory"},
        "engine": {"name": "leveldb"},
        "load": {"num": 1000, "value_bytes": 100},
        "phases": [{"name": "fill", "workload": "fillseq"}],
        "sample_interval_ms": 50,
        "kept": {"to": str(state)},
    }
    run_native("run", request)
    before = {path: path.read_bytes() for path in state.rglob("*") if path.is_file()}
    assert before
    long = {"name": "long", "workload": "overwrite", "duration_s": 240}
    onto = request | {
        "directory": str(tmp_path / "again"),
        "kept": {"from": str(state), "to": str(state)},
        "phases": [long],
    }
    with subprocess.Popen(
        [find_native(), "run"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdin is not None and process.stdout is not None and process.stderr is not None
        process.stdin.write(json.dumps(onto).encode())
        process.stdin.close()
        while b'"sample"' not in (line := process.stdout.readline()):
            assert line
        process.stdout.close()
        code = process.wait(timeout=60)
        said = process.stderr.read().decode()
    assert code == 1
    assert said == "spillway-native: nobody reads its events any more; it has ended its work\n"
    assert {path: path.read_bytes() for path in state.rglob("*") if path.is_file()} == before


def test_the_rivals_and_the_accelerator_run_side_by_side(
    tmp_path: Path, validator: MakeValidator, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each arm of the short KVAccel plan writes all, settles, and says what it did in the words of the contract."""
    monkeypatch.setattr("spillway.run.execute._write_report", lambda rundir: None)  # charts take longer than the runs
    quick = ("drive.pacing=off", "phases.fillrandom.operations=3000")
    plan = load_plan(ROOT / "plans" / "kvaccel-smoke.toml", quick)
    events: dict[str, list[Event]] = {arm.name: [] for arm in plan.arms}
    execute(plan, tmp_path / "run", ["test"], lambda arm, event: events[arm].append(event))
    run = read_run(tmp_path / "run")
    for arm in run.arms:
        for event in events[arm.name]:
            validator("events.schema.json").validate(event)
        assert arm.summary["writes"] == 3000
        assert arm.summary["bill"]["seconds"] > arm.summary["duration_s"]
        assert arm.summary["bill"]["wa_app"] >= arm.summary["wa_app"]
        assert (arm.summary["spill"] is not None) == (arm.name == "Spillway")
    adoc = next(arm for arm in run.arms if arm.name == "ADOC")
    assert adoc.result["engine_statistics"]["adoc.ticks"] > 0
    flow = next(arm for arm in run.arms if arm.name == "Flow control")
    assert {"flow_control.waits", "flow_control.wait_us"} <= set(flow.result["engine_statistics"])
    assert all("write_limit_bytes_s" in row for row in flow.rows)
    ours = next(arm for arm in run.arms if arm.name == "Spillway")
    assert ours.rows[-1]["spill_live_bytes"] == 0, "settled"
    assert ours.summary["spill"]["rolled_back_bytes"] <= ours.summary["spill"]["diverted_bytes"]
