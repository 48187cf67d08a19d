"""Plans: what is resolved, what is refused and with which words."""

import itertools
import json
import re
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from conftest import PLAN, ROOT
from jsonschema import Draft202012Validator

from spillway.errors import SpillwayError
from spillway.plan.arm import by_keys_of_a_plan
from spillway.plan.document import load_plan
from spillway.plan.dotted import flatten
from spillway.plan.keys import ARM_KEYS, OF_SOME_ARRIVALS, OPEN_TABLES, PHASE_KEYS, PLAN_KEYS, POLICIES, WORKLOADS


def write(plan_file: Path, text: str) -> Path:
    plan_file.write_text(text)
    return plan_file


def test_defaults_are_filled_in(plan_file: Path) -> None:
    plan = load_plan(plan_file)
    assert (plan.name, plan.seeds, [arm.name for arm in plan.arms]) == ("small", [1], ["small"])
    request = plan.arms[0].request(Path("/data"), 1)
    assert request["target"]["initial"] == {
        "kind": "steady",
        "fill": 1.0,
        "compression_ratio": 1.0,
        "warmup_capacities": 0.0,
        "path": "",
    }
    assert request["target"]["drive"]["preset"] == "tiny"
    assert request["load"] == {"key_bytes": 16, "value_bytes": 1024, "compression_ratio": 0.5, "num": 10000, "seed": 1}
    engine = {"name": "rocksdb", "policy": "slowdown", "options": {"write_buffer_size": "1048576"}}
    assert request["engine"] == engine
    assert request["phases"][0]["threads"] == 1
    assert request["phases"][0]["operations"] is None


def test_mixes_of_reads_and_writes(plan_file: Path) -> None:
    mixes = """
[[phases]]
workload = "readwhilewriting"
duration_s = 1
write_rate_ops_s = 500
[[phases]]
workload = "readrandomwriterandom"
operations = 10
read_write_percent = 70
"""
    phases = load_plan(write(plan_file, PLAN + mixes)).arms[0].request(Path("/data"), 1)["phases"]
    assert [phase["write_rate_ops_s"] for phase in phases] == [None, 500, None]
    assert [phase["read_write_percent"] for phase in phases] == [None, None, 70]


def test_settings_go_to_their_engine(plan_file: Path, validator: Callable[..., Draft202012Validator]) -> None:
    arms = '\n[[arms]]\nname = "A"\n"engine.name" = "leveldb-vlog"\n[[arms]]\nname = "B"\n"engine.name" = "leveldb"\n'
    arms = PLAN + '[engine.vlog]\nsegment = "1MiB"\ngc = false\n' + arms
    vlog, other = (arm.request(Path("/data"), 1) for arm in load_plan(write(plan_file, arms)).arms)
    assert vlog["engine"]["vlog"] == {
        "segment_bytes": 2**20, "min_value_bytes": 0, "prefetch": 32,
        "gc": False, "gc_garbage_ratio": 0.8, "gc_free_ratio": 0.1,
    }  # fmt: skip
    assert "policy" not in vlog["engine"] and "vlog" not in other["engine"]
    validator("run.request.schema.json").validate(vlog)


def test_what_a_plan_leaves_to_the_engine_is_not_in_its_request(plan_file: Path) -> None:
    """None stands for what the native side chooses by the drive; it is no value to hand over."""
    arms = '\n[[arms]]\nname = "A"\n"engine.name" = "leveldb-vlog"\n'
    left = load_plan(write(plan_file, PLAN + arms)).arms[0]
    assert left.settings["engine.vlog.segment"] is None
    assert "segment_bytes" not in left.request(Path("/data"), 1)["engine"]["vlog"]
    given = load_plan(write(plan_file, PLAN + '[engine.vlog]\nsegment = "1MiB"\n' + arms)).arms[0]
    assert given.request(Path("/data"), 1)["engine"]["vlog"]["segment_bytes"] == 2**20
    for arm in (left, given):
        assert None not in [value for table in arm.request(Path("/data"), 1)["engine"].values()
                            if isinstance(table, dict) for value in table.values()]  # fmt: skip


