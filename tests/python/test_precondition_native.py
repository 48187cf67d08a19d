"""What the drive model says of preconditioning is right: against the theory of a log, and against steady drives."""

import math
from dataclasses import replace

import pytest

from spillway.errors import SpillwayError
from spillway.models.mixed import write_amplification
from spillway.native.process import run_native
from spillway.precondition import Drive, Target, drive_of, residuals_of
from spillway.ssd.simulate import DriveChoice, drive_request

pytestmark = [pytest.mark.native, pytest.mark.usefixtures("real_native")]

FILE = Target("file", False, 2**30)


def explicit(op: float, gc: str) -> Drive:
    """A drive of 1 GiB with as little beside its data as it can have."""
    choice = DriveChoice(op=repr(op), gc=gc, capacity="1GiB", write_cache="0", pages_per_block=64)
    request = drive_request(choice)
    layout = run_native("ssd-show", {"drive": request})["layout"]
    return Drive(gc, request, layout["data_units"] / layout["logical_units"] - 1, 4096, layout["logical_units"], 1.0)


def after(op: float, capacities: float, measured: float = 0.5) -> float:
    """A of a log that was written once in order and then at random, over ``measured`` capacities after ``capacities``.

    First in, first out: a place of the log is written again when T pages have been. Of its page is valid what no write
    has hit since, e^-h for h capacities of host writes: uniform random writes have no memory, so what lay in
    it is all the same. So h grows by (1 - e^-(h(l) - h(l - T))) / U for each page of the log.
    """
    units = 4000
    log = round(units * (1 + op))
    h = [0.0] * (units + 1)  # written in order before: nothing of it is hit yet
    h += [(i + 1) / units for i in range(log - units)]  # the spare space takes the first writes without collection
    while h[-1] < capacities + measured:
        h.append(h[-1] + (1 - math.exp(-(h[-1] - h[-1 - log]))) / units)
    pages = sum(capacities < each for each in h)
    return pages / units / measured


@pytest.mark.parametrize("op", [0.12, 0.28])
def test_the_model_is_as_far_from_steady_as_the_theory_of_a_log(op: float) -> None:
    """Why twice at random is enough: a log's valid shares depend on the host writes since a place was written alone,
    and after twice the capacity every place has been written anew several times."""
    drive = explicit(op, "fifo")
    found = {each.way: each for each in residuals_of(drive)}
    steady = float(write_amplification(1 / (1 + drive.over_provisioning)))
    for way, capacities in (
        ("once in order", 0.0),
        ("once in order, once at random", 1.0),
        ("once in order, twice at random", 2.0),
    ):
        each = found[way]
        assert each.steady == pytest.approx(steady, rel=0.02)
        assert each.wa_device == pytest.approx(after(drive.over_provisioning, capacities), rel=0.03), way
    assert found["once in order"].deviation < -0.1
    assert abs(found["once in order, twice at random"].deviation) < 0.02


def test_one_pass_leaves_a_drive_with_greedy_collection_steady() -> None:
    for op in (0.1, 0.28):
        (found,) = [each for each in residuals_of(explicit(op, "greedy")) if each.way == "sprandom"]
        assert abs(found.deviation) < 0.03


def test_a_wrong_over_provisioning_is_seen() -> None:
    drive = explicit(0.28, "greedy")
    right, wrong = (
        next(each for each in residuals_of(each) if each.way == "sprandom")
        for each in (drive, replace(drive, over_provisioning=0.07))
    )
    assert abs(wrong.deviation) > abs(right.deviation) + 0.02


def test_a_drive_is_what_its_flags_say() -> None:
    preset = drive_of(FILE, "intel-p3600", None)
    assert preset is not None
    assert preset.over_provisioning == pytest.approx(0.2821, abs=0.001)
    half = drive_of(Target("/dev/x", True, 2**30, 2**31), "intel-p3600", None)
    assert half is not None
    assert half.fill == 0.5
    assert half.over_provisioning == pytest.approx(2 * 1.2821 - 1, abs=0.002)
    bare = drive_of(FILE, None, "1280MiB")
    assert bare is not None
    assert bare.over_provisioning == pytest.approx(0.25)


def test_a_drive_with_too_little_flash_is_refused_by_the_options_that_give_it() -> None:
    drive = drive_of(FILE, None, str(2**30 + 10**6))
    assert drive is not None
    with pytest.raises(SpillwayError, match="--physical") as caught:
        residuals_of(drive)
    assert "0.0009" in str(caught.value)
    assert "initial.fill" not in str(caught.value)
