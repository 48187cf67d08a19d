"""What a scaled run would have come to at the original's size: for which runs there is a law, and when it is taken."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from spillway.models import leveldb, value_log
from spillway.plan import Arm, load_plan
from spillway.suite.claims import Claim, Measured, Place, judge_all
from spillway.suite.law import Law, law_of

PLAN = """
[drive]
pacing = "off"
[fs]
discard = false
writeback_bytes = "64MiB"
closed_dirty_bytes = "64MiB"
[engine]
name = "leveldb"
[engine.options]
compression = "kNoCompression"
write_buffer_size = 4194304
[load]
value_bytes = 100
num = {num}
[[phases]]
workload = "fillrandom"
"""


@pytest.fixture
def arm(tmp_path: Path) -> Callable[..., Arm]:
    def make(num: int = 100_000, text: str = PLAN, old: str = "", new: str = "") -> Arm:
        assert old in text
        path = tmp_path / "plan.toml"
        path.write_text(text.replace(old, new).format(num=num))
        return load_plan(path).arms[0]

    return make


def test_a_load_has_the_law_of_its_tree_without_a_log_that_is_never_written(arm: Callable[..., Arm]) -> None:
    law = law_of(arm(100_000), arm(400_000))
    assert law is not None
    small, large = (leveldb.fill_random(leveldb.Shape(), pairs) for pairs in (1e5, 4e5))
    assert law.at_scale == pytest.approx(small.wa_app - small.log_bytes / small.user_bytes)
    assert law.at_original == pytest.approx(large.wa_app - large.log_bytes / large.user_bytes)


def test_a_log_that_is_written_back_at_once_counts(arm: Callable[..., Arm]) -> None:
    change = {"old": 'closed_dirty_bytes = "64MiB"', "new": "closed_dirty_bytes = 0"}
    law = law_of(arm(100_000, **change), arm(400_000, **change))
    assert law is not None
    assert law.at_scale == pytest.approx(leveldb.fill_random(leveldb.Shape(), 1e5).wa_app)


def test_a_value_log_has_its_own(arm: Callable[..., Arm]) -> None:
    change = {"old": '"leveldb"', "new": '"leveldb-vlog"'}
    law = law_of(arm(100_000, **change), arm(400_000, **change))
    assert law is not None
    assert law.at_original == pytest.approx(value_log.fill_random(leveldb.Shape(), 4e5).wa_app)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('"leveldb"', '"rocksdb"'),
        ('"fillrandom"', '"fillseq"'),
        ('"fillrandom"', '"fillrandom"\n[[phases]]\nworkload = "readrandom"\noperations = 5'),
        ('"kNoCompression"', '"kSnappyCompression"'),
        ('"fillrandom"', '"fillrandom"\noperations = 5'),
    ],
)
def test_nothing_else_has_one(arm: Callable[..., Arm], old: str, new: str) -> None:
    if "rocksdb" in new:
        text = PLAN.replace('[engine.options]\ncompression = "kNoCompression"\nwrite_buffer_size = 4194304\n', "")
        assert law_of(arm(100_000, text, old, new), arm(400_000, text, old, new)) is None
        return
    assert law_of(arm(100_000, old=old, new=new), arm(400_000, old=old, new=new)) is None


def test_what_was_not_scaled_needs_none(arm: Callable[..., Arm]) -> None:
    assert law_of(arm(100_000), arm(100_000)) is None


def measured(wa_app: float, law: Law | None, **more: float) -> Measured:
    return Measured("A", {"x": 0}, [{"wa_app": wa_app, **more}], "", law)


@pytest.mark.parametrize(
    ("figure", "run", "ours", "verdict"),
    [
        ("wa_app", measured(4.0, Law(4.4, 16.0)), "16", "reproduced"),
        ("wa_app", measured(4.0, Law(4.7, 16.0)), "4", "differs"),  # 17 % off: the law is not of this run
        ("wa_app", measured(4.0, Law(3.3, 16.0)), "4", "differs"),
        ("wa_app", measured(4.0, None), "4", "differs"),
        ("wa_total", measured(4.0, Law(4.0, 16.0), wa_total=4.0), "16", "reproduced"),
        ("wa_device", measured(4.0, Law(4.0, 16.0), wa_device=1.5), "1.5", "differs"),
    ],
)
def test_the_law_is_taken_where_it_agrees_with_what_was_measured(
    figure: str, run: Measured, ours: str, verdict: str
) -> None:
    claim: Any = Claim("C18", "says", "where", Place("p", "A", {"x": 0}, figure), published=16.5)
    (judged,) = judge_all([claim], {"p": [run]})
    assert (judged.ours, judged.verdict) == (ours, verdict)
    assert ("law" in judged.words) == (figure != "wa_device" and run.law is not None)


def test_a_trend_goes_over_what_the_law_says() -> None:
    runs = [replace(measured(4.0, Law(4.0, at)), point={"x": x}) for x, at in ((0, 10.0), (1, 20.0))]
    claim = Claim("C19", "says", "where", Place("p", "A", {}, "wa_app"), along="x", trend="rises", within=0.1)
    (judged,) = judge_all([claim], {"p": runs})
    assert (judged.ours, judged.verdict) == ("10 at 0, 20 at 1", "reproduced")
