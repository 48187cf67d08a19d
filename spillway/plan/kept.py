"""Databases and drives that are kept from one run to the next, by name.

A kept state is a directory below the *place*, made and read by ``spillway-native`` (``native/tool/run/kept_state.h``):
a drive as a run has left it with the databases on it, or of a plain directory a database. ``kept.from`` names the one
that a run starts from, ``kept.to`` the one that takes what it leaves; a run works on a copy, and a state is replaced
whole, when the run has ended well.

A plan's ``[[prepare]]`` are runs that are there for what they leave. Each is run once before the plan's arms, and not
again while the state is there as the same preparation by the same ``spillway-native`` has made it.
"""

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from spillway.errors import SpillwayError
from spillway.quantity import human_bytes

Document = dict[str, Any]

PLACE = Path("runs") / "kept"  # where states lie if nothing else is said
TAKES = ("database", "files", "drive")
LONGEST_NAME = 200  # of the 255 bytes that file systems take
_NAME = re.compile(rf"[A-Za-z0-9_-][A-Za-z0-9._-]{{0,{LONGEST_NAME - 1}}}")


class Run(Protocol):
    """What a plan says of one run."""

    @property
    def name(self) -> str: ...  # noqa: D102
    @property
    def settings(self) -> Mapping[str, Any]: ...  # noqa: D102


def named(settings: Mapping[str, Any], options: Mapping[str, str], label: str) -> Document:
    """``kept.from``, ``kept.to`` and ``kept.database`` with ``{KEY}`` replaced by what the run has for that key of a
    plan, such as ``aged-{drive.preset}``. Raises SpillwayError for an unknown key and for what names no directory."""
    names: Document = {}
    for key in ("kept.from", "kept.to", "kept.database"):
        text = settings[key]

        def value(match: re.Match[str], key: str = key, text: str = text) -> str:
            found = settings.get(match[1], options.get(match[1].removeprefix("engine.options.")))
            if found in (None, ""):
                raise SpillwayError(f"{label}{key} is {text!r}, and the plan gives no {match[1]}; name a key it gives.")
            return str(found)

        name = re.sub(r"\{([^{}]*)\}", value, text)
        if (name or key == "kept.database") and not _NAME.fullmatch(name):
            raise SpillwayError(
                f"{label}{key} is {name!r}; a name has letters, digits, ., _ and - only, {LONGEST_NAME} at most."
            )
        names[key] = name
    return names


def check(settings: Mapping[str, Any], has_estimate: bool, label: str) -> None:
    """The relations of the keys ``kept.*`` to each other and to the drive. Raises SpillwayError."""
    starts, keeps = settings["kept.from"], settings["kept.to"]
    if settings["drive.kind"] == "directory" and settings["kept.takes"] != "database":
        raise SpillwayError(
            f"{label}kept.takes is {settings['kept.takes']!r}, but a plain directory has a database and no drive: "
            "leave it out."
        )
    if not starts and not keeps:
        return
    if has_estimate:
        raise SpillwayError(
            f"{label}kept: a drive model that only watches is not kept; leave out drive.estimate or kept."
        )


def continues_database(settings: Mapping[str, Any]) -> bool:
    """Whether the run goes on with a database, so that there is something in it to read."""
    return bool(settings["kept.from"]) and settings["kept.takes"] == "database"


def place_of(run: Run, place: Path) -> Path:
    """Where the run's states lie: ``kept.directory``, else ``place``."""
    return Path(run.settings["kept.directory"]) if run.settings["kept.directory"] else place


def request(run: Run, place: Path, note: Document) -> Document:
    """The part ``kept`` of the contract's request; empty where nothing is kept. ``note`` is kept with the state."""
    get, where = run.settings, place_of(run, place)
    if not get["kept.from"] and not get["kept.to"]:
        return {}
    ends = {end: str((where / get[f"kept.{end}"]).absolute()) for end in ("from", "to") if get[f"kept.{end}"]}
    return {"kept": {**ends, "takes": get["kept.takes"], "database": get["kept.database"], "note": note}}


def check_there(preparations: Sequence[Run], runs: Sequence[Run], place: Path) -> None:
    """Raises SpillwayError where a run starts from a state that is not in ``place`` and that no preparation or earlier
    run leaves."""
    made: set[Path] = set()
    for run in [*preparations, *runs]:
        get, where = run.settings, place_of(run, place)
        if get["kept.from"] and where / get["kept.from"] not in made and not (where / get["kept.from"]).is_dir():
            known = sorted(path.parent.name for path in where.glob("*/kept.json"))
            there = f"; there are: {', '.join(known)}" if known else ""
            raise SpillwayError(
                f"{run.name}: kept.from names {get['kept.from']}, and there is no such state in {where}{there}: keep "
                "it there first, by a run with kept.to or a [[prepare]]."
            )
        if get["kept.to"]:
            made.add(where / get["kept.to"])


def fingerprint(run: Run, request: Document, place: Path, executable: str, inputs: str) -> str:
    """SHA-256 of what decides on the state that a preparation leaves: its request, its files (``inputs``, a digest),
    the state it starts from, and spillway-native (``executable``, a digest)."""
    asked = {key: value for key, value in request.items() if key not in ("directory", "kept")}
    start = read_state(place_of(run, place) / run.settings["kept.from"]) if run.settings["kept.from"] else None
    whole = {
        "request": asked,
        "takes": run.settings["kept.takes"],
        "database": run.settings["kept.database"],
        "from": start and start.get("note"),
        "executable": executable,
        "inputs": inputs,
    }
    return hashlib.sha256(json.dumps(whole, sort_keys=True).encode()).hexdigest()


def read_state(directory: Path) -> Document | None:
    """What a state says of itself; None where there is none or it cannot be read, which the native side explains."""
    try:
        document = json.loads((directory / "kept.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return document if isinstance(document, dict) else None


def was_prepared_by(directory: Path, preparation: str) -> Document | None:
    """The state in ``directory`` if the preparation with this fingerprint has made it, else None."""
    state = read_state(directory)
    note = state.get("note") if state is not None else None
    return state if isinstance(note, dict) and note.get("preparation") == preparation else None


def in_words(start: Document) -> str:
    """What a run started from, to follow the drive's name: ``kept "NAME", …``."""
    name, runs = Path(start["path"]).name, start["runs"]
    parts = [f"as “{name}” left it after {runs} {'run' if runs == 1 else 'runs'} ({human_bytes(start['bytes'])} kept"]
    drive = start["drive"]
    if drive and drive["host_bytes_written"]:
        ratio = drive["nand_bytes_programmed"] / drive["host_bytes_written"]
        parts[0] += f", {human_bytes(drive['host_bytes_written'])} written to it in all at wa_device {ratio:.2f}"
        parts[0] += f", {drive['mapped_share']:.0%} of it mapped"
    parts[0] += ")"
    count = len(start["databases"])
    others = f"{count} {'database' if count == 1 else 'databases'}"
    if start["takes"] == "database":
        own = start["database"]
        parts.append(f"going on with its database “{own['name']}” of {human_bytes(own['live_user_bytes'])}")
    elif start["takes"] == "files":
        parts.append(f"beside {others}")
    else:
        parts.append(f"its {others} deleted")
    return ", ".join(parts)
