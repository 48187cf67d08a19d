"""`spillway precondition`: the jobs as golden text, what it refuses, and the order in which sprandom writes."""

import dataclasses
import os
import shutil
import stat
import subprocess
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from conftest import Invoke

from spillway.drive.use import use_of
from spillway.errors import SpillwayError
from spillway.precondition import PROCEDURES, Drive, Job, Residual, Target, as_text, parse_target
from spillway.precondition.model import OVERWRITES
from spillway.precondition.order import sprandom_order, unwritten_share, valid_shares

GIB = 2**30
DEVICE = Target("/dev/nvme7n1", True, 400 * GIB, 400 * GIB)
PARTITION = dataclasses.replace(DEVICE, size_bytes=300 * GIB)
DRIVE = Drive("the preset tiny, scaled to 8.0 GiB", {}, 0.282, 4096, 2**21, 1.0)
RESIDUALS = [Residual(way, 2.0 + 0.25 * i, 2.5) for i, way in enumerate([*OVERWRITES, "sprandom"])]

Golden = Callable[[str, str], None]


# --- jobs


@pytest.mark.parametrize("two_steps", [False, True])
def test_the_job_of_a_whole_drive(two_steps: bool, golden: Golden) -> None:
    text = as_text(Job(DEVICE, DRIVE, two_steps, residuals=RESIDUALS))
    golden(f"precondition_{'two_steps' if two_steps else 'one_pass'}.txt", text)


def test_two_steps_take_no_drive_model(golden: Golden) -> None:
    golden("precondition_unknown.txt", as_text(Job(Target("./test:file", False, GIB), None, True)))


@pytest.mark.parametrize("name", PROCEDURES)
def test_the_job_of_a_procedure(name: str, golden: Golden) -> None:
    golden(f"precondition_{name}.txt", as_text(Job(PARTITION, DRIVE, procedure=name, residuals=RESIDUALS)))


def test_commands_for_people_are_comments_and_sections_are_as_the_procedure_says() -> None:
    for name, how in PROCEDURES.items():
        lines = as_text(Job(PARTITION, DRIVE, procedure=name, residuals=RESIDUALS)).splitlines()
        live = [line for line in lines if line and not line.startswith("#")]
        assert not [line for line in live if "sgdisk" in line or "blkdiscard" in line]
        assert bool(live) == (how.used or how.preconditions), "no job where nothing is written"
        names = [line for line in live if line.startswith("filename=")]
        if names:
            assert names == [f"filename=/dev/nvme7n1{'p1' if how.preconditions else ''}"]
            assert "allow_file_create=0" in live, "fio makes no file in /dev"


@pytest.mark.parametrize(
    ("node", "partition"),
    [
        ("/dev/sdb", "/dev/sdb1"),
        ("/dev/nvme0n1", "/dev/nvme0n1p1"),
        ("/dev/loop3", "/dev/loop3p1"),
        ("/dev/disk/by-id/nvme-x1", "/dev/disk/by-id/nvme-x1-part1"),
    ],
)
def test_a_partition_is_called_as_linux_calls_it(node: str, partition: str) -> None:
    assert Target(node, True, GIB, GIB).partition == partition


def test_fio_takes_the_jobs(tmp_path: Path) -> None:
    """The one-pass job's own options are known to 3.41 and later: an older fio refuses exactly these."""
    fio = shutil.which("fio")
    assert fio is not None, "scripts/packages.sh test installs it"
    file = Target(str(tmp_path / "a:b"), False, 64 << 20)
    for name, job in {
        "one": Job(file, DRIVE, residuals=RESIDUALS),
        "two": Job(file, None, True),
        **{
            name: Job(PARTITION, DRIVE, procedure=name)
            for name, how in PROCEDURES.items()
            if how.used or how.preconditions
        },
    }.items():
        path = tmp_path / f"{name}.fio"
        path.write_text(as_text(job))
        ended = subprocess.run([fio, "--parse-only", path], capture_output=True, text=True, check=False)
        refused = {line.split("<")[1].split("=")[0] for line in ended.stderr.splitlines() if "Bad option" in line}
        if name == "one":
            assert refused in ({"sprandom", "spr_op", "spr_num_regions"}, set()), ended.stderr
        else:
            assert (ended.returncode, refused) == (0, set()), ended.stderr


@pytest.mark.parametrize(
    ("version", "flags", "told"),
    [
        ("fio-3.33", [], True),
        ("fio-3.9-12-gabc", [], True),
        ("fio-2.99", [], True),
        ("fio-3.41", [], False),
        ("fio-4.0", [], False),
        ("nonsense", [], False),
        ("fio-3.33", ["--two-steps"], False),
    ],
)
def test_a_warning_names_an_fio_that_would_refuse_the_job(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, invoke: Invoke, version: str, flags: list[str], told: bool
) -> None:
    fio = tmp_path / "fio"
    fio.write_text(f"#!/bin/sh\necho {version}\n")
    fio.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.setattr("spillway.precondition.residuals_of", lambda drive, watch: RESIDUALS)
    monkeypatch.setattr("spillway.precondition.drive_of", lambda target, preset, physical: DRIVE)
    ended = invoke("precondition", tmp_path / "new", "--size", "1GiB", *flags)
    assert ended.code == 0
    assert ended.err.count("\n") == told
    assert (f"is {version.removeprefix('fio-')} and refuses sprandom" in ended.err) == told


