"""`spillway suite` and `spillway sweep`: many runs by one command."""

import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from spillway.cli.arguments import Once, WholeRange
from spillway.cli.printing import command_line, err, figures, number, out
from spillway.cli.progress import progress_bars
from spillway.cli.run import chosen_scale
from spillway.errors import Interrupted
from spillway.plan import kept
from spillway.quantity import check_text
from spillway.suite.document import load_scaled

if TYPE_CHECKING:
    from spillway.sweep import Cell, Outcome, Step


@click.command("suite", cls=Once)
@click.argument("name", metavar="DIR_OR_NAME")
@click.option("--out", "directory", type=click.Path(path_type=Path), help="Directory  [default: runs/SUITE-SCALE]")
@click.option("--only", multiple=True, metavar="PLAN", help="Run this plan of the suite only; may be repeated.")
@click.option("--scale", metavar="FACTOR", help="In place of the suite's own, such as 1/64.")
@click.option("--unscaled", is_flag=True, help="The original's sizes: --scale 1.")
@click.option(
    "--set", "settings", multiple=True, metavar="KEY=VALUE", help="Override a key of every plan run; may be repeated."
)
@click.option("--list", "listed", is_flag=True, help="Say what there is and what is done, and run nothing.")
def suite_command(
    name: str,
    directory: Path | None,
    only: tuple[str, ...],
    scale: str | None,
    unscaled: bool,
    settings: tuple[str, ...],
    listed: bool,
) -> int:
    """Run the plans of a suite that are not done, and make one report of all.

    A suite is a directory of plans with a suite.toml, or its name below plans/. After a Ctrl-C, or a kill, the same
    command goes on with the plan that was under way.
    """
    from spillway.run.suite import Step, run_suite
    from spillway.run.too_small import check_scale, with_advice
    from spillway.suite import find_suite, load_suite
    from spillway.suite.state import left_out_in_words, state_of

    found, factor = find_suite(name), chosen_scale(scale, unscaled)
    with with_advice(found, factor, only, settings):
        suite = load_suite(found, factor, only, settings)
        size = "" if suite.scale.factor == 1 else f"-{suite.scale.factor.numerator}-{suite.scale.factor.denominator}"
        place = directory or Path("runs") / f"{suite.name}{size}"
        if not listed:
            check_scale(suite, place)
    if listed:
        rows = []
        for each in suite.chosen:
            runs = str(len(each.plan.arms) * len(each.plan.seeds))
            state = state_of(place / each.name, each.plan, may_fill=each.may_fill)
            rows.append((each.name, runs, state, each.original.summary))
        out.print(figures(("plan", "runs", "state", "what"), rows))
        return 0

    done = 0

    def on_step(step: Step) -> None:
        nonlocal done
        runs = len(step.plan.plan.arms) * len(step.plan.plan.seeds)
        where = f"[{step.index}/{step.count}] {step.plan.name}"
        if step.what == "begins":
            err.print(f"{where}: {runs} runs ({done} of {suite.runs} are behind)", soft_wrap=True)
            return
        done += runs
        words = "done before" if step.what == "skipped" else f"{step.what} after {step.seconds:,.0f} s"
        err.print(f"{where}: {words}{f': {step.why}' if step.why else ''}", soft_wrap=True)

    with progress_bars() as watch:
        say = partial(err.print, soft_wrap=True)
        outcome = run_suite(suite, place, command_line(), watch, on_step, say)
    count = f"{outcome.ran} plans run, {outcome.skipped} done before"
    out.print(f"{count}\nSuite   {place}\nReport  {place / 'report.html'}", soft_wrap=True)
    if outcome.left_out:
        out.print(f"        without {left_out_in_words(outcome.left_out)}", soft_wrap=True)
    for plan, why in outcome.failures:
        print(f"spillway: {plan}: {why}", file=sys.stderr)
    if outcome.interrupted:
        return Interrupted.exit_code
    return 1 if outcome.failures else 0


