"""Real drives: trees of sysfs, spans of counters that move in steps, and the measured phases of a run."""

import os
import stat
from collections.abc import Callable
from pathlib import Path

import pytest
from conftest import Invoke
from drive_documents import GIB, MIB

from spillway.drive import blocks
from spillway.drive.blocks import Drive, drives_of, drives_under, traffic
from spillway.drive.reading import Counter, Programs, Reading
from spillway.drive.span import LEAST_STEPS, programmed
from spillway.drive.watch import Watch

# --- sysfs


class Sysfs:
    """A tree of sysfs in a directory of its own."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.mounts: list[str] = []
        for place in ("sys/dev/block", "sys/class/block", "proc/self"):
            (root / place).mkdir(parents=True)

    def disk(self, place: str, number: str, written: int = 0, sectors: int = 2048, model: str = "M") -> Path:
        directory = self.root / "sys/devices" / place
        (directory / "device").mkdir(parents=True)
        (directory / "size").write_text(f"{sectors}\n")
        (directory / "stat").write_text(f"   10 0 80 5 20 0 {written} 9 0 1 2\n")
        (directory / "device/model").write_text(f"{model}  \n")
        return self.numbered(directory, number)

    def numbered(self, directory: Path, number: str) -> Path:
        (self.root / "sys/dev/block" / number).symlink_to(directory)
        (self.root / "sys/class/block" / directory.name).symlink_to(directory)
        return directory

    def partition(self, disk: Path, name: str, number: str) -> Path:
        (disk / name).mkdir()
        (disk / name / "partition").write_text("1\n")
        return self.numbered(disk / name, number)

    def stack(self, name: str, number: str, *members: Path) -> Path:
        directory = self.root / "sys/devices/virtual/block" / name
        (directory / "slaves").mkdir(parents=True)
        for member in members:
            (directory / "slaves" / member.name).symlink_to(member)
        return self.numbered(directory, number)

    def mount(self, number: str, kind: str, source: str) -> None:
        self.mounts.append(f"30 1 {number} / /mnt rw,relatime shared:1 - {kind} {source} rw\n")
        (self.root / "proc/self/mountinfo").write_text("".join(self.mounts))

    def of(self, number: str) -> blocks.Under:
        major, minor = (int(part) for part in number.split(":"))
        return drives_of(major, minor, self.root)


@pytest.fixture
def sysfs(tmp_path: Path) -> Sysfs:
    return Sysfs(tmp_path)


def test_a_partition_is_part_of_its_drive(sysfs: Sysfs) -> None:
    disk = sysfs.disk("pci/ata1/block/sda", "8:0", written=100, model="INTEL SSD")
    sysfs.partition(disk, "sda2", "8:2")
    (found,) = sysfs.of("8:2").drives
    assert (found.name, found.model, found.kind, found.capacity_bytes) == ("sda", "INTEL SSD", "ata", 2**20)
    moved = traffic((found,))
    assert moved is not None
    assert (moved.written, moved.read) == (51_200, 40_960)


def test_a_stack_is_resolved_to_the_drives_under_it(sysfs: Sysfs) -> None:
    one = sysfs.disk("pci/nvme/nvme0/nvme0n1", "259:0", written=1)
    two = sysfs.disk("pci/nvme/nvme1/nvme1n1", "259:1", written=2)
    part = sysfs.partition(one, "nvme0n1p1", "259:2")
    raid = sysfs.stack("md0", "9:0", part, two)
    crypt = sysfs.stack("dm-0", "253:0", raid)
    sysfs.stack("dm-1", "253:1", crypt)
    found = sysfs.of("253:1").drives
    assert [(drive.name, drive.kind) for drive in found] == [("nvme0n1", "nvme"), ("nvme1n1", "nvme")]
    moved = traffic(found)
    assert moved is not None
    assert moved.written == 3 * 512


def test_a_stack_of_two_parts_of_one_drive_counts_it_once(sysfs: Sysfs) -> None:
    disk = sysfs.disk("pci/ata1/block/sda", "8:0", written=7)
    sysfs.stack("dm-0", "253:0", sysfs.partition(disk, "sda1", "8:1"), sysfs.partition(disk, "sda2", "8:2"))
    assert [drive.name for drive in sysfs.of("253:0").drives] == ["sda"]


def test_a_circular_device_stack_ends(sysfs: Sysfs) -> None:
    ring = sysfs.stack("dm-0", "253:0")
    (ring / "slaves/dm-0").symlink_to(ring)
    assert sysfs.of("253:0").drives == ()


@pytest.mark.parametrize("kind", ["tmpfs", "overlay", "nfs4", "9p", "zfs", "fuse.sshfs"])
def test_a_file_system_without_a_drive_says_why(sysfs: Sysfs, kind: str) -> None:
    sysfs.mount("0:42", kind, "none")
    found = sysfs.of("0:42")
    assert found.drives == ()
    assert found.file_system == kind
    assert found.why_none


def test_btrfs_is_found_by_what_is_mounted(sysfs: Sysfs) -> None:
    disk = sysfs.disk("pci/ata1/block/sda", "8:0")
    sysfs.partition(disk, "sda3", "8:3")
    sysfs.mount("0:25", "btrfs", "/dev/sda3")
    assert [drive.name for drive in sysfs.of("0:25").drives] == ["sda"]


@pytest.mark.parametrize(
    ("place", "kind"),
    [
        ("pci/virtio1/block/vda", "virtual"),
        ("pci/usb2/2-1/host6/block/sdb", "usb"),
        ("pci/ata3/host2/block/sdc", "ata"),
        ("pci/host7/block/sdd", "scsi"),
        ("pci/nvme/nvme0/nvme0n1", "nvme"),
    ],
)
def test_kinds_of_drives(sysfs: Sysfs, place: str, kind: str) -> None:
    sysfs.disk(place, "8:0")
    assert [drive.kind for drive in sysfs.of("8:0").drives] == [kind]


@pytest.mark.parametrize("text", ["", "1 2 3", "a b c d e f g", "1 2 3 4 5 6 -7"])
def test_counters_that_are_none_are_not_known(sysfs: Sysfs, text: str) -> None:
    disk = sysfs.disk("pci/ata1/block/sda", "8:0")
    (disk / "stat").write_text(text)
    assert traffic(sysfs.of("8:0").drives) is None
    assert traffic(()) is None


def test_a_number_without_a_device_has_a_reason(sysfs: Sysfs) -> None:
    assert "no block device 7:7" in sysfs.of("7:7").why_none
    assert "cannot be read" in drives_under(sysfs.root / "gone").why_none


# --- Nodes

Node = Callable[..., blocks.Under]
DEVTMPFS = os.makedev(0, 6)


def node_of(number: str, kind: int = stat.S_IFBLK) -> os.stat_result:
    """A node in /dev with this number."""
    major, minor = (int(part) for part in number.split(":"))
    return os.stat_result((kind, 0, DEVTMPFS, *(0,) * 7), {"st_rdev": os.makedev(major, minor)})


@pytest.fixture
def node(sysfs: Sysfs, monkeypatch: pytest.MonkeyPatch) -> Node:
    """What lies under a node with a device number of its own, in /dev."""

    def under(number: str, kind: int = stat.S_IFBLK) -> blocks.Under:
        monkeypatch.setattr(blocks, "status", lambda path: node_of(number, kind))
        return drives_under(Path("/dev/node"), sysfs.root)

    return under


def controller(sysfs: Sysfs, name: str, number: str, *children: str) -> None:
    """An NVMe controller's character device, with the directories of what belongs to it."""
    place = sysfs.root / "sys/devices/pci/nvme" / name
    for child in children:
        (place / child).mkdir(parents=True, exist_ok=True)
    place.mkdir(parents=True, exist_ok=True)
    characters = sysfs.root / "sys/dev/char"
    characters.mkdir(exist_ok=True)
    (characters / number).symlink_to(place)


