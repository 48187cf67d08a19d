"""Lint of plans and runs: each pitfall found, mended and answered; what the command prints and how it ends."""

import json
import re
import tomllib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import made_run
import pytest
from conftest import PLAN, ROOT, Fake, Invoke

from spillway.errors import SpillwayError
from spillway.lint.dispatch import lint
from spillway.lint.plan import lint_plan
from spillway.lint.run import lint_record, over_provisioning, peak_space_amplification
from spillway.lint.table import Linted, Remark, covers_all, with_answers
from spillway.pitfalls import SEVEN, SLUGS
from spillway.plan.document import load_plan
from spillway.report.words import worth
from spillway.rundir.directory import ArmRecord
from spillway.suite.document import load_scaled
from spillway.suite.state import state_of

Golden = Callable[[str, str], None]
PLANS = sorted((ROOT / "plans").glob("*.toml")) + [
    path
    for path in sorted((ROOT / "plans/cascaded-wa").glob("*.toml"))
    if path.name not in ("suite.toml", "claims.toml")
]


def verdicts(linted: Linted) -> dict[str, str]:
    return {remark.pitfall.slug: remark.verdict for remark in linted.remarks}


def of(linted: Linted, slug: str) -> Remark:
    return next(remark for remark in linted.remarks if remark.pitfall.slug == slug)


def lint_text(plan_file: Path, text: str) -> Linted:
    plan_file.write_text(text)
    return lint_plan(load_plan(plan_file))


