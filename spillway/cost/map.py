"""Maps of what a data set at a throughput costs: systems from measured points, a grid, the winner of each cell.

The formulas are in spillway/cost/formula.py. Here systems are put together, what must not be compared is refused, and
the maps are made: of the systems without extra over-provisioning, of those with it, and, where there are both, of all.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spillway.cost.formula import Cells, Points, Terms, cheapest, drives_worn_out, round_above, winners
from spillway.cost.points import Point, names_of
from spillway.errors import SpillwayError
from spillway.models.arrays import Array
from spillway.quantity import nearest

Document = dict[str, Any]

REACH = 10.0  # of an axis that is not given: times what the largest point holds, or sustains. Source: guess
FINE = 6  # cells of the chart for each step between two cells of the table. Source: guess
WITHOUT, WITH, ALL = "Without extra over-provisioning", "With extra over-provisioning", "All systems"


@dataclass(frozen=True)
class ByDrive:
    """A quantity that may differ by drive: ``--watts 12`` and ``--watts NAME=12``."""

    option: str
    every: float | None = None
    named: Mapping[str, float] = field(default_factory=dict)

    def of(self, drive: str, own: float | None = None) -> float | None:
        """What was given for this drive by name, else its ``own``, else what was given for every drive."""
        if drive in self.named:
            return self.named[drive]
        return own if own is not None else self.every

    def check_names(self, drives: Sequence[str]) -> None:
        """Raises SpillwayError for a name that no drive has."""
        for name in self.named:
            if name not in drives:
                raise SpillwayError(f"{self.option} {name}=…: no point is of a drive {name!r}{nearest(name, drives)}")


@dataclass(frozen=True)
class Conditions:
    """What a drive costs, and for how long."""

    service_years: float
    price: ByDrive
    rated_writes: ByDrive
    watts: ByDrive
    kwh_price: float | None = None
    currency: str = ""
    anyway: bool = False  # take points that are no steady figures, and loads that differ


@dataclass(frozen=True)
class System:
    """An engine with its configuration on a drive, with or without extra over-provisioning."""

    letter: str
    name: str
    extra_op: bool
    drive: str
    measured: list[Point]
    points: Points
    worn_by: str  # what endurance is counted in; empty where it is not known
    marks: tuple[str, ...]

    @property
    def label(self) -> str:
        """The name, with extra over-provisioning where it has some."""
        return f"{self.name}, extra OP" if self.extra_op else self.name


@dataclass(frozen=True)
class Map:
    """Systems over the grid; arrays of (systems, data sets, throughputs)."""

    title: str
    systems: list[System]
    cells: list[Cells]
    wins: NDArray[np.bool_]

    def best(self, at: tuple[int, int]) -> int:
        """The first of the systems that cost least in a cell."""
        return int(np.argmax(self.wins[:, at[0], at[1]]))


@dataclass(frozen=True)
class Costs:
    """The result of a comparison. ``unit``: of totals, a currency or drives."""

    systems: list[System]
    conditions: Conditions
    terms: Terms
    unit: str
    priced: bool
    data_set_bytes: Array
    throughput_ops_s: Array
    maps: list[Map]
    left_out: list[str]


@dataclass(frozen=True)
class Axis:
    """Where the cells of an axis lie: ``cells`` of them between two ends, or the given values. Neither end: found."""

    low: float | None = None
    high: float | None = None
    values: tuple[float, ...] = ()

    def cells(self, largest: float, count: int, times: int = 1) -> Array:
        """Rising values; of a range, each step between two of ``count`` cells is cut into ``times``."""
        if self.values:
            return np.array(sorted(set(self.values)))
        high = round_above(REACH * largest) if self.high is None else self.high
        low = high / max(count, 1) if self.low is None else self.low
        if count < 2 or low == high:
            return np.array([high])
        return np.linspace(low, high, (count - 1) * times + 1)


def costs(
    points: Sequence[Point],
    left_out: Sequence[str],
    conditions: Conditions,
    data_sets: Axis,
    throughputs: Axis,
    cells: int,
    times: int = 1,
) -> Costs:
    """The maps. ``times``: how much finer than ``cells`` to an axis.

    Raises SpillwayError for what cannot be compared, and for a grid of one cell that was not named.
    """
    _check_standing(points, conditions)
    _check_loads(points, conditions)
    terms = Terms(conditions.service_years, conditions.kwh_price or 0.0)
    priced, unit = _unit(points, conditions)
    systems = _systems(points, conditions, priced)
    data = data_sets.cells(max(each.data_set_bytes for each in points), cells, times)
    rates = throughputs.cells(max(each.throughput_ops_s for each in points), cells, times)
    named = bool(data_sets.values and throughputs.values)
    if data.size * rates.size < 2 and not named:
        raise SpillwayError(
            "the grid has one cell, which is no map: give --cells 2 or more, or a second value to --data-sets or "
            "--throughputs."
        )
    plain = [each for each in systems if not each.extra_op]
    extra = [each for each in systems if each.extra_op]
    shown = [(WITHOUT, plain), (WITH, extra), *([(ALL, systems)] if plain and extra else [])]
    maps = [_map(title, those, data, rates, terms) for title, those in shown if those]
    return Costs(systems, conditions, terms, unit, priced, data, rates, maps, list(left_out))


def _check_standing(points: Sequence[Point], conditions: Conditions) -> None:
    marked = [each for each in points if each.marks]
    if marked and not conditions.anyway:
        more = f" (and {len(marked) - 1} more of {len(points)} points)" if len(marked) > 1 else ""
        raise SpillwayError(
            f"{marked[0].where}: {' and in '.join(marked[0].marks)}, so that its throughput is not what a drive "
            f"sustains{more}; run it until it is steady, in real time, or take it as it is with --anyway."
        )


def _check_loads(points: Sequence[Point], conditions: Conditions) -> None:
    other = next((each for each in points if each.load != points[0].load), None)
    if other is not None and not conditions.anyway:
        raise SpillwayError(
            f"{points[0].where} and {other.where} had different loads (pairs or operations), whose throughputs do not "
            "compare; name runs of one load, or take them as they are with --anyway."
        )


def _unit(points: Sequence[Point], conditions: Conditions) -> tuple[bool, str]:
    """Whether there are prices, and what totals are in."""
    drives = names_of(points)
    for each in (conditions.price, conditions.rated_writes, conditions.watts):
        each.check_names(drives)
    without = next((each for each in points if conditions.price.of(each.drive, each.drive_price) is None), None)
    priced = any(conditions.price.of(each.drive, each.drive_price) is not None for each in points)
    if priced and without is not None:
        raise SpillwayError(
            f"{without.where}: its drive {without.drive!r} has no price and others have one; give it by --drive-price "
            f"{without.drive or 'NAME'}=PRICE, or one for all by --drive-price PRICE."
        )
    watts = {each.drive: conditions.watts.of(each.drive, each.watts) for each in points}
    powered = any(each is not None for each in watts.values())
    if (conditions.kwh_price is not None) != powered:
        given, lacking = ("--kwh-price", "--watts") if conditions.kwh_price is not None else ("power", "--kwh-price")
        raise SpillwayError(f"{given} is given without {lacking}: energy costs power x time x price; give both.")
    if powered and None in watts.values():
        drive = next(name for name, each in watts.items() if each is None)
        raise SpillwayError(f"the drive {drive!r} has no power and others have one; give it by --watts {drive}=W.")
    if powered and not priced:
        raise SpillwayError("energy costs money and the drives have no price: give --drive-price too.")
    currencies = {each.currency for each in points if each.drive_price is not None and each.currency}
    if not conditions.currency and len(currencies) > 1:
        raise SpillwayError(
            f"the prices are in {' and '.join(sorted(currencies))}, which do not add: give all by --drive-price."
        )
    if not priced:
        return False, "drives"
    return True, conditions.currency or next(iter(currencies), "")


def _systems(points: Sequence[Point], conditions: Conditions, priced: bool) -> list[System]:
    groups: dict[tuple[str, bool, str], list[Point]] = {}
    for each in points:
        groups.setdefault((each.system, each.extra_op, each.drive), []).append(each)
    return [_system(_letter(index), group, conditions, priced) for index, group in enumerate(groups.values())]


def _letter(index: int) -> str:
    """A, B, …, Z, AA, AB, …"""
    more, own = divmod(index, 26)
    return (_letter(more - 1) if more else "") + chr(ord("A") + own)


def _system(letter: str, group: list[Point], conditions: Conditions, priced: bool) -> System:
    first = group[0]
    wear = [_wear(each, conditions) for each in group]
    prices = [conditions.price.of(each.drive, each.drive_price) for each in group]
    watts = [conditions.watts.of(each.drive, each.watts) for each in group]
    arrays = Points(
        np.array([each.data_set_bytes for each in group]),
        np.array([each.throughput_ops_s for each in group]),
        np.array([spent for spent, _, _ in wear]),
        np.array([endurance for _, endurance, _ in wear]),
        np.array([price if priced and price is not None else 1.0 for price in prices]),
        np.array([watt or 0.0 for watt in watts]),
    )
    by = dict.fromkeys(words for _, _, words in wear if words)
    worn_by = next(iter(by)) if len(by) == 1 and all(words for _, _, words in wear) else ""
    marks = tuple(dict.fromkeys(mark for each in group for mark in each.marks))
    return System(letter, first.system, first.extra_op, first.drive, group, arrays, worn_by, marks)


def _wear(point: Point, conditions: Conditions) -> tuple[float, float, str]:
    """Bytes an operation spends, bytes of endurance, and what both are of; 0 and infinite where they are not known.

    Rated writes that were asked for come first, then flash, then rated writes of the plan or the table.
    """
    asked = conditions.rated_writes.of(point.drive)
    flash, host = point.flash_bytes_per_op, point.host_bytes_per_op
    if asked is None and flash is not None and point.endurance_flash_bytes:
        return flash, point.endurance_flash_bytes, "rated P/E cycles"
    rated = asked if asked is not None else point.endurance_host_bytes
    if rated and host is not None:
        return host, rated, "rated host bytes"
    return 0.0, np.inf, ""


def _map(title: str, systems: list[System], data: Array, rates: Array, terms: Terms) -> Map:
    cells = [cheapest(each.points, data, rates, terms) for each in systems]
    return Map(title, systems, cells, winners(np.stack([each.total for each in cells])))


def years_at_full_rate(system: System) -> Array:
    """Years that one drive lasts at the throughput of each point; infinite where its endurance is not known. Shape of
    the system's points."""
    points = system.points
    a_year = drives_worn_out(points.sustained_ops_s, points.spent_bytes_per_op, points.endurance_bytes, 1.0)
    with np.errstate(divide="ignore"):
        return np.asarray(1.0 / a_year)


