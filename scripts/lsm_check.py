"""A run of plans/lsm-check.toml, lsm-check-unseen.toml or lsm-check-blobs.toml beside what the LSM shape simulator says
of each arm.

    spillway run plans/lsm-check.toml --out runs/lsm-check
    .venv/bin/python scripts/lsm_check.py runs/lsm-check [--host host.json] [KEY=VALUE …]

KEY=VALUE: keys of the simulator's request, such as host.put_ns=9000. Prints CSV, in the drive's time: throughput and
share of time in stalls while putting, wa_app of it (to the end, if the plan waits until the tree has settled), the
bytes of each level in the mean over the second half of the puts, measured and
simulated; then, as comments, how many arms are within the bounds that docs/LSM.md names. Beside the means are the bytes
after all puts, which count for nothing: which of a small level's files has just been compacted is chance.
"""

import argparse
import csv
import json
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

from spillway.errors import Interrupted
from spillway.lsm import DEFAULT_COSTS, lsm_request, ratios, read_host_costs, simulate
from spillway.plan.arm import Arm
from spillway.plan.document import load_plan
from spillway.rundir.directory import read_samples

Pair = tuple[float, float]  # measured and simulated
Course = list[tuple[float, list[float]]]
SAMPLES = 300  # of a simulation
FEW_FILES = 4  # a level of no more files than these is some files more or less: it is not compared
BOUNDS = {"ops_s": 0.2, "wa_app": 0.1, "level bytes": 0.15}  # relative
STALL_BOUND = 0.2  # relative
LEAST_STALL_SHARE = 0.05  # of the time: a smaller share is held against this one
DISTRIBUTIONS = {"filluniquerandom": "filluniquerandom", "overwrite": "uniform"}  # by the workload that puts
BLOB_OPTIONS = {
    "enable_blob_files": bool,
    "min_blob_size": int,
    "blob_file_size": int,
    "enable_blob_garbage_collection": bool,
    "blob_garbage_collection_age_cutoff": float,
}


