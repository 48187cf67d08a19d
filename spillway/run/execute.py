"""Runs a plan: every arm in turn, at every point of its sweep, for every repetition, into one run directory."""

import os
import platform
import secrets
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from spillway.drive.watch import Watch as DriveWatch
from spillway.errors import DriveFull, HostFailed, Interrupted, RunFailed, SpillwayError
from spillway.native.interruption import Interruption, interruptible
from spillway.native.process import Answer, Event, build_sha256, executable_sha256, run_native
from spillway.plan import inputs, kept
from spillway.plan.arm import Arm, by_keys_of_a_plan, run_label, slug
from spillway.plan.document import Plan
from spillway.run import failure, host
from spillway.run.engine_log import EngineLog
from spillway.run.failure import Failure
from spillway.run.summary import summarise, typical
from spillway.run.until import UntilSteady
from spillway.rundir import owner
from spillway.rundir.directory import LAYOUT, ArmRecorder, is_refused, seal_refused, write_json, write_text
from spillway.rundir.samples import sample_row
from spillway.rundir.stage import DATA_NOTE, explained, remove_leftover_data, settled, staged
from spillway.version import __version__

Document = dict[str, Any]
Watch = Callable[[str, Event], None]  # the arm's label and what it just said

# A data directory has room when the drive's whole capacity fits and this share is still free: RocksDB's files may for a
# moment outlast their extents on the emulated drive. Source: guess
ROOM_MARGIN = 1.1
SHARED_MEMORY = Path("/dev/shm")
DATABASE = "database"  # in a data directory, beside its owner's mark: an engine begins in an empty one


@dataclass
class Progress:
    """What has been run so far, and how it ended."""

    repetitions: dict[str, list[Document]] = field(default_factory=dict)  # summaries by arm
    versions: Document = field(default_factory=dict)
    prepared: Document = field(default_factory=dict)  # result of each preparation, by the state that it keeps
    failures: list[Failure] = field(default_factory=list)
    tried: int = 0  # runs of arms that were begun
    measured: bool = False  # there is a sample or a result of some arm, or a sample of a preparation that failed
    recorded: bool = False  # there is one of some arm or preparation, which is kept whatever fails later
    refused: SpillwayError | None = None  # why nothing was recorded, where the run was refused
    interrupted: bool = False


@dataclass(frozen=True)
class Finished:
    """A run directory that has been written."""

    directory: Path
    summary: Document
    failure: str
    interrupted: bool
    exit_code: int = 0  # the command's
    drive_full: bool = False  # every run that failed filled its drive
    host_failed: bool = False  # the machine failed one, as where a disk was full

    def error(self, sentence: str) -> SpillwayError:
        """An error with ``sentence`` whose exit code is the run's."""
        kind = RunFailed if self.exit_code == RunFailed.exit_code else SpillwayError
        return kind(sentence)


def execute(
    plan: Plan,
    out: Path,
    command: list[str],
    watch: Watch | None = None,
    place: Path = kept.PLACE,
    *,
    records_refusal: bool = False,
    with_report: bool = True,
) -> Finished:
    """Runs ``plan`` and leaves the run directory ``out``, with its report unless that is not wanted. ``place``: where
    kept states lie unless the plan says.

    A Ctrl-C leaves it marked incomplete; a run that fails under way leaves it with the reason. A failure ends the
    plan, except in a sweep: there the failed run is recorded with its reason and the other points run. A preparation
    that fails ends a sweep too. When the plan is refused before it has recorded anything, or when nothing of a sweep
    could be measured, raises SpillwayError and leaves nothing, or with ``records_refusal`` leaves a run directory that
    has the reason and no run. A run or a preparation that fills its drive leaves a run directory even so. Raises
    SpillwayError too where the figures cannot be written: what was measured is in ``out`` then, without them.
    """
    out, unwritten = settled(out), None
    started = datetime.now(UTC)
    read = inputs.sha256_of([*plan.arms, *plan.preparations])
    with interruptible() as interruption, staged(out, is_refused) as stage:
        progress = Progress()
        try:
            kept.check_there(plan.preparations, plan.arms, place)
            _run_all(plan, stage, progress, interruption, watch, place)
        except Interrupted:
            raise
        except SpillwayError as error:
            if not records_refusal:
                raise
            progress.refused = error
        try:
            summary = _write_documents(stage, plan, plan.to_toml(), command, started, progress, {"inputs_sha256": read})
        except SpillwayError as error:
            if not progress.recorded:
                raise
            unwritten = error
    if unwritten is not None:
        raise type(unwritten)(f"{unwritten} What was measured is in {out}, without its figures.") from unwritten
    if with_report:
        _write_report(out)  # in its place by now: whatever becomes of the report, what was measured is safe
    _seal(out, progress)
    why, full = _failure(plan, progress), failure.only_filled(progress.failures)
    by_host = any(isinstance(each.error, HostFailed) for each in progress.failures)
    return Finished(out, summary, why, progress.interrupted, _exit_code(progress), full, by_host)


