"""Requests for the LSM shape simulator, and the ratios of its results (M13-M20, M26-M31; docs/LSM.md)."""

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from spillway.errors import SpillwayError
from spillway.native.process import run_native
from spillway.quantity import nearest, parse_size

Document = dict[str, Any]

SHAPES = ("leveled", "universal", "single-level")
DISTRIBUTIONS = ("filluniquerandom", "fillseq", "uniform", "zipfian")
QUERIES = ("readrandom", "seekrandom")
# Keys of the request's objects, for --set; the native side checks their values.
SECTIONS = {
    "tree": (
        *("shape", "fanout", "levels", "level0_file_num_compaction_trigger", "level0_slowdown_writes_trigger"),
        *("level0_stop_writes_trigger", "write_buffer_size", "max_write_buffer_number", "target_file_size_base"),
        *("target_file_size_multiplier", "max_bytes_for_level_base", "level_compaction_dynamic_level_bytes"),
        *("level_compaction_dynamic_file_size", "compaction_pri", "compaction_threads", "flush_threads"),
        *("max_subcompactions", "soft_pending_compaction_bytes_limit", "hard_pending_compaction_bytes_limit"),
        *("delayed_write_rate", "slowdown", "trivial_moves", "wal", "discard", "block_size", "bits_per_key"),
        *("enable_blob_files", "min_blob_size", "blob_file_size", "enable_blob_garbage_collection"),
        *("blob_garbage_collection_age_cutoff", "blob_garbage_collection_force_threshold"),
        *("universal.size_ratio", "universal.min_merge_width", "universal.max_size_amplification_percent"),
    ),
    "spill": ("capacity_bytes", "generation_bytes"),
    "host": (
        *("put_ns", "put_byte_ns", "flush_entry_ns", "flush_byte_ns", "merge_entry_ns", "merge_byte_ns"),
        *("get_ns", "probe_ns", "next_ns", "cores", "log_dirty_bytes"),
    ),
    "load": (
        *("key_bytes", "value_bytes", "num", "operations", "distribution", "preload", "zipfian_constant"),
        *("zipfian_ranks", "duration_s", "rate_ops_s", "settle"),
    ),
}
SIZES = (
    *("tree.write_buffer_size", "tree.target_file_size_base", "tree.max_bytes_for_level_base"),
    *("tree.soft_pending_compaction_bytes_limit", "tree.hard_pending_compaction_bytes_limit"),
    *("tree.min_blob_size", "tree.blob_file_size"),
    *("tree.delayed_write_rate", "tree.block_size", "spill.capacity_bytes", "spill.generation_bytes"),
    *("load.key_bytes", "load.value_bytes", "host.log_dirty_bytes"),
)


@dataclass(frozen=True)
class Ratios:
    """What follows from a result's bytes. None where nothing was written."""

    wa_app: float | None  # host bytes written / user bytes
    wa_device: float | None  # NAND bytes programmed / host bytes written
    wa_total: float | None
    space_amplification: float | None  # bytes held on the drive / bytes of live user data
    stall_share: float | None  # of the load's time: delayed or stopped


def ratios(result: Mapping[str, Any]) -> Ratios:
    """The ratios of a result of `simulate`."""
    user, host = result["user_bytes"], result["host_bytes_written"]
    nand = sum(result["nand_bytes_programmed"].values())
    stalled = sum(sum(by_cause.values()) for by_cause in result["stalls"].values())
    return Ratios(
        wa_app=host / user if user else None,
        wa_device=nand / host if host else None,
        wa_total=nand / user if user else None,
        space_amplification=result["held_bytes"] / result["live_user_bytes"] if result["live_user_bytes"] else None,
        stall_share=stalled / result["simulated_seconds"] if result["simulated_seconds"] else None,
    )


def simulate(request: Mapping[str, Any], on_event: Callable[[Document], None] | None = None) -> Document:
    """Runs the simulator. ``request`` is of contract/lsm-simulate.request.schema.json; so is the result of the
    contract's. Samples, if the request asks for them, are events; without ``on_event`` the result has them as
    ``samples``, a list of `sample_row`. Raises SpillwayError with the simulator's sentence."""
    samples: list[Document] = []

    def collect(event: Document) -> None:
        if event["event"] == "lsm-sample":
            samples.append(sample_row(event))

    result = run_native("lsm-simulate", dict(request), on_event or collect)
    asked = on_event is None and request.get("sample_interval_s")
    return result | {"samples": samples} if asked else result


def sample_row(event: Mapping[str, Any]) -> Document:
    """A sample's figures by the names of columns: ``t_s``, ``operations``, ``l0_files``, ``level0_bytes``, …"""
    levels = {f"level{level}_bytes": size for level, size in enumerate(event["level_bytes"])}
    return {key: value for key, value in event.items() if key not in ("event", "level_bytes")} | levels


def lsm_request(
    drive: Document,
    *,
    fill: float = 0.0,
    seed: int = 1,
    grain: int = 0,
    sample_interval_s: float = 0.0,
    queries: tuple[str, ...] = (),
    settings: tuple[str, ...] = (),
    **values: Any,
) -> Document:
    """A request. ``values`` are keys of its objects by their dotted names with ``__`` in place of the dot, None for the
    default (``tree__fanout=8``). ``settings`` are such keys as KEY=VALUE. ``queries`` are WORKLOAD[:THREADS[:OPS]].
    ``fill``: share of the drive that is steadily full of other data; the tree lies beside it. Raises SpillwayError."""
    request: Document = {"drive": drive, "seed": seed, "grain": grain, "sample_interval_s": sample_interval_s}
    if fill:
        request["initial"] = {"kind": "steady", "fill": fill}
    given = {key.replace("__", "."): value for key, value in values.items() if value is not None}
    given |= dict(_setting(text) for text in settings)
    for key, value in given.items():
        _place(request, key, parse_size(value, key) if key in SIZES and isinstance(value, str) else value)
    if queries:
        request["queries"] = [_query(text) for text in queries]
    return request


def _setting(text: str) -> tuple[str, Any]:
    key, equals, value = text.partition("=")
    known = [f"{section}.{name}" for section, names in SECTIONS.items() for name in names]
    if not equals:
        raise SpillwayError(f"--set {text}: give KEY=VALUE, such as tree.fanout=8.")
    if key not in known:
        raise SpillwayError(f"--set {key}: there is no such key{nearest(key, known)}")
    try:
        return key, json.loads(value)
    except json.JSONDecodeError:
        return key, value


def _place(request: Document, key: str, value: Any) -> None:
    *outer, name = key.split(".")
    at = request
    for part in outer:
        at = at.setdefault(part, {})
    at[name] = value


def _query(text: str) -> Document:
    match = re.fullmatch(r"(\w+)(?::(\d+))?(?::(\d+))?", text)
    if match is None or match[1] not in QUERIES:
        raise SpillwayError(f"--query {text}: give readrandom or seekrandom, as WORKLOAD[:THREADS[:OPERATIONS]].")
    query: Document = {"workload": match[1], "threads": int(match[2] or 1)}
    if match[3]:
        query["operations"] = int(match[3])
    return query
