"""Parameters of the models from measurements: lines per concurrency, and functions through them.

Two steps, as in MQSSD section 4.2 (M12, M24).

*Lines.* At one concurrency k, cost per page against the share of pages reached at random:

    page_cost = page + p setup,   p = r / 100

Least squares gives `setup` (sigma or tau) and `page` (beta or alpha), R^2, and 95 % intervals from Student's t with
n - 2 degrees of freedom. Weights w minimise sum w (cost - line)^2. Without them the dearest points, those with the most
random access, decide nearly alone; with `relative_weights` each point counts by its relative error.

*Functions of k.* MQSSD eqs 5 and 6, rational functions of degree 2 and 3 (M10). Fitted as they are printed, they have
three flaws (T30): numerator and denominator can be scaled together, so the Jacobian is singular; signed
coefficients leave a pole inside the measured range, through which the curve passes all points; and linear residuals
ignore small costs, where t spans a factor of 728. The recipe here:

    d0 = 1, every other coefficient exp(theta) with |theta| <= 40, residuals log(model / measured),
    scipy.optimize.least_squares from 50 seeded starts, the best of them.

Positive denominators have no pole for k > 0. Positivity drives some coefficients to 0, and seven of them through eight
points are not all determined: a coefficient whose 95 % interval spans more than a factor of ten, or that moves the
curve by less than one part in 10^6, is reported as not identified. The curve is good all the same; only that
coefficient by itself means nothing.

With few measured k: a + b / (1 + (k / k0)^p), four parameters by the same recipe.

Range: k within what was measured. Ignored: that costs at neighbouring k share their noise.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import least_squares
from scipy.stats import t as student_t

from spillway.errors import SpillwayError
from spillway.fit.interval import Interval
from spillway.models.arrays import Array, percent, quantity
from spillway.models.mqssd import Rational, Saturating

CONFIDENCE = 0.95
LEAST_LINE_POINTS = 3  # two determine a line and leave nothing to judge it by
STARTS = 50  # Source: T30
BOUND = 40.0  # of theta: e^40 is far beyond any cost. Source: T30
SPREAD_OF_STARTS = (
    2.0  # standard deviation of the starts' theta, a factor of 7. Source: guess; 50 of 50 agree on Table 2
)
LARGEST_FACTOR = 10.0  # interval of a coefficient that still counts as identified. Source: guess
LEAST_EFFECT = 1e-6  # relative change of the curve below which a coefficient is not there. Source: guess
TOLERANCE = 1e-12  # relative, of the optimiser: what is printed must not depend on where it stopped
GRID_POINTS = 2001  # of the dense grid on which a curve is looked at between its knots


# ---------------------------------------------------------------------------------------------------------------------
# Lines: the four costs at one concurrency


@dataclass(frozen=True)
class LineFit:
    """cost = page + p setup at one concurrency. ``r_squared`` is 1 for points on a line and NaN for equal costs."""

    setup_us: Interval  # sigma of writes, tau of reads: us per random access
    page_us: Interval  # beta of writes, alpha of reads: us per page
    r_squared: float
    points: int


def fit_line(
    r_percent: ArrayLike, page_cost_us: ArrayLike, weights: ArrayLike | None = None, what: str = "the samples"
) -> LineFit:
    """Set-up and page cost from samples at one concurrency (M24).

    ``r_percent``, ``page_cost_us`` and ``weights`` are one-dimensional and equally long; r in percent of the pages,
    cost the mean time per page over everything in flight, page bytes / throughput. Raises SpillwayError, naming
    ``what``, for fewer than three samples or when all have the same r.
    """
    p, cost = percent("r_percent", r_percent), quantity("page_cost_us", page_cost_us)
    weight = np.ones_like(cost) if weights is None else quantity("weights", weights)
    _check_line_points(p, what)
    weight = weight / weight.mean()
    total = weight.sum()
    mean_p, mean_cost = (weight * p).sum() / total, (weight * cost).sum() / total
    spread = (weight * (p - mean_p) ** 2).sum()
    slope = (weight * (p - mean_p) * (cost - mean_cost)).sum() / spread
    intercept = mean_cost - slope * mean_p
    left = (weight * (cost - intercept - slope * p) ** 2).sum()
    scatter = (weight * (cost - mean_cost) ** 2).sum()
    freedom = p.size - 2
    variance = left / freedom
    reach = float(student_t.ppf(0.5 + CONFIDENCE / 2, freedom))
    return LineFit(
        setup_us=_around(slope, reach * np.sqrt(variance / spread)),
        page_us=_around(intercept, reach * np.sqrt(variance * (1 / total + mean_p**2 / spread))),
        r_squared=float(1 - left / scatter) if scatter > 0 else float("nan"),
        points=int(p.size),
    )


def relative_weights(page_cost_us: ArrayLike) -> Array:
    """1 / cost^2, so that every sample counts by its relative error. Shape of ``page_cost_us``."""
    return 1 / quantity("page_cost_us", page_cost_us) ** 2


def fit_lines(
    k: ArrayLike, r_percent: ArrayLike, page_cost_us: ArrayLike, *, relative: bool = False, what: str = "samples"
) -> dict[int, LineFit]:
    """``fit_line`` for each k that occurs, ascending; all arguments one-dimensional and equally long.

    ``relative`` weights the samples by ``relative_weights``. ``what``: their name in the plural, for errors. Raises
    SpillwayError as ``fit_line`` does.
    """
    threads = np.asarray(k)
    r, cost = np.asarray(r_percent, dtype=np.float64), np.asarray(page_cost_us, dtype=np.float64)
    fits = {}
    for each in sorted({int(value) for value in threads}):
        at = threads == each
        weights = relative_weights(cost[at]) if relative else None
        fits[each] = fit_line(r[at], cost[at], weights, f"{what} at k = {each}")
    return fits


def _check_line_points(p: Array, what: str) -> None:
    if p.ndim != 1 or p.size < LEAST_LINE_POINTS:
        raise SpillwayError(
            f"{what}: {p.size} {'is' if p.size == 1 else 'are'} too few for a line and its interval; "
            f"measure at least {LEAST_LINE_POINTS} shares of random access (r)."
        )
    if np.ptp(p) == 0:
        raise SpillwayError(f"{what}: all have r = {100 * p[0]:g} %; a line needs at least two different r.")


def _around(value: float, reach: float) -> Interval:
    return Interval(float(value), float(value - reach), float(value + reach))


@dataclass(frozen=True)
class Rivals:
    """DAM, PDAM and affine, calibrated on one thread as in MQSSD section 4.1 (M12); for reads or for writes."""

    page_us: float  # DAM: mean time per page
    cycle_us: float  # PDAM: the same, since one thread moves one page in a cycle
    setup_us: float  # affine
    affine_page_us: float


def calibrate_rivals(k: ArrayLike, r_percent: ArrayLike, page_cost_us: ArrayLike, what: str = "the samples") -> Rivals:
    """The rivals' parameters from the samples with k = 1, unweighted; arguments as in ``fit_lines`` (M12).

    Raises SpillwayError when there are fewer than three such samples.
    """
    alone = np.asarray(k) == 1
    cost = np.asarray(page_cost_us, dtype=np.float64)[alone]
    line = fit_line(np.asarray(r_percent, dtype=np.float64)[alone], cost, what=f"{what} at k = 1")
    mean = float(cost.mean())
    return Rivals(mean, mean, line.setup_us.value, line.page_us.value)


# ---------------------------------------------------------------------------------------------------------------------
# Functions of k


@dataclass(frozen=True)
class Coefficient:
    """One coefficient: its value, its interval (a factor to both sides), and whether the points determine it."""

    name: str
    value: float
    low: float
    high: float
    identified: bool


CurveType = TypeVar("CurveType", Rational, Saturating)


@dataclass(frozen=True)
class CurveFit(Generic[CurveType]):
    """A function of k and how it stands to its knots."""

    curve: CurveType
    coefficients: tuple[Coefficient, ...]
    residuals: Array  # model / measured - 1, one for each knot

    @property
    def largest_residual(self) -> float:
        """max |model / measured - 1|."""
        return float(np.abs(self.residuals).max())

    @property
    def unidentified(self) -> tuple[str, ...]:
        """Names of the coefficients that the points do not determine."""
        return tuple(each.name for each in self.coefficients if not each.identified)


@dataclass(frozen=True)
class _Form:
    """A family of curves in theta: log of the curve, its Jacobian, names and a start for each parameter."""

    names: tuple[str, ...]
    log_curve: Callable[[Array], Array]
    jacobian: Callable[[Array], Array]
    start: Callable[[np.random.Generator], Array]


def fit_rational(
    k: ArrayLike, cost: ArrayLike, degree: int = 2, *, starts: int = STARTS, seed: int = 1
) -> CurveFit[Rational]:
    """MQSSD eq 5 (``degree`` 2) or eq 6 (3) through ``cost`` at ``k``, both one-dimensional and positive (M10).

    Needs one knot more than 2 degree, as many as there are parameters; raises SpillwayError for fewer.
    """
    knots, values = _knots(k, cost, 2 * degree + 1, f"a rational function of degree {degree}")
    form = _rational_form(knots, values, degree)
    theta = _best(form, values, starts, seed)
    both = np.exp(theta)
    numerator = tuple(float(value) for value in both[: degree + 1])
    denominator = (1.0, *(float(value) for value in both[degree + 1 :]))
    curve = Rational(numerator, denominator)
    return CurveFit(curve, _coefficients(form, theta, values), curve(knots) / values - 1)


def fit_saturating(k: ArrayLike, cost: ArrayLike, *, starts: int = STARTS, seed: int = 1) -> CurveFit[Saturating]:
    """a + b / (1 + (k / k0)^p) through ``cost`` at ``k``; needs four knots, raises SpillwayError for fewer."""
    knots, values = _knots(k, cost, 4, "a + b/(1 + (k/k0)^p)")
    form = _saturating_form(knots, values)
    theta = _best(form, values, starts, seed)
    curve = Saturating(*(float(value) for value in np.exp(theta)))
    return CurveFit(curve, _coefficients(form, theta, values), curve(knots) / values - 1)


def _knots(k: ArrayLike, cost: ArrayLike, least: int, what: str) -> tuple[Array, Array]:
    knots, values = quantity("k", k), quantity("cost", cost)
    if knots.ndim != 1 or knots.shape != values.shape:
        raise SpillwayError("k and cost must be one-dimensional and equally long.")
    different = np.unique(knots).size
    if different < least:
        raise SpillwayError(f"{different} different k are too few for {what}; measure at least {least}.")
    return knots, values


def _rational_form(knots: Array, values: Array, degree: int) -> _Form:
    powers = np.vander(knots, degree + 1, increasing=True)

    def terms(theta: Array) -> tuple[Array, Array]:
        both = np.exp(theta)
        return powers * both[: degree + 1], powers[:, 1:] * both[degree + 1 :]

    def log_curve(theta: Array) -> Array:
        above, below = terms(theta)
        return np.asarray(np.log(above.sum(axis=1)) - np.log1p(below.sum(axis=1)))

    def jacobian(theta: Array) -> Array:
        above, below = terms(theta)
        of_above = above / above.sum(axis=1, keepdims=True)
        return np.concatenate([of_above, -below / (1 + below.sum(axis=1, keepdims=True))], axis=1)

    # Terms of about equal size somewhere in the range of k are where curves bend.
    steepness = np.log(knots.max()) / 2
    exponents = np.concatenate([np.arange(degree + 1), np.arange(1, degree + 1)])
    level = np.concatenate([np.full(degree + 1, np.log(values[0])), np.zeros(degree)])

    def start(draw: np.random.Generator) -> Array:
        shift = draw.uniform(0, steepness, exponents.size)
        return np.asarray(level - shift * exponents + draw.normal(0, SPREAD_OF_STARTS, exponents.size))

    names = tuple(f"c{i}" for i in range(degree + 1)) + tuple(f"d{i}" for i in range(1, degree + 1))
    return _Form(names, log_curve, jacobian, start)


def _saturating_form(knots: Array, values: Array) -> _Form:
    log_k = np.log(knots)

    def parts(theta: Array) -> tuple[Array, Array]:
        rise = np.clip(np.exp(theta[3]) * (log_k - theta[2]), -500, 500)
        return np.asarray(1 / (1 + np.exp(rise))), rise

    def log_curve(theta: Array) -> Array:
        gate, _ = parts(theta)
        return np.asarray(np.log(np.exp(theta[0]) + np.exp(theta[1]) * gate))

    def jacobian(theta: Array) -> Array:
        gate, rise = parts(theta)
        floor, gain = np.exp(theta[0]), np.exp(theta[1])
        total = floor + gain * gate
        slope = gain * gate * (1 - gate) / total
        columns = [floor / total + 0 * gate, gain * gate / total, slope * np.exp(theta[3]), -slope * rise]
        return np.stack(columns, axis=1)

    ends = np.log([values.min(), np.ptp(values) + values.min(), float(np.exp(log_k.mean())), 1.0])
    width = np.array([0.5, 0.5, SPREAD_OF_STARTS, 0.5])

    def start(draw: np.random.Generator) -> Array:
        return np.asarray(ends + width * draw.normal(0, 1, 4))

    return _Form(("a", "b", "k0", "p"), log_curve, jacobian, start)


def _best(form: _Form, values: Array, starts: int, seed: int) -> Array:
    """theta with the least squares of log(model / measured), of ``starts`` seeded starts."""
    draw, target = np.random.default_rng(seed), np.log(values)

    def residuals(theta: Array) -> Array:
        return form.log_curve(theta) - target

    found = []
    for _ in range(starts):
        begin = np.clip(form.start(draw), 1 - BOUND, BOUND - 1)
        found.append(
            least_squares(
                residuals,
                begin,
                form.jacobian,
                bounds=(-BOUND, BOUND),
                ftol=TOLERANCE,
                xtol=TOLERANCE,
                gtol=TOLERANCE,
                max_nfev=500,
            )
        )
    return np.asarray(min(found, key=lambda each: float(each.cost)).x)


def _coefficients(form: _Form, theta: Array, values: Array) -> tuple[Coefficient, ...]:
    """Each with the interval that the curvature at the optimum gives it, and a verdict on it."""
    slopes = form.jacobian(theta)
    there = np.abs(slopes).max(axis=0) > LEAST_EFFECT  # what positivity drove to 0 is no longer a parameter
    freedom = values.size - int(there.sum())
    reach = np.full(theta.size, np.inf)
    if freedom > 0:
        left = form.log_curve(theta) - np.log(values)
        _, singular, axes = np.linalg.svd(slopes[:, there], full_matrices=False)
        variance = (left @ left) / freedom * ((axes.T / np.maximum(singular, 1e-150)) ** 2).sum(axis=1)
        reach[there] = student_t.ppf(0.5 + CONFIDENCE / 2, freedom) * np.sqrt(variance)
    factor = np.exp(np.minimum(reach, 2 * BOUND))
    return tuple(
        Coefficient(
            name,
            float(np.exp(at)),
            float(np.exp(at) / by) if present else 0.0,
            float(np.exp(at) * by) if present else float("inf"),
            bool(present and by**2 <= LARGEST_FACTOR),
        )
        for name, at, by, present in zip(form.names, theta, factor, there, strict=True)
    )


# ---------------------------------------------------------------------------------------------------------------------
# What a curve does between and without its knots


def overshoot(curve: Callable[[ArrayLike], Array], k: ArrayLike, cost: ArrayLike) -> float:
    """How far the curve leaves the band between neighbouring knots, relative to it, on a dense grid; 0: nowhere. ``k``
    ascending, ``cost`` (positive) of the same length.

    A pole between two knots makes this infinite or huge; the residuals at the knots do not show it.
    """
    knots, values = quantity("k", k), quantity("cost", cost)
    grid = np.geomspace(knots[0], knots[-1], GRID_POINTS)
    above = np.clip(np.searchsorted(knots, grid, side="left"), 1, knots.size - 1)
    low = np.minimum(values[above - 1], values[above])
    high = np.maximum(values[above - 1], values[above])
    drawn = curve(grid)
    if not (np.isfinite(drawn) & (drawn > 0)).all():
        return float("inf")
    return float(np.maximum(np.maximum(drawn / high, low / drawn) - 1, 0).max())


def left_out(fit: Callable[[Array, Array], Callable[[ArrayLike], Array]], k: ArrayLike, cost: ArrayLike) -> Array:
    """Relative error at each interior knot of the curve that ``fit(k, cost)`` draws without it. Two shorter than k."""
    knots, values = quantity("k", k), quantity("cost", cost)
    errors = []
    for each in range(1, knots.size - 1):
        curve = fit(np.delete(knots, each), np.delete(values, each))
        errors.append(float(curve(knots[each])) / values[each] - 1)
    return np.asarray(errors, dtype=np.float64)
