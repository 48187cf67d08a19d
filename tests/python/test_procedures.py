"""How a test begins: the talk's four procedures by name, and what they leave of the drive (B4)."""

import json
from pathlib import Path

import pytest
from conftest import Invoke

from spillway.errors import SpillwayError
from spillway.plan.document import load_plan

PLAN = """
name = "p"
[drive]
preset = "quickstart"
capacity = "64MiB"
pacing = "off"
[fs]
size = "32MiB"
[initial]
procedure = "PROCEDURE"
[load]
num = 7000
value_bytes = 4096
[[phases]]
workload = "fillseq"
operations = 10
"""
HALF, WHOLE = 32 << 20, 64 << 20


def requested(tmp_path: Path, text: str) -> dict[str, object]:
    path = tmp_path / "p.toml"
    path.write_text(text)
    target = load_plan(path).arms[0].request(tmp_path, 1)["target"]
    return dict(target["initial"])


@pytest.mark.parametrize(
    ("procedure", "kind", "partition"),
    [
        ("partition-trim", "steady", "trimmed"),
        ("partition-trim-precondition", "steady", "preconditioned"),
        ("trim-partition", "trimmed", None),
        ("trim-partition-precondition", "trimmed", "preconditioned"),
    ],
)
def test_a_procedure_stands_for_a_state_and_what_is_done_with_the_partition(
    procedure: str, kind: str, partition: str | None, tmp_path: Path
) -> None:
    initial = requested(tmp_path, PLAN.replace("PROCEDURE", procedure))
    assert (initial["kind"], initial.get("partition")) == (kind, partition)
    assert initial.get("partition_bytes") == (HALF if partition else None)
    whole = requested(tmp_path, PLAN.replace("PROCEDURE", procedure).replace('size = "32MiB"', ""))
    assert whole.get("partition_bytes") == (0 if partition else None), "all of the drive"


def test_a_resolved_plan_gives_the_same_request_again(tmp_path: Path) -> None:
    path = tmp_path / "p.toml"
    path.write_text(PLAN.replace("PROCEDURE", "partition-trim"))
    plan = load_plan(path)
    resolved = tmp_path / "resolved.toml"
    resolved.write_text(plan.to_toml())
    again = load_plan(resolved)
    assert again.arms[0].request(tmp_path, 1) == plan.arms[0].request(tmp_path, 1)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (PLAN.replace("PROCEDURE", "trim"), "initial.procedure is 'trim'; it takes one of partition-trim"),
        (
            PLAN.replace('procedure = "PROCEDURE"', 'procedure = "trim-partition"\nkind = "steady"'),
            'initial.procedure = "trim-partition" means initial.kind = "trimmed": give one of them',
        ),
        (
            PLAN.replace('procedure = "PROCEDURE"', 'procedure = "partition-trim"\npartition = "preconditioned"'),
            'means initial.partition = "trimmed"',
        ),
        (PLAN.replace('procedure = "PROCEDURE"', 'partition = "full"'), "it takes one of as_is, trimmed"),
    ],
)
def test_what_contradicts_a_procedure_is_refused(text: str, why: str, tmp_path: Path) -> None:
    with pytest.raises(SpillwayError, match=why):
        requested(tmp_path, text)


# What is written into the partition costs garbage collection where the rest of the drive holds data, and none on one
# that was trimmed: it was asked for once in order, and fits.
@pytest.mark.native
def test_each_procedure_leaves_another_drive(invoke: Invoke, tmp_path: Path) -> None:
    path = tmp_path / "p.toml"
    text = PLAN.replace("operations = 10\n", "").replace("fillseq", "fillrandom")
    path.write_text(text.replace('procedure = "PROCEDURE"', "") + '[engine]\nname = "raw"\n')
    costs = {}
    for procedure in ("partition-trim", "partition-trim-precondition", "trim-partition", "trim-partition-precondition"):
        out = tmp_path / procedure
        ended = invoke("run", path, "--out", out, "--set", f"initial.procedure={procedure}")
        assert ended.code == 0, ended.err
        arm = json.loads((out / "summary.json").read_text())["arms"]["p"]
        costs[procedure] = arm["wa_device"]
        words = arm["standing"]["words"]
        assert ("its partition" in words) == (procedure != "trim-partition"), words
    assert costs["partition-trim-precondition"] > 1.1 * costs["trim-partition-precondition"]
    assert costs["partition-trim-precondition"] >= costs["partition-trim"]
