"""Where to measure next on a drive whose time is short.

Uncertainty is counted as log(high / low) of what a parameter may be, so that a knee between 16 and 64 (1.4) and a cost
known to 20 % (0.2) compare. The rule: measure where it is largest.

    a knee of concurrency      between the two measured concurrencies it lies between, at their geometric mean
    the costs at a k that      as far apart as the costs at its two neighbours; measured at the r that is still missing
    was not measured
    a cost that was measured   its 95 % interval; the same points once more

Each repeat of a place counts for less (1 / repeats), so that one noisy point does not use up the budget.
"""

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from spillway.errors import SpillwayError
from spillway.fit import knee
from spillway.profile.estimate import curve, mqssd_costs
from spillway.profile.grids import COARSE_R_PERCENTS, THREADS
from spillway.profile.points import Point, Sample, mqssd_point, pio_point

MOST_REPEATS = 4
LARGEST_K = 1024  # in flight; beyond it a drive that still grows is left alone


@dataclass(frozen=True)
class Candidate:
    """Points that would narrow one parameter. ``uncertainty``: log(high / low) over the repeats, as above."""

    what: str
    uncertainty: float
    points: tuple[Point, ...]


def next_points(samples: Sequence[Sample], ops: tuple[str, ...], sizes: Sequence[int]) -> Candidate | None:
    """The points of the most uncertain parameter; None when each was repeated MOST_REPEATS times. ``sizes``: access
    sizes in bytes."""
    repeats = Counter(_place(sample) for sample in samples)
    found = [*_knees(samples, ops, sizes), *_costs(samples, ops)]
    weighed = [(_weight(candidate, repeats), candidate) for candidate in found]
    open_ = [(weight, candidate) for weight, candidate in weighed if weight > 0]
    return max(open_, key=lambda pair: pair[0])[1] if open_ else None


def _place(sample: Sample) -> tuple[object, ...]:
    return (sample.procedure, sample.pattern, sample.op, sample.bs_bytes, sample.k)


def _weight(candidate: Candidate, repeats: Counter[tuple[object, ...]]) -> float:
    done = max(repeats[(p.procedure, p.pattern, p.op, p.bs_bytes, p.k)] for p in candidate.points)
    return 0.0 if done >= MOST_REPEATS else candidate.uncertainty / max(1, done)


def bisections(samples: Sequence[Sample], ops: Iterable[str], sizes: Iterable[int]) -> list[Point]:
    """One point for each knee, in the middle of the step that holds it; none where the step cannot be halved.
    ``sizes``: access sizes in bytes."""
    done = {_place(sample) for sample in samples}
    points = [candidate.points[0] for candidate in _knees(samples, ops, sizes)]
    return [p for p in points if (p.procedure, p.pattern, p.op, p.bs_bytes, p.k) not in done and p.k <= LARGEST_K]


def _knees(samples: Sequence[Sample], ops: Iterable[str], sizes: Iterable[int]) -> list[Candidate]:
    found = []
    for op in ops:
        for bs in sizes:
            ks, rates = curve(samples, "random", op, bs)
            try:
                at = knee.from_bandwidth(ks, rates)
            except SpillwayError:
                continue
            measured = sorted(set(ks))
            k = _between(measured, at)
            width = math.log(min(at.k.high, 4 * measured[-1]) / at.k.low) if at.k.low > 0 else 0.0
            found.append(Candidate(f"k of {bs}-byte {op}s", width, (pio_point("random", op, bs, k),)))
    return found


def _between(measured: Sequence[int], at: knee.Knee) -> int:
    """The integer in the middle of the step that holds the knee; beyond the grid where the curve still grows."""
    if not at.saturated:
        return measured[-1] * 2 if measured[-1] < LARGEST_K else measured[-1]
    above = next((k for k in measured if k >= at.k.value), measured[-1])
    below = max((k for k in measured if k < above), default=above)
    middle = round(math.sqrt(above * below))
    return middle if below < middle < above else above


def _costs(samples: Sequence[Sample], ops: Iterable[str]) -> list[Candidate]:
    found = []
    for op in ops:
        costs = mqssd_costs(samples, op)
        for k, (setup, page, _) in costs.items():
            for name, cost in (("setup", setup), ("page", page)):
                width = cost.relative_width if math.isfinite(cost.relative_width) else 1.0
                r_percents = (100.0,) if name == "setup" else (COARSE_R_PERCENTS[0],)
                points = tuple(mqssd_point(op, k, r) for r in r_percents)
                found.append(Candidate(f"{name} cost of {op}s at k = {k}", min(width, 1.0), points))
        found += _missing(op, {k: setup.value for k, (setup, _, _) in costs.items()})
    return found


def _missing(op: str, setups: dict[int, float]) -> list[Candidate]:
    found = []
    for k in THREADS:
        below = max((m for m in setups if m < k), default=None)
        above = min((m for m in setups if m > k), default=None)
        if k in setups or below is None or above is None:
            continue
        ratio = abs(setups[below]) / max(abs(setups[above]), 1e-12)
        points = tuple(mqssd_point(op, k, r) for r in COARSE_R_PERCENTS)
        found.append(Candidate(f"costs of {op}s at k = {k}", abs(math.log(max(ratio, 1e-12))), points))
    return found
