"""The burst of a steady run, and its steady part.

Sums over samples, and ratios of sums; a sample belongs to the part in which its end lies. Latencies of samples cannot
be added up: the worst write is the largest of theirs.
"""

from collections.abc import Sequence
from typing import Any

from spillway.figures.amplification import amplification, ratio
from spillway.figures.lifetime import flash_bytes_per_operation
from spillway.rundir.samples import Row, measured, nand_bytes
from spillway.steady import Verdict

Document = dict[str, Any]


def parts(rows: Sequence[Row], verdict: Verdict) -> Document | None:
    """``burst`` (None where the run was steady all along) and ``steady``; None of a run that was not steady."""
    if not verdict.steady or verdict.since_s is None:
        return None
    burst, steady = split(rows, verdict.since_s)
    return {"burst": _part(burst) if burst else None, "steady": _part(steady)}


def split(rows: Sequence[Row], since_s: float) -> tuple[list[Row], list[Row]]:
    """(rows up to ``since_s``, rows after it) of the measured rows; ``since_s`` counts measured seconds only."""
    before: list[Row] = []
    behind: list[Row] = []
    elapsed = 0.0
    for row in measured(rows):
        elapsed += row["dt_s"]
        # Half of a sample's time is slack: sums of the same times may differ in their last digits.
        (before if elapsed - row["dt_s"] / 2 <= since_s else behind).append(row)
    return before, behind


def _part(rows: Sequence[Row]) -> Document:
    seconds = sum(row["dt_s"] for row in rows)
    user = sum(row["user_bytes_written"] for row in rows)
    host = _sum([row.get("host_bytes_written") for row in rows])
    nand = _sum([nand_bytes(row) for row in rows])
    ratios = amplification(user, host, nand)
    operations = sum(row["reads"] + row["writes"] for row in rows)
    return {
        "seconds": seconds,
        "throughput_ops_s": ratio(operations, seconds),
        "wa_app": ratios.wa_app,
        "wa_device": ratios.wa_device,
        "wa_total": ratios.wa_total,
        "flash_bytes_per_operation": flash_bytes_per_operation(nand, operations),
        "user_bytes_written": user,
        "host_bytes_written": host,
        "nand_bytes_programmed": nand,
        "write_latency_max_us": max((row.get("write_latency_max_us") or 0.0 for row in rows), default=0.0),
    }


def _sum(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) if len(known) == len(values) else None
