"""Has a run become steady? (B3, B11; LEDGER part 4a, pitfall 1, and part 4b)

Two tests, both of which a steady run passes:

CUSUM, two-sided, on throughput, wa_app and wa_device. With z_i = (x_i - mean) / sigma over the tail under test,
    high_i = max(0, high_{i-1} + z_i - slack),   low_i = max(0, low_{i-1} - z_i - slack),
and the series has moved when either exceeds the limit. Slack 0.5 sigma, limit 5 sigma: the textbook's (LEDGER 4a).
sigma is the mean difference of neighbours / 1.128, as for charts of individual values: a drift or a step would widen
the standard deviation of the whole series until it hid itself, and hardly changes this one.

SNIA's window, on throughput: over the last 5 rounds max - min is at most 20 % of their mean, and the least-squares
line through them moves by at most 10 % of the mean (|4 * slope|). Source: LEDGER 4b.

Where the drive gives no counters wa_device cannot be followed; then host writes of at least 3 times the capacity stand
in for it. Source: LEDGER 4a.

The series are means over rounds of equal length, so that the beat of flushes and compactions averages out in a round.
What this ignores: beats longer than a round, and drifts slower than the run is long. A verdict is about this run only.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

CUSUM_SLACK_SIGMA = 0.5
CUSUM_LIMIT_SIGMA = 5.0
NEIGHBOUR_DIFFERENCE = 1.128  # expected difference of two draws from one normal distribution: 2 / sqrt(pi) sigma
LEAST_SIGMA = 0.01  # of the mean: a series quieter than this is not followed into figures nobody reads. Source: guess
SNIA_ROUNDS = 5
SNIA_RANGE = 0.20
SNIA_SLOPE = 0.10
FALLBACK_CAPACITIES = 3.0
ROUNDS = 20  # of the measured time; four of SNIA's windows, and at 60 s three seconds each. Source: guess
TAIL_SHARE = 0.5  # at least the last half of the run must be steady for its figures to speak for the steady state


@dataclass(frozen=True)
class Round:
    """What happened in one of equally long spans: seconds, and the bytes and operations in them."""

    seconds: float
    operations: float
    user_bytes: float
    host_bytes: float | None
    nand_bytes: float | None


@dataclass(frozen=True)
class Verdict:
    """Whether a run was steady, since when, and why."""

    steady: bool
    since_s: float | None  # from the start of the measured time
    reason: str  # a clause that follows "steady: " or "not steady: "


def cusum_peak(values: Sequence[float]) -> float:
    """The highest of the two cumulative sums, in standard deviations. 0 for a constant series."""
    count = len(values)
    mean = sum(values) / count
    differences = [abs(after - before) for before, after in pairwise(values)]
    sigma = max(sum(differences) / max(1, len(differences)) / NEIGHBOUR_DIFFERENCE, LEAST_SIGMA * abs(mean))
    if sigma == 0:
        return 0.0
    high = low = peak = 0.0
    for value in values:
        z = (value - mean) / sigma
        high = max(0.0, high + z - CUSUM_SLACK_SIGMA)
        low = max(0.0, low - z - CUSUM_SLACK_SIGMA)
        peak = max(peak, high, low)
    return peak


def snia_window(values: Sequence[float]) -> tuple[float, float]:
    """(range, excursion of the line) of the last five rounds, both as shares of their mean."""
    window = values[-SNIA_ROUNDS:]
    mean = sum(window) / len(window)
    if mean == 0:
        return 0.0, 0.0
    middle = (len(window) - 1) / 2
    slope = sum((i - middle) * value for i, value in enumerate(window))
    slope /= sum((i - middle) ** 2 for i in range(len(window)))
    return (max(window) - min(window)) / mean, abs(slope * (len(window) - 1)) / mean


def judge(rounds: Sequence[Round], host_capacities: float | None) -> Verdict:
    """The verdict on a run's rounds. ``host_capacities``: host bytes written / capacity, where that is known."""
    if len(rounds) < 2 * SNIA_ROUNDS:
        return Verdict(False, None, f"too short: {len(rounds)} rounds, where the test needs {2 * SNIA_ROUNDS}")
    series = _series(rounds)
    if "wa_device" not in series and (host_capacities is None or host_capacities < FALLBACK_CAPACITIES):
        written = "their number is not known" if host_capacities is None else f"there were {host_capacities:.1f}"
        return Verdict(False, None, f"without drive counters it takes 3 capacities of host writes, and {written}")
    spread, excursion = snia_window(series["throughput"])
    if spread > SNIA_RANGE:
        return Verdict(
            False, None, f"throughput varied by {100 * spread:.0f} % over the last five rounds (SNIA allows 20 %)"
        )
    if excursion > SNIA_SLOPE:
        return Verdict(
            False, None, f"throughput drifted by {100 * excursion:.0f} % over the last five rounds (SNIA allows 10 %)"
        )
    return _tail_verdict(rounds, series)


def _tail_verdict(rounds: Sequence[Round], series: dict[str, list[float]]) -> Verdict:
    """The longest tail in which no series has moved; it has to be at least half of the run."""
    last_start = int(len(rounds) * (1 - TAIL_SHARE))
    moved = ""
    for start in range(last_start + 1):
        peaks = {name: cusum_peak(values[start:]) for name, values in series.items()}
        name = max(peaks, key=lambda key: peaks[key])
        if peaks[name] <= CUSUM_LIMIT_SIGMA:
            since = sum(each.seconds for each in rounds[:start])
            return Verdict(
                True, since, f"{_listed(list(series))} did not move from {since:.0f} s on (CUSUM, SNIA window)"
            )
        moved = f"{name} still moved in the last half of the run (CUSUM {peaks[name]:.1f} sigma, limit 5)"
    return Verdict(False, None, moved)


def _series(rounds: Sequence[Round]) -> dict[str, list[float]]:
    """The series that can be followed: a ratio needs its denominator in every round."""
    series = {"throughput": [each.operations / each.seconds for each in rounds]}
    if all(each.host_bytes is not None and each.user_bytes for each in rounds):
        series["wa_app"] = [(each.host_bytes or 0.0) / each.user_bytes for each in rounds]
    if all(each.nand_bytes is not None and each.host_bytes for each in rounds):
        series["wa_device"] = [(each.nand_bytes or 0.0) / (each.host_bytes or 1.0) for each in rounds]
    return series


def _listed(names: list[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def rounds_of(spans: Sequence[Round], count: int = ROUNDS) -> list[Round]:
    """Samples gathered into ``count`` rounds of equal length; fewer where there are fewer samples.

    A sample belongs to the round in which its middle lies.
    """
    total = sum(span.seconds for span in spans)
    count = min(count, len(spans))
    if not count or total <= 0:
        return []
    gathered: list[list[Round]] = [[] for _ in range(count)]
    elapsed = 0.0
    for span in spans:
        middle = elapsed + span.seconds / 2
        gathered[min(count - 1, int(middle / total * count))].append(span)
        elapsed += span.seconds
    return [_sum(group) for group in gathered if group]


def _sum(group: Sequence[Round]) -> Round:
    def known(values: list[float | None]) -> float | None:
        return None if any(value is None for value in values) else sum(value or 0.0 for value in values)

    return Round(
        sum(each.seconds for each in group),
        sum(each.operations for each in group),
        sum(each.user_bytes for each in group),
        known([each.host_bytes for each in group]),
        known([each.nand_bytes for each in group]),
    )
