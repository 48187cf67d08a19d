"""The MQSSD paper's model: Tables 1 and 2, Figures 1 to 4, from its own data (M1-M12, M33; T1, T6, T8, T28).

Its application to RocksDB is in `mqssd_rocksdb.py`, and what is off in its Figure 5 in `mqssd_reads.py`.
"""

from collections.abc import Callable

import numpy as np

from spillway.models import btree, mqssd
from spillway.models.arrays import PAGE_BYTES, throughput_mb_s
from spillway.reproduce.document import (
    Check,
    Reproduction,
    Section,
    Table,
    cells,
    digits,
    misprint,
    reference,
    statement,
)
from spillway.reproduce.mqssd_data import DEGREES, NAMES, R_GRID, SIDES, TEXT, costs, line
from spillway.reproduce.mqssd_fits import figure_2, figure_3, figure_4
from spillway.reproduce.mqssd_reads import section as reads_section
from spillway.reproduce.mqssd_rocksdb import sections as rocksdb_sections

# PCIe 4.0 x4: 16 GT/s on 4 lanes, 128 of 130 bits are data. Source: PCI Express Base Specification 4.0
LINK_MB_S = 16e3 * 4 * 128 / 130 / 8


def reproduce() -> Reproduction:
    """All sections, in the paper's order."""
    title = "MQSSD: multi-queue SSD I/O modeling"
    model = [_btrees(), _table_1(), _figure_1(), figure_2(), _table_2(), _readings(), figure_3(), figure_4()]
    equations, figure_5, *tables = rocksdb_sections()
    return Reproduction("mqssd", title, [*model, equations, figure_5, reads_section(), *tables])


def _table_1() -> Section:
    rows = [list(row.values()) for row in reference("mqssd_table1_devices")]
    columns_ = ("maker", "model", "firmware", "NVMe", "PCIe")
    return Section("Table 1", "given", tables=[Table("The drives", columns_, rows)])


def _figure_1() -> Section:
    return Section(
        "Figure 1",
        "not in the data: the measurements of the three drives are not printed",
        "Of the Samsung drive there are the lines through them (Table 2). The drops of the text are checked there.",
        checks=[
            statement(
                "Section 1",
                TEXT.rows["any_drop_intro"]["what"],
                TEXT.published("any_drop_intro"),
                TEXT.published("write_drop_k1") + " (Section 3.3.2)",
                TEXT.value("any_drop_intro") <= TEXT.most("write_drop_k1"),
                "T8",
            ),
            statement(
                "Section 1",
                TEXT.rows["write_drop_intro"]["what"],
                TEXT.published("write_drop_intro"),
                f"{digits(_drop('writes', 0))}× (Table 2)",
                _drop("writes", 0) >= TEXT.value("write_drop_intro"),
                remark=f"not contradicted, but Section 3.3.2 says {TEXT.published('write_drop_k1')} (T8)",
            ),
        ],
    )


def _drop(side: str, at: int) -> float:
    """Throughput at r = 0.1 % over that at 100 %, by Table 2's line number ``at``."""
    setup, page = line(side)
    least, most = mqssd.page_cost_us([0.1, 100], setup[at], page[at])
    return float(most / least)


# ---------------------------------------------------------------------------------------------------------------------
# Section 2.2: B-trees


