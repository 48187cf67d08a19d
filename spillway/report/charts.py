"""The charts of a report. Each function takes columns and returns a figure; what they show is decided in panels.py."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from bokeh.models import (
    BoxZoomTool,
    ColumnDataSource,
    CrosshairTool,
    CustomJS,
    CustomJSTickFormatter,
    DataRange1d,
    FactorRange,
    HoverTool,
    PanTool,
    Range1d,
    ResetTool,
)
from bokeh.models.annotations import BoxAnnotation, Label, Span, TeeHead, Whisker
from bokeh.plotting import figure

from spillway.report.series import Columns, Phase, Stall
from spillway.report.style import FONT, INK, MUTED, RULE, stall_colour, stall_words

Figure = Any
Axis = Literal["linear", "log", "auto"]

TIME = "seconds since the start"

# A tick as it is, without the noise of binary fractions: 0.0025 stays 0.0025.
PLAIN = "return tick.toLocaleString('en', {maximumSignificantDigits: 12, maximumFractionDigits: 12})"
THOUSANDS = "return tick >= 1e6 ? (tick / 1e6) + ' M' : tick >= 1e3 ? (tick / 1e3) + ' k' : String(tick)"
# A phase's whole label where it fits into the phase, else its name alone, else nothing: zooming in brings it back.
FIT_LABELS = """
const text = document.createElement("canvas").getContext("2d");
const pixels = plot.inner_width / (range.end - range.start);
labels.forEach((label, i) => {
  text.font = label.text_font_size + " " + label.text_font;
  const room = (ends[i] - label.x) * pixels - 2 * label.x_offset;
  label.text = words[i].find((each) => text.measureText(each).width <= room) ?? "";
});
"""
DELAYED_ALPHA, STOPPED_ALPHA = 0.20, 0.42
FULL_HEIGHT, HALF_HEIGHT, TALL = 210, 220, 330


@dataclass(frozen=True)
class Line:
    """One line of a chart: a column, its name for people, its colour and how it is drawn."""

    column: str
    label: str
    colour: str
    width: float = 1.6
    dash: str = "solid"
    alpha: float = 1.0


class Clock:
    """The time axis that all charts of a report share: zoom one and all follow."""

    def __init__(self, seconds: float) -> None:
        """Shows the first ``seconds``."""
        self.range = Range1d(start=0, end=max(seconds, 0.1), bounds=(0, max(seconds, 0.1)))
        self.cursor = Span(dimension="height", line_color=MUTED, line_alpha=0.5, line_width=1)

    def chart(self, unit: str, *, height: int = FULL_HEIGHT, log: bool = False, top: float | None = None) -> Figure:
        """An empty chart over time; ``unit`` names the y axis."""
        limits = {} if log else {"start": 0} if top is None else {"start": 0, "end": top}
        y_range = DataRange1d(range_padding=0.08, **limits)
        plot = frame(unit, height, self.range, y_range, "log" if log else "linear")
        plot.add_tools(CrosshairTool(overlay=self.cursor))
        plot.xaxis.axis_label = TIME
        return plot


def frame(
    unit: str,
    height: int,
    x_range: Any,
    y_range: Any,
    y_axis_type: Axis = "linear",
    x_axis_type: Axis = "auto",
) -> Figure:
    """An empty chart in the report's style; ``unit`` names the y axis."""
    plot = figure(
        height=height,
        sizing_mode="stretch_width",
        x_range=x_range,
        y_range=y_range,
        y_axis_type=y_axis_type,
        x_axis_type=x_axis_type,
        tools=[],
        background_fill_color=None,
        border_fill_color=None,
        outline_line_color=None,
        min_border_left=62,
        min_border_right=12,
    )
    zoom = BoxZoomTool(dimensions="width")
    plot.add_tools(zoom, PanTool(dimensions="width"), ResetTool())
    plot.toolbar.active_drag = zoom
    plot.toolbar.logo = None
    plot.toolbar.autohide = True
    plot.yaxis.axis_label = unit
    for axis in plot.axis:
        axis.axis_line_color = RULE
        axis.major_tick_line_color = RULE
        axis.minor_tick_line_color = None
        axis.major_label_text_font = axis.axis_label_text_font = FONT
        axis.major_label_text_font_size = axis.axis_label_text_font_size = "11px"
        axis.major_label_text_color = axis.axis_label_text_color = MUTED
        axis.axis_label_text_font_style = "normal"
        axis.axis_label_standoff = 8
    plot.xgrid.grid_line_color = None
    plot.ygrid.grid_line_color = RULE
    if y_axis_type == "log":
        plot.yaxis.formatter = CustomJSTickFormatter(code=THOUSANDS)
    elif not isinstance(y_range, FactorRange):
        plot.yaxis.formatter = CustomJSTickFormatter(code=PLAIN)
    return plot


