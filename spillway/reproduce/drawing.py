"""Charts of a reproduction as SVG or PNG, by Matplotlib: figures in a text, with nothing to zoom (decision 0004)."""

from pathlib import Path
from typing import Any

import numpy as np
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, NullFormatter, NullLocator

from spillway.report.style import ARMS, INK, MUTED, RULE
from spillway.reproduce.document import Chart, Curve, Panel

WIDTH_INCHES, HEIGHT_INCHES = 3.5, 2.6
MOST_TICKS = 8  # an axis with no more measured places than this is labelled at each of them

# Text stays text and ids do not change from run to run, so that a committed picture changes only when its content does.
STYLE: Any = {
    "svg.fonttype": "none",
    "svg.hashsalt": "spillway",
    "font.size": 8,
    "font.family": "sans-serif",
    "axes.edgecolor": RULE,
    "axes.labelcolor": MUTED,
    "text.color": INK,
    "xtick.color": MUTED,
    "ytick.color": MUTED,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "legend.frameon": False,
    "lines.linewidth": 1.2,
}


def draw(chart: Chart, path: Path, description: str | None = None) -> None:
    """Writes the chart to ``path``, whose suffix (.svg or .png) says how; an SVG has the description as metadata."""
    with rc_context(STYLE):
        panels = len(chart.panels)
        figure = Figure(figsize=(WIDTH_INCHES * panels, HEIGHT_INCHES), layout="constrained")
        for axes, panel in zip(np.ravel(figure.subplots(1, panels)), chart.panels, strict=True):
            _draw_panel(axes, panel)
            if panel is chart.panels[-1] or not _same_names(chart):
                axes.legend(fontsize=6.5, labelspacing=0.3, loc="upper left", bbox_to_anchor=(1.0, 1.0))
        FigureCanvasAgg(figure)
        metadata = {"Date": None, "Title": chart.caption, "Description": description}
        figure.savefig(path, metadata=metadata if path.suffix == ".svg" else None)


def _draw_panel(axes: Axes, panel: Panel) -> None:
    axes.set_title(panel.title, fontsize=8, loc="left")
    axes.set_xlabel(panel.x_label)
    axes.set_ylabel(panel.y_label)
    if panel.log_x:
        axes.set_xscale("log")
    if panel.log_y:
        axes.set_yscale("log")
    axes.grid(axis="y", color=RULE, linewidth=0.6)
    colours = _colours(panel)
    for curve in panel.curves:
        style: Any = {"marker": "o", "markersize": 3, "linestyle": "none"} if curve.marks else {}
        label = curve.label if _named_here(curve, panel) else None
        axes.plot(curve.x, curve.y, color=colours[curve.label], label=label, **style)
    for axis in (axes.xaxis, axes.yaxis):
        if axis.get_scale() == "log":
            axis.set_major_formatter(
                FuncFormatter(lambda value, _: f"{value:g}" if value < 1e4 else f"{value / 1e3:g} k")
            )
            axis.set_minor_formatter(NullFormatter())
    points = np.unique(np.concatenate([curve.x for curve in panel.curves if curve.marks] or [np.array([])]))
    if panel.log_x and 0 < points.size <= MOST_TICKS:
        axes.set_xticks(points)
        axes.xaxis.set_minor_locator(NullLocator())


def _same_names(chart: Chart) -> bool:
    """Whether one legend serves all panels."""
    names = [{curve.label for curve in panel.curves} for panel in chart.panels]
    return all(each == names[0] for each in names)


def _colours(panel: Panel) -> dict[str, str]:
    """Points and line of one name share its colour."""
    names = list(dict.fromkeys(curve.label for curve in panel.curves))
    return {name: ARMS[index % len(ARMS)] for index, name in enumerate(names)}


def _named_here(curve: Curve, panel: Panel) -> bool:
    """One entry of the legend for a name: the line's where there is one."""
    lines = {each.label for each in panel.curves if not each.marks}
    return not curve.marks or curve.label not in lines
