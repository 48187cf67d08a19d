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
