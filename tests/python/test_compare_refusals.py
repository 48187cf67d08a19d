"""What `spillway compare` refuses: bad words, damaged and cut-off directories, runs that cannot be compared."""

import json
import os
import random
import shutil
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import tomli_w
from compared_runs import ARMS, Document, Made, edit
from conftest import PLAN, Invoke

# Bad input: the command's words after a run directory "run" of five repetitions was made, and what the sentence says.
BAD: list[tuple[list[str], str]] = [
    (["run", "--metric", "throughput"], "--metric throughput is none; did you mean 'throughput_ops_s'?"),
    (["run", "--varies", "version"], "--varies version is none; did you mean 'versions'?"),
    (["run:newer"], "run: it has no arm 'newer'; did you mean 'new'? Its arms: old, new."),
    (["run:"], "run: it has no arm ''. Its arms: old, new."),
    (["run:old"], "run: it has one arm"),
    (["run:old", "run:old"], "run:old is named twice"),
    (["run", "run"], "run:old is named twice"),
    (["run", "./run:new"], "is named twice"),
    (["nowhere"], "nowhere: there is no such run directory"),
    (["run", "nowhere:old"], "nowhere: there is no such run directory"),
    (["run/summary.json"], "run/summary.json: there is no such run directory"),
    (["run/arms"], "run/arms: it has no summary.json"),
    ([":"], ":: there is no such run directory"),
]


@pytest.mark.parametrize(("words", "sentence"), BAD, ids=[" ".join(row[0]) for row in BAD])
def test_bad_words_are_refused_in_one_sentence(words: list[str], sentence: str, made: Made, invoke: Invoke) -> None:
    made.run("run", repetitions=2)
    refused = invoke("compare", *words)
    assert (refused.code, refused.out) == (2, "")
    assert refused.err.startswith("spillway: ")
    assert sentence in refused.err
    assert refused.err.count("\n") == 1


def test_no_run_is_bad_input(invoke: Invoke) -> None:
    assert invoke("compare").code == 2


def spoil_json(run: Path, name: str, change: Callable[[Any], Any]) -> None:
    document = json.loads((run / name).read_text())
    (run / name).write_text(json.dumps(change(document)))


