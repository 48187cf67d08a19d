"""A run on a plain directory: what the drives under it did in the measured phases.

Host bytes are the native side's, read from sysfs at each sample. NAND bytes are the drives' own counters, read here at
the begin and the end of each span of measured phases. Reading a log takes up to a second, in which the run goes on:
how many bytes the host wrote in that time, at both ends of a span, is a part of the interval (``skew``).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from spillway.drive.blocks import Drive, Under, drives_under, traffic
from spillway.drive.reading import Reading, unknown
from spillway.drive.span import Programmed, programmed
from spillway.drive.tools import read_drive
from spillway.figures.amplification import ratio

Document = dict[str, Any]

# Most of a span's host bytes, as a share, that may have been written while a log was read.
# Source: guess, as span.py's 5 %.
MOST_SKEW = 0.05


@dataclass(frozen=True)
class DriveSnapshot:
    """All drives' readings, and their host bytes before and after these were taken; None where not counted."""

    readings: tuple[Reading, ...]
    written_before: int | None
    written_after: int | None


@dataclass
class Watch:
    """Follows the measured phases of one run on a plain directory. ``measured``: for each phase in order, whether it is
    measured."""

    path: Path
    measured: Sequence[bool]
    smart: bool = True
    look: Callable[[Drive], Reading] | None = None  # how a drive is read; None: by its tools
    under: Under = field(init=False)
    _phase: int = field(default=0, init=False)
    _begun: DriveSnapshot | None = field(default=None, init=False)
    _stretches: list[tuple[DriveSnapshot, DriveSnapshot]] = field(default_factory=list, init=False)

    def __post_init__(self) -> None:
        """Finds the drives."""
        self.under = drives_under(self.path)

    @property
    def counters(self) -> list[str]:
        """sysfs' counters of the drives, for the native side."""
        return [str(drive.stat) for drive in self.under.drives]

    def begin(self) -> None:
        """The run is about to start."""
        if self.measured and self.measured[0]:
            self._begun = self._snapshot()

    def end_phase(self) -> None:
        """Notes that a phase has ended; reads the drives where a span of measured phases ends or begins with that."""
        after = self._phase + 1
        continues = after < len(self.measured) and self.measured[after]
        if self._begun is not None and not continues:
            self._close()
        elif self._begun is None and continues:
            self._begun = self._snapshot()
        self._phase = after

    def end(self) -> None:
        """Notes that the run has ended, perhaps within a phase."""
        if self._begun is not None:
            self._close()

    def _close(self) -> None:
        assert self._begun is not None
        self._stretches.append((self._begun, self._snapshot()))
        self._begun = None

    def _snapshot(self) -> DriveSnapshot:
        before = traffic(self.under.drives)
        off = unknown('its logs were not asked: drive.smart is "off"')
        look = self.look or read_drive
        readings = tuple(look(drive) if self.smart else off for drive in self.under.drives)
        after = traffic(self.under.drives)
        return DriveSnapshot(readings, before.written if before else None, after.written if after else None)

    def document(self, host_bytes: int | None, process_bytes: int | None) -> Document:
        """The ``device`` object of result.json and summary.json. ``host_bytes``: written to the drives in measured
        phases, ``process_bytes``: by the run's own process; both as spillway-native counts them, None: not known."""
        nand = self._programmed(host_bytes)
        last = self._stretches[-1][1].readings if self._stretches else ()
        return {
            "devices": [
                _device(drive, last[index] if index < len(last) else None)
                for index, drive in enumerate(self.under.drives)
            ],
            "why_no_device": self.under.why_none or None,
            "host_bytes_written": host_bytes,
            "process_bytes_written": process_bytes,
            "process_share": ratio(process_bytes, host_bytes),
            "nand_bytes_programmed": None if nand.value is None else round(nand.value),
            "nand_bytes_interval": None if nand.low is None or nand.high is None else [nand.low, nand.high],
            "wa_device_interval": _over([nand.low, nand.high], host_bytes),
            "why_unknown": nand.why or None,
        }

    def _programmed(self, host_bytes: int | None) -> Programmed:
        if not self.under.drives:
            return Programmed(None, why=self.under.why_none)
        if not self._stretches:
            return Programmed(None, why="the run ended before a measured phase did")
        parts: list[Programmed] = []
        skew = 0
        for begin, end in self._stretches:
            host = _grown(begin.written_after, end.written_before)
            for number in range(len(self.under.drives)):
                alone = host if len(self.under.drives) == 1 else None
                parts.append(programmed(begin.readings[number], end.readings[number], alone))
            skew += (_grown(begin.written_before, begin.written_after) or 0) + (
                _grown(end.written_before, end.written_after) or 0
            )
        return _bounded(_sum(parts), skew, host_bytes)


def _grown(before: int | None, after: int | None) -> int | None:
    return None if before is None or after is None or after < before else after - before


def _sum(parts: Sequence[Programmed]) -> Programmed:
    why = "; ".join(dict.fromkeys(part.why for part in parts if part.why))
    low = _total([part.low for part in parts])
    high = _total([part.high for part in parts])
    return Programmed(_total([part.value for part in parts]), low, high, why)


def _total(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) if len(known) == len(values) else None


def _bounded(nand: Programmed, skew: int, host_bytes: int | None) -> Programmed:
    """The interval with what was written while the logs were read; no figure where that is too much of the whole."""
    if nand.value is None or not host_bytes or skew <= 0:
        return nand
    around = skew * nand.value / host_bytes  # as many NAND bytes for each host byte as in the span
    low, high = max(0.0, (nand.low or 0.0) - around), (nand.high or 0.0) + around
    if skew > MOST_SKEW * host_bytes:
        why = f"{100 * skew / host_bytes:.0f} % of the host's bytes fell into the reading of the logs: run longer"
        return Programmed(None, low, high, why)
    return Programmed(nand.value, low, high)


def _over(values: Sequence[float | None], host_bytes: int | None) -> list[float] | None:
    ratios = [ratio(value, host_bytes) for value in values]
    known = [value for value in ratios if value is not None]
    return known if len(known) == len(ratios) else None


def _device(drive: Drive, reading: Reading | None) -> Document:
    found: Document = {"name": drive.name, "model": drive.model, "capacity_bytes": drive.capacity_bytes}
    if reading is None:
        return found
    nand = reading.nand
    return found | {
        "model": reading.model or drive.model,
        "logs": list(reading.logs),
        "nand_counter": nand.name if nand else reading.programs.name if reading.programs else None,
        "nand_resolution_bytes": nand.unit_bytes if nand else None,
        "percentage_used": reading.percentage_used,
        "mean_pe_cycles": reading.mean_pe_cycles,
    }
