"""The commands of a shell script, with its variables put in: enough of a shell to read a benchmark's script.

Nothing is run. Known are quotes, continued lines, comments, assignments, ``${NAME:-default}``, ``$(( ))``, arrays,
functions with their parameters, ``if``, ``for``, ``eval``. A condition that cannot be decided has all of its branches
read, a loop its words (or its body once), a function that nothing calls is read once. What a command would print is not
known: it is ``UNKNOWN``, and so is what is made of it. What is not understood is skipped, so that any text can be
read.
"""

import ast
import operator
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from spillway.lint.shell_text import MOST_DEPTH, NAME, Node, blocks_of, closing, word_end
from spillway.quantity import whole_number

UNKNOWN = "?"
MOST_STEPS = 20_000  # statements that are read of one script, loops and calls included
MOST_WORDS = 16  # of a loop that are read
MOST_TEXT = 100_000  # characters that a variable may grow to
MOST_COMMANDS = 1000
MOST_WORK = 20_000_000  # characters that are put in, in all: some seconds

_ASSIGNMENT = re.compile(rf"({NAME})(?:\[[^\]]*\])?(\+?)=")
_DECLARES = ("export", "local", "declare", "readonly", "typeset")
_OPERATORS: dict[type[ast.AST], Callable[[int, int], int]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: lambda a, b: int(a / b),
    ast.Mod: operator.mod,
}


@dataclass(frozen=True)
class Command:
    """A simple command: its words, the line in which it (or the text that is evaluated) begins, and the function."""

    words: tuple[str, ...]
    line: int
    function: str = ""


