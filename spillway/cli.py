"""The `spillway` command: parses and prints; nothing else does."""

import json
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeRemainingColumn
from rich.table import Table

from spillway import __version__, simulate
from spillway.errors import Interrupted, SpillwayError
from spillway.native import Event, run_native
from spillway.plan import load_plan
from spillway.preset import presets
from spillway.quantity import human_bytes, parse_share, parse_size
from spillway.simulate import DriveChoice, WorkChoice

if TYPE_CHECKING:
    from spillway.profile import Profile
    from spillway.reproduce.document import Reproduction

Document = dict[str, Any]
Function = TypeVar("Function", bound=Callable[..., Any])

# A table that goes to a file or a pipe is not folded to a terminal's width.
out = Console(highlight=False, markup=False, width=None if sys.stdout.isatty() else 160)
err = Console(stderr=True, highlight=False, markup=False)


def main() -> None:
    """The entry point: a SpillwayError becomes one sentence and an exit code."""
    try:
        code = spillway.main(standalone_mode=False)
        sys.exit(code if isinstance(code, int) else 0)
    except SpillwayError as error:
        _complain(str(error), error.exit_code)
    except click.exceptions.NoArgsIsHelpError as error:
        click.echo(error.ctx.get_help(), err=True)
        sys.exit(2)
    except click.ClickException as error:
        _complain(error.format_message(), 2)
    except (click.Abort, KeyboardInterrupt):
        _complain("ended by Ctrl-C.", Interrupted.exit_code)
    except BrokenPipeError:
        sys.stderr.close()  # whoever read the output has seen enough
        sys.exit(1)


def _complain(sentence: str, code: int) -> None:
    print(f"spillway: {sentence}", file=sys.stderr)
    sys.exit(code)


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__, prog_name="spillway")
def spillway() -> None:
    """Log-structured key-value stores on flash: where writes stall, and what they cost the drive."""


# ---------------------------------------------------------------------------------------------------------------------
# spillway run, spillway report


@spillway.command("run")
@click.argument("plan", type=click.Path(path_type=Path))
@click.option("--out", "directory", type=click.Path(path_type=Path), help="Run directory  [default: runs/PLAN-TIME]")
@click.option(
    "--set", "settings", multiple=True, metavar="KEY=VALUE", help="Override a key of the plan; may be repeated."
)
@click.option("--json", "as_json", is_flag=True, help="Print summary.json and nothing else.")
def run_command(plan: Path, directory: Path | None, settings: tuple[str, ...], as_json: bool) -> int:
    """Run PLAN and leave a run directory with its report.

    PLAN is a TOML file such as plans/quickstart.toml. Ctrl-C ends the run cleanly: what was measured until then is kept
    in a run directory that says it is incomplete.
    """
    from spillway.run import execute

    checked = load_plan(plan, settings)
    place = directory or Path("runs") / f"{checked.name}-{datetime.now():%Y%m%d-%H%M%S}"
    command = ["spillway", "run", str(plan), *(word for setting in settings for word in ("--set", setting))]
    with _progress_bars() as watch:
        finished = execute(checked, place, command, watch)
    if as_json:
        print(json.dumps(finished.summary, indent=2, ensure_ascii=False))
    else:
        _print_run(finished.summary)
        out.print(f"\nRun directory  {place}\nReport         {place / 'report.html'}", soft_wrap=True)
    if finished.failure:
        print(f"spillway: {finished.failure}", file=sys.stderr)
        return 1
    return Interrupted.exit_code if finished.interrupted else 0


@spillway.command("report")
@click.argument("rundir", type=click.Path(path_type=Path))
@click.option("--out", "target", type=click.Path(path_type=Path), help="The HTML file  [default: RUNDIR/report.html]")
def report_command(rundir: Path, target: Path | None) -> None:
    """Make the report of RUNDIR again: one HTML file that opens offline."""
    from spillway.report import write_report

    target = target or rundir / "report.html"
    write_report(rundir, target)
    out.print(f"Report  {target}", soft_wrap=True)


# ---------------------------------------------------------------------------------------------------------------------
# spillway profile, spillway model …


