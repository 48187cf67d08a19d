"""Why each line of the winner is as it is: what is predicted with another value, in a sentence with the figure."""

from collections.abc import Callable
from dataclasses import dataclass, replace

from spillway.advise.configuration import SEPARATED, SINGLE, UNIVERSAL, Configuration
from spillway.advise.predict import Prediction
from spillway.advise.rank import time_words
from spillway.advise.reads import false_positives, runs_of, sorted_runs
from spillway.advise.search import Advice
from spillway.quantity import human_bytes

Show = Callable[[object], str]

NOTICED = 0.02  # relative: a smaller difference is none


@dataclass(frozen=True)
class Reason:
    """A line of the winner, its value, and why."""

    line: str
    value: str
    sentence: str


def reasons(advice: Advice) -> list[Reason]:
    """In the order in which a configuration is read."""
    winner, config = advice.winner, advice.winner.config
    threads = str(config.compaction_threads)
    found = [Reason("shape", config.shape, _shape(advice))]
    if config.shape in ("leveled", SEPARATED):
        found.append(_line(advice, "fanout", f"{config.fanout:.4g}", "fanout", str))
        of_levels = "dynamic" if config.dynamic_levels else "static"
        found.append(_line(advice, "level sizes", of_levels, "dynamic_levels", _dynamic))
    found += [
        _line(advice, "L0 files", str(config.l0_files), "l0_files", str),
        _line(advice, "memtables", _memtables(config), "write_buffer_bytes", _size),
        _line(advice, "file size", _size(config.file_bytes), "file_bytes", _size),
        _line(advice, "compaction threads", threads, "compaction_threads", str),
        _line(advice, "subcompactions", str(config.subcompactions), "subcompactions", str),
        _line(advice, "block size", _size(config.block_bytes), "block_bytes", _size),
        Reason("filters", f"{config.bits_per_key} bits a key", _filters(advice)),
        Reason("direct I/O", "on" if config.direct_io else "off", _direct(winner)),
        Reason("discard", "on" if config.discard else "off", _discard(advice)),
        Reason("extra over-provisioning", f"{config.extra_op:.0%} of the drive", _extra_op(advice)),
        Reason("Spillway", config.spill, _spill(advice)),
    ]
    return found


def difference(winner: Prediction, other: Prediction) -> str:
    """What another configuration does otherwise, most important first; the words follow "with ..."."""
    parts = []
    rate = other.throughput_ops_s.value / winner.throughput_ops_s.value - 1
    if abs(rate) > NOTICED:
        more = "more" if rate > 0 else "fewer"
        parts.append(f"{abs(rate):.0%} {more} operations/s ({other.throughput_ops_s.value:,.0f})")
    if winner.flash_bytes_per_op.value:
        flash = other.flash_bytes_per_op.value / winner.flash_bytes_per_op.value - 1
        if abs(flash) > NOTICED:
            parts.append(f"{abs(flash):.0%} {'more' if flash > 0 else 'less'} flash an operation")
    for kind, own in winner.p99_us.items():
        if abs(other.p99_us[kind].value / max(own.value, 1e-9) - 1) > 0.1:
            parts.append(f"a p99 of {kind}s of {time_words(other.p99_us[kind].value)} for {time_words(own.value)}")
    space = other.held_bytes.value / winner.held_bytes.value - 1
    if abs(space) > 0.05:
        parts.append(f"{abs(space):.0%} {'more' if space > 0 else 'less'} space")
    return ", ".join(parts[:3]) or "no difference of 2 %"


def _line(advice: Advice, name: str, value: str, attribute: str, show: Show) -> Reason:
    own = {key: each for key, each in advice.variants.items() if key == attribute or key.startswith(f"{attribute}=")}
    said = [f"with {show(getattr(each.config, attribute))}: {difference(advice.winner, each)}" for each in own.values()]
    return Reason(
        name,
        value,
        _sentence("; ".join(said)) if said else "No other value was simulated, in which it would differ by itself.",
    )


