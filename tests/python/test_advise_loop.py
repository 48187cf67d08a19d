"""The closed loop of `spillway advise`: processor, drive and what compactions leave of both; a host's costs."""

import json
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import fake_lsm
import numpy as np
import pytest
from advised import DRIVE, LOAD, STREAMS

from spillway.advise.configuration import DEFAULTS, SHAPES, SINGLE
from spillway.advise.drive import Drive, ServiceTimes
from spillway.advise.loop import System
from spillway.advise.predict import predict
from spillway.advise.simulated import Setting, request
from spillway.advise.traffic import closed_form
from spillway.advise.verify import FIGURES, plan_text, predicted_of, scaled
from spillway.advise.workload import Workload
from spillway.lsm import DEFAULT_COSTS, HostCosts
from spillway.models import network

GETS = replace(LOAD, puts=0.0, gets=1.0, scans=0.0)
DIES, READ_US, CLIENTS = 16, 60.0, 96


def of_dies() -> Drive:
    """Reads that go to one of so many dies at random: beside k - 1 others one takes 1 + (k - 1) / dies times as long,
    as in a balanced network; reads of several pages take no longer. Programs take a millisecond."""
    curve = [(k, READ_US * (1 + (k - 1) / DIES), 3 * READ_US * (1 + (k - 1) / DIES)) for k in range(1, 40 * CLIENTS)]
    streams = STREAMS | {"read": [(1, 1e6), (16, 1e6)]}
    return replace(DRIVE, times=ServiceTimes({4096: curve}, streams), program_us=1000.0, reads_overtake=8)


def system(load: Workload, drive: Drive, cores: int = 8, costs: HostCosts = DEFAULT_COSTS, **changes: Any) -> System:
    config = replace(DEFAULTS, **changes)
    return System(load, config, drive, closed_form(load, config, drive, cores, costs), cores, costs)


@pytest.mark.parametrize("clients", [1, 4, 16, CLIENTS])
@pytest.mark.parametrize("cores", [1, 6])
def test_a_measured_drive_stands_for_its_dies(clients: int, cores: int) -> None:
    """Norton's theorem: a loop over the drive's curve is the loop over all of its dies."""
    load = replace(GETS, clients=clients)
    own = system(load, of_dies(), cores)
    ((_, read),) = own.kinds.values()
    one = network.server_rates(read.blocks * READ_US / DIES, 1, clients)
    whole = [network.server_rates(read.processor_us, cores, clients), *[one] * DIES]
    rate, _ = own.throughput()
    assert rate == pytest.approx(1e6 * network.throughput(whole), rel=1e-3)
    mean, _ = own.latencies(rate, is_most=True)
    assert mean["get"] == pytest.approx(1e6 * clients / rate, rel=1e-3)


@pytest.mark.parametrize("mix", [(0, 1, 0), (0.5, 0.5, 0), (0.1, 0.6, 0.3)])
def test_near_saturation_less_is_done_than_the_least_of_the_bounds(mix: tuple[float, float, float]) -> None:
    """Who is there by chance at once waits: at the knee a fifth and more is missing, and many clients make it up."""
    shares = []
    for clients in (1, 8, 32, 128, 1024):
        load = replace(LOAD, puts=mix[0], gets=mix[1], scans=mix[2], clients=clients)
        own = system(load, of_dies())
        rate, _ = own.throughput()
        alone_us = own.own_processor_us + sum(share * each.service_us(own.drive.times, 1) for share, each in
                                              own.kinds.values())  # fmt: skip
        shares.append(rate / min(1e6 * clients / alone_us, *own.bounds().values()))
    assert all(each <= 1 + 1e-9 for each in shares)
    assert min(shares) < 0.8 and shares[-1] > 0.97


@pytest.mark.parametrize("clients", [1, 2, 16, 200])
@pytest.mark.parametrize("shape", SHAPES)
def test_the_loop_agrees_with_what_it_takes_itself(clients: int, shape: str) -> None:
    """The rate is that of the network beside the background work of that rate, or else the rate of puts alone."""
    load = replace(LOAD, clients=clients)
    own = system(load, of_dies(), shape=shape, fanout=1 if shape == SINGLE else 10)
    rate, _ = own.throughput()
    assert own.closed_rate(rate) == pytest.approx(rate, rel=1e-3)
    assert own.closed_rate(0.5 * rate) > own.closed_rate(rate)  # less background work leaves more


def test_saturated_reads_get_what_puts_leave() -> None:
    own = system(replace(LOAD, clients=4000), of_dies(), cores=512)
    rate, limited_by = own.throughput()
    assert limited_by == "drive"
    assert rate * own.drive_us / 1e6 == pytest.approx(1.0, rel=0.02)


@pytest.mark.parametrize("share", [0.01, 0.5, 0.95])
def test_a_rate_below_the_most_waits_less(share: float) -> None:
    own = system(replace(LOAD, clients=32), of_dies())
    most, _ = own.throughput()
    closed, _ = own.latencies(most, is_most=True)
    paced = replace(own, load=replace(own.load, rate_ops_s=share * most))
    mean, p99 = paced.latencies(share * most, is_most=False)
    for kind in ("get", "scan"):
        assert mean[kind] <= closed[kind] * 1.001 and mean[kind] <= p99[kind]
        blocks = own.kinds[kind][1].accesses
        assert mean[kind] >= blocks * READ_US * 0.999


