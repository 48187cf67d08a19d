"""fio jobs against the pitfalls.

Jobs between two ``stonewall`` run at once, and what one group writes is there for the next. fio's latencies begin at
the submission; without a rate the next command waits for the last.
"""

from collections.abc import Sequence

from spillway.errors import SpillwayError
from spillway.lint import recipe as around
from spillway.lint.fio_jobs import Job, block_bytes, size_of
from spillway.lint.fio_steps import (
    AROUND_CACHE,
    LOGS,
    SPRANDOM_OP,
    UNWRITTEN,
    State,
    Step,
    covers,
    is_unknown,
    refused_by_fio,
    state_after,
    steps_of,
)
from spillway.lint.share import touched_share
from spillway.lint.table import Linted, Remark, Verdict, table_of
from spillway.pitfalls import (
    CLOSED_LOOP,
    COMPRESSION,
    DATA_SET,
    DRIVE_TYPE,
    DURABILITY,
    INITIAL_STATE,
    LEAST_CAPACITY_BYTES,
    LEAST_READ_SECONDS,
    LEAST_SECONDS,
    OVER_PROVISIONING,
    PAGE_CACHE,
    SHORT_TEST,
    SIZES,
    SKEW,
    SPACE,
    STEADY_CAPACITIES,
    WA_DEVICE,
)
from spillway.quantity import human_bytes

MODES = {
    *("read", "write", "trim", "rw", "readwrite", "randread", "randwrite", "randrw", "randtrim"),
    *("trimwrite", "randtrimwrite"),
}
SYNCHRONOUS = ("psync", "sync", "vsync", "pvsync", "pvsync2", "mmap", "splice")  # iodepth means nothing to them
NO_STORE = "fio writes what it is told: there is no store that could hold more"
FILL = "a first job with rw=write bs=128k size=100% and a stonewall in this one"
OVERWRITE = "then rw=randwrite norandommap=1 with io_size at twice the size"
LEAST_PART = min(SIZES)  # of a drive that is worth bringing to a state


def lint_fio(name: str, jobs: Sequence[Job], capacity: int | None = None, *, followed: bool = False) -> Linted:
    """The table of jobs in their order. ``capacity``: of the drive in bytes; None: not known. ``followed``: another
    tool measures after them, so a job that only fills a drive is no test. Raises SpillwayError where no job reaches a
    drive."""
    if not jobs:
        raise SpillwayError(f"{name}: there is no job in it; a fio job file has a [section] for each job.")
    tests = steps_of(jobs, followed=followed)
    if not tests:
        raise SpillwayError(
            f"{name}: none of its jobs reads or writes a drive (ioengine or filename), so nothing can be told."
        )
    for test in tests:
        if test.mode not in MODES and not is_unknown(test.mode):
            where = _at(name, [test], "rw")
            raise SpillwayError(f"{where}: fio has no rw={test.mode}; write one of {', '.join(sorted(MODES))}.")
        if (time := test.no_time) is not None:
            where = _at(name, [test], "runtime")
            raise SpillwayError(f"{where}: runtime={time} is no time to fio; write seconds, or a unit as in 30m.")
    if all(test.prepares for test in tests):
        return _preconditioning(name, tests, capacity)
    measured = [test for test in tests if not test.prepares]
    remarks = [
        *_short_test(name, tests, capacity),
        _wa_device(name, measured),
        *_initial_state(name, tests),
        _data_set(name, measured, capacity),
        Remark(SPACE, "ok", NO_STORE, "", name),
        _over_provisioning(name, tests),
        _drive_type(name, measured),
        *_closed_loop(name, measured),
        *_page_cache(name, measured),
        *_contents(name, tests),
        *_durability(name, measured),
        *_skew(name, measured, capacity),
    ]
    return table_of(name, "fio", remarks)


