"""Lint of what others wrote: how it is read, and each finding against what the recipe says, worked out by hand."""

import math
import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from conftest import ROOT, Invoke

from spillway.errors import SpillwayError
from spillway.lint.db_bench import BENCHMARKS, benches_of, lint_db_bench
from spillway.lint.dispatch import lint, lint_command
from spillway.lint.fio import lint_fio
from spillway.lint.fio_jobs import Job, block_bytes, parse_command, parse_jobs, seconds_of, size_of
from spillway.lint.recipe import Recipe, tool_of
from spillway.lint.share import touched_share, uniform_share
from spillway.lint.shell import read_commands
from spillway.lint.table import Linted, Remark, covers_all
from spillway.lint.ycsb import parse_properties

Golden = Callable[[str, str], None]
RECIPES = ROOT / "tests/python/recipes"
TB = 10**12


def words(text: str, **given: str) -> list[str]:
    return [" ".join(command.words) for command in read_commands(text, given)]


def all_of(linted: Linted, slug: str) -> list[Remark]:
    return [remark for remark in linted.remarks if remark.pitfall.slug == slug]


def of(linted: Linted, slug: str) -> Remark:
    (remark,) = all_of(linted, slug)
    return remark


def bench(text: str, capacity: int | None = None) -> Linted:
    return lint_db_bench(Recipe("x.sh", read_commands(text), capacity))


def fio(text: str, capacity: int | None = None) -> Linted:
    return lint_fio("x.fio", parse_jobs(text, {}), capacity)


def ycsb(text: str, capacity: int | None = None) -> Linted:
    return lint_command("ycsb", text, capacity)[0]


# ---------------------------------------------------------------- shell scripts


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("a b  # c\n# d\ne 'f # g' \"h\"\n", ["a b", "e f # g h"]),
        ("a \\\n  b\n", ["a b"]),
        ("X=1; Y=\"$X 2\"\na $X \"$Y\" '${X}' \\$X\n", ["a 1 1 2 ${X} $X"]),
        ("a ${X:-7} ${Y-8} ${HOME_OF_NONE}z\n", ["a 7 8 z"]),
        ("M=$((1024 * 1024))\na $((8 * M)) $(( $M / 3 )) $((1 / 0))\n", ["a 8388608 349525 ?"]),
        ("a=$(date) ; b `date` $a\n", ["b ? ?"]),
        ("f() { a $1 $#; }\nf x\nfunction g {\n a $@\n}\ng y z\n", ["a x 1", "a y z"]),
        ("never() { a $1; }\n", ["a ?"]),
        ("X=0\nif [ $X -gt 0 ]; then a; elif [ -z $Y ]; then b; else c; fi\n", ["b"]),
        ("if [ ! -z $Y ]; then a; fi\nif [[ x == x && 1 ]]; then b; fi\n", ["b"]),
        ("if test -d /x; then a; else b; fi\n", ["a", "b"]),
        ("if hash x; then T=long; fi\na $T\n", ["a long"]),
        ("for k in 1 2; do a $k; done\nfor x in $NONE; do b $x; done\n", ["a 1", "a 2", "b ?"]),
        ("while true; do a; done\n", ["a"]),
        ("case $x in\n p) a ;;\n q|r) b ;;\nesac\n", ["p", "a", "q", "r", "b"]),
        ('cmd="a --x=\\"y z\\" | tee l"\neval $cmd\n', ["a --x=y z", "tee l"]),
        ("l=(1 2 3)\nfor i in ${l[@]}; do a $i ${l[$i]}; done\n", ["a 1 2", "a 2 3", "a 3 1"]),
        ("P=\"--x\"\nP+=\" --y\"\na $P\n", ["a --x --y"]),
        ("P=$NONE\nQ=$P$P\na $Q b\n", ["a b"]),
        ("cat <<EOF\ndb_bench --num=1\nEOF\na\n", ["cat", "a"]),
        ("f() { f; f; }\nf\na\n", ["f", "a"]),
        ("a && b || c; (d) & e\n", ["a", "b", "c", "d", "e"]),
        ("read X Y\na $X\nexport Z=3\nb $Z\n", ["a ?", "b 3"]),
        ("a 2>&1 > log\n", ["a 2>&1 > log"]),
        ("\ufeff'unclosed $( ${ \"\n", None),
        ("fi\ndone\nesac )\nthen then then a\n", ["a"]),
    ],
)  # fmt: skip
def test_a_script_is_read_as_far_as_it_is_understood(text: str, found: list[str] | None) -> None:
    remarked = list(filter(None, words(text)))
    assert found is None or remarked == found


