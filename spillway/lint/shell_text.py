"""A shell script as blocks of statements: quotes, continued lines, comments, here-documents, ``if``, loops, functions.

What is not understood is skipped, so that any text can be read.
"""

import re
from dataclasses import dataclass, field

MOST_DEPTH = 20  # of blocks in each other
NAME = r"[A-Za-z_]\w*"


@dataclass(frozen=True)
class Statement:
    """A command or a part of a block, and the line that it begins in."""

    line: int
    text: str
    taken: int = 0  # how many words such as `then` were taken off it


@dataclass(frozen=True)
class Node:
    """A statement, or a block: ``if`` with its branches, ``for`` and other loops, a function."""

    kind: str
    line: int
    text: str = ""
    branches: tuple[tuple[tuple[str, ...], tuple["Node", ...]], ...] = ()  # conditions and body


@dataclass
class Splitter:
    """Splits a script at its unquoted separators."""

    text: str
    at: int = 0
    line: int = 1
    begun: int = 1
    piece: list[str] = field(default_factory=list)
    found: list[Statement] = field(default_factory=list)
    heredocs: list[str] = field(default_factory=list)
    tests: int = 0  # depth of [[ ]]

    def run(self) -> list[Statement]:
        """The statements in their order."""
        while self.at < len(self.text):
            self._step(self.text[self.at])
        self._end()
        return self.found

    def _take(self, count: int = 1) -> None:
        taken = self.text[self.at : self.at + count]
        if not self.piece:
            if taken.isspace():
                self.at += count
                self.line += taken.count("\n")
                return
            self.begun = self.line
        self.piece.append(taken)
        self.line += taken.count("\n")
        self.at += count

    def _end(self) -> None:
        text = "".join(self.piece).strip()
        if text:
            self.found.append(Statement(self.begun, text))
        self.piece = []

    def _skip(self, count: int) -> None:
        self.line += self.text.count("\n", self.at, self.at + count)
        self.at += count

    def _step(self, char: str) -> None:
        two = self.text[self.at : self.at + 2]
        fresh = not self.piece or self.piece[-1][-1:].isspace()
        if char == "\\":
            if two == "\\\n":
                self._skip(2)
                if self.piece:
                    self.piece.append(" ")
            else:
                self._take(2)
        elif char in "'\"`":
            self._take(closing(self.text, self.at) - self.at)
        elif char == "$" and two in ("$(", "${", "$'", '$"'):
            self._take(closing(self.text, self.at + 1) - self.at)
        elif char == "#" and fresh:
            end = self.text.find("\n", self.at)
            self.at = len(self.text) if end < 0 else end
        elif two == "((" and fresh:
            end = self.text.find("))", self.at)
            self._skip((len(self.text) if end < 0 else end + 2) - self.at)
        elif two in ("[[", "]]"):
            self.tests = max(0, self.tests + (1 if two == "[[" else -1))
            self._take(2)
        elif two == "<<" and self.text[self.at : self.at + 3] != "<<<" and not self.tests:
            self._heredoc()
        elif char == "\n":
            self.tests = 0
            self._end()
            self._skip(1)
            self._skip_heredocs()
        else:
            self._separate(char, two)

    def _separate(self, char: str, two: str) -> None:
        if self.tests:
            self._take()
        elif two in ("&&", "||", ";;"):
            self._end()
            self.at += 2
        elif char == "&" and (self.piece[-1:] in ([">"], ["<"]) or two == "&>"):
            self._take()
        elif char == "(" and self.piece and self.piece[-1] == "=":
            self._take(closing(self.text, self.at) - self.at)
        elif two == "()" and self.piece:
            self._take(2)
        elif char in ";|&()":
            self._end()
            self.at += 1
        else:
            self._take()

    def _heredoc(self) -> None:
        match = re.compile(r"<<-?\s*(['\"]?)(\w+)\1").match(self.text, self.at)
        if match:
            self.heredocs.append(match[2])
        self._skip(match.end() - self.at if match else 2)

    def _skip_heredocs(self) -> None:
        for word in self.heredocs:
            end = re.compile(rf"^\s*{re.escape(word)}\s*$", re.MULTILINE).search(self.text, self.at)
            self._skip((end.end() if end else len(self.text)) - self.at)
        self.heredocs = []


def closing(text: str, at: int) -> int:
    """The index after the quote or bracket that closes the one at ``at``; the end of the text where none does."""
    opener = text[at]
    if opener == "'":
        end = text.find("'", at + 1)
        return len(text) if end < 0 else end + 1
    closer = {"(": ")", "{": "}"}.get(opener, opener)
    position, depth = at + 1, 1
    while position < len(text):
        char = text[position]
        if char == "\\":
            position += 2
            continue
        if char == closer:
            depth -= 1
            if depth == 0:
                return position + 1
        elif char == opener:
            depth += 1
        elif opener != '"' and char in "'\"":
            position = closing(text, position) if char == "'" else _quoted_end(text, position)
            continue
        elif opener == '"' and text[position : position + 2] in ("$(", "${"):
            position = closing(text, position + 1)
            continue
        position += 1
    return len(text)


