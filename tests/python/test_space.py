"""What a data set takes of its drive: peaks, shares and effective over-provisioning, by hand and in a run."""

import json
from pathlib import Path
from typing import Any

import pytest
from conftest import Fake, Invoke

from spillway.figures import space
from spillway.figures.space import Peak, has_extra, in_words, mapped_bytes, over_provisioning, peak_held
from spillway.rundir.directory import read_run

GB = 1e9


def held(*cells: tuple[float, float | None]) -> list[dict[str, Any]]:
    return [{"t_s": t, "space_bytes": count} for t, count in cells]


def test_the_peak_is_the_first_of_the_largest_samples_or_the_end() -> None:
    assert peak_held(held((1, 10.0), (2, 30.0), (3, 30.0), (4, 20.0)), 20) == Peak(30.0, 2.0)
    assert peak_held(held((1, 10.0)), 11) == Peak(11.0, None)
    assert peak_held([], 5) == Peak(5.0, None)
    assert peak_held(held((1, None), (2, 3.0)), None) == Peak(3.0, 2.0)
    assert peak_held([], None) is None


def test_over_provisioning_by_hand() -> None:
    # The talk's drive: 512 GB of flash sold as 400 GB; a partition of 300 GB leaves 212 GB.
    assert over_provisioning(512 * GB, 400 * GB) == pytest.approx(0.28)
    assert over_provisioning(512 * GB, mapped_bytes(400 * GB, 300 * GB, 0.0)) == pytest.approx(212 / 300)
    assert over_provisioning(None, 400 * GB) is None
    assert over_provisioning(512 * GB, None) is None


@pytest.mark.parametrize(
    ("partition", "fill", "mapped"),
    [
        (None, 0.0, 400),  # the whole drive may come to hold data
        (300, 0.0, 300),  # the rest trimmed
        (300, 0.5, 300),  # what held data lies within the partition
        (300, 0.9, 360),  # and beyond it
        (300, 1.0, 400),  # preconditioned whole: a smaller partition spares nothing
        (300, None, 400),  # from a file: not known, so all
    ],
)
def test_what_can_be_mapped(partition: float | None, fill: float | None, mapped: float) -> None:
    size = None if partition is None else partition * GB
    assert mapped_bytes(400 * GB, size, fill) == pytest.approx(mapped * GB)


def test_space_mapped_outside_a_kept_states_files_counts() -> None:
    def start(share: float, files: float) -> dict[str, Any]:
        return {"drive": {"mapped_share": share, "held_bytes": files * GB}}

    assert mapped_bytes(400 * GB, 300 * GB, 1.0, start(0.5, 200)) == pytest.approx(300 * GB)
    assert mapped_bytes(400 * GB, 300 * GB, 0.0, start(0.75, 250)) == pytest.approx(350 * GB)
    assert mapped_bytes(400 * GB, 300 * GB, 0.0, start(1.0, 100)) == pytest.approx(400 * GB)
    assert mapped_bytes(400 * GB, 300 * GB, 0.0, {"drive": None}) == 400 * GB
    assert mapped_bytes(None, 300 * GB, 0.0) is None


def test_a_larger_partition_or_fill_never_adds_spare_flash() -> None:
    shares = [step / 10 for step in range(1, 11)]
    for fill in shares:
        spare = [over_provisioning(512.0, mapped_bytes(400.0, 400.0 * part, fill)) or 0.0 for part in shares]
        assert spare == sorted(spare, reverse=True)
        assert min(spare) == pytest.approx(0.28)


def test_an_unknown_figure_is_none_and_not_printed() -> None:
    empty = space.document([], None, None, None, None, None)
    assert set(empty.values()) == {None}
    assert in_words(empty) == in_words({}) == []
    assert not has_extra({})


def test_words_name_the_peak_the_share_and_the_drives_own_spare_flash() -> None:
    rows = held((1, 150.0), (2, 260.0), (3, 180.0))
    whole = space.document(rows, 180.0, 100.0, 400.0, 512.0, 400.0)
    assert in_words(whole) == [
        "at most 2.60 (after 2 s)",
        "data set 0.25 of the capacity",
        "over-provisioning 28 %",
    ]
    part = space.document(rows, 300.0, 100.0, 400.0, 512.0, 300.0)
    assert in_words(part)[0] == "at most 3.00 at the end"
    assert in_words(part)[2] == "over-provisioning 71 % (the drive's own 28 %)"
    assert has_extra(part)
    assert not has_extra(whole)


@pytest.mark.reports
def test_a_run_has_them_in_summary_table_and_report(
    fake: Fake, plan_file: Path, tmp_path: Path, invoke: Invoke
) -> None:
    part = ("--set", "fs.size=48MiB", "--set", 'initial.kind="trimmed"')
    ended = invoke("run", plan_file, "--out", tmp_path / "run", *part)
    assert ended.code == 0, ended.err
    arm = read_run(tmp_path / "run").arms[0]
    found = arm.summary
    most = max(row["space_bytes"] for row in arm.rows)
    assert found["space_amplification_peak"] == pytest.approx(most / found["live_user_bytes"])
    assert found["space_amplification_peak"] >= found["space_amplification"]
    assert found["data_set_share"] == pytest.approx(found["live_user_bytes"] / 2**26)
    physical = arm.result["wear"]["physical_bytes"]
    assert found["over_provisioning_drive"] == pytest.approx(physical / 2**26 - 1)
    assert found["over_provisioning_effective"] == pytest.approx(physical / (48 * 2**20) - 1)
    assert "over-provisioning" in ended.out
    page = (tmp_path / "run" / "report.html").read_text()
    assert "of the capacity" in page
    assert "at its peak" in page


@pytest.mark.reports
def test_a_run_recorded_before_there_were_these_figures_is_read(
    fake: Fake, plan_file: Path, tmp_path: Path, invoke: Invoke
) -> None:
    out = tmp_path / "run"
    assert invoke("run", plan_file, "--out", out).code == 0
    summary = json.loads((out / "summary.json").read_text())
    for arm in summary["arms"].values():
        for key in space.document([], None, None, None, None, None):
            del arm[key]
    (out / "summary.json").write_text(json.dumps(summary))
    assert invoke("report", out, "--out", tmp_path / "old.html").code == 0
    page = (tmp_path / "old.html").read_text()
    assert "at its peak" not in page
    assert "effective over-provisioning at least" in page, "lint's own bound, from the result and the standing"
