"""A run directory against the seven pitfalls: what the run's own figures say.

Pure: it reads what ``rundir.read_run`` has read. Of a record that lacks a figure, because an older version wrote it or
the run ended early, the verdict is "cannot tell".
"""

import math
import tomllib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from spillway.figures import estimate
from spillway.lint.table import Linted, Remark, table_of, with_answers
from spillway.pitfalls import (
    DATA_SET,
    DRIVE_TYPE,
    INITIAL_STATE,
    OVER_PROVISIONING,
    SEVERAL,
    SHORT_TEST,
    SPACE,
    STEADY_CAPACITIES,
    WA_DEVICE,
    Pitfall,
)
from spillway.plan.answers import lint_table
from spillway.quantity import human_bytes
from spillway.rundir.directory import ArmRecord, RunRecord, check_not_refused, read_run

Document = dict[str, Any]

MOST_SHOWN = 9.99  # of over-provisioning: beyond it the drive is all but empty, and the figure says no more


def lint_run(rundir: Path) -> Linted:
    """The table of a run directory. Raises SpillwayError for one that is not whole, and of a run that was refused."""
    run = read_run(rundir)
    check_not_refused(run)
    return lint_record(run)


def lint_record(run: RunRecord) -> Linted:
    """The table of a run directory that is read already. Raises SpillwayError for a run that was refused."""
    plan = tomllib.loads(run.plan_toml)
    arms = run.arms
    judges: tuple[tuple[Pitfall, Callable[[], Remark]], ...] = (
        (SHORT_TEST, lambda: _short_test(arms)),
        (WA_DEVICE, lambda: _wa_device(arms)),
        (INITIAL_STATE, lambda: _initial_state(arms)),
        (DATA_SET, lambda: _data_set(arms)),
        (SPACE, lambda: _space(arms)),
        (OVER_PROVISIONING, lambda: _over_provisioning(arms, plan)),
        (DRIVE_TYPE, lambda: _drive_type(arms)),
    )
    nothing = "no arm was begun"
    remarks = [
        judge() if arms else Remark(each, "cannot tell", nothing, "run the plan again") for each, judge in judges
    ]
    answers = lint_table(plan.get("lint", {}), f"{run.path / 'plan.toml'}: lint").get("answers", {})
    return table_of(str(run.path), "run", with_answers(remarks, answers, report_stale=False))


def _standing(arm: ArmRecord) -> Document:
    standing = arm.summary.get("standing")
    return standing if isinstance(standing, dict) else {}


def _span(values: Sequence[float], form: str = ".2g", unit: str = "") -> str:
    """``0.9 to 1.2``, or one figure where all are the same in print."""
    least, most = format(min(values), form), format(max(values), form)
    return f"{least}{unit}" if least == most else f"{least}{unit} to {most}{unit}"


def _some(names: Sequence[object], most: int = 4) -> str:
    distinct = list(dict.fromkeys(map(str, names)))
    more = len(distinct) - most
    return ", ".join(distinct[:most]) + (f" and {more} more" if more > 0 else "")


def host_capacities(arm: ArmRecord) -> float | None:
    """Host bytes written in the measured phases / capacity."""
    written, capacity = arm.summary.get("host_bytes_written"), _standing(arm).get("capacity_bytes")
    return written / capacity if written is not None and capacity else None


def _short_test(arms: Sequence[ArmRecord]) -> Remark:
    steady = [arm for arm in arms if arm.summary.get("steady")]
    written = [share for arm in arms if (share := host_capacities(arm)) is not None]
    volume = f"; host writes {_span(written)} x the capacity" if written else ""
    looked = f"steady in {len(steady)} of {len(arms)} arms{volume}"
    if len(steady) == len(arms):
        return Remark(SHORT_TEST, "ok", looked)
    reason = next(str(_standing(arm).get("steady_reason") or "") for arm in arms if arm not in steady)
    change = "run longer: raise `duration_s` or `operations`"
    if written and min(written) < STEADY_CAPACITIES:
        change += f" by a factor of {math.ceil(STEADY_CAPACITIES / max(min(written), 1e-3)):,} or more"
    return Remark(SHORT_TEST, "finding", f"{looked}{f' ({reason})' if reason else ''}", change)


