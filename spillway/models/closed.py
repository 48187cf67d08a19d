"""k threads that wait for a drive: what each pays, and what all get (M13, M20).

    R(k) = L + D Q(k - 1)                   latency of an operation beside k - 1 others; Q(0) = 0
    Q(k) = k D (1 + Q(k - 1)) / R(k)        mean number of operations at the part of the drive that saturates first
    cost = R(k) / k               mean time per operation over all in flight;  D for k -> infinity

    L  time of an operation alone, us      D  of it, time in the part that saturates first: 1 / the drive's highest rate

Mean value analysis of one delay and one queue (Reiser and Lavenberg 1980): exact for threads that do one operation
after another, if the queue's service is exponential. It needs two figures of a drive, the time of one operation and the
highest rate, where MQSSD's eq 5 is fitted to costs at every k.
Ignores that latency grows with reads and writes at once (`mixed.py`).
"""

import numpy as np
from numpy.typing import ArrayLike

from spillway.errors import SpillwayError
from spillway.models.arrays import Array, quantity

MOST_THREADS = 4096  # computed one after another


def operation_us(k: ArrayLike, alone_us: ArrayLike, least_us: ArrayLike) -> Array:
    """Mean time per operation over all in flight. ``alone_us`` is L, ``least_us`` D, at most L. k is whole. Broadcasts.

    Raises SpillwayError.
    """
    threads = quantity("k", k, least=1, above=False)
    alone, least = quantity("alone_us", alone_us), quantity("least_us", least_us)
    if (least > alone).any():
        raise SpillwayError("least_us must be at most alone_us: no operation takes less alone than beside others.")
    if (threads != np.round(threads)).any() or (threads > MOST_THREADS).any():
        found = np.array2string(threads, threshold=8)
        raise SpillwayError(f"k must be whole and at most {MOST_THREADS}; it is {found}.")
    shape = np.broadcast_shapes(threads.shape, alone.shape, least.shape)
    queued, cost = np.zeros(shape), np.zeros(shape)
    for count in range(1, int(threads.max()) + 1):
        latency = alone + least * queued
        queued = count * least * (1 + queued) / latency
        cost = np.where(threads == count, latency / count, cost)
    return np.asarray(cost, dtype=np.float64)
