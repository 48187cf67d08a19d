"""`spillway compare`: what it says of runs, and which runs it does not rank."""

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from compared_runs import ARMS, Document, Made, edit, edit_plan, noisy, put, put_steady, repetitions, slower
from conftest import PLAN, ROOT, Invoke

from spillway.compare import METRICS, compare, read_sides
from spillway.compare.effects import Effect
from spillway.compare.verdicts import Finding
from spillway.compare.words import UNEVEN, verdict

Golden = Callable[[str, str], None]


def test_a_slower_arm_is_found(made: Made, invoke: Invoke, golden: Golden) -> None:
    ended = invoke("compare", slower(made.run("run")))
    assert (ended.code, ended.err) == (0, "")
    golden("compare-turns.txt", ended.out)


def test_equal_arms_are_not_told_apart(made: Made, invoke: Invoke) -> None:
    """The fake does the same for the same seed: every ratio is 1, and none of them differs."""
    found = invoke("compare", made.run("run"), "--json").json()
    metrics = found["pairs"][0]["metrics"]
    assert set(metrics) == set(METRICS)
    assert {each["verdict"] for each in metrics.values()} == {"not told apart"}
    assert metrics["throughput_ops_s"]["ratio"] == 1.0
    assert metrics["stall_share"]["difference"] == 0.0


def test_the_table_and_the_document_say_the_same(made: Made, invoke: Invoke) -> None:
    run = slower(made.run("run"))
    printed, found = invoke("compare", run).out, invoke("compare", run, "--json").json()
    pair = found["pairs"][0]
    for metric in pair["metrics"].values():
        assert metric["words"] in printed
    for note in [*pair["notes"], found["note"]]:
        assert note in printed
    figure = pair["metrics"]["throughput_ops_s"]
    assert figure["verdict"] == "A"
    assert figure["low"] < figure["ratio"] < figure["high"] < 1
    assert figure["ratio"] == pytest.approx(0.95, abs=0.01)


def test_directories_are_compared_by_their_repetitions(made: Made, invoke: Invoke, golden: Golden) -> None:
    old, new = made.run("old-build", PLAN, 4), made.run("new-build", PLAN, 3)
    put(old, "small", noisy(10_000, 0.005, 4, 1))
    put(new, "small", noisy(12_000, 0.005, 3, 2))
    ended = invoke("compare", old, new, "--metric", "throughput_ops_s", "--metric", "wa_app")
    assert (ended.code, ended.err) == (0, "")
    golden("compare-apart.txt", ended.out)


def halve_writes(run: Path, arm: str) -> None:
    """Every sample of an arm has half of the writes; its bytes stay."""
    path = run / "arms" / arm / "samples.csv"
    head, *lines = path.read_text().splitlines()
    column = head.split(",").index("writes")
    cells = [line.split(",") for line in lines]
    for row in cells:
        row[column] = str(float(row[column]) / 2)
    path.write_text("\n".join([head, *(",".join(row) for row in cells)]) + "\n")


def test_a_run_at_half_the_rate_was_slower(made: Made, invoke: Invoke, golden: Golden) -> None:
    run = made.run("run", PLAN.replace("duration_s = 12", "duration_s = 120") + ARMS, 1)
    halve_writes(run, "new")
    golden("compare-one-run.txt", invoke("compare", run).out)
    pair = invoke("compare", run, "--metric", "throughput_ops_s", "--json").json()["pairs"][0]
    figure = pair["metrics"]["throughput_ops_s"]
    assert pair["basis"] == "blocks"
    assert figure["ratio"] == pytest.approx(0.5)
    assert figure["words"].startswith("A was faster by ")
    assert any("This is one run each" in note for note in pair["notes"])
    assert all(each["count"] >= 10 for each in figure["blocks"])


