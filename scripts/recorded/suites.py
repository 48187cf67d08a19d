"""What the recorded suites say: how they were run, their verdicts, and ours beside what was published."""

import re
import textwrap
from collections import Counter
from collections.abc import Callable

import numpy as np

from recorded.markdown import count, listed, milliseconds, table
from recorded.records import Records
from spillway.errors import SpillwayError
from spillway.reproduce.document import Chart, Curve, Panel

VERDICTS = ("reproduced", "differs", "calibrated", "not measured")
DRAWN = ("differs", "reproduced", "calibrated")  # the last is drawn on top
FIGURE = re.compile(r"([\d.]+)(?: \(simulated\))?")


def about(records: Records, suite: str) -> list[str]:
    """The command, the scale, the commit and what it took."""
    found = records.about(suite)
    own = [f"{plan} {factor}" for plan, factor in found["own_factors"].items()]
    sizes = "the sizes of its plans" if found["factor"] == "1" else f"{found['factor']} of the original's sizes"
    scale = f"at {sizes}" + (f" ({', '.join(own)})" if own else "")
    seconds, machine = sum(found["seconds"].values()), found["machine"]
    missing = [f"{plan} ({state})" for plan, state in (found.get("unfinished") or {}).items()]
    lacks = f" Not whole: {', '.join(missing)}." if missing else ""
    return textwrap.wrap(
        f"`{found['command']}`, commit `{found['commit']}`, {found['started'][:10]}: {count(found['runs'])} runs of "
        f"{len(found['seconds'])} plans {scale}, {seconds / 60:.0f} minutes on {machine['cores']} cores "
        f"({machine['processor']}).{lacks}",
        120,
        break_long_words=False,
        break_on_hyphens=False,
    )


def verdicts(records: Records, suite: str) -> list[str]:
    """How many figures and relations of each claim have each verdict."""
    statements = records.statements(suite)
    by_claim: dict[str, list[str]] = {}
    for row in records.claims(suite):
        by_claim.setdefault(row["claim"], []).append(_verdict(suite, row["verdict"]))
    rows = [
        (claim, statements.get(claim, ""), *_counts(found), str(len(found)))
        for claim, found in sorted(by_claim.items(), key=lambda each: _by_number(each[0]))
    ]
    all_of_them = [verdict for found in by_claim.values() for verdict in found]
    rows.append(("all", "", *_counts(all_of_them), str(len(all_of_them))))
    return table(("claim", "what was published", *VERDICTS, "of"), rows)


def _verdict(suite: str, verdict: str) -> str:
    if verdict not in VERDICTS:
        raise SpillwayError(f"runs/suites/{suite}/claims.csv has the verdict '{verdict}'; known: {listed(VERDICTS)}.")
    return verdict


def _counts(found: list[str]) -> list[str]:
    counts = Counter(found)
    return [str(counts[verdict] or "–") for verdict in VERDICTS]


def _by_number(claim: str) -> tuple[str, int]:
    """C8 before C17."""
    letters, digits = re.fullmatch(r"(\D*)(\d*).*", claim, flags=re.DOTALL).groups()  # type: ignore[union-attr]
    return letters, int(digits or 0)


def differing(records: Records, suite: str) -> list[str]:
    """Every figure and relation that differs from what was published."""
    rows = [
        (row["claim"], row["statement"], row["published"], row["ours"], row["basis"])
        for row in records.claims(suite)
        if row["verdict"] == "differs"
    ]
    return table(("claim", "figure", "published", "ours", "basis"), rows) if rows else ["None differs."]


def runs(records: Records, suite: str, plan: str) -> list[str]:
    """The runs of one plan: throughput and latency as measured, the steady part where there is one."""
    rows = [_run(row) for row in records.runs(suite) if row["plan"] == plan]
    if not rows:
        raise SpillwayError(f"runs/suites/{suite}/runs.csv has no run of the plan '{plan}'.")
    latencies = ("p99 write, µs", "p99.9 write, µs", "worst write, ms")
    return table(("run", "operations/s", *latencies, "`wa_total`", "steady", "operations/s, steady part"), rows)


