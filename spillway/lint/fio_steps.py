"""fio's jobs as steps in their order: what each writes, whether it prepares or measures, and what preparing leaves.

The same commands may prepare or measure: fio prints figures of both. The options of a job decide. A step prepares where
it only writes and ends with its volume, keeps no record (``RECORDS``), and

    says so by its name (``precondition``, ``fill``, ``prep``, ``warm-up``, ``layout``), or is ``sprandom``; or
    writes its target whole, and steps behind it are ended by time, by ``ss``, or keep a record; or another tool
    measures behind it.

Anything else is taken for a measurement, a fill without a name among it.

State after uniform random writes of x times the span, each drawn by itself (no random map): a share exp(-x) of the LBAs
is not written. Twice the span, after it was written in order, is the steady state of random writes as far as PVLDB
14(3) asks for it. Ignored: what trims and file systems do between two steps.
"""

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass

from spillway.lint.fio_jobs import Job, seconds_of, size_of
from spillway.lint.shell import UNKNOWN

# Engines whose I/O goes to no drive of this machine, or to none at all. Source: fio's HOWTO
NO_DRIVE = {
    *("null", "cpp_null", "cpuio", "exec", "guasi", "e4defrag", "ftruncate", "falloc", "net", "netsplice", "rdma"),
    *("mtd", "http", "rbd", "rados", "gfapi", "gfapi_async", "libhdfs", "nbd", "nfs", "libiscsi", "dfs", "ime"),
    *("sheepdog", "filecreate", "filestat", "filedelete", "dircreate", "dirstat", "dirdelete", "filexattr"),
    *("dev-dax", "libpmem", "pmemblk", "libcufile", "librpma_apm_client", "librpma_apm_server"),
    *("librpma_gpspm_client", "librpma_gpspm_server"),
}
# Engines that bypass the page cache.
AROUND_CACHE = ("spdk", "spdk_bdev", "io_uring_cmd", "sg", "libzbc", "nvme", "libblkio", "xnvme", "libaio_direct")
LOGS = ("write_bw_log", "write_iops_log", "write_lat_log")
# What is given only where a figure is wanted: a series, percentiles, a form for programs, a steady state, a rate.
RECORDS = (
    *LOGS,
    *("write_hist_log", "bandwidth_log", "log_avg_msec", "log_hist_msec", "percentile_list", "lat_percentiles"),
    *("slat_percentiles", "output_format", "minimal", "status_interval", "ss", "ramp_time", "rate", "rate_iops"),
)
# Names of a job that is no test; `preconditioned` says that another one was before it, `fill80` how full a drive is.
_PREPARES = re.compile(
    r"(?<!un)(pre[-_ ]?cond(ition(ing)?)?|fill(ing)?|prep(are|aration)?|warm([-_ ]?up)?|lay[-_ ]?out)(?![a-z])"
)
_MEASURES = re.compile(
    r"(?<![a-z])(no|non|not|without|after|post|test\w*|bench\w*|measur\w*|perf\w*|lat(ency)?|iops|result\w*)(?![a-z])"
    r"|fill[-_ ]?\d\d"
)
SETTLED = 2.0  # times its span that a drive is overwritten at random. Source: B14
UNWRITTEN = 0.005  # share of LBAs; a smaller one is not mentioned. Source: guess
SPRANDOM_OP = 0.15  # fio's default of spr_op. Source: options.c of fio 3.42


@dataclass(frozen=True)
class Step:
    """A job, the group that it runs in, and whether another tool measures after it."""

    job: Job
    group: int
    followed: bool = False

    @property
    def mode(self) -> str:
        """As ``rw`` has it, without its offset."""
        return self.job.text("rw", "read").split(":")[0].strip().lower() or "read"

    @property
    def writes(self) -> bool:
        """Whether it writes at all."""
        return "write" in self.mode or self.mode in ("rw", "readwrite", "randrw")

    @property
    def reads(self) -> bool:
        """Whether it reads at all."""
        return "read" in self.mode or self.mode in ("rw", "randrw")

    @property
    def write_share(self) -> float:
        """Share of its bytes that it writes."""
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
    def on_drive(self) -> bool:
        """Whether any of its I/O reaches a drive; a trim that is not measured does not count."""
        engine = self.job.text("ioengine").split(":")[0]
        nowhere = bool(self.targets) and all(target in ("/dev/null", "/dev/zero") for target in self.targets)
        trims = self.mode in ("trim", "randtrim") and not self.measures
        return engine not in NO_DRIVE and not nowhere and not trims

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
    def no_time(self) -> str | None:
        """What ``runtime`` says where fio would not take it for a time; None where it would."""
        text = self.job.text("runtime", "0")
        known = seconds_of(text) is not None or self._computed("runtime")
        return None if known else text

    def _computed(self, option: str) -> bool:
        """Whether fio makes the option's value of a variable or an expression."""
        text = self.job.text(option).strip()
        return is_unknown(text) or "$" in text or text.startswith("(")

    @property
    def record(self) -> str:
        """The first of its options that only a measurement has; empty: none."""
        return next((each for each in RECORDS if self.job.on(each)), "")

    @property
    def by_time(self) -> bool:
        """Whether time may end it."""
        return self.runtime is not None or self.job.on("time_based") or self._computed("runtime")

    @property
    def measures(self) -> bool:
        """Whether its options are those of a measurement."""
        return self.by_time or bool(self.record)

    @property
    def is_sprandom(self) -> bool:
        """Whether it is fio's own preconditioning in one pass."""
        return self.job.on("sprandom")

    @property
    def declared(self) -> bool:
        """Whether its name says that it prepares."""
        plain = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", self.job.name).lower()
        return bool(_PREPARES.search(plain)) and not _MEASURES.search(plain)

    @property
    def may_prepare(self) -> bool:
        """Whether it could prepare: it only writes, ends by volume, and keeps no record."""
        return self.mode in ("write", "randwrite") and not self.measures

    @property
    def prepares(self) -> bool:
        """Whether it brings its target to a state and states no figure; see above."""
        whole = self.size[1] == 1.0 or self.job.on("fill_device")
        return self.may_prepare and (self.declared or self.is_sprandom or (whole and self.followed))

    @property
    def maps(self) -> bool:
        """Whether each of its passes writes every block."""
        return self.mode == "write" or not (self.job.on("norandommap") or self.is_sprandom)

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

    def spans(self) -> float | None:
        """How often it writes its own span; None where that is not known."""
        loops, clones = self.job.number("loops", 1), self.job.number("numjobs", 1)
        if loops is None or clones is None:
            return None
        times = loops * clones
        if "io_size" in self.job.options:
            sizes = zip(size_of(self.job.text("io_size")), self.size, strict=True)
            times *= next((given / own for given, own in sizes if given is not None and own), math.nan)
        return times if times >= 0 and math.isfinite(times) else None


