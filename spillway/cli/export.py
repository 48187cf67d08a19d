"""`spillway export`."""

from pathlib import Path

import click

from spillway.cli.printing import out
from spillway.errors import SpillwayError
from spillway.quantity import nearest


@click.command("export")
@click.argument("directory", metavar="DIR", type=click.Path(path_type=Path))
@click.option(
    "--to", "target", required=True, metavar="FILE", type=click.Path(path_type=Path), help="FILE.parquet or FILE.csv."
)
@click.option("--table", metavar="NAME", help="Which of its tables  [default: the first]")
@click.option("--arm", "arms", multiple=True, metavar="NAME", help="Only rows of this arm; may be repeated.")
def export_command(directory: Path, target: Path, table: str | None, arms: tuple[str, ...]) -> None:
    """Write a table of DIR, a run, profile, sweep or suite, as Parquet or CSV.

    A run has the tables samples, arms, repetitions, phases, stalls and events; a profile samples, latency, pio, mqssd
    and model_errors; a sweep cells; a suite arms, plans and claims. Units end the names of columns. docs/NOTEBOOKS.md
    has them all. It takes pandas and pyarrow: pip install 'spillway[frames]'.
    """
    from spillway.frames.directory import read
    from spillway.frames.files import check_ending, write_frame

    check_ending(target, "--to")
    found = read(directory)
    name = table or found.tables[0]
    if name not in found.tables:
        raise SpillwayError(
            f"--table {name}: {directory} has no such table{nearest(name, found.tables)} There are: "
            f"{', '.join(found.tables)}."
        )
    frame = getattr(found, name)
    for arm in arms:
        if "arm" not in frame or arm not in set(frame["arm"]):
            known = list(dict.fromkeys(frame["arm"])) if "arm" in frame else []
            raise SpillwayError(f"--arm {arm}: the table {name} of {directory} has no such arm{nearest(arm, known)}")
    if arms:
        frame = frame[frame["arm"].isin(list(arms))]
    write_frame(frame, target, key="--to")
    out.print(f"Table  {name}, {len(frame):,} rows, {len(frame.columns)} columns\nFile   {target}", soft_wrap=True)
