"""A recipe: the commands of a benchmark, those around the measuring tool included.

The pitfalls that fio, db_bench and YCSB have alike are judged here: what was done to the drive before, who reads its
counters, who looks at the store's size, how many drives there are.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from spillway.lint.shell import Command
from spillway.lint.table import Remark, Verdict
from spillway.pitfalls import (
    DATA_SET,
    DRIVE_TYPE,
    INITIAL_STATE,
    LEAST_CAPACITY_BYTES,
    LEAST_READ_SECONDS,
    LEAST_SECONDS,
    MOST_WA_APP,
    OVER_PROVISIONING,
    SEVERAL,
    SHORT_TEST,
    SIZES,
    SPACE,
    STEADY_CAPACITIES,
    WA_DEVICE,
)
from spillway.quantity import human_bytes

TOOLS = re.compile(r"(?:^|/)(db_bench\w*|(?:go-)?ycsb(?:\.sh|\.bat)?|fio)$")
# Commands that mention a tool without running it.
TALK = {
    *("echo", "printf", "grep", "egrep", "ps", "pgrep", "pkill", "killall", "kill", "which", "hash", "command", "type"),
    *(
        "cat",
        "rm",
        "cp",
        "mv",
        "ls",
        "cd",
        "mkdir",
        "tail",
        "head",
        "awk",
        "sed",
        "make",
        "git",
        "apt",
        "apt-get",
        "ln",
    ),
    *("yum", "dnf", "pip", "chmod", "wget", "curl", "tar", "source", ".", "test", "[", "[[", "file", "find", "tee"),
}
# How these file systems are made without discarding the drive first.
KEEPS_BLOCKS = ("nodiscard", "-K")
PURGE_CHANGE = "before it: blkdiscard, then fio rw=write bs=128k size=100%, then rw=randwrite bs=4k loops=2"


@dataclass(frozen=True)
class Recipe:
    """Commands with where they are from; ``capacity``: of the drive in bytes; None: not known."""

    name: str
    commands: Sequence[Command]
    capacity: int | None = None
    directory: Path | None = None  # where the files that it names lie
    lines: bool = True  # whether line numbers mean something
    given: dict[str, str] = field(default_factory=dict)  # variables of the environment

    def where(self, commands: Sequence[Command]) -> str:
        """File and lines of some commands."""
        if not self.lines:
            return self.name
        numbers = list(dict.fromkeys(str(command.line) for command in commands))
        more = f" and {len(numbers) - 6} more" if len(numbers) > 6 else ""
        return f"{Path(self.name).name}:{', '.join(numbers[:6])}{more}" if numbers else Path(self.name).name


def tool_of(command: Command) -> tuple[str, list[str]] | None:
    """The measuring tool that a command runs, by its plain name, and its arguments; None for any other command."""
    words = list(command.words)
    if words and Path(words[0]).name in TALK:
        return None
    for index, word in enumerate(words):
        match = TOOLS.search(word)
        if match and (index == 0 or "=" not in word):
            tool = "db_bench" if match[1].startswith("db_bench") else "ycsb" if "ycsb" in match[1] else "fio"
            return tool, _arguments(words[index + 1 :])
    return None


def _arguments(words: Sequence[str]) -> list[str]:
    """Up to a pipe or a redirection."""
    kept = []
    for word in words:
        if word in ("|", "||", "&&", ";", "&") or re.match(r"\d*[<>]", word):
            break
        kept.append(word)
    return kept


def named(commands: Sequence[Command], *programs: str) -> list[Command]:
    """The commands that run one of some programs, whatever runs it for them (sudo, timeout)."""
    found = []
    for command in commands:
        words = [Path(word).name for word in command.words]
        if words and words[0] not in TALK and set(words[:4]) & set(programs):
            found.append(command)
    return found


# ---------------------------------------------------------------- how much is written


def minutes(seconds: float) -> str:
    """A time for people."""
    return f"{seconds:g} s" if seconds < 60 else f"{seconds / 60:.3g} min"


def judged_time(seconds: float) -> tuple[Verdict, str]:
    """(verdict, words) of a test that ends after ``seconds``."""
    if seconds < LEAST_SECONDS:
        return "finding", f"{minutes(seconds)}, where {LEAST_SECONDS // 60} are the least"
    return "cannot tell", f"{minutes(seconds)}: long enough only if host writes reach 3 x the capacity"


def short_reads(seconds: float, where: str, change: str) -> list[Remark]:
    """A remark where a test that only reads ends too soon; else none."""
    if not 0 < seconds < LEAST_READ_SECONDS:
        return []
    return [Remark(SHORT_TEST, "finding", f"reads for {minutes(seconds)}", change, where)]


def judged_user_bytes(count: float, capacity: int | None, most: float = MOST_WA_APP) -> tuple[Verdict, str]:
    """(verdict, words) of a store's test that ends by ``count`` user bytes. Host bytes are wa_app times as many, at
    most ``most`` times."""
    if capacity is None:
        if count * most < STEADY_CAPACITIES * LEAST_CAPACITY_BYTES:
            return "finding", f"{human_bytes(count)} of user data, too little for any drive of 100 GB or more"
        return "cannot tell", f"{human_bytes(count)} of user data; --capacity tells whether that is enough"
    share = count / capacity
    words = f"{human_bytes(count)} of user data, {share:.2g} x the capacity"
    if share >= STEADY_CAPACITIES:
        return "ok", words
    needed = STEADY_CAPACITIES / share if share else float("inf")
    shown = f"{needed:.2g}" if needed < 100 else f"{needed:,.0f}"
    if needed > most:
        return "finding", f"{words}: host writes would reach 3 x only with wa_app above {shown}"
    return "cannot tell", f"{words}: host writes reach 3 x with wa_app {shown} or more"


# ---------------------------------------------------------------- around the tool


def fills(recipe: Recipe) -> list[Command]:
    """Commands that write a whole drive: fio with a write job on a device, dd onto one."""
    found = []
    for command in recipe.commands:
        text = " ".join(command.words)
        tool = tool_of(command)
        device = re.search(r"(?:filename=|filename |of=)/dev/(?!null|zero|shm)\S", text)
        writes = tool and tool[0] == "fio" and re.search(r"(?:rw|readwrite)[= ](?:rand)?write\b", text)
        if device and (writes or named([command], "dd")):
            found.append(command)
    return found


def purges(recipe: Recipe) -> list[Command]:
    """Commands that bring a drive back to the state of no data."""
    found = named(recipe.commands, "blkdiscard", "sg_unmap", "sg_sanitize")
    for command in named(recipe.commands, "nvme", "hdparm"):
        if re.search(r"\b(format|sanitize|dsm|security-erase\S*|trim-sector\S*)\b", " ".join(command.words)):
            found.append(command)
    return found


def made_file_systems(recipe: Recipe) -> list[Command]:
    """mkfs commands that discard the whole device, as they do by default."""
    found = []
    for command in recipe.commands:
        programs = [Path(word).name for word in command.words[:4]]
        made = any(program.startswith("mkfs") for program in programs)
        if made and not any(keep in word for word in command.words for keep in KEEPS_BLOCKS):
            found.append(command)
    return found


def initial_state(recipe: Recipe, tested: Sequence[Command]) -> Remark:
    """What was done to the drive before the store was measured on it."""
    filled, purged, made = fills(recipe), purges(recipe), made_file_systems(recipe)
    order = {id(command): place for place, command in enumerate(recipe.commands)}
    if filled:
        undone = [each for each in made if order[id(each)] > order[id(filled[-1])]]
        if undone:
            return Remark(
                INITIAL_STATE, "finding",
                f"{' '.join(undone[0].words[:2])} discards the whole drive, so what was written before it is undone",
                "mkfs.ext4 -E nodiscard, mkfs.xfs -K, or precondition a file on the file system",
                recipe.where(undone),
            )  # fmt: skip
        return Remark(INITIAL_STATE, "ok", "the drive is written before the test", "", recipe.where(filled))
    if purged:
        return Remark(
            INITIAL_STATE, "finding",
            f"{' '.join(purged[0].words[:2])} and nothing written: a trimmed drive has nothing to collect yet",
            "after it: fio rw=write bs=128k size=100%, then rw=randwrite bs=4k loops=2",
            recipe.where(purged),
        )  # fmt: skip
    looked = "no purge and no preconditioning: the drive is as the last user left it"
    return Remark(INITIAL_STATE, "finding", looked, PURGE_CHANGE, recipe.where(tested[:1]))


def wa_device(recipe: Recipe, tested: Sequence[Command], reports: str) -> Remark:
    """Whether the drive's counters are read. ``reports``: what the tool itself says of write amplification."""
    vendor = [
        each
        for each in named(recipe.commands, "nvme")
        if re.search(r"\b(ocp|intel|micron|wdc|solidigm)\b", " ".join(each.words))
    ]
    host = [each for each in named(recipe.commands, "nvme") if "smart-log" in each.words and each not in vendor]
    readers = [*named(recipe.commands, "smartctl", "isdct", "intelmas", "sst"), *vendor]
    if len(readers) >= 2:
        looked = f"{' '.join(readers[0].words[:3])} reads the drive's counters"
        return Remark(WA_DEVICE, "ok", looked, "", recipe.where(readers))
    change = "read the drive's NAND and host bytes before and after (`spillway drive` says which it counts)"
    if readers:
        return Remark(WA_DEVICE, "finding", "the drive's counters are read only once", change, recipe.where(readers))
    if host:
        looked = "nvme smart-log has host bytes and no NAND bytes"
        return Remark(WA_DEVICE, "finding", looked, change, recipe.where(host))
    return Remark(
        WA_DEVICE, "finding", f"nothing reads the drive's NAND bytes; {reports}", change, recipe.where(tested[:1])
    )