def test_undecidable_branches_start_from_the_same_variables() -> None:
    text = "f() { job=$1; a $job; }\nif [ $1 = x ]; then f x; elif [ $1 = y ]; then f y; fi\nb $job\n"
    assert words(text) == ["a x", "a y", "b y"]


def test_a_command_has_the_line_of_the_text_that_is_evaluated() -> None:
    commands = read_commands('X=1\ncmd="db_bench \\\n  --num=$X"\n\neval $cmd\n')
    assert [(command.words, command.line) for command in commands] == [(("db_bench", "--num=1"), 2)]


@pytest.mark.parametrize(
    ("text", "tool"),
    [
        ("sudo nice ./db_bench --num=1", "db_bench"),
        ("/usr/bin/time -f '%e' -o x timeout 60 bin/db_bench_static --num=1 2>&1", "db_bench"),
        ("echo db_bench --num=1", None),
        ("ps aux db_bench", None),
        ("python3 bin/ycsb load rocksdb", "ycsb"),
        ("bin/ycsb.sh run rocksdb", "ycsb"),
        ("sudo fio --name=x", "fio"),
        ("rm -rf /mnt/db_bench", None),
    ],
)
def test_the_tool_that_a_command_runs(text: str, tool: str | None) -> None:
    found = tool_of(read_commands(text)[0])
    assert (found[0] if found else None) == tool
    assert not found or "2>&1" not in found[1]


# ---------------------------------------------------------------- shares


@pytest.mark.parametrize(("count", "draws", "theta"), [(1000, 1000, 0.99), (3000, 20_000, 1.2), (2000, 500, 0.5)])
def test_the_share_touched_is_that_of_drawing(count: int, draws: int, theta: float) -> None:
    random = np.random.default_rng(1)
    chances = np.arange(1, count + 1, dtype=float) ** -theta
    chances /= chances.sum()
    scattered, plain = [], []
    for _ in range(100):
        drawn = random.choice(count, size=draws, p=chances)
        plain.append(len(set(drawn.tolist())) / count)
        scattered.append(len(set(random.integers(0, count, count)[drawn].tolist())) / count)
    assert touched_share(draws, count, count, theta) == pytest.approx(float(np.mean(scattered)), rel=0.02)
    assert touched_share(draws, count, count, theta, scattered=False) == pytest.approx(float(np.mean(plain)), rel=0.02)


def test_bins_sum_as_single_ranks_do() -> None:
    count, draws, theta = 1_000_000, 3_000_000, 0.9
    chances = np.arange(1, count + 1, dtype=float) ** -theta
    chances /= chances.sum()
    exact = float(np.mean(-np.expm1(-draws * chances)))
    assert touched_share(draws, count, count, theta, scattered=False) == pytest.approx(exact, rel=1e-3)
    assert touched_share(1e9, 10**12, 10**12, 0.0, scattered=False) == pytest.approx(1e-3, rel=1e-2)
    assert uniform_share(1000, 1000) == pytest.approx(1 - 1 / math.e)


# ---------------------------------------------------------------- fio


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("4k", 4096),
        ("10G", 10 * 2**30),
        ("1.5m", 1.5 * 2**20),
        ("512", 512),
        ("2TiB", 2 * 2**40),
        ("x", None),
        ("", None),
    ],
)
def test_sizes(text: str, expected: float | None) -> None:
    assert size_of(text) == (expected, None)


def test_shares_and_times_and_blocks() -> None:
    assert size_of("25%") == (None, 0.25) and size_of("900%") == (None, 1.0) and size_of("x%") == (None, None)
    times = {
        "60": 60.0,
        "10m": 600.0,
        "1h30m": 5400.0,
        "2d": 172800.0,
        "01:30:00": 5400.0,
        "500ms": 0.5,
        "later": None,
        "": None,
    }
    assert {text: seconds_of(text) for text in times} == times
    (job,) = parse_jobs("[a]\nbs=8k,4k\n", {})
    assert (block_bytes(job, writes=False), block_bytes(job, writes=True)) == (8192, 4096)
    (job,) = parse_jobs("[a]\nbssplit=4k/60:64k/40\n", {})
    assert block_bytes(job, writes=True) == 4096


def options(job: Job) -> dict[str, str]:
    return {name: option.text for name, option in job.options.items()}


def test_jobs_inherit_from_the_globals_above_them() -> None:
    text = "; a comment\n[global]\nrw=read\nbs = 4k # small\n[a]\nbs=8k\nbs=16k\ndirect\n"
    text += "[global]\nreadwrite=write\n[a]\n\n[b]\n"
    first, second, third = parse_jobs(text, {})
    assert (first.name, options(first)) == ("a", {"rw": "read", "bs": "16k", "direct": "1"})
    assert options(second) == options(third) == {"rw": "write", "bs": "4k"}
    assert first.where("bs") == "7"


