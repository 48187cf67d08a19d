"""What is said of published figures: verdicts, their causes, and the claims of the recorded suites."""

import csv
import json
import re
import runpy
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from conftest import PLAN, Fake, Invoke
from made_suite import CLAIMS

from spillway.errors import SpillwayError
from spillway.plan.arm import run_label
from spillway.suite import find_suite, load_suite
from spillway.suite.claims import Claim, read_claims
from spillway.suite.measured import Measured, measured_of
from spillway.suite.verdicts import judge_all, tallies

RECORD = str(Path(__file__).parents[2] / "scripts" / "record_suite.py")


def claim(tmp_path: Path, lines: str) -> Any:
    path = tmp_path / "claims.toml"
    head = '[statements]\nC = "x"\n[[claims]]\nclaim = "C"\nsays = "s"\nwhere = "w"\nplan = "p"\narm = "A"\n'
    path.write_text(f'{head}figure = "wa_app"\n{lines}\n')
    return read_claims(path, ["p", "q"])[1]


def line(*values: float | None, arm: str = "A") -> list[Measured]:
    found = []
    for x, value in enumerate(values):
        only = {"complete": False, "failure": "the drive is full."} if value is None else {"wa_app": value}
        found.append(Measured(arm, {"x": x}, [only]))
    return found


@pytest.mark.parametrize(
    ("lines", "values", "verdict", "said"),
    [
        ("at = { x = 0 }\npublished = 10", (11.4, 1), "reproduced", ""),
        ("at = { x = 0 }\npublished = 10", (12, 1), "differs", "20% above; 15% are allowed."),
        ("at = { x = 0 }\npublished = 10\nwhy = 'of y'", (8, 1), "differs", "20% below; 15% are allowed. Of y."),
        ("at = { x = 1 }\npublished = 2\nover.at = { x = 0 }", (5, 10), "reproduced", "10 over 5."),
        ("at = { x = 0 }\npublished = 10\nabove = 9", (9.1, 1), "differs", "no more than 2.0% from it."),
        ("at = { x = 0 }\npublished = 10\nabove = 9", (9.3, 1), "reproduced", ""),
        ("at = { x = 0 }\nabove = 1\nwhy_below = 'of y'", (0.5, 1), "differs", "and is not above. Of y."),
        ("at = { x = 0 }\nabove = 1", (1, 1), "differs", "no more than 2.0% from it."),
        ("at = { x = 0 }\nbelow = 1", (1, 1), "differs", "should be below 1, and is no more than"),
        ("at = { x = 0 }\nbelow = 1", (0.97, 1), "reproduced", ""),
        ("at = { x = 0 }\npublished = 10\ncalibrated = 'set to it'", (10, 1), "calibrated", "Set to it."),
        ("at = { x = 0 }\npublished = 10\ncalibrated = 'set to it'", (20, 1), "differs", "100% above"),
        ("at = { x = 0 }\npublished = 10\nunmeasured = 'no such clock'", (10, 1), "not measured", "No such clock."),
        ("at = { x = 0 }\npublished = 10\nwhy_above = 'y'\nwhy_below = 'z'", (8, 1), "differs", "are allowed. Z."),
        ("at = { x = 1 }\nbetween = [3, inf]\nover.at = { x = 0 }", (5, 10), "differs", "Below that."),
        ("at = { x = 1 }\nbetween = [3, inf]\nover.arm = 'B'", (5, 10), "differs", "Below that."),
        ("at = { x = 1 }\npublished = 2\nover.at = { x = 0 }", (0, 10), "not measured", "Nothing reached the drive"),
        ("at = { x = 1 }\npublished = 2", (5, None), "not measured", "The drive is full."),
        ("at = { x = 9 }\npublished = 2", (5, 5), "not measured", "there is no run A, x = 9"),
        ("along = 'x'\ntrend = 'falls'", (9, 5, 5.2, 1), "reproduced", ""),
        ("along = 'x'\ntrend = 'falls'", (9, 5, 8, 1), "differs", "does not go as published: falls"),
        ("along = 'x'\ntrend = 'falls'", (9, 9.1, 8.9), "differs", "falls"),
        ("along = 'x'\ntrend = 'rises'", (1, 2, 4), "reproduced", ""),
        ("along = 'x'\ntrend = 'flat'", (1, 1.05, 1), "reproduced", ""),
        ("along = 'x'\ntrend = 'flat'", (1, 1.05, 1.2), "differs", "flat"),
        ("along = 'x'\ntrend = 'falls'", (3, None, 1), "not measured", "2 of 3 points over x"),
        ("along = 'x'\nleast_at = 1", (3, 1, 2), "reproduced", ""),
        ("along = 'x'\nleast_at = 1", (3, 1.01, 1), "reproduced", "That at 2 is within 2% of it."),
        ("along = 'x'\nleast_at = 1", (3, 1.03, 1), "differs", "Ours is at 2."),
        ("along = 'x'\nmost_at = 1", (3, 1, 2), "differs", "Ours is at 0."),
        ("along = 'x'\ntrend = 'falls'\namong = [0, 2]", (3, 4, 1), "reproduced", ""),
        ("along = 'x'\ntrend = 'falls'\namong = [0, 1]", (3, 2, None), "reproduced", ""),
        ("at = { x = 0 }\npublished = 3\nagainst = 'B'", (6, 1), "reproduced", "6 over 2."),
        ("at = { x = 0 }\npublished = 3\nagainst = 'B'", (2, 1), "differs", "67% below"),
        (
            "at = { x = 1 }\nbelow = 1\nagainst = 'B'\nover.at = { x = 0 }",
            (6, 8),
            "reproduced",
            "(8 over 4) over (6 over 2)",
        ),
        (
            "at = { x = 1 }\nbelow = 1\nagainst = 'B'\nover.at = { x = 0 }",
            (6, 13),
            "differs",
            "(13 over 4) over (6 over 2)",
        ),
        ("at = { x = 1 }\npublished = 3\nagainst = 'B'", (6, None), "not measured", "The drive is full."),
        ("at = { x = 2 }\npublished = 3\nagainst = 'B'", (6, 7, 8), "not measured", "there is no run B, x = 2"),
        ("along = 'x'\ntrend = 'falls'\nagainst = 'B'", (6, 8), "reproduced", ""),  # 3, then 2
        ("along = 'x'\ntrend = 'falls'\nagainst = 'B'", (6, 12), "differs", "falls"),
        ("along = 'x'\ntrend = 'falls'\nagainst = 'B'", (6, 8, 1), "not measured", "2 of 3 points over x"),
    ],
)
def test_verdicts_are_computed(tmp_path: Path, lines: str, values: Any, verdict: str, said: str) -> None:
    results = {"p": line(*values) + line(2.0, 4.0, arm="B")}
    (judged,) = judge_all(claim(tmp_path, lines), results)
    assert judged.verdict == verdict, judged
    assert said in judged.words
    assert bool(said) == bool(judged.words)


