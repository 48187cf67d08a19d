"""Runs Google Benchmarks of two builds in turns: has a native path become slower?

    .venv/bin/python scripts/before_after_native.py OLD_BUILD [--turns 9] [--bench spill_commits]

OLD_BUILD is the build directory of an older checkout with SPILLWAY_BENCH=ON; build/ here is the newer one
(scripts/native.sh bench). A benchmark that the older checkout does not have is built there from this checkout's source:
copy bench/NAME.cc and bench/CMakeLists.txt. In each turn both run, one after the other, and who begins alternates, so
that what the machine does beside them is in both alike. Prints a Markdown table of medians with the lowest and highest
of the turns, and the median of the turns' ratios; all of it goes to runs/bench/native-before-after.json (--out).
"""

import argparse
import json
import statistics
import subprocess
import sys
from pathlib import Path

from bench import manifest

ROOT = Path(__file__).resolve().parents[1]
# What of a benchmark's counters is compared; without any of them its time per iteration.
COUNTERS = ("cpu_ratio", "us_per_op")


def figures_of(build: Path, bench: str, only: str) -> dict[str, float]:
    """Figure → value of one run. CalledProcessError where the benchmark fails."""
    command = [str(build / "bench" / f"bench_{bench}"), "--benchmark_format=json", f"--benchmark_filter={only}"]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=True)
    figures = {}
    for one in json.loads(done.stdout)["benchmarks"]:
        counter = next((name for name in COUNTERS if name in one), "real_time")
        figures[f"{one['name']} {counter}"] = float(one[counter])
    return figures


def commit_of(build: Path) -> str:
    """The commit of a build's sources as git describes it, with -dirty where files differ."""
    cache = (build / "CMakeCache.txt").read_text()
    sources = cache.partition("CMAKE_HOME_DIRECTORY:INTERNAL=")[2].partition("\n")[0]
    command = ["git", "-C", sources, "describe", "--always", "--dirty", "--abbrev=12"]
    return subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout.strip()


def spread(values: list[float]) -> str:
    """Median, lowest and highest."""
    return f"{statistics.median(values):.4g} ({min(values):.4g} to {max(values):.4g})"


def main() -> int:
    """CalledProcessError where a benchmark fails."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("old", type=Path, help="the build directory of the older checkout")
    parser.add_argument("--turns", type=int, default=9)
    parser.add_argument("--bench", action="append", help="default: spill_commits and spill_overheads")
    parser.add_argument("--only", default=".*", help="a pattern of Google Benchmark's")
    parser.add_argument("--out", type=Path, default=ROOT / "runs" / "bench" / "native-before-after.json")
    arguments = parser.parse_args()
    builds = {"before": arguments.old.resolve(), "after": ROOT / "build"}
    found: dict[str, dict[str, list[float]]] = {}
    for bench in arguments.bench or ["spill_commits", "spill_overheads"]:
        for turn in range(arguments.turns):
            for side in ("before", "after") if turn % 2 == 0 else ("after", "before"):
                for name, value in figures_of(builds[side], bench, arguments.only).items():
                    found.setdefault(f"{bench}: {name}", {"before": [], "after": []})[side].append(value)
    print("| figure | before | after | after / before |\n|---|---|---|---|")
    for name, sides in found.items():
        ratios = [after / before for before, after in zip(sides["before"], sides["after"], strict=True)]
        print(f"| {name} | {spread(sides['before'])} | {spread(sides['after'])} | {spread(ratios)} |")
    given = ["OLD_BUILD" if word == str(arguments.old) else word for word in sys.argv[1:]]
    command = [".venv/bin/python", "scripts/before_after_native.py", *given]
    commits = {"before": commit_of(builds["before"]), "after": commit_of(builds["after"])}
    result = {"commits": commits, "turns": arguments.turns, "figures": found}
    record = {"benchmark": "native-before-after", **manifest(command), "result": result}
    arguments.out.write_text(json.dumps(record, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
