"""Reads and writes at once, and a drive that fills: what MQSSD leaves to future work (M21).

k operations are in flight, a share f of them reads. MQSSD alone adds the costs, as if they took turns:

    cost of an operation = f c_r(k) + (1 - f) c_w(k)                                              (plain MQSSD)

with c_r = alpha + tau, c_w = beta + sigma. Here reads and writes share the k in flight, k_r + k_w = k, and the flash:

    X_r = k_r / (L_r(k_r) + W u_w^phi)      a read waits for dies that writes hold                (interference)
    X_w = (1 - u_r) k_w / L_w(k_w)          writes get the die time that reads leave
    X_r : X_w = f : 1 - f                   which fixes k_r

    L(k) = k c(k)   latency of one kind alone, us          u_r = X_r c_r(oo), u_w = X_w c_w(oo)   share of the flash
    W               how long a die is held, us: programs, collection, erases; one number for a full drive
    phi             how the wait grows with the share; the same for all drives

Garbage collection makes the flash dearer as valid data grows (C24, M21): with rho = valid data / flash for data,

    c_w(k, fill) = max(c_w(k) of a drive nearly empty, n A(rho fill)),   A = 1 / (1 + rho W0(-e^(-1/rho) / rho))

n is the program time of one page over all dies; A is the write amplification of uniform random writes collected first
in, first out (Xiang and Kurkoski 2011; docs/METHODOLOGY.md). rho and n follow from pure writes at two fills. With less
to collect, dies are held for a shorter time: W(fill) = W (c_w(oo, fill) / c_w(oo, full))^psi, psi the same for all
drives. Reads get dearer with the fill where the map does not fit its cache: c_r(k, fill) lies between reads at the same
two fills.

Holds for random accesses of one size to a drive in its steady state. Ignores that collection comes in bursts.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import brentq, minimize_scalar
from scipy.special import lambertw

from spillway.errors import SpillwayError
from spillway.models.arrays import Array, quantity, share

# phi and psi fitted by `scripts/fit_mixed.py` on presets femu-default, intel-p4510, mqsim-default and quickstart.
WAIT_POWER = 1.54
HOLD_GROWTH = 0.54
_HALVINGS = 45  # of k_r: a part in 10^13
_ROUNDS = 40  # of the fixed point within; it contracts by half
_LEAST_SHARE = 1e-3


@dataclass(frozen=True)
class Curve:
    """Mean time per operation of one kind alone, us, amortised over the k in flight; k ascending."""

    k: tuple[float, ...]
    cost_us: tuple[float, ...]

    def latency_us(self, k: ArrayLike) -> Array:
        """k c(k), us. Interpolated between the measured k as a power of k; below the first c is constant, beyond the
        last the drive is saturated and k c(k) grows as k."""
        at = np.asarray(k, dtype=np.float64)
        ks = np.array(self.k)
        # More in flight never makes a drive slower than fewer: what noise says otherwise is pooled.
        costs = np.minimum.accumulate(np.array(self.cost_us))
        inside = np.exp(np.interp(np.log(np.maximum(at, ks[0])), np.log(ks), np.log(ks * costs)))
        return np.asarray(np.where(at > ks[-1], at * costs[-1], inside), dtype=np.float64)

    @property
    def saturated_us(self) -> float:
        """c(oo), us: time per operation of a saturated drive, at the largest measured k."""
        return min(self.cost_us)


def between(empty: Curve, full: Curve, share_of_way: float) -> Curve:
    """The curve a share of the way from that of the emptier drive to that of the full one, in logarithms; same k."""
    costs = zip(empty.cost_us, full.cost_us, strict=True)
    return Curve(full.k, tuple(float(a ** (1 - share_of_way) * b**share_of_way) for a, b in costs))


def hold_at_us(hold_us: float, write: Curve, full: Curve, growth: float = HOLD_GROWTH) -> float:
    """W(fill), us, where pure writes cost ``write``; ``hold_us`` is W of the full drive, whose writes cost ``full``."""
    return float(hold_us * (write.saturated_us / full.saturated_us) ** growth)


def added_cost_us(read_share: ArrayLike, read_us: ArrayLike, write_us: ArrayLike) -> Array:
    """Plain MQSSD: f c_r + (1 - f) c_w. Broadcasts."""
    f = share("read_share", read_share)
    return f * quantity("read_us", read_us) + (1 - f) * quantity("write_us", write_us)


def mixed_cost_us(
    read_share: ArrayLike, k: ArrayLike, read: Curve, write: Curve, hold_us: float, power: float = WAIT_POWER
) -> Array:
    """Mean time per operation of a mix, us, with ``k`` in flight; shares strictly between 0 and 1. Broadcasts."""
    f, at = np.broadcast_arrays(share("read_share", read_share), quantity("k", k))
    low, high = np.zeros_like(at), at.copy()
    rates = (at, at)
    for _ in range(_HALVINGS):
        reads = (low + high) / 2
        rates = _rates(reads, at - reads, read, write, hold_us, power)
        too_many = rates[0] * (1 - f) > rates[1] * f
        high, low = np.where(too_many, reads, high), np.where(too_many, low, reads)
    return np.asarray(1 / (rates[0] + rates[1]))


def _rates(reads: Array, writes: Array, read: Curve, write: Curve, hold_us: float, power: float) -> tuple[Array, Array]:
    """(X_r, X_w), operations in a microsecond, with so many of each in flight."""
    alone_r, alone_w = read.latency_us(reads), write.latency_us(writes)
    rate_r = reads / alone_r
    rate_w = writes / alone_w
    for _ in range(_ROUNDS):
        rate_w = writes / alone_w * np.maximum(1 - rate_r * read.saturated_us, _LEAST_SHARE)
        held = np.minimum(rate_w * write.saturated_us, 1)
        rate_r = (rate_r + reads / (alone_r + hold_us * held**power)) / 2
    return rate_r, rate_w


def fit_hold_us(
    read_share: ArrayLike, k: ArrayLike, cost_us: ArrayLike, read: Curve, write: Curve, power: float = WAIT_POWER
) -> float:
    """W from one or more measured mixes: least squares of log(model / measured)."""
    measured = quantity("cost_us", cost_us)

    def squares(log_hold: float) -> float:
        model = mixed_cost_us(read_share, k, read, write, float(np.exp(log_hold)), power)
        return float(np.sum(np.log(model / measured) ** 2))

    return float(np.exp(minimize_scalar(squares, bounds=(0.0, 12.0), method="bounded").x))


# ---------------------------------------------------------------------------------------------------------------------
# Garbage collection as valid data grows


def write_amplification(valid_share: ArrayLike) -> Array:
    """Write amplification A of uniform random writes under first in, first out. ``valid_share`` is rho, valid data over
    flash for data, from 0 to below 1. Raises SpillwayError outside of that."""
    rho = quantity("valid_share", valid_share)
    if (rho >= 1).any():
        raise SpillwayError("valid_share must be below 1: without spare flash nothing can be collected.")
    alpha = 1 / rho
    branch = np.asarray(lambertw(-alpha * np.exp(-alpha)), dtype=np.complex128).real  # type: ignore[call-overload]
    return np.asarray(alpha / (alpha + branch), dtype=np.float64)


@dataclass(frozen=True)
class Collection:
    """What writing costs a drive's flash as it fills: n, us for each page programmed, and rho of the full drive."""

    program_us: float
    valid_share: float

    def cost_us(self, fill: ArrayLike) -> Array:
        """n A(rho fill): the least that a write takes, however many are in flight."""
        return self.program_us * write_amplification(self.valid_share * quantity("fill", fill))


def fit_collection(fills: Sequence[float], saturated_us: Sequence[float]) -> Collection:
    """n and rho from the saturated write costs at two fills, the emptier first.

    A drive whose writes cost the same at both has rho where A is still 1, and n is that cost.
    """
    (emptier, fuller), (cheap, dear) = fills, saturated_us

    def ratio(rho: float) -> float:
        return float(write_amplification(rho * fuller) / write_amplification(rho * emptier)) - dear / cheap

    low, high = 0.02, 0.999 / fuller
    if ratio(low) > 0:
        return Collection(dear, low)
    rho = high if ratio(high) < 0 else float(brentq(ratio, low, high))
    return Collection(dear / float(write_amplification(rho * fuller)), rho)


def filled(write: Curve, collection: Collection, fill: float) -> Curve:
    """The write curve at ``fill``, from that of a drive nearly empty."""
    least = float(collection.cost_us(fill))
    return Curve(write.k, tuple(max(cost, least) for cost in write.cost_us))
