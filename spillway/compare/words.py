"""A comparison in words, and as a document."""

import math
from typing import Any

from spillway.compare.choice import BLOCKS, REPETITIONS, TURNS
from spillway.compare.effects import LEVEL
from spillway.compare.metrics import Metric, table
from spillway.compare.sides import Side
from spillway.compare.verdicts import Comparison, Finding, Pair
from spillway.figures.lifetime import in_words

Document = dict[str, Any]


def figure(metric: Metric, value: float | None) -> str:
    """A figure of a side, or a dash."""
    return "–" if value is None else format(value, metric.form)


def ratio_words(finding: Finding) -> str:
    """B as a multiple of A, or the points between two shares."""
    if finding.effect is None:
        return "–"
    d = finding.effect.d
    return f"{100 * d:+.1f} points" if finding.metric.is_share else f"{math.exp(d):.3f}"


def verdict(finding: Finding, a: str, b: str, anyway: bool = False) -> str:
    """The verdict on one metric, in words."""
    effect, metric = finding.effect, finding.metric
    if effect is None:
        return finding.why_none
    low, high = effect.interval(finding.level)
    if not finding.differs:
        alone = ""
        if anyway and effect.d:
            alone = f"; by the estimate alone {b if finding.b_is_better else a} is {metric.better}"
        return f"not told apart: no difference shown ({_of_b(metric, low)} to {_of_b(metric, high)}){alone}"
    winner = b if finding.b_is_better else a
    verb = "was" if finding.blocks else "is"
    sizes = [_by(metric, each, finding.b_is_better) for each in (effect.d, low, high)]
    least, most = sorted(sizes[1:])
    unit = "points" if metric.is_share else "%"
    return f"{winner} {verb} {metric.better} by {_size(sizes[0])} {unit} ({_size(least)} to {_size(most)})"


def _of_b(metric: Metric, d: float) -> str:
    """What d is for B, with its sign."""
    return f"{100 * d:+.1f} points" if metric.is_share else f"{_size(100 * math.expm1(d), '+')} %"


def _by(metric: Metric, d: float, b_is_better: bool) -> float:
    """By how many per cent of the worse side, or points, the better side is ahead."""
    ahead = d if b_is_better else -d
    if metric.is_share:
        return -100 * ahead
    return 100 * math.expm1(ahead) if metric.more_is_better else -100 * math.expm1(ahead)


def _size(value: float, sign: str = "") -> str:
    """Per cents to a tenth; from a thousand on, where nobody reads them, in thousands."""
    return f"{value:{sign},.0f}" if abs(value) >= 1000 else f"{value:{sign}.1f}"


def lifetime_words(side: Side) -> str:
    """What a side took of its drive's life, or why that is not known; empty where it was recorded without."""
    found = table(side.figures, "lifetime")
    texts = ("currency", "years_by")
    return in_words({k: v for k, v in found.items() if isinstance(v, str if k in texts else int | float)})


def basis(pair: Pair) -> str:
    """What the intervals are computed from."""
    ours, theirs = len(pair.choice.a), len(pair.choice.b)
    if pair.choice.basis == TURNS:
        return f"{ours} repetitions of each, in turns: each of {pair.b} against that of {pair.a} beside it"
    if pair.choice.basis == BLOCKS:
        part = "the steady part" if pair.choice.a[0].steady and pair.choice.b[0].steady else "the measured phases"
        return f"one run each: blocks of samples of {part}"
    return f"{ours} repetitions of {pair.a} and {theirs} of {pair.b}, which did not run in turns"


def notes(pair: Pair, comparison: Comparison) -> list[str]:
    """Sentences on the conditions of a pair's figures."""
    found = [f"Warning: ranked although {each.words} ({each.kind})." for each in pair.differences]
    found += [f"{clause[0].upper()}{clause[1:]}." for clause in pair.left_out]
    if pair.choice.basis == BLOCKS:
        found.append(
            "This is one run each: how much runs differ is in no interval, and arms that are equal often differ so. "
            "Run with --set repetitions=5 before you believe it."
        )
        found += _lengths(pair)
    found += _uneven(pair)
    if pair.choice.basis == REPETITIONS:
        found.append(
            "They did not run in turns: how the machine changed from the one to the other is in no interval. Arms of "
            "one plan do."
        )
    virtual = [name for name in (pair.a, pair.b) if comparison.sides[name].standing.get("pacing") == "off"]
    if virtual:
        found.append(
            f"{'Both are' if len(virtual) > 1 else f'{virtual[0]} is'} in virtual time: throughput, latencies and "
            'stalls are not the drive\'s. Run with drive.pacing = "real" to compare those.'
        )
    chosen = [*pair.choice.a, *pair.choice.b]
    if not any(each.steady for each in chosen):
        found.append("Neither is steady: the figures are of these measured phases, not of a steady state.")
    ranked = sum(1 for each in comparison.pairs if each.findings)
    if ranked > 1:
        found.append(
            f"{ranked} comparisons with {pair.a} are held to 95 % together, by Holm's steps: intervals are as wide as "
            "that takes."
        )
    return found


