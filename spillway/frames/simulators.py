"""The simulators as functions of keyword arguments, and a table of what they say at many points. Nothing is recorded.

``simulate_drive``   the drive model alone under a synthetic workload, as `spillway ssd simulate`
``simulate_lsm``     an LSM tree's shape on a drive model, without an engine
``grid``             a data frame with a row for each combination of arguments

Both run in virtual time in a process of their own, and the same arguments give the same figures.
"""

import itertools
from collections.abc import Callable, Mapping, Sequence
from numbers import Real
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from spillway import lsm
from spillway.errors import Interrupted, RunFailed, SpillwayError
from spillway.frames.keywords import errors_name_keywords
from spillway.frames.tables import flattened, frame_of
from spillway.lsm.simulate import SECTIONS, SIZES
from spillway.native.process import run_native
from spillway.quantity import nearest, parse_size
from spillway.ssd import simulate
from spillway.ssd.simulate import DriveChoice, WorkChoice

if TYPE_CHECKING:
    import pandas as pd

Document = dict[str, Any]

# Keywords that are texts where they are written as flags: sizes and shares may be numbers here.
_AS_TEXT = (
    *("page_bytes", "mapping_unit", "capacity", "spare_factor", "op", "write_cache", "mapping_cache", "bs", "fill"),
    "range",
)
_TEXTS = ("preset", "workload", "gc", "host_stack", "initial")
_NUMBERS = ("warmup", "compression_ratio", "writes")
KEYWORDS = {"set": "settings"}  # where a flag has another name
_DRIVE = tuple(DriveChoice.__dataclass_fields__)
_WORK = tuple(WorkChoice.__dataclass_fields__)


def simulate_drive(*, seed: int = 1, **keywords: Any) -> Document:
    """What a drive does under a synthetic workload: the object that `spillway ssd simulate --json` prints.

    Keywords are that command's flags, with ``_`` for ``-``: ``preset="intel-p4510"``, ``capacity="8GiB"`` (or bytes),
    ``workload="mixed:0.7"``, ``bs=4096``, ``iodepth=32``, ``fill=0.5``, ``writes=2`` (capacities) or ``ios=100_000``.
    ``settings`` is a table of any other keys of a preset: ``{"timing.erase_ns": 5_000_000}``. Times of the result are
    the drive's.

    Raises SpillwayError for a keyword or a value that is refused, Interrupted where it was ended early.
    """
    _check_known(keywords, (*_DRIVE, *_WORK), "simulate_drive")
    drive = DriveChoice(**_given(keywords, _DRIVE))
    with errors_name_keywords(KEYWORDS):
        request = simulate.simulate_request(drive, WorkChoice(**_given(keywords, _WORK)), seed)
        with simulate.errors_name_flags(drive):
            result = _whole("ssd-simulate", request)
        return result | {"lifetime": simulate.simulated_lifetime(drive, result)}


def _given(keywords: Document, names: Sequence[str]) -> Document:
    """Those of the keywords that one of the choices has, as it takes them."""
    return {name: _as_flag(name, keywords[name]) for name in names if keywords.get(name) is not None}


def _as_flag(name: str, value: Any) -> Any:
    if name == "settings":
        return tuple(f"{key}={_setting(each)}" for key, each in _table(name, value).items())
    if name in ("preset_file", "state"):
        if not isinstance(value, str | PathLike):
            raise SpillwayError(f"{name} is {value!r}; it takes the path of a file.")
        return Path(value)
    if name in _TEXTS and not isinstance(value, str):
        raise SpillwayError(f"{name} is {value!r}; it takes a text.")
    if name in _NUMBERS and not isinstance(value, Real):
        raise SpillwayError(f"{name} is {value!r}; it takes a number.")
    return str(value) if name in _AS_TEXT else value


