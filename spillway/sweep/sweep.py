"""Runs the cells of a plan that are not done, wherever an executor starts them, and keeps what is done.

A cell whose work failed, or whose process ended without an answer, is tried again, a bounded number of times. One that
was refused, or filled its drive, would end the same way again. Nothing but files is exchanged, so the sweep may end or
be killed at any moment: the same command finds the cells that are done by their addresses, waits for those that are
still under way, and runs the others.
"""

import logging
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from spillway.errors import Interrupted, SpillwayError
from spillway.native.interruption import interruptible
from spillway.plan.document import Plan
from spillway.rundir.directory import read_figures
from spillway.rundir.stage import locked
from spillway.sweep import job as files
from spillway.sweep.cell import Cell
from spillway.sweep.executor import Executor, Future, Unplaceable
from spillway.sweep.gather import discard, gather, write_report
from spillway.sweep.job import Answer
from spillway.sweep.leftover import Leftover
from spillway.sweep.order import check_fits, startable
from spillway.sweep.results import Result, write_results

What = Literal["done before", "under way", "begins", "done", "drive full", "failed", "not run", "again"]

LOGGER = logging.getLogger(__name__)
WRITE_S = 1.0  # at least between two writings of the table
WRITE_SHARE = 0.05  # at most of the time: the table has all cells, which may be thousands


@dataclass(frozen=True)
class Step:
    """One event of a sweep."""

    cell: Cell
    what: What
    answer: Answer | None
    left: int  # cells that have not ended; those with one address count once
    count: int  # of all


@dataclass
class Outcome:
    """The result of a sweep."""

    directory: Path
    cells: list[Cell]
    results: dict[str, Result]  # by address
    interrupted: bool = False

    @property
    def failures(self) -> list[tuple[Cell, Result]]:
        """Cells that failed or filled their drives."""
        found = [(cell, self.results[cell.address]) for cell in self.cells]
        return [(cell, result) for cell, result in found if result.state in ("failed", "drive full")]

    @property
    def exit_code(self) -> int:
        """The command's: 1 where some work failed, 2 where every cell that failed did by what was asked of it or by
        where it ran."""
        if self.failures:
            return min(result.answer.exit_code for _, result in self.failures)
        return Interrupted.exit_code if self.interrupted else 0


@dataclass(frozen=True)
class Settings:
    """What a sweep runs, and how."""

    plan: Plan
    cells: list[Cell]
    out: Path
    command: list[str]
    kept: Path  # where kept states lie
    retries: int  # most further attempts at a cell
    reports: bool = True  # draws the report of all cells


@dataclass
class _Running:
    """A cell that was handed over."""

    cell: Cell
    job: Path
    future: Future
    is_adopted: bool = False  # by an earlier sweep
    ended_s: float | None = None  # when its process was first seen to have ended


def run_sweep(settings: Settings, executor: Executor, on_step: Callable[[Step], None] | None = None) -> Outcome:
    """Runs what of the cells is not done and writes the table of all. Closes ``executor``.

    A Ctrl-C ends the cells under way, and what is done is kept. Raises SpillwayError where ``out`` cannot be used or
    another sweep is running in it, and leaves that as it is; and, when the table is written, where the executor cannot
    start cells any more.
    """
    try:
        check_fits(settings.cells, executor.room)
        with locked(settings.out, "sweep"), interruptible() as interruption:
            files.check_places(settings.out)
            discard(settings.out)
            runner = _Runner(settings, executor, on_step or (lambda step: None))
            try:
                runner.run(lambda: interruption.requested)
            finally:
                try:
                    runner.write()
                finally:
                    executor.close()
                    files.remove_jobs(settings.out, keeps=runner.of_others)
            outcome = Outcome(settings.out, settings.cells, runner.results, interruption.requested)
            if not outcome.interrupted:
                gather(settings.plan, settings.cells, runner.results, settings.out, settings.command)
                if settings.reports:
                    write_report(settings.out)
            return outcome
    finally:
        executor.close()


