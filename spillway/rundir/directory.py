"""Run directories: what a run has recorded, complete enough to repeat it.

    manifest.json   command, versions, host, seeds, start, whether it is complete
    plan.toml       the resolved plan; `spillway run` takes it as it is
    summary.json    the figures of each arm, with their standing
    report.html     the report
    prepared/NAME/  of each preparation that was run the same as of an arm
    arms/NAME/      samples.csv, stalls.csv, phases.json, events.json, result.json and the preset of each arm (and
                    repetition); of one that failed in the engine, the end of the engine's log as engine.log

A run directory is written under a hidden name and renamed when it is whole (``spillway/rundir/stage.py``). Data goes
one way: a run reads none of it, and the report reads nothing else.
"""

import csv
import hashlib
import json
import os
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from spillway.errors import SpillwayError
from spillway.rundir.samples import STALL_COLUMNS, Row, are_columns, columns_of, typed
from spillway.rundir.stage import explained

Document = dict[str, Any]


LAYOUT = {"spillway_run": 1}  # in a manifest: the version of the layout that it and its files have


MOST_DIGITS = 300  # of a whole number; floats end at 1e308


def write_text(path: Path, text: str) -> None:
    """Writes a file whole or not at all: under a temporary name in the same directory, then renamed. Raises
    SpillwayError where it cannot be written."""
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
    """Writes a document as indented JSON, whole or not at all. Raises SpillwayError where it cannot be written."""
    write_text(path, json.dumps(document, indent=2, ensure_ascii=False) + "\n")


class ArmRecorder:
    """Writes the files of one repetition from its events. Rows are flushed to the file as they are recorded."""

    def __init__(self, directory: Path) -> None:
        """Starts the files in ``directory``, which is made."""
        self.directory = directory
        self.rows: list[Row] = []
        self.phases: list[Document] = []
        self.stalls: list[Row] = []
        self.events: list[Document] = []
        self.start: Document | None = None  # the kept state that the run has started from
        self.versions: Document | None = None  # of the engine's libraries, as the run said when it began
        with explained(directory):
            directory.mkdir(parents=True)
            self._file = (directory / "samples.csv").open("w", encoding="utf-8", newline="", buffering=1)
        self._writer: csv.DictWriter[str] | None = None  # the first row says which columns there are

    def add_sample(self, row: Row) -> None:
        """Appends one sample to samples.csv. Raises SpillwayError where it cannot be written."""
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
        """Writes the other files of the arm and a copy of ``preset``. Raises SpillwayError where it cannot."""
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
        """Closes the files. Raises SpillwayError where buffered rows cannot be written."""
        if self._file.closed:
            return
        with explained(self.directory):
            self._begun({})
            self._file.close()


END_ROUNDING = 1e-6  # s, and a share: sums of nanoseconds as decimals. Source: guess
OF_REFUSED = ("manifest.json", "plan.toml", "summary.json", "report.html")  # all that such a directory has
SEAL = "sha256"  # in its manifest: of each of these files, of the manifest itself without this key


def seal_refused(path: Path) -> None:
    """Adds SHA-256 digests of its files to the manifest of a refused run's directory, so that ``is_refused`` sees later
    changes. Raises SpillwayError where it cannot be written."""
    manifest = {key: value for key, value in _read_json(path / "manifest.json").items() if key != SEAL}
    others = [name for name in OF_REFUSED if name != "manifest.json" and (path / name).is_file()]
    try:
        digests = {name: _digest((path / name).read_bytes()) for name in others}
    except OSError as error:
        raise SpillwayError(f"{path} cannot be read: {error.strerror}; run the plan again.") from error
    write_json(path / "manifest.json", manifest | {SEAL: digests | {"manifest.json": _digest_of(manifest)}})


def is_refused(path: Path) -> bool:
    """Whether ``path`` is the directory of a run that was refused before it measured anything, with every file as
    ``seal_refused`` found it and none added."""
    try:
        files = {each.name: each for each in path.iterdir()}
        if not files.keys() <= set(OF_REFUSED) or not all(_is_plain(each) for each in files.values()):
            return False
        manifest = json.loads(files.pop("manifest.json").read_text(encoding="utf-8"))
        if not isinstance(manifest, dict) or manifest.get("refused") is not True:
            return False
        seal = manifest.pop(SEAL, None)
        digests = {name: _digest(each.read_bytes()) for name, each in files.items()}
        return bool(seal == digests | {"manifest.json": _digest_of(manifest)})
    except (OSError, ValueError, RecursionError, KeyError):
        return False


def _is_plain(path: Path) -> bool:
    return path.is_file() and not path.is_symlink()


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _digest_of(document: Document) -> str:
    return _digest(json.dumps(document, sort_keys=True).encode())


def why_refused(run: "RunRecord") -> str:
    """Why a run was refused before it measured anything, as a clause; empty for any other run."""
    return str(run.manifest.get("failure")).rstrip(".") if run.manifest.get("refused") is True else ""


