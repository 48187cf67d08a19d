"""YCSB's workloads by their own names: the bundled ones, property files, and what a phase of a plan is given of them.

The names, defaults and meanings are those of YCSB's CoreWorkload and Client (Cooper et al., SoCC 2010); a few are of
YCSB-cpp (``zipfian_const``) and go-ycsb (``keyprefix``). The properties under ``spillway.`` are ours: they say what
every binding of YCSB decides for itself, how a record becomes a value and how an update treats the old one.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from spillway.errors import BadProperties, SpillwayError
from spillway.quantity import nearest

Properties = dict[str, str]  # name → value, as people write it
Document = dict[str, Any]

LOAD, RUN = "ycsb-load", "ycsb-run"


def _mix(distribution: str, **proportions: float) -> Properties:
    names = ("read", "update", "insert", "scan", "readmodifywrite")
    texts = {f"{name}proportion": str(proportions.get(name, 0)) for name in names}
    return texts | {"requestdistribution": distribution, "readallfields": "true"}


# YCSB's core workloads. Source: its workloads/ directory and the paper's table 2. Their recordcount and operationcount
# of 1000 each are left out: they stand for what the user chooses.
WORKLOADS: dict[str, Properties] = {
    "workloada": _mix("zipfian", read=0.5, update=0.5),
    "workloadb": _mix("zipfian", read=0.95, update=0.05),
    "workloadc": _mix("zipfian", read=1),
    "workloadd": _mix("latest", read=0.95, insert=0.05),
    "workloade": _mix("zipfian", scan=0.95, insert=0.05)
    | {"maxscanlength": "100", "scanlengthdistribution": "uniform"},
    "workloadf": _mix("zipfian", read=0.5, readmodifywrite=0.5),
}


@dataclass(frozen=True)
class Property:
    """A property's default and the function that reads its text."""

    default: Any
    read: Callable[[str, str], Any]


def _whole(least: int) -> Callable[[str, str], int]:
    def read(text: str, where: str) -> int:
        if not re.fullmatch(r"[0-9]{1,19}", text) or int(text) < least:
            raise SpillwayError(f"{where} is {text!r}; it takes a whole number of at least {least}.")
        return int(text)

    return read


def _number(least: float, most: float, *, inside: bool = False) -> Callable[[str, str], float]:
    def read(text: str, where: str) -> float:
        try:
            value = float(text)
        except ValueError:
            value = float("nan")
        if not least <= value <= most or (inside and value in (least, most)):
            bounds = f"above {least:g} and below {most:g}" if inside else f"from {least:g} to {most:g}"
            raise SpillwayError(f"{where} is {text!r}; it takes a number {bounds}.")
        return value

    return read


def _word(*words: str) -> Callable[[str, str], str]:
    def read(text: str, where: str) -> str:
        if text not in words:
            raise SpillwayError(f"{where} is {text!r}; it takes one of {', '.join(words)}{nearest(text, words)}")
        return text

    return read


def _flag(text: str, where: str) -> bool:
    if text.lower() not in ("true", "false"):
        raise SpillwayError(f"{where} is {text!r}; it takes true or false.")
    return text.lower() == "true"


def _text(text: str, where: str) -> str:
    return text


_SHARE = _number(0, 1)

