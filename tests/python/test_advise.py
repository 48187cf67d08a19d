"""`spillway advise`: what is asked, closed forms and their laws, predictions, ranking, and what is refused."""

import json
import math
from dataclasses import astuple, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import fake_lsm
import numpy as np
import pytest
from advised import DRIVE, GIB, LOAD, READS, advice, ask, prediction

from spillway.advise import Request, advise, reads
from spillway.advise.configuration import (
    BLOB_AGE_CUTOFF,
    DEFAULTS,
    FLASH,
    LEVELED,
    MIB,
    SEPARATED,
    SHAPES,
    SINGLE,
    UNIVERSAL,
    Configuration,
    memory_bytes,
)
from spillway.advise.document import document
from spillway.advise.others import others
from spillway.advise.popularity import Classes
from spillway.advise.predict import predict
from spillway.advise.rank import keeps, limits_of, ranked, why_none
from spillway.advise.reasons import reasons
from spillway.advise.search import default_order, rollback_for
from spillway.advise.simulated import Setting, quick, remembering, request, thorough
from spillway.advise.space import configurations, neighbours
from spillway.advise.traffic import closed_form, level_sizes
from spillway.advise.verify import Check, Verified
from spillway.advise.words import comparison
from spillway.advise.workload import Limits, Workload, check, parse_mix
from spillway.errors import DriveFull, Interrupted, RunFailed, SpillwayError
from spillway.models.lsm_reads import COVERED
from spillway.run.execute import Finished

Document = dict[str, Any]

# ---------------------------------------------------------------- what is asked


@pytest.mark.parametrize(
    ("text", "shares"),
    [
        ("put=0.5,get=0.4,scan=0.1", (0.5, 0.4, 0.1, 0)),
        ("get=1", (0, 1, 0, 0)),
        (" put = 50% , get = 50% ", (0.5, 0.5, 0, 0)),
        ("put=0.333,get=0.333,scan=0.333", (1 / 3, 1 / 3, 1 / 3, 0)),
        ("update=0.5,read=0.5", (0.5, 0.5, 0, 0)),  # YCSB's workload A
        ("read=0.95,insert=0.05", (0.05, 0.95, 0, 0)),  # D
        ("put=0.1,update=0.2,insert=0.3,get=0.1,read=0.3", (0.6, 0.4, 0, 0)),
        ("read=0.5,rmw=0.5", (0.5, 1.0, 0, 0.5)),  # F: each is a get and a put
        ("rmw=1", (1, 1, 0, 1)),
    ],
)
def test_a_mix_is_read(text: str, shares: tuple[float, float, float, float]) -> None:
    assert astuple(parse_mix(text)) == pytest.approx(shares)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("put=0.5", "add up to 0.5"),
        ("put=0.5,get=0.6", "add up to 1.1"),
        ("puts=1", "did you mean 'put'"),
        ("delete=1", "it takes put, update, insert, get, read, scan and rmw"),
        ("put=0.5,put=0.5", "put twice"),
        ("put", "shares by kind"),
        ("put=-1,get=2", "a share from 0 to 1"),
        ("put=nan,get=1", "a share from 0 to 1"),
        ("", "add up to 0"),
    ],
)
def test_a_mix_that_is_none_is_refused(text: str, says: str) -> None:
    with pytest.raises(SpillwayError, match=says):
        parse_mix(text)


@pytest.mark.parametrize(
    ("load", "limits", "says"),
    [
        ({"data_bytes": 1000}, {}, "at least 1000"),
        ({"key_bytes": 4}, {}, "at least 8 bytes"),
        ({"data_bytes": 2 * DRIVE.capacity_bytes}, {}, "does not fit the drive"),
        ({}, {"space_bytes": GIB}, "--space is less than --data"),
    ],
)
def test_a_load_that_nothing_could_hold_is_refused(load: Document, limits: Document, says: str) -> None:
    with pytest.raises(SpillwayError, match=says):
        check(replace(LOAD, **load), Limits(**limits), DRIVE.capacity_bytes)


# ---------------------------------------------------------------- configurations


def test_every_configuration_fits_the_memory_and_is_there_once() -> None:
    limits = Limits(memory_bytes=256 * MIB)
    found = list(configurations(LOAD, limits, 8))
    assert len(found) == len(set(found)) > 1000
    assert {each.shape for each in found} == set(SHAPES)
    for each in found:
        assert memory_bytes(each, LOAD.pairs, LOAD.data_bytes, LOAD.key_bytes) <= limits.memory_bytes
        assert each.subcompactions <= each.compaction_threads <= 8
        assert each.l0_files <= each.l0_slowdown <= each.l0_stop


def test_small_values_are_not_separated() -> None:
    assert SEPARATED not in {each.shape for each in configurations(replace(LOAD, value_bytes=64), Limits(), 2)}


