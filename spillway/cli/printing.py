"""How commands print: two consoles, tables without frames, and figures as words."""

import json
import sys
from collections.abc import Callable, Sequence
from typing import Any

from rich.console import Console
from rich.table import Table

Document = dict[str, Any]

# A table that goes to a file or a pipe is not folded to a terminal's width.
out = Console(highlight=False, markup=False, width=None if sys.stdout.isatty() else 160)
err = Console(stderr=True, highlight=False, markup=False)


def command_line() -> list[str]:
    """The command as it was typed, for the manifest."""
    return ["spillway", *sys.argv[1:]]


def show(result: Document, as_json: bool, table: Callable[[Document], Table]) -> None:
    """A native result, as JSON or as a table, and whether it is whole."""
    if as_json:
        print_json(result)
    else:
        out.print(table(result))
    if not result["complete"]:
        err.print("Ended early; the figures are of the part that was done.")


def print_json(result: Document) -> None:
    """A native result as one JSON object."""
    print(json.dumps({key: value for key, value in result.items() if key != "event"}, indent=2))


def plain_table() -> Table:
    """Rows of a name and what is said of it."""
    table = Table(box=None, show_header=False, pad_edge=False, padding=(0, 3, 0, 0))
    table.add_column(style="bold", no_wrap=True)
    table.add_column()
    return table


def figures(header: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> Table:
    """Columns of figures under a header, the first column naming the row."""
    table = Table(box=None, pad_edge=False, padding=(0, 3, 0, 0), header_style="")
    for index, title in enumerate(header):
        table.add_column(title, justify="left" if index == 0 else "right", no_wrap=True)
    for row in rows:
        table.add_row(*row)
    return table


def latency_words(latency: Document) -> str:
    """A latency's figures in one line."""
    return "  ".join(
        f"{name.replace('_', '.')} {number(value, ',.1f')}" for name, value in latency.items() if name != "count"
    )


def number(value: float | None, form: str) -> str:
    """A figure, or a dash for what is not known."""
    return "–" if value is None else format(value, form)