@dataclass
class _Runner:
    """What waits, what runs, and what became of the rest."""

    settings: Settings
    executor: Executor
    on_step: Callable[[Step], None]
    waiting: list[Cell] = field(default_factory=list)  # one for each address
    running: list[_Running] = field(default_factory=list)
    results: dict[str, Result] = field(default_factory=dict)
    made: set[str] = field(default_factory=set)  # kept states
    of_others: set[Path] = field(default_factory=set)  # jobs under way of cells that this sweep has not
    write_s: float = 0.0  # when the table is due

    def __post_init__(self) -> None:
        """Nothing is known of any cell yet."""
        self.results = {cell.address: Result() for cell in self.settings.cells}
        self.left = len(self.results)  # have not ended

    def run(self, is_requested_to_end: Callable[[], bool]) -> None:
        """Until every cell has ended, or was ended. Raises SpillwayError where the executor cannot start cells."""
        self._find_done()
        self._adopt()
        files.remove_jobs(self.settings.out, keeps=self.of_others | {each.job for each in self.running})
        may_start = True
        while self.running or self.waiting:
            if is_requested_to_end():
                self.waiting.clear()
                for each in self.running:
                    each.future.cancel()
            if may_start:
                self._start_or_wait()
            may_start = self._collect(is_ending=is_requested_to_end())
            if self.running:
                time.sleep(self.executor.poll_s)

    def write(self) -> None:
        """Writes the table of all cells. Raises SpillwayError."""
        of, begun_s = self.settings, time.monotonic()
        try:
            write_results(of.out, of.plan, of.cells, self.results, of.command)
        finally:
            now_s = time.monotonic()
            self.write_s = now_s + max(WRITE_S, (now_s - begun_s) / WRITE_SHARE)

    def _find_done(self) -> None:
        first: dict[str, Cell] = {}
        for cell in self.settings.cells:
            first.setdefault(cell.address, cell)
        for cell in first.values():
            result = self.results[cell.address]
            if (there := files.read_cell(self.settings.out, cell.address)) is not None:
                result.answer = files.answer_of(*there)
                self._take(cell, result)
                self._tell(cell, "done before", result.answer)
            else:
                self.waiting.append(cell)

    def _adopt(self) -> None:
        """Takes over what earlier sweeps have left under way: no cell is to run twice at once."""
        waiting = {cell.address: cell for cell in self.waiting}
        for address, job in files.jobs_of(self.settings.out):
            future = self.executor.adopt(job) or (Leftover(job) if files.is_under_way(job) else None)
            if future is None:
                continue
            cell = waiting.pop(address, None)
            if cell is None:
                self.of_others.add(job)
            else:
                self.running.append(_Running(cell, job, future, is_adopted=True))
                self._tell(cell, "under way", None)
        self.waiting = [cell for cell in self.waiting if cell.address in waiting]

    def _start_or_wait(self) -> None:
        """Starts what may start. What the executor refuses while cells run is tried again when one of them has ended.
        Raises SpillwayError where it refuses and nothing runs."""
        while self.waiting:
            try:
                if self._start():
                    return
            except SpillwayError as error:
                if self.running:
                    LOGGER.warning("%s", _followed(error, "Tried again when a cell has ended."))
                    return
                error.go_on(f"What is done is in {self.settings.out}; the same command goes on with the rest.")
                raise

    def _start(self) -> bool:
        """Whether all that may start has started; False where a cell can run nowhere, so that others may start in its
        place. Raises SpillwayError where nothing can be started."""
        for cell in startable(self.waiting, [each.cell for each in self.running], self.made, self.executor.room):
            of = self.settings
            job = files.write_job(of.out, cell, of.command, of.kept)
            try:
                future = self.executor.submit(cell, job)
            except SpillwayError as error:
                files.remove_jobs(of.out, cell.address)
                if not isinstance(error, Unplaceable):
                    raise
                self.waiting.remove(cell)
                self.results[cell.address].attempts += 1
                self._end(cell, files.answer_to(error), is_ending=False)
                return False
            self.waiting.remove(cell)
            self.running.append(_Running(cell, job, future))
            self.results[cell.address].attempts += 1
            self._tell(cell, "begins", None)
        return True

    def _collect(self, *, is_ending: bool) -> bool:
        """Reads the answers of the cells that have ended; whether there was one."""
        before = len(self.running)
        for each in list(self.running):
            if not each.future.done():
                continue
            answer, now_s = files.read_answer(each.job) or self._recorded(each.cell), time.monotonic()
            if answer is None:
                each.ended_s = now_s if each.ended_s is None else each.ended_s
                if not is_ending and now_s - each.ended_s < self.executor.lag_s:
                    continue
                answer = Answer("interrupted") if is_ending else _died(each.future)
            self.running.remove(each)
            if each.is_adopted and answer.end in ("interrupted", "died"):  # with its sweep: no attempt of this one
                self.waiting += [] if is_ending else [each.cell]
            else:
                self.results[each.cell.address].attempts += each.is_adopted
                self._end(each.cell, answer, is_ending=is_ending)
            files.remove_jobs(self.settings.out, each.cell.address)
        if time.monotonic() > self.write_s:
            with suppress(SpillwayError):  # such as a full disk: it is written at the end, or said why not
                self.write()
        return len(self.running) < before

    def _recorded(self, cell: Cell) -> Answer | None:
        """The answer of a cell that was ended, or whose disk was full, after its work was done."""
        with suppress(SpillwayError):
            there = files.read_cell(self.settings.out, cell.address, removes=False)
            return None if there is None else files.answer_of(*there)
        return None

    def _end(self, cell: Cell, answer: Answer, *, is_ending: bool) -> None:
        """Takes the answer, or has the cell tried again."""
        if is_ending and answer.end in ("interrupted", "died"):
            return
        if answer.end == "interrupted":
            answer = Answer("died", "something else asked it to end", SpillwayError.exit_code, answer.host)
        result = self.results[cell.address]
        result.answer = answer
        if answer.may_pass and result.attempts <= self.settings.retries and not is_ending:
            self.waiting.append(cell)
            self._tell(cell, "again", answer)
        else:
            self._take(cell, result)
            self._tell(cell, result.state, answer)

    def _take(self, cell: Cell, result: Result) -> None:
        """Takes over how a cell has ended, and its figures."""
        self.left -= 1
        end = result.answer.end
        result.state = end if end in ("done", "drive full") else "failed"
        if result.state != "failed":
            self.made |= cell.states
        place = self.settings.out / (files.FAILED if result.state == "failed" else files.CELLS) / cell.address
        with suppress(SpillwayError):  # of one that failed there may be nothing, or another attempt's
            run = read_figures(place)
            if result.state != "failed" or run.manifest.get("failure") == result.answer.why:
                result.figures = run.arms[0].summary if run.arms else {}

    def _tell(self, cell: Cell, what: What, answer: Answer | None) -> None:
        self.on_step(Step(cell, what, answer, self.left, len(self.results)))


def _followed(error: SpillwayError, sentence: str) -> str:
    said = SpillwayError(str(error))
    said.go_on(sentence)
    return str(said)


def _died(future: Future) -> Answer:
    """The answer in the place of a process that gave none."""
    why = future.why() or "its process ended without an answer"
    return Answer("died", f"its worker died: {why}", SpillwayError.exit_code)
