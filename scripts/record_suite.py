"""What a suite's directory holds, as a record small enough for git: runs/suites/NAME/.

    .venv/bin/spillway suite cascaded-wa
    .venv/bin/python scripts/record_suite.py runs/cascaded-wa-1-256

Writes claims.csv as the suite has it, runs.csv with a line for each run, its lifetime beside its write amplification,
and about.json: command, factor, commit, build, machine, and how long each plan took. The checkout must be clean, its
executable that of the runs, and every plan whole; with --partial, about.json names those that are not. With --as NAME
the record is runs/suites/NAME/, beside those of plans that were run with other settings.

docs/RECORDED.md shows it between markers that name the suite; `make docs` fills them.
"""

import argparse
import csv
import json
import shlex
import shutil
import subprocess
import sys
import tomllib
from datetime import datetime
from pathlib import Path
from typing import Any

from spillway.native.process import build_sha256
from spillway.plan.arm import run_label
from spillway.suite import find_suite

ROOT = Path(__file__).resolve().parents[1]
FIGURES = ("wa_app", "wa_device", "wa_total", "user_mb_s", "duration_s", "operations", "steady")
LATENCIES = ("p99", "p99_9", "max")  # of writes, all that was measured
READS = ("p99_9", "max")
BILL = ("throughput_ops_s", "wa_total")  # to the end, with all brought back and compacted
BYTES = ("user_bytes_written", "host_bytes_written", "host_bytes_read")
# Of spillway/figures/lifetime.py: of the drive as it ran, and of one of its preset's whole capacity (full_size_). In
# virtual time there are no rates, so neither years nor writes a day.
LIFETIME = (
    *("flash_bytes_per_operation", "user_bytes_until_worn", "full_size_user_bytes_until_worn"),
    *("drive_writes_per_day", "full_size_drive_writes_per_day", "percentage_used", "percentage_used_by_run"),
    *("years", "full_size_years", "money_per_year", "currency", "virtual_time"),
)

Document = dict[str, Any]


def git(*words: str) -> str:
    """What git says of the checkout."""
    return subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True, check=True).stdout.strip()


def read(path: Path) -> Document:
    """A JSON object of a run directory or of the suite."""
    document: Document = json.loads(path.read_text(encoding="utf-8"))
    return document


def line(plan: str, arm: str, figures: Document) -> Document:
    """A run's figures; of several repetitions, the typical one's."""
    nand, lasting = figures.get("nand_bytes_programmed") or {}, figures.get("lifetime") or {}
    standing, latency = figures.get("standing") or {}, figures.get("write_latency_us") or {}
    reads, bill = figures.get("read_latency_us") or {}, figures.get("bill") or {}
    of_steady = (figures.get("parts") or {}).get("steady") or {}
    return {
        "plan": plan,
        "run": arm,
        **{name: figures.get(name) for name in (*FIGURES, *BYTES)},
        "nand_bytes_programmed": sum(nand.values()) if nand else None,
        **{name: lasting.get(name) for name in LIFETIME},
        "complete": standing.get("complete"),
        "throughput_ops_s": figures.get("throughput_ops_s"),
        "steady_since_s": standing.get("steady_since_s"),
        "steady_throughput_ops_s": of_steady.get("throughput_ops_s"),
        **{f"write_latency_{name}_us": latency.get(name) for name in LATENCIES},
        **{f"read_latency_{name}_us": reads.get(name) for name in READS},
        "slowest_second_share": figures.get("slowest_second_share"),
        **{f"settled_{name}": bill.get(name) for name in BILL},
        "failure": standing.get("failure"),
    }


def seconds(manifest: Document) -> float:
    """How long a plan took, its preparations included."""
    begun, ended = (datetime.fromisoformat(manifest[key]) for key in ("started", "ended"))
    return (ended - begun).total_seconds()


def filled_its_drive(manifest: Document, arm: str) -> bool:
    """Whether a repetition of an arm did, by the failures that its plan's manifest names."""
    filled = {failure["run"] for failure in manifest.get("failures") or [] if failure["drive_full"]}
    count = len(manifest["seeds"])
    return any(run_label(arm, repetition, count) in filled for repetition in range(count))


def main() -> int:
    """Checks that the record would be repeatable, and writes it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("directory", type=Path)
    parser.add_argument("--partial", action="store_true")
    parser.add_argument("--as", dest="name", help="the record's own name, beside one of other plans of the suite")
    options = parser.parse_args()
    directory: Path = options.directory
    suite = read(directory / "suite.json")
    if changed := git("status", "--porcelain", "--", ".", ":!runs"):
        sys.exit(f"record_suite: the checkout is not clean: {changed.splitlines()[0].strip()} differs; commit first.")
    named = tomllib.loads((find_suite(suite["suite"]) / "suite.toml").read_text(encoding="utf-8"))["plans"]
    states = dict.fromkeys(named, "not run") | {name: plan["state"] for name, plan in suite["plans"].items()}
    unfinished = {name: state for name, state in states.items() if state != "done"}
    if unfinished and not options.partial:
        sys.exit(f"record_suite: {', '.join(unfinished)} is not done; run the suite again.")
    left_out = {name for name, plan in suite["plans"].items() if not plan.get("reported", True)}  # of claims.csv too
    done = [name for name, state in states.items() if state in ("done", "failed") and name not in left_out]
    if not done:
        sys.exit("record_suite: no plan of it is done; run the suite.")
    manifests = {name: read(directory / name / "manifest.json") for name in done}
    builds = {manifest["versions"]["build_sha256"] for manifest in manifests.values()}
    if builds != {build_sha256()}:
        sys.exit("record_suite: not every plan was run by this checkout's build; run the suite again.")
    lines = [
        line(name, arm, figures) | {"drive_full": filled_its_drive(manifests[name], arm)}
        for name in done
        for arm, figures in read(directory / name / "summary.json")["arms"].items()
    ]
    place = ROOT / "runs" / "suites" / (options.name or suite["suite"])
    place.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(directory / "claims.csv", place / "claims.csv")
    with (place / "runs.csv").open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(lines[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(lines)
    first = next(iter(manifests.values()))
    own = suite["own_factors"]  # which --scale would replace
    settings = list(dict.fromkeys(each for name in done for each in suite["plans"][name].get("settings", [])))
    words = ["spillway", "suite", suite["suite"], *([] if own else ["--scale", suite["factor"]])]
    about = {
        "suite": suite["suite"],
        "command": shlex.join([*words, *(word for each in settings for word in ("--set", each))]),
        "settings": {name: suite["plans"][name].get("settings", []) for name in done},
        "factor": suite["factor"],
        "own_factors": own,
        "commit": git("describe", "--always", "--abbrev=12"),
        "started": min(manifest["started"] for manifest in manifests.values()),
        "ended": max(manifest["ended"] for manifest in manifests.values()),
        "seconds": {name: seconds(manifest) for name, manifest in manifests.items()},
        "unfinished": unfinished,
        "runs": len(lines),
        "versions": first["versions"],
        "machine": first["host"],
    }
    (place / "about.json").write_text(json.dumps(about, indent=1) + "\n", encoding="utf-8")
    print(place.relative_to(ROOT))
    return 0


if __name__ == "__main__":
    sys.exit(main())