def test_policies_are_chosen_by_name(plan_file: Path, validator: Callable[..., Draft202012Validator]) -> None:
    arms = '\n[[arms]]\nname = "A"\n"engine.policy" = "adoc"\n[[arms]]\nname = "B"\n"engine.policy" = "no-slowdown"\n'
    arms = PLAN + '[engine.adoc]\nleast_buffer = "4MiB"\n' + arms
    adoc, other = (arm.request(Path("/data"), 1) for arm in load_plan(write(plan_file, arms)).arms)
    assert adoc["engine"]["policy"] == "adoc"
    assert adoc["engine"]["adoc"] == {
        "interval_ms": 1000, "least_jobs": 2, "most_jobs": 20, "least_buffer_bytes": 2**22, "most_buffer_bytes": 2**29
    }  # fmt: skip
    assert (other["engine"]["policy"], "adoc" in other["engine"]) == ("no-slowdown", False)
    for request in (adoc, other):
        validator("run.request.schema.json").validate(request)


def test_a_policy_has_its_own_table_and_no_others(
    plan_file: Path, validator: Callable[..., Draft202012Validator]
) -> None:
    arms = '\n[[arms]]\nname = "A"\n"engine.policy" = "flow-control"\n[[arms]]\nname = "B"\n"engine.policy" = "adoc"\n'
    arms = PLAN + '[engine.flow_control]\nsoft_pending = "12GiB"\nhard_pending = "64GiB"\n' + arms
    flow, adoc = (arm.request(Path("/data"), 1) for arm in load_plan(write(plan_file, arms)).arms)
    assert flow["engine"]["flow_control"] == {
        "memtables": 5, "l0_files": 20, "soft_pending_bytes": 12 * 2**30, "hard_pending_bytes": 64 * 2**30,
        "least_bytes_s": 16384, "most_bytes_s": 209715200,
    }  # fmt: skip
    assert "adoc" not in flow["engine"] and "flow_control" not in adoc["engine"]
    validator("run.request.schema.json").validate(flow)


def test_plans_and_the_contract_know_the_same_policies() -> None:
    engine = json.loads((ROOT / "contract/run.request.schema.json").read_text())["properties"]["engine"]
    assert list(POLICIES) == engine["properties"]["policy"]["enum"]


def test_plans_and_the_contract_know_the_same_workloads_and_keys_of_a_phase() -> None:
    phase = json.loads((ROOT / "contract/run.request.schema.json").read_text())["properties"]["phases"]["items"]
    assert list(WORKLOADS) == phase["properties"]["workload"]["enum"]
    assert set(PHASE_KEYS) - {"until", *OF_SOME_ARRIVALS} == set(phase["properties"]), "arrivals are a table there"


def test_every_key_of_a_plan_is_documented_with_its_default() -> None:
    rows = re.findall(r"^\| `([a-z0-9_.]+)` \| ([^|]*) \|", (ROOT / "docs/PLANS.md").read_text(), re.MULTILINE)
    documented = {key: default.strip().strip("`") for key, default in rows}
    for prefix, keys in (("", PLAN_KEYS), ("", ARM_KEYS), ("phases.", PHASE_KEYS)):
        for name, key in keys.items():
            default = documented.pop(prefix + name)
            if key.default in (None, ""):
                assert not re.search(r"\d", default), f"{prefix}{name} has no default"
            else:
                assert tomllib.loads(f"default = {default}")["default"] == key.default, name
    assert set(documented) == set(OPEN_TABLES)


def test_overrides_win_over_plan_and_arms(plan_file: Path) -> None:
    write(plan_file, PLAN + '\n[[arms]]\nname = "a"\n"engine.options.x" = 1\n[[arms]]\nname = "b"\nload.num = 5\n')
    overrides = (
        "engine.options.x=true",
        "phases.fill.threads=2",
        "phases.0.duration_s=3",
        "drive.set.capacity.spare_factor=0.1",
        "drive.capacity=32MiB",
        "load.num=7",
        "seeds=[4, 5]",
        "initial.kind=trimmed",
    )
    plan = load_plan(plan_file, overrides)
    assert plan.seeds == [4, 5]
    for arm in plan.arms:
        assert arm.engine_options["x"] == "true"
        assert (arm.phases[0]["threads"], arm.phases[0]["duration_s"]) == (2, 3)
        assert arm.drive_set == {"capacity.spare_factor": "0.1", "capacity.capacity_bytes": str(32 * 2**20)}
        assert arm.settings["load.num"] == 7
        assert arm.settings["initial.kind"] == "trimmed"


