"""The spill store of a database: what is in it, and its rollback, through `spillway-native`."""

from pathlib import Path
from typing import Any

from spillway.errors import SpillwayError
from spillway.native.process import run_native

Document = dict[str, Any]


def place(path: Path, database: Path | None) -> Document:
    """The request's fields that say where a spill store is; ``path`` is a database or a spill directory. Raises
    SpillwayError."""
    try:
        if not path.is_dir():
            raise SpillwayError(f"{path} is no directory; give a database's directory, or its spill directory.")
        if database is not None:
            return {"database": str(database), "spill": str(path)}
        if (path / "CURRENT").exists():
            return {"database": str(path)}
        if path.name == "spill" and (path.parent / "CURRENT").exists():
            return {"database": str(path.parent), "spill": str(path)}
        return {"spill": str(path)}
    except OSError as error:
        raise SpillwayError(f"{path} cannot be looked at: {error.strerror}; run as its owner.") from error


def show(path: Path, database: Path | None = None) -> Document:
    """The generations of a spill store, with every checksum verified (contract/README.md). Changes nothing. Raises
    SpillwayError."""
    return run_native("spill-show", place(path, database))


def drain(path: Path, database: Path | None = None, abandon: bool = False) -> Document:
    """Writes what the spill store holds into its database; with ``abandon`` removes it from the spill store instead.
    Raises SpillwayError."""
    request = place(path, database)
    if "database" not in request:
        raise SpillwayError(f"{path} does not say where its database is; add --database DIRECTORY.")
    return run_native("spill-drain", request | {"abandon": abandon})
