"""Runs commands beside each other: where one waits, or uses one core, another computes.

    python3 scripts/together.py COMMAND...

Each command is one word, for the shell. Output reads as if they ran one after the other: the first one's comes as it is
made, then the next one's from its beginning and as it goes on. All run to their end. Exit code 1 where any failed.
"""

import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import IO

POLL_S = 0.2


def copy_new(output: IO[bytes]) -> None:
    """Prints what was written since the last call."""
    while part := output.read(1 << 16):
        sys.stdout.buffer.write(part)
    sys.stdout.buffer.flush()


def follow(process: "subprocess.Popen[bytes]", output: Path) -> None:
    """Prints the output of a process until it has ended."""
    with output.open("rb") as file:
        while process.poll() is None:
            copy_new(file)
            time.sleep(POLL_S)
        copy_new(file)


def start(command: str, output: Path) -> "subprocess.Popen[bytes]":
    """The process of a command that writes to a file."""
    with output.open("wb") as sink:
        return subprocess.Popen(["sh", "-c", command], stdin=subprocess.DEVNULL, stdout=sink, stderr=sink)


def main(commands: list[str]) -> int:
    """The exit code."""
    with tempfile.TemporaryDirectory() as directory:
        for command in commands:
            print(f"+ {command}", flush=True)
        outputs = [Path(directory, str(number)) for number in range(1, len(commands))]
        processes = [subprocess.Popen(["sh", "-c", commands[0]])]
        processes += [start(command, output) for command, output in zip(commands[1:], outputs, strict=True)]
        try:
            processes[0].wait()
            for process, output in zip(processes[1:], outputs, strict=True):
                follow(process, output)
        except KeyboardInterrupt:  # the terminal has told the commands too
            for process in processes:
                process.wait()
            return 130
    failed = [command for command, process in zip(commands, processes, strict=True) if process.returncode != 0]
    for command in failed:
        print(f"failed: {command}", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
