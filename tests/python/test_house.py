"""The rules of the house that a machine can hold: directions, purity, the map, links, presets, licence.

Each rule is a function from text to the places where it is broken, so that a test can also show that the rule bites.
"""

import ast
import re
import runpy
import subprocess
import tomllib
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

import click
import pytest

from spillway.cli.program import spillway

ROOT = Path(__file__).resolve().parents[2]
NATIVE = ROOT / "native"
LAYERS = (
    "base",
    "ssd",
    "device",
    "probe",
    "pool",
    "fs",
    "lsm",
    "faults",
    "spill",
    "engine",
    "load",
    "plugin",
    "accelerate",
    "tool",
)

# What would let the drive model see anything but its commands and the times they come at.
IMPURE_HEADERS = {
    "atomic", "chrono", "condition_variable", "cstdio", "ctime", "filesystem", "fstream", "future", "iostream",
    "mutex", "semaphore", "shared_mutex", "stdio.h", "stop_token", "thread", "time.h", "unistd.h",
}  # fmt: skip
IMPURE_WORDS = re.compile(r"\b(?:srand|rand|getenv|time|clock_gettime|gettimeofday|std::clock)\s*\(|\brandom_device\b")

# The standard library's locks. They have no attributes, and its lock holders hide a mutex that has some: clang cannot
# check what they guard.
UNCHECKED_LOCKS = re.compile(
    r"\bstd::(?:(?:recursive_|shared_)?(?:timed_)?mutex|condition_variable(?:_any)?|"
    r"(?:unique|shared|scoped)_lock|lock_guard)\b"
)

# Places that only one person's or one build machine's file system has.
MACHINE_PATH = re.compile(r"(?<![\w.])/(?:work|root|home/[a-z]\w*|Users/\w+|tmp/(?:brief|bash\w*|build-\w+))/")


