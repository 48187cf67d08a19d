"""The metrics of a comparison: how each is computed from a repetition, and from the samples of one run."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from spillway.figures.amplification import ratio
from spillway.rundir.samples import Row, nand_bytes, stall_seconds

Document = dict[str, Any]

# The latency histogram has 64 steps in each power of two, so that two percentiles may be so far apart and the same.
# Source: docs/METHODOLOGY.md, Latency.
HISTOGRAM_STEP = 1 / 64


@dataclass(frozen=True)
class Metric:
    """One metric. ``of`` is its figure of a repetition. From samples it is sum(part) / sum(whole), times ``factor`` (of
    the run) where there is one; without ``part`` and ``whole`` it has none from samples."""

    name: str
    unit: str
    of: Callable[[Document], float | None]  # of a repetition in summary.json
    form: str  # of the figure in a table
    better: str  # what the better side is or has: "faster", "lower"
    more_is_better: bool = False
    is_share: bool = False  # between 0 and 1, and may be 0: compared by the difference
    slack: float = 0.0
    is_derived: bool = False  # follows from other figures here, so that judging it too adds nothing
    part: Callable[[Row], float | None] | None = None
    whole: Callable[[Row], float | None] | None = None
    factor: Callable[[Document], float | None] | None = None  # of a repetition in summary.json

    def scaled(self, value: float) -> float:
        """The figure as it is compared: its logarithm, or a share as it is."""
        return value if self.is_share else math.log(value)

    def unscaled(self, value: float) -> float:
        """The figure, of what is compared."""
        return value if self.is_share else math.exp(value)

    def known(self, repetition: Document) -> float | None:
        """The figure of a repetition; None where there is none, or where a logarithm would not have it."""
        value = self.of(repetition)
        if not isinstance(value, int | float) or isinstance(value, bool) or not math.isfinite(value):
            return None
        return float(value) if value > 0 or (self.is_share and value == 0) else None

    def series(self, rows: Sequence[Row]) -> tuple[list[float], list[float]] | None:
        """Part and whole of each sample; None where a sample has no such figure."""
        if self.part is None or self.whole is None:
            return None
        parts, wholes = [self.part(row) for row in rows], [self.whole(row) for row in rows]
        known = [(a, b) for a, b in zip(parts, wholes, strict=True) if a is not None and b is not None]
        return ([a for a, _ in known], [b for _, b in known]) if len(known) == len(rows) else None

    def factor_of(self, repetition: Document) -> float | None:
        """What sum(part) / sum(whole) is multiplied by; None where that is not known."""
        return 1.0 if self.factor is None else self.factor(repetition)


def table(document: Document, key: str) -> Document:
    """A table of a document that may be damaged; empty where there is none."""
    value = document.get(key)
    return value if isinstance(value, dict) else {}


def _field(name: str) -> Callable[[Document], float | None]:
    return lambda figures: figures.get(name)


def _write_latency(name: str) -> Callable[[Document], float | None]:
    return lambda figures: table(figures, "write_latency_us").get(name)


def _stall_share(figures: Document) -> float | None:
    seconds, duration = table(figures, "stalls").get("seconds"), figures.get("duration_s")
    if not isinstance(seconds, int | float) or not isinstance(duration, int | float):
        return None
    share = ratio(seconds, duration)
    return None if share is None else min(1.0, share)


def _lifetime(name: str) -> Callable[[Document], float | None]:
    return lambda figures: table(figures, "lifetime").get(name)


def _spent_bytes(row: Row) -> float | None:
    """What wears the drive out: NAND bytes, or host bytes where a maker's warranty counts those."""
    flash = nand_bytes(row)
    return row.get("host_bytes_written") if flash is None else flash


def _years_for_each(figures: Document) -> float | None:
    """Years of life for each second in which a byte is spent: endurance, on the time and the capacity of the figure."""
    by_cause = list(table(figures, "nand_bytes_programmed").values()) or [figures.get("host_bytes_written")]
    known = [table(figures, "lifetime").get("full_size_years"), figures.get("duration_s"), *by_cause]
    if not all(isinstance(each, int | float) for each in known):
        return None
    lasting, seconds, *spent = known
    return ratio(lasting * sum(spent), seconds)


def _cell(name: str) -> Callable[[Row], float | None]:
    return lambda row: row.get(name)


METRICS = {
    metric.name: metric
    for metric in (
        Metric(
            "throughput_ops_s", "operations/s", _field("throughput_ops_s"), ",.0f", "faster", more_is_better=True,
            part=lambda row: row["reads"] + row["writes"], whole=_cell("dt_s"),
        ),
        Metric("write_p99_us", "µs", _write_latency("p99"), ",.1f", "lower", slack=HISTOGRAM_STEP),
        Metric("write_max_us", "µs", _write_latency("max"), ",.0f", "lower"),
        Metric(
            "wa_app", "", _field("wa_app"), ".3f", "lower",
            part=_cell("host_bytes_written"), whole=_cell("user_bytes_written"),
        ),
        Metric(
            "wa_device", "", _field("wa_device"), ".3f", "lower",
            part=nand_bytes, whole=_cell("host_bytes_written"),
        ),
        Metric("wa_total", "", _field("wa_total"), ".3f", "lower", part=nand_bytes, whole=_cell("user_bytes_written")),
        Metric(
            "flash_bytes_per_operation", "bytes", _lifetime("flash_bytes_per_operation"), ",.0f", "lower",
            is_derived=True, part=nand_bytes, whole=lambda row: row["reads"] + row["writes"],
        ),
        Metric(
            "years", "at this rate", _lifetime("full_size_years"), ",.3g", "longer", more_is_better=True,
            is_derived=True, part=_cell("dt_s"), whole=_spent_bytes, factor=_years_for_each,
        ),
        Metric("space_amplification", "", _field("space_amplification"), ".3f", "lower"),
        Metric(
            "stall_share", "% of the time", _stall_share, ".1%", "lower", is_share=True,
            part=stall_seconds, whole=_cell("dt_s"),
        ),
    )
}  # fmt: skip
