"""Lint of fio jobs that prepare a drive: told from those that measure, and what they leave for those behind them."""

import math
from collections.abc import Callable
from pathlib import Path

import pytest
from conftest import Invoke
from test_lint_recipes import DEVICE, TB, all_of, fio, of

from spillway.lint.dispatch import lint_command
from spillway.lint.fio_jobs import parse_jobs
from spillway.lint.fio_steps import Step, state_after
from spillway.lint.table import Linted, covers_all
from spillway.precondition import Drive, Job, Target, as_text

Golden = Callable[[str, str], None]

GIB = 2**30
TARGET = Target("/dev/nvme7n1", True, 400 * GIB, 400 * GIB)
DRIVE = Drive("the preset tiny", {}, 0.282, 4096, 2**21, 1.0)
TWO_STEPS = (
    "[precondition-sequential]\nrw=write\nbs=128k\n"
    "[precondition-random]\nstonewall\nrw=randwrite\nbs=4k\nnorandommap=1\nloops=2\n"
)
MEASURED = "[measured]\nstonewall\nrw=randwrite\nbs=4k\ntime_based\nruntime=1h\nramp_time=60\nrate_iops=9\n"
SAID = "preconditioning, which states no figure"


def is_preconditioning(linted: Linted) -> bool:
    return SAID in all_of(linted, "short-test")[0].looked_at


# ---------------------------------------------------------------- what is let through


