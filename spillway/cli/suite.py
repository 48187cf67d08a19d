"""`spillway suite`."""

import sys
from functools import partial
from pathlib import Path

import click

from spillway.cli.printing import command_line, err, figures, out
from spillway.cli.progress import progress_bars
from spillway.cli.run import chosen_scale
from spillway.errors import Interrupted


@click.command("suite")
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
