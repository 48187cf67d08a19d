"""YCSB's property files and workloads in plans: what is read, resolved, and refused, and with which words."""

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from conftest import PLAN, ROOT, Fake, Invoke, check_refused
from jsonschema import Draft202012Validator

from spillway.errors import SpillwayError
from spillway.plan.document import load_plan
from spillway.plan.ycsb import OF_PHASES, PROPERTIES, WORKLOADS, parse_properties, resolve

Validator = Callable[..., Draft202012Validator]

# A property file as YCSB's users write them.
FILE = r"""
# a comment, and ! another
! with = signs: in it
recordcount=1000
operationcount : 2000
workload=site.ycsb.workloads.CoreWorkload

readallfields=true
readproportion   0.6
updateproportion = \
    0.4
scanproportion=0
insertproportion=0
requestdistribution=zipfian
keyprefix=us\u0065r\:
maxscanlength=100
measurementtype=histogram
"""
PHASES = """
[[phases]]
workload = "ycsb-load"
measured = false
[[phases]]
workload = "ycsb-run"
"""


def ycsb_plan(table: str, phases: str = PHASES) -> str:
    """The tests' small plan with YCSB's phases instead of its own."""
    return PLAN[: PLAN.index("[load]")] + table + phases


def phases_of(path: Path, text: str, **more: object) -> list[dict[str, object]]:
    path.write_text(text)
    return load_plan(path, **more).arms[0].phases  # type: ignore[arg-type]


def test_property_files_are_read_as_java_reads_them() -> None:
    texts = parse_properties(FILE, "x")
    assert texts == {
        "recordcount": "1000", "operationcount": "2000", "workload": "site.ycsb.workloads.CoreWorkload",
        "readallfields": "true", "readproportion": "0.6", "updateproportion": "0.4", "scanproportion": "0",
        "insertproportion": "0", "requestdistribution": "zipfian", "keyprefix": "user:", "maxscanlength": "100",
        "measurementtype": "histogram",
    }  # fmt: skip
    values = resolve(texts, "x")
    assert (values["recordcount"], values["readproportion"], values["fieldlength"]) == (1000, 0.6, 100)


@pytest.mark.parametrize(
    ("text", "texts"),
    [
        ("\ufeffrecordcount=5", {"recordcount": "5"}),
        ("\ufeff# top\r\nrecordcount=5\r\noperationcount=6", {"recordcount": "5", "operationcount": "6"}),
        ("recordcount=5\roperationcount=\\\r  6", {"recordcount": "5", "operationcount": "6"}),
        ("\frecordcount\f=\f5", {"recordcount": "5"}),
        ("recordcount=5\nrecordcount=6", {"recordcount": "6"}),
        ("keyprefix=\\ud83d\\ude00", {"keyprefix": "\U0001f600"}),
        ("# c\\\nrecordcount=5", {"recordcount": "5"}),
        ("recordcount=1\\\n# 2\nfieldcount=3", None),
    ],
)
def test_the_corners_of_javas_syntax(text: str, texts: dict[str, str] | None) -> None:
    if texts is None:
        with pytest.raises(SpillwayError, match="recordcount is '1# 2'"):
            parse_properties(text, "x")
    else:
        assert parse_properties(text, "x") == texts


@pytest.mark.parametrize("end", ["\v", "\f", "\x1c", "\x1d", "\x1e", "\x85", "\u2028", "\u2029"])
def test_only_java_ends_of_lines_end_a_comment(end: str) -> None:
    assert parse_properties(f"# one{end}two\nrecordcount=5", "x") == {"recordcount": "5"}


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("keyprefix=\\ud83d", r"'\\ud83d' has half a character; write both of its \\u escapes"),
        ("readpropotion=0.5", r"x: line 3: readpropotion is not a property .*; did you mean 'readproportion'\?"),
        ("field_len_dist=uniform", r"another port's name; YCSB's own is fieldlengthdistribution"),
        ("recordcount=1e6", r"x: line 3: recordcount is '1e6'; it takes a whole number"),
        ("recordcount=-5", r"recordcount is '-5'; it takes a whole number"),
        ("readproportion=2", r"readproportion is '2'; it takes a number from 0 to 1"),
        ("readproportion=half", r"readproportion is 'half'; it takes a number from 0 to 1"),
        ("readproportion=nan", r"readproportion is 'nan'; it takes a number from 0 to 1"),
        ("zipfian_const=1", r"zipfian_const is '1'; it takes a number above 0 and below 1"),
        ("requestdistribution=zipf", r"it takes one of uniform, .*; did you mean 'zipfian'\?"),
        ("insertorder=sorted", r"insertorder is 'sorted'; it takes one of hashed, ordered"),
        ("writeallfields=1", r"writeallfields is '1'; it takes true or false"),
        ("dataintegrity=true", r"dataintegrity = true is not supported; leave it out or set it to false"),
        ("fieldlengthdistribution=histogram", r"it takes one of constant, uniform, zipfian"),
        ("fieldlengthhistogram=hist.txt", r"fieldlengthhistogram is not supported: use fieldlengthdistribution"),
        ("rocksdb.write_buffer_size=1", r"belongs to a binding of YCSB's; say it in the plan's \[engine\]"),
        ("db=rocksdb", r"db belongs to a binding of YCSB's"),
        ("workload=site.ycsb.workloads.TimeSeriesWorkload", r"of YCSB's classes only CoreWorkload is supported"),
    ],
)
def test_what_is_wrong_in_a_file_is_named_with_its_line(line: str, words: str) -> None:
    with pytest.raises(SpillwayError, match=words) as refused:
        parse_properties("# top\n\n" + line, "x")
    assert str(refused.value).startswith("x: line 3: ")


