"""A profile in words: PIO's five guidelines (P30) answered for this drive, and its parameters as rows of a table."""

import math
from dataclasses import dataclass

from spillway.models import pio as pio_model
from spillway.profile.document import Estimate, Pio, Profile
from spillway.profile.estimate import pio_samples
from spillway.profile.points import PAGE_BYTES

UNKNOWN = "unknown"
FLAT = 1.05  # what is within 5 % is called the same, as for knees
WIDE = 2.0
DEAR = 1.5  # small writes are worth a warning from this factor on. Source: guess


@dataclass(frozen=True)
class Guideline:
    """One of the five: what the paper says, and what it means for this drive."""

    title: str
    sentence: str


def size_name(bs_bytes: int) -> str:
    """``4 KiB``."""
    return f"{bs_bytes // 1024} KiB" if bs_bytes % 1024 == 0 else f"{bs_bytes} B"


def short(estimate: Estimate, unit: str = "") -> str:
    """``2.81 (2.76 to 2.86)``: three digits, the interval where it is known."""
    if not estimate.known:
        return UNKNOWN
    tail = f" {unit}" if unit else ""
    if math.isinf(estimate.high):
        return f"over {_digits(estimate.value)}{tail}"
    if math.isnan(estimate.low):
        return f"{_digits(estimate.value)}{tail}"
    return f"{_digits(estimate.value)}{tail} ({_digits(estimate.low)} to {_digits(estimate.high)})"


def _digits(value: float) -> str:
    if not math.isfinite(value):
        return "∞" if value > 0 else UNKNOWN
    decimals = max(0, 2 - math.floor(math.log10(abs(value)))) if value else 0
    return f"{value:,.{min(decimals, 4)}f}"


def _whole(value: float) -> int:
    return max(1, math.ceil(value - 0.05))


def concurrency(estimate: Estimate) -> str:
    """A knee as text: ``16 to 24``."""
    if not estimate.known:
        return UNKNOWN
    low, high = _whole(estimate.low), _whole(estimate.high) if math.isfinite(estimate.high) else None
    if high is None:
        return f"more than {_whole(estimate.value)}"
    if high > WIDE * low:
        return f"about {_whole(estimate.value)}"  # a range that wide is no advice
    return str(low) if low == high else f"{low} to {high}"


def headline(profile: Profile) -> str:
    """The drive in a sentence."""
    pio = profile.pio.get(PAGE_BYTES)
    if pio is None or not pio.k_r.known:
        return f"{profile.name}: too little was measured to say what it can do."
    reads = f"{concurrency(pio.k_r)} read{'' if concurrency(pio.k_r) == '1' else 's'}"
    if not pio.k_w.known:
        return f"It takes {reads} at once to keep this drive busy; it was not written to."
    writes = f"{concurrency(pio.k_w)} write{'' if concurrency(pio.k_w) == '1' else 's'}"
    cost = pio.alpha.value
    if 1 / FLAT < cost < FLAT:
        price = "a 4 KiB write costs what a read costs"
    else:
        price = f"a 4 KiB write costs {_digits(cost)} reads"
    return f"It takes {reads} or {writes} at once to keep this drive busy, and {price}."


def guidelines(profile: Profile) -> list[Guideline]:
    """The five, as far as the profile can answer them."""
    pio = profile.pio.get(PAGE_BYTES)
    if pio is None:
        return []
    return [
        Guideline("Know thy device", _know(profile, pio)),
        Guideline("Exploit its concurrency", _exploit(profile, pio)),
        Guideline("Use it with care", _care(profile, pio)),
        Guideline("A read is not a write", _asymmetry(profile, pio)),
        Guideline("Asymmetry controls performance", _control(pio)),
    ]


def _know(profile: Profile, pio: Pio) -> str:
    read, write = profile.latency_us.get("read"), profile.latency_us.get("write")
    sentence = "One random 4 KiB read at a time takes "
    sentence += f"{_digits(read.value)} µs" if read and read.known else "an unknown time"
    if write and write.known:
        sentence += f", one write {_digits(write.value)} µs"
    sentence += f"; many at once reach {_digits(pio.read_max_mb_s)} MB/s of reads"
    if math.isfinite(pio.write_max_mb_s):
        sentence += f" and {_digits(pio.write_max_mb_s)} MB/s of writes"
    return sentence + "."


def _exploit(profile: Profile, pio: Pio) -> str:
    parts = []
    for op, estimate in (("read", pio.k_r), ("write", pio.k_w)):
        gain = _gain(profile, op)
        if not estimate.known or gain is None:
            continue
        if gain < FLAT or concurrency(estimate) == "1":
            parts.append(f"one {op} at a time already saturates the drive")
        else:
            parts.append(f"issue {concurrency(estimate)} {op}s at once, for {_digits(gain)} times the rate of one")
    return _sentence(parts)