# What the native side is given, by the same names (contract/run.request.schema.json).
PROPERTIES: dict[str, Property] = {
    "recordcount": Property(0, _whole(0)),
    "operationcount": Property(0, _whole(0)),
    "maxexecutiontime": Property(0.0, _number(0, 365 * 86400)),
    "insertstart": Property(0, _whole(0)),
    "insertcount": Property(None, _whole(1)),
    "fieldcount": Property(10, _whole(1)),
    "fieldlength": Property(100, _whole(0)),
    "minfieldlength": Property(1, _whole(0)),
    "fieldlengthdistribution": Property("constant", _word("constant", "uniform", "zipfian")),
    "fieldnameprefix": Property("field", _text),
    "readproportion": Property(0.95, _SHARE),
    "updateproportion": Property(0.05, _SHARE),
    "insertproportion": Property(0.0, _SHARE),
    "scanproportion": Property(0.0, _SHARE),
    "readmodifywriteproportion": Property(0.0, _SHARE),
    "requestdistribution": Property(
        "uniform", _word("uniform", "zipfian", "latest", "hotspot", "exponential", "sequential")
    ),
    "zipfian_const": Property(0.99, _number(0, 1, inside=True)),
    "hotspotdatafraction": Property(0.2, _SHARE),
    "hotspotopnfraction": Property(0.8, _SHARE),
    "exponential.percentile": Property(95.0, _number(0, 100, inside=True)),
    "exponential.frac": Property(0.8571428571, _number(0, 1e9, inside=True)),
    "minscanlength": Property(1, _whole(1)),
    "maxscanlength": Property(1000, _whole(1)),
    "scanlengthdistribution": Property("uniform", _word("uniform", "zipfian")),
    "insertorder": Property("hashed", _word("hashed", "ordered")),
    "zeropadding": Property(1, _whole(0)),
    "keyprefix": Property("user", _text),
    "writeallfields": Property(False, _flag),
    "spillway.update": Property("merge", _word("merge", "overwrite")),
    "spillway.layout": Property("values", _word("values", "named")),
}
# What decides about phases, and does not go to the native side by these names.
OF_PHASES: dict[str, Property] = {
    "threadcount": Property(None, _whole(1)),
    "target": Property(None, _number(0, 1e9)),
    "dotransactions": Property(True, _flag),
}
# What decides about what a load leaves; the other properties are of the operations on it.
OF_RECORDS = (
    *("recordcount", "insertstart", "insertcount", "fieldcount", "fieldlength", "minfieldlength"),
    *("fieldlengthdistribution", "fieldnameprefix", "insertorder", "zeropadding", "keyprefix", "spillway.layout"),
)
# Properties of YCSB that change nothing here: where and how YCSB itself reports, and reads of one field, for which a
# key-value store gets the whole record all the same.
WITHOUT_EFFECT = (
    *("table", "readallfields", "readallfieldsbyname", "columnfamily", "label", "status", "status.interval"),
    *("exporter", "exportfile", "measurementtype", "measurement.interval", "measurement.trackjvm"),
    *("measurement.histogram.verbose", "measurement.raw.output_file", "measurement.raw.no_summary"),
    *("histogram.buckets", "timeseries.granularity", "hdrhistogram.fileoutput", "hdrhistogram.output.path"),
    *("hdrhistogram.percentiles", "reportlatencyforeacherror", "latencytrackederrors", "spin.sleep"),
    *("maxscanrate", "scanoptimelimit", "discardscannedrecord", "core_workload_insertion_retry_interval"),
)
# Features of YCSB that are missing here: accepted only with the value that turns them off.
LEFT_OFF = {
    "dataintegrity": "false",
    "core_workload_insertion_retry_limit": "0",
    "core_workload_insertion_keep_going_on_error": "false",
}
# Names of other ports for a property that has one here.
OF_PORTS = {"field_len_dist": "fieldlengthdistribution", "dotransaction": "dotransactions"}
KNOWN = (*PROPERTIES, *OF_PHASES, *WITHOUT_EFFECT, *LEFT_OFF, "workload")


def parse_properties(text: str, where: str) -> Properties:
    """Reads Java's ``.properties`` syntax: ``key=value``, ``key: value`` or ``key value``, comments with ``#`` or
    ``!``, lines continued by a backslash; with or without a byte order mark. Raises SpillwayError with ``where`` and
    the line for an unknown property or a value out of range."""
    texts: Properties = {}
    logical, begun = "", 0
    lines = re.split(r"\r\n|\r|\n", text.removeprefix("\ufeff"))  # str.splitlines() has more line ends than Java
    for number, line in enumerate([*lines, ""], 1):
        stripped = line.lstrip(" \t\f")
        if not logical:
            begun = number
            if stripped[:1] in ("", "#", "!"):
                continue
        logical += stripped
        if _continues(logical):
            logical = logical[:-1]
            continue
        key, value = (_whole_characters(part, f"{where}: line {begun}") for part in _split(logical))
        check(key, value, f"{where}: line {begun}")
        texts[key] = value
        logical = ""
    return texts


def _continues(line: str) -> bool:
    return (len(line) - len(line.rstrip("\\"))) % 2 == 1


def _split(line: str) -> tuple[str, str]:
    match = re.match(r"((?:\\.|[^\\=: \t\f])*)[ \t\f]*[=:]?[ \t\f]*(.*)", line, re.DOTALL)
    assert match  # every part may be empty
    return _unescaped(match[1]), _unescaped(match[2]).strip()


def _unescaped(text: str) -> str:
    named = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}

    def one(match: re.Match[str]) -> str:
        return chr(int(match[1][1:], 16)) if len(match[1]) > 1 else named.get(match[1], match[1])

    return re.sub(r"\\(u[0-9A-Fa-f]{4}|.)", one, text)


def _whole_characters(text: str, where: str) -> str:
    """Joins the two halves of characters that are written as two escapes, as Java's have 16 bits."""
    try:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le")
    except UnicodeDecodeError:
        raise SpillwayError(f"{where}: {text!a} has half a character; write both of its \\u escapes.") from None


