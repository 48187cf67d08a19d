"""The tables of the other benchmarks in runs/bench/."""

import statistics
from typing import Any

from recorded.markdown import between, count, milliseconds, table
from recorded.records import Records


def other_clients(records: Records) -> list[str]:
    """Host bytes of YCSB-cpp and db_bench, and ours over theirs."""
    rows = [(each["workload"], f"{each['ratio']:.3f}") for each in records.result("other_clients")["workloads"]]
    return table(("client and workload", "host bytes, ours / theirs"), rows)


def probe_against_fio(records: Records) -> list[str]:
    """Throughput of the probe over fio's, by kind of access and by how many are in flight."""
    result = records.result("probe_against_fio")
    cells: dict[str, dict[int, str]] = {}
    for name, arm in result["arms"].items():
        kind, depth = name.rsplit("-", 1)
        figure = f"{arm['ratio_median']:.3f}"
        cells.setdefault(kind, {})[int(depth)] = figure if arm["within_bar"] else f"**{figure}**"
    depths = sorted({depth for row in cells.values() for depth in row})
    rows = [(kind, *(row[depth] for depth in depths)) for kind, row in cells.items()]
    said = (
        f"{result['arms_within_bar']} of {len(result['arms'])} arms agree within {100 * result['bar']:g} %, "
        f"in the median of {result['rounds']} rounds; in bold what does not."
    )
    return [*table(("probe / fio", f"iodepth {depths[0]}", *map(str, depths[1:])), rows), "", said]


def thread_handoff(records: Records) -> list[str]:
    """What a thread costs a batch: the batch's time over its threads."""
    result = records.result("thread_handoff")
    kinds = ("threads", "new-threads")
    each = [{row["n"]: row["all_us"]["p50"] / row["n"] for row in result[kind]} for kind in kinds]
    rows = [(str(n), *(f"{costs[n]:.1f}" if n in costs else "–" for costs in each)) for n in each[0]]
    return table(("threads", "each that waits, µs", "each that is new, µs"), rows)


def runner_overhead(records: Records) -> list[str]:
    """Throughput of the runner over db_bench's, and its processor time over theirs."""
    result = records.result("runner_overhead")
    found = [(f"operations/s, {name}", row) for name, row in result["workloads"].items()]
    rows = []
    for name, row in [*found, ("processor time, all of it", result["cpu_s"])]:
        low, high = row["ratio_quartiles"]
        rows.append((name, f"{row['ratio_median']:.3f}", f"{low:.3f}–{high:.3f}"))
    return table(("runner / db_bench", "median", "quartiles"), rows)


def paced_reads(records: Records) -> list[str]:
    """What paced emulation sustains, and how late its reads are."""
    rows = [
        (
            f"{row['threads']} x {row['depth']}, {row['kind']}" + (", one core" if row["one_core"] else ""),
            count(row["reads_per_s"]),
            f"{row['cores_used']:.2f}",
            *(f"{row['pacing_error_us'][key]:.0f}" for key in ("p50", "p99")),
        )
        for row in records.result("paced_reads")
    ]
    return table(("threads x in flight", "reads/s", "cores", "late by, µs: median", "p99"), rows)


def ssd_speed(records: Records) -> list[str]:
    """How fast the drive model runs, and what it holds."""
    result = records.result("ssd_speed")
    rows = [
        (f"{name}: ios per CPU-second", count(row["ios_per_cpu_second"]), f"{count(row['min'])}–{count(row['max'])}")
        for name, row in result["speed"].items()
    ]
    for row in result["steady_state"]:
        rows.append((f"{row['capacity']} to its steady state: CPU-seconds", f"{row['cpu_seconds']:.1f}", "–"))
        rows.append((f"{row['capacity']}: MB of memory per GiB", f"{row['resident_mb_per_gib']:.2f}", "–"))
    return table(("drive model", "median", "range"), rows)


# ---------------------------------------------------------------------------------------------------------------------
# The accelerator


def spill_overheads(records: Records) -> list[str]:
    """What the accelerator costs beside RocksDB, by operation, with the bar it is held to."""
    found: dict[str, list[dict[str, Any]]] = {}
    for each in records.result("spill_overheads")["benchmarks"]:
        found.setdefault(each["name"].split("/")[0], []).append(each)
    rows = []
    for name, each in found.items():
        key, unit = ("us_per_op", " µs") if "us_per_op" in each[0] else ("cpu_ratio", "")
        bar = each[0].get("bar_us", each[0].get("bar_ratio"))
        figures = between((one[key] for one in each), "{:.3f}" if key == "cpu_ratio" else "{:.2g}")
        rows.append((name.replace("_", " "), figures + unit, "–" if bar is None else f"{bar:g}{unit}"))
    return table(("operation", "processor time", "bar"), rows)


# The accelerator's figures of native-before-after, by what they are called there.
_NATIVE = {
    "diverted_put/iterations:100000/real_time/threads:1": "diverted Put, µs, 1 writer",
    "diverted_put/iterations:100000/real_time/threads:2": "diverted Put, µs, 2 writers",
    "diverted_put/iterations:100000/real_time/threads:4": "diverted Put, µs, 4 writers",
    "get_of_diverted": "Get of a diverted key, µs",
    "put_beside_rocksdb/iterations:1500": "idle Put, processor time over RocksDB's",
    "get_beside_rocksdb/iterations:1500": "idle Get, processor time over RocksDB's",
}