EMULATED = 'drive.preset = "tiny"\n'
WATCHED = 'drive.kind = "directory"\ndrive.path = "."\ndrive.estimate.preset = "tiny"\n'


@pytest.mark.parametrize(
    ("key", "spellings", "above", "values"),
    [
        ("load.value_bytes", ["load.value_bytes", '"load.value_bytes"'], EMULATED + "load.num = 9\n", [1, 2, 3]),
        ("engine.options.x", ["engine.options.x", '"engine.options.x"', 'engine."options.x"'], EMULATED, [1, 2, 3]),
        ("drive.set.gc.low", ["drive.set.gc.low", '"drive.set.gc.low"', 'drive.set."gc.low"'],
         EMULATED + "drive.set.gc.high = 0.5\n", [0.1, 0.2, 0.3]),
        ("drive.estimate.capacity", ["drive.estimate.capacity", 'drive."estimate.capacity"'], WATCHED,
         [2**26, 2**27, 2**28]),
    ],
)  # fmt: skip
def test_the_last_setting_of_a_key_wins_however_it_is_written(
    plan_file: Path, key: str, spellings: list[str], above: str, values: list[Any]
) -> None:
    """By an arm, by a point of a sweep and by --set."""
    phase = '[[phases]]\nworkload = "fillrandom"\n'
    first, second, third = values

    def found(text: str, *overrides: str) -> list[Any]:
        plan_file.write_text(text)
        arms = load_plan(plan_file, overrides).arms
        return [flatten({k: v for k, v in arm.document().items() if k != "phases"}) for arm in arms]

    def values_of(documents: list[Any]) -> list[str]:
        table = next((table for table in OPEN_TABLES if key.startswith(f"{table}.")), "")
        return [str(each[table][key.removeprefix(f"{table}.")] if table else each[key]) for each in documents]

    for one, other in itertools.product(spellings, repeat=2):
        text = f"{above}{one} = {first}\n{phase}"
        assert values_of(found(text)) == [str(first)]
        assert values_of(found(text, f"{key}={second}")) == [str(second)]
        assert values_of(found(f'{text}[[arms]]\nname = "a"\n{other} = {second}\n')) == [str(second)]
        assert values_of(found(f"{text}[sweep]\n{other} = [{second}, {third}]\n")) == [str(second), str(third)]
        if one != other:
            with pytest.raises(SpillwayError, match=f"{key} is there twice, in quotes and without; leave one"):
                found(f"{above}{one} = {first}\n{other} = {first}\n{phase}")


def test_arms_differ_in_what_they_say_and_in_nothing_else(plan_file: Path) -> None:
    arms = '\n[[arms]]\nname = "one"\n[[arms]]\nname = "two"\nengine.options.write_buffer_size = 99\n'
    arms += "drive.time_scale = 2\n"
    one, two = load_plan(write(plan_file, PLAN + arms)).arms
    assert one.engine_options["write_buffer_size"] == "1048576"
    assert two.engine_options["write_buffer_size"] == "99"
    assert two.settings == one.settings | {"drive.time_scale": 2.0}
    assert one.phases == two.phases


def test_a_run_may_keep_to_some_arms(plan_file: Path) -> None:
    write(plan_file, PLAN + "".join(f'\n[[arms]]\nname = "{name}"\n' for name in ("one", "two", "three")))
    assert [arm.name for arm in load_plan(plan_file, (), ("three", "one")).arms] == ["one", "three"]
    with pytest.raises(SpillwayError, match="there is no arm 'four'; by name there are: one, two, three"):
        load_plan(plan_file, (), ("four",))


def test_the_resolved_plan_is_a_plan_and_says_the_same(plan_file: Path) -> None:
    arms = '\n[[arms]]\nname = "one"\n[[arms]]\nname = "two"\nload.num = 3\n[[arms.phases]]\nworkload = "fillseq"\n'
    plan = load_plan(write(plan_file, PLAN + arms), ("repetitions=3", "drive.set.timing.read_ns=[1, 2]"))
    assert plan.seeds == [1, 2, 3]
    again = load_plan(write(plan_file, plan.to_toml()))
    assert again.arms == plan.arms
    assert again.seeds == plan.seeds
    assert again.to_toml() == plan.to_toml()


