"""How often a comparison is right: equal sides judged equal, slowdowns found, intervals that contain the true value.

Sides are made with noise whose kind and size are known, and go through the same code as those of runs. A figure differs
from run to run by a standard deviation of ``noise``. *Drift* is a random walk of the machine with steps as large as the
noise: both sides of a turn have the same; sides that did not run in turns have it one after the other.

    normal   ln x ~ N(0, noise^2)
    skewed   x = 1 - e, e exponential with mean ``noise``: runs are slowed down, never sped up
    spoilt   normal, and one run in ten is slower by ten times the noise, at most by half

Every rate is a binomial share with Clopper and Pearson's 95 % interval.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import signal, stats

from spillway.compare.blocks import blocked
from spillway.compare.effects import LEVEL, Effect, combined, holm, paired, welch
from spillway.models.arrays import Array

Document = dict[str, Any]
Draw = Callable[[np.random.Generator, float, int], Array]

NOISES = (0.01, 0.02, 0.05, 0.10)
REPETITIONS = (3, 5, 10)
SLOWDOWN = 0.05


@dataclass(frozen=True)
class Rate:
    """``count`` of ``of`` comparisons."""

    count: int
    of: int

    @property
    def share(self) -> float:
        """Without unit; 0 of none."""
        return self.count / self.of if self.of else 0.0

    def interval(self) -> tuple[float, float]:
        """95 %, by Clopper and Pearson."""
        if not self.of:
            return 0.0, 1.0
        bounds = stats.binomtest(self.count, self.of).proportion_ci(LEVEL, "exact")
        return float(bounds.low), float(bounds.high)


def _normal(rng: np.random.Generator, noise: float, count: int) -> Array:
    return rng.normal(0.0, noise, count)


def _skewed(rng: np.random.Generator, noise: float, count: int) -> Array:
    return np.log(np.maximum(0.05, 1 - rng.exponential(noise, count)))


def _spoilt(rng: np.random.Generator, noise: float, count: int) -> Array:
    slower = np.where(rng.random(count) < 0.1, np.log(1 - min(0.5, 10 * noise)), 0.0)
    return rng.normal(0.0, noise, count) + slower


DRAWS: dict[str, Draw] = {"normal": _normal, "skewed": _skewed, "spoilt": _spoilt}


def by_repetitions(
    rng: np.random.Generator, draw: Draw, noise: float, count: int, effect: float, *, turns: bool, drift: bool = False
) -> Effect:
    """The effect found between two synthetic sides of ``count`` repetitions whose true ln(b / a) is ``effect``."""
    walk = np.cumsum(rng.normal(0.0, noise, 2 * count)) if drift else np.zeros(2 * count)
    a = walk[:count] + draw(rng, noise, count)
    b = (walk[:count] if turns else walk[count:]) + draw(rng, noise, count) + effect
    return paired(a, b) if turns else welch(a, b)


def _autocorrelated(memory: float, noise: float) -> Callable[[np.random.Generator, int], Array]:
    """AR(1) around 1: neighbouring samples are correlated by ``memory``; the standard deviation is ``noise``."""

    def make(rng: np.random.Generator, count: int) -> Array:
        burn_in = 400
        shocks = rng.normal(0.0, noise * np.sqrt(1 - memory**2), count + burn_in)
        return 1 + signal.lfilter([1.0], [1.0, -memory], shocks)[burn_in:]

    return make


def _beat(rng: np.random.Generator, count: int) -> Array:
    """Compaction's saw-tooth: some 40 samples a tooth, each of another length, 30 % up and down, 5 % noise."""
    teeth: list[Array] = []
    while sum(len(each) for each in teeth) < count + 120:
        teeth.append(np.linspace(1.3, 0.7, max(3, int(40 * rng.lognormal(0, 0.3)))))
    start = int(rng.integers(0, 80))
    return np.concatenate(teeth)[start : start + count] * (1 + rng.normal(0, 0.05, count))