def native_before_after(records: Records) -> list[str]:
    """Medians of two builds that ran in turns, and the ratios of the turns: median, lowest and highest."""
    rows = []
    for name, sides in records.result("native-before-after")["figures"].items():
        ratios = [after / before for before, after in zip(sides["before"], sides["after"], strict=True)]
        medians = (f"{statistics.median(sides[side]):.3g}" for side in ("before", "after"))
        spread = f"{statistics.median(ratios):.3f} ({min(ratios):.2f}–{max(ratios):.2f})"
        rows.append((_NATIVE[name.split(": ")[1].split(" ")[0]], *medians, spread))
    return table(("figure", "before", "after", "after / before"), rows)


def index_bytes(records: Records) -> list[str]:
    """Bytes of the key index for a key, from the smallest to the largest of what was measured."""
    found = records.result("spill_overheads")["benchmarks"]
    return [between((each["bytes_per_key"] for each in found if "bytes_per_key" in each), "{:.0f}")]


def index_keys(records: Records, mib: str) -> list[str]:
    """Millions of keys that an index of so many MiB holds, by the same."""
    found = records.result("spill_overheads")["benchmarks"]
    sizes = [each["bytes_per_key"] for each in found if "bytes_per_key" in each]
    return [between((int(mib) * 2**20 / size / 1e6 for size in sizes), "{:.1f}")]


def kvaccel(records: Records, name: str) -> list[str]:
    """The arms of a workload: while writing, and to the end."""
    rows = []
    for arm, result in records.result(f"kvaccel-{name}").items():
        bill = result["bill"] or {}
        writes = result["write_latency_us"]
        rows.append(
            (
                arm,
                f"{result['throughput_ops_s']:,.0f}",
                _or_none(writes["p99"], "{:,.0f}"),
                "–" if writes["max"] is None else milliseconds(writes["max"]),
                _or_none(result["wa_total"], "{:.2f}"),
                _or_none(bill.get("seconds"), "{:.0f}"),
                _or_none(bill.get("wa_total"), "{:.2f}"),
            )
        )
    header = ("arm", "operations/s", "p99 write, µs", "worst write, ms", "`wa_total`", "to the end: s", "`wa_total`")
    return table(header, rows)


def before_after(records: Records) -> list[str]:
    """Arms of workload A by two checkouts in turns: medians over the seeds."""
    rows = []
    for arm, sides in records.bench("kvaccel-a-before-after")["runs"].items():
        before, after = (
            {name: statistics.median(run[name] for run in sides[side]) for name in sides[side][0]}
            for side in ("before", "after")
        )
        rows.append(
            (
                arm,
                *(count(each["operations/s"]) for each in (before, after)),
                *(f"{each['p99 us']:.0f}" for each in (before, after)),
                *(milliseconds(each["worst write us"]) for each in (before, after)),
            )
        )
    header = ("arm", "operations/s: before", "after", "p99, µs: before", "after", "worst write, ms: before", "after")
    return table(header, rows)


def _or_none(value: float | None, form: str) -> str:
    return "–" if value is None else form.format(value)


def advise_grid(records: Records) -> list[str]:
    """Each case: the advised configuration, the fastest, and how they stand; then the verdicts over all."""
    result = records.result("advise_grid")
    rows = [
        (
            each["drive"],
            each["load"] + (" (disturbed)" if each["disturbed"] else ""),
            each["advised"],
            each["best"],
            f"{each['of_best']:.2f}",
            f"{each['of_defaults']:.2f}" if each["of_defaults"] else "–",
            f"{each['of_least_wa_total']:.2f}" if "of_least_wa_total" in each else "–",
        )
        for each in result["results"]
    ]
    header = (
        "drive",
        "load",
        "advised",
        "fastest",
        "of the fastest",
        "of the defaults",
        "least `wa_total`: of the least",
    )
    errors = [
        (
            name,
            str(each["count"]),
            *(f"{value:.2f}" for value in each["quartiles"]),
            f"{each['within_interval']:.0%}",
        )
        for name, each in result["errors"].items()
    ]
    said = (
        f"{result['measured']} of {result['of']} cases were measured, {result['cases']} of them undisturbed by other "
        f"work on the machine, which is what follows. In {result['near']} of them the advised "
        f"configuration is within 10 % of the fastest, in {result['worse']} slower than the defaults by more "
        f"than 3 %; ranked by `wa_total`, in {result['near_total']} of {result['cases_total']} within 10 % of least"
    )
    if "kept" in result:  # since the defaults are advised where nothing is better by more than may be wrong
        said += f", in {result['worse_total']} more than 3 % above the defaults."
        said += f" In {result['kept']} the defaults are advised"
    said += "."
    titles = ("measured / predicted", "figures", "lower quartile", "median", "upper quartile", "within the interval")
    return [said, "", *table(header, rows), "", *table(titles, errors)]
