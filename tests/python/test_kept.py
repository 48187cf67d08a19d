"""What plans keep from one run to the next: names, preparations, and what is refused; and kills of the real program."""

import json
import os
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest
from conftest import PLAN, Fake, Invoke, Outcome, check_refused

from spillway.errors import SpillwayError
from spillway.plan.document import load_plan
from spillway.run.execute import execute
from spillway.rundir.directory import read_run
from spillway.suite.scale import Scale, parse_factor

KEPT = '\n[kept]\nfrom = "loaded-{drive.preset}"\n'
PREPARE = (
    '\n[[prepare]]\n"kept.to" = "loaded-{drive.preset}"\n[[prepare.phases]]\nworkload = "fillseq"\nmeasured = false\n'
)


def write(path: Path, text: str) -> Path:
    path.write_text(text)
    return path


def make_state(place: Path, name: str, note: Any = None) -> None:
    (place / name).mkdir(parents=True)
    (place / name / "kept.json").write_text(
        json.dumps({"note": note, "bytes": 10, "runs": 1, "drive_state": None, "databases": {}})
    )


def test_a_run_may_read_what_is_kept(plan_file: Path) -> None:
    reads = PLAN.replace("fillrandom", "readrandom")
    with pytest.raises(SpillwayError, match="would find an empty store"):
        load_plan(write(plan_file, reads))
    with pytest.raises(SpillwayError, match="would find an empty store"):
        load_plan(write(plan_file, reads + '[kept]\nfrom = "a"\ntakes = "drive"\n'))
    plan = load_plan(write(plan_file, reads + KEPT + PREPARE))
    assert plan.arms[0].settings["kept.from"] == "loaded-tiny"
    assert [each.name for each in plan.preparations] == ["loaded-tiny"]
    assert plan.preparations[0].settings["kept.from"] == ""


def test_the_resolved_plan_is_the_same_plan(plan_file: Path, tmp_path: Path) -> None:
    sweep = '\n[sweep]\n"load.value_bytes" = [100, 200]\n'
    prepare = PREPARE.replace("loaded-{drive.preset}", "loaded-{load.value_bytes}")
    text = PLAN + KEPT.replace("drive.preset", "load.value_bytes") + prepare + sweep
    plan = load_plan(write(plan_file, text))
    assert [each.name for each in plan.preparations] == ["loaded-100", "loaded-200"]
    again = load_plan(write(tmp_path / "again.toml", plan.to_toml()))
    assert again.to_toml() == plan.to_toml()
    assert [each.document() for each in again.preparations] == [each.document() for each in plan.preparations]
    assert [each.document() for each in again.arms] == [each.document() for each in plan.arms]
    # A part of the plan needs a part of the preparations.
    one = load_plan(plan_file, only=("value_bytes 200",))
    assert [each.name for each in one.preparations] == ["loaded-200"]


def test_the_place_of_the_states_is_one_for_the_whole_plan(plan_file: Path, tmp_path: Path) -> None:
    write(plan_file, PLAN + KEPT + PREPARE)
    for text, overrides in ((PLAN + KEPT + 'directory = "there"\n' + PREPARE, ()), (None, ("kept.directory=there",))):
        plan = load_plan(plan_file if text is None else write(tmp_path / "with.toml", text), overrides)
        places = {each.settings["kept.directory"] for each in (*plan.arms, *plan.preparations)}
        assert {Path(place).name for place in places} == {"there"} and len(places) == 1
        again = load_plan(write(tmp_path / "again.toml", plan.to_toml()))
        assert [each.document() for each in again.preparations] == [each.document() for each in plan.preparations]


