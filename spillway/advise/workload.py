"""What is asked of a configuration: a data set, a mix of operations, perhaps a rate, and limits.

Shares are of operations; a read-modify-write gets a pair and then puts it, and counts as both. Keys of puts and gets
are uniform, or zipfian with exponent ``skew`` as YCSB's are (popularity.py). Every put overwrites a key that is there,
so the data set keeps its size. ``clients`` threads work one operation after another.
"""

import math
import re
from dataclasses import dataclass, replace

from spillway.errors import SpillwayError
from spillway.quantity import nearest

# YCSB's words stand beside this project's. An insert counts as a put of a key that is there.
KINDS = {
    "put": "puts",
    "update": "puts",
    "insert": "puts",
    "get": "gets",
    "read": "gets",
    "scan": "scans",
    "rmw": "rmws",
}
SCAN_PAIRS = 100  # YCSB's workload E has up to 100. Source: YCSB core workloads
SUM_TOLERANCE = 0.005  # of the shares of a mix: 0.33, 0.33 and 0.34 are one whole, 0.3 and 0.3 are a slip
MEMORY_BYTES = 2**30  # Source: guess; a small part of a server
LEAST_PAIRS = 1000  # fewer fit one memtable, and there is nothing to advise. Source: guess


@dataclass(frozen=True)
class Workload:
    """The load; sizes in bytes, shares of operations that add up to 1 and ``rmws``, which are in two of them."""

    data_bytes: int  # keys and newest values
    key_bytes: int
    value_bytes: int
    puts: float  # read-modify-writes among them
    gets: float  # read-modify-writes among them
    scans: float
    scan_pairs: int = SCAN_PAIRS
    skew: float | None = None
    clients: int = 1
    rate_ops_s: float | None = None  # of all operations; None: as fast as the clients go
    rmws: float = 0.0  # read-modify-writes: one operation, a get and a put

    @property
    def pair_bytes(self) -> int:
        """Bytes of a key and its value."""
        return self.key_bytes + self.value_bytes

    @property
    def pairs(self) -> int:
        """Number of keys."""
        return max(1, self.data_bytes // self.pair_bytes)

    @property
    def reads(self) -> float:
        """Share of the operations that read."""
        return self.gets + self.scans

    def scaled(self, factor: float) -> "Workload":
        """The same on 1/``factor`` of the data."""
        return replace(self, data_bytes=max(self.pair_bytes, round(self.data_bytes / factor)))


@dataclass(frozen=True)
class Limits:
    """What a configuration has to keep; None: no limit."""

    p99_s: float | None = None  # of each kind of operation in the mix
    space_bytes: int | None = None  # held on the drive
    memory_bytes: int = MEMORY_BYTES  # memtables, block cache, filters and indexes
    years: float | None = None  # until the drive is worn


@dataclass(frozen=True)
class Mix:
    """Shares as a workload has them."""

    puts: float
    gets: float
    scans: float
    rmws: float = 0.0


def parse_mix(text: str) -> Mix:
    """Of ``put=0.5,get=0.4,scan=0.1``; shares or percentages that add up to 1. Raises SpillwayError."""
    named: dict[str, float] = {}
    for part in filter(None, (each.strip() for each in text.split(","))):
        name, equals, value = (each.strip() for each in part.partition("="))
        if name not in KINDS:
            *others, last = KINDS
            raise SpillwayError(
                f"--mix has {name!r}; it takes {', '.join(others)} and {last}{nearest(name, list(KINDS))}"
            )
        if name in named:
            raise SpillwayError(f"--mix has {name} twice: give each kind once.")
        named[name] = _share(value, name) if equals else math.nan
    total = sum(named.values())
    if not math.isfinite(total):
        raise SpillwayError(f"--mix is {text!r}; it takes shares by kind, such as put=0.5,get=0.4,scan=0.1.")
    if abs(total - 1) > SUM_TOLERANCE:
        raise SpillwayError(f"--mix is {text!r}, whose shares add up to {total:g}: they have to add up to 1.")
    shares = dict.fromkeys(KINDS.values(), 0.0)
    for name, share in named.items():
        shares[KINDS[name]] += share / total
    rmws = shares["rmws"]
    return Mix(shares["puts"] + rmws, shares["gets"] + rmws, shares["scans"], rmws)


def _share(text: str, name: str) -> float:
    match = re.fullmatch(r"([0-9]*\.?[0-9]+)(%?)", text)
    value = math.nan if match is None else float(match[1]) / (100 if match[2] else 1)
    if not 0 <= value <= 1:
        raise SpillwayError(f"--mix has {name}={text}; it takes a share from 0 to 1, such as 0.5 or 50%.")
    return value


def check(load: Workload, limits: Limits, capacity_bytes: int | None) -> None:
    """Raises SpillwayError for a load that no configuration could hold."""
    if load.key_bytes < 8 or load.value_bytes < 0:
        raise SpillwayError(f"--key is {load.key_bytes}: keys have at least 8 bytes, as in every load of a run.")
    if load.pairs < LEAST_PAIRS:
        raise SpillwayError(f"--data is too small: give at least {LEAST_PAIRS} pairs, each of {load.pair_bytes} bytes.")
    if load.scans and load.scan_pairs > load.pairs:
        raise SpillwayError(f"--scan-pairs is {load.scan_pairs}, and the data have {load.pairs} pairs: give fewer.")
    if limits.space_bytes is not None and limits.space_bytes < load.data_bytes:
        raise SpillwayError("--space is less than --data: every configuration holds at least the data set.")
    if capacity_bytes is not None and load.data_bytes >= capacity_bytes:
        raise SpillwayError("--data does not fit the drive: name a larger drive or a smaller data set.")
