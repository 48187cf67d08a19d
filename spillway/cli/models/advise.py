"""`spillway advise`."""

import json
import os
import sys
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from spillway.cli.arguments import Finite, FiniteRange, Once, WholeRange
from spillway.cli.printing import command_line, figures, out, plain_table
from spillway.cli.progress import progress_bars
from spillway.errors import Interrupted, SpillwayError
from spillway.quantity import parse_rate, parse_size, parse_time
from spillway.rundir.output import check_output, write_output
from spillway.rundir.stage import check_free

if TYPE_CHECKING:
    from spillway.advise.configuration import Configuration
    from spillway.advise.drive import Drive
    from spillway.advise.others import Others
    from spillway.advise.search import Advice, Request
    from spillway.advise.verify import Check, Verified
    from spillway.advise.workload import Limits, Workload
    from spillway.lsm import HostCosts

_MOST_CORES = 1024
_LEAST_SKEW = 0.01  # of the simulator; below it keys are uniform. Source: contract/lsm-simulate.request.schema.json
_ORDERS = ("throughput", "wa-total", "p99", "lifetime", "space")


@click.command("advise", cls=Once)
@click.option("--preset", metavar="NAME", help="The drive: a preset, measured in virtual time.")
@click.option("--profile", "profile", type=click.Path(path_type=Path), help="The drive: a directory of a profile.")
@click.option("--set", "settings", multiple=True, metavar="KEY=VALUE", help="A key of the preset; may be repeated.")
@click.option("--tbw", metavar="SIZE", help="Host bytes that the drive's maker warrants, for the lifetime.")
@click.option("--data", required=True, metavar="SIZE", help="Keys and newest values, such as 100GB.")
@click.option(
    "--key", "key_bytes", type=WholeRange(8, 1024), default=16, show_default=True, metavar="BYTES", help="Of a key."
)
@click.option(
    "--value",
    "value_bytes",
    type=WholeRange(0, 2**24),
    default=1000,
    show_default=True,
    metavar="BYTES",
    help="Of a value.",
)
@click.option(
    "--mix", default="put=0.5,get=0.5", show_default=True, help="Shares of put, get, scan and rmw, as 0.5 or 50%."
)
@click.option(
    "--scan-pairs",
    type=WholeRange(1, 1_000_000),
    default=100,
    show_default=True,
    help="Pairs that each scan reads.",
)
@click.option("--zipfian", type=FiniteRange(_LEAST_SKEW, 1, max_open=True), help="Skew  [default: uniform]")
@click.option("--rate", metavar="RATE", help="Operations/s to keep  [default: as many as there can be]")
@click.option("--p99", metavar="TIME", help="Most that the p99 of any kind of operation may be, such as 5ms.")
@click.option("--space", metavar="SIZE", help="Most bytes on the drive.")
@click.option("--memory", default="1GiB", show_default=True, metavar="SIZE", help="Memtables, block cache, filters.")
@click.option("--years", type=Finite(), help="Years that the drive has to last.")
@click.option(
    "--cores",
    type=WholeRange(1, _MOST_CORES),
    help="Of the machine that it is for  [default: --host's or else this one's]",
)
@click.option("--host", type=click.Path(path_type=Path), help="That machine's costs, of scripts/lsm_host_costs.py.")
@click.option("--clients", type=WholeRange(1, 4096), help="Threads that call the database  [default: the cores]")
@click.option("--by", "order", type=click.Choice(_ORDERS), help="Ranks  [default: throughput; with --rate wa-total]")
@click.option("--top", type=WholeRange(1, 100), default=6, show_default=True, help="Configurations to show.")
@click.option("--no-discard", is_flag=True, help="The drive is not told of deleted files.")
@click.option("--current", type=click.Path(path_type=Path), help="Compare with this OPTIONS file of yours.")
@click.option("--options", "options_path", type=click.Path(path_type=Path), help="Write the advice as an OPTIONS file.")
@click.option("--wiredtiger", "wiredtiger_path", type=click.Path(path_type=Path), help="Write WiredTiger's strings.")
@click.option("--verify", "verifies", is_flag=True, help="Run winner, rivals and runners-up, scaled, and compare.")
@click.option("--out", "directory", type=click.Path(path_type=Path), help="Of --verify  [default: runs/verify-TIME]")
@click.option("--json", "json_path", type=click.Path(path_type=Path), help="Write the answer as JSON; - prints it.")
@click.option("--seed", type=WholeRange(0), default=1, show_default=True, help="Of the simulations.")
def advise_command(
    preset: str | None,
    profile: Path | None,
    settings: tuple[str, ...],
    tbw: str | None,
    options_path: Path | None,
    wiredtiger_path: Path | None,
    json_path: Path | None,
    directory: Path | None,
    verifies: bool,
    seed: int,
    **flags: Any,
) -> int:
    """Rank configurations of RocksDB for a drive, a data set and a mix of operations.

    Thousands are compared in closed form, a hundred are simulated on the drive's model, the best of them thoroughly.
    The first is advised, or RocksDB's defaults where it is not better by more than predictions are wrong by.
    For each line of the winner the reason is told with the figure behind it; then what the drive's figures say for
    nodes of a B-tree, batches of a buffer pool and compactions at once. With --verify winner, RocksDB's defaults, the
    flash configuration and the runners-up are run, and measured figures stand beside the predicted ones.
    """
    from spillway.advise import advise
    from spillway.advise.others import others
    from spillway.advise.verify import check_can_run
    from spillway.advise.workload import check

    places = {"--options": options_path, "--wiredtiger": wiredtiger_path, "--json": json_path}
    _check_words(command_line())
    _check_places(directory, verifies, places)
    costs = _host(flags)
    load, limits, current = _asked(flags)
    drive = _drive(preset, profile, settings, tbw, seed)
    check(load, limits, drive.capacity_bytes)
    if verifies:
        check_can_run(load, drive)
    with progress_bars() as watch:
        found = advise(_request(load, limits, drive, current, costs, seed, flags), watch)
    beside = others(load, drive, limits.memory_bytes)
    quiet = json_path is not None and str(json_path) == "-"
    outputs = _Outputs()
    if not verifies or _is_rewritable(json_path):
        outputs.make(lambda: _write_json(found, beside, [], json_path))
    outputs.make(lambda: _write_options(found, options_path))
    outputs.make(lambda: _write_wiredtiger(found, beside, wiredtiger_path))
    if not quiet:
        outputs.make(lambda: _show(found, beside))
    if found.ended:
        outputs.make(lambda: _tell_end(found))
    code = Interrupted.exit_code if found.ended else 0
    if verifies:
        code = _checked(found, beside, outputs, directory, json_path) or code
    outputs.end()
    return code


