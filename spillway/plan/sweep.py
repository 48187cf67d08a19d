"""Sweeps: the ``[sweep]`` of a plan as points, each of which gives some keys of the plan other values.

A grid is one list of values for each dotted key, and every combination of them is a point. ``[[sweep.NAME]]``, under
any name, is a list of points given one by one, each a table of keys that are set together. Where there are several
lists, or a list and a grid, every combination of all is a point. Every arm of the plan runs at every point. Everything
is checked before anything runs, and the sentence of a refusal names the axis and the value.
"""

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from spillway.errors import SpillwayError
from spillway.plan.dotted import pairs
from spillway.plan.keys import ARM_KEYS, MOST_NUMBER, OPEN_TABLES, PHASE_KEYS, PLAN_KEYS
from spillway.quantity import human_bytes, nearest, parse_size

Document = dict[str, Any]

MOST_POINTS = 10_000  # a plan with more is a slip: at a second each they would take hours. Source: guess


@dataclass(frozen=True)
class Point:
    """One point of a sweep: the values of its keys, and its name for people. Without a sweep there is one, empty."""

    values: dict[str, Any] = field(default_factory=dict)  # by dotted key
    name: str = ""


@dataclass(frozen=True)
class Axis:
    """A key that differs between points, its values in the plan's order, and the keys that always change with it."""

    key: str
    values: tuple[Any, ...]
    along: tuple[str, ...] = ()


def sweep_points(table: Any, overrides: Mapping[str, Any], where: str) -> list[Point]:
    """The points of a plan's ``sweep`` table; one without values where there is no sweep.

    ``overrides`` are values by dotted key that ``--set`` gave: on a grid's axis one takes the place of all its values
    (a list: of the list), in points it takes the place of each point's own. Raises SpillwayError.
    """
    if table is None:
        return [Point()]
    if not isinstance(table, dict) or not table:
        raise SpillwayError(
            f"{where}: sweep is {table!r}; it takes a table of keys and their values, such as "
            '"load.value_bytes" = [100, 1024].'
        )
    lists = {name: value for name, value in table.items() if is_list_of_points(name, value)}
    axes = [_listed(name, value, overrides, where) for name, value in lists.items()]
    named = {key for axis in axes for key in axis[0].values if axis[0].name}
    grid = _grid({name: value for name, value in table.items() if name not in lists}, overrides, where)
    axes += [[Point({key: value}) for value in values] for key, values in grid.items()]
    _check_one_owner([key for axis in axes for key in axis[0].values], where)
    if math.prod(len(axis) for axis in axes) > MOST_POINTS:
        count = math.prod(len(axis) for axis in axes)
        raise SpillwayError(f"{where}: sweep has {count} points; a plan takes {MOST_POINTS} at most.")
    combined = [
        Point(
            {k: v for each in choice for k, v in each.values.items()},
            ", ".join(each.name for each in choice if each.name),
        )
        for choice in itertools.product(*axes)
    ]
    _check_apart(combined, where)
    names = short_names(list(combined[0].values))
    return [Point(each.values, _name(each, named, names)) for each in combined]


def is_list_of_points(name: str, value: Any) -> bool:
    """Whether a key of ``[sweep]`` is a list of points, and not the values of an axis."""
    listed = isinstance(value, list) and bool(value) and all(isinstance(each, dict) for each in value)
    return name == "points" or (listed and "." not in name)


def _name(point: Point, named: set[str], names: Mapping[str, str]) -> str:
    """``value_bytes 16, write_buffer_size 4MiB``; the name of a point in a list stands for what it sets."""
    parts = [point.name] if point.name else []
    parts += [f"{names[k]} {words_of(v)}" for k, v in point.values.items() if k not in named]
    return ", ".join(parts)


def _grid(table: Document, overrides: Mapping[str, Any], where: str) -> dict[str, list[Any]]:
    grid: dict[str, list[Any]] = {}
    for key, values in _by_dotted_key(table, f"{where}: sweep").items():
        if not isinstance(values, list) or not values:
            raise SpillwayError(f"{where}: sweep: {key} is {values!r}; an axis takes a list of values, such as [1, 2].")
        chosen = overrides.get(key, values)
        chosen = chosen if isinstance(chosen, list) else [chosen]
        if not chosen:
            raise SpillwayError(f"{where}: sweep: --set leaves the axis {key} no value; give it one.")
        grid[key] = [_checked(key, value, f"{where}: sweep: {key}[{index}]") for index, value in enumerate(chosen)]
    return grid