def test_bundled_workloads_are_ycsbs() -> None:
    """Source: the paper's table 2 and the files of the same names."""
    kinds = ("read", "update", "insert", "scan", "readmodifywrite")
    mixes = {
        name: [resolve(texts | {"recordcount": "1"}, name)[f"{kind}proportion"] for kind in kinds]
        for name, texts in WORKLOADS.items()
    }
    assert mixes == {
        "workloada": [0.5, 0.5, 0, 0, 0], "workloadb": [0.95, 0.05, 0, 0, 0], "workloadc": [1, 0, 0, 0, 0],
        "workloadd": [0.95, 0, 0.05, 0, 0], "workloade": [0, 0, 0.05, 0.95, 0], "workloadf": [0.5, 0, 0, 0, 0.5],
    }  # fmt: skip
    distributions = {name: texts["requestdistribution"] for name, texts in WORKLOADS.items()}
    assert distributions == {name: "latest" if name == "workloadd" else "zipfian" for name in WORKLOADS}


def test_layers_of_properties(plan_file: Path) -> None:
    (plan_file.parent / "mine.properties").write_text(FILE)
    table = '[ycsb]\nproperties = "mine.properties"\nrecordcount = 500\nexponential.frac = 0.5\n'
    load, run = phases_of(plan_file, ycsb_plan(table, PHASES + "ycsb.readproportion = 0.1\n"))
    assert (load["ycsb"]["recordcount"], load["ycsb"]["operationcount"]) == (500, 2000)  # type: ignore[index]
    assert load["ycsb"]["exponential.frac"] == 0.5  # type: ignore[index]
    assert (load["ycsb"]["readproportion"], run["ycsb"]["readproportion"]) == (0.6, 0.1)  # type: ignore[index]
    given = {"properties": None, **WORKLOADS["workloadc"], "operationcount": "7"}
    run = phases_of(plan_file, ycsb_plan(table), properties=given)[1]
    assert run["ycsb"]["recordcount"] == 500, "the plan's own"  # type: ignore[index]
    assert (run["ycsb"]["readproportion"], run["ycsb"]["operationcount"]) == (1, 7)  # type: ignore[index]
    assert run["ycsb"]["keyprefix"] == "user", "-P takes the file's place"  # type: ignore[index]


@pytest.mark.reports
def test_the_flags_of_ycsb(plan_file: Path, invoke: Invoke, tmp_path: Path) -> None:
    plan_file.write_text("\ufeff" + ycsb_plan(""))
    path = tmp_path / "w.properties"
    path.write_text("recordcount=10\nreadproportio=1\n")
    for words, said in (
        (("-P", "workloadz"), "workloadz: the property file cannot be read"),
        (("-P", path), f"{path}: line 2: readproportio is not a property of YCSB's core workload; did you mean"),
        (("-P", "workloada"), "recordcount is missing"),
        (("-P", "workloada", "-p", "recordcount=10"), "operationcount is missing"),
        (("-p", "recordcount"), "-p recordcount: it takes KEY=VALUE"),
        (("-p", "recordcout=10"), "did you mean 'recordcount'?"),
        (("-p", "recordcount=10", "-p", "insertstart=11"), "insertstart + insertcount is more than recordcount = 10"),
    ):
        out = tmp_path / f"out-{len(said)}"
        outcome = invoke("run", plan_file, "--out", out, *words)
        assert outcome.code == 2
        assert said in outcome.err
        assert outcome.err.count("\n") == 1
        if words[1] == path:  # the plan is known, so there is a run to describe
            check_refused(out, said)
            header, _, text = (out / "plan.toml").read_text().partition("\n")
            assert text == ycsb_plan("")
            assert header.startswith("# ") and str(plan_file) in header
        else:
            assert outcome.out == ""
            assert not out.exists()