def _lengths(pair: Pair) -> list[str]:
    """How long blocks are, by metric."""
    if pair.sample_s is None:
        return []
    said = [
        f"{each.metric.name} {ours.blocks} of {ours.samples * pair.sample_s:.3g} s and {theirs.blocks} of "
        f"{theirs.samples * pair.sample_s:.3g} s"
        for each in pair.findings
        if each.blocks is not None
        for ours, theirs in [each.blocks]
    ]
    return [f"Blocks: {'; '.join(said)}."]


UNEVEN = 4.0  # equal spreads are so uneven in one of fifty comparisons of five and five


def _uneven(pair: Pair) -> list[str]:
    """Where one side varies much more, and few repetitions may not have shown how much."""
    said = []
    for letter, other, power in ((pair.b, pair.a, 1), (pair.a, pair.b, -1)):
        names = ", ".join(each.metric.name for each in pair.findings if each.uneven**power >= UNEVEN)
        if names:
            said.append(
                f"{letter} varies more than {UNEVEN:g} times as much as {other} in {names}: where that is by single "
                "bad runs, the interval covers 84 to 92 %, not 95."
            )
    return said


def closing(comparison: Comparison) -> str:
    """The sentence on the errors of several metrics together; empty for one."""
    count = max((sum(each.effect is not None for each in pair.findings) for pair in comparison.pairs), default=0)
    if count < 2:
        return ""
    chance = 1 - LEVEL**count
    return (
        f"Each metric is held to 95 % by itself. Of {count} metrics of equal sides some one differs in up to "
        f"{100 * chance:.0f} % of all comparisons: ask for one with --metric."
    )


def document(comparison: Comparison) -> Document:
    """What is printed, and the figures that it follows from, for ``--json``."""
    sides = {
        letter: {
            "run": str(side.run),
            "arm": side.arm,
            "repetitions": len(side.repetitions),
            "standing": side.standing.get("words"),
            "lifetime": side.figures.get("lifetime"),
        }
        for letter, side in comparison.sides.items()
    }
    pairs = [_pair(pair, comparison) for pair in comparison.pairs]
    return {
        "level": LEVEL,
        "anyway": comparison.anyway,
        "varies": list(comparison.varies),
        "sides": sides,
        "pairs": pairs,
        "note": closing(comparison) or None,
    }


def _pair(pair: Pair, comparison: Comparison) -> Document:
    return {
        "a": pair.a,
        "b": pair.b,
        "ranked": not pair.refused,
        "refused": pair.refused or None,
        "differences": [vars(each) | {"words": each.words} for each in pair.differences],
        "basis": None if pair.refused else pair.choice.basis,
        "repetitions": {pair.a: len(pair.choice.a), pair.b: len(pair.choice.b)},
        "notes": [] if pair.refused else notes(pair, comparison),
        "metrics": {each.metric.name: _finding(each, pair, comparison.anyway) for each in pair.findings},
    }


def _finding(finding: Finding, pair: Pair, anyway: bool) -> Document:
    effect, metric = finding.effect, finding.metric
    said: Document = {
        "unit": metric.unit,
        "more_is_better": metric.more_is_better,
        pair.a: finding.a,
        pair.b: finding.b,
        "words": verdict(finding, pair.a, pair.b, anyway),
    }
    if effect is None:
        return said | {"verdict": None}
    low, high = effect.interval(finding.level)
    scale = "difference" if metric.is_share else "ratio"
    values = [each if metric.is_share else math.exp(each) for each in (effect.d, low, high)]
    said |= {scale: values[0], "low": values[1], "high": values[2], "level": finding.level, "p": effect.p}
    said["verdict"] = "not told apart" if not finding.differs else (pair.b if finding.b_is_better else pair.a)
    if finding.blocks is not None:
        said["blocks"] = [{"count": each.blocks, "samples": each.samples} for each in finding.blocks]
    return said
