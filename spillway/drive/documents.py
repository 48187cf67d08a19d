"""What nvme-cli and smartctl print as JSON → a reading. Pure functions of documents.

Forms, as the tools' sources print them:
    nvme smart-log            data_units_written: thousands of 512 bytes; a number, or text in some versions
    nvme endurance-log        data_units_written and media_units_written: 10^9 bytes (NVMe base specification 2.0,
                              Endurance Group Information log)
    nvme ocp smart-add-log    "Physical media units written" (1.x, format 1) or physical_media_units_written (format 2):
                              {"hi", "lo"}, 128 bits of bytes (OCP Datacenter NVMe SSD specification, SMART-1)
    nvme intel/solidigm       "Device stats" with nand_bytes_written.raw in units of 32 MiB
      smart-log-add           (Intel SSD DC P3700 product specification, log CAh)
    nvme micron, wdc          NAND bytes as numbers or as hexadecimal text
    nvme seagate              a list of {"attribute_name", "attribute_value"}
    any of them, refused      {"error": "Permission denied"}
    smartctl -j               ata_smart_attributes, ata_device_statistics, nvme_smart_health_information_log
"""

import json
import math
import re
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

from spillway.drive import attributes as sata
from spillway.drive.reading import LBA_BYTES, Counter, Reading, merged, plausible, unknown
from spillway.errors import SpillwayError

Document = dict[str, Any]

# One data unit of NVMe is 1000 units of 512 bytes. Source: NVMe base specification 2.0, SMART / Health log.
DATA_UNIT_BYTES = 1000 * 512
INTEL_UNIT_BYTES = 32 * 2**20
ENDURANCE_UNIT_BYTES = 10**9
# nvme-cli 2 prints these counts through a C int, which keeps 32 of 64 bits with the highest for a sign.
# Source: nvme-cli, plugins/wdc/wdc-nvme.c and json_object_add_value_int
CUT_TO_BITS = 31
# smartctl's exit status is a set of bits; these say that the drive could not be read. Source: smartctl(8).
COULD_NOT_READ = 0b11

# Vendors' own logs, by the root's key; the unit of their nand_bytes_written. None: printed without a unit.
ADDITIONAL_LOGS: dict[str, int | None] = {
    "Intel Smart log": INTEL_UNIT_BYTES,
    "Solidigm SMART log": INTEL_UNIT_BYTES,
    "ScaleFlux Smart log": None,
    "SSSTC Smart log": None,
}
# Fields that stand in other makers' logs under Intel's root: DapuStor's, and ScaleFlux's before nvme-cli 2.12.
# Source: nvme-cli, plugins/dapustor and plugins/scaleflux
NOT_INTELS = frozenset(("nand_bytes_read", "prog_timeout_cnt", "erase_timeout_cnt", "raid_recover_cnt"))
# Fields that count bytes programmed; the fields of a row add up, and none of them may be missing. Keys in lower case,
# underscores as spaces.
BYTES_PROGRAMMED: tuple[tuple[str, ...], ...] = (
    ("physical media units written",),
    ("physical media units written - tlc", "physical media units written - slc"),
    ("physical media units bytes tlc", "physical media units bytes slc"),
    ("nand writes tlc (bytes)", "nand writes slc (bytes)"),
    ("nand writes (bytes written)",),
    ("physical (nand) bytes written",),
)


def load(text: str, where: str) -> Document:
    """A JSON object. A bare ``nan``, which old nvme-cli prints, is no value. Raises SpillwayError for other JSON."""
    try:
        document = json.loads(
            re.sub(r":\s*-?(?:nan|inf)\b", ": null", text.removeprefix("\ufeff"), flags=re.IGNORECASE)
        )
    except (ValueError, RecursionError) as error:
        raise SpillwayError(
            f"{where}: this is not JSON ({error}); save what `smartctl -j -x DEVICE` or "
            "`nvme smart-log -o json DEVICE` prints."
        ) from error
    if not isinstance(document, dict):
        raise SpillwayError(f"{where}: this is a JSON {type(document).__name__}, not the object that a SMART log is.")
    return document


