"""Reads and writes at once: SNIA's seven mixes at several concurrencies and fill levels (M21, S2)."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from spillway.errors import SpillwayError
from spillway.models.arrays import Array
from spillway.models.mixed import (
    HOLD_GROWTH,
    WAIT_POWER,
    Collection,
    Curve,
    added_cost_us,
    between,
    filled,
    fit_collection,
    fit_hold_us,
    hold_at_us,
    mixed_cost_us,
)
from spillway.profile.document import Profile
from spillway.profile.points import PAGE_BYTES, Point, Sample, jobs_for
from spillway.profile.prober import Prober

READ_SHARES = (1.0, 0.95, 0.65, 0.5, 0.35, 0.05, 0.0)  # Source: S2
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

# Read share and k of the one mix that a drive is known by, at the full drive. With few in flight it is the wait that
# shows; with many a small drive is busy anyway, and any W would do.
CALIBRATION = (0.5, 4)


# The presets that the model's two common numbers are fitted on (scripts/fit_mixed.py); all others are held out.
TRAINING = ("femu-default", "intel-p4510", "mqsim-default", "quickstart")


@dataclass(frozen=True)
class Known:
    """The parameters of a drive in the mixed model, and its measured mixes; the arrays are equally long. Costs in us
    per operation, fills and shares from 0 to 1."""

    read_empty: Curve
    read: Curve  # of the full drive
    write: Curve  # of the emptiest
    collection: Collection
    emptiest: float
    full: float
    fill: Array
    k: Array
    read_share: Array
    cost_us: Array
    plain_us: Array  # predicted by plain MQSSD, with the costs of the full drive

    def curves(self, fill: float) -> tuple[Curve, Curve]:
        """Pure reads and pure writes at ``fill``."""
        way = (fill - self.emptiest) / (self.full - self.emptiest)
        return between(self.read_empty, self.read, way), filled(self.write, self.collection, fill)

    def cost_at_us(self, hold_us: float, fill: float, read_share: Array, k: Array) -> Array:
        """Predicted time per operation of mixes at ``fill``, us; ``hold_us`` is W of the full drive. Shape of
        ``read_share`` and ``k``."""
        read, write = self.curves(fill)
        hold = hold_at_us(hold_us, write, self.curves(self.full)[1], HOLD_GROWTH)
        return mixed_cost_us(read_share, k, read, write, hold, WAIT_POWER)

    @property
    def calibration(self) -> NDArray[np.intp]:
        """Index of the one mix that the model is calibrated with."""
        share, k = CALIBRATION
        return np.flatnonzero((self.read_share == share) & (self.k == k) & (self.fill == self.full))


@dataclass(frozen=True)
class Predictions:
    """Predicted over measured time per operation, of the mixes that the model was not given; equally long arrays."""

    hold_us: float
    fill: Array
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
    """The parameters of a profile's drive. Raises SpillwayError when the profile has no mixes."""
    samples = [s for s in profile.samples if s.procedure == "mixed"]
    if not samples:
        raise SpillwayError(f"{profile.name}: the profile has no mixes; profile the drive again with --mixed.")
    fills = sorted({s.fill for s in samples})
    emptiest, full = fills[0], fills[-1]
    read_empty, read = _pure(samples, emptiest, 1.0), _pure(samples, full, 1.0)
    write = _pure(samples, emptiest, 0.0)
    full_write = _pure(samples, full, 0.0)
    collection = fit_collection((emptiest, full), (write.saturated_us, full_write.saturated_us))
    mixed = [s for s in samples if 0 < s.read_share < 1]
    f, k = np.array([s.read_share for s in mixed]), np.array([float(s.k) for s in mixed])
    plain = added_cost_us(f, read.latency_us(k) / k, full_write.latency_us(k) / k)
    return Known(
        read_empty,
        read,
        write,
        collection,
        emptiest,
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
    """The mixed model's parameters of this drive, and the median errors of it and of plain MQSSD. Raises SpillwayError
    when the profile has no mixes."""
    known = known_of(profile)
    made = predictions(known)
    return {
        "hold_us": made.hold_us,
        "wait_power": WAIT_POWER,
        "hold_growth": HOLD_GROWTH,
        "program_us": known.collection.program_us,
        "valid_share": known.collection.valid_share,
        "median_error": float(np.median(made.errors)),
        "plain_median_error": float(np.median(made.plain_errors)),
    }


def predictions(
    known: Known,
    power: float = WAIT_POWER,
    growth: float = HOLD_GROWTH,
    *,
    interference: bool = True,
    collection: bool = True,
) -> Predictions:
    """Predictions for every mix except the one of the calibration. ``power`` and ``growth`` are phi and psi;
    ``interference`` and ``collection`` turn one term off, to show its effect."""
    at = known.calibration
    read, write = known.curves(known.full)
    hold = 0.0
    if interference:
        hold = fit_hold_us(known.read_share[at], known.k[at], known.cost_us[at], read, write, power)
    predicted = np.empty_like(known.cost_us)
    for fill in np.unique(known.fill):
        here = known.fill == fill
        read_here, write_here = known.curves(float(fill)) if collection else (read, write)
        predicted[here] = mixed_cost_us(
            known.read_share[here],
            known.k[here],
            read_here,
            write_here,
            hold_at_us(hold, write_here, write, growth),
            power,
        )
    rest = np.setdiff1d(np.arange(known.k.size), at)
    ratio, plain = (predicted / known.cost_us)[rest], (known.plain_us / known.cost_us)[rest]
    return Predictions(hold, known.fill[rest], ratio, plain)


def write_fill_errors(profile: Profile) -> Array:
    """|predicted / measured - 1| of saturated pure writes at the fills between the least and the full one, which the
    model was not given. Raises SpillwayError when the profile has no mixes."""
    known = known_of(profile)
    samples = [s for s in profile.samples if s.procedure == "mixed"]
    between_fills = sorted({s.fill for s in samples} - {known.emptiest, known.full})
    errors = []
    for fill in between_fills:
        measured = _pure(samples, fill, 0.0).saturated_us
        errors.append(abs(measured / known.curves(fill)[1].saturated_us - 1))
    return np.array(errors)
