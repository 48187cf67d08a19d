"""Searches a plan's arms for the highest write rate that each keeps, each try a run of its own.

    sustain.json            limits and bounds of the search, each try with its verdict, what was found for each arm
    tries/RATE-ARM/         the run directory of a try

A try is the plan with one arm and the rate in each measured phase that writes; everything else, the load among it, is
the plan's. A phase of it that goes on ``until = "steady"`` is judged by its steady part. Where it came to its limit
before that, the try is *undecided*: the rate does not count as kept, but the search goes on above it where every other
test passes, since a lower rate only takes longer to become steady.

A try that is there, complete and of the same plan, presets, kept state, package and spillway-native is not run again:
its verdict is drawn anew from what it recorded, so that other limits and other bounds cost only the tries that are new.
A try of another plan stays until the new one is whole.
"""

import json
import math
import shutil
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from spillway.errors import Interrupted, SpillwayError
from spillway.figures.parts import split
from spillway.native.interruption import interruptible
from spillway.native.process import build_sha256
from spillway.plan import kept, ycsb
from spillway.plan.arm import Arm, slug
from spillway.plan.document import Plan
from spillway.plan.keys import WAITS
from spillway.run.execute import Finished, Watch, execute
from spillway.run.summary import standing_throughout
from spillway.run.until import host_bytes_of, verdict_on
from spillway.rundir.directory import ArmRecord, read_figures, read_run, write_json
from spillway.rundir.stage import explained, locked
from spillway.steady.series import LEAST_SAMPLES
from spillway.suite.state import state_of
from spillway.sustain.search import Found, search
from spillway.sustain.verdict import Judged, Limits, judge_phase, worst_of
from spillway.version import __version__

Document = dict[str, Any]

TRIES = "tries"
WORTHLESS = ("not run", "damaged", "ended early", "failed")  # states of a run that need not wait for another
READS = ("readrandom", "seekrandom")
ENDS_WITH_ITS_KEYS = ("fillseq", "filluniquerandom", ycsb.LOAD)
YCSB_WRITES = ("updateproportion", "insertproportion", "readmodifywriteproportion")


@dataclass(frozen=True)
class Try:
    """One run at one rate, and its verdict."""

    rate: float  # operations a second
    judged: Judged | None  # None: the run failed
    reasons: tuple[str, ...]  # why the rate was not kept
    directory: str  # of the run, below the search's
    reused: bool  # an earlier run with the same plan was taken
    steady: bool = False
    standing: str = ""
    undecided: str = ""  # why the result does not count: the phase was to end when steady, and never became so

    @property
    def kept(self) -> bool:
        """Whether the rate was kept."""
        return not self.reasons and not self.undecided

    @property
    def why(self) -> str:
        """Why it was not, in one clause."""
        return "; ".join(self.reasons) or self.undecided

    def document(self) -> Document:
        """For sustain.json."""
        figures = asdict(self.judged) if self.judged is not None else {}
        figures.pop("reasons", None)
        own = {"rate_ops_s": self.rate, "kept": self.kept, "why": self.why or None}
        own["not_told"] = not self.reasons and bool(self.undecided)
        return own | figures | {"steady": self.steady, "standing": self.standing, "directory": self.directory}


@dataclass
class ArmResult:
    """The tries of an arm in their order and, at the end, the highest kept and the lowest not kept one."""

    name: str
    tries: list[Try] = field(default_factory=list)
    kept: Try | None = None
    not_kept: Try | None = None
    undecided: Try | None = None  # the undecided try at the highest rate above ``kept``
    ended: bool = False

    def end(self, edge: "Found[_Step]") -> None:
        """Takes the result of the search."""
        self.not_kept = None if edge.not_kept is None else edge.not_kept.attempt
        self.kept = max((one for one in self.tries if one.kept), key=lambda one: one.rate, default=None)
        if edge.kept is not None and not edge.kept.attempt.kept:
            self.undecided = edge.kept.attempt
        self.ended = True

    def document(self) -> Document:
        """For sustain.json."""
        kept, not_kept, undecided = self.kept, self.not_kept, self.undecided
        return {
            "ended": self.ended,
            "kept_ops_s": kept and kept.rate,
            "not_kept_ops_s": not_kept and not_kept.rate,
            "why_not": not_kept and not_kept.why,
            "not_told_ops_s": undecided and undecided.rate,
            "why_not_told": undecided and undecided.why,
            "tries": [each.document() for each in self.tries],
        }


