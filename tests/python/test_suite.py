"""Suites: how they are scaled, what is run again and what is not, and what is said of published figures."""

import csv
import fcntl
import json
import os
import re
import runpy
import shutil
import signal
import subprocess
import sys
import time
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from conftest import PLAN, Fake, Invoke

from spillway.errors import SpillwayError
from spillway.plan.document import load_plan
from spillway.report import write_suite_report
from spillway.run.too_small import check_scale
from spillway.suite import find_suite, load_suite
from spillway.suite.claims import Claim, read_claims
from spillway.suite.document import OTHERS, SuitePlan
from spillway.suite.scale import Scale, TooSmall, parse_factor
from spillway.suite.state import state_of
from spillway.suite.verdicts import Measured, judge_all, measured_of, tallies

pytestmark = pytest.mark.usefixtures("without_reports")

SHORT = PLAN.replace("duration_s = 12", "duration_s = 1")
SUITE = """
title = "Two plans"
plans = ["b", "a"]
[scale]
factor = "1/4"
keys = ["load.num", "engine.options.*_size", "phases.*.operations"]
"""
SWEEP = '\n[sweep]\n"load.num" = [400, 1000]\n'
CLAIMS = """
[statements]
C1 = "it grows"
[[claims]]
claim = "C1"
says = "wa_app at 400"
where = "Table 1"
plan = "a"
arm = "a"
at = { "load.num" = 400 }
figure = "wa_app"
published = 3.2
within = 0.2
any_size = "the stand-in writes the same of any"
"""


@pytest.fixture
def suite(plan_file: Path, tmp_path: Path) -> Path:
    """A suite of two plans; ``a`` is a sweep."""
    directory = tmp_path / "two"
    directory.mkdir()
    (directory / "suite.toml").write_text(SUITE)
    (directory / "a.toml").write_text(SHORT.replace('name = "small"', 'name = "a"\nsummary = "first"') + SWEEP)
    (directory / "b.toml").write_text(SHORT.replace('name = "small"', 'name = "b"'))
    (directory / "claims.toml").write_text(CLAIMS)
    return directory


def plans_by_name(suite: Path, settings: tuple[str, ...] = ()) -> list[SuitePlan]:
    return sorted(load_suite(suite, settings=settings).plans, key=lambda each: each.name)


def test_a_setting_is_for_those_plans_in_which_it_has_an_effect(suite: Path) -> None:
    drives = (suite / "b.toml").read_text()
    (suite / "b.toml").write_text(drives.replace("[engine.options]", '[engine]\nname = "raw"\n[engine.options]'))
    plain, given = plans_by_name(suite), "fs.placement=first_fit"
    for settings in ((given,), (given, "sample_interval_ms=50")):
        a, b = plans_by_name(suite, settings)
        assert {arm.settings["fs.placement"] for arm in a.plan.arms} == {"first_fit"}
        assert b.settings == settings[1:]
        assert (a.settings, len(a.plan.arms)) == (settings, len(plain[0].plan.arms))
    a, b = plans_by_name(suite, (given,))
    assert b.plan.to_toml() == plain[1].plan.to_toml(), "it runs as without the setting"
    with pytest.raises(
        SpillwayError, match=r"^--set fs\.placement belongs to engines that have files, and engine\.name"
    ):
        load_suite(suite, only=("b",), settings=(given,))
    with pytest.raises(
        SpillwayError, match=r"^--set engine\.vlog\.gc belongs to the engine leveldb-vlog, and no run has"
    ):
        load_suite(suite, settings=("engine.vlog.gc=false",))


def test_a_table_that_is_set_goes_to_all_plans_where_some_of_it_has_an_effect(suite: Path) -> None:
    text = (suite / "b.toml").read_text()
    (suite / "b.toml").write_text(text + '[initial]\nkind = "sequential"\n')
    (suite / "a.toml").write_text((suite / "a.toml").read_text() + '[kept]\nfrom = "old"\n')
    given = "initial={fill=0.5}"
    a, b = plans_by_name(suite, (given,))
    assert (a.settings, b.settings) == ((), (given,))
    assert {arm.settings["initial.fill"] for arm in b.plan.arms} == {0.5}
    whole = 'kept={directory="states",from="old",takes="drive",database="other"}'
    with pytest.raises(SpillwayError, match=r"^--set kept\.database belongs to kept\.to"):
        load_suite(suite, settings=(whole,))
    (suite / "b.toml").write_text(text + '[kept]\ntakes = "drive"\nfrom = "old"\nto = "new"\n')
    names = "kept.database=other"
    a, b = plans_by_name(suite, (names, "kept.takes=drive"))
    assert (a.settings, b.settings) == (("kept.takes=drive",), (names, "kept.takes=drive"))


def test_a_phases_setting_is_for_those_plans_that_have_the_phase(suite: Path) -> None:
    text = (suite / "b.toml").read_text()
    (suite / "b.toml").write_text(text.replace('name = "fill"', 'name = "write"'))
    for scale in (None, "1"):
        plans = load_suite(suite, scale, settings=("phases.write.threads=3", "phases.fill.threads=2")).plans
        a, b = sorted(plans, key=lambda each: each.name)
        assert {arm.phases[0]["threads"] for arm in a.plan.arms} == {2}
        assert {arm.phases[0]["threads"] for arm in b.plan.arms} == {3}
        assert (a.settings, b.settings) == (("phases.fill.threads=2",), ("phases.write.threads=3",))
    with pytest.raises(
        SpillwayError, match=r"^--set phases\.age\.threads belongs to plans that have such a phase, and no run has"
    ):
        load_suite(suite, settings=("phases.age.threads=2",))
    with pytest.raises(SpillwayError, match=r"no element 'fill'; by name there are: write, and by number 0 to 0"):
        load_suite(suite, only=("b",), settings=("phases.fill.threads=2",))


