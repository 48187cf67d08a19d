"""What a report says in words: the headline, the key figures and the short standing under every figure."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from spillway.figures import estimate
from spillway.figures.lifetime import plain, why_no_years
from spillway.figures.space import in_words as space_words
from spillway.lint.table import Linted
from spillway.quantity import human_bytes
from spillway.report.arm_outcomes import SPILLWAY, stall_handling_of
from spillway.report.series import die_busy, link_utilisation, mean_during
from spillway.report.style import stall_words
from spillway.rundir.directory import ArmRecord, RunRecord
from spillway.rundir.samples import measured

Document = dict[str, Any]

NOTHING = "–"
ENGINES = {
    "rocksdb": "RocksDB",
    "spillway": "Spillway",
    "leveldb": "LevelDB",
    "leveldb-vlog": "LevelDB with a value log",
    "wiredtiger": "WiredTiger",
}


@dataclass(frozen=True)
class KeyFigure:
    """A number on the first screen: what it is, the number, its unit and a remark."""

    label: str
    value: str
    unit: str
    remark: str = ""


def number(value: float | None, decimals: int | None = None) -> str:
    """Three significant digits or so, with thousands separated; a dash for what is not known."""
    if value is None:
        return NOTHING
    if decimals is None:
        decimals = 0 if abs(value) >= 100 else 1 if abs(value) >= 10 else 2
    return f"{value:,.{decimals}f}"


def micros(value: float | None) -> str:
    """A latency in the unit that suits it."""
    if value is None:
        return NOTHING
    if value >= 1e6:
        return f"{number(value / 1e6)} s"
    return f"{number(value / 1e3)} ms" if value >= 1e3 else f"{number(value)} µs"


def percent(share: float) -> str:
    """A share of a whole, in whole percent."""
    return f"{100 * share:.0f}\u00a0%"


def about(value: float) -> str:
    """A latency for a remark: two significant digits are enough."""
    if value < 1e3:
        return f"{value:,.0f} µs"
    return f"{value / 1e3:,.0f} ms" if value >= 1e5 else f"{value / 1e3:,.2g} ms"


def stall_seconds_by_cause(summary: Document) -> dict[str, float]:
    """Seconds of stall by cause, the longest first; causes carry seconds, or {count, seconds}."""
    causes = (summary.get("stalls") or {}).get("by_cause") or {}
    seconds = {
        cause: value.get("seconds", 0.0) if isinstance(value, dict) else value for cause, value in causes.items()
    }
    return dict(sorted(((c, s) for c, s in seconds.items() if s), key=lambda item: -item[1]))


def engine_name(plan: Document) -> str:
    """The engine's name as its makers write it."""
    name = str((plan.get("engine") or {}).get("name", "the store"))
    return ENGINES.get(name, name)


def headline(run: RunRecord, plan: Document) -> str:
    """The run in one or two sentences."""
    if not run.arms:
        return "This run was ended before it measured anything."
    if run.manifest.get("failure"):
        return f"This run failed: {str(run.manifest['failure']).rstrip('.')}."
    opening = "" if run.manifest.get("complete") else "Ended early. "
    if len(run.arms) == 1:
        return opening + _one(run.arms[0], engine_name(plan))
    return opening + _several(run.arms, plan)


def worth(arms: Sequence[ArmRecord], linted: Linted) -> str:
    """The standing of the figures, in one line: steady or not, and how many of the seven pitfalls were found."""
    steady = sum(bool(arm.summary["steady"]) for arm in arms)
    if len(arms) == 1:
        first = "Steady" if steady else "Not steady"
    elif steady in (0, len(arms)):
        first = f"{'All' if steady else 'None'} of {len(arms)} runs steady"
    else:
        first = f"{steady} of {len(arms)} runs steady"
    verdicts = [remark.verdict for remark in linted.remarks]
    answered, unknown = verdicts.count("answered"), verdicts.count("cannot tell")
    found = linted.open + answered
    each = "all open" if not answered else "all answered" if not linted.open else f"{linted.open} open"
    pitfalls = f"{found} of the seven pitfalls found, {each}" if found else "none of the seven pitfalls found"
    return f"{first}; {pitfalls}{f', {unknown} not to be told' if unknown else ''}."