@dataclass
class _Reader:
    """Goes through the blocks with the variables that there are."""

    variables: dict[str, str]
    lines: dict[str, int] = field(default_factory=dict)  # where a variable was set
    functions: dict[str, Node] = field(default_factory=dict)
    called: set[str] = field(default_factory=set)
    active: list[str] = field(default_factory=list)  # one that calls itself is read once
    commands: dict[Command, None] = field(default_factory=dict)
    parameters: list[str] | None = None  # of the function that is read; None: of the script, unknown
    function: str = ""
    steps: int = 0
    depth: int = 0
    work: int = 0

    def go(self, nodes: Sequence[Node]) -> None:
        if self.depth > MOST_DEPTH:
            return
        self.depth += 1
        for node in nodes:
            self.steps += 1
            if self.steps > MOST_STEPS or len(self.commands) > MOST_COMMANDS or self.work > MOST_WORK:
                break
            self._node(node)
        self.depth -= 1

    def _node(self, node: Node) -> None:
        if node.kind == "function":
            self.functions[node.text] = node
        elif node.kind == "if":
            self._if(node)
        elif node.kind == "for":
            match = re.match(rf"({NAME})\s+in\s+(.*)", node.text, re.DOTALL)
            for word in (self.words(match[2])[:MOST_WORDS] if match else []) or [UNKNOWN]:
                if match:
                    self.variables[match[1]] = word
                self.go(node.branches[0][1])
        elif node.kind == "loop":
            self.go(node.branches[0][1])
        else:
            self._run(node.text, node.line)

    def _if(self, node: Node) -> None:
        """The branch whose condition holds; where that is not known, each that may, from the same variables."""
        before = dict(self.variables)
        changed: dict[str, str] = {}
        for conditions, body in node.branches:
            self.variables = dict(before)
            holds = self._holds(conditions) if conditions else True
            if holds is not False:
                self.go(body)
                changed |= {name: value for name, value in self.variables.items() if before.get(name) != value}
            if holds:
                break
        self.variables = before | changed

    def _holds(self, conditions: Sequence[str]) -> bool | None:
        """Whether a condition of one test holds; None: not known."""
        if len(conditions) != 1:
            return None
        text = conditions[0].strip()
        for opened, closed in (("[[", "]]"), ("[", "]")):
            if text.startswith(opened + " ") and text.endswith(closed):
                return _tested(self.words(text[len(opened) : -len(closed)]))
        return None

    def call(self, name: str, parameters: list[str] | None) -> None:
        """Reads a function's body."""
        self.called.add(name)
        kept = self.parameters, self.function
        self.parameters, self.function = parameters, name
        self.active.append(name)
        self.go(self.functions[name].branches[0][1])
        self.active.pop()
        self.parameters, self.function = kept

    def _run(self, text: str, line: int) -> None:
        given = []
        while match := _ASSIGNMENT.match(text):
            end = word_end(text, match.end())
            given.append((match[1], bool(match[2]), text[match.end() : end]))
            text = text[end:].lstrip()
        if not text:
            for name, more, raw in given:
                self._assign(name, more, raw, line)
            return
        words = self.words(text)
        if not words:
            return
        if words[0] in _DECLARES:
            for word in words[1:]:
                if match := _ASSIGNMENT.match(word):
                    self.variables[match[1]] = word[match.end() :]
                    self.lines[match[1]] = line
        elif words[0] == "eval":
            named = re.search(rf"\$\{{?({NAME})", text)
            self._evaluate(" ".join(words[1:]), self.lines.get(named[1], line) if named else line)
        elif words[0] == "read":
            self.variables |= {word: UNKNOWN for word in words[1:] if re.fullmatch(NAME, word)}
        elif words[0] == "shift":
            self.parameters = self.parameters[1:] if self.parameters else self.parameters
        elif words[0] in self.functions and words[0] not in self.active:
            self.call(words[0], words[1:])
        else:
            self.commands[Command(tuple(words), line, self.function)] = None

    def _assign(self, name: str, more: bool, raw: str, line: int) -> None:
        inner = raw[1:-1] if raw.startswith("(") and raw.endswith(")") else raw
        value = " ".join(self.words(inner))
        self.variables[name] = ((self.variables.get(name, "") + value) if more else value)[:MOST_TEXT]
        self.lines[name] = line

    def _evaluate(self, text: str, line: int) -> None:
        nodes = blocks_of(text)
        self.go([Node(each.kind, line, each.text, each.branches) for each in nodes])

    # Words and what stands in them.

    def words(self, raw: str) -> list[str]:
        """The words of a statement, quotes taken off and variables put in."""
        found: list[str] = []
        word: str | None = None
        at = 0
        while at < len(raw):
            char = raw[at]
            if char.isspace():
                if word is not None:
                    found.append(word)
                word, at = None, at + 1
            elif char == "'":
                end = closing(raw, at)
                word, at = (word or "") + raw[at + 1 : end].removesuffix("'"), end
            elif char == '"':
                end = closing(raw, at)
                inside = raw[at + 1 : end - 1] if raw[at:end].endswith('"') and end - at > 1 else raw[at + 1 : end]
                word, at = (word or "") + self._expanded(inside), end
            elif char == "\\":
                word, at = (word or "") + raw[at + 1 : at + 2].replace("\n", ""), at + 2
            elif char in "$`":
                value, at = self._substituted(raw, at)
                pieces = value.split()
                if value[:1].isspace() and word is not None:
                    found.append(word)
                    word = None
                for index, piece in enumerate(pieces):
                    if index and word is not None:
                        found.append(word)
                        word = None
                    word = (word or "") + piece
                if pieces and value[-1:].isspace() and word is not None:
                    found.append(word)
                    word = None
            else:
                word, at = (word or "") + char, at + 1
        found += [] if word is None else [word]
        self.work += len(raw) + sum(map(len, found))
        return found

    def _expanded(self, text: str) -> str:
        """A double-quoted text with its variables put in."""
        found: list[str] = []
        at = 0
        while at < len(text):
            if text[at] == "\\" and text[at + 1 : at + 2] in tuple('"\\$`\n'):
                found.append(text[at + 1].replace("\n", " "))
                at += 2
            elif text[at] in "$`":
                value, at = self._substituted(text, at)
                found.append(value)
            else:
                found.append(text[at])
                at += 1
        return "".join(found)[:MOST_TEXT]

    def _substituted(self, text: str, at: int) -> tuple[str, int]:
        """The value of what begins with ``$`` or a backquote, and where the text goes on."""
        if text[at] == "`":
            return UNKNOWN, closing(text, at)
        if text[at + 1 : at + 3] == "((":
            end = closing(text, at + 1)
            return self._computed(text[at + 3 : end - 2]), end
        if text[at + 1 : at + 2] == "(":
            return UNKNOWN, closing(text, at + 1)
        if text[at + 1 : at + 2] == "{":
            end = closing(text, at + 1)
            return self._braced(text[at + 2 : end - 1]), end
        match = re.compile(rf"\$({NAME}|[0-9@*#?$!-])").match(text, at)
        return (self._value(match[1]), match.end()) if match else ("$", at + 1)

    def _value(self, name: str) -> str:
        if name in ("@", "*"):
            return " ".join(self.parameters or [])
        if name.isdigit():
            if self.parameters is None:
                return UNKNOWN
            index = int(name) - 1
            return self.parameters[index] if 0 <= index < len(self.parameters) else ""
        if name == "#":
            return UNKNOWN if self.parameters is None else str(len(self.parameters))
        return UNKNOWN if name in "?$!-" else self.variables.get(name, "")

    def _braced(self, inside: str) -> str:
        match = re.match(rf"({NAME}|[0-9@*])(.*)", inside, re.DOTALL)
        if not match:
            return UNKNOWN
        value, rest = self._value(match[1]), match[2]
        if rest.startswith("["):
            values = value.split()
            index = self._expanded(rest[1 : rest.find("]")])
            if index in ("@", "*"):
                return value
            number = whole_number(index)
            return (values or [UNKNOWN])[0] if not values or number is None else values[number % len(values)]
        if rest.startswith((":-", ":=", "-", "=")):
            return value or self._unquoted(rest.lstrip(":").removeprefix(rest.lstrip(":")[0]))
        if rest.startswith((":+", "+")):
            return self._unquoted(rest.lstrip(":")[1:]) if value else ""
        return value if not rest or rest.startswith((":?", "?")) else UNKNOWN

    def _unquoted(self, text: str) -> str:
        return self._expanded(text.strip("\"'"))

    def _computed(self, text: str) -> str:
        """The value of ``$(( text ))``, where it is whole numbers and their variables."""
        text = self._expanded(text)
        text = re.sub(NAME, lambda match: self.variables.get(match[0], "0") or "0", text)
        try:
            return str(_number(ast.parse(text.strip(), mode="eval").body))
        except (ValueError, SyntaxError, ZeroDivisionError, RecursionError, MemoryError, OverflowError):
            return UNKNOWN


