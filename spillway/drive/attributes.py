"""SATA drives' SMART attributes that count bytes written: by whom, in which unit.

smartctl's database names attributes by what they count and mostly by their unit (NAND_Writes_1GiB), so names come
first. A drive that is not in that database shows its attributes as Unknown_Attribute: then number and model decide.

Source: attribute names and units, smartmontools' drivedb.h; Intel 241/243/249, Intel's SSD product specifications;
Micron 246/247/248, Micron TN-FD-23 (write amplification = (247 + 248) / 247). GB in a name where the maker does not say
whether it is 10^9 or 2^30 bytes is both.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from spillway.drive.reading import LBA_BYTES, Counter, Programs

MIB, GIB, GB = 2**20, 2**30, 10**9


@dataclass(frozen=True)
class Attribute:
    """One line of a SMART table: number, name, and the raw value as smartctl reads it."""

    id: int
    name: str
    raw: int


@dataclass(frozen=True)
class Unit:
    """What one step of a counter stands for, at least and at most; bytes."""

    least: int
    most: int = 0


HOST_UNITS = {
    "Host_Writes_32MiB": Unit(32 * MIB),
    "Host_Writes_MiB": Unit(MIB),
    "Host_Writes_GiB": Unit(GIB),
    "Lifetime_Writes_GiB": Unit(GIB),
    "Total_Writes_GiB": Unit(GIB),
    "Lifetime_Wts_Frm_Hst_GB": Unit(GB, GIB),
    "Total_Writes_GB": Unit(GB, GIB),
    "Sectors_Written_to_SSD": Unit(LBA_BYTES),
    "Device_Sectors_Written": Unit(LBA_BYTES),
}
# The name that smartctl gives 241 of every drive that its database does not have; makers count LBAs in it, 32 MiB or
# GiB. Whatever else is known comes before it, and its unit is certain where the database or the maker says LBAs.
# Source: smartmontools' issues 251, 312 and 469
HOST_LBAS, UNNAMED_HOST_ID = "Total_LBAs_Written", 241
COUNTS_LBAS = re.compile(r"SAMSUNG|Samsung|(Crucial_)?CT\d|Micron|MTFD|SanDisk|ST\d|WDC +WD\d|HGST|Hitachi|APPLE HDD")

# Each row is one way of counting; the names of a row are parts that add up. The finest that a drive has is used.
NAND_UNITS: Sequence[tuple[tuple[str, ...], Unit]] = (
    (("Flash_Writes_Sectors",), Unit(LBA_BYTES)),
    (("Flash_Writes_LBAs",), Unit(LBA_BYTES)),
    (("NAND_Write_Sector_Cnt",), Unit(LBA_BYTES)),
    (("Nand_Sectors_Written",), Unit(LBA_BYTES)),
    (("Sectors_Written_to_NAND",), Unit(LBA_BYTES)),
    (("NAND_Writes_32MiB",), Unit(32 * MIB)),
    (("Flash_Writes_32MiB",), Unit(32 * MIB)),
    (("TLC_Writes_32MiB", "SLC_Writes_32MiB"), Unit(32 * MIB)),
    (("NAND_Writes_1GiB",), Unit(GIB)),
    (("NAND_Writes_GiB",), Unit(GIB)),
    (("NAND_GiB_Written",), Unit(GIB)),
    (("Flash_Writes_GiB",), Unit(GIB)),
    (("Total_NAND_Writes_GiB",), Unit(GIB)),
    (("Total_NAND_Prog_Ct_GiB",), Unit(GIB)),
    (("Lifetime_NAND_Prg_GiB",), Unit(GIB)),
    (("NAND_GB_Written_TLC", "NAND_GB_Written_SLC"), Unit(GB, GIB)),
    (("Lifetime_Nand_Gb",), Unit(GB, GIB)),
    (("Lifetime_Wts_To_Flsh_GB",), Unit(GB, GIB)),
)
HOST_PROGRAMS = "Host_Program_Page_Count"
BACKGROUND_PROGRAMS = ("FTL_Program_Page_Count", "Bckgnd_Program_Page_Cnt")
# NAND_UNITS' parts that a drive may lack: Silicon Motion's 245 alone is what all of the flash was written.
# Source: drivedb.h, Transcend's "Flash Write Sector Count"
DISPENSABLE = {"SLC_Writes_32MiB"}
MEAN_PE_CYCLES = (
    *("Average_PE_Cycles_TLC", "Average_PE_Cycles", "Average_PE_Count", "Average_Block-Erase_Ct"),
    *("Ave_Block-Erase_Count", "Avg_Block-Erase_Count", "Average_Erase_Count", "Avg_Erase_Count"),
    *("Avg_Write/Erase_Count", "Avg_Program/Erase_Ct"),
)
# smartctl's name for 177 of every SSD that its database does not have: Samsung's is the mean, others' is a spread or
# the most.
WEAR_LEVELING, UNNAMED_WEAR_ID = "Wear_Leveling_Count", 177

# A drive that smartctl's database does not have: what its maker's numbers are called there.
_GIB_OF_HOST = {241: "Lifetime_Writes_GiB"}
_IN_LBAS = {241: HOST_LBAS}
BY_MODEL: Sequence[tuple[str, dict[int, str]]] = (
    (
        r"(INTEL|SOLIDIGM) SSDSC\w(BA|BB|BG|BP|BX|JB|KB|KG|NB)",  # data centre
        {225: "Host_Writes_32MiB", 241: "Host_Writes_32MiB", 243: "NAND_Writes_32MiB"},
    ),
    (
        r"(INTEL|SOLIDIGM) SSD",
        {225: "Host_Writes_32MiB", 241: "Host_Writes_32MiB", 249: "NAND_Writes_1GiB"},
    ),
    # Silicon Motion's controllers under other makers' names.
    (r"CT\d+BX[12]00SSD|KINGSTON SKC600", {241: "Host_Writes_32MiB"}),
    (
        r"(Crucial_)?CT\d+|Micron|MTFD",
        {
            246: HOST_LBAS,
            247: "Host_Program_Page_Count",
            248: "FTL_Program_Page_Count",
            173: "Ave_Block-Erase_Count",
        },
    ),
    # Of SanDisk's drives, those without a DRAM and the OEM ones of that kind count LBAs and no NAND bytes.
    (r"SanDisk (iSSD|pSSD|SDSSDP|SDSSDRC|SSD [iU]1|SDSA6|SD7[SU]B\dQ|SD8S[NM]AT.*-1006)", _IN_LBAS),
    (
        r"WDC +WD(S|BNCE)|WD (Blue|Red|Green)|SanDisk (SD9SN8W\dT|(Extreme )?Portable)",
        {241: "Host_Writes_GiB", 233: "NAND_GB_Written_TLC", 234: "NAND_GB_Written_SLC"},
    ),
    (r"SanDisk SDSSDX\d", _GIB_OF_HOST),  # SandForce's controller
    (r"SanDisk (SD|SSD|Ultra)|SD Ultra", {241: "Total_Writes_GiB", 233: "Total_NAND_Writes_GiB"}),
    # Phison's controllers; Kingston's older drives and those with Marvell's have something else in 233.
    (
        r"KINGSTON +(SA400|SEDC|SHSS|SKC(310|400)|SM2280|SS200|SUV300|SV310|O\w+P0S3|RBUSNS)",
        {241: "Lifetime_Writes_GiB", 233: "Flash_Writes_GiB"},
    ),
    (r"KINGSTON +S(E|H|K|M|UV|V300|VP2)", _GIB_OF_HOST),
    (r"SAMSUNG|Samsung", _IN_LBAS),
)
_NAMELESS = re.compile(r"Unknown|Total_LBAs_Written$|Media_Wearout_Indicator$|^$")


def named(attributes: Sequence[Attribute], model: str) -> dict[str, Attribute]:
    """By name; what smartctl does not name is named by number and model."""
    names = next((table for pattern, table in BY_MODEL if re.match(pattern, model)), {})
    found: dict[str, Attribute] = {}
    for each in attributes:
        nameless = _NAMELESS.search(each.name) is not None
        name = names.get(each.id, each.name) if nameless else each.name
        found.setdefault(name, each)
    return found


def counts_lbas(model: str) -> bool:
    """Whether the drive's maker is known to count LBAs under the name of HOST_LBAS."""
    return COUNTS_LBAS.match(model) is not None


