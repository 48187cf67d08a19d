"""What concurrency does to random accesses of one size: PIO's alpha, k_r and k_w, and the throughput behind them.

Of a profile that is there, or measured as `spillway profile` measures it: the part of the procedure RANDOM that is of
one size. All reads come before the first write, which changes the drive.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from spillway.errors import SpillwayError
from spillway.native.process import converse
from spillway.profile import adapt, estimate, grids
from spillway.profile.document import Pio, read_profile
from spillway.profile.points import Sample, pio_point
from spillway.profile.prober import Prober, RealPace, VirtualPace
from spillway.profile.target import Scaled, Target

Document = dict[str, Any]

REAL_CONCURRENCIES = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64)
REAL_POINT_S = 1.0  # Source: guess; the whole of it is some half a minute


@dataclass(frozen=True)
class Saturation:
    """PIO's parameters, and I/Os a second by operation (read, write) and concurrency."""

    pio: Pio
    iops: Mapping[str, Mapping[int, float]]

    def us(self, op: str, k: float) -> float:
        """Mean time per I/O with ``k`` in flight, us: straight lines over log k between what was measured, and as the
        last beyond it. NaN if nothing was."""
        curve = self.iops.get(op, {})
        if not curve:
            return float("nan")
        at = sorted(curve)
        return 1e6 / float(np.interp(np.log(k), np.log(at), [curve[each] for each in at]))

    def gain(self, op: str, k: float) -> float:
        """How many times as fast ``k`` in flight are as one after another; at least 1. PIO supposes k, up to k_r or
        k_w."""
        return max(1.0, self.us(op, 1) / self.us(op, k))


def saturation_of(samples: Sequence[Sample], page_bytes: int) -> Saturation | None:
    """Of samples of random accesses; None without a usable curve."""
    found = estimate.pio(samples, page_bytes)
    if found is None:
        return None
    iops = {}
    for op in estimate.OPS:
        by_k: dict[int, list[float]] = {}
        for k, rate in zip(*estimate.curve(samples, "random", op, page_bytes), strict=True):
            by_k.setdefault(k, []).append(rate)
        iops[op] = {k: float(np.mean(rates)) for k, rates in sorted(by_k.items())}
    return Saturation(found, iops)


def saturation_of_profile(directory: Path, page_bytes: int) -> Saturation:
    """From a profile that `spillway profile` has made. Raises SpillwayError where it has none of this page size."""
    found = saturation_of(read_profile(directory).samples, page_bytes)
    if found is None or not found.pio.k_w.known or not found.pio.alpha.known:
        raise SpillwayError(f"{directory}: has no alpha and k_w for {page_bytes} bytes; profile the drive with writes.")
    return found


def measure_saturation(
    target: Target, opened: Document, page_bytes: int, seed: int, small: Scaled | None
) -> Saturation:
    """Measures it. ``opened`` is the target as a request names it, ``small`` how an emulated drive is scaled. Raises
    SpillwayError."""
    virtual = not target.real_time
    concurrencies = grids.CONCURRENCIES if virtual else REAL_CONCURRENCIES
    pace = VirtualPace(small.cache_bytes, small.superblock_bytes) if virtual and small else RealPace(REAL_POINT_S)
    with converse("probe") as conversation:
        prober = Prober(conversation, {"seed": seed, "target": opened}, pace)
        for op in estimate.OPS:
            for k in concurrencies:
                prober.measure(pio_point("random", op, page_bytes, k))
            for _ in range(grids.BISECTIONS if virtual else 0):
                for point in adapt.bisections(prober.samples, (op,), [page_bytes]):
                    prober.measure(point)
        conversation.end()
    found = saturation_of(prober.samples, page_bytes)
    assert found is not None
    return found