@pytest.mark.long
def test_blocks_are_of_the_steady_part_only(made: Made, invoke: Invoke) -> None:
    """The first minute of one arm is ten times as fast; it is steady from there on."""
    run = made.run("run", PLAN.replace("duration_s = 12", "duration_s = 240") + ARMS, 1)
    path = run / "arms" / "new" / "samples.csv"
    head, *lines = path.read_text().splitlines()
    column = head.split(",").index("writes")
    cells = [line.split(",") for line in lines]
    for row in cells[:600]:
        row[column] = str(float(row[column]) * 10)
    path.write_text("\n".join([head, *(",".join(row) for row in cells)]) + "\n")

    def steady(summary: Document) -> None:
        for arm, since in (("old", 0.0), ("new", 60.0)):
            summary["arms"][arm]["steady"] = True
            summary["arms"][arm]["standing"] |= {"steady": True, "steady_since_s": since}

    edit(run, steady)
    pair = invoke("compare", run, "--metric", "throughput_ops_s", "--json").json()["pairs"][0]
    assert pair["metrics"]["throughput_ops_s"]["ratio"] == pytest.approx(1.0, abs=0.1)


@pytest.mark.long
def test_all_arms_are_compared_with_the_first_by_holm(made: Made, invoke: Invoke, golden: Golden) -> None:
    run = made.run("run", PLAN + ARMS + '[[arms]]\nname = "third"\n')
    slower(run)
    put(run, "third", noisy(10_000, 0.005, 5, 9))
    ended = invoke("compare", run, "--metric", "throughput_ops_s")
    assert (ended.code, ended.err) == (0, "")
    golden("compare-three.txt", ended.out)
    pairs = invoke("compare", run, "--metric", "throughput_ops_s", "--json").json()["pairs"]
    assert [(each["a"], each["b"]) for each in pairs] == [("A", "B"), ("A", "C")]
    levels = [each["metrics"]["throughput_ops_s"]["level"] for each in pairs]
    assert levels == [pytest.approx(0.975), pytest.approx(0.95)]


def test_an_arm_of_a_directory_is_named_behind_a_colon(made: Made, invoke: Invoke) -> None:
    run = slower(made.run("a:run"))
    ended = invoke("compare", f"{run}:new", f"{run}:old", "--metric", "throughput_ops_s", "--json").json()
    assert [each["arm"] for each in ended["sides"].values()] == ["new", "old"]
    assert ended["pairs"][0]["metrics"]["throughput_ops_s"]["verdict"] == "B"


def test_lifetime_is_printed_with_write_amplification(made: Made, invoke: Invoke) -> None:
    run = made.run("run")

    def half(summary: Document) -> None:
        for each in summary["arms"]["new"]["repetitions"]:
            each["lifetime"]["full_size_years"] /= 2
            each["lifetime"]["flash_bytes_per_operation"] *= 3

    edit(run, half)
    found = invoke("compare", run, "--json").json()
    metrics = found["pairs"][0]["metrics"]
    for name, ratio, winner in (("years", 0.5, "A"), ("flash_bytes_per_operation", 3.0, "A")):
        assert metrics[name]["ratio"] == pytest.approx(ratio)
        assert metrics[name]["low"] <= metrics[name]["ratio"] <= metrics[name]["high"]
        assert metrics[name]["verdict"] == winner
    assert "A is longer by 100.0 %" in invoke("compare", run).out
    lasting = json.loads((run / "summary.json").read_text())["arms"]["old"]["lifetime"]
    assert found["sides"]["A"]["lifetime"] == lasting
    assert lasting["percentage_used"] is not None


@pytest.mark.parametrize("time_scale", [pytest.param(1, marks=pytest.mark.long), 4])
def test_a_life_from_blocks_is_that_of_the_run(made: Made, time_scale: int) -> None:
    """A run that is counted whole: sums over its samples are the figures of its summary."""
    plan = PLAN.replace("duration_s = 12", "duration_s = 120") + ARMS
    run = made.run("run", plan, 1, f"drive.time_scale={time_scale}")
    for arm in ("old", "new"):
        put_steady(run, arm, [False])
    sides = read_sides([str(run)])
    (pair,) = compare(sides).pairs
    by_name = {each.metric.name: each for each in pair.findings}
    for name in ("years", "flash_bytes_per_operation"):
        assert by_name[name].effect is not None
        assert by_name[name].a == pytest.approx(METRICS[name].known(sides[0].figures))


