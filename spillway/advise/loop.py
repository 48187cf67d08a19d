"""The closed loop: clients that work one operation after another on the processor and the drive, beside compactions.

Clients go round three stations, whose rates depend on how many are there (spillway/models/network.py):

    the drive      k operations take T(k) = sum over kinds f_i (the reads of one, with k / (1 - w) in flight) / (1 - v)
    the processor  `cores` servers, less what flushes and merges keep busy; an operation takes sum f_i c_i
    programs       a delay: each block that is read waits for programs, which nothing interrupts

    X              operations a microsecond       f_i    share of kind i of the operations
    u = X f_p / X_p                               of the drive's time, puts with all that follows from them; X_p is the
                                                  rate of puts alone
    v = X f_p r / R                               compactions' reads, r bytes a put, R the rate of reads in order. They
                                                  are queued as the clients' reads are, which last longer by 1 / (1 - v)
    w = 1 - (1 - u) / (1 - v)                     the rest, taken off the reads at once that the drive can do: k of them
                                                  go as k / (1 - w) do on the whole drive. Saturated, it does 1 - u as
                                                  many as without puts

X has to be that of the network with what X itself takes of the drive and of the cores: found by bisection, since the
network does less where more is taken. It is at most X_p / f_p; below that memtables take puts at once.

A read's wait for a program, M/G/1 with priority that is not preemptive (Kleinrock, Queueing Systems II, 1976, 3.3):

    W tPROG / 2              W: share of the drive that writes take, garbage collection's included; tPROG / 2 is what is
                             left of a program in the mean
    W tPROG / 2 / (1 - W)    where reads overtake no programs that are queued

A p99 adds the tails to the mean: of the drive's reads what was measured; of waits for the processor, and for reads of
compactions, exponential, 4.6 times the mean; of a program all but what one in a hundred misses. Of a put: processor
time, and what a put that comes at any time waits: with writers stopped for a share s of the time, W at most, the mean
wait is s W / 2, and one in a hundred waits for W (1 - 0.01 / s). The mean of a closed loop is what Little's law leaves
of the clients' time to puts, if that is more.

Ignores bursts: compactions and their programs are spread evenly over the time.
"""

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.optimize import brentq

from spillway.advise import reads
from spillway.advise.configuration import Configuration
from spillway.advise.drive import Drive
from spillway.advise.traffic import LOG_AND_FLUSH, Traffic
from spillway.advise.workload import Workload
from spillway.lsm import DEFAULT_COSTS, HostCosts
from spillway.models import network
from spillway.models.arrays import Array

TAIL = 4.6  # ln 100
MOST_BUSY = 0.95  # of the drive with writes, for waiting: beyond it no reader would be served
LEAST_LEFT = 1e-6  # of the drive and of the cores that background work leaves
DELAYED_PUT_S = 1e-3  # RocksDB's shortest sleep of a delayed writer. Source: WriteController, kMicrosPerRefill 1024
LEAST_US = 0.01  # of the processor, for an operation: some tens of instructions
PRECISION = 1e-5  # of the rate
HELD_UP = 0.1  # share of the time in which writers wait, from which stalls are what limits puts. Source: guess


@dataclass(frozen=True)
class Times:
    """What an operation takes in the mean, us, waiting included; and reads at the drive at once."""

    drive_us: float
    processor_us: float
    at_drive: float


