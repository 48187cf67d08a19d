"""The runs of a sweep as its figures and words take them: metrics, arms at points, which axis is drawn where."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from spillway.figures.amplification import ratio
from spillway.plan.sweep import Axis, axes_of, place_of, short_names, tick
from spillway.report.arm_outcomes import Spread, spread
from spillway.report.words import short_standing
from spillway.rundir.directory import ArmRecord

Document = dict[str, Any]
DASHES = (("solid", "line"), ("dashed", "dash"), ("dotted", "dot"))  # of Bokeh, and of a legend
MOST_LINES = 6  # that can be distinguished in one chart
MOST_MULTIPLES = 6  # of each figure; the table has the rest
MOST_SECTIONS = 6  # runs whose time series go into the report


@dataclass(frozen=True)
class Metric:
    """A figure of a run that is drawn over the axis."""

    key: str
    title: str
    unit: str
    what: str
    of: Callable[[Document], float | None]
    log: bool = False


def _share_in_stalls(figures: Document) -> float | None:
    return ratio(100 * (figures.get("stalls") or {}).get("seconds", 0.0), figures.get("duration_s"))


def _times(name: str, factor: float) -> Callable[[Document], float | None]:
    return lambda figures: None if figures.get(name) is None else figures[name] * factor


METRICS = (
    Metric("wa-app", "wa_app", "ratio", "Host bytes for each byte of user data", _times("wa_app", 1)),
    Metric("wa-device", "wa_device", "ratio", "NAND bytes for each host byte", _times("wa_device", 1)),
    Metric("wa-total", "wa_total", "ratio", "NAND bytes for each byte of user data", _times("wa_total", 1)),
    Metric("space", "Space amplification", "ratio", "Bytes held for each live byte", _times("space_amplification", 1)),
    Metric(
        "space-peak",
        "Space amplification, peak",
        "ratio",
        "The most bytes held at once for each byte that lives at the end",
        _times("space_amplification_peak", 1),
    ),
    Metric(
        "throughput", "Throughput", "thousand operations/s", "Operations that ended", _times("throughput_ops_s", 1e-3)
    ),
    Metric("user-data", "User data", "MB/s", "Bytes that were put and got", _times("user_mb_s", 1)),
    Metric("stalls", "In stalls", "% of the time", "Time in which writers were held back", _share_in_stalls),
    Metric(
        "p99",
        "Latency, p99",
        "milliseconds",
        "One operation in a hundred took longer",
        lambda figures: None if (p99 := (figures.get("latency_us") or {}).get("p99")) is None else p99 / 1e3,
        log=True,
    ),
)


def _life(name: str) -> Callable[[Document], float | None]:
    return lambda figures: (figures.get("lifetime") or {}).get(name)


# What the write amplification costs; in the table next to it, as far as a run knows it. Of a scaled drive, years and
# drive writes are of its preset's whole capacity.
LIFETIME = (
    Metric("flash-bytes", "Flash bytes per operation", "bytes", "NAND bytes", _life("flash_bytes_per_operation")),
    Metric("dwpd", "Drive writes per day", "1/day", "Of the capacity", _life("full_size_drive_writes_per_day")),
    Metric("used", "Percentage used", "%", "Of the rated P/E cycles", _life("percentage_used")),
    Metric("years", "Years at this rate", "years", "Until the flash is worn", _life("full_size_years")),
    Metric("money", "Money per year", "of the price", "Drives worn out", _life("money_per_year")),
    Metric(
        "until-worn",
        "User data until worn",
        "GB",
        "Needs no rate",
        lambda figures: None if (found := _life("full_size_user_bytes_until_worn")(figures)) is None else found / 1e9,
    ),
)


@dataclass(frozen=True)
class PointResult:
    """An arm at one point: its finished repetitions, and why it failed where none was finished."""

    arm: str
    point: dict[str, Any]
    finished: list[Document]
    failure: str

    def over(self, metric: Metric) -> Spread | None:
        """A figure over the repetitions that were finished."""
        return spread(metric.of(each) for each in self.finished)


@dataclass(frozen=True)
class Published:
    """A published figure of an arm at a point; drawn with ours."""

    arm: str
    point: Mapping[str, Any]
    metric: str  # a key of METRICS
    value: float  # in that metric's unit


def is_swept(arms: Sequence[ArmRecord]) -> bool:
    """Whether a run's arms are points of a sweep."""
    return any(arm.summary.get("point") for arm in arms)


def point_results_of(arms: Iterable[ArmRecord]) -> list[PointResult]:
    """The results of each arm at each point."""
    found = []
    for arm in arms:
        summary = arm.summary
        ended = summary.get("repetitions") or [summary | ending(summary)]
        failure = next((each["failure"] for each in ended if each.get("failure")), "")
        finished = [each for each in ended if each.get("complete")]
        found.append(PointResult(summary.get("of") or arm.name, summary.get("point") or {}, finished, failure))
    return found


def ending(summary: Document) -> Document:
    """How a run ended, from its standing."""
    return {name: summary["standing"][name] for name in ("complete", "failure")}


@dataclass(frozen=True)
class Layout:
    """Which axis is drawn along x, which by the style of lines (None: none), which as small multiples."""

    x: Axis | None
    styled: Axis | None
    multiples: list[Axis]
    names: Mapping[str, str]


def layout_of(results: Sequence[PointResult]) -> Layout:
    """How a sweep is drawn."""
    axes = axes_of([result.point for result in results])
    names = short_names([axis.key for axis in axes])
    x = next((axis for axis in axes if is_numeric(axis)), axes[0] if axes else None)
    rest = [axis for axis in axes if axis is not x]
    arms = len({result.arm for result in results})
    few = [axis for axis in rest if len(axis.values) <= len(DASHES) and arms * len(axis.values) <= MOST_LINES]
    styled = few[0] if few else None
    return Layout(x, styled, [axis for axis in rest if axis is not styled], names)


def is_numeric(axis: Axis) -> bool:
    """Whether every value of the axis is a number or a size."""
    return all(place_of(value) is not None for value in axis.values)


def value_in_words(layout: Layout, key: str, value: Any) -> str:
    """A value of an axis with the axis's short name."""
    return f"{layout.names[key]} {tick(key, value)}"


def standing_of(arms: Sequence[ArmRecord]) -> str:
    """The standing that all finished runs of the sweep have in common, and whether they differ in the rest."""
    each = [short_standing(arm, pacing=False).split(" · ") for arm in arms if arm.summary["standing"]["complete"]]
    if not each:
        return "no run was finished"
    common = [part for part in each[0] if all(part in other for other in each)]
    differs = any(part not in common for other in each for part in other)
    return " · ".join([*common, *(["the rest differs from run to run"] if differs else [])])


def worst_of(results: Sequence[PointResult], metric: Metric) -> PointResult:
    """Where a figure of _HEADLINES is worst: a throughput that is lowest, a write amplification that is highest."""
    known = [(made.median, result) for result in results if (made := result.over(metric)) is not None]
    pick = min if metric.key == "throughput" else max
    return pick(known, key=lambda each: each[0])[1]


def axes_not_along_x(layout: Layout) -> list[Axis]:
    """The axes that are shown by the style of lines or by small multiples."""
    return [axis for axis in (layout.styled, *layout.multiples) if axis is not None]
