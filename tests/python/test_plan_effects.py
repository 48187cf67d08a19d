"""Keys that could have no effect are refused, wherever a plan says them, and those that have one are not."""

import itertools
import tomllib
from pathlib import Path

import pytest
from conftest import PLAN, Fake, Invoke

from spillway.errors import SpillwayError
from spillway.plan.document import load_plan
from spillway.plan.keys import ARM_KEYS, ENGINES, OPEN_TABLES

# A value other than the default for each key that is judged here.
VALUES: dict[str, object] = {
    "data_directory": '"."', "drive.preset": '"quickstart"', "drive.capacity": '"64MiB"', "drive.time_scale": 2.0,
    "drive.pacing": '"off"', "drive.smart": '"off"', "drive.rated_writes": '"9TB"', "fs.size": '"63MiB"',
    "cost.currency": '"EUR"', "drive.set": "{ capacity.spare_factor = 0.3 }",
    "initial.kind": '"trimmed"', "initial.fill": 0.5, "initial.compression_ratio": 0.5,
    "initial.warmup_capacities": 0.5, "initial.path": '"small.toml"', "initial.partition": '"trimmed"',
    "initial.procedure": '"partition-trim"',
    "kept.directory": '"states"', "kept.takes": '"drive"', "kept.database": '"other"',
    "fs.discard": "false", "fs.placement": '"first_fit"', "fs.page_cache_bytes": 4096,
    "fs.writeback_bytes": 8192, "fs.closed_dirty_bytes": 4096,
    "engine.policy": '"no-slowdown"', "engine.adoc.interval_ms": 5, "engine.adoc.least_jobs": 3,
    "engine.adoc.most_jobs": 9, "engine.adoc.least_buffer": '"1MiB"', "engine.adoc.most_buffer": '"9MiB"',
    "engine.flow_control.memtables": 3, "engine.flow_control.l0_files": 9,
    "engine.flow_control.soft_pending": '"1MiB"', "engine.flow_control.hard_pending": '"9MiB"',
    "engine.flow_control.least_bytes_s": 3, "engine.flow_control.most_bytes_s": 9,
    "engine.spill.store": '"kv"', "engine.spill.rollback": '"lazy"', "engine.spill.capacity": '"8GiB"',
    "engine.spill.generation": '"1MiB"', "engine.spill.index": '"1MiB"', "engine.spill.put_back": '"2MiB"',
    "engine.spill.poll_ms": 5, "engine.spill.divert_l0_files": 5, "engine.spill.resume_l0_files": 4,
    "engine.spill.divert_pending": 0.9, "engine.spill.resume_pending": 0.8,
    "engine.vlog.segment": '"1MiB"', "engine.vlog.min_value": 10, "engine.vlog.prefetch": 3,
    "engine.vlog.gc": "false", "engine.vlog.gc_garbage_ratio": 0.5, "engine.vlog.gc_free_ratio": 0.2,
    "load.key_bytes": 20, "load.value_bytes": 50, "load.compression_ratio": 0.9, "load.num": 77,
}  # fmt: skip
# Those that another check speaks of, or that mean something to every run.
JUDGED_ELSEWHERE = {
    "sample_interval_ms", "drive.kind", "drive.preset_file", "drive.path",
    "drive.estimate.preset", "drive.estimate.preset_file", "drive.estimate.capacity",
    "kept.from", "kept.to", "cost.drive_price", "engine.name", "steady.tests",
    "engine.options", "ycsb",
}  # fmt: skip

PHASE = '[[phases]]\nworkload = "fillrandom"\noperations = 9\n'
YCSB = '[ycsb]\nrecordcount = 9\noperationcount = 9\n[[phases]]\nworkload = "ycsb-load"\n'
EMULATED = 'drive.preset = "quickstart"\n'
DIRECTORY = 'drive.kind = "directory"\ndrive.path = "."\n'
WATCHED = DIRECTORY + 'drive.estimate.preset = "tiny"\n'
DRIVES = {"emulated": EMULATED, "directory": DIRECTORY, "watched": WATCHED}

MODEL_ONLY = {"data_directory", "drive.preset", "drive.capacity", "drive.time_scale", "drive.pacing", "drive.set"}
OWNERS = {"policy": "rocksdb", "adoc": "", "flow_control": "", "spill": "spillway", "vlog": "leveldb-vlog"}


