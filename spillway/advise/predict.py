"""From traffic and reads to figures: throughput of the mix, latencies, amplification, lifetime and space.

Throughput of a closed loop of n clients is the highest X that keeps all of (operational laws; Denning and Buzen 1978)

    X sum f_i t_i(X) <= n                     clients: t_i is the time of an operation of kind i, waiting included
    X f_p / X_p + X sum_reads f_i d_i <= 1    the drive: X_p is the rate of puts alone, d_i a read's part of the drive
    X sum f_i c_i <= cores                    the processor

Latency of a read = for each of its blocks the service time of the drive at the reads that are in flight, stretched by
1 / (1 - v), v the share of the drive that compactions read; and the wait for a program, which nothing interrupts once
it has begun (M/G/1 with priority that is not preemptive; Kleinrock, Queueing Systems II, 1976, 3.3)

    w tPROG / 2              w: share of the drive that writes take, garbage collection's included; tPROG / 2 is what is
                             left of a program in the mean
    w tPROG / 2 / (1 - w)    where reads overtake no programs that are queued

Its p99 adds the tails: of the stretch, exponential: 4.6 times the mean; of a program all but what one in a hundred
misses. Of a put: processor time, and what a put that comes at any time waits: with writers stopped for a share s of the
time, W at most, the mean wait is s W / 2, and one in a hundred waits for W (1 - 0.01 / s). The mean of a closed loop is
what Little's law leaves of the clients' time to puts, if that is more.

Intervals: the range over seeds and the model's error together, as independent parts. ``MODEL_ERROR`` says whence.
"""

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from spillway.advise import reads
from spillway.advise.configuration import Configuration, memory_bytes
from spillway.advise.drive import Drive
from spillway.advise.traffic import MERGE_US_PER_BYTE, PUT_US, Traffic
from spillway.advise.workload import Workload
from spillway.figures.lifetime import endurance_bytes, years

Document = dict[str, Any]

# Relative, half of an interval. Throughput and the amplifications: about nine of ten ratios of measured and predicted
# in the undisturbed cases of runs/bench/advise_grid.json. Space and latencies are in no record, so theirs are guesses.
MODEL_ERROR = {"throughput_ops_s": 0.60, "wa_app": 0.35, "wa_device": 0.15, "held_bytes": 0.25, "p99_us": 1.0}
CLOSED_FORM_ERROR = 0.5  # of figures without a simulation. Source: M20, errors of eqs 9 and 10 within a factor
TAIL = 4.6  # ln 100
MOST_BUSY = 0.95  # of the drive with writes, for waiting: beyond it no reader would be served
DELAYED_PUT_S = 1e-3  # RocksDB's shortest sleep of a delayed writer. Source: WriteController, kMicrosPerRefill 1024
HALVINGS, ROUNDS = 18, 4  # of the rate, and of the reads in flight at it


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


def predict(load: Workload, config: Configuration, drive: Drive, traffic: Traffic, cores: int) -> Prediction:
    """Everything that is predicted of ``config`` under ``load``."""
    system = System(load, config, drive, traffic, cores)
    most, limited_by = system.throughput()
    done = most if load.rate_ops_s is None else min(load.rate_ops_s, most)
    mean, p99 = system.latencies(done)
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