def _one(arm: ArmRecord, engine: str) -> str:
    summary = arm.summary
    if not summary["throughput_ops_s"]:
        return f"{engine} finished no operation."
    rate = f"{engine} did {number(summary['throughput_ops_s'], 0)} operations a second"
    stalls = summary["stalls"]["seconds"]
    if stalls < 0.005 * (summary["duration_s"] or 1):
        first = f"{rate} for {number(summary['duration_s'], 0)} s and hardly ever held a writer back."
        if not stalls:
            first = f"{rate} for {number(summary['duration_s'], 0)} s without a single stall."
    else:
        held = f"{number(stalls, 0 if stalls >= 10 else 1)} of {number(summary['duration_s'], 0)} seconds"
        first = f"{rate}, and held its writers back for {held}"
        causes = stall_seconds_by_cause(summary)
        first += f", mostly for {stall_words(next(iter(causes)))}." if causes else "."
    return f"{first} {_cost(summary)}".strip()


def _cost(summary: Document) -> str:
    if summary["wa_total"] is not None:
        return f"Each byte of user data became {number(summary['wa_total'])} bytes on flash."
    if summary["wa_app"] is not None:
        return f"Each byte of user data became {number(summary['wa_app'])} bytes at the drive."
    return ""


def _several(arms: Sequence[ArmRecord], plan: Document) -> str:
    """The arm of Spillway against the best of the others, whoever is ahead; without one, or without others, the fastest
    against the next."""
    known = sorted((arm for arm in arms if arm.summary["throughput_ops_s"]), key=_slowness)
    if not known:
        return f"Of {len(arms)} arms none finished an operation."
    ours = [arm for arm in arms if stall_handling_of(plan, arm.name).system == SPILLWAY]
    if not 0 < len(ours) < len(arms):
        one, others, whose = known[0], known[1:], "what the next, “{}”, did"
    else:
        one, others = min(ours, key=_slowness), [arm for arm in known if arm not in ours]
        whose = "the best of the others, “{}”"
        if one not in known:
            return f"“{one.name}” finished no operation; the best of the others, “{others[0].name}”, {_did(others[0])}."
        if not others:
            return f"“{one.name}” {_did(one)}, and none of the others finished one."
    if not others or known[0].summary["throughput_ops_s"] < 1.02 * known[-1].summary["throughput_ops_s"]:
        return f"{len(arms)} arms, and their throughput is within 2 %."
    factor = number(one.summary["throughput_ops_s"] / others[0].summary["throughput_ops_s"])
    chosen = f", the fastest of {len(ours)} arms of Spillway," if len(ours) > 1 and others[0] not in ours else ""
    said = f"“{one.name}”{chosen} {_did(one)}, {factor} times {whose.format(others[0].name)}."
    return " ".join(part for part in (said, _longest_write(one, others), _to_the_end(one, others)) if part)


def _slowness(arm: ArmRecord) -> float:
    return -(arm.summary["throughput_ops_s"] or 0.0)


def _did(arm: ArmRecord) -> str:
    return f"did {number(arm.summary['throughput_ops_s'], 0)} operations a second"


def _longest_write(one: ArmRecord, others: Sequence[ArmRecord]) -> str:
    """Its longest write beside the best of the others'; nothing where one of them wrote nothing."""
    its = (one.summary.get("write_latency_us") or {}).get("max")
    longest = [((arm.summary.get("write_latency_us") or {}).get("max"), arm.name) for arm in others]
    known = [(value, name) for value, name in longest if value]
    if not its or not known:
        return ""
    least, name = min(known)
    return f"Its longest write took {about(its)}, the best of the others’ {about(least)} (“{name}”)."


