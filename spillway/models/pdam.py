"""The parallel disk access machine, PDAM: P pages in one cycle for the price of one (M2).

    page_cost  = cycle_cost / min(k, P)                                        (MQSSD eq 4)
    throughput = B min(k, P) / cycle_cost                                      (MQSSD eq 2)

    P  pages that can be moved at once, 1 <= P <= floor(M / B); P = 1 is the DAM
    k  accesses in flight

Source: Aggarwal and Vitter 1988, as stated in MQSSD section 2.1.2. Holds while pages do not compete for a channel.
Ignores order of access, and that reads and writes scale differently. P is often taken to be the number of channels.
"""

import numpy as np
from numpy.typing import ArrayLike

from spillway.models.arrays import Array, percent, quantity


def page_cost_us(r_percent: ArrayLike, k: ArrayLike, cycle_us: ArrayLike, parallelism: ArrayLike) -> Array:
    """Mean time per page with ``k`` accesses in flight; ``parallelism`` is P. Broadcasts (MQSSD eq 4)."""
    at_once = np.minimum(quantity("k", k), quantity("parallelism", parallelism, least=1, above=False))
    return quantity("cycle_us", cycle_us) / at_once + 0 * percent("r_percent", r_percent)


def cycles(pages: ArrayLike, parallelism: ArrayLike) -> Array:
    """Cycles that move ``pages`` with ``parallelism`` of them in each. Broadcasts."""
    return np.ceil(quantity("pages", pages, above=False) / quantity("parallelism", parallelism, least=1, above=False))
