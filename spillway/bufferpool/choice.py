"""How many pages a pool shall write back at once, as the command is told."""

from pathlib import Path

from spillway.bufferpool.pool import Workload, WriteBack, check, opened
from spillway.bufferpool.tuned import tuning, write_back_of
from spillway.errors import SpillwayError
from spillway.profile.saturation import measure_saturation, saturation_of_profile
from spillway.profile.target import Target, scaled

MOST_DIGITS = 9  # of n_w: the native side says what a pool of a size takes


def chosen_write_back(words: str, target: Target, workload: Workload, seed: int, profile: Path | None) -> WriteBack:
    """A number, ``profile`` (from the k_w of the profile in that directory; without one it is measured), or ``auto``.

    Raises SpillwayError for other words, and where k_w is not found.
    """
    if words == "auto":
        return tuning(workload)
    if words != "profile":
        if not (words.isascii() and words.isdigit() and len(words) <= MOST_DIGITS and int(words) > 0):
            raise SpillwayError(f"--write-back is {words!r}: it takes a number of pages, profile or auto.")
        return WriteBack(int(words))
    check(workload)
    if profile is not None:
        drive = saturation_of_profile(profile, workload.page_bytes).pio
    else:
        small = scaled(target) if target.emulated else None
        with opened(target, small) as place:
            drive = measure_saturation(target, place.target, workload.page_bytes, seed, small).pio
    found = write_back_of(drive, workload)
    if found is None:
        raise SpillwayError(f"{target.words}: its k_w was not found; give --write-back a number, or auto.")
    return found
