"""The scale of a suite: one factor on everything whose ratio to the data has to stay what it is. A plan that shows
nothing at that factor may have a multiple of it.

Plans say the sizes of the original experiment. The keys that a suite names (numbers of pairs, buffers, files, caches,
the drive's capacity) are multiplied by its factor wherever a plan has them: on top, in an arm, in a phase and on the
axes of its sweep. What is not named (sizes of pairs, blocks, pages, times) stays, and so does what a plan leaves to a
default: a plan of a suite states every size that is to be scaled.
"""

import copy
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from fractions import Fraction
from typing import Any

from spillway.errors import SpillwayError
from spillway.quantity import nearest, parse_size
from spillway.sweep import is_list_of_points

Document = dict[str, Any]

CAPACITIES = ("drive.capacity", "drive.set.capacity.capacity_bytes", "drive.estimate.capacity", "fs.size")
CAPACITY_UNIT_BYTES = 4096  # of mapping units, and of the host's pages. Source: mapping_unit_bytes of the presets


@dataclass(frozen=True)
class Scale:
    """A factor and the dotted keys that it multiplies; ``*`` in a key stands for anything."""

    factor: Fraction
    keys: tuple[str, ...]
    times: Mapping[str, Fraction] = field(default_factory=dict)  # by plan: its factor is so many times this one

    def of(self, plan: str) -> "Scale":
        """The scale of one plan of the suite: never above the original's size."""
        return replace(self, factor=min(Fraction(1), self.factor * self.times.get(plan, 1)), times={})

    def applied(self, document: Document, where: str) -> Document:
        """A plan's document with the keys multiplied: whole numbers, at least 1; 0 stays 0; capacities in whole units.

        Raises SpillwayError.
        """
        scaled = copy.deepcopy(document)
        if self.factor != 1:
            self._walk(scaled, "", where)
        return scaled

    def value(self, key: str, value: Any, where: str = "scale") -> Any:
        """One value under its dotted key, multiplied where the key is one of the scale's."""
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
            elif key == "phases":
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


def parse_factor(text: Any, what: str) -> Fraction:
    """``1/64``, ``0.5`` or ``1``; above 0 and at most 1."""
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


def checked_times(table: Any, plans: list[str], what: str) -> dict[str, Fraction]:
    """By plan, how many times the suite's factor it is scaled by: 1 or more. Raises SpillwayError."""
    if not isinstance(table, dict):
        raise SpillwayError(f"{what} is {table!r}; it takes a table of plans, such as ycsb = 4.")
    for name, value in table.items():
        if name not in plans:
            raise SpillwayError(f"{what}.{name}: there is no such plan in the suite{nearest(name, plans)}")
        if isinstance(value, bool) or not isinstance(value, int) or value < 1:
            raise SpillwayError(f"{what}.{name} is {value!r}; it takes a whole number of at least 1.")
    return {name: Fraction(value) for name, value in table.items()}


def said(factor: Fraction) -> str:
    """A factor for people: ``1/64``."""
    return str(factor)


def checked_keys(keys: Any, what: str) -> tuple[str, ...]:
    """The list of keys of a scale."""
    if not isinstance(keys, list) or not all(isinstance(key, str) and key for key in keys):
        raise SpillwayError(f'{what} is {keys!r}; it takes a list of dotted keys, such as ["load.num"].')
    return tuple(keys)
