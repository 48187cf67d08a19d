"""The advised beside the measured: winner, rivals and runners-up as an ordinary plan, at a scale that fits the machine.

Data, memtables, files, caches and the drive's capacity are divided by one factor; the drive's rates stay.
Predictions that stand beside the measurement are of the scaled experiment on this machine's cores, and not of the one
that was asked about, nor of the steady state that is advised: the same model, held against what can be run.

Each arm loads its data in order, overwrites under the mix without being measured, then is measured.
"""

import os
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import tomli_w

from spillway.advise.configuration import (
    DEFAULTS,
    SINGLE,
    Configuration,
    db_options,
    family_options,
    table_options,
)
from spillway.advise.drive import Drive
from spillway.advise.exact import exact
from spillway.advise.predict import Figure, Prediction
from spillway.advise.search import Advice
from spillway.advise.simulated import Setting, Simulate, Span, in_parallel
from spillway.advise.workload import Workload
from spillway.lsm import DEFAULT_COSTS, HostCosts
from spillway.native.process import Event
from spillway.plan.document import load_plan
from spillway.run.execute import Finished, execute

Document = dict[str, Any]
Watch = Callable[[str, Event], None]

DATA_BYTES = (
    160 * 2**20
)  # of a scaled experiment, if the drive's erase blocks allow it. Source: guess: loads in seconds
WARM_S, MEASURED_S = 10.0, 20.0
SPAN = Span(WARM_S, MEASURED_S)
SPILL_GENERATIONS = 16  # of a scaled spill store, as by the library's defaults
LEAST_GENERATION = 2**20
KEY_PREFIX = "k"
RUNNERS_UP = 2
RATE_TOLERANCE = 0.01  # of an offered rate, within which it was kept. Source: guess: seconds of a paced load
OPERATIONS = {"put": "update", "get": "read", "scan": "scan", "rmw": "readmodifywrite"}  # YCSB's names of the kinds
FIGURES = (
    "throughput_ops_s",
    "wa_app",
    "wa_device",
    "wa_total",
    "held_bytes",
    "p99_us.put",
    "p99_us.get",
    "p99_us.scan",
    "p99_us.rmw",
)
ANSWERS = {
    "short-test": "A check of predictions over seconds; docs/ADVISE.md says what that can show.",
    "data-set": "It is of the data set that was asked about, scaled.",
    "over-provisioning": "It is of the drive that was asked about.",
    "drive-type": "It is of the drive that was asked about.",
}


@dataclass(frozen=True)
class Scaled:
    """An experiment that this machine can run."""

    load: Workload
    drive: Drive
    factor: float
    cores: int
    costs: HostCosts = DEFAULT_COSTS
    span: Span = SPAN

    def prediction(self, config: Configuration, simulate: Simulate, seeds: Sequence[int]) -> Prediction:
        """Of a configuration that is scaled already."""
        setting = Setting(self.load, self.drive, self.cores, simulate, self.costs, span=self.span)
        return exact(setting, config, seeds, config)


@dataclass(frozen=True)
class Verified:
    """One arm: what was predicted and what was measured of it. None: it was not measured."""

    name: str
    config: Configuration
    predicted: Prediction
    measured: Document | None
    rate_ops_s: float | None = None  # that the load asks for

    def value(self, figure: str) -> float | None:
        """As it was measured; None where it was not."""
        return None if self.measured is None else measured_of(self.measured, figure)

    def expected(self, figure: str) -> Figure | None:
        """As it is predicted; None of a kind of operation that the mix has not."""
        return predicted_of(self.predicted, figure, self.rate_ops_s)

    def ratio(self, figure: str) -> float | None:
        """Measured over predicted."""
        value, of = self.value(figure), self.expected(figure)
        return value / of.value if value and of is not None and of.value else None

    def is_within(self, figure: str) -> bool | None:
        """Whether the measurement lies in the interval of the prediction; None: not known."""
        value, of = self.value(figure), self.expected(figure)
        return None if value is None or of is None else of.low <= value <= of.high


@dataclass(frozen=True)
class Check:
    """All arms, and how their run ended."""

    arms: list[Verified]
    finished: Finished


