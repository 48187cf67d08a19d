"""Fills what README.md and docs/ show of recorded runs from runs/. Run it with `make docs`.

    scripts/figures.py            fills the marked blocks, draws the pictures in docs/recorded/
    scripts/figures.py --check    says which are not what runs/ makes of them: exit code 1

A block stands between <!-- runs: NAME ARGUMENT… --> and <!-- /runs -->; scripts/recorded/pages.py has the names. Exit
code 2 for a marker or a record that is wrong.
"""

import argparse
import sys
from pathlib import Path

from recorded import pages

from spillway.errors import SpillwayError

ROOT = Path(__file__).resolve().parents[1]


def main() -> int:
    """Fills or checks all pages."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="change nothing; exit code 1 where something is stale")
    parser.add_argument("--root", type=Path, default=ROOT, help="the checkout; default: this one")
    given = parser.parse_args()
    try:
        said = pages.stale(given.root) if given.check else [str(name) for name in pages.write(given.root)]
    except SpillwayError as error:
        print(f"figures: {error}", file=sys.stderr)
        return error.exit_code
    for line in said:
        print(line)
    return 1 if given.check and said else 0


if __name__ == "__main__":
    sys.exit(main())
