"""What the command prints, and how it ends."""

import json
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from conftest import Fake, Invoke

from spillway import __version__
from spillway.figures.lifetime import DAY_S, YEAR_S

Golden = Callable[[str, str], None]

# The fields that the issue names for `spillway ssd simulate --json`.
PROMISED = {
    "ios", "iops", "bandwidth_mb_s", "latency_us", "wa_device", "host_bytes_written", "nand_bytes_programmed",
    "gc_victim_valid_mean", "erases", "unmapped_reads", "simulated_seconds", "cpu_seconds", "peak_rss_bytes",
}  # fmt: skip


def test_simulate_prints_one_object(fake: Fake, invoke: Invoke) -> None:
    ended = invoke("ssd", "simulate", "--json")
    assert (ended.code, ended.err) == (0, "")
    result = ended.json()
    assert set(result) >= PROMISED
    assert set(result["latency_us"]) >= {"mean", "p50", "p99", "p99_9", "max"}
    assert set(result["nand_bytes_programmed"]) >= {"host", "gc", "mapping", "wear", "fold"}
    assert "event" not in result


def test_simulate_says_what_the_drive_lasts(fake: Fake, invoke: Invoke) -> None:
    result = invoke("ssd", "simulate", "--json").json()
    found, nand = result["lifetime"], sum(result["nand_bytes_programmed"].values())
    rated = 10_000 * 9_663_676_416  # of the contract's example
    assert found["years"] == pytest.approx(rated / (nand / result["simulated_seconds"]) / YEAR_S)
    assert found["flash_bytes_per_operation"] == pytest.approx(nand / result["ios"])
    assert found["percentage_used"] == pytest.approx(100 * 14.2 / 10_000)
    assert found["percentage_used_by_run"] == pytest.approx(100 * nand / rated)
    assert found["drive_writes_per_day"] == pytest.approx(2 * DAY_S / result["simulated_seconds"])
    assert found["host_bytes_until_worn"] == pytest.approx(rated / result["wa_device"], rel=1e-6)
    assert not {"user_bytes_until_worn", "virtual_time"} & set(found)


def test_simulate_for_people(fake: Fake, invoke: Invoke, golden: Golden) -> None:
    golden("ssd-simulate.txt", invoke("ssd", "simulate").out)


def test_show_for_people(fake: Fake, invoke: Invoke, golden: Golden) -> None:
    golden("ssd-show.txt", invoke("ssd", "show").out)


def test_presets_for_people(plan_file: Path, invoke: Invoke) -> None:
    assert "tiny" in invoke("ssd", "presets").out
    assert invoke("ssd", "presets", "--json").json()["tiny"] == "A drive for tests"


def test_run_for_people(fake: Fake, plan_file: Path, tmp_path: Path, invoke: Invoke, golden: Golden) -> None:
    text = invoke("run", plan_file, "--out", tmp_path / "run").out
    golden("run.txt", text.replace(str(tmp_path), "TMP"))


def test_every_flag_arrives(fake: Fake, plan_file: Path, invoke: Invoke) -> None:
    words = (
        "--preset tiny --spare-factor 0.2 --gc fifo --workload mixed:0.3 --bs 8KiB --iodepth 4 "
        "--fill 0.5 --warmup 2 --ios 99 --initial sequential --range 0.4 --write-cache 1MiB --mapping-cache 0 "
        "--seed 7 --set timing.erase_ns=5"
    )
    assert invoke("ssd", "simulate", *words.split()).code == 0
    (request,) = fake.requests()
    assert request["seed"] == 7
    assert request["drive"]["preset"] == "tiny"
    assert request["drive"]["set"] == {
        "capacity.spare_factor": "0.2",
        "gc.policy": "fifo",
        "write_cache.bytes": "1048576",
        "mapping_cache.bytes": "0",
        "timing.erase_ns": "5",
    }
    assert request["initial"] == {"kind": "sequential", "fill": 0.5, "warmup_capacities": 2.0, "path": ""}
    assert request["workload"] == {
        "name": "mixed",
        "bs_bytes": 8192,
        "iodepth": 4,
        "read_share": 0.3,
        "hot_space": 0.1,
        "hot_traffic": 0.9,
        "range": 0.4,
        "ios": 99,
    }


