"""The parts of a reproduction, and their form as JSON and as Markdown."""

import csv
from collections.abc import Collection, Sequence
from dataclasses import asdict, dataclass, field
from importlib.resources import files
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from spillway.models.arrays import Array
from spillway.reproduce.errata import ERRATA

TOLERANCE = 0.05  # relative; the papers print two or three digits and round figures. Source: guess

Verdict = Literal["agrees", "differs", "open", "misprint"]


@dataclass(frozen=True)
class Check:
    """One published figure, ours, and the verdict."""

    where: str
    what: str
    published: str
    ours: str
    verdict: Verdict
    erratum: str = ""
    remark: str = ""


@dataclass(frozen=True)
class Table:
    """Cells as they are printed."""

    caption: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]


@dataclass(frozen=True)
class Curve:
    """A line of a chart, or, with ``marks``, its points."""

    label: str
    x: Array
    y: Array
    marks: bool = False


@dataclass(frozen=True)
class Panel:
    """One pair of axes."""

    title: str
    x_label: str
    y_label: str
    curves: Sequence[Curve]
    log_x: bool = False
    log_y: bool = False


@dataclass(frozen=True)
class Chart:
    """Panels side by side; ``name`` is that of its file."""

    name: str
    caption: str
    panels: Sequence[Panel]


@dataclass(frozen=True)
class Section:
    """One table or figure of the paper: what of it could be made again, and how it compares."""

    title: str
    standing: str  # "made again", "made again in part: …", "given", "not in the data: …"
    words: str = ""
    tables: Sequence[Table] = field(default_factory=tuple)
    charts: Sequence[Chart] = field(default_factory=tuple)
    checks: Sequence[Check] = field(default_factory=tuple)


@dataclass(frozen=True)
class Reproduction:
    """A whole paper."""

    paper: str
    title: str
    sections: Sequence[Section]

    def checks(self) -> list[Check]:
        """Those of all sections."""
        return [check for section in self.sections for check in section.checks]

    def count(self) -> dict[Verdict, int]:
        """How many checks have each verdict."""
        verdicts = [check.verdict for check in self.checks()]
        return {
            "agrees": verdicts.count("agrees"),
            "differs": verdicts.count("differs"),
            "open": verdicts.count("open"),
            "misprint": verdicts.count("misprint"),
        }

    def count_in_words(self) -> str:
        """The counts as a page begins with them. Misprints are apart: nothing is computed for them."""
        count = self.count()
        compared = len(self.checks()) - count["misprint"]
        misprints = {0: "", 1: " 1 misprint."}.get(count["misprint"], f" {count['misprint']} misprints.")
        return (
            f"{compared} published figures compared with what they follow from: {count['agrees']} agree, "
            f"{count['differs']} differ, {count['open']} open.{misprints}"
        )


# ---------------------------------------------------------------------------------------------------------------------
# What the papers print


def reference(name: str) -> list[dict[str, str]]:
    """The rows of spillway/reference/NAME.csv; lines that begin with # are its source."""
    text = (files("spillway") / "reference" / f"{name}.csv").read_text(encoding="utf-8")
    return list(csv.DictReader(line for line in text.splitlines() if not line.startswith("#")))


def columns(name: str) -> dict[str, Array]:
    """The columns of a file that has only numbers."""
    rows = reference(name)
    return {key: np.array([float(row[key]) for row in rows]) for key in rows[0]}


class InText:
    """The figures in a paper's text, by their id, as checks."""

    def __init__(self, name: str) -> None:
        """Reads spillway/reference/NAME.csv."""
        self.rows = {row["id"]: row for row in reference(name)}

    def value(self, name: str) -> float:
        """The figure, or the lower end of the range."""
        return float(self.rows[name]["low"])

    def most(self, name: str) -> float:
        """The figure, or the upper end of the range."""
        return float(self.rows[name]["high"])

    def published(self, name: str) -> str:
        """As it is printed: one figure or a range, with its unit."""
        row = self.rows[name]
        low, high = (float(row[key]) for key in ("low", "high"))
        printed = f"{low:,g}" if low == high else f"{low:,g} to {high:,g}"
        return f"{printed}{_unit(row['unit'])}"

    def check(self, name: str, ours: float, erratum: str = "", remark: str = "") -> Check:
        """Ours against it; agrees within TOLERANCE of the figure or range. Erratum and remark are for what differs."""
        row = self.rows[name]
        low, high = (float(row[key]) for key in ("low", "high"))
        agrees = low * (1 - TOLERANCE) <= ours <= high * (1 + TOLERANCE)
        return Check(
            row["where"],
            row["what"],
            self.published(name),
            f"{digits(ours)}{_unit(row['unit'])}",
            "agrees" if agrees else "differs",
            "" if agrees else erratum,
            remark,
        )

    def open(self, name: str, remark: str) -> Check:
        """A figure that the paper's data cannot be compared with."""
        row = self.rows[name]
        return Check(row["where"], row["what"], self.published(name), "–", "open", "", remark)


