"""wa_app of a scaled run at the original's size, by a simulation of its engine's tree.

LevelDB's levels are constants: 10 MiB, and ten times more in each next. A smaller database has fewer of them, so its
wa_app is lower, whatever else is scaled along. ``models/leveldb.py`` and ``models/value_log.py`` simulate what is
merged with what; they are run for the size that was measured and for the original's. Only where the first agrees with
the measurement is the second taken for it. ``laws.py`` runs them, and only those that a claim needs. LevelDB's loads of
few pairs, at both sizes, are simulated with their keys (``models/leveldb_keys.py``).

How many tables wait in L0 for a compaction depends on how fast the writer puts and how fast compaction writes. Both are
the run's own:

    puts_per_s      = puts / (duration - time in stalls)
    compaction_mb_s = (bytes flushed + bytes compacted) / (duration * share of samples that saw a compaction)
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from spillway.models import leveldb, leveldb_keys, value_log
from spillway.plan.arm import Arm
from spillway.rundir.directory import read_samples

AGREES = 0.15  # relative, between simulation and measurement at the scaled size. Source: as for the figures themselves


@dataclass(frozen=True)
class Rates:
    """A run's rate of puts outside of write stalls (puts/s), and the rate of its background thread while it wrote
    (MB/s)."""

    puts_per_s: float
    compaction_mb_s: float

    def rounded(self) -> "Rates":
        """To powers of two. At the original's sizes writers wait for compaction whatever the rates: at 100 to 300
        thousand puts and 90 to 200 MB a second 27 GiB come to 16.8 to 17.4. So similar runs share a simulation."""
        return Rates(*(2.0 ** round(math.log2(each)) for each in (self.puts_per_s, self.compaction_mb_s)))


@dataclass(frozen=True)
class Law:
    """wa_app by simulation, of a run as it was scaled and of the original (None: it was not asked for)."""

    at_scale: float
    at_original: float | None
    rates: Rates | None = None  # that it was simulated with

    def agrees_with(self, measured: float) -> bool:
        """Whether the simulation at the scale is within AGREES of ``measured``."""
        return abs(self.at_scale / measured - 1) <= AGREES


@dataclass(frozen=True)
class Load:
    """What is simulated: a load of an empty database at random, of an engine with its options."""

    engine: str
    pairs: int
    shape: leveldb.Shape
    log: value_log.LogShape
    log_is_written: bool
    keys_are_drawn: bool = False  # of both sizes, where the original's pairs are few

    def at(self, rates: Rates) -> "Load":
        """The same load at these rates."""
        shape = replace(self.shape, puts_per_s=rates.puts_per_s, compaction_mb_s=rates.compaction_mb_s)
        return replace(self, shape=shape)


def load_of(arm: Arm) -> Load | None:
    """The load of an arm that fills an empty database at random by one thread; None for any other."""
    engine, options = arm.settings["engine.name"], arm.engine_options
    if engine not in ("leveldb", "leveldb-vlog") or options.get("compression") != "kNoCompression":
        return None
    if [phase["workload"] for phase in arm.phases] != ["fillrandom"] or arm.settings.get("kept.from"):
        return None
    phase = arm.phases[0]
    if any(
        phase[key] is not None for key in ("operations", "duration_s", "rate_ops_s", "rate_of", "arrivals", "until")
    ):
        return None
    if phase["threads"] != 1:  # the simulation has one writer
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
        log = value_log.LogShape(_segment_bytes(arm), ratio)
    # A log is about as long as its memtable, and is deleted unwritten where its pages may wait for that.
    waits = min(arm.settings["fs.writeback_bytes"], arm.settings["fs.closed_dirty_bytes"])
    return Load(engine, arm.settings["load.num"], shape, log, waits < 2 * buffer)


def _segment_bytes(arm: Arm) -> int:
    """Of a value log: as the plan says, or as native/engine/vlog/engine.cc chooses by the room that there is."""
    if arm.settings["engine.vlog.segment"] is not None:
        return int(arm.settings["engine.vlog.segment"])
    room = arm.settings["fs.size"] or arm.capacity_bytes()
    default = value_log.LogShape().segment_bytes
    return (
        default if room is None else min(default, max(value_log.LEAST_SEGMENT_BYTES, room // value_log.LEAST_SEGMENTS))
    )


def rates_of(summary: Mapping[str, Any], directory: Path) -> Rates | None:
    """The rates of a finished run from its figures and, in ``directory``, its samples; None where they are not known.

    A sample tells whether a compaction runs at its end. Of n samples k do: (k + 1/2) / (n + 1) of the time, which is
    neither none nor all of it where a short run has one sample (the mean of a binomial's share under Jeffreys' prior).
    Raises SpillwayError where the samples are damaged.
    """
    by_cause = summary.get("host_bytes_written_by_cause") or {}
    written = (by_cause.get("flush") or 0) + (by_cause.get("compaction") or 0)
    duration, puts = summary.get("duration_s") or 0.0, summary.get("writes") or 0
    free = duration - (summary.get("stalls") or {}).get("seconds", 0.0)
    place = directory / str(summary.get("directory"))
    if not puts or not written or free <= 0 or not (place / "samples.csv").is_file():
        return None
    seen = [row["running_compactions"] for row in read_samples(place) if row.get("running_compactions") is not None]
    busy = duration * (sum(1 for each in seen if each) + 0.5) / (len(seen) + 1)
    return Rates(puts / free, written / busy / 1e6) if seen else None


def simulate(load: Load) -> float:
    """wa_app of a load (``models/leveldb.py``, ``models/value_log.py``)."""
    if load.engine == "leveldb-vlog":
        return value_log.fill_random(load.shape, load.pairs, log=load.log).wa_app
    model = leveldb_keys.fill_random if load.keys_are_drawn else leveldb.fill_random
    done = model(load.shape, load.pairs)
    unwritten = 0.0 if load.log_is_written else done.log_bytes - done.last_log_bytes
    return done.wa_app - unwritten / done.user_bytes
