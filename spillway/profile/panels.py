"""Which charts a profile's report has: the papers' own figures, drawn for this drive.

MQSSD Fig 1 (throughput against r for each k), Figs 2 and 4 (models against it), Fig 3 (costs against k, with the fitted
functions); PIO Fig 4 (bandwidth, IOPS and latency against concurrency, knees marked) and Fig 5 (alpha and k by access
size). Where mixes of reads and writes were measured, those too, with the predictions (M21).
"""

import math
from collections.abc import Sequence

import numpy as np

from spillway.errors import SpillwayError
from spillway.models.arrays import throughput_mb_s
from spillway.profile import mixes
from spillway.profile.compare import MODELS, Comparison, compare
from spillway.profile.document import Estimate, Pio, Profile
from spillway.profile.estimate import pio_samples
from spillway.profile.points import PAGE_BYTES, Sample
from spillway.profile.words import size_name
from spillway.report import curves, style
from spillway.report.charts import Figure
from spillway.report.panels import Mark, Panel

OPS = ("write", "read")
R_TICKS = (0.1, 1, 10, 100)
K_TICKS = (1, 2, 4, 8, 16, 32, 64, 128, 256)
MODEL_COLOURS = {"DAM": style.GREY, "PDAM": style.GREEN, "Affine": style.VIOLET, "PIO": style.TEAL}


def panels(profile: Profile, comparisons: Sequence[Comparison] | None = None) -> list[Panel]:
    """Every panel that the profile has data for, in the order of the page. ``comparisons`` are those of
    ``compare(profile)``, which takes seconds, where they are known."""
    return [*_pio(profile), *_mqssd(profile, comparisons), *_mixes(profile)]


# ---------------------------------------------------------------------------------------------------------------------
# PIO


def _pio(profile: Profile) -> list[Panel]:
    found: list[Panel] = []
    for quantity in ("bandwidth", "latency"):
        for op in OPS:
            panel = _against_concurrency(profile, op, quantity)
            if panel is not None:
                found.append(panel)
    if any(pio.alpha.known for pio in profile.pio.values()):
        found += [_alpha(profile), _knees(profile)]
    return found


def _against_concurrency(profile: Profile, op: str, quantity: str) -> Panel | None:
    sizes = [bs for bs in profile.pio if pio_samples(profile.samples, "random", op, bs)]
    if not sizes:
        return None
    bandwidth = quantity == "bandwidth"
    plot = curves.plane("operations in flight", "MB/s" if bandwidth else "µs", y_log=not bandwidth, ticks=K_TICKS)
    marks = []
    for bs, colour in zip(sizes, style.steps(len(sizes)), strict=True):
        ks, values = _means(pio_samples(profile.samples, "random", op, bs), quantity)
        what = "MB/s" if bandwidth else "µs"
        tip = f"{size_name(bs)} {op}s, @x in flight: @y{{0,0.0}} {what}" + (", @iops{0,0} IOPS" if bandwidth else "")
        curves.measured(plot, ks, values, colour, tip, extra={"iops": [value * 1e6 / bs for value in values]})
        _mark_knee(plot, profile.pio[bs], op, quantity, ks, values, colour)
        marks.append(Mark(size_name(bs), colour))
    if bandwidth:
        title, figure = f"Random {op}s: bandwidth", "Figs 4A, 4B"
        rule = "Rings: the concurrency from which on doubling it buys less than 5 %"
        caption = f"MB/s against {op}s in flight, by access size; hover for IOPS. {rule} (k). PIO, {figure}."
    else:
        title = f"Random {op}s: latency"
        rule = "Rings: where it turns upwards"
        caption = f"Mean latency in µs against {op}s in flight, by access size. {rule}. PIO, Fig 4C."
    return Panel(f"{quantity}-{op}", title, caption, plot, marks, wide=False, standing=standing(profile))


