"""Runs, profiles, sweeps and suites as data frames: figures against the files, dtypes by name, what is refused."""

import csv
import json
import re
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from compared_runs import ARMS, Made, edit, put_steady, slower
from conftest import PLAN, Fake, Invoke
from test_compare_refusals import CUTS, DAMAGE

import spillway
from spillway.errors import SpillwayError
from spillway.frames.tables import column, dtype_of, flattened, frame_of, typed

ROOT = Path(__file__).parents[2]
SWEPT = PLAN.replace("duration_s = 12", "duration_s = 2") + (
    '\n[sweep]\n"load.value_bytes" = [100, 1000]\n'
    '"engine.options.compression" = ["kNoCompression", "kLZ4Compression"]\n'
)


def rows_of(run: Path, arm: str) -> list[dict[str, str]]:
    with (run / "arms" / arm / "samples.csv").open(newline="") as file:
        return list(csv.DictReader(file))


# ---------------------------------------------------------------------------------------------------------------------
# A run


def test_samples_are_those_of_the_files(run_directory: Path) -> None:
    run = spillway.read_run(run_directory)
    samples = run.samples
    assert list(samples.columns[:2]) == ["arm", "repetition"]
    written = {("old", 1): "old", ("old", 2): "old-r2", ("new", 1): "new", ("new", 2): "new-r2"}
    assert set(samples.groupby(["arm", "repetition"]).groups) == set(written)
    for (arm, repetition), directory in written.items():
        expected = rows_of(Path("run"), directory)
        ours = samples[(samples.arm == arm) & (samples.repetition == repetition)]
        assert list(ours.columns[2:]) == list(expected[0])
        assert ours.host_bytes_written.tolist() == [int(row["host_bytes_written"]) for row in expected]
        assert ours.t_s.tolist() == [float(row["t_s"]) for row in expected]
        assert ours.stall_cause.tolist() == [row["stall_cause"] for row in expected]
        assert ours.read_latency_mean_us.isna().all(), "no read was done"


def test_arms_are_those_of_the_summary(made: Made) -> None:
    made.run("run", repetitions=3)
    summary = json.loads(Path("run/summary.json").read_text())["arms"]
    arms = spillway.read_run("run").arms.set_index("arm")
    assert arms.index.tolist() == ["old", "new"]
    for name, figures in summary.items():
        row = arms.loc[name]
        assert row.throughput_ops_s == figures["throughput_ops_s"]
        assert row.write_latency_p99_us == figures["write_latency_us"]["p99"]
        assert row.host_bytes_written == figures["host_bytes_written"]
        assert row.nand_bytes_programmed == sum(figures["nand_bytes_programmed"].values())
        assert row.host_bytes_written_wal == figures["host_bytes_written_by_cause"]["wal"]
        assert row.stall_s == figures["stalls"]["seconds"]
        assert row.flash_bytes_per_operation == figures["lifetime"]["flash_bytes_per_operation"]
        assert (row.repetitions, row.steady_repetitions) == (3, sum(e["steady"] for e in figures["repetitions"]))
        assert row.standing.startswith(figures["standing"]["words"])


def test_repetitions_phases_and_stalls(run_directory: Path) -> None:
    run = spillway.read_run("run")
    summary = json.loads(Path("run/summary.json").read_text())["arms"]
    of_new = run.repetitions[run.repetitions.arm == "new"]
    assert of_new.repetition.tolist() == [1, 2]
    assert of_new.throughput_ops_s.tolist() == [each["throughput_ops_s"] for each in summary["new"]["repetitions"]]
    assert of_new.complete.tolist() == [True, True]
    phases = json.loads(Path("run/arms/new-r2/phases.json").read_text())
    ours = run.phases[(run.phases.arm == "new") & (run.phases.repetition == 2)]
    assert ours.name.tolist() == [phase["name"] for phase in phases]
    assert ours.write_latency_p99_us.tolist() == [phase["write_latency_us"]["p99"] for phase in phases]
    with Path("run/arms/new-r2/stalls.csv").open(newline="") as file:
        stalls = list(csv.DictReader(file))
    ours = run.stalls[(run.stalls.arm == "new") & (run.stalls.repetition == 2)]
    assert ours.duration_s.tolist() == [float(each["duration_s"]) for each in stalls]


