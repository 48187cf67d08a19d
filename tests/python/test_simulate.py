"""Flags of `spillway ssd …` as requests."""

from pathlib import Path

import pytest

from spillway.errors import RunFailed, SpillwayError
from spillway.figures.lifetime import YEAR_S
from spillway.ssd.simulate import (
    COUNT_FLAGS,
    SHARE_FLAGS,
    SIZE_FLAGS,
    DriveChoice,
    WorkChoice,
    drive_request,
    errors_name_flags,
    flags_for_keys,
    initial_request,
    lifetime_in_words,
    parse_workload,
    precondition_request,
    simulate_request,
    simulated_lifetime,
)


def test_geometry_flags_are_preset_keys() -> None:
    choice = DriveChoice(
        channels=4, chips=2, dies=3, planes=1, page_bytes="16KiB", mapping_unit="4KiB", pages_per_block=64,
        capacity="1GiB", spare_factor="7%", gc="d-choices:10", write_cache="0", mapping_cache="2MiB",
        settings=("timing.read_ns=[1, 2]",),
    )  # fmt: skip
    assert drive_request(choice)["set"] == {
        "geometry.channels": "4",
        "geometry.chips_per_channel": "2",
        "geometry.dies_per_chip": "3",
        "geometry.planes_per_die": "1",
        "geometry.page_bytes": "16384",
        "geometry.mapping_unit_bytes": "4096",
        "geometry.pages_per_block": "64",
        "capacity.capacity_bytes": str(2**30),
        "capacity.spare_factor": "0.07",
        "gc.policy": "d-choices:10",
        "write_cache.bytes": "0",
        "mapping_cache.bytes": str(2 * 2**20),
        "timing.read_ns": "[1, 2]",
    }


def test_an_explicit_drive_has_four_gibibytes_and_a_preset_its_own(plan_file: Path) -> None:
    assert drive_request(DriveChoice())["set"] == {"capacity.capacity_bytes": str(4 * 2**30)}
    assert drive_request(DriveChoice(preset="tiny"))["set"] == {}
    assert drive_request(DriveChoice(preset="tiny", host_stack='a"b'))["set"] == {"host.stack": r'"a\"b"'}


@pytest.mark.parametrize(("text", "value"), [("0.28", "0.28"), ("28%", "0.28"), ("1.5", "1.5")])
def test_over_provisioning_may_exceed_the_capacity(text: str, value: str) -> None:
    assert drive_request(DriveChoice(op=text))["set"]["capacity.over_provisioning"] == value


@pytest.mark.parametrize(
    ("workload", "fill", "kind", "warmup"),
    [
        ("randwrite", "1", "steady", 0),
        ("mixed:0.5", "1", "steady", 0),
        ("randread", "0.5", "steady", 0),
        ("seqwrite", "1", "sequential", 0),
        ("seqread", "1", "sequential", 0),
        ("hotcold:0.1/0.9", "1", "sequential", 8),
        ("randwrite", "0", "trimmed", 0),
    ],
)
def test_initial_states_follow_the_workload(workload: str, fill: str, kind: str, warmup: float) -> None:
    initial = initial_request(WorkChoice(workload=workload, fill=fill), parse_workload(workload))
    assert (initial["kind"], initial["warmup_capacities"]) == (kind, warmup)


def test_a_compression_ratio_is_of_all_data_and_only_where_it_is_given() -> None:
    with_ratio = simulate_request(DriveChoice(), WorkChoice(compression_ratio=0.5), 1)
    assert with_ratio["initial"]["compression_ratio"] == with_ratio["workload"]["compression_ratio"] == 0.5
    without = simulate_request(DriveChoice(), WorkChoice(), 1)
    assert "compression_ratio" not in without["initial"] | without["workload"]
    for wrong in (0.0, 1.5, -1.0):
        with pytest.raises(SpillwayError, match="--compression-ratio"):
            simulate_request(DriveChoice(), WorkChoice(compression_ratio=wrong), 1)


