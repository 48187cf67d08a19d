"""What tests need of the machine. Where it is missing a test is skipped; in CI it fails."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PLUGIN = Path(os.environ.get("SPILLWAY_PLUGIN", ROOT / "build/native/plugin/librocksdb-spillway.so"))
IN_MEMORY = ("tmpfs", "ramfs")


def need(is_there: object, what: str) -> None:
    """Ends the test unless the machine has ``what``. A server that integrates sets CI: nobody reads its skips."""
    if is_there:
        return
    if os.environ.get("CI", "false") not in ("", "false"):
        pytest.fail(f"this machine lacks, and CI must have: {what}", pytrace=False)
    pytest.skip(f"this machine lacks: {what}")


def need_direct_io(directory: Path) -> None:
    """Ends the test unless files of the directory can be read and written past the page cache, and lie on a drive."""
    kind = subprocess.run(["stat", "-f", "-c", "%T", directory], capture_output=True, text=True, check=True).stdout
    need(kind.strip() not in IN_MEMORY, f"temporary files on a drive: {directory} is in memory")
    path = directory / "direct"
    try:
        os.close(os.open(path, os.O_CREAT | os.O_RDWR | os.O_DIRECT))
        works = True
    except OSError:
        works = False
    finally:
        path.unlink(missing_ok=True)
    need(works, f"direct I/O where temporary files are: {directory}")


def need_plugin_and_db_bench() -> None:
    """Ends the test unless the plugin is built and the distribution's RocksDB programs are there."""
    need(PLUGIN.exists(), f"the plugin {PLUGIN}")
    need(shutil.which("db_bench"), "db_bench, of rocksdb-tools")