def job_threads(max_background_jobs: int) -> tuple[int, int]:
    """Threads of flushes and of compactions, as RocksDB's GetBGJobLimits splits its jobs."""
    flushes = max(1, max_background_jobs // 4)
    return flushes, max(1, max_background_jobs - flushes)


def time_scale(arm: Arm) -> float:
    """Seconds of the machine that a second of the drive takes."""
    scale: float = arm.request(Path("unused"), 1)["target"]["time_scale"]
    return scale


def measured_phase(asked: dict[str, Any]) -> dict[str, Any]:
    """The phase that is compared: the first that is measured."""
    phase: dict[str, Any] = next(phase for phase in asked["phases"] if phase["measured"])
    return phase


def option(text: str, kind: type) -> Any:
    """An option of RocksDB, of which a plan has text."""
    return text == "true" if kind is bool else kind(text)


def scaled_host(scale: float, host: dict[str, Any]) -> dict[str, Any]:
    """Costs of the processor in the drive's time."""
    costs = {f"host__{key}": value for key, value in asdict(DEFAULT_COSTS).items()} | host
    return {key: value / scale if key.endswith("_ns") else value for key, value in costs.items()}


def request(arm: Arm, settings: tuple[str, ...] = (), interval_s: float = 0.0, **host: Any) -> dict[str, Any]:
    """The simulator's request for an arm of the plan."""
    asked = arm.request(Path("unused"), 1)
    options, initial = asked["engine"]["options"], asked["target"]["initial"]
    flush_threads, compaction_threads = job_threads(int(options["max_background_jobs"]))
    phase = measured_phase(asked)
    workloads = [each["workload"] for each in asked["phases"]]
    blobs = {f"tree__{key}": option(options[key], kind) for key, kind in BLOB_OPTIONS.items() if key in options}
    return lsm_request(
        asked["target"]["drive"],
        fill=initial["fill"] if initial["kind"] == "steady" else 0.0,
        settings=settings,
        sample_interval_s=interval_s,
        load__distribution=DISTRIBUTIONS[phase["workload"]],
        load__preload="fillseq" if workloads[0] == "fillseq" else None,
        load__operations=phase["operations"],
        load__settle="settle" in workloads,
        tree__level_compaction_dynamic_level_bytes=option(
            options.get("level_compaction_dynamic_level_bytes", "false"), bool
        ),
        tree__fanout=float(options["max_bytes_for_level_multiplier"]),
        tree__compaction_threads=compaction_threads,
        tree__flush_threads=flush_threads,
        load__num=asked["load"]["num"],
        load__key_bytes=asked["load"]["key_bytes"],
        load__value_bytes=asked["load"]["value_bytes"],
        tree__write_buffer_size=int(options["write_buffer_size"]),
        tree__target_file_size_base=int(options["target_file_size_base"]),
        tree__max_bytes_for_level_base=int(options["max_bytes_for_level_base"]),
        **blobs,
        **scaled_host(asked["target"]["time_scale"], host),
    )


def level_bytes(statistics: dict[str, int]) -> list[float]:
    """Bytes of each level at the end of a run, as RocksDB counts them. Empty: a run of an older version."""
    found = {
        int(name.split(".")[1].removeprefix("level")): float(value)
        for name, value in statistics.items()
        if name.startswith("rocksdb.level") and name.count(".") == 2 and name.endswith(".bytes")
    }
    return [found.get(level, 0.0) for level in range(max(found, default=-1) + 1)]


def mean_levels(course: Course) -> list[float]:
    """Bytes of each level, in the mean over the second half of the puts. ``course``: puts since the row before, and
    bytes of levels. Which files of a small level have just been compacted is then no longer a matter of the moment."""
    half, done, weight = sum(puts for puts, _ in course) / 2, 0.0, 0.0
    sums: list[float] = []
    for puts, levels in course:
        counted = min(puts, max(0.0, done + puts - half))
        done, weight = done + puts, weight + counted
        sums += [0.0] * (len(levels) - len(sums))
        for level, size in enumerate(levels):
            sums[level] += counted * size
    return [each / weight for each in sums] if weight else []


def measured_course(directory: Path, phase: str = "fill") -> Course:
    """Of a run's phase. Empty: a run of an older version, whose samples have no levels."""
    names = [f"level{level}_bytes" for level in range(7)]
    rows = [row for row in read_samples(directory) if row["phase"] == phase and row.get(names[0]) is not None]
    return [(float(row["writes"]), [float(row[name]) for name in names]) for row in rows]


def simulated_course(samples: list[dict[str, Any]]) -> Course:
    """Of the simulator's samples, whose operations are cumulative."""
    before = [0.0, *(float(sample["operations"]) for sample in samples)]
    return [
        (sample["operations"] - earlier, [float(size) for size in sample["level_bytes"]])
        for sample, earlier in zip(samples, before, strict=False)
    ]


def file_bytes(asked: dict[str, Any]) -> list[float]:
    """Bytes of a file of L0, and of one of any other level."""
    tree = asked["tree"]
    return [float(tree["write_buffer_size"]), float(tree["target_file_size_base"])]


def level_errors(measured: list[float], simulated: list[float], files: list[float]) -> dict[int, float]:
    """The relative errors of those levels that hold more than FEW_FILES files on one side or the other. Where it is the
    simulator's alone, its level is held against so many files. ``files``: as of `file_bytes`."""
    errors = {}
    for level in range(max(len(measured), len(simulated))) if measured and simulated else ():
        one, other = (side[level] if level < len(side) else 0.0 for side in (measured, simulated))
        few = FEW_FILES * files[min(level, 1)]
        if max(one, other) > few:
            errors[level] = abs(other - one) / max(one, few)
    return errors


def compare(
    found: dict[str, Any],
    statistics: dict[str, int],
    result: dict[str, Any],
    courses: tuple[Course, Course],
    files: list[float],
    scale: float = 1.0,
) -> dict[str, Any]:
    """What is printed of one arm, whose drive took ``scale`` times as long."""
    means = mean_levels(courses[0]), mean_levels(courses[1])
    derived = ratios(result)
    return {
        "ops_s": (found["throughput_ops_s"] * scale, result["ops_s"]),
        "stall_share": (found["stalls"]["seconds"] / found["duration_s"], derived.stall_share or 0.0),
        "wa_app": ((found["bill"] or found)["wa_app"], derived.wa_app or 0.0),
        "level_errors": level_errors(*means, files),
        "mean_levels": means,
        "end_levels": (level_bytes(statistics), [float(level["bytes"]) for level in result["levels"]]),
    }


def within(rows: list[dict[str, Any]]) -> list[str]:
    """How many arms are within each bound."""

    def count(name: str, fits: list[bool]) -> str:
        return f"# {name}: {sum(fits)} of {len(fits)}"

    def near(pair: Pair, bound: float) -> bool:
        return abs(pair[1] / pair[0] - 1) <= bound

    lines = [count(f"{name} within {BOUNDS[name]:.0%}", [near(row[name], BOUNDS[name]) for row in rows])
             for name in ("ops_s", "wa_app")]  # fmt: skip
    shares = [row["stall_share"] for row in rows]
    stalls = [abs(other - one) <= STALL_BOUND * max(one, LEAST_STALL_SHARE) for one, other in shares]
    lines.append(count(f"stall_share within {STALL_BOUND:.0%}", stalls))
    bound = BOUNDS["level bytes"]
    compared = [errors for row in rows if (errors := row["level_errors"])]
    lines.append(count(f"mean bytes of every level within {bound:.0%}", [max(e.values()) <= bound for e in compared]))
    for level in sorted({level for errors in compared for level in errors}):
        fits = [errors[level] <= bound for errors in compared if level in errors]
        lines.append(count(f"mean bytes of L{level} within {bound:.0%}", fits))
    return lines


def _megabytes(levels: list[float]) -> str:
    held = [level for level in range(len(levels)) if levels[level] > 0]
    return " ".join(f"L{level}:{levels[level] / 1e6:.1f}" for level in held)


def main() -> int:
    """Prints the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    parser.add_argument("directory", type=Path)
    parser.add_argument("settings", nargs="*", metavar="KEY=VALUE")
    parser.add_argument("--host", type=Path, help="host costs, of scripts/lsm_host_costs.py")
    given = parser.parse_args()
    host = read_host_costs(given.host) if given.host else {}
    measured = json.loads((given.directory / "summary.json").read_text(encoding="utf-8"))["arms"]
    names = ("ops_s", "stall_share", "wa_app")
    table = csv.writer(sys.stdout, lineterminator="\n")
    columns = [f"{kind}_{name}" for name in names for kind in ("measured", "simulated")]
    columns += ["level_errors"]
    columns += [f"{kind}_{name}_mb" for name in ("mean_levels", "end_levels") for kind in ("measured", "simulated")]
    table.writerow(["arm", *columns])
    rows = []
    for arm in load_plan(given.directory / "plan.toml").arms:
        found = measured[arm.name]
        result = json.loads((given.directory / found["directory"] / "result.json").read_text(encoding="utf-8"))
        events: list[dict[str, Any]] = []
        scale = time_scale(arm)
        asked = request(arm, tuple(given.settings), found["duration_s"] / scale / SAMPLES, **host)
        simulated = simulate(asked, events.append)
        if not simulated["complete"]:
            raise Interrupted
        samples = [event for event in events if event["event"] == "lsm-sample"]
        phase = measured_phase(arm.request(Path("unused"), 1))["name"]
        courses = measured_course(given.directory / found["directory"], phase), simulated_course(samples)
        row = compare(found, result["engine_statistics"], simulated, courses, file_bytes(asked), scale)
        figures = [f"{value:.4g}" for name in names for value in row[name]]
        figures.append(" ".join(f"L{level}:{error:.2f}" for level, error in row["level_errors"].items()))
        figures += [_megabytes(levels) for name in ("mean_levels", "end_levels") for levels in row[name]]
        table.writerow([arm.name, *figures])
        sys.stdout.flush()
        rows.append(row)
    print("\n".join(within(rows)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
