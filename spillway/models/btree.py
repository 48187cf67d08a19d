"""B-trees in the DAM, the PDAM and the affine model (M4-M7, T1, T6).

    N  records    B  records in a page    X  records that follow each other    P  pages at once    Y  pages in a node

    DAM      node of B records,    log_B(N/B) + X/B                       page transfers                       (M4)
    PDAM     node of P B records,  log_PB(N/PB) + X/PB                    cycles                               (M5)
    affine   node of Y B records,  (log_YB(N/YB) + X/YB) (s + Y alpha)    us                                   (M6)

All up to a constant factor. With the leaf counted, a path is log_YB(N) nodes and costs ln N (s + Y alpha) / ln(YB), so
the node size that is best for single records minimises (s + Y alpha) / ln(YB):

    Y (ln(YB) - 1) = s / alpha,   Y = x / W(x B / e),   x = s / alpha                                          (T6)

W is Lambert's, principal branch. For large x that tends to x / ln x pages. T6: section 2.2 prints x ln x pages, which
costs 1.6 to 2.9 times as much at x from 10 to 100 (B = 10), and ever more beyond. Long scans want nodes of about x
pages: then set-up is half of the cost.

Write amplification of the structure is bytes written / bytes modified, at worst node bytes / record bytes: linear in
the node, so P times as much in the PDAM, at the same latency (M5, M7).

Source: MQSSD section 2.2; Bender et al. 2019 as cited there. Holds for s >> alpha (T1: printed s << alpha) and trees
of several levels. Ignores caching of the upper nodes, which larger nodes make worse (M35).
"""

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import lambertw

from spillway.models.arrays import Array, quantity


def depth(records: ArrayLike, node_records: ArrayLike) -> Array:
    """log_B(N/B): levels above the leaves, at least 0; ``node_records`` is B, PB or YB. Broadcasts."""
    n, b = quantity("records", records), quantity("node_records", node_records, least=1)
    return np.maximum(0.0, np.log(n / b) / np.log(b))


def operation_transfers(records: ArrayLike, page_records: ArrayLike, run_records: ArrayLike = 1) -> Array:
    """Page transfers of an operation on ``run_records`` records in a row, DAM. Broadcasts (M4)."""
    x = quantity("run_records", run_records)
    return depth(records, page_records) + x / quantity("page_records", page_records)


def operation_cycles(
    records: ArrayLike, page_records: ArrayLike, parallelism: ArrayLike, run_records: ArrayLike = 1
) -> Array:
    """Cycles of the same operation with nodes of P pages, PDAM. Broadcasts (M5)."""
    node = quantity("page_records", page_records) * quantity("parallelism", parallelism, least=1, above=False)
    return operation_transfers(records, node, run_records)


def operation_us(
    records: ArrayLike,
    page_records: ArrayLike,
    node_pages: ArrayLike,
    setup_us: ArrayLike,
    page_us: ArrayLike,
    run_records: ArrayLike = 1,
) -> Array:
    """Time of the same operation with nodes of Y = ``node_pages`` pages, affine. Broadcasts (M6)."""
    pages = quantity("node_pages", node_pages)
    node_us = quantity("setup_us", setup_us, above=False) + pages * quantity("page_us", page_us)
    return operation_transfers(records, quantity("page_records", page_records) * pages, run_records) * node_us


def path_us(
    records: ArrayLike, page_records: ArrayLike, node_pages: ArrayLike, setup_us: ArrayLike, page_us: ArrayLike
) -> Array:
    """Time from the root to one record, leaf included: ln N (s + Y alpha) / ln(YB). Broadcasts (M6)."""
    pages = quantity("node_pages", node_pages)
    node = quantity("page_records * node_pages", quantity("page_records", page_records) * pages, least=1)
    node_us = quantity("setup_us", setup_us, above=False) + pages * quantity("page_us", page_us)
    return np.log(quantity("records", records, least=1)) * node_us / np.log(node)


def best_point_node_pages(setup_us: ArrayLike, page_us: ArrayLike, page_records: ArrayLike) -> Array:
    """Y that minimises ``path_us``, exact: x / W(x B / e) with x = s / alpha. Broadcasts (T6).

    Not rounded to whole pages, and below 1 where a page already holds more than the best node.
    """
    x = quantity("setup_us", setup_us) / quantity("page_us", page_us)
    inner = x * quantity("page_records", page_records) / np.e
    return np.asarray(x / np.real(lambertw(inner)), dtype=np.float64)  # type: ignore[call-overload]


def best_point_node_pages_of_large(setup_us: ArrayLike, page_us: ArrayLike) -> Array:
    """x / ln x, what ``best_point_node_pages`` tends to; x = s / alpha > e. Broadcasts (T6)."""
    x = quantity("setup_us / page_us", quantity("setup_us", setup_us) / quantity("page_us", page_us), least=np.e)
    return x / np.log(x)


def printed_point_node_pages(setup_us: ArrayLike, page_us: ArrayLike) -> Array:
    """x ln x as MQSSD section 2.2 prints it; here to show what it costs (T6). Broadcasts."""
    x = quantity("setup_us / page_us", quantity("setup_us", setup_us) / quantity("page_us", page_us), least=1)
    return x * np.log(x)


def best_scan_node_pages(setup_us: ArrayLike, page_us: ArrayLike) -> Array:
    """s / alpha: set-up is half of what a node costs, so no scan pays more than twice its transfer. Broadcasts (M6)."""
    return quantity("setup_us", setup_us) / quantity("page_us", page_us)


def write_amplification(node_bytes: ArrayLike, modified_bytes: ArrayLike) -> Array:
    """Bytes written / bytes modified when one change rewrites its node: the worst case. Broadcasts (M7)."""
    return quantity("node_bytes", node_bytes) / quantity("modified_bytes", modified_bytes)