def _setting(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _table(name: str, value: Any) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise SpillwayError(f"{name} is {value!r}; it takes a table of keys and values.")
    return value


def _check_known(keywords: Document, known: Sequence[str], function: str) -> None:
    for name in keywords:
        if name not in known:
            raise SpillwayError(f"{function} has no keyword {name!r}{nearest(name, known)}")


def _whole(command: str, request: Document) -> Document:
    """The result of a command of spillway-native. Raises Interrupted where it was ended early."""
    return _ended(run_native(command, request), command)


def _ended(result: Document, command: str) -> Document:
    """A result that is whole, without its kind of event. Raises Interrupted for any other."""
    if not result["complete"]:
        raise Interrupted(f"spillway-native {command} was ended early.")
    return {name: value for name, value in result.items() if name != "event"}


# ---------------------------------------------------------------------------------------------------------------------
# The LSM shape simulator

# Keywords by the part of the request that they go to; what is not given has RocksDB's default there. A part of a part,
# such as that of universal compaction, is a table.
PARTS = {
    part: tuple(dict.fromkeys(key.partition(".")[0] for key in SECTIONS[part])) for part in ("tree", "load", "host")
}
SPILL = {f"spill_{key.removesuffix('_bytes')}": key for key in SECTIONS["spill"]}
_SIZES = {key.partition(".")[2] for key in SIZES} | set(SPILL)
_LSM_DRIVE = ("preset", "preset_file", "capacity", "spare_factor", "op", "gc", "host_stack", "settings")
_INITIAL = ("initial", "fill", "warmup", "state")


def simulate_lsm(
    *, seed: int = 1, grain: int = 0, sample_interval_s: float = 0.0, queries: Sequence[Document] = (), **keywords: Any
) -> Document:
    """What a load does to an LSM tree and to the drive under it, by the tree's shape: the simulator's result, with
    ``wa_app``, ``wa_device`` and ``wa_total``.

    Keywords are RocksDB's options by their names (``write_buffer_size="64MiB"``), ``shape`` (``leveled``,
    ``universal``, ``single-level``), ``fanout``, the load (``value_bytes``, ``num``, ``distribution``), the drive and
    its state as of ``simulate_drive`` (``preset``, ``capacity``, ``settings``, ``initial``, ``fill``), the processor's
    part (``put_ns``, ``cores``) and a spill store (``spill_capacity``). ``queries`` are tables with ``workload``,
    ``threads`` and ``operations``; ``grain`` is how coarse the tree is, 0 chosen. Sizes may have units. Without
    ``initial`` or ``fill`` the drive begins without data. With ``sample_interval_s``, of the load's time and at least
    0.001, the result has ``samples``: a table for each interval, such as ``pandas.DataFrame`` takes.

    Raises SpillwayError for a keyword or a value that is refused, Interrupted where it was ended early.
    """
    known = (*(name for names in PARTS.values() for name in names), *SPILL, *_LSM_DRIVE, *_INITIAL)
    _check_known(keywords, known, "simulate_lsm")
    if not isinstance(queries, list | tuple):
        raise SpillwayError(f"queries is {queries!r}; it takes a list of tables.")
    given = {name: parse_size(value, name) if name in _SIZES else value for name, value in keywords.items()}
    drive = DriveChoice(**_given(keywords, _LSM_DRIVE))
    with errors_name_keywords(KEYWORDS):
        request: Document = {"seed": seed, "grain": grain, "drive": simulate.drive_request(drive)}
        if initial := _given(keywords, _INITIAL):
            request["initial"] = simulate.initial_request(WorkChoice(**initial), None)
        request |= {part: {name: given[name] for name in names if name in given} for part, names in PARTS.items()}
        request["spill"] = {key: given[name] for name, key in SPILL.items() if name in given}
        request |= {
            "queries": [dict(_table("a query", query)) for query in queries],
            "sample_interval_s": sample_interval_s,
        }
        with simulate.errors_name_flags(drive):
            result = _ended(lsm.simulate(request), "lsm-simulate")
    ratios = lsm.ratios(result)
    return result | {"wa_app": ratios.wa_app, "wa_device": ratios.wa_device, "wa_total": ratios.wa_total}


# ---------------------------------------------------------------------------------------------------------------------
# Many calls


def grid(function: Callable[..., Mapping[str, Any]], **keywords: Any) -> "pd.DataFrame":
    """Calls ``function`` for every combination of those keywords that are lists, tuples or ranges of values; the others
    are the same in each call, as is a list of tables.

    A data frame with a row for each call: its keywords, then the values of its result, of which nested tables are
    columns with a name for each part (``latency_p99_us``).

        grid(simulate_drive, preset="quickstart", capacity="1GiB", iodepth=[1, 4, 16], workload=["randread"])

    A call that failed under way, such as on a drive that is full, is a row with the reason in ``failure`` and no
    figures. ``samples`` of a call are rows of their own and not in it. Raises SpillwayError for a call that is refused.
    """
    axes = {name: list(value) for name, value in keywords.items() if _is_axis(value)}
    same = {name: value for name, value in keywords.items() if name not in axes}
    shown = {name: value for name, value in same.items() if isinstance(value, str | int | float)}
    rows = []
    for values in itertools.product(*axes.values()):
        point = dict(zip(axes, values, strict=True))
        rows.append(shown | point | _result(function, same | point))
    return frame_of(rows, (*shown, *axes, "failure"))


def _is_axis(value: Any) -> bool:
    if not isinstance(value, list | tuple | range):
        return False
    return not value or not all(isinstance(each, Mapping) for each in value)


def _result(function: Callable[..., Mapping[str, Any]], keywords: Document) -> Document:
    try:
        result = function(**keywords)
    except RunFailed as error:
        return {"failure": str(error)}
    found = flattened({name: value for name, value in result.items() if name != "samples"})
    return {name: value for name, value in found.items() if name not in keywords}