def test_a_differing_ratio_of_throughputs_is_explained_by_its_parts(tmp_path: Path) -> None:
    def run(arm: str, rate: float) -> Measured:
        stalls = {"count": 1, "seconds": 5.0}
        summary = {
            "throughput_ops_s": rate,
            "wa_app": 10.0,
            "wa_device": 1.5,
            "host_bytes_written": 2e9,
            "stalls": stalls,
        }
        return Measured(arm, {"x": 0}, [summary | {"duration_s": 20.0, "steady": True}])

    path = tmp_path / "claims.toml"
    head = '[statements]\nC = "x"\n[[claims]]\nclaim = "C"\nsays = "s"\nwhere = "w"\nplan = "p"\narm = "A"\n'
    path.write_text(
        f"{head}at = {{ x = 0 }}\nfigure = 'throughput_ops_s'\nagainst = 'B'\npublished = 3\nwithin = 0.3\n"
    )
    claims = read_claims(path, ["p"])[1]
    (near,), (far,) = (judge_all(claims, {"p": [run("A", rate), run("B", 1.0)]}) for rate in (2.9, 1.9))
    assert (near.verdict, near.words) == ("reproduced", "2.9 over 1.")
    assert far.verdict == "differs"
    for arm in ("A", "B"):
        told = f"{arm}: wa_app 10, wa_device 1.5, 100 MB/s to the drive, writers in stalls 25% of the time."
        assert told in far.words


def test_lifetime_is_listed_with_write_amplification(tmp_path: Path) -> None:
    def run(x: int, each: float, **more: float | None) -> Measured:
        lasting = {"flash_bytes_per_operation": each, "full_size_user_bytes_until_worn": 2.0**40, **more}
        return Measured("A", {"x": x}, [{"wa_app": 3.0, "throughput_ops_s": 1.0, "lifetime": lasting}])

    real = [run(0, 4096.0, full_size_years=2.5), run(1, 812.0, full_size_years=11.0)]
    virtual = [run(0, 4096.0, full_size_years=None), run(1, 4096.0, full_size_years=None)]
    one, several = claim(tmp_path, "at = { x = 0 }\nabove = 1"), claim(tmp_path, "along = 'x'\ntrend = 'flat'")
    for claims, runs, said in (
        (one, real, "4,096 flash bytes an operation, 2.5 years"),
        (several, real, "812 to 4,096 flash bytes an operation, 2.5 to 11 years"),
        (one, virtual, "4,096 flash bytes an operation, 1.0 TiB of user data until worn"),
        (several, virtual, "4,096 flash bytes an operation, 1.0 TiB of user data until worn"),
        (one, line(1.5, 2.0), ""),  # a run whose summary has none
        (several, [*real, *line(None, None, 3.0)[2:]], ""),  # and one of several
    ):
        (judged,) = judge_all(claims, {"p": runs})
        assert (judged.verdict == "reproduced" or runs != real, judged.lifetime) == (True, said)
    path = tmp_path / "claims.toml"
    path.write_text(path.read_text().replace('"wa_app"', '"throughput_ops_s"'))
    (judged,) = judge_all(read_claims(path, ["p"])[1], {"p": real})
    assert judged.lifetime == "", "a throughput is no write amplification"


