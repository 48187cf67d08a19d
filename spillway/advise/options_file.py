"""RocksDB's OPTIONS files: written so that ``rocksdb::LoadOptionsFromFile`` reads them, and read to compare with.

A file has sections, [Version], [DBOptions], [CFOptions "default"] and [TableOptions/BlockBasedTable "default"], and
lines of name=value. What a file does not name has RocksDB's default. It cannot hold a block cache, which programs make
themselves: comments have its size and what else is no option of RocksDB. Files of RocksDB 5 to 11 are read
(options_file_version 1): their names are the same. Values are put right as RocksDB does when it opens a database
(SanitizeOptions, db/column_family.cc); what is beyond the simulator's bounds is taken as the bound.
"""

import math
import re
from dataclasses import replace
from pathlib import Path

from spillway.advise.configuration import (
    DEFAULTS,
    LEAST_BUFFER,
    LEAST_FANOUT,
    LEVELED,
    SEPARATED,
    SINGLE,
    UNIVERSAL,
    UNLIMITED,
    Configuration,
    db_options,
    family_options,
    table_options,
)
from spillway.errors import SpillwayError

FILE_VERSION = "1.1"  # of the format. Source: RocksDB's options_parser.h
ROCKSDB_VERSION = "7.8.3"  # whose names the options have; later versions read them
OLDEST, NEWEST = 5, 11  # RocksDB's major versions whose files are read
MOST_BYTES = 2**20  # of a file; RocksDB's own have some 10 KiB for each column family. Source: guess
MOST = 2**63 - 1  # of an option: RocksDB's are 64 bits wide
MOST_FILES = 10**6  # of a trigger of L0, above which compactions and stops are off. Source: the simulator of the tree
MOST_THREADS = 1024  # that are simulated; no machine that advice is for has more cores. Source: cli/models/advise.py
LEAST_BLOCK, MOST_BLOCK = 64, 10**9  # bytes. Source: the simulator of the tree
MOST_FANOUT = 10**9  # Source: the simulator of the tree
MOST_BITS = 100  # of a filter for each key. Source: the simulator of the tree
MOST_BUFFER = 64 * 2**30  # RocksDB's own. Source: SanitizeOptions
FILTER_BITS = 10  # of a filter whose bits the file does not say. Source: RocksDB's examples
FAMILY = "default"
SECTION = re.compile(r'\[(\w+(?:/\w+)?)(?: "([^"]*)")?\]')
UNITS = {"": 1, "k": 2**10, "m": 2**20, "g": 2**30, "t": 2**40}
STYLES = ("kCompactionStyleLevel", "kCompactionStyleUniversal")
SINGLE_FROM = 2**45  # a first level without a limit in practice


def options_text(config: Configuration, words: str) -> str:
    """The file; ``words`` stand in a comment at its top."""
    sections = (
        ("Version", {"rocksdb_version": ROCKSDB_VERSION, "options_file_version": FILE_VERSION}),
        ("DBOptions", db_options(config)),
        (f'CFOptions "{FAMILY}"', family_options(config) | {"table_factory": "BlockBasedTable"}),
        (f'TableOptions/BlockBasedTable "{FAMILY}"', table_options(config)),
    )
    lines = [f"# {line}" for line in [*words.splitlines(), *_beside(config)]]
    for title, options in sections:
        lines += ["", f"[{title}]", *(f"  {name}={value}" for name, value in options.items())]
    return "\n".join([*lines, ""])


def _beside(config: Configuration) -> list[str]:
    """What belongs to the configuration and is no option that a file may hold."""
    spill = "off" if config.spill == "off" else f"{config.spill} rollback, a store of {config.spill_bytes} bytes"
    return [
        f"block cache: {config.block_cache_bytes} bytes",
        f"discard of deleted files: {'on' if config.discard else 'off'}",
        f"extra over-provisioning: {config.extra_op:.0%} of the drive in no partition",
        f"Spillway: {spill}",
    ]


def read_options(path: Path) -> Configuration:
    """The configuration of a file. Raises SpillwayError for a file of another version, and one that is damaged."""
    sections = _sections(path)
    _check_version(path, sections.get(("Version", ""), {}))
    db = sections.get(("DBOptions", ""))
    family = sections.get(("CFOptions", FAMILY))
    if db is None or family is None:
        raise SpillwayError(f'{path}: an OPTIONS file has the sections [DBOptions] and [CFOptions "default"].')
    table = sections.get(("TableOptions/BlockBasedTable", FAMILY), {})
    return _configuration(path, db, family, table)


