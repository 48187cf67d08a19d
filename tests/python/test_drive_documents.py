"""What nvme and smartctl print of a drive: forms, spellings, units, and what is damaged or unknown."""

import json
import re
from typing import Any

import drive_documents as docs
import pytest
from drive_documents import GIB, MIB, attribute, smartctl

from spillway.drive.documents import load, parse, whole_number
from spillway.drive.reading import merged
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
        # Groups of digits of any locale; what may be a fraction is no count.
        *(("64,663,716", 64663716), ("64.663.716", 64663716), ("64 663 716", 64663716), ("64'663'716", 64663716)),
        *(("64\u202f663\u202f716", 64663716), ("6,46,63,716", 64663716)),
        *(("12,5", None), ("12.345", None), ("1,23", None), ("1,234.5", None), ("1,234 567", None)),
        # 128 bits without loss, and what is beyond them.
        *((str(2**128 - 1), 2**128 - 1), (f"{2**64 + 1}.000000", 2**64 + 1), ("1.5e+19", 15 * 10**18)),
        *(("9" * 5000, None), ("1" * 400 + ".0", None), ("0x" + "f" * 500, None), ("1e999999999", None)),
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
    assert not found.reports_nand
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
        (docs.WDC_CA, 5 * 10**12),
        (docs.WDC_CLOUD, 7680),
        (docs.SEAGATE, 2**64 + 2),
        (docs.SEAGATE_EXTENDED, 7 << 32),
        (docs.ENDURANCE_GROUP, 150 * 10**9),
        (docs.NVME_HEALTH | docs.OCP_V1, 7_680_000_000),
    ],
)
def test_nvme_logs_that_count_nand_bytes(document: Document, nand_bytes: int) -> None:
    found = parse(document)
    assert found.nand is not None
    assert found.nand.total_bytes == nand_bytes
    assert found.why_unknown == ""


def test_an_endurance_groups_units_are_not_those_of_the_health_log() -> None:
    found = parse(docs.ENDURANCE_GROUP)
    assert found.host is not None
    assert found.host.total_bytes == 100 * 10**9
    assert found.percentage_used == 2
    alone = {key: value for key, value in docs.ENDURANCE_GROUP.items() if key != "media_units_written"}
    assert parse(alone).host is None


@pytest.mark.parametrize(
    ("told", "why"),
    [
        ("Permission denied", "nvme may not open it"),
        ("Invalid Field in Command: A reserved coded value.", "nvme could not read it: Invalid Field in Command"),
        ("", "not known here"),
        (3, "not known here"),
    ],
)
def test_what_nvme_prints_for_an_error_is_the_reason(told: object, why: str) -> None:
    found = parse({"error": told, "type": "nvme"})
    assert not found.recognised
    assert why in found.why_unknown


def test_parts_are_a_sum_only_where_all_of_them_are_there() -> None:
    for whole in (docs.WDC, docs.WDC_CLOUD):
        for name in whole:
            assert not parse({name: whole[name]}).reports_nand, name
    assert not parse(smartctl("WDC WDS500G2B0A", attribute(233, "NAND_GB_Written_TLC", 90))).reports_nand
    # Silicon Motion's 245 alone is all that was written.
    assert parse(smartctl("TS2TSSD230S", attribute(245, "TLC_Writes_32MiB", 90))).reports_nand


@pytest.mark.parametrize("name", ["OCP_V1", "OCP_V2", "WDC_CLOUD", "SEAGATE", "INTEL", "ENDURANCE_GROUP"])
def test_a_count_of_0_is_none_from_one_log_or_from_two(name: str) -> None:
    empty = json.loads(re.sub(r'(": (?:"0x)?)[0-9a-f]+("?[,}])', r"\g<1>0\2", json.dumps(getattr(docs, name))))
    assert parse(empty).nand is None or parse(empty).nand.count == 0  # type: ignore[union-attr]
    for found in (merged(parse(docs.NVME_HEALTH), parse(empty)), merged(parse(empty), parse(docs.NVME_HEALTH))):
        assert not found.reports_nand
        assert "does not count them" in found.why_unknown


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


