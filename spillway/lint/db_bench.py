"""db_bench command lines, RocksDB's and LevelDB's, against the pitfalls.

Defaults and meanings are those of RocksDB 11.9's tools/db_bench_tool.cc: every thread does ``num`` operations;
``duration`` takes their place in workloads that draw keys at random; ``fillseq`` and ``filluniquerandom`` ignore it;
the time that a rate limit makes a writer wait is left out of its latency.
"""

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass

from spillway.lint import recipe as around
from spillway.lint.recipe import Recipe, tool_of
from spillway.lint.shell import UNKNOWN, Command
from spillway.lint.table import Linted, Remark, Verdict, table_of
from spillway.pitfalls import (
    CLOSED_LOOP,
    COMPRESSION,
    DURABILITY,
    EMPTY_STORE,
    MOST_WA_APP,
    MOST_WA_APP_IN_ORDER,
    PAGE_CACHE,
    SHORT_TEST,
)
from spillway.quantity import human_bytes

NUM, KEY_BYTES, VALUE_BYTES, RATIO = 1_000_000, 16, 100, 0.5  # db_bench's defaults
FLAGS = {
    *(
        "sync",
        "disable_wal",
        "use_existing_db",
        "use_direct_reads",
        "use_direct_io_for_flush_and_compaction",
        "mmap_read",
    ),
    *("histogram", "statistics", "use_fsync", "mmap_write", "use_existing_keys", "reverse_iterator", "verify_checksum"),
}  # without a value they mean true
# What db_bench runs by default. Source: `db_bench --help` of RocksDB 7.8
BENCHMARKS = (
    "fillseq,fillseqdeterministic,fillsync,fillrandom,filluniquerandomdeterministic,overwrite,readrandom,newiterator,"
    "newiteratorwhilewriting,seekrandom,seekrandomwhilewriting,seekrandomwhilemerging,readseq,readreverse,compact,"
    "compactall,flush,compact0,compact1,waitforcompaction,multireadrandom,mixgraph,readseq,readtorowcache,readtocache,"
    "readreverse,readwhilewriting,readwhilemerging,readwhilescanning,readrandomwriterandom,updaterandom,"
    "xorupdaterandom,approximatesizerandom,randomwithverify,fill100K,crc32c,xxhash,xxhash64,xxh3,compress,uncompress,"
    "acquireload,fillseekseq,randomtransaction,randomreplacekeys,timeseries,getmergeoperands"
)
IN_ORDER = ("fillseq", "fillseekseq", "fillseqdeterministic")  # whose tables are moved and not merged
TIMELESS = ("fillseq", "filluniquerandom")
TIMED_READS = ("readrandom", "readmissing", "seekrandom", "multireadrandom")  # that a duration ends
LOADERS: tuple[str, ...] = (
    "fillseq",
    "fillrandom",
    "filluniquerandom",
    "fillsync",
    "fill100K",
    "fillseekseq",
    "filluniquerandomdeterministic",
)
LOADERS += ("fillseqdeterministic", "bulkload")
# Share of a benchmark's operations that write, loaders left out; None: another thread writes as long as it lasts.
WRITES: dict[str, float | None] = {
    **dict.fromkeys(("overwrite", "updaterandom", "mergerandom", "xorupdaterandom", "randomreplacekeys"), 1.0),
    **{"readrandomwriterandom": 0.1, "readrandommergerandom": 0.3},
    **dict.fromkeys(("appendrandom", "timeseries", "randomtransaction", "mixgraph")),  # values of sizes of their own
    **{f"{read}while{write}": None for read in ("read", "seekrandom") for write in ("writing", "merging")},
}
READERS: tuple[str, ...] = (
    "readrandom",
    "readmissing",
    "readseq",
    "readreverse",
    "seekrandom",
    "multireadrandom",
    "readtocache",
    "mixgraph",
)
READERS += ("readhot", "readwhilescanning", "multiscan", "multiscanrandom", *WRITES)
FILL_THEMSELVES = ("randomtransaction", "timeseries", "overwrite")  # what they read they have written
SIZES = ("stats", "levelstats", "memstats", "sstables")


