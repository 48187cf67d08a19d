"""Files with a series: what `spillway steady` reads, each by what it looks like.

    CSV             a header with t_s and throughput_ops_s; where there are any wa_app, wa_device, host_bytes_written
    samples.csv     of a run directory (``spillway/rundir/samples.py``); a directory stands for the samples of all its
                    arms
    NAME_iops.1.log, NAME_bw.1.log
                    of fio with log_avg_msec: time in ms, value, direction, block size, …; directions are added up, and
                    an interval without a line had no I/O
    secs_elapsed,interval_qps
                    db_bench's --report_file

Every error is one sentence that names the file, the line and a remedy.
"""

import csv
import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from spillway.errors import SpillwayError
from spillway.rundir.directory import check_not_cut_off, check_not_refused, read_figures
from spillway.rundir.samples import are_columns, nand_bytes, typed
from spillway.steady.series import LEAST_SAMPLES, Array, Round

TIME, RATE, HOST_BYTES = "t_s", "throughput_ops_s", "host_bytes_written"
RATIOS = ("wa_app", "wa_device")
REPORT = ("secs_elapsed", "interval_qps")
SAMPLE_FIGURES = ("dt_s", "reads", "writes", "user_bytes_written")
FIO_LOG = re.compile(r"_(iops|bw)(\.\d+)?\.log$")
FIO_LATENCY = re.compile(r"_[sc]?lat(\.\d+)?\.log$")
FIO_REMEDY = "write it with --log_avg_msec=1000, one log for each job (--per_job_logs=1)"
# Times, rates, ratios and bytes are 0 or between these. Source: guess; 1e18 ns are 32 years
LEAST, MOST = 1e-18, 1e18
MOST_BYTES = 2**28  # of a file: ten million lines. Source: guess
LEAST_SPAN_S = 1e-6  # from the first sample to the last. Source: guess
MOST_IDLE = 1_000_000  # intervals without I/O between two lines of fio's; beyond, a time is wrong. Source: guess


@dataclass(frozen=True)
class Read:
    """The content of a file: columns over times (CSV, logs), or the spans of a run (samples.csv); the other is
    empty."""

    path: Path
    t_s: Array  # time of each sample since the start
    columns: dict[str, Array]  # name → one value for each t_s
    spans: list[Round]
    host_bytes: float | None  # written in all; None: not known


def files_of(paths: Sequence[Path]) -> Iterator[Path]:
    """The files that ``paths`` stand for: a run directory stands for the samples.csv of each of its arms. Raises
    SpillwayError for a run directory that has none."""
    for path in paths:
        if not path.is_dir():
            yield path
            continue
        found = sorted(path.glob("arms/*/samples.csv")) or sorted(path.glob("samples.csv"))
        if not found:
            _check_not_refused(path)
            raise SpillwayError(f"{path}: this directory has no samples.csv; name a file or a run directory.")
        yield from found


def _check_not_refused(path: Path) -> None:
    """Raises SpillwayError with the reason where a directory is of a run that measured nothing."""
    try:
        run = read_figures(path)
    except SpillwayError:
        return  # no run directory
    check_not_refused(run)


def read(path: Path) -> Read:
    """The series of one file, told by its name and header. Raises SpillwayError for a file that is no such series, or
    that has fewer than LEAST_SAMPLES samples."""
    if FIO_LATENCY.search(path.name):
        raise SpillwayError(f"{path}: this is fio's log of latencies; take the one of IOPS or bandwidth.")
    lines = _lines(path)
    found = _fio(path, lines) if FIO_LOG.search(path.name) else _table(path, lines)
    if found.spans and (path.parent / "phases.json").is_file():
        check_not_cut_off(path.parent)
    count = len(found.spans) or len(found.t_s)
    if count < LEAST_SAMPLES:
        raise SpillwayError(
            f"{path}: the series has {count} {'sample' if count == 1 else 'samples'}, and it takes at least "
            f"{LEAST_SAMPLES} to say anything; run longer or sample more often."
        )
    if len(found.t_s) and not found.t_s[-1] - found.t_s[0] >= LEAST_SPAN_S:
        raise SpillwayError(
            f"{path}: all of the series is within {found.t_s[-1] - found.t_s[0]:.2g} s; its times are in seconds."
        )
    return found


