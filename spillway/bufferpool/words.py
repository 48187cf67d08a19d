"""A sweep of a buffer pool as a document, as CSV, and in words."""

import csv
import io
import math
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from spillway.bufferpool.pool import WRITERS, Document
from spillway.bufferpool.sweep import MOST_UNSURE, Step, Sweep
from spillway.bufferpool.tuned import Tuned
from spillway.fit.knee import DOUBLING_GAIN


def document(found: Sweep) -> Document:
    """sweep.json, and what --json prints: null is what is not known."""
    content = {
        "contract": [1, 2],
        "target": found.target,
        "conditions": found.conditions,
        "workload": found.workload,
        "drive": {name: getattr(found.drive, name).document() for name in ("alpha", "k_r", "k_w")},
        **_curve(found),
        "beside": [_curve(other) for other in found.of_other_writers],
        "verdict": verdict(found),
    }
    cleaned: Document = _finite(content)
    return cleaned


def _curve(found: Sweep) -> Document:
    """Curve and knees of one kind of writers."""
    at = found.at_k_w
    return {
        "writers": found.writers,
        "own": {"read_share": found.own_read_share, "cost_ratio": found.own_cost_ratio},
        "steps": [asdict(step) for step in found.steps],
        "knee": found.knee.document(),
        "largest": {"write_back": found.largest.write_back, "speed_up": found.largest.speed_up.value},
        "at_k_w": {"write_back": at.write_back, "speed_up": at.speed_up.value} if at else None,
        "steps_from_k_w": found.steps_from_k_w,
        "growth_past_k_w": found.growth_past_k_w,
        "batch_knee": found.batch_knee,
        "tuned": [asdict(each) for each in found.tuned],
    }


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _finite(each) for name, each in value.items()}
    if isinstance(value, list):
        return [_finite(each) for each in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def to_csv(rows: Sequence[Document]) -> str:
    """sweep.csv: a line for every run."""
    text = io.StringIO()
    writer = csv.DictWriter(text, list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


def verdict(found: Sweep) -> str:
    """What the curve says about the drive's k_w, in two sentences."""
    at, distance, growth = found.at_k_w, found.steps_from_k_w, found.growth_past_k_w
    best = found.largest
    unsure = max((_unsureness(step) for step in found.steps[1:]), default=0.0)
    if unsure > MOST_UNSURE:
        return (
            f"Runs of one n_w differ so much that its speed-up is known to within {unsure:.0%} only: no knee is told "
            "from them; give more --repeats or --operations, or a quieter machine."
        )
    largest = f"The largest speed-up is {best.speed_up.value:.2f}, at n_w = {best.write_back}"
    if at is None:
        return f"{largest}; the drive's k_w is not known."
    if best.speed_up.value < 1 + DOUBLING_GAIN:
        nothing = (
            f"Writing back more at once {WRITERS[found.writers]} buys nothing here: {best.speed_up.value:.2f} at most."
        )
        if found.writers != "queue":
            return f"{nothing} The threads take longer than the waits for writes that they share."
        costs = f"One write costs {found.own_cost_ratio:.2f} reads"
        return f"{nothing} {costs}, so there is hardly a wait for writes to share."
    if distance is None:
        return f"{largest}: it still grows where the sweep ends, past the drive's k_w of {found.drive.k_w.value:.1f}."
    where = {0: "the step nearest to", 1: "one step from"}.get(distance, f"{distance} steps from")
    first = (
        f"Written back {WRITERS[found.writers]}, the speed-up levels off at n_w = {found.knee.value:.0f}, {where} the "
        f"drive's k_w of {found.drive.k_w.value:.1f}, and is {at.speed_up.value:.2f} at n_w = {at.write_back}."
    )
    if growth is None:
        return first
    if growth <= 0:
        return f"{first} Beyond it there is none to be had: {growth:+.1%} at best."
    return (
        f"{first} Beyond it {growth:+.1%} are left, up to n_w = {best.write_back}; the 99th percentile of an operation "
        f"is {best.latency_p99_us:,.0f} µs there and {at.latency_p99_us:,.0f} here."
    )


def others_in_words(found: Sweep) -> list[str]:
    """A sentence for the sweep of each other kind of writers."""
    return [_other_in_words(other) for other in found.of_other_writers]


def tuned_in_words(found: Sweep) -> list[str]:
    """A sentence for each way in which pools chose n_w by themselves."""
    return [_way_in_words(each, sweep) for sweep in (found, *found.of_other_writers) for each in sweep.tuned]


def _way_in_words(tuned: Tuned, found: Sweep) -> str:
    how = {"profile": "From the drive's k_w", "auto": "While it runs"}[tuned.way]
    interval = (
        f" (95 %: {tuned.of_best.low:.3f} to {tuned.of_best.high:.3f})" if math.isfinite(tuned.of_best.low) else ""
    )
    best = max(found.steps, key=lambda step: step.operations_per_s.value).write_back
    return (
        f"{how} a pool that writes back {WRITERS[found.writers]} chooses n_w = {tuned.write_back:.0f} and reaches "
        f"{tuned.of_best.value:.3f}{interval} of the rate of the best fixed one, n_w = {best}."
    )


def _other_in_words(other: Sweep) -> str:
    at, knee = other.at_k_w, other.knee
    words = WRITERS[other.writers]
    levels = f"levels off at n_w = {knee.value:.0f}" if knee.known else "still grows where the sweep ends"
    most = f"{other.largest.speed_up.value:.2f} at most, at n_w = {other.largest.write_back}"
    here = "" if at is None else f"{at.speed_up.value:.2f} at n_w = {at.write_back} and "
    return f"Written back {words} it {levels}: {here}{most}."


def _unsureness(step: Step) -> float:
    """Half the interval, as a share of the value; 0 of a single run, which has none."""
    width = step.speed_up.high - step.speed_up.low
    return width / 2 / step.speed_up.value if math.isfinite(width) else 0.0


HEADER = ("n_w", "speed-up", "95 %", "P5", "P5, own costs", "operations/s", "µs a read", "µs a write", "p99 µs", "")


def tables(found: Sweep) -> list[tuple[str, list[tuple[str, ...]]]]:
    """A title for each kind of writers, and its table."""
    return [(f"Written back {WRITERS[each.writers]}", table(each)) for each in (found, *found.of_other_writers)]


def table(found: Sweep) -> list[tuple[str, ...]]:
    """Rows under HEADER; the last column marks k_w, the knee and the largest."""
    knee = next((step for step in found.steps if step.write_back == found.knee.value), None)
    rows: list[tuple[str, ...]] = []
    for step in found.steps:
        marks = [
            name
            for name, marked in (("k_w", found.at_k_w), ("knee", knee), ("largest", found.largest))
            if marked is step
        ]
        interval = f"{step.speed_up.low:.3f} to {step.speed_up.high:.3f}" if math.isfinite(step.speed_up.low) else "–"
        rows.append(
            (
                str(step.write_back),
                f"{step.speed_up.value:.3f}",
                interval,
                _two(step.formula),
                _two(step.formula_own_costs),
                f"{step.operations_per_s.value:,.0f}",
                f"{step.read_us:.1f}",
                f"{step.write_us:.1f}",
                f"{step.latency_p99_us:,.0f}",
                ", ".join(marks),
            )
        )
    return rows


def _two(value: float) -> str:
    return f"{value:.2f}" if math.isfinite(value) else "–"