def test_paths_are_relative_to_the_plan(plan_file: Path) -> None:
    (plan_file.parent / "mine.toml").write_text('name = "mine"\n[capacity]\ncapacity_bytes = "1GiB"\n')
    text = PLAN.replace('preset = "tiny"', 'preset_file = "mine.toml"')
    arm = load_plan(write(plan_file, text)).arms[0]
    assert arm.settings["drive.preset_file"] == str(plan_file.parent / "mine.toml")
    assert arm.capacity_bytes() == 2**30


MIXED = "[[phases]]\nworkload = 'readwhilewriting'\noperations = 5\n"
OPEN = "[[phases]]\nworkload = 'overwrite'\noperations = 5\nrate_of = 'fill'\n"
BAD = [
    (PLAN.replace("[load]", "[laod]"), "laod.value_bytes is not a key of a plan; did you mean 'load.value_bytes'"),
    (PLAN.replace("num = 10000", "nmu = 10000"), "load.nmu is not a key of a plan; did you mean 'load.num'"),
    (PLAN.replace("num = 10000", "num = 0"), "load.num is 0; it takes a whole number of at least 1"),
    (PLAN.replace("num = 10000", 'num = "many"'), "load.num is 'many'"),
    (PLAN.replace("num = 10000", "num = true"), "load.num is True"),
    (PLAN.replace("num = 10000", "num = 10_000_000"), "the drive holds 64.0 MiB: lower load.num"),
    (PLAN.replace('"tiny"', '"tyni"'), r"drive\.preset: .* none called 'tyni'; did you mean 'tiny'"),
    (
        PLAN.replace("duration_s = 12", "duration = 12"),
        r"phases\[0\]: duration is not a key .* did you mean 'duration_s'",
    ),
    (
        PLAN.replace("duration_s = 12", "duration_s = 12\noperations = 3"),
        r"phases\[0\]: operations and duration_s both",
    ),
    (PLAN.replace('"fillrandom"', '"fillrandm"'), r"phases\[0\]: workload is 'fillrandm'; it takes one of fillseq"),
    (PLAN.replace('"fillrandom"', '"readrandom"'), r"phases\[0\]: readrandom would find an empty store"),
    (PLAN.replace("duration_s = 12", "measured = false"), "none is measured"),
    (PLAN + '[[phases]]\nname = "fill"\nworkload = "overwrite"\n', "two are called 'fill'"),
    (PLAN + '[[phases]]\nworkload = "readrandom"\n', r"phases\[1\]: readrandom has no end"),
    (PLAN + '[[phases]]\nworkload = "waitforcompaction"\noperations = 2\n', "ends by itself"),
    (
        PLAN + '[[phases]]\nworkload = "waitforcompaction"\nrate_ops_s = 2\n',
        "rate_ops_s belongs to phases",
    ),
    (PLAN.replace("duration_s = 12", "write_rate_ops_s = 5"), "write_rate_ops_s belongs to readwhilewriting"),
    (PLAN.replace("duration_s = 12", "seek_nexts = 5"), "seek_nexts belongs to seekrandom"),
    (
        PLAN.replace("duration_s = 12", "read_write_percent = 5"),
        "read_write_percent belongs to readrandomwriterandom and",
    ),
    (PLAN + MIXED.replace("operations", "exact_mix = true\noperations"), r"phases\[1\]: exact_mix needs read_write"),
    (
        PLAN
        + MIXED.replace("operations", "exact_mix = true\nread_write_percent = 9\nwrite_rate_ops_s = 5\noperations"),
        "exact_mix and write_rate_ops_s both pace the writer",
    ),
    (PLAN + "diversion = 'half'\n", "diversion is 'half'; it takes one of automatic, always, never"),
    (PLAN + "exact_mix = true\n", "exact_mix belongs to readwhilewriting"),
    (PLAN + "rate_of = 'fill'\n", r"phases\[0\]: rate_of is 'fill', no phase before this one"),
    (PLAN + OPEN.replace("'fill'", "'fil'"), r"phases\[1\]: rate_of is 'fil', no phase before .* did you mean 'fill'"),
    (PLAN + OPEN + "rate_ops_s = 5\n", r"phases\[1\]: rate_of is a rate of its own"),
    (PLAN + OPEN + "arrivals = 'poisson'\nrate_ops_s = 5\n", r"phases\[1\]: rate_of is a rate of its own"),
    (PLAN + OPEN + "rate_share = 0\n", "rate_share is 0; it takes a number above 0"),
    (PLAN + "rate_share = 0.5\n", "rate_share belongs to rate_of, and no phase is named there"),
    (PLAN + MIXED + "rate_of = 'fill'\n", "rate_of is one rate of all threads, and readwhilewriting has two"),
    (PLAN + "[[phases]]\nworkload = 'settle'\nrate_of = 'fill'\n", "rate_of belongs to phases that read or write"),
    (
        PLAN + "[[phases]]\nworkload = 'settle'\n" + OPEN.replace("'fill'", "'settle'"),
        r"phases\[2\]: rate_of is 'settle', which has no operations",
    ),
    (PLAN + '[[phases]]\nworkload = "readrandomwriterandom"\n', r"phases\[1\]: readrandomwriterandom has no end"),
    (PLAN.replace('"fillrandom"', '"readrandomwriterandom"'), "would find an empty store"),
    (
        PLAN.replace("[load]", "[fs]\nwriteback_bytes = 100\n[load]"),
        "writeback_bytes is 100; it takes a size of at least 4096",
    ),
    (PLAN.split("[[phases]]")[0], "phases are missing"),
    (PLAN + "\n[[arms]]\n[[arms]]\n", r"arms\[0\]: name is missing"),
    (PLAN + '\n[[arms]]\nname = "A b"\n[[arms]]\nname = "a-b"\n', "two arms are called"),
    (PLAN + '\n[[arms]]\nname = "x"\nload.nm = 1\n', "load.nm is not a key of a plan; did you mean 'load.num'"),
    (PLAN.replace("[drive]", "[drive]\ntime_scale = 0"), "drive.time_scale is 0; it takes a number above 0"),
    (PLAN.replace("[drive]", '[drive]\nkind = "directory"'), "drive.path is missing"),
    (PLAN.replace("[drive]", '[drive]\npath = "x"'), "drive.path belongs to drive.kind"),
    ("data_directory = 'nowhere'\n" + PLAN, "data_directory: there is no directory .*/nowhere; make it first"),
    (PLAN.replace("[load]", '[initial]\nkind = "file"\n[load]'), "initial.path: there is no state file"),
    (PLAN.replace("[load]", "[initial]\nfill = 0\n[load]"), "initial.fill is 0"),
    (PLAN.replace("[load]", "[fs]\npage_cache_bytes = '1 potato'\n[load]"), "fs.page_cache_bytes is '1 potato'"),
    ("seeds = [1, 2]\nrepetitions = 1\n" + PLAN, "repetitions is 1 and there are 2 seeds"),
    ("seeds = 3\n" + PLAN, "seeds is 3; it takes a list"),
    ("this is = not toml =", "this is not TOML"),
    ("deep = " + "[" * 100_000 + "]" * 100_000 + "\n" + PLAN, "this is not TOML: .* nested too deep"),
    ("arms = 3\n" + PLAN, r"arms is a list of tables: write \[\[arms\]\]"),
    ("seeds = [-1]\n" + PLAN, "seeds is -1"),
    ("seeds = [true]\n" + PLAN, "seeds is True"),
    ("seeds = [18446744073709551616]\n" + PLAN, "seeds is 18446744073709551616; it takes a whole number up to"),
    (PLAN + "rate_ops_s = nan\n", "rate_ops_s is nan; it takes a number above 0"),
    (PLAN + "rate_ops_s = inf\n", "rate_ops_s is inf; it takes a number above 0"),
]


