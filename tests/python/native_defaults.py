"""Reads the defaults of the native side from its source: what a reader of requests falls back to, as a value of Python.

A reader says `field = settings.whole("spill.capacity_bytes", spill.capacity_bytes, …)`: a key, and its default.
That is a literal, a constant, or a field, whose initialiser is in the header that declares its struct.
"""

import ast
import operator
import re
from collections.abc import Iterator
from typing import Any

from conftest import ROOT

NATIVE = ROOT / "native"
CALL = re.compile(
    r"\b(?P<reads>\w+)\(\s*(?:fields,\s*(?P<path>path|\"\w*\"),\s*)?\"(?P<key>[\w.]*\w)\"(?P<rest>\s*[,)])", re.DOTALL
)
FIELD = re.compile(r"^ +(?:[\w:]+(?:<[\w:]+>)?) (\w+)(?: = ([^;]+)|\{([^;]*)\});", re.MULTILINE)
MEMBER = re.compile(r"^ +(?!using |friend |static )[\w:<>, *]+[\w>*] (\w+)(?: = [^;]+|\{[^;]*\})?;", re.MULTILINE)
CONSTANT = re.compile(r"\b(?:constexpr|const auto)\b[^=;{(]*?\b(\w+) = ([^;]+);")
NO_DEFAULT = ("inner", "texts", "refuse", "contains", "value")
OPERATORS: dict[type[ast.operator], Any] = {
    ast.LShift: operator.lshift,
    ast.Mult: operator.mul,
    ast.Add: operator.add,
    ast.Sub: operator.sub,
}


def without_comments(source: str) -> str:
    return re.sub(r"//[^\n]*", "", source)


def reader(function: str, parameter: str = "") -> str:
    """The text of the one function of that name, in whatever file; of several the one that takes ``parameter``."""
    defined = re.compile(rf"^\w[^\n]*\b{function}\([^;{{}}]*?\) \{{\n.*?^\}}", re.MULTILINE | re.DOTALL)
    found = [match[0] for path in NATIVE.rglob("*.cc") for match in defined.finditer(path.read_text())]
    of_it = [text for text in found if parameter in text.partition("{")[0]]
    assert len(of_it) == 1, f"{function}({parameter}) is defined {len(of_it)} times"
    return of_it[0]


def spill_reader() -> str:
    """The reader of SpillOptions, which is given a prefix and a suffix, with each key as an engine has it."""
    text = re.sub(r'\bkey\("(\w+)"\)', r'"spill.\1"', reader("read_spill_options"))
    text = re.sub(r'\bfiles\("(\w+)"', r'files("spill.\1"', text)
    return re.sub(r'\bsize\("(\w+)"', r'size("spill.\1_bytes"', text)


def body(struct: str) -> str:
    """What stands between the braces of the one struct of that name, without its comments."""
    found = [
        match[1]
        for path in NATIVE.rglob("*.h")
        for match in re.finditer(rf"^struct {struct} \{{\n(.*?)^\}};", without_comments(path.read_text()), re.M | re.S)
    ]
    assert len(found) == 1, f"struct {struct} is defined {len(found)} times"
    return found[0]


def members(*structs: str) -> set[str]:
    """All fields of the structs of these names."""
    return {field for name in structs for field in MEMBER.findall(body(name))}


def assigned(source: str) -> dict[str, str]:
    """Key → field, of each statement such as `spill.poll_ms = settings.whole("spill.poll_ms", …)`."""
    found = {}
    for statement in without_comments(source).split(";"):
        field, call = re.search(r"\b\w+\.(\w+) =(?!=)", statement), CALL.search(statement)
        if field and call:
            found[call["key"]] = field[1]
    return found


def initialisers(*structs: str) -> dict[str, str]:
    """Field → initialiser, of all fields that have one, in the structs of these names."""
    found: dict[str, str] = {}
    for name in structs:
        fields = {field: assigned or braced for field, assigned, braced in FIELD.findall(body(name))}
        assert fields, f"struct {name} has no field with an initialiser"
        found |= fields
    return found


def arguments(text: str) -> Iterator[str]:
    """The arguments of a call, from behind its first one's comma to its closing parenthesis."""
    depth, begin = 0, 0
    for at, letter in enumerate(text):
        if letter in "([{":
            depth += 1
        elif letter in ")]}" and depth:
            depth -= 1
        elif depth == 0 and letter in ",)":
            yield text[begin:at].strip()
            begin = at + 1
            if letter == ")":
                return


def literal(text: str) -> Any:
    """A literal of C++, or a shift, sum or product of some."""
    text = re.sub(r"\b[\w:]+\{(\d+)\}", r"\1", text.strip())
    text = re.sub(r"(?<=\d)'(?=\d)", "", text)
    text = re.sub(r"\b(\d+)(?:ULL|UL|U|LL)\b", r"\1", text)
    if re.fullmatch(r"\w+::\w+", text):
        return text.partition("::")[2]  # an enumerator is the word of its name
    if text in ("true", "false"):
        return text == "true"

    def value(node: ast.expr) -> Any:
        match node:
            case ast.Constant():
                return node.value
            case ast.BinOp():
                return OPERATORS[type(node.op)](value(node.left), value(node.right))
        raise ValueError(f"{text!r} is no literal")

    return value(ast.parse(text, mode="eval").body)


class Defaults:
    """What the native side takes for each key that some of its source reads; ``headers`` have constants of it."""

    def __init__(self, source: str, fields: dict[str, str], headers: str = "") -> None:
        source = without_comments(source)
        self.fields = fields
        self.constants = dict(CONSTANT.findall(without_comments(headers) + source))
        self.calls: dict[str, tuple[str, list[str]]] = {}  # key → its reader, the arguments behind the key
        for call in CALL.finditer(source):
            given = list(arguments(source[call.end("rest") :])) if "," in call["rest"] else []
            if call["reads"].startswith("optional_") or (given and call["reads"] not in NO_DEFAULT):
                self.calls[call["key"]] = call["reads"], given
        assert self.calls, "nothing is read"

    def __getitem__(self, key: str) -> Any:
        """The default of ``key``; None where it is optional."""
        reads, given = self.calls[key]
        if reads.startswith("optional_"):
            return None
        if reads == "choice":
            return re.findall(r'"([^"]*)"', given[0])[int(given[1])]
        return self._value(given[0])

    def _value(self, text: str) -> Any:
        """What an expression comes to: a field stands for its initialiser, a constant for its value."""
        text = text.strip()
        while cast := re.fullmatch(r"static_cast<[\w:]+>\((.*)\)", text, re.DOTALL):
            text = cast[1]
        if member := re.fullmatch(r"(?:[a-z]\w*\.)+(\w+?)(?:\.count\(\))?", text):
            return self._value(self.fields[member[1]])
        if re.fullmatch(r"[A-Za-z_]\w*", text) and text not in ("true", "false"):
            return self._value(self.constants[text])
        return literal(text)
