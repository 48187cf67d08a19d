"""Builds and tests this commit with every RocksDB that it is for: `make compat`.

    .venv/bin/python scripts/compat.py [VERSION ...]        all of VERSIONS
    .venv/bin/python scripts/compat.py --crash-times 5 --metamorphic-seconds 120 11.8.1

7.8.3 is the system's (Debian 12). 9.10.0 is Debian 13's: a root made by debootstrap in build-compat/ and entered with
chroot, by root. 11.8.1 is built from source once by scripts/rocksdb.sh and kept. Each has a clone of this commit, where
everything is built; then come the native tests, the Python tests, which run programs that nobody rebuilt, the crash
tests, the metamorphic test, an arm of the demo, and how long ingestions keep writers out. What came of each step goes
to runs/compat/VERSION.json with its manifest, and by `make docs` into docs/LIBRARY.md.

Exit code 1: a step has failed; the others of that version are not tried. Exit code 2: the tree differs from its commit,
or a version cannot be had here.
"""

import argparse
import json
import os
import re
import shlex
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import bench

ROOT = Path(__file__).resolve().parents[1]
PLACE = ROOT / "build-compat"
RESULTS = ROOT / "runs" / "compat"
SYSTEM, DEBIAN_13, FROM_SOURCE = "7.8.3", "9.10.0", "11.8.1"
VERSIONS = (SYSTEM, DEBIAN_13, FROM_SOURCE)


# The closing lines of ctest, pytest and GoogleTest.
PASSED = re.compile(
    r"^(?:100% tests passed, 0 tests failed out of (\d+)|(\d+) passed\b.*|\[  PASSED  \] (\d+) tests?\.)$", re.M
)


class UnavailableError(Exception):
    """A version that cannot be had on this machine; the message says why."""


@dataclass(frozen=True)
class Site:
    """Where a version is tried: its clone, and the command that runs a shell line there."""

    entered: Path  # where commands are started
    checkout: Path
    command: Callable[[str], list[str]]
    environment: dict[str, str]

    def run(self, line: str, log: Path) -> int:
        """The line's exit code; its output goes to the end of `log`."""
        with log.open("ab") as out:
            out.write(f"\n$ {line}\n".encode())
            out.flush()
            done = subprocess.run(
                self.command(line),
                cwd=self.entered,
                env=os.environ | self.environment,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=subprocess.STDOUT,
                check=False,
            )
        return done.returncode


def in_shell(line: str) -> list[str]:
    """As it would be typed."""
    return ["sh", "-c", line]


def clone(to: Path) -> None:
    """This commit, in a clone that keeps what an earlier one has built."""
    if not (to / ".git").exists():
        to.parent.mkdir(parents=True, exist_ok=True)
        subprocess.run(["git", "clone", "--quiet", str(ROOT), str(to)], check=True)
    commit = bench.git("rev-parse", "HEAD")
    subprocess.run(["git", "fetch", "--quiet", str(ROOT), commit], cwd=to, check=True)
    subprocess.run(["git", "checkout", "--quiet", "--force", commit], cwd=to, check=True)
    subprocess.run(["git", "clean", "-d", "--force", "--quiet", "runs"], cwd=to, check=True)  # of an earlier try


def system_version() -> str:
    """Of the RocksDB that pkg-config finds; "none" without one."""
    asked = subprocess.run(["pkg-config", "--modversion", "rocksdb"], capture_output=True, text=True, check=False)
    return asked.stdout.strip() or "none"


def of_the_system() -> Site:
    """Raises UnavailableError where the system has another version."""
    if (found := system_version()) != SYSTEM:
        raise UnavailableError(f"this system's RocksDB is {found}, not {SYSTEM}")
    clone(PLACE / SYSTEM)
    return Site(PLACE / SYSTEM, PLACE / SYSTEM, in_shell, {})


def from_source() -> Site:
    """Raises CalledProcessError if RocksDB cannot be built."""
    subprocess.run([str(ROOT / "scripts" / "rocksdb.sh"), FROM_SOURCE], check=True, stdout=sys.stderr)
    prefix = ROOT / "build-rocksdb" / FROM_SOURCE
    clone(PLACE / FROM_SOURCE)
    environment = {
        "PKG_CONFIG_PATH": f"{prefix}/lib/pkgconfig",
        "CMAKE_PREFIX_PATH": str(prefix),
        "LD_LIBRARY_PATH": f"{prefix}/lib",
        "PATH": f"{prefix}/bin:{os.environ['PATH']}",  # its own db_bench and ldb, which tests run
    }
    return Site(PLACE / FROM_SOURCE, PLACE / FROM_SOURCE, in_shell, environment)


def debian_mirror() -> str:
    """From which this system takes its packages. Raises UnavailableError if it is not a Debian."""
    listed = subprocess.run(
        ["apt-get", "indextargets", "--format", "$(SITE)"], capture_output=True, text=True, check=False
    )
    for site in listed.stdout.splitlines():
        if site.rstrip("/").endswith("/debian"):
            return site
    raise UnavailableError("this system has no Debian mirror among the sources of apt")


