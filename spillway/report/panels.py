"""Which charts a report has, and what each says: a title, a caption that names the unit, and a legend."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from spillway.report import charts, series, style
from spillway.report.charts import Clock, Figure, Line
from spillway.report.words import idle_drive, micros, number, percent, short_standing, stall_seconds_by_cause
from spillway.rundir.directory import ArmRecord
from spillway.rundir.samples import HOST_CAUSES, NAND_CAUSES, Row, measured

Document = dict[str, Any]

INTERVAL_RATIO_S = 5.0  # shorter spans hold too few flushes for their write amplification to mean much. Source: guess


@dataclass(frozen=True)
class Mark:
    """An entry of a legend. ``kind``: line, faint, dash, dot, area, band, cross, diamond, point, ring or triangle."""

    label: str
    colour: str
    kind: str = "line"


@dataclass(frozen=True)
class Panel:
    """A figure with its words. ``wide`` panels take the page's width, the others half of it."""

    key: str
    title: str
    caption: str
    figure: Figure
    legend: list[Mark] = field(default_factory=list)
    wide: bool = True
    standing: str = ""


def stall_marks(arms: Sequence[ArmRecord]) -> list[Mark]:
    """Legend entries for the causes of stall that occur."""
    causes = {cause for arm in arms for cause in stall_seconds_by_cause(arm.summary)}
    causes |= {stall["cause"] for arm in arms for stall in arm.stalls}
    known = [cause for cause in style.STALLS if cause in causes]
    ordered = [*known, *sorted(causes - set(known))]
    return [Mark(f"stall: {style.stall_words(cause)}", style.stall_colour(cause), "band") for cause in ordered]


def arm_panels(arm: ArmRecord, clock: Clock) -> list[Panel]:
    """Every panel of one arm that it has data for, in the order of the page."""
    if not arm.rows:
        return []
    spans = series.stall_spans(arm.stalls, arm.rows)
    panels = [_throughput(arm, clock, spans), *_latencies(arm, clock, spans)]
    if arm.rows[0].get("host_bytes_written") is not None:
        panels += _drive(arm, clock, spans)
    else:  # a directory on no drive that counts
        panels += _bytes_by_cause(arm, clock, series.gathered(arm.rows, series.coarse_span_s(arm.rows)))
    panels += _space_and_engine(arm, clock, spans)
    panels += [*_spill_store(arm, clock, spans), *_policy(arm, clock)]
    standing = short_standing(arm)
    return [_with_standing(panel, standing) for panel in panels]


def _with_standing(panel: Panel, standing: str) -> Panel:
    return Panel(panel.key, panel.title, panel.caption, panel.figure, panel.legend, panel.wide, standing)


def _throughput(arm: ArmRecord, clock: Clock, spans: Sequence[series.Stall]) -> Panel:
    rows = arm.rows
    span = series.coarse_span_s(rows)
    plot = charts.shade(clock.chart("thousand operations/s", height=charts.TALL), spans)
    legend = []
    if min(row["dt_s"] for row in rows) < span * 0.75:
        faint = throughput_columns(series.fine(rows))
        charts.lines(plot, faint, [Line("rate", "in the interval", style.GREY, 0.8, alpha=0.6)], unit="k/s")
        legend.append(Mark("each sample", style.GREY, "faint"))
        plot.tools = [tool for tool in plot.tools if not hasattr(tool, "tooltips")]
    bold = throughput_columns(series.gathered(rows, span))
    charts.lines(plot, bold, [Line("rate", "operations", style.INK, 2.0)], unit="k/s")
    highest = max((rate for rate in bold["rate"] if rate is not None), default=1.0)
    plot.y_range.end = 1.3 * max(highest, 0.001)  # a sample's burst may leave the chart; the seconds tell the story
    charts.mark_phases(plot, series.phases_of(arm.phases))
    per = "each second" if span == 1 else f"each {span:g} s"
    caption = f"Operations finished {per}, in thousands a second. Bands are stalls, darker where writers were stopped."
    return Panel(
        "throughput", "Throughput and stalls", caption, plot, [Mark(per, style.INK), *legend, *stall_marks([arm])]
    )


