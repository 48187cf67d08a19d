"""The kind of a path, and its table: a run directory, a suite, a plan, a fio job file, a script, a property file."""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from spillway.errors import SpillwayError
from spillway.lint.db_bench import benches_of, lint_db_bench
from spillway.lint.fio import lint_fio
from spillway.lint.fio_jobs import Job, Option, parse_command, read_job_file
from spillway.lint.plan import lint_plan
from spillway.lint.recipe import Recipe, tool_of
from spillway.lint.run import lint_run
from spillway.lint.shell import read_commands
from spillway.lint.small_text import read_small_text
from spillway.lint.table import Linted
from spillway.lint.ycsb import is_property_file, lint_properties, lint_ycsb, parse_properties, steps_of
from spillway.suite.document import load_scaled, load_suite

FIO_SUFFIXES = (".fio", ".job", ".jobfile")
SUITE_FILES = ("suite.toml", "claims.toml")
RUN_FILES = ("manifest.json", "summary.json", "plan.toml")
KNOWN = (
    "a plan (*.toml), a run directory, a fio job file, a script that calls db_bench, YCSB or fio, a YCSB property file"
)


def lint(path_text: str, capacity: int | None = None, variables: Mapping[str, str] | None = None) -> list[Linted]:
    """The tables of what lies at the path ``subject``; of a suite one for each plan. Raises SpillwayError.

    ``capacity``: of the drive in bytes, for recipes; ``variables``: of the environment that a script or a job file runs
    in.
    """
    path = Path(path_text)
    if path.is_dir():
        return _directory(path)
    if not path.exists():
        raise SpillwayError(f"{path_text}: there is no such file or directory; lint takes {KNOWN}.")
    if path.suffix == ".toml":
        if path.name in SUITE_FILES:
            raise SpillwayError(
                f"{path_text}: this is no plan but a part of a suite; name the directory {path.parent}."
            )
        return [lint_plan(load_scaled(path, (), ()), path_text)]
    text = _text(path)
    given = dict(variables or {})
    if path.suffix in FIO_SUFFIXES or _is_job_file(text):
        return [lint_fio(path_text, read_job_file(path, given), capacity)]
    found = _commands(Recipe(path_text, read_commands(text, given), capacity, path.parent, given=given))
    if found:
        return found
    if is_property_file(text):
        return [lint_properties(path_text, parse_properties(text), capacity)]
    raise SpillwayError(f"{path_text}: nothing in it is known to lint, which takes {KNOWN}.")


def lint_command(
    tool: str, text: str, capacity: int | None = None, variables: Mapping[str, str] | None = None
) -> list[Linted]:
    """The table of the commands in ``text``, all of one ``tool``: ``db_bench``, ``ycsb`` or ``fio``. ``capacity`` and
    ``variables`` as in ``lint``. Raises SpillwayError where it has no command of that tool."""
    given = dict(variables or {})
    recipe = Recipe(f"the {tool} command", read_commands(text, given), capacity, Path(), False, given)
    found = [table for table in _commands(recipe) if table.kind == tool]
    if not found:
        raise SpillwayError(
            f'there is no {tool} command in {text[:60]!r}; write it as it is called, such as "{_example(tool)}".'
        )
    return found


def _example(tool: str) -> str:
    examples = {
        "db_bench": "db_bench --benchmarks=fillrandom --num=1000000",
        "ycsb": "ycsb load rocksdb -P workloads/workloada",
    }
    return examples.get(tool, "fio --name=test --filename=/dev/DRIVE --rw=randwrite")


def _directory(path: Path) -> list[Linted]:
    if any((path / name).exists() for name in RUN_FILES):
        return [lint_run(path)]
    if (path / "suite.toml").is_file():
        suite = load_suite(path)
        return [lint_plan(each.plan, str(path / f"{each.name}.toml")) for each in suite.plans]
    raise SpillwayError(f"{path}: there is neither a run nor a suite.toml in this directory; lint takes {KNOWN}.")


def _text(path: Path) -> str:
    text = read_small_text(path, "benchmark", f"lint takes {KNOWN}")
    if not text.strip():
        raise SpillwayError(f"{path}: it is empty; lint takes {KNOWN}.")
    return text


def _is_job_file(text: str) -> bool:
    """Sections, and options that only fio has."""
    section = re.search(r"^\s*\[[^\]\n]+\]\s*$", text, re.MULTILINE)
    options = re.search(r"^\s*(rw|readwrite|ioengine|iodepth|numjobs|time_based)\s*(=.*)?$", text, re.MULTILINE)
    return bool(section and options) and not text.startswith("#!")


def _commands(recipe: Recipe) -> list[Linted]:
    """One table for each tool that the recipe calls."""
    found = []
    if benches_of(recipe):
        found.append(lint_db_bench(recipe))
    if steps := steps_of(recipe):
        found.append(lint_ycsb(recipe, steps))
    if jobs := _fio_jobs(recipe):
        tools = [tool[0] for each in recipe.commands if (tool := tool_of(each))]
        found.append(lint_fio(recipe.name, jobs, recipe.capacity, followed=tools[-1] != "fio"))
    return found


def _fio_jobs(recipe: Recipe) -> list[Job]:
    """The jobs of the recipe's fio commands, each command behind the one before it."""
    found: list[Job] = []
    for command in recipe.commands:
        tool = tool_of(command)
        if not tool or tool[0] != "fio":
            continue
        jobs, files = parse_command(tool[1], recipe.given)
        for name in files:
            place = (recipe.directory or Path()) / name
            if place.is_file():
                jobs += read_job_file(place, recipe.given)
        for index, job in enumerate(jobs):
            wait = {"stonewall": Option("1", 0)} if index == 0 else {}
            found.append(Job(job.name, command.line if recipe.lines else 0, job.options | wait))
    return found


def lint_all(
    path_texts: Sequence[str],
    commands: Sequence[tuple[str, str]] = (),
    capacity: int | None = None,
    variables: Mapping[str, str] | None = None,
) -> list[Linted]:
    """All tables: of the paths, then of the commands (tool, text), each in their order. Raises SpillwayError."""
    found = [table for path_text in path_texts for table in lint(path_text, capacity, variables)]
    return found + [table for tool, text in commands for table in lint_command(tool, text, capacity, variables)]
