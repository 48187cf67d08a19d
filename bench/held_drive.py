"""How many I/Os a second a Python program gets from a drive that it holds, by how many it waits for at once.

    .venv/bin/python bench/held_drive.py [--ios N] [--rounds N]

Random reads of 4 KiB on the preset `intel-p4510`, 128 in flight: the program waits for 1, 8, 64 or 128 of them, and
submits as many again. Printed is JSON: for each the I/Os a second of real time, the median of the rounds; and the same
of `spillway-native ssd-simulate`, which asks nobody.
"""

import argparse
import json
import random
import statistics
import time

from spillway.native.process import run_native
from spillway.ssd.drive import PAGE_BYTES, Drive
from spillway.ssd.simulate import DriveChoice, drive_request

PRESET, CAPACITY = "intel-p4510", "8GiB"
IN_FLIGHT = 128
WAITS = (1, 8, 64, 128)


def rate(ios: int, at_least: int) -> float:
    """I/Os a second of a program that waits for so many at a time."""
    draw = random.Random(1)
    with Drive(PRESET, settings={"capacity.capacity_bytes": CAPACITY}) as drive:
        pages = drive.data_bytes // PAGE_BYTES
        places = [("read", draw.randrange(pages) * PAGE_BYTES, PAGE_BYTES) for _ in range(ios)]
        began, done = time.perf_counter(), 0
        drive.submit(places[:IN_FLIGHT])
        submitted = IN_FLIGHT
        while done < ios:
            some = len(drive.wait(min(at_least, drive.in_flight)))
            done += some
            drive.submit(places[submitted : submitted + some])
            submitted += some
        return ios / (time.perf_counter() - began)


def model_rate(ios: int) -> float:
    """I/Os a second of the model alone."""
    drive = drive_request(DriveChoice(preset=PRESET, capacity=CAPACITY))
    work = {"name": "randread", "iodepth": IN_FLIGHT, "ios": ios}
    result = run_native("ssd-simulate", {"drive": drive, "initial": {"kind": "steady"}, "workload": work})
    return ios / float(result["cpu_seconds"])


def main() -> None:
    """Measures each in turns and prints the medians."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--ios", type=int, default=100_000)
    parser.add_argument("--rounds", type=int, default=3)
    asked = parser.parse_args()
    rates: dict[str, list[float]] = {}
    for _ in range(asked.rounds):
        for at_least in WAITS:
            rates.setdefault(f"waits for {at_least}", []).append(rate(asked.ios, at_least))
        rates.setdefault("the model alone", []).append(model_rate(asked.ios))
    print(json.dumps({"ios": asked.ios, "ios_per_s": {name: statistics.median(each) for name, each in rates.items()}}))


if __name__ == "__main__":
    main()
