"""`spillway steady`: what it reads, what it prints, what it refuses."""

import csv
import json
import random
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import PLAN, Fake, Invoke

from spillway.rundir.samples import columns_of

Golden = Callable[[str, str], None]


def rates(count: int = 120, *, falls: float = 0.0, seed: int = 1) -> list[float]:
    rng = np.random.default_rng(seed)
    made = 10_000 * (1 - falls * np.arange(count) / count) * (1 + 0.04 * rng.standard_normal(count))
    return [round(float(value), 1) for value in made]


def table(path: Path, header: str, *columns: Sequence[Any]) -> Path:
    rows = [",".join(map(str, row)) for row in zip(*columns, strict=True)]
    path.write_text("\n".join([header, *rows]) + "\n")
    return path


def plain(path: Path, **given: Any) -> Path:
    values = rates(**given)
    return table(path, "t_s,throughput_ops_s", range(1, len(values) + 1), values)


def samples(path: Path, count: int = 60, **cells: Any) -> Path:
    """A run's samples.csv: a second of writes in each row, a settling phase behind them."""
    path.parent.mkdir(parents=True, exist_ok=True)
    rows: list[dict[str, Any]] = []
    for i, rate in enumerate(rates(count)):
        user = rate * 1000
        row = {"t_s": i + 1, "dt_s": 1.0, "phase": "w", "measured": 1, "reads": 0, "writes": rate}
        row |= {"user_bytes_written": user, "host_bytes_written": 3 * user, "erases": 1}
        row |= {"nand_bytes_programmed_host": 3 * user, "nand_bytes_programmed_gc": 1.5 * user}
        row |= {f"nand_bytes_programmed_{cause}": 0 for cause in ("mapping", "wear", "fold")}
        rows.append(row | cells)
    rows += [rows[0] | {"t_s": count + i + 1, "measured": 0, "writes": 0} for i in range(30)]
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, columns_of(rows[0]), restval="")
        writer.writeheader()
        writer.writerows(rows)
    return path


