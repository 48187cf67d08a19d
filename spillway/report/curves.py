"""Charts over anything but time: measured points, curves through them, whiskers and marks, in the report's style."""

from collections.abc import Mapping, Sequence
from typing import Any

from bokeh.models import ColumnDataSource, CustomJSTickFormatter, DataRange1d, FixedTicker, HoverTool
from bokeh.models.annotations import Label, Span, TeeHead, Whisker

from spillway.report import charts
from spillway.report.charts import Figure
from spillway.report.style import FONT, INK, MUTED

HEIGHT = 300
DOT = 6
SHAPE = 8  # of points that differ by their shapes


def plane(x: str, y: str, *, x_log: bool = True, y_log: bool = True, ticks: Sequence[float] = ()) -> Figure:
    """An empty chart; ``x`` and ``y`` name the axes and their units, ``ticks`` are the places marked on x."""
    # A logarithmic axis pads by itself; a linear one starts at 0, so that heights compare.
    y_range = DataRange1d(range_padding=0.08) if y_log else DataRange1d(range_padding=0.08, start=0)
    x_type: charts.Axis = "log" if x_log else "linear"
    plot = charts.frame(y, HEIGHT, DataRange1d(range_padding=0.04), y_range, "log" if y_log else "linear", x_type)
    plot.xaxis.axis_label = x
    if ticks:
        plot.xaxis.ticker = FixedTicker(ticks=list(ticks))
        plot.xaxis.formatter = CustomJSTickFormatter(code="return Number(tick.toPrecision(3)).toLocaleString('en')")
    return plot


def curve(plot: Figure, x: Sequence[float], y: Sequence[float], colour: str, *, dash: str = "solid") -> Figure:
    """A line without points, for a model."""
    plot.line(list(x), list(y), line_color=colour, line_width=1.6, line_dash=dash, line_join="round")
    return plot


def measured(
    plot: Figure,
    x: Sequence[Any],
    y: Sequence[float],
    colour: str,
    tooltip: str,
    *,
    joined: bool = True,
    extra: Mapping[str, Sequence[Any]] | None = None,
    size: int = DOT,
    marker: str = "circle",
    hollow: bool = False,
) -> Figure:
    """Points with a tooltip, joined by a line; ``tooltip`` may use @x, @y and the columns of ``extra``.

    ``x`` has numbers, or places of a ``FactorRange``; ``marker`` is one of Bokeh's.
    """
    source = ColumnDataSource({"x": list(x), "y": list(y)} | dict(extra or {}))
    if joined:
        plot.line("x", "y", source=source, line_color=colour, line_width=1.6, line_join="round")
    fill, line, width = ("white", colour, 1.6) if hollow else (colour, "white", 0.8)
    dots = plot.scatter(
        "x", "y", source=source, size=size, marker=marker, fill_color=fill, line_color=line, line_width=width
    )
    plot.add_tools(HoverTool(renderers=[dots], tooltips=tooltip))
    return plot


def intervals(plot: Figure, x: Sequence[Any], low: Sequence[float], high: Sequence[float], colour: str) -> Figure:
    """95 % intervals as whiskers."""
    source = ColumnDataSource({"x": list(x), "low": list(low), "high": list(high)})
    upper, lower = (TeeHead(size=5, line_color=colour) for _ in range(2))
    whisker = Whisker(
        base="x", lower="low", upper="high", source=source, line_color=colour, upper_head=upper, lower_head=lower
    )
    plot.add_layout(whisker)
    # Whiskers alone do not count when the axes choose their range.
    for end in ("low", "high"):
        plot.scatter("x", end, source=source, alpha=0)
    return plot


def knee(plot: Figure, x: float, y: float, colour: str, text: str) -> Figure:
    """A knee on its curve: a ring, with its concurrency as text."""
    plot.scatter([x], [y], size=13, fill_color=None, line_color=colour, line_width=2)
    label: dict[str, Any] = {"text_font": FONT, "text_font_size": "11px", "text_color": INK}
    plot.add_layout(Label(x=x, y=y, x_offset=9, y_offset=-15, text=text, **label))
    return plot


def level(plot: Figure, y: float) -> Figure:
    """A faint horizontal line."""
    plot.add_layout(Span(location=y, dimension="width", line_color=MUTED, line_width=1, line_dash="dotted"))
    return plot