def _number(node: ast.AST) -> int:
    if isinstance(node, ast.Constant) and isinstance(node.value, int):
        return node.value
    if isinstance(node, ast.BinOp) and type(node.op) in _OPERATORS:
        value = _OPERATORS[type(node.op)](_number(node.left), _number(node.right))
        if abs(value) > 10**30:
            raise ValueError("too large for a shell")
        return value
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        return -_number(node.operand)
    raise ValueError("not a whole number")


def _tested(words: Sequence[str]) -> bool | None:
    """The value of a test's words; None where it is not known."""
    if words[:1] == ["!"]:
        inner = _tested(words[1:])
        return None if inner is None else not inner
    if any(UNKNOWN in word for word in words):
        return None
    if len(words) <= 1:
        return bool(words)
    if len(words) == 2 and words[0] in ("-z", "-n"):
        return (words[0] == "-z") == (words[1] == "")
    if len(words) != 3:
        return None
    left, sign, right = words
    if sign in ("=", "==", "!="):
        return (left == right) == (sign != "!=")
    try:
        a, b = int(left), int(right)
    except ValueError:
        return None
    compared = {"-eq": a == b, "-ne": a != b, "-lt": a < b, "-le": a <= b, "-gt": a > b, "-ge": a >= b}
    return compared.get(sign)


def read_commands(text: str, given: Mapping[str, str] | None = None) -> list[Command]:
    """The commands of a script, each once, in their order. ``given``: variables of the environment."""
    reader = _Reader(dict(given or {}))
    reader.go(blocks_of(text))
    for name in [each for each in reader.functions if each not in reader.called]:
        if name not in reader.called:
            reader.call(name, None)
    return list(reader.commands)