def _text(path: Path) -> str:
    """A pipe is read to its end, a device that has none is not."""
    try:
        with path.open("rb") as file:
            raw = file.read(MOST_BYTES + 1)
        if len(raw) > MOST_BYTES:
            raise SpillwayError(f"{path}: this has more than {MOST_BYTES} bytes: it is no OPTIONS file.")
        return raw.decode("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not text"
        raise SpillwayError(f"{path}: the OPTIONS file cannot be read: {why}.") from error


def _sections(path: Path) -> dict[tuple[str, str], dict[str, str]]:
    text = _text(path)
    found: dict[tuple[str, str], dict[str, str]] = {}
    own: dict[str, str] | None = None
    for number, line in enumerate(text.splitlines(), 1):
        words = re.sub(r"(?<!\\)#.*", "", line).strip()
        if not words:
            continue
        title = SECTION.fullmatch(words)
        if title is not None:
            own = found.setdefault((title[1], title[2] or ""), {})
            continue
        name, equals, value = words.partition("=")
        if own is None or not equals:
            raise SpillwayError(f"{path}: line {number} is neither a section nor name=value: this is no OPTIONS file.")
        own[name.strip()] = value.strip()
    return found


def _check_version(path: Path, version: dict[str, str]) -> None:
    format_version = version.get("options_file_version", "")
    rocksdb = version.get("rocksdb_version", "")
    if not format_version or not rocksdb:
        raise SpillwayError(f"{path}: [Version] does not say rocksdb_version and options_file_version.")
    if format_version.partition(".")[0] != FILE_VERSION.partition(".")[0]:
        raise SpillwayError(
            f"{path}: options_file_version is {format_version}, and this version of spillway reads {FILE_VERSION}."
        )
    major = rocksdb.partition(".")[0]
    if not major.isdecimal() or not OLDEST <= int(major) <= NEWEST:
        raise SpillwayError(
            f"{path}: it was written by RocksDB {rocksdb}, and files of RocksDB {OLDEST} to {NEWEST} are read."
        )


def _configuration(path: Path, db: dict[str, str], family: dict[str, str], table: dict[str, str]) -> Configuration:
    def number(options: dict[str, str], name: str, default: int) -> int:
        match = re.fullmatch(r"(-?\d+)(?:\.0*)?([kKmMgGtT]?)", options.get(name, str(default)))
        if match is None:
            raise SpillwayError(f"{path}: {name} is {options[name]!r}, which is not a number.")
        value = int(match[1]) * UNITS[match[2].lower()]
        if value > MOST:
            raise SpillwayError(f"{path}: {name} is {options[name]}, and an option is at most {MOST}.")
        return value

    def least(options: dict[str, str], name: str, default: int, lowest: int = 1) -> int:
        value = number(options, name, default)
        if value < lowest:
            raise SpillwayError(f"{path}: {name} is {value}, and it takes at least {lowest}.")
        return value

    def times(options: dict[str, str], name: str, default: float) -> float:
        try:
            value = float(options.get(name, default))
        except ValueError:
            value = math.nan
        if not math.isfinite(value):
            raise SpillwayError(f"{path}: {name} is {options[name]!r}, which is not a number.")
        return int(value) if value.is_integer() else value

    jobs = least(db, "max_background_jobs", 2)
    explicit = number(db, "max_background_compactions", -1)
    threads = explicit if explicit > 0 else max(1, jobs - max(1, jobs // 4))
    l0_files = max(1, number(family, "level0_file_num_compaction_trigger", DEFAULTS.l0_files))
    slowdown = max(l0_files, number(family, "level0_slowdown_writes_trigger", DEFAULTS.l0_slowdown))
    stop = max(slowdown, number(family, "level0_stop_writes_trigger", DEFAULTS.l0_stop))
    buffer = least(family, "write_buffer_size", DEFAULTS.write_buffer_bytes)
    return replace(
        DEFAULTS,
        shape=_shape(path, family),
        fanout=min(MOST_FANOUT, max(LEAST_FANOUT, times(family, "max_bytes_for_level_multiplier", 10))),
        l0_files=min(MOST_FILES, l0_files),
        l0_slowdown=min(MOST_FILES, slowdown),
        l0_stop=min(MOST_FILES, stop),
        write_buffer_bytes=min(MOST_BUFFER, max(LEAST_BUFFER, buffer)),
        write_buffers=min(MOST_FILES, max(2, least(family, "max_write_buffer_number", DEFAULTS.write_buffers))),
        file_bytes=min(UNLIMITED, least(family, "target_file_size_base", DEFAULTS.file_bytes)),
        level_base_bytes=min(UNLIMITED, least(family, "max_bytes_for_level_base", DEFAULTS.level_base_bytes)),
        dynamic_levels=family.get("level_compaction_dynamic_level_bytes", "false") == "true",
        compaction_threads=min(MOST_THREADS, threads),
        subcompactions=min(MOST_THREADS, least(db, "max_subcompactions", 1)),
        block_bytes=min(MOST_BLOCK, max(LEAST_BLOCK, least(table, "block_size", DEFAULTS.block_bytes))),
        bits_per_key=min(MOST_BITS, _bits_per_key(table.get("filter_policy", ""))),
        direct_io=db.get("use_direct_reads", "false") == "true",
    )


def _bits_per_key(policy: str) -> int:
    """Of a filter, as the versions of RocksDB write it: bloomfilter:10:false, ribbonfilter:9.5:-1, {id=…;
    bits_per_key=10}, rocksdb.BuiltinBloomFilter."""
    if policy in ("", "nullptr"):
        return 0
    bits = re.search(r"filter:(\d{1,3})(?!\d)|bits_per_key=(\d{1,3})(?!\d)", policy)
    return int(bits[1] or bits[2]) if bits else FILTER_BITS


def _shape(path: Path, family: dict[str, str]) -> str:
    style = family.get("compaction_style", "kCompactionStyleLevel")
    if style not in STYLES:
        raise SpillwayError(
            f"{path}: compaction_style is {style}; configurations are compared with {', '.join(STYLES)}."
        )
    if family.get("enable_blob_files") == "true":
        return SEPARATED
    if style == "kCompactionStyleUniversal":
        return UNIVERSAL
    base = family.get("max_bytes_for_level_base", "0")
    unlimited = base.isdecimal() and int(base) >= SINGLE_FROM
    return SINGLE if family.get("num_levels") == "2" or unlimited else LEVELED
