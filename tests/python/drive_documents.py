"""SMART documents of the kinds that nvme-cli and smartctl print, with figures made up here.

The forms follow the tools' sources: nvme-cli's nvme-print-json.c, plugins/ocp, plugins/intel, plugins/solidigm,
plugins/micron and plugins/wdc; smartmontools' ataprint.cpp, nvmeprint.cpp and drivedb.h.
"""

from typing import Any

Document = dict[str, Any]
MIB, GIB = 2**20, 2**30

NVME_HEALTH: Document = {
    "critical_warning": 0,
    "temperature": 311,
    "avail_spare": 100,
    "spare_thresh": 10,
    "percent_used": 3,
    "data_units_read": 2000,
    "data_units_written": 5000,
    "host_write_commands": 123456,
}
OCP_V1: Document = {
    "Physical media units written": {"hi": 0, "lo": 7_680_000_000},
    "Physical media units read": {"hi": 0, "lo": 1},
    "Log page version": 3,
}
OCP_V2: Document = {"physical_media_units_written": {"hi": 0, "lo": 7_680_000_000}, "smart_log_page_version": 4}
INTEL: Document = {
    "Intel Smart log": "nvme0",
    "Device stats": {
        "wear_leveling": {"normalized": 99, "raw": {"min": 10, "max": 14, "avg": 12}},
        "nand_bytes_written": {"normalized": 100, "raw": 300},
        "host_bytes_written": {"normalized": 100, "raw": 100},
    },
}
SOLIDIGM: Document = {
    "Solidigm SMART log": "nvme0",
    "Device stats": {
        "wear_leveling_count": {"normalized": 99, "min": 10, "max": 14, "avg": 12},
        "nand_bytes_written": {"normalized": 100, "raw": 300},
        "host_bytes_written": {"normalized": 100, "raw": 100},
    },
}
MICRON_D0: Document = {
    "Extended Smart Log Page : 0xD0": [{"NAND Writes (Bytes Written)": "0x1c9c38000", "Erase Failures": "0x0"}]
}
MICRON_HYPERSCALE: Document = {
    "OCP Hyperscale Cloud Health Log: 0xC0": [
        {"Physical Media Units Written - TLC": "0x1000", "Physical Media Units Written - SLC": "0x200"}
    ]
}
WDC: Document = {"NAND Writes TLC (Bytes)": 4096, "NAND Writes SLC (Bytes)": "1,024"}
WDC_CLOUD: Document = {"physical_media_units_bytes_tlc": 7000, "physical_media_units_bytes_slc": 680}
SEAGATE: Document = {
    "Seagate SMART Health Attributes": [
        {"attribute_name": "Physical Media Units Written", "attribute_value": f"0x{1:016x}{2:016x}"},
        {"attribute_name": "Physical Media Units Read", "attribute_value": f"0x{0:016x}{9:016x}"},
    ]
}
SEAGATE_EXTENDED: Document = {
    "Extended-SMART-Attributes": [
        {"attribute_name": "LSB of Physical (NAND) bytes written", "attribute_id": 1, "attribute_value": -5},
        {
            **{"attribute_name": "Physical (NAND) bytes written", "attribute_id": 2},
            "attribute_value": f"0x{0:016x}{7 << 32:016x}",
        },
    ]
}
ENDURANCE_GROUP: Document = {
    **{"critical_warning": 0, "endurance_group_features": 0, "avl_spare": 100, "percent_used": 2},
    **{"data_units_read": 10, "data_units_written": 100, "media_units_written": 150},
}
# WD's log CAh by nvme-cli 1, and by nvme-cli 2, which prints 64 bits through a C int.
WDC_CA: Document = {"NAND Bytes Written Hi": 0, "NAND Bytes Written Lo": 5 * 10**12}
WDC_CA_CUT: Document = {"NAND Bytes Written Hi": 0, "NAND Bytes Written Lo": 5 * 10**12 % 2**31}
WDC_CA_NEGATIVE: Document = {"NAND Bytes Written Hi": 0, "NAND Bytes Written Lo": -1234}
# ScaleFlux's, as nvme-cli printed it until 2.11.
SCALEFLUX: Document = {
    "Intel Smart log": "sfdv0n1",
    "Device stats": {
        "nand_bytes_written": {"normalized": 100, "raw": 300},
        "host_bytes_written": {"normalized": 100, "raw": 100},
        "raid_recover_cnt": {"normalized": 100, "raw": 0},
    },
}
# DapuStor's log has the root of Intel's, and a field more.
DAPUSTOR: Document = {
    "Intel Smart log": "nvme0",
    "Device stats": {
        "nand_bytes_written": {"normalized": 100, "raw": 300},
        "host_bytes_written": {"normalized": 100, "raw": 100},
        "nand_bytes_read": {"normalized": 100, "raw": 9},
    },
}


def attribute(number: int, name: str, value: int, string: str | None = None) -> Document:
    return {
        **{"id": number, "name": name, "value": 100, "worst": 100, "thresh": 0, "when_failed": ""},
        "raw": {"value": value, "string": str(value) if string is None else string},
    }


def smartctl(model: str, *attributes: Document, exit_status: int = 0, **more: Any) -> Document:
    return {
        "json_format_version": [1, 0],
        "smartctl": {"version": [7, 4], "exit_status": exit_status},
        "device": {"name": "/dev/sda", "type": "sat", "protocol": "ATA"},
        "model_name": model,
        "logical_block_size": 512,
        "ata_smart_attributes": {"revision": 1, "table": list(attributes)},
    } | more


def refused(message: str, exit_status: int = 2) -> Document:
    """What smartctl prints of a drive that it could not open."""
    return {
        "json_format_version": [1, 0],
        "smartctl": {
            "version": [7, 4],
            "messages": [{"string": message, "severity": "error"}],
            "exit_status": exit_status,
        },
    }
