"""Marked blocks of a Markdown page, and what fills them.

    <!-- runs: NAME ARGUMENT… -->

    whatever the generator NAME makes

    <!-- /runs -->

A block's markers stand on lines of their own. Both markers on one line, behind a word, hold a single figure: a comment
that begins a line would begin a block of HTML there.
"""

import difflib
import re
import shlex
from collections.abc import Callable

from spillway.errors import SpillwayError

MARKER = re.compile(r"<!--\s*/?runs\b.*?-->")
BEGIN = re.compile(r"<!--\s*runs:\s*(\S.*?)\s*-->")
END = re.compile(r"<!--\s*/runs\s*-->")

Make = Callable[[str, list[str]], list[str]]


def fill(text: str, page: str, make: Make) -> str:
    """The page with what ``make`` gives for the name and the arguments of each block between its markers.

    Raises SpillwayError, with the page and the line, for markers that are not pairs and for what ``make`` raises.
    """
    parts, kept = [], 0
    markers = list(MARKER.finditer(text))
    while markers:
        begin = markers.pop(0)
        where = f"{page}:{text.count(chr(10), 0, begin.start()) + 1}"
        call = BEGIN.fullmatch(begin[0])
        if call is None:
            raise SpillwayError(f"{where}: {begin[0]} begins no block; write <!-- runs: NAME --> before it.")
        if not markers or not END.fullmatch(markers[0][0]):
            raise SpillwayError(f"{where}: {begin[0]} has no end; write <!-- /runs --> behind its block.")
        end = markers.pop(0)
        begins_line = not text[text.rfind("\n", 0, begin.start()) + 1 : begin.start()].strip()
        if "\n" in text[begin.end() : end.start()]:
            content = "\n".join(["", "", *_lines(call[1], where, make), "", ""])
        elif begins_line:
            raise SpillwayError(
                f"{where}: {begin[0]} begins a line; write a word before a figure, or /runs below a block."
            )
        else:
            content = _figure(_lines(call[1], where, make), where, begin[0])
        parts += [text[kept : begin.end()], content]
        kept = end.start()
    return "".join([*parts, text[kept:]])


def _lines(call: str, where: str, make: Make) -> list[str]:
    try:
        name, *arguments = shlex.split(call)
        return make(name, arguments)
    except (SpillwayError, ValueError) as error:
        raise SpillwayError(f"{where}: {error}") from error


def _figure(lines: list[str], where: str, marker: str) -> str:
    if len(lines) != 1:
        raise SpillwayError(f"{where}: {marker} makes {len(lines)} lines; put its markers on lines of their own.")
    return lines[0]


def nearest(name: str, names: list[str]) -> str:
    """A hint for a name that is unknown."""
    close = difflib.get_close_matches(name, names, 1)
    return f"did you mean {close[0]}?" if close else f"there are {', '.join(sorted(names))}."
