"""How often each key of a zipfian load is asked for, by classes of keys that are about as popular.

Keys are YCSB's: a rank of ``RANKS`` is drawn, rank r with a probability in proportion to r^-skew, and a hash puts each
rank on any key. The class of a key is that of its most popular rank, the ranks of a class are [2^c, 2^(c+1)). Ranks
beyond the number of keys fall on all of them alike: with 0.99 and 10^5 keys half of the requests are uniform.

Of n_c things of class c that fall on any of N places, the most popular first (``scattered``):

    U_c      = N exp(-(n_0 + ... + n_(c-1)) / N)                   places without one of an earlier class
    K_c      = U_c - U_(c+1)                                       places whose most popular one is of class c
    K_c q_c  = w_c U_c / N + (w_(c+1) + w_(c+2) + ...) K_c / N     w_c: share of the requests for class c

So ranks fall on keys, as in the simulator of the tree (native/lsm/key_space.h), and keys on blocks, since a hash has
scattered them. Holds for 0 < skew < 1. Ignores how unequally things of one class fall on places.
"""

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[Any]

RANKS = 10_000_000_000  # Source: YCSB's ScrambledZipfianGenerator; native/load/ycsb/requests.cc
EXACT = 64.0  # ranks of a class whose probabilities are added one by one: the integral's error is less for more
FEW = 0.5  # places; fewer without anything are none


@dataclass(frozen=True, eq=False)
class Classes:
    """How many keys (or blocks) each class has, and the share of the requests that is for them: arrays of one
    length."""

    count: FloatArray
    requests: FloatArray

    @property
    def of_each(self) -> FloatArray:
        """The share of the requests that is for one of each class."""
        found: FloatArray = self.requests / np.maximum(self.count, np.finfo(float).tiny)
        return found


@lru_cache(maxsize=64)
def classes(pairs: int, skew: float) -> Classes:
    """Of ``pairs`` keys and YCSB's ranks."""
    first = 2.0 ** np.arange(math.floor(math.log2(RANKS)) + 1)
    ranks = np.minimum(2 * first, RANKS + 1.0) - first
    shares = np.array([_weight(at, at + count, skew) for at, count in zip(first, ranks, strict=True)])
    return scattered(Classes(ranks, shares / shares.sum()), pairs)


def scattered(things: Classes, places: float) -> Classes:
    """Places by the most popular thing that falls on each, and the share of the requests that is for them."""
    before = np.cumsum(things.count) - things.count
    untaken = places * np.exp(-before / places)
    last = max(1, int(np.sum(untaken >= FEW)))
    taken = untaken * -np.expm1(-things.count / places)
    all_requests = things.requests.sum()
    later = np.maximum(0.0, all_requests - np.cumsum(things.requests))
    requests = things.requests * untaken / places + later * taken / places
    taken, requests = taken[:last], requests[:last]
    requests = requests * (all_requests / requests.sum()) if all_requests else requests
    nothing = places - taken.sum()
    if nothing >= FEW:
        return Classes(np.append(taken, nothing), np.append(requests, 0.0))
    taken[-1] += nothing
    return Classes(taken, requests)


def _weight(first: float, last: float, skew: float) -> float:
    """The sum of r^-skew for r in [first, last), beyond the first ranks by its integral."""
    exact = np.arange(first, min(last, first + EXACT))
    begin = first + len(exact)
    beyond = ((last - 0.5) ** (1 - skew) - (begin - 0.5) ** (1 - skew)) / (1 - skew) if begin < last else 0.0
    return float(np.sum(exact**-skew) + beyond)