# What smartctl's database says of these models, which its own default names hide: bytes that the host wrote for a raw
# value of 1000 in 225 and 241, and NAND bytes for 1000 in 233, 234, 243, 245, 246, 247, 248 and 249. None: not known.
# Source: drivedb.h
UNNAMED = [
    ("INTEL SSDSC2BB480G7", 32 * MIB, 32 * MIB),
    ("INTEL SSDSC2BG400G4", 32 * MIB, 32 * MIB),
    ("SOLIDIGM SSDSC2KB480GZ", 32 * MIB, 32 * MIB),
    ("INTEL SSDSC2KW256G8", 32 * MIB, GIB),
    ("INTEL SSDSCKKW010X6", 32 * MIB, GIB),
    ("CT500MX500SSD1", 512, "pages"),
    ("Micron_5300_MTFDDAK960TDS", 512, "pages"),
    ("CT240BX500SSD1", 512, "pages"),
    ("CT480BX200SSD1", 32 * MIB, None),
    ("KINGSTON SKC600512G", 32 * MIB, None),
    ("KINGSTON SA400S37240G", GIB, GIB),
    ("KINGSTON SEDC500M960G", GIB, GIB),
    ("KINGSTON SV300S37A120G", GIB, None),
    ("KINGSTON SUV400S37240G", GIB, None),
    ("SanDisk SSD PLUS 240GB", GIB, GIB),
    ("SanDisk SDSSDH3500G", GIB, GIB),
    ("SanDisk SD8SB8U256G1122", GIB, GIB),
    ("SanDisk SDSSDX480GG25", GIB, None),
    ("SanDisk SDSSDP128G", 512, None),
    ("SanDisk SD7SB3Q128G", 512, None),
    ("SanDisk SD9SN8W1T00", GIB, 2 * 10**9),
    ("WDC WDS500G2B0A-00SM50", GIB, 2 * 10**9),
    ("Samsung SSD 860 EVO 500GB", 512, None),
    ("SAMSUNG MZ7LH480HAHQ-00005", 512, None),
    ("TOSHIBA THNSN8240PCSE", None, None),
    ("Seagate BarraCuda 120 SSD ZA500CM10003", None, None),
    ("Lexar SSD NS100 256GB", None, None),
]


@pytest.mark.parametrize(("model", "host", "nand"), UNNAMED)
def test_one_number_means_what_its_maker_means_by_it(model: str, host: int | None, nand: int | str | None) -> None:
    # The names that smartctl has for a solid-state drive that is not in its database.
    defaults = {177: "Wear_Leveling_Count", 233: "Media_Wearout_Indicator", 241: "Total_LBAs_Written"}
    numbers = (173, 177, 225, 233, 234, 241, 243, 245, 246, 247, 248, 249)
    rows = [attribute(number, defaults.get(number, "Unknown_Attribute"), 1000) for number in numbers]
    found = parse(smartctl(model, *rows, in_smartctl_database=False, rotation_rate=0))
    assert found.host is not None
    certain = found.host.unit_bytes == found.host.most_unit_bytes
    assert (found.host.total_bytes if certain else None) == (None if host is None else 1000 * host)
    assert (found.programs is not None) == (nand == "pages")
    assert (found.nand.total_bytes if found.nand else None) == (1000 * nand if isinstance(nand, int) else None)
    assert (found.mean_pe_cycles is not None) == bool(re.match("CT.*[MB]X5|Micron|S(amsung|AMSUNG)", model))


@pytest.mark.parametrize("more", [{"in_smartctl_database": True}, {"rotation_rate": 7200}])
def test_lbas_are_lbas_where_the_database_or_a_disk_says_so(more: Document) -> None:
    row = attribute(241, "Total_LBAs_Written", 1000)
    known, not_known = (parse(smartctl("Some Drive", row, **each)).host for each in (more, {}))
    assert known is not None
    assert not_known is not None
    assert (known.total_bytes, known.most_unit_bytes) == (512_000, 512)
    assert not_known.most_unit_bytes == GIB


