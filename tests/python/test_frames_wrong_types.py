"""Every value of what a directory is read from, replaced by what it is not: taken, or refused with one sentence."""

import json
import shutil
from collections.abc import Callable
from itertools import islice, product
from pathlib import Path
from typing import Any

import pytest
import tomli_w
from advised import DRIVE
from compared_runs import Made
from conftest import Fake, Invoke
from test_frames import sweep_of
from test_wrong_types import WRONG, changed, places_of

import spillway
from spillway import toml
from spillway.advise import drive as advised_drive
from spillway.errors import SpillwayError
from spillway.profile.document import UNKNOWN, Estimate, Mqssd, Pio, Profile, write_profile
from spillway.profile.points import COLUMNS, Sample

Document = dict[str, Any]
NONE: list[Any] = [None, {"a": None}, [None]]  # which JSON has and TOML has not


def tables_of(path: Path) -> None:
    found = spillway.read(path)
    for name in found.tables:
        if name not in ("samples", "model_errors"):  # of files of their own, and of fits that take seconds
            getattr(found, name)
    assert repr(found)


def refusals(
    document: Any, write: Callable[[Any], object], read: Callable[[], object], values: list[Any], one_of: int
) -> int:
    """Tries one of so many values, each place having others; how many were refused."""
    refused = 0
    for place, value in islice(product(places_of(document), values), 0, None, one_of):
        write(changed(document, place, value))
        try:
            read()
        except SpillwayError as error:
            refused += 1
            assert "\n" not in str(error)
        except Exception as error:
            raise AssertionError(f"{place} = {value!r}") from error
    return refused


@pytest.mark.parametrize(
    ("file", "one_of"),
    [("summary.json", 1201), ("manifest.json", 199), ("arms/new/phases.json", 29), ("arms/new/events.json", 7)],
)
def test_a_run_with_a_value_of_another_type_is_no_traceback(file: str, one_of: int, run_directory: Path) -> None:
    path = run_directory / file
    document = json.loads(path.read_text()) or [{"t_s": 1.0, "name": "divert", "figures": {"a": 1}}]
    tables_of(run_directory)
    assert refusals(
        document, lambda each: path.write_text(json.dumps(each)), lambda: tables_of(run_directory), WRONG + NONE, one_of
    )


def test_a_sweep_with_a_value_of_another_type_is_no_traceback(made: Made, fake: Fake, invoke: Invoke) -> None:
    path = sweep_of(made, fake, invoke) / "sweep.json"
    document = json.loads(path.read_text())
    tables_of(path.parent)
    assert refusals(
        document, lambda each: path.write_text(json.dumps(each)), lambda: tables_of(path.parent), WRONG + NONE, 23
    )


def test_a_suite_with_a_value_of_another_type_is_no_traceback(run_directory: Path, tmp_path: Path) -> None:
    plan = {"state": "done", "failure": None, "reported": True, "settings": ["load.num=1"]}
    document = {"spillway_suite": 1, "suite": "s", "plans": {"a": plan, "b": plan | {"state": "not run"}}}
    place = tmp_path / "suite"
    place.mkdir()
    shutil.copytree(run_directory, place / "a")
    path = place / "suite.json"
    assert refusals(document, lambda each: path.write_text(json.dumps(each)), lambda: tables_of(place), WRONG + NONE, 7)


def sample(op: str, pattern: str, k: int, bs_bytes: int = 4096) -> Sample:
    return Sample("pio", op, pattern, bs_bytes, k, 1, 100.0, 1.0, 1.0, 100, 1.0, 1e4, 40.0 * k, *[100.0] * 5)


@pytest.fixture
def profile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    place = tmp_path / "profile"
    place.mkdir()
    some = Estimate(4.0, 3.0, 5.0)
    samples = [sample("read", "random", k) for k in (1, 2, 4)]
    samples += [sample(op, "sequential", 1, 2**18) for op in ("read", "write")]
    target = {"words": "/dev/x", "name": "x", "kind": "device", "size_bytes": 2**33}
    pio = Pio(some, some, some, read_max_mb_s=100.0, write_max_mb_s=50.0)
    conditions = {"command": ["spillway", "profile", "/dev/x"]}
    mqssd = Mqssd(some, some, UNKNOWN, some, 0.9, 0.9)
    write_profile(Profile(target, conditions, {"read": some}, {4096: pio}, {1: mqssd}, samples), place)
    monkeypatch.setattr("spillway.advise.drive._modelled", lambda *_: DRIVE)
    return place


def test_a_profile_with_a_value_of_another_type_is_no_traceback(profile: Path) -> None:
    path = profile / "profile.toml"
    document = toml.loads(path.read_text())

    def read() -> None:
        advised_drive.of_profile(profile)
        tables_of(profile)

    read()
    numbers = [0, 0.0, -4.0, 1e-300, 1e300]
    assert refusals(document, lambda each: path.write_text(tomli_w.dumps(each)), read, WRONG + numbers, 17) > 10


@pytest.mark.parametrize("cell", ["", "x", "nan", "inf", "-1", "0", "1e400", "٣", "1e300", "1e-300"])
def test_a_profiles_sample_is_finite_and_not_negative(cell: str, profile: Path) -> None:
    path = profile / "samples.csv"
    header, first, *rest = path.read_text().splitlines()
    refused = 0
    for at in range(COLUMNS.index("bs_bytes"), len(COLUMNS)):
        cells = first.split(",")
        cells[at] = cell
        path.write_text("\n".join([header, ",".join(cells), *rest]) + "\n")
        try:
            found = advised_drive.of_profile(profile)
        except SpillwayError as error:
            refused += 1
            assert "\n" not in str(error)
        else:
            assert found.times.read_us(4096, 3) >= 0 and spillway.read_profile(profile).samples.page_cost_us[0] >= 0
    assert refused or cell in ("٣", "1e300", "1e-300")
