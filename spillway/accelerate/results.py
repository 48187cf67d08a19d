"""What db_bench, YCSB and YCSB-cpp print: throughput, and the worst write where they tell it.

Formats: db_bench of RocksDB 7.8 (``fillrandom : 2.083 micros/op 480000 ops/sec …``; ``--histogram`` adds a line
``Min: 0 Median: 1.9 Max: 8123`` in microseconds), YCSB 0.17 (``[INSERT], MaxLatency(us), 8123``), YCSB-cpp 1.0
(``Load throughput(ops/sec): 59206``; ``[INSERT: Count=… Max=8123.00 …]``).
"""

import re
from dataclasses import dataclass

_DB_BENCH = re.compile(r"^(\w+)\s*:\s+[\d.]+ micros/op (\d+) ops/sec", re.MULTILINE)
_DB_BENCH_MAX = re.compile(r"^Min: [\d.]+\s+Median: [\d.]+\s+Max: ([\d.]+)", re.MULTILINE)
_YCSB = re.compile(r"^\[OVERALL\], Throughput\(ops/sec\), ([\d.eE+]+)", re.MULTILINE)
_YCSB_MAX = re.compile(r"^\[(INSERT|UPDATE|READ-MODIFY-WRITE)\], MaxLatency\(us\), ([\d.]+)", re.MULTILINE)
_YCSB_CPP = re.compile(r"^(Load|Run) throughput\(ops/sec\): ([\d.eE+]+)", re.MULTILINE)
_YCSB_CPP_MAX = re.compile(r"\[(?:INSERT|UPDATE|READMODIFYWRITE): [^]]*?Max=([\d.]+)")
# db_bench's benchmarks that only read. Their longest operation is no write.
_READS = re.compile(r"read(?!whilewriting|whilemerging|randomwriterandom|randommergerandom)|seek(?!randomwhilewriting)")


@dataclass(frozen=True)
class Results:
    """What a program tells of itself."""

    throughput: dict[str, float]  # operations a second, by benchmark or phase, in their order
    worst_write_us: float | None  # None: not told


def parse(output: str) -> Results:
    """Every line that is known. Empty for other programs."""
    throughput: dict[str, float] = {}
    worst: list[float] = []
    found = list(_DB_BENCH.finditer(output))
    for index, match in enumerate(found):
        after = found[index + 1].start() if index + 1 < len(found) else len(output)
        throughput[_free_name(match[1], throughput)] = float(match[2])
        longest = _DB_BENCH_MAX.search(output, match.end(), after)
        if longest and not _READS.match(match[1]):
            worst.append(float(longest[1]))
    for match in _YCSB.finditer(output):
        throughput[_free_name("overall", throughput)] = float(match[1])
    for match in _YCSB_CPP.finditer(output):
        throughput[_free_name(match[1].lower(), throughput)] = float(match[2])
    worst += [float(match[2]) for match in _YCSB_MAX.finditer(output)]
    worst += [float(match[1]) for match in _YCSB_CPP_MAX.finditer(output)]
    return Results(throughput, max(worst, default=None))


def _free_name(name: str, taken: dict[str, float]) -> str:
    """A benchmark that runs again is another one: ``overwrite``, ``overwrite 2``."""
    if name not in taken:
        return name
    return next(free for again in range(2, len(taken) + 2) if (free := f"{name} {again}") not in taken)
