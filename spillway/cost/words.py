"""What `spillway cost` says for people: systems, cells, verdicts. Sizes are decimal, as drives are sold."""

from collections.abc import Sequence

import numpy as np

from spillway.cost.formula import Cells
from spillway.cost.map import Costs, Map, System, tallies, years_at_full_rate
from spillway.figures.lifetime import plain

SYSTEM_HEADER = ("", "system", "drive", "points", "one drive holds", "sustains (ops/s)", "lasts (years)", "standing")
_DECIMAL = ((1e15, "PB"), (1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB"))
_SHORT = ((1e9, "G"), (1e6, "M"), (1e3, "k"))


def decimal_bytes(count: float) -> str:
    """``1.5 TB``: three significant digits at most."""
    factor, unit = next(((f, u) for f, u in _DECIMAL if count >= f), (1.0, "B"))
    return f"{count / factor:.3g} {unit}"


def short(value: float) -> str:
    """``12.5k``: a number in a table's cell, three significant digits at most."""
    factor, letter = next(((f, u) for f, u in _SHORT if value >= f * 0.9995), (1.0, ""))
    digits = value / factor
    return (f"{digits:.0f}" if digits >= 100 else f"{digits:.3g}") + letter


def conditions(found: Costs) -> str:
    """What all of it rests on, in a sentence."""
    get, systems = found.conditions, found.systems
    parts = [f"{plain(found.terms.service_years)} {'year' if found.terms.service_years == 1 else 'years'} of service"]
    if found.priced:
        prices = {float(price) for each in systems for price in each.points.drive_price}
        parts.append(f"{_range(sorted(prices))} {found.unit} a drive".replace("  ", " "))
    else:
        parts.append("no price, so that drives are counted")
    if get.kwh_price is not None:
        watts = {float(watt) for each in systems for watt in each.points.watts}
        parts.append(
            f"{_range(sorted(watts))} W a drive at {plain(get.kwh_price)} {found.unit} a kWh".replace("  ", " ")
        )
    else:
        parts.append("no energy")
    unworn = [each.letter for each in systems if not each.worn_by]
    if unworn:
        parts.append(f"no replacements of {', '.join(unworn)}, whose endurance is not known")
    if any(point.scaled for each in systems for point in each.measured):
        parts.append("scaled drives stand for those of their presets' whole capacity")
    return "; ".join(parts) + "."


def _range(values: Sequence[float]) -> str:
    low, high = plain(values[0]), plain(values[-1])
    return low if low == high else f"{low} to {high}"


def system_rows(systems: Sequence[System]) -> list[tuple[str, ...]]:
    """A row for each system, under ``SYSTEM_HEADER``."""
    rows: list[tuple[str, ...]] = []
    for each in systems:
        sizes, rates = sorted(each.points.held_bytes), sorted(each.points.sustained_ops_s)
        low, high = decimal_bytes(sizes[0]), decimal_bytes(sizes[-1])
        rows.append(
            (
                each.letter,
                each.label,
                each.drive or "–",
                str(len(each.measured)),
                low if low == high else f"{low} to {high}",
                _range(rates),
                _life(each),
                ", ".join(each.marks) or "steady",
            )
        )
    return rows


def _life(system: System) -> str:
    """Years of a drive at the throughput of its points, and what ends them."""
    lasting = sorted(float(years) for years in years_at_full_rate(system) if np.isfinite(years))
    if not lasting:
        return "not known"
    return f"{_range(lasting)}, {system.worn_by}" if system.worn_by else f"{_range(lasting)}, of some points"


def map_header(found: Costs) -> tuple[str, ...]:
    """Data sets along the top, from small to large."""
    return ("ops/s", *(decimal_bytes(size) for size in found.data_set_bytes))


def map_rows(found: Costs, shown: Map) -> list[tuple[str, ...]]:
    """The highest throughput first; in each cell the winners, their drives, replacements and cost."""
    rows = []
    for j in reversed(range(len(found.throughput_ops_s))):
        cells = [_cell(found, shown, (i, j)) for i in range(len(found.data_set_bytes))]
        rows.append((short(found.throughput_ops_s[j]), *cells))
    return rows


def _cell(found: Costs, shown: Map, at: tuple[int, int]) -> str:
    who = "=".join(each.letter for each, won in zip(shown.systems, shown.wins[:, *at], strict=True) if won)
    best = shown.cells[shown.best(at)]
    drives, more = int(best.drives[at]), int(best.bought[at] - best.drives[at])
    counted = f"{drives}+{more}" if more else str(drives)
    return f"{who} {counted}" + (f" {short(float(best.total[at]))}" if found.priced else "")


def key_to_cells(found: Costs) -> str:
    """What a cell of the table says."""
    money = f", cost in {found.unit or 'the prices’ currency'}" if found.priced else ""
    return f"A cell: cheapest system (A=B: they cost the same), drives + replacements{money}; across, the data set."


def verdict(shown: Map) -> str:
    """Who costs least where, in a sentence: shares of the map's cells."""
    names = {each.letter: each.label for each in shown.systems}
    cells = shown.wins[0].size
    if len(shown.systems) == 1:
        return f"{shown.title}: {shown.systems[0].label} alone."
    counts = tallies(shown)
    parts = [
        f"{' and '.join(names[letter] for letter in letters)} {'cost the same' if len(letters) > 1 else 'costs least'} "
        f"in {_part(count, cells)}"
        for letters, count in counts.items()
    ]
    parts += [f"{name} in none" for letter, name in names.items() if not any(letter in who for who in counts)]
    return f"{shown.title}: {', '.join(parts)} of the map."


def _part(count: int, whole: int) -> str:
    """A share in per cent that is 0 or 100 only where it is exactly that."""
    if count == whole:
        return "all"
    share = min(99, round(100 * count / whole))
    return f"{share} %" if share else "under 1 %"


def money_words(found: Costs, cells: Cells, at: tuple[int, int]) -> str:
    """A cell's total and what it is made of; of drives without a price, their number."""
    if not found.priced:
        return f"{int(cells.total[at]):,} drives"
    parts = [("purchase", cells.purchase), ("replacement", cells.replacement), ("energy", cells.energy)]
    told = ", ".join(f"{name} {float(values[at]):,.0f}" for name, values in parts if float(values[at]))
    return f"{float(cells.total[at]):,.0f} {found.unit}".rstrip() + f" ({told})"


def others(found: Costs, shown: Map, at: tuple[int, int]) -> str:
    """What the other systems come to, the cheapest first."""
    pairs = zip(shown.systems, shown.cells, shown.wins[:, *at], strict=True)
    ranked = sorted((float(cells.total[at]), each.label) for each, cells, won in pairs if not won)
    return "; ".join(f"{label} {total:,.0f} {found.unit}".rstrip() for total, label in ranked) or "none"


POINT_HEADER = (
    "", "of", "holds", "share of the drive", "sustains (ops/s)", "host bytes/op", "flash bytes/op", "over-provisioning",
    "standing",
)  # fmt: skip


def point_rows(systems: Sequence[System]) -> list[tuple[str, ...]]:
    """A row for each measured point, under ``POINT_HEADER``."""

    def known(value: float | None, form: str = ",.0f") -> str:
        return "–" if value is None else format(value, form)

    return [
        (
            each.letter,
            point.where,
            decimal_bytes(point.data_set_bytes),
            known(point.data_set_share, ".3g"),
            known(point.throughput_ops_s),
            known(point.host_bytes_per_op),
            known(point.flash_bytes_per_op),
            known(point.over_provisioning, ".0%"),
            ", ".join(point.marks) or "steady",
        )
        for each in systems
        for point in each.measured
    ]
