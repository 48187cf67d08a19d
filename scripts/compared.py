"""Writes docs/COMPARED.md: all models on every NAND preset. Run it with `make compared`; it takes some minutes.

scripts/compared.py [--profiles DIR]       keeps the profiles in DIR, and takes those that are there already
"""

import argparse
import tempfile
import textwrap
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from spillway.fit import curves as fit
from spillway.models.arrays import PAGE_BYTES
from spillway.models.mqssd import page_cost_us
from spillway.profile import Profile, compare, mixes, parse_target, profile_target, read_profile
from spillway.ssd.preset import presets

PAGE = Path(__file__).resolve().parents[1] / "docs" / "COMPARED.md"
NOT_NAND = {
    "aws-60k": "virtual",
    "hdd": "a disk",
    "intel-p4800x": "Optane",
    "toshiba-dt01aca100": "a disk",
}
SEED = 1
MOST_ERROR = 0.10  # of MQSSD, in the median
MOST_MIXED_ERROR = 0.15
TAIL = 0.9

# Why the model that is ours is ahead of MQSSD, shown where it is.
AHEAD = {
    "intel-p4510": "From two threads on, the set-up of the next access overlaps with the transfer of the last one, "
    "so a page costs the larger of the two: some 3.6 µs of writing up to r = 10 %, and more only "
    "beyond. A line page + p × set-up adds what overlaps here, and misses the flat part by some 5 % "
    "and the bend by 15 %. A PDAM without r is right on the flat part, which has most of the "
    "points; hence its median. At r = 100 %, and with one thread, it is far off, as its tail shows. "
    "Neither the rational form nor noise is the cause: the lines alone, without eqs 5 and 6, err by "
    "{lines} % in the median.",
}


@dataclass(frozen=True)
class Compared:
    """What the page says of one preset."""

    name: str
    medians: dict[str, dict[str, float]]
    tails: dict[str, dict[str, float]]
    weighted: float  # MQSSD's median error, the lines weighted by 1 / cost^2
    lines: float  # that of the lines alone, one for each k, without functions of k
    mixes: "Mixes"

    @property
    def holds(self) -> bool:
        """Whether MQSSD is nearer than each of the papers' models, and within its bound."""
        ours = self.medians["MQSSD"]["all"]
        return ours <= MOST_ERROR and all(ours < self.medians[m]["all"] for m in compare.MODELS if m != "MQSSD")


@dataclass(frozen=True)
class Mixes:
    """Median errors over the mixes of one preset; by fill from the emptiest, the model's and plain MQSSD's."""

    hold_us: float
    valid_share: float
    model: float
    plain: float
    without_interference: float
    without_collection: float
    by_fill: list[tuple[float, float]]
    pure_writes: float


def compared(profile: Profile) -> Compared:
    """Everything about one profile that was measured with its mixes."""
    comparisons = compare.compare(profile)
    models = (*compare.MODELS, compare.STRONGER)
    return Compared(
        profile.name,
        compare.medians(comparisons, models),
        compare.quantiles(comparisons, TAIL, models),
        _weighted(comparisons),
        _lines_alone(comparisons),
        _mixes(profile),
    )


def _weighted(comparisons: Sequence[compare.Comparison]) -> float:
    errors = []
    for c in comparisons:
        cost = PAGE_BYTES / c.measured_mb_s
        setup, page = compare.cost_functions(c.op, c.k, c.r_percent, cost, relative=True)
        errors.append(np.abs(cost / page_cost_us(c.r_percent, setup(c.k), page(c.k)) - 1))
    return float(np.median(np.concatenate(errors)))


def _lines_alone(comparisons: Sequence[compare.Comparison]) -> float:
    errors = []
    for c in comparisons:
        cost = PAGE_BYTES / c.measured_mb_s
        lines = fit.fit_lines(c.k, c.r_percent, cost)
        page, setup = (np.array([getattr(lines[int(k)], name).value for k in c.k]) for name in ("page_us", "setup_us"))
        errors.append(np.abs(cost / (page + c.r_percent / 100 * setup) - 1))
    return float(np.median(np.concatenate(errors)))


