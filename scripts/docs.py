"""Writes docs/COMMANDS.md, what every command of `spillway` says about itself. Run it with `make docs`."""

from collections.abc import Iterator
from pathlib import Path

import click

from spillway.cli import spillway

COMMANDS = Path(__file__).resolve().parents[1] / "docs" / "COMMANDS.md"


def pages(command: click.Command, name: str, parent: click.Context | None = None) -> Iterator[tuple[str, str]]:
    """The command's own path and help, then those of its subcommands."""
    context = click.Context(command, info_name=name, parent=parent, terminal_width=100, **command.context_settings)
    yield context.command_path, command.get_help(context)
    if isinstance(command, click.Group):
        for child in command.list_commands(context):
            found = command.get_command(context, child)
            if found is not None and not found.hidden:
                yield from pages(found, child, context)


def commands_page() -> str:
    """The whole page as Markdown."""
    lines = ["# Commands", "", "Made by `make docs` from the commands' own help.", ""]
    for path, text in pages(spillway, "spillway"):
        lines += [f"## `{path}`", "", "```", text, "```", ""]
    return "\n".join(line.rstrip() for line in "\n".join(lines).splitlines()) + "\n"


if __name__ == "__main__":
    COMMANDS.write_text(commands_page())
    print(COMMANDS.relative_to(COMMANDS.parents[1]))
