"""Whatever the tree cites is there for a reader: codes in docs/SOURCES.md, decisions by number, files by path.

The papers that the project was written from are not in the tree; docs/SOURCES.md is, so this runs anywhere.
"""

import re
from collections.abc import Iterator
from pathlib import Path

from test_house import ROOT, name_of, tracked_files

SOURCES = ROOT / "docs" / "SOURCES.md"
DECISIONS = ROOT / "docs" / "decisions"
LETTERS = "BCKMPST"  # of documents, as the table at the top of docs/SOURCES.md has them

# A code stands alone: not a part of a word, a path, a version or a model's name (D5-P4320, C++20, gtest's T/0).
CODE = re.compile(rf"(?<![\w.+/-])[{LETTERS}][1-9]\d?(?!\w|-[A-Z]|\.\d)")
RANGE = re.compile(rf"(?<![\w.+/-])([{LETTERS}])(\d\d?)(?:-| to )\1(\d\d?)(?!\w)")
DECISION = re.compile(r"\bdecisions?[ /](\d{4})\b")
# Notes of those who wrote the project, which nobody else can read.
PRIVATE = re.compile(r"\bFACTS\b|\bLEDGER\b|\bFLASH\.md\b|\bDESIGN\.md\b|\b[Ll]edgers?\b")

# A file or folder of the tree in a page's text, whole: no pattern, no placeholder. What runs/ has is made by runs.
PATH = re.compile(r"`((?:bench|contract|docs|examples|fuzz|native|plans|presets|scripts|spillway|tests)/[\w./-]+)`")
PLACEHOLDER = re.compile(r"/(?:NAME|PLAN)\b")
PLACES = ("", "runs/", "native/spill/include/")  # that a page may name files from

# Words of the field that look like codes.
PERCENTILE = re.compile(r"\bP(?:50|75|9\d)\b")
TEXT = {".c", ".cc", ".cmake", ".csv", ".h", ".jinja", ".json", ".jsonl", ".md", ".py", ".sh", ".toml", ".txt", ""}


def resolved_codes(page: str) -> list[str]:
    """The codes that have a row of their own, in the page's order."""
    return re.findall(rf"^\| ([{LETTERS}]\d+) \| [^|]+ \| [^|]+ \|$", page, flags=re.MULTILINE)


def codes_in(text: str) -> set[str]:
    """Codes that a text cites; a range stands for every code from its first to its last."""
    found = set(CODE.findall(PERCENTILE.sub("", text)))
    for letter, first, last in RANGE.findall(text):
        found |= {f"{letter}{number}" for number in range(int(first), int(last) + 1)}
    return found


def unresolved(text: str, codes: set[str], decisions: set[str]) -> list[str]:
    """Citations of a text that lead nowhere."""
    wrong = codes_in(text) - codes
    wrong |= {f"decision {number}" for number in DECISION.findall(text) if number not in decisions}
    return sorted(wrong)


def private_sources(text: str) -> list[str]:
    return PRIVATE.findall(text)


def missing_paths(text: str, names: set[str]) -> list[str]:
    """Paths in a text that are neither files nor folders of the tree; ``names`` has both."""
    named = (path.rstrip("/") for path in PATH.findall(text) if not PLACEHOLDER.search(path))
    return sorted({path for path in named if not any(place + path in names for place in PLACES)})