# --- the order of sprandom


@pytest.mark.parametrize(("op", "unwritten"), [(0.07, 0.0005), (0.28, 0.0), (0.5, 0.003), (0.9, 0.05)])
def test_sprandom_writes_the_physical_capacity_and_nearly_every_unit(op: float, unwritten: float) -> None:
    units = 50_000
    order = sprandom_order(units, op, 1)
    assert len(order) == pytest.approx(units * (1 + op), rel=0.003)
    assert len(order) <= np.ceil(units * (1 + op))
    # fio's approximation of the write amplification has more written again than there is room for beyond the rest.
    left = 1 - len(np.unique(order)) / units
    assert unwritten / 2 <= left <= unwritten
    assert unwritten_share(op) == pytest.approx(left, abs=0.01)
    assert (order == sprandom_order(units, op, 1)).all()
    assert (order[:100] != sprandom_order(units, op, 2)[:100]).any()


def test_regions_end_as_valid_as_they_are_meant_to() -> None:
    op, units, regions = 0.28, 200_000, 100
    shares = valid_shares(op)
    assert shares[0] == pytest.approx(1 - 1 / (0.5 / op + 0.7), abs=0.01), "the oldest is what collection takes next"
    assert shares[-1] == 1.0
    assert (np.diff(shares) >= 0).all()
    order = sprandom_order(units, op, 1)
    last = np.zeros(units, dtype=np.int64)
    last[order] = np.arange(len(order))  # of several places the last one stays
    size = int(np.ceil(units * (1 + op))) // regions
    whole = len(order) // size
    valid = np.bincount(last // size, minlength=regions)[:whole] / size
    assert np.abs(valid - shares[:whole]).max() < 0.05
    assert np.abs(valid - shares[:whole]).mean() < 0.01


# --- what is refused


def refusal(call: Callable[[], object]) -> str:
    with pytest.raises(SpillwayError) as caught:
        call()
    assert caught.value.exit_code == 2
    return str(caught.value)


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["", "--size", "1GiB"], "cannot be named in a fio job"),
        (["-", "--size", "1GiB", "--two-steps"], "- is fio's standard output: give the file's absolute path"),
        (["./-", "--size", "1GiB", "--two-steps"], "- is fio's standard output: give the file's absolute path"),
        (["f$x", "--size", "1GiB"], "cannot be named in a fio job"),
        (["f\nrw=read", "--size", "1GiB"], "cannot be named in a fio job"),
        (["new", "--two-steps"], "there is no such file; say with --size"),
        (["no/such/new", "--size", "1GiB", "--two-steps"], "there is no directory"),
        (["/dev/no-such-drive", "--destroy-data"], "there is no such device"),
        (["/dev/null", "--destroy-data"], "neither a block device nor a file"),
        ([".", "--size", "1GiB"], "neither a block device nor a file"),
        (["full"], "say --destroy-data if it may"),
        (["new", "--size", "1 parsec"], "--size is '1 parsec'"),
        (["new", "--size", "0"], "--size is 0 B: give 1.0 MiB at least"),
        (["new", "--size", "1GiB"], "give --preset or --physical; --two-steps does without"),
        (["new", "--size", "1GiB", "--physical", "1GiB"], "a drive has more flash than it shows"),
        (["new", "--size", "1GiB", "--physical", "1073741825"], "a drive has more flash than it shows"),
        (["new", "--size", "1GiB", "--physical", "2GiB", "--preset", "intel-p3600"], "give one of them"),
        (["new", "--size", "1GiB", "--preset", "intel-p3601"], "did you mean 'intel-p3600'"),
        (["new", "--size", "1GiB", "--procedure", "trim-partition"], "new is a file: name a block device"),
        (["new", "--size", "1GiB", "--procedure", "trim", "--two-steps"], "leave out --two-steps"),
        (["new", "--size", "1GiB", "--procedure", "trim"], "is none of partition-trim"),
        (["new", "--size", "1GiB", "--two-steps", "--out", "."], "name a file in a directory that is there"),
        (["new", "--size", "1GiB", "--two-steps", "--out", "no/x.fio"], "name a file in a directory that is there"),
        (["full", "--destroy-data", "--two-steps", "--out", "full"], "is what the job is to write"),
    ],
)
def test_bad_input_is_one_sentence_and_leaves_nothing(
    words: list[str], says: str, invoke: Invoke, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "full").write_bytes(b"x" * 2**20)
    ended = invoke("precondition", *words)
    assert (ended.code, ended.out) == (2, "")
    assert says in ended.err
    assert ended.err.count("\n") == 1
    assert [path.name for path in tmp_path.iterdir()] == ["full"]
    assert (tmp_path / "full").read_bytes() == b"x" * 2**20


