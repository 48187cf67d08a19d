"""Clients that go round several stations, against closed forms, a birth-death chain and mean value analysis."""

import math
import random
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from spillway.errors import SpillwayError
from spillway.models import closed, network
from spillway.models.arrays import Array


def queue(time_us: float, clients: int) -> Array:
    return network.server_rates(time_us, 1, clients)


@pytest.mark.parametrize("clients", [1, 2, 7, 40])
@pytest.mark.parametrize("ratio", [0.02, 0.3, 1.0, 5.0])
def test_the_machine_repairman(clients: int, ratio: float) -> None:
    """One repairman, M machines: busy but for p_0 = 1 / sum M! / (M - j)! (D / Z)^j."""
    broken_us, works_us = 10.0 * ratio, 10.0
    idle = 1 / sum(math.perm(clients, j) * ratio**j for j in range(clients + 1))
    found = network.throughput([queue(broken_us, clients), network.delay_rates(works_us, clients)])
    assert found == pytest.approx((1 - idle) / broken_us)


@pytest.mark.parametrize("servers", [1, 2, 5, 16])
def test_several_repairmen(servers: int) -> None:
    """M/M/m//M, by the states of its birth-death chain."""
    clients, broken_us, works_us = 12, 30.0, 50.0
    states = [1.0]
    for j in range(1, clients + 1):
        states.append(states[-1] * (clients - j + 1) / works_us * broken_us / min(j, servers))
    mean = sum(j * each for j, each in enumerate(states)) / sum(states)
    stations = [network.server_rates(broken_us, servers, clients), network.delay_rates(works_us, clients)]
    assert network.throughput(stations) == pytest.approx((clients - mean) / works_us)
    assert network.numbers(stations) == pytest.approx([mean, clients - mean])


@pytest.mark.parametrize("clients", [1, 3, 30, 400])
@pytest.mark.parametrize("stations", [1, 2, 5])
def test_a_balanced_network(clients: int, stations: int) -> None:
    """M queues alike: X = n / (D (n + M - 1)), and each has as many."""
    alike = [queue(4.0, clients)] * stations
    assert network.throughput(alike) == pytest.approx(clients / (4.0 * (clients + stations - 1)))
    assert network.numbers(alike) == pytest.approx([clients / stations] * stations)


def by_mean_values(times_us: list[float], rest_us: float, clients: int) -> tuple[float, list[float]]:
    """Reiser and Lavenberg's recursion: who comes finds what there would be without it."""
    waiting, rate = [0.0] * len(times_us), 0.0
    for count in range(1, clients + 1):
        there = [time * (1 + queued) for time, queued in zip(times_us, waiting, strict=True)]
        rate = count / (rest_us + sum(there))
        waiting = [rate * each for each in there]
    return rate, waiting


@pytest.mark.parametrize("clients", [1, 2, 9, 64, 1000])
@pytest.mark.parametrize(("times", "rest"), [([3.0, 5.0, 1.0], 20.0), ([7.0, 0.1], 3.0), ([1.0], 500.0)])
def test_mean_value_analysis_says_the_same(times: list[float], rest: float, clients: int) -> None:
    rate, waiting = by_mean_values(times, rest, clients)
    stations = [*(queue(each, clients) for each in times), network.delay_rates(rest, clients)]
    assert network.throughput(stations) == pytest.approx(rate)
    assert network.numbers(stations) == pytest.approx([*waiting, rate * rest])


@pytest.mark.parametrize("k", [1, 5, 40, 4096])
def test_a_delay_and_a_queue_are_the_model_of_a_drive(k: int) -> None:
    stations = [queue(0.8, k), network.delay_rates(60.0 - 0.8, k)]
    assert 1 / network.throughput(stations) == pytest.approx(float(closed.operation_us(k, 60.0, 0.8)))


def drawn(dice: random.Random, clients: int) -> list[Array]:
    """A drive's curve, cores and a delay."""
    alone, dies = 10 ** dice.uniform(0, 3), 10 ** dice.uniform(0, 2)
    k = np.arange(1, clients + 1)
    measured = k / (alone * (1 + (k / dies) ** 3) ** (1 / 3))
    cores = network.server_rates(10 ** dice.uniform(-1, 3), dice.choice([0.3, 1, 2, 7.5, 64, 1000]), clients)
    return [measured, cores, network.delay_rates(10 ** dice.uniform(-2, 4), clients)]


