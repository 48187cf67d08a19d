"""`spillway advise` on drives and engines: presets measured, profiles read, the plan of --verify, a whole answer."""

import json
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import fake_lsm
import pytest
from advised import LOAD, advice

from spillway.advise import verify
from spillway.advise.configuration import DEFAULTS, FLASH, MIB, SHAPES, SINGLE, Configuration
from spillway.advise.drive import ACCESSES, BLOCK_SIZES, STREAMS, Drive, of_preset, of_profile, service_times
from spillway.advise.predict import predict
from spillway.advise.simulated import Setting, thorough
from spillway.advise.traffic import settled
from spillway.advise.verify import Scaled, chosen, measure, plan_text, scaled
from spillway.errors import SpillwayError
from spillway.plan.document import load_plan
from spillway.profile import estimate, virtual
from spillway.profile.document import Profile, read_profile, write_profile
from spillway.profile.target import Scaled as Small
from spillway.profile.target import Target, parse_target
from spillway.profile.target import scaled as fit_into_seconds
from spillway.ssd.simulate import DriveChoice

pytestmark = pytest.mark.native

SMALL = replace(LOAD, data_bytes=24 * MIB, clients=2, scan_pairs=10)


@pytest.fixture(scope="module")
def quickstart() -> Drive:
    return of_preset("quickstart")


