"""An LSM tree's shape in virtual time, without an engine: requests of `spillway-native lsm-simulate`, their results."""

from spillway.lsm.simulate import DISTRIBUTIONS, SHAPES, Ratios, lsm_request, ratios, simulate

__all__ = ["DISTRIBUTIONS", "SHAPES", "Ratios", "lsm_request", "ratios", "simulate"]
