"""The MQSSD paper's equations, and what is counted, held against the recorded runs of the suite mqssd."""

import re
from collections.abc import Sequence

import numpy as np

from recorded.markdown import table
from recorded.records import Records
from spillway.errors import SpillwayError
from spillway.models.arrays import Array
from spillway.reproduce.document import cells
from spillway.reproduce.mqssd_reads import Off, off, steps

THREADS = (1, 2, 4, 8, 16, 32)
LAYOUTS = ("F = 2", "F = 4", "F = 8", "F = 16", "F = 32", "single level")
RUN = re.compile(r"k = (\d+), (.+)")


def predictions(records: Records, suite: str) -> list[str]:
    """How far each step from the equations to the counts is off, up to one constant, of queries and of scans."""
    measured = {plan: _times(records, suite, plan) for plan in ("queries", "scans")}
    rows = []
    for step in steps():
        found: Sequence[Off] = (off(step.queries, measured["queries"]), off(step.scans, measured["scans"]))
        rows.append((step.name, *cells([value for each in found for value in (each.most, each.typical, each.single)])))
    columns = ("largest", "typical", "single level")
    return table(("", *(f"{plan}: {column}" for plan in measured for column in columns)), rows)


def _times(records: Records, suite: str, plan: str) -> Array:
    """us per operation over all in flight, of shape (k, F and single level)."""
    rates: dict[tuple[int, str], float] = {}
    for row in records.runs(suite):
        named = RUN.fullmatch(row["run"])
        if row["plan"] == plan and named and row["throughput_ops_s"]:
            rates[int(named[1]), named[2]] = float(row["throughput_ops_s"])
    missing = [f"k = {k}, {layout}" for k in THREADS for layout in LAYOUTS if (k, layout) not in rates]
    if missing:
        raise SpillwayError(f"runs/suites/{suite}/runs.csv has no throughput of {plan}: {missing[0]}.")
    return np.array([[1e6 / rates[k, layout] for layout in LAYOUTS] for k in THREADS])
