"""The tests of steadiness, each a pure function of one series on equal intervals.

Each sees the series as shares of its mean, without its beat. In what follows n is the number of samples.

beat    A periodic part that was seen at least four times (flush and compaction under an even load) belongs to
        steadiness. Its period is the highest peak of the periodogram (Hann window, after a straight line has been
        taken off), its shape the mean over phases; it is taken off where it explains at least 0.4 of the variance.
noise   S = sum_{j=2}^{B+1} c_j^2 / B, where c_j are the coefficients of the orthonormal cosine transform (type II) of
        the residuals of the least-squares line: the long-run variance, with B degrees of freedom whatever the
        autocorrelation is, as long as it has died out within a B-th of the series. c_1 is left out, which the line has
        taken. B = 0.4 n^(2/3), between 4 and 8: few enough that what lasts a tenth of the series counts as noise of
        its level. Source: Lazarus, Lewis, Stock and Watson, HAR Inference, JBES 36(4), 2018 (the equal-weighted cosine
        estimator and its B).
cusum   Two-sided, over at most 20 equal rounds. With z_i = (x_i - 1) / sigma,
            high_i = max(0, high_{i-1} + z_i - slack),   low_i = max(0, low_{i-1} - z_i - slack).
        sigma is the largest of the long-run noise of a round, sqrt(S rounds / n); the median difference of neighbours
        / 0.954; and 2.5 % of the mean: then a straight drift as large as what ``drift`` allows just reaches the limit.
        Slack 0.5 sigma, limit 5 sigma: the textbook's (B18).
window  SNIA's, over the last 5 rounds: max - min is at most 20 % of their mean, and the least-squares line through
        them moves by at most 10 % of it (|4 slope|). Source: S1. There are 20 rounds, or as many fewer, down to
        5, as it takes to have a noise of 2.5 % in a round: with more, chance alone breaks the 10 %.
drift   The least-squares line over the part, d, continued over a span as long as the run. |d| is at most 12.5 %: what
        SNIA's 10 % between the first and the last of five rounds comes to from end to end. And the bound of d's
        interval, |d| + t_{B, 0.9} sqrt(12 S / n), is at most 20 %, SNIA's range: one of two one-sided tests of
        equivalence (Schuirmann, J. Pharmacokinet. Biopharm. 15(6), 1987). A series whose bound is beyond is too noisy
        or too short to tell. Continued over the run, because half of a run that drifts has half of its drift.
end     The mean of the last samples (3 at least; 2, 5 and 10 % of all) is within 10 % of the mean of some window as
        long before the last fifth, or between two of them: a collapse at the end is no part of a steady state, nor is a
        slow fall, whose own begin would pass for such a window.

Holds for n >= 25 over at least half of a run. Ignores what happened between two samples, beats that were seen less than
four times (they count as drift), and drifts slower than the run is long. A random walk whose steps are small looks like
noise that lasts.
"""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from scipy.fft import dct, rfft
from scipy.special import stdtrit

from spillway.steady.series import Array

ROUNDS = 20  # of the part: four of SNIA's windows. Source: guess
CUSUM_SLACK_SIGMA = 0.5
CUSUM_LIMIT_SIGMA = 5.0
LEAST_SIGMA = 0.025  # of the mean; see above
MEDIAN_DIFFERENCE = 0.954  # of two draws from one normal distribution: sqrt(2) 0.6745 sigma
SNIA_ROUNDS = 5
SNIA_RANGE = 0.20
SNIA_SLOPE = 0.10
ROUND_NOISE = 0.025  # the slope's standard error is 1.26 of it, a third of what SNIA allows
DRIFT = 0.125
DRIFT_BOUND = 0.20
CONFIDENCE = 0.90  # of each side. Source: `spillway steady --error-rates`; at 0.95 short runs are more often undecided
LEAST_TERMS, MOST_TERMS = 4, 8
BEATS = 4
BEAT_SHARE = 0.4  # of the variance. Source: guess; below it a beat moves a round by less than noise does
BEAT_BINS = 24
END_SHARES = (0.02, 0.05, 0.1)
END_LEAST = 3
END_MARGIN = 0.10
LATE = 0.2  # of the part: where it ends. Source: guess; SNIA's last round of five


