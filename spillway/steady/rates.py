"""How often the verdict is wrong on made series: a false alarm on a steady one, a miss on one that moves.

Each rate stands with its Wilson interval at 95 %.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.stats import binomtest

from spillway.steady.synthetic import KINDS, Kind
from spillway.steady.verdict import judge_arrays

LENGTHS = (60, 120, 300, 1000, 3000)


@dataclass(frozen=True)
class Rate:
    """How many verdicts on one kind, noise and length were wrong."""

    kind: str
    steady: bool
    noise: float
    samples: int
    series: int
    wrong: int

    @property
    def rate(self) -> float:
        """Share of wrong verdicts."""
        return self.wrong / self.series

    def interval(self) -> tuple[float, float]:
        """Of the rate, at 95 %."""
        found = binomtest(self.wrong, self.series).proportion_ci(0.95, method="wilson")
        return float(found.low), float(found.high)

    def document(self) -> dict[str, Any]:
        """For JSON."""
        low, high = self.interval()
        facts = {name: getattr(self, name) for name in ("kind", "steady", "noise", "samples", "series", "wrong")}
        return facts | {"rate": self.rate, "low": round(low, 5), "high": round(high, 5)}


def error_rates(
    series: int,
    seed: int,
    kinds: Sequence[Kind] = KINDS,
    lengths: Sequence[int] = LENGTHS,
    watch: Callable[[Rate], None] = lambda rate: None,
) -> list[Rate]:
    """Judges ``series`` synthetic series of every kind, noise and length. ``watch`` is called with each rate when it is
    known."""
    rates = []
    for kind in kinds:
        for noise in kind.noises:
            for samples in lengths:
                rates.append(
                    Rate(kind.name, kind.steady, noise, samples, series, _wrong(kind, noise, samples, series, seed))
                )
                watch(rates[-1])
    return rates


def _wrong(kind: Kind, noise: float, samples: int, series: int, seed: int) -> int:
    rng = np.random.default_rng([seed, samples, round(1e4 * noise), *kind.name.encode()])
    times = np.arange(1.0, samples + 1)
    return sum(judge_arrays(times, kind.make(rng, samples, noise)).steady != kind.steady for _ in range(series))