def test_every_column_of_arms_is_in_the_page_and_the_other_way_round(run_directory: Path) -> None:
    page = (ROOT / "docs" / "NOTEBOOKS.md").read_text()
    table = page[page.index("`arms` has these columns") : page.index("## Files")]
    named = set(
        re.findall(r"`([a-z_0-9A-Z]+)`", "\n".join(line.split("|")[1] for line in table.splitlines() if "|" in line))
    )
    kinds = {f"{kind}latency_NAME_us" for kind in ("", "read_", "write_")}
    frame = spillway.read_run(run_directory).arms
    ours = {re.sub(r"latency_(mean|p50|p99|p99_9|max)_us", "latency_NAME_us", str(name)) for name in frame}
    by_cause = {name for name in ours if re.match(r"(host_bytes_written|nand_bytes_programmed|stall_s)_", name)}
    assert kinds <= named
    assert named - {"spill_NAME"} == ours - by_cause - {"arm", "repetitions", "steady_repetitions"}


def test_a_sweep_of_a_plan_has_its_axes_as_columns(made: Made) -> None:
    run = spillway.read_run(made.run("run", SWEPT, 1))
    assert run.arms["load.value_bytes"].tolist() == [100, 100, 1000, 1000]
    assert str(run.arms["load.value_bytes"].dtype) == "Int64"
    assert set(run.arms["engine.options.compression"]) == {"kNoCompression", "kLZ4Compression"}
    assert set(run.arms.of) == {"small"}


def test_a_run_that_is_not_steady_says_so(made: Made) -> None:
    run = made.run("run", repetitions=3)
    put_steady(run, "old", [True, True, True])
    put_steady(run, "new", [True, False, True])

    def change(summary: dict[str, Any]) -> None:
        summary["arms"]["old"]["steady"] = summary["arms"]["new"]["steady"] = True

    edit(run, change)
    arms = spillway.read_run(run).arms.set_index("arm")
    assert arms.steady.to_dict() == {"old": True, "new": False}
    assert arms.steady_repetitions.to_dict() == {"old": 3, "new": 2}
    assert "2 of 3 repetitions were steady" in arms.standing["new"]
    assert spillway.read_run(run).repetitions.query("arm == 'new'").steady.tolist() == [True, False, True]
    one = spillway.read_run(made.run("short", PLAN.replace("duration_s = 12", "duration_s = 1"), 1)).arms.loc[0]
    assert not one.steady
    assert "not steady" in one.standing.lower()
    assert one.steady_reason in one.standing


def test_an_arm_that_failed_is_a_row_with_its_reason(made: Made, fake: Fake, invoke: Invoke) -> None:
    made.plan.write_text(PLAN + ARMS)
    fake.behave("fails late")
    assert invoke("run", made.plan, "--out", "run").code != 0
    run = spillway.read_run("run")
    assert (run.complete, "the drive is full" in run.failure) == (False, True)
    (row,) = [each for _, each in run.arms.iterrows()]
    assert (row.arm, row.complete) == ("old", False)
    assert "the drive is full" in row.failure
    assert row.standing.startswith("FAILED (")
    assert len(run.samples) > 0, "what was measured is there"
    assert set(run.samples.arm) == {"old"}


def test_of_a_sweep_what_failed_stands_beside_what_did_not(
    made: Made, fake: Fake, invoke: Invoke, monkeypatch: pytest.MonkeyPatch
) -> None:
    made.plan.write_text(SWEPT)
    fake.behave("fails late")
    monkeypatch.setenv("FAKE_WHERE", '{"value_bytes": 1000}')
    assert invoke("run", made.plan, "--out", "run").code != 0
    arms = spillway.read_run("run").arms.set_index("load.value_bytes")
    assert arms.complete.tolist() == [True, True, False, False]
    assert arms.failure.isna().tolist() == [True, True, False, False]
    assert arms.failure.dtype == "string"


def test_a_run_that_was_refused_has_no_frame(made: Made, fake: Fake, invoke: Invoke) -> None:
    fake.behave("bad_input")
    assert invoke("run", made.plan, "--out", "run").code == 2
    with pytest.raises(SpillwayError, match="refused before it measured anything"):
        spillway.read_run("run")


@pytest.mark.parametrize("damage", DAMAGE)
def test_a_damaged_run_is_refused_in_one_sentence(damage: str, run_directory: Path) -> None:
    run = run_directory
    spoil, sentence = DAMAGE[damage]
    spoil(run)
    if damage == "a damaged plan":
        assert len(spillway.read_run(run).arms) == 2, "no table has anything of the plan"
        return
    with pytest.raises(SpillwayError) as refused:
        spillway.read_run(run)
    assert_one_sentence(refused.value)
    assert sentence in str(refused.value)