def lines(plot: Figure, columns: Columns, drawn: Sequence[Line], form: str = "0,0.[00]", unit: str = "") -> Figure:
    """Lines of one set of columns, with one tooltip for all of them."""
    source = ColumnDataSource(_plain(columns))
    renderers = [
        plot.line(
            "t",
            line.column,
            source=source,
            line_color=line.colour,
            line_width=line.width,
            line_dash=line.dash,
            line_alpha=line.alpha,
            line_join="round",
        )
        for line in drawn
    ]
    _hover(plot, renderers[0], [(line.label, line.column) for line in drawn], form, unit)
    return plot


def steps(plot: Figure, columns: Columns, drawn: Sequence[Line], form: str = "0,0", unit: str = "") -> Figure:
    """Like ``lines``, for counts that jump."""
    source = ColumnDataSource(_plain(columns))
    for line in drawn:
        plot.step("t", line.column, source=source, mode="center", line_color=line.colour, line_width=line.width)
    # A step has no hit test of its own; an invisible line carries the tooltip.
    carrier = plot.line("t", drawn[0].column, source=source, line_alpha=0)
    _hover(plot, carrier, [(line.label, line.column) for line in drawn], form, unit)
    return plot


def stacked(plot: Figure, columns: Columns, drawn: Sequence[Line], unit: str) -> Figure:
    """Areas on top of each other, the first at the bottom."""
    plain = _plain(columns)
    plain = {name: [0.0 if value is None else value for value in values] for name, values in plain.items()}
    source = ColumnDataSource(plain)
    names = [line.column for line in drawn]
    plot.varea_stack(names, x="t", color=[line.colour for line in drawn], source=source, fill_alpha=0.85)
    carrier = plot.line("t", names[0], source=source, line_alpha=0)
    _hover(plot, carrier, [(line.label, line.column) for line in drawn], "0,0.0", unit)
    return plot


def _hover(plot: Figure, renderer: Any, named: Iterable[tuple[str, str]], form: str, unit: str) -> None:
    tooltips = [("at", "@t{0,0.0} s"), *((label, f"@{column}{{{form}}} {unit}".strip()) for label, column in named)]
    plot.add_tools(HoverTool(renderers=[renderer], mode="vline", tooltips=tooltips, line_policy="nearest"))


def shade(plot: Figure, spans: Sequence[Stall], strength: float = 1.0) -> Figure:
    """Stalls as vertical bands in the colour of their cause; a stopped writer is darker than a delayed one."""
    if not spans:
        return plot
    source = ColumnDataSource(
        {
            "x0": [span.start_s for span in spans],
            "x1": [span.end_s for span in spans],
            "colour": [stall_colour(span.cause) for span in spans],
            "alpha": [strength * (STOPPED_ALPHA if span.state == "stopped" else DELAYED_ALPHA) for span in spans],
        }
    )
    plot.vstrip(
        x0="x0", x1="x1", fill_color="colour", fill_alpha="alpha", line_color=None, source=source, level="underlay"
    )
    return plot


