"""The components of the Python package: which imports which, no circles, nothing too large to read.

An import counts wherever it stands: at the top of a module, in a function, under TYPE_CHECKING, absolute or relative.
Only what a program puts together at run time (importlib) is not seen, so its use is refused.
"""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from test_house import ROOT, circles, name_of, tracked_files

PACKAGE = "spillway"
LOOSE = {"errors", "pitfalls", "quantity", "toml", "version"}  # what every component may use
FILE_LINES = 500
TEST_FILE_LINES = 800
FUNCTION_LINES = 60
COMPONENT_MODULES = 20


def modules() -> list[Path]:
    return tracked_files(f"{PACKAGE}/*.py")


def dotted(path: Path) -> str:
    """A module's name, ``spillway.plan.keys``; a package's own ends with its ``__init__``."""
    return ".".join(path.relative_to(ROOT).with_suffix("").parts)


def imported(name: str, source: str, known: set[str]) -> Iterator[str]:
    """The modules among ``known`` that the source of the module ``name`` imports; of a package its ``__init__``."""

    def module(target: str) -> str | None:
        return next((each for each in (target, f"{target}.__init__") if each in known), None)

    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from filter(None, (module(alias.name) for alias in node.names))
        elif isinstance(node, ast.ImportFrom):
            above = name.split(".")[: -node.level] if node.level else []
            target = ".".join([*above, *([node.module] if node.module else [])])
            found = [module(f"{target}.{alias.name}") for alias in node.names]
            yield from filter(None, found)
            if None in found and (package := module(target)) is not None:
                yield package  # a name that is defined there


def module_graph() -> dict[str, set[str]]:
    known = {dotted(path) for path in modules()}
    return {dotted(path): set(imported(dotted(path), path.read_text(), known)) for path in modules()}


def component_of(module: str) -> str:
    """The folder below the package, or the name of a loose module."""
    return module.split(".")[1]


def component_graph() -> dict[str, set[str]]:
    """Component → the other components that it imports; the loose modules and the package's own name are left out."""
    graph: dict[str, set[str]] = {}
    for module, used in module_graph().items():
        of = component_of(module)
        components = {component_of(each) for each in used} - LOOSE - {"__init__", of}
        if of not in LOOSE | {"__init__"}:
            graph.setdefault(of, set()).update(components)
    return graph


def permitted_imports() -> dict[str, set[str]]:
    """The table of components in ARCHITECTURE.md: component → the components that it may import."""
    rows = re.findall(rf"^\| `{PACKAGE}/(\w+)` \| (.*) \|$", (ROOT / "ARCHITECTURE.md").read_text(), flags=re.MULTILINE)
    assert len(rows) == len({component for component, _ in rows}), "a component has two rows"
    return {component: set(re.findall(r"`(\w+)`", named)) for component, named in rows}


def test_the_table_of_components_is_what_is_imported() -> None:
    """A row names no more than is used, so the table can be read for what depends on what."""
    assert permitted_imports() == component_graph()


def test_no_components_and_no_modules_go_in_a_circle() -> None:
    assert circles(component_graph()) == []
    assert circles(module_graph()) == []
    assert circles(permitted_imports()) == []


def test_loose_modules_import_only_each_other() -> None:
    graph = module_graph()
    loose = {f"{PACKAGE}.{name}" for name in LOOSE}
    assert {path.stem for path in modules() if path.parent.name == PACKAGE} == LOOSE | {"__init__"}
    assert {name: used - loose for name, used in graph.items() if name in loose and used - loose} == {}


