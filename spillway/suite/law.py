"""What a scaled run would have come to at the original's size, by a simulation of its engine's tree.

LevelDB's levels are constants: 10 MiB, and ten times more in each next. A smaller database has fewer of them, so its
wa_app is lower, whatever else is scaled along. ``models/leveldb.py`` and ``models/value_log.py`` simulate what is
merged with what; they are run for the size that was measured and for the original's. Only where the first agrees with
the measurement is the second taken for it.
"""

from dataclasses import dataclass
from functools import lru_cache

from spillway.models import leveldb, value_log
from spillway.plan import Arm

AGREES = 0.15  # relative, between simulation and measurement at the scaled size. Source: as for the figures themselves


@dataclass(frozen=True)
class Law:
    """wa_app by simulation, of a run as it was scaled and of the original."""

    at_scale: float
    at_original: float

    def agrees_with(self, measured: float) -> bool:
        """Whether the simulation says of the scaled run what was measured."""
        return abs(self.at_scale / measured - 1) <= AGREES


def law_of(scaled: Arm, original: Arm) -> Law | None:
    """The law for a run; None where there is none: for other engines and loads, and for a run that was not scaled."""
    loads = _load(scaled), _load(original)
    if loads[0] is None or loads[1] is None or loads[0] == loads[1]:
        return None
    return Law(_wa_app(loads[0]), _wa_app(loads[1]))


@dataclass(frozen=True)
class _Load:
    engine: str
    pairs: int
    shape: leveldb.Shape
    log: value_log.LogShape
    log_is_written: bool


def _load(arm: Arm) -> _Load | None:
    """A load of an empty database at random, and nothing else; None for anything else."""
    engine, options = arm.settings["engine.name"], arm.engine_options
    if engine not in ("leveldb", "leveldb-vlog") or options.get("compression") != "kNoCompression":
        return None
    if [phase["workload"] for phase in arm.phases] != ["fillrandom"] or arm.settings.get("kept.from"):
        return None
    if arm.phases[0]["operations"] is not None or arm.phases[0]["duration_s"] is not None:
        return None
    if engine == "leveldb-vlog" and arm.settings["engine.vlog.min_value"] > arm.settings["load.value_bytes"]:
        return None
    defaults = leveldb.Shape()
    buffer = int(options.get("write_buffer_size", defaults.write_buffer_bytes))
    shape = leveldb.Shape(
        key_bytes=arm.settings["load.key_bytes"],
        value_bytes=arm.settings["load.value_bytes"],
        write_buffer_bytes=buffer,
        max_file_bytes=int(options.get("max_file_size", defaults.max_file_bytes)),
    )
    log = value_log.LogShape()
    if engine == "leveldb-vlog":
        settings = arm.settings
        ratio = settings["engine.vlog.gc_garbage_ratio"] if settings["engine.vlog.gc"] else float("inf")
        log = value_log.LogShape(settings["engine.vlog.segment"], ratio)
    # A log is about as long as its memtable, and is deleted unwritten where its pages may wait for that.
    waits = min(arm.settings["fs.writeback_bytes"], arm.settings["fs.closed_dirty_bytes"])
    return _Load(engine, arm.settings["load.num"], shape, log, waits < 2 * buffer)


@lru_cache(maxsize=256)
def _wa_app(load: _Load) -> float:
    if load.engine == "leveldb-vlog":
        return value_log.fill_random(load.shape, load.pairs, log=load.log).wa_app
    done = leveldb.fill_random(load.shape, load.pairs)
    return done.wa_app if load.log_is_written else done.wa_app - done.log_bytes / done.user_bytes
