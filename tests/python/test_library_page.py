"""docs/LIBRARY.md names what the library has: each option with its default, each property, each event, each refusal."""

import re

from conftest import ROOT

PAGE = (ROOT / "docs" / "LIBRARY.md").read_text()
SPILL = ROOT / "native" / "spill"
OPTIONS = (SPILL / "include" / "spillway" / "options.h").read_text()

# Defaults as the header spells them, beside how the page does.
SPELLED = {
    "std::uint64_t{4} << 30": "4 GiB",
    "std::uint64_t{256} << 20": "256 MiB",
    "std::uint64_t{1} << 20": "1 MiB",
    "RollbackPolicy::adaptive": "`adaptive`",
    "100": "100 ms",
    "": "",
}


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
    properties = re.findall(r'{"([a-z-]+)", s\.', (SPILL / "db_other.cc").read_text())
    assert len(properties) > 15
    events = re.search(r"enum class Kind {(.*?)}", OPTIONS, flags=re.DOTALL)
    assert events
    kinds = re.findall(r"^\s+(\w+),", events[1], flags=re.MULTILINE)
    assert [name for name in properties + kinds if f"`{name}`" not in PAGE] == []


def test_every_refusal_is_there() -> None:
    source = "\n".join(path.read_text() for path in SPILL.glob("*.cc"))
    refused = re.findall(r'does not support ([\w -]+)[:"]', source) + re.findall(r'return no\("([\w -]+)', source)
    unsupported = PAGE.split("## Not supported")[1]
    named = [
        name
        for name in refused
        if name.strip() and name.strip() not in ("a comparator under which different bytes can be equal",)
    ]
    assert len(named) > 8
    assert [name for name in named if name.strip() not in unsupported] == []
