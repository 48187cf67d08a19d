"""Profiles a target: brings it to its states, measures, estimates, writes the directory.

A drive in virtual time goes through the procedures of virtual.py, whole.

A target in real time has a budget. A share of it goes into preconditioning (first in order, then at random), then come
the coarse grids, then the points of adapt.py. A target that may not be written to is only read.
"""

import math
import os
from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from spillway import __version__, knee
from spillway.errors import SpillwayError
from spillway.native import Event, converse
from spillway.profile import adapt, estimate, grids, mixes, virtual
from spillway.profile.document import Profile, write_profile
from spillway.profile.points import Point, Sample
from spillway.profile.prober import Prober, RealPace, Stopwatch
from spillway.profile.target import Scaled, Target, check_size, scaled
from spillway.profile.virtual import Watch
from spillway.rundir import staged

Document = dict[str, Any]

DEFAULT_BUDGET_S = 120.0
PREPARE_SHARE = 0.2  # of a budget, for writing the target before it is measured. Source: guess
COARSE_SHARE = 0.6  # of what is left, for the coarse grids; the rest is for where they leave doubt
LEAST_POINT_S = 0.12  # shorter, and starting a point is a noticeable part of it. Source: guess
MOST_POINT_S = 10.0
POINT_OVERHEAD_S = 0.05  # between two points: buffers, threads, a last operation in flight. Source: guess
PRECONDITIONING = 2.0  # capacities, in order and at random each (M23, LEDGER part 4a); the budget may end it earlier


@dataclass(frozen=True)
class Finished:
    """A profile that is in its place, or was only printed."""

    profile: Profile
    directory: Path


def profile_target(
    target: Target,
    out: Path,
    command: list[str],
    *,
    seed: int,
    budget_s: float,
    mixed: bool = False,
    watch: Watch | None = None,
) -> Finished:
    """Profiles ``target`` and leaves the directory ``out`` with its report.

    Raises SpillwayError, and leaves nothing, when the target or the budget is refused.
    """
    started = datetime.now(UTC)
    if target.real_time:
        check_budget(budget_s)
    with staged(out) as stage:
        measured = (
            _measure_virtual(target, seed, mixed, watch)
            if not target.real_time
            else _measure_real(target, seed, budget_s, watch)
        )
        profile = _profile(target, measured, _conditions(target, measured, seed, command, started))
        write_profile(profile, stage)
        from spillway.report import write_profile_report  # the chart library takes longer to import than a preset takes

        write_profile_report(profile, stage / "report.html")
    return Finished(profile, out)


@dataclass(frozen=True)
class Measured:
    """What came of measuring."""

    samples: list[Sample]
    ready: Event
    started: Event
    ops: tuple[str, ...]
    remarks: list[str]
    budget_s: float | None = None
    spent_s: float | None = None
    point_s: float | None = None


def coarse_points(sizes: Iterable[int] = grids.SIZES, ops: tuple[str, ...] = estimate.OPS) -> list[Point]:
    """What a real drive is measured at in any case, sequential accesses first: they come after writing in order."""
    sizes = list(sizes)
    return [
        *grids.bulk(ops),
        *grids.pio_sequential(ops, sizes, grids.COARSE_SEQUENTIAL),
        *grids.pio_random(ops, sizes, grids.COARSE_CONCURRENCIES),
        *grids.latency(ops),
        *(p for op in ops for k in grids.COARSE_THREADS for p in grids.mqssd(op, k, grids.COARSE_R_PERCENTS)),
    ]


def least_budget_s() -> float:
    """Seconds under which the coarse grids do not fit."""
    return len(coarse_points()) * (LEAST_POINT_S + POINT_OVERHEAD_S) / COARSE_SHARE / (1 - PREPARE_SHARE)


def check_budget(budget_s: float) -> None:
    """Refuses a budget that is too short for the coarse grids."""
    least = least_budget_s()
    if not math.isfinite(budget_s):
        raise SpillwayError(f"--budget is {budget_s:g}: give it seconds, such as {DEFAULT_BUDGET_S:g}.")
    if budget_s < least:
        raise SpillwayError(
            f"--budget is {budget_s:g} s, too short for the {len(coarse_points())} points of the coarse grid: "
            f"give it at least {least:.0f}."
        )


# ---------------------------------------------------------------------------------------------------------------------
# Virtual time


def _measure_virtual(target: Target, seed: int, mixed: bool, watch: Watch | None) -> Measured:
    small = scaled(target)
    procedures = [virtual.SEQUENTIAL, virtual.RANDOM, virtual.STAGGERED, *([virtual.MIXED] if mixed else [])]
    answers = [virtual.run(procedure, target, small, seed, watch) for procedure in procedures]
    samples = [sample for answer in answers for sample in answer.samples]
    steady = answers[1]
    return Measured(samples, steady.ready, steady.started, estimate.OPS, list(small.remarks))


# ---------------------------------------------------------------------------------------------------------------------
# Real time