@dataclass(frozen=True)
class System:
    """The stations that an operation visits."""

    load: Workload
    config: Configuration
    drive: Drive
    traffic: Traffic
    cores: int
    costs: HostCosts = DEFAULT_COSTS

    @cached_property
    def kinds(self) -> dict[str, tuple[float, reads.Read]]:
        """(share, what it takes) of the kinds of reads in the mix."""
        of = {"get": (self.load.gets, reads.get), "scan": (self.load.scans, reads.scan)}
        found = {name: (share, make) for name, (share, make) in of.items() if share}
        return {
            name: (share, make(self.load, self.config, self.traffic, self.costs))
            for name, (share, make) in found.items()
        }

    # -----------------------------------------------------------------------------------------------------------------
    # What an operation of the mix takes of each station, alone, in us

    @cached_property
    def read_drive_us(self) -> float:
        """Of a saturated drive, for its reads."""
        return sum(share * each.drive_us(self.drive.times) for share, each in self.kinds.values())

    @cached_property
    def drive_us(self) -> float:
        """Of a saturated drive, with all that follows from its puts."""
        return self.load.puts * 1e6 / self.traffic.put_ops_s + self.read_drive_us

    @cached_property
    def put_us(self) -> float:
        """Of the processor, for a put."""
        return self.costs.put_us(self.load.pair_bytes)

    @cached_property
    def own_processor_us(self) -> float:
        """Of the processor, in the clients' threads."""
        of_reads = sum(share * each.processor_us for share, each in self.kinds.values())
        return max(LEAST_US, self.load.puts * self.put_us + of_reads)

    @cached_property
    def merge_processor_us(self) -> float:
        """Of the processor, in flushes and compactions."""
        merged = max(0.0, self.traffic.wa_app - LOG_AND_FLUSH)
        pair = self.load.pair_bytes
        return self.load.puts * (self.costs.flush_us(pair) + merged * self.costs.merge_us(pair))

    @cached_property
    def processor_us(self) -> float:
        """Of the processor, everything."""
        return self.own_processor_us + self.merge_processor_us

    @cached_property
    def accesses(self) -> float:
        """Blocks and parts in order that an operation reads from the drive."""
        return sum(share * each.accesses for share, each in self.kinds.values())

    # -----------------------------------------------------------------------------------------------------------------
    # Throughput

    def bounds(self) -> dict[str, float]:
        """Operations/s that no load exceeds, by what limits them."""
        drive = "drive"
        if self.load.puts > 0.5 and self.traffic.stopped_share + self.traffic.delayed_share > HELD_UP:
            drive = "stalls"
        return {
            drive: 1e6 / self.drive_us if self.drive_us else math.inf,
            "processor": 1e6 * self.cores / self.processor_us,
        }

    def throughput(self) -> tuple[float, str]:
        """The highest rate, operations/s, and what limits it: the bound that is the lowest, if clients that never wait
        for each other would exceed it."""
        bounds = self.bounds()
        most = min(bounds.values())
        rate = most
        if self.closed_rate(most) < most:
            low = most * LEAST_LEFT
            rate = float(brentq(lambda each: self.closed_rate(each) - each, low, most, rtol=PRECISION, xtol=low))
        alone_us = sum(1 / float(each[0]) for each in self.stations(rate))
        bounds["clients"] = 1e6 * self.load.clients / alone_us
        return rate, min(bounds, key=lambda name: bounds[name])

    def rough_throughput(self) -> float:
        """About the same, with every client reading and nobody waiting: for thousands of configurations."""
        at_drive = sum(
            share * each.service_us(self.drive.times, self.load.clients) for share, each in self.kinds.values()
        )
        by_clients = 1e6 * self.load.clients / (self.own_processor_us + at_drive)
        return min(by_clients, *self.bounds().values())

    def closed_rate(self, rate: float) -> float:
        """Operations/s of clients that never rest, beside the background work of ``rate`` of them."""
        return 1e6 * network.throughput(self.stations(rate))

    def stations(self, rate: float) -> list[Array]:
        """Of those that the mix visits, the rates by the number of clients there; the processor first, then the
        drive."""
        clients = self.load.clients
        servers = max(self.cores * LEAST_LEFT, self.cores - rate / 1e6 * self.merge_processor_us)
        found = [network.server_rates(self.own_processor_us, servers, clients)]
        if self.accesses:
            k = np.arange(1, clients + 1, dtype=np.float64)
            taken = 1 - self.read_share(rate)
            times = self.drive.times
            beside = [share * each.services_us(times, k / self.left(rate)) for share, each in self.kinds.values()]
            found.append(np.maximum.accumulate(k * taken / sum(beside)))
        held_us = self.held_us(rate) * self.accesses
        if held_us:
            found.append(network.delay_rates(held_us, clients))
        return found

    def left(self, rate: float) -> float:
        """1 - w: of the reads at once that the drive can do, what writes leave."""
        used = rate * self.load.puts / self.traffic.put_ops_s
        return min(1.0, max(LEAST_LEFT, (1 - used) / (1 - self.read_share(rate))))

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

    # -----------------------------------------------------------------------------------------------------------------
    # Latencies

    def times(self, rate: float, *, is_most: bool) -> Times:
        """Of an operation of the mix at ``rate``; ``is_most``: as many as the clients can do, none of them rests."""
        stations = self.stations(rate)
        if is_most:
            done, there = network.throughput(stations), network.numbers(stations)
        else:
            done, there = network.offered(stations, rate / 1e6)
        at_drive = float(there[1]) if self.accesses else 0.0
        return Times(at_drive / done, float(there[0]) / done, at_drive)

    def latencies(self, rate: float, *, is_most: bool) -> tuple[dict[str, float], dict[str, float]]:
        """(means, 99th percentiles) by kind, us, at ``rate``."""
        mean: dict[str, float] = {}
        p99: dict[str, float] = {}
        times = self.times(rate, is_most=is_most)
        written, of_reads, held_us = self.written_share(rate), self.read_share(rate), self.held_us(rate)
        held_p99_us = max(held_us, self.drive.program_us * (1 - 0.01 / written)) if written > 0.01 else held_us
        longer = times.processor_us / self.own_processor_us
        in_flight = max(1.0, times.at_drive) / self.left(rate)
        services = {name: each.service_us(self.drive.times, in_flight) for name, (_, each) in self.kinds.items()}
        together = sum(share * services[name] for name, (share, _) in self.kinds.items())
        for name, (_, each) in self.kinds.items():
            at_drive = times.drive_us * services[name] / together if together else 0.0
            several = math.sqrt(max(1.0, each.accesses))  # one is held as long as one in a hundred
            mean[name] = at_drive + longer * each.processor_us + each.accesses * held_us
            waited = at_drive * of_reads + (longer - 1) * each.processor_us
            slow = each.slow_us(self.drive.times, in_flight)
            p99[name] = mean[name] + slow + (TAIL - 1) * waited + several * (held_p99_us - held_us)
        if self.load.puts:
            reading = sum(share * mean[name] for name, (share, _) in self.kinds.items())
            mean["put"], p99["put"] = self._put_latency(rate, longer * self.put_us, reading)
        if self.load.rmws:  # one in a hundred has a slow part, and the other is as usual
            mean["rmw"] = mean["get"] + mean["put"]
            p99["rmw"] = mean["rmw"] + max(p99[kind] - mean[kind] for kind in ("get", "put"))
        return mean, p99

    def _put_latency(self, rate: float, own_us: float, reads_us: float) -> tuple[float, float]:
        """``own_us``: at the processor. ``reads_us``: of the mean operation, what its reads take. A closed loop waits
        longer where its puts are what is limited."""
        traffic = self.traffic
        stopped, longest_us = traffic.stopped_share, traffic.worst_wait_s * 1e6
        left_us = 0.0
        if self.load.rate_ops_s is None and rate:
            left_us = (1e6 * self.load.clients / rate - reads_us) / self.load.puts
        waited_us = stopped * longest_us / 2 + traffic.delayed_share * DELAYED_PUT_S * 1e6 / 2
        mean = max(own_us + waited_us, left_us)
        delayed_us = DELAYED_PUT_S * 1e6 if traffic.delayed_share > 0.01 else 0.0
        stopped_us = longest_us * (1 - 0.01 / stopped) if stopped > 0.01 else 0.0
        return mean, max(3 * own_us, delayed_us, stopped_us, mean)