def test_in_virtual_time_years_are_unknown_with_a_reason(made: Made, invoke: Invoke) -> None:
    run = made.run("run", PLAN + ARMS, 2, "drive.pacing=off")
    ended = invoke("compare", run)
    assert ended.code == 0
    assert " ".join(ended.out.split()).count("years not known: in virtual time no rate is the drive's") == 2
    assert "worn after" in ended.out
    metrics = invoke("compare", run, "--json").json()["pairs"][0]["metrics"]
    assert (metrics["years"]["verdict"], metrics["years"]["words"]) == (None, "not known of both")
    assert metrics["flash_bytes_per_operation"]["verdict"] == "not told apart"
    refused = invoke("compare", run, "--metric", "years")
    assert refused.code == 2
    assert "(in virtual time no rate is the drive's)" in refused.err


@pytest.mark.parametrize("count", [pytest.param(count, marks=pytest.mark.long) for count in (1, 5)])
def test_years_of_two_kinds_are_not_ranked(made: Made, invoke: Invoke, count: int) -> None:
    """By rated cycles and by a maker's warranty: the second are fewer, whatever the run did."""
    plan = PLAN.replace("duration_s = 12", "duration_s = 120") + ARMS
    run = made.run("run", plan, count)

    def warranted(summary: Document) -> None:
        for each in (summary["arms"]["new"], *repetitions(summary["arms"]["new"])):
            each["lifetime"]["years_by"] = "rated host bytes"

    if count == 1:
        for arm in ("old", "new"):
            put_steady(run, arm, [False])
    edit(run, warranted)
    metrics = invoke("compare", run, "--json").json()["pairs"][0]["metrics"]
    said = "years by rated P/E cycles and by rated host bytes"
    assert (metrics["years"]["verdict"], metrics["years"]["words"]) == (None, said)
    assert metrics["flash_bytes_per_operation"]["verdict"] is not None
    assert said in " ".join(invoke("compare", run).out.split())


def test_sides_recorded_without_a_lifetime_are_compared_by_the_rest(made: Made, invoke: Invoke) -> None:
    run = made.run("run")

    def older(summary: Document) -> None:
        for arm in summary["arms"].values():
            for each in (arm, *arm["repetitions"]):
                each.pop("lifetime", None)

    edit(run, older)
    ended = invoke("compare", run)
    assert ended.code == 0
    assert "lifetime" not in ended.out
    metrics = invoke("compare", run, "--json").json()["pairs"][0]["metrics"]
    assert metrics["years"]["verdict"] is metrics["flash_bytes_per_operation"]["verdict"] is None
    assert metrics["wa_total"]["verdict"] == "not told apart"


@pytest.mark.native
def test_the_documented_two_commands(real_native: Path, invoke: Invoke, tmp_path: Path) -> None:
    """plans/compare.toml with the real store, shorter and in virtual time: a run, and an answer with an interval."""
    plan, out = ROOT / "plans" / "compare.toml", tmp_path / "run"
    smaller = ("repetitions=2", "drive.pacing=off", "load.num=20000", "phases.overwrite.duration_s=1")
    words = [word for setting in smaller for word in ("--set", setting)]
    assert invoke("run", plan, "--out", out, *words).code == 0
    ended = invoke("compare", out, "--json")
    assert (ended.code, ended.err) == (0, "")
    metrics = ended.json()["pairs"][0]["metrics"]
    assert set(metrics) == set(METRICS)
    assert metrics["throughput_ops_s"]["low"] < metrics["throughput_ops_s"]["high"]
    assert metrics["wa_app"]["ratio"] > 0


# What runs rest on: each change of one of two equal runs, the kind, and what the sentence says of it.
STANDING: list[tuple[str, Callable[[Path], None], str, str]] = []


def changes(kind: str, words: str) -> Callable[[Callable[[Path], None]], Callable[[Path], None]]:
    def note(change: Callable[[Path], None]) -> Callable[[Path], None]:
        STANDING.append((change.__name__, change, kind, words))
        return change

    return note


