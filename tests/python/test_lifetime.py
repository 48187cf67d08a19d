"""Lifetime and money: closed forms, what is not known, and the figures of a run."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from conftest import Fake, Invoke

from spillway.figures.lifetime import (
    DAY_S,
    YEAR_S,
    Endurance,
    Price,
    Work,
    drive_writes_per_day,
    endurance_bytes,
    flash_bytes_per_operation,
    in_words,
    lifetime,
    money_per_year,
    percentage_used,
    why_no_years,
    years,
)
from spillway.plan.document import load_plan

GB = 1e9
# 100 GB of flash that lasts 1000 cycles: 1e14 NAND bytes.
SMALL = Endurance(capacity_bytes=80 * GB, physical_bytes=100 * GB, rated_pe_cycles=1000, mean_pe_cycles=20)
# In 10 s: 1e6 operations, 0.1 GB of user data, 0.4 GB to the drive, 0.8 GB to flash.
BUSY = Work(seconds=10, operations=1e6, user_bytes=0.1 * GB, host_bytes=0.4 * GB, nand_bytes=0.8 * GB)


def test_closed_forms() -> None:
    assert drive_writes_per_day(80 * GB, DAY_S, 80 * GB) == pytest.approx(1.0)
    assert percentage_used(3000, 3000) == 100
    assert flash_bytes_per_operation(0.8 * GB, 1e6) == 800
    assert endurance_bytes(1000, 100 * GB) == 1e14
    # An endurance of what is written in a year lasts a year, whatever the span it was measured over.
    assert years(5e9 * YEAR_S, 5e9 * 7, 7) == pytest.approx(1.0)
    assert money_per_year(300, 4) == 75


def test_years_follow_from_the_flash_and_money_from_the_years() -> None:
    found = lifetime(BUSY, SMALL, Price(100, "EUR"))
    assert found["years"] == pytest.approx(1e14 / (0.8 * GB / 10) / YEAR_S)
    assert found["years_by"] == "rated P/E cycles"
    assert found["money_per_year"] == pytest.approx(100 / found["years"])  # type: ignore[operator]
    assert found["drive_writes_per_day"] == pytest.approx(0.04 * GB * DAY_S / (80 * GB))
    assert found["percentage_used"] == pytest.approx(2.0)
    assert found["percentage_used_by_run"] == pytest.approx(100 * 0.8 * GB / 1e14)
    # wa_total is 8, so 1e14 NAND bytes are an eighth of that of user data.
    assert found["user_bytes_until_worn"] == found["full_size_user_bytes_until_worn"] == pytest.approx(1e14 / 8)


def test_twice_the_flash_bytes_halve_the_life_and_double_the_cost() -> None:
    worse = Work(BUSY.seconds, BUSY.operations, BUSY.user_bytes, BUSY.host_bytes, 2 * (BUSY.nand_bytes or 0))
    one, two = (lifetime(work, SMALL, Price(100, "EUR")) for work in (BUSY, worse))
    assert two["years"] == pytest.approx(one["years"] / 2)  # type: ignore[operator]
    assert two["money_per_year"] == pytest.approx(2 * one["money_per_year"])  # type: ignore[operator]
    assert two["flash_bytes_per_operation"] == pytest.approx(2 * one["flash_bytes_per_operation"])  # type: ignore[operator]
    assert two["drive_writes_per_day"] == one["drive_writes_per_day"]  # host bytes are the same


@pytest.mark.parametrize("empty", [0, 0.0, None])
def test_nothing_written_is_no_lifetime_and_not_an_endless_one(empty: float | None) -> None:
    idle = Work(seconds=10, operations=empty, user_bytes=empty, host_bytes=empty, nand_bytes=empty)
    found = lifetime(idle, SMALL, Price(100, "EUR"))
    for key in ("years", "full_size_years", "money_per_year", "drive_writes_per_day", "user_bytes_until_worn"):
        assert found[key] is None, key
    assert found["percentage_used"] == pytest.approx(2.0)
    json.dumps(found, allow_nan=False)


@pytest.mark.parametrize("seconds", [0, None])
def test_a_run_of_no_time_has_no_rate(seconds: float | None) -> None:
    found = lifetime(Work(seconds, 1, 1, 1, 1), SMALL, Price())
    assert found["years"] is None
    assert found["drive_writes_per_day"] is None
    assert found["flash_bytes_per_operation"] == 1


def test_a_disk_has_no_cycles_and_no_life_of_them() -> None:
    found = lifetime(BUSY, Endurance(capacity_bytes=80 * GB, rated_pe_cycles=0), Price(100, "EUR"))
    assert found["years"] is None
    assert found["percentage_used"] is None
    assert found["drive_writes_per_day"] is not None


def test_without_a_price_there_is_no_money() -> None:
    found = lifetime(BUSY, SMALL, Price())
    assert found["money_per_year"] is None
    assert found["currency"] is None


def test_a_scaled_drive_says_both_its_own_life_and_that_of_the_whole_capacity() -> None:
    scaled = Endurance(80 * GB, 100 * GB, 1000, full_capacity_bytes=800 * GB)
    found = lifetime(BUSY, scaled, Price(100, "EUR"))
    assert found["scaled_capacity"] is True
    assert found["full_size_years"] == pytest.approx(10 * found["years"])  # type: ignore[operator]
    assert found["full_size_drive_writes_per_day"] == pytest.approx(found["drive_writes_per_day"] / 10)  # type: ignore[operator]
    assert found["money_per_year"] == pytest.approx(100 / found["full_size_years"])  # type: ignore[operator]
    assert "whole capacity" in in_words(found)


def test_the_whole_capacity_has_the_flash_of_its_own_spare_factor() -> None:
    small = Endurance(80 * GB, 120 * GB, 1000, full_capacity_bytes=800 * GB)
    whole = Endurance(80 * GB, 120 * GB, 1000, full_capacity_bytes=800 * GB, full_physical_bytes=880 * GB)
    work = Work(3600, 1000, GB, GB, 2 * GB)
    by_growth, by_flash = lifetime(work, small, Price(100)), lifetime(work, whole, Price(100))
    assert by_flash["years"] == by_growth["years"]
    for found in (by_growth, by_flash):  # what the rate, 1 GB an hour, brings in those years
        hours = found["full_size_years"] * YEAR_S / 3600  # type: ignore[operator]
        assert found["full_size_user_bytes_until_worn"] == pytest.approx(hours * GB)
    assert by_flash["full_size_years"] == pytest.approx(by_growth["full_size_years"] * 880 / 1200)  # type: ignore[operator]
    assert by_flash["money_per_year"] == pytest.approx(by_growth["money_per_year"] * 1200 / 880)  # type: ignore[operator]


@pytest.mark.parametrize(
    ("line", "physical"),
    [
        ("", 256e9 / 0.93),
        ("drive.set.'capacity.spare_factor' = '0.2'", 256e9 / 0.8),
        ("drive.set.'capacity.over_provisioning' = '0.25'", 256e9 * 1.25),
        ("drive.set.'capacity.spare_factor' = 'much'", None),
    ],
)
def test_a_preset_tells_the_flash_of_its_own_capacity(tmp_path: Path, line: str, physical: float | None) -> None:
    path = tmp_path / "plan.toml"
    path.write_text(f"drive.preset = 'intel-545s'\ndrive.capacity = '2GB'\n{line}\n[[phases]]\nworkload = 'fillseq'\n")
    assert load_plan(path).arms[0].preset_physical_bytes() == (physical and pytest.approx(physical))


def test_a_warranty_in_bytes_stands_in_where_cycles_are_not_known() -> None:
    found = lifetime(BUSY, Endurance(80 * GB, rated_host_bytes=1e14), Price())
    assert found["years_by"] == "rated host bytes"
    assert found["years"] == pytest.approx(1e14 / (0.4 * GB / 10) / YEAR_S)
    assert found["percentage_used_by_run"] == pytest.approx(100 * 0.4 * GB / 1e14)
    assert found["user_bytes_until_worn"] == pytest.approx(1e14 / 4)  # wa_app is 4


def test_in_virtual_time_no_rate_is_the_drives() -> None:
    work = Work(**{**vars(BUSY), "real_time": False})
    found = lifetime(work, SMALL, Price(100, "EUR"))
    assert found["years"] is found["drive_writes_per_day"] is found["money_per_year"] is None
    assert found["flash_bytes_per_operation"] == 800
    assert found["user_bytes_until_worn"] is not None
    assert "worn after 11.4 TiB of user data" in in_words(found)
    assert "worn after" not in in_words(lifetime(BUSY, SMALL, Price()))


def test_words_of_a_run_recorded_before_lifetimes_are_none() -> None:
    assert in_words(None) == ""


@pytest.mark.parametrize(
    ("work", "endurance", "why"),
    [
        (replace(BUSY, real_time=False), SMALL, "in virtual time no rate is the drive's"),
        (BUSY, Endurance(80 * GB), "neither its rated P/E cycles nor its rated writes are known"),
        (replace(BUSY, nand_bytes=None), SMALL, "NAND bytes are not known"),
        (replace(BUSY, host_bytes=0, nand_bytes=0), SMALL, "nothing was written"),
        (BUSY, SMALL, ""),
        (replace(BUSY, nand_bytes=None), Endurance(80 * GB, rated_host_bytes=1e15), ""),
    ],
)
def test_years_that_are_not_known_say_why(work: Work, endurance: Endurance, why: str) -> None:
    found = lifetime(work, endurance, Price())
    assert why_no_years(found) == why
    assert in_words(found).endswith(f"years not known: {why}") == bool(why)


@pytest.mark.reports
def test_a_run_has_its_lifetime_in_summary_table_and_report(
    fake: Fake, plan_file: Path, tmp_path: Path, invoke: Invoke
) -> None:
    out = tmp_path / "run"
    money = ("--set", "cost.drive_price=250", "--set", "cost.currency=EUR")
    ended = invoke("run", plan_file, "--out", out, *money)
    assert ended.code == 0
    arm = json.loads((out / "summary.json").read_text())["arms"]["small"]
    found = arm["lifetime"]
    nand = sum(arm["nand_bytes_programmed"].values())
    assert found["flash_bytes_per_operation"] == pytest.approx(nand / arm["operations"])
    rate = arm["host_bytes_written"] / arm["duration_s"]
    assert found["drive_writes_per_day"] == pytest.approx(rate * DAY_S / found["capacity_bytes"])
    wear = json.loads((out / "arms" / "small" / "result.json").read_text())["wear"]
    lasting = wear["rated_pe_cycles"] * wear["physical_bytes"] / (nand / arm["duration_s"]) / YEAR_S
    assert found["years"] == pytest.approx(lasting)
    assert found["money_per_year"] == pytest.approx(250 / found["full_size_years"])
    assert "EUR a year" in ended.out
    assert "flash bytes an operation" in ended.out
    assert "years at this rate" in (out / "report.html").read_text()


def test_dilated_time_lengthens_no_life(fake: Fake, plan_file: Path, tmp_path: Path, invoke: Invoke) -> None:
    found = []
    for scale in ("1", "4"):
        out = tmp_path / scale
        settings = ("--set", "cost.drive_price=250", "--set", f"drive.time_scale={scale}")
        assert invoke("run", plan_file, "--out", out, *settings).code == 0
        found.append(json.loads((out / "summary.json").read_text())["arms"]["small"]["lifetime"])
    real, dilated = found  # the same bytes in the same real seconds, which are a quarter as many of the drive's
    for key in ("years", "full_size_years"):
        assert dilated[key] == pytest.approx(real[key] / 4)
    for key in ("drive_writes_per_day", "full_size_drive_writes_per_day", "money_per_year"):
        assert dilated[key] == pytest.approx(real[key] * 4)
    for key in ("flash_bytes_per_operation", "percentage_used", "user_bytes_until_worn"):
        assert dilated[key] == real[key]


@pytest.mark.parametrize(
    ("setting", "said"),
    [
        ("cost.drive_price=-3", "cost.drive_price"),
        ("cost.drive_price=0", "cost.drive_price"),
        ("cost.currency=EUR", "cost.currency belongs to cost.drive_price"),
        ("cost.price=3", "cost.price is not a key"),
    ],
)
def test_a_price_that_is_none_is_refused(
    setting: str, said: str, fake: Fake, plan_file: Path, tmp_path: Path, invoke: Invoke
) -> None:
    ended = invoke("run", plan_file, "--out", tmp_path / "run", "--set", setting)
    assert ended.code == 2
    assert said in ended.err
    assert not (tmp_path / "run").exists()
