"""docs/LIBRARY.md names what the library has: each option with its default, each property, each event, each refusal,
and every call of RocksDB's that takes a database."""

import os
import re
import runpy
from pathlib import Path

from conftest import ROOT

PAGE = (ROOT / "docs" / "LIBRARY.md").read_text()
CALLS = PAGE[PAGE.index("## What becomes of RocksDB's calls") :]
# The directory that has rocksdb/: of another version than the installed one, if its headers are to be read.
ROCKSDB = Path(os.environ.get("SPILLWAY_ROCKSDB_INCLUDE", "/usr/include")) / "rocksdb"
SPILL = ROOT / "native" / "spill"
OPTIONS = (SPILL / "include" / "spillway" / "options.h").read_text()
STATISTICS = (SPILL / "include" / "spillway" / "statistics.h").read_text()

# Defaults as the header spells them, beside how the page does.
SPELLED = {
    "std::uint64_t{4} << 30": "4 GiB",
    "std::uint64_t{256} << 20": "256 MiB",
    "std::uint64_t{1} << 20": "1 MiB",
    "RollbackPolicy::adaptive": "`adaptive`",
    "": "",
}


def source(name: str) -> str:
    """The text of the one file of that name in the accelerator's rooms."""
    (path,) = SPILL.rglob(name)
    return path.read_text()


def fields(struct: str) -> dict[str, str]:
    """The fields of a struct in options.h with their defaults."""
    body = re.search(rf"struct {struct} {{(.*?)\n}};", OPTIONS, flags=re.DOTALL)
    assert body
    code = re.sub(r"//[^\n]*", "", body[1])
    return {
        name: (given or braced).strip() for name, given, braced in re.findall(r"(\w+)(?: = ([^;]*)|{(\w*)})?;", code)
    }


def rows() -> dict[str, str]:
    """The page's options and their defaults."""
    return dict(re.findall(r"^\| `([\w.]+)` \| (.*?) \|", PAGE, flags=re.MULTILINE))


def test_every_option_is_there_with_its_default() -> None:
    expected = {name: default for name, default in fields("SpillOptions").items() if name != "divert"}
    expected |= {f"divert.{name}": default for name, default in fields("DivertPolicy").items()}
    options = {name: default for name, default in rows().items() if name in expected}
    assert set(options) == set(expected)
    for name, default in expected.items():
        if default:
            assert options[name] == SPELLED.get(default, default), name


def test_every_property_and_event_is_there() -> None:
    statistics = re.findall(r"^  (?:COUNT|GAUGE|FLAG)\((\w+),", STATISTICS, flags=re.MULTILINE)
    assert len(statistics) > 15
    properties = [re.sub("_us$", "_micros", name).replace("_", "-") for name in statistics]
    events = re.search(r"enum class Kind {(.*?)}", OPTIONS, flags=re.DOTALL)
    assert events
    kinds = re.findall(r"^\s+(\w+),", events[1], flags=re.MULTILINE)
    assert [name for name in properties + kinds if f"`{name}`" not in PAGE] == []


def test_the_list_of_statistics_is_made_from_their_table() -> None:
    docs = runpy.run_path(str(ROOT / "scripts" / "docs.py"))
    assert [name for _, name, _ in docs["statistics"]()] == re.findall(
        r"^  (?:COUNT|GAUGE|FLAG)\((\w+),", STATISTICS, flags=re.MULTILINE
    )
    assert docs["library_page"]() == PAGE, "make docs"
    module = ROOT / "spillway" / "rundir" / "statistics.py"
    assert docs["statistics_module"]() == module.read_text(), "make docs"


def test_every_refusal_is_there() -> None:
    # What transactions refuse is under a heading of its own, which has a test of its own.
    sources = [path.read_text() for path in SPILL.rglob("*.cc") if path.parent.name != "transactions"]
    text = "\n".join(sources)
    refused = re.findall(r'does not support ([\w -]+)[:"]', text) + re.findall(r'return no\("([\w -]+)', text)
    refused += re.findall(r'refuse\("(\w+)"', text)
    unsupported = PAGE.split("## Not supported")[1].split("\n## ")[0]
    named = [
        name
        for name in refused
        if name.strip() and name.strip() not in ("a comparator under which different bytes can be equal",)
    ]
    assert len(named) > 8
    assert [name for name in named if name.strip() not in unsupported] == []


def version() -> tuple[int, int]:
    """Of RocksDB's headers."""
    text = (ROCKSDB / "version.h").read_text()
    major, minor = (re.search(rf"define ROCKSDB_{part} (\d+)", text) for part in ("MAJOR", "MINOR"))
    assert major
    assert minor
    return int(major[1]), int(minor[1])


