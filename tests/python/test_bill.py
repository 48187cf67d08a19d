"""The whole bill and the seconds in which nothing was done, from rows written by hand."""

import pytest

from spillway.figures.bill import bill, slowest_second_share, zero_seconds
from spillway.rundir.samples import NAND_CAUSES, Row

PHASES = [
    {"name": "load", "workload": "fillseq"},
    {"name": "fill", "workload": "fillrandom"},
    {"name": "end", "workload": "settle"},
]


def row(t_s: float, phase: str, writes: int, host: int, dt_s: float = 1.0) -> Row:
    nand = {f"nand_bytes_programmed_{cause}": 0 for cause in NAND_CAUSES} | {"nand_bytes_programmed_host": 2 * host}
    return {
        "t_s": t_s,
        "dt_s": dt_s,
        "phase": phase,
        "measured": int(phase == "fill"),
        "reads": 0,
        "writes": writes,
        "user_bytes_written": 10 * writes,
        "host_bytes_written": host,
        "cpu_s": 0.5,
    } | nand


def test_the_bill_counts_what_is_measured_and_what_settles_it() -> None:
    rows = [row(1, "load", 50, 999), row(2, "fill", 100, 2000), row(3, "fill", 60, 1000), row(5, "end", 0, 200, 2.0)]
    found = bill(rows, PHASES)
    assert found is not None
    assert (found["seconds"], found["settle_s"]) == (4.0, 2.0)
    assert found["throughput_ops_s"] == 40
    assert found["host_bytes_written"] == 3200
    assert found["wa_app"] == 2.0
    assert found["wa_total"] == 4.0
    assert found["cpu_seconds"] == 1.5


def test_what_settles_a_load_is_not_billed() -> None:
    phases = [*PHASES, {"name": "rest", "workload": "settle"}]
    rows = [row(1, "load", 50, 999), row(5, "rest", 0, 800, 4.0), row(6, "fill", 100, 2000), row(8, "end", 0, 200, 2.0)]
    found = bill(rows, phases)
    assert found is not None
    assert (found["seconds"], found["settle_s"], found["host_bytes_written"]) == (3.0, 2.0, 2200)
    assert bill(rows[:3], phases) is None


def test_without_settling_there_is_no_bill() -> None:
    assert bill([row(1, "fill", 1, 1)], PHASES[:2]) is None


def test_without_a_drive_only_time_is_billed() -> None:
    rows = [row(1, "fill", 100, 0), row(2, "end", 0, 0)]
    for each in rows:
        del each["host_bytes_written"], each["nand_bytes_programmed_host"]
    found = bill(rows, PHASES)
    assert found is not None
    assert found["throughput_ops_s"] == 50
    assert (found["wa_app"], found["wa_total"]) == (None, None)


@pytest.mark.parametrize(
    ("writes", "dt_s", "zeros"),
    [
        ((5, 0, 0, 7), 1.0, 2),
        ((5, 0, 0, 7), 0.5, 0),  # each second has one half in which something was done
        ((5, 5, 0, 0, 7, 7), 0.5, 1),
        ((5, 0), 0.25, 0),  # half a second in all, not empty
        ((5, 0), 2.0, None),  # samples too long to tell
    ],
)
def test_seconds_in_which_nothing_was_done(writes: tuple[int, ...], dt_s: float, zeros: int | None) -> None:
    rows = [row(9.0, "load", 0, 0)]
    rows += [row(9.0 + dt_s * (index + 1), "fill", count, 0, dt_s) for index, count in enumerate(writes)]
    assert zero_seconds(rows) == zeros


@pytest.mark.parametrize(
    ("phases", "dt_s", "share"),
    [
        ({"fill": (10, 10, 4, 12)}, 1.0, 0.4),
        ({"fill": (10, 10, 4, 12)}, 0.5, None),  # two seconds have no median of their own
        ({"fill": (5, 5, 1, 3, 5, 5, 5, 5)}, 0.5, 0.4),
        ({"fill": (10, 10, 0, 12)}, 1.0, 0.0),
        ({"fill": (0, 0, 0, 9)}, 1.0, None),  # over a median of 0
        ({"fill": (5, 5, 5, 5, 5, 5, 5)}, 0.5, 1.0),  # the last half second is not half a second's work
        ({"fill": (90, 90, 90), "again": (10, 10, 9)}, 1.0, 0.9),  # a slow phase is not a slow second
        ({"fill": (90, 90, 90), "load": (1, 9, 9)}, 1.0, 1.0),  # what is not measured is not counted
        ({"fill": (9, 9, 9)}, 2.0, None),
        ({}, 1.0, None),
    ],
)
def test_the_slowest_second_is_held_against_its_own_phase(
    phases: dict[str, tuple[int, ...]], dt_s: float, share: float | None
) -> None:
    rows: list[Row] = []
    for name, writes in phases.items():
        for count in writes:
            rows.append(row(dt_s * (len(rows) + 1), name, count, 0, dt_s) | {"measured": int(name != "load")})
    assert slowest_second_share(rows) == share