@spillway.command("profile")
@click.argument("target")
@click.option("--budget", type=float, default=120.0, show_default=True, help="Seconds on a drive that takes its time.")
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
@click.option("--seed", type=click.IntRange(0), default=1, show_default=True)
def profile_command(
    target: str, budget: float, directory: Path | None, as_json: bool, seed: int, mixed: bool, fill: str, **flags: Any
) -> None:
    """Measure what TARGET can really do, and fit the MQSSD and PIO models to it.

    TARGET is preset:NAME, a file, a directory (a test file is made there and removed) or a block device. Presets are
    measured in virtual time, in seconds. A file or a device is only read unless --destroy-data is given.
    """
    from spillway.profile import parameters, parse_target, profile_target

    wanted = parse_target(target, fill=fill, **flags)
    place = directory or Path("runs") / f"profile-{wanted.label}-{datetime.now():%Y%m%d-%H%M%S}"
    with _progress_bars() as watch:
        finished = profile_target(wanted, place, _command_line(), seed=seed, budget_s=budget, mixed=mixed, watch=watch)
    if as_json:
        print(json.dumps(parameters(finished.profile), indent=2, ensure_ascii=False))
        return
    _print_profile(finished.profile)
    out.print(f"\nProfile  {place}\nReport   {place / 'report.html'}", soft_wrap=True)


def _command_line() -> list[str]:
    return ["spillway", *sys.argv[1:]]


@spillway.group("model")
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
    out.print(_figures(("model", "writes", "reads", "all"), rows))
    own = ", ".join(f"{c.own_parallelism} of {c.op}s" for c in comparisons)
    out.print(f"P of PDAM: {comparisons[0].parallelism} of the drive, {own}; the last row is ours, not the papers'.")
    out.print("\nMQSSD, costs as functions of k", style="bold")
    out.print(_figures(compare.FUNCTION_HEADER, compare.function_rows(comparisons)))
    out.print("A coefficient that is not identified means nothing by itself; the curve stands.")
    for comparison in comparisons:
        header, cells = compare.error_rows(comparison, "MQSSD")
        out.print(f"\nMQSSD, {comparison.op}s: error in percent by k and r", style="bold")
        out.print(_figures(tuple(header), cells))


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

    made = reproduce(paper)
    if directory is not None:
        write_directory(made, directory)
    if as_json:
        print(json.dumps(as_document(made), indent=2, ensure_ascii=False))
        return
    _print_reproduction(made)
    if directory is not None:
        out.print(f"\nPage  {directory / paper}.md", soft_wrap=True)


# ---------------------------------------------------------------------------------------------------------------------
# spillway bufferpool


