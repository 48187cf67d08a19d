"""`spillway profile` and `spillway model …`."""

import json
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from rich.table import Table

from spillway.cli.arguments import Finite, WholeRange
from spillway.cli.printing import command_line, figures, out, plain_table
from spillway.cli.progress import progress_bars

if TYPE_CHECKING:
    from spillway.profile import Profile
    from spillway.reproduce.document import Reproduction


@click.command("profile")
@click.argument("target")
@click.option(
    "--budget", type=Finite(), default=120.0, show_default=True, help="Seconds on a drive that takes its time."
)
@click.option(
    "--out", "directory", type=click.Path(path_type=Path), help="Directory  [default: runs/profile-NAME-TIME]"
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object and nothing else.")
@click.option("--destroy-data", is_flag=True, help="Write to the file or device; what it holds is lost.")
@click.option("--paced", is_flag=True, help="Run a preset in real time.")
@click.option("--set", "settings", multiple=True, metavar="KEY=VALUE", help="A key of the preset; may be repeated.")
@click.option("--host-stack", metavar="NAME", help="The host's software that a preset is measured through.")
@click.option("--fill", default="1.0", show_default=True, metavar="SHARE", help="Share of a preset that holds data.")
@click.option("--size", metavar="SIZE", help="Of a test file  [default: 1GiB]; of a file, the part that is used.")
@click.option("--mixed", is_flag=True, help="Measure a preset's mixes of reads and writes too, at three fills.")
@click.option("--seed", type=WholeRange(0), default=1, show_default=True)
def profile_command(
    target: str, budget: float, directory: Path | None, as_json: bool, seed: int, mixed: bool, fill: str, **flags: Any
) -> None:
    """Measure what TARGET can really do, and fit the MQSSD and PIO models to it.

    TARGET is preset:NAME, a file, a directory (a test file is made there and removed) or a block device. Presets are
    measured in virtual time, in seconds. A file or a device is only read unless --destroy-data is given.
    """
    from spillway.profile import parameters, parse_target, profile_target

    profiled = parse_target(target, fill=fill, **flags)
    place = directory or Path("runs") / f"profile-{profiled.label}-{datetime.now():%Y%m%d-%H%M%S}"
    with progress_bars() as watch:
        finished = profile_target(profiled, place, command_line(), seed=seed, budget_s=budget, mixed=mixed, watch=watch)
    if as_json:
        print(json.dumps(parameters(finished.profile), indent=2, ensure_ascii=False))
        return
    _print_profile(finished.profile)
    out.print(f"\nProfile  {place}\nReport   {place / 'report.html'}", soft_wrap=True)


def _print_profile(profile: "Profile") -> None:
    from spillway.profile import words

    out.print(profile.name, style="bold")
    table = plain_table()
    for op, latency in profile.latency_us.items():
        table.add_row(f"{op} latency", words.short(latency, "µs"))
    out.print(table)
    out.print()
    out.print(figures(words.PIO_HEADER, words.pio_rows(profile)))
    out.print()
    out.print(figures(words.MQSSD_HEADER, words.mqssd_rows(profile)))
    out.print()
    table = plain_table()
    for guideline in words.guidelines(profile):
        table.add_row(guideline.title, guideline.sentence)
    for remark in profile.conditions["remarks"]:
        table.add_row("note", remark)
    out.print(table)


@click.group("model")
def model() -> None:
    """What the models of a drive say."""


@model.command("compare")
@click.argument("profile", type=click.Path(path_type=Path))
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object and nothing else.")
def model_compare(profile: Path, as_json: bool) -> None:
    """Hold five models against the points of PROFILE, a directory of `spillway profile`.

    DAM, PDAM, Affine, PIO and MQSSD predict the throughput of every k and r that was measured. A sixth row is ours:
    PDAM with a P for reads and another for writes.
    """
    from spillway.profile import compare, read_profile

    measured = read_profile(profile)
    comparisons = compare.compare(measured)
    if as_json:
        print(json.dumps(compare.document(measured, comparisons), indent=2, ensure_ascii=False))
        return
    out.print(f"{measured.name}: median error of throughput over all k and r, in percent", style="bold")
    rows = [
        (name, *(f"{100 * by_op[op]:.1f}" if op in by_op else "–" for op in ("write", "read", "all")))
        for name, by_op in compare.medians(comparisons, (*compare.MODELS, compare.STRONGER)).items()
    ]
    out.print(figures(("model", "writes", "reads", "all"), rows))
    own = ", ".join(f"{c.own_parallelism} of {c.op}s" for c in comparisons)
    out.print(f"P of PDAM: {comparisons[0].parallelism} of the drive, {own}; the last row is ours, not the papers'.")
    out.print("\nMQSSD, costs as functions of k", style="bold")
    out.print(figures(compare.FUNCTION_HEADER, compare.function_rows(comparisons)))
    out.print("A coefficient that is not identified means nothing by itself; the curve stands.")
    for comparison in comparisons:
        header, cells = compare.error_rows(comparison, "MQSSD")
        out.print(f"\nMQSSD, {comparison.op}s: error in percent by k and r", style="bold")
        out.print(figures(tuple(header), cells))


@model.command("reproduce")
@click.argument("paper", type=click.Choice(["mqssd", "pio"]))
@click.option("--out", "directory", type=click.Path(path_type=Path), help="Write the page, its charts and JSON there.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object and nothing else.")
def model_reproduce(paper: str, directory: Path | None, as_json: bool) -> None:
    """Make the tables and figures of PAPER again, from what it prints, each beside the published value.

    A verdict says whether the two agree; where they differ, the T number is that of docs/REPRODUCED.md.
    """
    from spillway.reproduce import reproduce
    from spillway.reproduce.directory import write_directory
    from spillway.reproduce.document import as_document

    reproduction = reproduce(paper)
    if directory is not None:
        write_directory(reproduction, directory)
    if as_json:
        print(json.dumps(as_document(reproduction), indent=2, ensure_ascii=False))
        return
    _print_reproduction(reproduction)
    if directory is not None:
        out.print(f"\nPage  {directory / paper}.md", soft_wrap=True)


def _print_reproduction(reproduction: "Reproduction") -> None:
    from spillway.reproduce.document import CHECK_COLUMNS, check_cells

    for section in reproduction.sections:
        out.print(f"\n{section.title}: {section.standing}", style="bold", soft_wrap=True)
        for shown in section.tables:
            out.print(f"\n{shown.caption}", soft_wrap=True)
            out.print(figures(tuple(shown.columns), [tuple(row) for row in shown.rows]))
        if section.checks:
            table = Table(box=None, pad_edge=False, padding=(0, 3, 0, 0), header_style="")
            for title in CHECK_COLUMNS:
                table.add_column(title)
            for check in section.checks:
                table.add_row(*check_cells(check))
            out.print()
            out.print(table)
    out.print(f"\n{reproduction.count_in_words()}", style="bold", soft_wrap=True)
