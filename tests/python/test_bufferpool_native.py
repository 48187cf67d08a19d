"""Sweeps of the real pool on small emulated drives and a real file: laws, the contract, and what is left behind."""

import json
from pathlib import Path
from typing import Any

import pytest
from conftest import ROOT, Invoke
from needs import need_direct_io
from test_contract import MakeValidator

from spillway.bufferpool import pool as bufferpool_pool
from spillway.bufferpool import sweep as bufferpool
from spillway.native.process import Event, run_native
from spillway.profile import saturation

pytestmark = [pytest.mark.native, pytest.mark.usefixtures("real_native")]

# Eight dies that take 60 us for a write and no write cache to hide it: eight writes at once are what it can do.
DRIVE = {
    "capacity.capacity_bytes": "128MiB",
    "geometry.channels": "8",
    "geometry.dies_per_chip": "1",
    "geometry.planes_per_die": "1",
    "geometry.page_bytes": "4096",
    "geometry.pages_per_block": "64",
    "capacity.spare_factor": "0.5",
    "timing.read_ns": "[10_000]",
    "timing.program_ns": "[60_000]",
    "write_cache.bytes": "0",
}
SETTINGS = [word for key, value in DRIVE.items() for word in ("--set", f"{key}={value}")]
POOL = ("--pool-pages", 512, "--operations", 4000)


def collect(request: dict[str, Any]) -> tuple[list[Event], Event]:
    events: list[Event] = []
    return events, run_native("bufferpool", request, events.append)


def test_it_takes_the_example_and_answers_by_the_contract(validator: MakeValidator) -> None:
    request = json.loads((ROOT / "contract" / "examples" / "bufferpool.request.json").read_text())
    request["target"]["drive"]["preset_dirs"] = [str(ROOT / "presets")]
    events, result = collect(request)
    for event in [*events, result]:
        validator("events.schema.json").validate(event)
    validator("events.schema.json", "bufferpool.result").validate(result)
    assert result["complete"]
    # What the example says it answered is what it answers.
    example = (ROOT / "contract" / "examples" / "bufferpool.events.jsonl").read_text().splitlines()[-1]
    same = {name for name in result if name not in ("cpu_seconds", "peak_rss_bytes")}
    assert {n: v for n, v in result.items() if n in same} == {n: v for n, v in json.loads(example).items() if n in same}


def test_requests_match_the_schema(validator: MakeValidator) -> None:
    from spillway.bufferpool.pool import Workload, WriteBack, request
    from spillway.profile import parse_target

    target = parse_target("preset:quickstart").request(1, "steady", {})["target"]
    for workload in (Workload(), Workload(name="zipfian", prefetch=2, pages=9), Workload(trace=Path("t"))):
        for write_back in (WriteBack(4), WriteBack(1, 64)):
            validator("bufferpool.request.schema.json").validate(request(target, workload, write_back, 1, 100))


@pytest.mark.parametrize("policy", ["clock-sweep", "lru"])
def test_a_sweep_finds_what_the_drive_is_made_of(policy: str, tmp_path: Path, invoke: Invoke) -> None:
    out = tmp_path / "sweep"
    words = ("--target", "preset:quickstart", *SETTINGS, *POOL, "--policy", policy, "--writers", "queue")
    swept = invoke("bufferpool", *words, "--sweep", "--repeats", 2, "--out", out, "--json").json()
    assert swept == json.loads((out / "sweep.json").read_text())
    assert {path.name for path in out.iterdir()} == {"sweep.json", "sweep.csv", "report.html"}
    assert (out / "sweep.csv").read_text().count("\n") == 1 + 2 * len(swept["steps"])
    speed_ups = {step["write_back"]: step["speed_up"]["value"] for step in swept["steps"]}
    # Writes fall on the dies the log comes to in turn: they overlap until all eight are busy, and not beyond.
    assert speed_ups[8] > speed_ups[4] > speed_ups[2] > 1.1
    assert speed_ups[max(speed_ups)] < 1.25 * speed_ups[8]
    assert all(step["speed_up"]["value"] < step["write_back"] or step["write_back"] == 1 for step in swept["steps"])


