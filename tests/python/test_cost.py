"""What a data set costs at a throughput: by hand, against brute force, laws, and what is refused."""

import csv
import json
import math
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from browser import complaints, visit
from conftest import Fake, Invoke

from spillway.cost.formula import (
    Cells,
    Points,
    Terms,
    cheapest,
    drives_bought,
    drives_needed,
    drives_worn_out,
    energy_cost,
    round_above,
    winners,
)
from spillway.errors import SpillwayError
from spillway.figures.lifetime import YEAR_S, Endurance, Price, Work, lifetime
from spillway.rundir.directory import read_run

GB, TB = 1e9, 1e12


def system(*points: tuple[float, float], price: float = 1.0, **given: list[float]) -> Points:
    """Points of (data set, throughput); nothing wears out and nothing is paid for power unless it is given."""
    count = len(points)
    columns = {"spent": [0.0] * count, "endurance": [math.inf] * count, "watts": [0.0] * count} | given
    held, rates = [size for size, _ in points], [rate for _, rate in points]
    prices = np.full(count, price)
    wear = np.array(columns["spent"]), np.array(columns["endurance"])
    return Points(np.array(held), np.array(rates), *wear, prices, np.array(columns["watts"]))


# ---------------------------------------------------------------- by hand


def test_drives_are_the_larger_of_what_size_and_rate_need() -> None:
    # 300 GB and 10 000 ops/s a drive: 1 TB takes 4 drives, 35 000 ops/s take 4, 50 000 take 5.
    found = drives_needed([[1 * TB], [3 * TB]], [35e3, 50e3], 300 * GB, 10e3)
    assert found.tolist() == [[4, 5], [10, 10]]
    assert drives_needed(0.3, 1, 0.1, 1).item() == 3, "0.3 / 0.1 is 3 and not the 3.0000000000000004 of floats"
    assert drives_needed(1, 1, 1e9, 1e9).item() == 1


def test_a_small_grid_by_hand() -> None:
    # One drive holds 100 GB at 10 k ops/s or 200 GB at 4 k. 400 GB at 8 k: 4 drives or max(2, 2); at 20 k: 4 or 5.
    lsm = cheapest(system((100 * GB, 10e3), (200 * GB, 4e3)), [400 * GB], [8e3, 20e3, 50e3], Terms(5))
    assert lsm.drives.tolist() == [[2, 4, 5]]
    assert lsm.point.tolist() == [[1, 0, 0]]
    # The other holds 300 GB at 3 k: max(2, 3), max(2, 7), max(2, 17).
    tree = cheapest(system((300 * GB, 3e3)), [400 * GB], [8e3, 20e3, 50e3], Terms(5))
    assert tree.drives.tolist() == [[3, 7, 17]]
    # 900 GB at 8 k: 9 or 5 against 3: the tree wins for large data sets at low throughput (B10).
    large = [cheapest(each, [400 * GB, 900 * GB], [8e3], Terms(5)) for each in (
        system((100 * GB, 10e3), (200 * GB, 4e3)), system((300 * GB, 3e3)),
    )]  # fmt: skip
    assert winners([each.total for each in large]).tolist() == [[[True], [False]], [[False], [True]]]


def test_replacements_and_energy_by_hand() -> None:
    # 10 k ops/s of 1 kB each for 5 years: 1.578e15 bytes, on drives of 1e15: 1.58 are worn out, so 2 are bought.
    assert drives_worn_out(10e3, 1e3, 1e15, 5).item() == pytest.approx(5 * YEAR_S * 1e7 / 1e15)
    assert drives_bought([1, 2, 3], [1.58, 1.58, 1.58]).tolist() == [2, 2, 3]
    # 12 W for a year of 365.25 days are 105.192 kWh.
    assert energy_cost(2, 12, 1, 0.5).item() == pytest.approx(105.192)
    points = system((1 * TB, 20e3), price=300.0, spent=[1e3], endurance=[1e15], watts=[12.0])
    cell = cheapest(points, [1 * TB], [10e3], Terms(5, 0.5))
    parts = [cell.drives, cell.bought, cell.purchase, cell.replacement, cell.energy, cell.total]
    assert [each.item() for each in parts] == pytest.approx([1, 2, 300, 300, 262.98, 862.98])


