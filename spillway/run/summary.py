"""The figures of summary.json and their standing, from what a run recorded."""

from collections.abc import Sequence
from typing import Any

from spillway.figures import estimate, space
from spillway.figures.amplification import amplification, nand_total, ratio
from spillway.figures.bill import bill, slowest_second_share, zero_seconds
from spillway.figures.lifetime import Endurance, Price, Work, lifetime
from spillway.figures.parts import parts
from spillway.plan import kept
from spillway.plan.arm import Arm
from spillway.plan.compression import compression_of
from spillway.quantity import human_bytes
from spillway.run.until import verdict_on
from spillway.rundir.samples import HOST_CAUSES, NAND_CAUSES, STALL_SECONDS, Row, measured, stall_seconds
from spillway.rundir.statistics import SPILL_COUNTS
from spillway.steady import Verdict

Document = dict[str, Any]

END = ("complete", "failure", "steady_reason")  # of a repetition's standing: how it ended, and why it is not steady
LATENCIES = ("mean", "p50", "p99", "p99_9", "max")


def summarise(
    arm: Arm,
    seed: int,
    result: Document,
    rows: Sequence[Row],
    phases: Sequence[Document],
    failure: str,
    stalls: Sequence[Row] = (),
) -> Document:
    """One arm's object in summary.json, from the ``result`` event and what was recorded. ``failure``: why it ended."""
    under: Document | None = result.get("drive")
    start: Document | None = result.get("start")
    figures = result if set(result) - {"drive", "start", "versions"} else _from_rows(rows, stalls)
    if under is not None:
        figures = figures | {"nand_bytes_programmed": _programmed(under)}
    user, host = figures.get("user_bytes_written"), figures.get("host_bytes_written")
    nand = figures.get("nand_bytes_programmed")
    ratios = amplification(user, host, nand_total(nand))
    verdict = verdict_on(arm, rows, phases, host)
    duration = sum(phase["duration_s"] for phase in phases if phase["measured"]) or figures.get("duration_s") or 0.0
    user_mb_s = ratio((_moved(phases) or user or 0) / 1e6, duration)
    cpu_percent = ratio(100 * (figures.get("cpu_seconds") or 0.0), duration)
    pacing = figures.get("pacing_error_us")
    complete = bool(result.get("complete")) and not failure
    lasting = _lifetime(arm, figures, duration, under)
    return {
        "throughput_ops_s": figures.get("throughput_ops_s"),
        "user_mb_s": user_mb_s,
        "latency_us": _latency(figures.get("latency_us")),
        "read_latency_us": _latency(figures.get("read_latency_us")),
        "write_latency_us": _latency(figures.get("write_latency_us")),
        "reads": figures.get("reads"),
        "writes": figures.get("writes"),
        "wa_app": ratios.wa_app,
        "wa_device": ratios.wa_device,
        "wa_total": ratios.wa_total,
        "drive": under,
        "estimate": _estimate(arm, figures, duration, under),
        "lifetime": lasting,
        "space_amplification": ratio(figures.get("space_bytes"), figures.get("live_user_bytes")),
        **_space(arm, figures, rows, lasting["capacity_bytes"], start),
        "stalls": figures.get("stalls") or {"count": 0, "seconds": 0.0, "by_cause": {}},
        **_seconds(rows),
        "steady": verdict.steady,
        "parts": parts(rows, verdict),
        "pacing_error_us": {"p50": pacing["p50"], "p99": pacing["p99"]} if pacing else None,
        "cpu_seconds": figures.get("cpu_seconds"),
        "cpu_percent": cpu_percent,
        "efficiency_mb_s_per_cpu_percent": ratio(user_mb_s, cpu_percent),  # K2
        "spill": _spill(rows),
        "bill": bill(rows, phases),
        "kept": {"from": start, "to": result.get("kept")} if start or result.get("kept") else None,
        "standing": standing(arm, verdict, pacing, complete, failure, _unmapped_reads(figures), under, start),
        **_engine(arm, result),
        "seed": seed,
        "duration_s": duration,
        "operations": figures.get("operations"),
        "kind_latency_us": figures.get("kind_latency_us"),  # of YCSB's phases
        **_bytes(arm, figures),
    }


def _seconds(rows: Sequence[Row]) -> Document:
    """How even a run was, second by second."""
    return {"zero_seconds": zero_seconds(rows), "slowest_second_share": slowest_second_share(rows)}


