"""The accelerator under programs as they are: db_bench, ldb, C and Python on RocksDB's C interface."""

import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from accelerated_programs import (
    LIBRARY,
    LINE,
    STALLING,
    Programs,
    compile_user,
    need_library,
    need_tools,
    number,
    rocksdb_library,
    said,
)

pytestmark = pytest.mark.native

COUNT = 5_000


@pytest.fixture
def programs(tmp_path: Path) -> Programs:
    need_library()
    return Programs(tmp_path)


@pytest.fixture(scope="session")
def user(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compile_user(tmp_path_factory.mktemp("user"))


def test_db_bench_with_stalls(programs: Programs) -> None:
    need_tools()
    words = ["db_bench", f"--db={programs.database}", "--num=40000", *STALLING]
    filled = programs.call(*words, "--benchmarks=filluniquerandom", "--statistics", settings="capacity=1GiB")
    assert filled.returncode == 0, filled.stderr
    assert re.search(r"^filluniquerandom +: .* ops/sec", filled.stdout, re.MULTILINE)
    assert "rocksdb.stall.micros COUNT" in filled.stdout
    *_, line = LINE.finditer(filled.stderr)
    *_, report = programs.reports()  # db_bench opens a database, destroys it and opens it again
    assert report["accelerated"]
    assert report["closed"]
    assert report["database"] == line["database"] == str(programs.database)
    statistics = report["statistics"]
    assert statistics["diverted_writes"] == number(line["diverted"]) > 0
    assert statistics["main_writes"] + statistics["diverted_writes"] >= 40_000
    assert statistics["live_entries"] == number(line["left"])

    read = programs.call(*words, "--benchmarks=readrandom", "--use_existing_db", "--reads=4000")
    assert read.returncode == 0, read.stderr
    assert "(4000 of 4000 found)" in read.stdout


def test_a_fresh_benchmark_after_one_that_left_writes(programs: Programs) -> None:
    # db_bench destroys the database first, and its spill store has to go with it.
    need_tools()
    words = ["db_bench", f"--db={programs.database}", "--num=20000", "--benchmarks=fillrandom", *STALLING]
    for _ in range(2):
        done = programs.call(*words)
        assert done.returncode == 0, done.stderr
    assert all(report["closed"] for report in programs.reports())
    left = [report["statistics"]["live_entries"] for report in programs.reports()]
    assert left[len(left) // 2 - 1] > 0  # by the first


def test_ldb_reads_and_writes(programs: Programs, user: Path) -> None:
    need_tools()
    assert programs.call(user, "write", programs.database, str(COUNT)).returncode == 0
    got = programs.call("ldb", f"--db={programs.database}", "put", "key00000007", "new")
    assert got.returncode == 0, got.stderr
    listed = programs.call("ldb", f"--db={programs.database}", "list_column_families")
    assert "{default}" in listed.stdout  # the guard is not the program's
    assert [report["database"] for report in programs.reports()][:2] == [str(programs.database)] * 2


@pytest.mark.parametrize("mode", ["write", "transactions"])
def test_a_c_program(programs: Programs, user: Path, mode: str) -> None:
    if mode == "transactions":  # it flushes nothing itself
        programs.call(user, "write", programs.database, "1", settings="")
        programs.report.unlink()
    done = programs.call(user, mode, programs.database, str(COUNT))
    assert done.returncode == 0, done.stderr
    [report] = programs.reports()
    assert report["statistics"]["diverted_writes"] > 0
    assert report["statistics"]["live_entries"] > 0
    read = programs.call(user, "read", programs.database, str(COUNT))
    assert read.stdout == f"0 of {COUNT} missing\n"


PYTHON = """
import ctypes, sys, time
c = ctypes.CDLL(sys.argv[1])
for name in ("rocksdb_options_create", "rocksdb_open", "rocksdb_writeoptions_create", "rocksdb_flushoptions_create"):
    getattr(c, name).restype = ctypes.c_void_p
P = ctypes.c_void_p
error = ctypes.c_char_p()
options = P(c.rocksdb_options_create())
c.rocksdb_options_set_create_if_missing(options, 1)
c.rocksdb_options_set_level0_file_num_compaction_trigger(options, 1)
c.rocksdb_options_set_compaction_style(options, 1)  # universal: a single table is not compacted
db = P(c.rocksdb_open(options, sys.argv[2].encode(), ctypes.byref(error)))
assert not error.value, error.value
write = P(c.rocksdb_writeoptions_create())
for i in range(int(sys.argv[3])):
    key = b"key%08d" % i
    c.rocksdb_put(db, write, key, ctypes.c_size_t(len(key)), key, ctypes.c_size_t(len(key)), ctypes.byref(error))
    assert not error.value, error.value
    if i == 0:
        c.rocksdb_flush(db, P(c.rocksdb_flushoptions_create()), ctypes.byref(error))
        time.sleep(0.5)
c.rocksdb_close(db)
"""


def test_a_python_program_that_loads_rocksdb_itself(programs: Programs, user: Path) -> None:
    done = programs.call(sys.executable, "-c", PYTHON, rocksdb_library(), programs.database, str(COUNT))
    assert done.returncode == 0, done.stderr
    [report] = programs.reports()
    assert report["statistics"]["diverted_writes"] > 0
    read = programs.call(user, "read", programs.database, str(COUNT))
    assert read.stdout == f"0 of {COUNT} missing\n"


def test_a_database_that_is_not_closed_is_reported_at_exit(programs: Programs, user: Path) -> None:
    done = programs.call(user, "no-close", programs.database, str(COUNT))
    assert done.returncode == 0, done.stderr
    assert f"{programs.database} (not closed): " in done.stderr
    assert LINE.search(done.stderr)
    [report] = programs.reports()
    assert not report["closed"]
    read = programs.call(user, "read", programs.database, str(COUNT))
    assert read.stdout == f"0 of {COUNT} missing\n"


def test_nothing_acknowledged_with_sync_is_lost_by_a_kill(programs: Programs, user: Path) -> None:
    for after in (50, 400):
        shutil.rmtree(programs.database, ignore_errors=True)
        with subprocess.Popen(
            [str(user), "sync", str(programs.database), "1000000"],
            env=programs.environment(),
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        ) as writer:
            assert writer.stdout
            acknowledged = [int(writer.stdout.readline()) for _ in range(after)][-1]
            writer.send_signal(signal.SIGKILL)
            acknowledged = max([acknowledged, *map(int, writer.stdout.read().split()[:-1])])
        assert writer.returncode == -signal.SIGKILL
        read = programs.call(user, "read", programs.database, str(acknowledged + 1))
        assert read.stdout == f"0 of {acknowledged + 1} missing\n", read.stderr
        # What was read was partly in the spill store: without it the database is refused.
        [report] = programs.reports()
        assert report["statistics"]["live_entries"] > 0
        programs.report.unlink()


def test_without_the_library_a_database_with_spilled_writes_is_refused(programs: Programs, user: Path) -> None:
    assert programs.call(user, "write", programs.database, str(COUNT)).returncode == 0
    refused = programs.plain(user, "read", programs.database, str(COUNT))
    assert refused.returncode == 2
    assert "spillway guard" in refused.stderr
    back = programs.call(user, "read", programs.database, str(COUNT), settings="rollback=eager")
    assert back.stdout == f"0 of {COUNT} missing\n"


def test_a_reader_that_would_miss_writes_is_refused(programs: Programs, user: Path) -> None:
    assert programs.call(user, "write", programs.database, str(COUNT)).returncode == 0
    refused = programs.call(user, "read-only", programs.database, str(COUNT))
    assert refused.returncode == 2
    assert "OpenForReadOnly does not see the writes of" in refused.stderr
    assert "spillway spill drain" in refused.stderr


def test_a_time_to_live_is_rocksdbs_own(programs: Programs, user: Path) -> None:
    done = programs.call(user, "ttl", programs.database, str(COUNT))
    assert done.returncode == 0, done.stderr
    expected = f"spillway: {programs.database}: opened without acceleration: DBWithTTL::Open is RocksDB's own"
    assert said(done.stderr) == [expected]
    assert not (programs.database / "spill").exists()


def test_read_only_is_rocksdbs_own(programs: Programs, user: Path) -> None:
    assert programs.plain(user, "write", programs.database, str(COUNT)).returncode == 0
    done = programs.call(user, "read-only", programs.database, str(COUNT))
    assert done.stdout == f"0 of {COUNT} missing\n"
    expected = f"spillway: {programs.database}: opened without acceleration: OpenForReadOnly is RocksDB's own"
    assert said(done.stderr) == [expected]
    [report] = programs.reports()
    assert not report["accelerated"]


def lose(spill: Path) -> None:
    spill.rename(spill.parent.parent / "elsewhere")


def crc32c(data: bytes) -> int:
    value = 0xFFFFFFFF
    for byte in data:
        value ^= byte
        for _ in range(8):
            value = value >> 1 ^ (0x82F63B78 if value & 1 else 0)
    return value ^ 0xFFFFFFFF


def renew(spill: Path) -> None:
    binding = spill / "BINDING"
    text, checksum = binding.read_text().split("crc32c ")
    assert text.startswith("spillway binding 1\n")
    assert checksum == f"{crc32c(text.encode()):08x}\n"
    text = text.replace("binding 1", "binding 2", 1)
    binding.write_text(f"{text}crc32c {crc32c(text.encode()):08x}\n")


@pytest.mark.parametrize(
    ("change", "says"),
    [(lose, "spill"), (renew, "was last opened by another version of Spillway")],
    ids=["lost", "newer format"],
)
def test_writes_that_would_be_missed_stop_the_program(
    programs: Programs, user: Path, change: Callable[[Path], None], says: str
) -> None:
    assert programs.call(user, "write", programs.database, str(COUNT)).returncode == 0
    change(programs.database / "spill")
    refused = programs.call(user, "read", programs.database, str(COUNT))
    assert refused.returncode == 2
    assert refused.stderr.startswith("open: ")
    assert says in refused.stderr
    assert len(refused.stderr.splitlines()) == 1
    assert len(programs.reports()) == 1  # the first opening's


def test_a_comparator_is_opened_as_ever(programs: Programs, user: Path) -> None:
    done = programs.call(user, "comparator", programs.database, str(COUNT))
    assert done.returncode == 0, done.stderr
    assert done.stdout == f"0 of {COUNT} missing\n"
    [line] = said(done.stderr)
    assert line.startswith(f"spillway: {programs.database}: opened without acceleration: spillway::DB does not support")
    assert not (programs.database / "spill").exists()


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ("capcity=4GiB", "SPILLWAY: capcity is not a setting of the accelerator, the nearest is SPILLWAY: capacity"),
        ("capacity=much", "SPILLWAY: capacity is much; it takes a size above 0 such as 64MiB"),
        ("rollback=adaptve", 'SPILLWAY: rollback "adaptve" is not known; did you mean adaptive?'),
        ("rollback", "SPILLWAY: 'rollback' is not of the form KEY=VALUE"),
        ("capacity=1MiB;generation=2MiB", "SPILLWAY: capacity is 1048576, less than a generation"),
        ("poll_ms=1;poll_ms=2", "SPILLWAY: poll_ms is given twice"),
    ],
)
def test_a_wrong_setting_is_one_sentence_and_the_program_goes_on(
    programs: Programs, user: Path, settings: str, says: str
) -> None:
    done = programs.call(user, "write", programs.database, str(COUNT), settings=settings)
    assert done.returncode == 0, done.stderr
    [line] = said(done.stderr)
    assert line.startswith(f"spillway: {says}")
    assert line.endswith("; going on without acceleration")
    assert not (programs.database / "spill").exists()
    assert programs.plain(user, "read", programs.database, str(COUNT)).returncode == 0


