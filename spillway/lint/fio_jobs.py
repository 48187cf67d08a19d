"""fio's job files and command lines as jobs with their options.

A reader of our own and not configparser: fio lets sections have the same name, several ``[global]`` hold for what
follows them, an option counts as often as it is given (the last wins, a few are lists), and a line that begins with
blanks is an option of its own. Comments begin with ``;`` or ``#`` anywhere in a line. Source: fio's HOWTO and its
init.c, parse.c (3.41); a size's unit is a power of 1024 (kb_base), a time is seconds unless it has a unit.
"""

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from spillway.errors import SpillwayError
from spillway.lint.small_text import read_small_text

MOST_DEPTH = 8  # of includes
MOST_JOBS = 2000  # of a job file: fio itself takes 4096 at most
ALIASES = {
    **{"readwrite": "rw", "blocksize": "bs", "io_limit": "io_size", "steadystate": "ss", "timeout": "runtime"},
    **{"steadystate_duration": "ss_dur", "steadystate_ramp_time": "ss_ramp", "wait_for_previous": "stonewall"},
    **{"fill_fs": "fill_device", "blockalign": "ba", "queue_depth": "iodepth"},
}
_SIZE = re.compile(r"([0-9]+(?:\.[0-9]+)?)\s*([kmgtpe]?)(?:i?b)?", re.IGNORECASE)
_TIME = re.compile(r"([0-9]+(?:\.[0-9]+)?)\s*(us|usec|ms|msec|s|sec|m|min|h|hr|hour|d|day)?", re.IGNORECASE)
_SECONDS = {"us": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}


@dataclass(frozen=True)
class Option:
    """An option's text and the line that gives it; 0: of a command line."""

    text: str
    line: int


@dataclass(frozen=True)
class Job:
    """A job with all that it inherits."""

    name: str
    line: int
    options: dict[str, Option]

    def text(self, name: str, default: str = "") -> str:
        """An option's text; one without a value counts as ``1``."""
        option = self.options.get(name)
        return default if option is None else option.text

    def on(self, name: str) -> bool:
        """Whether a switch is set."""
        return self.text(name, "0").strip().lower() not in ("0", "false", "no")

    def number(self, name: str, default: float) -> float | None:
        """A plain number; None where it is none."""
        try:
            return float(self.text(name, str(default)).split(",")[0].strip() or default)
        except ValueError:
            return None

    def where(self, *names: str) -> str:
        """The lines of the options that were looked at, or the job's own."""
        lines = sorted({self.options[name].line for name in names if name in self.options} - {0})
        return ", ".join(map(str, lines or [self.line])) if self.line else ""


def size_of(text: str) -> tuple[float | None, float | None]:
    """(bytes, share of the drive) of ``4k``, ``10G`` or ``50%``; both None where it is neither."""
    text = text.strip()
    if text.endswith("%"):
        try:
            return None, min(float(text[:-1]), 100.0) / 100
        except ValueError:
            return None, None
    match = _SIZE.fullmatch(text)
    if not match:
        return None, None
    return float(match[1]) * 1024 ** ("kmgtpe".find(match[2].lower()) + 1 if match[2] else 0), None


def seconds_of(text: str) -> float | None:
    """Seconds of ``60``, ``10m``, ``1h30m`` or ``01:30:00``; None where it is no time."""
    text = text.strip().lower()
    if re.fullmatch(r"[0-9]+(:[0-9]+)+", text):
        total = 0.0
        for part in text.split(":"):
            total = total * 60 + float(part)
        return total
    total, at = 0.0, 0
    while at < len(text):
        match = _TIME.match(text, at)
        if not match:
            return None
        unit = (match[2] or "s").lower()
        total += float(match[1]) * _SECONDS[unit[:2] if unit[:2] in ("us", "ms") else unit[0]]
        at = match.end()
    return total if text else None


def block_bytes(job: Job, *, writes: bool) -> float | None:
    """The smallest block of a job's reads or writes, 4 KiB unless given."""
    text = job.text("bssplit") or job.text("bsrange") or job.text("bs", "4k")
    sides = text.split(",")
    side = sides[1] if writes and len(sides) > 1 and sides[1].strip() else sides[0]
    sizes = [size_of(re.split(r"[/]", part)[0])[0] for part in re.split(r"[:-]", side)]
    known = [size for size in sizes if size]
    return min(known) if known else None


# ---------------------------------------------------------------- job files


def read_job_file(path: Path, variables: Mapping[str, str]) -> list[Job]:
    """The jobs of a file, in their order. ``variables``: of the environment. Raises SpillwayError."""
    sections = _Sections(dict(variables))
    sections.read(path, 0)
    return sections.jobs()