@pytest.fixture(scope="module")
def profile(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """As `spillway profile` leaves it, with the points that are needed; all of them take a minute."""
    place = tmp_path_factory.mktemp("profile")
    target = parse_target("preset:quickstart")
    small = fit_into_seconds(target)
    samples = [s for each in (STREAMS, ACCESSES) for s in virtual.run(each, target, small, 1).samples]
    about = {"words": target.words, "name": "quickstart", "kind": target.kind, "size_bytes": 8 * 2**30}
    pio = estimate.pio(samples, 4096)
    assert pio is not None
    latency = {op: estimate.latency(samples, op) for op in estimate.OPS}
    conditions = {"command": ["spillway", "profile", "preset:quickstart"]}
    write_profile(Profile(about, conditions, latency, {4096: pio}, {}, samples), place)
    return place


def test_a_preset_is_measured(quickstart: Drive) -> None:
    times = quickstart.times
    assert set(times.reads) == set(BLOCK_SIZES)
    assert 60 < times.read_us(4096, 1) < 110  # 84 us, as the preset says
    assert times.read_us(4096, 64) > times.read_us(4096, 1)
    assert times.read_cost_us(4096) < times.read_us(4096, 1) / 4
    assert 200 < times.most_mb_s("write") < 400
    assert quickstart.capacity_bytes == 8 * 2**30 and quickstart.rated_pe_cycles == 3000
    assert quickstart.physical_bytes and quickstart.physical_bytes > quickstart.capacity_bytes


def test_a_profile_of_a_preset_is_the_same_drive(quickstart: Drive, profile: Path) -> None:
    found = of_profile(profile)
    assert found.request["preset"] == "quickstart"
    assert found.capacity_bytes == quickstart.capacity_bytes
    assert found.times.read_us(4096, 8) == pytest.approx(quickstart.times.read_us(4096, 8), rel=0.1)
    assert found.times.most_mb_s("write") == pytest.approx(quickstart.times.most_mb_s("write"), rel=0.15)


def test_a_profile_of_a_real_drive_gets_a_model(profile: Path, tmp_path: Path) -> None:
    own = read_profile(profile)
    real = replace(own, target=own.target | {"kind": "device", "words": "/dev/sdx", "name": "sdx"})
    place = tmp_path / "real"
    place.mkdir()
    write_profile(real, place)
    found = of_profile(place)
    assert not found.request["preset"] and found.rated_pe_cycles is None
    rated = of_profile(place, 600e12)
    assert rated.rated_bytes == 600e12
    again = _measured_again(found)
    assert again.read_us(4096, 1) == pytest.approx(own.latency_us["read"].value, rel=0.3)
    assert again.most_mb_s("write") == pytest.approx(found.times.most_mb_s("write"), rel=0.4)


def _measured_again(drive: Drive) -> Any:
    """Service times of a model that was made, by the same points."""
    settings = tuple(f"{key}={value}" for key, value in drive.request["set"].items())
    target = Target("simulated", "model", DriveChoice(settings=settings))
    small = Small({}, 8 * MIB, 64 * MIB, [])
    samples = [s for each in (STREAMS, ACCESSES) for s in virtual.run(each, target, small, 1).samples]
    return service_times(samples, "model")


@pytest.mark.parametrize("disk", ["hdd", "toshiba-dt01aca100"])
def test_a_profile_of_a_disk_is_refused(disk: str, profile: Path, tmp_path: Path) -> None:
    own = read_profile(profile)
    place = tmp_path / "disk"
    place.mkdir()
    write_profile(replace(own, target=own.target | {"words": f"preset:{disk}", "name": disk}), place)
    with pytest.raises(SpillwayError, match="is a profile of a disk, and advice is for flash"):
        of_profile(place)


@pytest.mark.parametrize(
    ("drops", "says"),
    [
        (lambda s: s.op == "write", "--destroy-data"),
        (lambda s: s.op == "read" and s.pattern == "random", "no random reads of 4 KiB"),
        (lambda s: s.op == "read" and s.pattern == "sequential", "no reads in order"),
    ],
)
def test_a_profile_without_what_is_needed_is_refused(profile: Path, tmp_path: Path, drops: Any, says: str) -> None:
    own = read_profile(profile)
    place = tmp_path / "part"
    place.mkdir()
    write_profile(replace(own, samples=[s for s in own.samples if not drops(s)]), place)
    with pytest.raises(SpillwayError, match=says):
        of_profile(place)


def test_the_plan_of_a_check_is_one_that_runs(quickstart: Drive, tmp_path: Path) -> None:
    small = scaled(replace(SMALL, data_bytes=600 * MIB), quickstart, 64 * MIB)
    arms = {shape: replace(DEFAULTS, shape=shape, fanout=1 if shape == SINGLE else 10).scaled(64) for shape in SHAPES}
    arms["spilling"] = replace(arms["leveled"], spill="eager", spill_bytes=64 * MIB)
    arms["no discard"] = replace(arms["leveled"], discard=False, extra_op=0.1)
    path = tmp_path / "verify.toml"
    path.write_text(plan_text(small, arms))
    plan = load_plan(path)
    assert [arm.name for arm in plan.arms] == list(arms)
    assert all(len(arm.phases) == 3 and arm.phases[-1]["measured"] for arm in plan.arms)


def test_predicted_and_measured_stand_beside_each_other(quickstart: Drive, tmp_path: Path) -> None:
    drive = replace(quickstart, capacity_bytes=512 * MIB, least_capacity_bytes=512 * MIB)
    drive = replace(drive, request=drive.request | {"set": {"capacity.capacity_bytes": str(512 * MIB)}})
    arms = {shape: replace(DEFAULTS, shape=shape, fanout=1 if shape == SINGLE else 10).scaled(64) for shape in SHAPES}
    arms["spilling"] = replace(arms["leveled"], spill="eager", spill_bytes=32 * MIB)
    small = Scaled(replace(SMALL, puts=0.5, gets=0.6, scans=0.1, rmws=0.2), drive, 16.0, 2)
    ran = measure(small, arms, tmp_path / "run", ["test"], fake_lsm.simulate, (1,), measured_s=0.5, warm_s=0.2)
    found = ran.arms
    assert [each.name for each in found] == list(arms)
    for each in found:
        assert each.measured is not None, each.name
        ratio = each.ratio("throughput_ops_s")
        assert ratio is not None and ratio > 0
        assert each.measured["wa_app"] >= 0.9
        for figure in verify.FIGURES:
            known = figure != "p99_us.rmw" or small.load.rmws > 0
            assert bool(each.value(figure) and each.expected(figure)) == known, figure
            assert (each.is_within(figure) is not None) == known, figure


def test_the_arms_of_a_check_have_the_winner_and_the_rivals() -> None:
    found = advice()
    arms = chosen(found)
    assert arms["advised"] == found.winner.config
    assert {"RocksDB's defaults", "flash configuration", "runner-up 1"} <= set(arms)
    assert len(set(arms.values())) == len(arms)


@pytest.mark.long
def test_a_whole_answer(invoke: Any, tmp_path: Path) -> None:
    words = ["--preset", "quickstart", "--data", "1GB", "--memory", "64MiB", "--cores", "2", "--mix", "put=0.5,get=0.5"]
    done = invoke("advise", *words, "--json", tmp_path / "a.json", "--options", tmp_path / "OPTIONS")
    assert done.code == 0, done.err
    made = json.loads((tmp_path / "a.json").read_text())
    assert made["ranked"] and made["considered"] > 100


@pytest.mark.long
def test_the_simulators_headline() -> None:
    """MQSSD, Table 5: on a 990 PRO with enough threads a single level reads points about twice as fast, scans faster,
    and costs lifetime. Of points the model says up to twice that: a smaller tree has as much in L0."""
    drive = of_preset("samsung-990-pro")
    load = replace(LOAD, value_bytes=2048, data_bytes=32 * 10**9, clients=32, scan_pairs=128)
    common: dict[str, Any] = {"direct_io": True, "block_cache_bytes": 2**28}
    single = replace(DEFAULTS, shape=SINGLE, fanout=1, compaction_threads=8, subcompactions=8, **common)
    flash = replace(FLASH, **common)
    traffic = {each: thorough(Setting(load, drive, 12), each, (1,)) for each in (single, flash)}

    def rate(config: Configuration, gets: float) -> float:
        own = replace(load, puts=0.0, gets=gets, scans=1 - gets)
        return predict(own, config, drive, settled(own, config, traffic[config]), 12).throughput_ops_s.value

    assert 1.5 < rate(single, 1.0) / rate(flash, 1.0) < 2 * 1.92
    assert rate(single, 0.0) > 1.05 * rate(flash, 0.0)
    flash_bytes = {each: found.wa_app * found.wa_device for each, found in traffic.items()}
    assert flash_bytes[single] > 1.2 * flash_bytes[flash]  # so that the drive lasts less long


def test_the_command_verifies(quickstart: Drive, invoke: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    short = partial(verify.measure, measured_s=0.5, warm_s=0.2)
    monkeypatch.setattr("spillway.advise.verify.measure", short)
    monkeypatch.setattr("spillway.advise.drive.of_preset", lambda *_: quickstart)
    monkeypatch.setattr("spillway.lsm.simulate", fake_lsm.simulate)
    monkeypatch.setattr("spillway.advise.search.SIMULATED", 12)
    words = ["--preset", "quickstart", "--data", "30MB", "--memory", "16MiB", "--cores", "2", "--top", "2"]
    done = invoke("advise", *words, "--verify", "--out", tmp_path / "run", "--json", tmp_path / "a.json")
    assert done.code == 0, done.err
    assert "Predicted and measured" in done.out and str(tmp_path / "run") in done.out.replace("\n", "")
    verified = json.loads((tmp_path / "a.json").read_text())["verified"]
    assert {"advised", "RocksDB's defaults", "flash configuration"} <= {each["name"] for each in verified}
    assert all(each["measured"]["throughput_ops_s"] > 0 for each in verified)
