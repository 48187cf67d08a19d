"""`spillway bufferpool`."""

import json
from datetime import datetime
from pathlib import Path
from typing import Any

import click
from rich.table import Table

from spillway.cli.arguments import FiniteRange, WholeRange
from spillway.cli.printing import command_line, figures, latency_words, out, plain_table, show
from spillway.cli.progress import progress_bars
from spillway.quantity import human_bytes, parse_share, parse_size

Document = dict[str, Any]


@click.command("bufferpool")
@click.option("--target", required=True, help="preset:NAME, a file, a directory or a block device.")
@click.option("--sweep", "sweeps", is_flag=True, help="Try n_w from 1 to three times what saturates the drive.")
@click.option("--tuned", is_flag=True, help="With --sweep: also pools that choose n_w, from k_w and while they run.")
@click.option(
    "--write-back",
    metavar="N|profile|auto",
    help="n_w: dirty pages written back at once; from the drive's k_w; or tuned while it runs  [default: 1]",
)
@click.option(
    "--writers",
    type=click.Choice(["queue", "threads", "new-threads"]),
    multiple=True,
    help="How they get to the drive at once: from one queue, by waiting threads or by new ones. A sweep takes several "
    "[default: queue; of a sweep queue and threads]",
)
@click.option("--prefetch", type=WholeRange(0), default=0, show_default=True, help="Pages read along with a miss.")
@click.option(
    "--policy",
    type=click.Choice(["clock-sweep", "lru"]),
    default="clock-sweep",
    show_default=True,
    help="Which page leaves.",
)
@click.option("--read-fraction", default="0.5", show_default=True, metavar="SHARE", help="f_r of the trace.")
@click.option(
    "--workload",
    type=click.Choice(["uniform", "zipfian", "sequential"]),
    default="uniform",
    show_default=True,
    help="Of the trace.",
)
@click.option("--theta", type=FiniteRange(0, 10), default=0.99, show_default=True, help="Skew of zipfian.")
@click.option("--trace", type=click.Path(path_type=Path), help="A trace in a file: lines r PAGE or w PAGE.")
@click.option("--pool-pages", type=WholeRange(1), default=4096, show_default=True, help="Pages that the pool holds.")
@click.option("--page-bytes", default="4KiB", show_default=True, metavar="SIZE", help="Of a page.")
@click.option("--pages", type=WholeRange(1), help="Pages of the target that the trace is over  [default: all]")
@click.option(
    "--operations", type=WholeRange(1), help="Of the trace  [default: 100000; on a drive that takes its time 10000]"
)
@click.option("--repeats", type=WholeRange(1), default=5, show_default=True, help="Seeds of a sweep.")
@click.option("--profile", type=click.Path(path_type=Path), help="Take alpha and k_w from a profile.")
@click.option(
    "--out",
    "directory",
    type=click.Path(path_type=Path),
    help="Directory of a sweep  [default: runs/bufferpool-NAME-TIME]",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object and nothing else.")
@click.option("--destroy-data", is_flag=True, help="Write to the file or device.")
@click.option("--paced", is_flag=True, help="Run a preset in real time.")
@click.option("--set", "settings", multiple=True, metavar="KEY=VALUE", help="A key of the preset; may be repeated.")
@click.option("--host-stack", metavar="NAME", help="The host's software that a preset is used through.")
@click.option("--fill", default="1.0", show_default=True, metavar="SHARE", help="Share of a preset that holds data.")
@click.option("--seed", type=WholeRange(0), default=1, show_default=True, help="Of the trace.")
def bufferpool_command(target: str, sweeps: bool, directory: Path | None, as_json: bool, **flags: Any) -> None:
    """Run a page trace through a buffer pool that writes n_w dirty pages back at once.

    With --sweep, what that buys for each n_w, beside the formula of PIO and the drive's measured k_w.
    """
    from spillway.bufferpool import pool as bufferpool
    from spillway.bufferpool import words as bufferpool_words
    from spillway.bufferpool.choice import chosen_write_back
    from spillway.bufferpool.directory import sweep_into
    from spillway.bufferpool.sweep import SWEPT_WRITERS
    from spillway.profile import parse_target
    from spillway.profile.target import FLAGS, errors_name_flags

    names = ("paced", "destroy_data", "settings", "host_stack", "fill")
    wanted = parse_target(target, **{name: flags.pop(name) for name in names})
    seed, repeats, profile = flags.pop("seed"), flags.pop("repeats"), flags.pop("profile")
    write_back, writers = flags.pop("write_back"), tuple(dict.fromkeys(flags.pop("writers")))
    tuned = flags.pop("tuned")
    workload = bufferpool.Workload(
        name=flags.pop("workload"),
        page_bytes=parse_size(flags.pop("page_bytes"), "--page-bytes"),
        read_fraction=parse_share(flags.pop("read_fraction"), "--read-fraction"),
        **flags,
    )
    if sweeps and write_back is not None:
        raise click.UsageError("--sweep tries every n_w, and --write-back names one: give one of them.")
    if tuned and not sweeps:
        raise click.UsageError(
            "--tuned is for --sweep; a single pool that chooses n_w is --write-back profile or auto."
        )
    if directory is not None and not sweeps:
        raise click.UsageError("--out is where --sweep leaves its directory, and a single pool leaves none.")
    if profile is not None and not sweeps and write_back != "profile":
        raise click.UsageError("--profile is for --sweep and for --write-back profile: leave it out.")
    if len(writers) > 1 and not sweeps:
        raise click.UsageError("--writers names several ways, which only --sweep compares: give one of them.")
    with progress_bars() as watch, errors_name_flags(wanted, FLAGS | bufferpool.FLAGS):
        if not sweeps:
            at_once = chosen_write_back(write_back or "1", wanted, workload, seed, profile)
            result = bufferpool.run_once(wanted, workload, at_once, seed, watch, *writers)
            show(result, as_json, _bufferpool_table)
            return
        place = directory or Path("runs") / f"bufferpool-{wanted.label}-{datetime.now():%Y%m%d-%H%M%S}"
        options = {"seed": seed, "repeats": repeats, "profile": profile, "command": command_line()}
        options |= {"writers": writers or SWEPT_WRITERS, "tuned": tuned}
        found = sweep_into(place, wanted, workload, watch=watch, **options)
    if as_json:
        print(json.dumps(bufferpool_words.document(found), indent=2, ensure_ascii=False))
        return
    for title, rows in bufferpool_words.tables(found):
        out.print(f"{title}\n", figures(bufferpool_words.HEADER, rows))
    said = [*bufferpool_words.others_in_words(found), *bufferpool_words.tuned_in_words(found)]
    out.print("\n".join([bufferpool_words.verdict(found), *said]))
    out.print(f"\nSweep   {place}\nReport  {place / 'report.html'}", soft_wrap=True)


def _bufferpool_table(result: Document) -> Table:
    table = plain_table()
    pool, operations = result["pool"], result["operations"]
    size = human_bytes(pool["pages"] * pool["page_bytes"])
    table.add_row("operations", f"{operations:,} in {result['seconds']:.3f} s of the drive's time")
    table.add_row("rate", f"{result['operations_per_s']:,.0f} operations/s")
    table.add_row("latency (µs)", latency_words(result["latency_us"]))
    table.add_row("of misses (µs)", latency_words(result["miss_latency_us"]))
    table.add_row("pool", f"{pool['pages']:,} of {result['pages']:,} pages ({size}), {pool['policy']}")
    table.add_row("hits", f"{result['hits']:,} ({result['hits'] / operations:.1%})")
    table.add_row("pages read", f"{result['pages_read']:,}, {result['pages_prefetched']:,} of them prefetched")
    table.add_row("pages written", f"{result['pages_written']:,} in {result['write_batches']:,} batches")
    tuning = result["tuning"]
    if tuning is None:
        table.add_row("written at once", f"{pool['write_back']}")
    else:
        moves = f"{tuning['moves']} moves in {tuning['epochs']:,} epochs"
        table.add_row("written at once", f"{pool['write_back']} at the end, {tuning['mean']:.1f} on average; {moves}")
    table.add_row("waited", f"{result['read_wait_s']:.3f} s for reads, {result['write_wait_s']:.3f} s for writes")
    return table
