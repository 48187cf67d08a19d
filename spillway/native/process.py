"""The one way to ``spillway-native``: start it, hand it a request, read its JSON lines (contract/README.md).

The process gets a session of its own, so that a Ctrl-C in the terminal reaches it once and only through us
(``spillway/native/interruption.py``).
"""

import hashlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import IO, Any

from spillway.errors import DriveFull, HostFailed, Interrupted, RunFailed, SpillwayError
from spillway.native.interruption import SIMULATION_GRACE_S, Interruption, interruptible
from spillway.native.lines import encoded

Event = dict[str, Any]
Answer = Callable[[Event], "dict[str, Any] | None"]  # an event in, the command that it calls for out

CONTRACT_MAJOR = 1
SIMULATIONS = ("lsm-simulate", "ssd-simulate")  # in virtual time, without anything to end cleanly

# What a reader may rely on in each event; everything else is optional to it. tests/python hold this to the schema.
REQUIRED_FIELDS: dict[str, tuple[str, ...]] = {
    "started": ("contract", "command", "version"),
    "progress": ("phase", "done", "total", "unit"),
    "sample": ("t_s", "dt_s", "phase", "measured", "reads", "writes", "user_bytes_written"),
    "lsm-sample": (
        *("t_s", "operations", "l0_files", "immutable_memtables", "pending_compaction_bytes"),
        *("level_bytes", "host_bytes_written", "nand_bytes_programmed", "delayed", "stopped"),
    ),
    "stall": ("t_s", "duration_s", "state", "cause"),
    "engine": ("t_s", "name", "figures"),
    "phase": ("name", "workload", "measured", "t_s", "duration_s", "operations"),
    "ready": (
        *("kind", "size_bytes", "range_bytes", "lba_bytes", "direct", "writable", "preset", "path", "time_scale"),
        *("written_bytes", "complete"),
    ),
    "measurement": (
        *("id", "ios", "reads", "writes", "seconds", "iops", "bandwidth_mb_s", "latency_us", "cpu_s"),
        *("host_bytes_read", "host_bytes_written", "complete"),
    ),
    "completions": ("now_ns", "in_flight", "io", "submitted_ns", "completed_ns"),
    "result": ("complete",),
    "error": ("message", "fault"),
}


def find_native() -> Path:
    """The executable: $SPILLWAY_NATIVE, else beside the interpreter, in a checkout's build/, or on the PATH. Raises
    SpillwayError where there is none."""
    named = os.environ.get("SPILLWAY_NATIVE")
    if named:
        path = Path(named)
        if not _is_executable(path):
            raise SpillwayError(f"SPILLWAY_NATIVE is {named!r}, which is not an executable file; mend or unset it.")
        return path
    build = Path(__file__).parents[2] / "build"
    for path in (
        Path(sys.executable).parent / "spillway-native",
        build / "bin" / "spillway-native",
        build / "native" / "tool" / "spillway-native",
    ):
        if _is_executable(path):
            return path
    on_path = shutil.which("spillway-native")
    if on_path:
        return Path(on_path)
    raise SpillwayError(
        "spillway-native was not found beside the interpreter, in build/ or on the PATH: "
        "build it with `make demo`, or name it in SPILLWAY_NATIVE."
    )


def _is_executable(path: Path) -> bool:
    return path.is_file() and os.access(path, os.X_OK)


def executable_sha256() -> str:
    """SHA-256 of spillway-native, in hexadecimal: two builds may have the same version. Raises SpillwayError where
    there is none."""
    path = find_native()
    return _digest(path, path.stat().st_mtime_ns)


def modules_sha256() -> dict[str, str]:
    """File name → SHA-256 of the engines that are modules, where spillway-native looks for them
    (native/engine/modules.h). Raises SpillwayError where there is no spillway-native."""
    named = os.environ.get("SPILLWAY_ENGINES")
    directories = named.split(":") if named else [str(find_native().resolve().parent.parent / "lib")]
    found: dict[str, str] = {}
    for directory in filter(None, directories):
        for path in sorted(Path(directory).glob("libspillway-engine-*.so")):
            if path.is_file():
                found.setdefault(path.name, _digest(path, path.stat().st_mtime_ns))
    return found


