"""`spillway lsm …`: the shape of an LSM tree, simulated without an engine."""

import csv
import io
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click
from rich.table import Table

from spillway.cli.arguments import FiniteRange, Once, WholeRange
from spillway.cli.printing import err, figures, latency_words, number, out, plain_table, print_json
from spillway.cli.progress import progress_bars
from spillway.errors import Interrupted, SpillwayError
from spillway.lsm import DISTRIBUTIONS, SHAPES, lsm_request, ratios, read_host_costs, sample_row, simulate
from spillway.quantity import human_bytes, parse_share, parse_size
from spillway.rundir.output import check_output, write_output
from spillway.ssd.simulate import DriveChoice, drive_request, errors_name_flags

Document = dict[str, Any]
LEAST_INTERVAL_S = 1e-3  # native/tool/lsm/request.cc
DEFAULT_PRESET = "samsung-990-pro"


@click.group("lsm")
def lsm() -> None:
    """An LSM tree's shape in virtual time: no engine, a terabyte in about a minute."""


@lsm.command("simulate", cls=Once)
@click.option("--preset", metavar="NAME", help=f"The drive  [default: {DEFAULT_PRESET}]")
@click.option("--preset-file", type=click.Path(path_type=Path), help="A drive as a TOML file.")
@click.option("--capacity", metavar="SIZE", help="The drive's logical capacity.")
@click.option("--drive-set", "drive_settings", multiple=True, metavar="KEY=VALUE", help="Any other key of the preset.")
@click.option("--fill", default="0", show_default=True, metavar="SHARE", help="Share of it that other data fills.")
@click.option("--data", metavar="SIZE", help="User data written once  [default: --num pairs]")
@click.option("--num", type=WholeRange(1), help="Keys  [default: 1000000]")
@click.option("--operations", type=WholeRange(1), help="Puts  [default: --num]")
@click.option("--key", default="16", show_default=True, metavar="SIZE", help="Bytes of a key.")
@click.option("--value", default="100", show_default=True, metavar="SIZE", help="Bytes of a value.")
@click.option(
    "--distribution",
    type=click.Choice(DISTRIBUTIONS),
    default="filluniquerandom",
    show_default=True,
    help="Of the keys that are put.",
)
@click.option("--preload", is_flag=True, help="Every key is there before: loaded in order, compacted, not counted.")
@click.option(
    "--rate",
    type=FiniteRange(0, min_open=True),
    metavar="OPS_S",
    help="Puts/s of an open loop  [default: as many as there can be]",
)
@click.option("--shape", type=click.Choice(SHAPES), default="leveled", show_default=True, help="Of the tree.")
@click.option("--fanout", type=FiniteRange(1, min_open=True), help="max_bytes_for_level_multiplier  [default: 10]")
@click.option("--l0", type=WholeRange(1), help="level0_file_num_compaction_trigger  [default: 4]")
@click.option("--file-size", metavar="SIZE", help="target_file_size_base  [default: 64MiB]")
@click.option("--write-buffer", metavar="SIZE", help="write_buffer_size  [default: 64MiB]")
@click.option("--level-base", metavar="SIZE", help="max_bytes_for_level_base  [default: 256MiB]")
@click.option("--threads", type=WholeRange(1), help="Compaction threads  [default: 1]")
@click.option("--subcompactions", type=WholeRange(1), help="max_subcompactions  [default: 1]")
@click.option(
    "--spill", metavar="SIZE", help="A spill store of this capacity takes the writes of stalls  [default: none]"
)
@click.option("--host", type=click.Path(path_type=Path), help="The processor's costs, of scripts/lsm_host_costs.py.")
@click.option(
    "--query",
    "queries",
    multiple=True,
    metavar="WORKLOAD[:THREADS[:OPS]]",
    help="readrandom or seekrandom, after the load; may be repeated  [default: 1 thread]",
)
@click.option(
    "--set", "settings", multiple=True, metavar="KEY=VALUE", help="Any other key, such as tree.discard=false."
)
@click.option("--grain", type=WholeRange(0), default=0, help="Coarseness, a power of two  [default: chosen]")
@click.option("--samples", type=click.Path(path_type=Path), help="Write the load's course to this CSV file.")
@click.option(
    "--interval",
    type=FiniteRange(LEAST_INTERVAL_S),
    default=1.0,
    show_default=True,
    help="Seconds of a row of it, at least 0.001.",
)
@click.option("--seed", type=WholeRange(0), default=1, show_default=True, help="Of the keys and the drive.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object and nothing else.")
def lsm_simulate(as_json: bool, samples: Path | None, **options: Any) -> int:
    """Load a tree and print its shape, its write amplification and its stalls."""
    request = _request(options, samples is not None)
    if samples is not None:
        check_output(samples, "--samples")
    rows: list[Document] = []
    with progress_bars() as watch, _errors_name_flags(_drive_choice(options)):

        def on_event(event: Document) -> None:
            if event["event"] == "lsm-sample":
                rows.append(sample_row(event))
            else:
                watch("lsm", event)

        result = simulate(request, on_event)
    if as_json:
        print_json(result)
    else:
        _print(result)
    if samples is not None:
        _write_samples(samples, rows)
    if not result["complete"]:
        err.print("Ended early; the figures are of the part that was done.")
    return 0 if result["complete"] else Interrupted.exit_code


