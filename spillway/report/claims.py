"""Claims of the accelerator against its rivals, and whether this run meets them.

A claim stands in the table only when the run holds the arms that it compares. Wanted figures: the largest that KVAccel
publishes (K23), at every equal number of threads here, and this project's own beyond the paper.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from spillway.figures.repetitions import Repetition, counted
from spillway.report.arm_outcomes import (
    ADOC,
    ROCKSDB,
    SPILLWAY,
    ArmOutcomes,
    Figure,
    Outcome,
    Spread,
    Unfinished,
    against,
    best_of,
    over,
    spread,
)
from spillway.report.words import NOTHING, micros, number

# Writes in each hundred operations of the paper's mixed workloads, and by how much it writes faster than ADOC there.
# Source: KVAccel, Table IV and Fig 13.
MIXED_GAINS = {"B": 1.36, "C": 1.51}
RANGE_SHARE = 0.9  # of RocksDB's range queries. Source: ours; the paper reaches 0.33 (Table V)
READ_SHARE = 0.95  # of RocksDB's reads during writes. Source: ours
BEST_RIVALS_GAIN = 1.2  # over the best rival's writes. Source: ours


@dataclass(frozen=True)
class Claim:
    """One row: what is claimed, of which arms, what is wanted, what was measured, and how it stands."""

    claim: str
    arms: str
    wanted: str
    measured: str
    verdict: str  # met, missed, in how many of the repetitions, or not measured where no two can be compared


Holds = Callable[[float], bool]  # whether a ratio is what is wanted


def claims(compared: Sequence[ArmOutcomes], mix: str, unfinished: Sequence[Unfinished] = ()) -> list[Claim]:
    """Every claim that these arms can decide. ``mix``: the paper's workload, A to D, or an empty text. ``unfinished``:
    arms without a finished repetition, which the best rival is named to be without."""
    ours = [each for each in compared if each.handling.system == SPILLWAY]
    found: list[Claim] = []
    for one in ours:
        found += _speed(one, compared, mix)
        found += _evenness(one, compared)
        found += _bill(one, compared)
        found += _best_rival(one, compared, mix, unfinished)
    found += _one_thread(compared)
    found += _efficiency(compared)
    return found


def _equals(
    one: ArmOutcomes, compared: Sequence[ArmOutcomes], system: str, *, slowdown: bool = True
) -> Iterator[ArmOutcomes]:
    """Rivals of one system with as many threads."""
    for each in compared:
        handling = each.handling
        if handling.system == system and handling.slowdown == slowdown and handling.threads == one.handling.threads:
            yield each


def _speed(one: ArmOutcomes, compared: Sequence[ArmOutcomes], mix: str) -> Iterator[Claim]:
    wanted = {ROCKSDB: (1.37, 0.58), ADOC: (1.17, 0.80)}
    for system in (ROCKSDB, ADOC):
        for rival in _equals(one, compared, system):
            if mix == "A":
                throughput, tail = wanted[system]
                yield from _at_least("write throughput", one, rival, lambda o: o.write_ops_s, throughput)
                yield from _at_most("p99 of writes", one, rival, lambda o: o.write_p99_us, tail)
            elif mix in MIXED_GAINS and system == ADOC:
                gain = MIXED_GAINS[mix]
                yield from _at_least(f"write throughput in workload {mix}", one, rival, lambda o: o.write_ops_s, gain)
            elif mix in MIXED_GAINS:
                yield from _at_least(f"reads in workload {mix}", one, rival, lambda o: o.read_ops_s, READ_SHARE)
            elif mix == "D" and system == ROCKSDB:
                yield from _at_least("range queries", one, rival, lambda o: o.seeks_ops_s, RANGE_SHARE)


def _at_least(claim: str, one: ArmOutcomes, rival: ArmOutcomes, figure: Figure, wanted: float) -> Iterator[Claim]:
    yield from _held(claim, one, rival, figure, f"at least {wanted:g}×", lambda ratio: ratio >= wanted)


def _at_most(claim: str, one: ArmOutcomes, rival: ArmOutcomes, figure: Figure, wanted: float) -> Iterator[Claim]:
    yield from _held(claim, one, rival, figure, f"at most {wanted:g}×", lambda ratio: ratio <= wanted)


def _held(
    claim: str, one: ArmOutcomes, rival: ArmOutcomes, figure: Figure, wanted: str, holds: Holds, more: str = ""
) -> Iterator[Claim]:
    """A claim on one arm's figure over another's. Nothing where one of the two has no such figure at all."""
    if over(one, figure) is not None and over(rival, figure) is not None:
        yield _counted(claim, _both(one, rival), wanted, against(one, rival, figure), holds, one.asked, more)


def _both(one: ArmOutcomes, rival: ArmOutcomes) -> str:
    return f"{one.name} : {rival.name}"


def times(found: Spread) -> str:
    """A ratio with its spread over repetitions."""
    text = f"{found.median:.2f}×"
    return text if found.count == 1 else f"{text} ({found.low:.2f} to {found.high:.2f})"


def _verdict(kept: int, asked: int) -> str:
    """``asked``: all the repetitions that there should be; what is met in each of fewer is not met in all."""
    if kept in (0, asked):
        return "met" if kept else "missed"
    return f"met in {kept} of {asked} runs"


def _of(count: int, asked: int) -> str:
    """How many of the repetitions a figure is of, where some are left out."""
    return "" if count == asked else f", {counted(count, asked)}"


def _evenness(one: ArmOutcomes, compared: Sequence[ArmOutcomes]) -> Iterator[Claim]:
    """No second without an operation; a worst write far below that of RocksDB without its slowdown."""
    zeros = [each.zero_seconds for each in one.outcomes if each.zero_seconds is not None]
    if zeros:
        text = ", ".join(map(str, zeros)) + _of(len(zeros), one.asked)
        yield Claim("seconds without an operation", one.name, "none", text, _verdict(zeros.count(0), one.asked))
    for rival in _equals(one, compared, ROCKSDB, slowdown=False):
        own, theirs = (over(each, _worst_write) for each in (one, rival))
        if own is not None and theirs is not None:
            both = f": {micros(own.median)} : {micros(theirs.median)}"
            yield from _held("worst write", one, rival, _worst_write, "below 0.1×", (0.1).__gt__, both)


def _bill(one: ArmOutcomes, compared: Sequence[ArmOutcomes]) -> Iterator[Claim]:
    """To the end, with everything brought back and compacted, as much work in no more time and no more bytes."""
    for rival in _equals(one, compared, ROCKSDB):
        for claim, figure in _BILL:
            yield from _at_most(claim, one, rival, figure, 1.0)


def _seconds_each(outcome: Outcome) -> float | None:
    return None if not outcome.settled_ops_s else 1 / outcome.settled_ops_s


_BILL: tuple[tuple[str, Figure], ...] = (
    ("time for an operation, to the end", _seconds_each),
    ("wa_app, to the end", lambda o: o.settled_ratios.wa_app),
    ("wa_total, to the end", lambda o: o.settled_ratios.wa_total),
)


def _best_rival(
    one: ArmOutcomes, compared: Sequence[ArmOutcomes], mix: str, unfinished: Sequence[Unfinished]
) -> Iterator[Claim]:
    """Against the best of all other systems with as many threads, which may be another one in each repetition."""

    def is_rival(each: ArmOutcomes | Unfinished) -> bool:
        return each.handling.system != SPILLWAY and each.handling.threads == one.handling.threads

    rivals, without = (
        [each for each in compared if is_rival(each)],
        [each.name for each in unfinished if is_rival(each)],
    )
    if not rivals or len(rivals) + len(without) < 2:
        return
    left_out = f", without {', '.join(without)}, of which no repetition was finished" if without else ""
    arms = f"{one.name} : the best rival{left_out}"
    figures: list[tuple[str, Figure, Callable[..., float], str, Holds]] = [
        (claim, figure, min, "at most 1×", (1.0).__ge__) for claim, figure in (("worst write", _worst_write), *_BILL)
    ]
    if mix == "A":
        gain = f"at least {BEST_RIVALS_GAIN:g}×"
        figures.insert(0, ("write throughput", lambda o: o.write_ops_s, max, gain, BEST_RIVALS_GAIN.__le__))
    for claim, figure, pick, wanted, holds in figures:
        if all(over(each, figure) is not None for each in (one, *rivals)):
            yield _counted(claim, arms, wanted, _ratios(one, rivals, figure, pick), holds, one.asked)


def _worst_write(outcome: Outcome) -> float | None:
    return outcome.write_max_us


def _ratios(
    one: ArmOutcomes, rivals: Sequence[ArmOutcomes], figure: Figure, pick: Callable[..., float]
) -> dict[Repetition, float]:
    """Our figure over the best of the rivals' in each repetition that all have finished and whose figures are known."""
    known = {key: best for key, best in best_of(rivals, figure, pick).items() if best and key in one.by_repetition}
    own = {key: figure(one.by_repetition[key]) for key in known}
    return {key: value / known[key] for key, value in own.items() if value is not None}


