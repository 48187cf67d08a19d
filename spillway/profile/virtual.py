"""What is measured of a drive in virtual time: four procedures, each a conversation of its own with a new drive.

    SEQUENTIAL   a drive written in order    accesses in order: large ones, and 1 to 16 KiB against concurrency
    RANDOM       steady                      PIO's curves against concurrency, knees bisected; latency (P11-P20)
    STAGGERED    steady                      MQSSD's accesses for each k (M22-M24); writes change the drive, so that
                                             each k of writes begins with a new one
    MIXED        steady, at three fills      SNIA's mixes (M21)

What a point shows depends on what the drive went through before it. So a procedure is run whole or not at all, and the
same drive and seed give the same samples, whoever asks: `spillway profile`, and the table of published against
recovered figures (spillway/reproduce/recover.py).
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from spillway.native.process import Event, converse
from spillway.profile import adapt, estimate, grids, mixes
from spillway.profile.points import Point, Sample
from spillway.profile.prober import Prober, VirtualPace
from spillway.profile.target import Scaled, Target, check_size

Watch = Callable[[str, Event], None]


@dataclass(frozen=True)
class Procedure:
    """What is measured, and the state in which the drive is then."""

    label: str
    initial: str
    points: Callable[[Prober, float], None]  # with the drive's fill


@dataclass(frozen=True)
class Answered:
    """What came of a procedure, and the events it began with."""

    samples: list[Sample]
    started: Event
    ready: Event


def run(procedure: Procedure, target: Target, small: Scaled, seed: int, watch: Watch | None = None) -> Answered:
    """Measures ``procedure`` on a new drive, scaled as ``small`` says."""
    first: Event = {}

    def on_event(event: Event) -> None:
        if event["event"] == "started":
            first.update(event)
        elif watch is not None:
            watch(procedure.label, event)

    with converse("probe", on_event) as conversation:
        request = target.request(seed, procedure.initial, small.settings)
        prober = Prober(conversation, request, VirtualPace(small.cache_bytes, small.superblock_bytes))
        check_size(prober.ready, target.words)
        ready = prober.ready
        procedure.points(prober, target.fill)
        conversation.end()
    return Answered(prober.samples, first, ready)


def each(prober: Prober, points: Iterable[Point]) -> None:
    """Measures all of them."""
    for point in points:
        prober.measure(point)


def _sequential(prober: Prober, _: float) -> None:
    sizes = grids.sizes_for(prober.ready["lba_bytes"])
    each(prober, grids.bulk(estimate.OPS))
    each(prober, grids.pio_sequential(estimate.OPS, sizes, grids.SEQUENTIAL_CONCURRENCIES))


def _random(prober: Prober, _: float) -> None:
    """Everything that is only read comes before the first write: reads leave the drive as it is, writes do not."""
    sizes = grids.sizes_for(prober.ready["lba_bytes"])
    for op in estimate.OPS:
        each(prober, grids.pio_random((op,), sizes, grids.CONCURRENCIES))
        for _ in range(grids.BISECTIONS):
            each(prober, adapt.bisections(prober.samples, (op,), sizes))
        each(prober, grids.latency((op,)))


def _staggered(prober: Prober, fill: float) -> None:
    for k in grids.THREADS:
        each(prober, grids.mqssd("read", k, grids.R_PERCENTS))
    for k in grids.THREADS:
        prober.refill(fill)
        each(prober, grids.mqssd("write", k, grids.R_PERCENTS))


SEQUENTIAL = Procedure("in order", "sequential", _sequential)
RANDOM = Procedure("random", "steady", _random)
STAGGERED = Procedure("staggered", "steady", _staggered)
MIXED = Procedure("mixed", "steady", mixes.measure)
