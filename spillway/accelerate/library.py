"""The library that is preloaded, and the environment of a program that it accelerates."""

import os
import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from spillway.errors import SpillwayError
from spillway.plan.keys import ARM_KEYS, Key
from spillway.quantity import nearest

LIBRARY = "libspillway-accelerate.so"
_SEPARATORS = " :"  # of the files in LD_PRELOAD
_PREFIX = "engine.spill."
# A plan's keys of the accelerator. The store is a plan's alone: a program of somebody else's has files.
KEYS: dict[str, Key] = {
    key.removeprefix(_PREFIX): what
    for key, what in ARM_KEYS.items()
    if key.startswith(_PREFIX) and key != f"{_PREFIX}store"
}


def find_library() -> Path:
    """The library: $SPILLWAY_ACCELERATE, else in the interpreter's prefix, or in a checkout's build/. Raises
    SpillwayError where there is none."""
    named = os.environ.get("SPILLWAY_ACCELERATE")
    if named:
        if not Path(named).is_file():
            raise SpillwayError(f"SPILLWAY_ACCELERATE is {named!r}, which is not a file; mend or unset it.")
        return Path(named).resolve()
    checkout = Path(__file__).parents[2]
    for directory in (Path(sys.prefix) / "lib", checkout / "build" / "native" / "accelerate"):
        if (directory / LIBRARY).is_file():
            return (directory / LIBRARY).resolve()
    raise SpillwayError(
        f"{LIBRARY} was not found in {Path(sys.prefix) / 'lib'} or in build/: build it with `make accelerate`, or name "
        "it in SPILLWAY_ACCELERATE."
    )


def configuration_text(settings: Sequence[str]) -> str:
    """``KEY=VALUE`` words as the variable SPILLWAY has them. Raises SpillwayError: an unknown key, a wrong value."""
    values: dict[str, str] = {}
    for word in settings:
        key, equals, value = word.partition("=")
        if not equals:
            raise SpillwayError(f"{word!r} is not of the form KEY=VALUE.")
        if key not in KEYS:
            raise SpillwayError(f"there is no key {key!r}{nearest(key, KEYS)}")
        KEYS[key].check(_value_of(key, value), key)
        values[key] = value
    return ";".join(f"{key}={value}" for key, value in values.items())


def _value_of(key: str, text: str) -> str | int | float:
    """As TOML would have it: sizes and words are texts, the others numbers. A text that is no number stays one, and
    the key's check refuses it."""
    if isinstance(KEYS[key].default, str):
        return text
    try:
        return float(text) if isinstance(KEYS[key].default, float) else int(text)
    except ValueError:
        return text


def environment(library: Path, configuration: str, base: Mapping[str, str]) -> dict[str, str]:
    """The environment of a program with the accelerator. What ``base`` preloads stays, behind the accelerator. Raises
    SpillwayError for a path that LD_PRELOAD cannot name."""
    if any(separator in str(library) for separator in _SEPARATORS):
        raise SpillwayError(
            f"LD_PRELOAD cannot name {str(library)!r}, because it separates files by spaces and colons: put the "
            "library and libspillway-accelerator.so in another directory, and name it in SPILLWAY_ACCELERATE."
        )
    before = base.get("LD_PRELOAD", "")
    preload = f"{library}:{before}" if before else str(library)
    return {**base, "LD_PRELOAD": preload, **({"SPILLWAY": configuration} if configuration else {})}


def environment_without(base: Mapping[str, str]) -> dict[str, str]:
    """The environment of a program without the accelerator, where ``base`` preloads it, too."""
    preloaded = re.split(f"[{_SEPARATORS}]+", base.get("LD_PRELOAD", ""))
    others = ":".join(file for file in preloaded if file and Path(file).name != LIBRARY)
    rest = {name: value for name, value in base.items() if name != "LD_PRELOAD"}
    return {**rest, "LD_PRELOAD": others} if others else rest