@pytest.mark.parametrize("cut", CUTS)
def test_samples_that_end_early_are_refused(cut: str, run_directory: Path) -> None:
    run = run_directory
    samples = run / "arms/new-r2/samples.csv"
    samples.write_bytes(CUTS[cut](samples.read_bytes()))
    with pytest.raises(SpillwayError, match=re.escape(str(samples))) as refused:
        spillway.read_run(run)
    assert_one_sentence(refused.value)


def assert_one_sentence(error: SpillwayError) -> None:
    assert "\n" not in str(error)
    assert str(error).endswith(".")


@pytest.mark.parametrize(
    ("reader", "says"),
    [
        (spillway.read, "this is neither a run directory"),
        (spillway.read_run, "it is no run directory, or one that was cut off"),
        (spillway.read_profile, "the profile is not whole"),
        (spillway.read_suite, "this is no directory of a suite"),
        (spillway.read_sweep, "this is no directory of a sweep"),
    ],
)
def test_another_directory_and_none_are_refused(reader: Callable[[Path], Any], says: str, tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "notes.txt").write_text("nothing")
    with pytest.raises(SpillwayError, match=says) as refused:
        reader(tmp_path / "other")
    assert_one_sentence(refused.value)
    with pytest.raises(SpillwayError) as refused:
        reader(tmp_path / "none")
    assert_one_sentence(refused.value)
    assert str(tmp_path / "none") in str(refused.value)


# ---------------------------------------------------------------------------------------------------------------------
# Dtypes


def test_a_column_has_one_dtype_whatever_is_in_it() -> None:
    names = {
        "host_bytes_written": "Int64",
        "reads": "Int64",
        "t_s": "float64",
        "failure": "string",
        "steady": "boolean",
    }
    values: dict[str, list[Any]] = {
        "host_bytes_written": [1.0, 2**40],
        "reads": [0, 3],
        "t_s": [1, 2.5],
        "failure": ["", "full"],
        "steady": [True, False],
    }
    for name, dtype in names.items():
        for cells in ([], [None, None], values[name], [None, *values[name]]):
            frame = frame_of([{name: cell} for cell in cells], (name,))
            assert str(frame[name].dtype) == dtype, (name, cells)
            assert frame[name].isna().sum() == sum(cell in (None, "") for cell in cells)


def test_every_column_of_a_run_has_a_dtype_of_its_name_with_data_and_without(run_directory: Path) -> None:
    run = spillway.read_run(run_directory)
    for table in run.tables:
        frame = getattr(run, table)
        empty = typed(frame.iloc[:0])
        for name in frame:
            assert str(frame[name].dtype) in ("string", "boolean", "Int64", "float64"), (table, name)
            if dtype_of(str(name)) is not None:
                assert frame[name].dtype == empty[name].dtype == dtype_of(str(name)), (table, name)
            else:
                assert str(frame[name].dtype) in ("float64", "string"), (table, name)


def test_texts_of_every_table_are_known_by_their_names(made: Made) -> None:
    """A column of texts whose name is not known would be of numbers where none of them is known."""
    run = spillway.read_run(made.run("run", SWEPT, 2))
    for table in run.tables:
        frame = getattr(run, table)
        texts = {str(name) for name in frame if str(frame[name].dtype) == "string" and "." not in str(name)}
        assert {name for name in texts if dtype_of(name) != "string"} == set(), table


def test_names_end_in_units(run_directory: Path) -> None:
    """What is counted in a unit says so; what has none is a ratio, a share, a count or words."""
    run = spillway.read_run(run_directory)
    for table in run.tables:
        for name in getattr(run, table):
            assert not re.search(r"(seconds|micros|_us_|_ms_)", str(name).replace("zero_seconds", "")), (table, name)


def test_columns_of_a_plans_keys_are_as_narrow_as_their_values() -> None:
    def dtype(*values: Any) -> str:
        return str(frame_of([{"a.b": value} for value in values])["a.b"].dtype)

    assert dtype(1, 2) == dtype("1", "2") == dtype(1, None) == "Int64"
    assert dtype(1, 2.5) == dtype("0.5", "1") == dtype(None) == "float64"
    assert dtype(True, False) == dtype("true", "false") == "boolean"
    assert dtype("4MiB", "8MiB") == dtype("007", "1") == dtype(1, "x") == dtype("nan") == "string"