def data_set(
    recipe: Recipe, sizes: Sequence[float], item_bytes: float | None, what: str, option: str, where: str
) -> Remark:
    """Whether a store is measured at several sizes. ``what`` says what they are; ``option`` sets the number of items,
    of which each has ``item_bytes``."""
    ordered = sorted(set(sizes))
    if not ordered:
        return Remark(DATA_SET, "cannot tell", f"{option} or the sizes are not known", f"set {option}", where)
    of = f", {ordered[0] / recipe.capacity:.2g} x the capacity" if recipe.capacity and len(ordered) == 1 else ""
    looked = f"{what} = {', '.join(dict.fromkeys(human_bytes(size) for size in ordered[:5]))}{of}"
    if ordered[0] and ordered[-1] >= SEVERAL * ordered[0]:
        return Remark(DATA_SET, "ok", looked, "", where)
    change = f"run it at several {option}, from {SIZES[0]} to {SIZES[-1]} of the capacity"
    if recipe.capacity and item_bytes:
        counts = ", ".join(f"{recipe.capacity * share / item_bytes:.2g}" for share in SIZES)
        change = f"run it with {option} of {counts} ({', '.join(map(str, SIZES))} of the capacity)"
    return Remark(DATA_SET, "finding", looked, change, where)


def space(recipe: Recipe, tested: Sequence[Command], own: Sequence[Command], option: str) -> Remark:
    """Whether the store's size is measured. ``own``: commands whose tool prints it; ``option``: how it would."""
    watchers = [*named(recipe.commands, "du", "df")]
    listed = [
        each
        for each in recipe.commands
        if each.words[:1] == ("ls",) and any("l" in w for w in each.words if w.startswith("-"))
    ]
    if found := [*own, *watchers, *listed]:
        what = "the tool prints the store's size" if own else f"{found[0].words[0]} looks at the store's size"
        return Remark(SPACE, "ok", what, "", recipe.where(found))
    looked = "nothing looks at the bytes that the store holds"
    return Remark(SPACE, "finding", looked, option, recipe.where(tested[:1]))


