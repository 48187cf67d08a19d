"""A sweep of a buffer pool as one self-contained HTML file: the curve, the formula, and every figure behind them."""

import json
import math
from pathlib import Path

from markupsafe import Markup

from spillway.bufferpool import words as bufferpool_words
from spillway.bufferpool.pool import WRITERS
from spillway.bufferpool.sweep import Step, Sweep
from spillway.profile.document import Estimate
from spillway.profile.words import short
from spillway.report import curves, style
from spillway.report.frame import embedded, environment, library, style_sheet
from spillway.report.panels import Mark, Panel
from spillway.report.words import KeyFigure
from spillway.rundir.directory import write_text

OTHERS = (style.VIOLET, style.GREEN)  # other kinds of writers than the first


def write_bufferpool_report(found: Sweep, target: Path) -> None:
    """Writes the report of ``found`` to ``target``, whole or not at all. Raises SpillwayError where it cannot be
    written."""
    write_text(target, render(found))


def render(found: Sweep) -> str:
    """The report as HTML."""
    drawn = panels(found)
    script, divs = embedded({panel.key: panel.figure for panel in drawn})
    return (
        environment("spillway.bufferpool")
        .get_template("bufferpool.html.jinja")
        .render(
            sweep=found,
            headline=bufferpool_words.verdict(found),
            others=[*bufferpool_words.others_in_words(found), *bufferpool_words.tuned_in_words(found)],
            standing=standing(found),
            key_figures=key_figures(found),
            panels=drawn,
            divs={key: Markup(div) for key, div in divs.items()},
            script=Markup(script),
            library=Markup(library()),
            style=Markup(style_sheet()),
            header=bufferpool_words.HEADER,
            tables=bufferpool_words.tables(found),
            conditions_text=json.dumps(
                {"target": found.target, "workload": found.workload, "conditions": found.conditions},
                indent=2,
                ensure_ascii=False,
            ),
        )
    )


def key_figures(found: Sweep) -> list[KeyFigure]:
    """The first screen's numbers."""
    at = found.at_k_w
    figures = [_levels_off(found)]
    figures.append(_figure("Saturated by, k_w", found.drive.k_w, "writes"))
    if at is not None:
        figures.append(_figure(f"Speed-up at n_w = {at.write_back}", at.speed_up, "×"))
    largest = found.largest
    figures.append(_figure(f"Largest, at n_w = {largest.write_back}", largest.speed_up, "×"))
    figures.append(_figure("Asymmetry, alpha", found.drive.alpha, "reads a write"))
    own = f"{found.own_cost_ratio:.2f}"
    figures.append(KeyFigure("One write alone", own, "reads", f"reads: {found.own_read_share:.0%} of the pool's ios"))
    return figures


def _levels_off(found: Sweep) -> KeyFigure:
    at = found.knee
    value = f"{at.value:.0f}" if at.known else "–"
    return KeyFigure(
        "Levels off at", value, "writes at once", f"seeds: {at.low:.0f} to {at.high:.0f}" if at.known else ""
    )


def _figure(label: str, estimate: Estimate, unit: str) -> KeyFigure:
    value, _, interval = short(estimate).partition(" (")
    return KeyFigure(label, value, unit, f"95 %: {interval.removesuffix(')')}" if interval else "")


def panels(found: Sweep) -> list[Panel]:
    """The curve with the formula, and where the time goes."""
    return [_speed_up(found), _waits(found)]


