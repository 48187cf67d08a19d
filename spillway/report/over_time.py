"""Runs of a suite over time: throughput, wa_app and wa_device of each from the start of what was measured (B3, B10)."""

from collections.abc import Callable, Sequence

from spillway.report import charts, series, style
from spillway.report.charts import Clock, Line
from spillway.report.panels import INTERVAL_RATIO_S, Mark, Panel, throughput_columns
from spillway.rundir.directory import ArmRecord
from spillway.rundir.samples import Row, measured

DASHES = ("solid", "dashed", "dotted")  # points of one arm
MOST_OVERLAID = 6  # lines that can be distinguished by colour and dash


def over_time_panels(arms: Sequence[ArmRecord]) -> list[Panel]:
    """Three charts with a line for each run; none where no run has samples."""
    shown = [(arm, rows) for arm in arms if (rows := _from_start(measured(arm.rows)))][:MOST_OVERLAID]
    if not shown:
        return []
    clock = Clock(max(rows[-1]["t_s"] for _, rows in shown))
    said = " ".join(_steady(arm) for arm, _ in shown)
    drawn: list[tuple[str, str, str, str, str, Callable[[Sequence[Row]], series.Columns]]] = [
        ("throughput", "Throughput over time", "thousand operations/s", "rate", "k/s", _throughput),
        ("wa-app", "wa_app over time", "host bytes / user bytes", "wa_app", "×", _ratios),
        ("wa-device", "wa_device over time", "NAND bytes / host bytes", "wa_device", "×", _ratios),
    ]
    panels = []
    for key, title, unit, column, short, columns_of in drawn:
        plot = clock.chart(unit, height=charts.HALF_HEIGHT)
        lines = _lines([arm for arm, _ in shown], column)
        for (_, rows), line in zip(shown, lines, strict=True):
            charts.lines(plot, columns_of(rows), [line], "0,0.[00]", short)
        marks = [Mark(line.label, line.colour, "line" if line.dash == "solid" else "dash") for line in lines]
        caption = f"Means over {INTERVAL_RATIO_S:g} s and more, from the start of what was measured. {said}"
        panels.append(Panel(f"time-{key}", title, caption, plot, marks, wide=key == "throughput"))
    return panels


def _from_start(rows: Sequence[Row]) -> list[Row]:
    """The rows, with times from where the first of them began."""
    if not rows:
        return []
    start = rows[0]["t_s"] - rows[0]["dt_s"]
    return [row | {"t_s": row["t_s"] - start} for row in rows]


def _spans(rows: Sequence[Row]) -> list[list[Row]]:
    return series.gathered(rows, series.coarse_span_s(rows, INTERVAL_RATIO_S))


def _throughput(rows: Sequence[Row]) -> series.Columns:
    return throughput_columns(_spans(rows))


def _ratios(rows: Sequence[Row]) -> series.Columns:
    return series.ratios_over_time(_spans(rows), cumulative=False)


def _lines(arms: Sequence[ArmRecord], column: str) -> list[Line]:
    """A colour for each arm, a dash for each of its points."""
    names = list(dict.fromkeys(arm.summary.get("of") or arm.name for arm in arms))
    seen: dict[str, int] = {}
    lines = []
    for arm in arms:
        name = arm.summary.get("of") or arm.name
        dash = DASHES[seen.get(name, 0) % len(DASHES)]
        seen[name] = seen.get(name, 0) + 1
        lines.append(Line(column, arm.name, style.ARMS[names.index(name) % len(style.ARMS)], 1.8, dash))
    return lines


def _steady(arm: ArmRecord) -> str:
    standing = arm.summary.get("standing") or {}
    since = standing.get("steady_since_s")
    if standing.get("steady") and since is not None:
        return f"{arm.name}: steady from {since:,.0f} s on."
    return f"{arm.name}: not steady."
