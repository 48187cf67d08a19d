"""What compactions rewrite while a store is loaded, counted: eqs 9 and 11 with what they leave out (M14, M15, M18).

    rewrites = mean over the load of  (1 + S_1 / C T)  +  sum over full levels i of (1 + o S_(i+1) / S_i)
    rewrites = mean over the load of  1 + S_1 / m T                                       a single level (T4)
    pair_us  = rewrites e ((tau + pages_of(R) alpha) / R + sigma / T + beta / B)

    S_i  bytes of level i, from `lsm_reads.level_bytes` of the data so far    R  bytes of a read    B  of a page
    o    files touched over files that hold as much    m  files of L0 that a compaction takes
    T    bytes of a file    C  files in L0    e  bytes of a pair

Eq 9 charges C files of L1 to each file that comes from L0, but a compaction takes all C files of L0 at once: one for
each. It has F in every level, though the last is smaller than that while it grows, and RocksDB has no more than six.
Eq 11 has a single level touch as many files as a file has pairs. RocksDB takes every file whose range overlaps, so all
that there are (T4), and as many files of L0 as wait: m.

o is 1 for files picked at random. Picking the least overlap makes it smaller (M19); how much is for a simulation or a
run to say. Reads of a block at a time (T34): R is `lsm_reads.block_bytes`; with read-ahead R is the read-ahead.

Holds while compactions keep up with writes: a load that outruns them lets levels grow beyond their targets, and
rewrites less. Ignores trivial moves, and time on the processor.
"""

import numpy as np
from numpy.typing import ArrayLike

from spillway.models.arrays import PAGE_BYTES, Array, quantity
from spillway.models.lsm import Costs, Layout
from spillway.models.lsm_reads import LEVELS, SINGLE_LEVEL, level_bytes, pages_of

STEPS = 256  # of a load, over which rewriting is averaged


def rewrites(
    layout: Layout, fanout: float, *, overlap: float = 1.0, l0_taken: float | None = None, levels: int = LEVELS
) -> float:
    """How often a compaction writes each pair, flushes left out, from an empty store to ``layout.data_bytes``.

    ``overlap`` is o; ``l0_taken`` m, of a single level and the first: C where it is not given. Raises SpillwayError.
    """
    o = float(quantity("overlap", overlap))
    taken = float(quantity("l0_taken", layout.l0_files if l0_taken is None else l0_taken)) * layout.file_bytes
    data = float(quantity("data_bytes", layout.data_bytes))
    found = []
    for step in range(STEPS):
        sizes = level_bytes(_of(layout, data * (step + 0.5) / STEPS), fanout, levels)
        into_deeper = 0.0
        if fanout != SINGLE_LEVEL:
            into_deeper = float((1 + o * sizes[1:] / sizes[:-1]).sum())
        found.append(1 + sizes[0] / taken + into_deeper)
    return float(np.mean(found))


def _of(layout: Layout, data_bytes: float) -> Layout:
    return Layout(data_bytes, layout.pair_bytes, layout.file_bytes, layout.l0_files, layout.block_bytes)


def pair_us(layout: Layout, times: ArrayLike, costs: Costs, read_bytes: float) -> Array:
    """Compaction that one pair causes, rewritten ``times`` times, its inputs read ``read_bytes`` at a time.

    Broadcasts ``times`` with the costs. Raises SpillwayError.
    """
    read = float(quantity("read_bytes", read_bytes))
    tau, alpha = np.asarray(costs.tau_us, dtype=np.float64), np.asarray(costs.alpha_us, dtype=np.float64)
    sigma, beta = np.asarray(costs.sigma_us, dtype=np.float64), np.asarray(costs.beta_us, dtype=np.float64)
    reading = (tau + pages_of(read) * alpha) / read
    writing = sigma / layout.file_bytes + beta / PAGE_BYTES
    return np.asarray(quantity("times", times) * layout.pair_bytes * (reading + writing), dtype=np.float64)