def _preconditioning(name: str, steps: Sequence[Step], capacity: int | None) -> Linted:
    """Of jobs that bring a drive to a state and measure nothing: the state, and what it asks of the measurement."""
    said = "preconditioning, which states no figure"
    where = _at(name, steps, "rw", "size", "io_size", "loops", "sprandom")
    prints = f"{said}: it ends with its volume, and what fio prints of it is of a drive on its way, not to be quoted"
    later = f"{said}: asked of the measurement that starts from it"
    remarks = [
        Remark(SHORT_TEST, "ok", prints, "", where),
        *(Remark(pitfall, "ok", later, "", name) for pitfall in (WA_DEVICE, DATA_SET, DRIVE_TYPE)),
        Remark(SPACE, "ok", NO_STORE, "", name),
        *_left(name, steps, capacity),
        _over_provisioning(name, steps),
        *_page_cache(name, steps),
        *_contents(name, steps),
    ]
    return table_of(name, "fio", remarks)


def _at(name: str, tests: Sequence[Step], *options: str) -> str:
    """File, lines and jobs."""
    lines = list(dict.fromkeys(line for test in tests for line in test.job.where(*options).split(", ") if line))
    names = list(dict.fromkeys(f"[{test.job.name}]" for test in tests))
    numbers = ", ".join(sorted(lines, key=int)[:6])
    more = f" and {len(names) - 4} more" if len(names) > 4 else ""
    return f"{name.rpartition('/')[2]}{':' if numbers else ''}{numbers} {' '.join(names[:4])}{more}"


# ---------------------------------------------------------------- 1: short tests


def _judged(test: Step, capacity: int | None) -> tuple[Verdict, str]:
    job = test.job
    if job.text("ss"):
        return "ok", f"ss={job.text('ss')}: it goes on until that holds"
    runtime = test.runtime
    if job.on("time_based") or (runtime is not None and runtime < LEAST_SECONDS):
        if runtime is None:
            return "cannot tell", "time_based without a runtime that can be read"
        bound = "runtime" if job.on("time_based") else "at most runtime"
        verdict, words = around.judged_time(runtime)
        return verdict, f"{bound}={job.text('runtime')}: {words}"
    count, times = test.written(capacity)
    until = f", ended at runtime={job.text('runtime')}" if runtime is not None else ""
    if times is not None:
        words = f"{times:.2g} x the drive is written{until}"
        return ("ok" if times >= STEADY_CAPACITIES else "finding"), words
    if count is not None:
        if count < STEADY_CAPACITIES * LEAST_CAPACITY_BYTES:
            return "finding", f"{human_bytes(count)} are written{until}, too little for any drive of 100 GB or more"
        return "cannot tell", f"{human_bytes(count)} are written{until}; --capacity tells whether that is enough"
    return "cannot tell", f"size={job.text('size') or 'not given'}: how much is written is not known"


def _short_test(name: str, tests: Sequence[Step], capacity: int | None) -> list[Remark]:
    writing = [test for test in tests if test.writes and not test.prepares]
    groups: dict[tuple[Verdict, str], list[Step]] = {}
    for test in writing:
        groups.setdefault(_judged(test, capacity), []).append(test)
    change = (
        "time_based=1 with a runtime of 1800 or more, until 3 x the capacity is written; or ss=iops:10% ss_dur=300; "
        "with write_bw_log and ramp_time the burst stays apart"
    )
    remarks = []
    for (verdict, words), found in groups.items():
        where = _at(name, found, "runtime", "size", "io_size", "loops", "ss")
        unnamed = "; of steps that only prepare: names such as [precondition]" if _may_prepare(tests) else ""
        remedy = "" if verdict == "ok" else change + unnamed
        remarks.append(Remark(SHORT_TEST, verdict, words + _named_for_nothing(found), remedy, where))
    mixed = [test for test in writing if not test.job.text("ss") and not any(log in test.job.options for log in LOGS)]
    mixed = [test for test in mixed if "ramp_time" not in test.job.options]
    if mixed and not any(remark.verdict == "finding" for remark in remarks):
        looked = "neither ramp_time nor a log: the average mixes the burst with the steady part"
        where = _at(name, mixed, "rw")
        remarks.append(
            Remark(SHORT_TEST, "finding", looked, "ramp_time, or write_bw_log with log_avg_msec=1000", where)
        )
    short = [
        test for test in tests
        if not test.writes and test.runtime is not None and test.runtime < LEAST_READ_SECONDS
    ]  # fmt: skip
    if short:
        looked = f"{'reads' if short[0].reads else 'trims'} for {around.minutes(short[0].runtime or 0)}"
        remarks.append(
            Remark(SHORT_TEST, "finding", looked, "runtime=60 or more", _at(name, short, "runtime"))
        )  # fmt: skip
    if not remarks:
        what = "what is written is preconditioning" if any(test.writes for test in tests) else "reads alone"
        remarks.append(Remark(SHORT_TEST, "ok", what, "", name))
    return remarks


