"""Cells: a plan in parts that any machine can run, each named by what decides on its result.

A cell is an arm of a plan, at one point of its sweep, with one seed. An arm that starts from what a ``[[prepare]]``
leaves is one cell with all its seeds, since a preparation runs with the first of them.

The *address* of a cell is a SHA-256 over its resolved settings and requests, the contents of the files that these name
(preset, state of a drive, times of arrival), the kept state that it starts from, spillway-native, and this package's
version and code, as far as that makes a result (``code.py``). Names of arms and the directories in which files lie are
not part of it. So cells with one address have one result, and it is run once.
"""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from spillway.errors import SpillwayError
from spillway.native.process import build_sha256
from spillway.plan import inputs, kept
from spillway.plan.arm import Arm, run_label
from spillway.plan.document import Plan
from spillway.sweep.code import code_sha256
from spillway.version import __version__

Document = dict[str, Any]

ADDRESS_VERSION = 2  # part of each address: another one where the meaning of an address changes
ADDRESS_DIGITS = 20  # hexadecimal: with a million cells two are alike by chance once in 10^12 times

FILES = ("drive.preset_file", "drive.estimate.preset_file", "initial.path")  # their contents are digested
PLACES = ("data_directory", "kept.directory")  # have no influence on a result


@dataclass(frozen=True)
class Cell:
    """A part of a plan that runs as one piece of work."""

    name: str  # for people: the arm, its point, and which repetition it is
    plan: Plan  # with one arm
    repetition: int  # of its first seed, from 0
    address: str
    cores: int  # that it takes of a machine
    paced: bool  # it runs in real time, so that whatever runs beside it on a machine changes its result
    drive: str  # the path on a real drive that it runs on; "" on an emulated one
    states: frozenset[str]  # kept states that its preparations make

    @property
    def arm(self) -> Arm:
        """The arm that it runs."""
        return self.plan.arms[0]


def cells_of(plan: Plan, place: Path, cores: int = 1) -> list[Cell]:
    """The cells of ``plan`` in the order in which ``spillway run`` would run them; ``cores``: of a machine, for each.
    ``place``: where kept states lie. Raises SpillwayError where an arm starts from a state that is not there, or saves
    one: later arms may start from it, so that the order of its runs counts."""
    for arm in plan.arms:
        if arm.settings["kept.to"]:
            raise SpillwayError(
                f"{plan.path}: {arm.name}: kept.to saves what an arm leaves, and cells run in any order: "
                "make the state in a [[prepare]], or use `spillway run`."
            )
    kept.check_there(plan.preparations, plan.arms, place)
    together = [(0, plan.seeds)] if plan.preparations else [(at, [seed]) for at, seed in enumerate(plan.seeds)]
    return [_cell(plan, arm, repetition, seeds, place, cores) for repetition, seeds in together for arm in plan.arms]


def _cell(plan: Plan, arm: Arm, repetition: int, seeds: Sequence[int], place: Path, cores: int) -> Cell:
    own = replace(plan, arms=[arm], seeds=list(seeds), preparations=_leading_to(arm, plan.preparations))
    runs = [*own.preparations, arm]
    alone = len(seeds) == len(plan.seeds)
    return Cell(
        run_label(arm.name, repetition, 1 if alone else len(plan.seeds)),
        own,
        repetition,
        address_of(own, place),
        cores,
        any(is_paced(each) for each in runs),
        next((str(each.settings["drive.path"]) for each in runs if each.settings["drive.kind"] == "directory"), ""),
        frozenset(str(kept.place_of(each, place) / each.settings["kept.to"]) for each in own.preparations),
    )


def is_paced(run: Arm) -> bool:
    """Whether a run goes by the clock of the machine: on a real drive, or on an emulated one in real time."""
    return bool(run.settings["drive.kind"] == "directory" or run.settings["drive.pacing"] == "real")


def _leading_to(arm: Arm, preparations: Sequence[Arm]) -> list[Arm]:
    """The preparations of the state that ``arm`` starts from, in their order."""
    needed, found = arm.settings["kept.from"], []
    for each in reversed(preparations):  # a state is made after the one that it starts from
        if needed and each.settings["kept.to"] == needed:
            found.append(each)
            needed = each.settings["kept.from"]
    return found[::-1]


def address_of(plan: Plan, place: Path) -> str:
    """The address of the cell that ``plan`` is, in hexadecimal. Raises SpillwayError where there is no spillway-native.

    REQUIRES: ``plan`` has one arm.
    """
    runs = [*plan.preparations, *plan.arms]
    decides = {
        "version": ADDRESS_VERSION,
        "seeds": plan.seeds,
        "runs": [_resolved(each, plan.seeds[0]) for each in runs],
        "inputs": inputs.sha256_of(runs),
        "start": _start(plan, place),
        "spillway": __version__,
        "code": code_sha256(),
        "build": build_sha256(),
    }
    return hashlib.sha256(json.dumps(decides, sort_keys=True).encode()).hexdigest()[:ADDRESS_DIGITS]


def _resolved(run: Arm, seed: int) -> Document:
    """All that a plan says of a run, and the request that it becomes, without where anything lies."""
    settings = run.settings | {key: Path(run.settings[key]).name for key in FILES} | dict.fromkeys(PLACES, "")
    phases = [each | {"arrivals_file": _name(each["arrivals_file"])} for each in run.phases]
    placeless = replace(run, settings=settings, phases=phases)
    request = placeless.request(Path(), seed)
    for of in (request["target"], request["target"].get("estimate", {})):
        of.get("drive", {}).pop("preset_dirs", None)
    return {"settings": placeless.document(), "request": request}


def _name(path: str | None) -> str | None:
    return Path(path).name if path else path


def _start(plan: Plan, place: Path) -> Document | None:
    """The kept state that the cell starts from, where no preparation of its own makes that."""
    run = (plan.preparations or plan.arms)[0]
    if not run.settings["kept.from"]:
        return None
    state = kept.read_state(kept.place_of(run, place) / run.settings["kept.from"]) or {}
    return {key: state.get(key) for key in ("note", "runs", "bytes", "drive_state")}
