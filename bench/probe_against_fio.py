"""What the probe finds on a file of the machine's own disk, against fio: IOPS in turns, on the same file.

    .venv/bin/python bench/probe_against_fio.py [--rounds N] [--seconds S] [--size BYTES] [--directory DIR]

Both use io_uring with O_DIRECT, a registered file and registered buffers, one thread, 4 KiB, at iodepth 1, 4, 16 and
64, random and sequential, reads and writes. The two of an arm run one right after the other, in changing order, so
that a slow moment of the machine is between them and not on one side. Both are held to one processor, the one that
takes the fewest interrupts while the file is written: where the scheduler puts a process, beside the drive's
interrupts or not, otherwise makes up to twice the IOPS, and fio is a new process each time. Printed is JSON: for each
arm both IOPS of every round, and the ratio probe / fio: the median of the rounds' ratios, their quartiles, the
smallest and the largest. The bar is a median within 5 % of 1. The file is written once by the probe and removed at
the end.
"""

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
from itertools import count, product
from pathlib import Path
from types import TracebackType
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
DEPTHS = (1, 4, 16, 64)
# fio's word for it → the probe's
WORKLOADS = {
    "randread": ("random", 1.0),
    "randwrite": ("random", 0.0),
    "read": ("sequential", 1.0),
    "write": ("sequential", 0.0),
}
BS_BYTES = 4096
BAR = 0.05
RAMP_S = 0.3  # caches, clocks and the drive's own idle states


class Probe:
    """A conversation with `spillway-native probe` about one file."""

    def __init__(self, native: str, path: Path) -> None:
        """Opens the file for writing: it is the benchmark's own."""
        self._process = subprocess.Popen([native, "probe"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self._ids = count()
        self.ask({"target": {"kind": "file", "path": str(path), "destroy_data": True}}, "ready")

    def ask(self, line: dict[str, Any], answer: str) -> dict[str, Any]:
        """Says a line and returns the event that answers it."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(line) + "\n")
        self._process.stdin.flush()
        for text in self._process.stdout:
            event: dict[str, Any] = json.loads(text)
            if event["event"] == answer:
                return event
            if event["event"] == "error":
                break
        raise SystemExit(f"the probe did not answer {line}: {event}")

    def iops(self, workload: str, depth: int, seconds: float) -> float:
        """One measurement."""
        pattern, read_share = WORKLOADS[workload]
        point = {"id": next(self._ids), "pattern": pattern, "read_share": read_share, "bs_bytes": BS_BYTES}
        point |= {"iodepth": depth, "seconds": seconds, "ramp_s": RAMP_S}
        return float(self.ask(point, "measurement")["iops"])

    def __enter__(self) -> "Probe":
        """For `with`."""
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        """Ends the conversation."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()


def fio_iops(fio: str, path: Path, size: int, workload: str, depth: int, seconds: float) -> float:
    """One measurement by fio, at the same places by the same means."""
    command = [
        fio,
        "--name=arm",
        f"--filename={path}",
        f"--size={size}",
        f"--rw={workload}",
        f"--bs={BS_BYTES}",
        f"--iodepth={depth}",
        "--ioengine=io_uring",
        "--direct=1",
        "--registerfiles=1",
        "--fixedbufs=1",
        "--norandommap=1",
        "--randrepeat=0",
        "--fallocate=none",
        "--time_based=1",
        f"--runtime={int(seconds * 1000)}ms",
        f"--ramp_time={int(RAMP_S * 1000)}ms",
        "--output-format=json",
    ]
    output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    job = json.loads(output[output.index("{") :])["jobs"][0]
    return float(job["read" if "read" in workload else "write"]["iops"])


def interrupts() -> dict[int, int]:
    """Processor → device interrupts that it has taken. Source: proc(5), interrupts."""
    lines = Path("/proc/interrupts").read_text().splitlines()
    processors = [int(name.removeprefix("CPU")) for name in lines[0].split()]
    taken = dict.fromkeys(processors, 0)
    for line in lines[1:]:
        number, *counts = line.split()
        if not number.rstrip(":").isdigit():
            continue  # timers and calls between processors
        for processor, times in zip(processors, counts, strict=False):
            taken[processor] += int(times)
    return taken


def hold_to_quiet_processor(before: dict[int, int]) -> int:
    """Moves this process, and so those it starts, to the processor that took the fewest interrupts since."""
    taken = interrupts()
    quiet = min(os.sched_getaffinity(0), key=lambda processor: taken[processor] - before[processor])
    os.sched_setaffinity(0, {quiet})
    return quiet


def compared(fio: list[float], probe: list[float]) -> dict[str, Any]:
    """Both lists, and the ratios of the rounds."""
    ratios = [mine / theirs for mine, theirs in zip(probe, fio, strict=True)]
    low, _, high = statistics.quantiles(ratios, n=4) if len(ratios) > 1 else (ratios[0],) * 3
    median = statistics.median(ratios)
    return {
        "fio": fio,
        "probe": probe,
        "ratio_median": median,
        "ratio_quartiles": [low, high],
        "ratio_min": min(ratios),
        "ratio_max": max(ratios),
        "within_bar": abs(median - 1) <= BAR,
    }


def measure(arguments: argparse.Namespace, path: Path) -> dict[str, Any]:
    """All rounds of all arms."""
    arms = list(product(WORKLOADS, DEPTHS))
    found: dict[tuple[str, int], dict[str, list[float]]] = {arm: {"fio": [], "probe": []} for arm in arms}
    before = interrupts()
    with Probe(arguments.native, path) as probe:
        probe.ask({"prepare": {"kind": "sequential", "capacities": 1}}, "ready")
    processor = hold_to_quiet_processor(before)
    with Probe(arguments.native, path) as probe:
        for index, (workload, depth) in product(range(arguments.rounds), arms):
            for name in ("fio", "probe") if index % 2 == 0 else ("probe", "fio"):
                if name == "fio":
                    iops = fio_iops(arguments.fio, path, arguments.size, workload, depth, arguments.seconds)
                else:
                    iops = probe.iops(workload, depth, arguments.seconds)
                found[workload, depth][name].append(iops)
    compare = {f"{workload}-{depth}": compared(**found[workload, depth]) for workload, depth in arms}
    return {
        "fio_version": subprocess.run([arguments.fio, "--version"], capture_output=True, text=True).stdout.strip(),
        "rounds": arguments.rounds,
        "seconds": arguments.seconds,
        "size_bytes": arguments.size,
        "processor": processor,
        "bar": BAR,
        "arms_within_bar": sum(arm["within_bar"] for arm in compare.values()),
        "arms": compare,
    }


def main() -> int:
    """The command."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=11)
    parser.add_argument("--seconds", type=float, default=1.0, help="of each measurement")
    parser.add_argument("--size", type=int, default=1 << 30, help="of the file, in bytes")
    parser.add_argument("--directory", default=str(ROOT), help="on the drive to measure; the checkout")
    parser.add_argument("--native", default=str(ROOT / "build" / "bin" / "spillway-native"))
    parser.add_argument("--fio", default="fio")
    arguments = parser.parse_args()
    if shutil.which(arguments.fio) is None:
        print(f"{arguments.fio} was not found; install fio, or name it with --fio.", file=sys.stderr)
        return 2
    with tempfile.NamedTemporaryFile(prefix=".spillway-fio-", dir=arguments.directory) as file:
        os.posix_fallocate(file.fileno(), 0, arguments.size)
        result = measure(arguments, Path(file.name))
    json.dump(result, sys.stdout, indent=2)
    print()
    return 0


if __name__ == "__main__":
    sys.exit(main())
