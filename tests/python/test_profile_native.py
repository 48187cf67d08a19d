"""A profile of a small emulated drive, by the real probe: what it was made of is found, and MQSSD describes it."""

import heapq
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from conftest import Invoke

from spillway.models.arrays import Array
from spillway.profile import Profile, compare, parse_target, profile_target, read_profile
from spillway.profile.grids import CONCURRENCIES
from spillway.profile.points import PAGE_BYTES, Sample
from spillway.profile.target import scaled

pytestmark = [pytest.mark.native, pytest.mark.long, pytest.mark.usefixtures("real_native")]

# 4 channels of one die of one plane. Enough spare flash that writes are fast.
PAGES_PER_BLOCK = 64
SETTINGS = (
    "capacity.capacity_bytes=512MiB",
    f"geometry.pages_per_block={PAGES_PER_BLOCK}",
    "geometry.dies_per_chip=1",
    "geometry.planes_per_die=1",
    "capacity.spare_factor=0.3",
)
DIES = 4
# Of presets/quickstart.toml: the three kinds of pages, which alternate through an erase block, the channel, and what is
# before and behind a die.
SENSING_US = np.resize([55.0, 65.0, 80.0], PAGES_PER_BLOCK)
CHANNEL_US, CHANNEL_MB_S = 0.5, 667
CONTROLLER_US, LINK_MB_S = 8.0, 1600


def die_us(size: int) -> Array:
    """How long a read of each page of an erase block keeps a die, whose register is busy until the transfer ends."""
    return SENSING_US + CHANNEL_US + size / CHANNEL_MB_S


def alone_us(size: int) -> float:
    """Mean latency of a read when there is no other."""
    return float(CONTROLLER_US + die_us(size).mean() + size / LINK_MB_S)


def closed_network_mb_s(k: int, size: int, reads: int = 20_000) -> float:
    """Throughput of ``k`` reads at once, each of a random page: a closed network of queues at four dies."""
    rng = np.random.default_rng(k)
    dies, times = rng.integers(DIES, size=reads).tolist(), rng.choice(die_us(size), reads).tolist()
    free = [0.0] * DIES
    arrivals = [CONTROLLER_US] * k
    for die, time in zip(dies, times, strict=True):
        free[die] = max(free[die], heapq.heappop(arrivals)) + time
        heapq.heappush(arrivals, free[die] + size / LINK_MB_S + CONTROLLER_US)
    return reads * size / max(free)


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    place = tmp_path_factory.mktemp("profile") / "p"
    target = parse_target("preset:quickstart", settings=SETTINGS)
    profile_target(target, place, ["spillway", "profile"], seed=1, budget_s=120)
    yield place


@pytest.fixture(scope="module")
def profile(directory: Path) -> Profile:
    return read_profile(directory)


def random_reads(profile: Profile, size: int) -> list[Sample]:
    curve = [
        s for s in profile.samples if (s.procedure, s.op, s.pattern, s.bs_bytes) == ("pio", "read", "random", size)
    ]
    assert len(curve) >= len(CONCURRENCIES)
    return curve


@pytest.mark.parametrize("size", [1024, PAGE_BYTES])
def test_reads_take_what_the_drive_is_made_of(profile: Profile, size: int) -> None:
    """Each of 4000 reads is of one of three kinds of pages, so that a mean is known within 0.6 % (three sigma)."""
    for sample in random_reads(profile, size):
        if sample.k == 1:
            assert sample.latency_mean_us == pytest.approx(alone_us(size), rel=0.006)
    assert profile.latency_us["read"].value == pytest.approx(alone_us(PAGE_BYTES), rel=0.006)


def test_reads_overlap_as_a_closed_network_does(profile: Profile) -> None:
    """At every concurrency of the grid, and at those between."""
    for sample in random_reads(profile, PAGE_BYTES):
        assert sample.bandwidth_mb_s == pytest.approx(closed_network_mb_s(sample.k, PAGE_BYTES), rel=0.025), sample.k
    # All dies busy, and at most so.
    most = DIES * PAGE_BYTES / float(die_us(PAGE_BYTES).mean())
    assert 0.95 * most < profile.pio[PAGE_BYTES].read_max_mb_s <= most


def test_the_knee_of_reads_is_that_of_its_dies(profile: Profile) -> None:
    """Throughput of k at n queues is k / (k + c (n - 1)), c of 1 with times that vary without memory, 1/2 with equal
    ones. Doubling k gains 5 % at k = 9.5 c (n - 1)."""
    knee = profile.pio[PAGE_BYTES].k_r
    assert 9.5 * 0.5 * (DIES - 1) <= knee.low <= knee.high <= 9.5 * (DIES - 1)


def test_writes_cost_more_than_reads(profile: Profile) -> None:
    assert all(pio.alpha.low > 1 for pio in profile.pio.values())
    assert profile.pio[1024].alpha.value > profile.pio[4096].alpha.value, "less than a mapping unit is read and written"


def test_every_procedure_was_complete(profile: Profile) -> None:
    assert {(s.op, s.pattern) for s in profile.samples if s.procedure == "pio"} == {
        (op, pattern) for op in ("read", "write") for pattern in ("random", "sequential")
    }
    assert len({(s.op, s.k, s.r_percent) for s in profile.samples if s.procedure == "mqssd"}) == 2 * 8 * 7


def test_mqssd_is_nearer_than_its_rivals_and_within_a_tenth(directory: Path, invoke: Invoke, profile: Profile) -> None:
    medians = invoke("model", "compare", directory, "--json").json()["median_error"]
    assert medians == compare.medians(compare.compare(profile))
    assert medians["MQSSD"]["all"] <= 0.10
    assert all(medians["MQSSD"]["all"] < of["all"] for name, of in medians.items() if name != "MQSSD")


def test_a_drive_is_profiled_behind_its_slc_cache_unless_told_otherwise() -> None:
    behind = scaled(parse_target("preset:intel-660p"))
    assert behind.settings["slc_cache.share"] == "0"
    assert any("SLC cache" in remark for remark in behind.remarks)
    within = scaled(parse_target("preset:intel-660p", settings=("slc_cache.share=0.1",)))
    assert "slc_cache.share" not in within.settings
    assert not any("SLC cache" in remark for remark in within.remarks)
