"""Has clang check which lock guards what, where native/ says so by the attributes of native/base/mutex.h.

    .venv/bin/python scripts/thread_safety.py [BUILD_DIRECTORY]

Looks at every translation unit of the build (build/ if none is given) that belongs to native/ and includes that header,
directly or not. A unit may hold several files, as CMake's unity builds do, so that headers are read once for all of
them. Exit code 1 where a guarded member is used without its lock; what clang says is printed.
"""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path

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


def units(build: Path, root: Path) -> Iterator[tuple[Path, list[str]]]:
    """Each unit that clang has to look at, and the command that does so."""
    for entry in json.loads((build / "compile_commands.json").read_text()):
        source = Path(entry["directory"], entry["file"]).resolve()
        if not any(source.is_relative_to(place / "native") for place in (root, build.resolve())):
            continue
        if source.suffix in (".cc", ".cxx") and reads_attributes(source, root):
            yield source, command_of(entry)


def command_of(entry: dict[str, str]) -> list[str]:
    """The compiler's command, for a clang that checks and makes nothing."""
    words = shlex.split(entry["command"])
    words = words[1 + next(at for at, word in enumerate(words) if not word.endswith("ccache")) :]
    kept: list[str] = []
    while words:
        word = words.pop(0)
        if word in ("-o", "-include"):
            value = words.pop(0)
            if word == "-include":
                kept += [part for header in headers_of(Path(value)) for part in (word, header)]
        elif word not in OF_GCC and not word.startswith("-W"):
            kept.append(word)
    return ["clang++", "-fsyntax-only", "-Wno-everything", "-Wthread-safety", "-Werror=thread-safety", *kept]


def headers_of(precompiled: Path) -> list[str]:
    """What CMake's list of headers to compile ahead names: clang reads the headers themselves."""
    return INCLUDE.findall(precompiled.read_text()) if precompiled.name == "cmake_pch.hxx" else [str(precompiled)]


def is_clean(command: list[str], directory: Path) -> bool:
    """Runs it; prints what clang complains of."""
    done = subprocess.run(command, cwd=directory, capture_output=True, text=True, check=False)
    sys.stderr.write(done.stderr)
    return done.returncode == 0


def main(build: Path = ROOT / "build", root: Path = ROOT) -> int:
    """The exit code."""
    if not (root / ATTRIBUTES).is_file():
        print(f"thread safety: there is no {ATTRIBUTES}; nothing to check")
        return 0
    if shutil.which("clang++") is None:
        print("thread safety: clang++ is missing; scripts/packages.sh lint installs it.", file=sys.stderr)
        return 2
    found = list(units(build, root))
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        clean = list(pool.map(lambda each: is_clean(each[1], build), found))
    print(f"thread safety: {len(clean)} translation units, {clean.count(False)} with findings")
    return 0 if all(clean) else 1


if __name__ == "__main__":
    sys.exit(main(*map(Path, sys.argv[1:])))