def of_version(code: str, at: tuple[int, int]) -> str:
    """Without what `#if SPILLWAY_ROCKSDB_AT_LEAST` leaves out."""
    kept: list[str] = []
    open_blocks: list[tuple[bool, bool]] = []  # whether this branch is taken, and whether one was before
    for line in code.splitlines():
        test = re.match(r"#(if|elif) (!?)SPILLWAY_ROCKSDB_AT_LEAST\((\d+), (\d+)\)$", line)
        if test:
            holds = (at >= (int(test[3]), int(test[4]))) != bool(test[2])
            was = open_blocks.pop()[1] if test[1] == "elif" else False
            open_blocks.append((holds and not was, holds or was))
        elif line == "#else":
            _, was = open_blocks.pop()
            open_blocks.append((not was, True))
        elif line == "#endif":
            open_blocks.pop()
        elif all(taken for taken, _ in open_blocks):
            assert not line.startswith("#if"), line
            kept.append(line)
    return "\n".join(kept)


def without_comments(code: str) -> str:
    return re.sub(r"//[^\n]*|/\*.*?\*/", "", code, flags=re.DOTALL)


def class_body(code: str, name: str) -> str:
    """What stands between the braces of a class."""
    start = re.search(rf"class {name}\b[^;{{]*{{", code)
    assert start, name
    depth, end = 1, start.end()
    while depth > 0:
        depth += {"{": 1, "}": -1}.get(code[end], 0)
        end += 1
    return code[start.end() : end]


def virtual_functions() -> set[str]:
    """Of rocksdb::DB, and what rocksdb::StackableDB adds."""
    found = set()
    for header, name in (("db.h", "DB"), ("utilities/stackable_db.h", "StackableDB")):
        body = class_body(without_comments((ROCKSDB / header).read_text()), name)
        while nested := re.search(r"\bclass (\w+)[^;{}()]*{", body):
            body = body.replace(nested[0] + class_body(body, nested[1]), "")
        found |= set(re.findall(r"\bvirtual\s+[^;{}()]*?(\w+)\s*\(", body))
    return found - {"DB"}


def wrapper() -> str:
    """What of the two classes between rocksdb::StackableDB and the user the version at hand has."""
    code = source("db_impl.h") + source("uniform_db.h")
    return without_comments(of_version(code, version()))


def overridden() -> set[str]:
    return {name for name, _ in overloads(wrapper())}


def overloads(code: str) -> set[tuple[str, str]]:
    """Functions that override another, each with the types of its parameters."""
    found = re.findall(r"(?<![~\w])(\w+)\(((?:[^;{}()]|\(\))*)\)\s*(?:const\s*)?(?:override|final)\b", code)
    return {(name, parameter_types(parameters)) for name, parameters in found}


def parameter_types(parameters: str) -> str:
    """Without names, defaults, namespaces and const, in which the headers differ."""
    aliases = {"OptionsByName": "unordered_map<string,string>", "VectorLogPtr": "VectorWalPtr", "LogFile": "WalFile"}
    text = re.sub(r"\b(?:std|rocksdb)::|\bconst\b", " ", parameters)
    for alias, name in aliases.items():
        text = re.sub(rf"\b{alias}\b", name, text)
    types = []
    for one in re.split(r",(?![^<]*>)", text):
        words = re.findall(r"[\w:]+|[<>,&*]", one.split("=")[0])
        if len(words) > 1 and re.match(r"\w", words[-1]):
            words.pop()
        types.append("".join(words))
    return ",".join(types)


def table(heading: str) -> dict[str, str]:
    """What becomes of each name in the first column of the table under that heading."""
    section = CALLS.split(f"### {heading}\n")[1].split("\n### ")[0]
    rows = re.findall(r"^\| (`.*?) \| ([\w ]+) \|", section, flags=re.MULTILINE)
    return {name: becomes for names, becomes in rows for name in re.findall(r"`([^`]+)`", names)}


def as_version(text: str) -> tuple[int, int]:
    major, minor = text.split(".")
    return int(major), int(minor)


def table_of_some_versions() -> list[tuple[str, str, str, str]]:
    """Function, what becomes of it, since, until: of the functions that only some versions of RocksDB have."""
    section = CALLS.split("### Functions that only some versions have\n")[1].split("\n### ")[0]
    rows = re.findall(r"^\| (`.*?) \| ([\w ]+) \| ([\d.]*) ?\| ([\d.]*) ?\|", section, flags=re.MULTILINE)
    return [(name, *row) for names, *row in rows for name in re.findall(r"`([^`]+)`", names)]


def functions_of(at: tuple[int, int]) -> dict[str, str]:
    """What becomes of each function of that version of RocksDB."""
    some = {
        name: becomes
        for name, becomes, since, until in table_of_some_versions()
        if at >= as_version(since or "0.0") and at < as_version(until or "99.0")
    }
    return table("Functions of rocksdb::DB") | some


def test_every_virtual_function_of_rocksdb_is_in_the_table() -> None:
    functions = functions_of(version())
    virtual = virtual_functions()
    assert len(virtual) > 85
    assert sorted(virtual - set(functions)) == []
    assert sorted(set(functions) - virtual) == []