def _shape(advice: Advice) -> str:
    winner = advice.winner
    runs = sorted_runs(winner.traffic)
    head = f"It has {runs:.3g} sorted runs and writes {winner.wa_app.value:.3g} bytes for each byte of the user"
    others = [f"{key.partition('=')[2]}: {difference(winner, each)}" for key, each in advice.variants.items()
              if key.startswith("shape=")]  # fmt: skip
    best = {each.config.shape: each for each in reversed(advice.ranked)}
    best.pop(winner.config.shape, None)
    others += [f"the best {shape}: {difference(winner, each)}" for shape, each in best.items()
               if f"shape={shape}" not in advice.variants]  # fmt: skip
    costs = {
        SINGLE: "; reads look into fewer runs, and the drive pays for it",
        UNIVERSAL: "; it writes little, and reads look into more runs and need more space",
        SEPARATED: "; values are not rewritten by compactions, and scans read each at random",
    }.get(winner.config.shape, "")
    return head + costs + ("." if not others else f"; {'; '.join(others)}.")


def _filters(advice: Advice) -> str:
    config, winner = advice.winner.config, advice.winner
    if not advice.request.load.gets:
        return "There are no gets, which alone use them."
    other = advice.variants.get("bits_per_key")
    passed = false_positives(config)
    _, runs = runs_of(advice.request.load, config, winner.traffic)
    looked_into = sum(each.count * each.probed(passed) for each in runs)
    what = "without them" if config.bits_per_key else "with 10 bits"
    head = f"A get reads {looked_into:.3g} blocks"
    return f"{head}; {what}: {difference(winner, other)}." if other else f"{head}."


def _direct(winner: Prediction) -> str:
    cache = human_bytes(winner.config.block_cache_bytes)
    return (
        f"The memory that is left, {cache}, is a block cache; through the page cache blocks would be held twice, and "
        "compactions would push out what readers need (P31)."
    )


def _discard(advice: Advice) -> str:
    winner = advice.winner
    if not advice.request.load.puts:
        return "Nothing is put, and so no file is deleted."
    other = _beside(advice, "discard")
    if not other:
        return f"It is not to be had here; `wa_device` is {winner.wa_device.value:.3g}."
    own, without = (winner, other[0]) if winner.config.discard else (other[0], winner)
    return f"With it `wa_device` is {own.wa_device.value:.3g}, without it {without.wa_device.value:.3g}."


def _extra_op(advice: Advice) -> str:
    winner = advice.winner
    if not advice.request.load.puts:
        return "Nothing is put, and so nothing is collected."
    other = _beside(advice, "extra_op")
    if not other:
        return "The data leave no space to spare."
    said = [f"with {each.config.extra_op:.0%} {each.wa_device.value:.3g}" for each in other]
    reason = "; with discard all that the files do not hold is spare already" if winner.config.discard else ""
    own = f"With {winner.config.extra_op:.0%} left out of the partition `wa_device` is {winner.wa_device.value:.3g}"
    return f"{own}, {', '.join(said)}{reason}."


def _beside(advice: Advice, line: str) -> list[Prediction]:
    """What was simulated and differs from the winner in this line alone, in its order."""
    own = advice.winner.config
    found = {
        getattr(each.config, line): each
        for each in (*advice.ranked, *advice.plain, *advice.variants.values())
        if each.config != own and replace(each.config, **{line: getattr(own, line)}) == own
    }
    return [found[value] for value in sorted(found)]


def _spill(advice: Advice) -> str:
    load, winner = advice.request.load, advice.winner
    if not load.puts:
        return "There are no writes to divert."
    held = winner.traffic.delayed_share + winner.traffic.stopped_share
    if winner.config.spill != "off":
        return f"Writers would be held up {held:.1%} of the time; diverted writes come back {winner.config.spill}ly."
    other = advice.variants.get("spill")
    told = "" if other is None else f"; with it ({other.config.spill}): {difference(winner, other)}"
    longest = winner.traffic.worst_wait_s * 1e6
    waits = f", at most {time_words(longest)}" if longest >= 1 else ""
    return f"Writers are held up {held:.1%} of the time{waits}{told}."


def _memtables(config: Configuration) -> str:
    return f"{config.write_buffers} of {_size(config.write_buffer_bytes)}"


def _size(value: object) -> str:
    return human_bytes(float(str(value))).replace(".0 ", " ")


def _dynamic(value: object) -> str:
    return "dynamic sizes" if value else "static sizes"


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:] + "."