def test_the_report_of_a_suite_and_its_record_have_lifetimes(
    fake: Fake, suite: Path, tmp_path: Path, invoke: Invoke
) -> None:
    out = tmp_path / "out"
    (suite / "b.toml").write_text((suite / "b.toml").read_text().replace("[drive]", '[drive]\npacing = "off"'))
    assert invoke("suite", suite, "--out", out).code == 0
    page = (out / "report.html").read_text()
    of_a = page[page.index('id="plan-a"') :]
    assert "Lifetime, as measured</th>" in of_a
    assert re.search(r"<td class=\"words\">[\d,.]+ flash bytes an operation, [\d,.e-]+ years</td>", of_a)
    assert "Years at this rate" in of_a
    record = runpy.run_path(RECORD)
    lines = {}
    for plan in ("a", "b"):
        arms = json.loads((out / plan / "summary.json").read_text())["arms"]
        lines[plan] = [(record["line"](plan, arm, figures), figures["lifetime"]) for arm, figures in arms.items()]
    for told, lasting in [*lines["a"], *lines["b"]]:
        assert told["flash_bytes_per_operation"] == lasting["flash_bytes_per_operation"] > 0
        assert told["user_bytes_until_worn"] == lasting["user_bytes_until_worn"] > 0
    assert [told["virtual_time"] for told, _ in lines["a"]] == [False, False]
    assert all(told["years"] > 0 and told["drive_writes_per_day"] > 0 for told, _ in lines["a"])
    ((of_b, _),) = lines["b"]
    assert [of_b[name] for name in ("virtual_time", "years", "drive_writes_per_day")] == [True, None, None]


def test_a_record_says_which_arms_filled_their_drives() -> None:
    """By any of their repetitions, which a manifest names as the run did."""
    filled_its_drive = runpy.run_path(RECORD)["filled_its_drive"]

    def filled(arm: str, failed: str, count: int = 3, drive_full: bool = True) -> bool:
        manifest = {"seeds": list(range(count)), "failures": [{"run": failed, "drive_full": drive_full, "why": "x"}]}
        return bool(filled_its_drive(manifest, arm))

    for repetition in range(3):
        assert filled("A", run_label("A", repetition, 3))
    assert filled("A", "A", count=1)
    assert not filled("A", "A (2 of 3)", drive_full=False)
    assert not filled("A", "AB (2 of 3)")
    assert not filled("A", "A (2 of 3)", count=1), "the name of another arm"
    assert filled("A (2 of 3)", "A (2 of 3)", count=1)
    assert filled("A (2 of 3)", "A (2 of 3) (1 of 3)")
    assert not filled_its_drive({"seeds": [1], "failures": None}, "A")


def test_a_manifest_names_repetitions_as_a_record_looks_for_them(
    fake: Fake, plan_file: Path, tmp_path: Path, invoke: Invoke
) -> None:
    plan_file.write_text(f"seeds = [4, 9, 11]\n{PLAN}")
    fake.monkeypatch.setenv("FAKE_WHERE", '{"seed": 9}')
    fake.behave("fails late")
    assert invoke("run", plan_file, "--out", tmp_path / "run").code == 2
    manifest = json.loads((tmp_path / "run/manifest.json").read_text())
    record = runpy.run_path(RECORD)
    assert record["filled_its_drive"](manifest, "small")


