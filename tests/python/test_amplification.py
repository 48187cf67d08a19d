import pytest

from spillway.figures.amplification import amplification, nand_total, ratio
from spillway.rundir.samples import nand_bytes, typed


def test_wa_total_is_the_product_and_nand_over_user_bytes() -> None:
    found = amplification(100, 420, 840)
    assert (found.wa_app, found.wa_device) == (4.2, 2.0)
    assert found.wa_total == pytest.approx(840 / 100)


def test_nothing_written_has_no_ratio() -> None:
    assert ratio(5, 0) is None
    assert ratio(None, 5) is None
    assert ratio(0, 5) == 0
    assert amplification(0, 10, 20) == amplification(None, 10, 20)
    assert amplification(0, 10, 20).wa_device == 2.0
    assert amplification(0, 10, 20).wa_total is None
    assert amplification(10, 0, 0).wa_device is None


def test_without_counters_only_the_engine_side_is_known() -> None:
    found = amplification(10, 30, nand_total(None))
    assert (found.wa_app, found.wa_device, found.wa_total) == (3.0, None, None)


def test_nand_bytes_add_up_over_causes() -> None:
    assert nand_total({"host": 1, "gc": 2, "mapping": 3, "wear": 4}) == 10


# Cascaded write amplification, fillrandom of 54 GB: engine, drive, WA1, WA2 and the WA that the paper prints (C18).
PAPERS = [
    ("LevelDB", "SSD-S", 18.44, 3.39, 62.5),
    ("LevelDB", "SSD-I", 18.46, 1.24, 22.8),
    ("WiscKey", "SSD-S", 5.20, 2.01, 10.44),
    ("WiscKey", "SSD-I", 5.15, 1.00, 5.17),
]


@pytest.mark.parametrize(("engine", "drive", "wa1", "wa2", "printed"), PAPERS)
def test_the_papers_figures_come_out(engine: str, drive: str, wa1: float, wa2: float, printed: float) -> None:
    """T15: the printed products agree with their factors within 1 %."""
    user = 54e9
    found = amplification(user, user * wa1, user * wa1 * wa2)
    assert found.wa_total == pytest.approx(printed, rel=0.01), (engine, drive)


def test_a_run_recorded_without_slc_columns_folded_nothing() -> None:
    names = [f"nand_bytes_programmed_{cause}" for cause in ("host", "gc", "mapping", "wear")]
    assert nand_bytes(typed(dict.fromkeys(names, "25"))) == 100
    assert nand_bytes(typed(dict.fromkeys(names, ""))) is None, "a run without a drive model"
