"""A drive that a program holds: what is sent, what comes back, and what is refused before anything is sent."""

import itertools
import json
import math
import random
from typing import Any

import numpy as np
import pytest
from conftest import ROOT
from test_contract import MakeValidator

from spillway.errors import DriveFull, SpillwayError
from spillway.native.process import Event, run_native
from spillway.ssd import Done, Drive, Io

pytestmark = [pytest.mark.native, pytest.mark.usefixtures("real_native")]

SMALL = {
    "capacity.capacity_bytes": "64MiB",
    "capacity.spare_factor": "0.2",
    "geometry.channels": "2",
    "geometry.pages_per_block": "32",
    "write_cache.bytes": "0",
}
PAGE = 4096


# A drive whose host stack keeps a thread busy for 8 us to issue a write.
SLOW_TO_ISSUE: dict[str, Any] = {"preset": "intel-p4510", "settings": {"capacity.capacity_bytes": "256MiB"}}


def small(**options: Any) -> Drive:
    return Drive(settings=SMALL | options.pop("settings", {}), **options)


def test_what_is_submitted_completes_once_in_order_of_time() -> None:
    draw = random.Random(1)
    with small() as drive:
        assert (drive.capacity_bytes, drive.data_bytes, drive.lba_bytes) == (64 * 2**20, 64 * 2**20, 512)
        numbers = drive.submit(Io("read", draw.randrange(16384) * PAGE) for _ in range(100))
        assert numbers == range(100)
        assert drive.write(0, 512) == 100
        assert drive.in_flight == 101
        done: list[Done] = []
        while drive.in_flight:
            some = drive.wait(min(7, drive.in_flight))
            assert len(some) >= min(7, 101 - len(done))
            assert drive.now_ns == max(each.completed_ns for each in some)
            done += some
        assert sorted(each.io for each in done) == list(range(101))
        times = [each.completed_ns for each in done]
        assert times == sorted(times)
        assert all(each.latency_ns > 0 for each in done)
    assert drive.result is not None
    assert drive.result["ios"] == 101
    assert drive.result["host_bytes_read"] == 100 * PAGE
    assert drive.result["host_bytes_written"] == 512
    assert drive.result["unmapped_reads"] == 0
    assert drive.result["complete"]


def test_sending_late_is_the_same_to_the_drive() -> None:
    """Submitting one by one, asking for the time in between, and submitting in a batch."""

    def times(how: str) -> list[tuple[int, int]]:
        with Drive(**SLOW_TO_ISSUE) as drive:
            done = []
            for first in range(0, 40, 8):
                ios = [("write", (first + at) * 7919 % 16384 * PAGE, PAGE) for at in range(8)]
                if how == "batch":
                    drive.submit(ios)
                for io in ios if how != "batch" else ():
                    drive.submit([io])
                    if how == "asked":
                        assert drive.now_ns >= 0
                drive.work(1000)
                done += drive.wait(4)
            done += drive.wait_all()
        return [(each.submitted_ns, each.completed_ns) for each in sorted(done)]

    assert times("batch") == times("one by one") == times("asked")


def test_time_passes_only_where_it_is_said_to() -> None:
    with small() as drive:
        assert drive.now_ns == 0
        drive.read(0)
        assert drive.now_ns == 0
        drive.work(500)
        drive.work(250)
        assert drive.now_ns == 750
        assert drive.wait(0) == []
        assert drive.in_flight == 1
        (done,) = drive.wait()
        assert (done.io, done.submitted_ns) == (0, 0)
        assert drive.now_ns == max(750, done.completed_ns)


def test_many_at_once_are_faster_and_threads_issue_at_once() -> None:
    def taken(at_once: int, threads: bool = False) -> int:
        with Drive(**SLOW_TO_ISSUE, threads=threads) as drive:
            for first in range(0, 32, at_once):
                drive.submit(("write", page * 7919 % 16384 * PAGE, PAGE) for page in range(first, first + at_once))
                drive.wait_all()
            return drive.now_ns

    assert taken(32) < taken(8) < taken(1)
    assert taken(32, threads=True) < taken(32)


def test_the_same_seed_gives_the_same_times() -> None:
    def times(seed: int) -> list[Done]:
        with small(seed=seed) as drive:
            drive.submit(("write", page * 7919 % 16384 * PAGE, PAGE) for page in range(2000))
            return drive.wait_all()

    assert times(1) == times(1)
    assert times(1) != times(2)