@pytest.mark.parametrize(
    ("given", "fill"), [(("initial={}", "initial.fill=0.25"), 0.25), (("initial.fill=0.25", "initial={}"), 0.5)]
)
def test_of_settings_of_one_key_the_last_holds_in_every_plan(suite: Path, given: tuple[str, ...], fill: float) -> None:
    """Whether all of a table has an effect in it, or some."""
    (suite / "b.toml").write_text((suite / "b.toml").read_text() + "[drive.set]\ncompression.granule_bytes = 512\n")
    settings = tuple(each.replace("{}", "{fill=0.5, compression_ratio=0.5}") for each in given)
    a, b = plans_by_name(suite, settings)
    assert (a.settings, b.settings) == (settings, settings)
    assert {arm.settings["initial.fill"] for each in (a, b) for arm in each.plan.arms} == {fill}


def test_a_plan_beside_a_suite_is_its_plan_by_its_whole_name(suite: Path, invoke: Invoke) -> None:
    for plans in ("5", '"a"'):
        (suite / "suite.toml").write_text(f"plans = {plans}\n")
        ended = invoke("run", suite / "a.toml")
        assert (ended.code, ended.out) == (2, "")
        assert "plans is" in ended.err
        assert "it takes a list of the plans' names" in ended.err


def test_one_factor_scales_what_is_named_wherever_it_stands() -> None:
    scale = Scale(Fraction(1, 4), ("load.num", "engine.options.*_size", "drive.capacity", "phases.*.operations"))
    document: dict[str, Any] = {
        "drive": {"capacity": "256GB"},
        "load": {"num": 10, "value_bytes": 100},
        "engine": {"options": {"write_buffer_size": "4MiB", "block_restart_interval": 16, "x_size": 0}},
        "phases": [{"operations": 1000, "threads": 4}],
        "arms": [{"name": "x", "load.num": 3, "engine": {"options": {"max_file_size": 8}}}],
        "sweep": {"load.num": [1, 8], "load": {"value_bytes": [16]}, "points": [{"phases.fill.operations": 40}]},
    }
    assert scale.applied(document, "p") == {
        "drive": {"capacity": 64 * 10**9},
        "load": {"num": 2, "value_bytes": 100},
        "engine": {"options": {"write_buffer_size": 2**20, "block_restart_interval": 16, "x_size": 0}},
        "phases": [{"operations": 250, "threads": 4}],
        "arms": [{"name": "x", "load.num": 1, "engine": {"options": {"max_file_size": 2}}}],
        "sweep": {"load.num": [1, 2], "load": {"value_bytes": [16]}, "points": [{"phases.fill.operations": 10}]},
    }
    odd = Scale(Fraction(1, 256), ("drive.capacity",)).applied({"drive": {"capacity": "256GB"}}, "p")
    assert odd["drive"]["capacity"] == 244141 * 4096, "a drive holds whole mapping units"
    sizes = {"fs": {"size": "100GB"}, "drive": {"estimate": {"capacity": "1TB"}}}
    pages = Scale(Fraction(1, 256), ("fs.size", "drive.estimate.capacity")).applied(sizes, "p")
    assert pages == {"fs": {"size": 95367 * 4096}, "drive": {"estimate": {"capacity": 953674 * 4096}}}
    assert document["load"]["num"] == 10, "what was handed in is left as it was"
    with pytest.raises(SpillwayError, match=r"p: load\.num, which the suite scales, is 'many'"):
        scale.applied({"load": {"num": "many"}}, "p")


@pytest.mark.parametrize("written", ['"phases.fill.operations"', "phases.fill.operations", 'phases."fill".operations'])
@pytest.mark.parametrize("sweep", ["[sweep]\n{} = [8, 16]\n", "[[sweep.points]]\n{} = 8\n[[sweep.points]]\n{} = 16\n"])
def test_an_axis_is_scaled_however_it_is_written(plan_file: Path, written: str, sweep: str) -> None:
    """Under [sweep] a dotted key without quotes is a table in a table."""
    phase = '[[phases]]\nname = "fill"\nworkload = "fillrandom"\noperations = 4\n'
    plan_file.write_text(f'drive.preset = "tiny"\n{phase}{sweep.replace("{}", written)}')
    scale = Scale(Fraction(1, 4), ("phases.*.operations",))
    plan = load_plan(plan_file, scale=lambda document: scale.applied(document, "p"))
    assert [arm.phases[0]["operations"] for arm in plan.arms] == [2, 4]
    assert [dict(arm.point) for arm in plan.arms] == [{"phases.fill.operations": 2}, {"phases.fill.operations": 4}]


@pytest.mark.parametrize(("text", "factor"), [("1/64", Fraction(1, 64)), ("0.25", Fraction(1, 4)), (1, Fraction(1))])
def test_factors(text: object, factor: Fraction) -> None:
    assert parse_factor(text, "scale") == factor


@pytest.mark.parametrize("text", ["0", "2", "-1/4", "1/0", "much", "nan", "1e-999999999"])
def test_what_is_no_factor(text: str) -> None:
    with pytest.raises(SpillwayError, match="--scale is"):
        parse_factor(text, "--scale")


def test_plans_are_scaled_and_their_points_stay_the_originals(suite: Path) -> None:
    read = load_suite(suite)
    assert [(each.name, len(each.plan.arms)) for each in read.plans] == [("b", 1), ("a", 2)]
    a = read.plans[1]
    assert [arm.settings["load.num"] for arm in a.plan.arms] == [100, 250]
    assert a.plan.arms[0].engine_options["write_buffer_size"] == str(2**18)
    assert a.plan.summary == "first (scaled by 1/4)"
    assert list(a.point_of().values()) == [{"load.num": 400}, {"load.num": 1000}]
    assert [arm.settings["load.num"] for arm in load_suite(suite, "1").plans[1].plan.arms] == [400, 1000]
    only = load_suite(suite, None, ("a",), ("phases.0.threads=2",))
    assert [(each.name, each.chosen, each.plan.arms[0].phases[0]["threads"]) for each in only.plans] == [
        ("b", False, 1),
        ("a", True, 2),
    ]
    assert [each.name for each in only.chosen] == ["a"]
    assert only.runs == 2