def test_a_value_that_a_column_cannot_have_is_refused() -> None:
    for name, value in (("t_s", "soon"), ("steady", "perhaps"), ("reads", "many"), ("reads", float("inf"))):
        with pytest.raises(SpillwayError, match=f"^{name}: a column of"):
            column([value], name)


def test_nested_tables_keep_their_units_at_the_end() -> None:
    document = {
        "latency_us": {"p99": 3.0, "READ": {"p50": 1.0}},
        "host_bytes_written_by_cause": {"wal": 5},
        "stalls": {"count": 1, "delayed_s": {"l0": 0.5}},
        "levels": [{"files": 2}, {"files": 7}],
        "empty": {},
        "names": ["a"],
    }
    assert flattened(document) == {
        "latency_p99_us": 3.0,
        "latency_READ_p50_us": 1.0,
        "host_bytes_written_wal": 5,
        "stalls_count": 1,
        "stalls_delayed_l0_s": 0.5,
        "levels_0_files": 2,
        "levels_1_files": 7,
    }


# ---------------------------------------------------------------------------------------------------------------------
# Comparisons


def test_a_comparison_is_that_of_the_command(made: Made, invoke: Invoke) -> None:
    run = slower(made.run("run"), by=0.10)
    said = invoke("compare", run, "--json").json()["pairs"][0]
    frame = spillway.compare_arms(spillway.read_run(run)).metrics.set_index("metric")
    assert frame.index.tolist() == list(said["metrics"])
    assert frame.words.to_dict() == {name: metric["words"] for name, metric in said["metrics"].items()}
    row, ours = said["metrics"]["throughput_ops_s"], frame.loc["throughput_ops_s"]
    assert (ours.a, ours.b, ours.verdict) == ("old", "new", "old")
    assert (ours.ratio, ours.ratio_low, ours.ratio_high) == (row["ratio"], row["low"], row["high"])
    assert ours.ratio_low < 0.9 < ours.ratio_high < 1
    assert frame.loc["stall_share", "unit"] == "share"
    assert np.isnan(frame.loc["stall_share", "ratio"])
    assert [note.partition(": ")[2] for note in spillway.compare_arms(run).notes[:-1]] == said["notes"]


def test_runs_that_cannot_be_ranked_are_refused(made: Made) -> None:
    made.run("run", repetitions=3)
    made.run("other", PLAN.replace("num = 10000", "num = 20000") + ARMS, 3)
    with pytest.raises(SpillwayError, match="are not ranked"):
        spillway.compare_arms("run:old", "other:old")
    frame = spillway.compare_arms("run:old", "run:new", "other:old").metrics
    refused = frame[frame.verdict == "not ranked"]
    assert refused.b.tolist() == ["other:old"]
    assert "are not ranked" in refused.words.iloc[0]
    assert "run:old" in frame.a.tolist(), "two arms of one name are told apart by their runs"
    with pytest.raises(SpillwayError, match="name one"):
        spillway.compare_arms()
    with pytest.raises(SpillwayError, match="did you mean 'wa_app'"):
        spillway.compare_arms("run", metrics=["wa_ap"])


# ---------------------------------------------------------------------------------------------------------------------
# A suite and a sweep


def test_a_suite_has_its_plans_arms_and_claims(fake: Fake, suite: Path, tmp_path: Path, invoke: Invoke) -> None:
    out = tmp_path / "out"
    assert invoke("suite", suite, "--out", out).code == 0
    found = spillway.read_suite(out)
    assert found.plans.set_index("plan").state.to_dict() == {"b": "done", "a": "done"}
    assert found.arms.plan.tolist() == ["b", "a", "a"]
    assert found.claims.claim.tolist() == ["C1"]
    assert found.claims.verdict.dtype == "string"
    assert found.run("a").arms["load.num"].tolist() == [100, 250]
    assert spillway.read(out).tables == ("arms", "plans", "claims")
    with pytest.raises(SpillwayError, match="it has no plan 'c'"):
        found.run("c")


def test_a_suite_that_is_not_whole_says_what_there_is(fake: Fake, suite: Path, tmp_path: Path, invoke: Invoke) -> None:
    out = tmp_path / "out"
    assert invoke("suite", suite, "--out", out, "--only", "b").code == 0
    found = spillway.read_suite(out)
    assert found.plans.set_index("plan").state.to_dict() == {"b": "done", "a": "not run"}
    assert found.arms.plan.tolist() == ["b"]
    (out / "b" / "summary.json").write_text("{")
    with pytest.raises(SpillwayError, match=r"summary\.json: this is not JSON"):
        _ = spillway.read_suite(out).arms
    (out / "claims.csv").write_text("claim,verdict\nC1\n")
    with pytest.raises(SpillwayError, match="this is no list of claims"):
        _ = spillway.read_suite(out).claims


