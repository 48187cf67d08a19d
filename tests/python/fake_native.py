"""A stand-in for spillway-native: speaks the contract, measures nothing, answers the same each time.

Run as an executable it obeys its environment: FAKE_MODE is one of ok, bad_input, disk_full, disk_full late, fails,
fails late, breaks, crashes, crashes late, garbage and endless. It breaks as an engine does, whose LOG is a copy of the
file FAKE_ENGINE_LOG. With FAKE_WHERE, a JSON object such as {"value_bytes": 100}, it does so only for runs with that
load or that seed, and with FAKE_ABOVE, a number, only for runs with more keys than that. An estimate's model is given
FAKE_GIVEN times what the drive counted, and with FAKE_FULL, a reason, it failed.

With FAKE_CAPACITY, operations a second by load.value_bytes such as {"100": 9000}, a phase with a rate is an open loop
on a store that does so many: what it cannot do waits. With FAKE_ENDS_ABOVE, a rate, phases above it end as if a command
had come after two thirds of their time.
"""

from __future__ import annotations

import json
import math
import os
import signal
import sys
import time
from _random import Random

TYPE_CHECKING = False  # tests start this thousands of times: typing, and what else few of them need, is not imported
if TYPE_CHECKING:
    from typing import Any

    Event = dict[str, Any]
VERSIONS = {"rocksdb": "7.8.3"}


def last_example(command: str) -> Event:
    """The result of a command as the contract shows it."""
    contract = os.path.join(os.path.dirname(__file__), "..", "..", "contract", "examples")
    with open(os.path.join(contract, f"{command}.events.jsonl"), encoding="utf-8") as lines:
        event: Event = json.loads(lines.read().splitlines()[-1])
    return event


def note(said: Event) -> None:
    """Adds what was asked, or came, to the log."""
    if "FAKE_LOG" in os.environ:
        with open(os.environ["FAKE_LOG"], "a", encoding="utf-8") as log:
            log.write(json.dumps(said) + "\n")


def latency(count: int, mean: float) -> dict[str, float]:
    return {"count": count, "mean": mean, "p50": mean * 0.7, "p99": mean * 9, "p99_9": mean * 70, "max": mean * 400}


def started(command: str) -> Event:
    event = {"event": "started", "contract": [1, 0], "command": command, "version": "0.1.0", "drive": {"name": "fake"}}
    return event | ({"versions": VERSIONS} if command == "run" else {})


def sample(index: int, dt: float, phase: str, measured: bool, seed: int) -> Event:
    """One interval of a store that stalls in every fourth second, mostly for L0."""
    draw = Random(seed * 1_000_003 + index).random

    def uniform(low: float, high: float) -> float:
        return low + (high - low) * draw()

    t = (index + 1) * dt
    stalled = int(t) % 4 == 3
    cause = "l0" if int(t) % 8 == 3 else "pending_compaction_bytes"
    rate = (2500 if stalled else 14000) * uniform(0.8, 1.2) * (1 + 0.1 * math.sin(t / 3))
    writes = int(rate * dt)
    user = writes * 1040
    host = int(user * uniform(2.5, 4.0)) + 4096
    gc = int(host * uniform(0.5, 1.1))
    stall_s = {"memtable": 0.0, "l0": 0.0, "pending_compaction_bytes": 0.0}
    if stalled:
        stall_s[cause] = dt
    busy = uniform(0.1, 0.5) if stalled else uniform(0.5, 0.9)
    return {
        "event": "sample",
        "t_s": t,
        "dt_s": dt,
        "phase": phase,
        "measured": measured,
        "reads": 0,
        "writes": writes,
        "read_latency_us": latency(0, 0.0),
        "write_latency_us": latency(writes, 1e6 / rate),
        "user_bytes_written": user,
        "user_bytes_read": 0,
        "drive": {
            "host_bytes_written": host,
            "host_bytes_read": host // 2,
            "host_bytes_written_by_cause": {"wal": user, "flush": user, "compaction": host - 2 * user},
            "nand_bytes_programmed": {"host": host, "gc": gc, "mapping": 0, "wear": 0, "fold": 0},
            "erases": gc // 2**20,
            "die_busy": busy,
            "channel_busy": busy / 3,
            "link_write_utilisation": busy / 8,
            "link_read_utilisation": busy / 20,
        },
        "engine": {
            "stall_state": "delayed" if stalled else "normal",
            "stall_cause": cause if stalled else "none",
            "stall_s": stall_s,
            "l0_files": 4 + int(t * 3) % 9,
            "immutable_memtables": int(t * 5) % 3,
            "memtable_bytes": 2**23 + (int(t * 1e6) % 2**24),
            "pending_compaction_bytes": int(2**26 * (1 + math.sin(t))),
            "running_compactions": 1 + int(t) % 2,
            "live_bytes": int(3e8 + t * 4e6),
        },
        "space_bytes": int(3.2e8 + t * 5e6),
        "cpu_s": 1.3 * dt,
    }


