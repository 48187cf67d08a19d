"""Data frames in Parquet and CSV files: the same when they are read back, and what is refused. `spillway export`."""

import json
import os
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from compared_runs import Made
from conftest import PLAN, Fake, Invoke
from test_frames import SWEPT, assert_one_sentence

import spillway
from spillway.errors import SpillwayError
from spillway.frames.tables import frame_of

ENDINGS = [".parquet", ".csv"]
HARD_TEXTS = ["NA", "none", "nan", "a,b", 'say "x"', "two\nlines", "cr\rhere", " padded ", "Größe µs", "1", "True", "-"]
HARD_NUMBERS = [0.1 + 0.2, 5e-324, 1.7976931348623157e308, -0.0, float("inf"), float("nan"), 1 / 3, 1e22, 123456789.0]


def assert_same(one: "pd.DataFrame", other: "pd.DataFrame") -> None:
    pd.testing.assert_frame_equal(one, other, check_exact=True, check_dtype=True)


@pytest.mark.parametrize("ending", ENDINGS)
def test_every_table_comes_back_the_same(ending: str, run_directory: Path, tmp_path: Path) -> None:
    event = {"t_s": 0.5, "name": "spill.divert_begin", "figures": {"bytes": 4.0, "duration_s": 0.1}, "message": ""}
    (run_directory / "arms/new/events.json").write_text(json.dumps([event, event | {"figures": {}}]))
    run = spillway.read_run(run_directory)
    assert run.events.duration_s.isna().tolist() == [False, True]
    for table in run.tables:
        frame = getattr(run, table)
        assert len(frame), table
        path = spillway.write_frame(frame, tmp_path / f"{table}{ending}")
        assert_same(spillway.read_frame(path), frame)
        assert [each.name for each in tmp_path.glob(".*.partial")] == []


@pytest.mark.parametrize("ending", ENDINGS)
def test_the_axes_of_a_sweep_come_back_the_same(ending: str, made: Made, tmp_path: Path) -> None:
    arms = spillway.read_run(made.run("run", SWEPT, 1)).arms
    assert_same(spillway.read_frame(spillway.write_frame(arms, tmp_path / f"arms{ending}")), arms)


@pytest.mark.parametrize("ending", ENDINGS)
def test_hard_values_come_back_the_same(ending: str, tmp_path: Path) -> None:
    count = max(len(HARD_TEXTS), len(HARD_NUMBERS))

    def at(values: list[Any], index: int) -> Any:
        return values[index] if index < len(values) else None

    rows = [
        {"words": at(HARD_TEXTS, i), "x_s": at(HARD_NUMBERS, i), "reads": at([0, -1, 2**62, None], i)}
        | {"steady": at([True, False, None], i), "a.b": at([1, None], i), "a.c": at(["4MiB", "NA"], i)}
        | {"a.d": at([True, None], i), "a.e": at([1.0, 2.5], i), "gauge": at([1.0, 2.0], i)}
        for i in range(count)
    ]
    frame = frame_of(rows)
    back = spillway.read_frame(spillway.write_frame(frame, tmp_path / f"hard{ending}"))
    assert_same(back, frame)
    assert np.signbit(back.x_s[3]), "a negative zero"


@pytest.mark.parametrize("ending", ENDINGS)
def test_a_table_without_rows_comes_back_with_its_columns(ending: str, run_directory: Path, tmp_path: Path) -> None:
    run = spillway.read_run(run_directory)
    frame = run.samples.iloc[:0]
    assert_same(spillway.read_frame(spillway.write_frame(frame, tmp_path / f"none{ending}")), frame)


def test_another_ending_is_refused(tmp_path: Path) -> None:
    frame = frame_of([{"x_s": 1.0}])
    for call in (lambda: spillway.write_frame(frame, tmp_path / "x.txt"), lambda: spillway.read_frame(tmp_path / "x")):
        with pytest.raises(SpillwayError, match=r"name a file that ends in \.parquet or \.csv\.$"):
            call()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("ending", ENDINGS)
def test_what_cannot_be_written_leaves_nothing(ending: str, tmp_path: Path) -> None:
    frame = frame_of([{"x_s": 1.0}])
    with pytest.raises(SpillwayError, match="cannot be written") as refused:
        spillway.write_frame(frame, tmp_path / "none" / f"x{ending}")
    assert_one_sentence(refused.value)
    (tmp_path / f"taken{ending}").mkdir()
    (tmp_path / f"taken{ending}" / "x").write_text("")
    with pytest.raises(SpillwayError, match="cannot be written"):
        spillway.write_frame(frame, tmp_path / f"taken{ending}")
    assert [path.name for path in tmp_path.iterdir()] == [f"taken{ending}"]


