"""Cells as tasks of a Ray cluster that is there already.

A cell takes whole cores (``num_cpus``). A paced one takes all cores of its node, so that nothing runs beside it. One on
a real drive takes also the whole of the custom resource ``drive:PATH`` of a node, where PATH is the drive's mount point
or a directory above the plan's ``drive.path``: the node was started with ``--resources='{"drive:PATH": 1}'``.

Ray's own retries are off: the sweep counts attempts.
"""

import socket
import time
from collections.abc import Mapping, Sequence
from contextlib import redirect_stdout, suppress
from io import StringIO
from pathlib import Path, PurePath
from typing import Any

from spillway.errors import SpillwayError
from spillway.quantity import whole_number
from spillway.sweep.cell import Cell
from spillway.sweep.executor import Unplaceable
from spillway.sweep.modules import module_of
from spillway.sweep.order import Room
from spillway.sweep.process import run_job

MOST_QUEUED = 256  # tasks at once, where --jobs does not say. Source: guess
REACHED_S = 5.0  # a cluster that is there answers sooner. Source: guess
CANCEL_S = 5.0  # a cancelled cell needs some time to end cleanly. Source: guess
LOOK_S = 2.0  # between two looks at which nodes are alive. Source: guess
DRIVE = "drive:"

Resources = Mapping[str, float]


def demand(cell: Cell, nodes: Sequence[Resources]) -> dict[str, float]:
    """The resources of a node that ``cell`` takes, by Ray's names; ``nodes``: those of each node that is alive. Raises
    Unplaceable where no node has them, SpillwayError where none has a core."""
    if not any(node.get("CPU", 0.0) >= 1.0 for node in nodes):
        raise SpillwayError("--on ray: no node of the Ray cluster has a core: start one that has.")
    own: dict[str, float] = {}
    able = list(nodes)
    if cell.drive:
        name = _drive_of(cell.drive, nodes)
        own, able = {name: 1.0}, [node for node in nodes if node.get(name, 0.0) >= 1.0]
    most = int(max((node.get("CPU", 0.0) for node in able), default=0.0))
    if most < cell.cores:
        raise Unplaceable(
            f"{cell.name}: no node of the Ray cluster has {cell.cores} {'core' if cell.cores == 1 else 'cores'}"
            f"{' and the drive' if cell.drive else ''}: start one that has, or give less with --cores."
        )
    return own | {"CPU": float(most if cell.paced else cell.cores)}


def _drive_of(path: str, nodes: Sequence[Resources]) -> str:
    """The resource of the drive that ``path`` is on: the one with the longest path above it."""
    names = {name for node in nodes for name in node if name.startswith(DRIVE)}
    above = [name for name in names if PurePath(path).is_relative_to(name.removeprefix(DRIVE))]
    if not above:
        raise Unplaceable(
            f"drive.path is {path!r}, and no node of the Ray cluster has a resource for that drive: start its node "
            f"with --resources='{{\"{DRIVE}{path}\": 1}}'."
        )
    return max(above, key=len)


def fits(wanted: Resources, nodes: Sequence[Resources]) -> bool:
    """Whether a node that is alive has, when it is free, what is ``wanted``."""
    return any(all(node.get(name, 0.0) >= amount for name, amount in wanted.items()) for node in nodes)


class RayFuture:
    """A task of Ray."""

    def __init__(self, ray: Any, reference: Any, wanted: Resources, cluster: "RayCluster") -> None:
        """Of a task that was submitted."""
        self._ray, self._reference, self._wanted, self._cluster = ray, reference, wanted, cluster
        self._result = reference.future()
        self._cancelled_s = float("-inf")
        self._lost = ""  # why it will have no result

    def done(self) -> bool:
        """Whether the task has ended, or no node is left that could run it."""
        if not self._lost and not self._result.done():
            try:
                if not fits(self._wanted, self._cluster.nodes()):
                    self._lost = "no node that is left in the Ray cluster has the cores and the drive that it takes"
            except SpillwayError as error:
                self._lost = str(error).rstrip(".")
            if self._lost:
                self.cancel()
        return bool(self._lost) or bool(self._result.done())

    def cancel(self) -> None:
        """Cancels the task; again after CANCEL_S, as one that was about to start may have missed it."""
        if time.monotonic() - self._cancelled_s > CANCEL_S:
            self._cancelled_s = time.monotonic()
            with suppress(Exception):  # a cluster that has gone
                self._ray.cancel(self._reference)

    def why(self) -> str:
        """What the task returned, or why it has no result."""
        if self._lost:
            return self._lost
        error = self._result.exception()
        if error is None:
            return str(self._result.result())
        return f"{type(error).__name__}: {_said(error).partition('. ')[0]}"


