"""From traffic and reads to figures: throughput of the mix, latencies, amplification, lifetime and space.

Throughput and latencies are the closed loop's (loop.py). Intervals: the range over seeds and the model's error
together, as independent parts. ``MODEL_ERROR`` says whence.
"""

from dataclasses import dataclass
from typing import Any

from spillway.advise.configuration import Configuration, memory_bytes
from spillway.advise.drive import Drive
from spillway.advise.loop import System
from spillway.advise.traffic import Traffic
from spillway.advise.workload import Workload
from spillway.figures.lifetime import endurance_bytes, years
from spillway.lsm import DEFAULT_COSTS, HostCosts

Document = dict[str, Any]

# Relative, half of an interval. Throughput and the amplifications: eight of ten ratios of measured and predicted, nine
# of `wa_device`, in the undisturbed cases of runs/bench/advise_grid.json; that of throughput is from half of them
# (docs/decisions/0060) and holds in the others. Space and latencies are in no record, so theirs are guesses.
MODEL_ERROR = {"throughput_ops_s": 0.35, "wa_app": 0.35, "wa_device": 0.15, "held_bytes": 0.25, "p99_us": 1.0}
CLOSED_FORM_ERROR = 0.5  # of figures without a simulation. Source: M20, errors of eqs 9 and 10 within a factor


@dataclass(frozen=True)
class Figure:
    """A value with its interval."""

    value: float
    low: float
    high: float

    def document(self) -> Document:
        """For JSON."""
        return {"value": self.value, "low": self.low, "high": self.high}


@dataclass(frozen=True)
class Prediction:
    """What is predicted of a configuration. Latencies are of the kinds that the mix has, in us; None: not known."""

    config: Configuration
    traffic: Traffic
    throughput_ops_s: Figure  # at most; with a rate the load may ask for less
    mean_us: dict[str, float]
    p99_us: dict[str, Figure]
    wa_app: Figure
    wa_device: Figure
    wa_total: Figure
    flash_bytes_per_op: Figure
    years: Figure | None
    held_bytes: Figure
    memory_bytes: int
    drive_busy: float
    limited_by: str  # clients, drive, processor or, of the writes, stalls

    @property
    def worst_p99_us(self) -> float:
        """The highest p99 of any kind."""
        return max((each.value for each in self.p99_us.values()), default=0.0)


def predict(
    load: Workload, config: Configuration, drive: Drive, traffic: Traffic, cores: int, costs: HostCosts = DEFAULT_COSTS
) -> Prediction:
    """Everything that is predicted of ``config`` under ``load``."""
    system = System(load, config, drive, traffic, cores, costs)
    most, limited_by = system.throughput()
    done = most if load.rate_ops_s is None else min(load.rate_ops_s, most)
    mean, p99 = system.latencies(done, is_most=done >= most)
    spread = dict(traffic.spread)
    closed = 0.0 if traffic.simulated else CLOSED_FORM_ERROR

    def figure(name: str, value: float, error: str, least: float = 0.0) -> Figure:
        reach = (MODEL_ERROR[error] ** 2 + spread.get(name, 0.0) ** 2 + closed**2) ** 0.5
        return Figure(value, max(least, value / (1 + reach)), value * (1 + reach))

    app = figure("wa_app", traffic.wa_app, "wa_app")
    device = figure("wa_device", traffic.wa_device, "wa_device")
    total = _product(app, device)
    per_op = load.puts * load.pair_bytes
    flash = Figure(*(each * per_op for each in (total.value, total.low, total.high)))
    return Prediction(
        config=config,
        traffic=traffic,
        throughput_ops_s=figure("put_ops_s", most, "throughput_ops_s"),
        mean_us=mean,
        p99_us={kind: figure("", value, "p99_us") for kind, value in p99.items()},
        wa_app=app,
        wa_device=device,
        wa_total=total,
        flash_bytes_per_op=flash,
        years=_years(drive, done, flash, app, per_op),
        held_bytes=figure(
            "held_bytes",
            max(traffic.held_bytes, float(load.data_bytes)),
            "held_bytes",
            least=float(load.data_bytes),
        ),
        memory_bytes=memory_bytes(config, load.pairs, load.data_bytes, load.key_bytes),
        drive_busy=min(1.0, done * system.drive_us / 1e6),
        limited_by=limited_by,
    )


def _product(one: Figure, other: Figure) -> Figure:
    """Of independent factors: relative reaches add up as squares."""
    value = one.value * other.value
    reach = sum((each.high / each.value - 1) ** 2 for each in (one, other)) ** 0.5
    return Figure(value, value / (1 + reach), value * (1 + reach))


def _years(drive: Drive, rate: float, flash: Figure, app: Figure, per_op: float) -> Figure | None:
    """Until the drive is worn at ``rate``: by its maker's rating of host bytes where that is given, else by cycles."""
    if drive.rated_bytes is not None:
        spent = [each * per_op * rate for each in (app.value, app.high, app.low)]
        found = [years(drive.rated_bytes, each, 1.0) for each in spent]
    else:
        endurance = endurance_bytes(drive.rated_pe_cycles, drive.physical_bytes)
        found = [years(endurance, each * rate, 1.0) for each in (flash.value, flash.high, flash.low)]
    if found[0] is None or found[1] is None or found[2] is None:
        return None
    return Figure(found[0], found[1], found[2])
