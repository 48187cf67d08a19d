"""Runs the benchmarks and writes what they print, with the manifest of the run, to runs/bench/.

    .venv/bin/python scripts/bench.py [NAME ...]
    .venv/bin/python scripts/bench.py NAME -- ARGUMENT ...     one of them with arguments of its own
    .venv/bin/python scripts/bench.py --try [NAME ...]         from a tree that differs from its commit

A benchmark is an executable build/bench/bench_NAME, a script bench/NAME.py, or a plan of bench/kvaccel.py, here
kvaccel-a to kvaccel-directory. It prints JSON, one document or one on each line; a Google Benchmark does so when asked
to. One that fails ends with exit code 1 after the others have run, and leaves no result.

A record says what made it: command and arguments, commit, date, machine, compiler, versions. A tree that differs from
its commit is refused with exit code 2, since nobody could make its figures again; with --try the results go to
runs/tries/, which is not kept.
"""

import contextlib
import json
import os
import platform
import shlex
import subprocess
import sys
import tempfile
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "runs" / "bench"
RECORDS = ("runs/bench/", "runs/compat/", "runs/concurrency/")  # what this, scripts/compat.py and concurrency.py write
TRIES = ROOT / "runs" / "tries"
LIBRARIES = ("rocksdb", "leveldb", "wiredtiger", "liburing")


def benchmarks() -> dict[str, list[str]]:
    """Name → command, as typed in the root of the checkout."""
    commands = {}
    for path in sorted((ROOT / "build" / "bench").glob("bench_*")):
        if path.is_file() and os.access(path, os.X_OK):
            commands[path.name.removeprefix("bench_")] = [str(path.relative_to(ROOT))]
    for path in sorted((ROOT / "bench").glob("*.py")):
        commands[path.stem.removeprefix("bench_")] = [".venv/bin/python", str(path.relative_to(ROOT))]
    # Hours in all: a plan each, so that one that fails leaves the others.
    plans = commands.pop("kvaccel")
    for plan in ("a", "b", "c", "d", "directory"):
        commands[f"kvaccel-{plan}"] = [*plans, plan]
    return commands


LONG = ("advise_grid",)  # an hour by itself: run when it is named


def is_google_benchmark(command: list[str]) -> bool:
    """Whether it is an executable made with Google Benchmark: then it knows a flag of its, or names its library."""
    content = (ROOT / command[0]).read_bytes()
    return b"benchmark_out_format" in content or b"libbenchmark.so" in content


def machine() -> dict[str, object]:
    """What a reader needs to judge a timing, and nothing that names the machine."""
    cpu = "unknown"
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            cpu = line.partition(":")[2].strip()
            break
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return {"cpu": cpu, "cores": os.cpu_count(), "memory_bytes": memory, "kernel": platform.release()}


def git(*words: str) -> str:
    """What git says in this checkout; nothing where it fails."""
    return subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True, check=False).stdout.strip()


def changed_files() -> list[str]:
    """What differs from the commit, but for the records that are written here."""
    lines = git("status", "--porcelain", "--untracked-files=all").splitlines()
    return sorted(path for path in (line[2:].strip() for line in lines) if not path.startswith(RECORDS))


def commit() -> str:
    """The checkout's commit, with -dirty where files differ from it."""
    return (git("rev-parse", "--short=12", "HEAD") or "unknown") + ("-dirty" if changed_files() else "")


def compiler(build: Path = ROOT / "build") -> dict[str, str]:
    """Of the native code: the compiler, the kind of build and its flags; empty where nothing is built."""
    try:
        lines = (build / "CMakeCache.txt").read_text().splitlines()
    except FileNotFoundError:
        return {}
    cache = {key.partition(":")[0]: value for key, _, value in (line.partition("=") for line in lines)}
    path = cache.get("CMAKE_CXX_COMPILER", "c++")
    said = subprocess.run([path, "--version"], capture_output=True, text=True, check=False).stdout
    kind = cache.get("CMAKE_BUILD_TYPE") or "RelWithDebInfo"  # the default of CMakeLists.txt
    return {"name": said.partition("\n")[0], "build_type": kind, "flags": cache.get("CMAKE_CXX_FLAGS", "")}