def _to_the_end(one: ArmRecord, others: Sequence[ArmRecord]) -> str:
    """Its whole bill, with the work that was put off, beside the best rival's; nothing where no phase settles it."""

    def of(arm: ArmRecord, figure: str) -> float:
        return float((arm.summary.get("bill") or {}).get(figure) or 0.0)

    rival = max(others, key=lambda arm: of(arm, "throughput_ops_s"))
    rate, of_rival = of(one, "throughput_ops_s"), of(rival, "throughput_ops_s")
    if not rate or not of_rival:
        return ""
    said = f"Counted until everything was settled, {number(rate, 0)}: {number(rate / of_rival)} times “{rival.name}”"
    wrote = [(of(arm, "wa_total"), arm.name) for arm in others if of(arm, "wa_total")]
    if not of(one, "wa_total") or not wrote:
        return f"{said}."
    least, name = min(wrote)
    flash = f"{number(of(one, 'wa_total'))} bytes on flash for each of the user’s, to {number(least)} of “{name}”"
    return f"{said}, and {flash}."


def idle_drive(arm: ArmRecord) -> str:
    """What the drive was doing while writers waited (K19), in one sentence."""
    rows = measured(arm.rows)
    during = mean_during(rows, die_busy, stalled=True)
    link = mean_during(rows, link_utilisation, stalled=True)
    if during is None:
        return ""
    outside = mean_during(rows, die_busy, stalled=False)
    sentence = f"While writers were held back the flash dies were busy {percent(during)} of the time"
    if link is not None:
        sentence += f" and the host link {percent(link)}"
    return sentence + (f"; outside of stalls the dies were busy {percent(outside)}." if outside is not None else ".")


def _write_amplification(summary: Document) -> KeyFigure:
    split = f"app {number(summary['wa_app'])} × device {device_ratio(summary)}{_why_unknown(summary)}"
    if summary["wa_total"] is not None:
        return KeyFigure("Write amplification", number(summary["wa_total"]), "× in all", split)
    if summary["wa_app"] is not None:
        return KeyFigure("Write amplification", number(summary["wa_app"]), "× to the drive", split)
    why = (summary.get("drive") or {}).get("why_no_device")
    return KeyFigure("Write amplification", NOTHING, "", f"bytes at the drive are not known{f': {why}' if why else ''}")


def device_ratio(summary: Document) -> str:
    """wa_device in words; "unknown" of a real drive that does not count NAND bytes."""
    told = summary["wa_device"] is not None or not summary.get("drive")
    return number(summary["wa_device"]) if told else "unknown"


def _why_unknown(summary: Document) -> str:
    """Why a real drive's wa_device is not known, between what it lies, and what a drive model makes of it."""
    drive, model = summary.get("drive") or {}, estimate.of(summary)
    why, bounds = drive.get("why_unknown"), drive.get("wa_device_interval")
    within = f" (between {number(bounds[0])} and {number(bounds[1])})" if why and bounds else ""
    return f"{f': {why}' if why else ''}{within}{f'; {_estimate(model)}' if model else ''}"


def _estimate(model: Document) -> str:
    made = "failed" if model["wa_device"] is None else number(model["wa_device"])
    parts = [
        f"estimate by the model “{model['preset']}”, given the run's writes as its own file system places them: {made}"
    ]
    lasting = estimate.lifetime_in_words(model)
    parts += [f"its lifetime: {lasting}"] if lasting else []
    return "; ".join([*parts, f"its host bytes: {estimate.counts_in_words(model)}"])