@pytest.mark.parametrize("path", PLANS, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_no_plan_of_ours_has_an_open_finding(path: Path) -> None:
    linted = lint_plan(load_scaled(path, (), ()))
    assert covers_all(linted)
    assert [(remark.pitfall.slug, remark.verdict) for remark in linted.remarks if remark.verdict == "cannot tell"] == []
    assert linted.open == 0, linted.counted()


def test_a_plain_plan_falls_into_four(plan_file: Path) -> None:
    linted = lint_plan(load_plan(plan_file))
    assert verdicts(linted) == {
        **{"short-test": "finding", "wa-device": "ok", "initial-state": "ok", "data-set": "finding", "space": "ok"},
        **{"over-provisioning": "finding", "drive-type": "finding"},
    }
    assert "phases.fill.duration_s = 12" in of(linted, "short-test").looked_at
    assert "192.0 MiB" in of(linted, "short-test").change  # 3 x 64 MiB
    assert "data set / capacity 0.15" in of(linted, "data-set").looked_at  # 10,000 x 1040 B of 64 MiB
    assert '"load.num" = [16_000, 32_000, 57_000]' in of(linted, "data-set").change
    assert "25%" in of(linted, "over-provisioning").looked_at  # 1 / (1 - 0.2) - 1
    assert '"fs.size" = "48MiB"' in of(linted, "over-provisioning").change


def test_the_proposed_keys_are_keys_of_a_plan_and_mend(plan_file: Path) -> None:
    """What lint proposes, taken as it is written, leaves no finding of the kind."""
    enough = PLAN.replace("duration_s = 12", "operations = 200_000")
    more = '[sweep]\n"load.num" = [16_000, 32_000, 57_000]\n[[arms]]\nname = "whole"\n'
    more += '[[arms]]\nname = "part"\n"fs.size" = "48MiB"\n"initial.fill" = 0.75\n"load.compression_ratio" = 0.5\n'
    linted = lint_text(plan_file, enough + more)
    assert verdicts(linted) | {"drive-type": ""} == dict.fromkeys(SLUGS, "ok") | {"drive-type": ""}


def test_a_trimmed_drive_is_a_finding_until_the_run_is_long(plan_file: Path) -> None:
    trimmed = PLAN + '[initial]\nkind = "trimmed"\n'
    assert verdicts(lint_text(plan_file, trimmed))["initial-state"] == "finding"
    long = trimmed.replace("duration_s = 12", "operations = 200_000")
    assert verdicts(lint_text(plan_file, long))["initial-state"] == "ok"
    both = PLAN + '[[arms]]\nname = "new"\n"initial.kind" = "trimmed"\n[[arms]]\nname = "used"\n'
    assert verdicts(lint_text(plan_file, both))["initial-state"] == "ok"


def test_a_directory_without_counters_is_a_finding(plan_file: Path, tmp_path: Path) -> None:
    plain = PLAN.replace('preset = "tiny"', f'kind = "directory"\npath = "{tmp_path}"')
    assert verdicts(lint_text(plan_file, plain))["wa-device"] == "cannot tell"
    assert verdicts(lint_text(plan_file, plain))["initial-state"] == "finding"
    blind = plain.replace('kind = "directory"', 'kind = "directory"\nsmart = "off"')
    assert verdicts(lint_text(plan_file, blind))["wa-device"] == "finding"
    watched = blind.replace("[engine.options]", '[drive.estimate]\npreset = "tiny"\n[engine.options]')
    assert verdicts(lint_text(plan_file, watched))["wa-device"] == "ok"


def test_a_capacity_that_differs_by_drive_alone_is_one_data_set_size(plan_file: Path) -> None:
    (plan_file.parent / "presets/large.toml").write_text('name = "large"\n[capacity]\ncapacity_bytes = "1GiB"\n')
    linted = lint_text(plan_file, PLAN + '[sweep]\n"drive.preset" = ["tiny", "large"]\n')
    assert (verdicts(linted)["data-set"], verdicts(linted)["drive-type"]) == ("finding", "ok")


# ---------------------------------------------------------------- answers

ANSWER = '[lint.answers]\ndrive-type = "There is one."\n'


def test_an_answer_counts_as_no_finding_and_goes_with_the_plan(plan_file: Path) -> None:
    before = lint_plan(load_plan(plan_file)).open
    linted = lint_text(plan_file, PLAN + ANSWER)
    assert (linted.open, of(linted, "drive-type").answer) == (before - 1, "There is one.")
    resolved = load_plan(plan_file).to_toml()
    assert tomllib.loads(resolved)["lint"] == {"answers": {"drive-type": "There is one."}}
    plan_file.write_text(resolved)
    assert load_plan(plan_file).answers == {"drive-type": "There is one."}


def test_an_answer_without_a_finding_is_stale_and_reported(plan_file: Path) -> None:
    linted = lint_text(plan_file, PLAN + '[lint.answers]\nspace = "It is small."\n')
    assert verdicts(linted)["space"] == "stale answer"
    assert "remove lint.answers.space" in of(linted, "space").change
    assert linted.open == lint_plan(load_plan(plan_file)).open == 5


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('[lint.answers]\nshort = "x"\n', "lint.answers.short names no pitfall"),
        ('[lint.answers]\nspace = ""\n', "takes a sentence that says why"),
        ("[lint.answers]\nspace = 3\n", "takes a sentence that says why"),
        ('[lint]\nanswer = "x"\n', "did you mean 'answers'?"),
        ('[lint]\nanswers = "x"\n', "takes a table of pitfalls and sentences"),
    ],
)
def test_a_bad_answer_is_refused(plan_file: Path, text: str, said: str) -> None:
    plan_file.write_text(PLAN + text)
    with pytest.raises(SpillwayError, match="lint") as refused:
        load_plan(plan_file)
    assert said in str(refused.value)


def test_a_lint_that_is_no_table_is_refused(plan_file: Path) -> None:
    plan_file.write_text("lint = 3\n" + PLAN)
    with pytest.raises(SpillwayError, match="takes a table"):
        load_plan(plan_file)


def test_an_answer_does_not_make_a_run_one_of_another_plan(
    plan_file: Path, tmp_path: Path, fake: Fake, invoke: Invoke
) -> None:
    out = tmp_path / "run"
    assert invoke("run", plan_file, "--out", out).code == 0
    assert state_of(out, load_plan(plan_file)) != "of another plan"
    plan_file.write_text(PLAN + ANSWER)
    assert state_of(out, load_plan(plan_file)) != "of another plan"
    plan_file.write_text(PLAN.replace("num = 10000", "num = 9999"))
    assert state_of(out, load_plan(plan_file)) == "of another plan"


# ---------------------------------------------------------------- runs


def made(*arms: ArmRecord, plan: str = "") -> Linted:
    return lint_record(made_run.run(plan, list(arms)))


