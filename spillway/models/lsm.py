"""What a levelled LSM tree costs in the MQSSD model (M13-M18).

    levels below L0  log_F(N / CT)        sorted runs  C + log_F(N / CT)                                       (M13)
    rewriting X files of T bytes          X (tau + sigma + (T/B)(alpha + beta))                                (M14)
    inserting one pair                    e (C + F log_F(N/CT)) / T  times one file's rewriting            (M15, eq 9)
    reading one pair                      (C + log_F(N/CT)) (tau + (B'/B) alpha)                           (M16, eq 10)
    scanning X bytes                      that, and X (tau / T + alpha / B)                                    (M17)
    single level: min(T/e, N/T) files are touched by each file that comes; one block is read                   (M18, T4)

    N  bytes of pairs    e  bytes of a pair    T  bytes of a file    C  files in L0    F  fanout    B' bytes of a block

sigma, beta, tau, alpha are us per random access and per page at the concurrency at hand, means over everything in
flight: the paper's s and t must be converted first (`mqssd.per_access_us`), or setting up a file seems to cost four
times its transfer. T2: the argument D of eq 9 is C. T3: eq 9 as printed is per byte; here it is per pair.
T4: eq 11 has T where files touched are at most N/T.

All up to a constant factor: for comparing, not for predicting (M20). Assumes that all of k is used all the time.
Source: MQSSD section 5.2, eqs 9-12.
"""

import math
from dataclasses import dataclass
from numbers import Real

import numpy as np
from numpy.typing import ArrayLike

from spillway.errors import SpillwayError
from spillway.models.arrays import PAGE_BYTES, Array, numbers, quantity


@dataclass(frozen=True)
class Layout:
    """A tree's shape; the defaults are RocksDB's (MQSSD section 5.3.1)."""

    data_bytes: float
    pair_bytes: float
    file_bytes: float = 64 * 2**20  # T. Source: MQSSD section 5.2.2
    l0_files: float = 4  # C. Source: RocksDB's level0_file_num_compaction_trigger
    block_bytes: float = 4096  # B'. Source: MQSSD section 5.1.2

    def __post_init__(self) -> None:
        """Raises SpillwayError for a size that is not finite and above 0; it is one number, no array."""
        for name, value in vars(self).items():
            if not isinstance(value, Real) or isinstance(value, bool) or not 0 < float(value) < math.inf:
                raise SpillwayError(f"{name} must be one number greater than 0 and finite; it is {value!r}.")


@dataclass(frozen=True)
class Costs:
    """us per random access and per page at one concurrency, or arrays over several."""

    sigma_us: ArrayLike
    beta_us: ArrayLike
    tau_us: ArrayLike
    alpha_us: ArrayLike

    def __post_init__(self) -> None:
        """Raises SpillwayError for what are no numbers. NaN is not known, and what follows from it neither."""
        for name, value in vars(self).items():
            numbers(name, value)


def levels(layout: Layout, fanout: ArrayLike) -> Array:
    """log_F(N / CT), at least 0. Shape of ``fanout`` (M13)."""
    f = quantity("fanout", fanout, least=1)
    ratio = layout.data_bytes / (layout.l0_files * layout.file_bytes)
    depth: Array = np.log(ratio) / np.log(f)
    return np.maximum(0.0, depth)


def file_rewrite_us(layout: Layout, costs: Costs) -> Array:
    """Reading and writing one file. Shape of the costs (M14)."""
    setup = np.asarray(costs.tau_us, dtype=np.float64) + np.asarray(costs.sigma_us, dtype=np.float64)
    page = np.asarray(costs.alpha_us, dtype=np.float64) + np.asarray(costs.beta_us, dtype=np.float64)
    return setup + layout.file_bytes / PAGE_BYTES * page


def insert_us(layout: Layout, fanout: ArrayLike, costs: Costs) -> Array:
    """Compaction that one pair causes. Broadcasts fanout with the costs (M15; T2, T3)."""
    f = quantity("fanout", fanout, least=1)
    files_per_file = layout.l0_files + f * levels(layout, f)
    return files_per_file * file_rewrite_us(layout, costs) * layout.pair_bytes / layout.file_bytes


def query_us(layout: Layout, fanout: ArrayLike, costs: Costs) -> Array:
    """One point query: a block of each sorted run. Broadcasts fanout with the costs (M16)."""
    return (layout.l0_files + levels(layout, fanout)) * block_read_us(layout, costs)


def block_read_us(layout: Layout, costs: Costs) -> Array:
    """One block at random: all that a query costs in a single level. Shape of the costs (eq 12)."""
    transfer = layout.block_bytes / PAGE_BYTES * np.asarray(costs.alpha_us, dtype=np.float64)
    return np.asarray(costs.tau_us, dtype=np.float64) + transfer


def scan_us(layout: Layout, fanout: ArrayLike, costs: Costs, scan_bytes: ArrayLike) -> Array:
    """A scan of ``scan_bytes``: a query, then pages in a row. Broadcasts (M17)."""
    x = quantity("scan_bytes", scan_bytes)
    tau, alpha = np.asarray(costs.tau_us, dtype=np.float64), np.asarray(costs.alpha_us, dtype=np.float64)
    return query_us(layout, fanout, costs) + x * (tau / layout.file_bytes + alpha / PAGE_BYTES)


def single_level_insert_us(layout: Layout, costs: Costs) -> Array:
    """Compaction that one pair causes when all is in one level. Shape of the costs (M18; T3, T4)."""
    files = min(layout.file_bytes / layout.pair_bytes, layout.data_bytes / layout.file_bytes)
    return files * file_rewrite_us(layout, costs) * layout.pair_bytes / layout.file_bytes