def _checked(
    found: "Advice", beside: "Others", outputs: "_Outputs", directory: Path | None, json_path: Path | None
) -> int:
    """Runs the check, unless the search was ended, and writes the JSON with what it measured; the exit code. A check
    that fails loses nothing of the answer."""
    measured: Check | None = None
    quiet = json_path is not None and str(json_path) == "-"
    try:
        if not found.ended:
            measured = _verify(found, directory or Path("runs") / f"verify-{datetime.now():%Y%m%d-%H%M%S}", quiet)
    except (SpillwayError, OSError) as error:
        outputs.failed(error)
    finally:
        if measured or not _is_rewritable(json_path):
            outputs.make(lambda: _write_json(found, beside, measured.arms if measured else [], json_path))
    return _how_it_ended(measured) if measured else 0


class _Outputs:
    """Each output is made whatever became of the others; ``end`` says what went wrong."""

    def __init__(self) -> None:
        """Nothing has gone wrong."""
        self._refused: list[SpillwayError] = []
        self._errors: list[OSError] = []

    def make(self, output: Callable[[], None]) -> None:
        """Makes one."""
        try:
            output()
        except (SpillwayError, OSError) as error:
            self.failed(error)

    def failed(self, error: SpillwayError | OSError) -> None:
        """Notes what went wrong."""
        if isinstance(error, SpillwayError):
            self._refused.append(error)
        else:
            self._errors.append(error)

    def end(self) -> None:
        """Raises the last failure, with the sentences of the others."""
        if self._refused:
            *others, last = self._refused
            for each in others:
                last.go_on(str(each))
            raise last
        if self._errors:
            raise self._errors[0]