def anchors_of(page: str) -> set[str]:
    """What a link may name behind # on a page: its headings as GitHub makes anchors of them, and ids of its own."""
    headings = re.findall(r"^#+ (.*)$", page, flags=re.MULTILINE)
    made = {re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-") for heading in headings}
    return made | set(re.findall(r'<a id="([^"]+)"', page))


def missing_anchors(text: str, page: Path) -> list[str]:
    """Links of a text on ``page`` to headings that the page they name does not have."""
    missing = []
    for target, anchor in re.findall(r"\]\(([^)#\s:]*)#([^)\s]+)\)", text):
        other = page.parent / target if target else page
        if other.suffix == ".md" and anchor not in anchors_of(text if other == page else other.read_text()):
            missing.append(f"{target}#{anchor}")
    return missing


def tree() -> set[str]:
    paths = [path.relative_to(ROOT) for path in tracked_files()]
    return {str(path) for path in paths} | {str(folder) for path in paths for folder in path.parents}


def decision_numbers() -> set[str]:
    return {path.name[:4] for path in tracked_files("docs/decisions/*.md")}


def texts() -> Iterator[Path]:
    """Files that people wrote; a run directory's are written by programs."""
    for path in tracked_files():
        if path.suffix in TEXT and path != Path(__file__) and path.relative_to(ROOT).parts[0] != "runs":
            yield path


def speaks_of_its_own_ledger(path: Path) -> bool:
    """The crash tests' record of what was acknowledged is a ledger, and no source."""
    return path.parent == ROOT / "tests" / "native" and path.name.startswith("crash_")


def test_every_code_has_one_row() -> None:
    codes = resolved_codes(SOURCES.read_text())
    assert codes, "docs/SOURCES.md has no rows"
    assert sorted(set(codes)) == sorted(codes), "a code has two rows"
    assert {code[0] for code in codes} == set(LETTERS)


def test_citations_lead_somewhere() -> None:
    codes, decisions = set(resolved_codes(SOURCES.read_text())), decision_numbers()
    wrong = {name_of(path): found for path in texts() if (found := unresolved(path.read_text(), codes, decisions))}
    assert not wrong


def test_no_source_is_private() -> None:
    looked_at = (path for path in texts() if not speaks_of_its_own_ledger(path))
    assert not {name_of(path): found for path in looked_at if (found := private_sources(path.read_text()))}


def test_a_citation_that_leads_nowhere_is_seen() -> None:
    codes = {"K3", "K8", "M22", "M23", "M24", "T26"}
    decisions = {"0001", "0011"}
    assert unresolved("// Source: K8, K99; T26.", codes, decisions) == ["K99"]
    assert unresolved("(M22-M24, T77)", codes, decisions) == ["T77"]
    assert unresolved("(M22-M25)", codes, decisions) == ["M25"]
    assert unresolved("`T27`", codes, decisions) == ["T27"]
    assert unresolved("C40 to C41 say", codes, decisions) == ["C40", "C41"]
    assert unresolved("docs/decisions/0099, decision 0011", codes, decisions) == ["decision 0099"]
    assert not unresolved("K8: a P99 of C++20, D5-P4320, S4610, Suite/T5, v.K7", codes, decisions)


def test_a_private_source_is_seen() -> None:
    assert private_sources("Source: FACTS on ADOC") == ["FACTS"]
    assert private_sources("see FACTS.md, LEDGER part 4a") == ["FACTS", "LEDGER"]
    assert private_sources("claims by their names in the ledger") == ["ledger"]
    assert not private_sources("ledger_.note_step(step); CrashLedger")


def test_pages_name_files_that_are_there() -> None:
    names = tree()
    pages = {name_of(page): page.read_text() for page in tracked_files("*.md")}
    pages["GLOSSARY.md"] = pages["GLOSSARY.md"].partition("\n## Renamed")[0]  # that table names what was there before
    assert not {name: found for name, text in pages.items() if (found := missing_paths(text, names))}


def test_a_path_that_leads_nowhere_is_seen() -> None:
    names = {"native/ssd", "native/ssd/ssd.h", "runs/bench/spill.json", "native/spill/include/spillway/db.h"}
    assert missing_paths("`native/ssd/gone.h` and `native/old/`", names) == ["native/old", "native/ssd/gone.h"]
    assert not missing_paths("`native/ssd/ssd.h`, `native/ssd/`, `bench/spill.json`, `spillway/db.h`", names)
    assert not missing_paths("`presets/NAME.toml`, `tests/native/<layer>_test.cc`, `native/*.h`, docs/none.md", names)


def test_links_lead_to_headings() -> None:
    pages = tracked_files("*.md")
    assert not {name_of(page): found for page in pages if (found := missing_anchors(page.read_text(), page))}


def test_a_link_to_no_heading_is_seen() -> None:
    text = "# What it is\n## `code` here\n[a](#what-it-is) [b](#code-here) [c](#gone) [d](SOURCES.md#gone)"
    assert missing_anchors(text, DECISIONS.parent / "NEW.md") == ["#gone", "SOURCES.md#gone"]


def test_a_row_is_read() -> None:
    page = "| K8 | section 5 | It comes back. |\n| code | where | what |\n| K9 | section 6 |\n"
    assert resolved_codes(page) == ["K8"]