@dataclass(frozen=True)
class Bench:
    """A db_bench command: its flags, the last of each, and its benchmarks in their order."""

    command: Command
    flags: dict[str, str]
    names: tuple[str, ...]

    def number(self, flag: str, default: float) -> float | None:
        """A flag's number, ``default`` where it is not given; None where it is not known or is no number."""
        text = self.flags.get(flag)
        if text is None:
            return default
        try:
            value = float(text)
        except ValueError:
            return None
        return value if math.isfinite(value) else None

    def on(self, flag: str) -> bool:
        """Whether a flag of true and false is set."""
        return self.flags.get(flag, "0").lower() not in ("0", "false", "no", "")

    @property
    def pair_bytes(self) -> float | None:
        """Bytes of a key and its value."""
        key, value = self.number("key_size", KEY_BYTES), self.number("value_size", VALUE_BYTES)
        return None if key is None or value is None else key + value

    @property
    def data_bytes(self) -> float | None:
        """Bytes of all pairs, uncompressed."""
        count = self.number("num", NUM)
        return None if count is None or self.pair_bytes is None else count * self.pair_bytes

    @property
    def writing(self) -> list[str]:
        """Its benchmarks that write."""
        return [name for name in self.names if name in LOADERS or name in WRITES]

    @property
    def working(self) -> bool:
        """Whether it has operations at all."""
        return any(name in LOADERS or name in READERS for name in self.names)

    @property
    def compression(self) -> str:
        """The algorithm, lower case; empty: none is named."""
        return self.flags.get("compression_type", "").lower()


def parse_bench(command: Command, arguments: Sequence[str]) -> Bench:
    """A command's flags as gflags reads them: one dash or two, ``--noNAME``, a value behind ``=`` or next to it."""
    flags: dict[str, str] = {}
    index = 0
    while index < len(arguments):
        word = arguments[index]
        index += 1
        match = re.match(r"--?([A-Za-z]\w*)(?:=(.*))?$", word, re.DOTALL)
        if not match:
            continue
        name, value = match[1], match[2]
        if value is None and name.removeprefix("no") in FLAGS:
            value = "0" if name not in FLAGS else "1"
            name = name if name in FLAGS else name.removeprefix("no")
        elif value is None and index < len(arguments) and not arguments[index].startswith("-"):
            value, index = arguments[index], index + 1
        flags[name] = "1" if value is None else value
    names = [name.split("[")[0].strip() for name in flags.get("benchmarks", BENCHMARKS).split(",")]
    return Bench(command, flags, tuple(name for name in names if name))


def benches_of(recipe: Recipe) -> list[Bench]:
    """The recipe's db_bench commands."""
    found = []
    for command in recipe.commands:
        tool = tool_of(command)
        # With words that are no flags it is a name in a sentence, or what a package manager is told.
        if tool and tool[0] == "db_bench" and (not tool[1] or any(word.startswith("-") for word in tool[1])):
            found.append(parse_bench(command, tool[1]))
    return found


def lint_db_bench(recipe: Recipe) -> Linted:
    """The table of the recipe's db_bench commands; there must be one."""
    benches = benches_of(recipe)
    tested = [bench.command for bench in benches]
    own = [bench.command for bench in benches if set(bench.names) & set(SIZES)]
    remarks = [
        *_short_test(recipe, benches),
        around.wa_device(recipe, tested, "db_bench has RocksDB's own compaction figures, which end at the file system"),
        around.initial_state(recipe, tested),
        _data_set(recipe, benches),
        around.space(recipe, tested, own, "add `stats` to --benchmarks, and du of the --db directory while it runs"),
        around.over_provisioning(recipe, tested),
        around.drive_type(
            recipe, tested, [bench.flags.get("db", "").replace(UNKNOWN, "") for bench in benches], "--db"
        ),
        *_empty_store(recipe, benches),
        *_closed_loop(recipe, benches),
        *_page_cache(recipe, benches),
        *_compression(recipe, benches),
        *_durability(recipe, benches),
    ]
    return table_of(recipe.name, "db_bench", remarks)