def test_replacements_agree_with_the_lifetime_of_a_run() -> None:
    # A drive that does its run's rate for the years that the run's summary says is worn out once.
    work = Work(seconds=10, operations=1e5, user_bytes=1e8, host_bytes=3e8, nand_bytes=6e8)
    endurance = Endurance(capacity_bytes=80 * GB, physical_bytes=100 * GB, rated_pe_cycles=1000)
    years = lifetime(work, endurance, Price())["years"]
    assert isinstance(years, float)
    assert drives_worn_out(1e4, 6e3, 1e14, years).item() == pytest.approx(1.0)


def test_equal_costs_are_ties_and_the_fewest_bought_stand_for_a_system() -> None:
    assert winners([[[2.0]], [[2.0 * (1 + 1e-12)]], [[2.1]]]).tolist() == [[[True]], [[True]], [[False]]]
    # Two drives at 100 cost what one at 200 does.
    both = system((100, 10), (200, 10))
    priced = Points(both.held_bytes, both.sustained_ops_s, both.spent_bytes_per_op, both.endurance_bytes,
                    np.array([100.0, 200.0]), both.watts)  # fmt: skip
    assert cheapest(priced, [200], [10], Terms(1)).point.item() == 1


@pytest.mark.parametrize(("value", "rounded"), [(1, 1), (1.01, 2), (20, 20), (21, 50), (6e12, 1e13), (0.3, 0.5)])
def test_an_axis_ends_at_a_round_number(value: float, rounded: float) -> None:
    assert round_above(value) == pytest.approx(rounded)


# ---------------------------------------------------------------- against brute force, and laws


def a_system(rng: random.Random) -> Points:
    count = rng.randint(1, 4)
    drawn = [(rng.randint(1, 50), rng.randint(1, 40)) for _ in range(count)]
    spent = [rng.choice([0.0, rng.uniform(0, 5)]) for _ in range(count)]
    endurance = [rng.choice([math.inf, rng.uniform(0.1, 20) * YEAR_S]) for _ in range(count)]
    watts = [rng.choice([0.0, 7.0])] * count
    return system(*drawn, price=rng.choice([1.0, 99.0]), spent=spent, endurance=endurance, watts=watts)


def slowly(points: Points, data: float, rate: float, terms: Terms) -> tuple[float, int]:
    """Least cost and the fewest bought at it, by counting drives one by one."""
    found = []
    for i in range(points.held_bytes.size):
        n = 1
        while n * points.held_bytes[i] < data or n * points.sustained_ops_s[i] < rate:
            n += 1
        written = terms.service_years * YEAR_S * rate * points.spent_bytes_per_op[i]
        bought = n
        while bought * points.endurance_bytes[i] < written * (1 - 1e-9):
            bought += 1
        kwh = n * points.watts[i] / 1000 * terms.service_years * 8766
        found.append((round(points.drive_price[i] * bought + kwh * terms.kwh_price, 6), bought))
    return min(found)


@pytest.mark.parametrize("seed", range(60))
def test_every_cell_is_what_counting_finds(seed: int) -> None:
    rng = random.Random(seed)
    points, terms = a_system(rng), Terms(rng.uniform(0.5, 8), rng.choice([0.0, 0.4]))
    data, rates = [rng.randint(1, 400) for _ in range(4)], [rng.randint(1, 300) for _ in range(3)]
    cells = cheapest(points, data, rates, terms)
    for i, size in enumerate(data):
        for j, rate in enumerate(rates):
            cost, bought = slowly(points, size, rate, terms)
            assert cells.total[i, j] == pytest.approx(cost)
            assert cells.bought[i, j] == bought


@pytest.mark.parametrize("seed", range(40))
def test_more_data_or_throughput_never_costs_less_and_a_lost_point_neither(seed: int) -> None:
    rng = random.Random(1000 + seed)
    points, terms = a_system(rng), Terms(rng.uniform(0.5, 8), 0.3)
    data, rates = np.sort([rng.uniform(1, 400) for _ in range(12)]), np.sort([rng.uniform(1, 300) for _ in range(9)])
    whole = cheapest(points, data, rates, terms)
    for axis in (0, 1):
        assert (np.diff(whole.total, axis=axis) >= -1e-9 * whole.total.max()).all()
        one = cheapest(system((20, 9)), data, rates, terms)
        assert (np.diff(one.drives, axis=axis) >= 0).all()
    if points.held_bytes.size > 1:
        fewer = Points(*(each[1:] for each in vars(points).values()))
        assert (cheapest(fewer, data, rates, terms).total >= whole.total * (1 - 1e-9)).all()
    dearer = Points(*(each * (2 if name == "drive_price" else 1) for name, each in vars(points).items()))
    assert (cheapest(dearer, data, rates, terms).total >= whole.total).all()