def test_every_import_is_seen() -> None:
    known = {"spillway.__init__", "spillway.a.__init__", "spillway.a.b", "spillway.a.c", "spillway.d"}

    def seen(source: str, name: str = "spillway.a.b") -> list[str]:
        return list(imported(name, source, known))

    assert seen("import spillway.d\n") == ["spillway.d"]
    assert seen("from spillway import d\n") == ["spillway.d"]
    assert seen("from spillway.d import name\n") == ["spillway.d"]
    assert seen("from spillway.a import c, name\n") == ["spillway.a.c", "spillway.a.__init__"]
    assert seen("from . import c\n") == ["spillway.a.c"]
    assert seen("from .c import name\n") == ["spillway.a.c"]
    assert seen("from ..d import name\n") == ["spillway.d"]
    assert seen("from .c import name\n", "spillway.a.__init__") == ["spillway.a.c"]
    assert seen("def f():\n    from spillway import d\n") == ["spillway.d"]
    assert seen("if TYPE_CHECKING:\n    from spillway import d\n") == ["spillway.d"]
    assert seen("import json\nfrom pathlib import Path\n") == []


@pytest.mark.parametrize("path", modules(), ids=name_of)
def test_nothing_is_imported_at_run_time_by_a_made_up_name(path: Path) -> None:
    assert not re.search(r"\bimport_module\b|\b__import__\b|\brunpy\b", path.read_text())


def lines_of(source: str) -> int:
    return source.count("\n")


def long_functions(source: str) -> list[str]:
    """Functions of more than FUNCTION_LINES from ``def`` to their end; decorators do not count."""
    defined = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    return [node.name for node in defined if (node.end_lineno or 0) - node.lineno + 1 > FUNCTION_LINES]


def test_modules_functions_and_components_are_small() -> None:
    assert {name_of(path) for path in modules() if lines_of(path.read_text()) > FILE_LINES} == set()
    assert {f"{name_of(path)}: {name}" for path in modules() for name in long_functions(path.read_text())} == set()
    components = [path.parent for path in modules() if path.name != "__init__.py"]
    assert {name_of(component) for component in components if components.count(component) > COMPONENT_MODULES} == set()


def test_files_of_tests_are_small() -> None:
    tests = tracked_files("tests/python/*.py")
    assert {name_of(path) for path in tests if lines_of(path.read_text()) > TEST_FILE_LINES} == set()


def test_a_long_function_is_seen() -> None:
    body = "    x = 1\n"
    assert long_functions("@mark\ndef f():\n" + body * (FUNCTION_LINES - 1)) == []
    assert long_functions("def f():\n" + body * FUNCTION_LINES) == ["f"]
    assert long_functions("class A:\n    async def g(self):\n" + "        x = 1\n" * FUNCTION_LINES) == ["g"]


def silent_about_errors(source: str) -> list[str]:
    """Public functions and methods that raise an error and do not say so; those within a function are part of it."""
    found = []
    module = ast.parse(source)
    scopes: list[ast.Module | ast.ClassDef] = [module]
    scopes += [node for node in ast.walk(module) if isinstance(node, ast.ClassDef)]
    for node in (node for scope in scopes for node in scope.body):
        if isinstance(node, ast.FunctionDef) and not node.name.startswith("_"):
            raised = [each.exc for each in ast.walk(node) if isinstance(each, ast.Raise) and each.exc is not None]
            ours = [name for name in map(ast.unparse, raised) if re.match(r"(?!AssertionError)[A-Z]\w+\b", name)]
            said = ast.get_docstring(node) or ""
            if ours and "Raises" not in said:
                found.append(node.name)
    return found


@pytest.mark.parametrize("path", [path for path in modules() if path.parent.name != "cli"], ids=name_of)
def test_what_raises_says_so(path: Path) -> None:
    """The docstrings of ``cli`` are the commands' help; what a command cannot do is told on the terminal."""
    assert silent_about_errors(path.read_text()) == []


def test_a_function_that_is_silent_about_its_errors_is_seen() -> None:
    body = "    raise SpillwayError('no')\n"
    assert silent_about_errors(f"def f():\n    'It fails.'\n{body}") == ["f"]
    assert silent_about_errors(f"def f():\n    'It fails. Raises SpillwayError.'\n{body}") == []
    assert silent_about_errors(f"def _f():\n{body}def g():\n    raise AssertionError('never')\n") == []
