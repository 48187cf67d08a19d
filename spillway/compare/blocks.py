"""An interval from one run: its series cut into blocks so long that they are no longer correlated.

With samples i of a part n_i and a whole w_i (operations and seconds, host bytes and user bytes), R = sum n / sum w:

    z_i = n_i - R w_i,   Z_j = sum of z over block j,   r = lag-1 autocorrelation of the Z_j,   b blocks of length L

L is the shortest length at which r is not significantly above that of b independent values, (r + 1/b) sqrt(b) <= 1.28.
A test of b values may miss some correlation. The factor of an AR(1) series corrects for it, with r half a standard
error higher than its estimate:

    se(R) = sqrt(b var(Z) (1 + f) / (1 - f)) / sum w,   f = max(0, r + 1/b + 0.5 / sqrt(b)),   df = b - 1

Too few blocks: fewer than 10, or a run that is worth fewer than 10 independent samples (var(z) n^2 / var(sum z)). Then
there is no interval. Source of the scheme: batch means with a test of independence and the correction of what is left,
as in ASAP3 and Skart (Tafazzoli and Wilson, IIE Transactions 43, 2011). 1.28 (10 % on one side), 0.5 and both tens: by
simulation, ``spillway/compare/rates.py``. With at least 20 blocks most series of 300 samples with AR(1) 0.9 are
refused, and the rest is covered no better.

Range: series that are steady. A beat longer than a tenth of the series is not recognised. The interval does not
contain how runs differ from each other.
"""

import math
from dataclasses import dataclass

import numpy as np

from spillway.models.arrays import Array

FEWEST = 10
SIGNIFICANT = 1.28
UNSEEN = 0.5  # standard errors of r
LONGEST_MEMORY = 0.8  # most that f may be: beyond it so few blocks do not distinguish r from 1, and are refused
GROWTH = 1.25  # of the lengths that are tried


@dataclass(frozen=True)
class Blocked:
    """A figure of one run, R, with its standard error."""

    value: float
    se: float
    blocks: int
    samples: int  # in a block

    @property
    def df(self) -> int:
        """Degrees of freedom."""
        return self.blocks - 1


def blocked(part: Array, whole: Array) -> Blocked | None:
    """sum(part) / sum(whole) of a steady series with its standard error; both arrays have one value a sample. None
    where there are too few independent blocks."""
    part, whole = np.asarray(part, dtype=float), np.asarray(whole, dtype=float)
    total = float(whole.sum())
    if len(part) < FEWEST or total <= 0:
        return None
    value = float(part.sum()) / total
    z = part - value * whole
    for length in _lengths(len(z)):
        found = _at(z, length)
        if found is None:
            continue
        se, blocks = found
        if se and float(np.var(z)) * len(z) ** 2 / se**2 < FEWEST:
            return None
        return Blocked(value, se / total, blocks, length)
    return None


def _at(z: Array, length: int) -> tuple[float, int] | None:
    """The standard error of sum(z) by blocks of ``length``, and their number; None where they are correlated.

    What does not fill a block is left out at the begin, and counted for by the mean of the others.
    """
    count = len(z) // length
    sums = z[len(z) - count * length :].reshape(count, length).sum(axis=1)
    sums = sums - sums.mean()
    squares = float((sums * sums).sum())
    if squares <= (1e-12 * float(np.abs(z).sum())) ** 2:
        return 0.0, count
    excess = float((sums[1:] * sums[:-1]).sum()) / squares + 1 / count
    if excess * math.sqrt(count) > SIGNIFICANT:
        return None
    left = min(max(0.0, excess + UNSEEN / math.sqrt(count)), LONGEST_MEMORY)
    variance = count * squares / (count - 1) * (1 + left) / (1 - left)
    return math.sqrt(variance) * len(z) / (count * length), count


def _lengths(samples: int) -> list[int]:
    """The lengths of blocks that are tried, in samples."""
    lengths, length = [], 1
    while samples // length >= FEWEST:
        lengths.append(length)
        length = max(length + 1, round(length * GROWTH))
    return lengths
