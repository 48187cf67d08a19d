"""Whole runs against the fake native side: what a run directory holds, and what becomes of runs that end badly."""

import csv
import errno
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from conftest import PLAN, ROOT, Fake, Invoke, check_refused

from spillway.errors import SpillwayError
from spillway.figures import space
from spillway.native.process import run_native
from spillway.plan.document import load_plan
from spillway.plan.keys import ENGINES
from spillway.run.summary import standing, typical
from spillway.rundir import directory as rundir
from spillway.rundir.directory import read_run
from spillway.rundir.samples import NAND_CAUSES, are_columns
from spillway.steady import Verdict

ARM_FILES = {"samples.csv", "stalls.csv", "phases.json", "events.json", "result.json", "preset.toml"}
# The fields that the issue names for each arm of summary.json.
PROMISED = {
    "throughput_ops_s",
    "user_mb_s",
    "latency_us",
    "wa_app",
    "wa_device",
    "wa_total",
    "space_amplification",
    "stalls",
    "steady",
    "pacing_error_us",
    "cpu_seconds",
    "standing",
}


def test_a_run_directory_is_whole(fake: Fake, plan_file: Path, tmp_path: Path, invoke: Invoke) -> None:
    out = tmp_path / "deep" / "run"
    ended = invoke("run", plan_file, "--out", out, "--set", "seeds=[5]")
    assert (ended.code, ended.err) == (0, "")
    assert {path.name for path in out.iterdir()} == {
        "manifest.json",
        "plan.toml",
        "summary.json",
        "report.html",
        "arms",
    }
    assert {path.name for path in (out / "arms" / "small").iterdir()} == ARM_FILES
    assert [path.name for path in out.parent.iterdir()] == ["run"], "nothing else is left beside it"

    manifest = json.loads((out / "manifest.json").read_text())
    assert manifest["complete"]
    assert manifest["seeds"] == [5]
    assert manifest["command"] == ["spillway", "run", str(plan_file), "--set", "seeds=[5]"]
    assert manifest["versions"]["rocksdb"] == "7.8.3"
    assert manifest["host"]["cores"] >= 1

    with (out / "arms" / "small" / "samples.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert are_columns(tuple(rows[0]))
    assert {"l0_files", "stall_s_l0"} < set(rows[0])
    assert len(rows) == 120
    assert load_plan(out / "plan.toml").arms == load_plan(plan_file).arms


def test_the_summary_holds_what_was_promised(fake: Fake, plan_file: Path, tmp_path: Path, invoke: Invoke) -> None:
    ended = invoke("run", plan_file, "--out", tmp_path / "run", "--json")
    summary = ended.json()
    assert summary == json.loads((tmp_path / "run" / "summary.json").read_text())
    arm = summary["arms"]["small"]
    assert set(arm) >= PROMISED
    assert arm["versions"] == {"rocksdb": "7.8.3"}
    assert set(arm["latency_us"]) == {"mean", "p50", "p99", "p99_9", "max"}
    assert set(arm["stalls"]) == {"count", "seconds", "by_cause"}
    assert arm["pacing_error_us"] == {"p50": 9.0, "p99": 71.0}
    assert arm["wa_total"] == pytest.approx(arm["wa_app"] * arm["wa_device"])
    with (tmp_path / "run" / "arms" / "small" / "samples.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    host = sum(int(row["host_bytes_written"]) for row in rows)
    nand = sum(int(row[f"nand_bytes_programmed_{cause}"]) for row in rows for cause in NAND_CAUSES)
    assert arm["wa_device"] == pytest.approx(nand / host)
    assert arm["wa_app"] == pytest.approx(host / sum(int(row["user_bytes_written"]) for row in rows))
    assert arm["user_mb_s"] == pytest.approx(arm["user_bytes_written"] / 12 / 1e6)
    assert arm["standing"]["words"].startswith(
        "Emulated drive “tiny”, 64.0 MiB, steady at the start; pacing error 9 µs"
    )


def test_a_run_that_fails_says_what_its_samples_say(
    fake: Fake, plan_file: Path, tmp_path: Path, invoke: Invoke
) -> None:
    """One that fails at its very end has all figures of one that does not, but those that only a result has."""
    whole = invoke("run", plan_file, "--out", tmp_path / "whole", "--json").json()["arms"]["small"]
    fake.behave("fails late")
    ended = invoke("run", plan_file, "--out", tmp_path / "failed", "--json")
    assert ended.code == 2
    failed = ended.json()["arms"]["small"]
    of_a_result = {"latency_us", "read_latency_us", "write_latency_us", "reads", "writes", "pacing_error_us"}
    of_a_result |= {"lifetime", "space_amplification", "live_user_bytes", "space_bytes", "standing", "directory"}
    of_a_result |= set(space.document([], None, None, None, None, None))
    for name in set(whole) - of_a_result:
        assert _parts(failed[name]) == pytest.approx(_parts(whole[name])), name
    assert failed["wa_total"] == pytest.approx(failed["wa_app"] * failed["wa_device"])
    assert failed["stalls"]["count"] > 0


def _parts(figure: Any, of: str = "") -> dict[str, Any]:
    """Its numbers by their dotted names, without the zeros: of a cause of which there was nothing."""
    if not isinstance(figure, dict):
        return {} if figure == 0 else {of: figure}
    return {name: each for key, part in figure.items() for name, each in _parts(part, f"{of}.{key}").items()}


def test_the_data_directory_is_gone_afterwards(fake: Fake, plan_file: Path, tmp_path: Path, invoke: Invoke) -> None:
    data = tmp_path / "data"
    data.mkdir()
    invoke("run", plan_file, "--out", tmp_path / "run", "--set", f"data_directory={data}")
    (request,) = fake.requests()
    assert Path(request["directory"]).parent.parent == data
    assert list(data.iterdir()) == []


def test_arms_run_in_turn_and_repetitions_have_seeds(
    fake: Fake, plan_file: Path, tmp_path: Path, invoke: Invoke
) -> None:
    plan_file.write_text(PLAN + '\n[[arms]]\nname = "One"\n[[arms]]\nname = "Two"\nload.value_bytes = 7\n')
    summary = invoke("run", plan_file, "--out", tmp_path / "run", "--set", "repetitions=3", "--json").json()
    asked = [(request["seed"], request["load"]["value_bytes"]) for request in fake.requests()]
    assert asked == [(1, 1024), (1, 7), (2, 1024), (2, 7), (3, 1024), (3, 7)]
    assert list(summary["arms"]) == ["One", "Two"]
    assert {path.name for path in (tmp_path / "run" / "arms").iterdir()} == {
        "one", "one-r2", "one-r3", "two", "two-r2", "two-r3",
    }  # fmt: skip
    figures = summary["arms"]["One"]
    rates = sorted(each["throughput_ops_s"] for each in figures["repetitions"])
    assert figures["throughput_ops_s"] == rates[1]
    arm = read_run(tmp_path / "run").arms[0]
    assert arm.rows
    assert [each.result["throughput_ops_s"] for each in arm.repetitions] == [
        each["throughput_ops_s"] for each in figures["repetitions"]
    ]


def test_of_repetitions_the_median_run_stands_whole() -> None:
    runs = [
        {
            **{"directory": f"arms/{seed}", "seed": seed, "throughput_ops_s": rate},
            **{"wa_app": seed, "wa_device": 1, "wa_total": seed, "steady": True},
        }
        for seed, rate in ((1, 30.0), (2, 10.0), (3, 20.0), (4, None))
    ]
    chosen = typical(runs)
    assert (chosen["seed"], chosen["wa_app"]) == (2, 2)
    assert [each["seed"] for each in chosen["repetitions"]] == [1, 2, 3, 4]
    assert "repetitions" not in typical(runs[:1])


@pytest.mark.reports
@pytest.mark.parametrize("mode", ["bad_input", "crashes", "garbage"])
def test_what_ends_before_it_measured_leaves_the_reason_alone(
    fake: Fake, plan_file: Path, tmp_path: Path, invoke: Invoke, mode: str
) -> None:
    fake.behave(mode)
    out = tmp_path / "a" / "b" / "run"
    ended = invoke("run", plan_file, "--out", out)
    assert ended.code == (2 if mode == "bad_input" else 1)
    assert ended.err.startswith("spillway: ")
    assert ended.err.count("\n") == 1
    check_refused(out, ended.err.removeprefix("spillway: ").strip())
    assert list(out.parent.iterdir()) == [out]
    summary = invoke("run", plan_file, "--out", out, "--json").json()
    assert summary["failure"] in ended.err
    for words in (
        ("lint", out),
        ("compare", out),
        ("compare", out, out),
        ("repeat", out),
        ("steady", out),
        ("cost", out),
    ):
        answer = invoke(*words)
        assert (answer.code, answer.out, answer.err.count("\n")) == (2, "", 1), words
        assert summary["failure"].rstrip(".") in answer.err, words
    assert load_plan(out / "plan.toml").arms == load_plan(plan_file).arms


# What may be done to the directory of a run that was refused, so that it is somebody's.
CHANGES: dict[str, Callable[[Path], object]] = {
    "more in it": lambda out: (out / "notes.txt").write_text("precious"),
    "a directory in it": lambda out: (out / "arms").mkdir(),
    "its plan mended": lambda out: append(out / "plan.toml", "# mended\n"),
    "its report changed": lambda out: append(out / "report.html", "precious"),
    "its summary changed": lambda out: append(out / "summary.json", " "),
    "its manifest changed": lambda out: (out / "manifest.json").write_text(
        (out / "manifest.json").read_text().replace('"plan": "small"', '"plan": "precious"')
    ),
    "its report gone": lambda out: (out / "report.html").unlink(),
    "a pipe in it": lambda out: put_a_pipe(out / "report.html"),
}


def append(path: Path, text: str) -> None:
    path.write_text(path.read_text() + text)


def put_a_pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


@pytest.mark.parametrize("there", ["a complete run", *CHANGES, "a link"])
def test_a_refused_run_replaces_nothing_but_a_refused_run(
    fake: Fake, plan_file: Path, tmp_path: Path, invoke: Invoke, there: str
) -> None:
    out = tmp_path / "run"
    made = out if there != "a link" else tmp_path / "real"
    fake.behave("ok" if there == "a complete run" else "bad_input")
    invoke("run", plan_file, "--out", made)
    if there in CHANGES:
        CHANGES[there](out)
    if there == "a link":
        out.symlink_to(made)
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    fake.behave("bad_input")
    plan = out / "plan.toml" if there == "its plan mended" else plan_file
    ended = invoke("run", plan, "--out", out)
    assert ended.code == 2
    assert "there is something already" in ended.err
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == before


@pytest.mark.parametrize("change", [*CHANGES, ""])
def test_a_report_that_is_made_again_is_no_change_and_hides_none(
    fake: Fake, plan_file: Path, tmp_path: Path, invoke: Invoke, change: str
) -> None:
    out = tmp_path / "run"
    fake.behave("bad_input")
    said = invoke("run", plan_file, "--out", out).err.removeprefix("spillway: ").strip()
    if change:
        CHANGES[change](out)
    for target in ((), ("--out", tmp_path / "elsewhere.html"), ()):
        assert invoke("report", out, *target).code == 0
        if not change:
            check_refused(out, said)
    fake.behave("ok")
    ended = invoke("run", plan_file, "--out", out)
    assert (ended.code, "there is something already" in ended.err) == ((2, True) if change else (0, False))


@pytest.mark.reports
def test_a_drive_that_fills_before_anything_was_sampled_leaves_a_run_that_says_so(
    fake: Fake, plan_file: Path, tmp_path: Path, invoke: Invoke
) -> None:
    fake.behave("full at once")
    ended = invoke("run", plan_file, "--out", tmp_path / "run")
    assert ended.code == 2
    assert ended.err.startswith("spillway: ")
    assert "the drive is full" in ended.err
    run = read_run(tmp_path / "run")
    assert run.manifest["complete"] is False
    assert "the drive is full" in run.manifest["failure"]
    assert "the drive is full" in (tmp_path / "run" / "report.html").read_text()


@pytest.mark.reports
def test_a_run_that_fails_under_way_says_so_everywhere(
    fake: Fake, plan_file: Path, tmp_path: Path, invoke: Invoke
) -> None:
    fake.behave("fails")
    ended = invoke("run", plan_file, "--out", tmp_path / "run")
    assert ended.code == 2, "a drive that fills is the plan's to mend"
    assert "the drive is full" in ended.err
    run = read_run(tmp_path / "run")
    assert run.manifest["complete"] is False
    assert "the drive is full" in run.manifest["failure"]
    assert run.arms[0].summary["standing"]["words"].startswith("FAILED (the drive is full")
    assert len(run.arms[0].rows) == 30
    report = (tmp_path / "run" / "report.html").read_text()
    assert "Failed run" in report
    assert "This run failed: the drive is full" in report


def test_after_a_failure_no_further_arm_is_run(fake: Fake, plan_file: Path, tmp_path: Path, invoke: Invoke) -> None:
    plan_file.write_text(PLAN + '\n[[arms]]\nname = "One"\n[[arms]]\nname = "Two"\n')
    fake.behave("fails")
    invoke("run", plan_file, "--out", tmp_path / "run")
    assert len(fake.requests()) == 1


@pytest.mark.parametrize(
    "more", ['[[arms]]\nname = "One"\n[[arms]]\nname = "Two"\n"load.num" = 7', "[sweep]\nload.num=[5, 7]"]
)
@pytest.mark.parametrize(("mode", "code"), [("bad_input", 2), ("disk_full", 2), ("crashes", 1)])
def test_what_is_refused_after_others_have_run_is_bad_input_all_the_same(
    fake: Fake,
    plan_file: Path,
    tmp_path: Path,
    invoke: Invoke,
    monkeypatch: pytest.MonkeyPatch,
    more: str,
    mode: str,
    code: int,
) -> None:
    """As the code of an unknown option that the second arm or point has."""
    plan_file.write_text(PLAN + "\n" + more)
    fake.behave(mode)
    monkeypatch.setenv("FAKE_WHERE", json.dumps({"num": 7}))
    ended = invoke("run", plan_file, "--out", tmp_path / "run")
    assert (ended.code, ended.err.count("\n")) == (code, 1)
    run = read_run(tmp_path / "run")
    assert run.manifest["complete"] is False
    assert str(run.manifest["failure"]) in ended.err
    assert [bool(arm.rows) for arm in run.arms] == [True, False]


@pytest.mark.parametrize(
    "more",
    [
        '[[arms]]\nname = "A"\n[[arms]]\nname = "B"\n"engine.name" = "rockdb"',
        "[sweep]\nengine.name=['rocksdb', 'rockdb']",
    ],
)
def test_an_engine_that_is_none_is_refused_before_any_arm_runs(
    fake: Fake, plan_file: Path, tmp_path: Path, invoke: Invoke, more: str
) -> None:
    plan_file.write_text(PLAN + "\n" + more)
    ended = invoke("run", plan_file, "--out", tmp_path / "run")
    assert (ended.code, ended.err.count("\n")) == (2, 1)
    assert "did you mean 'rocksdb'?" in ended.err
    assert not (tmp_path / "run").exists()
    assert fake.requests() == []


def test_engines_by_name_are_those_of_the_native_side() -> None:
    sources = (ROOT / "native" / "engine").glob("*/engine.cc")
    named = {name for path in sources for name in re.findall(r'\.name = "([a-z-]+)"[,;]', path.read_text())}
    assert named == set(ENGINES)


def start(plan_file: Path, out: Path) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "spillway.cli", "run", str(plan_file), "--out", str(out)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True)


def wait_for(condition: Callable[[], bool], process: subprocess.Popen[str]) -> None:
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline, "it did not come"
        assert process.poll() is None, process.communicate()
        time.sleep(0.02)


@pytest.mark.parametrize("whom", ["group", "process"])
def test_ctrl_c_leaves_a_valid_incomplete_run(fake: Fake, plan_file: Path, tmp_path: Path, whom: str) -> None:
    """A terminal signals the whole group, `kill` one process; the native side hears of it once either way."""
    fake.behave("endless")
    out = tmp_path / "run"
    process = start(plan_file, out)

    def sampled() -> bool:
        found = list(tmp_path.glob(".run.partial-*/arms/small/samples.csv"))
        return bool(found) and len(found[0].read_text().splitlines()) > 5

    wait_for(sampled, process)
    (os.killpg if whom == "group" else os.kill)(process.pid, signal.SIGINT)
    text, errors = process.communicate(timeout=60)
    assert process.returncode == 130, (text, errors)
    assert [entry["signals"] for entry in fake.log() if "signals" in entry] == [[signal.SIGINT]]
    run = read_run(out)
    assert run.manifest["complete"] is False
    assert run.manifest["failure"] is None
    assert run.arms[0].summary["standing"]["words"].startswith("INCOMPLETE (ended early)")
    assert len(run.arms[0].rows) >= 5
    assert "Incomplete run" in (out / "report.html").read_text()
    assert list(tmp_path.glob(".run.partial-*")) == []


def test_a_taken_place_is_refused_and_left_alone(fake: Fake, plan_file: Path, tmp_path: Path, invoke: Invoke) -> None:
    out = tmp_path / "run"
    out.mkdir()
    (out / "precious").write_text("x")
    ended = invoke("run", plan_file, "--out", out)
    assert ended.code == 2
    assert "there is something already" in ended.err
    assert [path.name for path in out.iterdir()] == ["precious"]
    assert fake.requests() == []


def test_an_empty_directory_is_a_free_place(fake: Fake, plan_file: Path, tmp_path: Path, invoke: Invoke) -> None:
    (tmp_path / "run").mkdir()
    assert invoke("run", plan_file, "--out", tmp_path / "run").code == 0


@pytest.mark.parametrize(
    ("number", "says"),
    [(13, "permission denied; name a directory that you may write to"), (28, "no space left on device; free")],
)
def test_the_disk_says_no(
    fake: Fake, plan_file: Path, tmp_path: Path, invoke: Invoke, monkeypatch: pytest.MonkeyPatch, number: int, says: str
) -> None:
    """Root may write anywhere, so the refusal is put in: when the summary is renamed into its place."""
    rename = Path.rename

    def refuse(path: Path, target: Path) -> Path:
        if path.name == ".summary.json.partial":
            raise OSError(number, os.strerror(number))
        return rename(path, target)

    monkeypatch.setattr(Path, "rename", refuse)
    ended = invoke("run", plan_file, "--out", tmp_path / "new" / "run")
    assert ended.code == 2
    assert says in ended.err
    assert ended.err.count("\n") == 1
    assert f"What was measured is in {tmp_path / 'new' / 'run'}, without its figures." in ended.err
    assert len((tmp_path / "new/run/arms/small/samples.csv").read_text().splitlines()) > 30
    assert invoke("compare", tmp_path / "new/run").code == 2
    again = invoke("run", plan_file, "--out", tmp_path / "new" / "run")
    assert "there is something already" in again.err


TWO = '[[arms]]\nname = "A"\n[[arms]]\nname = "B"\n'


@pytest.mark.parametrize("kind", ["arms", "sweep"])
def test_what_was_measured_is_kept_where_a_later_data_directory_is_none(
    fake: Fake, plan_file: Path, tmp_path: Path, invoke: Invoke, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    here, gone = tmp_path / "here", tmp_path / "gone"
    swept = f'[sweep]\ndata_directory = ["{here}", "{gone}"]\n'
    plan_file.write_text(PLAN + (swept if kind == "sweep" else f'{TWO}data_directory = "{gone}"\n'))
    here.mkdir()
    gone.mkdir()

    def and_remove(*given: Any) -> Any:
        answer = run_native(*given)
        shutil.rmtree(gone, ignore_errors=True)
        return answer

    monkeypatch.setattr("spillway.run.execute.run_native", and_remove)
    ended = invoke("run", plan_file, "--out", tmp_path / "run")
    assert (ended.code, ended.err.count("\n")) == (2, 1)
    assert f"{gone} cannot be written: no such file or directory; name another data_directory." in ended.err
    found = read_run(tmp_path / "run")
    assert [bool(arm.rows) for arm in found.arms] == [True, False]
    assert (found.manifest["complete"], found.manifest["refused"]) == (False, False)
    assert "name another data_directory" in found.manifest["failure"]
    gone.mkdir()
    again = invoke("run", plan_file, "--out", tmp_path / "run")
    assert "there is something already" in again.err
    assert read_run(tmp_path / "run").arms[0].rows


@pytest.mark.reports
@pytest.mark.parametrize("arms", ["", pytest.param(TWO, marks=pytest.mark.long)])
@pytest.mark.parametrize("fails", [*("stalls.csv", "phases.json", "events.json", "result.json"), "arms"])
def test_what_was_measured_is_kept_where_its_last_files_have_no_room(
    fake: Fake,
    plan_file: Path,
    tmp_path: Path,
    invoke: Invoke,
    monkeypatch: pytest.MonkeyPatch,
    arms: str,
    fails: str,
) -> None:
    plan_file.write_text(PLAN + arms)
    last = "b" if arms else "small"
    begin = rundir.ArmRecorder.__init__
    files = Path.rename, Path.open

    def is_it(path: Path) -> bool:
        return path.parent.name == last and path.name in (fails, f".{fails}.partial")

    def full(method: Callable[..., Any]) -> Callable[..., Any]:
        def call(path: Path, *given: Any, **named: Any) -> Any:
            if is_it(path):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            return method(path, *given, **named)

        return call

    def no_room(recorder: rundir.ArmRecorder, directory: Path) -> None:
        if directory.name == last and fails == "arms":
            raise SpillwayError("no space is left.")
        begin(recorder, directory)

    with monkeypatch.context() as patched:
        patched.setattr(Path, "rename", full(files[0]))
        patched.setattr(Path, "open", full(files[1]))
        patched.setattr(rundir.ArmRecorder, "__init__", no_room)
        ended = invoke("run", plan_file, "--out", tmp_path / "run")
    assert (ended.code, ended.err.count("\n")) == (2, 1)
    if fails == "arms" and not arms:
        check_refused(tmp_path / "run", "no space is left")
        return
    found = read_run(tmp_path / "run")
    assert "no space" in found.manifest["failure"]
    assert found.manifest["refused"] is False
    assert all(len(arm.rows) > 30 and arm.summary["wa_total"] for arm in found.arms)
    assert [arm.name for arm in found.arms][:1] == (["A"] if arms else ["small"])
    assert len(found.arms) == (2 if arms and fails != "arms" else 1)
    assert "Failed run" in (tmp_path / "run" / "report.html").read_text()


@pytest.mark.reports
def test_a_report_that_cannot_be_written_loses_nothing(
    fake: Fake, plan_file: Path, tmp_path: Path, invoke: Invoke, monkeypatch: pytest.MonkeyPatch
) -> None:
    rename = Path.rename

    def refuse(path: Path, target: Path) -> Path:
        if path.name == ".report.html.partial":
            raise OSError(28, os.strerror(28))
        return rename(path, target)

    monkeypatch.setattr(Path, "rename", refuse)
    ended = invoke("run", plan_file, "--out", tmp_path / "run")
    assert ended.code == 2
    assert f"spillway report {tmp_path / 'run'} --out FILE" in ended.err
    assert read_run(tmp_path / "run").manifest["complete"]


def test_standing_names_what_a_figure_rests_on(plan_file: Path) -> None:
    pacing = {"p50": 12.0, "p99": 300.0, "max": 1e6, "count": 5}
    plan = load_plan(plan_file, ("drive.capacity=32MiB", "drive.time_scale=4", "initial.kind=trimmed", "load.num=100"))
    facts = standing(plan.arms[0], Verdict(True, 6.0, "nothing moved"), pacing, True, "")
    assert facts["scaled_capacity"] is True
    assert facts["words"] == (
        "Emulated drive “tiny”, 32.0 MiB, scaled down from the preset, trimmed at the start; time dilated 4×; "
        "pacing error 12 µs median, 300 µs p99; steady: nothing moved."
    )
    facts = standing(plan.arms[0], Verdict(True, 6.0, "x"), pacing, True, "", 1200)
    assert "1,200 reads of what was never written" in facts["words"]
    virtual = load_plan(plan_file, ("drive.pacing=off",)).arms[0]
    facts = standing(virtual, Verdict(False, None, "too short"), pacing, True, "")
    assert facts["pacing_error_us"] is None
    assert "in virtual time" in facts["words"]
    assert "not steady: too short" in facts["words"]


def test_a_plain_directory_has_no_drive(fake: Fake, plan_file: Path, tmp_path: Path, invoke: Invoke) -> None:
    place = tmp_path / "disk"
    place.mkdir()
    overrides = ("--set", "drive.kind=directory", "--set", f"drive.path={place}")
    summary = invoke("run", plan_file, "--out", tmp_path / "run", "--json", *overrides).json()
    (request,) = fake.requests()
    assert set(request["target"]) == {"kind", "counters"}
    assert Path(request["directory"]).parent.parent == place
    assert summary["arms"]["small"]["standing"]["words"].startswith("A plain directory, no drive model")
