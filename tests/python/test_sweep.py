"""Sweeps: which points a plan's ``[sweep]`` has, what is refused, and what runs and reports make of it."""

import json
import re
import tomllib
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from conftest import PLAN, Fake, Invoke, check_refused
from made_run import arm as made_arm
from made_run import run as made_run

from spillway.errors import SpillwayError
from spillway.figures.lifetime import Endurance, Price, Work, lifetime
from spillway.plan.document import load_plan
from spillway.plan.sweep import axes_of, place_of, short_names
from spillway.report import sweep as report_sweep
from spillway.report import sweep_data, sweep_words
from spillway.report.page import render
from spillway.report.panels import Panel
from spillway.rundir.directory import ArmRecord, read_run

SHORT = PLAN.replace("duration_s = 12", "duration_s = 1")
GRID = '\n[sweep]\n"load.value_bytes" = [16, 100]\n"engine.options.x" = ["1MiB", "4MiB"]\n'
POINTS = (
    '\n[[sweep.points]]\nname = "small"\n"load.value_bytes" = 16\n"load.num" = 200\n'
    '[[sweep.points]]\nname = "large"\n"load.value_bytes" = 1024\n"load.num" = 10\n'
)
ARMS = '\n[[arms]]\nname = "One"\n[[arms]]\nname = "Two"\n"engine.policy" = "no-slowdown"\n'


def write(plan_file: Path, text: str) -> Path:
    plan_file.write_text(text)
    return plan_file


def test_every_arm_has_every_combination_in_turn(plan_file: Path) -> None:
    arms = load_plan(write(plan_file, SHORT + GRID + ARMS)).arms
    seen = [(arm.of, arm.settings["load.value_bytes"], arm.engine_options["x"]) for arm in arms]
    assert seen == [(arm, v, x) for v in (16, 100) for x in ("1MiB", "4MiB") for arm in ("One", "Two")]
    assert arms[0].name == "One, value_bytes 16, x 1MiB"
    assert arms[0].point == {"load.value_bytes": 16, "engine.options.x": "1MiB"}
    assert {arm.settings["engine.policy"] for arm in arms if arm.of == "Two"} == {"no-slowdown"}


def test_points_set_keys_together_and_may_have_names(plan_file: Path) -> None:
    arms = load_plan(write(plan_file, SHORT + POINTS)).arms
    assert [(arm.name, arm.of) for arm in arms] == [("small", "small"), ("large", "small")]
    assert [(arm.settings["load.value_bytes"], arm.settings["load.num"]) for arm in arms] == [(16, 200), (1024, 10)]


def test_several_lists_are_combined(plan_file: Path) -> None:
    other = POINTS.replace("points", "buffers").replace('"load.num" = 200\n', "").replace('"load.num" = 10\n', "")
    other = (
        other.replace("load.value_bytes", "engine.options.x").replace('"small"', '"low"').replace('"large"', '"high"')
    )
    arms = load_plan(write(plan_file, SHORT + POINTS + other)).arms
    assert [arm.name for arm in arms] == ["small, low", "small, high", "large, low", "large, high"]
    assert arms[1].point == {"load.value_bytes": 16, "load.num": 200, "engine.options.x": 1024}


def test_points_go_with_a_grid(plan_file: Path) -> None:
    text = SHORT + POINTS.replace("\n[[", '\n[sweep]\n"phases.fill.threads" = [1, 2]\n[[', 1)
    arms = load_plan(write(plan_file, text)).arms
    assert [arm.name for arm in arms] == [
        "small, threads 1",
        "small, threads 2",
        "large, threads 1",
        "large, threads 2",
    ]
    assert [arm.phases[0]["threads"] for arm in arms] == [1, 2, 1, 2]
    assert [(axis.key, axis.along) for axis in axes_of([arm.point for arm in arms])] == [
        ("load.value_bytes", ("load.num",)),
        ("phases.fill.threads", ()),
    ]


