"""Runs what of a suite is not done, plan by plan, into one directory.

    suite.json    which suite, its factor, and what there is of each plan
    report.html   every figure redrawn with the published one, a verdict for each claim
    claims.csv    the verdicts
    laws.json     what was simulated for them, with its inputs
    PLAN/         a run directory for each plan
    kept/         states that its plans have kept

A plan is done when its run directory is complete and is of the same resolved plan, files that this names, package and
spillway-native (by SHA-256): it is not run again. One that was ended early, had failed runs, is damaged, or was made by
another build is. Plans that are not chosen are not run, and are reported where they are done.
Its new run directory takes the place of the old one when it is whole. So an interruption, also a kill -9, costs the
plan that was under way and nothing else.
"""

import json
import re
import shutil
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from spillway.errors import Interrupted, SpillwayError
from spillway.run.execute import Finished, Watch, execute
from spillway.rundir.directory import read_run, write_json
from spillway.rundir.stage import explained, locked, remove_leftovers, stages_of
from spillway.suite.document import KEPT, Suite, SuitePlan
from spillway.suite.scale import factor_in_words
from spillway.suite.state import state_of

Document = dict[str, Any]
What = Literal["skipped", "begins", "ended", "failed", "refused", "interrupted"]


@dataclass(frozen=True)
class Step:
    """One event of a suite's run: a plan, what happened to it, and its place among the plans."""

    plan: SuitePlan
    what: What
    why: str = ""
    seconds: float = 0.0
    index: int = 0  # from 1
    count: int = 0


@dataclass
class Outcome:
    """The result of a suite's run."""

    directory: Path
    ran: int = 0
    skipped: int = 0
    failures: list[tuple[str, str]] = field(default_factory=list)  # plan, reason
    interrupted: bool = False
    left_out: dict[str, str] = field(default_factory=dict)  # plans that are not in the report, and why


def run_suite(
    suite: Suite,
    out: Path,
    command: list[str],
    watch: Watch | None = None,
    on_step: Callable[[Step], None] | None = None,
    on_progress: Callable[[str], None] | None = None,
) -> Outcome:
    """Runs what of the chosen plans is not done into ``out`` and writes the suite's report, which has the others too
    where they are done.

    ``on_step`` is called for each plan, ``on_progress`` with a line on the report's simulations. A plan that fails or
    is refused is noted, and the next one runs; a Ctrl-C ends the suite once its plan's directory is written. Raises
    SpillwayError when ``out`` cannot be used or another suite is running in it.
    """
    outcome = Outcome(out)
    with locked(out, "suite"):
        _check_same(suite, out)
        _remove_leftovers(out)
        for index, each in enumerate(suite.chosen, start=1):
            for step in _steps(each, out, command, watch, outcome):
                if on_step is not None:
                    on_step(replace(step, index=index, count=len(suite.chosen)))
            _note(suite, out, outcome)
            if outcome.interrupted:
                break
        outcome.left_out = _write_report(suite, out, on_progress)
    return outcome


