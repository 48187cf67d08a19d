"""The largest data set that an engine can keep on a drive, by search (pitfall 5).

    fill.json   for each arm what was found, and every trial
    ARM/NUM/    the run directory of each trial: the arm with that load.num

A trial is a run of the plan with another ``load.num``: it *fits* where every repetition goes through all phases, and
does not where the drive fills. Bisection between 0 and what the partition could hold of bare pairs ends when the
largest that fits and the smallest that does not lie within a share of that bound. In virtual time the engine writes as
fast as the processor lets it, and its compaction debt, so the space that it takes, may be larger than on a drive that
slows writers down.

What this ignores: a store that fits may not fit at another seed or for longer phases; nothing says that every smaller
data set fits. The two neighbours that the search ends with are what was seen; where all that was tried fits, or nothing
does, there is one of them alone, and no edge.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from spillway.errors import Interrupted, SpillwayError
from spillway.figures.space import peak_held
from spillway.native.interruption import interruptible
from spillway.plan.arm import Arm, slug
from spillway.plan.document import Plan
from spillway.plan.effects import WithoutEffect
from spillway.plan.layers import keys_given
from spillway.run.execute import Watch, execute
from spillway.run.summary import standing_throughout
from spillway.rundir.directory import ArmRecord, read_run, write_json
from spillway.suite.document import load_scaled

Document = dict[str, Any]

RECORDS = "load.num is what is searched, and YCSB's phases have records; use db_bench's."
WITHIN = 0.01  # of the most pairs: some seven trials. Source: guess


@dataclass(frozen=True)
class Trial:
    """One run of the search. ``num``: its pairs. None: not known."""

    num: int
    fits: bool
    directory: str  # relative to the search's
    failure: str
    live_user_bytes: float | None
    peak_held_bytes: float | None
    steady: bool = False
    standing: str = ""

    def document(self) -> Document:
        """For fill.json."""
        return dict(vars(self))


@dataclass
class Search:
    """The state of the search for one arm; sizes in bytes."""

    arm: str
    capacity_bytes: int
    partition_bytes: int
    most: int  # pairs that the partition would hold bare; no search goes beyond
    trials: list[Trial] = field(default_factory=list)

    @property
    def largest(self) -> Trial | None:
        """The largest that fits, and nothing that does not fit is smaller."""
        floor = self.smallest_refused.num if self.smallest_refused else self.most + 1
        return max((each for each in self.trials if each.fits and each.num < floor), key=lambda t: t.num, default=None)

    @property
    def smallest_refused(self) -> Trial | None:
        """The smallest that does not fit."""
        return min((each for each in self.trials if not each.fits), key=lambda each: each.num, default=None)

    def next_num(self, within: float) -> int | None:
        """Pairs to try next; None where both ends are within ``within * most`` pairs of each other."""
        low = self.largest.num if self.largest else 0
        high = self.smallest_refused.num if self.smallest_refused else self.most + 1
        return (low + high) // 2 if high - low > max(1, int(within * self.most)) else None

    def document(self) -> Document:
        """For fill.json: the largest data set with its shares, its neighbour that does not fit, and every trial."""
        best, over = self.largest, self.smallest_refused
        live = best.live_user_bytes if best else None
        held = best.peak_held_bytes if best else None
        return {
            "capacity_bytes": self.capacity_bytes,
            "partition_bytes": self.partition_bytes,
            "num": best.num if best else None,
            "live_user_bytes": live,
            "data_set_share": live / self.capacity_bytes if live else None,
            "space_amplification_peak": held / live if held and live else None,
            "smallest_refused_num": over.num if over else None,
            "most_num": self.most,
            "steady": best.steady if best else None,
            "standing": best.standing if best else None,
            "trials": [each.document() for each in self.trials],
        }


OnTrial = Callable[[str, Trial], None]


def fill(
    path: Path,
    out: Path,
    command: list[str],
    overrides: tuple[str, ...] = (),
    only: tuple[str, ...] = (),
    within: float = WITHIN,
    watch: Watch | None = None,
    on_trial: OnTrial | None = None,
    *,
    paced: bool = False,
) -> Document:
    """Searches for each arm of the plan at ``path``, leaves ``out``, and returns what is in its fill.json. ``paced``:
    with the plan's own pacing, not in virtual time.

    Raises SpillwayError, and leaves nothing, for a plan that names no single drive and load; for a run that fails by
    anything but a full drive, and after a Ctrl-C, with what was tried until then in ``out``.
    """
    if not 0 < within < 1:
        raise SpillwayError(f"--within is {within:g}; it takes a share above 0 and below 1, such as 0.01.")
    given = {key for each in overrides for key in keys_given(each)}
    if "load.num" in given:
        raise SpillwayError("--set load.num is what is searched for; leave it out.")
    plan = _plan(path, overrides, only)
    if not paced:
        if "drive.pacing" in given and any(arm.settings["drive.pacing"] != "off" for arm in plan.arms):
            raise SpillwayError("--set drive.pacing has no effect here, for trials are in virtual time; add --paced.")
        plan = replace(plan, arms=[_with_setting(arm, "drive.pacing", "off") for arm in plan.arms])
    searches = [_search(plan, arm) for arm in plan.arms]
    if out.exists() and not (out.is_dir() and not any(out.iterdir())):
        raise SpillwayError(f"{out}: there is something already; name another --out or remove it.")
    found: Document = {"plan": plan.name, "command": command, "within": within, "complete": False, "arms": {}}

    def tried(search: Search, num: int) -> None:
        trial = _try(plan, search, num, out, command, watch)
        search.trials.append(trial)
        found["arms"][search.arm] = search.document()
        write_json(out / "fill.json", found)
        if on_trial is not None:
            on_trial(search.arm, trial)

    try:
        with interruptible() as interruption:
            for search in searches:
                while (num := search.next_num(within)) is not None:
                    if interruption.requested:
                        raise Interrupted("ended by Ctrl-C.")
                    tried(search, num)
    except SpillwayError as error:
        if out.is_dir() and any(out.iterdir()):
            error.go_on(f"What was tried until then is in {out}.")
        raise
    found["complete"] = True
    write_json(out / "fill.json", found)
    return found


def _plan(path: Path, overrides: tuple[str, ...], only: tuple[str, ...]) -> Plan:
    """The plan with the smallest load: its own may be too large for the drive."""
    try:
        return load_scaled(path, (*overrides, "load.num=1"), only)
    except WithoutEffect as error:
        if "load.num" not in error.idle:
            raise
        raise SpillwayError(f"{path}: {RECORDS}") from error


def _with_setting(arm: Arm, key: str, value: Any) -> Arm:
    return replace(arm, settings=arm.settings | {key: value})


def _search(plan: Plan, arm: Arm) -> Search:
    where, get = f"{plan.path}: {arm.name}", arm.settings
    capacity = arm.capacity_bytes()
    if plan.swept:
        raise SpillwayError(f"{plan.path}: a sweep has many data sets already; take [sweep] out, or name another plan.")
    if capacity is None:
        raise SpillwayError(
            f'{where}: only an emulated drive of a stated capacity is filled; set drive.kind = "emulated" and a preset.'
        )
    if any(phase["workload"].startswith("ycsb") for phase in arm.phases):
        raise SpillwayError(f"{where}: {RECORDS}")
    if get["kept.from"] or get["kept.to"]:
        raise SpillwayError(f"{where}: a search begins with an empty store each time; leave out kept.from and kept.to.")
    partition = get["fs.size"] or capacity
    packed = 1.0 if arm.engine_options.get("compression") == "kNoCompression" else get["load.compression_ratio"]
    most = int(partition / (get["load.key_bytes"] + get["load.value_bytes"] * packed))
    if most < 1:
        raise SpillwayError(f"{where}: not one pair fits the partition; lower load.value_bytes or raise fs.size.")
    return Search(arm.name, capacity, partition, most)


def _try(whole: Plan, search: Search, num: int, out: Path, command: list[str], watch: Watch | None) -> Trial:
    arm = next(arm for arm in whole.arms if arm.name == search.arm)
    plan = replace(
        whole, arms=[_with_setting(arm, "load.num", num)], preparations=[]
    )  # no arm starts from what is kept
    place = out / slug(search.arm) / str(num)
    finished = execute(plan, place, command, watch)
    if finished.interrupted:
        raise Interrupted("ended by Ctrl-C.")
    if finished.failure and not finished.drive_full:
        raise finished.error(f"{search.arm} with load.num = {num} failed, and not by a full drive: {finished.failure}")
    record = read_run(place).arms[0]
    return Trial(
        num,
        not finished.failure,
        str(place.relative_to(out)),
        finished.failure,
        record.summary.get("live_user_bytes"),
        _most_held(record),
        *standing_throughout(record.summary),
    )


def _most_held(record: ArmRecord) -> float | None:
    """Over all repetitions: where one fills the drive, that is the one of interest."""
    peaks = [peak_held(each.rows, each.summary.get("space_bytes")) for each in record.repetitions or [record]]
    return max((peak.held_bytes for peak in peaks if peak is not None), default=None)
