"""Which points a profile measures: MQSSD's procedure (M22) and PIO's (P11-P15), as grids, coarse and fine.

The fine grids are for virtual time, where a point costs milliseconds; knees are bisected after them. A real drive gets
the coarse ones and then, until its budget is spent, the points that adapt.py chooses.
"""

from collections.abc import Iterator

from spillway.profile.points import Point, mqssd_point, pio_point

KIB = 1024
SIZES = (1 * KIB, 2 * KIB, 4 * KIB, 8 * KIB, 16 * KIB)  # P15
CONCURRENCIES = (1, 2, 4, 8, 16, 32, 64, 128, 256)
BISECTIONS = 3  # of the step that holds a knee: a doubling is then known to an eighth
SEQUENTIAL_CONCURRENCIES = (1, 2, 4, 8, 16, 32, 64, 128)
THREADS = (1, 2, 4, 8, 16, 32, 64, 128)  # M22: k
# M22: r, in percent of the pages; an access is a whole number of pages long.
R_PERCENTS = tuple(100 / pages for pages in (1000, 300, 100, 30, 10, 3, 1))
# MQSSD's own figure of a drive's cost at one k needs three points for a residual; a knee needs four
# (spillway/fit/knee.py).
COARSE_CONCURRENCIES = (1, 4, 16, 64)
COARSE_SEQUENTIAL = (1, 16)
COARSE_THREADS = (1, 8, 32, 128)
COARSE_R_PERCENTS = (0.1, 10.0, 100.0)

BULK_BYTES = 256 * KIB  # one stream in order, as files are written (C8)

LATENCY_BYTES = 4 * KIB  # Table 1 of PIO: 4 KiB, random, one at a time
LATENCY_REPEATS = 5


def sizes_for(lba_bytes: int) -> list[int]:
    """The access sizes a drive takes: whole LBAs."""
    return [bs for bs in SIZES if bs % lba_bytes == 0]


def pio_random(ops: tuple[str, ...], sizes: list[int], concurrencies: tuple[int, ...]) -> Iterator[Point]:
    """IOPS, bandwidth and latency against concurrency, random."""
    for op in ops:
        for bs in sizes:
            yield from (pio_point("random", op, bs, k) for k in concurrencies)


def pio_sequential(ops: tuple[str, ...], sizes: list[int], concurrencies: tuple[int, ...]) -> Iterator[Point]:
    """The same, sequential."""
    for op in ops:
        for bs in sizes:
            yield from (pio_point("sequential", op, bs, k) for k in concurrencies)


def bulk(ops: tuple[str, ...]) -> Iterator[Point]:
    """One stream of large accesses, writes first: what is then read was written in order."""
    return (pio_point("sequential", op, BULK_BYTES, 1) for op in reversed(ops))


def latency(ops: tuple[str, ...]) -> Iterator[Point]:
    """Repeats of the point whose latency stands for the drive."""
    for op in ops:
        for _ in range(LATENCY_REPEATS - 1):  # the grid has it once
            yield pio_point("random", op, LATENCY_BYTES, 1)


def mqssd(op: str, k: int, r_percents: tuple[float, ...]) -> Iterator[Point]:
    """Every r at one k."""
    return (mqssd_point(op, k, r) for r in r_percents)
