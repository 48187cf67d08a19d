"""RocksDB's OPTIONS files: written so that ``rocksdb::LoadOptionsFromFile`` reads them, and read to compare with.

A file has sections, [Version], [DBOptions], [CFOptions "default"] and [TableOptions/BlockBasedTable "default"], and
lines of name=value. What a file does not name has RocksDB's default. It cannot hold a block cache, which programs make
themselves: comments have its size and what else is no option of RocksDB. Files of RocksDB 5 to 11 are read
(options_file_version 1): their names are the same. Values are put right as RocksDB does when it opens a database
(SanitizeOptions, db/column_family.cc); what is beyond the simulator's bounds is taken as the bound. What RocksDB
refuses is refused: a section that is there twice, a flag that is neither true nor false. So is an option that is there
twice, and a file that was cut short.
"""

import math
import re
from dataclasses import dataclass, replace
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
from spillway.quantity import whole_number

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
ROCKSDBS = "# This is a RocksDB option file."  # the first comment of those that RocksDB writes
SECTION = re.compile(r'\[(\w+(?:/\w+)?)(?: "([^"]*)")?\]')
NUMBER = re.compile(r"(-?[0-9]{1,30})(?:\.0*)?([kKmMgGtT]?)")  # no option has more digits
REAL = re.compile(r"[+-]?[0-9]{1,400}(?:\.[0-9]*)?(?:[eE][+-]?[0-9]{1,4})?")
FLAGS = {"true": True, "1": True, "false": False, "0": False}
SHOWN = 60  # characters of a value in a sentence
UNITS = {"": 1, "k": 2**10, "m": 2**20, "g": 2**30, "t": 2**40}
STYLES = ("kCompactionStyleLevel", "kCompactionStyleUniversal")
SINGLE_FROM = 2**45  # a first level without a limit in practice

Sections = dict[tuple[str, str], dict[str, str]]  # options by kind and column family


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
    text = _text(path)
    sections = _sections(path, text)
    _check_version(path, sections.get(("Version", ""), {}))
    db = sections.get(("DBOptions", ""))
    family = sections.get(("CFOptions", FAMILY))
    if db is None or family is None:
        raise SpillwayError(f'{path}: an OPTIONS file has the sections [DBOptions] and [CFOptions "default"].')
    _check_whole(path, text, sections)
    table = sections.get(("TableOptions/BlockBasedTable", FAMILY), {})
    return _configuration(path, db, family, table)


def _check_whole(path: Path, text: str, sections: Sections) -> None:
    """RocksDB writes the options of its tables last, those of "default" among them. Raises SpillwayError."""
    has_table = any(kind.startswith("TableOptions/") and name == FAMILY for kind, name in sections)
    factory = sections["CFOptions", FAMILY].get("table_factory", "")
    if not has_table and (factory.startswith("BlockBasedTable") or ROCKSDBS in text):
        raise SpillwayError(
            f'{path}: there is no section [TableOptions/BlockBasedTable "{FAMILY}"], as in a file that was cut short: '
            "name one that is whole."
        )


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


def _sections(path: Path, text: str) -> Sections:
    if text.strip() and not text.endswith(("\n", "\r")):
        raise SpillwayError(
            f"{path}: its last line has no end, as in a file that was cut short: end it, if it is whole."
        )
    found: Sections = {}
    own: dict[str, str] | None = None
    for number, line in enumerate(text.splitlines(), 1):
        words = re.sub(r"(?<!\\)#.*", "", line).strip()
        if not words:
            continue
        title = SECTION.fullmatch(words)
        if title is not None:
            if (title[1], title[2] or "") in found:
                raise SpillwayError(f"{path}: line {number}: the section {_shown(words)} is there twice: leave one.")
            own = found[(title[1], title[2] or "")] = {}
            continue
        name, equals, value = words.partition("=")
        if own is None or not equals:
            raise SpillwayError(f"{path}: line {number} is neither a section nor name=value: this is no OPTIONS file.")
        if name.strip() in own:
            raise SpillwayError(f"{path}: line {number}: {_shown(name.strip())} is there twice: leave one.")
        own[name.strip()] = value.strip()
    return found


def _shown(text: str) -> str:
    """As it stands in a sentence."""
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}…"


def _check_version(path: Path, version: dict[str, str]) -> None:
    format_version = version.get("options_file_version", "")
    rocksdb = version.get("rocksdb_version", "")
    if not format_version or not rocksdb:
        raise SpillwayError(f"{path}: [Version] does not say rocksdb_version and options_file_version.")
    if format_version.partition(".")[0] != FILE_VERSION.partition(".")[0]:
        raise SpillwayError(
            f"{path}: options_file_version is {_shown(format_version)}, and this version of spillway reads "
            f"{FILE_VERSION}."
        )
    major = whole_number(rocksdb.partition(".")[0])
    if major is None or not OLDEST <= major <= NEWEST:
        raise SpillwayError(
            f"{path}: it was written by RocksDB {_shown(rocksdb)}, and files of RocksDB {OLDEST} to {NEWEST} are read."
        )