def record_refusal(path: Path, out: Path, command: list[str], error: SpillwayError) -> Finished:
    """Writes a run directory for the plan at ``path``, which could not be resolved because of another file (``error``).
    Its plan.toml is the plan as it is written, after a line with its path. Raises SpillwayError where it cannot be
    written."""
    text = f"# As it is written in {str(path.absolute())!r}, whose directory its relative paths begin in.\n"
    text += path.read_text(encoding="utf-8").removeprefix("\ufeff")
    plan = Plan(path, path.stem, "", [], [])
    progress, out = Progress(refused=error), settled(out)
    with staged(out, is_refused) as stage:
        summary = _write_documents(stage, plan, text, command, datetime.now(UTC), progress, {})
    _write_report(out)
    _seal(out, progress)
    return Finished(out, summary, str(error), interrupted=False, exit_code=error.exit_code)


def _run_all(
    plan: Plan, stage: Path, progress: Progress, interruption: Interruption, watch: Watch | None, place: Path
) -> None:
    """Everything that the plan asks for. Raises SpillwayError where nothing is recorded."""
    _Preparer(plan, stage, progress, watch, place).run()
    unprepared = bool(progress.failures)
    for repetition, seed in enumerate(plan.seeds):
        for arm in plan.arms:
            progress.interrupted = progress.interrupted or interruption.requested
            continues = not progress.failures or (plan.swept and not unprepared)
            if progress.interrupted or not continues:
                continue
            label = run_label(arm.name, repetition, len(plan.seeds))
            progress.tried += 1
            with _failure_of(progress, label, failure.where(plan, arm, seed)):
                _run_arm(plan, arm, label, repetition, seed, stage, progress, watch, place)
    if progress.failures and not progress.recorded and not progress.failures[0].filled_its_drive:
        raise progress.failures[0].error


@contextmanager
def _failure_of(progress: Progress, label: str, where: str = "") -> Iterator[None]:
    """What fails within the block is a failure of the run, and no refusal, where something is recorded already."""
    try:
        yield
    except Interrupted:
        raise
    except SpillwayError as error:
        if not progress.recorded:
            raise
        progress.failures.append(Failure(label, where, error))


def _write_documents(
    stage: Path,
    plan: Plan,
    plan_toml: str,
    command: list[str],
    started: datetime,
    progress: Progress,
    more: Document,
) -> Document:
    """Writes what a run directory has beside its arms; returns the summary."""
    if progress.refused is not None:
        assert not progress.recorded
        progress.repetitions.clear()
        progress.prepared.clear()
        for part in ("arms", "prepared"):
            shutil.rmtree(stage / part, ignore_errors=True)
    summary = _summary(plan, progress)
    try:
        write_text(stage / "plan.toml", plan_toml)
        write_json(stage / "summary.json", summary)
        write_json(stage / "manifest.json", _manifest(plan, command, started, progress) | more)
    except SpillwayError as error:
        raise progress.refused or error from error  # where it cannot be written down, it is told all the same
    return summary


def _seal(out: Path, progress: Progress) -> None:
    """A later run takes the place of one that was refused, as long as it is as it was left."""
    if progress.refused is not None:
        seal_refused(out)


def _write_report(rundir: Path) -> None:
    from spillway.report import write_report  # the chart library takes longer to import than a short run takes

    try:
        write_report(rundir, rundir / "report.html")
    except SpillwayError as error:
        rest = f"What was measured is in {rundir}; `spillway report {rundir} --out FILE` makes the report elsewhere."
        raise SpillwayError(f"{error} {rest}") from error