def _means(samples: Sequence[Sample], quantity: str) -> tuple[list[float], list[float]]:
    """Concurrencies, ascending, and the mean of what was measured at each."""
    by_k: dict[int, list[float]] = {}
    for sample in samples:
        value = sample.bandwidth_mb_s if quantity == "bandwidth" else sample.latency_mean_us
        by_k.setdefault(sample.k, []).append(value)
    ks = sorted(by_k)
    return [float(k) for k in ks], [float(np.mean(by_k[k])) for k in ks]


def _mark_knee(
    plot: Figure, pio: Pio, op: str, quantity: str, ks: list[float], values: list[float], colour: str
) -> None:
    if quantity == "bandwidth":
        at = pio.k_r if op == "read" else pio.k_w
    else:
        at = pio.k_r_latency if op == "read" else pio.k_w_latency
    if at.known:
        value = math.exp(float(np.interp(math.log(at.value), np.log(ks), np.log(values))))
        curves.knee(plot, at.value, value, colour, f"{at.value:.0f}" if at.value >= 10 else f"{at.value:.1f}")


def _alpha(profile: Profile) -> Panel:
    sizes, estimates = _known({bs: pio.alpha for bs, pio in profile.pio.items()})
    plot = curves.plane("access size (KiB)", "read bandwidth / write bandwidth", y_log=False, ticks=sizes)
    _estimates(plot, sizes, estimates, style.INK, "@x KiB: alpha @y{0.00}")
    curves.level(plot, 1.0)
    slopes = [size_name(bs) for bs, pio in profile.pio.items() if pio.alpha_rule == "slope"]
    caption = "Asymmetry alpha: how many reads a write costs, by access size, without unit. PIO, Fig 5A."
    if slopes:
        caption += f" By slopes at {', '.join(slopes)}: there software caps reads and writes at one rate."
    return Panel("alpha", "Asymmetry", caption, plot, wide=False, standing=standing(profile))


def _knees(profile: Profile) -> Panel:
    plot = curves.plane("access size (KiB)", "operations in flight", ticks=[bs / 1024 for bs in profile.pio])
    for op, colour in (("read", style.READ), ("write", style.WRITE)):
        by_size = {bs: pio.k_r if op == "read" else pio.k_w for bs, pio in profile.pio.items()}
        sizes, estimates = _known(by_size)
        _estimates(plot, sizes, estimates, colour, f"@x KiB: @y{{0.0}} {op}s saturate it")
    caption = "Operations in flight that saturate the drive, by access size, with 95 % intervals. PIO, Fig 5B."
    marks = [Mark("reads (k_r)", style.READ), Mark("writes (k_w)", style.WRITE)]
    return Panel("knees", "Concurrency", caption, plot, marks, wide=False, standing=standing(profile))


def _known(by_size: dict[int, Estimate]) -> tuple[list[float], list[Estimate]]:
    known = [(bs / 1024, estimate) for bs, estimate in by_size.items() if estimate.known]
    return [size for size, _ in known], [estimate for _, estimate in known]


def _estimates(plot: Figure, x: Sequence[float], estimates: Sequence[Estimate], colour: str, tip: str) -> None:
    """Values with their intervals; a bound that is not known is drawn at the value."""
    values = [each.value for each in estimates]
    low = [each.low if math.isfinite(each.low) and each.low > 0 else each.value for each in estimates]
    high = [each.high if math.isfinite(each.high) else each.value for each in estimates]
    curves.intervals(plot, x, low, high, colour)
    curves.measured(plot, x, values, colour, tip)


# ---------------------------------------------------------------------------------------------------------------------
# MQSSD


def _mqssd(profile: Profile, known: Sequence[Comparison] | None) -> list[Panel]:
    try:
        comparisons = compare(profile) if known is None else known
    except SpillwayError:
        comparisons = []  # too few points to calibrate the models: the table says what is known
    if not comparisons:
        return []
    found = [_throughput(profile, c) for c in comparisons]
    found += [_costs(profile, comparisons, part) for part in ("setup", "page")]
    return found + [_rivals(profile, c) for c in comparisons]