def _is_rewritable(path: Path | None) -> bool:
    """Whether an answer may be written there now and once more with what is measured."""
    return path is not None and str(path) != "-" and (path.is_file() or not path.exists())


def _tell_end(found: "Advice") -> None:
    print(
        f"spillway: the search was ended by Ctrl-C after {found.simulated} simulations; what they say is ranked.",
        file=sys.stderr,
    )


def _verify(found: "Advice", place: Path, quiet: bool) -> "Check":
    from spillway.advise.verify import verify

    with progress_bars() as watch:
        measured = verify(found, place, command_line(), watch)
    if not quiet:
        _show_verified(measured.arms, place)
    return measured


def _how_it_ended(measured: "Check") -> int:
    """The exit code of a check, and what made it end early on standard error."""
    ran = measured.finished
    if ran.failure:
        print(f"spillway: {ran.failure.rstrip('.')}. What was measured is in {ran.directory}.", file=sys.stderr)
        return ran.exit_code
    return Interrupted.exit_code if ran.interrupted else 0


def _drive(preset: str | None, profile: Path | None, settings: tuple[str, ...], tbw: str | None, seed: int) -> "Drive":
    from spillway.advise.drive import of_preset, of_profile

    if (preset is None) == (profile is None):
        raise SpillwayError("The drive is --preset NAME (`spillway ssd presets` lists them) or --profile DIRECTORY.")
    rated = None if tbw is None else float(parse_size(tbw, "--tbw"))
    if rated == 0:
        raise SpillwayError("--tbw is 0: a drive that may not be written to lasts no operation; leave it out.")
    if profile is not None:
        if settings:
            raise SpillwayError("--set is for presets, and --profile is of a drive as it was measured: leave it out.")
        return of_profile(profile, rated)
    return of_preset(str(preset), settings, seed, rated)


def _host(flags: dict[str, Any]) -> "HostCosts":
    """The machine's costs. Its cores, where the command does not say them, are put among ``flags``: the file's, or this
    machine's. Raises SpillwayError."""
    from spillway.lsm import DEFAULT_COSTS, read_host

    costs, cores = (DEFAULT_COSTS, None) if flags["host"] is None else read_host(flags["host"])
    known = min(_MOST_CORES, max(1, round(cores))) if cores is not None else os.cpu_count() or 1
    flags["cores"] = flags["cores"] or known
    return costs


def _asked(flags: dict[str, Any]) -> "tuple[Workload, Limits, Configuration | None]":
    """The load, the limits and the user's own configuration. Raises SpillwayError for flags that contradict each
    other."""
    from spillway.advise.options_file import read_options
    from spillway.advise.workload import Limits, Workload, check, parse_mix

    mix = parse_mix(flags["mix"])
    load = Workload(
        data_bytes=parse_size(flags["data"], "--data"),
        key_bytes=flags["key_bytes"],
        value_bytes=flags["value_bytes"],
        puts=mix.puts,
        gets=mix.gets,
        scans=mix.scans,
        scan_pairs=flags["scan_pairs"],
        skew=flags["zipfian"],
        clients=flags["clients"] or flags["cores"],
        rate_ops_s=None if flags["rate"] is None else parse_rate(flags["rate"], "--rate"),
        rmws=mix.rmws,
    )
    years = flags["years"]
    if years is not None and not 0 < years < 1000:
        raise SpillwayError(f"--years is {years:g}; it takes a number above 0 and below 1000.")
    limits = Limits(
        p99_s=None if flags["p99"] is None else parse_time(flags["p99"], "--p99"),
        space_bytes=None if flags["space"] is None else parse_size(flags["space"], "--space"),
        memory_bytes=parse_size(flags["memory"], "--memory"),
        years=years,
    )
    check(load, limits, None)
    return load, limits, None if flags["current"] is None else read_options(flags["current"])