def _stalls(rng: np.random.Generator, count: int) -> Array:
    """Stopped for some 10 samples after some 30 that run."""
    values = np.empty(0)
    running = bool(rng.random() < 0.75)
    while len(values) < count:
        values = np.append(values, np.full(rng.geometric(1 / (30 if running else 10)), 1.0 if running else 0.05))
        running = not running
    return values[:count] * (1 + rng.normal(0, 0.05, count))


SERIES = {
    "independent, 10 %": _autocorrelated(0.0, 0.10),
    "AR(1) 0.5, 10 %": _autocorrelated(0.5, 0.10),
    "AR(1) 0.9, 10 %": _autocorrelated(0.9, 0.10),
    "AR(1) 0.97, 10 %": _autocorrelated(0.97, 0.10),
    "saw-tooth": _beat,
    "stalls": _stalls,
}
LENGTHS = (300, 600, 3000)


def by_blocks(
    rng: np.random.Generator,
    make: Callable[[np.random.Generator, int], Array],
    samples: int,
    run_noise: float = 0.0,
    effect: float = 0.0,
) -> Effect | None:
    """The effect found between one synthetic run of each side, ``samples`` long; None where there are too few
    independent blocks. ``run_noise``: standard deviation between runs, a share."""
    seconds = np.ones(samples)
    levels = np.exp(rng.normal([0.0, effect], run_noise))
    found = [blocked(level * make(rng, samples), seconds) for level in levels]
    if found[0] is None or found[1] is None:
        return None
    a, b = found[0], found[1]
    return combined(float(np.log(a.value)), a.se / a.value, a.df, float(np.log(b.value)), b.se / b.value, b.df)


def equal_by_repetitions(times: int, seed: int) -> Iterator[Document]:
    """A/A from repetitions: how often equal sides are not told apart, for every kind of noise, in turns and not."""
    rng = np.random.default_rng([seed, 1])
    for name, draw in DRAWS.items():
        for noise in NOISES:
            for count in REPETITIONS:
                for turns, drift in ((True, False), (True, True), (False, False), (False, True)):
                    equal = sum(
                        by_repetitions(rng, draw, noise, count, 0.0, turns=turns, drift=drift).p > 1 - LEVEL
                        for _ in range(times)
                    )
                    what = {"noise": name, "run_to_run": noise, "repetitions": count}
                    yield what | {"in_turns": turns, "drift": drift} | _row_of(Rate(equal, times), "not_told_apart")


def covered(times: int, seed: int) -> Iterator[Document]:
    """How often the 95 % interval contains the true ratio, 0.9, also where one side is noisier than the other."""
    rng = np.random.default_rng([seed, 2])
    truth = float(np.log(0.9))
    for name, draw in DRAWS.items():
        for noise, other in ((0.01, 0.01), (0.05, 0.05), (0.10, 0.10), (0.01, 0.10)):
            # Where the noise differs so does its mean, of kinds that are not symmetric: that is part of the truth.
            centre = [float(draw(np.random.default_rng(seed), each, 1_000_000).mean()) for each in (noise, other)]
            for count in REPETITIONS:
                for turns in (True, False):
                    inside = 0
                    for _ in range(times):
                        a, b = draw(rng, noise, count), draw(rng, other, count) + truth
                        low, high = (paired if turns else welch)(a, b).interval()
                        inside += low <= truth + centre[1] - centre[0] <= high
                    what = {"noise": name, "run_to_run": [noise, other], "repetitions": count, "in_turns": turns}
                    yield what | _row_of(Rate(inside, times), "covered")


