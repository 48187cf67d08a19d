"""What is measured of a drive that takes its time: as much as a budget of seconds allows.

    PREPARE_SHARE of the budget    writes the target, first in order, then at random
    COARSE_SHARE of what is left   the coarse grids: accesses in order after the first writing, others after the second
    the rest                       the points of adapt.py, one after the other; but for REPORT_S

What is in flight when a point ends is waited for: k operations of some megabytes each take a slow drive seconds. So a
point's cost is foretold from what was measured before it, no point is shorter than a round and a half of its
operations, and a point that no longer fits is left out; the profile says how many were.
"""

import math
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from spillway.errors import SpillwayError
from spillway.native.process import Event
from spillway.profile import adapt, estimate, grids
from spillway.profile.points import Point, Sample
from spillway.profile.prober import NothingMeasured, Prober, RealPace, Stopwatch

DEFAULT_BUDGET_S = 120.0
PREPARE_SHARE = 0.2  # Source: guess
COARSE_SHARE = 0.6  # Source: guess
LEAST_POINT_S = 0.12  # shorter, and starting a point is a noticeable part of it. Source: guess
MOST_POINT_S = 10.0
POINT_OVERHEAD_S = 0.05  # between two points: buffers, threads; replaced by what is seen. Source: guess
LEAST_ROUNDS = (
    1.5  # of what a point has in flight: foretold by the best rates, the first may take longer. Source: guess
)
# After the last point: the cost functions are fitted and the report is drawn. Source: measured, 3 to 4 s of a processor
# of 2.1 GHz.
REPORT_S = 5.0
PRECONDITIONING = 2.0  # capacities, in order and at random each (M23, B14); the budget may end it earlier


@dataclass(frozen=True)
class Within:
    """What a budget bought."""

    samples: list[Sample]
    ready: Event
    ops: tuple[str, ...]
    remarks: list[str]
    spent_s: float
    point_s: float


def coarse_points(sizes: Iterable[int] = grids.SIZES, ops: tuple[str, ...] = estimate.OPS) -> list[Point]:
    """What a real drive is measured at in any case, sequential accesses first: they come after writing in order.

    Of the others, reads come before writes. A drive works on after a write: it empties its cache and collects garbage.
    """
    sizes = list(sizes)
    points = [*grids.bulk(ops), *grids.pio_sequential(ops, sizes, grids.COARSE_SEQUENTIAL)]
    for op in ops:
        points += grids.pio_random((op,), sizes, grids.COARSE_CONCURRENCIES)
        points += grids.latency((op,))
        points += (point for k in grids.COARSE_THREADS for point in grids.mqssd(op, k, grids.COARSE_R_PERCENTS))
    return points


def least_budget_s(ops: tuple[str, ...] = estimate.OPS) -> float:
    """Seconds under which the coarse grids do not fit; a target that is only read needs no preparation."""
    share = COARSE_SHARE * (1 - PREPARE_SHARE if "write" in ops else 1)
    return len(coarse_points(ops=ops)) * (LEAST_POINT_S + POINT_OVERHEAD_S) / share + REPORT_S


def check_budget(budget_s: float, ops: tuple[str, ...] = estimate.OPS) -> None:
    """Raises SpillwayError for a budget that is too short for the coarse grids."""
    least = least_budget_s(ops)
    if not math.isfinite(budget_s):
        raise SpillwayError(f"--budget is {budget_s:g}: give it seconds, such as {DEFAULT_BUDGET_S:g}.")
    if budget_s < least:
        raise SpillwayError(
            f"--budget is {budget_s:g} s, too short for the {len(coarse_points(ops=ops))} points of the coarse grid: "
            f"give it at least {math.ceil(least)}."
        )


def measure_within(prober: Prober, watch_time: Stopwatch, remarks: list[str], *, emulated: bool) -> Within:
    """Spends a budget on a target: preconditioning, the coarse grids, then where doubt is."""
    ops: tuple[str, ...] = estimate.OPS if prober.ready["writable"] else ("read",)
    sizes = grids.sizes_for(prober.ready["lba_bytes"])
    remarks = [*remarks, *(["read only: --destroy-data would let it be written"] if "write" not in ops else [])]
    prepared_s = watch_time.budget_s * PREPARE_SHARE / 2 if "write" in ops and not emulated else 0.0
    if prepared_s:
        remarks.append(_prepare(prober, "sequential", prepared_s))
    points = coarse_points(sizes, ops)
    first = sum(p.pattern == "sequential" for p in points)
    budget = _TimeBudget(prober, watch_time)
    until_s = watch_time.spent_s + (watch_time.left_s - prepared_s) * COARSE_SHARE
    left_out = budget.spend(points[:first], points[first:], until_s, prepared_s)
    if prepared_s:
        remarks.append(_prepare(prober, "random", prepared_s))
    left_out += budget.spend(points[first:], [], until_s + prepared_s, 0.0)
    if left_out:
        remarks.append(f"{left_out} of {len(points)} points of the coarse grid did not fit into the budget")
    budget.refine(ops, sizes)
    return Within(prober.samples, prober.ready, ops, remarks, watch_time.spent_s, budget.point_s)


