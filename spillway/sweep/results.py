"""What became of each cell of a sweep: for the table of all cells, as CSV and JSON.

Columns of cells.csv: the cell's address; its arm, repetition (from 1) and seeds; a column for each axis of the sweep;
how it ended (``done``, ``drive full``, ``failed``, ``not run``), after how many attempts of this command (0: it was
done before), where, in how many seconds, and why it failed; then its figures, empty where there are none.
"""

import csv
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from spillway.native.process import build_sha256
from spillway.plan.document import Plan
from spillway.rundir.directory import write_json, write_text
from spillway.sweep.cell import Cell
from spillway.sweep.job import CELLS, FAILED, Answer
from spillway.version import __version__

Document = dict[str, Any]

State = Literal["done", "drive full", "failed", "not run"]

FIGURES = (
    *("throughput_ops_s", "user_mb_s", "duration_s", "operations", "wa_app", "wa_device", "wa_total"),
    *("space_amplification", "steady"),
)
LATENCIES = ("mean", "p50", "p99", "p99_9", "max")  # of the columns latency_…_us


@dataclass
class Result:
    """What became of the cells with one address."""

    state: State = "not run"
    attempts: int = 0  # of this command
    answer: Answer = field(default_factory=lambda: Answer("interrupted"))  # the last one
    figures: Document = field(default_factory=dict)  # the arm's object in summary.json

    @property
    def why(self) -> str:
        """Why it failed; "" where it did not."""
        return self.answer.why if self.state in ("failed", "drive full") else ""


def directory_of(cell: Cell, result: Result) -> str:
    """The run directory of a cell below the sweep's; "" where there is none."""
    parts = {"done": CELLS, "drive full": CELLS, "failed": FAILED if result.figures else ""}
    part = parts.get(result.state, "")
    return f"{part}/{cell.address}" if part else ""


def row_of(cell: Cell, result: Result) -> Document:
    """A row of cells.csv."""
    figures, latency = result.figures, result.figures.get("latency_us") or {}
    stalls, lasting = figures.get("stalls") or {}, figures.get("lifetime") or {}
    return {
        "cell": cell.address,
        "arm": cell.arm.of or cell.arm.name,
        "repetition": cell.repetition + 1,
        "seeds": " ".join(map(str, cell.plan.seeds)),
        **cell.arm.point,
        "state": result.state,
        "attempts": result.attempts,
        "host": result.answer.host,
        "seconds": round(result.answer.seconds, 3) if result.answer.host else None,
        "why": result.why,
        **{name: figures.get(name) for name in FIGURES},
        **{f"latency_{name}_us": latency.get(name) for name in LATENCIES},
        "stall_s": stalls.get("seconds"),
        "flash_bytes_per_operation": lasting.get("flash_bytes_per_operation"),
        "directory": directory_of(cell, result),
    }


def write_results(
    out: Path, plan: Plan, cells: Sequence[Cell], results: Mapping[str, Result], command: list[str]
) -> None:
    """Writes cells.csv and sweep.json, each whole or not at all. Raises SpillwayError where they cannot be written."""
    rows = [row_of(cell, results[cell.address]) for cell in cells]
    text = io.StringIO()
    writer = csv.DictWriter(text, list(dict.fromkeys(name for row in rows for name in row)), restval="")
    writer.writeheader()
    writer.writerows(rows)
    write_text(out / "cells.csv", text.getvalue())
    write_json(out / "sweep.json", _document(plan, cells, results, command))


def _document(plan: Plan, cells: Sequence[Cell], results: Mapping[str, Result], command: list[str]) -> Document:
    return {
        "spillway_sweep": 1,  # the version of this layout
        "plan": plan.name,
        "plan_file": plan.path.name,
        "command": command,
        "versions": {"spillway": __version__, "build_sha256": build_sha256()},
        "complete": all(results[cell.address].state == "done" for cell in cells),
        "cells": [_cell_document(cell, results[cell.address]) for cell in cells],
    }


def _cell_document(cell: Cell, result: Result) -> Document:
    return {
        "name": cell.name,
        "arm": cell.arm.of or cell.arm.name,
        "point": cell.arm.point,
        "seeds": cell.plan.seeds,
        "address": cell.address,
        "state": result.state,
        "attempts": result.attempts,
        "why": result.why or None,
        "host": result.answer.host or None,
        "directory": directory_of(cell, result) or None,
    }
