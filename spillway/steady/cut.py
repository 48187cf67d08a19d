"""Where the burst before the steady part ends.

MSER-5: of batches of 5 samples, drop the d first ones for which the standard error of the mean of the rest,
    sum_{i>d} (x_i - mean)^2 / (k - d)^2,
is least. Source: White, Simulation 69(6), 1997; White, Cobb and Spratt, WSC 2000. In one run of ten chance makes it
least far behind the burst, where a part of the steady state is quieter. So the cut is the first d whose figure is above
the least by no more than two of its standard errors, each the share sqrt(2 / (k - d)) of it, as of a variance of normal
values.

The search ends at 0.45 of the run, so that the steady part is at least half and a step in the very middle, whose place
noise shifts by a batch or two, is never taken for the end of a burst.

A run that drifts all along has a quieter half too. What is cut off is therefore a burst only where a step somewhere in
those 0.45 explains at least 1.2 times as much of the series as a straight line does. For a burst of a share p of the
run that ratio is 1 / (3 p (1 - p)), 1.35 or more; for a straight line it is at most 3/4; an exponential approach passes
where its time constant is at most 0.15 of the run.
"""

import numpy as np

from spillway.steady.checks import line, round_means
from spillway.steady.series import Array

BATCH = 5
MOST_CUT = 0.45
NEAR = 2.0  # standard errors of the least. Source: on made bursts 1 is late in a few of 1000, and 3 as good as 2
STEP_OVER_LINE = 1.2  # between 3/4 and 1.35
STEP_ROUNDS = 100  # places for the step: 1 % of the run. Source: guess


def mser5(values: Array, most: float = MOST_CUT) -> int:
    """The number of samples to drop at the start, a multiple of BATCH and at most the share ``most`` of them. Samples
    at the end that fill no batch are ignored."""
    batches = len(values) // BATCH
    means = values[: batches * BATCH].reshape(batches, BATCH).mean(axis=1)
    means = means - means.mean()
    kept = batches - np.arange(batches)
    sums, squares = np.cumsum(means[::-1])[::-1], np.cumsum((means * means)[::-1])[::-1]
    errors = ((squares - sums * sums / kept) / (kept * kept))[: int(most * batches) + 1]
    least = int(np.argmin(errors))
    near = errors <= errors[least] * (1 + NEAR * np.sqrt(2 / kept[least]))
    return BATCH * int(np.argmax(near))


def begins_with_burst(values: Array) -> bool:
    """Whether a step in the first part explains the series better than a straight line."""
    means = round_means(values, min(STEP_ROUNDS, len(values) // 3))
    count = len(means)
    _, residuals = line(means)
    means = means - means.mean()
    before = np.arange(1, int(MOST_CUT * count) + 1)
    sums = np.cumsum(means)[before - 1]
    by_step = float((sums * sums * (1 / before + 1 / (count - before))).max())
    by_line = float(means @ means - residuals @ residuals)
    return by_step > STEP_OVER_LINE * by_line
