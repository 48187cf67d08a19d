"""`spillway advise` and hostile users: outputs that fail, a Ctrl-C, files that cannot be simulated, odd arguments."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import fake_lsm
import pytest
from advised import DRIVE, GIB, LOAD, advice, prediction

from spillway.advise import advise
from spillway.advise.configuration import DEFAULTS, SEPARATED, Configuration
from spillway.advise.exact import exact
from spillway.advise.options_file import options_text
from spillway.advise.search import Request
from spillway.advise.verify import FIGURES, Verified
from spillway.advise.words import verified_rows
from spillway.advise.workload import Limits
from spillway.errors import Interrupted, RunFailed, SpillwayError

Document = dict[str, Any]


@pytest.fixture
def ask_command(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """A question about the made drive, answered at once."""
    monkeypatch.setattr("spillway.advise.drive.of_preset", lambda *_: DRIVE)
    monkeypatch.setattr("spillway.lsm.simulate", fake_lsm.simulate)
    monkeypatch.setattr("spillway.advise.search.SIMULATED", 12)
    return ["advise", "--preset", "made", "--data", "100GB", "--cores", "2"]


@pytest.fixture
def at_once(ask_command: list[str], monkeypatch: pytest.MonkeyPatch) -> list[str]:
    monkeypatch.setattr("spillway.advise.advise", lambda *_: advice())
    return ask_command


# ---------------------------------------------------------------- each output is made whatever becomes of the others


@pytest.mark.parametrize("broken", ["--options", "--wiredtiger", "--json"])
def test_an_output_that_fails_takes_no_other_with_it(
    broken: str, invoke: Any, at_once: list[str], tmp_path: Path
) -> None:
    flags = {"--options": tmp_path / "OPTIONS", "--wiredtiger": tmp_path / "wt", "--json": tmp_path / "a.json"}
    flags[broken] = Path("/dev/full")
    done = invoke(*at_once, *(word for pair in flags.items() for word in pair))
    assert done.code == 2 and done.err.count("\n") == 1 and "/dev/full cannot be written" in done.err
    assert "Ranked by throughput" in done.out
    for path in flags.values():
        assert path == Path("/dev/full") or path.read_text()


def test_what_cannot_be_shown_is_written(
    invoke: Any, at_once: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: Any, **__: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("spillway.cli.models.advise.out.print", refuse)
    done = invoke(*at_once, "--json", tmp_path / "a.json", "--options", tmp_path / "OPTIONS")
    assert done.code == 2 and "no space left" in done.err
    assert json.loads((tmp_path / "a.json").read_text())["ranked"] and (tmp_path / "OPTIONS").read_text()


@pytest.mark.parametrize("raised", [RunFailed, Interrupted])
def test_every_failure_is_told(
    raised: type[SpillwayError], invoke: Any, at_once: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def verify(*_: Any) -> Any:
        assert json.loads((tmp_path / "a.json").read_text())["ranked"]  # before minutes of measuring
        raise raised("it broke.")

    monkeypatch.setattr("spillway.advise.verify.verify", verify)
    done = invoke(
        *at_once, "--verify", "--out", tmp_path / "run", "--json", tmp_path / "a.json", "--options", "/dev/full"
    )
    assert done.code == raised.exit_code
    assert "it broke" in done.err and "/dev/full cannot be written" in done.err and done.err.count("\n") == 1


# ---------------------------------------------------------------- a Ctrl-C


@pytest.mark.parametrize("after", [1, 5, 40, 90, 110])
def test_what_is_simulated_at_a_ctrl_c_is_ranked(
    after: int, invoke: Any, ask_command: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    count = 0

    def simulate(asked: Document) -> Document:
        nonlocal count
        count += 1
        if count > after:
            raise Interrupted("Ended before anything was simulated.")
        return fake_lsm.simulate(asked)

    monkeypatch.setattr("spillway.lsm.simulate", simulate)
    done = invoke(*ask_command, "--json", tmp_path / "a.json", "--options", tmp_path / "OPTIONS", "--verify", "--out",
                  tmp_path / "run")  # fmt: skip
    assert done.code == 130
    assert "was ended by Ctrl-C" in done.err and done.err.count("\n") == 1
    made = json.loads((tmp_path / "a.json").read_text())
    assert made["ended"] and made["ranked"] and made["verified"] == []
    assert "Ranked by throughput" in done.out and (tmp_path / "OPTIONS").is_file()
    assert not (tmp_path / "run").exists()


def test_a_ctrl_c_before_anything_is_simulated(
    invoke: Any, ask_command: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def simulate(asked: Document) -> Document:
        raise Interrupted("Ended before anything was simulated.")

    monkeypatch.setattr("spillway.lsm.simulate", simulate)
    done = invoke(*ask_command, "--json", tmp_path / "a.json")
    assert (done.code, done.err) == (130, "spillway: Ended before anything was simulated.\n")


# ---------------------------------------------------------------- a rival that cannot be simulated


@pytest.mark.parametrize("broken", ["RocksDB's defaults", "flash configuration", "yours"])
def test_a_rival_that_is_refused_drops_its_row_alone(
    broken: str, invoke: Any, ask_command: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fanout = {"RocksDB's defaults": 10, "flash configuration": 8, "yours": 11}[broken]

    def refuse(setting: Any, path: Configuration, seeds: Any, config: Configuration) -> Any:
        if not config.direct_io and config.fanout == fanout:  # what is advised has direct I/O
            raise SpillwayError("tree.fanout is refused.")
        return exact(setting, path, seeds, config)

    path = tmp_path / "OPTIONS-1"
    path.write_text(options_text(replace(DEFAULTS, fanout=11), ""))
    monkeypatch.setattr("spillway.advise.search.exact", refuse)
    done = invoke(*ask_command, "--current", path, "--json", tmp_path / "a.json")
    assert done.code == 0, done.err
    made = json.loads((tmp_path / "a.json").read_text())
    assert list(made["refused"]) == [broken] and broken not in made["rivals"] and len(made["rivals"]) == 2
    assert "was not simulated: tree.fanout is refused." in done.out
    if broken == "yours":
        assert str(path) in done.out.replace("\n", "")


@pytest.mark.parametrize("raised", [SpillwayError, RunFailed])
def test_a_simulator_that_refuses_everything_is_an_error(raised: type[SpillwayError]) -> None:
    def simulate(asked: Document) -> Document:
        raise raised("no.")

    with pytest.raises(raised, match="no"):
        advise(Request(LOAD, Limits(memory_bytes=GIB), DRIVE, 2, simulate=simulate, simulated=4))


# ---------------------------------------------------------------- what is asked


def test_years_need_a_drives_endurance(invoke: Any, ask_command: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    unknown = replace(DRIVE, rated_pe_cycles=None, physical_bytes=None)
    monkeypatch.setattr("spillway.advise.drive.of_preset", lambda *_: unknown)
    done = invoke(*ask_command, "--years", "5")
    assert done.code == 2 and "give --tbw" in done.err and done.err.count("\n") == 1
    assert invoke(*ask_command, "--years", "5", "--mix", "get=1").code == 0
    monkeypatch.setattr("spillway.advise.drive.of_preset", lambda *_: replace(unknown, rated_bytes=1e18))
    assert invoke(*ask_command, "--years", "0.001").code == 0


@pytest.mark.parametrize("flag", ["--options", "--wiredtiger"])
def test_standard_output_is_no_place_for_a_file(
    flag: str, invoke: Any, at_once: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    done = invoke(*at_once, flag, "-")
    assert done.code == 2 and flag in done.err and done.err.count("\n") == 1
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("flag", ["--options", "--json", "--wiredtiger", "--current", "--preset", "--set"])
def test_arguments_that_are_no_text_are_one_sentence(
    flag: str, invoke: Any, at_once: list[str], tmp_path: Path
) -> None:
    others = at_once if flag != "--preset" else [at_once[0], *at_once[at_once.index("made") + 1 :]]
    done = invoke(*others, flag, f"{tmp_path}/\udcff\udc80")
    assert done.code == 2 and "udcff" in done.err and done.err.count("\n") == 1
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("value", [100, 1000])
def test_values_are_separated_from_256_bytes_on(
    value: int, invoke: Any, ask_command: list[str], tmp_path: Path
) -> None:
    place = tmp_path / "a.json"
    done = invoke(*ask_command, "--value", value, "--mix", "put=1", "--top", "100", "--memory", "8GiB", "--json", place)
    assert done.code == 0, done.err
    made = json.loads(place.read_text())
    has = any(each["configuration"]["shape"] == SEPARATED for each in made["ranked"])
    assert has == (value == 1000)


# ---------------------------------------------------------------- measured beside predicted


@pytest.mark.parametrize("rate", [None, 100.0, 1e9])
def test_a_check_holds_what_was_asked_for_against_what_was_measured(rate: float | None) -> None:
    """At a rate that the arm can take, the rate is what is predicted; what was measured is marked by its interval."""
    load = replace(LOAD, rate_ops_s=rate)
    of = prediction(load, DEFAULTS)
    most = of.throughput_ops_s.value
    expected = most if rate is None else min(rate, most)
    arm: Document = {
        "throughput_ops_s": expected, "wa_app": of.wa_app.value, "wa_device": 100 * of.wa_device.value,
        "wa_total": of.wa_total.value, "space_amplification_peak": of.held_bytes.value / 1e9, "live_user_bytes": 1e9,
        "kind_latency_us": {"update": {"p99": of.p99_us["put"].value}, "read": {"p99": 1e12}},
    }  # fmt: skip
    found = Verified("advised", DEFAULTS, of, arm, rate)
    assert found.ratio("throughput_ops_s") == pytest.approx(1.0)
    within = {name: found.is_within(name) for name in FIGURES}
    assert within == {
        "throughput_ops_s": True, "wa_app": True, "wa_device": False, "wa_total": True, "held_bytes": True,
        "p99_us.put": True, "p99_us.get": False, "p99_us.scan": None, "p99_us.rmw": None,
    }  # fmt: skip
    rows = verified_rows([found])
    asked = [name for name in within if found.expected(name) is not None]
    assert set(within) - set(asked) == {"p99_us.rmw"}
    assert [row[-1] for row in rows] == [{None: "–", True: "yes", False: "no"}[within[each]] for each in asked]
    unmeasured = Verified("advised", DEFAULTS, of, None, rate)
    assert all(row[-3:] == ("–", "–", "–") for row in verified_rows([unmeasured]))