def bands(plot: Figure, spans: Sequence[tuple[float, float]], colour: str) -> Figure:
    """Spans of another kind than stalls, as vertical bands."""
    if spans:
        source = ColumnDataSource({"x0": [start for start, _ in spans], "x1": [end for _, end in spans]})
        plot.vstrip(
            x0="x0", x1="x1", fill_color=colour, fill_alpha=0.3, line_color=None, source=source, level="underlay"
        )
    return plot


def mark_phases(plot: Figure, phases: Sequence[Phase]) -> Figure:
    """Where phases begin, by name where it fits; what was not measured lies under a veil."""
    words = [[phase.name] if phase.measured else [f"{phase.name} (not measured)", phase.name] for phase in phases]
    labels = []
    for phase, first in zip(phases, words, strict=True):
        if not phase.measured:
            plot.add_layout(BoxAnnotation(left=phase.start_s, right=phase.end_s, fill_color="white", fill_alpha=0.62))
        if phase.start_s > 0:
            plot.add_layout(
                Span(location=phase.start_s, dimension="height", line_color=INK, line_width=1, line_alpha=0.6)
            )
        label = Label(
            x=phase.start_s,
            y=0,
            y_units="screen",
            y_offset=plot.height - 78,
            x_offset=5,
            text=first[0],
            text_font=FONT,
            text_font_size="11px",
            text_color=INK,
        )
        plot.add_layout(label)
        labels.append(label)
    ends = [phase.end_s for phase in phases]
    fit = CustomJS(
        args={"plot": plot, "range": plot.x_range, "labels": labels, "ends": ends, "words": words}, code=FIT_LABELS
    )
    plot.js_on_change("inner_width", fit)
    plot.x_range.js_on_change("start", fit)
    plot.x_range.js_on_change("end", fit)
    return plot


def stall_rows(clock: Clock, arms: Sequence[tuple[str, Sequence[Stall]]]) -> Figure:
    """One row for each arm with its stalls: who was held back when."""
    names = [name for name, _ in reversed(arms)]
    plot = frame("", 70 + 34 * len(arms), clock.range, FactorRange(factors=names), "auto")
    plot.add_tools(CrosshairTool(overlay=clock.cursor))
    plot.ygrid.grid_line_color = None
    plot.yaxis.major_label_text_color = INK
    plot.xaxis.axis_label = TIME
    flat = [(name, span) for name, spans in arms for span in spans]
    source = ColumnDataSource(
        {
            "arm": [name for name, _ in flat],
            "x0": [span.start_s for _, span in flat],
            "x1": [span.end_s for _, span in flat],
            "seconds": [span.end_s - span.start_s for _, span in flat],
            "state": [span.state for _, span in flat],
            "cause": [stall_words(span.cause) for _, span in flat],
            "colour": [stall_colour(span.cause) for _, span in flat],
            "alpha": [0.95 if span.state == "stopped" else 0.5 for _, span in flat],
        }
    )
    bars = plot.hbar(
        y="arm",
        left="x0",
        right="x1",
        height=0.62,
        fill_color="colour",
        fill_alpha="alpha",
        line_color=None,
        source=source,
    )
    plot.add_tools(HoverTool(renderers=[bars], tooltips=[("@state", "@cause, @seconds{0.00} s from @x0{0.00} s")]))
    return plot


def cdf(label: str, curves: Sequence[tuple[Columns, Line]]) -> Figure:
    """Cumulative distributions; ``label`` names what is distributed, in %."""
    plot = frame("share of time (%)", HALF_HEIGHT + 30, Range1d(start=0, end=100), Range1d(start=0, end=101))
    plot.xaxis.axis_label = label
    for columns, line in curves:
        if not columns["x"]:
            continue
        source = ColumnDataSource(_plain(columns))
        plot.step(
            "x", "y", source=source, mode="after", line_color=line.colour, line_width=line.width, line_dash=line.dash
        )
        carrier = plot.line("x", "y", source=source, line_alpha=0)
        tooltip = (line.label, "@y{0.0} % of the time at most @x{0.0} % busy")
        plot.add_tools(HoverTool(renderers=[carrier], mode="vline", tooltips=[tooltip]))
    return plot