# ---------------------------------------------------------------- 1: short tests


def operations(bench: Bench, name: str) -> float | None:
    """Writes of a benchmark over all its threads; None where a number is not known."""
    count = bench.number("num", NUM)
    given = bench.number("writes", -1)
    threads = bench.number("threads", 1)
    if None in (count, given, threads):
        return None
    assert count is not None and given is not None and threads is not None
    if name not in LOADERS and name != "overwrite":  # what reads and writes does the larger of the two
        given = max(given, bench.number("reads", -1) or 0)
    each = given if given >= 0 else count
    if name in ("fillsync", "fill100K"):
        each = each / 1000
    share = 1.0 if name in LOADERS else WRITES.get(name, 1.0)
    if name == "readrandomwriterandom" and share is not None:
        share = 1 - (bench.number("readwritepercent", 90) or 0) / 100
    return None if share is None else each * share * (1 if name == "filluniquerandom" else threads)


def _length(bench: Bench, name: str, capacity: int | None) -> tuple[Verdict, str]:
    duration = bench.number("duration", 0)
    if duration and name not in TIMELESS:
        verdict, words = around.judged_time(duration)
        return verdict, f"--duration={duration:.0f}: {words}"
    if WRITES.get(name, 1.0) is None and name not in LOADERS:
        why = "it lasts as long as its readers read" if "while" in name else "how much it writes is not in its flags"
        return "cannot tell", why
    count, pair = operations(bench, name), bench.pair_bytes
    if name == "fill100K" and count is not None:
        pair = 100_000.0 + (bench.number("key_size", KEY_BYTES) or 0)
    if count is None or pair is None:
        return "cannot tell", "--num, --threads or the sizes are not known"
    most = MOST_WA_APP_IN_ORDER if name in IN_ORDER else MOST_WA_APP
    verdict, words = around.judged_user_bytes(count * pair, capacity, most)
    return verdict, f"{count:.3g} x {pair:.0f} B = {words}"


def _short_test(recipe: Recipe, benches: Sequence[Bench]) -> list[Remark]:
    groups: dict[tuple[Verdict, str], list[tuple[str, Command]]] = {}
    for bench in benches:
        for name in bench.writing:
            groups.setdefault(_length(bench, name, recipe.capacity), []).append((name, bench.command))
    remarks = _short_reads(recipe, benches)
    if not groups and not remarks:
        return [Remark(SHORT_TEST, "ok", "nothing is written, so no garbage collection to wait for", "", "")]
    for verdict in ("finding", "cannot tell", "ok"):
        chosen = {key: found for key, found in groups.items() if key[0] == verdict}
        if not chosen:
            continue
        said = [f"{_listed([name for name, _ in found])}: {words}" for (_, words), found in chosen.items()]
        commands = [command for found in chosen.values() for _, command in found]
        told = "; ".join(said[:4]) + (f"; and {len(said) - 4} more" if len(said) > 4 else "")
        change = _longer([name for found in chosen.values() for name, _ in found])
        remarks.append(Remark(SHORT_TEST, verdict, told, "" if verdict == "ok" else change, recipe.where(commands)))
    return remarks


def _short_reads(recipe: Recipe, benches: Sequence[Bench]) -> list[Remark]:
    """Of commands with a benchmark that reads alone."""
    found: dict[float, list[Command]] = {}
    for bench in benches:
        if any(name in TIMED_READS for name in bench.names):
            found.setdefault(bench.number("duration", 0) or 0.0, []).append(bench.command)
    change = "--duration of 60 or more"
    return [each for t, commands in found.items() for each in around.short_reads(t, recipe.where(commands), change)]


def _longer(names: Sequence[str]) -> str:
    """What lengthens these benchmarks."""
    if all(name in TIMELESS for name in names):
        return "follow it by overwrite with a --duration of 1800 or more: no --duration ends this fill"
    return (
        "--duration of 1800 or more, until host writes reach 3 x the capacity, with --report_interval_seconds=1 and "
        "--report_file to see the burst and the steady part"
    )