def test_a_phase_without_a_name_is_swept_by_its_workload(plan_file: Path) -> None:
    """Which is its name then."""
    path = plan_file
    text = SHORT.replace('name = "fill"\n', "")
    assert text != SHORT
    path.write_text(text + '[sweep]\n"phases.fillrandom.threads" = [1, 2]\n')
    assert [arm.phases[0]["threads"] for arm in load_plan(path).arms] == [1, 2]
    path.write_text(SHORT + '[sweep]\n"phases.fillrandom.threads" = [1, 2]\n')  # it has another name
    with pytest.raises(SpillwayError, match="no element 'fillrandom'; by name there are: fill"):
        load_plan(path)


@pytest.mark.parametrize("sweep", [GRID, POINTS, '\n[sweep]\n"drive.capacity" = ["32MiB", "64MiB"]\n'])
@pytest.mark.parametrize("arms", ["", ARMS])
def test_the_resolved_plan_of_a_sweep_says_the_same(plan_file: Path, sweep: str, arms: str) -> None:
    plan = load_plan(write(plan_file, SHORT + sweep + arms))
    again = load_plan(write(plan_file, plan.to_toml()))
    assert again.arms == plan.arms
    assert again.to_toml() == plan.to_toml()


def test_set_takes_the_place_of_an_axis(plan_file: Path) -> None:
    write(plan_file, SHORT + GRID)
    one = load_plan(plan_file, ("load.value_bytes=7",)).arms
    assert [arm.point for arm in one] == [{"load.value_bytes": 7, "engine.options.x": x} for x in ("1MiB", "4MiB")]
    several = load_plan(plan_file, ("load.value_bytes=[1, 2, 3]", "engine.options.x=9")).arms
    assert [arm.settings["load.value_bytes"] for arm in several] == [1, 2, 3]
    assert {arm.engine_options["x"] for arm in several} == {"9"}
    other = load_plan(plan_file, ("load.num=3",)).arms
    assert [(len(arm.point), arm.settings["load.num"]) for arm in other] == [(2, 3)] * 4
    points = load_plan(write(plan_file, SHORT + POINTS), ("load.num=3",)).arms
    assert [arm.point["load.num"] for arm in points] == [3, 3]
    resolved = load_plan(write(plan_file, load_plan(plan_file).to_toml()), ("load.num=5",)).arms
    assert [(arm.point["load.num"], arm.settings["load.num"]) for arm in resolved] == [(5, 5)] * 2


def test_an_arm_stands_for_all_of_its_points(plan_file: Path) -> None:
    write(plan_file, SHORT + GRID + ARMS)
    assert {arm.of for arm in load_plan(plan_file, (), ("Two",)).arms} == {"Two"}
    assert [arm.name for arm in load_plan(plan_file, (), ("One, value_bytes 16, x 4MiB",)).arms] == [
        "One, value_bytes 16, x 4MiB"
    ]
    with pytest.raises(SpillwayError, match="no arm 'Three'; by name there are: One, Two"):
        load_plan(plan_file, (), ("Three",))


def grid(lines: str) -> str:
    return f"{SHORT}\n[sweep]\n{lines}\n"


