"""What the tests of sweeps in cells share: small plans, cells without a plan behind them, and an executor by script."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from conftest import PLAN, Fake

from spillway.errors import SpillwayError
from spillway.plan.document import Plan, load_plan
from spillway.sweep import Outcome, Settings, Step, cells_of, run_sweep
from spillway.sweep import job as files
from spillway.sweep.cell import Cell
from spillway.sweep.executor import Future, Unplaceable
from spillway.sweep.job import Answer
from spillway.sweep.order import Room
from spillway.sweep.worker import run_cell

VIRTUAL = PLAN.replace("duration_s = 12", "duration_s = 1").replace('"tiny"', '"tiny"\npacing = "off"')
VALUES = (16, 100, 1024)
AXIS = f'\n[sweep]\n"load.value_bytes" = {list(VALUES)}\n'


def cell(name: str, *, cores: int = 1, paced: bool = False, states: Sequence[str] = (), drive: str = "") -> Cell:
    """One for the rules of order, which do not look at its plan."""
    plan = Plan(Path("x.toml"), name, "", [1], [])
    return Cell(name, plan, 0, name, cores, paced, drive, frozenset(states))


def value_of(of: Cell) -> int:
    """The value size by which the script names a cell."""
    return int(of.arm.settings["load.value_bytes"])


@dataclass
class Scripted:
    """An executor that does with each attempt at a cell what a script says: ``run`` it, ``fail``, ``die`` without an
    answer or ``run and die``, or ``answer late``; ``lose`` is a cluster that takes nothing, ``no place`` one without a
    machine for it. Each takes ``takes`` questions to be done."""

    script: Mapping[int, list[str]] = field(default_factory=dict)  # by value size; what is not named runs
    room: Room = field(default_factory=lambda: Room(cells=2, cores=2))
    takes: int = 2
    poll_s: float = 0.0
    lag_s: float = 0.0
    begun: list[int] = field(default_factory=list)
    running: list["ScriptedFuture"] = field(default_factory=list)
    most_at_once: int = 0
    closed: int = 0
    adopts: bool = False  # what an earlier one has submitted
    adopted: list[Path] = field(default_factory=list)
    on_poll: Callable[[], None] = lambda: None

    def submit(self, of: Cell, job: Path) -> "ScriptedFuture":
        """Begins the next attempt."""
        value = value_of(of)
        deeds = self.script.get(value, [])
        deed = deeds[self.begun.count(value)] if self.begun.count(value) < len(deeds) else "run"
        if deed == "no place":
            raise Unplaceable(f"{of.name}: there is no machine for it.")
        if deed == "lose":
            raise SpillwayError("the cluster has gone.")
        self.begun.append(value)
        future = ScriptedFuture(self, job, deed, self.takes)
        self.running.append(future)
        self.most_at_once = max(self.most_at_once, len(self.running))
        return future

    def adopt(self, job: Path) -> Future | None:
        """Takes over every job, if it is one that does."""
        self.adopted += [job] if self.adopts else []
        return ScriptedFuture(self, job, "run", self.takes) if self.adopts else None

    def close(self) -> None:
        """Counts."""
        self.closed += 1


@dataclass
class ScriptedFuture:
    """An attempt by script."""

    of: Scripted
    job: Path
    deed: str
    left: int
    cancelled: bool = False
    is_over: bool = False

    def done(self) -> bool:
        """Does the deed when it is asked for the last time."""
        self.of.on_poll()
        self.left -= 1
        if self.left > 0:
            return False
        if not self.is_over:
            self.is_over = True
            self.of.running = [each for each in self.of.running if each is not self]
            self._act()
        if self.deed == "answer late" and self.left == -3:
            self._answer(self._run())
        return True

    def _act(self) -> None:
        if self.cancelled:
            self._answer(Answer("interrupted"))
        elif self.deed == "run":
            self._answer(self._run())
        elif self.deed == "run and die":
            self._run()
        elif self.deed == "fail":
            self._answer(Answer("failed", "the machine broke.", 1, "here"))
        elif self.deed == "refuse":
            self._answer(Answer("failed", "the engine does not know it.", 2, "here"))
        elif self.deed == "asked to end":
            self._answer(Answer("interrupted", "ended by Ctrl-C", 130, "here"))

    def _run(self) -> Answer:
        try:
            return replace(run_cell(self.job), host="here", seconds=1.0)
        except SpillwayError as error:
            return files.answer_to(error)

    def _answer(self, answer: Answer) -> None:
        (self.job / files.ANSWER).write_text(json.dumps(asdict(answer)))

    def cancel(self) -> None:
        """Notes it."""
        self.cancelled = True

    def why(self) -> str:
        """Of the one that dies."""
        return "a rack caught fire"


def shell_wait(go: Path) -> str:
    """Shell commands that wait until there is a file, two minutes at most: who is left behind ends by itself."""
    return f"n=0; while [ ! -e {go} ] && [ $n -lt 2400 ]; do n=$((n + 1)); sleep 0.05; done"


def let_wait(fake: Fake, go: Path) -> None:
    """Has every run of the fake wait until there is a file ``go``. It is another build from then on."""
    first, rest = fake.path.read_text().split("\n", 1)
    fake.path.write_text(f"{first}\n{shell_wait(go)}\n{rest}")


@dataclass
class Sweeper:
    """Runs the sweep of a plan into a directory."""

    plan_file: Path
    out: Path
    steps: list[Step] = field(default_factory=list)

    def __call__(
        self, executor: Scripted | None = None, text: str = VIRTUAL + AXIS, retries: int = 2, **load: Any
    ) -> Outcome:
        self.plan_file.write_text(text)
        self.steps.clear()
        plan = load_plan(self.plan_file, **load)
        kept = self.out.parent / "kept"
        settings = Settings(plan, cells_of(plan, kept), self.out, ["spillway", "sweep"], kept, retries)
        return run_sweep(settings, executor or Scripted(), self.steps.append)
