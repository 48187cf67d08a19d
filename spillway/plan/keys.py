"""Every key that a plan may hold, with its default and what it takes.

One table, so that the document is checked, completed and explained from the same place. Dotted keys name tables;
``drive.set``, ``engine.options`` and ``ycsb`` are open tables: their keys belong to the preset format, to the engine
and to YCSB.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from spillway.errors import SpillwayError
from spillway.plan.answers import lint_table
from spillway.quantity import nearest, parse_size
from spillway.ssd.simulate import INITIAL_STATES

Check = Callable[[Any, str], Any]  # value and its name in, the value to use out; raises SpillwayError

MOST_WHOLE = 2**64 - 1  # of the native side, as of seeds
MOST_REPETITIONS = 10_000  # a plan with more is a slip, as of sweep.MOST_POINTS. Source: guess
MOST_NUMBER = 1e300  # TOML's whole numbers may be larger than any float. Source: guess, near the largest of 1.8e308
PAGE_BYTES = 4096  # of the host's page cache, as native/fs models it

WORKLOADS = (
    "fillseq",
    "fillrandom",
    "filluniquerandom",
    "overwrite",
    "readrandom",
    "seekrandom",
    "readwhilewriting",
    "readrandomwriterandom",
    "waitforcompaction",
    "settle",
    "ycsb-load",
    "ycsb-run",
)
# Engines by name, as native/engine/factory/factory.cc knows them; a build may lack some, which it says itself.
ENGINES = ("rocksdb", "spillway", "raw", "leveldb", "leveldb-vlog", "wiredtiger")
# What RocksDB does as a write stall comes near.
POLICIES = ("slowdown", "no-slowdown", "adoc", "flow-control")
# Tables of settings that belong to one policy: their name → the policy's.
POLICY_TABLES = {"adoc": "adoc", "flow_control": "flow-control"}
# The talk's four ways to the start of a test (B4, B14): initial.kind of the drive before it was
# partitioned, and initial.partition.
PROCEDURES = {
    "partition-trim": ("steady", "trimmed"),
    "partition-trim-precondition": ("steady", "preconditioned"),
    "trim-partition": ("trimmed", "as_is"),
    "trim-partition-precondition": ("trimmed", "preconditioned"),
}
# What a verdict on steadiness may rest on, as spillway/steady/checks.py has it.
STEADY_TESTS = ("cusum", "window", "drift", "end", "writes")
# Workloads that end by themselves and have no operations.
WAITS = ("waitforcompaction", "settle")
# Workloads that put data into an empty store; the others need some to be there.
LOADERS = ("fillseq", "fillrandom", "filluniquerandom", "overwrite", "ycsb-load", *WAITS)
# Keys of a phase that mean something to some workloads only.
OF_SOME_WORKLOADS = {
    "write_rate_ops_s": ("readwhilewriting",),
    "seek_nexts": ("seekrandom",),
    "read_write_percent": ("readrandomwriterandom", "readwhilewriting"),
    "exact_mix": ("readwhilewriting",),
    "diversion": (
        *("fillseq", "fillrandom", "filluniquerandom", "overwrite", "readwhilewriting", "readrandomwriterandom"),
        *("ycsb-load", "ycsb-run"),
    ),
    "ycsb": ("ycsb-load", "ycsb-run"),
}


@dataclass(frozen=True)
class Key:
    """A key's default and the function that checks its value."""

    default: Any
    check: Check


def text(value: Any, where: str) -> str:
    """A Check: takes any text. Raises SpillwayError."""
    if not isinstance(value, str):
        raise SpillwayError(f'{where} is {value!r}; it takes a text in quotes, such as "quickstart".')
    return value


def flag(value: Any, where: str) -> bool:
    """A Check: takes true or false. Raises SpillwayError."""
    if not isinstance(value, bool):
        raise SpillwayError(f"{where} is {value!r}; it takes true or false.")
    return value


def whole(least: int, most: int = MOST_WHOLE) -> Check:
    """A Check of whole numbers from ``least`` to ``most``. Raises SpillwayError when it is called."""

    def check(value: Any, where: str) -> int:
        if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
            too_large = isinstance(value, int) and value > most
            bounds = f"up to {most}" if too_large else f"of at least {least}"
            raise SpillwayError(f"{where} is {value!r}; it takes a whole number {bounds}.")
        return value

    return check


def number(least: float, most: float = float("inf"), *, above: bool = False) -> Check:
    """A Check of numbers from ``least`` to ``most``, without ``least`` itself where ``above``. Raises SpillwayError
    when it is called."""

    def check(value: Any, where: str) -> float:
        good = isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < MOST_NUMBER
        if not good or not least <= value <= most or (above and value == least) or math.isinf(value):
            lower = f"above {least:g}" if above else f"of at least {least:g}"
            upper = f" and at most {most:g}" if most != float("inf") else ""
            raise SpillwayError(f"{where} is {value!r}; it takes a number {lower}{upper}.")
        return float(value)

    return check