def test_many_reads_at_once_are_looked_up_as_one() -> None:
    for drive in (DRIVE, of_dies()):
        k = np.array([0.5, 1.0, 1.7, 30.0, 31.0, 255.0, 256.0, 5000.0])
        for size in (4096.0, 10_000.0, 65536.0):
            assert drive.times.reads_us(size, k) == pytest.approx([drive.times.read_us(size, each) for each in k])


# ---------------------------------------------------------------- read-modify-writes


def test_a_read_modify_write_is_a_get_and_a_put() -> None:
    apart = replace(LOAD, puts=0.5, gets=0.5, scans=0.0, clients=2)
    together = replace(apart, puts=1.0, gets=1.0, rmws=1.0)
    one, two = (predict(load, DEFAULTS, DRIVE, closed_form(load, DEFAULTS, DRIVE, 8), 8) for load in (apart, together))
    assert two.throughput_ops_s.value == pytest.approx(0.5 * one.throughput_ops_s.value, rel=0.01)
    assert two.flash_bytes_per_op.value == pytest.approx(2 * one.flash_bytes_per_op.value)
    assert two.mean_us["rmw"] == pytest.approx(2e6 / two.throughput_ops_s.value, rel=0.01)
    assert two.mean_us["rmw"] <= two.p99_us["rmw"].value <= two.p99_us["get"].value + two.p99_us["put"].value
    assert "rmw" not in one.p99_us
    ycsb = plan_text(scaled(replace(LOAD, puts=0.5, gets=1.0, scans=0.0, rmws=0.5), DRIVE), {"a": DEFAULTS})
    for line in ("readproportion = 0.5", "updateproportion = 0.0", "readmodifywriteproportion = 0.5"):
        assert line in ycsb
    assert all(predicted_of(two, figure) is not None for figure in FIGURES if figure != "p99_us.scan")


# ---------------------------------------------------------------- a host's costs


def slower(times: float) -> HostCosts:
    own = {name: value * times for name, value in asdict(DEFAULT_COSTS).items() if name.endswith("_ns")}
    return replace(DEFAULT_COSTS, **own)


@pytest.mark.parametrize("mix", [(1, 0, 0), (0, 1, 0), (0, 0, 1), (0.5, 0.3, 0.2)])
def test_a_slower_processor_does_less(mix: tuple[float, float, float]) -> None:
    load = replace(LOAD, puts=mix[0], gets=mix[1], scans=mix[2], clients=64)
    rates = []
    for times in (0.0, 1.0, 30.0, 1000.0):
        traffic = closed_form(load, DEFAULTS, DRIVE, 2, slower(times))
        found = predict(load, DEFAULTS, DRIVE, traffic, 2, slower(times))
        rates.append(found.throughput_ops_s.value)
    assert rates == sorted(rates, reverse=True) and rates[-1] < 0.1 * rates[1]
    assert mix[0] or found.limited_by == "processor"


def test_the_simulator_is_told_the_same_costs() -> None:
    setting = Setting(LOAD, DRIVE, 3, fake_lsm.simulate, slower(2.0))
    asked = request(setting, DEFAULTS, 1.0, 1)["host"]
    assert {key: asked[key] for key in asdict(slower(2.0)) if key != "log_dirty_bytes"} == {
        key: value for key, value in asdict(slower(2.0)).items() if key != "log_dirty_bytes"
    }
    assert asked["cores"] == 3


@pytest.fixture
def ask_command(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    monkeypatch.setattr("spillway.advise.drive.of_preset", lambda *_: DRIVE)
    monkeypatch.setattr("spillway.lsm.simulate", fake_lsm.simulate)
    monkeypatch.setattr("spillway.advise.search.SIMULATED", 12)
    return ["advise", "--preset", "made", "--data", "100GB"]


@pytest.mark.parametrize(("words", "cores"), [([], 3), (["--cores", "2"], 2)])
def test_the_command_takes_a_hosts_costs(
    words: list[str], cores: int, invoke: Any, ask_command: list[str], tmp_path: Path
) -> None:
    host = tmp_path / "host.json"
    host.write_text(json.dumps({"put_ns": 6000.0, "cores": 3.2}))
    done = invoke(*ask_command, *words, "--host", host, "--json", tmp_path / "a.json")
    assert done.code == 0, done.err
    made = json.loads((tmp_path / "a.json").read_text())
    assert made["host"] == asdict(replace(DEFAULT_COSTS, put_ns=6000.0))
    assert made["cores"] == cores and made["load"]["clients"] == cores


@pytest.mark.parametrize(
    ("text", "says"),
    [(None, "cannot be read"), ("{", "is not JSON"), ('{"put": 1}', "no cost 'put'"), ('{"get_ns": -5}', "at least 0")],
)
def test_a_file_that_is_not_of_costs_is_one_sentence(
    text: str | None, says: str, invoke: Any, ask_command: list[str], tmp_path: Path
) -> None:
    host = tmp_path / "host.json"
    if text is not None:
        host.write_text(text)
    done = invoke(*ask_command, "--host", host)
    assert done.code == 2 and says in done.err and done.err.count("\n") == 1


def test_costs_of_nothing_are_no_infinite_rate() -> None:
    load = replace(GETS, data_bytes=10**8)
    config = replace(DEFAULTS, block_cache_bytes=10**10)
    found = predict(load, config, DRIVE, closed_form(load, config, DRIVE, 4, slower(0.0)), 4, slower(0.0))
    assert 0 < found.throughput_ops_s.value < 1e9 and np.isfinite(found.p99_us["get"].value)