def has_effect(key: str, drive: str, engine: str, load: str) -> bool:
    """By the documentation, for a run that keeps nothing and has no key but this one beside its drive and engine."""
    table, _, rest = key.partition(".")
    if key in MODEL_ONLY:
        return drive == "emulated"
    if key in ("drive.smart", "drive.rated_writes"):
        return drive != "emulated"
    if key == "fs.size":
        return drive == "emulated"
    # Neither of the two presets compresses.
    if table == "kept" or key in ("initial.path", "initial.compression_ratio", "cost.currency"):
        return False
    if table in ("initial", "fs") and drive == "directory":
        return False
    if table == "fs" and (engine == "raw" or (drive == "watched" and rest == "page_cache_bytes")):
        return False
    if table == "engine" and key != "engine.options":
        model_is_needed = key == "engine.vlog.gc_free_ratio" and drive == "directory"
        return OWNERS[rest.partition(".")[0]] == engine and not model_is_needed
    return load == "pairs" or key not in ("load.key_bytes", "load.value_bytes", "load.num")


def test_every_key_is_judged_here_or_elsewhere() -> None:
    assert set(VALUES) | JUDGED_ELSEWHERE == {*ARM_KEYS, *OPEN_TABLES}


@pytest.mark.parametrize("key", VALUES)
def test_a_key_is_taken_where_it_has_an_effect_and_refused_elsewhere(plan_file: Path, key: str) -> None:
    for (drive, own), engine, load in itertools.product(DRIVES.items(), ENGINES, ("pairs", "ycsb")):
        own = "" if key == "drive.preset" and drive == "emulated" else own
        lines = [own, f'engine.name = "{engine}"', f"{key} = {VALUES[key]}", PHASE if load == "pairs" else YCSB]
        plan_file.write_text("\n".join(lines))
        case = f"{key} on {drive} with {engine} and {load}"
        try:
            load_plan(plan_file)
        except SpillwayError as refused:
            assert not has_effect(key, drive, engine, load), f"{case}: {refused}"
            assert str(refused).startswith(f"{plan_file}: {key} "), case
            assert "leave it out" in str(refused) or key == "initial.path", case
        else:
            assert has_effect(key, drive, engine, load), case