def test_one_series_shows_every_test(
    invoke: Invoke, golden: Golden, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    plain(Path("falls.csv"), falls=0.2)
    ended = invoke("steady", "falls.csv")
    assert (ended.code, ended.err) == (0, "")
    golden("steady-one.txt", ended.out)


def test_several_series_have_a_line_each(
    invoke: Invoke, golden: Golden, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    plain(Path("falls.csv"), falls=0.2)
    plain(Path("level.csv"))
    values = rates()
    table(Path("burst.csv"), "t_s,throughput_ops_s", range(120), [2 * v for v in values[:25]] + values[25:])
    noise = [10 ** random.Random(i).gauss(0, 0.5) for i in range(40)]
    table(Path("noisy.csv"), "t_s,throughput_ops_s", range(40), noise)
    ended = invoke("steady", "falls.csv", "level.csv", "burst.csv", "noisy.csv")
    assert ended.code == 0
    golden("steady-several.txt", ended.out)


def test_json_is_a_list_with_an_object_for_each(invoke: Invoke, tmp_path: Path) -> None:
    files = [plain(tmp_path / "falls.csv", falls=0.2), plain(tmp_path / "level.csv")]
    falls, level = invoke("steady", *files, "--json").json()
    assert [falls["file"], level["file"]] == list(map(str, files))
    assert (falls["steady"], falls["since_s"]) == (False, None)
    assert falls["reason"].startswith("throughput drifted by 2")
    assert (level["steady"], level["since_s"]) == (True, 1.0)
    assert {test["name"] for test in level["tests"]} == {"cusum", "range", "slope", "drift", "bound", "end"}
    assert set(level["tests"][0]) == {"series", "check", "name", "passed", "asked", "figure", "limit", "words"}


def test_write_amplification_and_host_writes_are_looked_at_where_they_are(invoke: Invoke, tmp_path: Path) -> None:
    header = "t_s,wa_device,throughput_ops_s,host_bytes_written,wa_app,remark"
    climbs = [1.5 * (1 + 0.4 * i / 120) for i in range(120)]
    columns = [range(120), climbs, rates(), [2**25] * 120, [4] * 120, ["x"] * 120]
    climbing = table(tmp_path / "climbs.csv", header, *columns)
    columns[1] = [1.5] * 120
    level = table(tmp_path / "level.csv", header, *columns)
    (found,) = invoke("steady", climbing, "--json").json()
    assert not found["steady"]
    assert found["reason"].startswith("wa_device drifted by 3")
    assert invoke("steady", level, "--json").json()[0]["steady"]
    # 120 x 32 MiB = 3.75 GiB
    (found,) = invoke("steady", level, "--json", "--capacity", "2GiB").json()
    assert (found["steady"], found["reason"]) == (False, "host writes came to 1.9 capacities (at least 3)")
    assert invoke("steady", level, "--json", "--capacity", "1GiB").json()[0]["steady"]
    (found,) = invoke("steady", climbing, "--json", "--capacity", "1GiB", "--check", "writes").json()
    assert found["steady"]
    assert "the tests asked for" in found["reason"]
    assert not all(test["passed"] for test in found["tests"])


def test_logs_of_fio_are_added_up_over_directions(invoke: Invoke, tmp_path: Path) -> None:
    values = rates(100)
    lines = []
    for i, value in enumerate(values):
        time = 1000 * (i + 1) + i % 3
        lines += [f"{time}, {value:.0f}, 0, 4096, 0, 0", f"{time + i % 2}, {12_000 - value:.0f}, 1, 4096, 0, 0"]
    log = tmp_path / "rw_iops.1.log"
    log.write_text("\n".join(lines) + "\n")
    (found,) = invoke("steady", log, "--json").json()
    assert found["steady"]
    assert found["since_s"] == 1.0
    figures = {test["name"]: test["figure"] for test in found["tests"]}
    assert figures["range"] < 1e-3, "the sum is constant, though neither direction is"


def test_an_interval_without_a_line_of_fio_had_no_io(invoke: Invoke, tmp_path: Path) -> None:
    log = tmp_path / "w_bw.log"
    log.write_text("".join(f"{1000 * (i + 1)}, 500, 1, 4096\n" for i in range(100) if not 70 <= i < 90))
    (found,) = invoke("steady", log, "--json").json()
    assert not found["steady"]
    log.write_text("".join(f"{1000 * (i + 1)}, 500, 1, 4096\n" for i in range(100)))
    assert invoke("steady", log, "--json").json()[0]["steady"]


def test_a_report_of_db_bench_is_read(invoke: Invoke, tmp_path: Path) -> None:
    report = table(tmp_path / "report.csv", "secs_elapsed,interval_qps", range(1, 61), rates(60))
    assert invoke("steady", report, "--json").json()[0]["steady"]


def test_a_run_directory_stands_for_its_arms(invoke: Invoke, tmp_path: Path) -> None:
    for arm in ("a", "b"):
        samples(tmp_path / "run" / "arms" / arm / "samples.csv")
    found = invoke("steady", tmp_path / "run", "--json").json()
    assert [Path(each["file"]).parent.name for each in found] == ["a", "b"]
    assert all(each["steady"] for each in found)
    assert found[0]["reason"] == "throughput, wa_app and wa_device passed every test from 0 s on"
    # 60 s of 30 MB: 1.8 GB
    written = invoke("steady", tmp_path / "run" / "arms" / "a", "--json", "--capacity", "1GB").json()[0]
    assert written["reason"] == "host writes came to 1.8 capacities (at least 3)"


GOOD = [f"{i},{100 + i % 7}" for i in range(40)]


def csv_text(*changed: tuple[int, str], header: str = "t_s,throughput_ops_s") -> str:
    lines = [header, *GOOD]
    for line, text in changed:
        lines[line - 1] = text
    return "\n".join(lines) + "\n"


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("x.csv", "", "the file is empty"),
        ("x.csv", "\n\n", "the file is empty"),
        ("x.csv", csv_text(header="t_s,rate"), "line 1 has no column throughput_ops_s"),
        ("x.csv", csv_text(header="time,throughput_ops_s"), "line 1 has no column t_s"),
        ("x.csv", csv_text(header="t_s,t_s"), "line 1 has several columns t_s"),
        ("x.csv", "\n".join(GOOD), "line 1 has no column t_s"),
        ("x.csv", csv_text((5, "3,fast")), "line 5: throughput_ops_s is 'fast', which is not a number"),
        ("x.csv", csv_text((5, "3,")), "line 5: throughput_ops_s is empty"),
        ("x.csv", csv_text((5, "3,nan")), "line 5: throughput_ops_s is nan; write a finite number"),
        ("x.csv", csv_text((5, "3,1e999")), "line 5: throughput_ops_s is 1e999; write a finite number"),
        ("x.csv", csv_text((5, "inf,3")), "line 5: t_s is inf; write a finite number"),
        ("x.csv", csv_text((5, "3,-1")), "line 5: throughput_ops_s is -1, and cannot be below zero"),
        ("x.csv", csv_text((5, "2,1")), "line 5: t_s is 2 after 2; sort the lines by t_s"),
        ("x.csv", csv_text((5, "1.5,1")), "line 5: t_s is 1.5 after 2; sort the lines"),
        ("x.csv", csv_text((5, "3")), "line 5 has 1 cells and the header 2"),
        ("x.csv", csv_text((5, "3,4,5")), "line 5 has 3 cells and the header 2"),
        ("x.csv", csv_text((5, '3,"4')), "line 5"),
        ("x.csv", "t_s,throughput_ops_s\n1,2\n", "the series has 1 sample, and it takes at least 25 to say anything"),
        ("x.csv", "t_s,throughput_ops_s\n", "the series has 0 samples"),
        ("x.csv", "secs_elapsed,interval_qps\n1,2\n1,3\n", "line 3: secs_elapsed is 1 after 1"),
        ("x_iops.1.log", "1000, 5\n", "line 1 has 2 cells, where fio's logs have time"),
        ("x_iops.1.log", "1, 1, 0, 512\n1, 1, 0, 512\n", "line 2 has the time 1 after 1 of the same direction"),
        ("x_bw.log", "1000, 5, 0, 4096\n1999, x, 0, 4096\n", "line 2: the value is 'x'"),
        ("x_bw.log", "1, 5, 0, 9\n2, 5, 0, 9\n3, 5, 0, 9\n9000000, 5, 0, 9\n", "one of the times is wrong"),
        ("x_clat.1.log", "1000, 5, 0, 4096\n", "this is fio's log of latencies"),
    ],
)
def test_a_bad_file_is_one_sentence(invoke: Invoke, tmp_path: Path, name: str, text: str, said: str) -> None:
    good, bad = plain(tmp_path / "good.csv"), tmp_path / name
    bad.write_text(text)
    for words in ((bad,), (good, bad, "--json")):
        ended = invoke("steady", *words)
        assert ended.code == 2
        assert ended.out == "", "nothing is said of any where one is bad"
        assert ended.err.startswith(f"spillway: {bad}: ")
        assert said in ended.err
        assert ended.err.count("\n") == 1


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((), "takes one SERIES or more"),
        (("none.csv",), "none.csv: the series cannot be read: no such file"),
        (("good.csv", "--capacity", "1GiB"), "no column host_bytes_written to hold against --capacity"),
        (("good.csv", "--capacity", "lots"), "--capacity is 'lots', which is not a size"),
        (("good.csv", "--capacity", "0"), "--capacity is 0"),
        (("good.csv", "--check", "writes"), "--check writes takes the size of the drive"),
        (("good.csv", "--check", "luck"), "'luck' is not one of"),
        (("good.csv", "--error-rates"), "makes its own series"),
        (("empty",), "empty: this directory has no samples.csv"),
        (("bytes.csv",), "bytes.csv: this is not text"),
    ],
)
def test_a_bad_call_is_one_sentence(
    invoke: Invoke, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...], said: str
) -> None:
    monkeypatch.chdir(tmp_path)
    plain(Path("good.csv"))
    Path("empty").mkdir()
    Path("bytes.csv").write_bytes(b"\xff\xfe\x00")
    ended = invoke("steady", *words)
    assert (ended.code, ended.out) == (2, "")
    assert said in ended.err
    assert ended.err.count("\n") == 1


