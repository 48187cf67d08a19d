"""The directory of a sweep of a buffer pool: sweep.json, sweep.csv, report.html."""

import json
from pathlib import Path
from typing import Any

from spillway.bufferpool.pool import Workload
from spillway.bufferpool.sweep import Sweep, sweep
from spillway.bufferpool.words import document, to_csv
from spillway.profile.target import Target
from spillway.rundir.directory import write_text
from spillway.rundir.stage import staged


def sweep_into(out: Path, target: Target, workload: Workload, **options: Any) -> Sweep:
    """``sweep``, left in the directory ``out``: sweep.json, sweep.csv and the report, all of it or nothing. Raises as
    ``sweep`` does."""
    with staged(out) as stage:
        found = sweep(target, workload, **options)
        from spillway.bufferpool.page import write_bufferpool_report  # the chart library is slow to import

        write_text(stage / "sweep.json", json.dumps(document(found), indent=2, ensure_ascii=False) + "\n")
        write_text(stage / "sweep.csv", to_csv(found.rows))
        write_bufferpool_report(found, stage / "report.html")
    return found