@dataclass(frozen=True)
class Bar:
    """One bar: where it stands (a name, or a group and a name), how high it is, and how far repetitions lie apart."""

    place: str | tuple[str, str]
    label: str
    colour: str
    value: float
    low: float
    high: float


def bars(unit: str, drawn: Sequence[Bar], form: str = "0,0.[00]") -> Figure:
    """Bars with whiskers from the lowest to the highest repetition. In groups, names are left to the legend."""
    factors: Any = [bar.place for bar in drawn]  # names, or pairs of a group and a name
    top = 1.12 * max((bar.high for bar in drawn), default=1.0)
    plot = frame(
        unit, HALF_HEIGHT + 30, FactorRange(factors=factors, range_padding=0.06), Range1d(start=0, end=top or 1.0)
    )
    source = ColumnDataSource(
        {
            "place": factors,
            "label": [bar.label for bar in drawn],
            "value": [bar.value for bar in drawn],
            "low": [bar.low for bar in drawn],
            "high": [bar.high for bar in drawn],
            "colour": [bar.colour for bar in drawn],
        }
    )
    made = plot.vbar(x="place", top="value", width=0.8, fill_color="colour", line_color=None, source=source)
    if any(bar.low != bar.high for bar in drawn):
        head = TeeHead(size=8, line_color=INK)
        whisker = Whisker(base="place", lower="low", upper="high", source=source, line_color=INK, level="annotation")
        whisker.lower_head = whisker.upper_head = head
        plot.add_layout(whisker)
    spread = f"@value{{{form}}} {unit} (@low{{{form}}} to @high{{{form}}})"
    plot.add_tools(HoverTool(renderers=[made], tooltips=[("@label", spread)]))
    plot.xgrid.grid_line_color = None
    plot.xaxis.axis_label = ""
    if any(isinstance(place, tuple) for place in factors):
        plot.xaxis.major_label_text_color = None
        plot.xaxis.major_tick_line_color = None
        plot.xaxis.group_text_color = INK
        plot.xaxis.group_text_font = FONT
        plot.xaxis.group_text_font_size = "11px"
        plot.xaxis.group_text_font_style = "normal"
    else:
        plot.xaxis.major_label_text_color = INK
    return plot


def stacked_bars(unit: str, places: Sequence[str], parts: Sequence[tuple[str, str, Sequence[float]]]) -> Figure:
    """One bar for each place, of parts on top of each other. ``parts``: name, colour, a value for each place."""
    plot = frame(unit, HALF_HEIGHT + 30, FactorRange(factors=list(places), range_padding=0.06), DataRange1d(start=0))
    columns: dict[str, Any] = {"place": list(places)} | {name: list(values) for name, _, values in parts}
    names = [name for name, _, _ in parts]
    colours = [colour for _, colour, _ in parts]
    made = plot.vbar_stack(names, x="place", width=0.6, color=colours, source=ColumnDataSource(columns))
    tooltips = [(name, f"@{{{name}}}{{0,0.0}} {unit}") for name in names]
    plot.add_tools(HoverTool(renderers=[made[-1]], tooltips=[("", "@place"), *tooltips]))
    plot.xaxis.axis_label = ""
    plot.xaxis.major_label_text_color = INK
    return plot


def limit(plot: Figure, value: float, label: str) -> Figure:
    """A dashed line across the chart, with its name."""
    plot.add_layout(Span(location=value, dimension="width", line_color=INK, line_dash="dashed", line_alpha=0.6))
    plot.add_layout(
        Label(
            x=4,
            x_units="screen",
            y=value,
            y_offset=2,
            text=label,
            text_font=FONT,
            text_font_size="10px",
            text_color=MUTED,
        )
    )
    return plot


def _plain(columns: Columns) -> dict[str, list[float]]:
    """Missing values as NaN, which the charts leave out."""
    return {name: [float("nan") if value is None else value for value in values] for name, values in columns.items()}
