"""The PIO paper's tables and figures from its own data (P1-P10, P29; T10-T14)."""

from collections.abc import Callable

import numpy as np

from spillway.models import pio
from spillway.models.arrays import PAGE_BYTES, Array
from spillway.reproduce.document import (
    Chart,
    Check,
    Curve,
    InText,
    Panel,
    Reproduction,
    Section,
    Table,
    cells,
    digits,
    reference,
    statement,
)

ALPHAS = (1.0, 2.0, 4.0, 8.0)
BATCHES = np.arange(1, 17, dtype=np.float64)
READ_SHARES = (0.1, 0.25, 0.5, 0.75, 0.9)

TEXT = InText("pio_in_text")

Gain = Callable[[float, float, float], float]  # of share of reads, alpha, k


def reproduce() -> Reproduction:
    """All sections, in the paper's order."""
    title = "PIO: a parametric I/O model for modern storage devices"
    sections = [_figure_1(), _drawings(), _table_1(), _figure_4(), _figure_5(), _table_2()]
    return Reproduction(
        "pio", title, [*sections, _figure_6(), _figure_7(), _figure_8(), _figure_9(), _figure_10(), _appendix_a()]
    )


def _figure_1() -> Section:
    curves = [Curve(f"α = {a:g}", BATCHES, pio.speedup_of_batched_writes(0.5, a, BATCHES)) for a in ALPHAS]
    panel = Panel("batched writes, half of the accesses reads", "concurrent writes k", "gain", curves)
    advertised = float(pio.asymmetry(TEXT.value("p4320_read"), TEXT.value("p4320_write")))
    return Section(
        "Figure 1",
        "made again in part: of panel A the paper gives three figures, of panel B no share of reads",
        "Panel B is S against k for devices of different α. It is drawn here for f_r = 0.5, which is an assumption: "
        "the paper names no share for it.",
        charts=[Chart("pio-1b", "PIO Figure 1B: gain of batched writes", [panel])],
        checks=[
            TEXT.check("p4320_alpha", advertised),
            TEXT.open("largest_alpha_random", "the rates behind it are not given"),
            TEXT.open("largest_alpha_sequential", "the rates behind it are not given"),
        ],
    )


def _drawings() -> Section:
    return Section("Figures 2 and 3", "drawings of erase blocks and channels, without data")


def _latencies() -> dict[str, tuple[float, float]]:
    return {row["device"]: (float(row["rr_us"]), float(row["rw_us"])) for row in reference("pio_table1_latency")}


def _table_1() -> Section:
    latency = _latencies()
    rows = [
        [device, digits(read), digits(write), digits(write / read), digits(PAGE_BYTES / read)]
        for device, (read, write) in latency.items()
    ]
    optane, pcie, sata, hdd = (latency[name][0] for name in ("Optane SSD", "PCIe SSD", "SATA SSD", "HDD"))
    return Section(
        "Table 1",
        "given; what follows from it is recomputed",
        tables=[
            Table(
                "Latency of 4 KB random accesses, and what one access at a time can move",
                ("device", "read µs", "write µs", "write / read", "reads MB/s at depth 1"),
                rows,
            )
        ],
        checks=[
            TEXT.check("optane_over_pcie", pcie / optane),
            TEXT.check("pcie_over_sata", sata / pcie),
            TEXT.check("sata_over_hdd", hdd / sata),
            TEXT.check("hdd_alpha", latency["HDD"][1] / hdd, remark="from latency"),
        ],
    )


def _figure_4() -> Section:
    latency = _latencies()
    pcie_read = latency["PCIe SSD"][0]
    implied = PAGE_BYTES / (TEXT.value("pcie_read") / TEXT.value("pcie_gain"))
    optane_read = TEXT.value("optane_gain") * PAGE_BYTES / latency["Optane SSD"][0]
    optane_write = optane_read / _alpha("Optane SSD")
    return Section(
        "Figure 4",
        "not in the data: the curves are not printed; figures that the text takes from them are checked",
        checks=[
            statement(
                "Section 2",
                "PCIe SSD, latency of one read that a gain of 40× to 1900 MB/s implies",
                f"{pcie_read:g} µs (Table 1)",
                f"{digits(implied)} µs",
                bool(abs(implied / pcie_read - 1) < 0.05),
                "T12",
                "from Table 1's latency the gain to 1900 MB/s is "
                f"{digits(TEXT.value('pcie_read') * pcie_read / PAGE_BYTES, 2)}×",
            ),
            statement(
                "Section 2",
                "Optane SSD, gain of 4× within what k_r = 6 allows",
                TEXT.published("optane_gain"),
                f"at most {_concurrency('Optane SSD')[0]:g}×",
                _concurrency("Optane SSD")[0] >= TEXT.value("optane_gain"),
                remark=f"4× of one read in {latency['Optane SSD'][0]:g} µs is {digits(optane_read)} MB/s",
            ),
            TEXT.check(
                "optane_write_over_pcie", optane_write / TEXT.value("pcie_write"), remark="by α = 1.1 of 4× reads"
            ),
            *_text_about_table_2(),
            _writes_before_reads(latency),
            *_virtual_ssd(),
            *_raw_access(),
        ],
    )


