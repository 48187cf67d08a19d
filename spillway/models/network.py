"""n clients that go round several stations: how much they get done, and where they are (M20).

    X = G(n - 1) / G(n)                  operations a microsecond of n clients that never rest
    N_i = sum_j j f_i(j) G_i(n - j) / G(n)                  of them at station i in the mean
    f_i(j) = 1 / (mu_i(1) ... mu_i(j))   G: the convolution of all f_i    G_i: of all but station i's

    mu_i(j)  operations that station i completes in a microsecond while j are there. Never falls with j
             j / D           a delay: each takes D, nobody waits for others
             min(j, m) / D   m servers, each of which takes D for an operation; m need not be whole
             measured        j / (mean time of one beside j - 1 others): a drive with j reads in flight

Clients that are offered work at the rate X instead (an open loop) are n with the probability X^n G(n) / sum X^m G(m),
m as many as there are clients: who comes when all are busy is turned away.

Source: Gordon and Newell 1967; Buzen, "Computational algorithms for closed queueing networks with exponential servers",
CACM 16(9), 1973. The figures are those of mean value analysis (Reiser and Lavenberg 1980), whose recursion over a
station with several servers loses its digits where the station is nearly always busy; sums of what is positive do not.
A measured station stands for all that is behind it (Chandy, Herzog and Woo, "Parametric analysis of queuing networks",
IBM JRD 19(1), 1975).

Exact for exponential times at queues in order, for any times where servers are shared or each has its own. Ignores that
a drive's times vary less, so that a little less is predicted near saturation than it does.
"""

import functools
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from spillway.errors import SpillwayError
from spillway.models.arrays import Array, quantity

MOST_CLIENTS = 4096  # time and memory go with the square


def delay_rates(time_us: float, clients: int) -> Array:
    """mu(1) to mu(clients) of a delay."""
    return np.asarray(_counts(clients) / float(quantity("time_us", time_us)), dtype=np.float64)


def server_rates(time_us: float, servers: float, clients: int) -> Array:
    """mu(1) to mu(clients) of so many servers, each of which takes ``time_us`` for an operation."""
    able = np.minimum(_counts(clients), float(quantity("servers", servers)))
    return np.asarray(able / float(quantity("time_us", time_us)), dtype=np.float64)


def throughput(stations: Sequence[ArrayLike]) -> float:
    """Operations a microsecond of clients that never rest. ``stations``: mu(1) to mu(n) of each, n the number of
    clients. Raises SpillwayError."""
    weights, scale = _closed(stations)
    *others, last = weights
    beside = _together(others) if others else np.eye(1, len(last))[0]
    fewer, all_of_them = (float(beside[: n + 1] @ last[n::-1]) for n in (len(last) - 2, len(last) - 1))
    return scale * fewer / all_of_them


def numbers(stations: Sequence[ArrayLike]) -> Array:
    """Mean number of such clients at each station. Raises SpillwayError."""
    weights, _ = _closed(stations)
    there = np.array([_moment(weights, at)[-1] for at in range(len(weights))])
    return np.asarray(there / _together(weights)[-1], dtype=np.float64)


def offered(stations: Sequence[ArrayLike], rate: float) -> tuple[float, Array]:
    """(operations a microsecond that are taken, mean number at each station) where ``rate`` are asked for. Raises
    SpillwayError."""
    asked = float(quantity("rate", rate))
    weights = _weights(_rates(stations), asked)
    together = _together(weights)
    whole = together.sum()
    there = np.array([_moment(weights, at).sum() / whole for at in range(len(weights))])
    return float(asked * together[:-1].sum() / whole), there


def _counts(clients: int) -> Array:
    if not 1 <= clients <= MOST_CLIENTS:
        raise SpillwayError(f"clients must be from 1 to {MOST_CLIENTS}; it is {clients}.")
    return np.arange(1, clients + 1, dtype=np.float64)


def _rates(stations: Sequence[ArrayLike]) -> Array:
    """As rows of one array. Raises SpillwayError."""
    found = [quantity("a station's rates", each) for each in stations]
    if not found or any(each.ndim != 1 or each.shape != found[0].shape for each in found):
        raise SpillwayError("stations must be one or more rows of rates, as many in each as there are clients.")
    _counts(len(found[0]))
    rates = np.stack(found)
    if (np.diff(rates) < -1e-9 * rates[:, 1:]).any():
        raise SpillwayError("a station's rates must not fall: no station does less while more are there.")
    return rates


def _closed(stations: Sequence[ArrayLike]) -> tuple[list[Array], float]:
    """The weights of clients that never rest, and their scale: with time in units of about that between two operations
    the terms of G(n) are neither too large nor too small."""
    rates = _rates(stations)
    scale = min(float(rates[:, -1].min()), rates.shape[1] / float((1 / rates[:, 0]).sum()))
    return _weights(rates, scale), scale


def _weights(rates: Array, scale: float) -> list[Array]:
    """f_i(0) to f_i(n) with time in units of 1 / ``scale``; of each the largest is 1."""
    found = []
    for each in rates:
        logs = np.concatenate(([0.0], np.cumsum(np.log(scale / each))))
        found.append(np.exp(logs - logs.max()))
    return found


def _together(weights: Sequence[Array]) -> Array:
    """G(0) to G(n)."""
    size = len(weights[0])
    return functools.reduce(lambda one, other: np.convolve(one, other)[:size], weights)


def _moment(weights: Sequence[Array], at: int) -> Array:
    """G with each f_i(j) of station ``at`` taken j times."""
    counted = np.arange(len(weights[at])) * weights[at]
    return _together([counted if each == at else own for each, own in enumerate(weights)])