def test_a_plan_may_have_a_factor_of_its_own(suite: Path, tmp_path: Path, fake: Fake, invoke: Invoke) -> None:
    (suite / "suite.toml").write_text(SUITE + '[scale.plans]\na = "1/2"\n')
    read = load_suite(suite)
    assert [(each.name, each.factor) for each in read.plans] == [("b", Fraction(1, 4)), ("a", Fraction(1, 2))]
    assert read.own_factors() == {"a": "1/2"}
    assert [arm.settings["load.num"] for arm in read.plans[1].plan.arms] == [200, 500]
    assert read.plans[1].plan.summary == "first (scaled by 1/2)"
    assert load_suite(suite, "1/4").own_factors() == {}  # a factor on the command line is every plan's
    out = tmp_path / "out"
    assert invoke("suite", suite, "--out", out).code == 0
    assert json.loads((out / "suite.json").read_text())["own_factors"] == {"a": "1/2"}
    assert "1/2 in a" in (out / "report.html").read_text()
    alone = tmp_path / "alone"
    assert invoke("run", suite / "a.toml", "--out", alone).code == 0
    assert (alone / "plan.toml").read_text() == (out / "a" / "plan.toml").read_text()


BAD = [
    ("suite.toml", 'plans = ["a", "nope"]', r"names 'nope', and there is no .*nope\.toml"),
    ("suite.toml", 'plans = ["a", "a"]', "names 'a' twice"),
    ("suite.toml", 'plans = ["a", "../two/b"]', r"names '\.\./two/b'; a plan lies beside suite\.toml"),
    ("suite.toml", 'plans = ["."]', r"names '\.'; a plan lies beside suite\.toml"),
    *(("suite.toml", f'plans = ["{name}"]', f"names '{name}', which a suite's directory has for") for name in OTHERS),
    ("suite.toml", "plans = []", "it takes a list"),
    ("suite.toml", 'plan = ["a"]', "plan is not a key of a suite; did you mean 'plans'"),
    ("suite.toml", 'plans = ["a"]\nscale.factor = 3', "scale.factor is 3; a scale is above 0"),
    ("suite.toml", 'plans = ["a"]\nscale.factor = 0.5', "scale.keys is missing"),
    ("suite.toml", 'plans = ["a"]\nscale.kesy = []', "did you mean 'keys'"),
    ("suite.toml", SUITE + '[scale.plans]\nc = "1/2"', "scale.plans names 'c', no plan of the suite"),
    ("suite.toml", SUITE + "[scale.plans]\na = 2", "scale.plans.a is 2; a scale is above 0"),
    ("suite.toml", 'plans = ["a"]\nscale.plans = 1', "scale.plans is 1; it takes a table"),
    ("suite.toml", 'plans = ["a"]\nscale.plans.a = 0.5', "scale.keys is missing"),
    ("a.toml", "x = ", "this is not TOML"),
    ("a.toml", SHORT.replace("num =", "nmu ="), "did you mean 'load.num'"),
    ("claims.toml", CLAIMS.replace("published", "publshed"), "did you mean 'published'"),
    ("claims.toml", CLAIMS + "between = [1, 2]\n", "it says published and between"),
    ("claims.toml", CLAIMS.replace('plan = "a"', 'plan = "c"'), "no plan of the suite"),
    ("claims.toml", CLAIMS.replace('wa_app"\n', 'wa"\n'), "figure is 'wa'; it takes one of wa_app"),
    ("claims.toml", CLAIMS.replace('arm = "a"', 'arm = "z"'), "a has no arm 'z'; there are: a"),
    ("claims.toml", CLAIMS.replace("= 400 }", "= 7 }"), "a has no run of a at load.num = 7"),
    ("claims.toml", CLAIMS.replace('at = { "load.num" = 400 }\n', ""), "a has 2 runs of a"),
    ("claims.toml", CLAIMS.replace('[statements]\nC1 = "it grows"', ""), "C1 has no sentence under"),
    ("claims.toml", CLAIMS.replace("published = 3.2", 'trend = "falls"'), "along names the axis"),
    ("claims.toml", CLAIMS.replace("published = 3.2", 'trend = "down"\nalong = "load.num"'), "trend is 'down'"),
]


@pytest.mark.parametrize(("file", "text", "says"), BAD, ids=[says[:30] for *_, says in BAD])
def test_what_is_refused_names_the_file_and_the_mend(
    suite: Path, invoke: Invoke, tmp_path: Path, fake: Fake, file: str, text: str, says: str
) -> None:
    (suite / file).write_text(text)
    with pytest.raises(SpillwayError, match=says) as refused:
        load_suite(suite)
    assert str(suite / file) in str(refused.value)
    ended = invoke("suite", suite, "--out", tmp_path / "out")
    assert (ended.code, ended.err.count("\n")) == (2, 1)
    assert not (tmp_path / "out").exists()
    assert fake.requests() == []


def test_a_suite_is_found_by_its_name(suite: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "plans").mkdir()
    suite.rename(tmp_path / "plans" / "two")
    monkeypatch.chdir(tmp_path)
    assert find_suite("two") == Path("plans/two")
    with pytest.raises(SpillwayError, match=r"no such suite; there are: .*two.*did you mean 'two'"):
        find_suite("tow")
    with pytest.raises(SpillwayError, match=r"there is no suite\.toml in it"):
        find_suite("plans")


def render_stale(suite: Path, out: Path) -> str:
    """The report of what there is, run or not."""
    write_suite_report(load_suite(suite), out, out / "report.html")
    return (out / "report.html").read_text()


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


def test_what_was_run_before_is_reported_beside_what_is_run_now(
    fake: Fake, suite: Path, tmp_path: Path, invoke: Invoke
) -> None:
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


