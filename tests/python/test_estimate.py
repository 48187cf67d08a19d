"""The estimate of a plain directory: host bytes of device and model side by side, and whose writes it is of."""

import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from conftest import Fake, Invoke

from spillway.drive import blocks
from spillway.drive.blocks import Drive
from spillway.figures import estimate
from spillway.figures.lifetime import YEAR_S, Price, Work

Document = dict[str, Any]

MIB = 2**20
OF_MODEL = "wa_device and lifetime of the estimate are of the model's writes, not of the device's"
# In 10 s: 1e6 operations.
RUN = Work(seconds=10, operations=1e6, user_bytes=50 * MIB, host_bytes=100 * MIB, nand_bytes=None)


def made(given: float, counted: float | None, failure: str | None = None, whole: int | None = None) -> Document:
    figures = {
        "preset": "small",
        "capacity_bytes": 2**30,
        "host_bytes_written": given,
        "nand_bytes_programmed": {"host": given, "gc": given / 2, "mapping": 0, "wear": 0, "fold": 0},
        "wear": {"mean_pe_cycles": 30, "max_pe_cycles": 40, "rated_pe_cycles": 3000, "physical_bytes": 2**30},
        "failure": failure,
    }
    return estimate.document(figures, RUN, counted, (whole, None), Price(100, "EUR"))


@pytest.mark.parametrize(
    ("given", "counted", "words"),
    [
        (100, 100, "100.0 MiB counted by the device, 100.0 MiB given to the model (+0.0 %)"),
        (109, 100, "100.0 MiB counted by the device, 109.0 MiB given to the model (+9.0 %)"),
        (91, 100, "100.0 MiB counted by the device, 91.0 MiB given to the model (-9.0 %)"),
        (120, 100, f"120.0 MiB given to the model (+20.0 %): more than 10 % apart, so {OF_MODEL}"),
        (266, 61, "61.0 MiB counted by the device, 266.0 MiB given to the model (4.36 times as many): more than 10 %"),
        (50, 100, f"50.0 MiB given to the model (-50.0 %): more than 10 % apart, so {OF_MODEL}"),
        (50, None, f"not known of the device, 50.0 MiB given to the model: {OF_MODEL}"),
        (50, 0, f"0 B counted by the device, 50.0 MiB given to the model: {OF_MODEL}"),
    ],
)
def test_an_estimate_prints_both_counts_of_host_bytes(given: float, counted: float | None, words: str) -> None:
    found = made(given * MIB, None if counted is None else counted * MIB)
    told = estimate.counts_in_words(found)
    assert words in told
    assert (OF_MODEL in told) == (estimate.is_apart(found) is not False)


@pytest.mark.parametrize("counted", [0, 5 * MIB, None])
def test_a_run_that_wrote_nothing_has_no_figure_of_the_models_writes(counted: float | None) -> None:
    found = made(0, counted)
    assert found["wa_device"] is None
    assert OF_MODEL not in estimate.counts_in_words(found)
    assert "0 B given to the model" in estimate.counts_in_words(found)


def test_figures_of_the_estimate_are_of_the_models_bytes_alone() -> None:
    alike, apart = made(100 * MIB, 100 * MIB), made(100 * MIB, 10 * MIB)
    assert alike["wa_device"] == apart["wa_device"] == 1.5
    assert alike["lifetime"] == apart["lifetime"]
    found = apart["lifetime"]
    assert found["years"] == pytest.approx(3000 * 2**30 / (150 * MIB / 10) / YEAR_S)
    assert found["flash_bytes_per_operation"] == pytest.approx(150 * MIB / 1e6)
    assert found["percentage_used"] == pytest.approx(1.0)
    assert found["money_per_year"] == pytest.approx(100 / found["years"])
    # A drive of the preset's whole capacity lasts as many times longer.
    assert made(100 * MIB, None, whole=4 * 2**30)["lifetime"]["full_size_years"] == pytest.approx(4 * found["years"])


def test_an_estimate_that_failed_has_counts_and_no_figures() -> None:
    found = made(10 * MIB, 100 * MIB, failure="the drive is full")
    assert found["wa_device"] is found["lifetime"] is None
    told = estimate.counts_in_words(found)
    assert told == "100.0 MiB counted by the device, 10.0 MiB given to the model until it failed (-90.0 %)"
    assert estimate.lifetime_in_words(found) == ""