def throughput_columns(groups: Sequence[Sequence[Row]]) -> series.Columns:
    """``rate``: operations finished in each span, in thousands a second."""
    columns = series.rates(groups, ("reads", "writes"), 1e3)
    columns["rate"] = [(r or 0) + (w or 0) for r, w in zip(columns["reads"], columns["writes"], strict=True)]
    return columns


def _latencies(arm: ArmRecord, clock: Clock, spans: Sequence[series.Stall]) -> list[Panel]:
    drawn = [
        ("p50", "median", style.BLUE),
        ("p99", "p99", style.ORANGE),
        ("p99_9", "p99.9", "#b23a6f"),
        ("max", "max", style.GREY),
    ]
    panels = []
    for kind in ("write", "read"):
        columns = series.largest(series.fine(arm.rows), [f"{kind}_latency_{name}_us" for name, _, _ in drawn])
        # A logarithmic axis has no place for 0.
        columns = {name: [v or None for v in values] if name != "t" else values for name, values in columns.items()}
        if not any(value is not None for value in columns[f"{kind}_latency_p50_us"]):
            continue
        plot = charts.shade(clock.chart("microseconds", height=250, log=True), spans, 0.5)
        entries = [Line(f"{kind}_latency_{name}_us", label, colour, 1.2) for name, label, colour in reversed(drawn)]
        charts.lines(plot, columns, entries, "0,0.0", "µs")
        latency = arm.result.get(f"{kind}_latency_us") or arm.summary["latency_us"]
        overall = f"Over the measured phases: median {micros(latency.get('p50'))}, p99 {micros(latency.get('p99'))}."
        caption = f"Latency of {kind}s in each sample, in microseconds on a logarithmic scale. {overall}"
        legend = [Mark(label, colour) for _, label, colour in drawn]
        panels.append(Panel(f"{kind}-latency", f"{kind.capitalize()} latency", caption, plot, legend))
    return panels


def _drive(arm: ArmRecord, clock: Clock, spans: Sequence[series.Stall]) -> list[Panel]:
    rows = arm.rows
    seconds = series.gathered(rows, series.coarse_span_s(rows))
    panels = [_bandwidth(clock, spans, seconds)]
    if rows[0].get("die_busy") is not None:  # a drive model: a real drive does not say how busy its dies are
        panels += [_utilisation(arm, clock, spans, seconds), *_cdfs(arm)]
    panels += _ratios(arm, clock)
    panels += _bytes_by_cause(arm, clock, seconds)
    return panels


def _bandwidth(clock: Clock, spans: Sequence[series.Stall], groups: Sequence[Sequence[Row]]) -> Panel:
    nand = [f"nand_bytes_programmed_{cause}" for cause in NAND_CAUSES]
    columns = series.rates(groups, ["host_bytes_written", "host_bytes_read", *nand], 1e6)
    columns["nand"] = [_sum(values) for values in zip(*(columns.pop(name) for name in nand), strict=True)]
    drawn = [
        Line("host_bytes_written", "host writes", style.BLUE, 1.8),
        Line("host_bytes_read", "host reads", style.GREEN),
        Line("nand", "NAND programs", style.ORANGE),
    ]
    plot = charts.lines(charts.shade(clock.chart("MB/s"), spans, 0.5), columns, drawn, "0,0.0", "MB/s")
    caption = "What crosses the drive's door in each direction, and what is programmed into flash behind it, in MB/s."
    return Panel("bandwidth", "Drive bandwidth", caption, plot, [Mark(line.label, line.colour) for line in drawn])


def _sum(values: Sequence[float | None]) -> float | None:
    return None if None in values else sum(value for value in values if value is not None)


def _utilisation(arm: ArmRecord, clock: Clock, spans: Sequence[series.Stall], groups: Sequence[Sequence[Row]]) -> Panel:
    names = ("die_busy", "channel_busy", "link_write_utilisation", "link_read_utilisation")
    columns = series.means(groups, names, 100.0)
    drawn = [
        Line("die_busy", "flash dies", style.ORANGE, 1.8),
        Line("channel_busy", "channels", style.VIOLET),
        Line("link_write_utilisation", "host link, writes", style.BLUE),
        Line("link_read_utilisation", "host link, reads", style.GREEN),
    ]
    plot = charts.lines(charts.shade(clock.chart("% of capability", top=102), spans, 0.5), columns, drawn, "0.0", "%")
    caption = f"How much of each part of the drive is in use, in % of its time or bandwidth. {idle_drive(arm)}"
    return Panel("utilisation", "Drive utilisation", caption, plot, [Mark(line.label, line.colour) for line in drawn])


