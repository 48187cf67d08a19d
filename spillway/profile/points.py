"""Points to measure on a drive, and the samples that come of them.

A sample is a row of a profile's samples.csv. Symbols: k is the number of operations in flight (numjobs x iodepth), r
the share of the pages that start a random access, in percent (M22), n = 100 / r the pages of one such access.
"""

import csv
import io
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, fields
from typing import Any

Document = dict[str, Any]

PAGE_BYTES = 4096  # M9: B, the page of the model
JOB_IODEPTH = 32  # operations that one job keeps in flight before another job is started; PIO's queue depth (P12)


@dataclass(frozen=True)
class Point:
    """One measurement. ``ios`` or ``seconds`` end it, whichever comes first; seconds are of the drive's time."""

    procedure: str  # pio, mqssd or mixed
    pattern: str  # random, sequential or staggered
    read_share: float
    bs_bytes: int
    numjobs: int
    iodepth: int
    ios: int | None
    seconds: float | None = None
    ramp_s: float = 0.0
    ramp_ios: int = 0
    r_percent: float | None = None
    fill: float = 1.0

    @property
    def k(self) -> int:
        """Operations in flight."""
        return self.numjobs * self.iodepth

    @property
    def op(self) -> str:
        """``read``, ``write`` or ``mixed``."""
        return {1.0: "read", 0.0: "write"}.get(self.read_share, "mixed")

    def request(self, number: int, engine: str) -> Document:
        """The request for it (contract/README.md); ``number`` comes back with the answer."""
        return {
            "id": number,
            "pattern": self.pattern,
            "read_share": self.read_share,
            "bs_bytes": self.bs_bytes,
            "numjobs": self.numjobs,
            "iodepth": self.iodepth,
            "engine": engine,
            "ios": self.ios,
            "seconds": self.seconds,
            "ramp_s": self.ramp_s,
            "ramp_ios": self.ramp_ios,
            "range": 1.0,  # of what holds data
        }


@dataclass(frozen=True)
class Sample:
    """A point and what was measured there: a row of samples.csv."""

    procedure: str
    op: str
    pattern: str
    bs_bytes: int
    numjobs: int
    iodepth: int
    r_percent: float | None
    read_share: float
    fill: float
    ios: int
    seconds: float
    iops: float
    bandwidth_mb_s: float
    latency_mean_us: float
    latency_p50_us: float
    latency_p99_us: float
    latency_p99_9_us: float
    latency_max_us: float

    @property
    def k(self) -> int:
        """Operations in flight."""
        return self.numjobs * self.iodepth

    @property
    def page_cost_us(self) -> float:
        """Time for each page of 4 KiB that was moved, in us, amortised over all k operations in flight."""
        return PAGE_BYTES / self.bandwidth_mb_s


COLUMNS = tuple(field.name for field in fields(Sample))
_COUNTS = ("bs_bytes", "numjobs", "iodepth", "ios")
# int() and float() take the digits of any script, and 1_000.
_WHOLE, _REAL = re.compile(r"-?[0-9]+"), re.compile(r"[+-]?[0-9]*\.?[0-9]+(?:[eE][+-]?[0-9]+)?")
_MOST = 1e18  # of any figure: bytes in us that no drive moves
_LEAST = 1e-9  # of one above 0
_WORDS = {
    "procedure": ("pio", "mqssd", "mixed"),
    "op": ("read", "write", "mixed"),
    "pattern": ("random", "sequential", "staggered"),
}
_SHOWN = 40  # characters of a cell in a sentence
_ABOVE_0 = ("bs_bytes", "numjobs", "iodepth", "bandwidth_mb_s")  # what others are divided by

Measure = Callable[[Point], Sample]


def sample_of(point: Point, answer: Document) -> Sample:
    """The row of a ``measurement`` event."""
    latency = answer["latency_us"]
    return Sample(
        point.procedure,
        point.op,
        point.pattern,
        point.bs_bytes,
        point.numjobs,
        point.iodepth,
        point.r_percent,
        point.read_share,
        point.fill,
        answer["ios"],
        answer["seconds"],
        answer["iops"],
        answer["bandwidth_mb_s"],
        *(latency[name] for name in ("mean", "p50", "p99", "p99_9", "max")),
    )


def jobs_for(k: int) -> tuple[int, int]:
    """(numjobs, iodepth) whose product is k: as few jobs as keep at most JOB_IODEPTH operations in flight each."""
    for numjobs in range(-(-k // JOB_IODEPTH), k + 1):
        if k % numjobs == 0:
            return numjobs, k // numjobs
    raise AssertionError("unreachable: k jobs of one operation each always do")


def pio_point(pattern: str, op: str, bs_bytes: int, k: int) -> Point:
    """k operations of bs_bytes in flight (P11-P15); its length is set by the Pace."""
    numjobs, iodepth = jobs_for(k)
    return Point("pio", pattern, 1.0 if op == "read" else 0.0, bs_bytes, numjobs, iodepth, None)


def mqssd_point(op: str, k: int, r_percent: float) -> Point:
    """k threads, each moving its share as operations that start at staggered random offsets (M22)."""
    pages = max(1, round(100 / r_percent))
    read_share = 1.0 if op == "read" else 0.0
    return Point("mqssd", "staggered", read_share, pages * PAGE_BYTES, k, 1, None, r_percent=100 / pages)


def to_csv(samples: Iterable[Sample]) -> str:
    """samples.csv; a missing value is an empty cell."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(COLUMNS)
    for sample in samples:
        writer.writerow(["" if (value := getattr(sample, name)) is None else value for name in COLUMNS])
    return text.getvalue()


def from_csv(lines: Sequence[str]) -> list[Sample]:
    """Rows of samples.csv. Raises ValueError that says what is wrong with which line."""
    reader = csv.reader(lines)
    samples = []
    try:
        if tuple(next(reader, [])) != COLUMNS:
            raise ValueError("its columns are not those of this version")
        for cells in reader:
            samples.append(Sample(*(_typed(*pair) for pair in zip(COLUMNS, cells, strict=True))))
    except (ValueError, OverflowError, csv.Error) as error:
        raise ValueError(f"line {reader.line_num} is damaged: {error}") from error
    return samples


def _typed(name: str, cell: str) -> Any:
    if name in _WORDS:
        if cell not in _WORDS[name]:
            raise ValueError(f"{name} is {cell[:_SHOWN]!r}, and it is one of {', '.join(_WORDS[name])}")
        return cell
    if not cell:
        if name != "r_percent":
            raise ValueError(f"{name} is empty")
        return None
    form, kind = (_WHOLE, "a whole number") if name in _COUNTS else (_REAL, "a number")
    if not form.fullmatch(cell):
        raise ValueError(f"{name} is {cell[:_SHOWN]!r}, which is not {kind}")
    value = int(cell[:_SHOWN]) if name in _COUNTS else float(cell)
    least = _LEAST if name in _ABOVE_0 else 0
    if not least <= value <= _MOST:
        raise ValueError(f"{name} is {cell[:_SHOWN]}, and it is at least {least:g} and at most {_MOST:g}")
    return value
