"""Compares runs: for every metric the effect with its interval, or why runs are not ranked."""

from spillway.compare.metrics import METRICS
from spillway.compare.sides import read_sides
from spillway.compare.standing import KINDS
from spillway.compare.verdicts import compare

__all__ = ["KINDS", "METRICS", "compare", "read_sides"]
