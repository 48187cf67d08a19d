"""A suite's directory as data frames: its plans, the verdicts on its claims, and the arms of all of its runs."""

import csv
import os
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from spillway.errors import SpillwayError
from spillway.frames.documents import read_head
from spillway.frames.run import RunFrames, arm_row, read_run
from spillway.frames.tables import frame_of
from spillway.quantity import nearest
from spillway.rundir.directory import read_figures

if TYPE_CHECKING:
    import pandas as pd

Document = dict[str, Any]

KNOWN_LAYOUT = 1  # of suite.json
CLAIMS = ("claim", "statement", "published", "ours", "basis", "verdict", "why")


@dataclass(frozen=True, eq=False, repr=False)
class SuiteFrames:
    """A suite that was run. Every table is a data frame, made when it is first used."""

    path: Path
    document: Document  # suite.json

    @property
    def name(self) -> str:
        """Of the suite."""
        return str(self.document.get("suite") or self.path.name)

    @cached_property
    def plans(self) -> "pd.DataFrame":
        """A row for each plan: its state, such as ``done`` or ``not run``, and why it failed."""
        rows = [
            {"plan": name, "state": plan.get("state"), "failure": plan.get("failure"), "reported": plan.get("reported")}
            | {"settings": " ".join(map(str, plan.get("settings") or []))}
            for name, plan in self._plans.items()
        ]
        return frame_of(rows, ("plan", "state", "failure", "reported", "settings"))

    @cached_property
    def arms(self) -> "pd.DataFrame":
        """A row for each arm of each plan that has a run directory which can be read; ``state`` is the plan's, and
        points of sweeps are those of the scale that was run. Raises SpillwayError where a run that is done is
        damaged."""
        rows = [
            {"plan": name, "state": str(self._plans[name].get("state"))} | arm_row(arm.name, arm.summary)
            for name in self._plans
            if self._is_there(name)
            for arm in read_figures(self.path / name).arms
        ]
        return frame_of(rows, ("plan", "state", "arm"))

    @cached_property
    def claims(self) -> "pd.DataFrame":
        """A row for each claim: what is published, what was measured, both as texts, and the verdict. Empty where the
        suite has no claims, or none of its runs is reported yet. Raises SpillwayError where claims.csv is damaged."""
        return frame_of(_claims(self.path / "claims.csv"), CLAIMS)

    def run(self, plan: str) -> RunFrames:
        """The run of a plan. Raises SpillwayError where there is none, or it is damaged."""
        if plan not in self._plans:
            raise SpillwayError(f"{self.path}: it has no plan {plan!r}{nearest(plan, self._plans)}")
        return read_run(self.path / plan)

    @property
    def tables(self) -> tuple[str, ...]:
        """The names of the tables, the one that is exported first."""
        return ("arms", "plans", "claims")

    @property
    def _plans(self) -> Mapping[str, Document]:
        plans: Mapping[str, Document] = self.document["plans"]
        return plans

    def _is_there(self, plan: str) -> bool:
        """What is damaged is so by its state too, and has no figures."""
        return self._plans[plan].get("state") != "damaged" and os.path.lexists(self.path / plan / "summary.json")

    def __repr__(self) -> str:
        """In words."""
        done = sum(plan.get("state") == "done" for plan in self._plans.values())
        return f"SuiteFrames({str(self.path)!r}: {self.name}, {done} of {len(self._plans)} plans done)"

    def _repr_html_(self) -> str:
        """Its plans, as a notebook shows them."""
        from html import escape

        return f"<p>{escape(repr(self))}</p>{self.plans.to_html(index=False, na_rep='–')}"


def _claims(path: Path) -> list[Document]:
    """The rows of claims.csv, none where there is no such file. Raises SpillwayError where it is damaged."""
    try:
        with path.open(encoding="utf-8", newline="") as file:
            lines = list(file)
            reader = csv.DictReader(lines, strict=True)
            rows = list(reader)
        if tuple(reader.fieldnames or ()) != CLAIMS or any(None in row or None in row.values() for row in rows):
            raise ValueError("its columns are others")
        if not lines[-1].endswith("\n"):
            raise ValueError("it was cut off in its last line")
    except FileNotFoundError:
        return []
    except OSError as error:
        why = (error.strerror or str(error)).lower()
        raise SpillwayError(f"{path}: the claims cannot be read: {why}; run the suite again.") from error
    except (ValueError, csv.Error) as error:
        raise SpillwayError(f"{path}: this is no list of claims ({error}); run the suite again.") from error
    return rows


def _is_plan(plan: Any) -> bool:
    return isinstance(plan, dict) and isinstance(plan.get("settings") or [], list)


def read_suite(path: str | Path) -> SuiteFrames:
    """A directory as `spillway suite` leaves it. Raises SpillwayError where ``path`` is none, or suite.json is damaged
    or of a later version."""
    directory = Path(path)
    file = directory / "suite.json"
    document = read_head(file, "spillway_suite", KNOWN_LAYOUT, "suite", "spillway suite NAME")
    plans = document.get("plans")
    if not isinstance(plans, dict) or not all(map(_is_plan, plans.values())):
        raise SpillwayError(f"{file}: this is no list of a suite's plans; run the suite again.")
    return SuiteFrames(directory, document)