def _engine(arm: Arm, result: Document) -> Document:
    """The versions of the engine's libraries, and its compression: what it reports, else what its options say."""
    compression = result.get("compression") or compression_of(arm.settings["engine.name"], arm.engine_options)
    return {"versions": result.get("versions"), "compression": compression}


def _moved(phases: Sequence[Document]) -> int:
    """Bytes of user data that the measured phases wrote and read."""
    return sum(
        (phase.get("user_bytes_written") or 0) + (phase.get("user_bytes_read") or 0)
        for phase in phases
        if phase["measured"]
    )


def _bytes(arm: Arm, figures: Document) -> Document:
    """Counts of bytes, from which the ratios follow."""
    return {
        "user_bytes_written": figures.get("user_bytes_written"),
        "host_bytes_written": figures.get("host_bytes_written"),
        "host_bytes_read": figures.get("host_bytes_read"),
        "host_bytes_written_by_cause": figures.get("host_bytes_written_by_cause"),
        "host_bytes_by_cause_counted_at": "drive" if arm.settings["drive.kind"] == "emulated" else "file_system",
        "nand_bytes_programmed": figures.get("nand_bytes_programmed"),
        "live_user_bytes": figures.get("live_user_bytes"),
        "space_bytes": figures.get("space_bytes"),
    }


def _programmed(under: Document) -> Document | None:
    """NAND bytes that real drives counted, in the form of those of a drive model; None where they are not known."""
    nand = under["nand_bytes_programmed"]
    return None if nand is None else {"all": nand}


def _estimate(arm: Arm, figures: Document, seconds: float, under: Document | None) -> Document | None:
    """What a drive model made of a plain directory's writes: figures of their own, never a part of ``wa_device``."""
    found: Document | None = figures.get("estimate")
    if found is None:
        return None
    counted = under["host_bytes_written"] if under else None
    return estimate.document(found, _work(arm, figures, seconds), counted, arm.estimate_whole_drive(), _price(arm))


def _work(arm: Arm, figures: Document, seconds: float) -> Work:
    """What the measured phases did to the drive."""
    settings = arm.settings
    emulated = settings["drive.kind"] == "emulated"
    return Work(
        seconds / settings["drive.time_scale"] if emulated else seconds,  # of the drive's time
        figures.get("operations"),
        figures.get("user_bytes_written"),
        figures.get("host_bytes_written"),
        nand_total(figures.get("nand_bytes_programmed")),
        real_time=not emulated or settings["drive.pacing"] == "real",
    )


def _price(arm: Arm) -> Price:
    return Price(arm.settings["cost.drive_price"], arm.settings["cost.currency"])


def _lifetime(arm: Arm, figures: Document, seconds: float, under: Document | None) -> Document:
    """What the measured phases took of the drive's life, as far as its endurance is known."""
    wear = figures.get("wear") or {}
    devices = under["devices"] if under else []
    sizes = [each["capacity_bytes"] for each in devices]
    used = [each["percentage_used"] for each in devices if each.get("percentage_used") is not None]
    endurance = Endurance(
        capacity_bytes=sum(sizes) if sizes and None not in sizes else arm.capacity_bytes(),
        physical_bytes=wear.get("physical_bytes"),
        rated_pe_cycles=wear.get("rated_pe_cycles"),
        rated_host_bytes=arm.settings["drive.rated_writes"],
        mean_pe_cycles=wear.get("mean_pe_cycles"),
        percentage_used=max(used, default=None),
        full_capacity_bytes=None if under else arm.preset_capacity_bytes(),
        full_physical_bytes=None if under else arm.preset_physical_bytes(),
    )
    return lifetime(_work(arm, figures, seconds), endurance, _price(arm))


def _space(
    arm: Arm, figures: Document, rows: Sequence[Row], capacity_bytes: float | None, start: Document | None
) -> Document:
    """What the data set takes of the drive, and the spare flash that it leaves."""
    get = arm.settings
    fill = {"trimmed": 0.0, "file": None}.get(get["initial.kind"], get["initial.fill"])
    return space.document(
        rows,
        figures.get("space_bytes"),
        figures.get("live_user_bytes"),
        capacity_bytes,
        (figures.get("wear") or {}).get("physical_bytes"),
        space.mapped_bytes(capacity_bytes, get["fs.size"], fill, start),
    )


def _latency(figures: Document | None) -> Document:
    """A latency's figures; all None where no operation ended."""
    known = figures if figures and figures.get("count", 1) else {}
    return {name: known.get(name) for name in LATENCIES}


