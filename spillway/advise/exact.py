"""A configuration's prediction at the rate of puts that its mix has, which is lower than that of puts alone.

Writers that wait let files gather in L0, so that a compaction takes many and writes less for each: `wa_app` of puts
alone is not that of a mix. So a configuration is simulated twice: as fast as puts are taken, which says what the drive
can take, then at the rate that the mix gets by with, which says what is written and how long writers wait. A mix is
faster on the tree of its own rate, which has fewer files in L0, than on that of puts alone: it is simulated at its new
rate until that is the rate that it was simulated at.
"""

import math
from collections.abc import Sequence
from dataclasses import replace

from spillway.advise.configuration import Configuration
from spillway.advise.predict import Prediction, predict
from spillway.advise.simulated import Setting, thorough
from spillway.advise.traffic import LOG_AND_FLUSH, Traffic, compacted, flushed_bytes, settled
from spillway.advise.workload import Workload

LEAST_PUTS_S = 1.0  # Slower puts find the same tree: all of it has long been compacted. Source: guess
SATURATED = 0.9  # of the rate of puts alone: from there on the mix's puts are as those. Source: guess
PACES, SAME_PACE = 4, 0.1  # rates that are tried at most, and how far apart two are the same. Source: guess


def exact(setting: Setting, config: Configuration, seeds: Sequence[int], of_reads: Configuration) -> Prediction:
    """``config`` has the write path, ``of_reads`` is the whole configuration."""
    load = setting.load
    closed = settled(load, config, thorough(setting, config, seeds))
    spread = closed.spread
    closed = _in_its_seconds(setting, config, closed, closed.put_ops_s)
    found = predict(load, of_reads, setting.drive, closed, setting.cores, setting.costs)
    rate = _puts(load, found)
    if not 0 < rate < SATURATED * closed.put_ops_s:
        return found
    turned = False
    before = 0.0
    for _ in range(PACES):
        paced = thorough(setting, config, seeds[:1], max(rate, LEAST_PUTS_S))
        dearer = paced.wa_app * paced.wa_device / (closed.wa_app * closed.wa_device)
        traffic = replace(paced, put_ops_s=closed.put_ops_s / dearer, spread=spread)
        traffic = _in_its_seconds(setting, config, traffic, rate)
        found = predict(load, of_reads, setting.drive, traffic, setting.cores, setting.costs)
        again = min(_puts(load, found), closed.put_ops_s)
        if abs(again - rate) <= SAME_PACE * rate:
            break
        turned = turned or (again - rate) * before < 0
        before = again - rate
        # Fewer puts leave a tree that takes more, and more puts one that takes fewer: what swings is halved.
        rate = math.sqrt(rate * again) if turned else again
    return found


def _in_its_seconds(setting: Setting, config: Configuration, traffic: Traffic, puts_s: float) -> Traffic:
    """Of an experiment behind its load in order: the share of the levels above the last that no compaction has
    rewritten by the middle of what is measured; and `wa_app` is known to half a compaction out of L0, since one more or
    less falls into so many seconds."""
    if setting.span is None:
        return traffic
    load, span = setting.load, setting.span
    bytes_s = max(puts_s, LEAST_PUTS_S) * load.pair_bytes
    rewritten = bytes_s * (span.warm_s + span.measured_s / 2) * max(0.0, traffic.wa_app - LOG_AND_FLUSH)
    _, out_of_l0 = compacted(load, config)
    one = out_of_l0 * config.l0_files * flushed_bytes(load, config)
    share = one / 2 / (bytes_s * span.measured_s * traffic.wa_app)
    spread = dict(traffic.spread)
    return replace(
        traffic,
        as_loaded=max(0.0, 1 - rewritten / max(1.0, sum(traffic.level_bytes[:-1]))),
        spread=tuple((spread | {"wa_app": math.hypot(spread.get("wa_app", 0.0), share)}).items()),
    )


def _puts(load: Workload, found: Prediction) -> float:
    """A second, that the load asks for or that are predicted."""
    most = found.throughput_ops_s.value
    return min(load.rate_ops_s or most, most) * load.puts
