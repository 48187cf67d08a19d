"""OPTIONS files and WiredTiger's strings of `spillway advise`: what is written is read, by us and by the engines."""

import ctypes
import ctypes.util
import math
import re
import subprocess
from dataclasses import fields, replace
from pathlib import Path
from shutil import which
from typing import Any

import pytest
from advised import DRIVE, GIB, LOAD
from needs import need

from spillway.advise.configuration import (
    DEFAULTS,
    FLASH,
    LEAST_FANOUT,
    LEVELED,
    MIB,
    SEPARATED,
    SHAPES,
    SINGLE,
    Configuration,
    in_words,
)
from spillway.advise.exact import exact
from spillway.advise.options_file import options_text, read_options
from spillway.advise.others import others, wiredtiger_strings, wiredtiger_text
from spillway.advise.simulated import Setting
from spillway.advise.workload import Limits
from spillway.errors import SpillwayError
from spillway.ssd.simulate import DriveChoice, drive_request

TUNED = replace(
    DEFAULTS, fanout=6, l0_files=2, write_buffer_bytes=8 * MIB, write_buffers=4, file_bytes=4 * MIB,
    compaction_threads=4, subcompactions=4, block_bytes=16384, bits_per_key=10, direct_io=True, dynamic_levels=True,
)  # fmt: skip
EVERY = [DEFAULTS, FLASH, *(replace(TUNED, shape=shape) for shape in SHAPES)]


@pytest.mark.parametrize("config", EVERY, ids=lambda each: f"{each.shape}-{each.fanout}-{each.l0_files}")
def test_what_is_written_is_read_again(config: Configuration, tmp_path: Path) -> None:
    path = tmp_path / "OPTIONS"
    path.write_text(options_text(config, "two\nlines"))
    found = read_options(path)
    own = replace(config, block_cache_bytes=DEFAULTS.block_cache_bytes)
    ignored: dict[str, Any] = (
        {"fanout": 10, "level_base_bytes": 0} if config.shape not in ("leveled", SEPARATED) else {}
    )
    assert replace(found, **ignored) == replace(own, **ignored)


def test_a_file_of_rocksdb_itself_is_read(tmp_path: Path) -> None:
    path = tmp_path / "OPTIONS"
    path.write_text(
        "# This is a RocksDB option file.\n[Version]\n  rocksdb_version=9.10.0\n  options_file_version=1.1\n"
        "[DBOptions]\n  max_background_jobs=8\n  max_background_compactions=-1\n  max_subcompactions=2\n"
        '[CFOptions "default"]\n  max_bytes_for_level_multiplier=8.000000\n  write_buffer_size=128M\n'
        "  compaction_style=kCompactionStyleLevel\n  table_factory=BlockBasedTable\n"
        '[TableOptions/BlockBasedTable "default"]\n  block_size=8192\n  filter_policy=bloomfilter:12:false\n'
        '[CFOptions "other"]\n  write_buffer_size=1\n'
    )
    found = read_options(path)
    assert (found.fanout, found.write_buffer_bytes, found.block_bytes) == (8, 128 * MIB, 8192)
    assert (found.bits_per_key, found.compaction_threads, found.subcompactions) == (12, 6, 2)


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("options_file_version=1.1", "options_file_version=2.0", "reads 1.1"),
        ("rocksdb_version=7.8.3", "rocksdb_version=12.0.0", "RocksDB 12.0.0"),
        ("rocksdb_version=7.8.3", "rocksdb_version=4.1.0", "RocksDB 4.1.0"),
        ("rocksdb_version=7.8.3", "rocksdb_version=master", "RocksDB master"),
        ("  rocksdb_version=7.8.3\n", "", "does not say rocksdb_version"),
        ("[DBOptions]", "[Others]", "has the sections"),
        ('[CFOptions "default"]', '[CFOptions "mine"]', "has the sections"),
        ("write_buffer_size=67108864", "write_buffer_size=many", "is not a number"),
        ("write_buffer_size=67108864", "write_buffer_size=0", "at least 1"),
        ("write_buffer_size=67108864", "write_buffer_size", "neither a section"),
        ("[Version]\n", "x=1\n[Version]\n", "neither a section"),
        ("write_buffer_size=67108864", f"write_buffer_size={10**30}", "at most"),
        ("compaction_style=kCompactionStyleLevel", "compaction_style=kCompactionStyleFIFO", "kCompactionStyleFIFO"),
    ],
)
def test_a_file_of_another_version_or_damaged_is_refused(old: str, new: str, says: str, tmp_path: Path) -> None:
    path = tmp_path / "OPTIONS"
    text = options_text(DEFAULTS, "")
    assert old in text
    path.write_text(text.replace(old, new))
    with pytest.raises(SpillwayError, match=re.escape(says)) as raised:
        read_options(path)
    assert str(path) in str(raised.value)


