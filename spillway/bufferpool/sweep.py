"""The gain from concurrency: a buffer pool that writes n_w dirty pages back at once, for each n_w (P22; PIO, Fig 10).

    speed-up(n_w) = operations a second with n_w / operations a second with n_w = 1, on the same trace
    P5            S = (f_r + f_w alpha) / (f_r + f_w alpha / k),  k = min(n_w, k_w)
    P7            S'' with f_r / min(n_e, k_r) for the reads, where pages are prefetched too

f_r, f_w: share of reads and writes; alpha: what a write costs in reads; k_w, k_r: writes and reads at once that
saturate the drive. P5 is drawn twice. *As published*: f_r of the trace, alpha from bandwidths. *With the pool's own
costs*: the pool's reads and writes on the drive are not the trace's (a page is written once however often it was
changed, and every miss reads), and one write alone does not cost alpha reads (alpha is a ratio at saturation); both are
taken from the measured runs at n_w = 1.

P5 supposes that a batch of k_w takes as long as one write. A real one does not: what is serialised (a lock, a link)
adds up, writes meet on one die, and the last one is waited for. So the measured speed-up is below it; and where the
drive's part is done it still creeps up, since each batch pays its latency once and a larger one shares it among more.

The curve's knee is where doubling n_w begins to buy less than 5 %, as for k_w (spillway/fit/knee.py), in steps of the
sweep and of the best rate up to each, so that a curve that falls has its knee at its peak.

*Writers* hand a batch to the drive: one thread from one queue, which issues one after another, or a thread for each
page, waiting for work or started for it (native/pool/writers.h). A sweep compares each with its own n_w = 1. The
published curve falls beyond k_w, which its authors put down to their threads; docs/METHODOLOGY.md says what we found.
"""

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from itertools import product
from pathlib import Path

import numpy as np

from spillway.bufferpool.pool import Document, Watch, Workload, WriteBack, check, opened, run
from spillway.bufferpool.tuned import Tuned, tuned_of, ways_of
from spillway.fit.knee import DOUBLING_GAIN
from spillway.models.pio import speedup_of_batched_writes, speedup_of_both_batched
from spillway.native.process import Event
from spillway.profile import estimate
from spillway.profile.document import UNKNOWN, Estimate, Pio
from spillway.profile.saturation import measure_saturation, saturation_of_profile
from spillway.profile.target import Scaled, Target, scaled
from spillway.version import __version__

# PIO's Fig 10 goes to twice k_w; half as far again shows whether it still grows.
WRITE_BACKS = (1, 2, 3, 4, 6, 8, 10, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256)
BEYOND = 3  # times k_w
LEAST_TOP = 8  # a drive of small k_w gets this far all the same: a knee needs points on both sides
MOST_UNSURE = 2 * DOUBLING_GAIN  # a knee is of gains of DOUBLING_GAIN; half an interval twice as wide hides any of them
SWEPT_WRITERS = ("queue", "threads")  # by default; the report is about the first of them
HAND_OFF = ("first_ns", "last_ns", "told_ns")  # native/pool/writers.h


@dataclass(frozen=True)
class Step:
    """One n_w: the mean over the seeds, and the formula's value."""

    write_back: int
    speed_up: Estimate
    operations_per_s: Estimate
    read_us: float  # the pool's wait for one page read
    write_us: float  # and for one page written, its share of the batch
    latency_p99_us: float
    pages_written_per_operation: float
    formula: float  # P5 or P7, as published
    formula_own_costs: float  # with the pool's own costs
    hand_off_us: (
        float | None
    )  # in virtual time: what a batch's threads took, without a drive; None where they were there


@dataclass(frozen=True)
class Sweep:
    """Every n_w of one kind of writers, what the curve says, and the sweeps of the other kinds."""

    writers: str  # of WRITERS
    target: Document
    conditions: Document
    drive: Pio
    workload: Document
    steps: list[Step]
    own_read_share: float  # of the pool's ios on the drive, at n_w = 1
    own_cost_ratio: float  # one write alone over one read, as the pool met them
    knee: Estimate  # the step from which doubling n_w buys less than 5 %; least and most over the seeds
    batch_knee: int | None  # the same of its writes alone, in batches that are waited for: the k_w that a batch meets
    rows: list[Document] = field(repr=False)  # every run, of every kind of writers
    of_other_writers: tuple["Sweep", ...] = ()
    tuned: tuple[Tuned, ...] = ()  # pools that chose n_w by themselves, where that was asked for

    @property
    def largest(self) -> Step:
        """The step with the largest speed-up."""
        return max(self.steps, key=lambda step: step.speed_up.value)

    @property
    def at_k_w(self) -> Step | None:
        """The step nearest to the drive's k_w."""
        if not self.drive.k_w.known:
            return None
        return min(self.steps, key=lambda step: abs(math.log(step.write_back / self.drive.k_w.value)))

    @property
    def steps_from_k_w(self) -> int | None:
        """Steps of the sweep between the knee and the step nearest to k_w."""
        at = self.at_k_w
        if at is None or not self.knee.known:
            return None
        steps = [step.write_back for step in self.steps]
        return abs(steps.index(int(self.knee.value)) - steps.index(at.write_back))

    @property
    def growth_past_k_w(self) -> float | None:
        """By how much the best step beyond k_w is faster than the one at k_w; negative when all are slower."""
        at = self.at_k_w
        beyond = [step for step in self.steps if at is not None and step.write_back > at.write_back]
        if at is None or not beyond:
            return None
        return max(step.speed_up.value for step in beyond) / at.speed_up.value - 1


