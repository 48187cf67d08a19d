"""Tables, and figures as the docs print them."""

from collections.abc import Iterable, Sequence


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """A table; all columns but the first are to the right where their cells are figures."""
    body = [[cell.replace("|", "\\|") for cell in row] for row in rows]
    columns = list(zip(*body, strict=True)) if body else [()] * len(header)
    rule = [
        "--:" if place and all(_is_figure(cell) for cell in cells) else "---" for place, cells in enumerate(columns)
    ]
    return [_line(header), "|" + "|".join(rule) + "|", *map(_line, body)]


def _line(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def _is_figure(cell: str) -> bool:
    return cell[:1] in "0123456789+-–" or cell.startswith("**")


def percent(share: float) -> str:
    """A share as per cent, with a digit more below 99.95 where it would look like all of them."""
    return f"{100 * share:.1f}".removesuffix(".0") if 0 < share < 1 else f"{100 * share:.0f}"


def between(values: Iterable[float], form: str = "{:.1f}") -> str:
    """The lowest and the highest, or one figure where they are printed alike."""
    found = list(values)
    low, high = form.format(min(found)), form.format(max(found))
    return low if low == high else f"{low} to {high}"


def count(value: float) -> str:
    """A number of things, with separators."""
    return f"{value:,.0f}"


def milliseconds(microseconds: float) -> str:
    """Time in ms: whole from 10 ms on, with a digit below."""
    return f"{microseconds / 1000:,.0f}" if microseconds >= 10_000 else f"{microseconds / 1000:.1f}"


def listed(items: Sequence[str]) -> str:
    """Items in a sentence."""
    return items[0] if len(items) == 1 else f"{', '.join(items[:-1])} and {items[-1]}"
