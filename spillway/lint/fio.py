"""fio jobs against the pitfalls.

Jobs between two ``stonewall`` run at once, and what one group writes is there for the next. fio's latencies begin at
the submission; without a rate the next command waits for the last.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from spillway.errors import SpillwayError
from spillway.lint import recipe as around
from spillway.lint.fio_jobs import Job, block_bytes, seconds_of, size_of
from spillway.lint.pitfalls import (
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
    SKEW,
    SPACE,
    STEADY_CAPACITIES,
    WA_DEVICE,
)
from spillway.lint.share import touched_share
from spillway.lint.shell import UNKNOWN
from spillway.lint.table import Linted, Remark, Verdict, table_of
from spillway.quantity import human_bytes

# Engines whose I/O goes to no drive of this machine, or to none at all. Source: fio's HOWTO
NO_DRIVE = {
    *(
        "null",
        "cpp_null",
        "cpuio",
        "exec",
        "guasi",
        "e4defrag",
        "ftruncate",
        "falloc",
        "net",
        "netsplice",
        "rdma",
        "mtd",
    ),
    *("http", "rbd", "rados", "gfapi", "gfapi_async", "libhdfs", "nbd", "nfs", "libiscsi", "dfs", "ime", "sheepdog"),
    *("filecreate", "filestat", "filedelete", "dircreate", "dirstat", "dirdelete", "filexattr", "dev-dax", "libpmem"),
    *(
        "pmemblk",
        "libcufile",
        "librpma_apm_client",
        "librpma_apm_server",
        "librpma_gpspm_client",
        "librpma_gpspm_server",
    ),
}
# Engines that pass the page cache by.
AROUND_CACHE = ("spdk", "spdk_bdev", "io_uring_cmd", "sg", "libzbc", "nvme", "libblkio", "xnvme", "libaio_direct")
SYNCHRONOUS = ("psync", "sync", "vsync", "pvsync", "pvsync2", "mmap", "splice")  # iodepth means nothing to them
PREPARES = re.compile(r"pre-?cond|prep|fill|warm|layout", re.IGNORECASE)  # in the name of a job that is no test
LOGS = ("write_bw_log", "write_iops_log", "write_lat_log")


@dataclass(frozen=True)
class _Test:
    """A job and the group that it runs in."""

    job: Job
    group: int
    followed: bool = False  # whether another group, or another tool, comes behind it

    @property
    def mode(self) -> str:
        return self.job.text("rw", "read").split(":")[0].strip().lower() or "read"

    @property
    def writes(self) -> bool:
        return "write" in self.mode or self.mode in ("rw", "readwrite", "randrw")

    @property
    def reads(self) -> bool:
        return "read" in self.mode or self.mode in ("rw", "randrw")

    @property
    def write_share(self) -> float:
        """Of its bytes."""
        if not self.reads:
            return 1.0 if self.writes else 0.0
        if not self.writes:
            return 0.0
        given = self.job.number("rwmixwrite", -1)
        read = self.job.number("rwmixread", 50)
        share = given if given is not None and given >= 0 else 100 - (50 if read is None else read)
        return min(max(share, 0.0), 100.0) / 100

    @property
    def targets(self) -> tuple[str, ...]:
        """Devices or files; empty where the job does not name one."""
        named = self.job.text("filename")
        if named:
            return tuple(part for part in re.split(r"(?<!\\):", named) if part)
        place = self.job.text("directory")
        return (f"{place}/",) if place else ()

    @property
    def on_device(self) -> bool | None:
        """Whether it works on a drive itself; None: where is not said."""
        if not self.targets:
            return None
        if any(is_unknown(target) for target in self.targets):
            return None
        raw = self.job.text("ioengine") in AROUND_CACHE
        return raw or all(target.startswith("/dev/") and not target.startswith("/dev/shm") for target in self.targets)

    @property
    def size(self) -> tuple[float | None, float | None]:
        """(bytes, share of the target): of a device that no size is given for, all of it."""
        text = self.job.text("size") or self.job.text("filesize")
        return size_of(text) if text else (None, 1.0 if self.on_device is not False else None)

    @property
    def runtime(self) -> float | None:
        """Seconds after which it ends; None for none, as for 0."""
        return seconds_of(self.job.text("runtime", "0")) or None

    @property
    def prepares(self) -> bool:
        """It writes its target whole, nothing ends it early, and something comes behind it; or it says so itself."""
        if self.job.on("sprandom"):
            return True
        whole = self.size[1] == 1.0 or self.job.on("fill_device") or bool(PREPARES.search(self.job.name))
        return self.mode in ("write", "randwrite") and whole and self.runtime is None and self.followed

    def written(self, capacity: int | None) -> tuple[float | None, float | None]:
        """(bytes, multiple of the capacity) that all its clones write where time does not end them."""
        amount, share = self.size
        if "io_size" in self.job.options:
            amount, share = size_of(self.job.text("io_size"))
        loops, clones = self.job.number("loops", 1), self.job.number("numjobs", 1)
        if loops is None or clones is None:
            return None, None
        times = loops * clones * self.write_share
        if amount is not None:
            return amount * times, amount * times / capacity if capacity else None
        if share is not None and self.on_device is not False:
            return share * times * capacity if capacity else None, share * times
        return None, None


def lint_fio(name: str, jobs: Sequence[Job], capacity: int | None = None, *, followed: bool = False) -> Linted:
    """The table of jobs in their order. Raises SpillwayError where there is nothing to judge.

    ``followed``: another tool measures behind them, so that what only fills a drive is no test.
    """
    if not jobs:
        raise SpillwayError(f"{name}: there is no job in it; a fio job file has a [section] for each job.")
    tests = [test for test in _grouped(jobs, followed) if _on_drive(test)]
    if not tests:
        raise SpillwayError(
            f"{name}: none of its jobs reads or writes a drive (ioengine or filename), so nothing can be told."
        )
    if all(test.prepares for test in tests):
        return _preconditioning(name, tests)
    measured = [test for test in tests if not test.prepares]
    remarks = [
        *_short_test(name, tests, capacity),
        _wa_device(name, measured),
        *_initial_state(name, tests),
        _data_set(name, measured, capacity),
        Remark(SPACE, "ok", "fio writes what it is told: there is no store that could hold more", "", name),
        _over_provisioning(name, tests),
        _drive_type(name, measured),
        *_closed_loop(name, measured),
        *_page_cache(name, measured),
        *_contents(name, tests),
        *_durability(name, measured),
        *_skew(name, measured, capacity),
    ]
    return table_of(name, "fio", remarks)


def _preconditioning(name: str, tests: Sequence[_Test]) -> Linted:
    """Of jobs that bring a drive to a state and measure nothing."""
    said = "it preconditions a drive and measures nothing"
    plain = (SHORT_TEST, WA_DEVICE, DATA_SET, SPACE, DRIVE_TYPE)
    remarks = [Remark(pitfall, "ok", said, "", name) for pitfall in plain]
    remarks += [*_initial_state(name, tests), _over_provisioning(name, tests), *_page_cache(name, tests)]
    return table_of(name, "fio", [*remarks, *_contents(name, tests)])


def _grouped(jobs: Sequence[Job], followed: bool) -> list[_Test]:
    groups, group = [], 0
    for index, job in enumerate(jobs):
        if index and job.on("stonewall"):
            group += 1
        groups.append(group)
    return [_Test(job, own, followed or own < group) for job, own in zip(jobs, groups, strict=True)]


def is_unknown(target: str) -> bool:
    """Whether a target's name holds a variable that nothing has given a value."""
    return "$" in target or UNKNOWN in target


