"""`spillway spill`: what is asked of the native side, what is printed, how it ends."""

from collections.abc import Callable
from pathlib import Path

import pytest
from conftest import CONTRACT, Fake, Invoke
from jsonschema import Draft202012Validator

from spillway.errors import SpillwayError
from spillway.native.spill_store import place

Golden = Callable[[str, str], None]
MakeValidator = Callable[..., Draft202012Validator]


@pytest.fixture
def database(tmp_path: Path) -> Path:
    """A directory that looks like a database with a spill store."""
    path = tmp_path / "db"
    (path / "spill").mkdir(parents=True)
    (path / "CURRENT").touch()
    return path


def test_a_path_is_a_database_or_its_spill_directory(database: Path, tmp_path: Path, validator: MakeValidator) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    found = [
        place(database, None),
        place(database / "spill", None),
        place(elsewhere, database),
        place(elsewhere, None),
    ]
    assert found == [
        {"database": str(database)},
        {"database": str(database), "spill": str(database / "spill")},
        {"database": str(database), "spill": str(elsewhere)},
        {"spill": str(elsewhere)},
    ]
    for request in found:
        validator("spill-show.request.schema.json").validate(request)
    for request in found[:3]:
        validator("spill-drain.request.schema.json").validate(request | {"abandon": True})
    with pytest.raises(SpillwayError, match="no directory"):
        place(tmp_path / "missing", None)


def test_every_flag_arrives(fake: Fake, database: Path, tmp_path: Path, invoke: Invoke) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    assert invoke("spill", "drain", elsewhere, "--database", database, "--abandon").code == 0
    assert invoke("spill", "show", database).code == 0
    assert fake.requests() == [
        {"database": str(database), "spill": str(elsewhere), "abandon": True},
        {"database": str(database)},
    ]


@pytest.mark.parametrize("command", ["show", "drain", "check"])
def test_for_people(command: str, fake: Fake, database: Path, invoke: Invoke, golden: Golden) -> None:
    ended = invoke("spill", command, database)
    assert ended.err == ""
    golden(f"spill-{command}.txt", ended.out)


def test_abandoned_writes_are_printed(fake: Fake, database: Path, invoke: Invoke, golden: Golden) -> None:
    golden("spill-abandon.txt", invoke("spill", "drain", database, "--abandon").out)


@pytest.mark.parametrize("command", ["show", "drain", "check"])
def test_json_is_the_result(command: str, fake: Fake, database: Path, invoke: Invoke, validator: MakeValidator) -> None:
    result = invoke("spill", command, database, "--json").json()
    name = "spill-drain" if command == "drain" else "spill-show"
    validator("events.schema.json", f"{name}.result").validate(result | {"event": "result"})


def test_check_ends_with_1_where_something_is_damaged(fake: Fake, database: Path, invoke: Invoke) -> None:
    assert '"damage": [{"file"' in (CONTRACT / "examples" / "spill-show.events.jsonl").read_text()
    assert invoke("spill", "check", database).code == 1
    assert invoke("spill", "check", database, "--json").code == 1
    assert invoke("spill", "show", database).code == 0


def test_bad_input_is_one_sentence_and_2(fake: Fake, tmp_path: Path, invoke: Invoke) -> None:
    for words in (("show", tmp_path / "missing"), ("drain", tmp_path), ("check", tmp_path / "missing")):
        ended = invoke("spill", *words)
        assert ended.code == 2
        assert ended.err.startswith("spillway: ")
        assert len(ended.err.splitlines()) == 1
    assert fake.log() == []
    fake.behave("bad_input")
    assert invoke("spill", "show", tmp_path).code == 2


def test_an_unreadable_directory_is_reported(
    fake: Fake, database: Path, invoke: Invoke, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_path: Path) -> bool:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "exists", refuse)
    ended = invoke("spill", "show", database)
    assert ended.code == 2
    assert ended.err == f"spillway: {database} cannot be looked at: Permission denied; run as its owner.\n"