@pytest.mark.parametrize("others", [("wa_app",), ("wa_device",), ("wa_app", "wa_device", "host_bytes_written")])
def test_a_column_without_a_cell_is_none(invoke: Invoke, tmp_path: Path, others: Sequence[str]) -> None:
    """A program that does not know an amplification leaves its cells blank; one blank cell is a mistake."""
    with_them, without = tmp_path / "with.csv", tmp_path / "without.csv"
    plain(without)
    lines = without.read_text().splitlines()
    blank = "," * len(others)
    with_them.write_text("\n".join([",".join((lines[0], *others)), *(line + blank for line in lines[1:])]) + "\n")
    a, b = invoke("steady", with_them, without, "--json").json()
    assert {k: v for k, v in a.items() if k != "file"} == {k: v for k, v in b.items() if k != "file"}
    with_them.write_text(with_them.read_text().replace(blank + "\n", ",1" * len(others) + "\n", 1))
    ended = invoke("steady", with_them)
    assert ended.code == 2
    assert "is empty; write a number" in ended.err


def test_a_refused_run_is_reported_with_its_reason(fake: Fake, plan_file: Path, tmp_path: Path, invoke: Invoke) -> None:
    plan_file.write_text(PLAN + '[kept]\nfrom = "none"\n')
    out = tmp_path / "run"
    assert invoke("run", plan_file, "--out", out).code == 2
    ended = invoke("steady", out)
    assert (ended.code, ended.out) == (2, "")
    assert f"{out}: the run was refused before it measured anything (" in ended.err
    assert "none" in ended.err
    assert ended.err.count("\n") == 1


