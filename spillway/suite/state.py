"""The state of a plan's run directory, and the plans that a suite's report covers."""

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from spillway.errors import SpillwayError
from spillway.native.process import build_sha256
from spillway.plan import inputs
from spillway.plan.document import Plan
from spillway.rundir.directory import read_run
from spillway.suite.document import Suite, SuitePlan
from spillway.version import __version__

Document = dict[str, Any]
State = Literal[
    "done", "ended early", "failed", "of another plan", "of other files", "of another build", "damaged", "not run"
]


def state_of(directory: Path, plan: Plan, *, may_fill: bool = False) -> State:
    """The state of a plan's run directory: whether it exists, is whole, and is of this plan, its files and this build.
    ``may_fill``: runs that filled their drives are results."""
    if not directory.exists():
        return "not run"
    try:
        run = read_run(directory)  # the whole of it: the report of a suite cannot do with less
    except SpillwayError:
        return "damaged"
    manifest = run.manifest
    if _experiment(run.plan_toml) != _experiment(plan.to_toml()):
        return "of another plan"
    if manifest.get("inputs_sha256") != inputs.sha256_of([*plan.arms, *plan.preparations]):
        return "of other files"
    versions = manifest.get("versions") or {}
    if (versions.get("spillway"), versions.get("build_sha256")) != (__version__, build_sha256()):
        return "of another build"
    if manifest.get("failure"):
        return "done" if may_fill and plan.swept and _only_filled(manifest) else "failed"
    return "done" if manifest.get("complete") else "ended early"


def reported(suite: Suite, out: Path) -> tuple[list[SuitePlan], dict[str, str]]:
    """(plans of the report in the suite's order: those that are chosen, and others whose runs in ``out`` are done;
    plans that it leaves out → their state)."""
    inside, left_out = [], {}
    for each in suite.plans:
        state = "done" if each.chosen else state_of(out / each.name, each.plan, may_fill=each.may_fill)
        if state == "done":
            inside.append(each)
        else:
            left_out[each.name] = state
    return inside, left_out | {name: f"its plan cannot be read: {why}" for name, why in suite.unread.items()}


def left_out_in_words(left_out: Mapping[str, str]) -> str:
    """``a, b (not run); c (of another build)``."""
    by_why: dict[str, list[str]] = {}
    for name, why in left_out.items():
        by_why.setdefault(why, []).append(name)
    return "; ".join(f"{', '.join(names)} ({why})" for why, names in by_why.items())


def _only_filled(manifest: Document) -> bool:
    """Whether every run was tried, and those that failed filled their drives."""
    failures = manifest.get("failures")
    if not isinstance(failures, list) or manifest.get("interrupted") is not False:
        return False
    return bool(failures) and all(isinstance(each, dict) and each.get("drive_full") is True for each in failures)


def _experiment(plan_toml: str) -> Document:
    """A resolved plan without what it answers to lint, which changes nothing that is run."""
    try:
        document = tomllib.loads(plan_toml)
    except tomllib.TOMLDecodeError:
        return {}
    return {key: value for key, value in document.items() if key != "lint"}
