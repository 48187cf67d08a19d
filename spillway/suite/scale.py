"""The scale of a suite: one factor on every size whose ratio to the data has to stay the same.

Plans say the sizes of the original experiment. The keys that a suite names (numbers of pairs, buffers, files, caches,
the drive's capacity) are multiplied by its factor wherever a plan has them: on top, in an arm, in a phase and on the
axes of its sweep. What is not named (sizes of pairs, blocks, pages, times) stays, and so does what a plan leaves to a
default: a plan of a suite states every size that is to be scaled.
"""

import copy
import re
from dataclasses import dataclass
from fnmatch import fnmatchcase
from fractions import Fraction
from typing import Any

from spillway.errors import SpillwayError
from spillway.plan.sweep import is_list_of_points
from spillway.quantity import parse_size

Document = dict[str, Any]

CAPACITIES = ("drive.capacity", "drive.set.capacity.capacity_bytes", "drive.estimate.capacity", "fs.size")
CAPACITY_UNIT_BYTES = 4096  # of mapping units, and of the host's pages. Source: mapping_unit_bytes of the presets


@dataclass(frozen=True)
class Scale:
    """A factor and the dotted keys that it multiplies; ``*`` in a key stands for anything."""

    factor: Fraction
    keys: tuple[str, ...]

    def applied(self, document: Document, where: str) -> Document:
        """A plan's document with the keys multiplied: whole numbers, at least 1; 0 stays 0; capacities in whole units.

        Raises SpillwayError.
        """
        scaled = copy.deepcopy(document)
        if self.factor != 1:
            self._walk(scaled, "", where)
        return scaled

    def value(self, key: str, value: Any, where: str = "scale") -> Any:
        """One value under its dotted key, multiplied where the key is one of the scale's. Raises SpillwayError for a
        value that is no size."""
        if not self._has(key):
            return value
        if isinstance(value, list):
            return [self._times(each, key, where) for each in value]
        return self._times(value, key, where)

    def _walk(self, table: Document, prefix: str, where: str) -> None:
        for name, value in table.items():
            key = f"{prefix}{name}"
            if key in ("arms", "prepare"):
                self._walk_all(value, "", where)
            elif key == "phases" and isinstance(value, list):
                self._walk_all(value, "phases.0.", where)
            elif key == "sweep" and isinstance(value, dict):
                for points in value.values():
                    self._walk_all(points, "", where)
                grid = {axis: values for axis, values in value.items() if not is_list_of_points(axis, values)}
                self._walk(grid, "", where)
                table[name] = value | grid
            elif isinstance(value, dict):
                self._walk(value, f"{key}.", where)
            else:
                table[name] = self.value(key, value, where)

    def _walk_all(self, tables: Any, prefix: str, where: str) -> None:
        for table in tables if isinstance(tables, list) else []:
            if isinstance(table, dict):  # what is none is refused where the plan is read
                self._walk(table, prefix, where)

    def _has(self, key: str) -> bool:
        return any(fnmatchcase(key, pattern) for pattern in self.keys)

    def _times(self, value: Any, key: str, where: str) -> int:
        size = parse_size(value, f"{where}: {key}, which the suite scales,")
        unit = CAPACITY_UNIT_BYTES if key in CAPACITIES else 1
        return max(1, round(size * self.factor / unit)) * unit if size else 0


class TooSmall(SpillwayError):
    """A plan that can be run at the original's sizes cannot be at this factor. ``why`` ends the sentence."""

    def __init__(self, plan: str, factor: Fraction, why: str) -> None:
        """``plan``: its name."""
        super().__init__(f"the scale {factor_in_words(factor)} is too small for {plan}, give a larger one: {why}")
        self.plan, self.factor, self.why = plan, factor, why


def parse_factor(text: Any, what: str) -> Fraction:
    """A factor of sizes: ``1/64``, ``0.5`` or ``1``; above 0 and at most 1. Raises SpillwayError."""
    written = str(text).replace(" ", "")
    if re.search(r"e[-+]?\d{4,}", written, re.IGNORECASE):  # a fraction of more digits than there is memory
        raise SpillwayError(f"{what} is {text!r}; a scale is above 0 and at most 1, such as 1/64.")
    try:
        factor = Fraction(written)
    except (ValueError, ZeroDivisionError):
        raise SpillwayError(f"{what} is {text!r}, which is no factor: write 1/64 or 0.25.") from None
    if not 0 < factor <= 1:
        raise SpillwayError(f"{what} is {text!r}; a scale is above 0 and at most 1, such as 1/64.")
    return factor


def factor_in_words(factor: Fraction) -> str:
    """A factor for people: ``1/64``."""
    return str(factor)


def checked_keys(keys: Any, what: str) -> tuple[str, ...]:
    """The keys that a scale multiplies, as a tuple; ``what`` names the list in the error. Raises SpillwayError."""
    if not isinstance(keys, list) or not all(isinstance(key, str) and key for key in keys):
        raise SpillwayError(f'{what} is {keys!r}; it takes a list of dotted keys, such as ["load.num"].')
    return tuple(keys)