# What section 2 says of a device's α and k: (device, figure in words, column of Table 2, published).
TEXT_FIGURES = (
    ("Optane SSD", "α at 4 KB", "alpha_4k", 1.1),
    ("Optane SSD", "concurrency", "kr_4k", 6.0),
    ("PCIe SSD (with FS)", "α at 4 KB", "alpha_4k", 2.8),
    ("PCIe SSD (with FS)", "α at 8 KB", "alpha_8k", 1.9),
    ("PCIe SSD (with FS)", "random reads of 4 KB that saturate it", "kr_4k", 80.0),
    ("PCIe SSD (with FS)", "random writes of 8 KB that saturate it", "kw_8k", 7.0),
    ("PCIe SSD (w/o FS)", "α at 4 KB", "alpha_4k", 3.0),
    ("PCIe SSD (w/o FS)", "α at 8 KB", "alpha_8k", 3.0),
    ("PCIe SSD (w/o FS)", "random reads of 4 KB that saturate it", "kr_4k", 16.0),
    ("SATA SSD", "α at 4 KB", "alpha_4k", 1.5),
    ("SATA SSD", "random reads of 4 KB that saturate it", "kr_4k", 25.0),
    ("SATA SSD", "α at 8 KB", "alpha_8k", 1.3),
    ("SATA SSD", "random writes of 8 KB that saturate it", "kw_8k", 5.0),
)


def _text_about_table_2() -> list[Check]:
    same = [float(_device(device)[column]) == published for device, _, column, published in TEXT_FIGURES]
    other = [
        f"{figure} of {device}" for (device, figure, _, _), holds in zip(TEXT_FIGURES, same, strict=True) if not holds
    ]
    words = f"{len(same)} figures of α and k in the text are those of Table 2"
    return [statement("Section 2", words, "the same", f"{sum(same)} are", all(same), remark="; ".join(other))]


def _writes_before_reads(latency: dict[str, tuple[float, float]]) -> Check:
    read, write = latency["PCIe SSD"]
    return statement(
        "Section 2",
        "PCIe SSD, with few I/Os at once writes are faster than reads",
        "stated",
        f"a read takes {read:g} µs, a write {write:g} µs (Table 1)",
        write < read,
        remark="Table 1 has one access at a time, where no device writes faster than it reads",
    )


def _virtual_ssd() -> list[Check]:
    read_us, write_us = _latencies()["Virtual SSD"]
    k_r, k_w = _concurrency("Virtual SSD")
    cap = TEXT.value("virtual_cap") * 1e3 / 1e6  # accesses per us
    return [
        statement(
            "Section 2",
            "Virtual SSD, gain within what 11 synchronous I/Os allow",
            TEXT.published("virtual_gain"),
            f"at most {k_r:g}×",
            k_r >= TEXT.value("virtual_gain"),
            "T14",
        ),
        _same("Table 2", "Virtual SSD, reads in flight at 60 K IOPS and Table 1's latency", k_r, cap * read_us),
        _same(
            "Table 2",
            "Virtual SSD, writes in flight at 60 K IOPS and Table 1's latency",
            k_w,
            cap * write_us,
            remark=f"19 in flight at the cap mean {digits(k_w / cap)} µs a write",
        ),
        _same("Table 2", "Virtual SSD, α at 4 KB from slopes below the cap, 19/11", 2.0, k_w / k_r, "T14"),
        _same(
            "Table 2",
            "Virtual SSD, α at 4 KB by its definition, both capped at 60 K IOPS",
            2.0,
            float(pio.asymmetry(cap, cap)),
            "T14",
            "a software cap hides the asymmetry; it must come from slopes",
        ),
    ]