def _lines(path: Path) -> list[str]:
    try:
        with path.open("rb") as file:
            raw = file.read(MOST_BYTES + 1)
        lines = raw[:MOST_BYTES].decode("utf-8-sig").splitlines()
    except OSError as error:
        raise SpillwayError(f"{path}: the series cannot be read: {(error.strerror or str(error)).lower()}.") from error
    except UnicodeDecodeError:
        raise SpillwayError(f"{path}: this is not text; give a CSV file with columns {TIME} and {RATE}.") from None
    if len(raw) > MOST_BYTES:
        raise SpillwayError(f"{path}: it is larger than {MOST_BYTES >> 20} MiB; sample less often, or cut it.")
    if not any(line.strip() for line in lines):
        raise SpillwayError(f"{path}: the file is empty; give a CSV file with columns {TIME} and {RATE}.")
    return lines


def _rows(path: Path, lines: Sequence[str]) -> Iterator[tuple[int, list[str]]]:
    """Cells by the number of their line, without blank lines."""
    for number, line in enumerate(lines, 1):
        try:
            cells = [cell.strip() for cell in next(csv.reader([line], skipinitialspace=True, strict=True), [])]
        except csv.Error as error:
            raise SpillwayError(f"{path}: line {number} is no line of a CSV file ({error}); mend it.") from error
        if any(cells):
            yield number, cells


def _table(path: Path, lines: Sequence[str]) -> Read:
    rows = _rows(path, lines)
    _, header = next(rows)
    if are_columns(header):
        return _samples(path, header, rows)
    report = tuple(header[:2]) == REPORT
    time, rate = REPORT if report else (TIME, RATE)
    for name in (time, rate):
        if header.count(name) != 1:
            many = "several columns" if name in header else "no column"
            raise SpillwayError(f"{path}: line 1 has {many} {name}; the header has {TIME} and {RATE} once each.")
    wanted = {time: TIME, rate: "throughput"}
    if not report:
        wanted |= {name: name for name in (*RATIOS, HOST_BYTES) if name in header}
    for name in wanted:
        if header.count(name) != 1:
            raise SpillwayError(f"{path}: line 1 has several columns {name}; leave one of them.")
    places = {name: header.index(name) for name in wanted}
    numbered = list(rows)
    for number, cells in numbered:
        _one_cell_each(path, number, cells, header)
    # A column without a cell says no more than none: so programs write what they do not know.
    empty = [n for n, at in places.items() if n not in (time, rate) and not any(cells[at] for _, cells in numbered)]
    wanted = {name: meant for name, meant in wanted.items() if name not in empty}
    values: dict[str, list[float]] = {name: [] for name in wanted}
    for number, cells in numbered:
        for name in wanted:
            place, least = places[name], None if name == time else 0.0
            values[name].append(_number(path, number, name, cells[place], least))
        _rising(path, number, time, values[time])
    columns = {meant: np.array(values[name]) for name, meant in wanted.items()}
    times, bytes_written = columns.pop(TIME), columns.pop(HOST_BYTES, None)
    return Read(path, times, columns, [], None if bytes_written is None else float(bytes_written.sum()))


def _one_cell_each(path: Path, line: int, cells: Sequence[str], header: Sequence[str]) -> None:
    if len(cells) != len(header):
        raise SpillwayError(
            f"{path}: line {line} has {len(cells)} cells and the header {len(header)}; write one cell for each column."
        )


