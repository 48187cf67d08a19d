"""Suites: a directory of plans that belong together, scaled by one factor, run one after another, with one report.

``document.py`` reads ``suite.toml`` and the plans, ``scale.py`` multiplies their sizes, ``run.py`` runs what is not
done, ``claims.py`` holds what was published against what was measured, or against what ``law.py`` makes of it.
"""

from spillway.suite.document import Suite, find_suite, load_suite

__all__ = ["Suite", "find_suite", "load_suite"]
