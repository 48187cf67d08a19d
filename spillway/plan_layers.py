"""The layers of a plan, and what they come to for each run: what stands above the arms, an arm or a preparation, a
point of the sweep, and what the command line sets."""

import copy
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from spillway.dotted import flatten, key_parts, overlay, put, undotted
from spillway.plan_effects import Said, check_layer, check_phases, lost
from spillway.sweep import Point

Document = dict[str, Any]
Overrides = dict[str, tuple[list[str], Any]]  # by what asked for them

NOT_INHERITED = ("kept", "phases")  # by a preparation, from what stands above it; but kept.directory is
_OF_ARMS = ("name", "of", "point")  # keys of an arm that say which it is


def arm_document(
    shared: Document, own: Document, values: Mapping[str, Any], overrides: Overrides, label: str
) -> Document:
    """An arm with ``values``, those of its point by dotted key. Raises SpillwayError."""
    merged = overlay(copy.deepcopy(shared), undotted(copy.deepcopy(own)))
    for key, value in values.items():
        put(merged, key_parts(key), value, f"{label}{key}")
    for asked, (parts, value) in overrides.items():
        put(merged, parts, value, asked)
    return merged


def preparation_document(
    shared: Document, own: Document, values: Mapping[str, Any], overrides: Overrides, label: str
) -> Document:
    """A preparation. What it says itself wins over the point: it may be the same at several. Raises SpillwayError."""
    merged = copy.deepcopy(inherited(shared))
    for key, value in values.items():
        if key_parts(key)[0] not in NOT_INHERITED:
            put(merged, key_parts(key), value, f"{label}{key}")
    overlay(merged, undotted(copy.deepcopy(own)))
    for asked, (parts, value) in overrides.items():
        if parts[0] not in NOT_INHERITED or parts == ["kept", "directory"]:
            put(merged, parts, value, asked)
    return merged


def inherited(shared: Document) -> Document:
    """Of what stands above a preparation, what it inherits: all but its phases and states. The place of the states is
    one for the whole plan."""
    found = {key: value for key, value in shared.items() if key not in NOT_INHERITED}
    kept = shared.get("kept")
    if isinstance(kept, dict) and "directory" in kept:
        found["kept"] = {"directory": kept["directory"]}
    return found


@dataclass(frozen=True)
class Layers:
    """A plan in its layers, each of which can be read: every run of it has been made once."""

    where: str
    shared: Document
    arms: list[Document]
    preparations: list[Document]
    points: Sequence[Point]
    written_points: Sequence[Point]  # as the plan says them, whatever the command line sets
    overrides: Overrides = field(default_factory=dict)

    def check_written(self) -> None:
        """Refuses a key of the plan as it is written that has an effect in no run. Raises SpillwayError."""
        arms = [self._arms(table, self.written_points, {}) for table in self.arms]
        preparations = [self._preparations(table, self.written_points, {}) for table in self.preparations]
        every = [run for runs in (*arms, *preparations) for run in runs]
        if any(run.is_resolved for run in every):
            return
        check_layer(_keys(self.shared), every, f"{self.where}: ")
        for name, tables, runs in (("arms", self.arms, arms), ("prepare", self.preparations, preparations)):
            for index, (table, its) in enumerate(zip(tables, runs, strict=True)):
                check_layer(_keys(table), its, f"{self._label(name, index)}")
        check_layer(self._axes(), every, f"{self.where}: sweep: ")
        for run in every:
            check_phases(run.phases, f"{self.where}: ")

    def check_given(self, keys: Sequence[str], chosen: Sequence[bool]) -> None:
        """Refuses a key of the command line that has an effect in none of the arms that are run: of those at each
        point in turn, as ``chosen`` says. Raises SpillwayError."""
        runs = [run for run, is_chosen in zip(self._runs(), chosen, strict=True) if is_chosen]
        runs += [run for table in self.preparations for run in self._preparations(table, self.points, self.overrides)]
        check_layer([key for key in keys if not key.startswith("phases.")], runs, "--set ")
        for run in runs:
            check_phases(run.phases, f"{self.where}: ")

    def lost(self) -> list[str]:
        """Keys of the plan that the command line has left without effect, each with why."""
        tables = [self.shared, *self.arms]
        keys = list(dict.fromkeys(key for table in tables for key in _keys(table)))
        written = [run for table in self.arms for run in self._arms(table, self.written_points, {})]
        is_changed = bool(self.overrides) or self.points != self.written_points
        return lost(keys, written, list(self._runs())) if is_changed else []

    def _runs(self) -> Iterator[Said]:
        """The arms at each point in turn, as they are run."""
        for point in self.points:
            for table in self.arms:
                yield from self._arms(table, [point], self.overrides)

    def _arms(self, table: Document, points: Sequence[Point], overrides: Overrides) -> list[Said]:
        own = {key: value for key, value in table.items() if key not in _OF_ARMS}
        recorded = table.get("point", {})
        return [
            _said(arm_document(self.shared, own, point.values or recorded, overrides, self.where)) for point in points
        ]

    def _preparations(self, table: Document, points: Sequence[Point], overrides: Overrides) -> list[Said]:
        return [
            _said(preparation_document(self.shared, table, point.values, overrides, self.where), measures=False)
            for point in points
        ]

    def _axes(self) -> list[str]:
        return [key for key in self.written_points[0].values if not key.startswith("phases.")]

    def _label(self, name: str, index: int) -> str:
        alone = name == "arms" and len(self.arms) == 1
        return f"{self.where}: " if alone else f"{self.where}: {name}[{index}]: "


def _keys(table: Document) -> list[str]:
    return _said(undotted({key: value for key, value in table.items() if key not in _OF_ARMS})).keys


def _said(document: Document, *, measures: bool = True) -> Said:
    phases = document.get("phases")
    flat = flatten({key: value for key, value in document.items() if key != "phases"})
    return Said(flat, phases if isinstance(phases, list) else [], measures)
