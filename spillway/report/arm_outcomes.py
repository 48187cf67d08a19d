"""Arms of a comparison: how each handles write stalls, and the figures of its repetitions.

Every figure is derived here from what the run recorded (rows, phases, result). Deferred work is counted with
the arm that deferred it: the *bill* of an arm goes from its first measured write to the end of the phase that settles.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

from spillway.figures.amplification import Amplification, amplification, ratio
from spillway.figures.bill import bill, slowest_second_share, zero_seconds
from spillway.figures.lifetime import flash_bytes_per_operation
from spillway.figures.repetitions import Repetition, numbered
from spillway.report.series import Stall, gathered, seconds, stall_spans, total
from spillway.rundir.directory import ArmRecord
from spillway.rundir.samples import Row, nand_bytes, stall_seconds

Document = dict[str, Any]

# Phases without operations of the user's: they wait until the engine has no background work left.
SETTLING = ("settle", "waitforcompaction")
ADOC, FLOW_CONTROL, ROCKSDB, SPILLWAY = "adoc", "flow-control", "rocksdb", "spillway"

# RocksDB whose levels are made otherwise than those of the plan's first RocksDB: a rival of its own, such as vLSM's.
OTHER_LEVELS = "rocksdb, other levels"
_LEVELS = (
    "target_file_size_base",
    "level0_file_num_compaction_trigger",
    "max_bytes_for_level_base",
    "max_bytes_for_level_multiplier",
    "max_bytes_for_level_multiplier_additional",
)


@dataclass(frozen=True)
class StallHandling:
    """How an arm handles write stalls, by its plan."""

    system: str  # rocksdb, adoc, flow-control, spillway, OTHER_LEVELS, or another engine's name
    slowdown: bool  # RocksDB, or the limit of flow control, may slow writers down before they are stopped
    threads: int | None  # compactions at once, at most
    rollback: str  # of spillway; else empty

    @property
    def variant(self) -> str:
        """The name for a legend, without the number of threads."""
        if self.system == SPILLWAY:
            return f"{self.system}, {self.rollback}" if self.rollback else self.system
        return self.system if self.slowdown else f"{self.system}, no slowdown"


def stall_handling_of(plan: Document, name: str) -> StallHandling:
    """Of the arm ``name``, from the resolved plan of its run."""
    arm: Document = next((each for each in plan.get("arms", []) if each.get("name") == name), {})
    engine = _engine_of(plan, arm)
    options, spill = engine.get("options", {}), engine.get("spill", {})
    policy = str(engine.get("policy", "slowdown"))
    store, stock = str(engine.get("name", ROCKSDB)), policy in _STOCK
    adoc = engine.get("adoc", {}) if policy == ADOC else {}
    system = store if store != ROCKSDB or stock else policy
    return StallHandling(
        system=OTHER_LEVELS if system == ROCKSDB and _has_other_levels(plan, options) else system,
        slowdown=store == ROCKSDB and (policy == FLOW_CONTROL or (policy != "no-slowdown" and _slows_down(options))),
        threads=_compaction_threads(options, adoc),
        rollback=str(spill.get("rollback", "")) if store == SPILLWAY else "",
    )


_STOCK = ("slowdown", "no-slowdown")  # policies of RocksDB by itself


def _engine_of(plan: Document, arm: Document) -> Document:
    """An arm's ``engine`` with what the plan says for all arms, its tables too."""
    shared, own = plan.get("engine", {}), arm.get("engine", {})
    tables = {name: {**value, **own.get(name, {})} for name, value in shared.items() if isinstance(value, dict)}
    return {**shared, **own, **tables}


def _has_other_levels(plan: Document, options: Document) -> bool:
    """Whether levels are made otherwise than in the first arm of RocksDB by itself."""
    engines = (_engine_of(plan, each) for each in plan.get("arms", []))
    stock = (
        each for each in engines if each.get("name", ROCKSDB) == ROCKSDB and each.get("policy", "slowdown") in _STOCK
    )
    first = next(stock, {}).get("options", options)
    return any(str(options.get(name)) != str(first.get(name)) for name in _LEVELS)