def test_variables_of_the_environment(tmp_path: Path) -> None:
    (job,) = parse_jobs("[a]\nbs=${B}\nfilename=${D}\n", {"B": "4k"})
    assert options(job) == {"bs": "4k", "filename": "${D}"}
    assert of(fio("[a]\nrw=randwrite\nfilename=${D}\n"), "drive-type").verdict == "cannot tell"


def test_an_include_is_relative_to_the_including_file(tmp_path: Path) -> None:
    (tmp_path / "common.fio").write_text("[global]\nfilename=/dev/nvme0n1\nrw=randwrite\n")
    (tmp_path / "jobs.fio").write_text("include common.fio\n[a]\nruntime=60\n")
    (linted,) = lint(str(tmp_path / "jobs.fio"))
    assert "/dev/nvme0n1 alone" in of(linted, "drive-type").looked_at


def test_command_lines_are_jobs() -> None:
    given = ["--direct=1", "--bs", "4k", "--name=a", "--rw=read", "--name", "b", "--rw=write", "x.fio"]
    jobs, files = parse_command(given, {})
    assert [(job.name, options(job)) for job in jobs] == [
        ("a", {"direct": "1", "bs": "4k", "rw": "read"}),
        ("b", {"direct": "1", "bs": "4k", "rw": "write"}),
    ]
    assert files == ["x.fio"]
    assert parse_command(["--name=a", "--time_based", "x.fio"], {})[1] == ["x.fio"]


DEVICE = "[global]\nfilename=/dev/nvme0n1\ndirect=1\n"
FILL = "[fill]\nrw=write\nbs=1m\n"


@pytest.mark.parametrize(
    ("job", "verdict", "said"),
    [
        ("rw=randwrite\nruntime=60\ntime_based\nramp_time=5", "finding", "runtime=60: 1 min"),
        ("rw=randwrite\nruntime=60\nramp_time=5", "finding", "at most runtime=60: 1 min"),
        ("rw=randwrite\nruntime=2h\ntime_based\nramp_time=5", "cannot tell", "120 min"),
        ("rw=randwrite\nruntime=60\nss=iops:10%", "ok", "ss=iops:10%"),
        ("rw=randwrite\nloops=2\nramp_time=5", "finding", "2 x the drive is written"),
        ("rw=randwrite\nnumjobs=4\nwrite_bw_log=x", "ok", "4 x the drive is written"),
        ("rw=randrw\nnumjobs=4\nrwmixread=40\nramp_time=5", "finding", "2.4 x the drive is written"),
        ("rw=randwrite\nsize=100g\nloops=40\nramp_time=5", "ok", "4.3 x the drive is written"),
        ("rw=randwrite\nsize=50%\nloops=8\nramp_time=5", "ok", "4 x the drive is written"),
    ],
)
def test_how_long_a_job_is(job: str, verdict: str, said: str) -> None:
    linted = fio(DEVICE + FILL + "[a]\nstonewall\n" + job + "\n", TB)
    assert [(remark.verdict, said in remark.looked_at) for remark in all_of(linted, "short-test")] == [(verdict, True)]
    assert covers_all(linted)


def test_without_a_log_or_a_ramp_the_average_mixes_burst_and_steady_part() -> None:
    remarks = all_of(fio(DEVICE + FILL + "[a]\nstonewall\nrw=randwrite\nloops=4\n"), "short-test")
    assert sorted(remark.verdict for remark in remarks) == ["finding", "ok"]
    assert any("the average mixes" in remark.looked_at for remark in remarks)


@pytest.mark.parametrize(
    ("text", "verdict", "said"),
    [
        (DEVICE + "[a]\nrw=randread\n", "finding", "unwritten ones are answered from the mapping"),
        (DEVICE + FILL + "[a]\nrw=randread\n", "finding", "unwritten ones"),  # at once with the fill
        (DEVICE + FILL + "[a]\nstonewall\nrw=randread\n", "ok", "an earlier job writes all"),
        (DEVICE + FILL + "runtime=10\n[a]\nstonewall\nrw=randread\n", "finding", "unwritten ones"),
        (DEVICE + FILL + "size=10%\n[a]\nstonewall\nrw=randread\n", "finding", "unwritten ones"),
        (DEVICE + FILL + "size=10%\n[a]\nstonewall\nrw=randread\nsize=5%\n", "ok", "an earlier job"),
        (DEVICE + FILL + "filename=/dev/nvme1n1\n[a]\nstonewall\nrw=randread\n", "finding", "unwritten ones"),
        (DEVICE + "[a]\nrw=randwrite\n", "finding", "neither written whole nor at random"),
        (DEVICE + "[a]\nrw=randwrite\nsprandom=1\n", "ok", "sprandom=1"),
        (DEVICE + FILL + "[a]\nstonewall\nrw=randwrite\n", "ok", "an earlier job"),
        ("[a]\nrw=randread\n", "cannot tell", "unwritten ones"),
        ("[a]\nrw=randread\nfilename=/mnt/file\nsize=1g\n", "finding", "nothing says what the drive held"),
    ],
)
def test_what_the_drive_holds_before(text: str, verdict: str, said: str) -> None:
    remark = of(fio(text), "initial-state")
    assert (remark.verdict, said in remark.looked_at) == (verdict, True), remark


