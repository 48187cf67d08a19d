"""Progress bars on standard error, fed by the events of a native process."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeRemainingColumn

from spillway.cli.printing import err
from spillway.native.process import Event
from spillway.quantity import human_bytes


@contextmanager
def progress_bars() -> Iterator[Callable[[str, Event], None]]:
    """Bars on standard error where that is a terminal; yields what feeds them."""
    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(bar_width=32),
        TextColumn("{task.fields[amount]}"),
        TextColumn("{task.fields[rate]}"),
        TimeRemainingColumn(compact=True),
    )
    with Progress(*columns, console=err, transient=True, disable=not err.is_terminal) as bars:
        tasks: dict[tuple[str, str], TaskID] = {}

        def watch(label: str, event: Event) -> None:
            if event["event"] != "progress":
                return
            key = (label, str(event["phase"]))
            if key not in tasks:
                tasks[key] = bars.add_task(" · ".join(dict.fromkeys(key)), total=None, amount="", rate="")
            rate = event.get("rate_per_s")
            unit = event["unit"]
            bars.update(
                tasks[key],
                completed=event["done"],
                total=event["total"],
                amount=_amount(event["done"], event["total"], unit),
                rate=f"{_amount(rate, None, 'operations' if unit == 'seconds' else unit)}/s" if rate else "",
            )

        yield watch


def _amount(done: float, total: float | None, unit: str) -> str:
    def one(value: float) -> str:
        return human_bytes(value) if unit == "bytes" else f"{value:,.0f}"

    text = one(done) if total is None else f"{one(done)} of {one(total)}"
    return text if unit == "bytes" else f"{text} {'s' if unit == 'seconds' else unit}"
