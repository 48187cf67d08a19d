"""The data of the charts as plain columns: samples gathered into equal spans, and ratios derived from their bytes."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import ceil
from typing import Any

from spillway.figures.amplification import amplification
from spillway.rundir.samples import Row, nand_bytes, stall_seconds

Columns = dict[str, list[float | None]]

MOST_POINTS = 1500  # more than a screen has pixels for


@dataclass(frozen=True)
class Stall:
    """A span in which writers were held back. Seconds since the run's start."""

    start_s: float
    end_s: float
    state: str
    cause: str


@dataclass(frozen=True)
class Phase:
    """A span of the load. Seconds since the run's start."""

    name: str
    start_s: float
    end_s: float
    measured: bool


def phases_of(phases: Sequence[dict[str, Any]]) -> list[Phase]:
    """The phases of a run, where there were several: one alone needs no mark."""
    if len(phases) < 2:
        return []
    return [Phase(each["name"], each["t_s"], each["t_s"] + each["duration_s"], each["measured"]) for each in phases]


def total(rows: Sequence[Row], name: str) -> float | None:
    """The sum of a column; None where a row does not have it."""
    values = [row.get(name) for row in rows]
    return None if not values or any(value is None for value in values) else sum(v for v in values if v is not None)


def gathered(rows: Sequence[Row], span_s: float) -> list[list[Row]]:
    """Rows in spans of ``span_s`` seconds, by where their middle lies; spans without a row are left out.

    A first or last span that less than half full joins its neighbour, since a rate over a short time means little.
    """
    groups: dict[int, list[Row]] = {}
    for row in rows:
        groups.setdefault(int((row["t_s"] - row["dt_s"] / 2) / span_s), []).append(row)
    spans = [groups[index] for index in sorted(groups)]
    if len(spans) > 1 and seconds(spans[-1]) < span_s / 2:
        spans[-2:] = [spans[-2] + spans[-1]]
    if len(spans) > 1 and seconds(spans[0]) < span_s / 2:
        spans[:2] = [spans[0] + spans[1]]
    return spans


def fine(rows: Sequence[Row]) -> list[list[Row]]:
    """Each row by itself, or spans just long enough for no more than MOST_POINTS of them."""
    if len(rows) <= MOST_POINTS:
        return [[row] for row in rows]
    return gathered(rows, sum(row["dt_s"] for row in rows) / MOST_POINTS)


def coarse_span_s(rows: Sequence[Row], least_s: float = 1.0) -> float:
    """A whole number of seconds, at least ``least_s``, that gives no more than MOST_POINTS spans."""
    seconds = sum(row["dt_s"] for row in rows)
    return float(max(least_s, ceil(seconds / MOST_POINTS)))


def rates(groups: Sequence[Sequence[Row]], names: Sequence[str], unit: float) -> Columns:
    """Sums of columns per second, in ``unit``; ``t`` is the middle of each span."""
    columns: Columns = {"t": [middle(group) for group in groups]}
    for name in names:
        columns[name] = [_scaled(total(group, name), seconds(group) * unit) for group in groups]
    return columns


def seconds(group: Sequence[Row]) -> float:
    """The length of a span, in seconds."""
    return float(sum(row["dt_s"] for row in group))


def middle(group: Sequence[Row]) -> float:
    """The middle of a span, in seconds since the run's start."""
    start = group[0]["t_s"] - group[0]["dt_s"]
    return float((start + group[-1]["t_s"]) / 2)


def end(group: Sequence[Row]) -> float:
    """The end of a span, in seconds since the run's start."""
    return float(group[-1]["t_s"])


def _scaled(value: float | None, by: float) -> float | None:
    return None if value is None or by == 0 else value / by


def largest(groups: Sequence[Sequence[Row]], names: Sequence[str]) -> Columns:
    """The largest value of columns in each span: percentiles of several intervals have no mean."""
    columns: Columns = {"t": [middle(group) for group in groups]}
    for name in names:
        columns[name] = [
            max((row[name] for row in group if row.get(name) is not None), default=None) for group in groups
        ]
    return columns


def means(groups: Sequence[Sequence[Row]], names: Sequence[str], factor: float = 1.0) -> Columns:
    """Time-weighted means of columns."""
    columns: Columns = {"t": [middle(group) for group in groups]}
    for name in names:
        columns[name] = [_mean(group, name, factor) for group in groups]
    return columns


def _mean(group: Sequence[Row], name: str, factor: float) -> float | None:
    known = [(row[name], row["dt_s"]) for row in group if row.get(name) is not None]
    weight = sum(dt for _, dt in known)
    return factor * sum(value * dt for value, dt in known) / weight if weight else None


