"""Requests of `spillway ssd …`: drive, initial state and workload; and how far a simulated workload wears the drive."""

import json
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from spillway.errors import SpillwayError
from spillway.figures.amplification import nand_total
from spillway.figures.lifetime import Endurance, Price, Work, in_words, lifetime
from spillway.quantity import human_bytes, nearest, parse_share, parse_size, whole_number
from spillway.ssd.preset import check_preset, preset_dirs, preset_path, whole_drive

EXPLICIT_CAPACITY_BYTES = 4 * 2**30
READ_IOS = 200_000  # a read-only workload has no written capacity to be measured by
WRITES_CAPACITIES = 1.0
HOTCOLD_WARMUP_CAPACITIES = 8.0  # two traffic classes take some capacities to part from each other
WORKLOADS = ("randwrite", "randread", "seqwrite", "seqread", "mixed", "hotcold")
GC_POLICIES = ("greedy", "fifo", "d-choices", "cost-benefit")
INITIAL_STATES = ("steady", "sequential", "trimmed")

# Preset keys that have a flag of their own, and the field of DriveChoice that holds it: counts, then sizes.
COUNT_FLAGS = {
    "geometry.channels": "channels",
    "geometry.chips_per_channel": "chips",
    "geometry.dies_per_chip": "dies",
    "geometry.planes_per_die": "planes",
    "geometry.pages_per_block": "pages_per_block",
}
SIZE_FLAGS = {
    "geometry.page_bytes": "page_bytes",
    "geometry.mapping_unit_bytes": "mapping_unit",
    "capacity.capacity_bytes": "capacity",
    "write_cache.bytes": "write_cache",
    "mapping_cache.bytes": "mapping_cache",
}
SHARE_FLAGS = {"capacity.spare_factor": "spare_factor", "capacity.over_provisioning": "op", "gc.policy": "gc"}
HOST_STACK_KEY = "host.stack"
# Keys of a request that nothing but a flag sets.
WORK_FLAGS = {
    "workload.name": "--workload",
    "workload.bs_bytes": "--bs",
    "workload.iodepth": "--iodepth",
    "workload.read_share": "the share of reads in --workload",
    "workload.hot_space": "the hot space in --workload",
    "workload.hot_traffic": "the hot traffic in --workload",
    "workload.compression_ratio": "--compression-ratio",
    "workload.range": "--range",
    "workload.writes_capacities": "--writes",
    "workload.ios": "--ios",
    "initial.kind": "--initial",
    "initial.fill": "--fill",
    "initial.warmup_capacities": "--warmup",
    "initial.compression_ratio": "--compression-ratio",
    "initial.path": "--state",
}


@dataclass
class DriveChoice:
    """A drive as flags name it; None means that the flag was not given."""

    preset: str | None = None
    preset_file: Path | None = None
    channels: int | None = None
    chips: int | None = None
    dies: int | None = None
    planes: int | None = None
    page_bytes: str | None = None
    mapping_unit: str | None = None
    pages_per_block: int | None = None
    capacity: str | None = None
    spare_factor: str | None = None
    op: str | None = None
    gc: str | None = None
    write_cache: str | None = None
    mapping_cache: str | None = None
    host_stack: str | None = None
    settings: tuple[str, ...] = ()


@dataclass
class WorkChoice:
    """A synthetic workload and the state it starts from, as flags name them."""

    workload: str = "randwrite"
    bs: str = "4KiB"
    iodepth: int = 32
    fill: str = "1.0"
    warmup: float | None = None
    compression_ratio: float | None = None
    writes: float | None = None
    ios: int | None = None
    initial: str | None = None
    state: Path | None = None
    range: str | None = None


@dataclass(frozen=True)
class Workload:
    """A parsed ``--workload``."""

    name: str
    shares: dict[str, float] = field(default_factory=dict)