def _spill(rows: Sequence[Row]) -> Document | None:
    """What went to the spill store and came back, over the whole run; None for an engine without one."""
    kept = [row for row in rows if row.get("spill_diverted_writes") is not None]
    if not kept:
        return None
    sums = {name: sum(row[f"spill_{name}"] for row in kept) for name in SPILL_COUNTS}
    return sums | {"most_live_bytes": max(row["spill_live_bytes"] for row in kept)}


def _from_rows(rows: Sequence[Row], stalls: Sequence[Row]) -> Document:
    """What can be said of a run that ended without a result, from the samples it left."""
    kept = measured(rows)
    seconds = sum(row["dt_s"] for row in kept)
    operations = sum(row["reads"] + row["writes"] for row in kept)
    return {
        "duration_s": seconds,
        "operations": operations,
        "throughput_ops_s": ratio(operations, seconds),
        "user_bytes_written": sum(row["user_bytes_written"] for row in kept),
        "host_bytes_written": _sum(kept, "host_bytes_written"),
        "host_bytes_read": _sum(kept, "host_bytes_read"),
        "host_bytes_written_by_cause": _sums(kept, "host_bytes_written", HOST_CAUSES),
        "nand_bytes_programmed": _sums(kept, "nand_bytes_programmed", NAND_CAUSES),
        "cpu_seconds": sum(row.get("cpu_s") or 0.0 for row in kept),
        "stalls": _stalls(kept, stalls),
    }


def _stalls(rows: Sequence[Row], stalls: Sequence[Row]) -> Document:
    """``stalls`` that began within ``rows``, and the seconds that these spent in stalls, by the engine's causes."""
    columns = dict.fromkeys(name for row in rows for name in row if name.startswith(STALL_SECONDS))
    return {
        "count": sum(any(row["t_s"] - row["dt_s"] <= each["t_s"] < row["t_s"] for row in rows) for each in stalls),
        "seconds": sum(stall_seconds(row) for row in rows),
        "by_cause": {name.removeprefix(STALL_SECONDS): sum(row[name] for row in rows) for name in columns},
    }


def _sums(rows: Sequence[Row], figure: str, causes: Sequence[str]) -> Document | None:
    """A figure by cause over all rows; None where they have no such columns, as without a drive model."""
    sums = {cause: _sum(rows, f"{figure}_{cause}") for cause in causes}
    return None if None in sums.values() else sums


def _sum(rows: Sequence[Row], column: str) -> float | None:
    """A column's sum; None where there are no rows, or one has no such figure."""
    cells = [row.get(column) for row in rows]
    return sum(cell for cell in cells if cell is not None) if cells and None not in cells else None


def _unmapped_reads(figures: Document) -> int:
    return int((figures.get("counters") or {}).get("unmapped_reads") or 0)


def standing(
    arm: Arm,
    verdict: Verdict,
    pacing: Document | None,
    complete: bool,
    failure: str,
    unmapped_reads: int = 0,
    under: Document | None = None,
    start: Document | None = None,
) -> Document:
    """What a figure of this arm rests on; ``words`` says it in one sentence."""
    emulated = arm.settings["drive.kind"] == "emulated"
    capacity, full = arm.capacity_bytes(), arm.preset_capacity_bytes()
    scaled = bool(emulated and capacity and full and capacity != full)
    paced = emulated and arm.settings["drive.pacing"] == "real"
    facts: Document = {
        "complete": complete,
        "failure": failure or None,
        "drive": (arm.settings["drive.preset"] or arm.settings["drive.preset_file"] or "explicit")
        if emulated
        else None,
        "initial_state": ("kept" if start else arm.settings["initial.kind"]) if emulated else None,
        "initial_fill": arm.settings["initial.fill"] if emulated and not start else None,
        "initial_partition": arm.settings["initial.partition"] if emulated and not start else None,
        "kept": kept.in_words(start) if start else None,
        "capacity_bytes": capacity,
        "scaled_capacity": scaled,
        "time_scale": arm.settings["drive.time_scale"] if paced else None,
        "pacing": arm.settings["drive.pacing"] if emulated else None,
        "pacing_error_us": {"p50": pacing["p50"], "p99": pacing["p99"]} if pacing and paced else None,
        "unmapped_reads": unmapped_reads,
        "wa_device_unknown": under["why_unknown"] if under else None,
        "drive_bytes_written": under["host_bytes_written"] if under else None,
        "process_bytes_written": under["process_bytes_written"] if under else None,
        "devices": [each["name"] for each in under["devices"]] if under else None,
        "steady": verdict.steady,
        "steady_since_s": verdict.since_s,
        "steady_reason": verdict.reason,
        "steady_tests": [each.document() for each in verdict.tests],
    }
    return facts | {"words": _words(facts)}