DAMAGE: dict[str, Callable[[bytes], bytes]] = {
    "empty": lambda _: b"",
    "half": lambda text: text[: len(text) // 2],
    "cut off within the last line": lambda text: text.rstrip(b"\n")[:-3],
    "no text": lambda _: os.urandom(64).replace(b"\n", b"") + b"\xff\xfe\n",
}


@pytest.mark.parametrize("damage", DAMAGE)
@pytest.mark.parametrize("ending", ENDINGS)
def test_a_damaged_file_is_refused_in_one_sentence(ending: str, damage: str, tmp_path: Path) -> None:
    frame = frame_of([{"arm": "a", "t_s": float(i), "reads": i} for i in range(50)])
    path = spillway.write_frame(frame, tmp_path / f"x{ending}")
    path.write_bytes(DAMAGE[damage](path.read_bytes()))
    with pytest.raises(SpillwayError, match=re.escape(str(path))) as refused:
        spillway.read_frame(path)
    assert_one_sentence(refused.value)


@pytest.mark.parametrize("ending", ENDINGS)
def test_a_file_that_is_not_there_is_refused(ending: str, tmp_path: Path) -> None:
    with pytest.raises(SpillwayError, match="cannot be read: no such file or directory") as refused:
        spillway.read_frame(tmp_path / f"none{ending}")
    assert_one_sentence(refused.value)


def test_without_pyarrow_csv_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*words: Any, **names: Any) -> None:
        raise ImportError("Missing optional dependency 'pyarrow'")

    frame = frame_of([{"x_s": 1.0}])
    monkeypatch.setattr(pd.DataFrame, "to_parquet", fail)
    with pytest.raises(SpillwayError, match=r"need pyarrow, .*pip install 'spillway\[frames\]', or write \.csv"):
        spillway.write_frame(frame, tmp_path / "x.parquet")
    assert list(tmp_path.iterdir()) == []


# ---------------------------------------------------------------------------------------------------------------------
# `spillway export`


@pytest.mark.parametrize("ending", ENDINGS)
@pytest.mark.usefixtures("run_directory")
def test_export_writes_the_table_that_is_named(ending: str, invoke: Invoke) -> None:
    run = spillway.read_run("run")
    ended = invoke("export", "run", "--to", f"out{ending}")
    assert (ended.code, ended.err) == (0, "")
    assert f"{len(run.samples):,} rows" in ended.out
    assert_same(spillway.read_frame(f"out{ending}"), run.samples)
    assert invoke("export", "run", "--table", "arms", "--to", f"out{ending}").code == 0
    assert_same(spillway.read_frame(f"out{ending}"), run.arms)
    assert invoke("export", "run", "--arm", "new", "--to", f"out{ending}").code == 0
    assert set(spillway.read_frame(f"out{ending}").arm) == {"new"}


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["none", "--to", "x.csv"], "none: there is no such directory."),
        (["other", "--to", "x.csv"], "other: this is neither a run directory"),
        (["run", "--to", "x.txt"], "--to x.txt: name a file that ends in .parquet or .csv."),
        (["run", "--to", "no/x.csv"], "no/x.csv cannot be written: no such file or directory; name another --to."),
        (
            ["run", "--table", "sample", "--to", "x.csv"],
            "--table sample: run has no such table; did you mean 'samples'?",
        ),
        (
            ["run", "--arm", "nwe", "--to", "x.csv"],
            "--arm nwe: the table samples of run has no such arm; did you mean 'new'?",
        ),
        (["run"], "Missing option '--to'."),
        (["cut", "--to", "x.csv"], "cut/arms/new-r2/samples.csv: the file was cut off"),
    ],
)
def test_bad_input_is_one_sentence_and_exit_code_2(
    words: list[str], says: str, run_directory: Path, invoke: Invoke
) -> None:
    shutil.copytree(run_directory, "cut")
    Path("other").mkdir()
    samples = Path("cut/arms/new-r2/samples.csv")
    samples.write_bytes(samples.read_bytes()[:-30])
    refused = invoke("export", *words)
    assert (refused.code, refused.out, refused.err.count("\n")) == (2, "", 1)
    assert says in refused.err
    assert not Path("x.csv").exists()


def test_a_failed_arm_is_exported_with_its_reason(made: Made, fake: Fake, invoke: Invoke) -> None:
    made.plan.write_text(PLAN)
    fake.behave("fails late")
    assert invoke("run", made.plan, "--out", "run").code != 0
    assert invoke("export", "run", "--table", "arms", "--to", "arms.csv").code == 0
    assert "the drive is full" in spillway.read_frame("arms.csv").failure[0]