@pytest.mark.parametrize("cell", ["nan", "-5", "", "x"])
def test_a_damaged_sample_is_one_sentence(invoke: Invoke, tmp_path: Path, cell: str) -> None:
    path = samples(tmp_path / "samples.csv", writes=cell)
    ended = invoke("steady", path)
    assert ended.code == 2
    assert f"{path}: line 2 is damaged" in ended.err


def test_spaces_a_mark_of_the_encoding_and_blank_lines_do_no_harm(invoke: Invoke, tmp_path: Path) -> None:
    path = tmp_path / "loose.csv"
    path.write_text("\ufeff t_s , throughput_ops_s\n\n" + "\n".join(f" {i} , 5.0" for i in range(30)) + "\n\n")
    assert invoke("steady", path, "--json").json()[0]["steady"]


def test_error_rates_by_a_command(invoke: Invoke, monkeypatch: pytest.MonkeyPatch) -> None:
    from spillway.steady import rates, synthetic

    monkeypatch.setattr(synthetic, "KINDS", [each for each in synthetic.KINDS if "three series" in each.name][:2])
    monkeypatch.setattr(rates, "KINDS", synthetic.KINDS)
    monkeypatch.setattr(rates.error_rates, "__defaults__", (synthetic.KINDS, (60, 120), lambda rate: None))
    ended = invoke("steady", "--error-rates", "--series", "20", "--json")
    found = json.loads(ended.out)
    assert (found["series"], found["seed"]) == (20, 1)
    assert [(each["kind"], each["samples"]) for each in found["rates"]] == [
        (kind.name, count) for kind in synthetic.KINDS for count in (60, 120)
    ]
    assert all(0 <= each["low"] <= each["rate"] <= each["high"] <= 1 for each in found["rates"])
    said = invoke("steady", "--error-rates", "--series", "20").out
    assert "Steady series called not steady, in % (95 % interval)" in said
    assert "three series of white noise, 5 %" in said


HEADER = "t_s,throughput_ops_s\n"
HUNDRED = [f"{i},{1000 + i % 3}" for i in range(1, 101)]