def test_a_scale_that_is_too_small_is_told_before_anything_is_run(
    fake: Fake, suite: Path, tmp_path: Path, invoke: Invoke, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake.behave("bad_input")
    monkeypatch.setenv("FAKE_WHERE", json.dumps({"num": 100}))  # the first of a's, at 1/4 and not at 1
    out, why = tmp_path / "out", "num 100: presets/x.toml: geometry.chanels is not a key."
    for flags, asked in (((), "the factor 1/4 of the suite"), (("--scale", "1/4"), "--scale 1/4")):
        ended = invoke("suite", suite, "--out", out, *flags)
        assert (ended.code, out.exists(), fake.requests()) == (2, False, [])
        assert ended.err == f"spillway: {asked} is too small for a, give --scale 1/2 or a larger one: {why}\n"
    assert invoke("suite", suite, "--out", out, "--only", "b").code == 0, "what is not chosen is not asked about"
    fake.behave("ok")
    assert invoke("suite", suite, "--out", out).code == 0
    fake.behave("bad_input")
    assert "0 plans run, 2 done before" in invoke("suite", suite, "--out", out).out, "and nor is what is done"


@pytest.mark.parametrize("may_fill", [False, True])
def test_a_data_set_that_does_not_fit_the_scaled_drive_is_told_before_anything_is_run(
    fake: Fake, suite: Path, tmp_path: Path, invoke: Invoke, may_fill: bool
) -> None:
    """5.3 MB at least, on 64 MiB. To fill a drive on purpose is another thing: that needs what fits at first."""
    text = SUITE.replace('"load.num", ', '"drive.capacity", ')
    (suite / "suite.toml").write_text(('may_fill = ["b"]\n' if may_fill else "") + text)
    (suite / "b.toml").write_text((suite / "b.toml").read_text().replace("[drive]", '[drive]\ncapacity = "64MiB"'))
    out = tmp_path / "out"
    ended = invoke("suite", suite, "--out", out, "--scale", "1/16")
    assert (ended.code, out.exists(), fake.requests(), ended.err.count("\n")) == (2, False, [], 1)
    assert "spillway: --scale 1/16 is too small for b, give --scale 1/8 or a larger one: load.num = 10000 " in ended.err
    alone = invoke("run", suite / "b.toml", "--out", out, "--scale", "1/16")
    assert (alone.code, "the scale 1/16 is too small for b, give a larger one: load.num" in alone.err) == (2, True)
    assert invoke("suite", suite, "--out", out, "--scale", "1/8").code == 0


@pytest.mark.parametrize("given", ["engine.vlog.gc=false", "phases.write.threads=2"])
def test_a_setting_for_another_plan_does_not_hide_that_the_scale_is_too_small(
    fake: Fake, suite: Path, tmp_path: Path, invoke: Invoke, given: str
) -> None:
    b = (suite / "b.toml").read_text().replace('name = "fill"', 'name = "write"')
    (suite / "b.toml").write_text(b.replace("[engine.options]", '[engine]\nname = "leveldb-vlog"\n[engine.options]'))
    words = ("suite", suite, "--out", tmp_path / "out", "--scale", "1/1000")
    plain = invoke(*words)
    assert "is too small for a, give --scale" in plain.err
    ended = invoke(*words, "--set", given)
    assert (ended.code, ended.err) == (2, plain.err)


def test_what_is_wrong_at_any_scale_is_not_laid_to_the_scale(suite: Path, invoke: Invoke, tmp_path: Path) -> None:
    text = (suite / "b.toml").read_text()
    for old, new, says in (
        ("num = 10000", "num = 100000000", "load.num = 25000000 pairs come to"),
        ("write_buffer_size = 1048576", 'x_size = "kNone"', "x_size, which the suite scales, is 'kNone'"),
    ):
        (suite / "b.toml").write_text(text.replace(old, new))
        refused = invoke("suite", suite, "--out", tmp_path / "out")
        assert (refused.code, says in refused.err, "too small" in refused.err) == (2, True, False), refused.err


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


@pytest.mark.parametrize(("file", "text"), DAMAGE, ids=[f"{file} {str(text)[:40]}" for file, text in DAMAGE])
def test_a_damaged_run_directory_is_run_again(
    fake: Fake, suite: Path, tmp_path: Path, invoke: Invoke, file: str, text: str | None
) -> None:
    out = tmp_path / "out"
    plan = load_suite(suite).plans[0].plan
    assert invoke("suite", suite, "--out", out, "--only", "b").code == 0
    (out / "b" / "summary.json").write_text(json.dumps({"arms": {"b": WHOLE}}))
    assert state_of(out / "b", plan) == "done"
    (out / "b" / file).unlink() if text is None else (out / "b" / file).write_text(text)
    assert state_of(out / "b", plan) == "damaged"
    assert "b is damaged; run the suite again" in render_stale(suite, out)
    fake.behave("bad_input")
    refused = invoke("suite", suite, "--out", out, "--only", "b")
    assert (refused.code, "geometry.chanels" in refused.err, "Traceback" in refused.err) == (1, True, False)
    fake.behave("ok")
    assert invoke("suite", suite, "--out", out, "--only", "b").code == 0
    assert state_of(out / "b", plan) == "done"
    assert {path.name for path in out.iterdir()} == {".lock", "b", "claims.csv", "report.html", "suite.json"}


@pytest.mark.parametrize("cut", [1, 2, 10, 100])
def test_samples_that_end_in_the_middle_are_damaged(
    fake: Fake, suite: Path, tmp_path: Path, invoke: Invoke, cut: int
) -> None:
    out = tmp_path / "out"
    assert invoke("suite", suite, "--out", out, "--only", "a").code == 0
    plan = load_suite(suite).plans[1].plan
    path = next((out / "a" / "arms").iterdir()) / "samples.csv"
    path.write_bytes(path.read_bytes()[:-cut])
    assert state_of(out / "a", plan) == "damaged"


def test_samples_that_lack_their_last_line_are_damaged(fake: Fake, suite: Path, tmp_path: Path, invoke: Invoke) -> None:
    out = tmp_path / "out"
    assert invoke("suite", suite, "--out", out, "--only", "a").code == 0
    plan = load_suite(suite).plans[1].plan
    path = next((out / "a" / "arms").iterdir()) / "samples.csv"
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:-1]))
    assert state_of(out / "a", plan) == "damaged"


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


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL])
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
        ("kill after an early end", "none"), ("kill after an early end", "ended early"),
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
@pytest.mark.parametrize("mode", ["fails", "crashes"])
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
    assert "no search's" in invoke(*words[:-1], tmp_path / "next").err or there == "another suite"


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


