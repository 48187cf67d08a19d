"""The measured points that `spillway cost` is made of: from run directories, and from tables of others' measurements.

A run is a point: the data set that one drive holds (live user bytes at the end), and the throughput that it sustains.
Throughput and bytes an operation are of the steady part of the measured phases, where the run has become steady. An arm
and its points of a sweep over the data set are one *system*. Keys that go along with the data set (a cache that is a
share of it) do not distinguish systems; every other difference of the resolved plans does, another drive too. Runs with
extra over-provisioning are systems of their own (spillway/figures/space.py).

A scaled drive is taken for the drive that its preset describes, which is the one that has a price: its parallelism is
the same, so the throughput holds, and its data set grows by the ratio of the capacities. Of a run in dilated time the
throughput is of the drive's time.
"""

import copy
import csv
import io
import json
import re
import tomllib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from pathlib import Path
from typing import Any

from spillway import toml
from spillway.errors import SpillwayError
from spillway.figures import space
from spillway.figures.amplification import nand_total, ratio
from spillway.figures.lifetime import endurance_bytes
from spillway.plan.dotted import flatten, overlay
from spillway.plan.keys import OPEN_TABLES
from spillway.plan.sweep import axes_of, short_names, words_of
from spillway.quantity import nearest, parse_size
from spillway.rundir.directory import (
    ArmRecord,
    RunRecord,
    check_not_cut_off,
    read_figures,
    read_samples,
    whole_directories,
    why_refused,
)
from spillway.rundir.samples import measured, nand_bytes

Document = dict[str, Any]

DATA_SET_KEYS = (
    *("load.num", "ycsb.recordcount", "ycsb.operationcount", "ycsb.insertcount"),
    *("drive.capacity", "drive.set.capacity.capacity_bytes"),
)
SPARE_KEYS = ("fs.size",)
# Of a resolved plan, what says nothing about the system: names, what is measured how, where things lie, what they cost.
NOT_OF_THE_SYSTEM = (
    *("name", "summary", "seeds", "repetitions", "of", "sample_interval_ms", "data_directory", "drive.time_scale"),
    *("fs.size", "initial.fill", "initial.path"),
)
TABLES_NOT_OF_THE_SYSTEM = ("point", "cost", "kept", "lint", "prepare", "drive.estimate")
ENDS_OF_A_PHASE = ("name", "operations", "duration_s")
LOAD_KEYS = ("load.key_bytes", "load.value_bytes", "load.compression_ratio")

NOT_STEADY = "not steady"
VIRTUAL_TIME = "virtual time"


@dataclass(frozen=True)
class Point:
    """One measured point of a system. None: not known."""

    where: str  # run directory and arm, or file and line: for sentences
    system: str
    extra_op: bool
    drive: str  # the preset's name; prices go by it
    data_set_bytes: float
    throughput_ops_s: float
    flash_bytes_per_op: float | None = None
    host_bytes_per_op: float | None = None
    endurance_flash_bytes: float | None = None
    endurance_host_bytes: float | None = None
    data_set_share: float | None = None
    over_provisioning: float | None = None
    drive_price: float | None = None
    currency: str = ""
    watts: float | None = None
    marks: tuple[str, ...] = ()  # why its figures are not what a drive sustains
    scaled: bool = False
    load: str = ""  # its load, for comparing only
    key: str = ""  # what distinguishes systems of one name, for comparing only


@dataclass(frozen=True)
class Read:
    """Points, and the runs that are none, each with the reason."""

    points: list[Point]
    left_out: list[str]


def read_points(paths: Sequence[Path]) -> Read:
    """The points of run directories and CSV files. Different systems of one name get their run directory in the name.
    Raises SpillwayError where a file cannot be used, or none has a point."""
    points: list[Point] = []
    left_out: list[str] = []
    for path in paths:
        if path.suffix.lower() == ".csv":
            points += _table(path)
        else:
            read = _run(read_figures(path))
            points += read.points
            left_out += read.left_out
    if not points:
        why = f" ({left_out[0]})" if left_out else ""
        raise SpillwayError(f"{', '.join(map(str, paths))}: there is no measured point{why}; run the plan to its end.")
    return Read(_distinct_names(points), left_out)


