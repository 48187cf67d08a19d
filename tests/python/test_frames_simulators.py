"""The simulators as functions, tables of many calls, profiles as frames, and charts as a notebook shows them."""

import csv
import itertools
import json
import math
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from browser import complaints, visit
from compared_runs import ARMS, Made
from conftest import PLAN, Fake, Invoke, start_of_fake
from test_frames import SWEPT, assert_one_sentence

import spillway
from spillway.errors import Interrupted, RunFailed, SpillwayError
from spillway.frames import simulators
from spillway.native.lines import encoded
from spillway.profile import read_profile as read_record

PRESET = "preset:mqsim-default"


# ---------------------------------------------------------------------------------------------------------------------
# The drive


def test_keywords_are_the_flags_of_the_command(fake: Fake, plan_file: Path, invoke: Invoke) -> None:
    words = (
        "--preset tiny --spare-factor 0.2 --gc fifo --workload mixed:0.3 --bs 8KiB --iodepth 4 --fill 0.5 --warmup 2 "
        "--ios 99 --initial sequential --range 0.4 --write-cache 1MiB --mapping-cache 0 --seed 7 "
        "--set timing.erase_ns=5"
    )
    said = invoke("ssd", "simulate", "--json", *words.split()).json()
    ours = spillway.simulate_drive(
        preset="tiny",
        spare_factor=0.2,
        gc="fifo",
        workload="mixed:0.3",
        bs=8192,
        iodepth=4,
        fill=0.5,
        warmup=2,
        ios=99,
        initial="sequential",
        range=0.4,
        write_cache="1MiB",
        mapping_cache=0,
        seed=7,
        settings={"timing.erase_ns": 5},
    )
    by_command, by_function = fake.requests()
    assert by_function == by_command
    assert ours == said


@pytest.mark.parametrize(
    ("keywords", "says"),
    [
        ({"iodept": 3}, "simulate_drive has no keyword 'iodept'; did you mean 'iodepth'?"),
        ({"gc": "greddy"}, "gc 'greddy' is none of"),
        ({"op": 0.1, "spare_factor": 0.1}, "spare_factor and op state the same thing twice"),
        ({"settings": "gc.policy=fifo"}, "it takes a table of keys and values"),
        ({"preset": "tny"}, "did you mean 'tiny'?"),
        (
            {"workload": "randread", "writes": 1},
            "writes counts written capacities, and randread writes nothing: use ios.",
        ),
        ({"state": "none"}, "state none: there is no such file"),
        ({"capacity": "big"}, "capacity is 'big', which is not a size"),
    ],
)
def test_bad_keywords_are_named_as_keywords(fake: Fake, plan_file: Path, keywords: dict[str, Any], says: str) -> None:
    with pytest.raises(SpillwayError, match=re.escape(says)) as refused:
        spillway.simulate_drive(**keywords)
    assert_one_sentence_of(refused.value)
    assert not re.search(r"(?<!\w)--[a-z]", str(refused.value))


WRONG: list[Any] = [5, -1, 1.5, math.nan, math.inf, 10**30, True, "", "x", b"x", [], [1], ["x"], {}, {"a": 1}, {1: 2},
                    [None], object(), np.array([1, 2]), np.float64("nan"), Path("x")]  # fmt: skip


