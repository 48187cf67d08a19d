"""Takes the barriers of the accelerator out, one at a time, and says which tests notice.

    .venv/bin/python scripts/barriers.py [--only NAME ...] [--nearest] [--list] [--check] [--fresh]

A barrier is a sync, a gate, a fence or a check of an order. scripts/barriers.toml has each as a piece of source text
and what stands in its place when it is out. The script works on a copy of the checkout in build-barriers/: it builds,
runs the tests on the unchanged copy, which must pass, and then with one barrier out after the other, until a test
fails. It prints a Markdown table and ends with exit code 1 if there is a barrier that no test notices. Results are kept
in build-barriers/results.json: a run that was stopped goes on where it was, as long as the sources are the same.

With --nearest only the tests that are nearest to each barrier are run, some seconds in the place of some minutes; a
barrier that they do not notice is left for a run without it.

With --check nothing is built: it only looks whether each piece of text is once in its file, whether something else
stands in its place when it is out, and whether each filter finds a test. A test runs it, so that whoever changes a line
hears of the barrier in it.
"""

import argparse
import contextlib
import fnmatch
import hashlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import tomllib
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
LIST = ROOT / "scripts" / "barriers.toml"
WORK = ROOT / "build-barriers"
TREE = WORK / "tree"
BUILD = TREE / "build"  # beside its sources as in a checkout, so that a compiler cache knows what it is asked for
RESULTS = WORK / "results.json"
# What the native build reads.
SOURCES = ("CMakeLists.txt", "LICENSE", "native", "tests/native", "contract", "presets", "fuzz", "bench", "examples")
BUILD_TIMEOUT_S = 1800
NEAREST_TIMEOUT_S = 150
SHARES = 4  # of the tests of a run, each by a process of its own
NONE = "none"
UNCHANGED = "(unchanged)"
TARGETS = ["test_spill", "test_crash"]  # the first has the tests that are nearest to a barrier
MESSAGE_CHARACTERS = 2000


@dataclass(frozen=True)
class Barrier:
    """A piece of a source file, and what stands there when the barrier is out."""

    name: str
    file: str
    protects: str
    old: str
    new: str
    first: str = ""  # GoogleTest filter of test_spill: the tests that are run before all others

    @property
    def change(self) -> str:
        """Another one where the entry is another one."""
        return hashlib.sha256("\0".join((self.file, self.old, self.new)).encode()).hexdigest()

    def taken_out_of(self, source: str) -> str:
        """The file's text without the barrier; ValueError unless its text is there once."""
        count = source.count(self.old)
        if count != 1:
            found = "not in" if count == 0 else f"{count} times in"
            raise ValueError(f"{self.name}: its text is {found} {self.file}; mend it in scripts/barriers.toml")
        return source.replace(self.old, self.new)


@dataclass(frozen=True)
class Step:
    """A run of a test executable."""

    name: str
    command: list[str]  # in the build directory
    timeout_s: int


@dataclass(frozen=True)
class Outcome:
    """The tests that failed, and what the first of them said."""

    failed: list[str] = field(default_factory=list)
    message: str = ""


def names_of_tests(root: Path) -> set[str]:
    """Of test_spill, as "Suite.Name": parametrized ones without what GoogleTest puts around their names."""
    declared = re.compile(r"^TEST(?:_F|_P)?\((\w+),\s*(\w+)\)", flags=re.MULTILINE)
    sources = sorted((root / "tests" / "native").glob("spill_*_test.cc"))
    return {".".join(found) for source in sources for found in declared.findall(source.read_text())}


def problems_of(barriers: list[Barrier], root: Path) -> list[str]:
    """A sentence for each entry that says nothing, or something else than it did, of the sources under `root`."""
    names = [one.name for one in barriers]
    problems = [f"{name}: two barriers have this name" for name in sorted(set(names)) if names.count(name) > 1]
    tests = names_of_tests(root)
    for one in barriers:
        try:
            if one.taken_out_of(source := (root / one.file).read_text()) == source:
                problems.append(f"{one.name}: the source is the same without it")
        except (OSError, ValueError) as error:
            problems.append(str(error))
        for pattern in filter(None, one.first.split(":")):
            if not fnmatch.filter(tests, pattern):
                problems.append(f"{one.name}: no test is named {pattern}")
    return problems


def read_list(path: Path = LIST, root: Path = ROOT) -> tuple[list[Barrier], list[Step]]:
    """The barriers and the runs of tests; ValueError names every barrier that cannot be taken out."""
    document = tomllib.loads(path.read_text())
    first = document["first"]
    barriers = [Barrier(**({"first": first.get(one["file"], "")} | one)) for one in document["barrier"]]
    steps = [Step(**one) for one in document["test"]]
    problems = problems_of(barriers, root)
    files = {one.file for one in barriers}
    problems += [f"{file}: tests come first for it, and no barrier is in it" for file in first if file not in files]
    if problems:
        raise ValueError("\n".join(problems))
    return barriers, steps


