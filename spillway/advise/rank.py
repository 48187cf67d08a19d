"""Which predictions keep the limits, in which order, and where none does: which limit fails and what comes nearest."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from spillway.advise.configuration import in_words
from spillway.advise.predict import Prediction
from spillway.advise.workload import Limits, Workload
from spillway.errors import SpillwayError
from spillway.quantity import human_bytes

ORDERS = ("throughput", "wa-total", "p99", "lifetime", "space")
LEAST = 1e-9  # of a value whose logarithm is taken
TIE = 0.02  # relative: predictions this close are alike, and the cheaper of them for the drive comes first


@dataclass(frozen=True)
class Limit:
    """A limit by its flag, what of it a prediction takes (1 is just all of it), and the figure in words."""

    flag: str
    asked: str
    used: Callable[[Prediction], float]
    reached: Callable[[Prediction], str]


def limits_of(load: Workload, limits: Limits) -> list[Limit]:
    """Those that were asked for."""
    found = [
        Limit(
            "--memory",
            f"memory of at most {human_bytes(limits.memory_bytes)}",
            lambda each: each.memory_bytes / limits.memory_bytes,
            lambda each: human_bytes(each.memory_bytes),
        )
    ]
    if load.rate_ops_s is not None:
        rate = load.rate_ops_s
        found.append(
            Limit(
                "--rate",
                f"{rate:,.6g} operations/s",
                lambda each: rate / each.throughput_ops_s.value,
                lambda each: f"{each.throughput_ops_s.value:,.0f} operations/s",
            )
        )
    if limits.p99_s is not None:
        p99_us = limits.p99_s * 1e6
        found.append(
            Limit(
                "--p99",
                f"a p99 of at most {time_words(p99_us)}",
                lambda each: each.worst_p99_us / p99_us,
                lambda each: f"a p99 of {time_words(each.worst_p99_us)}",
            )
        )
    if limits.space_bytes is not None:
        space = limits.space_bytes
        found.append(
            Limit(
                "--space",
                f"at most {human_bytes(space)} on the drive",
                lambda each: each.held_bytes.value / space,
                lambda each: f"{human_bytes(each.held_bytes.value)} on the drive",
            )
        )
    if limits.years is not None:
        lasting = limits.years
        found.append(
            Limit(
                "--years",
                f"a drive that lasts {lasting:g} years",
                lambda each: 0.0 if each.years is None else lasting / each.years.value,
                lambda each: "–" if each.years is None else f"{each.years.value:.3g} years",
            )
        )
    return found


def keeps(prediction: Prediction, limits: Sequence[Limit]) -> bool:
    """Whether a prediction's values are within every limit."""
    return all(each.used(prediction) <= 1 for each in limits)


def ranked(predictions: Sequence[Prediction], limits: Sequence[Limit], order: str) -> list[Prediction]:
    """Those within the limits, best first. Raises SpillwayError where there are none."""
    kept = [each for each in predictions if keeps(each, limits)]
    if not kept:
        raise SpillwayError(why_none(predictions, limits))
    return sorted(kept, key=lambda each: sort_key(each, order))


def sort_key(prediction: Prediction, order: str) -> tuple[float, float, float, float]:
    """Less is better; figures within ``TIE`` are equal, and then flash bytes decide, or of those throughput. Where both
    are equal, what does without a spill store and leaves less of the drive free comes first."""
    flash, rate = prediction.flash_bytes_per_op.value, prediction.throughput_ops_s.value
    firsts = {
        "throughput": -_step(rate),
        "wa-total": _step(flash),
        "p99": _step(prediction.worst_p99_us),
        "lifetime": -_step(prediction.years.value) if prediction.years else 0,
        "space": _step(prediction.held_bytes.value),
    }
    by_rate = order == "wa-total" or not flash
    second, exact = (-_step(rate), -rate) if by_rate else (_step(flash), flash)
    config = prediction.config
    return firsts[order], second, (config.spill != "off") + config.extra_op, exact


def gains(prediction: Prediction, plain: Prediction) -> bool:
    """Whether any figure that is ranked is better than that of ``plain``, by more than ``TIE``."""

    def costs(each: Prediction) -> list[float]:
        years = 1 / each.years.value if each.years else 0.0
        fixed = [each.flash_bytes_per_op.value, each.worst_p99_us, each.held_bytes.value, years]
        return [1 / each.throughput_ops_s.value, *fixed]

    return any(own < (1 - TIE) * other for own, other in zip(costs(prediction), costs(plain), strict=True))


def _step(value: float) -> int:
    """Values within ``TIE`` of each other are at most one step apart."""
    return round(math.log(max(value, LEAST)) / TIE)


def why_none(predictions: Sequence[Prediction], limits: Sequence[Limit]) -> str:
    """Which limit fails, and what the nearest configuration reaches, in one sentence."""

    def distance(each: Prediction) -> float:
        return sum(max(0.0, math.log(max(limit.used(each), 1e-9))) for limit in limits)

    nearest = min(predictions, key=distance)
    failing = [limit for limit in limits if not any(limit.used(each) <= 1 for each in predictions)]
    if failing:
        what = " and ".join(f"{limit.asked} ({limit.flag})" for limit in failing)
        which = f"none of {len(predictions)} configurations reaches {what}"
    else:
        broken = [limit for limit in limits if limit.used(nearest) > 1]
        kept = [limit.asked for limit in limits if limit.used(nearest) <= 1]
        what = " and ".join(f"{limit.asked} ({limit.flag})" for limit in broken)
        beside = f" together with {' and '.join(kept)}" if kept else ""
        which = f"none of {len(predictions)} configurations reaches {what}{beside}"
        failing = broken
    reached = " and ".join(limit.reached(nearest) for limit in failing)
    return f"No configuration serves this: {which}; the nearest has {reached} ({in_words(nearest.config)})."


def time_words(us: float) -> str:
    """Microseconds for people: 85 µs, 4.2 ms, 1.5 s."""
    if us < 1000:
        return f"{us:.3g} µs"
    return f"{us / 1e3:.3g} ms" if us < 1e6 else f"{us / 1e6:.3g} s"
