"""`spillway run`, and what is made of its directories: `spillway report` and `spillway export`."""

import json
import sys
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any

import click

from spillway.cli.arguments import WholeRange
from spillway.cli.printing import err, latency_words, number, out, plain_table
from spillway.cli.progress import progress_bars
from spillway.errors import BadProperties, SpillwayError
from spillway.figures import estimate
from spillway.figures.lifetime import in_words
from spillway.figures.space import in_words as space_words
from spillway.plan.document import Plan, read_document
from spillway.plan.ycsb import WORKLOADS, parse_assignment, read_workload
from spillway.quantity import human_bytes, nearest
from spillway.suite.document import load_scaled

Document = dict[str, Any]


@click.command("run")
@click.argument("plan", type=click.Path(path_type=Path))
@click.option("--out", "directory", type=click.Path(path_type=Path), help="Run directory  [default: runs/PLAN-TIME]")
@click.option(
    "--set", "settings", multiple=True, metavar="KEY=VALUE", help="Override a key of the plan; may be repeated."
)
@click.option(
    "-P", "workloads", multiple=True, metavar="NAME|FILE", help="YCSB: a workload or a property file; may be repeated."
)
@click.option(
    "-p", "properties", multiple=True, metavar="KEY=VALUE", help="YCSB: a property, such as recordcount=100000."
)
@click.option("--arm", "arms", multiple=True, metavar="NAME", help="Run this arm of the plan; may be repeated.")
@click.option("--scale", metavar="FACTOR", help="Of a suite's plan, in place of the suite's own, such as 1/64.")
@click.option("--unscaled", is_flag=True, help="The original's sizes: --scale 1.")
@click.option(
    *("--metrics", "metrics_file"),
    type=click.Path(path_type=Path),
    help="Rewrite this file at each sample with metrics for Prometheus.",
)
@click.option(
    "--metrics-port",
    type=WholeRange(0, 65535),
    metavar="N",
    help="Show them at http://127.0.0.1:N/metrics; 0: any port.",
)
@click.option("--json", "as_json", is_flag=True, help="Print summary.json and nothing else.")
def run_command(
    plan: Path,
    directory: Path | None,
    settings: tuple[str, ...],
    workloads: tuple[str, ...],
    properties: tuple[str, ...],
    arms: tuple[str, ...],
    scale: str | None,
    unscaled: bool,
    metrics_file: Path | None,
    metrics_port: int | None,
    as_json: bool,
) -> int:
    """Run PLAN and leave a run directory with its report.

    PLAN is a TOML file such as plans/quickstart.toml; one of a suite runs at the suite's scale. Ctrl-C ends the run
    cleanly: what was measured until then is kept in a run directory that says it is incomplete.
    """
    from spillway.metrics.publish import published
    from spillway.run.execute import execute, record_refusal

    flags = [("--set", setting) for setting in settings] + [("--arm", arm) for arm in arms]
    flags += [("-P", workload) for workload in workloads] + [("-p", assigned) for assigned in properties]
    flags += [("--scale", scale)] if scale is not None else []
    command = ["spillway", "run", str(plan), *(word for flag in flags for word in flag)]
    command += ["--unscaled"] if unscaled else []

    def place(name: str) -> Path:
        return directory or Path("runs") / f"{name}-{datetime.now():%Y%m%d-%H%M%S}"

    try:
        given = _ycsb_properties(workloads, properties)
        checked = load_scaled(plan, settings, arms, chosen_scale(scale, unscaled), given)
    except BadProperties as refused:
        read_document(plan)  # or it is the plan that cannot be read
        if not _is_right_but_for_properties(plan, settings, arms, chosen_scale(scale, unscaled)):
            raise
        finished = record_refusal(plan, place(plan.stem), command, refused)
    else:
        _print_lost_keys(checked)
        _print_findings_count(checked, plan)
        with published(metrics_file, metrics_port) as (feed, address), progress_bars() as show:
            if address:
                print(f"Metrics  {address}", file=sys.stderr, flush=True)

            watch = _both(_once_told(feed), show)
            finished = execute(checked, place(checked.name), command, watch, records_refusal=True)
    if as_json:
        print(json.dumps(finished.summary, indent=2, ensure_ascii=False))
    else:
        _print_run(finished.summary)
        _print_ranks(finished.directory)
        report = finished.directory / "report.html"
        out.print(f"\nRun directory  {finished.directory}\nReport         {report}", soft_wrap=True)
    if finished.failure:
        print(f"spillway: {finished.failure}", file=sys.stderr)
    return finished.exit_code


Feed = Callable[[str, Document], None]


def _both(first: Feed, second: Feed) -> Feed:
    """Gives each event to both."""

    def feed(label: str, event: Document) -> None:
        first(label, event)
        second(label, event)

    return feed


