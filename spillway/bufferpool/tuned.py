"""A pool that chooses by itself how many pages it writes back at once (P27), beside the best fixed n_w of a sweep.

    profile   n_w = BATCHES k_w of the drive's profile, once and for all
    auto      while it runs: native/pool/write_back_tuner.h

k_w is where a closed loop saturates the drive, in which each write that ends is replaced at once. A batch is waited
for: its last write runs alone, and the drive is idle until the next. So a batch needs more than k_w; appendix A of PIO
has three times as many I/Os as channels keep 95 % of them busy (P9). docs/CONCURRENCY.md has both ways on three drives.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from spillway.bufferpool.pool import Document, Workload, WriteBack
from spillway.profile import estimate
from spillway.profile.document import Estimate, Pio

WAYS = ("profile", "auto")
BATCHES = 3.0  # Source: PIO, appendix A (P9), see above; k_w itself leaves up to a tenth on some drives
MOST_AT_ONCE = 256  # that a tuned pool tries. Source: guess, as the largest concurrency of a profile
MOST_OF_POOL = 4  # a batch is at most this part of the pool: pages written long before they leave are written in vain


@dataclass(frozen=True)
class Tuned:
    """A way of choosing n_w: what it chose, and its rate over that of the best fixed n_w on the same traces."""

    way: str  # of WAYS
    write_back: float  # chosen, at the end of a run; mean over the seeds
    operations_per_s: Estimate
    of_best: Estimate


def write_back_of(drive: Pio, workload: Workload) -> WriteBack | None:
    """n_w from the drive's k_w; None where that is not known."""
    if not drive.k_w.known:
        return None
    return WriteBack(min(max(1, math.ceil(BATCHES * drive.k_w.value)), _most(workload)))


def tuning(workload: Workload) -> WriteBack:
    """A pool that tunes itself from n_w = 1 on."""
    return WriteBack(1, _most(workload))


def _most(workload: Workload) -> int:
    return max(1, workload.prefetch + 1, min(MOST_AT_ONCE, workload.pool_pages // MOST_OF_POOL))


def ways_of(drive: Pio, workload: Workload) -> dict[str, WriteBack]:
    """Every way that the drive's figures allow."""
    by_profile = write_back_of(drive, workload)
    return ({} if by_profile is None else {"profile": by_profile}) | {"auto": tuning(workload)}


def tuned_of(rows: Sequence[Document], best: Mapping[int, float]) -> tuple[Tuned, ...]:
    """What the rows of tuned runs say. ``best``: by seed, operations a second of the best fixed n_w."""
    found = []
    for way in WAYS:
        runs = [row for row in rows if row["tuned"] == way]
        if runs:
            found.append(
                Tuned(
                    way,
                    float(np.mean([row["write_back"] for row in runs])),
                    estimate.mean_of([row["operations_per_s"] for row in runs]),
                    estimate.mean_of([row["operations_per_s"] / best[row["seed"]] for row in runs]),
                )
            )
    return tuple(found)
