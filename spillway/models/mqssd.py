"""The multi-queue SSD model: set-up and page cost, of reads and of writes, as functions of concurrency (M8-M11).

    page_cost  = beta(k) + p sigma(k)      writes                              (MQSSD eq 7, corrected)
    page_cost  = alpha(k) + p tau(k)       reads                               (MQSSD eq 8, corrected)
    throughput = B / page_cost,   p = r / 100
    wall time of each of k threads that moves N bytes = k (N / B) page_cost

    sigma, tau   set-up of one random access, us: translation, scheduling      s and t of the paper
    beta, alpha  transfer of one page, us; all that a sequential page costs
    r            share of pages reached at random, percent
    k            threads in flight; all four costs are means over everything in flight

The paper's s and t are us per *percent* of a 1 GiB stream's pages, not per access: sigma = s / 2621.44 (T28).
Eqs 7 and 8 as printed are a sum of two throughputs, with which the paper's own figures cannot be had.

Source: MQSSD section 4.2, eqs 5-8, Table 2. Holds for one kind of access at a time (reads or writes), pages of one
size, a drive in its steady state, and k within what was measured: outside it a fitted function is only a shape.
Ignores interference of reads and writes and the amount of valid data (M21).
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from spillway.models.arrays import PAGE_BYTES, Array, percent, quantity

STREAM_BYTES = 2**30  # moved by each thread of the paper's benchmark. Source: MQSSD section 3.3.1 (T28)


@dataclass(frozen=True)
class Rational:
    """(c0 + c1 k + c2 k^2 + ...) / (d0 + d1 k + d2 k^2 + ...), MQSSD eqs 5 (degree 2) and 6 (degree 3) (M10).

    With both lists non-negative it has no pole for k > 0 and tends to a finite limit.
    """

    numerator: tuple[float, ...]
    denominator: tuple[float, ...]

    def __call__(self, k: ArrayLike) -> Array:
        """The function at ``k``, any shape."""
        at = np.asarray(k, dtype=np.float64)
        return _polynomial(self.numerator, at) / _polynomial(self.denominator, at)

    @property
    def limit(self) -> float:
        """What it tends to as k grows."""
        return self.numerator[-1] / self.denominator[-1]

    def poles(self, low: float, high: float) -> list[float]:
        """Real k in [low, high] where the denominator is 0, ascending."""
        roots = np.polynomial.polynomial.polyroots(np.asarray(self.denominator))
        real = roots[np.abs(roots.imag) < 1e-9 * np.maximum(1, np.abs(roots.real))].real
        return sorted(float(root) for root in real if low <= root <= high)


def _polynomial(coefficients: Sequence[float], at: Array) -> Array:
    return np.asarray(np.polynomial.polynomial.polyval(at, np.asarray(coefficients)), dtype=np.float64)


@dataclass(frozen=True)
class Saturating:
    """a + b / (1 + (k / k0)^p): a curve of the same shape with four parameters, for few measured k (T30)."""

    floor: float  # a, the limit for large k, us
    gain: float  # b, us
    half_k: float  # k0, where half of b is left
    steepness: float  # p, without unit

    def __call__(self, k: ArrayLike) -> Array:
        """The function at ``k`` > 0, any shape."""
        at = quantity("k", k)
        return self.floor + self.gain / (1 + (at / self.half_k) ** self.steepness)

    @property
    def limit(self) -> float:
        """What it tends to as k grows."""
        return self.floor


def page_cost_us(r_percent: ArrayLike, setup_us: ArrayLike, page_us: ArrayLike) -> Array:
    """Mean time per page; ``setup_us`` and ``page_us`` are sigma(k), beta(k) or tau(k), alpha(k). Broadcasts."""
    random_share = percent("r_percent", r_percent)
    return quantity("page_us", page_us) + random_share * quantity("setup_us", setup_us, above=False)


def thread_seconds(
    k: ArrayLike, bytes_per_thread: ArrayLike, cost_us: ArrayLike, page_bytes: ArrayLike = PAGE_BYTES
) -> Array:
    """Wall time of the benchmark: k threads that each move ``bytes_per_thread`` at ``cost_us`` per page. Broadcasts."""
    pages = quantity("bytes_per_thread", bytes_per_thread) / quantity("page_bytes", page_bytes)
    return quantity("k", k) * pages * quantity("cost_us", cost_us) / 1e6


def per_access_us(
    per_percent_us: ArrayLike, stream_bytes: ArrayLike = STREAM_BYTES, page_bytes: ArrayLike = PAGE_BYTES
) -> Array:
    """The paper's s or t, us per percent of a stream's pages, as us per random access: s / 2621.44. Broadcasts."""
    pages = quantity("stream_bytes", stream_bytes) / quantity("page_bytes", page_bytes)
    return quantity("per_percent_us", per_percent_us) / (pages / 100)


def mapping_transfers(records: ArrayLike, page_records: ArrayLike, *, at_random: bool, write: bool) -> Array:
    """Pages of data and of the drive's map that an access to ``records`` moves, up to a constant (M8).

    In order: N/B of data and N/B^2 of the map, since a page of the map holds some B entries. At random: N of data and
    N of the map. Writes move each page of the map twice, out of flash and back. Broadcasts.
    """
    n, b = quantity("records", records), quantity("page_records", page_records)
    data, mapping = (n + 0 * b, n + 0 * b) if at_random else (n / b, n / b**2)
    return data + (2 if write else 1) * mapping