def _wa_device(arms: Sequence[ArmRecord]) -> Remark:
    known = [arm.summary["wa_device"] for arm in arms if arm.summary.get("wa_device") is not None]
    if len(known) == len(arms):
        return Remark(WA_DEVICE, "ok", f"wa_device {_span(known, '.2f')}, beside wa_app{_wa_app(arms)}")
    if not any(arm.summary.get("host_bytes_written") for arm in arms):
        return Remark(WA_DEVICE, "ok", "nothing was written in the measured phases")
    why = next((str(why) for arm in arms if (why := _standing(arm).get("wa_device_unknown"))), "no arm says why")
    looked = f"wa_device known in {len(known)} of {len(arms)} arms: {why}"
    estimated = [each["wa_device"] for arm in arms if (each := arm.summary.get("estimate")) and each.get("wa_device")]
    if estimated:
        looked += f"; estimated as {_span(estimated, '.2f')}, {estimate.GIVEN}{_apart(arms)}"
    return Remark(WA_DEVICE, "finding", looked, "set `drive.estimate.preset`, or measure on a drive that counts")


def _apart(arms: Sequence[ArmRecord]) -> str:
    """In how many arms the estimate's model was given other host bytes than the device counted."""
    models = [found for arm in arms if (found := estimate.of(arm.summary))]
    apart = sum(1 for found in models if estimate.is_apart(found))
    return f", whose host bytes are not the device's in {apart} of {len(models)} arms" if apart else ""


def _wa_app(arms: Sequence[ArmRecord]) -> str:
    known = [arm.summary["wa_app"] for arm in arms if arm.summary.get("wa_app") is not None]
    return f" {_span(known, '.2f')}" if known else ""


def _initial_state(arms: Sequence[ArmRecord]) -> Remark:
    states = [_standing(arm).get("initial_state") or ("kept" if _standing(arm).get("kept") else None) for arm in arms]
    unmapped = sum(int(_standing(arm).get("unmapped_reads") or 0) for arm in arms)
    looked = f"initial state: {_some([state or 'not recorded' for state in states], 2)}"
    if None in states:
        change = "precondition the drive and start from `kept.from`; or answer with what you did to it"
        return Remark(INITIAL_STATE, "finding", looked, change)
    if unmapped:
        looked += f"; {unmapped:,} reads of what was never written"
        return Remark(INITIAL_STATE, "finding", looked, 'set `initial.kind = "steady"` or load every key that is read')
    if set(states) == {"trimmed"} and not all(arm.summary.get("steady") for arm in arms):
        looked += " alone, and not every arm is steady: the drive may have had nothing to collect yet"
        return Remark(INITIAL_STATE, "finding", looked, 'set `initial.kind = "steady"`, or add an arm that does')
    return Remark(INITIAL_STATE, "ok", looked)


def data_share(arm: ArmRecord) -> float | None:
    """Live user bytes at the end / capacity."""
    live, capacity = arm.summary.get("live_user_bytes"), _standing(arm).get("capacity_bytes")
    return live / capacity if live and capacity else None


def _drive(arm: ArmRecord) -> str:
    devices = _standing(arm).get("devices")
    return str(_standing(arm).get("drive") or (", ".join(devices) if devices else "a plain directory"))


def _data_set(arms: Sequence[ArmRecord]) -> Remark:
    live = [size for arm in arms if (size := arm.summary.get("live_user_bytes"))]
    if not live:
        return Remark(DATA_SET, "cannot tell", "live_user_bytes is not recorded", "run the plan to its end")
    shares = [share for arm in arms if (share := data_share(arm)) is not None]
    words = f"data set / capacity {_span(shares)}" if shares else f"data set {_some(list(map(human_bytes, live)), 3)}"
    by_drive: dict[str, list[float]] = {}
    for arm in arms:
        size = arm.summary.get("live_user_bytes")
        if size:
            by_drive.setdefault(_drive(arm), []).append(size / (_standing(arm).get("capacity_bytes") or 1))
    if any(max(sizes) >= SEVERAL * min(sizes) for sizes in by_drive.values()):
        return Remark(DATA_SET, "ok", words)
    change = "sweep `load.num` (or `ycsb.recordcount`) from 0.25 to 0.88 of the capacity"
    return Remark(DATA_SET, "finding", words, change)


def peak_space_amplification(arm: ArmRecord) -> float | None:
    """The most bytes held on the drive in any sample / live user bytes at the end."""
    live = arm.summary.get("live_user_bytes")
    held = _held_bytes(arm)
    return held / live if held and live else None


def _held_bytes(arm: ArmRecord) -> float:
    """The most bytes that the store held on the drive, in any sample or at the end; 0 where it is not known."""
    held = [row["space_bytes"] for row in arm.rows if row.get("space_bytes") is not None]
    return float(max([*held, arm.summary.get("space_bytes") or 0.0]))


