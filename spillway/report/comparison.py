"""The charts that compare arms, those of KVAccel's Figs 2-5 and 11-14 (K18, K19, K22) among them.

Throughput second by second, one chart for each arm, with its stalls (Figs 2 and 11); bars over arms and threads
(Figs 3, 12 and 13, Table V); the drive's traffic while writers wait (Figs 4 and 14), and its distribution
over the time in stalls (Fig 5).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from bokeh.models import Range1d

from spillway.report import arm_outcomes, charts, series, style
from spillway.report.arm_outcomes import ROCKSDB, SPILLWAY, ArmOutcomes, Outcome, in_thousands, over, work_rows
from spillway.report.charts import Bar, Clock, Figure, Line
from spillway.report.panels import Mark, Panel, stall_marks, throughput_columns
from spillway.report.words import about, pacing_p99_us, percent, short_standing
from spillway.rundir.directory import ArmRecord
from spillway.rundir.samples import Row, measured

MOST_OVERLAID = 4  # lines that can be distinguished in one chart
DIVERTED = "#6fa8a0"


def comparison_panels(arms: Sequence[ArmRecord], compared: Sequence[ArmOutcomes], clock: Clock) -> list[Panel]:
    """Every comparison that these arms have data for, in the order of the page."""
    shown = [arm for arm in arms if arm.rows]
    if len(shown) < 2:
        return []
    standing = _standings(shown)
    panels = []
    if len(shown) <= MOST_OVERLAID:
        panels.append(_overlaid(shown, clock))
    if len({each.handling for each in compared}) > 1:
        panels += [*_each_throughput(compared, clock), *_all_bars(compared), *_to_the_end(compared)]
        panels += _traffic(compared, clock)
    rows = charts.stall_rows(clock, [(arm.name, series.stall_spans(arm.stalls, arm.rows)) for arm in shown])
    stalls = "When each arm held its writers back, over seconds of its own run; full colour where writers were stopped."
    panels.append(Panel("stalls", "Stalls of the arms", stalls, rows, stall_marks(shown)))
    if any(arm.rows[0].get("die_busy") is not None for arm in shown):
        panels += _drives(shown, clock)
    return [Panel(p.key, p.title, p.caption, p.figure, p.legend, p.wide, p.standing or standing) for p in panels]


def _arm_marks(arms: Sequence[ArmRecord]) -> list[Mark]:
    return [Mark(arm.name, style.ARMS[index % len(style.ARMS)]) for index, arm in enumerate(arms)]


def _overlaid(arms: Sequence[ArmRecord], clock: Clock) -> Panel:
    plot = clock.chart("thousand operations/s", height=charts.TALL)
    marks = _arm_marks(arms)
    for arm, mark in zip(arms, marks, strict=True):
        columns = throughput_columns(series.gathered(arm.rows, series.coarse_span_s(arm.rows)))
        charts.lines(plot, columns, [Line("rate", arm.name, mark.colour, 1.8)], unit="k/s")
    caption = "Operations finished each second, in thousands a second, one line for each arm."
    return Panel("throughput", "Throughput of the arms", caption, plot, marks)


@dataclass(frozen=True)
class _Variants:
    """A colour for each variant that occurs, and a place among the bars for each arm."""

    compared: Sequence[ArmOutcomes]

    @property
    def names(self) -> list[str]:
        return list(dict.fromkeys(each.handling.variant for each in self.compared))

    def colour(self, one: ArmOutcomes) -> str:
        return style.ARMS[self.names.index(one.handling.variant) % len(style.ARMS)] if self.are_distinct else style.BLUE

    @property
    def are_distinct(self) -> bool:
        """Threads and variant name every arm; else the arms' own names do."""
        return len({(each.handling.threads, each.handling.variant) for each in self.compared}) == len(self.compared)

    @property
    def grouped(self) -> bool:
        return self.are_distinct and len({each.handling.threads for each in self.compared}) > 1

    def place(self, one: ArmOutcomes) -> str | tuple[str, str]:
        return (_threads(one.handling.threads), one.handling.variant) if self.grouped else one.name

    def ordered(self) -> list[ArmOutcomes]:
        if not self.grouped:
            return list(self.compared)
        return sorted(
            self.compared,
            key=lambda each: (each.handling.threads or 0, self.names.index(each.handling.variant)),
        )

    def marks(self) -> list[Mark]:
        if not self.are_distinct:
            return []
        colours = {each.handling.variant: self.colour(each) for each in self.compared}
        return [Mark(name, colours[name], "area") for name in self.names]