def _listed(names: Sequence[str]) -> str:
    return ", ".join(dict.fromkeys(names))


# ---------------------------------------------------------------- 4: data-set size


def _data_set(recipe: Recipe, benches: Sequence[Bench]) -> Remark:
    working = [bench for bench in benches if bench.working]
    sizes = [size for bench in working if (size := bench.data_bytes) is not None]
    pair = next((bench.pair_bytes for bench in benches if bench.pair_bytes), None)
    where = recipe.where([bench.command for bench in working])
    return around.data_set(recipe, sizes, pair, "--num x (--key_size + --value_size)", "--num", where)


# ---------------------------------------------------------------- beside the seven


def _empty_store(recipe: Recipe, benches: Sequence[Bench]) -> list[Remark]:
    remarks = []
    loader: tuple[str, Bench] | None = None
    for bench in benches:
        if not bench.on("use_existing_db"):
            loader = None
        for name in bench.names:
            if name in LOADERS or (name == "overwrite" and loader is None):
                loader = (name, bench)
            elif name in READERS and name not in FILL_THEMSELVES:
                remark = _reads_of_nothing(recipe, bench, name, loader)
                remarks += [remark] if remark and remark not in remarks else []
    return remarks


def _reads_of_nothing(recipe: Recipe, bench: Bench, name: str, loader: tuple[str, Bench] | None) -> Remark | None:
    where = recipe.where([bench.command])
    if loader is None and bench.on("use_existing_db"):
        looked = f"{name} reads what an earlier command has left (--use_existing_db)"
        return Remark(EMPTY_STORE, "cannot tell", looked, "put the command that loads it into the recipe", where)
    if loader is None:
        change = "put fillseq or filluniquerandom before it in --benchmarks, or --use_existing_db=1 after a load"
        return Remark(EMPTY_STORE, "finding", f"{name} runs on an empty database", change, where)
    if name not in ("readrandom", "multireadrandom") or loader[0] not in ("fillrandom", "overwrite", "fillsync"):
        return None
    drawn, keys = operations(loader[1], loader[0]), bench.number("num", NUM)
    if not drawn or not keys or loader[1].number("duration", 0):
        return None
    missed = math.exp(-drawn / keys)
    looked = f"{loader[0]} draws keys with repetition, so {missed:.0%} of {name}'s keys are not there"
    if missed < 0.01:
        return None
    return Remark(EMPTY_STORE, "finding", looked, "load with fillseq or filluniquerandom", where)


def _closed_loop(recipe: Recipe, benches: Sequence[Bench]) -> list[Remark]:
    asked = [bench for bench in benches if bench.working and bench.on("histogram")]
    if not asked:
        return []
    limited = [bench for bench in asked if (bench.number("benchmark_write_rate_limit", 0) or 0) > 0]
    if limited:
        looked = (
            "--histogram with --benchmark_write_rate_limit: db_bench leaves the wait for the limit out of a latency"
        )
    else:
        looked = "--histogram without a rate: the next operation waits for the last, so a stall is one slow operation"
    change = (
        "quote throughput; latencies under a rate, from the intended start: `spillway run` with `phases.rate_ops_s`"
    )
    where = recipe.where([bench.command for bench in limited or asked])
    return [Remark(CLOSED_LOOP, "finding", looked, change, where)]


