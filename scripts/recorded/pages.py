"""The pages with marked blocks: all generators by name, filling the pages, saying which are stale.

Pages are the Markdown files beside README.md and below docs/; pictures go to docs/recorded/.
"""

import inspect
import json
import os
import re
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree

from recorded import benchmarks, compare_errors, compat, concurrency, markers, mqssd, steady_errors, suites
from recorded.markdown import table
from recorded.records import Records
from spillway.errors import SpillwayError
from spillway.reproduce.document import Chart
from spillway.reproduce.drawing import draw

PICTURES = Path("docs") / "recorded"
MEND = "run make docs"
LONG_FRACTION = re.compile(r"(?<![\w.])\d+\.\d{4,}(?![\w.])")


def listing(records: Records) -> list[str]:
    """Every recorded benchmark, version of RocksDB and suite: the command, the commit, and when."""
    rows = []
    for name in records.benches():
        found = records.bench(name)
        commit = found.get("commit") or ", ".join(f"{side} {each}" for side, each in found["commits"].items())
        rows.append((f"`bench/{name}.json`", f"`{found['command']}`", commit, found.get("date", "–")[:10]))
    for version in records.rocksdbs():
        found = records.compat(version)
        rows.append((f"`compat/{version}.json`", f"`{found['command']}`", found["commit"], found["date"][:10]))
    if (found_it := records.about_concurrency()) is not None:
        rows.append(("`concurrency/`", f"`{found_it['command']}`", found_it["commit"], found_it["date"][:10]))
    for name in records.suites():
        found = records.about(name)
        rows.append((f"`suites/{name}/`", f"`{found['command']}`", found["commit"], found["ended"][:10]))
    return table(("record", "command", "commit", "date"), rows)


BLOCKS: dict[str, Callable[..., list[str]]] = {
    "records": listing,
    "steady-errors": steady_errors.errors,
    "compare-errors": compare_errors.errors,
    "compare-power": compare_errors.power,
    "compare-rivals": compare_errors.rivals,
    "compare-real": compare_errors.real,
    "other-clients": benchmarks.other_clients,
    "probe-against-fio": benchmarks.probe_against_fio,
    "thread-handoff": benchmarks.thread_handoff,
    "runner-overhead": benchmarks.runner_overhead,
    "paced-reads": benchmarks.paced_reads,
    "ssd-speed": benchmarks.ssd_speed,
    "spill-overheads": benchmarks.spill_overheads,
    "native-before-after": benchmarks.native_before_after,
    "index-bytes": benchmarks.index_bytes,
    "index-keys": benchmarks.index_keys,
    "advise-grid": benchmarks.advise_grid,
    "kvaccel": benchmarks.kvaccel,
    "kvaccel-before-after": benchmarks.before_after,
    "concurrency-speed-ups": concurrency.speed_ups,
    "concurrency-asymmetry": concurrency.asymmetry,
    "concurrency-write-back": concurrency.write_back,
    "compat": compat.versions,
    "compat-ingestion": compat.ingestion,
    "suite-about": suites.about,
    "suite-verdicts": suites.verdicts,
    "suite-differing": suites.differing,
    "suite-ours": suites.ours,
    "suite-runs": suites.runs,
    "suite-loads": suites.loads,
    "suite-predictions": mqssd.predictions,
}
CHARTS: dict[str, Callable[..., Chart]] = {
    "steady-errors-picture": steady_errors.picture,
    "suite-picture": suites.picture,
}


@dataclass(frozen=True)
class Filled:
    """What the pages and pictures have to be, by their paths below the root."""

    texts: dict[Path, str]
    charts: dict[Path, Chart]


def fill(root: Path) -> Filled:
    """Reads all pages and records below ``root``. Raises SpillwayError for a marker or a record that is wrong."""
    records, filled = Records(root), Filled({}, {})
    for page in sorted([*root.glob("*.md"), *root.glob("docs/**/*.md")]):
        name = page.relative_to(root)

        def make(generator: str, arguments: list[str], name: Path = name) -> list[str]:
            made = _made(records, generator, arguments)
            if not isinstance(made, Chart):
                return made
            place = PICTURES / f"{made.name}.svg"
            filled.charts[place] = made
            return [f"![{made.caption}]({os.path.relpath(place, name.parent)})"]

        text = page.read_text(encoding="utf-8")
        if markers.MARKER.search(text):
            filled.texts[name] = markers.fill(text, str(name), make)
    return filled


