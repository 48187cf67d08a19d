"""Where a sweep runs, as the command line says it."""

import os
from collections.abc import Sequence
from pathlib import Path

from spillway.errors import SpillwayError
from spillway.quantity import whole_number
from spillway.sweep.executor import Executor
from spillway.sweep.local import LocalProcesses
from spillway.sweep.order import Room

WHERE = ("local", "slurm", "ray", "ray:HOST:PORT", "submitit-local")
ENVIRONMENT = ("SPILLWAY_PRESETS", "SPILLWAY_NATIVE", "SPILLWAY_ENGINES")  # decide on what runs


def executor_on(where: str, out: Path, cells: int | None, slurm: Sequence[str] = ()) -> Executor:
    """The executor of ``--on``. ``cells``: most at once; None: the executor's own number. ``slurm``: parameters of
    submitit's as KEY=VALUE. Raises SpillwayError for an unknown one, and where what it needs is not there."""
    kind, _, address = where.partition(":")
    environment = {name: os.environ[name] for name in ENVIRONMENT if name in os.environ}
    cores = len(os.sched_getaffinity(0))
    if slurm and kind != "slurm":
        raise SpillwayError(f"--slurm {slurm[0]} is of --on slurm, and this is --on {where}: leave one of them out.")
    if where == "local":
        return LocalProcesses(cells, cores)
    if where in ("slurm", "submitit-local"):
        from spillway.sweep.on_submitit import MOST_QUEUED, Submitit

        if where == "slurm":
            room = Room(MOST_QUEUED if cells is None else cells)
            return Submitit("slurm", out, room, environment, dict(map(slurm_parameter, slurm)))
        return Submitit("local", out, Room(cores if cells is None else cells, cores), environment)
    if kind == "ray" and where != "ray:":
        from spillway.sweep.on_ray import RayCluster

        return RayCluster(address, cells, environment)
    raise SpillwayError(f"--on is {where!r}; it takes one of {', '.join(WHERE)}.")


def slurm_parameter(text: str) -> tuple[str, str | int]:
    """A parameter of submitit's. Raises SpillwayError for a text without a key."""
    key, is_there, value = text.partition("=")
    if not key or not is_there:
        raise SpillwayError(f"--slurm is {text!r}; it takes KEY=VALUE, such as partition=ssd.")
    number = whole_number(value)
    return key, value if number is None else number
