"""docs/tutorial.ipynb: it runs as it is, in virtual time, and is kept without outputs."""

import json
import os
import re
from pathlib import Path
from typing import Any

import nbclient
import nbformat
import pytest
from conftest import ROOT

TUTORIAL = ROOT / "docs" / "tutorial.ipynb"


def read_tutorial() -> Any:
    return nbformat.read(TUTORIAL, as_version=4)  # type: ignore[no-untyped-call]


def cells(notebook: Any, kind: str) -> list[Any]:
    return [cell for cell in notebook.cells if cell.cell_type == kind]


def test_it_is_kept_without_outputs() -> None:
    notebook = read_tutorial()
    nbformat.validate(notebook)
    for cell in cells(notebook, "code"):
        assert (cell.outputs, cell.execution_count) == ([], None)
    assert len({cell.id for cell in notebook.cells}) == len(notebook.cells)
    text = TUTORIAL.read_text(encoding="utf-8")
    assert text == json.dumps(json.loads(text), indent=1, ensure_ascii=False) + "\n", "as Jupyter writes it"


def test_its_links_lead_somewhere() -> None:
    notebook = read_tutorial()
    targets = [target for cell in cells(notebook, "markdown") for target in re.findall(r"\]\(([^)]+)\)", cell.source)]
    assert targets
    assert [target for target in targets if not (TUTORIAL.parent / target).exists()] == []


@pytest.fixture(scope="module")
def executed(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """The notebook as it ran in an empty directory, by this interpreter."""
    place = tmp_path_factory.mktemp("tutorial")
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("FAKE_MODE", raising=False)
        patch.setenv("IPYTHONDIR", str(place / ".ipython"))
        patch.setenv("JUPYTER_RUNTIME_DIR", str(place / ".jupyter"))
        notebook = read_tutorial()
        (place / "here").mkdir()
        client = nbclient.NotebookClient(
            notebook, timeout=300, kernel_name="python3", resources={"metadata": {"path": str(place / "here")}}
        )
        client.execute()
    return place / "here", notebook


def outputs(notebook: Any, of: str) -> list[Any]:
    """The outputs of the one cell whose source contains ``of``."""
    (cell,) = [cell for cell in cells(notebook, "code") if of in cell.source]
    return list(cell.outputs)


def text_of(output: Any) -> str:
    return str(output.text if output.output_type == "stream" else output.data["text/plain"])


@pytest.mark.native
def test_it_runs_and_answers(executed: tuple[Path, Any]) -> None:
    place, notebook = executed
    assert (place / "runs/my-drive/profile.toml").is_file()
    assert (place / "runs/layouts/summary.json").is_file()
    (said,) = outputs(notebook, "better: {better.verdict}")
    assert re.fullmatch(r"wa_total: 0\.\d\d times \(0\.\d\d to 0\.\d\d\), better: blob files\n", text_of(said))
    (same,) = outputs(notebook, "read_frame")
    assert text_of(same) == "True"
    (error,) = outputs(notebook, "SpillwayError")
    assert text_of(error).startswith("runs/layout: there is no such run directory")


@pytest.mark.native
def test_its_tables_and_charts_are_shown(executed: tuple[Path, Any]) -> None:
    _, notebook = executed
    shown = [output for cell in cells(notebook, "code") for output in cell.outputs]
    assert [output for output in shown if output.output_type == "error"] == []
    pages = [output.data["text/html"] for output in shown if "text/html" in getattr(output, "data", {})]
    assert sum("<iframe srcdoc=" in page for page in pages) == 2
    assert sum("<table" in page for page in pages) >= 6


@pytest.mark.native
def test_no_output_has_a_path_of_this_machine(executed: tuple[Path, Any]) -> None:
    place, notebook = executed
    home = os.environ.get("HOME", "/root")
    for cell in cells(notebook, "code"):
        for output in cell.outputs:
            said = json.dumps(dict(output))
            for path in (str(place), str(ROOT), home + "/", "/tmp/"):
                assert path not in said, (path, cell.source)
            assert output.get("name") != "stderr", said