def claim(tmp_path: Path, lines: str) -> Any:
    path = tmp_path / "claims.toml"
    head = '[statements]\nC = "x"\n[[claims]]\nclaim = "C"\nsays = "s"\nwhere = "w"\nplan = "p"\narm = "A"\n'
    path.write_text(f'{head}figure = "wa_app"\n{lines}\n')
    return read_claims(path, ["p", "q"])[1]


def line(*values: float | None, arm: str = "A") -> list[Measured]:
    found = []
    for x, value in enumerate(values):
        finished = [] if value is None else [{"wa_app": value}]
        found.append(Measured(arm, {"x": x}, finished, "the drive is full." if value is None else ""))
    return found


@pytest.mark.parametrize(
    ("lines", "values", "verdict", "said"),
    [
        ("at = { x = 0 }\npublished = 10", (11.4, 1), "reproduced", ""),
        ("at = { x = 0 }\npublished = 10", (12, 1), "differs", "20% above; 15% are allowed."),
        ("at = { x = 0 }\npublished = 10\nwhy = 'of y'", (8, 1), "differs", "20% below; 15% are allowed. Of y."),
        ("at = { x = 1 }\npublished = 2\nover.at = { x = 0 }", (5, 10), "reproduced", "10 over 5."),
        ("at = { x = 0 }\npublished = 10\nabove = 9", (9.1, 1), "differs", "no more than 2.0% from it."),
        ("at = { x = 0 }\npublished = 10\nabove = 9", (9.3, 1), "reproduced", ""),
        ("at = { x = 0 }\nabove = 1\nwhy_below = 'of y'", (0.5, 1), "differs", "and is not above. Of y."),
        ("at = { x = 0 }\nabove = 1", (1, 1), "differs", "no more than 2.0% from it."),
        ("at = { x = 0 }\nbelow = 1", (1, 1), "differs", "should be below 1, and is no more than"),
        ("at = { x = 0 }\nbelow = 1", (0.97, 1), "reproduced", ""),
        ("at = { x = 0 }\npublished = 10\ncalibrated = 'set to it'", (10, 1), "calibrated", "Set to it."),
        ("at = { x = 0 }\npublished = 10\ncalibrated = 'set to it'", (20, 1), "differs", "100% above"),
        ("at = { x = 0 }\npublished = 10\nunmeasured = 'no such clock'", (10, 1), "not measured", "No such clock."),
        ("at = { x = 0 }\npublished = 10\nwhy_above = 'y'\nwhy_below = 'z'", (8, 1), "differs", "are allowed. Z."),
        ("at = { x = 1 }\nbetween = [3, inf]\nover.at = { x = 0 }", (5, 10), "differs", "Below that."),
        ("at = { x = 1 }\nbetween = [3, inf]\nover.arm = 'B'", (5, 10), "differs", "Below that."),
        ("at = { x = 1 }\npublished = 2\nover.at = { x = 0 }", (0, 10), "not measured", "Nothing reached the drive"),
        ("at = { x = 1 }\npublished = 2", (5, None), "not measured", "The drive is full."),
        ("at = { x = 9 }\npublished = 2", (5, 5), "not measured", "there is no run A, x = 9"),
        ("along = 'x'\ntrend = 'falls'", (9, 5, 5.2, 1), "reproduced", ""),
        ("along = 'x'\ntrend = 'falls'", (9, 5, 8, 1), "differs", "does not go as published: falls"),
        ("along = 'x'\ntrend = 'falls'", (9, 9.1, 8.9), "differs", "falls"),
        ("along = 'x'\ntrend = 'rises'", (1, 2, 4), "reproduced", ""),
        ("along = 'x'\ntrend = 'flat'", (1, 1.05, 1), "reproduced", ""),
        ("along = 'x'\ntrend = 'flat'", (1, 1.05, 1.2), "differs", "flat"),
        ("along = 'x'\ntrend = 'falls'", (3, None, 1), "not measured", "2 of 3 points over x"),
        ("along = 'x'\nleast_at = 1", (3, 1, 2), "reproduced", ""),
        ("along = 'x'\nleast_at = 1", (3, 1.01, 1), "reproduced", "That at 2 is within 2% of it."),
        ("along = 'x'\nleast_at = 1", (3, 1.03, 1), "differs", "Ours is at 2."),
        ("along = 'x'\nmost_at = 1", (3, 1, 2), "differs", "Ours is at 0."),
        ("along = 'x'\ntrend = 'falls'\namong = [0, 2]", (3, 4, 1), "reproduced", ""),
        ("along = 'x'\ntrend = 'falls'\namong = [0, 1]", (3, 2, None), "reproduced", ""),
        ("at = { x = 0 }\npublished = 3\nagainst = 'B'", (6, 1), "reproduced", "6 over 2."),
        ("at = { x = 0 }\npublished = 3\nagainst = 'B'", (2, 1), "differs", "67% below"),
        (
            "at = { x = 1 }\nbelow = 1\nagainst = 'B'\nover.at = { x = 0 }",
            (6, 8),
            "reproduced",
            "(8 over 4) over (6 over 2)",
        ),
        (
            "at = { x = 1 }\nbelow = 1\nagainst = 'B'\nover.at = { x = 0 }",
            (6, 13),
            "differs",
            "(13 over 4) over (6 over 2)",
        ),
        ("at = { x = 1 }\npublished = 3\nagainst = 'B'", (6, None), "not measured", "The drive is full."),
        ("at = { x = 2 }\npublished = 3\nagainst = 'B'", (6, 7, 8), "not measured", "there is no run B, x = 2"),
        ("along = 'x'\ntrend = 'falls'\nagainst = 'B'", (6, 8), "reproduced", ""),  # 3, then 2
        ("along = 'x'\ntrend = 'falls'\nagainst = 'B'", (6, 12), "differs", "falls"),
        ("along = 'x'\ntrend = 'falls'\nagainst = 'B'", (6, 8, 1), "not measured", "2 of 3 points over x"),
    ],
)
def test_verdicts_are_computed(tmp_path: Path, lines: str, values: Any, verdict: str, said: str) -> None:
    results = {"p": line(*values) + line(2.0, 4.0, arm="B")}
    (judged,) = judge_all(claim(tmp_path, lines), results)
    assert judged.verdict == verdict, judged
    assert said in judged.words
    assert bool(said) == bool(judged.words)