def test_ends_of_a_workload() -> None:
    def work(**given: object) -> dict[str, object]:
        found = simulate_request(DriveChoice(), WorkChoice(**given), 1)["workload"]  # type: ignore[arg-type]
        return {name: found.get(name) for name in ("ios", "writes_capacities")}

    assert work() == {"ios": None, "writes_capacities": 1.0}
    assert work(writes=3.0) == {"ios": None, "writes_capacities": 3.0}
    assert work(ios=10) == {"ios": 10, "writes_capacities": None}
    assert work(workload="randread") == {"ios": 200_000, "writes_capacities": None}
    assert work(workload="mixed:1") == {"ios": 200_000, "writes_capacities": None}


def test_commands_go_where_data_is() -> None:
    def reach(**given: object) -> float:
        found: float = simulate_request(DriveChoice(), WorkChoice(**given), 1)["workload"]["range"]  # type: ignore[arg-type]
        return found

    assert reach() == 1.0
    assert reach(fill="0.5", workload="randread") == 0.5
    assert reach(fill="0") == 1.0
    assert reach(range="0.25") == 0.25


def test_shares_of_workloads() -> None:
    assert parse_workload("mixed:70%").shares == {"read_share": 0.7}
    assert parse_workload("hotcold:10/90").shares == {"hot_space": 0.1, "hot_traffic": 0.9}


@pytest.mark.parametrize(
    ("work", "says"),
    [
        (WorkChoice(workload="randwrit"), "did you mean 'randwrite'"),
        (WorkChoice(workload="randwrite:3"), "takes no number"),
        (WorkChoice(workload="mixed"), "share of reads"),
        (WorkChoice(workload="hotcold:0.1"), "hotcold:0.1/0.9"),
        (WorkChoice(writes=1.0, ios=1), "--writes and --ios"),
        (WorkChoice(workload="randread", writes=1.0), "writes nothing"),
        (WorkChoice(initial="stedy"), "did you mean 'steady'"),
        (WorkChoice(initial="steady", fill="0"), "--fill is 0"),
        (WorkChoice(warmup=-1.0), "--warmup"),
        (WorkChoice(bs="big"), "--bs"),
        (WorkChoice(range="0"), "--range is 0"),
        (WorkChoice(state=Path("no/such.state")), "ssd precondition"),
    ],
)
def test_bad_work(work: WorkChoice, says: str) -> None:
    with pytest.raises(SpillwayError, match=says):
        simulate_request(DriveChoice(), work, 1)


@pytest.mark.parametrize(
    ("drive", "says"),
    [
        (DriveChoice(preset="tny"), "did you mean 'tiny'"),
        (DriveChoice(preset="tiny", preset_file=Path("x")), "give one of them"),
        (DriveChoice(preset_file=Path("no/such.toml")), "no such file"),
        (DriveChoice(gc="greddy"), "did you mean 'greedy'"),
        (DriveChoice(gc="d-choices"), "d-choices:10"),
        (DriveChoice(gc="d-choices:0"), "d-choices:10"),
        (DriveChoice(gc="fifo:3"), "--gc fifo"),
        (DriveChoice(spare_factor="0.1", op="0.1"), "give one of them"),
        (DriveChoice(op="-1"), "--op"),
        (DriveChoice(settings=("capacity",)), "KEY=VALUE"),
        (DriveChoice(host_stack="a", settings=("host.stack=b",)), "give one"),
    ],
)
def test_bad_drives(drive: DriveChoice, says: str, plan_file: Path) -> None:
    with pytest.raises(SpillwayError, match=says):
        drive_request(drive)


