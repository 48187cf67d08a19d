"""`spillway lint`."""

import json

import click
from rich.table import Table

from spillway.cli.printing import out
from spillway.errors import SpillwayError
from spillway.lint.table import Linted, Remark
from spillway.quantity import parse_size


@click.command("lint")
@click.argument("subjects", metavar="THING...", nargs=-1)
@click.option("--db-bench", "benches", multiple=True, metavar="COMMAND", help="A db_bench command line, in quotes.")
@click.option("--ycsb", "steps", multiple=True, metavar="COMMAND", help="YCSB command lines, in quotes; ; between two.")
@click.option("--fio", "jobs", multiple=True, metavar="COMMAND", help="A fio command line, in quotes.")
@click.option("--capacity", metavar="SIZE", help="Of the drive that a job file, a script or a command is run on.")
@click.option("--env", "given", multiple=True, metavar="NAME=VALUE", help="A variable that it is called with.")
@click.option("--json", "as_json", is_flag=True, help="A list of objects and nothing else.")
def lint_command(
    subjects: tuple[str, ...],
    benches: tuple[str, ...],
    steps: tuple[str, ...],
    jobs: tuple[str, ...],
    capacity: str | None,
    given: tuple[str, ...],
    as_json: bool,
) -> int:
    """Hold THINGs against the seven pitfalls of benchmarking flash drives.

    A THING is a plan before it runs or a run directory after it, a suite's directory, a fio job file, a script with
    db_bench, YCSB or fio commands, or a YCSB property file. For each pitfall: what was looked at, the verdict, what to
    change. A plan answers a finding on purpose in its [lint.answers].

    The exit code is 0 where nothing is found, 1 where there are findings, 2 for what cannot be read.
    """
    from spillway.lint.dispatch import lint_all

    commands = [
        (tool, text) for tool, texts in (("db_bench", benches), ("ycsb", steps), ("fio", jobs)) for text in texts
    ]
    if not subjects and not commands:
        raise SpillwayError("name what to lint: a plan, a run directory, a fio job file, a script or a property file.")
    size = None if capacity is None else parse_size(capacity, "--capacity")
    if size == 0:
        raise SpillwayError("--capacity is 0; give the drive's size, such as 400GB.")
    tables = lint_all(subjects, commands, size, dict(_variable(text) for text in given))
    if as_json:
        print(json.dumps([table.document() for table in tables], indent=2, ensure_ascii=False))
    else:
        for index, each in enumerate(tables):
            if index:
                out.print()
            out.print(f"{each.subject} ({each.kind}): {each.counted()}", style="bold", soft_wrap=True)
            out.print(_table(each))
    return 1 if any(each.open for each in tables) else 0


def _variable(text: str) -> tuple[str, str]:
    name, sign, value = text.partition("=")
    if not sign or not name.isidentifier():
        raise SpillwayError(f"--env {text!r} is no variable; write NAME=VALUE, such as NUM_KEYS=1000000.")
    return name, value


def _table(linted: Linted) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 3, 0, 0), header_style="")
    table.add_column("pitfall", no_wrap=True)
    table.add_column("verdict", no_wrap=True)
    table.add_column("looked at", ratio=3)
    table.add_column("what to change", ratio=2)
    for remark in linted.remarks:
        number = f"{remark.pitfall.number} " if remark.pitfall.number else "  "
        place = f"{remark.where}: " if remark.where and remark.where != linted.subject else ""
        table.add_row(
            f"{number}{remark.pitfall.title}", remark.verdict, f"{place}{remark.looked_at}", _remedy_of(remark)
        )
    return table


def _remedy_of(remark: Remark) -> str:
    """What to change, behind the plan's own sentence where it has one."""
    answer = f"“{remark.answer}”" if remark.answer else ""
    return "; ".join(text for text in (answer, remark.change) if text)