def test_a_preparation_has_what_it_says_at_every_point(plan_file: Path) -> None:
    sweep = '\n[sweep]\n"engine.options.write_buffer_size" = [2, 4]\n'
    with pytest.raises(SpillwayError, match="loaded-tiny would be made in several ways"):
        load_plan(write(plan_file, PLAN + KEPT + PREPARE + sweep))
    own = PREPARE.replace("[[prepare]]\n", '[[prepare]]\n"engine.options.write_buffer_size" = 8\n')
    plan = load_plan(write(plan_file, PLAN + KEPT + own + sweep))
    assert [each.engine_options["write_buffer_size"] for each in plan.preparations] == ["8"]
    scale = Scale(parse_factor("1/2", ""), ("load.num", "engine.options.write_buffer_size"))
    halved = load_plan(plan_file, scale=lambda document: scale.applied(document, ""))
    assert halved.preparations[0].settings["load.num"] == 5000
    assert halved.preparations[0].engine_options["write_buffer_size"] == "4"
    assert load_plan(plan_file, ("load.num=9",)).preparations[0].settings["load.num"] == 9


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ('[kept]\ntakes = "drive"\n', "kept.takes belongs to kept.from, and no state is named there"),
        ('[kept]\nto = "../out"\n', "kept.to is '../out'; a name has letters, digits"),
        (f'[kept]\nto = "{"k" * 201}"\n', "kept.to is 'k*'; a name has .* 200 at most"),
        ('[kept]\nto = "a-{drive.presets}"\n', "and the plan gives no drive.presets"),
        ('[kept]\nto = "a"\ndatabase = "a/b"\n', "kept.database is 'a/b'; a name has letters"),
        ('[kept]\nform = "a"\n', "kept.form is not a key of a plan"),
        ('[[prepare]]\n[[prepare.phases]]\nworkload = "fillseq"\n', r"prepare\[0\]: kept.to is missing"),
        ('[prepare]\n"kept.to" = "a"\n', r"prepare is a list of tables: write \[\[prepare\]\]"),
        ('[[prepare]]\n"kept.to" = "a"\n', "phases are missing"),
        ('[[prepare]]\n"kept.to" = "a"\n"load.nun" = 1\n[[prepare.phases]]\nworkload = "fillseq"\n', "load.nun"),
    ],
)
def test_refuses_with_a_sentence(plan_file: Path, text: str, sentence: str) -> None:
    with pytest.raises(SpillwayError, match=sentence):
        load_plan(write(plan_file, PLAN + text))


def test_directories_have_no_drive_to_keep(plan_file: Path, tmp_path: Path) -> None:
    directory = PLAN.replace('preset = "tiny"', f'kind = "directory"\npath = "{tmp_path}"')
    load_plan(write(plan_file, directory + '[kept]\nto = "a"\n'))
    with pytest.raises(SpillwayError, match="a plain directory has a database and no drive"):
        load_plan(write(plan_file, directory + '[kept]\nfrom = "a"\ntakes = "files"\n'))
    load_plan(write(plan_file, directory + '[kept]\nfrom = "a"\n'))
    load_plan(write(plan_file, directory))
    with pytest.raises(SpillwayError, match="a drive model that only watches is not kept"):
        load_plan(write(plan_file, directory + '[kept]\nto = "a"\n[drive.estimate]\npreset = "tiny"\n'))


