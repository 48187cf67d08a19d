"""`spillway repeat`: the verdict by its three bases, the surroundings, and every run directory that it refuses."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from conftest import PLAN, PRESET, Fake, Invoke

from spillway.plan.document import load_plan
from spillway.run.repeat import COUNTS, RAW_COUNTS, Figure, ThenAndNow, exact_counts, verdict

COUNTED = PLAN.replace("duration_s = 12", "operations = 500")


@pytest.fixture
def recorded(plan_file: Path, fake: Fake, invoke: Invoke, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A run of the fake with two repetitions, whose figures follow from its seeds."""
    monkeypatch.chdir(tmp_path)
    plan_file.write_text(PLAN.replace('name = "small"', 'name = "small"\nrepetitions = 2'))
    assert invoke("run", plan_file, "--out", "then").code == 0
    return tmp_path / "then"


def edit(path: Path, change: Callable[[str], str]) -> None:
    text = path.read_text()
    assert change(text) != text
    path.write_text(change(text))


def masked(text: str) -> str:
    return "\n".join(line for line in text.splitlines() if not line.startswith("Surroundings"))


def test_a_run_that_repeats(recorded: Path, invoke: Invoke, golden: Callable[[str, str], None]) -> None:
    ended = invoke("repeat", "then", "--out", "now")
    assert (ended.code, ended.err) == (0, "")
    golden("repeat.txt", masked(ended.out))
    assert (recorded.parent / "now/report.html").is_file()
    assert json.loads((recorded.parent / "now/manifest.json").read_text())["command"] == ["spillway", "repeat", "then"]
    found = invoke("repeat", "now", "--out", "third", "--json").json()
    assert found["repeated"] is True
    assert {each["ratio"] for each in found["figures"]} <= {1.0, None}, "a repetition can be repeated"


def test_a_figure_that_has_changed_is_named_and_ends_with_1(recorded: Path, invoke: Invoke) -> None:
    summary = json.loads((recorded / "summary.json").read_text())
    for each in [summary["arms"]["small"], *summary["arms"]["small"]["repetitions"]]:
        each["throughput_ops_s"] = each["throughput_ops_s"] * 0.5
    (recorded / "summary.json").write_text(json.dumps(summary))
    ended = invoke("repeat", "then", "--out", "now", "--json")
    found = ended.json()
    assert (ended.code, found["repeated"]) == (1, False)
    assert found["verdict"] == "Not repeated: throughput_ops_s of small differs beyond what is stated."
    (changed,) = [each for each in found["figures"] if each["differs"]]
    assert changed["ratio"] == pytest.approx(2.0)
    assert changed["interval"][0] < 1.0 < changed["interval"][1]


def test_what_differs_in_the_surroundings_is_said(recorded: Path, invoke: Invoke) -> None:
    def older(text: str) -> str:
        manifest = json.loads(text)
        manifest["versions"] |= {"python": "3.10.1", "build_sha256": "a" * 64, "spillway": "0.0.9"}
        manifest["host"] |= {"processor": "an abacus", "memory_bytes": 5}
        return json.dumps(manifest)

    edit(recorded / "manifest.json", older)
    found = invoke("repeat", "then", "--out", "now", "--json").json()
    said = "\n".join(found["surroundings"])
    for words in (
        "Python is 3.10.1",
        "build of spillway-native is aaaaaaaaaaaa",
        "spillway is 0.0.9",
        "an abacus",
        "is 5 ",
    ):
        assert words in said
    assert found["repeated"] is True, "the verdict is of the figures"