def _prepare(prober: Prober, kind: str, seconds: float) -> str:
    """Writes the target for at most so many seconds; what it came to, in words."""
    ready = prober.prepare(kind, PRECONDITIONING, seconds)
    capacities = ready["written_bytes"] / ready["size_bytes"]
    return f"preconditioned by {capacities:.2f} capacities of {kind} writes" + (
        "" if ready["complete"] else f" of the {PRECONDITIONING:g} wanted: the budget ended them"
    )


class _TimeBudget:
    """What is left of a budget, and what a point takes of it."""

    def __init__(self, prober: Prober, watch_time: Stopwatch) -> None:
        self._prober, self._watch = prober, watch_time
        self._overheads = [POINT_OVERHEAD_S]
        self._shares: list[float] = []
        self.point_s = LEAST_POINT_S

    def spend(self, points: Sequence[Point], later: Sequence[Point], until_s: float, reserved_s: float) -> int:
        """Measures ``points`` so that they and ``later`` ones end by ``until_s``; how many did not fit the budget."""
        left_out = 0
        for index, point in enumerate(points):
            rounds = [self._round_s(each) for each in (*points[index:], *later)]
            self.point_s = _equal_share(until_s - self._watch.spent_s, rounds, self._overhead_s)
            self._shares.append(self.point_s)
            if self._cost_s(point) > self._watch.left_s - reserved_s or not self._measured(point):
                left_out += 1
        return left_out

    def refine(self, ops: tuple[str, ...], sizes: list[int]) -> None:
        """Points where the parameters are least certain, until nothing more fits."""
        self.point_s = statistics.median(self._shares)  # the last one's share is whatever was left of the time
        while (wanted := adapt.next_points(self._prober.samples, ops, sizes)) is not None:
            if self._watch.left_s < sum(self._cost_s(point) for point in wanted.points):
                return  # half of a line's points would tell nothing
            for point in wanted.points:
                if not self._measured(point):
                    return

    @property
    def _overhead_s(self) -> float:
        return sum(self._overheads) / len(self._overheads)

    def _seconds(self, point: Point) -> float:
        return max(self.point_s, LEAST_ROUNDS * self._round_s(point))

    def _cost_s(self, point: Point) -> float:
        return self._seconds(point) + self._round_s(point) + self._overhead_s

    def _measured(self, point: Point) -> bool:
        seconds, before_s = self._seconds(point), self._watch.spent_s
        foretold_s = seconds + self._round_s(point)
        self._prober.pace = RealPace(seconds)
        try:
            self._prober.measure(point)
        except NothingMeasured:
            return False
        self._overheads.append(max(0.0, self._watch.spent_s - before_s - foretold_s))
        return True

    def _round_s(self, point: Point) -> float:
        """Seconds that the drive takes for what the point has in flight, by its best rates so far; 0: none is known."""
        done = [s for s in self._prober.samples if s.op == point.op and s.pattern != "staggered"]
        if not done:
            return 0.0
        transfer_s = point.bs_bytes / 1e6 / max(s.bandwidth_mb_s for s in done)
        random = [s.iops for s in done if s.pattern == "random"]
        access_s = 1 / max(random) if random and point.pattern != "sequential" else 0.0
        return point.k * (transfer_s + access_s)


def _equal_share(seconds: float, rounds: Sequence[float], overhead_s: float) -> float:
    """What each of these points may last so that all take ``seconds``; rounds: what they have in flight, in seconds."""
    spare = seconds - sum(rounds) - overhead_s * len(rounds)
    floors = sorted(LEAST_ROUNDS * each for each in rounds)
    # The points of the longest rounds last as long as they must; the others share what is left of the time.
    while len(floors) > 1 and floors[-1] * len(floors) > spare:
        spare -= floors.pop()
    return min(MOST_POINT_S, max(LEAST_POINT_S, spare / len(floors)))
