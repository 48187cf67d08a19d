"""What of a suite is run again and what is not, and what becomes of runs that were interrupted or damaged."""

import fcntl
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from conftest import PLAN, Fake, Invoke

from spillway.errors import SpillwayError
from spillway.report import write_suite_report
from spillway.suite import load_suite
from spillway.suite.state import state_of


def render_stale(suite: Path, out: Path) -> str:
    """The report of what there is, run or not."""
    write_suite_report(load_suite(suite), out, out / "report.html")
    return (out / "report.html").read_text()


@pytest.mark.long
def test_what_is_done_is_not_run_again(
    fake: Fake, suite: Path, tmp_path: Path, invoke: Invoke, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "out"
    assert "not run" in invoke("suite", suite, "--out", out, "--list").out
    assert not out.exists()
    ended = invoke("suite", suite, "--out", out)
    assert ended.code == 0, ended.err
    assert "2 plans run, 0 done before" in ended.out
    assert len(fake.requests()) == 3
    page = (out / "report.html").read_text()
    assert "Of 1 published figures and relations" in page
    assert 'id="plan-a-sweep-wa-app-0"' in page
    assert "not measured" not in page
    assert ">scaled</td>" in page
    assert (
        (out / "claims.csv")
        .read_text()
        .startswith("claim,statement,published,ours,basis,verdict,why\nC1,wa_app at 400")
    )
    assert "1/4 of the original" in page
    noted = json.loads((out / "suite.json").read_text())
    of_a: dict[str, Any] = {"state": "done", "failure": None, "reported": True, "settings": []}
    assert (noted["factor"], noted["plans"]["a"]) == ("1/4", of_a)

    assert "0 plans run, 2 done before" in invoke("suite", suite, "--out", out).out
    assert len(fake.requests()) == 3
    invoke("suite", suite, "--out", out, "--set", "phases.0.threads=2", "--only", "b")
    assert len(fake.requests()) == 4, "another plan is run, and only that which was asked for"
    assert "a" in {path.name for path in out.iterdir()}
    os.utime(fake.path)
    fake.path.write_text(fake.path.read_text() + "# another build\n")
    of_another_build = invoke("suite", suite, "--out", out, "--only", "b")
    assert "without a (of another build)" in of_another_build.out
    assert (out / "claims.csv").read_text().count("\n") == 1, "a's claim is of no run of this build"
    stale = render_stale(suite, out)
    assert "run of another build; run the suite again" in stale
    assert "1 could not be measured" in stale
    assert 'id="plan-a-sweep-wa-app-0"' not in stale
    invoke("suite", suite, "--out", out, "--only", "a")
    assert len(fake.requests()) == 7, "a figure of another build is no figure of this one"
    modules = tmp_path / "modules"
    modules.mkdir()
    (modules / "libspillway-engine-made.so").write_bytes(b"1")
    monkeypatch.setenv("SPILLWAY_ENGINES", str(modules))
    invoke("suite", suite, "--out", out, "--only", "a")
    assert len(fake.requests()) == 9, "an engine that is an object of its own is part of the build"


def test_earlier_runs_are_reported_with_new_ones(fake: Fake, suite: Path, tmp_path: Path, invoke: Invoke) -> None:
    """--only says what is run; the report, claims.csv and suite.json have all that is done."""
    out = tmp_path / "out"
    first = invoke("suite", suite, "--out", out, "--only", "b")
    assert (first.code, "without a (not run)" in first.out) == (0, True)
    page = (out / "report.html").read_text()
    assert "1 of 2 experiments have been run" in page
    assert "<b>Left out.</b> a (not run)." in page
    assert 'id="plan-a"' not in page
    assert json.loads((out / "suite.json").read_text())["plans"]["a"]["reported"] is False
    assert invoke("suite", suite, "--out", out, "--only", "a").code == 0
    assert len(fake.requests()) == 3, "b is not run again"
    whole = [(out / name).read_text() for name in ("claims.csv", "suite.json")]
    assert 'id="plan-a"' in (out / "report.html").read_text()
    again = invoke("suite", suite, "--out", out, "--only", "b")
    assert (again.code, "without" in again.out, len(fake.requests())) == (0, False, 3)
    assert [(out / name).read_text() for name in ("claims.csv", "suite.json")] == whole
    page = (out / "report.html").read_text()
    assert 'id="plan-a-sweep-wa-app-0"' in page
    assert "Left out" not in page
    assert "Of 1 published figures and relations 1 are reproduced" in page


def test_settings_are_of_the_plans_that_are_chosen(fake: Fake, suite: Path, tmp_path: Path, invoke: Invoke) -> None:
    """And the report says so of these, and of no other."""
    out = tmp_path / "out"
    assert invoke("suite", suite, "--out", out).code == 0
    ended = invoke("suite", suite, "--out", out, "--only", "b", "--set", "phases.0.threads=2")
    assert (ended.code, "without" in ended.out, len(fake.requests())) == (0, False, 4)
    page = (out / "report.html").read_text()
    assert page.index('id="plan-b"') < page.index("Run with <code>--set phases.0.threads=2</code>.")
    assert page.index("Run with <code>") < page.index('id="plan-a"'), "a was run without"
    noted = json.loads((out / "suite.json").read_text())["plans"]
    assert [noted[name]["settings"] for name in ("b", "a")] == [["phases.0.threads=2"], []]
    ended = invoke("suite", suite, "--out", out, "--only", "a")
    assert "without b (of another plan)" in ended.out
    assert "threads=2" not in (out / "report.html").read_text()


@pytest.mark.parametrize(
    ("what", "said"),
    [("failed", "failed"), ("ended early", "ended early"), ("damaged", "damaged"), ("file", "cannot be read")],
)
def test_what_is_not_whole_is_left_out_where_it_is_not_chosen(
    fake: Fake, suite: Path, tmp_path: Path, invoke: Invoke, what: str, said: str
) -> None:
    out = tmp_path / "out"
    assert invoke("suite", suite, "--out", out).code == 0
    manifest = out / "a" / "manifest.json"
    changes = {"failed": {"complete": False, "failure": "full."}, "ended early": {"complete": False}}
    if what == "file":
        (suite / "a.toml").write_text("x = ")
    else:
        changed = "{" if what == "damaged" else json.dumps(json.loads(manifest.read_text()) | changes[what])
        manifest.write_text(changed)
    ended = invoke("suite", suite, "--out", out, "--only", "b")
    assert (ended.code, len(fake.requests())) == (0, 3), ended.err
    assert re.search(rf"without a \(.*{said}", ended.out)
    assert 'id="plan-a"' not in (out / "report.html").read_text()
    assert (out / "claims.csv").read_text().count("\n") == 1
    assert (out / "a").is_dir(), "it stays as it is"


def test_runs_of_named_plans_are_drawn_over_time(suite: Path, tmp_path: Path, fake: Fake, invoke: Invoke) -> None:
    text = (suite / "suite.toml").read_text()
    (suite / "suite.toml").write_text('over_time = ["a"]\n' + text)
    assert invoke("suite", suite, "--out", tmp_path / "out").code == 0
    page = (tmp_path / "out" / "report.html").read_text()
    for title in ("Throughput over time", "wa_app over time", "wa_device over time"):
        assert page.count(f"<h3>{title}</h3>") == 1, title  # of a, and not of b
    assert "not steady." in page
    (suite / "suite.toml").write_text('over_time = ["c"]\n' + text)
    refused = invoke("suite", suite, "--out", tmp_path / "out")
    assert (refused.code, "over_time names 'c', no plan of the suite" in refused.err) == (2, True)


def test_a_failure_leaves_the_other_plans_and_is_tried_again(
    fake: Fake, suite: Path, tmp_path: Path, invoke: Invoke, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake.behave("fails")
    monkeypatch.setenv("FAKE_WHERE", json.dumps({"num": 100}))
    ended = invoke("suite", suite, "--out", tmp_path / "out")
    assert ended.code == 1
    assert "a: num 100 failed: the drive is full" in ended.err
    assert "not measured" in (tmp_path / "out" / "report.html").read_text()
    assert "the drive is full" in (tmp_path / "out" / "report.html").read_text()
    fake.behave("ok")
    assert invoke("suite", suite, "--out", tmp_path / "out").code == 0
    assert len(fake.requests()) == 5, "b was done"


@pytest.mark.parametrize(("mode", "done"), [("fails", True), ("crashes", False)])
def test_a_run_that_fills_its_drive_is_a_result_where_the_suite_says_so(
    fake: Fake, suite: Path, tmp_path: Path, invoke: Invoke, monkeypatch: pytest.MonkeyPatch, mode: str, done: bool
) -> None:
    """And no other failure is."""
    (suite / "suite.toml").write_text('may_fill = ["a"]\n' + (suite / "suite.toml").read_text())
    fake.behave(mode)
    monkeypatch.setenv("FAKE_WHERE", json.dumps({"num": 100}))
    out = tmp_path / "out"
    ended = invoke("suite", suite, "--out", out)
    assert (ended.code, "a: num 100 failed" in ended.err) == ((0, False) if done else (1, True))
    page = (out / "report.html").read_text()
    assert ("the drive is full" in page) is done  # it is told either way
    assert json.loads((out / "suite.json").read_text())["plans"]["a"]["state"] == ("done" if done else "failed")
    count = len(fake.requests())
    assert invoke("suite", suite, "--out", out).code == (0 if done else 1)
    assert len(fake.requests()) == (count if done else count + 2), "a is tried again where it failed"
    monkeypatch.delenv("FAKE_WHERE")
    (suite / "suite.toml").write_text((suite / "suite.toml").read_text().replace('may_fill = ["a"]\n', ""))
    assert load_suite(suite).plans[1].may_fill is False
    assert state_of(out / "a", load_suite(suite).plans[1].plan) == "failed"


def test_a_plan_that_the_engine_refuses_stops_no_other(
    fake: Fake, suite: Path, tmp_path: Path, invoke: Invoke, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake.behave("bad_input")
    monkeypatch.setenv("FAKE_ABOVE", "1000")  # b, at the original's size too: it is not for its scale
    ended = invoke("suite", suite, "--out", tmp_path / "out")
    assert ended.code == 1
    assert "b: presets/x.toml: geometry.chanels is not a key" in ended.err
    assert state_of(tmp_path / "out" / "a", load_suite(suite).plans[1].plan) == "done"
    assert "1 of 2 experiments have been run" in (tmp_path / "out" / "report.html").read_text()


def test_a_run_whose_engine_is_missing_stops_no_other(
    fake: Fake, suite: Path, tmp_path: Path, invoke: Invoke, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake.behave("bad_input")
    monkeypatch.setenv("FAKE_ABOVE", "200")  # the second of two, at any scale
    ended = invoke("suite", suite, "--out", tmp_path / "out", "--only", "a")
    assert (ended.code, "1 plans run" in ended.out) == (1, True)
    report = (tmp_path / "out" / "report.html").read_text()
    assert "geometry.chanels is not a key" in report
    arms = json.loads((tmp_path / "out" / "a" / "summary.json").read_text())["arms"]
    assert [each["standing"]["complete"] for each in arms.values()] == [True, False]


WHOLE: dict[str, Any] = {
    **{"directory": "arms/b", "standing": {"complete": True, "failure": None, "words": ""}, "stalls": {}},
    **{"latency_us": {}, "throughput_ops_s": 1, "user_mb_s": 1, "duration_s": 1, "steady": True},
    **dict.fromkeys(("wa_app", "wa_device", "wa_total")),
}
DAMAGE = [
    ("manifest.json", "[]"),
    ("manifest.json", '{"complete": true, "versions": [1]}'),
    ("manifest.json", "{"),
    ("manifest.json", None),
    ("summary.json", ""),
    ("summary.json", "{}"),
    ("summary.json", "[]"),
    ("summary.json", '{"arms": {"b": {}}}'),
    ("summary.json", '{"arms": {"b": 3}}'),
    ("summary.json", json.dumps({"arms": {"b": WHOLE | {"standing": []}}})),
    ("summary.json", json.dumps({"arms": {"b": WHOLE | {"standing": {}}}})),
    ("summary.json", json.dumps({"arms": {"b": WHOLE | {"repetitions": [1]}}})),
    ("summary.json", json.dumps({"arms": {"b": WHOLE | {"repetitions": [{"directory": 1}]}}})),
    ("summary.json", json.dumps({"arms": {"b": WHOLE | {"directory": "arms/c"}}})),
    ("summary.json", "[" * 100_000),
    ("plan.toml", None),
    *((f"arms/b/{name}", None) for name in ("samples.csv", "stalls.csv", "phases.json", "events.json", "result.json")),
    ("arms/b/result.json", "{"),
    ("arms/b/samples.csv", ""),
    ("arms/b/samples.csv", "half a line"),
    ("arms/b/stalls.csv", "half a line"),
]


def test_any_damage_to_a_run_directory_is_seen(fake: Fake, suite: Path, tmp_path: Path, invoke: Invoke) -> None:
    out = tmp_path / "out"
    plan = load_suite(suite).plans[0].plan
    assert invoke("suite", suite, "--out", out, "--only", "b").code == 0
    (out / "b" / "summary.json").write_text(json.dumps({"arms": {"b": WHOLE}}))
    for file, text in DAMAGE:
        assert state_of(out / "b", plan) == "done"
        whole = (out / "b" / file).read_bytes()
        (out / "b" / file).unlink() if text is None else (out / "b" / file).write_text(text)
        assert state_of(out / "b", plan) == "damaged", (file, text)
        assert "b is damaged; run the suite again" in render_stale(suite, out), (file, text)
        (out / "b" / file).write_bytes(whole)


OF_EACH_FILE = dict(reversed(DAMAGE))


def test_a_damaged_run_directory_is_run_again(fake: Fake, suite: Path, tmp_path: Path, invoke: Invoke) -> None:
    """After each kind of damage to what the last run has left."""
    out = tmp_path / "out"
    plan = load_suite(suite).plans[0].plan
    assert invoke("suite", suite, "--out", out, "--only", "b").code == 0
    for file, text in OF_EACH_FILE.items():
        (out / "b" / file).unlink() if text is None else (out / "b" / file).write_text(text)
        assert state_of(out / "b", plan) == "damaged", file
        fake.behave("bad_input")
        refused = invoke("suite", suite, "--out", out, "--only", "b")
        assert (refused.code, "geometry.chanels" in refused.err, "Traceback" in refused.err) == (1, True, False), file
        fake.behave("ok")
        assert invoke("suite", suite, "--out", out, "--only", "b").code == 0, file
        assert state_of(out / "b", plan) == "done", file
        assert {path.name for path in out.iterdir()} == {".lock", "b", "claims.csv", "report.html", "suite.json"}, file


def test_samples_that_end_early_are_damaged(fake: Fake, suite: Path, tmp_path: Path, invoke: Invoke) -> None:
    """In the middle of a line, or without the last one."""
    out = tmp_path / "out"
    assert invoke("suite", suite, "--out", out, "--only", "a").code == 0
    plan = load_suite(suite).plans[1].plan
    path = next((out / "a" / "arms").iterdir()) / "samples.csv"
    whole = path.read_bytes()
    without_last = b"".join(whole.splitlines(keepends=True)[:-1])
    for part in (*(whole[:-cut] for cut in (1, 2, 10, 100)), without_last):
        assert state_of(out / "a", plan) == "done"
        path.write_bytes(part)
        assert state_of(out / "a", plan) == "damaged", len(whole) - len(part)
        path.write_bytes(whole)


@pytest.mark.parametrize("change", ["preset", "estimate", "preset_file", "state", "a preparation's preset", "arrivals"])
def test_a_plan_whose_files_were_changed_is_run_again(
    fake: Fake, suite: Path, tmp_path: Path, invoke: Invoke, change: str
) -> None:
    """A plan names its presets, states and times of arrival: they can change where it does not."""
    out, preset = tmp_path / "out", tmp_path / "presets" / "tiny.toml"
    plan = suite / "b.toml"
    other = tmp_path / "other.toml"
    other.write_text(preset.read_text())
    if change == "estimate":
        directory = f'kind = "directory"\npath = "{tmp_path}"\nsmart = "off"\nestimate.preset = "tiny"'
        plan.write_text(plan.read_text().replace('preset = "tiny"', directory))
    elif change == "preset_file":
        preset = other
        plan.write_text(plan.read_text().replace('preset = "tiny"', f'preset_file = "{other}"'))
    elif change == "state":
        preset = other
        plan.write_text(plan.read_text() + f'\n[initial]\nkind = "file"\npath = "{other}"\n')
    elif change == "arrivals":
        preset = tmp_path / "times.txt"
        preset.write_text("0.2\n0.4\n")
        plan.write_text(
            plan.read_text().replace("duration_s = 1\n", f'arrivals = "trace"\narrivals_file = "{preset}"\n')
        )
    elif change == "a preparation's preset":
        preset = other
        plan.write_text(
            plan.read_text().replace('preset = "tiny"', "")
            + f'\n[[prepare]]\n"kept.to" = "x"\n"drive.preset_file" = "{other}"\n'
            '[[prepare.phases]]\nworkload = "fillseq"\n'
        )
    assert invoke("suite", suite, "--out", out, "--only", "b").code == 0
    count = len(fake.requests())
    assert "done before" in invoke("suite", suite, "--out", out, "--only", "b").err
    assert len(fake.requests()) == count
    preset.write_text(preset.read_text().replace("0.2", "0.3"))
    assert "of other files" in invoke("suite", suite, "--out", out, "--list").out
    assert "with other presets, states of drives or times of arrival; run the suite again" in render_stale(suite, out)
    assert invoke("suite", suite, "--out", out, "--only", "b").code == 0
    assert len(fake.requests()) == 2 * count
    assert state_of(out / "b", load_suite(suite).plans[0].plan) == "done"


@pytest.mark.parametrize("name", ["b", ".b.next", ".b.old", ".b.damaged"])
def test_a_file_in_the_place_of_a_plans_directory_is_in_nobodys_way(
    fake: Fake, suite: Path, tmp_path: Path, invoke: Invoke, name: str
) -> None:
    out = tmp_path / "out"
    out.mkdir()
    (out / ".lock").touch()
    (out / name).write_text("x")
    ended = invoke("suite", suite, "--out", out, "--only", "b")
    assert (ended.code, ended.err.count("refused")) == (0, 0), ended.err
    assert {path.name for path in out.iterdir()} == {".lock", "b", "claims.csv", "report.html", "suite.json"}


def begin(fake: Fake, suite: Path, out: Path, *flags: str) -> subprocess.Popen[bytes]:
    """A suite whose plan ``a`` is under way and does not end by itself."""
    fake.monkeypatch.setenv("FAKE_MODE", "endless")
    words = ["suite", str(suite), "--out", str(out), "--only", "a", "--set", "phases.0.duration_s=1000", *flags]
    command = [sys.executable, "-m", "spillway.cli", *words]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True)
    deadline = time.monotonic() + 100
    while not any(len(each.read_text().splitlines()) > 2 for each in out.glob("..a.next.partial-*/arms/*/samples.csv")):
        assert time.monotonic() < deadline
        assert process.poll() is None, process.communicate()
        time.sleep(0.02)
    return process


@pytest.mark.parametrize("how", [pytest.param(signal.SIGINT, marks=pytest.mark.long), signal.SIGKILL])
def test_it_goes_on_where_it_was_interrupted(
    fake: Fake, suite: Path, tmp_path: Path, invoke: Invoke, how: signal.Signals
) -> None:
    out, data = tmp_path / "out", tmp_path / "data"
    data.mkdir()
    place = ("--set", f'data_directory="{data}"')
    invoke("suite", suite, "--out", out, "--only", "b", *place)
    process = begin(fake, suite, out, *place)
    process.send_signal(how)
    process.communicate(timeout=100)
    assert process.returncode == (130 if how == signal.SIGINT else -9)
    assert len(list(data.iterdir())) == (0 if how == signal.SIGINT else 1)
    fake.behave("ok")
    before = len(fake.requests())
    again = invoke("suite", suite, "--out", out, *place)
    assert again.code == 0, again.err
    assert "1 plans run, 1 done before" in again.out
    assert len(fake.requests()) == before + 2
    assert {path.name for path in out.iterdir()} == {".lock", "a", "b", "claims.csv", "report.html", "suite.json"}
    assert list(data.iterdir()) == [], "the engine's files of the run that was killed are gone too"


def test_an_ended_run_does_not_take_the_place_of_a_whole_one(
    fake: Fake, suite: Path, tmp_path: Path, invoke: Invoke
) -> None:
    out = tmp_path / "out"
    invoke("suite", suite, "--out", out, "--only", "a")
    process = begin(fake, suite, out)
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=100)
    assert state_of(out / "a", load_suite(suite).plans[1].plan) == "done"


@pytest.mark.reports
@pytest.mark.parametrize(
    ("end", "earlier"),
    [
        ("no room", "none"), ("no room", "ended early"), ("kill", "none"), ("ctrl-c", "of another plan"),
        ("kill after an early end", "none"),
        pytest.param("kill after an early end", "ended early", marks=pytest.mark.long),
    ],
)  # fmt: skip
def test_what_was_measured_is_not_lost_with_its_report(
    fake: Fake, suite: Path, tmp_path: Path, invoke: Invoke, monkeypatch: pytest.MonkeyPatch, end: str, earlier: str
) -> None:
    """A run directory is whole before its report is made: whatever ends that, no run is to be done again."""
    import spillway.report

    out, before = tmp_path / "out", len(fake.requests())
    if earlier != "none":
        flags = ("--set", "phases.0.threads=2") if earlier == "of another plan" else ()
        assert invoke("suite", suite, "--out", out, "--only", "b", *flags).code == 0
        before = len(fake.requests())
    if earlier == "ended early":
        manifest = json.loads((out / "b" / "manifest.json").read_text())
        (out / "b" / "manifest.json").write_text(json.dumps(manifest | {"complete": False}))
    write_report = spillway.report.write_report

    def fail(rundir: Path, target: Path, *more: Any) -> None:
        if end == "no room":
            raise SpillwayError(f"{target} cannot be written: no space left on device.")
        if end == "kill after an early end":
            path = rundir / "manifest.json"
            path.write_text(json.dumps(json.loads(path.read_text()) | {"complete": False}))
        raise KeyboardInterrupt if end == "ctrl-c" else SystemExit(9)

    monkeypatch.setattr(spillway.report, "write_report", fail)
    ended = invoke("suite", suite, "--out", out, "--only", "b")
    assert ended.code == {"no room": 1, "ctrl-c": 130}.get(end, 9)
    assert ".next" not in ended.err, "nobody is sent to a hidden name"
    monkeypatch.setattr(spillway.report, "write_report", write_report)
    again = invoke("suite", suite, "--out", out, "--only", "b")
    assert again.code == 0
    early = end == "kill after an early end"
    assert len(fake.requests()) - before == (2 if early else 1)
    assert (out / "b" / "report.html").is_file()
    assert state_of(out / "b", load_suite(suite).plans[0].plan) == "done"
    assert not list(out.glob(".b.*"))


@pytest.mark.reports
@pytest.mark.parametrize("mode", [pytest.param(mode, marks=pytest.mark.long) for mode in ("fails", "crashes")])
def test_a_run_that_came_to_its_end_with_failures_is_not_lost_with_its_report(
    fake: Fake, suite: Path, tmp_path: Path, invoke: Invoke, monkeypatch: pytest.MonkeyPatch, mode: str
) -> None:
    """It takes an earlier one's place after a kill as it does without."""
    import spillway.report

    (suite / "suite.toml").write_text('may_fill = ["a"]\n' + (suite / "suite.toml").read_text())
    out = tmp_path / "out"
    assert invoke("suite", suite, "--out", out, "--only", "a", "--set", "phases.0.threads=2").code == 0
    fake.behave(mode)
    monkeypatch.setenv("FAKE_WHERE", json.dumps({"num": 100}))

    def killed(*_: Any) -> None:
        raise SystemExit(9)

    with monkeypatch.context() as patched:
        patched.setattr(spillway.report, "write_report", killed)
        assert invoke("suite", suite, "--out", out, "--only", "a").code == 9
    count = len(fake.requests())
    ended = invoke("suite", suite, "--out", out, "--only", "a")
    assert (ended.code, len(fake.requests()) - count) == ((0, 0) if mode == "fails" else (1, 2)), ended.err
    assert not list(out.glob(".a.*"))


@pytest.mark.parametrize("there", ["another suite", "a search"])
def test_a_directory_of_other_work_is_left_as_it_is(
    fake: Fake, suite: Path, plan_file: Path, tmp_path: Path, invoke: Invoke, there: str
) -> None:
    out, other = tmp_path / "out", tmp_path / "other"
    suite.rename(other)
    if there == "another suite":
        shutil.copytree(other, suite)
        (suite / "a.toml").write_text((suite / "a.toml").read_text().replace("1000]", "1200]"))
        words: tuple[object, ...] = ("suite", suite, "--only", "a", "--out", out)
    else:
        plan_file.write_text(PLAN + 'arrivals = "constant"\nrate_ops_s = 100\n')
        words = ("sustain", plan_file, "--from", "1000", "--to", "2000", "--out", out)
    invoke(*words)
    before = {path: path.read_bytes() for path in out.rglob("*") if path.is_file()}
    assert before
    refused = invoke("suite", other, "--out", out)
    assert (refused.code, refused.err.count("\n")) == (2, 1)
    assert "this is the directory of " in refused.err
    assert {path: path.read_bytes() for path in out.rglob("*") if path.is_file()} == before
    assert invoke("suite", other, "--out", tmp_path / "next").code == 0
    ours = "no search's" if there == "a search" else "this is the directory of the suite 'other'"
    assert ours in invoke(*words[:-1], tmp_path / "next").err


def test_two_suites_in_one_directory_are_one_too_many(fake: Fake, suite: Path, tmp_path: Path, invoke: Invoke) -> None:
    out = tmp_path / "out"
    out.mkdir()
    with (out / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        ended = invoke("suite", suite, "--out", out)
    assert (ended.code, "a suite is running in it" in ended.err) == (2, True)
    assert fake.requests() == []


def test_a_directory_of_something_else_is_left_alone(fake: Fake, suite: Path, tmp_path: Path, invoke: Invoke) -> None:
    out = tmp_path / "precious"
    out.mkdir()
    (out / "file").write_text("x")
    ended = invoke("suite", suite, "--out", out)
    assert (ended.code, "that is no suite's" in ended.err) == (2, True)
    assert [path.name for path in out.iterdir()] == ["file"]
