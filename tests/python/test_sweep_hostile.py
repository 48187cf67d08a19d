"""A sweep in cells where the machine fails it, others use its directory, or an earlier sweep was killed at any step."""

import csv
import errno
import json
import os
import shutil
import signal
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import pytest
from conftest import Fake
from swept import AXIS, VALUES, VIRTUAL, Scripted, Sweeper, value_of

from spillway.errors import SpillwayError
from spillway.plan.document import load_plan
from spillway.rundir.stage import LOCK
from spillway.sweep import Outcome, cells_of, executor_on, worker
from spillway.sweep import job as files
from spillway.sweep import sweep as sweeps
from spillway.sweep.cell import Cell
from spillway.sweep.job import Answer
from spillway.sweep.leftover import Leftover
from spillway.sweep.order import Room
from spillway.sweep.process import CellProcess

ALL_DONE = dict.fromkeys(VALUES, "done")
OTHERS = VIRTUAL + AXIS.replace("16, 100, 1024", "7, 8, 9")


@pytest.fixture
def sweep(fake: Fake, plan_file: Path, tmp_path: Path) -> Sweeper:
    return Sweeper(plan_file, tmp_path / "out")


def states(outcome: Outcome) -> dict[int, str]:
    return {value_of(each): outcome.results[each.address].state for each in outcome.cells}


def table(out: Path) -> list[dict[str, str]]:
    with (out / "cells.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def contents(out: Path) -> dict[str, bytes | None]:
    """Every file and directory below a directory."""
    return {str(path.relative_to(out)): path.read_bytes() if path.is_file() else None for path in out.rglob("*")}


def first_cell(sweep: Sweeper) -> Cell:
    sweep.plan_file.write_text(VIRTUAL + AXIS)
    return cells_of(load_plan(sweep.plan_file), sweep.out.parent / "kept")[0]


# ---------------------------------------------------------------------------------------------------------------------
# What an earlier sweep has gathered


def ended_by_ctrl_c() -> Scripted:
    """While it runs its first cells."""
    signals = [signal.SIGINT]
    return Scripted(on_poll=lambda: os.kill(os.getpid(), signals.pop()) if signals else None)


LATER: dict[str, Callable[[], Scripted]] = {
    "every cell refused": lambda: Scripted({7: ["refuse"], 8: ["refuse"], 9: ["refuse"]}),
    "every worker dies": lambda: Scripted({7: ["die"] * 9, 8: ["die"] * 9, 9: ["die"] * 9}),
    "the cluster has gone": lambda: Scripted({7: ["lose"]}),
    "Ctrl-C": ended_by_ctrl_c,
}


@pytest.mark.parametrize("later", LATER)
def test_figures_of_an_earlier_sweep_do_not_stand_for_a_later_one(sweep: Sweeper, later: str) -> None:
    sweep()
    assert (sweep.out / "run/manifest.json").exists()
    (sweep.out / ".run.replaced-1").mkdir()  # of one that was killed while it removed them
    try:
        sweep(LATER[later](), OTHERS)
    except SpillwayError as error:
        assert "the cluster has gone" in str(error)
    assert {row["state"] for row in table(sweep.out)} <= {"failed", "not run"}
    assert [path.name for path in sweep.out.iterdir() if "run" in path.name] == []


def test_a_sweep_that_is_refused_changes_nothing(sweep: Sweeper, fake: Fake) -> None:
    """Neither of what was done before nor of what runs there now."""
    sweep()
    before = contents(sweep.out)
    with pytest.raises(SpillwayError, match="no cell could start"):
        sweep(Scripted(room=Room(1, 0)), OTHERS)
    assert contents(sweep.out) == before
    tried: list[str] = []

    def on_poll() -> None:
        if tried:
            return
        before = contents(sweep.out)
        for where in ("local", "submitit-local"):
            second = Sweeper(sweep.plan_file.with_name("second.toml"), sweep.out)
            with pytest.raises(SpillwayError) as error:
                second(executor_on(where, sweep.out, 1), OTHERS)  # type: ignore[arg-type]
            tried.append(str(error.value))
        assert contents(sweep.out) == before

    assert states(sweep(Scripted(on_poll=on_poll), VIRTUAL + AXIS.replace("16", "17")))[17] == "done"
    assert len(tried) == 2
    assert all("a sweep is running in it" in each for each in tried)


# ---------------------------------------------------------------------------------------------------------------------
# A disk that is full, a file server that does not answer


def fails_once(monkeypatch: pytest.MonkeyPatch, number: int, where: Callable[[Path, Path], bool]) -> list[Path]:
    """The first rename that ``where`` says fails with an error of the operating system; returns which it was."""
    real, failed = Path.rename, list[Path]()

    def rename(path: Path, target: Path) -> Path:
        if not failed and where(path, Path(target)):
            failed.append(path)
            raise OSError(number, os.strerror(number))
        return real(path, target)

    monkeypatch.setattr(Path, "rename", rename)
    return failed


def in_run(name: str) -> Callable[[Path, Path], bool]:
    return lambda path, _: path.name == f".{name}.partial" and ".run.partial-" in str(path)


PLACES: dict[str, Callable[[Path, Path], bool]] = {
    **{name: in_run(name) for name in ("data_directory", "phases.json", "result.json", "plan.toml", "summary.json")},
    "the run directory": lambda path, target: target.name == "run" and path.name.startswith(".run.partial-"),
    "the cell": lambda path, target: path.name == "run" and target.parent.name == "cells",
}


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EIO])
@pytest.mark.parametrize("place", PLACES)
def test_a_cell_whose_disk_fails_it_is_tried_again(
    sweep: Sweeper, monkeypatch: pytest.MonkeyPatch, place: str, number: int
) -> None:
    failed = fails_once(monkeypatch, number, PLACES[place])
    outcome = sweep(Scripted(room=Room(1, 1)))
    assert (states(outcome), outcome.exit_code, len(failed)) == (ALL_DONE, 0, 1)
    again = [step for step in sweep.steps if step.what == "again"]
    assert len(again) == 1
    assert again[0].answer is not None
    assert os.strerror(number).lower() in again[0].answer.why
    assert sorted(row["attempts"] for row in table(sweep.out)) == ["1", "1", "2"]
    assert not (sweep.out / "work").exists()