def parse(document: Document) -> Reading:
    """What a document of any of the forms says; a reading with a reason where it says nothing of NAND bytes."""
    if "smartctl" in document or "json_format_version" in document:
        return _smartctl(document)
    readings = [*_endurance_group(document), *_nvme_health(document)]
    readings += [*_bytes_programmed(document), *_additional(document)]
    if not readings:
        return unknown(_why_no_log(document), recognised=False)
    whole = readings[0]
    for each in readings[1:]:
        whole = merged(whole, each)
    return plausible(whole)


def _why_no_log(document: Document) -> str:
    message = document.get("error")
    if not isinstance(message, str) or not message.strip():
        return "it is a log of a vendor or a form that is not known here"
    if "ermission" in message:
        return "nvme may not open it: SMART logs take root, or the capability CAP_SYS_ADMIN"
    return f"nvme could not read it: {message.strip().rstrip('.')}"


def whole_number(value: object) -> int | None:
    """A count, however a tool spells it: 12, 12.0, "1,234", "0x1f", {"hi": 0, "lo": 12}; None for what is none."""
    if isinstance(value, bool) or value is None:
        return None
    if isinstance(value, int):
        return value if value >= 0 else None
    if isinstance(value, float):
        return int(value) if math.isfinite(value) and value >= 0 else None
    if isinstance(value, dict):
        high, low = whole_number(value.get("hi")), whole_number(value.get("lo"))
        return None if high is None or low is None else (high << 64) + low
    return _from_text(value.strip()) if isinstance(value, str) else None


# Digits of 128 bits are 39 at most. A point before three digits may be a German thousand or an English fraction: one
# such group is read as neither.
_DIGITS = re.compile(r"\d{1,39}", re.ASCII)
_HEXADECIMAL = re.compile(r"0[xX][0-9a-fA-F]{1,32}")
_WITH_POINT = re.compile(r"(\d{1,39})\.0+|\d{1,39}(?:\.\d{1,39})?[eE]\+?\d{1,2}", re.ASCII)
_GROUPS = re.compile(
    r"[0-9]{1,3}(?:([,'’\s])[0-9]{3})(?:\1[0-9]{3}){0,11}"
    r"|[0-9]{1,3}(?:\.[0-9]{3}){2,12}"
    r"|[0-9]{1,2}(?:,[0-9]{2}){1,18},[0-9]{3}"  # India's
)


def _from_text(text: str) -> int | None:
    if _HEXADECIMAL.fullmatch(text):
        return int(text, 16)
    if _DIGITS.fullmatch(text):
        return int(text)
    if _GROUPS.fullmatch(text):
        return int(re.sub(r"\D", "", text))
    if point := _WITH_POINT.fullmatch(text):
        return int(point[1]) if point[1] else int(Decimal(text))
    return None


def _flat(document: Document) -> Iterator[tuple[str, object]]:
    """Keys and values on every level, keys in lower case with spaces; an attribute of Seagate's under its own name."""
    ahead: list[tuple[str, object]] = [("", document)]
    while ahead:
        key, node = ahead.pop()
        if key:
            yield re.sub(r"\s+", " ", key.lower().replace("_", " ")).strip(), node
        below: list[tuple[str, object]] = []
        if isinstance(node, dict):
            below = [(str(name), value) for name, value in node.items()]
            if isinstance(name := node.get("attribute_name"), str):
                below.append((name, node.get("attribute_value")))
        elif isinstance(node, list):
            below = [("", each) for each in node]
        ahead += reversed(below)


def _endurance_group(document: Document) -> list[Reading]:
    """One endurance group's log: a drive with several has a log for each, and this one is not the whole drive's."""
    media = whole_number(document.get("media_units_written"))
    if media is None:
        return []
    units = whole_number(document.get("data_units_written"))
    return [
        Reading(
            "",
            ("Endurance Group Information log (nvme endurance-log)",),
            host=None if units is None else Counter("data_units_written", units, ENDURANCE_UNIT_BYTES),
            nand=Counter("media_units_written", media, ENDURANCE_UNIT_BYTES),
            percentage_used=_percent(document.get("percent_used", document.get("percentage_used"))),
        )
    ]


