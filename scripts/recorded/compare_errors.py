"""How often `spillway compare` is right: the tables of scripts/compare_errors.py."""

from collections.abc import Sequence
from typing import Any

from recorded.markdown import between, percent, table
from recorded.records import Records

NOISE = {"normal": "normal noise", "skewed": "one-sided noise", "spoilt": "noise by single bad runs"}
CLAIMED = 0.95

Row = dict[str, Any]


def errors(records: Records) -> list[str]:
    """The lowest and the highest rate of each question over all kinds, and how many kinds are surely below 95 %."""
    result = records.result("compare_errors")
    equal, covered, one = (result[key] for key in ("equal_by_repetitions", "covered", "one_run_each"))
    stirred = [row for row in equal if row["drift"] and not row["in_turns"]]
    rows = [_row("equal sides: not told apart", "in turns, or no drift", [row for row in equal if row not in stirred])]
    for repetitions in _values(stirred, "repetitions"):
        kinds = [row for row in stirred if row["repetitions"] == repetitions]
        rows.append(_row("equal sides: not told apart", f"apart, drift, {repetitions} repetitions", kinds))
    question = "the interval has the true ratio"
    alike = [row for row in covered if len(set(row["run_to_run"])) == 1]
    rows.append(_row(question, "both sides vary alike", alike))
    for noise in _values(covered, "noise"):
        kinds = [row for row in covered if row not in alike and row["noise"] == noise]
        sizes = " and ".join(f"{100 * size:g} %" for size in kinds[0]["run_to_run"])
        rows.append(_row(question, f"sides vary by {sizes}, {NOISE[noise]}", kinds))
    for row in result["several_arms"]:
        rows.append(_row(f"{row['arms']} equal arms: none differs", f"{row['repetitions']} turns", [row]))
    for size in _values(one, "run_to_run"):
        kinds = [row for row in one if row["run_to_run"] == size]
        rows.append(_row("one run each, equal: not told apart", f"{100 * size:g} % from run to run", kinds))
    return table(("question", "of", "kinds", "right, %", "kinds surely below 95 %"), rows)


def _row(question: str, of: str, kinds: Sequence[Row]) -> tuple[str, ...]:
    name = next(key for key in ("not_told_apart", "covered", "none_differs") if key in kinds[0])
    below = sum(row["high"] < CLAIMED for row in kinds)
    return question, of, str(len(kinds)), between(100 * row[name] for row in kinds), str(below)


def _values(rows: Sequence[Row], key: str) -> list[Any]:
    return list(dict.fromkeys(row[key] for row in rows))


def power(records: Records) -> list[str]:
    """Slowdowns that are found: in turns, and in brackets by repetitions that ran apart."""
    found = records.result("compare_errors")["power"]
    repetitions = _values(found, "repetitions")
    rows = []
    for size in _values(found, "run_to_run"):
        cells = []
        for number in repetitions:
            turns, apart = (
                next(
                    row["found"]
                    for row in found
                    if (row["run_to_run"], row["repetitions"], row["in_turns"]) == (size, number, in_turns)
                )
                for in_turns in (True, False)
            )
            cells.append(f"{percent(turns)} ({percent(apart)})")
        rows.append((f"{100 * size:g} %", *cells))
    slower = " and ".join(f"{100 * share:g} %" for share in _values(found, "slowdown"))
    header = (f"{slower} slower; noise from run to run", f"{repetitions[0]} repetitions", *map(str, repetitions[1:]))
    return table(header, rows)


def rivals(records: Records) -> list[str]:
    """Intervals by other methods: how many have the true ratio."""
    found = records.result("compare_errors")["rivals"]
    repetitions = _values(found, "repetitions")
    rows = [
        (method, *(percent(row["covered"]) for row in found if row["method"] == method))
        for method in _values(found, "method")
    ]
    return table(("method", f"{repetitions[0]} repetitions", *map(str, repetitions[1:])), rows)


def real(records: Records) -> list[str]:
    """What the command says of runs in real time, metric by metric; in bold what it tells apart."""
    runs = records.result("compare_errors")["recorded"]
    pairs = [run["pairs"][0]["metrics"] for run in runs]
    rows = [(f"`{name}`", *(_ratio(metrics[name]) for metrics in pairs)) for name in pairs[0]]
    return table(("metric", *(f"`plans/{run['plan']}.toml`" for run in runs)), rows)


def _ratio(metric: Row) -> str:
    if "ratio" in metric:
        cell = f"{metric['ratio']:.3f} ({metric['low']:.3f}–{metric['high']:.3f})"
    else:
        difference, low, high = (f"{100 * metric[key]:+.1f}" for key in ("difference", "low", "high"))
        cell = f"{difference} points ({low} to {high})"
    return cell if metric["verdict"] == "not told apart" else f"**{cell}**"
