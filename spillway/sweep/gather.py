"""All cells of a sweep as one run directory, as `spillway run` of the plan would have left it, with its report.

It is made of copies of what the cells have recorded (links, where the file system has them), so it is made anew
whenever a sweep ends, and nothing reads it to decide what is to be run. A sweep that begins removes what an earlier one
has gathered: figures of another table are not to stand beside its own.
"""

import json
import os
import shutil
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from spillway.plan import inputs
from spillway.plan.arm import slug
from spillway.plan.document import Plan
from spillway.run.summary import typical
from spillway.rundir.directory import LAYOUT, RunRecord, read_figures, write_json, write_text
from spillway.rundir.stage import explained, staged
from spillway.sweep.cell import Cell
from spillway.sweep.job import RUN
from spillway.sweep.results import Result, directory_of

Document = dict[str, Any]


def gather(plan: Plan, cells: Sequence[Cell], results: Mapping[str, Result], out: Path, command: list[str]) -> None:
    """Writes ``out/run`` anew, unless no cell has recorded anything. Raises SpillwayError where it cannot."""
    recorded = [(cell, results[cell.address]) for cell in cells if results[cell.address].figures]
    if not recorded:
        return
    arms: dict[str, list[Document]] = {}
    prepared: Document = {}
    runs: list[RunRecord] = []
    with staged(out / RUN, lambda place: True) as stage, explained(out / RUN):
        for cell, result in recorded:
            source = out / directory_of(cell, result)
            arms.setdefault(cell.arm.name, []).append(_taken(cell, result, source, stage))
            _take_prepared(source, stage, prepared)
            runs.append(read_figures(source))
        failure = _failure(cells, results)
        whole = {"plan": plan.name, "complete": not failure and len(recorded) == len(cells), "failure": failure or None}
        summary = whole | {"arms": {name: _one(several) for name, several in arms.items()}}
        write_text(stage / "plan.toml", plan.to_toml())
        write_json(stage / "summary.json", summary | ({"prepared": prepared} if plan.preparations else {}))
        write_json(stage / "manifest.json", _manifest(plan, cells, results, runs, command) | whole)


def discard(out: Path) -> None:
    """Removes ``out/run``, whole at once, and what a discarding that was cut short has left. Raises SpillwayError where
    it cannot."""
    for left in out.glob(f".{RUN}.replaced-*"):
        shutil.rmtree(left, ignore_errors=True)
    with explained(out / RUN), suppress(FileNotFoundError):
        aside = out / f".{RUN}.replaced-{os.getpid()}"
        (out / RUN).rename(aside)
        shutil.rmtree(aside, ignore_errors=True)


def _one(repetitions: list[Document]) -> Document:
    """An arm's object in summary.json; that of a cell with several repetitions has them already."""
    return repetitions[0] if "repetitions" in repetitions[0] else typical(repetitions)


def _taken(cell: Cell, result: Result, source: Path, stage: Path) -> Document:
    """Copies what a cell has recorded; returns its figures with the places of the copies."""
    figures = dict(result.figures)
    several = figures.get("repetitions") or [figures]
    places = {}
    for at, each in enumerate(several, start=cell.repetition):
        places[each["directory"]] = f"arms/{slug(cell.arm.name)}" + ("" if at == 0 else f"-r{at + 1}")
    for old, new in places.items():
        _copy(source / old, stage / new)
    if "repetitions" in figures:
        figures["repetitions"] = [each | {"directory": places[each["directory"]]} for each in several]
    return figures | {"directory": places[figures["directory"]], **cell.arm.on_its_sweep()}


def _take_prepared(source: Path, stage: Path, prepared: Document) -> None:
    """The preparations of a cell that ran them stand for those of the cells that found their states."""
    with suppress(OSError, ValueError, TypeError, AttributeError, KeyError):
        found = json.loads((source / "summary.json").read_text(encoding="utf-8")).get("prepared") or {}
        for name, each in found.items():
            if name not in prepared or (prepared[name]["reused"] and not each["reused"]):
                prepared[name] = each
    for each in (source / "prepared").glob("*"):
        if not (stage / "prepared" / each.name).exists():
            _copy(each, stage / "prepared" / each.name)


def _copy(source: Path, place: Path) -> None:
    """Raises OSError, the first that there is."""
    place.mkdir(parents=True)
    for each in source.iterdir():
        if each.is_dir():
            _copy(each, place / each.name)
        else:
            _link(each, place / each.name)


def _link(source: Path, place: Path) -> None:
    """Run directories are not changed once they are whole, so one file may stand in several."""
    try:
        os.link(source, place)
    except OSError:
        shutil.copy2(source, place)


def _failure(cells: Sequence[Cell], results: Mapping[str, Result]) -> str:
    failed = [cell for cell in cells if results[cell.address].why]
    if not failed:
        return ""
    first = failed[0].name
    those = f"{first} failed" if len(failed) == 1 else f"{len(failed)} of {len(cells)} runs failed; the first, {first}"
    return f"{those}: {results[failed[0].address].why}"


def _manifest(
    plan: Plan, cells: Sequence[Cell], results: Mapping[str, Result], runs: Sequence[RunRecord], command: list[str]
) -> Document:
    manifests = [run.manifest for run in runs]
    versions: Document = {}
    for each in manifests:
        versions |= each.get("versions") or {}
    hosts = [each["host"] for each in manifests if each.get("host")]
    return {
        **LAYOUT,
        "plan": plan.name,
        "plan_file": plan.path.name,
        "command": command,
        "failures": [
            {"run": cell.name, "drive_full": result.state == "drive full", "why": result.why}
            for cell in cells
            if (result := results[cell.address]).why
        ],
        "refused": False,
        "interrupted": False,
        "started": min((each["started"] for each in manifests if each.get("started")), default=_now()),
        "ended": max((each["ended"] for each in manifests if each.get("ended")), default=_now()),
        "seeds": plan.seeds,
        "versions": versions,
        "host": hosts[0] if hosts else None,
        "hosts": [host for at, host in enumerate(hosts) if host not in hosts[:at]],  # of the cells: may be several
        "inputs_sha256": inputs.sha256_of([*plan.arms, *plan.preparations]),
    }


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


def write_report(out: Path) -> None:
    """Draws the report of ``out/run``, where that is. Raises SpillwayError where it cannot be written."""
    rundir = out / RUN
    if rundir.is_dir():
        _draw(rundir)


def _draw(rundir: Path) -> None:
    from spillway.report import write_report as draw  # the chart library takes longer to import than a short run takes

    draw(rundir, rundir / "report.html")
