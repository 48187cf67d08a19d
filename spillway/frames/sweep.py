"""The directory of `spillway sweep` as data frames: its cells, each with its state and the figures of its run.

Read from its files alone: ``sweep.json`` lists the cells, and each that has recorded something names its run directory.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from spillway.errors import SpillwayError
from spillway.frames.documents import read_head
from spillway.frames.run import RunFrames, arm_row, read_run
from spillway.frames.tables import frame_of
from spillway.rundir.directory import is_directory, read_figures

if TYPE_CHECKING:
    import pandas as pd

    from spillway.frames.charts import Charts

Document = dict[str, Any]

KNOWN_LAYOUT = 1  # of sweep.json
COLUMNS = ("cell", "name", "arm", "seeds", "state", "attempts", "host", "why")
GATHERED = "run"  # all cells as one run directory


@dataclass(frozen=True, eq=False, repr=False)
class SweepFrames:
    """A sweep in cells: an arm at one point, with one seed. Every table is a data frame, made when it is first used."""

    path: Path
    document: Document  # sweep.json

    @property
    def name(self) -> str:
        """Of the plan."""
        return str(self.document.get("plan") or self.path.name)

    @property
    def complete(self) -> bool:
        """Whether every cell is done."""
        return bool(self.document.get("complete"))

    @cached_property
    def cells(self) -> "pd.DataFrame":
        """A row for each cell: its address, arm and seeds, the axes' values, its state (``done``, ``drive full``,
        ``failed`` with ``why``, ``not run``), and the figures of its run, empty where it has none. Raises SpillwayError
        where the run of a cell is missing or damaged."""
        return frame_of([self._row(cell) for cell in self._cells], COLUMNS)

    @cached_property
    def gathered(self) -> RunFrames:
        """All cells as one run, whose arms are the points. Raises SpillwayError where there is none: no cell has
        recorded anything, or the sweep has not come to its end."""
        if not is_directory(self.path / GATHERED):
            raise SpillwayError(
                f"{self.path}: its cells are not gathered: the sweep has not ended, or none has recorded anything; "
                "run the sweep to its end."
            )
        return read_run(self.path / GATHERED)

    def run(self, cell: str) -> RunFrames:
        """The run of a cell, by its address. Raises SpillwayError where there is none, or it is damaged."""
        found = next((each for each in self._cells if each.get("address") == cell), None)
        if found is None:
            raise SpillwayError(f"{self.path}: it has no cell {cell!r}; `cells` lists them.")
        if not found.get("directory"):
            raise SpillwayError(f"{self.path}: cell {cell} has no run ({found.get('why') or found.get('state')}).")
        return read_run(self._directory(found))

    @property
    def tables(self) -> tuple[str, ...]:
        """The names of the tables."""
        return ("cells",)

    def charts(self) -> "Charts":
        """Each figure over an axis of the sweep. Raises SpillwayError where no cell has recorded anything."""
        return self.gathered.charts()

    @property
    def _cells(self) -> Sequence[Document]:
        cells: Sequence[Document] = self.document["cells"]
        return cells

    def _directory(self, cell: Document) -> Path:
        return self.path / str(cell["directory"])

    def _row(self, cell: Document) -> Document:
        seeds = " ".join(map(str, cell.get("seeds") or []))
        row = {"cell": cell.get("address"), "name": cell.get("name"), "arm": cell.get("arm"), "seeds": seeds}
        row |= {name: cell.get(name) for name in ("state", "attempts", "host", "why")} | (cell.get("point") or {})
        if not cell.get("directory"):
            return row
        arms = read_figures(self._directory(cell)).arms
        figures = arm_row(str(cell.get("arm")), arms[0].summary) if arms else {}
        return row | {key: value for key, value in figures.items() if key not in row} | {"directory": cell["directory"]}

    def __repr__(self) -> str:
        """In words."""
        done = sum(cell.get("state") == "done" for cell in self._cells)
        return f"SweepFrames({str(self.path)!r}: {self.name}, {done} of {len(self._cells)} cells done)"

    def _repr_html_(self) -> str:
        """Its cells, as a notebook shows them."""
        from html import escape

        of_axes = [str(name) for name in self.cells if "." in str(name)]
        shown = ("arm", *of_axes, "state", "why", "throughput_ops_s", "wa_app", "wa_device", "wa_total", "steady")
        table = self.cells[[name for name in shown if name in self.cells]].to_html(index=False, na_rep="–")
        return f"<p>{escape(repr(self))}</p>{table}"


def _is_cell(cell: Any) -> bool:
    return (
        isinstance(cell, dict)
        and isinstance(cell.get("seeds") or [], list)
        and isinstance(cell.get("point") or {}, dict)
        and isinstance(cell.get("directory") or "", str)
    )


def read_sweep(path: str | Path) -> SweepFrames:
    """A directory as `spillway sweep` leaves it, also while it runs. Raises SpillwayError where ``path`` is none, or
    sweep.json is damaged or of a later version."""
    directory = Path(path)
    file = directory / "sweep.json"
    document = read_head(file, "spillway_sweep", KNOWN_LAYOUT, "sweep", "spillway sweep PLAN")
    cells = document.get("cells")
    if not isinstance(cells, list) or not all(map(_is_cell, cells)):
        raise SpillwayError(f"{file}: this is no list of a sweep's cells; run the sweep again.")
    return SweepFrames(directory, document)
