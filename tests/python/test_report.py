"""The report: its series against sums by hand, its words, its file, and the page in a real browser."""

import re
import shutil
from pathlib import Path
from typing import Any

import pytest
from browser import complaints, visit
from conftest import PLAN, Invoke, run_by_fake
from PIL import Image

from spillway.errors import SpillwayError
from spillway.report import series, words, write_report
from spillway.report.panels import arm_panels
from spillway.report.series import die_busy
from spillway.report.style import STALLS
from spillway.rundir.directory import ArmRecord, read_run
from spillway.rundir.samples import Row

pytestmark = pytest.mark.reports


def row(t: float, **given: Any) -> Row:
    base: Row = {"t_s": t, "dt_s": 1.0, "measured": 1.0, "reads": 0.0, "writes": 10.0, "user_bytes_written": 100.0}
    base |= {"host_bytes_written": 300.0, "die_busy": 0.5, "stall_s_l0": 0.0}
    base |= {f"nand_bytes_programmed_{cause}": 0.0 for cause in ("mapping", "wear", "fold")}
    return base | {"nand_bytes_programmed_host": 300.0, "nand_bytes_programmed_gc": 300.0} | given


def test_ratios_so_far_and_in_each_span() -> None:
    rows = [row(1), row(2, host_bytes_written=500.0, nand_bytes_programmed_host=500.0, nand_bytes_programmed_gc=700.0)]
    groups = [[each] for each in rows]
    so_far = series.ratios_over_time(groups, cumulative=True)
    assert so_far["wa_app"] == [3.0, 4.0]
    assert so_far["wa_device"] == [2.0, 1800 / 800]
    assert so_far["wa_total"] == [6.0, pytest.approx(1800 / 200)]
    each = series.ratios_over_time(groups, cumulative=False)
    assert each["wa_app"] == [3.0, 5.0]
    assert each["wa_device"] == [2.0, 1200 / 500]


def test_without_counters_there_is_no_device_ratio() -> None:
    rows = [row(1, nand_bytes_programmed_gc=None)]
    found = series.ratios_over_time([rows], cumulative=True)
    assert (found["wa_app"], found["wa_device"], found["wa_total"]) == ([3.0], [None], [None])


def test_the_cdf_weighs_an_interval_by_its_seconds_of_stall() -> None:
    """K19: an interval that was a stall for a quarter of its time counts a quarter during, and three outside."""
    rows = [row(1, die_busy=0.2, stall_s_l0=0.25), row(2, die_busy=0.6, stall_s_l0=0.75), row(3, die_busy=0.9)]
    during, outside = series.split_cdf(rows, die_busy)
    assert during["x"] == [0, 20, 60, 100]
    assert during["y"] == [0, 25, 100, 100]
    assert outside["x"] == [0, 20, 60, 90, 100]
    assert outside["y"] == pytest.approx([0, 37.5, 50, 100, 100])
    assert series.mean_during(rows, die_busy, stalled=True) == pytest.approx(0.25 * 0.2 + 0.75 * 0.6)


def test_no_stall_has_no_distribution() -> None:
    during, outside = series.split_cdf([row(1)], die_busy)
    assert during == {"x": [], "y": []}
    assert outside["y"][-1] == 100
    assert series.mean_during([row(1)], die_busy, stalled=True) is None


def test_spans_lose_no_row_and_long_runs_stay_drawable() -> None:
    rows = [row((i + 1) * 0.1, dt_s=0.1) for i in range(6000)]
    seconds = series.gathered(rows, 1.0)
    assert sum(len(group) for group in seconds) == 6000
    assert {len(group) for group in seconds} == {10}
    assert len(series.fine(rows)) <= series.MOST_POINTS + 1
    rates = series.rates(seconds, ["writes"], 1.0)
    assert rates["writes"] == pytest.approx([100.0] * 600)
    assert rates["t"][0] == pytest.approx(0.5)


