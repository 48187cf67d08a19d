"""What can go wrong, as one family.

Everything below ``cli`` raises these; only ``cli`` turns one into a sentence on standard error and an exit code.
"""


class SpillwayError(Exception):
    """One sentence that names the file, the key and the mend. The command ends with exit code 2."""

    exit_code = 2

    def go_on(self, sentence: str) -> None:
        """Puts another sentence behind its own."""
        own = str(self)
        self.args = (f"{own}{'' if own.endswith(('.', '?')) else '.'} {sentence}",)


class BadProperties(SpillwayError):
    """A property file says what cannot be meant; the plan that it belongs to is known."""


class RunFailed(SpillwayError):
    """The request was right and the work failed all the same. The command ends with exit code 1."""

    exit_code = 1


class DriveFull(RunFailed):
    """What was asked for does not fit the drive, which shows only under way: sizes to mend, so exit code 2."""

    exit_code = 2


class Interrupted(SpillwayError):
    """Ctrl-C came before there was anything to keep. The command ends with exit code 130, as shells expect."""

    exit_code = 130