def sweep_of(made: Made, fake: Fake, invoke: Invoke) -> Path:
    """The directory of a sweep, with a cell that is done, one that failed with samples, one without, one not run."""
    out = Path("sweep")
    cells: list[dict[str, Any]] = []
    for number, state in enumerate(("done", "failed", "failed", "not run")):
        address, directory = f"{number:020x}", None
        if number < 2:
            directory = f"{'cells' if state == 'done' else 'failed'}/{address}"
            made.plan.write_text(PLAN)
            fake.behave("ok" if state == "done" else "fails late")
            (out / directory).parent.mkdir(parents=True, exist_ok=True)
            invoke("run", made.plan, "--out", out / directory, "--set", f"load.num={1000 + number}")
        why = {1: "the drive is full", 2: "its worker died: it was killed"}.get(number)
        cells.append(
            {"name": f"small, num {1000 + number}", "arm": "small", "point": {"load.num": 1000 + number}, "seeds": [1]}
            | {"address": address, "state": state, "attempts": 1, "why": why, "host": None, "directory": directory}
        )
    document = {"spillway_sweep": 1, "plan": "small", "complete": False, "cells": cells}
    (out / "sweep.json").write_text(json.dumps(document))
    return out


def test_a_sweep_has_a_row_for_each_cell_whatever_became_of_it(made: Made, fake: Fake, invoke: Invoke) -> None:
    out = sweep_of(made, fake, invoke)
    sweep = spillway.read_sweep(out)
    cells = sweep.cells
    assert cells.state.tolist() == ["done", "failed", "failed", "not run"]
    assert cells["load.num"].tolist() == [1000, 1001, 1002, 1003]
    assert cells.complete.tolist()[:2] == [True, False]
    assert cells.throughput_ops_s.isna().tolist() == [False, False, True, True]
    assert "worker died" in cells.why[2]
    assert sweep.run(cells.cell[0]).complete
    with pytest.raises(SpillwayError, match=r"has no run \(its worker died"):
        sweep.run(cells.cell[2])
    with pytest.raises(SpillwayError, match="it has no cell"):
        sweep.run("x")
    with pytest.raises(SpillwayError, match=r"its cells are not gathered.*run the sweep to its end\."):
        _ = sweep.gathered
    shutil.copytree(sweep.run(cells.cell[0]).path, out / "run")
    assert spillway.read_sweep(out).gathered.arms.arm.tolist() == ["small"]
    assert isinstance(spillway.read(out), spillway.SweepFrames)
    (out / cells.directory[0] / "summary.json").unlink()
    with pytest.raises(SpillwayError, match="the run directory is not whole"):
        _ = spillway.read_sweep(out).cells


@pytest.mark.parametrize(("file", "key"), [("suite.json", "spillway_suite"), ("sweep.json", "spillway_sweep")])
def test_a_suite_or_sweep_of_a_later_version_or_damaged_is_refused(file: str, key: str, tmp_path: Path) -> None:
    for text, says in (
        (f'{{"{key}": 2, "plans": {{}}, "cells": []}}', f"{key} is 2, and this version of spillway reads up to 1"),
        ("[]", "this is no document of a"),
        ("{", "this is not JSON"),
        ('{"plans": [1], "cells": {}}', "this is no list of a"),
    ):
        (tmp_path / file).write_text(text)
        with pytest.raises(SpillwayError, match=re.escape(says)) as refused:
            spillway.read(tmp_path)
        assert_one_sentence(refused.value)


# ---------------------------------------------------------------------------------------------------------------------
# pandas itself


def test_without_pandas_a_sentence_says_how_it_is_installed(
    run_directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = spillway.read_run(run_directory)
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(SpillwayError, match=r"need pandas, which is not installed: pip install 'spillway\[frames\]'"):
        _ = run.arms


def test_frames_can_be_calculated_with(run_directory: Path) -> None:
    """Nullable columns go through numpy, pandas and the models as plain numbers do."""
    run = spillway.read_run(run_directory)
    samples = run.samples
    rates = samples.host_bytes_written / samples.dt_s
    assert float(rates.sum()) > 0
    assert np.asarray(samples.writes, dtype=float).dtype == np.float64
    assert np.log(samples.writes.to_numpy(dtype=float)).sum() > 0
    assert isinstance(samples.groupby("phase").writes.sum(), pd.Series)
