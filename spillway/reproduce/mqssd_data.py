"""The MQSSD paper's own data, as its tables and its text give it: costs, their lines and their functions of k."""

from functools import cache

import numpy as np

from spillway.fit.curves import CurveFit, fit_rational
from spillway.models import mqssd
from spillway.models.arrays import Array
from spillway.models.mqssd import Rational
from spillway.reproduce.document import (
    InText,
    columns,
)

TEXT = InText("mqssd_in_text")
R_GRID = np.geomspace(0.1, 100, 13)  # percent. Source: the range of section 3.3.1; its steps are not given: guess
DEGREES = {"s": 2, "beta": 3, "t": 2, "alpha": 2}
NAMES = {"s": "s(k)", "beta": "β(k)", "t": "t(k)", "alpha": "α(k)"}
SIDES = {"writes": ("s", "beta"), "reads": ("t", "alpha")}


@cache
def costs() -> dict[str, Array]:
    """Table 2 by column name, without the unit: k, s, beta, t, alpha and the two R²."""
    return {name.removesuffix("_us"): values for name, values in columns("mqssd_table2_costs").items()}


def line(side: str) -> tuple[Array, Array]:
    """Set-up per random access and cost per page at each k of Table 2, us."""
    setup, page = SIDES[side]
    return mqssd.per_access_us(costs()[setup]), costs()[page]


@cache
def fits() -> dict[str, CurveFit[Rational]]:
    """The four functions of k, in the units of Table 2."""
    return {name: fit_rational(costs()["k"], costs()[name], degree) for name, degree in DEGREES.items()}
