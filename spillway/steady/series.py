"""What is judged: one or several series of a run on equal intervals.

A sample stands for the time since the one before it; the first for as long as the median sample. Sums over samples of
unequal length are put on equal intervals by interpolating their running total, which keeps every total.

A ratio such as wa_app = host bytes / user bytes has no value where its denominator is zero, and an enormous one where
it is nearly so. It enters as its linear form
    x_i = R + (numerator_i - R denominator_i) / mean(denominator),   R = sum(numerator) / sum(denominator),
whose mean is R, the ratio over the part that is judged, and in which an interval weighs as much as it has of the
denominator. Source: the delta method for a ratio of means, as in survey sampling (Cochran, Sampling Techniques, ch. 6).
For a rate over equal intervals it is the rate itself.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

# Five of SNIA's rounds with one of MSER-5's batches in each; with fewer samples nothing is said.
LEAST_SAMPLES = 25
# More are averaged to so many: a tenth of a percent of the run still has four. Source: guess, for speed
MOST_SAMPLES = 4096
SAME = 0.01  # of an interval: times that are off by no more are those of equal intervals. Source: guess


@dataclass(frozen=True)
class Round:
    """One span of a run: its length in seconds, and the operations and bytes in it. None: not counted."""

    seconds: float
    operations: float
    user_bytes: float
    host_bytes: float | None
    nand_bytes: float | None


@dataclass(frozen=True)
class Series:
    """One figure over equal intervals: numerator and denominator of each."""

    name: str
    numerator: Array
    denominator: Array

    def part(self, start: int = 0) -> Array:
        """The values from interval ``start`` on, a ratio in its linear form.

        All are NaN where a fifth of the part, SNIA's round, has no denominator: the ratio is not known there.
        """
        numerator, denominator = self.numerator[start:], self.denominator[start:]
        if not all(fifth.any() for fifth in np.array_split(denominator, 5)):
            return np.full(len(numerator), np.nan)
        mean = float(denominator.mean())
        ratio = float(numerator.mean()) / mean
        return ratio + (numerator - ratio * denominator) / mean


@dataclass(frozen=True)
class Recorded:
    """A run's series on one set of equal intervals, which end at ``ends_s``."""

    begin_s: float
    ends_s: Array
    series: list[Series]


def of_rounds(rounds: Sequence[Round]) -> Recorded:
    """The series that a run's spans have: throughput, and each ratio whose denominator is counted."""
    seconds = np.array([each.seconds for each in rounds], dtype=float)
    host = _known([each.host_bytes for each in rounds])
    nand = _known([each.nand_bytes for each in rounds])
    user = np.array([each.user_bytes for each in rounds], dtype=float)
    sums = {"throughput": (np.array([each.operations for each in rounds], dtype=float), seconds)}
    if host is not None and user.sum() > 0:
        sums["wa_app"] = (host, user)
    if nand is not None and host is not None and host.sum() > 0:
        sums["wa_device"] = (nand, host)
    return _on_intervals(0.0, np.cumsum(seconds), sums)


def of_columns(t_s: Array, columns: Mapping[str, Array]) -> Recorded:
    """The series of columns of values, sampled at the rising times ``t_s`` (seconds); each column is as long as ``t_s``
    and is divided by its largest value."""
    first = float(np.median(np.diff(t_s)))
    seconds = np.diff(t_s, prepend=t_s[0] - first)
    sums = {name: (values / (np.abs(values).max() or 1.0) * seconds, seconds) for name, values in columns.items()}
    return _on_intervals(float(t_s[0]) - first, t_s, sums)


def _known(values: Sequence[float | None]) -> Array | None:
    return None if any(value is None for value in values) else np.array(values, dtype=float)


def _on_intervals(begin: float, ends: Array, sums: Mapping[str, tuple[Array, Array]]) -> Recorded:
    """Sums of spans that end at ``ends`` as sums of at most ``MOST_SAMPLES`` equal intervals."""
    count = min(len(ends), MOST_SAMPLES)
    edges = np.linspace(begin, float(ends[-1]), count + 1)
    known = np.concatenate([[begin], ends])
    equal = count == len(ends) and np.allclose(edges, known, rtol=0, atol=SAME * (edges[1] - edges[0]))

    def moved(values: Array) -> Array:
        if equal:
            return values
        return np.diff(np.interp(edges, known, np.concatenate([[0.0], np.cumsum(values)])))

    series = [Series(name, moved(above), moved(below)) for name, (above, below) in sums.items()]
    return Recorded(begin, ends if equal else edges[1:], series)
