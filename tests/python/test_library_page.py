"""docs/LIBRARY.md names what the library has: each option with its default, each property, each event, each refusal,
and every call of RocksDB's that takes a database."""

import re
import runpy
from pathlib import Path

from conftest import ROOT

PAGE = (ROOT / "docs" / "LIBRARY.md").read_text()
CALLS = PAGE[PAGE.index("## What becomes of RocksDB's calls") :]
ROCKSDB = Path("/usr/include/rocksdb")
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
        found |= set(re.findall(r"\bvirtual\s+[^;{}()]*?(\w+)\s*\(", body))
    return found - {"DB"}


def overridden() -> set[str]:
    code = without_comments(source("db_impl.h"))
    return set(re.findall(r"(\w+)\([^;{}]*\)\s*(?:const\s*)?override\b", code))


def table(heading: str) -> dict[str, str]:
    """What becomes of each name in the first column of the table under that heading."""
    section = CALLS.split(f"### {heading}\n")[1].split("\n### ")[0]
    rows = re.findall(r"^\| (`.*?) \| ([\w ]+) \|", section, flags=re.MULTILINE)
    return {name: becomes for names, becomes in rows for name in re.findall(r"`([^`]+)`", names)}


def test_every_virtual_function_of_rocksdb_is_in_the_table() -> None:
    functions = table("Functions of rocksdb::DB")
    virtual = virtual_functions()
    assert len(virtual) > 85
    assert sorted(virtual - set(functions)) == []
    assert sorted(set(functions) - virtual) == []


def test_the_table_of_functions_says_what_the_code_does() -> None:
    functions = table("Functions of rocksdb::DB")
    words = set(re.findall(r"^\| (\w[\w ]*) \| ", CALLS.split("### Functions")[0], flags=re.MULTILINE)) - {"word"}
    assert set(functions.values()) <= words
    ours = overridden()
    assert sorted(name for name, becomes in functions.items() if becomes != "RocksDB" and name not in ours) == []
    assert {"Resume", "GetStatsHistory", "GetAllColumnFamilyMetaData"} <= ours  # a StackableDB does not pass them on
    refused = set(re.findall(r'refuse\("(\w+)"', source("db_refused.cc")))
    assert {name for name, becomes in functions.items() if becomes == "refused"} == refused


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


def test_every_refused_call_is_tried() -> None:
    tried = (ROOT / "tests" / "native" / "spill_refused_test.cc").read_text()
    refused = re.findall(r'refuse\("(\w+)', source("db_refused.cc"))
    assert len(refused) > 20
    assert [name for name in refused if f'expect_refused("{name}"' not in tried] == []


def test_every_call_refused_in_a_transaction_is_named_and_tried() -> None:
    sources = "\n".join(path.read_text() for path in (SPILL / "transactions").glob("*.cc"))
    tried = (ROOT / "tests" / "native" / "spill_transactions_test.cc").read_text()
    refused = re.findall(r'refuse_in_transaction\("(\w+)"', sources)
    options = re.findall(r'return no\("(\w+):', sources)
    assert len(refused) > 6
    assert len(options) > 2
    page = CALLS.split("## Transactions\n")[1]
    assert [name for name in refused + options if f"`{name}`" not in page] == []
    assert [name for name in refused + options if f'expect_refused("{name}"' not in tried] == []