def _counted(
    claim: str, arms: str, wanted: str, ratios: Mapping[Repetition, float], holds: Holds, asked: int, more: str = ""
) -> Claim:
    """A claim on ratios, one for each repetition. ``more``: what is said behind them."""
    found = spread(ratios.values())
    if found is None:
        return Claim(claim, arms, wanted, f"{NOTHING}{_of(0, asked)}", "not measured")
    kept = sum(1 for ratio in ratios.values() if holds(ratio))
    return Claim(claim, arms, wanted, f"{times(found)}{more}{_of(found.count, asked)}", _verdict(kept, asked))


def _one_thread(compared: Sequence[ArmOutcomes]) -> Iterator[Claim]:
    """One compaction thread does as much as ADOC's four."""
    for one in compared:
        for rival in compared:
            if (
                one.handling.system,
                one.handling.threads,
                rival.handling.system,
                rival.handling.threads,
            ) == (SPILLWAY, 1, ADOC, 4):
                yield from _at_least("write throughput of 1 thread : 4", one, rival, lambda o: o.write_ops_s, 1.0)


def _efficiency(compared: Sequence[ArmOutcomes]) -> Iterator[Claim]:
    """K2: the most user data for a percent of a core, of all arms."""
    ranked = [(each, found) for each in compared if (found := over(each, lambda o: o.efficiency)) is not None]
    systems = {each.handling.system for each, _ in ranked}
    if SPILLWAY not in systems or len(systems) < 2:
        return
    best = max(ranked, key=lambda pair: pair[1].median)[0]
    ours = max((pair for pair in ranked if pair[0].handling.system == SPILLWAY), key=lambda pair: pair[1].median)
    measured = f"{number(ours[1].median)} MB/s for 1 % of a core; the best is {best.name}"
    wanted = "best of all arms"
    others = [each for each, _ in ranked if each is not ours[0]]
    ratios = _ratios(ours[0], others, lambda o: o.efficiency, max)
    if ratios:
        kept, asked = sum(1 for ratio in ratios.values() if ratio >= 1), ours[0].asked
        measured += _of(len(ratios), asked)
        yield Claim("efficiency (K2)", ours[0].name, wanted, measured, _verdict(kept, asked))


