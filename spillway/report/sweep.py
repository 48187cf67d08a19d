"""What a sweep says: for each arm a line over an axis, and what the runs at single points came to.

The x axis is the first axis of the sweep whose values are numbers or sizes. Another axis with few values is told by
the style of the lines where there are few arms; the rest become small multiples. Over an axis of names there are no
lines: there the points of arms and of that other axis stand side by side, and the latter is told by their shape. A
point is the median over the repetitions that were finished, a whisker goes from the lowest to the highest; a run that
failed is a cross.
"""

import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from bokeh.models import ColumnDataSource, FactorRange, FixedTicker, HoverTool, Range1d

from spillway.figures.amplification import ratio
from spillway.figures.lifetime import plain
from spillway.plan.sweep import Axis, axes_of, place_of, short_names, tick
from spillway.report import charts, curves, style
from spillway.report.charts import Figure
from spillway.report.contest import Spread, spread
from spillway.report.panels import Mark, Panel
from spillway.report.words import NOTHING, number, short_standing
from spillway.rundir.directory import ArmRecord

Document = dict[str, Any]

DASHES = (("solid", "line"), ("dashed", "dash"), ("dotted", "dot"))  # of Bokeh, and of a legend
SHAPES = (("circle", False, "point"), ("circle", True, "ring"), ("triangle", False, "triangle"))  # and hollow or not
SIDE_BY_SIDE = 0.6  # of the room of a name on an axis, taken by the points that stand above it
MOST_LINES = 6  # that can be told apart in one chart
MOST_MULTIPLES = 6  # of each figure; the table has the rest
MOST_TICKS = 12  # places of an axis that are all labelled
MOST_SECTIONS = 6  # runs whose time series go into the report
LOG_FROM = 10.0  # a decade or more between the ends of an axis


@dataclass(frozen=True)
class Metric:
    """A figure of a run that is drawn over the axis."""

    key: str
    title: str
    unit: str
    what: str
    of: Callable[[Document], float | None]
    log: bool = False


def _share_in_stalls(figures: Document) -> float | None:
    return ratio(100 * (figures.get("stalls") or {}).get("seconds", 0.0), figures.get("duration_s"))


def _times(name: str, factor: float) -> Callable[[Document], float | None]:
    return lambda figures: None if figures.get(name) is None else figures[name] * factor


METRICS = (
    Metric("wa-app", "wa_app", "ratio", "Host bytes for each byte of user data", _times("wa_app", 1)),
    Metric("wa-device", "wa_device", "ratio", "NAND bytes for each host byte", _times("wa_device", 1)),
    Metric("wa-total", "wa_total", "ratio", "NAND bytes for each byte of user data", _times("wa_total", 1)),
    Metric("space", "Space amplification", "ratio", "Bytes held for each live byte", _times("space_amplification", 1)),
    Metric(
        "space-peak",
        "Space amplification, peak",
        "ratio",
        "The most bytes held at once for each byte that lives at the end",
        _times("space_amplification_peak", 1),
    ),
    Metric(
        "throughput", "Throughput", "thousand operations/s", "Operations that ended", _times("throughput_ops_s", 1e-3)
    ),
    Metric("user-data", "User data", "MB/s", "Bytes that were put and got", _times("user_mb_s", 1)),
    Metric("stalls", "In stalls", "% of the time", "Time in which writers were held back", _share_in_stalls),
    Metric(
        "p99",
        "Latency, p99",
        "milliseconds",
        "One operation in a hundred took longer",
        lambda figures: None if (p99 := (figures.get("latency_us") or {}).get("p99")) is None else p99 / 1e3,
        log=True,
    ),
)


def _life(name: str) -> Callable[[Document], float | None]:
    return lambda figures: (figures.get("lifetime") or {}).get(name)


