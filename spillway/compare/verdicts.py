"""Two sides, metric by metric: the effect, its interval, and the verdict; several sides, each against the first."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from spillway.compare.blocks import Blocked, blocked
from spillway.compare.choice import BLOCKS, TURNS, Choice, choose, left_out
from spillway.compare.effects import LEVEL, Effect, combined, holm, paired, welch
from spillway.compare.metrics import METRICS, Metric, table
from spillway.compare.sides import Side
from spillway.compare.standing import KINDS, Difference, differences
from spillway.errors import SpillwayError
from spillway.figures.lifetime import why_no_years
from spillway.models.arrays import Array
from spillway.quantity import nearest
from spillway.rundir.samples import Row

TOO_FEW_BLOCKS = "too few independent blocks to say"
ONE_FIGURE = "one run has one such figure, so it takes repetitions to say"
NOT_KNOWN = "not known of both"
LEAST_SPREAD = 0.01  # less is not called uneven. Source: guess


@dataclass(frozen=True)
class Finding:
    """One metric of two sides. Without an effect ``why_none`` says why not."""

    metric: Metric
    a: float | None
    b: float | None
    effect: Effect | None = None
    why_none: str = ""
    blocks: tuple[Blocked, Blocked] | None = None
    uneven: float = 1.0  # how many times as much B's repetitions vary as A's
    differs: bool = False
    level: float = LEVEL

    @property
    def b_is_better(self) -> bool:
        """Whether the estimate favours B, significant or not."""
        assert self.effect is not None
        return (self.effect.d > 0) == self.metric.more_is_better


@dataclass(frozen=True)
class Pair:
    """Two sides by their letters, with what was found, or the sentence that refuses it."""

    a: str
    b: str
    choice: Choice
    differences: list[Difference] = field(default_factory=list)  # that are not what is compared
    findings: list[Finding] = field(default_factory=list)
    refused: str = ""
    left_out: list[str] = field(default_factory=list)
    sample_s: float | None = None  # the mean length of a sample, of blocks


@dataclass(frozen=True)
class Comparison:
    """All sides by their letters, and each against the first."""

    sides: dict[str, Side]
    pairs: list[Pair]
    anyway: bool
    varies: tuple[str, ...]


def letter(index: int) -> str:
    """A, B, … Z, A1, B1, …"""
    return chr(ord("A") + index % 26) + (str(index // 26) if index >= 26 else "")


def compare(
    sides: Sequence[Side], metrics: Sequence[str] = (), anyway: bool = False, varies: Collection[str] = ()
) -> Comparison:
    """Each side against the first, by all metrics or those named. ``varies``: kinds of difference that are what is
    compared. Raises SpillwayError where a metric is unknown, or known of no pair."""
    chosen = [_metric(name) for name in dict.fromkeys(metrics)] or list(METRICS.values())
    _check_kinds(varies)
    lettered = {letter(index): side for index, side in enumerate(sides)}
    first, *others = lettered
    pairs = [_pair(first, other, lettered, chosen, anyway, varies) for other in others]
    if metrics:
        _check_known(chosen, pairs, lettered)
    return Comparison(lettered, _held(pairs, chosen), anyway, tuple(varies))


def _metric(name: str) -> Metric:
    if name not in METRICS:
        raise SpillwayError(f"--metric {name} is none{nearest(name, METRICS)} There are: {', '.join(METRICS)}.")
    return METRICS[name]


def _check_kinds(varies: Collection[str]) -> None:
    for kind in varies:
        if kind not in KINDS:
            raise SpillwayError(f"--varies {kind} is none{nearest(kind, KINDS)} There are: {', '.join(KINDS)}.")


def _check_known(chosen: Sequence[Metric], pairs: Sequence[Pair], sides: dict[str, Side]) -> None:
    for metric in chosen:
        found = [each for pair in pairs for each in pair.findings if each.metric is metric]
        if found and all(each.why_none == NOT_KNOWN for each in found):
            why = next((f" ({why})" for side in sides.values() if (why := _why_unknown(side, metric))), "")
            runs = " and ".join(side.name for side in sides.values())
            raise SpillwayError(f"{metric.name} is not known of {runs}{why}; name another --metric.")


def _why_unknown(side: Side, metric: Metric) -> str:
    if metric.name == "years":
        return why_no_years(table(side.figures, "lifetime"))
    of_flash = metric.name in ("wa_device", "wa_total", "flash_bytes_per_operation")
    return str(side.standing.get("wa_device_unknown") or "") if of_flash else ""


def _pair(
    a: str, b: str, sides: dict[str, Side], metrics: Sequence[Metric], anyway: bool, varies: Collection[str]
) -> Pair:
    ours, theirs = sides[a], sides[b]
    choice = choose(ours, theirs, anyway)
    found = [each for each in differences(ours, theirs) if each.kind not in varies]
    found += [choice.difference] if choice.difference else []
    pair = Pair(a, b, choice, found)
    if found and not anyway:
        return replace(pair, refused=_refusal(ours, theirs, found))
    if choice.refused:
        return replace(pair, refused=choice.refused)
    pair = replace(pair, left_out=left_out(ours, choice.a) + left_out(theirs, choice.b))
    if choice.basis != BLOCKS:
        findings = [_from_repetitions(metric, choice) for metric in metrics]
        return replace(pair, findings=[_of_one_kind(each, ours, theirs) for each in findings])
    rows = ours.steady_rows(choice.a[0]), theirs.steady_rows(choice.b[0])
    findings = [_of_one_kind(_from_blocks(metric, choice, rows), ours, theirs) for metric in metrics]
    lengths = [row["dt_s"] for each in rows for row in each]
    pair = replace(pair, findings=findings, sample_s=sum(lengths) / len(lengths) if lengths else None)
    if not any(each.effect for each in findings):
        return replace(pair, findings=[], refused=_too_short(ours, theirs, findings, rows))
    return pair


def _of_one_kind(finding: Finding, a: Side, b: Side) -> Finding:
    """Years that a drive's flash can take are not ranked with years that a maker warrants, which are fewer."""
    if finding.metric.name != "years" or finding.effect is None:
        return finding
    ours, theirs = (table(side.figures, "lifetime").get("years_by") for side in (a, b))
    if ours == theirs:
        return finding
    return replace(finding, effect=None, why_none=f"years by {ours} and by {theirs}")


