"""How much more one side has than the other, with an interval: from repetitions, by Student's t on logarithms.

    pairs    d_i = ln b_i - ln a_i,   d = mean d_i,   se = s(d_i) / sqrt(n),                     df = n - 1
    Welch    d = mean ln b - mean ln a,   se^2 = s_a^2 / n_a + s_b^2 / n_b,   df by Welch and Satterthwaite

d is the logarithm of the ratio b / a, so its interval d -+ t(df) se is one of the ratio. A share that may be 0 has no
logarithm: it is compared by the difference, with the same formulas on the shares themselves.

Pairs where the arms ran in turns: the machine's other load during a turn, and the seed, affect both. It also makes the
differences symmetric when nothing differs, however skewed the noise is, which is what t needs of three to five values.
Not used, for at five repetitions they cannot or do not do it (``spillway/compare/rates.py`` shows the rates): a
permutation of signs has no p below 2/32, a bootstrap (BCa) covers less than it says, Hodges-Lehmann's interval at 95 %
is the whole range.

Range: noise with a second moment. One wild repetition of five widens the interval and does not narrow it. Ignored: what
is systematic about coming first or second in a turn.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import stats

from spillway.models.arrays import Array

LEVEL = 0.95
_WIDEST = 700.0  # a ratio of e^700 is the largest that a float has; nobody reads what two wild repetitions span
_ROUNDING = 1e-12  # of a logarithm of a ratio of two figures that are the same but for their last bit


@dataclass(frozen=True)
class Effect:
    """B against A: ``d`` is ln(b / a), or b - a of a share. ``slack``: most that d may be off because of how the figure
    is counted (a histogram's step), whatever the number of repetitions."""

    d: float
    se: float
    df: float
    slack: float = 0.0

    def interval(self, level: float = LEVEL) -> tuple[float, float]:
        """The bounds of d."""
        half = self.slack + (float(stats.t.ppf((1 + level) / 2, self.df)) * self.se if self.se else 0.0)
        return max(-_WIDEST, self.d - half), min(_WIDEST, self.d + half)

    @property
    def p(self) -> float:
        """Probability that equal sides are so far apart, or further (two-sided)."""
        beyond = abs(self.d) - self.slack
        if beyond <= _ROUNDING:
            return 1.0
        return float(2 * stats.t.sf(beyond / self.se, self.df)) if self.se else 0.0


def paired(a: Array, b: Array, slack: float = 0.0) -> Effect:
    """The effect from repetitions that ran in turns: logarithms, or shares; equally long, at least two."""
    d = np.asarray(b) - np.asarray(a)
    return Effect(float(d.mean()), _deviation(d) / math.sqrt(len(d)), len(d) - 1, slack)


def welch(a: Array, b: Array, slack: float = 0.0) -> Effect:
    """The effect from repetitions that did not run in turns: logarithms, or shares; at least two of each side."""
    a, b = np.asarray(a), np.asarray(b)
    return combined(
        float(a.mean()), _deviation(a) / math.sqrt(len(a)), len(a) - 1,
        float(b.mean()), _deviation(b) / math.sqrt(len(b)), len(b) - 1,
        slack,
    )  # fmt: skip


def combined(a: float, se_a: float, df_a: float, b: float, se_b: float, df_b: float, slack: float = 0.0) -> Effect:
    """The effect of two independent estimates a and b, each with its standard error and degrees of freedom (Welch and
    Satterthwaite)."""
    variance = se_a**2 + se_b**2
    if variance == 0:
        return Effect(b - a, 0.0, df_a + df_b, slack)
    df = variance**2 / (se_a**4 / df_a + se_b**4 / df_b)
    return Effect(b - a, math.sqrt(variance), df, slack)


def _deviation(values: Array) -> float:
    """The standard deviation of a sample; 0 where all are one figure but for the last bits."""
    spread = float(np.std(values, ddof=1))
    return spread if spread > _ROUNDING else 0.0


def holm(p: Sequence[float], alpha: float = 1 - LEVEL) -> list[tuple[bool, float]]:
    """For each of several comparisons (differs, level of the interval that says the same), by Holm's steps. ``p``:
    their p values; ``alpha``: of all together.

    The least p is compared with alpha / m, the next with alpha / (m - 1), and so on; from the first that fails on none
    differs, and those have the level of the step that failed. With probability 1 - alpha no comparison of equal sides
    is said to differ.
    """
    order = sorted(range(len(p)), key=lambda i: p[i])
    result = [(False, 1 - alpha)] * len(p)
    failed: float | None = None
    for step, index in enumerate(order):
        share = alpha / (len(p) - step) if failed is None else failed
        if failed is None and p[index] > share:
            failed = share
        result[index] = (failed is None, 1 - share)
    return result
