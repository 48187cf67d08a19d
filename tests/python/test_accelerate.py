"""`spillway accelerate`: what programs print, the comparison, the command itself."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from accelerated_programs import LIBRARY, STALLING, Programs, compile_user, need_library, need_tools
from click.testing import CliRunner

from spillway.accelerate.comparison import Setting, compare
from spillway.accelerate.library import KEYS, configuration_text, environment
from spillway.accelerate.results import parse
from spillway.cli.program import spillway
from spillway.errors import RunFailed, SpillwayError

DB_BENCH = """
RocksDB:    version 7.8.3
------------------------------------------------
fillrandom   :       2.083 micros/op 480000 ops/sec 2.083 seconds 1000000 operations;   53.1 MB/s
Microseconds per write:
Count: 1000000 Average: 2.0830  StdDev: 31.20
Min: 0  Median: 1.2500  Max: 81230
Percentiles: P50: 1.25 P75: 1.80 P99: 7.40 P99.9: 21.00 P99.99: 900.00
readrandom   :       4.000 micros/op 250000 ops/sec 4.000 seconds 1000000 operations;   17.5 MB/s
Microseconds per read:
Count: 1000000 Average: 4.0000  StdDev: 3.20
Min: 1  Median: 3.2500  Max: 999999
Percentiles: P50: 3.25 P75: 4.80 P99: 9.40 P99.9: 30.00 P99.99: 1900.00
fillrandom   :       2.500 micros/op 400000 ops/sec 2.500 seconds 1000000 operations;   44.2 MB/s
"""
YCSB = """[OVERALL], RunTime(ms), 1000
[OVERALL], Throughput(ops/sec), 7804.5
[READ], MaxLatency(us), 999999
[UPDATE], MaxLatency(us), 5119
[INSERT], MaxLatency(us), 8123
"""
YCSB_CPP = """2026-01-01 00:00:00 1 sec: 1000 operations; [INSERT: Count=1000 Max=7000.50 Min=1.00 Avg=2.00]
Load runtime(sec): 1.5
Load operations(ops): 1000
Load throughput(ops/sec): 59206.1
"""


def test_what_db_bench_prints() -> None:
    found = parse(DB_BENCH)
    assert found.throughput == {"fillrandom": 480_000, "readrandom": 250_000, "fillrandom 2": 400_000}
    assert found.worst_write_us == 81_230  # not the read's


def test_what_ycsb_prints() -> None:
    assert parse(YCSB).throughput == {"overall": 7804.5}
    assert parse(YCSB).worst_write_us == 8123
    assert parse(YCSB_CPP).throughput == {"load": 59206.1}
    assert parse(YCSB_CPP).worst_write_us == 7000.5


def test_another_program_prints_nothing_that_is_known() -> None:
    assert parse("done in 3 s\n") == parse("")
    assert parse("").worst_write_us is None


def test_settings_as_the_variable_has_them() -> None:
    assert configuration_text(["capacity=4GiB", "rollback=lazy", "poll_ms=10", "divert_pending=0.5"]) == (
        "capacity=4GiB;rollback=lazy;poll_ms=10;divert_pending=0.5"
    )
    assert configuration_text([]) == ""
    assert "store" not in KEYS


@pytest.mark.parametrize(
    ("word", "says"),
    [
        ("capcity=4GiB", "did you mean 'capacity'?"),
        ("store=kv", "there is no key 'store'"),
        ("capacity", "not of the form KEY=VALUE"),
        ("capacity=much", "not a size"),
        ("rollback=sometimes", "one of adaptive, eager, lazy, off"),
        ("poll_ms=often", "whole number"),
        ("poll_ms=0", "at least 1"),
    ],
)
def test_a_wrong_setting_is_refused(word: str, says: str) -> None:
    with pytest.raises(SpillwayError, match=says.replace("?", r"\?")):
        configuration_text([word])


def test_what_was_preloaded_before_stays() -> None:
    assert environment(Path("/lib/a.so"), "", {"LD_PRELOAD": "b.so"}) == {"LD_PRELOAD": "/lib/a.so:b.so"}
    assert environment(Path("/lib/a.so"), "poll_ms=1", {}) == {"LD_PRELOAD": "/lib/a.so", "SPILLWAY": "poll_ms=1"}


# Prints as YCSB does, twice as fast with the accelerator, writes a file and leaves it in its directory.
STUB = """
import os, pathlib, sys
with_it = "LD_PRELOAD" in os.environ
place = pathlib.Path(sys.argv[1])
assert place.is_dir() and not list(place.iterdir())
(place / "file").write_bytes(bytes(100_000))
print(f"[OVERALL], Throughput(ops/sec), {2000 if with_it else 1000}")
print(f"[INSERT], MaxLatency(us), {500 if with_it else 50000}")
"""


def setting(tmp_path: Path, command: list[str], **more: Any) -> Setting:
    # A library that exists and does nothing: the loader reports one that does not.
    library = tmp_path / "libempty.so"
    if not library.exists():
        subprocess.run(["cc", "-shared", "-o", library, "-x", "c", "/dev/null"], check=True)
    return Setting(**{"command": command, "library": library, "configuration": "", "parent": tmp_path, "turns": 3,
                      "keeps": False, **more})  # fmt: skip


def test_turns_alternate_and_leave_nothing(tmp_path: Path) -> None:
    turns: list[tuple[int, str]] = []
    found = compare(
        setting(tmp_path, [sys.executable, "-c", STUB, "{db}"]), lambda turn, side, _: turns.append((turn, side))
    )
    assert turns == [(1, "without"), (1, "with"), (2, "with"), (2, "without"), (3, "without"), (3, "with")]
    assert found["figures"]["throughput overall"] == {"without": 1000, "with": 2000, "ratio": 2}
    assert found["figures"]["worst_write_us"] == {"without": 50000, "with": 500, "ratio": 0.01}
    assert found["figures"]["wall_s"]["ratio"] is not None
    assert len(found["runs"]) == 6
    assert not list(tmp_path.glob("spillway-accelerate-*"))


def test_kept_databases_are_named(tmp_path: Path) -> None:
    found = compare(setting(tmp_path, [sys.executable, "-c", STUB, "{db}"], turns=1, keeps=True), lambda *_: None)
    assert (Path(found["directory"]) / "1-with" / "file").stat().st_size == 100_000
    assert "Throughput" in (Path(found["directory"]) / "1-without.log").read_text()


def test_a_program_that_fails_is_quoted_and_leaves_nothing(tmp_path: Path) -> None:
    failing = [sys.executable, "-c", "import sys; print('no luck'); sys.exit(3)", "{db}"]
    with pytest.raises(RunFailed, match=r"without the accelerator ended with exit code 3:\nno luck"):
        compare(setting(tmp_path, failing), lambda *_: None)
    assert not list(tmp_path.glob("spillway-accelerate-*"))


def test_the_database_must_be_named(tmp_path: Path) -> None:
    with pytest.raises(SpillwayError, match=r"write \{db\} in the place of its directory"):
        compare(setting(tmp_path, ["true"]), lambda *_: None)


def test_a_program_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(SpillwayError, match="/no/program cannot be started: no such file"):
        compare(setting(tmp_path, ["/no/program", "{db}"]), lambda *_: None)


def command(*words: str, **more: Any) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "spillway.cli", "accelerate", *words],
        env={**os.environ, "SPILLWAY_ACCELERATE": str(more.pop("library", LIBRARY))},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
        **more,
    )


@pytest.fixture
def library(tmp_path: Path) -> Path:
    return setting(tmp_path, []).library


def test_the_exit_code_is_the_programs(library: Path) -> None:
    assert command("--", "sh", "-c", "exit 7", library=library).returncode == 7
    assert command("--", "sh", "-c", "kill -TERM $$", library=library).returncode == -signal.SIGTERM


def test_signals_reach_the_program(library: Path) -> None:
    with subprocess.Popen(
        [
            sys.executable,
            "-m",
            "spillway.cli",
            "accelerate",
            "--",
            "sh",
            "-c",
            "trap 'exit 9' TERM; echo up; while :; do sleep 0.1; done",
        ],
        env={**os.environ, "SPILLWAY_ACCELERATE": str(library)},
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout
        assert process.stdout.readline() == "up\n"
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 9


def test_the_program_gets_the_settings(library: Path, tmp_path: Path) -> None:
    done = command(
        *("--capacity", "1GiB", "--set", "poll_ms=5", "--report", str(tmp_path / "r.json"), "--", "env"),
        library=library,
    )
    variables = dict(line.split("=", 1) for line in done.stdout.splitlines() if "=" in line)
    assert variables["LD_PRELOAD"].split(":")[0] == str(library)
    assert variables["SPILLWAY"] == "capacity=1GiB;poll_ms=5"
    assert variables["SPILLWAY_REPORT"] == str(tmp_path / "r.json")


def test_wrong_input_is_one_sentence(library: Path) -> None:
    for words, says in (
        (("--set", "capcity=1GiB", "--", "true"), "did you mean 'capacity'?"),
        (("--compare", "--", "true"), "write {db}"),
        (("--", "/no/program"), "/no/program cannot be started"),
    ):
        done = command(*words, library=library)
        assert done.returncode == 2
        assert says in done.stderr
        assert len(done.stderr.splitlines()) == 1


def test_a_missing_library_is_one_sentence() -> None:
    done = command("--", "true", library="/no/library.so")
    assert done.returncode == 2
    assert "SPILLWAY_ACCELERATE is '/no/library.so', which is not a file" in done.stderr


def test_the_table(tmp_path: Path, library: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPILLWAY_ACCELERATE", str(library))
    result = CliRunner().invoke(
        spillway,
        ["accelerate", "--compare", "--turns", "1", "--in", str(tmp_path), "--", sys.executable, "-c", STUB, "{db}"],
        catch_exceptions=False,
    )
    rows = [line.split() for line in result.stdout.splitlines()]
    assert ["overall,", "ops/s", "1,000", "2,000", "2.00"] in rows
    assert ["worst", "write,", "ms", "50.0", "0.5", "0.01"] in rows
    assert "Nothing was accelerated: the program opened no database through RocksDB's shared library." in result.stdout


@pytest.mark.native
def test_db_bench_compared(tmp_path: Path) -> None:
    need_tools()
    done = command(
        *("--compare", "--turns", "1", "--json", "--in", str(tmp_path), "--", "db_bench", "--db={db}"),
        *("--benchmarks=fillrandom", "--num=20000", "--histogram", *STALLING),
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    for name in ("throughput fillrandom", "worst_write_us", "wall_s"):
        assert all(found["figures"][name][side] > 0 for side in ("without", "with", "ratio"))
    [without, with_it] = found["runs"]
    assert without["databases"] == []
    # db_bench opens a database, destroys it and opens it again.
    assert [each["accelerated"] for each in with_it["databases"]] == [True, True]


@pytest.mark.native
def test_a_c_program_by_the_command(tmp_path: Path) -> None:
    need_library()
    user = compile_user(tmp_path)
    programs = Programs(tmp_path)
    done = command("--report", str(programs.report), "--", str(user), "write", str(programs.database), "100")
    assert done.returncode == 0, done.stderr
    assert programs.reports()[0]["accelerated"]


def test_a_library_that_cannot_be_preloaded_is_one_sentence(tmp_path: Path) -> None:
    for name in ("a directory", "a:directory"):
        directory = tmp_path / name
        directory.mkdir()
        library = Path(shutil.copy(setting(tmp_path, []).library, directory))
        done = command("--", "true", library=library)
        assert done.returncode == 2
        assert "LD_PRELOAD cannot name" in done.stderr
        assert len(done.stderr.splitlines()) == 1


def test_the_turns_without_it_are_without_it_where_it_is_preloaded_already(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = tmp_path / "libother.so"
    empty = setting(tmp_path, []).library
    preloaded = tmp_path / "installed" / "libspillway-accelerate.so"
    preloaded.parent.mkdir()
    for copy in (other, preloaded):
        shutil.copy(empty, copy)
    monkeypatch.setenv("LD_PRELOAD", f"{preloaded} {other}")
    printing = [sys.executable, "-c", "import os; print(os.environ['LD_PRELOAD'])", "{db}"]
    found = compare(setting(tmp_path, printing, turns=1, keeps=True), lambda *_: None)
    logs = {side: (Path(found["directory"]) / f"1-{side}.log").read_text() for side in ("without", "with")}
    assert logs["without"] == f"{other}\n"
    assert logs["with"].startswith(f"{empty}:")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_an_interrupted_comparison_ends_what_the_program_started_and_leaves_nothing(
    library: Path, tmp_path: Path, number: signal.Signals
) -> None:
    # The program's own child writes to the database, and would go on.
    writing = "import os, sys, time, itertools\nopen(sys.argv[2], 'w').write(str(os.getpid()))\n"
    writing += "for i in itertools.count():\n    open(f'{sys.argv[1]}/{i}', 'w').close(); time.sleep(0.001)\n"
    told = tmp_path / "told"
    with subprocess.Popen(
        [
            *(sys.executable, "-m", "spillway.cli", "accelerate", "--compare", "--in", str(tmp_path), "--", "sh", "-c"),
            *('"$@"; true', "sh", sys.executable, "-c", writing, "{db}", str(told)),
        ],
        env={**os.environ, "SPILLWAY_ACCELERATE": str(library)},
        preexec_fn=lambda: signal.signal(number, signal.SIG_DFL),  # under nohup, one that is ignored
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        deadline = time.monotonic() + 60
        while not (told.exists() and told.read_text()) and time.monotonic() < deadline:
            time.sleep(0.02)
        process.send_signal(number)
        _, said = process.communicate(timeout=60)
    assert process.returncode == 130
    assert said.splitlines()[-1].startswith("spillway: ")
    assert not list(tmp_path.glob("spillway-accelerate-*"))
    child = Path(f"/proc/{told.read_text()}/stat")
    assert not child.exists() or child.read_text().rsplit(")", 1)[1].split()[0] == "Z"