@dataclass(frozen=True)
class _Step:
    """A try as the search sees it."""

    attempt: Try

    @property
    def rate(self) -> float:
        return self.attempt.rate

    @property
    def kept(self) -> bool:
        """Whether to go on above its rate."""
        return not self.attempt.reasons


@dataclass(frozen=True)
class SearchSettings:
    """What a search varies and how it judges. Rates in operations a second; ``within`` is a share."""

    plan: Plan
    limits: Limits
    lowest: float
    highest: float
    within: float


def sustain(
    settings: SearchSettings,
    out: Path,
    command: list[str],
    watch: Watch | None = None,
    on_try: Callable[[str, Try], None] | None = None,
) -> list[ArmResult]:
    """Searches every arm of the plan; writes to the directory ``out``. ``on_try``: called with each try.

    Raises SpillwayError where the plan has nothing to search, a run is refused, or one fails by anything but a full
    drive; Interrupted after a Ctrl-C. What was tried until then is in ``out``.
    """
    keys = {arm.name: _checked(arm, str(settings.plan.path)) for arm in settings.plan.arms}
    found = [ArmResult(arm.name) for arm in settings.plan.arms]
    fresh = not out.exists()

    def note() -> None:
        write_json(out / "sustain.json", document(settings, command, found))

    with locked(out, "search"), interruptible() as interruption:
        _check_same(out, settings.plan)
        try:
            for arm, of in zip(settings.plan.arms, found, strict=True):
                searcher = _Searcher(settings, arm, keys[arm.name], out, command, watch)

                def try_rate(rate: float, searcher: _Searcher = searcher, of: ArmResult = of) -> _Step:
                    if interruption.requested:
                        raise Interrupted("ended by Ctrl-C.")
                    one = searcher.try_rate(rate)
                    of.tries.append(one)
                    note()
                    if on_try is not None:
                        on_try(of.name, one)
                    return _Step(one)

                of.end(search(try_rate, settings.lowest, settings.highest, settings.within))
                note()
        except SpillwayError as error:
            if any((out / TRIES).glob("*")):
                first = "The" if isinstance(error, Interrupted) else "Once that is mended, the"
                error.go_on(f"{first} same command goes on with what is in {out}.")
            elif fresh:
                shutil.rmtree(out, ignore_errors=True)  # the first try was refused
            raise
    return found


def document(settings: SearchSettings, command: list[str], found: Sequence[ArmResult]) -> Document:
    """What was searched for and what is known of it, as it stands in sustain.json."""
    return {
        "spillway_sustain": 1,  # the version of this layout
        "plan": settings.plan.name,
        "plan_file": settings.plan.path.name,
        "command": command,
        "versions": {"spillway": __version__, "build_sha256": build_sha256()},
        "limits": asdict(settings.limits),
        "from_ops_s": settings.lowest,
        "to_ops_s": settings.highest,
        "within": settings.within,
        "arms": {of.name: of.document() for of in found},
    }


