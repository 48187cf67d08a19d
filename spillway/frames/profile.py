"""A profile directory as data frames: what was measured, the parameters with their 95 % intervals, how models fit."""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, fields
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from spillway.errors import SpillwayError
from spillway.frames.tables import frame_of
from spillway.profile.document import Estimate, Mqssd, Pio, Profile
from spillway.profile.document import read_profile as read_record
from spillway.profile.points import COLUMNS

if TYPE_CHECKING:
    import pandas as pd

    from spillway.frames.charts import Charts
    from spillway.profile.compare import Comparison

Row = dict[str, Any]


@dataclass(frozen=True, eq=False, repr=False)
class ProfileFrames:
    """A profile of a drive. Every table is a data frame with units in its columns' names (``tables.py``), made when it
    is first used. An estimate has its 95 % interval beside it: ``tau_us`` lies between ``tau_low_us`` and
    ``tau_high_us``; NaN is not known."""

    path: Path
    record: Profile

    @property
    def name(self) -> str:
        """Of the drive."""
        return self.record.name

    @cached_property
    def samples(self) -> "pd.DataFrame":
        """A row for each measured point: ``k`` operations in flight, and ``page_cost_us`` for each page of 4 KiB."""
        rows = [
            {**{name: getattr(each, name) for name in COLUMNS}, "k": each.k, "page_cost_us": each.page_cost_us}
            for each in self.record.samples
        ]
        return frame_of(rows, (*COLUMNS, "k", "page_cost_us"))

    @cached_property
    def latency(self) -> "pd.DataFrame":
        """A row for reads and one for writes: of 4 KiB at random, one at a time."""
        rows = [{"op": op} | _estimate("latency_us", known) for op, known in self.record.latency_us.items()]
        return frame_of(rows, ("op", "latency_us", "latency_low_us", "latency_high_us"))

    @cached_property
    def pio(self) -> "pd.DataFrame":
        """A row for each size of an access: asymmetry alpha, and k_r and k_w that saturate the drive (PIO)."""
        rows = [{"bs_bytes": bs} | _record(pio) for bs, pio in self.record.pio.items()]
        return frame_of(rows, ("bs_bytes", *_columns(Pio)))

    @cached_property
    def mqssd(self) -> "pd.DataFrame":
        """A row for each k: set-up costs sigma of a write and tau of a read, page costs beta and alpha (MQSSD)."""
        rows = [{"k": k} | _record(costs) for k, costs in self.record.mqssd.items()]
        return frame_of(rows, ("k", *_columns(Mqssd)))

    @cached_property
    def model_errors(self) -> "pd.DataFrame":
        """A row for each model: the median of its error of throughput over all k and r, as a share, of writes, of reads
        and of both. Raises SpillwayError where too little was measured to calibrate a model."""
        from spillway.profile.compare import MODELS, STRONGER, medians

        found = medians(self._comparisons, (*MODELS, STRONGER))
        rows = [{"model": model} | {f"error_{op}": error for op, error in of.items()} for model, of in found.items()]
        return frame_of(rows, ("model", "error_write", "error_read", "error_all"))

    @property
    def tables(self) -> tuple[str, ...]:
        """The names of the tables, the one that is exported first."""
        return ("samples", "latency", "pio", "mqssd", "model_errors")

    def charts(self, *, with_models: bool = True) -> "Charts":
        """The report's charts; ``with_models`` false leaves out those of MQSSD and its rivals, to fit which takes
        seconds."""
        from spillway.frames.charts import Charts, profile_charts

        comparisons: Sequence[Comparison] = []
        if with_models:
            with suppress(SpillwayError):  # too few points to calibrate the models
                comparisons = self._comparisons
        return Charts(lambda: profile_charts(self.record, comparisons))

    @cached_property
    def _comparisons(self) -> "Sequence[Comparison]":
        """Of the models with what was measured, which takes seconds."""
        from spillway.profile.compare import compare

        return compare(self.record)

    def __repr__(self) -> str:
        """In words."""
        return f"ProfileFrames({str(self.path)!r}: {self.name}, {len(self.record.samples)} points)"

    def _repr_html_(self) -> str:
        """The drive's guidelines and parameters, as a notebook shows them."""
        from html import escape

        from spillway.profile import words

        said = "".join(
            f"<li><b>{escape(each.title)}.</b> {escape(each.sentence)}</li>" for each in words.guidelines(self.record)
        )
        return f"<p>{escape(repr(self))}</p><ul>{said}</ul>{self.pio.to_html(index=False, na_rep='–')}"


def _estimate(name: str, estimate: Estimate) -> Row:
    """An estimate's three columns; the unit stays at the end."""
    low, high = _beside(name)
    return {name: estimate.value, low: estimate.low, high: estimate.high}


def _beside(name: str) -> tuple[str, str]:
    base, unit = (name.removesuffix("_us"), "_us") if name.endswith("_us") else (name, "")
    return f"{base}_low{unit}", f"{base}_high{unit}"


def _record(record: Pio | Mqssd) -> Row:
    row: Row = {}
    for name, value in vars(record).items():
        column = _RENAMED.get(name, name)
        row |= _estimate(column, value) if isinstance(value, Estimate) else {column: value}
    return row


def _columns(kind: type[Pio] | type[Mqssd]) -> list[str]:
    """All columns of a table, known or not."""
    found: list[str] = []
    for field in fields(kind):
        column = _RENAMED.get(field.name, field.name)
        found += [column, *_beside(column)] if field.type in (Estimate, "Estimate") else [column]
    return found


# A k that was found where latency bends is no latency.
_RENAMED = {"k_r_latency": "k_r_by_latency", "k_w_latency": "k_w_by_latency"}


def read_profile(path: str | Path) -> ProfileFrames:
    """A profile directory as `spillway profile` leaves it. Raises SpillwayError where ``path`` is none, is damaged or
    is of another version."""
    return ProfileFrames(Path(path), read_record(Path(path)))