def _words(facts: Document) -> str:
    parts = []
    if facts["drive"] is None:
        start = f", {facts['kept']}" if facts["kept"] else ""
        parts.append(f"a plain directory, no drive model{_under(facts)}{start}")
    else:
        size = f", {human_bytes(facts['capacity_bytes'])}" if facts["capacity_bytes"] else ""
        scaled = ", scaled down from the preset" if facts["scaled_capacity"] else ""
        partition = facts["initial_partition"] or "as_is"
        state = f"{facts['initial_state']} at the start"
        start = facts["kept"] or state + ("" if partition == "as_is" else f", its partition {partition}")
        parts.append(f"emulated drive “{facts['drive']}”{size}{scaled}, {start}")
    if facts["pacing"] == "off":
        parts.append("in virtual time, so latencies and rates are not the drive's")
    elif facts["time_scale"] is not None and facts["time_scale"] != 1:
        parts.append(f"time dilated {facts['time_scale']:g}×")
    if facts["pacing_error_us"]:
        error = facts["pacing_error_us"]
        parts.append(f"pacing error {_micros(error['p50'])} median, {_micros(error['p99'])} p99")
    if facts["unmapped_reads"]:
        parts.append(f"{facts['unmapped_reads']:,} reads of what was never written, served without flash")
    parts.append(("steady: " if facts["steady"] else "not steady: ") + facts["steady_reason"])
    if facts["failure"]:
        parts.insert(0, f"FAILED ({facts['failure'].rstrip('.')})")
    elif not facts["complete"]:
        parts.insert(0, "INCOMPLETE (ended early)")
    sentence = "; ".join(parts) + "."
    return sentence[0].upper() + sentence[1:]


def _under(facts: Document) -> str:
    """What is known of the drives under a plain directory."""
    on = f" on {', '.join(facts['devices'])}" if facts["devices"] else ""
    wrote, handed = facts["drive_bytes_written"], facts["process_bytes_written"]
    known = wrote is not None and handed is not None
    own = f"; it wrote {human_bytes(wrote)}, and this process gave the kernel {human_bytes(handed)}" if known else ""
    why = facts["wa_device_unknown"]
    return on + own + (f"; wa_device unknown: {why}" if why else "")


def _micros(value: float) -> str:
    return f"{value:.0f} µs" if value < 1000 else f"{value / 1000:.3g} ms"


def typical(repetitions: Sequence[Document]) -> Document:
    """Of several repetitions the one with the median throughput, whole, and what the others had.

    A run's figures belong together, so one real run stands for the arm and no mean of several does. One that is not
    complete stands for it only where none is.
    """
    whole = [each for each in repetitions if (each.get("standing") or {}).get("complete", True)]
    ranked = sorted(whole or repetitions, key=lambda each: each["throughput_ops_s"] or 0.0)
    chosen = ranked[(len(ranked) - 1) // 2]
    if len(repetitions) == 1:
        return chosen
    keys = (
        *("directory", "seed", "throughput_ops_s", "wa_app", "wa_device", "wa_total", "steady"),
        *("read_latency_us", "write_latency_us", "zero_seconds", "efficiency_mb_s_per_cpu_percent", "bill"),
        *("lifetime", "user_mb_s", "latency_us", "space_amplification", "stalls", "duration_s"),
        *("space_amplification_peak", "space_amplification_peak_t_s", "data_set_share"),
        *("reads", "writes", "slowest_second_share", "parts", "spill", "host_bytes_written"),
    )
    others = [
        {key: each.get(key) for key in keys} | {name: (each.get("standing") or {}).get(name) for name in END}
        for each in repetitions
    ]
    return chosen | {"repetitions": others}


def standing_throughout(figures: Document) -> tuple[bool, str]:
    """Of an arm's figures: (steady in every repetition, the standing in words)."""
    words = str(figures["standing"]["words"])
    each = [bool(one.get("steady")) for one in figures.get("repetitions") or [figures]]
    if all(each) or not any(each):
        return all(each), words
    return False, f"{words} {sum(each)} of {len(each)} repetitions were steady."