def test_an_estimate_of_an_older_native_side_says_that_its_years_are_not_known() -> None:
    figures = {
        "preset": "small",
        "capacity_bytes": 2**30,
        "host_bytes_written": MIB,
        "nand_bytes_programmed": {"host": MIB},
        "failure": None,
    }
    found = estimate.document(figures, RUN, MIB, (None, None), Price())
    assert "neither its rated P/E cycles nor its rated writes are known" in estimate.lifetime_in_words(found)


def test_of_a_run_recorded_before_the_device_counts_stood_in_it() -> None:
    before = made(266 * MIB, None)
    del before["device_host_bytes_written"], before["host_bytes_ratio"]
    found = estimate.of({"estimate": before, "drive": {"host_bytes_written": 61 * MIB}})
    assert found is not None
    assert "61.0 MiB counted by the device" in estimate.counts_in_words(found)
    assert estimate.is_apart(found)
    for drive in ({"host_bytes_written": None}, None):
        found = estimate.of({"estimate": before, "drive": drive})
        assert found is not None
        assert "not known of the device" in estimate.counts_in_words(found)
    assert estimate.of({"estimate": None}) is estimate.of({}) is None


@dataclass
class Ran:
    """What a run on a directory left, wherever it shows its estimate."""

    out: str
    arm: Document
    page: str
    lint: str


@pytest.fixture
def run_on(fake: Fake, plan_file: Path, tmp_path: Path, invoke: Invoke, monkeypatch: pytest.MonkeyPatch) -> Any:
    def run(given: float, tells: bool = True) -> Ran:
        monkeypatch.setenv("FAKE_GIVEN", str(given))
        counters = tmp_path / "stat"
        counters.write_text("1 0 0 0 1 0 0 0 0 0 0\n")
        drive = Drive("sda", counters, 10**12, "M", "virtual")
        under = blocks.Under((drive,)) if tells else blocks.Under(why_none="it lies on the moon")
        monkeypatch.setattr("spillway.drive.watch.drives_under", lambda path: under)
        place = tmp_path / "place"
        place.mkdir()
        on = [
            "--set",
            "drive.kind=directory",
            "--set",
            f"drive.path={place}",
            "--set",
            "drive.estimate.preset=quickstart",
        ]
        ended = invoke("run", plan_file, *on, "--out", tmp_path / "run")
        assert ended.code == 0, ended.err
        arm = json.loads((tmp_path / "run/summary.json").read_text())["arms"]["small"]
        lint = " ".join(invoke("lint", tmp_path / "run").out.split())
        return Ran(" ".join(ended.out.split()), arm, (tmp_path / "run/report.html").read_text(), lint)

    return run


@pytest.mark.reports
def test_a_run_shows_both_counts_wherever_it_shows_the_estimate(run_on: Any) -> None:
    ran = run_on(4.5)
    found = ran.arm["estimate"]
    assert found["device_host_bytes_written"] == ran.arm["drive"]["host_bytes_written"] == ran.arm["host_bytes_written"]
    assert found["host_bytes_ratio"] == pytest.approx(4.5)
    assert found["wa_device"] == pytest.approx(1.5)
    assert found["lifetime"]["years"] is not None
    for text in (ran.out, ran.page.replace("&#39;", "'")):
        assert "given the run's writes as its own file system places them" in text
        assert "4.5 times as many" in text
        assert OF_MODEL in text
    assert re.search(r"its lifetime +[0-9.,]+ drive writes a day", ran.out)
    assert "whose host bytes are not the device's in 1 of 1 arms" in ran.lint
    # What was measured is as it is without an estimate.
    assert ran.arm["wa_device"] is ran.arm["wa_total"] is None


@pytest.mark.reports
def test_a_run_whose_model_was_given_what_the_device_counted_says_no_more(run_on: Any) -> None:
    ran = run_on(1.05)
    assert "given to the model (+5.0 %)" in ran.out
    assert OF_MODEL not in ran.out
    assert OF_MODEL not in ran.page.replace("&#39;", "'")
    assert "not the device's" not in ran.lint


def test_a_run_whose_device_has_no_counts_says_so(run_on: Any) -> None:
    ran = run_on(1.0, tells=False)
    assert ran.arm["estimate"]["device_host_bytes_written"] is ran.arm["estimate"]["host_bytes_ratio"] is None
    assert "not known of the device" in ran.out
    assert OF_MODEL in ran.out