def is_unknown(target: str) -> bool:
    """Whether a target's name holds a variable that nothing has given a value."""
    return "$" in target or UNKNOWN in target


def steps_of(jobs: Sequence[Job], *, followed: bool) -> list[Step]:
    """The jobs that reach a drive. ``followed``: another tool measures behind them."""
    groups, group = [], 0
    for index, job in enumerate(jobs):
        if index and job.on("stonewall"):
            group += 1
        groups.append(group)
    steps = [Step(job, own) for job, own in zip(jobs, groups, strict=True)]
    steps = [step for step in steps if step.on_drive]
    last = max((step.group for step in steps if step.measures), default=-1)
    return [Step(step.job, step.group, followed or step.group < last) for step in steps]


def covers(filling: Step, step: Step) -> bool:
    """What ``filling`` has written holds all that ``step`` works on."""
    if filling.on_device and step.on_device is False:
        return filling.size[1] == 1.0  # a file on the drive, as far as a recipe can say it
    if step.targets and filling.targets and not set(step.targets) <= set(filling.targets):
        return False
    for own, other in zip(step.size, filling.size, strict=True):
        if own is not None and other is not None:
            return other >= own
    return filling.size[1] == 1.0


# ---------------------------------------------------------------- what preparing leaves


@dataclass(frozen=True)
class State:
    """The state in which steps leave a target: in words, whether it is steady under random writes, and the share of
    LBAs that is unwritten."""

    words: str
    settled: bool
    unwritten: float  # share of the LBAs


def state_after(steps: Sequence[Step]) -> State | None:
    """Of steps that have written one target, in their order; None where none wrote it whole.

    The span is that of the largest; steps over less of it are left out.
    """
    filling = [step for step in steps if step.mode in ("write", "randwrite") and not step.by_time]
    whole = [step for step in filling if all(covers(step, other) for other in filling)]
    if not whole:
        return None
    ordered, overwritten, unwritten, skewed, passes = False, 0.0, 1.0, "", ""
    known = True
    for step in whole:
        times = step.spans()
        if step.is_sprandom:
            ordered, overwritten, unwritten, skewed = False, 0.0, 0.0, ""
            passes = f"in one pass (sprandom=1, spr_op={step.job.text('spr_op') or f'{SPRANDOM_OP} by default'})"
        elif step.mode == "write":
            ordered, overwritten, unwritten, skewed, passes, known = True, 0.0, 0.0, "", "", True
        else:
            known = known and times is not None
            overwritten += times or 0.0
            unwritten = 0.0 if step.maps and (times or 0) >= 1 else unwritten * math.exp(-(times or 0.0))
            kind = step.job.text("random_distribution", "random").split(":")[0]
            skewed = skewed or ("" if kind == "random" else step.job.text("random_distribution"))
    parts = [passes] if passes else ["in order"] if ordered else []
    if overwritten or not known:
        count = f"{overwritten:.3g} x" if known else "an unknown number of times"
        parts.append(f"{count} at random{f' ({skewed})' if skewed else ''}")
    at_once = len({step.group for step in whole}) < len(whole) and len({step.mode for step in whole}) > 1
    words = " and at the same time ".join(parts) if at_once else ", then ".join(parts)
    settled = bool(passes) or (known and overwritten >= SETTLED)
    return State(words, settled and not skewed and not at_once, unwritten)


def refused_by_fio(step: Step) -> str:
    """Why fio refuses such a ``sprandom``, as a clause; empty: it does not. Source: fixup_options() of fio 3.42's
    init.c."""
    job = step.job
    if step.mode != "randwrite":
        return f"rw={step.mode}, and it takes randwrite"
    if "norandommap" in job.options and not job.on("norandommap"):
        return "norandommap=0, and it takes 1"
    if job.text("random_generator", "lfsr") != "lfsr":
        return f"random_generator={job.text('random_generator')}, and it takes lfsr"
    if (job.number("numjobs", 1) or 1) > 1 or len(step.targets) > 1:
        return "several jobs or files, and it takes one"
    over = job.number("spr_op", SPRANDOM_OP)
    if "spr_op" in job.options and "$" not in job.text("spr_op") and (over is None or not 0 < over < 1):
        return f"spr_op={job.text('spr_op')}, and it is a share between 0 and 1"
    return ""
