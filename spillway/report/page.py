"""Puts a report together: words, figures, template, and everything a browser needs inside one file."""

import json
import tomllib
from dataclasses import replace
from pathlib import Path
from typing import Any

from markupsafe import Markup

from spillway.compare.ranks import ranks_in_words
from spillway.errors import SpillwayError
from spillway.lint.run import lint_record
from spillway.report import sweep, sweep_data, sweep_words, words
from spillway.report.arm_outcomes import mix_of, outcomes_of_arms, unfinished_arms
from spillway.report.charts import Clock
from spillway.report.claims import bill_rows, claims
from spillway.report.comparison import comparison_panels
from spillway.report.frame import embedded, environment, library, style_sheet
from spillway.report.panels import Panel, arm_panels
from spillway.rundir.directory import ArmRecord, RunRecord, read_run, write_text

MOST_FAILURES = 20  # of a sweep that are listed one by one; summary.json has all


def write_report(rundir: Path, target: Path, only: tuple[str, ...] = ()) -> None:
    """Reads the run directory ``rundir`` and writes its report to ``target``, whole or not at all.

    ``only``: the arms that it is about (none: all); of a sweep an arm's name stands for all of its points. Raises
    SpillwayError where ``rundir`` cannot be read or ``target`` cannot be written.
    """
    write_text(target, render(read_run(rundir), only))


def _only(run: RunRecord, names: tuple[str, ...]) -> RunRecord:
    known = {name for arm in run.arms for name in (arm.name, arm.summary.get("of"))}
    for name in names:
        if name not in known:
            there = ", ".join(dict.fromkeys(arm.summary.get("of") or arm.name for arm in run.arms))
            raise SpillwayError(f"{run.path}: there is no arm {name!r}; by name there are: {there}.")
    arms = [arm for arm in run.arms if not names or arm.name in names or arm.summary.get("of") in names]
    return replace(run, arms=arms)


def render(run: RunRecord, only: tuple[str, ...] = ()) -> str:
    """The report as HTML. ``only``: as of ``write_report``."""
    recorded, run = run.arms, _only(run, only)
    plan = {"summary": ""} | tomllib.loads(run.plan_toml)
    seconds = max((arm.rows[-1]["t_s"] for arm in run.arms if arm.rows), default=1.0)
    clock = Clock(seconds)
    swept = sweep_data.is_swept(run.arms) and len(run.arms) > 1
    drawn = [] if swept and len(run.arms) > sweep_data.MOST_SECTIONS else run.arms
    sections = [_Section(index, arm, arm_panels(arm, clock)) for index, arm in enumerate(drawn)]
    outcomes = outcomes_of_arms(plan, run.arms) if len(run.arms) > 1 and not swept else []
    unfinished = [each for each in unfinished_arms(plan, recorded) if not only or each.name in only] if outcomes else []
    compared = sweep.sweep_panels(run.arms) if swept else comparison_panels(run.arms, outcomes, clock)
    figures = {f"compare-{panel.key}": panel.figure for panel in compared}
    figures |= {f"{s.key}-{panel.key}": panel.figure for s in sections for panel in s.panels}
    script, divs = embedded(figures)
    linted = lint_record(run)
    return (
        environment()
        .get_template("report.html.jinja")
        .render(
            run=run,
            plan=plan,
            headline=sweep_words.headline(run.arms) if swept else words.headline(run, plan),
            swept=_swept(run) if swept else None,
            sections=sections,
            compared=compared,
            arm_names=[arm.name for arm in run.arms],
            comparison=words.comparison(run.arms) if len(run.arms) > 1 and not swept else [],
            claims=claims(outcomes, mix_of(plan), unfinished) if outcomes else [],
            unfinished=", ".join(each.name for each in unfinished),
            outcomes=outcomes,
            bill=bill_rows(outcomes) if outcomes else [],
            ranks=ranks_in_words(run.arms) if swept else [],
            worth=linted,
            worth_words=words.worth(run.arms, linted) if run.arms else "",
            key_figures=words.key_figures,
            idle_drive=words.idle_drive,
            divs={key: Markup(div) for key, div in divs.items()},
            script=Markup(script),
            library=Markup(library()) if figures else "",
            style=Markup(style_sheet()),
            manifest_json=json.dumps(run.manifest, indent=2, ensure_ascii=False),
        )
    )


def _swept(run: RunRecord) -> dict[str, Any]:
    """What the page says of a sweep besides its charts."""
    header, rows = sweep_words.table(run.arms)
    failed = sweep_words.failures(run.arms)
    return {
        "header": header,
        "rows": rows,
        "failures": failed[:MOST_FAILURES],
        "more_failures": len(failed) - MOST_FAILURES,
        "left_out": sweep_words.left_out(run.arms),
        "sections_left_out": len(run.arms) > sweep_data.MOST_SECTIONS,
    }


class _Section:
    """One arm's part of the page."""

    def __init__(self, index: int, arm: ArmRecord, panels: list[Panel]) -> None:
        self.key = f"arm{index}"
        self.arm = arm
        self.panels = panels
        self.standing: dict[str, Any] = arm.summary["standing"]