def test_a_figure_of_the_steady_part_says_where_there_is_none(tmp_path: Path) -> None:
    whole = {"wa_device": 2.0, "steady": False, "parts": None}
    cut = {"wa_device": 2.0, "steady": True, "parts": {"burst": {"wa_device": 1.0}, "steady": {"wa_device": 4.0}}}
    level = {"wa_device": 2.0, "steady": True, "parts": {"burst": None, "steady": {"wa_device": 2.0}}}
    lines = "at = { x = 0 }\npublished = 4\nfigure = 'steady_wa_device'"
    path = tmp_path / "claims.toml"
    head = '[statements]\nC = "x"\n[[claims]]\nclaim = "C"\nsays = "s"\nwhere = "w"\nplan = "p"\narm = "A"\n'
    path.write_text(head + lines)
    claims = read_claims(path, ["p"])[1]
    (of_cut,), (of_whole,) = (judge_all(claims, {"p": [Measured("A", {"x": 0}, [each])]}) for each in (cut, whole))
    assert (of_cut.ours, of_cut.verdict, of_cut.words) == ("4", "reproduced", "")
    assert (of_whole.ours, of_whole.verdict) == ("2", "differs")
    assert "A is not steady, so its figure is of all that was measured" in of_whole.words
    path.write_text(
        head + "at = { x = 0 }\nbelow = 1\nfigure = 'burst_wa_device'\nover = { figure = 'steady_wa_device' }"
    )
    burst = read_claims(path, ["p"])[1]
    of_each = [judge_all(burst, {"p": [Measured("A", {"x": 0}, [each])]})[0] for each in (cut, level, whole)]
    assert [each.verdict for each in of_each] == ["reproduced", "not measured", "not measured"]
    assert of_each[1].words == "A is steady from its start, so no burst is told apart in it."
    assert of_each[2].words == "A is not steady, so no burst is told apart in it."
    path.write_text(path.read_text() + "\nwhy_unsteady = 'it falls.'")
    burst = read_claims(path, ["p"])[1]
    told = whole | {"steady_reason": "throughput drifted by 20 %"}
    of_each = [judge_all(burst, {"p": [Measured("A", {"x": 0}, [each])]})[0] for each in (cut, level, told)]
    assert [each.words for each in of_each] == [
        "1 over 4.",
        "A is steady from its start, so no burst is told apart in it.",
        "A is not steady (throughput drifted by 20 %), so no burst is told apart in it. It falls.",
    ]


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        ("at = { x = 0 }\nabove = 1\nagainst = 'A'", "against is 'A', the arm itself"),
        ("at = { x = 0 }\nabove = 1\nagainst = 3", "against"),
        ("at = { x = 0 }\nabove = 1\nagainst = ['B']", "takes an arm, or two or more arms to take the best of"),
        ("at = { x = 0 }\nabove = 1\nagainst = ['B', 'B']", "takes an arm, or two or more arms to take the best of"),
        ("at = { x = 0 }\nabove = 1\nagainst = ['B', 3]", "against"),
        ("at = { x = 0 }\nabove = 1\nagainst = ['B', 'A']", "the arm itself"),
        ("at = { x = 0 }\nabove = 1\nagainst = ['B', 'C']\nover.figure = 'mapped_share'", "none is the best"),
        ("along = 'x'\ntrend = 'falls'\nagainst = ['B', 'C']", "is of several points"),
        ("along = 'x'\ntrend = 'falls'\namong = [1]", "takes two or more points"),
        ("at = { x = 0 }\nabove = 1\namong = [1, 2]", "takes two or more points on the axis that along names"),
    ],
)
def test_the_figure_that_a_claim_is_compared_with_is_checked(tmp_path: Path, lines: str, said: str) -> None:
    with pytest.raises(SpillwayError, match=re.escape(said)):
        claim(tmp_path, lines)


def of_rivals(figure: str, **values: list[float | None]) -> dict[str, list[Measured]]:
    """One run of each arm, with a figure for each repetition."""
    return {"p": [Measured(arm, {"x": 0}, [{figure: each} for each in of_it]) for arm, of_it in values.items()]}


def rival_claim(tmp_path: Path, figure: str, lines: str) -> Any:
    head = '[statements]\nC = "x"\n[[claims]]\nclaim = "C"\nsays = "s"\nwhere = "w"\nplan = "p"\narm = "A"\n'
    path = tmp_path / "claims.toml"
    path.write_text(f"{head}figure = '{figure}'\nagainst = ['B', 'C']\n{lines}\n")
    return read_claims(path, ["p"])[1]


def test_the_best_rival_is_the_best_in_each_repetition(tmp_path: Path) -> None:
    """B and C have the same median as A's 2; in each repetition one of them reaches 4, or 1 where less is better."""
    rates = of_rivals("throughput_ops_s", A=[8, 8, 8], B=[4, 2, 4], C=[2, 4, 2])
    (judged,) = judge_all(rival_claim(tmp_path, "throughput_ops_s", "published = 2\nwithin = 0.01"), rates)
    assert (judged.verdict, judged.words) == ("reproduced", "8 over 4. The best rival (B, C).")
    less = of_rivals("wa_total", A=[2, 2, 2], B=[1, 4, 4], C=[4, 1, 1])
    (judged,) = judge_all(rival_claim(tmp_path, "wa_total", "published = 2\nwithin = 0.01"), less)
    assert (judged.verdict, judged.words) == ("reproduced", "2 over 1. The best rival (B, C).")


