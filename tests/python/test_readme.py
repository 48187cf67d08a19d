"""The README's commands, run as written, do what the README says of them."""

import json
import os
import re
import shutil
import subprocess
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest
from needs import need

ROOT = Path(__file__).resolve().parents[2]


def commands(text: str) -> list[str]:
    """The shell blocks of a Markdown text, in their order."""
    return re.findall(r"^```sh\n(.*?)^```", text, flags=re.MULTILINE | re.DOTALL)


def command_with(part: str) -> str:
    """The one command of the README that contains ``part``."""
    found = [command for command in commands((ROOT / "README.md").read_text()) if part in command]
    assert len(found) == 1, f"{part!r} is in {len(found)} of the README's commands"
    return found[0]


def shell_environment() -> dict[str, str]:
    """What a user's shell has: nothing of the make that runs these tests. CI opens no browser."""
    of_make = {"MAKEFLAGS", "MAKELEVEL", "MFLAGS"}
    return {name: value for name, value in os.environ.items() if name not in of_make} | {"CI": "true"}


def run_as_written(command: str, timeout_s: float) -> str:
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", command],
        cwd=ROOT,
        env=shell_environment(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=timeout_s,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    return done.stdout


@pytest.fixture
def installed() -> None:
    need((ROOT / ".venv" / "bin" / "spillway-native").is_file(), "a checkout with .venv as `make test` leaves it")


@pytest.fixture
def new_runs() -> Iterator[set[Path]]:
    """Filled by the test with the run directories it made; they are removed."""
    made: set[Path] = set()
    yield made
    for directory in made:
        shutil.rmtree(directory)


def test_every_command_of_the_readme_is_tested() -> None:
    parts = ("make demo", "ssd simulate", "spillway profile", "make accelerate", "accelerate --compare", "LD_PRELOAD")
    tested = [command_with(part) for part in parts]
    assert commands((ROOT / "README.md").read_text()) == tested


@pytest.mark.long
@pytest.mark.native
@pytest.mark.usefixtures("installed")
def test_make_demo(new_runs: set[Path]) -> None:
    output = run_as_written(command_with("make demo"), timeout_s=400)
    report = Path(output.splitlines()[-1].removeprefix("Report: "))
    assert report.name == "report.html"
    assert report.parent.parent == ROOT / "runs"
    new_runs.add(report.parent)
    assert "<html" in report.read_text()
    assert (report.parent / "summary.json").is_file()


@pytest.mark.native
@pytest.mark.usefixtures("installed")
def test_simulate() -> None:
    output = run_as_written(command_with("ssd simulate"), timeout_s=300)
    for promised in ("IOPS", "p99.9", "wa_device", "gc "):
        assert promised in output


@pytest.mark.long
@pytest.mark.native
@pytest.mark.usefixtures("installed")
def test_profile(new_runs: set[Path]) -> None:
    output = run_as_written(command_with("spillway profile"), timeout_s=300)
    report = ROOT / output.split()[-1]
    assert report.name == "report.html"
    new_runs.add(report.parent)
    assert "<html" in report.read_text()
    profile = tomllib.loads((report.parent / "profile.toml").read_text())
    assert {"pio", "mqssd", "latency_us"} <= set(profile)


@pytest.mark.long
@pytest.mark.native
@pytest.mark.usefixtures("installed")
def test_unmodified_db_bench() -> None:
    counters = ROOT / "spillway-counters.json"
    counters.unlink(missing_ok=True)
    try:
        output = run_as_written(command_with("LD_PRELOAD"), timeout_s=300)
        assert "fillrandom" in output
        document = json.loads(counters.read_text())
    finally:
        counters.unlink(missing_ok=True)
        shutil.rmtree("/dev/shm/spillway-db", ignore_errors=True)
    programmed = document["counters"]["nand_bytes_programmed"]
    assert document["counters"]["host_bytes_written"] > 0
    assert programmed["gc"] > 0, "a steady drive collects"


@pytest.mark.long
@pytest.mark.native
@pytest.mark.usefixtures("installed")
def test_an_accelerated_db_bench() -> None:
    try:
        output = run_as_written(command_with("make accelerate"), timeout_s=400)
    finally:
        shutil.rmtree(ROOT / "runs" / "accelerated-db", ignore_errors=True)
    assert re.search(r"^fillrandom +: .* ops/sec", output, re.MULTILINE)
    assert re.search(r"^spillway: runs/accelerated-db: [\d,]+ writes? \(.*\) diverted in ", output, re.MULTILINE)


@pytest.mark.long
@pytest.mark.native
@pytest.mark.usefixtures("installed")
def test_a_comparison_of_db_bench() -> None:
    output = run_as_written(command_with("accelerate --compare"), timeout_s=400)
    for promised in ("fillrandom, ops/s", "worst write, ms", "wall time, s", "ratio", "With it: "):
        assert promised in output
