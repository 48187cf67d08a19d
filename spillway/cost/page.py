"""Maps of cost as one self-contained HTML file: the cheapest system for each data set and throughput."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from bokeh.models import ColumnDataSource, HoverTool, Range1d
from markupsafe import Markup

from spillway.cost import words as cost_words
from spillway.cost.map import Costs, Map, System
from spillway.errors import SpillwayError
from spillway.models.arrays import Array
from spillway.report import charts, style
from spillway.report.charts import Figure
from spillway.report.frame import embedded, environment, library, style_sheet
from spillway.report.panels import Mark, Panel
from spillway.rundir.directory import write_text

HEIGHT = 420
TIED = "#c9ced6"
UNITS = ((1e15, "PB"), (1e12, "TB"), (1e9, "GB"), (1.0, "B"))
RATES = ((1e6, "million operations/s"), (1e3, "thousand operations/s"), (1.0, "operations/s"))


def write_cost_report(found: Costs, target: Path, command: Sequence[str]) -> None:
    """Writes the maps to ``target``, whole or not at all. ``command``: how to make them again.

    Raises SpillwayError for more systems than there are colours.
    """
    if len(found.systems) > len(style.ARMS):
        raise SpillwayError(
            f"--out: there are {len(found.systems)} systems, and a map tells {len(style.ARMS)} apart; name fewer runs."
        )
    write_text(target, render(found, command))


def render(found: Costs, command: Sequence[str]) -> str:
    """The page as HTML."""
    drawn = [_panel(found, each, index) for index, each in enumerate(found.maps)]
    script, divs = embedded({panel.key: panel.figure for panel in drawn})
    return (
        environment("spillway.cost")
        .get_template("cost.html.jinja")
        .render(
            verdicts=[cost_words.verdict(each) for each in found.maps],
            conditions=cost_words.conditions(found),
            left_out=found.left_out,
            panels=drawn,
            divs={key: Markup(div) for key, div in divs.items()},
            script=Markup(script),
            library=Markup(library()),
            style=Markup(style_sheet()),
            system_header=cost_words.SYSTEM_HEADER,
            system_rows=cost_words.system_rows(found.systems),
            point_header=cost_words.POINT_HEADER,
            point_rows=cost_words.point_rows(found.systems),
            command=" ".join(command),
        )
    )


def _colour(found: Costs, system: System) -> str:
    return style.ARMS[[each.letter for each in found.systems].index(system.letter)]


def _edges(middles: Array) -> Array:
    """Between the cells half-way; the outer ones as far beyond as the next is within."""
    if middles.size == 1:
        return np.array([0.9, 1.1]) * float(middles[0])
    between = (middles[:-1] + middles[1:]) / 2
    return np.concatenate(([2 * middles[0] - between[0]], between, [2 * middles[-1] - between[-1]]))


def _scale(values: Array, units: Sequence[tuple[float, str]]) -> tuple[float, str]:
    return next((factor, unit) for factor, unit in units if values.max() >= factor or factor == 1.0)


def _panel(found: Costs, shown: Map, index: int) -> Panel:
    size, size_unit = _scale(found.data_set_bytes, UNITS)
    rate, rate_unit = _scale(found.throughput_ops_s, RATES)
    x, y = _edges(found.data_set_bytes / size), _edges(found.throughput_ops_s / rate)
    plot = charts.frame(rate_unit, HEIGHT, Range1d(x[0], x[-1]), Range1d(y[0], y[-1]))
    plot.xaxis.axis_label = f"total data set ({size_unit})"
    _draw(plot, found, shown, x, y)
    tied = bool((shown.wins.sum(axis=0) > 1).any())
    legend = [Mark(_label_with_marks(each), _colour(found, each), "area") for each in shown.systems]
    legend += [Mark("more than one, at the same cost", TIED, "area")] if tied else []
    caption = (
        f"Colour: the system that serves a total data set ({size_unit}) at a throughput "
        f"({rate_unit}) for the least {found.unit or 'money'}; point at a cell for its drives and cost."
    )
    return Panel(f"map-{index}", shown.title, caption, plot, legend, standing=_standing(shown.systems))


def _label_with_marks(system: System) -> str:
    return system.label + (f" ({', '.join(system.marks)})" if system.marks else "")


def _standing(systems: Sequence[System]) -> str:
    marks = list(dict.fromkeys(mark for each in systems for mark in each.marks))
    drives = list(dict.fromkeys(each.drive for each in systems if each.drive))
    return " · ".join([*drives, *([f"some points: {', '.join(marks)}"] if marks else ["all points steady"])])


def _draw(plot: Figure, found: Costs, shown: Map, x: Array, y: Array) -> None:
    cells: dict[str, list[object]] = {
        name: []
        for name in ("left", "right", "bottom", "top", "colour", "who", "counted", "cost", "next", "size", "rate")
    }
    for i, data in enumerate(found.data_set_bytes):
        for j, rate in enumerate(found.throughput_ops_s):
            won = [each for each, wins in zip(shown.systems, shown.wins[:, i, j], strict=True) if wins]
            best = shown.cells[shown.best((i, j))]
            colour = _colour(found, won[0]) if len(won) == 1 else TIED
            edges = (x[i], x[i + 1], y[j], y[j + 1])
            row = (*map(float, edges), colour, " = ".join(map(_label_with_marks, won)))
            drives, bought = int(best.drives[i, j]), int(best.bought[i, j])
            counted = f"{drives:,} run, {bought:,} bought"
            sizes = (cost_words.decimal_bytes(float(data)), f"{rate:,.0f} operations/s")
            row += (
                counted,
                cost_words.money_words(found, best, (i, j)),
                cost_words.others(found, shown, (i, j)),
                *sizes,
            )
            for name, value in zip(cells, row, strict=True):
                cells[name].append(value)
    made = plot.quad(
        left="left",
        right="right",
        bottom="bottom",
        top="top",
        fill_color="colour",
        fill_alpha=0.85,
        line_color="white",
        line_width=0.3,
        source=ColumnDataSource(cells),
    )
    tooltips = [("@size at @rate", "@who"), ("drives", "@counted"), ("cost", "@cost"), ("others", "@next")]
    plot.add_tools(HoverTool(renderers=[made], tooltips=tooltips))
