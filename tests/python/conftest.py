"""What the Python tests share: a fake native side, a way to call the command, golden texts, the schemas."""

import gc
import html
import json
import os
import shutil
import signal
import sys
from collections.abc import Callable, Generator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from referencing import Registry, Resource

ROOT = Path(__file__).parents[2]
CONTRACT = ROOT / "contract"
# RocksDB on a drive so small that flushes, compactions and garbage collection take seconds; a table of a plan.
SMALL_ROCKSDB = """[engine.options]
write_buffer_size = 1048576
max_bytes_for_level_base = 4194304
target_file_size_base = 1048576
compression = "kNoCompression"
use_direct_reads = true
use_direct_io_for_flush_and_compaction = true
"""
# A file goes to one process: a long one at the end would leave a core idle.
LONGEST = ["test_suite_run.py", "test_run.py", "test_with_native.py", "test_notebook.py", "test_sustain.py"]
LONGEST += ["test_causes_native.py", "test_advise_command.py", "test_frames_simulators.py", "test_sweep_command.py"]
LONGEST += ["test_readme.py", "test_sustain_native.py", "test_profile_native.py", "test_plugin.py", "test_recover.py"]
LONGEST += ["test_precondition_native.py", "test_sweep_hostile.py", "test_sweep.py", "test_wrong_types.py"]
LONGEST += ["test_suite.py", "test_cost.py", "test_compare_runs.py", "test_compare_native.py", "test_stage.py"]
LONGEST += ["test_comparison.py", "test_compare_refusals.py", "test_profile.py", "test_report.py"]
LONGEST += ["test_compare_rates.py", "test_advise_native.py", "test_sweep_run.py", "test_frames_wrong_types.py"]
LONGEST += ["test_sweep_submitit.py"]


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--rewrite-golden", action="store_true", help="write golden texts instead of comparing with them")


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """What collecting makes stays to the end: to look for garbage in it takes a third of its time, and later more."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The files that take longest come first: the others are run beside them."""
    items.sort(key=lambda item: LONGEST.index(item.path.name) if item.path.name in LONGEST else len(LONGEST))


@dataclass
class Outcome:
    """What a command printed and how it ended."""

    code: int
    out: str
    err: str

    def json(self) -> Any:
        return json.loads(self.out)


Invoke = Callable[..., Outcome]


