"""Host bytes of the same workload by another client and by `spillway run`: YCSB-cpp and db_bench, through the plugin.

    .venv/bin/python scripts/against_other_clients.py [--ycsb PATH [--workload NAME ...]] [--db-bench]
                                                      [--count N] [--rounds N]

Each client runs unmodified with the plugin preloaded, on an emulated drive in virtual time; then `spillway run` does
the same on a drive of the same preset: the same engine options, records of the same size (`spillway.layout = named`,
as YCSB-cpp's binding stores them), the same numbers of records and operations, one thread. Each ends with nothing left
to flush or compact: YCSB-cpp cannot wait for that, so db_bench opens its database for it. Without that, how far
compaction lags behind at the end, a matter of the machine's other work, makes some per cent. The two take turns, for
chance decides when a compaction starts and so how much it moves. Printed is JSON: for each workload both figures of
every round by cause, and the ratio of the means, ours / theirs. The bar is 3 %; exit code 1 where it is missed.
Below some 100000 records a single large compaction more or less is already that much.
`--ycsb` names a YCSB-cpp executable that has RocksDB's binding.
"""

import argparse
import csv
import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import tomli_w

ROOT = Path(__file__).resolve().parents[1]
PLUGIN = Path(os.environ.get("SPILLWAY_PLUGIN", ROOT / "build/native/plugin/librocksdb-spillway.so"))
SPILLWAY = [sys.executable, "-m", "spillway.cli"]
BAR = 0.03
TIMEOUT_S = 3600

PRESET = """
name = "wide"
summary = "A drive with room for every client's database"

[geometry]
channels = 4
dies_per_chip = 2
pages_per_block = 64
page_bytes = 4096

[capacity]
capacity_bytes = "4GiB"
spare_factor = 0.2
"""
# A sixteenth of RocksDB's defaults, so that some hundred megabytes go through several levels.
SHARED = {"write_buffer_size": 4 << 20, "target_file_size_base": 4 << 20, "max_bytes_for_level_base": 16 << 20}
# A writer waits for each compaction of L0, whichever client is the faster one. Where it does not, more files may lie in
# L0 when a compaction starts, and are merged for fewer bytes: settled runs of 100000 records then differed by 4.4 %.
SHARED |= {
    f"level0_{name}": 4 for name in ("file_num_compaction_trigger", "slowdown_writes_trigger", "stop_writes_trigger")
}
OPTIONS = {
    **SHARED,
    "compression": "kNoCompression",
    "use_direct_reads": True,
    "use_direct_io_for_flush_and_compaction": True,
    "max_background_jobs": 2,
    "max_open_files": -1,
}
VALUE_BYTES = 400  # of db_bench's pairs

Figures = dict[str, int]  # host bytes by cause