def tracked_files(*patterns: str) -> list[Path]:
    """Files of the checkout, those not yet committed too, but nothing that git ignores."""
    listing = subprocess.run(
        ["git", "-C", str(ROOT), "ls-files", "--cached", "--others", "--exclude-standard", "-z", "--", *patterns],
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    return sorted(path for name in listing.split("\0") if name and (path := ROOT / name).is_file())


def without_comments(source: str) -> str:
    return re.sub(r"//[^\n]*|/\*.*?\*/", "", source, flags=re.DOTALL)


def includes(source: str) -> list[str]:
    return re.findall(r'^\s*#\s*include\s*[<"]([^">]+)[">]', source, flags=re.MULTILINE)


@cache
def permitted_includes() -> dict[str, set[str]]:
    """The table under "Directions" in ARCHITECTURE.md: layer, or a component ("ssd/gc") → what it may include."""
    table = {}
    for line in (ROOT / "ARCHITECTURE.md").read_text().splitlines():
        row = re.fullmatch(r"\| `([\w/]+)` \| (.*) \|", line)
        if row and row[1].split("/")[0] in LAYERS:
            table[row[1]] = set(re.findall(r"`([\w/]+)`", row[2]))
    return table


def row_of(folder: str, rows: Iterable[str]) -> str:
    """The row of the table that a folder below native/ obeys: its own, or that of the nearest folder above it."""
    return max((row for row in rows if f"{folder}/".startswith(f"{row}/")), key=len)


def folder_of(header: str) -> str | None:
    """The folder below native/ of a header of ours as an include names it; nothing for anybody else's."""
    for root in (NATIVE, NATIVE / "spill" / "include"):
        if (root / header).is_file():
            return (root / header).parent.relative_to(NATIVE).as_posix()
    first = header.split("/")[0]
    return first if "/" in header and first in LAYERS else None


def wrong_includes(folder: str, source: str, permitted: dict[str, set[str]]) -> list[str]:
    """Includes of our own headers that the folder may not use, or that do not say which layer they are of.

    A component is named by itself within its layer; a row that names another layer may include all of that layer's
    components.
    """
    wrong = []
    own = row_of(folder, permitted)
    for name in includes(source):
        of = folder_of(name)
        without_layer = name.startswith("..") or ("/" not in name and (NATIVE / folder / name).exists())
        if of is not None:
            row = row_of(of, permitted)
            layer = row.split("/")[0]
            allowed = row == own or row in permitted[own] or (layer != own.split("/")[0] and layer in permitted[own])
        if without_layer or (of is not None and not allowed):
            wrong.append(name)
    return wrong


def entry_for(own: str, row: str, entries: set[str]) -> str:
    """How a row of the table names another that it includes: the layer stands for the components of another layer."""
    layer = row.split("/")[0]
    return layer if row not in entries and layer != own.split("/")[0] else row


def included_rows(sources: Iterable[tuple[str, str]], permitted: dict[str, set[str]]) -> dict[str, set[str]]:
    """The table as it follows from the includes of all sources, each with its folder: row → the entries in use."""
    used: dict[str, set[str]] = {row: set() for row in permitted}
    for folder, source in sources:
        own = row_of(folder, permitted)
        rows = {row_of(of, permitted) for name in includes(source) if (of := folder_of(name)) is not None}
        used[own] |= {entry_for(own, row, permitted[own]) for row in rows - {own}}
    return used


def circles(edges: dict[str, set[str]]) -> list[set[str]]:
    """The largest sets of nodes of which each leads to each other."""
    reached: dict[str, set[str]] = {}
    for node in edges:
        seen: set[str] = set()
        ahead = list(edges[node])
        while ahead:
            if (one := ahead.pop()) not in seen:
                seen.add(one)
                ahead += edges.get(one, set())
        reached[node] = seen
    found = [{other for other in seen if node in reached.get(other, set())} for node, seen in reached.items()]
    return [circle for at, circle in enumerate(found) if circle and circle not in found[:at]]


def folder_graph() -> dict[str, set[str]]:
    """Folder below native/ → the folders whose headers it includes."""
    graph: dict[str, set[str]] = {}
    for path in native_sources():
        folder = path.parent.relative_to(NATIVE).as_posix()
        used = {of for name in includes(path.read_text()) if (of := folder_of(name)) is not None}
        graph.setdefault(folder, set()).update(used - {folder})
    return graph


def impurities(source: str) -> list[str]:
    code = without_comments(source)
    return [name for name in includes(code) if name in IMPURE_HEADERS] + [m[0] for m in IMPURE_WORDS.finditer(code)]


def map_of_architecture() -> Iterator[str]:
    """Paths named in the tree of ARCHITECTURE.md, relative to the root."""
    block = re.search(r"```\n\.\n(.*?)```", (ROOT / "ARCHITECTURE.md").read_text(), flags=re.DOTALL)
    assert block, "ARCHITECTURE.md has no map"
    branch: list[str] = []
    for line in block[1].splitlines():
        entry = re.match(r"((?:│   |    )*)[├└]── (\S+)", line)
        assert entry, f"not a line of a map: {line!r}"
        depth = len(entry[1]) // 4
        branch[depth:] = [entry[2].rstrip("/")]
        yield "/".join(branch)


def native_sources() -> list[Path]:
    return tracked_files("native/*.h", "native/*.cc")


def name_of(path: Path) -> str:
    return str(path.relative_to(ROOT))


def test_directions_cover_every_layer() -> None:
    permitted = permitted_includes()
    assert {row for row in permitted if "/" not in row} == set(LAYERS)
    assert {path.parent.relative_to(NATIVE).parts[0] for path in native_sources()} <= set(LAYERS)


def test_directions_name_what_there_is() -> None:
    permitted = permitted_includes()
    named = set(permitted).union(*permitted.values())
    assert sorted(name for name in named if not (NATIVE / name).is_dir()) == []
    assert sorted(name for name in named if name not in permitted) == []


def test_a_layer_with_a_component_in_the_table_has_them_all_there() -> None:
    permitted = permitted_includes()
    with_components = {row.split("/")[0] for row in permitted if "/" in row}
    folders = {path.parent.relative_to(NATIVE).as_posix() for path in native_sources()}
    components = {folder for folder in folders if "/" in folder and folder.split("/")[0] in with_components}
    assert sorted(component for component in components if "/" not in row_of(component, permitted)) == []


@pytest.mark.parametrize("path", native_sources(), ids=name_of)
def test_includes_go_one_way(path: Path) -> None:
    folder = path.parent.relative_to(NATIVE).as_posix()
    assert not wrong_includes(folder, path.read_text(), permitted_includes())


def test_the_table_of_directions_is_what_is_included() -> None:
    sources = [(path.parent.relative_to(NATIVE).as_posix(), path.read_text()) for path in native_sources()]
    permitted = permitted_includes()
    assert permitted == included_rows(sources, permitted)


# Folders of native/ that include each other. A circle that is broken leaves this list; none joins it.
KNOWN_CIRCLES: list[set[str]] = []


def test_no_folders_include_each_other() -> None:
    def in_order(found: list[set[str]]) -> list[list[str]]:
        return sorted(sorted(circle) for circle in found)

    assert in_order(circles(folder_graph())) == in_order(KNOWN_CIRCLES)


def test_a_circle_is_seen() -> None:
    assert circles({"a": {"b"}, "b": {"c"}, "c": {"a", "d"}, "d": set()}) == [{"a", "b", "c"}]
    assert circles({"a": {"b", "c"}, "b": {"c"}, "c": set()}) == []


def test_a_wrong_include_is_seen() -> None:
    permitted = permitted_includes()
    assert wrong_includes("ssd", '#include "base/result.h"\n', permitted) == ["base/result.h"]
    assert wrong_includes("ssd/gc", '#include "ssd/ssd.h"\n', permitted) == ["ssd/ssd.h"]
    assert wrong_includes("device", "#  include <fs/extents.h>\n", permitted) == ["fs/extents.h"]
    assert wrong_includes("fs", '#include "../device/device.h"\n', permitted) == ["../device/device.h"]
    assert wrong_includes("ssd", '#include "ssd.h"\n', permitted) == ["ssd.h"]
    assert not wrong_includes("device", '#include "ssd/ssd.h"\n#include <sys/stat.h>\n', permitted)


def test_a_wrong_include_between_components_is_seen(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(globals(), "NATIVE", tmp_path)
    for header in (
        "ssd/ssd.h",
        "ssd/gc/victim.h",
        "ssd/ftl/ftl.h",
        "fs/components/deep/a.h",
        "spill/include/spillway/db.h",
    ):
        (tmp_path / header).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / header).touch()
    permitted = {"ssd": {"ssd/ftl"}, "ssd/gc": set(), "ssd/ftl": {"ssd/gc"}, "fs": {"ssd"}, "fs/components": {"ssd/gc"}}
    permitted["spill"] = set()
    gc, ftl, ssd, db = (f'#include "{h}"\n' for h in ("ssd/gc/victim.h", "ssd/ftl/ftl.h", "ssd/ssd.h", "spillway/db.h"))
    assert wrong_includes("ssd", gc + ftl, permitted) == ["ssd/gc/victim.h"]
    assert wrong_includes("ssd/gc", gc + ftl + ssd, permitted) == ["ssd/ftl/ftl.h", "ssd/ssd.h"]
    assert wrong_includes("ssd/ftl", gc + ftl + ssd, permitted) == ["ssd/ssd.h"]
    assert wrong_includes("fs", gc + ftl + ssd + db, permitted) == ["spillway/db.h"]
    assert wrong_includes("fs/components/deep", gc + ftl + db, permitted) == ["ssd/ftl/ftl.h", "spillway/db.h"]


def test_a_permission_that_nothing_uses_is_seen() -> None:
    permitted = {"base": set(), "ssd": set(), "ssd/gc": set(), "device": {"base", "ssd"}, "fs": {"ssd/gc", "device"}}
    gc, drive, sizes = (f'#include "{h}"\n' for h in ("ssd/gc/block_table.h", "ssd/ssd.h", "base/spelling.h"))
    sources = [("ssd", gc), ("device", drive + gc), ("device/model", sizes), ("fs", gc)]
    used = {"base": set(), "ssd": {"ssd/gc"}, "ssd/gc": set(), "device": {"base", "ssd"}, "fs": {"ssd/gc"}}
    assert included_rows(sources, permitted) == used


SIZES = runpy.run_path(str(ROOT / "scripts" / "sizes.py"))

# What is larger than scripts/sizes.py lets it be. Whatever is split leaves its list; nothing joins one.
KNOWN_FILES: set[str] = set()
KNOWN_FUNCTIONS: set[str] = set()
KNOWN_FOLDERS: set[str] = set()


def test_files_functions_and_folders_are_small() -> None:
    assert set(SIZES["over_long_files"](NATIVE)) == KNOWN_FILES
    assert set(SIZES["over_long_functions"](NATIVE)) == KNOWN_FUNCTIONS
    assert set(SIZES["over_full_folders"](NATIVE)) == KNOWN_FOLDERS


def test_what_is_too_large_is_seen(tmp_path: Path) -> None:
    source = """namespace a {
struct A final : public B {
  explicit A(int x) : x_{x}, y_("{") {}
  std::array<int, 2> steps{1, 2};

 private:
  // {
  template <class T>
  auto least(T t)
      -> int {
    const auto of = [&] { return 1; };
    return of();
  }
};
constexpr std::array<Unit, 2> kUnits = {{{"", 1}}};
bool A::operator()(int x) const {
  return x;
}
}
"""
    assert list(SIZES["functions"](source)) == [("A", 1), ("least", 6), ("A::operator()", 3)]
    (tmp_path / "ssd").mkdir()
    for name in [f"unit{i}" for i in range(SIZES["FOLDER_UNITS"])]:
        (tmp_path / "ssd" / f"{name}.h").touch()
        (tmp_path / "ssd" / f"{name}.cc").touch()
    (tmp_path / "ssd" / "unit0.cc").write_text("\n" * SIZES["FILE_LINES"])
    (tmp_path / "ssd" / "unit1.cc").write_text("void f() {" + "\n" * (SIZES["FUNCTION_LINES"] - 1) + "}\n")
    sizes = [SIZES[f"over_{what}"] for what in ("long_files", "long_functions", "full_folders")]
    assert [find(tmp_path) for find in sizes] == [{}, {}, {}]
    (tmp_path / "ssd" / "unit0.cc").write_text("\n" * (SIZES["FILE_LINES"] + 1))
    (tmp_path / "ssd" / "unit1.cc").write_text("void f() {" + "\n" * SIZES["FUNCTION_LINES"] + "}\n")
    (tmp_path / "ssd" / "one_more.h").touch()
    found = [set(find(tmp_path)) for find in sizes]
    assert found == [{"ssd/unit0.cc"}, {"ssd/unit1.cc: f"}, {"ssd"}]


@pytest.mark.parametrize("path", tracked_files("native/ssd/*.h", "native/ssd/*.cc"), ids=name_of)
def test_drive_model_is_pure(path: Path) -> None:
    assert not impurities(path.read_text())


def test_an_impurity_is_seen() -> None:
    assert impurities("#include <chrono>\n") == ["chrono"]
    assert impurities("std::random_device source;\n") == ["random_device"]
    assert impurities("auto t = time(nullptr);\n") == ["time("]
    assert not impurities("// no <chrono>, no time()\nNanos read_time(Unit unit);\n")


def unchecked_locks(source: str) -> list[str]:
    return UNCHECKED_LOCKS.findall(without_comments(source))


@pytest.mark.parametrize("path", tracked_files("native/spill/*.h", "native/spill/*.cc"), ids=name_of)
def test_the_accelerators_locks_say_what_they_guard(path: Path) -> None:
    assert not unchecked_locks(path.read_text()), "use the classes of native/base/mutex.h"


def test_an_unchecked_lock_is_seen() -> None:
    kinds = ["mutex", "shared_mutex", "recursive_mutex", "timed_mutex", "shared_timed_mutex", "condition_variable"]
    holders = ["lock_guard", "unique_lock", "shared_lock", "scoped_lock", "condition_variable_any"]
    for name in kinds + holders:
        assert unchecked_locks(f"std::array<std::{name}, 2> x;") == [f"std::{name}"]
    assert not unchecked_locks("Mutex mutex_;  // a std::mutex\nconst MutexLock lock(mutex_, std::adopt_lock);")


def prints_and_exits(source: str) -> list[str]:
    """What a module takes from the terminal's side: libraries of it, calls that print or end the process."""
    found = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import | ast.ImportFrom):
            names = [node.module or ""] if isinstance(node, ast.ImportFrom) else [each.name for each in node.names]
            found += [name for name in names if name.split(".")[0] in {"click", "rich"}]
        elif isinstance(node, ast.Call) and ast.unparse(node.func) in {"print", "exit", "sys.exit", "os._exit"}:
            found.append(ast.unparse(node.func))
        elif isinstance(node, ast.Attribute) and ast.unparse(node) in {"sys.stdout", "sys.stderr"}:
            found.append(ast.unparse(node))
    return found


