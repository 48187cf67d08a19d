"""From a grid of thousands to a ranked few.

1. every configuration that fits the memory, in closed form (traffic.py): the best of each shape, in each order
2. those are simulated once, on a small model (simulated.py); the neighbours of the best too, twice
3. the best of them, and the rivals, thoroughly: several seeds, without the part in which the tree grows
4. Spillway, and no discard, for the winner
"""

from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

from spillway.advise.configuration import LEVELED, MIB, SEPARATED, SHAPES, SINGLE, Configuration
from spillway.advise.drive import Drive
from spillway.advise.exact import exact
from spillway.advise.predict import Prediction, System, predict
from spillway.advise.rank import ORDERS, keeps, limits_of, ranked, sort_key
from spillway.advise.simulated import Setting, Simulate, in_parallel, quick, simulator
from spillway.advise.space import configurations, least_held_bytes, neighbours, rivals, with_cache
from spillway.advise.traffic import Traffic, closed_form, settled
from spillway.advise.workload import Limits, Workload
from spillway.errors import DriveFull, SpillwayError
from spillway.native.process import Event
from spillway.quantity import human_bytes

Watch = Callable[[str, Event], None]

SIMULATED = 48  # configurations, of each shape as many. Source: guess: a minute in all on two idle cores
FAR_BEHIND = 0.1  # of the best rate by closed forms, which are wrong by less. Source: guess
CLIMBS, CLIMBERS = 1, 3  # rounds of neighbours, of so many of the best
SEEDS = (1, 2)
SPILL_BYTES = 4 * 2**30  # the library's default capacity of a spill store
EAGER_READS, LAZY_READS = 0.15, 0.02  # share of reads from, and to, which rollback is eager, lazy (K8, K24)


@dataclass(frozen=True)
class Request:
    """What is asked. ``current``: the user's own configuration, to compare with."""

    load: Workload
    limits: Limits
    drive: Drive
    cores: int
    order: str = "throughput"
    top: int = 6
    discard: bool = True
    current: Configuration | None = None
    simulate: Simulate = field(default_factory=simulator)
    simulated: int = SIMULATED
    seeds: Sequence[int] = SEEDS
    parallel: int = 1  # simulations at once


@dataclass(frozen=True)
class Advice:
    """The answer: ``ranked`` within the limits, best first; ``rivals`` as they are, by name."""

    request: Request
    ranked: list[Prediction]
    rivals: dict[str, Prediction]
    considered: int
    simulated: int
    variants: dict[str, Prediction] = field(default_factory=dict)  # of the winner, one line different, by that line
    without_room: tuple[str, ...] = ()  # rivals whose data and compactions do not fit the drive

    @property
    def winner(self) -> Prediction:
        """The best."""
        return self.ranked[0]


def advise(request: Request, watch: Watch | None = None) -> Advice:
    """Searches. Raises SpillwayError where no configuration keeps the limits, Interrupted at a Ctrl-C."""
    return _Search(request, watch).run()


