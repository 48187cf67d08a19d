"""All tests over all series of a run, and what they come to (B3, B11, B13, S1).

A run is steady when throughput, and wa_app and wa_device where they are known, pass every test that is asked for
(``checks.py``) over the run, or over what is left when a burst at its start is cut off (``cut.py``): the first where it
does, so that a steady run loses nothing to chance. The cut is the latest of those that the failing series want, and
every series is judged anew behind it.

Where the drive gives no counters wa_device cannot be followed; then host writes of at least 3 times the capacity stand
in for it. Source: B13.

`spillway steady --error-rates` measures how often this is wrong on made series. A verdict is about one run only.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from spillway.steady.checks import CHECKS, SERIES_CHECKS, WRITES, Outcome, level
from spillway.steady.cut import begins_with_burst, mser5
from spillway.steady.series import LEAST_SAMPLES, SAME, Array, Recorded, Round, of_columns, of_rounds

FALLBACK_CAPACITIES = 3.0
DEFAULT_CHECKS = tuple(SERIES_CHECKS)
_REASONS = ("level", "end", "drift", "bound", "range", "slope", "cusum", WRITES)  # the first failure is the reason


@dataclass(frozen=True)
class Verdict:
    """Whether a run was steady, since when, and why."""

    steady: bool
    since_s: float | None  # from the start of the measured time
    reason: str  # a clause that follows "steady: " or "not steady: "
    tests: tuple[Outcome, ...] = ()  # over the steady part, or over what was tried last


def judge(rounds: Sequence[Round], host_capacities: float | None, checks: Iterable[str] | None = None) -> Verdict:
    """The verdict on a run's spans; ``since_s`` counts from the start of the first one.

    ``host_capacities``: host bytes written / capacity; None: not known. ``checks``: names of CHECKS that the verdict
    rests on. None: DEFAULT_CHECKS, and host writes too where wa_device is not known (B13).
    """
    spans = [each for each in rounds if each.seconds > 0]
    if len(spans) < LEAST_SAMPLES:
        return Verdict(False, None, f"too short: {len(spans)} samples, where it takes {LEAST_SAMPLES} to tell")
    follows_device = any(each.name == "wa_device" for each in of_rounds(spans).series)
    chosen = checks if checks is not None else DEFAULT_CHECKS if follows_device else CHECKS
    return judge_spans(spans, host_capacities, chosen)


def judge_spans(spans: Sequence[Round], host_capacities: float | None, checks: Iterable[str]) -> Verdict:
    """As ``judge``, with ``checks`` given. REQUIRES: at least LEAST_SAMPLES spans."""
    recorded = of_rounds(spans)
    verdict, start = _over(recorded, host_capacities, set(checks))
    return _since(verdict, recorded.begin_s if start == 0 else float(recorded.ends_s[start - 1]))


def judge_arrays(
    t_s: Array,
    columns: Mapping[str, Array],
    host_capacities: float | None = None,
    checks: Iterable[str] = DEFAULT_CHECKS,
) -> Verdict:
    """The verdict on ``columns`` of finite values, no throughput below zero, sampled at the rising times ``t_s``.

    ``since_s`` is the time of the first sample of the steady part. REQUIRES: at least ``LEAST_SAMPLES`` samples.
    """
    recorded = of_columns(np.asarray(t_s, dtype=float), {k: np.asarray(v, dtype=float) for k, v in columns.items()})
    verdict, start = _over(recorded, host_capacities, set(checks))
    begin = recorded.begin_s if start == 0 else float(recorded.ends_s[start - 1])
    first = np.searchsorted(t_s, begin + SAME * float(recorded.ends_s[0] - recorded.begin_s), side="right")
    return _since(verdict, float(t_s[min(int(first), len(t_s) - 1)]))


def _since(verdict: Verdict, since: float) -> Verdict:
    if not verdict.steady:
        return verdict
    followed = list(dict.fromkeys(each.series for each in verdict.tests if each.check != WRITES))
    limits = "every test" if all(each.passed and each.asked for each in verdict.tests) else "the tests asked for"
    unknown = "wa_device" not in followed and all(each.check != WRITES for each in verdict.tests)
    words = f"{_listed(followed)} passed {limits} from {since:.0f} s on"
    return Verdict(True, since, words + ("; wa_device is not known" if unknown else ""), verdict.tests)


def _over(recorded: Recorded, host_capacities: float | None, asked: set[str]) -> tuple[Verdict, int]:
    """The verdict, and the interval with which the steady part begins."""
    writes = [_writes(host_capacities, WRITES in asked)] if host_capacities is not None or WRITES in asked else []
    tested = {each.name: _tested(each.name, each.part(), 1.0, asked) for each in recorded.series}
    failing = [each for each in recorded.series if not _passed(tested[each.name])]
    whole = [outcome for outcomes in tested.values() for outcome in outcomes]
    if not failing:
        return _verdict(whole + writes), 0
    start = max(mser5(each.part()) for each in failing)
    if start == 0 or not all(begins_with_burst(each.part()) for each in failing):
        return _verdict(whole + writes), 0
    count = len(recorded.ends_s)
    extension = count / (count - start)
    rest = [o for each in recorded.series for o in _tested(each.name, each.part(start), extension, asked)]
    return _verdict(rest + writes), start


def _tested(name: str, values: Array, extension: float, asked: set[str]) -> list[Outcome]:
    """Every test over one series. A share of the mean needs a mean."""
    mean = float(values.mean())
    if not mean > 0:
        still = name != "throughput" and not values.any()
        unknown = "has no value for a fifth of the time or more, in which nothing was written"
        words = unknown if np.isnan(mean) else "was zero throughout" if mean == 0 else "has no mean above zero"
        return [Outcome(name, "drift", "level", still, True, None, 0.0, words)]
    seen = level(values)
    return [
        Outcome(name, check, part, figure <= limit, check in asked, figure, limit, words)
        for check, function in SERIES_CHECKS.items()
        for part, figure, limit, words in function(seen, extension)
    ]


def _writes(capacities: float | None, asked: bool) -> Outcome:
    passed = capacities is not None and capacities >= FALLBACK_CAPACITIES
    words = "are not known" if capacities is None else f"came to {capacities:.1f} capacities (at least 3)"
    return Outcome("host writes", WRITES, WRITES, passed, asked, capacities, FALLBACK_CAPACITIES, words)


def _passed(outcomes: Iterable[Outcome]) -> bool:
    return all(each.passed for each in outcomes if each.asked)


def _verdict(outcomes: Sequence[Outcome]) -> Verdict:
    failed = [each for each in outcomes if each.asked and not each.passed]
    if not failed:
        return Verdict(True, None, "", tuple(outcomes))
    worst = min(failed, key=lambda each: _REASONS.index(each.name))
    return Verdict(False, None, f"{worst.series} {worst.words}", tuple(outcomes))


def _listed(names: list[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
