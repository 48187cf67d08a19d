"""Runs the cells of a plan that are not done, wherever an executor starts them, and keeps what is done.

A cell whose work failed, or whose process ended without an answer, is tried again, a bounded number of times. One that
was refused, or filled its drive, would end the same way again. Nothing but files is exchanged, so the sweep may end or
be killed at any moment: the same command finds the cells that are done by their addresses, and runs the others.
"""

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
from spillway.sweep.executor import Executor, Future
from spillway.sweep.gather import gather, write_report
from spillway.sweep.job import Answer
from spillway.sweep.order import check_fits, startable
from spillway.sweep.results import Result, write_results

What = Literal["done before", "begins", "done", "drive full", "failed", "not run", "again"]

WRITE_S = 1.0  # between two writings of the table: it has all cells


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
    ended_s: float | None = None  # when its process was first seen to have ended


def run_sweep(settings: Settings, executor: Executor, on_step: Callable[[Step], None] | None = None) -> Outcome:
    """Runs what of the cells is not done and writes the table of all. Closes ``executor``.

    A Ctrl-C ends the cells under way, and what is done is kept. Raises SpillwayError where ``out`` cannot be used or
    another sweep is running in it; and, when the table is written, where the executor cannot start cells any more.
    """
    try:
        check_fits(settings.cells, executor.room)
        with locked(settings.out, "sweep"), interruptible() as interruption:
            files.remove_jobs(settings.out)
            runner = _Runner(settings, executor, on_step or (lambda step: None))
            try:
                runner.run(lambda: interruption.requested)
            finally:
                runner.write()
                executor.close()
                files.remove_jobs(settings.out)
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
    written_s: float = 0.0

    def __post_init__(self) -> None:
        """Nothing is known of any cell yet."""
        self.results = {cell.address: Result() for cell in self.settings.cells}

    def run(self, is_requested_to_end: Callable[[], bool]) -> None:
        """Until every cell has ended, or was ended. Raises SpillwayError where the executor cannot start cells."""
        self._find_done()
        refused: SpillwayError | None = None
        while self.running or self.waiting:
            if is_requested_to_end() or refused is not None:
                self.waiting.clear()
                for each in self.running:
                    each.future.cancel()
            try:
                self._start()
            except SpillwayError as error:
                refused = error
            self._collect(is_ending=is_requested_to_end() or refused is not None)
            if self.running:
                time.sleep(self.executor.poll_s)
        if refused is not None:
            refused.go_on(f"What is done is in {self.settings.out}; the same command goes on with the rest.")
            raise refused

    def write(self) -> None:
        """Writes the table of all cells. Raises SpillwayError."""
        of = self.settings
        write_results(of.out, of.plan, of.cells, self.results, of.command)
        self.written_s = time.monotonic()

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

    def _start(self) -> None:
        for cell in startable(self.waiting, [each.cell for each in self.running], self.made, self.executor.room):
            of = self.settings
            job = files.write_job(of.out, cell, of.command, of.kept)
            future = self.executor.submit(cell, job)
            self.waiting.remove(cell)
            self.running.append(_Running(cell, job, future))
            self.results[cell.address].attempts += 1
            self._tell(cell, "begins", None)

    def _collect(self, *, is_ending: bool) -> None:
        """Reads the answers of the cells that have ended."""
        for each in list(self.running):
            if not each.future.done():
                continue
            answer, now_s = files.read_answer(each.job), time.monotonic()
            if answer is None:
                each.ended_s = now_s if each.ended_s is None else each.ended_s
                if not is_ending and now_s - each.ended_s < self.executor.lag_s:
                    continue
                answer = Answer("interrupted") if is_ending else _died(each.future)
            self.running.remove(each)
            self._end(each.cell, answer, is_ending=is_ending)
            files.remove_jobs(self.settings.out, each.cell.address)
        if time.monotonic() - self.written_s > WRITE_S:
            self.write()

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
        left = sum(result.state == "not run" for result in self.results.values())
        self.on_step(Step(cell, what, answer, left, len(self.results)))


def _died(future: Future) -> Answer:
    """The answer in the place of a process that gave none."""
    why = future.why() or "its process ended without an answer"
    return Answer("died", f"its worker died: {why}", SpillwayError.exit_code)
