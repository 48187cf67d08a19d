"""How often `spillway compare` is right: A/A comparisons that come out equal, slowdowns found, intervals that cover.

    .venv/bin/python scripts/compare_errors.py [--times 2000] [--seed 1] [--run RUNDIR ...] [--study NAME ...]

Simulated, with the code that the command uses (spillway/compare/rates.py); --run adds what the command says of a run
directory, such as one of plans/compare-same.toml. Prints each rate with its 95 % interval, and writes all of it to
runs/bench/compare_errors.json (--out). Some minutes with 2000 comparisons of each kind.
"""

import argparse
import json
import sys
import time
from pathlib import Path
from typing import Any

from bench import manifest
from spillway.compare import compare, read_sides
from spillway.compare.rates import STUDIES
from spillway.compare.words import document
from spillway.errors import SpillwayError

ROOT = Path(__file__).resolve().parents[1]
RATES = ("not_told_apart", "covered", "found", "none_differs")


def line(row: dict[str, Any]) -> str:
    """A rate, and of what it is."""
    name = next(each for each in RATES if each in row)
    what = ", ".join(f"{key} {value}" for key, value in row.items() if key not in (name, "low", "high", "comparisons"))
    return f"  {name} {row[name]:.1%} ({row['low']:.1%} to {row['high']:.1%} of {row['comparisons']}): {what}"


def recorded(run: str) -> dict[str, Any]:
    """What is said of a run, with the command that made it and without where it lies."""
    sides = read_sides([run])
    said = document(compare(sides))
    for side in said["sides"].values():
        side["run"] = Path(side["run"]).name
    return {"plan": sides[0].manifest["plan"], "command": " ".join(sides[0].manifest["command"])} | said


def main() -> int:
    """Exit code 2 for a run that cannot be compared."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--times", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--run", action="append", default=[], help="a run directory to compare; may be repeated")
    parser.add_argument("--study", action="append", choices=STUDIES, help="only this one; may be repeated")
    parser.add_argument("--out", type=Path, default=ROOT / "runs" / "bench" / "compare_errors.json")
    given = parser.parse_args()
    result: dict[str, Any] = {"times": given.times, "seed": given.seed}
    try:
        result["recorded"] = [recorded(run) for run in given.run]
    except SpillwayError as error:
        print(f"compare_errors: {error}", file=sys.stderr)
        return 2
    begun = time.monotonic()
    for name in given.study or STUDIES:
        print(name, flush=True)
        result[name] = []
        for row in STUDIES[name](given.times, given.seed):
            result[name].append(row)
            print(line(row), flush=True)
    record = {
        "benchmark": "compare_errors",
        **manifest([".venv/bin/python", "scripts/compare_errors.py", *sys.argv[1:]]),
        "seconds": round(time.monotonic() - begun),
        "result": result,
    }
    given.out.write_text(json.dumps(record, indent=1, ensure_ascii=False) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