def test_a_mean_comes_before_a_number_that_may_be_anything() -> None:
    rows = attribute(167, "Average_Erase_Count", 12), attribute(177, "Wear_Leveling_Count", 99)
    assert parse(smartctl("ADATA SU800", *rows)).mean_pe_cycles == 12
    assert parse(smartctl("ADATA SU800", rows[1])).mean_pe_cycles is None
    assert parse(smartctl("Samsung SSD 870 EVO 1TB", rows[1])).mean_pe_cycles == 99


@pytest.mark.parametrize(
    "told",
    [
        {"endurance_used": {"current_percent": 7}},
        {"scsi_percentage_used_endurance_indicator": 7},
        {"scsi_Percentage used endurance indicator": 7},
    ],
)
def test_a_sas_drive_says_how_much_of_it_is_used(told: Document) -> None:
    found = parse(smartctl("KPM5XRUG960G", ata_smart_attributes=None, device={"protocol": "SCSI"}, **told))
    assert found.percentage_used == 7
    assert not found.reports_nand


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
    assert found.nand.parts == (90, 10)
    wdc = parse(docs.WDC).nand
    assert wdc is not None
    assert wdc.parts == (4096, 1024)


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
        (docs.DAPUSTOR, "not published"),
        (docs.SCALEFLUX, "another maker's drive is not published"),
        (docs.WDC_CA_CUT, "cut to 32 bits"),
        (docs.WDC_CA_NEGATIVE, "cut to 32 bits"),
        (
            smartctl("SEAGATE ST1", ata_smart_attributes=None, device={"protocol": "SCSI"}),
            "SCSI",
        ),
        ({"hello": "world"}, "not known here"),
        ({}, "not known here"),
    ],
)
def test_a_count_that_a_drive_lacks_has_a_reason(document: Document, why: str) -> None:
    found = parse(document)
    assert not found.reports_nand
    assert why in found.why_unknown


def nested(levels: int) -> Document:
    document: Document = {"Physical media units written": "none"}
    for _ in range(levels):
        document = {"a": document}
    return document


@pytest.mark.parametrize(
    "damaged",
    [
        smartctl("X", ata_smart_attributes={"table": "none"}),
        smartctl("X", ata_smart_attributes={"table": [None, 3, {}, {"raw": 1}, {"id": "x", "raw": {}}]}),
        smartctl("X", ata_smart_attributes={}, ata_device_statistics={"pages": [None, {"table": [None]}]}),
        *(
            smartctl("X", ata_smart_attributes={}, ata_device_statistics=odd)
            for odd in (
                [1],
                "x",
                5,
                {"pages": {"table": 5}},
                {"pages": [{"table": 5}]},
                {"pages": [{"table": {"a": 1}}]},
            )
        ),
        {"smartctl": None},
        {"smartctl": {"messages": "gone", "exit_status": "2"}},
        {"smartctl": {}, "nvme_smart_health_information_log": {}},
        {"Device stats": 3, "Intel Smart log": 1},
        {"Intel Smart log": "x", "Device stats": {"nand_bytes_written": 3, "wear_leveling": 9}},
        {"Physical media units written": "none"},
        {"data_units_written": None},
        smartctl("X", attribute(249, "NAND_Writes_1GiB", 0, "9" * 5000) | {"raw": {"string": "9" * 5000}}),
        {"media_units_written": "none", "data_units_written": 5},
        {"a": [{"attribute_name": "Physical Media Units Written", "attribute_value": []}, {"attribute_name": 3}]},
        nested(900),
        {"NAND Writes TLC (Bytes)": [], "a": [[[{"b": {}}]]]},
    ],
)
def test_a_damaged_document_is_unknown_and_no_crash(damaged: Document) -> None:
    found = parse(damaged)
    assert not found.reports_nand
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
