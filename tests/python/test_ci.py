"""What an integration server runs: lint, then all tests, with the test runners' own lines at the end."""

import os
import shlex
import subprocess
import sys
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


def test_ci_lints_beside_the_build_and_ends_with_the_tests() -> None:
    commands = [line for line in (ROOT / ".ci" / "run").read_text().splitlines() if line and not line.startswith("#")]
    assert commands[-5:] == [
        "export CI=true",
        "CC=clang CXX=clang++ scripts/setup.sh configure </dev/null",
        "checks='IS_CONFIGURED=1 scripts/lint.sh changed && "
        "CXX=clang++ scripts/headers.sh 9.10.0 && scripts/headers.sh 11.8.1'",
        "python3 scripts/together.py 'cmake --build build' \"$checks\" </dev/null",
        "exec make test </dev/null",
    ]
    built, *words = recipe("test")
    assert built.endswith("scripts/setup.sh test")
    python, together, native, tests = shlex.split("\n".join(words).replace("\\\n", " "))
    assert (python, together) == (".venv/bin/python", "scripts/together.py")
    assert native.startswith("ctest ")
    assert '--label-exclude "^long$"' in native, "what `make long` runs"
    assert "-m pytest" in tests, "nothing is said behind its last line"


def beside(*commands: str) -> "subprocess.CompletedProcess[str]":
    """What scripts/together.py says and how it ends."""
    together = [sys.executable, str(ROOT / "scripts" / "together.py")]
    return subprocess.run([*together, *commands], capture_output=True, text=True, check=False, timeout=60)


def test_commands_beside_each_other_read_as_one_after_the_other(tmp_path: Path) -> None:
    """Each of them waits for a file that the other one makes: one after the other they would not end."""
    first, second = tmp_path / "first", tmp_path / "second"
    wait = "while [ ! -e {} ]; do sleep 0.01; done"
    native = f"echo one; touch {first}; {wait.format(second)}; echo two"
    python = f"{wait.format(first)}; echo three; echo four >&2; touch {second}"
    done = beside(native, python)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines()[2:] == ["one", "two", "three", "four"]


@pytest.mark.parametrize(("first", "second"), [("false", "true"), ("true", "false"), ("exit 3", "kill $$")])
def test_a_failure_of_either_fails_the_whole(tmp_path: Path, first: str, second: str) -> None:
    done = beside(first, f"touch {tmp_path / 'there'}; {second}")
    assert done.returncode == 1
    assert (tmp_path / "there").exists(), "the other one is run to its end"
    failed = [line.removeprefix("failed: ") for line in done.stderr.splitlines()]
    assert failed == [each for each in (first, f"touch {tmp_path / 'there'}; {second}") if not each.endswith("true")]


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
