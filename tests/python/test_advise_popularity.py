"""How popular keys and blocks are under YCSB's zipfian requests, and what is predicted of an experiment of seconds."""

from dataclasses import replace
from typing import Any

import fake_lsm
import numpy as np
import pytest
from advised import DRIVE, LOAD

from spillway.advise import reads
from spillway.advise.configuration import DEFAULTS, MIB, SHAPES, SINGLE, UNIVERSAL, Configuration
from spillway.advise.exact import exact
from spillway.advise.popularity import RANKS, Classes, classes, scattered
from spillway.advise.simulated import Setting, Span, request, thorough
from spillway.advise.traffic import mean_l0_files

Document = dict[str, Any]


def config_of(shape: str, **changes: Any) -> Configuration:
    return replace(DEFAULTS, shape=shape, fanout=1 if shape == SINGLE else 10, **changes)


def ranks(dice: np.random.Generator, skew: float, draws: int) -> Any:
    """Of YCSB's: the first 10,000 by their probabilities, the others by the law's integral."""
    first = np.arange(1.0, 10_001.0) ** -skew
    begin, end = 10_000.5 ** (1 - skew), (RANKS + 0.5) ** (1 - skew)
    beyond = (end - begin) / (1 - skew)
    at = dice.uniform(0, first.sum() + beyond, draws)
    few = np.searchsorted(np.cumsum(first), at) + 1
    many = np.round((begin + (at - first.sum()) * (1 - skew)) ** (1 / (1 - skew)))
    return np.where(at < first.sum(), few, many).astype(np.uint64)


def hashed(values: Any, places: int) -> Any:
    """Each value on a place, as a hash puts it (splitmix64's finish)."""
    mixed = values * np.uint64(0x9E3779B97F4A7C15)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        mixed = (mixed ^ (mixed >> np.uint64(shift))) * np.uint64(factor)
    return ((mixed ^ (mixed >> np.uint64(31))) % np.uint64(places)).astype(int)


@pytest.mark.parametrize("skew", [0.3, 0.9, 0.99])
@pytest.mark.parametrize("pairs", [1000, 124_000, 10**9])
def test_classes_have_every_key_and_every_request(pairs: int, skew: float) -> None:
    found = classes(pairs, skew)
    assert found.count.sum() == pytest.approx(pairs, rel=1e-9)
    assert found.requests.sum() == pytest.approx(1.0, rel=1e-9)
    assert (found.count > 0).all() and (found.requests >= 0).all()
    assert (np.diff(found.of_each) <= 0).all()  # the most popular first


@pytest.mark.parametrize("skew", [0.6, 0.9, 0.99])
def test_so_many_keys_are_asked_for_as_of_requests_that_are_drawn(skew: float) -> None:
    pairs = 20_000
    found = classes(pairs, skew)
    for draws in (500, 20_000, 200_000):
        drawn = hashed(ranks(np.random.default_rng(3), skew, draws), pairs)
        distinct = float(-(found.count * np.expm1(-draws * found.of_each)).sum())
        assert distinct == pytest.approx(len(np.unique(drawn)), rel=0.04), draws


@pytest.mark.parametrize("places", [100.0, 2500.0, 1e6])
def test_what_falls_on_places_is_kept(places: float) -> None:
    of = classes(10_000, 0.99)
    found = scattered(of, places)
    assert found.count.sum() == pytest.approx(places) and found.requests.sum() == pytest.approx(1.0)
    assert scattered(Classes(of.count, 0 * of.requests), places).requests.sum() == 0
    assert found.of_each[0] >= of.of_each[0]  # the most popular key's block is asked for at least as often


