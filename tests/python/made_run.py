"""Run directories made by hand: arms whose every figure can be worked out on paper."""

from typing import Any

from spillway.rundir.directory import ArmRecord, RunRecord
from spillway.rundir.samples import Row

Document = dict[str, Any]

STANDING = {
    **{"failure": None, "complete": True, "drive": "tiny", "initial_state": "steady", "capacity_bytes": 2**26},
    **{"scaled_capacity": True, "time_scale": 1.0, "pacing": "real", "pacing_error_us": None, "steady": True},
    "words": "Steady.",
}


def second(t: float, writes: float, **given: Any) -> Row:
    """One second: 1 kB a write, two bytes to the drive and three to flash for each."""
    user = writes * 1000.0
    row: Row = {"t_s": t, "dt_s": 1.0, "phase": "write", "measured": 1.0, "reads": 0.0, "writes": float(writes)}
    row |= {"user_bytes_written": user, "user_bytes_read": 0.0, "host_bytes_written": 2 * user, "host_bytes_read": user}
    row |= {f"nand_bytes_programmed_{cause}": 0.0 for cause in ("gc", "mapping", "wear", "fold")}
    row |= {"nand_bytes_programmed_host": 3 * user, "die_busy": 0.5, "link_write_utilisation": 0.1, "cpu_s": 0.5}
    row |= {"link_read_utilisation": 0.05, "write_latency_p50_us": 10.0, "write_latency_max_us": 50.0}
    row |= {"space_bytes": 1e6, "stall_s_l0": 0.0}
    return row | given


def known_seconds(count: int, **cells: Any) -> list[Row]:
    """Seconds with 1000 writes each, whose percentiles are all known."""
    known = {"write_latency_mean_us": 300.0, "write_latency_p50_us": 200.0, "write_latency_p99_us": 900.0}
    known |= {"write_latency_p99_9_us": 2000.0, "write_latency_max_us": 4000.0}
    return [second(i + 1.0, 1000) | known | cells for i in range(count)]


def phase(name: str, workload: str, t: float, duration: float, writes: float, **given: Any) -> Document:
    latency = {"count": writes, "mean": 10.0, "p50": 10.0, "p99": 100.0, "p99_9": 200.0, "max": 1000.0}
    base = {"name": name, "workload": workload, "measured": True, "t_s": t, "duration_s": duration, "reads": 0}
    return base | {"writes": writes, "write_latency_us": latency, "read_latency_us": {"count": 0}} | given


def arm(
    name: str,
    rates: list[float],
    settle: int = 0,
    *,
    stalled: tuple[int, ...] = (),
    p99: float = 100.0,
    worst: float = 1000.0,
    workload: str = "fillrandom",
    **cells: Any,
) -> ArmRecord:
    """``rates``: writes in each second; then ``settle`` seconds of compaction, a megabyte to the drive in each."""
    stall = {"stall_s_l0": 1.0}
    rows = [second(i + 1.0, rate, **cells, **(stall if i in stalled else {})) for i, rate in enumerate(rates)]
    idle = {"phase": "settle", "measured": 0.0, "host_bytes_written": 1e6, "nand_bytes_programmed_host": 1e6}
    rows += [second(len(rates) + i + 1.0, 0, **idle) for i in range(settle)]
    latency = {"count": sum(rates), "mean": 10.0, "p50": 10.0, "p99": p99, "p99_9": worst, "max": worst}
    phases = [phase("write", workload, 0.0, float(len(rates)), sum(rates), write_latency_us=latency)]
    if settle:
        phases.append(phase("settle", "settle", float(len(rates)), float(settle), 0, measured=False))
    stalls = [{"t_s": float(i), "duration_s": 1.0, "state": "stopped", "cause": "l0"} for i in stalled]
    count = sum(rates)
    summary = {
        **{"throughput_ops_s": count / len(rates), "user_mb_s": 1.0, "duration_s": float(len(rates)), "steady": True},
        **{"latency_us": latency, "wa_app": 2.0, "wa_device": 1.5, "wa_total": 3.0, "space_amplification": 1.1},
        **{"stalls": {"count": len(stalls), "seconds": float(len(stalls)), "by_cause": {"l0": float(len(stalls))}}},
        **{"cpu_seconds": 5.0, "standing": STANDING, "space_bytes": 1e6, "live_user_bytes": 1e6},
    }
    if settle:
        summary["bill"] = {"throughput_ops_s": count / (len(rates) + settle)}
    return ArmRecord(name, summary, rows, stalls, phases, {"complete": True, "write_latency_us": latency})


def run(plan_toml: str, arms: list[ArmRecord]) -> RunRecord:
    from pathlib import Path

    manifest = {"plan": "made", "complete": True, "failure": None, "started": "2025-01-01T00:00:00", "command": ["x"]}
    return RunRecord(Path("made"), manifest, plan_toml, arms)