def _check_same(suite: Suite, out: Path) -> None:
    """The runs of another suite are not to give way to plans of this one that have their names."""
    try:
        there = json.loads((out / "suite.json").read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return
    name = there.get("suite") if isinstance(there, dict) else None
    if isinstance(name, str) and name != suite.name:
        raise SpillwayError(f"{out}: this is the directory of the suite {name!r}; name another --out.")


def _steps(each: SuitePlan, out: Path, command: list[str], watch: Watch | None, outcome: Outcome) -> Iterator[Step]:
    """Runs a plan that is not done; yields what is to be told of it."""
    state = state_of(out / each.name, each.plan, may_fill=each.may_fill)
    if state == "done":
        _write_missing_report(out / each.name)
        outcome.skipped += 1
        yield Step(each, "skipped")
        return
    if state == "damaged":
        _put_aside(each, out)
    yield Step(each, "begins", state)
    begun = time.monotonic()
    try:
        finished = _run_plan(each, out, command, watch)
    except Interrupted:
        outcome.interrupted = True
        yield Step(each, "interrupted", "", time.monotonic() - begun)
        return
    except SpillwayError as error:
        outcome.failures.append((each.name, str(error)))
        yield Step(each, "refused", str(error), time.monotonic() - begun)
        return
    outcome.ran += 1
    failed = finished.failure and state_of(out / each.name, each.plan, may_fill=each.may_fill) != "done"
    if failed:
        outcome.failures.append((each.name, finished.failure))
    outcome.interrupted = finished.interrupted
    what: What = "interrupted" if finished.interrupted else "failed" if failed else "ended"
    yield Step(each, what, finished.failure, time.monotonic() - begun)


def _write_report(suite: Suite, out: Path, on_progress: Callable[[str], None] | None) -> dict[str, str]:
    from spillway.report import write_suite_report  # the chart library takes long to import

    return write_suite_report(suite, out, out / "report.html", on_progress)


def _write_missing_report(rundir: Path) -> None:
    """The report of a run that was killed, or found no room, after it had measured everything."""
    from spillway.report import write_report  # the chart library takes long to import

    if not (rundir / "report.html").is_file():
        write_report(rundir, rundir / "report.html")


def _run_plan(each: SuitePlan, out: Path, command: list[str], watch: Watch | None) -> Finished:
    """Runs a plan beside its place and puts it there; an earlier run gives way only to one that was not ended early."""
    place, fresh = out / each.name, out / f".{each.name}.next"
    _remove(fresh)
    try:
        finished = execute(each.plan, fresh, command, watch, out / KEPT)
    except SpillwayError as error:
        if not (fresh / "manifest.json").is_file():
            raise
        _put(each.name, out)  # only its report could not be written
        raise type(error)(str(error).replace(str(fresh), str(place))) from error
    if finished.interrupted and place.exists():
        shutil.rmtree(fresh, ignore_errors=True)
        return finished
    _put(each.name, out)
    return finished


def _put(name: str, out: Path) -> None:
    """What has been run takes the place of the plan's earlier run."""
    place, old = out / name, out / f".{name}.old"
    with explained(place):
        _remove(old)
        if place.exists():
            place.rename(old)
        (out / f".{name}.next").rename(place)
    _remove(old)
    _remove(out / f".{name}.damaged")


def _put_aside(each: SuitePlan, out: Path) -> None:
    """A directory that nobody can read is in nobody's way, and is there until another has taken its place."""
    place, aside = out / each.name, out / f".{each.name}.damaged"
    _remove(aside)
    with explained(place):
        place.rename(aside)


def _note(suite: Suite, out: Path, outcome: Outcome) -> None:
    reasons = dict(outcome.failures)
    plans = {}
    for each in suite.plans:
        failure = reasons.get(each.name)
        state = state_of(out / each.name, each.plan, may_fill=each.may_fill)
        plans[each.name] = {
            "state": state,
            "failure": failure,
            "reported": each.chosen or state == "done",
            "settings": list(each.settings),
        }
    write_json(
        out / "suite.json",
        {
            "spillway_suite": 1,  # the version of this layout
            "suite": suite.name,
            "title": suite.title,
            "factor": factor_in_words(suite.scale.factor),
            "own_factors": suite.own_factors(),
            "scaled_keys": list(suite.scale.keys),
            "plans": plans,
        },
    )


def _remove_leftovers(out: Path) -> None:
    """Puts away what a kill left: runs under hidden names, earlier ones and new ones that had not come to their place
    yet; runs not ended, and their engines' files."""
    for path in sorted(out.iterdir()):
        if old := re.fullmatch(r"\.(.+)\.old", path.name):
            place = out / old[1]
            if not place.exists():
                path.rename(place)  # killed between two renames: the earlier run is still the plan's
            else:
                _remove(path)
        elif new := re.fullmatch(r"\.(.+)\.next", path.name):
            if _is_wanted(path, out / new[1]):
                _put(new[1], out)
            else:
                _remove(path)
    for stage in stages_of(out):
        remove_leftovers(stage)


def _is_wanted(fresh: Path, place: Path) -> bool:
    """Whether a run that was killed on its way, while its report was made, is more than what lies in its place."""
    try:
        manifest = read_run(fresh).manifest
    except SpillwayError:
        return False
    came_to_its_end = manifest.get("complete") or (manifest.get("failure") and manifest.get("interrupted") is False)
    return bool(came_to_its_end) or not place.exists()


def _remove(path: Path) -> None:
    """A directory with all in it, or what lies in its place."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        with explained(path):
            path.unlink(missing_ok=True)