def test_a_node_is_the_drive_that_a_path_on_it_has(sysfs: Sysfs, node: Node) -> None:
    disk = sysfs.disk("pci/nvme/nvme0/nvme0n1", "259:0", written=5, model="M")
    part = sysfs.partition(disk, "nvme0n1p2", "259:2")
    sysfs.stack("dm-0", "253:0", part)
    for number in ("259:0", "259:2", "253:0"):
        assert node(number) == sysfs.of(number)
        assert [drive.device for drive in node(number).drives] == ["/dev/nvme0n1"]


def test_a_node_of_a_stack_has_every_drive_under_it(sysfs: Sysfs, node: Node) -> None:
    one, two = sysfs.disk("pci/ata1/block/sda", "8:0"), sysfs.disk("pci/ata2/block/sdb", "8:16")
    sysfs.stack("md0", "9:0", sysfs.partition(one, "sda1", "8:1"), two)
    assert [drive.name for drive in node("9:0").drives] == ["sda", "sdb"]


def test_a_link_to_a_node_is_the_node(sysfs: Sysfs, tmp_path: Path) -> None:
    (tmp_path / "by-id").symlink_to("/dev/null")
    assert "it is a character device" in drives_under(tmp_path / "by-id", sysfs.root).why_none


@pytest.mark.parametrize("name", ["loop0", "ram0", "zram0", "dm-0", "md0"])
def test_a_node_with_nothing_under_it_is_no_drive(sysfs: Sysfs, node: Node, name: str) -> None:
    sysfs.disk(f"virtual/block/{name}", "7:0")
    assert node("7:0").why_none == f"{name} has no physical drive under it"


