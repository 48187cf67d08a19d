"""`spillway fill`."""

import json
from datetime import datetime
from pathlib import Path
from typing import Any

import click

from spillway.cli.printing import command_line, err, figures, number, out
from spillway.cli.progress import progress_bars
from spillway.errors import SpillwayError
from spillway.quantity import human_bytes

Document = dict[str, Any]


@click.command("fill")
@click.argument("plan", type=click.Path(path_type=Path))
@click.option("--out", "directory", type=click.Path(path_type=Path), help="[default: runs/fill-PLAN-TIME]")
@click.option("--within", default="0.01", show_default=True, metavar="SHARE", help="How near the two ends come.")
@click.option("--paced", is_flag=True, help="With the plan's own pacing, not in virtual time.")
@click.option(
    "--set", "settings", multiple=True, metavar="KEY=VALUE", help="Override a key of the plan; may be repeated."
)
@click.option("--arm", "arms", multiple=True, metavar="NAME", help="Search for this arm; may be repeated.")
@click.option("--json", "as_json", is_flag=True, help="Print fill.json and nothing else.")
def fill_command(
    plan: Path,
    directory: Path | None,
    within: str,
    paced: bool,
    settings: tuple[str, ...],
    arms: tuple[str, ...],
    as_json: bool,
) -> None:
    """Find the largest data set that each arm of PLAN can keep on its emulated drive.

    The plan is run with one load.num after another, in virtual time, until the largest data set that goes through all
    of its phases and the smallest that fills the drive lie close together. Every trial is a run directory.
    """
    from spillway.run.fill import Trial, fill

    place = directory or Path("runs") / f"fill-{plan.stem}-{datetime.now():%Y%m%d-%H%M%S}"

    def on_trial(arm: str, trial: Trial) -> None:
        err.print(f"{arm}: {trial.num:,} keys {'fit' if trial.fits else 'fill the drive'}", soft_wrap=True)

    with progress_bars() as watch:
        found = fill(plan, place, command_line(), settings, arms, _share(within), watch, on_trial, paced=paced)
    if as_json:
        print(json.dumps(found, indent=2, ensure_ascii=False))
        return
    shares = ("largest", "keys", "of the capacity", "space amplification, peak")
    header = ("arm", *shares, "does not fit (keys)", "trials", "steady")
    out.print(figures(header, [_row(name, each) for name, each in found["arms"].items()]))
    for name, each in found["arms"].items():
        if words := _conditions_in_words(each):
            out.print(f"{name}: {words}", soft_wrap=True)
    out.print(f"\nTrials  {place}", soft_wrap=True)


def _share(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise SpillwayError(f"--within is {text!r}; it takes a share above 0 and below 1, such as 0.01.") from None


def _row(name: str, found: Document) -> tuple[str, ...]:
    live = found["live_user_bytes"]
    return (
        name,
        _none_in_words(found) if found["num"] is None else "–" if live is None else human_bytes(live),
        number(found["num"], ",d"),
        number(found["data_set_share"], ".3f"),
        number(found["space_amplification_peak"], ".2f"),
        number(found["smallest_refused_num"], ",d"),
        str(len(found["trials"])),
        "–" if found["steady"] is None else "yes" if found["steady"] else "no",
    )


def _none_in_words(found: Document) -> str:
    return "none fits" if found["smallest_refused_num"] == 1 else "none tried"


def _conditions_in_words(found: Document) -> str:
    """What the figures of an arm rest on, and what was not tried."""
    over, parts = found["smallest_refused_num"], []
    if found["standing"] is not None:
        parts.append(found["standing"])
    if over is None:
        parts.append(
            "No trial filled the drive, so a larger data set may fit; no plan may have more than "
            f"{found['most_num']:,} keys here."
        )
    elif found["num"] is None and over > 1:
        parts.append(f"Fewer keys than {over:,} were not tried; a lower --within tries them.")
    return " ".join(parts)