def test_a_closed_loop_a_rate_and_an_open_loop() -> None:
    base = DEVICE + FILL + "[a]\nstonewall\nrw=randwrite\nruntime=1h\n"
    assert "iodepth=1," in of(fio(base), "closed-loop").looked_at
    assert "(but ioengine=psync has one in flight)" in of(fio(base + "iodepth=32\n"), "closed-loop").looked_at
    assert "io_submit_mode=offload" in of(fio(base + "rate_iops=100\n"), "closed-loop").change
    assert not all_of(fio(base + "rate_iops=100\nrate_process=poisson\nio_submit_mode=offload\n"), "closed-loop")
    assert not all_of(fio(base + "gtod_reduce=1\n"), "closed-loop")


def test_cache_contents_and_syncs() -> None:
    cached = fio("[global]\nrw=randwrite\nfilename=/mnt/x\nsize=1g\n[a]\n[b]\nfsync=1\nzero_buffers\n")
    assert "nothing waits for the drive" in of(cached, "page-cache").looked_at
    assert "zero_buffers=1" in of(cached, "compression").looked_at
    assert "fsync=1; no sync" in of(cached, "durability").looked_at.replace("no sync; fsync=1", "fsync=1; no sync")
    plain = fio(DEVICE + "[a]\nrw=randwrite\n")
    assert not [
        remark for slug in ("page-cache", "compression", "durability", "skew") for remark in all_of(plain, slug)
    ]


def test_the_share_that_zipf_touches() -> None:
    zipf = "[a]\nrw=randwrite\nrandom_distribution=zipf:1.2\nbs=4k\n"
    remark = of(fio(DEVICE + zipf + "size=16g\nio_size=64g\n"), "skew")
    share = touched_share(4 * 2**22, 2**22, 2**22, 1.2)
    assert (remark.verdict, f"touch {share:.1%} of the 4.19e+06 offsets" in remark.looked_at) == ("finding", True)
    whole = of(fio(DEVICE + zipf), "skew")  # neither size nor --capacity: a drive of 100 GB, or a larger one
    assert whole.verdict == "finding"
    assert f"{touched_share(100e9 / 4096, int(100e9 / 4096), int(100e9 / 4096), 1.2):.1%} of" in whole.looked_at
    assert of(fio("[global]\ndirectory=/mnt\n" + zipf), "skew").verdict == "cannot tell"
    assert of(fio(DEVICE + zipf.replace("1.2", "0.1") + "loops=3\n"), "skew").verdict == "cannot tell"
    assert of(fio(DEVICE + zipf, TB), "skew").verdict == "finding"
    even = of(fio(DEVICE + zipf.replace("1.2", "0.1") + "size=16g\nloops=3\n"), "skew")
    assert even.verdict == "ok"


@pytest.mark.parametrize(
    ("text", "verdict"),
    [
        ("ycsb run rocksdb -P workloadc -p operationcount=9000000 -p maxexecutiontime=59", "finding"),
        ("ycsb run rocksdb -P workloadc -p operationcount=9000000 -p maxexecutiontime=60", "ok"),
        ("ycsb run rocksdb -P workloadc -p operationcount=9000000", "ok"),
    ],
)
def test_reads_of_ycsb_may_be_too_short(text: str, verdict: str) -> None:
    assert of(ycsb(text), "short-test").verdict == verdict


@pytest.mark.parametrize("mode", ["zorp", "randwrites", "random", "read write"])
def test_a_mode_that_fio_has_not_is_refused(mode: str) -> None:
    """Nothing is said of what it would read or write."""
    with pytest.raises(SpillwayError, match=rf"x\.fio:\d+ \[a\]: fio has no rw={mode};"):
        fio(DEVICE + f"[a]\nrw={mode}\n")
    assert fio(DEVICE + "[a]\nrw=${MODE}\n").kind == "fio"


