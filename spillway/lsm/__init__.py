"""An LSM tree's shape in virtual time, without an engine: requests of `spillway-native lsm-simulate`, their results."""

from spillway.lsm.host_costs import (
    DEFAULT_COSTS,
    EntryCosts,
    HostCosts,
    entry_costs,
    host_costs,
    read_host,
    read_host_costs,
)
from spillway.lsm.simulate import DISTRIBUTIONS, SHAPES, Ratios, lsm_request, ratios, sample_row, simulate

__all__ = [
    "DEFAULT_COSTS",
    "DISTRIBUTIONS",
    "SHAPES",
    "EntryCosts",
    "HostCosts",
    "Ratios",
    "entry_costs",
    "host_costs",
    "lsm_request",
    "ratios",
    "read_host",
    "read_host_costs",
    "sample_row",
    "simulate",
]
