"""Run directories: everything a run left behind, complete enough to repeat it.

    manifest.json   command, versions, host, seeds, start, whether it is complete
    plan.toml       the resolved plan; `spillway run` takes it as it is
    summary.json    the figures of each arm, with their standing
    report.html     the report
    prepared/NAME/  of each preparation that was run the same as of an arm
    arms/NAME/      samples.csv, stalls.csv, phases.json, events.json, result.json and the preset of each arm (and
                    repetition)

A run directory is written beside its place under a hidden name and renamed when it is whole. Data goes one way: nothing
here is read by what runs, and the report reads nothing else.
"""

import csv
import json
import os
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from spillway.errors import SpillwayError
from spillway.samples import STALL_COLUMNS, Row, are_columns, columns_of, typed

Document = dict[str, Any]


@contextmanager
def staged(out: Path) -> Iterator[Path]:
    """A hidden directory beside ``out`` that becomes ``out`` at the end, or vanishes when the block raises.

    Refuses, before anything is done, a place that is taken or that cannot be written to.
    """
    out = out.absolute()
    if out.exists() and not (out.is_dir() and not any(out.iterdir())):
        raise SpillwayError(f"{out}: there is something already; name another --out or remove it.")
    made = _missing_parents(out)
    stage = out.parent / f".{out.name}.partial-{os.getpid()}"
    try:
        with explained(out):
            out.parent.mkdir(parents=True, exist_ok=True)
            stage.mkdir()
        yield stage
        with explained(out):
            stage.rename(out)
    except BaseException:
        shutil.rmtree(stage, ignore_errors=True)
        for parent in made:
            if parent.is_dir() and not any(parent.iterdir()):
                parent.rmdir()
        raise


def _missing_parents(path: Path) -> list[Path]:
    """The directories above ``path`` that would have to be made, the innermost first."""
    return [parent for parent in path.parents if not parent.exists()]


@contextmanager
def explained(path: Path) -> Iterator[None]:
    """Turns what the operating system says into one sentence about ``path``."""
    mends = {
        "No space left on device": "free some space or name another --out",
        "Permission denied": "name a directory that you may write to with --out",
        "Read-only file system": "name a directory that you may write to with --out",
    }
    try:
        yield
    except OSError as error:
        reason = error.strerror or str(error)
        mend = mends.get(reason, "name another --out")
        raise SpillwayError(f"{path} cannot be written: {reason.lower()}; {mend}.") from error


def write_text(path: Path, text: str) -> None:
    """Writes a file whole or not at all: beside its place, then renamed."""
    partial = path.with_name(f".{path.name}.partial")
    with explained(path):
        try:
            with partial.open("w", encoding="utf-8", newline="") as file:
                file.write(text)
                file.flush()
                os.fsync(file.fileno())
            partial.rename(path)
        finally:
            partial.unlink(missing_ok=True)


def write_json(path: Path, document: object) -> None:
    """A document, readable by people."""
    write_text(path, json.dumps(document, indent=2, ensure_ascii=False) + "\n")


class ArmRecorder:
    """Takes an arm's events as they come and leaves its files. Rows reach the disk as they are recorded."""

    def __init__(self, directory: Path) -> None:
        """Starts the files in ``directory``, which is made."""
        self.directory = directory
        self.rows: list[Row] = []
        self.phases: list[Document] = []
        self.stalls: list[Row] = []
        self.events: list[Document] = []
        self.start: Document | None = None  # the kept state that the run has started from
        with explained(directory):
            directory.mkdir(parents=True)
            self._file = (directory / "samples.csv").open("w", encoding="utf-8", newline="", buffering=1)
        self._writer: csv.DictWriter[str] | None = None  # the first row says which columns there are

    def add_sample(self, row: Row) -> None:
        """Records one interval."""
        self.rows.append(row)
        with explained(self.directory):
            self._begun(row).writerow(row)

    def _begun(self, row: Row) -> "csv.DictWriter[str]":
        if self._writer is None:
            self._writer = csv.DictWriter(self._file, columns_of(row), restval="", extrasaction="ignore")
            self._writer.writeheader()
        return self._writer

    def add_stall(self, event: Document) -> None:
        """Records one stall."""
        self.stalls.append({name: event[name] for name in STALL_COLUMNS})

    def add_event(self, event: Document) -> None:
        """Records something that the engine's policy did."""
        self.events.append({name: value for name, value in event.items() if name != "event"})

    def add_phase(self, event: Document) -> None:
        """Records that a phase ended."""
        self.phases.append({name: value for name, value in event.items() if name != "event"})

    def finish(self, result: Document, preset: Path | None) -> None:
        """Writes what is known at the end."""
        self.close()
        with explained(self.directory):
            with (self.directory / "stalls.csv").open("w", encoding="utf-8", newline="") as file:
                writer = csv.DictWriter(file, STALL_COLUMNS)
                writer.writeheader()
                writer.writerows(self.stalls)
            if preset is not None and preset.is_file():
                shutil.copyfile(preset, self.directory / "preset.toml")
        write_json(self.directory / "phases.json", self.phases)
        write_json(self.directory / "events.json", self.events)
        write_json(self.directory / "result.json", result)

    def close(self) -> None:
        """Lets go of the files, whatever became of the run."""
        if self._file.closed:
            return
        with explained(self.directory):
            self._begun({})
            self._file.close()


