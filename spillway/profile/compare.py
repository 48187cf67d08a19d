"""Five models against what was measured: throughput at every k and r of MQSSD's procedure (MQSSD Figs 2 and 4).

Each model predicts the mean time per page, reads and writes apart, and is calibrated as it asks for:

    DAM      mean time per page of one thread, over its r                                          (M12)
    PDAM     the same as cycle cost (M12); one P for the drive, reads and writes alike as M2 has it: that with the least
             median error over all points, which is more than the model could know
    Affine   least squares over r of one thread                                                     (M12)
    PIO      the time of one thread's page as its unit, k_r and k_w of 4 KiB random accesses        (P2, P3)
    MQSSD    least squares over r for each k, and eqs 5 and 6 through those costs                   (M10, M24)

PIO's alpha is in the units: reads and writes each have their own, which can only help it. Error is |predicted /
measured - 1| of throughput. MQSSD is fitted to the points that it is compared at, as in the paper; the rivals only to
those of one thread.

A sixth is ours, not the papers': PDAM with a P for reads and another for writes, each the one with the least median
error. No cheaper model comes as close, so it shows how much r and k alone contribute. docs/COMPARED.md has all six
on every preset, and why it is ahead on one of them.

Lines are unweighted, as in the paper (M24), although their largest costs, those at r = 100 %, then count for most.
Weighting by 1 / cost^2 was tried on all presets: the median error fell on some and rose on as many (docs/COMPARED.md).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from spillway.errors import SpillwayError
from spillway.fit import curves as fit
from spillway.models import affine, dam, mqssd, pdam, pio
from spillway.models.arrays import Array, throughput_mb_s
from spillway.profile.document import Profile
from spillway.profile.points import PAGE_BYTES, Sample

MODELS = ("DAM", "PDAM", "Affine", "PIO", "MQSSD")
STRONGER = "PDAM, P by direction"  # ours
OPS = ("write", "read")
LARGEST_P = 128
# A cost that noise made zero or negative: a curve through logarithms needs something above 0. Source: guess
LEAST_COST_SHARE = 1e-3

PageCost = Callable[[Array, Array], Array]  # (r in percent, k) to us per page
CostOfK = Callable[[Array], Array]


@dataclass(frozen=True)
class CostFunction:
    """One of MQSSD's four costs as a function of k, us, and how it came about.

    ``coefficients`` say of themselves whether the points determine them; straight lines between few points have none.
    ``largest_residual`` is the largest |function / cost - 1| at a measured k.
    """

    symbol: str  # sigma, beta, tau or alpha
    form: str
    curve: CostOfK
    coefficients: tuple[fit.Coefficient, ...]
    largest_residual: float

    def __call__(self, k: Array) -> Array:
        """us at ``k``, any shape."""
        return self.curve(k)

    @property
    def unidentified(self) -> tuple[str, ...]:
        """Names of the coefficients that mean nothing by themselves."""
        return tuple(each.name for each in self.coefficients if not each.identified)


@dataclass(frozen=True)
class Comparison:
    """Measured and predicted throughput, MB/s, at the points of one operation; arrays are as long as ``k``."""

    op: str
    k: Array
    r_percent: Array
    measured_mb_s: Array
    predicted_mb_s: dict[str, Array]
    models: dict[str, PageCost]
    setup_us: CostFunction  # MQSSD's sigma or tau
    page_us: CostFunction  # its beta or alpha
    parallelism: int  # PDAM's P, of the drive
    own_parallelism: int  # that of this operation alone

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
    own = _best_parallelism({op: points})
    models = _rivals(profile, op, points, parallelism, own) | {
        "MQSSD": lambda r_, k_: mqssd.page_cost_us(r_, setup(k_), page(k_)),
    }
    predicted = {name: throughput_mb_s(model(r, k)) for name, model in models.items()}
    return Comparison(op, k, r, PAGE_BYTES / cost, predicted, models, setup, page, parallelism, own)


def _rivals(profile: Profile, op: str, points: _Points, parallelism: int, own: int) -> dict[str, PageCost]:
    alone = fit.calibrate_rivals(points.k, points.r, points.cost, f"{op}s")
    known = profile.pio.get(PAGE_BYTES)
    knee = (known.k_r if op == "read" else known.k_w).value if known else float("nan")
    concurrency = max(1.0, knee) if np.isfinite(knee) else 1.0
    return {
        "DAM": lambda r_, k_: dam.page_cost_us(r_, k_, alone.page_us),
        "PDAM": lambda r_, k_: pdam.page_cost_us(r_, k_, alone.cycle_us, parallelism),
        STRONGER: lambda r_, k_: pdam.page_cost_us(r_, k_, alone.cycle_us, own),
        "Affine": lambda r_, k_: affine.page_cost_us(r_, k_, max(0.0, alone.setup_us), alone.affine_page_us),
        "PIO": lambda r_, k_: pio.page_cost_us(k_, alone.page_us, concurrency) + 0 * r_,
    }


def _best_parallelism(measured: dict[str, _Points]) -> int:
    cycles = {op: fit.calibrate_rivals(each.k, each.r, each.cost, f"{op}s").cycle_us for op, each in measured.items()}

    def error(parallelism: int) -> float:
        ratios = [e.cost / pdam.page_cost_us(e.r, e.k, cycles[op], parallelism) for op, e in measured.items()]
        return float(np.median(np.abs(np.concatenate(ratios) - 1)))

    return min(range(1, LARGEST_P + 1), key=error)


SYMBOLS = {"write": ("sigma", "beta"), "read": ("tau", "alpha")}


def cost_functions(
    op: str, k: Array, r: Array, cost: Array, *, relative: bool = False
) -> tuple[CostFunction, CostFunction]:
    """(set-up cost, page cost) of one operation as functions of k: eqs 5 and 6 through the costs at each k (M10).

    ``relative`` weights the lines under them by 1 / cost^2. ``k``, ``r`` (percent) and ``cost`` (us per page) are
    one-dimensional and equally long. Raises SpillwayError for too few points.
    """
    lines = fit.fit_lines(k, r, cost, relative=relative, what=f"{op}s")
    knots = np.array(list(lines), dtype=np.float64)
    pages = np.array([line.page_us.value for line in lines.values()])
    setups = np.array([line.setup_us.value for line in lines.values()])
    floor = LEAST_COST_SHARE * np.maximum(np.abs(pages), np.abs(setups))
    setup, page = SYMBOLS[op]
    degree = 3 if op == "write" else 2  # of beta; eq 6
    return (
        curve_of(setup, knots, np.maximum(setups, floor), 2),
        curve_of(page, knots, np.maximum(pages, floor), degree),
    )


def curve_of(symbol: str, k: Array, cost: Array, degree: int) -> CostFunction:
    """The best function of k that the number of knots allows: rational of ``degree`` 2 or 3, saturating, or straight
    lines between the knots. ``cost`` in us, as long as ``k``."""
    if k.size >= 5:
        degree = degree if k.size >= 2 * degree + 1 else 2
        rational = fit.fit_rational(k, cost, degree)
        form = f"eq {5 if degree == 2 else 6}, degree {degree}"
        return CostFunction(symbol, form, rational.curve, rational.coefficients, rational.largest_residual)
    if k.size >= 4:
        few = fit.fit_saturating(k, cost)
        return CostFunction(symbol, "a + b/(1 + (k/k0)^p)", few.curve, few.coefficients, few.largest_residual)
    return CostFunction(
        symbol, "straight lines", lambda at: np.exp(np.interp(np.log(at), np.log(k), np.log(cost))), (), 0.0
    )


def medians(comparisons: Sequence[Comparison], models: Sequence[str] = MODELS) -> dict[str, dict[str, float]]:
    """Median error by model: of writes, of reads, and of ``all`` points."""
    return quantiles(comparisons, 0.5, models)


def quantiles(comparisons: Sequence[Comparison], share: float, models: Sequence[str]) -> dict[str, dict[str, float]]:
    """The ``share``-quantile of the errors by model: of writes, of reads, and of ``all`` points."""
    found: dict[str, dict[str, float]] = {}
    for model in models:
        by_op = {c.op: float(np.quantile(c.errors(model), share)) for c in comparisons}
        everything = np.concatenate([c.errors(model) for c in comparisons])
        found[model] = by_op | {"all": float(np.quantile(everything, share))}
    return found


def document(profile: Profile, comparisons: Sequence[Comparison]) -> dict[str, object]:
    """What `spillway model compare --json` prints: medians, the functions of k, every point with every prediction."""
    points = [
        {
            "op": c.op,
            "k": int(c.k[i]),
            "r_percent": float(c.r_percent[i]),
            "measured_mb_s": float(c.measured_mb_s[i]),
            "predicted_mb_s": {model: float(c.predicted_mb_s[model][i]) for model in (*MODELS, STRONGER)},
        }
        for c in comparisons
        for i in range(c.k.size)
    ]
    return {
        "drive": profile.name,
        "median_error": medians(comparisons),
        "stronger_rival": {
            "model": STRONGER,
            "source": "ours, in none of the papers",
            "p": {c.op: c.own_parallelism for c in comparisons},
            "median_error": medians(comparisons, [STRONGER])[STRONGER],
        },
        "pdam_p": comparisons[0].parallelism,
        "cost_functions": {f.symbol: _function_document(f) for f in functions(comparisons)},
        "points": points,
    }


def functions(comparisons: Sequence[Comparison]) -> list[CostFunction]:
    """sigma, beta, tau and alpha, as far as they were measured."""
    return [function for c in comparisons for function in (c.setup_us, c.page_us)]


def _function_document(function: CostFunction) -> dict[str, object]:
    return {
        "form": function.form,
        "largest_residual": function.largest_residual,
        "coefficients": {
            each.name: {
                "value": each.value,
                "low": each.low,
                "high": each.high if np.isfinite(each.high) else None,
                "identified": each.identified,
            }
            for each in function.coefficients
        },
    }


FUNCTION_HEADER = ("cost", "form", "worst at a k", "not identified")


def function_rows(comparisons: Sequence[Comparison]) -> list[tuple[str, ...]]:
    """A row for each of the four costs; the coefficients themselves are in the document."""
    return [
        (f"{f.symbol}(k)", f.form, f"{100 * f.largest_residual:.1f} %", ", ".join(f.unidentified) or "none")
        for f in functions(comparisons)
    ]


def error_rows(comparison: Comparison, model: str) -> tuple[list[str], list[tuple[str, ...]]]:
    """(header, rows): median error in percent at each k and r."""
    rs, ks = np.unique(comparison.r_percent), np.unique(comparison.k)
    errors = comparison.errors(model)

    def cell(k: float, r: float) -> str:
        at = errors[(comparison.k == k) & (comparison.r_percent == r)]
        return f"{100 * float(np.median(at)):.1f}" if at.size else "–"

    header = ["k", *(f"r = {r:.3g} %" for r in rs)]
    return header, [(f"{int(k)}", *(cell(float(k), float(r)) for r in rs)) for k in ks]
