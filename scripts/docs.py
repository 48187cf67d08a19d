"""Writes the pages of docs/ that are generated. Run it with `make docs`.

docs/COMMANDS.md is what every command of `spillway` says about itself; docs/REPRODUCED.md holds the papers' tables and
figures beside what follows from their data, with some of the charts in docs/reproduced/; docs/RECOVERED.md holds what
the papers measured on their drives beside what is measured on the presets. The list of statistics in
docs/LIBRARY.md and spillway/rundir/statistics.py are made from native/spill/include/spillway/statistics.h.
"""

import json
import re
from collections.abc import Iterator
from pathlib import Path

import click

from spillway.cli.program import spillway
from spillway.reproduce import PAPERS, reproduce
from spillway.reproduce.document import TOLERANCE, as_markdown
from spillway.reproduce.recover import recovered_page

DOCS = Path(__file__).resolve().parents[1] / "docs"
COMMANDS = DOCS / "COMMANDS.md"
REPRODUCED = DOCS / "REPRODUCED.md"
RECOVERED = DOCS / "RECOVERED.md"
LIBRARY = DOCS / "LIBRARY.md"
STATISTICS_MODULE = DOCS.parent / "spillway" / "rundir" / "statistics.py"
STATISTICS = DOCS.parent / "native" / "spill" / "include" / "spillway" / "statistics.h"
PICTURES = DOCS / "reproduced"
SHOWN = ("mqssd-2", "mqssd-3", "mqssd-4", "pio-7")  # the charts that a table does not replace


def pages(command: click.Command, name: str, parent: click.Context | None = None) -> Iterator[tuple[str, str]]:
    """The command's own path and help, then those of its subcommands."""
    context = click.Context(command, info_name=name, parent=parent, terminal_width=100, **command.context_settings)
    yield context.command_path, command.get_help(context)
    if isinstance(command, click.Group):
        for child in command.list_commands(context):
            found = command.get_command(context, child)
            if found is not None and not found.hidden:
                yield from pages(found, child, context)


def statistics() -> list[tuple[str, str, str]]:
    """Kind (COUNT, GAUGE, FLAG), name and text of each statistic, in the order of their table."""
    rows = re.findall(
        r'^  (COUNT|GAUGE|FLAG)\((\w+),((?:[ \\\n]*"[^"]*")+)\)', STATISTICS.read_text(), flags=re.MULTILINE
    )
    return [(kind, name, "".join(re.findall(r'"([^"]*)"', text))) for kind, name, text in rows]


def causes() -> dict[str, tuple[str, str]]:
    """Statistic → the statistic that it is a part of, and the cause."""
    rows = re.findall(r"^  PART\((\w+), (\w+), cause, (\w+)\)", STATISTICS.read_text(), flags=re.MULTILINE)
    return {name: (whole, cause) for name, whole, cause in rows}


def spill_metrics() -> Iterator[tuple[str, str, str, str]]:
    """Statistic, its metric for Prometheus, the label ``cause`` or "", and the metric's help text. A statistic with
    parts is shown by them. The rule is that of native/spill/report/prometheus.cc."""
    parts = causes()
    texts = {name: text for _, name, text in statistics()}
    wholes = {whole for whole, _ in parts.values()}
    for kind, name, _ in statistics():
        whole, cause = parts.get(name, (name, ""))
        if name not in wholes:
            metric = "spillway_" + re.sub("_us$", "_seconds", whole) + ("_total" if kind == "COUNT" else "")
            yield name, metric, cause, texts[whole]


def statistics_module() -> str:
    """spillway/rundir/statistics.py, whole."""
    names = "".join(f'    "{name}",\n' for kind, name, _ in statistics() if kind == "COUNT")
    metrics = "".join(f"    {_tuple(row)},\n" for row in spill_metrics())
    return f'''"""Statistics of a spill store: the counts, which add up over intervals, and what each is for Prometheus.

Made by `make docs` from native/spill/include/spillway/statistics.h, which says what each of them is.
"""
# ruff: noqa: E501

SPILL_COUNTS = (
{names})

# Statistic, metric, value of the label "cause" if it has one, help text.
SPILL_METRICS = (
{metrics})
'''


def _tuple(row: tuple[str, ...]) -> str:
    """As ruff formats it."""
    words = [json.dumps(each, ensure_ascii=False) for each in row]
    line = f"({', '.join(words)})"
    if len(line) + 5 <= 120:
        return line
    return "(\n" + "".join(f"        {word},\n" for word in words) + "    )"


def library_page() -> str:
    """docs/LIBRARY.md with its list of statistics, between two markers, made anew."""
    lines = ["| property | meaning |", "|---|---|"]
    for _, name, text in statistics():
        lines.append(f"| `{re.sub('_us$', '_micros', name).replace('_', '-')}` | {text} |")
    before, _, rest = LIBRARY.read_text().partition("<!-- statistics -->")
    after = rest.partition("<!-- /statistics -->")[2]
    return "\n".join([f"{before}<!-- statistics -->", *lines, f"<!-- /statistics -->{after}"])


def commands_page() -> str:
    """The whole page as Markdown."""
    lines = ["# Commands", "", "Made by `make docs` from the commands' own help.", ""]
    for path, text in pages(spillway, "spillway"):
        lines += [f"## `{path}`", "", "```", text, "```", ""]
    return "\n".join(line.rstrip() for line in "\n".join(lines).splitlines()) + "\n"


def reproduced_page() -> str:
    """The papers as Markdown."""
    opening = f"""# The papers, made again

`make docs` writes this page from `spillway model reproduce`, which reads the papers' printed tables and figures
(`spillway/reference`) and measures nothing. Each published figure is compared with the one that follows from the
paper's own data. The verdict is *agrees* within {100 * TOLERANCE:g} % of the figure or range, *differs* with the code
of the erratum if one is known ([SOURCES.md](SOURCES.md#t-errors-and-gaps-in-the-papers)), or *open* if the paper does
not give the data. A *misprint* is a symbol that the paper itself contradicts; it is read, not computed.
`spillway model reproduce mqssd --out DIR` writes all charts and their points.

"""
    return opening + "\n".join(as_markdown(reproduce(paper), PICTURES.name, SHOWN) for paper in PAPERS)


def write_pictures() -> None:
    """The charts that the page shows."""
    from spillway.reproduce.drawing import draw

    PICTURES.mkdir(exist_ok=True)
    charts = [chart for paper in PAPERS for section in reproduce(paper).sections for chart in section.charts]
    for chart in charts:
        if chart.name in SHOWN:
            draw(chart, PICTURES / f"{chart.name}.svg")


if __name__ == "__main__":
    COMMANDS.write_text(commands_page())
    REPRODUCED.write_text(reproduced_page())
    RECOVERED.write_text(recovered_page())
    LIBRARY.write_text(library_page())
    STATISTICS_MODULE.write_text(statistics_module())
    write_pictures()
    for page in (COMMANDS, REPRODUCED, RECOVERED, LIBRARY, STATISTICS_MODULE):
        print(page.relative_to(DOCS.parent))