def parse_assignment(text: str) -> tuple[str, str]:
    """Name and value of ``key=value``, as YCSB's flag ``-p`` takes it. Raises SpillwayError."""
    key, sign, value = text.partition("=")
    if not sign or not key.strip():
        raise SpillwayError(f"-p {text}: it takes KEY=VALUE, such as -p recordcount=100000.")
    check(key.strip(), value.strip(), f"-p {text}")
    return key.strip(), value.strip()


def read_workload(name: str, directory: Path = Path()) -> Properties:
    """The properties of a bundled workload, or of the property file at a path relative to ``directory``. Raises
    BadProperties for what the file says."""
    if name in WORKLOADS:
        return dict(WORKLOADS[name])
    path = directory / name
    try:
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        text = path.read_text(encoding="latin-1")  # what Java's property files were made of
    except OSError as error:
        bundled = ", ".join(WORKLOADS)
        raise SpillwayError(
            f"{path}: the property file cannot be read: {error.strerror}; bundled are {bundled}."
        ) from error
    try:
        return parse_properties(text, str(path))
    except SpillwayError as error:
        raise BadProperties(str(error)) from error


def check(key: str, text: str, where: str) -> None:
    """Raises SpillwayError for what is no property of YCSB's core workload, and what is not one of its values."""
    _check_known(key, where)
    if key in PROPERTIES:
        PROPERTIES[key].read(text, f"{where}: {key}")
    elif key in OF_PHASES:
        OF_PHASES[key].read(text, f"{where}: {key}")
    elif key in LEFT_OFF and text.lower() != LEFT_OFF[key]:
        raise SpillwayError(f"{where}: {key} = {text} is not supported; leave it out or set it to {LEFT_OFF[key]}.")
    elif key == "workload" and text.rpartition(".")[2] != "CoreWorkload":
        raise SpillwayError(f"{where}: workload is {text!r}; of YCSB's classes only CoreWorkload is supported.")


def _check_known(key: str, where: str) -> None:
    if key in KNOWN:
        return
    if key == "db" or re.match(r"(rocksdb|leveldb|wiredtiger|lmdb)\.", key):
        raise SpillwayError(f"{where}: {key} belongs to a binding of YCSB's; say it in the plan's [engine] instead.")
    if key.startswith("fieldlengthhistogram"):
        raise SpillwayError(
            f"{where}: {key} is not supported: use fieldlengthdistribution = constant, uniform or zipfian."
        )
    if key in OF_PORTS:
        raise SpillwayError(f"{where}: {key} is another port's name; YCSB's own is {OF_PORTS[key]}.")
    raise SpillwayError(f"{where}: {key} is not a property of YCSB's core workload{nearest(key, KNOWN)}")


def flattened(table: Any, where: str) -> Properties:
    """A plan's table of properties as texts; dotted names may come as tables in it. Raises SpillwayError."""
    if not isinstance(table, dict):
        raise SpillwayError(f"{where} is {table!r}; it takes a table of YCSB's properties.")
    texts: Properties = {}
    for key, value in table.items():
        if isinstance(value, dict):
            texts |= {f"{key}.{inner}": text for inner, text in flattened(value, f"{where}.{key}").items()}
        elif isinstance(value, bool):
            texts[key] = "true" if value else "false"
        elif isinstance(value, str | int | float):
            texts[key] = str(value)
        else:
            raise SpillwayError(f"{where}.{key} is {value!r}; it takes a text, a number or true or false.")
    return texts


def layered(table: Any, where: str, directory: Path) -> Properties:
    """A plan's ``[ycsb]``: what its key ``properties`` names, a workload or a file, with its own keys on top. Raises
    SpillwayError."""
    own = dict(table) if isinstance(table, dict) else table
    base = own.pop("properties", None) if isinstance(own, dict) else None
    texts = flattened(own, where)
    for key, text in texts.items():
        check(key, text, where)
    if base is None:
        return texts
    if not isinstance(base, str):
        raise SpillwayError(f'{where}.properties is {base!r}; it takes a name, such as "workloada", or a file.')
    return read_workload(base, directory) | texts


def resolve(texts: Mapping[str, str], where: str) -> Document:
    """Every property of PROPERTIES and OF_PHASES with its value or default; those that have neither are left out.
    Raises SpillwayError with ``where``."""
    for key, text in texts.items():
        check(key, text, where)
    table = PROPERTIES | OF_PHASES
    values = {
        key: known.read(texts[key], f"{where}: {key}") if key in texts else known.default
        for key, known in table.items()
    }
    return {key: value for key, value in values.items() if value is not None}