@dataclass(frozen=True)
class System:
    """The stations that an operation visits."""

    load: Workload
    config: Configuration
    drive: Drive
    traffic: Traffic
    cores: int

    @cached_property
    def kinds(self) -> list[tuple[float, reads.Read]]:
        """(share, what it takes) of the kinds of reads in the mix."""
        of = [(self.load.gets, reads.get), (self.load.scans, reads.scan)]
        return [(share, make(self.load, self.config, self.traffic)) for share, make in of if share]

    @cached_property
    def read_drive_us(self) -> float:
        """Of the drive, for the reads among one operation of the mix."""
        return sum(share * each.drive_us(self.drive.times) for share, each in self.kinds)

    @cached_property
    def drive_us(self) -> float:
        """Of the drive, for one operation of the mix."""
        return self.load.puts * 1e6 / self.traffic.put_ops_s + self.read_drive_us

    @cached_property
    def processor_us(self) -> float:
        """Of the processor, for one operation of the mix, what compactions take among it."""
        merged = self.load.pair_bytes * max(0.0, self.traffic.wa_app - 1)
        own = self.load.puts * (PUT_US + MERGE_US_PER_BYTE * merged)
        return own + sum(share * each.processor_us for share, each in self.kinds)

    def throughput(self) -> tuple[float, str]:
        """The highest rate, and what limits it."""
        limits = {"drive": 1e6 / self.drive_us if self.drive_us else float("inf")}
        if self.load.puts and self.traffic.stopped_share + self.traffic.delayed_share > 0.1 and self.load.puts > 0.5:
            limits = {"stalls": limits["drive"]}
        limits["processor"] = 1e6 * self.cores / self.processor_us
        most = min(limits.values())
        low, high = 0.0, most
        for _ in range(HALVINGS):
            middle = (low + high) / 2
            busy = middle / 1e6 * self.operation_us(middle)
            low, high = (middle, high) if busy <= self.load.clients else (low, middle)
        if low < 0.98 * most:
            return low, "clients"
        return low, min(limits, key=lambda name: limits[name])

    def rough_throughput(self) -> float:
        """About the same, with every client reading: for thousands of configurations."""
        own = sum(share * each.service_us(self.drive.times, self.load.clients) for share, each in self.kinds)
        by_clients = 1e6 * self.load.clients / (self.load.puts * PUT_US + own)
        return min(by_clients, 1e6 / self.drive_us, 1e6 * self.cores / self.processor_us)

    def operation_us(self, rate: float) -> float:
        """Mean time of an operation of the mix at ``rate``."""
        stretch, held_us = 1 / (1 - self.read_share(rate)), self.held_us(rate)
        held = held_us * sum(share * each.accesses for share, each in self.kinds)
        in_flight, own = 1.0, 0.0
        for _ in range(ROUNDS):
            own = sum(share * each.service_us(self.drive.times, in_flight) for share, each in self.kinds) * stretch
            in_flight = min(float(self.load.clients), max(1.0, rate / 1e6 * (own + held)))
        return self.load.puts * PUT_US + own + held

    def written_share(self, rate: float) -> float:
        """Of the drive's time, what writes at ``rate`` take, as its readers find it."""
        traffic = self.traffic
        bytes_per_put = traffic.wa_app * traffic.wa_device * self.load.pair_bytes
        return min(MOST_BUSY, rate * self.load.puts * bytes_per_put / self.drive.times.most_mb_s("write") / 1e6)

    def read_share(self, rate: float) -> float:
        """And what compactions read."""
        per_put = self.traffic.read_bytes_per_put / self.drive.times.most_mb_s("read")
        return min(MOST_BUSY, rate * self.load.puts * per_put / 1e6)

    def held_us(self, rate: float) -> float:
        """What one read waits for programs, in the mean."""
        written = self.written_share(rate)
        left = written * self.drive.program_us / 2
        return left if self.drive.reads_overtake > 1 else left / (1 - written)

    def latencies(self, rate: float) -> tuple[dict[str, float], dict[str, float]]:
        """(means, 99th percentiles) by kind, us, at ``rate``."""
        mean: dict[str, float] = {}
        p99: dict[str, float] = {}
        busy, written, times = self.read_share(rate), self.written_share(rate), self.drive.times
        held_us = self.held_us(rate)
        held_p99_us = max(held_us, self.drive.program_us * (1 - 0.01 / written)) if written > 0.01 else held_us
        in_flight = min(float(self.load.clients), max(1.0, rate / 1e6 * self.operation_us(rate)))
        names = [name for name, share in (("get", self.load.gets), ("scan", self.load.scans)) if share]
        for name, (_, each) in zip(names, self.kinds, strict=True):
            alone = each.service_us(times, in_flight)
            waited = alone * busy / (1 - busy)
            several = math.sqrt(max(1.0, each.accesses))  # one is held as long as one in a hundred
            held = each.accesses * held_us
            mean[name] = alone + waited + held
            p99[name] = each.p99_us(times, in_flight) + TAIL * waited + held + several * (held_p99_us - held_us)
        if self.load.puts:
            of_reads = sum(share * mean[name] for name, (share, _) in zip(names, self.kinds, strict=True))
            mean["put"], p99["put"] = self._put_latency(rate, of_reads)
        return mean, p99

    def _put_latency(self, rate: float, reads_us: float) -> tuple[float, float]:
        """``reads_us``: of the mean operation, what its reads take. A closed loop waits longer where its puts are what
        is limited."""
        traffic = self.traffic
        stopped, longest_us = traffic.stopped_share, traffic.worst_wait_s * 1e6
        left_us = 0.0
        if self.load.rate_ops_s is None and rate:
            left_us = (1e6 * self.load.clients / rate - reads_us) / self.load.puts
        waited_us = stopped * longest_us / 2 + traffic.delayed_share * DELAYED_PUT_S * 1e6 / 2
        mean = max(PUT_US + waited_us, left_us)
        delayed_us = DELAYED_PUT_S * 1e6 if traffic.delayed_share > 0.01 else 0.0
        stopped_us = longest_us * (1 - 0.01 / stopped) if stopped > 0.01 else 0.0
        return mean, max(3 * PUT_US, delayed_us, stopped_us, mean)


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
