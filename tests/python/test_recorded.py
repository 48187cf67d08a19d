"""What the docs show of recorded runs is what runs/ makes of it, and the tool that fills it in says what is wrong."""

import json
import re
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from conftest import ROOT

sys.path.insert(0, str(ROOT / "scripts"))

import figures
from recorded import markers, mqssd, pages
from recorded.markdown import between, listed, milliseconds, percent, table
from recorded.records import Records

from spillway.reproduce.mqssd_reads import steps

MOST_PICTURE_BYTES = 60_000
RECORDED = Records(ROOT)

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """scripts/figures.py with these arguments: exit code, standard output, standard error."""

    def command(root: Path, *arguments: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["figures.py", "--root", str(root), *arguments])
        code = figures.main()
        said = capsys.readouterr()
        return code, said.out, said.err

    return command


@pytest.fixture
def made(tmp_path: Path) -> Path:
    """A checkout with one page, one benchmark and one suite."""
    bench = tmp_path / "runs" / "bench"
    bench.mkdir(parents=True)
    workloads = [{"workload": "a | b", "ratio": 1.25}, {"workload": "c", "ratio": 0.5}]
    document = {
        "command": "bench it",
        "commit": "abc",
        "date": "2026-01-02T03:04:05",
        "result": {"workloads": workloads},
    }
    (bench / "other_clients.json").write_text(json.dumps(document))
    suite = tmp_path / "runs" / "suites" / "falls"
    suite.mkdir(parents=True)
    about = {
        "command": "spillway suite falls",
        "factor": "1/2",
        "own_factors": {},
        "commit": "def",
        "started": "2026-01-02T03:04:05",
        "ended": "2026-01-03T03:04:05",
        "seconds": {"one": 60.0, "two": 120.0},
        "runs": 1234,
        "machine": {"processor": "P", "cores": 2},
    }
    (suite / "about.json").write_text(json.dumps(about))
    (suite / "claims.csv").write_text(
        "claim,statement,published,ours,basis,verdict,why\n"
        "B10,later,falls,1 at 1,scaled,reproduced,\n"
        "B2,first,2,2.1 (simulated),simulated,reproduced,\n"
        "B2,second,4,8,scaled,differs,too much\n"
        "B2,third,1 to 2,–,,not measured,\n"
    )
    page("Before.\n\n<!-- runs: other-clients -->\n<!-- /runs -->\n\nBehind.\n", tmp_path)
    return tmp_path


def page(text: str, root: Path) -> Path:
    path = root / "docs" / "PAGE.md"
    path.parent.mkdir(exist_ok=True)
    path.write_text(text)
    return path


# ---------------------------------------------------------------------------------------------------------------------
# This checkout


def test_docs_are_what_the_records_make_of_them() -> None:
    assert pages.stale(ROOT) == []


def test_pictures_are_small() -> None:
    sizes = {path.name: path.stat().st_size for path in (ROOT / pages.PICTURES).glob("*.svg")}
    assert len(sizes) >= 2
    assert {name: size for name, size in sizes.items() if size >= MOST_PICTURE_BYTES} == {}


@pytest.mark.parametrize("suite", RECORDED.suites())
def test_every_recorded_suite_has_its_verdicts_in_the_docs(suite: str) -> None:
    marker = f"<!-- runs: suite-verdicts {suite} -->"
    assert marker in (ROOT / "docs" / "RECORDED.md").read_text(encoding="utf-8"), f"add {marker} and <!-- /runs -->"


@pytest.mark.parametrize("suite", RECORDED.suites())
def test_a_recorded_suite_says_what_made_it(suite: str) -> None:
    about = RECORDED.about(suite)
    assert about["command"].startswith(f"spillway suite {about.get('suite', suite)}")
    assert re.fullmatch(r"[0-9a-f]{12}", about["commit"]), "of a clean checkout"
    assert {"spillway", "spillway-native", "build_sha256"} <= set(about["versions"])


