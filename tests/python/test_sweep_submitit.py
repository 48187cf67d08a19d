"""Cells as jobs of submitit: its local executor as it is, and Slurm's commands played by scripts."""

import os
import signal
import stat
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest
from conftest import Fake, Invoke
from swept import VIRTUAL, let_wait, shell_wait
from test_sweep_command import TWO, done, only, processes_of, rows, start, wait_for

from spillway.sweep.where import slurm_parameter

# sbatch starts the job's script in the background, srun the command in it; sacct knows that every job is over: submitit
# asks it only where there is no result yet.
SBATCH = """#!/bin/sh
id=$(ls {log} 2>/dev/null | wc -l)
cp "$1" {log}/$id
export SLURM_JOB_ID=$id SLURM_NTASKS=1 SLURM_JOB_NUM_NODES=1 SLURM_NODEID=0 SLURM_PROCID=0 SLURM_LOCALID=0
sh "$1" >/dev/null 2>&1 </dev/null &
echo $! >{log}/../pid-$id
echo "Submitted batch job $id"
"""
SRUN = """#!/bin/sh
while [ "$1" != "{python}" ]; do shift; done
exec "$@"
"""
SACCT = """#!/bin/sh
echo "JobID|State"
for word in "$@"; do
  case $word in
    [0-9]*) if kill -0 $(cat {log}/../pid-$word) 2>/dev/null; then echo "$word|RUNNING"; else echo "$word|FAILED"; fi ;;
  esac
done
"""


@pytest.fixture
def slurm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Slurm's commands on the PATH; returns the directory of the scripts that were submitted."""
    log, commands = tmp_path / "slurm/log", tmp_path / "slurm/bin"
    log.mkdir(parents=True)
    commands.mkdir()
    for name, text in (("sbatch", SBATCH), ("srun", SRUN), ("sacct", SACCT)):
        (commands / name).write_text(text.replace("{log}", str(log)).replace("{python}", sys.executable))
        (commands / name).chmod(stat.S_IRWXU)
    monkeypatch.setenv("PATH", f"{commands}:{os.environ['PATH']}")
    return log


def test_cells_run_as_jobs_on_this_machine(fake: Fake, plan_file: Path, tmp_path: Path, invoke: Invoke) -> None:
    plan_file.write_text(VIRTUAL + TWO)
    out = tmp_path / "out"
    ended = invoke("sweep", plan_file, "--out", out, "--on", "submitit-local", "--jobs", 2)
    assert (ended.code, len(fake.requests())) == (0, 2), ended.err
    assert [(row["state"], row["attempts"]) for row in rows(out)] == [("done", "1")] * 2
    assert not (out / "work").exists()
    assert invoke("sweep", plan_file, "--out", out, "--on", "submitit-local").code == 0
    assert len(fake.requests()) == 2


