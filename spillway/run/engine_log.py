"""The end of the log that an engine writes (RocksDB's and LevelDB's ``LOG``): kept of a run that failed, because the
engine's directory is removed."""

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from spillway.errors import DriveFull, Interrupted, SpillwayError

LOG = "LOG"  # in the engine's directory
KEPT = "engine.log"  # in the directory of the arm or of the preparation
MOST_BYTES = 64 * 1024
NO_SPACE = b"no space on the drive"  # of a write that the emulated drive refused: native/fs/drive_space.cc


@dataclass
class EngineLog:
    """The log of one run, whose files are in ``directory``. A full drive says all that there is to say by itself."""

    directory: Path
    _data: Path = Path()  # the engine's directory, which is gone when a failure is told
    _tail: bytes = b""

    @contextmanager
    def kept(self, data: Path) -> Iterator[None]:
        """What fails in the block leaves the end of the log in ``data`` in the run's directory."""
        try:
            yield
        except (Interrupted, DriveFull):
            raise
        except SpillwayError:
            self._data, tail = data, _tail(data / LOG)
            with suppress(OSError):  # a log that is lost is not to hide why the run failed
                if tail:
                    (self.directory / KEPT).write_bytes(tail)
                    self._tail = tail
            raise

    def named(self, error: SpillwayError) -> SpillwayError:
        """The same error with the file that was kept, from the run directory on; itself where none was."""
        if not self._tail:
            return error
        said = str(error).replace(str(self._data), "the database").rstrip(".")
        place = Path(*self.directory.parts[-2:]) / KEPT
        full = ", which tells of no space on the drive" if NO_SPACE in self._tail else ""
        return type(error)(f"{said}. The end of the engine's log is {place}{full}.")


def _tail(log: Path) -> bytes:
    """The last lines of a file, at most MOST_BYTES; none where it cannot be read."""
    with suppress(OSError), log.open("rb") as file:
        start = max(0, file.seek(0, os.SEEK_END) - MOST_BYTES)
        file.seek(start)
        tail = file.read(MOST_BYTES)
        return tail[tail.find(b"\n") + 1 :] if start else tail
    return b""
