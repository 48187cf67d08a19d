from pathlib import Path

import pytest
from conftest import Invoke

from spillway.errors import SpillwayError
from spillway.quantity import human_bytes, nearest, parse_share, parse_size, whole_number
from spillway.sweep.on_ray import check_reachable


@pytest.mark.parametrize(
    ("text", "size"),
    [
        (4096, 4096),
        ("4096", 4096),
        ("8GiB", 8 * 2**30),
        ("8 gib", 8 * 2**30),
        ("1.5 TB", 1_500_000_000_000),
        ("0.5KiB", 512),
        ("3 B", 3),
        ("1MB", 1_000_000),
    ],
)
def test_sizes(text: object, size: int) -> None:
    assert parse_size(text, "x") == size


@pytest.mark.parametrize("text", ["", "GiB", "-1", "8 gigs", "0.3B", True, "1e3", None])
def test_no_sizes(text: object) -> None:
    with pytest.raises(SpillwayError, match=r"--bs is .*"):
        parse_size(text, "--bs")


@pytest.mark.parametrize(
    ("text", "share"), [("0.2", 0.2), ("20%", 0.2), ("20", 0.2), ("1", 1.0), ("0", 0.0), ("0.5%", 0.005)]
)
def test_shares(text: str, share: float) -> None:
    assert parse_share(text, "x") == pytest.approx(share)


@pytest.mark.parametrize("text", ["", "x", "-0.1", "101", "nan", "inf", "200%"])
def test_no_shares(text: str) -> None:
    with pytest.raises(SpillwayError, match="--fill is"):
        parse_share(text, "--fill")


@pytest.mark.parametrize("text", ["", "²", "٣", "１", "1_0", "-1", "+1", " 1", "1.0", "9" * 19, "9" * 5000, "x"])
def test_no_whole_numbers(text: str) -> None:
    assert whole_number(text) is None


def test_whole_numbers() -> None:
    assert [whole_number(text) for text in ("0", "12", "007", "9" * 18)] == [0, 12, 7, 10**18 - 1]


# Digits that isdigit() or isdecimal() takes and int() does not, or that name more than there is.
DIGITS = ["²", "٣", "9" * 5000]


@pytest.mark.parametrize("digits", DIGITS)
def test_digits_in_what_people_write_are_refused_in_one_sentence(
    digits: str, plan_file: Path, tmp_path: Path, invoke: Invoke
) -> None:
    for words in (
        ("lint", plan_file, "--set", f"phases.{digits}.threads=1"),
        ("run", plan_file, "--out", tmp_path / "out", "--set", f"phases.{digits}.threads=1"),
        ("sweep", plan_file, "--out", tmp_path / "out", "--set", f"phases.{digits}.threads=1"),
        ("ssd", "simulate", "--preset", "tiny", "--gc", f"d-choices:{digits}"),
        ("bufferpool", "--target", "preset:tiny", "--write-back", digits),
    ):
        ended = invoke(*words)
        assert (ended.code, ended.out) == (2, ""), words
        assert ended.err.rstrip().count("\n") == 0 or "Usage" in ended.err


@pytest.mark.parametrize("digits", DIGITS)
def test_digits_in_scripts_and_jobs_are_no_traceback(digits: str, tmp_path: Path, invoke: Invoke) -> None:
    script, job = tmp_path / "bench.sh", tmp_path / "job.fio"
    script.write_text(f'a="fillseq readrandom"\ndb_bench --benchmarks=${{a[{digits}]}} --num={digits}\n')
    job.write_text(f"[job]\nrw=randwrite\nbs=4k\nsize={digits}\nruntime={digits}:00\nfilename=/dev/nvme0n1\n")
    for path in (script, job):
        assert invoke("lint", path).code in (0, 1, 2)


def test_digits_in_the_address_of_a_ray_cluster() -> None:
    for port in DIGITS:
        with pytest.raises(SpillwayError, match="an address is HOST:PORT"):
            check_reachable(f"127.0.0.1:{port}")
    with pytest.raises(SpillwayError, match="there is no Ray cluster at"):
        check_reachable("127.0.0.1:99999")
    with pytest.raises(SpillwayError, match="there is no Ray cluster at"):
        check_reachable(f"{'x' * 80}.example:1")


def test_a_near_miss_is_named_and_a_far_one_is_not() -> None:
    assert nearest("greddy", ["greedy", "fifo"]) == "; did you mean 'greedy'?"
    assert nearest("zzz", ["greedy", "fifo"]) == "."


def test_bytes_for_people() -> None:
    assert [human_bytes(n) for n in (0, 1023, 1024, 4 * 2**30, 2**50)] == [
        "0 B",
        "1023 B",
        "1.0 KiB",
        "4.0 GiB",
        "1024.0 TiB",
    ]
