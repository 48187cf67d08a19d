"""A preset's drive as `spillway profile` measures it, and PIO's numbers of it for accesses of 4 KiB."""

from dataclasses import dataclass
from pathlib import Path

from spillway.errors import SpillwayError
from spillway.profile.saturation import Saturation, measure_saturation, saturation_of_profile
from spillway.profile.target import parse_target, scaled
from spillway.ssd.drive import PAGE_BYTES, Drive


@dataclass(frozen=True)
class MeasuredDrive:
    """A drive of which every ``open`` gives another, in the same state: steady, scaled as for a profile."""

    preset: str
    settings: tuple[tuple[str, str], ...]
    saturation: Saturation
    seed: int = 1
    fill: float = 1.0  # share of it that holds data

    def open(self, threads: bool = False) -> Drive:
        """A new drive; enter it as a ``with`` block. ``threads``: each I/O is issued by a thread of its own."""
        return Drive(self.preset, settings=dict(self.settings), fill=self.fill, seed=self.seed, threads=threads)

    @property
    def reads_at_once(self) -> int:
        """k_r in whole reads."""
        return max(1, round(self.saturation.pio.k_r.value))

    @property
    def writes_at_once(self) -> int:
        """k_w in whole writes."""
        return max(1, round(self.saturation.pio.k_w.value))

    def read_us(self, k: int) -> float:
        """Mean time per page read with ``k`` in flight."""
        return self.saturation.us("read", k)

    def write_us(self, k: int) -> float:
        """Mean time per page written with ``k`` in flight."""
        return self.saturation.us("write", k)


def measured_drive(
    preset: str,
    *,
    settings: tuple[str, ...] = (),
    profile: Path | None = None,
    seed: int = 1,
    fill: float = 1.0,
) -> MeasuredDrive:
    """``preset`` with the KEY=VALUE of ``settings`` set over it, and so much of it holding data. Its numbers are those
    of a profile's directory, or measured, which takes a second or two. Raises SpillwayError for an unknown preset, and
    for one whose reads and writes were not both measured."""
    target = parse_target(f"preset:{preset}", settings=settings, fill=str(fill))
    small = scaled(target)
    if profile is not None:
        saturation = saturation_of_profile(profile, PAGE_BYTES)
    else:
        place = target.request(seed, "steady", small.settings)["target"]
        saturation = measure_saturation(target, place, PAGE_BYTES, seed, small)
    pio = saturation.pio
    if not (pio.k_r.known and pio.k_w.known and pio.alpha.known):
        raise SpillwayError(f"{preset}: k_r, k_w and alpha are not all known; profile the drive with reads and writes.")
    own = (setting.partition("=")[::2] for setting in settings)
    return MeasuredDrive(preset, tuple({**small.settings, **dict(own)}.items()), saturation, seed, fill)