@pytest.mark.reports
def test_a_state_that_is_not_there_ends_the_command_before_anything_runs(
    plan_file: Path, tmp_path: Path, fake: Fake, invoke: Invoke, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    make_state(tmp_path / "runs/kept", "other")
    outcome = invoke("run", write(plan_file, PLAN + KEPT), "--out", tmp_path / "out")
    assert outcome.code == 2
    assert "small: kept.from names loaded-tiny, and there is no such state" in outcome.err
    assert "there are: other" in outcome.err
    check_refused(tmp_path / "out", "small: kept.from names loaded-tiny, and there is no such state")
    assert fake.requests() == []


def test_a_preparation_is_run_until_its_state_is_there(plan_file: Path, tmp_path: Path, fake: Fake) -> None:
    plan = load_plan(write(plan_file, PLAN + KEPT + PREPARE))
    place = tmp_path / "states"

    def asked() -> list[dict[str, Any]]:
        before = len(fake.requests())
        finished = execute(plan, tmp_path / f"out-{before}", [], place=place)
        assert finished.summary["complete"]
        assert list(finished.summary["prepared"]) == ["loaded-tiny"]
        return fake.requests()[before:]

    prepared, measured = asked()
    assert prepared["phases"][0]["workload"] == "fillseq"
    assert prepared["kept"]["to"] == measured["kept"]["from"] == str(place / "loaded-tiny")
    assert "from" not in prepared["kept"]
    assert (tmp_path / "out-0/prepared/loaded-tiny/samples.csv").is_file()
    make_state(place, "loaded-tiny", {"plan": "another"})  # of that name, and made by something else
    assert len(asked()) == 2
    (place / "loaded-tiny/kept.json").unlink()
    (place / "loaded-tiny").rmdir()
    make_state(place, "loaded-tiny", prepared["kept"]["note"])
    assert [each["phases"][0]["workload"] for each in asked()] == ["fillrandom"]
    preset = tmp_path / "presets" / "tiny.toml"
    text = preset.read_text()
    preset.write_text(text.replace("0.2", "0.3"))
    assert len(asked()) == 2, "a changed preset is another preparation"
    preset.write_text(text)
    plan = load_plan(plan_file, ("load.num=77",))
    assert len(asked()) == 2, "another load is another preparation"


def test_preparations_of_like_names_have_directories_of_their_own(plan_file: Path, tmp_path: Path, fake: Fake) -> None:
    names = ["aged-1.5", "aged-1-5", "Aged-1-5"]
    load = '\n[[prepare]]\n"kept.to" = "{}"\n[[prepare.phases]]\nworkload = "fillseq"\n'
    write(plan_file, PLAN + '[kept]\nfrom = "aged-1.5"\n' + "".join(map(load.format, names)))
    execute(load_plan(plan_file), tmp_path / "out", [], place=tmp_path / "states")
    assert sorted(path.name for path in (tmp_path / "out/prepared").iterdir()) == sorted(names)


def test_a_preparation_that_is_refused_leaves_nothing(plan_file: Path, tmp_path: Path, fake: Fake) -> None:
    fake.behave("bad_input")
    with pytest.raises(SpillwayError):
        execute(load_plan(write(plan_file, PLAN + KEPT + PREPARE)), tmp_path / "out", [], place=tmp_path / "states")
    assert not (tmp_path / "out").exists()
    assert len(fake.requests()) == 1


def test_what_a_preparation_has_recorded_is_kept_where_its_arm_is_refused(
    plan_file: Path, tmp_path: Path, fake: Fake, invoke: Invoke, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake.behave("bad_input")
    monkeypatch.setenv("FAKE_WHERE", json.dumps({"value_bytes": 1024}))
    write(plan_file, PLAN + KEPT + PREPARE.replace("[[prepare]]", "[[prepare]]\nload.value_bytes = 100"))
    ended = invoke("run", plan_file, "--out", tmp_path / "out", "--set", f"kept.directory={tmp_path / 'states'}")
    assert (ended.code, ended.err.count("\n")) == (2, 1)
    run = read_run(tmp_path / "out")
    assert (run.manifest["complete"], run.manifest["refused"]) == (False, False)
    assert str(run.manifest["failure"]) in ended.err
    assert (tmp_path / "out/prepared/loaded-tiny/samples.csv").is_file()


@pytest.mark.reports
@pytest.mark.parametrize("mode", ["full at once", "fails"])
@pytest.mark.parametrize("rest", ["", '\n[sweep]\n"load.value_bytes" = [100, 200]\n'], ids=["arm", "sweep"])
def test_a_preparation_that_fills_its_drive_leaves_a_run_that_says_so(
    plan_file: Path, tmp_path: Path, fake: Fake, invoke: Invoke, mode: str, rest: str
) -> None:
    fake.behave(mode)
    prepare = PREPARE.replace("[[prepare]]", "[[prepare]]\n" + ("load.value_bytes = 100" if rest else ""))
    write(plan_file, PLAN + KEPT + prepare + rest)
    ended = invoke("run", plan_file, "--out", tmp_path / "out", "--set", f"kept.directory={tmp_path / 'states'}")
    assert (ended.code, ended.err.count("\n")) == (2, 1)
    assert "the preparation loaded-tiny failed: the drive is full" in ended.err
    manifest = json.loads((tmp_path / "out/manifest.json").read_text())
    assert manifest["complete"] is False
    assert "the drive is full" in manifest["failure"]
    assert "the drive is full" in (tmp_path / "out/report.html").read_text()
    assert (tmp_path / "out/prepared/loaded-tiny/result.json").is_file()
    assert len(fake.requests()) == 1, "no arm is run without its state"


REQUEST: dict[str, Any] = {
    "target": {
        "kind": "emulated",
        "pacing": "off",
        "initial": {"kind": "trimmed"},
        "drive": {"set": {"capacity.capacity_bytes": "64MiB", "capacity.spare_factor": "0.2"}},
    },
    "engine": {"name": "rocksdb", "options": {"write_buffer_size": "262144", "compression": "kNoCompression"}},
    "load": {"num": 5000, "value_bytes": 400},
}


def asked_of(native: Path, request: dict[str, Any]) -> subprocess.Popen[bytes]:
    process = subprocess.Popen([native, "run"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdin is not None
    process.stdin.write(json.dumps(request).encode())
    process.stdin.close()
    return process


@pytest.mark.native
def test_a_state_of_another_format_is_refused_by_name(real_native: Path, tmp_path: Path) -> None:
    state = tmp_path / "state"
    phases = [{"name": "only", "workload": "fillseq", "operations": 100}]
    request = {**REQUEST, "directory": str(tmp_path / "db"), "phases": phases, "kept": {"to": str(state)}}
    assert asked_of(real_native, request).wait() == 0
    kept = json.loads((state / "kept.json").read_text())
    assert kept["format"] == "spillway-kept-1"
    (state / "kept.json").write_text(json.dumps(kept | {"format": "spillway-kept-2"}))
    again = asked_of(real_native, {**request, "directory": str(tmp_path / "other"), "kept": {"from": str(state)}})
    assert again.stdout is not None
    said = again.stdout.read().decode()
    assert again.wait() == 2
    assert 'is of format \\"spillway-kept-2\\", and this version reads \\"spillway-kept-1\\"' in said


@pytest.mark.native
def test_a_kill_while_a_state_is_replaced_leaves_one_whole(real_native: Path, tmp_path: Path) -> None:
    state = tmp_path / "state"

    def request(workload: str, kept: dict[str, str], turn: int) -> dict[str, Any]:
        phases = [{"name": "only", "workload": workload, "operations": 5000}]
        return {**REQUEST, "directory": str(tmp_path / f"db-{workload}-{turn}"), "phases": phases, "kept": kept}

    def result(process: subprocess.Popen[bytes]) -> dict[str, Any]:
        assert process.stdout is not None
        last: dict[str, Any] = json.loads(process.stdout.read().splitlines()[-1])
        assert process.wait() == 0, last
        return last

    result(asked_of(real_native, request("fillseq", {"to": str(state)}, 0)))
    seen = set()
    for turn in range(6):
        generation = json.loads((state / "kept.json").read_text())["generation"]
        process = asked_of(real_native, request("overwrite", {"from": str(state), "to": str(state)}, turn))
        due = time.monotonic() + 60
        while not (state / str(generation + 1)).exists() and process.poll() is None and time.monotonic() < due:
            time.sleep(0.0005)
        time.sleep(turn * 0.004)  # further and further into it
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
        read = result(asked_of(real_native, request("readrandom", {"from": str(state)}, turn)))
        assert read["not_found"] == 0
        after = json.loads((state / "kept.json").read_text())["generation"]
        assert after in (generation, generation + 1)
        seen.add(after - generation)
    assert 0 in seen, "no kill came in the midst of it"


@pytest.mark.reports
@pytest.mark.native
def test_a_state_of_another_engine_on_a_directory_is_refused_with_advice_that_works(
    real_native: Path, plan_file: Path, tmp_path: Path, invoke: Invoke
) -> None:
    place = tmp_path / "disk"
    place.mkdir()
    load = '[load]\nnum = 2000\n[[phases]]\nworkload = "{}"\noperations = 2000\n'
    kept_in = f'kept.directory = "{tmp_path / "states"}"\ndrive.kind = "directory"\ndrive.path = "{place}"\n'

    def run(name: str, keys: str, workload: str) -> Outcome:
        write(plan_file, kept_in + keys + load.format(workload))
        return invoke("run", plan_file, "--out", tmp_path / name)

    for engine in ("leveldb", "rocksdb"):
        assert run(engine, f'engine.name = "{engine}"\nkept.to = "{engine}"\n', "fillseq").code == 0
    ended = run("refused", 'engine.name = "rocksdb"\nkept.from = "leveldb"\n', "readrandom")
    assert (ended.code, ended.err.count("\n")) == (2, 1)
    assert "set engine.name to leveldb, or start from another state" in ended.err
    check_refused(tmp_path / "refused", "set engine.name to leveldb, or start from another state")
    for engine in ("leveldb", "rocksdb"):
        assert run(f"on-{engine}", f'engine.name = "{engine}"\nkept.from = "{engine}"\n', "readrandom").code == 0
    assert list(place.iterdir()) == []