def _compaction_threads(options: Document, adoc: Document) -> int | None:
    """How many compactions may run at once, at most; None where the plan leaves that to RocksDB.

    RocksDB gives a quarter of its background jobs to flushes, at least one, and the rest to compactions, at least one
    (DBImpl::GetBGJobLimits). ADOC sets their number, up to a bound of its own.
    """
    if "max_background_compactions" in options:
        return int(options["max_background_compactions"])
    jobs = adoc.get("most_jobs", options.get("max_background_jobs"))
    return None if jobs is None else max(1, int(jobs) - max(1, int(jobs) // 4))


def _slows_down(options: Document) -> bool:
    """Whether RocksDB's triggers leave room for a slowdown before the stop. Defaults: RocksDB's own, 20 and 36."""
    slow, stop = options.get("level0_slowdown_writes_trigger", 20), options.get("level0_stop_writes_trigger", 36)
    return int(slow) < int(stop)


@dataclass(frozen=True)
class Outcome:
    """The figures of one repetition, over its measured phases of work. None: not known, or there was none."""

    seconds: float
    writes: float
    reads: float
    write_ops_s: float | None
    read_ops_s: float | None
    seeks_ops_s: float | None  # range queries
    user_mb_s: float | None
    write_p99_us: float | None
    write_max_us: float | None
    read_p99_us: float | None
    ratios: Amplification  # while working
    flash_bytes: float | None  # for each operation, while working
    settle_s: float | None  # from the last operation until nothing was left to do
    settled_ops_s: float | None  # operations for each second until then
    settled_ratios: Amplification
    settled_flash_bytes: float | None  # for each operation
    cpu_percent: float | None  # of one core: the whole process, drive model and load included
    efficiency: float | None  # K2: MB/s of user data for each percent of a core
    stalls: int
    stall_s: float
    zero_seconds: int | None  # whole seconds in which no operation finished; None where samples are longer
    slowest_second: float | None  # operations in it
    slowest_second_share: float | None  # of those in the median second
    read_share: float | None  # of all operations
    diverted_share: float | None  # of the writes, that went to the spill store


Figure = Callable[[Outcome], float | None]


def in_thousands(name: str) -> Figure:
    """A field of an outcome in thousands: operations as thousand operations, microseconds as milliseconds."""
    return lambda made: None if getattr(made, name) is None else getattr(made, name) / 1e3


# KVAccel, Table IV. A: writes only. B and C: one writer and one reader, 9:1 and 8:2. D: range queries.
_MIXES = {
    ("fillrandom", None): "A",
    ("overwrite", None): "A",
    ("readwhilewriting", 10): "B",
    ("readwhilewriting", 20): "C",
    ("seekrandom", None): "D",
}


def mix_of(plan: Document) -> str:
    """The paper's workload that every arm's measured phases are, A to D; empty when they are none of them."""
    lists = [each["phases"] for each in [plan, *plan.get("arms", [])] if each.get("phases")]
    work = [phase for phases in lists for phase in phases if phase.get("measured", True) and is_work(phase)]
    mixes = {_MIXES.get((phase["workload"], phase.get("read_write_percent")), "") for phase in work}
    if any(phase.get("rate_ops_s") or phase.get("rate_of") or phase.get("arrivals") for phase in work):
        return ""  # the paper's have no limit
    return mixes.pop() if len(mixes) == 1 else ""


def is_work(phase: Document) -> bool:
    """Whether a phase has operations of the user's."""
    return phase["workload"] not in SETTLING


def outcome(record: ArmRecord) -> Outcome | None:
    """The figures of a repetition; None where it has no samples of measured work."""
    work = [phase for phase in record.phases if phase["measured"] and is_work(phase)]
    rows = _within(record.rows, work)
    if not rows:
        return None
    spent = sum(phase["duration_s"] for phase in work)
    writes, reads = (sum(phase.get(kind) or 0 for phase in work) for kind in ("writes", "reads"))
    seeks = sum(phase.get("reads") or 0 for phase in work if phase["workload"] == "seekrandom")
    user = total(rows, "user_bytes_written") or 0.0
    moved = user + (total(rows, "user_bytes_read") or 0.0)
    cpu = total(rows, "cpu_s")
    end = bill([*rows, *(row for row in record.rows if not row["measured"])], record.phases) or {}
    cpu_percent = None if cpu is None else ratio(100 * cpu, seconds(rows))
    whole = whole_seconds(rows)
    return Outcome(
        seconds=spent,
        writes=writes,
        reads=reads,
        write_ops_s=ratio(writes, spent) or None,
        read_ops_s=ratio(reads - seeks, spent) or None,
        seeks_ops_s=ratio(seeks, spent) or None,
        user_mb_s=ratio(moved / 1e6, spent),
        write_p99_us=_latency(record, work, "write", "p99"),
        write_max_us=_latency(record, work, "write", "max"),
        read_p99_us=_latency(record, work, "read", "p99"),
        ratios=_amplification(rows),
        flash_bytes=flash_bytes_per_operation(_programmed(rows), writes + reads),
        settle_s=end.get("settle_s"),
        settled_ops_s=end.get("throughput_ops_s"),
        settled_ratios=Amplification(end.get("wa_app"), end.get("wa_device"), end.get("wa_total")),
        settled_flash_bytes=end.get("flash_bytes_per_operation"),
        cpu_percent=cpu_percent,
        efficiency=ratio(moved / 1e6 / spent if spent else None, cpu_percent),
        stalls=sum(1 for each in work_stalls(record) if each.end_s > each.start_s),
        stall_s=sum(stall_seconds(row) for row in rows),
        zero_seconds=zero_seconds(rows),
        slowest_second=min(whole, default=None),
        slowest_second_share=slowest_second_share(rows),
        read_share=ratio(reads, writes + reads),
        diverted_share=ratio(total(rows, "spill_diverted_writes"), writes),
    )


def _within(rows: Sequence[Row], phases: Sequence[Document]) -> list[Row]:
    """The rows whose middle lies in one of the phases; each phase ends with a sample of its own."""
    spans = [(phase["t_s"], phase["t_s"] + phase["duration_s"]) for phase in phases]
    middles = ((row, row["t_s"] - row["dt_s"] / 2) for row in rows)
    return [row for row, middle in middles if any(start <= middle <= end for start, end in spans)]


def work_rows(record: ArmRecord) -> list[Row]:
    """The samples of an arm's measured phases of work."""
    return _within(record.rows, [p for p in record.phases if p["measured"] and is_work(p)])


def work_stalls(record: ArmRecord) -> list[Stall]:
    """Stalls that began in an arm's measured phases of work."""
    spans = [
        (p["t_s"], p["t_s"] + p["duration_s"]) for p in record.phases if p["measured"] and p["workload"] not in SETTLING
    ]
    return [
        stall
        for stall in stall_spans(record.stalls, record.rows)
        if any(start <= stall.start_s < end for start, end in spans)
    ]


def whole_seconds(rows: Sequence[Row]) -> list[float]:
    """Operations finished in each whole second; a last part of a second is left out."""
    groups = [group for group in gathered(rows, 1.0) if seconds(group) > 0.5]
    return [float(sum(row["reads"] + row["writes"] for row in group)) for group in groups]


def _latency(record: ArmRecord, work: Sequence[Document], kind: str, name: str) -> float | None:
    """Of the one phase of work; of several, over all of them, as the native side counted it."""
    of = work[0] if len(work) == 1 else record.result
    latency = of.get(f"{kind}_latency_us") or {}
    return latency.get(name) if latency.get("count", 1) else None


def _amplification(rows: Sequence[Row]) -> Amplification:
    return amplification(total(rows, "user_bytes_written"), total(rows, "host_bytes_written"), _programmed(rows))


def _programmed(rows: Sequence[Row]) -> float | None:
    nand = [nand_bytes(row) for row in rows]
    return None if None in nand else sum(each for each in nand if each is not None)


@dataclass(frozen=True)
class ArmOutcomes:
    """An arm with the figures of its complete repetitions."""

    name: str
    handling: StallHandling
    record: ArmRecord  # the repetition with the median throughput
    by_repetition: dict[Repetition, Outcome]  # of those that were finished, in turn
    asked: int  # how many repetitions the plan asks for, or were tried where it says fewer

    @property
    def outcomes(self) -> list[Outcome]:
        """The figures of each finished repetition, in turn."""
        return list(self.by_repetition.values())


@dataclass(frozen=True)
class Unfinished:
    """An arm of which no repetition was finished: there are no figures of it, and it might have been the best."""

    name: str
    handling: StallHandling


def outcomes_of_arms(plan: Document, arms: Sequence[ArmRecord]) -> list[ArmOutcomes]:
    """The arms of a run that did measured work, in the plan's order. Repetitions that were not finished are left
    out."""
    asked = max([len(plan.get("seeds") or []), *(len(arm.repetitions) or 1 for arm in arms)])
    found = []
    for arm in arms:
        each = zip(numbered(_seeds(arm)), arm.repetitions or [arm], strict=True)
        whole = {key: outcome(record) for key, record in each if record.result.get("complete")}
        made = {key: figures for key, figures in whole.items() if figures is not None}
        if made:
            found.append(ArmOutcomes(arm.name, stall_handling_of(plan, arm.name), arm, made, asked))
    return found


def unfinished_arms(plan: Document, arms: Sequence[ArmRecord]) -> list[Unfinished]:
    """The arms of the plan of which no repetition was finished, those too that were never begun. ``arms``: all that the
    run has recorded."""
    finished = {each.name for each in outcomes_of_arms(plan, arms)}
    names = dict.fromkeys([*(str(each.get("name", "")) for each in plan.get("arms", [])), *(arm.name for arm in arms)])
    return [Unfinished(name, stall_handling_of(plan, name)) for name in names if name and name not in finished]


def _seeds(arm: ArmRecord) -> list[int | None]:
    """The seed of each recorded repetition of an arm, in turn; None where it is not known."""
    several = arm.summary.get("repetitions") or []
    if not arm.repetitions:
        return [None if several else arm.summary.get("seed")]
    known: list[int | None] = [each.get("seed") for each in several]
    return known if len(known) == len(arm.repetitions) else [None] * len(arm.repetitions)


@dataclass(frozen=True)
class Spread:
    """The median of a figure over repetitions, and its lowest and highest."""

    median: float
    low: float
    high: float
    count: int


def spread(values: Iterable[float | None]) -> Spread | None:
    """The spread of the values that are known; None where none is."""
    known = [value for value in values if value is not None]
    return Spread(median(known), min(known), max(known), len(known)) if known else None


def over(arm: ArmOutcomes, figure: Figure) -> Spread | None:
    """A figure of an arm over its repetitions."""
    return spread(figure(each) for each in arm.outcomes)


def best_of(
    rivals: Sequence[ArmOutcomes], figure: Figure, pick: Callable[..., float]
) -> dict[Repetition, float | None]:
    """The best of several arms' figures in each repetition that all of them have finished; None where one is not known.

    ``pick``: max or min, whichever is better."""
    rows = {key: [figure(each.by_repetition[key]) for each in rivals] for key in in_common(rivals)}
    return {
        key: None if None in row else pick(value for value in row if value is not None) for key, row in rows.items()
    }


def against(one: ArmOutcomes, other: ArmOutcomes, figure: Figure) -> dict[Repetition, float]:
    """One arm's figure as a multiple of another's in each repetition that both have finished, as they ran in turns on
    the same machine; without those in which one is not known."""
    ratios = {
        key: ratio(figure(one.by_repetition[key]), figure(other.by_repetition[key])) for key in in_common([one, other])
    }
    return {key: value for key, value in ratios.items() if value is not None}


def in_common(arms: Sequence[ArmOutcomes]) -> list[Repetition]:
    """The repetitions that all of these arms have finished, in the first one's turn."""
    first, *others = arms
    return [key for key in first.by_repetition if all(key in each.by_repetition for each in others)]
