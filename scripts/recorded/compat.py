"""The tables of runs/compat/, which `make compat` writes."""

from recorded.markdown import table
from recorded.records import Document, Records

NEWEST = "11.8.1"  # the only one of them that ingests in two phases


def versions(records: Records) -> list[str]:
    """What was tried with each RocksDB, with the tests that passed where they are counted."""
    found = [records.compat(version) for version in records.rocksdbs()]
    names = list(dict.fromkeys(step["step"] for each in found for step in each["steps"]))
    rows = [(name, *(_cell(each, name) for each in found)) for name in names]
    rows.append(("date", *(each["date"][:10] for each in found)))
    rows.append(("commit", *(each["commit"] for each in found)))
    return table(("RocksDB", *(each["rocksdb"] for each in found)), rows)


def _cell(tried: Document, name: str) -> str:
    for step in tried["steps"]:
        if step["step"] == name:
            if step["exit"] != 0:
                return f"**failed** with {step['exit']}"
            return f"passed, {step['tests']:,} tests" if step["tests"] else "passed"
    return "not tried"


def ingestion(records: Records) -> list[str]:
    """For how long writers are kept out: by an ingestion in one call, and by one that was prepared before."""
    result = records.compat(NEWEST)["ingestion"]
    by_size: dict[tuple[int, str], dict[int, str]] = {}
    for row in result["rows"]:
        took = row["commit_ms"]
        cell = f"{took['median']:.1f} ({took['min']:.1f}–{took['max']:.1f})"
        by_size.setdefault((row["mib"], row["files"]), {})[row["phases"]] = cell
    rows = [(f"{mib} MiB, {files}", cells[1], cells[2]) for (mib, files), cells in by_size.items()]
    return table(("ingested", "one call, ms", "second of two phases, ms"), rows)
