"""Models of a drive's cost: what one page, one node or one application costs, before anything is run.

Every function is pure: arrays in, arrays out, broadcast as NumPy does, units in the names. All speak of the *mean time
per page over everything that is in flight* (``page_cost_us``), so that throughput = page bytes / page cost at any
concurrency; the wall time of one of k threads is k times its pages times that.

    dam      how many pages                                               cost of a page
    pdam     and how many at once                                         cost of a cycle, P
    affine   how many pages, and whether one follows the other            set-up s, page alpha
    mqssd    all of it, reads and writes apart, as functions of k         sigma(k), beta(k), tau(k), alpha(k)
    pio      reads and writes apart, and how many of each saturate        asymmetry alpha, k_r, k_w
    btree    the node size that each of the first three asks for          theirs, records in a page
    lsm      an LSM tree in the MQSSD model                               fanout, file size, L0 files
    lsm_reads, lsm_compaction    what RocksDB does on such a tree, counted; filters, cache, read-ahead
    closed   k threads that wait for a drive                              the time of one, the highest rate
    network  n clients at several stations, one of which may be a drive   rates by the number that is there

k is the number of threads or commands in flight. r is the share of pages that are reached at random, *in percent*: of
the readings one can make of the MQSSD paper it is the only one under which its Table 2 agrees with its own text.
Source: T28; `spillway model reproduce mqssd` recomputes it.

Parameters come from measurements through `spillway.fit.curves`. A value out of range raises SpillwayError.

One import reaches all of them, and each is read when it is first used:

    import spillway

    spillway.models.pdam.page_cost_us(r_percent=100, k=[1, 2, 4, 8], cycle_us=80, parallelism=4)
    spillway.models.throughput_mb_s(page_cost_us=[80, 40, 20, 20])
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from spillway.models import (
        affine,
        btree,
        closed,
        dam,
        leveldb,
        leveldb_keys,
        lsm,
        lsm_compaction,
        lsm_reads,
        mixed,
        mqssd,
        network,
        pdam,
        pio,
        value_log,
    )
    from spillway.models.arrays import PAGE_BYTES, throughput_mb_s

__all__ = [
    "PAGE_BYTES",
    "affine",
    "btree",
    "closed",
    "dam",
    "leveldb",
    "leveldb_keys",
    "lsm",
    "lsm_compaction",
    "lsm_reads",
    "mixed",
    "mqssd",
    "network",
    "pdam",
    "pio",
    "throughput_mb_s",
    "value_log",
]


def __getattr__(name: str) -> Any:
    """A model, at its first use (PEP 562). Raises AttributeError for any other name."""
    match name:
        case "affine":
            import spillway.models.affine
        case "btree":
            import spillway.models.btree
        case "closed":
            import spillway.models.closed
        case "dam":
            import spillway.models.dam
        case "leveldb":
            import spillway.models.leveldb
        case "leveldb_keys":
            import spillway.models.leveldb_keys
        case "lsm":
            import spillway.models.lsm
        case "lsm_compaction":
            import spillway.models.lsm_compaction
        case "lsm_reads":
            import spillway.models.lsm_reads
        case "mixed":
            import spillway.models.mixed
        case "mqssd":
            import spillway.models.mqssd
        case "network":
            import spillway.models.network
        case "pdam":
            import spillway.models.pdam
        case "pio":
            import spillway.models.pio
        case "value_log":
            import spillway.models.value_log
        case "PAGE_BYTES" | "throughput_mb_s":
            from spillway.models import arrays

            return getattr(arrays, name)
        case _:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(spillway.models, name)  # the import has bound it there


def __dir__() -> list[str]:
    """What a notebook completes: the models, read or not."""
    return sorted({*globals(), *__all__})