def test_no_system_costs_less_than_a_winner() -> None:
    rng = random.Random(7)
    found: list[Cells] = [cheapest(a_system(rng), range(1, 90, 7), range(1, 80, 9), Terms(5, 0.2)) for _ in range(5)]
    totals = np.stack([each.total for each in found])
    wins = winners(totals)
    assert wins.any(axis=0).all()
    assert np.where(wins, totals, np.inf).min(axis=0) == pytest.approx(totals.min(axis=0))


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: drives_needed(0, 1, 1, 1),
        lambda: drives_needed(1, 1, 1, -1),
        lambda: Terms(0),
        lambda: Terms(-1),
        lambda: Terms(5, -0.1),
        lambda: system(),
        lambda: system((1, 1), price=-1.0),
        lambda: drives_worn_out(1, -1, 1, 1),
    ],
)
def test_a_quantity_out_of_range_is_refused(wrong: Callable[[], object]) -> None:
    with pytest.raises(SpillwayError):
        wrong()


# ---------------------------------------------------------------- the command, over a table

TABLE: list[dict[str, object]] = [
    {"system": "LSM", "drive": "p3600", "data_set_bytes": "100GB", "throughput_ops_s": 20000},
    {"system": "LSM", "drive": "p3600", "data_set_bytes": "200GB", "throughput_ops_s": 9000},
    {"system": "B-tree", "drive": "p3600", "data_set_bytes": "200GB", "throughput_ops_s": 5000},
    {"system": "B-tree", "drive": "p3600", "data_set_bytes": "300GB", "throughput_ops_s": 4000},
    {"system": "LSM", "drive": "p3600", "data_set_bytes": "150GB", "throughput_ops_s": 18000, "extra_op": "yes"},
]  # fmt: skip
WEAR = {"host_bytes_per_op": 2500, "wa_device": 2, "rated_pe_cycles": 6000, "physical_bytes": "512GB"}


def table(path: Path, rows: list[dict[str, Any]]) -> Path:
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(dict.fromkeys(name for row in rows for name in row)))
        writer.writeheader()
        writer.writerows(rows)
    return path


@pytest.fixture
def points(tmp_path: Path) -> Path:
    return table(tmp_path / "points.csv", [row | WEAR for row in TABLE])


GRID = ("--data-sets", "600GB..3TB", "--throughputs", "25e3..125e3", "--cells", 5)
MONEY = ("--drive-price", 400, "--currency", "EUR", "--watts", 12, "--kwh-price", 0.3)


def test_maps_for_people(points: Path, invoke: Invoke, golden: Callable[[str, str], None]) -> None:
    ended = invoke("cost", points, *GRID, *MONEY)
    assert ended.code == 0, ended.err
    counted = invoke("cost", points, "--data-sets", "1TB,2TB", "--throughputs", "1e4")
    golden("cost.txt", ended.out + "\n\n" + counted.out)


def test_maps_for_programs_are_the_formulas(points: Path, invoke: Invoke) -> None:
    found = invoke("cost", points, *GRID, *MONEY, "--json").json()
    assert [(each["letter"], each["name"]) for each in found["systems"]] == [
        ("A", "LSM"), ("B", "B-tree"), ("C", "LSM, extra OP"),
    ]  # fmt: skip
    assert [each["title"] for each in found["maps"]] == [
        "Without extra over-provisioning", "With extra over-provisioning", "All systems",
    ]  # fmt: skip
    for cell in found["maps"][0]["cells"]:
        data, rate = cell["data_set_bytes"], cell["throughput_ops_s"]
        totals = {}
        for letter, rows in (("A", ((100, 20e3), (200, 9e3))), ("B", ((200, 5e3), (300, 4e3)))):
            worn = 5 * YEAR_S * rate * 5000 / (6000 * 512 * GB)
            drives = [max(math.ceil(data / GB / d - 1e-9), math.ceil(rate / x - 1e-9)) for d, x in rows]
            energy = 12e-3 * 5 * 8766 * 0.3
            totals[letter] = min(400 * max(n, math.ceil(worn)) + n * energy for n in drives)
        assert cell["totals"] == pytest.approx(totals)
        assert cell["total"] == pytest.approx(min(totals.values()))
        assert cell["purchase"] + cell["replacement"] + cell["energy"] == pytest.approx(cell["total"])
        assert cell["winners"] == [each for each, own in totals.items() if own == pytest.approx(cell["total"])]
    assert {tuple(cell["winners"]) for cell in found["maps"][0]["cells"]} >= {("A",), ("B",)}


