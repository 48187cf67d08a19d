"""Host costs for the LSM shape simulator: found again from what a known host would measure, and read from files."""

import json
import math
import re
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from spillway.errors import SpillwayError
from spillway.lsm import DEFAULT_COSTS, EntryCosts, entry_costs, host_costs, lsm_request, read_host, read_host_costs

ROOT = Path(__file__).resolve().parents[2]
KNOWN = {"put_ns": 4000.0, "put_byte_ns": 2.0, "flush_entry_ns": 300.0, "flush_byte_ns": 0.5}
KNOWN |= {"merge_entry_ns": 700.0, "merge_byte_ns": 0.7, "cores": 3}
SIZES = (116, 1016, 4016)
OVERHEAD = 20  # of an entry in a file


def results(pair: int, num: int = 100_000, rewritten: float = 3.0) -> tuple[dict[str, Any], dict[str, Any]]:
    """What the engine would count on a host with the known costs."""
    file_bytes = pair + OVERHEAD
    puts = {
        "operations": num,
        "duration_s": 99.0,
        "cpu_seconds": num * (KNOWN["put_ns"] + KNOWN["put_byte_ns"] * pair) / 1e9,
    }
    flush_us = num * (KNOWN["flush_entry_ns"] + KNOWN["flush_byte_ns"] * file_bytes) / 1e3
    merge_us = num * rewritten * (KNOWN["merge_entry_ns"] + KNOWN["merge_byte_ns"] * file_bytes) / 1e3
    statistics: dict[str, float] = {"rocksdb.level0.written.bytes": num * file_bytes, "rocksdb.bytes.written": 7}
    statistics |= {"rocksdb.level0.jobs": 40, "rocksdb.level0.cpu.micros": flush_us, "rocksdb.level0.read.bytes": 0}
    for level, share in ((1, 0.75), (2, 0.25)):
        statistics[f"rocksdb.level{level}.jobs"] = 10
        statistics[f"rocksdb.level{level}.read.bytes"] = num * rewritten * file_bytes * share
        statistics[f"rocksdb.level{level}.cpu.micros"] = merge_us * share
    return puts, {"operations": num, "engine_statistics": statistics}


def test_known_costs_are_recovered() -> None:
    found = host_costs([entry_costs(*results(pair), pair) for pair in SIZES], KNOWN["cores"])
    assert found == pytest.approx(KNOWN, rel=1e-6)


def test_no_cost_is_below_zero() -> None:
    """Noise may make the line cross zero; then a cost is of entries, or of bytes, alone."""
    falling = [EntryCosts(100, 100, 900, 50, 3000), EntryCosts(1000, 1000, 800, 5000, 2000)]
    found = host_costs(falling, 2)
    assert min(found.values()) >= 0
    assert (found["put_ns"], found["put_byte_ns"]) == (850, 0)
    assert found["flush_entry_ns"] == 0 and found["flush_byte_ns"] == pytest.approx(5, rel=0.01)


def test_a_run_without_what_it_needs_is_refused() -> None:
    puts, merges = results(116)
    for name in [name for name in merges["engine_statistics"] if name.startswith("rocksdb.level1")]:
        del merges["engine_statistics"][name]
    with pytest.raises(SpillwayError, match="no figures of its levels"):
        entry_costs(puts, merges, 116)
    puts, merges = results(116, rewritten=0)
    with pytest.raises(SpillwayError, match="has compacted nothing"):
        entry_costs(puts, merges, 116)
    for empty in (0, 1):
        both = results(116)
        both[empty]["operations"] = 0
        with pytest.raises(SpillwayError, match="has written nothing"):
            entry_costs(*both, 116)


def test_a_file_of_costs_is_what_a_request_takes(tmp_path: Path) -> None:
    path = tmp_path / "host.json"
    path.write_text(json.dumps(KNOWN))
    assert lsm_request({"preset": "cosmos-plus"}, **read_host_costs(path))["host"] == KNOWN


def test_costs_that_a_file_leaves_out_are_the_simulators(tmp_path: Path) -> None:
    path = tmp_path / "host.json"
    path.write_text(json.dumps(KNOWN))
    found, cores = read_host(path)
    assert cores == KNOWN["cores"]
    assert asdict(found) == asdict(DEFAULT_COSTS) | {key: value for key, value in KNOWN.items() if key != "cores"}
    path.write_text("{}")
    assert read_host(path) == (DEFAULT_COSTS, None)


def test_there_is_one_set_of_default_costs() -> None:
    """What the simulator takes where a request says nothing is what predictions take."""
    text = (ROOT / "native" / "lsm" / "spec.h").read_text()
    body = text.partition("struct HostCosts {")[2].partition("};")[0]
    stated = {
        name: math.prod(float(factor) for factor in value.split("*"))
        for name, value in re.findall(r"double (\w+) = ([0-9.* ]+);", body)
    }
    cores = stated.pop("cores")
    assert cores and stated == asdict(DEFAULT_COSTS)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("{", "is not JSON"),
        ("[1]", "is not an object of costs"),
        ('{"put_n": 1}', "there is no cost 'put_n'; did you mean 'put_ns'?"),
        ('{"put_ns": "1"}', "put_ns is '1', which is not a number"),
        ('{"put_ns": true}', "put_ns is True, which is not a number"),
        ('{"get_ns": -1}', "get_ns is -1; it takes a number of at least 0"),
        ('{"get_ns": NaN}', "get_ns is nan; it takes a number of at least 0"),
        ('{"merge_byte_ns": 1e999}', "merge_byte_ns is inf; it takes a number of at least 0"),
        ('{"cores": 0}', "cores is 0; it takes a number of at least 0.01"),
    ],
)
def test_a_file_that_is_not_of_costs_is_refused(text: str, sentence: str, tmp_path: Path) -> None:
    path = tmp_path / "host.json"
    path.write_text(text)
    with pytest.raises(SpillwayError) as refused:
        read_host_costs(path)
    assert sentence in str(refused.value)
    with pytest.raises(SpillwayError, match="cannot be read"):
        read_host_costs(tmp_path / "none.json")
