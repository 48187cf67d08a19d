"""Where drives come from: the preset files of this installation.

Their keys are parsed and checked by ``spillway-native``; here they are only found and listed.
"""

import os
import tomllib
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from spillway import toml
from spillway.errors import SpillwayError
from spillway.quantity import nearest


@dataclass(frozen=True)
class Preset:
    """A drive by name, and its one line about itself."""

    name: str
    summary: str
    path: Path


def preset_dirs() -> list[Path]:
    """$SPILLWAY_PRESETS (colon-separated) first, then the installation's own."""
    dirs = [Path(part) for part in os.environ.get("SPILLWAY_PRESETS", "").split(":") if part]
    package = Path(__file__).parent
    # A wheel carries the presets inside the package; a checkout has them beside it.
    dirs += [found for found in (package / "presets", package.parent / "presets") if found.is_dir()]
    return dirs


def presets() -> list[Preset]:
    """Every preset, by name; of several with one name the first directory's counts."""
    found: dict[str, Preset] = {}
    for directory in preset_dirs():
        for path in sorted(directory.glob("*.toml")):
            if path.stem not in found:
                found[path.stem] = Preset(
                    path.stem, _summary(path, path.stat().st_mtime_ns if path.exists() else 0), path
                )
    return [found[name] for name in sorted(found)]


@cache
def _summary(path: Path, changed_ns: int) -> str:
    """Read once for each state of the file: a plan with hundreds of runs asks for every one of them."""
    try:
        document = toml.loads(path.read_text(encoding="utf-8"))
    except (OSError, tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        return f"cannot be read: {error}"
    return str(document.get("summary", ""))


def check_preset(name: str, where: str) -> None:
    """Refuses a name that no preset has, with the nearest that one has; ``where`` names the flag or key."""
    names = [preset.name for preset in presets()]
    if name not in names:
        raise SpillwayError(
            f"{where}: among the presets (`spillway ssd presets`) there is none called {name!r}{nearest(name, names)}"
        )
