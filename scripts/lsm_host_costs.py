"""Host costs for the LSM shape simulator, from a run of plans/lsm-host-costs.toml.

    spillway run plans/lsm-host-costs.toml --out runs/lsm-host-costs
    .venv/bin/python scripts/lsm_host_costs.py runs/lsm-host-costs > host.json

Prints JSON for `spillway lsm simulate --host` and `scripts/lsm_check.py --host`, and what each size of a pair took on
standard error.
"""

import json
import os
import sys
from pathlib import Path
from typing import Any

from spillway.lsm import EntryCosts, entry_costs, host_costs
from spillway.plan.document import load_plan


def measured(directory: Path) -> list[EntryCosts]:
    """Costs by size of a pair."""
    summary = json.loads((directory / "summary.json").read_text(encoding="utf-8"))["arms"]
    results: dict[float, dict[str, Any]] = {}
    for arm in load_plan(directory / "plan.toml").arms:
        load = arm.request(Path("unused"), 1)["load"]
        of = directory / summary[arm.name]["directory"]
        result = json.loads((of / "result.json").read_text(encoding="utf-8"))
        results.setdefault(load["key_bytes"] + load["value_bytes"], {})[arm.name.split(",")[0]] = result
    return [entry_costs(of["puts"], of["merges"], pair) for pair, of in sorted(results.items())]


def main() -> int:
    """Prints the costs."""
    entries = measured(Path(sys.argv[1]))
    for one in entries:
        print(
            f"{one.pair_bytes:6.0f} B: put {one.put_ns:6.0f} ns, flush {one.flush_ns:6.0f}, merge {one.merge_ns:6.0f}",
            file=sys.stderr,
        )
    print(json.dumps(host_costs(entries, len(os.sched_getaffinity(0))), indent=2))
    return 0


if __name__ == "__main__":
    sys.exit(main())