@dataclass(frozen=True)
class _Section:
    """A section's options as values. Raises SpillwayError for those that are none."""

    path: Path
    options: dict[str, str]

    def number(self, name: str, default: int, lowest: int = -MOST) -> int:
        """A whole number, perhaps with a unit."""
        match = NUMBER.fullmatch(self.options.get(name, str(default)))
        if match is None and re.fullmatch(r"-?[0-9]+", self.options[name]) is None:
            raise self._refused(name, "which is not a number")
        value = MOST + 1 if match is None else int(match[1]) * UNITS[match[2].lower()]
        if abs(value) > MOST:
            raise self._refused(name, f"and an option is at most {MOST}")
        if value < lowest:
            raise self._refused(name, f"and it takes at least {lowest}")
        return value

    def times(self, name: str, default: float) -> float:
        """A factor above 0."""
        text = self.options.get(name, str(default))
        value = float(text) if REAL.fullmatch(text) else math.nan
        if not math.isfinite(value):
            raise self._refused(name, "which is not a number")
        if value <= 0:
            raise self._refused(name, "and it takes a number above 0")
        return int(value) if value.is_integer() else value

    def flag(self, name: str) -> bool:
        """Off where it is not said."""
        value = FLAGS.get(self.options.get(name, "false"))
        if value is None:
            raise self._refused(name, "which is neither true nor false")
        return value

    def _refused(self, name: str, why: str) -> SpillwayError:
        return SpillwayError(f"{self.path}: {name} is {_shown(self.options[name])}, {why}.")


def _configuration(path: Path, options: dict[str, str], family: dict[str, str], table: dict[str, str]) -> Configuration:
    db, own, tables = (_Section(path, each) for each in (options, family, table))
    jobs = db.number("max_background_jobs", 2, 1)
    explicit = db.number("max_background_compactions", -1)
    threads = explicit if explicit > 0 else max(1, jobs - max(1, jobs // 4))
    l0_files = max(1, own.number("level0_file_num_compaction_trigger", DEFAULTS.l0_files))
    slowdown = max(l0_files, own.number("level0_slowdown_writes_trigger", DEFAULTS.l0_slowdown))
    stop = max(slowdown, own.number("level0_stop_writes_trigger", DEFAULTS.l0_stop))
    buffer = own.number("write_buffer_size", DEFAULTS.write_buffer_bytes, 1)
    base = own.number("max_bytes_for_level_base", DEFAULTS.level_base_bytes, 1)
    return replace(
        DEFAULTS,
        shape=_shape(
            path,
            family,
            separated=own.flag("enable_blob_files"),
            single=own.number("num_levels", 7) <= 2 or base >= SINGLE_FROM,
        ),
        fanout=min(MOST_FANOUT, max(LEAST_FANOUT, own.times("max_bytes_for_level_multiplier", 10))),
        l0_files=min(MOST_FILES, l0_files),
        l0_slowdown=min(MOST_FILES, slowdown),
        l0_stop=min(MOST_FILES, stop),
        write_buffer_bytes=min(MOST_BUFFER, max(LEAST_BUFFER, buffer)),
        write_buffers=min(MOST_FILES, max(2, own.number("max_write_buffer_number", DEFAULTS.write_buffers, 1))),
        file_bytes=min(UNLIMITED, own.number("target_file_size_base", DEFAULTS.file_bytes, 1)),
        level_base_bytes=min(UNLIMITED, base),
        dynamic_levels=own.flag("level_compaction_dynamic_level_bytes"),
        compaction_threads=min(MOST_THREADS, threads),
        subcompactions=min(MOST_THREADS, db.number("max_subcompactions", 1, 1)),
        block_bytes=min(MOST_BLOCK, max(LEAST_BLOCK, tables.number("block_size", DEFAULTS.block_bytes, 1))),
        bits_per_key=min(MOST_BITS, _bits_per_key(table.get("filter_policy", ""))),
        direct_io=db.flag("use_direct_reads"),
    )


def _bits_per_key(policy: str) -> int:
    """Of a filter, as the versions of RocksDB write it: bloomfilter:10:false, ribbonfilter:9.5:-1, {id=…;
    bits_per_key=10}, rocksdb.BuiltinBloomFilter."""
    if policy in ("", "nullptr"):
        return 0
    bits = re.search(r"filter:([0-9]{1,3})(?![0-9])|bits_per_key=([0-9]{1,3})(?![0-9])", policy)
    return int(bits[1] or bits[2]) if bits else FILTER_BITS


def _shape(path: Path, family: dict[str, str], *, separated: bool, single: bool) -> str:
    style = family.get("compaction_style", "kCompactionStyleLevel")
    if style not in STYLES:
        raise SpillwayError(
            f"{path}: compaction_style is {_shown(style)}; configurations are compared with {', '.join(STYLES)}."
        )
    if separated:
        return SEPARATED
    if style == "kCompactionStyleUniversal":
        return UNIVERSAL
    return SINGLE if single else LEVELED
