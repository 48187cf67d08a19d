"""Search for the highest rate that is kept: bracketing by doubling, then bisection.

From the lowest rate on, each try doubles the rate, until one is not kept or the highest allowed is. Then the bracket,
from the highest kept rate K to the lowest not kept N, is halved on a logarithmic axis until N <= K (1 + within). With
R = highest / lowest it takes at most ceil(log2 R) + 1 tries to bracket and ceil(log2(log 2 / log(1 + within))) to
bisect: 15 for a thousandfold range at 5 %.

The search takes for granted that what is above a rate that was not kept is not kept either. Where that does not hold (a
store that recovers at a higher rate, noise near the limit), the answer is one edge between kept and not kept, with both
its sides tried; no rate above N is.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

LEAST_WITHIN = 0.001  # rates between the ends are rounded to four digits, which lie up to a thousandth apart
DIGITS = 4


class Outcome(Protocol):
    """The result of a try."""

    @property
    def rate(self) -> float: ...  # noqa: D102
    @property
    def kept(self) -> bool: ...  # noqa: D102


Tried = TypeVar("Tried", bound=Outcome)


@dataclass(frozen=True)
class Found(Generic[Tried]):
    """Where a search ended."""

    kept: Tried | None  # at the highest kept rate; None: not even the lowest rate was kept
    not_kept: Tried | None  # at the lowest rate that was not; None: the highest rate was kept


def search(tries: Callable[[float], Tried], lowest: float, highest: float, within: float) -> Found[Tried]:
    """The highest kept and the lowest not kept rate between ``lowest`` and ``highest``, operations a second. ``tries``
    is called once for each rate.

    REQUIRES: 0 < lowest <= highest, within >= ``LEAST_WITHIN``.
    """
    kept, not_kept = None, None
    rate = lowest
    while not_kept is None:
        outcome = tries(rate)
        if not outcome.kept:
            not_kept = outcome
        elif rate >= highest:
            return Found(outcome, None)
        else:
            kept, rate = outcome, min(2 * rate, highest)
    while kept is not None and not_kept.rate > kept.rate * (1 + within):
        middle = rounded(math.sqrt(kept.rate * not_kept.rate))
        if not kept.rate < middle < not_kept.rate:
            break
        outcome = tries(middle)
        kept, not_kept = (outcome, not_kept) if outcome.kept else (kept, outcome)
    return Found(kept, not_kept)


def rounded(rate: float) -> float:
    """``rate`` with DIGITS significant digits."""
    return float(f"{rate:.{DIGITS}g}")
