"""`make lint` finds what is used without its lock, and only looks where locks are named."""

import json
import shutil
import sys
from pathlib import Path

import pytest
from conftest import ROOT
from needs import need

sys.path.insert(0, str(ROOT / "scripts"))
import thread_safety

KEPT = "const spillway::MutexLock lock(mutex_); "
ADOPTED = "mutex_.lock(); const spillway::MutexLock lock(mutex_, std::adopt_lock); "
ASSUMED = "mutex_.assume_held(); "
ANOTHER = "spillway::Mutex another; const spillway::MutexLock lock(another); "
GUARDED = """#include "counter.h"
void Counter::add() { {lock}++count_; }
std::vector<Counter> counters;  // of the headers that are compiled ahead
"""
COUNTER = """#pragma once
#include "base/mutex.h"
class Counter {
 public:
  void add();

 private:
  spillway::Mutex mutex_;
  int count_ GUARDED_BY(mutex_) = 0;
};
"""


def tree(root: Path, *locks: str) -> Path:
    """A checkout with sources that count under a lock, one that knows no lock, and the build directory of them all."""
    base = root / "native" / "base"
    base.mkdir(parents=True)
    shutil.copy(ROOT / "native" / "base" / "mutex.h", base)
    (root / "native" / "counter.h").write_text(COUNTER)
    files = [root / "native" / f"counter{number}.cc" for number in range(len(locks))]
    for file, lock in zip(files, locks, strict=True):
        file.write_text(GUARDED.replace("{lock}", lock))
    files.append(root / "native" / "plain.cc")
    files[-1].write_text('#include "nowhere.h"\n')
    build = root / "build"
    build.mkdir()
    (build / "cmake_pch.hxx").write_text("#include <vector>\n")
    command = f"ccache c++ -I{root}/native -Wall -Winvalid-pch -include {build}/cmake_pch.hxx -std=c++20 -o x.o -c "
    entries = [{"directory": str(build), "file": str(file), "command": f"{command}{file}"} for file in files]
    (build / "compile_commands.json").write_text(json.dumps(entries))
    return build


@pytest.mark.parametrize(
    ("locks", "code"),
    [([KEPT], 0), ([""], 1), ([ANOTHER], 1), ([KEPT, ADOPTED, ASSUMED], 0), ([KEPT, "", KEPT], 1)],
)
def test_a_guarded_member_needs_its_lock(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], locks: list[str], code: int
) -> None:
    need(shutil.which("clang++"), "clang++")
    assert thread_safety.main(tree(tmp_path, *locks), tmp_path) == code
    printed = capfd.readouterr()
    assert f"{len(locks)} translation units, {code} with findings" in printed.out
    assert ("requires holding mutex 'mutex_'" in printed.err) == bool(code)


def test_headers_are_compiled_ahead_for_several_units(tmp_path: Path) -> None:
    need(shutil.which("clang++"), "clang++")
    build = tree(tmp_path, KEPT, KEPT)
    flags, again = (unit.flags for unit in thread_safety.units(build, tmp_path))
    assert flags == again
    made = tmp_path / "made.pch"
    assert thread_safety.precompile(flags, made, build) == ["-include-pch", str(made)]
    assert made.is_file()
    assert flags.headers
    flags.headers.write_text('#include "nowhere.h"\n')
    assert thread_safety.precompile(flags, made, build) == ["-include", "nowhere.h"], "the units will say why"