def build_sha256() -> str:
    """SHA-256 over spillway-native and its modules: it differs between builds whose runs may differ. Raises
    SpillwayError where there is no spillway-native."""
    whole = "".join(f"{name} {digest}\n" for name, digest in modules_sha256().items())
    return hashlib.sha256((executable_sha256() + "\n" + whole).encode()).hexdigest()


@cache
def _digest(path: Path, changed_ns: int) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def run_native(
    command: str,
    request: dict[str, Any],
    on_event: Callable[[Event], None] | None = None,
    answer: Answer | None = None,
    held: tuple[int, ...] = (),
) -> Event:
    """Runs a command to its end and returns its ``result`` event, which has ``complete: false`` where the run was ended
    early.

    Every other event goes to ``on_event`` and then to ``answer``; what ``answer`` returns is sent as a command (of
    `run`). The process inherits the file descriptors ``held`` and so the locks on them; it may outlive this one for
    some seconds.

    Raises SpillwayError with the native side's sentence where it refuses the request, RunFailed (or another error of
    FAILURES) where the work failed.
    """
    sent = encoded(request)
    with _started(command, held) as (process, complaints, interruption):
        assert process.stdin is not None
        assert process.stdout is not None
        _hand_over(process.stdin, sent, closes=answer is None)
        try:
            outcome = _read(process.stdout, on_event, None if answer is None else _Answers(answer, process.stdin))
        finally:
            with suppress(BrokenPipeError):
                process.stdin.close()
        code = process.wait()
        return _judge(command, outcome, code, interruption.requested, complaints)


@contextmanager
def _started(
    command: str, held: tuple[int, ...] = ()
) -> Iterator[tuple[subprocess.Popen[bytes], IO[bytes], Interruption]]:
    """The process, where its complaints for people go, and what passes signals on to it. It has ended when the block
    is left.

    Signals are handled before it is started: it would inherit a SIGINT that is ignored, as in a shell's background,
    and lose one that comes before it has a handler of its own.
    """
    executable = find_native()
    with interruptible() as interruption, tempfile.TemporaryFile() as complaints:
        try:
            process = subprocess.Popen(
                [str(executable), command],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=complaints,
                start_new_session=True,
                pass_fds=held,
            )
        except OSError as error:
            raise SpillwayError(f"{executable} could not be started: {error.strerror}.") from error
        assert process.stdout is not None
        try:
            with interruption.passed_on_to(process, SIMULATION_GRACE_S if command in SIMULATIONS else None):
                yield process, complaints, interruption
        except BaseException:
            _end(process)
            raise
        finally:
            process.stdout.close()


class Conversation:
    """A command that takes JSON lines one after another, and answers each (`probe`)."""

    def __init__(
        self,
        command: str,
        process: subprocess.Popen[bytes],
        complaints: IO[bytes],
        interruption: Interruption,
        on_event: Callable[[Event], None] | None,
    ) -> None:
        """Talks to ``process``, which has just been started."""
        assert process.stdout is not None
        self._command, self._process, self._complaints = command, process, complaints
        self._interruption, self._on_event = interruption, on_event
        self._events = parse_events(process.stdout)

    def ask(self, line: dict[str, Any], answer: str) -> Event:
        """Sends ``line`` and returns the next event called ``answer``; others go to ``on_event``.

        Raises SpillwayError with the native side's sentence when the line is refused, Interrupted when a signal ended
        the conversation, RunFailed when the process did.
        """
        assert self._process.stdin is not None
        sent = encoded(line)
        try:
            self._process.stdin.write(sent)
            self._process.stdin.flush()
        except BrokenPipeError:
            pass  # its last event says why it has gone
        for event in self._events:
            if event["event"] == answer:
                return event
            if event["event"] in ("result", "error"):
                return self._ended(event)
            if self._on_event is not None:
                self._on_event(event)
        return self._ended(None)

    def _ended(self, outcome: Event | None) -> Event:
        """It ended while it owed an answer: raises what that means."""
        code = self._process.wait()
        _judge(self._command, outcome, code, self._interruption.requested, self._complaints)
        raise Interrupted(f"spillway-native {self._command} was ended before it had measured enough.")

    def end(self) -> Event:
        """Ends the conversation and returns its ``result``. Raises as ``ask`` does."""
        result = self.ask({"end": True}, "result")
        self._process.wait()
        return result


