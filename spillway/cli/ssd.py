"""`spillway ssd …`: the drive model on its own."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click
from rich.table import Table

from spillway.cli.arguments import Finite, FiniteRange, WholeRange
from spillway.cli.printing import err, latency_words, number, out, plain_table, print_json, show
from spillway.cli.progress import progress_bars
from spillway.errors import Interrupted
from spillway.native.process import run_native
from spillway.plan.dotted import pairs
from spillway.quantity import human_bytes
from spillway.ssd import simulate
from spillway.ssd.preset import presets
from spillway.ssd.simulate import DriveChoice, WorkChoice

Document = dict[str, Any]
Function = TypeVar("Function", bound=Callable[..., Any])


@click.group("ssd")
def ssd() -> None:
    """The drive model on its own, in virtual time."""


def _drive_options(function: Function) -> Function:
    path = click.Path(path_type=Path)
    options = [
        click.option("--preset", metavar="NAME", help="A drive by name; `spillway ssd presets` lists them."),
        click.option("--preset-file", type=path, help="A drive as a TOML file."),
        click.option("--channels", type=WholeRange(1)),
        click.option("--chips", type=WholeRange(1), help="Chips on a channel."),
        click.option("--dies", type=WholeRange(1), help="Dies in a chip."),
        click.option("--planes", type=WholeRange(1), help="Planes in a die."),
        click.option("--page-bytes", metavar="SIZE", help="A flash page  [explicit drive: 4KiB]"),
        click.option("--mapping-unit", metavar="SIZE", help="What one mapping entry stands for."),
        click.option("--pages-per-block", type=WholeRange(1), help="Flash pages in an erase block."),
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
        click.option("--warmup", type=Finite(), metavar="X", help="Overwrite the filled range X times first."),
        click.option(
            "--compression-ratio",
            type=Finite(),
            metavar="SHARE",
            help="Compressed size / size of all data, for drives that compress.  [default: 1]",
        ),
        click.option("--seed", type=WholeRange(0), default=1, show_default=True),
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
@click.option("--iodepth", type=WholeRange(1), default=32, show_default=True, help="Commands in flight.")
@click.option("--writes", type=FiniteRange(0, min_open=True), metavar="X", help="Write X capacities  [default: 1]")
@click.option("--ios", type=WholeRange(1), metavar="N", help="Or N commands  [default for reads: 200000]")
@click.option("--range", "range_", metavar="SHARE", help="Share of the capacity that commands go to  [default: --fill]")
@click.option("--state", type=click.Path(path_type=Path), help="Start from a file of `spillway ssd precondition`.")
@_initial_options
def ssd_simulate(seed: int, as_json: bool, range_: str | None, **options: Any) -> int:
    """Run a synthetic workload on a drive and print what it did."""
    drive, work = _split(options, DriveChoice)
    request = simulate.simulate_request(drive, WorkChoice(range=range_, **work), seed)
    with progress_bars() as watch, simulate.errors_name_flags(drive):
        result = run_native("ssd-simulate", request, lambda event: watch(request["workload"]["name"], event))
    result["lifetime"] = simulate.simulated_lifetime(drive, result)
    show(result, as_json, _simulation_table)
    return 0 if result["complete"] else Interrupted.exit_code


@ssd.command("precondition")
@_drive_options
@click.option("--out", "target", required=True, type=click.Path(path_type=Path), help="Where the state goes.")
@_initial_options
def ssd_precondition(seed: int, as_json: bool, target: Path, **options: Any) -> int:
    """Bring a drive to its initial state and save it, for --state and for plans (initial.kind = "file")."""
    drive, work = _split(options, DriveChoice)
    request = simulate.precondition_request(drive, WorkChoice(**work), seed, target)
    with progress_bars() as watch, simulate.errors_name_flags(drive):
        result = run_native("ssd-precondition", request, lambda event: watch("precondition", event))
    if as_json:
        print_json(result)
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
    table = plain_table()
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
    with simulate.errors_name_flags(drive):
        result = run_native("ssd-show", {"drive": simulate.drive_request(drive)})
    show(result, as_json, _drive_table)


def _simulation_table(result: Document) -> Table:
    table = plain_table()
    nand = result["nand_bytes_programmed"]
    total = sum(nand.values()) or 1
    split = ", ".join(f"{cause} {bytes_ / total:.1%}" for cause, bytes_ in nand.items() if bytes_)
    device = result["wa_device"]
    host = f"wrote {human_bytes(result['host_bytes_written'])}, read {human_bytes(result['host_bytes_read'])}"
    table.add_row("commands", f"{result['ios']:,} in {result['simulated_seconds']:.3f} s of the drive's time")
    table.add_row("rate", f"{result['iops']:,.0f} IOPS, {result['bandwidth_mb_s']:,.1f} MB/s")
    table.add_row("latency (µs)", latency_words(result["latency_us"]))
    table.add_row("wa_device", "–  (nothing was written)" if device is None else f"{device:.3f}  ({split})")
    table.add_row("lifetime", simulate.lifetime_in_words(result["lifetime"]))
    table.add_row("host", host)
    table.add_row("NAND programs", human_bytes(sum(nand.values())))
    table.add_row("erases", f"{result['erases']:,}")
    table.add_row("valid in GC victims", number(result["gc_victim_valid_mean"], ".3f"))
    table.add_row("unmapped reads", f"{result['unmapped_reads']:,}")
    table.add_row("cost", f"{result['cpu_seconds']:.2f} CPU-seconds, {human_bytes(result['peak_rss_bytes'])} of memory")
    return table


def _drive_table(result: Document) -> Table:
    table = plain_table()
    for section in ("drive", "layout"):
        for key, value in pairs(result.get(section) or {}):
            table.add_row(key, str(value))
    return table