def _throughput(profile: Profile, c: Comparison) -> Panel:
    plot = curves.plane("share of random accesses, r (%)", "MB/s", ticks=R_TICKS)
    ks = np.unique(c.k)
    grid = np.geomspace(float(c.r_percent.min()), float(c.r_percent.max()), 60)
    marks = []
    for k, colour in zip(ks, style.steps(ks.size), strict=True):
        at = np.flatnonzero(c.k == k)
        at = at[np.argsort(c.r_percent[at])]
        said = throughput_mb_s(c.models["MQSSD"](grid, np.full_like(grid, k)))
        curves.curve(plot, list(grid), [float(v) for v in said], colour)
        tip = f"k = {int(k)}, r = @x{{0.0[0]}} %: @y{{0,0.0}} MB/s"
        curves.measured(plot, list(c.r_percent[at]), list(c.measured_mb_s[at]), colour, tip, joined=False)
        marks.append(Mark(f"k = {int(k)}", colour))
    error = 100 * float(np.median(c.errors("MQSSD")))
    caption = (
        f"Throughput of {c.op}s, MB/s: dots are measured, lines are MQSSD's prediction, off by {error:.1f} % in the "
        "median. k threads each move their share as equal operations at random offsets. MQSSD, Figs 1 and 4."
    )
    title = f"Order and concurrency: {c.op}s"
    return Panel(f"throughput-{c.op}", title, caption, plot, marks, wide=False, standing=standing(profile))


def _costs(profile: Profile, comparisons: Sequence[Comparison], part: str) -> Panel:
    plot = curves.plane("threads, k", "µs", ticks=K_TICKS)
    marks = []
    setup = part == "setup"
    for c in comparisons:
        colour = style.READ if c.op == "read" else style.WRITE
        names = {"write": ("sigma_us", "beta_us"), "read": ("tau_us", "alpha_us")}[c.op]
        name = names[0 if setup else 1]
        costs = {k: getattr(each, name) for k, each in profile.mqssd.items()}
        known = {k: each for k, each in costs.items() if each.known and each.value > 0}
        if not known:
            continue
        tip = f"{name.removesuffix('_us')}(@x) = @y{{0.000}} µs"
        _estimates(plot, list(known), list(known.values()), colour, tip)
        grid = np.geomspace(min(known), max(known), 80)
        function = c.setup_us if setup else c.page_us
        curves.curve(plot, list(grid), [float(v) for v in function(grid)], colour, dash="dashed")
        marks.append(Mark(f"{c.op}s: {name.removesuffix('_us')}", colour))
    what = "one random access" if setup else "one page of 4 KiB"
    caption = (
        f"Cost of {what} in µs, amortised over k threads, with 95 % intervals; dashed, the rational function fitted "
        "through them. MQSSD, Fig 3."
    )
    title = "Set-up costs" if setup else "Page costs"
    return Panel(f"cost-{part}", title, caption, plot, marks, wide=False, standing=standing(profile))


