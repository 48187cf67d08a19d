"""A profile of a small emulated drive, by the real probe: what it was made of is found, and MQSSD describes it."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from conftest import Invoke

from spillway.profile import Profile, compare, parse_target, profile_target, read_profile
from spillway.profile.points import PAGE_BYTES
from spillway.profile.target import scaled

pytestmark = [pytest.mark.native, pytest.mark.usefixtures("real_native")]

# 4 channels of one die of one plane: at least four reads at once are worth it. Enough spare flash that writes are fast.
SETTINGS = (
    "capacity.capacity_bytes=512MiB",
    "geometry.pages_per_block=64",
    "geometry.dies_per_chip=1",
    "geometry.planes_per_die=1",
    "capacity.spare_factor=0.3",
)
CHANNELS = 4


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    place = tmp_path_factory.mktemp("profile") / "p"
    target = parse_target("preset:quickstart", settings=SETTINGS)
    profile_target(target, place, ["spillway", "profile"], seed=1, budget_s=120)
    yield place


@pytest.fixture(scope="module")
def profile(directory: Path) -> Profile:
    return read_profile(directory)


def test_reads_overlap_as_far_as_there_are_dies(profile: Profile) -> None:
    pio = profile.pio[PAGE_BYTES]
    alone = next(s for s in profile.samples if s.op == "read" and s.pattern == "random" and s.k == 1)
    # Dies bound the gain; a die's cache register may hide a transfer, never a sensing.
    assert CHANNELS * 0.9 < pio.read_max_mb_s / (PAGE_BYTES / profile.latency_us["read"].value) < CHANNELS * 2
    assert alone.iops < 1e6 / profile.latency_us["read"].value * 2
    assert CHANNELS <= pio.k_r.value < 16 * CHANNELS, "appendix A of PIO: one to three a channel, and to 95 %"


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