def _raw_access() -> list[Check]:
    read = TEXT.value("pcie_read") * TEXT.value("raw_read_gain")
    write = TEXT.value("pcie_write") * TEXT.value("raw_write_gain")
    return [
        _same(
            "Table 2",
            "PCIe SSD with file system, α at 4 KB from 1900 and 700 MB/s",
            _alpha("PCIe SSD (with FS)"),
            float(pio.asymmetry(TEXT.value("pcie_read"), TEXT.value("pcie_write"))),
        ),
        _same(
            "Table 2",
            "PCIe SSD without file system, α at 4 KB from gains of 1.7× and 1.4×",
            _alpha("PCIe SSD (w/o FS)"),
            float(pio.asymmetry(read, write)),
            "T13",
        ),
    ]


def _same(where: str, what: str, published: float, ours: float, erratum: str = "", remark: str = "") -> Check:
    holds = bool(abs(ours / published - 1) <= 0.05)
    return statement(where, what, f"{published:g}", digits(ours), holds, erratum, remark)


def _device(name: str) -> dict[str, str]:
    return next(row for row in reference("pio_table2_alpha_k") if row["device"] == name)


def _alpha(name: str) -> float:
    return float(_device(name)["alpha_4k"])


def _concurrency(name: str) -> tuple[float, float]:
    row = _device(name)
    return float(row["kr_4k"]), float(row["kw_4k"])


def _figure_5() -> Section:
    return Section(
        "Figure 5",
        "not in the data: of its curves two points are in the text, and those of 4 and 8 KB in Table 2",
        checks=[
            *(TEXT.open(name, "measured") for name in ("sata_alpha_1k", "pcie_alpha_1k")),
            _falls_with_size("α", ("alpha",)),
            _falls_with_size("k", ("kr", "kw")),
        ],
    )


def _falls_with_size(symbol: str, names: tuple[str, ...]) -> Check:
    """Section 2's trend on Table 2: no device has more of it at 8 KB than at 4 KB."""
    ratios = []
    for row in reference("pio_table2_alpha_k"):
        for name in names:
            small, large = row[f"{name}_4k"], row[f"{name}_8k"]
            if small and large:
                ratios.append(float(large) / float(small))
    return statement(
        "Section 2",
        f"{symbol} falls as accesses grow: 8 KB over 4 KB, all devices of Table 2",
        "at most 1",
        f"{digits(min(ratios), 2)} to {digits(max(ratios), 2)}",
        max(ratios) <= 1 and min(ratios) < 1,
    )


def _table_2() -> Section:
    rows, unequal = [], []
    for row in reference("pio_table2_alpha_k"):
        for size in ("4", "8"):
            printed = [row[f"{name}_{size}k"] for name in ("alpha", "kr", "kw")]
            if not all(printed):
                continue
            alpha, k_r, k_w = map(float, printed)
            gains = [
                pio.speedup_of_batched_writes(0.5, alpha, k_w),
                pio.speedup_of_batched_reads(0.5, alpha, k_r),
                pio.speedup_of_both_batched(0.5, alpha, k_r, k_w),
            ]
            rows.append([row["device"], f"{size} KB", *printed, digits(k_r / k_w), *cells(gains)])
            if k_r > 1 or k_w > 1:
                unequal.append(k_r / k_w / alpha)
    return Section(
        "Table 2",
        "given; what the model makes of it is computed",
        "The last three columns are speed-ups at f_r = 0.5 with the device's k.",
        tables=[
            Table(
                "Asymmetry and concurrency, and the speed-ups they promise",
                ("device", "accesses", "α", "k_r", "k_w", "k_r / k_w", "S writes", "S′ reads", "S″ both"),
                rows,
            )
        ],
        checks=[
            statement(
                "Section 2",
                "α is not k_r / k_w (of devices with concurrency; k_r / k_w over α)",
                "in general not 1",
                f"{digits(min(unequal), 2)} to {digits(max(unequal), 2)}",
                any(abs(ratio - 1) > 0.05 for ratio in unequal),
            )
        ],
    )


def _figure_6() -> Section:
    shares = np.linspace(0, 1, 51)
    curves = [Curve(f"α = {a:g}", shares, pio.cost(shares, a)) for a in ALPHAS]
    panel = Panel("nothing batched", "share of reads f_r", "cost of an access, in reads", curves)
    rows = [[f"{a:g}", *cells(pio.cost(READ_SHARES, a))] for a in ALPHAS]
    return Section(
        "Figure 6",
        "made again",
        tables=[Table("Cost of an access", ("α", *(f"f_r = {share:g}" for share in READ_SHARES)), rows)],
        charts=[Chart("pio-6", "PIO Figure 6: cost without batching", [panel])],
    )