def test_a_rival_that_is_beaten_never_counts(tmp_path: Path) -> None:
    rates = of_rivals("throughput_ops_s", A=[12, 12], B=[10, 10], C=[1, 1])
    (judged,) = judge_all(rival_claim(tmp_path, "throughput_ops_s", "above = 1.3"), rates)
    assert (judged.verdict, "(B)" in judged.words) == ("differs", True)


NO_SPACE = "put: IO error: No space left on device: no space on the drive: 4 are needed"


def ended(why: str, seed: int | None = None) -> dict[str, Any]:
    """A repetition that was not finished."""
    return {"complete": False, "failure": why or None, "throughput_ops_s": 99.0, "wa_app": 99.0, "seed": seed}


def test_a_rival_is_left_out_where_it_filled_its_drive_and_only_there(tmp_path: Path) -> None:
    """C wrote fastest, by what it owed. Where it had space it is the best; where it failed otherwise it may be."""
    rates = of_rivals("throughput_ops_s", A=[8, 8, 8], B=[4, 4, 4], C=[9, 9])
    claims = rival_claim(tmp_path, "throughput_ops_s", "above = 1.5")
    for place in range(3):
        for failure, verdict, words in (
            (NO_SPACE, "differs", "C filled the drive in 1 of 3 repetitions"),
            ("put: Corruption: block checksum mismatch", "not measured", "not the same repetitions"),
            ("", "not measured", "not the same repetitions"),
        ):
            of_c = list(rates["p"][2].repetitions)
            of_c.insert(place, ended(failure))
            rivals = {"p": [*rates["p"][:2], replace(rates["p"][2], repetitions=of_c)]}
            (judged,) = judge_all(claims, rivals)
            assert (judged.verdict, words in judged.words) == (verdict, True), judged
    full = [replace(each, repetitions=[ended(NO_SPACE)] * 3) for each in rates["p"]]
    (judged,) = judge_all(claims, {"p": [*rates["p"][:2], full[2]]})
    assert (judged.verdict, judged.words) == ("reproduced", "8 over 4. The best rival (B; C filled the drive).")
    (judged,) = judge_all(claims, {"p": [rates["p"][0], *full[1:]]})
    assert (judged.verdict, judged.words) == ("not measured", "Each of B, C filled its drive.")


def test_a_repetition_in_which_every_rival_filled_its_drive_is_left_out_of_both_sides(tmp_path: Path) -> None:
    """Ours is 8, and 2 with the seed in which nobody else was finished: over 4 it is 2, with it 1.25."""
    runs = {
        arm: Measured(arm, {"x": 0}, [{"throughput_ops_s": rate, "seed": seed} for seed, rate in rates.items()])
        for arm, rates in {"A": {1: 2.0, 2: 8.0}, "B": {2: 4.0}, "C": {2: 1.0}}.items()
    }
    for arm in "BC":
        runs[arm] = replace(runs[arm], repetitions=[ended(NO_SPACE, 1), *runs[arm].repetitions])
    claims = rival_claim(tmp_path, "throughput_ops_s", "published = 2\nwithin = 0.01")
    (judged,) = judge_all(claims, {"p": list(runs.values())})
    assert judged.verdict == "reproduced", judged
    assert "B filled the drive in 1 of 2 repetitions; C filled the drive in 1 of 2" in judged.words


@pytest.mark.parametrize("why", [NO_SPACE, "put: Corruption: block checksum mismatch", ""])
@pytest.mark.parametrize("lines", ["above = 1", "above = 1\nagainst = 'B'", "above = 1\nagainst = ['B', 'C']"])
def test_what_did_not_finish_every_repetition_reproduces_nothing(tmp_path: Path, lines: str, why: str) -> None:
    """Of the arm whose claim it is; what differs in those that were finished differs."""
    runs = [Measured(arm, {"x": 0}, [{"wa_app": rate}] * 3) for arm, rate in {"B": 2.0, "C": 1.0}.items()]
    for rate, verdict in ((8.0, "not measured"), (0.5, "differs")):
        own = Measured("A", {"x": 0}, [{"wa_app": rate, "seed": 1}, ended(why, 2), {"wa_app": rate, "seed": 3}])
        (judged,) = judge_all(claim(tmp_path, lines), {"p": [own, *runs]})
        assert judged.verdict == verdict, judged
        assert f"A finished 2 of 3 repetitions (seed 2: {why or 'it was ended early'})" in judged.words
    own = Measured("A", {"x": 0}, [{"wa_app": 8.0}], asked=3)
    (judged,) = judge_all(claim(tmp_path, "above = 1"), {"p": [own]})
    assert (judged.verdict, judged.words) == (
        "not measured",
        "A finished 1 of 3 repetitions (the others were not begun); what it finished comes to 8.",
    )