def test_a_byte_order_mark_is_no_part_of_a_plan(plan_file: Path) -> None:
    assert load_plan(write(plan_file, "\ufeff" + PLAN)).arms == load_plan(write(plan_file, PLAN)).arms


@pytest.mark.parametrize(("text", "says"), BAD, ids=[says[:30] for _, says in BAD])
def test_what_is_refused_names_file_key_and_mend(plan_file: Path, text: str, says: str) -> None:
    with pytest.raises(SpillwayError, match=says) as refused:
        load_plan(write(plan_file, text))
    sentence = str(refused.value)
    assert sentence.startswith(str(plan_file))
    assert "\n" not in sentence.removesuffix("\n")
    assert sentence.endswith((".", "?"))


@pytest.mark.parametrize(
    ("override", "says"),
    [
        ("load.num", "KEY=VALUE"),
        ("load.nmu=3", "did you mean 'load.num'"),
        ("phases.nope.threads=2", "there is no element 'nope'; by name there are: fill"),
        ("phases.0=2", "name a key of one element"),
        ("name.x=2", "--set name.x: name is a value, not a table"),
        ("load.num=5\nload.value_bytes=6", r"load.num is '5\\nload.value_bytes=6'; it takes a whole number"),
        ("load.num=5\n[drive]", r"load.num is '5\\n\[drive\]'; it takes a whole number"),
    ],
)
def test_bad_overrides(plan_file: Path, override: str, says: str) -> None:
    with pytest.raises(SpillwayError, match=says):
        load_plan(plan_file, (override,))