def test_a_node_missing_in_sysfs_has_a_reason(node: Node) -> None:
    assert node("8:7").why_none == "there is no block device 8:7 in sysfs"


def test_a_loop_device_leads_to_what_backs_it(sysfs: Sysfs, monkeypatch: pytest.MonkeyPatch) -> None:
    sysfs.disk("pci/ata1/block/sda", "8:0")
    loop = sysfs.disk("virtual/block/loop0", "7:0")
    (loop / "loop").mkdir()
    (loop / "loop/backing_file").write_text("/dev/sda\n")
    of = {Path("/dev/node"): "7:0", sysfs.root / "dev/sda": "8:0"}
    monkeypatch.setattr(blocks, "status", lambda path: node_of(of[path]))
    assert [drive.name for drive in drives_under(Path("/dev/node"), sysfs.root).drives] == ["sda"]
    of[sysfs.root / "dev/sda"] = "7:0"  # itself: the search ends
    assert drives_under(Path("/dev/node"), sysfs.root).drives == ()


def test_a_controller_with_one_namespace_is_that(sysfs: Sysfs, node: Node) -> None:
    sysfs.disk("pci/nvme/nvme0/nvme0n1", "259:0", model="M")
    controller(sysfs, "nvme0", "240:0", "hwmon1", "ng0n1")
    (found,) = node("240:0", stat.S_IFCHR).drives
    assert (found.device, found.model) == ("/dev/nvme0n1", "M")


def test_a_controller_with_multipath_leads_to_its_subsystems_namespace(sysfs: Sysfs, node: Node) -> None:
    sysfs.disk("virtual/nvme-subsystem/nvme-subsys1/nvme1n1", "259:0")
    controller(sysfs, "nvme0", "240:0", "nvme1c0n1")
    assert [drive.device for drive in node("240:0", stat.S_IFCHR).drives] == ["/dev/nvme1n1"]


def test_a_namespaces_second_node_is_the_namespace(sysfs: Sysfs, node: Node) -> None:
    sysfs.disk("pci/nvme/nvme0/nvme0n2", "259:0")
    controller(sysfs, "ng0n2", "241:0")
    assert [drive.device for drive in node("241:0", stat.S_IFCHR).drives] == ["/dev/nvme0n2"]


@pytest.mark.parametrize(
    ("name", "children", "why"),
    [
        ("nvme0", ["nvme0n1", "nvme0n12", "nvme0n2"], "one of its 3 namespaces, /dev/nvme0n1 or /dev/nvme0n2 or"),
        ("nvme0", ["hwmon1"], "it has no namespace"),
        ("nvme0", ["nvme0n1"], "its namespace nvme0n1 is no block device"),
        ("ng0n1", [], "its namespace nvme0n1 is no block device"),
        ("null", [], "it is a character device; name a block device, or a path on its file system"),
        ("nvme-fabrics", [], "it is a character device"),
    ],
)
def test_other_characters_say_what_to_name(sysfs: Sysfs, node: Node, name: str, children: list[str], why: str) -> None:
    controller(sysfs, name, "240:0", *children)
    found = node("240:0", stat.S_IFCHR)
    assert found.drives == ()
    assert why in found.why_none


