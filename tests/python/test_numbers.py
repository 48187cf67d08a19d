"""Numbers of the command line: every float of every command is finite, every size, rate and time is in ASCII digits."""

from collections.abc import Callable, Iterator

import click
import pytest

from spillway.cli.program import spillway
from spillway.errors import SpillwayError
from spillway.quantity import parse_rate, parse_share, parse_size, parse_time


def options_of(command: click.Command, name: str = "") -> Iterator[tuple[str, click.Parameter]]:
    if isinstance(command, click.Group):
        for each in command.commands.values():
            yield from options_of(each, f"{name} {each.name}".strip())
    else:
        yield from ((f"{name} {each.opts[0]}", each) for each in command.params)


FLOATS = {
    name: each
    for name, each in options_of(spillway)
    if isinstance(each.type, click.types.FloatParamType | click.FloatRange)
}


def test_there_are_floats_to_look_at() -> None:
    assert {"advise --zipfian", "lsm simulate --rate", "bufferpool --theta", "profile --budget"} <= set(FLOATS)


@pytest.mark.parametrize("text", ["nan", "inf", "-inf", "-nan", "1e999", "NaN"])
@pytest.mark.parametrize("name", FLOATS)
def test_a_float_that_is_not_finite_is_refused(name: str, text: str) -> None:
    with pytest.raises(click.BadParameter):
        FLOATS[name].type.convert(text, FLOATS[name], None)


@pytest.mark.parametrize("text", ["nan", "inf", "-1", "", "1_000", "١٢", "1e", "0x10", "1,5", "1e400"])
@pytest.mark.parametrize("parse", [parse_rate, parse_share, parse_size, parse_time])
def test_what_is_no_number_is_refused_in_one_sentence(parse: Callable[[str, str], object], text: str) -> None:
    with pytest.raises(SpillwayError, match=r"^--x is") as raised:
        parse(text, "--x")
    assert "\n" not in str(raised.value)