def _once_told(feed: Feed) -> Feed:
    """A feed whose first failure is printed and whose later ones are not: a run does not end for its metrics."""
    is_told = False

    def feed_or_tell(label: str, event: Document) -> None:
        nonlocal is_told
        try:
            feed(label, event)
        except SpillwayError as error:
            if not is_told:
                print(f"spillway: {error} The run goes on without its metrics.", file=sys.stderr)
            is_told = True

    return feed_or_tell


@click.command("report")
@click.argument("rundir", type=click.Path(path_type=Path))
@click.option("--out", "target", type=click.Path(path_type=Path), help="The HTML file  [default: RUNDIR/report.html]")
@click.option("--arm", "arms", multiple=True, metavar="NAME", help="Only of this arm; may be repeated.")
def report_command(rundir: Path, target: Path | None, arms: tuple[str, ...]) -> None:
    """Make the report of RUNDIR again: one HTML file that opens offline."""
    from spillway.report import write_report
    from spillway.rundir.directory import is_refused, seal_refused

    target = target or rundir / "report.html"
    was_refused = is_refused(rundir)
    write_report(rundir, target, arms)
    if was_refused:
        seal_refused(rundir)  # the report is not what somebody has put there
    out.print(f"Report  {target}", soft_wrap=True)


@click.command("export")
@click.argument("directory", metavar="DIR", type=click.Path(path_type=Path))
@click.option(
    "--to", "target", required=True, metavar="FILE", type=click.Path(path_type=Path), help="FILE.parquet or FILE.csv."
)
@click.option("--table", metavar="NAME", help="Which of its tables  [default: the first]")
@click.option("--arm", "arms", multiple=True, metavar="NAME", help="Only rows of this arm; may be repeated.")
def export_command(directory: Path, target: Path, table: str | None, arms: tuple[str, ...]) -> None:
    """Write a table of DIR, a run, profile, sweep or suite, as Parquet or CSV.

    A run has the tables samples, arms, repetitions, phases, stalls and events; a profile samples, latency, pio, mqssd
    and model_errors; a sweep cells; a suite arms, plans and claims. Units end the names of columns. docs/NOTEBOOKS.md
    has them all. It takes pandas and pyarrow: pip install 'spillway[frames]'.
    """
    from spillway.frames.directory import read
    from spillway.frames.files import check_ending, write_frame

    check_ending(target, "--to")
    found = read(directory)
    name = table or found.tables[0]
    if name not in found.tables:
        raise SpillwayError(
            f"--table {name}: {directory} has no such table{nearest(name, found.tables)} There are: "
            f"{', '.join(found.tables)}."
        )
    frame = getattr(found, name)
    for arm in arms:
        if "arm" not in frame or arm not in set(frame["arm"]):
            known = list(dict.fromkeys(frame["arm"])) if "arm" in frame else []
            raise SpillwayError(f"--arm {arm}: the table {name} of {directory} has no such arm{nearest(arm, known)}")
    if arms:
        frame = frame[frame["arm"].isin(list(arms))]
    write_frame(frame, target, key="--to")
    out.print(f"Table  {name}, {len(frame):,} rows, {len(frame.columns)} columns\nFile   {target}", soft_wrap=True)


def _is_right_but_for_properties(
    plan: Path, settings: tuple[str, ...], arms: tuple[str, ...], scale: str | None
) -> bool:
    """Whether the plan is right but for the property files that it or the command names."""
    counts = dict.fromkeys(("recordcount", "operationcount", "insertcount"), "1000")
    others: Document = {"properties": None, **WORKLOADS["workloada"], **counts, "insertstart": "0"}
    try:
        load_scaled(plan, settings, arms, scale, others)
    except SpillwayError:
        return False
    return True


def _print_lost_keys(checked: Plan) -> None:
    """One line of the plan's keys that --set has left without effect."""
    if checked.without_effect:
        keys = "; ".join(checked.without_effect)
        print(f"spillway: --set leaves keys of the plan without effect: {keys}.", file=sys.stderr)


def _print_findings_count(checked: Plan, path: Path) -> None:
    """One line of what lint finds in the plan before it runs, for people: on a terminal, as the progress bars."""
    from spillway.lint.plan import lint_plan

    if not err.is_terminal:
        return
    count = lint_plan(checked).open
    if count:
        what = "finding is" if count == 1 else "findings are"
        err.print(f"{count} {what} open in this plan: `spillway lint {path}` tells.", soft_wrap=True)


def _ycsb_properties(workloads: tuple[str, ...], properties: tuple[str, ...]) -> Document:
    """What -P and -p put into the plan's [ycsb]: workloads in their order, then single properties. A workload takes the
    place of the one that the plan names."""
    given: Document = {"properties": None} if workloads else {}
    for workload in workloads:
        given |= read_workload(workload)
    return given | dict(map(parse_assignment, properties))


