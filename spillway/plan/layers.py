"""The layers of a plan and their result for each run: keys above the arms, an arm's or a preparation's, a point's of
the sweep, and the command line's."""

import copy
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from spillway.errors import SpillwayError
from spillway.plan.dotted import flatten, key_parts, overlay, parse_override, put, undotted
from spillway.plan.effects import RunKeys, WithoutEffect, check_layer, keys_without_effect, lost, why_without_effect
from spillway.plan.keys import OPEN_TABLES
from spillway.plan.sweep import Point

Document = dict[str, Any]
Overrides = dict[str, tuple[list[str], Any]]  # by the option that gave them
Runs = Callable[[Document, Sequence[Point], Overrides], list[RunKeys]]  # of a table at points

NOT_INHERITED = ("kept", "phases")  # by a preparation, from what stands above it; but kept.directory is
_OF_ARMS = ("name", "of", "point")  # keys of an arm that say which it is


def arm_document(
    shared: Document, own: Document, values: Mapping[str, Any], overrides: Overrides, label: str
) -> Document:
    """An arm with ``values``, those of its point by dotted key. Raises SpillwayError."""
    merged = overlay(copy.deepcopy(shared), undotted(copy.deepcopy(own), label.removesuffix(": ")))
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
    overlay(merged, undotted(copy.deepcopy(own), label.removesuffix(": ")))
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
    directory: Path  # that paths of the plan are relative to
    shared: Document
    arms: list[Document]
    preparations: list[Document]
    points: Sequence[Point]
    written_points: Sequence[Point]  # as the plan says them, whatever the command line sets
    overrides: Overrides = field(default_factory=dict)

    def check_written(self) -> None:
        """Refuses a key of the plan that has an effect in no run, neither as it is written nor as the command line has
        it. Raises SpillwayError."""
        arms = [self._written_and_run(self._arms, table) for table in self.arms]
        preparations = [self._written_and_run(self._preparations, table) for table in self.preparations]
        every = [run for runs in (*arms, *preparations) for run in runs]
        if any(run.is_resolved for run in every):
            return
        keys = _keys(self.shared)
        check_layer([key for key in keys if not _is_of_phase(key)], every, f"{self.where}: ")
        # An arm with phases of its own, like any preparation, has none of those above.
        inherit = [run for table, runs in zip(self.arms, arms, strict=True) if "phases" not in table for run in runs]
        check_layer([key for key in keys if _is_of_phase(key)], inherit, f"{self.where}: ")
        for name, tables, of_tables in (("arms", self.arms, arms), ("prepare", self.preparations, preparations)):
            for index, (table, its) in enumerate(zip(tables, of_tables, strict=True)):
                check_layer(_keys(table), its, f"{self._label(name, index)}")
        check_layer(self.written_points[0].values, every, f"{self.where}: sweep: ")

    def check_given(
        self, given: Overrides, properties: bool, arms: Sequence[bool], preparations: Sequence[bool]
    ) -> None:
        """Refuses what the command line gives, ``given`` by dotted key and ``properties`` of YCSB, if it has an effect
        in nothing that is run: of the arms, and of the preparations, those at each point in turn that are chosen.
        Raises WithoutEffect for keys, else SpillwayError."""
        runs = [run for run, is_chosen in zip(self._runs(), arms, strict=True) if is_chosen]
        pairs = ((table, [point]) for point in self.points for table in self.preparations)
        made = [self._preparations(table, point, self.overrides) for table, point in pairs]
        runs += [run for its, is_chosen in zip(made, preparations, strict=True) if is_chosen for run in its]
        keys = [key for name, (parts, value) in given.items() for key in keys_of(name, parts, value)]
        if idle := keys_without_effect(keys, runs):
            raise WithoutEffect(idle)
        if properties and all(why_without_effect("ycsb", run) for run in runs):
            raise SpillwayError(
                f"{self.where}: -P and -p are for phases of ycsb-load and ycsb-run, and none is run: leave them out, "
                "or add such phases."
            )

    def lost(self) -> list[str]:
        """Keys of the plan that the command line has left without effect, each with why. Raises SpillwayError."""
        written = self._all(self.written_points, {})
        if not self._is_changed or any(run.is_resolved for run in written):
            return []
        tables = [self.shared, *self.arms, *self.preparations]
        keys = [*(key for table in tables for key in _keys(table)), *self.written_points[0].values]
        return lost(list(dict.fromkeys(keys)), written, self._all(self.points, self.overrides))

    def _all(self, points: Sequence[Point], overrides: Overrides) -> list[RunKeys]:
        """Every arm and every preparation at every point."""
        runs = [run for table in self.arms for run in self._arms(table, points, overrides)]
        return runs + [run for table in self.preparations for run in self._preparations(table, points, overrides)]

    def _runs(self) -> Iterator[RunKeys]:
        """The arms at each point in turn, as they are run."""
        for point in self.points:
            for table in self.arms:
                yield from self._arms(table, [point], self.overrides)

    def _written_and_run(self, runs_of: Runs, table: Document) -> list[RunKeys]:
        """The runs of an arm or a preparation as the plan has them, and as the command line has them."""
        written = runs_of(table, self.written_points, {})
        return [*written, *runs_of(table, self.points, self.overrides)] if self._is_changed else written

    @property
    def _is_changed(self) -> bool:
        """Whether the command line sets anything."""
        return bool(self.overrides) or self.points != self.written_points

    def _arms(self, table: Document, points: Sequence[Point], overrides: Overrides) -> list[RunKeys]:
        own = {key: value for key, value in table.items() if key not in _OF_ARMS}
        recorded = table.get("point", {})
        return [
            self._record_keys(arm_document(self.shared, own, point.values or recorded, overrides, self.where))
            for point in points
        ]

    def _preparations(self, table: Document, points: Sequence[Point], overrides: Overrides) -> list[RunKeys]:
        return [
            self._record_keys(
                preparation_document(self.shared, table, point.values, overrides, self.where), measures=False
            )
            for point in points
        ]

    def _record_keys(self, document: Document, *, measures: bool = True) -> RunKeys:
        return run_keys_of(document, self.directory, measures=measures)

    def _label(self, name: str, index: int) -> str:
        alone = name == "arms" and len(self.arms) == 1
        return f"{self.where}: " if alone else f"{self.where}: {name}[{index}]: "


def keys_of(name: str, parts: Sequence[str], value: Any) -> list[str]:
    """The dotted keys that a value of the command line sets: of a table or of phases each key in it, else ``name``.
    Raises SpillwayError."""
    is_opened = any(name == table or name.startswith(table + ".") for table in OPEN_TABLES)
    if is_opened or not isinstance(value, dict | list) or (parts[0] == "phases" and len(parts) > 1):
        return [name]
    document: Document = {}
    put(document, list(parts), value, name)
    return run_keys_of(document).keys


def keys_given(override: str) -> list[str]:
    """The dotted keys that a ``key=value`` of the command line sets. Raises SpillwayError."""
    parts, value = parse_override(override)
    return keys_of(".".join(parts), parts, value)


def run_keys_of(document: Document, directory: Path = Path(), *, measures: bool = True) -> RunKeys:
    """The RunKeys of a run's document; its paths are relative to ``directory``."""
    phases = document.get("phases")
    flat = flatten({key: value for key, value in document.items() if key != "phases"})
    return RunKeys(flat, phases if isinstance(phases, list) else [], measures, directory)


def _keys(table: Document) -> list[str]:
    return run_keys_of(undotted({key: value for key, value in table.items() if key not in _OF_ARMS}, "plan")).keys


def _is_of_phase(key: str) -> bool:
    return key.startswith("phases.")