# What the write amplification costs; in the table beside it, as far as a run knows it. Of a scaled drive, years and
# drive writes are of its preset's whole capacity.
LIFETIME = (
    Metric("flash-bytes", "Flash bytes per operation", "bytes", "NAND bytes", _life("flash_bytes_per_operation")),
    Metric("dwpd", "Drive writes per day", "1/day", "Of the capacity", _life("full_size_drive_writes_per_day")),
    Metric("used", "Percentage used", "%", "Of the rated P/E cycles", _life("percentage_used")),
    Metric("years", "Years at this rate", "years", "Until the flash is worn", _life("full_size_years")),
    Metric("money", "Money per year", "of the price", "Drives worn out", _life("money_per_year")),
    Metric(
        "until-worn",
        "User data until worn",
        "GB",
        "Needs no rate",
        lambda figures: None if (found := _life("full_size_user_bytes_until_worn")(figures)) is None else found / 1e9,
    ),
)


@dataclass(frozen=True)
class Spot:
    """An arm at one point: its finished repetitions, and why it failed where none was finished."""

    arm: str
    point: dict[str, Any]
    finished: list[Document]
    failure: str

    def over(self, metric: Metric) -> Spread | None:
        """A figure over the repetitions that were finished."""
        return spread(metric.of(each) for each in self.finished)


@dataclass(frozen=True)
class Published:
    """A figure that somebody else published of an arm at a point; drawn beside ours."""

    arm: str
    point: Mapping[str, Any]
    metric: str  # a key of METRICS
    value: float  # in that metric's unit


def is_swept(arms: Sequence[ArmRecord]) -> bool:
    """Whether a run's arms are points of a sweep."""
    return any(arm.summary.get("point") for arm in arms)


def spots_of(arms: Iterable[ArmRecord]) -> list[Spot]:
    """What each arm came to at each point."""
    found = []
    for arm in arms:
        summary = arm.summary
        ended = summary.get("repetitions") or [summary | _ending(summary)]
        failure = next((each["failure"] for each in ended if each.get("failure")), "")
        finished = [each for each in ended if each.get("complete")]
        found.append(Spot(summary.get("of") or arm.name, summary.get("point") or {}, finished, failure))
    return found


def _ending(summary: Document) -> Document:
    return {name: summary["standing"][name] for name in ("complete", "failure")}


@dataclass(frozen=True)
class Layout:
    """Which axis is drawn along x, which by the style of lines (None: none), which as small multiples."""

    x: Axis | None
    styled: Axis | None
    multiples: list[Axis]
    names: Mapping[str, str]


def layout_of(spots: Sequence[Spot]) -> Layout:
    """How a sweep is drawn."""
    axes = axes_of([spot.point for spot in spots])
    names = short_names([axis.key for axis in axes])
    x = next((axis for axis in axes if _numeric(axis)), axes[0] if axes else None)
    rest = [axis for axis in axes if axis is not x]
    arms = len({spot.arm for spot in spots})
    few = [axis for axis in rest if len(axis.values) <= len(DASHES) and arms * len(axis.values) <= MOST_LINES]
    styled = few[0] if few else None
    return Layout(x, styled, [axis for axis in rest if axis is not styled], names)


def _numeric(axis: Axis) -> bool:
    return all(place_of(value) is not None for value in axis.values)


def sweep_panels(
    arms: Sequence[ArmRecord], metrics: Sequence[Metric] = METRICS, published: Sequence[Published] = ()
) -> list[Panel]:
    """Every figure that the sweep has data for, over its axis, with what was ``published`` of it as diamonds."""
    spots = spots_of(arms)
    layout = layout_of(spots)
    if layout.x is None:
        return []
    standing = _standing(arms)
    panels = []
    for metric in metrics:
        if all(spot.over(metric) is None for spot in spots):
            continue
        for index, choice in enumerate(_multiples(layout)):
            chosen = [spot for spot in spots if all(spot.point.get(key) == value for key, value in choice.items())]
            if chosen:
                theirs = [p for p in published if p.metric == metric.key and _holds(p.point, choice, layout)]
                panels.append(_panel(metric, index, choice, chosen, layout, standing, spots, theirs))
    return panels