def test_in_virtual_time_threads_cost_what_was_measured(tmp_path: Path, invoke: Invoke) -> None:
    words = ("--target", "preset:quickstart", *SETTINGS, *POOL, "--sweep", "--repeats", 1)
    swept = invoke("bufferpool", *words, "--out", tmp_path / "sweep", "--json").json()
    (threads,) = swept["beside"]
    assert (swept["writers"], threads["writers"]) == ("queue", "threads")
    # One page is nobody's but the pool's own; of several, each has its thread, and the drive has no host stack.
    assert threads["steps"][0]["operations_per_s"] == swept["steps"][0]["operations_per_s"]
    assert threads["steps"][0]["hand_off_us"] is None
    for queue, by_threads in zip(swept["steps"], threads["steps"], strict=True):
        assert by_threads["pages_written_per_operation"] == queue["pages_written_per_operation"]
        # Beyond eight the pages wait for the drive while the threads are still called, and it comes to the same.
        if 1 < queue["write_back"] <= 4:
            assert by_threads["hand_off_us"] > 0
            assert by_threads["operations_per_s"]["value"] < queue["operations_per_s"]["value"]


def test_a_pool_that_chooses_n_w_comes_near_the_best_fixed_one(tmp_path: Path, invoke: Invoke) -> None:
    words = ("--target", "preset:quickstart", *SETTINGS, "--pool-pages", 512, "--operations", 40_000)
    swept = invoke(
        "bufferpool",
        *words,
        "--sweep",
        "--tuned",
        "--writers",
        "queue",
        "--repeats",
        1,
        "--out",
        tmp_path / "x",
        "--json",
    ).json()
    ways = {each["way"]: each for each in swept["tuned"]}
    assert set(ways) == {"profile", "auto"}
    for way in ways.values():
        assert way["of_best"]["value"] > 0.95, way
    assert "tuned" in (tmp_path / "x" / "sweep.csv").read_text().splitlines()[0]
    alone = invoke("bufferpool", *words, "--write-back", "auto", "--json").json()
    assert alone["pool"]["write_back"] == alone["tuning"]["path"][-1] == ways["auto"]["write_back"]
    by_profile = invoke("bufferpool", *words, "--write-back", "profile", "--json").json()
    assert by_profile["pool"]["write_back"] == ways["profile"]["write_back"]


@pytest.mark.long
@pytest.mark.parametrize("preset", ["intel-p4510", "intel-s4610", "intel-p4800x", "samsung-990-pro"])
def test_on_presets_a_pool_that_chooses_n_w_comes_within_a_twentieth(
    preset: str, tmp_path: Path, invoke: Invoke
) -> None:
    words = ("--target", f"preset:{preset}", "--sweep", "--tuned", "--writers", "queue", "--repeats", 2)
    swept = invoke("bufferpool", *words, "--out", tmp_path / "x", "--json").json()
    for way in swept["tuned"]:
        assert way["of_best"]["value"] > 0.95, way


@pytest.fixture
def hurried(monkeypatch: pytest.MonkeyPatch) -> None:
    """A sweep in real time that is done in a second or two: its figures are worth nothing."""
    monkeypatch.setattr(saturation, "REAL_POINT_S", 0.01)
    monkeypatch.setattr(saturation, "REAL_CONCURRENCIES", (1, 2, 4, 8))
    monkeypatch.setattr(bufferpool_pool, "TEST_FILE_BYTES", 2**23)
    monkeypatch.setattr(bufferpool, "WRITE_BACKS", (1, 4))


REAL = ("--sweep", "--repeats", 1, "--pool-pages", 64, "--operations", 200)


