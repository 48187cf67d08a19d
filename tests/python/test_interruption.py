"""Ctrl-C and SIGTERM at any moment of a run: what was measured is kept, and what comes after is not begun."""

import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from conftest import PLAN, Fake

import spillway.run.execute as module
from spillway.advise.simulated import in_parallel
from spillway.errors import Interrupted
from spillway.native import process as native
from spillway.native.interruption import GRACE_S, ONE_REQUEST_S, interruptible
from spillway.native.process import run_native
from spillway.plan.document import load_plan
from spillway.rundir.directory import read_run

ARMS = '\n[[arms]]\nname = "A"\n[[arms]]\nname = "B"\n'
BOTH = pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])


@contextmanager
def handlers_as_they_were() -> Iterator[None]:
    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGALRM)
    before = [signal.getsignal(each) for each in numbers]
    yield
    assert [signal.getsignal(each) for each in numbers] == before
    assert signal.getitimer(signal.ITIMER_REAL) == (0, 0)


def signalled(call: Callable[..., Any], number: int, *, before: bool) -> Callable[..., Any]:
    """``call``, with a signal just before or just after it."""

    def calls(*args: Any, **named: Any) -> Any:
        if before:
            os.kill(os.getpid(), number)
        result = call(*args, **named)
        if not before:
            os.kill(os.getpid(), number)
        return result

    return calls


# Each step of a run that is not inside of the native process.
STEPS = ["summarise", "run_native", "_data_directory", "ArmRecorder"]


@BOTH
@pytest.mark.parametrize("before", [True, False])
@pytest.mark.parametrize("step", STEPS)
def test_between_two_arms_what_was_measured_is_kept(
    fake: Fake, plan_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str, before: bool, number: int
) -> None:
    plan_file.write_text(PLAN + ARMS)
    monkeypatch.setattr(module, step, signalled(getattr(module, step), number, before=before))
    with handlers_as_they_were():
        finished = module.execute(load_plan(plan_file), tmp_path / "run", ["spillway"])
    assert (finished.interrupted, finished.exit_code) == (True, 130)
    run = read_run(tmp_path / "run")
    assert run.manifest["complete"] is False
    assert [arm.name for arm in run.arms] == ["A"]
    assert list(tmp_path.glob(".run.partial-*")) == []


def test_one_that_comes_before_the_process_is_passed_on(
    fake: Fake, plan_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Or the run would go on to its end."""
    fake.behave("endless")
    monkeypatch.setattr(native, "find_native", signalled(native.find_native, signal.SIGINT, before=False))
    assert module.execute(load_plan(plan_file), tmp_path / "run", ["spillway"]).exit_code == 130


def test_a_process_is_ended_though_the_signal_is_ignored_where_it_comes_from(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A shell's background ignores SIGINT, and what is started inherits that until it has a handler of its own."""
    script = tmp_path / "spillway-native"
    script.write_text("#!/bin/sh\nkill -INT $PPID\nexec sleep 60\n")
    script.chmod(0o755)
    monkeypatch.setenv("SPILLWAY_NATIVE", str(script))
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with pytest.raises(Interrupted):
            run_native("run", {})
        assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGINT, before)


