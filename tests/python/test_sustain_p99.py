"""The bound of a p99 that follows from samples: certain, and the least that is."""

import numpy as np
import pytest
from made_run import known_seconds, second

from spillway.rundir.samples import Row
from spillway.sustain.verdict import p99_at_most

PERCENTILES = {"p50": 50, "p99": 99, "p99_9": 99.9, "max": 100}


def is_certain_p99(rows: list[Row], limit: float) -> bool:
    """Whether at most 1 % of the writes can have taken longer than a limit, in microseconds.

    Of one second's writes at most half exceed its p50, 1 % its p99, 0.1 % its p99.9 and none its maximum; and by
    Markov's inequality at most mean / x exceed x. Nothing else is known: a lower bound would be a guess.
    """

    def most_above(row: Row) -> float:
        shares = [(100 - q) / 100 for name, q in PERCENTILES.items() if row[f"write_latency_{name}_us"] <= limit]
        return float(row["writes"] * min([1.0, row["write_latency_mean_us"] / limit, *shares]))

    return bool(sum(most_above(row) for row in rows) <= 0.01 * sum(row["writes"] for row in rows))


def test_the_bound_of_the_p99_is_the_least_that_is_certain() -> None:
    assert p99_at_most(known_seconds(40)) == 900e-6
    slow = {f"write_latency_{name}_us": 5e6 for name in ("mean", "p50", "p99", "p99_9", "max")}
    one_slow = [*known_seconds(1999), *known_seconds(1, **slow)]
    assert p99_at_most(one_slow) == 2000e-6  # one in 2000 beyond, beside one in a hundred of the others
    assert p99_at_most([second(1.0, 0)]) is None
    assert p99_at_most([]) is None
    for seed in range(30):
        rng = np.random.default_rng(seed)
        writes = [rng.lognormal(5, 0.7, 500) * (20 if rng.random() < 0.05 else 1) for _ in range(100)]
        rows = []
        for i, each in enumerate(writes):
            cells = {f"write_latency_{name}_us": np.percentile(each, q) for name, q in PERCENTILES.items()}
            rows.append(second(i + 1.0, len(each), write_latency_mean_us=each.mean(), **cells))
        exact = float(np.percentile(np.concatenate(writes), 99)) / 1e6
        bound = p99_at_most(rows)
        assert bound is not None
        assert 0.99 * exact <= bound
        marks = sorted({row[f"write_latency_{name}_us"] for row in rows for name in PERCENTILES})
        at = min(range(len(marks)), key=lambda i: abs(marks[i] / 1e6 - bound))
        assert bound == pytest.approx(marks[at] / 1e6)
        assert (is_certain_p99(rows, marks[at - 1]), is_certain_p99(rows, marks[at])) == (False, True)
