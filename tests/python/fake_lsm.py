"""A stand-in for the simulator of the tree: answers requests of its form by a few formulas, the same each time.

It writes a log and a flush, and rewrites by the shape; the first puts, on an empty tree, write less. Every request is
checked against the form that is agreed (keys and their types), so that a request nobody could answer fails a test.
"""

import math
from collections.abc import Callable
from typing import Any

import spillway.cli.models.lsm  # noqa: F401  # takes the simulator's name now, and not while a stand-in has it

Document = dict[str, Any]

TREE = {
    "shape": str, "levels": int, "level0_file_num_compaction_trigger": int, "level0_slowdown_writes_trigger": int,
    "level0_stop_writes_trigger": int, "write_buffer_size": int, "max_write_buffer_number": int,
    "target_file_size_base": int, "max_bytes_for_level_base": int, "level_compaction_dynamic_level_bytes": bool,
    "compaction_threads": int, "flush_threads": int, "max_subcompactions": int, "discard": bool, "block_size": int,
    "bits_per_key": int, "wal": bool, "soft_pending_compaction_bytes_limit": int,
    "hard_pending_compaction_bytes_limit": int,
}  # fmt: skip
BLOBS = {
    "enable_blob_files": bool,
    "min_blob_size": int,
    "blob_file_size": int,
    "enable_blob_garbage_collection": bool,
    "blob_garbage_collection_age_cutoff": float,
}
ADDRESS_BYTES = 21  # in the tree, of a value that is separated
LOAD = {
    "key_bytes": int,
    "value_bytes": int,
    "num": int,
    "operations": int,
    "distribution": str,
    "preload": str,
    "settle": bool,
}
BANDWIDTH_MB_S = 400.0
GATHERED = 3  # times the trigger: files in L0 where writers wait
FIRST_SHARE = 0.5  # of what a put writes in a full tree, while the tree grows: over the first puts of each key


def simulate(request: Document) -> Document:
    """The result for a request, with its reports."""
    check(request)
    load = request["load"]
    found = result_of(request)
    if "report_operations" in load:
        first = result_of(request | {"load": load | {"operations": load["report_operations"]}})
    elif "report_s" in load:
        first = result_of(request | {"load": load | {"duration_s": load["report_s"]}})
    else:
        return found
    return found | {"reports": [first, found]}


def changed(result: Document, change: Callable[[Document], Document]) -> Document:
    """The result with what ``change`` makes of its fields, and of those of its reports."""
    reports = {"reports": [each | change(each) for each in result["reports"]]} if "reports" in result else {}
    return result | change(result) | reports


def result_of(request: Document) -> Document:
    """What is told of a whole load."""
    tree, load = request["tree"], request["load"]
    pair = load["key_bytes"] + load["value_bytes"]
    data = load["num"] * pair
    separated = tree.get("enable_blob_files", False)
    of_tree = load["key_bytes"] + ADDRESS_BYTES if separated else pair
    rewrites = rewritten(tree, load["num"] * of_tree, load.get("rate_ops_s"))
    per_put = of_tree * (1 + rewrites) + pair * (2 if separated else 1)
    seeded = 1 + 0.002 * (request["seed"] % 5)
    capacity = float(request["drive"]["set"]["capacity.capacity_bytes"])
    wa_device = 1 + (0.3 * data / capacity if tree["discard"] else 1.0)
    rate = load.get("rate_ops_s")

    def host_of(puts: int) -> float:
        found: float = written(puts, load["num"], per_put) * seeded
        return found

    def seconds_of(puts: int) -> float:
        busy_s: float = (
            host_of(puts) * wa_device / (BANDWIDTH_MB_S * 1e6) / min(2.0, 0.5 + 0.5 * tree["compaction_threads"])
        )
        return max(busy_s, puts * 5e-6 / float(request["host"]["cores"]))

    operations = load["operations"]
    while "duration_s" in load and operations > 1:
        if max(seconds_of(operations), operations / rate if rate else 0.0) <= load["duration_s"]:
            break
        operations = max(1, int(0.99 * operations))
    host, seconds = host_of(operations), seconds_of(operations)
    stopped = 0.0 if request["spill"]["capacity_bytes"] else 0.05
    if rate:
        stopped *= min(1.0, operations / rate / 1e9 + seconds * rate / operations / 2)
        seconds = max(seconds, operations / rate)
    return {
        "operations": operations,
        "simulated_seconds": seconds,
        "user_bytes": operations * pair,
        "live_user_bytes": load["num"] * pair,
        "host_bytes_written": int(host),
        "host_bytes_read": int(host * 0.6),
        "nand_bytes_programmed": {"host": int(host), "gc": int(host * (wa_device - 1)), "mapping": 0},
        "held_bytes": int(data * 1.2),
        "peak_held_bytes": int(data * (2.0 if is_whole(tree) else 1.3)),
        "levels": levels(tree, load["num"] * of_tree),
        "stalls": {"delayed_s": {"l0": 0.02 * seconds, "memtable": 0.0}, "stopped_s": {"l0": stopped * seconds}},
        "worst_wait_ms": 0.0 if request["spill"]["capacity_bytes"] else 1e3 * stop_s(tree),
        "queries": [],
        "complete": True,
    }