def _btrees() -> Section:
    ratio, page_records, records = np.array([10.0, 30.0, 100.0, 300.0]), 10.0, 1e9
    exact = btree.best_point_node_pages(ratio, 1.0, page_records)
    large = btree.best_point_node_pages_of_large(ratio, 1.0)
    printed = btree.printed_point_node_pages(ratio, 1.0)
    least = btree.path_us(records, page_records, exact, ratio, 1.0)
    dear = btree.path_us(records, page_records, printed, ratio, 1.0) / least
    near = btree.path_us(records, page_records, large, ratio, 1.0) / least
    table = [cells(ratio), cells(exact), cells(large), cells(near), cells(printed), cells(dear)]
    return Section(
        "Section 2.2: B-trees in the affine model",
        "made again",
        "The node that is best for single records minimises (s + Yα) / ln(YB): Y = x / W(xB/e) with x = s/α. Here "
        "B = 10 records in a page; cost is relative to the least.",
        tables=[
            Table(
                "Best node, in pages",
                ("s/α", "exact", "x / ln x", "its cost", "x ln x as printed", "its cost"),
                [list(row) for row in zip(*table, strict=True)],
            )
        ],
        checks=[
            statement(
                "Section 2.2",
                "the node of (s/α) ln(s/α) pages is optimal for traversal",
                "optimal",
                f"{digits(float(dear.min()))} to {digits(float(dear.max()))}× the least cost",
                bool((dear < 1.05).all()),
                "T6",
                f"(s/α) / ln(s/α) is within {digits(100 * float(near.max() - 1), 2)} %",
            ),
            misprint("Section 2.2", "size of s against α", "s ≪ α", "s ≈ 100 α for hard disks (2.1.3)", "T1"),
        ],
    )


# ---------------------------------------------------------------------------------------------------------------------
# Table 2 and what follows from it


def _table_2() -> Section:
    k = costs()["k"]
    rows = []
    for index, each in enumerate(k):
        row = [f"{each:g}"]
        for side in SIDES:
            setup, page = (values[index] for values in line(side))
            speeds = throughput_mb_s(mqssd.page_cost_us([0.1, 100], setup, page))
            row += [digits(setup), digits(page), *cells(speeds)]
        rows.append(row)
    names = [f"{side} {what}" for side in SIDES for what in ("set-up µs", "page µs", "MB/s at 0.1 %", "MB/s at 100 %")]
    return Section(
        "Table 2",
        "given; what follows from it is recomputed",
        "The paper's s and t are µs per percent of the pages of a 1 GiB stream. Per random access they are s/2621.44. "
        "Cost of a page = page + p × set-up, with p the share of random pages; throughput = 4096 B / cost.",
        tables=[Table("Samsung 990 PRO: costs, and the throughput they mean", ("k", *names), rows)],
        checks=[*_drops(), *_gains(), *_trends(), _beyond_the_link()],
    )


def _drops() -> list[Check]:
    few = "the lines are regressions, and the data under them are not printed"
    return [
        TEXT.check("write_drop_k1", _drop("writes", 0)),
        TEXT.check("write_drop_kmax", _drop("writes", -1), remark="k = 128"),
        TEXT.check("read_drop_k1", _drop("reads", 0), remark=few),
        TEXT.check("read_drop_kmax", _drop("reads", -1), remark=f"k = 128; {few}"),
    ]


def _gains() -> list[Check]:
    ids = {"s": "write_setup_gain", "t": "read_setup_gain", "beta": "write_page_gain", "alpha": "read_page_gain"}
    return [TEXT.check(name, float(costs()[column][0] / costs()[column][-1])) for column, name in ids.items()]


def _trends() -> list[Check]:
    """What sections 3.3.2 and 4.2 say of how the costs behave, held against the lines of Table 2."""
    k = costs()["k"]
    rising = [
        f"{NAMES[name]} from k = {k[at]:g} to {k[at + 1]:g} by {100 * (values[at + 1] / values[at] - 1):.0f} %"
        for name, values in ((name, costs()[name]) for name in DEGREES)
        for at in np.flatnonzero(np.diff(values) > 0)
    ]
    speeds = {side: throughput_mb_s(mqssd.page_cost_us(R_GRID[:, None], *line(side))) for side in SIDES}
    over = speeds["reads"] / speeds["writes"]
    slow = [f"{each:g}" for each in k[(over < 1).any(axis=0)]]
    gain = {name: costs()[name][0] / costs()[name] for name in DEGREES}
    pairs = (("s", "t"), ("beta", "alpha"))
    reads_first = all((gain[read][1:] > gain[write][1:]).all() for write, read in pairs)
    return [
        statement(
            "Section 3.3.2",
            "reads are much faster than writes for any r and k (reads over writes)",
            "above 1",
            f"{digits(float(over.min()), 2)} to {digits(float(over.max()), 2)}",
            bool((over > 1).all()),
            remark=f"below 1 at k = {', '.join(slow)} and small r, where α(k) is more than β(k)" if slow else "",
        ),
        statement(
            "Section 4.2",
            "set-up and page costs drop as k grows",
            "stated",
            f"all but {'; '.join(rising)}, which rises" if rising else "all do",
            not rising,
        ),
        statement(
            "Section 4.2",
            "read costs diminish more quickly with k than write costs",
            "stated",
            "; ".join(
                f"{NAMES[r]} by {digits(gain[r][3])}×, {NAMES[w]} by {digits(gain[w][3])}× to k = 8" for w, r in pairs
            ),
            reads_first,
        ),
    ]