def _figure_7() -> Section:
    checks = [TEXT.check("writes_alpha8", _writes(0.5, 8, 8)), TEXT.check("writes_alpha1", _writes(0.5, 1, 8))]
    checks.append(
        statement(
            "Section 3.1",
            "S rises with α, and does not depend on it for reads or writes alone",
            "stated",
            f"{digits(_writes(0.5, 1, 8))} to {digits(_writes(0.5, 8, 8))} from α = 1 to 8 at f_r = 0.5",
            _writes(0.5, 8, 8) > _writes(0.5, 1, 8) and _writes(0, 8, 8) == _writes(0, 1, 8) == 8,
        )
    )
    checks.append(_cost_of_a_batched_write())
    return _speedups(7, "Unbatchable reads, batchable writes: S", _writes, "k_w", checks)


def _cost_of_a_batched_write() -> Check:
    """Section 3.1 names no index. With k_r, of which it has just spoken, the cost is another one: k_r is not k_w."""
    over = []
    for row in reference("pio_table2_alpha_k"):
        alpha, k_r, k_w = (float(row[f"{name}_4k"]) for name in ("alpha", "kr", "kw"))
        over.append(float(pio.cost(0, alpha, k_r, k_w)) / (alpha / k_r))
    return statement(
        "Section 3.1",
        "cost of a batched write",
        "α / k",
        f"α / k_w: {digits(min(over), 2)} to {digits(max(over), 2)} of α / k_r (Table 2)",
        bool(np.allclose(over, 1)),
        "T10",
    )


def _figure_8() -> Section:
    checks = [TEXT.check("reads_alpha1", _reads(0.5, 1, 8)), TEXT.check("reads_alpha8", _reads(0.5, 8, 8))]
    checks.append(
        statement(
            "Section 3.1",
            "S′ falls with α",
            "stated",
            f"{digits(_reads(0.5, 1, 8))} to {digits(_reads(0.5, 8, 8))} from α = 1 to 8 at f_r = 0.5",
            _reads(0.5, 8, 8) < _reads(0.5, 1, 8),
        )
    )
    checks.append(
        statement(
            "Section 3.1",
            "where α > 1, batching reads gains less than batching writes",
            "stated",
            f"{digits(_reads(0.5, 2, 8))}× and {digits(_writes(0.5, 2, 8))}× at α = 2, f_r = 0.5, k = 8",
            all(_reads(0.5, alpha, 8) < _writes(0.5, alpha, 8) for alpha in ALPHAS[1:]),
        )
    )
    return _speedups(8, "Batchable reads, unbatchable writes: S′", _reads, "k_r", checks)


def _writes(read_share: float, alpha: float, k: float) -> float:
    return float(pio.speedup_of_batched_writes(read_share, alpha, k))


def _reads(read_share: float, alpha: float, k: float) -> float:
    return float(pio.speedup_of_batched_reads(read_share, alpha, k))


def _speedups(number: int, caption: str, gain: Gain, k_name: str, checks: list[Check]) -> Section:
    panels = []
    for share in (0.1, 0.5, 0.9):
        curves = [Curve(f"α = {a:g}", BATCHES, _each(gain, share, a)) for a in ALPHAS]
        panels.append(Panel(f"f_r = {share:g}", f"concurrent I/Os {k_name}", "speed-up", curves))
    rows = [[f"{a:g}", *cells([gain(share, a, 8) for share in READ_SHARES])] for a in ALPHAS]
    return Section(
        f"Figure {number}",
        "made again",
        caption + ".",
        tables=[Table(f"Speed-up at {k_name} = 8", ("α", *(f"f_r = {share:g}" for share in READ_SHARES)), rows)],
        charts=[Chart(f"pio-{number}", f"PIO Figure {number}: {caption}", panels)],
        checks=checks,
    )


def _each(gain: Gain, share: float, alpha: float) -> Array:
    return np.array([gain(share, alpha, float(k)) for k in BATCHES])


