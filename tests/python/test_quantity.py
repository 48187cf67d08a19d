import pytest

from spillway.errors import SpillwayError
from spillway.quantity import human_bytes, nearest, parse_share, parse_size


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
