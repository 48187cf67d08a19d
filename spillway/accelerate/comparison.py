"""A program with and without the accelerator, in turns, each time with a fresh database."""

import os
import shutil
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from spillway.accelerate.library import environment, environment_without
from spillway.accelerate.program import Finished, run
from spillway.accelerate.results import parse
from spillway.errors import RunFailed, SpillwayError

PLACEHOLDER = "{db}"
SIDES = ("without", "with")
TAIL_LINES = 5  # of a failed program's output that are shown

OnTurn = Callable[[int, str, Finished], None]
Measured = dict[str, float | None]  # by name, as "throughput fillrandom"


@dataclass(frozen=True)
class Setting:
    """What is compared, and where."""

    command: Sequence[str]  # with PLACEHOLDER where the directory of the database goes
    library: Path
    configuration: str  # of the variable SPILLWAY
    parent: Path  # of the databases
    turns: int
    keeps: bool  # the databases and the programs' output


def compare(setting: Setting, on_turn: OnTurn) -> dict[str, Any]:
    """Runs the program 2 × ``turns`` times; the order of the two sides alternates. Raises SpillwayError: no
    placeholder; RunFailed: a program failed, with the end of its output."""
    if not any(PLACEHOLDER in word for word in setting.command):
        raise SpillwayError(
            f"the program's arguments do not say where its database goes: write {PLACEHOLDER} in the place of its "
            f"directory, as in `db_bench --db={PLACEHOLDER}`."
        )
    try:
        place = Path(tempfile.mkdtemp(prefix="spillway-accelerate-", dir=setting.parent))
    except OSError as error:
        raise SpillwayError(f"cannot make a directory in {setting.parent}: {(error.strerror or '').lower()}.") from None
    runs: list[dict[str, Any]] = []
    try:
        for turn in range(1, setting.turns + 1):
            for side in SIDES if turn % 2 else reversed(SIDES):
                finished = _run_one(setting, place, turn, side)
                on_turn(turn, side, finished)
                runs.append({"turn": turn, "side": side, **_document(finished)})
    finally:
        if not setting.keeps:
            shutil.rmtree(place, ignore_errors=True)
    return {
        "command": list(setting.command),
        "configuration": setting.configuration,
        "turns": setting.turns,
        "directory": str(place) if setting.keeps else None,
        "runs": runs,
        "figures": _figures(runs),
    }


def _run_one(setting: Setting, place: Path, turn: int, side: str) -> Finished:
    database = place / f"{turn}-{side}"
    database.mkdir()
    command = [word.replace(PLACEHOLDER, str(database)) for word in setting.command]
    variables = environment_without(os.environ)
    if side == "with":
        variables = environment(setting.library, setting.configuration, variables)
    finished = run(command, variables, place, place / f"{turn}-{side}.log")
    if finished.exit_code != 0:
        tail = "\n".join(finished.output.splitlines()[-TAIL_LINES:])
        how = f"signal {-finished.exit_code}" if finished.exit_code < 0 else f"exit code {finished.exit_code}"
        raise RunFailed(f"{command[0]} {side} the accelerator ended with {how}:\n{tail}")
    if not setting.keeps:
        shutil.rmtree(database, ignore_errors=True)
    return finished


def _document(finished: Finished) -> dict[str, Any]:
    results = parse(finished.output)
    return {
        "wall_s": finished.wall_s,
        "throughput": results.throughput,
        "worst_write_us": results.worst_write_us,
        "process_bytes_written": finished.process_bytes_written,
        "drive_bytes_written": finished.drive_bytes_written,
        "databases": finished.databases,
    }


def _measured(run: dict[str, Any]) -> Measured:
    values: Measured = {f"throughput {name}": value for name, value in run["throughput"].items()}
    for name in ("wall_s", "worst_write_us", "process_bytes_written", "drive_bytes_written"):
        values[name] = run[name]
    return values


def _figures(runs: Sequence[dict[str, Any]]) -> dict[str, dict[str, float | None]]:
    """By figure: the median of each side's turns and their ratio, with / without."""
    names = list(dict.fromkeys(name for run in runs for name in _measured(run)))
    figures: dict[str, dict[str, float | None]] = {}
    for name in names:
        row: dict[str, float | None] = {side: _median(runs, side, name) for side in SIDES}
        without, with_it = row["without"], row["with"]
        row["ratio"] = with_it / without if without and with_it is not None else None
        figures[name] = row
    return figures


def _median(runs: Sequence[dict[str, Any]], side: str, name: str) -> float | None:
    values = [_measured(run).get(name) for run in runs if run["side"] == side]
    known = [value for value in values if value is not None]
    return median(known) if known and len(known) == len(values) else None
