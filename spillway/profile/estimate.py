"""From samples to parameters: each with a 95 % interval, or unknown where the points do not determine it.

latency       mean of 4 KiB random operations, one at a time; Student's t over the repeats
k_r, k_w      where bandwidth saturates, and where latency bends (spillway/fit/knee.py, P14), for each access size
alpha         largest read over largest write bandwidth (P2); by slopes where software caps both (P17, T14)
sigma … alpha least squares of the page cost against p = r/100, for each k (spillway/fit/curves.py, M24)
"""

import math
from collections.abc import Iterable, Sequence

import numpy as np
from scipy.stats import t as student_t

from spillway.errors import SpillwayError
from spillway.fit import curves as fit
from spillway.fit import knee
from spillway.fit.interval import Interval
from spillway.profile.document import UNKNOWN, Estimate, Mqssd, Pio
from spillway.profile.grids import LATENCY_BYTES
from spillway.profile.points import Sample

OPS = ("read", "write")


def curve(samples: Iterable[Sample], pattern: str, op: str, bs_bytes: int) -> tuple[list[int], list[float]]:
    """(concurrencies, IOPS) of PIO's samples of one kind, in the order of measuring."""
    chosen = pio_samples(samples, pattern, op, bs_bytes)
    return [sample.k for sample in chosen], [sample.iops for sample in chosen]


def pio_samples(samples: Iterable[Sample], pattern: str, op: str, bs_bytes: int) -> list[Sample]:
    """PIO's samples of one kind."""
    return [s for s in samples if (s.procedure, s.pattern, s.op, s.bs_bytes) == ("pio", pattern, op, bs_bytes)]


def latency(samples: Sequence[Sample], op: str) -> Estimate:
    """Mean latency of one 4 KiB random operation at a time, us (Table 1 of PIO)."""
    means = [s.latency_mean_us for s in pio_samples(samples, "random", op, LATENCY_BYTES) if s.k == 1]
    return mean_of(means)


def mean_of(values: Sequence[float]) -> Estimate:
    """The mean with Student's interval; of one value the interval is not known."""
    if not values:
        return UNKNOWN
    mean = float(np.mean(values))
    if len(values) == 1:
        return Estimate(mean, math.nan, math.nan)
    reach = float(student_t.ppf(0.975, len(values) - 1) * np.std(values, ddof=1) / math.sqrt(len(values)))
    return Estimate(mean, mean - reach, mean + reach)


def pio(samples: Sequence[Sample], bs_bytes: int) -> Pio | None:
    """PIO's parameters for random accesses of ``bs_bytes``; None without a single usable curve. Raises SpillwayError
    for curves with too few concurrencies."""
    knees = {op: _knee(samples, op, bs_bytes) for op in OPS}
    if not any(knees.values()):
        return None
    read, write = knees["read"], knees["write"]
    alpha, rule = _alpha(samples, bs_bytes, read, write)
    return Pio(
        alpha,
        _of(read.k) if read else UNKNOWN,
        _of(write.k) if write else UNKNOWN,
        _bend(samples, "read", bs_bytes),
        _bend(samples, "write", bs_bytes),
        rule,
        read.plateau.value * bs_bytes / 1e6 if read else math.nan,
        write.plateau.value * bs_bytes / 1e6 if write else math.nan,
    )


def _knee(samples: Sequence[Sample], op: str, bs_bytes: int) -> knee.Knee | None:
    ks, iops = curve(samples, "random", op, bs_bytes)
    return knee.from_bandwidth(ks, iops) if len(set(ks)) >= knee.MIN_POINTS else None


def _bend(samples: Sequence[Sample], op: str, bs_bytes: int) -> Estimate:
    chosen = pio_samples(samples, "random", op, bs_bytes)
    if len({s.k for s in chosen}) < knee.MIN_POINTS:
        return UNKNOWN
    return _of(knee.from_latency([s.k for s in chosen], [s.latency_mean_us for s in chosen]))


def _alpha(
    samples: Sequence[Sample], bs_bytes: int, read: knee.Knee | None, write: knee.Knee | None
) -> tuple[Estimate, str]:
    if read is None or write is None:
        return UNKNOWN, "bandwidth"
    if knee.looks_capped(read, write):
        try:
            slopes = (*curve(samples, "random", "read", bs_bytes), *curve(samples, "random", "write", bs_bytes))
            return _of(knee.alpha_from_slopes(*slopes)), "slope"
        except SpillwayError:
            pass  # too few points below the cap: the ratio of bandwidths is what there is
    return _of(knee.alpha(read, write)), "bandwidth"


def _of(interval: Interval) -> Estimate:
    return Estimate(float(interval.value), float(interval.low), float(interval.high))


def mqssd_costs(samples: Iterable[Sample], op: str) -> dict[int, tuple[Estimate, Estimate, float]]:
    """k → (set-up cost, page cost, R2), costs in us; concurrencies with too few r are left out."""
    by_k: dict[int, list[Sample]] = {}
    for sample in samples:
        if sample.procedure == "mqssd" and sample.op == op:
            by_k.setdefault(sample.k, []).append(sample)
    costs = {}
    for k, chosen in sorted(by_k.items()):
        try:
            line = fit.fit_line([s.r_percent or 0.0 for s in chosen], [s.page_cost_us for s in chosen])
        except SpillwayError:
            continue
        costs[k] = (_of(line.setup_us), _of(line.page_us), line.r_squared)
    return costs


def mqssd(samples: Sequence[Sample]) -> dict[int, Mqssd]:
    """MQSSD's costs by k (M24)."""
    writes, reads = mqssd_costs(samples, "write"), mqssd_costs(samples, "read")
    unknown = (UNKNOWN, UNKNOWN, math.nan)
    found = {}
    for k in sorted(writes.keys() | reads.keys()):
        sigma, beta, r2_write = writes.get(k, unknown)
        tau, alpha, r2_read = reads.get(k, unknown)
        found[k] = Mqssd(sigma, beta, tau, alpha, r2_write, r2_read)
    return found
