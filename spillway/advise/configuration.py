"""One configuration: the shape of the tree and its sizes, how it uses threads and the drive, as RocksDB's options.

Defaults are RocksDB 7.8's (M29). ``FLASH`` is the tuning guide's flash configuration as MQSSD has it: F = 8, C = 8,
4 compaction threads (M31). Single level: C files in L0, everything else in an unlimited L1 (M30).
"""

from dataclasses import dataclass, replace

from spillway.quantity import human_bytes

MIB = 2**20
LEVELED, UNIVERSAL, SINGLE, SEPARATED = "leveled", "universal", "single level", "value separation"
SHAPES = (LEVELED, UNIVERSAL, SINGLE, SEPARATED)

LEAST_BUFFER, LEAST_FILE, LEAST_BASE = 64 * 2**10, 64 * 2**10, 256 * 2**10  # RocksDB's own least memtable is 64 KiB
UNLIMITED = 2**50  # bytes of a level without a limit
LEAST_FANOUT = 1.1  # that is simulated
BLOB_FILE_BYTES = 256 * MIB  # RocksDB's default blob_file_size
BLOB_AGE_CUTOFF = 0.25  # RocksDB's default: the oldest quarter of the blob files is collected
INDEX_ENTRY_EXTRA = 12  # bytes of an index entry beyond its key: a block's handle. Source: RocksDB's table format