@pytest.mark.parametrize("share", [0.05, 0.2, 0.6])
def test_an_lru_cache_serves_as_many_reads_as_one_that_is_simulated(share: float) -> None:
    """Blocks of four keys, and the least recently used of those that are held is dropped. Classes hide that some of
    the unpopular blocks are asked for more than others: up to 0.04 more hits are predicted."""
    pairs, draws = 8000, 80_000
    held: dict[int, None] = {}
    hits = 0
    for at, key in enumerate(hashed(ranks(np.random.default_rng(5), 0.99, draws), pairs).tolist()):
        block = key // 4
        hits += at >= draws // 2 and block in held
        held.pop(block, None)
        held[block] = None
        if len(held) > share * pairs / 4:
            held.pop(next(iter(held)))
    found = reads._hits([(1.0, scattered(classes(pairs, 0.99), pairs / 4))], share * pairs / 4)[0]
    assert found == pytest.approx(hits / (draws - draws // 2), abs=0.05)


# ---------------------------------------------------------------- an experiment


SPAN = Span(1.0, 2.0)


def experiment(**load: Any) -> Setting:
    return Setting(replace(LOAD, data_bytes=120 * MIB, **load), DRIVE, 4, fake_lsm.simulate, span=SPAN)


@pytest.mark.parametrize("skew", [None, 0.99])
@pytest.mark.parametrize("shape", SHAPES)
def test_an_experiment_is_simulated_as_it_is_run(shape: str, skew: float | None) -> None:
    setting = experiment(skew=skew)
    asked = request(setting, config_of(shape).scaled(32), 3.0, 1)["load"]
    assert (asked["duration_s"], asked["preload"]) == (3.0, "fillseq-unsettled")
    assert asked["operations"] >= 3.0e6 / setting.costs.put_us(setting.load.pair_bytes)  # never what ends it
    assert asked.get("zipfian_ranks") == (None if skew is None else RANKS)
    steady = request(replace(setting, span=None), config_of(shape).scaled(32), 3.0, 1)["load"]
    assert "duration_s" not in steady and steady["preload"] == "fillseq"
    assert steady["operations"] == 3 * setting.load.pairs


@pytest.mark.parametrize("shape", SHAPES)
def test_seconds_of_few_puts_write_less_than_a_full_tree_does(shape: str) -> None:
    """A load of gets overwrites a hundredth of its keys in two seconds: no more is predicted than its log and what is
    flushed and compacted of them, and its steady state stays what it is."""
    setting = experiment(puts=0.05, gets=0.95, scans=0.0)
    config = config_of(shape).scaled(32)

    def few(asked: Document) -> Document:
        """A simulator of which nothing is flushed in the seconds of an experiment."""
        made = fake_lsm.simulate(asked)
        if "duration_s" not in asked["load"]:
            return made
        return fake_lsm.changed(made, lambda each: {"host_bytes_written": each["user_bytes"]})

    short = exact(replace(setting, simulate=few), config, (1, 2), config)
    steady = exact(replace(setting, simulate=few, span=None), config, (1, 2), config)
    assert short.wa_app.value == pytest.approx(1, rel=0.05), "the log alone"
    assert steady.wa_app.value > 1.3 * short.wa_app.value
    assert 0 < short.throughput_ops_s.low <= short.throughput_ops_s.value


def test_l0_is_what_the_experiment_has_and_not_what_a_steady_state_has() -> None:
    config = config_of(UNIVERSAL, l0_files=16)

    def empty(asked: Document) -> Document:
        made = fake_lsm.simulate(asked)
        return fake_lsm.changed(made, lambda each: {"levels": [one for one in each["levels"] if one["level"] > 0]})

    setting = replace(experiment(), simulate=empty)
    assert thorough(setting, config, (1,)).l0_files == 0
    assert thorough(replace(setting, span=None), config, (1,)).l0_files == mean_l0_files(setting.load, config) > 1


@pytest.mark.parametrize("clients", [1, 4, 64])
def test_a_mix_is_simulated_at_the_rate_that_it_is_predicted_at(clients: int) -> None:
    """Puts alone gather files in L0, which slow the mix's reads down; at the mix's own rate there are few."""
    rates: list[float] = []

    def gathering(asked: Document) -> Document:
        made = fake_lsm.simulate(asked)
        rate = asked["load"]["rate_ops_s"]
        files = 30 if rate is None else 2
        if rate:
            rates.append(rate)
        made["levels"][0] = made["levels"][0] | {"files": files}
        return made

    setting = replace(experiment(puts=0.3, gets=0.7, scans=0.0, clients=clients), simulate=gathering)
    config = config_of("leveled", block_cache_bytes=0).scaled(32)
    found = exact(setting, config, (1, 2), config)
    assert rates and found.throughput_ops_s.value * 0.3 == pytest.approx(rates[-1], rel=0.15)