def _on_drive(test: _Test) -> bool:
    engine = test.job.text("ioengine").split(":")[0]
    nowhere = bool(test.targets) and all(target in ("/dev/null", "/dev/zero") for target in test.targets)
    return engine not in NO_DRIVE and not nowhere and "trim" not in test.mode


def _at(name: str, tests: Sequence[_Test], *options: str) -> str:
    """File, lines and jobs."""
    lines = list(dict.fromkeys(line for test in tests for line in test.job.where(*options).split(", ") if line))
    names = list(dict.fromkeys(f"[{test.job.name}]" for test in tests))
    numbers = ", ".join(sorted(lines, key=int)[:6])
    more = f" and {len(names) - 4} more" if len(names) > 4 else ""
    return f"{name.rpartition('/')[2]}{':' if numbers else ''}{numbers} {' '.join(names[:4])}{more}"


# ---------------------------------------------------------------- 1: short tests


def _judged(test: _Test, capacity: int | None) -> tuple[Verdict, str]:
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


def _short_test(name: str, tests: Sequence[_Test], capacity: int | None) -> list[Remark]:
    writing = [test for test in tests if test.writes and not test.prepares]
    groups: dict[tuple[Verdict, str], list[_Test]] = {}
    for test in writing:
        groups.setdefault(_judged(test, capacity), []).append(test)
    change = (
        "time_based=1 with a runtime of 1800 or more, until 3 x the capacity is written; or ss=iops:10% ss_dur=300; "
        "with write_bw_log and ramp_time the burst stays apart"
    )
    remarks = []
    for (verdict, words), found in groups.items():
        where = _at(name, found, "runtime", "size", "io_size", "loops", "ss")
        remarks.append(Remark(SHORT_TEST, verdict, words, "" if verdict == "ok" else change, where))
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
        looked = f"reads for {around.minutes(short[0].runtime or 0)}"
        remarks.append(
            Remark(SHORT_TEST, "finding", looked, "runtime=60 or more", _at(name, short, "runtime"))
        )  # fmt: skip
    if not remarks:
        what = "what is written is preconditioning" if any(test.writes for test in tests) else "reads alone"
        remarks.append(Remark(SHORT_TEST, "ok", what, "", name))
    return remarks


