"""Bad input of `spillway advise`: one sentence of bearable length and exit code 2, never a traceback or a guess."""

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import fake_lsm
import pytest
from advised import DRIVE, GIB, LOAD, READS, STREAMS, advice

from spillway.advise.configuration import DEFAULTS
from spillway.advise.drive import service_times
from spillway.advise.options_file import options_text, read_options
from spillway.advise.space import LARGEST_BUFFER, configurations
from spillway.advise.workload import Limits
from spillway.errors import SpillwayError
from spillway.lsm import read_host
from spillway.profile.document import Estimate, Profile, read_profile, write_profile
from spillway.profile.points import Sample

DIGITS = "9" * 5000  # more than int() takes
OWN = options_text(DEFAULTS, "")
ROCKSDBS = f"# This is a RocksDB option file.\n{OWN}"
LONGEST = 400  # characters of a sentence


@pytest.fixture
def ask(invoke: Any, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    """A question about the made drive, answered at once."""
    monkeypatch.setattr("spillway.advise.drive.of_preset", lambda *_: DRIVE)
    monkeypatch.setattr("spillway.advise.advise", lambda *_: advice())
    return lambda *words: invoke("advise", "--preset", "made", "--cores", "2", *words)


def refused(done: Any, *says: str) -> None:
    """Whether that is how a command refuses."""
    assert done.code == 2, done.out
    assert done.err.count("\n") == 1 and len(done.err) < LONGEST, done.err
    for each in says:
        assert each in done.err


# ---------------------------------------------------------------- the command line


@pytest.mark.parametrize(
    "value", ["", " ", "nan", "inf", "-inf", "1e400", "٣", "１０", "1_000", "²", "0x10", DIGITS, "-1"]
)
@pytest.mark.parametrize(
    "flag",
    [
        *("--data", "--key", "--value", "--scan-pairs", "--zipfian", "--rate", "--p99", "--space", "--memory"),
        *("--years", "--clients", "--top", "--tbw", "--seed", "--mix"),
    ],
)
def test_no_number_is_refused(flag: str, value: str, ask: Callable[..., Any]) -> None:
    data = [] if flag == "--data" else ["--data", "100GB"]
    refused(ask(*data, f"{flag}={value}"), flag)


@pytest.mark.parametrize(
    ("flag", "value"),
    [
        *(("--rate", "1e-300"), ("--rate", "0"), ("--rate", "2e9")),
        *(("--zipfian", "0"), ("--zipfian", "1"), ("--zipfian", "1e-300")),
        *(("--years", "0"), ("--years", "1000"), ("--tbw", "0"), ("--p99", "0ms")),
        *(("--mix", "put=0.5"), ("--mix", "put=1.1"), ("--mix", "put=.6,get=.6"), ("--mix", "put=1,put=0")),
    ],
)
def test_a_number_out_of_bounds_is_refused(flag: str, value: str, ask: Callable[..., Any]) -> None:
    refused(ask("--data", "100GB", flag, value), flag)


@pytest.mark.parametrize("flag", ["--data", "--rate", "--p99", "--mix", "--json", "--preset"])
def test_a_flag_that_is_there_twice_is_refused(flag: str, ask: Callable[..., Any]) -> None:
    words = {"--data": "100GB", "--rate": "5", "--p99": "5ms", "--mix": "put=1", "--json": "a", "--preset": "made"}
    given = [] if flag in ("--data", "--preset") else [flag, words[flag]]
    refused(ask("--data", "100GB", *given, f"{flag}={words[flag]}"), f"{flag} is given twice")


def test_flags_that_may_be_repeated_are_taken(ask: Callable[..., Any]) -> None:
    assert ask("--data", "100GB", "--set", "a=1", "--set", "b=2", "--no-discard").code == 0


@pytest.mark.parametrize("memory", [64 * GIB, 128 * GIB, 1000 * 10**12])
def test_memory_of_any_size_has_configurations(memory: int) -> None:
    """The largest memtables are bounded; there is no memory beyond which nothing fits."""
    found = list(configurations(LOAD, Limits(memory_bytes=memory), 2))
    assert found and max(each.write_buffer_bytes for each in found) == LARGEST_BUFFER


def test_a_rate_below_what_is_simulated_is_answered(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[float] = []

    def simulate(request: dict[str, Any]) -> dict[str, Any]:
        asked.append(request["load"]["rate_ops_s"] or 1)
        return fake_lsm.simulate(request)

    found = advice(replace(LOAD, rate_ops_s=0.001), simulate=simulate)
    assert found.winner.throughput_ops_s.value > 1 and min(asked) >= 1


# ---------------------------------------------------------------- OPTIONS files


def cut(text: str, at: str) -> str:
    """The text up to a word."""
    assert at in text
    return text[: text.index(at)]


BROKEN = {
    "a version of many digits": (OWN.replace("rocksdb_version=7", f"rocksdb_version={DIGITS}"), "by RocksDB 999"),
    "a version in other digits": (OWN.replace("rocksdb_version=7", "rocksdb_version=٧"), "RocksDB ٧"),
    "a version that is too new": (OWN.replace("rocksdb_version=7.8.3", "rocksdb_version=12.0.0"), "5 to 11"),
    "a version that is too old": (OWN.replace("rocksdb_version=7.8.3", "rocksdb_version=4.13"), "5 to 11"),
    "a format of many digits": (OWN.replace("file_version=1.1", f"file_version={DIGITS}"), "reads 1.1"),
    "a size of many digits": (OWN.replace("=67108864", f"={DIGITS}"), "at most"),
    "a size below -2^63": (OWN.replace("=67108864", f"=-{DIGITS}"), "at most"),
    "a size in other digits": (OWN.replace("=67108864", "=٦٧١٠٨٨٦٤"), "is not a number"),
    "a size with a line": (OWN.replace("=67108864", "=67_108_864"), "is not a number"),
    "an unlimited level of many digits": (OWN.replace("=268435456", f"={DIGITS}"), "at most"),
    "an unlimited level in other digits": (OWN.replace("=268435456", "=٩" + "٩" * 20), "is not a number"),
    "a fanout of nothing": (OWN.replace("multiplier=10", "multiplier="), "is not a number"),
    "a fanout of nan": (OWN.replace("multiplier=10", "multiplier=nan"), "is not a number"),
    "a fanout of inf": (OWN.replace("multiplier=10", "multiplier=1e999"), "is not a number"),
    "a fanout of many digits": (OWN.replace("multiplier=10", f"multiplier={DIGITS}"), "is not a number"),
    "a fanout in other digits": (OWN.replace("multiplier=10", "multiplier=１０"), "is not a number"),
    "a fanout below 0": (OWN.replace("multiplier=10", "multiplier=-10"), "above 0"),
    "a fanout of 0": (OWN.replace("multiplier=10", "multiplier=0"), "above 0"),
    "a flag that is none": (OWN.replace("use_direct_reads=false", "use_direct_reads=maybe"), "neither true nor false"),
    "levels that are no number": (OWN.replace("=67108864", "=67108864\n  num_levels=few", 1), "is not a number"),
    "a style of many characters": (OWN.replace("kCompactionStyleLevel", "k" * 5000), "compaction_style is kkk"),
    "an option twice": (OWN.replace("=67108864", "=67108864\n  write_buffer_size=1", 1), "is there twice"),
    "a section twice": (f"{OWN}[DBOptions]\n", "is there twice"),
    "cut in a line": (cut(OWN, "67108864"), "cut short"),
    "cut before its tables": (cut(OWN, "[TableOptions"), "cut short"),
    "cut within a family": (cut(ROCKSDBS, "  target_file_size_base"), "cut short"),
    "cut within its head": (cut(OWN, "[DBOptions]"), "has the sections"),
    "nothing": ("", "does not say"),
}  # fmt: skip


@pytest.mark.parametrize("name", BROKEN)
def test_an_options_file_that_cannot_be_right_is_refused(name: str, ask: Callable[..., Any], tmp_path: Path) -> None:
    text, says = BROKEN[name]
    assert text != OWN
    path = tmp_path / "OPTIONS"
    path.write_text(text)
    refused(ask("--data", "100GB", "--current", path), says, "OPTIONS")


@pytest.mark.parametrize("content", [b"\x7fELF\x02\x01\x01\0\0", b"\xff\xfe[\0", b"\0\0\0\n", b"\x1f\x8b\x08\0"])
def test_a_binary_file_is_no_options_file(content: bytes, ask: Callable[..., Any], tmp_path: Path) -> None:
    (tmp_path / "OPTIONS").write_bytes(content)
    refused(ask("--data", "100GB", "--current", tmp_path / "OPTIONS"), "OPTIONS")


@pytest.mark.parametrize("place", ["missing", ".", "/dev/zero"])
def test_what_is_no_file_is_no_options_file(place: str, ask: Callable[..., Any], tmp_path: Path) -> None:
    refused(ask("--data", "100GB", "--current", tmp_path / place))


def test_flags_of_an_options_file_are_rocksdbs(tmp_path: Path) -> None:
    """Its ParseBoolean takes 1 and 0 too."""
    path = tmp_path / "OPTIONS"
    path.write_text(OWN.replace("use_direct_reads=false", "use_direct_reads=1"))
    assert read_options(path) == replace(DEFAULTS, direct_io=True)


# ---------------------------------------------------------------- a machine's costs


@pytest.mark.parametrize(
    ("text", "says"),
    [
        *(("", "not JSON"), ("[" * 5000, "not JSON"), ('{"put_ns": ' + DIGITS + "}", "not JSON")),
        ('{"put_ns": ' + "9" * 400 + "}", "at most"),
        *(
            ('{"put_ns": 1e300}', "at most"),
            ('{"put_ns": NaN}', "at most"),
            ('{"put_ns": 0}', "at least 1"),
            ('{"get_ns": -1}', "at least 0"),
        ),
        *(('{"cores": 0}', "at least 0.01"), ('{"cores": 1e9}', "at most"), ('{"log_dirty_bytes": 1e300}', "at most")),
        *(('{"put_ns": "1"}', "not a number"), ('{"put_ns": true}', "not a number"), ("[]", "not an object")),
        *(('{"put_ns": 1, "put_ns": 2}', "is there twice"), ('{"puts_ns": 1}', "did you mean 'put_ns'?")),
    ],
)
def test_a_file_of_costs_that_cannot_be_right_is_refused(
    text: str, says: str, ask: Callable[..., Any], tmp_path: Path
) -> None:
    path = tmp_path / "host.json"
    path.write_text(text)
    refused(ask("--data", "100GB", "--host", path), says, "host.json")


@pytest.mark.parametrize("place", ["missing", ".", "/dev/zero", "/dev/null"])
def test_what_is_no_file_is_no_file_of_costs(place: str, ask: Callable[..., Any], tmp_path: Path) -> None:
    refused(ask("--data", "100GB", "--host", tmp_path / place))


def test_a_file_of_costs_may_have_a_byte_order_mark(tmp_path: Path) -> None:
    path = tmp_path / "host.json"
    path.write_text('\ufeff{"put_ns": 7, "cores": 3}')
    assert (read_host(path)[0].put_ns, read_host(path)[1]) == (7, 3)


# ---------------------------------------------------------------- profiles


def sample(op: str, pattern: str, bs_bytes: int, k: int, rate: float, mean: float, p99: float) -> Sample:
    """A point of PIO's procedure."""
    share = 1.0 if op == "read" else 0.0
    iops = rate * 1e6 / bs_bytes
    times = (mean, mean, p99, p99, p99)
    return Sample("pio", op, pattern, bs_bytes, k, 1, None, share, 1.0, 1000, 1.0, iops, rate, *times)


SAMPLES = [
    *(sample("read", "random", bs, k, k * bs / mean, mean, p99) for bs, of in READS.items() for k, mean, p99 in of),
    *(sample(op, "sequential", 262144, k, rate, 100.0, 200.0) for op, of in STREAMS.items() for k, rate in of),
]
PIO = DRIVE.pio
assert PIO is not None
PROFILE = Profile(
    {"words": "/dev/nvme9n1", "name": "made", "size_bytes": 512 * 10**9}, {}, {}, {4096: PIO}, {}, SAMPLES
)  # fmt: skip


def a_profile(path: Path, column: str = "", value: str = "", **more: Any) -> Path:
    """A profile directory, perhaps with another value in a column of each row."""
    path.mkdir()
    write_profile(replace(PROFILE, **more), path)
    if column:
        head, *rows = (path / "samples.csv").read_text().splitlines()
        at = head.split(",").index(column)
        cells = [row.split(",") for row in rows]
        (path / "samples.csv").write_text(
            "\n".join([head, *(",".join([*c[:at], value, *c[at + 1 :]]) for c in cells), ""])
        )
    return path


@pytest.mark.parametrize("value", ["", "nan", "inf", "-1", "1e300", "٣", "1_0", DIGITS, "x"])
@pytest.mark.parametrize(
    "column", ["bs_bytes", "numjobs", "bandwidth_mb_s", "latency_mean_us", "latency_p99_us", "ios"]
)
def test_a_sample_that_no_drive_gave_is_refused(column: str, value: str, invoke: Any, tmp_path: Path) -> None:
    path = a_profile(tmp_path / "p", column, value)
    refused(invoke("advise", "--profile", path, "--data", "1GB"), "samples.csv: line 2 is damaged", column)


@pytest.mark.parametrize("column", ["procedure", "op", "pattern"])
def test_a_sample_of_an_unknown_kind_is_refused(column: str, invoke: Any, tmp_path: Path) -> None:
    """It was left out in silence."""
    path = a_profile(tmp_path / "p", column, "reed")
    refused(invoke("advise", "--profile", path, "--data", "1GB"), "samples.csv: line 2 is damaged", column)


@pytest.mark.parametrize(
    ("column", "value"),
    [
        *(("latency_mean_us", "0"), ("latency_mean_us", "1e17"), ("latency_p99_us", "0")),
        *(("bandwidth_mb_s", "1e17"), ("bandwidth_mb_s", "1e-8")),
    ],
)
def test_times_of_no_drive_are_no_drives(column: str, value: str, tmp_path: Path) -> None:
    path = a_profile(tmp_path / "p", column, value)
    with pytest.raises(SpillwayError, match="which no drive"):
        service_times(read_profile(path).samples, str(path))


LACKING: dict[str, dict[str, Any]] = {
    "reads": {"samples": [each for each in SAMPLES if each.pattern != "random"]},
    "writes": {"samples": [each for each in SAMPLES if each.op != "write"]},
    "reads in order": {"samples": [each for each in SAMPLES if (each.op, each.pattern) != ("read", "sequential")]},
    "anything": {"samples": []},
    "concurrencies": {"pio": {}},
    "k_r": {"pio": {4096: replace(PIO, k_r=Estimate(float("nan"), 0, 0))}},
    "a k_r of a drive": {"pio": {4096: replace(PIO, k_r=Estimate(1e300, 0, 0))}},
    "a rate of writes": {"pio": {4096: replace(PIO, write_max_mb_s=0.0)}},
    "a size": {"target": {"words": "/dev/nvme9n1"}},
    "a size above 0": {"target": PROFILE.target | {"size_bytes": 0}},
    "a preset that there is": {"target": {"words": "preset:nosuch"}},
}  # fmt: skip


@pytest.mark.parametrize("name", LACKING)
def test_a_profile_without_what_the_model_needs_is_refused(name: str, invoke: Any, tmp_path: Path) -> None:
    path = a_profile(tmp_path / "p", **LACKING[name])
    refused(invoke("advise", "--profile", path, "--data", "1GB"))


@pytest.mark.parametrize("name", ["profile.toml", "samples.csv"])
@pytest.mark.parametrize("content", [b"", b"\0", b"\xff\xfe", b"a = [" + b"[" * 5000, b"a = " + b"9" * 5000, None])
def test_a_profile_that_is_damaged_is_refused(name: str, content: bytes | None, invoke: Any, tmp_path: Path) -> None:
    path = a_profile(tmp_path / "p")
    (path / name).unlink()
    if content is None:
        (path / name).mkdir()
    else:
        (path / name).write_bytes(content)
    refused(invoke("advise", "--profile", path, "--data", "1GB"), name)


def test_a_profile_of_another_version_is_refused(invoke: Any, tmp_path: Path) -> None:
    for version in ("0", "2", "true", '"1"', "1e300"):
        path = a_profile(tmp_path / f"v{re.sub('[^a-z0-9]', '', version)}")
        text = (path / "profile.toml").read_text()
        (path / "profile.toml").write_text(text.replace("contract = 1", f"contract = {version}"))
        refused(invoke("advise", "--profile", path, "--data", "1GB"), "contract is")