def ratios_over_time(groups: Sequence[Sequence[Row]], *, cumulative: bool) -> Columns:
    """wa_app, wa_device and wa_total of each span, or from the first span to the end of each."""
    columns: Columns = {"t": [], "wa_app": [], "wa_device": [], "wa_total": []}
    user = host = nand = 0.0
    drive = True
    for group in groups:
        if not cumulative:
            user = host = nand = 0.0
        host_added, nand_added = total(group, "host_bytes_written"), [nand_bytes(row) for row in group]
        user += total(group, "user_bytes_written") or 0.0
        host += host_added or 0.0
        nand += sum(each or 0.0 for each in nand_added)
        drive = drive and None not in nand_added
        found = amplification(user, host if host_added is not None else None, nand if drive else None)
        columns["t"].append(end(group) if cumulative else middle(group))
        columns["wa_app"].append(found.wa_app)
        columns["wa_device"].append(found.wa_device)
        columns["wa_total"].append(found.wa_total)
    return columns


def link_utilisation(row: Row) -> float | None:
    """The busier direction of the host link, as a fraction of the interval."""
    known = [row[name] for name in ("link_write_utilisation", "link_read_utilisation") if row.get(name) is not None]
    return max(known, default=None)


def die_busy(row: Row) -> float | None:
    """The share of the flash dies' time that they were busy."""
    value: float | None = row.get("die_busy")
    return value


def split_cdf(rows: Sequence[Row], of: Callable[[Row], float | None]) -> tuple[Columns, Columns]:
    """The distribution of a utilisation over time (K19, Fig 5): during stalls, and outside of them.

    An interval counts for both, by the seconds of it that were a stall and those that were not. ``x`` is the
    utilisation in %, ``y`` the share of time, in %, at or below it.
    """
    inside = [(value, stall_seconds(row)) for row in rows if (value := of(row)) is not None]
    outside = [(value, row["dt_s"] - stall_seconds(row)) for row in rows if (value := of(row)) is not None]
    return _cdf(inside), _cdf(outside)


def _cdf(weighted: Sequence[tuple[float, float]]) -> Columns:
    kept = sorted((value, weight) for value, weight in weighted if weight > 0)
    whole = sum(weight for _, weight in kept)
    columns: Columns = {"x": [], "y": []}
    if not whole:
        return columns
    columns["x"].append(0.0)
    columns["y"].append(0.0)
    below = 0.0
    for value, weight in kept:
        below += weight
        columns["x"].append(100 * value)
        columns["y"].append(100 * below / whole)
    columns["x"].append(max(100.0, columns["x"][-1] or 0.0))
    columns["y"].append(100.0)
    return columns


def mean_during(rows: Sequence[Row], of: Callable[[Row], float | None], *, stalled: bool) -> float | None:
    """The time-weighted mean of a utilisation, during stalls or outside of them."""
    pairs = [
        (value, stall_seconds(row) if stalled else row["dt_s"] - stall_seconds(row))
        for row in rows
        if (value := of(row)) is not None
    ]
    weight = sum(w for _, w in pairs)
    return sum(value * w for value, w in pairs) / weight if weight > 0 else None


def stall_spans(stalls: Sequence[Row], rows: Sequence[Row]) -> list[Stall]:
    """Stalls for shading: neighbours of one kind that are closer than a pixel are drawn as one."""
    seconds_shown = rows[-1]["t_s"] if rows else 0.0
    gap = seconds_shown / MOST_POINTS
    spans: list[Stall] = []
    for row in sorted(stalls, key=lambda each: each["t_s"]):
        start, stop = row["t_s"], row["t_s"] + row["duration_s"]
        last = spans[-1] if spans else None
        if last and (last.state, last.cause) == (row["state"], row["cause"]) and start - last.end_s <= gap:
            spans[-1] = Stall(last.start_s, max(stop, last.end_s), last.state, last.cause)
        else:
            spans.append(Stall(start, stop, row["state"], row["cause"]))
    return spans


def traffic_mb_s(groups: Sequence[Sequence[Row]]) -> list[float | None]:
    """What the drive read and wrote for its host in each span, in MB/s; None without a drive model."""
    both = rates(groups, ("host_bytes_read", "host_bytes_written"), 1e6)
    pairs = zip(both["host_bytes_read"], both["host_bytes_written"], strict=True)
    return [None if read is None or written is None else read + written for read, written in pairs]


def _stalled_traffic(groups: Sequence[Sequence[Row]], most_mb_s: float) -> list[tuple[float, float]]:
    """Of each span: traffic as a share of ``most_mb_s``, and seconds of stall."""
    pairs = zip(traffic_mb_s(groups), groups, strict=True)
    return [(rate / most_mb_s, sum(map(stall_seconds, group))) for rate, group in pairs if rate is not None]


def traffic_cdf(groups: Sequence[Sequence[Row]], most_mb_s: float) -> Columns:
    """The distribution of drive traffic over the time in stalls (K19, Fig 5), in % of ``most_mb_s``."""
    return _cdf(_stalled_traffic(groups, most_mb_s))


def traffic_share(groups: Sequence[Sequence[Row]], most_mb_s: float, bound: float, *, above: bool) -> float | None:
    """The share of the time in stalls with a traffic above, or at most, ``bound`` of ``most_mb_s``.

    None where there was no stall.
    """
    weighted = _stalled_traffic(groups, most_mb_s)
    whole = sum(weight for _, weight in weighted)
    return sum(weight for share, weight in weighted if (share > bound) == above) / whole if whole else None
