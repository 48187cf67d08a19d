"""Five models against what was measured: throughput at every k and r of MQSSD's procedure (MQSSD Figs 2 and 4).

Each model predicts the mean time per page, reads and writes apart, and is calibrated as it asks for:

    DAM      mean time per page of one thread, over its r                                          (M12)
    PDAM     the same as cycle cost (M12); one P for the drive, reads and writes alike as M2 has it: that with the least
             median error over all points, which is more than the model could know
    Affine   least squares over r of one thread                                                     (M12)
    PIO      the time of one thread's page as its unit, k_r and k_w of 4 KiB random accesses        (P2, P3)
    MQSSD    least squares over r for each k, and eqs 5 and 6 through those costs                   (M10, M24)

PIO's alpha is in the units: reads and writes each have their own, which can only help it. Error is
|predicted / measured - 1| of throughput. MQSSD saw the points it is held against, as in the paper; the rivals saw those
of one thread.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from spillway import fit
from spillway.errors import SpillwayError
from spillway.models import affine, dam, mqssd, pdam, pio
from spillway.models.arrays import Array, throughput_mb_s
from spillway.profile.document import Profile
from spillway.profile.points import PAGE_BYTES, Sample

MODELS = ("DAM", "PDAM", "Affine", "PIO", "MQSSD")
OPS = ("write", "read")
LARGEST_P = 128
# A cost that noise made zero or negative: a curve through logarithms needs something above 0. Source: guess
LEAST_COST_SHARE = 1e-3

PageCost = Callable[[Array, Array], Array]  # (r in percent, k) to us per page
CostOfK = Callable[[Array], Array]


@dataclass(frozen=True)
class Comparison:
    """Measured and predicted throughput, MB/s, at the points of one operation; arrays are as long as ``k``."""

    op: str
    k: Array
    r_percent: Array
    measured_mb_s: Array
    predicted_mb_s: dict[str, Array]
    models: dict[str, PageCost]
    setup_us: CostOfK  # MQSSD's sigma or tau
    page_us: CostOfK  # its beta or alpha

    def errors(self, model: str) -> Array:
        """|predicted / measured - 1| at each point."""
        return np.abs(self.predicted_mb_s[model] / self.measured_mb_s - 1)


def compare(profile: Profile) -> list[Comparison]:
    """One comparison for writes and one for reads, as far as they were measured.

    Raises SpillwayError when the profile has too few points to calibrate a model.
    """
    measured = {op: _Points.of(profile.samples, op) for op in OPS}
    measured = {op: points for op, points in measured.items() if points.k.size}
    if not measured:
        raise SpillwayError(f"{profile.name}: the profile has no point of MQSSD's procedure; profile the drive again.")
    parallelism = _best_parallelism(measured)
    return [_compare(profile, op, points, parallelism) for op, points in measured.items()]


@dataclass(frozen=True)
class _Points:
    """k, r in percent and us per page of one operation's samples."""

    k: Array
    r: Array
    cost: Array

    @staticmethod
    def of(samples: Sequence[Sample], op: str) -> "_Points":
        chosen = [s for s in samples if s.procedure == "mqssd" and s.op == op]
        columns = ([s.k for s in chosen], [s.r_percent for s in chosen], [s.page_cost_us for s in chosen])
        return _Points(*(np.array(column, dtype=np.float64) for column in columns))


def _compare(profile: Profile, op: str, points: _Points, parallelism: int) -> Comparison:
    k, r, cost = points.k, points.r, points.cost
    setup, page = cost_functions(op, k, r, cost)
    models = _rivals(profile, op, points, parallelism) | {
        "MQSSD": lambda r_, k_: mqssd.page_cost_us(r_, setup(k_), page(k_)),
    }
    predicted = {name: throughput_mb_s(model(r, k)) for name, model in models.items()}
    return Comparison(op, k, r, PAGE_BYTES / cost, predicted, models, setup, page)


