"""The plugin directory for RocksDB's own build: what it has, read as RocksDB's two builds read it."""

import re
import subprocess
from pathlib import Path

import pytest
from conftest import ROOT

SCRIPT = ROOT / "scripts" / "rocksdb_plugin.sh"
SPILL = ROOT / "native" / "spill"


@pytest.fixture(scope="module")
def rocksdb(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory such as RocksDB's checkout, with the plugin in it."""
    root = tmp_path_factory.mktemp("rocksdb")
    subprocess.run([SCRIPT, root / "plugin" / "spillway"], check=True)
    return root


def variable_of_make(rocksdb: Path, name: str) -> list[str]:
    """A variable of the fragment, as make has it."""
    rules = "include $(foreach plugin, $(ROCKSDB_PLUGINS), plugin/$(plugin)/*.mk)\nshow: ; @echo '$(spillway_WANTED)'\n"
    (rocksdb / "Makefile").write_text(rules.replace("WANTED", name))
    return subprocess.run(
        ["make", "-s", "-C", rocksdb, "ROCKSDB_PLUGINS=spillway"], check=True, capture_output=True, text=True
    ).stdout.split()


def test_its_sources_are_those_of_the_installed_library(rocksdb: Path) -> None:
    plugin = rocksdb / "plugin" / "spillway"
    sources = variable_of_make(rocksdb, "SOURCES")
    assert len(set(sources)) == len(sources)
    assert all((plugin / source).is_file() for source in sources)
    ours = {f"spill/{path.relative_to(SPILL)}" for path in SPILL.rglob("*.cc")}
    ours = {path for path in ours if not path.startswith(("spill/store/kv/", "spill/packaging/"))}
    base = re.findall(r"[\w./]+\.cc\b", (ROOT / "native/base/CMakeLists.txt").read_text())
    assert set(sources) == ours | {"register.cc"} | {f"base/{name}" for name in base}
    listed = set(re.findall(r"[\w./]+\.cc\b", (SPILL / "CMakeLists.txt").read_text().replace("*", "")))
    folders = {path.rsplit("/", 1)[0].removeprefix("spill/") for path in ours}
    assert base and {f"{folder}/.cc" for folder in folders} <= listed


def test_every_header_that_it_includes_is_there(rocksdb: Path) -> None:
    plugin = rocksdb / "plugin" / "spillway"
    files = [path for path in plugin.rglob("*") if path.suffix in (".h", ".cc")]
    assert len(files) > 100
    for path in files:
        text = re.sub(r"^#if __has_include.*?^#endif", "", path.read_text(), flags=re.MULTILINE | re.DOTALL)
        for header in re.findall(r'^#include "([^"]+)"', text, flags=re.MULTILINE):
            assert (plugin / header).is_file(), f"{path}: {header}"
    assert "-Iplugin/spillway" in variable_of_make(rocksdb, "CXXFLAGS")


def test_it_needs_no_run_time_type_information(rocksdb: Path) -> None:
    """Both of RocksDB's builds leave it out of a release, and so must whoever derives from RocksDB's classes then."""
    files = [path for path in (rocksdb / "plugin" / "spillway").rglob("*") if path.suffix in (".h", ".cc")]
    for path in files:
        text = re.sub(r"//.*", "", path.read_text())
        assert not re.search(r"\b(dynamic_cast|dynamic_pointer_cast|typeid|any_cast)\b", text), path


def test_its_headers_are_installed_with_rocksdbs(rocksdb: Path) -> None:
    plugin = rocksdb / "plugin" / "spillway"
    headers = variable_of_make(rocksdb, "HEADERS")
    assert set(headers) == {f"spillway/{path.name}" for path in (SPILL / "include" / "spillway").iterdir()}
    assert all((plugin / header).is_file() for header in headers)


def test_rocksdbs_cmake_build_reads_the_same(rocksdb: Path) -> None:
    (rocksdb / "CMakeLists.txt").write_text("""cmake_minimum_required(VERSION 3.10)
project(reads LANGUAGES NONE)
add_subdirectory(plugin/spillway)
file(READ plugin/spillway/spillway.mk fragment)
string(REGEX MATCH "SOURCES = ([^\\n]*)" all ${fragment})
message("sources:${CMAKE_MATCH_1}")
string(REGEX MATCH "_FUNC = ([^\\n]*)" all ${fragment})
message("function:${CMAKE_MATCH_1}")
message("headers:${spillway_HEADERS}")
message("include:${spillway_INCLUDE_PATHS}")
""")
    said = subprocess.run(
        ["cmake", "-S", rocksdb, "-B", rocksdb / "build"], check=True, capture_output=True, text=True
    ).stderr
    found = dict(re.findall(r"^(\w+):(.*)$", said, flags=re.MULTILINE))
    assert found["sources"].split() == variable_of_make(rocksdb, "SOURCES")
    assert sorted(found["headers"].split(";")) == sorted(variable_of_make(rocksdb, "HEADERS"))
    assert Path(found["include"]).samefile(rocksdb / "plugin" / "spillway")
    function = found["function"]
    assert f"int {function}(rocksdb::ObjectLibrary&" in (rocksdb / "plugin/spillway/register.cc").read_text()


def test_a_directory_that_exists_is_left_alone(tmp_path: Path) -> None:
    ended = subprocess.run([SCRIPT, tmp_path], capture_output=True, text=True, check=False)
    assert ended.returncode == 2
    assert "exists" in ended.stderr and not list(tmp_path.iterdir())