def test_neighbouring_stalls_are_drawn_as_one() -> None:
    rows = [row(float(i + 1)) for i in range(60)]
    stalls = [
        {"t_s": 1.0, "duration_s": 1.0, "state": "delayed", "cause": "l0"},
        {"t_s": 2.01, "duration_s": 1.0, "state": "delayed", "cause": "l0"},
        {"t_s": 3.02, "duration_s": 1.0, "state": "stopped", "cause": "l0"},
        {"t_s": 9.0, "duration_s": 1.0, "state": "stopped", "cause": "l0"},
    ]
    spans = series.stall_spans(stalls, rows)
    assert [(each.start_s, each.end_s) for each in spans] == [(1.0, 3.01), (3.02, 4.02), (9.0, 10.0)]


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return run_by_fake(tmp_path_factory.mktemp("one"), PLAN, with_report=True)


@pytest.fixture
def rundir(recorded: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(recorded, tmp_path / "run"))


@pytest.fixture(scope="module")
def two_arms(tmp_path_factory: pytest.TempPathFactory) -> Path:
    text = PLAN + '\n[[arms]]\nname = "One & only"\n[[arms]]\nname = "<Two>"\n'
    return run_by_fake(tmp_path_factory.mktemp("two"), text, with_report=True)


def test_the_headline_tells_the_story(rundir: Path) -> None:
    run = read_run(rundir)
    rate = f"{run.arms[0].summary['throughput_ops_s']:,.0f}"
    story = words.headline(run, {"engine": {"name": "rocksdb"}})
    assert story.startswith(f"RocksDB did {rate} operations a second, and held its writers back for 3.0 of 12 seconds")
    assert "too many L0 files" in story
    assert f"{run.arms[0].summary['wa_total']:.2f} bytes on flash" in story


def test_the_headline_without_stalls_and_without_a_drive(rundir: Path) -> None:
    run = read_run(rundir)
    summary = run.arms[0].summary
    summary |= {"stalls": {"count": 0, "seconds": 0.0, "by_cause": {}}, "wa_total": None, "wa_device": None}
    assert "without a single stall. Each byte of user data became" in words.headline(run, {})
    assert words.headline(run, {}).endswith("bytes at the drive.")
    summary |= {"wa_app": None, "stalls": {"count": 3, "seconds": 0.9, "by_cause": {"memtable": 0.9}}}
    assert words.headline(run, {}).endswith("held its writers back for 0.9 of 12 seconds, mostly for full memtables.")
    assert "are not known" in words.key_figures(run.arms[0])[3].remark


def test_every_figure_names_its_unit_and_its_standing(rundir: Path) -> None:
    from spillway.report.charts import Clock

    panels = arm_panels(read_run(rundir).arms[0], Clock(12))
    assert len(panels) >= 12
    for panel in panels:
        assert panel.figure.yaxis[0].axis_label, panel.key
        assert panel.figure.xaxis[0].axis_label, panel.key
        assert panel.standing.startswith("steady drive at the start · 64.0 MiB · time × 1 · pacing error 9 µs median")
        assert panel.standing.endswith("steady")
        assert panel.caption
        assert panel.legend


def test_charts_over_time_share_their_axis(rundir: Path) -> None:
    from spillway.report.charts import Clock

    clock = Clock(12)
    panels = [panel for panel in arm_panels(read_run(rundir).arms[0], clock) if not panel.key.startswith("cdf")]
    assert {id(panel.figure.x_range) for panel in panels} == {id(clock.range)}
    assert all(any(hasattr(tool, "tooltips") for tool in panel.figure.tools) for panel in panels)


def test_nothing_is_fetched(rundir: Path) -> None:
    page = (rundir / "report.html").read_text()
    assert not re.search(r"<(script|img|iframe)[^>]+src=", page)
    assert re.findall(r"<link[^>]+href=\"(.*?)\"", page) == ["data:,"]
    assert not re.search(r"@import|url\((?!data:|#|\")", page.split("</style>")[0])


def test_the_report_is_made_again_from_the_run_directory_alone(rundir: Path, tmp_path: Path, invoke: Invoke) -> None:
    (rundir / "report.html").unlink()
    moved = tmp_path / "elsewhere"
    rundir.rename(moved)
    assert invoke("report", moved).code == 0
    assert "Throughput and stalls" in (moved / "report.html").read_text()
    assert invoke("report", moved, "--out", tmp_path / "mine.html").code == 0
    assert (tmp_path / "mine.html").exists()


