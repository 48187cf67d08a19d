"""A reproduction as a directory: PAPER.md, PAPER.json and one SVG for each chart."""

import json
import tempfile
from pathlib import Path

from spillway.errors import SpillwayError
from spillway.reproduce.document import Reproduction, as_document, as_markdown


def write_directory(reproduction: Reproduction, directory: Path) -> None:
    """Writes ``reproduction`` to ``directory``, which is created where it does not exist; files of the same names are
    replaced.

    All files are written to a temporary directory first, so that a failure leaves the directory as it was. Raises
    SpillwayError when ``directory`` cannot be written.
    """
    from spillway.reproduce.drawing import draw

    try:
        directory.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=directory.parent, prefix=".reproduce-") as made:
            place = Path(made)
            text = json.dumps(as_document(reproduction), indent=2, ensure_ascii=False)
            (place / f"{reproduction.paper}.json").write_text(text + "\n", encoding="utf-8")
            page = "# " + as_markdown(reproduction).removeprefix("## ")
            (place / f"{reproduction.paper}.md").write_text(page, encoding="utf-8")
            for section in reproduction.sections:
                for chart in section.charts:
                    draw(chart, place / f"{chart.name}.svg")
            for path in sorted(place.iterdir()):
                path.replace(directory / path.name)
    except OSError as error:
        raise SpillwayError(
            f"--out {directory}: {error.strerror or error}; give a directory that can be written."
        ) from error
