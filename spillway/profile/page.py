"""A profile as one self-contained HTML file: what the drive can do, what that means, and every figure behind it."""

from pathlib import Path

import tomli_w
from markupsafe import Markup

from spillway.profile import words
from spillway.profile.document import Estimate, Profile
from spillway.profile.panels import panels, standing
from spillway.profile.points import PAGE_BYTES
from spillway.report.frame import embedded, environment, library, style_sheet
from spillway.report.words import KeyFigure
from spillway.rundir.directory import write_text


def write_profile_report(profile: Profile, target: Path) -> None:
    """Writes the report of ``profile`` to ``target``, whole or not at all. Raises SpillwayError where it cannot be
    written."""
    write_text(target, render(profile))


def render(profile: Profile) -> str:
    """The report as HTML."""
    drawn = panels(profile)
    figures = {panel.key: panel.figure for panel in drawn}
    script, divs = embedded(figures)
    conditions = {"target": profile.target, "conditions": profile.conditions}
    return (
        environment("spillway.profile")
        .get_template("profile.html.jinja")
        .render(
            profile=profile,
            headline=words.headline(profile),
            standing=standing(profile),
            key_figures=key_figures(profile),
            guidelines=words.guidelines(profile),
            panels=drawn,
            divs={key: Markup(div) for key, div in divs.items()},
            script=Markup(script),
            library=Markup(library()) if figures else "",
            style=Markup(style_sheet()),
            pio_header=words.PIO_HEADER,
            pio_rows=words.pio_rows(profile),
            mqssd_header=words.MQSSD_HEADER,
            mqssd_rows=words.mqssd_rows(profile),
            conditions_text=tomli_w.dumps(_without_none(conditions)),
        )
    )


def _without_none(document: dict[str, dict[str, object]]) -> dict[str, dict[str, object]]:
    return {name: {k: v for k, v in table.items() if v is not None} for name, table in document.items()}


def key_figures(profile: Profile) -> list[KeyFigure]:
    """The first screen's numbers: latencies, alpha and the concurrencies of 4 KiB random accesses."""
    found = [_latency(profile, op) for op in ("read", "write") if op in profile.latency_us]
    pio = profile.pio.get(PAGE_BYTES)
    if pio is not None:
        found.append(_figure("Asymmetry, alpha", pio.alpha, "reads a write"))
        found.append(_figure("Saturated by, k_r", pio.k_r, "reads"))
        found.append(_figure("Saturated by, k_w", pio.k_w, "writes"))
    return found


def _latency(profile: Profile, op: str) -> KeyFigure:
    return _figure(f"{op.capitalize()} latency, 4 KiB", profile.latency_us[op], "µs")


def _figure(label: str, estimate: Estimate, unit: str) -> KeyFigure:
    value, _, interval = words.short(estimate).partition(" (")
    remark = f"95 %: {interval.removesuffix(')')}" if interval else ""
    return KeyFigure(label, value, unit, remark)
