"""One run of a buffer pool: its request, and the target that it runs on."""

import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from spillway.errors import Interrupted, SpillwayError
from spillway.native.process import Event, run_native
from spillway.profile.target import Scaled, Target, scaled
from spillway.rundir.stage import explained

Document = dict[str, Any]
Watch = Callable[[str, Event], None]

TEST_FILE_BYTES = 2**30
VIRTUAL_OPERATIONS, REAL_OPERATIONS = 100_000, 10_000
# Kinds of writers → in words.
WRITERS = {
    "queue": "from one queue",
    "threads": "by a waiting thread for each page",
    "new-threads": "by a new thread for each page",
}


@dataclass(frozen=True)
class Workload:
    """The pool and its trace. ``prefetch`` is n_e - 1; ``operations`` of None: by the target's kind."""

    pool_pages: int = 4096
    page_bytes: int = 4096
    policy: str = "clock-sweep"
    name: str = "uniform"
    theta: float = 0.99
    trace: Path | None = None
    read_fraction: float = 0.5
    pages: int | None = None
    prefetch: int = 0
    operations: int | None = None


@dataclass(frozen=True)
class WriteBack:
    """How many pages a pool writes back at once: ``pages``; with ``most`` it starts there and tunes itself, up to
    that."""

    pages: int
    most: int | None = None

    def __str__(self) -> str:
        """For progress."""
        return f"n_w = {self.pages}" if self.most is None else "n_w tuned"


# Keys of a request, and the flag that each is set by.
FLAGS = {
    "pool.pages": "--pool-pages",
    "pool.page_bytes": "--page-bytes",
    "pool.policy": "--policy",
    "pool.write_back": "--write-back",
    "pool.writers": "--writers",
    "pool.prefetch": "--prefetch",
    "workload.name": "--workload",
    "workload.pages": "--pages",
    "workload.trace": "--trace",
    "workload.operations": "--operations",
    "workload.read_fraction": "--read-fraction",
    "workload.theta": "--theta",
}


def request(
    target: Document,
    workload: Workload,
    write_back: WriteBack,
    seed: int,
    operations: int | None,
    writers: str = "queue",
) -> Document:
    """The request of `bufferpool`; ``target`` as the contract has it."""
    place: Document = {"name": "trace", "trace": str(workload.trace)} if workload.trace else {"name": workload.name}
    # What is read at once takes the room of what was written at once.
    prefetch = min(workload.prefetch, (write_back.most or write_back.pages) - 1)
    return {
        "seed": seed,
        "target": target,
        "pool": {
            "pages": workload.pool_pages,
            "page_bytes": workload.page_bytes,
            "policy": workload.policy,
            "write_back": max(write_back.pages, prefetch + 1),
            "tune": None if write_back.most is None else {"most": write_back.most},
            "writers": writers,
            "prefetch": prefetch,
        },
        "workload": place
        | {
            "read_fraction": workload.read_fraction,
            "theta": workload.theta,
            "pages": workload.pages,
            "warmup_operations": None,
            "operations": operations,
        },
    }


def check(workload: Workload) -> None:
    """Raises SpillwayError for what the native side would say in keys that no flag has."""
    if workload.trace is not None and not workload.trace.is_file():
        raise SpillwayError(f"--trace {workload.trace}: there is no such file; its lines are r PAGE and w PAGE.")
    if workload.prefetch >= workload.pool_pages:
        raise SpillwayError(
            f"--prefetch is {workload.prefetch} and --pool-pages {workload.pool_pages}: "
            "what is read along must fit beside the page that was missed."
        )


@dataclass(frozen=True)
class Opened:
    """A target as a request names it, good for several runs."""

    target: Document
    operations: int


@contextmanager
def opened(target: Target, small: Scaled | None) -> Iterator[Opened]:
    """``target``, scaled as ``small`` says. A directory gets one test file for all runs, which is gone afterwards.

    Raises SpillwayError where that cannot be made.
    """
    if small is not None:
        emulated: Document = target.request(1, "steady", small.settings)["target"]
        yield Opened(emulated, REAL_OPERATIONS if target.real_time else VIRTUAL_OPERATIONS)
    elif target.kind != "directory":
        yield Opened(target.request(1, "steady", {})["target"], REAL_OPERATIONS)
    else:
        assert target.path is not None
        with _test_file(target.path) as path:
            yield Opened({"kind": "file", "path": str(path), "destroy_data": True}, REAL_OPERATIONS)


@contextmanager
def _test_file(directory: Path) -> Iterator[Path]:
    with explained(directory), tempfile.NamedTemporaryFile(dir=directory, prefix=".spillway-pool-") as file:
        for _ in range(TEST_FILE_BYTES // 2**20):
            file.write(os.urandom(2**20))
        file.flush()
        os.fsync(file.fileno())
        yield Path(file.name)


def run(
    place: Opened, workload: Workload, write_back: WriteBack, seed: int, watch: Watch | None, writers: str
) -> Event:
    """Runs the pool once on a target that is open; returns the ``result`` of the native side. Raises SpillwayError,
    also where the drive was never needed, and Interrupted after a Ctrl-C."""
    operations = workload.operations
    if operations is None and workload.trace is None:
        operations = place.operations
    wanted = request(place.target, workload, write_back, seed, operations, writers)
    on_event = None if watch is None else lambda event: watch(f"{write_back}, {writers}", event)
    result = run_native("bufferpool", wanted, on_event)
    if not result["complete"]:
        raise Interrupted("spillway-native bufferpool was ended before it had measured enough.")
    if not result["seconds"]:
        raise SpillwayError(
            "The pool never went to the drive: the trace fits in it; make --pool-pages smaller or --pages larger."
        )
    return result


def run_once(
    target: Target,
    workload: Workload,
    write_back: WriteBack,
    seed: int,
    watch: Watch | None = None,
    writers: str = "queue",
) -> Event:
    """Runs one pool once on one target; returns the ``result`` of the native side. Raises as ``run`` does."""
    check(workload)
    if write_back.most is None and 0 < workload.prefetch >= write_back.pages:
        raise SpillwayError(
            f"--prefetch is {workload.prefetch} and --write-back {write_back.pages}: room for what is read along comes "
            "from what is written back, so it takes less than that."
        )
    small = scaled(target) if target.emulated else None
    with opened(target, small) as place:
        return run(place, workload, write_back, seed, watch, writers)