def _speed_up(found: Sweep) -> Panel:
    ns = [float(step.write_back) for step in found.steps]
    values = [step.speed_up.value for step in found.steps]
    plot = curves.plane("dirty pages written back at once, n_w", "speed-up over n_w = 1", y_log=False, ticks=ns)
    lines = (("formula", style.GREY, "dashed"), ("formula_own_costs", style.TEAL, "dashed"))
    for name, colour, dash in lines:
        known = [(n, getattr(step, name)) for n, step in zip(ns, found.steps, strict=True)]
        known = [(n, value) for n, value in known if math.isfinite(value)]
        curves.curve(plot, [n for n, _ in known], [value for _, value in known], colour, dash=dash)
    bounds = [_bounds(step) for step in found.steps]
    curves.intervals(plot, ns, [low for low, _ in bounds], [high for _, high in bounds], style.WRITE)
    extra = {"rate": [step.operations_per_s.value for step in found.steps]}
    tip = "n_w = @x: @y{0.000} ×, @rate{0,0} operations/s"
    curves.measured(plot, ns, values, style.WRITE, tip, extra=extra)
    others = list(zip(found.of_other_writers, OTHERS, strict=False))
    for other, colour in others:
        values = [step.speed_up.value for step in other.steps]
        extra = {"rate": [step.operations_per_s.value for step in other.steps]}
        curves.measured(plot, [float(step.write_back) for step in other.steps], values, colour, tip, extra=extra)
    at = found.at_k_w
    if at is not None:
        curves.knee(plot, float(at.write_back), at.speed_up.value, style.INK, f"k_w = {found.drive.k_w.value:.1f}")
    read_fraction = "" if found.workload["trace"] else f", f_r = {found.workload['read_fraction']:g}"
    caption = (
        f"Operations a second over those with n_w = 1, with 95 % intervals over the seeds{read_fraction}. Ring: the "
        "step nearest to the drive's k_w. P5 at min(n_w, k_w) supposes that a batch takes no longer than one write. "
        "PIO, Fig 10."
    )
    marks = [
        Mark(f"measured, {WRITERS[found.writers]}", style.WRITE),
        *(Mark(f"measured, {WRITERS[other.writers]}", colour) for other, colour in others),
        Mark("P5, as published", style.GREY, "dash"),
        Mark("P5, with the pool's own costs", style.TEAL, "dash"),
    ]
    return Panel("speed-up", "What concurrency buys", caption, plot, marks, standing=standing(found))


def _bounds(step: Step) -> tuple[float, float]:
    """A single run has no interval: both ends are at its value."""
    estimate = step.speed_up
    return (estimate.low, estimate.high) if math.isfinite(estimate.low) else (estimate.value, estimate.value)


def _waits(found: Sweep) -> Panel:
    ns = [float(step.write_back) for step in found.steps]
    plot = curves.plane("dirty pages written back at once, n_w", "µs", ticks=ns)
    series = (
        ("µs a page written", style.WRITE, [step.write_us for step in found.steps]),
        ("µs a page read", style.READ, [step.read_us for step in found.steps]),
        ("99th percentile of an operation", style.INK, [step.latency_p99_us for step in found.steps]),
    )
    for label, colour, values in series:
        curves.measured(plot, ns, values, colour, f"n_w = @x: {label} @y{{0,0.0}}")
    caption = (
        "What the pool waits for, in µs: a write's share of its batch falls as n_w grows; the operation that has to "
        "wait for a whole batch waits longer."
    )
    marks = [Mark(label, colour) for label, colour, _ in series]
    return Panel("waits", "Where the time goes", caption, plot, marks, standing=standing(found))


def standing(found: Sweep) -> str:
    """What every figure rests on, in a line."""
    conditions, workload = found.conditions, found.workload
    name = Path(workload["trace"]).name if workload["trace"] else workload["name"]
    time = conditions["time"]
    parts = ["virtual time" if time == "virtual" else time if "," in time else time + " time"]
    parts.append(f"{workload['pool_pages']:,} of {conditions['pages']:,} pages in the pool")
    parts += [workload["policy"], f"{name} trace"]
    if workload["prefetch"]:
        parts.append(f"prefetch {workload['prefetch']}")
    return " · ".join([*parts, f"{conditions['repeats']} seeds of {conditions['operations']:,} operations"])