BAD = [
    (grid('"load.valu_bytes" = [1]'), r"sweep: load\.valu_bytes\[0\]: .* did you mean 'load\.value_bytes'"),
    (grid('"load.value_bytes" = [16, "x"]'), r"sweep: load\.value_bytes\[1\] is 'x'; it takes a whole number"),
    (grid('"load.value_bytes" = 16'), "load.value_bytes is 16; an axis takes a list"),
    (grid('"load.value_bytes" = []'), "an axis takes a list"),
    (grid('"load.num" = [1, 2]\nload.num = [3]'), "sweep: load.num is there twice"),
    (grid('load.num = [3]\n"load.num" = [3]'), "sweep: load.num is there twice"),
    (grid('"load.value_bytes" = [16, 16]'), "one point twice: load.value_bytes = 16"),
    (grid('"engine.options.x" = [{ a = 1 }]'), r"engine\.options\.x\[0\] is .* it takes a text"),
    (grid('"seeds" = [[1]]'), "seeds belongs to the whole plan and cannot be swept"),
    (grid('"phases.fill.thread" = [1]'), "is no key of a phase.*did you mean 'threads'"),
    (grid('"phases.nope.threads" = [1]'), "phases.nope.threads: there is no element 'nope'; by name there are: fill"),
    (grid('"phases.fill.threads" = [1]\n"phases.0.threads" = [2]'), "is set by another axis or by --set too"),
    (
        grid('"drive.capacity" = ["64MiB"]\n"drive.set.capacity.capacity_bytes" = ["64MiB"]'),
        "drive.capacity and drive.set.capacity.capacity_bytes set one value",
    ),
    (grid('"load.num" = [10, 10_000_000]'), r"at load\.num = 10000000: .*the drive holds"),
    (grid('"drive.preset" = ["tiny", "tyni"]'), r"at drive\.preset = 'tyni': .*did you mean 'tiny'"),
    (grid(f'"load.num" = {list(range(1, 10_002))}'), "sweep has 10001 points"),
    (SHORT + POINTS.replace("[[", '[sweep]\n"load.num" = [1]\n[[', 1), "two axes set load.num"),
    (SHORT + POINTS.replace('"load.num" = 10\n', ""), r"sweep.points\[1\] does not set load.num"),
    (SHORT + POINTS.replace("large", "SMALL"), "two arms are called"),
    (SHORT + '\n[[sweep.points]]\nname = "x"\n', r"sweep\.points\[0\] sets nothing"),
    (SHORT + "\n[sweep]\npoints = 3\n", "sweep.points is a list of tables"),
    (SHORT + POINTS.replace('name = "large"\n', ""), "some points have a name and some have none"),
    ("sweep = 3\n" + SHORT, "sweep is 3; it takes a table"),
    (SHORT + GRID + '\n[[arms]]\nname = "a"\nload.value_bytes = 7\n', "value_bytes is an axis of the sweep; leave"),
    (SHORT + GRID + '\n[[arms]]\nname = "a"\nof = "b"\n', "of and point go together"),
]


@pytest.mark.parametrize(("text", "says"), BAD, ids=[says[:40] for _, says in BAD])
def test_what_is_refused_names_the_axis_and_the_value(plan_file: Path, text: str, says: str) -> None:
    with pytest.raises(SpillwayError, match=says) as refused:
        load_plan(write(plan_file, text))
    sentence = str(refused.value)
    assert sentence.startswith(str(plan_file))
    assert sentence.endswith((".", "?"))


@pytest.mark.parametrize(
    ("override", "says"),
    [
        ("sweep.load.num=[1]", "name the axis's own key"),
        ("load.num=[1, 2]", "each of sweep.points has one value of it"),
        ("load.value_bytes=x", r"load.value_bytes is 'x'; it takes a whole number"),
        ("load={}", "would set the axis load.value_bytes too"),
    ],
)
def test_overrides_that_do_not_fit_the_sweep(plan_file: Path, override: str, says: str) -> None:
    with pytest.raises(SpillwayError, match=says):
        load_plan(write(plan_file, SHORT + POINTS), (override,))


def test_what_follows_from_another_key_is_no_axis() -> None:
    grid = [{"a": a, "b": b, "c": a * 2, "d": 1} for a in (1, 2) for b in (1, 2)]
    assert [(axis.key, axis.values, axis.along) for axis in axes_of(grid)] == [("a", (1, 2), ("c",)), ("b", (1, 2), ())]
    assert axes_of([{"a": 1}]) == []
    assert short_names(["load.num", "x.num", "y.z"]) == {"load.num": "load.num", "x.num": "x.num", "y.z": "z"}
    assert [place_of(value) for value in (3, 0.5, "4KiB", "zipfian", True)] == [3.0, 0.5, 4096.0, None, None]


