"""`spillway compare`."""

import json
import sys
from typing import TYPE_CHECKING

import click

from spillway.cli.printing import figures, out, plain_table
from spillway.errors import SpillwayError

if TYPE_CHECKING:
    from spillway.compare.verdicts import Comparison, Pair


@click.command("compare")
@click.argument("runs", metavar="RUN...", nargs=-1, required=True)
@click.option("--metric", "metrics", multiple=True, metavar="NAME", help="Only this one; may be repeated.")
@click.option("--varies", multiple=True, metavar="KIND", help="A difference that you compare, such as versions.")
@click.option("--anyway", "--force", is_flag=True, help="Rank whatever differs, with a warning.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def compare_command(
    runs: tuple[str, ...], metrics: tuple[str, ...], varies: tuple[str, ...], anyway: bool, as_json: bool
) -> int:
    """Say how runs stand to each other: for every metric the ratio with its 95 % interval.

    RUN is a run directory, with all of its arms, or RUNDIR:ARM. Each is held against the first. The intervals come from
    repetitions; of one run each, from blocks of its samples. Runs that differ in what they rest on are not ranked, and
    the exit code is 2: whether they are steady, drive, initial, time, versions, compression, workload, machine.
    """
    from spillway.compare import compare, read_sides
    from spillway.compare.words import closing, document

    found = compare(read_sides(runs), metrics, anyway, varies)
    refused = [pair.refused for pair in found.pairs if pair.refused]
    if as_json:
        print(json.dumps(document(found), indent=2, ensure_ascii=False))
    elif len(refused) < len(found.pairs):
        _print_sides(found)
        for pair in found.pairs:
            if not pair.refused:
                _print_pair(pair, found)
        if closing(found):
            out.print(f"\n{closing(found)}", soft_wrap=True)
    for sentence in refused:
        print(f"spillway: {sentence}", file=sys.stderr)
    return SpillwayError.exit_code if refused else 0


def _print_sides(found: "Comparison") -> None:
    from spillway.compare.words import lifetime_words

    table = plain_table()
    for letter, side in found.sides.items():
        count = len(side.repetitions)
        table.add_row(letter, f"{side.arm}, {count} {'repetition' if count == 1 else 'repetitions'} in {side.run}")
        lasting = lifetime_words(side)
        if lasting:
            typical = " of the repetition with the median throughput" if count > 1 else ""
            table.add_row("", f"lifetime{typical}: {lasting}")
    out.print(table, soft_wrap=True)


def _print_pair(pair: "Pair", found: "Comparison") -> None:
    from spillway.compare.words import basis, figure, notes, ratio_words, verdict

    a, b = pair.a, pair.b
    out.print(f"\n{b} against {a}", style="bold")
    out.print(basis(pair), soft_wrap=True)
    rows = []
    for each in pair.findings:
        unit = f" ({each.metric.unit})" if each.metric.unit else ""
        values = figure(each.metric, each.a), figure(each.metric, each.b), ratio_words(each)
        rows.append((f"{each.metric.name}{unit}", *values, verdict(each, a, b, found.anyway)))
    table = figures(("", a, b, f"{b} / {a}", "verdict"), rows)
    table.columns[-1].justify = "left"
    out.print(table, soft_wrap=True)
    for note in notes(pair, found):
        out.print(note, soft_wrap=True)