def size(value: Any, where: str) -> int:
    """A Check: takes a size in bytes, with or without a unit. Raises SpillwayError."""
    return parse_size(value, where)


def size_of_a_page(value: Any, where: str) -> int:
    """A Check: takes a size of at least one page of the host, in bytes. Raises SpillwayError."""
    count = parse_size(value, where)
    if count < PAGE_BYTES:
        raise SpillwayError(f"{where} is {value!r}; it takes a size of at least {PAGE_BYTES} bytes, a page.")
    return count


def table(value: Any, where: str) -> dict[str, Any]:
    """A Check: takes a table of keys that another module checks. Raises SpillwayError."""
    if not isinstance(value, dict):
        raise SpillwayError(f"{where} is {value!r}; it takes a table of keys and values.")
    return value


def one_of(*choices: str) -> Check:
    """A Check that takes one of ``choices``. Raises SpillwayError when it is called."""

    def check(value: Any, where: str) -> str:
        if value not in choices:
            raise SpillwayError(f"{where} is {value!r}; it takes one of {', '.join(choices)}.")
        return str(value)

    return check


def names_of(*choices: str) -> Check:
    """A Check of lists with one or more of ``choices``, each at most once. Raises SpillwayError when it is called."""

    def check(value: Any, where: str) -> list[str]:
        words = value if isinstance(value, list) else []
        if not words or any(word not in choices for word in words) or len(set(words)) != len(words):
            raise SpillwayError(f"{where} is {value!r}; it takes a list of some of {', '.join(choices)}.")
        return list(words)

    return check


def engine(value: Any, where: str) -> str:
    """A Check: takes the name of an engine. Raises SpillwayError."""
    if value not in ENGINES:
        raise SpillwayError(
            f"{where} is {value!r}, and there is no such engine; there are {', '.join(ENGINES)}"
            f"{nearest(str(value), ENGINES)}"
        )
    return str(value)


def optional(inner: Check) -> Check:
    """A Check that takes what ``inner`` takes, or None."""

    def check(value: Any, where: str) -> Any:
        return None if value is None else inner(value, where)

    return check


optional_size = optional(size)


def seeds(value: Any, where: str) -> list[int]:
    """A Check: takes a list of seeds, one for each repetition. Raises SpillwayError."""
    if not isinstance(value, list) or not value:
        raise SpillwayError(f"{where} is {value!r}; it takes a list of whole numbers, such as [1, 2, 3].")
    return [whole(0)(seed, where) for seed in value]


# What the whole plan has once, whatever its arms say.
PLAN_KEYS: dict[str, Key] = {
    "name": Key("", text),
    "summary": Key("", text),
    "seeds": Key([1], seeds),
    "repetitions": Key(None, optional(whole(1, MOST_REPETITIONS))),
    "lint": Key({}, lint_table),
}