def _holds(point: Mapping[str, Any], choice: Mapping[str, Any], layout: Layout) -> bool:
    """Whether a published point stands on this chart."""
    assert layout.x is not None
    return layout.x.key in point and all(point.get(key) == value for key, value in choice.items())


def _multiples(layout: Layout) -> list[dict[str, Any]]:
    keys = [axis.key for axis in layout.multiples]
    product = itertools.product(*(axis.values for axis in layout.multiples))
    return [dict(zip(keys, values, strict=True)) for values in itertools.islice(product, MOST_MULTIPLES)]


def left_out(arms: Sequence[ArmRecord]) -> str:
    """What the report does not draw of a sweep, in a sentence; empty where it draws all."""
    layout = layout_of(spots_of(arms))
    count = 1
    for axis in layout.multiples:
        count *= len(axis.values)
    if count <= MOST_MULTIPLES:
        return ""
    keys = " and ".join(layout.names[axis.key] for axis in layout.multiples)
    return f"Of {count} combinations of {keys} the charts show the first {MOST_MULTIPLES}; the table has all."


def _panel(
    metric: Metric,
    index: int,
    choice: dict[str, Any],
    spots: Sequence[Spot],
    layout: Layout,
    standing: str,
    everywhere: Sequence[Spot],
    published: Sequence[Published],
) -> Panel:
    assert layout.x is not None
    known = [made for spot in everywhere if (made := spot.over(metric)) is not None]
    known += [Spread(each.value, each.value, each.value, 1) for each in published]
    plot = _plane(metric, layout, known)
    legend = []
    arms = list(dict.fromkeys(spot.arm for spot in everywhere))
    values = layout.styled.values if layout.styled else (None,)
    named = not _numeric(layout.x)
    for place, arm in enumerate(arms):
        colour = style.ARMS[place % len(style.ARMS)]
        legend.append(Mark(arm, colour, "point" if named else "line"))
        for index_of_value, value in enumerate(values):
            line = [
                spot
                for spot in spots
                if spot.arm == arm and (layout.styled is None or spot.point.get(layout.styled.key) == value)
            ]
            label = arm if layout.styled is None else f"{arm}, {said(layout, layout.styled.key, value)}"
            beside = _beside(layout, place, len(arms), index_of_value)
            _draw(plot, metric, line, layout, Look(colour, index_of_value, beside), label, known)
        theirs = [
            (each, _beside(layout, place, len(arms), _style_of(layout, each.point)))
            for each in published
            if each.arm == arm
        ]
        _draw_published(plot, metric, theirs, layout, colour)
    if layout.styled is not None:
        ink = style.INK if len(arms) > 1 else legend[0].colour
        kinds = [kind for *_, kind in SHAPES] if named else [kind for _, kind in DASHES]
        marks = zip(layout.styled.values, kinds, strict=False)
        legend = legend if len(arms) > 1 else []
        legend += [Mark(said(layout, layout.styled.key, value), ink, kind) for value, kind in marks]
    if published:
        legend.append(Mark("published", style.INK, "diamond"))
    if any(not spot.finished and spot.failure for spot in spots):
        legend.append(Mark("failed", style.STALLS["l0"], "cross"))
    where = ", ".join(said(layout, key, value) for key, value in choice.items())
    title = f"{metric.title}, {where}" if where else metric.title
    caption = f"{metric.what}, over {layout.x.key}{_along(layout.x)}; {metric.unit}{_repeated(spots)}."
    return Panel(f"sweep-{metric.key}-{index}", title, caption, plot, legend, wide=False, standing=standing)


def _beside(layout: Layout, arm: int, arms: int, value: int) -> float:
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


def _repeated(spots: Sequence[Spot]) -> str:
    most = max((len(spot.finished) for spot in spots), default=0)
    return f"; medians of {most} repetitions, whiskers from the lowest to the highest" if most > 1 else ""


