"""Write amplification, from the user to the NAND (C1-C3).

    wa_app    = host bytes written / user bytes written          (papers: WA1, WA-A)
    wa_device = NAND bytes programmed / host bytes written       (papers: WA2, WA-D)
    wa_total  = wa_app * wa_device                               (papers: WA)

User bytes: key and value sizes of acknowledged writes. Host bytes: what reaches the drive, counted in its host
interface. NAND bytes: everything programmed, whatever its cause. Bytes are stored; ratios are derived where shown.
A ratio whose denominator is 0, or one of whose terms is not known, is None: never 0 and never infinite.
"""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Amplification:
    """Three ratios without unit; None where one cannot be had."""

    wa_app: float | None
    wa_device: float | None
    wa_total: float | None


def ratio(numerator: float | None, denominator: float | None) -> float | None:
    """numerator / denominator, or None where the one is not known or the other is not known or 0."""
    if numerator is None or not denominator:
        return None
    return numerator / denominator


def nand_total(by_cause: Mapping[str, float] | None) -> float | None:
    """NAND bytes programmed, over all causes; None without counters."""
    return None if by_cause is None else sum(by_cause.values())


def amplification(user_bytes: float | None, host_bytes: float | None, nand_bytes: float | None) -> Amplification:
    """The three ratios of one span of time, from the bytes written in it."""
    wa_app = ratio(host_bytes, user_bytes)
    wa_device = ratio(nand_bytes, host_bytes)
    return Amplification(wa_app, wa_device, None if wa_app is None or wa_device is None else wa_app * wa_device)