def lines(*at: tuple[int, str]) -> str:
    """A good series with some lines in place of others."""
    rows = list(HUNDRED)
    for index, line in at:
        rows[index] = line
    return HEADER + "\n".join(rows)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (HEADER + "\n".join(["1,5"] * 100), "t_s is 1 after 1"),
        (HEADER + "\n".join(reversed(HUNDRED)), "sort the lines by t_s"),
        (lines((50, "51,nan")), "throughput_ops_s is nan"),
        (lines((50, "51,inf")), "throughput_ops_s is inf"),
        (lines((50, "nan,3")), "t_s is nan"),
        (lines((50, "51")), "line 52 has 1 cells"),
        (lines((50, "51,1e308")), "throughput_ops_s is 1e308, which no drive or clock has"),
        (lines((99, "1e300,5")), "t_s is 1e300, which no drive"),
        (lines((50, "51,1e-300")), "throughput_ops_s is 1e-300, which no drive"),
        (lines((50, "51,1_000")), "'1_000', which is not a number"),
        (lines((50, "51,١٠٠٠")), "which is not a number"),
        (lines((50, '51,"1,000"')), "'1,000', which is not a number"),
        (lines((50, "51;1000")), "line 52 has 1 cells"),
        (lines((50, '51,"1000')), "line 52 is no line of a CSV file"),
        (lines((50, "51,10\x0000")), "which is not a number"),
        (lines((50, "51," + "9" * 200_000)), "line 52 is no line of a CSV file"),
        (HEADER.replace(",", ";") + "\n".join(HUNDRED).replace(",", ";"), "line 1 has no column t_s"),
        ("t_s\n" + "\n".join("1234"), "line 1 has no column throughput_ops_s"),
        (HEADER + "\n".join(f"{i}e-12,5" for i in range(100)), "its times are in seconds"),
        (HEADER, "the series has 0 samples"),
        ("", "the file is empty"),
        ("\ufeff\n \n", "the file is empty"),
    ],
)
def test_hostile_series_are_refused_in_one_sentence(text: str, said: str, tmp_path: Path, invoke: Invoke) -> None:
    (tmp_path / "a.csv").write_text(text, encoding="utf-8", newline="")
    ended = invoke("steady", tmp_path / "a.csv")
    assert (ended.code, ended.out, said in ended.err) == (2, "", True), ended.err
    assert len(ended.err.splitlines()) == 1


def test_bytes_that_are_no_text_and_files_without_an_end(tmp_path: Path, invoke: Invoke) -> None:
    (tmp_path / "a.csv").write_bytes(np.random.default_rng(1).bytes(5000))
    assert "this is not text" in invoke("steady", tmp_path / "a.csv").err
    (tmp_path / "b.csv").write_text(HEADER, encoding="utf-16")
    assert "this is not text" in invoke("steady", tmp_path / "b.csv").err


@pytest.mark.parametrize(
    "spoil",
    [
        lambda text: text,
        lambda text: "\ufeff" + text,
        lambda text: text.replace("\n", "\r\n"),
        lambda text: text.replace("\n", "\r"),
        lambda text: "\n".join(",".join(f'"{cell}"' for cell in row.split(",")) for row in text.splitlines()),
        lambda text: text.replace(",", " , "),
        lambda text: text.replace("\n", "\n\n") + "\n\n",
    ],
)
def test_ways_of_writing_a_series_say_the_same(spoil: Callable[[str], str], tmp_path: Path, invoke: Invoke) -> None:
    (tmp_path / "a.csv").write_text(spoil(lines()), encoding="utf-8", newline="")
    (found,) = invoke("steady", "--json", tmp_path / "a.csv").json()
    assert (found["steady"], found["since_s"]) == (True, 1.0)


@pytest.mark.parametrize("header", ["t_s,throughput_ops_s,wa_app", "t_s,throughput_ops_s", "secs_elapsed,interval_qps"])
def test_a_series_in_which_nothing_ran_is_not_steady(header: str, tmp_path: Path, invoke: Invoke) -> None:
    zeros = [[0] * 100] * header.count(",")
    (found,) = invoke("steady", "--json", table(tmp_path / "a.csv", header, range(100), *zeros)).json()
    assert (found["steady"], found["reason"]) == (False, "throughput was zero throughout")
    log = tmp_path / "x_iops.1.log"
    log.write_text("\n".join(f"{1000 * i}, 0, 1, 4096" for i in range(1, 101)))
    (found,) = invoke("steady", "--json", log).json()
    assert (found["steady"], found["reason"]) == (False, "throughput was zero throughout")
    idle = samples(tmp_path / "run" / "samples.csv", writes=0)
    (found,) = invoke("steady", "--json", idle).json()
    assert found["steady"] is False


@pytest.mark.long
def test_a_million_lines_are_judged(tmp_path: Path, invoke: Invoke) -> None:
    count = 1_000_000
    rows = "\n".join(f"{i},{1000 + i % 7}" for i in range(1, count + 1))
    (tmp_path / "a.csv").write_text(HEADER + rows)
    (found,) = invoke("steady", "--json", tmp_path / "a.csv").json()
    assert found["steady"] is True
