"""How much of a drive a store takes, and how much flash is left over for garbage collection (pitfalls 5 and 6).

    space amplification, peak   A = max over samples of held bytes / live user bytes at the end
    data set share              s = live user bytes at the end / logical capacity
    over-provisioning           o = (physical bytes - mapped bytes) / mapped bytes

Held bytes are what the volume has given to files at a sample. No workload deletes keys, so live user bytes never
shrink, and A is the space that this data set takes at its worst, the load included. Physical bytes are all flash of
the drive, reserve included. Mapped bytes are an upper bound, so that o is a lower one: every LBA that the partition
can hold, and what lay outside of it when the run began. Source of o: the standard definition (B16).

What this ignores: samples miss what was held between two of them; a store that leaves LBAs of its partition unwritten
on a trimmed drive has more spare flash than o says; a drive that compresses has more, too.

A figure is None where something that it needs is not known or is 0.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from spillway.figures.amplification import ratio
from spillway.rundir.samples import Row


@dataclass(frozen=True)
class Peak:
    """The most bytes that were held at once, and when: seconds since the run's start; None at its very end."""

    held_bytes: float
    t_s: float | None


def peak_held(rows: Sequence[Row], end_bytes: float | None) -> Peak | None:
    """The largest of the samples, the first of equals, and what was held at the end; None where neither is known."""
    samples = [(row["space_bytes"], row["t_s"]) for row in rows if row.get("space_bytes") is not None]
    most = max(samples, key=lambda each: each[0], default=None)
    if end_bytes is not None and (most is None or end_bytes > most[0]):
        return Peak(float(end_bytes), None)
    return None if most is None else Peak(float(most[0]), float(most[1]))


def over_provisioning(physical_bytes: float | None, mapped_bytes: float | None) -> float | None:
    """(physical - mapped) / mapped, a share: 0.28 is 28 %."""
    return None if physical_bytes is None else ratio(physical_bytes - (mapped_bytes or 0), mapped_bytes)


def mapped_bytes(
    capacity_bytes: float | None,
    partition_bytes: float | None,
    initial_fill: float | None,
    start: Mapping[str, Any] | None = None,
) -> float | None:
    """The most bytes of LBAs that can hold data during a run; None without a capacity.

    ``partition_bytes``: from the drive's first LBA on; None: the whole drive. ``initial_fill``: share of the capacity
    that held data at the start, from the first LBA on too; None: not known, which counts as all. ``start``: the kept
    state that the run began from, in the place of ``initial_fill``: what it has mapped beyond what its files hold may
    all lie behind the partition.
    """
    if not capacity_bytes:
        return None
    partition = min(partition_bytes or capacity_bytes, capacity_bytes)
    drive = (start or {}).get("drive")
    if start is not None and drive:
        beside = max(0.0, float(drive["mapped_share"]) * capacity_bytes - float(drive["held_bytes"]))
        return min(capacity_bytes, partition + beside)
    if start is not None or initial_fill is None:
        return capacity_bytes
    return min(capacity_bytes, max(partition, initial_fill * capacity_bytes))


def document(
    rows: Sequence[Row],
    end_bytes: float | None,
    live_user_bytes: float | None,
    capacity_bytes: float | None,
    physical_bytes: float | None,
    mapped: float | None,
) -> dict[str, float | None]:
    """The keys of summary.json that this module is for."""
    peak = peak_held(rows, end_bytes)
    return {
        "space_amplification_peak": ratio(peak.held_bytes if peak else None, live_user_bytes),
        "space_amplification_peak_t_s": peak.t_s if peak else None,
        "data_set_share": ratio(live_user_bytes, capacity_bytes),
        "over_provisioning_drive": over_provisioning(physical_bytes, capacity_bytes),
        "over_provisioning_effective": over_provisioning(physical_bytes, mapped),
    }


def in_words(figures: Mapping[str, Any]) -> list[str]:
    """What stands beside space amplification, for people: the peak, the data set's share, the over-provisioning.

    Of a summary recorded before there were these figures, nothing.
    """
    peak, at = figures.get("space_amplification_peak"), figures.get("space_amplification_peak_t_s")
    share = figures.get("data_set_share")
    return [
        *([] if peak is None else [f"at most {peak:.2f} {'at the end' if at is None else f'(after {at:.0f} s)'}"]),
        *([] if share is None else [f"data set {share:.3g} of the capacity"]),
        *over_provisioning_words(figures),
    ]


def over_provisioning_words(figures: Mapping[str, Any]) -> list[str]:
    """``over-provisioning 28 %``, with the drive's own beside it where a partition or an empty rest makes it more."""
    effective, own = figures.get("over_provisioning_effective"), figures.get("over_provisioning_drive")
    if effective is None:
        return []
    more = f" (the drive's own {100 * own:.0f} %)" if own is not None and has_extra(figures) else ""
    return [f"over-provisioning {100 * effective:.0f} %{more}"]


EXTRA_FROM = 0.01  # of the capacity: less is rounding to pages and LBAs. Source: guess


def has_extra(figures: Mapping[str, Any]) -> bool:
    """Whether a run's drive had more spare flash than its capacity leaves, as far as the summary knows."""
    effective, own = figures.get("over_provisioning_effective"), figures.get("over_provisioning_drive")
    return effective is not None and own is not None and (1 + effective) / (1 + own) > 1 + EXTRA_FROM
