"""YCSB's property files and commands against the pitfalls.

Properties, defaults and order are YCSB 0.18's: ``-P`` files in their order, ``-p`` over them, ``-threads`` and
``-target`` besides. Its values are random printable bytes, six from a draw of 32 bits (RandomByteIterator), which LZ4
and Snappy hardly shorten. Its zipfian draws from ten thousand million items and scatters them over records by a hash
(ScrambledZipfianGenerator), so that it touches more records than Zipf's law over the records themselves would.
"""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from spillway.errors import SpillwayError
from spillway.lint import recipe as around
from spillway.lint.recipe import Recipe, tool_of
from spillway.lint.share import touched_share, uniform_share
from spillway.lint.shell import UNKNOWN, Command
from spillway.lint.small_text import read_small_text
from spillway.lint.table import Linted, Remark, Verdict, table_of
from spillway.pitfalls import (
    CLOSED_LOOP,
    COMPRESSION,
    EMPTY_STORE,
    PAGE_CACHE,
    SHORT_TEST,
    SKEW,
)
from spillway.plan.ycsb import WORKLOADS
from spillway.quantity import human_bytes

SCATTERED_ITEMS = 10_000_000_000  # of ScrambledZipfianGenerator. Source: its ITEM_COUNT
OWN_COUNTS = {"recordcount": "1000", "operationcount": "1000"}  # of YCSB's own workload files
MEMORY_BYTES = (
    64 * 2**20
)  # RocksDB's default memtable: a smaller data set may never leave it. Source: write_buffer_size
BINDINGS = ("rocksdb", "leveldb", "leveldbjni")
WRITES = ("update", "insert", "readmodifywrite")
DEFAULTS = {"readproportion": 0.95, "updateproportion": 0.05, "fieldcount": 10.0, "fieldlength": 100.0}


@dataclass(frozen=True)
class Step:
    """One call of YCSB: ``load`` or ``run``, the binding, and its properties; ``missing``: files that are not there."""

    what: str
    binding: str
    properties: dict[str, str]
    missing: tuple[str, ...] = ()
    command: Command | None = None

    def number(self, name: str) -> float | None:
        """A property as a number, YCSB's default where it is not given; None where it is no number."""
        try:
            value = float(self.properties.get(name, DEFAULTS.get(name, 0.0)))
        except ValueError:
            return None
        return value if math.isfinite(value) else None

    @property
    def record_bytes(self) -> float:
        """Bytes of a record's fields."""
        return (self.number("fieldcount") or 0) * (self.number("fieldlength") or 0)

    @property
    def data_bytes(self) -> float:
        """Bytes of all records."""
        return (self.number("recordcount") or 0) * self.record_bytes

    @property
    def write_share(self) -> float:
        """Share of the operations that write."""
        if self.what == "load":
            return 1.0
        shares = [self.number(f"{name}proportion") or 0 for name in (*WRITES, "read", "scan")]
        return sum(shares[: len(WRITES)]) / (sum(shares) or 1)

    @property
    def operations(self) -> float:
        """How many operations end it."""
        if self.what == "load":
            return self.number("insertcount") or self.number("recordcount") or 0
        return self.number("operationcount") or 0


def read_properties(path: Path) -> dict[str, str]:
    """The properties of a file, as Java reads them. Raises SpillwayError."""
    return parse_properties(read_small_text(path, "property file"))


def parse_properties(text: str) -> dict[str, str]:
    """``key=value`` or ``key: value``; comments begin with # or !, a backslash joins lines, the last of a key wins."""
    found: dict[str, str] = {}
    for line in re.sub(r"\\\r?\n[ \t]*", "", text).splitlines():
        line = line.strip()
        match = re.match(r"([\w.\-]+)\s*(?:[=:]|\s)\s*(.*)", line)
        if match and line[0] not in "#!":
            found[match[1]] = match[2].strip()
    return found


def is_property_file(text: str) -> bool:
    """Whether a text has properties that only YCSB has."""
    known = {
        "recordcount",
        "operationcount",
        "readproportion",
        "updateproportion",
        "requestdistribution",
        "fieldlength",
    }
    return len(known & set(parse_properties(text))) >= 2


def _file(name: str, directory: Path | None) -> dict[str, str] | None:
    """Properties of a file by its path, from where it is named, or of a bundled workload; None where there is none."""
    for place in [Path(name), *([directory / name, directory / Path(name).name] if directory else [])]:
        if place.is_file():
            return read_properties(place)
    bundled = WORKLOADS.get(Path(name).name)
    return None if bundled is None else OWN_COUNTS | bundled