def debian_13() -> Site:
    """Raises UnavailableError without root or a mirror, CalledProcessError if the root cannot be made."""
    if os.geteuid() != 0:
        raise UnavailableError("a Debian 13 can be made and entered by root only")
    root = PLACE / "debian-13"
    if not (root / "complete").exists():
        PLACE.mkdir(exist_ok=True)
        # What the set-up script would fetch first, and the certificates with which it fetches.
        with_packages = "--include=ca-certificates,git,make,python3,sudo"
        command = ["debootstrap", "--variant=minbase", with_packages, "trixie", str(root), debian_mirror()]
        subprocess.run(command, check=True, stdout=sys.stderr)
        (root / "complete").touch()
    for name in ("etc/resolv.conf", "etc/hosts", "etc/pip.conf", "etc/ssl/certs/ca-certificates.crt"):
        if (source := Path("/") / name).exists():
            (root / name).write_bytes(source.read_bytes())
    clone(root / "spillway")

    def inside(line: str) -> list[str]:
        # The mounts are of a namespace that ends with the command.
        mounts = "mount --rbind /dev $0/dev && mount -t proc proc $0/proc && mount --rbind /sys $0/sys"
        enter = f'{mounts} && exec chroot "$0" sh -c "cd /spillway && $1"'
        return ["unshare", "--mount", "sh", "-c", enter, str(root), line]

    return Site(root, root / "spillway", inside, {"LC_ALL": "C.UTF-8", "TMPDIR": "/tmp"})


# How long a rollback's last step keeps writers out, which two-phase ingestion shortens from RocksDB 11.5 on.
INGESTION = "spill_ingestion"

SITES = {SYSTEM: of_the_system, DEBIAN_13: debian_13, FROM_SOURCE: from_source}


def steps(crash_times: int, metamorphic_seconds: int, seed: int) -> dict[str, str]:
    """What is done with each version: name → shell line in its clone."""
    jobs = os.cpu_count() or 1
    measured = f".venv/bin/python scripts/bench.py {INGESTION}"
    metamorphic = f"SPILLWAY_METAMORPHIC_SECONDS={metamorphic_seconds} build/tests/native/test_spill"
    return {
        "build": "scripts/setup.sh test",
        "native tests": f"ctest --test-dir build --output-on-failure --parallel {jobs + 1} --label-exclude fuzz",
        "Python tests": f".venv/bin/python -m pytest --numprocesses {jobs + 1} --dist loadfile --no-loadscope-reorder",
        "crash tests": f"build/tests/native/test_crash --times {crash_times} --seed {seed}",
        "metamorphic test": f"{metamorphic} --gtest_filter=SpillMetamorphic.*",
        "demo": "rm -rf runs/demo && .venv/bin/spillway run plans/demo.toml --arm Spillway --out runs/demo",
        "ingestion": f"cmake -DSPILLWAY_BENCH=ON build && cmake --build build --target bench_{INGESTION} && {measured}",
    }


def passed_tests(log: Path, begun: int) -> int | None:
    """How many tests the runner says have passed in what was logged from byte ``begun`` on; None where none ran."""
    with log.open("rb") as text:
        text.seek(begun)
        counts = PASSED.findall(text.read().decode(errors="replace"))
    return int("".join(counts[-1])) if counts else None


def try_version(version: str, lines: dict[str, str]) -> bool:
    """Runs the steps and writes the record. Returns whether all of them have passed."""
    site = SITES[version]()
    log = PLACE / f"{version}.log"
    log.write_bytes(b"")
    results = []
    for name, line in lines.items():
        print(f"{version}: {name}", file=sys.stderr, flush=True)
        began, begun = time.monotonic(), log.stat().st_size
        code = site.run(line, log)
        took = round(time.monotonic() - began, 1)
        results.append(
            {"step": name, "command": line, "exit": code, "seconds": took, "tests": passed_tests(log, begun)}
        )
        if code != 0:
            print(f"{version}: {name} has failed; {log.relative_to(ROOT)} says why", file=sys.stderr)
            break
    passed = all(one["exit"] == 0 for one in results) and len(results) == len(lines)
    command = shlex.join([".venv/bin/python", "scripts/compat.py", *sys.argv[1:]])
    record = {"rocksdb": version, **bench.manifest([command]), "passed": passed, "steps": results}
    if passed:
        measured = json.loads((site.checkout / "runs" / "bench" / f"{INGESTION}.json").read_text())
        record["ingestion"] = measured["result"]
    RESULTS.mkdir(parents=True, exist_ok=True)
    (RESULTS / f"{version}.json").write_text(json.dumps(record, indent=1) + "\n")
    return passed


def main(arguments: list[str]) -> int:
    """Exit code as above."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("versions", nargs="*", metavar="VERSION", help=f"of {', '.join(VERSIONS)}; default: all")
    parser.add_argument("--crash-times", type=int, default=5, help="as many kills as in make test, times this (5)")
    parser.add_argument("--metamorphic-seconds", type=int, default=120)
    given = parser.parse_args(arguments)
    unknown = [version for version in given.versions if version not in SITES]
    if unknown:
        print(f"compat: {unknown[0]} is not tried; {', '.join(VERSIONS)} are", file=sys.stderr)
        return 2
    if changed := bench.changed_files():
        print(f"compat: {changed[0]} differs from its commit, so nobody could try the same again", file=sys.stderr)
        return 2
    lines = steps(given.crash_times, given.metamorphic_seconds, int(time.time()))
    passed = True
    for version in given.versions or VERSIONS:
        try:
            passed = try_version(version, lines) and passed
        except UnavailableError as error:
            print(f"compat: {version}: {error}", file=sys.stderr)
            return 2
    return 0 if passed else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