def test_every_generator_fills_some_block() -> None:
    named = set()
    for name in ("README.md", *(f"docs/{path.name}" for path in (ROOT / "docs").glob("*.md"))):
        named |= set(re.findall(r"<!-- runs: ([\w-]+)", (ROOT / name).read_text(encoding="utf-8")))
    assert named == set(pages.BLOCKS | pages.CHARTS)


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """This checkout's pages and records."""
    root = tmp_path_factory.mktemp("copy")
    shutil.copyfile(ROOT / "README.md", root / "README.md")
    for name in ("docs", "runs/bench", "runs/compat", "runs/concurrency", "runs/suites", "plans"):
        shutil.copytree(ROOT / name, root / name)
    return root


def stale_texts(root: Path) -> list[str]:
    """Without the pictures: to draw all of them takes longer than all else, and each record is in a text too."""
    return pages.stale_texts(root, pages.fill(root))


@pytest.mark.parametrize("name", RECORDED.benches())
def test_another_record_makes_the_docs_stale(name: str, copy: Path) -> None:
    path = copy / "runs" / "bench" / f"{name}.json"
    before = path.read_text()
    try:
        path.write_text(json.dumps(moved(json.loads(before))))
        assert any(line.startswith("docs/") for line in stale_texts(copy))
    finally:
        path.write_text(before)


@pytest.mark.parametrize("version", RECORDED.rocksdbs())
def test_another_result_with_a_rocksdb_makes_the_docs_stale(version: str, copy: Path) -> None:
    path = copy / "runs" / "compat" / f"{version}.json"
    before = path.read_text()
    try:
        document = json.loads(before)
        assert document["passed"]
        document["steps"][-1]["exit"] = 1
        path.write_text(json.dumps(document))
        assert any(line.startswith("docs/LIBRARY.md:") for line in stale_texts(copy))
    finally:
        path.write_text(before)


def moved(value: Any) -> Any:
    """A document with all fractions 7 % larger, and nothing else changed."""
    if isinstance(value, dict):
        return {key: moved(each) for key, each in value.items()}
    if isinstance(value, list):
        return [moved(each) for each in value]
    return value * 1.07 if isinstance(value, float) else value


@pytest.mark.parametrize("suite", RECORDED.suites())
def test_another_verdict_makes_the_docs_stale(suite: str, copy: Path) -> None:
    path = copy / "runs" / "suites" / suite / "claims.csv"
    before = path.read_text()
    try:
        path.write_text(before + "Z1,a claim more,1,2,scaled,differs,\n")
        assert any(line.startswith("docs/RECORDED.md:") for line in stale_texts(copy))
    finally:
        path.write_text(before)


# ---------------------------------------------------------------------------------------------------------------------
# The tool, on made-up pages and records


def test_it_fills_a_block_and_nothing_else(made: Path, run: Run) -> None:
    code, out, err = run(made)
    assert (code, out, err) == (0, "docs/PAGE.md\n", "")
    assert (made / "docs" / "PAGE.md").read_text() == (
        "Before.\n\n<!-- runs: other-clients -->\n\n"
        "| client and workload | host bytes, ours / theirs |\n|---|--:|\n| a \\| b | 1.250 |\n| c | 0.500 |\n"
        "\n<!-- /runs -->\n\nBehind.\n"
    )
    assert run(made, "--check") == (0, "", "")
    before = (made / "docs" / "PAGE.md").read_bytes()
    assert run(made)[0] == 0
    assert (made / "docs" / "PAGE.md").read_bytes() == before


def test_a_figure_in_a_sentence(made: Path, run: Run) -> None:
    sizes = [{"bytes_per_key": 120.4}, {}, {"bytes_per_key": 99.6}]
    (made / "runs" / "bench" / "spill_overheads.json").write_text(json.dumps({"result": {"benchmarks": sizes}}))
    path = page("| keys | <!-- runs: index-bytes -->1<!-- /runs --> bytes |\n", made)
    assert run(made)[0] == 0
    assert path.read_text() == "| keys | <!-- runs: index-bytes -->100 to 120<!-- /runs --> bytes |\n"


