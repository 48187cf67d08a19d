"""What all models share: the type of their arguments and results, and how a quantity out of range is refused."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from spillway.errors import SpillwayError

Array = NDArray[np.float64]

PAGE_BYTES = 4096  # B, a page as the host sees it. Source: MQSSD section 4.2 (M9); PIO section 2 (P12)

MOST_SHOWN = 60  # characters of what is no number


def numbers(name: str, value: ArrayLike) -> Array:
    """``value`` as an array of floats. Raises SpillwayError for what are no real numbers, such as texts, dates and
    lists of lists of different lengths. ``name`` is what the sentence calls it."""
    try:
        array = np.asarray(value)
        if array.dtype.kind not in "biufO" or any(each is None for each in array.flat if array.dtype.kind == "O"):
            raise TypeError
        return np.asarray(array, dtype=np.float64)
    except (TypeError, ValueError):
        said = repr(value)
        shown = said if len(said) <= MOST_SHOWN else f"{said[:MOST_SHOWN]}…"
        raise SpillwayError(f"{name} must be a number or an array of numbers; it is {shown}.") from None


def quantity(name: str, value: ArrayLike, *, least: float = 0.0, above: bool = True) -> Array:
    """``value`` as an array of floats.

    Raises SpillwayError unless every element is finite and greater than ``least``, or, with ``above`` false, at least
    ``least``. ``name`` is what the sentence calls it.
    """
    array = numbers(name, value)
    inside = array > least if above else array >= least
    if not (np.isfinite(array) & inside).all():
        bound = f"greater than {least:g}" if above else f"at least {least:g}"
        raise SpillwayError(f"{name} must be {bound} and finite; it is {np.array2string(array, threshold=8)}.")
    return array


def share(name: str, value: ArrayLike) -> Array:
    """``value`` as an array of shares. Raises SpillwayError unless every element is between 0 and 1."""
    array = numbers(name, value)
    if not ((array >= 0) & (array <= 1)).all():
        raise SpillwayError(f"{name} must be between 0 and 1; it is {np.array2string(array, threshold=8)}.")
    return array


def percent(name: str, value: ArrayLike) -> Array:
    """``value``, in percent, as an array of shares. Raises SpillwayError unless it is between 0 and 100."""
    array = numbers(name, value)
    if not ((array >= 0) & (array <= 100)).all():
        raise SpillwayError(f"{name} must be between 0 and 100 %; it is {np.array2string(array, threshold=8)}.")
    return array / 100.0


def throughput_mb_s(page_cost_us: ArrayLike, page_bytes: ArrayLike = PAGE_BYTES) -> Array:
    """B / page_cost, MB/s: bytes per microsecond are megabytes (10^6) per second. Broadcasts (M1, eq 1)."""
    return quantity("page_bytes", page_bytes) / quantity("page_cost_us", page_cost_us)
