"""What every page has: the templates, the chart library and the style inline, the figures with their script."""

from importlib import resources

from bokeh.document import Document
from bokeh.embed import components
from bokeh.resources import Resources
from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined

from spillway.report.charts import Figure


def embedded(figures: dict[str, Figure]) -> tuple[str, dict[str, str]]:
    """The script that draws the figures, and the element in which each appears."""
    if not figures:
        return "", {}
    document = Document()
    with document.models.freeze():  # else all figures are gone through again for each one that is added
        for figure in figures.values():
            document.add_root(figure)
    script, divs = components(figures)
    return script, divs


def environment(package: str = "spillway.report") -> Environment:
    """The templates of ``package``, which may use those of the report, and how strict they are."""
    return Environment(
        loader=ChoiceLoader([PackageLoader(each, "templates") for each in dict.fromkeys((package, "spillway.report"))]),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=StrictUndefined,
    )


def library() -> str:
    """The chart library, inline; of its parts only the one that draws."""
    return Resources(mode="inline", components=["bokeh"], log_level="warn").render_js()


def style_sheet() -> str:
    """The report's style, inline."""
    return resources.files("spillway.report").joinpath("templates/report.css").read_text(encoding="utf-8")