def _may_prepare(tests: Sequence[Step]) -> bool:
    return all(test.may_prepare for test in tests)


def _named_for_nothing(tests: Sequence[Step]) -> str:
    """Why a step that is called a preparation is judged as a measurement."""
    named = [test for test in tests if test.declared and test.record]
    return f"; [{named[0].job.name}] keeps a record ({named[0].record}), so it is no mere preparation" if named else ""


# ---------------------------------------------------------------- 2, 3: write amplification, initial state


def _wa_device(name: str, tests: Sequence[Step]) -> Remark:
    if not any(test.writes for test in tests):
        return Remark(WA_DEVICE, "ok", "nothing is written", "", name)
    change = "read the drive's NAND and host bytes before and after (`spillway drive` says which it counts)"
    return Remark(WA_DEVICE, "finding", "fio counts host bytes and no NAND bytes", change, name)


def _initial_state(name: str, tests: Sequence[Step]) -> list[Remark]:
    """Of steps of which some measure: what those before them have left."""
    unwritten: list[Step] = []
    unprepared: list[Step] = []
    prepared: list[Step] = []
    states: list[State] = []
    for test in tests:
        if test.prepares:
            continue
        earlier = [each for each in tests if each.group < test.group and not each.by_time and covers(each, test)]
        state = state_after(earlier)
        whole = state is not None and state.unwritten < UNWRITTEN
        if test.reads and test.on_device is not False and not whole:
            unwritten.append(test)
        elif "rand" in test.mode and test.writes and not whole:
            unprepared.append(test)
        elif state is not None and whole:
            prepared.append(test)
            states.append(state)
    remarks = [*_refused(name, tests)]
    if unwritten:
        sure = all(test.on_device for test in unwritten)
        looked = "reads of LBAs that no earlier job writes: unwritten ones are answered from the mapping, without flash"
        where = _at(name, unwritten, "rw")
        remarks.append(Remark(INITIAL_STATE, "finding" if sure else "cannot tell", looked, FILL, where))
    if unprepared:
        looked = "random writes to a drive in no stated condition: neither written whole nor at random before"
        change = f"{FILL}; {OVERWRITE}, or sprandom=1 in one pass"
        remarks.append(Remark(INITIAL_STATE, "finding", looked, change, _at(name, unprepared, "rw")))
    if not remarks and prepared:
        where = _at(name, prepared, "rw")
        words = "; ".join(dict.fromkeys(state.words for state in states))
        remarks.append(Remark(INITIAL_STATE, "ok", f"an earlier job writes all that is tested: {words}", "", where))
    if not remarks:
        looked = "nothing says what the drive held before, or that it was purged"
        remarks.append(Remark(INITIAL_STATE, "finding", looked, "blkdiscard before it; " + FILL, name))
    return remarks


