"""The order in which fio's ``sprandom`` writes a drive, so that a drive model can be given the same.

    w = 0.5 / op + 0.7                    write amplification at steady state, fio's approximation
    v_gc = 1 - 1 / w                      valid share of the erase block that garbage collection takes
    v(x) from 1 to v_gc, a block of validity v taking 1 / v of the space (Desnoyers 2012: i f(i) is constant)

op = (physical - logical) / logical. The physical capacity is divided into regions of one size. Region r is written
once, and the share 1 - v_r of what went to it is written again in region r + 1: the first region ends with v_gc, the
last with 1.

Source: fio's sprandom.c and HOWTO (``sprandom``, ``spr_op``, ``spr_num_regions``), 3.42. As there: every LBA once in a
pseudo-random order; what is written again may be drawn once more; a region begins with one new LBA, then what is
written again, then new LBAs. Unlike there: the order is a shuffle and not an LFSR's, and ends where the regions do.
Range: 0 < op < 1. Ignored: ``spr_cs``, which puts off what is written again by a region for a drive's cache.
"""

import math

import numpy as np
from numpy.typing import NDArray

REGIONS = 100  # fio's default of spr_num_regions
PRECISION = 10_000  # of a share, in fio

UNITS = 100_000  # enough for a tenth of a per cent, however large the drive

Units = NDArray[np.int64]


def valid_shares(op: float, regions: int = REGIONS) -> NDArray[np.float64]:
    """v of each region, one value for each, in the order of writing."""
    lowest = 1 - 1 / (0.5 / op + 0.7)
    shares = np.linspace(1.0, lowest, regions)
    space = np.cumsum(1 / shares)
    even = np.interp(np.linspace(space[0], space[-1], regions), space, shares)
    return np.asarray(even[::-1], dtype=np.float64)


def unwritten_share(op: float) -> float:
    """The share of LBAs that no write reaches, which is above 0 because fio's w is an approximation."""
    return 1 - len(np.unique(sprandom_order(UNITS, op, 1))) / UNITS


def sprandom_order(logical_units: int, op: float, seed: int, regions: int = REGIONS) -> Units:
    """The units (0 to ``logical_units`` - 1) in the order of writing, some of them more than once: about (1 + op)
    ``logical_units`` in all. The same seed gives the same order."""
    physical = logical_units + math.ceil(logical_units * op)
    size = physical // regions
    random = np.random.default_rng(seed)
    fresh = random.permutation(logical_units).astype(np.int64)
    rewritten_shares = np.round((1 - valid_shares(op, regions)) * PRECISION)
    written: list[Units] = []
    again: Units = np.empty(0, dtype=np.int64)
    taken = 0
    for share in rewritten_shares:
        new = fresh[taken : taken + size - len(again)]
        if len(new) == 0:
            break  # every LBA is written
        taken += len(new)
        region = np.concatenate([new[:1], again, new[1:]])
        written.append(region)
        # fio draws from 0 to 10000 and takes what is not above the share.
        again = region[random.integers(0, PRECISION + 1, len(region)) <= share]
    return np.concatenate(written)[:physical]
