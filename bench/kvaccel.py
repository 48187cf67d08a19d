"""KVAccel's workloads A to D (K18-K20) and A on this machine's own disk, each as its plan has them.

    .venv/bin/python bench/kvaccel.py a|b|c|d|directory

All five take some three hours. Part of one: spillway run plans/kvaccel-a.toml --arm NAME --set seeds=[1].
"""

import json
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
NAMES = ("a", "b", "c", "d", "directory")
# Of each arm's summary; the rest is in the run itself.
KEPT = (
    "throughput_ops_s",
    "write_latency_us",
    "read_latency_us",
    "latency_us",
    "reads",
    "writes",
    "wa_app",
    "wa_device",
    "wa_total",
    "stalls",
    "zero_seconds",
    "cpu_percent",
    "efficiency_mb_s_per_cpu_percent",
    "bill",
    "spill",
    "steady",
    "seeds",
    "repetitions",
)


def main() -> int:
    """Print what is kept of each arm's summary, by arm."""
    if len(sys.argv) != 2 or sys.argv[1] not in NAMES:
        print(f"bench/kvaccel.py: name one of {', '.join(NAMES)}.", file=sys.stderr)
        return 2
    with tempfile.TemporaryDirectory(prefix="spillway-kvaccel-") as scratch:
        command = [str(ROOT / ".venv/bin/spillway"), "run", f"plans/kvaccel-{sys.argv[1]}.toml", "--json"]
        run = subprocess.run(
            [*command, "--out", f"{scratch}/run"], cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True
        )
    arms = json.loads(run.stdout)["arms"]
    print(json.dumps({name: {key: arm[key] for key in KEPT if key in arm} for name, arm in arms.items()}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
