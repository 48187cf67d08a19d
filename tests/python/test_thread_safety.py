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

GUARDED = """#include "counter.h"
void Counter::add() { {lock}++count_; }
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


def tree(root: Path, lock: str) -> Path:
    """A checkout with one guarded counter, a file that knows no lock, and the build directory of both."""
    base = root / "native" / "base"
    base.mkdir(parents=True)
    shutil.copy(ROOT / "native" / "base" / "mutex.h", base)
    (root / "native" / "counter.h").write_text(COUNTER)
    (root / "native" / "counter.cc").write_text(GUARDED.replace("{lock}", lock))
    (root / "native" / "plain.cc").write_text('#include "nowhere.h"\n')
    build = root / "build"
    build.mkdir()
    (build / "cmake_pch.hxx").write_text("#include <vector>\n")
    command = f"ccache c++ -I{root}/native -Wall -Winvalid-pch -include {build}/cmake_pch.hxx -std=c++20 -o x.o -c "
    files = [root / "native" / name for name in ("counter.cc", "plain.cc")]
    entries = [{"directory": str(build), "file": str(file), "command": f"{command}{file}"} for file in files]
    (build / "compile_commands.json").write_text(json.dumps(entries))
    return build


@pytest.mark.parametrize(("lock", "code"), [("const spillway::MutexLock lock(mutex_); ", 0), ("", 1)])
def test_a_guarded_member_needs_its_lock(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], lock: str, code: int
) -> None:
    need(shutil.which("clang++"), "clang++")
    assert thread_safety.main(tree(tmp_path, lock), tmp_path) == code
    printed = capfd.readouterr()
    assert f"1 translation units, {code} with findings" in printed.out
    assert ("requires holding mutex 'mutex_'" in printed.err) == bool(code)
