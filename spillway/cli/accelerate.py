"""`spillway accelerate`: an unmodified RocksDB program with the accelerator."""

import os
import signal
import sys
from pathlib import Path
from types import FrameType
from typing import Any

import click

from spillway.accelerate.comparison import Setting, compare
from spillway.accelerate.library import configuration_text, environment, find_library
from spillway.accelerate.program import Finished
from spillway.cli.arguments import WholeRange
from spillway.cli.printing import err, figures, number, out, print_json
from spillway.errors import SpillwayError
from spillway.quantity import human_bytes

Document = dict[str, Any]


@click.command("accelerate", context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False})
@click.option("--capacity", metavar="SIZE", help="Most bytes of the spill store.  [default: 4GiB]")
@click.option("--rollback", metavar="POLICY", help="adaptive, eager, lazy or off.  [default: adaptive]")
@click.option(
    "--set", "settings", multiple=True, metavar="KEY=VALUE", help="A key of a plan's [engine.spill]; may be repeated."
)
@click.option("--report", type=click.Path(path_type=Path), help="Append a JSON line for each database to this file.")
@click.option("--compare", "compares", is_flag=True, help="Run PROGRAM with and without the accelerator, in turns.")
@click.option("--turns", type=WholeRange(1, 1000), default=3, show_default=True, help="Of --compare.")
@click.option(
    "--in",
    "parent",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path(),
    help="With --compare: where the databases go, on the drive in question.  [default: the current directory]",
)
@click.option("--keep", is_flag=True, help="With --compare: keep the databases and what PROGRAM printed.")
@click.option("--json", "as_json", is_flag=True, help="With --compare: print one JSON object and nothing else.")
@click.argument("program", nargs=-1, required=True, type=click.UNPROCESSED)
def accelerate_command(
    capacity: str | None,
    rollback: str | None,
    settings: tuple[str, ...],
    report: Path | None,
    compares: bool,
    turns: int,
    parent: Path,
    keep: bool,
    as_json: bool,
    program: tuple[str, ...],
) -> None:
    """Run PROGRAM, which uses RocksDB's shared library, with the accelerator and without rebuilding it.

    Write it as `spillway accelerate -- PROGRAM ARGUMENTS`. Each database that PROGRAM opens is opened as a
    spillway::DB. When it is closed, a line on standard error says what was done. What cannot be accelerated is opened
    as ever, and said.

    With --compare {db} in the arguments is replaced by a fresh directory for each turn:

        spillway accelerate --compare -- db_bench --db={db} --benchmarks=fillrandom
    """
    words = [f"{key}={value}" for key, value in (("capacity", capacity), ("rollback", rollback)) if value is not None]
    configuration = configuration_text([*words, *settings])
    library = find_library()
    if compares:
        if report is not None:
            raise SpillwayError("--compare has the reports in its JSON: leave out --report.")
        _compare(Setting(program, library, configuration, parent, turns, keep), as_json)
        return
    variables = environment(library, configuration, os.environ)
    if report is not None:
        variables["SPILLWAY_REPORT"] = str(report.absolute())
    sys.stdout.flush()
    try:
        # In this process's place: signals and the exit code are the program's own.
        os.execvpe(program[0], program, variables)
    except OSError as error:
        raise SpillwayError(f"{program[0]} cannot be started: {(error.strerror or str(error)).lower()}.") from None


def _compare(setting: Setting, as_json: bool) -> None:
    def on_turn(turn: int, side: str, finished: Finished) -> None:
        err.print(f"turn {turn}/{setting.turns} {side}: {finished.wall_s:.1f} s", soft_wrap=True)

    def on_signal(number: int, frame: FrameType | None) -> None:
        raise KeyboardInterrupt  # as Ctrl-C: the program is ended, the databases are removed

    # One that is ignored, as by nohup, stays so.
    caught = [each for each in (signal.SIGTERM, signal.SIGHUP) if signal.getsignal(each) != signal.SIG_IGN]
    before = {each: signal.signal(each, on_signal) for each in caught}
    try:
        found = compare(setting, on_turn)
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)
    if as_json:
        print_json(found)
        return
    rows = [_row(name, row) for name, row in found["figures"].items()]
    out.print(figures(("median of the turns", "without", "with", "ratio"), tuple(rows)))
    out.print(f"\n{_accelerated_in_words(found)}", soft_wrap=True)
    if found["directory"] is not None:
        out.print(f"Databases and output  {found['directory']}", soft_wrap=True)


_NAMES = {
    "wall_s": "wall time, s",
    "worst_write_us": "worst write, ms",
    "process_bytes_written": "written by the program",
    "drive_bytes_written": "written to the drive",
}


def _row(name: str, row: Document) -> tuple[str, ...]:
    if name.startswith("throughput "):
        title, forms = f"{name.removeprefix('throughput ')}, ops/s", [number(row[side], ",.0f") for side in row]
    elif name.endswith("_bytes_written"):
        title = _NAMES[name]
        forms = ["–" if row[side] is None else human_bytes(row[side]) for side in row]
    else:
        factor = 1e-3 if name == "worst_write_us" else 1.0
        title = _NAMES[name]
        forms = [number(None if row[side] is None else row[side] * factor, ",.1f") for side in row]
    return title, forms[0], forms[1], number(row["ratio"], ".2f")


def _accelerated_in_words(found: Document) -> str:
    """What the accelerator did in the turns with it, or that it did nothing and why."""
    databases = [each for run in found["runs"] if run["side"] == "with" for each in run["databases"]]
    if not databases:
        return (
            "Nothing was accelerated: the program opened no database through RocksDB's shared library. Is RocksDB "
            "linked into it statically?"
        )
    refused = sorted({each["reason"] for each in databases if not each["accelerated"]})
    statistics = [each["statistics"] for each in databases if each["accelerated"]]
    if not statistics:
        return f"Nothing was accelerated: {'; '.join(refused)}."
    total = {key: sum(each[key] for each in statistics) for key in ("diverted_writes", "stalls_diverted", "waits")}
    words = (
        f"With it: {total['diverted_writes']:,} writes diverted in {total['stalls_diverted']:,} stalls, "
        f"{total['waits']:,} writes waited, in {len(statistics):,} openings of a database."
    )
    left = sum(each["live_entries"] for each in statistics)
    if left:
        words += f" {left:,} writes remained in the spill stores; bringing them back is not in the figures."
    return words + (f" Not accelerated: {'; '.join(refused)}." if refused else "")
