"""The cost of serving a data set at a throughput, and the system with the least cost (pitfalls 5 to 7).

    drives       n = max(ceil(D / d), ceil(X / x))
    worn out     w = S * seconds of a year * X b / E            drives' endurance that the service life takes
    bought       m = max(n, ceil(w))
    cost         C = p m + 1e-3 W n S * hours of a year * k
    of a system  the measured point (d, x) of the least C; of those the fewest bought, then the first

    D  total data set, B              d  data set of one drive, B            p  price of a drive, money
    X  target throughput, ops/s       x  throughput that it sustains, ops/s  W  power of a drive, W
    E  endurance of a drive, B        b  bytes of E that one operation takes k  price of a kWh, money
    S  service life, years            n  drives that run at once             m  drives bought in the service life

E and b are both of flash (rated P/E cycles * physical bytes; NAND bytes an operation, so wa_total is in it) or both of
the host (TBW; host bytes an operation). Source of n and of the map of winners: B17;
replacements and energy are this project's.

m is the least that can be bought: drives are replaced one by one as they wear out, and none is left over but the last.
A fleet whose drives wear out all together buys whole generations of n, at most n - 1 drives more.

Range: a point is a drive in steady state that holds d and sustains x, and holds also for a smaller share of both. D, X,
d, x above 0. What this ignores: servers, racks and their power, replicas, spare drives and failures, discounts,
interest, the price of a drive in some years, power that depends on the load, what a drive is worth at the end.
Data and load are taken to divide evenly over the drives.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from spillway.errors import SpillwayError
from spillway.figures.lifetime import DAY_S, YEAR_S
from spillway.models.arrays import Array, quantity

HOURS_OF_A_YEAR = YEAR_S / (DAY_S / 24)
ROUNDING = 1e-12  # relative: a quotient this close above a whole number is that number, whatever floats made of it
TIE = 1e-9  # relative: costs this close are equal


def _ceil(quotient: Array) -> Array:
    return np.ceil(quotient * (1 - ROUNDING))


def drives_needed(
    data_set_bytes: ArrayLike, throughput_ops_s: ArrayLike, held_bytes: ArrayLike, sustained_ops_s: ArrayLike
) -> Array:
    """max(ceil(D / d), ceil(X / x)), whole drives. Broadcasts. Raises SpillwayError unless all are above 0."""
    by_size = quantity("total data set", data_set_bytes) / quantity("data set of a drive", held_bytes)
    by_rate = quantity("target throughput", throughput_ops_s) / quantity("throughput of a drive", sustained_ops_s)
    return np.maximum(_ceil(by_size), _ceil(by_rate))


def drives_worn_out(
    throughput_ops_s: ArrayLike, spent_bytes_per_op: ArrayLike, endurance_bytes: ArrayLike, service_years: float
) -> Array:
    """w: how many drives' endurance the service life takes; 0 where nothing is spent or E is infinite. Broadcasts.
    Raises SpillwayError for a service life or quantities out of range."""
    spent = quantity("bytes an operation", spent_bytes_per_op, above=False)
    written = service_years * YEAR_S * quantity("target throughput", throughput_ops_s) * spent
    return written / np.asarray(endurance_bytes, dtype=np.float64)


def drives_bought(drives: ArrayLike, worn_out: ArrayLike) -> Array:
    """max(n, ceil(w)), whole drives."""
    return np.maximum(np.asarray(drives, dtype=np.float64), _ceil(np.asarray(worn_out, dtype=np.float64)))


def energy_cost(drives: ArrayLike, watts: ArrayLike, service_years: float, kwh_price: float) -> Array:
    """Energy of ``drives`` that run all the time for the service life, in the currency of ``kwh_price``. Broadcasts."""
    kwh = 1e-3 * np.asarray(watts, dtype=np.float64) * service_years * HOURS_OF_A_YEAR
    return np.asarray(drives, dtype=np.float64) * kwh * kwh_price


@dataclass(frozen=True)
class Terms:
    """What holds for all drives: the service life, and what power costs."""

    service_years: float
    kwh_price: float = 0.0

    def __post_init__(self) -> None:
        """Raises SpillwayError for a service life that is none and for a price below 0."""
        quantity("service life", self.service_years)
        quantity("price of a kWh", self.kwh_price, above=False)


@dataclass(frozen=True)
class Points:
    """The measured points of one system, arrays of one length."""

    held_bytes: Array  # d
    sustained_ops_s: Array  # x
    spent_bytes_per_op: Array  # b; 0 where it is not known
    endurance_bytes: Array  # E; infinite where it is not known: no drive is then replaced
    drive_price: Array  # in the currency of kwh_price
    watts: Array  # of a drive

    def __post_init__(self) -> None:
        """Raises SpillwayError where there is no point, or a quantity is out of range."""
        if self.held_bytes.size == 0:
            raise SpillwayError("a system without a measured point has no cost; give it one.")
        quantity("price of a drive", self.drive_price, above=False)
        quantity("power of a drive", self.watts, above=False)


@dataclass(frozen=True)
class Cells:
    """A system's cheapest point in each cell, arrays of (data sets, throughputs)."""

    point: NDArray[np.intp]  # index into Points
    drives: Array  # n
    bought: Array  # m
    purchase: Array  # of the drives that run first
    replacement: Array
    energy: Array

    @property
    def total(self) -> Array:
        """Purchase, replacement and energy."""
        return self.purchase + self.replacement + self.energy


def cheapest(points: Points, data_set_bytes: ArrayLike, throughput_ops_s: ArrayLike, terms: Terms) -> Cells:
    """The least cost of a system over a grid: ``data_set_bytes`` by ``throughput_ops_s``, both one-dimensional. Raises
    SpillwayError unless all are above 0."""
    data = np.atleast_1d(np.asarray(data_set_bytes, dtype=np.float64))[:, None, None]
    rate = np.atleast_1d(np.asarray(throughput_ops_s, dtype=np.float64))[None, :, None]
    drives = drives_needed(data, rate, points.held_bytes, points.sustained_ops_s)
    worn_out = drives_worn_out(rate, points.spent_bytes_per_op, points.endurance_bytes, terms.service_years)
    bought = drives_bought(drives, worn_out)
    energy = energy_cost(drives, points.watts, terms.service_years, terms.kwh_price)
    total = points.drive_price * bought + energy
    near = total <= total.min(axis=-1, keepdims=True) * (1 + TIE)
    best = np.argmin(np.where(near, bought, np.inf), axis=-1)

    def of_best(values: Array) -> Array:
        whole = np.broadcast_to(values, total.shape)
        return np.take_along_axis(whole, best[..., None], axis=-1)[..., 0]

    price = points.drive_price
    return Cells(
        best,
        of_best(drives),
        of_best(bought),
        of_best(price * drives),
        of_best(price * (bought - drives)),
        of_best(energy),
    )


def winners(totals: ArrayLike) -> NDArray[np.bool_]:
    """Which systems cost least in each cell: costs of shape (systems, data sets, throughputs), result of the same
    shape.

    More than one is true where they cost the same.
    """
    costs = np.asarray(totals, dtype=np.float64)
    return np.asarray(costs <= costs.min(axis=0) * (1 + TIE))


def round_above(value: float) -> float:
    """The least of 1, 2 and 5 times a power of ten that is not below ``value``: the end of an axis."""
    power = 10.0 ** np.floor(np.log10(value))
    return float(next(step * power for step in (1, 2, 5, 10) if step * power >= value * (1 - ROUNDING)))
