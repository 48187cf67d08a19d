"""The `spillway` command: parses and prints; nothing else does. Each group of commands has a file here."""

import sys


def main() -> None:
    """The entry point. The commands are imported inside, so that a Ctrl-C meanwhile is reported in one sentence too."""
    try:
        from spillway.cli.program import main as program

        program()
    except KeyboardInterrupt:
        print("spillway: ended by Ctrl-C.", file=sys.stderr)
        sys.exit(130)  # Interrupted.exit_code, in a module that may not have been read yet
