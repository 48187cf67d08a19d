"""What cannot be profiled, by the real probe: one sentence in the words that were typed, code 2, data untouched."""

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from conftest import Invoke
from needs import need, need_direct_io

from spillway.errors import SpillwayError
from spillway.profile import parse_target
from spillway.profile.target import errors_name_flags

pytestmark = [pytest.mark.native, pytest.mark.usefixtures("real_native")]

DATA_BYTES = 1 << 20
MEMORY = Path("/dev/shm")


@pytest.fixture
def data(tmp_path: Path) -> Iterator[Path]:
    """Somebody's file, which must be as it was when the test is over; so must be all around it."""
    need_direct_io(tmp_path)  # where temporary files are in memory that is refused first
    path = tmp_path / "data"
    path.write_bytes(os.urandom(DATA_BYTES))
    before = path.read_bytes()
    yield path
    assert path.read_bytes() == before
    assert [each.name for each in tmp_path.iterdir()] == ["data"]


def refused(invoke: Invoke, *arguments: object) -> str:
    ended = invoke("profile", *arguments)
    assert (ended.code, ended.out) == (2, ""), ended.err
    assert ended.err.count("\n") == 1
    assert "target." not in ended.err, "keys of the request are not what was typed"
    return ended.err


@pytest.mark.parametrize("leave", [(), ("--destroy-data",)])
def test_a_small_file_is_not_written_even_with_leave(data: Path, invoke: Invoke, leave: tuple[str, ...]) -> None:
    said = refused(invoke, data, *leave, "--out", data.parent / "p")
    assert "too small for 128 threads" in said


@pytest.mark.parametrize("leave", [(), ("--destroy-data",)])
def test_a_budget_that_is_too_short_leaves_a_file_alone(data: Path, invoke: Invoke, leave: tuple[str, ...]) -> None:
    said = refused(invoke, data, *leave, "--budget", "1", "--out", data.parent / "p")
    assert "too short" in said
    assert "give it at least" in said


def test_more_than_a_file_holds_is_refused(data: Path, invoke: Invoke) -> None:
    said = refused(invoke, data, "--destroy-data", "--size", "2MiB", "--out", data.parent / "p")
    assert "--size is 2097152" in said


def test_a_test_file_that_does_not_fit_is_not_begun(tmp_path: Path, invoke: Invoke) -> None:
    need_direct_io(tmp_path)
    said = refused(invoke, tmp_path, "--size", "900PiB", "--out", tmp_path / "p")
    assert "lower --size" in said
    assert list(tmp_path.iterdir()) == []


def test_memory_is_no_drive(invoke: Invoke, tmp_path: Path) -> None:
    need(MEMORY.is_dir() and os.access(MEMORY, os.W_OK), f"a file system in memory at {MEMORY}")
    path = MEMORY / f"spillway-{os.getpid()}"
    path.write_bytes(b"mine" * 4096)
    try:
        for target in (path, MEMORY):
            assert "O_DIRECT" in refused(invoke, target, "--budget", "60", "--out", tmp_path / "p")
        assert path.read_bytes() == b"mine" * 4096
    finally:
        path.unlink()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("leave", [(), ("--destroy-data",)])
def test_a_mounted_device_is_refused(invoke: Invoke, tmp_path: Path, leave: tuple[str, ...]) -> None:
    sources = [line.split()[0] for line in Path("/proc/mounts").read_text().splitlines()]
    devices = [source for source in sources if Path(source).is_block_device()]
    need(devices, "a file system that is mounted from a block device")
    said = refused(invoke, devices[0], *leave, "--out", tmp_path / "p")
    assert "is mounted at" in said
    assert "give a device that nothing uses" in said
    assert list(tmp_path.iterdir()) == []


@pytest.fixture
def loop(tmp_path: Path) -> Iterator[tuple[Path, str]]:
    """A read-only block device made of a file: that takes a superuser and loop devices."""
    backing = tmp_path / "backing"
    backing.write_bytes(os.urandom(DATA_BYTES))
    need(shutil.which("losetup") and os.geteuid() == 0, "a loop device: losetup and a superuser")
    made = subprocess.run(
        ["losetup", "--find", "--show", "--read-only", backing], capture_output=True, text=True, check=False
    )
    need(made.returncode == 0, f"a loop device: {made.stderr.strip()}")
    device = made.stdout.strip()
    yield backing, device
    subprocess.run(["losetup", "--detach", device], check=True)


def test_a_read_only_device_is_not_written(loop: tuple[Path, str], invoke: Invoke) -> None:
    backing, device = loop
    before = backing.read_bytes()
    said = refused(invoke, device, "--destroy-data", "--out", backing.parent / "p")
    assert "read-only" in said
    assert "without --destroy-data" in said
    assert "too small for 128 threads" in refused(invoke, device, "--out", backing.parent / "p"), "it may be read"
    assert backing.read_bytes() == before


def test_an_unknown_host_stack_is_refused_with_the_nearest_name(invoke: Invoke, tmp_path: Path) -> None:
    said = refused(invoke, "preset:intel-p4510", "--host-stack", "bypas", "--out", tmp_path / "p")
    assert said.startswith("spillway: --host-stack is 'bypas'; this drive takes none, bypass, file-system")
    assert "did you mean bypass?" in said
    simulated = invoke("ssd", "simulate", "--preset", "intel-p4510", "--host-stack", "bypas")
    assert (simulated.code, simulated.out, simulated.err) == (2, "", said)


def test_a_host_stack_is_the_software_s_part(invoke: Invoke) -> None:
    rates = {}
    for stack in ("none", "bypass", "file-system"):
        drive = ("--preset", "intel-p4510", "--set", "capacity.capacity_bytes=256MiB", "--host-stack", stack)
        work = ("--workload", "randread", "--ios", "20000", "--iodepth", "128", "--json")
        rates[stack] = invoke("ssd", "simulate", *drive, *work).json()["iops"]
    assert rates["file-system"] < 0.8 * rates["bypass"], "PIO, Table 2 and section 4: 1.9 GB/s with it"


def test_what_the_probe_says_of_keys_is_said_of_flags(tmp_path: Path) -> None:
    target = parse_target(str(tmp_path), size="1GiB")
    with pytest.raises(SpillwayError) as raised, errors_name_flags(target):
        raise SpillwayError("without target.destroy_data, or lower target.size_bytes")
    assert str(raised.value) == "without --destroy-data, or lower --size"