@pytest.mark.reports
@pytest.mark.parametrize("wrong", ["nonsense = 1\n", "load.num = -1\n", "name = \n"])
@pytest.mark.parametrize("by", ["-P", "[ycsb]"])
def test_a_plan_that_is_wrong_too_leaves_nothing(
    plan_file: Path, invoke: Invoke, fake: Fake, tmp_path: Path, wrong: str, by: str
) -> None:
    """As without a property file that is wrong."""
    (tmp_path / "w.properties").write_text("readproportio=1\n")
    table = '[ycsb]\nproperties = "w.properties"\n' if by == "[ycsb]" else ""
    words = ("-P", tmp_path / "w.properties") if by == "-P" else ()
    plan_file.write_text(ycsb_plan(table))
    invoke("run", plan_file, "--out", tmp_path / "right", *words)
    check_refused(tmp_path / "right", "readproportio is not a property")
    plan_file.write_text(wrong + ycsb_plan(table))
    outcome = invoke("run", plan_file, "--out", tmp_path / "out", *words)
    assert (outcome.code, outcome.out, outcome.err.count("\n"), fake.requests()) == (2, "", 1, [])
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    "words",
    [
        ("-p", "keyprefix=\udcff"), ("--set", "summary=\udcff"), ("--set", "ycsb.keyprefix=\udcff"),
        ("--set", "engine.options.\udcff=1"), ("--arm", "\udcff"),
    ],
    ids=ascii,
)  # fmt: skip
def test_bytes_that_are_no_utf8_are_refused_before_anything_runs(
    plan_file: Path, invoke: Invoke, fake: Fake, tmp_path: Path, words: tuple[str, str]
) -> None:
    plan_file.write_text(ycsb_plan(WHAT_IT_SAYS))
    outcome = invoke("run", plan_file, "--out", tmp_path / "out", *words)
    assert (outcome.code, outcome.err.count("\n"), fake.requests()) == (2, 1, [])
    assert "this has bytes that are not UTF-8" in outcome.err


def test_properties_that_are_of_phases(plan_file: Path) -> None:
    table = "[ycsb]\nrecordcount = 10\noperationcount = 5\nthreadcount = 3\ntarget = 100\n"
    load, run = phases_of(plan_file, ycsb_plan(table))
    assert (load["threads"], load["rate_ops_s"], run["threads"], run["rate_ops_s"]) == (3, None, 3, 100)
    own = PHASES + "threads = 1\nrate_ops_s = 7\n"
    run = phases_of(plan_file, ycsb_plan(table, own))[1]
    assert (run["threads"], run["rate_ops_s"]) == (1, 7)
    only_load = table + "dotransactions = false\n"
    phases = phases_of(plan_file, ycsb_plan(only_load, PHASES.replace("measured = false", "")))
    assert [phase["workload"] for phase in phases] == ["ycsb-load"]
    with pytest.raises(SpillwayError, match="none is measured"):
        phases_of(plan_file, ycsb_plan(only_load))


WHAT_IT_SAYS = "[ycsb]\nrecordcount = 10\noperationcount = 5\nthreadcount = 3\nreadproportion = 0.3\n"
OWN = PHASES + "threads = 4\nrate_ops_s = 7\noperations = 9\nycsb.readproportion = 0.2\n"


@pytest.mark.parametrize("recorded", [False, True], ids=["plan", "recorded plan"])
@pytest.mark.parametrize("asked", [
    {"threadcount": "1"}, {"target": "100"}, {"target": "0"}, {"operationcount": "7"}, {"maxexecutiontime": "3"},
    {"readproportion": "0.9"}, {"recordcount": "20"}, {"exponential.frac": "0.5"},
], ids=str)  # fmt: skip
def test_the_command_line_wins_over_whatever_the_plan_says(
    plan_file: Path, recorded: bool, asked: dict[str, str]
) -> None:
    plan_file.write_text(ycsb_plan(WHAT_IT_SAYS, OWN))
    if recorded:
        plan_file.write_text(load_plan(plan_file).to_toml())
    before, after = load_plan(plan_file).arms[0].phases, load_plan(plan_file, properties=asked).arms[0].phases
    assert before != after
    run = after[1]
    (key, text) = next(iter(asked.items()))
    if key == "threadcount":
        assert [phase["threads"] for phase in after] == [1, 1]
    elif key == "target":
        assert run["rate_ops_s"] == (float(text) or None)
    else:
        assert all(phase["ycsb"][key] == float(text) for phase in after)
    assert run["operations"] == (None if key == "operationcount" else 9)


