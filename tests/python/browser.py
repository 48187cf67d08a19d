"""Headless Chromium for the tests: what a page drew, and what it complained of."""

import re
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

from needs import need

NAMES = ("chromium", "google-chrome", "chromium-browser")
FLAGS = [
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync"),
    *("--disable-background-networking", "--disable-component-update", "--hide-scrollbars"),
    *("--enable-logging=stderr", "--v=0", "--virtual-time-budget=10000"),
]


@dataclass(frozen=True)
class Visit:
    """What came of opening a page."""

    output: str
    console: list[str]


def browser() -> str:
    """The browser on this machine."""
    found = next(filter(None, map(shutil.which, NAMES)), None)
    need(found, "Chromium, which opens reports")
    assert found is not None
    return found


def visit(page: Path, *flags: str) -> Visit:
    """Opens a file with the network cut off, and returns what was printed and what the console said."""
    with tempfile.TemporaryDirectory() as profile:
        command = [browser(), *FLAGS, f"--user-data-dir={profile}", "--host-resolver-rules=MAP * ~NOTFOUND", *flags]
        done = subprocess.run(
            [*command, page.absolute().as_uri()], capture_output=True, text=True, timeout=120, check=False
        )
    return Visit(done.stdout, re.findall(r'CONSOLE[^\]]*\] (".*?), source:', done.stderr, re.DOTALL))


def complaints(console: list[str]) -> list[str]:
    """Everything on the console but the chart library's remark on its own log level."""
    return [line for line in console if "setting log level" not in line]