@contextmanager
def _errors_name_flags(choice: DriveChoice) -> Iterator[None]:
    """As of `spillway ssd`, but for the flag of any other key of the drive."""
    try:
        with errors_name_flags(choice):
            yield
    except SpillwayError as error:
        raise type(error)(str(error).replace("--set: ", "--drive-set: ")) from error


def _drive_choice(options: Document) -> DriveChoice:
    named = options["preset"] is not None or options["preset_file"] is not None
    return DriveChoice(
        preset=options["preset"] if named else DEFAULT_PRESET,
        preset_file=options["preset_file"],
        capacity=options["capacity"],
        settings=tuple(options["drive_settings"]),
    )


def _request(options: Document, sampled: bool) -> Document:
    drive = drive_request(_drive_choice(options))
    key_bytes, value_bytes = parse_size(options["key"], "--key"), parse_size(options["value"], "--value")
    num = options["num"]
    if options["data"] is not None:
        if num is not None:
            raise SpillwayError("--data and --num both give the size of the data set: give one of them.")
        num = parse_size(options["data"], "--data") // max(1, key_bytes + value_bytes)
        if not num:
            raise SpillwayError(f"--data is {options['data']}, less than one pair of {key_bytes + value_bytes} bytes.")
    return lsm_request(
        drive,
        fill=parse_share(options["fill"], "--fill"),
        seed=options["seed"],
        grain=options["grain"],
        sample_interval_s=options["interval"] if sampled else 0.0,
        queries=tuple(options["queries"]),
        settings=tuple(options["settings"]),
        load__num=num,
        load__operations=options["operations"],
        load__key_bytes=key_bytes,
        load__value_bytes=value_bytes,
        load__distribution=options["distribution"],
        load__preload="fillseq" if options["preload"] else None,
        load__rate_ops_s=options["rate"],
        tree__shape=options["shape"],
        tree__fanout=options["fanout"],
        tree__level0_file_num_compaction_trigger=options["l0"],
        tree__target_file_size_base=options["file_size"],
        tree__write_buffer_size=options["write_buffer"],
        tree__max_bytes_for_level_base=options["level_base"],
        tree__compaction_threads=options["threads"],
        tree__max_subcompactions=options["subcompactions"],
        spill__capacity_bytes=options["spill"],
        **(read_host_costs(options["host"]) if options["host"] else {}),
    )


def _write_samples(path: Path, rows: list[Document]) -> None:
    text = io.StringIO()
    writer = csv.DictWriter(text, list(rows[0]) if rows else ["t_s"])
    writer.writeheader()
    writer.writerows(rows)
    write_output(path, text.getvalue(), "--samples")


def _print(result: Document) -> None:
    derived = ratios(result)
    table = plain_table()
    seconds = f"{result['simulated_seconds']:,.1f} s, then {result['settle_seconds']:,.1f} s until nothing was left"
    if result["preloaded_bytes"]:
        table.add_row("before", f"{human_bytes(result['preloaded_bytes'])} in files")
    table.add_row("puts", f"{result['operations']:,} in {seconds}")
    table.add_row("rate", f"{result['ops_s']:,.0f} a second")
    table.add_row("wa_app", f"{number(derived.wa_app, '.2f')}  ({_bytes_by_cause(result)})")
    table.add_row("wa_device", number(derived.wa_device, ".3f"))
    table.add_row("wa_total", number(derived.wa_total, ".2f"))
    table.add_row("space", f"{number(derived.space_amplification, '.2f')}  ({human_bytes(result['held_bytes'])})")
    table.add_row("stalls", f"{number(derived.stall_share, '.1%')} of the time  ({_stalls(result)})")
    table.add_row("longest wait", f"{result['worst_wait_ms']:,.1f} ms")
    moved = f"{result['compactions']:,}, and {result['trivial_moves']:,} trivial moves"
    table.add_row("compactions", f"{moved}; {number(result['files_touched']['mean'], '.1f')} files each")
    if result["spilled_operations"]:
        table.add_row("diverted", f"{result['spilled_operations'] / result['operations']:.1%} of the puts")
    for query in result["queries"]:
        rate = f"{query['ops_s']:,.0f} a second by {query['threads']} threads"
        latency = latency_words({key: query["latency_us"][key] for key in ("p50", "p99", "max")})
        table.add_row(query["workload"], f"{rate}, {query['reads_per_operation']:.2f} reads each, µs: {latency}")
    cost = f"{result['cpu_seconds']:.2f} CPU-seconds, {human_bytes(result['peak_rss_bytes'])} of memory"
    table.add_row("cost", f"{cost}, grain {result['grain']}")
    out.print(table)
    out.print(_levels(result))


def _bytes_by_cause(result: Document) -> str:
    by_cause = result["host_bytes_written_by_cause"]
    return ", ".join(f"{cause} {human_bytes(count)}" for cause, count in by_cause.items() if count)


def _stalls(result: Document) -> str:
    parts = [
        f"{kind.removesuffix('_s')} by {cause} {seconds:,.1f} s"
        for kind, by_cause in result["stalls"].items()
        for cause, seconds in by_cause.items()
        if seconds
    ]
    return ", ".join(parts) or "none"


def _levels(result: Document) -> Table:
    rows = [
        (
            f"L{level['level']}",
            f"{level['files']:,}",
            human_bytes(level["bytes"]),
            human_bytes(level["bytes_written"]),
            human_bytes(level["bytes_read"]),
        )
        for level in result["levels"]
        if level["files"] or level["bytes_written"]
    ]
    return figures(("level", "files", "size", "written", "read"), tuple(rows))