@dataclass(frozen=True)
class ArmRecord:
    """What one arm left: rows and stalls typed, times in seconds since its start.

    ``summary`` is of the typical repetition, and empty in the others.
    """

    name: str
    summary: Document
    rows: list[Row]
    stalls: list[Row]
    phases: list[Document]
    result: Document
    events: list[Document] = field(default_factory=list)  # what the engine's policy did
    repetitions: list["ArmRecord"] = field(default_factory=list)  # all of them in turn, where there were several


@dataclass(frozen=True)
class RunRecord:
    """A whole run directory, read back."""

    path: Path
    manifest: Document
    plan_toml: str
    arms: list[ArmRecord]


def read_run(path: Path) -> RunRecord:
    """Reads a run directory; refuses with one sentence what is none."""
    if not path.is_dir():
        raise SpillwayError(f"{path}: there is no such run directory; `spillway run PLAN --out {path}` makes one.")
    manifest, summary = _read_json(path / "manifest.json"), _read_json(path / "summary.json")
    try:
        arms = [_read_repetitions(path, name, figures) for name, figures in summary["arms"].items()]
    except (KeyError, TypeError, AttributeError) as error:
        raise SpillwayError(f"{path / 'summary.json'}: this is no summary of a run ({error} is missing).") from error
    return RunRecord(path, manifest, _read_text(path / "plan.toml"), arms)


def read_figures(path: Path) -> RunRecord:
    """A run directory without the samples: its manifest, its plan and each arm's figures."""
    manifest, summary = _read_json(path / "manifest.json"), _read_json(path / "summary.json")
    try:
        arms = [ArmRecord(name, figures, [], [], [], {}) for name, figures in summary["arms"].items()]
    except (KeyError, TypeError, AttributeError) as error:
        raise SpillwayError(f"{path / 'summary.json'}: this is no summary of a run ({error} is missing).") from error
    return RunRecord(path, manifest, _read_text(path / "plan.toml"), arms)


def _read_repetitions(path: Path, name: str, figures: Document) -> ArmRecord:
    """An arm by its typical repetition, with all of them beside it.

    A run recorded before summaries named the directories of repetitions has none beside it.
    """
    typical = _read_arm(path / figures["directory"], name, figures)
    directories = [each.get("directory") for each in figures.get("repetitions", [])]
    if None in directories:
        return typical
    others = {d: _read_arm(path / d, name, {}) for d in directories if d != figures["directory"]}
    return replace(typical, repetitions=[others.get(d, typical) for d in directories])


def _read_arm(directory: Path, name: str, figures: Document) -> ArmRecord:
    return ArmRecord(
        name,
        figures,
        read_samples(directory),
        _read_csv(directory / "stalls.csv", lambda names: tuple(names) == STALL_COLUMNS),
        _read_json(directory / "phases.json"),
        _read_json(directory / "result.json"),
        _read_json(directory / "events.json"),
    )


def read_samples(directory: Path) -> list[Row]:
    """The samples of a repetition in its directory, typed. Raises SpillwayError."""
    return _read_csv(directory / "samples.csv", are_columns)


def _read_text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not text"
        raise SpillwayError(f"{path}: the run directory is not whole: {why}; run the plan again.") from error


def _read_json(path: Path) -> Any:
    try:
        return json.loads(_read_text(path))
    except ValueError as error:
        raise SpillwayError(f"{path}: this is not JSON ({error}); run the plan again.") from error


def _read_csv(path: Path, fits: Callable[[Sequence[str]], bool]) -> list[Row]:
    lines = _read_text(path).splitlines()
    reader = csv.DictReader(lines)
    if not fits(reader.fieldnames or []):
        raise SpillwayError(f"{path}: its columns are not those of this version; run the plan again.")
    rows = []
    for row in reader:
        try:
            if None in row or None in row.values():
                raise ValueError("it has not one cell for each column")
            rows.append(typed(row))
        except ValueError as error:
            raise SpillwayError(f"{path}: line {reader.line_num} is damaged: {error}; run the plan again.") from error
    return rows