@pytest.mark.reports
def test_a_sweep_runs_every_point_and_says_where_each_stands(
    fake: Fake, plan_file: Path, tmp_path: Path, invoke: Invoke
) -> None:
    write(plan_file, SHORT + GRID + ARMS)
    summary = invoke("run", plan_file, "--out", tmp_path / "run", "--set", "repetitions=2", "--json").json()
    assert len(fake.requests()) == 16
    assert summary["complete"] is True
    two = summary["arms"]["Two, value_bytes 100, x 4MiB"]
    assert (two["of"], two["point"]) == ("Two", {"load.value_bytes": 100, "engine.options.x": "4MiB"})
    assert [each["complete"] for each in two["repetitions"]] == [True, True]
    assert (tmp_path / "run" / "arms" / "two-value-bytes-100-x-4mib-r2" / "samples.csv").exists()
    page = (tmp_path / "run" / "report.html").read_text()
    assert 'id="compare-sweep-wa-total-0"' in page
    assert 'id="arm0' not in page, "the time series of eight runs would bury the lines"
    again = invoke("report", tmp_path / "run", "--arm", "Two, value_bytes 100, x 4MiB", "--out", tmp_path / "one.html")
    assert again.code == 0
    assert 'id="arm0-throughput"' in (tmp_path / "one.html").read_text()
    refused = invoke("report", tmp_path / "run", "--arm", "Three")
    assert (refused.code, "by name there are: One, Two" in refused.err) == (2, True)


def test_runs_with_long_names_have_directories_of_their_own(
    fake: Fake, plan_file: Path, tmp_path: Path, invoke: Invoke
) -> None:
    """One name beyond what file systems take may not cost the runs before it."""
    values = ["short", *("x" * 300 + end for end in ("", "y", "z"))]
    write(plan_file, SHORT + f'\n[sweep]\n"engine.options.x" = {json.dumps(values)}\n')
    ended = invoke("run", plan_file, "--out", tmp_path / "run", "--set", "repetitions=2")
    assert ended.code == 0, ended.err
    assert len(list((tmp_path / "run" / "arms").iterdir())) == 8
    assert [arm.summary["point"]["engine.options.x"] for arm in read_run(tmp_path / "run").arms] == values


