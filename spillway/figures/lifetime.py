"""How long a drive lasts under a load, and what that costs.

    drive writes per day   D = (host bytes / seconds) * 86400 / capacity            (the unit of makers' warranties)
    percentage used        P = 100 * P/E cycles consumed / rated P/E cycles         (NVMe base specification, SMART log)
    flash bytes per op     F = NAND bytes / operations        (How to Write to SSDs, PVLDB 19: its metric)
    years                  L = rated P/E cycles * physical bytes / (NAND bytes / seconds) / seconds of a year
                           or, where the maker states bytes: L = rated host bytes / (host bytes / seconds) / ...
    bytes until worn       U = rated P/E cycles * physical bytes / (NAND bytes / user bytes): needs no rate
    money per year         M = price / L

Bytes in bytes, time in seconds, L in years of 365.25 days, M in the price's currency. Every erase block is taken to
wear alike and to last exactly its rated cycles, and a flash page programmed in SLC mode to wear as any other; age,
retention and temperature are not in it. All of them hold at the run's rate, kept up day and night.

A figure is None where something that it needs is not known or is 0: nothing written is no lifetime, not an endless one.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from spillway.figures.amplification import ratio
from spillway.quantity import human_bytes

DAY_S = 86400.0
YEAR_S = 365.25 * DAY_S  # Source: a Julian year


def drive_writes_per_day(host_bytes: float | None, seconds: float | None, capacity_bytes: float | None) -> float | None:
    """Times the logical capacity is written in a day at this rate; 1/day."""
    rate = ratio(host_bytes or None, seconds)
    return ratio(None if rate is None else rate * DAY_S, capacity_bytes)


def percentage_used(pe_cycles: float | None, rated_pe_cycles: float | None) -> float | None:
    """Percent of the rated P/E cycles; above 100 where a drive has outlived its rating."""
    return ratio(None if pe_cycles is None else 100 * pe_cycles, rated_pe_cycles)


def flash_bytes_per_operation(nand_bytes: float | None, operations: float | None) -> float | None:
    """NAND bytes programmed for each operation of the load, reads among them; bytes."""
    return ratio(nand_bytes, operations)


def endurance_bytes(rated_pe_cycles: float | None, physical_bytes: float | None) -> float | None:
    """NAND bytes that can be programmed until every erase block has had its rated cycles."""
    return rated_pe_cycles * physical_bytes if rated_pe_cycles and physical_bytes else None


def years(endurance: float | None, spent_bytes: float | None, seconds: float | None) -> float | None:
    """Until ``endurance`` bytes are spent, at ``spent_bytes`` in ``seconds``: both of NAND, or both of the host.

    None where nothing is spent, or no endurance is known.
    """
    rate = ratio(spent_bytes or None, seconds)
    left = ratio(endurance, rate)
    return None if left is None else left / YEAR_S


def money_per_year(price: float | None, years_of_life: float | None) -> float | None:
    """What drives worn out at this rate cost a year; None without a price."""
    return ratio(price, years_of_life)


@dataclass(frozen=True)
class Work:
    """What a run did to its drive over its measured phases. None: not known."""

    seconds: float | None
    operations: float | None
    user_bytes: float | None
    host_bytes: float | None
    nand_bytes: float | None
    real_time: bool = True  # False: in virtual time, so that no rate is the drive's


@dataclass(frozen=True)
class Endurance:
    """What a drive can take. None: not known."""

    capacity_bytes: float | None = None  # logical
    physical_bytes: float | None = None
    rated_pe_cycles: float | None = None
    rated_host_bytes: float | None = None  # as a maker warrants it (TBW)
    mean_pe_cycles: float | None = None  # at the run's end, all that went before it included
    percentage_used: float | None = None  # as the drive itself says, where there are no cycles
    full_capacity_bytes: float | None = None  # of the drive that this one is a scaled model of
    full_physical_bytes: float | None = (
        None  # of the same; a small drive has a larger share of flash beyond its capacity
    )


@dataclass(frozen=True)
class Price:
    """Of a drive of its full capacity, in some currency."""

    amount: float | None = None
    currency: str = ""


def lifetime(work: Work, endurance: Endurance, price: Price) -> dict[str, float | str | bool | None]:
    """The ``lifetime`` object of summary.json: figures of the drive as it ran, and of the one that it is a model of.

    A scaled drive that takes a full drive's bytes wears out sooner in the ratio of the capacities: ``years`` and
    ``drive_writes_per_day`` are of the drive as it ran, ``full_size_years`` and ``full_size_drive_writes_per_day`` of a
    drive of the preset's capacity under the same bytes a second. A price is that drive's.
    """
    seconds = work.seconds if work.real_time else None
    cycles = endurance_bytes(endurance.rated_pe_cycles, endurance.physical_bytes)
    by_flash = years(cycles, work.nand_bytes, seconds)
    by_warranty = years(endurance.rated_host_bytes, work.host_bytes, seconds)
    lasting = by_flash if by_flash is not None else by_warranty
    full = endurance.full_capacity_bytes or endurance.capacity_bytes
    growth = ratio(full, endurance.capacity_bytes)
    full_years = None if lasting is None else lasting * (growth or 1.0)
    if growth and growth != 1 and by_flash is not None and endurance.full_physical_bytes:
        whole = endurance_bytes(endurance.rated_pe_cycles, endurance.full_physical_bytes)
        full_years = years(whole, work.nand_bytes, seconds)
    used = percentage_used(endurance.mean_pe_cycles, endurance.rated_pe_cycles)
    user_share = ratio(cycles, work.nand_bytes or None)
    warranted = ratio(endurance.rated_host_bytes, work.host_bytes or None)
    spans = user_share if user_share is not None else warranted
    until_worn = None if spans is None or not work.user_bytes else spans * work.user_bytes
    larger = growth or 1.0
    if growth and growth != 1 and user_share is not None and endurance.full_physical_bytes and endurance.physical_bytes:
        larger = endurance.full_physical_bytes / endurance.physical_bytes
    run_share = ratio(100 * work.nand_bytes if work.nand_bytes is not None else None, cycles)
    if run_share is None and work.host_bytes is not None:
        run_share = ratio(100 * work.host_bytes, endurance.rated_host_bytes)
    return {
        "drive_writes_per_day": drive_writes_per_day(work.host_bytes, seconds, endurance.capacity_bytes),
        "full_size_drive_writes_per_day": drive_writes_per_day(work.host_bytes, seconds, full),
        "percentage_used": used if used is not None else endurance.percentage_used,
        "percentage_used_by_run": run_share,
        "flash_bytes_per_operation": flash_bytes_per_operation(work.nand_bytes, work.operations),
        "user_bytes_until_worn": until_worn,
        "full_size_user_bytes_until_worn": None if until_worn is None else until_worn * larger,
        "years": lasting,
        "full_size_years": full_years,
        "years_by": None if lasting is None else "rated P/E cycles" if by_flash is not None else "rated host bytes",
        "money_per_year": money_per_year(price.amount, full_years),
        "currency": price.currency or None if price.amount is not None else None,
        "capacity_bytes": endurance.capacity_bytes,
        "full_capacity_bytes": full,
        "physical_bytes": endurance.physical_bytes,
        "full_physical_bytes": endurance.full_physical_bytes,
        "rated_pe_cycles": endurance.rated_pe_cycles or None,
        "rated_host_bytes": endurance.rated_host_bytes,
        "scaled_capacity": bool(growth and growth != 1),
        "virtual_time": not work.real_time,
    }


def in_words(figures: dict[str, float | str | bool | None] | None) -> str:
    """One line for people: what is known, and of which drive; empty where nothing is."""
    if not figures:
        return ""
    why = why_no_years(figures)
    parts = [text for text in (_rates(figures), *_flash(figures), f"years not known: {why}" if why else "") if text]
    return "; ".join(parts)


def why_no_years(figures: dict[str, float | str | bool | None]) -> str:
    """Why a drive's life under a load is not known in years, in a clause; empty where it is known."""
    if figures.get("years") is not None:
        return ""
    if figures.get("virtual_time"):
        return "in virtual time no rate is the drive's"
    if figures.get("rated_host_bytes") is None and figures.get("rated_pe_cycles") is None:
        return "neither its rated P/E cycles nor its rated writes are known"
    if figures.get("rated_host_bytes") is None and figures.get("flash_bytes_per_operation") is None:
        return "NAND bytes are not known"
    return "nothing was written"


