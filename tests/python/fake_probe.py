"""A drive of closed forms behind the probe's conversation (contract/README.md): what a profile should find is known.

Reads of any size up to a page take READ_US and overlap K_R times; writes WRITE_US and K_W times. Staggered accesses
cost SETUP / min(k, K) for each random access and PAGE / min(k, K) for each page. FAKE_MODE: ``ok``, ``capped``
(software lets CAP_IOPS of either through), ``read_only``, ``refuses`` (the first point), ``ends`` (a signal came).
"""

import json
import os
import random
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

Event = dict[str, Any]

K_R, K_W = 24, 6
READ_US, WRITE_US = 80.0, 40.0
SIGMA_US, BETA_US, TAU_US, ALPHA_US = 100.0, 4.0, 60.0, 2.0
CAP_IOPS = 120_000
NOISE = 0.004
PAGE = 4096


def iops(point: Event, mode: str) -> float:
    """Operations in a second."""
    k: float = point["numjobs"] * point["iodepth"]
    if point["pattern"] == "staggered":
        pages: float = point["bs_bytes"] / PAGE
        setup, page, most = (TAU_US, ALPHA_US, K_R) if point["read_share"] == 1 else (SIGMA_US, BETA_US, K_W)
        return 1e6 * min(k, most) / (setup + page * pages)
    size = max(1.0, point["bs_bytes"] / PAGE)
    reads = READ_US * size / min(k, K_R)
    writes = WRITE_US * size / min(k, K_W)
    share: float = point["read_share"]
    rate: float = 1e6 / (share * reads + (1 - share) * writes)
    return min(rate, CAP_IOPS) if mode == "capped" else rate


def measurement(point: Event, mode: str) -> Event:
    """The answer to a point; the same point with another id is measured a little differently."""
    k = point["numjobs"] * point["iodepth"]
    rate = iops(point, mode) * random.Random(point["id"]).gauss(1, NOISE)
    ios = point["ios"] if point.get("seconds") is None else max(1, int(rate * point["seconds"]))
    mean = 1e6 * k / rate
    latency = {"mean": mean, "p50": mean, "p99": 2 * mean, "p99_9": 3 * mean, "max": 4 * mean}
    return {
        "event": "measurement",
        "id": point["id"],
        "ios": ios,
        "reads": int(ios * point["read_share"]),
        "writes": ios - int(ios * point["read_share"]),
        "seconds": ios / rate,
        "iops": rate,
        "bandwidth_mb_s": rate * point["bs_bytes"] / 1e6,
        "latency_us": latency,
        "cpu_s": 0.01,
        "host_bytes_read": 0,
        "host_bytes_written": 0,
        "complete": True,
    }


def ready(target: Event, mode: str, written: int = 0) -> Event:
    """The target as it is now."""
    emulated = target["kind"] in ("simulated", "paced")
    return {
        "event": "ready",
        "kind": target["kind"],
        "size_bytes": 2**30,
        "range_bytes": 2**30,
        "lba_bytes": 512,
        "direct": not emulated,
        "writable": mode != "read_only",
        "preset": "fake" if emulated else "",
        "path": target.get("path", ""),
        "time_scale": 0.0,
        "fill": 1.0,
        "written_bytes": written,
        "complete": written == 0,
    }


def converse(emit: Callable[[Event], None]) -> int:
    """Answers standard input line by line, as `spillway-native probe` does."""
    mode = os.environ.get("FAKE_MODE", "ok")
    target: Event = {}
    points = 0
    for line in sys.stdin:
        asked = json.loads(line)
        _note(asked)
        if "target" in asked:
            target = asked["target"]
            emit(ready(target, mode))
        elif "prepare" in asked or "fill" in asked:
            emit(ready(target, mode, 2**29 if "prepare" in asked else 0))
        elif "end" in asked:
            break
        elif mode == "refuses":
            message = f"point {asked['id']}: bs_bytes is not a multiple of the drive's LBAs."
            emit({"event": "error", "message": message, "fault": "bad_input"})
            return 2
        elif mode == "ends":
            emit({"event": "result", "points": points, "cpu_seconds": 0.1, "peak_rss_bytes": 1, "complete": False})
            return 0
        else:
            points += 1
            emit(measurement(asked, mode))
    emit({"event": "result", "points": points, "cpu_seconds": 0.1, "peak_rss_bytes": 1, "complete": True})
    return 0


def _note(asked: Event) -> None:
    if "FAKE_LOG" in os.environ:
        with Path(os.environ["FAKE_LOG"]).open("a", encoding="utf-8") as log:
            log.write(json.dumps({"command": "probe", "request": asked}) + "\n")