def _refusal(a: Side, b: Side, found: Sequence[Difference]) -> str:
    kinds = list(dict.fromkeys(each.kind for each in found))
    deliberate = " ".join(f"--varies {kind}" for kind in kinds if kind in KINDS)
    remedy = f"say {deliberate} if that is what you compare, or --anyway" if deliberate else "or say --anyway"
    opening = "are runs of different plans, and " if "workload" in kinds else ""
    clauses = "; ".join(each.words for each in found[:_MOST_DIFFERENCES])
    more = len(found) - _MOST_DIFFERENCES
    clauses += f"; and {more} more" if more > 0 else ""
    return f"{a.name} and {b.name} {opening}are not ranked: {clauses}; make them alike, {remedy}."


_MOST_DIFFERENCES = 6  # in a sentence; --json has all


def _too_short(a: Side, b: Side, findings: Sequence[Finding], rows: Sequence[Sequence[Row]]) -> str:
    if all(each.why_none == ONE_FIGURE for each in findings):
        names = " and ".join(each.metric.name for each in findings)
        return f"{a.name} and {b.name} are one run each, which has one figure of {names}; run with --set repetitions=5."
    counts = " and ".join(str(len(each)) for each in rows)
    return (
        f"{a.name} and {b.name} are one run each, with {counts} samples to judge by, which are {TOO_FEW_BLOCKS}; "
        "run with --set repetitions=5, or longer."
    )


def _from_repetitions(metric: Metric, choice: Choice) -> Finding:
    ours, theirs = ([metric.known(each.figures) for each in side] for side in (choice.a, choice.b))
    if None in ours or None in theirs:
        return Finding(metric, _centre(metric, ours), _centre(metric, theirs), why_none=NOT_KNOWN)
    a, b = (np.array([metric.scaled(each) for each in side if each is not None]) for side in (ours, theirs))
    effect = (paired if choice.basis == TURNS else welch)(a, b, metric.slack)
    return Finding(metric, _centre(metric, ours), _centre(metric, theirs), effect, uneven=_uneven(a, b))


def _uneven(a: Array, b: Array) -> float:
    """sd(b) / sd(a), of spreads of 1 % at least."""
    spreads = [max(LEAST_SPREAD, float(np.std(each, ddof=1))) for each in (a, b)]
    return spreads[1] / spreads[0]


def _centre(metric: Metric, values: Sequence[float | None]) -> float | None:
    """The mean by which repetitions are compared: geometric, of shares arithmetic."""
    known = [metric.scaled(each) for each in values if each is not None]
    return metric.unscaled(sum(known) / len(known)) if known and len(known) == len(values) else None


def _from_blocks(metric: Metric, choice: Choice, rows: tuple[list[Row], list[Row]]) -> Finding:
    a, b = metric.known(choice.a[0].figures), metric.known(choice.b[0].figures)
    if metric.part is None:
        return Finding(metric, a, b, why_none=NOT_KNOWN if a is None or b is None else ONE_FIGURE)
    series = [metric.series(each) for each in rows]
    factors = [metric.factor_of(each[0].figures) for each in (choice.a, choice.b)]
    if None in series or None in factors:
        return Finding(metric, a, b, why_none=NOT_KNOWN)
    ours, theirs = (
        blocked(np.array(each[0]) * factor, np.array(each[1]))
        for each, factor in zip(series, factors, strict=True)
        if each is not None and factor is not None
    )
    if ours is None or theirs is None:
        return Finding(metric, a, b, why_none=TOO_FEW_BLOCKS)
    if not metric.is_share and min(ours.value, theirs.value) <= 0:
        return Finding(metric, ours.value, theirs.value, why_none=NOT_KNOWN)
    # The logarithm of a figure has the figure's relative error.
    errors = [each.se if metric.is_share else each.se / each.value for each in (ours, theirs)]
    effect = combined(
        metric.scaled(ours.value), errors[0], ours.df, metric.scaled(theirs.value), errors[1], theirs.df, metric.slack
    )
    return Finding(metric, ours.value, theirs.value, effect, blocks=(ours, theirs))


def _held(pairs: Sequence[Pair], metrics: Sequence[Metric]) -> list[Pair]:
    """The verdicts: of each metric by itself, all pairs together by Holm's steps."""
    judged: dict[tuple[int, str], tuple[bool, float]] = {}
    for metric in metrics:
        of_it = [
            (index, each.effect)
            for index, pair in enumerate(pairs)
            for each in pair.findings
            if each.metric is metric and each.effect is not None
        ]
        verdicts = holm([effect.p for _, effect in of_it])
        judged |= {(index, metric.name): verdict for (index, _), verdict in zip(of_it, verdicts, strict=True)}
    return [
        replace(
            pair,
            findings=[
                replace(each, differs=judged[key][0], level=judged[key][1])
                if (key := (index, each.metric.name)) in judged
                else each
                for each in pair.findings
            ],
        )
        for index, pair in enumerate(pairs)
    ]
