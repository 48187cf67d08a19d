"""The result of lint: one remark for each pitfall or place, and the table of one subject."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from spillway.pitfalls import ALL, SEVEN, Pitfall

Document = dict[str, Any]
Verdict = Literal["ok", "finding", "answered", "stale answer", "cannot tell"]
OPEN: tuple[Verdict, ...] = ("finding", "stale answer")  # what needs a change: exit code 1


@dataclass(frozen=True)
class Remark:
    """For one pitfall what was examined, the verdict, and what to change."""

    pitfall: Pitfall
    verdict: Verdict
    looked_at: str
    change: str = ""
    where: str = ""  # file, line, option, job: of formats that others wrote
    answer: str = ""  # the plan's sentence, of one that is answered

    def document(self) -> Document:
        """As JSON."""
        return {
            "pitfall": self.pitfall.slug,
            "number": self.pitfall.number,
            "title": self.pitfall.title,
            "where": self.where,
            "looked_at": self.looked_at,
            "verdict": self.verdict,
            "change": self.change,
            "answer": self.answer,
        }


@dataclass(frozen=True)
class Linted:
    """A subject (plan, run directory or recipe) and its remarks, in the order of the pitfalls."""

    subject: str
    kind: str
    remarks: tuple[Remark, ...]

    @property
    def open(self) -> int:
        """How many findings are open."""
        return sum(remark.verdict in OPEN for remark in self.remarks)

    def document(self) -> Document:
        """As JSON."""
        findings = [remark.document() for remark in self.remarks]
        return {"thing": self.subject, "kind": self.kind, "open": self.open, "findings": findings}

    def counted(self) -> str:
        """The verdicts in one clause: ``2 findings, 1 answered``."""
        words = {"finding": "findings", "stale answer": "stale answers"}
        counts = []
        for verdict in ("finding", "stale answer", "answered", "cannot tell"):
            count = sum(remark.verdict == verdict for remark in self.remarks)
            if count:
                counts.append(f"{count} {verdict if count == 1 else words.get(verdict, verdict)}")
        return ", ".join(counts) or "no finding"


def table_of(subject: str, kind: str, remarks: Sequence[Remark]) -> Linted:
    """The remarks in the order of the pitfalls."""
    return Linted(subject, kind, tuple(sorted(remarks, key=lambda remark: ALL.index(remark.pitfall))))


def with_answers(remarks: Sequence[Remark], answers: Mapping[str, str], *, report_stale: bool) -> list[Remark]:
    """The remarks, with findings of ``answers`` marked as answered; ``report_stale``: answers without a finding are
    reported."""
    remarked = []
    for remark in remarks:
        answer = answers.get(remark.pitfall.slug, "")
        if answer and remark.verdict in ("finding", "cannot tell"):
            remarked.append(replace(remark, verdict="answered", answer=answer, change=""))
        elif answer and report_stale:
            change = f"there is nothing to answer: remove lint.answers.{remark.pitfall.slug}"
            remarked.append(replace(remark, verdict="stale answer", answer=answer, change=change))
        else:
            remarked.append(remark)
    return remarked


def worst(verdicts: Sequence[Verdict]) -> Verdict:
    """The verdict that counts of several on one pitfall: a finding, then "cannot tell", then ok."""
    order: tuple[Verdict, ...] = ("finding", "cannot tell", "ok")
    return next((each for each in order if each in verdicts), "ok")


def covers_all(linted: Linted) -> bool:
    """Whether each of the seven has a remark."""
    return {remark.pitfall for remark in linted.remarks} >= set(SEVEN)
