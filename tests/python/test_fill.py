"""The search for the largest data set that fits: the bisection alone, over a fake drive, and over a real engine."""

import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from conftest import PLAN as PLAN_OF_THE_FAKE
from conftest import Fake, Invoke

from spillway.run.fill import Search, Trial, fill


def searched(threshold: int, most: int, within: float) -> Search:
    """A search on a drive that keeps ``threshold`` keys and no more."""
    search = Search("arm", 1000, 1000, most)
    while (num := search.next_num(within)) is not None:
        assert 1 <= num <= most
        assert num not in {each.num for each in search.trials}
        search.trials.append(Trial(num, num <= threshold, "", "", None, None))
    return search


@pytest.mark.parametrize("seed", range(200))
def test_the_search_ends_around_the_largest_that_fits(seed: int) -> None:
    rng = random.Random(seed)
    most = rng.choice([1, 2, 3, 10, 1000, 10**9])
    threshold, within = rng.randint(0, most), rng.choice([1e-12, 0.01, 0.3])
    search = searched(threshold, most, within)
    low = search.largest.num if search.largest else 0
    high = search.smallest_refused.num if search.smallest_refused else most + 1
    assert low <= threshold < high
    assert high - low <= max(1, int(within * most))
    assert len(search.trials) <= (most + 1).bit_length() + 1


def test_what_fits_above_what_does_not_is_not_the_largest() -> None:
    search = Search("arm", 1000, 1000, 100)
    search.trials = [Trial(n, fits, "", "", None, None) for n, fits in ((10, True), (20, False), (30, True))]
    assert search.largest is not None
    assert search.largest.num == 10


def test_shares_are_of_the_largest_that_fits() -> None:
    search = Search("arm", 1000, 800, 100)
    search.trials = [Trial(40, True, "a", "", 400.0, 600.0), Trial(41, False, "b", "full", None, 800.0)]
    found = search.document()
    assert (found["num"], found["smallest_refused_num"]) == (40, 41)
    assert found["data_set_share"] == pytest.approx(0.4)
    assert found["space_amplification_peak"] == pytest.approx(1.5)
    empty = Search("arm", 1000, 800, 100).document()
    assert empty["num"] is empty["data_set_share"] is empty["space_amplification_peak"] is None


