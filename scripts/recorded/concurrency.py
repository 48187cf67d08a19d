"""What concurrency buys on the presets: the tables of scripts/concurrency.py."""

from collections.abc import Iterable

from recorded.markdown import count, table
from recorded.records import Records

Row = dict[str, str]


def speed_ups(records: Records, program: str) -> list[str]:
    """A program on every preset: one I/O at a time against many, beside the formulas."""
    rows = [row for row in records.concurrency("speed-ups") if row["program"] == program]
    if not rows:
        raise LookupError(program)
    writes = any(int(row["many_pages_written"]) for row in rows)
    name = "S''" if writes else "S'"
    header = ["preset", "k_r", *(["k_w"] if writes else []), "alpha", "read", *(["written"] if writes else [])]
    header += [
        "one at a time, s",
        "at once, s",
        "in flight",
        "speed-up",
        *(["by threads"] if writes else []),
        f"{name} as published",
        f"{name} by own gains",
    ]
    return table(header, [_speed_up(row, writes) for row in rows])


def _speed_up(row: Row, writes: bool) -> list[str]:
    pages = [count(int(row["many_pages_read"])), *([count(int(row["many_pages_written"]))] if writes else [])]
    ks = [row["k_r"], *([row["k_w"]] if writes else [])]
    seconds = [f"{float(row[name]):.3f}" for name in ("one_seconds", "many_seconds")]
    measured = ["speed_up", *(["speed_up_by_threads"] if writes else [])]
    ratios = [f"{float(row[name]):.2f}" for name in (*measured, "formula", "own_gains")]
    in_flight = f"{float(row['many_in_flight']):.1f}"
    return [f"`{row['preset']}`", *ks, f"{float(row['alpha']):.2f}", *pages, *seconds, in_flight, *ratios]


def asymmetry(records: Records) -> list[str]:
    """Programs by plans that count what a write costs, where the plan is another one than that which does not."""
    rows = records.concurrency("asymmetry")
    cells = []
    for row in rows:
        if row["asymmetric"] == "True":
            other = next(
                each
                for each in rows
                if (each["program"], each["preset"]) == (row["program"], row["preset"]) and each is not row
            )
            cells.append(_plans(other, row))
    header = ("program", "preset", "alpha", "a write as a read", "s", "asymmetry counted", "s", "gain")
    return table(header, sorted(cells, key=lambda cell: cell[0]))


def _plans(plain: Row, counted: Row) -> list[str]:
    def words(row: Row) -> str:
        return f"{row['plan']}; {row['reads_ahead']} ahead, {row['writes_behind']} behind"

    def same(row: Row) -> str:
        return "the same" if words(row) == words(plain) else words(row)

    gain = float(plain["seconds"]) / float(counted["seconds"]) - 1
    seconds = [f"{float(row['seconds']):.3f}" for row in (plain, counted)]
    alpha = f"{float(counted['alpha']):.2f}"
    name = f"`{counted['preset']}`"
    return [counted["program"], name, alpha, words(plain), seconds[0], same(counted), seconds[1], f"{gain:+.1%}"]


def write_back(records: Records) -> list[str]:
    """Pools that choose n_w: what they chose, and their rate over that of the best fixed n_w."""
    rows = records.concurrency("write-back")
    cells = []
    for preset in dict.fromkeys(row["preset"] for row in rows):
        ways = {row["way"]: row for row in rows if row["preset"] == preset}
        first = next(iter(ways.values()))
        fixed = [f"`{preset}`", f"{float(first['k_w']):.1f}", first["best_write_back"]]
        chosen = [cell for way in ("profile", "auto") for cell in _chosen(ways.get(way))]
        cells.append([*fixed, f"{float(first['best_speed_up']):.2f}", *chosen])
    header = (
        "preset",
        "k_w",
        "best fixed n_w",
        "over n_w = 1",
        "from k_w",
        "of the best",
        "while it runs",
        "of the best",
    )
    return table(header, cells)


def _chosen(row: Row | None) -> Iterable[str]:
    if row is None:
        return ("–", "–")
    return (f"{float(row['write_back']):.0f}", f"{float(row['of_best']):.3f}")
