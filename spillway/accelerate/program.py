"""Runs a program to its end, and reads what the kernel counted for it."""

import json
import os
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from spillway.drive.blocks import drives_under, traffic
from spillway.errors import RunFailed, SpillwayError

END_S = 10.0  # that a program has after SIGTERM before it is killed. Source: guess


@dataclass(frozen=True)
class Finished:
    """A program that has ended."""

    exit_code: int  # of a program that a signal ended: minus the signal
    wall_s: float
    output: str
    process_bytes_written: int | None  # by the process and its children, to file systems on drives; None: not told
    drive_bytes_written: int | None  # by everybody, to the drives under the directory; None: they have no counters
    databases: list[dict[str, Any]] = field(default_factory=list)  # what the accelerator reported, one each


def run(command: Sequence[str], environment: Mapping[str, str], directory: Path, log: Path) -> Finished:
    """Runs ``command`` with its output in the file ``log``. ``directory``: on the drives that are watched. Raises
    SpillwayError where the command cannot be started."""
    report = log.with_suffix(".report")
    drives = drives_under(directory).drives
    os.sync()  # what others have written before is not this program's
    before = traffic(drives)
    began_s = time.monotonic()
    with log.open("wb") as output:
        try:
            process = subprocess.Popen(
                command,
                env={**environment, "SPILLWAY_REPORT": str(report)},
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                process_group=0,  # so that what it starts can be ended with it
            )
        except OSError as error:
            raise SpillwayError(f"{command[0]} cannot be started: {(error.strerror or str(error)).lower()}.") from None
        try:
            os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)  # it stays readable in /proc until wait()
            wall_s = time.monotonic() - began_s
            written = _bytes_written(process.pid)
            exit_code = process.wait()
        finally:
            _end(process)
    os.sync()
    after = traffic(drives)
    return Finished(
        exit_code=exit_code,
        wall_s=wall_s,
        output=log.read_text(errors="replace"),
        process_bytes_written=written,
        drive_bytes_written=None if before is None or after is None else after.written - before.written,
        databases=_databases(report),
    )


def _end(process: subprocess.Popen[bytes]) -> None:
    """Ends the program, and what it has started, where it was left running, as after Ctrl-C."""
    if process.poll() is not None:
        return
    try:
        os.killpg(process.pid, signal.SIGTERM)
        _wait_for_group(process, time.monotonic() + END_S)
    finally:  # after another Ctrl-C, too
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def _wait_for_group(process: subprocess.Popen[bytes], until_s: float) -> None:
    with suppress(ProcessLookupError):
        while time.monotonic() < until_s:
            process.poll()
            os.killpg(process.pid, 0)
            time.sleep(0.02)


def _bytes_written(pid: int) -> int | None:
    fields: dict[str, int] = {}
    try:
        for line in Path(f"/proc/{pid}/io").read_text().splitlines():
            name, _, value = line.partition(":")
            fields[name] = int(value)
    except (OSError, ValueError):
        return None
    return max(fields.get("write_bytes", 0) - fields.get("cancelled_write_bytes", 0), 0)


def _databases(report: Path) -> list[dict[str, Any]]:
    """Raises RunFailed for a line that is not the accelerator's."""
    lines: list[str] = []
    with suppress(FileNotFoundError):
        lines = report.read_text().splitlines()
    try:
        return [dict(json.loads(line)) for line in lines]
    except (ValueError, TypeError):
        raise RunFailed(f"{report} is not the report of the accelerator.") from None