def _page_cache(recipe: Recipe, benches: Sequence[Bench]) -> list[Remark]:
    direct = ("use_direct_reads", "use_direct_io_for_flush_and_compaction")
    cached = [bench for bench in benches if bench.working and not all(bench.on(flag) for flag in direct)]
    large = [
        bench for bench in benches
        if bench.working and (size := bench.number("cache_size", 0)) and bench.data_bytes and size >= bench.data_bytes
    ]  # fmt: skip
    remarks = []
    if cached:
        missing = [flag for flag in direct if any(not bench.on(flag) for bench in cached)]
        looked = f"without --{' and --'.join(missing)}: reads may come from memory"
        change = " ".join(f"--{flag}=1" for flag in missing)
        remarks.append(Remark(PAGE_CACHE, "finding", looked, change, recipe.where([each.command for each in cached])))
    elif benches:
        where = recipe.where([bench.command for bench in benches if bench.working])
        remarks.append(Remark(PAGE_CACHE, "ok", "direct I/O for reads, flushes and compactions", "", where))
    if large:
        size = large[0].number("cache_size", 0) or 0
        looked = (
            f"--cache_size of {human_bytes(size)} holds the whole data set of {human_bytes(large[0].data_bytes or 0)}"
        )
        where = recipe.where([bench.command for bench in large])
        remarks.append(Remark(PAGE_CACHE, "finding", looked, "a --cache_size that is a small part of the data", where))
    return remarks


def _compression(recipe: Recipe, benches: Sequence[Bench]) -> list[Remark]:
    writing = [bench for bench in benches if bench.writing]
    groups: dict[tuple[Verdict, str, str], list[Command]] = {}
    for bench in writing:
        groups.setdefault(_compressed(bench), []).append(bench.command)
    return [
        Remark(COMPRESSION, verdict, looked, change, recipe.where(commands))
        for (verdict, looked, change), commands in groups.items()
    ]


def _compressed(bench: Bench) -> tuple[Verdict, str, str]:
    ratio, pair = bench.number("compression_ratio", RATIO), bench.pair_bytes
    value = bench.number("value_size", VALUE_BYTES)
    if "compression" in bench.flags and not bench.compression:  # LevelDB's
        if not bench.on("compression"):
            return "ok", "--compression=0: bytes reach the drive as they are given", ""
        return "finding", "--compression: values are compressed", "--compression=0"
    if bench.compression in ("none", "kno", "no"):
        return "ok", "--compression_type=none: bytes reach the drive as they are given", ""
    if ratio is not None and ratio >= 1:
        return "ok", f"--compression_ratio={ratio:g}: the values do not compress", ""
    size = ""
    if ratio is not None and value is not None and pair:
        size = f": {pair:.0f} B come to about {pair - value * (1 - ratio):.0f} B on the drive"
    shrink = f"values made to shrink to {ratio:g}" if ratio is not None else "values that compress"
    change = "--compression_type=none, or say the data set as it is on the drive"
    if not bench.compression:
        looked = (
            f"no --compression_type: db_bench's default, Snappy, on {shrink}{size} (RocksDB's own is LZ4 since 11.5)"
        )
        return "finding", looked, change
    return "finding", f"--compression_type={bench.compression} on {shrink}{size}", change


def _durability(recipe: Recipe, benches: Sequence[Bench]) -> list[Remark]:
    writing = [bench for bench in benches if bench.writing]
    without = [bench for bench in writing if bench.on("disable_wal")]
    synced = [bench for bench in writing if bench.on("sync")]
    remarks = []
    if without:
        names = _listed([name for bench in without for name in bench.writing])
        rest = " while others have a log" if len(without) < len(writing) else ""
        looked = f"--disable_wal in {names}{rest}: no log is written, and no write is durable before its flush"
        where = recipe.where([bench.command for bench in without])
        remarks.append(Remark(DURABILITY, "finding", looked, "leave out --disable_wal in what is measured", where))
    logged = [bench for bench in writing if bench not in without]
    if synced and len(synced) < len(logged):
        names = _listed([name for bench in synced for name in bench.writing])
        looked = f"--sync=1 in {names} and not in the others: their figures do not compare"
        where = recipe.where([bench.command for bench in synced])
        remarks.append(Remark(DURABILITY, "finding", looked, "the same --sync in all that is compared", where))
    if writing and not remarks:
        looked = "--sync=1: each commit waits for the drive" if synced else "--sync=0: a log, and no commit is synced"
        remarks.append(Remark(DURABILITY, "ok", looked, "", recipe.where([bench.command for bench in writing])))
    return remarks