def _refused(name: str, steps: Sequence[Step]) -> list[Remark]:
    """Jobs of ``sprandom`` that fio does not run, so that they leave no state."""
    found = []
    for step in steps:
        why = refused_by_fio(step) if step.is_sprandom else ""
        if why:
            where = _at(name, [step], "sprandom", "spr_op", "rw", "norandommap", "random_generator", "numjobs")
            looked = f"sprandom=1 with {why}: fio refuses the job"
            change = "one job of rw=randwrite on one file, with the drive's own spr_op"
            found.append(Remark(INITIAL_STATE, "finding", looked, change, where))
    return found


def _left(name: str, steps: Sequence[Step], capacity: int | None) -> list[Remark]:
    """The state that preconditioning leaves each target in, as one remark for each kind."""
    if refused := _refused(name, steps):
        return refused
    remarks: dict[tuple[Verdict, str, str], list[Step]] = {}
    for target in dict.fromkeys(target for step in steps for target in step.targets or ("",)):
        own = [step for step in steps if target in (step.targets or ("",))]
        remarks.setdefault(_left_of(own, capacity), []).extend(own)
    options = ("rw", "size", "io_size", "loops", "sprandom")
    return [Remark(INITIAL_STATE, *said, _at(name, own, *options)) for said, own in remarks.items()]


def _left_of(steps: Sequence[Step], capacity: int | None) -> tuple[Verdict, str, str]:
    state = state_after(steps)
    if state is None:
        return "cannot tell", "which part of the drive these steps write is not known", "size=100% in each of them"
    part = _part(steps, capacity)
    if part is not None and part < LEAST_PART:
        looked = f"{part:.2g} of the drive is written: the rest is in no stated condition"
        return "finding", looked, "size=100%; or blkdiscard before it, and say which part is used"
    if state.unwritten >= UNWRITTEN:
        looked = f"written {state.words}, each place drawn by itself: {state.unwritten:.0%} of the LBAs stay unwritten"
        return "finding", looked, FILL
    start = "a measurement has to start from here, with nothing trimmed, formatted or written between"
    if state.settled:
        return "ok", f"written {state.words}: {start}", ""
    looked = f"written {state.words}: no steady state of random writes, which begin with a burst; {start}"
    return "cannot tell", looked, f"for a test of random writes: {OVERWRITE}"


def _part(steps: Sequence[Step], capacity: int | None) -> float | None:
    """Share of the drive that is written; None where it is not known."""
    parts = []
    for step in steps:
        count, share = step.size
        parts.append(count / capacity if count is not None and capacity and step.on_device else share)
    known = [part for part in parts if part is not None]
    return max(known) if len(known) == len(parts) else None


# ---------------------------------------------------------------- 4, 6, 7: sizes, spare flash, drives


def _data_set(name: str, tests: Sequence[Step], capacity: int | None) -> Remark:
    shares: dict[tuple[str, ...], set[float]] = {}
    for test in tests:
        count, share = test.size
        if share is not None or count is not None:
            shares.setdefault(test.targets, set()).add(share or (count or 0) / (capacity or 1))
    said = [test.job.text("size") or test.job.text("filesize") or "100% (not given)" for test in tests]
    looked = f"size={', '.join(list(dict.fromkeys(said))[:5])}"
    where = _at(name, tests, "size", "filesize")
    if any(len(sizes) > 1 for sizes in shares.values()):
        return Remark(DATA_SET, "ok", looked, "", where)
    change = "jobs with size=25%, 50% and 88% of the drive: more valid data is more garbage collection"
    return Remark(DATA_SET, "finding", f"{looked}: one size for each target", change, where)