def _figure_9() -> Section:
    alpha, ks = _alpha("PCIe SSD (with FS)"), (1.0, 4.0, 8.0, 16.0)
    rows = []
    for share in READ_SHARES:
        for k_r in ks:
            rows.append([f"{share:g}", f"{k_r:g}", *cells(pio.speedup_of_both_batched(share, alpha, k_r, ks))])
    few, many = (_gains_of(share, alpha) for share in (0.1, 0.9))
    return Section(
        "Figure 9",
        "made again",
        f"Batchable reads and writes: S″ at α = {alpha:g}, the PCIe SSD's.",
        tables=[Table("Speed-up", ("f_r", "k_r", *(f"k_w = {k:g}" for k in ks)), rows)],
        charts=[
            Chart("pio-9", f"PIO Figure 9: batchable reads and writes, S″ at α = {alpha:g}", _both_panels(alpha, ks))
        ],
        checks=[
            statement(
                "Section 3.1",
                "with few reads (f_r = 0.1) the speed-up is that of writing, whatever k_r is",
                "stated",
                f"k_w = 16 gains {digits(few[1])}×, k_r = 16 gains {digits(few[0])}×",
                few[1] > 4 * few[0],
                remark="each over 1, the other being 1",
            ),
            statement(
                "Section 3.1",
                "with many reads (f_r = 0.9) reading at once counts",
                "stated",
                f"k_w = 16 gains {digits(many[1])}×, k_r = 16 gains {digits(many[0])}×",
                many[0] > few[0] and many[0] > many[1],
            ),
            statement(
                "Section 3.1",
                "concurrent writing counts for more than concurrent reading, because of the asymmetry",
                "stated",
                f"{digits(_writes(0.5, alpha, 8))}× and {digits(_reads(0.5, alpha, 8))}× at f_r = 0.5, k = 8",
                _writes(0.5, alpha, 8) > _reads(0.5, alpha, 8),
            ),
        ],
    )


def _both_panels(alpha: float, ks: tuple[float, ...]) -> list[Panel]:
    panels = []
    for share in READ_SHARES:
        curves = [Curve(f"k_r = {k:g}", BATCHES, pio.speedup_of_both_batched(share, alpha, k, BATCHES)) for k in ks]
        panels.append(Panel(f"f_r = {share:g}", "concurrent writes k_w", "speed-up", curves))
    return panels


def _gains_of(share: float, alpha: float) -> tuple[float, float]:
    """S″ of reads alone and of writes alone at 16."""
    reads, writes = pio.speedup_of_both_batched(share, alpha, [16, 1], [1, 16])
    return float(reads), float(writes)


def _figure_10() -> Section:
    alpha, k_w = _alpha("PCIe SSD (with FS)"), _concurrency("PCIe SSD (with FS)")[1]
    batch = np.array([1, 2, 4, 8, 12, 16], dtype=np.float64)
    gain = pio.speedup_of_batched_writes(0.5, alpha, np.minimum(batch, k_w))
    rows = [[f"{int(k)}", digits(float(s))] for k, s in zip(batch, gain, strict=True)]
    return Section(
        "Figure 10",
        "not in the data: a measurement of which no figure is printed",
        "A buffer pool that writes back several dirty pages at a time, f_r = 0.5, on the PCIe SSD with k_w = 8. The "
        "formula stays level beyond k_w; the paper's measurement drops there, by the host's cost of more threads. What "
        "a buffer pool really gains is for a measurement to say.",
        tables=[Table(f"S by the formula, α = {alpha:g}", ("pages at a time", "S"), rows)],
    )


def _appendix_a() -> Section:
    channels = np.array([4.0, 8.0, 16.0, 32.0])
    rows = []
    for each in (1, 2, 3):
        exact = pio.empty_share(channels, each * channels)
        rows.append([f"{each} n", *cells(100 * exact), digits(100 * float(pio.empty_share_of_many(each)))])
    idle, busy = float(pio.empty_share(8, 8)), 1 - float(pio.empty_share(8, 24))
    return Section(
        "Appendix A",
        "made again",
        "m I/Os fall on n channels at random; E_m channels get none. E_m = n ((n-1)/n)^m is exact, e^(-m/n) what E_m/n "
        "tends to.",
        tables=[
            Table("Idle channels, %", ("I/Os m", *(f"n = {n:g}" for n in channels), "n → ∞"), rows),
        ],
        checks=[
            TEXT.check("idle_at_n", idle, "T11", "n = 8, exact; 0.37 is the limit for many channels"),
            TEXT.check("busy_at_3n", busy, remark="n = 8, exact"),
        ],
    )