@pytest.mark.reports
def test_a_point_that_fails_leaves_the_others(
    fake: Fake, plan_file: Path, tmp_path: Path, invoke: Invoke, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake.behave("fails")
    monkeypatch.setenv("FAKE_WHERE", json.dumps({"value_bytes": 16}))
    write(plan_file, SHORT + '\n[sweep]\n"load.value_bytes" = [16, 100, 1024]\n')
    ended = invoke("run", plan_file, "--out", tmp_path / "run")
    assert ended.code == 2
    assert "value_bytes 16 failed: the drive is full" in ended.err
    run = read_run(tmp_path / "run")
    assert run.manifest["complete"] is False
    standings = {arm.name: arm.summary["standing"] for arm in run.arms}
    assert [standing["complete"] for standing in standings.values()] == [False, True, True]
    assert "the drive is full" in standings["value_bytes 16"]["failure"]
    page = (tmp_path / "run" / "report.html").read_text()
    assert "1 of 3 runs failed." in page
    assert "<b>value_bytes 16</b>: the drive is full" in page
    assert ">failed</td>" in page


@pytest.mark.reports
@pytest.mark.parametrize(("mode", "code"), [("bad_input", 2), ("crashes", 1)])
def test_a_sweep_of_which_nothing_was_measured_leaves_the_reason(
    fake: Fake, plan_file: Path, tmp_path: Path, invoke: Invoke, mode: str, code: int
) -> None:
    fake.behave(mode)
    ended = invoke("run", write(plan_file, SHORT + GRID), "--out", tmp_path / "run")
    assert ended.code == code
    check_refused(tmp_path / "run", ended.err.removeprefix("spillway: ").strip())
    assert len(fake.requests()) == (1 if mode == "bad_input" else 4)


def swept(points: list[dict[str, Any]], arms: tuple[str, ...] = ("A",), failed: int = -1) -> list[ArmRecord]:
    """Runs made by hand: wa_app is ten at the first point and one less at each next."""
    found = []
    for index, point in enumerate(points):
        for name in arms:
            one = made_arm(f"{name} {index}", [1000.0])
            figures = one.summary | {"of": name, "point": point, "wa_app": 10.0 - index, "wa_total": 10.0 - index}
            if index == failed:
                figures["standing"] = figures["standing"] | {"complete": False, "failure": "the drive is full."}
            found.append(ArmRecord(one.name, figures, one.rows, one.stalls, one.phases, one.result))
    return found


def test_numbers_and_sizes_go_along_x_and_words_become_small_multiples() -> None:
    points = [{"drive.preset": d, "load.value_bytes": v} for d in ("a", "b", "c", "d") for v in (16, 16384)]
    layout = sweep_data.layout_of(sweep_data.point_results_of(swept(points)))
    assert layout.x is not None
    assert (layout.x.key, layout.styled, [axis.key for axis in layout.multiples]) == (
        "load.value_bytes",
        None,
        ["drive.preset"],
    )
    panels = report_sweep.sweep_panels(swept(points))
    titles = [panel.title for panel in panels if panel.key.startswith("sweep-wa-app")]
    assert titles == [f"wa_app, preset {name}" for name in "abcd"]
    figure = panels[0].figure
    assert figure.xaxis[0].major_label_overrides == {16.0: "16", 16384.0: "16 KiB"}
    assert type(figure.x_scale).__name__ == "LogScale"


def test_a_failed_point_is_a_cross_and_in_no_line() -> None:
    arms = swept([{"load.num": n} for n in (1, 2, 3)], failed=1)
    (panel,) = [each for each in report_sweep.sweep_panels(arms) if each.key == "sweep-wa-app-0"]
    assert "failed" in [mark.label for mark in panel.legend]
    lines = [r.data_source.data for r in panel.figure.renderers if type(r.glyph).__name__ == "Line"]
    assert [[None if y != y else y for y in line["y"]] for line in lines] == [[10.0, None, 8.0]]
    said = sweep_words.headline(arms)
    assert said == "1 of 3 runs failed. wa_total over load.num: “A” from 10.0 at 1 to 8.00 at 3."


def shapes(panel: Panel) -> set[tuple[str, str, str, str, float]]:
    """Of each point over an axis of names: its name, shape, fill and line, and its place beside the name."""
    marks = [r for r in panel.figure.renderers if type(r.glyph).__name__ == "Scatter" and r.glyph.marker != "x"]
    return {
        (at[0], r.glyph.marker, str(r.glyph.fill_color), str(r.glyph.line_color), at[1])
        for r in marks
        for at in r.data_source.data["x"]
    }


@pytest.mark.parametrize("loads", [2, 3])
def test_over_an_axis_of_names_no_two_points_look_alike_or_cover_each_other(loads: int) -> None:
    points = [{"drive.preset": d, "phases.0.workload": f"load{n}"} for d in ("ssd", "hdd") for n in range(loads)]
    arms = swept(points, ("A", "B"))
    panel = report_sweep.sweep_panels(arms)[0]
    found = shapes(panel)
    assert len(found) == len(arms)
    for drive in ("ssd", "hdd"):
        here = [each for each in found if each[0] == drive]
        assert len({each[1:4] for each in here}) == len({each[4] for each in here}) == 2 * loads
        assert all(abs(each[4]) < 0.5 for each in here)  # not over the neighbour's
    kinds = [(mark.label, mark.kind) for mark in panel.legend]
    assert kinds[:2] == [("A", "point"), ("B", "point")]
    assert kinds[2:] == [(f"workload load{n}", ("point", "ring", "triangle")[n]) for n in range(loads)]


def test_the_headline_is_about_the_worst_and_names_have_no_order() -> None:
    """On an axis of names the lowest and the highest; of another axis the value where the figure is worst."""
    points = [{"drive.preset": d, "phases.0.workload": w} for w in ("low", "high") for d in ("b", "a")]
    arms = [
        replace(arm, summary=arm.summary | {"wa_total": value})
        for arm, value in zip(swept(points), (1.5, 2.5, 9.0, 3.0), strict=True)
    ]
    said = sweep_words.headline(arms)
    assert said == "wa_total over drive.preset, at workload high: “A” from 3.00 at a to 9.00 at b."
    slow = [
        replace(arm, summary={k: v for k, v in arm.summary.items() if k[:3] != "wa_"} | {"throughput_ops_s": value})
        for arm, value in zip(swept(points), (8e3, 5e3, 7e3, 6e3), strict=True)
    ]
    assert "at workload low: “A” from 5.00 at a to 8.00 at b" in sweep_words.headline(slow)


def test_a_figure_that_is_nought_everywhere_has_a_chart_with_an_axis() -> None:
    arms = [
        replace(arm, summary=arm.summary | {"stalls": {"seconds": 0.0}})
        for arm in swept([{"drive.preset": d} for d in ("a", "b")])
    ]
    (panel,) = [each for each in report_sweep.sweep_panels(arms) if each.key == "sweep-stalls-0"]
    assert panel.figure.y_range.end > panel.figure.y_range.start


@pytest.mark.parametrize("paced", [True, pytest.param(False, marks=pytest.mark.long)])
def test_the_table_has_lifetime_next_to_write_amplification(paced: bool) -> None:
    work = Work(10, 1e6, 1e8, 4e8, 8e8, real_time=paced)
    life = lifetime(work, Endurance(8e10, 1e11, 1000, mean_pe_cycles=20), Price(100, "EUR"))
    arms = swept([{"load.num": n} for n in (1, 2)])
    arms = [replace(arm, summary=arm.summary | {"lifetime": life}) for arm in arms]
    header, rows = sweep_words.table(arms)
    found = dict(zip(header, rows[0], strict=True))
    assert header.index("Flash bytes per operation (bytes)") == header.index("wa_total") + 1
    assert found["Flash bytes per operation (bytes)"] == "800"
    assert found["Percentage used (%)"] == "2"
    rates = {key: found.get(key) for key in ("Drive writes per day (1/day)", "Years at this rate (years)")}
    rates["money"] = found.get("Money per year (EUR)")
    assert rates == dict.fromkeys(rates) if not paced else all(plain_figure(text) for text in rates.values())
    assert found["User data until worn (GB)"] == "12,500"
    page = render(made_run('summary = ""\n', arms))
    assert "Flash bytes per operation" in page
    assert ("Money per year (EUR)" in page) == paced


def plain_figure(text: str | None) -> bool:
    return text is not None and float(text.replace(",", "")) > 0


def test_runs_of_before_there_were_lifetimes_have_no_column_of_them() -> None:
    header, _ = sweep_words.table(swept([{"load.num": n} for n in (1, 2)]))
    assert not [title for title in header if "Flash bytes" in title or "Years" in title]


@pytest.mark.long
def test_a_hundred_runs_stay_readable() -> None:
    points = [{"load.value_bytes": v, "load.num": n} for v in range(1, 11) for n in range(1, 6)]
    page = render(made_run('summary = ""\n', swept(points, ("A", "B"))))
    assert len(re.findall(r"<figure", page)) <= len(sweep_data.METRICS) * sweep_data.MOST_MULTIPLES
    assert "Every run of the sweep (100)" in page
    assert "left out of the report of so many" in page


def test_a_plan_without_a_sweep_has_none_of_it(fake: Fake, plan_file: Path, tmp_path: Path, invoke: Invoke) -> None:
    invoke("run", write(plan_file, SHORT), "--out", tmp_path / "run")
    document = tomllib.loads((tmp_path / "run" / "plan.toml").read_text())
    assert "arms" not in document
    figures = json.loads((tmp_path / "run" / "summary.json").read_text())["arms"]["small"]
    assert "point" not in figures