@pytest.mark.long
def test_a_job_that_is_killed_is_tried_again_and_a_ctrl_c_ends_the_others(
    fake: Fake, plan_file: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    fake.monkeypatch.setenv("FAKE_WHERE", '{"value_bytes": 100}')
    fake.behave("endless")
    plan_file.write_text(VIRTUAL.replace("duration_s = 1", "duration_s = 300") + TWO)
    command = start(plan_file, out, "--on", "submitit-local", "--jobs", "2")
    wait_for(lambda: len(done(out)) == 1 and list(out.glob("work/*/.run.partial-*")))
    one = wait_for(lambda: only(set(processes_of(out))))
    os.kill(one, signal.SIGKILL)
    wait_for(lambda: [each for each in processes_of(out) if each != one])
    wait_for(lambda: list(out.glob("work/*/.run.partial-*")))
    command.send_signal(signal.SIGINT)
    said, complaints = command.communicate(timeout=60)
    assert command.returncode == 130, complaints
    assert "value_bytes 100: failed, and is tried again: its worker died: its process was ended by signal SIGKILL" in (
        complaints
    )
    assert "1 cells run, 0 done before, 1 not run" in said
    wait_for(lambda: not processes_of(out))


def test_slurm_gets_whole_cores_and_a_paced_cell_a_machine(
    fake: Fake, plan_file: Path, tmp_path: Path, invoke: Invoke, slurm: Path
) -> None:
    out = tmp_path / "out"
    arms = '\n[[arms]]\nname = "{0}"\n"drive.pacing" = "{0}"\n'
    plan_file.write_text(VIRTUAL.replace('pacing = "off"', "") + arms.format("off") + arms.format("real"))
    ended = invoke(
        "sweep", plan_file, "--out", out, "--on", "slurm", "--cores", 2, "--slurm", "partition=ssd",
        "--slurm", "time=7",
    )  # fmt: skip
    assert (ended.code, len(fake.requests())) == (0, 2), ended.err
    scripts = [(slurm / name).read_text() for name in ("0", "1")]
    for text in scripts:
        assert "#SBATCH --cpus-per-task=2" in text
        assert "#SBATCH --partition=ssd" in text
        assert "#SBATCH --time=7" in text
    assert ["#SBATCH --exclusive" in text for text in scripts] == [False, True]


def test_a_parameter_that_submitit_does_not_know(
    fake: Fake, plan_file: Path, tmp_path: Path, invoke: Invoke, slurm: Path
) -> None:
    plan_file.write_text(VIRTUAL)
    for given, says in (("partitio=ssd", "--slurm: submitit takes no such parameter: "), ("ssd", "it takes KEY=VALUE")):
        ended = invoke("sweep", plan_file, "--out", tmp_path / "out", "--on", "slurm", "--slurm", given)
        assert (ended.code, ended.err.count("\n")) == (2, 1), ended.err
        assert says in ended.err
    assert list(slurm.iterdir()) == []


def test_a_slurm_that_takes_no_job_ends_the_sweep(
    fake: Fake, plan_file: Path, tmp_path: Path, invoke: Invoke, slurm: Path
) -> None:
    plan_file.write_text(VIRTUAL + TWO)
    sbatch = slurm.parent / "bin/sbatch"
    sbatch.write_text("#!/bin/sh\necho 'sbatch: error: invalid partition specified: ssd' >&2\nexit 1\n")
    ended = invoke("sweep", plan_file, "--out", tmp_path / "out", "--on", "slurm")
    assert (ended.code, ended.err.count("\n")) == (2, 1), ended.err
    assert "--on slurm: the job was not taken: " in ended.err
    assert "invalid partition" in ended.err
    assert "the same command goes on with the rest." in ended.err


def waits_for_others(command: "subprocess.Popen[str]", count: int) -> None:
    """Until it says so of that many cells."""
    assert command.stderr is not None
    said, handle = bytearray(), command.stderr.fileno()
    os.set_blocking(handle, False)

    def has_said() -> bool:
        with suppress(BlockingIOError):
            said.extend(os.read(handle, 2**16))
        return said.count(b"an earlier sweep has started it; its end is waited for") == count

    wait_for(has_said)
    os.set_blocking(handle, True)


@pytest.mark.parametrize("where", ["slurm", "submitit-local"])
def test_a_sweep_that_is_killed_and_started_again_runs_no_cell_twice(
    fake: Fake, plan_file: Path, tmp_path: Path, slurm: Path, where: str
) -> None:
    """Jobs go on without it: those that run, and with Slurm also those that wait in its queue."""
    out, go = tmp_path / "out", tmp_path / "go"
    let_wait(fake, go)
    sbatch = slurm.parent / "bin/sbatch"
    sbatch.write_text(sbatch.read_text().replace('sh "$1"', f'sh -c \'{shell_wait(go)}; sh "$0"\' "$1"'))
    plan_file.write_text(VIRTUAL + TWO)
    first = start(plan_file, out, "--on", where, "--jobs", "2")
    begun = "work/*/submitit/*_submitted.pkl" if where == "slurm" else "work/*/.run.partial-*"
    wait_for(lambda: len(list(out.glob(begun))) == 2)
    with first:
        first.kill()
    again = start(plan_file, out, "--on", where, "--jobs", "2")
    waits_for_others(again, 2)
    go.touch()
    _, complaints = again.communicate(timeout=120)
    assert again.returncode == 0, complaints
    assert [(row["state"], row["attempts"]) for row in rows(out)] == [("done", "1")] * 2
    assert len(fake.requests()) == 2
    assert len(list(slurm.iterdir())) == (2 if where == "slurm" else 0)
    wait_for(lambda: not processes_of(out))


def test_a_ctrl_c_cancels_what_an_earlier_sweep_has_submitted(
    fake: Fake, plan_file: Path, tmp_path: Path, slurm: Path
) -> None:
    out, go = tmp_path / "out", tmp_path / "go"
    let_wait(fake, go)
    scancel = slurm.parent / "bin/scancel"
    scancel.write_text(f"#!/bin/sh\necho $1 >>{slurm.parent}/cancelled\ntouch {go}\n")
    scancel.chmod(stat.S_IRWXU)
    plan_file.write_text(VIRTUAL)
    first = start(plan_file, out, "--on", "slurm")
    wait_for(lambda: list(out.glob("work/*/.run.partial-*")))
    with first:
        first.kill()
    again = start(plan_file, out, "--on", "slurm")
    waits_for_others(again, 1)
    again.send_signal(signal.SIGINT)
    again.communicate(timeout=60)
    assert again.returncode == 130
    assert (slurm.parent / "cancelled").read_text().split() == ["0"]


@pytest.mark.parametrize("value", ["²", "٣", "１", "9" * 5000, "-5", "", "1_000"])
def test_a_parameter_that_is_no_whole_number_is_a_text(value: str) -> None:
    assert slurm_parameter(f"nice={value}") == ("nice", value)
    assert slurm_parameter("nice=12") == ("nice", 12)


def test_a_path_that_submitit_would_read_numbers_into_is_refused(
    fake: Fake, plan_file: Path, tmp_path: Path, invoke: Invoke, slurm: Path
) -> None:
    plan_file.write_text(VIRTUAL)
    for where in ("slurm", "submitit-local"):
        ended = invoke("sweep", plan_file, "--out", tmp_path / "100%a", "--on", where)
        assert (ended.code, ended.err.count("\n")) == (2, 1), ended.err
        assert "submitit reads %a in a path as a number; name another --out." in ended.err
    assert not (tmp_path / "100%a").exists()