# ---------------------------------------------------------------- for programs


def document(found: Costs) -> Document:
    """Systems, grid and maps, for ``--json``; what is not known or not worn out is null."""
    return {
        "unit": found.unit or None,
        "priced": found.priced,
        "service_years": found.terms.service_years,
        "kwh_price": found.conditions.kwh_price,
        "systems": [_of_system(each, found.priced) for each in found.systems],
        "left_out": found.left_out,
        "data_set_bytes": found.data_set_bytes.tolist(),
        "throughput_ops_s": found.throughput_ops_s.tolist(),
        "maps": [{"title": each.title, "cells": _of_cells(found, each)} for each in found.maps],
    }


def _of_system(system: System, priced: bool) -> Document:
    lasting = years_at_full_rate(system)
    rows = zip(system.measured, lasting, system.points.drive_price, system.points.watts, strict=True)
    return {
        "letter": system.letter,
        "name": system.label,
        "drive": system.drive,
        "extra_op": system.extra_op,
        "worn_by": system.worn_by or None,
        "marks": list(system.marks),
        "points": [
            {
                "of": point.where,
                "data_set_bytes": point.data_set_bytes,
                "throughput_ops_s": point.throughput_ops_s,
                "data_set_share": point.data_set_share,
                "over_provisioning": point.over_provisioning,
                "host_bytes_per_op": point.host_bytes_per_op,
                "flash_bytes_per_op": point.flash_bytes_per_op,
                "years_at_full_rate": float(years) if np.isfinite(years) else None,
                "drive_price": float(price) if priced else None,
                "watts": float(watts) or None,
                "scaled_capacity": point.scaled,
                "marks": list(point.marks),
            }
            for point, years, price, watts in rows
        ],
    }


