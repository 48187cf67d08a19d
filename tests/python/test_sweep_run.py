"""A sweep in cells with an executor by script: what is run, tried again, kept and reported, whatever happens to it."""

import csv
import json
import os
import shutil
import signal
from pathlib import Path
from typing import Any

import pytest
from conftest import Fake
from swept import AXIS, VALUES, VIRTUAL, Scripted, Sweeper, value_of

from spillway.errors import SpillwayError
from spillway.plan.document import load_plan
from spillway.run.execute import execute
from spillway.rundir.directory import read_run
from spillway.sweep import Outcome, worker
from spillway.sweep import job as files
from spillway.sweep.order import Room

ARMS = '\n[[arms]]\nname = "One"\n[[arms]]\nname = "Two"\n"engine.policy" = "no-slowdown"\n'
PACED = VIRTUAL.replace('pacing = "off"', 'pacing = "real"') + AXIS


@pytest.fixture
def sweep(fake: Fake, plan_file: Path, tmp_path: Path) -> Sweeper:
    return Sweeper(plan_file, tmp_path / "out")


def states(outcome: Outcome) -> dict[int, str]:
    return {value_of(each): outcome.results[each.address].state for each in outcome.cells}


def table(out: Path) -> list[dict[str, str]]:
    with (out / "cells.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


ALL_DONE = dict.fromkeys(VALUES, "done")


def test_every_cell_is_run_once(sweep: Sweeper, fake: Fake) -> None:
    executor = Scripted()
    outcome = sweep(executor)
    assert (states(outcome), outcome.exit_code) == (ALL_DONE, 0)
    assert sorted(executor.begun) == list(VALUES)
    assert executor.closed
    again = Scripted()
    outcome = sweep(again)
    assert (states(outcome), again.begun) == (ALL_DONE, [])
    assert [step.what for step in sweep.steps] == ["done before"] * 3
    assert len(fake.requests()) == 3
    assert not (sweep.out / "work").exists()


def test_as_many_run_at_once_as_there_is_room(sweep: Sweeper) -> None:
    executor = Scripted(room=Room(2, 2), takes=5)
    sweep(executor)
    assert executor.most_at_once == 2


def test_paced_cells_never_run_side_by_side(sweep: Sweeper) -> None:
    executor = Scripted(room=Room(9, 9), takes=5)
    assert states(sweep(executor, PACED)) == ALL_DONE
    assert executor.most_at_once == 1


def test_it_is_what_one_run_of_the_plan_is(sweep: Sweeper, plan_file: Path, tmp_path: Path) -> None:
    """Figures, samples and names: whoever reads a run directory need not know how it was run."""
    text = "repetitions = 2\n" + VIRTUAL + AXIS.replace("[16, 100, 1024]", "[16, 100]") + ARMS
    outcome = sweep(text=text)
    assert len(outcome.cells) == 8
    execute(load_plan(plan_file), tmp_path / "whole", ["spillway"])
    whole, gathered = read_run(tmp_path / "whole"), read_run(sweep.out / "run")
    assert gathered.plan_toml == whole.plan_toml
    assert gathered.manifest.keys() == whole.manifest.keys() | {"hosts"}
    for key in ("complete", "failure", "failures", "seeds", "versions", "inputs_sha256", "refused", "spillway_run"):
        assert gathered.manifest[key] == whole.manifest[key]
    assert [arm.name for arm in gathered.arms] == [arm.name for arm in whole.arms]
    for one, other in zip(gathered.arms, whole.arms, strict=True):
        assert one.summary == other.summary
        assert [each.rows for each in one.repetitions] == [each.rows for each in other.repetitions]


def test_the_table_has_a_row_for_each_cell(sweep: Sweeper) -> None:
    outcome = sweep(text="repetitions = 2\n" + VIRTUAL + AXIS.replace(", 1024", ""))
    rows = table(sweep.out)
    assert [row["cell"] for row in rows] == [each.address for each in outcome.cells]
    assert [(row["repetition"], row["seeds"], row["load.value_bytes"]) for row in rows] == [
        (repetition, seed, str(value)) for repetition, seed in (("1", "1"), ("2", "2")) for value in VALUES[:2]
    ]
    for row in rows:
        run = read_run(sweep.out / row["directory"])
        assert float(row["throughput_ops_s"]) == run.arms[0].summary["throughput_ops_s"]
        assert float(row["latency_p99_us"]) == run.arms[0].summary["latency_us"]["p99"]
        assert (row["state"], row["attempts"], row["host"], row["why"]) == ("done", "1", "here", "")
    document = json.loads((sweep.out / "sweep.json").read_text())
    assert (document["spillway_sweep"], document["complete"], len(document["cells"])) == (1, True, 4)


def test_a_plan_that_was_changed_runs_only_what_is_new(sweep: Sweeper) -> None:
    sweep()
    executor = Scripted()
    outcome = sweep(executor, VIRTUAL + AXIS.replace("100", "7"))
    assert executor.begun == [7]
    assert list(states(outcome)) == [16, 7, 1024]
    assert [row["load.value_bytes"] for row in table(sweep.out)] == ["16", "7", "1024"]


def test_arms_that_are_one_cell_are_run_once_and_are_two_rows(sweep: Sweeper) -> None:
    executor = Scripted()
    sweep(executor, VIRTUAL + AXIS + ARMS.replace('"engine.policy" = "no-slowdown"\n', ""))
    assert sorted(executor.begun) == list(VALUES)
    one, two = ([row | {"arm": ""} for row in table(sweep.out) if row["arm"] == arm] for arm in ("One", "Two"))
    assert one == two
    assert len(read_run(sweep.out / "run").arms) == 6


@pytest.mark.parametrize(("deed", "retries", "attempts"), [("fail", 2, 3), ("die", 1, 2), ("asked to end", 0, 1)])
def test_a_cell_is_tried_again_a_bounded_number_of_times(
    sweep: Sweeper, deed: str, retries: int, attempts: int
) -> None:
    executor = Scripted({100: [deed] * 9})
    outcome = sweep(executor, retries=retries)
    assert executor.begun.count(100) == attempts
    assert states(outcome) == ALL_DONE | {100: "failed"}
    assert outcome.exit_code == (1 if deed == "fail" else 2)
    whys = {"fail": "the machine broke.", "die": "its worker died: a rack caught fire"}
    why = whys.get(deed, "something else asked it to end")
    assert [(each.name, result.why) for each, result in outcome.failures] == [("value_bytes 100", why)]
    row = next(row for row in table(sweep.out) if row["load.value_bytes"] == "100")
    assert (row["state"], row["attempts"], row["why"], row["directory"]) == ("failed", str(attempts), why, "")
    gathered = read_run(sweep.out / "run")
    assert len(gathered.arms) == 2
    assert gathered.manifest["failure"] == f"value_bytes 100 failed: {why}"
    assert [step.what for step in sweep.steps].count("again") == attempts - 1
    assert states(sweep()) == ALL_DONE
    assert read_run(sweep.out / "run").manifest["complete"] is True


@pytest.mark.parametrize("deed", ["fail", "die"])
def test_one_that_succeeds_at_last_is_done(sweep: Sweeper, deed: str) -> None:
    outcome = sweep(Scripted({16: [deed, deed]}))
    assert (states(outcome), outcome.exit_code) == (ALL_DONE, 0)
    assert [row["attempts"] for row in table(sweep.out)] == ["3", "1", "1"]


def test_what_was_refused_is_not_tried_again(sweep: Sweeper) -> None:
    executor = Scripted({100: ["refuse"] * 9})
    outcome = sweep(executor)
    assert (executor.begun.count(100), outcome.exit_code) == (1, 2)
    assert states(outcome)[100] == "failed"


def test_a_run_that_fails_under_way_keeps_what_it_has_recorded(sweep: Sweeper, fake: Fake) -> None:
    """And names it, in the table and in the gathered run directory; the next command runs it again."""
    fake.monkeypatch.setenv("FAKE_WHERE", '{"value_bytes": 100}')
    fake.behave("crashes late")
    outcome = sweep(retries=1)
    ((cell, result),) = outcome.failures
    assert (outcome.exit_code, result.attempts) == (1, 2)
    row = next(row for row in table(sweep.out) if row["load.value_bytes"] == "100")
    assert row["directory"] == f"failed/{cell.address}"
    assert read_run(sweep.out / row["directory"]).manifest["failure"] == result.why
    assert len(read_run(sweep.out / "run").arms) == 3
    fake.behave("ok")
    assert states(sweep()) == ALL_DONE
    assert not (sweep.out / "failed" / cell.address).exists()


def test_a_drive_that_is_full_is_a_result(sweep: Sweeper, fake: Fake) -> None:
    """Another attempt would fill it again, and so would another command."""
    fake.monkeypatch.setenv("FAKE_WHERE", '{"value_bytes": 100}')
    fake.behave("fails late")
    for begun in (list(VALUES), []):
        executor = Scripted()
        outcome = sweep(executor)
        assert sorted(executor.begun) == begun
        assert states(outcome) == ALL_DONE | {100: "drive full"}
        assert (outcome.exit_code, len(outcome.failures)) == (2, 1)
        assert "the drive is full" in outcome.failures[0][1].why
    assert len(read_run(sweep.out / "run").arms) == 3


def test_a_cluster_that_goes_away_ends_the_sweep_and_keeps_what_is_done(sweep: Sweeper) -> None:
    executor = Scripted({1024: ["lose"]}, room=Room(1, 1))
    with pytest.raises(SpillwayError, match=r"the cluster has gone\. What is done is in .*; the same command goes on"):
        sweep(executor)
    assert executor.closed
    assert [row["state"] for row in table(sweep.out)] == ["done", "done", "not run"]
    again = Scripted()
    assert states(sweep(again)) == ALL_DONE
    assert again.begun == [1024]


def test_an_answer_that_comes_late_is_waited_for(sweep: Sweeper) -> None:
    """As on a shared file system; where there is no such delay the worker has died."""
    assert states(sweep(Scripted({16: ["answer late"]}, lag_s=60.0))) == ALL_DONE
    shutil.rmtree(sweep.out)
    outcome = sweep(Scripted({16: ["answer late"]}), retries=0)
    assert states(outcome)[16] == "failed"


@pytest.mark.parametrize("file", ["manifest.json", "summary.json"])
def test_a_cell_that_is_damaged_is_run_again(sweep: Sweeper, file: str) -> None:
    outcome = sweep()
    (sweep.out / "cells" / outcome.cells[1].address / file).write_text("{")
    executor = Scripted()
    assert states(sweep(executor)) == ALL_DONE
    assert executor.begun == [100]


def test_a_cell_that_lacks_what_it_names_is_run_again_and_a_list_leaves_it(sweep: Sweeper) -> None:
    outcome = sweep()
    of = outcome.cells[1]
    shutil.rmtree(sweep.out / "cells" / of.address / "arms")
    assert files.read_cell(sweep.out, of.address, removes=False) is None
    assert (sweep.out / "cells" / of.address / "manifest.json").exists()
    executor = Scripted()
    assert states(sweep(executor)) == ALL_DONE
    assert executor.begun == [100]


def test_a_cell_that_cannot_be_read_now_is_not_lost(sweep: Sweeper, monkeypatch: pytest.MonkeyPatch) -> None:
    """As on a file server that does not answer: what is there may be whole."""
    place = sweep.out / "cells" / sweep().cells[1].address
    real = Path.read_text

    def read_text(path: Path, *rest: Any, **options: Any) -> str:
        if path.parent == place:
            raise OSError(5, "Input/output error")
        return real(path, *rest, **options)

    with monkeypatch.context() as patch:
        patch.setattr(Path, "read_text", read_text)
        with pytest.raises(SpillwayError, match="Input/output error"):
            sweep()
    assert (place / "manifest.json").exists()
    executor = Scripted()
    assert states(sweep(executor)) == ALL_DONE
    assert executor.begun == []


@pytest.mark.parametrize("after", [1, 4])
def test_a_ctrl_c_at_any_time_leaves_what_is_done(sweep: Sweeper, after: int) -> None:
    polls = 0

    def on_poll() -> None:
        nonlocal polls
        polls += 1
        if polls == after:
            os.kill(os.getpid(), signal.SIGINT)

    before = signal.getsignal(signal.SIGINT)
    outcome = sweep(Scripted(room=Room(1, 1), takes=3, on_poll=on_poll))
    assert signal.getsignal(signal.SIGINT) is before
    assert (outcome.interrupted, outcome.exit_code, outcome.failures) == (True, 130, [])
    done = [row["load.value_bytes"] for row in table(sweep.out) if row["state"] == "done"]
    assert len(done) == (after - 1) // 3
    again = Scripted()
    assert states(sweep(again)) == ALL_DONE
    assert sorted(map(str, again.begun)) == sorted({str(each) for each in VALUES} - set(done))


def test_another_sweep_in_the_same_place_is_refused(sweep: Sweeper) -> None:
    refused: list[str] = []

    def on_poll() -> None:
        if not refused:
            with pytest.raises(SpillwayError) as error:
                Sweeper(sweep.plan_file, sweep.out)()
            refused.append(str(error.value))

    sweep(Scripted(on_poll=on_poll))
    assert "a sweep is running in it" in refused[0]


def test_a_directory_of_something_else_is_refused(sweep: Sweeper) -> None:
    sweep.out.mkdir()
    (sweep.out / "mine").touch()
    executor = Scripted()
    with pytest.raises(SpillwayError, match="there is something already that is no sweep's"):
        sweep(executor)
    assert (executor.begun, bool(executor.closed)) == ([], True)
    assert [each.name for each in sweep.out.iterdir()] == ["mine"]


def test_a_worker_with_another_build_says_so(sweep: Sweeper, fake: Fake) -> None:
    """Its figures would not be those of the cell's address."""

    def on_poll() -> None:
        fake.path.write_text(fake.path.read_text() + "# another build\n")

    outcome = sweep(Scripted(on_poll=on_poll))
    assert set(states(outcome).values()) == {"failed"}
    assert "has another spillway, spillway-native or preset than" in outcome.failures[0][1].why
    assert (outcome.exit_code, len(fake.requests())) == (2, 0)


def test_two_processes_with_one_cell_leave_one_result(sweep: Sweeper, monkeypatch: pytest.MonkeyPatch) -> None:
    """As when a task that was thought dead comes back: the first to end wins."""
    outcome = sweep()
    place = sweep.out / "cells" / outcome.cells[0].address
    first = (place / "manifest.json").read_text()
    job = files.write_job(sweep.out, outcome.cells[0], ["spillway"], sweep.out / "kept")
    assert worker.run_cell(job).end == "done"  # finds it done
    monkeypatch.setattr(files, "read_cell", lambda *words: None)
    assert worker.run_cell(job).end == "done"  # ends later than the other
    assert (place / "manifest.json").read_text() == first
    assert [each.name for each in job.iterdir() if each.is_dir()] == []


@pytest.mark.long
@pytest.mark.reports
def test_the_report_shows_all_cells(sweep: Sweeper) -> None:
    sweep(text=VIRTUAL + AXIS + ARMS)
    page = (sweep.out / "run/report.html").read_text()
    assert all(words in page for words in ("One", "Two", "value_bytes"))


@pytest.mark.native
def test_a_preparation_is_run_once_for_all_cells(
    real_native: Path, plan_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the real executable: the fake one keeps no states."""
    text = VIRTUAL.replace("num = 10000", "num = 2000").replace("duration_s = 1", "operations = 500")
    text = text.replace('workload = "fillrandom"', 'workload = "overwrite"').replace("value_bytes = 1024\n", "")
    text += '\n[sweep]\n"phases.fill.threads" = [1, 2, 3]\n[kept]\nfrom = "loaded"\n'
    text += '[[prepare]]\n"kept.to" = "loaded"\n[[prepare.phases]]\nworkload = "fillseq"\n'
    from spillway.sweep import Settings, cells_of, executor_on, run_sweep

    plan_file.write_text("repetitions = 2\n" + text)
    plan, kept, out = load_plan(plan_file), tmp_path / "kept", tmp_path / "out"

    def run() -> tuple[Outcome, dict[str, Any]]:
        settings = Settings(plan, cells_of(plan, kept), out, ["spillway"], kept, 0)
        outcome = run_sweep(settings, executor_on("local", out, 3))
        return outcome, json.loads((out / "run/summary.json").read_text())

    outcome, summary = run()
    assert [result.why for _, result in outcome.failures] == []
    assert summary["complete"] is True
    places = [out / "cells" / each.address / "summary.json" for each in outcome.cells]
    prepared = [json.loads(place.read_text())["prepared"] for place in places]
    assert sorted(each["loaded"]["reused"] for each in prepared) == [False, True, True]
    assert summary["prepared"]["loaded"]["reused"] is False
    assert len(read_run(out / "run").arms[0].repetitions) == 2
    assert run()[1] == summary