def test_names_of_arms_are_text(two_arms: Path) -> None:
    page = (two_arms / "report.html").read_text()
    assert "&lt;Two&gt;" in page
    assert "<Two>" not in page.split("<script")[0]
    assert "One &amp; only" in page


@pytest.mark.parametrize("name", ["manifest.json", "summary.json", "plan.toml", "arms/small/samples.csv"])
def test_a_damaged_run_directory_is_refused_by_name(rundir: Path, name: str) -> None:
    path = rundir / name
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2] if name.endswith("json") else b"\xff\xfe")
    with pytest.raises(SpillwayError, match=re.escape(str(path))):
        write_report(rundir, rundir / "again.html")
    path.unlink()
    with pytest.raises(SpillwayError, match=re.escape(str(path))):
        write_report(rundir, rundir / "again.html")
    assert not (rundir / "again.html").exists()


def test_a_truncated_last_line_of_samples_is_refused(rundir: Path) -> None:
    path = rundir / "arms" / "small" / "samples.csv"
    path.write_bytes(path.read_bytes()[:-120])
    with pytest.raises(SpillwayError, match=r"samples\.csv: line 121 is damaged"):
        write_report(rundir, rundir / "again.html")


def test_an_arm_without_a_sample_has_a_page_all_the_same(rundir: Path) -> None:
    arm = read_run(rundir).arms[0]
    assert arm_panels(ArmRecord(arm.name, arm.summary, [], [], [], {}), None) == []  # type: ignore[arg-type]


def figures_in(page: Path) -> int:
    return page.read_text().count("<figure")


@pytest.mark.browser
def test_the_page_draws_every_chart_without_a_complaint(rundir: Path) -> None:
    page = rundir / "report.html"
    seen = visit(page, "--dump-dom")
    assert complaints(seen.console) == []
    assert figures_in(page) >= 12
    assert seen.output.count('class="bk-Figure"') == figures_in(page)


@pytest.mark.browser
def test_the_page_of_several_arms_draws_every_chart(two_arms: Path) -> None:
    page = two_arms / "report.html"
    seen = visit(page, "--dump-dom")
    assert complaints(seen.console) == []
    assert figures_in(page) >= 30
    assert seen.output.count('class="bk-Figure"') == figures_in(page)


@pytest.mark.browser
@pytest.mark.long
def test_an_error_in_the_browser_is_noticed(rundir: Path, tmp_path: Path) -> None:
    """The two tests above can fail: an exception on the page and a chart that is not drawn are both seen."""
    page = (rundir / "report.html").read_text()
    broken = tmp_path / "broken.html"
    broken.write_text(page.replace("</main>", "</main><script>noSuchThing.atAll()</script>"))
    assert "noSuchThing" in " ".join(complaints(visit(broken, "--dump-dom").console))
    silent = tmp_path / "silent.html"
    silent.write_text(re.sub(r'<div id="[^"]+" data-root-id', '<div id="gone" data-root-id', page, count=1))
    assert visit(silent, "--dump-dom").output.count('class="bk-Figure"') < figures_in(silent)


@pytest.mark.browser
def test_the_first_screen_shows_the_stalls(rundir: Path, tmp_path: Path) -> None:
    shot = tmp_path / "shot.png"
    visit(rundir / "report.html", f"--screenshot={shot}", "--window-size=1200,900")
    image = Image.open(shot).convert("RGB")
    assert image.size == (1200, 900)
    colours: set[Any] = {colour for _, colour in image.getcolors(maxcolors=2**24) or []}
    wanted = tuple(int(STALLS["l0"][i : i + 2], 16) for i in (1, 3, 5))
    shaded = tuple(round(255 - 0.42 * (255 - part)) for part in wanted)  # stopped for L0, over white
    assert any(all(abs(a - b) <= 2 for a, b in zip(colour, shaded, strict=True)) for colour in colours)


@pytest.mark.browser
def test_the_browser_is_there() -> None:
    assert shutil.which("chromium"), "the browser tests need chromium: apt-get install chromium, or -m 'not browser'"
