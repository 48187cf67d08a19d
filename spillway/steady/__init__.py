"""Has a run become steady? Synthetic series with known answers give the error rates of the verdict.

series.py   what is judged: spans of a run, or columns of a file, on equal intervals
checks.py   the tests, each a pure function of one series
cut.py      where the burst before the steady part ends
verdict.py  all tests over all series of a run, and what they come to
synthetic.py  series of known kinds
rates.py    how often the verdict is wrong on them
reading.py  files with a series: CSV, logs of fio, reports of db_bench, samples of a run
"""

from spillway.steady.checks import CHECKS, Outcome
from spillway.steady.series import LEAST_SAMPLES, Round
from spillway.steady.verdict import DEFAULT_CHECKS, Verdict, judge, judge_arrays, judge_spans

__all__ = [
    "CHECKS",
    "DEFAULT_CHECKS",
    "LEAST_SAMPLES",
    "Outcome",
    "Round",
    "Verdict",
    "judge",
    "judge_arrays",
    "judge_spans",
]
