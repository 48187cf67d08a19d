"""Cells and their addresses: what changes a result changes the address, and nothing else does."""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from conftest import PRESET, ROOT, Fake
from swept import AXIS, VIRTUAL

from spillway.errors import SpillwayError
from spillway.plan import inputs
from spillway.plan.document import load_plan
from spillway.suite.document import load_scaled
from spillway.sweep import cells_of
from spillway.sweep import job as files
from spillway.sweep.cell import address_of
from spillway.sweep.code import PACKAGE, SOURCES, code_sha256

ARMS = '\n[[arms]]\nname = "One"\n[[arms]]\nname = "Two"\n"engine.policy" = "no-slowdown"\n'
FILES = VIRTUAL.replace('preset = "tiny"', 'preset_file = "tiny.toml"').replace(
    "duration_s = 1", 'duration_s = 1\narrivals = "trace"\narrivals_file = "times.csv"'
)
PREPARED = '\n[kept]\nfrom = "loaded"\n[[prepare]]\n"kept.to" = "loaded"\n[[prepare.phases]]\nworkload = "fillseq"\n'

Address = Callable[..., str]


@pytest.fixture
def address(fake: Fake, plan_file: Path, tmp_path: Path) -> Address:
    """The address of the first cell of a plan."""

    def of(text: str = VIRTUAL, *settings: str, at: Path | None = None) -> str:
        path = (at or tmp_path) / plan_file.name
        path.write_text(text)
        return cells_of(load_plan(path, settings), tmp_path / "kept")[0].address

    return of


CHANGES = [
    ("load.value_bytes=7", "load.num=7", "seeds=[2]", "engine.policy=no-slowdown", "engine.options.x=1"),
    ("drive.capacity=32MiB", "drive.set.capacity.spare_factor=0.1", "phases.0.threads=2", "fs.discard=false"),
    ("cost.drive_price=100", 'steady.tests=["drift"]', "sample_interval_ms=50", "drive.pacing=real"),  # in no request
]


@pytest.mark.parametrize("setting", [each for several in CHANGES for each in several])
def test_what_decides_on_a_result_is_in_the_address(address: Address, setting: str) -> None:
    assert address(VIRTUAL, setting) != address()