def _rates(figures: dict[str, float | str | bool | None]) -> str:
    """Drive writes a day, years and money: of the full-size drive where the one that ran is a scaled one.

    Where there is no rate, as in virtual time, what of the user's data the drive takes until it is worn.
    """
    writes, lasting, money = (
        figures.get("full_size_drive_writes_per_day"),
        figures.get("full_size_years"),
        figures.get("money_per_year"),
    )
    parts = [
        *([] if writes is None else [f"{plain(writes)} drive writes a day"]),
        *([] if lasting is None else [f"{plain(lasting)} years"]),
        *([] if money is None else [f"{plain(money)} {figures['currency'] or 'of the price’s currency'} a year"]),
    ]
    until_worn = figures.get("full_size_user_bytes_until_worn")
    if lasting is None and until_worn is not None:
        parts.append(f"worn after {human_bytes(float(until_worn))} of user data")
    if not parts:
        return ""
    return ", ".join(parts) + (" (of the preset's whole capacity)" if figures.get("scaled_capacity") else "")


def _flash(figures: dict[str, float | str | bool | None]) -> Sequence[str]:
    used, each = figures.get("percentage_used"), figures.get("flash_bytes_per_operation")
    return [
        *([] if used is None else [f"{plain(used)} % used"]),
        *([] if each is None else [f"{plain(each)} flash bytes an operation"]),
    ]


def plain(value: object) -> str:
    """A figure with three significant digits, without an exponent where that is readable."""
    number = float(value)  # type: ignore[arg-type]
    if number and abs(number) < 0.001:
        return f"{number:.2g}"
    return f"{number:,.0f}" if abs(number) >= 100 else f"{number:.3g}"