ARMS = '[[arms]]\nname = "a"\n[[arms]]\nname = "b"\n'
COMPRESSES = "[drive.set]\ncompression.granule_bytes = 512\n"
SPILL = '[engine.spill]\ncapacity = "8GiB"\n'


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (PLAN + SPILL, "engine.spill.capacity belongs to the engine spillway, and engine.name is \"rocksdb\": leave it "
         'out, or set engine.name = "spillway".'),
        (PLAN + SPILL + ARMS, "{}: engine.spill.capacity belongs to the engine spillway"),
        (PLAN + ARMS + '"engine.spill.capacity" = "8GiB"\n', "{}: arms[1]: engine.spill.capacity belongs to"),
        (PLAN + SPILL + ARMS + '"engine.name" = "spillway"\n', ""),
        (PLAN + '[engine.adoc]\nmost_jobs = 3\n', "engine.adoc.most_jobs belongs to engine.policy = \"adoc\", and "),
        (PLAN + '[engine.adoc]\nmost_jobs = 3\n' + ARMS + '"engine.policy" = "adoc"\n', ""),
        (PLAN + '[engine.flow_control]\nl0_files = 3\n' + ARMS + '"engine.policy" = "adoc"\n',
         "engine.flow_control.l0_files belongs to engine.policy = \"flow-control\", and "),
        (PLAN + '[engine.flow_control]\nl0_files = 3\n' + ARMS + '"engine.policy" = "flow-control"\n', ""),
        (PLAN + '[sweep]\n"engine.spill.poll_ms" = [5, 6]\n', "{}: sweep: engine.spill.poll_ms belongs to"),
        (PLAN + '[sweep]\n"engine.spill.poll_ms" = [5, 6]\n' + ARMS + '"engine.name" = "spillway"\n', ""),
        (PLAN + '[sweep]\n"engine.name" = ["rocksdb", "spillway"]\n"engine.spill.poll_ms" = [5, 6]\n', ""),
        (PLAN + '[engine]\nname = "leveldb-vlog"\nvlog.gc = false\nvlog.gc_garbage_ratio = 0.5\n',
         "engine.vlog.gc_garbage_ratio belongs to engine.vlog.gc, and that is false"),
        (PLAN.replace("[engine.options]", "pacing = \"off\"\ntime_scale = 2\n[engine.options]"),
         "drive.time_scale belongs to drive.pacing = \"real\", and drive.pacing is \"off\""),
        (PLAN + '[initial]\nkind = "trimmed"\nfill = 0.5\n', "initial.fill belongs to initial.kind"),
        (PLAN + '[initial]\nprocedure = "trim-partition"\ncompression_ratio = 0.5\n', "initial.compression_ratio"),
        (PLAN + COMPRESSES + '[initial]\nprocedure = "trim-partition-precondition"\ncompression_ratio = 0.5\n', ""),
        (PLAN + COMPRESSES + '[initial]\ncompression_ratio = 0.5\n', ""),
        (PLAN + '[initial]\ncompression_ratio = 0.5\n',
         "initial.compression_ratio belongs to drives that compress, and this one does not: leave it out."),
        (PLAN + '[initial]\nkind = "trimmed"\npartition = "trimmed"\n', "initial.partition belongs to a drive"),
        (PLAN + '[initial]\nkind = "trimmed"\npartition = "as_is"\n', ""),
        (PLAN + '[kept]\nfrom = "old"\ntakes = "drive"\ndatabase = "other"\n', "kept.database belongs to kept.to, or"),
        (PLAN + '[kept]\nfrom = "old"\ntakes = "drive"\ndatabase = "other"\nto = "new"\n', ""),
        (PLAN + '[initial]\nfill = 0.5\n[kept]\nfrom = "old"\n', "initial.fill belongs to a run that starts from"),
        (PLAN + '[initial]\nfill = 0.5\n[kept]\nfrom = "old"\n[[prepare]]\n"kept.to" = "old"\n'
         '[[prepare.phases]]\nworkload = "fillseq"\n', ""),
        (PLAN + '[kept]\nfrom = "old"\n[[prepare]]\n"kept.to" = "old"\n"steady.tests" = ["end"]\n'
         '[[prepare.phases]]\nworkload = "fillseq"\n', "prepare[0]: steady.tests belongs to runs that are measured"),
        (PLAN + '[[phases]]\nworkload = "settle"\nthreads = 2\n', "phases.1.threads belongs to phases that read"),
        (PLAN + 'seek_nexts = 5\n', "phases.0.seek_nexts belongs to seekrandom, and the workload is \"fillran"),
        (PLAN + 'seek_nexts = 0\n', ""),
        (PLAN + 'diversion = "always"\n', "phases.0.diversion belongs to the engine spillway, and engine.name is"),
        (PLAN + 'diversion = "automatic"\n', ""),
        (PLAN + 'diversion = "always"\n' + ARMS + '"engine.name" = "spillway"\n', ""),
        (PLAN + 'diversion = "never"\n' + ARMS + '"engine.name" = "spillway"\n[[arms.phases]]\nworkload = "fillseq"\n',
         "phases.0.diversion belongs to the engine spillway"),
        (PLAN + '[[phases]]\nworkload = "settle"\ndiversion = "never"\n' + ARMS + '"engine.name" = "spillway"\n',
         "phases.1.diversion belongs to fillseq and fillrandom"),
        (PLAN + '[[phases]]\nworkload = "readrandom"\nduration_s = 1\ndiversion = "never"\n' + ARMS
         + '"engine.name" = "spillway"\n', "phases.1.diversion belongs to fillseq and fillrandom"),
        (PLAN + ARMS + '[[arms.phases]]\nworkload = "fillseq"\nseek_nexts = 5\n', "arms[1]: phases.0.seek_nexts"),
        ('drive.preset = "tiny"\nload.num = 5\nkept.from = "old"\n[[phases]]\nworkload = "settle"\n',
         "load.num belongs to phases that read or write, and all phases only wait"),
    ],
)  # fmt: skip
def test_a_key_is_checked_against_every_run_that_it_applies_to(plan_file: Path, text: str, said: str) -> None:
    plan_file.write_text(text)
    if not said:
        assert load_plan(plan_file).arms
        return
    with pytest.raises(SpillwayError) as refused:
        load_plan(plan_file)
    assert said.format(plan_file) in str(refused.value)


