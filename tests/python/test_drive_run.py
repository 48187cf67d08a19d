"""Real drives: tools that answer and that fail, the command, and runs on plain directories."""

import json
import os
import re
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import drive_documents as docs
import pytest
from conftest import Fake, Invoke
from drive_documents import GIB, MIB, attribute, smartctl
from jsonschema import Draft202012Validator

from spillway.drive import blocks, tools
from spillway.drive.blocks import Drive
from spillway.drive.reading import Counter, Reading

Document = dict[str, Any]


NVME = Drive("nvme0n1", Path("stat"), 1, "INTEL SSDPE", "nvme")
SATA = Drive("sda", Path("stat"), 1, "INTEL SSDSC2KW256G8", "ata")


@pytest.fixture
def tool(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Puts a program on an otherwise empty PATH."""
    place = tmp_path / "bin"
    place.mkdir()
    monkeypatch.setenv("PATH", str(place))

    def put(name: str, script: str) -> None:
        path = place / name
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(path.stat().st_mode | stat.S_IXUSR)

    return put


def answering(**logs: Document) -> str:
    """A shell script that prints the document whose name is among its arguments."""
    cases = "\n".join(f"*{name.replace('_', '-')}*) echo '{json.dumps(log)}';;" for name, log in logs.items())
    return f'case "$*" in\n{cases}\n*) echo "this drive does not have that log" >&2; exit 1;;\nesac'


def test_the_ocp_log_is_read_after_the_health_log(tool: Any) -> None:
    tool("nvme", answering(ocp=docs.OCP_V2, smart_log=docs.NVME_HEALTH))
    found = tools.read_drive(NVME)
    assert found.nand is not None
    assert found.nand.total_bytes == 7_680_000_000
    assert found.host is not None
    assert len(found.logs) == 2
    assert found.model == "INTEL SSDPE"


def test_the_vendors_log_is_read_where_there_is_no_ocp_log(tool: Any) -> None:
    tool("nvme", answering(intel=docs.INTEL, smart_log=docs.NVME_HEALTH))
    found = tools.read_drive(NVME)
    assert found.nand is not None
    assert found.nand.unit_bytes == 32 * MIB


def test_a_drive_that_has_only_a_health_log_is_unknown(tool: Any) -> None:
    tool("nvme", answering(smart_log=docs.NVME_HEALTH))
    found = tools.read_drive(NVME)
    assert not found.reports_nand
    assert found.host is not None
    assert "no count of NAND bytes" in found.why_unknown


def test_an_empty_ocp_log_is_no_count_and_the_vendors_is_read(tool: Any) -> None:
    empty = {"physical_media_units_written": {"hi": 0, "lo": 0}}
    tool("nvme", answering(ocp=empty, intel=docs.INTEL, smart_log=docs.NVME_HEALTH))
    found = tools.read_drive(NVME)
    assert found.nand is not None
    assert found.nand.total_bytes == 300 * 32 * MIB
    tool("nvme", answering(ocp=empty, smart_log=docs.NVME_HEALTH))
    assert not tools.read_drive(NVME).reports_nand


@pytest.mark.parametrize("option", ["-f", "-o"])
def test_microns_log_is_read_with_the_option_of_each_nvme_cli(option: str, tool: Any) -> None:
    tool(
        "nvme",
        f"""case "$*" in
        micron*" {option} json") echo '{json.dumps(docs.MICRON_D0)}';;
        smart-log*) echo '{json.dumps(docs.NVME_HEALTH)}';;
        *) echo '{{"error": "Invalid argument"}}'; exit 1;;
        esac""",
    )
    found = tools.read_drive(Drive("nvme0n1", Path("stat"), 1, "Micron_7450_MTFDKCC960TFR", "nvme"))
    assert found.nand is not None
    assert found.nand.total_bytes == 0x1C9C38000


def test_smartctl_serves_where_nvme_is_not_installed(tool: Any) -> None:
    tool("smartctl", answering(dev=smartctl("X") | {"nvme_smart_health_information_log": docs.NVME_HEALTH}))
    found = tools.read_drive(NVME)
    assert found.host is not None


@pytest.mark.parametrize(
    ("script", "why"),
    [
        ('echo "Permission denied" >&2; exit 1', "root"),
        ("exit 3", "it said nothing"),
        ("echo this is no JSON", "not JSON"),
        ("kill -9 $$", "it said nothing"),
        (f"echo '{json.dumps(docs.refused('open failed: Permission denied'))}'; exit 2", "root"),
    ],
)
def test_a_tool_that_fails_is_a_reason_and_no_failure(tool: Any, script: str, why: str) -> None:
    tool("smartctl", script)
    found = tools.read_drive(SATA)
    assert not found.reports_nand
    assert why in found.why_unknown


def test_a_tool_that_does_not_answer_times_out(tool: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tools, "TIMEOUT_S", 0.1)
    tool("smartctl", "exec /bin/sleep 60")
    assert "did not answer" in tools.read_drive(SATA).why_unknown


def test_without_tools_it_says_which_package_brings_them(tool: Any) -> None:
    assert "smartmontools" in tools.read_drive(SATA).why_unknown
    assert "nvme-cli" in tools.read_drive(NVME).why_unknown


def test_a_virtual_machines_drive_is_not_read(tool: Any) -> None:
    tool("smartctl", "echo asked >&2; exit 9")
    assert "virtual machine" in tools.read_drive(Drive("vda", Path("stat"), 1, "", "virtual")).why_unknown


# --- The command, and a run


def test_a_saved_log_is_shown(tmp_path: Path, invoke: Invoke) -> None:
    log = tmp_path / "log.json"
    rows = attribute(241, "Host_Writes_32MiB", 640), attribute(249, "NAND_Writes_1GiB", 30)
    log.write_text(json.dumps(smartctl("INTEL SSDSC2KW256G8", *rows)))
    ended = invoke("drive", "--from", log)
    assert (ended.code, ended.err) == (0, "")
    assert "30.0 GiB, by attribute 249 NAND_Writes_1GiB in steps of 1.0 GiB" in ended.out
    found = invoke("drive", "--from", log, "--json").json()["drives"][0]
    assert found["wa_device_of_its_life"] == pytest.approx(30 * GIB / (640 * 32 * MIB))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (json.dumps(smartctl("Unheard Of 1TB", attribute(1, "Raw_Read_Error_Rate", 0))), "no attribute of Unheard Of"),
        # 241 is in every vendor's log, and smartctl names it for all of them.
        (json.dumps(smartctl("Unheard Of 1TB", attribute(241, "Total_LBAs_Written", 9))), "no attribute of Unheard Of"),
        ('{"ScaleFlux Smart log": "x", "Device stats": {}}', "not published"),
        ('{"error": "Permission denied"}', "take root"),
        ('{"some": "log"}', "not known here"),
        ("no json", "this is not JSON"),
        (None, "cannot be read"),
    ],
)
def test_a_log_of_an_unknown_vendor_is_one_sentence(
    text: str | None, said: str, tmp_path: Path, invoke: Invoke
) -> None:
    log = tmp_path / "log.json"
    if text is not None:
        log.write_text(text)
    ended = invoke("drive", "--from", log)
    assert (ended.code, ended.out) == (2, "")
    assert said in ended.err
    assert ended.err.count("\n") == 1


@pytest.mark.parametrize(
    "document",
    [smartctl("Samsung SSD 870 EVO 1TB", attribute(241, "Total_LBAs_Written", 9)), docs.NVME_HEALTH],
)
def test_a_drive_without_nand_counts_has_an_unknown_wa_device(
    document: Document, tmp_path: Path, invoke: Invoke
) -> None:
    log = tmp_path / "log.json"
    log.write_text(json.dumps(document))
    ended = invoke("drive", "--from", log)
    assert ended.code == 0
    assert re.search(r"wa_device of its life +unknown", ended.out)
    found = invoke("drive", "--from", log, "--json").json()["drives"][0]
    assert found["wa_device_of_its_life"] is None
    assert found["why_unknown"]


@pytest.mark.parametrize("arguments", [(), ("/", "--from", "x")])
def test_a_path_or_a_log_and_not_both(arguments: tuple[str, ...], invoke: Invoke) -> None:
    ended = invoke("drive", *arguments)
    assert ended.code == 2
    assert "give one of them" in ended.err


@pytest.mark.reports
def test_a_run_on_a_directory_says_why_wa_device_is_unknown(
    fake: Fake, plan_file: Path, tmp_path: Path, invoke: Invoke, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("spillway.drive.watch.drives_under", lambda path: blocks.Under(why_none="it lies on the moon"))
    place = tmp_path / "place"
    place.mkdir()
    out = tmp_path / "run"
    on = ("--set", "drive.kind=directory", "--set", f"drive.path={place}", "--set", "drive.preset=", "--out", out)
    ended = invoke("run", plan_file, *on)
    assert ended.code == 0, ended.err
    arm = json.loads((out / "summary.json").read_text())["arms"]["small"]
    assert arm["wa_device"] is arm["wa_total"] is arm["nand_bytes_programmed"] is None
    assert arm["drive"]["why_unknown"] == "it lies on the moon"
    assert "it lies on the moon" in arm["standing"]["words"]
    assert "wa_device unknown" in ended.out
    assert "it lies on the moon" in (out / "report.html").read_text()


def test_a_drive_with_nand_counts_has_a_wa_device_from_bytes(
    fake: Fake, plan_file: Path, tmp_path: Path, invoke: Invoke, monkeypatch: pytest.MonkeyPatch
) -> None:
    counters = tmp_path / "stat"
    counters.write_text("1 0 0 0 1 0 0 0 0 0 0\n")
    drive = Drive("sda", counters, 10**12, "M", "ata")
    monkeypatch.setattr("spillway.drive.watch.drives_under", lambda path: blocks.Under((drive,)))
    readings = iter([Reading("M", ("log",), nand=Counter("c", count, MIB), percentage_used=3) for count in (7, 4007)])
    monkeypatch.setattr("spillway.drive.watch.read_drive", lambda drive: next(readings))
    place = tmp_path / "place"
    place.mkdir()
    out = tmp_path / "run"
    on = ["--set", "drive.kind=directory", "--set", f"drive.path={place}", "--set", "drive.rated_writes=600TB"]
    ended = invoke("run", plan_file, *on, "--out", out)
    assert ended.code == 0, ended.err
    assert fake.requests()[-1]["target"]["counters"] == [str(counters)]
    arm = json.loads((out / "summary.json").read_text())["arms"]["small"]
    assert arm["nand_bytes_programmed"] == {"all": 4000 * MIB}
    assert arm["wa_device"] == 4000 * MIB / arm["host_bytes_written"]
    assert arm["wa_total"] == pytest.approx(arm["wa_app"] * arm["wa_device"])
    low, high = arm["drive"]["wa_device_interval"]
    assert low < arm["wa_device"] < high
    assert arm["drive"]["why_unknown"] is None
    assert arm["lifetime"]["percentage_used"] == 3
    assert arm["lifetime"]["years_by"] == "rated host bytes"
    assert arm["lifetime"]["capacity_bytes"] == 10**12
    assert "unknown" not in ended.out


def test_a_run_asks_for_an_estimate_by_its_own_drive(
    fake: Fake, plan_file: Path, tmp_path: Path, invoke: Invoke, validator: Callable[..., Draft202012Validator]
) -> None:
    place = tmp_path / "place"
    place.mkdir()
    on = ["--set", "drive.kind=directory", "--set", f"drive.path={place}"]
    on += ["--set", "drive.estimate.preset=quickstart", "--set", "drive.estimate.capacity=1GiB"]
    assert invoke("run", plan_file, *on, "--out", tmp_path / "run").code == 0
    validator("run.request.schema.json").validate(fake.requests()[-1])
    estimate = fake.requests()[-1]["target"]["estimate"]
    assert estimate["drive"]["preset"] == "quickstart"
    assert estimate["drive"]["set"] == {"capacity.capacity_bytes": str(2**30)}
    assert {"kind", "fill", "warmup_capacities", "path"} <= set(estimate["initial"])


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        (["drive.estimate.preset=quickstart"], "drive.estimate.preset belongs to drive.kind"),
        (["drive.rated_writes=1TB"], "drive.rated_writes belongs to drive.kind"),
        (["drive.kind=directory", "drive.path=PLACE", "drive.estimate.preset=quickstrt"], "quickstart"),
        (["drive.kind=directory", "drive.path=PLACE", "drive.estimate.capacity=1GiB"], "drive.estimate.preset"),
        (["drive.kind=directory", "drive.path=PLACE", "drive.estimate.preset_file=gone.toml"], "there is no file"),
        (["drive.kind=directory", "drive.path=PLACE", "drive.smart=maybe"], "drive.smart"),
    ],
)
def test_an_estimate_that_cannot_be_is_refused(
    settings: list[str], said: str, fake: Fake, plan_file: Path, tmp_path: Path, invoke: Invoke
) -> None:
    place = tmp_path / "place"
    place.mkdir()
    given = [word for each in settings for word in ("--set", each.replace("PLACE", os.fspath(place)))]
    ended = invoke("run", plan_file, *given, "--out", tmp_path / "run")
    assert ended.code == 2
    assert said in ended.err
    assert not (tmp_path / "run").exists()