def _nvme_health(document: Document) -> list[Reading]:
    units = whole_number(document.get("data_units_written"))
    if units is None or "endurance_group_features" in document or "media_units_written" in document:
        return []  # an endurance group's has the same name in another unit
    used = document.get("percent_used", document.get("percentage_used"))
    return [
        Reading(
            model="",
            logs=("SMART / Health log (nvme smart-log)",),
            host=Counter("data_units_written", units, DATA_UNIT_BYTES),
            percentage_used=_percent(used),
            why_unknown="NVMe's SMART log has no count of NAND bytes, and no OCP or vendor log was read",
        )
    ]


def _percent(value: object) -> float | None:
    number = whole_number(value.rstrip("% ") if isinstance(value, str) else value)
    return None if number is None else float(number)


def _bytes_programmed(document: Document) -> list[Reading]:
    fields = dict(_flat(document))
    for names in BYTES_PROGRAMMED:
        parts = [whole_number(fields.get(name)) for name in names]
        if None not in parts:
            return [_programmed(" + ".join(names), tuple(part for part in parts if part is not None))]
    high, low = fields.get("nand bytes written hi"), fields.get("nand bytes written lo")
    count128 = whole_number({"hi": high, "lo": low})
    if high is None or low is None:
        return []
    if count128 is None or count128 >> CUT_TO_BITS == 0:
        why = "its NAND Bytes Written are cut to 32 bits by nvme-cli 2, so that their upper bits are not known"
        return [unknown(why, logs=("the vendor's SMART log (nvme)",))]
    return [_programmed("nand bytes written", (count128,))]


def _programmed(name: str, parts: tuple[int, ...]) -> Reading:
    log = "OCP SMART log" if name == "physical media units written" else "the vendor's SMART log"
    return Reading("", (f"{log} (nvme)",), nand=Counter(name, sum(parts), 1, parts=parts))


def _additional(document: Document) -> list[Reading]:
    root = next((key for key in document if key in ADDITIONAL_LOGS), None)
    stats = document.get("Device stats")
    if root is None or not isinstance(stats, dict):
        return []
    log, unit = (f"{root} (nvme)",), ADDITIONAL_LOGS[root]
    if unit is None or not NOT_INTELS.isdisjoint(stats):
        whose = root if unit is None else f"{root} of another maker's drive"
        return [unknown(f"the unit of nand_bytes_written in a {whose} is not published", logs=log, recognised=False)]
    nand, host = (_raw_of(stats, name) for name in ("nand_bytes_written", "host_bytes_written"))
    wear: object = next((stats[name] for name in ("wear_leveling", "wear_leveling_count") if name in stats), {})
    inner = wear.get("raw", wear) if isinstance(wear, dict) else {}
    cycles = whole_number(inner.get("avg")) if isinstance(inner, dict) else None
    return [
        Reading(
            "",
            log,
            host=None if host is None else Counter("host_bytes_written", host, unit),
            nand=None if nand is None else Counter("nand_bytes_written", nand, unit),
            mean_pe_cycles=None if cycles is None else float(cycles),
            why_unknown="" if nand is not None else f"the {root} has no nand_bytes_written",
        )
    ]


def _raw_of(stats: Document, name: str) -> int | None:
    field = stats.get(name)
    return whole_number(field.get("raw")) if isinstance(field, dict) else None


# --- smartctl


def _smartctl(document: Document) -> Reading:
    model = str(document.get("model_name") or document.get("scsi_model_name") or "")
    status = document.get("smartctl")
    exit_status = whole_number(status.get("exit_status")) if isinstance(status, dict) else None
    message = _messages(status)
    health, table = document.get("nvme_smart_health_information_log"), document.get("ata_smart_attributes")
    if (exit_status or 0) & COULD_NOT_READ and not health and not table:
        return unknown(_why_unread(message), model=model, logs=("smartctl",))
    if isinstance(health, dict):
        found = _nvme_health(health)
        if not found:
            return unknown("its SMART / Health log has no data_units_written", model=model, logs=("smartctl",))
        return Reading(**{**vars(found[0]), "model": model, "logs": ("SMART / Health log (smartctl)",)})
    if isinstance(table, dict):
        return _ata(document, table, model)
    kind = document.get("device")
    protocol = str(kind.get("protocol", "")) if isinstance(kind, dict) else ""
    if protocol == "SCSI":
        why = "a SCSI or SAS drive: its logs have no count of NAND bytes"
        return Reading(model, ("smartctl",), percentage_used=_percent(_endurance_used(document)), why_unknown=why)
    return unknown(
        _why_unread(message) if message else "smartctl printed no SMART attributes", model=model, logs=("smartctl",)
    )


