"""Whether a run has kept the rate that was asked of it, from what it recorded.

A rate is an open loop's: each operation has an intended start, and its latency runs from there, so that an engine that
falls behind shows in latency and in operations that were due and not started. Of each measured phase that writes, with
rate r and length T, a rate is kept when

p99, worst   p99 and maximum of its writes' latency are within the limits given. Operations that were not started when
             the phase ended are in no latency; the oldest of them had waited for about their number / r, which counts
             as a worst write.
achieved     the operations done come to at least 99 % of those offered, r T (of bursts: what their periods have; of
             Poisson's process less 3 standard deviations, 3 sqrt(r T)).
backlog      at most 1 % of those offered were not started at the end.
growth       The backlog does not grow: w, the mean latency of each sample, does not rise along a least-squares line. A
             store that does c operations a second, c < r, leaves a wait that rises by 1 - c / r in each second. It
             grows where that slope is more than 0.25 % and the bound of its 95 % interval, by the noise of
             spillway/steady/checks.py, is above zero. A sample in which nothing was done has the latency of the next.
throughput   It does not fall: the line through operations a second falls by no more than spillway/steady allows a
             drift (12.5 %), or by less than its noise.

And the run is complete. Holds for phases of at least 25 samples. Ignores what would happen after the run's end: a rate
that is kept for a minute may not be kept for an hour, when the drive collects garbage or levels have filled. Whether
the run was steady is said beside it.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import stdtrit

from spillway.samples import Row
from spillway.steady.checks import DRIFT, level
from spillway.steady.series import LEAST_SAMPLES, Array

Document = dict[str, Any]

MARGIN = 0.01  # of what was offered, for achieved and backlog. Source: guess; a p99 sees no less
SIGMAS = 3.0  # of Poisson's count
GROWTH = 0.0025  # of a second in each. Source: guess: in an hour 9 s
CONFIDENCE = 0.95  # of one side


@dataclass(frozen=True)
class Limits:
    """What a write may take, in seconds; None: no limit."""

    p99_s: float | None = None
    worst_s: float | None = None


@dataclass(frozen=True)
class Judged:
    """What a phase, or the worst of several, came to."""

    offered_ops_s: float
    achieved_ops_s: float
    p99_s: float | None  # of writes, from their intended starts
    worst_s: float | None
    backlog: float  # operations due and not started at the end
    growth: float | None  # by which the wait rises, seconds in each second; None: not known
    reasons: tuple[str, ...]  # why the rate was not kept; none: it was


def judge_phase(
    phase: Document, ended: Document, rows: Sequence[Row], limits: Limits, key: str = "rate_ops_s"
) -> Judged:
    """The verdict on one phase: as the plan has it (``key`` is its rate's), as it ended, and its samples."""
    seconds = min(float(ended["duration_s"]), phase["duration_s"])  # a write under way at the end is waited for
    offered = offered_operations(phase, key, seconds)
    rate = offered / seconds
    done = float(ended["operations"] if key == "rate_ops_s" else ended["writes"])
    backlog = float(ended.get("not_started") or 0)
    latency = ended["write_latency_us"]
    some = bool(latency.get("count", 1))
    waited = backlog / rate
    p99 = latency["p99"] / 1e6 if some else None
    worst = max(latency["max"] / 1e6 if some else 0.0, waited) if some or backlog else None
    rise = slope(filled([row.get("write_latency_mean_us") for row in rows]) / 1e6, seconds)
    growth, surely = rise if rise is not None else (None, 0.0)
    reasons = []
    if limits.p99_s is not None and p99 is not None and p99 > limits.p99_s:
        reasons.append(f"p99 of writes was {time_words(p99)} (limit {time_words(limits.p99_s)})")
    if limits.worst_s is not None and worst is not None and worst > limits.worst_s:
        what = f"{backlog:,.0f} operations waited at the end, for" if worst == waited else "the worst write took"
        reasons.append(f"{what} {time_words(worst)} (limit {time_words(limits.worst_s)})")
    slack = SIGMAS * math.sqrt(offered) if phase["arrivals"] == "poisson" and key == "rate_ops_s" else 0.0
    if done < (1 - MARGIN) * offered - slack:
        reasons.append(f"{done / seconds:,.0f} operations/s were done of {rate:,.0f} offered")
    if backlog > MARGIN * offered:
        reasons.append(f"{backlog:,.0f} operations were not started at the end")
    if growth is not None and growth > GROWTH and surely > 0:
        reasons.append(f"the backlog grew: waits rose by {time_words(growth)} in each second")
    if (fell := _fall(rows)) is not None:
        reasons.append(f"throughput fell by {100 * fell:.0f} % over the run")
    return Judged(rate, done / seconds, p99, worst, backlog, growth, tuple(reasons))


def worst_of(judged: Sequence[Judged]) -> Judged:
    """Several phases, or repetitions, in one: each figure as the worst of them has it, every reason once."""
    return Judged(
        max(each.offered_ops_s for each in judged),
        min((each.achieved_ops_s / each.offered_ops_s, each.achieved_ops_s) for each in judged)[1],
        _most([each.p99_s for each in judged]),
        _most([each.worst_s for each in judged]),
        max(each.backlog for each in judged),
        _most([each.growth for each in judged]),
        tuple(dict.fromkeys(reason for each in judged for reason in each.reasons)),
    )


def offered_operations(phase: Document, key: str, seconds: float) -> float:
    """How many operations were due on average within the phase's first ``seconds``."""
    rate: float = phase[key]
    if phase["arrivals"] != "bursts" or key != "rate_ops_s":
        return rate * seconds
    burst, gap, gap_rate = phase["burst_s"], phase["gap_s"], phase["gap_rate_ops_s"] or 0.0
    whole, rest = divmod(seconds, burst + gap)
    in_bursts = whole * burst + min(rest, burst)
    return float(rate * in_bursts + gap_rate * (seconds - in_bursts))


def filled(values: Sequence[float | None]) -> Array:
    """Each missing value as the next one that is there, at the end as the last; empty where none is."""
    series = np.array([np.nan if value is None else value for value in values], dtype=float)
    known = np.flatnonzero(~np.isnan(series))
    if not known.size:
        return np.array([])
    after = np.searchsorted(known, np.arange(len(series)))
    return np.asarray(series[known[np.minimum(after, known.size - 1)]], dtype=float)


def slope(values: Array, seconds: float) -> tuple[float, float] | None:
    """The slope of the line through ``values``, which are spread over ``seconds``, and the lower bound of its one-sided
    interval. None where there are too few to tell."""
    if len(values) < LEAST_SAMPLES or not values.mean() > 0:
        return None
    seen, mean = level(values), float(values.mean())
    error = math.sqrt(12 * seen.variance / len(values))
    bound = seen.drift - float(stdtrit(seen.terms, CONFIDENCE)) * error
    return seen.drift * mean / seconds, bound * mean / seconds


def _fall(rows: Sequence[Row]) -> float | None:
    """By which share of its mean throughput fell over the samples; None where it did not, or that cannot be told."""
    rates = np.array([(row["reads"] + row["writes"]) / row["dt_s"] for row in rows if row["dt_s"] > 0])
    seen = slope(rates, 1.0)
    if seen is None:
        return None
    mean = float(rates.mean())
    fell = -seen[0] / mean
    error = (seen[0] - seen[1]) / mean  # the interval is as wide on both sides
    return fell if fell > DRIFT and fell - error > 0 else None


def _most(values: Sequence[float | None]) -> float | None:
    return max((value for value in values if value is not None), default=None)


def time_words(seconds: float) -> str:
    """A time for people: ``850 µs``, ``12.3 ms``, ``2.5 s``."""
    if seconds < 0.9995e-3:
        return f"{1e6 * seconds:.3g} µs"
    if seconds < 0.9995:
        return f"{1e3 * seconds:.3g} ms"
    return f"{seconds:.3g} s" if seconds < 999.5 else f"{seconds:,.0f} s"
