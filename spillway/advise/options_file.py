"""RocksDB's OPTIONS files: written so that ``rocksdb::LoadOptionsFromFile`` reads them, and read to compare with.

A file has sections, [Version], [DBOptions], [CFOptions "default"] and [TableOptions/BlockBasedTable "default"], and
lines of name=value. What a file does not name has RocksDB's default. It cannot hold a block cache, which programs make
themselves; its size stands in a comment. Files of RocksDB 5 to 11 are read (options_file_version 1): their names are
the same.
"""

import re
from dataclasses import replace
from pathlib import Path

from spillway.advise.configuration import (
    DEFAULTS,
    LEVELED,
    SEPARATED,
    SINGLE,
    UNIVERSAL,
    Configuration,
    db_options,
    family_options,
    table_options,
)
from spillway.errors import SpillwayError

FILE_VERSION = "1.1"  # of the format. Source: RocksDB's options_parser.h
ROCKSDB_VERSION = "7.8.3"  # whose names the options have; later versions read them
OLDEST, NEWEST = 5, 11  # RocksDB's major versions whose files are read
FAMILY = "default"
SECTION = re.compile(r'\[(\w+(?:/\w+)?)(?: "([^"]*)")?\]')
UNITS = {"": 1, "k": 2**10, "m": 2**20, "g": 2**30, "t": 2**40}
SINGLE_FROM = 2**45  # a first level without a limit in practice


def options_text(config: Configuration, words: str) -> str:
    """The file; ``words`` stand in a comment at its top."""
    sections = (
        ("Version", {"rocksdb_version": ROCKSDB_VERSION, "options_file_version": FILE_VERSION}),
        ("DBOptions", db_options(config)),
        (f'CFOptions "{FAMILY}"', family_options(config) | {"table_factory": "BlockBasedTable"}),
        (f'TableOptions/BlockBasedTable "{FAMILY}"', table_options(config)),
    )
    lines = [f"# {line}" for line in [*words.splitlines(), f"block cache: {config.block_cache_bytes} bytes"]]
    for title, options in sections:
        lines += ["", f"[{title}]", *(f"  {name}={value}" for name, value in options.items())]
    return "\n".join([*lines, ""])


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


def _sections(path: Path) -> dict[tuple[str, str], dict[str, str]]:
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not text"
        raise SpillwayError(f"{path}: the OPTIONS file cannot be read: {why}.") from error
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
        return int(match[1]) * UNITS[match[2].lower()]

    def least(options: dict[str, str], name: str, default: int, lowest: int = 1) -> int:
        value = number(options, name, default)
        if value < lowest:
            raise SpillwayError(f"{path}: {name} is {value}, and it takes at least {lowest}.")
        return value

    jobs = least(db, "max_background_jobs", 2)
    explicit = number(db, "max_background_compactions", -1)
    bits = re.search(r"bloomfilter:(\d+)|bits_per_key=(\d+)", table.get("filter_policy", ""))
    return replace(
        DEFAULTS,
        shape=_shape(family),
        fanout=max(2, least(family, "max_bytes_for_level_multiplier", 10)),
        l0_files=least(family, "level0_file_num_compaction_trigger", DEFAULTS.l0_files),
        l0_slowdown=least(family, "level0_slowdown_writes_trigger", DEFAULTS.l0_slowdown),
        l0_stop=least(family, "level0_stop_writes_trigger", DEFAULTS.l0_stop),
        write_buffer_bytes=least(family, "write_buffer_size", DEFAULTS.write_buffer_bytes),
        write_buffers=least(family, "max_write_buffer_number", DEFAULTS.write_buffers),
        file_bytes=least(family, "target_file_size_base", DEFAULTS.file_bytes),
        level_base_bytes=least(family, "max_bytes_for_level_base", DEFAULTS.level_base_bytes),
        dynamic_levels=family.get("level_compaction_dynamic_level_bytes", "false") == "true",
        compaction_threads=explicit if explicit > 0 else max(1, jobs - max(1, jobs // 4)),
        subcompactions=least(db, "max_subcompactions", 1),
        block_bytes=least(table, "block_size", DEFAULTS.block_bytes),
        bits_per_key=int(bits[1] or bits[2]) if bits else 0,
        direct_io=db.get("use_direct_reads", "false") == "true",
    )


def _shape(family: dict[str, str]) -> str:
    if family.get("enable_blob_files") == "true":
        return SEPARATED
    if family.get("compaction_style") == "kCompactionStyleUniversal":
        return UNIVERSAL
    base = family.get("max_bytes_for_level_base", "0")
    unlimited = base.isdecimal() and int(base) >= SINGLE_FROM
    return SINGLE if family.get("num_levels") == "2" or unlimited else LEVELED