def _request(
    load: "Workload",
    limits: "Limits",
    drive: "Drive",
    current: "Configuration | None",
    costs: "HostCosts",
    seed: int,
    flags: dict[str, Any],
) -> "Request":
    """What is asked, as ``spillway.advise`` takes it."""
    from spillway.advise.search import Request, default_order

    return Request(
        load=load,
        limits=limits,
        drive=drive,
        cores=flags["cores"],
        costs=costs,
        order=flags["order"] or default_order(load),
        top=flags["top"],
        discard=not flags["no_discard"],
        current=current,
        current_name=str(flags["current"] or ""),
        seeds=(seed, seed + 1),
        parallel=os.cpu_count() or 1,
    )


def _check_places(directory: Path | None, verifies: bool, files: dict[str, Path | None]) -> None:
    """Before minutes of work: raises SpillwayError for a file that could not be written, and for a directory of
    ``--verify`` that is there."""
    if directory is not None and not verifies:
        raise SpillwayError("--out is where --verify puts its run directory: give both, or neither.")
    if directory is not None:
        check_free(directory)
    named: dict[Path, str] = {}
    for flag, path in files.items():
        if path is None:
            continue
        if str(path) == "-":
            if flag == "--json":
                continue
            raise SpillwayError(f"{flag} writes a file, and standard output has the answer: name a file.")
        check_output(path, flag)
        other = named.setdefault(path.resolve(), flag)
        if other != flag:
            raise SpillwayError(f"{other} and {flag} both name {path}: give each a file of its own.")


def _check_words(words: list[str]) -> None:
    """Raises SpillwayError for a command that the files which are written could not name."""
    for word in words:
        try:
            word.encode()
        except UnicodeEncodeError as error:
            shown = word.encode(errors="backslashreplace").decode()
            raise SpillwayError(f"{shown!r} on the command line is not UTF-8: name it otherwise.") from error


def _write_options(found: "Advice", path: Path | None) -> None:
    from spillway.advise.options_file import options_text
    from spillway.advise.words import asked

    if path is not None:
        text = options_text(
            found.decision.advised.config, f"{' '.join(command_line())}\n{asked(found)}\n{found.decision.why}"
        )
        write_output(path, text, "--options")


def _write_wiredtiger(found: "Advice", beside: "Others", path: Path | None) -> None:
    from spillway.advise.others import wiredtiger_text

    if path is not None:
        write_output(path, wiredtiger_text(found.request.load, found.request.limits, beside), "--wiredtiger")


def _write_json(found: "Advice", beside: "Others", verified: "list[Verified]", path: Path | None) -> None:
    from spillway.advise.document import document

    if path is None:
        return
    text = json.dumps(document(found, beside, verified), indent=2, ensure_ascii=False)
    if str(path) == "-":
        print(text, flush=True)
    else:
        write_output(path, text + "\n", "--json")


def _show(found: "Advice", beside: "Others") -> None:
    from spillway.advise import words

    out.print(words.asked(found), soft_wrap=True)
    out.print(f"\nRanked by {found.request.order}", style="bold")
    out.print(figures(words.HEADER, words.rows(found.ranked)))
    out.print(f"{words.intervals()}\n", soft_wrap=True)
    out.print("\n".join(words.configurations(found.ranked)) + "\n", soft_wrap=True)
    out.print(f"{found.decision.why}\n", soft_wrap=True)
    out.print("To compare with", style="bold")
    out.print(figures(words.HEADER, words.rival_rows(found)))
    out.print("Against 1 they have:\n" + "\n".join(words.comparison(found)), soft_wrap=True)
    out.print("\nWhy 1 is as it is", style="bold")
    _print_rows(words.reason_rows(found))
    out.print("\nBesides", style="bold")
    _print_rows(words.other_rows(beside))


def _print_rows(rows: list[tuple[str, ...]]) -> None:
    table = plain_table()
    for _ in range(len(rows[0]) - 2):
        table.add_column()
    for row in rows:
        table.add_row(*row)
    out.print(table)


def _show_verified(verified: "list[Verified]", place: Path) -> None:
    from spillway.advise import words

    out.print("\nPredicted and measured, scaled to this machine", style="bold")
    out.print(figures(words.VERIFIED_HEADER, words.verified_rows(verified)))
    out.print(f"\nRun directory  {place}\nReport         {place / 'report.html'}", soft_wrap=True)
