"""The recorded runs: what `make bench` and scripts/record_suite.py leave in runs/."""

import csv
import io
import json
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from spillway.errors import SpillwayError

Document = dict[str, Any]
Rows = list[dict[str, str]]


@dataclass(frozen=True)
class Records:
    """Those of the checkout at ``root``. Each method raises SpillwayError for a file that is missing or damaged."""

    root: Path

    def bench(self, name: str) -> Document:
        """runs/bench/NAME.json, whole."""
        return self._json(f"runs/bench/{name}.json")

    def result(self, name: str) -> Any:
        """What the benchmark NAME printed."""
        return self.bench(name)["result"]

    def compat(self, version: str) -> Document:
        """runs/compat/VERSION.json, whole."""
        return self._json(f"runs/compat/{version}.json")

    def about(self, suite: str) -> Document:
        """How a suite was run."""
        return self._json(f"runs/suites/{suite}/about.json")

    def claims(self, suite: str) -> Rows:
        """A suite's verdicts, one row for each figure or relation."""
        return list(csv.DictReader(io.StringIO(self._text(f"runs/suites/{suite}/claims.csv"))))

    def runs(self, suite: str) -> Rows:
        """A suite's runs, in their order."""
        return list(csv.DictReader(io.StringIO(self._text(f"runs/suites/{suite}/runs.csv"))))

    def concurrency(self, name: str) -> Rows:
        """runs/concurrency/NAME.csv."""
        return list(csv.DictReader(io.StringIO(self._text(f"runs/concurrency/{name}.csv"))))

    def about_concurrency(self) -> Document | None:
        """How it was recorded; None where it was not."""
        has_one = (self.root / "runs" / "concurrency" / "about.json").is_file()
        return self._json("runs/concurrency/about.json") if has_one else None

    def statements(self, suite: str) -> dict[str, str]:
        """A sentence for each claim of a suite, from the suite itself."""
        path = self.root / "plans" / suite / "claims.toml"
        if not path.is_file():
            return {}
        statements: dict[str, str] = tomllib.loads(path.read_text(encoding="utf-8")).get("statements", {})
        return statements

    def benches(self) -> list[str]:
        """The names of all recorded benchmarks."""
        return sorted(path.stem for path in self.root.glob("runs/bench/*.json"))

    def rocksdbs(self) -> list[str]:
        """The versions of RocksDB that were tried, the oldest first."""
        found = [path.stem for path in self.root.glob("runs/compat/*.json")]
        return sorted(found, key=lambda version: [int(part) for part in version.split(".")])

    def suites(self) -> list[str]:
        """The names of all recorded suites."""
        return sorted(path.parent.name for path in self.root.glob("runs/suites/*/about.json"))

    def _text(self, name: str) -> str:
        try:
            return (self.root / name).read_text(encoding="utf-8")
        except OSError as error:
            raise SpillwayError(f"{name} cannot be read: {error.strerror}.") from error
        except UnicodeDecodeError as error:
            raise SpillwayError(f"{name} is no text in UTF-8.") from error

    def _json(self, name: str) -> Document:
        try:
            document: Document = json.loads(self._text(name))
        except ValueError as error:
            raise SpillwayError(f"{name} is no JSON: {error}.") from error
        return document