def is_whole(tree: Document) -> bool:
    """Whether one compaction may take the whole tree."""
    return bool(tree["shape"] == "universal" or tree["levels"] == 2)


def stop_s(tree: Document) -> float:
    """The longest time without a put: a memtable is flushed."""
    return float(tree["write_buffer_size"]) / (BANDWIDTH_MB_S * 1e6)


def written(operations: int, num: int, per_put: float) -> float:
    """Bytes of so many puts: the first of each key fall on a small tree."""
    first = min(operations, num)
    return per_put * (FIRST_SHARE * first + (operations - first))


def rewritten(tree: Document, data: float, rate: float | None) -> float:
    """Bytes that compactions write for each that is flushed; writers without a rate let files gather in L0."""
    batch: float = tree["write_buffer_size"] * tree["level0_file_num_compaction_trigger"] * (1 if rate else GATHERED)
    if tree["levels"] == 2:
        return 1 + data / batch
    if tree["shape"] == "universal":
        return max(1.0, math.log2(max(2.0, data / batch)))
    steps: float = math.log(max(1.01, data / tree["max_bytes_for_level_base"])) / math.log(max(2, tree["fanout"]))
    base, fanout = float(tree["max_bytes_for_level_base"]), float(tree["fanout"])
    return 1 + base / batch + max(0.0, steps) * (1 + 0.6 * fanout)


def levels(tree: Document, data: float) -> list[Document]:
    """Files by level."""
    found = [{"level": 0, "files": 2, "bytes": 2 * tree["write_buffer_size"], "bytes_written": 0, "bytes_read": 0}]
    left, size, level = data, float(tree["max_bytes_for_level_base"]), 1
    if is_whole(tree):
        size = data
    while left > 0 and level < 7:
        own = min(left, size) if level < 6 else left
        found.append({"level": level, "files": 1, "bytes": int(own), "bytes_written": 0, "bytes_read": 0})
        left, size, level = left - own, size * tree["fanout"], level + 1
    return found


def check(request: Document) -> None:
    """Fails for a request that is not of the form."""
    for table, form in (("tree", TREE), ("load", LOAD)):
        for key, kind in form.items():
            assert type(request[table][key]) is kind, f"{table}.{key} is {request[table].get(key)!r}"
    tree, load = request["tree"], request["load"]
    assert tree["wal"] and set(tree) <= {"fanout", *TREE, *BLOBS}
    for key in set(tree) & set(BLOBS):
        assert set(BLOBS) <= set(tree) and type(tree[key]) is BLOBS[key]
    assert tree["shape"] in ("leveled", "universal") and tree["fanout"] >= 1.1
    assert type(request["host"]["log_dirty_bytes"]) is int
    assert load["distribution"] in ("uniform", "zipfian")
    assert load["preload"] == ("fillseq-unsettled" if "duration_s" in load else "fillseq")
    assert load.get("zipfian_ranks") == (10**10 if load["distribution"] == "zipfian" else None)
    assert tree["level0_file_num_compaction_trigger"] <= tree["level0_slowdown_writes_trigger"]
    assert tree["level0_slowdown_writes_trigger"] <= tree["level0_stop_writes_trigger"]
    assert load["num"] > 0 and load["operations"] > 0
    assert request["initial"]["kind"] in ("trimmed", "steady")
    known = {"seed", "divided_by", "drive", "initial", "overwrites_initial", "tree", "spill", "host", "load", "queries"}
    assert set(request) <= known
