"""An LSM tree's shape in virtual time, without an engine: requests of `spillway-native lsm-simulate`, their results."""

from spillway.lsm.host_costs import EntryCosts, entry_costs, host_costs, read_host_costs
from spillway.lsm.simulate import DISTRIBUTIONS, SHAPES, Ratios, lsm_request, ratios, simulate

__all__ = [
    "DISTRIBUTIONS",
    "SHAPES",
    "EntryCosts",
    "Ratios",
    "entry_costs",
    "host_costs",
    "lsm_request",
    "ratios",
    "read_host_costs",
    "simulate",
]
