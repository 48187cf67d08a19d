"""`spillway drive`: what the drive under a path or behind a node says of the bytes written to it."""

from pathlib import Path
from typing import Any

import click

from spillway.cli.printing import out, plain_table, print_json
from spillway.drive.blocks import Drive, drives_under, traffic
from spillway.drive.documents import load, parse
from spillway.drive.reading import Counter, Reading
from spillway.drive.tools import read_drive
from spillway.errors import SpillwayError
from spillway.quantity import human_bytes

Document = dict[str, Any]


@click.command("drive")
@click.argument("path", required=False, type=click.Path(path_type=Path))
@click.option(
    "--from",
    "saved",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Read a saved JSON log of nvme or smartctl instead of asking a drive.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def drive_command(path: Path | None, saved: Path | None, as_json: bool) -> None:
    """Show what the drive under PATH counts: which log, its units and steps, or why NAND bytes are unknown.

    PATH is on a file system of the drive, or the node of a block device: a drive, a partition, a stack of drives.
    The logs are read with nvme (nvme-cli) or smartctl (smartmontools), which takes root. Nothing is written.
    """
    if (path is None) == (saved is None):
        raise SpillwayError("spillway drive takes a PATH, or --from FILE with a saved log; give one of them.")
    if saved is not None:
        documents = [_saved(saved)]
    else:
        assert path is not None
        under = drives_under(path)
        if not under.drives:
            raise SpillwayError(f"{path}: no drive is known under it: {under.why_none}.")
        documents = [_read_document(drive) for drive in under.drives]
    if as_json:
        print_json({"drives": documents})
        return
    for document in documents:
        _show(document)


def _saved(path: Path) -> Document:
    try:
        text = path.read_text(encoding="utf-8", errors="replace")
    except OSError as error:
        raise SpillwayError(f"{path}: the log cannot be read: {(error.strerror or str(error)).lower()}.") from error
    reading = parse(load(text, str(path)))
    if not reading.recognised:
        raise SpillwayError(
            f"{path}: {reading.why_unknown}; it takes what `smartctl -j -x` or nvme's SMART logs print."
        )
    return {"drive": str(path)} | _document(reading)


def _read_document(drive: Drive) -> Document:
    moved = traffic((drive,))
    found = {"drive": drive.device, "capacity_bytes": drive.capacity_bytes, "kind": drive.kind}
    since = {"host_bytes_written_since_start": moved.written} if moved else {}
    return found | since | _document(read_drive(drive))


def _document(reading: Reading) -> Document:
    nand, programs = reading.nand, reading.programs
    return {
        "model": reading.model or None,
        "logs": list(reading.logs),
        "host": None if reading.host is None else _counter(reading.host),
        "nand": None if nand is None else _counter(nand),
        "pages_programmed": None if programs is None else {"host": programs.host, "background": programs.background},
        "wa_device_of_its_life": _of_its_life(reading),
        "percentage_used": reading.percentage_used,
        "mean_pe_cycles": reading.mean_pe_cycles,
        "why_unknown": _why_unknown(reading),
    }


def _why_unknown(reading: Reading) -> str | None:
    if not reading.reports_nand:
        return reading.why_unknown
    programs = reading.programs
    return f"its {programs.name} say that the host has written none yet" if programs and not programs.host else None


def _counter(counter: Counter) -> Document:
    return {
        "name": counter.name,
        "count": counter.count,
        "unit_bytes": counter.unit_bytes,
        "unit_most_bytes": counter.most_unit_bytes,
        "bytes": counter.total_bytes,
    }


def _of_its_life(reading: Reading) -> float | None:
    """NAND bytes / host bytes since the drive was new, by its own counters; None unless both are certain."""
    if reading.programs is not None and reading.programs.host:
        return (reading.programs.host + reading.programs.background) / reading.programs.host
    host, nand = reading.host, reading.nand
    if host is None or nand is None or not host.total_bytes:
        return None
    certain = host.most_unit_bytes == host.unit_bytes and nand.most_unit_bytes == nand.unit_bytes
    return nand.total_bytes / host.total_bytes if certain else None


def _show(document: Document) -> None:
    table = plain_table()
    table.add_row("drive", " ".join(filter(None, (document["drive"], document["model"]))))
    if document.get("capacity_bytes"):
        table.add_row("capacity", human_bytes(document["capacity_bytes"]))
    if "host_bytes_written_since_start" in document:
        table.add_row("written since start", human_bytes(document["host_bytes_written_since_start"]) + " (sysfs)")
    table.add_row("logs", ", ".join(document["logs"]) or "–")
    for label, key in (("host bytes", "host"), ("NAND bytes", "nand")):
        if document[key] is not None:
            table.add_row(label, _in_words(document[key]))
    pages = document["pages_programmed"]
    if pages is not None:
        table.add_row(
            "pages programmed", f"{pages['host']:,} for the host, {pages['background']:,} by the drive itself"
        )
    if document["why_unknown"]:
        table.add_row("NAND bytes", f"unknown: {document['why_unknown']}")
    lasting = document["wa_device_of_its_life"]
    table.add_row("wa_device of its life", "unknown" if lasting is None else f"{lasting:.2f}")
    if document["percentage_used"] is not None:
        table.add_row("percentage used", f"{document['percentage_used']:g} %")
    if document["mean_pe_cycles"] is not None:
        table.add_row("mean P/E cycles", f"{document['mean_pe_cycles']:g}")
    out.print(table)


def _in_words(counter: Document) -> str:
    unit, most = counter["unit_bytes"], counter["unit_most_bytes"]
    step = human_bytes(unit) if most == unit else f"{unit:,} or {most:,} bytes (not published)"
    return f"{human_bytes(counter['bytes'])}, by {counter['name']} in steps of {step}"
