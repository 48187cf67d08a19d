"""All commands together, and how they end."""

import errno
import io
import logging
import os
import re
import signal
import sys
from contextlib import suppress

import click

from spillway.cli import (
    accelerate,
    compare,
    cost,
    drive,
    fill,
    lint,
    precondition,
    profile,
    repeat,
    run,
    spill,
    ssd,
    steady,
    suite,
    sustain,
)
from spillway.cli.models import advise, bufferpool, lsm
from spillway.errors import Interrupted, SpillwayError
from spillway.version import __version__

_SHOWN_DIGITS = 40  # of a number that a sentence quotes
_DIGITS = re.compile(rf"[0-9]{{{_SHOWN_DIGITS + 1},}}")
OUTPUT_ERRORS = (errno.ENOSPC, errno.EDQUOT, errno.EIO)


def main() -> None:
    """The entry point: a SpillwayError becomes one sentence and an exit code."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        # As in the background of a shell that has no job control. A SIGINT that comes then was sent to this process.
        signal.signal(signal.SIGINT, signal.default_int_handler)
    logger = logging.getLogger("spillway")
    if not logger.handlers:
        logger.addHandler(_Notes())
        logger.propagate = False
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # what the locale cannot write, such as µ, becomes a question mark
    try:
        code = spillway.main(standalone_mode=False)
        sys.stdout.flush()  # here, where what goes wrong with it can be said
        sys.exit(code if isinstance(code, int) else 0)
    except SpillwayError as error:
        _complain(str(error), error.exit_code)
    except click.exceptions.NoArgsIsHelpError as error:
        click.echo(error.ctx.get_help(), err=True)
        sys.exit(2)
    except click.ClickException as error:
        _complain(error.format_message(), 2)
    except (click.Abort, KeyboardInterrupt):
        _complain("ended by Ctrl-C.", Interrupted.exit_code)
    except BrokenPipeError:
        sys.stderr.close()  # whoever read the output has seen enough
        sys.exit(1)
    except OSError as error:
        if error.errno not in OUTPUT_ERRORS:
            raise
        _discard_output()
        _complain(
            f"what there is to say cannot be written: {(error.strerror or str(error)).lower()}; free some space.", 2
        )


def _discard_output() -> None:
    """So that the interpreter, which writes at its end what is left, does not complain."""
    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


class _Notes(logging.Handler):
    """Log records as one line each on standard error, next to the result on standard output."""

    def emit(self, record: logging.LogRecord) -> None:
        """Prints it."""
        print(f"spillway: {record.getMessage()}", file=sys.stderr)


def _complain(sentence: str, code: int) -> None:
    sentence = _DIGITS.sub(lambda found: f"{found[0][:_SHOWN_DIGITS]}…", sentence)
    print(f"spillway: {sentence}", file=sys.stderr)
    sys.exit(code)


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__, prog_name="spillway")
def spillway() -> None:
    """Log-structured key-value stores on flash: where writes stall, and what they cost the drive."""


for command in (
    run.run_command,
    run.report_command,
    run.export_command,
    steady.steady_command,
    compare.compare_command,
    cost.cost_command,
    advise.advise_command,
    fill.fill_command,
    sustain.sustain_command,
    repeat.repeat_command,
    suite.suite_command,
    suite.sweep_command,
    lint.lint_command,
    precondition.precondition_command,
    profile.profile_command,
    profile.model,
    bufferpool.bufferpool_command,
    ssd.ssd,
    lsm.lsm,
    drive.drive_command,
    spill.spill,
    accelerate.accelerate_command,
):
    spillway.add_command(command)