@dataclass(frozen=True)
class _Preparer:
    """Runs the preparations whose states are not there as they would leave them."""

    plan: Plan
    stage: Path
    progress: Progress
    watch: Watch | None
    place: Path

    def run(self) -> None:
        for each in self.plan.preparations:
            if not self.progress.interrupted and not self.progress.failures:
                with _failure_of(self.progress, f"the preparation {each.name}"):
                    self._prepare(each)

    def _prepare(self, each: Arm) -> None:
        seed = self.plan.seeds[0]
        files = inputs.sha256_of([each])
        mark = kept.fingerprint(each, each.request(Path(), seed), self.place, build_sha256(), files)
        state = kept.was_prepared_by(kept.place_of(each, self.place) / each.settings["kept.to"], mark)
        whole = state if state is not None else self._made(each, seed, mark)
        if self.progress.interrupted or self.progress.failures:
            return
        drive = whole.get("drive_state" if state is not None else "drive")
        self.progress.prepared[each.name] = {
            "reused": state is not None,
            **{key: whole.get(key) for key in ("bytes", "runs")},
            "drive": drive,
        }

    def _made(self, each: Arm, seed: int, mark: str) -> Document:
        """What the native side says of the state; empty where it was interrupted or failed."""
        recorder = ArmRecorder(self.stage / "prepared" / each.name)  # a state's name is a directory's
        log = EngineLog(recorder.directory)

        def on_event(event: Event) -> None:
            _record(event, recorder, self.progress)
            if self.watch is not None:
                self.watch(each.name, event)

        try:
            with _data_directory(each, self.stage) as (data, lock), log.kept(data):
                asked = each.request(data, seed) | kept.request(each, self.place, {"preparation": mark})
                result = _run(asked, on_event, held=(lock,))
            recorder.finish({name: value for name, value in result.items() if name != "event"}, each.preset_path())
        except Interrupted:
            self.progress.interrupted = True
            return {}
        except SpillwayError as error:
            self.progress.measured = self.progress.measured or bool(recorder.rows)
            if not isinstance(error, DriveFull) and not recorder.rows:
                raise  # nothing was recorded: it is the plan's to mend
            self.progress.failures.append(Failure(f"the preparation {each.name}", "", log.named(error)))
            recorder.finish({}, each.preset_path())
            return {}
        finally:
            self.progress.recorded = self.progress.recorded or bool(recorder.rows)
            recorder.close()
        self.progress.interrupted = self.progress.interrupted or not result["complete"]
        return result.get("kept") or {}


def _record(event: Event, recorder: ArmRecorder, progress: Progress) -> None:
    match event["event"]:
        case "started":
            progress.versions["spillway-native"] = event["version"]
            recorder.start = event.get("kept")
            recorder.versions = event.get("versions")
        case "sample":
            recorder.add_sample(sample_row(event))
        case "stall":
            recorder.add_stall(event)
        case "engine":
            recorder.add_event(event)
        case "phase":
            recorder.add_phase(event)


def _run_arm(
    plan: Plan,
    arm: Arm,
    label: str,
    repetition: int,
    seed: int,
    stage: Path,
    progress: Progress,
    watch: Watch | None,
    place: Path,
) -> None:
    name = slug(arm.name) if repetition == 0 else f"{slug(arm.name)}-r{repetition + 1}"
    recorder = ArmRecorder(stage / "arms" / name)
    log, under = EngineLog(recorder.directory), _drive_watch(arm)

    def on_event(event: Event) -> None:
        _record(event, recorder, progress)
        if event["event"] == "phase" and under is not None:
            under.end_phase()
        if watch is not None:
            watch(label, event)

    def work() -> Document:
        with _data_directory(arm, stage) as (data, lock), log.kept(data):
            request = arm.request(data, seed) | kept.request(arm, place, {"plan": plan.name, "run": label})
            if under is not None:
                request["target"]["counters"] = under.counters
                under.begin()
            until = UntilSteady(arm, recorder.rows)
            return _run(request, on_event, until.answer if until.is_requested else None, held=(lock,))

    try:
        result, why = _result(work, recorder, progress, plan.swept)
        progress.measured = progress.measured or bool(recorder.rows) or bool(result)
        progress.recorded = progress.recorded or progress.measured
        if under is not None:
            under.end()
            result |= {"drive": under.document(result.get("host_bytes_written"), result.get("process_bytes_written"))}
        why = _finish(recorder, result, arm) or (log.named(why) if why is not None else None)
    finally:
        recorder.close()
    result |= {"start": recorder.start, "versions": result.get("versions") or recorder.versions}
    progress.versions |= result["versions"] or {}
    if why is not None:
        progress.failures.append(Failure(label, failure.where(plan, arm, seed), why))
    figures = summarise(arm, seed, result, recorder.rows, recorder.phases, str(why or ""), recorder.stalls)
    figures |= {"directory": f"arms/{name}", **arm.on_its_sweep()}
    progress.repetitions.setdefault(arm.name, []).append(figures)


def _finish(recorder: ArmRecorder, result: Document, arm: Arm) -> SpillwayError | None:
    """Why the files of a run could not be written to their end; its figures are known even so."""
    try:
        recorder.finish(result, arm.preset_path())
    except SpillwayError as error:
        return error
    return None


def _drive_watch(arm: Arm) -> DriveWatch | None:
    """Who follows the drives under a plain directory; None for an emulated drive, which counts by itself."""
    if arm.settings["drive.kind"] != "directory":
        return None
    measured = [bool(phase["measured"]) for phase in arm.phases]
    return DriveWatch(Path(arm.settings["drive.path"]), measured, smart=arm.settings["drive.smart"] == "auto")