@click.command("sweep", cls=Once)
@click.argument("plan", type=click.Path(path_type=Path))
@click.option("--out", "directory", type=click.Path(path_type=Path), help="Directory  [default: runs/sweep-PLAN]")
@click.option(
    *("--on", "where"),
    default="local",
    show_default=True,
    metavar="WHERE",
    help="local, slurm, ray (the cluster that this machine is a node of), ray:HOST:PORT, or submitit-local.",
)
@click.option(
    *("--jobs", "most"),
    type=WholeRange(1),
    metavar="N",
    help="Most cells at once  [default: what the cores take; of a cluster 256]",
)
@click.option("--cores", type=WholeRange(1), default=1, show_default=True, metavar="N", help="Cores for each cell.")
@click.option(
    *("--retries", "retries"),
    type=WholeRange(0),
    default=2,
    show_default=True,
    metavar="N",
    help="Further attempts at a cell whose work failed or whose worker died.",
)
@click.option(
    *("--slurm", "slurm"), multiple=True, metavar="KEY=VALUE", help="A parameter of submitit's, such as partition=ssd."
)
@click.option(
    "--set", "settings", multiple=True, metavar="KEY=VALUE", help="Override a key of the plan; may be repeated."
)
@click.option("--arm", "arms", multiple=True, metavar="NAME", help="Run this arm of the plan; may be repeated.")
@click.option("--scale", metavar="FACTOR", help="Of a suite's plan, in place of the suite's own, such as 1/64.")
@click.option("--unscaled", is_flag=True, help="The original's sizes: --scale 1.")
@click.option("--list", "listed", is_flag=True, help="Say which cells there are and which are done, and run nothing.")
@click.option("--no-report", "is_plain", is_flag=True, help="Draw no report of all cells.")
@click.option("--json", "as_json", is_flag=True, help="Print sweep.json and nothing else.")
def sweep_command(
    plan: Path,
    directory: Path | None,
    where: str,
    most: int | None,
    cores: int,
    retries: int,
    slurm: tuple[str, ...],
    settings: tuple[str, ...],
    arms: tuple[str, ...],
    scale: str | None,
    unscaled: bool,
    listed: bool,
    is_plain: bool,
    as_json: bool,
) -> int:
    """Run every arm of PLAN at every point of its sweep, on one machine or several.

    Each arm at each point with each seed is a cell: a run directory of its own, named by a digest of what decides on
    its result. A cell that is done is not run again, so after a Ctrl-C, a kill or a failure the same command goes on
    with what is missing; so does another plan with the same cells.

    Cells in virtual time share the cores of a machine; in real time one runs alone on it. On a cluster, machines share
    the file system that has DIRECTORY, and have the same spillway installed. A cell on a real drive runs in Ray only on
    a node that was started with --resources='{"drive:PATH": 1}', PATH being the drive's mount point.
    """
    from spillway.sweep import Settings, cells_of, executor_on, run_sweep

    checked = load_scaled(plan, settings, arms, chosen_scale(scale, unscaled))
    place, states = directory or Path("runs") / f"sweep-{checked.name}", kept.PLACE.absolute()
    check_text([str(place), *slurm])
    cells = cells_of(checked, states, cores)
    if listed:
        _print_cells(place, cells)
        return 0
    executor = executor_on(where, place, most, slurm)
    sweep = Settings(checked, cells, place, command_line(), states, retries, reports=not is_plain)
    outcome = run_sweep(sweep, executor, _print_step)
    if as_json:
        print((place / "sweep.json").read_text(encoding="utf-8"), end="")
    else:
        _print_outcome(outcome)
    for cell, result in outcome.failures:
        print(f"spillway: {cell.name}: {result.why}", file=sys.stderr)
    return outcome.exit_code


def _print_step(step: "Step") -> None:
    if step.what in ("begins", "done before"):
        return
    where = f"[{step.count - step.left}/{step.count}] {step.cell.name}"
    if step.what == "under way":
        err.print(f"{where}: an earlier sweep has started it; its end is waited for", soft_wrap=True)
        return
    answer = step.answer
    assert answer is not None
    took = f" after {answer.seconds:,.0f} s on {answer.host}" if answer.host else ""
    why = f": {answer.why}" if answer.why else ""
    words = "failed, and is tried again" if step.what == "again" else step.what
    err.print(f"{where}: {words}{took}{why}", soft_wrap=True)


def _print_cells(place: Path, cells: list["Cell"]) -> None:
    from spillway.sweep.job import read_cell

    rows = []
    for cell in cells:
        there = read_cell(place, cell.address, removes=False)
        rows.append((cell.name, cell.address, there[0] if there else "not run"))
    out.print(figures(("cell", "address", "state"), rows))


def _print_outcome(outcome: "Outcome") -> None:
    rows = []
    for cell in outcome.cells:
        result = outcome.results[cell.address]
        known, latency = result.figures, result.figures.get("latency_us") or {}
        ratios = tuple(number(known.get(name), ".2f") for name in ("wa_app", "wa_device", "wa_total"))
        rates = (number(known.get("throughput_ops_s"), ",.0f"), number(latency.get("p99"), ",.1f"))
        steady = {True: "yes", False: "no", None: "–"}[known.get("steady")]
        rows.append((cell.name, result.state, *rates, *ratios, steady))
    titles = ("cell", "state", "operations/s", "p99 (µs)", "wa_app", "wa_device", "wa_total", "steady")
    out.print(figures(titles, rows), soft_wrap=True)
    place, states = outcome.directory, [each.state for each in outcome.results.values()]
    ran = sum(each.attempts > 0 and each.state != "not run" for each in outcome.results.values())
    missing = f", {states.count('not run')} not run" if "not run" in states else ""
    out.print(f"\n{ran} cells run, {len(states) - ran - states.count('not run')} done before{missing}")
    out.print(f"Directory  {place}\nTable      {place / 'cells.csv'}", soft_wrap=True)
    if not outcome.interrupted and (place / "run" / "report.html").is_file():
        out.print(f"Report     {place / 'run' / 'report.html'}", soft_wrap=True)