def test_the_second_of_two_libraries_stays_out(programs: Programs, user: Path) -> None:
    copies = programs.directory / "copy"
    copies.mkdir()
    second = Path(shutil.copy(LIBRARY, copies))
    shutil.copy(LIBRARY.parent / "libspillway-accelerator.so", copies)
    done = programs.call(user, "write", programs.database, str(COUNT), preload=(LIBRARY, second))
    assert done.returncode == 0, done.stderr
    [out, closed] = said(done.stderr)
    assert out == f"spillway: {second} stays out: {LIBRARY} is preloaded before it"
    assert LINE.fullmatch(closed)
    assert len(programs.reports()) == 1
    assert programs.reports()[0]["statistics"]["diverted_writes"] > 0


OTHER_ROCKSDB = """
#include <string>
namespace rocksdb {
std::string GetRocksVersionAsString(bool) { return "6.29"; }
}
extern "C" void* rocksdb_open(const void*, const char*, char**) { return nullptr; }
"""


def test_another_version_of_rocksdb_is_one_sentence_and_the_program_goes_on(programs: Programs) -> None:
    source = programs.directory / "other.cc"
    source.write_text(OTHER_ROCKSDB)
    library = programs.directory / "librocksdb.so.6.29"
    subprocess.run(["c++", "-shared", "-fPIC", "-o", library, source], check=True)
    main = programs.directory / "main.c"
    main.write_text('#include <stdio.h>\nvoid* rocksdb_open();\nint main() { rocksdb_open(); puts("went on"); }\n')
    program = programs.directory / "main"
    subprocess.run(["cc", "-o", program, main, library], check=True)
    done = programs.call(program)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "went on\n"
    [line] = said(done.stderr)
    assert re.fullmatch(
        r"spillway: spillway was built for RocksDB \d+\.\d+ and cannot be used with 6\.29, which this program has "
        r"loaded; build it again with that RocksDB; going on without acceleration",
        line,
    )