def _result(
    work: Callable[[], Document], recorder: ArmRecorder, progress: Progress, swept: bool
) -> tuple[Document, SpillwayError | None]:
    """The native result, or an empty one with the reason where there is something worth keeping.

    A sweep goes on after a run that failed, so that one is kept; what is refused before anything was measured is the
    plan's to mend.
    """
    try:
        result = work()
    except Interrupted:
        progress.interrupted = True
        return {}, None
    except SpillwayError as error:
        continues = swept and (progress.measured or isinstance(error, RunFailed))
        is_kept = bool(recorder.rows or progress.repetitions or progress.recorded)
        if not continues and not is_kept and not isinstance(error, DriveFull):
            raise
        return {}, error
    if not result["complete"]:
        progress.interrupted = True
    return {name: value for name, value in result.items() if name != "event"}, None


def _run(
    request: Document,
    on_event: Callable[[Event], None],
    answer: Answer | None = None,
    held: tuple[int, ...] = (),
) -> Document:
    try:
        return run_native("run", request, on_event, answer, held)
    except SpillwayError as error:
        raise type(error)(by_keys_of_a_plan(str(error), request["target"]["kind"])) from error


@contextmanager
def _data_directory(arm: Arm, stage: Path) -> Iterator[tuple[Path, int]]:
    """A directory for the engine's files that is gone afterwards, and a handle that holds the lock on what it lies in.

    In shared memory where the whole drive fits: the emulated drive shall be the only slow thing.
    """
    parent, key = _data_parent(arm, stage)
    remove_leftover_data(parent)
    directory = parent / f"spillway-{secrets.token_hex(6)}"
    # Written before there is anything: whoever finds the stage of a run that was killed finds the engine's files too.
    note = stage / DATA_NOTE
    write_text(note, f"{directory.absolute()}\n")
    lock = None
    try:
        with explained(parent, key):
            directory.mkdir(mode=0o700)
            lock = owner.claim(directory)
            (directory / DATABASE).mkdir()
        yield directory / DATABASE, lock
    finally:
        owner.remove(directory)
        note.unlink(missing_ok=True)
        if lock is not None:
            os.close(lock)


def _data_parent(arm: Arm, stage: Path) -> tuple[Path, str]:
    """Where the data directory is made, and the key that names another place."""
    if arm.settings["drive.kind"] == "directory":
        return Path(arm.settings["drive.path"]), "drive.path"
    if arm.settings["data_directory"]:
        return Path(arm.settings["data_directory"]), "data_directory"
    capacity = arm.capacity_bytes()
    if capacity is not None and min(_free_bytes(SHARED_MEMORY), host.memory("MemAvailable")) > capacity * ROOM_MARGIN:
        return SHARED_MEMORY, "data_directory"
    return stage, "--out"


def _free_bytes(path: Path) -> int:
    return shutil.disk_usage(path).free if path.is_dir() and os.access(path, os.W_OK) else 0


def _failure(plan: Plan, progress: Progress) -> str:
    """Why the run is not what was asked for, in one sentence; empty where nothing failed."""
    if progress.refused is not None:
        return str(progress.refused)
    return failure.in_words(plan, progress.failures, progress.tried, begun=bool(progress.repetitions))


def _exit_code(progress: Progress) -> int:
    """Of the command: 2 where every run that failed did by what was asked of it."""
    if progress.refused is not None:
        return progress.refused.exit_code
    if progress.failures:
        return failure.exit_code(progress.failures)
    return Interrupted.exit_code if progress.interrupted else 0


def _complete(plan: Plan, progress: Progress) -> bool:
    done = all(len(progress.repetitions.get(arm.name, [])) == len(plan.seeds) for arm in plan.arms)
    return done and not progress.failures and not progress.interrupted and progress.refused is None


def _summary(plan: Plan, progress: Progress) -> Document:
    arms = {name: typical(repetitions) for name, repetitions in progress.repetitions.items()}
    why = _failure(plan, progress) or None
    whole = {"plan": plan.name, "complete": _complete(plan, progress), "failure": why, "arms": arms}
    return whole | ({"prepared": progress.prepared} if plan.preparations else {})


def _manifest(plan: Plan, command: list[str], started: datetime, progress: Progress) -> Document:
    return {
        **LAYOUT,
        "plan": plan.name,
        "plan_file": plan.path.name,
        "command": command,
        "complete": _complete(plan, progress),
        "failure": _failure(plan, progress) or None,
        "failures": [each.document() for each in progress.failures],
        "refused": progress.refused is not None,
        "interrupted": progress.interrupted,
        "started": started.isoformat(timespec="seconds"),
        "ended": datetime.now(UTC).isoformat(timespec="seconds"),
        "seeds": plan.seeds,
        "versions": {"spillway": __version__, "python": platform.python_version(), **progress.versions}
        | {"executable_sha256": executable_sha256(), "build_sha256": build_sha256()},
        "host": host.facts(),
    }