def test_a_missing_plan(tmp_path: Path) -> None:
    with pytest.raises(SpillwayError, match=r"none\.toml: the plan cannot be read"):
        load_plan(tmp_path / "none.toml")


@pytest.mark.parametrize("path", sorted((ROOT / "plans").glob("*.toml")), ids=lambda path: path.name)
def test_every_plan_of_the_project_resolves(path: Path) -> None:
    assert load_plan(path).arms


@pytest.mark.parametrize(
    "path",
    sorted((ROOT / "plans").glob("**/kvaccel*/*.toml")) + sorted((ROOT / "plans").glob("kvaccel-*.toml")),
    ids=lambda path: f"{path.parent.name}/{path.name}",
)
def test_a_plan_says_how_full_its_drive_is_as_it_is(path: Path) -> None:
    """In its comments and answers, of all of its words on it."""
    text = path.read_text()
    said = re.findall(r"(half|\d+ %) of the drive full|(?:drive is|that is) (half|\d+ %) full", text)
    fill = tomllib.loads(text).get("initial", {}).get("fill")
    assert {0.5 if each == "half" else float(each.split()[0]) / 100 for pair in said for each in pair if each} <= {fill}


@pytest.mark.parametrize("name", ["b", "c"])
def test_a_workload_of_kvaccels_is_one_plan_in_its_suite_and_beside_it(name: str) -> None:
    beside, inside = (load_plan(ROOT / "plans" / path) for path in (f"kvaccel-{name}.toml", f"kvaccel/{name}.toml"))
    assert beside.to_toml() == inside.to_toml()


def test_the_demo_has_the_best_rival_as_its_suite_has_it() -> None:
    """docs/decisions/0044: flow control, under the options and phases of the bursts that saturate a drive."""
    demo, all_rivals = (load_plan(ROOT / "plans" / path) for path in ("demo.toml", "kvaccel/saturated.toml"))
    of_suite = {arm.name: arm for arm in all_rivals.arms}
    assert [arm.name for arm in demo.arms] == ["RocksDB", "ADOC", "Flow control", "Spillway"]
    for arm in demo.arms[:-1]:
        assert arm.request(Path("/data"), 1) == of_suite[arm.name].request(Path("/data"), 1)


@pytest.mark.parametrize(
    ("target", "said", "of_a_plan"),
    [
        ("emulated", "--set: capacity.capacity_bytes: 4096 is smaller", "drive.capacity: 4096 is smaller"),
        ("directory", "--set: capacity.capacity_bytes: 4096 is smaller", "drive.estimate.capacity: 4096 is smaller"),
        ("emulated", "--set: gc.policy is 'lifo'; it takes fifo", "drive.set: gc.policy is 'lifo'; it takes fifo"),
        ("emulated", "load.num: or raise capacity.capacity_bytes", "load.num: or raise drive.capacity"),
        ("emulated", "x.toml: capacity.capacity_bytes: 1 is smaller", "x.toml: capacity.capacity_bytes: 1 is smaller"),
    ],
)
def test_native_errors_name_the_plans_keys(target: str, said: str, of_a_plan: str) -> None:
    assert by_keys_of_a_plan(said, target) == of_a_plan


def test_a_share_of_an_earlier_rate_is_told_to_the_native_side(plan_file: Path) -> None:
    arm = load_plan(write(plan_file, PLAN + OPEN + "rate_share = 0.9\n")).arms[0]
    first, second = arm.request(Path("here"), 1)["phases"]
    assert (first["rate_of"], first["rate_share"]) == ("", None)
    assert (second["rate_of"], second["rate_share"], second["rate_ops_s"]) == ("fill", 0.9, None)