def test_what_the_command_line_sets_has_an_effect_in_what_is_run(plan_file: Path) -> None:
    plan_file.write_text(PLAN + SPILL + ARMS + '"engine.name" = "spillway"\n')
    given = ("engine.spill.poll_ms=5",)
    assert [arm.settings["engine.spill.poll_ms"] for arm in load_plan(plan_file, given).arms] == [5, 5]
    assert load_plan(plan_file, given, ("b",)).arms
    with pytest.raises(SpillwayError, match=r"^--set engine\.spill\.poll_ms belongs to the engine spillway, and "):
        load_plan(plan_file, given, ("a",))
    assert load_plan(plan_file, (), ("a",)).arms, "what stands above the arms is for the other arm"


def test_keys_that_the_command_line_leaves_without_effect_are_printed(
    fake: Fake, plan_file: Path, tmp_path: Path, invoke: Invoke
) -> None:
    words = ("--set", "drive.kind=directory", "--set", f"drive.path={tmp_path}", "--set", "drive.smart=off")
    ended = invoke("run", plan_file, "--out", tmp_path / "run", *words)
    assert ended.code == 0, ended.err
    assert ended.err == (
        'spillway: --set leaves keys of the plan without effect: drive.preset (drive.kind is "directory").\n'
    )
    again = invoke("run", plan_file, "--out", tmp_path / "again", *words, "--set", "drive.preset=")
    assert (again.code, again.err) == (0, "")
    assert invoke("run", plan_file, "--out", tmp_path / "plain").err == ""


VLOG = 'drive.preset = "tiny"\nengine.name = "leveldb-vlog"\n'
STATE = 'kept.from = "old"\n[[prepare]]\nkept.to = "old"\nphases = [{ workload = "fillseq" }]\n'


@pytest.mark.parametrize(
    ("written", "given", "lost"),
    [
        (f"{VLOG}engine.vlog.gc_garbage_ratio = 0.5\n{PHASE}", "engine.vlog.gc=false", "engine.vlog.gc_garbage_ratio"),
        (f"{VLOG}{PHASE}[sweep]\nengine.vlog.gc_garbage_ratio = [0.5, 0.6]\n", "engine.vlog.gc=false",
         "engine.vlog.gc_garbage_ratio"),
        (f"{VLOG}{PHASE}[[sweep.points]]\nengine.vlog.gc_garbage_ratio = 0.5\n", "engine.vlog.gc=false",
         "engine.vlog.gc_garbage_ratio"),
        (f"{EMULATED}{PHASE}[[arms]]\n{STATE}initial.fill = 0.5\n", "initial.kind=trimmed", "initial.fill"),
        (f"{EMULATED}initial.fill = 0.5\n{PHASE}[[arms]]\n{STATE}", "initial.kind=trimmed", "initial.fill"),
        (f"{EMULATED}initial.fill = 0.5\n{PHASE}[[arms]]\n{STATE}", "initial.fill=0.6", ""),
        (f"{VLOG}{PHASE}[sweep]\nengine.vlog.gc_garbage_ratio = [0.5, 0.6]\n", "engine.vlog.gc_garbage_ratio=0.7", ""),
    ],
)  # fmt: skip
def test_a_key_without_effect_is_told_wherever_the_plan_says_it(
    plan_file: Path, written: str, given: str, lost: str
) -> None:
    plan_file.write_text(written)
    assert [each.split()[0] for each in load_plan(plan_file, (given,)).without_effect] == ([lost] if lost else [])


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("drive", DRIVES)
def test_the_plan_of_a_run_directory_runs_again(plan_file: Path, tmp_path: Path, engine: str, drive: str) -> None:
    """It says every key of every run."""
    plan_file.write_text(DRIVES[drive] + f'engine.name = "{engine}"\n{PHASE}[[phases]]\nworkload = "settle"\n')
    plan = load_plan(plan_file)
    again = tmp_path / "again.toml"
    again.write_text(plan.to_toml())
    assert load_plan(again).to_toml() == plan.to_toml()
    with pytest.raises(SpillwayError, match=r"^--set engine\.adoc\.most_jobs belongs to"):
        load_plan(again, ("engine.adoc.most_jobs=3",))