def _over_provisioning(name: str, tests: Sequence[Step]) -> Remark:
    one_pass = [test for test in tests if test.is_sprandom]
    stated = [test for test in one_pass if "spr_op" in test.job.options]
    if stated:
        looked = f"spr_op={stated[0].job.text('spr_op')} is stated"
        return Remark(OVER_PROVISIONING, "ok", looked, "", _at(name, stated, "spr_op"))
    if one_pass:
        looked = f"sprandom=1 without spr_op: fio takes {SPRANDOM_OP}, whatever the drive has"
        change = "spr_op with the drive's own, (flash for data - capacity) / capacity"
        return Remark(OVER_PROVISIONING, "cannot tell", looked, change, _at(name, one_pass, "sprandom"))
    part = [test for test in tests if test.size[1] is not None and test.size[1] < 1]
    if part:
        looked = f"size={part[0].job.text('size')} leaves the rest of the drive spare, if nothing was written there"
        change = "blkdiscard before it, and say which share is left"
        return Remark(OVER_PROVISIONING, "cannot tell", looked, change, _at(name, part, "size"))
    change = "say which share of the drive is used; once more with size=75% after blkdiscard"
    return Remark(OVER_PROVISIONING, "cannot tell", "nothing says how much flash is spare", change, name)


def _drive_type(name: str, tests: Sequence[Step]) -> Remark:
    targets = list(dict.fromkeys(target for test in tests for target in test.targets))
    where = _at(name, tests, "filename", "directory")
    if any(map(is_unknown, targets)) or not targets:
        looked = "filename is a variable" if targets else "no filename: the command line names the drive"
        return Remark(DRIVE_TYPE, "cannot tell", looked, "run it on a second class of drive", where)
    if len(targets) > 1:
        looked = f"filename={', '.join(targets[:4])}; whether these are types of drive is not said"
        return Remark(DRIVE_TYPE, "cannot tell", looked, "say which drives these are", where)
    return Remark(DRIVE_TYPE, "finding", f"{targets[0]} alone", "run it on a second class of drive (filename)", where)


# ---------------------------------------------------------------- beside the seven


def _depth(test: Step) -> str:
    depth, engine = test.job.text("iodepth", "1"), test.job.text("ioengine", "psync")
    ignored = f" (but ioengine={engine} has one in flight)" if engine in SYNCHRONOUS and depth != "1" else ""
    return f"iodepth={depth}{ignored}"


def _closed_loop(name: str, tests: Sequence[Step]) -> list[Remark]:
    rates = ("rate_iops", "rate")
    closed = [
        test for test in tests
        if not test.prepares
        and not any(rate in test.job.options for rate in rates)
        and not test.job.on("gtod_reduce") and not test.job.on("disable_lat")
    ]  # fmt: skip
    linear = [
        test for test in tests
        if any(rate in test.job.options for rate in rates) and test.job.text("io_submit_mode") != "offload"
    ]  # fmt: skip
    remarks = []
    if closed:
        depths = ", ".join(dict.fromkeys(map(_depth, closed)))
        looked = f"no rate_iops: a closed loop of {depths}, in which a command waits for the last one's end"
        change = "quote its throughput; for latency rate_iops=N rate_process=poisson io_submit_mode=offload"
        remarks.append(Remark(CLOSED_LOOP, "finding", looked, change, _at(name, closed, "iodepth")))
    if linear:
        looked = (
            "a rate without io_submit_mode=offload: a full queue holds the submission up, and the wait is not counted"
        )
        remarks.append(Remark(CLOSED_LOOP, "finding", looked, "io_submit_mode=offload", _at(name, linear, *rates)))
    return remarks


def _page_cache(name: str, tests: Sequence[Step]) -> list[Remark]:
    cached = [
        test for test in tests
        if not test.job.on("direct") and test.job.text("buffered", "1") != "0"
        and test.job.text("ioengine").split(":")[0] not in AROUND_CACHE
    ]  # fmt: skip
    if not cached:
        return []
    looked = "direct=0: reads may come from memory, and writes end there"
    if any(test.writes and not _synced(test) for test in cached):
        looked += "; nothing waits for the drive at the end"
    return [Remark(PAGE_CACHE, "finding", looked, "direct=1", _at(name, cached, "direct", "rw"))]


SYNCS = ("fsync", "fdatasync", "sync", "end_fsync", "fsync_on_close")


def _synced(test: Step) -> tuple[tuple[str, str], ...]:
    return tuple((sync, test.job.text(sync)) for sync in SYNCS if test.job.on(sync))


