"""Numbers of the command line: finite ones. Click's own floats take nan, which is within all bounds, and inf."""

import math
from typing import Any

import click
from click.types import FloatParamType

NOT_FINITE = "{} is not a finite number."


class Finite(FloatParamType):
    """A float."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The number. Fails with click's BadParameter, as every type does."""
        number = super().convert(value, param, ctx)
        return number if math.isfinite(number) else self.fail(NOT_FINITE.format(value), param, ctx)


class FiniteRange(click.FloatRange):
    """A float within bounds."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The number. Fails with click's BadParameter, as every type does."""
        number = super().convert(value, param, ctx)
        return number if math.isfinite(number) else self.fail(NOT_FINITE.format(value), param, ctx)
