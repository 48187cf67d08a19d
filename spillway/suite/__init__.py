"""Suites: a directory of plans that belong together, scaled by one factor, run one after another, with one report.

``document.py`` reads ``suite.toml`` and the plans, ``scale.py`` multiplies their sizes, ``state.py`` says which are
done, ``claims.py`` reads what was published, ``verdicts.py`` compares it with what was measured or simulated
(``law.py``).
"""

from spillway.suite.document import Suite, find_suite, load_suite

__all__ = ["Suite", "find_suite", "load_suite"]
