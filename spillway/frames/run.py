"""A run directory as data frames: arms, repetitions, samples, phases, stalls, and what the engine's policy did."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from spillway.compare.sides import read_whole
from spillway.errors import SpillwayError
from spillway.frames.figures import Row, figures_row
from spillway.frames.tables import flattened, frame_of
from spillway.quantity import nearest
from spillway.run.summary import standing_throughout
from spillway.rundir.directory import ArmRecord, RunRecord, check_not_cut_off, whole_directories
from spillway.rundir.directory import read_run as read_record
from spillway.rundir.samples import STALL_COLUMNS

if TYPE_CHECKING:
    import pandas as pd

    from spillway.frames.charts import Charts, Draw

PHASES = ("name", "workload", "measured", "t_s", "duration_s", "operations", "reads", "writes")
SHOWN = ("arm", "throughput_ops_s", "write_latency_p99_us", "wa_app", "wa_device", "wa_total", "steady", "standing")


@dataclass(frozen=True, eq=False, repr=False)
class RunFrames:
    """A run directory. Every table is a data frame with units in its columns' names (``tables.py``), made when it is
    first used. Times are seconds since the start of an arm's repetition; ``repetition`` counts from 1."""

    record: RunRecord

    @property
    def path(self) -> Path:
        """The directory."""
        return self.record.path

    @property
    def name(self) -> str:
        """Of the plan."""
        return str(self.record.manifest.get("plan") or self.path.name)

    @property
    def complete(self) -> bool:
        """Whether every repetition of every arm ran to its end."""
        return bool(self.record.manifest.get("complete"))

    @property
    def failure(self) -> str:
        """Why the run failed; empty where nothing did."""
        return str(self.record.manifest.get("failure") or "")

    @cached_property
    def arms(self) -> "pd.DataFrame":
        """A row for each arm, of a sweep for each arm at each point: the figures of its typical repetition, and their
        standing. ``steady``: in every repetition."""
        return frame_of([arm_row(arm.name, arm.summary) for arm in self.record.arms], ("arm",))

    @cached_property
    def repetitions(self) -> "pd.DataFrame":
        """A row for each repetition of each arm, with those figures that a run keeps of each."""
        rows = [
            {"arm": arm.name, "repetition": number} | figures_row(figures)
            for arm in self.record.arms
            for number, figures in enumerate(arm.summary.get("repetitions") or [arm.summary], start=1)
        ]
        return frame_of(rows, ("arm", "repetition"))

    @cached_property
    def samples(self) -> "pd.DataFrame":
        """A row for each sample, with the columns of samples.csv: bytes, counts and seconds are of the interval."""
        return self._of_each(lambda arm: arm.rows)

    @cached_property
    def phases(self) -> "pd.DataFrame":
        """A row for each phase."""
        return self._of_each(lambda arm: [flattened(phase) for phase in arm.phases], PHASES)

    @cached_property
    def stalls(self) -> "pd.DataFrame":
        """A row for each write stall."""
        return self._of_each(lambda arm: arm.stalls, STALL_COLUMNS)

    @cached_property
    def events(self) -> "pd.DataFrame":
        """A row for each thing that the engine's policy did, such as the begin of a diversion, with its figures."""
        return self._of_each(lambda arm: [_event(event) for event in arm.events], ("t_s", "name"))

    @property
    def tables(self) -> tuple[str, ...]:
        """The names of the tables, the one that is exported first."""
        return ("samples", "arms", "repetitions", "phases", "stalls", "events")

    def charts(self, arm: str | None = None) -> "Charts":
        """The report's charts of ``arm``; without one those that compare the arms, of a single arm its own. Raises
        SpillwayError where there is no such arm, or a file is damaged."""
        from spillway.frames.charts import arm_charts, compared_charts

        names = [each.name for each in self.record.arms]
        if arm is not None and arm not in names:
            raise SpillwayError(
                f"{self.path}: it has no arm {arm!r}{nearest(arm, names)} Its arms: {', '.join(names)}."
            )
        if not names:
            raise SpillwayError(f"{self.path}: it has no arm, so there is no chart; run the plan again.")
        if arm is None and len(names) > 1:
            return self._drawn(lambda: compared_charts(self.record))
        chosen = next(each for each in self.record.arms if arm in (None, each.name))
        return self._drawn(lambda: arm_charts(chosen))

    def _drawn(self, draw: "Draw") -> "Charts":
        """Tables hold what files have; charts count with it."""
        from spillway.frames.charts import Charts

        try:
            return Charts(draw)
        except (TypeError, ValueError, LookupError, AttributeError, ArithmeticError) as error:
            said = (str(error).splitlines() or [""])[0].rstrip(".")
            raise SpillwayError(
                f"{self.path}: its charts cannot be drawn, as a file of it has what no run records "
                f"({type(error).__name__}: {said}); run the plan again."
            ) from error

    def _of_each(self, rows: Callable[[ArmRecord], Sequence[Row]], first: Sequence[str] = ()) -> "pd.DataFrame":
        found = [
            {"arm": arm.name, "repetition": number} | row
            for arm in self.record.arms
            for number, each in enumerate(_repetitions(arm), start=1)
            for row in rows(each)
        ]
        return frame_of(found, ("arm", "repetition", *first))

    def __repr__(self) -> str:
        """In words."""
        arms = len(self.record.arms)
        state = f"failed: {self.failure}" if self.failure else "complete" if self.complete else "incomplete"
        return f"RunFrames({str(self.path)!r}: {self.name}, {arms} arm{'' if arms == 1 else 's'}, {state})"

    def _repr_html_(self) -> str:
        """The arms, as a notebook shows them."""
        from html import escape

        shown = self.arms[[name for name in SHOWN if name in self.arms]]
        return f"<p>{escape(repr(self))}</p>{shown.to_html(index=False, na_rep='–')}"


def arm_row(name: str, summary: Row) -> Row:
    """An arm's row: its name, of a sweep its place in it, and its figures."""
    swept = {"of": summary["of"]} if summary.get("of") else {}
    several = summary.get("repetitions") or [summary]
    steady, words = standing_throughout(summary)
    return {
        "arm": name,
        **swept,
        **(summary.get("point") or {}),
        "repetitions": len(several),
        "steady_repetitions": sum(bool(each.get("steady")) for each in several),
        **figures_row(summary),
        "steady": steady,
        "standing": words,
    }


def _repetitions(arm: ArmRecord) -> Iterator[ArmRecord]:
    yield from arm.repetitions or [arm]


def _event(event: Row) -> Row:
    found = event.get("figures")
    figures: Row = found if isinstance(found, dict) else {}
    return {name: value for name, value in event.items() if name != "figures"} | flattened(figures)


def read_run(path: str | Path) -> RunFrames:
    """A run directory as `spillway run` leaves it. Raises SpillwayError where ``path`` is none, where a file of it is
    missing, damaged or cut off, and where the run was refused before it measured anything."""
    directory = Path(path)
    whole = read_whole(directory)
    for arm in [] if whole.manifest.get("failure") else whole.arms:
        for each in whole_directories(arm.summary):
            check_not_cut_off(directory / each)
    return RunFrames(read_record(directory))