def parse_jobs(text: str, variables: Mapping[str, str], where: str = "the job file") -> list[Job]:
    """The jobs of a text; what it includes is not read. Raises SpillwayError."""
    sections = _Sections(dict(variables))
    sections.take(text, where, None, 0)
    return sections.jobs()


class _Sections:
    """Sections as they come, with the globals that hold for each."""

    def __init__(self, variables: dict[str, str]) -> None:
        self.variables = variables
        self.found: list[tuple[str, int, dict[str, Option]]] = []
        self.common: dict[str, Option] = {}
        self.current: dict[str, Option] | None = None

    def read(self, path: Path, depth: int) -> None:
        self.take(read_small_text(path, "fio job file"), str(path), path.parent, depth)

    def take(self, text: str, where: str, directory: Path | None, depth: int) -> None:
        for number, raw in enumerate(text.splitlines(), start=1):
            line = re.split(r"[;#]", raw, maxsplit=1)[0].strip()
            if not line:
                continue
            section = re.fullmatch(r"\[(.*)\]", line)
            if section:
                self._begin(section[1].strip(), number, where)
            elif match := re.fullmatch(r"include\s+(.+)", line):
                self._include(match[1].strip(), where, number, directory, depth)
            else:
                self._option(line, number, where)

    def _begin(self, name: str, line: int, where: str) -> None:
        if not name:
            raise SpillwayError(f"{where}:{line}: this section has no name; fio wants [NAME].")
        if name.lower() == "global":
            self.current = self.common = dict(self.common)
            return
        if len(self.found) == MOST_JOBS:
            raise SpillwayError(f"{where}:{line}: these are more than {MOST_JOBS} jobs; lint a part of them.")
        self.current = dict(self.common)
        self.found.append((name, line, self.current))

    def _include(self, name: str, where: str, line: int, directory: Path | None, depth: int) -> None:
        if depth >= MOST_DEPTH:
            raise SpillwayError(f"{where}:{line}: files include each other more than {MOST_DEPTH} deep.")
        if directory is not None:
            self.read(directory / name, depth + 1)

    def _option(self, line: str, number: int, where: str) -> None:
        if self.current is None:
            raise SpillwayError(
                f"{where}:{number}: {line[:40]!r} stands before any [section], so this is no fio job file."
            )
        name, _, value = line.partition("=")
        if not re.fullmatch(r"[A-Za-z][\w.-]*", name.strip()):
            raise SpillwayError(f"{where}:{number}: {line[:40]!r} is no option of a fio job.")
        put_option(self.current, name.strip(), value.strip() if "=" in line else "1", number, self.variables)

    def jobs(self) -> list[Job]:
        return [Job(name, line, options) for name, line, options in self.found]


def put_option(options: dict[str, Option], name: str, value: str, line: int, variables: Mapping[str, str]) -> None:
    """Sets an option by the name that all its spellings have here, with variables put in."""
    name = name.lower().replace("-", "_")
    name = ALIASES.get(name, name)
    value = re.sub(r"\$\{(\w+)\}", lambda match: variables.get(match[1], match[0]), value)
    value = value.replace("$pagesize", "4096").replace("$ncpus", str(os.cpu_count() or 1))
    options[name] = Option(value.strip("\"'"), line)


# ---------------------------------------------------------------- command lines


def parse_command(arguments: Sequence[str], variables: Mapping[str, str]) -> tuple[list[Job], list[str]]:
    """(jobs, job files) of fio's arguments. What stands before the first ``--name`` holds for all of its jobs."""
    common: dict[str, Option] = {}
    jobs: list[Job] = []
    files: list[str] = []
    current = common
    index = 0
    while index < len(arguments):
        word = arguments[index]
        index += 1
        if not word.startswith("-"):
            files.append(word)
            continue
        name, sign, value = word.lstrip("-").partition("=")
        if not sign and index < len(arguments) and not arguments[index].startswith("-") and _wants_value(name):
            value, index = arguments[index], index + 1
        elif not sign:
            value = "1"
        if name == "name" and value.lower() != "global":
            current = dict(common)
            jobs.append(Job(value, 0, current))
        elif re.fullmatch(r"[A-Za-z][\w.-]*", name):
            put_option(current, name, value, 0, variables)
    if not jobs and common and not files:
        jobs = [Job("fio", 0, common)]
    return jobs, [file for file in files if re.fullmatch(r"[\w./${}-]+", file)]


def _wants_value(name: str) -> bool:
    """Switches of fio stand alone; what follows them is a job file."""
    alone = (
        "time_based",
        "group_reporting",
        "stonewall",
        "thread",
        "norandommap",
        "minimal",
        "fill_device",
        "new_group",
    )
    return name not in (
        *alone,
        "wait_for_previous",
        "gtod_reduce",
        "refill_buffers",
        "invalidate",
        "exitall",
        "fixedbufs",
    )
