"""The report's charts as objects. A notebook shows one, with its caption and its legend, where it is a cell's result.

A chart is shown in a frame of its own with the chart library inside, some megabyte, as a report has it: it needs no
network, and no other cell. ``figure`` is the Bokeh figure alone, for whoever changes or arranges it.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Any

from spillway.errors import SpillwayError
from spillway.quantity import nearest

if TYPE_CHECKING:
    from spillway.profile.compare import Comparison
    from spillway.profile.document import Profile
    from spillway.report.panels import Panel
    from spillway.rundir.directory import ArmRecord, RunRecord

WORDS_PX = 130  # of a caption, a legend and a standing, until the page says how high it is. Source: guess

Draw = Callable[[], "Sequence[Panel]"]


@dataclass(frozen=True, eq=False, repr=False)
class Chart:
    """One chart of a report. Each use draws it anew, since a Bokeh figure belongs to one document."""

    key: str
    title: str
    caption: str
    draw: Draw

    @property
    def figure(self) -> Any:
        """The Bokeh figure: ``bokeh.io.show(chart.figure)``."""
        return self._panel().figure

    def html(self) -> str:
        """A whole page with the chart, which opens offline."""
        return _page([self._panel()])

    def _panel(self) -> "Panel":
        return next(panel for panel in self.draw() if panel.key == self.key)

    def __repr__(self) -> str:
        """In words."""
        return f"Chart({self.key!r}: {self.title})"

    def _repr_html_(self) -> str:
        """In a notebook."""
        return _framed([self._panel()])


class Charts(Mapping[str, Chart]):
    """Charts by name, such as ``charts["throughput"]``; as a cell's result a notebook shows all of them."""

    def __init__(self, draw: Draw) -> None:
        """Those that ``draw`` returns. It is called again for each that is shown after the first."""
        drawn: list[Sequence[Panel]] = [draw()]
        self._draw: Draw = lambda: drawn.pop() if drawn else draw()
        self._charts = {each.key: Chart(each.key, each.title, each.caption, self._draw) for each in drawn[0]}

    def __getitem__(self, key: str) -> Chart:
        """Raises SpillwayError where there is no such chart."""
        if key not in self._charts:
            raise SpillwayError(f"there is no chart {key!r}{nearest(key, self)} There are: {', '.join(self)}.")
        return self._charts[key]

    def __iter__(self) -> Iterator[str]:
        """The names, in the order of the report."""
        return iter(self._charts)

    def __contains__(self, key: object) -> bool:
        """Whether there is a chart of that name."""
        return key in self._charts

    def __len__(self) -> int:
        """How many there are."""
        return len(self._charts)

    def html(self) -> str:
        """A whole page with all charts, which opens offline."""
        return _page(self._draw())

    def __repr__(self) -> str:
        """In words."""
        return f"Charts({', '.join(self)})"

    def _repr_html_(self) -> str:
        """In a notebook."""
        return _framed(self._draw())


def arm_charts(arm: "ArmRecord") -> "Sequence[Panel]":
    """Those of an arm's section of the report."""
    from spillway.report.charts import Clock
    from spillway.report.panels import arm_panels

    return arm_panels(arm, Clock(_seconds([arm])))


def compared_charts(run: "RunRecord") -> "Sequence[Panel]":
    """Those that compare a run's arms; of a sweep each figure over an axis."""
    import tomllib

    from spillway.report import sweep, sweep_data
    from spillway.report.arm_outcomes import outcomes_of_arms
    from spillway.report.charts import Clock
    from spillway.report.comparison import comparison_panels

    if sweep_data.is_swept(run.arms):
        return sweep.sweep_panels(run.arms)
    outcomes = outcomes_of_arms(tomllib.loads(run.plan_toml), run.arms)
    return comparison_panels(run.arms, outcomes, Clock(_seconds(run.arms)))


def profile_charts(profile: "Profile", comparisons: "Sequence[Comparison]") -> "Sequence[Panel]":
    """Those of a profile's report, with ``comparisons`` of models with it, as far as there are any."""
    from spillway.profile.panels import panels

    return panels(profile, comparisons)


def _seconds(arms: "Sequence[ArmRecord]") -> float:
    """How long the time axis of their charts is."""
    return max((arm.rows[-1]["t_s"] for arm in arms if arm.rows), default=1.0)


def _page(panels: "Sequence[Panel]") -> str:
    from markupsafe import Markup

    from spillway.report.frame import embedded, environment, library, style_sheet

    script, divs = embedded({panel.key: panel.figure for panel in panels})
    return (
        environment("spillway.frames")
        .get_template("charts.html.jinja")
        .render(
            panels=panels,
            divs={key: Markup(div) for key, div in divs.items()},
            script=Markup(script),
            library=Markup(library()) if divs else "",
            style=Markup(style_sheet()),
        )
    )


def _framed(panels: "Sequence[Panel]") -> str:
    """A page as an element of a notebook's, as high as what it shows."""
    height = sum((panel.figure.height or 0) + WORDS_PX for panel in panels)
    fit = "this.style.height = this.contentDocument.documentElement.scrollHeight + 'px'"
    style = f"width: 100%; height: {height}px; border: 0"
    return f'<iframe srcdoc="{escape(_page(panels))}" style="{style}" onload="{fit}"></iframe>'