def over_provisioning(recipe: Recipe, tested: Sequence[Command]) -> Remark:
    """Whether a partition is made."""
    parted = named(recipe.commands, "parted", "sgdisk", "sfdisk", "fdisk", "lvcreate")
    if parted:
        looked = f"{' '.join(parted[0].words[:3])} makes a partition"
        return Remark(OVER_PROVISIONING, "ok", looked, "", recipe.where(parted))
    change = "say which share of the drive is partitioned; measure once more on three quarters, the rest discarded"
    return Remark(OVER_PROVISIONING, "cannot tell", "no partition is made", change, recipe.where(tested[:1]))


def drive_type(recipe: Recipe, tested: Sequence[Command], places: Sequence[str], option: str) -> Remark:
    """How many drives there are. ``places``: what the tool's option for them says; empty texts are unknown."""
    known = list(dict.fromkeys(place for place in places if place))
    if len(known) > 1:
        looked = f"{option}: {', '.join(known[:4])}; whether these are types of drive is not said"
        return Remark(DRIVE_TYPE, "cannot tell", looked, "say which drives these are", recipe.where(tested[:1]))
    looked = f"{option}={known[0]} alone" if known else "one run, and nothing names a second drive"
    change = f"run it on a second class of drive ({option})"
    return Remark(DRIVE_TYPE, "finding", looked, change, recipe.where(tested[:1]))
