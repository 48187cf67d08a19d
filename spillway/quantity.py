"""Sizes, shares, times and near misses: how people write numbers and names.

MB = 10^6 bytes, MiB = 2^20 bytes, as everywhere in this project.
"""

import difflib
import re
from collections.abc import Iterable
from decimal import Decimal, InvalidOperation

from spillway.errors import SpillwayError

_UNITS = {"": 1, "b": 1}
for _power, _letter in enumerate("kmgtp", start=1):
    _UNITS[f"{_letter}b"] = 1000**_power
    _UNITS[f"{_letter}ib"] = 1024**_power

MOST_BYTES = 2**63 - 1  # of a file or a device, by POSIX' off_t
MOST_SECONDS = 86_400.0  # no limit of a latency is longer than a day. Source: guess
MOST_RATE = 1e9  # operations a second: one in each nanosecond, the resolution of arrivals
LEAST_RATE = 1e-3  # one in a quarter of an hour. Source: the simulator of the tree takes no less
_TIMES = {"us": Decimal("1e-6"), "µs": Decimal("1e-6"), "ms": Decimal("1e-3"), "s": Decimal(1), "min": Decimal(60)}
_TIME = re.compile(r"\s*([0-9]+(?:\.[0-9]+)?)\s*([a-zµ]*)\s*")
_RATE = re.compile(r"\s*[0-9]*\.?[0-9]+(?:[eE][+-]?[0-9]+)?\s*")  # float() takes 1_000 and the digits of any script
_WHOLE = re.compile(r"[0-9]{1,18}")  # isdigit() takes ² too, and int() no more than some thousand digits
_SIZE = re.compile(r"\s*([0-9]+(?:\.[0-9]+)?)\s*([A-Za-z]*)\s*")


def parse_size(text: object, what: str) -> int:
    """Bytes of ``4096``, ``"8GiB"`` or ``"1.5 TB"``; ``what`` names the value in the error. Raises SpillwayError."""
    match = _SIZE.fullmatch(str(text)) if not isinstance(text, bool) else None
    factor = _UNITS.get(match.group(2).lower()) if match else None
    if match is None or factor is None:
        raise SpillwayError(f"{what} is {text!r}, which is not a size: write bytes or a unit, such as 4096 or 8GiB.")
    size = Decimal(match.group(1)) * factor
    if size != size.to_integral_value():
        raise SpillwayError(f"{what} is {text!r}, which is not a whole number of bytes.")
    if size > MOST_BYTES:
        raise SpillwayError(f"{what} is more than {MOST_BYTES} bytes, which no drive has; write a smaller size.")
    return int(size)


def parse_share(text: str, what: str) -> float:
    """A fraction of a whole: ``0.2``, ``20%``, or ``20`` (above 1, a number is a percentage). Raises SpillwayError."""
    number = text.strip()
    try:
        if not number.isascii() or "_" in number:  # which Decimal takes
            raise InvalidOperation
        share = Decimal(number.removesuffix("%"))
    except InvalidOperation:
        raise SpillwayError(f"{what} is {text!r}, which is not a share: write 0.2 or 20%.") from None
    if share.is_finite() and (number.endswith("%") or share > 1):
        share /= 100
    if not share.is_finite() or not 0 <= share <= 1:
        raise SpillwayError(f"{what} is {text!r}, which is not between 0 and 1 (or 0% and 100%).")
    return float(share)


def parse_time(text: str, what: str) -> float:
    """Seconds of ``500us``, ``10ms``, ``1.5 s`` or ``2min``; ``what`` names the value in the error. Raises
    SpillwayError."""
    match = _TIME.fullmatch(text)
    factor = _TIMES.get(match.group(2)) if match else None
    if match is None or factor is None:
        raise SpillwayError(f"{what} is {text!r}, which is not a time: write it with us, ms, s or min, as 10ms.")
    seconds = float(Decimal(match.group(1)) * factor)
    if not 0 < seconds <= MOST_SECONDS:
        raise SpillwayError(f"{what} is {text!r}; it takes a time above 0 and of at most a day.")
    return seconds


def parse_rate(text: str, what: str) -> float:
    """Operations a second, between ``LEAST_RATE`` and ``MOST_RATE``; ``what`` names the value in the error. Raises
    SpillwayError."""
    rate = float(text) if _RATE.fullmatch(text) else 0.0
    if not LEAST_RATE <= rate <= MOST_RATE:
        raise SpillwayError(
            f"{what} is {text!r}, which is not a rate: write operations a second, from {LEAST_RATE:g} to {MOST_RATE:g}."
        )
    return rate


def whole_number(text: str) -> int | None:
    """The number that a text is in ASCII digits, at most 18 of them; None for any other text."""
    return int(text) if _WHOLE.fullmatch(text) else None


def check_text(words: Iterable[str]) -> None:
    """Raises SpillwayError for words of a command line with bytes that are no UTF-8: no file that a run leaves could
    hold them."""
    for word in words:
        try:
            word.encode()
        except UnicodeEncodeError:
            raise SpillwayError(f"{word!a}: this has bytes that are not UTF-8; write it in UTF-8.") from None


def nearest(text: str, candidates: Iterable[str]) -> str:
    """How a sentence about an unknown name ends: ``; did you mean 'X'?`` where one is near, else a full stop."""
    found = difflib.get_close_matches(text, list(candidates), n=1, cutoff=0.5)
    return f"; did you mean {found[0]!r}?" if found else "."


def human_bytes(count: float) -> str:
    """Bytes for people, in powers of 1024 with one decimal: ``4.0 GiB``."""
    for unit in ("B", "KiB", "MiB", "GiB", "TiB"):
        if abs(count) < 1024 or unit == "TiB":
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1024
    raise AssertionError("unreachable")
