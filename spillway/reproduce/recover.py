"""Published against recovered: what a paper measured on a drive, and what the probe finds on that drive's preset.

Each figure names its preset, the host stack in front of it, where it was published and the bound it is held to. What
is found is what `spillway profile` finds: the same procedures (spillway/profile/virtual.py), whole, with its seed. A
figure that cannot be met together with the others is in the table all the same, with the reason.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from spillway.native.process import run_native
from spillway.profile import estimate, virtual
from spillway.profile.grids import BULK_BYTES
from spillway.profile.points import Sample
from spillway.profile.target import parse_target, scaled
from spillway.reproduce.document import reference
from spillway.ssd.simulate import DriveChoice, drive_request

KIB = 1024
PIO_SIZES = (1 * KIB, 4 * KIB, 8 * KIB)
SEED = 1  # that of `spillway profile`

LATENCY_BOUND = 0.10
ALPHA_BOUND = 0.10
K_BOUND = 0.25
K_STEP = 1.0  # ... or one I/O more or less
SUB_PAGE_BOUND = 0.25
MQSSD_BOUND = 0.15
SEQUENTIAL_BOUND = 0.05
MOST_READ_THREADS = 4  # beyond, MQSSD's reads are faster than the drive's link: page cache, not the drive

# PIO's names for its drives, and the presets and host stacks that stand for them.
PIO_DRIVES = {
    "Optane SSD": ("intel-p4800x", "file-system"),
    "PCIe SSD (with FS)": ("intel-p4510", "file-system"),
    "PCIe SSD (w/o FS)": ("intel-p4510", "bypass"),
    "SATA SSD": ("intel-s4610", "file-system"),
    "Virtual SSD": ("aws-60k", None),
    "HDD": ("hdd", None),
}
PIO_LATENCY_NAMES = {"PCIe SSD": "PCIe SSD (with FS)"}  # Table 1 has one row for it
SUB_PAGE_ALPHA = {"PCIe SSD (with FS)": 14.4, "SATA SSD": 13.0}  # section 2, Fig 5A
SEQUENTIAL_MB_S = {
    "intel-545s": (295.0, "cascaded WA, section 4"),
    "sandisk-ssd-plus": (117.0, "cascaded WA, section 4"),
    "toshiba-dt01aca100": (196.0, "cascaded WA, section 4"),
    "cosmos-plus": (630.0, "KVAccel, Fig 4"),
}
MQSSD_PRESET = "samsung-990-pro"

# Which part of the drive a paper's file was, where that was a small one. Then the rest of the flash is as good as spare
# and, where there is an SLC cache, the file fits in it: garbage collection and what lies behind that cache are not in
# the paper's figures. The drive is scaled to a size at which this part is large enough for 128 threads.
PART_OF_THE_DRIVE = {
    "intel-p4510": 29 / 1000,  # PIO, section 2: a file of 29 GB on 1 TB
    "intel-s4610": 29 / 240,
    MQSSD_PRESET: 50 / 1000,  # MQSSD, section 3.3: a file of 50 GB on 1 TB
}
PART_CAPACITY = "64GiB"

# Why a figure is not met: (preset, figure) → reason.
REASONS = {
    (MQSSD_PRESET, "tau k=2 us"): "less than half of the cost with one thread: see below",
    (MQSSD_PRESET, "tau k=4 us"): "less than a quarter of the cost with one thread: see below",
    (MQSSD_PRESET, "alpha k=4 us"): "less than a quarter of the cost with one thread: see below",
    (
        MQSSD_PRESET,
        "beta k=2 us",
    ): "more than with one thread and with four, which turns cannot give: see below",
}
MQSSD_REMARKS = """\
*Reads with two and four threads* cost less in the paper than a half and a quarter of what they cost one thread: k
tau(k) is 56.1, 31.1 and 16.0 us for k = 1, 2 and 4, and 4 alpha(4) is 2.64 us where alpha(1) is 3.53. Threads that
only share a drive and a host may delay each other; no thread waits less because there are others. So k times the cost
is never below the cost with one thread: tau(2) is at least 28 us, tau(4) 14 us, alpha(4) 0.88 us (0.75 if alpha(1) is
at the edge of its bound). The published figures need threads that help each other, as in a page cache, where one
thread reads what another thread or an earlier run has read (a file of 50 GB, 32 GB of memory, and no mention of direct
I/O; T29). How much was cached depends on the order of the paper's runs, which the paper does not give. A cache with
one hit ratio would lower the cost of all k alike; one ratio for each k would only copy the figures into the preset.
Beyond four threads reads are faster than the drive's link, and are not compared.