def test_a_check_changes_nothing_and_says_where(made: Path, run: Run) -> None:
    path = made / "docs" / "PAGE.md"
    empty = path.read_text()
    code, out, _ = run(made, "--check")
    assert code == 1
    assert out.startswith("docs/PAGE.md:4 is not what runs/ makes of it; run make docs.")
    assert path.read_text() == empty


def test_an_edit_by_hand_is_seen(made: Path, run: Run) -> None:
    path = made / "docs" / "PAGE.md"
    run(made)
    path.write_text(path.read_text().replace("1.250", "1.200"))
    code, out, _ = run(made, "--check")
    assert code == 1
    assert out == "docs/PAGE.md:7 is not what runs/ makes of it; run make docs.\n"
    path.write_text(path.read_text().replace("1.200", "1.250").replace("Behind.", "Behind and beyond."))
    assert run(made, "--check")[0] == 0


def test_another_record_is_seen(made: Path, run: Run) -> None:
    run(made)
    record = made / "runs" / "bench" / "other_clients.json"
    record.write_text(record.read_text().replace("0.5", "0.75"))
    assert run(made, "--check")[0] == 1
    assert run(made)[0] == 0
    assert "| c | 0.750 |" in (made / "docs" / "PAGE.md").read_text()


def test_a_suite_needs_nothing_but_its_blocks(made: Path, run: Run) -> None:
    blocks = ("records", "suite-about falls", "suite-verdicts falls", "suite-differing falls", "suite-picture falls")
    path = page("".join(f"<!-- runs: {block} -->\n<!-- /runs -->\n" for block in blocks), made)
    assert run(made)[0] == 0
    text = path.read_text()
    assert "| `suites/falls/` | `spillway suite falls` | def | 2026-01-03 |" in text
    assert "1,234 runs of 2 plans at 1/2 of the original's sizes, 3 minutes on 2 cores (P)." in " ".join(text.split())
    assert text.index("| B2 |  | 1 | 1 | – | 1 | 3 |") < text.index("| B10 |  | 1 | – | – | – | 1 |")
    assert "| all |  | 2 | 1 | – | 1 | 4 |" in text
    assert "| B2 | second | 4 | 8 | scaled |" in text
    assert "![The suite falls: ours over what was published](recorded/suite-falls.svg)" in text
    assert '"reproduced": [[2.0, 2.1]]' in (made / "docs" / "recorded" / "suite-falls.svg").read_text().replace(
        "&quot;", '"'
    )
    assert run(made, "--check")[0] == 0


def test_a_suite_that_is_not_scaled_has_its_plans_sizes(made: Path, run: Run) -> None:
    about = made / "runs" / "suites" / "falls" / "about.json"
    about.write_text(about.read_text().replace('"1/2"', '"1"'))
    path = page("<!-- runs: suite-about falls -->\n<!-- /runs -->\n", made)
    assert run(made)[0] == 0
    assert "1,234 runs of 2 plans at the sizes of its plans, 3 minutes" in " ".join(path.read_text().split())


RUNS = (
    "plan,run,wa_total,steady,throughput_ops_s,steady_since_s,steady_throughput_ops_s,"
    "write_latency_p99_us,write_latency_p99_9_us,write_latency_max_us,failure,drive_full\n"
    "one,RocksDB,4.5,True,12000.4,40.0,11000,2114,3000,1250000,,False\n"
    "one,ADOC,3,False,20000,,,90,120,900,,False\n"
    "one,Small,,False,,,,,,,no space,True\n"
    "one,Broken,,False,,,,,,,a page,False\n"
    "two,Other,1,True,1,0,1,1,1,1,,False\n"
)


def test_the_runs_of_a_plan_say_which_are_steady(made: Path, run: Run) -> None:
    (made / "runs" / "suites" / "falls" / "runs.csv").write_text(RUNS)
    path = page("<!-- runs: suite-runs falls one -->\n<!-- /runs -->\n", made)
    assert run(made)[0] == 0
    assert [line for line in path.read_text().splitlines() if line.startswith("| ")][1:] == [
        "| RocksDB | 12,000 | 2,114 | 3,000 | 1,250 | 4.50 | from 40 s | 11,000 |",
        "| ADOC | 20,000 | 90 | 120 | 0.9 | 3.00 | no | – |",
        "| Small | – | – | – | – | – | drive full | – |",
        "| Broken | – | – | – | – | – | failed | – |",
    ]
    page("<!-- runs: suite-runs falls three -->\n<!-- /runs -->\n", made)
    code, _, err = run(made)
    assert (code, "runs.csv has no run of the plan 'three'" in err) == (2, True)