def _quoted_end(text: str, at: int) -> int:
    """Behind a double-quoted text, without a look at what is substituted in it: brackets in it may be unbalanced."""
    match = re.compile(r'"(?:[^"\\]|\\.)*"', re.DOTALL).match(text, at)
    return match.end() if match else len(text)


@dataclass
class Blocks:
    """Gathers statements into blocks."""

    statements: list[Statement]
    at: int = 0
    depth: int = 0

    def read(self, ends: tuple[str, ...] = ()) -> tuple[Node, ...]:
        """Nodes up to a statement that begins with one of ``ends``, which stays."""
        nodes: list[Node] = []
        self.depth += 1
        while self.at < len(self.statements):
            statement = self.statements[self.at]
            word = _first(statement.text)
            if word in ends:
                break
            self.at += 1
            nodes += self._node(statement, word)
        self.depth -= 1
        return tuple(nodes)

    def _node(self, statement: Statement, word: str) -> list[Node]:
        rest = statement.text[len(word) :].strip()
        if self.depth > MOST_DEPTH:
            return []
        match = re.match(rf"(?:function\s+)?({NAME})\s*(?:\(\s*\))?\s*(\{{)?(.*)", statement.text, re.DOTALL)
        if match and (word == "function" or re.match(rf"{NAME}\s*\(\)", statement.text)):
            return [self._function(statement.line, match[1], bool(match[2]), match[3])]
        if word == "if":
            return [self._if(statement.line, rest)]
        if word in ("while", "until", "for", "select"):
            return [self._loop(statement.line, word, rest)]
        if word in ("then", "do", "else", "{", "!", "time") and rest:
            if statement.taken < MOST_DEPTH:
                self._put_back(statement.line, rest, statement.taken + 1)
            return []
        if word in ("then", "do", "else", "fi", "done", "esac", "{", "}", "case", "in"):
            return []
        return [Node("run", statement.line, statement.text)]

    def _put_back(self, line: int, text: str, taken: int = 0) -> None:
        self.at -= 1
        self.statements[self.at] = Statement(line, text, taken)

    def _until(self, word: str) -> list[str]:
        """The statements before the one that begins with ``word``; what follows the word stays to be read."""
        before = []
        while self.at < len(self.statements):
            statement = self.statements[self.at]
            self.at += 1
            if _first(statement.text) == word:
                rest = statement.text[len(word) :].strip()
                if rest:
                    self._put_back(statement.line, rest)
                break
            before.append(statement.text)
        return before

    def _if(self, line: int, condition: str) -> Node:
        branches = []
        while True:
            conditions = (condition, *self._until("then"))
            branches.append((conditions, self.read(("elif", "else", "fi"))))
            word = _first(self.statements[self.at].text) if self.at < len(self.statements) else "fi"
            if word != "elif":
                break
            condition = self.statements[self.at].text[4:].strip()
            self.at += 1
        if word == "else":
            statement = self.statements[self.at]
            self.at += 1
            rest = statement.text[4:].strip()
            if rest:
                self._put_back(statement.line, rest)
            branches.append(((), self.read(("fi",))))
        self.at += 1
        return Node("if", line, "", tuple(branches))

    def _loop(self, line: int, word: str, head: str) -> Node:
        self._until("do")
        body = self.read(("done",))
        self.at += 1
        return Node("for" if word == "for" else "loop", line, head, (((), body),))

    def _function(self, line: int, name: str, opened: bool, rest: str) -> Node:
        if rest.strip():
            self._put_back(line, rest.strip())
        elif not opened and self.at < len(self.statements) and _first(self.statements[self.at].text) == "{":
            inner = self.statements[self.at]
            self.at += 1
            if inner.text[1:].strip():
                self._put_back(inner.line, inner.text[1:].strip())
        body = self.read(("}",))
        self.at += 1
        return Node("function", line, name, (((), body),))


def word_end(text: str, at: int) -> int:
    """The index after the word that begins at ``at``, its quotes and substitutions included."""
    begun = at
    while at < len(text) and not text[at].isspace():
        if text[at] in "'\"`" or (text[at] == "(" and at == begun):
            at = closing(text, at)
        elif text[at] == "$" and text[at + 1 : at + 2] in ("(", "{"):
            at = closing(text, at + 1)
        else:
            at += 2 if text[at] == "\\" else 1
    return min(at, len(text))


def _first(text: str) -> str:
    return text.split(None, 1)[0] if text.strip() else ""


def blocks_of(text: str) -> tuple[Node, ...]:
    """The blocks of a script, to its end whatever stands in it."""
    return Blocks(Splitter(text).run()).read()
