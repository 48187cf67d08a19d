"""A figure that is known to within something: its value and its 95 % interval."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Interval:
    """``low`` and ``high`` enclose the true value in 95 of 100 measurements made this way."""

    value: float
    low: float
    high: float
