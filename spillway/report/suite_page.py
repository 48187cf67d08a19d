"""The report of a suite: every figure redrawn from its runs, what was published beside it, a verdict for each claim."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from markupsafe import Markup

from spillway.report import sweep, words
from spillway.report.page import embedded, environment, library, style_sheet
from spillway.report.panels import Panel
from spillway.report.sweep import METRICS, Published
from spillway.rundir import ArmRecord, read_figures, write_text
from spillway.suite import Suite
from spillway.suite.claims import Claim, Judged, judge_all, measured_of, tallies
from spillway.suite.document import SuitePlan
from spillway.suite.scale import said

Document = dict[str, Any]

# What of a run is drawn, and the figure of a claim as it is drawn: its metric and the factor to that metric's unit.
DRAWN = ("wa-app", "wa-device", "wa-total", "throughput", "user-data")
DRAWN_AS = {
    "wa_app": ("wa-app", 1.0),
    "wa_device": ("wa-device", 1.0),
    "wa_total": ("wa-total", 1.0),
    "throughput_ops_s": ("throughput", 1e-3),
    "user_mb_s": ("user-data", 1.0),
}


@dataclass(frozen=True)
class Part:
    """What the page says of one plan."""

    plan: SuitePlan
    state: str  # empty where its run is whole
    arms: list[ArmRecord]  # their points in the original's sizes
    judged: list[Judged]
    panels: list[Panel] = field(default_factory=list)
    table: tuple[list[str], list[list[str]]] = ((), ())  # type: ignore[assignment]
    failures: list[tuple[str, str]] = field(default_factory=list)

    @property
    def key(self) -> str:
        """Of the section."""
        return f"plan-{self.plan.name}"


def write_suite_report(suite: Suite, directory: Path, target: Path) -> None:
    """Reads the run directories below ``directory`` and writes the suite's report to ``target``."""
    write_text(target, render(suite, directory))


def render(suite: Suite, directory: Path) -> str:
    """The report as HTML."""
    read = {each.name: _arms(directory / each.name, each) for each in suite.plans}
    results = {
        each.name: measured_of(summaries, _points(arms), each.law_of(summaries))
        for each in suite.plans
        if (arms := read[each.name][0]) and (summaries := {arm.name: arm.summary for arm in arms})
    }
    judged = judge_all(suite.claims, results)
    parts = [_part(each, *read[each.name], judged) for each in suite.plans]
    figures = {f"{part.key}-{panel.key}": panel.figure for part in parts for panel in part.panels}
    script, divs = embedded(figures)
    counted = tallies(suite.statements, judged)
    return (
        environment()
        .get_template("suite.html.jinja")
        .render(
            suite=suite,
            factor=said(suite.scale.factor),
            headline=_headline(suite, parts, judged),
            tallies=counted,
            parts=parts,
            divs={key: Markup(div) for key, div in divs.items()},
            script=Markup(script),
            library=Markup(library()) if figures else "",
            style=Markup(style_sheet()),
        )
    )


def _points(arms: Sequence[ArmRecord]) -> dict[str, Mapping[str, Any]]:
    return {arm.name: arm.summary.get("point") or {} for arm in arms}


def _arms(directory: Path, plan: SuitePlan) -> tuple[list[ArmRecord], str]:
    """A plan's runs, each at the point that the original has, and what is to be known of the run directory."""
    if not (directory / "summary.json").is_file():
        return [], "It has not been run."
    run = read_figures(directory)
    points = plan.point_of()
    if any(arm.name not in points for arm in run.arms):
        return [], "What has been run is another plan; run the suite again."
    arms = [replace(arm, summary=arm.summary | {"point": points[arm.name]}) for arm in run.arms]
    if run.manifest.get("failure"):
        return arms, f"Not whole: {run.manifest['failure']}"
    return arms, "" if run.manifest.get("complete") else "It was ended early; what is missing is not drawn."


def _part(plan: SuitePlan, arms: list[ArmRecord], state: str, judged: Sequence[Judged]) -> Part:
    own = [each for each in judged if each.claim.plan == plan.name]
    if not arms:
        return Part(plan, state, [], own)
    if sweep.is_swept(arms):
        published = [mark for each in own if (mark := _mark(each.claim)) is not None]
        drawn = [metric for metric in METRICS if metric.key in DRAWN]
        table = sweep.table(arms)
        return Part(plan, state, arms, own, sweep.sweep_panels(arms, drawn, published), table, sweep.failures(arms))
    rows = words.comparison(arms)
    header = ["Arm", *(label for label, _ in rows)]
    cells = [[arm.name, *(row[index] for _, row in rows)] for index, arm in enumerate(arms)]
    return Part(plan, state, arms, own, [], (header, cells), sweep.failures(arms))


def _mark(claim: Claim) -> Published | None:
    """A published figure that stands at a point, not a ratio of two."""
    if claim.published is None or claim.over is not None or claim.place.figure not in DRAWN_AS:
        return None
    metric, factor = DRAWN_AS[claim.place.figure]
    return Published(claim.place.arm, claim.place.at, metric, claim.published * factor)


def _headline(suite: Suite, parts: Sequence[Part], judged: Sequence[Judged]) -> str:
    run = sum(1 for part in parts if part.arms)
    opening = f"{run} of {len(parts)} experiments have been run. " if run < len(parts) else ""
    if not judged:
        return f"{opening}{suite.title}"
    counts = {verdict: sum(1 for each in judged if each.verdict == verdict) for verdict in _VERDICTS}
    missing = f", {counts['not measured']} could not be measured" if counts["not measured"] else ""
    return (
        f"{opening}Of {len(judged)} published figures and relations {counts['reproduced']} are reproduced and "
        f"{counts['differs']} differ{missing}."
    )


_VERDICTS = ("reproduced", "differs", "not measured")