def test_a_time_of_the_command_line_takes_the_place_of_the_phases_own(plan_file: Path) -> None:
    timed = ycsb_plan(WHAT_IT_SAYS, PHASES + "duration_s = 5\n")
    for key in ("operationcount", "maxexecutiontime"):
        run = phases_of(plan_file, timed, properties={key: "7"})[1]
        assert (run["duration_s"], run["operations"], run["ycsb"][key]) == (None, None, 7)  # type: ignore[index]


@pytest.mark.parametrize("table", ["ycsb = 5\n", "ycsb = []\n", 'ycsb = "workloada"\n', "ycsb = [{a = 1}]\n"])
@pytest.mark.parametrize("properties", [None, {"recordcount": "5"}])
def test_what_is_no_table_of_properties(plan_file: Path, table: str, properties: dict[str, str] | None) -> None:
    plan_file.write_text(table + ycsb_plan(""))
    with pytest.raises(SpillwayError, match=r"ycsb is .*; it takes a table"):
        load_plan(plan_file, properties=properties)


def test_preparations_have_the_properties_of_those_that_go_on_with_them(plan_file: Path) -> None:
    loads = '[[prepare]]\n"kept.to" = "loaded"\n[[prepare.phases]]\nworkload = "ycsb-load"\n'
    run = '[[phases]]\nworkload = "ycsb-run"\n'
    plan_file.write_text(ycsb_plan(WHAT_IT_SAYS + '[kept]\nfrom = "loaded"\n', run + loads))
    for more in ({"properties": {"recordcount": "20"}}, {"overrides": ("ycsb.recordcount=20",)}):
        plan = load_plan(plan_file, **more)
        counts = [each.phases[0]["ycsb"]["recordcount"] for each in (*plan.preparations, *plan.arms)]
        assert counts == [20, 20]


def test_one_load_serves_every_mix(plan_file: Path) -> None:
    """What a load leaves hangs on its records alone, so points that differ in operations share it."""
    loads = '[[prepare]]\n"kept.to" = "loaded"\n[[prepare.phases]]\nworkload = "ycsb-load"\n'
    run = '[[phases]]\nworkload = "ycsb-run"\n'
    text = WHAT_IT_SAYS + '[kept]\nfrom = "loaded"\n'
    for axis in (
        '"ycsb.readproportion" = [0, 0.2, 0.4, 0.6]',
        '"ycsb.requestdistribution" = ["zipfian", "latest", "uniform"]',
        '"ycsb.operationcount" = [5, 6]',
        '"ycsb.properties" = ["workloada", "workloade"]',
    ):
        plan_file.write_text(ycsb_plan(text, run + loads + f"[sweep]\n{axis}\n"))
        plan = load_plan(plan_file)
        assert len(plan.preparations) == 1
        again = plan_file.with_name("again.toml")
        again.write_text(plan.to_toml())
        assert [each.document() for each in load_plan(again).preparations] == [plan.preparations[0].document()]
    plan_file.write_text(ycsb_plan(text, run + loads + '[sweep]\n"ycsb.fieldcount" = [1, 2]\n'))
    with pytest.raises(SpillwayError, match="would be made in several ways"):
        load_plan(plan_file)


def test_a_preparation_needs_nothing_of_the_properties_above_it(plan_file: Path) -> None:
    fills = '[[prepare]]\n"kept.to" = "old"\n"kept.database" = "old"\n[[prepare.phases]]\nworkload = "fillseq"\n'
    kept = '[kept]\nfrom = "old"\ntakes = "files"\n'
    plan_file.write_text(ycsb_plan(WHAT_IT_SAYS + kept, PHASES + fills))
    for properties in (None, {"recordcount": "20"}):
        plan = load_plan(plan_file, properties=properties)
        assert [phase["workload"] for phase in plan.preparations[0].phases] == ["fillseq"]
    plan_file.write_text(
        ycsb_plan(WHAT_IT_SAYS + kept, PHASES + fills.replace("[[prepare.", "ycsb.fieldcount = 1\n[[prepare."))
    )
    with pytest.raises(SpillwayError, match=r"prepare\[0\]: ycsb belongs to phases of ycsb-load"):
        load_plan(plan_file)