@dataclass(frozen=True)
class _Searcher:
    """Tries rates on one arm."""

    settings: SearchSettings
    arm: Arm
    keys: dict[str, str]  # of each phase that is given the rate, the key that takes it
    out: Path
    command: list[str]
    watch: Watch | None

    def try_rate(self, rate: float) -> Try:
        plan = self._at(rate)
        name = f"{TRIES}/{rate_name(rate)}-{slug(self.arm.name)}"
        place = self.out / name
        state = state_of(place, plan)
        reused = state == "done" and self._starts_alike(place, plan)
        if not reused:
            self._run(plan, rate, place, place if state in WORTHLESS else place.with_name(f".{place.name}.next"))
        return self._judged(plan.arms[0], rate, name, reused)

    def _starts_alike(self, place: Path, plan: Plan) -> bool:
        """Whether the kept state that the plan starts from is still the one that the run in ``place`` started from. One
        that the plan prepares is, by what makes it; one that is gone cannot be another."""
        name = self.arm.settings["kept.from"]
        state = kept.read_state(kept.place_of(self.arm, kept.PLACE) / name) if name and not plan.preparations else None
        start = (read_figures(place).arms[0].summary.get("kept") or {}).get("from")
        if state is None or start is None:
            return True
        there = (state.get("runs"), state.get("bytes"), state.get("drive_state"))
        return there == (start.get("runs"), start.get("bytes"), start.get("drive"))

    def _at(self, rate: float) -> Plan:
        phases = [
            phase | ({self.keys[phase["name"]]: rate} if phase["name"] in self.keys else {})
            for phase in self.arm.phases
        ]
        needed = self.arm.settings["kept.from"]
        preparations = self.settings.plan.preparations
        own = [each for each in preparations if each.settings["kept.to"] in _states_leading_to(needed, preparations)]
        return replace(self.settings.plan, arms=[replace(self.arm, phases=phases)], preparations=own)

    def _run(self, plan: Plan, rate: float, place: Path, fresh: Path) -> None:
        """Runs into ``fresh``, which takes the place of what is in ``place`` when it is a try."""

        def watch(label: str, event: Document) -> None:
            if self.watch is not None:
                self.watch(f"{label}, {rate:,.6g}/s", event)

        _remove(fresh)
        finished = execute(plan, fresh, self.command, watch)
        failure = self._no_try(finished, rate)
        if failure is not None:
            if fresh != place:
                _remove(fresh)
            raise failure
        if fresh != place:
            _remove(place)
            with explained(place):
                fresh.rename(place)

    def _no_try(self, finished: Finished, rate: float) -> SpillwayError | None:
        """Why a run says nothing of its rate."""
        if finished.interrupted:
            return Interrupted("ended by Ctrl-C.")
        if not finished.summary["arms"]:
            return finished.error(finished.failure)
        if finished.failure and not finished.drive_full:
            return finished.error(
                f"{self.arm.name} at {rate:,.6g} operations/s failed, and not by a full drive: {finished.failure}"
            )
        return None

    def _judged(self, arm: Arm, rate: float, name: str, reused: bool) -> Try:
        run = read_run(self.out / name)
        record, failure = run.arms[0], run.manifest.get("failure")
        steady, words = standing_throughout(record.summary)
        if failure:
            return Try(rate, None, (f"the run failed: {failure.rstrip('.')}",), name, reused, steady, words)
        phases = [each for of in record.repetitions or [record] for each in self._phases(arm, of)]
        judged = worst_of([each for each, _ in phases])
        undecided = next((why for _, why in phases if why), "")
        return Try(rate, judged, judged.reasons, name, reused, steady, words, undecided)

    def _phases(self, arm: Arm, record: ArmRecord) -> list[tuple[Judged, str]]:
        """Of each phase that was given the rate: its figures, and why they decide nothing (empty where they do)."""
        ended = {phase["name"]: phase for phase in record.phases}
        verdict = verdict_on(arm, record.rows, record.phases, host_bytes_of(record.rows))
        _, steady = split(record.rows, verdict.since_s) if verdict.since_s is not None else ([], [])
        found = []
        for phase in arm.phases:
            name = phase["name"]
            if name not in self.keys:
                continue
            waits = phase["until"] == "steady"
            own = [row for row in steady if row["phase"] == name]
            why = ""
            if waits and not verdict.steady:
                why = verdict.reason
            elif waits and not own:
                why = f"the run was steady only after the phase {name}"
            part = own if waits and not why else None
            rows = [row for row in record.rows if row["phase"] == name]
            found.append((judge_phase(phase, ended[name], rows, self.settings.limits, self.keys[name], part), why))
        return found


