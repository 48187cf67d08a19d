"""Has clang check which lock guards what, where native/ says so by the attributes of native/base/mutex.h.

    .venv/bin/python scripts/thread_safety.py [BUILD_DIRECTORY]

Looks at every translation unit of the build (build/ if none is given) that belongs to native/ and includes that header,
directly or not. Headers are read once for several files: a unit may hold several, as CMake's unity builds do, and clang
too compiles ahead what a target of several units has compiled ahead. Exit code 1 where a guarded member is used without
its lock; what clang says is printed.
"""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from tempfile import TemporaryDirectory

ROOT = Path(__file__).resolve().parents[1]
ATTRIBUTES = "native/base/mutex.h"
INCLUDE = re.compile(r'^\s*#\s*include\s+["<]([^">]+)[">]', re.MULTILINE)
# They go with headers that gcc has compiled, which clang cannot read.
OF_GCC = {"-Winvalid-pch", "-fpch-preprocess"}


def reads_attributes(source: Path, root: Path) -> bool:
    """Whether the file includes native/base/mutex.h, directly or through files of ours."""
    places = [root / "native", root / "native" / "spill" / "include"]
    header = (root / ATTRIBUTES).resolve()

    @cache
    def includes(path: Path) -> list[Path]:
        found = []
        for name in INCLUDE.findall(path.read_text(encoding="utf-8", errors="replace")):
            candidates = [path.parent / name, *(place / name for place in places)]
            found += [each.resolve() for each in candidates if each.is_file()]
        return found

    seen, waiting = set(), [source.resolve()]
    while waiting:
        path = waiting.pop()
        if path not in seen:
            seen.add(path)
            waiting += includes(path)
    return header in seen


@dataclass(frozen=True)
class Flags:
    """What clang has to be told for every unit of a target."""

    words: tuple[str, ...]
    headers: Path | None  # CMake's list of those to compile ahead


@dataclass(frozen=True)
class Unit:
    """A translation unit that clang has to look at."""

    source: Path
    flags: Flags


def units(build: Path, root: Path) -> Iterator[Unit]:
    """Each unit that clang has to look at."""
    for entry in json.loads((build / "compile_commands.json").read_text()):
        source = Path(entry["directory"], entry["file"]).resolve()
        if not any(source.is_relative_to(place / "native") for place in (root, build.resolve())):
            continue
        if source.suffix in (".cc", ".cxx") and reads_attributes(source, root):
            yield Unit(source, flags_of(entry))


def flags_of(entry: dict[str, str]) -> Flags:
    """The compiler's flags, for a clang that checks and makes nothing."""
    words = shlex.split(entry["command"])
    words = words[1 + next(at for at, word in enumerate(words) if not word.endswith("ccache")) :]
    kept: list[str] = []
    headers = None
    while words:
        word = words.pop(0)
        if word in ("-o", "-c"):
            words.pop(0)
        elif word == "-include":
            headers = Path(words.pop(0))
        elif word not in OF_GCC and not word.startswith("-W"):
            kept.append(word)
    return Flags(tuple(kept), headers)


def headers_of(precompiled: Path) -> list[str]:
    """What CMake's list of headers to compile ahead names: clang reads the headers themselves."""
    return INCLUDE.findall(precompiled.read_text()) if precompiled.name == "cmake_pch.hxx" else [str(precompiled)]


def precompile(flags: Flags, made: Path, directory: Path) -> list[str]:
    """Compiles a target's headers ahead; the words that include them. Where clang cannot, the units will say why."""
    assert flags.headers is not None
    command = ["clang++", "-Wno-everything", *flags.words, "-x", "c++-header", str(flags.headers), "-o", str(made)]
    done = subprocess.run(command, cwd=directory, capture_output=True, check=False)
    return ["-include-pch", str(made)] if done.returncode == 0 else include(flags)


def include(flags: Flags) -> list[str]:
    """What includes the headers of a target, each by itself."""
    return [part for header in headers_of(flags.headers) for part in ("-include", header)] if flags.headers else []


def is_clean(unit: Unit, included: list[str], directory: Path) -> bool:
    """Runs clang; prints what it complains of."""
    command = ["clang++", "-fsyntax-only", "-Wno-everything", "-Wthread-safety", "-Werror=thread-safety"]
    command += [*unit.flags.words, *included, "-c", str(unit.source)]
    done = subprocess.run(command, cwd=directory, capture_output=True, text=True, check=False)
    sys.stderr.write(done.stderr)
    return done.returncode == 0


def check(found: list[Unit], directory: Path) -> list[bool]:
    """Whether each unit is clean."""
    targets = Counter(unit.flags for unit in found)
    several = [flags for flags, count in targets.items() if flags.headers and count > 1]
    with TemporaryDirectory() as scratch, ThreadPoolExecutor(os.cpu_count()) as pool:
        included = {flags: include(flags) for flags in targets}
        places = [Path(scratch, f"{number}.pch") for number in range(len(several))]
        included |= zip(several, pool.map(partial(precompile, directory=directory), several, places), strict=True)
        return list(pool.map(lambda unit: is_clean(unit, included[unit.flags], directory), found))


def main(build: Path = ROOT / "build", root: Path = ROOT) -> int:
    """The exit code."""
    if not (root / ATTRIBUTES).is_file():
        print(f"thread safety: there is no {ATTRIBUTES}; nothing to check")
        return 0
    if shutil.which("clang++") is None:
        print("thread safety: clang++ is missing; scripts/packages.sh lint installs it.", file=sys.stderr)
        return 2
    found = list(units(build, root))
    clean = check(found, build)
    print(f"thread safety: {len(clean)} translation units, {clean.count(False)} with findings")
    return 0 if all(clean) else 1


if __name__ == "__main__":
    sys.exit(main(*map(Path, sys.argv[1:])))