def _mixes(profile: Profile) -> Mixes:
    known = mixes.known_of(profile)
    made = mixes.predictions(known)
    return Mixes(
        made.hold_us,
        known.collection.valid_share,
        float(np.median(made.errors)),
        float(np.median(made.plain_errors)),
        float(np.median(mixes.predictions(known, interference=False).errors)),
        float(np.median(mixes.predictions(known, collection=False).errors)),
        [
            (float(np.median(made.errors[made.fill == fill])), float(np.median(made.plain_errors[made.fill == fill])))
            for fill in np.unique(made.fill)
        ],
        float(np.max(mixes.write_fill_errors(profile))),
    )


# ---------------------------------------------------------------------------------------------------------------------
# The page


def page(drives: Sequence[Compared]) -> str:
    """docs/COMPARED.md."""
    left_out = ", ".join(f"`{name}` ({why})" for name, why in sorted(NOT_NAND.items()))
    opening = f"""# The models on every preset

`make compared` writes this page. It runs `spillway profile preset:NAME --mixed --out DIR` for every preset with NAND
flash (seed {SEED}, virtual time), then `spillway model compare DIR`. Left out: {left_out}.
[METHODOLOGY.md](METHODOLOGY.md) says how the models are calibrated.

"""
    return opening + "\n".join([*_five(drives), *_stronger(drives), *_mixed(drives)]) + "\n"


def _lines(paragraph: str) -> list[str]:
    return textwrap.wrap(paragraph, 120, break_long_words=False, break_on_hyphens=False)


def _percent(value: float) -> str:
    return f"{100 * value:.1f}"


def _table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    return [
        "| " + " | ".join(header) + " |",
        "|---|" + "--:|" * (len(header) - 1),
        *("| " + " | ".join(row) + " |" for row in rows),
        "",
    ]


def _five(drives: Sequence[Compared]) -> list[str]:
    header = ("preset", *compare.MODELS, f"{compare.STRONGER} (ours)")
    models = (*compare.MODELS, compare.STRONGER)
    rows = [(d.name, *(_percent(d.medians[m]["all"]) for m in models)) for d in drives]
    fail = [d.name for d in drives if not d.holds]
    most = max(d.medians["MQSSD"]["all"] for d in drives)
    verdict = (
        f"On {len(drives) - len(fail)} of {len(drives)} presets MQSSD's median error is below that of each of the "
        f"papers' other models and at most {100 * MOST_ERROR:g} %; the largest is {_percent(most)} %."
        + (f" It is not on {', '.join(fail)}." if fail else "")
    )
    return [
        "## Reads and writes by themselves",
        "",
        *_lines(
            "Median of |predicted / measured - 1| of throughput in %, over k = 1 to 128 threads and r = 0.1 to 100 %, "
            "reads and writes (M22, Figs 2 and 4 of MQSSD). PIO's k are those of 4 KiB random accesses; longer ones "
            "saturate a drive with fewer in flight, hence its errors above 100 %."
        ),
        "",
        *_table(header, rows),
        *_lines(verdict),
        "",
    ]


def _stronger(drives: Sequence[Compared]) -> list[str]:
    header = (
        "preset",
        "MQSSD, writes",
        "reads",
        f"{100 * TAIL:g} % within",
        f"{compare.STRONGER}, writes",
        "reads",
        f"{100 * TAIL:g} % within",
        "MQSSD, weighted lines",
    )
    rows = []
    for d in drives:
        cells = []
        for model in ("MQSSD", compare.STRONGER):
            cells += [d.medians[model]["write"], d.medians[model]["read"], d.tails[model]["all"]]
        rows.append((d.name, *map(_percent, cells), _percent(d.weighted)))
    ahead = [d for d in drives if d.medians[compare.STRONGER]["all"] < d.medians["MQSSD"]["all"]]
    better = sum(d.weighted < d.medians["MQSSD"]["all"] for d in drives)
    lines = [
        "### A stronger rival",
        "",
        *_lines(
            f"*{compare.STRONGER}* is ours, in none of the papers: PDAM (M2) has one P for a drive. Here reads and "
            "writes each have the P with the least median error, chosen over the very points it is then held against. "
            "Errors in %."
        ),
        "",
        *_table(header, rows),
    ]
    for d in ahead:
        why = AHEAD.get(d.name, "").format(lines=_percent(d.lines))
        lines += [*_lines(f"It is ahead of MQSSD on `{d.name}`. {why}"), ""]
    if not ahead:
        lines += ["It is ahead of MQSSD on none.", ""]
    return [
        *lines,
        *_lines(
            "The lines under MQSSD's costs are unweighted, as in the paper (M24). Weighted by 1 / cost², so that every "
            f"point counts by its relative error, the median falls on {better} and rises on {len(drives) - better} of "
            "the presets; they stay as they are."
        ),
        "",
    ]