@dataclass(frozen=True)
class Outcome:
    """What one test says of one series. ``figure`` and ``limit`` are shares of the mean, sigmas, or capacities."""

    series: str
    check: str  # which of CHECKS it is part of
    name: str
    passed: bool
    asked: bool  # whether the verdict rests on it
    figure: float | None
    limit: float
    words: str  # a clause that says how the series fails or passes, with the series as its subject

    def document(self) -> dict[str, Any]:
        """For JSON."""
        return asdict(self) | {"figure": None if self.figure is None else round(self.figure, 4)}


@dataclass(frozen=True)
class Level:
    """A series as shares of its mean without its beat, and the noise of its level."""

    values: Array
    drift: float  # over the series
    variance: float  # S, the long-run variance
    terms: int  # B
    beat: float | None  # its period in samples

    def noise(self, rounds: float) -> float:
        """Standard error of the mean of one of so many rounds."""
        return float(np.sqrt(self.variance * rounds / len(self.values)))


def level(values: Array) -> Level:
    """Divides ``values`` by their mean, removes a beat and estimates the noise. REQUIRES: a positive mean."""
    shares = values / values.mean()
    period, shape = beat(shares)
    rest = shares - shape
    drift, residuals = line(rest)
    terms = int(np.clip(round(0.4 * len(rest) ** (2 / 3)), LEAST_TERMS, MOST_TERMS))
    waves = dct(residuals, type=2, norm="ortho")[2 : terms + 2]
    return Level(rest, drift, float(waves @ waves) / terms, terms, period)


def line(values: Array) -> tuple[float, Array]:
    """(movement of the least-squares line over the series, residuals); both in the unit of ``values``."""
    count = len(values)
    middle = np.arange(count) - (count - 1) / 2
    slope = float(middle @ values / (middle @ middle))
    return slope * count, values - values.mean() - slope * middle


def beat(values: Array) -> tuple[float | None, Array]:
    """The period in samples and the periodic part, with mean zero; None and zeros where there is none."""
    count, fine = len(values), 4
    none = np.zeros(count)
    _, rest = line(values)
    total = float(rest @ rest)
    if total <= 1e-18 * count:
        return None, none
    power = np.abs(rfft(rest * np.hanning(count), fine * count)) ** 2
    first, last = fine * BEATS - 1, fine * count // 3  # periods down to three samples
    if last <= first:
        return None, none
    peak = first + int(np.argmax(power[first:last]))
    best, found, shape = BEAT_SHARE, None, none
    for place in peak + np.linspace(-1, 1, 9):
        if place < fine * BEATS * 0.95:  # a run seldom ends with a beat
            continue
        period = fine * count / place
        bins = int(np.clip(period, 2, BEAT_BINS))
        phases = (np.arange(count) / period % 1 * bins).astype(int)
        often = np.maximum(np.bincount(phases, minlength=bins), 1)
        # The line beside the shape: by differences within a phase, so that a saw-tooth's own slope is no drift.
        time = np.arange(count) - (np.bincount(phases, np.arange(count), bins) / often)[phases]
        rising = rest - float(time @ rest / (time @ time)) * np.arange(count)
        profile = np.bincount(phases, rising, bins) / often
        left = rising - profile[phases]
        share = 1 - float(left @ left) / total * (count - 1) / (count - bins)
        if share > best:
            best, found, shape = share, float(period), profile[phases] - profile[phases].mean()
    return found, shape


def round_means(values: Array, rounds: int) -> Array:
    """Means over so many rounds of equal length, or of lengths that differ by one sample."""
    edges = np.linspace(0, len(values), rounds + 1).round().astype(int)
    return np.add.reduceat(values, edges[:-1]) / np.diff(edges)


def cusum_peak(z: Sequence[float]) -> float:
    """The highest value of both cumulative sums; ``z`` are deviations in sigmas, slack is CUSUM_SLACK_SIGMA (B18)."""
    high = low = peak = 0.0
    for value in z:
        high = max(0.0, high + value - CUSUM_SLACK_SIGMA)
        low = max(0.0, low - value - CUSUM_SLACK_SIGMA)
        peak = max(peak, high, low)
    return peak


def snia_window(rounds: Array) -> tuple[float, float]:
    """(range, excursion of the line) of the last five rounds, both as shares of their mean."""
    window = rounds[-SNIA_ROUNDS:]
    mean = float(window.mean())
    if mean == 0:
        return 0.0, 0.0
    middle = np.arange(SNIA_ROUNDS) - (SNIA_ROUNDS - 1) / 2
    slope = float(middle @ window / (middle @ middle))
    return float(np.ptp(window)) / mean, abs(slope * (SNIA_ROUNDS - 1)) / mean


