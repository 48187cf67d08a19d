"""Lists what is too large in native/: files, functions, folders. tests/python/test_house.py holds the tree to it.

A file has at most 500 lines, a function at most 60 from its first line to its closing brace, a folder at most 20 units
(a header and its source count once).
"""

import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
FILE_LINES = 500
FUNCTION_LINES = 60
FOLDER_UNITS = 20

NOT_CODE = re.compile(
    r"""//[^\n]*|/\*.*?\*/|R"(\w*)\(.*?\)\1"|"(?:\\.|[^"\\\n])*"|(?<![0-9a-fA-F])'(?:\\.|[^'\\\n])+'""", re.DOTALL
)
PREPROCESSOR = re.compile(r"^[ \t]*#(?:[^\n]*\\\n)*[^\n]*", re.MULTILINE)
ACCESS = re.compile(r"\b(?:public|private|protected)\s*:(?!:)")
SCOPE = re.compile(r"^(?:inline\s+)?namespace\b|^extern\b\s*$")
TYPE = re.compile(r"^(?:template\s*<.*>\s*)?(?:typedef\s+)?(?:class|struct|union|enum)\b[^()]*$", re.DOTALL)
# What a function's head ends with: its parameters or member initialisers, and qualifiers behind them.
FUNCTION = re.compile(r"\)(?:\s*(?:const|noexcept|override|final|mutable|&&?|->\s*[\w:<>,\s*&]+))*$")
NAME = re.compile(r"((?:[\w~]+(?:<[^()]*>)?::)*(?:operator\s*(?:\(\)|[^\s(]+)|~?\w+))\s*\(")


def code_of(source: str) -> str:
    """The source with spaces for comments, literals, directives and access specifiers: no line moves."""
    code = source
    for pattern in (NOT_CODE, PREPROCESSOR, ACCESS):
        code = pattern.sub(lambda found: re.sub(r"[^\n]", " ", found[0]), code)
    return code


def closing_brace(code: str, opening: int) -> int:
    """REQUIRES: code[opening] is an opening brace."""
    depth = 0
    for brace in re.finditer(r"[{}]", code[opening:]):
        depth += 1 if brace[0] == "{" else -1
        if depth == 0:
            return opening + brace.start()
    raise ValueError("a brace is not closed")


def functions(source: str) -> Iterator[tuple[str, int]]:
    """Name and lines of each function that the source defines, in order. A lambda is part of the function around it."""
    code = code_of(source)
    head = ""  # of the declaration that is being read, its brace initialisers left out
    begin = at = 0
    while token := re.compile(r"[{};]").search(code, at):
        head = f"{head}{code[at : token.start()]}"
        at = token.end()
        declaration = head.strip()
        if token[0] == "{" and not SCOPE.search(declaration) and not TYPE.search(declaration):
            end = closing_brace(code, token.start())
            at = end + 1
            if not FUNCTION.search(declaration):
                head += "()"  # an initialiser: the declaration goes on behind it
                continue
            first = at - len(code[begin:at].lstrip())
            name = NAME.search(declaration)
            yield name[1] if name else declaration, code.count("\n", first, end) + 1
        head = ""
        begin = at


def over_long_files(native: Path) -> dict[str, int]:
    """Path below native/ and lines of each file with too many."""
    lines = {path: path.read_text(encoding="utf-8").count("\n") for path in sources(native)}
    return {path.relative_to(native).as_posix(): count for path, count in lines.items() if count > FILE_LINES}


def over_long_functions(native: Path) -> dict[str, int]:
    """ "path below native/: function" and lines of each function with too many."""
    return {
        f"{path.relative_to(native).as_posix()}: {name}": lines
        for path in sources(native)
        for name, lines in functions(path.read_text(encoding="utf-8"))
        if lines > FUNCTION_LINES
    }


def over_full_folders(native: Path) -> dict[str, int]:
    """Folder below native/ and units of each that wants components."""
    units: dict[str, set[str]] = {}
    for path in sources(native):
        units.setdefault(path.parent.relative_to(native).as_posix(), set()).add(path.stem)
    return {folder: len(stems) for folder, stems in units.items() if len(stems) > FOLDER_UNITS}


def sources(native: Path) -> list[Path]:
    """Headers and sources, sorted."""
    return sorted(path for path in native.rglob("*") if path.suffix in {".h", ".cc"})


if __name__ == "__main__":
    for find in (over_long_files, over_long_functions, over_full_folders):
        for what, count in find(ROOT / "native").items():
            print(f"{count:5} {what}")
