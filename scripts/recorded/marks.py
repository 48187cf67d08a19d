"""Marked blocks of a Markdown page, and what fills them.

    <!-- runs: NAME ARGUMENT… -->

    whatever the generator NAME makes

    <!-- /runs -->

A block's marks stand on lines of their own. Both marks on one line, with text around them, hold a single figure.
"""

import difflib
import re
import shlex
from collections.abc import Callable

from spillway.errors import SpillwayError

MARK = re.compile(r"<!--\s*/?runs\b.*?-->")
BEGIN = re.compile(r"<!--\s*runs:\s*(\S.*?)\s*-->")
END = re.compile(r"<!--\s*/runs\s*-->")

Make = Callable[[str, list[str]], list[str]]


def fill(text: str, page: str, make: Make) -> str:
    """The page with what ``make`` gives for the name and the arguments of each block between its marks.

    Raises SpillwayError, with the page and the line, for marks that are not pairs and for what ``make`` raises.
    """
    parts, kept = [], 0
    marks = list(MARK.finditer(text))
    while marks:
        begin = marks.pop(0)
        where = f"{page}:{text.count(chr(10), 0, begin.start()) + 1}"
        call = BEGIN.fullmatch(begin[0])
        if call is None:
            raise SpillwayError(f"{where}: {begin[0]} begins no block; write <!-- runs: NAME --> before it.")
        if not marks or not END.fullmatch(marks[0][0]):
            raise SpillwayError(f"{where}: {begin[0]} has no end; write <!-- /runs --> behind its block.")
        end = marks.pop(0)
        parts += [text[kept : begin.end()], _content(text[begin.end() : end.start()], call[1], where, make)]
        kept = end.start()
    return "".join([*parts, text[kept:]])


def _content(old: str, call: str, where: str, make: Make) -> str:
    try:
        name, *arguments = shlex.split(call)
        lines = make(name, arguments)
    except (SpillwayError, ValueError) as error:
        raise SpillwayError(f"{where}: {error}") from error
    if "\n" in old:
        return "\n".join(["", "", *lines, "", ""])
    if len(lines) != 1:
        raise SpillwayError(f"{where}: {name} makes {len(lines)} lines; put its marks on lines of their own.")
    return lines[0]


def nearest(name: str, names: list[str]) -> str:
    """A hint for a name that is unknown."""
    close = difflib.get_close_matches(name, names, 1)
    return f"did you mean {close[0]}?" if close else f"there are {', '.join(sorted(names))}."
