"""Where drives come from: the preset files of this installation.

Their keys are parsed and checked by ``spillway-native``; here they are only found and listed.
"""

import os
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from spillway import toml
from spillway.errors import SpillwayError
from spillway.quantity import nearest, parse_size

Document = dict[str, Any]


@dataclass(frozen=True)
class Traits:
    """The properties of a drive that decide which keys of a plan have an effect."""

    is_disk: bool
    compresses: bool


# The key that makes a drive a disk, and the one that makes its controller compress, where they are not 0
# (native/device/preset/drive_layers.h, native/ssd/interface/config.h).
_OF_DISKS, _OF_COMPRESSION = "disk.revolution_ns", "compression.granule_bytes"
_SPARE_KEYS = {"capacity.spare_factor", "capacity.over_provisioning"}  # two names for one thing


@dataclass(frozen=True)
class Preset:
    """A drive by name, and its one line about itself."""

    name: str
    summary: str
    path: Path


def preset_dirs() -> list[Path]:
    """$SPILLWAY_PRESETS (colon-separated) first, then the installation's own."""
    dirs = [Path(part) for part in os.environ.get("SPILLWAY_PRESETS", "").split(":") if part]
    package = Path(__file__).parents[1]
    # A wheel carries the presets inside the package; a checkout has them beside it.
    dirs += [found for found in (package / "presets", package.parent / "presets") if found.is_dir()]
    return dirs


def presets() -> list[Preset]:
    """Every preset, by name; of several with one name the first directory's counts."""
    found: dict[str, Preset] = {}
    for directory in preset_dirs():
        for path in sorted(directory.glob("*.toml")):
            if path.stem not in found:
                document = _document(path)
                about = document if isinstance(document, str) else str(document.get("summary", ""))
                found[path.stem] = Preset(path.stem, about, path)
    return [found[name] for name in sorted(found)]


def _document(path: Path) -> Document | str:
    """What a preset's file says, unchecked; where it cannot be read, why."""
    try:
        return _read(path, path.stat().st_mtime_ns)
    except OSError as error:
        return f"cannot be read: {error}"


@cache
def _read(path: Path, changed_ns: int) -> Document | str:
    """Once for each state of the file: a plan with hundreds of runs asks for every one of them."""
    try:
        return toml.loads(path.read_text(encoding="utf-8"))
    except (OSError, tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        return f"cannot be read: {error}"


def _table(path: Path | None, name: str) -> Document | None:
    """A table of a preset's file, empty where it has none; None where the file cannot be read, of which the native side
    says what is wrong."""
    document = "" if path is None else _document(path)
    if isinstance(document, str):
        return None
    table = document.get(name)
    return table if isinstance(table, dict) else {}


def check_preset(name: str, where: str) -> None:
    """Raises SpillwayError for a name that no preset has, with the nearest that one has; ``where`` names the flag or
    key."""
    names = [preset.name for preset in presets()]
    if name not in names:
        raise SpillwayError(
            f"{where}: among the presets (`spillway ssd presets`) there is none called {name!r}{nearest(name, names)}"
        )


def preset_path(name: str, file: str | Path | None = None) -> Path | None:
    """The file of a drive that is named by its file, or by its preset's name; None where it is neither."""
    return Path(file) if file else next((preset.path for preset in presets() if preset.name == name), None)


def whole_drive(path: Path | None, settings: Mapping[str, str]) -> tuple[int | None, float | None]:
    """(logical capacity, flash) in bytes of a preset's drive; None: not known. Flash is without what whole erase blocks
    add. ``settings``: keys that are set over the preset.

    T = U / (1 - spare_factor) or U * (1 + over_provisioning), by the settings or else the preset. Raises SpillwayError
    for a capacity that is no size.
    """
    stated = _table(path, "capacity") or {}
    if stated.get("capacity_bytes") is None:
        return None, None
    logical = parse_size(stated["capacity_bytes"], "the preset's capacity.capacity_bytes")
    in_preset = {f"capacity.{key}": value for key, value in stated.items()}
    table = next((each for each in (settings, in_preset) if set(each) & _SPARE_KEYS), {})
    key, text = next(((key, value) for key, value in table.items() if key in _SPARE_KEYS), ("", ""))
    return logical, _physical_bytes(logical, key, text)


def _physical_bytes(logical: int, key: str, text: Any) -> float | None:
    try:
        share = float(text)
    except (TypeError, ValueError):
        return None  # the native side says what is wrong with it
    if key == "capacity.over_provisioning":
        return logical * (1 + share) if share >= 0 else None
    return logical / (1 - share) if 0 <= share < 1 else None


def traits(path: Path | None, settings: Mapping[str, Any]) -> Traits | None:
    """Of the drive that a preset's file describes; None where it cannot be read. ``settings``: dotted keys that are set
    over the preset."""
    has = {}
    for key in (_OF_DISKS, _OF_COMPRESSION):
        name, _, inner = key.partition(".")
        table = _table(path, name)
        if table is None:
            return None
        has[key] = settings.get(key, table.get(inner)) not in (None, 0, "0")
    return Traits(has[_OF_DISKS], has[_OF_COMPRESSION])
