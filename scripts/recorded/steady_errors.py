"""How often the verdict on steadiness is wrong: the table and the picture of bench/steady_errors.py."""

import textwrap
from typing import Any

import numpy as np

from recorded.markdown import count, listed, table
from recorded.records import Records
from spillway.reproduce.document import Chart, Curve, Panel

DRAWN_FROM = 0.01  # a kind whose rate is below this at every length has no line
LABEL_WIDTH = 26  # letters on a line of the legend
SHOULD = {True: "steady", False: "not steady"}

Rates = dict[tuple[str, bool, float], list[dict[str, Any]]]


def _by_kind(records: Records) -> Rates:
    """The rates of all lengths, by kind, what it should be called, and noise."""
    found: Rates = {}
    for rate in records.result("steady_errors")["rates"]:
        found.setdefault((rate["kind"], rate["steady"], rate["noise"]), []).append(rate)
    return found


def errors(records: Records) -> list[str]:
    """The highest rate at any length, and which kinds are never judged wrongly."""
    rates = _by_kind(records)
    rows, never = [], dict[tuple[str, bool], list[float]]()
    for (kind, steady, noise), lengths in rates.items():
        worst = max(lengths, key=lambda each: each["rate"])
        if worst["wrong"] == 0:
            never.setdefault((kind, steady), []).append(noise)
            continue
        figures = f"{100 * worst['rate']:.1f} ({100 * worst['low']:.1f}–{100 * worst['high']:.1f})"
        last = max((each["samples"] for each in lengths if each["wrong"]), default=0)
        rows.append((kind, SHOULD[steady], f"{100 * noise:g} %", figures, str(worst["samples"]), str(last)))
    header = ("kind", "should be", "noise", "wrong, %", "at samples", "none above")
    said = []
    for steady in (True, False):
        kinds = [
            f"{kind} ({listed([f'{100 * noise:g}' for noise in noises])} % noise)"
            for (kind, is_steady), noises in never.items()
            if is_steady == steady
        ]
        if kinds:
            said += ["", f"Never wrong at any length, of series that should be called {SHOULD[steady]}:"]
            said += [f"- {kind}" for kind in kinds]
    bound = max(each["high"] for lengths in rates.values() for each in lengths if each["wrong"] == 0)
    series = count(records.result("steady_errors")["series"])
    closing = f"*Never* is none of {series} at each length: at most {100 * bound:.1f} % with 95 % confidence."
    return [*table(header, rows), *said, "", closing]


def picture(records: Records) -> Chart:
    """Rates by length, of the kinds that are wrong most often."""
    return Chart(
        "steady-errors",
        "How often the verdict on steadiness is wrong, by length of the series",
        [_panel(records, True, "Level, called not steady"), _panel(records, False, "Moving, called steady")],
    )


def _panel(records: Records, steady: bool, title: str) -> Panel:
    curves = []
    for (kind, is_steady, noise), lengths in _by_kind(records).items():
        if is_steady == steady and max(each["rate"] for each in lengths) >= DRAWN_FROM:
            x = np.array([float(each["samples"]) for each in lengths])
            y = np.array([100 * each["rate"] for each in lengths])
            label = textwrap.fill(f"{kind}; {100 * noise:g} % noise", LABEL_WIDTH, break_on_hyphens=False)
            curves.append(Curve(label, x, y))
    return Panel(title, "samples", "wrong, %", curves, log_x=True)