@pytest.mark.usefixtures("hurried")
def test_a_paced_sweep_has_real_threads(tmp_path: Path, invoke: Invoke) -> None:
    words = ("--target", "preset:quickstart", *SETTINGS, "--paced", *REAL)
    swept = invoke("bufferpool", *words, "--out", tmp_path / "sweep", "--json").json()
    assert swept["conditions"]["time"] == "real, the drive emulated"
    for curve in (swept, *swept["beside"]):
        assert [step["write_back"] for step in curve["steps"]] == [1, 4]
        assert all(step["hand_off_us"] is None for step in curve["steps"])


@pytest.mark.usefixtures("hurried")
def test_a_sweep_of_a_directory_leaves_only_its_report(tmp_path: Path, invoke: Invoke) -> None:
    place, out = tmp_path / "place", tmp_path / "sweep"
    place.mkdir()
    need_direct_io(place)
    words = ("--target", place, *REAL, "--writers", "queue", "--writers", "threads", "--writers", "new-threads")
    ended = invoke("bufferpool", *words, "--out", out, "--json")
    swept = ended.json()
    assert [curve["writers"] for curve in (swept, *swept["beside"])] == ["queue", "threads", "new-threads"]
    assert list(place.iterdir()) == []
    assert {path.name for path in out.iterdir()} == {"sweep.json", "sweep.csv", "report.html"}


def test_more_threads_than_may_be_are_refused(invoke: Invoke) -> None:
    words = ("--target", "preset:quickstart", *SETTINGS, "--pool-pages", 4096, "--write-back", 2000)
    ended = invoke("bufferpool", *words, "--writers", "threads")
    assert (ended.code, ended.out) == (2, "")
    assert "--write-back is 2000; with --writers threads it takes at most 1024" in ended.err


def test_same_seed_same_figures(invoke: Invoke) -> None:
    def figures(seed: int) -> dict[str, Any]:
        words = ("--target", "preset:quickstart", *SETTINGS, *POOL, "--write-back", 8, "--seed", seed, "--json")
        found: dict[str, Any] = invoke("bufferpool", *words).json()
        return {name: value for name, value in found.items() if name not in ("cpu_seconds", "peak_rss_bytes")}

    assert figures(3) == figures(3)
    assert figures(3) != figures(4)


def test_a_trace_that_fits_says_so_and_leaves_nothing(tmp_path: Path, invoke: Invoke) -> None:
    out = tmp_path / "sweep"
    words = ("--target", "preset:quickstart", *SETTINGS, "--pages", 100)
    ended = invoke("bufferpool", *words, "--sweep", "--out", out)
    assert (ended.code, ended.out) == (2, "")
    assert "the trace fits in it" in ended.err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("--pool-pages", 4, "--write-back", 8), "--write-back is 8 and --pool-pages 4"),
        (("--pages", 10**9), "--pages is 1000000000; the target has"),
        (("--page-bytes", 100), "--page-bytes is 100; it takes a multiple"),
        (("--host-stack", "bypas"), "--host-stack is 'bypas'; this drive takes none"),
    ],
)
def test_refusals_are_in_words_of_flags(words: tuple[Any, ...], says: str, invoke: Invoke) -> None:
    ended = invoke("bufferpool", "--target", "preset:quickstart", *SETTINGS, *words)
    assert (ended.code, ended.out) == (2, "")
    assert says in ended.err


def test_a_bad_line_of_a_trace_is_named(tmp_path: Path, invoke: Invoke) -> None:
    trace = tmp_path / "trace"
    trace.write_text("r 1\nrw 2\n")
    ended = invoke("bufferpool", "--target", "preset:quickstart", *SETTINGS, "--trace", trace)
    assert ended.code == 2
    assert f"{trace} line 2: not a reference; a line is r PAGE or w PAGE" in ended.err


def test_a_file_is_not_written_without_leave(tmp_path: Path, invoke: Invoke) -> None:
    need_direct_io(tmp_path)
    data = tmp_path / "data"
    content = bytes(range(256)) * (1 << 14)
    data.write_bytes(content)
    ended = invoke("bufferpool", "--target", data, *POOL)
    assert ended.code == 2
    assert "--destroy-data" in ended.err
    assert data.read_bytes() == content
