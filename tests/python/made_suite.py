"""A suite of two plans, for tests of how suites are read, run and reported."""

from conftest import PLAN

SHORT = PLAN.replace("duration_s = 12", "duration_s = 1")
SUITE = """
title = "Two plans"
plans = ["b", "a"]
[scale]
factor = "1/4"
keys = ["load.num", "engine.options.*_size", "phases.*.operations"]
"""
SWEEP = '\n[sweep]\n"load.num" = [400, 1000]\n'
CLAIMS = """
[statements]
C1 = "it grows"
[[claims]]
claim = "C1"
says = "wa_app at 400"
where = "Table 1"
plan = "a"
arm = "a"
at = { "load.num" = 400 }
figure = "wa_app"
published = 3.2
within = 0.2
any_size = "the stand-in writes the same of any"
"""