def said(layout: Layout, key: str, value: Any) -> str:
    """A value of an axis with the axis's short name."""
    return f"{layout.names[key]} {tick(key, value)}"


def _plane(metric: Metric, layout: Layout, known: Sequence[Spread]) -> Figure:
    axis = layout.x
    assert axis is not None
    labels = [tick(axis.key, value) for value in axis.values]
    top = max((each.high for each in known), default=1.0)
    if not _numeric(axis):
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
class Look:
    """How the points of an arm are told from others: the colour, the place in DASHES and SHAPES, the place beside."""

    colour: str
    style: int
    beside: float  # of a name's place on an axis of names, in shares of its room


def _draw(
    plot: Figure,
    metric: Metric,
    spots: Sequence[Spot],
    layout: Layout,
    look: Look,
    label: str,
    known: Sequence[Spread],
) -> None:
    axis = layout.x
    assert axis is not None
    numeric = _numeric(axis)

    def place(spot: Spot) -> Any:
        value = spot.point.get(axis.key)
        return place_of(value) if numeric else (tick(axis.key, value), look.beside)

    colour = look.colour
    ranked = sorted(spots, key=lambda spot: list(axis.values).index(spot.point.get(axis.key)))
    if numeric:
        ranked = sorted(spots, key=place)
    found = [(place(spot), made) for spot in ranked if (made := spot.over(metric)) is not None]
    if found:
        x, medians = [at for at, _ in found], [made.median for _, made in found]
        low, high = [made.low for _, made in found], [made.high for _, made in found]
        unit = "" if metric.unit == "ratio" else f" {metric.unit}"
        words = [f"{number(m.median)}{unit} ({number(m.low)} to {number(m.high)})" for _, m in found]
        tooltip = f"{label}: @words"
        if numeric and len(found) > 1:
            # A point without a figure leaves a gap in the line.
            line = [(place(spot), spot.over(metric)) for spot in ranked]
            y = [float("nan") if made is None else made.median for _, made in line]
            curves.curve(plot, [at for at, _ in line], y, colour, dash=DASHES[look.style][0])
        if numeric:
            curves.measured(plot, x, medians, colour, tooltip, joined=False, extra={"words": words})
        else:
            marker, hollow, _ = SHAPES[look.style]
            shape: Any = {"size": curves.SHAPE, "marker": marker, "hollow": hollow}
            curves.measured(plot, x, medians, colour, tooltip, joined=False, extra={"words": words}, **shape)
        if any(made.low != made.high for _, made in found):
            curves.intervals(plot, x, low, high, colour)
    failed = [place(spot) for spot in ranked if not spot.finished and spot.failure]
    if failed:
        top = max((each.high for each in known), default=1.0)
        floor = min((each.low for each in known), default=0.0) if metric.log else 0.03 * top
        red = style.STALLS["l0"]
        plot.scatter(failed, [floor] * len(failed), marker="x", size=10, line_color=red, line_width=2)


def _draw_published(
    plot: Figure, metric: Metric, published: Sequence[tuple[Published, float]], layout: Layout, colour: str
) -> None:
    """Each with its place beside a name."""
    axis = layout.x
    if not published or axis is None:
        return
    values = [(each.point[axis.key], beside) for each, beside in published]
    x = [place_of(value) if _numeric(axis) else (tick(axis.key, value), beside) for value, beside in values]
    columns = {"y": [each.value for each, _ in published], "arm": [each.arm for each, _ in published]}
    source = ColumnDataSource({"x": x} | columns)
    marks = plot.scatter(
        "x", "y", source=source, marker="diamond", size=13, fill_color="white", line_color=colour, line_width=1.8
    )
    plot.add_tools(HoverTool(renderers=[marks], tooltips=f"published of @arm: @y{{0,0.[000]}} {metric.unit}"))


