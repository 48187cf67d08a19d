"""Every value of what a directory is read from, replaced by what it is not: taken, or refused with one sentence."""

import json
import shutil
from collections.abc import Callable
from functools import partial
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


# ---------------------------------------------------------------------------------------------------------------------
# Files that are damaged as a whole

SPOILT: dict[str, Callable[[bytes], bytes]] = {
    "nothing": lambda text: b"",
    "no text": lambda text: b"\xff\xfe" + text,
    "no text in its middle": lambda text: text[: len(text) // 2] + b"\x80" + text[len(text) // 2 :],
    "zeros": lambda text: bytes(len(text)),
    "zeros at its end": lambda text: text + bytes(4096),
    "cut off": lambda text: text[: len(text) // 2],
    "cut off in its last line": lambda text: text[:-3],
    "a quote that is not closed": lambda text: text + b'"',
    "a cell without an end": lambda text: text.replace(b"\n", b"\n" + b"9" * 200_000, 1),
    "a head without an end": lambda text: b"x" * 200_000 + text,
    "a number without an end": lambda text: text.replace(b"1", b"1" * 5000),
    "other columns": lambda text: b"a,b\n1,2\n",
    "more cells": lambda text: text.rstrip(b"\n") + b",1,2,3\n",
    "a list": lambda text: b"[]",
    "null": lambda text: b"null",
    "nested without an end": lambda text: b"[" * 100_000,
}


def all_of(path: Path) -> None:
    """Every table."""
    found = spillway.read(path)
    for name in found.tables:
        if name != "model_errors":  # of fits that take seconds
            getattr(found, name)


def check_spoilt(file: Path, read: Callable[[], object]) -> int:
    """How many of the ways to spoil a file are refused; those that are not are taken without an error."""
    text, refused = file.read_bytes(), 0
    for name, spoil in SPOILT.items():
        file.write_bytes(spoil(text))
        refused += is_refused(f"{file.name}: {name}", read)
    file.unlink()
    file.mkdir()
    refused += is_refused(f"{file.name}: a directory", read)
    file.rmdir()
    file.symlink_to(file)
    refused += is_refused(f"{file.name}: a link to itself", read)
    file.unlink()
    file.write_bytes(text)
    return refused


def is_refused(what: str, read: Callable[[], object]) -> bool:
    try:
        read()
    except SpillwayError as error:
        assert "\n" not in str(error) and str(error).endswith((".", "?")), what
        return True
    except Exception as error:
        raise AssertionError(what) from error
    return False


@pytest.mark.parametrize(
    "file", ["samples.csv", "stalls.csv", "result.json", "phases.json", "events.json", "summary.json", "manifest.json"]
)
def test_a_run_with_a_damaged_file_is_refused_in_one_sentence(file: str, run_directory: Path) -> None:
    path = run_directory / file if file in ("summary.json", "manifest.json") else run_directory / "arms/new" / file
    assert check_spoilt(path, lambda: all_of(run_directory)) > 8


def test_charts_of_a_run_with_a_value_of_another_type_are_no_traceback(run_directory: Path) -> None:
    path = run_directory / "arms/new/result.json"
    document = json.loads(path.read_text())
    wrong: list[Any] = [3, "x", [1], {"a": "b"}]

    def write(each: Any) -> None:
        path.write_text(json.dumps(each))

    refusals(document, write, lambda: spillway.read_run(run_directory).charts("new"), wrong, 29)


def test_charts_of_a_run_with_a_damaged_plan_are_refused_in_one_sentence(run_directory: Path) -> None:
    (run_directory / "plan.toml").write_text("[")
    assert len(spillway.read_run(run_directory).charts("new")) > 0
    with pytest.raises(SpillwayError, match="its charts cannot be drawn, as a file of it has what no run records"):
        spillway.read_run(run_directory).charts()


def test_a_suite_with_damaged_claims_is_refused_in_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "suite.json").write_text(json.dumps({"spillway_suite": 1, "suite": "s", "plans": {}}))
    claims = tmp_path / "claims.csv"
    claims.write_text('claim,statement,published,ours,basis,verdict,why\nC1,s,1,2,measured,reproduced,"a, b"\n')
    all_of(tmp_path)
    assert check_spoilt(claims, lambda: all_of(tmp_path)) > 12
    assert check_spoilt(tmp_path / "suite.json", lambda: all_of(tmp_path)) > 8


def test_a_sweep_or_a_cell_of_it_that_is_damaged_is_refused_in_one_sentence(
    made: Made, fake: Fake, invoke: Invoke
) -> None:
    out = sweep_of(made, fake, invoke)
    assert check_spoilt(out / "sweep.json", lambda: all_of(out)) > 8
    (cell,) = (out / "cells").iterdir()
    for file in ("summary.json", "manifest.json"):
        assert check_spoilt(cell / file, lambda: all_of(out)) > 8


def test_a_profile_with_a_damaged_file_is_refused_in_one_sentence(profile: Path) -> None:
    for file in ("samples.csv", "profile.toml"):
        assert check_spoilt(profile / file, lambda: all_of(profile)) > 8


@pytest.mark.parametrize("name", ["x" * 300, "a\0b", "none/x", "\udcff"])
def test_a_name_that_no_directory_has_is_refused_in_one_sentence(name: str, tmp_path: Path) -> None:
    path = tmp_path / name
    readers: list[Callable[[Path], object]] = [spillway.read, spillway.read_run, spillway.read_sweep]
    for reader in [*readers, spillway.read_suite, spillway.read_profile]:
        assert is_refused(f"{reader} of {name!r}", partial(reader, path))
    for ending in (".csv", ".parquet"):
        assert is_refused(ending, partial(spillway.read_frame, f"{path}{ending}"))


def test_a_suite_or_sweep_that_names_what_no_directory_is_called(tmp_path: Path) -> None:
    for name in ("x" * 300, "a\0b", "", "..", "/"):
        plan = {"state": "done", "settings": []}
        (tmp_path / "suite.json").write_text(json.dumps({"spillway_suite": 1, "suite": "s", "plans": {name: plan}}))
        is_refused(name, lambda: all_of(tmp_path))
        (tmp_path / "suite.json").unlink()
        cell = {"address": "a", "state": "done", "directory": name}
        (tmp_path / "sweep.json").write_text(json.dumps({"spillway_sweep": 1, "cells": [cell]}))
        is_refused(name, lambda: all_of(tmp_path))
        (tmp_path / "sweep.json").unlink()
