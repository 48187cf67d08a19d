"""Whether the first of a ranking is advised, or RocksDB's defaults: what is better only by less than the prediction may
be wrong by is no reason to leave them.

    gain     what is ranked, of a configuration over that of the defaults; the other way where less is better
    E        sqrt(RATIO_ERROR^2 + s^2 + s_d^2)       s, s_d: half the range over seeds, relative, of both
    advised  the first of the ranked with gain > 1 + E, and where there is none the defaults

A ratio of two configurations on one drive under one load is known better than if they were independent: what both have
in common, such as how the drive's reads fare beside its writes, is wrong of both alike. Where the defaults break a
limit or were not simulated there is nothing to stay with, and the first is advised.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from spillway.advise.predict import MODEL_ERROR, Prediction
from spillway.advise.rank import Limit, keeps

# By order. Throughput and flash bytes: eight of ten ratios to the defaults, measured over predicted, lie within it in
# ten of the cases of runs/bench/advise_grid.json (docs/decisions/0060). Lifetime is of both. p99, space: guesses.
RATIO_ERROR = {
    "throughput": 0.30,
    "wa-total": 0.40,
    "lifetime": 0.50,
    "p99": MODEL_ERROR["p99_us"],
    "space": MODEL_ERROR["held_bytes"],
}


@dataclass(frozen=True)
class Figure:
    """What is ranked: its value, whether more of it is better, which spreads over seeds it has, and its
    name."""

    value: Callable[[Prediction], float]
    is_more_better: bool
    spreads: tuple[str, ...]
    name: str


FIGURES = {
    "throughput": Figure(lambda each: each.throughput_ops_s.value, True, ("put_ops_s",), "operations/s"),
    "wa-total": Figure(
        lambda each: each.flash_bytes_per_op.value,
        False,
        ("wa_app", "wa_device"),
        "flash bytes an operation",
    ),
    "lifetime": Figure(
        lambda each: each.years.value if each.years else 0.0,
        True,
        ("put_ops_s", "wa_app", "wa_device"),
        "lifetime",
    ),
    "p99": Figure(lambda each: each.worst_p99_us, False, (), "p99"),
    "space": Figure(lambda each: each.held_bytes.value, False, ("held_bytes",), "space"),
}


@dataclass(frozen=True)
class Decision:
    """What is advised, its place in the ranking (None: it is the defaults), and why, in a sentence."""

    advised: Prediction
    place: int | None
    why: str


def gain(prediction: Prediction, defaults: Prediction, order: str) -> float:
    """How many times better by what is ranked; 1 where there is nothing to tell apart."""
    figure = FIGURES[order]
    own, other = figure.value(prediction), figure.value(defaults)
    if not own or not other:
        return 1.0
    return own / other if figure.is_more_better else other / own


def error(prediction: Prediction, defaults: Prediction, order: str) -> float:
    """By how much that may be wrong, relative."""
    spreads = [dict(each.traffic.spread).get(name, 0.0) for each in (prediction, defaults)
               for name in FIGURES[order].spreads]  # fmt: skip
    return float(sum(each**2 for each in (RATIO_ERROR[order], *spreads)) ** 0.5)


def decide(
    ranked: Sequence[Prediction], defaults: Prediction | None, order: str, limits: Sequence[Limit] = ()
) -> Decision:
    """``ranked``: best first, at least one. ``defaults``: None where they were not simulated."""
    if defaults is None:
        return Decision(ranked[0], 1, "Advised: 1. RocksDB's defaults were not simulated, so that nothing is kept to.")
    if not keeps(defaults, limits):
        return Decision(ranked[0], 1, "Advised: 1. RocksDB's defaults are not within the limits.")
    for place, each in enumerate(ranked, 1):
        if gain(each, defaults, order) > 1 + error(each, defaults, order):
            why = f"Advised: {place}. Held against RocksDB's defaults it has {_told(each, defaults, order)}."
            return Decision(each, place, why)
    return Decision(
        defaults,
        None,
        "Advised: RocksDB's defaults. Nothing is predicted to be better than the defaults by more than the prediction "
        f"may be wrong by: 1 has {_told(ranked[0], defaults, order)}.",
    )


def _told(prediction: Prediction, defaults: Prediction, order: str) -> str:
    """The ratio, and what it may be wrong by."""
    found = gain(prediction, defaults, order)
    times = found if FIGURES[order].is_more_better else 1 / found
    wrong = 1 + error(prediction, defaults, order)
    return f"{times:.2f} times their {FIGURES[order].name}, and such a ratio may be wrong by a factor of {wrong:.2f}"
