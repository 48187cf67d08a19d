"""Samples as flat rows: how the fields of an event become columns of samples.csv.

Units end the names; bytes, counts and seconds are of the interval, not cumulative. A cell is empty where there is no
such figure: without a drive model the drive's columns are, but for the host's bytes, without a spill store its own, and
a latency is where no operation finished. Host bytes by cause are counted at an emulated drive, or in the engine's calls
to the file system of a plain directory.
"""

from collections.abc import Iterable, Sequence
from typing import Any

Row = dict[str, Any]

_LATENCIES = ("mean", "p50", "p99", "p99_9", "max")
HOST_CAUSES = ("user", "wal", "flush", "compaction", "blob", "manifest", "checkpoint", "other", "spill")
NAND_CAUSES = ("host", "gc", "mapping", "wear", "fold")

# Before and behind the engine's own columns: its causes of stall, its gauges and its spill store's statistics, by its
# own names.
_COLUMNS_BEFORE: tuple[str, ...] = (
    *("t_s", "dt_s", "phase", "measured", "reads", "writes"),
    *(f"read_latency_{name}_us" for name in _LATENCIES),
    *(f"write_latency_{name}_us" for name in _LATENCIES),
    *("user_bytes_written", "user_bytes_read", "host_bytes_written", "host_bytes_read"),
    *(f"host_bytes_written_{cause}" for cause in HOST_CAUSES),
    *(f"nand_bytes_programmed_{cause}" for cause in NAND_CAUSES),
    *("erases", "die_busy", "channel_busy", "link_write_utilisation", "link_read_utilisation"),
    *("stall_state", "stall_cause"),
)
_COLUMNS_BEHIND: tuple[str, ...] = ("space_bytes", "cpu_s")
STALL_SECONDS = "stall_s_"
_NO_GAUGES = ("stall_state", "stall_cause", "stall_s")
STALL_COLUMNS = ("t_s", "duration_s", "state", "cause")

_TEXTS = ("phase", "stall_state", "stall_cause", "state", "cause")


def columns_of(row: Row) -> tuple[str, ...]:
    """The columns of a samples.csv whose first row is ``row``: ours, and between them the engine's own (causes of stall
    and gauges)."""
    fixed = {*_COLUMNS_BEFORE, *_COLUMNS_BEHIND}
    return (*_COLUMNS_BEFORE, *(name for name in row if name not in fixed), *_COLUMNS_BEHIND)


def are_columns(names: Sequence[str]) -> bool:
    """Whether ``names`` are those of some engine's samples.csv."""
    before, behind = len(_COLUMNS_BEFORE), len(_COLUMNS_BEHIND)
    whole = tuple(names[:before]) == _COLUMNS_BEFORE and tuple(names[-behind:]) == _COLUMNS_BEHIND
    return whole and len(names) >= before + behind and len(set(names)) == len(names)


def sample_row(event: dict[str, Any]) -> Row:
    """A sample event as a row of samples.csv."""
    known = {*_COLUMNS_BEFORE, *_COLUMNS_BEHIND}
    row: Row = {name: event[name] for name in event if name in known}
    row["measured"] = int(bool(event["measured"]))
    for kind in ("read", "write"):
        latency = event.get(f"{kind}_latency_us") or {}
        if latency.get("count", 1):
            row |= {f"{kind}_latency_{name}_us": latency[name] for name in _LATENCIES if name in latency}
    drive = event.get("drive") or {}
    row |= {name: value for name, value in drive.items() if name in known}
    by_cause = drive.get("host_bytes_written_by_cause")
    if by_cause is not None:
        row |= {f"host_bytes_written_{cause}": by_cause.get(cause, 0) for cause in HOST_CAUSES}
    nand = drive.get("nand_bytes_programmed")
    if nand is not None:
        row |= {f"nand_bytes_programmed_{cause}": nand.get(cause, 0) for cause in NAND_CAUSES}
    engine = event.get("engine") or {}
    row |= {name: engine[name] for name in ("stall_state", "stall_cause") if name in engine}
    row |= {f"{STALL_SECONDS}{cause}": seconds for cause, seconds in (engine.get("stall_s") or {}).items()}
    row |= {name: value for name, value in engine.items() if name not in _NO_GAUGES}
    row |= {f"spill_{name}": int(value) for name, value in (event.get("spill") or {}).items()}
    return row


def typed(row: dict[str, str]) -> Row:
    """A row of a CSV file with its numbers as numbers and its empty cells as None.

    A run recorded before drives had an SLC cache has no column for what was folded: nothing was.
    """
    result = {name: _value(name, cell) for name, cell in row.items()}
    if result.get("nand_bytes_programmed_host") is not None:
        result.setdefault("nand_bytes_programmed_fold", 0.0)
    return result


def _value(name: str, cell: str) -> Any:
    if name in _TEXTS:
        return cell
    return float(cell) if cell else None


def nand_bytes(row: Row) -> float | None:
    """NAND bytes programmed in the interval, over all causes; None without a drive model."""
    cells = [row.get(f"nand_bytes_programmed_{cause}") for cause in NAND_CAUSES]
    return None if any(cell is None for cell in cells) else sum(cell for cell in cells if cell is not None)


def stall_seconds(row: Row) -> float:
    """Seconds of the interval in which the engine held writers back, for any cause; at most the interval."""
    return float(min(row["dt_s"], sum(row[name] or 0.0 for name in row if name.startswith(STALL_SECONDS))))


def measured(rows: Iterable[Row]) -> list[Row]:
    """The rows of measured phases."""
    return [row for row in rows if row["measured"]]