def test_what_did_not_finish_every_repetition_reproduces_no_relation(tmp_path: Path) -> None:
    points = [Measured("A", {"x": x}, [{"wa_app": 9.0 - x}] * 2) for x in range(3)]
    (judged,) = judge_all(claim(tmp_path, "along = 'x'\ntrend = 'falls'"), {"p": points})
    assert judged.verdict == "reproduced"
    points[1] = replace(points[1], repetitions=[{"wa_app": 8.0}, ended(NO_SPACE)])
    (judged,) = judge_all(claim(tmp_path, "along = 'x'\ntrend = 'falls'"), {"p": points})
    assert (judged.verdict, "A finished 1 of 2 repetitions" in judged.words) == ("not measured", True)


def test_a_rival_is_compared_in_the_repetitions_that_it_finished(tmp_path: Path) -> None:
    """Ours is three times B's with seeds 1 and 3, and B's second repetition failed: its median is that of two."""
    own = Measured("A", {"x": 0}, [{"wa_app": value, "seed": seed} for seed, value in enumerate((3, 90, 9), start=1)])
    rival = Measured("B", {"x": 0}, [{"wa_app": 1, "seed": 1}, ended("a page", 2), {"wa_app": 3, "seed": 3}])
    (judged,) = judge_all(claim(tmp_path, "published = 3\nwithin = 0.01\nagainst = 'B'"), {"p": [own, rival]})
    assert judged.verdict == "reproduced"
    assert judged.words == "6 over 2. B finished 2 of 3 repetitions (seed 2: a page)."
    apart = replace(rival, repetitions=[ended("a page", 1), {"wa_app": 1, "seed": 4}])
    (judged,) = judge_all(claim(tmp_path, "published = 3\nagainst = 'B'"), {"p": [own, apart]})
    assert (judged.verdict, "no repetition that both A and B have finished" in judged.words) == ("not measured", True)


def test_repetitions_are_the_same_ones_in_every_rival(tmp_path: Path) -> None:
    """B failed with seed 1 and C with seed 3: their second runs are of other seeds."""
    rates = of_rivals("throughput_ops_s", A=[8, 8], B=[4, 4], C=[2, 2])
    for run, seeds in zip(rates["p"], ((1, 2), (2, 3), (1, 2)), strict=True):
        for each, seed in zip(run.finished, seeds, strict=True):
            each["seed"] = seed
    (judged,) = judge_all(rival_claim(tmp_path, "throughput_ops_s", "above = 1"), rates)
    assert (judged.verdict, "not the same repetitions" in judged.words) == ("not measured", True)


@pytest.mark.parametrize("missing", [[1.0], [], [1.0, None]])
def test_the_best_rival_needs_every_rival(tmp_path: Path, missing: list[float | None]) -> None:
    """One that failed might have been the best."""
    rates = of_rivals("throughput_ops_s", A=[8, 8], B=[4, 4], C=missing)
    (judged,) = judge_all(rival_claim(tmp_path, "throughput_ops_s", "above = 1"), rates)
    assert judged.verdict == "not measured"
    without = {"p": rates["p"][:2]}
    (judged,) = judge_all(rival_claim(tmp_path, "throughput_ops_s", "above = 1"), without)
    assert (judged.verdict, "there is no run C" in judged.words) == ("not measured", True)


def test_a_bound_is_passed_by_more_than_repetitions_are_apart(tmp_path: Path) -> None:
    lines = "at = { x = 0 }\nabove = 1"
    apart = [Measured("A", {"x": 0}, [{"wa_app": value} for value in (1.0, 1.05, 1.1)])]
    close = [Measured("A", {"x": 0}, [{"wa_app": value} for value in (1.05, 1.05, 1.06)])]
    (unsure,), (sure,) = (judge_all(claim(tmp_path, lines), {"p": runs}) for runs in (apart, close))
    assert (unsure.verdict, sure.verdict) == ("differs", "reproduced")
    assert "no more than 9.5% from it" in unsure.words