def _cdfs(arm: ArmRecord) -> list[Panel]:
    rows = measured(arm.rows)
    panels = []
    for key, title, of in (
        ("cdf-dies", "Flash dies, during stalls and outside", series.die_busy),
        ("cdf-link", "Host link, during stalls and outside", series.link_utilisation),
    ):
        during, outside = series.split_cdf(rows, of)
        curves = [
            (during, Line("y", "during stalls", style.STALLS["l0"], 2.2)),
            (outside, Line("y", "outside", style.INK, 1.6, "dashed")),
        ]
        part = "flash dies' time" if key == "cdf-dies" else "host link's bandwidth (its busier direction)"
        plot = charts.cdf("utilisation (%)", curves)
        none = "" if during["x"] else " There was no stall."
        caption = (
            f"Share of time at or below a utilisation, in % of the {part}; a curve on the left is an idle drive.{none}"
        )
        legend = [Mark("during stalls", style.STALLS["l0"]), Mark("outside of stalls", style.INK, "dash")]
        panels.append(Panel(key, title, caption, plot, legend, wide=False))
    return panels


def _ratios(arm: ArmRecord, clock: Clock) -> list[Panel]:
    rows = measured(arm.rows)
    drawn = [
        Line("wa_total", "wa_total", style.INK, 2.0),
        Line("wa_app", "wa_app", style.BLUE),
        Line("wa_device", "wa_device", style.ORANGE),
    ]
    legend = [Mark(line.label, line.colour) for line in drawn]
    span = series.coarse_span_s(rows, INTERVAL_RATIO_S) if rows else INTERVAL_RATIO_S
    groups, fine = series.gathered(rows, span), series.gathered(rows, series.coarse_span_s(rows))
    so_far = series.ratios_over_time(fine, cumulative=True)
    # While writers are stopped a span has next to no user bytes, and its ratio would leave nothing of the others.
    top = 2 * max((value for value in so_far["wa_total"] + so_far["wa_app"] if value is not None), default=1.0)
    panels = []
    for key, title, columns, caption in (
        (
            "wa-cumulative",
            "Write amplification so far",
            so_far,
            "From the start of the measured phases to each moment: a ratio of bytes, without unit.",
        ),
        (
            "wa-interval",
            f"Write amplification of each {span:g} s",
            series.ratios_over_time(groups, cumulative=False),
            "wa_app = host / user bytes, wa_device = NAND / host bytes, wa_total = their product; no unit.",
        ),
    ):
        plot = charts.lines(clock.chart("ratio", height=charts.HALF_HEIGHT, top=top), columns, drawn, "0.00", "×")
        panels.append(Panel(key, title, caption, plot, legend, wide=False))
    return panels


def _bytes_by_cause(arm: ArmRecord, clock: Clock, groups: Sequence[Sequence[Row]]) -> list[Panel]:
    panels = []
    host = ("Host bytes by cause", "Written by the engine")
    if arm.summary.get("host_bytes_by_cause_counted_at") == "file_system":
        host = (
            "Bytes written to files by cause",
            "Given to the file system by the engine's write calls, which is not what the drive was written",
        )
    for key, (title, what), prefix, causes, colours in (
        ("nand", ("NAND bytes by cause", "Programmed into flash"), "nand_bytes_programmed", NAND_CAUSES, style.NAND),
        ("host", host, "host_bytes_written", HOST_CAUSES, style.HOST),
    ):
        names = [f"{prefix}_{cause}" for cause in causes]
        columns = series.rates(groups, names, 1e6)
        used = [(c, n) for c, n in zip(causes, names, strict=True) if any(columns[n])]
        if not used:
            continue
        drawn = [Line(name, cause, colours[cause]) for cause, name in used]
        plot = charts.stacked(clock.chart("MB/s", height=charts.HALF_HEIGHT), columns, drawn, "MB/s")
        rows = measured(arm.rows)
        whole = sum(series.total(rows, name) or 0 for _, name in used) or 1.0
        shares = ", ".join(_share(cause, (series.total(rows, name) or 0) / whole) for cause, name in used)
        caption = f"{what}, in MB/s, by what caused it. Of the measured phases: {shares}."
        panels.append(Panel(key, title, caption, plot, [Mark(c, colours[c], "area") for c, _ in used], wide=False))
    return panels