# ---------------------------------------------------------------------------------------------------------------------
# The sweep


def sweep(
    target: Target,
    workload: Workload,
    *,
    seed: int = 1,
    repeats: int = 5,
    profile: Path | None = None,
    write_backs: Sequence[int] = (),
    writers: Sequence[str] = SWEPT_WRITERS,
    tuned: bool = False,
    command: Sequence[str] = (),
    watch: Watch | None = None,
) -> Sweep:
    """Runs the pool for each n_w, ``repeats`` times with seeds of their own, and compares each with n_w = 1; with
    ``tuned`` also pools that choose n_w by themselves, with the best of those.

    The result is the sweep of the first of ``writers``; ``of_other_writers`` has the rest. Raises SpillwayError where
    the target or the workload is refused, Interrupted after a Ctrl-C.
    """
    check(workload)
    started = datetime.now(UTC)
    small = scaled(target) if target.emulated else None
    drive = saturation_of_profile(profile, workload.page_bytes).pio if profile is not None else None
    with opened(target, small) as place:
        # A pool that is refused is refused before anything is measured.
        first = run(place, workload, WriteBack(1), seed, watch, writers[0])
        if drive is None:
            drive = measure_saturation(target, place.target, workload.page_bytes, seed, small).pio
        wanted = [("", WriteBack(n)) for n in _grid(drive, workload, write_backs)]
        wanted += list(ways_of(drive, workload).items()) if tuned else []
        rows = [_row(first, seed)]
        # A real drive drifts: each seed goes through all n_w of all writers before the next one does.
        for each, (way, write_back), kind in product(range(seed, seed + repeats), wanted, writers):
            if (each, way, write_back, kind) != (seed, "", WriteBack(1), writers[0]):
                rows.append(_row(run(place, workload, write_back, each, watch, kind), each, way))
    conditions = _conditions(small, seed, repeats, command, started, first)
    return _evaluated(target, workload, drive, rows, conditions)


def _grid(drive: Pio, workload: Workload, wanted: Sequence[int]) -> list[int]:
    if wanted:
        return sorted({1, *wanted})
    top = max(LEAST_TOP, BEYOND * drive.k_w.value) if drive.k_w.known else max(WRITE_BACKS[:11])
    grid = [n for n in WRITE_BACKS if n <= top and n <= workload.pool_pages]
    more = [n for n in WRITE_BACKS if top < n <= workload.pool_pages]
    return grid + more[:1]


def _row(result: Event, seed: int, way: str = "") -> Document:
    """One run's figures, as sweep.csv has them. ``way``: in which the pool chose n_w; empty where it was given."""
    hand_off = result["pool"]["hand_off"] or {}
    per_page = {"read_us": ("read_wait_s", "pages_read"), "write_us": ("write_wait_s", "pages_written")}
    return {
        "writers": result["pool"]["writers"],
        "write_back": result["pool"]["write_back"],  # of a pool that tunes itself the last
        "tuned": way,
        "seed": seed,
        **{name: result[name] for name in ("operations", "writes", "seconds", "operations_per_s", "hits", "misses")},
        **{name: result[name] for name in ("pages_read", "pages_written", "pages_prefetched", "write_batches")},
        **{name: 1e6 * result[wait] / max(1, result[pages]) for name, (wait, pages) in per_page.items()},
        "latency_mean_us": result["latency_us"]["mean"],
        "latency_p99_us": result["latency_us"]["p99"],
        "miss_latency_mean_us": result["miss_latency_us"]["mean"],
        **{f"hand_off_{name}": hand_off.get(name) for name in HAND_OFF},
    }


def _evaluated(target: Target, workload: Workload, drive: Pio, rows: list[Document], conditions: Document) -> Sweep:
    """The sweep of the first row's writers, with those of the others."""
    kinds = list(dict.fromkeys(row["writers"] for row in rows))
    mine, *others = [
        _of_writers(target, workload, drive, [row for row in rows if row["writers"] == kind], conditions)
        for kind in kinds
    ]
    return replace(mine, rows=rows, of_other_writers=tuple(others))


