"""`spillway precondition`."""

import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import click

from spillway.cli.printing import err, out, plain_table
from spillway.cli.progress import progress_bars
from spillway.errors import SpillwayError

if TYPE_CHECKING:
    from spillway.precondition import Job


@click.command("precondition")
@click.argument("target_text", metavar="DEVICE|FILE")
@click.option("--size", metavar="SIZE", help="What is written, from its start; the partition's  [default: all of it]")
@click.option("--preset", metavar="NAME", help="The drive by name; `spillway ssd presets` lists them.")
@click.option("--physical", metavar="SIZE", help="Or its flash for data, over-provisioning included.")
@click.option("--two-steps", is_flag=True, help="For fio before 3.41: once in order, then twice at random.")
@click.option(
    "--procedure",
    metavar="NAME",
    help="Of a partition: trim-partition, partition-trim, or either with -precondition behind it.",
)
@click.option("--out", "target_file", type=click.Path(path_type=Path), metavar="JOB.fio", help="Where the job goes.")
@click.option("--destroy-data", is_flag=True, help="The job may destroy what is on DEVICE or in FILE.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object: the job and what the model says.")
def precondition_command(
    target_text: str,
    size: str | None,
    preset: str | None,
    physical: str | None,
    two_steps: bool,
    procedure: str | None,
    target_file: Path | None,
    destroy_data: bool,
    as_json: bool,
) -> None:
    """Write the fio job that brings a real drive to the steady state of random writes.

    The job goes to standard output, or to JOB.fio; nothing is run, and nothing is written to DEVICE. By a drive model
    it says how far from steady it leaves the drive. One pass takes fio 3.41 (sprandom).
    """
    from spillway.precondition import Job, as_text, drive_of, parse_target, residuals_of
    from spillway.precondition.job import check
    from spillway.rundir.directory import write_text

    if procedure is not None and two_steps:
        raise SpillwayError("--procedure writes the partition in two steps already: leave out --two-steps.")
    if target_file is not None:
        _check_out(target_file, target_text)
    target = parse_target(target_text, size=size, destroy_data=destroy_data)
    drive = drive_of(target, preset, physical)
    checked = Job(target, drive, two_steps, procedure)
    check(checked)
    residuals = []
    if drive is not None and procedure in (None, "trim-partition-precondition"):
        with progress_bars() as watch:
            residuals = residuals_of(drive, watch)
    job = Job(target, drive, two_steps, procedure, residuals)
    text = as_text(job)
    if target_file is not None:
        write_text(target_file, text)
    if as_json:
        print(json.dumps(_document(job, text, target_file), indent=2, ensure_ascii=False))
    elif target_file is None:
        print(text, end="")
    else:
        _print_written(job, target_file)
    if not two_steps and procedure is None:
        _tell_of_an_old_fio()


def _tell_of_an_old_fio() -> None:
    """Of the fio on this machine, where it would refuse the job; the drive may be another machine's."""
    from spillway.precondition.job import FIRST_FIO

    fio = shutil.which("fio")
    if fio is None:
        return
    try:
        said = subprocess.run([fio, "--version"], capture_output=True, text=True, check=False, timeout=10).stdout
    except (OSError, subprocess.TimeoutExpired):
        return
    version = re.match(r"fio-(\d+)\.(\d+)", said)
    if version and tuple(map(int, version.groups())) < tuple(map(int, FIRST_FIO.split("."))):
        err.print(
            f"The fio of this machine is {said.strip().removeprefix('fio-')} and refuses sprandom: run the job with "
            f"{FIRST_FIO} or later, or say --two-steps.",
            soft_wrap=True,
        )


def _check_out(path: Path, target_text: str) -> None:
    if path.is_dir() or not path.absolute().parent.is_dir():
        raise SpillwayError(f"--out {path}: name a file in a directory that is there.")
    if path.exists() and not path.is_file():
        raise SpillwayError(f"--out {path} is no file, and the job would replace it: name a file.")
    if path.resolve() == Path(target_text).resolve():
        raise SpillwayError(f"--out {path} is what the job is to write: name another file.")


def _document(job: "Job", text: str, path: Path | None) -> dict[str, object]:
    drive = job.drive
    return {
        "target": job.target.path,
        "size_bytes": job.target.size_bytes,
        "procedure": job.procedure,
        "over_provisioning": drive and drive.over_provisioning,
        "model": drive and drive.words,
        "left": [
            {"way": each.way, "wa_device": each.wa_device, "steady": each.steady, "off": each.deviation}
            for each in job.residuals
        ],
        "file": None if path is None else str(path),
        "job": text,
    }


def _print_written(job: "Job", path: Path) -> None:
    if job.residuals:
        table = plain_table()
        for each in job.residuals:
            table.add_row(each.way, each.words)
        out.print(table)
    out.print(f"Job  {path}", soft_wrap=True)