def test_where_a_ratio_of_throughputs_differs_what_lies_beneath_is_said(tmp_path: Path) -> None:
    def run(arm: str, rate: float) -> Measured:
        stalls = {"count": 1, "seconds": 5.0}
        summary = {
            "throughput_ops_s": rate,
            "wa_app": 10.0,
            "wa_device": 1.5,
            "host_bytes_written": 2e9,
            "stalls": stalls,
        }
        return Measured(arm, {"x": 0}, [summary | {"duration_s": 20.0, "steady": True}])

    path = tmp_path / "claims.toml"
    head = '[statements]\nC = "x"\n[[claims]]\nclaim = "C"\nsays = "s"\nwhere = "w"\nplan = "p"\narm = "A"\n'
    path.write_text(
        f"{head}at = {{ x = 0 }}\nfigure = 'throughput_ops_s'\nagainst = 'B'\npublished = 3\nwithin = 0.3\n"
    )
    claims = read_claims(path, ["p"])[1]
    (near,), (far,) = (judge_all(claims, {"p": [run("A", rate), run("B", 1.0)]}) for rate in (2.9, 1.9))
    assert (near.verdict, near.words) == ("reproduced", "2.9 over 1.")
    assert far.verdict == "differs"
    for arm in ("A", "B"):
        told = f"{arm}: wa_app 10, wa_device 1.5, 100 MB/s to the drive, writers in stalls 25% of the time."
        assert told in far.words


def test_lifetime_stands_beside_write_amplification(tmp_path: Path) -> None:
    def run(x: int, each: float, **more: float | None) -> Measured:
        lasting = {"flash_bytes_per_operation": each, "full_size_user_bytes_until_worn": 2.0**40, **more}
        return Measured("A", {"x": x}, [{"wa_app": 3.0, "throughput_ops_s": 1.0, "lifetime": lasting}])

    real = [run(0, 4096.0, full_size_years=2.5), run(1, 812.0, full_size_years=11.0)]
    virtual = [run(0, 4096.0, full_size_years=None), run(1, 4096.0, full_size_years=None)]
    one, several = claim(tmp_path, "at = { x = 0 }\nabove = 1"), claim(tmp_path, "along = 'x'\ntrend = 'flat'")
    for claims, runs, said in (
        (one, real, "4,096 flash bytes an operation, 2.5 years"),
        (several, real, "812 to 4,096 flash bytes an operation, 2.5 to 11 years"),
        (one, virtual, "4,096 flash bytes an operation, 1.0 TiB of user data until worn"),
        (several, virtual, "4,096 flash bytes an operation, 1.0 TiB of user data until worn"),
        (one, line(1.5, 2.0), ""),  # a run whose summary has none
        (several, [*real, *line(None, None, 3.0)[2:]], ""),  # and one of several
    ):
        (judged,) = judge_all(claims, {"p": runs})
        assert (judged.verdict == "reproduced" or runs != real, judged.lifetime) == (True, said)
    path = tmp_path / "claims.toml"
    path.write_text(path.read_text().replace('"wa_app"', '"throughput_ops_s"'))
    (judged,) = judge_all(read_claims(path, ["p"])[1], {"p": real})
    assert judged.lifetime == "", "a throughput is no write amplification"


def test_the_report_of_a_suite_and_its_record_tell_lifetimes(
    fake: Fake, suite: Path, tmp_path: Path, invoke: Invoke
) -> None:
    out = tmp_path / "out"
    (suite / "b.toml").write_text((suite / "b.toml").read_text().replace("[drive]", '[drive]\npacing = "off"'))
    assert invoke("suite", suite, "--out", out).code == 0
    page = (out / "report.html").read_text()
    of_a = page[page.index('id="plan-a"') :]
    assert "Lifetime, as measured</th>" in of_a
    assert re.search(r"<td class=\"words\">[\d,.]+ flash bytes an operation, [\d,.e-]+ years</td>", of_a)
    assert "Years at this rate" in of_a
    record = runpy.run_path(str(Path(__file__).parents[2] / "scripts" / "record_suite.py"))
    lines = {}
    for plan in ("a", "b"):
        arms = json.loads((out / plan / "summary.json").read_text())["arms"]
        lines[plan] = [(record["line"](plan, arm, figures), figures["lifetime"]) for arm, figures in arms.items()]
    for told, lasting in [*lines["a"], *lines["b"]]:
        assert told["flash_bytes_per_operation"] == lasting["flash_bytes_per_operation"] > 0
        assert told["user_bytes_until_worn"] == lasting["user_bytes_until_worn"] > 0
    assert [told["virtual_time"] for told, _ in lines["a"]] == [False, False]
    assert all(told["years"] > 0 and told["drive_writes_per_day"] > 0 for told, _ in lines["a"])
    ((of_b, _),) = lines["b"]
    assert [of_b[name] for name in ("virtual_time", "years", "drive_writes_per_day")] == [True, None, None]


