"""The colours of the report, in one place, so that a thing has one colour on every chart."""

INK = "#1b2430"
MUTED = "#66707c"
RULE = "#dfe3e8"
BLUE = "#2a5d9c"
ORANGE = "#c26a2d"
GREEN = "#4d8b57"
GREY = "#8d96a1"
VIOLET = "#7a5aa6"
TEAL = "#2b8a8a"

STALLS = {"memtable": "#e3a008", "l0": "#d6455d", "pending_compaction_bytes": "#8558b5"}
_MORE_STALLS = ("#2b8a8a", "#b08968", "#5a7d2b", "#a33f8f")  # of causes that other engines have
_STALL_WORDS = {"memtable": "full memtables", "l0": "too many L0 files"}


def stall_words(cause: str) -> str:
    """A cause of stall for people; the engine's own name where nothing better is known."""
    return _STALL_WORDS.get(cause, cause.replace("_", " "))


def stall_colour(cause: str) -> str:
    """The same colour for a cause wherever it is drawn."""
    return STALLS.get(cause) or _MORE_STALLS[sum(cause.encode()) % len(_MORE_STALLS)]


NAND = {"host": BLUE, "gc": ORANGE, "mapping": GREEN, "wear": GREY, "fold": VIOLET}
HOST = {
    "wal": TEAL,
    "flush": BLUE,
    "compaction": ORANGE,
    "blob": GREEN,
    "manifest": VIOLET,
    "checkpoint": "#b08968",
    "user": INK,
    "other": GREY,
    "spill": "#b23a6f",
}
ARMS = (BLUE, ORANGE, GREEN, VIOLET, TEAL, "#b23a6f", GREY)

FONT = "system-ui, -apple-system, 'Segoe UI', 'Helvetica Neue', Arial, sans-serif"

# One colour for each step of something that grows (threads, access sizes), light to dark.
STEPS = ("#a8cfe0", "#7fb3d3", "#5a96c2", "#3b78ab", "#2a5d9c", "#2b4680", "#2c3162", "#1b1d3f")
READ, WRITE = BLUE, ORANGE


def steps(count: int) -> list[str]:
    """``count`` colours, light to dark, as far apart as they can be."""
    last = len(STEPS) - 1
    return [STEPS[round(i * last / max(1, count - 1))] for i in range(count)]