# ---------------------------------------------------------------- 2, 3: write amplification, initial state


def _wa_device(name: str, tests: Sequence[_Test]) -> Remark:
    if not any(test.writes for test in tests):
        return Remark(WA_DEVICE, "ok", "nothing is written", "", name)
    change = "read the drive's NAND and host bytes before and after (`spillway drive` says which it counts)"
    return Remark(WA_DEVICE, "finding", "fio counts host bytes and no NAND bytes", change, name)


def _covers(filling: _Test, test: _Test) -> bool:
    """What ``filling`` has written holds all that ``test`` works on."""
    if filling.on_device and test.on_device is False:
        return filling.size[1] == 1.0  # a file on the drive, as far as a recipe can say it
    if test.targets and filling.targets and not set(test.targets) <= set(filling.targets):
        return False
    for own, other in zip(test.size, filling.size, strict=True):
        if own is not None and other is not None:
            return other >= own
    return filling.size[1] == 1.0


def _initial_state(name: str, tests: Sequence[_Test]) -> list[Remark]:
    unwritten: list[_Test] = []
    unprepared: list[_Test] = []
    prepared: list[_Test] = []
    for test in tests:
        earlier = [each for each in tests if each.group < test.group and each.mode in ("write", "randwrite")]
        whole = [each for each in earlier if each.runtime is None and _covers(each, test)]
        whole = [
            each for each in whole if each.mode == "write" or each.job.on("sprandom") or not each.job.on("norandommap")
        ]
        if test.job.on("sprandom"):
            continue
        if test.reads and test.on_device is not False and not whole:
            unwritten.append(test)
        elif "rand" in test.mode and test.writes and not whole:
            unprepared.append(test)
        elif whole:
            prepared.append(test)
    remarks = []
    fill = "a first job with rw=write bs=128k size=100% and a stonewall in this one"
    if unwritten:
        sure = all(test.on_device for test in unwritten)
        looked = "reads of LBAs that no earlier job writes: unwritten ones are answered from the mapping, without flash"
        where = _at(name, unwritten, "rw")
        remarks.append(Remark(INITIAL_STATE, "finding" if sure else "cannot tell", looked, fill, where))
    if unprepared:
        looked = "random writes to a drive in no stated condition: neither written whole nor at random before"
        change = f"{fill}; then rw=randwrite loops=2, or sprandom=1 in one pass"
        remarks.append(Remark(INITIAL_STATE, "finding", looked, change, _at(name, unprepared, "rw")))
    if not remarks and prepared:
        where = _at(name, prepared, "rw")
        remarks.append(Remark(INITIAL_STATE, "ok", "an earlier job writes all that is tested", "", where))
    if not remarks and any(test.job.on("sprandom") for test in tests):
        where = _at(name, [test for test in tests if test.job.on("sprandom")], "sprandom")
        remarks.append(
            Remark(INITIAL_STATE, "ok", "sprandom=1 writes the whole drive as random writes would", "", where)
        )
    filling = [test for test in tests if test.prepares and not test.job.on("sprandom")]
    if not remarks and filling:
        where = _at(name, filling, "rw", "size", "loops")
        loops = filling[-1].job.text("loops", "1")
        looked = f"the drive is written whole: rw={filling[-1].mode} loops={loops}"
        remarks.append(Remark(INITIAL_STATE, "ok", looked, "", where))
    if not remarks:
        looked = "nothing says what the drive held before, or that it was purged"
        remarks.append(Remark(INITIAL_STATE, "finding", looked, "blkdiscard before it; " + fill, name))
    return remarks


