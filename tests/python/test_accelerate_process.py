"""The accelerator in processes that are not as it would like them: files, directories, children, other stores."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from accelerated_programs import (
    LIBRARY,
    LINE,
    Programs,
    compile_source,
    compile_user,
    need_library,
    said,
)

pytestmark = pytest.mark.native

COUNT = 500


@pytest.fixture
def programs(tmp_path: Path) -> Programs:
    need_library()
    return Programs(tmp_path)


@pytest.fixture(scope="session")
def process(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compile_source("rocksdb_process.c", tmp_path_factory.mktemp("process"))


@pytest.fixture(scope="session")
def user(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compile_user(tmp_path_factory.mktemp("user"))


def test_a_file_with_the_number_of_standard_error_is_the_programs_own(programs: Programs, process: Path) -> None:
    own = programs.directory / "own"
    done = programs.call(process, "own-file", programs.database, own)
    assert done.returncode == 0
    assert own.read_text() == "own\nown\n"
    assert [each["closed"] for each in programs.reports()] == [True]


def test_files_of_the_database_with_the_number_of_standard_error_stay_whole(programs: Programs, process: Path) -> None:
    for _ in range(2):
        done = programs.call("sh", "-c", '"$@" 2>&- <&- >&-', "sh", process, "plain", programs.database)
        assert done.returncode == 0
    for file in programs.database.rglob("*"):
        assert file.is_dir() or b"spillway: " not in file.read_bytes() or file.name == "LOG"
    assert len(programs.reports()) == 2


@pytest.mark.parametrize("mode", ["log-file", "log-files"])
def test_a_log_of_the_programs_gets_the_line(programs: Programs, process: Path, mode: str) -> None:
    log = programs.directory / "log"
    done = programs.call(process, mode, programs.database, log)
    assert (done.returncode, done.stderr) == (0, "")
    assert LINE.search(log.read_text())


def test_a_pipe_that_nobody_reads_does_not_end_the_program(programs: Programs, process: Path) -> None:
    read, write = os.pipe()
    os.close(read)
    try:
        done = subprocess.run(
            [process, "plain", programs.database],
            env=programs.environment(),
            stderr=write,
            timeout=60,
            check=False,
            restore_signals=True,  # so that SIGPIPE ends a process, as from a shell
        )
    finally:
        os.close(write)
    assert done.returncode == 0
    assert programs.reports()[0]["closed"]


def test_a_report_that_cannot_be_written_is_said_and_nothing_waits(programs: Programs, process: Path) -> None:
    pipe = programs.directory / "pipe"
    os.mkfifo(pipe)
    for report in (pipe, Path("/dev/full"), programs.directory, Path("/no/directory/report")):
        programs.report = report
        done = programs.call(process, "plain", programs.database)
        assert done.returncode == 0
        assert said(done.stderr)[1:] == [f"spillway: SPILLWAY_REPORT: cannot write to {report}"]


def test_relative_paths_are_those_of_the_start(programs: Programs, process: Path) -> None:
    elsewhere = programs.directory / "elsewhere"
    elsewhere.mkdir()
    environment = {
        **programs.environment(),
        "LD_PRELOAD": os.path.relpath(LIBRARY, programs.directory),
        "SPILLWAY_REPORT": programs.report.name,
    }
    done = subprocess.run(
        [process, "directory", "db", elsewhere],
        env=environment,
        cwd=programs.directory,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0
    assert LINE.search(done.stderr)
    assert programs.reports()[0]["accelerated"]
    assert (elsewhere / "db").is_dir()


def test_a_child_reports_its_own_database(programs: Programs, process: Path) -> None:
    done = programs.call(process, "fork", programs.database)
    assert done.returncode == 0, done.stderr
    found = [(each["database"], each["closed"]) for each in programs.reports()]
    assert found == [(str(programs.database), True), (f"{programs.database}-child", False)]
    assert len({each["process"] for each in programs.reports()}) == 2


def test_a_directory_in_which_there_is_no_room_for_a_spill_store(programs: Programs, user: Path) -> None:
    assert programs.plain(user, "write", programs.database, str(COUNT)).returncode == 0
    (programs.database / "spill").write_text("the program's own")
    done = programs.call(user, "read", programs.database, str(COUNT))
    assert done.stdout == f"0 of {COUNT} missing\n"
    [line] = said(done.stderr)
    assert line.startswith(f"spillway: {programs.database}: opened without acceleration: the spill store cannot use")
    assert (programs.database / "spill").read_text() == "the program's own"


def test_the_error_of_an_opening_that_fails_is_rocksdbs_and_nothing_else_is_said(
    programs: Programs, process: Path
) -> None:
    for path in (Path("/proc/no/database"), programs.directory / "no" / "directory"):
        errors = [call(process, "plain", path).stderr for call in (programs.plain, programs.call)]
        assert errors[0] == errors[1]
        assert errors[0].startswith("open: ")
    assert programs.plain(process, "family", programs.database, "another").returncode == 0
    errors = [call(process, "plain", programs.database).stderr for call in (programs.plain, programs.call)]
    assert errors[0] == errors[1]
    assert "Column families not opened: another" in errors[0]


@pytest.mark.parametrize("lost", ["CURRENT", "MANIFEST"])
def test_a_repair_that_would_lose_spilled_writes_is_refused(
    programs: Programs, process: Path, user: Path, lost: str
) -> None:
    assert programs.call(user, "write", programs.database, str(COUNT)).returncode == 0
    [file] = programs.database.glob(f"{lost}*")
    content = file.read_bytes()
    file.unlink()
    refused = programs.call(process, "repair", programs.database)
    assert refused.returncode == 2
    assert f"RepairDB does not see the writes of {programs.database} that may lie in" in refused.stderr
    file.write_bytes(content)
    read = programs.call(user, "read", programs.database, str(COUNT))
    assert read.stdout == f"0 of {COUNT} missing\n"


def test_a_repair_without_spilled_writes_is_rocksdbs(programs: Programs, process: Path, user: Path) -> None:
    assert programs.call(user, "write", programs.database, str(COUNT), settings="").returncode == 0
    (programs.database / "CURRENT").unlink()
    assert programs.call(process, "repair", programs.database).returncode == 0
    assert programs.plain(user, "read", programs.database, str(COUNT)).stdout == f"0 of {COUNT} missing\n"


def test_a_reader_that_would_miss_writes_of_a_newer_format_is_refused(programs: Programs, process: Path) -> None:
    guard = "spillway guard 9 of a later version"
    assert programs.plain(process, "family", programs.database, guard).returncode == 0
    refused = programs.call(process, "read-only", programs.database)
    assert refused.returncode == 2
    assert "OpenForReadOnly does not see the writes of" in refused.stderr
    refused = programs.call(process, "plain", programs.database)
    assert refused.returncode == 2
    assert "was last opened by another version of Spillway" in refused.stderr
    assert said(refused.stderr) == []


def test_a_program_that_asks_for_two_phase_commit_gets_rocksdbs(programs: Programs, process: Path) -> None:
    done = programs.call(process, "two-phase", programs.database)
    assert done.returncode == 0, done.stderr
    [line] = said(done.stderr)
    assert line.startswith(f"spillway: {programs.database}: opened without acceleration: ")
    assert line.endswith("TransactionDB::Open with allow_2pc is RocksDB's own")


PYTHON = """
import ctypes, sys
c = ctypes.CDLL(sys.argv[1])
for name in ("rocksdb_options_create", "rocksdb_open"):
    getattr(c, name).restype = ctypes.c_void_p