def misprint(where: str, what: str, published: str, meant: str, erratum: str) -> Check:
    """A symbol that the paper's own context contradicts. This is found by reading: there is nothing to compute."""
    return Check(where, what, published, meant, "misprint", erratum, "read, not computed")


def statement(
    where: str, what: str, published: str, ours: str, holds: bool, erratum: str = "", remark: str = ""
) -> Check:
    """A check of a statement in words: it agrees when it ``holds``."""
    return Check(where, what, published, ours, "agrees" if holds else "differs", "" if holds else erratum, remark)


def _unit(unit: str) -> str:
    return {"": "", "x": "×"}.get(unit, f" {unit}")


def digits(value: float, count: int = 3) -> str:
    """``count`` significant digits, thousands separated, no exponent."""
    if value == 0 or not np.isfinite(value):
        return "0" if value == 0 else "∞"
    rounded = float(f"{value:.{count - 1}e}")
    decimals = max(0, count - 1 - int(np.floor(np.log10(abs(rounded)))))
    return f"{rounded:,.{decimals}f}"


def cells(values: ArrayLike, count: int = 3) -> list[str]:
    """Each value by ``digits``."""
    return [digits(float(value), count) for value in np.ravel(np.asarray(values, dtype=np.float64))]


# ---------------------------------------------------------------------------------------------------------------------
# Forms


def as_document(reproduction: Reproduction) -> dict[str, Any]:
    """For JSON: sections with tables, checks and the points of every chart."""

    def plain(value: Any) -> Any:
        if isinstance(value, np.ndarray):
            return [float(f"{each:.6g}") for each in value]
        if isinstance(value, dict):
            return {key: plain(each) for key, each in value.items()}
        return [plain(each) for each in value] if isinstance(value, list | tuple) else value

    return {"paper": reproduction.paper, "title": reproduction.title, "count": reproduction.count()} | {
        "errata": errata_of(reproduction),
        "sections": [plain(asdict(section)) for section in reproduction.sections],
    }


def as_markdown(reproduction: Reproduction, pictures: str = "", shown: Collection[str] | None = None) -> str:
    """The paper as Markdown, beginning with a heading of level 2.

    Charts are links into the directory ``pictures``; where ``shown`` is given, only those whose names it has.
    """
    lines = [f"## {reproduction.title}", "", reproduction.count_in_words(), ""]
    for section in reproduction.sections:
        lines += [f"### {section.title}", "", f"*{section.standing[0].upper()}{section.standing[1:]}.*", ""]
        if section.words:
            lines += [section.words, ""]
        for table in section.tables:
            lines += [f"{table.caption}:", "", *_markdown_table(table.columns, table.rows), ""]
        for chart in (each for each in section.charts if shown is None or each.name in shown):
            place = f"{pictures}/{chart.name}.svg" if pictures else f"{chart.name}.svg"
            lines += [f"![{chart.caption}]({place})", ""]
        if section.checks:
            lines += [*_markdown_table(CHECK_COLUMNS, [check_cells(check) for check in section.checks]), ""]
    lines += ["### Errata", "", *(f"- **{name}** {words}" for name, words in errata_of(reproduction).items()), ""]
    return "\n".join(lines)


def errata_of(reproduction: Reproduction) -> dict[str, str]:
    """The errata that its verdicts name, in the order of ERRATA."""
    named = {check.erratum for check in reproduction.checks()}
    return {name: words for name, words in ERRATA.items() if name in named}


CHECK_COLUMNS = ("where", "what", "published", "ours", "verdict", "remark")


def check_cells(check: Check) -> list[str]:
    """A check as the cells of CHECK_COLUMNS."""
    verdict = f"{check.verdict} ({check.erratum})" if check.erratum else check.verdict
    return [check.where, check.what, check.published, check.ours, verdict, check.remark]


def _markdown_table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    def line(cells: Sequence[str]) -> str:
        return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"

    return [line(columns), "|" + "---|" * len(columns), *(line(row) for row in rows)]
