"""What the papers measured on their drives is found again on the presets that stand for them."""

import tomllib

import pytest

from spillway.native.process import run_native
from spillway.reproduce import recover
from spillway.ssd.preset import presets
from spillway.ssd.simulate import DriveChoice, WorkChoice, simulate_request

pytestmark = [pytest.mark.native, pytest.mark.usefixtures("real_native")]


def missed(figures: list[recover.Figure]) -> list[str]:
    """Figures out of their bounds, in words, but for those that the table gives a reason for."""
    return [
        f"{f.preset} {f.stack or ''} {f.name}: published {f.published:g}, found {f.found:.4g}"
        for f in figures
        if not f.met and not f.reason
    ]


@pytest.mark.long
def test_pio_is_recovered() -> None:
    """Tables 1 and 2, and alpha at 1 KiB, of all six rows."""
    figures = recover.recovered_pio()
    assert len(figures) == 2 * 5 + 6 * 5 + 3 + 2
    assert missed(figures) == []


@pytest.mark.long
def test_sequential_writes_are_recovered() -> None:
    """295, 117, 196 and 630 MB/s."""
    figures = recover.recovered_sequential()
    assert len(figures) == 4
    assert missed(figures) == []


def test_mqssd_is_recovered() -> None:
    """Table 2: writes with 1 to 128 threads, reads as far as they are the drive's."""
    figures = recover.recovered_mqssd()
    assert len(figures) == 2 * 8 + 2 * 3
    assert missed(figures) == []
    # A reason excuses a figure that is missed, not one that is met meanwhile.
    assert [f.name for f in figures if f.reason and f.met] == []
    assert sum(not f.met for f in figures) == len(recover.REASONS)


def test_every_spare_factor_is_one_that_drives_are_sold_with() -> None:
    """Measured with the papers' small files, a drive that never collects would pass all the above as well."""
    factors = {
        preset.name: tomllib.loads(preset.path.read_text(encoding="utf-8"))["capacity"].get("spare_factor")
        for preset in presets()
    }
    assert {name for name, factor in factors.items() if factor is not None and not 0 < factor <= 0.3} == set()
    assert {factors[name] for name in recover.PART_OF_THE_DRIVE} <= {0.09, 0.11, 0.127}


@pytest.mark.parametrize(
    ("initial", "part", "least", "most"),
    [("sequential", recover.PART_OF_THE_DRIVE["intel-p4510"], 1.0, 1.05), ("steady", 1.0, 4.0, 5.5)],
)
def test_a_small_file_costs_no_collection_though_the_drive_is_full(
    initial: str, part: float, least: float, most: float
) -> None:
    """What the papers measured, and what the same drive does when all of it is overwritten (P4500: 4.8)."""
    drive = DriveChoice(preset="intel-p4510", capacity="1GiB")
    work = WorkChoice(initial=initial, range=str(part), writes=0.2)
    counted = run_native("ssd-simulate", simulate_request(drive, work, 1))["counters"]
    wa_device = sum(counted["nand_bytes_programmed"].values()) / counted["host_bytes_written"]
    assert least <= wa_device <= most