@pytest.mark.parametrize("time", ["abc", "-5", "10x", "ten minutes", "1:", "5 s 3 q", "nan", "inf", "1e308", ""])
def test_a_runtime_that_is_no_time_is_refused(time: str) -> None:
    """It is not taken for none."""
    with pytest.raises(SpillwayError, match=rf"x\.fio:\d+ \[a\]: runtime={time} is no time to fio;"):
        fio(DEVICE + f"[a]\nrw=randwrite\nruntime={time}\n")


@pytest.mark.parametrize("time", ["90", "30m", "1h30m", "0:30:00", "1800s", "1800 s", "2D", "(30*60)", "${T}", "0"])
def test_a_runtime_that_fio_takes_is_taken(time: str) -> None:
    assert fio(DEVICE + f"[a]\nrw=randwrite\nruntime={time}\n").kind == "fio"


@pytest.mark.parametrize("how", ["pareto:0.2", "normal:20", "zoned:50/5:30/15:20/", "zoned_abs:60/20G:40/1G"])
def test_other_skews_of_fio_are_not_passed_over(how: str) -> None:
    """Nor is asked for what would not help."""
    found = of(fio(DEVICE + f"[a]\nrw=randwrite\nbs=4k\nsize=16g\nrandom_distribution={how}\n", TB), "skew")
    assert found.verdict == "cannot tell"
    assert f"not worked out for {how.partition(':')[0]}" in found.looked_at
    even = fio(DEVICE + "[a]\nrw=randwrite\nbs=4k\nsize=16g\nrandom_distribution=random\n", TB)
    assert all_of(even, "skew") == []


def test_fio_in_a_script_runs_one_command_after_the_other() -> None:
    text = (
        "D=/dev/nvme0n1\nfio --name=f --filename=$D --rw=write\nfio --name=r --filename=$D --rw=randread --direct=1\n"
    )
    (linted,) = lint_command("fio", text)
    assert of(linted, "initial-state").verdict == "ok"
    (other,) = lint_command("fio", text.replace("filename=$D --rw=write", "filename=$1 --rw=write"))
    assert of(other, "initial-state").verdict == "finding"


# ---------------------------------------------------------------- db_bench


def test_without_benchmarks_it_runs_all_that_it_runs_by_default() -> None:
    """As the installed db_bench says itself; a command without a flag is one too, a word in a sentence is none."""
    remarked = subprocess.run(["db_bench", "--help"], capture_output=True, text=True, check=False).stdout
    said = re.search(r'default:\s+"(fillseq,[^"]*)"', remarked)
    assert said, "db_bench says which it runs"
    assert set(BENCHMARKS.split(",")) <= set(said[1].split(",")), "later versions have more"
    for text in ("db_bench", "./db_bench --num=10", "db_bench --num=10 --benchmarks=fillseq,overwrite"):
        (bench,) = benches_of(Recipe("x", read_commands(text)))
        assert bench.writing[0] == "fillseq"
        assert "overwrite" in bench.writing
    (nothing,) = benches_of(Recipe("x", read_commands("db_bench --benchmarks=")))
    assert nothing.names == ()
    assert benches_of(Recipe("x", read_commands("apt-get install db_bench"))) == []


def test_flags_as_gflags_reads_them() -> None:
    text = (
        "db_bench --num=5 -num 7 --histogram --nosync --disable_wal=false --benchmarks=fillseq[X2],readrandom --db /x"
    )
    (found,) = benches_of(Recipe("x", read_commands(text)))
    assert (found.number("num", 1), found.on("histogram"), found.on("sync"), found.on("disable_wal")) == (
        7,
        True,
        False,
        False,
    )
    assert (found.names, found.flags["db"]) == (("fillseq", "readrandom"), "/x")


