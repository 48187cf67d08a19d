"""How often the verdict on steadiness is wrong on made series, and how long one takes.

    .venv/bin/python bench/steady_errors.py

1,000 series of every kind, noise and length, with seed 1: the rates are those of `spillway steady --error-rates`, with
their intervals at 95 %. Some minutes.
"""

import json
import statistics
import sys
import time
from concurrent.futures import ProcessPoolExecutor

import numpy as np

from spillway.steady import judge_arrays
from spillway.steady.rates import Rate, error_rates
from spillway.steady.synthetic import KINDS

SERIES, SEED = 1000, 1
TIMED = {"white noise", "three series of white noise", "burst of 5-30 % of the run, 1.3-3 times"}


def of_kind(place: int) -> list[Rate]:
    """The rates of one kind."""
    return error_rates(SERIES, SEED, [KINDS[place]])


def milliseconds(name: str, samples: int) -> float:
    """The median time of a verdict on one made series."""
    kind = next(each for each in KINDS if each.name == name)
    rng = np.random.default_rng(SEED)
    times = np.arange(1.0, samples + 1)
    spent = []
    for _ in range(200):
        columns = kind.make(rng, samples, 0.05)
        began = time.perf_counter()
        judge_arrays(times, columns)
        spent.append(1000 * (time.perf_counter() - began))
    return round(statistics.median(spent), 3)


def main() -> int:
    """Print both as one JSON document."""
    took = {name: {samples: milliseconds(name, samples) for samples in (60, 600, 3000)} for name in sorted(TIMED)}
    with ProcessPoolExecutor() as pool:
        rates = [rate.document() for some in pool.map(of_kind, range(len(KINDS))) for rate in some]
    print(json.dumps({"series": SERIES, "seed": SEED, "verdict_ms": took, "rates": rates}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