options = ctypes.c_void_p(c.rocksdb_options_create())
c.rocksdb_options_set_create_if_missing(options, 1)
error = ctypes.c_char_p()
db = c.rocksdb_open(options, sys.argv[2].encode(), ctypes.byref(error))
assert not error.value, error.value
c.rocksdb_close(ctypes.c_void_p(db))
"""


def test_a_rocksdb_of_another_name_is_not_mixed_with_the_one_that_the_library_was_linked_to(
    programs: Programs,
) -> None:
    # As RocksDB's own build with CMake names it: a file that the loader takes for another library.
    listed = subprocess.run(
        ["ldd", LIBRARY.parent / "libspillway-accelerator.so"], capture_output=True, text=True, check=True
    ).stdout
    file = next(word for word in listed.split() if word.startswith("/") and "/librocksdb.so" in word)
    name = next(word for word in listed.split() if word.startswith("librocksdb.so"))
    other = name[:-1] + ("x" if name[-1] != "x" else "y")
    copy = programs.directory / other
    content = Path(file).read_bytes()
    assert content.count(name.encode() + b"\0") >= 1
    copy.write_bytes(content.replace(name.encode() + b"\0", other.encode() + b"\0"))
    done = programs.call(sys.executable, "-c", PYTHON, copy, programs.database)
    assert done.returncode == 0, done.stderr
    [line] = said(done.stderr)
    assert line == (
        f"spillway: the library was linked to {name}, and this program has {copy}, which is another; going on without "
        "acceleration"
    )