BAD: list[tuple[tuple[str, int, int], str]] = [
    (("raed", 0, PAGE), "'raed' is no I/O: it is read or write"),
    (("read", 100, PAGE), "read of 4096 bytes at byte 100: both must be multiples of the drive's 512-byte LBAs"),
    (("read", 0, 100), "read of 100 bytes at byte 0: both must be multiples"),
    (("read", 0, 0), "the length above 0"),
    (("read", -512, 512), "both must be multiples"),
    (("write", 64 * 2**20, 512), "write of 512 bytes at byte 67108864: the drive ends at byte 67108864"),
    (("read", 64 * 2**20 - 512, 1024), "the drive ends at byte 67108864"),
]


def test_what_the_drive_does_not_take_is_refused_and_nothing_of_it_submitted() -> None:
    with small() as drive:
        for io, says in BAD:
            with pytest.raises(SpillwayError) as refused:
                drive.submit([("read", 0, PAGE), io])
            assert says in str(refused.value)
        assert drive.in_flight == 0
        with pytest.raises(SpillwayError, match="65537 I/Os would be in flight, and a drive takes 65536"):
            drive.submit([("read", 0, 512)] * 65537)
        drive.read(0)
        for at_least in (2, -1):
            with pytest.raises(SpillwayError, match=f"wait for {at_least} I/Os: 1 are in flight"):
                drive.wait(at_least)
        with pytest.raises(SpillwayError, match="time does not go back"):
            drive.work(-1)
        assert [each.io for each in drive.wait()] == [0], "it goes on after each of them"


NO_IOS: list[Any] = [(), ("read",), ("read", 0), None, 5, ([], 0, PAGE), (None, 0, PAGE)]
NO_NUMBERS: list[Any] = [4096.0, 0.5, math.nan, math.inf, "0", None, True, [], np.float64(0)]


def test_what_is_no_whole_number_is_refused_and_the_drive_goes_on() -> None:
    with small() as drive:
        drive.read(np.int64(PAGE), np.int32(PAGE))  # type: ignore[arg-type]  # as arrays have them
        for value in NO_NUMBERS:
            for call in (drive.read, lambda of: drive.write(0, of), drive.wait, drive.work):
                with pytest.raises(SpillwayError, match="it takes a whole number"):
                    call(value)
        for io in NO_IOS:
            with pytest.raises(SpillwayError, match="is no I/O"):
                drive.submit([io])
        with pytest.raises(SpillwayError, match="a day, at a time"):
            drive.work(10**30)
        for _ in range(2):
            drive.work(86_400 * 10**9)
        assert drive.now_ns >= 2 * 86_400 * 10**9
        assert [each.io for each in drive.wait()] == [0]


@pytest.mark.parametrize("options", [{"preset": 5}, {"preset": None}, {"settings": ["a=b"]}, {"seed": 1.5},
                                     {"fill": math.nan}, {"fill": 2}, {"fill": "x"}, {"threads": 3}])  # fmt: skip
def test_options_of_a_wrong_type_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(SpillwayError) as refused, Drive(**({"preset": "quickstart"} | options)):
        pass
    assert "\n" not in str(refused.value)


def test_the_python_side_refuses_what_the_native_side_refuses() -> None:
    """Every I/O that passes here passes there: the native side would end the conversation."""
    sizes = (-512, 0, 1, 100, 512, PAGE, 64 * 2**20 - 512, 64 * 2**20, 64 * 2**20 + 512, 2**31)
    with small() as drive:
        for offset, length in itertools.product(sizes, sizes):
            try:
                drive.read(offset, length)
            except SpillwayError:
                continue
            drive.wait_all()


def test_an_io_may_be_as_large_as_the_native_side_takes_it() -> None:
    settings = {"capacity.capacity_bytes": "2GiB", "capacity.spare_factor": "0.1"}
    with Drive(settings=settings, initial="trimmed") as drive:
        drive.read(0, 2**30)
        drive.wait()
        with pytest.raises(SpillwayError, match="at most 1073741824 bytes"):
            drive.read(0, 2**30 + 512)


def test_outside_of_its_block_it_is_not_open() -> None:
    drive = small()
    uses = (lambda: drive.read(0), lambda: drive.wait(0), lambda: drive.now_ns, lambda: drive.capacity_bytes)
    for use in uses:
        with pytest.raises(SpillwayError, match="not open"):
            use()
    with drive:
        pass
    for use in uses:
        with pytest.raises(SpillwayError, match="not open"):
            use()
    with pytest.raises(SpillwayError, match="already opened"), drive:
        pass


