"""The seven pitfalls, each with what it asks for, and what else spoils a figure of a benchmark tool.

Source: Didona et al., "Toward a Better Understanding and Evaluation of Tree Structures on Flash SSDs", PVLDB 14(3),
2021 (B1 to B19). Where a threshold is not theirs the constant says whose it is.
"""

from dataclasses import dataclass

PVLDB = "PVLDB 14(3) 364-377"
STEADY_CAPACITIES = 3.0  # host writes / capacity from which a run may be steady without counters. Source: B13
# A shorter test of a fixed time is a finding. Source: guess; SNIA's PTS allows 25 rounds of a minute, rounded up.
LEAST_SECONDS = 30 * 60
LEAST_READ_SECONDS = 60  # reads alone have no garbage collection to wait for. Source: guess
LEAST_CAPACITY_BYTES = 100e9  # of a drive that anybody benchmarks. Source: guess
MOST_WA_APP = 30.0  # no tree is expected to write a byte more often than that. Source: guess
# The same of keys in order: a log, a flush, tables moved and not merged. Source: guess; C17 has about 1 for fillseq
MOST_WA_APP_IN_ORDER = 3.0
SIZES = (0.25, 0.5, 0.88)  # data set / capacity: from the least to the most of the paper's p. 371. Source: B15
SEVERAL = 2.0  # largest / smallest data set from which they are several sizes. Source: guess
PARTITION = 0.75  # of the drive: the paper's 300 of 400 GB. Source: B16


@dataclass(frozen=True)
class Pitfall:
    """What can go wrong, by number where it is one of the seven, and the guideline against it."""

    number: int | None
    slug: str  # its name in [lint.answers] and in JSON
    title: str
    guideline: str
    source: str


SHORT_TEST = Pitfall(
    1, "short-test", "short test",
    "Report the steady part: throughput, wa_app and wa_device stable, host writes at least 3 x the capacity.", PVLDB,
)  # fmt: skip
WA_DEVICE = Pitfall(
    2, "wa-device", "the drive's write amplification",
    "Measure wa_app and wa_device: only their product says what a byte costs the flash.", PVLDB,
)  # fmt: skip
INITIAL_STATE = Pitfall(
    3, "initial-state", "the drive's initial state",
    "Control and report it: trimmed, or written whole in order and then twice at random.", PVLDB,
)  # fmt: skip
DATA_SET = Pitfall(
    4, "data-set", "one data-set size",
    "Sweep data set / capacity, from 0.25 to 0.88: more valid data is more garbage collection.", PVLDB,
)  # fmt: skip
SPACE = Pitfall(
    5, "space", "space amplification",
    "Measure bytes on the drive / bytes of live data, its peak too, and count it as cost.", PVLDB,
)  # fmt: skip
OVER_PROVISIONING = Pitfall(
    6, "over-provisioning", "over-provisioning",
    "Treat spare flash as a setting: a partition smaller than the drive, the rest trimmed.", PVLDB,
)  # fmt: skip
DRIVE_TYPE = Pitfall(
    7, "drive-type", "one type of drive",
    "Measure on several classes of drive: which store is faster may turn round.", PVLDB,
)  # fmt: skip
SEVEN = (SHORT_TEST, WA_DEVICE, INITIAL_STATE, DATA_SET, SPACE, OVER_PROVISIONING, DRIVE_TYPE)

EMPTY_STORE = Pitfall(
    None, "empty-store", "reads of what is not there",
    "Load every key that is read; a miss costs no flash.", "practice",
)  # fmt: skip
CLOSED_LOOP = Pitfall(
    None, "closed-loop", "latency of a closed loop",
    "Quote latencies of an open loop, counted from the intended start; of a closed loop only throughput.",
    "coordinated omission (Tene)",
)  # fmt: skip
PAGE_CACHE = Pitfall(
    None, "page-cache", "the page cache",
    "Direct I/O, or a data set that is many times the memory.", "T29",
)  # fmt: skip
COMPRESSION = Pitfall(
    None, "compression", "compression",
    "Name the algorithm and how far the values compress: defaults differ by tool and version.", "practice",
)  # fmt: skip
DURABILITY = Pitfall(
    None, "durability", "durability",
    "Compare what is equally durable: log, syncs and flushes alike.", "practice",
)  # fmt: skip
SKEW = Pitfall(
    None, "skew", "skew",
    "Say which share of the addresses a skewed load touches: the rest of the drive is spare to it.", "practice",
)  # fmt: skip
OTHERS = (EMPTY_STORE, CLOSED_LOOP, PAGE_CACHE, COMPRESSION, DURABILITY, SKEW)

ALL = (*SEVEN, *OTHERS)
SLUGS = tuple(each.slug for each in SEVEN)