def test_so_are_preset_build_and_package(
    address: Address, fake: Fake, plan_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = [address()]
    (tmp_path / "presets/tiny.toml").write_text(PRESET.replace("0.2", "0.3"))
    seen.append(address())
    fake.path.write_text(fake.path.read_text() + "# another build\n")
    seen.append(address())
    monkeypatch.setattr("spillway.sweep.cell.__version__", "99")
    seen.append(address())
    monkeypatch.setattr("spillway.sweep.cell.code_sha256", lambda: "other code")
    seen.append(address())
    assert len(set(seen)) == 5


def copied(place: Path) -> Path:
    return Path(shutil.copytree(PACKAGE, place, ignore=shutil.ignore_patterns("__pycache__")))


@pytest.mark.parametrize(
    "file", ["run/execute.py", "run/until.py", "steady/cut.py", "figures/bill.py", "drive/span.py"]
)
def test_a_change_of_the_code_that_makes_a_result_is_seen(tmp_path: Path, file: str) -> None:
    package = copied(tmp_path / "package")
    assert code_sha256(package) == code_sha256()
    (package / file).write_text((package / file).read_text() + "# another\n")
    code_sha256.cache_clear()
    assert code_sha256(package) != code_sha256()


@pytest.mark.parametrize("file", ["report/words.py", "frames/suite.py", "cli/run.py", "sweep/sweep.py", "run/suite.py"])
def test_a_change_of_other_code_runs_nothing_again(tmp_path: Path, file: str) -> None:
    package = copied(tmp_path / "package")
    (package / file).write_text("# another\n")
    assert code_sha256(package) == code_sha256()


def test_all_code_that_a_cell_runs_is_looked_at(fake: Fake, plan_file: Path, tmp_path: Path) -> None:
    """In a process that does nothing else."""
    plan_file.write_text(VIRTUAL)
    cell = cells_of(load_plan(plan_file), tmp_path / "kept")[0]
    job = files.write_job(tmp_path / "out", cell, ["spillway"], tmp_path / "kept")
    program = (
        "import sys, pathlib\n"
        "from spillway.sweep.worker import run_cell\n"
        "assert run_cell(pathlib.Path(sys.argv[1])).end == 'done'\n"
        "print(*(each.__file__ for name, each in sys.modules.items() if name.partition('.')[0] == 'spillway'))\n"
    )
    done = subprocess.run([sys.executable, "-c", program, job], capture_output=True, text=True, check=False, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    used = {Path(word).relative_to(PACKAGE).as_posix() for word in done.stdout.split()}
    digested = {path.relative_to(PACKAGE).as_posix() for each in SOURCES for path in PACKAGE.glob(each)}
    others = {"__init__.py", "version.py", "pitfalls.py", "sweep"}  # names, the version that the address has, words
    assert {path for path in used - digested if path.partition("/")[0] not in others} == set()


def test_and_files_that_a_plan_names(address: Address, plan_file: Path, tmp_path: Path) -> None:
    (tmp_path / "times.csv").write_text("0.1\n0.2\n")
    (tmp_path / "tiny.toml").write_text(PRESET)
    seen = [address(FILES)]
    (tmp_path / "times.csv").write_text("0.1\n0.3\n")
    seen.append(address(FILES))
    (tmp_path / "tiny.toml").write_text(PRESET.replace("0.2", "0.3"))
    seen.append(address(FILES))
    assert len(set(seen)) == 3


def test_a_large_file_is_read_once_for_all_cells(
    fake: Fake, plan_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As the state of a drive, which may have gigabytes. A change of it is seen all the same."""
    read, real = list[Path](), inputs._read_digest

    def digest(path: Path) -> str:
        read.append(path)
        return real(path)

    monkeypatch.setattr(inputs, "_read_digest", digest)
    plan_file.write_text(VIRTUAL.replace('preset = "tiny"', 'preset_file = "tiny.toml"') + AXIS)
    seen: list[str] = []
    for line in ("# one", "# two"):
        (tmp_path / "tiny.toml").write_text(PRESET + f"{line}{'.' * inputs.LARGE_BYTES}\n")
        os.utime(tmp_path / "tiny.toml", ns=(0, len(seen)))
        seen += [each.address for each in cells_of(load_plan(plan_file), tmp_path)]
    assert len(seen) == len(set(seen)) == 6
    assert [path.name for path in read] == ["tiny.toml"] * 2


def test_names_and_places_are_not(address: Address, plan_file: Path, tmp_path: Path) -> None:
    assert address(VIRTUAL.replace('"small"', '"large"\nsummary = "another"')) == address()
    assert address(VIRTUAL + '\n[[arms]]\nname = "RocksDB"\n') == address()
    assert address('data_directory = "presets"\n' + VIRTUAL) == address()
    assert address(VIRTUAL + '\n[lint.answers]\nshort-test = "A test."\n') == address()
    other = tmp_path / "other"
    other.mkdir()
    for place in (tmp_path, other):
        (place / "times.csv").write_text("0.1\n0.2\n")
        (place / "tiny.toml").write_text(PRESET)
    assert address(FILES, at=other) == address(FILES)
    shutil.copytree(tmp_path / "presets", other / "presets")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SPILLWAY_PRESETS", str(other / "presets"))
        elsewhere = address()
    assert elsewhere == address()


# One for each way in which a plan may say something; all others are as these.
FEW = (
    "quickstart",
    "ycsb",
    "sustain",
    "hard-disk",
    "kvaccel-d",
    "directory-b",
    "initial-state",
    "engines",
    "open-loop",
)


def plans() -> list[Any]:
    """Every plan that comes with Spillway, most of them for `make long`."""
    found = [path for path in sorted(ROOT.glob("plans/**/*.toml")) if path.stem not in ("suite", "claims")]
    few = [pytest.param(path, id=path.stem) for path in found if path.stem in FEW]
    return few + [pytest.param(path, id=path.stem, marks=pytest.mark.long) for path in found if path.stem not in FEW]


@pytest.mark.parametrize("path", plans())
def test_a_cell_has_its_address_also_as_a_file(
    fake: Fake, tmp_path: Path, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A worker reads the file, and refuses another address."""
    whole = load_scaled(path, (), ())
    if any(arm.settings["kept.to"] for arm in whole.arms):
        return
    monkeypatch.setattr("spillway.plan.kept.check_there", lambda *words: None)
    first = whole.arms[:1] + whole.arms[-1:]
    for each in cells_of(type(whole)(**(vars(whole) | {"arms": first, "seeds": whole.seeds[:2]})), tmp_path):
        (tmp_path / "cell.toml").write_text(each.plan.to_toml())
        assert address_of(load_plan(tmp_path / "cell.toml"), tmp_path) == each.address


def test_a_cell_is_an_arm_at_a_point_with_a_seed(fake: Fake, plan_file: Path, tmp_path: Path) -> None:
    plan_file.write_text("repetitions = 2\n" + VIRTUAL + AXIS + ARMS)
    cells = cells_of(load_plan(plan_file), tmp_path, cores=3)
    assert len(cells) == len({each.address for each in cells}) == 12
    assert cells[0].name == "One, value_bytes 16 (1 of 2)"
    assert [(each.repetition, each.plan.seeds) for each in cells] == [(0, [1])] * 6 + [(1, [2])] * 6
    assert {(each.cores, each.paced, each.drive) for each in cells} == {(3, False, "")}


def test_arms_that_ask_for_the_same_are_one_cell(fake: Fake, plan_file: Path, tmp_path: Path) -> None:
    plan_file.write_text(VIRTUAL + ARMS.replace('"engine.policy" = "no-slowdown"\n', ""))
    one, two = cells_of(load_plan(plan_file), tmp_path)
    assert (one.name, two.name) == ("One", "Two")
    assert one.address == two.address


def test_what_runs_in_real_time_is_paced(fake: Fake, plan_file: Path, tmp_path: Path) -> None:
    plan_file.write_text(VIRTUAL.replace('pacing = "off"', 'pacing = "real"'))
    assert cells_of(load_plan(plan_file), tmp_path)[0].paced
    plan_file.write_text(VIRTUAL.replace('preset = "tiny"\npacing = "off"', f'kind = "directory"\npath = "{tmp_path}"'))
    cell = cells_of(load_plan(plan_file), tmp_path)[0]
    assert (cell.paced, cell.drive) == (True, str(tmp_path))


def test_what_starts_from_a_preparation_keeps_its_seeds_together(fake: Fake, plan_file: Path, tmp_path: Path) -> None:
    plan_file.write_text(
        "repetitions = 3\n" + VIRTUAL + AXIS.replace("load.value_bytes", "phases.fill.threads") + PREPARED
    )
    cells = cells_of(load_plan(plan_file), tmp_path)
    assert [each.plan.seeds for each in cells] == [[1, 2, 3]] * 3
    assert {state for each in cells for state in each.states} == {str(tmp_path / "loaded")}


def test_an_arm_that_saves_a_state_is_refused(fake: Fake, plan_file: Path, tmp_path: Path) -> None:
    plan_file.write_text(VIRTUAL + '\n[kept]\nto = "a"\n')
    with pytest.raises(SpillwayError, match=r"small: kept\.to saves what an arm leaves, and cells run in any order"):
        cells_of(load_plan(plan_file), tmp_path)


def test_a_state_that_is_not_there_is_refused(fake: Fake, plan_file: Path, tmp_path: Path) -> None:
    plan_file.write_text(VIRTUAL + '\n[kept]\nfrom = "a"\n')
    with pytest.raises(SpillwayError, match=r"kept\.from names a, and there is no such state"):
        cells_of(load_plan(plan_file), tmp_path)