def test_a_figure_of_the_steady_part_says_where_there_is_none(tmp_path: Path) -> None:
    whole = {"wa_device": 2.0, "steady": False, "parts": None}
    cut = {"wa_device": 2.0, "steady": True, "parts": {"burst": {"wa_device": 1.0}, "steady": {"wa_device": 4.0}}}
    level = {"wa_device": 2.0, "steady": True, "parts": {"burst": None, "steady": {"wa_device": 2.0}}}
    lines = "at = { x = 0 }\npublished = 4\nfigure = 'steady_wa_device'"
    path = tmp_path / "claims.toml"
    head = '[statements]\nC = "x"\n[[claims]]\nclaim = "C"\nsays = "s"\nwhere = "w"\nplan = "p"\narm = "A"\n'
    path.write_text(head + lines)
    claims = read_claims(path, ["p"])[1]
    (of_cut,), (of_whole,) = (judge_all(claims, {"p": [Measured("A", {"x": 0}, [each])]}) for each in (cut, whole))
    assert (of_cut.ours, of_cut.verdict, of_cut.words) == ("4", "reproduced", "")
    assert (of_whole.ours, of_whole.verdict) == ("2", "differs")
    assert "A is not steady, so its figure is of all that was measured" in of_whole.words
    path.write_text(
        head + "at = { x = 0 }\nbelow = 1\nfigure = 'burst_wa_device'\nover = { figure = 'steady_wa_device' }"
    )
    burst = read_claims(path, ["p"])[1]
    of_each = [judge_all(burst, {"p": [Measured("A", {"x": 0}, [each])]})[0] for each in (cut, level, whole)]
    assert [each.verdict for each in of_each] == ["reproduced", "not measured", "not measured"]
    assert of_each[1].words == "A is steady from its start, so no burst is told apart in it."
    assert of_each[2].words == "A is not steady, so no burst is told apart in it."
    path.write_text(path.read_text() + "\nwhy_unsteady = 'it falls.'")
    burst = read_claims(path, ["p"])[1]
    told = whole | {"steady_reason": "throughput drifted by 20 %"}
    of_each = [judge_all(burst, {"p": [Measured("A", {"x": 0}, [each])]})[0] for each in (cut, level, told)]
    assert [each.words for each in of_each] == [
        "1 over 4.",
        "A is steady from its start, so no burst is told apart in it.",
        "A is not steady (throughput drifted by 20 %), so no burst is told apart in it. It falls.",
    ]


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        ("at = { x = 0 }\nabove = 1\nagainst = 'A'", "against is 'A', the arm itself"),
        ("at = { x = 0 }\nabove = 1\nagainst = 3", "against"),
        ("along = 'x'\ntrend = 'falls'\namong = [1]", "takes two or more points"),
        ("at = { x = 0 }\nabove = 1\namong = [1, 2]", "takes two or more points on the axis that along names"),
    ],
)
def test_what_a_claim_is_held_against_is_checked(tmp_path: Path, lines: str, said: str) -> None:
    with pytest.raises(SpillwayError, match=re.escape(said)):
        claim(tmp_path, lines)


def test_a_bound_is_passed_by_more_than_repetitions_are_apart(tmp_path: Path) -> None:
    lines = "at = { x = 0 }\nabove = 1"
    apart = [Measured("A", {"x": 0}, [{"wa_app": value} for value in (1.0, 1.05, 1.1)])]
    close = [Measured("A", {"x": 0}, [{"wa_app": value} for value in (1.05, 1.05, 1.06)])]
    (unsure,), (sure,) = (judge_all(claim(tmp_path, lines), {"p": runs}) for runs in (apart, close))
    assert (unsure.verdict, sure.verdict) == ("differs", "reproduced")
    assert "no more than 9.5% from it" in unsure.words


def test_a_claim_of_several_drives_is_one_of_each(tmp_path: Path) -> None:
    path = tmp_path / "claims.toml"
    text = (
        '[statements]\nC = "x"\n[drives]\naxis = "d"\nI = "intel"\nS = "sandisk"\n[[claims]]\nclaim = "C"\nsays = "s"\n'
        'where = "w"\nplan = "p"\narm = "A"\nfigure = "wa_app"\n'
        'drives = ["I", "S"]\nat = { x = 1 }\npublished = [2, 3]\n'
    )
    path.write_text(text)
    read = read_claims(path, ["p"])[1]
    assert [(each.says, each.place.at, each.published) for each in read] == [
        ("s, I", {"d": "intel", "x": 1}, 2.0),
        ("s, S", {"d": "sandisk", "x": 1}, 3.0),
    ]
    for old, new, says in (
        ('["I", "S"]', '["I", "T"]', "names 'T'; under .drives. there are: I, S"),
        ("[2, 3]", "[2]", "published has 1 figures for 2 drives"),
        ('axis = "d"', "", "drives takes axis"),
    ):
        path.write_text(text.replace(old, new))
        with pytest.raises(SpillwayError, match=says):
            read_claims(path, ["p"])


def test_a_cause_is_said_of_a_figure_that_no_law_leads_to_and_not_of_one_that_is_missing(tmp_path: Path) -> None:
    claims = claim(tmp_path, "at = { x = 0 }\npublished = 10\nwhy = 'few values'")
    scaled = [Measured("A", {"x": 0}, [{"wa_app": 3.0}], scaled=True)]
    (judged,) = judge_all(claims, {"p": scaled})
    assert (judged.verdict, judged.words.endswith("Measured at this scale: 3. Few values.")) == ("not measured", True)
    (judged,) = judge_all(claims, {"p": line(None)})
    assert "Few values" not in judged.words


def test_what_has_not_been_run_is_not_measured(tmp_path: Path) -> None:
    (judged,) = judge_all(claim(tmp_path, "published = 1"), {})
    assert (judged.verdict, judged.words) == ("not measured", "P has not been run.")
    both = judge_all(claim(tmp_path, "at = { x = 0 }\npublished = 1") * 2, {"p": line(1.0)})
    (tally,) = tallies({"C": "x", "D": "y"}, both)
    assert (tally.verdict, tally.counts) == ("reproduced", "2 of 2")


def test_a_share_of_lbas_is_read_where_its_run_was_kept() -> None:
    kept = {"from": None, "to": {"drive": {"mapped_share": 0.7}}}
    standing = {"complete": True, "failure": None, "kept": None, "words": ""}
    (run,) = measured_of({"A": {"standing": standing, "kept": kept}}, {}, {})
    assert run.figure("mapped_share") == 0.7
    (other,) = measured_of({"A": {"standing": standing, "kept": None}}, {}, {})
    assert other.figure("mapped_share") is None


