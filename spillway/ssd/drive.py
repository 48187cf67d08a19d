"""A drive in virtual time that a program holds (contract/README.md, `ssd-interact`).

    with Drive("intel-p4510") as drive:
        drive.read(0)
        drive.read(1 << 20)
        drive.write(4096, 8192)
        for done in drive.wait(at_least=2):
            print(done.io, done.latency_ns)
        print(drive.now_ns)

The drive has times and no data: what a page holds is the program's own affair. Time passes while the program waits,
while it says that it works, and while it issues: one thread issues one I/O after another, each for as long as the
drive's host stack says. The program's own processor time is none of the drive's.

Nothing is sent before the program waits or asks for the time, so submitting one by one costs no more than in a batch,
and is the same to the drive.
"""

from collections.abc import Iterable, Mapping
from contextlib import ExitStack
from operator import index
from types import TracebackType
from typing import Any, NamedTuple, Self

from spillway.errors import SpillwayError
from spillway.native.process import Conversation, Event, converse
from spillway.ssd.preset import check_preset
from spillway.ssd.simulate import INITIAL_STATES, DriveChoice, drive_request

PAGE_BYTES = 4096
MOST_IN_FLIGHT = 65536  # native/tool/ssd/held_drive_line.h
MOST_BYTES = 2**30  # of one I/O; native/device/device.h
MOST_WORK_NS = 86_400 * 10**9  # in one line; native/tool/ssd/held_drive_line.h
OPS = {"read": "r", "write": "w"}


class Io(NamedTuple):
    """What is asked of the drive: ``op`` is read or write; offset and length are multiples of the drive's LBAs."""

    op: str
    offset_bytes: int
    length_bytes: int = PAGE_BYTES


class Done(NamedTuple):
    """An I/O that is complete, by the number that ``submit`` gave it, and its times since the drive was opened."""

    io: int
    submitted_ns: int
    completed_ns: int

    @property
    def latency_ns(self) -> int:
        """From submission to completion."""
        return self.completed_ns - self.submitted_ns


