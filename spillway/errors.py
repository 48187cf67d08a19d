"""What can go wrong, as one family.

Everything below ``cli`` raises these; only ``cli`` turns one into a sentence on standard error and an exit code.
"""


class SpillwayError(Exception):
    """One sentence that names the file, the key and a remedy. The command ends with exit code 2."""

    exit_code = 2

    def go_on(self, sentence: str) -> None:
        """Appends a sentence."""
        own = str(self)
        self.args = (f"{own}{'' if own.endswith(('.', '?')) else '.'} {sentence}",)


class BadProperties(SpillwayError):
    """A property file has a value that is refused; the plan that names the file is known."""


class HostFailed(SpillwayError):
    """The request was valid, and a disk or the operating system failed it, as where a disk is full. The command ends
    with exit code 2, since the remedy is the caller's; another attempt may succeed."""


class RunFailed(SpillwayError):
    """The request was valid and the work failed. The command ends with exit code 1."""

    exit_code = 1


class DriveFull(RunFailed):
    """The work does not fit the drive, which shows only while it runs. Its remedy is other sizes, so exit code 2."""

    exit_code = 2


class Interrupted(SpillwayError):
    """Ctrl-C came before there was anything to keep. The command ends with exit code 130, as shells expect."""

    exit_code = 130
