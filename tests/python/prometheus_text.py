"""A strict reader of Prometheus' text format, with the rules of its linter (promtool check metrics). It raises
ValueError at the first line that breaks one."""

import math
import re
from dataclasses import dataclass, field

Labels = frozenset[tuple[str, str]]

NAME = re.compile(r"[a-z][a-z0-9]*(_[a-z0-9]+)*")  # stricter than Prometheus: as its conventions ask for
LABEL = re.compile(r'([a-z][a-z0-9_]*)="((?:[^"\\\n]|\\["\\n])*)"')
ABBREVIATED = {"s", "ms", "us", "ns", "sec", "b", "kb", "mb", "gb", "tb", "pb", "m", "h", "d", "micros", "millis"}
NOT_BASE = {"milliseconds", "microseconds", "minutes", "hours", "kilobytes", "megabytes", "gigabytes", "mib", "percent"}
TYPES = {"counter", "gauge"}
OF_OTHER_TYPES = {"count", "sum", "bucket", "info"}


@dataclass
class Family:
    """A metric with its samples."""

    help: str
    type: str = ""
    samples: dict[Labels, float] = field(default_factory=dict)


def parse(text: str) -> dict[str, Family]:
    """The metrics of a text by their names."""
    if text and not text.endswith("\n"):
        raise ValueError("the last line does not end")
    families: dict[str, Family] = {}
    current = ""
    for line in text.split("\n")[:-1]:  # no other character ends a line
        if line.startswith("# HELP "):
            current = _begin(line, families)
        elif line.startswith("# TYPE "):
            _set_type(line, current, families)
        else:
            _add_sample(line, current, families)
    for name, family in families.items():
        if not family.samples:
            raise ValueError(f"{name} has no sample")
    return families


def _begin(line: str, families: dict[str, Family]) -> str:
    _, _, name, *text = line.split(" ", 3)
    if not text or not text[0].strip():
        raise ValueError(f"no help: {line}")
    if name in families:
        raise ValueError(f"{name} comes twice")
    if re.search(r"\\[^\\n]|\\$", text[0].replace("\\\\", "")):
        raise ValueError(f"a wrong escape: {line}")
    families[name] = Family(text[0])
    return name


def _set_type(line: str, current: str, families: dict[str, Family]) -> None:
    _, _, name, kind = line.split(" ")
    if name != current or families[name].type or families[name].samples:
        raise ValueError(f"in the wrong place: {line}")
    if kind not in TYPES:
        raise ValueError(f"an unknown type: {line}")
    _lint(name, kind)
    families[name].type = kind


def _lint(name: str, kind: str) -> None:
    words = name.split("_")
    if not NAME.fullmatch(name):
        raise ValueError(f"not a name: {name}")
    if (kind == "counter") != (words[-1] == "total") or "total" in words[:-1]:
        raise ValueError(f"a counter, and no other, ends in _total: {name}")
    if bad := set(words) & (ABBREVIATED | NOT_BASE | TYPES):
        raise ValueError(f"{name} has {bad}")
    if words[-1] in OF_OTHER_TYPES:
        raise ValueError(f"{name} ends as a metric of another type")


def _add_sample(line: str, current: str, families: dict[str, Family]) -> None:
    found = re.fullmatch(r"([a-zA-Z_:][\w:]*)(?:\{(.*)\})? (\S+)", line)
    if not found:
        raise ValueError(f"not a sample: {line!r}")
    name, inner, value = found.groups()
    if name != current or not families[current].type:
        raise ValueError(f"a sample apart from its metric: {line}")
    pairs, at = [], 0
    while inner is not None and at < len(inner):
        label = LABEL.match(inner, at)
        if not label or (label.end() < len(inner) and inner[label.end()] != ","):
            raise ValueError(f"wrong labels: {line}")
        pairs.append((label[1], label[2]))
        at = label.end() + 1
    if inner == "" or (inner or "").endswith(",") or len({name for name, _ in pairs}) < len(pairs):
        raise ValueError(f"wrong labels: {line}")
    number = float(value)
    if math.isnan(number) or (families[name].type == "counter" and number < 0):
        raise ValueError(f"not a value: {line}")
    labels = frozenset(pairs)
    if labels in families[name].samples:
        raise ValueError(f"comes twice: {line}")
    families[name].samples[labels] = number
