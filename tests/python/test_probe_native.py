"""The real probe as a process: its conversation held to the contract, its refusals, and how a signal ends it."""

import json
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from conftest import CONTRACT, ROOT
from jsonschema import Draft202012Validator
from needs import need, need_direct_io

pytestmark = pytest.mark.native
MakeValidator = Callable[..., Draft202012Validator]
Event = dict[str, Any]

SMALL = {
    "seed": 1,
    "target": {
        "kind": "simulated",
        "drive": {"set": {"capacity.capacity_bytes": "64MiB", "capacity.spare_factor": "0.2"}},
        "initial": {"kind": "steady"},
    },
}
TEST_FILE_BYTES = 4 << 20
ENDLESS = {"id": 1, "iodepth": 4, "seconds": 600}


def converse(native: Path, *lines: object) -> tuple[int, list[Event], str]:
    """The exit code, what was told, and what was said to people."""
    text = "".join((line if isinstance(line, str) else json.dumps(line)) + "\n" for line in lines)
    done = subprocess.run([native, "probe"], input=text, capture_output=True, text=True, check=False, timeout=300)
    return done.returncode, [json.loads(line) for line in done.stdout.splitlines()], done.stderr


@pytest.fixture
def disk(tmp_path: Path, real_native: Path) -> Path:
    """A directory on a drive with direct I/O, of a machine with io_uring."""
    need_direct_io(tmp_path)
    code, events, _ = converse(
        real_native, {"target": {"kind": "directory", "path": str(tmp_path), "size_bytes": 4096}}
    )
    assert code == 0, events[-1]["message"]
    need("io_uring" in events[-2]["engines"], "io_uring")
    return tmp_path


def held_to_schema(events: list[Event], validator: MakeValidator) -> None:
    for event in events:
        validator("events.schema.json").validate(event)
    validator("events.schema.json", "probe.result").validate(events[-1])


def test_the_examples_are_answered_by_the_contract(real_native: Path, validator: MakeValidator) -> None:
    request = json.loads((CONTRACT / "examples" / "probe.request.json").read_text())
    request["target"]["drive"]["preset_dirs"] = [str(ROOT / "presets")]
    lines = (CONTRACT / "examples" / "probe.lines.jsonl").read_text().splitlines()
    code, events, complaints = converse(real_native, request, *lines)
    assert (code, complaints) == (0, "")
    held_to_schema(events, validator)
    told = [event for event in events if event["event"] != "progress"]
    assert [event["event"] for event in told] == [
        *("started", "ready", "measurement", "measurement", "measurement", "measurement"),
        *("ready", "ready", "measurement", "result"),
    ]
    assert [event["id"] for event in told if event["event"] == "measurement"] == [7, 8, 9, 10, 11]


def test_a_paced_drive_is_answered_by_the_contract(real_native: Path, validator: MakeValidator) -> None:
    request = SMALL | {"target": SMALL["target"] | {"kind": "paced", "time_scale": 2.0}}  # type: ignore[operator]
    code, events, _ = converse(real_native, request, {"id": 1, "numjobs": 2, "ios": 50, "read_share": 0.5})
    assert code == 0
    held_to_schema(events, validator)
    ready = next(event for event in events if event["event"] == "ready")
    assert (ready["kind"], ready["time_scale"]) == ("paced", 2.0)
    measurement = events[-2]
    assert measurement["ios"] == 50
    assert measurement["pacing_error_us"]["count"] >= 50


@pytest.mark.parametrize("engine", ["io_uring", "sync"])
def test_a_test_file_is_measured_and_gone(real_native: Path, disk: Path, validator: MakeValidator, engine: str) -> None:
    target = {"kind": "directory", "path": str(disk), "size_bytes": TEST_FILE_BYTES}
    points = [
        {"id": number, "pattern": pattern, "read_share": share, "engine": engine, "numjobs": 2, "ios": 64}
        for number, (pattern, share) in enumerate(
            [("random", 1.0), ("random", 0.0), ("sequential", 0.5), ("staggered", 1.0)]
        )
    ]
    code, events, complaints = converse(real_native, {"target": target}, *points)
    assert (code, complaints) == (0, "")
    held_to_schema(events, validator)
    ready, *measurements = [event for event in events if event["event"] in ("ready", "measurement")]
    assert (ready["direct"], ready["written_bytes"]) == (True, TEST_FILE_BYTES)
    assert [event["ios"] for event in measurements] == [64] * 4
    assert measurements[0]["host_bytes_written"] == measurements[1]["host_bytes_read"] == 0
    assert measurements[1]["host_bytes_written"] >= 64 * 4096
    assert all("wa_device" not in event for event in measurements), "only the drive knows"
    assert list(disk.iterdir()) == []