*Writes with two threads* cost beta(2) = 3.01 us, more than with one thread (2.79) and four (2.59), and little more than
half of what the preset shows. The preset's host serves in one turn all threads that wait when the turn begins. So of
two threads each waits for the other and shares its turn with nobody, and of four threads two share a turn. A turn that
is cheap enough for two threads (3.0 us less the cost of a page in it) is too cheap for four and eight: with t for the
turn and s for each page in it, t + s = 3.01 and t / 2 + s = 2.59 give s = 2.17 us, and 128 threads write a page in
0.70.
"""


@dataclass(frozen=True)
class Figure:
    """One published number, and what was found."""

    preset: str
    stack: str | None
    name: str
    published: float
    source: str
    bound: float
    is_k: bool = False
    found: float = float("nan")

    @property
    def error(self) -> float:
        """Relative to the published number."""
        return self.found / self.published - 1

    @property
    def met(self) -> bool:
        """Within its bound; a concurrency also within one I/O."""
        if not math.isfinite(self.found):
            return False
        return abs(self.error) <= self.bound or (self.is_k and abs(self.found - self.published) <= K_STEP)

    @property
    def reason(self) -> str:
        """Why it is not met, where that is known."""
        return REASONS.get((self.preset, self.name), "")


# ---------------------------------------------------------------------------------------------------------------------
# Measuring


def measure(
    preset: str, procedure: virtual.Procedure, *, stack: str | None = None, settings: Sequence[str] = ()
) -> list[Sample]:
    """Samples of ``procedure`` on a preset as its paper measured it, behind ``stack`` (None: its own). Raises
    SpillwayError."""
    fill = "1.0"
    if preset in PART_OF_THE_DRIVE:
        fill = f"{PART_OF_THE_DRIVE[preset]:.3f}"
        settings = [f"capacity.capacity_bytes={PART_CAPACITY}", *_slc_cache_kept(preset), *settings]
    target = parse_target(f"preset:{preset}", settings=tuple(settings), host_stack=stack, fill=fill)
    return virtual.run(procedure, target, scaled(target), SEED).samples


def _slc_cache_kept(preset: str) -> list[str]:
    """A profile leaves an SLC cache out unless it is asked for: here it is, as the preset has it."""
    drive = run_native("ssd-show", {"drive": drive_request(DriveChoice(preset=preset))})["drive"]
    share = drive.get("slc_cache", {}).get("share", 0)
    return [f"slc_cache.share={share}"] if share else []


def pio_figures(samples: Sequence[Sample], sizes: Sequence[int] = PIO_SIZES) -> dict[str, float]:
    """Latencies of Table 1, alpha, k_r, k_w and the saturated bandwidths of Table 2, by name."""
    found = {f"latency {op} us": estimate.latency(samples, op).value for op in estimate.OPS}
    for bs in sizes:
        pio = estimate.pio(samples, bs)
        if pio is None:
            continue
        size = f"{bs // KIB}K"
        found |= {
            f"alpha {size}": pio.alpha.value,
            f"k_r {size}": pio.k_r.value,
            f"k_w {size}": pio.k_w.value,
            f"read {size} MB/s": pio.read_max_mb_s,
            f"write {size} MB/s": pio.write_max_mb_s,
        }
    return found


def mqssd_figures(samples: Sequence[Sample]) -> dict[str, float]:
    """Costs of Table 2 by name, us for each access and page."""
    found: dict[str, float] = {}
    for op, setup, page in (("write", "sigma", "beta"), ("read", "tau", "alpha")):
        for k, (setup_us, page_us, _) in estimate.mqssd_costs(samples, op).items():
            found |= {f"{setup} k={k} us": setup_us.value, f"{page} k={k} us": page_us.value}
    return found


def sequential_figures(samples: Sequence[Sample]) -> dict[str, float]:
    """The bandwidth of large writes in order, by name."""
    bulk = [s for s in estimate.pio_samples(samples, "sequential", "write", BULK_BYTES) if s.k == 1]
    return {"sequential writes MB/s": bulk[0].bandwidth_mb_s}


# ---------------------------------------------------------------------------------------------------------------------
# What was published


def pio_published() -> list[Figure]:
    """Tables 1 and 2 of PIO, and its alphas of 1 KiB."""
    figures: list[Figure] = []
    for row in reference("pio_table1_latency"):
        preset, stack = PIO_DRIVES[PIO_LATENCY_NAMES.get(row["device"], row["device"])]
        for op, column in (("read", "rr_us"), ("write", "rw_us")):
            figures.append(Figure(preset, stack, f"latency {op} us", float(row[column]), "PIO, Table 1", LATENCY_BOUND))
    for row in reference("pio_table2_alpha_k"):
        preset, stack = PIO_DRIVES[row["device"]]
        for size in ("4", "8"):
            for name, column, is_k in (("alpha", "alpha", False), ("k_r", "kr", True), ("k_w", "kw", True)):
                value = row[f"{column}_{size}k"]
                if value:
                    bound = K_BOUND if is_k else ALPHA_BOUND
                    figures.append(Figure(preset, stack, f"{name} {size}K", float(value), "PIO, Table 2", bound, is_k))
        if row["device"] in SUB_PAGE_ALPHA:
            value_1k = SUB_PAGE_ALPHA[row["device"]]
            figures.append(Figure(preset, stack, "alpha 1K", value_1k, "PIO, section 2", SUB_PAGE_BOUND))
    return figures


def mqssd_published() -> list[Figure]:
    """Table 2 of MQSSD, from us per percent of the pages to us for each access (T28)."""
    percent_pages = 2**30 / 4096 / 100
    figures = []
    for row in reference("mqssd_table2_costs"):
        k = int(row["k"])
        costs = {"sigma": float(row["s_us"]) / percent_pages, "beta": float(row["beta_us"])}
        if k <= MOST_READ_THREADS:
            costs |= {"tau": float(row["t_us"]) / percent_pages, "alpha": float(row["alpha_us"])}
        figures += [
            Figure(MQSSD_PRESET, None, f"{name} k={k} us", cost, "MQSSD, Table 2", MQSSD_BOUND)
            for name, cost in costs.items()
        ]
    return figures


def sequential_published() -> list[Figure]:
    """Sequential writes of the cascaded-WA drives (C8) and of Cosmos+ (K17)."""
    return [
        Figure(preset, None, "sequential writes MB/s", value, source, SEQUENTIAL_BOUND)
        for preset, (value, source) in SEQUENTIAL_MB_S.items()
    ]


# ---------------------------------------------------------------------------------------------------------------------
# One beside the other


def recovered_pio() -> list[Figure]:
    """PIO's figures as the probe finds them."""
    published = pio_published()
    found = {}
    for preset, stack in dict.fromkeys((f.preset, f.stack) for f in published):
        found[preset, stack] = pio_figures(measure(preset, virtual.RANDOM, stack=stack))
    return [replace(f, found=found[f.preset, f.stack][f.name]) for f in published]


