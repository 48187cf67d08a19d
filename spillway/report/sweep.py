"""Charts of a sweep: for each arm a line over an axis, and the figures of the runs at single points.

The x axis is the first axis of the sweep whose values are numbers or sizes. Another axis with few values is shown by
the style of the lines where there are few arms; the rest become small multiples. Over an axis of names there are no
lines: there the points of arms and of that other axis stand side by side, and the latter is shown by their shape. A
point is the median over the repetitions that were finished, a whisker goes from the lowest to the highest; a run that
failed is a cross.
"""

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from bokeh.models import ColumnDataSource, FactorRange, FixedTicker, HoverTool, Range1d

from spillway.plan.sweep import Axis, place_of, tick
from spillway.report import charts, curves, style
from spillway.report.arm_outcomes import Spread
from spillway.report.charts import Figure
from spillway.report.panels import Mark, Panel
from spillway.report.sweep_data import (
    DASHES,
    METRICS,
    MOST_MULTIPLES,
    Layout,
    Metric,
    PointResult,
    Published,
    is_numeric,
    layout_of,
    point_results_of,
    standing_of,
    value_in_words,
)
from spillway.report.words import number
from spillway.rundir.directory import ArmRecord

SHAPES = (("circle", False, "point"), ("circle", True, "ring"), ("triangle", False, "triangle"))  # and hollow or not
SIDE_BY_SIDE = 0.6  # of the distance between names on an axis, taken by the points that stand above it
MOST_TICKS = 12  # places of an axis that are all labelled
LOG_FROM = 10.0  # a decade or more between the ends of an axis


def sweep_panels(
    arms: Sequence[ArmRecord], metrics: Sequence[Metric] = METRICS, published: Sequence[Published] = ()
) -> list[Panel]:
    """Every figure that the sweep has data for, over its axis, with ``published`` figures as diamonds."""
    results = point_results_of(arms)
    layout = layout_of(results)
    if layout.x is None:
        return []
    standing = standing_of(arms)
    panels = []
    for metric in metrics:
        if all(result.over(metric) is None for result in results):
            continue
        for index, choice in enumerate(_multiples(layout)):
            chosen = [
                result for result in results if all(result.point.get(key) == value for key, value in choice.items())
            ]
            if chosen:
                theirs = [p for p in published if p.metric == metric.key and _holds(p.point, choice, layout)]
                panels.append(_panel(metric, index, choice, chosen, layout, standing, results, theirs))
    return panels


def _holds(point: Mapping[str, Any], choice: Mapping[str, Any], layout: Layout) -> bool:
    """Whether a published point stands on this chart."""
    assert layout.x is not None
    return layout.x.key in point and all(point.get(key) == value for key, value in choice.items())


def _multiples(layout: Layout) -> list[dict[str, Any]]:
    keys = [axis.key for axis in layout.multiples]
    product = itertools.product(*(axis.values for axis in layout.multiples))
    return [dict(zip(keys, values, strict=True)) for values in itertools.islice(product, MOST_MULTIPLES)]


def _panel(
    metric: Metric,
    index: int,
    choice: dict[str, Any],
    results: Sequence[PointResult],
    layout: Layout,
    standing: str,
    everywhere: Sequence[PointResult],
    published: Sequence[Published],
) -> Panel:
    assert layout.x is not None
    known = [made for result in everywhere if (made := result.over(metric)) is not None]
    known += [Spread(each.value, each.value, each.value, 1) for each in published]
    plot = _plane(metric, layout, known)
    legend = []
    arms = list(dict.fromkeys(result.arm for result in everywhere))
    values = layout.styled.values if layout.styled else (None,)
    named = not is_numeric(layout.x)
    for place, arm in enumerate(arms):
        colour = style.ARMS[place % len(style.ARMS)]
        legend.append(Mark(arm, colour, "point" if named else "line"))
        for index_of_value, value in enumerate(values):
            line = [
                result
                for result in results
                if result.arm == arm and (layout.styled is None or result.point.get(layout.styled.key) == value)
            ]
            label = arm if layout.styled is None else f"{arm}, {value_in_words(layout, layout.styled.key, value)}"
            offset = _offset_beside_name(layout, place, len(arms), index_of_value)
            _draw(plot, metric, line, layout, PointStyle(colour, index_of_value, offset), label, known)
        theirs = [
            (each, _offset_beside_name(layout, place, len(arms), _style_of(layout, each.point)))
            for each in published
            if each.arm == arm
        ]
        _draw_published(plot, metric, theirs, layout, colour)
    if layout.styled is not None:
        ink = style.INK if len(arms) > 1 else legend[0].colour
        kinds = [kind for *_, kind in SHAPES] if named else [kind for _, kind in DASHES]
        marks = zip(layout.styled.values, kinds, strict=False)
        legend = legend if len(arms) > 1 else []
        legend += [Mark(value_in_words(layout, layout.styled.key, value), ink, kind) for value, kind in marks]
    if published:
        legend.append(Mark("published", style.INK, "diamond"))
    if any(not result.finished and result.failure for result in results):
        legend.append(Mark("failed", style.STALLS["l0"], "cross"))
    where = ", ".join(value_in_words(layout, key, value) for key, value in choice.items())
    title = f"{metric.title}, {where}" if where else metric.title
    caption = f"{metric.what}, over {layout.x.key}{_along(layout.x)}; {metric.unit}{_repeated(results)}."
    return Panel(f"sweep-{metric.key}-{index}", title, caption, plot, legend, wide=False, standing=standing)


