"""bench/advise_grid.py: which cases are done, and verdicts over disturbed and failed ones."""

import importlib.util
import json
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from advised import DRIVE

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def grid(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    spec = importlib.util.spec_from_file_location("advise_grid", ROOT / "bench" / "advise_grid.py")
    assert spec is not None and spec.loader is not None
    made = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "advise_grid", made)
    spec.loader.exec_module(made)
    monkeypatch.setattr(made, "PLACE", tmp_path)
    return made


def figures(late_us: float) -> dict[str, Any]:
    return {"defaults": {"throughput_ops_s": 1000.0, "wa_app": 4.0, "wa_device": 1.1, "wa_total": 4.4,
                         "late_us": late_us}}  # fmt: skip


def test_disturbed_and_failed_cases_are_not_done(grid: ModuleType) -> None:
    case = grid.Case("quickstart", "gets")
    path = grid.PLACE / f"{case.slug}.json"
    assert grid.kept(case) is None
    for late_us, done in ((grid.MOST_LATE_US * 2, False), (1.0, True)):
        path.write_text(json.dumps(figures(late_us)))
        assert (grid.kept(case) is not None) == done
    path.write_text("{}")  # every arm failed
    assert grid.kept(case) is None


def test_a_case_whose_arms_all_failed_takes_no_verdict_with_it(
    grid: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(grid, "in_parallel", lambda work, items, cores: [None for _ in items])
    monkeypatch.setattr(grid, "simulator", lambda: None)
    case = grid.Case("quickstart", "puts")
    failed = grid.case_result(case, grid.small(DRIVE, case.load), {})
    good = {"drive": "a", "load": "puts", "disturbed": False, "of_best": 1.0, "of_defaults": 1.2, "configurations": {
        "defaults": {"measured": {}, "predicted": {name: {"value": 1.0, "low": 0.5, "high": 2.0} for name in
                     ("throughput_ops_s", "wa_app", "wa_device", "wa_total")}}}}  # fmt: skip
    said = grid.summary([failed, good, good | {"disturbed": True, "of_best": 0.4}])
    assert (said["measured"], said["failed"], said["cases"], said["near"]) == (3, 1, 1, 1)
    assert (said["with_disturbed"]["cases"], said["with_disturbed"]["near"]) == (2, 1)
