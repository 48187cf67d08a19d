"""The total cost of a run: its measured phases and the settling after them, counted together.

A store that defers work looks fast until the work is due. So the phases ``settle`` after it (what was spilled brought
back, memtables flushed, compactions ended) are counted together with what is measured: the time until the same user
writes are in their place, and the bytes that it took.
"""

from collections.abc import Sequence
from statistics import median
from typing import Any

from spillway.figures.amplification import amplification, ratio
from spillway.figures.lifetime import flash_bytes_per_operation
from spillway.rundir.samples import Row, nand_bytes

Document = dict[str, Any]


def bill(rows: Sequence[Row], phases: Sequence[Document]) -> Document | None:
    """Figures over the measured phases and every ``settle`` after their begin: user, host and NAND bytes, their ratios,
    seconds and operations a second. None where the run has no such ``settle``. ``rows``: samples of all phases."""
    begin = min((row["t_s"] for row in rows if row["measured"]), default=None)
    settles = {phase["name"] for phase in phases if phase["workload"] == "settle"}
    # One before the measured phases settles what a load has left.
    settling = {row["phase"] for row in rows if row["phase"] in settles and begin is not None and row["t_s"] > begin}
    if not settling:
        return None
    counted = [row for row in rows if row["measured"] or row["phase"] in settling]
    seconds = sum(row["dt_s"] for row in counted)
    operations = sum(row["reads"] + row["writes"] for row in counted)
    user, host = _sum(counted, "user_bytes_written"), _sum(counted, "host_bytes_written")
    flash = [nand_bytes(row) for row in counted]
    nand = None if None in flash else sum(count for count in flash if count is not None)
    ratios = amplification(user, host, nand)
    return {
        "seconds": seconds,
        "settle_s": sum(row["dt_s"] for row in counted if row["phase"] in settling),
        "throughput_ops_s": ratio(operations, seconds),
        "host_bytes_written": host,
        "nand_bytes_programmed": nand,
        "wa_app": ratios.wa_app,
        "wa_device": ratios.wa_device,
        "wa_total": ratios.wa_total,
        "flash_bytes_per_operation": flash_bytes_per_operation(nand, operations),
        "cpu_seconds": _sum(counted, "cpu_s"),
    }


def _sum(rows: Sequence[Row], column: str) -> float | None:
    """Over all rows; None where one has no such figure."""
    cells = [row.get(column) for row in rows]
    return None if any(cell in (None, "") for cell in cells) else sum(cell for cell in cells if cell is not None)


def zero_seconds(rows: Sequence[Row]) -> int | None:
    """Whole seconds of the measured phases in which no operation ended; None where samples are longer than one."""
    phases = _operations_by_second(rows)
    return None if phases is None else sum(seconds.count(0) for seconds in phases)


def slowest_second_share(rows: Sequence[Row]) -> float | None:
    """Operations in a measured phase's slowest second over those in its median second; of several phases the least.

    So a phase at a low rate is not held against one at a high rate. None where samples are longer than a second, or no
    phase has as many as ``LEAST_SECONDS``."""
    phases = _operations_by_second(rows)
    shares = [ratio(min(each), median(each)) for each in phases or [] if len(each) >= LEAST_SECONDS]
    known = [share for share in shares if share is not None]
    return min(known, default=None)


LEAST_SECONDS = 3  # of a phase whose median second is not its slowest or fastest one


def _operations_by_second(rows: Sequence[Row]) -> list[list[float]] | None:
    """Operations in each second of each measured phase; None where samples are longer than a second.

    Each phase is cut into seconds from its begin; a rest shorter than half a second is no second, and a longer one is
    counted as it would be at its rate.
    """
    kept = [row for row in rows if row["measured"]]
    if any(row["dt_s"] > _LONGEST_SAMPLE_S for row in kept):
        return None
    phases = []
    for phase in dict.fromkeys(row["phase"] for row in kept):
        own = [row for row in kept if row["phase"] == phase]
        begin = own[0]["t_s"] - own[0]["dt_s"]
        done: dict[int, float] = {}
        length: dict[int, float] = {}
        for row in own:
            second = int(row["t_s"] - row["dt_s"] / 2 - begin)
            done[second] = done.get(second, 0) + row["reads"] + row["writes"]
            length[second] = length.get(second, 0.0) + row["dt_s"]
        phases.append([count / length[second] for second, count in done.items() if length[second] >= 0.5])
    return phases


# A sample of one second ends a moment late.
_LONGEST_SAMPLE_S = 1.5