def test_programs_without_rocksdb_are_left_alone(programs: Programs) -> None:
    done = programs.call("sh", "-c", "ls / > /dev/null; exit 7")
    assert (done.returncode, done.stderr) == (7, "")


def test_children_are_accelerated_and_their_parents_are_not_reported_twice(programs: Programs, user: Path) -> None:
    done = programs.call(
        "sh", "-c", f"{user} write {programs.database} {COUNT} && {user} read {programs.database} {COUNT}"
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == f"0 of {COUNT} missing\n"
    assert len(LINE.findall(done.stderr)) == len(programs.reports()) == 2


def exported(library: Path | str, kind: str) -> set[str]:
    listed = subprocess.run(
        ["nm", "--dynamic", f"--{kind}-only", str(library)], capture_output=True, text=True, check=True
    ).stdout
    return {line.split()[-1] for line in listed.splitlines()}


def test_the_preloaded_library_needs_nothing_of_rocksdb() -> None:
    need_library()
    assert [name for name in exported(LIBRARY, "undefined") if "rocksdb" in name] == []
    needed = subprocess.run(["readelf", "-d", LIBRARY], capture_output=True, text=True, check=True).stdout
    assert "librocksdb" not in needed


def test_each_function_of_it_stands_before_one_of_rocksdb() -> None:
    need_library()
    loaded = subprocess.run(
        ["ldd", LIBRARY.parent / "libspillway-accelerator.so"], capture_output=True, text=True, check=True
    ).stdout
    rocksdb = re.search(r"librocksdb\S+ => (\S+)", loaded)
    assert rocksdb, loaded
    own = exported(LIBRARY, "defined") - {"spillway_accelerate_preloaded"}
    assert len(own) > 20
    assert own <= exported(rocksdb[1], "defined")