def parse_step(command: Command, arguments: Sequence[str], directory: Path | None) -> Step | None:
    """A call of YCSB; None where it neither loads nor runs. Raises SpillwayError for a file that cannot be read."""
    what = binding = ""
    properties: dict[str, str] = {}
    over: dict[str, str] = {}
    missing: list[str] = []
    index = 0
    while index < len(arguments):
        word = arguments[index]
        value = arguments[index + 1] if index + 1 < len(arguments) else ""
        index += 1
        if word in ("load", "run", "-load", "-run", "-t"):
            what = "run" if word == "-t" else word.lstrip("-")
        elif word == "-P" and value:
            index += 1
            read = _file(value, directory)
            properties |= read or {}
            missing += [value] if read is None else []
        elif word in ("-p", "--prop") and value:
            index += 1
            key, _, given = value.partition("=")
            over[key] = given
        elif word in ("-threads", "-target", "--threads", "--target") and value:
            index += 1
            over["threadcount" if "threads" in word else "target"] = value
        elif word == "-db" and value:
            index += 1
            binding = value
        elif not word.startswith("-") and what and not binding:
            binding = word
    return Step(what, binding.lower(), properties | over, tuple(missing), command) if what else None


def steps_of(recipe: Recipe) -> list[Step]:
    """The recipe's calls of YCSB."""
    found = []
    for command in recipe.commands:
        tool = tool_of(command)
        if tool and tool[0] == "ycsb" and (step := parse_step(command, tool[1], recipe.directory)):
            found.append(step)
    return found


def lint_properties(name: str, properties: Mapping[str, str], capacity: int | None) -> Linted:
    """The table of a property file alone: loaded and run with nothing but it."""
    steps = [Step(what, "", dict(properties)) for what in ("load", "run")]
    return lint_ycsb(Recipe(name, [], capacity, lines=False), steps)


def lint_ycsb(recipe: Recipe, steps: Sequence[Step]) -> Linted:
    """The table of some calls of YCSB. Raises SpillwayError for one that lacks its property file."""
    for step in steps:
        if step.missing and not step.number("recordcount"):
            name = " ".join(step.missing[0].split())[:60]  # quotes that are not closed take in the next lines
            raise SpillwayError(f"{recipe.name}: -P {name} is not there, so nothing is known of the workload.")
    tested = [step.command for step in steps if step.command]
    places = [_place(step) for step in steps]
    remarks = [
        *_short_test(recipe, steps),
        around.wa_device(recipe, tested, "YCSB counts operations and no bytes"),
        around.initial_state(recipe, tested),
        _data_set(recipe, steps),
        around.space(
            recipe, tested, [], "du of the database's directory while it runs, held against the records' bytes"
        ),
        around.over_provisioning(recipe, tested),
        around.drive_type(recipe, tested, places, "the database's directory"),
        *_empty_store(recipe, steps),
        *_closed_loop(recipe, steps),
        *_page_cache(recipe, steps),
        *_compression(recipe, steps),
        *_skew(recipe, steps),
    ]
    return table_of(recipe.name, "ycsb", remarks)


def _place(step: Step) -> str:
    named = [value for key, value in step.properties.items() if re.fullmatch(r"\w+\.(dir|dbname|path)", key)]
    return named[0].replace(UNKNOWN, "") if named else ""


def _where(recipe: Recipe, steps: Sequence[Step]) -> str:
    return recipe.where([step.command for step in steps if step.command])


def _count(step: Step) -> str:
    return "recordcount" if step.what == "load" else "operationcount"


def _short_test(recipe: Recipe, steps: Sequence[Step]) -> list[Remark]:
    groups: dict[tuple[Verdict, str], list[Step]] = {}
    reads: dict[float, list[Step]] = {}
    for step in steps:
        if not step.write_share:
            reads.setdefault(step.number("maxexecutiontime") or 0.0, []).append(step)
            continue
        limit, count = step.number("maxexecutiontime") or 0, step.operations
        written = count * step.write_share * step.record_bytes
        verdict, words = around.judged_user_bytes(written, recipe.capacity)
        said = f"{step.what}: {_count(step)}={count:g}, {words}"
        if limit > 0 and step.what == "run":
            timed, about = around.judged_time(limit)
            if timed == "finding":
                verdict = timed
            said += f"; maxexecutiontime={limit:g}: {about}"
        groups.setdefault((verdict, said), []).append(step)
    change = (
        "raise recordcount and operationcount until host writes reach 3 x the capacity; -s tells throughput each 10 s"
    )
    remarks = [
        Remark(SHORT_TEST, verdict, said, "" if verdict == "ok" else change, _where(recipe, found))
        for (verdict, said), found in groups.items()
    ]
    for limit, found in reads.items():
        remarks += around.short_reads(limit, _where(recipe, found), "maxexecutiontime of 60 or more, or none")
    return remarks or [Remark(SHORT_TEST, "ok", "reads alone", "", recipe.name)]


