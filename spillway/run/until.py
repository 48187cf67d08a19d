"""Ends the phases that go on ``until = "steady"``: when a run has become steady, as its samples say so far.

The verdict is asked for again whenever there are a tenth more samples than at the last time. Each look is one more
chance that noise passes for steadiness, so looks are few: some 25 between the first, at 25 samples, and 250.

How long a burst may be level is not known, so a run that waits for steadiness also has to write 3 times the
capacity, unless the plan names other tests (B13).
"""

from collections.abc import Sequence
from typing import Any

from spillway.figures.amplification import ratio
from spillway.plan.arm import Arm
from spillway.rundir.samples import Row, measured, nand_bytes
from spillway.steady import CHECKS, LEAST_SAMPLES, Round, Verdict, judge

GROWTH = 1.1  # samples at one look over those at the look before

Document = dict[str, Any]


def verdict_on(arm: Arm, rows: Sequence[Row], phases: Sequence[Document], host_bytes: float | None) -> Verdict:
    """The verdict on the measured rows of a run, finished or not. ``phases``: those that have ended; ``host_bytes``:
    written so far, None: not known.

    The last sample of a phase that was ended by command is cut short and left out. A phase with ``until = "steady"``
    that reached its limit was not steady.
    """
    ended = {phase["name"] for phase in phases if phase.get("ended_by") == "command"}
    last = {row["phase"]: index for index, row in enumerate(rows)}
    kept = [row for index, row in enumerate(rows) if row["phase"] not in ended or last[row["phase"]] != index]
    spans = [
        Round(
            row["dt_s"],
            row["reads"] + row["writes"],
            row["user_bytes_written"],
            row.get("host_bytes_written"),
            nand_bytes(row),
        )
        for row in measured(kept)
    ]
    waited = {phase["name"] for phase in arm.phases if phase["until"] == "steady"}
    tests = arm.settings["steady.tests"] or (CHECKS if waited else None)
    verdict = judge(spans, ratio(host_bytes, arm.capacity_bytes()), tests)
    at_limit = [phase["name"] for phase in phases if phase["name"] in waited - ended and phase.get("complete", True)]
    if not at_limit:
        return verdict
    how = (
        "steady only when it came to its limit"
        if verdict.steady
        else f"not steady when it came to its limit: {verdict.reason}"
    )
    why = f"the phase {at_limit[0]} was {how}"
    return Verdict(False, None, why, verdict.tests)


class UntilSteady:
    """Follows the events of one run and ends a phase of it when the run has become steady."""

    def __init__(self, arm: Arm, rows: Sequence[Row]) -> None:
        """``rows``: the run's samples, as they are recorded."""
        self._arm, self._rows = arm, rows
        self._index = {phase["name"]: index for index, phase in enumerate(arm.phases) if phase["until"] == "steady"}
        self._ended: list[Document] = []
        self._answered: set[str] = set()
        self._next_look = float(LEAST_SAMPLES)

    @property
    def is_requested(self) -> bool:
        """Whether any phase of the run waits for steadiness."""
        return bool(self._index)

    def answer(self, event: Document) -> Document | None:
        """The command that answers an event (contract/README.md); None: no command."""
        if event["event"] == "phase":
            self._ended.append(event)
        if event["event"] != "sample" or event["phase"] not in self._index or event["phase"] in self._answered:
            return None
        count = len(measured(self._rows))
        if count < self._next_look:
            return None
        self._next_look = count * GROWTH
        if not verdict_on(self._arm, self._rows, self._ended, host_bytes_of(self._rows)).steady:
            return None
        self._answered.add(event["phase"])
        return {"end_phase": self._index[event["phase"]]}


def host_bytes_of(rows: Sequence[Row]) -> float | None:
    """Host bytes written over the measured rows; None where a row has no such figure."""
    total = 0.0
    for row in measured(rows):
        written = row.get("host_bytes_written")
        if written is None:
            return None
        total += written
    return total