def test_a_claim_of_several_drives_is_one_of_each(tmp_path: Path) -> None:
    path = tmp_path / "claims.toml"
    text = (
        '[statements]\nC = "x"\n[drives]\naxis = "d"\nI = "intel"\nS = "sandisk"\n[[claims]]\nclaim = "C"\nsays = "s"\n'
        'where = "w"\nplan = "p"\narm = "A"\nfigure = "wa_app"\n'
        'drives = ["I", "S"]\nat = { x = 1 }\npublished = [2, 3]\n'
    )
    path.write_text(text)
    read = read_claims(path, ["p"])[1]
    assert [(each.says, each.place.at, each.published) for each in read] == [
        ("s, I", {"d": "intel", "x": 1}, 2.0),
        ("s, S", {"d": "sandisk", "x": 1}, 3.0),
    ]
    for old, new, says in (
        ('["I", "S"]', '["I", "T"]', "names 'T'; under .drives. there are: I, S"),
        ("[2, 3]", "[2]", "published has 1 figures for 2 drives"),
        ('axis = "d"', "", "drives takes axis"),
    ):
        path.write_text(text.replace(old, new))
        with pytest.raises(SpillwayError, match=says):
            read_claims(path, ["p"])


def test_a_cause_is_said_of_a_figure_that_no_law_leads_to_and_not_of_one_that_is_missing(tmp_path: Path) -> None:
    claims = claim(tmp_path, "at = { x = 0 }\npublished = 10\nwhy = 'few values'")
    scaled = [Measured("A", {"x": 0}, [{"wa_app": 3.0}], scaled=True)]
    (judged,) = judge_all(claims, {"p": scaled})
    assert (judged.verdict, judged.words.endswith("Measured at this scale: 3. Few values.")) == ("not measured", True)
    (judged,) = judge_all(claims, {"p": line(None)})
    assert "Few values" not in judged.words


def test_what_has_not_been_run_is_not_measured(tmp_path: Path) -> None:
    (judged,) = judge_all(claim(tmp_path, "published = 1"), {})
    assert (judged.verdict, judged.words) == ("not measured", "P has not been run.")
    both = judge_all(claim(tmp_path, "at = { x = 0 }\npublished = 1") * 2, {"p": line(1.0)})
    (tally,) = tallies({"C": "x", "D": "y"}, both)
    assert (tally.verdict, tally.counts) == ("reproduced", "2 of 2")


def test_a_share_of_lbas_is_read_where_its_run_was_kept() -> None:
    kept = {"from": None, "to": {"drive": {"mapped_share": 0.7}}}
    standing = {"complete": True, "failure": None, "kept": None, "words": ""}
    (run,) = measured_of({"A": {"standing": standing, "kept": kept}}, {}, {})
    assert run.figure("mapped_share") == 0.7
    (other,) = measured_of({"A": {"standing": standing, "kept": None}}, {}, {})
    assert other.figure("mapped_share") is None


@pytest.mark.parametrize("odd", [float("nan"), float("inf")])
def test_what_is_no_number_reproduces_nothing(tmp_path: Path, odd: float) -> None:
    results = {"p": line(odd, 2.0) + line(1.0, 1.0, arm="B")}
    for lines in ("at = { x = 0 }\nabove = 1", "at = { x = 0 }\nabove = 1\nagainst = 'B'"):
        (judged,) = judge_all(claim(tmp_path, lines), results)
        assert judged.verdict == "not measured"


def test_medians_are_of_finished_repetitions() -> None:
    ended = [
        {"wa_app": 1.0, "complete": True, "failure": None},
        {"wa_app": 3.0, "complete": True, "failure": None},
        {"wa_app": 99.0, "complete": False, "failure": "full."},
    ]
    (one,) = measured_of({"A, x 1": {"of": "A", "repetitions": ended}}, {"A, x 1": {"x": 4}}, {})
    assert (one.arm, one.point, one.figure("wa_app"), one.failure) == ("A", {"x": 4}, 2.0, "full.")


RECORDED = sorted((Path(__file__).parents[2] / "runs" / "suites").glob("*/claims.csv"))


def cause_of(claim: Claim, row: dict[str, str]) -> str:
    """What stands against a claim that came out as a recorded row says."""
    if row["verdict"] == "not measured":
        if "so no burst is told apart" in row["why"]:  # one that is steady from its start needs no cause
            return claim.why_unsteady if " is not steady" in row["why"] else row["why"]
        return claim.unmeasured or claim.why
    below = re.match(r"[\d,]+% below;|Below that|It should be above", row["why"])
    above = re.match(r"[\d,]+% above;|Above that|It should be below", row["why"])
    return claim.why or (claim.why_below if below else claim.why_above if above else "")


