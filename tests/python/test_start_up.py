"""What is imported before anything is asked for: neither the command line nor `import spillway` waits for pandas."""

import json
import pkgutil
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import ROOT

import spillway
import spillway.frames
import spillway.models

# Libraries that take longer to import than a short command takes.
SLOW = {"pandas", "pyarrow", "bokeh", "matplotlib", "scipy", "numpy", "IPython", "nbclient"}


def imported_by(code: str) -> set[str]:
    script = (
        f"import json, sys\nbefore = set(sys.modules)\n{code}\nprint(json.dumps(sorted(set(sys.modules) - before)))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, cwd=ROOT)
    return set(json.loads(done.stdout.splitlines()[-1]))


def libraries(modules: set[str]) -> set[str]:
    return {name.partition(".")[0] for name in modules}


def test_import_spillway_imports_nothing_but_the_version() -> None:
    ours = {name for name in imported_by("import spillway") if name.partition(".")[0] == "spillway"}
    assert ours == {"spillway", "spillway.version"}


def test_the_error_and_the_models_take_no_pandas() -> None:
    assert not libraries(imported_by("import spillway\nspillway.SpillwayError")) & SLOW
    found = imported_by("import spillway\nspillway.models.mqssd.page_cost_us(100, 80, 10)")
    assert libraries(found) & SLOW <= {"numpy"}
    assert "spillway.models.btree" not in found, "each model is read when it is used"


@pytest.mark.parametrize("words", [["--help"], ["export", "--help"], ["run", "--help"], ["ssd", "presets"]])
def test_help_imports_nothing_slow(words: list[str]) -> None:
    code = f"import sys\nsys.argv = ['spillway', *{words}]\nfrom spillway.cli import main\n"
    found = imported_by(code + "try:\n    main()\nexcept SystemExit:\n    pass")
    assert libraries(found) & {"pandas", "pyarrow", "bokeh", "matplotlib", "IPython", "nbclient"} == set()
    assert not {name for name in found if name.startswith("spillway.frames")}


def test_every_public_name_is_there_and_is_completed() -> None:
    assert set(spillway.__all__) <= set(dir(spillway))
    for name in spillway.__all__:
        assert getattr(spillway, name) is not None, name
    assert set(spillway.frames.__all__) - {"Frames"} == set(spillway.__all__) - {
        "SpillwayError",
        "__version__",
        "models",
    }
    with pytest.raises(AttributeError, match="has no attribute 'read_runs'"):
        _ = spillway.read_runs


def test_every_model_is_reached_from_one_import() -> None:
    folder = Path(spillway.models.__file__).parent
    modules = {each.name for each in pkgutil.iter_modules([str(folder)])} - {"arrays"}
    assert modules <= set(spillway.models.__all__)
    for name in spillway.models.__all__:
        assert getattr(spillway.models, name) is not None
    for name in modules:
        assert getattr(spillway.models, name).__doc__, "help() says what it is"
    with pytest.raises(AttributeError, match="has no attribute 'ssd'"):
        _ = spillway.models.ssd
