"""Each barrier of scripts/barriers.toml is in the source that it names, and the check of that finds what is not."""

import re
import sys
from pathlib import Path

import pytest
from conftest import ROOT

sys.path.insert(0, str(ROOT / "scripts"))

import barriers

SOURCE = "int gate() {\n  if (!pass) return 1;\n  sync();\n  return 0;\n}\n"
TESTS = "TEST_F(GateTest, IsClosed) {\n}\n"


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A checkout with one source file and one test."""
    (tmp_path / "native").mkdir()
    (tmp_path / "native" / "gate.cc").write_text(SOURCE)
    (tmp_path / "tests" / "native").mkdir(parents=True)
    (tmp_path / "tests" / "native" / "spill_gate_test.cc").write_text(TESTS)
    return tmp_path


def check(tree: Path, *, old: str = "  sync();\n", new: str = "", file: str = "native/gate.cc", first: str = "") -> str:
    """What the check says of a list with one barrier; empty where it is content."""
    listed = tree / "barriers.toml"
    listed.write_text(
        f'[first]\n"{file}" = "GateTest.*"\n[[test]]\nname = "all"\ncommand = ["all"]\ntimeout_s = 1\n[[barrier]]\n'
        f"name = 'the-one'\nfile = '{file}'\nprotects = 'it'\nold = '''\n{old}'''\nnew = '''\n{new}'''\n"
        + (f"first = '{first}'\n" if first else "")
    )
    try:
        barriers.read_list(listed, tree)
    except ValueError as error:
        return str(error)
    return ""


def test_each_barrier_is_once_in_its_file(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(sys, "argv", ["barriers.py", "--check"])
    assert barriers.main() == 0
    assert capsys.readouterr().out.endswith(" barriers, each once in its file\n")


def test_a_barrier_in_its_file_passes(tree: Path) -> None:
    assert check(tree) == ""
    assert check(tree, first="GateTest.IsClosed") == ""


def test_a_missing_or_doubled_barrier_is_named(tree: Path) -> None:
    assert "the-one: its text is not in native/gate.cc" in check(tree, old="fence();")
    assert "the-one: its text is 2 times in native/gate.cc" in check(tree, old="return")
    assert "native/moved.cc" in check(tree, file="native/moved.cc")


def test_a_barrier_that_stays_when_it_is_out_is_named(tree: Path) -> None:
    assert check(tree, new="  sync();\n") == "the-one: the source is the same without it"


def test_a_filter_without_a_test_is_named(tree: Path) -> None:
    assert check(tree, first="GateTest.*:DoorTest.*") == "the-one: no test is named DoorTest.*"


def test_tests_that_come_first_for_a_file_without_a_barrier_are_named(tree: Path) -> None:
    listed = tree / "barriers.toml"
    listed.write_text('barrier = []\ntest = []\n[first]\n"native/gate.cc" = "GateTest.*"\n')
    with pytest.raises(ValueError, match=r"^native/gate\.cc: tests come first for it, and no barrier is in it$"):
        barriers.read_list(listed, tree)


def test_what_the_build_asks_for_is_copied() -> None:
    """Every path below the checkout that a build file names is among what the script copies."""
    files = [ROOT / "CMakeLists.txt", *(ROOT / "native").rglob("*"), *(ROOT / "tests" / "native").rglob("*")]
    named = {
        name
        for file in files
        if file.name == "CMakeLists.txt" or file.suffix == ".cmake"
        for name in re.findall(r"\$\{(?:PROJECT|CMAKE)_SOURCE_DIR\}/([\w.-]+)", file.read_text())
    }
    assert {"LICENSE", "native"} <= named
    assert named <= set(barriers.SOURCES)