def _gain(profile: Profile, op: str) -> float | None:
    """Largest IOPS over the IOPS of one operation at a time."""
    chosen = pio_samples(profile.samples, "random", op, PAGE_BYTES)
    alone = [s.iops for s in chosen if s.k == 1]
    return max(s.iops for s in chosen) / alone[0] if alone else None


def _care(profile: Profile, pio: Pio) -> str:
    parts = []
    for op, estimate in (("write", pio.k_w), ("read", pio.k_r)):
        if not estimate.known:
            continue
        if not math.isfinite(estimate.high):
            parts.append(f"{op}s still gained at the most that was tried")
            continue
        chosen = sorted(pio_samples(profile.samples, "random", op, PAGE_BYTES), key=lambda s: s.k)
        limit = _whole(estimate.high)
        at = next((s for s in chosen if s.k >= limit), chosen[-1])
        far = next((s for s in chosen if s.k >= 4 * limit), chosen[-1])
        sentence = (
            f"more than one {op} only adds latency" if limit == 1 else f"more than {limit} {op}s only add latency"
        )
        if far.k > at.k:
            times = _digits(far.latency_mean_us / at.latency_mean_us)
            rate = far.iops / at.iops
            change = "the same rate" if 1 / FLAT < rate < FLAT else f"{_digits(rate)} times the rate"
            sentence += f" (with {far.k} in flight {times} times that of {at.k}, at {change})"
        parts.append(sentence)
    return _sentence(parts)


def _asymmetry(profile: Profile, pio: Pio) -> str:
    if not pio.alpha.known:
        return "The drive was not written to, so what a write costs is not known."
    parts = [f"a 4 KiB write costs {_digits(pio.alpha.value)} reads"]
    if pio.alpha_rule == "slope":
        parts[0] += " (by slopes: software caps both at the same rate)"
    small = {bs: each for bs, each in profile.pio.items() if bs < PAGE_BYTES and each.alpha.known}
    dearest = max(small.values(), key=lambda each: each.alpha.value, default=None)
    if dearest is not None and dearest.alpha.value > DEAR * pio.alpha.value:
        parts.append(f"writes below 4 KiB cost {_digits(dearest.alpha.value)}x, so gather them into whole pages")
    elif dearest is not None:
        parts.append(f"smaller writes cost at most {_digits(dearest.alpha.value)} reads of their size")
    if pio.alpha.value > DEAR:
        parts.append("do not write to save a read, and delay writes that may be overtaken by others")
    return _sentence(parts)


def _control(pio: Pio) -> str:
    if not (pio.alpha.known and pio.k_r.known and pio.k_w.known):
        return "Needs both reads and writes."
    alpha, k_r, k_w = max(pio.alpha.value, 1e-9), max(1.0, pio.k_r.value), max(1.0, pio.k_w.value)
    writes = float(pio_model.speedup_of_batched_writes(0.5, alpha, k_w))
    reads = float(pio_model.speedup_of_batched_reads(0.5, alpha, k_r))
    both = float(pio_model.speedup_of_both_batched(0.5, alpha, k_r, k_w))
    better = "writes" if writes > reads else "reads"
    return (
        f"With as many reads as writes, batching {_whole(k_w)} writes gains {_digits(writes)}x, batching {_whole(k_r)} "
        f"reads {_digits(reads)}x, both {_digits(both)}x: batch the {better} first."
    )


def _sentence(parts: list[str]) -> str:
    text = "; ".join(parts) or "not enough was measured to say"
    return text[0].upper() + text[1:] + "."


def pio_rows(profile: Profile) -> list[tuple[str, ...]]:
    """Access size, alpha, k_r, k_w and the largest bandwidths, for people."""
    return [
        (
            size_name(bs),
            short(pio.alpha) + (" by slopes" if pio.alpha_rule == "slope" else ""),
            short(pio.k_r),
            short(pio.k_w),
            _digits(pio.read_max_mb_s) if math.isfinite(pio.read_max_mb_s) else UNKNOWN,
            _digits(pio.write_max_mb_s) if math.isfinite(pio.write_max_mb_s) else UNKNOWN,
        )
        for bs, pio in profile.pio.items()
    ]


PIO_HEADER = ("access", "alpha", "k_r", "k_w", "reads MB/s", "writes MB/s")


def mqssd_rows(profile: Profile) -> list[tuple[str, ...]]:
    """k and the four costs with their intervals, for people."""
    return [
        (
            str(k),
            short(c.sigma_us),
            short(c.beta_us),
            _r2(c.r2_write),
            short(c.tau_us),
            short(c.alpha_us),
            _r2(c.r2_read),
        )
        for k, c in profile.mqssd.items()
    ]


MQSSD_HEADER = ("k", "sigma µs", "beta µs", "R²", "tau µs", "alpha µs", "R²")


def _r2(value: float) -> str:
    return f"{value:.3f}" if math.isfinite(value) else "–"