def _lifetime(summary: Document) -> KeyFigure:
    """Years at the run's rate; where none are known, what the load takes of the flash."""
    found = summary.get("lifetime") or {}
    lasting, writes = found.get("full_size_years"), found.get("full_size_drive_writes_per_day")
    each, money = found.get("flash_bytes_per_operation"), found.get("money_per_year")
    until_worn = found.get("full_size_user_bytes_until_worn") if lasting is None else None
    remarks = [
        *([] if writes is None else [f"{plain(writes)} drive writes a day"]),
        *([] if until_worn is None else [f"worn after {human_bytes(until_worn)} of user data"]),
        *([] if money is None else [f"{plain(money)} {found.get('currency') or ''} a year".replace("  ", " ")]),
        *([] if each is None else [f"{plain(each)} flash bytes an operation"]),
    ]
    whole = lasting is not None or until_worn is not None
    scaled = ["of the preset's whole capacity"] if found.get("scaled_capacity") and whole else []
    if lasting is not None:
        return KeyFigure("Lifetime", plain(lasting), "years at this rate", ", ".join(remarks + scaled))
    if each is not None:
        remarks = [*remarks[:-1], *scaled, f"years not known: {why_no_years(found)}"]
        return KeyFigure("Flash bytes per operation", plain(each), "bytes", ", ".join(remarks))
    return KeyFigure("Lifetime", NOTHING, "", ", ".join([*remarks, f"years not known: {why_no_years(found)}"]))


def _space_in_words(summary: Document) -> list[str]:
    """Bytes held, the peak, the data set's share of the drive, and the spare flash that is left (pitfalls 5 and 6)."""
    held = summary["space_bytes"]
    return [*([] if held is None else [f"{human_bytes(held)} held"]), *space_words(summary)]


def key_figures(arm: ArmRecord) -> list[KeyFigure]:
    """The first screen's numbers."""
    summary = arm.summary
    latency = summary["latency_us"]
    stalls = summary["stalls"]
    duration = summary["duration_s"]
    share = stalls["seconds"] / duration if duration else None
    return [
        KeyFigure(
            "Throughput",
            number(summary["throughput_ops_s"], 0),
            "operations/s",
            f"{number(summary['user_mb_s'])} MB/s of user data",
        ),
        KeyFigure(
            "Latency, p99",
            micros(latency["p99"]),
            "",
            f"p99.9 {micros(latency['p99_9'])}, max {micros(latency['max'])}",
        ),
        KeyFigure(
            "In stalls",
            NOTHING if share is None else f"{100 * share:.0f}\u00a0%",
            "of the time",
            f"{stalls['count']} for {number(stalls['seconds'], 1)} s",
        ),
        _write_amplification(summary),
        _lifetime(summary),
        KeyFigure(
            "Space amplification",
            number(summary["space_amplification"]),
            "×",
            ", ".join(_space_in_words(summary)),
        ),
    ]


def pacing_p99_us(arm: ArmRecord) -> float:
    """How late the drive answered in the worst hundredth, in us; 0 where that is not known."""
    return float((arm.summary["standing"]["pacing_error_us"] or {}).get("p99", 0.0))


def short_standing(arm: ArmRecord, *, pacing: bool = True) -> str:
    """The standing that goes under every figure of an arm."""
    facts = arm.summary["standing"]
    parts = []
    if facts["failure"]:
        parts.append("failed run")
    elif not facts["complete"]:
        parts.append("incomplete run")
    if facts["drive"] is None:
        parts.append("plain directory, no drive model")
    else:
        parts.append(f"{facts['initial_state']} drive at the start")
        if facts["capacity_bytes"]:
            parts.append(human_bytes(facts["capacity_bytes"]) + (" (scaled down)" if facts["scaled_capacity"] else ""))
    if facts["pacing"] == "off":
        parts.append("virtual time")
    elif facts["time_scale"] is not None:
        parts.append(f"time × {facts['time_scale']:g}")
    if facts["pacing_error_us"] and pacing:
        error = facts["pacing_error_us"]
        parts.append(f"pacing error {about(error['p50'])} median, {about(error['p99'])} p99")
    parts.append("steady" if facts["steady"] else "not steady")
    return " · ".join(parts)