def power(times: int, seed: int) -> Iterator[Document]:
    """How often a slowdown of 5 % is found, and the slower side named."""
    rng = np.random.default_rng([seed, 3])
    for noise in NOISES[:3]:
        for count in REPETITIONS:
            for turns in (True, False):
                found = 0
                for _ in range(times):
                    effect = by_repetitions(rng, _normal, noise, count, float(np.log(1 - SLOWDOWN)), turns=turns)
                    found += effect.p <= 1 - LEVEL and effect.d < 0
                what = {"slowdown": SLOWDOWN, "run_to_run": noise, "repetitions": count, "in_turns": turns}
                yield what | _row_of(Rate(found, times), "found")


def one_run_each(times: int, seed: int) -> Iterator[Document]:
    """A/A of one run each, by blocks: how often not told apart, with and without those that have too few blocks; also
    with noise between runs, which blocks do not contain."""
    rng = np.random.default_rng([seed, 4])
    for name, make in SERIES.items():
        for samples in LENGTHS:
            for run_noise in (0.0, 0.02):
                effects = [by_blocks(rng, make, samples, run_noise) for _ in range(times)]
                judged = [each for each in effects if each is not None]
                equal = sum(each.p > 1 - LEVEL for each in judged)
                what = {"series": name, "samples": samples, "run_to_run": run_noise}
                refused = times - len(judged)
                yield (
                    what
                    | _row_of(Rate(equal + refused, times), "not_told_apart")
                    | {"too_few_blocks": refused, "covered_of_those_judged": Rate(equal, len(judged)).share}
                )


def several_arms(times: int, seed: int) -> Iterator[Document]:
    """A/A with one to four arms against the first, five turns: how often none differs, by Holm's steps."""
    rng = np.random.default_rng([seed, 5])
    for others in (1, 2, 4):
        none = 0
        for _ in range(times):
            runs = rng.normal(0.0, 0.02, (others + 1, 5))
            verdicts = holm([paired(runs[0], each).p for each in runs[1:]])
            none += not any(differs for differs, _ in verdicts)
        yield {"arms": others + 1, "run_to_run": 0.02, "repetitions": 5} | _row_of(Rate(none, times), "none_differs")


def rivals(times: int, seed: int) -> Iterator[Document]:
    """The methods that were not taken against those that were: how often an interval from few repetitions contains the
    true difference."""
    rng = np.random.default_rng([seed, 6])
    for count in REPETITIONS:
        for name, inside in _RIVALS.items():
            hits = sum(inside(rng.normal(0, 0.02, count), rng.normal(0, 0.02, count)) for _ in range(times))
            yield {"method": name, "repetitions": count} | _row_of(Rate(hits, times), "covered")


def _bootstrap(a: Array, b: Array) -> bool:
    found = stats.bootstrap(
        (b - a,), np.mean, n_resamples=999, confidence_level=LEVEL, method="BCa", rng=np.random.default_rng(1)
    ).confidence_interval
    return bool(found.low <= 0 <= found.high)


def _signs(a: Array, b: Array) -> bool:
    """The p of all permutations of signs is above 5 %."""
    d = b - a
    signs = 1 - 2 * ((np.arange(2 ** len(d))[:, None] >> np.arange(len(d))) & 1)
    sums = np.abs(signs @ d)
    return bool((sums >= abs(d.sum()) * (1 - 1e-9)).mean() > 1 - LEVEL)


_RIVALS: dict[str, Callable[[Array, Array], bool]] = {
    "t of pairs": lambda a, b: paired(a, b).p > 1 - LEVEL,
    "Welch": lambda a, b: welch(a, b).p > 1 - LEVEL,
    "bootstrap (BCa) of pairs": _bootstrap,
    "permutation of signs": _signs,
}


def _row_of(rate: Rate, name: str) -> Document:
    low, high = rate.interval()
    return {name: rate.share, "low": low, "high": high, "comparisons": rate.of}


STUDIES: dict[str, Callable[[int, int], Iterator[Document]]] = {
    "equal_by_repetitions": equal_by_repetitions,
    "covered": covered,
    "power": power,
    "one_run_each": one_run_each,
    "several_arms": several_arms,
    "rivals": rivals,
}