def _measure_real(target: Target, seed: int, budget_s: float, watch: Watch | None) -> Measured:
    first: Event = {}
    watch_time = Stopwatch(budget_s)

    def on_event(event: Event) -> None:
        if event["event"] == "started":
            first.update(event)
        elif watch is not None:
            watch("probe", event)

    def on_sample(_: Sample) -> None:
        if watch is not None:
            event = {"event": "progress", "phase": "measure", "done": watch_time.spent_s, "total": budget_s}
            watch("probe", event | {"unit": "seconds", "rate_per_s": None})

    small = scaled(target) if target.emulated else Scaled({}, 0, 0, [])
    with converse("probe", on_event) as conversation:
        prober = Prober(
            conversation, target.request(seed, "steady", small.settings), RealPace(1.0), "io_uring", on_sample
        )
        check_size(prober.ready, target.words)
        measured = measure_within(prober, watch_time, list(small.remarks), emulated=target.emulated)
        conversation.end()
    return Measured(**(vars(measured) | {"started": first}))


def measure_within(prober: Prober, watch_time: Stopwatch, remarks: list[str], *, emulated: bool) -> Measured:
    """Spends a budget on a target that takes its time: preconditioning, the coarse grids, then where doubt is."""
    ops: tuple[str, ...] = estimate.OPS if prober.ready["writable"] else ("read",)
    sizes = grids.sizes_for(prober.ready["lba_bytes"])
    remarks = [*remarks, *(["read only: --destroy-data would let it be written"] if "write" not in ops else [])]
    points = coarse_points(sizes, ops)
    if "write" in ops and not emulated:
        remarks.append(_prepare(prober, "sequential", watch_time.budget_s * PREPARE_SHARE / 2))
    left = watch_time.left_s - (watch_time.budget_s * PREPARE_SHARE / 2 if "write" in ops and not emulated else 0)
    point_s = min(MOST_POINT_S, max(LEAST_POINT_S, left * COARSE_SHARE / len(points) - POINT_OVERHEAD_S))
    prober.pace = RealPace(point_s)
    virtual.each(prober, [p for p in points if p.pattern == "sequential"])
    if "write" in ops and not emulated:
        remarks.append(_prepare(prober, "random", watch_time.budget_s * PREPARE_SHARE / 2))
    virtual.each(prober, [p for p in points if p.pattern != "sequential"])
    _refine(prober, watch_time, ops, sizes, point_s)
    budget = watch_time.budget_s
    return Measured(prober.samples, prober.ready, {}, ops, remarks, budget, watch_time.spent_s, point_s)


def _prepare(prober: Prober, kind: str, seconds: float) -> str:
    """Writes the target for at most so many seconds; what it came to, in words."""
    ready = prober.prepare(kind, PRECONDITIONING, seconds)
    capacities = ready["written_bytes"] / ready["size_bytes"]
    return f"preconditioned by {capacities:.2f} capacities of {kind} writes" + (
        "" if ready["complete"] else f" of the {PRECONDITIONING:g} wanted: the budget ended them"
    )


def _refine(prober: Prober, watch_time: Stopwatch, ops: tuple[str, ...], sizes: list[int], point_s: float) -> None:
    while watch_time.left_s > point_s + POINT_OVERHEAD_S:
        wanted = adapt.next_points(prober.samples, ops, sizes)
        if wanted is None:
            return
        if watch_time.left_s < len(wanted.points) * (point_s + POINT_OVERHEAD_S):
            return  # half of a line's points would tell nothing
        virtual.each(prober, wanted.points)


# ---------------------------------------------------------------------------------------------------------------------
# Putting it together


def _profile(target: Target, measured: Measured, conditions: Document) -> Profile:
    samples = measured.samples
    sizes = sorted({s.bs_bytes for s in samples if s.procedure == "pio"})
    pio = {bs: found for bs in sizes if (found := estimate.pio(samples, bs)) is not None}
    ready = measured.ready
    facts = {
        "words": target.words,
        "kind": target.kind,
        "name": ready.get("preset") or target.words,
        **{name: ready[name] for name in ("size_bytes", "range_bytes", "lba_bytes", "direct", "writable")},
        "summary": (measured.started.get("drive") or {}).get("summary", ""),
    }
    latencies = {op: estimate.latency(samples, op) for op in measured.ops}
    profile = Profile(facts, conditions, latencies, pio, estimate.mqssd(samples), samples)
    if any(sample.procedure == "mixed" for sample in samples):
        return replace(profile, mixed=mixes.parameters(profile))
    return profile


def _conditions(target: Target, measured: Measured, seed: int, command: list[str], started: datetime) -> Document:
    return {
        "command": command,
        "started": started.isoformat(timespec="seconds"),
        "versions": {"spillway": __version__, "spillway-native": measured.started.get("version", "")},
        "seed": seed,
        "time": {"simulated": "virtual", "paced": "real, the drive emulated"}.get(target.kind, "real"),
        "fill": target.fill if target.emulated else None,
        "direct_io": measured.ready["direct"] if not target.emulated else None,
        "budget_s": measured.budget_s,
        "spent_s": measured.spent_s,
        "point_s": measured.point_s,
        "points": len(measured.samples),
        "cores": os.cpu_count() if target.real_time else None,
        "remarks": measured.remarks,
        "rules": rules(),
    }


def rules() -> Document:
    """How each parameter is obtained, in words."""
    return {
        "interval": "95 %",
        "latency_us": "mean of 4 KiB random operations, one at a time; Student's t over the repeats",
        "k": f"concurrency beyond which doubling it buys less than {knee.DOUBLING_GAIN:.0%}; as wide as its grid step",
        "k_latency": "bend of log latency over log concurrency",
        "alpha": "largest read over largest write bandwidth; by slopes where software caps both",
        "mqssd": "least squares of time per 4 KiB page over p = r/100, for each k; costs amortised over k",
    }
