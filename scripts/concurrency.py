"""What concurrency buys on the presets: the examples and the tuned buffer pool, recorded. `make concurrency`.

    .venv/bin/python scripts/concurrency.py [PRESET ...] [--try]

Runs examples/concurrency/ with the sizes below on each preset (by default PRESETS), in virtual time, and writes to
runs/concurrency/:

    speed-ups.csv    a line for each program and preset: one I/O at a time against many, beside S' and S''
    asymmetry.csv    external sort and hash join by plans that count what a write costs, and by plans that do not
    write-back.csv   buffer pools that choose n_w by themselves, beside the best fixed n_w
    about.json       command, commit, date

docs/CONCURRENCY.md shows them; `make docs` fills it. A tree that differs from its commit is refused; with --try the
files go to runs/tries/, which is not kept.
"""

import argparse
import csv
import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "examples" / "concurrency"))
import btree_lookups
import external_sort
import graph_search
import hash_join

from bench import ROOT, TRIES, manifest
from spillway.bufferpool.pool import Workload
from spillway.bufferpool.sweep import Sweep, sweep
from spillway.concurrency import Comparison, MeasuredDrive, measured_drive
from spillway.profile import parse_target

PLACE = ROOT / "runs" / "concurrency"
PRESETS = ("intel-p4510", "intel-s4610", "samsung-990-pro")

# Half full, as a drive is used: on a full one garbage collection is all that writes wait for, and k_w is 1 or 2.
FILL = 0.5

VERTICES, DEGREE, DFS_MEMORY = 10_000, 8, 2048
KEYS, LOOKUPS = 1_000_000, 5000
SORT_PAGES, SORT_MEMORY = (4000, 600), 256  # with a merge; and small enough that scanning again may save it
BUILD, PROBE, JOIN_MEMORY = (2000, 500), 4000, 256  # the smaller build table has few parts
REPEATS = 2  # seeds of a sweep

Row = Mapping[str, Any]


def comparisons(drive: MeasuredDrive) -> Iterator[Comparison]:
    """Every program, one I/O at a time against many."""
    graph = (VERTICES, DEGREE, DFS_MEMORY)
    yield graph_search.compared(drive, "bfs", "random", *graph)
    yield graph_search.compared(drive, "dfs", "tree", *graph)
    yield graph_search.compared(drive, "dfs", "random", *graph)
    yield btree_lookups.compared(drive, KEYS, LOOKUPS)
    yield external_sort.compared(drive, SORT_PAGES[0], SORT_MEMORY)
    yield hash_join.compared(drive, BUILD[0], PROBE, JOIN_MEMORY)


def asymmetries(drive: MeasuredDrive) -> Iterator[Row]:
    """Both programs that write, by both kinds of plans."""
    for asymmetric in (False, True):
        for pages in SORT_PAGES:
            plan, ran = external_sort.by_plan(drive, pages, SORT_MEMORY, asymmetric=asymmetric)
            words = f"{plan.scans} scans, {plan.passes} merges"
            yield _asymmetry(drive, f"external sort of {pages:,} pages", asymmetric, words, plan, ran)
        for build in BUILD:
            join, ran = hash_join.by_plan(drive, build, PROBE, JOIN_MEMORY, asymmetric=asymmetric)
            words = f"{join.parts} parts, {'written' if join.writes_parts else 'scanned again'}"
            yield _asymmetry(drive, f"hash join of {build:,} and {PROBE:,} pages", asymmetric, words, join, ran)


def _asymmetry(drive: MeasuredDrive, program: str, asymmetric: bool, words: str, plan: Any, ran: Any) -> Row:
    limits = {"reads_ahead": plan.reads_ahead, "writes_behind": plan.writes_behind, "planned_s": plan.us / 1e6}
    measured = {name: value for name, value in asdict(ran).items() if name not in ("reads", "writes")}
    alpha = drive.saturation.pio.alpha.value
    return {
        **{"program": program, "preset": drive.preset, "alpha": alpha, "asymmetric": asymmetric, "plan": words},
        **limits,
        **measured,
    }


def write_backs(preset: str) -> Iterator[Row]:
    """Pools that choose n_w, beside the fixed ones of a sweep."""
    target = parse_target(f"preset:{preset}", fill=str(FILL))
    found: Sweep = sweep(target, Workload(), repeats=REPEATS, writers=("queue",), tuned=True)
    best = max(found.steps, key=lambda step: step.operations_per_s.value)
    for tuned in found.tuned:
        yield {
            "preset": preset,
            "k_w": found.drive.k_w.value,
            "best_write_back": best.write_back,
            "best_operations_per_s": best.operations_per_s.value,
            "best_speed_up": best.speed_up.value,
            "way": tuned.way,
            "write_back": tuned.write_back,
            "operations_per_s": tuned.operations_per_s.value,
            "of_best": tuned.of_best.value,
            "of_best_low": tuned.of_best.low,
            "of_best_high": tuned.of_best.high,
        }


def write_csv(path: Path, rows: Sequence[Row]) -> None:
    """Writes rows with the same columns; figures have six digits."""
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        for row in rows:
            writer.writerow({name: f"{v:.6g}" if isinstance(v, float) else v for name, v in row.items()})


def main() -> int:
    """Runs everything on every preset and writes the record."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("presets", nargs="*", default=PRESETS, metavar="PRESET")
    parser.add_argument("--try", dest="tries", action="store_true", help="record a tree that differs from its commit")
    asked = parser.parse_args()
    about = manifest([".venv/bin/python", "scripts/concurrency.py", *sys.argv[1:]])
    if "dirty" in str(about["commit"]) and not asked.tries:
        print("concurrency: this tree differs from its commit; commit first, or record with --try.", file=sys.stderr)
        return 2
    speed_ups: list[Row] = []
    asymmetry: list[Row] = []
    write_back: list[Row] = []
    for preset in asked.presets:
        drive = measured_drive(preset, fill=FILL)
        for found in comparisons(drive):
            print(found.words(), flush=True)
            speed_ups.append(found.row())
        asymmetry += asymmetries(drive)
        write_back += write_backs(preset)
    place = TRIES / PLACE.name if asked.tries else PLACE
    place.mkdir(parents=True, exist_ok=True)
    for name, rows in (("speed-ups", speed_ups), ("asymmetry", asymmetry), ("write-back", write_back)):
        write_csv(place / f"{name}.csv", rows)
    (place / "about.json").write_text(json.dumps(about, indent=2) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