def _samples(path: Path, header: list[str], rows: Iterator[tuple[int, list[str]]]) -> Read:
    """The measured rows of a run's samples.csv."""
    spans = []
    for number, cells in rows:
        _one_cell_each(path, number, cells, header)
        try:
            row = typed(dict(zip(header, cells, strict=True)))
        except ValueError as error:
            raise SpillwayError(f"{path}: line {number} is damaged: {error}; run the plan again.") from error
        if not row["measured"]:
            continue
        figures = [row[name] for name in SAMPLE_FIGURES] + [row["host_bytes_written"] or 0.0, nand_bytes(row) or 0.0]
        if not all(value is not None and 0 <= value <= MOST for value in figures):
            raise SpillwayError(
                f"{path}: line {number} is damaged: one of {', '.join(SAMPLE_FIGURES)} or the bytes is no figure; "
                "run the plan again."
            )
        seconds, reads, writes, user = figures[:4]
        spans.append(Round(seconds, reads + writes, user, row["host_bytes_written"], nand_bytes(row)))
    host = [each.host_bytes for each in spans]
    known = None if None in host else float(sum(each or 0.0 for each in host))
    return Read(path, np.array([]), {}, [each for each in spans if each.seconds > 0], known)


def _fio(path: Path, lines: Sequence[str]) -> Read:
    """fio's IOPS or bandwidth, all directions together; its unit does not matter."""
    entries: list[tuple[float, float]] = []
    times: dict[str, list[float]] = {}
    for number, cells in _rows(path, lines):
        if len(cells) < 4:
            raise SpillwayError(
                f"{path}: line {number} has {len(cells)} cells, where fio's logs have time, value, direction and "
                f"block size; {FIO_REMEDY}."
            )
        time = _number(path, number, "the time", cells[0], 0.0)
        entries.append((time, _number(path, number, "the value", cells[1], 0.0)))
        of_direction = times.setdefault(cells[2], [])
        of_direction.append(time)
        if len(of_direction) > 1 and time <= of_direction[-2]:
            raise SpillwayError(
                f"{path}: line {number} has the time {cells[0]} after {of_direction[-2]:g} of the same direction, "
                f"so this is a line for each I/O or several jobs in one log; {FIO_REMEDY}."
            )
    steps = [step for each in times.values() for step in np.diff(each)]
    if not steps:
        return Read(path, np.array([time for time, _ in entries]) / 1000, {}, [], None)
    step = float(np.median(steps))
    summed: list[list[float]] = []
    for time, value in sorted(entries):
        if summed and time < summed[-1][0] + step / 2:
            summed[-1][1] += value
            continue
        idle = round((time - summed[-1][0]) / step) - 1 if summed else 0
        if idle > MOST_IDLE:
            raise SpillwayError(f"{path}: after {summed[-1][0]:g} ms comes {time:g} ms; one of the times is wrong.")
        begin = summed[-1][0] if summed else 0.0
        summed += [[begin + step * (i + 1), 0.0] for i in range(idle)]
        summed.append([time, value])
    made = np.array(summed)
    return Read(path, made[:, 0] / 1000, {"throughput": made[:, 1]}, [], None)


def _number(path: Path, line: int, name: str, cell: str, least: float | None) -> float:
    try:
        # Of what Python takes for a number, 1_000 and digits of other scripts are none in a CSV file.
        value = float(cell if cell.isascii() and "_" not in cell else "")
    except ValueError:
        what = f"is {cell!r}, which is not a number" if cell else "is empty"
        raise SpillwayError(f"{path}: line {line}: {name} {what}; write a number or leave the line out.") from None
    if not math.isfinite(value):
        raise SpillwayError(f"{path}: line {line}: {name} is {cell}; write a finite number or leave the line out.")
    if abs(value) > MOST or 0 < abs(value) < LEAST:
        raise SpillwayError(f"{path}: line {line}: {name} is {cell}, which no drive or clock has; mend the line.")
    if least is not None and value < least:
        raise SpillwayError(f"{path}: line {line}: {name} is {cell}, and cannot be below zero; mend the line.")
    return value


def _rising(path: Path, line: int, name: str, times: list[float]) -> None:
    if len(times) > 1 and times[-1] <= times[-2]:
        raise SpillwayError(
            f"{path}: line {line}: {name} is {times[-1]:g} after {times[-2]:g}; sort the lines by {name}, and keep "
            "one for each time."
        )