# ---------------------------------------------------------------- 4, 6, 7: sizes, spare flash, drives


def _data_set(name: str, tests: Sequence[_Test], capacity: int | None) -> Remark:
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


def _over_provisioning(name: str, tests: Sequence[_Test]) -> Remark:
    stated = [test for test in tests if "spr_op" in test.job.options]
    if stated:
        looked = f"spr_op={stated[0].job.text('spr_op')} is stated"
        return Remark(OVER_PROVISIONING, "ok", looked, "", _at(name, stated, "spr_op"))
    part = [test for test in tests if test.size[1] is not None and test.size[1] < 1]
    if part:
        looked = f"size={part[0].job.text('size')} leaves the rest of the drive spare, if nothing was written there"
        change = "blkdiscard before it, and say which share is left"
        return Remark(OVER_PROVISIONING, "cannot tell", looked, change, _at(name, part, "size"))
    change = "say which share of the drive is used; once more with size=75% after blkdiscard"
    return Remark(OVER_PROVISIONING, "cannot tell", "nothing says how much flash is spare", change, name)


def _drive_type(name: str, tests: Sequence[_Test]) -> Remark:
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


def _depth(test: _Test) -> str:
    depth, engine = test.job.text("iodepth", "1"), test.job.text("ioengine", "psync")
    ignored = f" (but ioengine={engine} has one in flight)" if engine in SYNCHRONOUS and depth != "1" else ""
    return f"iodepth={depth}{ignored}"


def _closed_loop(name: str, tests: Sequence[_Test]) -> list[Remark]:
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


def _page_cache(name: str, tests: Sequence[_Test]) -> list[Remark]:
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


def _synced(test: _Test) -> tuple[tuple[str, str], ...]:
    return tuple((sync, test.job.text(sync)) for sync in SYNCS if test.job.on(sync))


def _durability(name: str, tests: Sequence[_Test]) -> list[Remark]:
    writing = [test for test in tests if test.writes and not test.prepares]
    ways = {tuple(pair for pair in _synced(test) if pair[0] in ("fsync", "fdatasync", "sync")) for test in writing}
    if len(ways) < 2:
        return []
    said = [", ".join(f"{sync}={value}" for sync, value in way) or "no sync" for way in sorted(ways)]
    change = "the same fsync, fdatasync or sync in all jobs that are compared"
    where = _at(name, writing, "fsync", "fdatasync", "sync")
    return [Remark(DURABILITY, "finding", f"writing jobs differ: {'; '.join(said)}", change, where)]


def _contents(name: str, tests: Sequence[_Test]) -> list[Remark]:
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


def _skew(name: str, tests: Sequence[_Test], capacity: int | None) -> list[Remark]:
    remarks = []
    for test in tests:
        kind, _, rest = test.job.text("random_distribution").partition(":")
        if kind in ("", "random") or "rand" not in test.mode:
            continue
        remarks.append(_touched(name, test, kind, rest, capacity))
    return remarks


def _touched(name: str, test: _Test, kind: str, rest: str, capacity: int | None) -> Remark:
    where = _at(name, [test], "random_distribution")
    change = "state the share; or random_distribution=random, which touches every offset"
    given = f"random_distribution={test.job.text('random_distribution')}"
    try:
        theta = float(rest.split(":")[0])
    except ValueError:
        theta = 1.1  # fio's own default. Source: FIO_DEF_ZIPF in its fio.h
    block = block_bytes(test.job, writes=test.writes)
    span = test.size[0] if test.size[0] is not None else (test.size[1] or 0) * (capacity or 0)
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
    if test.job.on("time_based"):
        looked += " (as many draws as size has blocks; more time touches more)"
    return Remark(SKEW, "finding" if share < 0.5 else "ok", looked, "" if share >= 0.5 else change, where)
