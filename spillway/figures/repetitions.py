"""Repetitions of an arm, known by their seeds: those of two arms are held against each other seed by seed."""

from collections import Counter
from collections.abc import Sequence

Repetition = tuple[int, int]  # a seed, and which one of its repetitions: a plan may name a seed more than once


def numbered(seeds: Sequence[int | None]) -> list[Repetition]:
    """The key of each repetition, in turn. One whose seed was not recorded (None) is known by its place."""
    met: Counter[int] = Counter()
    keys = []
    for place, seed in enumerate(seeds, start=1):
        known = place if seed is None else seed
        keys.append((known, met[known]))
        met[known] += 1
    return keys


def counted(some: int, asked: int) -> str:
    """``2 of 3 repetitions``."""
    return f"{some} of {asked} repetition{'s' if asked != 1 else ''}"