@pytest.mark.parametrize(
    ("flags", "verdict", "said"),
    [
        ("--benchmarks=fillrandom", "finding", "1e+06 x 116 B = 110.6 MiB"),
        ("--benchmarks=fillrandom --duration=600", "finding", "10 min"),
        ("--benchmarks=fillrandom --duration=3600", "cannot tell", "60 min"),
        ("--benchmarks=fillseq --duration=3600", "finding", "1e+06 x 116 B"),  # which fillseq ignores
        ("--benchmarks=fillseq --num=2000000000", "finding", "only with wa_app above 13"),  # merged by nothing
        ("--benchmarks=fillrandom --num=2000000000", "cannot tell", "with wa_app 13 or more"),
        ("--benchmarks=overwrite --threads=8 --num=1000000000", "cannot tell", "8e+09 x 116 B"),
        ("--benchmarks=filluniquerandom --threads=8 --num=1000000000", "cannot tell", "1e+09 x 116 B"),
        ("--benchmarks=fillrandom --writes=10 --num=1000000000", "finding", "10 x 116 B"),
        ("--benchmarks=overwrite --num=30000000000", "ok", "3.5 x the capacity"),
        ("--benchmarks=readrandom", "ok", "nothing is written"),
        ("--benchmarks=readrandom --duration=59", "finding", "reads for 59 s"),
        ("--benchmarks=seekrandom --duration=60", "ok", "nothing is written"),
        ("--benchmarks=readseq --duration=5", "ok", "nothing is written"),  # which readseq ignores
        ("--benchmarks=fillrandom --num=$UNKNOWN", "cannot tell", "are not known"),
    ],
)
def test_how_much_db_bench_writes(flags: str, verdict: str, said: str) -> None:
    linted = bench(f"UNKNOWN=$(x)\ndb_bench {flags}", TB)
    assert (of(linted, "short-test").verdict, said in of(linted, "short-test").looked_at) == (verdict, True), linted
    assert covers_all(linted)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("db_bench --benchmarks=readrandom", ["finding"]),
        ("db_bench --benchmarks=fillseq,readrandom", []),
        ("db_bench --benchmarks=fillseq\ndb_bench --benchmarks=readrandom", ["finding"]),
        ("db_bench --benchmarks=fillseq\ndb_bench --benchmarks=readrandom --use_existing_db", []),
        ("db_bench --benchmarks=readrandom --use_existing_db=1", ["cannot tell"]),
        ("db_bench --benchmarks=fillrandom,readrandom", ["finding"]),  # 37 % are not there
        ("db_bench --benchmarks=fillrandom,readrandom --writes=5000000", []),
        ("db_bench --benchmarks=readwhilewriting", ["finding"]),
        ("db_bench --benchmarks=overwrite,readseq", []),
    ],
)
def test_reads_of_what_is_not_there(text: str, found: list[str]) -> None:
    assert [remark.verdict for remark in all_of(bench(text), "empty-store")] == found
    if "fillrandom" in text and found:
        assert "37% of readrandom's keys" in of(bench(text), "empty-store").looked_at


@pytest.mark.parametrize(
    ("flags", "verdict", "said"),
    [
        ("", "finding", "no --compression_type: db_bench's default, Snappy"),
        ("--compression_type=none", "ok", "as they are given"),
        ("--compression_type=zstd --value_size=400 --key_size=20", "finding", "420 B come to about 220 B"),
        ("--compression_type=lz4 --compression_ratio=1.0", "ok", "do not compress"),
        ("--compression=0", "ok", "--compression=0"),
    ],
)
def test_compression(flags: str, verdict: str, said: str) -> None:
    remark = of(bench(f"db_bench --benchmarks=fillseq {flags}"), "compression")
    assert (remark.verdict, said in remark.looked_at) == (verdict, True)


def test_latencies_cache_and_durability() -> None:
    remarked = bench(
        "db_bench --benchmarks=fillseq --histogram --disable_wal --cache_size=1000000000\n"
        "db_bench --benchmarks=overwrite --sync"
    )
    assert "waits for the last" in of(remarked, "closed-loop").looked_at
    rated = bench("db_bench --benchmarks=fillseq --histogram --benchmark_write_rate_limit=1000")
    assert "leaves the wait for the limit out" in of(rated, "closed-loop").looked_at
    assert [remark.verdict for remark in all_of(remarked, "page-cache")] == ["finding", "finding"]
    assert "while others have a log" in of(remarked, "durability").looked_at
    direct = bench("db_bench --benchmarks=fillseq --use_direct_reads --use_direct_io_for_flush_and_compaction=true")
    assert of(direct, "page-cache").verdict == "ok" and not all_of(direct, "closed-loop")
    mixed = bench("db_bench --benchmarks=fillseq\ndb_bench --benchmarks=overwrite --sync=1 --use_existing_db")
    assert "--sync=1 in overwrite and not in the others" in of(mixed, "durability").looked_at


FIO_FILL = "fio --name=p --filename=/dev/nvme0n1 --rw=write --size=100%\n"
BENCH = "db_bench --benchmarks=fillseq --db=/mnt/db\n"


@pytest.mark.parametrize(
    ("before", "verdict", "said"),
    [
        ("", "finding", "as the last user left it"),
        ("blkdiscard /dev/nvme0n1\n", "finding", "a trimmed drive has nothing to collect"),
        (FIO_FILL, "ok", "written before the test"),
        ("dd if=/dev/zero of=/dev/nvme0n1 bs=1M\n", "ok", "written before the test"),
        (FIO_FILL + "mkfs.ext4 /dev/nvme0n1\n", "finding", "mkfs.ext4 /dev/nvme0n1 discards the whole drive"),
        (FIO_FILL + "sudo mkfs.ext4 -E nodiscard /dev/nvme0n1\n", "ok", "written before"),
        ("mkfs.xfs /dev/nvme0n1\n" + FIO_FILL, "ok", "written before"),
    ],
)
def test_what_stands_before_the_test_in_a_script(before: str, verdict: str, said: str) -> None:
    remark = of(bench(before + BENCH), "initial-state")
    assert (remark.verdict, said in remark.looked_at) == (verdict, True)