def _rivals(profile: Profile, c: Comparison) -> Panel:
    """MQSSD Fig 2: what the older models say, at the fewest and the most threads."""
    plot = curves.plane("share of random accesses, r (%)", "MB/s", ticks=R_TICKS)
    ks = (float(c.k.min()), float(c.k.max()))
    grid = np.geomspace(float(c.r_percent.min()), float(c.r_percent.max()), 40)
    for k, dash in zip(ks, ("solid", "dashed"), strict=True):
        at = np.flatnonzero(c.k == k)
        tip = f"measured, k = {int(k)}, r = @x{{0.0[0]}} %: @y{{0,0.0}} MB/s"
        colour = style.INK
        curves.measured(plot, list(c.r_percent[at]), list(c.measured_mb_s[at]), colour, tip, joined=False)
        for model, colour in MODEL_COLOURS.items():
            said = throughput_mb_s(c.models[model](grid, np.full_like(grid, k)))
            curves.curve(plot, list(grid), [float(v) for v in said], colour, dash=dash)
    medians = ", ".join(f"{model} {100 * float(np.median(c.errors(model))):.0f} %" for model in MODELS)
    caption = (
        f"Throughput of {c.op}s, MB/s, and what four older models say: solid at k = {int(ks[0])}, dashed at "
        f"k = {int(ks[1])}. Median error over all k and r: {medians}. MQSSD, Fig 2."
    )
    marks = [Mark("measured", style.INK), *(Mark(model, colour) for model, colour in MODEL_COLOURS.items())]
    return Panel(f"models-{c.op}", f"Older models: {c.op}s", caption, plot, marks, False, standing(profile))


# ---------------------------------------------------------------------------------------------------------------------
# Reads and writes at once


def _mixes(profile: Profile) -> list[Panel]:
    if not any(sample.procedure == "mixed" for sample in profile.samples):
        return []
    known = mixes.known_of(profile)
    made = mixes.predictions(known)
    return [_mix(profile, known, made, float(fill)) for fill in (known.full, known.emptiest)]


def _mix(profile: Profile, known: mixes.Known, made: mixes.Predictions, fill: float) -> Panel:
    plot = curves.plane("share of writes (%)", "operations/s", x_log=False, ticks=(0, 25, 50, 75, 100))
    samples = [s for s in profile.samples if s.procedure == "mixed" and s.fill == fill]
    ks = sorted({s.k for s in samples})
    marks = []
    shares = np.linspace(0, 1, 41)
    for k, colour in zip(ks, style.steps(len(ks)), strict=True):
        chosen = sorted((s for s in samples if s.k == k), key=lambda s: -s.read_share)
        writes = [100 * (1 - s.read_share) for s in chosen]
        said = 1e6 / known.cost_at_us(made.hold_us, fill, 1 - shares, np.full_like(shares, k))
        curves.curve(plot, list(100 * shares), [float(v) for v in said], colour)
        tip = f"{k} in flight, @x{{0}} % writes: @y{{0,0}} operations/s"
        curves.measured(plot, writes, [s.iops for s in chosen], colour, tip, joined=False)
        marks.append(Mark(f"{k} in flight", colour))
    here = made.fill == fill
    error, plain = (100 * float(np.median(each[here])) for each in (made.errors, made.plain_errors))
    share, calibrated = mixes.CALIBRATION
    caption = (
        f"4 KiB random reads and writes at once, drive {fill:.0%} full: dots are measured, lines are predicted from "
        f"pure reads, pure writes and one mix ({share:.0%} reads, {calibrated} in flight, full). Off by {error:.1f} % "
        f"in the median; plain MQSSD, which adds the costs of the full drive, by {plain:.1f} %."
    )
    key = f"mixed-{100 * fill:.0f}"
    return Panel(key, f"Mixes, {fill:.0%} full", caption, plot, marks, wide=False, standing=standing(profile, fill))


def standing(profile: Profile, fill: float | None = None) -> str:
    """The conditions that all figures of a profile have in common, in one line; ``fill``: of this figure, where it has
    its own."""
    conditions, target = profile.conditions, profile.target
    parts = ["virtual time" if conditions["time"] == "virtual" else conditions["time"] + " time"]
    if conditions.get("fill") is not None:
        parts.append(f"steady drive, {fill or conditions['fill']:.0%} full")
    if any("scaled" in remark for remark in conditions["remarks"]):
        parts.append("scaled down")
    if conditions.get("spent_s") is not None:
        parts.append(f"{conditions['spent_s']:.0f} s of measuring")
    if not target["writable"]:
        parts.append("read only")
    return " · ".join([*parts, f"{len(profile.samples)} points", f"{PAGE_BYTES // 1024} KiB pages"])