def _threads(count: int | None) -> str:
    return "RocksDB's threads" if count is None else f"{count} thread" + ("s" if count != 1 else "")


def _each_throughput(compared: Sequence[ArmOutcomes], clock: Clock) -> list[Panel]:
    """Figs 2 and 11: one chart for each arm, all to one scale, so that the hollows can be compared."""
    panels = []
    drawn = [(each, series.gathered(each.record.rows, series.coarse_span_s(each.record.rows))) for each in compared]
    columns = [throughput_columns(groups) for _, groups in drawn]
    top = 1.08 * max((rate for each in columns for rate in each["rate"] if rate is not None), default=1.0)
    variants = _Variants(compared)
    scale = Range1d(start=0, end=top or 1.0)
    for index, ((each, _), rates) in enumerate(zip(drawn, columns, strict=True)):
        plot = clock.chart("thousand operations/s", height=charts.HALF_HEIGHT)
        plot.y_range = scale
        diverted = diverted_spans(each.record)
        charts.shade(plot, series.stall_spans(each.record.stalls, each.record.rows))
        charts.bands(plot, diverted, DIVERTED)
        charts.lines(plot, rates, [Line("rate", each.name, variants.colour(each), 1.8)], unit="k/s")
        charts.mark_phases(plot, series.phases_of(each.record.phases))
        legend = stall_marks([each.record]) + ([Mark("writes diverted", DIVERTED, "band")] if diverted else [])
        caption = f"{each.name}: thousand operations each second. {_idle_seconds_words(each)}"
        standing = short_standing(each.record)
        panels.append(Panel(f"each-{index}", each.name, caption, plot, legend, wide=False, standing=standing))
    return panels


def diverted_spans(record: ArmRecord) -> list[tuple[float, float]]:
    """When an arm's writes went to its spill store, in seconds since the run's start, by its samples."""
    spans: list[tuple[float, float]] = []
    for row in record.rows:
        if row.get("spill_diverting") or row.get("spill_diverted_writes"):
            start, end = row["t_s"] - row["dt_s"], row["t_s"]
            if spans and start - spans[-1][1] < 1e-6:
                spans[-1] = (spans[-1][0], end)
            else:
                spans.append((start, end))
    return spans


def _idle_seconds_words(one: ArmOutcomes) -> str:
    made = next((each for each in one.outcomes), None)
    zero, slowest = over(one, lambda o: o.zero_seconds), over(one, lambda o: o.slowest_second)
    if made is None or zero is None or slowest is None:
        return ""
    seconds = "1 second" if zero.median == 1 else f"{zero.median:g} seconds"
    without = f"{seconds} without an operation" if zero.median else "No second without an operation"
    return f"{without}; {slowest.median:,.0f} operations in the slowest."


@dataclass(frozen=True)
class _Measure:
    """A figure that becomes bars: what its chart is called, its unit, and what the caption says of it."""

    key: str
    title: str
    unit: str
    what: str
    figure: arm_outcomes.Figure


MEASURES = (
    _Measure(
        "writes", "Write throughput", "thousand writes/s", "Writes while the load went on", in_thousands("write_ops_s")
    ),
    _Measure(
        "reads", "Read throughput", "thousand reads/s", "Reads while the load went on", in_thousands("read_ops_s")
    ),
    _Measure("ranges", "Range queries", "queries/s", "A seek with all its steps counts once", lambda o: o.seeks_ops_s),
    _Measure(
        "p99", "p99 of writes", "milliseconds", "One write in a hundred took longer", in_thousands("write_p99_us")
    ),
    _Measure("worst", "Worst write", "milliseconds", "The one write that took longest", in_thousands("write_max_us")),
    _Measure(
        "efficiency",
        "Efficiency",
        "MB/s for 1 % of a core",
        "User data for what the process took of a core (K2), drive model and load included",
        lambda o: o.efficiency,
    ),
)


