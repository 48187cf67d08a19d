"""What else the drive's figures say: nodes of a B-tree, batches of a buffer pool, compactions at once.

    node      Y pages that cost least for the mix: puts and gets read a leaf of s + Y alpha, puts write one of Y pages,
              scans of X records read X / (Y B) of them                                             (M6, M7, T6, M35)
    missed    1 - (M - I) / N of the leaves that are read, and 1 - M / I of the nodes above them, each at least 0: M
              bytes of cache hold the I bytes of inner nodes first, an entry for each leaf, then leaves of N bytes
    n_w, n_r  k_w and k_r of the drive: pages written back, and read ahead, at once                     (P22, P27)
    at once   the streams of writes beyond which doubling them buys less than 5 %                            (P25)

s and alpha are the set-up and the page cost of one read alone, from reads of 4 and 16 KiB. Holds for uniform keys, of
which a cache holds the same share whatever the node. Ignores that of popular keys larger nodes make it hold less (M35).
"""

from dataclasses import dataclass

from spillway.advise.drive import Drive
from spillway.advise.workload import MEMORY_BYTES, Limits, Workload
from spillway.models.btree import write_amplification
from spillway.quantity import human_bytes

NODE_BYTES = tuple(2**power for power in range(12, 20))  # 4 KiB to 512 KiB, WiredTiger's largest leaf page
CACHE_SHARE = 0.9  # of the memory; the rest is for cursors and what is being evicted. Source: guess
MOST_EVICTION_THREADS, LEAST_EVICTION_THREADS = 20, 4  # WiredTiger's bounds, and its usual number
LEAST_CACHE_BYTES = 2**20  # WiredTiger's
INNER_ENTRY_EXTRA = 16  # bytes of an inner node's entry beyond its key: an address and its cell. Source: guess
LEAST_INNER, MOST_INNER = 4096, 16384  # bytes of an inner node


@dataclass(frozen=True)
class Others:
    """Sizes in bytes; None: not known of this drive."""

    node_bytes: int
    node_us: dict[int, float]  # mean time of the mix's operation by the size of a node
    node_wa: float  # bytes written / bytes put, at worst
    inner_bytes: float  # of the nodes above the leaves
    n_w: float | None
    n_r: float | None
    compactions_at_once: int
    stream_gain: float  # rate of writes with so many streams / with one

    def sentences(self) -> list[tuple[str, str]]:
        """(what, why) of each."""
        node = human_bytes(self.node_bytes).replace(".0 ", " ")
        rest = {us: size for size, us in self.node_us.items() if size != self.node_bytes}
        beside = f", with {human_bytes(rest[min(rest)]).replace('.0 ', ' ')} {min(rest):.3g} µs" if rest else ""
        cost = self.node_us[self.node_bytes]
        pages = {
            f"B-tree nodes of {node}": f"An operation takes {cost:.3g} µs of the drive{beside}; "
            f"the nodes above them take {human_bytes(self.inner_bytes)}; a put rewrites up to {self.node_wa:.3g} times "
            "its bytes.",
        }
        if self.n_w is not None and self.n_r is not None:
            pages[f"buffer pool: n_w {self.n_w:.3g}, n_r {self.n_r:.3g}"] = (
                f"{self.n_w:.3g} writes at once, and {self.n_r:.3g} reads, saturate the drive; fewer leave some of it "
                "idle, more only wait."
            )
        pages[f"compactions at once: {self.compactions_at_once}"] = (
            f"So many streams write {self.stream_gain:.3g} times as fast as one; twice as many gain less than 5 %."
        )
        return list(pages.items())


def others(load: Workload, drive: Drive, memory_bytes: int = MEMORY_BYTES) -> Others:
    """What the drive's figures say for this mix and this much memory."""
    sizes = [size for size in NODE_BYTES if size >= load.pair_bytes or size == NODE_BYTES[-1]]
    costs = {size: _operation_us(load, drive, memory_bytes, size) for size in sizes}
    best = min(costs, key=lambda size: costs[size])
    at_once = drive.times.streams_at_once()
    known = drive.pio is not None and drive.pio.k_w.known and drive.pio.k_r.known
    gain = drive.times.stream_mb_s("write", at_once) / drive.times.stream_mb_s("write")
    return Others(
        node_bytes=best,
        node_us=costs,
        node_wa=float(write_amplification(max(best, load.pair_bytes), load.pair_bytes)),
        inner_bytes=_inner_bytes(load, best),
        n_w=drive.pio.k_w.value if known and drive.pio is not None else None,
        n_r=drive.pio.k_r.value if known and drive.pio is not None else None,
        compactions_at_once=at_once,
        stream_gain=gain,
    )


def _inner_bytes(load: Workload, node_bytes: int) -> float:
    """An entry for each leaf; levels above the first are a hundredth of it."""
    return load.data_bytes / node_bytes * (load.key_bytes + INNER_ENTRY_EXTRA)


def _inner_node(node_bytes: int) -> int:
    return max(LEAST_INNER, min(node_bytes, MOST_INNER))


def _operation_us(load: Workload, drive: Drive, memory_bytes: int, node_bytes: int) -> float:
    """Of the drive, for one operation of the mix on leaves of ``node_bytes``."""
    times = drive.times
    cache, inner = memory_bytes * CACHE_SHARE, _inner_bytes(load, node_bytes)
    inner_us = max(0.0, 1 - cache / inner) * times.read_us(_inner_node(node_bytes), 1)
    leaf_us = (1 - min(1.0, max(0.0, cache - inner) / load.data_bytes)) * times.read_us(node_bytes, 1)
    write_us = node_bytes / times.stream_mb_s("write")
    records = max(1.0, node_bytes / load.pair_bytes)
    searches = load.puts + load.gets - load.rmws  # what is modified has just been read
    leaves = searches + load.scans * (1 + load.scan_pairs / records)
    return leaves * leaf_us + (searches + load.scans) * inner_us + load.puts * write_us


def wiredtiger_strings(load: Workload, limits: Limits, found: Others) -> tuple[str, str]:
    """What ``wiredtiger_open`` and ``WT_SESSION::create`` take. Sizes are in bytes, which WiredTiger reads as such."""
    cache = max(LEAST_CACHE_BYTES, int(limits.memory_bytes * CACHE_SHARE))
    writers = min(MOST_EVICTION_THREADS, max(LEAST_EVICTION_THREADS, round(found.n_w or 0)))
    leaf = found.node_bytes
    value = max(leaf // 2, load.pair_bytes + 64)
    opening = (
        f"create,cache_size={cache},eviction=(threads_min=1,threads_max={writers}),"
        "log=(enabled=true),transaction_sync=(enabled=true,method=none),checkpoint=(wait=60,log_size=2GB),"
        "direct_io=[data]"
    )
    table = (
        f"key_format=u,value_format=u,leaf_page_max={leaf},internal_page_max={_inner_node(leaf)},"
        f"leaf_value_max={value},memory_page_max={max(10 * leaf, 512 * 1024)},split_pct=90"
    )
    return opening, table


def wiredtiger_text(load: Workload, limits: Limits, found: Others) -> str:
    """A file with both strings, one a line."""
    opening, table = wiredtiger_strings(load, limits, found)
    return f"wiredtiger_open: {opening}\nWT_SESSION::create: {table}\n"
