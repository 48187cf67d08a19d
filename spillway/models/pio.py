"""The parametric I/O model, PIO: asymmetry and concurrency (P1-P10).

    PIO(M, k_r, k_w, alpha): a read costs 1, a write costs alpha; k_r reads, or k_w writes, at once saturate the drive
    alpha = largest read bandwidth / largest write bandwidth,  in general not k_r / k_w                     (P2)
    a batched read costs 1 / k_r, a batched write alpha / k_w                                               (P3)

An application with a share f_r of reads and f_w = 1 - f_r of writes is in one of four classes; its speed-up over doing
one access at a time:

    nothing batched                     1, at a cost of f_r + f_w alpha an access                           (P4, Fig 6)
    writes batched      S   = (f_r + f_w alpha) / (f_r + f_w alpha / k_w),           1 <= S   <= k_w        (P5, Fig 7)
    reads batched       S'  = (f_r + f_w alpha) / (f_r / k_r + f_w alpha),           1 <= S'  <= k_r        (P6, Fig 8)
    both batched        S'' = (f_r + f_w alpha) / (f_r / k_r + f_w alpha / k_w),     <= max(k_r, k_w)       (P7, Fig 9)

S rises with alpha and S' falls; of reads or writes alone neither depends on it (P8). alpha = k_r = k_w = 1 is the
external-memory model (P1). T10: section 3.1 writes C_W = alpha / k and means k_w.

Appendix A (P9): m I/Os that fall on n channels uniformly leave E_m = n ((n-1)/n)^m of them empty on average,
E_m / n -> e^(-m/n). T11: the appendix prints E_m = e^(-m/n), which is E_m / n.

Source: PIO (DAMON'21) sections 2 and 3.1, appendix A. Holds up to k_r and k_w; beyond them a batch gains nothing, and
S, S', S'' must be given the drive's k, not the batch's. Ignores order of access, and that reads and writes at the same
time share one drive: S'' adds their costs as if they took turns.
"""

import numpy as np
from numpy.typing import ArrayLike

from spillway.models.arrays import Array, quantity, share


def asymmetry(largest_read: ArrayLike, largest_write: ArrayLike) -> Array:
    """alpha: largest read over largest write throughput, both in the same unit. Broadcasts (P2).

    Of a drive whose software caps both at the same rate this is 1 whatever lies under it; see ``asymmetry_of_slopes``.
    """
    return quantity("largest_read", largest_read) / quantity("largest_write", largest_write)


def asymmetry_of_slopes(read_slope: ArrayLike, write_slope: ArrayLike) -> Array:
    """alpha of a capped drive: throughput gained per I/O in flight before the cap, reads over writes (P17, T14)."""
    return quantity("read_slope", read_slope) / quantity("write_slope", write_slope)


def page_cost_us(k: ArrayLike, access_us: ArrayLike, concurrency: ArrayLike) -> Array:
    """Mean time per access with ``k`` in flight: access_us / min(k, concurrency). Broadcasts (P3).

    ``access_us`` is the time of one access alone: of a write, alpha times that of a read. ``concurrency``: k_r or k_w.
    """
    at_once = np.minimum(quantity("k", k), quantity("concurrency", concurrency, least=1, above=False))
    return quantity("access_us", access_us) / at_once


def cost(read_share: ArrayLike, alpha: ArrayLike, k_r: ArrayLike = 1, k_w: ArrayLike = 1) -> Array:
    """Mean cost of an access, in reads: f_r / k_r + f_w alpha / k_w; by default nothing is batched. Broadcasts."""
    reads = share("read_share", read_share)
    of_reads = reads / quantity("k_r", k_r, least=1, above=False)
    return of_reads + (1 - reads) * quantity("alpha", alpha) / quantity("k_w", k_w, least=1, above=False)


def speedup_of_batched_writes(read_share: ArrayLike, alpha: ArrayLike, k_w: ArrayLike) -> Array:
    """S: reads one at a time, writes k_w at a time. Broadcasts (P5, Figs 1B and 7)."""
    return cost(read_share, alpha) / cost(read_share, alpha, 1, k_w)


def speedup_of_batched_reads(read_share: ArrayLike, alpha: ArrayLike, k_r: ArrayLike) -> Array:
    """S': reads k_r at a time, writes one at a time. Broadcasts (P6, Fig 8)."""
    return cost(read_share, alpha) / cost(read_share, alpha, k_r, 1)


def speedup_of_both_batched(read_share: ArrayLike, alpha: ArrayLike, k_r: ArrayLike, k_w: ArrayLike) -> Array:
    """S'': reads k_r, writes k_w at a time. Broadcasts (P7, Fig 9)."""
    return cost(read_share, alpha) / cost(read_share, alpha, k_r, k_w)


def empty_channels(channels: ArrayLike, ios: ArrayLike) -> Array:
    """E_m: channels without work, of ``channels``, when ``ios`` fall on them uniformly; exact. Broadcasts (P9)."""
    n = quantity("channels", channels, least=1, above=False)
    return n * ((n - 1) / n) ** quantity("ios", ios, above=False)


def empty_share(channels: ArrayLike, ios: ArrayLike) -> Array:
    """E_m / n: the share of channels without work; exact. Broadcasts (P9)."""
    return empty_channels(channels, ios) / quantity("channels", channels, least=1, above=False)


def empty_share_of_many(ios_per_channel: ArrayLike) -> Array:
    """e^(-m/n): what ``empty_share`` tends to as channels become many. Any shape (P9, T11)."""
    return np.exp(-quantity("ios_per_channel", ios_per_channel, above=False))