@pytest.mark.parametrize("content", [b"\xff\xfe\x00", b"", b"\n\n"])
def test_what_is_no_options_file_is_refused(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "OPTIONS"
    path.write_bytes(content)
    with pytest.raises(SpillwayError):
        read_options(path)
    with pytest.raises(SpillwayError, match="cannot be read"):
        read_options(tmp_path)


@pytest.mark.parametrize(
    ("old", "new", "same"),
    [
        ("\n", "\r\n", {}),
        ("[Version]", "\ufeff[Version]", {}),
        ("  write_buffer_size", "  an_option_of_later=1\n  write_buffer_size", {}),
        ("level0_slowdown_writes_trigger=20", "level0_slowdown_writes_trigger=-1", {"l0_slowdown": 4}),
        ("max_bytes_for_level_multiplier=10", "max_bytes_for_level_multiplier=8.500000", {"fanout": 8.5}),
        ("max_bytes_for_level_multiplier=10", "max_bytes_for_level_multiplier=1.000000", {"fanout": LEAST_FANOUT}),
        ("block_size=4096", "block_size=4096\n  filter_policy=nullptr", {}),
        ("block_size=4096", "block_size=4096\n  filter_policy=ribbonfilter:9.5:-1", {"bits_per_key": 9}),
        ("block_size=4096", "block_size=4096\n  filter_policy={id=x;bits_per_key=12}", {"bits_per_key": 12}),
        ("block_size=4096", "block_size=4096\n  filter_policy=rocksdb.BuiltinBloomFilter", {"bits_per_key": 10}),
    ],
)
def test_what_versions_and_systems_write_otherwise_is_read(
    old: str, new: str, same: dict[str, Any], tmp_path: Path
) -> None:
    path = tmp_path / "OPTIONS"
    text = options_text(DEFAULTS, "").partition("[Version]")
    assert old in text[2] or old == "[Version]"
    path.write_bytes((text[1] + text[2]).replace(old, new).encode())
    assert read_options(path) == replace(DEFAULTS, **same)


@pytest.mark.parametrize(
    "lines",
    [
        "level0_slowdown_writes_trigger=-1",
        "level0_file_num_compaction_trigger=0",
        "level0_slowdown_writes_trigger=50",
        "level0_file_num_compaction_trigger=30\n  level0_slowdown_writes_trigger=-1\n  level0_stop_writes_trigger=-1",
        "max_write_buffer_number=1\n  write_buffer_size=1",
        "max_bytes_for_level_multiplier=7.250000",
    ],
)
def test_options_are_put_right_as_rocksdb_does(lines: str, tmp_path: Path) -> None:
    """What is read is what a database says that was opened with the same file."""
    need(which("db_bench"), "db_bench, of rocksdb-tools")
    path, database = tmp_path / "OPTIONS", tmp_path / "db"
    path.write_text(
        "[Version]\n  rocksdb_version=7.8.3\n  options_file_version=1.1\n[DBOptions]\n"
        f'[CFOptions "default"]\n  {lines}\n  table_factory=BlockBasedTable\n'
        '[TableOptions/BlockBasedTable "default"]\n  block_size=4096\n'
    )
    words = ["db_bench", "--benchmarks=fillrandom", "--num=20", f"--options_file={path}", f"--db={database}"]
    done = subprocess.run(words, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    assert read_options(path) == read_options(max(database.glob("OPTIONS-*")))
    opened = dict(re.findall(r"^\s*(\w+)=(\S+)$", max(database.glob("OPTIONS-*")).read_text(), flags=re.MULTILINE))
    found = read_options(path)
    for name, value in {
        "level0_file_num_compaction_trigger": found.l0_files,
        "level0_slowdown_writes_trigger": found.l0_slowdown,
        "level0_stop_writes_trigger": found.l0_stop,
        "max_write_buffer_number": found.write_buffers,
        "write_buffer_size": found.write_buffer_bytes,
        "max_bytes_for_level_multiplier": found.fanout,
    }.items():
        assert float(opened[name]) == value, name


BULK = 1 << 30  # RocksDB's PrepareForBulkLoad
EXTREMES = {
    "bulk load": f"level0_file_num_compaction_trigger={BULK}\n  level0_slowdown_writes_trigger={BULK}\n"
                 f"  level0_stop_writes_trigger={BULK}\n  num_levels=2\n  soft_pending_compaction_bytes_limit=0",
    "sizes": f"write_buffer_size={2**62}\n  target_file_size_base={2**62}\n  max_bytes_for_level_base={2**62}",
    "least": "write_buffer_size=1\n  target_file_size_base=1\n  max_bytes_for_level_base=1",
    "numbers": f"max_write_buffer_number={2**62}\n  max_bytes_for_level_multiplier=1e300",
    "jobs": "compaction_style=kCompactionStyleUniversal",
}  # fmt: skip


@pytest.mark.native
@pytest.mark.parametrize("name", EXTREMES)
def test_any_file_that_is_read_can_be_compared_with(name: str, tmp_path: Path) -> None:
    """The simulator takes it, and its prediction is of finite figures."""
    path = tmp_path / "OPTIONS"
    path.write_text(
        "[Version]\n  rocksdb_version=7.8.3\n  options_file_version=1.1\n[DBOptions]\n"
        "  max_background_jobs=1000000000\n  max_subcompactions=1000000000\n"
        f'[CFOptions "default"]\n  {EXTREMES[name]}\n'
        '[TableOptions/BlockBasedTable "default"]\n  block_size=1\n  filter_policy=bloomfilter:999:false\n'
    )
    found = read_options(path)
    assert 1e9 > found.background_jobs - max(1, found.background_jobs // 4) >= found.compaction_threads
    load = replace(LOAD, data_bytes=256 * MIB)
    drive = replace(DRIVE, request=drive_request(DriveChoice(preset="quickstart")), capacity_bytes=8 * GIB,
                    least_capacity_bytes=GIB)  # fmt: skip
    said = exact(Setting(load, drive, 2), found, (1,), found)
    assert 0 < said.throughput_ops_s.value < math.inf
    assert math.isfinite(said.wa_total.high + said.worst_p99_us) and said.held_bytes.value >= load.data_bytes


def test_what_never_ends_is_no_options_file() -> None:
    with pytest.raises(SpillwayError, match="it is no OPTIONS file"):
        read_options(Path("/dev/zero"))
    with pytest.raises(SpillwayError, match="does not say rocksdb_version"):
        read_options(Path("/dev/null"))


# ---------------------------------------------------------------- by the engines themselves


@pytest.mark.parametrize("config", EVERY, ids=lambda each: f"{each.shape}-{each.fanout}-{each.l0_files}")
def test_rocksdb_loads_the_file(config: Configuration, tmp_path: Path) -> None:
    """db_bench reads it through rocksdb::LoadOptionsFromFile, and its database says what it was opened with."""
    need(which("db_bench"), "db_bench, of rocksdb-tools")
    path, database = tmp_path / "OPTIONS", tmp_path / "db"
    path.write_text(options_text(replace(config, direct_io=False), "made for a test"))
    words = ["db_bench", "--benchmarks=fillrandom", "--num=2000", f"--options_file={path}", f"--db={database}"]
    done = subprocess.run(words, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    assert "fillrandom" in done.stdout, done.stderr
    written = max(database.glob("OPTIONS-*")).read_text()
    expected = {
        "write_buffer_size": str(config.write_buffer_bytes),
        "max_write_buffer_number": str(config.write_buffers),
        "level0_file_num_compaction_trigger": str(config.l0_files),
        "max_subcompactions": str(config.subcompactions),
        "max_background_jobs": str(config.background_jobs),
        "block_size": str(config.block_bytes),
        "enable_blob_files": "true" if config.shape == SEPARATED else "false",
        "num_levels": "2" if config.shape == SINGLE else "7",
    }
    for name, value in expected.items():
        assert re.search(rf"^\s*{name}={value}$", written, flags=re.MULTILINE), name
    assert ("bloomfilter" in written) == bool(config.bits_per_key)


@pytest.mark.parametrize("mix", [(1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0)])
@pytest.mark.parametrize("value", [16, 1000, 100_000])
def test_wiredtiger_takes_the_strings(mix: tuple[float, float, float], value: int, tmp_path: Path) -> None:
    name = ctypes.util.find_library("wiredtiger")
    need(name, "libwiredtiger")
    load = replace(LOAD, puts=mix[0], gets=mix[1], scans=mix[2], value_bytes=value)
    opening, table = wiredtiger_strings(load, Limits(memory_bytes=64 * MIB), others(load, DRIVE))
    library = ctypes.CDLL(name)
    library.wiredtiger_config_validate.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_char_p]
    library.wiredtiger_open.argtypes = [ctypes.c_char_p, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
    for call, text in ((b"wiredtiger_open", opening), (b"WT_SESSION.create", table)):
        assert library.wiredtiger_config_validate(None, None, call, text.encode()) == 0, text
        assert library.wiredtiger_config_validate(None, None, call, f"{text},no_such_key=1".encode()) != 0
    opened = ctypes.c_void_p()
    text = opening.replace("direct_io=[data]", "direct_io=[]")  # where a test's files are may have none
    assert library.wiredtiger_open(str(tmp_path).encode(), None, text.encode(), ctypes.byref(opened)) == 0


def test_the_file_for_wiredtiger_names_what_takes_each_string() -> None:
    lines = wiredtiger_text(LOAD, Limits(), others(LOAD, DRIVE)).splitlines()
    assert [line.partition(": ")[0] for line in lines] == ["wiredtiger_open", "WT_SESSION::create"]


@pytest.mark.parametrize("shape", (LEVELED, SEPARATED))
def test_two_configurations_have_two_names(shape: str) -> None:
    """But for what follows from the rest: the cache is the memory that is left, two triggers of L0 follow the first."""
    config = replace(DEFAULTS, shape=shape)
    follows = {"shape", "l0_slowdown", "l0_stop", "block_cache_bytes", "spill_bytes"}
    for each in fields(Configuration):
        value = getattr(config, each.name)
        if isinstance(value, bool):
            other: Any = not value
        else:
            other = "lazy" if isinstance(value, str) else 2 * value + (10 if isinstance(value, int) else 0.25)
        changed = replace(config, **{each.name: other})
        assert in_words(changed) != in_words(config) or each.name in follows, each.name
