"""Fits the wait of reads behind writes on some presets and shows it on others (M21, spillway/models/mixed.py).

    scripts/fit_mixed.py PROFILE...            profiles of `spillway profile preset:NAME --mixed`

Of each drive the model knows pure reads and pure writes at the emptiest and the full drive, and one mix: half reads,
four in flight, full. What is held against it are all other mixes, at all fills and concurrencies. With --profiles,
`scripts/compared.py` keeps the profiles that this takes.
"""

import sys
from pathlib import Path

import numpy as np
from scipy.optimize import minimize

from spillway.models.arrays import Array
from spillway.profile import read_profile
from spillway.profile.mixes import TRAINING, known_of, predictions


def main() -> None:
    """Prints phi and psi, and each drive's errors, plain MQSSD's beside."""
    drives = {profile.name: known_of(profile) for profile in map(read_profile, map(Path, sys.argv[1:]))}
    training = [known for name, known in drives.items() if name in TRAINING]

    def loss(common: Array) -> float:
        return float(
            np.mean(
                [
                    np.mean(np.abs(np.log(predictions(known, float(common[0]), float(common[1])).ratio)))
                    for known in training
                ]
            )
        )

    found = minimize(
        loss, np.array([1.5, 0.5]), method="Nelder-Mead", options={"xatol": 0.02, "fatol": 1e-4, "maxfev": 80}
    ).x
    power, growth = float(found[0]), float(found[1])
    print(f"phi = {power:.2f}, psi = {growth:.2f}, fitted on {', '.join(name for name in drives if name in TRAINING)}")
    print(f"{'drive':20} {'':9} {'W us':>8} {'rho':>6} {'median':>8} {'plain':>8}")
    for name, known in drives.items():
        made = predictions(known, power, growth)
        kind = "training" if name in TRAINING else "held out"
        plain = float(np.median(made.plain_errors))
        print(
            f"{name:20} {kind:9} {made.hold_us:8.0f} {known.collection.valid_share:6.2f} "
            f"{100 * float(np.median(made.errors)):7.1f}% {100 * plain:7.1f}%"
        )


if __name__ == "__main__":
    main()
