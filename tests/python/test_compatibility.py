"""docs/COMPATIBILITY.md: every format has a test that holds what the page says of it."""

import re
from collections.abc import Iterator
from pathlib import Path

from conftest import ROOT

PAGE = ROOT / "docs" / "COMPATIBILITY.md"
TESTS = {path.name: path for path in [*(ROOT / "tests/native").iterdir(), *(ROOT / "tests/python").iterdir()]}


def rows() -> Iterator[tuple[str, list[str]]]:
    """What each row of the page's table is about, with the tests that it names."""
    for line in PAGE.read_text().splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if line.startswith("| ") and len(cells) == 4 and cells[0] != "what":
            yield cells[0], re.findall(r"`([^`]+)`", cells[3])


def has_test(path: Path, name: str) -> bool:
    """Whether a file of tests has a test of that name."""
    pattern = rf"^def {name}\(" if path.suffix == ".py" else rf"^TEST(?:_F|_P)?\(\w+, {name}\)"
    return bool(re.search(pattern, path.read_text(), flags=re.MULTILINE))


def test_every_format_has_the_tests_that_the_page_names() -> None:
    found = dict(rows())
    assert len(found) > 10
    for what, tests in found.items():
        assert tests, what
        for test in tests:
            file, _, name = test.partition(": ")
            assert file in TESTS, f"{what}: {test}"
            assert not name or has_test(TESTS[file], name), f"{what}: {test}"


def test_a_test_that_is_not_there_is_seen() -> None:
    assert has_test(Path(__file__), "test_a_test_that_is_not_there_is_seen")
    assert not has_test(Path(__file__), "test_a_test")
    assert not has_test(TESTS["spill_formats_test.cc"], "NameOf")
