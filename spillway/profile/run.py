"""Profiles a target: brings it to its states, measures, estimates, writes the directory.

A drive in virtual time goes through the procedures of virtual.py, whole.

A target in real time has a budget, which real.py spends. A target that may not be written to is only read.
"""

import os
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from spillway.errors import SpillwayError
from spillway.fit import knee
from spillway.native.process import Event, converse
from spillway.profile import estimate, mixes, virtual
from spillway.profile.document import Profile, write_profile
from spillway.profile.points import Sample
from spillway.profile.prober import Prober, RealPace, Stopwatch
from spillway.profile.real import REPORT_S, check_budget, measure_within
from spillway.profile.target import Scaled, Target, check_size, errors_name_flags, scaled
from spillway.profile.virtual import Watch
from spillway.rundir.stage import staged
from spillway.version import __version__

Document = dict[str, Any]


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
    with_report: bool = True,
) -> Finished:
    """Profiles ``target`` and leaves the directory ``out``, with its report unless that is not wanted.

    Raises SpillwayError, and leaves nothing, when the target or the budget is refused.
    """
    started = datetime.now(UTC)
    if mixed and target.real_time:
        raise SpillwayError(f"--mixed takes a preset in virtual time, and {target.words} is measured in real time.")
    if target.real_time:
        check_budget(budget_s, estimate.OPS if target.may_be_written else ("read",))
    with staged(out) as stage, errors_name_flags(target):
        measured = (
            _measure_virtual(target, seed, mixed, watch)
            if not target.real_time
            else _measure_real(target, seed, budget_s, watch)
        )
        profile = _profile(target, measured, _conditions(target, measured, seed, command, started))
        write_profile(profile, stage)
        if with_report:
            _write_report(profile, stage / "report.html")
    return Finished(profile, out)


def _write_report(profile: Profile, target: Path) -> None:
    from spillway.profile.page import write_profile_report  # the chart library takes long to import

    write_profile_report(profile, target)


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
    watch_time = Stopwatch(budget_s - REPORT_S)

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
        within = measure_within(prober, watch_time, list(small.remarks), emulated=target.emulated)
        conversation.end()
    return Measured(started=first, budget_s=budget_s, **vars(within))


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
        "name": ready.get("preset") or target.name,
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
