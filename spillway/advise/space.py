"""Every configuration that is considered: a grid over what matters, within the memory that there is.

Sizes of memtables follow the memory; files are a part of a memtable or as large as one; the block cache gets what is
left. A grid of some thousands is ranked in closed form, and the best of each shape are simulated (search.py).
"""

from collections.abc import Iterator
from dataclasses import replace
from itertools import product

from spillway.advise.configuration import (
    DEFAULTS,
    FLASH,
    LEAST_BUFFER,
    LEVELED,
    MIB,
    SEPARATED,
    SINGLE,
    UNIVERSAL,
    Configuration,
    filter_bytes,
    index_bytes,
)
from spillway.advise.workload import Limits, Workload

FANOUTS = (4, 6, 8, 10, 16)
L0_FILES = (2, 4, 8)
BITS_PER_KEY = (0, 10)
BLOCK_BYTES = (4096, 16384)
MEMTABLE_SHARES = (1 / 16, 1 / 8, 1 / 4, 1 / 2)  # of the memory, for all memtables together
WRITE_BUFFERS = (2, 4)
FILES_OF_A_BUFFER = (0.5, 1.0)
SEPARATED_FROM = 256  # bytes of a value: an address takes a tenth of that. Source: guess
LEAST_CACHE = LEAST_BUFFER
OF_ROCKSDB = "RocksDB's defaults"  # the name of a rival
SMALLEST_BUFFER, LARGEST_BUFFER = MIB, 1024 * MIB


def threads_of(cores: int) -> list[int]:
    """Compaction threads: powers of two up to the cores."""
    found = [1]
    while found[-1] * 2 <= max(1, cores):
        found.append(found[-1] * 2)
    return found


def configurations(load: Workload, limits: Limits, cores: int, *, discard: bool = True) -> Iterator[Configuration]:
    """All of them that fit the memory; RocksDB's defaults and the flash configuration are no part of it."""
    for buffer, buffers in _buffers(limits):
        for each in _shapes(buffer, buffers, load, cores):
            for bits, block in product(BITS_PER_KEY, BLOCK_BYTES):
                config = replace(each, bits_per_key=bits, block_bytes=block, direct_io=True, discard=discard)
                filled = with_cache(config, load, limits)
                if filled is not None:
                    yield filled


def with_cache(config: Configuration, load: Workload, limits: Limits) -> Configuration | None:
    """With the memory that is left as the block cache; None where there is none left."""
    held = filter_bytes(config, load.pairs) + index_bytes(config, load.data_bytes, load.key_bytes)
    left = limits.memory_bytes - config.memtable_bytes - held
    return replace(config, block_cache_bytes=left) if left >= LEAST_CACHE else None


def least_held_bytes(load: Workload) -> int:
    """Memory that no configuration does without: indexes of the largest blocks. With twice that and a MiB some fit."""
    return index_bytes(replace(DEFAULTS, block_bytes=max(BLOCK_BYTES)), load.data_bytes, load.key_bytes)


def rivals(load: Workload, limits: Limits) -> dict[str, Configuration]:
    """What advice is compared with: as they are, but for the memory that a block cache may have."""
    named = {OF_ROCKSDB: DEFAULTS, "flash configuration": FLASH}
    return {name: with_cache(each, load, limits) or each for name, each in named.items()}


def _buffers(limits: Limits) -> Iterator[tuple[int, int]]:
    found = set()
    for share, count in product(MEMTABLE_SHARES, WRITE_BUFFERS):
        size = int(limits.memory_bytes * share / count)
        size = min(LARGEST_BUFFER, 2 ** max(0, size.bit_length() - 1))
        if size >= LEAST_BUFFER:
            found.add((size, count))
    yield from sorted(found)


def _shapes(buffer: int, buffers: int, load: Workload, cores: int) -> Iterator[Configuration]:
    for l0_files, threads in product(L0_FILES, threads_of(cores)):
        for subcompactions in sorted({1, threads}):
            base = replace(
                DEFAULTS,
                l0_files=l0_files,
                l0_slowdown=max(20, 5 * l0_files),
                l0_stop=max(36, 9 * l0_files),
                write_buffer_bytes=buffer,
                write_buffers=buffers,
                file_bytes=buffer,
                level_base_bytes=buffer * l0_files,
                compaction_threads=threads,
                subcompactions=subcompactions,
            )
            yield replace(base, shape=SINGLE, fanout=1)
            yield replace(base, shape=UNIVERSAL)
            for fanout, part, dynamic in product(FANOUTS, FILES_OF_A_BUFFER, (False, True)):
                leveled = replace(base, fanout=fanout, file_bytes=max(LEAST_BUFFER, int(buffer * part)))
                yield replace(leveled, shape=LEVELED, dynamic_levels=dynamic)
            if load.value_bytes >= SEPARATED_FROM:
                yield replace(base, shape=SEPARATED, dynamic_levels=True)


def neighbours(config: Configuration, cores: int) -> Iterator[tuple[str, Configuration]]:
    """Each configuration that differs from ``config`` in one line, by the line's name."""
    threads = threads_of(cores)
    for fanout in _beside(FANOUTS, config.fanout) if config.shape in (LEVELED, SEPARATED) else []:
        yield "fanout", replace(config, fanout=fanout)
    for l0_files in _beside(L0_FILES, config.l0_files):
        scaled = config.level_base_bytes * l0_files // config.l0_files
        yield "l0_files", replace(config, l0_files=l0_files, level_base_bytes=scaled)
    for size in (config.file_bytes // 2, config.file_bytes * 2):
        if LEAST_BUFFER <= size <= LARGEST_BUFFER:
            yield "file_bytes", replace(config, file_bytes=size)
    for count in _beside(threads, config.compaction_threads):
        yield (
            "compaction_threads",
            replace(config, compaction_threads=count, subcompactions=min(config.subcompactions, count)),
        )
    for count in sorted({1, config.compaction_threads} - {config.subcompactions}):
        yield "subcompactions", replace(config, subcompactions=count)
    for count in _beside(WRITE_BUFFERS, config.write_buffers):
        yield "write_buffers", replace(config, write_buffers=count)
    for size in (config.write_buffer_bytes // 2, config.write_buffer_bytes * 2):
        if SMALLEST_BUFFER <= size <= LARGEST_BUFFER or (size < config.write_buffer_bytes and size >= LEAST_BUFFER):
            yield "write_buffer_bytes", replace(config, write_buffer_bytes=size)
    if config.shape in (LEVELED, SEPARATED):
        yield "dynamic_levels", replace(config, dynamic_levels=not config.dynamic_levels)


def _beside(values: tuple[int, ...] | list[int], own: float) -> list[int]:
    """The next value below, and the next above."""
    below, above = [each for each in values if each < own], [each for each in values if each > own]
    return [*below[-1:], *above[:1]]