def test_more_over_provisioning_gets_a_map_of_its_own_only_where_there_is_any(tmp_path: Path, invoke: Invoke) -> None:
    plain = table(tmp_path / "plain.csv", [row for row in TABLE if "extra_op" not in row])
    maps = invoke("cost", plain, "--json").json()["maps"]
    assert [each["title"] for each in maps] == ["Without extra over-provisioning"]


def test_the_same_points_tie_everywhere(tmp_path: Path, invoke: Invoke) -> None:
    rows = [{"system": name, "data_set_bytes": "100GB", "throughput_ops_s": 7000} for name in ("one", "other")]
    ended = invoke("cost", table(tmp_path / "same.csv", rows))
    assert "one and other cost the same in all of the map" in ended.out
    assert "A=B" in ended.out


def test_prices_by_drive_win_over_the_tables_which_win_over_the_rest(tmp_path: Path, invoke: Invoke) -> None:
    rows = [
        {"system": "s", "drive": name, "data_set_bytes": "1TB", "throughput_ops_s": 1000, "drive_price": price}
        for name, price in (("first", 100), ("second", 200), ("third", ""))
    ]
    flags = ("--drive-price", 300, "--drive-price", "second=250")
    found = invoke("cost", table(tmp_path / "p.csv", rows), *flags, "--json").json()
    assert [each["points"][0]["drive_price"] for each in found["systems"]] == [100, 250, 300]
    assert [each["name"] for each in found["systems"]] == ["s on first", "s on second", "s on third"]


def test_rated_writes_take_the_place_of_cycles(points: Path, invoke: Invoke) -> None:
    found = invoke("cost", points, "--tbw", "2PB", "--json").json()
    assert {each["worn_by"] for each in found["systems"]} == {"rated host bytes"}
    years = found["systems"][0]["points"][0]["years_at_full_rate"]
    assert years == pytest.approx(2e15 / (20e3 * 2500) / YEAR_S)


def test_the_page_opens_and_says_what_the_table_does(points: Path, tmp_path: Path, invoke: Invoke) -> None:
    page = tmp_path / "cost.html"
    ended = invoke("cost", points, *GRID, *MONEY, "--out", page)
    assert ended.code == 0, ended.err
    text = page.read_text()
    assert "All systems" in text
    assert "Measured points" in text
    assert "spillway cost" in text
    dumped = visit(page, "--dump-dom")
    assert complaints(dumped.console) == []
    assert dumped.output.count("bk-Figure") >= 3


@pytest.mark.parametrize(
    "form", ["100GB", "100000000000", "100000000000.0", "1e11", "1e+11", "1.000000000000000000E+11"]
)
def test_a_size_of_a_table_is_bytes_however_a_program_prints_them(form: str, tmp_path: Path, invoke: Invoke) -> None:
    path = table(tmp_path / "p.csv", [{"system": "A", "data_set_bytes": form, "throughput_ops_s": "2e3"}])
    point = invoke("cost", path, "--json").json()["systems"][0]["points"][0]
    assert (point["data_set_bytes"], point["throughput_ops_s"]) == (100e9, 2000)


@pytest.mark.browser
def test_one_data_set_at_one_throughput_is_answered(tmp_path: Path, invoke: Invoke) -> None:
    """Who names both wants that one cell."""
    rows = [
        {"system": name, "data_set_bytes": held, "throughput_ops_s": rate}
        for name, held, rate in [("A", 100e9, 50e3), ("A", 300e9, 20e3), ("B", 200e9, 30e3)]
    ]
    path, page = table(tmp_path / "p.csv", rows), tmp_path / "cost.html"
    asked = ("cost", path, "--data-sets", "3TB", "--throughputs", 100e3)
    (cell,) = invoke(*asked, "--json").json()["maps"][0]["cells"]
    assert (cell["winners"], cell["drives"], cell["totals"]) == (["A"], 10, {"A": 10.0, "B": 15.0})
    assert "A 10" in invoke(*asked, "--out", page).out
    dumped = visit(page, "--dump-dom")
    assert complaints(dumped.console) == []
    assert "bk-Figure" in dumped.output