def counted(drive: dict[str, Any]) -> dict[str, Any]:
    """What sysfs tells of a real drive, and the engine's calls of causes."""
    return {name: drive[name] for name in ("host_bytes_written", "host_bytes_read", "host_bytes_written_by_cause")}


def served(rate: float, capacity: float, dt: float, t: float) -> Event:
    """What an open loop makes of a sample that ends ``t`` seconds after the phase began."""
    done = min(rate, capacity)
    return {
        "writes": round(done * dt),
        "write_latency_us": latency(round(done * dt), 200 + 1e6 * (1 - done / rate) * t),
    }


def ended(rate: float, capacity: float, seconds: float) -> Event:
    """And of the whole phase; the nearer its rate is to what the store can do, the longer its tail."""
    done = min(rate, capacity)
    mean = 200 / max(1e-3, 1 - done / capacity) + 1e6 * (1 - done / rate) * seconds
    count = round(done * seconds)
    return {
        **{"operations": count, "writes": count, "not_started": round((rate - done) * seconds)},
        "write_latency_us": latency(count, mean) | {"p99": 3 * mean, "max": 10 * mean},
    }


def run(request: dict[str, Any], emit: Any, wanted: Any) -> Event:
    dt = request["sample_interval_ms"] / 1000
    capacity = json.loads(os.environ.get("FAKE_CAPACITY", "{}")).get(str(request["load"]["value_bytes"]), 0.0)
    samples: list[Event] = []
    stalls: list[Event] = []
    t0 = 0.0
    for phase in request["phases"]:
        seconds = phase["duration_s"] or 2.0
        count = max(1, round(seconds / dt))
        commanded = (phase["rate_ops_s"] or 0) > float(os.environ.get("FAKE_ENDS_ABOVE", "inf"))
        count = count * 2 // 3 if commanded else count
        taken: list[Event] = []
        for index in range(count):
            if not wanted():
                break
            emit(
                {
                    "event": "progress",
                    "phase": phase["name"],
                    "done": index * dt,
                    "total": seconds,
                    "unit": "seconds",
                    "rate_per_s": 1.0,
                }
            )
            one = sample(len(samples) + len(taken), dt, phase["name"], phase["measured"], request["seed"])
            if request["target"]["kind"] == "directory":
                one["drive"] = counted(one["drive"])
            if capacity and phase["rate_ops_s"]:
                one |= served(phase["rate_ops_s"], capacity, dt, (index + 1) * dt)
            emit(one)
            taken.append(one)
            now = stalls[-1] if stalls else None
            if one["engine"]["stall_state"] != "normal":
                if now and abs(now["t_s"] + now["duration_s"] - (one["t_s"] - dt)) < 1e-9:
                    now["duration_s"] += dt
                else:
                    cause = one["engine"]["stall_cause"]
                    state = "stopped" if cause == "l0" else "delayed"
                    stalls.append(
                        {"event": "stall", "t_s": one["t_s"] - dt, "duration_s": dt, "state": state, "cause": cause}
                    )
        samples += taken
        if taken:
            writes = sum(each["writes"] for each in taken)
            emit(
                {
                    "event": "phase",
                    "name": phase["name"],
                    "workload": phase["workload"],
                    "measured": phase["measured"],
                    "t_s": t0,
                    "duration_s": len(taken) * dt,
                    "operations": writes,
                    "reads": 0,
                    "writes": writes,
                    "not_found": 0,
                    "read_latency_us": latency(0, 0.0),
                    "write_latency_us": latency(writes, 90.0),
                    "user_bytes_written": writes * 1040,
                    "user_bytes_read": 0,
                }
                | (ended(phase["rate_ops_s"], capacity, count * dt) if capacity and phase["rate_ops_s"] else {})
                | ({"ended_by": "command"} if commanded else {})
            )
        t0 += len(taken) * dt
    for stall in stalls:
        emit(stall)
    final = result([each for each in samples if each["measured"]], stalls, dt, complete=wanted())
    if request["target"]["kind"] == "directory":
        for name in ("nand_bytes_programmed", "pacing_error_us", "wear", "counters"):
            final.pop(name)
        if "estimate" in request["target"]:
            final["estimate"] = watched(final["host_bytes_written"])
        if not request["target"].get("counters", ["x"]):
            final.pop("host_bytes_written")
    return final


