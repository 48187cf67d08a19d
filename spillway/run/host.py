"""The machine that something runs on, as a manifest has it."""

import os
import platform
import sys
from pathlib import Path
from typing import Any


def facts() -> dict[str, Any]:
    """The system, the processor, how many cores this process may use, and the memory."""
    return {
        "system": platform.platform(),
        "processor": _processor(),
        "cores": len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count(),
        "memory_bytes": _meminfo().get("MemTotal"),
    }


def memory(name: str) -> int:
    """A line of /proc/meminfo, such as MemAvailable, in bytes; 0 where there is none."""
    return _meminfo().get(name, 0)


def _meminfo() -> dict[str, int]:
    """/proc/meminfo in bytes; empty where there is none."""
    try:
        lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
    except OSError:
        return {}
    return {name: int(rest.split()[0]) * 1024 for name, _, rest in (line.partition(":") for line in lines)}


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.machine()
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), platform.machine())
