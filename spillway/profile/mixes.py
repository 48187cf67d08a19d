"""Reads and writes at once: SNIA's seven mixes at several concurrencies and fill levels (M21; LEDGER part 4b)."""

from spillway.profile.points import PAGE_BYTES, Point, jobs_for
from spillway.profile.prober import Prober

READ_SHARES = (1.0, 0.95, 0.65, 0.5, 0.35, 0.05, 0.0)  # Source: SNIA SSS PTS, as LEDGER part 4b has it
CONCURRENCIES = (1, 4, 16, 64)
FILLS = (0.5, 0.75, 1.0)  # shares of the fill that the rest of the profile is measured at


def points() -> list[Point]:
    """Every mix at every concurrency: 4 KiB, random."""
    return [
        Point("mixed", "random", share, PAGE_BYTES, *jobs_for(k), None) for k in CONCURRENCIES for share in READ_SHARES
    ]


def measure(prober: Prober, fill: float) -> None:
    """Measures every mix at every fill; the drive starts each fill anew, in its steady state."""
    for share in FILLS:
        prober.refill(share * fill)
        for point in points():
            prober.measure(point)