@pytest.mark.parametrize("threads", range(1, 33))
def test_background_jobs_give_compactions_their_threads(threads: int) -> None:
    jobs = replace(DEFAULTS, compaction_threads=threads).background_jobs
    assert jobs - max(1, jobs // 4) >= threads  # as RocksDB divides them
    assert jobs == 2 or (jobs - 1) - max(1, (jobs - 1) // 4) < threads


def test_a_neighbour_differs_in_its_line() -> None:
    config = next(each for each in configurations(LOAD, Limits(), 8) if each.shape == LEVELED)
    for line, each in neighbours(config, 8):
        assert getattr(each, line) != getattr(config, line)


@pytest.mark.parametrize("data", [100 * MIB, GIB, 100 * GIB])
@pytest.mark.parametrize("dynamic", [False, True])
def test_levels_hold_the_data(data: int, dynamic: bool) -> None:
    sizes = level_sizes(replace(DEFAULTS, dynamic_levels=dynamic), data)
    assert sizes == sorted(sizes) or not dynamic
    assert sum(sizes) == pytest.approx(data, rel=0.15)


# ---------------------------------------------------------------- laws of the closed forms and of predictions


def config_of(shape: str, **changes: Any) -> Configuration:
    return replace(DEFAULTS, shape=shape, fanout=1 if shape == SINGLE else 10, **changes)


@pytest.mark.parametrize("shape", SHAPES)
def test_laws_of_the_closed_forms(shape: str) -> None:
    config = config_of(shape)
    base = closed_form(LOAD, config, DRIVE, 8)
    larger = closed_form(replace(LOAD, data_bytes=4 * LOAD.data_bytes), config, DRIVE, 8)
    buffered = closed_form(LOAD, replace(config, write_buffer_bytes=256 * MIB), DRIVE, 8)
    threaded = closed_form(LOAD, replace(config, compaction_threads=4, subcompactions=4), DRIVE, 8)
    assert base.wa_app >= 2 - 1e-9  # a log and a flush
    assert larger.wa_app >= base.wa_app - 1e-9 and larger.held_bytes > base.held_bytes
    assert buffered.wa_app <= base.wa_app + 1e-9
    assert threaded.put_ops_s >= base.put_ops_s - 1e-9


def test_values_are_relocated_as_fast_as_they_are_read_one_at_a_time() -> None:
    """A compaction is slowed by a slow drive's reads, and writers go on: of each put less is relocated. At a low rate
    of puts there is time for every value that a compaction finds in the oldest files."""
    load = replace(LOAD, puts=1.0, gets=0.0, scans=0.0)
    config = config_of(SEPARATED, dynamic_levels=True)
    reads = {size: [(k, 10 * mean, 10 * p99) for k, mean, p99 in points] for size, points in READS.items()}
    slow = replace(DRIVE, times=replace(DRIVE.times, reads=reads))
    fast, slowed, paced, idle = (
        closed_form(each, config, drive, 8).wa_app
        for each, drive in ((load, DRIVE), (load, slow), (replace(load, rate_ops_s=20000.0), DRIVE),
                            (replace(load, rate_ops_s=1.0), slow))
    )  # fmt: skip
    assert 2.0 < slowed < fast < paced < idle
    rewritten = (idle - 2.0) * load.pair_bytes  # addresses and relocated values, of each put
    assert rewritten > BLOB_AGE_CUTOFF * load.pair_bytes


def test_a_single_level_reads_less_and_writes_more() -> None:
    leveled, single = (closed_form(LOAD, config_of(shape), DRIVE, 8) for shape in (LEVELED, SINGLE))
    assert single.wa_app > 2 * leveled.wa_app
    assert reads.sorted_runs(single) < reads.sorted_runs(leveled)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("mix", [(1, 0, 0), (0, 1, 0), (0, 0, 1), (0.4, 0.4, 0.2)])
def test_laws_of_predictions(shape: str, mix: tuple[float, float, float]) -> None:
    load = replace(LOAD, puts=mix[0], gets=mix[1], scans=mix[2])
    config = config_of(shape)
    traffic = closed_form(load, config, DRIVE, 8)
    base = predict(load, config, DRIVE, traffic, 8)
    more = predict(replace(load, clients=32), config, DRIVE, traffic, 8)
    assert more.throughput_ops_s.value >= base.throughput_ops_s.value * 0.999
    fewer_cores = predict(load, config, DRIVE, traffic, 1)
    assert fewer_cores.throughput_ops_s.value <= base.throughput_ops_s.value * 1.001
    cached = predict(load, replace(config, block_cache_bytes=8 * GIB), DRIVE, traffic, 8)
    assert cached.throughput_ops_s.value >= base.throughput_ops_s.value * 0.999
    for figure in (base.throughput_ops_s, base.wa_app, base.wa_device, base.wa_total, base.held_bytes):
        assert 0 < figure.low <= figure.value <= figure.high
    assert set(base.p99_us) == {kind for kind, share in zip(("put", "get", "scan"), mix, strict=True) if share}
    assert all(base.mean_us[kind] <= base.p99_us[kind].value for kind in base.p99_us if kind != "put")
    if mix[0]:
        assert base.flash_bytes_per_op.value == pytest.approx(mix[0] * LOAD.pair_bytes * base.wa_total.value)
    else:
        assert base.years is None and base.flash_bytes_per_op.value == 0


def test_clients_that_wait_for_each_operation_do_no_more_than_their_time_allows() -> None:
    load = replace(LOAD, puts=0.0, gets=1.0, scans=0.0, clients=1)
    found = prediction(load, config_of(LEVELED))
    assert found.throughput_ops_s.value == pytest.approx(1e6 / found.mean_us["get"], rel=0.02)
    assert found.limited_by == "clients"


def test_more_operations_wait_longer() -> None:
    slow, fast = (prediction(replace(LOAD, rate_ops_s=rate), config_of(LEVELED)) for rate in (500.0, 8000.0))
    assert fast.mean_us["get"] > slow.mean_us["get"]
    assert fast.p99_us["get"].value > slow.p99_us["get"].value
    assert slow.years is not None and fast.years is not None
    assert slow.years.value == pytest.approx(16 * fast.years.value, rel=0.01)


def test_filters_spare_blocks_and_the_cache_holds_upper_levels_first() -> None:
    load = replace(LOAD, puts=0.0, gets=1.0, scans=0.0)
    plain, filtered = config_of(LEVELED, block_cache_bytes=0), config_of(LEVELED, block_cache_bytes=0, bits_per_key=10)
    traffic = closed_form(load, plain, DRIVE, 8)
    runs = reads.sorted_runs(traffic)
    small = replace(traffic, l0_bytes=1e3, level_bytes=(1e3, 1e3, 1e11))  # nearly every key is in the last level alone
    looked_into = small.l0_files + COVERED * 2 + 1
    assert reads.get(load, plain, small).blocks == pytest.approx(looked_into)
    of_small = 1 + (looked_into - 1) * 0.6185**10
    assert reads.get(load, filtered, small).blocks == pytest.approx(of_small)
    upper = int(traffic.l0_files * traffic.l0_bytes + sum(traffic.level_bytes[:-1]))
    cached = reads.get(load, replace(plain, block_cache_bytes=upper), traffic).blocks
    assert 0.5 < cached < 0.5 * runs  # all of them are smaller than the last level


@pytest.mark.parametrize("cache", [0, MIB, 64 * MIB, GIB, 10 * GIB, 1000 * GIB])
def test_the_cache_holds_what_it_has_room_for(cache: int) -> None:
    alike = [(3.0, 64.0 * MIB), (1.0, 256.0 * MIB), (1.0, 99.0 * GIB)]
    runs = [(count, Classes(np.array([size / 4096]), np.array([1.0]))) for count, size in alike]
    hits = reads._hits(runs, cache / 4096)
    whole = sum(count * size for count, size in alike)
    held = sum(count * size * hit for (count, size), hit in zip(alike, hits, strict=True))
    assert held == pytest.approx(min(cache, whole), rel=1e-3, abs=1)
    assert hits == sorted(hits, reverse=True)


def test_the_papers_headline_follows() -> None:
    """MQSSD, Table 5: point queries about twice as fast in a single level, scans faster too, and writes dearer. Of
    queries the model says up to half more: each of the paper's takes some time beside its blocks."""
    load = Workload(128 * 10**9, 16, 2048, 0.0, 1.0, 0.0, 128, None, 32)
    config = {
        "single": replace(DEFAULTS, shape=SINGLE, fanout=1, l0_files=1, compaction_threads=32, subcompactions=32),
        "flash": FLASH,
    }
    config = {name: replace(each, block_cache_bytes=GIB, direct_io=True) for name, each in config.items()}
    gets, scans, flash = {}, {}, {}
    for name, each in config.items():
        traffic = replace(closed_form(load, each, DRIVE, 12), l0_files=0.0 if name == "single" else 4.0)
        gets[name] = predict(load, each, DRIVE, traffic, 12).throughput_ops_s.value
        ranges = replace(load, gets=0.0, scans=1.0)
        scans[name] = predict(ranges, each, DRIVE, traffic, 12).throughput_ops_s.value
        flash[name] = traffic.wa_app * traffic.wa_device
    assert 1.5 < gets["single"] / gets["flash"] < 1.5 * 1.92
    assert 1.05 < scans["single"] / scans["flash"] < gets["single"] / gets["flash"] + 0.5
    assert flash["single"] > 2 * flash["flash"]


# ---------------------------------------------------------------- the simulator's requests and answers


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("skew", [None, 0.9])
def test_requests_are_of_the_form_that_is_agreed(shape: str, skew: float | None, validator: Any) -> None:
    setting = Setting(replace(LOAD, skew=skew), DRIVE, 4, fake_lsm.simulate)
    for asked in (
        request(setting, config_of(shape), 2.0, 1),
        request(setting, config_of(shape, discard=False, extra_op=0.1, spill="lazy", spill_bytes=GIB), 2.0, 1, 1000.0),
        request(setting, config_of(shape, write_buffer_bytes=64 * 1024, file_bytes=64 * 1024), 2.0, 1),
    ):
        fake_lsm.check(asked)
        validator("lsm-simulate.request.schema.json").validate(asked)


def test_a_small_model_has_the_same_shape() -> None:
    load = replace(LOAD, data_bytes=1000 * GIB)
    drive = replace(DRIVE, capacity_bytes=4000 * GIB)
    setting = Setting(load, drive, 4, fake_lsm.simulate)
    asked = request(setting, DEFAULTS, 1.0, 1)
    factor = setting.factor(DEFAULTS)
    assert factor > 50
    tree = asked["tree"]
    assert tree["soft_pending_compaction_bytes_limit"] == pytest.approx(64 * GIB / factor, rel=1e-3)
    assert tree["hard_pending_compaction_bytes_limit"] == pytest.approx(256 * GIB / factor, rel=1e-3)
    assert asked["host"]["log_dirty_bytes"] == pytest.approx(64 * MIB / factor, rel=1e-3)
    assert tree["write_buffer_size"] == pytest.approx(DEFAULTS.write_buffer_bytes / factor, rel=1e-3)
    data = asked["load"]["num"] * load.pair_bytes
    whole = load.data_bytes / DEFAULTS.level_base_bytes
    assert data / tree["max_bytes_for_level_base"] == pytest.approx(whole, rel=0.01)
    capacity = int(asked["drive"]["set"]["capacity.capacity_bytes"])
    assert data / capacity == pytest.approx(load.data_bytes / drive.capacity_bytes, rel=0.01)
    assert capacity >= drive.least_capacity_bytes - 4096


def test_spare_flash_grows_with_what_is_left_out() -> None:
    plain, extra = DRIVE.model(1, 0.0)["set"], DRIVE.model(1, 0.25)["set"]
    logical, smaller = int(plain["capacity.capacity_bytes"]), int(extra["capacity.capacity_bytes"])
    assert smaller == pytest.approx(0.75 * logical, rel=1e-4)
    physical = logical / DRIVE.data_share
    assert smaller / (1 - float(extra["capacity.spare_factor"])) == pytest.approx(physical, rel=1e-3)


def test_the_growing_tree_is_left_out_of_thorough_figures() -> None:
    setting = Setting(LOAD, DRIVE, 4, fake_lsm.simulate)
    found = thorough(setting, DEFAULTS, (1, 2))
    tree = request(setting, DEFAULTS, 1.0, 1)["tree"]
    data = LOAD.scaled(setting.factor(DEFAULTS)).pairs * LOAD.pair_bytes
    assert found.wa_app == pytest.approx(2 + fake_lsm.rewritten(tree, data, None), rel=0.01)  # a log and a flush
    assert dict(found.spread)["wa_app"] > 0
    assert found.stopped_share == pytest.approx(0.05, rel=0.01)


def test_a_configuration_is_simulated_once_for_each_seed_and_rate() -> None:
    asked: list[dict[str, Any]] = []

    def counted(document: dict[str, Any]) -> dict[str, Any]:
        asked.append(document)
        return fake_lsm.simulate(document)

    setting = Setting(LOAD, DRIVE, 4, remembering(counted))
    quick(setting, DEFAULTS)
    thorough(setting, DEFAULTS, (1, 2))
    thorough(setting, DEFAULTS, (1,), 5000.0)
    thorough(setting, DEFAULTS, (1,), 5000.0)
    assert [(each["seed"], each["load"]["rate_ops_s"]) for each in asked] == [(1, None), (2, None), (1, 5000.0)]


def test_a_simulation_that_a_signal_ended_says_nothing() -> None:
    asked: list[bool] = []

    def ended(document: dict[str, Any]) -> dict[str, Any]:
        asked.append(True)
        return {"complete": False, "operations": 0}

    setting = Setting(LOAD, DRIVE, 4, remembering(ended))
    for _ in range(2):
        with pytest.raises(Interrupted):
            quick(setting, DEFAULTS)
    assert len(asked) == 2


def test_progress_says_how_much_there_is_to_do() -> None:
    events: list[dict[str, Any]] = []
    request = Request(LOAD, Limits(memory_bytes=GIB), DRIVE, 2, simulated=12, simulate=fake_lsm.simulate)
    found = advise(request, lambda label, event: events.append(event))
    phases = dict.fromkeys(each["phase"] for each in events)
    assert len(phases) == 2
    for phase in phases:
        own = [each for each in events if each["phase"] == phase]
        assert own[0]["done"] == 0 < own[0]["total"]
        assert [each["done"] for each in own] == sorted(each["done"] for each in own)
        assert own[-1]["done"] == own[-1]["total"] and all(each["done"] <= each["total"] for each in own)
    assert sum(max(each["done"] for each in events if each["phase"] == phase) for phase in phases) == found.simulated


def test_space_is_left_free_where_there_is_garbage_to_collect() -> None:
    """With discard the stand-in's drive has next to none, in proportion to the data."""
    for share, leaves in ((0.02, False), (0.3, True)):
        load = replace(LOAD, data_bytes=int(share * DRIVE.capacity_bytes))
        found = advice(load)
        asked = [key for key in found.variants if key.startswith("extra OP")]
        assert bool(asked) is leaves, share


def test_a_mix_is_simulated_at_its_own_rate_of_puts() -> None:
    alone = ask(replace(LOAD, puts=1.0, gets=0.0, scans=0.0), DEFAULTS)
    mixed = ask(replace(LOAD, puts=0.05, gets=0.95, scans=0.0, clients=1), DEFAULTS)
    assert mixed.wa_app.value > 1.02 * alone.wa_app.value  # no files gather in L0
    assert mixed.traffic.put_ops_s < alone.traffic.put_ops_s  # and each put costs the drive more


def test_separated_values_are_written_twice() -> None:
    setting = Setting(LOAD, DRIVE, 4, fake_lsm.simulate)
    found = thorough(setting, config_of(SEPARATED, dynamic_levels=True), (1,))
    assert 2.0 < found.wa_app < thorough(setting, config_of(LEVELED), (1,)).wa_app


# ---------------------------------------------------------------- ranking


def test_the_ranking_keeps_the_limits_and_its_order() -> None:
    found = advice(limits=Limits(p99_s=0.05, memory_bytes=GIB), order="wa-total")
    limits = limits_of(found.request.load, found.request.limits)
    assert all(keeps(each, limits) for each in found.ranked)
    totals = [each.flash_bytes_per_op.value for each in found.ranked]
    assert totals == sorted(totals) or max(b / a for a, b in pairwise(totals)) > 0.97
    assert found.ranked[0].flash_bytes_per_op.value <= min(each.flash_bytes_per_op.value
                                                          for each in found.rivals.values())  # fmt: skip


def test_no_order_is_better_by_another() -> None:
    fastest, cheapest = advice(order="throughput"), advice(order="wa-total")
    assert fastest.winner.throughput_ops_s.value >= 0.98 * cheapest.winner.throughput_ops_s.value
    assert cheapest.winner.flash_bytes_per_op.value <= 1.02 * fastest.winner.flash_bytes_per_op.value


def test_the_advised_is_never_predicted_worse_than_the_rivals() -> None:
    for mix in ((1.0, 0.0, 0.0), (0.2, 0.3, 0.5)):
        load = replace(LOAD, puts=mix[0], gets=mix[1], scans=mix[2])
        found = advice(load=load)
        for each in found.rivals.values():
            assert found.winner.throughput_ops_s.value >= 0.98 * each.throughput_ops_s.value


@pytest.mark.parametrize(
    ("load", "limits", "says"),
    [
        ({"rate_ops_s": 1e8}, {}, "100,?0*|1e\\+08 operations/s \\(--rate\\)"),
        ({}, {"p99_s": 1e-7}, "p99 of at most 0.1 µs \\(--p99\\)"),
        ({}, {"years": 900.0}, "lasts 900 years \\(--years\\)"),
        ({}, {"space_bytes": LOAD.data_bytes}, "on the drive \\(--space\\)"),
    ],
)
def test_what_no_configuration_serves_names_the_limit_and_the_nearest(
    load: Document, limits: Document, says: str
) -> None:
    with pytest.raises(SpillwayError, match=says) as raised:
        advice(load=replace(LOAD, **load), limits=Limits(memory_bytes=GIB, **limits))
    sentence = str(raised.value)
    assert sentence.startswith("No configuration serves this") and "the nearest has" in sentence
    assert sentence.count("\n") == 0 and raised.value.exit_code == 2


def test_a_spill_store_that_gains_nothing_is_not_advised() -> None:
    """Where rate and flash bytes are alike, the arm without one comes first."""
    without = prediction(LOAD, config_of(LEVELED))
    rate, flash = without.throughput_ops_s, without.flash_bytes_per_op
    ahead = replace(without, config=replace(without.config, spill="eager", spill_bytes=GIB))
    ahead = replace(ahead, throughput_ops_s=replace(rate, value=rate.value * 1.0001))
    ahead = replace(ahead, flash_bytes_per_op=replace(flash, value=flash.value * 0.9999))
    limits = limits_of(LOAD, Limits(memory_bytes=100 * GIB))
    assert ranked([ahead, without], limits, "throughput") == [without, ahead]
    faster = replace(ahead, throughput_ops_s=replace(rate, value=rate.value * 1.2))
    assert ranked([without, faster], limits, "throughput")[0] == faster


@pytest.mark.parametrize("fits", ["leveled", "universal"])
def test_what_does_not_fit_the_drive_is_left_out(fits: str) -> None:
    def simulate(asked: Document) -> Document:
        if asked["tree"]["shape"] != fits or asked["tree"]["levels"] == 2:
            raise DriveFull("the tree does not fit the drive")
        return fake_lsm.simulate(asked)

    found = advise(Request(LOAD, Limits(memory_bytes=GIB), DRIVE, 2, simulate=simulate, simulated=12, top=3))
    shapes = {"leveled": {"leveled", "value separation"}, "universal": {"universal"}}[fits]
    assert {each.config.shape for each in (*found.ranked, *found.variants.values())} <= shapes
    without = set() if fits == "leveled" else {"RocksDB's defaults", "flash configuration"}
    assert set(found.without_room) == without and not without & set(found.rivals)
    assert reasons(found) and document(found, others(LOAD, DRIVE), [])["without_room"] == list(found.without_room)
    assert sum("no room" in each for each in comparison(found)) == len(without)


def test_data_that_leave_no_room_are_refused() -> None:
    def simulate(asked: Document) -> Document:
        raise DriveFull("the tree does not fit the drive")

    with pytest.raises(SpillwayError, match="which leaves no room for compactions: name a larger drive"):
        advise(Request(LOAD, Limits(memory_bytes=GIB), DRIVE, 2, simulate=simulate, simulated=4))
    small = replace(DRIVE, capacity_bytes=int(1.01 * LOAD.data_bytes), least_capacity_bytes=GIB)
    with pytest.raises(SpillwayError, match="which leaves no room for compactions: name a larger drive"):
        advise(Request(LOAD, Limits(memory_bytes=GIB), small, 2, simulate=fake_lsm.simulate, simulated=4))


def test_limits_that_exclude_each_other_are_named_together() -> None:
    fast, small = prediction(LOAD, config_of(LEVELED)), prediction(LOAD, config_of(UNIVERSAL))
    fast = replace(fast, held_bytes=replace(fast.held_bytes, value=3e11))
    small = replace(small, held_bytes=replace(small.held_bytes, value=1e11))
    small = replace(small, throughput_ops_s=replace(small.throughput_ops_s, value=10.0))
    limits = limits_of(replace(LOAD, rate_ops_s=1000.0), Limits(space_bytes=2 * 10**11, memory_bytes=100 * GIB))
    with pytest.raises(SpillwayError, match="together with"):
        ranked([fast, small], limits, "throughput")
    assert "none of 2 configurations" in why_none([fast, small], limits)


@pytest.mark.parametrize(
    ("mix", "rollback"), [((1, 0, 0), "lazy"), ((0.9, 0.1, 0), "adaptive"), ((0.5, 0.3, 0.2), "eager")]
)
def test_rollback_follows_the_readers(mix: tuple[float, float, float], rollback: str) -> None:
    assert rollback_for(replace(LOAD, puts=mix[0], gets=mix[1], scans=mix[2])) == rollback


def test_a_rate_to_keep_asks_for_the_cheapest() -> None:
    assert default_order(replace(LOAD, rate_ops_s=10.0)) == "wa-total"
    assert default_order(LOAD) == "throughput"


# ---------------------------------------------------------------- reasons and the document


@pytest.mark.parametrize(
    ("load", "more"),
    [
        ({}, {}),
        ({"puts": 1.0, "gets": 0.0, "scans": 0.0}, {"cores": 1}),
        ({"puts": 0.0, "gets": 1.0, "scans": 0.0, "clients": 64}, {"cores": 8}),
        ({"puts": 0.0, "gets": 0.0, "scans": 1.0}, {}),
        ({"puts": 0.9, "gets": 0.1, "scans": 0.0, "value_bytes": 4000, "skew": 0.9}, {"order": "wa-total"}),
        ({"puts": 0.5, "gets": 1.0, "scans": 0.0, "rmws": 0.5, "rate_ops_s": 500.0}, {"discard": False}),
        ({"value_bytes": 50, "data_bytes": 10 * GIB}, {"limits": Limits(memory_bytes=GIB // 2)}),
        ({"data_bytes": 700 * 10**9}, {"limits": Limits(memory_bytes=3 * GIB)}),
    ],
)
def test_each_line_of_the_winner_has_a_sentence_with_a_figure(load: Document, more: Document) -> None:
    found = advice(load=replace(LOAD, **load), **more)
    lines = reasons(found)
    assert {"shape", "L0 files", "memtables", "memtable size", "file size", "compaction threads", "subcompactions",
            "block size", "filters", "block cache", "direct I/O", "discard", "extra over-provisioning",
            "Spillway"} <= {each.line for each in lines}  # fmt: skip
    for each in lines:
        assert each.sentence.endswith(".") and each.sentence[0].isupper() and "\n" not in each.sentence, each
        assert any(letter.isdigit() for letter in each.sentence), each


def test_a_value_that_was_not_worth_a_simulation_is_told_by_closed_forms() -> None:
    found = advice()
    some = {name: each for name, each in found.variants.items() if not name.startswith(("fanout", "l0_files"))}
    lines = {each.line: each.sentence for each in reasons(replace(found, variants=some))}
    assert "by closed forms" in lines["L0 files"] and "by closed forms" not in lines["file size"]
    assert any(word in lines["L0 files"] for word in ("operations/s", "flash an operation"))
    limits = Limits(memory_bytes=found.winner.memory_bytes - found.winner.config.block_cache_bytes + 1)
    tight = replace(found, request=replace(found.request, limits=limits), variants={})
    assert "of memory without a block cache" in {e.line: e.sentence for e in reasons(tight)}["memtable size"]


def test_the_document_is_json_and_says_what_was_asked() -> None:
    found = advice()
    made = json.loads(json.dumps(document(found, others(LOAD, DRIVE), []), allow_nan=False))
    assert made["contract"] == 1
    assert made["load"]["data_bytes"] == LOAD.data_bytes
    assert made["ranked"][0]["configuration"]["shape"] in SHAPES
    assert {"RocksDB's defaults", "flash configuration"} <= set(made["rivals"])
    assert made["options"]["write_buffer_size"] == str(found.winner.config.write_buffer_bytes)


@pytest.mark.parametrize("value", [0, 1, 2**12, 300_000, 2**19, 2**24])
def test_there_is_a_node_for_values_of_any_size(value: int) -> None:
    found = others(replace(LOAD, value_bytes=value), DRIVE)
    assert found.node_bytes in found.node_us
    (_, words), *_ = found.sentences()
    assert words.startswith("An operation takes ") and words.endswith(" times its bytes.")


def test_node_sizes_follow_the_memory() -> None:
    """Of nodes whose inner nodes do not fit the cache each search reads one more; what the cache holds is not read."""
    point = replace(LOAD, puts=0.0, gets=1.0, scans=0.0)
    roomy, tight = (others(point, DRIVE, size) for size in (4 * GIB, 64 * MIB))
    assert all(roomy.node_us[size] < tight.node_us[size] for size in roomy.node_us)
    assert tight.node_us[2**12] > 1.8 * roomy.node_us[2**12] and tight.node_us[2**17] < 1.1 * roomy.node_us[2**17]
    halved, small = (others(point, DRIVE, size).node_us[2**16] for size in (LOAD.data_bytes // 2, GIB))
    assert halved == pytest.approx(0.55 * small, rel=0.02)
    assert set(others(point, DRIVE, 2 * LOAD.data_bytes).node_us.values()) == {0.0}


def test_what_is_modified_has_been_read() -> None:
    apart = replace(LOAD, puts=0.5, gets=0.5, scans=0.0)
    together = replace(apart, puts=1.0, gets=1.0, rmws=1.0)
    byte_us = 1 / DRIVE.times.stream_mb_s("write")
    for size, cost in others(together, DRIVE).node_us.items():
        assert cost == pytest.approx(others(apart, DRIVE).node_us[size] + 0.5 * size * byte_us)


def test_node_sizes_follow_the_mix() -> None:
    point = others(replace(LOAD, puts=0.0, gets=1.0, scans=0.0), DRIVE)
    ranges = others(replace(LOAD, puts=0.0, gets=0.0, scans=1.0, scan_pairs=1000), DRIVE)
    assert point.node_bytes < ranges.node_bytes  # small leaves for points, large for scans (M35)
    assert point.n_w == pytest.approx(8) and point.n_r == pytest.approx(32)
    assert point.compactions_at_once == 4


# ---------------------------------------------------------------- the command


@pytest.fixture
def ask_command(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """A question about the made drive, answered by the stand-in."""
    monkeypatch.setattr("spillway.advise.drive.of_preset", lambda *_: DRIVE)
    monkeypatch.setattr("spillway.lsm.simulate", fake_lsm.simulate)
    return ["advise", "--preset", "made", "--data", "100GB", "--cores", "2"]


def test_the_command_prints_and_writes(invoke: Any, ask_command: list[str], tmp_path: Path) -> None:
    done = invoke(*ask_command, "--options", tmp_path / "OPTIONS", "--wiredtiger", tmp_path / "wt",
                  "--json", tmp_path / "a.json", "--mix", "put=0.5,get=0.4,scan=0.1")  # fmt: skip
    assert done.code == 0, done.err
    for words in ("Ranked by throughput", "RocksDB's defaults", "flash configuration", "Why 1 is as it is",
                  "B-tree nodes", "compactions at once"):  # fmt: skip
        assert words in done.out
    assert json.loads((tmp_path / "a.json").read_text())["ranked"]
    assert "[Version]" in (tmp_path / "OPTIONS").read_text()
    assert (tmp_path / "wt").read_text().startswith("wiredtiger_open: create,")


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--data", "1GB"], "--preset NAME"),
        (["--preset", "samsung-970-pro", "--data", "1GB"], "there is none called 'samsung-970-pro'"),
        (["--preset", "hdd", "--data", "1GB"], "is a disk"),
        (["--profile", "nowhere", "--data", "1GB"], "there is no such profile"),
        (["--preset", "quickstart", "--profile", "x", "--data", "1GB"], "--preset NAME"),
        (["--preset", "quickstart", "--data", "1GB", "--out", "x"], "--verify"),
        (["--preset", "quickstart", "--data", "1GB", "--options", "nowhere/OPTIONS"], "make it first"),
    ],
)
def test_bad_input_is_one_sentence(invoke: Any, tmp_path: Path, words: list[str], says: str,
                                   monkeypatch: pytest.MonkeyPatch) -> None:  # fmt: skip
    monkeypatch.chdir(tmp_path)
    done = invoke("advise", *words)
    assert done.code == 2
    assert says in done.err and done.err.count("\n") == 1, done.err


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--mix", "put=2"], "a share from 0 to 1"),
        (["--rate", "1e8"], "No configuration serves this"),
        (["--years", "-1"], "above 0"),
        (["--data", "100TB"], "does not fit the drive"),
        (["--current", "nowhere"], "cannot be read"),
        (["--set", "a=b", "--profile", "p"], "--preset NAME"),
        (["--p99", "5"], "not a time"),
        (["--memory", "1XB"], "not a size"),
    ],
)
def test_a_question_that_is_none_is_one_sentence(
    invoke: Any, ask_command: list[str], words: list[str], says: str
) -> None:
    at = ask_command.index("--data")
    own = ask_command if "--data" not in words else [*ask_command[:at], *ask_command[at + 2 :]]
    done = invoke(*own, *words)
    assert done.code == 2
    assert says in done.err and done.err.count("\n") == 1, done.err


@pytest.mark.parametrize(("raised", "code"), [(RunFailed, 1), (SpillwayError, 2), (Interrupted, 130)])
def test_a_check_that_is_refused_loses_nothing_of_the_answer(
    invoke: Any, ask_command: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    raised: type[SpillwayError], code: int,
) -> None:  # fmt: skip
    def verify(*_: Any) -> Any:
        raise raised("it broke.")

    monkeypatch.setattr("spillway.advise.advise", lambda *_: advice())
    monkeypatch.setattr("spillway.advise.verify.verify", verify)
    for json_path in ("-", tmp_path / "a.json"):
        done = invoke(*ask_command, "--verify", "--out", tmp_path / "run", "--json", json_path)
        assert (done.code, done.err) == (code, "spillway: it broke.\n")
        answer = json.loads(done.out if json_path == "-" else (tmp_path / "a.json").read_text())
        assert answer["ranked"] and answer["verified"] == []


@pytest.mark.parametrize(
    ("failure", "interrupted", "code"), [("", False, 0), ("an arm failed.", False, 1), ("", True, 130)]
)
def test_a_check_ends_as_its_run_does(
    invoke: Any, ask_command: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    failure: str, interrupted: bool, code: int,
) -> None:  # fmt: skip
    found = advice()
    ran = Finished(tmp_path / "run", {}, failure, interrupted, 1 if failure else 0)
    arms = [Verified("advised", found.winner.config, found.winner, None)]
    monkeypatch.setattr("spillway.advise.advise", lambda *_: found)
    monkeypatch.setattr("spillway.advise.verify.verify", lambda *_: Check(arms, ran))
    done = invoke(*ask_command, "--verify", "--out", tmp_path / "run")
    assert done.code == code
    assert done.err == (f"spillway: an arm failed. What was measured is in {tmp_path / 'run'}.\n" if failure else "")


def test_figures_are_finite(tmp_path: Path) -> None:
    found = ask(LOAD, DEFAULTS)
    assert all(math.isfinite(value) for value in (found.throughput_ops_s.value, found.wa_total.high))