def predicted_of(prediction: Prediction, figure: str, rate_ops_s: float | None = None) -> Figure | None:
    """A figure of a run's summary, as it is predicted at the rate that the load asks for, if it does."""
    if figure.startswith("p99_us."):
        return prediction.p99_us.get(figure.partition(".")[2])
    if figure == "throughput_ops_s" and rate_ops_s is not None:
        most = prediction.throughput_ops_s
        value, low, high = (min(rate_ops_s, each) for each in (most.value, most.low, most.high))
        return Figure(value, low * (1 - RATE_TOLERANCE), high * (1 + RATE_TOLERANCE))
    found: Figure = getattr(prediction, figure)
    return found


def measured_of(arm: Document, figure: str) -> float | None:
    """The same figure of an arm of a summary."""
    found: float | None
    if figure.startswith("p99_us."):
        kind = OPERATIONS[figure.partition(".")[2]]
        found = ((arm.get("kind_latency_us") or {}).get(kind) or {}).get("p99")
    elif figure == "held_bytes":
        peak, live = arm.get("space_amplification_peak"), arm.get("live_user_bytes")
        found = peak * live if peak and live else arm.get("space_bytes")
    else:
        found = arm.get(figure)
    return found


def scaled(load: Workload, drive: Drive, data_bytes: int = DATA_BYTES) -> Scaled:
    """The largest factor that leaves the drive enough erase blocks and the data at least ``data_bytes``."""
    by_drive = drive.capacity_bytes / drive.least_capacity_bytes
    factor = max(1.0, min(by_drive, load.data_bytes / data_bytes))
    capacity = int(drive.capacity_bytes / factor) // 4096 * 4096
    request = drive.request | {"set": drive.request["set"] | {"capacity.capacity_bytes": str(capacity)}}
    small = replace(drive, capacity_bytes=capacity, request=request,
                    least_capacity_bytes=min(capacity, drive.least_capacity_bytes))  # fmt: skip
    return Scaled(load.scaled(factor), small, factor, os.cpu_count() or 1)


def verify(advice: Advice, out: Path, command: list[str], watch: Watch | None = None) -> Check:
    """Runs the arms; the run directory is ``out``. Raises SpillwayError."""
    request = advice.request
    small = replace(scaled(request.load, request.drive), costs=request.costs)
    arms = {name: config.scaled(small.factor) for name, config in chosen(advice).items()}
    return measure(small, arms, out, command, request.simulate, request.seeds, watch)


def check_can_run(load: Workload, drive: Drive) -> None:
    """To be called before minutes of work. Raises SpillwayError where no plan can have this load on this drive."""
    small = scaled(load, drive)
    with _plan_file(plan_text(small, {"advised": DEFAULTS.scaled(small.factor)})) as path:
        load_plan(path)


@contextmanager
def _plan_file(text: str) -> Iterator[Path]:
    """The run directory will have the plan, so a file of its own is only there to be loaded."""
    with tempfile.TemporaryDirectory() as place:
        path = Path(place) / "verify.toml"
        path.write_text(text, encoding="utf-8")
        yield path


def chosen(advice: Advice) -> dict[str, Configuration]:
    """The arms: the winner, what is advised, the rivals, and the best of other shapes or else the next."""
    shapes = {advice.winner.config.shape}
    others: list[Configuration] = []
    for each in [*advice.ranked[1:], *advice.shapes.values()]:
        if each.config.shape not in shapes:
            others.append(each.config)
            shapes.add(each.config.shape)
    others += [each.config for each in advice.ranked[1:] if each.config not in others]
    advised = advice.decision.advised.config
    others = [each for each in others if each != advised]
    named = {"advised": advised} if advice.decision.place is not None else {}  # else it is a rival
    if advised != advice.winner.config:
        named["ranked first"] = advice.winner.config
    named |= {name: each.config for name, each in advice.rivals.items()}
    return named | {f"runner-up {at}": config for at, config in enumerate(others[:RUNNERS_UP], 1)}


def measure(
    small: Scaled,
    arms: dict[str, Configuration],
    out: Path,
    command: list[str],
    simulate: Simulate,
    seeds: Sequence[int] = (1, 2),
    watch: Watch | None = None,
    measured_s: float = MEASURED_S,
    warm_s: float = WARM_S,
) -> Check:
    """Predicts and runs ``arms``, scaled already. An arm whose run failed has no measured figures. Raises
    SpillwayError where nothing could be measured."""
    small = replace(small, span=Span(warm_s, measured_s))
    predicted = in_parallel(lambda each: small.prediction(each, simulate, seeds), list(arms.values()), small.cores)
    with _plan_file(plan_text(small, arms, measured_s, warm_s)) as path:
        finished = execute(load_plan(path), out, command, watch)
    figures = finished.summary["arms"]
    verified = [
        Verified(name, config, of, _whole(figures.get(name)), small.load.rate_ops_s)
        for (name, config), of in zip(arms.items(), predicted, strict=True)
    ]
    return Check(verified, finished)