@pytest.mark.parametrize("path", tracked_files("spillway/*.py"), ids=name_of)
def test_only_cli_prints_and_exits(path: Path) -> None:
    if ROOT / "spillway" / "cli" not in path.parents:
        assert not prints_and_exits(path.read_text())


def test_a_print_and_an_exit_are_seen() -> None:
    assert prints_and_exits("import rich.table\n") == ["rich.table"]
    assert prints_and_exits("from click import echo\n") == ["click"]
    assert prints_and_exits("def f():\n    print(1)\n    sys.exit(2)\n") == ["print", "sys.exit"]
    assert prints_and_exits("sys.stderr.write('x')\n") == ["sys.stderr"]
    assert not prints_and_exits("reprint(1)\n# print(2)\n")


def test_map_matches_tree() -> None:
    named = list(map_of_architecture())
    assert [path for path in named if not (ROOT / path).exists()] == []
    directories = {Path(name_of(path)).parts[:2] for path in tracked_files()}
    top = {parts[0] for parts in directories if len(parts) > 1 and not parts[0].startswith(".")}
    layers = {"/".join(parts) for parts in directories if parts[0] == "native" and (ROOT / Path(*parts)).is_dir()}
    assert sorted((top | layers) - set(named)) == []


def test_architecture_lists_every_decision() -> None:
    listed = re.findall(r"\[(\d{4})\]\(docs/decisions/(.+?)\)", (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8"))
    assert [name for _, name in listed] == sorted(path.name for path in (ROOT / "docs" / "decisions").glob("*.md"))
    assert all(name.startswith(number) for number, name in listed)


DECISION_PARTS = ["Context", "Choice", "Consequences"]  # that each record has; others may stand between them
DECISION_LINES = 40  # a page


def missing_parts(record: str) -> list[str]:
    """What a decision record lacks: a part, its place behind the part before it, or brevity."""
    found = [re.search(rf"^\*\*{part}\.\*\*", record, re.MULTILINE) for part in DECISION_PARTS]
    places = [match.start() if match else -1 for match in found]
    missing = [part for part, at in zip(DECISION_PARTS, places, strict=True) if at < 0]
    order = [] if missing or places == sorted(places) else ["order"]
    return missing + order + (["one page"] if len(record.splitlines()) > DECISION_LINES else [])


@pytest.mark.parametrize("path", tracked_files("docs/decisions/*.md"), ids=name_of)
def test_a_decision_has_context_choice_and_consequences(path: Path) -> None:
    assert missing_parts(path.read_text()) == []


def test_a_decision_without_a_part_is_seen() -> None:
    context, choice, consequences = (f"**{part}.** Words.\n" for part in DECISION_PARTS)
    assert missing_parts(context + choice + consequences) == []
    assert missing_parts(context + choice + "The **Consequences.** are none.\n") == ["Consequences"]
    assert missing_parts(context + "**Decided.** So.\n" + consequences) == ["Choice"]
    assert missing_parts(consequences + context + choice) == ["order"]
    assert missing_parts(context + choice + consequences + "\n" * DECISION_LINES) == ["one page"]


def test_no_machine_paths() -> None:
    found = []
    for path in tracked_files():
        try:
            lines = path.read_text().splitlines()
        except UnicodeDecodeError:
            continue  # pictures
        found += [f"{name_of(path)}:{number}" for number, line in enumerate(lines, 1) if MACHINE_PATH.search(line)]
    assert found == []


def test_a_machine_path_is_seen() -> None:
    for user in ("root", "home/ada", "work"):
        assert MACHINE_PATH.search(f"state = '/{user}/drive.state'")
    assert not MACHINE_PATH.search("docs/work/notes and https://example.org/home/ada/")


@pytest.mark.parametrize("path", tracked_files("presets/*.toml", "plans/*.toml"), ids=name_of)
def test_documents_are_toml(path: Path) -> None:
    assert tomllib.loads(path.read_text())


def test_there_are_presets_and_a_quickstart() -> None:
    assert "mqsim-default.toml" in {path.name for path in tracked_files("presets/*.toml")}
    assert (ROOT / "plans" / "quickstart.toml").is_file()


@pytest.mark.parametrize("path", tracked_files("*.md"), ids=name_of)
def test_links_lead_somewhere(path: Path) -> None:
    targets = re.findall(r"\]\(([^)#\s]+)[^)]*\)", path.read_text())
    local = [target for target in targets if "://" not in target and not target.startswith("mailto:")]
    assert [target for target in local if not (path.parent / target).exists()] == []


def test_licence_is_apache() -> None:
    text = (ROOT / "LICENSE").read_text()
    assert "Apache License" in text
    assert "Version 2.0, January 2004" in text
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert "Apache-2.0" in str(project["license"])


def test_make_targets_are_those_of_the_help() -> None:
    makefile = (ROOT / "Makefile").read_text()
    phony = re.search(r"^\.PHONY: (.*)$", makefile, flags=re.MULTILINE)
    assert phony
    described = set(re.findall(r"^#: make (\w+)", makefile, flags=re.MULTILINE))
    assert described == set(phony[1].split()) - {"help"}
    assert {"demo", "test", "bench", "lint", "sanitize", "fuzz", "docs"} <= described


def test_commands_page_names_every_command() -> None:
    def paths(command: click.Command, path: str) -> Iterator[str]:
        yield path
        for name, child in getattr(command, "commands", {}).items():
            yield from paths(child, f"{path} {name}")

    page = (ROOT / "docs" / "COMMANDS.md").read_text()
    assert set(re.findall(r"^## `(.*)`$", page, flags=re.MULTILINE)) == set(paths(spillway, "spillway")), "make docs"
    said = runpy.run_path(str(ROOT / "scripts" / "docs.py"))["commands_page"]()
    assert page == said, "make docs"


def suppressed_methods(suppressions: str) -> dict[str, str]:
    """The methods of ours whose races the thread sanitizer does not report: class and name, by line."""
    lines = [line for line in suppressions.splitlines() if line.startswith("race:spillway::")]
    return {line: line.removesuffix("(").removeprefix("race:spillway::spill::") for line in lines}


def test_a_suppression_names_one_method_that_has_a_frame() -> None:
    # Without "(" it would hide every method whose name begins so; inlined, a method has no frame to be named.
    methods = suppressed_methods((ROOT / "scripts" / "tsan.suppressions").read_text())
    assert methods
    headers = "".join(path.read_text() for path in (ROOT / "native" / "spill").rglob("*.h"))
    for line, method in methods.items():
        owner, _, name = method.partition("::")
        assert line.endswith("("), line
        assert re.search(rf"\bclass {owner}\b", headers), line
        assert re.search(rf"(\[\[gnu::noinline\]\]|SPILLWAY_FRAME_FOR_TSAN) [\w:]+ {name}\(", headers), line
    of_tsan = re.findall(r"#ifdef __SANITIZE_THREAD__\n#define SPILLWAY_FRAME_FOR_TSAN (.*)\n#else", headers)
    assert of_tsan == ["[[gnu::noinline]]"]  # the suppressions are read in that build alone


def test_no_loop_goes_over_what_a_temporary_owns() -> None:
    """``for (x : *owner())`` ends the owner before the first round (until C++23): the loop reads freed memory."""
    pattern = re.compile(r"for \([^;)]* : \*[\w.:>-]+\([^()]*\)\)")
    assert pattern.search("for (const auto& one : *generations()) bytes += one->bytes();")
    folders = (ROOT / "native", ROOT / "tests" / "native", ROOT / "bench")
    sources = [path for folder in folders for path in folder.rglob("*") if path.suffix in (".c", ".cc", ".h")]
    assert len(sources) > 100
    assert [str(path) for path in sources if pattern.search(path.read_text())] == []