def chosen_scale(scale: str | None, unscaled: bool) -> str | None:
    """What ``--scale`` and ``--unscaled`` ask for; None: the suite's own."""
    if unscaled and scale is not None:
        raise SpillwayError("--unscaled is --scale 1: give one of them.")
    return "1" if unscaled else scale


def _print_run(summary: Document) -> None:
    for name, arm in summary["arms"].items():
        table = plain_table()
        latency, stalls = arm["latency_us"], arm["stalls"]
        causes = ", ".join(f"{cause} {seconds:.1f} s" for cause, seconds in _stall_seconds(stalls).items())
        operations, user = number(arm["throughput_ops_s"], ",.0f"), number(arm["user_mb_s"], ",.1f")
        app, device, total = (_ratio(arm, key) for key in ("wa_app", "wa_device", "wa_total"))
        table.add_row("throughput", f"{operations} operations/s, {user} MB/s of user data")
        table.add_row("latency (µs)", latency_words(latency))
        table.add_row("write amplification", f"{total} = wa_app {app} × wa_device {device}")
        if arm["drive"] and arm["drive"]["why_unknown"]:
            table.add_row("wa_device unknown", _why(arm["drive"]))
        table.add_row("lifetime", in_words(arm["lifetime"]) or "–")
        if arm["estimate"]:
            table.add_row("estimate of wa_device", _estimate(arm["estimate"]))
            table.add_row("its host bytes", estimate.counts_in_words(arm["estimate"]))
            table.add_row("its lifetime", estimate.lifetime_in_words(arm["estimate"]) or "–")
        table.add_row("space amplification", "; ".join([number(arm["space_amplification"], ".2f"), *space_words(arm)]))
        table.add_row("stalls", f"{stalls['count']} for {stalls['seconds']:.1f} s" + (f" ({causes})" if causes else ""))
        for name_of_part, part in (arm["parts"] or {}).items():
            if part and arm["parts"]["burst"]:
                table.add_row(f"{name_of_part} part", _part(part))
        if arm["kept"] and arm["kept"]["to"]:
            table.add_row("kept", _kept(arm["kept"]["to"]))
        table.add_row("standing", arm["standing"]["words"])
        out.print()
        out.print(name, style="bold")
        out.print(table)


def _print_ranks(place: Path) -> None:
    """Of a sweep of several arms: which is ahead of which where."""
    from spillway.compare.ranks import ranks_in_words
    from spillway.rundir.directory import read_run

    for index, sentence in enumerate(ranks_in_words(read_run(place).arms)):
        out.print(("\n" if index == 0 else "") + sentence, soft_wrap=True)


def _part(part: Document) -> str:
    """The burst before the steady part, or that."""
    ratios = " × ".join(f"{key} {number(part[key], '.2f')}" for key in ("wa_app", "wa_device"))
    total = f"write amplification {number(part['wa_total'], '.2f')} = {ratios}"
    flash = part.get("flash_bytes_per_operation")
    each = "" if flash is None else f", {number(flash, ',.0f')} flash bytes an operation"
    return f"{part['seconds']:,.0f} s: {number(part['throughput_ops_s'], ',.0f')} operations/s, {total}{each}"


def _kept(state: Document) -> str:
    """What a run has left for others."""
    return f"{state['path']}, {human_bytes(state['bytes'])}, its database “{state['database']}”"


def _ratio(arm: Document, key: str) -> str:
    """A ratio of bytes; of a real drive that does not tell, the word for it."""
    return "unknown" if arm[key] is None and arm["drive"] else number(arm[key], ".2f")


def _why(drive: Document) -> str:
    """Why a real drive's NAND bytes are not known, and what they lie between where that is."""
    bounds = drive["wa_device_interval"]
    return str(drive["why_unknown"]) + (f" (between {bounds[0]:.2f} and {bounds[1]:.2f})" if bounds else "")


def _estimate(figures: Document) -> str:
    """What a drive model made of the writes that it was given."""
    if figures["failure"]:
        return f"none: {figures['failure']}"
    drive = f"the model “{figures['preset']}”, {human_bytes(figures['capacity_bytes'])}, {estimate.GIVEN}"
    return f"{number(figures['wa_device'], '.2f')} by {drive}; not measured"


def _stall_seconds(stalls: Document) -> dict[str, float]:
    """Seconds by cause, whether the causes carry seconds or {count, seconds}."""
    seconds = {
        cause: value["seconds"] if isinstance(value, dict) else value for cause, value in stalls["by_cause"].items()
    }
    return {cause: value for cause, value in seconds.items() if value}