@pytest.fixture(autouse=True)
def without_reports(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs draw no report, which takes longer than all else that a test does. Tests that look at one are marked."""
    if request.node.get_closest_marker("reports") is None:
        monkeypatch.setattr("spillway.run.execute._write_report", leave_a_page)
        monkeypatch.setattr("spillway.sweep.gather._draw", leave_a_page)


def leave_a_page(rundir: Path) -> None:
    """In the place of a report: a test that reads it finds nothing that it could look for."""
    (rundir / "report.html").write_text("not drawn: the test is not marked `reports`")


@pytest.fixture
def suite(plan_file: Path, tmp_path: Path) -> Path:
    """A suite of two plans; ``a`` is a sweep."""
    from made_suite import CLAIMS, SHORT, SUITE, SWEEP

    directory = tmp_path / "two"
    directory.mkdir()
    (directory / "suite.toml").write_text(SUITE)
    (directory / "a.toml").write_text(SHORT.replace('name = "small"', 'name = "a"\nsummary = "first"') + SWEEP)
    (directory / "b.toml").write_text(SHORT.replace('name = "small"', 'name = "b"'))
    (directory / "claims.toml").write_text(CLAIMS)
    return directory


@pytest.fixture
def invoke(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Invoke:
    """Calls the command as its entry point does."""
    from spillway import cli

    def call(*words: object) -> Outcome:
        monkeypatch.setattr(sys, "argv", ["spillway", *map(str, words)])
        capsys.readouterr()
        code = 0
        try:
            cli.main()
        except SystemExit as end:
            code = end.code if isinstance(end.code, int) else 1
        captured = capsys.readouterr()
        return Outcome(code, captured.out, captured.err)

    return call


@dataclass
class Fake:
    """The fake native side: how it shall behave, and what it was asked."""

    path: Path
    log_path: Path
    monkeypatch: pytest.MonkeyPatch

    def behave(self, mode: str) -> None:
        self.monkeypatch.setenv("FAKE_MODE", mode)

    def log(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.log_path.read_text().splitlines()] if self.log_path.exists() else []

    def requests(self) -> list[dict[str, Any]]:
        return [entry["request"] for entry in self.log() if "request" in entry]


def start_of_fake() -> str:
    """A script that starts the fake: as a module, which is compiled once, and without what pip has installed."""
    code = "import sys, fake_native; sys.exit(fake_native.main())"
    return f'#!/bin/sh\nPYTHONPATH="{Path(__file__).parent}" exec "{sys.executable}" -P -S -c "{code}" "$@"\n'


@pytest.fixture
def fake(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Fake:
    directory = tmp_path_factory.mktemp("native")
    path = directory / "spillway-native"
    path.write_text(start_of_fake())
    path.chmod(0o755)
    monkeypatch.setenv("SPILLWAY_NATIVE", str(path))
    monkeypatch.setenv("FAKE_LOG", str(directory / "log"))
    monkeypatch.setenv("FAKE_MODE", "ok")
    return Fake(path, directory / "log", monkeypatch)


@pytest.fixture
def real_native() -> Path:
    """The built executable. Its absence is a failure: leave these tests out with -m 'not native'."""
    from spillway.native.process import find_native

    os.environ.pop("FAKE_MODE", None)
    return find_native()


@pytest.fixture(scope="session")
def kept_runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where runs are that several tests begin with."""
    return tmp_path_factory.mktemp("kept-runs")


@pytest.fixture
def made(
    fake: Fake, plan_file: Path, invoke: Invoke, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kept_runs: Path
) -> Any:
    """Makes run directories in the current directory, without reports."""
    from compared_runs import Made

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("spillway.run.execute._write_report", lambda rundir: None)  # takes longer than all else
    return Made(invoke, plan_file, kept_runs)


def run_by_fake(directory: Path, text: str, *, with_report: bool = False, **settings: Any) -> Path:
    """The run directory of a plan by the fake native side, for fixtures that several tests share."""
    from spillway.frames import run_plan

    native = directory / "spillway-native"
    native.write_text(start_of_fake())
    native.chmod(0o755)
    (directory / "presets").mkdir()
    (directory / "presets" / "tiny.toml").write_text(PRESET)
    (directory / "small.toml").write_text(text)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SPILLWAY_NATIVE", str(native))
        patch.setenv("SPILLWAY_PRESETS", str(directory / "presets"))
        patch.setenv("FAKE_MODE", "ok")
        return run_plan(directory / "small.toml", directory / "run", settings=settings, with_report=with_report).path


@pytest.fixture(scope="session")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of two arms with two repetitions by the fake native side, made once; tests change copies of it."""
    from compared_runs import ARMS

    return run_by_fake(tmp_path_factory.mktemp("template"), PLAN + ARMS, repetitions=2)


@pytest.fixture
def run_directory(template: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of it, ``run`` in the current directory."""
    monkeypatch.chdir(tmp_path)
    return Path(shutil.copytree(template, "run"))


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Callable[[str, str], None]:
    """Compares a text with tests/python/golden/NAME; --rewrite-golden writes it."""

    def check(name: str, text: str) -> None:
        path = Path(__file__).parent / "golden" / name
        text = "\n".join(line.rstrip() for line in text.splitlines()) + "\n"
        if request.config.getoption("--rewrite-golden"):
            path.write_text(text, encoding="utf-8")
        assert text == path.read_text(encoding="utf-8"), f"{path.name} differs; see --rewrite-golden"

    return check


def _registry() -> Registry[Any]:
    documents = [json.loads(path.read_text()) for path in CONTRACT.glob("*.schema.json")]
    return Registry().with_resources((each["$id"], Resource.from_contents(each)) for each in documents)


@pytest.fixture(scope="session")
def validator() -> Callable[[str, str], Draft202012Validator]:
    """A validator for a schema file, or for one of its definitions."""
    registry = _registry()

    def make(name: str, definition: str = "") -> Draft202012Validator:
        document = json.loads((CONTRACT / name).read_text())
        schema = {"$ref": document["$id"] + (f"#/$defs/{definition}" if definition else "")}
        return Draft202012Validator(schema, registry=registry)

    return make


@pytest.fixture
def interrupted_report(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """Has a Ctrl-C come while the next report is made."""
    from spillway import report

    def interrupt() -> None:
        write = report.write_report

        def interrupted(*words: Any) -> None:
            monkeypatch.setattr(report, "write_report", write)
            os.kill(os.getpid(), signal.SIGINT)
            write(*words)

        monkeypatch.setattr(report, "write_report", interrupted)

    return interrupt


def check_refused(out: Path, said: str) -> None:
    """A run directory of a run that was refused before it measured anything: valid, small, and saying so."""
    from spillway.rundir.directory import OF_REFUSED, is_refused, read_run

    run = read_run(out)
    assert is_refused(out)
    assert sorted(path.name for path in out.iterdir()) == sorted(OF_REFUSED)
    assert (run.arms, run.manifest["complete"], run.manifest["refused"]) == ([], False, True)
    summary = json.loads((out / "summary.json").read_text())
    for document in (run.manifest, summary):
        assert said in document["failure"]
        assert document["complete"] is False
    page = (out / "report.html").read_text()
    assert "Incomplete run" in page
    assert html.escape(said, quote=False) in page.replace("&#39;", "'").replace("&#34;", '"')
    assert run.plan_toml


PLAN = """
name = "small"
sample_interval_ms = 100
[drive]
preset = "tiny"
[engine.options]
write_buffer_size = 1048576
[load]
value_bytes = 1024
num = 10000
[[phases]]
name = "fill"
workload = "fillrandom"
duration_s = 12
"""

PRESET = """
name = "tiny"
summary = "A drive for tests"
[capacity]
capacity_bytes = "64MiB"
spare_factor = 0.2
"""


@pytest.fixture
def plan_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A plan that any machine can run against the fake, with a preset directory of its own."""
    presets = tmp_path / "presets"
    presets.mkdir()
    (presets / "tiny.toml").write_text(PRESET)
    monkeypatch.setenv("SPILLWAY_PRESETS", str(presets))
    path = tmp_path / "small.toml"
    path.write_text(PLAN)
    return path