def test_a_process_that_does_not_end_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`timeout -s INT` asks once; a process that hangs would hang for good."""
    monkeypatch.setattr("spillway.native.interruption.GRACE_S", 0.3)
    script = tmp_path / "spillway-native"
    script.write_text("#!/bin/sh\ntrap '' INT\nkill -INT $PPID\nexec sleep 60\n")
    script.chmod(0o755)
    monkeypatch.setenv("SPILLWAY_NATIVE", str(script))
    with handlers_as_they_were(), pytest.raises(Interrupted):
        run_native("run", {})


def test_a_request_that_was_not_read_for_a_signal_is_no_bad_input(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = (
        "#!/bin/sh\ntrap : INT\nkill -INT $PPID\n"
        'echo \'{"event": "error", "message": "no JSON document.", "fault": "bad_input"}\'\n'
    )
    script = tmp_path / "spillway-native"
    script.write_text(lines)
    script.chmod(0o755)
    monkeypatch.setenv("SPILLWAY_NATIVE", str(script))
    with pytest.raises(Interrupted):
        run_native("run", {})


class Process:
    """What was sent to it."""

    def __init__(self) -> None:
        self.sent: list[int] = []

    def poll(self) -> None:
        return None

    def send_signal(self, number: int) -> None:
        self.sent.append(number)


def test_two_signals_at_once_are_one_request(monkeypatch: pytest.MonkeyPatch) -> None:
    """As `timeout` sends them; one that comes later ends the process at once."""
    now = [0.0]
    monkeypatch.setattr("spillway.native.interruption.time.monotonic", lambda: now[0])
    process: Any = Process()
    with interruptible() as interruption:
        with interruption.passed_on_to(process):
            interruption(signal.SIGINT, None)
            interruption(signal.SIGINT, None)
            assert process.sent == [signal.SIGINT]
            now[0] = ONE_REQUEST_S
            interruption(signal.SIGTERM, None)
        assert process.sent == [signal.SIGINT, signal.SIGKILL]
        with pytest.raises(KeyboardInterrupt):
            interruption(signal.SIGINT, None)


# ---------------------------------------------------------------- threads, each with a process


def in_threads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, body: str, threads: int = 3) -> tuple[float, list[Any]]:
    """Runs a stand-in for the native side in each of several threads. When all run, a signal comes to this process
    alone. How long they took to end, and what each raised."""
    script = tmp_path / "spillway-native"
    ready = f"touch {tmp_path}/ready-$$; [ $(ls {tmp_path} | grep -c ready-) = {threads} ] && kill -INT $PPID"
    script.write_text(f"#!/bin/sh\n{body}\n{ready}\n")
    script.write_text(script.read_text() + "i=0\nwhile [ $i -lt 600 ]; do sleep 0.1; i=$((i+1)); done\n")
    script.chmod(0o755)
    monkeypatch.setenv("SPILLWAY_NATIVE", str(script))
    ended: list[Any] = []

    def one(_: int) -> None:
        try:
            run_native("lsm-simulate", {})
        except BaseException as error:
            ended.append(type(error))
            raise

    began = time.monotonic()
    with pytest.raises(Interrupted):
        in_parallel(one, range(threads), threads)
    return time.monotonic() - began, ended


def test_a_signal_reaches_the_processes_of_all_threads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It would have to wait for each to be done, or else for their grace."""
    monkeypatch.setattr("spillway.native.process.SIMULATION_GRACE_S", 60.0)
    with handlers_as_they_were():
        took_s, ended = in_threads(tmp_path, monkeypatch, "trap 'trap - INT; kill -INT $$' INT")
    assert ended == [Interrupted] * 3 and took_s < 30


def test_processes_of_threads_that_do_not_end_are_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with handlers_as_they_were():
        took_s, ended = in_threads(tmp_path, monkeypatch, "trap '' INT")
    assert ended == [Interrupted] * 3 and took_s < 30


def test_each_process_has_a_grace_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    timers: list[float] = []
    monkeypatch.setattr("spillway.native.interruption.time.monotonic", lambda: now[0])
    monkeypatch.setattr("spillway.native.interruption.signal.setitimer", lambda _, after: timers.append(after))
    simulation: Any = Process()
    engine: Any = Process()
    with (
        interruptible() as interruption,
        interruption.passed_on_to(simulation, 1.0),
        interruption.passed_on_to(engine),
    ):
        interruption(signal.SIGINT, None)
        assert simulation.sent == engine.sent == [signal.SIGINT] and timers[-1] == 1.0
        now[0] = 1.0
        interruption(signal.SIGALRM, None)
        assert simulation.sent[-1] == signal.SIGKILL and engine.sent == [signal.SIGINT]
        assert timers[-1] == GRACE_S - 1.0
        now[0] = GRACE_S
        interruption(signal.SIGALRM, None)
        assert engine.sent[-1] == signal.SIGKILL


def test_a_process_that_begins_after_the_signal_gets_it(monkeypatch: pytest.MonkeyPatch) -> None:
    process: Any = Process()
    with interruptible() as interruption:
        interruption(signal.SIGINT, None)
        with interruption.passed_on_to(process, 1.0):
            assert process.sent == [signal.SIGINT]


def test_nested_blocks_share_one_interruption() -> None:
    with handlers_as_they_were(), interruptible() as outer:
        with interruptible() as inner:
            os.kill(os.getpid(), signal.SIGTERM)
        assert inner is outer
        assert outer.requested
