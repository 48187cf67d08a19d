"""Dotted keys in nested documents: how plans, arms, sweeps and ``--set`` name one value of a plan.

``a.b.c`` names a value in tables; the element of a list is named by its index or its ``name``: ``phases.load.threads``.
A phase without one is named by its workload, which is its name then.
The keys of an open table keep their own dots: ``drive.set.capacity.spare_factor``.
"""

import tomllib
from collections.abc import Iterator
from typing import Any

from spillway import toml
from spillway.errors import SpillwayError
from spillway.plan.keys import OPEN_TABLES
from spillway.quantity import whole_number
from spillway.ssd.simulate import split_setting

Document = dict[str, Any]


def parse_override(override: str) -> tuple[list[str], Any]:
    """(key in parts, value) of ``a.b=value``; the value as TOML where it is valid TOML, else as text. Raises
    SpillwayError where it is no ``KEY=VALUE``."""
    key, text = split_setting(override)
    try:
        document = toml.loads(f"value = {text}")
    except tomllib.TOMLDecodeError:
        document = {}
    return key_parts(key), document["value"] if len(document) == 1 else text  # of several lines it is a text


class NoElement(SpillwayError):
    """A dotted key names a list's element that does not exist. ``where``: what named it."""

    def __init__(self, where: str, sentence: str) -> None:
        """Of one key."""
        super().__init__(sentence)
        self.where = where


def key_parts(key: str) -> list[str]:
    """A dotted key in parts; engine options and preset keys keep their own dots: drive.set.capacity.spare_factor."""
    for table in OPEN_TABLES:
        if key.startswith(table + "."):
            return [*table.split("."), key.removeprefix(table + ".")]
    return key.split(".")


def put(document: Document, key: list[str], value: Any, where: str) -> None:
    """Sets a dotted key; a list's element is named by its index or by its ``name``. Raises SpillwayError."""
    node: Any = document
    for part in key[:-1]:
        node = _element(node, part, where) if isinstance(node, list) else node.setdefault(part, {})
        if not isinstance(node, dict | list):
            raise SpillwayError(f"{where}: {part} is a value, not a table; see plans/quickstart.toml for the keys.")
    if isinstance(node, list):
        raise SpillwayError(f"{where}: name a key of one element, such as phases.0.duration_s=10.")
    node[key[-1]] = value


def look_up(document: Document, key: list[str]) -> Any:
    """The value of a dotted key; None where there is none. Raises NoElement for a list's element that does not
    exist."""
    node: Any = document
    for part in key:
        node = _element(node, part, ".".join(key)) if isinstance(node, list) else node.get(part)
        if node is None:
            return None
    return node


def _element(elements: list[Any], part: str, where: str) -> Any:
    index = whole_number(part)
    if index is not None and index < len(elements):
        return elements[index]
    tables = [element for element in elements if isinstance(element, dict)]
    called = [(element.get("name", element.get("workload")), element) for element in tables]
    named = {name: element for name, element in called if isinstance(name, str)}
    if part not in named:
        known = f"by name there are: {', '.join(str(name) for name in named)}" if named else "none has a name"
        by_number = f", and by number 0 to {len(elements) - 1}" if elements else ""
        raise NoElement(where, f"{where}: there is no element {part!r}; {known}{by_number}.")
    return named[part]


def undotted(table: Document, where: str) -> Document:
    """A table with quoted dotted keys (``"load.num" = 1``) as the nested tables they mean, and those of open tables in
    one piece, however they were written: of two spellings neither is to win over what is set later. Raises
    SpillwayError for a key that is there in both."""
    nested: Document = {}
    for key, value in pairs(table):
        *tables, last = key_parts(key)
        node = nested
        for part in tables:
            node = node.setdefault(part, {})
            if not isinstance(node, dict):
                raise SpillwayError(f"{where}: {part} is a value, not a table, and {key} is there too; leave one.")
        if last in node:
            raise SpillwayError(f"{where}: {key} is there twice, in quotes and without; leave one.")
        node[last] = value
    return nested


def pairs(table: Document, prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Every value by its dotted key."""
    for key, value in table.items():
        if isinstance(value, dict):
            yield from pairs(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", value


def overlay(base: Document, top: Document) -> Document:
    """``base`` with the values of ``top`` over its own, table by table. Changes and returns ``base``."""
    for key, value in top.items():
        if isinstance(value, dict) and isinstance(base.get(key), dict):
            overlay(base[key], value)
        else:
            base[key] = value
    return base


def flatten(document: Document, prefix: str = "") -> dict[str, Any]:
    """Dotted keys and their values; open tables stay whole."""
    found: dict[str, Any] = {}
    for key, value in document.items():
        dotted = f"{prefix}{key}"
        if isinstance(value, dict) and dotted not in OPEN_TABLES:
            found |= flatten(value, dotted + ".")
        else:
            found[dotted] = value
    return found


def shared_by(documents: list[Document]) -> Document:
    """The values that all documents have in common, table by table."""
    first, *others = documents
    shared: Document = {}
    for key, value in first.items():
        if isinstance(value, dict):
            shared[key] = shared_by([document.get(key, {}) for document in documents])
        elif all(key in other and other[key] == value for other in others):
            shared[key] = value
    return shared


def without(document: Document, shared: Document) -> Document:
    """``document`` without the values of ``shared``."""
    own: Document = {}
    for key, value in document.items():
        if isinstance(value, dict):
            inner = without(value, shared.get(key, {}))
            if inner:
                own[key] = inner
        elif key not in shared:
            own[key] = value
    return own