def _check_same(out: Path, plan: Plan) -> None:
    """Raises SpillwayError where the directory holds the search of another plan."""
    try:
        there = json.loads((out / "sustain.json").read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return
    name = there.get("plan") if isinstance(there, dict) else None
    if isinstance(name, str) and name != plan.name:
        raise SpillwayError(f"{out}: this is the search of the plan {name!r}; name another --out.")


def _remove(directory: Path) -> None:
    if directory.exists():
        with explained(directory):
            shutil.rmtree(directory)


def _states_leading_to(state: str, preparations: Sequence[Arm]) -> set[str]:
    """The state and those that it is made from, one after another."""
    line: set[str] = set()
    starts = {each.settings["kept.to"]: each.settings["kept.from"] for each in preparations}
    while state and state not in line:
        line.add(state)
        state = starts.get(state, "")
    return line


def rate_name(rate: float) -> str:
    """A rate in the name of a directory: without exponent or needless zeros."""
    return f"{rate:.6f}".rstrip("0").rstrip(".")


def _checked(arm: Arm, where: str) -> dict[str, str]:
    """The phases of ``arm`` that are given the rate, each with the key that takes it. Raises SpillwayError."""
    label = f"{where}: {arm.name}: "
    measured = [phase for phase in arm.phases if phase["measured"]]
    writing = [phase for phase in measured if _writes(phase)]
    if not writing:
        only = f"; {measured[0]['workload']} does not write" if measured else ""
        raise SpillwayError(f"{label}no measured phase writes at a rate{only}: measure an overwrite, say.")
    for phase in writing:
        _check_phase(arm, phase, f"{label}the phase {phase['name']}")
    if arm.settings["drive.kind"] == "emulated" and arm.settings["drive.pacing"] == "off":
        raise SpillwayError(f'{label}drive.pacing is "off", and a rate is kept in real time only: leave it out.')
    if arm.settings["kept.to"]:
        raise SpillwayError(f"{label}kept.to: each try starts where the plan does; leave it out and use [[prepare]].")
    return {
        phase["name"]: "write_rate_ops_s" if phase["workload"] == "readwhilewriting" else "rate_ops_s"
        for phase in writing
    }


def _writes(phase: Document) -> bool:
    if phase["workload"] == ycsb.RUN:
        return any(phase["ycsb"][key] > 0 for key in YCSB_WRITES)
    if phase["workload"] == "readrandomwriterandom":
        return bool(phase["read_write_percent"] != 100)
    return phase["workload"] not in (*READS, *WAITS)


def _check_phase(arm: Arm, phase: Document, label: str) -> None:
    if phase["workload"] in ENDS_WITH_ITS_KEYS:
        raise SpillwayError(
            f"{label}: {phase['workload']} ends with its keys, the sooner the higher the rate: measure fillrandom, "
            "overwrite or ycsb-run."
        )
    if phase["rate_of"] is not None:
        raise SpillwayError(f"{label}: rate_of is a rate of its own, and the search sets one: leave it out.")
    if phase["arrivals"] == "trace":
        raise SpillwayError(f'{label}: arrivals = "trace" has its own times; use constant, poisson or bursts.')
    if phase["duration_s"] is None and phase["until"] == "steady":
        raise SpillwayError(
            f'{label} has no duration_s, at which a try ends that until = "steady" does not end: give it in the place '
            "of operations."
        )
    if phase["duration_s"] is None:
        raise SpillwayError(
            f"{label} has no duration_s, and every rate is tried for the same time: give it in the place of operations."
        )
    count = phase["duration_s"] * 1000 / arm.settings["sample_interval_ms"]
    if count < LEAST_SAMPLES + 1:
        raise SpillwayError(
            f"{label} has {math.floor(count)} samples, and it takes {LEAST_SAMPLES + 1} to see a backlog grow: raise "
            "duration_s or lower sample_interval_ms."
        )