@pytest.mark.parametrize(
    ("written", "given"),
    [
        ("engine.adoc.most_jobs = 9", "engine.policy=adoc"),
        ('engine.name = "leveldb"\nengine.vlog.segment = "1MiB"', "engine.name=leveldb-vlog"),
        (DIRECTORY + 'initial.kind = "trimmed"', "drive.estimate.preset=tiny"),
        (DIRECTORY + "fs.discard = false", "drive.estimate.preset=tiny"),
        (DIRECTORY + 'drive.estimate.capacity = "64MiB"', "drive.estimate.preset=tiny"),
        ('drive.time_scale = 2\ndrive.pacing = "off"', "drive.pacing=real"),
        ('kept.directory = "states"', "kept.from=x"),
        ('fs.discard = false\nengine.name = "raw"', "engine={name='leveldb'}"),
        ("kept.from = 'old'\nsweep.'phases.0.seek_nexts' = [5, 6]", "phases.0.workload=seekrandom"),
        ("sweep.'engine.spill.poll_ms' = [5, 6]", "engine.name=spillway"),
    ],
)
def test_what_the_command_line_sets_may_give_a_key_its_effect(plan_file: Path, written: str, given: str) -> None:
    own = "" if DIRECTORY in written else EMULATED
    plan_file.write_text(f"{own}{written}\n{PHASE}")
    with pytest.raises(SpillwayError, match="belongs to"):
        load_plan(plan_file)
    assert not load_plan(plan_file, (given,)).without_effect
    with pytest.raises(SpillwayError, match="belongs to"):
        load_plan(plan_file, ("sample_interval_ms=50",))


@pytest.mark.parametrize(
    ("key", "value", "needs"),
    [
        ("fs.size", '"63MiB"', 'drive.kind = "emulated"\ndrive.preset = "tiny"'),
        ("drive.path", '"."', 'drive.kind = "directory"'),
        ("drive.rated_writes", '"9TB"', DIRECTORY.strip()),
        ("drive.smart", '"off"', DIRECTORY.strip()),
        ("drive.estimate.preset", '"tiny"', DIRECTORY.strip()),
        ("drive.estimate.capacity", '"64MiB"', WATCHED.strip()),
        ("kept.takes", '"files"', 'kept.from = "old"'),
        ("kept.takes", '"drive"', 'kept.from = "old"'),
        ("cost.currency", '"EUR"', "cost.drive_price = 9"),
    ],
)
def test_a_key_above_the_arms_is_for_those_that_have_a_use_for_it(
    plan_file: Path, key: str, value: str, needs: str
) -> None:
    of_drive = needs.startswith("drive")
    other = DIRECTORY if "emulated" in needs else EMULATED
    arms = f'[[arms]]\nname = "a"\n{needs}\n[[arms]]\nname = "b"\n{other if of_drive else ""}'
    above = "" if of_drive else EMULATED
    plan_file.write_text(f"{above}{key} = {value}\n{PHASE}{arms}")
    first, second = load_plan(plan_file).arms
    assert first.settings[key] != ARM_KEYS[key].default
    assert second.settings[key] == (ARM_KEYS[key].default if key != "drive.smart" else "off")
    plan_file.write_text(f"{above}{PHASE}{arms}{key} = {value}\n")
    if key != "drive.path":
        with pytest.raises(SpillwayError, match=rf"arms\[1\]: {key} belongs to "):
            load_plan(plan_file)


def test_keys_above_the_arms_that_are_for_others_are_in_no_request(plan_file: Path, tmp_path: Path) -> None:
    lines = [
        'fs.size = "63MiB"',
        'initial.partition = "trimmed"',
        'kept.takes = "drive"',
        PHASE,
        "[[arms]]",
        'name = "a"',
    ]
    lines += [EMULATED, 'kept.from = "old"', "[[arms]]", 'name = "b"', WATCHED]
    plan_file.write_text("\n".join(lines))
    emulated, watched = (arm.request(tmp_path, 1) for arm in load_plan(plan_file).arms)
    assert emulated["fs"]["size_bytes"] == emulated["target"]["initial"]["partition_bytes"] == 63 * 2**20
    assert watched["fs"]["size_bytes"] == watched["target"]["estimate"]["initial"]["partition_bytes"] == 0


POINTS = "[[sweep.points]]\n"
LOADED = PLAN + '[[phases]]\nname = "work"\n'