def _distinct_names(points: Sequence[Point]) -> list[Point]:
    """Systems of one name that are not the same, with what makes them so behind their names."""
    keys: dict[str, set[str]] = {}
    drives: dict[str, set[str]] = {}
    for each in points:
        keys.setdefault(f"{each.system}\0{each.drive}", set()).add(each.key)
        drives.setdefault(each.system, set()).add(each.drive)
    found = []
    for each in points:
        parts = [each.system]
        if len(drives[each.system]) > 1 and each.drive:
            parts.append(f"on {each.drive}")
        if len(keys[f"{each.system}\0{each.drive}"]) > 1:
            parts.append(f"of {each.where.split(': ')[0]}")
        found.append(replace(each, system=" ".join(parts)))
    return found


# ---------------------------------------------------------------- run directories


def _run(run: RunRecord) -> Read:
    if why := why_refused(run):
        return Read([], [f"{run.path} was refused: {why}"])
    plan = _plan(run)
    swept: dict[str, list[ArmRecord]] = {}
    for arm in run.arms:
        swept.setdefault(arm.summary.get("of") or arm.name, []).append(arm)
    points, left_out = [], []
    for name, arms in swept.items():
        along = _along([arm.summary.get("point") or {} for arm in arms])
        for arm in arms:
            where, standing = f"{run.path}: {arm.name}", arm.summary["standing"]
            if standing["failure"] or not standing["complete"]:
                why = "failed" if standing["failure"] else "was ended early"
                left_out.append(f"{where} {why}")
                continue
            for directory in whole_directories(arm.summary):
                check_not_cut_off(run.path / directory)
            part = _steady_part(run.path, arm.summary)
            points.append(_point(where, name, arm.summary | part, _settings(plan, arm.name), along))
    return Read(points, left_out)


def _steady_part(path: Path, summary: Document) -> Document:
    """Figures of the measured time since the run was steady, in place of the summary's; nothing where that is all.

    Time counts over measured samples alone, as in the verdict.
    """
    since = summary["standing"].get("steady_since_s")
    if not summary["steady"] or not since:
        return {}
    elapsed, rows = 0.0, []
    for row in measured(read_samples(path / summary["directory"])):
        if elapsed >= since - row["dt_s"] / 2:
            rows.append(row)
        elapsed += row["dt_s"]
    operations = sum(row["reads"] + row["writes"] for row in rows)
    host, flash = [row.get("host_bytes_written") for row in rows], [nand_bytes(row) for row in rows]
    return {
        "throughput_ops_s": ratio(operations, sum(row["dt_s"] for row in rows)),
        "operations": operations,
        "host_bytes_written": None if None in host else sum(host),
        "nand_bytes_programmed": None if None in flash else {"all": sum(count or 0.0 for count in flash)},
    }


def _plan(run: RunRecord) -> Document:
    try:
        return toml.loads(run.plan_toml)
    except tomllib.TOMLDecodeError as error:
        raise SpillwayError(f"{run.path / 'plan.toml'}: this is not TOML ({error}); run the plan again.") from error


def _settings(plan: Document, arm: str) -> Document:
    """Everything that a resolved plan says of an arm, by dotted key; open tables are opened."""
    own = next((each for each in plan.get("arms") or [] if isinstance(each, dict) and each.get("name") == arm), {})
    whole = overlay(copy.deepcopy({key: value for key, value in plan.items() if key != "arms"}), own)
    found: Document = {}
    for key, value in flatten(whole).items():
        inner = value if key in OPEN_TABLES and isinstance(value, dict) else None
        found |= {key: value} if inner is None else {f"{key}.{name}": each for name, each in inner.items()}
    return found


def _along(points: Sequence[Mapping[str, Any]]) -> frozenset[str]:
    """The sweep's keys that do not tell systems apart: of the data set, of the partition, and what goes along."""
    free = {*DATA_SET_KEYS, *SPARE_KEYS}
    ordered = [{key: point[key] for key in sorted(point, key=lambda key: key not in free)} for point in points]
    axes = axes_of(ordered)
    return frozenset(free | {key for axis in axes if axis.key in free for key in axis.along})


