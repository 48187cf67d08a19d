"""Saturation: how many I/Os at once a drive is worth, and how much dearer its writes are than its reads.

The PIO model wants three numbers of a drive: the concurrencies k_r and k_w that saturate it, and the asymmetry alpha
(P2, P3). Its authors picked k by hand, near saturation or where growth drops sharply, and where latency jumps (P14).
Here both are rules:

    k from bandwidth = the concurrency from which on doubling it buys less than 5 % more bandwidth
    k from latency   = the bend of log latency over log concurrency: flat before it, steep after it
    alpha            = f_r(k_r) / f_w(k_w), mean bandwidth from saturation on (P2)
    alpha by slopes  = growth of read over growth of write throughput below saturation, for capped drives (P17, T14)

The 5 % are appendix A's (P9): of n channels that I/Os hit at random 1 - e^(-m/n) are busy with m of them; doubling m
gains a factor of 1 + e^(-m/n), which is 1.05 at m = 3 n, where the authors stop with 95 % busy. A drive that serves n
at a time without collisions gains nothing beyond n, and its k is n / 1.05. What creeps up by less than that with each
doubling (a cache that is hit a little more often) is not taken for growth.

Range: closed loops, a fixed number of I/Os in flight. Ignored: what a drive does only after minutes (garbage collection
catching up, a cache running full); bring it to its steady state first.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from spillway.errors import SpillwayError
from spillway.fit.interval import Interval

Array = NDArray[np.float64]

DOUBLING_GAIN = 0.05  # Source: PIO, appendix A (P9), see above
SATURATED_SHARE = 1 / (1 + DOUBLING_GAIN)  # of its plateau: where the knee of a curve without collisions is
LEAST_GAIN = 0.01  # least gain at an end of the interval: noise alone could make a smaller one
# A plateau is one when throughput no longer grows with concurrency: by less than this power of it at the end. In the
# ideal curve the power falls from 1 to 0. Source: guess, a quarter of the way.
SATURATED_GROWTH = 0.25
NEAR_SATURATION = 0.5  # of the plateau; a doubling before the end of growth. Source: guess
BELOW_SATURATION = 0.9  # slopes are taken below this share of the plateau; the last step before it may be rounded off
MIN_POINTS = 4
MIN_SLOPE_POINTS = 3
Z95 = 1.96  # two-sided 95 % of a normal distribution
_BREAKS = 400  # candidate knees and bends on the logarithmic axis; 128-fold ranges are resolved to 1.2 %


@dataclass(frozen=True)
class Knee:
    """Where a curve saturates. ``saturated`` is false when it still grows at its end: k is then a lower bound."""

    k: Interval  # I/Os in flight
    plateau: Interval  # mean from k on, in the unit of the curve
    saturated: bool


def _curve(concurrency: ArrayLike, values: ArrayLike, what: str) -> tuple[Array, Array]:
    """Sorted by concurrency, repeated measurements averaged."""
    c = np.asarray(concurrency, dtype=float)
    y = np.asarray(values, dtype=float)
    if c.ndim != 1 or c.shape != y.shape:
        raise SpillwayError(f"{what}: needs one value for each concurrency, got {y.size} values for {c.size}")
    if not (np.isfinite(c).all() and np.isfinite(y).all() and (c >= 1).all() and (y > 0).all()):
        raise SpillwayError(f"{what}: concurrencies must be at least 1 and values above 0")
    levels = np.unique(c)
    if levels.size < MIN_POINTS:
        raise SpillwayError(
            f"{what}: {levels.size} concurrencies are too few for a knee; measure at least {MIN_POINTS}"
        )
    return levels, np.array([y[c == level].mean() for level in levels])


def rising_fit(values: ArrayLike) -> Array:
    """The non-decreasing sequence nearest to ``values`` in least squares: neighbours in the wrong order are pooled."""
    sums: list[float] = []
    counts: list[int] = []
    for value in np.asarray(values, dtype=float):
        sums.append(float(value))
        counts.append(1)
        while len(sums) > 1 and sums[-2] / counts[-2] > sums[-1] / counts[-1]:
            last_sum, last_count = sums.pop(), counts.pop()
            sums[-1] += last_sum
            counts[-1] += last_count
    return np.repeat(np.array(sums) / np.array(counts), counts)


def _saturating(c: Array, fit: Array, gain: float) -> float:
    """The least concurrency from which on no doubling gains as much as ``gain``, straight lines between points."""
    at = np.concatenate([np.geomspace(c[0], c[-1], _BREAKS), c, c / (1 + gain), c / 2])
    at = np.unique(at[(at >= c[0]) & (at <= c[-1])])
    grows = np.interp(np.minimum(2 * at, c[-1]), c, fit) > (1 + gain) * np.interp(at, c, fit) * (1 + 1e-9)
    if not grows.any():
        return float(c[0])
    last = int(np.flatnonzero(grows)[-1])
    return float(at[min(last + 1, at.size - 1)])


def from_bandwidth(concurrency: ArrayLike, bandwidth: ArrayLike) -> Knee:
    """The knee of IOPS or bandwidth over concurrency, in any unit (P14). Both arguments one-dimensional and equally
    long.

    Noise is the curve's deviation from its monotone fit near saturation: at two or three I/Os a drive may be slower
    than at one, which says nothing about the knee. The interval of k holds the knees for a gain more and less by that
    noise, and is never narrower than the grid's step around k. Raises SpillwayError for fewer than MIN_POINTS points.
    """
    c, y = _curve(concurrency, bandwidth, "bandwidth over concurrency")
    fit = rising_fit(y)
    near = fit >= NEAR_SATURATION * fit[-1]
    noise = float(np.sqrt(np.mean((y[near] / fit[near] - 1) ** 2)))
    k = _saturating(c, fit, DOUBLING_GAIN)
    upper = int(np.searchsorted(c, k))
    low = min(_saturating(c, fit, DOUBLING_GAIN + Z95 * noise), float(c[max(0, upper - 1)]), k)
    high = max(_saturating(c, fit, max(DOUBLING_GAIN - Z95 * noise, LEAST_GAIN)), float(c[upper]), k)
    saturated = _end_growth(c, fit) <= SATURATED_GROWTH
    beyond = y[c >= min(k / SATURATED_SHARE, c[-1])]
    plateau = float(beyond.mean())
    margin = float(Z95 * noise * plateau / np.sqrt(beyond.size))
    return Knee(
        k=Interval(k, low, high if saturated else float("inf")),
        plateau=Interval(plateau, plateau - margin, plateau + margin if saturated else float("inf")),
        saturated=bool(saturated),
    )


def _end_growth(c: Array, fit: Array) -> float:
    """The power of concurrency with which the curve grows over its last doubling (or what it has of one)."""
    start = int(np.searchsorted(c, c[-1] / 2, side="right")) - 1
    start = min(max(start, 0), c.size - 2)
    return float(np.log(fit[-1] / fit[start]) / np.log(c[-1] / c[start]))


def from_latency(concurrency: ArrayLike, latency: ArrayLike) -> Interval:
    """The concurrency at which latency turns upwards, in any unit of time (P14, Fig 4C). Both arguments one-dimensional
    and equally long.

    Two straight lines that meet, in logarithms of both, fitted by least squares; the interval holds every bend whose
    squared error is within the 95 % F-ratio of the best one's. Raises SpillwayError for fewer than MIN_POINTS points.
    """
    c, y = _curve(concurrency, latency, "latency over concurrency")
    x, z = np.log(c), np.log(y)
    breaks = np.linspace(x[0], x[-2], _BREAKS)
    errors = np.array([_hinge_error(x, z, b) for b in breaks])
    # With few points or no noise the ratio means little; rounding keeps it from dividing by zero.
    freedom = max(x.size - 4, 1)
    floor = max(float(errors.min()), 1e-6 * float(np.var(z)) * x.size)
    likely = breaks[errors <= floor * (1 + Z95**2 / freedom) + 1e-15]
    best = float(np.exp(breaks[int(np.argmin(errors))]))
    return Interval(best, min(float(np.exp(likely.min())), best), max(float(np.exp(likely.max())), best))


def _hinge_error(x: Array, z: Array, bend: float) -> float:
    columns = np.column_stack([np.ones_like(x), np.minimum(x - bend, 0), np.maximum(x - bend, 0)])
    solution, *_ = np.linalg.lstsq(columns, z, rcond=None)
    return float(np.sum((columns @ solution - z) ** 2))


def alpha(read: Knee, write: Knee) -> Interval:
    """Asymmetry f_r(k_r) / f_w(k_w) (P2): how much more the drive reads than it writes when it is saturated."""
    value = read.plateau.value / write.plateau.value
    margin = value * np.hypot(_relative(read.plateau), _relative(write.plateau))
    return Interval(value, value - margin, value + margin)


def _relative(interval: Interval) -> float:
    return (interval.value - interval.low) / interval.value


def slope(concurrency: ArrayLike, throughput: ArrayLike) -> Interval:
    """Throughput gained by each further I/O below saturation, by least squares over the points there; both arguments
    one-dimensional and equally long. Raises SpillwayError for fewer than MIN_SLOPE_POINTS such points."""
    c, y = _curve(concurrency, throughput, "throughput over concurrency")
    below = rising_fit(y) < BELOW_SATURATION * rising_fit(y)[-1]
    if int(below.sum()) < MIN_SLOPE_POINTS:
        raise SpillwayError(
            f"throughput over concurrency: {int(below.sum())} points below saturation are too few for a slope; "
            f"measure at least {MIN_SLOPE_POINTS} there"
        )
    x, z = c[below], y[below]
    spread = float(np.sum((x - x.mean()) ** 2))
    value = float(np.sum((x - x.mean()) * (z - z.mean())) / spread)
    residual = z - z.mean() - value * (x - x.mean())
    error = float(np.sqrt(np.sum(residual**2) / max(x.size - 2, 1) / spread))
    return Interval(value, value - Z95 * error, value + Z95 * error)


def alpha_from_slopes(
    read_concurrency: ArrayLike, read_iops: ArrayLike, write_concurrency: ArrayLike, write_iops: ArrayLike
) -> Interval:
    """Asymmetry of a drive whose software caps reads and writes at one rate, where P2 gives 1 (P17, T14). Concurrencies
    in I/Os, throughputs in I/Os a second. Raises SpillwayError as ``slope`` does, and where writes do not scale."""
    read, write = slope(read_concurrency, read_iops), slope(write_concurrency, write_iops)
    if read.value <= 0 or write.value <= 0:
        raise SpillwayError("alpha by slopes: throughput does not grow with concurrency below saturation")
    value = read.value / write.value
    margin = value * float(np.hypot(_relative(read), _relative(write)))
    return Interval(value, value - margin, value + margin)


def looks_capped(read: Knee, write: Knee, tolerance: float = 0.02) -> bool:
    """Whether reads and writes end on one plateau although their knees lie apart: a cap, not the drive (Fig 4E)."""
    same = abs(read.plateau.value / write.plateau.value - 1) <= tolerance
    knees = max(read.k.value, write.k.value) / min(read.k.value, write.k.value)
    return same and read.saturated and write.saturated and knees > 1 + 1 / 4
