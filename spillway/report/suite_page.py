"""The report of a suite: every figure redrawn from its runs with the published one, a verdict for each claim."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from markupsafe import Markup

from spillway.report import sweep, sweep_data, sweep_words, words
from spillway.report.frame import embedded, environment, library, style_sheet
from spillway.report.over_time import over_time_panels
from spillway.report.panels import Panel
from spillway.report.sweep_data import METRICS, Published
from spillway.rundir.directory import ArmRecord, read_figures, read_run, write_text
from spillway.suite import Suite
from spillway.suite.claims import Claim
from spillway.suite.document import SuitePlan
from spillway.suite.laws import OnProgress, Simulated, laws_of
from spillway.suite.measured import measured_of
from spillway.suite.scale import factor_in_words
from spillway.suite.state import left_out_in_words, reported, state_of
from spillway.suite.verdicts import VERDICTS, Judged, as_csv, judge_all, runs_by_law, tallies

Document = dict[str, Any]

# States of a run directory that is not this suite's.
NOT_OURS = {
    "of another plan": "of another plan or at another scale",
    "of other files": "with other presets, states of drives or times of arrival",
    "of another build": "of another build",
}
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


def write_suite_report(
    suite: Suite, directory: Path, target: Path, on_progress: OnProgress | None = None
) -> dict[str, str]:
    """Reads the run directories below ``directory``; writes the report to ``target`` and its verdicts to claims.csv in
    the same directory.

    ``on_progress`` is called with a line on the simulations, which take minutes the first time. Returns each plan that
    is left out (not chosen, or not done) with the reason. Raises SpillwayError where the report cannot be written.
    """
    plans, left_out = reported(suite, directory)
    inside = {each.name for each in plans}
    about = replace(suite, plans=plans, claims=[claim for claim in suite.claims if claim.plan in inside])
    read = {each.name: _arms(directory / each.name, each) for each in plans}
    judged = _judged(about, directory, read, on_progress)
    write_text(target, _render(about, read, judged, left_out))
    write_text(target.with_name("claims.csv"), as_csv(judged))
    return left_out


Read = Mapping[str, tuple[list[ArmRecord], str]]  # by plan: its runs, and what is to be known of their directory


def _judged(suite: Suite, directory: Path, read: Read, on_progress: OnProgress | None) -> list[Judged]:
    summaries = {name: {arm.name: arm.summary for arm in arms} for name, (arms, _) in read.items() if arms}
    points = {name: _points(arms) for name, (arms, _) in read.items()}
    scaled = {each.name: each.factor != 1 for each in suite.plans}
    asked = {each.name: len(each.plan.seeds) for each in suite.plans}
    plain = {name: measured_of(of, points[name], {}, scaled[name], asked[name]) for name, of in summaries.items()}
    loads = {
        (each.name, run): load
        for each in suite.plans
        if each.name in summaries
        for run, load in each.loads_of(summaries[each.name], directory / each.name).items()
    }
    laws = laws_of(loads, [runs_by_law(claim, plain) for claim in suite.claims], Simulated(directory, on_progress))
    results = {
        name: measured_of(
            of,
            points[name],
            {run: law for (plan, run), law in laws.items() if plan == name},
            scaled[name],
            asked[name],
        )
        for name, of in summaries.items()
    }
    return judge_all(suite.claims, results, {name: state for name, (arms, state) in read.items() if not arms})


def _render(suite: Suite, read: Read, judged: list[Judged], left_out: Mapping[str, str]) -> str:
    parts = [_part(each, *read[each.name], judged) for each in suite.plans]
    figures = {f"{part.key}-{panel.key}": panel.figure for part in parts for panel in part.panels}
    script, divs = embedded(figures)
    counted = tallies(suite.statements, judged)
    return (
        environment()
        .get_template("suite.html.jinja")
        .render(
            suite=suite,
            factor=factor_in_words(suite.scale.factor),
            own_factors=suite.own_factors(),
            headline=_headline(suite, parts, judged, len(left_out)),
            left_out=left_out_in_words(left_out),
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
    """A plan's runs, each at the point that the original has, and what is to be known of the run directory.

    Runs of another plan, scale or build are none of this suite's: they are named, and neither shown nor judged. Those
    of a run that was ended early or had failures are, as far as they go: each says of itself whether it is complete.
    """
    state = state_of(directory, plan.plan, may_fill=plan.may_fill)
    if state == "not run":
        return [], f"{plan.name} has not been run."
    if state == "damaged":
        return [], f"What there is of {plan.name} is damaged; run the suite again."
    if state in NOT_OURS:
        return [], f"What there is of {plan.name} was run {NOT_OURS[state]}; run the suite again."
    run = (read_run if plan.over_time else read_figures)(directory)
    points = plan.point_of()
    arms = [replace(arm, summary=arm.summary | {"point": points[arm.name]}) for arm in run.arms if arm.name in points]
    if state == "failed":
        return arms, f"Not whole: {run.manifest['failure']}"
    return arms, "" if state == "done" else "It was ended early; what is missing is not drawn."


def _part(plan: SuitePlan, arms: list[ArmRecord], state: str, judged: Sequence[Judged]) -> Part:
    own = [each for each in judged if each.claim.plan == plan.name]
    if not arms:
        return Part(plan, state, [], own)
    if sweep_data.is_swept(arms):
        published = [mark for each in own if (mark := _mark(each.claim)) is not None]
        drawn = [metric for metric in METRICS if metric.key in DRAWN]
        table = sweep_words.table(arms)
        panels = [*over_time_panels(arms), *sweep.sweep_panels(arms, drawn, published)]
        return Part(plan, state, arms, own, panels, table, sweep_words.failures(arms))
    rows = words.comparison(arms)
    header = ["Arm", *(label for label, _ in rows)]
    cells = [[arm.name, *(row[index] for _, row in rows)] for index, arm in enumerate(arms)]
    return Part(plan, state, arms, own, over_time_panels(arms), (header, cells), sweep_words.failures(arms))


def _mark(claim: Claim) -> Published | None:
    """A published figure that stands at a point, not a ratio of two."""
    if (
        claim.published is None
        or claim.over
        or claim.place.against
        or claim.unmeasured
        or claim.place.figure not in DRAWN_AS
    ):
        return None
    metric, factor = DRAWN_AS[claim.place.figure]
    return Published(claim.place.arm, claim.place.at, metric, claim.published * factor)


def _headline(suite: Suite, parts: Sequence[Part], judged: Sequence[Judged], left_out: int) -> str:
    run, count = sum(1 for part in parts if part.arms), len(parts) + left_out
    opening = f"{run} of {count} experiments have been run. " if run < count else ""
    if not judged:
        return f"{opening}{suite.title}"
    counts = {verdict: sum(1 for each in judged if each.verdict == verdict) for verdict in VERDICTS}
    chosen = f", {counts['calibrated']} come out since the model was calibrated to them" if counts["calibrated"] else ""
    missing = f", {counts['not measured']} could not be measured" if counts["not measured"] else ""
    return (
        f"{opening}Of {len(judged)} published figures and relations {counts['reproduced']} are reproduced and "
        f"{counts['differs']} differ{chosen}{missing}."
    )