SAMPLES = "arms/new-r2/samples.csv"
DAMAGE: dict[str, tuple[Callable[[Path], object], str]] = {
    "no summary": (lambda run: (run / "summary.json").unlink(), "run: it has no summary.json"),
    "an empty summary": (lambda run: (run / "summary.json").write_text(""), "summary.json: this is not JSON"),
    "half a summary": (
        lambda run: (run / "summary.json").write_text((run / "summary.json").read_text()[:400]),
        "summary.json: this is not JSON",
    ),
    "no arms": (lambda run: spoil_json(run, "summary.json", lambda d: d | {"arms": {}}), "no arm was run"),
    "no manifest": (lambda run: (run / "manifest.json").unlink(), "manifest.json: the run directory is not whole"),
    "a later layout": (
        lambda run: spoil_json(run, "manifest.json", lambda d: d | {"spillway_run": 2}),
        "manifest.json: spillway_run is 2, and this version of spillway reads up to 1",
    ),
    "no plan": (lambda run: (run / "plan.toml").unlink(), "plan.toml: the run directory is not whole"),
    "a damaged plan": (lambda run: (run / "plan.toml").write_text("[load\n"), "plan.toml: this is no TOML"),
    "no samples": (lambda run: (run / SAMPLES).unlink(), f"{SAMPLES}: the run directory is not whole"),
    "empty samples": (lambda run: (run / SAMPLES).write_text(""), f"{SAMPLES}: the file was cut off"),
    "samples cut in a line": (
        lambda run: (run / SAMPLES).write_bytes((run / SAMPLES).read_bytes()[:-30]),
        f"{SAMPLES}: the file was cut off in its last line",
    ),
    "samples cut after a line": (
        lambda run: (run / SAMPLES).write_bytes(b"".join((run / SAMPLES).read_bytes().splitlines(keepends=True)[:40])),
        f"{SAMPLES}: the file was cut off at 3.9 s of 12.0 s",
    ),
    "samples of zeros": (lambda run: (run / SAMPLES).write_bytes(bytes(5000)), f"{SAMPLES}: the file was cut off"),
    "no phases": (
        lambda run: (run / "arms/new-r2/phases.json").unlink(),
        "phases.json: the run directory is not whole",
    ),
    "phases of another kind": (
        lambda run: (run / "arms/new-r2/phases.json").write_text('[{"t_s": "x"}]'),
        "phases.json: this is no list of phases",
    ),
    "a directory that leads elsewhere": (
        lambda run: spoil_json(run, "summary.json", lambda d: _elsewhere(d)),
        "nowhere/samples.csv: the run directory is not whole",
    ),
}
# What a copy that ended early leaves: it may end with a line, and lack no more than the last.
CUTS: dict[str, Callable[[bytes], bytes]] = {
    "within a line": lambda text: text[: len(text) // 2],
    "in half": lambda text: b"".join((lines := text.splitlines(keepends=True))[: len(lines) // 2]),
    "the last line": lambda text: b"".join(text.splitlines(keepends=True)[:-1]),
    "the end of the last line": lambda text: text.rstrip(),
    "all but the header": lambda text: text.splitlines(keepends=True)[0],
}


@pytest.mark.parametrize("cut", CUTS)
@pytest.mark.parametrize(
    "command",
    [
        "compare",
        "steady",
        *(pytest.param(name, marks=pytest.mark.long) for name in ("repeat", "cost", "lint", "report")),
    ],
)
def test_every_reader_of_a_run_refuses_samples_that_end_early(
    command: str, cut: str, made: Made, invoke: Invoke
) -> None:
    run = made.run("run", repetitions=2)
    words: list[object] = [run / "arms/new"] if command == "steady" else [run]
    words += ["--anyway"] if command == "cost" else []
    assert invoke(command, *words).code in (0, 1)
    samples = run / ("arms/new/samples.csv" if command == "steady" else SAMPLES)
    samples.write_bytes(CUTS[cut](samples.read_bytes()))
    refused = invoke(command, *words)
    assert (refused.code, refused.out, refused.err.count("\n")) == (2, "", 1)
    assert str(samples) in refused.err


def _elsewhere(summary: Document) -> Document:
    summary["arms"]["new"]["repetitions"][1]["directory"] = "nowhere"
    return summary


@pytest.mark.parametrize("kind", DAMAGE)
def test_a_directory_that_was_cut_off_is_refused(kind: str, made: Made, invoke: Invoke) -> None:
    run = made.run("run", repetitions=2)
    damage, sentence = DAMAGE[kind]
    damage(run)
    refused = invoke("compare", run)
    assert (refused.code, refused.out) == (2, "")
    assert sentence in refused.err
    assert refused.err.count("\n") == 1


def test_a_run_in_progress_is_named_as_one(made: Made, invoke: Invoke) -> None:
    Path(f".later.partial-{os.getpid()}").mkdir()
    assert "one is on its way" in invoke("compare", "later").err


def test_a_copy_is_the_same_run(made: Made, invoke: Invoke) -> None:
    run = made.run("run", repetitions=2)
    edit(run, lambda manifest: manifest.update(ended="2100-01-01T00:00:00+00:00"), "manifest.json")
    shutil.copytree("run", "copy")
    refused = invoke("compare", "run:old", "copy:old")
    assert refused.code == 2
    assert "copy:old and run:old are the same run under two names" in refused.err


def test_two_short_runs_of_one_second_are_two(made: Made, invoke: Invoke) -> None:
    """The fake does the same for the same seed, and may begin and end both within one second."""
    one, other = made.run("one", PLAN, 2), made.run("other", PLAN, 2)
    now = "2100-01-01T00:00:00+00:00"
    for run in (one, other):
        edit(run, lambda manifest: manifest.update(started=now, ended=now), "manifest.json")
    assert invoke("compare", one, other).code == 0


def test_a_link_to_a_run_is_the_run(made: Made, invoke: Invoke) -> None:
    made.run("run", repetitions=2)
    Path("link").symlink_to("run")
    assert "run:old is named twice" in invoke("compare", "run:old", "link:old").err


def test_nothing_whole_is_refused(made: Made, invoke: Invoke) -> None:
    run = made.run("run", repetitions=1)
    edit(run, lambda s: s["arms"]["new"]["standing"].update(complete=False, failure="the drive is full."))
    refused = invoke("compare", run, "--anyway")
    assert refused.code == 2
    assert refused.err == (
        "spillway: run:new has no repetition that ran to its end (the drive is full); run the plan again.\n"
    )


def test_one_repetition_against_several_is_refused(made: Made, invoke: Invoke) -> None:
    one, several = made.run("one", PLAN, 1), made.run("several", PLAN, 3)
    for words in ((one, several), (several, one)):
        refused = invoke("compare", *words, "--anyway")
        assert refused.code == 2
        assert "one:small has one repetition that ran to its end and several:small has 3" in refused.err


def test_a_series_that_is_too_short_is_refused(made: Made, invoke: Invoke) -> None:
    run = made.run("run", PLAN.replace("duration_s = 12", "duration_s = 0.8") + ARMS, 1)
    refused = invoke("compare", run)
    assert refused.code == 2
    assert refused.err == (
        "spillway: run:old and run:new are one run each, with 8 and 8 samples to judge by, which are too few "
        "independent blocks to say; run with --set repetitions=5, or longer.\n"
    )


def test_one_run_has_one_maximum(made: Made, invoke: Invoke) -> None:
    run = made.run("run", PLAN.replace("duration_s = 12", "duration_s = 120") + ARMS, 1)
    refused = invoke("compare", run, "--metric", "write_max_us", "--metric", "write_p99_us")
    assert refused.code == 2
    assert "one figure of write_max_us and write_p99_us; run with --set repetitions=5." in refused.err


def test_a_figure_that_no_run_has_is_refused(made: Made, invoke: Invoke) -> None:
    run = made.run("run", repetitions=2)

    def forget(summary: Document) -> None:
        for arm in summary["arms"].values():
            arm["standing"]["wa_device_unknown"] = "the drive does not tell"
            for each in arm["repetitions"]:
                each["wa_device"] = None

    edit(run, forget)
    refused = invoke("compare", run, "--metric", "wa_device")
    assert refused.code == 2
    assert "wa_device is not known of run:old and run:new (the drive does not tell)" in refused.err
    assert "not known of both" in invoke("compare", run).out


def damaged(document: Any, rng: random.Random) -> Any:
    """The document with one of its values replaced by something else, or gone."""
    document = json.loads(json.dumps(document))
    places: list[tuple[Any, Any]] = []

    def walk(node: Any) -> None:
        for key in node if isinstance(node, dict) else range(len(node)) if isinstance(node, list) else ():
            places.append((node, key))
            walk(node[key])

    walk(document)
    node, key = rng.choice(places)
    if rng.random() < 0.3:
        del node[key]
    else:
        node[key] = rng.choice([None, "x", -1, 0, 1e308, float("nan"), [], [None], {}, {"x": 1}, True, "\x00", "../.."])
    return document


FEW_AND_MANY = pytest.mark.parametrize("tries", [50, pytest.param(500, marks=pytest.mark.long)])


@FEW_AND_MANY
@pytest.mark.parametrize("count", [1, 2])
@pytest.mark.parametrize("name", ["summary.json", "manifest.json", "arms/new/phases.json"])
def test_no_damage_to_a_document_is_worse_than_a_sentence(
    name: str, count: int, tries: int, made: Made, invoke: Invoke
) -> None:
    run = made.run("run", PLAN + ARMS, count)
    if count == 1:
        edit(run, lambda summary: summary["arms"]["new"].update(directory="arms/new"))
    whole = json.loads((run / name).read_text())
    rng = random.Random(count)
    for _ in range(tries):
        spoilt = damaged(whole, rng)
        (run / name).write_text(json.dumps(spoilt))
        ended = invoke("compare", run, *rng.choice([(), ("--anyway",), ("--json",)]))
        assert ended.code in (0, 2), spoilt
        assert ended.code == 0 or ended.err.startswith("spillway: "), spoilt


@FEW_AND_MANY
def test_no_damage_to_a_plan_is_worse_than_a_sentence(tries: int, made: Made, invoke: Invoke) -> None:
    run = made.run("run", PLAN + ARMS, 2)
    whole = tomllib.loads((run / "plan.toml").read_text())
    rng = random.Random(3)
    for _ in range(tries):
        spoilt = json.loads(json.dumps(damaged(whole, rng)).replace("null", '"none"').replace("NaN", "1"))
        (run / "plan.toml").write_text(tomli_w.dumps(spoilt))
        ended = invoke("compare", run)
        assert ended.code in (0, 2), spoilt


@pytest.mark.parametrize("name", ["samples.csv", "plan.toml"])
def test_no_byte_of_a_file_is_worse_than_a_sentence(name: str, made: Made, invoke: Invoke) -> None:
    run = made.run("run", PLAN.replace("duration_s = 12", "duration_s = 3") + ARMS, 1)
    path = run / "arms" / "new" / name if name == "samples.csv" else run / name
    whole = path.read_bytes()
    rng = random.Random(4)
    for _ in range(100):
        place = rng.randrange(len(whole))
        path.write_bytes(
            whole[:place] + rng.choice([b"", b"\x00", b",", b"\n", b"\xff", b"-"]) + whole[place + rng.randrange(3) :]
        )
        ended = invoke("compare", run)
        assert ended.code in (0, 2), place
        assert "Traceback" not in ended.err