def drive_request(choice: DriveChoice) -> dict[str, Any]:
    """The contract's ``drive``: the preset, if any, and every flag as an override of a preset key. Raises
    SpillwayError."""
    if choice.preset is not None and choice.preset_file is not None:
        raise SpillwayError("--preset and --preset-file both name the drive: give one of them.")
    if choice.preset is not None:
        check_preset(choice.preset, "--preset")
    if choice.preset_file is not None and not choice.preset_file.is_file():
        raise SpillwayError(f"--preset-file {choice.preset_file}: there is no such file.")
    settings = _geometry_settings(choice) | _size_settings(choice)
    if choice.gc is not None:
        settings |= gc_settings(choice.gc)
    if choice.host_stack is not None:
        settings[HOST_STACK_KEY] = json.dumps(choice.host_stack, ensure_ascii=False)  # a text, as TOML spells it
    for setting in choice.settings:
        key, value = split_setting(setting)
        if key == HOST_STACK_KEY and choice.host_stack is not None:
            raise SpillwayError(f"--host-stack and --set {HOST_STACK_KEY} both name the host's software: give one.")
        settings[key] = value
    return {
        "preset": choice.preset or "",
        "preset_file": str(choice.preset_file.absolute()) if choice.preset_file else "",
        "preset_dirs": [str(directory.absolute()) for directory in preset_dirs()],
        "set": settings,
    }


def _flag(name: str) -> str:
    return "--" + name.replace("_", "-")


@contextmanager
def errors_name_flags(choice: DriveChoice) -> Iterator[None]:
    """What the native side says about keys is said of the flags that set them."""
    try:
        yield
    except SpillwayError as error:
        raise type(error)(flags_for_keys(str(error), choice)) from error


def flags_for_keys(sentence: str, choice: DriveChoice) -> str:
    """``sentence`` with the flag in the place of each key, wherever the key's value came from a flag or a default.

    A key keeps its name where it came from a preset or from ``--set``: there it is what the reader finds.
    """
    if "unknown key" in sentence:
        return sentence  # no flag makes a key that does not exist
    return with_flags(sentence, _flags_of_keys(choice))


def with_flags(sentence: str, flags: Mapping[str, str]) -> str:
    """``sentence`` with each whole key of ``flags`` replaced by its flag."""
    for key, flag in flags.items():
        # "--set: " is how the native side calls all that comes with a request.
        sentence = re.sub(rf"(^--set: )?(?<![\w.]){re.escape(key)}(?![\w.])", flag, sentence)
    return sentence


def _flags_of_keys(choice: DriveChoice) -> dict[str, str]:
    by_key = COUNT_FLAGS | SIZE_FLAGS | SHARE_FLAGS
    set_by_key = {setting.partition("=")[0].strip() for setting in choice.settings}
    explicit = choice.preset is None and choice.preset_file is None
    names = {
        key: _flag(name)
        for key, name in by_key.items()
        if key not in set_by_key and (explicit or getattr(choice, name) is not None)
    }
    if choice.op is not None and "capacity.spare_factor" not in set_by_key:
        names["capacity.spare_factor"] = "the spare factor of --op"
    if choice.host_stack is not None:
        names[HOST_STACK_KEY] = "--host-stack"
    # The native side also calls some keys by their last word, where the table is plain.
    if "geometry.mapping_unit_bytes" in names:
        names["mapping_unit_bytes"] = names["geometry.mapping_unit_bytes"]
    return names | WORK_FLAGS


def _geometry_settings(choice: DriveChoice) -> dict[str, str]:
    counts = {key: getattr(choice, name) for key, name in COUNT_FLAGS.items()}
    return {key: str(value) for key, value in counts.items() if value is not None}


def _size_settings(choice: DriveChoice) -> dict[str, str]:
    sizes = {key: (_flag(name), getattr(choice, name)) for key, name in SIZE_FLAGS.items()}
    settings = {key: str(parse_size(text, flag)) for key, (flag, text) in sizes.items() if text is not None}
    explicit = choice.preset is None and choice.preset_file is None
    if explicit and choice.capacity is None:
        settings["capacity.capacity_bytes"] = str(EXPLICIT_CAPACITY_BYTES)
    if choice.spare_factor is not None and choice.op is not None:
        raise SpillwayError("--spare-factor and --op state the same thing twice: give one of them.")
    if choice.spare_factor is not None:
        settings["capacity.spare_factor"] = str(parse_share(choice.spare_factor, "--spare-factor"))
    if choice.op is not None:
        settings["capacity.over_provisioning"] = str(_over_provisioning(choice.op))
    return settings


def _over_provisioning(text: str) -> float:
    """OP = (T - U) / U may exceed 1, so a bare number is a fraction and only ``%`` makes a percentage."""
    try:
        value = float(text.removesuffix("%")) / (100 if text.endswith("%") else 1)
    except ValueError:
        value = -1.0
    if not 0 <= value < float("inf"):
        raise SpillwayError(f"--op is {text!r}, which is not an over-provisioning: write 0.28 or 28%.")
    return value