def _listed(of: str, points: Any, overrides: Mapping[str, Any], where: str) -> list[Point]:
    if not isinstance(points, list) or not points or not all(isinstance(each, dict) for each in points):
        raise SpillwayError(f"{where}: sweep.points is a list of tables: write [[sweep.points]] above each.")
    found = []
    for index, table in enumerate(points):
        label = f"{where}: sweep.{of}[{index}]"
        own = dict(table)
        name = own.pop("name", "")
        if not isinstance(name, str):
            raise SpillwayError(f"{label}: name is {name!r}; it takes a text in quotes.")
        values = _by_dotted_key(own, label)
        if not values:
            raise SpillwayError(f'{label} sets nothing; give it a key and a value, such as "load.num" = 1000.')
        for key in values.keys() & overrides.keys():
            if isinstance(overrides[key], list):
                raise SpillwayError(f"{where}: --set {key}: each of sweep.{of} has one value of it; give one value.")
            values[key] = overrides[key]
        found.append(Point({key: _checked(key, value, f"{label}: {key}") for key, value in values.items()}, name))
    for index, point in enumerate(found):
        missing = [key for key in found[0].values if key not in point.values]
        extra = [key for key in point.values if key not in found[0].values]
        if missing or extra:
            one, other = (index, 0) if missing else (0, index)
            raise SpillwayError(
                f"{where}: sweep.{of}[{one}] does not set {[*missing, *extra][0]}, which sweep.{of}[{other}] does: "
                "all points of a list set the same keys."
            )
    if any(bool(point.name) != bool(found[0].name) for point in found):
        raise SpillwayError(f"{where}: sweep.{of}: some points have a name and some have none; name all or none.")
    return found


def _by_dotted_key(table: Document, where: str) -> dict[str, Any]:
    """The axes by dotted key, whether they were written so, in quotes, or as nested tables."""
    found: dict[str, Any] = {}
    for key, value in pairs(table):
        if key in found:
            raise SpillwayError(f"{where}: {key} is there twice, in quotes and without; leave one.")
        found[key] = value
    return found


def _checked(key: str, value: Any, where: str) -> Any:
    """The value as it was written, where the key and its type are right."""
    if key in PLAN_KEYS or key.split(".")[0] in ("arms", "sweep"):
        raise SpillwayError(f"{where}: {key} belongs to the whole plan and cannot be swept.")
    if key in ARM_KEYS:
        ARM_KEYS[key].check(value, where)
    elif key.startswith("phases."):
        last = key.rpartition(".")[2]
        if last not in PHASE_KEYS or key.count(".") != 2:
            raise SpillwayError(
                f"{where}: {key} is no key of a phase: write phases.NAME.KEY or phases.INDEX.KEY"
                f"{nearest(last, PHASE_KEYS)}"
            )
        PHASE_KEYS[last].check(value, where)
    elif not any(key.startswith(table + ".") for table in OPEN_TABLES):
        raise SpillwayError(f"{where}: {key} is not a key of a plan{nearest(key, ARM_KEYS)}")
    elif isinstance(value, dict | list):
        raise SpillwayError(f"{where} is {value!r}; it takes a text, a number or true or false.")
    return value


# Two names of one value: what ``drive.capacity`` sets is a key of the preset.
_SAME = {"drive.set.capacity.capacity_bytes": "drive.capacity"}


def _check_one_owner(keys: Sequence[str], where: str) -> None:
    """No two axes may set one value; by index and by name a phase can be named twice, which shows when it is set."""
    seen: dict[str, str] = {}
    for key in keys:
        same = _SAME.get(key, key)
        if same in seen:
            both = f"two axes set {key}" if seen[same] == key else f"{seen[same]} and {key} set one value"
            raise SpillwayError(f"{where}: sweep: {both}: leave one of them out.")
        seen[same] = key