def test_somebodys_file_keeps_its_data(real_native: Path, disk: Path) -> None:
    path = disk / "theirs"
    path.write_bytes(os.urandom(TEST_FILE_BYTES))
    before = path.read_bytes()
    os.sync()
    request = {"target": {"kind": "file", "path": str(path)}}
    code, events, _ = converse(real_native, request, {"id": 1, "ios": 64}, {"id": 2, "ios": 1, "read_share": 0.0})
    assert code == 2
    assert [event["event"] for event in events if event["event"] != "progress"] == [
        "started",
        "ready",
        "measurement",
        "error",
    ]
    assert events[-1]["message"].startswith("point 2: read_share is below 1")
    assert "destroy_data" in events[-1]["message"]
    code, events, _ = converse(real_native, request, {"prepare": {"kind": "sequential"}})
    assert (code, "destroy_data" in events[-1]["message"]) == (2, True)
    assert path.read_bytes() == before


def started(native: Path, *lines: object) -> "subprocess.Popen[str]":
    """The probe with these lines said and its input still open."""
    process = subprocess.Popen([native, "probe"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdin is not None
    process.stdin.write("".join(json.dumps(line) + "\n" for line in lines))
    process.stdin.flush()
    return process


def events_of(process: "subprocess.Popen[str]") -> Iterator[Event]:
    assert process.stdout is not None
    for line in process.stdout:
        yield json.loads(line)


@pytest.mark.parametrize("sign", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("kind", ["simulated", "directory"])
def test_a_signal_ends_a_point_with_what_it_has(real_native: Path, disk: Path, kind: str, sign: signal.Signals) -> None:
    real = {"target": {"kind": "directory", "path": str(disk), "size_bytes": TEST_FILE_BYTES}}
    process = started(real_native, SMALL if kind == "simulated" else real, ENDLESS | {"ios": 10**12, "seconds": 1e6})
    events = events_of(process)
    while next(events)["event"] != "progress":
        pass
    process.send_signal(sign)
    rest = list(events)
    assert process.wait(timeout=120) == 0
    assert [event["event"] for event in rest if event["event"] != "progress"] == ["measurement", "result"]
    measurement, result = rest[-2:]
    assert (measurement["complete"], result["complete"]) == (False, False)
    assert measurement["ios"] > 0
    assert list(disk.iterdir()) == []


def test_a_signal_ends_the_wait_for_a_line(real_native: Path) -> None:
    process = started(real_native, SMALL)
    events = events_of(process)
    while next(events)["event"] != "ready":
        pass
    time.sleep(0.05)  # so that it waits; ended earlier it ends in the same way
    process.send_signal(signal.SIGINT)
    assert [event["event"] for event in events] == ["result"]
    assert process.wait(timeout=120) == 0


def test_killed_it_leaves_no_test_file(real_native: Path, disk: Path) -> None:
    target = {"kind": "directory", "path": str(disk), "size_bytes": TEST_FILE_BYTES}
    process = started(real_native, {"target": target}, ENDLESS)
    while next(events_of(process))["event"] != "ready":
        pass
    process.kill()
    process.wait(timeout=120)
    assert list(disk.iterdir()) == []


@pytest.mark.parametrize(
    ("lines", "says"),
    [
        ((SMALL, {"id": 4, "ios": 10, "bs_bytes": 1000}), "point 4: bs_bytes is 1000; it takes a multiple of"),
        ((SMALL, {"id": 4, "ios": 10, "numjob": 2}), "point 4: unknown key numjob; did you mean numjobs?"),
        ((SMALL, "{"), "line 2: not a JSON object"),
        (("",), "standard input: its first line is not a JSON document"),
        (({"target": {"kind": "file", "path": "/no/such/file"}},), "/no/such/file: No such file or directory"),
        (({"target": {"kind": "device", "path": "/dev/null"}},), "/dev/null: not a block device"),
    ],
)
def test_bad_input_is_one_sentence_and_exit_code_2(real_native: Path, lines: tuple[object, ...], says: str) -> None:
    code, events, complaints = converse(real_native, *lines)
    assert (code, complaints) == (2, "")
    assert (events[-1]["event"], events[-1]["fault"]) == ("error", "bad_input")
    assert events[-1]["message"].startswith(says)
    assert "\n" not in events[-1]["message"]
