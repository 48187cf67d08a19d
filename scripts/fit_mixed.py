"""Fits the wait of reads behind writes on some presets and shows it on others (M21, spillway/models/mixed.py).

    scripts/fit_mixed.py PROFILE...            profiles of `spillway profile preset:NAME --mixed`

Of each drive the model knows pure reads at the full drive, pure writes at the emptiest and the full one, and one mix:
half reads, 16 in flight, full. What is held against it are all other mixes, at all fills and concurrencies.
"""

import sys
from pathlib import Path

import numpy as np
from scipy.optimize import minimize_scalar

from spillway.profile import read_profile
from spillway.profile.mixes import Known, known_of, predictions

TRAINING = ("femu-default", "intel-p4510", "mqsim-default", "quickstart")


def median_error(known: Known, power: float) -> float:
    """Median of |predicted / measured - 1| of throughput over a drive's mixes."""
    return float(np.median(predictions(known, power).errors))


def main() -> None:
    """Prints phi and each drive's errors, plain MQSSD's beside."""
    drives = {profile.name: known_of(profile) for profile in map(read_profile, map(Path, sys.argv[1:]))}
    training = [known for name, known in drives.items() if name in TRAINING]

    def loss(power: float) -> float:
        return float(np.mean([np.mean(np.abs(np.log(predictions(known, power).ratio))) for known in training]))

    power = float(minimize_scalar(loss, bounds=(0.5, 4.0), method="bounded", options={"xatol": 0.02}).x)
    print(f"phi = {power:.2f}, fitted on {', '.join(name for name in drives if name in TRAINING)}")
    print(f"{'drive':20} {'':9} {'W us':>8} {'rho':>6} {'median':>8} {'plain':>8}")
    for name, known in drives.items():
        made = predictions(known, power)
        kind = "training" if name in TRAINING else "held out"
        plain = float(np.median(made.plain_errors))
        print(
            f"{name:20} {kind:9} {made.hold_us:8.0f} {known.collection.valid_share:6.2f} "
            f"{100 * median_error(known, power):7.1f}% {100 * plain:7.1f}%"
        )


if __name__ == "__main__":
    main()