def gc_settings(text: str) -> dict[str, str]:
    """``greedy``, ``fifo``, ``cost-benefit`` or ``d-choices:D`` as preset keys. Raises SpillwayError."""
    name, colon, choices = text.partition(":")
    if name not in GC_POLICIES:
        raise SpillwayError(
            f"--gc {text!r} is none of greedy, fifo, d-choices:D and cost-benefit{nearest(name, GC_POLICIES)}"
        )
    if name != "d-choices":
        if colon:
            raise SpillwayError(f"--gc {text!r}: only d-choices takes a number; write --gc {name}.")
        return {"gc.policy": name}
    if not whole_number(choices):
        raise SpillwayError(
            f"--gc {text!r}: d-choices takes the number of erase blocks it compares, as in d-choices:10."
        )
    return {"gc.policy": text}


def split_setting(setting: str) -> tuple[str, str]:
    """Key and value of ``KEY=VALUE``. Raises SpillwayError."""
    key, equals, value = setting.partition("=")
    if not equals or not key.strip():
        raise SpillwayError(f"--set {setting!r} has the form KEY=VALUE, such as capacity.spare_factor=0.2.")
    return key.strip(), value.strip()


def parse_workload(text: str) -> Workload:
    """``randwrite``, ``mixed:0.7`` (read share) or ``hotcold:0.1/0.9`` (share of the space / of the traffic). Raises
    SpillwayError."""
    name, colon, shares = text.partition(":")
    if name not in WORKLOADS:
        raise SpillwayError(f"--workload {text!r} is none of {', '.join(WORKLOADS)}{nearest(name, WORKLOADS)}")
    if name == "mixed":
        if not colon:
            raise SpillwayError("--workload mixed takes the share of reads, as in mixed:0.7.")
        return Workload(name, {"read_share": parse_share(shares, "the share of reads in --workload")})
    if name == "hotcold":
        space, slash, traffic = shares.partition("/")
        if not slash:
            raise SpillwayError(
                "--workload hotcold takes the hot share of space and of traffic, as in hotcold:0.1/0.9."
            )
        return Workload(
            name,
            {
                "hot_space": parse_share(space, "the hot space in --workload"),
                "hot_traffic": parse_share(traffic, "the hot traffic in --workload"),
            },
        )
    if colon:
        raise SpillwayError(f"--workload {name} takes no number; write --workload {name}.")
    return Workload(name)


def initial_request(work: WorkChoice, workload: Workload | None) -> dict[str, Any]:
    """The contract's ``initial``; without ``--initial`` the state from which the workload is usually measured. Raises
    SpillwayError."""
    fill = parse_share(work.fill, "--fill")
    if work.state is not None:
        if work.initial is not None:
            raise SpillwayError("--initial and --state both say how the drive starts: give one of them.")
        if not work.state.is_file():
            raise SpillwayError(f"--state {work.state}: there is no such file; `spillway ssd precondition` makes one.")
        return {
            "kind": "file",
            "fill": fill,
            "warmup_capacities": work.warmup or 0.0,
            "path": str(work.state.absolute()),
            **compression_request(work),
        }
    kind = work.initial or _default_initial(workload.name if workload else "randwrite", fill)
    if kind not in INITIAL_STATES:
        raise SpillwayError(f"--initial {kind!r} is none of {', '.join(INITIAL_STATES)}{nearest(kind, INITIAL_STATES)}")
    if kind != "trimmed" and fill == 0:
        raise SpillwayError(
            f"--initial {kind} needs data on the drive, and --fill is 0: use --initial trimmed or a larger --fill."
        )
    warmup = work.warmup
    if warmup is None:
        warmup = HOTCOLD_WARMUP_CAPACITIES if workload and workload.name == "hotcold" else 0.0
    if warmup < 0:
        raise SpillwayError(f"--warmup is {warmup:g}, and nothing can be written less than 0 times.")
    return {"kind": kind, "fill": fill, "warmup_capacities": warmup, "path": "", **compression_request(work)}


def compression_request(work: WorkChoice) -> dict[str, float]:
    """How data compresses, for the contract's ``initial`` and ``workload``; empty where the flag is not given. Raises
    SpillwayError."""
    ratio = work.compression_ratio
    if ratio is None:
        return {}
    if not 0 < ratio <= 1:
        raise SpillwayError(f"--compression-ratio is {ratio:g}; it takes a share above 0 and at most 1.")
    return {"compression_ratio": ratio}