def _messages(status: object) -> str:
    messages = status.get("messages") if isinstance(status, dict) else None
    strings = [str(m.get("string", "")) for m in messages if isinstance(m, dict)] if isinstance(messages, list) else []
    return "; ".join(filter(None, strings))


def _why_unread(message: str) -> str:
    if "ermission denied" in message:
        return "smartctl may not open it: SMART logs take root, or the capability CAP_SYS_RAWIO"
    if "USB bridge" in message:
        return "its USB bridge hides it: smartctl needs a device type for it, such as -d sat"
    return f"smartctl could not read it: {message.rstrip('.')}" if message else "smartctl could not read it"


def _ata(document: Document, table: Document, model: str) -> Reading:
    rows = table.get("table")
    found = [each for row in rows if (each := _attribute(row)) is not None] if isinstance(rows, list) else []
    by_name = sata.named(found, model)
    lba_bytes = whole_number(document.get("logical_block_size")) or LBA_BYTES
    percent = _endurance_used(document)
    if percent is None:
        percent = _statistic(document, "Percentage Used")
    sectors = _statistic(document, "Logical Sectors Written")
    in_lbas = document.get("in_smartctl_database") is True or bool(whole_number(document.get("rotation_rate")))
    host = sata.host_counter(by_name, lba_bytes, in_lbas or sata.counts_lbas(model))
    if sectors is not None:
        host = Counter("device statistics, Logical Sectors Written", sectors, lba_bytes)
    nand, programs = sata.nand_counter(by_name), sata.programs(by_name)
    family = str(document.get("model_family") or "")
    why = f"no attribute of {model or 'the drive'}{f' ({family})' if family else ''} is known to count NAND bytes"
    return plausible(
        Reading(
            model,
            ("SMART attributes (smartctl)",),
            host=host,
            nand=nand,
            programs=programs,
            percentage_used=_percent(percent),
            mean_pe_cycles=sata.mean_pe_cycles(by_name, model),
            why_unknown="" if nand or programs else why,
            recognised=bool(nand or programs or (host and host.unit_bytes == host.most_unit_bytes)),
        )
    )


def _endurance_used(document: Document) -> object:
    """Percent, wherever smartctl has them from; a SAS drive's stand under two other names before 7.5."""
    used = document.get("endurance_used")
    if isinstance(used, dict) and "current_percent" in used:
        return used["current_percent"]
    names = ("scsi_percentage_used_endurance_indicator", "scsi_Percentage used endurance indicator")
    return next((document[name] for name in names if name in document), None)


def _attribute(row: object) -> sata.Attribute | None:
    """A line of the table.

    The raw text is smartctl's own reading of the 48 bits: where a maker has laid a second number over the upper ones,
    raw.value still has both and the text has the count first. Digits in groups of three are one number: with commas
    whatever raw.value says, with blanks, which also stand between the words of raw16, where it says the same.
    """
    if not isinstance(row, dict) or not isinstance(row.get("raw"), dict):
        return None
    number, raw = whole_number(row.get("id")), row["raw"]
    text, value = str(raw.get("string", "")).strip(), whole_number(raw.get("value"))
    grouped = _GROUPS.fullmatch(text)
    whole = int(re.sub(r"\D", "", text)) if grouped else None
    if grouped and (whole == value or not (grouped[1] or "").isspace()):
        value = whole
    elif leading := re.match(r"(\d{1,20})(?![\d.:hx,'’])", text, re.ASCII):
        value = int(leading[1])
    return None if number is None or value is None else sata.Attribute(number, str(row.get("name", "")), value)


def _statistic(document: Document, name: str) -> int | None:
    """A value of the ATA device statistics, by the beginning of its name."""
    statistics = document.get("ata_device_statistics")
    pages = statistics.get("pages") if isinstance(statistics, dict) else None
    for page in pages if isinstance(pages, list) else []:
        table = page.get("table") if isinstance(page, dict) else None
        for row in table if isinstance(table, list) else []:
            if isinstance(row, dict) and str(row.get("name", "")).startswith(name):
                return whole_number(row.get("value"))
    return None