def test_a_character_device_that_sysfs_does_not_know_is_refused(node: Node) -> None:
    assert "it is a character device" in node("1:3", stat.S_IFCHR).why_none


@pytest.mark.parametrize("place", ["/dev/null", "/dev/zero", "/dev/gone"])
def test_the_command_refuses_what_is_no_drive_in_one_sentence(place: str, invoke: Invoke) -> None:
    ended = invoke("drive", place)
    assert (ended.code, ended.out, ended.err.count("\n")) == (2, "", 1)
    assert ended.err.startswith(f"spillway: {place}: no drive is known under it: ")


def test_the_command_shows_of_a_node_what_it_shows_of_a_path(
    sysfs: Sysfs, invoke: Invoke, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk = sysfs.disk("pci/virtio1/block/vda", "254:0", written=10, model="M")
    sysfs.partition(disk, "vda1", "254:1")
    place = sysfs.root / "file"
    place.touch()
    of = {
        Path("/dev/disk/by-id/drive"): node_of("254:0"),
        place: os.stat_result((stat.S_IFREG, 0, os.makedev(254, 1), *(0,) * 7)),
    }
    monkeypatch.setattr(blocks, "status", lambda path: of[path])
    monkeypatch.setattr("spillway.cli.drive.drives_under", lambda path: drives_under(path, sysfs.root))
    shown = [invoke("drive", *options, path) for path in of for options in ((), ("--json",))]
    assert [each.code for each in shown] == [0] * 4
    assert [each.out for each in shown[:2]] == [each.out for each in shown[2:]]
    assert "/dev/vda M" in shown[0].out


# --- Spans


def nand(count: int, unit: int = GIB, most: int = 0, model: str = "M") -> Reading:
    return Reading(model, ("log",), nand=Counter("counter", count, unit, most))


def test_a_counter_that_moved_enough_is_a_figure_with_its_bounds() -> None:
    found = programmed(nand(100), nand(100 + LEAST_STEPS), 1)
    assert found.value == LEAST_STEPS * GIB
    assert (found.low, found.high) == ((LEAST_STEPS - 1) * GIB, (LEAST_STEPS + 1) * GIB)
    assert found.why == ""


@pytest.mark.parametrize("steps", [0, 1, LEAST_STEPS - 1])
def test_a_counter_that_moved_little_is_bounds_without_a_figure(steps: int) -> None:
    found = programmed(nand(100), nand(100 + steps), 1)
    assert found.value is None
    assert found.low is not None
    assert found.high is not None
    assert found.low <= steps * GIB <= found.high
    assert f"moved by {steps} steps of 1024 MiB" in found.why


def two_parts(*parts: int) -> Reading:
    return Reading("M", ("log",), nand=Counter("counter", sum(parts), GIB, parts=parts))


def test_a_sum_of_two_counters_has_the_slack_of_both_and_hides_none_that_goes_back() -> None:
    found = programmed(two_parts(10, 10), two_parts(40, 20), 1)
    assert (found.value, found.low, found.high) == (40 * GIB, 38 * GIB, 42 * GIB)
    for wrapped in (two_parts(3, 200), two_parts(200, 3)):
        found = programmed(two_parts(10, 10), wrapped, 1)
        assert found.value is found.low is found.high is None
        assert "went back, from 10 to 3" in found.why


@pytest.mark.parametrize(
    ("begin", "end", "why"),
    [
        (nand(100), nand(99), "went back"),
        (nand(1), nand(500, model="N"), "was 'M' at first"),
        (nand(1, 32 * MIB), nand(500), "at first and"),
        (nand(0, 10**9, 2**30), nand(500, 10**9, 2**30), "not published"),
        (nand(7, 1), nand(7, 1), "did not move"),
        (Reading("M", (), why_unknown="no tool"), nand(500), "no tool"),
        (nand(500), Reading("M", (), why_unknown="gone"), "gone"),
        # sysfs names a SATA drive by 16 characters, which is all there is where smartctl did not answer.
        (nand(500, model="INTEL SSDSC2KW256G8"), Reading("INTEL SSDSC2KW25", (), why_unknown="gone"), "gone"),
    ],
)
def test_spans_that_are_no_figure_say_why(begin: Reading, end: Reading, why: str) -> None:
    found = programmed(begin, end, 10**9)
    assert found.value is None
    assert why in found.why


def pages(host: int, background: int) -> Reading:
    return Reading("M", (), programs=Programs("pages", host, background))


def test_pages_take_the_hosts_bytes_for_their_unit() -> None:
    found = programmed(pages(1000, 10), pages(3000, 1010), 10**9)
    assert found.value == pytest.approx(1.5e9)
    assert programmed(pages(1000, 10), pages(3000, 1010), None).value is None
    assert programmed(pages(1000, 10), pages(1001, 50), 10**9).value is None
    assert "went back" in programmed(pages(1000, 10), pages(3000, 9), 10**9).why


# --- A run's measured phases


def watch_over(sysfs: Sysfs, measured: list[bool], readings: list[Reading]) -> Watch:
    watch = Watch(sysfs.root, measured)
    watch.under = sysfs.of("8:0")
    left = iter(readings)
    watch.look = lambda drive: next(left)
    return watch


def set_written(sysfs: Sysfs, host_bytes: int) -> None:
    path = sysfs.root / "sys/devices/pci/ata1/block/sda/stat"
    path.write_text(f"1 0 0 0 1 0 {host_bytes // 512} 0 0 0 0\n")


def test_only_measured_phases_count(sysfs: Sysfs) -> None:
    sysfs.disk("pci/ata1/block/sda", "8:0", model="M")
    watch = watch_over(sysfs, [False, True, True, False, True], [nand(100), nand(200), nand(900), nand(1000)])
    watch.begin()
    for _ in range(5):
        watch.end_phase()
    watch.end()
    host = 100 * GIB
    found = watch.document(host, host // 2)
    assert found["nand_bytes_programmed"] == 200 * GIB
    assert found["wa_device_interval"] == [pytest.approx(1.98), pytest.approx(2.02)]
    assert found["process_share"] == 0.5
    assert found["why_unknown"] is None
    assert found["devices"][0]["nand_resolution_bytes"] == GIB


def test_a_run_that_is_ended_in_a_phase_counts_to_there(sysfs: Sysfs) -> None:
    sysfs.disk("pci/ata1/block/sda", "8:0", model="M")
    watch = watch_over(sysfs, [True, True], [nand(100), nand(150)])
    watch.begin()
    watch.end_phase()
    watch.end()
    assert watch.document(50 * GIB, None)["nand_bytes_programmed"] == 50 * GIB


def test_a_run_that_ends_before_it_measures_knows_nothing(sysfs: Sysfs) -> None:
    sysfs.disk("pci/ata1/block/sda", "8:0", model="M")
    watch = watch_over(sysfs, [False, True], [])
    watch.begin()
    watch.end()
    assert "before a measured phase" in watch.document(None, None)["why_unknown"]


def test_bytes_written_while_logs_are_read_are_not_hidden(sysfs: Sysfs) -> None:
    sysfs.disk("pci/ata1/block/sda", "8:0", model="M")
    watch = watch_over(sysfs, [True], [])
    states = iter([(0, nand(0)), (10 * GIB, nand(100))])

    def look(drive: Drive) -> Reading:
        added, reading = next(states)
        moved = traffic(watch.under.drives)
        assert moved is not None
        set_written(sysfs, moved.written + added)
        return reading

    watch.look = look
    watch.begin()
    watch.end_phase()
    found = watch.document(100 * GIB, None)
    assert found["nand_bytes_programmed"] is None
    assert "reading of the logs" in found["why_unknown"]
    low, high = found["wa_device_interval"]
    assert low < 0.9
    assert high > 1.1


def test_a_place_without_a_drive_is_unknown_and_no_failure(sysfs: Sysfs) -> None:
    watch = Watch(sysfs.root, [True])
    watch.under = blocks.Under(why_none="a tmpfs lies in memory")
    watch.begin()
    watch.end_phase()
    found = watch.document(None, None)
    assert found["why_unknown"] == found["why_no_device"] == "a tmpfs lies in memory"
    assert watch.counters == []