LOADS = (
    "plan,run,throughput_ops_s,write_latency_p99_9_us,write_latency_max_us,slowest_second_share,read_latency_p99_9_us,"
    "read_latency_max_us,settled_throughput_ops_s,settled_wa_total\n"
    "one,RocksDB,12000.4,3000,125000,0.25,,,9000,4.5\n"
    "one,Broken,,,,,,,,\n"
    "two,Other,1,1,1,1,1,1,1,1\n"
)


def test_the_runs_of_a_load_have_its_waits_and_its_bill(made: Path, run: Run) -> None:
    (made / "runs" / "suites" / "falls" / "runs.csv").write_text(LOADS)
    path = page("<!-- runs: suite-loads falls one -->\n<!-- /runs -->\n", made)
    assert run(made)[0] == 0
    rows = [line for line in path.read_text().splitlines() if line.startswith("| ")]
    assert "read" not in rows[0], "columns that no run has are left out"
    assert rows[1:] == [
        "| RocksDB | 12,000 | 3,000 | 125 | 0.25 | 9,000 | 4.50 |",
        "| Broken | – | – | – | – | – | – |",
    ]
    page("<!-- runs: suite-loads falls three -->\n<!-- /runs -->\n", made)
    assert run(made)[0] == 2


def mqssd_runs(factor: float = 1.0) -> str:
    """runs.csv with the last step's times of queries and scans, those of a single level ``factor`` times as long."""
    counted = steps()[-1]
    lines = ["plan,run,throughput_ops_s"]
    for plan, times in (("queries", 5 * counted.queries), ("scans", 0.3 * counted.scans)):
        for row, k in enumerate(mqssd.THREADS):
            for column, layout in enumerate(mqssd.LAYOUTS):
                longer = factor if layout == "single level" else 1.0
                lines.append(f'{plan},"k = {k}, {layout}",{float(1e6 / (longer * times[row, column]))!r}')
        lines.append(f'{plan},"k = 1, flash configuration",1.0')
    return "\n".join(lines) + "\n"


def test_predictions_are_held_against_runs_up_to_a_constant(made: Path, run: Run) -> None:
    record = made / "runs" / "suites" / "falls" / "runs.csv"
    path = page("<!-- runs: suite-predictions falls -->\n<!-- /runs -->\n", made)
    for factor, single in ((1.0, "1.00"), (4.0, "0.250")):
        record.write_text(mqssd_runs(factor))
        assert run(made)[0] == 0
        rows = [line for line in path.read_text().splitlines() if line.startswith("| ")]
        assert len(rows) == 1 + len(steps())
        assert rows[-1].endswith(f"| 1.00 | 1.00 | {single} | 1.00 | 1.00 | {single} |")
        assert float(rows[2].split(" | ")[1]) > 2, "the equations as they are printed are off"
    record.write_text("".join(line for line in mqssd_runs().splitlines(keepends=True) if "k = 8, F = 4" not in line))
    code, _, err = run(made)
    assert (code, "runs.csv has no throughput of queries: k = 8, F = 4" in err) == (2, True)


def test_statements_are_the_suites_own(made: Path, run: Run) -> None:
    (made / "plans" / "falls").mkdir(parents=True)
    (made / "plans" / "falls" / "claims.toml").write_text('[statements]\nB2 = "It falls."\n')
    path = page("<!-- runs: suite-verdicts falls -->\n<!-- /runs -->\n", made)
    run(made)
    assert "| B2 | It falls. | 1 | 1 | – | 1 | 3 |" in path.read_text()