def rows_with(**cells: object) -> list[dict[str, Any]]:
    return [TABLE[0] | WEAR | cells, TABLE[2] | WEAR]


@pytest.mark.parametrize(
    ("rows", "flags", "said"),
    [
        ([], (), "the column data_set_bytes is missing"),
        (rows_with(), ("--cells", 1), "the grid has one cell"),
        (rows_with(), ("--data-sets", "1TB", "--cells", 1), "the grid has one cell"),
        (rows_with(), ("--cells", 10**8), "from 1 to 100"),
        (rows_with(), ("--cells", 0), "--cells is 0"),
        (rows_with(), ("--drive-price", -5), "--drive-price is -5"),
        (rows_with(), ("--drive-price", "nan"), "--drive-price is nan"),
        (rows_with(), ("--drive-price", "p36=5"), "did you mean 'p3600'?"),
        (rows_with(), ("--drive-price", 5, "--drive-price", 6), "given twice for every drive"),
        (rows_with(), ("--service-years", 0), "--service-years is 0"),
        (rows_with(), ("--kwh-price", 0.3), "--kwh-price is given without --watts"),
        (rows_with(), ("--watts", 12), "power is given without --kwh-price"),
        (rows_with(), ("--watts", 12, "--kwh-price", 0.3), "the drives have no price"),
        (rows_with(), ("--data-sets", "3TB..1TB"), "the first end is below the second"),
        (rows_with(), ("--data-sets", "much"), "which is not a size"),
        (rows_with(), ("--throughputs", "fast..faster"), "it takes a number above 0"),
        (rows_with(steady="no"), (), "not steady, so that its throughput is not what a drive sustains"),
        (rows_with(load="other"), (), "different loads"),
        (rows_with(drive="q", drive_price=3), (), "'p3600' has no price and others have one"),
        (rows_with(drive="q", watts=3), ("--kwh-price", 1, "--drive-price", 9), "--watts p3600=W"),
        (rows_with(data_set_bytes=""), (), "line 2: data_set_bytes is empty"),
        (rows_with(data_set_bytes="0"), (), "line 2: data_set_bytes is '0'"),
        (rows_with(data_set_bytes="0e5"), (), "line 2: data_set_bytes is '0e5'"),
        (rows_with(data_set_bytes="1e-3"), (), "which is not a size"),
        (rows_with(data_set_bytes="1e99"), (), "which no drive has"),
        (rows_with(data_set_bytes="1e999999999"), (), "which is not a size"),
        (rows_with(throughput_ops_s="-1"), (), "line 2: throughput_ops_s is '-1'"),
        (rows_with(throughput_ops_s="inf"), (), "line 2: throughput_ops_s is 'inf'"),
        (rows_with(extra_op="maybe"), (), "it takes yes or no"),
        (rows_with(host_bytes_per_op=""), (), "wa_device is given without host_bytes_per_op"),
        (rows_with(flash_bytes_per_op=3), (), "one figure: give one of them"),
        (rows_with(throughput=3), (), "did you mean 'throughput_ops_s'?"),
    ],
)
def test_what_cannot_be_reckoned_is_refused_in_one_sentence(
    rows: list[dict[str, Any]], flags: tuple[object, ...], said: str, tmp_path: Path, invoke: Invoke
) -> None:
    path = table(tmp_path / "points.csv", rows) if rows else tmp_path / "points.csv"
    if not rows:
        path.write_text("system\n")
    ended = invoke("cost", path, *flags, "--out", tmp_path / "cost.html")
    assert ended.code == 2
    assert said in ended.err
    assert ended.err.count("\n") == 1
    assert not (tmp_path / "cost.html").exists()


def test_a_table_without_rows_and_a_missing_file_are_refused(tmp_path: Path, invoke: Invoke) -> None:
    (tmp_path / "empty.csv").write_text("system,data_set_bytes,throughput_ops_s\n")
    assert "there is no measured point" in invoke("cost", tmp_path / "empty.csv").err
    assert "cannot be read" in invoke("cost", tmp_path / "gone.csv").err
    assert "no such run directory" in invoke("cost", tmp_path / "gone").err
    (tmp_path / "cut.csv").write_text("system,data_set_bytes,throughput_ops_s\nLSM,1TB\n")
    assert "line 2 has not one cell for each column" in invoke("cost", tmp_path / "cut.csv").err


