"""Reads and writes at once: SNIA's seven mixes at several concurrencies and fill levels (M21; LEDGER part 4b)."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from spillway.errors import SpillwayError
from spillway.models.arrays import Array
from spillway.models.mixed import (
    WAIT_POWER,
    Collection,
    Curve,
    added_cost_us,
    filled,
    fit_collection,
    fit_hold_us,
    mixed_cost_us,
)
from spillway.profile.document import Profile
from spillway.profile.points import PAGE_BYTES, Point, Sample, jobs_for
from spillway.profile.prober import Prober

READ_SHARES = (1.0, 0.95, 0.65, 0.5, 0.35, 0.05, 0.0)  # Source: SNIA SSS PTS, as LEDGER part 4b has it
CONCURRENCIES = (1, 4, 16, 64)
FILLS = (0.5, 0.75, 1.0)  # shares of the fill that the rest of the profile is measured at


def points() -> list[Point]:
    """Every mix at every concurrency: 4 KiB, random."""
    return [
        Point("mixed", "random", share, PAGE_BYTES, *jobs_for(k), None) for k in CONCURRENCIES for share in READ_SHARES
    ]


def measure(prober: Prober, fill: float) -> None:
    """Measures every mix at every fill; the drive starts each fill anew, in its steady state."""
    for share in FILLS:
        prober.refill(share * fill)
        for point in points():
            prober.measure(point)


# ---------------------------------------------------------------------------------------------------------------------
# What the mixed model makes of them

CALIBRATION = (0.5, 16)  # read share and k of the one mix that a drive is known by, at the full drive


@dataclass(frozen=True)
class Known:
    """A drive as the mixed model knows it, and its measured mixes; arrays are as long as ``k``."""

    read: Curve  # of the full drive
    write: Curve  # of the emptiest
    collection: Collection
    full: float
    fill: Array
    k: Array
    read_share: Array
    cost_us: Array
    plain_us: Array  # what plain MQSSD says, with the costs of the full drive

    @property
    def calibration(self) -> NDArray[np.intp]:
        """Where the one mix is that the model is given."""
        share, k = CALIBRATION
        return np.flatnonzero((self.read_share == share) & (self.k == k) & (self.fill == self.full))


@dataclass(frozen=True)
class Predictions:
    """Predicted over measured time per operation, of the mixes that the model was not given."""

    hold_us: float
    ratio: Array
    plain_ratio: Array

    @property
    def errors(self) -> Array:
        """|predicted / measured - 1| of throughput."""
        return np.abs(1 / self.ratio - 1)

    @property
    def plain_errors(self) -> Array:
        """The same, of plain MQSSD."""
        return np.abs(1 / self.plain_ratio - 1)


def known_of(profile: Profile) -> Known:
    """Raises SpillwayError when the profile has no mixes."""
    samples = [s for s in profile.samples if s.procedure == "mixed"]
    if not samples:
        raise SpillwayError(f"{profile.name}: the profile has no mixes; profile the drive again with --mixed.")
    fills = sorted({s.fill for s in samples})
    emptiest, full = fills[0], fills[-1]
    read, write = _pure(samples, full, 1.0), _pure(samples, emptiest, 0.0)
    full_write = _pure(samples, full, 0.0)
    collection = fit_collection((emptiest, full), (write.saturated_us, full_write.saturated_us))
    mixed = [s for s in samples if 0 < s.read_share < 1]
    f, k = np.array([s.read_share for s in mixed]), np.array([float(s.k) for s in mixed])
    plain = added_cost_us(f, read.latency_us(k) / k, full_write.latency_us(k) / k)
    return Known(
        read,
        write,
        collection,
        full,
        np.array([s.fill for s in mixed]),
        k,
        f,
        np.array([1e6 / s.iops for s in mixed]),
        plain,
    )


def _pure(samples: Sequence[Sample], fill: float, read_share: float) -> Curve:
    chosen = sorted((s.k, 1e6 / s.iops) for s in samples if s.fill == fill and s.read_share == read_share)
    return Curve(tuple(float(k) for k, _ in chosen), tuple(cost for _, cost in chosen))


def parameters(profile: Profile) -> dict[str, float]:
    """The mixed model's parameters of this drive, and how far it and plain MQSSD are off in the median."""
    known = known_of(profile)
    made = predictions(known)
    return {
        "hold_us": made.hold_us,
        "wait_power": WAIT_POWER,
        "program_us": known.collection.program_us,
        "valid_share": known.collection.valid_share,
        "median_error": float(np.median(made.errors)),
        "plain_median_error": float(np.median(made.plain_errors)),
    }


def predictions(known: Known, power: float = WAIT_POWER) -> Predictions:
    """Every mix but the one the drive is known by."""
    at = known.calibration
    full = filled(known.write, known.collection, known.full)
    hold = fit_hold_us(known.read_share[at], known.k[at], known.cost_us[at], known.read, full, power)
    predicted = np.empty_like(known.cost_us)
    for fill in np.unique(known.fill):
        here = known.fill == fill
        write = filled(known.write, known.collection, float(fill))
        predicted[here] = mixed_cost_us(known.read_share[here], known.k[here], known.read, write, hold, power)
    rest = np.setdiff1d(np.arange(known.k.size), at)
    return Predictions(hold, (predicted / known.cost_us)[rest], (known.plain_us / known.cost_us)[rest])