@pytest.mark.parametrize(
    ("phase", "points", "said"),
    [
        ("operations = 5\n", [("readrandom", "seek_nexts", 0), ("seekrandom", "seek_nexts", 10)], ""),
        ("operations = 5\n", [("readrandom", "seek_nexts", 10), ("seekrandom", "seek_nexts", 10)], ""),
        ("operations = 5\nseek_nexts = 10\n", [("readrandom", "threads", 1), ("seekrandom", "threads", 2)], ""),
        ("operations = 5\nseek_nexts = 10\n", [("readrandom", "threads", 1), ("overwrite", "threads", 2)],
         "phases.1.seek_nexts belongs to seekrandom, and no run has that: leave it out."),
        ("operations = 5\n", [("readrandom", "seek_nexts", 1), ("overwrite", "seek_nexts", 2)],
         "sweep: phases.work.seek_nexts belongs to seekrandom, and no run has that: leave it out."),
        ("threads = 4\n", [("overwrite", "measured", True), ("settle", "measured", True)], ""),
        ("threads = 4\n", [("waitforcompaction", "measured", True), ("settle", "measured", True)],
         "phases.1.threads belongs to phases that read or write, and no run has that"),
        ("", [("overwrite", "operations", 5), ("settle", "operations", 5)], ""),
        ("", [("overwrite", "threads", 1), ("settle", "threads", 1)], ""),
        ('workload = "overwrite"\noperations = 5\nrate_ops_s = 9\nburst_s = 1\ngap_s = 1\n',
         [("bursts", "threads", 1), ("poisson", "threads", 2)], ""),
        ('workload = "overwrite"\noperations = 5\nrate_ops_s = 9\nburst_s = 1\ngap_s = 1\n',
         [("constant", "threads", 1), ("poisson", "threads", 2)], 'phases.1.burst_s belongs to arrivals = "bursts"'),
    ],
)  # fmt: skip
def test_a_phases_key_is_checked_against_the_phase_at_all_points(
    plan_file: Path, tmp_path: Path, phase: str, points: list[tuple[str, str, object]], said: str
) -> None:
    axis = "arrivals" if "burst_s" in phase else "workload"
    tables = [
        f'{POINTS}"phases.work.{axis}" = "{value}"\n"phases.work.{key}" = {str(other).lower()}\n'
        for value, key, other in points
    ]
    plan_file.write_text(LOADED + phase + "".join(tables))
    if said:
        with pytest.raises(SpillwayError) as refused:
            load_plan(plan_file)
        assert str(refused.value).startswith(f"{plan_file}: {said}")
        return
    plan = load_plan(plan_file)
    again = tmp_path / "again.toml"
    again.write_text(plan.to_toml())
    assert load_plan(again).to_toml() == plan.to_toml()
    for arm, (value, key, other) in zip(plan.arms, points, strict=True):
        work = arm.phases[1]
        assert work[axis] == value
        waits = value == "settle"
        assert work["seek_nexts"] == (10 if value == "seekrandom" else 0)
        written = {"operations": None, "threads": 1} | tomllib.loads(phase) | {key: other}
        expected = (None, 1) if waits else (written["operations"], written["threads"])
        assert (work["operations"], work["threads"]) == expected
        assert work["burst_s"] == (1 if value == "bursts" else None)
        assert work[key] == other or waits or key == "seek_nexts"


@pytest.mark.parametrize(
    ("written", "given", "key"),
    [
        ("", 'engine={name="rocksdb",vlog={segment="1MiB"}}', "engine.vlog.segment"),
        ("", 'engine={name="rocksdb",spill={capacity="1GiB"}}', "engine.spill.capacity"),
        ("", 'initial={kind="trimmed",fill=0.5}', "initial.fill"),
        ('engine.name = "raw"\n', "fs={discard=false}", "fs.discard"),
        ("", "drive.estimate={preset='tiny'}", "drive.estimate.preset"),
        ("", 'phases=[{workload="fillseq",seek_nexts=5}]', "phases.0.seek_nexts"),
        ("", "phases.fillrandom.seek_nexts=5", "phases.fillrandom.seek_nexts"),
        ("", "phases.0.ycsb.recordcount=5", "phases.0.ycsb.recordcount"),
        ("", "phases.fillrandom.ycsb={recordcount=5}", "phases.fillrandom.ycsb"),
        ("", "ycsb.recordcount=5", "ycsb.recordcount"),
        ("", "kept={takes='files'}", "kept.takes"),
    ],
)
def test_each_key_of_a_table_that_the_command_line_sets_has_an_effect(
    plan_file: Path, written: str, given: str, key: str
) -> None:
    plan_file.write_text(EMULATED + written + PHASE)
    with pytest.raises(SpillwayError, match=rf"^--set {key} belongs to "):
        load_plan(plan_file, (given,))


