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
# LBAs by name only: makers have put other units under this name, so whatever else is known comes before it.
HOST_LBAS = "Total_LBAs_Written"

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
    (("Lifetime_Wts_To_Flsh_GB",), Unit(GB, GIB)),
)
HOST_PROGRAMS = "Host_Program_Page_Count"
BACKGROUND_PROGRAMS = ("FTL_Program_Page_Count", "Bckgnd_Program_Page_Cnt")
MEAN_PE_CYCLES = ("Wear_Leveling_Count", "Average_PE_Cycles_TLC", "Ave_Block-Erase_Count", "Average_Erase_Count")

# A drive that smartctl's database does not have: what its maker's numbers are called there.
BY_MODEL: Sequence[tuple[str, dict[int, str]]] = (
    (
        r"(INTEL|SOLIDIGM) SSDSC\w(BB|BX|BA|KB|KG)",  # data centre
        {241: "Host_Writes_32MiB", 243: "NAND_Writes_32MiB"},
    ),
    (r"(INTEL|SOLIDIGM) SSD", {241: "Host_Writes_32MiB", 249: "NAND_Writes_1GiB"}),
    (
        r"(Crucial_)?CT\d+|Micron|MTFD",
        {
            246: "Total_LBAs_Written",
            247: "Host_Program_Page_Count",
            248: "FTL_Program_Page_Count",
            173: "Ave_Block-Erase_Count",
        },
    ),
    (r"SanDisk (SD|SSD)", {241: "Total_Writes_GiB", 233: "Total_NAND_Writes_GiB"}),
    (r"WDC +WDS|WD (Blue|Red|Green)", {241: "Host_Writes_GiB", 233: "NAND_GB_Written_TLC", 234: "NAND_GB_Written_SLC"}),
    (r"KINGSTON S", {241: "Lifetime_Writes_GiB", 233: "Flash_Writes_GiB"}),
    (r"SAMSUNG|Samsung", {241: HOST_LBAS, 177: "Wear_Leveling_Count"}),
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


def host_counter(by_name: dict[str, Attribute], lba_bytes: int = LBA_BYTES) -> Counter | None:
    """Bytes that the host wrote, by the finest counter whose unit is certain; None without one."""
    known = [(unit, by_name[name], name) for name, unit in HOST_UNITS.items() if name in by_name]
    if known:
        unit, attribute, name = min(known, key=lambda one: one[0].least)
        return Counter(f"attribute {attribute.id} {name}", attribute.raw, unit.least, unit.most)
    lbas = by_name.get(HOST_LBAS)
    return None if lbas is None else Counter(f"attribute {lbas.id} {HOST_LBAS}", lbas.raw, lba_bytes)


def nand_counter(by_name: dict[str, Attribute]) -> Counter | None:
    """Bytes programmed, by the finest counter; parts add up. None where the drive has none that we know."""
    for names, unit in NAND_UNITS:
        parts = [by_name[name] for name in names if name in by_name]
        if parts:
            label = " + ".join(f"{each.id} {name}" for name in names if (each := by_name.get(name)))
            return Counter(f"attribute {label}", sum(each.raw for each in parts), unit.least, unit.most)
    return None


def programs(by_name: dict[str, Attribute]) -> Programs | None:
    """Micron's two counts of programmed pages; None where one of them is missing."""
    host = by_name.get(HOST_PROGRAMS)
    background = next((by_name[name] for name in BACKGROUND_PROGRAMS if name in by_name), None)
    if host is None or background is None:
        return None
    return Programs(f"attributes {host.id} and {background.id}, pages programmed", host.raw, background.raw)


def mean_pe_cycles(by_name: dict[str, Attribute]) -> float | None:
    """P/E cycles of an erase block in the mean, where an attribute says so."""
    return next((float(by_name[name].raw) for name in MEAN_PE_CYCLES if name in by_name), None)
