"""Made series of known kinds, for the error rates of the verdict.

Each kind draws its shape anew for every series, within the ranges that its words give. t runs from 0 to 1 over the run;
noise is a share of the level, normal, and multiplies it. AR(1): x_i = phi x_{i-1} + e_i, scaled so that its standard
deviation is the noise.

A kind is steady when its level is constant from 0.3 of the run on at the latest, whatever the noise and the beat about
it, and moves when its level does so later by 20 % or more. What lies between is neither, and not here.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.signal import lfilter

from spillway.steady.series import Array

Columns = dict[str, Array]
Make = Callable[[np.random.Generator, int, float], Columns]
WARM_UP = 200  # samples until an AR(1) has forgotten how it began: 0.8^200 = 4e-20


@dataclass(frozen=True)
class Kind:
    """One kind of series: what it is, whether it is steady, and with which noises it is made."""

    name: str
    steady: bool
    noises: tuple[float, ...]
    make: Make


def _alone(shape: Callable[[np.random.Generator, Array], Array], phi: float = 0.0, name: str = "throughput") -> Make:
    return lambda rng, count, noise: {name: _noisy(rng, shape(rng, np.linspace(0, 1, count)), noise, phi)}


def _three_series(falls: float, rises: float) -> Make:
    """Three series: throughput with the noise, wa_app and wa_device with 3 %."""

    def make(rng: np.random.Generator, count: int, noise: float) -> Columns:
        t = np.linspace(0, 1, count)
        return {
            "throughput": _noisy(rng, 1 - falls * t, noise),
            "wa_app": _noisy(rng, np.full(count, 4.0), 0.03),
            "wa_device": _noisy(rng, 1.5 * (1 + rises * t), 0.03),
        }

    return make


def _noisy(rng: np.random.Generator, level: Array, noise: float, phi: float = 0.0) -> Array:
    draws = rng.standard_normal(len(level) + WARM_UP)
    related = lfilter([1.0], [1.0, -phi], draws)[WARM_UP:] * np.sqrt(1 - phi * phi) if phi else draws[WARM_UP:]
    return np.maximum(0.0, level * (1 + noise * related))


def _flat(rng: np.random.Generator, t: Array) -> Array:
    return np.ones_like(t)


def _saw(rng: np.random.Generator, t: Array) -> Array:
    return 1 + rng.uniform(0.2, 0.6) * ((t * _beats(rng, t) + rng.random()) % 1 - 0.5)


def _square(rng: np.random.Generator, t: Array) -> Array:
    return 1 + rng.uniform(0.1, 0.3) * np.where((t * _beats(rng, t) + rng.random()) % 1 < 0.5, 1, -1)


def _beats(rng: np.random.Generator, t: Array) -> float:
    return float(rng.uniform(5, min(40, len(t) / 5)))


def _dips(rng: np.random.Generator, t: Array) -> Array:
    """A tenth of the time at half of the level, 6 to 30 times, each up to a quarter early or late."""
    beats = int(rng.integers(6, min(30, len(t) // 8) + 1))
    place = (np.arange(beats + 1) + rng.uniform(-0.25, 0.25, beats + 1)) / beats
    return np.where((np.abs(t[:, None] - place) < 0.05 / beats).any(axis=1), 0.5, 1.0)


def _burst(rng: np.random.Generator, t: Array) -> Array:
    return np.where(t < rng.uniform(0.05, 0.3), rng.uniform(1.3, 3), 1.0)


def _ramp(rng: np.random.Generator, t: Array) -> Array:
    return np.minimum(1, 1 - rng.uniform(0.3, 1) * (1 - t / rng.uniform(0.05, 0.3)))


def _approach(rng: np.random.Generator, t: Array) -> Array:
    return 1 + rng.uniform(-0.7, 1) * np.exp(-t / rng.uniform(0.02, 0.08))


def _moves(by: float) -> Callable[[np.random.Generator, Array], Array]:
    return lambda rng, t: 1 + by * t


def _falls_with_beat(rng: np.random.Generator, t: Array) -> Array:
    return (1 - 0.2 * t) * _saw(rng, t)


def _moves_late(rng: np.random.Generator, t: Array) -> Array:
    since = rng.uniform(0.4, 0.9)
    return 1 + _either(rng, 0.25, 0.5) * np.maximum(0, (t - since) / (1 - since))


def _falls_at_the_end(rng: np.random.Generator, t: Array) -> Array:
    since = rng.uniform(0.7, 0.9)
    return 1 - 0.2 * np.maximum(0, (t - since) / (1 - since))


def _steps(rng: np.random.Generator, t: Array) -> Array:
    return np.where(t < rng.uniform(0.5, 0.9), 1, 1 + _either(rng, 0.2, 0.5))


def _collapses(rng: np.random.Generator, t: Array) -> Array:
    return np.where(t < 1 - rng.uniform(0.05, 0.1), 1, 1 - rng.uniform(0.4, 0.9))


def _approaches_slowly(rng: np.random.Generator, t: Array) -> Array:
    return 1 + _either(rng, 0.6, 0.8) * np.exp(-t / rng.uniform(0.3, 0.6))


def _swings(rng: np.random.Generator, t: Array) -> Array:
    swing = np.where((t * rng.uniform(1, 2.5) + rng.random()) % 1 < 0.5, 1, -1)
    return 1 + rng.uniform(0.2, 0.4) * swing


def _either(rng: np.random.Generator, least: float, most: float) -> float:
    return float(rng.uniform(least, most) * rng.choice([-1, 1]))


KINDS = (
    Kind("white noise", True, (0.01, 0.03, 0.05, 0.1), _alone(_flat)),
    Kind("three series of white noise", True, (0.05,), _three_series(0, 0)),
    Kind("AR(1), phi 0.3", True, (0.03, 0.05), _alone(_flat, 0.3)),
    Kind("AR(1), phi 0.6", True, (0.03, 0.05), _alone(_flat, 0.6)),
    Kind("AR(1), phi 0.8", True, (0.03, 0.05), _alone(_flat, 0.8)),
    Kind("saw-tooth, 5 beats or more of 20-60 %", True, (0.01, 0.05), _alone(_saw)),
    Kind("square wave, 5 beats or more of 20-60 %", True, (0.01, 0.05), _alone(_square)),
    Kind("uneven dips to half, 6-30", True, (0.05,), _alone(_dips)),
    Kind("burst of 5-30 % of the run, 1.3-3 times", True, (0.01, 0.05), _alone(_burst)),
    Kind("ramp-up over 5-30 % of the run", True, (0.01, 0.05), _alone(_ramp)),
    Kind("quick exponential approach", True, (0.01, 0.05), _alone(_approach)),
    Kind("fall by 20 %", False, (0.01, 0.03, 0.05, 0.1), _alone(_moves(-0.2))),
    Kind("fall by 20 %, of three series", False, (0.05,), _three_series(0.2, 0)),
    Kind("wa_device rises by 40 %", False, (0.01, 0.03, 0.05), _alone(_moves(0.4), name="wa_device")),
    Kind("wa_device rises by 40 %, of three series", False, (0.05,), _three_series(0, 0.4)),
    Kind("rise by 25 %", False, (0.03, 0.05), _alone(_moves(0.25))),
    Kind("fall by 20 %, AR(1), phi 0.6", False, (0.03, 0.05), _alone(_moves(-0.2), 0.6)),
    Kind("fall by 20 %, AR(1), phi 0.8", False, (0.03, 0.05), _alone(_moves(-0.2), 0.8)),
    Kind("fall by 20 % of a saw-tooth", False, (0.01, 0.05), _alone(_falls_with_beat)),
    Kind("drift of 25-50 % that begins late", False, (0.01, 0.05), _alone(_moves_late)),
    Kind("fall by 20 % in the last 10-30 %", False, (0.01, 0.05), _alone(_falls_at_the_end)),
    Kind("step of 20-50 % at 0.5-0.9 of the run", False, (0.01, 0.05), _alone(_steps)),
    Kind("collapse by 40-90 % in the last 5-10 %", False, (0.01, 0.05), _alone(_collapses)),
    Kind("slow exponential approach", False, (0.01, 0.05), _alone(_approaches_slowly)),
    Kind("square wave of 1-2.5 periods", False, (0.01, 0.05), _alone(_swings)),
)