def test_a_job_goes_to_standard_output_or_to_a_file(
    invoke: Invoke, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    shown = invoke("precondition", "new", "--size", "1GiB", "--two-steps")
    assert (shown.code, shown.err) == (0, "")
    kept = invoke("precondition", "new", "--size", "1GiB", "--two-steps", "--out", "job.fio")
    assert kept.code == 0
    assert (tmp_path / "job.fio").read_text() == shown.out
    assert invoke("precondition", "new", "--size", "1GiB", "--two-steps", "--json").json()["job"] == shown.out
    assert not (tmp_path / "new").exists(), "nothing is written but the job"


def test_an_over_provisioning_that_sprandom_cannot_have_is_refused() -> None:
    large = dataclasses.replace(DRIVE, over_provisioning=1.5)
    assert "use --two-steps, or a larger --size" in refusal(lambda: as_text(Job(DEVICE, large)))
    assert "stonewall" in as_text(Job(DEVICE, large, True))
    nearly = dataclasses.replace(DRIVE, over_provisioning=0.99996)  # 1.0000 in a job
    assert "use --two-steps, or a larger --size" in refusal(lambda: as_text(Job(DEVICE, nearly)))
    assert "spr_op=0.9999" in as_text(Job(DEVICE, dataclasses.replace(DRIVE, over_provisioning=0.99994)))


def test_a_procedure_takes_a_partition_that_is_smaller_than_the_drive() -> None:
    said = refusal(lambda: as_text(Job(DEVICE, DRIVE, procedure="trim-partition")))
    assert said == "--procedure trim-partition takes the partition's --size, smaller than the drive: give one."


# --- drives in use


class System:
    """The files of /sys and /proc for one drive, which a regular file stands for: its number is 0:0."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.disk = root / "sys/dev/block/0:0"
        (self.disk / "holders").mkdir(parents=True)
        (self.disk / "size").write_text("2097152\n")
        (root / "proc/self").mkdir(parents=True)
        self.node = root / "drive"
        self.node.write_bytes(b"")

    def partition(self) -> None:
        (self.disk / "drive1" / "holders").mkdir(parents=True)
        (self.disk / "drive1/partition").write_text("1\n")
        (self.disk / "drive1/dev").write_text("0:1\n")
        (self.disk.parent / "0:1").symlink_to(self.disk / "drive1")

    def mount(self, number: str) -> None:
        (self.root / "proc/self/mountinfo").write_text(f"30 1 {number} / /a\\040b rw - ext4 /dev/x rw\n")

    def target(self, *, size: str | None = None, destroy_data: bool = True) -> Target:
        return parse_target(str(self.node), size=size, destroy_data=destroy_data, root=self.root)


@pytest.fixture
def system(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> System:
    made = System(tmp_path)
    monkeypatch.setattr("spillway.precondition.target.stat.S_ISBLK", lambda mode: stat.S_ISREG(mode))
    return made


def test_a_drive_is_named_with_leave_to_destroy_its_data(system: System) -> None:
    assert "say --destroy-data if it may" in refusal(lambda: system.target(destroy_data=False))
    found = system.target()
    assert (found.is_device, found.size_bytes, found.whole_bytes) == (True, GIB, GIB)
    assert system.target(size="256MiB").size_bytes == GIB // 4
    assert "has 1.0 GiB: give less" in refusal(lambda: system.target(size="2GiB"))
    (system.disk / "partition").write_text("1\n")
    partition = system.target(size="256MiB")
    assert "is a partition: name its drive" in refusal(
        lambda: as_text(Job(partition, None, procedure="trim-partition"))
    )
    (system.disk / "size").write_text("0\n")
    assert "there is nothing to write" in refusal(system.target)
    (system.disk / "size").unlink()
    assert "its capacity cannot be read" in refusal(system.target)


def test_a_mounted_drive_is_refused_with_any_flags(system: System) -> None:
    system.mount("0:0")
    assert refusal(system.target).endswith("drive is mounted at /a b: end that first, or name another device.")


def test_a_mounted_partition_is_refused(system: System) -> None:
    system.partition()
    system.mount("0:1")
    assert "has a partition, drive1, that is mounted at /a b" in refusal(system.target)
    system.mount("0:2")
    assert system.target().is_device, "another drive's"


def test_a_member_of_a_stack_is_refused(system: System) -> None:
    system.partition()
    (system.disk / "drive1/holders/dm-0").mkdir()
    assert "has a partition, drive1, that is part of dm-0" in refusal(system.target)
    (system.disk / "holders/md0").mkdir()
    assert "drive is part of md0" in refusal(system.target)


def test_swap_is_refused_by_the_node_that_is_swapped_to(system: System, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("spillway.drive.use.stat.S_ISBLK", lambda mode: stat.S_ISREG(mode))
    (system.root / "proc/swaps").write_text(f"Filename\tType\tSize\n{system.node} partition 1 0 -2\n")
    status = os.stat_result((stat.S_IFREG, *[0] * 9))
    assert status.st_rdev is None or status.st_rdev == 0
    assert use_of(0, 0, system.root) == "is swapped to"