def check_not_refused(run: "RunRecord") -> None:
    """Raises SpillwayError with the reason where the run was refused before it measured anything."""
    if why := why_refused(run):
        raise SpillwayError(
            f"{run.path}: the run was refused before it measured anything ({why}): mend that and run the plan again."
        )


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
    """Reads a run directory with all samples. Raises SpillwayError where ``path`` is none, or a file of it is missing
    or damaged."""
    _check_there(path)
    manifest, summary = _read_json(path / "manifest.json"), _read_json(path / "summary.json")
    found = _arms_of(path, manifest, summary)
    arms = [_read_repetitions(path, name, figures, bool(manifest.get("failure"))) for name, figures in found.items()]
    return RunRecord(path, manifest, _read_text(path / "plan.toml"), arms)


def read_figures(path: Path) -> RunRecord:
    """Reads a run directory without its samples: manifest, plan, and each arm's summary. Raises SpillwayError as
    ``read_run`` does."""
    _check_there(path)
    manifest, summary = _read_json(path / "manifest.json"), _read_json(path / "summary.json")
    found = _arms_of(path, manifest, summary)
    arms = [ArmRecord(name, figures, [], [], [], {}) for name, figures in found.items()]
    return RunRecord(path, manifest, _read_text(path / "plan.toml"), arms)


def is_directory(path: Path) -> bool:
    """Whether there is a directory; False also of a name that none could have, as one that is too long."""
    try:
        return path.is_dir()
    except OSError:
        return False


def _check_there(path: Path) -> None:
    if not is_directory(path):
        raise SpillwayError(f"{path}: there is no such run directory; `spillway run PLAN --out {path}` makes one.")


def _arms_of(path: Path, manifest: Any, summary: Any) -> dict[str, Document]:
    """Each arm's figures, where both documents have the form that is relied on. Raises SpillwayError."""
    if not isinstance(manifest, dict) or not isinstance(manifest.get("versions") or {}, dict):
        raise SpillwayError(f"{path / 'manifest.json'}: this is no manifest of a run; run the plan again.")
    for key, known in LAYOUT.items():
        layout = manifest.get(key, known)
        if not isinstance(layout, int) or layout > known:
            raise SpillwayError(
                f"{path / 'manifest.json'}: {key} is {layout!r}, and this version of spillway reads up to {known}: "
                "read the run with the version that made it, or a later one."
            )
    arms = summary.get("arms") if isinstance(summary, dict) else None
    if not isinstance(arms, dict):
        raise SpillwayError(
            f"{path / 'summary.json'}: this is no summary of a run, it has no arms; run the plan again."
        )
    for name, figures in arms.items():
        missing = _lack(figures)
        if missing:
            raise SpillwayError(f"{path / 'summary.json'}: arm {name!r} is damaged ({missing}); run the plan again.")
    return arms


def _lack(figures: Any) -> str:
    """What an arm's figures lack of what every reader relies on; empty where they are whole."""
    if not isinstance(figures, dict):
        return "it is no table"
    for key, kind in _FIGURES.items():
        if not isinstance(figures.get(key), kind):
            return f"{key} is missing"
    absent = next((key for key in _PRESENT if key not in figures), None) or next(
        (f"standing.{key}" for key in ("complete", "failure", "words") if key not in figures["standing"]), None
    )
    if absent is not None:
        return f"{absent} is missing"
    if not isinstance(figures.get("point") or {}, dict):
        return "its point is no table"
    nand = figures.get("nand_bytes_programmed")
    if isinstance(nand, dict) and not all(isinstance(each, int | float) for each in nand.values()):
        return "a figure of nand_bytes_programmed is no number"
    several = figures.get("repetitions", [])
    if not isinstance(several, list) or not all(isinstance(each, dict) for each in several):
        return "its repetitions are no tables"
    if not all(isinstance(each.get("directory", ""), str) for each in several):
        return "a repetition's directory is no text"
    return ""


# Of each arm of a summary, whatever version has written it.
_FIGURES = {"directory": str, "standing": dict, "stalls": dict, "latency_us": dict}
_PRESENT = ("throughput_ops_s", "user_mb_s", "duration_s", "steady", "wa_app", "wa_device", "wa_total")


def _read_repetitions(path: Path, name: str, figures: Document, is_failed: bool) -> ArmRecord:
    """An arm by its typical repetition, with all of them beside it.

    A run recorded before summaries named the directories of repetitions has none beside it.
    """
    typical = _read_arm(path / figures["directory"], name, figures, is_failed)
    for directory in [] if is_failed else whole_directories(figures):
        check_not_cut_off(path / directory)
    directories = [each.get("directory") for each in figures.get("repetitions", [])]
    if None in directories:
        return typical
    others = {d: _read_arm(path / d, name, {}, is_failed) for d in directories if d != figures["directory"]}
    return replace(typical, repetitions=[others.get(d, typical) for d in directories])