def _run(row: dict[str, str]) -> tuple[str, ...]:
    def cell(name: str, form: Callable[[float], str]) -> str:
        return form(float(row[name])) if row[name] else "–"

    since = cell("steady_since_s", "{:.0f}".format)
    at_limit = "drive full" if row["drive_full"] == "True" else "failed" if row["failure"] else "no"
    return (
        row["run"],
        cell("throughput_ops_s", count),
        *(cell(f"write_latency_{name}_us", count) for name in ("p99", "p99_9")),
        cell("write_latency_max_us", milliseconds),
        cell("wa_total", "{:.2f}".format),
        f"from {since} s" if row["steady"] == "True" else at_limit,
        cell("steady_throughput_ops_s", count),
    )


def loads(records: Records, suite: str, plan: str) -> list[str]:
    """The runs of one plan with what writers and readers waited for, and the bill to the end."""
    rows = [row for row in records.runs(suite) if row["plan"] == plan]
    if not rows:
        raise SpillwayError(f"runs/suites/{suite}/runs.csv has no run of the plan '{plan}'.")
    columns: dict[str, tuple[str, Callable[[float], str]]] = {
        "operations/s": ("throughput_ops_s", count),
        "p99.9 write, µs": ("write_latency_p99_9_us", count),
        "worst write, ms": ("write_latency_max_us", milliseconds),
        "slowest second over the median one": ("slowest_second_share", "{:.2f}".format),
        "p99.9 read, µs": ("read_latency_p99_9_us", count),
        "worst read, ms": ("read_latency_max_us", milliseconds),
        "to the end: operations/s": ("settled_throughput_ops_s", count),
        "`wa_total`": ("settled_wa_total", "{:.2f}".format),
    }
    kept = {title: column for title, column in columns.items() if any(row.get(column[0]) for row in rows)}
    cells = [(row["run"], *(form(float(row[key])) if row[key] else "–" for key, form in kept.values())) for row in rows]
    return table(("run", *kept), cells)


def ours(records: Records, suite: str, claim: str, statement: str) -> list[str]:
    """Our figures of a claim whose statements begin so: the lowest and the highest, for a sentence."""
    rows = [row for row in records.claims(suite) if row["claim"] == claim and row["statement"].startswith(statement)]
    found = [figure[1] for row in rows if (figure := FIGURE.fullmatch(row["ours"]))]
    if not found or len(found) < len(rows):
        raise SpillwayError(f"runs/suites/{suite}/claims.csv has no figures of {claim}, '{statement}'.")
    low, high = min(found, key=float), max(found, key=float)
    return [low if low == high else f"{low} to {high}"]


def picture(records: Records, suite: str) -> Chart:
    """Ours over what was published, for all that are lone figures."""
    points: dict[str, list[tuple[float, float]]] = {verdict: [] for verdict in DRAWN}
    for row in records.claims(suite):
        published, ours = (FIGURE.fullmatch(row[key]) for key in ("published", "ours"))
        if published and ours and _verdict(suite, row["verdict"]) in points:
            points[row["verdict"]].append((float(published[1]), float(ours[1])))
    found = np.array([each for some in points.values() for each in some if min(each) > 0])
    if not found.size:
        raise SpillwayError(f"runs/suites/{suite}/claims.csv has no figure beside a published one, so nothing to draw.")
    ends = np.array([found.min(), found.max()])
    curves = [Curve("equal", ends, ends)]
    for verdict, some in points.items():
        x, y = np.array([each for each in some if min(each) > 0]).reshape(-1, 2).T
        if x.size:
            curves.append(Curve(verdict, x, y, marks=True))
    panel = Panel(f"{len(found)} figures", "published", "ours", curves, log_x=True, log_y=True)
    return Chart(f"suite-{suite}", f"The suite {suite}: ours over what was published", [panel])