def recovered_mqssd() -> list[Figure]:
    """MQSSD's figures as the probe finds them."""
    found = mqssd_figures(measure(MQSSD_PRESET, virtual.STAGGERED))
    return [replace(f, found=found[f.name]) for f in mqssd_published()]


def recovered_sequential() -> list[Figure]:
    """Sequential writes, one stream in order."""
    return [
        replace(f, found=sequential_figures(measure(f.preset, virtual.SEQUENTIAL))[f.name])
        for f in sequential_published()
    ]


def as_markdown(title: str, figures: Sequence[Figure]) -> str:
    """A table with a verdict for each figure."""
    lines = [
        f"## {title}",
        "",
        "| preset | host stack | figure | published | recovered | error | |",
        "|---|---|---|--:|--:|--:|---|",
    ]
    for f in figures:
        verdict = "met" if f.met else "**missed**" + (f": {f.reason}" if f.reason else "")
        lines.append(
            f"| {f.preset} | {f.stack or '-'} | {f.name} ({f.source}) | {f.published:.4g} | {f.found:.4g} "
            f"| {f.error:+.0%} | {verdict} |"
        )
    met = sum(f.met for f in figures)
    return "\n".join([*lines, "", f"{met} of {len(figures)} within their bounds.", ""])


SEQUENTIAL_REMARK = """\
A profile leaves SLC caches out, so these are the rates of the flash behind them. The modelled SSD
Plus writes everything to SLC first. Once its cache is full it writes slower than published:
see claim C8 of the suite on cascaded write amplification in [RECORDED.md](RECORDED.md).
"""


def recovered_page() -> str:
    """docs/RECOVERED.md."""
    parts = ", ".join(f"{name} {part:.3f}" for name, part in PART_OF_THE_DRIVE.items())
    opening = f"""# Published against recovered

`make docs` writes this page. It measures every preset of a drive of the papers with the probe, in virtual time, and
sets the figures beside the published ones. `spillway profile preset:NAME` measures the same (with `--host-stack` where
one is named), by the same procedures and with the same seed. If a paper's file was a small part of its drive, the
same part is measured ({parts}), of a drive of {PART_CAPACITY}:
`--fill PART --set capacity.capacity_bytes={PART_CAPACITY}`, and of the 990 PRO `--set slc_cache.share=0.006`, which
keeps its SLC cache. Bounds: latencies {LATENCY_BOUND:.0%}, alpha
{ALPHA_BOUND:.0%}, k {K_BOUND:.0%} or one I/O, alpha at 1 KiB {SUB_PAGE_BOUND:.0%}, MQSSD's costs {MQSSD_BOUND:.0%},
sequential writes {SEQUENTIAL_BOUND:.0%}. If a paper contradicts itself, a comment in the preset says which figure it
follows.

"""
    sections = [
        as_markdown("PIO: latency, asymmetry, concurrency", recovered_pio()),
        as_markdown("Cascaded WA and KVAccel: sequential writes", recovered_sequential()),
        SEQUENTIAL_REMARK,
        as_markdown("MQSSD, Table 2: Samsung 990 PRO", recovered_mqssd()),
        MQSSD_REMARKS,
    ]
    return opening + "\n".join(sections)