def _read_arm(directory: Path, name: str, figures: Document, is_failed: bool) -> ArmRecord:
    """``is_failed``: the run may have had no room for what is written at the end of an arm."""

    def is_read(file: str) -> bool:
        return not is_failed or (directory / file).exists()

    return ArmRecord(
        name,
        figures,
        read_samples(directory),
        _read_csv(directory / "stalls.csv", lambda names: tuple(names) == STALL_COLUMNS)
        if is_read("stalls.csv")
        else [],
        _read_tables(directory / "phases.json") if is_read("phases.json") else [],
        _read_table(directory / "result.json") if is_read("result.json") else {},
        _read_tables(directory / "events.json") if is_read("events.json") else [],
    )


def read_samples(directory: Path) -> list[Row]:
    """The samples in a repetition's directory, with numbers as numbers. Raises SpillwayError where samples.csv is
    missing or damaged."""
    return _read_csv(directory / "samples.csv", are_columns)


def read_phases(directory: Path) -> list[Document]:
    """The phases in a repetition's directory. Raises SpillwayError where phases.json is missing or damaged."""
    path = directory / "phases.json"
    phases = _read_json(path)
    timed = isinstance(phases, list) and all(
        isinstance(each, dict) and all(isinstance(each.get(key), int | float) for key in ("t_s", "duration_s"))
        for each in phases
    )
    if not timed:
        raise SpillwayError(f"{path}: this is no list of phases; run the plan again.")
    return list(phases)


def whole_directories(figures: Document) -> list[str]:
    """The directories of those of an arm's repetitions that ran to their end, relative to the run directory;
    ``figures``: the arm's object in summary.json."""
    several = [(each["directory"], each) for each in figures.get("repetitions", []) if each.get("directory")]
    ended = several or [(figures["directory"], figures["standing"])]
    return [directory for directory, end in ended if end.get("complete") and not end.get("failure")]


def check_not_cut_off(directory: Path) -> None:
    """Raises SpillwayError where samples.csv ends before its last phase does; each phase ends with a sample. REQUIRES:
    the run was not killed."""
    path = directory / "samples.csv"
    try:
        with path.open("rb") as file:
            header = file.readline()
            file.seek(0, os.SEEK_END)
            file.seek(max(0, file.tell() - 2 * len(header) - 4096))
            tail = file.read().decode("utf-8", errors="replace")
    except OSError as error:
        why = (error.strerror or str(error)).lower()
        raise SpillwayError(f"{path}: the run directory is not whole: {why}; run the plan again.") from error
    names = _cells(header.decode("utf-8", errors="replace"))
    last = _cells(tail.splitlines()[-1]) if tail else []
    row = dict(zip(names, last, strict=False))
    if len(last) != len(names) or not tail.endswith("\n") or not _is_number(row.get("t_s")):
        raise SpillwayError(f"{path}: the file was cut off in its last line; run the plan again.")
    seconds = float(row["t_s"])
    end = max((float(each["t_s"]) + float(each["duration_s"]) for each in read_phases(directory)), default=seconds)
    if seconds < end - END_ROUNDING * max(1.0, end):
        raise SpillwayError(f"{path}: the file was cut off at {seconds:.1f} s of {end:.1f} s; run the plan again.")


def _cells(line: str) -> list[str]:
    """Of a line of CSV; none of one that cannot be parsed."""
    try:
        return next(csv.reader([line]), [])
    except csv.Error:
        return []


def _is_number(text: str | None) -> bool:
    try:
        float(text or "")
    except ValueError:
        return False
    return True


def _read_text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not text"
        raise SpillwayError(f"{path}: the run directory is not whole: {why}; run the plan again.") from error


def _read_json(path: Path) -> Any:
    try:
        return json.loads(_read_text(path), parse_int=_whole)
    except (ValueError, RecursionError) as error:
        raise SpillwayError(f"{path}: this is not JSON ({error}); run the plan again.") from error


def _whole(digits: str) -> int:
    """Raises ValueError for a number that no float holds."""
    if len(digits) > MOST_DIGITS:
        raise ValueError(f"a number has {len(digits)} digits")
    return int(digits)


def _read_table(path: Path) -> Document:
    found = _read_json(path)
    if not isinstance(found, dict):
        raise SpillwayError(f"{path}: this is no table of results; run the plan again.")
    return found


def _read_tables(path: Path) -> list[Document]:
    found = _read_json(path)
    if not isinstance(found, list) or not all(isinstance(each, dict) for each in found):
        raise SpillwayError(f"{path}: this is no list of tables; run the plan again.")
    return found


def _read_csv(path: Path, fits: Callable[[Sequence[str]], bool]) -> list[Row]:
    reader = csv.DictReader(_read_text(path).splitlines())
    rows = []
    try:
        if not fits(reader.fieldnames or []):
            raise SpillwayError(f"{path}: its columns are not those of this version; run the plan again.")
        for row in reader:
            if None in row or None in row.values():
                raise ValueError("it has not one cell for each column")
            rows.append(typed(row))
    except (ValueError, csv.Error) as error:
        raise SpillwayError(f"{path}: line {reader.line_num} is damaged: {error}; run the plan again.") from error
    return rows
