"""`spillway cost`."""

import json
from pathlib import Path

import click

from spillway.cli.arguments import Finite
from spillway.cli.printing import command_line, err, figures, out
from spillway.cost.map import Axis, Costs
from spillway.errors import SpillwayError
from spillway.quantity import parse_size

_LEAST_CELLS, _MOST_CELLS = 1, 100  # the charts have 6 times as many along each axis. Source: guess


@click.command("cost")
@click.argument("runs", metavar="RUN...", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("--data-sets", metavar="SIZES", help="Total data sets: 1TB..10TB, or 1TB,2TB,5TB  [default: found]")
@click.option("--throughputs", metavar="RATES", help="Targets in operations/s: 10e3..1e6, or a list  [default: found]")
@click.option("--cells", type=int, default=8, show_default=True, help="Cells along each axis that is a range.")
@click.option("--drive-price", "prices", multiple=True, metavar="[DRIVE=]PRICE", help="Wins over a plan's if by name.")
@click.option("--currency", default="", help="What prices are in, such as EUR.")
@click.option("--service-years", type=Finite(), default=5.0, show_default=True, help="For which drives are bought.")
@click.option("--tbw", "rated", multiple=True, metavar="[DRIVE=]SIZE", help="Endurance in host bytes, such as 600TB.")
@click.option("--watts", multiple=True, metavar="[DRIVE=]W", help="Power of a drive.")
@click.option("--kwh-price", type=Finite(), metavar="PRICE", help="Of a kWh; needs --watts.")
@click.option("--anyway", is_flag=True, help="Take runs that are not steady, and different loads.")
@click.option("--out", "target", type=click.Path(path_type=Path), help="Write the maps as one HTML file.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object and nothing else.")
def cost_command(
    runs: tuple[Path, ...],
    data_sets: str | None,
    throughputs: str | None,
    cells: int,
    prices: tuple[str, ...],
    currency: str,
    service_years: float,
    rated: tuple[str, ...],
    watts: tuple[str, ...],
    kwh_price: float | None,
    anyway: bool,
    target: Path | None,
    as_json: bool,
) -> None:
    """Map which system serves a data set at a throughput for the least money.

    RUN is a run directory, or a CSV file of points that others measured: columns system, data_set_bytes and
    throughput_ops_s of one drive, and where known drive, extra_op (yes, no), steady (yes, no), host_bytes_per_op,
    wa_device or flash_bytes_per_op, rated_pe_cycles, physical_bytes, rated_writes_bytes, drive_price, currency, watts,
    over_provisioning, load.

    Drives = max(data set / what one holds, throughput / what one sustains), both rounded up, by the measured point that
    costs least: drives, those that replace worn ones within the service life, and energy. Without a price, drives are
    counted. Nothing is run.
    """
    from spillway.cost.map import FINE, ByDrive, Conditions, costs, document
    from spillway.cost.points import read_points

    if not _LEAST_CELLS <= cells <= _MOST_CELLS:
        raise SpillwayError(f"--cells is {cells}; it takes a whole number from {_LEAST_CELLS} to {_MOST_CELLS}.")
    conditions = Conditions(
        _above(service_years, "--service-years"),
        ByDrive("--drive-price", *_by_drive(prices, "--drive-price")),
        ByDrive("--tbw", *_by_drive(rated, "--tbw")),
        ByDrive("--watts", *_by_drive(watts, "--watts")),
        None if kwh_price is None else _above(kwh_price, "--kwh-price"),
        currency,
        anyway,
    )
    axes = _axis(data_sets, "--data-sets"), _axis(throughputs, "--throughputs")
    read = read_points(runs)
    found = costs(read.points, read.left_out, conditions, *axes, cells)
    if target is not None:
        from spillway.cost.page import write_cost_report

        write_cost_report(costs(read.points, read.left_out, conditions, *axes, cells, FINE), target, command_line())
    if as_json:
        print(json.dumps(document(found), indent=2, ensure_ascii=False))
        return
    _show(found)
    if target is not None:
        out.print(f"Report  {target}", soft_wrap=True)


def _show(found: Costs) -> None:
    """Prints the systems, each map with its verdict, and what was left out."""
    from spillway.cost import words as cost_words

    out.print(figures(cost_words.SYSTEM_HEADER, cost_words.system_rows(found.systems)))
    for each in found.maps:
        out.print(f"\n{each.title}", style="bold")
        out.print(figures(cost_words.map_header(found), cost_words.map_rows(found, each)))
        out.print(cost_words.verdict(each), soft_wrap=True)
    out.print(f"\n{cost_words.key_to_cells(found)}\nCost: {cost_words.conditions(found)}", soft_wrap=True)
    for why in found.left_out:
        err.print(f"Left out: {why}.", soft_wrap=True)


def _above(value: float, what: str) -> float:
    if not 0 < value < float("inf"):
        raise SpillwayError(f"{what} is {value:g}; it takes a number above 0.")
    return value


def _number(text: str, what: str) -> float:
    """A positive number; of ``--tbw`` and ``--data-sets`` a size."""
    if what in ("--tbw", "--data-sets"):
        return _above(float(parse_size(text.strip(), what)), what)
    try:
        return _above(float(text), what)
    except ValueError:
        raise SpillwayError(f"{what} is {text!r}; it takes a number above 0.") from None


def _by_drive(texts: tuple[str, ...], option: str) -> tuple[float | None, dict[str, float]]:
    """What is for every drive, and what is for those with a name."""
    every: float | None = None
    named: dict[str, float] = {}
    for text in texts:
        name, equals, value = text.rpartition("=")
        if (name in named) if equals else (every is not None):
            raise SpillwayError(f"{option} is given twice for {name or 'every drive'}: leave one.")
        if equals:
            named[name] = _number(value, option)
        else:
            every = _number(text, option)
    return every, named


def _axis(text: str | None, option: str) -> Axis:
    """``LOW..HIGH`` or a list by commas; nothing leaves the axis to the points."""
    if text is None:
        return Axis()
    low, dots, high = text.partition("..")
    if not dots:
        return Axis(values=tuple(_number(each, option) for each in text.split(",")))
    ends = _number(low, option), _number(high, option)
    if ends[0] >= ends[1]:
        raise SpillwayError(f"{option} is {text!r}; the first end is below the second, as in 1..10.")
    return Axis(*ends)
