"""A drive, a load and answers to try `spillway advise` with: nothing native, and the simulator's stand-in."""

from functools import cache
from typing import Any

import fake_lsm

from spillway.advise.configuration import Configuration
from spillway.advise.drive import Drive, ServiceTimes
from spillway.advise.exact import exact
from spillway.advise.predict import Prediction, predict
from spillway.advise.search import Advice, Request, advise
from spillway.advise.simulated import Setting
from spillway.advise.traffic import closed_form
from spillway.advise.workload import Limits, Workload
from spillway.profile.document import UNKNOWN, Estimate, Pio

GIB = 2**30

# A drive that reads 4 KiB in 60 us, 500,000 of them a second at most, and writes 1.6 GB/s in order.
READS = {
    4096: [(k, max(60.0, 2.0 * k), max(70.0, 3.0 * k)) for k in (1, 2, 4, 8, 16, 32, 64, 128, 256)],
    16384: [(k, max(80.0, 6.0 * k), max(95.0, 9.0 * k)) for k in (1, 2, 4, 8, 16, 32, 64, 128, 256)],
}
STREAMS = {
    "read": [(1, 1200.0), (2, 2200.0), (4, 3000.0), (8, 3050.0), (16, 3060.0)],
    "write": [(1, 700.0), (2, 1200.0), (4, 1600.0), (8, 1620.0), (16, 1620.0)],
}
DRIVE = Drive(
    name="made",
    words="made for tests",
    request={"preset": "", "preset_file": "", "preset_dirs": [], "set": {}},
    capacity_bytes=1000 * 10**9,
    physical_bytes=1100e9,
    rated_pe_cycles=3000.0,
    rated_bytes=None,
    data_share=0.91,
    least_capacity_bytes=8 * GIB,
    times=ServiceTimes(READS, STREAMS),
    pio=Pio(UNKNOWN, Estimate(32, 28, 36), Estimate(8, 7, 9), write_max_mb_s=900.0, read_max_mb_s=2000.0),
)
LOAD = Workload(100 * 10**9, 16, 1000, 0.5, 0.4, 0.1, 100, None, 8)


def prediction(load: Workload, config: Configuration, cores: int = 8) -> Prediction:
    """In closed form."""
    return predict(load, config, DRIVE, closed_form(load, config, DRIVE, cores), cores)


def ask(load: Workload, config: Configuration, cores: int = 8) -> Prediction:
    """By the stand-in."""
    return exact(Setting(load, DRIVE, cores, fake_lsm.simulate), config, (1, 2), config)


@cache
def advice(load: Workload = LOAD, limits: Limits | None = None, **more: Any) -> Advice:
    """The answer to a question about the made drive, from few simulations."""
    options: dict[str, Any] = {"cores": 2, "simulated": 12, "simulate": fake_lsm.simulate} | more
    return advise(Request(load=load, limits=limits or Limits(memory_bytes=GIB), drive=DRIVE, **options))
