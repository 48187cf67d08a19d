"""KVAccel's workloads A to D (K18-K20) and A on this machine's own disk, each as its plan has them.

    .venv/bin/python bench/kvaccel.py [a b c d directory]

All five take an hour and more. Part of one: spillway run plans/kvaccel-a.toml --arm NAME --set seeds=[1].
"""

import json
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
NAMES = ("a", "b", "c", "d", "directory")


def main() -> None:
    """Print the arms of each named plan's summary, by plan."""
    results = {}
    for name in sys.argv[1:] or NAMES:
        with tempfile.TemporaryDirectory(prefix="spillway-kvaccel-") as scratch:
            command = [str(ROOT / ".venv/bin/spillway"), "run", f"plans/kvaccel-{name}.toml", "--json"]
            run = subprocess.run(
                [*command, "--out", f"{scratch}/run"], cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True
            )
        results[name] = json.loads(run.stdout)["arms"]
    print(json.dumps(results))


if __name__ == "__main__":
    main()