@spillway.command("bufferpool")
@click.option("--target", required=True, help="preset:NAME, a file, a directory or a block device.")
@click.option("--sweep", "sweeps", is_flag=True, help="Try n_w from 1 to three times what saturates the drive.")
@click.option("--write-back", type=click.IntRange(1), help="n_w: dirty pages written back at once  [default: 1]")
@click.option(
    "--writers",
    "ways",
    type=click.Choice(["queue", "threads", "new-threads"]),
    multiple=True,
    help="How they get to the drive at once: from one queue, by waiting threads or by new ones. A sweep takes several "
    "[default: queue; of a sweep queue and threads]",
)
@click.option("--prefetch", type=click.IntRange(0), default=0, show_default=True, help="Pages read along with a miss.")
@click.option("--policy", type=click.Choice(["clock-sweep", "lru"]), default="clock-sweep", show_default=True)
@click.option("--read-fraction", default="0.5", show_default=True, metavar="SHARE", help="f_r of the trace.")
@click.option("--workload", type=click.Choice(["uniform", "zipfian", "sequential"]), default="uniform")
@click.option("--theta", type=click.FloatRange(0, 10), default=0.99, show_default=True, help="Skew of zipfian.")
@click.option("--trace", type=click.Path(path_type=Path), help="A trace in a file: lines r PAGE or w PAGE.")
@click.option("--pool-pages", type=click.IntRange(1), default=4096, show_default=True)
@click.option("--page-bytes", default="4KiB", show_default=True, metavar="SIZE")
@click.option("--pages", type=click.IntRange(1), help="Pages of the target that the trace is over  [default: all]")
@click.option("--operations", type=click.IntRange(1), help="[default: 100000; on a drive that takes its time 10000]")
@click.option("--repeats", type=click.IntRange(1), default=5, show_default=True, help="Seeds of a sweep.")
@click.option("--profile", type=click.Path(path_type=Path), help="Take alpha and k_w from a profile.")
@click.option("--out", "directory", type=click.Path(path_type=Path), help="[default: runs/bufferpool-NAME-TIME]")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object and nothing else.")
@click.option("--destroy-data", is_flag=True, help="Write to the file or device.")
@click.option("--paced", is_flag=True, help="Run a preset in real time.")
@click.option("--set", "settings", multiple=True, metavar="KEY=VALUE", help="A key of the preset; may be repeated.")
@click.option("--host-stack", metavar="NAME", help="The host's software that a preset is used through.")
@click.option("--fill", default="1.0", show_default=True, metavar="SHARE", help="Share of a preset that holds data.")
@click.option("--seed", type=click.IntRange(0), default=1, show_default=True)
def bufferpool_command(target: str, sweeps: bool, directory: Path | None, as_json: bool, **flags: Any) -> None:
    """Run a page trace through a buffer pool that writes n_w dirty pages back at once.

    With --sweep, what that buys for each n_w, beside the formula of PIO and the drive's measured k_w.
    """
    from spillway import bufferpool, bufferpool_words
    from spillway.profile import parse_target
    from spillway.profile.target import FLAGS, spoken_in_flags

    names = ("paced", "destroy_data", "settings", "host_stack", "fill")
    wanted = parse_target(target, **{name: flags.pop(name) for name in names})
    seed, repeats, profile = flags.pop("seed"), flags.pop("repeats"), flags.pop("profile")
    write_back, ways = flags.pop("write_back"), tuple(dict.fromkeys(flags.pop("ways")))
    workload = bufferpool.Workload(
        name=flags.pop("workload"),
        page_bytes=parse_size(flags.pop("page_bytes"), "--page-bytes"),
        read_fraction=parse_share(flags.pop("read_fraction"), "--read-fraction"),
        **flags,
    )
    if sweeps and write_back is not None:
        raise click.UsageError("--sweep tries every n_w, and --write-back names one: give one of them.")
    if len(ways) > 1 and not sweeps:
        raise click.UsageError("--writers names several ways, which only --sweep compares: give one of them.")
    with _progress_bars() as watch, spoken_in_flags(wanted, FLAGS | bufferpool.FLAGS):
        if not sweeps:
            result = bufferpool.run_once(wanted, workload, write_back or 1, seed, watch, *ways)
            _show(result, as_json, _bufferpool_table)
            return
        place = directory or Path("runs") / f"bufferpool-{wanted.label}-{datetime.now():%Y%m%d-%H%M%S}"
        options = {"seed": seed, "repeats": repeats, "profile": profile, "command": _command_line()}
        options["writers"] = ways or bufferpool.SWEPT_WRITERS
        found = bufferpool_words.sweep_into(place, wanted, workload, watch=watch, **options)
    if as_json:
        print(json.dumps(bufferpool_words.document(found), indent=2, ensure_ascii=False))
        return
    for title, rows in bufferpool_words.ways(found):
        out.print(f"{title}\n", _figures(bufferpool_words.HEADER, rows))
    out.print("\n".join([bufferpool_words.verdict(found), *bufferpool_words.beside(found)]))
    out.print(f"\nSweep   {place}\nReport  {place / 'report.html'}", soft_wrap=True)


# ---------------------------------------------------------------------------------------------------------------------
# spillway ssd …


@spillway.group("ssd")
def ssd() -> None:
    """The drive model on its own, in virtual time."""


def _drive_options(function: Function) -> Function:
    path = click.Path(path_type=Path)
    options = [
        click.option("--preset", metavar="NAME", help="A drive by name; `spillway ssd presets` lists them."),
        click.option("--preset-file", type=path, help="A drive as a TOML file."),
        click.option("--channels", type=click.IntRange(1)),
        click.option("--chips", type=click.IntRange(1), help="Chips on a channel."),
        click.option("--dies", type=click.IntRange(1), help="Dies in a chip."),
        click.option("--planes", type=click.IntRange(1), help="Planes in a die."),
        click.option("--page-bytes", metavar="SIZE", help="A flash page  [explicit drive: 4KiB]"),
        click.option("--mapping-unit", metavar="SIZE", help="What one mapping entry stands for."),
        click.option("--pages-per-block", type=click.IntRange(1), help="Flash pages in an erase block."),
        click.option("--capacity", metavar="SIZE", help="Logical capacity  [explicit drive: 4GiB]"),
        click.option("--spare-factor", metavar="SHARE", help="(T-U)/T, such as 0.07."),
        click.option("--op", metavar="SHARE", help="(T-U)/U, such as 0.28 or 28%."),
        click.option("--gc", metavar="POLICY", help="greedy, fifo, d-choices:D or cost-benefit."),
        click.option("--write-cache", metavar="SIZE", help="DRAM for data not yet programmed."),
        click.option("--mapping-cache", metavar="SIZE", help="DRAM for mapping entries; 0: the whole map fits."),
        click.option("--host-stack", metavar="NAME", help="The host's software in front of it, by its preset's name."),
        click.option("--set", "settings", multiple=True, metavar="KEY=VALUE", help="Any other key of a preset."),
    ]
    for option in reversed(options):
        function = option(function)
    return function