def arm(name: str, **summary: object) -> ArmRecord:
    """An arm of one second whose drive holds 64 MiB: a thousand writes, 2 MB to the drive."""
    record = made_run.arm(name, [1000.0])
    standing = (
        made_run.STANDING
        | {"initial_fill": 1.0}
        | {k: v for k, v in summary.items() if k in ("initial_state", "unmapped_reads", "drive", "steady_reason")}
    )
    own = {key: value for key, value in summary.items() if key not in standing or key == "steady"}
    result = record.result | {"wear": {"physical_bytes": 80 * 2**20}, "counters": {"host_bytes_written": 2e6}}
    return replace(
        record, summary=record.summary | {"host_bytes_written": 2e6, "standing": standing} | own, result=result
    )


def test_remarks_on_a_steady_run_name_its_figures() -> None:
    linted = made(arm("one"))
    assert covers_all(linted)
    assert verdicts(linted) == {
        **{"short-test": "ok", "wa-device": "ok", "initial-state": "ok", "data-set": "finding", "space": "ok"},
        **{"over-provisioning": "finding", "drive-type": "finding"},
    }
    assert of(linted, "short-test").looked_at == "steady in 1 of 1 arms; host writes 0.03 x the capacity"
    assert "wa_device 1.50, beside wa_app 2.00" in of(linted, "wa-device").looked_at
    assert "at least 25%" in of(linted, "over-provisioning").looked_at  # 80 MiB of flash, 64 of them mapped


def test_one_arm_that_is_not_steady_is_a_finding_with_its_reason() -> None:
    linted = made(arm("one"), arm("two", steady=False, steady_reason="throughput drifted"))
    assert of(linted, "short-test").verdict == "finding"
    assert "steady in 1 of 2 arms" in of(linted, "short-test").looked_at
    assert "(throughput drifted)" in of(linted, "short-test").looked_at
    assert "by a factor of 101 or more" in of(linted, "short-test").change  # 3 x 67.1 MB / 2 MB


def test_an_unknown_figure_is_a_finding_or_cannot_tell() -> None:
    blind = made(arm("one", wa_device=None, initial_state=None, live_user_bytes=None, space_amplification=None))
    assert {slug: verdicts(blind)[slug] for slug in ("wa-device", "initial-state", "data-set", "space")} == {
        "wa-device": "finding", "initial-state": "finding", "data-set": "cannot tell", "space": "cannot tell",
    }  # fmt: skip
    nothing = lint_record(made_run.run("", []))
    assert covers_all(nothing) and {remark.verdict for remark in nothing.remarks} == {"cannot tell"}


def test_reads_of_what_was_never_written_are_a_finding() -> None:
    linted = made(arm("one", unmapped_reads=12_345))
    assert "12,345 reads of what was never written" in of(linted, "initial-state").looked_at
    assert of(linted, "initial-state").verdict == "finding"


def test_sizes_and_drives_that_differ_are_told_apart() -> None:
    linted = made(arm("one"), arm("two", live_user_bytes=2e6), arm("three", drive="other"))
    assert (verdicts(linted)["data-set"], verdicts(linted)["drive-type"]) == ("ok", "ok")


def test_effective_over_provisioning_counts_a_partition_and_what_was_written() -> None:
    new = arm("one", initial_state="trimmed")
    held = max(row["space_bytes"] for row in new.rows)
    assert over_provisioning(new, discards=True) == pytest.approx((80 * 2**20 - held) / held)
    assert over_provisioning(new, discards=False) == pytest.approx((80 * 2**20 - 2e6) / 2e6)
    assert over_provisioning(replace(new, result={}), discards=True) is None
    two = made(arm("one"), arm("two"), plan='[[arms]]\nname = "one"\n[[arms]]\nname = "two"\nfs.size = 33554432\n')
    assert verdicts(two)["over-provisioning"] == "ok"


def test_the_peak_of_space_is_of_the_samples() -> None:
    record = arm("one")
    grown = replace(record, rows=[*record.rows, made_run.second(2.0, 0, space_bytes=3e6)])
    assert peak_space_amplification(grown) == pytest.approx(3.0)
    assert "at most 3.00 on the way" in of(made(grown), "space").looked_at


def test_a_run_takes_its_plans_answers_and_none_is_stale() -> None:
    linted = made(arm("one"), plan='[lint.answers]\ndrive-type = "One."\nspace = "Small."\n')
    assert (verdicts(linted)["drive-type"], verdicts(linted)["space"]) == ("answered", "ok")