def _point(where: str, name: str, summary: Document, settings: Document, along: frozenset[str]) -> Point:
    standing, lifetime = summary["standing"], summary.get("lifetime") or {}
    live, rate = summary.get("live_user_bytes"), summary["throughput_ops_s"]
    if not live:
        raise SpillwayError(
            f"{where}: its summary has no data set size (live_user_bytes), so that it is no point; run the plan again, "
            "with a phase that loads data."
        )
    if not rate:
        raise SpillwayError(f"{where}: it finished no operation, so that it is no point; run it for longer.")
    growth = ratio(lifetime.get("full_capacity_bytes"), lifetime.get("capacity_bytes")) or 1.0
    whole = lifetime.get("full_physical_bytes") if growth != 1 else None
    spare = _spare(summary, settings)
    operations = summary.get("operations")
    return Point(
        where,
        _system(name, summary.get("point") or {}, along),
        space.has_extra(spare),
        standing["drive"] or ", ".join(standing.get("devices") or []) or "a plain directory",
        data_set_bytes=live * growth,
        throughput_ops_s=rate * (standing.get("time_scale") or 1.0),
        flash_bytes_per_op=ratio(nand_total(summary.get("nand_bytes_programmed")), operations),
        host_bytes_per_op=ratio(summary.get("host_bytes_written"), operations),
        endurance_flash_bytes=endurance_bytes(lifetime.get("rated_pe_cycles"), whole or lifetime.get("physical_bytes")),
        endurance_host_bytes=lifetime.get("rated_host_bytes"),
        data_set_share=spare["data_set_share"],
        over_provisioning=spare["over_provisioning_effective"],
        drive_price=settings.get("cost.drive_price"),
        currency=settings.get("cost.currency") or "",
        marks=_marks(summary),
        scaled=growth != 1,
        load=_load(settings),
        key=_key(settings, along),
    )


def _spare(summary: Document, settings: Document) -> Document:
    """The run's figures of space; made from what else it has where it was recorded before there were any."""
    if "over_provisioning_effective" in summary:
        return summary
    standing, lifetime = summary["standing"], summary.get("lifetime") or {}
    capacity, size = standing.get("capacity_bytes"), settings.get("fs.size")
    kept = (summary.get("kept") or {}).get("from")
    fill = {"trimmed": 0.0, "file": None}.get(standing.get("initial_state"), standing.get("initial_fill"))
    mapped = space.mapped_bytes(capacity, parse_size(size, "fs.size") if size else None, fill, kept)
    physical = lifetime.get("physical_bytes")
    return space.document([], None, summary.get("live_user_bytes"), capacity, physical, mapped)


def _system(name: str, point: Mapping[str, Any], along: frozenset[str]) -> str:
    """The arm and the values of those axes that are not of the data set or the partition."""
    own = {key: value for key, value in point.items() if key not in along}
    names = short_names(list(own))
    return ", ".join([name, *(f"{names[key]} {words_of(value)}" for key, value in own.items())])


def _marks(summary: Document) -> tuple[str, ...]:
    virtual = [VIRTUAL_TIME] if summary["standing"].get("pacing") == "off" else []
    return (*([] if summary["steady"] else [NOT_STEADY]), *virtual)


def _load(settings: Document) -> str:
    """What the load asks of a store, whatever the store and the number of its keys."""
    asked = {key: settings.get(key) for key in LOAD_KEYS}
    asked |= {key: value for key, value in settings.items() if key.startswith("ycsb.") and key not in DATA_SET_KEYS}
    phases = [phase for phase in _phases(settings) if phase.get("measured", True)]
    kept = ("workload", "read_write_percent", "seek_nexts", "ycsb")
    asked["phases"] = [{key: _without_counts(phase.get(key)) for key in kept} for phase in phases]
    return json.dumps(asked, sort_keys=True, default=str)


def _without_counts(value: Any) -> Any:
    counts = {key.removeprefix("ycsb.") for key in DATA_SET_KEYS}
    return {k: v for k, v in value.items() if k not in counts} if isinstance(value, dict) else value


def _phases(settings: Document) -> list[Document]:
    return [phase for phase in settings.get("phases") or [] if isinstance(phase, dict)]


def _key(settings: Document, along: frozenset[str]) -> str:
    """The resolved plan of an arm but for what does not make another system of it."""
    kept = {
        key: value
        for key, value in settings.items()
        if key not in along
        and key not in NOT_OF_THE_SYSTEM
        and key != "phases"
        and not any(key == table or key.startswith(f"{table}.") for table in TABLES_NOT_OF_THE_SYSTEM)
    }
    phases = [{k: _without_counts(v) for k, v in p.items() if k not in ENDS_OF_A_PHASE} for p in _phases(settings)]
    return json.dumps([kept, phases], sort_keys=True, default=str)


# ---------------------------------------------------------------- tables of points


def _text(cell: str, where: str) -> str:
    return cell


def _positive(cell: str, where: str) -> float:
    try:
        value = float(cell.replace("_", ""))
    except ValueError:
        value = -1.0
    if not 0 < value < float("inf"):
        raise SpillwayError(f"{where} is {cell!r}; it takes a number above 0.")
    return value