def host_counter(by_name: dict[str, Attribute], lba_bytes: int = LBA_BYTES, lbas: bool = False) -> Counter | None:
    """Bytes that the host wrote, by the finest counter whose unit is certain; None without one.

    ``lbas``: a 241 that has smartctl's default name counts LBAs. Where that is not known its unit has two ends.
    """
    known = [(unit, by_name[name], name) for name, unit in HOST_UNITS.items() if name in by_name]
    if known:
        unit, attribute, name = min(known, key=lambda one: one[0].least)
        return Counter(f"attribute {attribute.id} {name}", attribute.raw, unit.least, unit.most)
    found = by_name.get(HOST_LBAS)
    if found is None:
        return None
    most = 0 if lbas or found.id != UNNAMED_HOST_ID else GIB
    return Counter(f"attribute {found.id} {HOST_LBAS}", found.raw, lba_bytes, most)


def nand_counter(by_name: dict[str, Attribute]) -> Counter | None:
    """Bytes programmed, by the finest counter; parts add up. None where the drive has none that we know."""
    for names, unit in NAND_UNITS:
        parts = [by_name[name] for name in names if name in by_name]
        if parts and all(name in by_name or name in DISPENSABLE for name in names):
            label = " + ".join(f"{each.id} {name}" for name in names if (each := by_name.get(name)))
            counts = tuple(each.raw for each in parts)
            return Counter(f"attribute {label}", sum(counts), unit.least, unit.most, counts)
    return None


def programs(by_name: dict[str, Attribute]) -> Programs | None:
    """Micron's two counts of programmed pages; None where one of them is missing."""
    host = by_name.get(HOST_PROGRAMS)
    background = next((by_name[name] for name in BACKGROUND_PROGRAMS if name in by_name), None)
    if host is None or background is None:
        return None
    return Programs(f"attributes {host.id} and {background.id}, pages programmed", host.raw, background.raw)


def mean_pe_cycles(by_name: dict[str, Attribute], model: str = "") -> float | None:
    """P/E cycles of an erase block in the mean, where an attribute says so."""
    found = next((by_name[name] for name in MEAN_PE_CYCLES if name in by_name), None)
    leveling = by_name.get(WEAR_LEVELING)
    if found is None and leveling and (leveling.id != UNNAMED_WEAR_ID or model.lower().startswith("samsung")):
        found = leveling
    return None if found is None else float(found.raw)
