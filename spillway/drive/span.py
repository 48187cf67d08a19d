"""Two readings of a drive → the NAND bytes between them, as far as the counter's steps allow.

A counter that moved by d steps of u bytes has counted between (d - 1) u and (d + 1) u bytes; a sum of two has twice
the slack. With d = 20 that is a figure of ± 5 %; with less there is an interval and no figure. Micron's two counts of
pages have no unit: their ratio times the host bytes of the same time is what was programmed (TN-FD-23).
"""

from dataclasses import dataclass

from spillway.drive.reading import Counter, Programs, Reading

# Steps under which a counter's movement is no figure: 1 / 20 is 5 %. Source: guess
LEAST_STEPS = 20


@dataclass(frozen=True)
class Programmed:
    """NAND bytes of a span. ``value`` is None where they are only bounded (``low``, ``high``) or not known; ``why`` is
    the reason."""

    value: float | None
    low: float | None = None
    high: float | None = None
    why: str = ""


def programmed(begin: Reading, end: Reading, host_bytes: float | None) -> Programmed:
    """NAND bytes between two readings of one drive, by the formula above. ``host_bytes``: what its host wrote between
    them; None: not known."""
    if not (begin.reports_nand and end.reports_nand):
        reasons = (reading.why_unknown for reading in (begin, end) if not reading.reports_nand)
        return Programmed(None, why=next(filter(None, reasons), "its logs are empty"))
    if begin.model != end.model:
        return Programmed(None, why=f"the drive was {begin.model!r} at first and {end.model!r} at the end")
    if begin.nand is not None and end.nand is not None:
        return _counted(begin.nand, end.nand, host_bytes)
    if begin.programs is not None and end.programs is not None:
        return _by_pages(begin.programs, end.programs, host_bytes)
    return Programmed(None, why="its logs differ between begin and end")


def _counted(begin: Counter, end: Counter, host_bytes: float | None) -> Programmed:
    if (begin.name, begin.unit_bytes) != (end.name, end.unit_bytes):
        return Programmed(None, why=f"it counted {begin.name} at first and {end.name} at the end")
    steps = end.count - begin.count
    counts = list(zip(begin.parts or (begin.count,), end.parts or (end.count,), strict=False))
    back = next((pair for pair in counts if pair[1] < pair[0]), None)
    if back is not None:
        return Programmed(None, why=f"its {end.name} went back, from {back[0]} to {back[1]}")
    slack = len(counts)  # each part may be a step off
    low, high = float(max(0, steps - slack) * end.unit_bytes), float((steps + slack) * end.most_unit_bytes)
    if steps < LEAST_STEPS and end.unit_bytes > 1:
        size = _size(end.unit_bytes)
        why = f"its {end.name} moved by {steps} steps of {size}, and a figure takes {LEAST_STEPS}: write more"
        return Programmed(None, low, high, why)
    if end.most_unit_bytes > end.unit_bytes:
        return Programmed(None, low, high, f"whether its {end.name} is in 10^9 or 2^30 bytes is not published")
    if steps == 0 and host_bytes:
        return Programmed(None, why=f"its {end.name} did not move while the host wrote")
    return Programmed(float(steps * end.unit_bytes), low, high)


def _by_pages(begin: Programs, end: Programs, host_bytes: float | None) -> Programmed:
    host, background = end.host - begin.host, end.background - begin.background
    if host < 0 or background < 0:
        return Programmed(None, why=f"its {end.name} went back")
    if host_bytes is None:
        return Programmed(None, why=f"its {end.name} are a ratio, and the host's bytes are not known")
    if host < LEAST_STEPS:
        return Programmed(None, why=f"its {end.name} moved by {host} pages of the host's, too few for a ratio")
    value = host_bytes * (host + background) / host
    return Programmed(value, value * (1 - 1 / host), value * (1 + 1 / host))


def _size(count: int) -> str:
    return f"{count // 2**20} MiB" if count % 2**20 == 0 else f"{count} bytes"
