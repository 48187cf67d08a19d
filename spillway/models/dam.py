"""The disk access machine, DAM: every page costs the same, one at a time (M1).

    cost of N records = ceil(N / B) page transfers
    throughput        = B / page_cost                                          (MQSSD eq 1)

    N  records of the working set          B  records in a page
    M  records in memory                   1 <= B <= M < N

Source: Aggarwal and Vitter 1988, as stated in MQSSD section 2.1.1. Holds for one access at a time of one kind on a
drive on which order does not matter. Ignores concurrency, order of access and the difference of reads and writes;
calibrated for reads and writes apart (M12) it still knows neither r nor k.
"""

import numpy as np
from numpy.typing import ArrayLike

from spillway.models.arrays import Array, percent, quantity


def page_transfers(records: ArrayLike, page_records: ArrayLike) -> Array:
    """ceil(N / B): page transfers for ``records`` that lie one after the other. Broadcasts (M1)."""
    return np.ceil(quantity("records", records, above=False) / quantity("page_records", page_records))


def page_cost_us(r_percent: ArrayLike, k: ArrayLike, page_us: ArrayLike) -> Array:
    """Mean time per page: ``page_us`` for every r and k. Broadcasts over all three (MQSSD eq 1)."""
    shape_of_r, shape_of_k = 0 * percent("r_percent", r_percent), 0 * quantity("k", k)
    return quantity("page_us", page_us) + shape_of_r + shape_of_k