def watched(host_bytes: int) -> Event:
    """What a drive model made of FAKE_GIVEN times the host bytes that the drive counted; with FAKE_FULL it failed."""
    given = int(host_bytes * float(os.environ.get("FAKE_GIVEN", "1")))
    return {
        "preset": "quickstart",
        "capacity_bytes": 2**30,
        "host_bytes_written": given,
        "host_bytes_written_by_cause": {"wal": given},
        "nand_bytes_programmed": {"host": given, "gc": given // 2, "mapping": 0, "wear": 0, "fold": 0},
        "wear": {"mean_pe_cycles": 30.0, "max_pe_cycles": 40, "rated_pe_cycles": 3000, "physical_bytes": 5 * 2**28},
        "failure": os.environ.get("FAKE_FULL"),
    }


def result(samples: list[Event], stalls: list[Event], dt: float, complete: bool) -> Event:
    operations = sum(each["writes"] for each in samples)
    seconds = len(samples) * dt
    by_cause: dict[str, float] = {}
    for stall in stalls:
        by_cause[stall["cause"]] = by_cause.get(stall["cause"], 0.0) + stall["duration_s"]

    def drive(name: str, cause: str | None = None) -> int:
        parts = (each["drive"].get(name, {}) for each in samples)
        return sum(part if cause is None else part.get(cause, 0) for part in parts)

    return {
        "event": "result",
        "complete": complete,
        "duration_s": seconds,
        "operations": operations,
        "throughput_ops_s": operations / seconds if seconds else 0.0,
        "user_bytes_written": operations * 1040,
        "latency_us": latency(operations, 90.0),
        "read_latency_us": latency(0, 0.0),
        "write_latency_us": latency(operations, 90.0),
        "host_bytes_written": drive("host_bytes_written"),
        "host_bytes_read": drive("host_bytes_read"),
        "host_bytes_written_by_cause": {
            c: drive("host_bytes_written_by_cause", c) for c in ("wal", "flush", "compaction")
        },
        "nand_bytes_programmed": {
            c: drive("nand_bytes_programmed", c) for c in ("host", "gc", "mapping", "wear", "fold")
        },
        "live_user_bytes": 300_000_000,
        "space_bytes": samples[-1]["space_bytes"] if samples else 0,
        "stalls": {"count": len(stalls), "seconds": sum(by_cause.values()), "by_cause": by_cause},
        "pacing_error_us": {"p50": 9.0, "p99": 71.0, "max": 900.0, "count": 1000},
        "cpu_seconds": seconds * 1.3,
        "engine_statistics": {},
        "counters": {"host_writes": 1},
        "wear": {"mean_pe_cycles": 12.5, "max_pe_cycles": 20, "rated_pe_cycles": 3000, "physical_bytes": 2**33},
        "versions": VERSIONS,
    }


def main() -> int:
    command = sys.argv[1]
    mode = os.environ.get("FAKE_MODE", "ok")
    asked: list[int] = []
    signal.signal(signal.SIGINT, lambda number, frame: asked.append(number))
    if command == "probe" and mode != "bad_input":

        def say(event: Event) -> None:
            print(json.dumps(event), flush=True)

        say(started(command))
        import fake_probe

        return fake_probe.converse(say)
    # A run's commands may follow: the pipe stays open.
    request = json.loads(sys.stdin.readline()) if command in ("probe", "run") else json.load(sys.stdin)
    place = request["directory"] if command == "run" and "directory" in request else None
    # Nothing is run then: it is a check.
    is_taken = place is not None and os.path.isdir(place) and bool(os.listdir(place))
    if not is_taken:
        note({"command": command, "request": request})

    def emit(event: Event) -> None:
        print(json.dumps(event), flush=True)

    where = json.loads(os.environ.get("FAKE_WHERE", "{}"))
    if any({**request, **(request.get("load") or {})}.get(key) != value for key, value in where.items()):
        mode = "ok"
    if (request.get("load") or {}).get("num", 0) <= int(os.environ.get("FAKE_ABOVE", "-1")):
        mode = "ok"
    if mode == "bad_input":
        emit({"event": "error", "message": "presets/x.toml: geometry.chanels is not a key.", "fault": "bad_input"})
        return 2
    if is_taken:
        emit({"event": "error", "message": f"directory: {place} is not empty; name a new one", "fault": "bad_input"})
        return 2
    emit(started(command))
    if mode == "disk_full":
        emit({"event": "error", "message": "x.state cannot be written: no space left.", "fault": "io_error"})
        return 1
    if mode == "garbage":
        print("this is no event", flush=True)
        return 0
    if mode == "crashes":
        print("an assertion failed", file=sys.stderr)
        return 134
    if mode in ("fails", "full at once"):
        if command == "run" and mode == "fails":
            for index in range(30):
                emit(sample(index, 0.1, "fill", True, 1))
        emit({"event": "error", "message": "the drive is full: no clean erase block is left.", "fault": "drive_full"})
        return 1
    if mode == "breaks":
        if "FAKE_ENGINE_LOG" in os.environ:
            import shutil

            shutil.copyfile(os.environ["FAKE_ENGINE_LOG"], os.path.join(request["directory"], "LOG"))
        for index in range(30):
            emit(sample(index, 0.1, "fill", True, 1))
        message = f"a background job of RocksDB failed; its LOG in {request['directory']} says why"
        emit({"event": "error", "message": message, "fault": "io_error"})
        return 1
    if command == "run":

        def wanted() -> bool:
            if mode == "endless":
                time.sleep(0.02)
            return not asked

        final = run(request, emit, wanted)
        if asked:
            note({"signals": asked})
        if mode == "fails late":
            emit({"event": "error", "message": "the drive is full: no space is left.", "fault": "drive_full"})
            return 1
        if mode == "disk_full late":
            emit({"event": "error", "message": "x.sst cannot be written: no space left.", "fault": "io_error"})
            return 1
        if mode == "crashes late":
            print("an assertion failed", file=sys.stderr)
            return 134
        emit(final)
        return 0
    if command == "ssd-simulate":
        emit(last_example(command))
    elif command in ("spill-show", "spill-drain"):
        answer = last_example(command)
        emit(
            answer | ({"abandoned": True, "moved_to": "/data/db/spill.abandoned-12"} if request.get("abandon") else {})
        )
    elif command == "ssd-precondition":
        with open(request["state"], "wb") as state:
            state.write(b"state")
        emit({"event": "result", "state": request["state"], "setup_cpu_seconds": 0.1, "complete": True})
    else:
        emit(
            {
                "event": "result",
                "drive": {"name": "fake", "geometry": {"channels": 8}},
                "layout": {"blocks": 64},
                "complete": True,
            }
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
