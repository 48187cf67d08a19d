"""Claims of the accelerator against its rivals, and whether this run meets them.

A claim stands in the table only when the run holds the arms that it compares. Wanted figures: the largest that KVAccel
publishes (K23), at every equal number of threads here, and this project's own beyond the paper.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from spillway.report.arm_outcomes import (
    ADOC,
    ROCKSDB,
    SPILLWAY,
    ArmOutcomes,
    Figure,
    Outcome,
    Spread,
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
    verdict: str  # met, missed, or in how many of the repetitions


def claims(compared: Sequence[ArmOutcomes], mix: str) -> list[Claim]:
    """Every claim that these arms can decide. ``mix``: the paper's workload, A to D, or an empty text."""
    ours = [each for each in compared if each.handling.system == SPILLWAY]
    found: list[Claim] = []
    for one in ours:
        found += _speed(one, compared, mix)
        found += _evenness(one, compared)
        found += _bill(one, compared)
        found += _best_rival(one, compared, mix)
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
    found = against(one, rival, figure)
    if found is not None:
        kept = sum(1 for value in _pairs(one, rival, figure) if value >= wanted)
        yield Claim(claim, _both(one, rival), f"at least {wanted:g}×", times(found), _verdict(kept, found.count))


def _at_most(claim: str, one: ArmOutcomes, rival: ArmOutcomes, figure: Figure, wanted: float) -> Iterator[Claim]:
    found = against(one, rival, figure)
    if found is not None:
        kept = sum(1 for value in _pairs(one, rival, figure) if value <= wanted)
        yield Claim(claim, _both(one, rival), f"at most {wanted:g}×", times(found), _verdict(kept, found.count))


def _pairs(one: ArmOutcomes, rival: ArmOutcomes, figure: Figure) -> list[float]:
    values = ((figure(a), figure(b)) for a, b in zip(one.outcomes, rival.outcomes, strict=False))
    return [a / b for a, b in values if a is not None and b]


def _both(one: ArmOutcomes, rival: ArmOutcomes) -> str:
    return f"{one.name} : {rival.name}"


def times(found: Spread) -> str:
    """A ratio with its spread over repetitions."""
    text = f"{found.median:.2f}×"
    return text if found.count == 1 else f"{text} ({found.low:.2f} to {found.high:.2f})"


def _verdict(kept: int, count: int) -> str:
    if kept in (0, count):
        return "met" if kept else "missed"
    return f"met in {kept} of {count} runs"


def _evenness(one: ArmOutcomes, compared: Sequence[ArmOutcomes]) -> Iterator[Claim]:
    """No second without an operation; a worst write far below that of RocksDB without its slowdown."""
    zeros = [each.zero_seconds for each in one.outcomes if each.zero_seconds is not None]
    if zeros:
        text = ", ".join(map(str, zeros))
        yield Claim("seconds without an operation", one.name, "none", text, _verdict(zeros.count(0), len(zeros)))
    for rival in _equals(one, compared, ROCKSDB, slowdown=False):
        found, own, theirs = (
            against(one, rival, lambda o: o.write_max_us),
            over(one, lambda o: o.write_max_us),
            over(rival, lambda o: o.write_max_us),
        )
        if found is not None and own is not None and theirs is not None:
            kept = sum(1 for value in _pairs(one, rival, lambda o: o.write_max_us) if value < 0.1)
            measured = f"{times(found)}: {micros(own.median)} : {micros(theirs.median)}"
            yield Claim("worst write", _both(one, rival), "below 0.1×", measured, _verdict(kept, found.count))


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


def _best_rival(one: ArmOutcomes, compared: Sequence[ArmOutcomes], mix: str) -> Iterator[Claim]:
    """Against the best of all other systems with as many threads, which may be another one in each repetition."""
    rivals = [
        each for each in compared if each.handling.system != SPILLWAY and each.handling.threads == one.handling.threads
    ]
    if len(rivals) < 2:
        return
    arms = f"{one.name} : the best rival"
    if mix == "A":
        ratios = _ratios(one, rivals, lambda o: o.write_ops_s, max)
        yield from _counted(
            "write throughput", arms, f"at least {BEST_RIVALS_GAIN:g}×", ratios, BEST_RIVALS_GAIN.__le__
        )
    figures: tuple[tuple[str, Figure], ...] = (
        ("worst write", lambda o: o.write_max_us),
        *_BILL,
    )
    for claim, figure in figures:
        yield from _counted(claim, arms, "at most 1×", _ratios(one, rivals, figure, min), (1.0).__ge__)


def _ratios(one: ArmOutcomes, rivals: Sequence[ArmOutcomes], figure: Figure, pick: Callable[..., float]) -> list[float]:
    pairs = zip(one.outcomes, best_of(rivals, figure, pick), strict=False)
    return [own / best for outcome, best in pairs if best and (own := figure(outcome)) is not None]


def _counted(
    claim: str, arms: str, wanted: str, ratios: Sequence[float], holds: Callable[[float], bool]
) -> Iterator[Claim]:
    """A claim on ratios, one for each repetition; none where there are no ratios."""
    found = spread(ratios)
    if found is not None:
        kept = sum(1 for ratio in ratios if holds(ratio))
        yield Claim(claim, arms, wanted, times(found), _verdict(kept, found.count))


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
        kept = sum(1 for ratio in ratios if ratio >= 1)
        yield Claim("efficiency (K2)", ours[0].name, wanted, measured, _verdict(kept, len(ratios)))


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
