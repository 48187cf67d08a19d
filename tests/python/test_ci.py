"""What an integration server runs: lint, then all tests, with the test runners' own lines at the end."""

import os
import subprocess
from pathlib import Path

import pytest
from conftest import ROOT


def recipe(target: str) -> list[str]:
    """The commands of a target of the Makefile, as make would type them."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("MAKE", "MFLAGS"))}
    done = subprocess.run(
        ["make", "--dry-run", target], cwd=ROOT, env=environment, capture_output=True, text=True, check=True
    )
    return done.stdout.splitlines()


def test_ci_lints_and_ends_with_the_tests() -> None:
    commands = [line for line in (ROOT / ".ci" / "run").read_text().splitlines() if line and not line.startswith("#")]
    assert commands[-3:] == ["export CI=true", "scripts/lint.sh changed </dev/null", "exec make test </dev/null"]
    built, native, python = recipe("test")
    assert built.endswith("scripts/setup.sh test")
    assert native.startswith("ctest ")
    assert "-m pytest" in python, "nothing is said behind its last line"


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """Of eight sources and a header, each changed by a commit of its own; main is where the second one is."""
    git = ["git", "-c", "user.name=n", "-c", "user.email=e", "-C", str(tmp_path)]
    subprocess.run([*git, "init", "-q"], check=True)
    (tmp_path / "native").mkdir()
    for number in range(8):
        (tmp_path / "native" / f"s{number}.cc").touch()
        subprocess.run([*git, "add", "-A"], check=True)
        subprocess.run([*git, "commit", "-q", "-m", str(number)], check=True)
        if number == 1:
            subprocess.run([*git, "branch", "base"], check=True)
    (tmp_path / "native" / "s3.h").touch()
    (tmp_path / "native" / "alone.h").touch()
    subprocess.run([*git, "add", "-A"], check=True)
    subprocess.run([*git, "commit", "-q", "-m", "headers"], check=True)
    return tmp_path


@pytest.mark.parametrize(
    ("base", "most", "found"),
    [
        ("HEAD", "6", ["s3", "s7", "s6", "s5", "s4", "s2"]),  # on main: the newest commits
        ("no such branch", "2", ["s3", "s7"]),
        ("base", "20", ["s3", "s7", "s6", "s5", "s4", "s2"]),  # on a branch: what it has changed
        ("HEAD~1", "20", ["s3"]),
    ],
)
def test_what_changed_is_read_newest_first(repository: Path, base: str, most: str, found: list[str]) -> None:
    text = (ROOT / "scripts" / "lint.sh").read_text()
    function = text[text.index("changed_sources() {") : text.index("\n}\n", text.index("changed_sources() {")) + 3]
    environment = {**os.environ, "LINT_BASE": base, "LINT_FILES": most}
    done = subprocess.run(
        ["sh", "-euc", function + "changed_sources"],
        cwd=repository, env=environment, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert done.stdout.split() == [f"native/{name}.cc" for name in found]