# What a test finds: its name, figure, limit and words.
Finding = tuple[str, float, float, str]


def cusum(of: Level, extension: float) -> list[Finding]:
    """The highest cumulative sum over at most 20 rounds, in sigmas; ``extension`` is not used."""
    rounds = min(ROUNDS, len(of.values) // 3)
    means = round_means(of.values, rounds)
    sigma = max(LEAST_SIGMA, of.noise(rounds), scatter(means))
    peak = cusum_peak(((means - 1) / sigma).tolist())
    return [("cusum", peak, CUSUM_LIMIT_SIGMA, f"moved by {peak:.1f} sigma of its cumulative sum (limit 5)")]


def window(of: Level, extension: float) -> list[Finding]:
    """SNIA's window (S1) over ``snia_rounds``; ``extension`` is not used."""
    means = snia_rounds(of)
    spread, excursion = snia_window(means)
    last = f"over the last five of {len(means)} rounds (SNIA allows"
    return [
        ("range", spread, SNIA_RANGE, f"varied by {percent(spread)} {last} 20 %)"),
        ("slope", excursion, SNIA_SLOPE, f"drifted by {percent(excursion)} {last} 10 %)"),
    ]


def snia_rounds(of: Level) -> Array:
    """The means of as many rounds, at most 20, as are long enough to be quiet."""
    most = min(ROUNDS, max(SNIA_ROUNDS, len(of.values) // 3))
    for rounds in range(most, SNIA_ROUNDS, -1):
        means = round_means(of.values, rounds)
        if max(of.noise(rounds), scatter(means)) <= ROUND_NOISE:
            return means
    return round_means(of.values, SNIA_ROUNDS)


def drift(of: Level, extension: float) -> list[Finding]:
    """The movement of the line over ``extension`` times the part's length, and the bound of its interval.

    ``extension`` is the length of the run / the length of the part, 1 or more.
    """
    moved = abs(of.drift) * extension
    error = extension * float(np.sqrt(12 * of.variance / len(of.values)))
    bound = moved + float(stdtrit(of.terms, CONFIDENCE)) * error
    undecided = "too noisy or the run too short to tell"
    # Where the interval holds zero, the estimate itself may be chance.
    chance = f", if at all: it is {undecided}" if moved > DRIFT and bound > 2 * moved else ""
    beyond = f"is {undecided}: it " if bound > DRIFT_BOUND else ""
    return [
        ("drift", moved, DRIFT, f"drifted by {percent(moved)} over the run (limit 12.5 %){chance}"),
        ("bound", bound, DRIFT_BOUND, f"{beyond}may have drifted by {percent(bound)} over the run (limit 20 %)"),
    ]


def end(of: Level, extension: float) -> list[Finding]:
    """How far the mean of the last samples lies outside the range of the means of equally long windows before the last
    fifth; a share of the mean. ``extension`` is not used."""
    count = len(of.values)
    total = np.concatenate([[0.0], np.cumsum(of.values)])
    furthest, ended = 0.0, float(of.values[-1])
    for share in END_SHARES:
        samples = max(END_LEAST, round(share * count))
        means = (total[samples:] - total[:-samples]) / samples
        last, earlier = float(means[-1]), means[: round((1 - LATE) * count) - samples + 1]
        outside = max(float(earlier.min()) - last, last - float(earlier.max()))
        if outside > furthest:
            furthest, ended = outside, last
    ended = max(0.0, ended)  # without its beat a series may be below zero
    words = (
        f"ended at {ended:.2f} of its mean, outside of all before its last fifth by {percent(furthest)} (limit 10 %)"
    )
    return [("end", furthest, END_MARGIN, words)]


Check = Callable[[Level, float], list[Finding]]
SERIES_CHECKS: dict[str, Check] = {"cusum": cusum, "window": window, "drift": drift, "end": end}
WRITES = "writes"
CHECKS = (*SERIES_CHECKS, WRITES)


def scatter(means: Array) -> float:
    """Standard deviation of rounds from the median difference of neighbours, which a single step does not change."""
    return float(np.median(np.abs(np.diff(means)))) / MEDIAN_DIFFERENCE


def percent(share: float) -> str:
    """A share as a percentage; a very large one is shortened."""
    return f"{100 * share:.0f} %" if share < 100 else "more than 10,000 %"
