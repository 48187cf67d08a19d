"""What the runner costs: `spillway-native run` against the distribution's db_bench, in turns, on the same directory.

    .venv/bin/python bench/runner_overhead.py [--rounds N] [--num N] [--threads N] [--directory DIR]

Both run fillrandom, overwrite and readrandom on an empty RocksDB with the same options (the OPTIONS files that RocksDB
leaves are compared, and what differs is printed), the same keys and values, and the same kind of statistics. In every
other round they change places. Printed is JSON: for each workload both throughputs of every round, their medians, and
the ratio runner / db_bench: the median of the rounds' ratios, their quartiles, the smallest and the largest. Single
rounds differ by a tenth and more on a small machine, so it takes some thirty to tell 1 %. The processor time of each
whole process is the steadier figure where other work shares the machine.
"""

import argparse
import configparser
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
WORKLOADS = ("fillrandom", "overwrite", "readrandom")
KEY_BYTES, VALUE_BYTES, COMPRESSION_RATIO = 16, 100, 0.5  # db_bench's defaults

# db_bench starts from defaults that are not RocksDB's; these make the two alike. Source: the OPTIONS files of both.
ENGINE_OPTIONS = {
    "compression": "kNoCompression",
    "enable_pipelined_write": "true",
    "delayed_write_rate": "8388608",
    "block_cache": "8388608",
    "create_missing_column_families": "true",
    "dump_malloc_stats": "true",
    "hard_pending_compaction_bytes_limit": "137438953472",
    "index_shortening": "kShortenSeparatorsAndSuccessor",
    "pin_top_level_index_and_filter": "false",
    "table_cache_numshardbits": "4",
}
# The runner always keeps tickers, so db_bench does too, at the same level (rocksdb::kExceptHistogramOrTimers = 1).
DB_BENCH_FLAGS = ("--compression_type=none", "--statistics=1", "--stats_level=1", "--histogram=0")

Rates = dict[str, float]


def cpu_seconds() -> float:
    """Processor time of all children that have ended."""
    times = os.times()
    return times.children_user + times.children_system


def run_db_bench(arguments: argparse.Namespace, directory: Path) -> Rates:
    """Operations a second of each workload, as db_bench states them."""
    command = [
        arguments.db_bench,
        f"--benchmarks={','.join(WORKLOADS)}",
        f"--db={directory}",
        f"--num={arguments.num}",
        f"--threads={arguments.threads}",
        f"--key_size={KEY_BYTES}",
        f"--value_size={VALUE_BYTES}",
        f"--compression_ratio={COMPRESSION_RATIO}",
        *DB_BENCH_FLAGS,
    ]
    output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    rates = {name: float(rate) for name, rate in re.findall(r"^(\w+)\s*:.*?([\d.]+) ops/sec", output, re.MULTILINE)}
    return {workload: rates[workload] for workload in WORKLOADS}


def run_runner(arguments: argparse.Namespace, directory: Path) -> Rates:
    """Operations a second of each workload, from the runner's phase events."""
    request = {
        "directory": str(directory),
        "target": {"kind": "directory"},
        "engine": {"name": "rocksdb", "options": ENGINE_OPTIONS},
        "load": {
            "key_bytes": KEY_BYTES,
            "value_bytes": VALUE_BYTES,
            "compression_ratio": COMPRESSION_RATIO,
            "num": arguments.num,
        },
        "phases": [
            {"name": workload, "workload": workload, "threads": arguments.threads, "operations": arguments.num}
            for workload in WORKLOADS
        ],
        "sample_interval_ms": arguments.sample_interval_ms,
    }
    command = [arguments.native, "run"]
    output = subprocess.run(command, input=json.dumps(request), check=True, capture_output=True, text=True).stdout
    events = [json.loads(line) for line in output.splitlines()]
    return {event["name"]: event["operations"] / event["duration_s"] for event in events if event["event"] == "phase"}


def options_of(directory: Path) -> dict[str, str]:
    """The newest OPTIONS file of a store, flat."""
    newest = max(directory.glob("OPTIONS-*"))
    parser = configparser.RawConfigParser(strict=False)
    parser.read_string(newest.read_text().replace("\\", "\\\\"))
    return {f"{section}.{key}": value for section in parser.sections() for key, value in parser[section].items()}


def differences(one: dict[str, str], other: dict[str, str]) -> dict[str, list[str | None]]:
    """Keys under which two flat documents differ, with both values."""
    return {
        key: [one.get(key), other.get(key)]
        for key in sorted(one.keys() | other.keys())
        if one.get(key) != other.get(key)
    }


def measure(arguments: argparse.Namespace) -> dict[str, Any]:
    """All rounds, and what they come to."""
    contenders = {"db_bench": run_db_bench, "runner": run_runner}
    rates: dict[str, list[Rates]] = {name: [] for name in contenders}
    cpu_s: dict[str, list[float]] = {name: [] for name in contenders}
    options: dict[str, dict[str, str]] = {}
    for index in range(arguments.rounds):
        order = list(contenders) if index % 2 == 0 else list(reversed(contenders))
        for name in order:
            with tempfile.TemporaryDirectory(prefix="spillway-overhead-", dir=arguments.directory) as parent:
                directory = Path(parent) / "db"
                before = cpu_seconds()
                rates[name].append(contenders[name](arguments, directory))
                cpu_s[name].append(cpu_seconds() - before)
                options.setdefault(name, options_of(directory))
    by_workload = {w: compared(*([rate[w] for rate in rates[name]] for name in contenders)) for w in WORKLOADS}
    return {
        "rounds": arguments.rounds,
        "num": arguments.num,
        "threads": arguments.threads,
        "workloads": by_workload,
        "cpu_s": compared(cpu_s["db_bench"], cpu_s["runner"]),
        "options_that_differ": differences(options["db_bench"], options["runner"]),
    }


def compared(db_bench: list[float], runner: list[float]) -> dict[str, Any]:
    """Both lists, their medians, and the ratios of the rounds."""
    ratios = [mine / theirs for mine, theirs in zip(runner, db_bench, strict=True)]
    low, _, high = statistics.quantiles(ratios, n=4) if len(ratios) > 1 else (ratios[0],) * 3
    return {
        "db_bench": db_bench,
        "runner": runner,
        "db_bench_median": statistics.median(db_bench),
        "runner_median": statistics.median(runner),
        "ratio_median": statistics.median(ratios),
        "ratio_quartiles": [low, high],
        "ratio_min": min(ratios),
        "ratio_max": max(ratios),
    }


def main() -> int:
    """The command."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=31)
    parser.add_argument("--num", type=int, default=500_000, help="operations of each thread in each workload")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--sample-interval-ms", type=int, default=1000)
    parser.add_argument("--directory", default=None, help="where the stores are made; the system's temporary directory")
    parser.add_argument("--native", default=str(ROOT / "build" / "bin" / "spillway-native"))
    parser.add_argument("--db-bench", default="db_bench")
    json.dump(measure(parser.parse_args()), sys.stdout, indent=2)
    print()
    return 0


if __name__ == "__main__":
    sys.exit(main())
