"""What RocksDB costs a host's processor: the costs, from loads that separate them, and files of them.

A cost of an entry and a cost of a byte are the line through what entries of two or more sizes cost. Only the
processor's time counts, so the drive's speed does not matter: of flushes and compactions as RocksDB's threads count
it, of puts the process's while nothing else runs in it.
"""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from spillway.errors import SpillwayError
from spillway.lsm.simulate import SECTIONS
from spillway.quantity import nearest

MOST_BYTES = 2**16  # of a file of costs, which has a dozen
MOST_NS = 1e9  # of a cost: a second, a thousand times what any machine takes. Source: guess
MOST = {"cores": 1e5, "log_dirty_bytes": 1e15}
LEAST = {"cores": 0.01, "put_ns": 1}  # others 0. Source: contract/lsm-simulate.request.schema.json


@dataclass(frozen=True)
class HostCosts:
    """The processor's part of an operation, and the page cache's, in nanoseconds and bytes. The defaults are those of
    the simulator of the tree (native/lsm/spec.h), which says where they are from."""

    put_ns: float = 2500.0  # one put by a writer, the log's record included
    put_byte_ns: float = 0.0  # and its key's and value's bytes
    flush_entry_ns: float = 350.0  # one entry that a flush writes
    flush_byte_ns: float = 0.25
    merge_entry_ns: float = 350.0  # one entry that a compaction reads
    merge_byte_ns: float = 0.25  # and its bytes: copy, checksum
    get_ns: float = 3000.0  # one query
    probe_ns: float = 1500.0  # each sorted run that it looks into
    next_ns: float = 400.0  # each pair that a scan passes
    log_dirty_bytes: float = 64.0 * 2**20  # of the log that wait in memory at most

    def put_us(self, pair_bytes: float) -> float:
        """Of a writer's thread, for one put."""
        return (self.put_ns + self.put_byte_ns * pair_bytes) / 1e3

    def flush_us(self, entry_bytes: float) -> float:
        """Of a flush, for one entry."""
        return (self.flush_entry_ns + self.flush_byte_ns * entry_bytes) / 1e3

    def merge_us(self, entry_bytes: float) -> float:
        """Of a compaction, for one entry."""
        return (self.merge_entry_ns + self.merge_byte_ns * entry_bytes) / 1e3


DEFAULT_COSTS = HostCosts()


@dataclass(frozen=True)
class EntryCosts:
    """What one entry of a size costs, in nanoseconds."""

    pair_bytes: float  # key and value
    file_bytes: float  # that it takes of a sorted file
    put_ns: float
    flush_ns: float
    merge_ns: float


def entry_costs(puts: dict[str, Any], merges: dict[str, Any], pair_bytes: float) -> EntryCosts:
    """From the results (result.json) of two loads of pairs of this size: one whose memtable is never full, and one
    whose flushes and compactions are counted by level. Raises SpillwayError."""
    counted = merges["engine_statistics"]
    levels = [
        int(name.split(".")[1][5:]) for name in counted if name.startswith("rocksdb.level") and name.endswith(".jobs")
    ]
    if not {0, 1} <= set(levels):
        raise SpillwayError("The run has no figures of its levels; record it again with this version.")
    operations = merges["operations"]
    if not operations or not puts["operations"]:
        raise SpillwayError("The run has written nothing; give it more operations.")
    file_bytes = counted["rocksdb.level0.written.bytes"] / operations
    deeper = [level for level in levels if level > 0]
    read = sum(counted[f"rocksdb.level{level}.read.bytes"] for level in deeper)
    if not read:
        raise SpillwayError("The run has compacted nothing; give it more operations.")
    merge_us = sum(counted[f"rocksdb.level{level}.cpu.micros"] for level in deeper)
    return EntryCosts(
        pair_bytes=pair_bytes,
        file_bytes=file_bytes,
        put_ns=puts["cpu_seconds"] / puts["operations"] * 1e9,
        flush_ns=counted["rocksdb.level0.cpu.micros"] * 1e3 / operations,
        merge_ns=merge_us * 1e3 / (read / file_bytes),
    )


def host_costs(entries: Sequence[EntryCosts], cores: float) -> dict[str, float]:
    """The simulator's host costs. REQUIRES: two or more sizes."""
    costs: dict[str, float] = {"cores": cores}
    lines: tuple[tuple[str, Callable[[EntryCosts], float], Callable[[EntryCosts], float]], ...] = (
        ("put", lambda one: one.pair_bytes, lambda one: one.put_ns),
        ("flush", lambda one: one.file_bytes, lambda one: one.flush_ns),
        ("merge", lambda one: one.file_bytes, lambda one: one.merge_ns),
    )
    for name, size, cost in lines:
        entry, byte = _line([size(one) for one in entries], [cost(one) for one in entries])
        costs["put_ns" if name == "put" else f"{name}_entry_ns"] = entry
        costs[f"{name}_byte_ns"] = byte
    return costs


def _line(sizes: list[float], costs: list[float]) -> tuple[float, float]:
    """A cost for each and for each byte; neither below zero."""
    slope, intercept = (float(value) for value in np.polyfit(sizes, costs, 1))
    if slope < 0:
        return float(np.mean(costs)), 0.0
    if intercept < 0:
        return 0.0, float(np.dot(sizes, costs) / np.dot(sizes, sizes))
    return intercept, slope


def read_host_costs(path: Path) -> dict[str, Any]:
    """Keyword arguments of `lsm_request` from a file of host costs (JSON). Raises SpillwayError."""
    return {f"host__{key}": value for key, value in _read(path).items()}


def read_host(path: Path) -> tuple[HostCosts, float | None]:
    """The costs that such a file has, the others as they are by default, and its cores, if it has them. Raises
    SpillwayError."""
    costs = _read(path)
    cores = costs.pop("cores", None)
    return HostCosts(**costs), cores


def _read(path: Path) -> dict[str, float]:
    try:
        with path.open("rb") as file:
            text = file.read(MOST_BYTES + 1)
        if len(text) > MOST_BYTES:
            raise SpillwayError(f"{path}: this has more than {MOST_BYTES} bytes: it is no file of costs.")
        costs = json.loads(text.decode("utf-8-sig"), object_pairs_hook=partial(_object, path))
    except OSError as error:
        raise SpillwayError(f"{path} cannot be read: {error.strerror}.") from None
    except (ValueError, RecursionError):
        raise SpillwayError(f"{path} is not JSON.") from None
    if not isinstance(costs, dict):
        raise SpillwayError(f'{path} is not an object of costs, such as {{"put_ns": 2500}}.')
    for key, value in costs.items():
        if key not in SECTIONS["host"]:
            raise SpillwayError(f"{path}: there is no cost {key!r}{nearest(key, SECTIONS['host'])}")
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise SpillwayError(f"{path}: {key} is {value!r}, which is not a number.")
        least, most = LEAST.get(key, 0), MOST.get(key, MOST_NS)
        if not least <= value <= most:
            raise SpillwayError(
                f"{path}: {key} is {value!r}; it takes a number of at least {least} and at most {most:g}."
            )
    return costs


def _object(path: Path, pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key in found:
            raise SpillwayError(f"{path}: {key!r} is there twice: leave one of them.")
        found[key] = value
    return found