class Drive:
    """A drive while its ``with`` block lasts. Every method raises SpillwayError outside of the block, and Interrupted
    after a Ctrl-C."""

    def __init__(
        self,
        preset: str = "",
        *,
        settings: Mapping[str, str] | None = None,
        host_stack: str | None = None,
        initial: str = "steady",
        fill: float = 1.0,
        seed: int = 1,
        threads: bool = False,
    ) -> None:
        """A preset's drive with keys of ``settings`` set over it; without a preset the settings alone.

        ``initial`` is steady, sequential or trimmed, ``fill`` the share of the drive that then holds data. ``threads``:
        each I/O is issued by a thread of its own, and issuing one delays no other. Raises SpillwayError for a preset or
        a state that is unknown; what else is wrong shows when the block is entered.
        """
        if not isinstance(preset, str):
            raise SpillwayError(f"preset is {preset!r}; it takes the name of a preset.")
        if settings is not None and not isinstance(settings, Mapping):
            raise SpillwayError(f"settings is {settings!r}; it takes a table of keys and values.")
        if preset:
            check_preset(preset, "preset")
        if initial not in INITIAL_STATES:
            raise SpillwayError(f"initial is {initial!r}; a drive starts {', '.join(INITIAL_STATES)}.")
        words = tuple(f"{key}={value}" for key, value in (settings or {}).items())
        self._request = {
            "drive": drive_request(DriveChoice(preset=preset or None, settings=words, host_stack=host_stack)),
            "initial": {"kind": initial, "fill": fill},
            "seed": seed,
            "threads": threads,
        }
        self._stack = ExitStack()
        self._conversation: Conversation | None = None
        self._ready: Event = {}
        self._now_ns = self._submitted = self._in_flight = self._spend_ns = 0
        self._ops: list[str] = []
        self._offsets: list[int] = []
        self._lengths: list[int] = []
        self.result: dict[str, Any] | None = None

    def __enter__(self) -> Self:
        """Makes the drive and brings it to its initial state. Raises SpillwayError with the native side's sentence."""
        if self._conversation is not None or self.result is not None:
            raise SpillwayError("This drive was already opened; make another one.")
        with ExitStack() as stack:
            conversation = stack.enter_context(converse("ssd-interact"))
            self._ready = conversation.ask(self._request, "ready")
            self._stack = stack.pop_all()
        self._conversation = conversation
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        """Waits for what is in flight and leaves the drive's counts in ``result``; after an error it leaves none."""
        conversation = self._open()
        with self._stack:
            try:
                if kind is None:
                    self._send(0)
                    self.result = conversation.end()
            finally:
                self._conversation = None

    @property
    def capacity_bytes(self) -> int:
        """Logical capacity."""
        return int(self._known("size_bytes"))

    @property
    def data_bytes(self) -> int:
        """The part, from the first byte on, that held data when the drive was opened; the capacity if none did. A read
        beyond it costs no flash."""
        return int(self._known("range_bytes"))

    @property
    def lba_bytes(self) -> int:
        """What offsets and lengths are multiples of."""
        return int(self._known("lba_bytes"))

    @property
    def in_flight(self) -> int:
        """I/Os that are submitted and that no ``wait`` has returned."""
        return self._in_flight + len(self._ops)

    @property
    def now_ns(self) -> int:
        """The time since the drive was opened."""
        self._open()
        if self._ops or self._spend_ns:
            self._send(0)
        return self._now_ns

    def submit(self, ios: Iterable[tuple[str, int, int]]) -> range:
        """Submits all of them and returns their numbers, without waiting. An element is an ``Io`` or a tuple like it.
        Raises SpillwayError for one that the drive does not take; then none was submitted."""
        self._open()
        wanted = [self._io(io) for io in ios]
        if self.in_flight + len(wanted) > MOST_IN_FLIGHT:
            raise SpillwayError(
                f"{self.in_flight + len(wanted)} I/Os would be in flight, and a drive takes {MOST_IN_FLIGHT}: "
                "wait for some."
            )
        for io in wanted:
            self._check(io)
        first = self._submitted
        self._submitted += len(wanted)
        self._ops += [OPS[op] for op, _, _ in wanted]
        self._offsets += [offset for _, offset, _ in wanted]
        self._lengths += [length for _, _, length in wanted]
        return range(first, self._submitted)

    def read(self, offset_bytes: int, length_bytes: int = PAGE_BYTES) -> int:
        """Submits one read; returns its number. Raises SpillwayError as ``submit`` does."""
        return self.submit([("read", offset_bytes, length_bytes)])[0]

    def write(self, offset_bytes: int, length_bytes: int = PAGE_BYTES) -> int:
        """Submits one write; returns its number. Raises SpillwayError as ``submit`` does."""
        return self.submit([("write", offset_bytes, length_bytes)])[0]

    def wait(self, at_least: int = 1) -> list[Done]:
        """Waits until ``at_least`` of the I/Os in flight are complete; returns those that are, in the order of
        completion, each once. Raises SpillwayError if there are not so many, DriveFull if the drive has no clean flash
        left."""
        self._open()
        at_least = _whole(at_least, "at_least")
        if not 0 <= at_least <= self.in_flight:
            raise SpillwayError(f"wait for {at_least} I/Os: {self.in_flight} are in flight.")
        return self._send(at_least) if at_least else []

    def wait_all(self) -> list[Done]:
        """Waits for everything in flight. Raises as ``wait`` does."""
        return self.wait(self.in_flight)

    def work(self, for_ns: int) -> None:
        """The program does something else for so long; what is in flight goes on. Raises SpillwayError for a negative
        time."""
        self._open()
        for_ns = _whole(for_ns, "for_ns")
        if for_ns < 0:
            raise SpillwayError(f"work for {for_ns} ns: time does not go back.")
        if for_ns > MOST_WORK_NS:
            raise SpillwayError(f"work for {for_ns} ns: at most {MOST_WORK_NS} ns, a day, at a time.")
        if self._ops or self._spend_ns + for_ns > MOST_WORK_NS:
            self._send(0)
        self._spend_ns += for_ns

    @staticmethod
    def _io(io: tuple[str, int, int]) -> Io:
        """An I/O as the native side takes it; its numbers may be NumPy's."""
        try:
            op, offset, length = io
        except (TypeError, ValueError):
            raise SpillwayError(f"{io!r} is no I/O: it is (op, offset_bytes, length_bytes).") from None
        if op not in ("read", "write"):
            raise SpillwayError(f"{op!r} is no I/O: it is read or write.")
        return Io(op, _whole(offset, "offset_bytes"), _whole(length, "length_bytes"))

    def _check(self, io: Io) -> None:
        op, offset, length = io
        lba, capacity = self._ready["lba_bytes"], self._ready["size_bytes"]
        if offset % lba or length % lba or length <= 0 or offset < 0:
            raise SpillwayError(
                f"{op} of {length} bytes at byte {offset}: both must be multiples of the drive's {lba}-byte LBAs, "
                "and the length above 0."
            )
        if length > MOST_BYTES:
            raise SpillwayError(f"{op} of {length} bytes: one I/O has at most {MOST_BYTES} bytes.")
        if offset + length > capacity:
            raise SpillwayError(f"{op} of {length} bytes at byte {offset}: the drive ends at byte {capacity}.")

    def _send(self, at_least: int) -> list[Done]:
        """Sends what was said since the last time, in its order, and waits."""
        line: dict[str, Any] = {}
        if self._spend_ns:
            line["spend_ns"] = self._spend_ns
        if self._ops:
            same = len(set(self._lengths)) == 1
            lengths: Any = self._lengths[0] if same else self._lengths
            line["submit"] = {"op": "".join(self._ops), "offset_bytes": self._offsets, "length_bytes": lengths}
        if at_least:
            line["wait"] = at_least
        if not line:
            return []
        answer = self._open().ask(line, "completions")
        self._ops, self._offsets, self._lengths, self._spend_ns = [], [], [], 0
        self._now_ns, self._in_flight = answer["now_ns"], answer["in_flight"]
        return list(map(Done, answer["io"], answer["submitted_ns"], answer["completed_ns"]))

    def _known(self, name: str) -> Any:
        self._open()
        return self._ready[name]

    def _open(self) -> Conversation:
        if self._conversation is None:
            raise SpillwayError("The drive is not open: use it within its `with` block.")
        return self._conversation


def _whole(value: Any, name: str) -> int:
    """A whole number, which may be NumPy's. Raises SpillwayError for any other value."""
    try:
        if isinstance(value, bool):
            raise TypeError
        return index(value)
    except TypeError:
        raise SpillwayError(f"{name} is {value!r}; it takes a whole number.") from None