@pytest.mark.parametrize("mode", ["disk_full", "disk_full late"])
def test_and_so_is_one_of_which_spillway_native_says_so(sweep: Sweeper, fake: Fake, mode: str) -> None:
    fake.monkeypatch.setenv("FAKE_WHERE", '{"value_bytes": 100}')
    fake.behave(mode)
    executor = Scripted()
    executor.on_poll = lambda: fake.behave("ok") if executor.begun.count(100) == 2 else None
    assert states(sweep(executor)) == ALL_DONE
    assert [row["attempts"] for row in table(sweep.out)] == ["1", "2", "1"]


def test_what_the_disk_fails_each_time_is_named(sweep: Sweeper, fake: Fake) -> None:
    fake.monkeypatch.setenv("FAKE_WHERE", '{"value_bytes": 100}')
    fake.behave("disk_full")
    executor = Scripted()
    outcome = sweep(executor, retries=1)
    ((cell, result),) = outcome.failures
    assert (value_of(cell), result.attempts, executor.begun.count(100), outcome.exit_code) == (100, 2, 2, 2)
    assert "no space left" in result.why
    assert [row["state"] for row in table(sweep.out)] == ["done", "failed", "done"]


def test_a_path_that_may_not_be_written_is_not_tried_again(sweep: Sweeper, monkeypatch: pytest.MonkeyPatch) -> None:
    fails_once(monkeypatch, errno.EACCES, in_run("summary.json"))
    outcome = sweep()
    assert sorted(states(outcome).values()) == ["done", "done", "failed"]
    assert [result.attempts for _, result in outcome.failures] == [1]