def _mixed(drives: Sequence[Compared]) -> list[str]:
    held = [d for d in drives if d.name not in mixes.TRAINING]
    inside = [d for d in held if d.mixes.model <= MOST_MIXED_ERROR]
    gained = [d for d in inside if d.mixes.plain > MOST_MIXED_ERROR]
    outside = [d.name for d in held if d not in inside]
    fine = [d.name for d in held if d.mixes.plain <= MOST_MIXED_ERROR]
    verdict = (
        f"Of {len(held)} presets held out of the fit, {len(inside)} are predicted within {100 * MOST_MIXED_ERROR:g} % "
        f"in the median, {len(gained)} of them where plain MQSSD is not."
        + (f" Not within: {', '.join(outside)}." if outside else "")
        + (f" Plain MQSSD is within {100 * MOST_MIXED_ERROR:g} % too on {', '.join(fine)}." if fine else "")
    )
    fills = [f"{100 * share:g} % full" for share in mixes.FILLS]
    header = ("preset", "", "model", "plain", "no interference", "no collection", *fills, "pure writes", "W µs", "rho")
    return [
        "## Reads and writes at once, and a drive that fills",
        "",
        *_lines(
            "Median error of throughput in %, over SNIA's mixes of 4 KiB random accesses, "
            f"{', '.join(map(str, mixes.CONCURRENCIES))} in flight, three fills (M21; `spillway/models/mixed.py`). A "
            "drive is known by its pure reads and pure writes at the emptiest and the full drive, and one mix: half "
            f"reads, {mixes.CALIBRATION[1]} in flight, full. The two numbers common to all drives were fitted by "
            "`scripts/fit_mixed.py` on the presets marked *fit*; all others are *held out*. *Plain* is MQSSD, which "
            "adds the costs of reads and writes on the full drive. *No interference* and *no collection* leave out a "
            "term. By fill: the model / plain. *Pure writes* are those of the drive between, from those of the "
            "emptiest and the full one."
        ),
        "",
        *_table(header, [_mixed_row(d) for d in drives]),
        *_lines(verdict),
        "",
        *_lines(
            "The presets samsung-990-pro and crucial-t700 stand behind host threads that take turns (`write_turn_ns`): "
            "there is little of dies in what their reads wait for, and with 64 in flight the model makes them wait too "
            "long."
        ),
    ]


def _mixed_row(d: Compared) -> tuple[str, ...]:
    m = d.mixes
    kind = "fit" if d.name in mixes.TRAINING else "held out"
    errors = (m.model, m.plain, m.without_interference, m.without_collection)
    fills = [f"{_percent(model)} / {_percent(plain)}" for model, plain in m.by_fill]
    return (
        d.name,
        kind,
        *map(_percent, errors),
        *fills,
        _percent(m.pure_writes),
        f"{m.hold_us:.0f}",
        f"{m.valid_share:.2f}",
    )


# ---------------------------------------------------------------------------------------------------------------------
# Measuring


def nand_presets() -> list[str]:
    """All presets but those without NAND flash of their own."""
    return [preset.name for preset in presets() if preset.name not in NOT_NAND]


def profiles_in(directory: Path, say: Callable[[str], object] = print) -> list[Profile]:
    """A profile of each preset, measured unless ``directory`` has it."""
    found = []
    for name in nand_presets():
        place = directory / name
        if not place.exists():
            say(name)
            command = ["spillway", "profile", f"preset:{name}", "--mixed"]
            profile_target(parse_target(f"preset:{name}"), place, command, seed=SEED, budget_s=120, mixed=True)
        found.append(read_profile(place))
    return found


def main() -> None:
    """Measures what is missing and writes the page."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--profiles", type=Path, metavar="DIR", help="keep the profiles here")
    kept = parser.parse_args().profiles
    with tempfile.TemporaryDirectory() as temporary:
        drives = [compared(profile) for profile in profiles_in(kept or Path(temporary))]
    PAGE.write_text(page(drives), encoding="utf-8")


if __name__ == "__main__":
    main()