@pytest.fixture
def keeps(fake: Fake, monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    """Makes the fake drive one that is full from so many keys on."""

    def up_to(keys: int) -> None:
        fake.behave("full at once")
        monkeypatch.setenv("FAKE_ABOVE", str(keys))

    return up_to


def test_a_search_leaves_its_evidence(
    keeps: Callable[[int], None], fake: Fake, plan_file: Path, tmp_path: Path, invoke: Invoke
) -> None:
    keeps(20_000)
    out = tmp_path / "fill"
    ended = invoke("fill", plan_file, "--out", out, "--within", 0.05)
    assert ended.code == 0, ended.err
    found = json.loads((out / "fill.json").read_text())
    arm = found["arms"]["small"]
    assert found["complete"]
    # Values of 1024 bytes halve, keys have 16: the drive of 64 MiB holds no more than 127 100 bare pairs.
    assert arm["num"] <= 20_000 < arm["smallest_refused_num"]
    assert arm["smallest_refused_num"] - arm["num"] <= 0.05 * 2**26 / 528
    for trial in arm["trials"]:
        summary = json.loads((out / trial["directory"] / "summary.json").read_text())
        assert summary["complete"] == trial["fits"]
        assert ("full" in trial["failure"]) != trial["fits"]
    assert [each["load"]["num"] for each in fake.requests()] == [each["num"] for each in arm["trials"]]
    assert {each["target"]["pacing"] for each in fake.requests()} == {"off"}
    assert f"{arm['num']:,}" in ended.out
    again = invoke("fill", plan_file, "--out", out)
    assert again.code == 2
    assert "there is something already" in again.err


def test_each_arm_is_searched_and_none_may_fit(
    keeps: Callable[[int], None], plan_file: Path, tmp_path: Path, invoke: Invoke
) -> None:
    keeps(0)
    arms = '[[arms]]\nname = "one"\n[[arms]]\nname = "half"\n"fs.size" = "32MiB"\n'
    plan_file.write_text(plan_file.read_text() + arms)
    ended = invoke("fill", plan_file, "--out", tmp_path / "fill", "--within", 0.3)
    assert ended.code == 0, ended.err
    assert ended.out.count("none tried") == 2
    found = json.loads((tmp_path / "fill" / "fill.json").read_text())["arms"]
    assert found["half"]["partition_bytes"] == 2**25
    assert found["one"]["trials"][0]["num"] == pytest.approx(2 * found["half"]["trials"][0]["num"], rel=1e-4)


def test_a_plan_whose_own_data_set_is_too_large_is_searched_all_the_same(
    keeps: Callable[[int], None], plan_file: Path, tmp_path: Path, invoke: Invoke
) -> None:
    keeps(50_000)
    plan_file.write_text(plan_file.read_text().replace("num = 10000", "num = 10000000"))
    assert invoke("fill", plan_file, "--out", tmp_path / "fill", "--within", 0.3).code == 0


def test_with_paced_the_plans_own_pacing_is_used(fake: Fake, plan_file: Path, tmp_path: Path, invoke: Invoke) -> None:
    assert invoke("fill", plan_file, "--out", tmp_path / "fill", "--within", 0.6, "--paced").code == 0
    assert {each["target"]["pacing"] for each in fake.requests()} == {"real"}


def test_a_run_that_fails_by_itself_ends_the_search(
    fake: Fake, plan_file: Path, tmp_path: Path, invoke: Invoke, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake.behave("crashes")
    ended = invoke("fill", plan_file, "--out", tmp_path / "fill")
    assert ended.code == 1
    assert ended.err.count("\n") == 1
    assert not (tmp_path / "fill" / "fill.json").exists()


@pytest.mark.parametrize(("mode", "code"), [("crashes late", 1), ("disk_full late", 2)])
def test_a_run_that_fails_under_way_does_not_fill_its_drive(
    mode: str, code: int, keeps: Callable[[int], None], fake: Fake, plan_file: Path, tmp_path: Path, invoke: Invoke
) -> None:
    keeps(80_000)
    fake.behave(mode)
    out = tmp_path / "fill"
    ended = invoke("fill", plan_file, "--out", out, "--within", 0.05)
    assert ended.code == code
    assert "failed, and not by a full drive" in ended.err
    assert str(out) in ended.err.splitlines()[-1]
    found = json.loads((out / "fill.json").read_text())
    assert not found["complete"]
    assert [each["fits"] for each in found["arms"]["small"]["trials"]] == [True]


def test_a_trial_says_whether_it_was_steady(
    keeps: Callable[[int], None], plan_file: Path, tmp_path: Path, invoke: Invoke
) -> None:
    keeps(80_000)
    plan_file.write_text(PLAN_OF_THE_FAKE + 'until = "steady"\n[steady]\ntests = ["end"]\n')
    ended = invoke("fill", plan_file, "--out", tmp_path / "fill", "--within", 0.5)
    assert ended.code == 0, ended.err
    arm = json.loads((tmp_path / "fill" / "fill.json").read_text())["arms"]["small"]
    assert (arm["num"], arm["steady"]) == (63_550, False)
    assert "came to its limit" in arm["standing"]
    assert [each["steady"] for each in arm["trials"]] == [False, False]
    heading, row, *_ = ended.out.splitlines()
    assert row[: heading.index("steady") + len("steady")].endswith(" no")
    assert "small: Emulated drive" in ended.out
    assert "came to its limit" in ended.out


def test_what_is_no_edge_is_not_called_one(
    keeps: Callable[[int], None], fake: Fake, plan_file: Path, tmp_path: Path, invoke: Invoke
) -> None:
    keeps(200_000)
    all_fit = invoke("fill", plan_file, "--out", tmp_path / "all", "--within", 0.3, "--json").json()["arms"]["small"]
    assert (all_fit["smallest_refused_num"], all_fit["most_num"]) == (None, 127_100)
    ended = invoke("fill", plan_file, "--out", tmp_path / "all-in-words", "--within", 0.3)
    assert "No trial filled the drive, so a larger data set may fit;" in ended.out
    assert "127,100" in ended.out
    keeps(1000)
    ended = invoke("fill", plan_file, "--out", tmp_path / "none", "--within", 0.3)
    assert "none tried" in ended.out
    assert "small: Fewer keys than 31,775 were not tried; a lower --within tries them." in ended.out
    keeps(80_000)
    ended = invoke("fill", plan_file, "--out", tmp_path / "edge", "--within", 0.3)
    assert "were not tried" not in ended.out
    assert "No trial filled" not in ended.out


def test_the_pacing_of_trials_is_not_set_in_vain(fake: Fake, plan_file: Path, tmp_path: Path, invoke: Invoke) -> None:
    real = ("--set", 'drive.pacing="real"', "--within", 0.6)
    refused = invoke("fill", plan_file, "--out", tmp_path / "fill", *real)
    assert refused.code == 2
    assert "--set drive.pacing has no effect here, for trials are in virtual time; add --paced." in refused.err
    assert fake.requests() == []
    assert invoke("fill", plan_file, "--out", tmp_path / "fill", *real, "--paced").code == 0
    off = ("--set", 'drive.pacing="off"', "--within", 0.6)
    assert invoke("fill", plan_file, "--out", tmp_path / "off", *off).code == 0


SUITE = 'name = "small"\ntitle = "Small"\nplans = ["small"]\n[scale]\nfactor = "1/2"\nkeys = ["drive.capacity"]\n'


def test_a_plan_of_a_suite_is_searched_at_its_scale(
    fake: Fake, plan_file: Path, tmp_path: Path, invoke: Invoke
) -> None:
    (tmp_path / "suite.toml").write_text(SUITE)
    plan_file.write_text(plan_file.read_text().replace('preset = "tiny"', 'preset = "tiny"\ncapacity = "64MiB"'))
    found = invoke("fill", plan_file, "--out", tmp_path / "fill", "--within", 0.6, "--json").json()["arms"]["small"]
    assert found["capacity_bytes"] == 2**25
    assert fake.requests()[0]["target"]["drive"]["set"]["capacity.capacity_bytes"] == str(2**25)


def test_what_no_trial_starts_from_is_not_prepared(fake: Fake, plan_file: Path, tmp_path: Path, invoke: Invoke) -> None:
    prepare = '[[prepare]]\n"kept.to" = "x"\n[[prepare.phases]]\nworkload = "fillseq"\n'
    plan_file.write_text(plan_file.read_text() + prepare)
    assert invoke("fill", plan_file, "--out", tmp_path / "fill", "--within", 0.6).code == 0
    assert [each["phases"][0]["workload"] for each in fake.requests()] == ["fillrandom"]


def test_a_plan_that_changes_during_a_search_does_not_change_it(
    keeps: Callable[[int], None], fake: Fake, plan_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    keeps(80_000)

    def change(arm: str, trial: Trial) -> None:
        plan_file.write_text(plan_file.read_text().replace("value_bytes = 1024", "value_bytes = 10"))

    fill(plan_file, tmp_path / "fill", [], within=0.3, on_trial=change)
    assert [each["load"]["value_bytes"] for each in fake.requests()] == [1024, 1024]


@pytest.mark.parametrize("mode", ["bad_input", "crashes"])
def test_a_search_that_is_refused_leaves_nothing(
    mode: str, fake: Fake, plan_file: Path, tmp_path: Path, invoke: Invoke
) -> None:
    fake.behave(mode)
    out = tmp_path / "runs" / "fill"
    assert invoke("fill", plan_file, "--out", out).code in (1, 2)
    assert not out.parent.exists()
    fake.behave("ok")
    assert invoke("fill", plan_file, "--out", out, "--within", 0.6).code == 0, "the same command, once that is mended"


def test_a_trial_that_is_refused_leaves_those_before_it(
    keeps: Callable[[int], None], fake: Fake, plan_file: Path, tmp_path: Path, invoke: Invoke
) -> None:
    keeps(80_000)
    fake.behave("bad_input")
    out = tmp_path / "fill"
    ended = invoke("fill", plan_file, "--out", out, "--within", 0.05)
    assert (ended.code, ended.err.count("geometry.chanels")) == (2, 1)
    assert ended.err.endswith(f"What was tried until then is in {out}.\n")
    assert [path.name for path in (out / "small").iterdir()] == ["63550"]


@pytest.mark.reports
def test_a_ctrl_c_between_two_trials_names_the_directory(
    fake: Fake, plan_file: Path, tmp_path: Path, invoke: Invoke, interrupted_report: Callable[[], None]
) -> None:
    interrupted_report()
    out = tmp_path / "fill"
    ended = invoke("fill", plan_file, "--out", out, "--within", 0.3)
    assert ended.code == 130
    assert ended.err.endswith(f"ended by Ctrl-C. What was tried until then is in {out}.\n")
    found = json.loads((out / "fill.json").read_text())
    assert (found["complete"], len(found["arms"]["small"]["trials"])) == (False, 1)


@pytest.mark.parametrize(
    ("change", "flags", "said"),
    [
        ("", ("--within", "0"), "--within is 0"),
        ("", ("--within", "much"), "--within is 'much'"),
        ("", ("--set", "load.num=5"), "load.num is what is searched for"),
        ("", ("--set", "load={num=5}"), "load.num is what is searched for"),
        ("", ("--set", 'drive={pacing="real",preset="tiny"}'), "--set drive.pacing has no effect here"),
        ("", ("--arm", "no"), "there is no arm 'no'"),
        ("", ("--set", 'kept.to="x"'), "leave out kept.from and kept.to"),
        ('[ycsb]\nrecordcount = 1\n[[phases]]\nworkload = "ycsb-load"\n', (), "YCSB's phases have records"),
        ('[sweep]\n"load.value_bytes" = [10, 20]\n', (), "a sweep has many data sets already"),
    ],
)  # fmt: skip
def test_what_cannot_be_searched_is_refused(
    change: str, flags: tuple[Any, ...], said: str, fake: Fake, plan_file: Path, tmp_path: Path, invoke: Invoke
) -> None:
    plan_file.write_text(plan_file.read_text() + change)
    ended = invoke("fill", plan_file, "--out", tmp_path / "fill", *flags)
    assert ended.code == 2
    assert said in ended.err
    assert ended.err.count("\n") == 1
    assert not (tmp_path / "fill").exists()


def test_a_directory_is_not_filled(fake: Fake, plan_file: Path, tmp_path: Path, invoke: Invoke) -> None:
    text = plan_file.read_text().replace('preset = "tiny"', f'kind = "directory"\npath = "{tmp_path}"')
    plan_file.write_text(text)
    ended = invoke("fill", plan_file, "--out", tmp_path / "fill", "--paced")
    assert ended.code == 2
    assert "only an emulated drive" in ended.err


PLAN = """
name = "fill"
sample_interval_ms = 50
[drive]
preset = "quickstart"
capacity = "64MiB"
[initial]
kind = "trimmed"
[engine]
name = "leveldb"
[engine.options]
compression = "kNoCompression"
[load]
value_bytes = 1000
[[phases]]
workload = "filluniquerandom"
"""


# Each key once, so that what lives is what was put: with fifteen sixteenths of the bare pairs there is no room for the
# log of a memtable beside them, however compactions fall.
@pytest.mark.native
def test_leveldb_keeps_less_than_the_drive_holds(real_native: Path, tmp_path: Path, invoke: Invoke) -> None:
    (tmp_path / "fill.toml").write_text(PLAN)
    found = invoke("fill", tmp_path / "fill.toml", "--out", tmp_path / "fill", "--within", 0.06, "--json").json()
    arm = found["arms"]["fill"]
    assert 0 < arm["num"] < arm["smallest_refused_num"]
    assert 0 < arm["data_set_share"] < 1
    refused = next(each for each in arm["trials"] if each["num"] == arm["smallest_refused_num"])
    assert refused["failure"]
    assert refused["peak_held_bytes"] > 0.75 * 2**26
    assert arm["space_amplification_peak"] * arm["data_set_share"] <= 1.001