def test_one_run_each_is_judged_only_with_within(
    plan_file: Path, fake: Fake, invoke: Invoke, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert invoke("run", plan_file, "--out", "then").code == 0
    ended = invoke("repeat", "then", "--out", "now")
    assert ended.code == 0
    assert "Run again, and nothing states how far figures may be apart" in ended.out
    edit(tmp_path / "then/summary.json", lambda text: text.replace('"wa_app": ', '"wa_app": 1'))
    assert invoke("repeat", "then", "--out", "again").code == 0
    held = invoke("repeat", "then", "--out", "third", "--within", "5%", "--json")
    assert held.code == 1
    assert held.json()["verdict"] == "Not repeated: wa_app of small differs beyond what is stated."


def test_counts_that_the_plan_fixes_are_compared_exactly(
    plan_file: Path, fake: Fake, invoke: Invoke, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    plan_file.write_text(COUNTED)
    assert invoke("run", plan_file, "--out", "then").code == 0
    found = invoke("repeat", "then", "--out", "now", "--json").json()
    assert {each["figure"] for each in found["figures"] if each["basis"] == "exact"} == set(COUNTS)
    assert found["verdict"].startswith("Repeated: the counts that the plan fixes are identical (operations, ")
    result = tmp_path / "then/arms/small/result.json"
    document = json.loads(result.read_text())
    result.write_text(json.dumps(document | {"user_bytes_written": document["user_bytes_written"] + 1}))
    ended = invoke("repeat", "then", "--out", "again", "--json")
    assert ended.code == 1
    assert ended.json()["verdict"] == "Not repeated: user_bytes_written of small differs beyond what is stated."


RAW = ("[engine.options]\nwrite_buffer_size = 1048576", '[engine]\nname = "raw"')
VIRTUAL = ("[drive]", '[drive]\npacing = "off"')
READS = '[[phases]]\nworkload = "readwhilewriting"\noperations = 5\n'


@pytest.mark.parametrize(
    ("changes", "more", "counts"),
    [
        ([], "", COUNTS),
        ([("operations = 500", "duration_s = 5")], "", ()),
        ([], READS, ()),
        ([], 'until = "steady"\n', ()),
        ([RAW], "", COUNTS),
        ([VIRTUAL], "", COUNTS),
        ([RAW, VIRTUAL], "", RAW_COUNTS),
        ([RAW, VIRTUAL], "threads = 2\n", COUNTS),
    ],
)
def test_only_counts_that_a_plan_and_a_seed_fix_are_exact(
    changes: list[tuple[str, str]], more: str, counts: tuple[str, ...], plan_file: Path
) -> None:
    text = COUNTED
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    plan_file.write_text(text + more)
    assert exact_counts(load_plan(plan_file).arms[0]) == counts


def test_the_least_sure_figure_is_named() -> None:
    sure = Figure("a", "wa_app", 2.0, 2.02, ".3f", basis="repetitions", differs=False, interval=(-0.01, 0.03))
    unsure = Figure("a", "write_max_us", 2.0, 2.0, ".3f", basis="repetitions", differs=False, interval=(-0.9, 40.0))
    assert verdict(ThenAndNow([sure, unsure], [])) == (
        "Repeated: means of repetitions are within 1.0 % (wa_app of a), and none is told apart at 95 %; the least sure "
        "is write_max_us of a, -90.0 to more than 1000 %."
    )


# --- what is refused


def set_manifest(path: Path, **values: object) -> None:
    file = path / "manifest.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | values))


def preset_changes(path: Path) -> None:
    (path.parent / "presets/tiny.toml").write_text(PRESET.replace("0.2", "0.3"))


def preset_goes(path: Path) -> None:
    (path.parent / "presets/tiny.toml").unlink()


@pytest.mark.parametrize(
    ("damage", "says"),
    [
        (shutil.rmtree, "then: there is no such run directory"),
        (lambda path: (path / "summary.json").unlink(), "it has no summary.json"),
        (lambda path: (path / "manifest.json").write_text("{"), "manifest.json: this is not JSON"),
        (lambda path: (path / "plan.toml").unlink(), "plan.toml: the run directory is not whole"),
        (lambda path: set_manifest(path, complete=False), "then is not complete (it was ended early)"),
        (lambda path: set_manifest(path, complete=False, failure="it broke."), "then is not complete (it broke)"),
        (lambda path: (path / "arms/small/samples.csv").write_text("t_s,dt_s\n1"), "was cut off"),
        (
            lambda path: edit(path / "plan.toml", lambda text: text.replace("value_bytes", "valu_bytes")),
            "its plan no longer loads",
        ),
        (preset_changes, "tiny.toml has changed since it was recorded"),
        (preset_goes, "then: "),
        (lambda path: edit(path / "plan.toml", lambda text: f'{text}\n[[arms]]\nname = "x"\n'), "different arms"),
        (lambda path: (path / "suite.json").write_text("{}"), "is a suite's directory: repeat one of its runs"),
    ],
)
def test_what_cannot_be_repeated_is_refused_in_one_sentence(
    damage: Callable[[Path], object], says: str, recorded: Path, invoke: Invoke, fake: Fake
) -> None:
    damage(recorded)
    before = len(fake.log())
    ended = invoke("repeat", "then", "--out", "now")
    assert (ended.code, ended.out) == (2, ""), ended.err
    assert says in ended.err
    assert ended.err.count("\n") == 1
    assert not (recorded.parent / "now").exists()
    assert not [entry for entry in fake.log()[before:] if "request" in entry], "nothing was run"


def test_a_suites_summaries_say_the_command(invoke: Invoke, tmp_path: Path) -> None:
    (tmp_path / "about.json").write_text('{"command": "spillway suite x --scale 1/256"}')
    (tmp_path / "runs.csv").write_text("plan,run\n")
    ended = invoke("repeat", tmp_path)
    assert ended.code == 2
    assert "its command, `spillway suite x --scale 1/256`, runs the suite again." in ended.err


def test_a_repetition_that_fails_is_no_comparison(recorded: Path, invoke: Invoke, fake: Fake) -> None:
    fake.behave("fails late")
    ended = invoke("repeat", "then", "--out", "now")
    assert (ended.code, ended.out) == (2, ""), "as of `spillway run`: its drive was full"
    why = "“small”, seed 1: the drive is full: no space is left."
    assert ended.err == f"spillway: now is no repetition to compare: {why}\n"


def test_other_options_that_make_no_sense(recorded: Path, invoke: Invoke) -> None:
    assert "--within is 'far'" in invoke("repeat", "then", "--within", "far").err
    ended = invoke("repeat", "then", "--out", "then")
    assert (ended.code, ended.out) == (2, "")
    assert "there is something already" in ended.err
