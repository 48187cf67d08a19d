"""Runs the benchmarks and writes what they print, with the command that made it, to runs/bench/.

    .venv/bin/python scripts/bench.py [NAME ...]

A benchmark is an executable build/bench/bench_NAME, a script bench/NAME.py, or a plan of bench/kvaccel.py, here
kvaccel-a to kvaccel-directory. It prints JSON, one document or one on each line; a Google Benchmark does so when asked
to. One that fails ends with exit code 1 after the others have run, and leaves no result.
"""

import json
import os
import platform
import subprocess
import sys
import tempfile
from datetime import UTC, datetime
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "runs" / "bench"


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


def commit() -> str:
    """The checkout's commit, with -dirty where files differ from it."""
    answer = subprocess.run(
        ["git", "describe", "--always", "--dirty", "--abbrev=12"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    return answer.stdout.strip() or "unknown"


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


def write_result(name: str, command: list[str], document: object) -> Path:
    """Writes the document with its circumstances, whole or not at all; returns where to."""
    RESULTS.mkdir(parents=True, exist_ok=True)
    record = {
        "benchmark": name,
        "command": " ".join(command),
        "commit": commit(),
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "machine": machine(),
        "result": document,
    }
    path = RESULTS / f"{name}.json"
    part = path.with_suffix(".part")
    part.write_text(json.dumps(record, indent=1) + "\n")
    part.replace(path)
    return path


def main(names: list[str]) -> int:
    """Runs the named benchmarks, or all; returns the exit code."""
    commands = benchmarks()
    unknown = sorted(set(names) - set(commands))
    if unknown or not commands:
        known = ", ".join(commands) or "none built"
        print(f"bench: there is no benchmark {', '.join(unknown) or 'at all'}; known: {known}.", file=sys.stderr)
        return 2
    failed = []
    for name in names or commands:
        print(f"== {name}", flush=True)
        try:
            document = run(commands[name])
        except (subprocess.CalledProcessError, ValueError) as error:
            print(f"bench: {name}: {error}", file=sys.stderr)
            failed.append(name)
            continue
        print(f"-> {write_result(name, commands[name], document).relative_to(ROOT)}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