@pytest.mark.parametrize(
    ("drive", "sentence", "spoken"),
    [
        (DriveChoice(capacity="1KiB"), "--set: capacity.capacity_bytes: 1024 is", "--capacity: 1024 is"),
        (DriveChoice(), "capacity.spare_factor is 0.0", "--spare-factor is 0.0"),
        (DriveChoice(op="0"), "capacity.spare_factor is 0.0", "the spare factor of --op is 0.0"),
        (DriveChoice(), "a multiple of mapping_unit_bytes 4096", "a multiple of --mapping-unit 4096"),
        (DriveChoice(), "initial.fill is 2 and workload.bs_bytes 3", "--fill is 2 and --bs 3"),
        (DriveChoice(preset="tiny", host_stack="x"), "--set: host.stack is 'x'", "--host-stack is 'x'"),
        # What a preset or --set says is found there under its key.
        (DriveChoice(preset="tiny"), "tiny.toml: geometry.channels: must", "tiny.toml: geometry.channels: must"),
        (DriveChoice(preset="tiny", channels=3), "--set: geometry.channels: must", "--channels: must"),
        (
            DriveChoice(settings=("capacity.spare_factor=2",)),
            "--set: capacity.spare_factor: must",
            "--set: capacity.spare_factor: must",
        ),
        (
            DriveChoice(),
            "unknown key gc.polic; did you mean gc.policy?",
            "unknown key gc.polic; did you mean gc.policy?",
        ),
        # Keys are whole words.
        (DriveChoice(), "timing.capacity.capacity_bytes_ns", "timing.capacity.capacity_bytes_ns"),
    ],
)
def test_native_sentences_name_what_was_typed(drive: DriveChoice, sentence: str, spoken: str) -> None:
    assert flags_for_keys(sentence, drive) == spoken
    with pytest.raises(RunFailed) as raised, errors_name_flags(drive):
        raise RunFailed(sentence)
    assert str(raised.value) == spoken


def test_every_drive_flag_but_names_of_presets_can_be_spoken() -> None:
    spoken = {*COUNT_FLAGS.values(), *SIZE_FLAGS.values(), *SHARE_FLAGS.values(), "host_stack"}
    assert spoken == set(DriveChoice.__dataclass_fields__) - {"preset", "preset_file", "settings"}


def test_a_state_goes_to_a_file_in_a_directory_that_exists(tmp_path: Path) -> None:
    with pytest.raises(SpillwayError, match="is a directory"):
        precondition_request(DriveChoice(), WorkChoice(), 1, tmp_path)
    with pytest.raises(SpillwayError, match="make it first"):
        precondition_request(DriveChoice(), WorkChoice(), 1, tmp_path / "no" / "x.state")


# 10 GB of flash that lasts 1000 cycles, under 2 GB a second: 5000 s.
SIMULATED = {
    "ios": 1000,
    "simulated_seconds": 2.0,
    "host_bytes_written": 10**9,
    "nand_bytes_programmed": {"host": 10**9, "gc": 3 * 10**9},
    "capacity_bytes": 8 * 10**9,
    "wear": {"mean_pe_cycles": 1.0, "max_pe_cycles": 2, "rated_pe_cycles": 1000, "physical_bytes": 10**10},
}


def test_a_simulated_drive_lasts_as_long_as_its_flash() -> None:
    found = simulated_lifetime(DriveChoice(), SIMULATED)
    assert found["years"] == found["full_size_years"] == pytest.approx(5000 / YEAR_S)
    assert found["host_bytes_until_worn"] == pytest.approx(1e13 / 4)
    words = lifetime_in_words(found)
    assert "years" in words
    assert "4,000,000 flash bytes an operation" in words
    assert "worn after 2.3 TiB of host writes, at 1,000 rated P/E cycles" in words


def test_a_scaled_drives_life_is_that_of_its_presets_whole_capacity(tmp_path: Path) -> None:
    preset = tmp_path / "large.toml"
    preset.write_text("[capacity]\ncapacity_bytes = 80_000_000_000\nspare_factor = 0.2\n")
    found = simulated_lifetime(DriveChoice(preset_file=preset, capacity="8GB"), SIMULATED)
    assert found["scaled_capacity"]
    assert found["full_size_years"] == pytest.approx(10 * found["years"])
    assert found["full_size_host_bytes_until_worn"] == pytest.approx(1e14 / 4)
    assert "(of the preset's whole capacity)" in lifetime_in_words(found)


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"nand_bytes_programmed": {"host": 0}, "host_bytes_written": 0}, "nothing was written"),
        ({"wear": {"mean_pe_cycles": 0, "max_pe_cycles": 0, "rated_pe_cycles": 0}}, "neither its rated P/E cycles nor"),
        ({"wear": None}, "neither its rated P/E cycles nor its rated writes are known"),
    ],
)
def test_a_simulated_drive_without_a_life_says_why(change: dict[str, object], why: str) -> None:
    words = lifetime_in_words(simulated_lifetime(DriveChoice(), SIMULATED | change))
    assert f"years not known: {why}" in words
    assert "worn after" not in words