def test_a_suites_figures_in_a_sentence(made: Path, run: Run) -> None:
    claims = made / "runs" / "suites" / "falls" / "claims.csv"
    claims.write_text("claim,statement,ours\nB1,a of x,10.5 (simulated)\nB1,a of y,9\nB1,b,falls\nB2,a of x,1\n")
    path = page("x <!-- runs: suite-ours falls B1 'a of' --><!-- /runs -->\n", made)
    assert run(made)[0] == 0
    assert path.read_text() == "x <!-- runs: suite-ours falls B1 'a of' -->9 to 10.5<!-- /runs -->\n"
    for statement in ("b", "c"):
        page(f"x <!-- runs: suite-ours falls B1 {statement} --><!-- /runs -->\n", made)
        code, _, err = run(made)
        assert code == 2
        assert f"runs/suites/falls/claims.csv has no figures of B1, '{statement}'." in err


def test_pictures_that_are_missing_changed_or_shown_by_no_page(made: Path, run: Run) -> None:
    path = page("<!-- runs: suite-picture falls -->\n<!-- /runs -->\n", made)
    run(made)
    picture = made / "docs" / "recorded" / "suite-falls.svg"
    first = picture.read_bytes()
    run(made)
    assert picture.read_bytes() == first
    said = "docs/recorded/suite-falls.svg is not what runs/ makes of it; run make docs.\n"
    picture.unlink()
    assert run(made, "--check")[:2] == (1, said)
    picture.write_bytes(first[:200])
    assert run(made, "--check")[:2] == (1, said)
    picture.write_bytes(first.replace(b">published<", b">guessed<"))
    assert run(made, "--check")[:2] == (1, said)
    picture.write_bytes(first)
    claims = made / "runs" / "suites" / "falls" / "claims.csv"
    claims.write_text(claims.read_text().replace("2,2.1 (", "2,2.2 ("))  # a point, no word
    assert run(made, "--check")[:2] == (1, said)
    path.write_text("No picture.\n")
    assert run(made, "--check")[:2] == (1, "docs/recorded/suite-falls.svg is shown by no page; run make docs.\n")
    assert run(made)[0] == 0
    assert not picture.exists()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "\n<!-- runs: other-client -->\n<!-- /runs -->\n",
            "PAGE.md:2: 'other-client' is no generator; did you mean other-clients?",
        ),
        ("<!-- runs: xyz -->\n<!-- /runs -->\n", "PAGE.md:1: 'xyz' is no generator; there are advise-grid, "),
        (
            "<!-- runs: thread-handoff -->\n<!-- /runs -->\n",
            "PAGE.md:1: runs/bench/thread_handoff.json cannot be read: No such file",
        ),
        ("<!-- runs: suite-about no -->\n<!-- /runs -->\n", "PAGE.md:1: runs/suites/no/about.json cannot be read: No "),
        ("a\n\n<!-- runs: other-clients -->\n", "PAGE.md:3: <!-- runs: other-clients --> has no end; write <!-- /runs"),
        (
            "<!-- runs: records -->\n<!-- runs: records -->\n<!-- /runs -->",
            "PAGE.md:1: <!-- runs: records --> has no end",
        ),
        ("a\n<!-- /runs -->\n", "PAGE.md:2: <!-- /runs --> begins no block; write <!-- runs: NAME --> before it."),
        ("<!-- runs -->\n<!-- /runs -->\n", "PAGE.md:1: <!-- runs --> begins no block"),
        ("<!-- runs: suite-about -->\n<!-- /runs -->\n", "PAGE.md:1: suite-about takes SUITE, not ''."),
        ("<!-- runs: records a b -->\n<!-- /runs -->\n", "PAGE.md:1: records takes nothing, not 'a b'."),
        ("<!-- runs: records ' -->\n<!-- /runs -->\n", "PAGE.md:1: No closing quotation"),
        (
            "x <!-- runs: other-clients -->1<!-- /runs -->\n",
            "PAGE.md:1: <!-- runs: other-clients --> makes 4 lines; put its markers on lines",
        ),
        (
            "x\n <!-- runs: index-bytes -->1<!-- /runs -->\n",
            "PAGE.md:2: <!-- runs: index-bytes --> begins a line; write a word before a figure",
        ),
    ],
)
@pytest.mark.parametrize("check", [(), ("--check",)], ids=["fill", "check"])
def test_a_wrong_mark_is_one_sentence(text: str, said: str, check: tuple[str], made: Path, run: Run) -> None:
    path = page(text, made)
    other = made / "README.md"
    other.write_text("<!-- runs: other-clients -->\n<!-- /runs -->\n")
    code, out, err = run(made, *check)
    assert (code, out) == (2, "")
    assert err.startswith(f"figures: docs/{said}")
    assert err.count("\n") == 1
    assert path.read_text() == text
    assert other.read_text() == "<!-- runs: other-clients -->\n<!-- /runs -->\n", "no page is filled where one is wrong"