def _share(cause: str, share: float) -> str:
    return f"{cause} {100 * share:.0f}\u00a0%" if share >= 0.005 else f"{cause} under 1 %"


def _space_and_engine(arm: ArmRecord, clock: Clock, spans: Sequence[series.Stall]) -> list[Panel]:
    groups = series.fine(arm.rows)
    panels = [_space(arm, clock, groups)]
    if arm.rows[0].get("l0_files") is None:
        return [*panels, _processor(arm, clock)]
    counts = [
        line
        for line in (
            Line("l0_files", "L0 files", style.STALLS["l0"], 1.6),
            Line("immutable_memtables", "immutable memtables", style.STALLS["memtable"]),
        )
        if arm.rows[0].get(line.column) is not None
    ]
    plot = charts.steps(
        charts.shade(clock.chart("files, memtables", height=charts.HALF_HEIGHT), spans, 0.4),
        series.largest(groups, [line.column for line in counts]),
        counts,
    )
    caption = (
        "L0 files and memtables waiting to be flushed, as counts at each sample. Their limits are what stalls writers."
    )
    panels.append(
        Panel(
            "l0",
            "L0 files and memtables",
            caption,
            plot,
            [Mark(line.label, line.colour) for line in counts],
            wide=False,
        )
    )
    if arm.rows[0].get("pending_compaction_bytes") is None:
        return [*panels, _processor(arm, clock)]
    pending = [
        Line("pending_compaction_bytes", "pending compaction", style.STALLS["pending_compaction_bytes"], 1.8),
        Line("memtable_bytes", "memtables", style.STALLS["memtable"]),
    ]
    columns = _scaled(series.largest(groups, [line.column for line in pending]), 2**20)
    plot = charts.lines(
        charts.shade(clock.chart("MiB", height=charts.HALF_HEIGHT), spans, 0.4), columns, pending, "0,0.0", "MiB"
    )
    caption = "Bytes that compaction owes and bytes in memtables, in MiB."
    panels.append(
        Panel(
            "pending", "Compaction debt", caption, plot, [Mark(line.label, line.colour) for line in pending], wide=False
        )
    )
    panels.append(_processor(arm, clock))
    return panels


def _space(arm: ArmRecord, clock: Clock, groups: Sequence[Sequence[Row]]) -> Panel:
    drawn = [Line("space_bytes", "held on the drive", style.BLUE, 1.8)]
    if arm.rows[0].get("live_bytes") is not None:
        drawn.append(Line("live_bytes", "in live files of the engine", style.GREEN))
    columns = _scaled(series.largest(groups, [line.column for line in drawn]), 2**20)
    plot = charts.lines(clock.chart("MiB", height=charts.HALF_HEIGHT), columns, drawn, "0,0", "MiB")
    live = arm.summary.get("live_user_bytes")
    caption = "Bytes held, in MiB."
    if live:
        factor = number(arm.summary["space_amplification"])
        caption += f" At the end {live / 2**20:,.0f} MiB of them were live user data: space amplification {factor}"
        peak = arm.summary.get("space_amplification_peak")
        caption += "." if peak is None else f", {number(peak)} at its peak."
    return Panel("space", "Space", caption, plot, [Mark(line.label, line.colour) for line in drawn], wide=False)


def _processor(arm: ArmRecord, clock: Clock) -> Panel:
    groups = series.gathered(arm.rows, series.coarse_span_s(arm.rows))
    columns = series.rates(groups, ["cpu_s"], 1.0)
    drawn = [Line("cpu_s", "cores in use", style.INK, 1.6)]
    caption = "Processor cores that the process used (engine, load and drive model)."
    axis = "cores"
    if arm.rows[0].get("running_compactions") is not None:
        columns |= {"running": series.means(groups, ["running_compactions"])["running_compactions"]}
        drawn.append(Line("running", "compactions running", style.ORANGE, 1.2))
        caption = f"{caption.removesuffix('.')}, and compactions at work: counts."
        axis = "cores, compactions"
    plot = charts.lines(clock.chart(axis, height=charts.HALF_HEIGHT), columns, drawn, "0.00")
    return Panel("processor", "Processor", caption, plot, [Mark(line.label, line.colour) for line in drawn], wide=False)