_EXPONENT = re.compile(r"[0-9]+(\.[0-9]+)?[eE]\+?[0-9]{1,2}")


def _size(cell: str, where: str) -> float:
    """Bytes, which programs write as 1e+11 too, or a size with a unit."""
    size = parse_size(f"{Decimal(cell):f}" if _EXPONENT.fullmatch(cell) else cell, where)
    if size == 0:
        raise SpillwayError(f"{where} is {cell!r}; it takes a size above 0.")
    return float(size)


def _yes(cell: str, where: str) -> bool:
    if cell.lower() not in ("yes", "no"):
        raise SpillwayError(f"{where} is {cell!r}; it takes yes or no.")
    return cell.lower() == "yes"


NEEDED = ("system", "data_set_bytes", "throughput_ops_s")
COLUMNS: dict[str, Callable[[str, str], Any]] = {
    "system": _text,
    "data_set_bytes": _size,
    "throughput_ops_s": _positive,
    "drive": _text,
    "extra_op": _yes,
    "over_provisioning": _positive,
    "steady": _yes,
    "host_bytes_per_op": _positive,
    "flash_bytes_per_op": _positive,
    "wa_device": _positive,
    "rated_pe_cycles": _positive,
    "physical_bytes": _size,
    "rated_writes_bytes": _size,
    "drive_price": _positive,
    "currency": _text,
    "watts": _positive,
    "load": _text,
}


def _table(path: Path) -> list[Point]:
    """The rows of a CSV file; an empty cell is not known. Raises SpillwayError that names the line and the column."""
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not text"
        raise SpillwayError(f"{path}: the points cannot be read: {why}; name a CSV file or a run directory.") from error
    reader = csv.DictReader(io.StringIO(text))
    try:
        header = [(name or "").strip() for name in reader.fieldnames or []]
    except csv.Error as error:
        raise SpillwayError(f"{path}: its first line is not CSV: {error}; mend the line.") from error
    reader.fieldnames = header
    for name in header:
        if name not in COLUMNS:
            raise SpillwayError(f"{path}: there is no column {name!r}{nearest(name, COLUMNS)}")
    missing = [name for name in NEEDED if name not in header]
    if missing:
        raise SpillwayError(f"{path}: the column {missing[0]} is missing; a table of points has {', '.join(NEEDED)}.")
    try:
        rows = [(f"{path}: line {reader.line_num}", row) for row in reader]
    except csv.Error as error:
        raise SpillwayError(f"{path}: line {reader.line_num} is not CSV: {error}; mend the line.") from error
    return [_row(where, row) for where, row in rows]


def _row(where: str, cells: Mapping[str | None, Any]) -> Point:
    if None in cells or None in cells.values():
        raise SpillwayError(f"{where} has not one cell for each column; mend the line.")
    known = {
        name: COLUMNS[name](cell.strip(), f"{where}: {name}")
        for name, cell in cells.items()
        if name is not None and cell.strip()
    }
    missing = next((name for name in NEEDED if name not in known), None)
    if missing:
        raise SpillwayError(f"{where}: {missing} is empty; a point needs it.")
    host, flash, wa_device = (known.get(key) for key in ("host_bytes_per_op", "flash_bytes_per_op", "wa_device"))
    if wa_device is not None and host is None:
        raise SpillwayError(
            f"{where}: wa_device is given without host_bytes_per_op, of which it is a multiple; add it."
        )
    if wa_device is not None and flash is not None:
        raise SpillwayError(
            f"{where}: flash_bytes_per_op and host_bytes_per_op x wa_device are one figure: give one of them."
        )
    return Point(
        where,
        known["system"],
        known.get("extra_op", False),
        known.get("drive", ""),
        known["data_set_bytes"],
        known["throughput_ops_s"],
        flash_bytes_per_op=flash if wa_device is None else host * wa_device,
        host_bytes_per_op=host,
        endurance_flash_bytes=endurance_bytes(known.get("rated_pe_cycles"), known.get("physical_bytes")),
        endurance_host_bytes=known.get("rated_writes_bytes"),
        over_provisioning=known.get("over_provisioning"),
        drive_price=known.get("drive_price"),
        currency=known.get("currency", ""),
        watts=known.get("watts"),
        marks=() if known.get("steady", True) else (NOT_STEADY,),
        load=known.get("load", ""),
    )


def names_of(points: Iterable[Point]) -> list[str]:
    """The drives' names, each once."""
    return list(dict.fromkeys(each.drive for each in points))
