"""The papers' tables and figures, recomputed from the data that the papers print, each with the published value.

A paper is a list of sections, one for each table or figure: what of it can be recomputed from the paper's own data,
tables, charts, and checks. A check compares one published figure with ours and says `agrees`, `differs` or `open` (the
paper does not give what it would take). Verdicts are computed: a figure agrees when it is within TOLERANCE of the
published one, or of the published range. Where it differs the erratum says what is wrong (T numbers: docs/SOURCES.md).
A `misprint` is a symbol that the paper itself contradicts: it is read, not computed, and counted apart.

Reads only `spillway/reference`; measures nothing. `document.py` has the parts and turns them into words, `mqssd.py` and
`pio.py` have the papers, `drawing.py` the charts.
"""

from collections.abc import Callable
from functools import cache

from spillway.reproduce.document import Reproduction
from spillway.reproduce.mqssd import reproduce as _mqssd
from spillway.reproduce.pio import reproduce as _pio

PAPERS: dict[str, Callable[[], Reproduction]] = {"mqssd": _mqssd, "pio": _pio}


@cache
def reproduce(paper: str) -> Reproduction:
    """The paper called ``paper``, one of PAPERS."""
    return PAPERS[paper]()
