"""The estimate of a run on a plain directory: what a drive model made of its writes, beside what the drive counted.

The model is given the writes that extents and write-back make of the engine's calls (native/fs), not those that the
kernel made of them. So two counts of host bytes stand side by side: the device's, from sysfs, and the model's.
``wa_device`` and ``lifetime`` of the estimate are NAND bytes and host bytes of the model alone, and hold for the device
only as far as the two counts are alike. Nothing here is in any other figure of a run.
"""

from typing import Any

from spillway.figures.amplification import nand_total, ratio
from spillway.figures.lifetime import Endurance, Price, Work, in_words, lifetime
from spillway.quantity import human_bytes

Document = dict[str, Any]

# Host bytes of the model and of the device further apart than this are said to differ. Source: guess
MOST_APART = 0.10
GIVEN = "given the run's writes as its own file system places them"  # what a model made its estimate of


def document(
    figures: Document, run: Work, device_bytes: float | None, whole: tuple[int | None, float | None], price: Price
) -> Document:
    """``estimate`` of summary.json. ``run``: of the measured phases; ``device_bytes``: host bytes that the drives under
    the directory counted in them, None where they are not known; ``whole``: capacity and flash of the model's preset.
    """
    nand, host = nand_total(figures["nand_bytes_programmed"]), figures["host_bytes_written"]
    failed = figures.get("failure") is not None
    wear = figures.get("wear") or {}
    work = Work(run.seconds, run.operations, run.user_bytes, host, nand)
    endurance = Endurance(
        capacity_bytes=figures["capacity_bytes"],
        physical_bytes=wear.get("physical_bytes"),
        rated_pe_cycles=wear.get("rated_pe_cycles"),
        mean_pe_cycles=wear.get("mean_pe_cycles"),
        full_capacity_bytes=whole[0],
        full_physical_bytes=whole[1],
    )
    return {
        "preset": figures["preset"],
        "capacity_bytes": figures["capacity_bytes"],
        "host_bytes_written": host,
        "host_bytes_written_by_cause": figures.get("host_bytes_written_by_cause"),
        "device_host_bytes_written": device_bytes,
        "host_bytes_ratio": ratio(host, device_bytes),
        "nand_bytes_programmed": nand,
        "wa_device": None if failed else ratio(nand, host),
        "lifetime": None if failed else lifetime(work, endurance, price),
        "failure": figures.get("failure"),
    }


def is_apart(estimate: Document) -> bool | None:
    """Whether the model was given host bytes that differ by much from the device's; None where those are not known."""
    found = estimate.get("host_bytes_ratio")
    return None if found is None else abs(found - 1) > MOST_APART


def of(summary: Document) -> Document | None:
    """The estimate of an arm in summary.json; of one that was recorded before the device's count stood in it, with
    that."""
    found: Document | None = summary.get("estimate")
    if not found or "device_host_bytes_written" in found:
        return found
    counted = (summary.get("drive") or {}).get("host_bytes_written")
    ratios = {"host_bytes_ratio": ratio(found["host_bytes_written"], counted)}
    return found | {"device_host_bytes_written": counted} | ratios


def counts_in_words(estimate: Document) -> str:
    """Both counts of host bytes, and whose writes the estimate is of where they are not alike."""
    counted, times = estimate["device_host_bytes_written"], estimate["host_bytes_ratio"]
    failed = estimate.get("failure") is not None
    given = f"{human_bytes(estimate['host_bytes_written'])} given to the model{' until it failed' if failed else ''}"
    own = "not known of the device" if counted is None else f"{human_bytes(counted)} counted by the device"
    both = f"{own}, {given}"
    if times is not None:
        both += f" ({_times(times)})"
    if failed or not estimate["host_bytes_written"] or is_apart(estimate) is False:
        return both  # of no writes there are neither
    apart = f"more than {100 * MOST_APART:.0f} % apart, so " if times is not None else ""
    return f"{both}: {apart}wa_device and lifetime of the estimate are of the model's writes, not of the device's"


def lifetime_in_words(estimate: Document) -> str:
    """What the model's drive lasts under the model's writes; empty where the estimate has none."""
    return in_words(estimate.get("lifetime"))


def _times(value: float) -> str:
    return f"{value:.3g} times as many" if value >= 2 else f"{100 * (value - 1):+.1f} %"