def _standing(arms: Sequence[ArmRecord]) -> str:
    """What holds for all runs of the sweep that were finished, and whether they differ in more."""
    each = [short_standing(arm, pacing=False).split(" · ") for arm in arms if arm.summary["standing"]["complete"]]
    if not each:
        return "no run was finished"
    common = [part for part in each[0] if all(part in other for other in each)]
    differs = any(part not in common for other in each for part in other)
    return " · ".join([*common, *(["the rest differs from run to run"] if differs else [])])


def failures(arms: Sequence[ArmRecord]) -> list[tuple[str, str]]:
    """The runs that failed, and why; repetitions that failed for one reason count once."""
    found = []
    for arm in arms:
        ended = arm.summary.get("repetitions") or [arm.summary | _ending(arm.summary)]
        found += [(arm.name, str(why)) for why in dict.fromkeys(each.get("failure") for each in ended) if why]
    return found


def headline(arms: Sequence[ArmRecord]) -> str:
    """The sweep in one or two sentences: where the write amplification begins and ends along the axis.

    Of an axis of names, whose order means nothing, the lowest and the highest. Of the other axes the values at which
    the figure is worst.
    """
    spots = spots_of(arms)
    layout = layout_of(spots)
    failed = len({name for name, _ in failures(arms)})
    opening = f"{failed} of {len(arms)} runs failed. " if failed else ""
    metric = next((m for m in _HEADLINES if any(spot.over(m) for spot in spots)), None)
    if layout.x is None or metric is None:
        return f"{opening}{len(arms)} runs of a sweep."
    worst = _worst(spots, metric)
    at_worst = {axis.key: worst.point.get(axis.key) for axis in _others(layout)}
    spans = []
    for arm in dict.fromkeys(spot.arm for spot in spots):
        line = [s for s in spots if s.arm == arm and all(s.point.get(k) == v for k, v in at_worst.items())]
        known = [(spot.point[layout.x.key], made.median) for spot in line if (made := spot.over(metric)) is not None]
        if not _numeric(layout.x):
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
    others = ", ".join(said(layout, k, v) for k, v in at_worst.items())
    where = f", at {others}" if others else ""
    return f"{opening}{metric.title} over {key}{where}: {'; '.join(parts)}{more}."


MOST_NAMED = 3  # arms in the headline
_HEADLINES = tuple(m for k in ("wa-total", "wa-app", "throughput") for m in METRICS if m.key == k)


def _worst(spots: Sequence[Spot], metric: Metric) -> Spot:
    """Where a figure of _HEADLINES is worst: a throughput that is lowest, a write amplification that is highest."""
    known = [(made.median, spot) for spot in spots if (made := spot.over(metric)) is not None]
    pick = min if metric.key == "throughput" else max
    return pick(known, key=lambda each: each[0])[1]


def _others(layout: Layout) -> list[Axis]:
    return [axis for axis in (layout.styled, *layout.multiples) if axis is not None]


def table(arms: Sequence[ArmRecord]) -> tuple[list[str], list[list[str]]]:
    """Header and rows: every run of the sweep with its point and its figures, medians over repetitions."""
    spots = spots_of(arms)
    axes = axes_of([spot.point for spot in spots])
    names = short_names([axis.key for axis in axes])
    known = [m for m in LIFETIME if any(spot.over(m) is not None for spot in spots)]
    metrics = [*METRICS[:3], *known, *METRICS[3:]]
    header = [
        "Arm",
        *(names[axis.key] for axis in axes),
        *(_titled(m, arms) for m in metrics),
        "Steady",
        "Ended",
    ]
    rows = []
    for spot, arm in zip(spots, arms, strict=True):
        cells = [_cell(metric, spot.over(metric)) for metric in metrics]
        ended = "failed" if spot.failure else "whole" if spot.finished else "early"
        steady = "yes" if arm.summary["steady"] else "no"
        rows.append([spot.arm, *(tick(axis.key, spot.point.get(axis.key)) for axis in axes), *cells, steady, ended])
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