def _all_bars(compared: Sequence[ArmOutcomes]) -> list[Panel]:
    """Figs 3, 12 and 13 and Table V: each figure that any of the arms has."""
    variants = _Variants(compared)
    panels = []
    for measure in MEASURES:
        found = [(each, over(each, measure.figure)) for each in variants.ordered()]
        drawn = [
            Bar(variants.place(each), each.name, variants.colour(each), value.median, value.low, value.high)
            for each, value in found
            if value is not None
        ]
        if drawn:
            caption = f"{measure.what}; {measure.unit}{_repetitions(compared)}"
            plot = charts.bars(measure.unit, drawn)
            panels.append(Panel(f"bars-{measure.key}", measure.title, caption, plot, variants.marks(), wide=False))
    return panels


def _repetitions(compared: Sequence[ArmOutcomes]) -> str:
    asked = max(each.asked for each in compared)
    if asked == 1:
        return ", of one run."
    fewer = [f"{each.name} {len(each.outcomes)}" for each in compared if len(each.outcomes) < asked]
    those = f" ({'; '.join(fewer)} of these)" if fewer else ""
    return f". Medians of {asked} repetitions{those}, whiskers from the lowest to the highest."


def _to_the_end(compared: Sequence[ArmOutcomes]) -> list[Panel]:
    """The whole bill in time: seconds at work and seconds of settling, for each million writes."""
    known = [
        (each, work, settle)
        for each in _Variants(compared).ordered()
        if (work := over(each, lambda o: _for_a_million(o, o.seconds))) is not None
        and (settle := over(each, lambda o: _for_a_million(o, o.settle_s))) is not None
    ]
    if not known:
        return []
    plot = charts.stacked_bars(
        "seconds",
        [each.name for each, _, _ in known],
        [
            ("writing", style.BLUE, [work.median for _, work, _ in known]),
            ("settling", style.ORANGE, [settle.median for _, _, settle in known]),
        ],
    )
    plot.xaxis.major_label_orientation = 0.5 if len(known) > 5 else "horizontal"
    caption = (
        "Seconds for each million writes: until they were acknowledged, and from then until everything diverted was "
        "brought back and nothing was left to compact."
    )
    legend = [Mark("writing", style.BLUE, "area"), Mark("settling", style.ORANGE, "area")]
    return [Panel("to-the-end", "Time to the end", caption, plot, legend)]


def _for_a_million(outcome: Outcome, spent: float | None) -> float | None:
    return None if spent is None or not outcome.writes else 1e6 * spent / outcome.writes


def _traffic(compared: Sequence[ArmOutcomes], clock: Clock) -> list[Panel]:
    """Figs 4, 5 and 14: the drive's traffic while writers wait, and the share of the drive that is left unused."""
    groups = {each.name: series.gathered(work_rows(each.record), 1.0) for each in compared}
    rates = {name: series.traffic_mb_s(found) for name, found in groups.items()}
    most = max((rate for found in rates.values() for rate in found if rate is not None), default=None)
    if not most:
        return []
    chosen = _stalling(compared) + [each for each in compared if each.handling.system == SPILLWAY]
    scale = Range1d(start=0, end=1.15 * most)
    panels = [
        Panel(
            f"traffic-{index}", *_traffic_of(each, groups[each.name], rates[each.name], most, scale, clock), wide=False
        )
        for index, each in enumerate(chosen)
    ]
    return [*panels, *_left_of_the_drive(compared, groups, most)]


def _stalling(compared: Sequence[ArmOutcomes]) -> list[ArmOutcomes]:
    """RocksDB without its slowdown, which is where the paper looks; where no arm is that, RocksDB as it is."""
    stock = [each for each in compared if each.handling.system == ROCKSDB]
    return [each for each in stock if not each.handling.slowdown] or stock


def _traffic_of(
    one: ArmOutcomes,
    groups: Sequence[Sequence[Row]],
    rates: Sequence[float | None],
    most: float,
    scale: Range1d,
    clock: Clock,
) -> tuple[str, str, Figure, list[Mark]]:
    plot = clock.chart("MB/s", height=charts.HALF_HEIGHT)
    plot.y_range = scale
    charts.shade(plot, series.stall_spans(one.record.stalls, one.record.rows))
    charts.bands(plot, diverted_spans(one.record), DIVERTED)
    columns: series.Columns = {"t": [series.middle(group) for group in groups], "traffic": list(rates)}
    charts.lines(plot, columns, [Line("traffic", "read and written", style.INK, 1.6)], "0,0.0", "MB/s")
    charts.limit(plot, most, f"{most:,.0f} MB/s: the run's busiest second")
    caption = f"{one.name}: what the drive read and wrote for its host each second, in MB/s. {_left(groups, most)}"
    legend = [Mark("read and written", style.INK), *stall_marks([one.record])]
    return f"Drive traffic, {one.name}", caption, plot, legend