def _default_initial(workload: str, fill: float) -> str:
    if fill == 0:
        return "trimmed"
    return "steady" if workload in ("randwrite", "mixed", "randread") else "sequential"


def simulate_request(choice: DriveChoice, work: WorkChoice, seed: int) -> dict[str, Any]:
    """The request of `ssd-simulate`. Raises SpillwayError where the flags contradict each other."""
    workload = parse_workload(work.workload)
    initial = initial_request(work, workload)
    reads_only = workload.name in ("randread", "seqread") or workload.shares.get("read_share") == 1.0
    if work.writes is not None and work.ios is not None:
        raise SpillwayError("--writes and --ios both say when to end: give one of them.")
    if work.writes is not None and reads_only:
        raise SpillwayError(f"--writes counts written capacities, and {work.workload} writes nothing: use --ios.")
    ios = work.ios if work.ios is not None else READ_IOS if reads_only and work.writes is None else None
    writes = None if ios is not None else work.writes if work.writes is not None else WRITES_CAPACITIES
    # Commands go to what holds data, unless the flag says otherwise: reads of nothing make a drive look fast.
    default_range = initial["fill"] if initial["kind"] != "trimmed" and initial["fill"] > 0 else 1.0
    reach = parse_share(work.range, "--range") if work.range is not None else default_range
    if reach == 0:
        raise SpillwayError("--range is 0: it is the share of the capacity that commands go to, so more than 0.")
    return {
        "drive": drive_request(choice),
        "initial": initial,
        "seed": seed,
        "workload": {
            "name": workload.name,
            "bs_bytes": parse_size(work.bs, "--bs"),
            "iodepth": work.iodepth,
            "read_share": workload.shares.get("read_share", 0.5),
            "hot_space": workload.shares.get("hot_space", 0.1),
            "hot_traffic": workload.shares.get("hot_traffic", 0.9),
            **compression_request(work),
            "range": reach,
            **({"ios": ios} if ios is not None else {"writes_capacities": writes}),
        },
    }


def simulated_lifetime(choice: DriveChoice, result: dict[str, Any]) -> dict[str, Any]:
    """The ``lifetime`` object of a simulation: drive writes per day, wear and years, were the workload kept up at the
    simulated rate. There is no user but the host, so the data until the drive is worn are host bytes. Raises
    SpillwayError for a preset that is not known."""
    wear, host = result.get("wear") or {}, result["host_bytes_written"]
    nand = nand_total(result["nand_bytes_programmed"])
    work = Work(result["simulated_seconds"], result["ios"], host, host, nand)
    capacity, physical = whole_drive(preset_path(choice.preset or "", choice.preset_file), drive_request(choice)["set"])
    endurance = Endurance(
        capacity_bytes=result.get("capacity_bytes"),
        physical_bytes=wear.get("physical_bytes"),
        rated_pe_cycles=wear.get("rated_pe_cycles"),
        mean_pe_cycles=wear.get("mean_pe_cycles"),
        full_capacity_bytes=capacity,
        full_physical_bytes=physical,
    )
    found = lifetime(work, endurance, Price())
    del found["virtual_time"]
    return {name.replace("user_bytes", "host_bytes"): value for name, value in found.items()}


def lifetime_in_words(found: dict[str, Any]) -> str:
    """One line for people, with the rating that it rests on."""
    worn, rated = found["full_size_host_bytes_until_worn"], found["rated_pe_cycles"]
    parts = [in_words(found)]
    parts += [] if worn is None else [f"worn after {human_bytes(worn)} of host writes, at {rated:,} rated P/E cycles"]
    return "; ".join(parts)


def precondition_request(choice: DriveChoice, work: WorkChoice, seed: int, out: Path) -> dict[str, Any]:
    """The request of `ssd-precondition`, whose state goes to ``out``. Raises SpillwayError."""
    if out.is_dir():
        raise SpillwayError(f"--out {out} is a directory: name the file that the state shall go to.")
    if not out.absolute().parent.is_dir():
        raise SpillwayError(f"--out {out}: there is no directory {out.absolute().parent}; make it first.")
    return {
        "drive": drive_request(choice),
        "initial": initial_request(work, None),
        "seed": seed,
        "state": str(out.absolute()),
    }
