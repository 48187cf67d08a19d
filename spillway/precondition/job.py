"""fio's job files for preconditioning, each line that is no option with what it does and where that is from.

Sources: fio 3.42's HOWTO and examples/sprandom.fio (one pass; since fio 3.41); Didona et al., PVLDB 14(3), pitfall 3
(once in order, then twice its capacity at random).
"""

from collections.abc import Sequence
from dataclasses import dataclass

from spillway.errors import SpillwayError
from spillway.precondition.model import ONE_PASS, OP_DIGITS, TWO_STEPS, Drive, Residual
from spillway.precondition.order import REGIONS, unwritten_share
from spillway.precondition.procedures import PROCEDURES, Procedure
from spillway.precondition.target import Target
from spillway.quantity import human_bytes, nearest

FIRST_FIO = "3.41"  # with sprandom. Source: fio's tag of 2025-09-05, which has options.c with it and 3.40 has not
TOLD = 0.0005  # share of LBAs that no write reaches, from which on it is said
RANDOM_BYTES = 4096
RANDOM_CAPACITIES = 2
PARTITION_START_BYTES = 2**20  # sgdisk's default alignment


@dataclass(frozen=True)
class Job:
    """What to write, and the states that the model finds after it. ``procedure``: a key of PROCEDURES; None: the target
    as it is."""

    target: Target
    drive: Drive | None
    two_steps: bool = False
    procedure: str | None = None
    residuals: Sequence[Residual] = ()


def check(job: Job) -> None:
    """Raises SpillwayError for a job that fio or Linux would refuse."""
    if job.procedure is not None:
        _check_procedure(job, job.procedure)
    elif not job.two_steps:
        if job.drive is None:
            raise SpillwayError(
                "one pass takes the drive's over-provisioning: give --preset or --physical; --two-steps does without."
            )
        if round(job.drive.over_provisioning, OP_DIGITS) >= 1:
            raise SpillwayError(
                f"the over-provisioning is {job.drive.over_provisioning:.2f}, and fio's spr_op is below 1: use "
                "--two-steps, or a larger --size."
            )


def _check_procedure(job: Job, name: str) -> None:
    if name not in PROCEDURES:
        known = ", ".join(PROCEDURES)
        raise SpillwayError(f"--procedure {name!r} is none of {known}{nearest(name, PROCEDURES)}")
    target = job.target
    if not target.is_device or target.whole_bytes is None:
        raise SpillwayError(f"--procedure {name} partitions a drive, and {target.path} is a file: name a block device.")
    if target.is_partition:
        raise SpillwayError(f"--procedure {name} partitions a drive, and {target.path} is a partition: name its drive.")
    if target.size_bytes + PARTITION_START_BYTES > target.whole_bytes:
        raise SpillwayError(f"--procedure {name} takes the partition's --size, smaller than the drive: give one.")


def as_text(job: Job) -> str:
    """The job file. Raises SpillwayError."""
    check(job)
    lines = _procedure(job, PROCEDURES[job.procedure]) if job.procedure else _plain(job)
    return "\n".join([*lines, ""])


def _plain(job: Job) -> list[str]:
    target = job.target
    lines = [
        f"# Brings {target.path} to the steady state of random writes.",
        f"# IT DESTROYS THE DATA of {target.path}: {human_bytes(target.size_bytes)} from its start.",
        "#",
        *_said_of(job),
    ]
    lines += [
        "#",
        "# Before: purge the drive, so that no older data takes part in its garbage collection:",
        f"#   blkdiscard {target.path}" if target.is_device else f"#   rm {target.path}, and fstrim its file system",
        "",
    ]
    if job.two_steps:
        return lines + _two_steps(target.path, target.size_bytes, _unit(job), target.is_device)
    assert job.drive is not None
    return lines + _one_pass(target, job.drive)


def _one_pass(target: Target, drive: Drive) -> list[str]:
    return [
        f"# Needs fio {FIRST_FIO} or later; an older one refuses the option sprandom (--two-steps makes a job for it).",
        "# One pass over the physical capacity: every LBA once in a random order, and of each region as many again as",
        "# are invalid at steady state in erase blocks of its age. One job and one file, as sprandom demands.",
        *_unwritten(drive.over_provisioning),
        *_global(target.path, target.size_bytes, target.is_device),
        "",
        "[precondition-one-pass]",
        "rw=randwrite",
        "# The drive's mapping unit: what one entry of its map stands for.",
        f"bs={drive.unit_bytes}",
        f"blockalign={drive.unit_bytes}",
        "norandommap=1",
        "random_generator=lfsr",
        "sprandom=1",
        "# (flash for data - what is written) / what is written",
        f"spr_op={drive.over_provisioning:.{OP_DIGITS}f}",
        f"spr_num_regions={REGIONS}",
    ]