@pytest.mark.parametrize("odd", [float("nan"), float("inf")])
def test_what_is_no_number_reproduces_nothing(tmp_path: Path, odd: float) -> None:
    results = {"p": line(odd, 2.0) + line(1.0, 1.0, arm="B")}
    for lines in ("at = { x = 0 }\nabove = 1", "at = { x = 0 }\nabove = 1\nagainst = 'B'"):
        (judged,) = judge_all(claim(tmp_path, lines), results)
        assert judged.verdict == "not measured"


def test_medians_are_of_finished_repetitions() -> None:
    ended = [
        {"wa_app": 1.0, "complete": True, "failure": None},
        {"wa_app": 3.0, "complete": True, "failure": None},
        {"wa_app": 99.0, "complete": False, "failure": "full."},
    ]
    (one,) = measured_of({"A, x 1": {"of": "A", "repetitions": ended}}, {"A, x 1": {"x": 4}}, {})
    assert (one.arm, one.point, one.figure("wa_app"), one.failure) == ("A", {"x": 4}, 2.0, "full.")


@pytest.mark.parametrize("path", sorted((Path(__file__).parents[2] / "plans").glob("*/suite.toml")), ids=str)
def test_every_suite_of_the_project_resolves(path: Path) -> None:
    for scale in (None, "1"):
        read = load_suite(path.parent, scale)
        assert read.plans
        assert all(load_plan(path.parent / f"{each.name}.toml").arms for each in read.plans)


@pytest.mark.native
@pytest.mark.usefixtures("real_native")
def test_every_suite_of_the_project_can_be_run_at_its_scale_and_none_at_a_millionth() -> None:
    for path in sorted((Path(__file__).parents[2] / "plans").glob("*/suite.toml")):
        check_scale(load_suite(path.parent))
    with pytest.raises(TooSmall, match=r"over-time, .*: RocksDB, P3600: drive\.capacity: .* one erase block"):
        check_scale(load_suite(find_suite("pitfalls"), "1/1000000"))


@pytest.mark.native
@pytest.mark.usefixtures("real_native")
def test_a_run_from_a_state_that_is_made_only_later_is_checked(tmp_path: Path) -> None:
    (tmp_path / "suite.toml").write_text('plans = ["p"]\nscale = { factor = 0.5, keys = ["load.num"] }')
    plan = """
[drive]
preset = "intel-p3600"
capacity = "1GiB"
[load]
num = 1000
[kept]
from = "loaded"
[[prepare]]
kept.to = "loaded"
kept.from = ""
phases = [{ workload = "fillseq" }]
[[phases]]
workload = "readrandom"
operations = 10
"""
    (tmp_path / "p.toml").write_text(plan)
    check_scale(load_suite(tmp_path))
    (tmp_path / "suite.toml").write_text('plans = ["p"]\nscale = { factor = 1e-4, keys = ["drive.capacity"] }')
    with pytest.raises(TooSmall, match=r"p, give a larger one: drive\.capacity: "):
        check_scale(load_suite(tmp_path))


RECORDED = sorted((Path(__file__).parents[2] / "runs" / "suites").glob("*/claims.csv"))


def cause_of(claim: Claim, row: dict[str, str]) -> str:
    """What stands against a claim that came out as a recorded row says."""
    if row["verdict"] == "not measured":
        if "so no burst is told apart" in row["why"]:  # one that is steady from its start needs no cause
            return claim.why_unsteady if " is not steady" in row["why"] else row["why"]
        return claim.unmeasured or claim.why
    below = re.match(r"[\d,]+% below;|Below that|It should be above", row["why"])
    above = re.match(r"[\d,]+% above;|Above that|It should be below", row["why"])
    return claim.why or (claim.why_below if below else claim.why_above if above else "")


@pytest.mark.parametrize("path", sorted((Path(__file__).parents[2] / "plans").glob("*/claims.toml")), ids=str)
def test_what_stands_against_a_claim_is_a_sentence(path: Path) -> None:
    for claim in load_suite(path.parent).claims:
        for words in (
            *(claim.why, claim.why_above, claim.why_below, claim.why_unsteady),
            *(claim.unmeasured, claim.calibrated, claim.any_size),
        ):
            assert not words or len(words.split()) > 5, f"{claim.says}: {words}"


@pytest.mark.parametrize("recorded", RECORDED, ids=lambda path: path.parent.name)
def test_every_claim_that_is_not_reproduced_has_a_cause(recorded: Path) -> None:
    claims = load_suite(find_suite(recorded.parent.name)).claims
    by_statement = {(claim.name, claim.says): claim for claim in claims}
    with recorded.open(encoding="utf-8", newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["verdict"] in ("differs", "not measured")]
    judged = [row for row in rows if "has not been run" not in row["why"]]
    known = [(by_statement[key], row) for row in judged if (key := (row["claim"], row["statement"])) in by_statement]
    assert known
    without = [f"{claim.name}: {claim.says}" for claim, row in known if not cause_of(claim, row)]
    assert without == []


def test_a_plan_of_a_suite_runs_alone_at_its_scale(fake: Fake, suite: Path, tmp_path: Path, invoke: Invoke) -> None:
    for index, (flags, num) in enumerate([((), 2500), (("--scale", "1/10"), 1000), (("--unscaled",), 10000)]):
        assert invoke("run", suite / "b.toml", "--out", tmp_path / str(index), *flags).code == 0
        assert fake.requests()[-1]["load"]["num"] == num
    said = json.loads((tmp_path / "1" / "manifest.json").read_text())["command"]
    assert said[-2:] == ["--scale", "1/10"]
    refused = invoke("run", suite / "b.toml", "--out", tmp_path / "x", "--scale", "1/2", "--unscaled")
    assert (refused.code, "give one of them" in refused.err) == (2, True)
    (suite / "suite.toml").unlink()
    refused = invoke("run", suite / "b.toml", "--out", tmp_path / "x", "--scale", "1/2")
    assert (refused.code, "is of no suite" in refused.err) == (2, True)
