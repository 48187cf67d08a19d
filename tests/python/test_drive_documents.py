"""What nvme and smartctl print of a drive: forms, spellings, units, and what is damaged or unknown."""

from typing import Any

import drive_documents as docs
import pytest
from drive_documents import GIB, MIB, attribute, smartctl

from spillway.drive.documents import load, parse, whole_number
from spillway.errors import SpillwayError

Document = dict[str, Any]


@pytest.mark.parametrize(
    ("spelling", "count"),
    [
        *(
            (12, 12),
            (12.0, 12),
            ("12", 12),
            ("1,234", 1234),
            ("0x1F", 31),
            ("12.000", 12),
            (" 7 ", 7),
            (2**100, 2**100),
        ),
        *(({"hi": 1, "lo": 2}, 2**64 + 2), ({"hi": "0x1", "lo": "0"}, 2**64)),
        *(
            (True, None),
            (None, None),
            (-1, None),
            (float("nan"), None),
            (float("inf"), None),
            ("", None),
            ("n/a", None),
        ),
        *(([], None), ({"hi": 1}, None), ({}, None), ("0x", None), ("1 2", None)),
    ],
)
def test_a_count_is_read_however_it_is_spelled(spelling: object, count: int | None) -> None:
    assert whole_number(spelling) == count


@pytest.mark.parametrize("units", [5000, "5000", 5000.0, "5,000"])
@pytest.mark.parametrize("key", ["percent_used", "percentage_used"])
def test_nvme_health_counts_the_host_alone(units: object, key: str) -> None:
    log = {k: v for k, v in docs.NVME_HEALTH.items() if k != "percent_used"} | {"data_units_written": units, key: "3%"}
    found = parse(log)
    assert found.host is not None
    assert found.host.total_bytes == 5000 * 1000 * 512
    assert found.percentage_used == 3
    assert not found.tells_nand
    assert "no count of NAND bytes" in found.why_unknown


@pytest.mark.parametrize(
    ("document", "nand_bytes"),
    [
        (docs.OCP_V1, 7_680_000_000),
        (docs.OCP_V2, 7_680_000_000),
        ({"Physical media units written": {"hi": 1, "lo": 0}}, 2**64),
        ({"Physical media units written": 5}, 5),
        (docs.INTEL, 300 * 32 * MIB),
        (docs.SOLIDIGM, 300 * 32 * MIB),
        (docs.MICRON_D0, 0x1C9C38000),
        (docs.MICRON_HYPERSCALE, 0x1200),
        (docs.WDC, 5120),
        ({"NAND Bytes Written Hi": 0, "NAND Bytes Written Lo": 9}, 9),
        (docs.NVME_HEALTH | docs.OCP_V1, 7_680_000_000),
    ],
)
def test_nvme_logs_that_count_nand_bytes(document: Document, nand_bytes: int) -> None:
    found = parse(document)
    assert found.nand is not None
    assert found.nand.total_bytes == nand_bytes
    assert found.why_unknown == ""


def test_wear_of_vendor_logs_is_read_in_both_shapes() -> None:
    assert parse(docs.INTEL).mean_pe_cycles == parse(docs.SOLIDIGM).mean_pe_cycles == 12