@pytest.mark.parametrize(
    ("around", "verdict"),
    [
        ("{}", "finding"),
        ("nvme smart-log /dev/nvme0\n{}nvme smart-log /dev/nvme0\n", "finding"),  # host bytes alone
        ("smartctl -A /dev/sda\n{}", "finding"),  # once
        ("nvme ocp smart-add-log /dev/nvme0\n{}nvme ocp smart-add-log /dev/nvme0\n", "ok"),
    ],
)
def test_who_reads_the_drives_counters(around: str, verdict: str) -> None:
    assert of(bench(around.format(BENCH)), "wa-device").verdict == verdict


def test_sizes_partitions_and_the_stores_size() -> None:
    remarked = bench(f"sgdisk -n 1:0:+300G /dev/sda\n{BENCH}du -s /mnt/db\n{BENCH.replace('seq', 'seq --num=9000000')}")
    assert {slug: of(remarked, slug).verdict for slug in ("data-set", "space", "over-provisioning", "drive-type")} == {
        "data-set": "ok", "space": "ok", "over-provisioning": "ok", "drive-type": "finding",
    }  # fmt: skip


# ---------------------------------------------------------------- YCSB


def test_properties_as_java_reads_them() -> None:
    text = "# c\n! d\na=1\nb : 2\nc 3\na=4\nlong=x\\\n   y\n e = f = g \n"
    assert parse_properties(text) == {"a": "4", "b": "2", "c": "3", "long": "xy", "e": "f = g"}


def test_ycsbs_own_workload_is_small_skewed_and_closed() -> None:
    linted = ycsb("bin/ycsb load rocksdb -P workloads/workloada; bin/ycsb run rocksdb -P workloads/workloada")
    assert covers_all(linted)
    assert [remark.verdict for remark in all_of(linted, "short-test")] == ["finding", "finding"]
    assert "recordcount=1000, 976.6 KiB" in all_of(linted, "short-test")[0].looked_at  # 1000 x 10 x 100 B
    assert "operationcount=1000, 488.3 KiB" in all_of(linted, "short-test")[1].looked_at  # half of them write
    assert "57% of the 1000 records (uniform: 63%)" in of(linted, "skew").looked_at
    assert "fit in one memtable" in of(linted, "page-cache").looked_at
    assert "no -target" in of(linted, "closed-loop").looked_at


@pytest.mark.parametrize(
    ("text", "slug", "verdicts"),
    [
        ("ycsb run rocksdb -P workloada", "empty-store", ["cannot tell"]),
        ("ycsb load rocksdb -P workloada -p recordcount=5; ycsb run rocksdb -P workloada", "empty-store", ["finding"]),
        ("ycsb load rocksdb -P workloada; ycsb run rocksdb -P workloada", "empty-store", []),
        ("ycsb run rocksdb -P workloada -target 100", "closed-loop", ["finding"]),
        ("ycsb run rocksdb -P workloada -target 100 -p measurement.interval=intended", "closed-loop", []),
        ("ycsb run rocksdb -P workloadc", "short-test", ["ok"]),
        ("ycsb run rocksdb -P workloada -p operationcount=8000000000", "short-test", ["ok"]),
        (
            "ycsb run rocksdb -P workloada -p operationcount=8000000000 -p maxexecutiontime=60",
            "short-test",
            ["finding"],
        ),
        ("ycsb run rocksdb -P workloada -p rocksdb.optionsfile=o.ini", "compression", []),
        ("ycsb run rocksdb -P workloada", "compression", ["finding"]),
        ("ycsb run rocksdb -P workloada -p requestdistribution=uniform", "skew", []),
        ("ycsb run rocksdb -P workloadd", "skew", ["finding"]),
        ("./ycsb -run -db rocksdb -P workloada -p recordcount=1000000", "page-cache", ["finding"]),
    ],
)
def test_calls_of_ycsb(text: str, slug: str, verdicts: list[str]) -> None:
    assert [remark.verdict for remark in all_of(ycsb(text, TB), slug)] == verdicts


