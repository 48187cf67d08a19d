"""A digest of the Python code that makes a run's result. The address of a cell has it beside that of spillway-native.

It is over the sources of what ``execute`` of a cell imports: another policy of `until`, another cut of the steady part
or another figure gives another result by the same plan. Reports, frames, the command line, the sweep itself and docs/
are not part of it, so that a change of these runs nothing again.
"""

import hashlib
from functools import cache
from pathlib import Path

PACKAGE = Path(__file__).parents[1]
# Of the package: components, and of `run` the modules of a single run. tests/python/test_sweep_cells.py holds the list
# to what a cell's process imports.
SOURCES = (
    *("errors.py", "quantity.py", "toml.py"),
    *("drive/*.py", "figures/*.py", "native/*.py", "plan/*.py", "rundir/*.py", "ssd/*.py", "steady/*.py"),
    *(f"run/{name}.py" for name in ("__init__", "engine_log", "execute", "failure", "host", "summary", "until")),
)


@cache
def code_sha256(package: Path = PACKAGE) -> str:
    """SHA-256 over names and contents of the sources, in hexadecimal. Raises OSError where one cannot be read."""
    whole = hashlib.sha256()
    for path in sorted(each for pattern in SOURCES for each in package.glob(pattern)):
        digest = hashlib.sha256(path.read_bytes()).hexdigest()
        whole.update(f"{path.relative_to(package).as_posix()} {digest}\n".encode())
    return whole.hexdigest()