def _rivals(profile: Profile, op: str, points: _Points, parallelism: int) -> dict[str, PageCost]:
    alone = fit.calibrate_rivals(points.k, points.r, points.cost, f"{op}s")
    known = profile.pio.get(PAGE_BYTES)
    knee = (known.k_r if op == "read" else known.k_w).value if known else float("nan")
    concurrency = max(1.0, knee) if np.isfinite(knee) else 1.0
    return {
        "DAM": lambda r_, k_: dam.page_cost_us(r_, k_, alone.page_us),
        "PDAM": lambda r_, k_: pdam.page_cost_us(r_, k_, alone.cycle_us, parallelism),
        "Affine": lambda r_, k_: affine.page_cost_us(r_, k_, max(0.0, alone.setup_us), alone.affine_page_us),
        "PIO": lambda r_, k_: pio.page_cost_us(k_, alone.page_us, concurrency) + 0 * r_,
    }


def _best_parallelism(measured: dict[str, _Points]) -> int:
    cycles = {op: fit.calibrate_rivals(each.k, each.r, each.cost, f"{op}s").cycle_us for op, each in measured.items()}

    def error(parallelism: int) -> float:
        ratios = [e.cost / pdam.page_cost_us(e.r, e.k, cycles[op], parallelism) for op, e in measured.items()]
        return float(np.median(np.abs(np.concatenate(ratios) - 1)))

    return min(range(1, LARGEST_P + 1), key=error)


def cost_functions(op: str, k: Array, r: Array, cost: Array) -> tuple[CostOfK, CostOfK]:
    """(set-up cost, page cost) of one operation as functions of k: eqs 5 and 6 through the costs at each k (M10)."""
    lines = fit.fit_lines(k, r, cost, what=f"{op}s")
    knots = np.array(list(lines), dtype=np.float64)
    pages = np.array([line.page_us.value for line in lines.values()])
    setups = np.array([line.setup_us.value for line in lines.values()])
    floor = LEAST_COST_SHARE * np.maximum(np.abs(pages), np.abs(setups))
    degree = 3 if op == "write" else 2  # of beta; eq 6
    return curve_of(knots, np.maximum(setups, floor), 2), curve_of(knots, np.maximum(pages, floor), degree)


def curve_of(k: Array, cost: Array, degree: int) -> CostOfK:
    """The best function that so many knots allow: rational, saturating, or straight lines between them."""
    if k.size >= 2 * degree + 1:
        return fit.fit_rational(k, cost, degree).curve
    if k.size >= 5:
        return fit.fit_rational(k, cost, 2).curve
    if k.size >= 4:
        return fit.fit_saturating(k, cost).curve
    return lambda at: np.exp(np.interp(np.log(at), np.log(k), np.log(cost)))


def medians(comparisons: Sequence[Comparison]) -> dict[str, dict[str, float]]:
    """Median error by model: of writes, of reads, and of ``all`` points."""
    found: dict[str, dict[str, float]] = {}
    for model in MODELS:
        by_op = {c.op: float(np.median(c.errors(model))) for c in comparisons}
        everything = np.concatenate([c.errors(model) for c in comparisons])
        found[model] = by_op | {"all": float(np.median(everything))}
    return found


def document(profile: Profile, comparisons: Sequence[Comparison]) -> dict[str, object]:
    """What `spillway model compare --json` prints: medians, and every point with every prediction."""
    points = [
        {
            "op": c.op,
            "k": int(c.k[i]),
            "r_percent": float(c.r_percent[i]),
            "measured_mb_s": float(c.measured_mb_s[i]),
            "predicted_mb_s": {model: float(c.predicted_mb_s[model][i]) for model in MODELS},
        }
        for c in comparisons
        for i in range(c.k.size)
    ]
    return {"drive": profile.name, "median_error": medians(comparisons), "points": points}


def error_rows(comparison: Comparison, model: str) -> tuple[list[str], list[tuple[str, ...]]]:
    """(header, rows): median error in percent at each k and r."""
    rs, ks = np.unique(comparison.r_percent), np.unique(comparison.k)
    errors = comparison.errors(model)

    def cell(k: float, r: float) -> str:
        at = errors[(comparison.k == k) & (comparison.r_percent == r)]
        return f"{100 * float(np.median(at)):.1f}" if at.size else "–"

    header = ["k", *(f"r = {r:.3g} %" for r in rs)]
    return header, [(f"{int(k)}", *(cell(float(k), float(r)) for r in rs)) for k in ks]