def of_standing(run: Path, **values: Any) -> None:
    edit(run, lambda summary: summary["arms"]["small"]["standing"].update(values))


@changes("initial", "the initial state is steady and trimmed")
def another_initial_state(run: Path) -> None:
    of_standing(run, initial_state="trimmed")


@changes("drive", "the drive is tiny and intel-p4510")
def another_preset(run: Path) -> None:
    of_standing(run, drive="intel-p4510")


@changes("drive", "the drive's capacity in bytes is 67108864 and 134217728")
def another_capacity(run: Path) -> None:
    of_standing(run, capacity_bytes=134217728)


@changes("drive", "the preset's file is")
def another_preset_of_the_same_name(run: Path) -> None:
    for path in run.glob("arms/*/preset.toml"):
        path.write_text(path.read_text() + "# changed\n")


@changes("drive", "fs.size is none and 33554432")
def a_partition(run: Path) -> None:
    edit_plan(run, lambda plan: plan.setdefault("fs", {}).update(size=33554432))


@changes("time", "the time scale is 1 and 4")
def another_time_scale(run: Path) -> None:
    of_standing(run, time_scale=4.0)


@pytest.mark.parametrize("virtual", [("old", "new"), ("new",), ()])
def test_rates_in_virtual_time_are_noted_as_not_the_drives(virtual: Sequence[str], made: Made, invoke: Invoke) -> None:
    run = made.run("run", repetitions=2)
    for arm in virtual:
        edit(run, lambda summary, arm=arm: summary["arms"][arm]["standing"].update(pacing="off"))  # type: ignore[misc]
    words = [run, "--varies", "time"]
    said = {2: "Both are in virtual time", 1: "B is in virtual time", 0: ""}[len(virtual)]
    (pair,) = invoke("compare", *words, "--json").json()["pairs"]
    told = [note for note in pair["notes"] if "in virtual time" in note]
    assert len(told) == bool(virtual)
    for note in told:
        assert note.startswith(said)
        assert note in invoke("compare", *words).out


@changes("time", "pacing is real and off")
def no_pacing(run: Path) -> None:
    of_standing(run, pacing="off")


@changes("versions", "the version of rocksdb is 7.8.3 and 9.10.0")
def another_engine_version(run: Path) -> None:
    edit(run, lambda summary: summary["arms"]["small"]["versions"].update(rocksdb="9.10.0"))


@changes("versions", "the build of spillway-native is")
def another_build(run: Path) -> None:
    edit(run, lambda manifest: manifest["versions"].update(build_sha256="0" * 64), "manifest.json")


@changes("compression", "the engine's compression is the engine's default and none")
def another_compression(run: Path) -> None:
    edit_plan(run, lambda plan: plan["engine"]["options"].update(compression="kNoCompression"))


@changes("compression", "load.compression_ratio is 0.5 and 1")
def other_values(run: Path) -> None:
    edit_plan(run, lambda plan: plan["load"].update(compression_ratio=1.0))


@changes("workload", "load.value_bytes is 1024 and 100")
def another_load(run: Path) -> None:
    edit_plan(run, lambda plan: plan["load"].update(value_bytes=100))


@changes("workload", "phases.fill.threads is 1 and 8")
def other_threads(run: Path) -> None:
    edit_plan(run, lambda plan: plan["phases"][0].update(threads=8))


@changes("workload", "the number of phases is 1 and 2")
def a_phase_more(run: Path) -> None:
    edit_plan(run, lambda plan: plan["phases"].append({"name": "more", "workload": "overwrite"}))


@changes("machine", "the host's cores is")
def another_machine(run: Path) -> None:
    edit(run, lambda manifest: manifest["host"].update(cores=640), "manifest.json")


@changes("steady", "the run is steady in 0 of 2 repetitions and steady in 2 of 2 repetitions")
def steadiness(run: Path) -> None:
    put_steady(run, "small", [True, True])


