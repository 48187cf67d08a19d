"""What a notebook does rather than reads: runs a plan, profiles a drive. Both leave the directory that the command of
the same name leaves, with its report, and return it as data frames."""

import json
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from spillway.errors import Interrupted, SpillwayError
from spillway.frames.keywords import errors_name_keywords
from spillway.frames.profile import ProfileFrames
from spillway.frames.run import RunFrames, read_run
from spillway.frames.tables import frame_of
from spillway.ssd.preset import presets as known_presets

if TYPE_CHECKING:
    import pandas as pd

Document = dict[str, Any]
KEYWORDS = {"set": "settings", "budget": "budget_s"}  # where a flag has another name
Watch = Callable[[str, Document], None]  # a label and what the native side just said


def presets() -> "pd.DataFrame":
    """The drives that are known by name, with a line about each."""
    return frame_of([{"name": each.name, "summary": each.summary} for each in known_presets()], ("name", "summary"))


def run_plan(
    plan: str | Path,
    out: str | Path | None = None,
    *,
    settings: Mapping[str, Any] | None = None,
    arms: Sequence[str] = (),
    scale: str | None = None,
    with_report: bool = True,
    watch: Watch | None = None,
) -> RunFrames:
    """Runs the plan in a TOML file, leaves the run directory ``out`` (by default ``runs/PLAN-TIME``) and returns it.

    ``settings`` are keys of the plan to override, such as ``{"load.num": 10_000}``; ``arms`` the ones to run; ``scale``
    that of a suite's plan; ``watch`` is called with each event of a run. Without ``with_report`` there is no page until
    `spillway report` makes it.

    Raises SpillwayError for a plan that is refused, and then leaves nothing. A run that failed, or was ended early,
    raises too (RunFailed, Interrupted): the sentence names its directory, which ``read_run`` reads.
    """
    from spillway.run.execute import execute
    from spillway.suite.document import load_scaled

    path = Path(plan)
    overrides = tuple(f"{key}={_toml(value, key)}" for key, value in (settings or {}).items())
    with errors_name_keywords(KEYWORDS):
        checked = load_scaled(path, overrides, tuple(arms), scale)
    command = ["spillway", "run", str(path), *(word for each in overrides for word in ("--set", each))]
    command += [word for arm in arms for word in ("--arm", arm)]
    command += ["--scale", scale] if scale is not None else []
    finished = execute(checked, _place(out, checked.name), command, watch, with_report=with_report)
    if finished.failure:
        raise finished.error(f"{finished.failure.rstrip('.')}. What was measured is in {finished.directory}.")
    if finished.interrupted:
        raise Interrupted(f"{checked.name} was ended early. What was measured is in {finished.directory}.")
    return read_run(finished.directory)


def profile_drive(
    target: str,
    out: str | Path | None = None,
    *,
    settings: Mapping[str, Any] | None = None,
    host_stack: str | None = None,
    fill: float = 1.0,
    mixed: bool = False,
    paced: bool = False,
    destroy_data: bool = False,
    size: str | int | None = None,
    budget_s: float = 120.0,
    seed: int = 1,
    with_report: bool = True,
    watch: Watch | None = None,
) -> ProfileFrames:
    """Measures what a drive can do, leaves the profile directory ``out`` (by default ``runs/profile-NAME-TIME``) and
    returns it.

    ``target`` is ``preset:NAME``, which takes seconds in virtual time, or a file, a directory or a block device, which
    are only read unless ``destroy_data``. The other arguments are the flags of `spillway profile`; without
    ``with_report`` there is no page, which takes longer than a preset does. Raises SpillwayError for a target that is
    refused, and then leaves nothing.
    """
    from spillway.profile import parse_target, profile_target

    given = tuple(f"{key}={_toml(value, key)}" for key, value in (settings or {}).items())
    with errors_name_keywords(KEYWORDS):
        parsed = parse_target(
            target,
            paced=paced,
            destroy_data=destroy_data,
            settings=given,
            host_stack=host_stack,
            fill=str(fill),
            size=None if size is None else str(size),
        )
    command = ["spillway", "profile", target, *(word for each in given for word in ("--set", each))]
    command += [
        *(["--paced"] if paced else []),
        *(["--destroy-data"] if destroy_data else []),
        *(["--host-stack", host_stack] if host_stack is not None else []),
        *(["--fill", str(fill)] if fill != 1.0 else []),
        *(["--size", str(size)] if size is not None else []),
        *(["--mixed"] if mixed else []),
        *(["--seed", str(seed)] if seed != 1 else []),
    ]
    place = _place(out, f"profile-{parsed.label}")
    with errors_name_keywords(KEYWORDS):
        finished = profile_target(
            parsed,
            place,
            command,
            seed=seed,
            budget_s=budget_s,
            mixed=mixed,
            watch=watch,
            with_report=with_report,
        )
    return ProfileFrames(finished.directory, finished.profile)


def _place(out: str | Path | None, name: str) -> Path:
    return Path("runs") / f"{name}-{datetime.now():%Y%m%d-%H%M%S}" if out is None else Path(out)


def _toml(value: Any, key: str) -> str:
    """A value as ``--set`` takes it. Raises SpillwayError for one that TOML has not."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return value  # a text that is no TOML stands for itself
    if isinstance(value, int | float):
        return repr(value)
    if isinstance(value, list | tuple):
        return f"[{', '.join(json.dumps(each) if isinstance(each, str) else _toml(each, key) for each in value)}]"
    raise SpillwayError(f"settings: {key} is {value!r}; it takes a text, a number, true or false, or a list of them.")