def test_the_command_line_is_checked_against_preparations_that_are_run(plan_file: Path) -> None:
    makes = '[[prepare]]\n"kept.to" = "{}"\n"engine.name" = "leveldb-vlog"\n[[prepare.phases]]\nworkload = "fillseq"\n'
    goes_on = makes.format("more").replace('"kept.to"', '"kept.from" = "old"\n"kept.to"')
    arms = '[[arms]]\nname = "q"\n[[arms]]\nname = "p"\n"kept.from" = "more"\n"engine.name" = "leveldb-vlog"\n'
    plan_file.write_text(PLAN + arms + makes.format("old") + goes_on)
    assert [each.name for each in load_plan(plan_file).preparations] == ["old", "more"]
    given = ("engine.vlog.gc=false",)
    assert [each.name for each in load_plan(plan_file, given, ("p",)).preparations] == ["old", "more"]
    assert load_plan(plan_file, (), ("q",)).preparations == []
    with pytest.raises(SpillwayError, match=r"^--set engine\.vlog\.gc belongs to the engine leveldb-vlog"):
        load_plan(plan_file, given, ("q",))


DISK = """name = "disk"
[capacity]
capacity_bytes = "64MiB"
[disk]
revolution_ns = 8_333_333
"""


@pytest.mark.parametrize(
    "written",
    ['kind = "steady"', 'kind = "sequential"', "warmup_capacities = 1", "compression_ratio = 0.5", "fill = 0.5"],
)
def test_a_disk_has_no_initial_state(plan_file: Path, written: str) -> None:
    preset = plan_file.parent / "presets" / "disk.toml"
    preset.write_text(DISK)
    words = r"initial\.\w+ belongs to drives of flash, and a disk has no state that writing leaves: leave it out\.$"
    by_file = PLAN.replace('preset = "tiny"', 'preset_file = "presets/disk.toml"')
    made = PLAN + "[drive.set]\ndisk.revolution_ns = 8_333_333\n"
    for plan in (PLAN.replace("tiny", "disk"), by_file, made):
        plan_file.write_text(f"{plan}[initial]\n{written}\n")
        with pytest.raises(SpillwayError, match=words):
            load_plan(plan_file)
    is_of_flash = written.startswith(("kind", "fill", "warmup"))
    if is_of_flash:
        plan_file.write_text(f'{PLAN}[initial]\n{written}\n[sweep]\n"drive.preset" = ["tiny", "disk"]\n')
        assert len(load_plan(plan_file).arms) == 2
        preset.write_text("what = is this")
        plan_file.write_text(f"{PLAN.replace('tiny', 'disk')}[initial]\n{written}\n")
        assert load_plan(plan_file).arms, "the native side says what is wrong with a preset"


def test_a_disk_may_be_called_trimmed_as_every_disk_is(plan_file: Path) -> None:
    """So that a plan of SSDs from an erased state runs on a disk alone."""
    (plan_file.parent / "presets" / "disk.toml").write_text(DISK)
    plan_file.write_text(f'{PLAN}[initial]\nkind = "trimmed"\n')
    assert load_plan(plan_file, ("drive.preset=disk",)).without_effect == ()
    plan_file.write_text(f'{PLAN.replace("tiny", "disk")}[initial]\nkind = "trimmed"\n')
    assert load_plan(plan_file).arms
    plan_file.write_text(f'{PLAN.replace("tiny", "disk")}[initial]\nprocedure = "trim-partition"\n')
    with pytest.raises(SpillwayError, match=r"initial\.procedure belongs to drives of flash"):
        load_plan(plan_file)


def test_a_resolved_plan_loses_nothing_that_nobody_wrote(plan_file: Path, tmp_path: Path) -> None:
    again = tmp_path / "again.toml"
    again.write_text(load_plan(plan_file).to_toml())
    assert load_plan(again, ("engine.name=leveldb-vlog", "engine.options={}")).without_effect == ()


def test_a_phases_key_that_the_command_line_leaves_without_effect_is_printed(plan_file: Path) -> None:
    plan_file.write_text(LOADED + 'workload = "seekrandom"\nseek_nexts = 5\noperations = 9\n')
    told = load_plan(plan_file, ("phases.work.workload=overwrite",)).without_effect
    assert told == ('phases.1.seek_nexts (the workload is "overwrite")',)