def test_no_overload_slips_past_the_wrapper() -> None:
    """A StackableDB passes on to RocksDB what its subclass does not override, past the spill store."""
    functions = functions_of(version())
    body = without_comments((ROCKSDB / "utilities" / "stackable_db.h").read_text())
    passed_on = {one for one in overloads(class_body(body, "StackableDB")) if functions.get(one[0]) != "RocksDB"}
    assert len(passed_on) > 40
    assert sorted(passed_on - overloads(wrapper())) == []


def test_an_overload_that_slips_past_is_found() -> None:
    code = "Status Get(const ReadOptions& options, size_t n = 1) override {} void Put(std::vector<int, A>* a) final;"
    assert overloads(code) == {("Get", "ReadOptions&,size_t"), ("Put", "vector<int,A>*")}
    assert overloads("rocksdb::Status Get(const rocksdb::ReadOptions&, std::size_t) override;") < overloads(code)


def test_the_table_of_functions_says_what_the_code_does() -> None:
    functions = functions_of(version())
    words = set(re.findall(r"^\| (\w[\w ]*) \| ", CALLS.split("### Functions")[0], flags=re.MULTILINE)) - {"word"}
    assert set(functions.values()) <= words
    ours = overridden()
    # RocksDB's own, which call Get, MultiGet and CommitFileIngestionHandles.
    calls_others = {"GetAsync", "MultiGetAsync", "CommitFileIngestionHandle"}
    missing = {name for name, becomes in functions.items() if becomes != "RocksDB" and name not in ours}
    assert sorted(missing - calls_others) == []
    assert {"Resume", "GetStatsHistory", "GetAllColumnFamilyMetaData"} <= ours  # a StackableDB does not pass them on
    refused = set(
        re.findall(r'refuse\("(\w+)"', source("db_refused.cc") + of_version(source("uniform_db.cc"), version()))
    )
    named = {name for name, becomes in functions.items() if becomes == "refused"}
    assert named - {"CommitFileIngestionHandle"} == refused


def test_every_header_that_takes_a_database_is_in_the_table() -> None:
    headers = {
        str(path.relative_to(ROCKSDB))
        for path in ROCKSDB.glob("*.h")
        if re.search(r"\bDB\s?\*", without_comments(path.read_text()))
    }
    headers |= {str(path.relative_to(ROCKSDB)) for path in ROCKSDB.glob("utilities/*.h")}
    headers.remove("db.h")
    assert len(headers) > 25
    assert sorted(headers - set(table("Utilities"))) == []


# Of rocksdb::Transaction, with a body that calls another function, or for RocksDB's own transactions.
LEFT_TO_ROCKSDB = {
    "GetCommitBypassMemTable",
    "GetCommitTimestamp",
    "GetImpl",
    "GetLastLogNumber",
    "GetLogNumber",
    "GetName",
    "SetId",
    "SetLogNumber",
}


def test_every_virtual_function_of_a_transaction_is_named() -> None:
    code = "".join(
        source(name) for name in ("transaction.h", "uniform_transaction.h", "pessimistic.h", "optimistic.cc")
    )
    ours = {name for name, _ in overloads(without_comments(of_version(code, version())))}
    header = without_comments((ROCKSDB / "utilities" / "transaction.h").read_text())
    virtual = set(re.findall(r"\bvirtual\s+[^;{}()]*?(\w+)\s*\(", class_body(header, "Transaction")))
    assert len(virtual) > 50
    assert sorted(virtual - ours - LEFT_TO_ROCKSDB - {"Transaction"}) == []


def test_every_refused_call_is_tried() -> None:
    tests = ROOT / "tests" / "native"
    tried = (tests / "spill_refused_test.cc").read_text() + (tests / "spill_compat_test.cc").read_text()
    refused = re.findall(r'refuse\("(\w+)', source("db_refused.cc") + source("uniform_db.cc"))
    assert len(refused) > 20
    assert [name for name in refused if f'expect_refused("{name}"' not in tried] == []


def test_every_call_refused_in_a_transaction_is_named_and_tried() -> None:
    sources = "\n".join(path.read_text() for path in (SPILL / "transactions").glob("*.cc"))
    tests = ROOT / "tests" / "native"
    tried = (tests / "spill_transactions_test.cc").read_text() + (tests / "spill_compat_test.cc").read_text()
    refused = re.findall(r'refuse_in_transaction\("(\w+)"', sources + source("uniform_transaction.cc"))
    options = re.findall(r'return no\("(\w+):', sources)
    assert len(refused) > 6
    assert len(options) > 2
    page = CALLS.split("## Transactions\n")[1]
    assert [name for name in refused + options if f"`{name}`" not in page] == []
    assert [name for name in refused + options if f'refused("{name}"' not in tried] == []