def _scaled(columns: series.Columns, by: float) -> series.Columns:
    return {n: values if n == "t" else [None if v is None else v / by for v in values] for n, values in columns.items()}


def _spill_store(arm: ArmRecord, clock: Clock, spans: Sequence[series.Stall]) -> list[Panel]:
    """What went round RocksDB, what came back, and what lies in the spill store (K4, K8)."""
    if all(row.get("spill_live_bytes") is None for row in arm.rows):
        return []
    groups = series.gathered(arm.rows, series.coarse_span_s(arm.rows))
    moved = [
        Line("spill_diverted_bytes", "diverted", style.TEAL, 1.8),
        Line("spill_rolled_back_bytes", "brought back", style.VIOLET),
    ]
    columns = series.rates(groups, [line.column for line in moved], 1e6)
    plot = charts.shade(clock.chart("MB/s", height=charts.HALF_HEIGHT), spans, 0.4)
    charts.lines(plot, columns, moved, "0,0.0", "MB/s")
    rows = measured(arm.rows)
    share = (series.total(rows, "spill_diverted_writes") or 0.0) / (series.total(rows, "writes") or 1.0)
    caption = f"User data that went to the spill store and back from it, in MB/s. Diverted were {percent(share)} of the"
    legend = [Mark(line.label, line.colour) for line in moved]
    panels = [Panel("diverted", "Diverted and brought back", f"{caption} measured writes.", plot, legend, wide=False)]
    held = [
        Line("spill_live_bytes", "not yet brought back", style.TEAL, 1.8),
        Line("spill_index_bytes", "key index, in memory", style.GREY),
    ]
    columns = _scaled(series.largest(series.fine(arm.rows), [line.column for line in held]), 2**20)
    plot = charts.lines(clock.chart("MiB", height=charts.HALF_HEIGHT), columns, held, "0,0.0", "MiB")
    caption = "User data whose newest version lies in the spill store, and the memory that finds it, in MiB."
    legend = [Mark(line.label, line.colour) for line in held]
    return [*panels, Panel("spill-store", "Spill store", caption, plot, legend, wide=False)]


def _policy(arm: ArmRecord, clock: Clock) -> list[Panel]:
    """What a policy changed: of RocksDB's settings, as ADOC does, or the limit on writes, as flow control does."""
    return [*_policy_settings(arm, clock), *_write_limit(arm, clock)]


def _write_limit(arm: ArmRecord, clock: Clock) -> list[Panel]:
    """The limit of flow control, where there was one; 0 in a row stands for none."""
    name = "write_limit_bytes_s"
    if not any(row.get(name) for row in arm.rows):
        return []
    columns = series.largest(series.fine(arm.rows), (name,))
    columns[name] = [value / 1e6 if value else None for value in columns[name]]
    drawn = [Line(name, "limit on writes", style.ORANGE, 1.6)]
    plot = charts.steps(clock.chart("MB/s", height=charts.HALF_HEIGHT), columns, drawn, "0,0.0", "MB/s")
    caption = "The rate that flow control let writers have, in MB/s. Where there is no line, it did not limit them."
    return [Panel("write-limit", "Limit on writes", caption, plot, [Mark(drawn[0].label, drawn[0].colour)], wide=False)]


def _policy_settings(arm: ArmRecord, clock: Clock) -> list[Panel]:
    names = ("background_jobs", "write_buffer_bytes")
    if all(len({row.get(name) for row in arm.rows}) < 2 for name in names):
        return []
    columns = series.largest(series.fine(arm.rows), names)
    columns["write_buffer_bytes"] = [None if v is None else v / 2**20 for v in columns["write_buffer_bytes"]]
    drawn = [
        Line("write_buffer_bytes", "memtable size (MiB)", style.BLUE, 1.6),
        Line("background_jobs", "background jobs", style.ORANGE),
    ]
    plot = charts.steps(clock.chart("MiB, jobs", height=charts.HALF_HEIGHT), columns, drawn)
    caption = "What the policy set: the size of a memtable in MiB, and how many flushes and compactions may run."
    legend = [Mark(line.label, line.colour) for line in drawn]
    return [Panel("policy", "Settings of the policy", caption, plot, legend, wide=False)]