def test_precondition_names_the_file(fake: Fake, tmp_path: Path, invoke: Invoke) -> None:
    state = tmp_path / "x.state"
    ended = invoke("ssd", "precondition", "--initial", "steady", "--out", state)
    assert ended.code == 0
    assert str(state) in ended.out
    assert invoke("ssd", "simulate", "--state", state, "--json").code == 0
    assert fake.requests()[1]["initial"]["path"] == str(state)


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("ssd", "simulate", "--gc", "greddy"), "did you mean 'greedy'"),
        (("ssd", "simulate", "--iodept", "3"), "--iodepth"),
        (("ssd", "simulate", "--iodepth", "0"), "0 is not in the range"),
        (("ssd", "show", "tny"), "did you mean 'tiny'"),
        (("ssd", "show", "tiny", "--preset", "tiny"), "both name the drive"),
        (("sdd",), "No such command 'sdd'"),
        (("run", "none.toml"), "none.toml: the plan cannot be read"),
        (("report", "none"), "there is no such run directory"),
    ],
)
def test_bad_input_is_one_sentence_and_exit_code_2(
    fake: Fake, plan_file: Path, invoke: Invoke, words: tuple[str, ...], says: str
) -> None:
    ended = invoke(*words)
    assert (ended.code, ended.out) == (2, "")
    assert says in ended.err
    assert ended.err.startswith("spillway: ")
    assert ended.err.count("\n") == 1


def test_a_native_refusal_and_a_native_failure(fake: Fake, invoke: Invoke) -> None:
    fake.behave("bad_input")
    assert invoke("ssd", "simulate").code == 2
    fake.behave("fails")
    ended = invoke("ssd", "simulate", "--json")
    assert (ended.code, ended.out) == (2, "")
    assert "the drive is full" in ended.err
    fake.behave("crashes")
    assert invoke("ssd", "simulate").code == 1


def test_as_a_program() -> None:
    def call(*words: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "spillway.cli", *words]
        return subprocess.run(command, capture_output=True, text=True, check=False)

    assert call("--version").stdout == f"spillway, version {__version__}\n"
    assert call("ssd", "simulate", "--help").returncode == 0
    bare = call()
    assert bare.returncode == 2
    assert "run" in bare.stderr


def test_a_ctrl_c_while_modules_are_read_is_one_sentence() -> None:
    script = (
        "import importlib.abc, sys\n"
        "class Struck(importlib.abc.MetaPathFinder):\n"
        "    def find_spec(self, name, path, target=None):\n"
        "        if name == sys.argv[1]: raise KeyboardInterrupt\n"
        "sys.meta_path.insert(0, Struck())\n"
        "from spillway.cli import main\n"
        "main()\n"
    )
    for module in ("spillway.cli.program", "click", "spillway.cli.run", "spillway.errors"):
        ended = subprocess.run([sys.executable, "-c", script, module], capture_output=True, text=True, check=False)
        assert (ended.returncode, ended.stdout, ended.stderr) == (130, "", "spillway: ended by Ctrl-C.\n"), module


def test_versions_agree() -> None:
    import tomllib

    document = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())
    assert document["project"]["version"] == __version__


def test_json_output_is_json_alone(fake: Fake, plan_file: Path, tmp_path: Path, invoke: Invoke) -> None:
    ended = invoke("run", plan_file, "--out", tmp_path / "run", "--json")
    assert json.loads(ended.out)["complete"] is True
    assert ended.err == ""


def test_a_sigint_that_the_parent_ignored_is_handled(invoke: Invoke) -> None:
    """A shell without job control begins what is in its background so; who sends one to it means it."""
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        assert invoke("--version").code == 0
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    finally:
        signal.signal(signal.SIGINT, before)