@pytest.mark.parametrize("seed", range(30))
def test_laws(seed: int) -> None:
    """All clients are somewhere; bounds of operational analysis; more clients do more, and what is faster helps."""
    dice = random.Random(seed)
    clients = dice.choice([1, 2, 5, 17, 120, 900])
    stations = drawn(dice, clients)
    rate, at = network.throughput(stations), network.numbers(stations)
    alone = sum(1 / float(each[0]) for each in stations)
    assert at.sum() == pytest.approx(clients) and (at >= 0).all()
    assert rate <= min(clients / alone, *(float(each[-1]) for each in stations)) * (1 + 1e-9)
    assert rate >= 1 / sum(1 / float(each[-1]) for each in stations) * (1 - 1e-9)  # all wait for all, everywhere
    assert at[2] == pytest.approx(rate / float(stations[2][0]))  # Little's law of the delay
    if clients > 1:
        assert network.throughput([each[:-1] for each in stations]) <= rate * (1 + 1e-9)
    assert network.throughput([1.1 * stations[0], *stations[1:]]) >= rate * (1 - 1e-9)


@pytest.mark.parametrize("seed", range(8))
def test_thousands_of_clients_keep_their_digits(seed: int) -> None:
    clients = network.MOST_CLIENTS
    stations = drawn(random.Random(seed), clients)
    bound = min(clients / sum(1 / float(each[0]) for each in stations), *(float(each[-1]) for each in stations))
    rate, at = network.throughput(stations), network.numbers(stations)
    assert 0.5 * bound < rate <= bound * (1 + 1e-9)
    assert at.sum() == pytest.approx(clients, rel=1e-6)


def test_work_that_is_offered() -> None:
    """Many clients and a rate far from saturation: each queue has rho / (1 - rho), a delay the rate times its time."""
    stations = [queue(5.0, 300), queue(8.0, 300), network.delay_rates(40.0, 300)]
    taken, at = network.offered(stations, 0.1)
    assert taken == pytest.approx(0.1) and at == pytest.approx([0.5 / 0.5, 0.8 / 0.2, 4.0], rel=1e-6)
    for rate in (1e-6, 0.01, 5.0):  # one client has at most one operation at a time, and never waits
        taken, at = network.offered([each[:1] for each in stations], rate)
        assert at / taken == pytest.approx([5.0, 8.0, 40.0])
        assert taken == pytest.approx(rate / (1 + 53 * rate))  # Erlang's loss formula of one server


@pytest.mark.parametrize("seed", range(10))
def test_offered_work_waits_longer_the_more_it_is_and_never_fills_more_than_the_clients(seed: int) -> None:
    dice = random.Random(seed)
    clients = dice.choice([1, 4, 64])
    stations = drawn(dice, clients)
    most = network.throughput(stations)
    found = [network.offered(stations, share * most) for share in (0.001, 0.3, 0.6, 0.9, 0.999)]
    there = [float(at.sum()) for _, at in found]
    waits = [float(at.sum()) / taken for taken, at in found]
    assert there == sorted(there) and there[-1] <= clients
    assert all(later >= earlier * (1 - 1e-9) for earlier, later in pairwise(waits))
    assert waits[0] == pytest.approx(sum(1 / float(each[0]) for each in stations), rel=0.2)


@pytest.mark.parametrize(
    ("stations", "says"),
    [
        ([], "one or more rows"),
        ([1.0], "one or more rows"),
        ([[1.0, 2.0], [1.0]], "one or more rows"),
        ([[1.0, 0.0]], "greater than 0"),
        ([[1.0, math.nan]], "greater than 0"),
        ([[2.0, 1.0]], "must not fall"),
        ([[]], "clients must be from 1"),
        ([np.ones(network.MOST_CLIENTS + 1)], "clients must be from 1"),
    ],
)
def test_what_is_no_network_is_refused(stations: list[Any], says: str) -> None:
    for ask in (network.throughput, network.numbers, lambda each: network.offered(each, 0.1)):
        with pytest.raises(SpillwayError, match=says):
            ask(stations)


def test_what_is_no_station_is_refused() -> None:
    for make in (
        lambda: network.delay_rates(0, 4),
        lambda: network.delay_rates(1, 0),
        lambda: network.server_rates(1, 0, 4),
        lambda: network.server_rates(math.nan, 1, 4),
        lambda: network.offered([queue(1.0, 3)], 0.0),
    ):
        with pytest.raises(SpillwayError):
            make()