@pytest.mark.parametrize("two_steps", [False, True])
@pytest.mark.parametrize("capacity", ["", "429496729600"])
def test_the_jobs_of_spillway_precondition(
    two_steps: bool, capacity: str, tmp_path: Path, invoke: Invoke, golden: Golden, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("job.fio").write_text(as_text(Job(TARGET, DRIVE, two_steps)))
    ended = invoke("lint", "job.fio", *(["--capacity", capacity] if capacity else []))
    assert (ended.code, ended.err) == (0, "")
    golden(f"lint-precondition-{'two-steps' if two_steps else 'one-pass'}.txt", ended.out)


@pytest.mark.parametrize(
    "name",
    [
        *("fill", "prefill", "seq_fill", "SeqFill", "precond", "PreCond", "pre-conditioning", "precondition-1"),
        *("nvme0n1_fill_1", "prepare", "warm-up", "layout", "WDPC precondition"),
    ],
)
def test_names_that_say_what_a_job_is_for(name: str) -> None:
    linted = fio(DEVICE + f"[{name}]\nrw=write\nbs=1m\n", TB)
    assert (is_preconditioning(linted), linted.open, covers_all(linted)) == (True, 0, True)


@pytest.mark.parametrize(
    ("text", "verdict", "said"),
    [
        (TWO_STEPS, "ok", "written in order, then 2 x at random: a measurement has to start from here"),
        (TWO_STEPS.replace("loops=2", "io_size=200%"), "cannot tell", "then 1 x at random"),  # fio takes 100 % at most
        (TWO_STEPS.replace("loops=2", "loops=1"), "cannot tell", "no steady state of random writes"),
        (TWO_STEPS.replace("loops=2", "size=50%\nloops=4"), "cannot tell", "written in order: no steady"),
        (TWO_STEPS.replace("stonewall", ""), "cannot tell", "in order and at the same time 2 x at random"),
        (TWO_STEPS.replace("loops=2", "loops=2\nrandom_distribution=zipf:1.2"), "cannot tell", "(zipf:1.2)"),
        (TWO_STEPS.replace("loops=2", "loops=2\nfilename=/dev/sdb"), "finding", "14% of the LBAs stay unwritten"),
        (TWO_STEPS + "[fill]\nstonewall\nrw=write\n", "cannot tell", "written in order: no steady state"),
        ("[fill]\nrw=randwrite\nloops=2\n", "ok", "written 2 x at random"),  # its map writes every block
        ("[fill]\nrw=randwrite\nnorandommap\nloops=9\n", "ok", "written 9 x at random"),  # exp(-9)
        ("[fill]\nrw=write\nsize=10g\n", "finding", "0.011 of the drive is written"),
        ("[fill]\nrw=write\nsize=50%\n", "cannot tell", "written in order"),
        ("[fill]\nrw=write\nfilename=${DISK}\n", "cannot tell", "written in order"),
    ],
)
def test_the_state_that_is_left(text: str, verdict: str, said: str) -> None:
    linted = fio(DEVICE + text, TB)
    assert is_preconditioning(linted)
    found = [(remark.verdict, said in remark.looked_at) for remark in all_of(linted, "initial-state")]
    assert (verdict, True) in found, all_of(linted, "initial-state")


def test_the_share_that_random_writes_leave_unwritten() -> None:
    (job,) = parse_jobs("[fill]\nrw=randwrite\nnorandommap\nsize=8g\nio_size=20g\n", {})
    state = state_after([Step(job, 0)])
    assert state is not None
    assert state.unwritten == pytest.approx(math.exp(-2.5))
    assert state_after([]) is None


# ---------------------------------------------------------------- sprandom

ONE_PASS = "[a]\nrw=randwrite\nbs=4k\nblockalign=4k\nsprandom=1\n"


@pytest.mark.parametrize(
    ("options", "verdict", "said"),
    [
        ("spr_op=0.1", "ok", "in one pass (sprandom=1, spr_op=0.1)"),
        ("", "ok", "spr_op=0.15 by default"),
        ("spr_op=0.1\nnorandommap=1\nrandom_generator=lfsr", "ok", "in one pass"),
        ("spr_op=0.1\nnorandommap=0", "finding", "norandommap=0, and it takes 1: fio refuses the job"),
        ("spr_op=0.1\nrandom_generator=tausworthe64", "finding", "it takes lfsr"),
        ("spr_op=1.2", "finding", "spr_op=1.2, and it is a share between 0 and 1"),
        ("spr_op=much", "finding", "spr_op=much"),
        ("spr_op=0.1\nnumjobs=4", "finding", "several jobs or files"),
        ("spr_op=${OP}", "ok", "spr_op=${OP}"),
    ],
)
def test_fios_own_one_pass(options: str, verdict: str, said: str) -> None:
    linted = fio(DEVICE + ONE_PASS + options + "\n", TB)
    remark = of(linted, "initial-state")
    assert is_preconditioning(linted)
    assert (remark.verdict, said in remark.looked_at) == (verdict, True), remark


def test_the_over_provisioning_of_one_pass() -> None:
    assert of(fio(DEVICE + ONE_PASS + "spr_op=0.1\n"), "over-provisioning").looked_at == "spr_op=0.1 is stated"
    unsaid = of(fio(DEVICE + ONE_PASS), "over-provisioning")
    assert (unsaid.verdict, "fio takes 0.15" in unsaid.looked_at) == ("cannot tell", True)
    without = DEVICE + "[fill]\nrw=randwrite\nspr_op=0.1\n"  # does nothing without sprandom
    assert of(fio(without), "over-provisioning").verdict == "cannot tell"


def test_reads_behind_one_pass_find_data() -> None:
    linted = fio(DEVICE + ONE_PASS + "spr_op=0.1\n[r]\nstonewall\nrw=randread\nruntime=60\n")
    assert of(linted, "initial-state").verdict == "ok"
    refused = fio(DEVICE + ONE_PASS + "spr_op=3\n[r]\nstonewall\nrw=randread\nruntime=60\n")
    assert "fio refuses the job" in all_of(refused, "initial-state")[0].looked_at


# ---------------------------------------------------------------- what only looks like it

LIKE_IT = {
    "no name says so": DEVICE + "[seq]\nrw=write\nbs=1m\n[rand]\nstonewall\nrw=randwrite\nloops=2\n",
    "it is about a prepared drive": DEVICE + "[preconditioned-randwrite]\nrw=randwrite\nloops=2\n",
    "it comes after preparing": DEVICE + "[after-precondition]\nrw=randwrite\nloops=2\n",
    "nothing was prepared": DEVICE + "[no-precondition]\nrw=randwrite\n",
    "unfilled": DEVICE + "[unfill]\nrw=randwrite\n",
    "it tests": DEVICE + "[fill-bandwidth-test]\nrw=write\n",
    "a level": DEVICE + "[fill80-randwrite]\nrw=randwrite\nsize=80%\n",
    "a profile": DEVICE + "[profile]\nrw=randwrite\n",
    "time": DEVICE + "[precondition]\nrw=randwrite\ntime_based\nruntime=60\n",
    "time, one way": DEVICE + "[precondition]\nrw=write\nruntime=10m\n",
    "a time that is not known": DEVICE + "[precondition]\nrw=write\nruntime=${RUNTIME}\n",
    "a series": DEVICE + "[precondition]\nrw=randwrite\nwrite_iops_log=burst\n",
    "percentiles": DEVICE + "[fill]\nrw=randwrite\npercentile_list=50:99:99.9\n",
    "for programs": DEVICE + "[fill]\nrw=write\noutput-format=json\n",
    "a steady state": DEVICE + "[fill]\nrw=randwrite\nsteadystate=iops:10%\n",
    "a ramp": DEVICE + "[fill]\nrw=randwrite\nramp_time=10\n",
    "a rate": DEVICE + "[fill]\nrw=randwrite\nrate_iops=1000\n",
    "it reads too": DEVICE + "[fill]\nrw=randrw\n",
    "it reads": DEVICE + "[warm]\nrw=read\n",
    "one of two measures": DEVICE + "[fill]\nrw=write\n[fill-again]\nstonewall\nrw=randwrite\nwrite_bw_log=x\n",
    "trims are measured": DEVICE + "[fill]\nrw=write\n[trim]\nstonewall\nrw=randtrim\ntime_based\nruntime=1h\n",
    "trims and writes": DEVICE + "[fill]\nrw=write\n[mix]\nstonewall\nrw=trimwrite\ntime_based\nruntime=1h\n",
    "one pass by time": DEVICE + ONE_PASS + "time_based\nruntime=60\n",
    "one pass with a log": DEVICE + ONE_PASS + "write_iops_log=x\n",
    "four by volume": DEVICE
    + "".join(f"[{mode}]\nstonewall\nrw={mode}\n" for mode in ("write", "randwrite", "read", "randread")),
}


@pytest.mark.parametrize("text", LIKE_IT.values(), ids=LIKE_IT)
def test_a_measurement_that_looks_like_preconditioning_is_judged(text: str) -> None:
    linted = fio(text, TB)
    assert not is_preconditioning(linted)
    assert covers_all(linted)
    assert linted.open >= 2
    assert of(linted, "drive-type").verdict == "finding"


def test_a_remark_says_why_a_named_preparation_is_a_measurement() -> None:
    short = all_of(fio(LIKE_IT["a series"], TB), "short-test")
    assert "[precondition] keeps a record (write_iops_log)" in short[0].looked_at
    assert "names such as [precondition]" in all_of(fio(LIKE_IT["no name says so"], TB), "short-test")[0].change


# ---------------------------------------------------------------- files that prepare and measure


def test_measured_steps_behind_preconditioning_are_judged(
    tmp_path: Path, invoke: Invoke, golden: Golden, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("mixed.fio").write_text(DEVICE + TWO_STEPS + MEASURED.replace("1h", "10m"))
    ended = invoke("lint", "mixed.fio", "--capacity", "1TB")
    assert (ended.code, ended.err) == (1, "")
    golden("lint-precondition-mixed.txt", ended.out)


def test_the_initial_state_is_that_of_the_steps_before() -> None:
    prepared = fio(DEVICE + TWO_STEPS + MEASURED, TB)
    remark = of(prepared, "initial-state")
    assert (remark.verdict, remark.looked_at.endswith("in order, then 2 x at random")) == ("ok", True)
    assert "[measured]" in remark.where
    assert [each.verdict for each in all_of(prepared, "short-test")] == ["cannot tell"]
    at_once = fio(DEVICE + TWO_STEPS + MEASURED.replace("stonewall\n", ""), TB)  # beside the overwrite
    assert of(at_once, "initial-state").looked_at.endswith(": in order")
    other = fio(DEVICE + TWO_STEPS + MEASURED + "filename=/dev/sdb\n", TB)
    assert of(other, "initial-state").verdict == "finding"
    alone = fio(DEVICE + "[precondition]\nrw=randwrite\nloops=2\n" + MEASURED, TB)
    assert of(alone, "initial-state").looked_at.endswith(": 2 x at random")


def test_steps_without_a_name_prepare_where_those_behind_them_end_by_time() -> None:
    nameless = TWO_STEPS.replace("precondition-", "")
    linted = fio(DEVICE + nameless + MEASURED, TB)
    assert [remark.verdict for remark in all_of(linted, "short-test")] == ["cannot tell"]
    by_volume = MEASURED.replace("time_based\nruntime=1h\nramp_time=60\nrate_iops=9", "loops=3")
    linted = fio(DEVICE + nameless + by_volume, TB)
    assert "[sequential]" in " ".join(remark.where for remark in all_of(linted, "short-test"))


def test_commands_prepare_as_jobs_do() -> None:
    one = "fio --name=precondition --filename=/dev/sda --direct=1 --rw=write --bs=128k --size=100%\n"
    two = "fio --name=precondition2 --filename=/dev/sda --direct=1 --rw=randwrite --norandommap --loops=2 --size=100%\n"
    (linted,) = lint_command("fio", one + two, TB)
    assert (linted.open, of(linted, "initial-state").verdict) == (0, "ok")
    (linted,) = lint_command("fio", one + two + "fio --name=r --filename=/dev/sda --rw=randread --runtime=60\n", TB)
    assert (linted.open > 0, of(linted, "initial-state").verdict) == (True, "ok")
    (linted,) = lint_command("fio", one.replace("--bs", "--output-format=json --bs"), TB)
    assert not is_preconditioning(linted)
