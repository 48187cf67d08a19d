"""`spillway steady`: whether a series has become steady, and how often that is wrong."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from rich.progress import Progress
from rich.table import Table

from spillway.cli.arguments import WholeRange
from spillway.cli.printing import err, figures, number, out
from spillway.errors import SpillwayError
from spillway.quantity import parse_size

if TYPE_CHECKING:
    from spillway.steady import Verdict
    from spillway.steady.rates import Rate
    from spillway.steady.reading import Read

Document = dict[str, Any]
CHECKS = ("cusum", "window", "drift", "end", "writes")  # spillway.steady's; importing it here would slow every command


@click.command("steady")
@click.argument("series", nargs=-1, type=click.Path(path_type=Path))
@click.option("--json", "as_json", is_flag=True, help="Print a JSON list with one object for each series.")
@click.option(
    "--capacity", metavar="SIZE", help="The drive's: host_bytes_written then have to come to 3 times as much."
)
@click.option(
    "--check",
    "checks",
    multiple=True,
    type=click.Choice(CHECKS),
    help="Rest the verdict on this test; may be repeated. All are shown.  [default: all that the series has data for]",
)
@click.option("--error-rates", is_flag=True, help="Judge made series of known kinds instead: how often it is wrong.")
@click.option(
    "--series",
    "count",
    type=WholeRange(1),
    default=1000,
    show_default=True,
    help="Made series of each kind, noise and length.",
)
@click.option("--seed", type=WholeRange(0), default=1, show_default=True, help="Of the made series.")
def steady_command(
    series: tuple[Path, ...],
    as_json: bool,
    capacity: str | None,
    checks: tuple[str, ...],
    error_rates: bool,
    count: int,
    seed: int,
) -> None:
    """Judge whether each SERIES has become steady, and since when.

    A series is a CSV file with columns t_s and throughput_ops_s, where there are any also wa_app, wa_device and
    host_bytes_written (of the interval); a log of fio (NAME_iops.1.log, NAME_bw.1.log, with log_avg_msec); a report of
    db_bench (--report_file); the samples.csv of a run, or a run directory for all of its arms.

    Steady is what passes CUSUM, SNIA's window of five rounds, a bound on its drift, and a look at its end, over at
    least the last half. A burst at the start is cut off (MSER-5). What is too noisy or too short to tell is not steady.
    """
    if error_rates:
        if series:
            raise SpillwayError("spillway steady --error-rates makes its own series; leave the files out.")
        _print_rates(count, seed, as_json)
        return
    if not series:
        raise SpillwayError("spillway steady takes one SERIES or more, or --error-rates; name a file.")
    bytes_of_drive = None if capacity is None else parse_size(capacity, "--capacity")
    if bytes_of_drive == 0:
        raise SpillwayError("--capacity is 0; give the size of the drive.")
    if "writes" in checks and bytes_of_drive is None:
        raise SpillwayError("--check writes takes the size of the drive; give --capacity.")
    from spillway.steady.reading import files_of, read

    judged = [(found, _judged(found, bytes_of_drive, checks)) for found in map(read, files_of(series))]
    if as_json:
        print(json.dumps([_document(*each) for each in judged], indent=2, ensure_ascii=False))
        return
    _show(judged)


def _judged(found: "Read", capacity: int | None, checks: tuple[str, ...]) -> "Verdict":
    from spillway.steady import DEFAULT_CHECKS, judge_arrays, judge_spans

    if capacity is not None and found.host_bytes is None:
        raise SpillwayError(
            f"{found.path}: there is no column host_bytes_written to hold against --capacity; add it or leave "
            "--capacity out."
        )
    written = None if capacity is None or found.host_bytes is None else found.host_bytes / capacity
    asked = checks or (*DEFAULT_CHECKS, *(() if capacity is None else ("writes",)))
    if found.spans:
        return judge_spans(found.spans, written, asked)
    return judge_arrays(found.t_s, found.columns, written, asked)


def _document(found: "Read", verdict: "Verdict") -> Document:
    return {
        "file": str(found.path),
        "steady": verdict.steady,
        "since_s": verdict.since_s,
        "reason": verdict.reason,
        "tests": [each.document() for each in verdict.tests],
    }


def _show(judged: "list[tuple[Read, Verdict]]") -> None:
    """A line for each file, and of a single one every test."""
    table = Table(box=None, pad_edge=False, padding=(0, 3, 0, 0), header_style="")
    for title in ("series", "steady", "since (s)", "why"):
        table.add_column(title, justify="right" if title == "since (s)" else "left", overflow="fold")
    for found, verdict in judged:
        since = number(verdict.since_s, ",.6g")
        table.add_row(str(found.path), "yes" if verdict.steady else "no", since, verdict.reason)
    out.print(table)
    if len(judged) > 1:
        return
    rows = [
        (f"{each.series} {each.name}", _verdict_word(each.passed, each.asked), *_figures(each.figure, each.limit))
        for each in judged[0][1].tests
    ]
    out.print()
    out.print(figures(("test", "passed", "figure", "limit"), rows))


def _verdict_word(passed: bool, asked: bool) -> str:
    return ("yes" if passed else "no") + ("" if asked else " (not asked)")


def _figures(figure: float | None, limit: float) -> tuple[str, str]:
    return number(figure, ".3g"), format(limit, "g")


def _print_rates(count: int, seed: int, as_json: bool) -> None:
    from spillway.steady.rates import LENGTHS, error_rates
    from spillway.steady.synthetic import KINDS

    total = len(LENGTHS) * sum(len(kind.noises) for kind in KINDS)
    with Progress(console=err, transient=True, disable=not err.is_terminal) as bar:
        task = bar.add_task("made series", total=total)
        rates = error_rates(count, seed, watch=lambda rate: bar.advance(task))
    if as_json:
        print(json.dumps({"series": count, "seed": seed, "rates": [each.document() for each in rates]}, indent=1))
        return
    for steady, title in (
        (True, "Steady series called not steady, in %"),
        (False, "Moving series called steady, in %"),
    ):
        out.print(f"{title} (95 % interval)", style="bold")
        out.print(figures(("kind, noise", *(f"{n:,} samples" for n in LENGTHS)), _rate_rows(rates, steady)))
        out.print()


def _rate_rows(rates: "list[Rate]", steady: bool) -> list[tuple[str, ...]]:
    rows: dict[str, list[str]] = {}
    for each in rates:
        if each.steady == steady:
            low, high = each.interval()
            cell = f"{100 * each.rate:.1f} ({100 * low:.1f}-{100 * high:.1f})"
            rows.setdefault(f"{each.kind}, {100 * each.noise:g} %", []).append(cell)
    return [(name, *cells) for name, cells in rows.items()]