def _beyond_the_link() -> Check:
    fastest = throughput_mb_s(line("reads")[1])
    beyond = [int(k) for k, rate in zip(costs()["k"], fastest, strict=True) if rate > LINK_MB_S]
    return statement(
        "Table 2",
        "sequential reads go through the drive's PCIe 4.0 x4 link",
        f"at most {digits(LINK_MB_S)} MB/s",
        f"{digits(float(fastest.max()))} MB/s at k = 128",
        not beyond,
        "T29",
        f"beyond it from k = {beyond[0]} on: the host's page cache, not the drive" if beyond else "",
    )


def _readings() -> Section:
    def both(cost: Callable[[float, int, str], float]) -> list[str]:
        return [f"{digits(_ratio(cost, 0, side))} → {digits(_ratio(cost, -1, side))}" for side in SIDES]

    rows = [
        ["stated, three drives", "–", "38–57 → 5.0–7.8", "18–23 → 1.3–1.5"],
        ["costs add", "percent, 2^30 B", *both(_adding(1.0, 2.0**30))],
        ["costs add", "percent, 10^9 B", *both(_adding(1.0, 1e9))],
        ["costs add", "share of 1", *both(_adding(0.01, 2.0**30))],
        ["costs add", "number of accesses", *both(_adding(2621.44, 2.0**30))],
        ["throughputs add, as printed", "percent", *both(_as_printed(1.0))],
        ["throughputs add, as printed", "share of 1", *both(_as_printed(0.01))],
        ["throughputs add, as printed", "number of accesses", *both(_as_printed(2621.44))],
    ]
    printed = _ratio(_as_printed(1.0), 0, "writes")
    return Section(
        "Equations 3, 7 and 8",
        "made again",
        "What Table 2 says about the drop of throughput from r = 0.1 % to 100 %, k = 1 → k = 128, under each reading "
        "of r and of the equations. Only one agrees with the text.",
        tables=[Table("Drop of throughput", ("form", "r", "writes", "reads"), rows)],
        checks=[
            statement(
                "Equations 7 and 8",
                "a sum of throughputs gives the stated drop of writes at k = 1",
                TEXT.published("write_drop_k1"),
                f"{digits(printed)}×",
                TEXT.value("write_drop_k1") <= printed <= TEXT.most("write_drop_k1"),
                "T28",
                "costs add, not throughputs: cost = β + p σ",
            )
        ],
    )


def _ratio(cost: Callable[[float, int, str], float], at: int, side: str) -> float:
    return cost(100.0, at, side) / cost(0.1, at, side)


def _adding(per_percent: float, stream_bytes: float) -> Callable[[float, int, str], float]:
    """T = s r + (N/B) beta with r in a unit of which there are ``per_percent`` in a percent of 2^30 B."""

    def cost(r: float, at: int, side: str) -> float:
        setup, page = SIDES[side]
        return float(costs()[setup][at] * r * per_percent + stream_bytes / PAGE_BYTES * costs()[page][at])

    return cost


def _as_printed(per_percent: float) -> Callable[[float, int, str], float]:
    """1 / (N / (s r) + B / beta): eqs 7 and 8 to the letter."""

    def cost(r: float, at: int, side: str) -> float:
        setup, page = SIDES[side]
        return float(1 / (2.0**30 / (costs()[setup][at] * r * per_percent) + PAGE_BYTES / costs()[page][at]))

    return cost
