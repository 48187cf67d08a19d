"""Metrics as text that Prometheus reads ("Exposition formats", version 0.0.4)."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

Labels = tuple[tuple[str, str], ...]  # name and value, in the order in which they are printed


@dataclass
class Metric:
    """One metric: ``kind`` is counter or gauge, and a counter's name ends in _total."""

    name: str
    kind: str
    help: str
    samples: dict[Labels, float] = field(default_factory=dict)


def as_text(metrics: Iterable[Metric]) -> str:
    """The metrics that have samples, one after the other."""
    return "".join(_lines(metric) for metric in metrics if metric.samples)


def labels(named: Mapping[str, str]) -> Labels:
    """Labels in their order; those without a value are left out, because Prometheus takes them as missing."""
    return tuple((name, value) for name, value in named.items() if value)


def _lines(metric: Metric) -> str:
    text = metric.help.replace("\\", "\\\\").replace("\n", "\\n")
    head = f"# HELP {metric.name} {text}\n# TYPE {metric.name} {metric.kind}\n"
    return head + "".join(f"{metric.name}{_braces(at)} {_number(value)}\n" for at, value in metric.samples.items())


def _braces(at: Labels) -> str:
    escapes = str.maketrans({"\\": "\\\\", '"': '\\"', "\n": "\\n"})
    inner = ",".join(f'{name}="{value.translate(escapes)}"' for name, value in at)
    return f"{{{inner}}}" if inner else ""


def _number(value: float) -> str:
    return str(int(value)) if float(value).is_integer() else repr(float(value))
