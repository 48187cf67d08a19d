"""Profiles of a drive of closed forms: what is known of it must be found again, and what is bad must be refused."""

import json
import math
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import fake_probe
import pytest
from browser import complaints, visit
from conftest import Fake, Invoke, start_of_fake

from spillway.errors import SpillwayError
from spillway.fit import knee
from spillway.profile import (
    Estimate,
    Profile,
    compare,
    estimate,
    grids,
    mixes,
    parse_target,
    read_profile,
    virtual,
    words,
)
from spillway.profile.document import parameters, to_toml
from spillway.profile.panels import panels
from spillway.profile.points import PAGE_BYTES, jobs_for, mqssd_point, pio_point
from spillway.profile.prober import Prober, RealPace, Stopwatch, VirtualPace
from spillway.profile.real import check_budget, coarse_points, least_budget_s, measure_within
from spillway.report.panels import Panel
from spillway.reproduce import recover

PRESET = "preset:mqsim-default"


@pytest.fixture(scope="session")
def shared_profile(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A profile of the fake drive, made once."""
    directory = tmp_path_factory.mktemp("profiles")
    with pytest.MonkeyPatch.context() as patch:
        native = directory / "spillway-native"
        native.write_text(start_of_fake())
        native.chmod(0o755)
        patch.setenv("SPILLWAY_NATIVE", str(native))
        patch.setenv("FAKE_MODE", "ok")
        from spillway.profile import profile_target

        profile_target(parse_target(PRESET), directory / "p", ["spillway", "profile", PRESET], seed=1, budget_s=120)
    yield directory / "p"


@pytest.fixture
def profile(shared_profile: Path) -> Profile:
    return read_profile(shared_profile)


def holds(estimate: Estimate, truth: float) -> bool:
    return estimate.low <= truth <= estimate.high


# ---------------------------------------------------------------------------------------------------------------------
# What is known is found again


def test_latency_knees_and_asymmetry_are_found(profile: Profile) -> None:
    assert profile.latency_us["read"].value == pytest.approx(fake_probe.READ_US, rel=0.01)
    assert profile.latency_us["write"].value == pytest.approx(fake_probe.WRITE_US, rel=0.01)
    assert sorted(profile.pio) == [1024, 2048, 4096, 8192, 16384]
    truth = (fake_probe.K_R / fake_probe.READ_US) / (fake_probe.K_W / fake_probe.WRITE_US)
    for pio in profile.pio.values():
        assert pio.alpha.value == pytest.approx(truth, rel=0.02)
        assert pio.alpha_rule == "bandwidth"
        assert holds(pio.k_r, knee.SATURATED_SHARE * fake_probe.K_R)
        assert holds(pio.k_w, knee.SATURATED_SHARE * fake_probe.K_W)
        assert pio.k_r_latency.value == pytest.approx(fake_probe.K_R, rel=0.2)


def test_mqssd_costs_are_found_within_their_intervals(profile: Profile) -> None:
    assert list(profile.mqssd) == [1, 2, 4, 8, 16, 32, 64, 128]
    for k, costs in profile.mqssd.items():
        reads, writes = min(k, fake_probe.K_R), min(k, fake_probe.K_W)
        assert costs.sigma_us.value == pytest.approx(fake_probe.SIGMA_US / writes, rel=0.03)
        assert costs.tau_us.value == pytest.approx(fake_probe.TAU_US / reads, rel=0.03)
        assert costs.beta_us.value == pytest.approx(fake_probe.BETA_US / writes, rel=0.2)
        assert costs.alpha_us.value == pytest.approx(fake_probe.ALPHA_US / reads, rel=0.3)
        assert min(costs.r2_read, costs.r2_write) > 0.99


def test_reads_are_measured_before_the_first_write(profile: Profile) -> None:
    """Reads leave a drive as it is. A write changes where data lies, and a real drive works on after it. What is read
    in order comes after a write in order, as on any drive that holds files."""
    in_virtual_time = [s.op for s in profile.samples if s.procedure == "pio" and s.pattern == "random"]
    in_real_time = [point.op for point in coarse_points() if point.pattern != "sequential"]
    for ops in (in_virtual_time, in_real_time):
        first_write = ops.index("write")
        assert set(ops[:first_write]) == {"read"}
        assert set(ops[first_write:]) == {"write"}


def test_capped_software_is_seen_through() -> None:
    prober = SlowDrive("capped").prober()
    for point in grids.pio_random(("read", "write"), [1024], grids.CONCURRENCIES):
        prober.measure(point)
    pio = estimate.pio(prober.samples, 1024)
    assert pio is not None
    assert pio.alpha_rule == "slope"
    assert pio.alpha.value == pytest.approx(fake_probe.WRITE_US / fake_probe.READ_US, rel=0.05)


def test_what_a_profile_finds_is_what_is_held_against_the_papers(fake: Fake, profile: Profile) -> None:
    found = []
    for procedure in (virtual.SEQUENTIAL, virtual.RANDOM, virtual.STAGGERED):
        found += recover.measure(PRESET.removeprefix("preset:"), procedure)
    assert found == profile.samples
    assert recover.pio_figures(found)["alpha 1K"] == profile.pio[1024].alpha.value


# ---------------------------------------------------------------------------------------------------------------------
# The directory


def test_a_profile_survives_its_directory(profile: Profile, shared_profile: Path) -> None:
    assert to_toml(profile) == (shared_profile / "profile.toml").read_text()
    assert (shared_profile / "report.html").is_file()
    assert {s.procedure for s in profile.samples} == {"pio", "mqssd"}


@pytest.mark.long
def test_json_has_every_parameter_with_its_interval(
    fake: Fake, tmp_path: Path, invoke: Invoke, shared_profile: Path
) -> None:
    ended = invoke("profile", PRESET, "--out", tmp_path / "p", "--json")
    found = ended.json()
    assert ended.err == ""
    assert found == parameters(read_profile(shared_profile)), "the same drive and seed, the same parameters"
    assert set(found) == {"latency_us", "alpha", "k_r", "k_w", "mqssd"}
    assert set(found["latency_us"]) == {"read", "write"}
    assert set(found["mqssd"]["8"]) == {"sigma_us", "beta_us", "tau_us", "alpha_us", "r2_write", "r2_read"}
    for name in ("alpha", "k_r", "k_w"):
        assert set(found[name]["4096"]) == {"value", "low", "high"}
    assert found["k_r"]["4096"]["low"] <= found["k_r"]["4096"]["value"] <= found["k_r"]["4096"]["high"]


def test_json_knows_neither_nan_nor_infinity(profile: Profile) -> None:
    unbounded = Profile(**(vars(profile) | {"latency_us": {"read": Estimate(80.0, math.nan, math.inf)}}))
    assert parameters(unbounded)["latency_us"] == {"read": {"value": 80.0, "low": None, "high": None}}
    json.dumps(parameters(unbounded), allow_nan=False)


def damaged(shared_profile: Path, tmp_path: Path, name: str, old: str, new: str) -> Path:
    for each in ("profile.toml", "samples.csv"):
        text = (shared_profile / each).read_text()
        if each == name:
            assert old in text
            text = text.replace(old, new, 1)
        (tmp_path / each).write_text(text)
    return tmp_path


@pytest.mark.parametrize(
    ("name", "old", "new", "says"),
    [
        ("profile.toml", "contract = 1", "contract = 2", "contract is 2, and this version of spillway reads 1"),
        ("profile.toml", "contract = 1", "", "contract is None"),
        ("profile.toml", "contract = 1", "contract = ", "this is not TOML"),
        ("profile.toml", "[target]", "[targets]", "no whole profile"),
        ("samples.csv", "procedure,", "procedures,", "columns"),
        ("samples.csv", "pio,read,sequential,1024", "pio,read,sequential,many", "line 4 is damaged"),
    ],
)
def test_another_version_or_damage_is_refused_with_one_sentence(
    shared_profile: Path, tmp_path: Path, invoke: Invoke, name: str, old: str, new: str, says: str
) -> None:
    ended = invoke("model", "compare", damaged(shared_profile, tmp_path, name, old, new))
    assert (ended.code, ended.out) == (2, "")
    assert says in ended.err
    assert name in ended.err
    assert ended.err.count("\n") == 1


def test_no_profile_is_refused(tmp_path: Path, invoke: Invoke) -> None:
    ended = invoke("model", "compare", tmp_path / "none")
    assert ended.code == 2
    assert "spillway profile" in ended.err


def test_too_few_points_for_a_fit_are_refused(shared_profile: Path, tmp_path: Path, invoke: Invoke) -> None:
    lines = (shared_profile / "samples.csv").read_text().splitlines(keepends=True)
    kept = [line for line in lines if not line.startswith("mqssd,write") or ",4096000,1,1," in line]
    (tmp_path / "samples.csv").write_text("".join(kept))
    (tmp_path / "profile.toml").write_text((shared_profile / "profile.toml").read_text())
    ended = invoke("model", "compare", tmp_path)
    assert ended.code == 2
    assert "too few for a line" in ended.err
    assert ended.err.count("\n") == 1


# ---------------------------------------------------------------------------------------------------------------------
# Bad targets and budgets


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("nowhere/drive",), "no such file"),
        (("preset:mqsim-defualt",), "did you mean 'mqsim-default'"),
        (("/dev/null",), "neither a file, a directory nor a block device"),
        ((PRESET, "--destroy-data"), "--destroy-data"),
        ((PRESET, "--fill", "0"), "--fill is 0"),
        (("FILE", "--paced"), "--paced is for presets"),
        (("FILE", "--set", "a.b=1"), "--set is for presets"),
        (("FILE", "--budget", "3"), "too short"),
        (("FILE", "--budget", "nan"), "--budget"),
        (("",), "TARGET is empty"),
        (("FILE", "--mixed"), "--mixed takes a preset in virtual time"),
        ((PRESET, "--mixed", "--paced"), "--mixed takes a preset in virtual time"),
        ((PRESET, "--size", "1GiB"), "--size is for files and directories"),
        (("FILE", "--size", "lots"), "--size"),
        (("FILE", "--host-stack", "bypass"), "--host-stack is for presets"),
        ((PRESET, "--host-stack", "a", "--set", "host.stack=b"), "both name the host's software"),
    ],
)
def test_a_bad_target_is_refused_before_anything_is_started(
    fake: Fake, tmp_path: Path, invoke: Invoke, arguments: tuple[str, ...], says: str
) -> None:
    data = tmp_path / "data"
    data.write_bytes(b"mine")
    ended = invoke("profile", *(data if word == "FILE" else word for word in arguments), "--out", tmp_path / "p")
    assert (ended.code, ended.out) == (2, "")
    assert says in ended.err
    assert ended.err.count("\n") == 1
    assert fake.log() == []
    assert data.read_bytes() == b"mine"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["data"]


@pytest.mark.parametrize(("mode", "code"), [("refuses", 2), ("ends", 130), ("bad_input", 2)])
def test_a_conversation_that_ends_early_leaves_nothing(
    fake: Fake, tmp_path: Path, invoke: Invoke, mode: str, code: int
) -> None:
    fake.behave(mode)
    ended = invoke("profile", PRESET, "--out", tmp_path / "p")
    assert (ended.code, ended.out) == (code, "")
    assert ended.err.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


def test_a_taken_place_is_refused_before_the_drive_is_touched(fake: Fake, tmp_path: Path, invoke: Invoke) -> None:
    (tmp_path / "p").mkdir()
    (tmp_path / "p" / "mine").touch()
    assert invoke("profile", PRESET, "--out", tmp_path / "p").code == 2
    assert fake.log() == []


# ---------------------------------------------------------------------------------------------------------------------
# Budgets: a drive whose clock is the test's


class SlowDrive:
    """The fake drive in a conversation without a process; every answer takes the seconds that were asked for."""

    def __init__(self, mode: str = "ok", slower: float = 1.0) -> None:
        self.mode, self.slower = mode, slower
        self.now = 0.0
        self.asked: list[dict[str, Any]] = []

    def ask(self, line: dict[str, Any], answer: str) -> dict[str, Any]:
        self.asked.append(line)
        target = {"kind": "file", "path": "x"}
        if answer == "ready":
            self.now += line.get("prepare", {}).get("seconds", 0.0)
            return fake_probe.ready(target, self.mode, 2**29 if "prepare" in line else 0)
        measured = fake_probe.measurement(line, self.mode)
        round_s = self.slower * line["numjobs"] * line["iodepth"] / measured["iops"]
        self.now += line["seconds"] + line["ramp_s"] + round_s  # what is in flight is waited for
        for rate in ("iops", "bandwidth_mb_s"):
            measured[rate] /= self.slower
        return measured if line["seconds"] + line["ramp_s"] > round_s else measured | {"ios": 0}

    def prober(self) -> Prober:
        return Prober(self, {"target": {}}, RealPace(1.0))  # type: ignore[arg-type]

    def within(self, budget_s: float) -> Any:
        return measure_within(self.prober(), Stopwatch(budget_s, lambda: self.now), [], emulated=False)


@pytest.mark.parametrize("budget_s", [40.0, 120.0, 600.0])
def test_a_budget_is_kept_and_used(budget_s: float) -> None:
    drive = SlowDrive()
    measured = drive.within(budget_s)
    assert measured.spent_s <= budget_s * 1.01
    assert measured.spent_s >= budget_s * 0.99
    assert len(measured.samples) > len(coarse_points())


@pytest.mark.parametrize("budget_s", [40.0, 300.0])
def test_a_budget_is_kept_on_a_drive_that_takes_seconds_for_what_is_in_flight(budget_s: float) -> None:
    drive = SlowDrive(slower=10.0)
    measured = drive.within(budget_s)
    assert measured.spent_s <= budget_s * 1.05
    assert all(sample.ios for sample in measured.samples)
    left_out = [remark for remark in measured.remarks if "did not fit into the budget" in remark]
    assert bool(left_out) == (budget_s == 40.0)


def test_doubt_is_where_points_go() -> None:
    measured = SlowDrive().within(120.0)
    by_place = {(s.op, s.k) for s in measured.samples if s.procedure == "pio" and s.bs_bytes == PAGE_BYTES}
    extra = {k for op, k in by_place if op == "read"} - {1, 4, 16, 64}
    assert any(16 < k < 64 for k in extra), "the read knee, 24, lies there"
    assert {s.k for s in measured.samples if s.procedure == "mqssd"} > {1, 8, 32, 128}, "costs between the coarse k"


@pytest.mark.parametrize("budget_s", [60.0, 300.0])
def test_a_knee_is_bisected(budget_s: float) -> None:
    found = estimate.pio(SlowDrive().within(budget_s).samples, PAGE_BYTES)
    assert found is not None
    assert holds(found.k_r, knee.SATURATED_SHARE * fake_probe.K_R)
    assert found.k_r.relative_width < (64 - 16) / fake_probe.K_R / 4, "the coarse grid's step, halved twice"


def test_a_target_that_may_not_be_written_to_is_only_read() -> None:
    drive = SlowDrive("read_only")
    measured = drive.within(60.0)
    assert measured.ops == ("read",)
    assert not [line for line in drive.asked if "prepare" in line or line.get("read_share", 1.0) < 1]
    assert "--destroy-data" in measured.remarks[0]


def test_preconditioning_says_how_far_it_came() -> None:
    remarks = SlowDrive().within(60.0).remarks
    assert [remark for remark in remarks if remark.startswith("preconditioned by 0.50 capacities of sequential writes")]


def test_the_least_budget_is_the_coarse_grid() -> None:
    check_budget(least_budget_s())
    assert least_budget_s(("read",)) < least_budget_s() / 1.5, "reading alone takes fewer points, and no preparation"
    with pytest.raises(SpillwayError, match="too short"):
        check_budget(least_budget_s() * 0.9)


# ---------------------------------------------------------------------------------------------------------------------
# Points


@pytest.mark.parametrize("k", [1, 2, 31, 32, 33, 80, 96, 97, 256])
def test_jobs_times_iodepth_is_k(k: int) -> None:
    numjobs, iodepth = jobs_for(k)
    assert numjobs * iodepth == k
    assert iodepth <= 32


def test_r_is_what_the_access_really_is() -> None:
    assert mqssd_point("read", 4, 30.0).bs_bytes == 3 * PAGE_BYTES
    assert mqssd_point("read", 4, 30.0).r_percent == pytest.approx(33.33, abs=0.01)
    assert mqssd_point("write", 4, 0.1).bs_bytes == 1000 * PAGE_BYTES


def test_writes_of_a_drive_in_virtual_time_fill_its_cache_first() -> None:
    pace = VirtualPace(cache_bytes=8 * 2**20)
    assert pace.timed(pio_point("random", "write", 4096, 1)).ramp_ios >= 2 * 2048
    assert pace.timed(pio_point("random", "read", 4096, 1)).ramp_ios < 10
    staggered = pace.timed(mqssd_point("write", 128, 0.1))
    assert staggered.ios is not None
    assert staggered.ios % 128 == 0
    assert staggered.ios * staggered.bs_bytes >= 16 * pace.cache_bytes


# ---------------------------------------------------------------------------------------------------------------------
# Words and models


def test_the_five_guidelines_are_answered(profile: Profile) -> None:
    said = {each.title: each.sentence for each in words.guidelines(profile)}
    assert len(said) == 5
    issued = re.search(r"Issue (\d+) to (\d+) reads at once", said["Exploit its concurrency"])
    assert issued
    assert (
        int(issued[1]) <= knee.SATURATED_SHARE * fake_probe.K_R <= int(issued[2]) < int(issued[1]) + fake_probe.K_R / 4
    )
    assert "More than 6 writes only add latency" in said["Use it with care"]
    assert "A 4 KiB write costs 2.0" in said["A read is not a write"]
    assert "batch the writes first" in said["Asymmetry controls performance"]


@pytest.mark.long
def test_mqssd_beats_its_rivals_on_a_drive_that_is_one(shared_profile: Path, invoke: Invoke, profile: Profile) -> None:
    medians = compare.medians(compare.compare(profile))
    assert medians["MQSSD"]["all"] < 0.05
    assert all(medians["MQSSD"]["all"] < of["all"] for name, of in medians.items() if name != "MQSSD")
    printed = invoke("model", "compare", shared_profile, "--json").json()
    assert printed["median_error"] == medians
    assert len(printed["points"]) == 2 * 8 * 7


@pytest.mark.long
def test_compare_prints_an_error_for_each_k_and_r(shared_profile: Path, invoke: Invoke) -> None:
    printed = invoke("model", "compare", shared_profile).out
    for word in ("DAM", "PDAM", "Affine", "PIO", "MQSSD", "r = 0.1 %", "r = 100 %"):
        assert word in printed


# ---------------------------------------------------------------------------------------------------------------------
# The report


@pytest.fixture(scope="module")
def drawn(shared_profile: Path) -> dict[str, Panel]:
    """The report's panels; the cost functions behind them take seconds to fit."""
    return {panel.key: panel for panel in panels(read_profile(shared_profile))}


@pytest.mark.long
def test_the_report_has_the_papers_figures_for_this_drive(drawn: dict[str, Panel]) -> None:
    both = {f"{what}-{op}" for what in ("bandwidth", "latency", "throughput", "models") for op in ("read", "write")}
    assert set(drawn) == both | {"alpha", "knees", "cost-setup", "cost-page"}
    captions = " ".join(panel.caption for panel in drawn.values())
    for figure in ("MQSSD, Figs 1 and 4", "MQSSD, Fig 2", "MQSSD, Fig 3", "Figs 4A, 4B", "4C", "5A", "5B"):
        assert figure in captions


def test_axes_reach_as_far_as_intervals(drawn: dict[str, Panel], profile: Profile) -> None:
    shown = [max(each.data_source.data[each.glyph.y]) for each in drawn["knees"].figure.renderers]
    assert max(shown) == max(pio.k_r.high for pio in profile.pio.values())


def test_mixes_have_charts_where_they_were_measured() -> None:
    prober = SlowDrive().prober()
    mixes.measure(prober, 1.0)
    conditions = {"time": "virtual", "fill": 1.0, "remarks": []}
    measured = Profile({"name": "x", "writable": True}, conditions, {}, {}, {}, prober.samples)
    full, half = panels(measured)
    assert (full.title, half.title) == ("Mixes, 100% full", "Mixes, 50% full")
    assert "steady drive, 50% full" in half.standing
    assert [mark.label for mark in full.legend] == [f"{k} in flight" for k in (1, 4, 16, 64)]


@pytest.mark.browser
@pytest.mark.long
def test_the_report_draws_every_chart_without_a_complaint(
    shared_profile: Path, profile: Profile, drawn: dict[str, Panel]
) -> None:
    seen = visit(shared_profile / "report.html", "--dump-dom")
    assert complaints(seen.console) == []
    assert seen.output.count('class="bk-Figure"') == len(drawn)
    assert all(guideline.title in seen.output for guideline in words.guidelines(profile))