@pytest.mark.parametrize(("change", "kind", "words"), [row[1:] for row in STANDING], ids=[row[0] for row in STANDING])
def test_runs_with_different_conditions_are_not_ranked(
    change: Callable[[Path], None], kind: str, words: str, made: Made, invoke: Invoke
) -> None:
    one, other = made.run("one", PLAN, 2), made.run("other", PLAN, 2)
    put(other, "small", [5000.0, 5100.0])
    assert invoke("compare", one, other).code == 0, "they are alike"
    change(other)

    refused = invoke("compare", one, other)
    assert (refused.code, refused.out) == (2, "")
    assert refused.err.startswith("spillway: one:small and other:small ")
    assert words in refused.err
    assert refused.err.count("\n") == 1
    assert "--anyway" in refused.err
    assert ("runs of different plans" in refused.err) == (kind == "workload")

    document = invoke("compare", one, other, "--json")
    assert document.code == 2
    pair = document.json()["pairs"][0]
    assert (pair["ranked"], pair["metrics"]) == (False, {})
    assert {each["kind"] for each in pair["differences"]} == {kind}

    told = invoke("compare", one, other, "--anyway")
    assert (told.code, told.err) == (0, "")
    assert "Warning: ranked although " in told.out
    assert words in told.out

    if kind != "steady":
        named = invoke("compare", one, other, "--varies", kind)
        assert (named.code, named.err) == (0, "")
        assert "Warning" not in named.out


def test_every_kind_of_difference_is_tested() -> None:
    from spillway.compare import KINDS

    assert {row[2] for row in STANDING} == {*KINDS, "steady"}


def test_naming_one_difference_does_not_permit_another(made: Made, invoke: Invoke) -> None:
    one, other = made.run("one", PLAN, 2), made.run("other", PLAN, 2)
    another_build(other)
    another_time_scale(other)
    refused = invoke("compare", one, other, "--varies", "versions")
    assert refused.code == 2
    assert "the time scale" in refused.err
    assert "build" not in refused.err


def test_an_option_of_the_engine_is_what_arms_are_for(made: Made, invoke: Invoke) -> None:
    text = PLAN + '[[arms]]\nname = "a"\n[[arms]]\nname = "b"\n"engine.name" = "leveldb"\n'
    text = text.replace("[engine.options]\nwrite_buffer_size = 1048576\n", "")
    run = made.run("run", text + '"engine.options.compression" = "kNoCompression"\n', 2)
    assert "the engine's compression is the engine's default and none" in invoke("compare", run).err
    edit_plan(run, lambda plan: plan["arms"][0].update({"engine": {"options": {"compression": "kNoCompression"}}}))
    assert invoke("compare", run).code == 0


def test_failed_repetitions_are_in_no_figure(made: Made, invoke: Invoke) -> None:
    run = slower(made.run("run"))

    def fail(summary: Document) -> None:
        summary["arms"]["new"]["repetitions"][2] |= {"failure": "the drive is full.", "complete": False}
        summary["arms"]["new"]["repetitions"][2]["throughput_ops_s"] = 1.0

    edit(run, fail)
    ended = invoke("compare", run, "--json").json()["pairs"][0]
    assert ended["repetitions"] == {"A": 4, "B": 4}
    assert ended["metrics"]["throughput_ops_s"]["ratio"] == pytest.approx(0.95, abs=0.01)
    assert "Repetition 3 of run:new is left out: the drive is full." in ended["notes"]
    assert "Repetition 3 of run:old is left out: the one beside it in its turn is." in ended["notes"]


def test_steady_repetitions_and_others_are_never_mixed(made: Made, invoke: Invoke) -> None:
    run = slower(made.run("run"))
    put_steady(run, "old", [True, True, True, True, False])
    put_steady(run, "new", [True, True, False, True, False])
    pair = invoke("compare", run, "--json").json()["pairs"][0]
    assert pair["repetitions"] == {"A": 3, "B": 3}
    assert "Repetition 5 of run:old is left out: it is not steady, unlike those compared." in pair["notes"]
    assert not any("Neither is steady" in note for note in pair["notes"])