def complete_phases(
    phases: list[Document], texts: Properties, asked: Properties, label: str, continues_database: bool = False
) -> list[Document]:
    """The phases of ycsb-load and ycsb-run with their properties: ``texts`` (the plan's), the phase's own over them,
    and over both ``asked`` (the command line's). Other phases are unchanged.

    ``threadcount`` and ``target`` take the place of ``threads`` and ``rate_ops_s`` where a phase does not give these
    (its ``given`` keys). From the command line they, and the ends of a run, replace the phase's own keys.
    ``dotransactions = false`` removes the phases of ycsb-run. ``continues_database``: the run starts from a kept
    database, whose number of records the native side knows. Raises SpillwayError with ``label``.
    """
    completed = []
    for index, phase in enumerate(phases):
        where = f"{label}phases[{index}]"
        given = phase.pop("given")
        if phase["workload"] not in (LOAD, RUN):
            completed.append(phase)
            continue
        own = flattened(phase["ycsb"] or {}, f"{where}.ycsb")
        values = resolve(texts | own | asked, f"{label}ycsb")
        replaced = _replaced_by(asked, phase["workload"])
        given = [key for key in given if key not in replaced]
        phase |= dict.fromkeys(replaced - {"threads"})
        threads, target = values.pop("threadcount", None), values.pop("target", 0)
        transactions = values.pop("dotransactions")
        if phase["workload"] == RUN and not transactions:
            continue
        if threads is not None and "threads" not in given:
            phase["threads"] = threads
        if target and "rate_ops_s" not in given and phase["workload"] == RUN:
            phase["rate_ops_s"] = float(target)
        _check(phase, values, f"{label}ycsb: ")
        completed.append(phase | {"ycsb": values})
    _check_order(completed, label, continues_database)
    return completed


def only_loading(phase: Document) -> Document:
    """A phase without what its properties say of operations, where it has none: loads that leave the same are equal."""
    if phase["workload"] != LOAD:
        return phase
    values = {key: value if key in OF_RECORDS else PROPERTIES[key].default for key, value in phase["ycsb"].items()}
    return phase | {"ycsb": values}


def _replaced_by(asked: Properties, workload: str) -> set[str]:
    """Keys of a phase that say what a property says which the command line asked for."""
    replaced = {"threads"} if "threadcount" in asked else set()
    if workload == RUN:
        replaced |= {"rate_ops_s"} if "target" in asked else set()
        replaced |= {"operations", "duration_s"} if int(asked.get("operationcount", 0)) else set()
        replaced |= {"duration_s"} if float(asked.get("maxexecutiontime", 0)) else set()
    return replaced


def _check(phase: Document, values: Document, where: str) -> None:
    if values["recordcount"] == 0:
        raise SpillwayError(
            f"{where}recordcount is missing or 0: say how many records there are, as with -p recordcount=1000."
        )
    start = values["insertstart"]
    if start + values.get("insertcount", max(values["recordcount"] - start, 1)) > values["recordcount"]:
        raise SpillwayError(f"{where}insertstart + insertcount is more than recordcount = {values['recordcount']}.")
    if phase["workload"] == LOAD:
        return
    ends = values["operationcount"] or values["maxexecutiontime"] or phase["operations"] or phase["duration_s"]
    if not ends:
        raise SpillwayError(
            f"{where}operationcount is missing or 0: say how many operations there are, or give the phase a duration_s."
        )
    inserts = values["insertproportion"] > 0 and values["requestdistribution"] == "zipfian"
    if inserts and not values["operationcount"] and not phase["operations"]:
        raise SpillwayError(
            f"{where}operationcount is missing: the zipfian distribution leaves room for the inserts to come."
        )
    if sum(value for key, value in values.items() if key.endswith("proportion")) == 0:
        raise SpillwayError(f"{where}readproportion and the other proportions are all 0: raise one of them.")
    if values["minscanlength"] > values["maxscanlength"] and values["scanproportion"] > 0:
        raise SpillwayError(f"{where}minscanlength is more than maxscanlength = {values['maxscanlength']}.")


def _check_order(phases: list[Document], label: str, continues_database: bool) -> None:
    workloads = [phase["workload"] for phase in phases]
    if RUN in workloads and LOAD not in workloads[: workloads.index(RUN)] and not continues_database:
        raise SpillwayError(f"{label}phases: ycsb-run would find no records; put a phase of ycsb-load before it.")


def loaded_bytes(phases: list[Document], packed: float) -> float:
    """A lower bound of the bytes of keys and values after the load. ``packed``: compressed size / size of values, 1
    without compression."""
    need = 0.0
    for phase in phases:
        if phase["workload"] == LOAD and phase["operations"] is None and phase["duration_s"] is None:
            values = phase["ycsb"]
            records = values.get("insertcount", values["recordcount"] - values["insertstart"])
            length = values["fieldlength"] if values["fieldlengthdistribution"] == "constant" else 0
            key = len(values["keyprefix"]) + max(values["zeropadding"], 1)
            need = max(need, records * (key + values["fieldcount"] * length * packed))
    return need