def _durability(name: str, tests: Sequence[Step]) -> list[Remark]:
    writing = [test for test in tests if test.writes and not test.prepares]
    ways = {tuple(pair for pair in _synced(test) if pair[0] in ("fsync", "fdatasync", "sync")) for test in writing}
    if len(ways) < 2:
        return []
    said = [", ".join(f"{sync}={value}" for sync, value in way) or "no sync" for way in sorted(ways)]
    change = "the same fsync, fdatasync or sync in all jobs that are compared"
    where = _at(name, writing, "fsync", "fdatasync", "sync")
    return [Remark(DURABILITY, "finding", f"writing jobs differ: {'; '.join(said)}", change, where)]


def _contents(name: str, tests: Sequence[Step]) -> list[Remark]:
    options = ("zero_buffers", "buffer_compress_percentage", "buffer_pattern", "dedupe_percentage")
    found = [
        test for test in tests
        if test.writes and any(test.job.text(option, "0") not in ("", "0") for option in options)
    ]  # fmt: skip
    if not found:
        return []
    given = [f"{option}={found[0].job.text(option)}" for option in options if option in found[0].job.options]
    looked = f"{', '.join(given)}: a drive that compresses or finds duplicates writes less than this"
    return [Remark(COMPRESSION, "finding", looked, "refill_buffers=1 and none of these", _at(name, found, *options))]


def _skew(name: str, tests: Sequence[Step], capacity: int | None) -> list[Remark]:
    remarks = []
    for test in tests:
        kind, _, rest = test.job.text("random_distribution").partition(":")
        if kind in ("", "random") or "rand" not in test.mode:
            continue
        remarks.append(_touched(name, test, kind, rest, capacity))
    return remarks


def _touched(name: str, test: Step, kind: str, rest: str, capacity: int | None) -> Remark:
    where = _at(name, [test], "random_distribution")
    change = "state the share; or random_distribution=random, which touches every offset"
    given = f"random_distribution={test.job.text('random_distribution')}"
    try:
        theta = float(rest.split(":")[0])
    except ValueError:
        theta = 1.1  # fio's own default. Source: FIO_DEF_ZIPF in its fio.h
    block = block_bytes(test.job, writes=test.writes)
    part = test.size[1] if test.on_device is not False else None
    span = test.size[0] if test.size[0] is not None else (part or 0) * (capacity or LEAST_CAPACITY_BYTES)
    if kind != "zipf":
        looked = f"{given}: some offsets are touched more than others; how many at all is not worked out for {kind}"
        return Remark(SKEW, "cannot tell", looked, change, where)
    if not block or not span or span < block or not 0 <= theta < 100:
        looked = f"{given}: few offsets are touched; how few needs size (or --capacity) and bs"
        return Remark(SKEW, "cannot tell", looked, change, where)
    slots = int(span // block)
    loops, clones = test.job.number("loops", 1) or 1, test.job.number("numjobs", 1) or 1
    amount = size_of(test.job.text("io_size"))[0] if "io_size" in test.job.options else span
    draws = max(1.0, (amount or span) / block * loops * clones)
    share = touched_share(draws, slots, slots, theta)
    looked = f"{given}: {draws:.3g} draws touch {share:.1%} of the {slots:.3g} offsets"
    if test.size[0] is None and capacity is None:  # more ranks for as many draws of each: the share falls
        if share >= 0.5:
            looked = f"{given}: {share:.1%} of a drive of 100 GB are touched; of a larger one fewer may be"
            return Remark(SKEW, "cannot tell", looked, "state the share (--capacity tells it)", where)
        looked += " of a drive of 100 GB, and no more of a larger one"
    if test.job.on("time_based"):
        looked += " (as many draws as size has blocks; more time touches more)"
    return Remark(SKEW, "finding" if share < 0.5 else "ok", looked, "" if share >= 0.5 else change, where)
