"""Arguments of the command line that are taken more strictly than click does.

Numbers are finite ones in ASCII digits: click's own take nan, which is within all bounds, inf, the digits of any
script, and 1_000. Flags are given once: click takes the last of several, so that a slip in a long line goes unseen.
"""

import math
from typing import Any

import click
from click.types import FloatParamType

NOT_FINITE = "{} is not a finite number."
NOT_PLAIN = "{} is not a number in plain digits."


class Finite(FloatParamType):
    """A float."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The number. Fails with click's BadParameter, as every type does."""
        number = super().convert(_plain(self, value, param, ctx), param, ctx)
        return number if math.isfinite(number) else self.fail(NOT_FINITE.format(value), param, ctx)


class FiniteRange(click.FloatRange):
    """A float within bounds."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The number. Fails with click's BadParameter, as every type does."""
        number = super().convert(_plain(self, value, param, ctx), param, ctx)
        return number if math.isfinite(number) else self.fail(NOT_FINITE.format(value), param, ctx)


class WholeRange(click.IntRange):
    """A whole number within bounds."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The number. Fails with click's BadParameter, as every type does."""
        return super().convert(_plain(self, value, param, ctx), param, ctx)


class Once(click.Command):
    """A command that refuses a flag that is there twice, unless it is one of those that may be repeated."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """As click's. Raises UsageError."""
        _, _, given = self.make_parser(ctx).parse_args(list(args))
        seen: set[click.Parameter] = set()
        for each in given:
            if isinstance(each, click.Option) and not (each.multiple or each.is_flag or each.count):
                if each in seen:
                    raise click.UsageError(f"{each.opts[-1]} is given twice: leave one of them.", ctx)
                seen.add(each)
        return super().parse_args(ctx, args)


def _plain(kind: click.ParamType[Any], value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
    if isinstance(value, str) and not (value.isascii() and "_" not in value):
        kind.fail(NOT_PLAIN.format(value), param, ctx)
    return value