class _Search:
    """A search under way: what was simulated is kept by what it depends on."""

    def __init__(self, request: Request, watch: Watch | None) -> None:
        self.request = request
        self.setting = Setting(request.load, request.drive, request.cores, request.simulate)
        self.limits = limits_of(request.load, request.limits)
        self.quick: dict[Configuration, Traffic | None] = {}  # None: it does not fit the drive
        self.watch = watch
        self.done = 0

    def run(self) -> Advice:
        """The answer. Raises as ``advise`` does."""
        request = self.request
        grid = list(configurations(request.load, request.limits, request.cores, discard=request.discard))
        if not grid:
            raise SpillwayError(too_little_memory(request.load, request.limits))
        chosen = self.promising(grid)
        found = self.simulated_once(chosen)
        self.check_room(found)
        for _ in range(CLIMBS):
            best = sorted(found.values(), key=self.key)[:CLIMBERS]
            beside = [self.fitting(each) for one in best for _, each in neighbours(one.config, request.cores)]
            least = FAR_BEHIND * max(self.rough(each.config)[0] for each in best)
            found |= self.simulated_once([each for each in beside if each is not None and self.rough(each)[0] >= least])
        by_order = sorted(found.values(), key=self.key)
        finalists = [each.config for each in by_order[: request.top]]
        named = rivals(request.load, request.limits)
        if request.current is not None:
            named["yours"] = request.current
        named = {name: replace(each, discard=request.discard) for name, each in named.items()}
        exact = self.thoroughly([*finalists, *named.values()])
        best = sorted((exact[each] for each in finalists if each in exact), key=self.key)
        self.check_room(best)
        variants = self.variants(best[0].config)
        candidates = [*best, *(variants[name] for name in ("spill",) if name in variants)]
        everything = [*candidates, *(each for each in found.values() if each.config not in exact)]
        if not any(keeps(each, self.limits) for each in candidates):
            ranked(everything, self.limits, request.order)  # raises, or some of those simulated once keep them
            candidates = [each for each in everything if keeps(each, self.limits)][: request.top]
        own = ranked(candidates, self.limits, request.order)[: request.top]
        rivals_ = {name: exact[each] for name, each in named.items() if each in exact}
        without_room = tuple(name for name in named if name not in rivals_)
        return Advice(request, own, rivals_, len(grid), self.done, variants, without_room)

    def check_room(self, found: Collection[object]) -> None:
        """Raises SpillwayError where nothing of what was simulated fits the drive."""
        if not found:
            data, drive = human_bytes(self.request.load.data_bytes), human_bytes(self.request.drive.capacity_bytes)
            raise SpillwayError(
                f"--data is {data} on a drive of {drive}, which leaves no room for compactions: name a larger drive or "
                "a smaller data set."
            )

    def fits(self, prediction: Prediction) -> bool:
        """Whether the drive's partition holds what the configuration holds."""
        return prediction.held_bytes.value <= self.request.drive.capacity_bytes * (1 - prediction.config.extra_op)

    def key(self, prediction: Prediction) -> tuple[bool, float, float, bool, float]:
        """Those within the limits first; a rate that is kept makes the cheapest for the drive the best."""
        return not keeps(prediction, self.limits), *sort_key(prediction, self.request.order)

    def promising(self, grid: Sequence[Configuration]) -> list[Configuration]:
        """The best of each shape by closed forms, as many of each, in the order asked for and in the others."""
        request = self.request
        paths: dict[Configuration, Configuration] = {}  # of those that write alike one: which reads best is seen later
        for each in grid:
            own = paths.setdefault(_written(each), each)
            if each.block_bytes == own.block_bytes and each.bits_per_key > own.bits_per_key:
                paths[_written(each)] = each
        scored = self.worth_simulating([(each, self.rough(each)) for each in paths.values()])
        chosen: dict[Configuration, None] = {}
        orders = list(dict.fromkeys([request.order, "throughput", "wa-total"]))
        quota = max(1, request.simulated // (len(SHAPES) * len(orders)))
        for order in orders:
            column = {"wa-total": 1, "lifetime": 1}.get(order, 0)
            for shape in SHAPES:
                alike = [(scores, each) for each, scores in scored if each.shape == shape]
                alike.sort(key=lambda pair: pair[0][column], reverse=True)
                chosen |= dict.fromkeys(each for _, each in alike[:quota])
        return list(chosen)

    def worth_simulating(
        self, scored: list[tuple[Configuration, tuple[float, float]]]
    ) -> list[tuple[Configuration, tuple[float, float]]]:
        """Without those far behind: they take the simulator the longest, as they write the most."""
        best = max((rate for _, (rate, _) in scored), default=0.0)
        return [(each, scores) for each, scores in scored if scores[0] >= FAR_BEHIND * best]

    def rough(self, config: Configuration) -> tuple[float, float]:
        """(operations a second, less flash bytes of one), the first cut down by what breaks a limit."""
        request = self.request
        traffic = settled(request.load, config, closed_form(request.load, config, request.drive, request.cores))
        rate = System(request.load, config, request.drive, traffic, request.cores).rough_throughput()
        if request.limits.space_bytes is not None:
            rate *= min(1.0, request.limits.space_bytes / traffic.held_bytes) ** 2
        return rate, -traffic.wa_app * traffic.wa_device

    def simulated_once(self, configs: Sequence[Configuration]) -> dict[Configuration, Prediction]:
        """Predictions from one simulation of each write path; those that differ in reads alone share one."""
        paths = [each for each in dict.fromkeys(map(_written, configs)) if each not in self.quick]

        def one(path: Configuration) -> Traffic | None:
            traffic: Traffic | None = None
            with suppress(DriveFull):
                traffic = quick(self.setting, path)
            self.tell("simulate")
            return traffic

        self.quick |= dict(zip(paths, in_parallel(one, paths, self.request.parallel), strict=True))
        found = {}
        for config in configs:
            for each in self.read_variants(config):
                traffic = self.quick[_written(each)]
                prediction = None if traffic is None else self.predicted(each, traffic)
                if prediction is not None and self.fits(prediction):
                    found[each] = prediction
        return found

    def read_variants(self, config: Configuration) -> list[Configuration]:
        """The same writes with every block size and with and without filters."""
        found = [
            self.fitting(replace(config, bits_per_key=bits, block_bytes=block))
            for bits in (0, 10)
            for block in (4096, 16384)
        ]
        return list(dict.fromkeys([config, *(each for each in found if each is not None)]))

    def thoroughly(
        self, configs: Sequence[Configuration], seeds: Sequence[int] | None = None
    ) -> dict[Configuration, Prediction]:
        """Predictions with intervals over seeds, of those that fit the drive."""
        distinct = list(dict.fromkeys(configs))

        def one(config: Configuration) -> Prediction | None:
            found: Prediction | None = None
            with suppress(DriveFull):
                found = exact(self.setting, _written(config), seeds or self.request.seeds, config)
            self.tell("simulate with other seeds")
            return found if found is not None and self.fits(found) else None

        every = zip(distinct, in_parallel(one, distinct, self.request.parallel), strict=True)
        return {config: found for config, found in every if found is not None}

    def variants(self, winner: Configuration) -> dict[str, Prediction]:
        """The winner with each of its lines as its neighbours have it, and what has no neighbours: the shape, Spillway,
        discard."""
        request = self.request
        named = {}
        for line, config in neighbours(winner, request.cores):
            fitted = self.fitting(config)
            if fitted is not None:
                named[f"{line}={getattr(fitted, line)}"] = fitted
        for shape in (LEVELED, SINGLE):
            if shape not in (winner.shape, SEPARATED):
                named[f"shape={shape}"] = replace(winner, shape=shape, fanout=10 if shape == LEVELED else 1)
        named["bits_per_key"] = replace(winner, bits_per_key=0 if winner.bits_per_key else 10)
        named["block_bytes"] = replace(winner, block_bytes=16384 if winner.block_bytes == 4096 else 4096)
        if winner.discard:
            named["no discard"] = replace(winner, discard=False)
            named["no discard, extra OP"] = replace(winner, discard=False, extra_op=self.spare_share())
        elif self.spare_share():
            named["extra OP"] = replace(winner, extra_op=self.spare_share())
        if request.load.puts:
            spilling = replace(winner, spill=rollback_for(request.load), spill_bytes=SPILL_BYTES)
            named["spill"] = spilling
        own = self.rough(winner)[0]
        named = {name: each for name, each in named.items() if self.rough(each)[0] >= FAR_BEHIND * own}
        exact = self.thoroughly(list(named.values()), self.request.seeds[:1])
        return {name: exact[each] for name, each in named.items() if each in exact}

    def spare_share(self) -> float:
        """Share of the drive that the data leaves free, to a twentieth, at most a fourth."""
        needed = 2.2 * self.request.load.data_bytes / self.request.drive.capacity_bytes
        return max(0.0, min(0.25, int((1 - needed) * 20) / 20))

    def fitting(self, config: Configuration) -> Configuration | None:
        return with_cache(config, self.request.load, self.request.limits)

    def predicted(self, config: Configuration, traffic: Traffic) -> Prediction:
        load = self.request.load
        return predict(load, config, self.request.drive, settled(load, config, traffic), self.request.cores)

    def tell(self, phase: str) -> None:
        self.done += 1
        if self.watch is not None:
            event: dict[str, Any] = {"event": "progress", "phase": phase, "done": self.done, "total": None}
            self.watch("advise", event | {"unit": "simulations", "rate_per_s": None})


def _written(config: Configuration) -> Configuration:
    """What the write path depends on."""
    return replace(config, bits_per_key=0, block_bytes=4096, block_cache_bytes=0, direct_io=True)


def too_little_memory(load: Workload, limits: Limits) -> str:
    """Why no configuration fits, and what is enough for some."""
    indexes = least_held_bytes(load)
    return (
        f"No configuration fits {human_bytes(limits.memory_bytes)} of --memory: indexes of the data take at least "
        f"{human_bytes(indexes)}, beside memtables and a block cache; give {human_bytes(2 * indexes + MIB)} or more."
    )


def rollback_for(load: Workload) -> str:
    """When diverted writes are brought back: eager for readers, lazy for writers, else as the load goes (K8, K24)."""
    if load.reads >= EAGER_READS:
        return "eager"
    return "lazy" if load.reads <= LAZY_READS else "adaptive"


def default_order(load: Workload) -> str:
    """With a rate to keep the cheapest for the drive, else the fastest."""
    assert "wa-total" in ORDERS
    return "wa-total" if load.rate_ops_s is not None and load.puts else "throughput"