def test_property_files_are_found_where_they_are_named(tmp_path: Path) -> None:
    (tmp_path / "w").mkdir()
    (tmp_path / "w/mine").write_text("recordcount=200000000\noperationcount=5\n")
    (tmp_path / "go.sh").write_text("ycsb load rocksdb -P w/mine -p fieldcount=1\n")
    (linted,) = lint(str(tmp_path / "go.sh"), TB)
    assert "recordcount=2e+08, 18.6 GiB" in of(linted, "short-test").looked_at
    (linted,) = lint(str(tmp_path / "w/mine"))
    assert [remark.pitfall.slug for remark in linted.remarks].count("short-test") == 2  # its load and its run


# ---------------------------------------------------------------- recipes


@pytest.mark.parametrize(
    "path", sorted(RECIPES.glob("*.*o*")) + sorted(RECIPES.glob("*.sh")), ids=lambda path: path.name
)
def test_the_tables_of_the_recipes(path: Path, invoke: Invoke, golden: Golden, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(RECIPES)
    ended = invoke("lint", path.name, "--capacity", "1TB")
    assert (ended.code, ended.err) == (1, "")
    golden(f"lint-{path.name}.txt", ended.out)


def test_a_script_that_measures_with_two_tools_has_a_table_for_each() -> None:
    tables = lint(str(RECIPES / "mqssd-rocksdb.sh"), TB)
    assert [(table.kind, table.open) for table in tables] == [("db_bench", 4), ("fio", 0)]


def test_variables_of_a_script_can_be_given(tmp_path: Path, invoke: Invoke) -> None:
    script = tmp_path / "go"
    script.write_text("#!/bin/sh\n./db_bench --benchmarks=fillseq --num=${NUM_KEYS:-8000000000} $EXTRA\n")
    assert "8e+09 x 116 B" in invoke("lint", script).out
    assert "5 x 116 B" in invoke("lint", script, "--env", "NUM_KEYS=5").out


def test_garbage_is_read_or_refused_and_nothing_else(tmp_path: Path) -> None:
    """Cut, doubled and spoilt recipes: a table, or one sentence."""
    random = np.random.default_rng(7)
    seeds = [path.read_text() for path in sorted(RECIPES.iterdir())]
    signs = list("\"'`$(){}[]|&;<>\\\n #=-*?!~%09azK:,./\té")
    for index in range(300):
        text = list(seeds[index % len(seeds)])
        for _ in range(int(random.integers(1, 30))):
            at = int(random.integers(0, len(text)))
            text[at : at + int(random.integers(0, 20))] = list(random.choice(signs, size=int(random.integers(0, 3))))
            text = text or ["x"]
        path = tmp_path / ("a.fio" if index % 3 == 0 else "a")
        path.write_text("".join(text))
        try:
            assert all(table.remarks for table in lint(str(path)))
        except SpillwayError as refused:
            assert "\n" not in str(refused)


def nested(depth: int) -> str:
    return "[" + ".".join("a" for _ in range(depth)) + "]\nx = 1\n"


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("a.toml", nested(3000), "nested too deep"),
        ("a.toml", "a = " + "[" * 5000 + "]" * 5000, "nested too deep"),
        ("a.toml", "[load]\nnum = " + "9" * 5000, "too many digits"),
        ("a.toml", "name = \n", "this is not TOML"),
        ("a.toml", "name = 'x'\nfoo = 1\n", "foo is not a key"),
        ("a.sh", "ycsb load rocksdb -P 'gone\nand more\n", "-P gone and more is not there"),
        ("a.fio", "include /dev/zero\n[a]\n", "larger than 1 MiB"),
        ("a.fio", "include a.fio\n[a]\n", "include each other"),
        ("a.fio", "[a]\nrw=write\n" * 3000, "more than 2000 jobs"),
    ],
)
def test_hostile_files_are_refused_in_one_sentence(
    name: str, text: str, said: str, tmp_path: Path, invoke: Invoke
) -> None:
    (tmp_path / name).write_text(text)
    ended = invoke("lint", tmp_path / name)
    assert (ended.code, said in ended.err, len(ended.err.splitlines())) == (2, True, 1), ended.err


def test_a_file_without_an_end_is_refused(invoke: Invoke) -> None:
    ended = invoke("lint", "/dev/zero")
    assert (ended.code, "larger than" in ended.err) == (2, True)


@pytest.mark.parametrize("number", ["-1e9", "nan", "inf", "1e308", "", "9" * 400])
def test_numbers_that_are_none_in_a_job_are_not_counted_with(number: str) -> None:
    steps = f"[fill]\nrw=randwrite\nnorandommap\nloops={number}\nnumjobs={number}\nio_size={number}\n"
    reads = f"[m]\nstonewall\nrw=randread\ntime_based\nruntime=60\nrate_iops={number}\n"
    assert covers_all(fio(DEVICE + steps, TB))
    assert covers_all(fio(DEVICE + steps + reads, TB))