def _of_cells(found: Costs, shown: Map) -> list[Document]:
    cells = []
    for i, data in enumerate(found.data_set_bytes):
        for j, rate in enumerate(found.throughput_ops_s):
            best = shown.best((i, j))
            cell = shown.cells[best]
            cells.append(
                {
                    "data_set_bytes": float(data),
                    "throughput_ops_s": float(rate),
                    "winners": [
                        each.letter for each, won in zip(shown.systems, shown.wins[:, i, j], strict=True) if won
                    ],
                    "of": shown.systems[best].measured[cell.point[i, j]].where,
                    "drives": int(cell.drives[i, j]),
                    "bought": int(cell.bought[i, j]),
                    "purchase": float(cell.purchase[i, j]),
                    "replacement": float(cell.replacement[i, j]),
                    "energy": float(cell.energy[i, j]),
                    "total": float(cell.total[i, j]),
                    "totals": {
                        each.letter: float(own.total[i, j])
                        for each, own in zip(shown.systems, shown.cells, strict=True)
                    },
                }
            )
    return cells


def tallies(shown: Map) -> dict[tuple[str, ...], int]:
    """In how many cells which systems cost least, by their letters; the most frequent first."""
    counts: dict[tuple[str, ...], int] = {}
    flat = shown.wins.reshape(len(shown.systems), -1)
    for column in flat.T:
        who = tuple(each.letter for each, won in zip(shown.systems, column, strict=True) if won)
        counts[who] = counts.get(who, 0) + 1
    return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0])))
