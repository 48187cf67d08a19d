"""The figures of an arm, or of one of its repetitions, in summary.json as one row of a table.

A run that was recorded before there was a figure has none: its cell is empty, and the column is there.
"""

from collections.abc import Mapping
from typing import Any

from spillway.figures.amplification import nand_total
from spillway.rundir.samples import HOST_CAUSES, NAND_CAUSES, STALL_SECONDS

Document = Mapping[str, Any]
Row = dict[str, Any]

LATENCIES = ("mean", "p50", "p99", "p99_9", "max")
PART = ("throughput_ops_s", "wa_app", "wa_device", "wa_total", "flash_bytes_per_operation")
BILL = ("throughput_ops_s", "wa_app", "wa_device", "wa_total", "flash_bytes_per_operation")
LIFETIME = (
    *("flash_bytes_per_operation", "drive_writes_per_day", "full_size_drive_writes_per_day", "percentage_used"),
    *("percentage_used_by_run", "years", "full_size_years", "years_by", "user_bytes_until_worn"),
    *("full_size_user_bytes_until_worn", "money_per_year", "currency", "virtual_time"),
)
SPACE = (
    *("space_amplification", "space_amplification_peak", "space_amplification_peak_t_s", "data_set_share"),
    *("over_provisioning_drive", "over_provisioning_effective"),
)
STANDING = (
    *("complete", "failure", "steady_since_s", "steady_reason", "drive", "initial_state", "initial_fill"),
    *("capacity_bytes", "scaled_capacity", "pacing", "time_scale", "unmapped_reads", "wa_device_unknown"),
)


def figures_row(figures: Document) -> Row:
    """Every figure by its column. ``figures``: an arm's object in summary.json, or one of its ``repetitions``."""
    row: Row = {name: figures.get(name) for name in ("throughput_ops_s", "user_mb_s", "duration_s", "operations")}
    row |= {name: figures.get(name) for name in ("reads", "writes")}
    for kind in ("", "read_", "write_"):
        known = _table(figures, f"{kind}latency_us")
        row |= {f"{kind}latency_{name}_us": known.get(name) for name in LATENCIES}
    row |= {name: figures.get(name) for name in ("wa_app", "wa_device", "wa_total")}
    row |= _bytes(figures)
    row |= {name: figures.get(name) for name in SPACE}
    row |= _stalls(figures)
    row |= {name: figures.get(name) for name in ("zero_seconds", "slowest_second_share")}
    lasting = _table(figures, "lifetime")
    row |= {name: lasting.get(name) for name in LIFETIME}
    row["estimate_wa_device"] = _table(figures, "estimate").get("wa_device")
    row |= {"cpu_s": figures.get("cpu_seconds"), "cpu_percent": figures.get("cpu_percent")}
    row["efficiency_mb_s_per_cpu_percent"] = figures.get("efficiency_mb_s_per_cpu_percent")
    row |= _parts(figures)
    row |= {f"spill_{name}": value for name, value in _table(figures, "spill").items()}
    return row | _standing(figures)


def _table(document: Document, name: str) -> Document:
    """A table of a document; empty where there is none."""
    value = document.get(name)
    return value if isinstance(value, Mapping) else {}


def _bytes(figures: Document) -> Row:
    """Counts of bytes, those of host and flash by cause too."""
    nand, host = figures.get("nand_bytes_programmed"), _table(figures, "host_bytes_written_by_cause")
    programmed = nand_total(dict(nand)) if isinstance(nand, Mapping) else nand
    by_cause = nand if isinstance(nand, Mapping) else {}
    return {
        "user_bytes_written": figures.get("user_bytes_written"),
        "host_bytes_written": figures.get("host_bytes_written"),
        **{f"host_bytes_written_{cause}": host.get(cause) for cause in HOST_CAUSES},
        "nand_bytes_programmed": programmed,
        **{f"nand_bytes_programmed_{cause}": by_cause.get(cause) for cause in NAND_CAUSES},
        "live_user_bytes": figures.get("live_user_bytes"),
        "space_bytes": figures.get("space_bytes"),
    }


def _stalls(figures: Document) -> Row:
    """Stalls in all, and seconds by the engine's causes, under the names that samples.csv has."""
    stalls = _table(figures, "stalls")
    by_cause = {
        cause: value.get("seconds") if isinstance(value, Mapping) else value
        for cause, value in _table(stalls, "by_cause").items()
    }
    whole = {"stall_count": stalls.get("count"), "stall_s": stalls.get("seconds")}
    return whole | {f"{STALL_SECONDS}{cause}": seconds for cause, seconds in by_cause.items()}


def _parts(figures: Document) -> Row:
    """The burst, the steady part, and all of it with the settling afterwards."""
    parts, bill = _table(figures, "parts"), _table(figures, "bill")
    row: Row = {}
    for name in ("burst", "steady"):
        part = _table(parts, name)
        row |= {f"{name}_duration_s": part.get("seconds")} | {f"{name}_{each}": part.get(each) for each in PART}
    row |= {"settled_duration_s": bill.get("seconds"), "settle_s": bill.get("settle_s")}
    return row | {f"settled_{name}": bill.get(name) for name in BILL}


def _standing(figures: Document) -> Row:
    """What the figures rest on; of one of several repetitions how it ended stands beside its figures."""
    standing = _table(figures, "standing") or figures
    pacing = _table(standing, "pacing_error_us")
    return {
        "steady": figures.get("steady"),
        **{name: standing.get(name) for name in STANDING},
        **{f"pacing_error_{name}_us": pacing.get(name) for name in ("p50", "p99")},
        "compression": figures.get("compression"),
        "seed": figures.get("seed"),
        "directory": figures.get("directory"),
        "standing": _table(figures, "standing").get("words"),
    }