def test_an_ok_stays_ok_unless_stale_answers_are_reported() -> None:
    fine = [Remark(SEVEN[0], "ok", "x")]
    assert with_answers(fine, {"short-test": "y"}, report_stale=False) == fine
    assert with_answers(fine, {"short-test": "y"}, report_stale=True)[0].verdict == "stale answer"


# ---------------------------------------------------------------- the command


def test_the_table_of_a_plan(plan_file: Path, tmp_path: Path, invoke: Invoke, golden: Golden) -> None:
    plan_file.write_text(PLAN + ANSWER)
    ended = invoke("lint", plan_file)
    assert (ended.code, ended.err) == (1, "")
    golden("lint-plan.txt", ended.out.replace(str(tmp_path), "TMP"))


@pytest.mark.reports
def test_the_table_of_a_run_and_of_its_report(
    plan_file: Path, tmp_path: Path, fake: Fake, invoke: Invoke, golden: Golden
) -> None:
    out = tmp_path / "run"
    plan_file.write_text(PLAN + ANSWER)
    assert invoke("run", plan_file, "--out", out).code == 0
    ended = invoke("lint", out)
    assert ended.code == 1
    golden("lint-run.txt", ended.out.replace(str(tmp_path), "TMP"))
    report = (out / "report.html").read_text()
    assert "What these figures are worth" in report and "There is one." in report
    header = report[report.index("<header>") : report.index("</header>")]
    (worth,) = re.findall(r'id="worth-words"><b>Worth.</b> (.*)</p>', header)
    # 7 pitfalls, as the table has them: the line may not say less than the table.
    verdicts = re.findall(r"^\d .*?  +(finding|answered|cannot tell|ok) ", ended.out, re.MULTILINE)
    assert len(verdicts) == 7
    found, answered = (verdicts.count(each) for each in ("finding", "answered"))
    assert f"{found + answered} of the seven pitfalls found, {found} open" in worth
    assert '<a href="#worth">' in worth and 'id="worth"' in report


@pytest.mark.parametrize(
    ("steady", "verdicts", "said"),
    [
        ([True], ["ok"] * 7, "Steady; none of the seven pitfalls found."),
        ([False], ["finding", *["ok"] * 6], "Not steady; 1 of the seven pitfalls found, all open."),
        (
            [False, False],
            ["answered", "answered"],
            "None of 2 runs steady; 2 of the seven pitfalls found, all answered.",
        ),
        (
            [True, False, True],
            ["finding", "answered", "cannot tell"],
            "2 of 3 runs steady; 2 of the seven pitfalls found, 1 open, 1 not to be told.",
        ),
        (
            [True, True],
            ["cannot tell"] * 2,
            "All of 2 runs steady; none of the seven pitfalls found, 2 not to be told.",
        ),
    ],
)
def test_what_figures_are_worth_in_one_line(steady: list[bool], verdicts: list[Any], said: str) -> None:
    arms = [replace(made_run.arm("a", [1.0]), summary={"steady": each}) for each in steady]
    remarks = tuple(Remark(pitfall, verdict, "") for pitfall, verdict in zip(SEVEN, verdicts, strict=False))
    assert worth(arms, Linted("x", "run", remarks)) == said


def test_json_is_a_list_of_objects(plan_file: Path, invoke: Invoke) -> None:
    ended = invoke("lint", plan_file, "--db-bench", "db_bench --benchmarks=fillseq", "--json")
    tables = json.loads(ended.out)
    assert [(table["kind"], table["open"] > 0) for table in tables] == [("plan", True), ("db_bench", True)]
    keys = {"pitfall", "number", "title", "where", "looked_at", "verdict", "change", "answer"}
    assert all(set(finding) == keys for table in tables for finding in table["findings"])
    assert [finding["number"] for finding in tables[0]["findings"]] == [1, 2, 3, 4, 5, 6, 7]


def test_a_plan_without_a_finding_ends_with_0(plan_file: Path, invoke: Invoke) -> None:
    slugs = ("short-test", "data-set", "over-provisioning", "drive-type")
    plan_file.write_text(PLAN + "[lint.answers]\n" + "".join(f'{slug} = "So."\n' for slug in slugs))
    assert invoke("lint", plan_file).code == 0


