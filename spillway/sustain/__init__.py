"""The highest write rate that an engine keeps on a drive, found by search.

search.py   bracketing and bisection: a pure function of the tries
verdict.py  whether a run has kept its rate, from what it recorded
tries.py    each try a run with a run directory of its own; sustain.json with the evidence
"""

from spillway.sustain.search import Found, Outcome, search
from spillway.sustain.tries import ArmResult, SearchSettings, Try, document, sustain
from spillway.sustain.verdict import Limits

__all__ = ["ArmResult", "Found", "Limits", "Outcome", "SearchSettings", "Try", "document", "search", "sustain"]