def bill_rows(compared: Sequence[ArmOutcomes]) -> list[tuple[str, list[str]]]:
    """The whole bill: each arm's figures while it worked, and when everything was settled."""
    figures: list[tuple[str, Figure]] = [
        ("Writes, million", lambda o: o.writes / 1e6 or None),
        ("Reads in each hundred operations", lambda o: 100 * o.read_share if o.reads and o.read_share else None),
        ("Slowest second : median second", lambda o: o.slowest_second_share),
        ("While writing: operations/s", lambda o: (o.writes + o.reads) / o.seconds if o.seconds else None),
        ("To the end: operations/s", lambda o: o.settled_ops_s),
        ("Time at work (s)", lambda o: o.seconds),
        ("Time to settle after it (s)", lambda o: o.settle_s),
        ("While writing: wa_app", lambda o: o.ratios.wa_app),
        ("To the end: wa_app", lambda o: o.settled_ratios.wa_app),
        ("While writing: wa_device", lambda o: o.ratios.wa_device),
        ("To the end: wa_device", lambda o: o.settled_ratios.wa_device),
        ("While writing: wa_total", lambda o: o.ratios.wa_total),
        ("To the end: wa_total", lambda o: o.settled_ratios.wa_total),
        ("While writing: flash bytes per operation", lambda o: o.flash_bytes),
        ("To the end: flash bytes per operation", lambda o: o.settled_flash_bytes),
    ]
    rows = [(label, [ranged(over(each, figure)) for each in compared]) for label, figure in figures]
    return [row for row in rows if any(cell != NOTHING for cell in row[1])]


def ranged(found: Spread | None) -> str:
    """A figure with its spread over repetitions."""
    if found is None:
        return NOTHING
    text = number(found.median)
    return text if found.count == 1 else f"{text} ({number(found.low)}–{number(found.high)})"