def versions() -> dict[str, str]:
    """Of the libraries that are measured, and of Python and what the scripts compute with."""
    found = {"python": platform.python_version()}
    for name in ("spillway", "numpy", "scipy"):
        with contextlib.suppress(metadata.PackageNotFoundError):
            found[name] = metadata.version(name)
    for name in LIBRARIES:
        asked = subprocess.run(["pkg-config", "--modversion", name], capture_output=True, text=True, check=False)
        if asked.returncode == 0:
            found[name] = asked.stdout.strip()
    return found


def manifest(command: list[str]) -> dict[str, object]:
    """The circumstances of a record: the command as it can be typed again, and what it ran on."""
    return {
        "command": shlex.join(command),
        "commit": commit(),
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "machine": machine(),
        "compiler": compiler(),
        "versions": versions(),
    }


def parsed(output: str) -> object:
    """One document, or a list of those on each line; ValueError when it is neither."""
    try:
        return json.loads(output)
    except ValueError:
        documents = [json.loads(line) for line in output.splitlines()]
        if not documents:
            raise ValueError("it printed nothing") from None
        return documents


def run(command: list[str]) -> object:
    """The document the benchmark made; CalledProcessError or ValueError when it made none."""
    if not is_google_benchmark(command):
        output = subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True).stdout
        return parsed(output)
    with tempfile.NamedTemporaryFile(suffix=".json") as out:
        arguments = [f"--benchmark_out={out.name}", "--benchmark_out_format=json"]
        subprocess.run([*command, *arguments], cwd=ROOT, check=True)
        document = json.load(out)
    for key in ("host_name", "executable"):
        document["context"].pop(key, None)
    return document


def write_result(name: str, command: list[str], document: object, results: Path = RESULTS) -> Path:
    """Writes the document with its manifest, whole or not at all; returns where to."""
    results.mkdir(parents=True, exist_ok=True)
    record = {"benchmark": name, **manifest(command), "result": document}
    path = results / f"{name}.json"
    part = path.with_suffix(".part")
    part.write_text(json.dumps(record, indent=1) + "\n")
    part.replace(path)
    return path


def main(words: list[str]) -> int:
    """Runs the named benchmarks, or all; returns the exit code."""
    arguments = words[words.index("--") + 1 :] if "--" in words else []
    names = words[: words.index("--")] if "--" in words else list(words)
    is_try = "--try" in names
    names = [name for name in names if name != "--try"]
    commands = benchmarks()
    unknown = sorted(set(names) - set(commands))
    if unknown or not commands:
        known = ", ".join(commands) or "none built"
        print(f"bench: there is no benchmark {', '.join(unknown) or 'at all'}; known: {known}.", file=sys.stderr)
        return 2
    if arguments and len(names) != 1:
        print("bench: arguments are those of one benchmark; name one before --.", file=sys.stderr)
        return 2
    if (changed := changed_files()) and not is_try:
        some = ", ".join(changed[:3]) + (", …" if changed[3:] else "")
        print(
            f"bench: the tree differs from its commit ({some}), so that nobody could make the figures again; commit "
            "first, or take --try, which records in runs/tries/.",
            file=sys.stderr,
        )
        return 2
    failed = []
    for name in names or [each for each in commands if each not in LONG]:
        print(f"== {name}", flush=True)
        command = [*commands[name], *arguments]
        try:
            document = run(command)
        except (subprocess.CalledProcessError, ValueError) as error:
            print(f"bench: {name}: {error}", file=sys.stderr)
            failed.append(name)
            continue
        written = write_result(name, command, document, TRIES if is_try else RESULTS)
        print(f"-> {written.relative_to(ROOT)}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
