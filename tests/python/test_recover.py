"""What the papers measured on their drives is found again on the presets that stand for them."""

import pytest

from spillway import recover

pytestmark = [pytest.mark.native, pytest.mark.usefixtures("real_native")]


def missed(figures: list[recover.Figure]) -> list[str]:
    """Figures out of their bounds, in words, but for those that the table gives a reason for."""
    return [
        f"{f.preset} {f.stack or ''} {f.name}: published {f.published:g}, found {f.found:.4g}"
        for f in figures
        if not f.met and not f.reason
    ]


def test_pio_is_recovered() -> None:
    """Tables 1 and 2, and alpha at 1 KiB, of all six rows."""
    figures = recover.recovered_pio()
    assert len(figures) == 2 * 5 + 6 * 5 + 3 + 2
    assert missed(figures) == []


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
