"""Recorded benchmarks: what a record says of the run that made it, and which trees may make one."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from conftest import ROOT

sys.path.insert(0, str(ROOT / "scripts"))
import bench

MANIFEST = ("benchmark", "command", "commit", "date", "machine", "compiler", "versions", "result")
# Recorded before manifests were whole (runs/bench/README.md). None is
# added; one that is recorded again leaves.
OLDER = {
    *("compare_errors", "other_clients", "probe_against_fio", "runner_overhead"),
    *("kvaccel-a", "kvaccel-b", "kvaccel-c", "kvaccel-d", "kvaccel-directory", "kvaccel-a-before-after"),
}


def is_whole(record: dict[str, Any]) -> bool:
    """Whether the record says all that its manifest has, and is of a commit."""
    return all(record.get(name) for name in MANIFEST) and "dirty" not in record["commit"]


def test_every_record_is_of_a_commit_with_its_manifest_but_for_older_ones() -> None:
    records = {path.stem: json.loads(path.read_text()) for path in (ROOT / "runs" / "bench").glob("*.json")}
    assert {name for name, record in records.items() if not is_whole(record)} == OLDER
    listed = (ROOT / "runs" / "bench" / "README.md").read_text()
    for name in OLDER:
        assert f"`{name}`" in listed or f"`-{name.removeprefix('kvaccel-')}`" in listed


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A checkout with one benchmark that prints its arguments, and the plans' script that is always there."""
    root = tmp_path / "tree"
    (root / "bench").mkdir(parents=True)
    (root / "bench" / "echo.py").write_text("import json, sys\nprint(json.dumps(sys.argv[1:]))\n")
    (root / "bench" / "kvaccel.py").write_text("")
    (root / ".venv" / "bin").mkdir(parents=True)
    (root / ".venv" / "bin" / "python").symlink_to(sys.executable)
    (root / ".gitignore").write_text("/.venv\n/runs/*\n!/runs/bench/\n__pycache__/\n")
    as_somebody = ["-c", "user.name=n", "-c", "user.email=e"]
    for words in (["init", "-q"], ["add", "-A"], [*as_somebody, "commit", "-q", "-m", "all"]):
        subprocess.run(["git", *words], cwd=root, check=True)
    monkeypatch.setattr(bench, "ROOT", root)
    monkeypatch.setattr(bench, "RESULTS", root / "runs" / "bench")
    monkeypatch.setattr(bench, "TRIES", root / "runs" / "tries")
    return root


def test_a_record_says_what_made_it(tree: Path) -> None:
    for _ in range(2):  # the record of the first makes no other tree of it
        assert bench.main(["echo", "--", "--rounds", "two words"]) == 0
    record = json.loads((tree / "runs" / "bench" / "echo.json").read_text())
    assert record["result"] == ["--rounds", "two words"]
    assert record["command"] == ".venv/bin/python bench/echo.py --rounds 'two words'"
    assert record["commit"] == bench.git("rev-parse", "--short=12", "HEAD")
    assert record["versions"]["python"] == sys.version.split()[0]
    assert {"cpu", "cores", "memory_bytes", "kernel"} == set(record["machine"])
    assert not [path.name for path in (tree / "runs" / "bench").iterdir() if path.name != "echo.json"]


def test_the_compiler_is_the_one_that_built(tmp_path: Path) -> None:
    cache = (
        "# of CMake\nCMAKE_CXX_COMPILER:FILEPATH=/bin/echo\nCMAKE_BUILD_TYPE:STRING=Debug\nCMAKE_CXX_FLAGS:STRING=-O1\n"
    )
    (tmp_path / "CMakeCache.txt").write_text(cache)
    found = bench.compiler(tmp_path)
    assert (found["build_type"], found["flags"]) == ("Debug", "-O1")
    assert found["name"], "what it says of itself"
    assert bench.compiler(tmp_path / "nothing built") == {}


@pytest.mark.parametrize("change", ["bench/echo.py", "bench/new.py"])
def test_a_tree_that_differs_from_its_commit_records_nothing(
    tree: Path, capsys: pytest.CaptureFixture[str], change: str
) -> None:
    with (tree / change).open("a") as file:
        file.write("\n")
    assert bench.main(["echo"]) == 2
    assert f"differs from its commit ({change})" in capsys.readouterr().err
    assert not (tree / "runs").exists()
    assert bench.main(["--try", "echo"]) == 0
    assert json.loads((tree / "runs" / "tries" / "echo.json").read_text())["commit"].endswith("-dirty")
    assert not (tree / "runs" / "bench").exists()