@pytest.mark.parametrize(
    ("model", "attributes", "nand_bytes", "host_bytes"),
    [
        # As smartctl's database names them.
        (
            "INTEL SSDSC2KW256G8",
            [attribute(241, "Host_Writes_32MiB", 640), attribute(249, "NAND_Writes_1GiB", 30)],
            30 * GIB,
            640 * 32 * MIB,
        ),
        ("INTEL SSDSC2KG480G8", [attribute(243, "NAND_Writes_32MiB", 7)], 7 * 32 * MIB, None),
        (
            "SATA SSD",
            [attribute(233, "Flash_Writes_GiB", 4), attribute(241, "Lifetime_Writes_GiB", 3)],
            4 * GIB,
            3 * GIB,
        ),
        ("Innodisk", [attribute(245, "TLC_Writes_32MiB", 4), attribute(246, "SLC_Writes_32MiB", 6)], 320 * MIB, None),
        # The finer of two counters.
        (
            "Seagate BarraCuda 120",
            [attribute(233, "Flash_Writes_GiB", 1), attribute(235, "Flash_Writes_Sectors", 2_000_000)],
            2_000_000 * 512,
            None,
        ),
        # As a database without the drive names them: by number and model.
        ("INTEL SSDSC2KW512G8", [attribute(249, "Unknown_Attribute", 30)], 30 * GIB, None),
        ("INTEL SSDSC2KB960G8", [attribute(243, "Unknown_Attribute", 30)], 30 * 32 * MIB, None),
        ("SanDisk SSD PLUS 240GB", [attribute(233, "Media_Wearout_Indicator", 5)], 5 * GIB, None),
        ("KINGSTON SA400S37240G", [attribute(233, "Media_Wearout_Indicator", 5)], 5 * GIB, None),
    ],
)
def test_sata_attributes_have_units(
    model: str, attributes: list[Document], nand_bytes: int, host_bytes: int | None
) -> None:
    found = parse(smartctl(model, *attributes))
    assert found.nand is not None
    assert found.nand.total_bytes == nand_bytes
    assert (found.host.total_bytes if found.host else None) == host_bytes
    assert found.model == model


def test_microns_pages_are_a_ratio_without_a_unit() -> None:
    for names in (("Host_Program_Page_Count", "FTL_Program_Page_Count"), ("Unknown_Attribute", "Unknown_Attribute")):
        found = parse(smartctl("CT500MX500SSD1", attribute(247, names[0], 1000), attribute(248, names[1], 500)))
        assert found.programs is not None
        assert (found.programs.host, found.programs.background) == (1000, 500)
        assert found.nand is None


def test_a_gb_that_may_be_two_things_has_two_units() -> None:
    rows = attribute(233, "NAND_GB_Written_TLC", 90), attribute(234, "NAND_GB_Written_SLC", 10)
    found = parse(smartctl("WDC WDS500G2B0A", *rows))
    assert found.nand is not None
    assert (found.nand.count, found.nand.unit_bytes, found.nand.most_unit_bytes) == (100, 10**9, 2**30)


def test_a_document_that_is_nested_without_end_is_refused() -> None:
    with pytest.raises(SpillwayError, match="this is not JSON"):
        load("[" * 100_000 + "]" * 100_000, "log.json")


def test_a_byte_order_mark_is_no_part_of_a_log() -> None:
    assert load('\ufeff{"a": 1}', "log.json") == {"a": 1}


@pytest.mark.parametrize(
    ("raw", "string", "count"),
    [
        (640, "640", 640),
        (0x0003_0000_0280, "640 (Average 3)", 640),  # a second number over the upper bits
        (640, "0x000000000280", 640),
        (640, "", 640),
        (640, "12h+30m", 640),
        (1234567, "1,234,567", 1234567),
        (0x0001_0012_D687, "1,234,567", 1234567),
        (1234567, "1 234 567", 1234567),
        (1234567, "1\u202f234\u202f567", 1234567),
        (0x0237_00EA_0001, "1 234 567", 1),  # three words of raw16
        (1234567, "1'234'567", 1234567),
        (1234567, "1,23", 1234567),  # no groups of three: not ours to read
    ],
)
def test_the_raw_value_is_what_smartctl_made_of_it(raw: int, string: str, count: int) -> None:
    found = parse(smartctl("INTEL SSDSC2KW256G8", attribute(249, "NAND_Writes_1GiB", raw, string)))
    assert found.nand is not None
    assert found.nand.count == count


@pytest.mark.parametrize("exit_status", [0, 4, 8, 16, 32, 64, 128, 64 + 4])
def test_exit_bits_of_a_drives_health_do_not_hide_its_counters(exit_status: int) -> None:
    found = parse(smartctl("X", attribute(249, "NAND_Writes_1GiB", 3), exit_status=exit_status))
    assert found.nand is not None


