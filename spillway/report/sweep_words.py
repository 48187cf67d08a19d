"""What a sweep says in words: its headline, its table, the runs that failed, what is not drawn."""

from collections.abc import Sequence

from spillway.figures.lifetime import plain
from spillway.plan.sweep import axes_of, short_names, tick
from spillway.report.arm_outcomes import Spread
from spillway.report.sweep_data import (
    LIFETIME,
    METRICS,
    MOST_MULTIPLES,
    Metric,
    axes_not_along_x,
    ending,
    is_numeric,
    layout_of,
    point_results_of,
    value_in_words,
    worst_of,
)
from spillway.report.words import NOTHING, number
from spillway.rundir.directory import ArmRecord


def left_out(arms: Sequence[ArmRecord]) -> str:
    """What the report does not draw of a sweep, in a sentence; empty where it draws all."""
    layout = layout_of(point_results_of(arms))
    count = 1
    for axis in layout.multiples:
        count *= len(axis.values)
    if count <= MOST_MULTIPLES:
        return ""
    keys = " and ".join(layout.names[axis.key] for axis in layout.multiples)
    return f"Of {count} combinations of {keys} the charts show the first {MOST_MULTIPLES}; the table has all."


def failures(arms: Sequence[ArmRecord]) -> list[tuple[str, str]]:
    """The runs that failed, and why; repetitions that failed for one reason count once."""
    found = []
    for arm in arms:
        ended = arm.summary.get("repetitions") or [arm.summary | ending(arm.summary)]
        found += [(arm.name, str(why)) for why in dict.fromkeys(each.get("failure") for each in ended) if why]
    return found


def headline(arms: Sequence[ArmRecord]) -> str:
    """The sweep in one or two sentences: where the write amplification begins and ends along the axis.

    Of an axis of names, whose order means nothing, the lowest and the highest. Of the other axes the values at which
    the figure is worst.
    """
    results = point_results_of(arms)
    layout = layout_of(results)
    failed = len({name for name, _ in failures(arms)})
    opening = f"{failed} of {len(arms)} runs failed. " if failed else ""
    metric = next((m for m in _HEADLINES if any(result.over(m) for result in results)), None)
    if layout.x is None or metric is None:
        return f"{opening}{len(arms)} runs of a sweep."
    worst = worst_of(results, metric)
    at_worst = {axis.key: worst.point.get(axis.key) for axis in axes_not_along_x(layout)}
    spans = []
    for arm in dict.fromkeys(result.arm for result in results):
        line = [s for s in results if s.arm == arm and all(s.point.get(k) == v for k, v in at_worst.items())]
        known = [
            (result.point[layout.x.key], made.median) for result in line if (made := result.over(metric)) is not None
        ]
        if not is_numeric(layout.x):
            known.sort(key=lambda each: each[1])
        if len(known) > 1:
            spans.append((arm, known[0], known[-1]))
    if not spans:
        return f"{opening}{len(arms)} runs of a sweep over {layout.x.key}."
    key = layout.x.key
    parts = [
        f"“{arm}” from {number(a)} at {tick(key, at)} to {number(b)} at {tick(key, to)}"
        for arm, (at, a), (to, b) in spans[:MOST_NAMED]
    ]
    more = f" ({len(spans)} arms in all)" if len(spans) > MOST_NAMED else ""
    others = ", ".join(value_in_words(layout, k, v) for k, v in at_worst.items())
    where = f", at {others}" if others else ""
    return f"{opening}{metric.title} over {key}{where}: {'; '.join(parts)}{more}."


MOST_NAMED = 3  # arms in the headline
_HEADLINES = tuple(m for k in ("wa-total", "wa-app", "throughput") for m in METRICS if m.key == k)


def table(arms: Sequence[ArmRecord]) -> tuple[list[str], list[list[str]]]:
    """Header and rows: every run of the sweep with its point and its figures, medians over repetitions."""
    results = point_results_of(arms)
    axes = axes_of([result.point for result in results])
    names = short_names([axis.key for axis in axes])
    known = [m for m in LIFETIME if any(result.over(m) is not None for result in results)]
    metrics = [*METRICS[:3], *known, *METRICS[3:]]
    header = [
        "Arm",
        *(names[axis.key] for axis in axes),
        *(_titled(m, arms) for m in metrics),
        "Steady",
        "Ended",
    ]
    rows = []
    for result, arm in zip(results, arms, strict=True):
        cells = [_cell(metric, result.over(metric)) for metric in metrics]
        ended = "failed" if result.failure else "whole" if result.finished else "early"
        steady = "yes" if arm.summary["steady"] else "no"
        rows.append([result.arm, *(tick(axis.key, result.point.get(axis.key)) for axis in axes), *cells, steady, ended])
    return header, rows


def _titled(metric: Metric, arms: Sequence[ArmRecord]) -> str:
    unit = metric.unit
    if metric.key == "money":
        currencies = {str((arm.summary.get("lifetime") or {}).get("currency") or "") for arm in arms} - {""}
        unit = ", ".join(sorted(currencies)) or unit
    return metric.title if unit == "ratio" else f"{metric.title} ({unit})"


def _cell(metric: Metric, made: Spread | None) -> str:
    if made is None:
        return NOTHING
    return plain(made.median) if metric in LIFETIME else number(made.median)
