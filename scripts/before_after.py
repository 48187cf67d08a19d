"""Runs arms of a plan with two checkouts in turns, each with its own code and plan: has a figure become worse?

    .venv/bin/python scripts/before_after.py OLD_CHECKOUT [--plan plans/kvaccel-a.toml] [--seeds 3] [--arms ARM ...]

Both are set up first (scripts/setup.sh). For every seed and arm the older and the newer run one after the other, and
who begins alternates, so that what the machine does beside them is in both alike. Prints a Markdown table of medians
with the lowest and highest of the seeds, and writes all of it to runs/bench/kvaccel-a-before-after.json (--out).
"""

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from bench import manifest

ROOT = Path(__file__).resolve().parents[1]
ARMS = [
    f"{store}, {threads}"
    for threads in ("1 thread", "2 threads", "4 threads")
    for store in ("Spillway", "Spillway on files")
]
# Figure: where it is in an arm's summary, and whether more of it is better.
FIGURES: dict[str, tuple[tuple[str, ...], bool]] = {
    "operations/s": (("throughput_ops_s",), True),
    "p99 us": (("write_latency_us", "p99"), False),
    "p99.9 us": (("write_latency_us", "p99_9"), False),
    "worst write us": (("write_latency_us", "max"), False),
    "seconds without a write": (("zero_seconds",), False),
    "bill: seconds": (("bill", "seconds"), False),
    "bill: wa_app": (("bill", "wa_app"), False),
    "bill: wa_total": (("bill", "wa_total"), False),
    "CPU seconds": (("bill", "cpu_seconds"), False),
}


def run(checkout: Path, plan: str, arm: str, seed: int) -> dict[str, float]:
    """One arm with one seed: its figures; CalledProcessError where it fails."""
    with tempfile.TemporaryDirectory(prefix="spillway-before-after-") as scratch:
        command = [str(checkout / ".venv/bin/spillway"), "run", plan, "--json", "--out", f"{scratch}/run"]
        command += ["--arm", arm, "--set", f"seeds=[{seed}]"]
        done = subprocess.run(
            command, cwd=checkout, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=True
        )
    summary = json.loads(done.stdout)["arms"][arm]
    figures = {}
    for name, (path, _) in FIGURES.items():
        value = summary
        for part in path:
            value = value[part]
        figures[name] = float(value)
    return figures


def spread(values: list[float]) -> str:
    """Median, lowest and highest."""
    return f"{statistics.median(values):,.6g} ({min(values):,.6g} to {max(values):,.6g})"


def table(runs: dict[str, dict[str, list[dict[str, float]]]]) -> str:
    """A row for each arm and figure; worse is what has no seed in common with the older code's range."""
    lines = ["| arm | figure | before | after | after / before | ranges |", "|---|---|---|---|---|---|"]
    for arm, sides in runs.items():
        for name, (_, more_is_better) in FIGURES.items():
            before, after = ([one[name] for one in sides[side]] for side in ("before", "after"))
            is_worse = max(after) < min(before) if more_is_better else min(after) > max(before)
            is_better = min(after) > max(before) if more_is_better else max(after) < min(before)
            verdict = "worse" if is_worse else "better" if is_better else "overlap"
            base = statistics.median(before)
            ratio = f"{statistics.median(after) / base:.2f}" if base else "-"
            lines.append(f"| {arm} | {name} | {spread(before)} | {spread(after)} | {ratio} | {verdict} |")
    return "\n".join(lines)


def main() -> int:
    """Exit code 2 where a checkout is not set up."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("old", type=Path, help="the older checkout")
    parser.add_argument("--plan", default="plans/kvaccel-a.toml", help="in both checkouts")
    parser.add_argument("--seeds", type=int, default=3, help="how many, from 1 on")
    parser.add_argument("--arms", nargs="+", default=ARMS, metavar="ARM")
    parser.add_argument("--out", type=Path, default=ROOT / "runs" / "bench" / "kvaccel-a-before-after.json")
    given = parser.parse_args()
    checkouts = {"before": given.old.resolve(), "after": ROOT}
    for checkout in checkouts.values():
        if not (checkout / ".venv/bin/spillway").is_file() or not (checkout / given.plan).is_file():
            print(f"before_after: {checkout} is not set up; run its scripts/setup.sh.", file=sys.stderr)
            return 2
    commits = {
        side: subprocess.run(
            ["git", "describe", "--always", "--dirty", "--abbrev=12"],
            cwd=checkout,
            capture_output=True,
            text=True,
            check=True,
        ).stdout.strip()
        for side, checkout in checkouts.items()
    }
    runs: dict[str, dict[str, list[dict[str, float]]]] = {arm: {"before": [], "after": []} for arm in given.arms}
    turn = 0
    for seed in range(1, given.seeds + 1):
        for arm in given.arms:
            turn += 1
            for side in ("before", "after") if turn % 2 else ("after", "before"):
                runs[arm][side].append(run(checkouts[side], given.plan, arm, seed))
                print(
                    f"seed {seed}, {arm}, {side}: {runs[arm][side][-1]['operations/s']:,.0f}/s",
                    file=sys.stderr,
                    flush=True,
                )
    print(table(runs))
    command = [".venv/bin/python", "scripts/before_after.py", "OLD_CHECKOUT", "--plan", given.plan]
    command += ["--seeds", str(given.seeds), "--arms", *given.arms]
    document = {**manifest(command), "commits": commits, "runs": runs}
    given.out.write_text(json.dumps(document, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
