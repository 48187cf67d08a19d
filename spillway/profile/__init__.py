"""Profiles of drives: a target is measured point by point, and MQSSD and PIO are fitted to it (M22-M24, P11-P20).

target.py     what TARGET names, and how a preset is made small enough
points.py     points and samples            grids.py   which points there are
prober.py     the conversation with the native side; how long a point lasts
virtual.py    what is measured in virtual time   real.py    what is measured within a budget of seconds
run.py        a profile from beginning to end
adapt.py      where to measure next when time is short
estimate.py   samples to parameters         document.py   the profile directory
words.py      the five guidelines, answered for this drive (P30)
compare.py    five models against the samples
"""

from spillway.profile.document import Estimate, Mqssd, Pio, Profile, parameters, read_profile, write_profile
from spillway.profile.run import Finished, profile_target
from spillway.profile.target import Target, parse_target

__all__ = [
    "Estimate",
    "Finished",
    "Mqssd",
    "Pio",
    "Profile",
    "Target",
    "parameters",
    "parse_target",
    "profile_target",
    "read_profile",
    "write_profile",
]