def test_two_drives_do_not_share_time() -> None:
    with small() as one, small() as other:
        one.read(0)
        one.wait()
        assert one.now_ns > 0
        assert other.now_ns == 0


def test_an_error_within_the_block_ends_the_process_and_comes_out() -> None:
    drive = small()
    with pytest.raises(ZeroDivisionError), drive:
        drive.read(0)
        _ = 1 / 0
    assert drive.result is None


def test_what_is_in_flight_at_the_end_is_done() -> None:
    with small() as drive:
        drive.write(0)
    assert drive.result is not None
    assert drive.result["host_bytes_written"] == PAGE


def test_a_full_drive_is_an_error_of_its_own() -> None:
    drive = small(settings={"capacity.spare_factor": "0"}, initial="sequential")
    with pytest.raises(DriveFull, match="no clean erase block left"), drive:
        for first in range(0, 20000, 100):
            drive.submit(("write", page * 7919 % 16384 * PAGE, PAGE) for page in range(first, first + 100))
            drive.wait_all()


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"preset": "intel-p4511"}, "preset: among the presets .* there is none called 'intel-p4511'; did you mean"),
        ({"initial": "stedy"}, "initial is 'stedy'; a drive starts steady, sequential, trimmed"),
        ({"settings": {"geometry.chanels": "2"}}, "unknown key"),
        ({"fill": 1.5}, "initial.fill is 1.5"),
        ({"preset": "intel-p4510", "host_stack": "none-such"}, "host.stack is 'none-such'"),
    ],
)
def test_a_drive_that_cannot_be_is_refused(options: dict[str, Any], says: str) -> None:
    with pytest.raises(SpillwayError, match=says), Drive(**options):
        pass


def test_it_speaks_the_contract(validator: MakeValidator, monkeypatch: pytest.MonkeyPatch) -> None:
    from spillway.native.process import Conversation

    asked: list[dict[str, Any]] = []
    ask = Conversation.ask

    def noted(self: Conversation, line: dict[str, Any], answer: str) -> Event:
        asked.append(line)
        found = ask(self, line, answer)
        validator("events.schema.json").validate(found)
        if answer == "result":
            validator("events.schema.json", "ssd-interact.result").validate(found)
        return found

    monkeypatch.setattr(Conversation, "ask", noted)
    with small() as drive:
        drive.submit([("read", 0, PAGE), ("write", PAGE, 512)])
        drive.work(10)
        drive.read(0)
        drive.wait_all()
    validator("ssd-interact.request.schema.json").validate(asked[0])
    for line in asked[1:]:
        validator("ssd-interact.line.schema.json").validate(line)
    assert asked[1]["submit"] == {"op": "rw", "offset_bytes": [0, PAGE], "length_bytes": [PAGE, 512]}
    assert asked[2] == {"spend_ns": 10, "submit": {"op": "r", "offset_bytes": [0], "length_bytes": PAGE}, "wait": 3}


def test_the_examples_answer_is_what_is_answered() -> None:
    import subprocess

    from spillway.native.process import find_native

    examples = ROOT / "contract" / "examples"
    request = json.loads((examples / "ssd-interact.request.json").read_text())
    request["drive"]["preset_dirs"] = [str(ROOT / "presets")]
    lines = json.dumps(request) + "\n" + (examples / "ssd-interact.lines.jsonl").read_text()
    said = subprocess.run([find_native(), "ssd-interact"], input=lines, capture_output=True, text=True, check=True)
    found = [json.loads(line) for line in said.stdout.splitlines()]
    wanted = [json.loads(line) for line in (examples / "ssd-interact.events.jsonl").read_text().splitlines()]
    host = {"cpu_seconds", "setup_cpu_seconds", "peak_rss_bytes", "version", "drive"}
    for one, other in zip((e for e in found if e["event"] != "progress"), wanted, strict=True):
        assert {k: v for k, v in one.items() if k not in host} == {k: v for k, v in other.items() if k not in host}


def test_the_request_alone_is_answered_with_a_result() -> None:
    """As `run_native` sends it: the end of the input ends the conversation."""
    result = run_native("ssd-interact", {"drive": {"set": SMALL}, "initial": {"kind": "steady"}})
    assert (result["ios"], result["complete"]) == (0, True)