@pytest.mark.parametrize(
    ("document", "why"),
    [
        (docs.refused("Smartctl open device: /dev/sda failed: Permission denied"), "root"),
        (docs.refused("/dev/sdb: Unknown USB bridge [0x0bda:0x9210 (0xf200)]", 1), "-d sat"),
        (docs.refused("Smartctl open device: /dev/sdz failed: No such device"), "No such device"),
        (smartctl("SAMSUNG MZ7LH480", attribute(241, "Total_LBAs_Written", 9)), "no attribute of SAMSUNG MZ7LH480"),
        (smartctl("Unheard Of 1TB", attribute(1, "Raw_Read_Error_Rate", 0)), "no attribute of Unheard Of 1TB"),
        (smartctl("X", ata_smart_attributes=None), "no SMART attributes"),
        (docs.NVME_HEALTH | {"Physical media units written": {"hi": 0, "lo": 0}}, "does not count them"),
        ({"ScaleFlux Smart log": "sfdv0", "Device stats": {"nand_bytes_written": {"raw": 5}}}, "not published"),
        ({"Intel Smart log": "nvme0", "Device stats": {}}, "has no nand_bytes_written"),
        (
            smartctl("SEAGATE ST1", ata_smart_attributes=None, device={"protocol": "SCSI"}),
            "SCSI",
        ),
        ({"hello": "world"}, "not known here"),
        ({}, "not known here"),
    ],
)
def test_what_a_drive_does_not_tell_has_a_reason(document: Document, why: str) -> None:
    found = parse(document)
    assert not found.tells_nand
    assert why in found.why_unknown


@pytest.mark.parametrize(
    "damaged",
    [
        smartctl("X", ata_smart_attributes={"table": "none"}),
        smartctl("X", ata_smart_attributes={"table": [None, 3, {}, {"raw": 1}, {"id": "x", "raw": {}}]}),
        smartctl("X", ata_smart_attributes={}, ata_device_statistics={"pages": [None, {"table": [None]}]}),
        {"smartctl": None},
        {"smartctl": {"messages": "gone", "exit_status": "2"}},
        {"smartctl": {}, "nvme_smart_health_information_log": {}},
        {"Device stats": 3, "Intel Smart log": 1},
        {"Intel Smart log": "x", "Device stats": {"nand_bytes_written": 3, "wear_leveling": 9}},
        {"Physical media units written": "none"},
        {"data_units_written": None},
        {"NAND Writes TLC (Bytes)": [], "a": [[[{"b": {}}]]]},
    ],
)
def test_a_damaged_document_is_unknown_and_no_crash(damaged: Document) -> None:
    found = parse(damaged)
    assert not found.tells_nand
    assert found.why_unknown


def test_device_statistics_come_before_an_attribute_whose_unit_varies() -> None:
    pages = {
        "pages": [
            {"number": 1, "table": [{"name": "Logical Sectors Written", "value": 1000}]},
            {"number": 7, "table": [{"name": "Percentage Used Endurance Indicator", "value": 4}]},
        ]
    }
    found = parse(smartctl("X", attribute(241, "Total_LBAs_Written", 5), ata_device_statistics=pages))
    assert found.host is not None
    assert found.host.total_bytes == 512_000
    assert found.percentage_used == 4


def test_a_bare_nan_is_no_reason_to_give_up() -> None:
    document = load('{"Intel Smart log": "x", "Device stats": {"a": {"raw" : nan}, "b": -nan}}', "log")
    assert document["Device stats"] == {"a": {"raw": None}, "b": None}


@pytest.mark.parametrize("text", ["", "not json", "[1]", "3", '{"a":'])
def test_what_is_no_document_is_refused(text: str) -> None:
    with pytest.raises(SpillwayError, match=r"^saved\.json: this is"):
        load(text, "saved.json")
