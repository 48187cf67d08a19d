"""The metrics of a run, from the events that ``spillway-native`` sends.

Counts add up over the samples of an arm, with all its phases and repetitions. Gauges are of the last sample, and those
of an arm that has ended are gone. A spill store's statistics have the names of the library's
GetProperty("spillway.prometheus").
"""

from typing import Any

from spillway.metrics.exposition import Labels, Metric, as_text, labels
from spillway.rundir.samples import HOST_CAUSES, NAND_CAUSES, STALL_SECONDS, Row, columns_of, sample_row
from spillway.rundir.statistics import SPILL_METRICS

RUN = "spillway_run_"
ENGINE = "spillway_run_engine_"

# Metric without its prefix → its help text. A counter's name ends in _total.
HELP = {
    "samples_total": "samples taken",
    "elapsed_seconds": "time since the run of the arm began",
    "phase": "1 for the phase that runs now",
    "operations_total": "operations that ended",
    "throughput_operations_per_second": "operations of the last interval by its length",
    "latency_seconds": "latency in the last interval: its mean, percentiles and maximum",
    "user_bytes_total": "bytes of keys and values that were written and read",
    "host_written_bytes_total": "bytes written to the drive, by cause",
    "host_read_bytes_total": "bytes read from the drive",
    "nand_programmed_bytes_total": "bytes of flash pages programmed, by cause",
    "erases_total": "erase blocks erased",
    "die_busy_ratio": "share of the last interval in which dies were busy",
    "channel_busy_ratio": "share of the last interval in which channels were busy",
    "link_write_ratio": "share of the link's write bandwidth that the last interval used",
    "link_read_ratio": "share of the link's read bandwidth that the last interval used",
    "stall_seconds_total": "time in which the engine held writers back, by cause",
    "stall_state": "1 for the state that the engine is in: normal, delayed or stopped",
    "space_bytes": "bytes that the database holds on the drive",
    "cpu_seconds_total": "processor time of the measured program",
}

_LATENCY = {"mean": "mean", "p50": "p50", "p99": "p99", "p99_9": "p99_9", "max": "max"}
_DRIVE_RATIOS = {
    "die_busy": "die_busy_ratio",
    "channel_busy": "channel_busy_ratio",
    "link_write_utilisation": "link_write_ratio",
    "link_read_utilisation": "link_read_ratio",
}
_UNITS = {"_us": ("_seconds", 1e-6), "_ms": ("_seconds", 1e-3), "_permille": ("_ratio", 1e-3)}
_OUR_COLUMNS = frozenset(columns_of({}))


class RunMetrics:
    """Adds up the samples of a run. One thread feeds it."""

    def __init__(self) -> None:
        """Begins with no sample."""
        self._metrics = {RUN + name: _metric(RUN + name, text) for name, text in HELP.items()}
        for _, name, _, text in SPILL_METRICS:
            self._metrics.setdefault(name, _metric(name, text))
        self._arm = ""

    def add(self, arm: str, event: dict[str, Any]) -> bool:
        """Takes an event of the run of ``arm``; returns whether the text is another one now."""
        if event["event"] != "sample":
            return False
        self._drop_gauges()
        self._arm = arm
        row = sample_row(event)
        self._add_load(row)
        self._add_drive(row)
        self._add_engine(row)
        self._add_spill_store(row)
        return True

    def text(self) -> str:
        """Everything, as Prometheus reads it."""
        return as_text(self._metrics.values())

    def _drop_gauges(self) -> None:
        for metric in self._metrics.values():
            if metric.kind == "gauge":
                metric.samples.clear()

    def _at(self, **named: str) -> Labels:
        return labels({"arm": self._arm, **named})

    def _count(self, name: str, value: float | None, **named: str) -> None:
        if value is None:
            return
        samples, at = self._metrics[name].samples, self._at(**named)
        samples[at] = samples.get(at, 0) + value

    def _gauge(self, name: str, value: float | None, **named: str) -> None:
        if value is not None:
            self._metrics[name].samples[self._at(**named)] = value

    def _add_load(self, row: Row) -> None:
        operations = {"read": row["reads"], "write": row["writes"]}
        self._count(RUN + "samples_total", 1)
        self._gauge(RUN + "elapsed_seconds", row["t_s"])
        self._gauge(RUN + "phase", 1, phase=row["phase"])
        for operation, count in operations.items():
            self._count(RUN + "operations_total", count, operation=operation)
            if row["dt_s"] > 0:
                rate = count / row["dt_s"]
                self._gauge(RUN + "throughput_operations_per_second", rate, operation=operation)
            for column, statistic in _LATENCY.items():
                latency_us = row.get(f"{operation}_latency_{column}_us")
                latency = None if latency_us is None else latency_us / 1e6
                self._gauge(RUN + "latency_seconds", latency, operation=operation, statistic=statistic)
        self._count(RUN + "user_bytes_total", row.get("user_bytes_written"), direction="written")
        self._count(RUN + "user_bytes_total", row.get("user_bytes_read"), direction="read")
        self._gauge(RUN + "space_bytes", row.get("space_bytes"))
        self._count(RUN + "cpu_seconds_total", row.get("cpu_s"))

    def _add_drive(self, row: Row) -> None:
        by_cause = {cause: row.get(f"host_bytes_written_{cause}") for cause in HOST_CAUSES}
        if all(value is None for value in by_cause.values()):
            by_cause = {"unknown": row.get("host_bytes_written")}
        for cause, value in by_cause.items():
            self._count(RUN + "host_written_bytes_total", value, cause=cause)
        self._count(RUN + "host_read_bytes_total", row.get("host_bytes_read"))
        for cause in NAND_CAUSES:
            programmed = row.get(f"nand_bytes_programmed_{cause}")
            self._count(RUN + "nand_programmed_bytes_total", programmed, cause=cause)
        self._count(RUN + "erases_total", row.get("erases"))
        for column, name in _DRIVE_RATIOS.items():
            self._gauge(RUN + name, row.get(column))

    def _add_engine(self, row: Row) -> None:
        if state := row.get("stall_state"):
            for each in ("normal", "delayed", "stopped"):
                self._gauge(RUN + "stall_state", int(state == each), state=each)
        for column, value in row.items():
            if column.startswith(STALL_SECONDS):
                self._count(RUN + "stall_seconds_total", value, cause=column.removeprefix(STALL_SECONDS))
            elif column not in _OUR_COLUMNS and not column.startswith("spill_"):
                self._add_engine_gauge(column, value)

    def _add_engine_gauge(self, column: str, value: float) -> None:
        name, factor = ENGINE + column, 1.0
        for unit, (base, share) in _UNITS.items():
            if column.endswith(unit):
                name, factor = ENGINE + column.removesuffix(unit) + base, share
        self._metrics.setdefault(name, Metric(name, "gauge", f"the engine's own gauge {column}"))
        self._gauge(name, value * factor)

    def _add_spill_store(self, row: Row) -> None:
        for statistic, name, cause, _ in SPILL_METRICS:
            value = row.get(f"spill_{statistic}")
            if value is None:
                continue
            if statistic.endswith("_us"):
                value = value / 1e6
            if self._metrics[name].kind == "counter":
                self._count(name, value, cause=cause)
            else:
                self._gauge(name, value)


def _metric(name: str, text: str) -> Metric:
    return Metric(name, "counter" if name.endswith("_total") else "gauge", text)