def comparison(arms: Sequence[ArmRecord]) -> list[tuple[str, list[str]]]:
    """Rows of the table that sets arms side by side."""
    s = [arm.summary for arm in arms]
    return [
        ("Throughput (operations/s)", [number(each["throughput_ops_s"], 0) for each in s]),
        ("User data (MB/s)", [number(each["user_mb_s"]) for each in s]),
        ("Latency, mean", [micros(each["latency_us"]["mean"]) for each in s]),
        ("Latency, p99", [micros(each["latency_us"]["p99"]) for each in s]),
        ("Latency, p99.9", [micros(each["latency_us"]["p99_9"]) for each in s]),
        ("Latency, max", [micros(each["latency_us"]["max"]) for each in s]),
        ("In stalls (s)", [number(each["stalls"]["seconds"], 1) for each in s]),
        ("wa_app", [number(each["wa_app"]) for each in s]),
        ("wa_device", [device_ratio(each) for each in s]),
        ("wa_total", [number(each["wa_total"]) for each in s]),
        *_lifetimes(s),
        *_estimates(s),
        ("Space amplification", [number(each["space_amplification"]) for each in s]),
        *_of_the_drive(s),
        ("Processor (CPU-seconds)", [number(each["cpu_seconds"]) for each in s]),
        ("Steady", ["yes" if each["steady"] else "no" for each in s]),
        ("Complete", ["yes" if each["standing"]["complete"] else "no" for each in s]),
    ]


def _of_the_drive(summaries: Sequence[Document]) -> list[tuple[str, list[str]]]:
    """Rows on what the data set takes of the drive; those that some arm has a figure for."""
    figures = (
        ("Space amplification, peak", "space_amplification_peak"),
        ("Data set / capacity", "data_set_share"),
        ("Over-provisioning, effective", "over_provisioning_effective"),
    )
    found = [(label, [each.get(key) for each in summaries]) for label, key in figures]
    return [(label, [number(v) for v in values]) for label, values in found if any(v is not None for v in values)]


def _estimates(summaries: Sequence[Document]) -> list[tuple[str, list[str]]]:
    """What drive models made of the writes of runs on plain directories; a row of its own, for it was not measured."""
    models = [estimate.of(each) or {} for each in summaries]
    if not any(models):
        return []
    counted = [_bytes(each.get("device_host_bytes_written")) for each in models]
    alike = f"Estimate: host bytes alike within {100 * estimate.MOST_APART:.0f} %"
    return [
        ("Estimate: wa_device", [number(each.get("wa_device")) for each in models]),
        *_life_rows([each.get("lifetime") or {} for each in models], "Estimate: "),
        ("Estimate: host bytes counted by the device", counted),
        ("Estimate: host bytes given to the model", [_bytes(each.get("host_bytes_written")) for each in models]),
        (alike, [_alike(each) for each in models]),
    ]


def _bytes(value: float | None) -> str:
    return NOTHING if value is None else human_bytes(value)


def _alike(model: Document) -> str:
    apart = estimate.is_apart(model) if model else None
    return NOTHING if apart is None else "no" if apart else "yes"


def _lifetimes(summaries: Sequence[Document]) -> list[tuple[str, list[str]]]:
    """The rows of the comparison that say what the drive's life costs; those that some arm has a figure for.

    Of a scaled drive, years and drive writes are of a drive of its preset's whole capacity at the same rate.
    """
    return _life_rows([each.get("lifetime") or {} for each in summaries])


def _life_rows(found: Sequence[Document], before: str = "") -> list[tuple[str, list[str]]]:
    figures = (
        ("Flash bytes per operation", "flash_bytes_per_operation"),
        ("Drive writes per day", "full_size_drive_writes_per_day"),
        ("Percentage used", "percentage_used"),
        ("Years at this rate", "full_size_years"),
        ("Money per year", "money_per_year"),
        ("User data until worn (GB)", "full_size_user_bytes_until_worn"),
    )
    rows = []
    for label, key in figures:
        values = [each.get(key) for each in found]
        if key == "full_size_user_bytes_until_worn":
            values = [None if value is None else value / 1e9 for value in values]
        if any(value is not None for value in values):
            money = [f" {each.get('currency') or ''}".rstrip() if key == "money_per_year" else "" for each in found]
            cells = [NOTHING if v is None else plain(v) + m for v, m in zip(values, money, strict=True)]
            rows.append((f"{before}{label[0].lower()}{label[1:]}" if before else label, cells))
    return rows