# What each arm has of its own.
ARM_KEYS: dict[str, Key] = {
    "sample_interval_ms": Key(1000, whole(10)),
    "data_directory": Key("", text),
    "drive.kind": Key("emulated", one_of("emulated", "directory")),
    "drive.preset": Key("", text),
    "drive.preset_file": Key("", text),
    "drive.path": Key("", text),
    "drive.capacity": Key(None, optional_size),
    "drive.rated_writes": Key(None, optional_size),
    "drive.smart": Key("auto", one_of("auto", "off")),
    "drive.estimate.preset": Key("", text),
    "drive.estimate.preset_file": Key("", text),
    "drive.estimate.capacity": Key(None, optional_size),
    "drive.time_scale": Key(1.0, number(0, above=True)),
    "drive.pacing": Key("real", one_of("real", "off")),
    "initial.kind": Key("steady", one_of(*INITIAL_STATES, "file")),
    "initial.fill": Key(1.0, number(0, 1)),
    "initial.compression_ratio": Key(1.0, number(0, 1, above=True)),
    "initial.warmup_capacities": Key(0.0, number(0)),
    "initial.path": Key("", text),
    "initial.partition": Key("as_is", one_of("as_is", "trimmed", "preconditioned")),
    "initial.procedure": Key(None, optional(one_of(*PROCEDURES))),
    "kept.directory": Key("", text),
    "kept.from": Key("", text),
    "kept.to": Key("", text),
    "kept.takes": Key("database", one_of("database", "files", "drive")),
    "kept.database": Key("database", text),
    "cost.drive_price": Key(None, optional(number(0, above=True))),
    "cost.currency": Key("", text),
    "fs.size": Key(None, optional_size),
    "fs.discard": Key(True, flag),
    "fs.placement": Key("next_fit", one_of("next_fit", "first_fit")),
    "fs.page_cache_bytes": Key(0, size),
    "fs.writeback_bytes": Key(2**20, size_of_a_page),
    "fs.closed_dirty_bytes": Key(0, size),
    "engine.name": Key("rocksdb", engine),
    "engine.policy": Key("slowdown", one_of(*POLICIES)),
    "engine.adoc.interval_ms": Key(1000, whole(1)),  # this and the next four: ADOC's public code
    "engine.adoc.least_jobs": Key(2, whole(1)),
    "engine.adoc.most_jobs": Key(20, whole(1)),
    "engine.adoc.least_buffer": Key("64MiB", size),
    "engine.adoc.most_buffer": Key("512MiB", size),
    "engine.flow_control.memtables": Key(5, whole(1)),  # this and the next five: TiKV's
    "engine.flow_control.l0_files": Key(20, whole(1)),
    "engine.flow_control.soft_pending": Key("192GiB", size),
    "engine.flow_control.hard_pending": Key("1024GiB", size),
    "engine.flow_control.least_bytes_s": Key(16 * 2**10, whole(1)),
    "engine.flow_control.most_bytes_s": Key(200 * 2**20, whole(1)),
    "engine.spill.store": Key("region", one_of("region", "kv")),
    "engine.spill.rollback": Key("adaptive", one_of("adaptive", "eager", "lazy", "off")),
    "engine.spill.capacity": Key("4GiB", size),  # this and the others: native/spill/include/spillway/options.h
    "engine.spill.generation": Key("256MiB", size),
    "engine.spill.index": Key("256MiB", size),
    "engine.spill.put_back": Key("1MiB", size),
    "engine.spill.poll_ms": Key(100, whole(1)),
    "engine.spill.divert_l0_files": Key(0, whole(0)),
    "engine.spill.resume_l0_files": Key(0, whole(0)),
    "engine.spill.divert_pending": Key(0.98, number(0, 1)),
    "engine.spill.resume_pending": Key(0.9, number(0, 1)),
    "engine.vlog.segment": Key(None, optional_size),  # this and the others: native/engine/vlog/engine.cc
    "engine.vlog.min_value": Key(0, size),
    "engine.vlog.prefetch": Key(32, whole(1)),
    "engine.vlog.gc": Key(True, flag),
    "engine.vlog.gc_garbage_ratio": Key(0.8, number(0, 1, above=True)),
    "engine.vlog.gc_free_ratio": Key(0.1, number(0, 1)),
    "load.key_bytes": Key(16, whole(1)),  # db_bench's default
    "load.value_bytes": Key(100, whole(0)),  # db_bench's default
    "load.compression_ratio": Key(0.5, number(0, 1, above=True)),  # db_bench's default
    "load.num": Key(1_000_000, whole(1)),  # db_bench's default
    "steady.tests": Key(None, optional(names_of(*STEADY_TESTS))),
}
# What each engine has besides its options: of the keys above, `engine.policy` and the tables `engine.NAME`.
ENGINE_SETTINGS = {
    "rocksdb": ("policy", *POLICY_TABLES),
    "spillway": ("policy", "spill"),
    "leveldb-vlog": ("vlog",),
}
OPEN_TABLES = ("drive.set", "engine.options", "ycsb")

# How the operations of an open loop arrive, and the keys of a phase that belong to one of these alone.
ARRIVALS = ("constant", "poisson", "bursts", "trace")
OF_SOME_ARRIVALS = {"burst_s": "bursts", "gap_s": "bursts", "gap_rate_ops_s": "bursts", "arrivals_file": "trace"}

PHASE_KEYS: dict[str, Key] = {
    "name": Key("", text),
    "workload": Key("", one_of(*WORKLOADS)),
    "threads": Key(1, whole(1)),
    "operations": Key(None, optional(whole(1))),
    "duration_s": Key(None, optional(number(0, above=True))),
    "rate_ops_s": Key(None, optional(number(0, above=True))),
    "rate_of": Key(None, optional(text)),
    "rate_share": Key(None, optional(number(0, above=True))),
    "arrivals": Key(None, optional(one_of(*ARRIVALS))),
    "burst_s": Key(None, optional(number(0, above=True))),
    "gap_s": Key(None, optional(number(0, above=True))),
    "gap_rate_ops_s": Key(None, optional(number(0))),
    "arrivals_file": Key(None, optional(text)),
    "write_rate_ops_s": Key(None, optional(number(0, above=True))),
    "until": Key(None, optional(one_of("steady"))),
    "measured": Key(True, flag),
    "diversion": Key("automatic", one_of("automatic", "always", "never")),
    "seek_nexts": Key(0, whole(0)),
    "read_write_percent": Key(None, optional(number(0, 100))),
    "exact_mix": Key(False, flag),
    "ycsb": Key(None, optional(table)),
}
