"""Keys that could have no effect are refused, wherever a plan says them, and those that have one are not."""

import itertools
from pathlib import Path

import pytest
from conftest import PLAN, Fake, Invoke

from spillway.errors import SpillwayError
from spillway.plan import load_plan
from spillway.plan_keys import ARM_KEYS, ENGINES, OPEN_TABLES

# A value other than the default for each key that is judged here.
VALUES: dict[str, object] = {
    "data_directory": '"."', "drive.preset": '"quickstart"', "drive.capacity": '"64MiB"', "drive.time_scale": 2.0,
    "drive.pacing": '"off"', "drive.smart": '"off"', "drive.set": "{ capacity.spare_factor = 0.3 }",
    "initial.kind": '"trimmed"', "initial.fill": 0.5, "initial.compression_ratio": 0.5,
    "initial.warmup_capacities": 0.5, "initial.path": '"small.toml"', "initial.partition": '"trimmed"',
    "initial.procedure": '"partition-trim"',
    "kept.directory": '"states"', "kept.takes": '"database"', "kept.database": '"other"',
    "fs.discard": "false", "fs.placement": '"first_fit"', "fs.page_cache_bytes": 4096,
    "fs.writeback_bytes": 8192, "fs.closed_dirty_bytes": 4096,
    "engine.policy": '"no-slowdown"', "engine.adoc.interval_ms": 5, "engine.adoc.least_jobs": 3,
    "engine.adoc.most_jobs": 9, "engine.adoc.least_buffer": '"1MiB"', "engine.adoc.most_buffer": '"9MiB"',
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
    "sample_interval_ms", "drive.kind", "drive.preset_file", "drive.path", "drive.rated_writes",
    "drive.estimate.preset", "drive.estimate.preset_file", "drive.estimate.capacity",
    "kept.from", "kept.to", "cost.drive_price", "cost.currency", "fs.size", "engine.name", "steady.tests",
    "engine.options", "ycsb",
}  # fmt: skip

PHASE = '[[phases]]\nworkload = "fillrandom"\noperations = 9\n'
YCSB = '[ycsb]\nrecordcount = 9\noperationcount = 9\n[[phases]]\nworkload = "ycsb-load"\n'
EMULATED = 'drive.preset = "quickstart"\n'
DIRECTORY = 'drive.kind = "directory"\ndrive.path = "."\n'
WATCHED = DIRECTORY + 'drive.estimate.preset = "tiny"\n'
DRIVES = {"emulated": EMULATED, "directory": DIRECTORY, "watched": WATCHED}

MODEL_ONLY = {"data_directory", "drive.preset", "drive.capacity", "drive.time_scale", "drive.pacing", "drive.set"}
OWNERS = {"policy": "rocksdb", "adoc": "", "spill": "spillway", "vlog": "leveldb-vlog"}


def has_effect(key: str, drive: str, engine: str, load: str) -> bool:
    """By the documentation, for a run that keeps nothing and has no key but this one beside its drive and engine."""
    table, _, rest = key.partition(".")
    if key in MODEL_ONLY:
        return drive == "emulated"
    if key == "drive.smart":
        return drive != "emulated"
    if table == "kept" or key == "initial.path":
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
        (PLAN + '[sweep]\n"engine.spill.poll_ms" = [5, 6]\n', "{}: sweep: engine.spill.poll_ms belongs to"),
        (PLAN + '[sweep]\n"engine.spill.poll_ms" = [5, 6]\n' + ARMS + '"engine.name" = "spillway"\n', ""),
        (PLAN + '[sweep]\n"engine.name" = ["rocksdb", "spillway"]\n"engine.spill.poll_ms" = [5, 6]\n', ""),
        (PLAN + '[engine]\nname = "leveldb-vlog"\nvlog.gc = false\nvlog.gc_garbage_ratio = 0.5\n',
         "engine.vlog.gc_garbage_ratio belongs to engine.vlog.gc, and that is false"),
        (PLAN.replace("[engine.options]", "pacing = \"off\"\ntime_scale = 2\n[engine.options]"),
         "drive.time_scale belongs to drive.pacing = \"real\", and drive.pacing is \"off\""),
        (PLAN + '[initial]\nkind = "trimmed"\nfill = 0.5\n', "initial.fill belongs to initial.kind"),
        (PLAN + '[initial]\nprocedure = "trim-partition"\ncompression_ratio = 0.5\n', "initial.compression_ratio"),
        (PLAN + '[initial]\nprocedure = "trim-partition-precondition"\ncompression_ratio = 0.5\n', ""),
        (PLAN + '[initial]\nfill = 0.5\n[kept]\nfrom = "old"\n', "initial.fill belongs to a run that starts from"),
        (PLAN + '[initial]\nfill = 0.5\n[kept]\nfrom = "old"\n[[prepare]]\n"kept.to" = "old"\n'
         '[[prepare.phases]]\nworkload = "fillseq"\n', ""),
        (PLAN + '[kept]\nfrom = "old"\n[[prepare]]\n"kept.to" = "old"\n"steady.tests" = ["end"]\n'
         '[[prepare.phases]]\nworkload = "fillseq"\n', "prepare[0]: steady.tests belongs to runs that are measured"),
        (PLAN + '[[phases]]\nworkload = "settle"\nthreads = 2\n', "phases[1]: settle has no threads; leave out"),
        (PLAN + 'seek_nexts = 0\n', "phases[0]: seek_nexts belongs to seekrandom; leave it out of fillrandom."),
        ('drive.preset = "tiny"\nload.num = 5\nkept.from = "old"\n[[phases]]\nworkload = "settle"\n',
         "load.num belongs to phases that read or write, and all phases only wait"),
    ],
)  # fmt: skip
def test_a_key_is_held_against_all_the_runs_that_it_is_said_for(plan_file: Path, text: str, said: str) -> None:
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


def test_what_the_command_line_leaves_without_effect_is_told(
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