@contextmanager
def converse(command: str, on_event: Callable[[Event], None] | None = None) -> Iterator[Conversation]:
    """Starts a command that is a conversation and ends its process with the block. Raises SpillwayError where there is
    no spillway-native."""
    with _started(command) as (process, complaints, interruption):
        assert process.stdin is not None
        try:
            yield Conversation(command, process, complaints, interruption, on_event)
        finally:
            with suppress(BrokenPipeError):
                process.stdin.close()
            if process.poll() is None:
                _end(process)


def _hand_over(stdin: IO[bytes], request: bytes, *, closes: bool) -> None:
    try:
        stdin.write(request)
        stdin.flush()
        if closes:
            stdin.close()
    except BrokenPipeError:
        pass  # it refused before it had read everything; its last event says why


class _Answers:
    """Commands that follow from what a run says."""

    def __init__(self, answer: Answer, stdin: IO[bytes]) -> None:
        """Sends them to ``stdin``."""
        self._answer, self._stdin = answer, stdin

    def to(self, event: Event) -> None:
        """Sends what the event calls for."""
        command = self._answer(event)
        if command is not None:
            with suppress(BrokenPipeError):  # it has ended, and says why
                self._stdin.write(json.dumps(command).encode() + b"\n")
                self._stdin.flush()


def _read(stdout: IO[bytes], on_event: Callable[[Event], None] | None, answers: _Answers | None) -> Event | None:
    last: Event | None = None
    for event in parse_events(stdout):
        if event["event"] in ("result", "error"):
            last = event
            continue
        if on_event is not None:
            on_event(event)
        if answers is not None:
            answers.to(event)
    return last


def parse_events(lines: Iterator[bytes] | IO[bytes]) -> Iterator[Event]:
    """The events of a stream of JSON lines, each checked for its REQUIRED_FIELDS. Raises RunFailed for a line that is
    no event of the contract, SpillwayError for another version of the contract."""
    for number, line in enumerate(lines, start=1):
        try:
            event = json.loads(line)
        except ValueError:
            event = None
        if not isinstance(event, dict) or event.get("event") not in REQUIRED_FIELDS:
            raise RunFailed(f"spillway-native wrote a line {number} that is no event of its contract: {line[:120]!r}.")
        missing = [field for field in REQUIRED_FIELDS[event["event"]] if field not in event]
        if missing:
            raise RunFailed(f"spillway-native wrote a {event['event']} without {missing[0]!r} in line {number}.")
        if event["event"] == "started" and event["contract"][0] != CONTRACT_MAJOR:
            raise SpillwayError(
                f"spillway-native speaks contract {event['contract'][0]}, this package {CONTRACT_MAJOR}: "
                "install both from the same version."
            )
        yield event


# By fault; any other is RunFailed.
FAILURES: dict[str, type[SpillwayError]] = {
    "bad_input": SpillwayError,
    "io_error": HostFailed,
    "not_supported": SpillwayError,
    "drive_full": DriveFull,
}


def _judge(command: str, outcome: Event | None, code: int, interrupted: bool, complaints: IO[bytes]) -> Event:
    if outcome is not None and outcome["event"] == "result":
        return outcome
    if outcome is not None:
        if interrupted and outcome["fault"] == "bad_input":
            # It was ended before it had read the request, and misses it.
            raise Interrupted(f"spillway-native {command} was ended before it had a result.")
        # A full disk, a directory without permission, or what cannot be done with what was given is the caller's to
        # mend, like any other bad input.
        raise FAILURES.get(outcome["fault"], RunFailed)(str(outcome["message"]))
    if code in (-signal.SIGINT, -signal.SIGKILL) and interrupted:
        raise Interrupted(f"spillway-native {command} was ended before it had a result.")
    complaints.seek(0)
    lines = complaints.read().decode(errors="replace").strip().splitlines()
    how = f"was ended by signal {signal.Signals(-code).name}" if code < 0 else f"ended with exit code {code}"
    raise RunFailed(f"spillway-native {command} {how} without a result: {lines[-1] if lines else 'it said nothing'}")


def _end(process: subprocess.Popen[bytes]) -> None:
    """Ends a process whose output cannot be used any more."""
    process.kill()
    process.wait()
