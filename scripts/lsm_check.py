"""A run of plans/lsm-check.toml beside what the LSM shape simulator says of each of its arms.

    spillway run plans/lsm-check.toml --out runs/lsm-check
    .venv/bin/python scripts/lsm_check.py runs/lsm-check [KEY=VALUE …]

KEY=VALUE: keys of the simulator's request, such as host.put_ns=9000. Prints CSV: throughput and share of time in stalls
while filling, wa_app to the end, measured and simulated.
"""

import csv
import json
import sys
from pathlib import Path
from typing import Any

from spillway.lsm import lsm_request, ratios, simulate
from spillway.plan.arm import Arm
from spillway.plan.document import load_plan


def request(arm: Arm, settings: tuple[str, ...]) -> dict[str, Any]:
    """The simulator's request for an arm of the plan."""
    asked = arm.request(Path("unused"), 1)
    options = asked["engine"]["options"]
    return lsm_request(
        asked["target"]["drive"],
        fill=asked["target"]["initial"]["fill"],
        settings=settings,
        tree__fanout=float(options["max_bytes_for_level_multiplier"]),
        tree__compaction_threads=int(options["max_background_jobs"]) - 1,
        load__num=asked["load"]["num"],
        load__key_bytes=asked["load"]["key_bytes"],
        load__value_bytes=asked["load"]["value_bytes"],
        tree__write_buffer_size=int(options["write_buffer_size"]),
        tree__target_file_size_base=int(options["target_file_size_base"]),
        tree__max_bytes_for_level_base=int(options["max_bytes_for_level_base"]),
    )


def main() -> int:
    """Prints the table."""
    directory, settings = Path(sys.argv[1]), tuple(sys.argv[2:])
    measured = json.loads((directory / "summary.json").read_text(encoding="utf-8"))["arms"]
    names = ("ops_s", "stall_share", "wa_app")
    table = csv.writer(sys.stdout, lineterminator="\n")
    table.writerow(["arm", *(f"{kind}_{name}" for name in names for kind in ("measured", "simulated"))])
    for arm in load_plan(directory / "plan.toml").arms:
        found, result = measured[arm.name], simulate(request(arm, settings))
        derived = ratios(result)
        pairs = (
            (found["throughput_ops_s"], result["ops_s"]),
            (found["stalls"]["seconds"] / found["duration_s"], derived.stall_share),
            (found["bill"]["wa_app"], derived.wa_app),
        )
        table.writerow([arm.name, *(f"{value:.4g}" for pair in pairs for value in pair if value is not None)])
    return 0


if __name__ == "__main__":
    sys.exit(main())