# ---------------------------------------------------------------- the command, over run directories

SWEEP = """
[sweep]
[[sweep.points]]
"load.num" = 10000
"engine.options.max_open_files" = 10
[[sweep.points]]
"load.num" = 20000
"engine.options.max_open_files" = 20
[[arms]]
name = "whole"
[[arms]]
name = "part"
"fs.size" = "48MiB"
"initial.kind" = "trimmed"
"""


@pytest.fixture
def swept(fake: Fake, plan_file: Path, tmp_path: Path, invoke: Invoke) -> Path:
    """A sweep over the data set, with and without a smaller partition, made steady and given sizes by hand."""
    plan_file.write_text(plan_file.read_text() + SWEEP)
    out = tmp_path / "run"
    assert invoke("run", plan_file, "--out", out, "--set", "cost.drive_price=200").code == 0
    edit(out, lambda name, arm: arm.update(steady=True, live_user_bytes=1e7 * int(arm["point"]["load.num"]) / 1e4))
    return out


def edit(run: Path, change: Callable[[str, dict[str, Any]], object]) -> None:
    summary = json.loads((run / "summary.json").read_text())
    for name, arm in summary["arms"].items():
        change(name, arm)
    (run / "summary.json").write_text(json.dumps(summary))


def test_a_sweep_over_the_data_set_is_points_of_one_system(swept: Path, invoke: Invoke) -> None:
    found = invoke("cost", swept, "--json").json()
    systems = [(each["name"], each["drive"], len(each["points"])) for each in found["systems"]]
    assert systems == [("whole", "tiny", 2), ("part, extra OP", "tiny", 2)]
    assert found["systems"][0]["points"][1]["data_set_bytes"] == pytest.approx(2e7)
    assert found["systems"][0]["points"][0]["drive_price"] == 200
    arm = json.loads((swept / "summary.json").read_text())["arms"]["whole, num 10000, max_open_files 10"]
    point = found["systems"][0]["points"][0]
    assert point["throughput_ops_s"] == pytest.approx(arm["throughput_ops_s"])
    assert point["flash_bytes_per_op"] == pytest.approx(arm["lifetime"]["flash_bytes_per_operation"])
    assert point["years_at_full_rate"] == pytest.approx(arm["lifetime"]["full_size_years"], rel=1e-3)


def test_runs_recorded_without_over_provisioning_are_distinguished_too(swept: Path, invoke: Invoke) -> None:
    def age(name: str, arm: dict[str, Any]) -> None:
        for key in [key for key in arm if key.startswith("over_provisioning") or key == "data_set_share"]:
            del arm[key]

    before = invoke("cost", swept, "--json").json()
    edit(swept, age)
    assert invoke("cost", swept, "--json").json()["maps"] == before["maps"]


def test_a_scaled_drive_stands_for_the_whole_one(swept: Path, invoke: Invoke) -> None:
    plain = invoke("cost", swept, "--json").json()
    edit(swept, lambda name, arm: arm["lifetime"].update(full_capacity_bytes=100 * arm["lifetime"]["capacity_bytes"]))
    grown = invoke("cost", swept, "--json").json()
    for before, after in zip(plain["systems"], grown["systems"], strict=True):
        for one, other in zip(before["points"], after["points"], strict=True):
            assert other["data_set_bytes"] == pytest.approx(100 * one["data_set_bytes"])
            assert other["throughput_ops_s"] == one["throughput_ops_s"]


def test_dilated_time_counts_in_the_drives_seconds(swept: Path, invoke: Invoke) -> None:
    plain = invoke("cost", swept, "--json").json()["systems"][0]["points"][0]["throughput_ops_s"]
    edit(swept, lambda name, arm: arm["standing"].update(time_scale=4.0))
    assert invoke("cost", swept, "--json").json()["systems"][0]["points"][0]["throughput_ops_s"] == 4 * plain


