"""What a drive says of itself at one time: counters with their units, and the reason for each that is not there."""

from dataclasses import dataclass, replace

LBA_BYTES = 512


@dataclass(frozen=True)
class Counter:
    """A count of bytes in steps: ``count`` of ``unit_bytes`` each.

    ``unit_most_bytes`` is larger where a maker's GB may be 10^9 or 2^30 bytes. ``parts``: the counts of several fields
    whose sum ``count`` is; each has steps of its own and may go back on its own.
    """

    name: str  # the field or attribute
    count: int
    unit_bytes: int
    unit_most_bytes: int = 0  # 0: as unit_bytes
    parts: tuple[int, ...] = ()  # (): of one field

    @property
    def total_bytes(self) -> int:
        """All bytes counted since the drive was new."""
        return self.count * self.unit_bytes

    @property
    def most_unit_bytes(self) -> int:
        """Bytes that one step stands for at most."""
        return max(self.unit_bytes, self.unit_most_bytes)


@dataclass(frozen=True)
class Programs:
    """Flash pages programmed, where the page size is not known: for the host, and by the drive for itself (Micron)."""

    name: str
    host: int
    background: int


@dataclass(frozen=True)
class Reading:
    """What a drive's logs say at one time. None: not logged."""

    model: str  # "" where the log does not name it
    logs: tuple[str, ...]  # what was read
    host: Counter | None = None  # bytes that the host wrote
    nand: Counter | None = None  # bytes of flash programmed
    programs: Programs | None = None  # or pages of it
    percentage_used: float | None = None
    mean_pe_cycles: float | None = None
    why_unknown: str = ""  # why NAND bytes are not known; one clause without a full stop
    recognised: bool = True  # False: a log of a form or of a vendor that is not in our tables

    @property
    def reports_nand(self) -> bool:
        """Whether the drive counts what it programs, in bytes or in pages."""
        return self.nand is not None or self.programs is not None


def unknown(why: str, *, model: str = "", logs: tuple[str, ...] = (), recognised: bool = True) -> Reading:
    """A reading without figures, with the reason."""
    return Reading(model, logs, why_unknown=why, recognised=recognised)


def merged(first: Reading, second: Reading) -> Reading:
    """Two logs of one drive in one reading. The first log wins where both have a figure; a count of 0 is no figure."""
    nand = _counting(first.nand, second.nand)
    programs = first.programs or second.programs
    known = nand is not None or programs is not None
    whole = replace(
        first,
        model=first.model or second.model,
        logs=(*first.logs, *(log for log in second.logs if log not in first.logs)),
        host=_counting(first.host, second.host),
        nand=nand,
        programs=programs,
        percentage_used=first.percentage_used if first.percentage_used is not None else second.percentage_used,
        mean_pe_cycles=first.mean_pe_cycles if first.mean_pe_cycles is not None else second.mean_pe_cycles,
        why_unknown="" if known else "; ".join(w for w in dict.fromkeys((first.why_unknown, second.why_unknown)) if w),
        recognised=first.recognised or second.recognised,
    )
    return plausible(whole)


def _counting(first: Counter | None, second: Counter | None) -> Counter | None:
    return next((counter for counter in (first, second) if counter is not None and counter.count), first or second)


def plausible(reading: Reading) -> Reading:
    """The reading without NAND counts of 0 where the host has written: firmware that does not fill the field."""
    if reading.nand is not None and reading.nand.count == 0 and reading.host is not None and reading.host.count:
        why = f"its {reading.nand.name} is 0 although the host has written: the firmware does not count them"
        return replace(reading, nand=None, why_unknown=why)
    return reading
