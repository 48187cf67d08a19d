"""What the command lines of these programs share: the drive, numbers in their bounds, and errors as one sentence."""

import argparse
import sys
from collections.abc import Callable
from pathlib import Path

from spillway.errors import SpillwayError


def parser_of(doc: str | None) -> argparse.ArgumentParser:
    """A parser that knows the drive; ``doc`` is the module's, of which the help shows the first line."""
    parser = argparse.ArgumentParser(
        description=(doc or "").partition("\n")[0], formatter_class=argparse.ArgumentDefaultsHelpFormatter
    )
    parser.add_argument("--preset", default="intel-p4510", help="the drive; `spillway ssd presets` lists them")
    parser.add_argument("--profile", type=Path, help="a directory with a profile of the preset; else it is measured")
    parser.add_argument("--fill", type=float, default=1.0, help="share of the drive that holds data, from 0 to 1")
    parser.add_argument("--seed", type=at_least(0), default=1, help="of all that is random")
    return parser


def at_least(least: int) -> Callable[[str], int]:
    """The type of an argument that is a whole number, ``least`` or more."""

    def number(text: str) -> int:
        if not (text.isascii() and text.isdigit() and len(text) < 19 and int(text) >= least):
            raise argparse.ArgumentTypeError(f"{text!r} is no whole number from {least} on")
        return int(text)

    return number


def run(main: Callable[[], None]) -> None:
    """Ends with one sentence and its exit code where ``main`` raises SpillwayError."""
    try:
        main()
    except SpillwayError as error:
        print(f"{Path(sys.argv[0]).name}: {error}", file=sys.stderr)
        sys.exit(error.exit_code)
    except KeyboardInterrupt:
        sys.exit(130)