def test_a_keyword_of_a_wrong_type_is_one_sentence(plan_file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def handed_over(request: dict[str, Any]) -> Any:
        encoded(request)
        raise Interrupted("it is a request.")

    monkeypatch.setattr(simulators, "run_native", lambda command, request: handed_over(request))
    monkeypatch.setattr("spillway.lsm.simulate", handed_over)
    of_lsm = [name for names in simulators.PARTS.values() for name in names]
    for function, names in (
        (spillway.simulate_drive, (*simulators._DRIVE, *simulators._WORK, "seed")),
        (spillway.simulate_lsm, (*of_lsm, *simulators.SPILL, *simulators._LSM_DRIVE, *simulators._INITIAL, "queries",
                                 "seed", "grain", "sample_interval_s")),
    ):  # fmt: skip
        for name, value in itertools.product(names, WRONG):
            try:
                function(**{name: value})
            except SpillwayError as error:
                assert "\n" not in str(error)
            except Exception as error:
                raise AssertionError(f"{function.__name__}({name}={value!r})") from error


def assert_one_sentence_of(error: SpillwayError) -> None:
    assert "\n" not in str(error)
    assert str(error)[-1] in ".?"


def test_a_simulation_that_was_ended_early_is_no_result(fake: Fake, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(simulators, "run_native", lambda command, request: {"event": "result", "complete": False})
    with pytest.raises(Interrupted, match="was ended early"):
        spillway.simulate_drive()


@pytest.mark.native
def test_the_same_keywords_give_the_same_figures(real_native: Path) -> None:
    def once(seed: int) -> dict[str, Any]:
        found = spillway.simulate_drive(preset="quickstart", capacity="512MiB", workload="randwrite", seed=seed)
        return {name: value for name, value in found.items() if "cpu_seconds" not in name and name != "peak_rss_bytes"}

    assert once(1) == once(1) != once(2)


# ---------------------------------------------------------------------------------------------------------------------
# The LSM shape


def test_lsm_keywords_go_to_their_parts_of_the_request(plan_file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sent: list[tuple[str, dict[str, Any]]] = []

    def native(command: str, request: dict[str, Any], on_event: object) -> dict[str, Any]:
        sent.append((command, request))
        nand = {"host": 300, "gc": 100}
        counts = {"user_bytes": 100, "host_bytes_written": 200, "nand_bytes_programmed": nand}
        counts |= {"held_bytes": 0, "live_user_bytes": 0, "simulated_seconds": 1.0, "stalls": {}}
        return {"event": "result", "complete": True, "levels": [{"level": 0, "bytes": 5}], **counts}

    monkeypatch.setattr(sys.modules["spillway.lsm.simulate"], "run_native", native)
    result = spillway.simulate_lsm(
        preset="tiny",
        fanout=4,
        write_buffer_size="64MiB",
        value_bytes=400,
        num=1000,
        put_ns=900,
        spill_capacity="1GiB",
        fill=0.5,
        queries=[{"workload": "readrandom", "threads": 2, "operations": 10}],
        seed=3,
    )
    ((command, request),) = sent
    assert command == "lsm-simulate"
    assert request["tree"] == {"fanout": 4, "write_buffer_size": 2**26}
    assert request["load"] == {"value_bytes": 400, "num": 1000}
    assert request["host"] == {"put_ns": 900}
    assert request["spill"] == {"capacity_bytes": 2**30}
    assert (request["drive"]["preset"], request["initial"]["fill"], request["seed"]) == ("tiny", 0.5, 3)
    assert request["queries"] == [{"workload": "readrandom", "threads": 2, "operations": 10}]
    assert (result["wa_app"], result["wa_device"], result["wa_total"]) == (2.0, 2.0, 4.0)
    assert "initial" not in (spillway.simulate_lsm() and sent[-1][1]), "a drive without data"
    frame = spillway.grid(spillway.simulate_lsm, fanout=[4, 8], queries=[{"workload": "readrandom"}])
    assert frame.fanout.tolist() == [4, 8]
    assert frame.levels_0_bytes.tolist() == [5, 5]
    with pytest.raises(SpillwayError, match="no keyword 'fan_out'; did you mean 'fanout'"):
        spillway.simulate_lsm(fan_out=4)
    with pytest.raises(SpillwayError, match="write_buffer_size is 'big', which is not a size"):
        spillway.simulate_lsm(write_buffer_size="big")


@pytest.mark.native
def test_another_fanout_writes_otherwise_and_the_same_keywords_the_same(real_native: Path) -> None:
    load = {"num": 400_000, "value_bytes": 400, "preset": "quickstart", "capacity": "1GiB"}
    tree = {"write_buffer_size": "2MiB", "max_bytes_for_level_base": "8MiB", "target_file_size_base": "2MiB"}
    frame = spillway.grid(spillway.simulate_lsm, fanout=[4, 10, 10], **load, **tree)
    assert frame.failure.isna().all()
    assert frame.wa_app[0] != frame.wa_app[1] == frame.wa_app[2]
    assert (frame.wa_app > 2).all()
    with pytest.raises(SpillwayError, match="fanout is 0"):
        spillway.simulate_lsm(fanout=0)


@pytest.mark.native
def test_samples_that_are_asked_for_are_in_the_result(real_native: Path, tmp_path: Path, invoke: Invoke) -> None:
    load: dict[str, Any] = {"num": 200_000, "value_bytes": 400, "preset": "quickstart", "capacity": "1GiB"}
    result = spillway.simulate_lsm(sample_interval_s=0.05, **load)
    course = tmp_path / "course.csv"
    words = "--preset quickstart --capacity 1GiB --num 200000 --value 400 --interval 0.05"
    assert invoke("lsm", "simulate", *words.split(), "--samples", course).code == 0
    rows = list(csv.DictReader(course.open(newline="")))
    assert len(result["samples"]) == len(rows) > 5
    assert [[str(value) for value in row.values()] for row in result["samples"]] == [list(row.values()) for row in rows]
    assert list(result["samples"][0]) == list(rows[0])
    finer = spillway.simulate_lsm(sample_interval_s=0.01, **load)
    assert len(finer["samples"]) > 3 * len(rows)
    assert finer["wa_app"] == result["wa_app"]
    assert "samples" not in spillway.simulate_lsm(**load)
    frame = spillway.grid(spillway.simulate_lsm, sample_interval_s=[0.05, 0.01], **load)
    assert not any("samples" in column for column in frame.columns)
    with pytest.raises(SpillwayError, match="sample_interval_s takes 0"):
        spillway.simulate_lsm(sample_interval_s=0.0001, **load)


# ---------------------------------------------------------------------------------------------------------------------
# Many calls


def test_a_grid_has_a_row_for_each_combination(fake: Fake, plan_file: Path) -> None:
    frame = spillway.grid(spillway.simulate_drive, preset="tiny", iodepth=[1, 4], bs=("4KiB", "16KiB"), fill=0.5)
    assert list(frame.columns[:5]) == ["preset", "fill", "iodepth", "bs", "failure"]
    assert frame.iodepth.tolist() == [1, 1, 4, 4]
    assert frame.bs.tolist() == ["4KiB", "16KiB"] * 2
    assert frame.failure.isna().all()
    one = spillway.simulate_drive(preset="tiny", iodepth=1, fill=0.5)
    assert frame.latency_p99_us[0] == one["latency_us"]["p99"]
    assert frame.nand_bytes_programmed_gc[0] == one["nand_bytes_programmed"]["gc"]
    assert str(frame.nand_bytes_programmed_gc.dtype) == "Int64"


def test_a_call_that_failed_is_a_row_and_one_that_is_refused_raises() -> None:
    def simulated(size: int) -> dict[str, Any]:
        if size == 2:
            raise RunFailed("the drive is full.")
        if size == 3:
            raise SpillwayError("size is 3, which is refused.")
        return {"iops": 10.0 * size}

    frame = spillway.grid(simulated, size=[1, 2])
    assert frame.iops.isna().tolist() == [False, True]
    assert frame.failure.tolist()[1] == "the drive is full."
    with pytest.raises(SpillwayError, match="which is refused"):
        spillway.grid(simulated, size=range(1, 4))
    assert len(spillway.grid(simulated, size=[])) == 0


# ---------------------------------------------------------------------------------------------------------------------
# Runs and profiles that are made from Python


def test_a_plan_runs_as_by_the_command(
    fake: Fake, plan_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    plan_file.write_text(PLAN + ARMS)
    run = spillway.run_plan(
        "small.toml", "run", settings={"load.num": 500, "repetitions": 2, "fs.discard": False}, arms=["old"]
    )
    assert run.complete
    assert run.arms.arm.tolist() == ["old"]
    assert [request["load"]["num"] for request in fake.requests()] == [500, 500]
    command = json.loads(Path("run/manifest.json").read_text())["command"]
    assert command[:3] == ["spillway", "run", "small.toml"]
    assert {"load.num=500", "repetitions=2", "fs.discard=false", "old"} <= set(command)
    assert len(spillway.run_plan("small.toml", settings={"seeds": [3, 4]}).repetitions) == 4
    assert len(list(Path("runs").iterdir())) == 1


def test_a_plan_that_is_refused_or_fails_raises(fake: Fake, plan_file: Path, tmp_path: Path) -> None:
    for settings, says in (({"load.nmu": 5}, "did you mean"), ({"load.num": {}}, "it takes a text, a number")):
        with pytest.raises(SpillwayError, match=says):
            spillway.run_plan(plan_file, tmp_path / "run", settings=settings)
    with pytest.raises(SpillwayError, match="the plan cannot be read"):
        spillway.run_plan(tmp_path / "none.toml")
    assert not (tmp_path / "run").exists()
    fake.behave("fails late")
    with pytest.raises(SpillwayError, match=f"the drive is full.*What was measured is in {tmp_path}/run") as failed:
        spillway.run_plan(plan_file, tmp_path / "run")
    assert failed.value.exit_code == 2
    assert "the drive is full" in spillway.read_run(tmp_path / "run").failure


@pytest.fixture(scope="module")
def profile(tmp_path_factory: pytest.TempPathFactory) -> Iterator[spillway.ProfileFrames]:
    """A profile of the fake drive, made once by the function."""
    directory = tmp_path_factory.mktemp("profiles")
    with pytest.MonkeyPatch.context() as patch:
        native = directory / "spillway-native"
        native.write_text(start_of_fake())
        native.chmod(0o755)
        patch.setenv("SPILLWAY_NATIVE", str(native))
        patch.setenv("FAKE_MODE", "ok")
        yield spillway.profile_drive(PRESET, directory / "p", with_report=False)


def test_a_profile_has_its_parameters_with_their_intervals(profile: spillway.ProfileFrames) -> None:
    record = read_record(profile.path)
    assert len(profile.samples) == len(record.samples)
    assert profile.samples.page_cost_us.tolist() == [each.page_cost_us for each in record.samples]
    assert profile.samples.k.tolist() == [each.numjobs * each.iodepth for each in record.samples]
    assert profile.mqssd.k.tolist() == list(record.mqssd)
    for row, costs in zip(profile.mqssd.itertuples(), record.mqssd.values(), strict=True):
        assert (row.tau_us, row.tau_low_us, row.tau_high_us) == (
            costs.tau_us.value,
            costs.tau_us.low,
            costs.tau_us.high,
        )
        assert row.r2_read == costs.r2_read
    for row, pio in zip(profile.pio.itertuples(), record.pio.values(), strict=True):
        assert (row.k_r, row.k_r_low, row.k_r_high) == (pio.k_r.value, pio.k_r.low, pio.k_r.high)
        assert (row.alpha, row.alpha_rule) == (pio.alpha.value, pio.alpha_rule)
    assert profile.latency.set_index("op").latency_us["read"] == record.latency_us["read"].value
    errors = profile.model_errors.set_index("model")
    assert errors.error_all["MQSSD"] < errors.error_all["DAM"]


def test_models_take_columns_of_a_profile(profile: spillway.ProfileFrames) -> None:
    costs = profile.mqssd
    page_us = spillway.models.mqssd.page_cost_us(100, costs.tau_us, costs.alpha_us)
    assert page_us == pytest.approx((costs.tau_us + costs.alpha_us).to_numpy())
    assert spillway.models.throughput_mb_s(page_us).shape == (len(costs),)
    assert np.all(spillway.models.pdam.page_cost_us(100, costs.k, 80, 4) <= 80)


def test_every_table_of_a_profile_comes_back_from_a_file(
    profile: spillway.ProfileFrames, tmp_path: Path, invoke: Invoke
) -> None:
    for ending in (".parquet", ".csv"):
        assert invoke("export", profile.path, "--table", "pio", "--to", tmp_path / f"pio{ending}").code == 0
        for table in profile.tables:
            frame = getattr(profile, table)
            path = tmp_path / f"{table}{ending}"
            back = spillway.read_frame(path if table == "pio" else spillway.write_frame(frame, path))
            assert back.equals(frame), table
            assert back.dtypes.equals(frame.dtypes)


def test_a_target_that_is_refused_leaves_nothing(fake: Fake, plan_file: Path, tmp_path: Path) -> None:
    with pytest.raises(SpillwayError, match="did you mean 'tiny'") as refused:
        spillway.profile_drive("preset:tny", tmp_path / "p")
    assert_one_sentence_of(refused.value)
    assert not (tmp_path / "p").exists()


# ---------------------------------------------------------------------------------------------------------------------
# Charts


def test_charts_are_those_of_the_report(run_directory: Path, made: Made, profile: spillway.ProfileFrames) -> None:
    run = spillway.read_run(run_directory)
    compared, own = run.charts(), run.charts("new")
    assert {"throughput", "stalls"} <= set(compared)
    assert {"throughput", "write-latency", "bandwidth", "wa-cumulative"} <= set(own)
    assert own["throughput"].title == "Throughput and stalls"
    assert own["throughput"].figure is not own["throughput"].figure, "one that is shown belongs to a document"
    assert len(spillway.read_run(made.run("one", PLAN, 1)).charts()) == len(own)
    assert any("wa-app" in key for key in spillway.read_run(made.run("swept", SWEPT, 1)).charts())
    assert len(profile.charts()) > 5
    with pytest.raises(SpillwayError, match="there is no chart 'throughputs'; did you mean 'throughput'") as refused:
        own["throughputs"]
    assert_one_sentence(refused.value)
    with pytest.raises(SpillwayError, match="it has no arm 'nwe'; did you mean 'new'"):
        run.charts("nwe")


@pytest.mark.browser
def test_a_chart_draws_itself_in_the_frame_of_a_notebook(run_directory: Path, tmp_path: Path) -> None:
    run = spillway.read_run(run_directory)
    chart, compared = run.charts("new")["throughput"], run.charts()
    cells = [shown._repr_html_() for shown in (chart, chart, compared)]
    page = tmp_path / "notebook.html"
    page.write_text(f"<!doctype html><title>x</title><body>{''.join(cells)}</body>")
    assert complaints(visit(page, "--dump-dom").console) == []
    page.write_text(chart.html())
    visited = visit(page, "--dump-dom")
    assert complaints(visited.console) == []
    assert "bk-Figure" in visited.output
    assert "Operations finished each second" in visited.output


def test_what_a_notebook_shows_of_each(
    run_directory: Path, profile: spillway.ProfileFrames, fake: Fake, suite: Path, invoke: Invoke
) -> None:
    run = spillway.read_run(run_directory)
    assert "2 arms, complete" in repr(run)
    assert "<table" in run._repr_html_()
    compared = spillway.compare_arms(run)
    assert "old" in compared._repr_html_()
    assert "not told apart" in compared._repr_html_() or "faster" in compared._repr_html_()
    assert "Know thy device" in profile._repr_html_()
    assert invoke("suite", suite, "--out", "out").code == 0
    assert "2 of 2 plans done" in spillway.read_suite("out")._repr_html_()