def _check_apart(points: Sequence[Point], where: str) -> None:
    seen: dict[str, int] = {}
    for index, point in enumerate(points):
        text = repr(sorted(point.values.items()))
        if text in seen:
            said = ", ".join(f"{key} = {value!r}" for key, value in point.values.items())
            raise SpillwayError(f"{where}: sweep has one point twice: {said}.")
        seen[text] = index


def check_arm(keys: Sequence[str], own: Document, label: str) -> None:
    """Raises SpillwayError for an arm that sets what the sweep sets: which of the two holds would be a guess."""
    theirs = set(_by_dotted_key(own, label.rstrip(": ")))
    for key in keys:
        if key in theirs:
            raise SpillwayError(f"{label}{key} is an axis of the sweep; leave it out of the arm or out of the sweep.")


def check_overrides(keys: Sequence[str], overrides: Mapping[str, Any], where: str) -> None:
    """Raises SpillwayError for a ``--set`` that would replace a whole table of which an axis sets a part, or the sweep
    itself."""
    for key in overrides:
        if key == "sweep" or key.startswith("sweep."):
            raise SpillwayError(f"{where}: --set {key}: name the axis's own key, such as load.value_bytes=[16, 100].")
        for axis in keys:
            if axis.startswith(key + ".") or (key != axis and _SAME.get(key, key) == _SAME.get(axis, axis)):
                raise SpillwayError(f"{where}: --set {key} would set the axis {axis} too; name that key.")


def short_names(keys: Sequence[str]) -> dict[str, str]:
    """For each dotted key the fewest of its last parts that tell it from the others."""
    names = {}
    for key in keys:
        parts = key.split(".")
        for count in range(1, len(parts) + 1):
            name = ".".join(parts[-count:])
            if not any(other != key and (other == name or other.endswith("." + name)) for other in keys):
                break
        names[key] = name
    return names


def words_of(value: Any) -> str:
    """A value of an axis as it stands in a name."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return f"{value:g}" if isinstance(value, float) else str(value)


def tick(key: str, value: Any) -> str:
    """A value as a tick label of its axis; bytes get a unit where the key ends in a name of bytes."""
    last = key.rpartition(".")[2]
    if isinstance(value, int) and not isinstance(value, bool):
        in_bytes = value >= 1024 and ("bytes" in last or "size" in last or last == "capacity")
        return human_bytes(value).replace(".0 ", " ") if in_bytes else f"{value:,}"
    return words_of(value)


def axes_of(points: Sequence[Mapping[str, Any]]) -> list[Axis]:
    """The axes that points lie on, from the points alone; a key with one value is none.

    A key whose value follows from an earlier axis's (``load.num`` from ``load.value_bytes``) is no axis of its own; it
    is in that axis's ``along``.
    """
    axes: list[Axis] = []
    for key in dict.fromkeys(key for point in points for key in point):
        values = _distinct(point.get(key) for point in points)
        if len(values) < 2:
            continue
        leader = next((i for i, axis in enumerate(axes) if _follows(points, axis.key, key)), None)
        if leader is None:
            axes.append(Axis(key, values))
        else:
            axes[leader] = Axis(axes[leader].key, axes[leader].values, (*axes[leader].along, key))
    return axes


def _distinct(values: Any) -> tuple[Any, ...]:
    return tuple({repr(value): value for value in values if value is not None}.values())


def _follows(points: Sequence[Mapping[str, Any]], leader: str, key: str) -> bool:
    """Whether each value of ``leader`` comes with one value of ``key`` only."""
    seen: dict[str, str] = {}
    return all(seen.setdefault(repr(p.get(leader)), repr(p.get(key))) == repr(p.get(key)) for p in points)


def place_of(value: Any) -> float | None:
    """Where a value stands on a numeric axis: a number, or a size in bytes; None for any other text."""
    if isinstance(value, bool):
        return None
    if isinstance(value, int | float):
        return float(value) if abs(value) < MOST_NUMBER else None
    try:
        return float(parse_size(value, "value"))
    except SpillwayError:
        return None
