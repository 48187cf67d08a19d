"""Checks experiments for the seven pitfalls of benchmarking flash drives: plans before they run, run directories
after, and recipes for fio, db_bench and YCSB.

``lint.lint`` judges anything by its path; the other modules are one format each. Nothing here runs, measures or prints.
"""
