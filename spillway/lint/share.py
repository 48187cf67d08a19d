r"""How many distinct offsets a skewed load touches.

Of ``ranks`` items drawn with probability p_i = i^-theta / H after ``draws`` draws, H = sum of i^-theta. Where the tool
scatters ranks over ``slots`` by a hash (fio's zipf, YCSB's scrambled zipfian), each rank falls on a slot of its own
draw, several may share one, and the expected share of slots that are touched is

    1 - prod_i (1 - (1 - exp(-draws * p_i)) / slots)

and where each rank has its own slot (YCSB's latest), the mean of 1 - exp(-draws * p_i).

Symbols: theta without unit, the others counts. Source: derivation (each slot is missed by every rank independently);
fio's lib/zipf.c and YCSB's ScrambledZipfianGenerator for what they scatter. Holds for many slots; draws are taken as
Poisson, which is within 1/slots of drawing a fixed number. Ignores that fio's generator approximates Zipf's law (Gray
et al. 1994) and sums H over the first ten million ranks only. Sums over ranks beyond ``EXACT`` are by the middle of
bins that grow by 0.5 %.
"""

import math

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

EXACT = 100_000  # ranks summed one by one
GROWTH = 1.005  # of the bins behind them


def _bins(ranks: int) -> tuple[Floats, Floats]:
    """Representative ranks and how many ranks each stands for."""
    head = np.arange(1, min(ranks, EXACT) + 1, dtype=np.float64)
    if ranks <= EXACT:
        return head, np.ones_like(head)
    count = max(1, math.ceil(math.log(ranks / EXACT) / math.log(GROWTH)))
    edges = EXACT * np.power(ranks / EXACT, np.arange(count + 1) / count)
    middles = np.sqrt(edges[:-1] * edges[1:])
    return np.concatenate([head, middles]), np.concatenate([np.ones_like(head), np.diff(edges)])


def touched_share(draws: float, ranks: int, slots: int, theta: float, *, scattered: bool = True) -> float:
    """The expected share of ``slots`` that ``draws`` draws touch. All counts at least 1; theta at least 0.

    ``scattered``: ranks fall on slots by a hash; else each has a slot of its own.
    """
    places, weights = _bins(ranks)
    chances = np.power(places, -theta)
    chances /= float(np.sum(chances * weights))
    hit = -np.expm1(-draws * chances)
    if not scattered:
        return float(min(1.0, np.sum(weights * hit) / slots))
    return float(-np.expm1(np.sum(weights * np.log1p(-np.minimum(hit / slots, 1 - 1e-12)))))


def uniform_share(draws: float, slots: int) -> float:
    """The same of uniform draws."""
    return -math.expm1(-draws / slots)