@pytest.mark.parametrize(
    ("name", "content", "marker", "said"),
    [
        ("bench/other_clients.json", "{", "other-clients", "runs/bench/other_clients.json is no JSON: "),
        (
            "bench/other_clients.json",
            "[]",
            "other-clients",
            "other-clients does not find in its record what it prints (",
        ),
        (
            "bench/other_clients.json",
            '{"result": {}}',
            "other-clients",
            "other-clients does not find in its record what ",
        ),
        ("bench/other_clients.json", b"\xff", "other-clients", "runs/bench/other_clients.json is no text in UTF-8"),
        (
            "suites/falls/claims.csv",
            "claim\nB1\n",
            "suite-verdicts falls",
            "suite-verdicts does not find in its record ",
        ),
        (
            "suites/falls/claims.csv",
            "claim,verdict\nB1,maybe\n",
            "suite-verdicts falls",
            "runs/suites/falls/claims.csv has the verdict 'maybe'; known: reproduced, differs, calibrated and not meas",
        ),
        (
            "suites/falls/claims.csv",
            "claim,published,ours,verdict\nB1,falls,1,differs\n",
            "suite-picture falls",
            "runs/suites/falls/claims.csv has no figure beside a published one",
        ),
    ],
)
def test_a_wrong_record_is_one_sentence(
    name: str, content: str | bytes, marker: str, said: str, made: Path, run: Run
) -> None:
    (made / "runs" / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    page(f"<!-- runs: {marker} -->\n<!-- /runs -->\n", made)
    code, out, err = run(made)
    assert (code, out) == (2, "")
    assert err.startswith(f"figures: docs/PAGE.md:1: {said}")
    assert err.count("\n") == 1


def test_marks_of_several_kinds_on_one_page() -> None:
    text = "a <!--runs: x 1--><!--/runs--> b\n<!-- runs: y 'two words' -->\nold\n\n<!-- /runs -->\n<!-- other -->\n"
    calls: list[tuple[str, list[str]]] = []

    def make(name: str, arguments: list[str]) -> list[str]:
        calls.append((name, arguments))
        return [name.upper()]

    filled = markers.fill(text, "p", make)
    assert calls == [("x", ["1"]), ("y", ["two words"])]
    assert filled == (
        "a <!--runs: x 1-->X<!--/runs--> b\n<!-- runs: y 'two words' -->\n\nY\n\n<!-- /runs -->\n<!-- other -->\n"
    )
    assert markers.fill(filled, "p", make) == filled


def test_figures_as_they_are_printed() -> None:
    assert table(("a", "b"), [("x", "1.5"), ("y", "–")]) == ["| a | b |", "|---|--:|", "| x | 1.5 |", "| y | – |"]
    assert table(("a", "b"), [("x", "1.5"), ("y", "falls")])[1] == "|---|---|"
    assert len(table(("a", "b"), [])) == 2
    assert [percent(share) for share in (0, 0.5, 0.424, 0.9985, 1)] == ["0", "50", "42.4", "99.9", "100"]
    assert between([2.04, 1.96, 2]) == "2.0"
    assert between([3, 1, 2], "{:.0f}") == "1 to 3"
    assert [milliseconds(us) for us in (3457.67, 9999, 10_000, 1_758_453)] == ["3.5", "10.0", "10", "1,758"]
    assert [listed(list(items)) for items in ("a", "ab", "abc")] == ["a", "a and b", "a, b and c"]
