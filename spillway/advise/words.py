"""Tables and sentences of an answer, for a terminal."""

from collections.abc import Callable, Sequence

from spillway.advise.configuration import in_words
from spillway.advise.others import Others
from spillway.advise.predict import Figure, Prediction
from spillway.advise.rank import keeps, limits_of, time_words
from spillway.advise.reasons import difference, reasons
from spillway.advise.search import Advice
from spillway.advise.verify import Verified
from spillway.quantity import human_bytes

Rows = list[tuple[str, ...]]

HEADER = ("", "operations/s", "p99", "wa_app", "wa_device", "flash B/op", "years", "space", "limited by")
REASON_HEADER = ("line", "value", "why")
VERIFIED: tuple[tuple[str, str, Callable[[float], str]], ...] = (
    ("operations/s", "throughput_ops_s", lambda value: f"{value:,.0f}"),
    ("wa_app", "wa_app", lambda value: f"{value:.2f}"),
    ("wa_device", "wa_device", lambda value: f"{value:.2f}"),
    ("wa_total", "wa_total", lambda value: f"{value:.2f}"),
    ("space", "held_bytes", human_bytes),
    ("p99 of puts", "p99_us.put", time_words),
    ("p99 of gets", "p99_us.get", time_words),
    ("p99 of scans", "p99_us.scan", time_words),
    ("p99 of rmws", "p99_us.rmw", time_words),
)
LEAST_SHARE = 1e-9  # of a mix: less is a difference of shares that are equal
VERIFIED_HEADER = ("arm", "figure", "predicted", "interval", "measured", "ratio", "within")
WITHIN = {None: "–", True: "yes", False: "no"}


def asked(advice: Advice) -> str:
    """What was asked, and of which drive, in two sentences."""
    request = advice.request
    load, drive = request.load, request.drive
    mix = ", ".join(
        f"{share:.0%} {name}"
        for name, share in (
            ("puts", load.puts - load.rmws),
            ("gets", load.gets - load.rmws),
            (f"scans of {load.scan_pairs} pairs", load.scans),
            ("read-modify-writes", load.rmws),
        )
        if share > LEAST_SHARE
    )
    keys = "uniform keys" if load.skew is None else f"zipfian keys ({load.skew:g})"
    rate = "as fast as it goes" if load.rate_ops_s is None else f"{load.rate_ops_s:,.6g} operations/s"
    clients = f"{load.clients} client thread{'s' if load.clients > 1 else ''}"
    data = f"{human_bytes(load.data_bytes)} in {load.pairs:,} pairs of {load.pair_bytes} bytes"
    first = f"{data}; {mix}; {keys}; {clients}, {rate}; {request.cores} cores, "
    remarks = f" ({'; '.join(drive.remarks)})" if drive.remarks else ""
    second = f"Drive: {drive.words}, {human_bytes(drive.capacity_bytes)}{remarks}."
    counts = f"{advice.considered:,} configurations considered, {advice.simulated} simulations."
    return f"{first}{human_bytes(request.limits.memory_bytes)} of memory.\n{second} {counts}"


def rows(predictions: Sequence[Prediction], first: int = 1) -> Rows:
    """Two rows for each: the figures, and their intervals below."""
    found: Rows = []
    for at, each in enumerate(predictions, first):
        found += _two_rows(f"{at}", each)
    return found


def rival_rows(advice: Advice) -> Rows:
    """The same of the rivals and of the best of shapes that are not among the ranked, by name."""
    limits = limits_of(advice.request.load, advice.request.limits)
    found: Rows = []
    for name, each in (advice.rivals | advice.shapes).items():
        found += _two_rows(name if keeps(each, limits) else f"{name} (not within the limits)", each)
    return found


def configurations(predictions: Sequence[Prediction]) -> list[str]:
    """What the numbers of the table stand for."""
    return [f"{at}  {in_words(each.config)}" for at, each in enumerate(predictions, 1)]


def comparison(advice: Advice) -> list[str]:
    """The winner against each of the same, in a sentence."""
    found = [f"{name}: {difference(advice.winner, each)}." for name, each in advice.rivals.items()]
    found += [f"{name} ({in_words(each.config).partition(', ')[2]}): {difference(advice.winner, each)}."
              for name, each in advice.shapes.items()]  # fmt: skip
    found += [f"{name}: the drive has no room for its data and compactions." for name in advice.without_room]
    names = {"yours": f"yours ({advice.request.current_name})"} if advice.request.current_name else {}
    return found + [f"{names.get(name, name)} was not simulated: {why}" for name, why in advice.refused.items()]


def reason_rows(advice: Advice) -> Rows:
    """Every line of the winner and why."""
    return [(each.line, each.value, each.sentence) for each in reasons(advice)]


def other_rows(others: Others) -> Rows:
    """Advice on what is no LSM tree."""
    return list(others.sentences())


def verified_rows(verified: Sequence[Verified]) -> Rows:
    """Predicted beside measured, a row for each figure of an arm, and whether it lies in the interval."""
    found: Rows = []
    for each in verified:
        name = each.name
        for title, figure, form in VERIFIED:
            value, of, ratio = each.value(figure), each.expected(figure), each.ratio(figure)
            if of is None:
                continue
            found.append(
                (
                    *(name, title, form(of.value), f"{form(of.low)}–{form(of.high)}"),
                    *("–" if value is None else form(value), "–" if ratio is None else f"{ratio:.2f}"),
                    WITHIN[each.is_within(figure)],
                )
            )
            name = ""
    return found


def intervals() -> str:
    """What the second lines are."""
    return (
        "Below each figure its interval: the range over seeds and the model's error, which docs/ADVISE.md states; "
        "p99 is the highest of any kind of operation."
    )


def _two_rows(name: str, each: Prediction) -> Rows:
    worst = max(each.p99_us.items(), key=lambda pair: pair[1].value)
    years = "–" if each.years is None else _years(each.years.value)
    own = (
        name,
        f"{each.throughput_ops_s.value:,.0f}",
        f"{time_words(worst[1].value)} ({worst[0]})",
        f"{each.wa_app.value:.2f}",
        f"{each.wa_device.value:.2f}",
        f"{each.flash_bytes_per_op.value:,.0f}",
        years,
        human_bytes(each.held_bytes.value),
        each.limited_by,
    )
    below = (
        "",
        _between(each.throughput_ops_s, ",.0f"),
        f"{time_words(worst[1].low)}–{time_words(worst[1].high)}",
        _between(each.wa_app, ".2f"),
        _between(each.wa_device, ".2f"),
        _between(each.flash_bytes_per_op, ",.0f"),
        "" if each.years is None else f"{_years(each.years.low)}–{_years(each.years.high)}",
        f"{human_bytes(each.held_bytes.low)}–{human_bytes(each.held_bytes.high)}",
        "",
    )
    return [own, below]


def _between(figure: Figure, form: str) -> str:
    return f"{figure.low:{form}}–{figure.high:{form}}"


def _years(value: float) -> str:
    return f"{value:.3g}" if value < 100 else ">100"