def _data_set(recipe: Recipe, steps: Sequence[Step]) -> Remark:
    sizes = [step.data_bytes for step in steps if step.data_bytes]
    record = next((step.record_bytes for step in steps if step.record_bytes), None)
    what = "recordcount x fieldcount x fieldlength"
    return around.data_set(recipe, sizes, record, what, "recordcount", _where(recipe, steps))


def _empty_store(recipe: Recipe, steps: Sequence[Step]) -> list[Remark]:
    remarks = []
    loaded: float | None = None
    for step in steps:
        records = step.number("recordcount") or 0
        if step.what == "load":
            loaded = step.number("insertcount") or records
        elif loaded is None:
            looked = "run without a load: the records are as an earlier command has left them"
            change = "put the load before it"
            remarks.append(Remark(EMPTY_STORE, "cannot tell", looked, change, _where(recipe, [step])))
        elif records > loaded:
            looked = f"run asks for {records:g} records, and {loaded:g} were loaded"
            remarks.append(
                Remark(EMPTY_STORE, "finding", looked, "the same recordcount in both", _where(recipe, [step]))
            )
    return list(dict.fromkeys(remarks))


def _closed_loop(recipe: Recipe, steps: Sequence[Step]) -> list[Remark]:
    running = [step for step in steps if step.what == "run"]
    free = [step for step in running if not (step.number("target") or 0)]
    started = [
        step for step in running
        if (step.number("target") or 0) and step.properties.get("measurement.interval", "op") == "op"
    ]  # fmt: skip
    remarks = []
    if free:
        looked = "no -target: each thread waits for its last operation, and YCSB prints latencies all the same"
        change = "-target N -p measurement.interval=intended; or quote throughput"
        remarks.append(Remark(CLOSED_LOOP, "finding", looked, change, _where(recipe, free)))
    if started:
        looked = "-target with measurement.interval=op: what an operation waits for its turn is not counted"
        change = "-p measurement.interval=intended"
        remarks.append(Remark(CLOSED_LOOP, "finding", looked, change, _where(recipe, started)))
    return remarks


def _page_cache(recipe: Recipe, steps: Sequence[Step]) -> list[Remark]:
    small = [step for step in steps if 0 < step.data_bytes < MEMORY_BYTES]
    if small:
        looked = (
            f"{human_bytes(small[0].data_bytes)} of records fit in one memtable: nothing may be read from the drive"
        )
        return [Remark(PAGE_CACHE, "finding", looked, "recordcount for many times the memory", _where(recipe, small))]
    plain = [step for step in steps if step.binding in BINDINGS and "rocksdb.optionsfile" not in step.properties]
    if not plain:
        return []
    looked = f"the binding {plain[0].binding} reads and writes through the page cache by default"
    change = "rocksdb.optionsfile with use_direct_reads and use_direct_io_for_flush_and_compaction"
    return [Remark(PAGE_CACHE, "finding", looked, change, _where(recipe, plain))]


def _compression(recipe: Recipe, steps: Sequence[Step]) -> list[Remark]:
    plain = [step for step in steps if step.binding in BINDINGS and "rocksdb.optionsfile" not in step.properties]
    values = "YCSB's random printable values hardly compress by LZ4 or Snappy, to about two thirds by ZSTD at best"
    if not plain:
        return []
    if plain[0].binding == "rocksdb":
        looked = f"no rocksdb.optionsfile: the binding's RocksDB compresses as its version does; {values}"
        change = "rocksdb.optionsfile that names compression and bottommost_compression"
        return [Remark(COMPRESSION, "finding", looked, change, _where(recipe, plain))]
    looked = f"the binding {plain[0].binding} compresses by Snappy by default; {values}"
    return [Remark(COMPRESSION, "finding", looked, "say which compression was used", _where(recipe, plain))]


def _skew(recipe: Recipe, steps: Sequence[Step]) -> list[Remark]:
    remarks = []
    for step in steps:
        kind = step.properties.get("requestdistribution", "uniform")
        records, draws = step.number("recordcount") or 0, step.operations
        if step.what != "run" or kind not in ("zipfian", "latest") or not 1 <= records <= 1e15 or draws < 1:
            continue
        theta = step.number("zipfian_const") or 0.99
        scattered = kind == "zipfian"
        items = SCATTERED_ITEMS if scattered else int(records)
        share = touched_share(draws, items, int(records), theta, scattered=scattered)
        even = uniform_share(draws, int(records))
        looked = (
            f"requestdistribution={kind}: {draws:g} operations touch {share:.0%} of the {records:g} records "
            f"(uniform: {even:.0%})"
        )
        few = share < 0.5
        change = "say the share beside the figure; or requestdistribution=uniform" if few else ""
        remarks.append(Remark(SKEW, "finding" if few else "ok", looked, change, _where(recipe, [step])))
    return list(dict.fromkeys(remarks))
