"""The emulated drive as a rocksdb::Env, named in option strings and OPTIONS files by programs that link RocksDB."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from accelerated_programs import rocksdb_flags, rocksdb_version
from needs import PLUGIN, ROOT, need, need_plugin_and_db_bench

pytestmark = pytest.mark.native

PROGRAMS = ROOT / "examples/programs"
DRIVE = "spillway://preset:quickstart,capacity:512MiB,pacing:off"
KEYS = 2000


@pytest.fixture(scope="session")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    need(shutil.which("cc"), "a C compiler")
    program = tmp_path_factory.mktemp("programs") / "store"
    warnings = ["-Wall", "-Wextra", "-Werror"]
    subprocess.run(["cc", *warnings, str(PROGRAMS / "store.c"), "-o", str(program), *rocksdb_flags()], check=True)
    return program


@pytest.fixture(params=["c", "python"])
def program(request: pytest.FixtureRequest, compiled: Path) -> list[str]:
    need_plugin_and_db_bench()
    return [str(compiled)] if request.param == "c" else [sys.executable, str(PROGRAMS / "store.py")]


def run(directory: Path, command: list[str]) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "LD_PRELOAD": str(PLUGIN)}
    return subprocess.run(
        command, cwd=directory, env=environment, capture_output=True, text=True, timeout=120, check=False
    )


def counters(directory: Path) -> Any:
    return json.loads((directory / "spillway-counters.json").read_text())["counters"]


def expect_on_the_drive(directory: Path, done: subprocess.CompletedProcess[str]) -> None:
    assert done.returncode == 0, done.stderr
    assert done.stdout == f"{KEYS} of {KEYS} keys\n"
    assert counters(directory)["host_bytes_written_by_cause"]["wal"] >= KEYS * 400


def test_an_option_string_names_the_drive(tmp_path: Path, program: list[str]) -> None:
    done = run(tmp_path, [*program, "db", f"env={DRIVE};write_buffer_size=1048576", str(KEYS)])
    expect_on_the_drive(tmp_path, done)


@pytest.mark.skipif(rocksdb_version() >= (11, 0), reason="RocksDB 11.8 takes such an id for an option of the usual Env")
def test_an_id_in_braces_may_have_the_usual_spelling(tmp_path: Path, program: list[str]) -> None:
    usual = DRIVE.replace(",", ";").replace(":", "=").replace("=//", "://")
    done = run(tmp_path, [*program, "db", f"env={{id={{{usual}}}}}", str(KEYS)])
    expect_on_the_drive(tmp_path, done)


def test_an_options_file_names_the_drive(tmp_path: Path, compiled: Path) -> None:
    need_plugin_and_db_bench()
    made = subprocess.run([compiled, tmp_path / "plain", "", "10"], capture_output=True, text=True, check=False)
    assert made.returncode == 0, made.stderr
    (written,) = (tmp_path / "plain").glob("OPTIONS-*")
    (tmp_path / "options").mkdir()
    text = written.read_text().replace("[DBOptions]", f"[DBOptions]\n  env={DRIVE}", 1)
    (tmp_path / "options" / written.name).write_text(text)
    done = run(tmp_path, [str(compiled), "db", f"@{tmp_path}/options", str(KEYS)])
    expect_on_the_drive(tmp_path, done)


@pytest.mark.parametrize(
    ("uri", "says"),
    [
        ("spillway://", "no drive is named"),
        ("spillway://preste:quickstart", "there is no key 'preste', the nearest is 'preset'"),
        ("spillway://preset:quikstart", 'did you mean "quickstart"'),
        ("spillway://preset:quickstart,pacing:maybe", "pacing is 'maybe', it takes 'real' or 'off'"),
        ("spillway://preset:quickstart,page_cache", "'page_cache' is not of the form KEY=VALUE"),
    ],
)
def test_a_bad_drive_ends_the_program_with_one_sentence(
    tmp_path: Path, program: list[str], uri: str, says: str
) -> None:
    done = run(tmp_path, [*program, "db", f"env={uri}", "10"])
    assert done.returncode == 1
    assert says in done.stderr
    assert not (tmp_path / "db").exists()


def test_db_bench_and_ldb_take_the_env(tmp_path: Path) -> None:
    need_plugin_and_db_bench()
    kept = f"--env_uri={DRIVE},state:{tmp_path}/state"
    wrote = run(tmp_path, ["db_bench", kept, "--db=db", "--benchmarks=fillseq", f"--num={KEYS}", "--value_size=400"])
    assert wrote.returncode == 0, wrote.stderr
    read = run(tmp_path, ["ldb", kept, "--db=db", "scan", "--hex"])
    assert read.returncode == 0, read.stderr
    assert read.stdout.count("0x") == 2 * KEYS
    report = json.loads((tmp_path / "state/counters.json").read_text())
    assert report["standing"]["state"] == "loaded"
    assert report["counters"]["host_bytes_read"] > KEYS * 400


def test_both_spellings_name_one_drive(tmp_path: Path) -> None:
    """A drive that is in use is refused to others: the second spelling finds the first one's drive."""
    need_plugin_and_db_bench()
    kept = f"{DRIVE},state:{tmp_path}/state"
    usual = f"spillway://preset=quickstart;capacity=512MiB;pacing=off;state={tmp_path}/state"
    small = ["--db=db", "--num=100", "--value_size=100"]
    for flag in (f"--env_uri={kept}", f"--fs_uri={usual}", f"--env_uri={kept}"):
        done = run(tmp_path, ["db_bench", flag, "--benchmarks=fillseq", *small])
        assert done.returncode == 0, done.stderr
    assert json.loads((tmp_path / "state/counters.json").read_text())["standing"]["state"] == "loaded"