def _initial_options(function: Function) -> Function:
    options = [
        click.option(
            "--initial", metavar="STATE", help="steady, sequential or trimmed  [default: as the workload needs]"
        ),
        click.option(
            "--fill", default="1.0", show_default=True, metavar="SHARE", help="Share of the capacity that holds data."
        ),
        click.option("--warmup", type=float, metavar="X", help="Overwrite the filled range X times first."),
        click.option("--seed", type=click.IntRange(0), default=1, show_default=True),
        click.option("--json", "as_json", is_flag=True, help="Print one JSON object and nothing else."),
    ]
    for option in reversed(options):
        function = option(function)
    return function


def _split(options: Document, kind: type[DriveChoice]) -> tuple[DriveChoice, Document]:
    """The drive's flags, and the rest."""
    names = set(kind.__dataclass_fields__)
    return kind(**{k: v for k, v in options.items() if k in names}), {
        k: v for k, v in options.items() if k not in names
    }


@ssd.command("simulate")
@_drive_options
@click.option(
    "--workload",
    default="randwrite",
    show_default=True,
    metavar="NAME",
    help="randwrite, randread, seqwrite, seqread, mixed:R (share of reads) or hotcold:SPACE/TRAFFIC.",
)
@click.option("--bs", default="4KiB", show_default=True, metavar="SIZE", help="Bytes of a command.")
@click.option("--iodepth", type=click.IntRange(1), default=32, show_default=True, help="Commands in flight.")
@click.option("--writes", type=click.FloatRange(0, min_open=True), metavar="X", help="Write X capacities  [default: 1]")
@click.option("--ios", type=click.IntRange(1), metavar="N", help="Or N commands  [default for reads: 200000]")
@click.option("--range", "range_", metavar="SHARE", help="Share of the capacity that commands go to  [default: --fill]")
@click.option("--state", type=click.Path(path_type=Path), help="Start from a file of `spillway ssd precondition`.")
@_initial_options
def ssd_simulate(seed: int, as_json: bool, range_: str | None, **options: Any) -> int:
    """Run a synthetic workload on a drive and print what it did."""
    drive, work = _split(options, DriveChoice)
    request = simulate.simulate_request(drive, WorkChoice(range=range_, **work), seed)
    with _progress_bars() as watch, simulate.spoken_in_flags(drive):
        result = run_native("ssd-simulate", request, lambda event: watch(request["workload"]["name"], event))
    _show(result, as_json, _simulation_table)
    return 0 if result["complete"] else Interrupted.exit_code


@ssd.command("precondition")
@_drive_options
@click.option("--out", "target", required=True, type=click.Path(path_type=Path), help="Where the state goes.")
@_initial_options
def ssd_precondition(seed: int, as_json: bool, target: Path, **options: Any) -> int:
    """Bring a drive to its initial state and save it, for --state and for plans (initial.kind = "file")."""
    drive, work = _split(options, DriveChoice)
    request = simulate.precondition_request(drive, WorkChoice(**work), seed, target)
    with _progress_bars() as watch, simulate.spoken_in_flags(drive):
        result = run_native("ssd-precondition", request, lambda event: watch("precondition", event))
    if as_json:
        _print_json(result)
    elif result["complete"]:
        out.print(f"State  {target}", soft_wrap=True)
    if not result["complete"]:
        err.print(f"Ended early; nothing was written to {target}.", soft_wrap=True)
    return 0 if result["complete"] else Interrupted.exit_code


@ssd.command("presets")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object and nothing else.")
def ssd_presets(as_json: bool) -> None:
    """List the drives that are known by name."""
    found = presets()
    if as_json:
        print(json.dumps({preset.name: preset.summary for preset in found}, indent=2, ensure_ascii=False))
        return
    table = _plain_table()
    for preset in found:
        table.add_row(preset.name, preset.summary)
    out.print(table)


@ssd.command("show")
@click.argument("name", required=False)
@_drive_options
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object and nothing else.")
def ssd_show(name: str | None, as_json: bool, **options: Any) -> None:
    """Show a drive with every key resolved. NAME is a preset's."""
    if name is not None and options["preset"] is not None:
        raise click.UsageError("NAME and --preset both name the drive: give one of them.")
    options["preset"] = name or options["preset"]
    drive = DriveChoice(**options)
    with simulate.spoken_in_flags(drive):
        result = run_native("ssd-show", {"drive": simulate.drive_request(drive)})
    _show(result, as_json, _drive_table)


