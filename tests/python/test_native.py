"""The way to the native side: what it is handed, what comes back, and what happens when nothing good does."""

import signal
import sys
from pathlib import Path
from typing import Any

import pytest
from conftest import Fake

from spillway.errors import DriveFull, HostFailed, Interrupted, RunFailed, SpillwayError
from spillway.native.process import find_native, parse_events, run_native


def test_request_in_events_out(fake: Fake) -> None:
    seen: list[dict[str, Any]] = []
    request = {"drive": {}, "initial": {"kind": "steady"}, "workload": {"name": "randwrite"}}
    result = run_native("ssd-simulate", request, seen.append)
    assert fake.log() == [{"command": "ssd-simulate", "request": request}]
    assert [event["event"] for event in seen] == ["started"]
    assert result["complete"]
    assert result["ios"] > 0


@pytest.mark.parametrize(
    ("mode", "kind", "says"),
    [
        ("bad_input", SpillwayError, "geometry.chanels is not a key"),
        ("disk_full", HostFailed, "no space left"),
        ("fails", DriveFull, "the drive is full"),
        ("crashes", RunFailed, "exit code 134 without a result: an assertion failed"),
        ("garbage", RunFailed, "line 2 that is no event"),
    ],
)
def test_failures_have_their_own_words(fake: Fake, mode: str, kind: type[SpillwayError], says: str) -> None:
    fake.behave(mode)
    with pytest.raises(SpillwayError, match=says) as raised:
        run_native("ssd-show", {"drive": {}})
    assert type(raised.value) is kind
    assert raised.value.exit_code == (1 if kind is RunFailed else 2)


def test_a_callback_that_fails_ends_the_process(fake: Fake) -> None:
    fake.behave("endless")
    phases = [{"name": "p", "workload": "fillrandom", "duration_s": 1000, "measured": True}]

    def full_disk(event: dict[str, Any]) -> None:
        raise OSError("no space")

    with pytest.raises(OSError, match="no space"):
        run_native("run", {"sample_interval_ms": 100, "seed": 1, "phases": phases}, full_disk)


def script(tmp_path: Path, text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "native"
    path.write_text(f"#!{sys.executable}\n{text}")
    path.chmod(0o755)
    monkeypatch.setenv("SPILLWAY_NATIVE", str(path))


def test_a_refusal_before_the_request_was_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = (
        "import os, sys\n"
        "os.close(0)\n"
        'print(\'{"event": "error", "message": "no such command.", "fault": "bad_input"}\')\n'
        "sys.exit(2)\n"
    )
    script(tmp_path, lines, monkeypatch)
    with pytest.raises(SpillwayError, match="no such command"):
        run_native("run", {"much": "x" * 1_000_000})


def test_a_signal_that_comes_too_early_is_an_interruption(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The process dies of the forwarded signal when it had no handler yet; that is no crash."""
    lines = "import os, signal, time\nsignal.signal(2, signal.SIG_DFL)\nos.kill(os.getppid(), 2)\ntime.sleep(60)\n"
    script(tmp_path, lines, monkeypatch)
    before = signal.getsignal(signal.SIGINT)  # ignored, where a shell runs the tests in the background
    with pytest.raises(Interrupted):
        run_native("run", {})
    assert signal.getsignal(signal.SIGINT) is before


def test_another_major_version_is_refused() -> None:
    line = b'{"event": "started", "contract": [99, 0], "command": "run", "version": "9"}'
    with pytest.raises(SpillwayError, match="contract 99, this package 1"):
        list(parse_events(iter([line])))


def test_a_field_that_is_relied_on_must_be_there() -> None:
    with pytest.raises(RunFailed, match="progress without 'done'"):
        list(parse_events(iter([b'{"event": "progress", "phase": "x", "total": 1, "unit": "seconds"}'])))


def test_fields_of_a_later_minor_version_are_let_pass() -> None:
    line = b'{"event": "started", "contract": [1, 7], "command": "run", "version": "1", "new": 1}'
    assert next(parse_events(iter([line])))["new"] == 1


def test_where_it_is_looked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPILLWAY_NATIVE", str(tmp_path / "none"))
    with pytest.raises(SpillwayError, match=r"SPILLWAY_NATIVE is .* not an executable"):
        find_native()
    monkeypatch.delenv("SPILLWAY_NATIVE")
    beside = tmp_path / "bin"
    beside.mkdir()
    monkeypatch.setattr(sys, "executable", str(beside / "python"))
    (beside / "spillway-native").write_text("")
    (beside / "spillway-native").chmod(0o755)
    assert find_native() == beside / "spillway-native"