def _space(arms: Sequence[ArmRecord]) -> Remark:
    known = [figure for arm in arms if (figure := arm.summary.get("space_amplification")) is not None]
    peaks = [figure for arm in arms if (figure := peak_space_amplification(arm)) is not None]
    if not known:
        change = "run the plan to its end, with phases that load data"
        return Remark(SPACE, "cannot tell", "space_amplification is not recorded", change)
    peak = f", at most {max(peaks):.2f} on the way" if peaks else ""
    looked = f"space_amplification {_span(known, '.2f')} at the end{peak}"
    if len(known) < len(arms):
        return Remark(
            SPACE, "cannot tell", f"{looked}; not known in {len(arms) - len(known)} arms", "run it to its end"
        )
    return Remark(SPACE, "ok", looked)


def over_provisioning(arm: ArmRecord, *, discards: bool) -> float | None:
    """(physical - mapped) / mapped, mapped as much as it can be, so that this is a lower bound: the summary's own.

    Of runs whose summary is older, mapped are an initial fill and what was written besides: with discards no more
    than the store held at once, without them no more than was written at all. Source: the standard definition (B16).
    """
    known = arm.summary.get("over_provisioning_effective")
    if known is not None:
        return float(known)
    wear, standing = arm.result.get("wear") or {}, _standing(arm)
    physical, capacity = wear.get("physical_bytes"), standing.get("capacity_bytes")
    if not physical or not capacity:
        return None
    filled = standing.get("initial_fill") if standing.get("initial_state") in ("steady", "sequential") else 0.0
    written = (arm.result.get("counters") or {}).get("host_bytes_written") or capacity
    beside = _held_bytes(arm) if discards else max(_held_bytes(arm), written)
    mapped = min(capacity, (filled or 0.0) * capacity + beside)
    if standing.get("initial_state") in ("kept", "file") or not mapped:
        mapped = capacity
    return float((physical - mapped) / mapped)


def _over_provisioning(arms: Sequence[ArmRecord], plan: Document) -> Remark:
    figures = [over_provisioning(arm, discards=bool(_fs_key(arm, plan, "discard", True))) for arm in arms]
    known = [figure for figure in figures if figure is not None]
    if not known:
        change = "measure once more on a partition of three quarters of the drive, the rest discarded"
        return Remark(OVER_PROVISIONING, "cannot tell", "physical bytes are not recorded", change)
    looked = f"effective over-provisioning at least {_span([min(figure, MOST_SHOWN) for figure in known], '.0%')}"
    settings: dict[str, set[object]] = {}
    for arm in arms:
        settings.setdefault(_drive(arm), set()).add(_spare_setting(arm, plan))
    if any(len(each) > 1 for each in settings.values()):
        return Remark(OVER_PROVISIONING, "ok", f"{looked}, set in several ways on one drive")
    change = "add a point with `fs.size` at three quarters of the capacity, the rest without data"
    return Remark(OVER_PROVISIONING, "finding", f"{looked}, from one setting", change)


def _spare_setting(arm: ArmRecord, plan: Document) -> tuple[object, ...]:
    """What was set that decides how much flash is spare: flash / capacity, the initial fill, the partition."""
    standing, wear = _standing(arm), arm.result.get("wear") or {}
    capacity = standing.get("capacity_bytes") or 1
    size = _fs_key(arm, plan, "size", None)
    filled = standing.get("initial_fill") if standing.get("initial_state") != "trimmed" else 0.0
    flash = round((wear.get("physical_bytes") or 0) / capacity, 1)
    return flash, filled, None if size is None else round(size / capacity, 2)


def _fs_key(arm: ArmRecord, plan: Document, key: str, default: Any) -> Any:
    """A key of the file system as the arm has it in plan.toml: its own, or the one above all arms."""
    own: Document = next((each for each in plan.get("arms") or [] if each.get("name") == arm.name), {})
    tables = [each.get("fs") or {} for each in (own, plan)]
    return next((table[key] for table in tables if key in table), default)


def _drive_type(arms: Sequence[ArmRecord]) -> Remark:
    drives = list(dict.fromkeys(map(_drive, arms)))
    if len(drives) > 1:
        return Remark(DRIVE_TYPE, "ok", f"drives: {_some(drives)}")
    return Remark(DRIVE_TYPE, "finding", f"one drive: {drives[0]}", "sweep `drive.preset`")