def _made(records: Records, name: str, arguments: list[str]) -> list[str] | Chart:
    generators = BLOCKS | CHARTS
    if name not in generators:
        raise SpillwayError(f"'{name}' is no generator; {markers.nearest(name, list(generators))}")
    takes = list(inspect.signature(generators[name]).parameters)[1:]
    if len(arguments) != len(takes):
        takes_words = " ".join(each.upper() for each in takes) or "nothing"
        raise SpillwayError(f"{name} takes {takes_words}, not '{' '.join(arguments)}'.")
    try:
        made: list[str] | Chart = generators[name](records, *arguments)
    except (LookupError, TypeError, ValueError, AttributeError, StopIteration) as error:
        said = f"{type(error).__name__}: {error}"
        raise SpillwayError(f"{name} does not find in its record what it prints ({said}).") from error
    return made


def write(root: Path) -> list[Path]:
    """Fills the pages and draws the pictures; returns their paths. Pictures that no page shows are removed."""
    filled = fill(root)
    for name, text in filled.texts.items():
        (root / name).write_text(text, encoding="utf-8")
    if filled.charts:
        (root / PICTURES).mkdir(parents=True, exist_ok=True)
    for name, chart in filled.charts.items():
        draw_rounded(chart, root / name)
    for name in _unshown(root, filled):
        (root / name).unlink()
    return [*filled.texts, *filled.charts]


def stale(root: Path) -> list[str]:
    """A sentence for every page and picture that is not what the records make of it."""
    filled = fill(root)
    found = stale_texts(root, filled)
    with tempfile.TemporaryDirectory() as scratch:
        for name, chart in filled.charts.items():
            again = Path(scratch) / name.name
            draw_rounded(chart, again)
            if not (root / name).is_file() or words(root / name) != words(again):
                found.append(f"{name} is not what runs/ makes of it; {MEND}.")
    return found + [f"{name} is shown by no page; {MEND}." for name in _unshown(root, filled)]


def stale_texts(root: Path, filled: Filled) -> list[str]:
    """A sentence for every page that is not as it is ``filled``, whatever its pictures show."""
    found = []
    for name, text in filled.texts.items():
        for number, (is_there, made) in enumerate(_lines(root / name, text), 1):
            if is_there != made:
                found.append(f"{name}:{number} is not what runs/ makes of it; {MEND}.")
                break
    return found


def _lines(page: Path, text: str) -> list[tuple[str | None, str | None]]:
    """The page's lines beside those that it has to have."""
    there, made = page.read_text(encoding="utf-8").splitlines(), text.splitlines()
    longest = max(len(there), len(made))
    return [tuple(some[place] if place < len(some) else None for some in (there, made)) for place in range(longest)]  # type: ignore[misc]


def _unshown(root: Path, filled: Filled) -> list[Path]:
    there = [path.relative_to(root) for path in sorted((root / PICTURES).glob("*.svg"))]
    return [name for name in there if name not in filled.charts]


def draw_rounded(chart: Chart, path: Path) -> None:
    """Draws the chart with its points in the metadata. Machines differ in the sixth decimal of a stroke: it goes."""
    draw(chart, path, points(chart))
    text = path.read_text(encoding="utf-8")
    path.write_text(LONG_FRACTION.sub(lambda found: f"{float(found[0]):.3f}", text), encoding="utf-8")


def points(chart: Chart) -> str:
    """All points of a chart, for the picture's metadata: its strokes differ between Matplotlib's versions."""
    panels = [
        {curve.label: [[float(f"{v:.4g}") for v in pair] for pair in zip(curve.x, curve.y, strict=True)]}
        for panel in chart.panels
        for curve in panel.curves
    ]
    return json.dumps(panels)


def words(picture: Path) -> list[str]:
    """What a picture says and of what points it is; of a damaged one nothing."""
    try:
        tree = ElementTree.parse(picture)
    except ElementTree.ParseError:
        return []
    said = ("}text", "}description", "svg}title")
    return [each.text or "" for each in tree.iter() if each.tag.endswith(said)]