class RayCluster:
    """Submits each cell as a task."""

    poll_s = 0.1
    lag_s = 5.0  # NFS shows a file within 3 s of when its directory was read. Source: guess

    def __init__(self, address: str, cells: int | None, environment: Mapping[str, str]) -> None:
        """``address``: HOST:PORT of the cluster; "": the one that this machine is a node of. Raises SpillwayError where
        Ray is not installed or there is no such cluster."""
        ray = module_of("ray", _imported, "Ray", "--on ray", "ray")
        self._ray, self._environment = ray, dict(environment)
        self.room = Room(MOST_QUEUED if cells is None else cells)
        self._looked_s, self._nodes = float("-inf"), list[Resources]()
        if address:
            check_reachable(address)
        # Ray prints there what its nodes say, in a thread of its own; the command's result is to be alone on it.
        self._silence: redirect_stdout[StringIO] | None = redirect_stdout(StringIO())
        self._silence.__enter__()
        try:
            ray.init(address=address or "auto", log_to_driver=False, configure_logging=False)
        except Exception as error:  # Ray raises errors of many families here
            self.close()
            raise SpillwayError(
                f"--on ray: there is no Ray cluster to connect to{_at(address)}: {_said(error)}."
            ) from error
        self._task = ray.remote(max_retries=0)(run_job)

    def nodes(self) -> list[Resources]:
        """The resources of each node that is alive, at most LOOK_S old. Raises SpillwayError where the cluster does not
        answer."""
        if time.monotonic() - self._looked_s > LOOK_S:
            try:
                self._nodes = [node["Resources"] for node in self._ray.nodes() if node["Alive"]]
            except Exception as error:  # as above
                raise SpillwayError(f"--on ray: the cluster does not answer any more: {_said(error)}.") from error
            self._looked_s = time.monotonic()
        return self._nodes

    def submit(self, cell: Cell, job: Path) -> RayFuture:
        """Submits a task. Raises Unplaceable where no node can run it, SpillwayError where the cluster has gone."""
        wanted = demand(cell, self.nodes())
        custom = {name: amount for name, amount in wanted.items() if name != "CPU"}
        try:
            task = self._task.options(num_cpus=wanted["CPU"], resources=custom, name=f"spillway {cell.address}")
            reference = task.remote(str(job), self._environment)
        except Exception as error:  # as above
            raise SpillwayError(f"--on ray: the cluster does not take a task: {_said(error)}.") from error
        return RayFuture(self._ray, reference, wanted, self)

    def adopt(self, job: Path) -> None:
        """Nothing: Ray ends the tasks of a program that has gone."""

    def close(self) -> None:
        """Leaves the cluster, which ends the tasks of this program."""
        with suppress(Exception):  # a cluster that has gone
            self._ray.shutdown()
        if self._silence is not None:
            self._silence.__exit__(None, None, None)
            self._silence = None


def _imported() -> Any:
    import ray

    return ray


def check_reachable(address: str) -> None:
    """Ray waits for minutes for what does not answer. Raises SpillwayError."""
    host, _, text = address.rpartition(":")
    port = whole_number(text)
    if not host or port is None or "/" in host:
        raise SpillwayError(f"--on ray:{address}: an address is HOST:PORT, such as 10.0.0.1:6379.")
    try:
        socket.create_connection((host.strip("[]"), port), REACHED_S).close()
    except (OSError, OverflowError, UnicodeError) as error:  # UnicodeError: of a name that is none of a host
        why = str(getattr(error, "strerror", None) or error).lower()
        raise SpillwayError(f"--on ray: there is no Ray cluster at {address}: {why}.") from error


def _at(address: str) -> str:
    return f" at {address}" if address else ", and --on ray:HOST:PORT names none"


def _said(error: BaseException) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return (lines[0] if lines else type(error).__name__).rstrip(".")
