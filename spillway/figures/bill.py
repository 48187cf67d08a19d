"""The total cost of a run: its measured phases and the settling after them, counted together.

A store that defers work looks fast until the work is due. So the phases ``settle`` (what was spilled brought back,
memtables flushed, compactions ended) are counted together with what is measured: the time until the same user writes
are in their place, and the bytes that it took.
"""

from collections.abc import Sequence
from typing import Any

from spillway.figures.amplification import amplification, ratio
from spillway.figures.lifetime import flash_bytes_per_operation
from spillway.rundir.samples import Row, nand_bytes

Document = dict[str, Any]


def bill(rows: Sequence[Row], phases: Sequence[Document]) -> Document | None:
    """Figures over the measured phases and every ``settle``: user, host and NAND bytes, their ratios, seconds and
    operations a second. None where the run has no ``settle``. ``rows``: samples of all phases, in order."""
    settling = {phase["name"] for phase in phases if phase["workload"] == "settle"}
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
    """Whole seconds of the measured phases in which no operation ended; None where samples are longer than one.

    Each phase is cut into seconds from its begin; a rest shorter than half a second is no second.
    """
    kept = [row for row in rows if row["measured"]]
    if any(row["dt_s"] > _LONGEST_SAMPLE_S for row in kept):
        return None
    count = 0
    for phase in dict.fromkeys(row["phase"] for row in kept):
        own = [row for row in kept if row["phase"] == phase]
        begin = own[0]["t_s"] - own[0]["dt_s"]
        done: dict[int, float] = {}
        length: dict[int, float] = {}
        for row in own:
            second = int(row["t_s"] - row["dt_s"] / 2 - begin)
            done[second] = done.get(second, 0) + row["reads"] + row["writes"]
            length[second] = length.get(second, 0.0) + row["dt_s"]
        count += sum(1 for second, operations in done.items() if operations == 0 and length[second] >= 0.5)
    return count


# A sample of one second ends a moment late.
_LONGEST_SAMPLE_S = 1.5