def copy_sources() -> str:
    """Makes TREE what the checkout is now; files that are the same keep their times. Returns a hash of all of them."""
    listing = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z", "--", *SOURCES],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    names = sorted(name for name in listing.split("\0") if name and (ROOT / name).is_file())
    total = hashlib.sha256()
    for name in names:
        content = (ROOT / name).read_bytes()
        total.update(name.encode() + b"\0" + hashlib.sha256(content).digest())
        target = TREE / name
        if target.is_file() and target.read_bytes() == content:
            continue
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, target)
    kept = set(names)
    for path in TREE.rglob("*"):
        if path.is_file() and not path.is_relative_to(BUILD) and str(path.relative_to(TREE)) not in kept:
            path.unlink()
    return total.hexdigest()


def build(targets: list[str]) -> str:
    """Empty, or the end of what the compiler said."""
    commands = [["cmake", "--build", str(BUILD), "--target", *targets]]
    if not (BUILD / "build.ninja").is_file():
        commands.insert(
            0,
            [
                "cmake",
                "-G",
                "Ninja",
                "-S",
                str(TREE),
                "-B",
                str(BUILD),
                "-DSPILLWAY_BENCH=OFF",
                "-DSPILLWAY_ONE_UNIT=OFF",
            ],
        )
    for command in commands:
        done = subprocess.run(
            command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=BUILD_TIMEOUT_S, check=False
        )
        if done.returncode != 0:
            return done.stdout[-3000:]
    return ""


def failed_tests(output: str) -> list[str]:
    """The tests that failed, and the one that did not come to its end."""
    failed = re.findall(r"^\[  FAILED  \] ([\w./]+\.[\w./]+?)(?:,| \(|$)", output, flags=re.MULTILINE)
    running = re.findall(r"^\[ RUN      \] (\S+)", output, flags=re.MULTILINE)
    ended = re.findall(r"^\[(?:       OK|  SKIPPED) \] (\S+)", output, flags=re.MULTILINE) + failed
    failed += [f"{name} (no end)" for name in running[-1:] if name not in ended]
    return list(dict.fromkeys(failed))


def message_of(output: str) -> str:
    """What the first test that failed said, or the end of what there is."""
    found = re.search(r"^\S+: Failure\n(.*?)^\[  FAILED", output, flags=re.MULTILINE | re.DOTALL)
    return (found[1] if found else output[-MESSAGE_CHARACTERS:])[:MESSAGE_CHARACTERS]


def run_step(step: Step) -> Outcome:
    """In some processes at a time, for most tests wait; one that hangs or crashes has failed, and ends the others."""
    with contextlib.ExitStack() as stack:
        outputs = [stack.enter_context(tempfile.TemporaryFile("w+", errors="replace")) for _ in range(SHARES)]
        processes = [
            subprocess.Popen(
                step.command,
                cwd=BUILD,
                stdout=output,
                stderr=output,
                env=os.environ | {"GTEST_TOTAL_SHARDS": str(SHARES), "GTEST_SHARD_INDEX": str(index)},
                start_new_session=True,
            )
            for index, output in enumerate(outputs)
        ]
        deadline = time.monotonic() + step.timeout_s
        while any(one.poll() is None for one in processes):
            if any(one.poll() not in (None, 0) for one in processes) or time.monotonic() > deadline:
                break
            time.sleep(0.05)
        ended = [one.poll() for one in processes]  # None where it hangs, or is ended for another's failure
        for process in processes:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        wrong = [index for index, code in enumerate(ended) if code not in (None, 0)]
        wrong += [index for index, code in enumerate(ended) if code is None]
        if not wrong:
            return Outcome()
        outputs[wrong[0]].seek(0)
        text = outputs[wrong[0]].read()
        code = processes[wrong[0]].returncode
    return Outcome(failed_tests(text) or [f"{step.name} (exit code {code})"], message_of(text))


def try_tests(steps: list[Step], first: str = "") -> Outcome:
    """Of the runs, one after the other, until something fails."""
    if first:
        command = ["tests/native/test_spill", "--gtest_fail_fast", f"--gtest_filter={first}"]
        steps = [Step("first", command, NEAREST_TIMEOUT_S), *steps]
    for step in steps:
        outcome = run_step(step)
        if outcome.failed:
            return outcome
    return Outcome()


