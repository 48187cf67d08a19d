"""`spillway repeat`."""

import json
import sys
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click

from spillway.cli.printing import figures, number, out
from spillway.cli.progress import progress_bars
from spillway.quantity import parse_share
from spillway.rundir.stage import settled

if TYPE_CHECKING:
    from spillway.run.repeat import ThenAndNow


@click.command("repeat")
@click.argument("recorded", metavar="RUN", type=click.Path(path_type=Path))
@click.option(
    "--out", "directory", type=click.Path(path_type=Path), help="Run directory  [default: runs/PLAN-again-TIME]"
)
@click.option("--within", metavar="SHARE", help="How far figures may be apart, such as 5%, whatever their spread.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object and nothing else.")
def repeat_command(recorded: Path, directory: Path | None, within: str | None, as_json: bool) -> int:
    """Run a recorded run directory again, and say what differs.

    Its plan runs as it was resolved, with its seeds and at its scale. Counts that the plan fixes are held to the byte;
    means of repetitions by their spread; of one run each it says how far. Exit code 1: something differs beyond that. A
    run directory that is cut off or incomplete, or whose plan or preset has changed, is refused with exit code 2.
    """
    from spillway.run.execute import execute
    from spillway.run.repeat import compare_then_and_now, document, read_recorded

    share = None if within is None else parse_share(within, "--within")
    then = read_recorded(recorded)
    place = settled(directory or Path("runs") / f"{then.plan.name}-again-{datetime.now():%Y%m%d-%H%M%S}")
    command = ["spillway", "repeat", str(recorded)]
    with progress_bars() as watch:
        finished = execute(then.plan, place, command, watch)
    if finished.failure or finished.interrupted:
        why = finished.failure or "it was ended early."
        print(f"spillway: {place} is no repetition to compare: {why}", file=sys.stderr)
        return finished.exit_code
    held = compare_then_and_now(then, place, share)
    if as_json:
        print(json.dumps(document(held, recorded, place), indent=2, ensure_ascii=False))
    else:
        _print(held)
        out.print(f"\nRun directory  {place}", soft_wrap=True)
    return 0 if held.repeated else DIFFERS


DIFFERS = 1  # exit code; 2 is of what could not be repeated


def _print(held: "ThenAndNow") -> None:
    from spillway.run.repeat import verdict

    for arm in dict.fromkeys(each.arm for each in held.figures):
        rows = [
            (
                each.name,
                number(each.then, each.form),
                number(each.now, each.form),
                number(each.ratio, ".3f"),
                each.verdict,
            )
            for each in held.figures
            if each.arm == arm
        ]
        table = figures(("", "then", "now", "now / then", "verdict"), rows)
        table.columns[-1].justify = "left"
        out.print(f"\n{arm}", style="bold")
        out.print(table, soft_wrap=True)
    out.print("\nSurroundings (then and now)", style="bold")
    for each in held.surroundings or ["no difference: versions, build, machine, drive and workload"]:
        out.print(each, soft_wrap=True)
    for each in held.notes:
        out.print(each, soft_wrap=True)
    out.print(f"\n{verdict(held)}", soft_wrap=True)
