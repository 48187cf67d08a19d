"""Suites: how they are read, scaled and set, and what is refused before anything runs."""

import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from conftest import Fake, Invoke
from made_suite import CLAIMS, SHORT, SUITE

from spillway.errors import SpillwayError
from spillway.plan.document import load_plan
from spillway.run.too_small import check_scale
from spillway.suite import find_suite, load_suite
from spillway.suite.document import OTHERS, SuitePlan
from spillway.suite.scale import Scale, TooSmall, parse_factor


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


def test_a_plan_next_to_a_suite_belongs_to_it_by_its_whole_name(suite: Path, invoke: Invoke) -> None:
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


def test_a_scale_that_is_too_small_is_refused_before_anything_is_run(
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
def test_a_data_set_that_does_not_fit_the_scaled_drive_is_refused_before_anything_is_run(
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


@pytest.mark.parametrize("path", sorted((Path(__file__).parents[2] / "plans").glob("*/suite.toml")), ids=str)
def test_every_suite_of_the_project_resolves(path: Path) -> None:
    for scale in (None, "1"):
        read = load_suite(path.parent, scale)
        assert read.plans
        assert all(load_plan(path.parent / f"{each.name}.toml").arms for each in read.plans)


@pytest.mark.native
@pytest.mark.usefixtures("real_native")
@pytest.mark.long
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