def _left_of_the_drive(
    compared: Sequence[ArmOutcomes], groups: Mapping[str, Sequence[Sequence[Row]]], most: float
) -> list[Panel]:
    """Fig 5: the distribution of traffic over the time in stalls, for RocksDB by its threads."""
    curves = []
    marks = []
    words = []
    for index, each in enumerate(_stalling(compared)):
        columns = series.traffic_cdf(groups[each.name], most)
        if columns["x"]:
            colour = style.ARMS[index % len(style.ARMS)]
            curves.append((columns, Line("y", each.name, colour, 2.0)))
            marks.append(Mark(each.name, colour))
            words.append(f"{each.name}: {_left(groups[each.name], most)}")
    if not curves:
        return []
    caption = (
        "Share of the time in stalls at or below a traffic, in % of the run's busiest second; what is to the right of "
        f"a curve is what is left of the drive while RocksDB stalls. {' '.join(words)}"
    )
    plot = charts.cdf("drive traffic (% of the busiest second)", curves)
    return [Panel("left-of-the-drive", "What is left of the drive during stalls", caption, plot, marks, wide=False)]


def _left(groups: Sequence[Sequence[Row]], most: float) -> str:
    """The two figures that the paper gives of Fig 5, for one arm."""
    idle, full = (
        series.traffic_share(groups, most, 0.01, above=False),
        series.traffic_share(groups, most, 0.9, above=True),
    )
    if idle is None or full is None:
        return "There was no stall."
    rest = f"and more than 90\u00a0% for {percent(full)}"
    return f"During stalls there was next to no traffic for {percent(idle)} of the time, {rest}."


def _drives(arms: Sequence[ArmRecord], clock: Clock) -> list[Panel]:
    marks = _arm_marks(arms)
    ratios = clock.chart("ratio", height=charts.HALF_HEIGHT + 30)
    curves = []
    for arm, mark in zip(arms, marks, strict=True):
        rows = measured(arm.rows)
        groups = series.gathered(rows, series.coarse_span_s(rows)) if rows else []
        columns = series.ratios_over_time(groups, cumulative=True)
        charts.lines(ratios, columns, [Line("wa_total", arm.name, mark.colour, 1.8)], "0.00", "×")
        curves.append((series.split_cdf(rows, series.die_busy)[0], Line("y", arm.name, mark.colour, 2.0)))
    so_far = "NAND bytes for each byte of user data, from the start of the measured phases: a ratio, without unit."
    busy = (
        "Share of the time in stalls at or below a utilisation of the flash dies, in %; on the left is an idle drive."
    )
    panels = [Panel("wa", "wa_total of the arms", so_far, ratios, marks, wide=False)]
    cdf = charts.cdf("utilisation (%)", curves)
    if cdf.renderers:  # nothing is drawn where no arm was ever stalled
        panels.append(Panel("cdf", "Flash dies during stalls", busy, cdf, marks, wide=False))
    return panels


def _standings(arms: Sequence[ArmRecord]) -> str:
    """What all arms have alike, and of the rest what each has; of pacing errors only the worst."""
    parts = [short_standing(arm, pacing=False).split(" · ") for arm in arms]
    alike = [part for part in parts[0] if all(part in others for others in parts)]
    own: dict[str, list[str]] = {part: [] for each in parts for part in each if part not in alike}
    for arm, each in zip(arms, parts, strict=True):
        for part in each:
            if part in own:
                own[part].append(arm.name)
    worst = max((pacing_p99_us(arm) for arm in arms), default=0.0)
    pacing = [f"pacing error at most {about(worst)} p99"] if worst else []
    return " · ".join([*alike, *pacing, *(f"{part}: {', '.join(names)}" for part, names in own.items())])