def test_what_came_before_a_run_was_steady_is_not_what_it_sustains(swept: Path, invoke: Invoke) -> None:
    edit(swept, lambda name, arm: arm["standing"].update(steady_since_s=5.0))
    point = invoke("cost", swept, "--json").json()["systems"][0]["points"][0]
    arm = read_run(swept).arms[0]
    rows = [row for row in arm.rows if row["t_s"] > 5.05]
    operations = sum(row["writes"] for row in rows)
    assert 0 < len(rows) < len(arm.rows)
    assert point["throughput_ops_s"] == pytest.approx(operations / sum(row["dt_s"] for row in rows))
    assert point["throughput_ops_s"] != pytest.approx(arm.summary["throughput_ops_s"], rel=1e-4)
    assert point["host_bytes_per_op"] == pytest.approx(sum(row["host_bytes_written"] for row in rows) / operations)
    flash = sum(value for row in rows for name, value in row.items() if name.startswith("nand_bytes_programmed_"))
    assert point["flash_bytes_per_op"] == pytest.approx(flash / operations)
    (swept / arm.summary["directory"] / "samples.csv").unlink()
    ended = invoke("cost", swept)
    assert ended.code == 2
    assert "the run directory is not whole" in ended.err


def test_a_run_that_is_not_steady_is_refused_or_marked(swept: Path, invoke: Invoke) -> None:
    edit(swept, lambda name, arm: arm.update(steady=False))
    ended = invoke("cost", swept)
    assert ended.code == 2
    assert "not steady" in ended.err
    assert "3 more of 4 points" in ended.err
    anyway = invoke("cost", swept, "--anyway")
    assert anyway.code == 0
    assert "not steady" in anyway.out


def test_runs_in_virtual_time_are_no_points_of_cost(swept: Path, invoke: Invoke) -> None:
    edit(swept, lambda name, arm: arm["standing"].update(pacing="off"))
    assert "virtual time" in invoke("cost", swept).err


def test_failed_and_interrupted_runs_are_left_out_and_listed(swept: Path, invoke: Invoke) -> None:
    def fail(name: str, arm: dict[str, Any]) -> None:
        if "num 20000" in name:
            arm["standing"].update(complete=False, failure="the drive is full" if "part" in name else None)

    edit(swept, fail)
    ended = invoke("cost", swept)
    assert ended.code == 0
    assert "whole, num 20000, max_open_files 20 was ended early" in ended.err
    assert "part, num 20000, max_open_files 20 failed" in ended.err
    edit(swept, lambda name, arm: arm["standing"].update(complete=False))
    assert "there is no measured point" in invoke("cost", swept).err


@pytest.mark.parametrize("key", ["live_user_bytes", "throughput_ops_s"])
def test_a_run_without_its_data_set_or_rate_is_no_point(key: str, swept: Path, invoke: Invoke) -> None:
    edit(swept, lambda name, arm: arm.update({key: None}))
    ended = invoke("cost", swept)
    assert ended.code == 2
    assert "so that it is no point" in ended.err


def test_two_runs_of_one_name_that_differ_are_two_systems(
    swept: Path, fake: Fake, plan_file: Path, tmp_path: Path, invoke: Invoke
) -> None:
    other = tmp_path / "other"
    assert invoke("run", plan_file, "--out", other, "--set", "engine.options.write_buffer_size=2097152").code == 0
    edit(other, lambda name, arm: arm.update(steady=True))
    flags = ("--drive-price", 5, "--json")
    names = [each["name"] for each in invoke("cost", swept, other, *flags).json()["systems"]]
    assert names == [
        f"whole of {swept}", f"part of {swept}, extra OP", f"whole of {other}", f"part of {other}, extra OP",
    ]  # fmt: skip
    again = tmp_path / "again"
    assert invoke("run", plan_file, "--out", again).code == 0
    edit(again, lambda name, arm: arm.update(steady=True))
    names = [each["name"] for each in invoke("cost", swept, again, *flags).json()["systems"]]
    assert names == ["whole", "part, extra OP"]


def test_runs_of_different_loads_do_not_compare(
    swept: Path, fake: Fake, plan_file: Path, tmp_path: Path, invoke: Invoke
) -> None:
    other = tmp_path / "other"
    assert invoke("run", plan_file, "--out", other, "--set", "load.value_bytes=100").code == 0
    edit(other, lambda name, arm: arm.update(steady=True))
    ended = invoke("cost", swept, other, "--drive-price", 5)
    assert ended.code == 2
    assert "different loads" in ended.err
    assert invoke("cost", swept, other, "--drive-price", 5, "--anyway").code == 0