def call(words: list[str], preloaded: bool = False) -> None:
    """Runs a client to its end; what it printed is shown where it fails."""
    environment = {**os.environ, **({"LD_PRELOAD": str(PLUGIN)} if preloaded else {})}
    done = subprocess.run(words, env=environment, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
    if done.returncode != 0:
        raise SystemExit(f"{words[0]} ended with {done.returncode}: {(done.stderr or done.stdout)[-2000:]}")


def by_plugin(place: Path, *commands: Callable[[str], list[str]]) -> Figures:
    """Host bytes of unmodified clients, one after another on one drive. Each command is a function of its URI."""
    state = place / "state"
    for command in commands:
        call(command(f"spillway://preset_file={place.parent / 'wide.toml'};state={state};pacing=off"), preloaded=True)
    counters = json.loads((state / "counters.json").read_text())["counters_since_made"]
    return dict(counters["host_bytes_written_by_cause"])


def by_spillway(place: Path, plan: dict[str, Any]) -> Figures:
    """Host bytes of all phases of a plan on the same drive."""
    path = place / "plan.toml"
    common = {
        "drive": {"preset_file": str(place.parent / "wide.toml"), "pacing": "off"},
        "initial": {"kind": "trimmed"},
        "engine": {"name": "rocksdb", "options": OPTIONS},
    }
    path.write_text(tomli_w.dumps(common | plan))
    call([*SPILLWAY, "run", str(path), "--out", str(place / "run")])
    summary = json.loads((place / "run" / "summary.json").read_text())
    if not summary["complete"]:
        raise SystemExit(f"spillway run is incomplete: {place}")
    figures: Figures = {}
    for samples in sorted((place / "run").rglob("samples.csv")):
        with samples.open(newline="") as file:
            for row in csv.DictReader(file):
                for column, value in row.items():
                    cause = column.removeprefix("host_bytes_written_")
                    if cause != column and value:
                        figures[cause] = figures.get(cause, 0) + int(float(value))
    return figures


def ycsb_cpp(executable: Path, workload: str, place: Path, count: int) -> Figures:
    """YCSB-cpp's load and run of a core workload."""
    from spillway.plan.ycsb import WORKLOADS

    properties = {
        **WORKLOADS[workload],
        "recordcount": count,
        "operationcount": count,
        "rocksdb.dbname": place / "db",
        "rocksdb.compression": "no",
        "rocksdb.use_direct_reads": "true",
        "rocksdb.use_direct_io_for_flush_compaction": "true",
        "rocksdb.max_background_jobs": OPTIONS["max_background_jobs"],
        "rocksdb.max_open_files": OPTIONS["max_open_files"],
        **{f"rocksdb.{name}": size for name, size in SHARED.items()},
    }

    def command(uri: str) -> list[str]:
        given = [
            word for key, value in (properties | {"rocksdb.fs_uri": uri}).items() for word in ("-p", f"{key}={value}")
        ]
        return [str(executable), "-load", "-run", "-db", "rocksdb", "-threads", "1", *given]

    return by_plugin(
        place, command, lambda uri: db_bench_words(uri, place, "flush,waitforcompaction", "--use_existing_db")
    )


def our_ycsb(workload: str, place: Path, count: int, seed: int) -> Figures:
    """The same by `spillway run`."""
    properties = {"properties": workload, "recordcount": count, "operationcount": count, "spillway.layout": "named"}
    phases = [{"workload": "ycsb-load"}, {"workload": "ycsb-run"}, {"workload": "settle"}]
    return by_spillway(place, {"ycsb": properties, "phases": phases, "seeds": [seed]})


def db_bench(place: Path, count: int) -> Figures:
    """db_bench's fillrandom and overwrite, until nothing is left to compact."""
    work = "fillrandom,overwrite,waitforcompaction"
    more = (f"--num={count}", f"--value_size={VALUE_BYTES}")
    return by_plugin(place, lambda uri: db_bench_words(uri, place, work, *more))


def db_bench_words(uri: str, place: Path, benchmarks: str, *more: str) -> list[str]:
    """A call of db_bench with the engine options of this comparison."""
    options = [f"--{name}={size}" for name, size in SHARED.items()]
    options += ["--compression_type=none", "--use_direct_reads", "--use_direct_io_for_flush_and_compaction"]
    options += [f"--max_background_jobs={OPTIONS['max_background_jobs']}"]
    return ["db_bench", f"--fs_uri={uri}", f"--db={place / 'db'}", f"--benchmarks={benchmarks}", *options, *more]


def our_fill(place: Path, count: int, seed: int) -> Figures:
    """The same by `spillway run`."""
    load = {"num": count, "key_bytes": 16, "value_bytes": VALUE_BYTES}
    phases = [{"workload": name} for name in ("fillrandom", "overwrite", "waitforcompaction")]
    return by_spillway(place, {"load": load, "phases": phases, "seeds": [seed]})


def by_ycsb_cpp(program: Path, workload: str, count: int, place: Path) -> Figures:
    """As ``compare`` calls it."""
    return ycsb_cpp(program, workload, place, count)


def by_our_ycsb(workload: str, count: int, place: Path, seed: int) -> Figures:
    """As ``compare`` calls it."""
    return our_ycsb(workload, place, count, seed)


def compare(
    name: str, rounds: int, theirs: Callable[[Path], Figures], ours: Callable[[Path, int], Figures]
) -> dict[str, Any]:
    """Both in turns, and the ratio of their means."""
    figures: dict[str, list[Figures]] = {"theirs": [], "ours": []}
    with tempfile.TemporaryDirectory() as parent:
        (Path(parent) / "wide.toml").write_text(PRESET)
        for index in range(rounds):
            for side in ("theirs", "ours"):
                place = Path(parent) / f"{side}{index}"
                place.mkdir()
                figures[side].append(theirs(place) if side == "theirs" else ours(place, index + 1))
                print(f"{name} {side} {index + 1}/{rounds}: {sum(figures[side][-1].values())}", file=sys.stderr)
    means = {side: statistics.mean(sum(each.values()) for each in figures[side]) for side in figures}
    ratio = means["ours"] / means["theirs"]
    return {"workload": name, "ratio": ratio, "within_bar": abs(ratio - 1) <= BAR, "host_bytes_by_cause": figures}


def main() -> None:
    """Compares what was asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ycsb", type=Path)
    parser.add_argument("--workload", action="append", default=[])
    parser.add_argument("--db-bench", action="store_true")
    parser.add_argument("--count", type=int, default=200_000)
    parser.add_argument("--rounds", type=int, default=3)
    asked = parser.parse_args()
    results = []
    if asked.ycsb:
        for workload in asked.workload or ["workloada"]:
            results.append(
                compare(
                    f"YCSB-cpp {workload}",
                    asked.rounds,
                    partial(by_ycsb_cpp, asked.ycsb.absolute(), workload, asked.count),
                    partial(by_our_ycsb, workload, asked.count),
                )
            )
    if asked.db_bench:
        results.append(
            compare(
                "db_bench fillrandom,overwrite",
                asked.rounds,
                lambda place: db_bench(place, asked.count),
                lambda place, seed: our_fill(place, asked.count, seed),
            )
        )
    print(json.dumps({"bar": BAR, "count": asked.count, "rounds": asked.rounds, "workloads": results}, indent=1))
    if not all(result["within_bar"] for result in results):
        raise SystemExit(1)


if __name__ == "__main__":
    main()