def test_properties_are_for_those_arms_that_have_phases_of_ycsb(plan_file: Path) -> None:
    fills = '[[arms.phases]]\nworkload = "fillrandom"\n'
    arms = '[[arms]]\nname = "a"\n' + PHASES.replace("[[", "[[arms.") + '[[arms]]\nname = "b"\n' + fills
    plan_file.write_text(ycsb_plan(WHAT_IT_SAYS, arms))
    for properties in (None, {"recordcount": "20"}, {"properties": None, "recordcount": "20", "operationcount": "9"}):
        ours, other = load_plan(plan_file, properties=properties).arms
        assert ours.phases[0]["ycsb"]["recordcount"] == int(str((properties or {}).get("recordcount", 10)))
        assert other.phases[0]["ycsb"] is None
    with pytest.raises(SpillwayError, match=r"-P and -p are for phases of ycsb-load and ycsb-run, and none is run"):
        load_plan(plan_file, (), ("b",), {"recordcount": "20"})
    plan_file.write_text(ycsb_plan(WHAT_IT_SAYS, arms.replace('"b"\n', '"b"\nycsb.fieldcount = 1\n')))
    with pytest.raises(SpillwayError, match=r"arms\[1\]: ycsb belongs to phases of ycsb-load and ycsb-run, and there"):
        load_plan(plan_file)


@pytest.mark.parametrize(
    ("table", "phases", "words"),
    [
        ("[ycsb]\nrecordcount = 10\n", PHASES, "operationcount is missing"),
        ("[ycsb]\noperationcount = 10\n", PHASES, "recordcount is missing"),
        (
            "[ycsb]\nrecordcount = 5\n",
            '[[phases]]\nworkload = "fillseq"\n',
            "ycsb belongs to phases of ycsb-load",
        ),
        ("", '[[phases]]\nworkload = "fillseq"\nycsb.recordcount = 1\n', "ycsb belongs to ycsb-load and ycsb-run"),
        (
            "[ycsb]\nrecordcount = 5\noperationcount = 5\n",
            '[[phases]]\nworkload = "fillseq"\n[[phases]]\nworkload = "ycsb-run"\n',
            "ycsb-run would find no records",
        ),
        ("[ycsb]\nrecordcount = 5\nproperties = 3\n", PHASES, 'it takes a name, such as "workloada", or a file'),
        ("[ycsb]\nrecordcount = [5]\n", PHASES, "it takes a text, a number or true or false"),
        ("[ycsb]\nrecordcount = 100_000_000\noperationcount = 1\n", PHASES, "ycsb: the records come to .* the drive"),
        (
            '[ycsb]\nrecordcount = 5\ninsertproportion = 0.1\nrequestdistribution = "zipfian"\n',
            PHASES + "duration_s = 5\n",
            "operationcount is missing: the zipfian distribution leaves room",
        ),
    ],
)
def test_relations_are_checked(plan_file: Path, table: str, phases: str, words: str) -> None:
    with pytest.raises(SpillwayError, match=words):
        phases_of(plan_file, ycsb_plan(table, phases))


def test_a_time_takes_the_place_of_operations(plan_file: Path) -> None:
    run = phases_of(plan_file, ycsb_plan("[ycsb]\nrecordcount = 5\n", PHASES + "duration_s = 5\n"))[1]
    assert (run["duration_s"], run["operations"]) == (5, None)


def test_the_bundled_plan_runs_every_workload_and_says_itself_again(tmp_path: Path, validator: Validator) -> None:
    schema = validator("run.request.schema.json")
    for name, texts in WORKLOADS.items():
        plan = load_plan(ROOT / "plans" / "ycsb.toml", properties={"properties": None, **texts})
        schema.validate(plan.arms[0].request(tmp_path, 1))
        again = tmp_path / f"{name}.toml"
        again.write_text(plan.to_toml())
        assert load_plan(again).arms == plan.arms


def test_every_property_is_in_the_contract_and_in_the_docs() -> None:
    contract = json.loads((ROOT / "contract/common.schema.json").read_text())["$defs"]["ycsb"]["properties"]
    assert set(contract) == set(PROPERTIES)
    page = (ROOT / "docs/PLANS.md").read_text()
    rows = re.findall(r"^\| ([a-z_., ]+) \| ([^|]*) \| ([^|]*) \|", page[page.index("\n# YCSB\n") :], re.MULTILINE)
    documented = " ".join(names + " " + meaning for names, _, meaning in rows)
    for name in PROPERTIES | OF_PHASES:
        assert re.search(rf"(?<![\w.]){re.escape(name)}(?![\w.])", documented), name
    for names, defaults, _ in rows:
        stated = re.findall(r"`([^`]*)`", defaults)
        for name, text in zip(names.split(", "), stated, strict=False):
            if name in PROPERTIES and PROPERTIES[name].default is not None:
                assert PROPERTIES[name].read(text, name) == PROPERTIES[name].default
