"""What tests need of the machine. Where it is missing a test is skipped; in CI it fails."""

import ctypes
import mmap
import os
import shutil
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PLUGIN = Path(os.environ.get("SPILLWAY_PLUGIN", ROOT / "build/native/plugin/librocksdb-spillway.so"))
BLOCK = 1 << 16  # whole pages and blocks of any drive


def need(is_there: object, what: str) -> None:
    """Ends the test unless the machine has ``what``. A server that integrates sets CI: nobody reads its skips."""
    if is_there:
        return
    if os.environ.get("CI", "false") not in ("", "false"):
        pytest.fail(f"this machine lacks, and CI must have: {what}", pytrace=False)
    pytest.skip(f"this machine lacks: {what}")


def has_direct_io(directory: Path) -> bool:
    """Whether a block that is written with O_DIRECT and read again reaches the directory's drive, not its page cache.

    Opening a file is not enough: Linux 6.6 and later take O_DIRECT for files in memory too, where every page is cached.
    """
    path = directory / "direct"
    try:
        file = os.open(path, os.O_CREAT | os.O_RDWR | os.O_DIRECT)
        try:
            with mmap.mmap(-1, BLOCK) as aligned:
                os.pwrite(file, aligned, 0)
                os.preadv(file, [aligned], 0)
            return not is_cached(file)
        finally:
            os.close(file)
    except OSError:
        return False
    finally:
        path.unlink(missing_ok=True)


def is_cached(file: int) -> bool:
    """Whether the page cache has the first page of an open file."""
    with mmap.mmap(file, BLOCK) as mapped:
        first = ctypes.c_char.from_buffer(mapped)
        pages = (ctypes.c_ubyte * (BLOCK // mmap.PAGESIZE or 1))()
        failed = ctypes.CDLL(None).mincore(ctypes.c_void_p(ctypes.addressof(first)), ctypes.c_size_t(BLOCK), pages)
        del first  # else the mapping cannot be closed
    assert failed == 0
    return bool(pages[0] & 1)


def need_direct_io(directory: Path) -> None:
    """Ends the test unless files of the directory can be read and written past the page cache."""
    need(has_direct_io(directory), f"direct I/O where temporary files are: {directory}")


def need_plugin_and_db_bench() -> None:
    """Ends the test unless the plugin is built and the distribution's RocksDB programs are there."""
    need(PLUGIN.exists(), f"the plugin {PLUGIN}")
    need(shutil.which("db_bench"), "db_bench, of rocksdb-tools")