# ---------------------------------------------------------------------------------------------------------------------
# Printing


def _show(result: Document, as_json: bool, table: Callable[[Document], Table]) -> None:
    if as_json:
        _print_json(result)
    else:
        out.print(table(result))
    if not result["complete"]:
        err.print("Ended early; the figures are of the part that was done.")


def _print_json(result: Document) -> None:
    print(json.dumps({key: value for key, value in result.items() if key != "event"}, indent=2))


def _plain_table() -> Table:
    table = Table(box=None, show_header=False, pad_edge=False, padding=(0, 3, 0, 0))
    table.add_column(style="bold", no_wrap=True)
    table.add_column()
    return table


def _figures(header: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> Table:
    """Columns of figures under a header, the first column naming the row."""
    table = Table(box=None, pad_edge=False, padding=(0, 3, 0, 0), header_style="")
    for index, title in enumerate(header):
        table.add_column(title, justify="left" if index == 0 else "right", no_wrap=True)
    for row in rows:
        table.add_row(*row)
    return table


def _print_profile(profile: "Profile") -> None:
    from spillway.profile import words

    out.print(profile.name, style="bold")
    table = _plain_table()
    for op, latency in profile.latency_us.items():
        table.add_row(f"{op} latency", words.short(latency, "µs"))
    out.print(table)
    out.print()
    out.print(_figures(words.PIO_HEADER, words.pio_rows(profile)))
    out.print()
    out.print(_figures(words.MQSSD_HEADER, words.mqssd_rows(profile)))
    out.print()
    table = _plain_table()
    for guideline in words.guidelines(profile):
        table.add_row(guideline.title, guideline.sentence)
    for remark in profile.conditions["remarks"]:
        table.add_row("note", remark)
    out.print(table)


def _print_reproduction(made: "Reproduction") -> None:
    from spillway.reproduce.document import CHECK_COLUMNS, check_cells

    for section in made.sections:
        out.print(f"\n{section.title}: {section.standing}", style="bold", soft_wrap=True)
        for shown in section.tables:
            out.print(f"\n{shown.caption}", soft_wrap=True)
            out.print(_figures(tuple(shown.columns), [tuple(row) for row in shown.rows]))
        if section.checks:
            table = Table(box=None, pad_edge=False, padding=(0, 3, 0, 0), header_style="")
            for title in CHECK_COLUMNS:
                table.add_column(title)
            for check in section.checks:
                table.add_row(*check_cells(check))
            out.print()
            out.print(table)
    count = made.count()
    out.print(f"\n{count['agrees']} agree, {count['differs']} differ, {count['open']} open.", style="bold")


def _simulation_table(result: Document) -> Table:
    table = _plain_table()
    nand = result["nand_bytes_programmed"]
    total = sum(nand.values()) or 1
    split = ", ".join(f"{cause} {bytes_ / total:.1%}" for cause, bytes_ in nand.items() if bytes_)
    device = result["wa_device"]
    host = f"wrote {human_bytes(result['host_bytes_written'])}, read {human_bytes(result['host_bytes_read'])}"
    table.add_row("commands", f"{result['ios']:,} in {result['simulated_seconds']:.3f} s of the drive's time")
    table.add_row("rate", f"{result['iops']:,.0f} IOPS, {result['bandwidth_mb_s']:,.1f} MB/s")
    table.add_row("latency (µs)", _latency(result["latency_us"]))
    table.add_row("wa_device", "–  (nothing was written)" if device is None else f"{device:.3f}  ({split})")
    table.add_row("host", host)
    table.add_row("NAND programs", human_bytes(sum(nand.values())))
    table.add_row("erases", f"{result['erases']:,}")
    table.add_row("valid in GC victims", _number(result["gc_victim_valid_mean"], ".3f"))
    table.add_row("unmapped reads", f"{result['unmapped_reads']:,}")
    table.add_row("cost", f"{result['cpu_seconds']:.2f} CPU-seconds, {human_bytes(result['peak_rss_bytes'])} of memory")
    return table


def _bufferpool_table(result: Document) -> Table:
    table = _plain_table()
    pool, operations = result["pool"], result["operations"]
    size = human_bytes(pool["pages"] * pool["page_bytes"])
    table.add_row("operations", f"{operations:,} in {result['seconds']:.3f} s of the drive's time")
    table.add_row("rate", f"{result['operations_per_s']:,.0f} operations/s")
    table.add_row("latency (µs)", _latency(result["latency_us"]))
    table.add_row("of misses (µs)", _latency(result["miss_latency_us"]))
    table.add_row("pool", f"{pool['pages']:,} of {result['pages']:,} pages ({size}), {pool['policy']}")
    table.add_row("hits", f"{result['hits']:,} ({result['hits'] / operations:.1%})")
    table.add_row("pages read", f"{result['pages_read']:,}, {result['pages_prefetched']:,} of them prefetched")
    table.add_row("pages written", f"{result['pages_written']:,} in {result['write_batches']:,} batches")
    table.add_row("waited", f"{result['read_wait_s']:.3f} s for reads, {result['write_wait_s']:.3f} s for writes")
    return table


def _drive_table(result: Document) -> Table:
    table = _plain_table()
    for section in ("drive", "layout"):
        for key, value in _flat(result.get(section) or {}):
            table.add_row(key, str(value))
    return table


def _flat(document: Document, prefix: str = "") -> Iterator[tuple[str, Any]]:
    for key, value in document.items():
        if isinstance(value, dict):
            yield from _flat(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", value


def _print_run(summary: Document) -> None:
    for name, arm in summary["arms"].items():
        table = _plain_table()
        latency, stalls = arm["latency_us"], arm["stalls"]
        causes = ", ".join(f"{cause} {seconds:.1f} s" for cause, seconds in _stall_seconds(stalls).items())
        operations, user = _number(arm["throughput_ops_s"], ",.0f"), _number(arm["user_mb_s"], ",.1f")
        app, device, total = (_number(arm[key], ".2f") for key in ("wa_app", "wa_device", "wa_total"))
        table.add_row("throughput", f"{operations} operations/s, {user} MB/s of user data")
        table.add_row("latency (µs)", _latency(latency))
        table.add_row("write amplification", f"{total} = wa_app {app} × wa_device {device}")
        table.add_row("space amplification", _number(arm["space_amplification"], ".2f"))
        table.add_row("stalls", f"{stalls['count']} for {stalls['seconds']:.1f} s" + (f" ({causes})" if causes else ""))
        table.add_row("standing", arm["standing"]["words"])
        out.print()
        out.print(name, style="bold")
        out.print(table)


def _latency(latency: Document) -> str:
    return "  ".join(
        f"{name.replace('_', '.')} {_number(value, ',.1f')}" for name, value in latency.items() if name != "count"
    )


def _stall_seconds(stalls: Document) -> dict[str, float]:
    """Seconds by cause, whether the causes carry seconds or {count, seconds}."""
    seconds = {
        cause: value["seconds"] if isinstance(value, dict) else value for cause, value in stalls["by_cause"].items()
    }
    return {cause: value for cause, value in seconds.items() if value}


def _number(value: float | None, form: str) -> str:
    return "–" if value is None else format(value, form)


@contextmanager
def _progress_bars() -> Iterator[Callable[[str, Event], None]]:
    """Bars on standard error where that is a terminal; yields what feeds them."""
    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(bar_width=32),
        TextColumn("{task.fields[amount]}"),
        TextColumn("{task.fields[rate]}"),
        TimeRemainingColumn(compact=True),
    )
    with Progress(*columns, console=err, transient=True, disable=not err.is_terminal) as bars:
        tasks: dict[tuple[str, str], TaskID] = {}

        def watch(label: str, event: Event) -> None:
            if event["event"] != "progress":
                return
            key = (label, str(event["phase"]))
            if key not in tasks:
                tasks[key] = bars.add_task(" · ".join(dict.fromkeys(key)), total=None, amount="", rate="")
            rate = event.get("rate_per_s")
            unit = event["unit"]
            bars.update(
                tasks[key],
                completed=event["done"],
                total=event["total"],
                amount=_amount(event["done"], event["total"], unit),
                rate=f"{_amount(rate, None, 'operations' if unit == 'seconds' else unit)}/s" if rate else "",
            )

        yield watch


def _amount(done: float, total: float | None, unit: str) -> str:
    def one(value: float) -> str:
        return human_bytes(value) if unit == "bytes" else f"{value:,.0f}"

    text = one(done) if total is None else f"{one(done)} of {one(total)}"
    return text if unit == "bytes" else f"{text} {'s' if unit == 'seconds' else unit}"


if __name__ == "__main__":
    main()
