"""Figures that other programs than the package computed from the papers; see tests/python/reference/README.md."""

import csv
from pathlib import Path

import numpy as np

from spillway.models.arrays import Array

PLACE = Path(__file__).parent / "reference"


def rows(name: str) -> list[dict[str, str]]:
    lines = (PLACE / name).read_text(encoding="utf-8").splitlines()
    return list(csv.DictReader(line for line in lines if not line.startswith("#")))


def columns(name: str) -> dict[str, Array]:
    """The columns of a table that has nothing but numbers in them."""
    found = rows(name)
    return {key: np.array([float(row[key]) for row in found]) for key in found[0]}


# MQSSD Table 2 as printed: us per percent of a 1 GiB stream's pages (s, t) and us per page (beta, alpha).
K = np.array([1, 2, 4, 8, 16, 32, 64, 128], dtype=np.float64)
TABLE_2 = {
    "s": np.array([3.10e5, 2.54e5, 1.54e5, 8.02e4, 4.23e4, 2.15e4, 1.34e4, 9.98e3]),
    "beta": np.array([2.79, 3.01, 2.59, 1.93, 1.27, 0.891, 0.745, 0.697]),
    "t": np.array([1.47e5, 4.07e4, 1.05e4, 2.93e3, 931, 392, 263, 202]),
    "alpha": np.array([3.53, 1.71, 0.659, 0.265, 0.157, 0.121, 0.105, 0.0974]),
}