def _offset_beside_name(layout: Layout, arm: int, arms: int, value: int) -> float:
    """Where the ``arm``-th of ``arms``, at the ``value``-th value of the styled axis, stands above a name."""
    values = len(layout.styled.values) if layout.styled else 1
    return SIDE_BY_SIDE * ((arm * values + value + 0.5) / (arms * values) - 0.5)


def _style_of(layout: Layout, point: Mapping[str, Any]) -> int:
    """Which value of the styled axis a point has; the first where it does not say."""
    values = layout.styled.values if layout.styled else ()
    value = point.get(layout.styled.key) if layout.styled else None
    return values.index(value) if value in values else 0


def _along(axis: Axis) -> str:
    return f" (with it {', '.join(axis.along)})" if axis.along else ""


def _repeated(results: Sequence[PointResult]) -> str:
    most = max((len(result.finished) for result in results), default=0)
    return f"; medians of {most} repetitions, whiskers from the lowest to the highest" if most > 1 else ""


def _plane(metric: Metric, layout: Layout, known: Sequence[Spread]) -> Figure:
    axis = layout.x
    assert axis is not None
    labels = [tick(axis.key, value) for value in axis.values]
    top = max((each.high for each in known), default=1.0)
    if not is_numeric(axis):
        plot = charts.frame(
            metric.unit, curves.HEIGHT, FactorRange(factors=labels), Range1d(start=0, end=1.1 * top or 1.0)
        )
    else:
        places = _places(axis)
        log = min(places) > 0 and max(places) / min(places) >= LOG_FROM
        y_log = metric.log and min((each.low for each in known), default=0) > 0
        plot = curves.plane(axis.key, metric.unit, x_log=log, y_log=y_log)
        if not y_log:
            plot.y_range.end = 1.1 * top or 1.0
        if len(places) <= MOST_TICKS:
            plot.xaxis.ticker = FixedTicker(ticks=places)
            plot.xaxis.major_label_overrides = dict(zip(places, labels, strict=True))
    plot.xaxis.axis_label = axis.key
    return plot


def _places(axis: Axis) -> list[float]:
    return [place for value in axis.values if (place := place_of(value)) is not None]


@dataclass(frozen=True)
class PointStyle:
    """How the points of an arm differ from others: colour, index into DASHES and SHAPES, offset on an axis of names."""

    colour: str
    style: int
    offset: float  # from the tick, on an axis of names; share of the distance between ticks


def _draw(
    plot: Figure,
    metric: Metric,
    results: Sequence[PointResult],
    layout: Layout,
    point_style: PointStyle,
    label: str,
    known: Sequence[Spread],
) -> None:
    axis = layout.x
    assert axis is not None
    numeric = is_numeric(axis)

    def place(result: PointResult) -> Any:
        value = result.point.get(axis.key)
        return place_of(value) if numeric else (tick(axis.key, value), point_style.offset)

    colour = point_style.colour
    ranked = sorted(results, key=lambda result: list(axis.values).index(result.point.get(axis.key)))
    if numeric:
        ranked = sorted(results, key=place)
    found = [(place(result), made) for result in ranked if (made := result.over(metric)) is not None]
    if found:
        x, medians = [at for at, _ in found], [made.median for _, made in found]
        low, high = [made.low for _, made in found], [made.high for _, made in found]
        unit = "" if metric.unit == "ratio" else f" {metric.unit}"
        words = [f"{number(m.median)}{unit} ({number(m.low)} to {number(m.high)})" for _, m in found]
        tooltip = f"{label}: @words"
        if numeric and len(found) > 1:
            # A point without a figure leaves a gap in the line.
            line = [(place(result), result.over(metric)) for result in ranked]
            y = [float("nan") if made is None else made.median for _, made in line]
            curves.curve(plot, [at for at, _ in line], y, colour, dash=DASHES[point_style.style][0])
        if numeric:
            curves.measured(plot, x, medians, colour, tooltip, joined=False, extra={"words": words})
        else:
            marker, hollow, _ = SHAPES[point_style.style]
            shape: Any = {"size": curves.SHAPE, "marker": marker, "hollow": hollow}
            curves.measured(plot, x, medians, colour, tooltip, joined=False, extra={"words": words}, **shape)
        if any(made.low != made.high for _, made in found):
            curves.intervals(plot, x, low, high, colour)
    failed = [place(result) for result in ranked if not result.finished and result.failure]
    if failed:
        top = max((each.high for each in known), default=1.0)
        floor = min((each.low for each in known), default=0.0) if metric.log else 0.03 * top
        red = style.STALLS["l0"]
        plot.scatter(failed, [floor] * len(failed), marker="x", size=10, line_color=red, line_width=2)


def _draw_published(
    plot: Figure, metric: Metric, published: Sequence[tuple[Published, float]], layout: Layout, colour: str
) -> None:
    """Draws each figure at its offset from a name."""
    axis = layout.x
    if not published or axis is None:
        return
    values = [(each.point[axis.key], offset) for each, offset in published]
    x = [place_of(value) if is_numeric(axis) else (tick(axis.key, value), offset) for value, offset in values]
    columns = {"y": [each.value for each, _ in published], "arm": [each.arm for each, _ in published]}
    source = ColumnDataSource({"x": x} | columns)
    marks = plot.scatter(
        "x", "y", source=source, marker="diamond", size=13, fill_color="white", line_color=colour, line_width=1.8
    )
    plot.add_tools(HoverTool(renderers=[marks], tooltips=f"published of @arm: @y{{0,0.[000]}} {metric.unit}"))
