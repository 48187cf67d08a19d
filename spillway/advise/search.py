"""From a grid of thousands to a ranked few.

1. every configuration that fits the memory, in closed form (traffic.py): the best of each shape, in each order
2. those are simulated once, on a small model (simulated.py); the neighbours of the best too, twice
3. the best of them, and the rivals, thoroughly: several seeds, without the part in which upper levels fill
4. for the best, and the best of another shape, extra over-provisioning and no discard; for the better of them Spillway
   and each of its lines with another value. Which of these gain something join the ranking

A Ctrl-C ends the search, and what has been simulated is ranked.
"""

from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from spillway.advise.configuration import LEVELED, MIB, SEPARATED, SHAPES, SINGLE, Configuration
from spillway.advise.decide import Decision, decide
from spillway.advise.drive import Drive
from spillway.advise.exact import exact
from spillway.advise.loop import System
from spillway.advise.predict import Prediction, predict
from spillway.advise.rank import ORDERS, TIE, gains, keeps, limits_of, ranked, sort_key
from spillway.advise.simulated import Setting, Simulate, in_parallel, quick, remembering, simulator
from spillway.advise.space import OF_ROCKSDB, configurations, least_held_bytes, neighbours, rivals, with_cache
from spillway.advise.traffic import Traffic, closed_form, settled
from spillway.advise.workload import Limits, Workload
from spillway.errors import DriveFull, Interrupted, SpillwayError
from spillway.lsm import DEFAULT_COSTS, HostCosts
from spillway.native.process import Event
from spillway.quantity import human_bytes

Watch = Callable[[str, Event], None]

SIMULATED = 48  # configurations, of each shape as many. Source: guess: a minute in all on two idle cores
FAR_BEHIND = 0.1  # of the best rate by closed forms, which are wrong by less. Source: guess
CLIMBS, CLIMBERS = 1, 4  # rounds of neighbours, of so many of the best
SEEDS = (1, 2)
CENTRES = 3  # the variants of the best may have a better one, whose own are looked at then, so often
EXTRA_OP = (0.07, 0.15, 0.28)  # shares of the drive: what makers leave between 1 TB, 960 GB, 800 GB and a TiB
NO_GARBAGE = 1 + TIE  # `wa_device` up to which more of the drive left free gains nothing that is ranked
SPILL_BYTES = 4 * 2**30  # the library's default capacity of a spill store
EAGER_READS, LAZY_READS = 0.15, 0.02  # share of reads from, and to, which rollback is eager, lazy (K8, K24)


@dataclass(frozen=True)
class Request:
    """What is asked. ``current``: the user's own configuration, to compare with, and the file that it is from."""

    load: Workload
    limits: Limits
    drive: Drive
    cores: int
    costs: HostCosts = DEFAULT_COSTS
    order: str = "throughput"
    top: int = 6
    discard: bool = True
    current: Configuration | None = None
    current_name: str = ""
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
    refused: dict[str, str] = field(default_factory=dict)  # rivals that could not be simulated, and why
    plain: tuple[Prediction, ...] = ()  # of which the variants are, where there are any
    shapes: dict[str, Prediction] = field(
        default_factory=dict
    )  # the best of each that is not among the ranked, by name
    ended: bool = False  # by a Ctrl-C, before everything was simulated

    @property
    def winner(self) -> Prediction:
        """The best by prediction."""
        return self.ranked[0]

    @cached_property
    def decision(self) -> Decision:
        """What is advised: the best, or RocksDB's defaults where it is not better by more than may be wrong."""
        limits = limits_of(self.request.load, self.request.limits)
        return decide(self.ranked, self.rivals.get(OF_ROCKSDB), self.request.order, limits)


def advise(request: Request, watch: Watch | None = None) -> Advice:
    """Searches. Raises SpillwayError where no configuration keeps the limits, Interrupted at a Ctrl-C before anything
    was simulated."""
    if request.limits.years is not None and request.load.puts and not request.drive.has_endurance:
        raise SpillwayError(
            f"--years needs to know how much may be written to the drive, and {request.drive.words} does not say it: "
            "give --tbw."
        )
    return _Search(request, watch).run()


