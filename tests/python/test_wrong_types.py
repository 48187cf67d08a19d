"""Every value of a plan and of a suite's files, replaced by what it is not: taken, or refused with one sentence."""

import copy
from collections.abc import Iterator
from itertools import islice, product
from pathlib import Path
from typing import Any

import pytest
import tomli_w

from spillway import toml
from spillway.errors import SpillwayError
from spillway.plan.document import load_plan
from spillway.suite import load_suite

Document = dict[str, Any]
Path_ = tuple[str | int, ...]

WRONG: list[Any] = [
    *(5, -1, True, 1.5, float("nan"), float("inf"), 10**30, 10**400, "", "x", "../x", "{drive.preset}", "1GiB"),
    *([], [1], [[1]], ["a", 1], {}, {"a": 1}, {"a": {"b": 1}}, [{"a": 1}], [{"name": {"a": 1}}]),
]
PLAN = """
name = "wide"
summary = "of everything"
seeds = [1, 2]
repetitions = 3
sample_interval_ms = 100
[drive]
preset = "tiny"
capacity = "32MiB"
time_scale = 2.0
set.timing.read_ns = 50_000
[initial]
kind = "steady"
fill = 0.5
[cost]
drive_price = 10
currency = "EUR"
[fs]
size = "16MiB"
discard = false
[engine]
name = "rocksdb"
policy = "slowdown"
options.write_buffer_size = 1048576
[load]
num = 1000
[ycsb]
properties = "workloada"
recordcount = 1000
operationcount = 1000
exponential.percentile = 90
[kept]
from = "loaded-{drive.preset}"
takes = "files"
database = "mine"
[[phases]]
name = "load"
workload = "ycsb-load"
measured = false
[[phases]]
name = "run"
workload = "ycsb-run"
threads = 2
ycsb.readproportion = 0.4
[[prepare]]
"kept.to" = "loaded-{drive.preset}"
"load.value_bytes" = 100
[[prepare.phases]]
workload = "fillseq"
[[arms]]
name = "one"
"engine.options.x" = 1
[[arms]]
name = "two"
[sweep]
"load.value_bytes" = [16, 100]
"phases.run.rate_ops_s" = [10]
[[sweep.mixes]]
name = "reads"
"ycsb.updateproportion" = 0.1
[[sweep.mixes]]
name = "updates"
"ycsb.updateproportion" = 0.9
"""
SUITE = """
name = "s"
title = "t"
summary = "of everything"
plans = ["wide"]
[scale]
factor = "1/4"
keys = ["load.num", "ycsb.recordcount", "fs.size", "phases.*.operations"]
"""
CLAIMS = """
[statements]
C1 = "it grows"
[drives]
axis = "load.value_bytes"
small = 16
large = 100
[[claims]]
claim = "C1"
says = "wa_app"
where = "Table 1"
plan = "wide"
arm = "one"
drives = ["small", "large"]
at = { "ycsb.updateproportion" = 0.1, "phases.run.rate_ops_s" = 10 }
over = { arm = "two", at = { "load.value_bytes" = 16 } }
figure = "wa_app"
published = [3.2, 3.1]
above = 1
within = 0.2
any_size = "it is the same"
[[claims]]
claim = "C1"
says = "it falls"
where = "Table 1"
plan = "wide"
arm = "one"
at = { "ycsb.updateproportion" = 0.1, "phases.run.rate_ops_s" = 10 }
figure = "wa_device"
along = "load.value_bytes"
trend = "falls"
[[claims]]
claim = "C1"
says = "between"
where = "Table 1"
plan = "wide"
arm = "one"
at = { "ycsb.updateproportion" = 0.1, "phases.run.rate_ops_s" = 10, "load.value_bytes" = 16 }
figure = "wa_device"
between = [1, inf]
"""


def places_of(node: Any, path: Path_ = ()) -> Iterator[Path_]:
    """Every value, table and list below the top."""
    if path:
        yield path
    inner = node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ()
    for key, value in inner:
        yield from places_of(value, (*path, key))


def changed(document: Document, place: Path_, value: Any) -> Document:
    """The document with another value at the place."""
    made = copy.deepcopy(document)
    node: Any = made
    for part in place[:-1]:
        node = node[part]
    node[place[-1]] = copy.deepcopy(value)
    return made


@pytest.fixture
def suite(plan_file: Path, tmp_path: Path) -> Path:
    directory = tmp_path / "wide"
    directory.mkdir()
    for name, text in (("suite", SUITE), ("wide", PLAN), ("claims", CLAIMS)):
        (directory / f"{name}.toml").write_text(text)
    return directory


@pytest.mark.parametrize(
    ("name", "one_of"),
    [
        ("suite", 1),
        ("wide", 5),
        ("claims", 9),
        *(pytest.param(name, 1, marks=pytest.mark.long) for name in ("wide", "claims")),
    ],
)
def test_a_value_of_another_type_is_no_traceback(suite: Path, name: str, one_of: int) -> None:
    """``one_of``: of so many values one is tried, each place having others."""
    path = suite / f"{name}.toml"
    document = toml.loads(path.read_text())
    load_suite(suite)
    refused = 0
    for place, value in islice(product(places_of(document), WRONG), 0, None, one_of):
        path.write_text(tomli_w.dumps(changed(document, place, value)))
        try:
            if name == "wide":
                load_plan(path, ("load.num=10",), properties={"recordcount": "10"}).to_toml()
            else:
                load_suite(suite)
        except SpillwayError as error:
            refused += 1
            assert "\n" not in str(error)
        except Exception as error:
            raise AssertionError(f"{place} = {value!r}") from error
    assert refused > 100


@pytest.mark.parametrize("override", [
    "phases.run.threads=2", "phases.0=5", "ycsb=5", "kept=5", "drive=5", "arms=5", "prepare=5", "phases=[{name={a=1}}]",
    "engine.options=5", "drive.set=[1]", "repetitions=1000000000000", "seeds=[18446744073709551615]",
])  # fmt: skip
def test_an_override_of_another_type_is_no_traceback(suite: Path, override: str) -> None:
    for text in (PLAN, PLAN.replace('name = "load"', "name = { a = 1 }")):
        (suite / "wide.toml").write_text(text)
        try:
            load_plan(suite / "wide.toml", (override,), properties={"recordcount": "10"})
        except SpillwayError as error:
            assert "\n" not in str(error)
