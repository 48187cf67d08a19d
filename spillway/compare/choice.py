"""Which repetitions of two sides are compared, and by what: turns, repetitions, or blocks of one run each.

A repetition that failed or was ended early is in no figure. Steady repetitions and others are never mixed: the kind
that most of both sides share is compared, steady where it is a tie, and the rest is named.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

from spillway.compare.sides import Repetition, Side
from spillway.compare.standing import Difference

TURNS, REPETITIONS, BLOCKS = "turns", "repetitions", "blocks"
FEWEST = 2  # repetitions of each side, for an interval


@dataclass(frozen=True)
class Choice:
    """The repetitions of both sides; in turns the i-th of the one belongs to the i-th of the other.

    ``refused`` is a sentence, where no number of them would do; ``difference``, where they are steady on one side only.
    """

    basis: str = TURNS
    a: list[Repetition] = field(default_factory=list)
    b: list[Repetition] = field(default_factory=list)
    difference: Difference | None = None
    refused: str = ""


def choose(a: Side, b: Side, anyway: bool) -> Choice:
    """The repetitions of two sides that can be compared. ``anyway``: steady ones against others, where there is nothing
    else."""
    for side in (a, b):
        if not side.whole:
            why = side.repetitions[0].why_left_out.rstrip(".")
            return Choice(refused=f"{side.name} has no repetition that ran to its end ({why}); run the plan again.")
    if len(a.whole) == len(b.whole) == 1:
        return _in_classes(BLOCKS, list(zip(a.whole, b.whole, strict=True)), a, b, anyway, 1)
    one = next((side for side in (a, b) if len(side.whole) < FEWEST), None)
    if one is not None:
        other = b if one is a else a
        return Choice(
            refused=f"{one.name} has one repetition that ran to its end and {other.name} has {len(other.whole)}; an "
            "interval from repetitions takes two of each at least, so run it again with --set repetitions=5."
        )
    if a.run.resolve() == b.run.resolve():
        turns = zip(a.repetitions, b.repetitions, strict=False)
        both = [(x, y) for x, y in turns if not x.why_left_out and not y.why_left_out]
        if len(both) < FEWEST:
            return Choice(
                refused=f"{a.name} and {b.name} have fewer than two turns in which both ran to their end; run the plan "
                "again."
            )
        return _in_classes(TURNS, both, a, b, anyway, FEWEST)
    return _apart(a, b, anyway)


def _in_classes(
    basis: str, both: Sequence[tuple[Repetition, Repetition]], a: Side, b: Side, anyway: bool, fewest: int
) -> Choice:
    """Of repetitions that belong together, those that are both steady or both not."""
    classes = [[(x, y) for x, y in both if x.steady == y.steady == steady] for steady in (True, False)]
    chosen = max(classes, key=len)  # the first of two that are as long
    difference = None
    if len(chosen) < fewest:
        difference = _steadiness(a, b)
        if not anyway:
            return Choice(basis, difference=difference)
        chosen = list(both)
    return Choice(basis, [x for x, _ in chosen], [y for _, y in chosen], difference)


def _apart(a: Side, b: Side, anyway: bool) -> Choice:
    """Of repetitions that did not run in turns."""
    classes = [[[each for each in side.whole if each.steady == steady] for side in (a, b)] for steady in (True, False)]
    ours, theirs = max(classes, key=lambda each: min(map(len, each)))
    if min(len(ours), len(theirs)) >= FEWEST:
        return Choice(REPETITIONS, ours, theirs)
    difference = _steadiness(a, b)
    return Choice(REPETITIONS, a.whole, b.whole, difference) if anyway else Choice(REPETITIONS, difference=difference)


def _steadiness(a: Side, b: Side) -> Difference:
    def said(side: Side) -> str:
        steady = sum(each.steady for each in side.whole)
        count = len(side.whole)
        if count == 1:
            return "steady" if steady else "not steady"
        return f"steady in {steady} of {count} repetitions"

    return Difference("steady", "the run", said(a), said(b))


def left_out(side: Side, used: Sequence[Repetition]) -> list[str]:
    """A clause for each repetition that is left out, with the reason."""
    clauses = []
    for number, each in enumerate(side.repetitions, 1):
        if each in used:
            continue
        why = each.why_left_out.rstrip(".")
        if not why and all(other.steady != each.steady for other in used):
            why = f"it is {'steady' if each.steady else 'not steady'}, unlike those compared"
        clauses.append(f"repetition {number} of {side.name} is left out: {why or 'the one beside it in its turn is'}")
    return clauses
