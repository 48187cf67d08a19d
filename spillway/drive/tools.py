"""Reads a drive's logs with the tools that the system has: nvme (nvme-cli) and smartctl (smartmontools).

NVMe: the SMART / Health log, then the OCP log, then the log of the drive's vendor, until one has NAND bytes; smartctl
where there is no nvme-cli. Everything else: smartctl. Nothing is written to the drive. A virtual
machine's drive is not read.
"""

import re
import shutil
import subprocess
from collections.abc import Callable

from spillway.drive.blocks import Drive
from spillway.drive.documents import load, parse
from spillway.drive.reading import Reading, merged, unknown
from spillway.errors import SpillwayError

# A drive that is busy or asleep answers within seconds; a USB bridge that does not know the command may never.
# Source: guess
TIMEOUT_S = 20.0

# Vendors' logs of nvme-cli's plugins, by the model: those whose units are published, see documents.py.
VENDOR_LOGS: tuple[tuple[str, tuple[str, ...]], ...] = (
    (r"SOLIDIGM", ("solidigm", "smart-log-add", "-o", "json")),
    (r"INTEL", ("intel", "smart-log-add", "-o", "json")),
    (r"Micron|MTFD|Crucial|CT\d", ("micron", "vs-nand-stats", "-f", "json")),
    (r"Micron|MTFD|Crucial|CT\d", ("micron", "vs-nand-stats", "-o", "json")),  # nvme-cli 3 has no -f
    (r"Seagate|^[XZ]P\d", ("seagate", "vs-smart-add-log", "-o", "json")),
    (r"WDC|WD |WUS|SanDisk", ("wdc", "vs-nand-stats", "-o", "json")),
)

RunCommand = Callable[[list[str]], str]  # a command line → what it printed; raises SpillwayError


def read_drive(drive: Drive, run_command: RunCommand | None = None) -> Reading:
    """What the drive's logs say now; a reading with the reason where they cannot be read. ``run_command``: runs a
    command line and returns what it printed; None: as a process of this system."""
    run_command = run_command or _printed
    if drive.kind == "virtual":
        return unknown("a virtual machine's drive has no SMART logs", model=drive.model)
    reading = _nvme(drive, run_command) if drive.kind == "nvme" else _smartctl(drive, run_command)
    return merged(reading, Reading(drive.model, ()))


def _nvme(drive: Drive, run_command: RunCommand) -> Reading:
    if shutil.which("nvme") is None:
        return _smartctl(drive, run_command)
    reading = _of(run_command, ["nvme", "smart-log", drive.device, "-o", "json"])
    commands = [["ocp", "smart-add-log", "-o", "json"]]
    commands += [list(command) for pattern, command in VENDOR_LOGS if re.search(pattern, drive.model)]
    for command in commands:
        if reading.reports_nand:
            break
        found = _of(run_command, ["nvme", *command[:2], drive.device, *command[2:]])
        if found.logs:
            reading = merged(reading, found)
    return reading


def _smartctl(drive: Drive, run_command: RunCommand) -> Reading:
    if shutil.which("smartctl") is None:
        missing = "nvme-cli or smartmontools" if drive.kind == "nvme" else "smartmontools"
        return unknown(f"neither nvme nor smartctl is installed: {missing} brings it", model=drive.model)
    return _of(run_command, ["smartctl", "-j", "-i", "-A", "-l", "devstat", drive.device])


def _of(run_command: RunCommand, command: list[str]) -> Reading:
    try:
        text = run_command(command)
        return parse(load(text, " ".join(command)))
    except SpillwayError as error:
        return unknown(str(error).rstrip("."))


def _printed(command: list[str]) -> str:
    """Standard output; smartctl's exit status is in what it prints, nvme's is not 0 where it printed nothing of use."""
    shown = " ".join(command)
    try:
        done = subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=TIMEOUT_S, check=False)
    except subprocess.TimeoutExpired as error:
        raise SpillwayError(f"`{shown}` did not answer within {TIMEOUT_S:g} s.") from error
    except OSError as error:
        raise SpillwayError(f"`{shown}` could not be started: {(error.strerror or str(error)).lower()}.") from error
    if done.stdout.strip():
        return done.stdout
    complaint = (done.stderr.strip().splitlines() or ["it said nothing"])[0]
    if "ermission" in complaint:
        complaint = "permission denied; SMART logs take root, or the capabilities CAP_SYS_ADMIN and CAP_SYS_RAWIO"
    raise SpillwayError(f"`{shown}` printed nothing: {complaint.rstrip('.')}.")