def try_without(barrier: Barrier, steps: list[Step]) -> dict[str, object]:
    """Builds without it, runs the tests, and puts it back."""
    path = TREE / barrier.file
    source = path.read_text()
    began = time.monotonic()
    path.write_text(barrier.taken_out_of(source))
    try:
        if said := build(TARGETS if steps else TARGETS[:1]):
            raise ValueError(
                f"{barrier.name}: without it the tree does not build; mend it in scripts/barriers.toml\n{said}"
            )
        built = time.monotonic()
        outcome = try_tests(steps, barrier.first)
    finally:
        path.write_text(source)
    return {
        "change": barrier.change,
        "failed": outcome.failed,
        "message": outcome.message,
        "build_s": round(built - began, 1),
        "tests_s": round(time.monotonic() - built, 1),
    }


class Results:
    """What is known of these sources; kept in a file."""

    def __init__(self, sources: str, fresh: bool) -> None:
        """Forgets what the file has of other sources."""
        self.known: dict[str, dict[str, object]] = {}
        self.sources = sources
        if RESULTS.is_file() and not fresh:
            kept = json.loads(RESULTS.read_text())
            if kept["sources"] == sources:
                self.known = kept["known"]

    def add(self, name: str, result: dict[str, object]) -> None:
        """Remembers it, on the drive too."""
        self.known[name] = result
        part = RESULTS.with_suffix(".part")
        part.write_text(json.dumps({"sources": self.sources, "known": self.known}, indent=1) + "\n")
        part.replace(RESULTS)


def table(barriers: list[Barrier], results: Results) -> str:
    """Markdown: a row for each barrier."""
    lines = ["| barrier | what it protects | tests that fail without it | build s | tests s |", "|---|---|---|---|---|"]
    for one in barriers:
        result = results.known[one.name]
        failed = result["failed"]
        assert isinstance(failed, list)
        noticed = ", ".join(failed) or NONE
        lines.append(f"| {one.name} | {one.protects} | {noticed} | {result['build_s']} | {result['tests_s']} |")
    return "\n".join(lines)


def arguments() -> argparse.Namespace:
    """The command line's."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--only", nargs="+", metavar="NAME", help="these barriers; a name may be the beginning of several"
    )
    parser.add_argument(
        "--nearest", action="store_true", help="run no more than the tests that are nearest to a barrier"
    )
    parser.add_argument("--list", action="store_true", help="print the names, after a check that every text is found")
    parser.add_argument("--check", action="store_true", help="only look whether every text is once in its file")
    parser.add_argument("--fresh", action="store_true", help="forget the results of earlier runs")
    return parser.parse_args()


def main() -> int:
    """Exit code: 1 where a barrier goes unnoticed, 2 where nothing could be said."""
    given = arguments()
    barriers, steps = read_list()
    if given.check:
        print(f"{len(barriers)} barriers, each once in its file")
        return 0
    if given.only:
        barriers = [one for one in barriers if any(one.name.startswith(name) for name in given.only)]
        if not barriers:
            raise ValueError("no barrier has such a name; --list prints them")
    if given.list:
        print("\n".join(f"{one.name}: {one.protects}" for one in barriers))
        return 0
    results = Results(copy_sources(), given.fresh)
    if given.nearest:
        steps = []
    if said := build(TARGETS if steps else TARGETS[:1]):
        raise ValueError(f"the unchanged tree does not build:\n{said}")
    if steps and UNCHANGED not in results.known:
        began = time.monotonic()
        outcome = try_tests(steps)
        if outcome.failed:
            raise ValueError(f"tests fail on the unchanged tree: {', '.join(outcome.failed)}\n{outcome.message}")
        results.add(UNCHANGED, {"failed": [], "tests_s": round(time.monotonic() - began, 1)})
    broken = []
    for one in barriers:
        if results.known.get(one.name, {}).get("change") == one.change:
            continue
        try:
            result = try_without(one, steps)
        except ValueError as error:
            print(error, file=sys.stderr, flush=True)
            broken.append(one.name)
            continue
        print(f"{one.name}: {result['failed']}", file=sys.stderr, flush=True)
        if steps or result["failed"]:
            results.add(one.name, result)
    left = [one.name for one in barriers if one.name not in results.known]
    barriers = [one for one in barriers if one.name in results.known]
    print(table(barriers, results))
    left = [name for name in left if name not in broken]
    if left:
        print(f"\n{len(left)} left for a run without --nearest: {', '.join(left)}")
    unnoticed = [one.name for one in barriers if not results.known[one.name]["failed"]]
    print(
        f"\n{len(barriers)} barriers, {len(unnoticed)} unnoticed" + (": " + ", ".join(unnoticed) if unnoticed else "")
    )
    if broken:
        raise ValueError(f"to be mended in scripts/barriers.toml: {', '.join(broken)}")
    return 1 if unnoticed else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except ValueError as problem:
        print(f"barriers: {problem}", file=sys.stderr)
        sys.exit(2)