def test_directories_with_steady_repetitions_of_both_are_ranked_by_those(made: Made, invoke: Invoke) -> None:
    one, other = made.run("one", PLAN, 3), made.run("other", PLAN, 3)
    put_steady(one, "small", [True, False, True])
    put_steady(other, "small", [False, True, True])
    pair = invoke("compare", one, other, "--json").json()["pairs"][0]
    assert pair["repetitions"] == {"A": 2, "B": 2}


def test_with_anyway_the_estimate_names_the_better_side(made: Made, invoke: Invoke) -> None:
    run = slower(made.run("run"), by=0.001)
    assert "by the estimate alone" not in invoke("compare", run).out
    ended = invoke("compare", run, "--anyway", "--metric", "throughput_ops_s")
    assert "not told apart: no difference shown" in ended.out
    assert "by the estimate alone" in ended.out


@pytest.mark.long
def test_one_refused_pair_does_not_hide_the_others(made: Made, invoke: Invoke) -> None:
    run, other = slower(made.run("run")), made.run("other", PLAN, 5, "drive.time_scale=2.0")
    ended = invoke("compare", run, other, "--metric", "throughput_ops_s")
    assert ended.code == 2
    assert "A is faster by" in ended.out
    assert ended.err.startswith("spillway: run:old and other:small are not ranked: ")


@pytest.mark.long
def test_a_side_that_varies_much_more_is_named(made: Made, invoke: Invoke) -> None:
    run = slower(made.run("run"))
    put(run, "new", [9000.0, 9500.0, 4000.0, 9400.0, 9300.0])
    ended = invoke("compare", run, "--metric", "throughput_ops_s")
    assert f"B varies more than {UNEVEN:g} times as much as A in throughput_ops_s" in ended.out


@pytest.mark.parametrize("value", [0.0, -1.0, float("nan"), float("inf"), "many", True, None])
def test_a_figure_without_a_logarithm_is_not_known(value: Any, made: Made, invoke: Invoke) -> None:
    run = made.run("run", repetitions=2)
    put(run, "new", [value, 5.0], "wa_app")
    ended = invoke("compare", run)
    assert ended.code == 0
    assert "not known of both" in ended.out


# The words of a verdict, by paper and pencil: d is ln(B / A), or B - A of shares.
@pytest.mark.parametrize(
    ("metric", "d", "se", "words"),
    [
        ("throughput_ops_s", 0.04879, 1e-9, "B is faster by 5.0 % (5.0 to 5.0)"),
        ("throughput_ops_s", -0.04879, 1e-9, "A is faster by 5.0 % (5.0 to 5.0)"),
        ("wa_app", 0.04879, 1e-9, "A is lower by 4.8 % (4.8 to 4.8)"),
        ("wa_app", -0.69315, 1e-9, "B is lower by 50.0 % (50.0 to 50.0)"),
        ("stall_share", -0.1, 1e-9, "B is lower by 10.0 points (10.0 to 10.0)"),
        ("stall_share", 0.1, 1e-9, "A is lower by 10.0 points (10.0 to 10.0)"),
        ("throughput_ops_s", 0.01, 0.1, "not told apart: no difference shown (-17.0 % to +22.9 %)"),
    ],
)
def test_verdicts_in_words(metric: str, d: float, se: float, words: str) -> None:
    effect = Effect(d, se, 1e9)
    finding = Finding(METRICS[metric], 1.0, 1.0, effect, differs=effect.p < 0.05)
    assert verdict(finding, "A", "B") == words


def test_swapping_the_sides_swaps_the_verdicts(made: Made) -> None:
    run = slower(made.run("run"))
    there, back = (
        compare(read_sides([f"{run}:{one}", f"{run}:{other}"])).pairs[0]
        for one, other in (("old", "new"), ("new", "old"))
    )
    for forth, inverse in zip(there.findings, back.findings, strict=True):
        assert forth.effect is not None and inverse.effect is not None
        assert forth.effect.d == pytest.approx(-inverse.effect.d)
        assert forth.effect.p == pytest.approx(inverse.effect.p)
        assert (forth.a, forth.b) == (inverse.b, inverse.a)
