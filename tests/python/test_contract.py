"""The contract's examples against its schemas, and what Python reads against what the schemas promise."""

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from conftest import CONTRACT
from jsonschema import Draft202012Validator

from spillway.native.process import FAILURES, REQUIRED_FIELDS, parse_events
from spillway.plan.document import load_plan
from spillway.rundir.samples import columns_of, sample_row
from spillway.ssd.simulate import DriveChoice, WorkChoice, precondition_request, simulate_request

MakeValidator = Callable[..., Draft202012Validator]
REQUESTS = sorted((CONTRACT / "examples").glob("*.request.json"))
LINES = sorted((CONTRACT / "examples").glob("*.lines.jsonl"))
STREAMS = sorted((CONTRACT / "examples").glob("*.events.jsonl"))


def test_schemas_are_schemas() -> None:
    found = sorted(CONTRACT.glob("*.schema.json"))
    assert len(found) >= 6
    for path in found:
        Draft202012Validator.check_schema(json.loads(path.read_text()))


@pytest.mark.parametrize("path", REQUESTS, ids=lambda path: path.name)
def test_request_examples(path: Path, validator: MakeValidator) -> None:
    schema = validator(path.name.replace(".request.json", ".request.schema.json"))
    request = json.loads(path.read_text())
    schema.validate(request)
    assert not schema.is_valid(request | {"no_such_key": 1})


@pytest.mark.parametrize("path", STREAMS, ids=lambda path: path.name)
def test_event_examples(path: Path, validator: MakeValidator) -> None:
    command = path.name.removesuffix(".events.jsonl")
    lines = path.read_bytes().splitlines()
    events = list(parse_events(iter(lines)))
    for event in events:
        validator("events.schema.json").validate(event)
    last = events[-1]
    assert last["event"] in ("result", "error")
    if last["event"] == "result":
        assert events[0]["event"] == "started"
        assert events[0]["command"] == command
        validator("events.schema.json", f"{command}.result").validate(last)


def test_faults_are_those_of_the_native_table() -> None:
    source = (CONTRACT.parent / "native" / "base" / "result.h").read_text()
    enum = re.search(r"enum class Fault \{(.*?)\};", source, flags=re.DOTALL)
    table = re.search(r"kFaultNames = \{(.*?)\};", source, flags=re.DOTALL)
    assert enum and table
    names = re.findall(r'"(\w+)"', table[1])
    assert names == re.findall(r"^\s*(\w+),", enum[1], flags=re.MULTILINE)
    failing = [name for name in names if name != "none"]
    schema = json.loads((CONTRACT / "events.schema.json").read_text())
    enums = re.findall(r'"fault": \{"enum": \[(.*?)\]\}', json.dumps(schema))
    assert [re.findall(r'"(\w+)"', one) for one in enums] == [failing]
    row = re.search(r"^\| `error` \|.*`fault` \((.*?)\)", (CONTRACT / "README.md").read_text(), flags=re.MULTILINE)
    assert row and re.findall(r"`(\w+)`", row[1]) == failing
    assert set(FAILURES) < set(failing)


@pytest.mark.parametrize("path", LINES, ids=lambda path: path.name)
def test_line_examples(path: Path, validator: MakeValidator) -> None:
    schema = validator(path.name.replace(".lines.jsonl", ".line.schema.json"))
    for text in path.read_text().splitlines():
        line = json.loads(text)
        schema.validate(line)
        assert not schema.is_valid(line | {"no_such_key": 1})
    assert not schema.is_valid({"id": 1}), "a point says when it ends"
    assert not schema.is_valid({})


def test_there_is_an_example_of_every_event() -> None:
    seen = {json.loads(line)["event"] for path in STREAMS for line in path.read_text().splitlines()}
    assert seen == set(REQUIRED_FIELDS)


@pytest.mark.parametrize("name", sorted(REQUIRED_FIELDS))
def test_what_python_relies_on_is_what_the_schema_promises(name: str) -> None:
    promised = json.loads((CONTRACT / "events.schema.json").read_text())["$defs"][name]["required"]
    assert set(REQUIRED_FIELDS[name]) == set(promised) - {"event"}


def test_every_figure_of_a_sample_has_its_column() -> None:
    lines = (CONTRACT / "examples" / "run.events.jsonl").read_text().splitlines()
    sample = next(json.loads(line) for line in lines if '"sample"' in line)
    row = sample_row(sample)
    assert set(row) <= set(columns_of(row))
    assert len(set(columns_of(row))) == len(columns_of(row))
    assert row["write_latency_p99_us"] == sample["write_latency_us"]["p99"]
    assert "read_latency_p99_us" not in row  # no read finished, so there is no latency of reads
    assert row["nand_bytes_programmed_gc"] == sample["drive"]["nand_bytes_programmed"]["gc"]
    assert row["host_bytes_written_compaction"] == sample["drive"]["host_bytes_written_by_cause"]["compaction"]
    assert row["stall_s_l0"] == 0.25
    assert row["l0_files"] == 21


def test_built_requests_are_of_the_schema(plan_file: Path, tmp_path: Path, validator: MakeValidator) -> None:
    drive = DriveChoice(channels=4, spare_factor="0.2", gc="d-choices:10", settings=("timing.erase_ns=1",))
    for work in (
        WorkChoice(),
        WorkChoice(workload="randread"),
        WorkChoice(workload="mixed:0.7", ios=5),
        WorkChoice(workload="hotcold:0.1/0.9"),
        WorkChoice(workload="seqwrite", fill="0"),
    ):
        validator("ssd-simulate.request.schema.json").validate(simulate_request(drive, work, 1))
    state = precondition_request(drive, WorkChoice(), 1, tmp_path / "x.state")
    validator("ssd-precondition.request.schema.json").validate(state)
    arm = load_plan(plan_file).arms[0]
    validator("run.request.schema.json").validate(arm.request(tmp_path, 7))