@pytest.mark.parametrize("path", sorted((Path(__file__).parents[2] / "plans").glob("*/claims.toml")), ids=str)
def test_the_reason_of_a_differing_claim_is_a_sentence(path: Path) -> None:
    for claim in load_suite(path.parent).claims:
        for words in (
            *(claim.why, claim.why_above, claim.why_below, claim.why_unsteady),
            *(claim.unmeasured, claim.calibrated, claim.any_size),
        ):
            assert not words or len(words.split()) > 5, f"{claim.says}: {words}"


@pytest.mark.parametrize("recorded", RECORDED, ids=lambda path: path.parent.name)
def test_every_claim_that_is_not_reproduced_has_a_cause(recorded: Path) -> None:
    about = json.loads((recorded.parent / "about.json").read_text(encoding="utf-8"))
    claims = load_suite(find_suite(about.get("suite", recorded.parent.name))).claims
    by_statement = {(claim.name, claim.says): claim for claim in claims}
    with recorded.open(encoding="utf-8", newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["verdict"] in ("differs", "not measured")]
    judged = [row for row in rows if "has not been run" not in row["why"]]
    known = [(by_statement[key], row) for row in judged if (key := (row["claim"], row["statement"])) in by_statement]
    assert known
    without = [f"{claim.name}: {claim.says}" for claim, row in known if not cause_of(claim, row)]
    assert without == []


def test_a_list_of_plans_and_arms_is_a_claim_for_each(tmp_path: Path) -> None:
    path = tmp_path / "claims.toml"
    head = '[statements]\nC = "x"\n[[claims]]\nclaim = "C"\nsays = "s"\nwhere = "w"\nfigure = "wa_app"\nbelow = 1\n'
    path.write_text(f"{head}plan = ['p', 'q']\narm = ['A', 'B']\n")
    claims = read_claims(path, ["p", "q"])[1]
    assert [(each.says, each.place.plan, each.place.arm) for each in claims] == [
        (f"s, {plan}, {arm}", plan, arm) for plan in "pq" for arm in "AB"
    ]
    path.write_text(f"{head}plan = 'p'\narm = ['A', 'B']\nagainst = 'B'\n")
    with pytest.raises(SpillwayError, match="the arm itself"):
        read_claims(path, ["p"])
    for arms in ("[]", "['A']", "['A', 'A']", "[1, 2]"):
        path.write_text(f"{head}plan = 'p'\narm = {arms}\n")
        with pytest.raises(SpillwayError, match=r"claims\[0\]: arm is"):
            read_claims(path, ["p"])


def test_each_of_the_rivals_has_to_be_an_arm_of_the_plan(suite: Path) -> None:
    arms = "".join(f'[[arms]]\nname = "{name}"\n' for name in "axy")
    (suite / "a.toml").write_text((suite / "a.toml").read_text() + arms)
    for rivals, missing in ((["x", "z"], "z"), (["z", "y"], "z"), (["x", "y"], "")):
        (suite / "claims.toml").write_text(f"{CLAIMS}against = {rivals}\n")
        if missing:
            with pytest.raises(SpillwayError, match=f"a has no arm '{missing}'; there are: a, x, y"):
                load_suite(suite)
        else:
            assert load_suite(suite).claims[0].place.against == ("x", "y")


@pytest.mark.parametrize(
    ("figure", "value"),
    [
        ("write_latency_p99_us", 7.0),
        ("write_latency_p99_9_us", 8.0),
        ("write_latency_max_us", 9.0),
        ("read_latency_max_us", 3.0),
        ("write_throughput_ops_s", 40.0),
        ("read_throughput_ops_s", 10.0),
        ("read_share", 0.2),
        ("slowest_second_share", 0.6),
        ("settled_throughput_ops_s", 20.0),
        ("settled_wa_total", 5.0),
        ("diverted_share", 0.75),
        ("host_bytes_read_per_operation", 8192.0),
    ],
)
def test_figures_of_operations_of_seconds_and_of_the_whole_bill(figure: str, value: float) -> None:
    summary = {
        "duration_s": 10.0,
        "reads": 100,
        "writes": 400,
        "operations": 500,
        "host_bytes_read": 500 * 8192,
        "write_latency_us": {"p99": 7.0, "p99_9": 8.0, "max": 9.0},
        "read_latency_us": {"p99": 1.0, "p99_9": 2.0, "max": 3.0},
        "slowest_second_share": 0.6,
        "bill": {"throughput_ops_s": 20.0, "wa_app": 4.0, "wa_total": 5.0},
        "spill": {"diverted_writes": 300, "main_writes": 100},
    }
    assert Measured("A", {}, [summary]).figure(figure) == value
    for without in ({}, dict.fromkeys(summary), {"reads": 0, "writes": 0, "operations": 0, "duration_s": 0.0}):
        assert Measured("A", {}, [without]).figure(figure) is None
