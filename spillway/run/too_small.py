"""Whether a suite's plans can be run at its scale, checked before the first of them runs.

Below some factor a cache or a drive is smaller than the least that its owner takes, two points of an axis are one, or a
single value fills the drive. A plan's own checks and those of ``spillway-native`` see that from the plan alone. A plan
that is refused at the original's sizes too is not refused for its scale: it is left to its run, and no other waits for
it.
"""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from fractions import Fraction
from pathlib import Path

from spillway.errors import Interrupted, RunFailed, SpillwayError
from spillway.native.process import run_native
from spillway.plan import kept
from spillway.plan.arm import Arm, by_keys_of_a_plan
from spillway.suite.document import Suite, SuitePlan, factor_of, load_suite
from spillway.suite.scale import TooSmall, factor_in_words
from spillway.suite.state import state_of


def check_scale(suite: Suite, out: Path | None = None) -> None:
    """Raises TooSmall for the first chosen plan that ``spillway-native`` refuses for its scale; those that are done in
    ``out`` are not asked about. Takes some 10 ms a run, and runs nothing."""
    for each in suite.chosen:
        if each.factor == 1:
            continue
        if out is None or state_of(out / each.name, each.plan, may_fill=each.may_fill) != "done":
            _check(each)


@contextmanager
def with_advice(directory: Path, scale: str | None, only: tuple[str, ...], settings: tuple[str, ...]) -> Iterator[None]:
    """Adds to the error of a scale that is too small which larger scale is not. Takes the arguments of ``load_suite``.
    Raises TooSmall."""
    try:
        yield
    except TooSmall as small:
        factor = factor_in_words(small.factor)
        asked = f"the factor {factor} of the suite" if scale is None else f"--scale {factor}"
        enough = _enough(small.factor, directory, only, settings)
        give = "--unscaled" if enough == 1 else f"--scale {factor_in_words(enough)} or a larger one"
        raise SpillwayError(f"{asked} is too small for {small.plan}, give {give}: {small.why}") from small


def _check(each: SuitePlan) -> None:
    runs = [*zip(each.plan.arms, each.original.arms, strict=True)]
    runs += zip(each.plan.preparations, each.original.preparations, strict=False)
    with tempfile.TemporaryDirectory(prefix="spillway-") as place:
        (Path(place) / "not-empty").touch()
        for scaled, original in runs:
            why = _refusal(scaled, Path(place))
            if why and not _refusal(original, Path(place)):
                run = "" if scaled.name == each.name else f"{scaled.name}: "
                raise TooSmall(each.name, each.factor, f"{run}{why}")


def _refusal(run: Arm, place: Path) -> str:
    """Why ``spillway-native`` refuses a run; empty where it would take it. It checks all that the request says before
    it looks at the directory, and refuses ``place`` for not being empty."""
    request = run.request(place, seed=1)
    if kept.continues_database(run.settings):  # the database that it reads may not have been made yet
        request["phases"] = [{"name": "load", "workload": "fillseq"}]
    try:
        run_native("run", request)
    except Interrupted:
        raise
    except RunFailed:
        return ""
    except SpillwayError as error:
        is_taken = str(error).startswith(f"directory: {place} ")
        return "" if is_taken else by_keys_of_a_plan(str(error), request["target"]["kind"])
    return ""


def _enough(factor: Fraction, directory: Path, only: tuple[str, ...], settings: tuple[str, ...]) -> Fraction:
    """The first factor that is not too small: of those that are each twice the last, and the suite's own; 1 is none."""
    candidates = {factor_of(directory)}
    parts = int(1 / factor)
    while parts > 1:
        parts //= 2
        candidates.add(Fraction(1, parts))
    for candidate in sorted(each for each in candidates if factor < each < 1):
        try:
            check_scale(load_suite(directory, factor_in_words(candidate), only, settings))
        except TooSmall:
            continue
        return candidate
    return Fraction(1)