def _whole(figures: Document | None) -> Document | None:
    """The figures of a run that did what it was asked to."""
    if figures is None or not figures["standing"]["complete"] or not figures.get("throughput_ops_s"):
        return None
    return figures


def plan_text(
    small: Scaled, arms: dict[str, Configuration], measured_s: float = MEASURED_S, warm_s: float = WARM_S
) -> str:
    """The plan as TOML, with a name and a lint answer for what a scaled check cannot show."""
    drive, settings = small.drive, dict(small.drive.request["set"])
    capacity = settings.pop("capacity.capacity_bytes")
    load = small.load
    phase: Document = {"workload": "ycsb-run", "threads": load.clients}
    if load.rate_ops_s is not None:
        phase["rate_ops_s"] = load.rate_ops_s
    document: Document = {
        "name": "verify",
        "summary": f"advised configurations on {drive.name}, scaled by {small.factor:.4g}",
        "drive": {"capacity": capacity} | ({"preset": drive.request["preset"]} if drive.request["preset"] else {}),
        "ycsb": _ycsb(load),
        "phases": [
            {"name": "load", "workload": "ycsb-load", "measured": False},
            {**phase, "name": "warm", "duration_s": warm_s, "measured": False},
            {**phase, "name": "mix", "duration_s": measured_s},
        ],
        "arms": [_arm(name, config, settings, drive) for name, config in arms.items()],
        "lint": {"answers": ANSWERS},
    }
    return tomli_w.dumps(document)


def _ycsb(load: Workload) -> Document:
    """The mix in YCSB's properties; keys are of one length, values whole."""
    found: Document = {
        "recordcount": load.pairs,
        "fieldcount": 1,
        "fieldlength": load.value_bytes,
        "keyprefix": KEY_PREFIX,
        "zeropadding": load.key_bytes - len(KEY_PREFIX),
        "insertorder": "ordered",
        "readproportion": max(0.0, load.gets - load.rmws),
        "updateproportion": max(0.0, load.puts - load.rmws),
        "scanproportion": load.scans,
        "readmodifywriteproportion": load.rmws,
        "spillway.update": "overwrite",
        "requestdistribution": "uniform" if load.skew is None else "zipfian",
    }
    if load.skew is not None:
        found["zipfian_const"] = load.skew
    if load.scans:
        found |= {"minscanlength": load.scan_pairs, "maxscanlength": load.scan_pairs}
    return found


def _arm(name: str, config: Configuration, settings: dict[str, str], drive: Drive) -> Document:
    # Every arm reads and writes past the page cache: a plan's file system has none, nor its readahead.
    options = db_options(replace(config, direct_io=True)) | family_options(config) | table_options(config)
    options |= {"block_cache": str(config.block_cache_bytes)}
    if config.shape == SINGLE:
        options["max_bytes_for_level_base"] = str(2**40)
    own = dict(settings)
    extra = drive.model(1, config.extra_op)["set"] if config.extra_op else {}
    own |= {key: value for key, value in extra.items() if key != "capacity.capacity_bytes"}
    engine: Document = {"name": "rocksdb", "options": options}
    if config.spill != "off":
        generation = max(LEAST_GENERATION, config.spill_bytes // SPILL_GENERATIONS)
        capacity = max(config.spill_bytes, 2 * generation)
        engine = {
            "name": "spillway",
            "options": options,
            "spill": {"rollback": config.spill, "capacity": capacity, "generation": generation},
        }
    arm: Document = {
        "name": name,
        "engine": engine,
        "initial": {"kind": "trimmed" if config.discard else "steady"},
        "fs": {"discard": config.discard},
    }
    if config.extra_op:
        arm["drive"] = {"capacity": extra["capacity.capacity_bytes"]}
    if own:
        arm.setdefault("drive", {})["set"] = own
    return arm