def _unwritten(over_provisioning: float) -> list[str]:
    share = unwritten_share(over_provisioning)
    return (
        [f"# At this over-provisioning fio's order leaves {share:.1%} of the LBAs unwritten."] if share >= TOLD else []
    )


def _two_steps(path: str, size_bytes: int, unit_bytes: int, is_device: bool) -> list[str]:
    return [
        "# For any fio 3.",
        *_global(path, size_bytes, is_device),
        "",
        "# First everything once in order: no LBA is left unwritten, and reads find data.",
        "[precondition-sequential]",
        "rw=write",
        "bs=128k",
        "",
        f"# Then {RANDOM_CAPACITIES} times as much at random places, each drawn by itself (no random map).",
        "[precondition-random]",
        "stonewall",
        "rw=randwrite",
        f"bs={unit_bytes}",
        "norandommap=1",
        f"io_size={RANDOM_CAPACITIES * size_bytes}",
    ]


def _global(path: str, size_bytes: int, is_device: bool) -> list[str]:
    escaped = path.replace(":", "\\:")
    created = ["# A node that is not there is an error, not a new file in /dev.", "allow_file_create=0"]
    return [
        "[global]",
        f"filename={escaped}",
        *(created if is_device else []),
        f"size={size_bytes}",
        "ioengine=libaio",
        "direct=1",
        "iodepth=32",
        "numjobs=1",
    ]


def _unit(job: Job) -> int:
    return job.drive.unit_bytes if job.drive else RANDOM_BYTES


def _said_of(job: Job) -> list[str]:
    """What the model says, for a reader of the file."""
    if job.drive is None:
        return ["# How far from steady it leaves the drive is not said: --preset or --physical names a drive model."]
    if not job.residuals:
        return ["# How far from steady it leaves the drive was not asked of the model."]
    way = TWO_STEPS if job.two_steps or job.procedure else ONE_PASS
    width = max(len(each.way) for each in job.residuals)
    lines = [
        f"# How far from steady, by the model of {job.drive.words},",
        f"# over-provisioning {job.drive.over_provisioning:.4f}, trimmed before: wa_device of the random writes of "
        f"{job.drive.unit_bytes} bytes",
        "# that come next, half as many bytes as were written.",
    ]
    lines += [f"# {'*' if each.way == way else ' '} {each.way:<{width}}  {each.words}" for each in job.residuals]
    if not job.target.is_device:
        lines.append("# That is of a file that fills its drive; free space beside it is spare too.")
    return [*lines, "# * is this job."]


def _procedure(job: Job, how: Procedure) -> list[str]:
    target = job.target
    lines = [
        f"# {job.procedure}: {how.summary}.",
        f"# IT DESTROYS THE DATA of {target.path}, {human_bytes(target.whole_bytes or 0)}; the partition, "
        f"{target.partition}, has {human_bytes(target.size_bytes)}.",
        "# Lines that begin with #$ are commands for you: neither fio nor spillway runs them.",
        "#",
    ]
    partitioned = [f"#$ sgdisk --zap-all {target.path}", f"#$ sgdisk --new=1:0:+{_kib(target)}K {target.path}"]
    trimmed = [f"#$ blkdiscard {target.partition}"]
    if not how.used:
        before = [f"#$ blkdiscard {target.path}", *partitioned]
    elif how.preconditions:
        before = [
            "# The drive has been used all over; `--procedure partition-trim` writes the job that uses a new one so.",
            *partitioned,
            *trimmed,
        ]
    else:
        before = []
    if how.preconditions:
        lines += ["# Before fio:", *before, "#", *_said_of_partition(job, how), ""]
        return lines + _two_steps(target.partition, target.size_bytes, _unit(job), True)
    if how.used:
        assert target.whole_bytes is not None
        lines += ["# fio uses the drive all over. Leave that out where years of use have.", "# After fio:"]
        lines += [*partitioned, *trimmed, "#", *_said_of_partition(job, how), ""]
        return lines + _two_steps(target.path, target.whole_bytes, _unit(job), True)
    return [*lines, "# Nothing is written, so there is no job for fio.", *before, "#", *_said_of_partition(job, how)]


def _kib(target: Target) -> int:
    return target.size_bytes // 1024


def _said_of_partition(job: Job, how: Procedure) -> list[str]:
    """The model's ways write a trimmed drive; anything else is no state that they could be held against."""
    if how.preconditions and not how.used:
        return _said_of(job)
    why = (
        "what lies behind the partition takes part in garbage collection."
        if how.used
        else "the partition is empty, and what is measured brings it to its steady state."
    )
    return ["# How far from steady it leaves the drive is not said:", f"# {why}"]
