"""Programs that use RocksDB's shared library and know nothing of Spillway, as they are or with the accelerator."""

import json
import os
import re
import shlex
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from needs import ROOT, need

LIBRARY = Path(os.environ.get("SPILLWAY_ACCELERATE", ROOT / "build/native/accelerate/libspillway-accelerate.so"))
SOURCES = ROOT / "tests/python/programs"
# Writes are diverted from the first table on, and stay in the spill store.
DIVERTS = "divert_l0_files=1;resume_l0_files=1;rollback=off;poll_ms=1"
# So small that RocksDB would stall: flushes and compactions cannot keep up with a writer in memory.
STALLING = [
    "--value_size=400",
    "--compression_type=none",
    "--write_buffer_size=262144",
    "--max_write_buffer_number=2",
    "--level0_file_num_compaction_trigger=2",
    "--level0_slowdown_writes_trigger=3",
    "--level0_stop_writes_trigger=4",
    "--target_file_size_base=262144",
    "--max_bytes_for_level_base=1048576",
]
LINE = re.compile(
    r"^spillway: (?P<database>\S+)(?: \(not closed\))?: (?P<diverted>[\d,]+) writes? \(\S+ \w+\) diverted in "
    r"(?P<stalls>[\d,]+) stalls?, (?P<main>[\d,]+) write calls? to RocksDB; (?P<waits>[\d,]+) writes? waited"
    r"(?: \((?:[\d,]+ for [a-z ]+(?:, )?)+\))?"
    r"(?: for \S+ s in all)?; (?P<rollbacks>[\d,]+) rollbacks? brought (?P<back>[\d,]+) writes? back; "
    r"(?:(?P<left>[\d,]+) writes? \(\S+ \w+\) remain|nothing remains) in the spill store$",
    re.MULTILINE,
)


def need_library() -> None:
    """Ends the test unless the library that is preloaded is built."""
    need(LIBRARY.exists(), f"the accelerator {LIBRARY}")
    need((LIBRARY.parent / "libspillway-accelerator.so").exists(), f"libspillway-accelerator.so beside {LIBRARY}")


def need_tools() -> None:
    """Ends the test unless the distribution's RocksDB programs are there, too."""
    need_library()
    need(shutil.which("db_bench") and shutil.which("ldb"), "db_bench and ldb, of rocksdb-tools")


def rocksdb_flags() -> list[str]:
    """What compiles a program on the RocksDB that the build uses."""
    asked = subprocess.run(["pkg-config", "--cflags", "--libs", "rocksdb"], capture_output=True, text=True, check=True)
    return shlex.split(asked.stdout)


def rocksdb_version() -> tuple[int, ...]:
    """Of the RocksDB that the build uses; without one nothing, which is older than every version."""
    asked = subprocess.run(["pkg-config", "--modversion", "rocksdb"], capture_output=True, text=True, check=False)
    return tuple(int(part) for part in asked.stdout.split(".") if part.strip().isdigit())


def compile_user(directory: Path) -> Path:
    """rocksdb_user, from its source."""
    return compile_source("rocksdb_user.c", directory)


def compile_source(name: str, directory: Path) -> Path:
    """A program on RocksDB's C interface, from its source."""
    need(shutil.which("cc"), "a C compiler")
    program = directory / Path(name).stem
    subprocess.run(["cc", "-o", str(program), str(SOURCES / name), *rocksdb_flags()], check=True)
    return program


def rocksdb_library() -> str:
    """The file name of RocksDB's shared library, for ctypes."""
    asked = subprocess.run(["pkg-config", "--variable=libdir", "rocksdb"], capture_output=True, text=True, check=True)
    return str(Path(asked.stdout.strip()) / "librocksdb.so")


class Programs:
    """Calls programs in a directory, with the accelerator or as they are."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.database = directory / "db"
        self.report = directory / "report.json"

    def environment(self, settings: str = DIVERTS, preload: Sequence[Path] = (LIBRARY,)) -> dict[str, str]:
        libraries = ":".join(map(str, preload))
        return {**os.environ, "LD_PRELOAD": libraries, "SPILLWAY": settings, "SPILLWAY_REPORT": str(self.report)}

    def call(
        self, *words: str | Path, settings: str = DIVERTS, preload: Sequence[Path] = (LIBRARY,)
    ) -> subprocess.CompletedProcess[str]:
        """With the accelerator, or without where ``preload`` is empty."""
        environment = self.environment(settings, preload) if preload else dict(os.environ)
        return subprocess.run(
            [str(word) for word in words],
            env=environment,
            cwd=self.directory,
            capture_output=True,
            text=True,
            timeout=240,
            check=False,
        )

    def plain(self, *words: str | Path) -> subprocess.CompletedProcess[str]:
        return self.call(*words, preload=())

    def reports(self) -> list[dict[str, Any]]:
        """What SPILLWAY_REPORT got, a document for each database that was opened."""
        return [json.loads(line) for line in self.report.read_text().splitlines()] if self.report.exists() else []


def said(stderr: str) -> list[str]:
    """The accelerator's lines."""
    return [line for line in stderr.splitlines() if line.startswith("spillway: ")]


def number(text: str | None) -> int:
    return int(text.replace(",", "")) if text else 0