@dataclass(frozen=True)
class Configuration:
    """Sizes in bytes; ``compaction_threads`` compactions may run beside one flush."""

    shape: str = LEVELED
    fanout: float = 10  # max_bytes_for_level_multiplier, F
    l0_files: int = 4  # level0_file_num_compaction_trigger, C
    l0_slowdown: int = 20
    l0_stop: int = 36
    write_buffer_bytes: int = 64 * MIB
    write_buffers: int = 2
    file_bytes: int = 64 * MIB
    level_base_bytes: int = 256 * MIB
    dynamic_levels: bool = False
    compaction_threads: int = 1
    subcompactions: int = 1
    block_bytes: int = 4096
    bits_per_key: int = 0
    block_cache_bytes: int = 8 * MIB
    direct_io: bool = False
    discard: bool = True
    extra_op: float = 0.0  # share of the drive that is left out of the partition
    spill: str = "off"  # or how its spill store is emptied: adaptive, eager, lazy
    spill_bytes: int = 0

    @property
    def memtable_bytes(self) -> int:
        """Of all write buffers."""
        return self.write_buffer_bytes * self.write_buffers

    def scaled(self, factor: float) -> "Configuration":
        """Sizes divided by ``factor``, so that a tree of 1/``factor`` of the data has the same shape."""
        return replace(
            self,
            write_buffer_bytes=max(LEAST_BUFFER, round(self.write_buffer_bytes / factor)),
            file_bytes=max(LEAST_FILE, round(self.file_bytes / factor)),
            level_base_bytes=max(LEAST_BASE, round(self.level_base_bytes / factor)),
            block_cache_bytes=max(LEAST_BUFFER, round(self.block_cache_bytes / factor)),
            spill_bytes=round(self.spill_bytes / factor),
        )

    @property
    def background_jobs(self) -> int:
        """max_background_jobs: the least of which RocksDB gives a quarter to flushes and enough to compactions."""
        jobs = max(self.compaction_threads + 1, self.compaction_threads * 4 // 3 - 1)
        while jobs - max(1, jobs // 4) < self.compaction_threads:
            jobs += 1
        return jobs

    @property
    def flush_threads(self) -> int:
        """Those that RocksDB gives to flushes."""
        return max(1, self.background_jobs // 4)


DEFAULTS = Configuration()
FLASH = replace(DEFAULTS, fanout=8, l0_files=8, compaction_threads=4)


def filter_bytes(config: Configuration, pairs: int) -> int:
    """Memory of the filters of all pairs."""
    return pairs * config.bits_per_key // 8


def index_bytes(config: Configuration, data_bytes: int, key_bytes: int) -> int:
    """Memory of the tables' indexes, which are always in memory."""
    return data_bytes // config.block_bytes * (key_bytes + INDEX_ENTRY_EXTRA)


def memory_bytes(config: Configuration, pairs: int, data_bytes: int, key_bytes: int) -> int:
    """All memory of a configuration."""
    held = filter_bytes(config, pairs) + index_bytes(config, data_bytes, key_bytes)
    return config.memtable_bytes + config.block_cache_bytes + held


def blob_file_bytes(config: Configuration) -> int:
    """Of separated values: blob_file_size, at most RocksDB's default."""
    return min(BLOB_FILE_BYTES, max(LEAST_FILE, 4 * config.file_bytes))


# ---------------------------------------------------------------------------------------------------------------------
# As RocksDB's options


def db_options(config: Configuration) -> dict[str, str]:
    """Options of DBOptions by RocksDB's names."""
    return {
        "max_background_jobs": str(config.background_jobs),
        "max_subcompactions": str(config.subcompactions),
        "use_direct_reads": _flag(config.direct_io),
        "use_direct_io_for_flush_and_compaction": _flag(config.direct_io),
        "bytes_per_sync": str(0 if config.direct_io else MIB),
    }


def family_options(config: Configuration) -> dict[str, str]:
    """Options of ColumnFamilyOptions by RocksDB's names."""
    found = {
        "write_buffer_size": str(config.write_buffer_bytes),
        "max_write_buffer_number": str(config.write_buffers),
        "level0_file_num_compaction_trigger": str(config.l0_files),
        "level0_slowdown_writes_trigger": str(config.l0_slowdown),
        "level0_stop_writes_trigger": str(config.l0_stop),
        "target_file_size_base": str(config.file_bytes),
        "compression": "kNoCompression",
        "compaction_style": "kCompactionStyleLevel",
        "level_compaction_dynamic_level_bytes": _flag(config.dynamic_levels),
    }
    if config.shape == UNIVERSAL:
        return found | {"compaction_style": "kCompactionStyleUniversal"}
    if config.shape == SINGLE:
        # What is pending is the whole tree as soon as L0 is to be compacted: no limit of it may stop writers.
        unlimited = {"soft_pending_compaction_bytes_limit": "0", "hard_pending_compaction_bytes_limit": "0"}
        return found | {"num_levels": "2", "max_bytes_for_level_base": str(UNLIMITED)} | unlimited
    found |= {
        "max_bytes_for_level_base": str(config.level_base_bytes),
        "max_bytes_for_level_multiplier": f"{config.fanout:.15g}",
    }
    if config.shape == SEPARATED:
        found |= {
            "enable_blob_files": "true",
            "min_blob_size": "0",
            "blob_file_size": str(blob_file_bytes(config)),
            "enable_blob_garbage_collection": "true",
            "blob_garbage_collection_age_cutoff": str(BLOB_AGE_CUTOFF),
        }
    return found


def table_options(config: Configuration) -> dict[str, str]:
    """Options of BlockBasedTableOptions by RocksDB's names; the block cache is no option that a file may hold."""
    found = {"block_size": str(config.block_bytes)}
    return found | ({"filter_policy": f"bloomfilter:{config.bits_per_key}:false"} if config.bits_per_key else {})


def _flag(value: bool) -> str:
    return "true" if value else "false"


def _size(value: int) -> str:
    return human_bytes(value).replace(".0", "")


def in_words(config: Configuration) -> str:
    """A configuration in one line."""
    parts = [config.shape]
    if config.shape in (LEVELED, SEPARATED):
        parts += [f"F {config.fanout:.4g}"]
        parts += ["dynamic levels" if config.dynamic_levels else f"L1 of {_size(config.level_base_bytes)}"]
    parts += [f"C {config.l0_files}", f"files {_size(config.file_bytes)}"]
    threads = f"{config.compaction_threads} threads" if config.compaction_threads > 1 else "1 thread"
    parts += [f"{config.write_buffers} × {_size(config.write_buffer_bytes)} memtables", threads]
    parts += [f"{config.subcompactions} subcompactions"] if config.subcompactions > 1 else []
    parts += [f"{config.bits_per_key} bits a key"] if config.bits_per_key else ["no filter"]
    parts += [f"blocks {_size(config.block_bytes)}"]
    parts += ["direct I/O"] if config.direct_io else []
    parts += [] if config.discard else ["no discard"]
    parts += [f"{config.extra_op:.0%} of the drive left free"] if config.extra_op else []
    parts += [f"Spillway, {config.spill}"] if config.spill != "off" else []
    return ", ".join(parts)
