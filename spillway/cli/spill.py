"""`spillway spill …`: what lies in the spill store of a database, without the database's own program."""

from pathlib import Path
from typing import Any

import click
from rich.table import Table

from spillway.cli.printing import figures, out, plain_table, print_json
from spillway.native import spill_store
from spillway.quantity import human_bytes

Document = dict[str, Any]

_PATH = click.argument("path", type=click.Path(path_type=Path))
_DATABASE = click.option(
    "--database", type=click.Path(path_type=Path), help="The database, where PATH is its spill directory elsewhere."
)
_JSON = click.option("--json", "as_json", is_flag=True, help="Print one JSON object and nothing else.")


@click.group("spill")
def spill() -> None:
    """What lies in the spill store of a database that was opened with spillway::DB.

    PATH is the database's directory, or its spill directory where that lies elsewhere. Spill stores in a drive's
    key-value namespace are not read.
    """


@spill.command("show")
@_PATH
@_DATABASE
@_JSON
def spill_show(path: Path, database: Path | None, as_json: bool) -> None:
    """Show what lies in the spill store at PATH. Changes nothing, also while the database is in use."""
    result = spill_store.show(path, database)
    if as_json:
        print_json(result)
        return
    out.print(_table(result))
    if result["generations"]:
        out.print()
        out.print(_generations(result))
    _print_breaks(result)


@spill.command("drain")
@_PATH
@_DATABASE
@click.option(
    "--abandon",
    is_flag=True,
    help="Give up what lies in the spill store, where that is lost or does not belong to the database. "
    "The database is as RocksDB has it, without the newest writes; a spill store that is there is kept beside.",
)
@_JSON
def spill_drain(path: Path, database: Path | None, abandon: bool, as_json: bool) -> None:
    """Bring back what lies in the spill store at PATH: from then on the database is a plain RocksDB one.

    The database must not be in use. It is opened with the options of its OPTIONS file; comparators and merge operators
    that only its program has cannot be loaded, and such a database has to be drained there.
    """
    result = spill_store.drain(path, database, abandon)
    if as_json:
        print_json(result)
        return
    table = plain_table()
    table.add_row("database", str(result["database"]))
    if result["abandoned"]:
        kept = result["moved_to"]
        table.add_row("given up", "what lay in the spill store" + (f", kept in {kept}" if kept else ""))
    else:
        table.add_row("brought back", f"{result['operations']:,} operations, {human_bytes(result['bytes'])}")
    table.add_row("now", "a plain RocksDB database")
    out.print(table)


@spill.command("check")
@_PATH
@_DATABASE
@_JSON
def spill_check(path: Path, database: Path | None, as_json: bool) -> int:
    """Verify every checksum of the spill store at PATH.

    The exit code is 1 where something is damaged or missing, or where the spill store does not fit the database.
    """
    result = spill_store.show(path, database)
    if as_json:
        print_json(result)
    else:
        table = plain_table()
        table.add_row("spill store", result["spill"])
        table.add_row("verified", f"{result['records']:,} records in {_count(len(result['generations']), 'file')}")
        table.add_row("damage", _count(len(result["damage"]), "place") if result["damage"] else "none")
        if result["why_not"] is not None:
            table.add_row("cannot be opened", result["why_not"])
        out.print(table)
        _print_breaks(result)
    return 1 if result["damage"] or result["fits"] is False else 0


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}" + ("" if number == 1 else "s")


def _print_breaks(result: Document) -> None:
    for at in result["damage"]:
        out.print(f"damaged  {at['file']} at byte {at['offset']}", soft_wrap=True)
    end = result["ends_at"]
    if end is not None:
        why = (
            "a write under way" if result["in_use"] else "a crash or a loss of power, or damage to what was not synced"
        )
        out.print(f"ends     {end['file']} at byte {end['offset']}: {why}", soft_wrap=True)


def _table(result: Document) -> Table:
    table = plain_table()
    table.add_row("database", result["database"] or "–")
    table.add_row("spill store", result["spill"] if result["exists"] else f"{result['spill']} (not there)")
    table.add_row("state", _state(result))
    binding = result["binding"]
    if binding is not None:
        table.add_row("bound to", f"{binding['database']}, opening {binding['opening']}, id {binding['id']}")
    guard = result["guard"]
    if guard is not None:
        table.add_row("guard", f"opening {guard['opening']}, id {guard['id']}")
    if result["why_not"] is not None:
        table.add_row("cannot be opened", result["why_not"])
    table.add_row("holds", f"{result['operations']:,} operations, {human_bytes(result['bytes'])}")
    for family in result["families"]:
        name = " (default)" if family["id"] == 0 else ""
        table.add_row(
            f"  family {family['id']}{name}", f"{family['operations']:,} operations, {human_bytes(family['bytes'])}"
        )
    return table


def _state(result: Document) -> str:
    if result["in_use"]:
        return "in use"
    binding = result["binding"]
    if binding is not None and binding["released"]:
        return "closed with nothing spilled"
    return "not in use"


def _generations(result: Document) -> Table:
    rows = [
        (
            str(one["generation"]),
            f"{one['records']:,}",
            f"{one['operations']:,}",
            human_bytes(one["bytes"]),
            human_bytes(one["file_bytes"]),
        )
        for one in result["generations"]
    ]
    return figures(("generation", "records", "operations", "keys and values", "file"), tuple(rows))