def test_a_suite_is_its_plans_at_its_scale() -> None:
    tables = lint(str(ROOT / "plans/cascaded-wa"))
    assert [Path(table.subject).stem for table in tables][:3] == ["raw-drive", "fillrandom", "drive-writes"]
    assert "load.num = 1953125" in of(tables[1], "short-test").looked_at  # 5e8 / 256


@pytest.mark.parametrize("count", [0, 4])
def test_a_run_on_a_terminal_begins_with_what_is_open(
    count: int, plan_file: Path, tmp_path: Path, fake: Fake, invoke: Invoke, monkeypatch: pytest.MonkeyPatch
) -> None:
    from spillway.cli import printing

    monkeypatch.setattr(type(printing.err), "is_terminal", property(lambda console: True))
    if not count:
        slugs = ("short-test", "data-set", "over-provisioning", "drive-type")
        plan_file.write_text(PLAN + "[lint.answers]\n" + "".join(f'{slug} = "So."\n' for slug in slugs))
    ended = invoke("run", plan_file, "--out", tmp_path / "out")
    assert (f"4 findings are open in this plan: `spillway lint {plan_file}` tells." in ended.err) == bool(count)


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("none", None, "there is no such file or directory"),
        ("empty.sh", b"", "it is empty"),
        ("blank", b" \n\t\n", "it is empty"),
        ("picture.png", b"\x89PNG\r\n\x1a\n\x00\x00", "it is not text"),
        ("zeros", b"db_bench --num=1\0", "it is not text"),
        ("huge.sh", b"# \n" * 400_000, "it is larger than 1 MiB"),
        ("letter.txt", b"Dear db_bench,\nhow is fio?\n", "nothing in it is known to lint"),
        ("plan.toml", b"[drive", "this is not TOML"),
        ("suite.toml", b"", "a part of a suite"),
        ("jobs.fio", b"[global]\nrw=read\n", "there is no job in it"),
        ("jobs.fio", b"rw=read\n[job]\n", "before any [section]"),
        ("jobs.fio", b"[]\nrw=read\n", "has no name"),
        ("jobs.fio", b"[a]\n=3\n", "no option of a fio job"),
        ("jobs.fio", b"[a]\nrw=read\ninclude gone.fio\n", "gone.fio: the fio job file cannot be read"),
        ("jobs.fio", b"[a]\nrw=read\ninclude jobs.fio\n", "include each other"),
        ("null.fio", b"[a]\nioengine=null\nrw=read\n", "none of its jobs reads or writes a drive"),
        ("load.sh", b"ycsb load rocksdb -P gone/workload\n", "-P gone/workload is not there"),
    ],
)
def test_bad_input_is_one_sentence(name: str, content: bytes | None, said: str, tmp_path: Path, invoke: Invoke) -> None:
    path = tmp_path / name
    if content is not None:
        path.write_bytes(content)
    ended = invoke("lint", path)
    assert (ended.code, ended.out, ended.err.count("\n")) == (2, "", 1)
    assert said in ended.err and str(path.parent) in ended.err.replace("spillway: -P", f"spillway: {path}")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((), "name what to lint"),
        (("--db-bench", "ls -l"), "there is no db_bench command in 'ls -l'"),
        (("--fio", "db_bench --num=1"), "there is no fio command"),
        (("--fio", "fio --name=a", "--capacity", "large"), "--capacity is 'large'"),
        (("--fio", "fio --name=a", "--capacity", "0"), "--capacity is 0"),
        (("--fio", "fio --name=a", "--env", "X"), "write NAME=VALUE"),
        (("--db-bench", ""), "there is no db_bench command"),
    ],
)
def test_a_bad_call_is_one_sentence(words: tuple[str, ...], said: str, invoke: Invoke) -> None:
    ended = invoke("lint", *words)
    assert (ended.code, ended.out, ended.err.count("\n")) == (2, "", 1)
    assert said in ended.err


def test_a_directory_that_is_no_run_and_a_run_that_was_cut_off(
    plan_file: Path, tmp_path: Path, fake: Fake, invoke: Invoke
) -> None:
    assert "neither a run nor a suite.toml" in invoke("lint", tmp_path / "presets").err
    out = tmp_path / "run"
    assert invoke("run", plan_file, "--out", out).code == 0
    (out / "summary.json").write_text((out / "summary.json").read_text()[:100])
    ended = invoke("lint", out)
    assert (ended.code, ended.err.count("\n")) == (2, 1) and "summary.json" in ended.err
