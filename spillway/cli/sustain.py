"""`spillway sustain`: the highest write rate that an engine keeps on a drive."""

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from spillway.cli.printing import command_line, err, figures, number, out
from spillway.cli.progress import progress_bars
from spillway.errors import RunFailed, SpillwayError
from spillway.quantity import parse_rate, parse_share, parse_time
from spillway.suite.document import load_scaled

if TYPE_CHECKING:
    from spillway.sustain import ArmResult, Limits, Try

Document = dict[str, Any]


@click.command("sustain")
@click.argument("plan", type=click.Path(path_type=Path))
@click.option("--arm", "arms", multiple=True, metavar="NAME", help="Search this arm of the plan; may be repeated.")
@click.option("--p99", metavar="TIME", help="Most that the p99 of writes may be, such as 10ms  [default: no limit]")
@click.option("--worst", metavar="TIME", help="Most that any write may take, such as 1s  [default: no limit]")
@click.option("--from", "lowest", metavar="RATE", default="1000", show_default=True, help="Operations/s to begin at.")
@click.option(
    "--to", "highest", metavar="RATE", default="1000000", show_default=True, help="Operations/s to end at, if kept."
)
@click.option("--within", metavar="SHARE", default="5%", show_default=True, help="How near the two rates are to come.")
@click.option(
    "--set", "settings", multiple=True, metavar="KEY=VALUE", help="Override a key of the plan; may be repeated."
)
@click.option("--out", "directory", type=click.Path(path_type=Path), help="Directory  [default: runs/sustain-PLAN]")
@click.option("--json", "as_json", is_flag=True, help="Print sustain.json and nothing else.")
def sustain_command(
    plan: Path,
    arms: tuple[str, ...],
    p99: str | None,
    worst: str | None,
    lowest: str,
    highest: str,
    within: str,
    settings: tuple[str, ...],
    directory: Path | None,
    as_json: bool,
) -> int:
    """Find the highest write rate that each arm of PLAN keeps on its drive.

    The measured phases that write are run as an open loop at one rate after another: doubled from --from on until one
    is not kept, then by bisection until the highest kept rate and the lowest that was not are within --within. A rate
    is kept when operations are done as they are due, no backlog grows or is left, and p99 and worst write are within
    their limits. Of several repetitions each has to keep it.

    A try of a phase that goes on until = "steady" is judged by its steady part; one that came to its limit first is not
    kept, and the search goes on above it where nothing else speaks against its rate.

    Each try leaves a run directory. The same command goes on where it was ended, and other limits are held against the
    tries that are there.
    """
    from spillway.sustain import Limits, SearchSettings, document, sustain
    from spillway.sustain.search import LEAST_WITHIN

    limits = Limits(_time(p99, "--p99"), _time(worst, "--worst"))
    low, high = parse_rate(lowest, "--from"), parse_rate(highest, "--to")
    if low > high:
        raise SpillwayError(f"--from {lowest} is above --to {highest}: give the lower rate with --from.")
    near = parse_share(within, "--within")
    if near < LEAST_WITHIN:
        raise SpillwayError(f"--within is {within!r}; it takes a share of at least {100 * LEAST_WITHIN:g} %.")
    checked = load_scaled(plan, settings, arms)
    place = directory or Path("runs") / f"sustain-{checked.name}"
    search = SearchSettings(checked, limits, low, high, near)
    with progress_bars() as watch:
        found = sustain(search, place, command_line(), watch, _print_try)
    if as_json:
        print(json.dumps(document(search, command_line(), found), indent=2, ensure_ascii=False))
    else:
        for of in found:
            _print_arm(of, limits)
        out.print(f"\nDirectory  {place}", soft_wrap=True)
    nothing = [of for of in found if of.kept is None]
    for of in nothing:
        print(f"spillway: {of.name}: {_nothing(of, lowest)}", file=sys.stderr)
    return RunFailed.exit_code if nothing else 0


def _nothing(of: "ArmResult", lowest: str) -> str:
    """Why an arm has no answer."""
    if of.undecided is not None:
        return f"no rate was kept by a steady run: {_undecided_words(of.undecided)}."
    why = of.not_kept.why if of.not_kept is not None else ""
    return f"not even --from {lowest} operations/s was kept: {why}."


def _undecided_words(one: "Try") -> str:
    return f"nothing speaks against {one.rate:,.6g} operations/s, but {one.why}; raise duration_s"


def _time(text: str | None, option: str) -> float | None:
    return None if text is None else parse_time(text, option)


def _print_try(arm: str, one: "Try") -> None:
    words = "kept" if one.kept else f"{'not kept' if one.reasons else 'not told'}: {one.why}"
    before = " (tried before)" if one.reused else ""
    err.print(f"{arm}: {one.rate:,.6g}/s {words}{before}", soft_wrap=True)


def _print_arm(of: "ArmResult", limits: "Limits") -> None:
    from spillway.sustain.verdict import time_words

    def time(seconds: float | None) -> str:
        return "–" if seconds is None else time_words(seconds)

    rows = []
    for one in sorted(of.tries, key=lambda each: each.rate):
        seen, verdict = one.judged, _verdict(one)
        cells = ("–",) * 4
        if seen is not None:
            achieved, backlog = number(seen.achieved_ops_s, ",.0f"), number(seen.backlog, ",.0f")
            cells = (achieved, time(seen.p99_s), time(seen.worst_s), backlog)
        rows.append((f"{one.rate:,.6g}", *cells, "yes" if one.steady else "no", verdict))
    titles = ("rate (operations/s)", "achieved", "p99", "worst", "backlog", "steady", "verdict")
    table = figures(titles, rows)
    table.columns[-1].justify, table.columns[-1].no_wrap = "left", False
    out.print()
    out.print(of.name, style="bold")
    out.print(table, soft_wrap=True)
    out.print(_answer(of, limits), soft_wrap=True)


def _verdict(one: "Try") -> str:
    return "kept" if one.kept else one.reasons[0] if one.reasons else f"not told: {one.undecided}"


def _answer(of: "ArmResult", limits: "Limits") -> str:
    from spillway.sustain.verdict import time_words

    asked = [("p99", limits.p99_s), ("worst write", limits.worst_s)]
    bounds = [f"{name} up to {time_words(limit)}" for name, limit in asked if limit is not None]
    under = f" with {' and '.join(bounds)}" if bounds else ", without a limit on latency"
    if of.kept is None and of.undecided is None:
        return f"Keeps none of the rates{under}."
    lines = []
    if of.kept is not None:
        lines.append(f"Keeps {of.kept.rate:,.6g} operations/s{_on_average(of.kept)}{under}.")
    if of.undecided is not None:
        lines.append(f"Not told: {_undecided_words(of.undecided)}.")
    if of.not_kept is None and of.undecided is None:
        lines.append("It is the highest rate that was asked for; more may be kept: raise --to.")
    elif of.not_kept is not None:
        lines.append(f"{of.not_kept.rate:,.6g} operations/s is not kept: {of.not_kept.why}.")
    if of.kept is not None:
        lines.append(f"Standing of the kept rate: {of.kept.standing}")
    return "\n".join(lines)


def _on_average(one: "Try") -> str:
    """Of bursts, whose rate is not what is offered over the whole run."""
    offered = one.judged.offered_ops_s if one.judged is not None else one.rate
    return "" if abs(offered / one.rate - 1) < 0.01 else f" in bursts, {offered:,.6g} on average"