def _of_writers(target: Target, workload: Workload, drive: Pio, every: list[Document], conditions: Document) -> Sweep:
    rows = [row for row in every if not row["tuned"]]
    base = {row["seed"]: row for row in rows if row["write_back"] == 1}
    first = list(base.values())
    ios = sum(row["pages_read"] + row["pages_written"] for row in first)
    own_share = sum(row["pages_read"] for row in first) / ios
    read_us = float(np.mean([row["read_us"] for row in first]))
    own_ratio = float(np.mean([row["write_us"] for row in first])) / read_us
    steps = []
    for n in sorted({row["write_back"] for row in rows}):
        runs = [row for row in rows if row["write_back"] == n]

        def mean(name: str, runs: list[Document] = runs) -> float:
            return float(np.mean([row[name] for row in runs]))

        # On the same trace: what the seeds have in common does not widen the interval.
        ratios = [row["operations_per_s"] / base[row["seed"]]["operations_per_s"] for row in runs]
        steps.append(
            Step(
                n,
                Estimate(1.0, 1.0, 1.0) if n == 1 else estimate.mean_of(ratios),
                estimate.mean_of([row["operations_per_s"] for row in runs]),
                mean("read_us"),
                mean("write_us"),
                mean("latency_p99_us"),
                sum(row["pages_written"] for row in runs) / sum(row["operations"] for row in runs),
                _formula(workload.read_fraction, drive.alpha.value, n, drive, workload),
                _formula(own_share, own_ratio, n, drive, workload),
                _hand_off_us(runs[0]),
            )
        )
    best = max(steps, key=lambda step: step.operations_per_s.value).write_back
    of_best = {row["seed"]: row["operations_per_s"] for row in rows if row["write_back"] == best}
    shown = asdict(workload) | {"trace": str(workload.trace) if workload.trace else None}
    where = {"words": target.words, "kind": target.kind, "name": target.label}
    return Sweep(
        first[0]["writers"],
        where,
        conditions,
        drive,
        shown,
        steps,
        own_share,
        own_ratio,
        _knee(rows),
        _levels_off({step.write_back: 1 / step.write_us for step in steps if step.write_us > 0}),
        rows,
        tuned=tuned_of(every, of_best),
    )


def _hand_off_us(row: Document) -> float | None:
    last, on_event = row["hand_off_last_ns"], row["hand_off_told_ns"]
    return None if last is None else (last + on_event) / 1000


def _formula(read_share: float, alpha: float, write_back: int, drive: Pio, workload: Workload) -> float:
    """P5 at min(n_w, k_w), or P7 where pages are prefetched; nan where the drive's part is not known."""
    if not (math.isfinite(alpha) and alpha > 0 and drive.k_w.known):
        return math.nan
    k_w = max(1.0, min(write_back, drive.k_w.value))
    at_once = min(workload.prefetch, write_back - 1) + 1
    if at_once == 1 or not drive.k_r.known:
        return float(speedup_of_batched_writes(read_share, alpha, k_w))
    return float(speedup_of_both_batched(read_share, alpha, max(1.0, min(at_once, drive.k_r.value)), k_w))


def _knee(rows: Sequence[Document]) -> Estimate:
    """Of the seeds' mean, and the least and most of any seed; unknown where the curve still grows at its end."""
    by_seed: dict[int, dict[int, float]] = {}
    for row in rows:
        by_seed.setdefault(row["seed"], {})[row["write_back"]] = row["operations_per_s"]
    curves = list(by_seed.values())
    mean = _levels_off({n: float(np.mean([curve[n] for curve in curves])) for n in curves[0]})
    if mean is None:
        return UNKNOWN
    each = [_levels_off(curve) or math.inf for curve in curves]
    return Estimate(mean, min(each), max(each))


def _levels_off(rate: dict[int, float]) -> int | None:
    """The least n_w from which on doubling it buys less than DOUBLING_GAIN; None where the sweep ends before.

    What counts is the best rate up to each n_w: batches that are no whole rounds of what the drive does at once dip.
    """
    steps = sorted(rate)
    best = np.maximum.accumulate([rate[n] for n in steps])
    found = None
    for index in reversed([i for i, n in enumerate(steps) if 2 * n <= steps[-1]]):
        doubled = np.interp(math.log(2 * steps[index]), np.log(steps), best)
        if doubled >= (1 + DOUBLING_GAIN) * best[index]:
            break
        found = steps[index]
    return found


def _conditions(
    small: Scaled | None, seed: int, repeats: int, command: Sequence[str], started: datetime, first: Event
) -> Document:
    kind = first["target"]["kind"]
    return {
        "command": list(command),
        "started": started.isoformat(timespec="seconds"),
        "versions": {"spillway": __version__},
        "seed": seed,
        "repeats": repeats,
        "operations": first["operations"],
        "pages": first["pages"],
        "time": {"simulated": "virtual", "paced": "real, the drive emulated"}.get(kind, "real"),
        "remarks": small.remarks if small is not None else [],
    }
