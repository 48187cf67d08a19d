"""Whether a run has kept its rate, from what it recorded.

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
throughput   It does not fall: the line through operations a second, less what is due in each sample beyond the mean,
             falls by no more than spillway/steady allows a drift (12.5 %), or by less than its noise.

And the run is complete. Of a phase that goes on ``until = "steady"`` the same holds of its steady part alone: what was
offered and done in its samples, their worst write, and an upper bound of their p99, since percentiles of samples cannot
be added up. Of a sample's n writes at most 0, 0.001 n, 0.01 n, 0.5 n took longer than v where v is at least its
maximum, p99.9, p99, median, and at most n mean / v. The bound is the least of all these percentiles that at most 1 % of
all writes can have been beyond.

Holds for phases of at least 25 samples. Ignores what would happen after the run's end: a rate
that is kept for a minute may not be kept for an hour, when the drive collects garbage or levels have filled. Whether
the run was steady is reported with it.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import stdtrit

from spillway.rundir.samples import Row
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
    """The figures of a phase, or the worst of several."""

    offered_ops_s: float
    achieved_ops_s: float
    p99_s: float | None  # of writes, from their intended starts
    worst_s: float | None
    backlog: float  # operations due and not started at the end
    growth: float | None  # by which the wait rises, seconds in each second; None: not known
    reasons: tuple[str, ...]  # why the rate was not kept; none: it was


@dataclass(frozen=True)
class _Part:
    """What is judged of a phase: latencies in seconds, None where there was no write."""

    seconds: float
    offered: float  # operations that were due
    done: float
    p99_s: float | None
    worst_s: float | None
    rows: Sequence[Row]  # that tell whether waits rise and throughput falls
    bounded: bool = False  # p99 is an upper bound


def judge_phase(
    phase: Document,
    ended: Document,
    rows: Sequence[Row],
    limits: Limits,
    key: str = "rate_ops_s",
    steady: Sequence[Row] | None = None,
) -> Judged:
    """The verdict on one phase: ``phase`` as the plan has it, ``ended`` as it ended, ``rows`` its samples. ``key``: the
    phase's key that holds the rate.

    ``steady``: the last of its samples, which alone are judged; None: the whole phase.
    """
    part = _whole(phase, ended, rows, key) if steady is None else _end_of(phase, ended, rows, steady, key)
    seconds, offered, done, p99 = part.seconds, part.offered, part.done, part.p99_s
    rate = offered / seconds
    backlog = float(ended.get("not_started") or 0)
    waited = backlog / rate
    worst = max(part.worst_s or 0.0, waited) if part.worst_s is not None or backlog else None
    rise = slope(
        filled([row.get("write_latency_mean_us") for row in part.rows]) / 1e6, sum(row["dt_s"] for row in part.rows)
    )
    growth, surely = rise if rise is not None else (None, 0.0)
    reasons = []
    if limits.p99_s is not None and p99 is not None and p99 > limits.p99_s:
        was = "may have been" if part.bounded else "was"
        reasons.append(f"p99 of writes {was} {time_words(p99)} (limit {time_words(limits.p99_s)})")
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
    due = _due(phase, key, rows)[len(rows) - len(part.rows) :]
    if (fell := _fall(part.rows, due)) is not None:
        reasons.append(f"throughput fell by {100 * fell:.0f} % over the run")
    return Judged(rate, done / seconds, p99, worst, backlog, growth, tuple(reasons))


def _whole(phase: Document, ended: Document, rows: Sequence[Row], key: str) -> _Part:
    seconds = min(float(ended["duration_s"]), phase["duration_s"])  # a write under way at the end is waited for
    latency = ended["write_latency_us"]
    some = bool(latency.get("count", 1))
    return _Part(
        seconds,
        offered_operations(phase, key, seconds),
        float(ended["operations"] if key == "rate_ops_s" else ended["writes"]),
        latency["p99"] / 1e6 if some else None,
        latency["max"] / 1e6 if some else None,
        rows,
    )


def _end_of(phase: Document, ended: Document, rows: Sequence[Row], steady: Sequence[Row], key: str) -> _Part:
    """The last samples of a phase; all of it where that is all of them, or nothing was due in them."""
    before = sum(row["dt_s"] for row in rows[: len(rows) - len(steady)])
    seconds = sum(row["dt_s"] for row in steady)
    offered = offered_operations(phase, key, before + seconds) - offered_operations(phase, key, before)
    if len(steady) == len(rows) or not offered > 0:
        return _whole(phase, ended, rows, key)
    done = sum(row["writes"] + (row["reads"] if key == "rate_ops_s" else 0.0) for row in steady)
    known = [worst for row in steady if (worst := row.get("write_latency_max_us")) is not None]
    # Of few samples nothing is known of growth: the burst before them then counts too.
    return _Part(
        seconds,
        offered,
        done,
        p99_at_most(steady),
        max(known) / 1e6 if known else None,
        steady if len(steady) >= LEAST_SAMPLES else rows,
        bounded=True,
    )


_MARKS = (("max", 0.0), ("p99_9", 0.001), ("p99", 0.01), ("p50", 0.5))  # and the share of writes above each


def p99_at_most(rows: Sequence[Row]) -> float | None:
    """An upper bound of the p99 of the writes of some samples, in seconds; see above. None: none was written."""
    writing = [row for row in rows if row["writes"] and row.get("write_latency_max_us") is not None]
    if not writing:
        return None
    counts, means = (np.array([row[name] for row in writing], float) for name in ("writes", "write_latency_mean_us"))
    marks = np.array([[row[f"write_latency_{name}_us"] for name, _ in _MARKS] for row in writing], float)
    shares = np.array([share for _, share in _MARKS])

    def holds(limit: float) -> bool:
        """Whether at most 1 % can have taken longer."""
        beyond = np.where(marks <= limit, shares, 1.0).min(axis=1)
        return float((counts * np.minimum(beyond, means / limit)).sum()) <= 0.01 * float(counts.sum())

    limits = np.unique(marks[marks > 0])
    low, high = 0, len(limits) - 1  # the largest is a maximum, which holds
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(float(limits[middle])) else (middle + 1, high)
    return float(limits[low]) / 1e6 if len(limits) else 0.0


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


def _due(phase: Document, key: str, rows: Sequence[Row]) -> Array:
    """The operations a second that were due in each sample of a phase."""
    ends = np.cumsum([0.0, *(row["dt_s"] for row in rows)])
    due = np.diff([offered_operations(phase, key, float(end)) for end in ends])
    return np.asarray(due / np.maximum(np.diff(ends), np.finfo(float).tiny), dtype=float)


def _fall(rows: Sequence[Row], due: Array) -> float | None:
    """By which share of its mean throughput fell over the samples, beside what was ``due`` in each; None where it did
    not, or that cannot be told."""
    there = [index for index, row in enumerate(rows) if row["dt_s"] > 0]
    done = np.array([(rows[index]["reads"] + rows[index]["writes"]) / rows[index]["dt_s"] for index in there])
    rates = done - due[there] + due[there].mean() if there else done
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