def test_a_job_that_cannot_be_written_now_waits_until_a_cell_has_ended(
    sweep: Sweeper, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The cells that run go on."""
    count, said = 0, list[str]()
    monkeypatch.setattr(sweeps.LOGGER, "warning", lambda form, *words: said.append(form % words))

    def of_second_job(path: Path, _: Path) -> bool:
        nonlocal count
        count += path.name == ".job.json.partial"
        return count == 2

    failed = fails_once(monkeypatch, errno.ENOSPC, of_second_job)
    executor = Scripted()
    outcome = sweep(executor)
    assert (states(outcome), len(failed)) == (ALL_DONE, 1)
    assert sorted(executor.begun) == list(VALUES)
    assert [("no space left on device" in each, each.count("Tried again when a cell has ended.")) for each in said] == [
        (True, 1)
    ]
    assert not (sweep.out / "work").exists()


def test_where_nothing_runs_it_ends_the_sweep(sweep: Sweeper, monkeypatch: pytest.MonkeyPatch) -> None:
    fails_once(monkeypatch, errno.ENOSPC, lambda path, _: path.name == ".job.json.partial")
    with pytest.raises(SpillwayError, match=r"no space left on device;.*the same command goes on with the rest\."):
        sweep()
    assert not list(sweep.out.glob("work/*"))
    assert states(sweep()) == ALL_DONE


def test_a_table_that_cannot_be_written_under_way_is_written_later(
    sweep: Sweeper, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sweeps, "WRITE_S", 0.0)
    monkeypatch.setattr(sweeps, "WRITE_SHARE", 1e9)
    fails_once(monkeypatch, errno.ENOSPC, lambda path, _: path.name == ".cells.csv.partial")
    assert states(sweep()) == ALL_DONE
    assert [row["state"] for row in table(sweep.out)] == ["done"] * 3


def test_a_cell_that_is_recorded_is_done_whatever_became_of_its_answer(sweep: Sweeper) -> None:
    executor = Scripted({100: ["run and die"]})
    assert states(sweep(executor, retries=0)) == ALL_DONE
    assert executor.begun.count(100) == 1


def test_an_answer_that_cannot_be_written_is_one_line_in_the_log(
    sweep: Sweeper, monkeypatch: pytest.MonkeyPatch
) -> None:
    cell, said = first_cell(sweep), list[str]()
    job = files.write_job(sweep.out, cell, ["spillway"], sweep.out.parent / "kept")
    monkeypatch.setattr(worker, "_end_with_starter", lambda is_alone: None)
    monkeypatch.setattr(worker.LOGGER, "error", lambda form, *words: said.append(form % words))
    fails_once(monkeypatch, errno.ENOSPC, lambda path, _: path.name == ".answer.json.partial")
    assert worker.main([str(job)]) == 1
    assert [each.endswith("free some space or name another --out.") for each in said] == [True]
    assert files.read_cell(sweep.out, cell.address) is not None


# ---------------------------------------------------------------------------------------------------------------------
# A cell that can run nowhere, and what a killed sweep has left


def test_a_cell_without_a_place_is_named_and_the_others_are_run(sweep: Sweeper) -> None:
    for room in (Room(1, 1), Room(9)):
        executor = Scripted({16: ["no place"], 100: ["no place"]}, room=room)
        outcome = sweep(executor)
        assert (states(outcome), outcome.exit_code) == ({16: "failed", 100: "failed", 1024: "done"}, 2)
        assert [result.why for _, result in outcome.failures] == [
            f"value_bytes {value}: there is no machine for it." for value in (16, 100)
        ]
        assert not (sweep.out / "work").exists()
    assert states(sweep()) == ALL_DONE


@dataclass
class UnderWay:
    """The job of the first cell, whose process is there until it is asked for the third time, and then does ``ends``;
    without that, until it ``goes``."""

    sweep: Sweeper
    ends: Callable[[Path], None] | None = None

    def __post_init__(self) -> None:
        self.cell = first_cell(self.sweep)
        self.sweep.out.mkdir()
        (self.sweep.out / LOCK).write_text("sweep")
        self.job = files.write_job(self.sweep.out, self.cell, ["spillway"], self.sweep.out.parent / "kept")
        self._lock, self._asked = files.hold(self.job), 0

    def done(self, of: Leftover) -> bool:
        self._asked += 1
        if self._asked == 3 and self.ends is not None:
            self.ends(self.job)
            self.goes()
        return DONE(of)

    def goes(self) -> None:
        assert self._lock is not None
        self._lock.close()


DONE = Leftover.done


@pytest.fixture
def under_way(sweep: Sweeper, monkeypatch: pytest.MonkeyPatch) -> Callable[..., UnderWay]:
    def make(ends: Callable[[Path], None] | None = None) -> UnderWay:
        made = UnderWay(sweep, ends)
        monkeypatch.setattr(Leftover, "done", lambda of: made.done(of))
        return made

    return make


def runs(job: Path) -> None:
    (job / files.ANSWER).write_text(json.dumps(asdict(worker.run_cell(job))))


def loses_its_starter(job: Path) -> None:
    (job / files.ANSWER).write_text(json.dumps(asdict(Answer("died", "what had started it has gone", 2))))


def dies(job: Path) -> None:
    """Without an answer."""


@pytest.mark.parametrize(("ends", "begun"), [(runs, [100, 1024]), (loses_its_starter, [*VALUES]), (dies, [*VALUES])])
def test_a_cell_that_is_under_way_is_waited_for(
    sweep: Sweeper,
    fake: Fake,
    under_way: Callable[..., UnderWay],
    ends: Callable[[Path], None],
    begun: list[int],
) -> None:
    under_way(ends)
    executor = Scripted()
    outcome = sweep(executor)
    assert (states(outcome), sorted(executor.begun)) == (ALL_DONE, begun)
    assert [row["attempts"] for row in table(sweep.out)] == ["1", "1", "1"]
    assert [value_of(step.cell) for step in sweep.steps if step.what == "under way"] == [16]
    assert (len(fake.requests()), [step for step in sweep.steps if step.what == "again"]) == (3, [])
    assert not (sweep.out / "work").exists()


def test_a_paced_cell_does_not_run_beside_one_that_is_under_way(
    sweep: Sweeper, under_way: Callable[..., UnderWay], monkeypatch: pytest.MonkeyPatch
) -> None:
    left = under_way(runs)
    beside: list[bool] = []
    submit = Scripted.submit

    def submitted(executor: Scripted, of: Cell, job: Path) -> Any:
        beside.append(files.is_under_way(left.job))
        return submit(executor, of, job)

    monkeypatch.setattr(Scripted, "submit", submitted)
    arms = '\n[[arms]]\nname = "a"\n[[arms]]\nname = "b"\n"drive.pacing" = "real"\n'
    outcome = sweep(Scripted(), VIRTUAL + AXIS.replace("[16, 100, 1024]", "[16]") + arms)
    assert (outcome.exit_code, beside) == (0, [False])


def test_a_ctrl_c_does_not_wait_for_what_another_has_started(
    sweep: Sweeper, under_way: Callable[..., UnderWay]
) -> None:
    left = under_way()
    assert sweep(ended_by_ctrl_c()).interrupted
    assert left.job.exists()
    left.goes()
    executor = Scripted()
    assert states(sweep(executor)) == ALL_DONE
    assert 16 in executor.begun and not left.job.exists()


def test_what_is_under_way_of_another_plan_goes_on(
    sweep: Sweeper, fake: Fake, under_way: Callable[..., UnderWay]
) -> None:
    left = under_way()
    assert set(states(sweep(text=OTHERS)).values()) == {"done"}
    assert left.job.exists()
    runs(left.job)
    left.goes()
    executor = Scripted()
    assert states(sweep(executor)) == ALL_DONE
    assert (sorted(executor.begun), left.job.exists()) == ([100, 1024], False)


def test_what_an_executor_can_take_over_is_not_started_again(sweep: Sweeper, fake: Fake) -> None:
    """As jobs that wait in the queue of Slurm, whose processes are not there yet."""
    cell = first_cell(sweep)
    sweep.out.mkdir()
    (sweep.out / LOCK).write_text("sweep")
    job = files.write_job(sweep.out, cell, ["spillway"], sweep.out.parent / "kept")
    executor = Scripted(adopts=True)
    assert states(sweep(executor)) == ALL_DONE
    assert (executor.adopted, sorted(executor.begun), len(fake.requests())) == ([job], [100, 1024], 3)


# ---------------------------------------------------------------------------------------------------------------------
# What others have put into the directory


@pytest.mark.parametrize("part", ["cells", "failed", "work", "run"])
def test_a_file_in_the_place_of_a_part_is_refused_before_anything_runs(sweep: Sweeper, part: str) -> None:
    sweep()
    shutil.rmtree(sweep.out / part, ignore_errors=True)
    (sweep.out / part).write_text("mine")
    executor = Scripted()
    with pytest.raises(SpillwayError, match=f"{part}: this is no directory of a sweep; remove it"):
        sweep(executor, OTHERS)
    assert (executor.begun, (sweep.out / part).read_text()) == ([], "mine")


def test_what_is_not_the_sweeps_stays(sweep: Sweeper) -> None:
    sweep()
    foreign = [sweep.out / name for name in ("notes.txt", "work/my-notes/a", "cells/.hidden", "cells/x-1", "failed/y")]
    for path in foreign:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("mine")
    executor = Scripted()
    assert states(sweep(executor)) == ALL_DONE
    assert executor.begun == []
    assert [path.read_text() for path in foreign] == ["mine"] * len(foreign)


def cut(path: Path) -> None:
    """At the end of a line, as a copy that was not whole."""
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[: len(lines) // 2]))


def empty(path: Path) -> None:
    shutil.rmtree(path)
    path.mkdir()


HALVES: dict[str, Callable[[Path], object]] = {
    "no summary": lambda place: (place / "summary.json").unlink(),
    "no plan": lambda place: (place / "plan.toml").unlink(),
    "no result": lambda place: next(place.glob("arms/*/result.json")).unlink(),
    "no phases": lambda place: next(place.glob("arms/*/phases.json")).unlink(),
    "samples cut off": lambda place: cut(next(place.glob("arms/*/samples.csv"))),
    "samples empty": lambda place: next(place.glob("arms/*/samples.csv")).write_bytes(b""),
    "nothing": empty,
    "not text": lambda place: (place / "manifest.json").write_bytes(b"\xff\xfe"),
}


@pytest.mark.parametrize("half", HALVES)
def test_a_cell_that_is_not_whole_is_run_again(sweep: Sweeper, half: str) -> None:
    place = sweep.out / "cells" / sweep().cells[1].address
    HALVES[half](place)
    executor = Scripted()
    assert states(sweep(executor)) == ALL_DONE
    assert executor.begun == [100]


def test_a_file_in_the_place_of_a_cell_is_named_before_anything_runs(sweep: Sweeper) -> None:
    place = sweep.out / "cells" / sweep().cells[1].address
    shutil.rmtree(place)
    place.write_text("mine")
    executor = Scripted()
    with pytest.raises(SpillwayError, match="It cannot be removed; remove ") as refused:
        sweep(executor)
    assert str(place) in str(refused.value)
    assert (executor.begun, place.read_text()) == ([], "mine")


@pytest.mark.parametrize("text", [b"\xff\xfe", b"", b"suite", b"x" * 10_000])
def test_the_lock_of_something_else(sweep: Sweeper, text: bytes) -> None:
    sweep.out.mkdir()
    (sweep.out / LOCK).write_bytes(text)
    if not text:
        assert states(sweep()) == ALL_DONE
        return
    with pytest.raises(SpillwayError, match=r"this is the directory of a .*, and no sweep's; name another --out\."):
        sweep()
    assert (sweep.out / LOCK).read_bytes() == text


def test_a_file_system_without_locks_is_named(sweep: Sweeper, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*words: Any) -> None:
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    with monkeypatch.context() as patch:
        patch.setattr("fcntl.flock", refuse)
        with pytest.raises(
            SpillwayError, match=r"takes no lock \(no locks available\), so another sweep in it would not"
        ):
            sweep()
    assert states(sweep()) == ALL_DONE


def test_a_process_that_a_nameless_signal_ends(sweep: Sweeper) -> None:
    job = files.write_job(sweep.out, first_cell(sweep), ["spillway"], sweep.out.parent / "kept")
    process = CellProcess(job)
    process._process.send_signal(40)  # a real-time signal: nobody handles it
    process._process.wait()
    assert process.done()
    assert process.why().startswith("its process was ended by signal 40")


@pytest.mark.parametrize("name", ["x" * 300, "cells.csv", "a\nb", "ä ö", "%s {x}"])
def test_names_of_directories_are_taken_or_refused_in_one_sentence(sweep: Sweeper, name: str) -> None:
    sweep.out = sweep.out.parent / name
    try:
        outcome = sweep()
    except SpillwayError as error:
        assert name == "x" * 300
        assert "file name too long" in str(error)
    else:
        assert states(outcome) == ALL_DONE
        assert states(sweep()) == ALL_DONE