class _Search:
    """A search under way: what was simulated is kept by what it depends on."""

    def __init__(self, request: Request, watch: Watch | None) -> None:
        self.request = request
        simulate = remembering(request.simulate)
        self.setting = Setting(request.load, request.drive, request.cores, simulate, request.costs)
        self.limits = limits_of(request.load, request.limits)
        self.quick: dict[Configuration, Traffic | None] = {}  # None: it does not fit the drive
        self.watch = watch
        self.done = 0
        self.phases: dict[str, list[int]] = {}  # of each what is done, and what there is to do
        self.asked: list[Configuration] = []  # to be simulated once
        self.exact: dict[Configuration, Prediction] = {}
        self.refused: dict[Configuration, str] = {}
        self.found: dict[Configuration, Prediction] = {}
        self.winners_variants: dict[str, Prediction] = {}
        self.drive_variants: list[tuple[Prediction, Prediction]] = []  # and the same with all of the drive, and discard
        self.base: Prediction | None = None  # of which the winner's variants are
        named = rivals(request.load, request.limits)
        if request.current is not None:
            named["yours"] = request.current
        self.named = {name: replace(each, discard=request.discard) for name, each in named.items()}

    def run(self) -> Advice:
        """The answer. Raises as ``advise`` does."""
        request = self.request
        grid = list(configurations(request.load, request.limits, request.cores, discard=request.discard))
        if not grid:
            raise SpillwayError(too_little_memory(request.load, request.limits))
        ended = False
        try:
            self.search(grid)
        except Interrupted:
            self.found |= self.from_simulated(self.asked)
            if not self.found:
                raise
            ended = True
        try:
            return self.answer(len(grid), ended)
        except SpillwayError as error:
            if ended:
                error.go_on("The search was ended before everything was simulated.")
            raise

    def search(self, grid: Sequence[Configuration]) -> None:
        """Simulates. Raises SpillwayError where nothing fits the drive, Interrupted at a Ctrl-C."""
        request = self.request
        self.found |= self.simulated_once(self.promising(grid))
        self.check_room(self.found)
        for _ in range(CLIMBS):
            best = self.best_of_each_shape(CLIMBERS)
            beside = [self.fitting(each) for one in best for _, each in neighbours(one.config, request.cores)]
            least = FAR_BEHIND * max(self.rough(each.config)[0] for each in best)
            self.found |= self.simulated_once(
                [each for each in beside if each is not None and self.rough(each)[0] >= least]
            )
        finalists = [each.config for each in self.best_of_each_shape(request.top)]
        self.thoroughly([*finalists, *self.named.values()])
        best = self.best()
        self.check_room(best)
        self.base = self.better_on_the_drive(best)
        for _ in range(CENTRES):
            named = self.variants(self.base)
            exact = self.thoroughly(list(named.values()), request.seeds[:1])
            self.winners_variants = {name: exact[each] for name, each in named.items() if each in exact}
            on_the_drive = self.on_the_drive(self.base)
            self.found |= {each.config: each for name, each in self.winners_variants.items()
                           if name != "spill" and name not in on_the_drive}  # fmt: skip
            better = self.better_variant(self.base)
            if better is None:
                break
            self.base = better

    def better_variant(self, base: Prediction) -> Prediction | None:
        """The first of all, if it is a variant of ``base`` that may have variants of its own: then it wins, and its
        reasons are to be told."""
        first = min(self.candidates(), key=self.key)
        is_centre = replace(first.config, extra_op=base.config.extra_op, discard=base.config.discard, spill="off",
                            spill_bytes=0) == base.config  # fmt: skip
        if is_centre or first.config not in [each.config for each in self.winners_variants.values()]:
            return None
        del self.exact[first.config]  # of one seed
        self.thoroughly([first.config])
        first = min(self.candidates(), key=self.key)
        return first if first.config in self.exact and first.config.spill == "off" else None

    def better_on_the_drive(self, best: Sequence[Prediction]) -> Prediction:
        """The best or the best of another shape, whichever comes first with its share of the drive and discard as suit
        it."""
        others = [each for each in best if each.config.shape != best[0].config.shape]
        bases = [best[0], *others[:1]]
        for plain in bases:
            named = list(self.on_the_drive(plain).values())
            found = self.thoroughly(named, self.request.seeds[:1])
            self.drive_variants += [(found[each], plain) for each in named if each in found]
        joined = [(each, each) for each in bases]
        joined += [(each, plain) for each, plain in self.drive_variants if gains(each, plain)]
        return min(joined, key=lambda pair: self.key(pair[0]))[1]

    def best_of_each_shape(self, count: int) -> list[Prediction]:
        """So many that were found, among them the best of each shape: one simulation as fast as puts are taken flatters
        the shapes unequally, since files gather in L0."""
        by_order = sorted(self.found.values(), key=self.key)
        first = {each.config.shape: each for each in reversed(by_order)}.values()
        others = [each for each in by_order if each not in first]
        return sorted([*first, *others[: max(0, count - len(first))]], key=self.key)

    def best(self) -> list[Prediction]:
        """What was found and is simulated thoroughly, best first."""
        return sorted((self.exact[each] for each in self.found if each in self.exact), key=self.key)

    def answer(self, considered: int, ended: bool) -> Advice:
        """Of what has been simulated. Raises SpillwayError where nothing keeps the limits."""
        request = self.request
        base = self.base or next(iter(self.best()), None)
        candidates = self.candidates()
        everything = [*candidates, *(each for each in self.found.values() if each.config not in self.exact)]
        if not any(keeps(each, self.limits) for each in candidates):
            by_order = sorted(everything, key=self.key)
            ranked(by_order, self.limits, request.order)  # raises, or some of those simulated once keep them
            candidates = [each for each in by_order if keeps(each, self.limits)][: request.top]
        every = ranked(candidates, self.limits, request.order)
        own = every[: request.top]
        shown = {each.config.shape for each in own}
        shapes = {each.config.shape: each for each in reversed(every) if each.config.shape not in shown}
        rivals_ = {name: self.exact[each] for name, each in self.named.items() if each in self.exact}
        refused = {name: self.refused[each] for name, each in self.named.items() if each in self.refused}
        known = set() if ended else set(self.named) - set(rivals_) - set(refused)
        without_room = tuple(name for name in self.named if name in known)
        return Advice(
            request, own, rivals_, considered, self.done, self.winners_variants, without_room, refused,
            (base,) if base else (), {f"the best {shape}": each for shape, each in shapes.items()}, ended,
        )  # fmt: skip

    def candidates(self) -> list[Prediction]:
        """What may be ranked of what was simulated thoroughly."""
        spilling = [each for name, each in self.winners_variants.items() if name == "spill"]
        gaining = [each for each, plain in self.drive_variants if gains(each, plain)]
        return [*self.best(), *gaining, *spilling]

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

    def key(self, prediction: Prediction) -> tuple[bool, float, float, float, float]:
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
        load, drive, cores, costs = request.load, request.drive, request.cores, request.costs
        traffic = settled(load, config, closed_form(load, config, drive, cores, costs))
        rate = System(load, config, drive, traffic, cores, costs).rough_throughput()
        if request.limits.space_bytes is not None:
            rate *= min(1.0, request.limits.space_bytes / traffic.held_bytes) ** 2
        return rate, -traffic.wa_app * traffic.wa_device

    def simulated_once(self, configs: Sequence[Configuration]) -> dict[Configuration, Prediction]:
        """Predictions from one simulation of each write path; those that differ in reads alone share one."""
        self.asked += configs
        paths = [each for each in dict.fromkeys(map(_written, configs)) if each not in self.quick]
        phase = "simulate"

        def one(path: Configuration) -> None:
            traffic: Traffic | None = None
            with suppress(DriveFull):
                traffic = quick(self.setting, path)
            self.quick[path] = traffic
            self.tell(phase)

        self.plan(phase, len(paths))

        in_parallel(one, paths, self.request.parallel)
        return self.from_simulated(configs)

    def from_simulated(self, configs: Sequence[Configuration]) -> dict[Configuration, Prediction]:
        """Predictions of those of which the write path has been simulated, and of their variants that read."""
        found = {}
        for config in configs:
            for each in self.read_variants(config):
                traffic = self.quick.get(_written(each))
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
        """Predictions with intervals over seeds, of those that fit the drive. Of a rival it is noted that the simulator
        refuses it. Raises SpillwayError for others."""
        distinct = [each for each in dict.fromkeys(configs) if each not in self.exact]
        of_rivals = set(self.named.values()) - set(self.found)
        phase = "simulate at the mix's rate"

        def one(config: Configuration) -> None:
            try:
                found = exact(self.setting, _written(config), seeds or self.request.seeds, config)
                if self.fits(found):
                    self.exact[config] = found
            except DriveFull:
                pass
            except Interrupted:
                raise
            except SpillwayError as error:
                if config not in of_rivals:
                    raise
                self.refused[config] = str(error)
            self.tell(phase)

        self.plan(phase, len(distinct))
        in_parallel(one, distinct, self.request.parallel)
        return {config: self.exact[config] for config in configs if config in self.exact}

    def variants(self, base: Prediction) -> dict[str, Configuration]:
        """The winner with each of its lines as its neighbours have it, and what has no neighbours: the shape, Spillway,
        discard."""
        request, winner = self.request, base.config
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
        named |= self.on_the_drive(base)
        if request.load.puts:
            spilling = replace(winner, spill=rollback_for(request.load), spill_bytes=SPILL_BYTES)
            named["spill"] = spilling
        own = self.rough(winner)[0]
        return {name: each for name, each in named.items() if self.rough(each)[0] >= FAR_BEHIND * own}

    def on_the_drive(self, plain: Prediction) -> dict[str, Configuration]:
        """The winner with more of the drive left free, and without discard, where the data leave room and there is
        something to gain."""
        if not self.request.load.puts:
            return {}
        winner = plain.config
        freer = {f"extra OP {share:.0%}": replace(winner, extra_op=share) for share in EXTRA_OP}
        found = freer if plain.wa_device.value > NO_GARBAGE else {}
        if winner.discard:
            found = found | {"no discard": replace(winner, discard=False)}
            found |= {f"no discard, {name}": replace(each, discard=False) for name, each in freer.items()}
        needed = closed_form(self.request.load, winner, self.request.drive, self.request.cores).held_bytes
        room = 1 - needed / self.request.drive.capacity_bytes
        return {name: each for name, each in found.items() if each.extra_op <= room}

    def fitting(self, config: Configuration) -> Configuration | None:
        return with_cache(config, self.request.load, self.request.limits)

    def predicted(self, config: Configuration, traffic: Traffic) -> Prediction:
        request, load = self.request, self.request.load
        own = settled(load, config, traffic)
        return predict(load, config, request.drive, own, request.cores, request.costs)

    def plan(self, phase: str, count: int) -> None:
        """So many configurations more are simulated in a phase."""
        self.phases.setdefault(phase, [0, 0])[1] += count
        self.show(phase)

    def tell(self, phase: str) -> None:
        """One is simulated."""
        self.done += 1
        self.phases[phase][0] += 1
        self.show(phase)

    def show(self, phase: str) -> None:
        if self.watch is not None:
            done, total = self.phases[phase]
            event: dict[str, Any] = {"event": "progress", "phase": phase, "done": done, "total": total}
            self.watch("advise", event | {"unit": "configurations", "rate_per_s": None})


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
