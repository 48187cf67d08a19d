"""The laws that a suite's claims need: simulated in processes, and stored in ``laws.json`` in the suite's directory.

A law is needed where a claim reads ``wa_app`` or ``wa_total`` of a run. All are simulated at the scale, which takes
milliseconds. The original's size takes up to a minute, so it is simulated only where every run of the claim agrees with
its law: elsewhere no claim would use it. What was simulated once is read back as long as its inputs, all of them, and
the models' sources are the same.
"""

import hashlib
import inspect
import json
import multiprocessing
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from spillway.models import leveldb, leveldb_keys, value_log
from spillway.plan.arm import Arm
from spillway.rundir.directory import write_json
from spillway.suite import law
from spillway.suite.law import Law, Load, Rates

Run = tuple[str, str]  # the names of a plan and of a run of it
OnProgress = Callable[[str], None]

KEPT_AS = "laws.json"
WORKERS = 2  # processes. Source: guess, a small machine's processors
FEW_PAIRS = 20_000_000  # simulated within a second: not worth processes. Source: guess


class Simulated:
    """wa_app by simulation, read from and written to a directory's ``laws.json``."""

    def __init__(self, directory: Path, on_progress: OnProgress | None = None) -> None:
        """``on_progress`` is called with a line on the progress of long simulations."""
        self._path = directory / KEPT_AS
        self._on_progress = on_progress
        self._source = _source()
        self._known: dict[str, float] = {}
        with suppress(OSError, ValueError, TypeError, AttributeError):  # one that cannot be read is made again
            kept = json.loads(self._path.read_text(encoding="utf-8"))
            if kept["source"] == self._source:
                self._known = {str(key): float(value) for key, value in kept["wa_app"].items()}

    def of(self, loads: Iterable[Load]) -> dict[Load, float]:
        """wa_app of each load; what is not known yet is simulated. Raises SpillwayError where laws.json cannot be
        written."""
        wanted = {load: _key(load) for load in loads}
        missing = [load for load, key in wanted.items() if key not in self._known]
        for done, (load, wa_app) in enumerate(self._simulated(missing), start=1):
            self._known[wanted[load]] = wa_app
            if _are_many(missing):
                self._report_progress(done, len(missing))
                self._write()
        if missing:
            self._write()
        return {load: self._known[key] for load, key in wanted.items()}

    def _simulated(self, loads: list[Load]) -> Iterable[tuple[Load, float]]:
        if not _are_many(loads):
            yield from ((load, law.simulate(load)) for load in loads)
            return
        self._report_progress(0, len(loads))
        spawn = multiprocessing.get_context("spawn")  # threads of this process are not copied
        with ProcessPoolExecutor(WORKERS, mp_context=spawn) as pool:
            begun = {pool.submit(law.simulate, load): load for load in sorted(loads, key=lambda each: -each.pairs)}
            try:
                for each in as_completed(begun):
                    yield begun[each], each.result()
            except BaseException:
                pool.shutdown(wait=False, cancel_futures=True)
                raise

    def _report_progress(self, done: int, count: int) -> None:
        if self._on_progress is not None:
            self._on_progress(f"original's sizes simulated: {done} of {count}")

    def _write(self) -> None:
        if self._path.parent.is_dir():
            write_json(self._path, {"source": self._source, "wa_app": dict(sorted(self._known.items()))})


def _are_many(loads: list[Load]) -> bool:
    return max((load.pairs for load in loads), default=0) > FEW_PAIRS


def _key(load: Load) -> str:
    return json.dumps(asdict(load), sort_keys=True)


def _source() -> str:
    """SHA-256 of what simulates."""
    text = "".join(inspect.getsource(module) for module in (leveldb, leveldb_keys, value_log, law))
    return hashlib.sha256(text.encode()).hexdigest()


@dataclass(frozen=True)
class Scaled:
    """The loads to simulate for a run, as it was scaled and as the original is, and what was measured of it."""

    at_scale: Load
    original: Load
    rates: Rates
    wa_app: float


def laws_of(runs: Mapping[Run, Scaled], groups: Iterable[Iterable[Run]], simulated: Simulated) -> dict[Run, Law]:
    """The laws of runs that claims need; each of ``groups`` has the runs of one claim."""
    needed = [list(group) for group in groups]
    own = {run: runs[run] for group in needed for run in group if run in runs}
    small = simulated.of(each.at_scale for each in own.values())
    laws = {run: Law(small[each.at_scale], None, each.rates) for run, each in own.items()}
    taken = {
        run
        for group in needed
        if all(run in own and laws[run].agrees_with(own[run].wa_app) for run in group)
        for run in group
    }
    large = simulated.of(own[run].original for run in taken)
    return {
        run: Law(found.at_scale, large[own[run].original] if run in taken else None, found.rates)
        for run, found in laws.items()
    }


def scaled_of(scaled: Arm, original: Arm, summary: Mapping[str, Any], directory: Path) -> Scaled | None:
    """What is to be simulated for a run of a plan, whose directory this is; None where there is no law. Raises
    SpillwayError where the samples are damaged."""
    small, large = law.load_of(scaled), law.load_of(original)
    if small is None or large is None or small == large or not summary.get("wa_app"):
        return None
    rates = law.rates_of(summary, directory)
    if rates is None:
        return None
    drawn = large.engine == "leveldb" and large.pairs <= leveldb_keys.MOST_PAIRS
    small, large = (replace(each, keys_are_drawn=drawn) for each in (small.at(rates), large.at(rates.rounded())))
    return Scaled(small, large, rates, summary["wa_app"])
