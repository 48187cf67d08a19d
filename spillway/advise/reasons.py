"""Why each line of the winner is as it is: what is predicted with another value, in a sentence with the figure.

Of other values those beside the winner's were simulated. Where that was not worth it, closed forms say what would be.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

from spillway.advise import reads
from spillway.advise.configuration import (
    SEPARATED,
    SINGLE,
    UNIVERSAL,
    Configuration,
    filter_bytes,
    memory_bytes,
)
from spillway.advise.predict import Prediction, predict
from spillway.advise.rank import time_words
from spillway.advise.search import EXTRA_OP, NO_GARBAGE, Advice
from spillway.advise.space import neighbours, with_cache
from spillway.advise.traffic import closed_form, settled
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
    """In the order in which a configuration is read. What the winner leaves of the drive, discard and Spillway are held
    against the configuration without them, of which the other lines' variants are."""
    winner, config = advice.winner, advice.winner.config
    threads = str(config.compaction_threads)
    found = [Reason("shape", config.shape, _shape(advice))]
    if config.shape in ("leveled", SEPARATED):
        found.append(_line(advice, "fanout", f"{config.fanout:.4g}", "fanout", str))
        of_levels = "dynamic" if config.dynamic_levels else "static"
        found.append(_line(advice, "level sizes", of_levels, "dynamic_levels", _dynamic))
    found += [
        _line(advice, "L0 files", str(config.l0_files), "l0_files", str),
        _line(advice, "memtables", str(config.write_buffers), "write_buffers", str),
        _line(advice, "memtable size", _size(config.write_buffer_bytes), "write_buffer_bytes", _size),
        _line(advice, "file size", _size(config.file_bytes), "file_bytes", _size),
        _line(advice, "compaction threads", threads, "compaction_threads", str),
        _line(advice, "subcompactions", str(config.subcompactions), "subcompactions", str),
        _line(advice, "block size", _size(config.block_bytes), "block_bytes", _size),
        Reason("filters", f"{config.bits_per_key} bits a key", _filters(advice)),
        Reason("block cache", _size(config.block_cache_bytes), _cache(advice)),
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
    return ", ".join(parts[:3]) or f"no difference of 2 % ({other.throughput_ops_s.value:,.0f} operations/s)"


def _line(advice: Advice, name: str, value: str, attribute: str, show: Show) -> Reason:
    own = [each for key, each in advice.variants.items() if key == attribute or key.startswith(f"{attribute}=")]
    base = _base(advice)
    said = [f"with {show(getattr(each.config, attribute))}: {difference(base, each)}" for each in own]
    simulated = {getattr(each.config, attribute) for each in own}
    for line, config in neighbours(base.config, advice.request.cores):
        other = getattr(config, attribute)
        if line == attribute and other not in simulated:
            said.append(f"with {show(other)}{_roughly(advice, config)}")
    return Reason(name, value, _sentence("; ".join(said)) if said else _only(advice))


def _roughly(advice: Advice, config: Configuration) -> str:
    """What closed forms say of a neighbour that was not simulated: it is far behind, or has no memory."""
    request, load = advice.request, advice.request.load
    fitting = with_cache(config, load, request.limits)
    if fitting is None:
        needed = memory_bytes(replace(config, block_cache_bytes=0), load.pairs, load.data_bytes, load.key_bytes)
        return f": {_size(needed)} of memory without a block cache, of {_size(request.limits.memory_bytes)}"

    def made(each: Configuration) -> Prediction:
        traffic = closed_form(load, each, request.drive, request.cores, request.costs)
        return predict(load, each, request.drive, settled(load, each, traffic), request.cores, request.costs)

    return f", by closed forms: {difference(made(_base(advice).config), made(fitting))}"


def _base(advice: Advice) -> Prediction:
    """What the variants differ from in one line."""
    return advice.plain[0] if advice.plain and advice.variants else advice.winner


def _only(advice: Advice) -> str:
    """Of a line of threads that has no neighbour."""
    cores, threads = advice.request.cores, advice.winner.config.compaction_threads
    if cores == 1:
        return "There is 1 core, and one thread compacts."
    return f"Compaction threads share a compaction, and there {'is' if threads == 1 else 'are'} {threads}."


def _shape(advice: Advice) -> str:
    winner = advice.winner
    runs = reads.sorted_runs(winner.traffic)
    head = f"It has {runs:.3g} sorted runs and writes {winner.wa_app.value:.3g} bytes for each byte of the user"
    base = _base(advice)
    others = [f"{key.partition('=')[2]}: {difference(base, each)}" for key, each in advice.variants.items()
              if key.startswith("shape=")]  # fmt: skip
    best = {each.config.shape: each for each in reversed([*advice.ranked, *advice.shapes.values()])}
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
        size = filter_bytes(replace(config, bits_per_key=10), advice.request.load.pairs)
        return f"Only gets use them, and there are none; those of 10 bits would take {_size(size)} of memory."
    other = advice.variants.get("bits_per_key")
    passed = reads.false_positives(config)
    _, runs = reads.runs_of(advice.request.load, config, winner.traffic)
    looked_into = sum(each.count * each.probed(passed) for each in runs)
    what = "without them" if config.bits_per_key else "with 10 bits"
    head = f"A get looks for {looked_into:.3g} blocks"
    return f"{head}; {what}: {difference(_base(advice), other)}." if other else f"{head}."


def _cache(advice: Advice) -> str:
    load, winner = advice.request.load, advice.winner
    kind, make = ("get", reads.get) if load.gets else ("scan", reads.scan)
    if not load.reads:
        return f"It is what is left of {_size(advice.request.limits.memory_bytes)} of memory; nothing is read."
    bare = replace(winner.config, block_cache_bytes=0)
    blocks, without = (make(load, each, winner.traffic).accesses for each in (winner.config, bare))
    return f"A {kind} reads {blocks:.3g} blocks from the drive, and without it {without:.3g}."


def _direct(winner: Prediction) -> str:
    cache = human_bytes(winner.config.block_cache_bytes)
    return (
        f"The memory that is left, {cache}, is a block cache; through the page cache blocks would be held twice, and "
        "compactions would push out what readers need (P31)."
    )


def _discard(advice: Advice) -> str:
    winner = advice.winner
    if not advice.request.load.puts:
        return f"Puts are {advice.request.load.puts:.0%} of the operations, and so no file is deleted."
    other = _beside(advice, "discard")
    if not other:
        return f"It is not to be had here; `wa_device` is {winner.wa_device.value:.3g}."
    own, without = (winner, other[0]) if winner.config.discard else (other[0], winner)
    return f"With it `wa_device` is {own.wa_device.value:.3g}, without it {without.wa_device.value:.3g}."


def _extra_op(advice: Advice) -> str:
    winner = advice.winner
    if not advice.request.load.puts:
        return f"Puts are {advice.request.load.puts:.0%} of the operations, and so no garbage is collected."
    other = _beside(advice, "extra_op")
    if not other:
        if winner.wa_device.value <= NO_GARBAGE:
            return f"With all of the drive `wa_device` is {winner.wa_device.value:.3g}: there is nothing to gain."
        held, capacity = winner.held_bytes.value, advice.request.drive.capacity_bytes
        least = f"{min(EXTRA_OP):.0%} of it left free"
        return f"Its files take up to {human_bytes(held)} of {human_bytes(capacity)}; {least} was not simulated."
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
        return f"Puts are {load.puts:.0%} of the operations: there is nothing to divert."
    held = winner.traffic.delayed_share + winner.traffic.stopped_share
    if winner.config.spill != "off":
        plain = "".join(f"; without it: {difference(winner, each)}" for each in advice.plain[:1])
        returns = f"diverted writes come back {winner.config.spill}ly"
        return f"Writers are held up {held:.1%} of the time, and {returns}{plain}."
    other = advice.variants.get("spill")
    told = "" if other is None else f"; with it ({other.config.spill}): {difference(winner, other)}"
    longest = winner.traffic.worst_wait_s * 1e6
    waits = f", at most {time_words(longest)}" if longest >= 1 else ""
    return f"Writers are held up {held:.1%} of the time{waits}{told}."


def _size(value: object) -> str:
    return human_bytes(float(str(value))).replace(".0 ", " ")


def _dynamic(value: object) -> str:
    return "dynamic sizes" if value else "static sizes"


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:] + "."
