"""Spillway: log-structured key-value stores on flash, and the truth about what they cost it.

In a notebook, where each table is a pandas data frame:

    import spillway

    profile = spillway.profile_drive("preset:quickstart")      # or read_profile(DIRECTORY)
    profile.mqssd, profile.pio, profile.samples
    spillway.models.mqssd.page_cost_us(100, profile.mqssd.tau_us, profile.mqssd.alpha_us)
    spillway.simulate_drive(preset="quickstart", workload="randwrite", capacity="1GiB")

    run = spillway.run_plan("plan.toml")                       # or read_run(DIRECTORY)
    run.arms, run.samples, run.phases
    run.charts()["throughput"]
    spillway.compare_arms(run).metrics
    spillway.write_frame(run.samples, "samples.parquet")

docs/NOTEBOOKS.md has all of it. Nothing but the version is imported before one of these names is used (PEP 562): the
command line does not wait for pandas.
"""

from typing import TYPE_CHECKING, Any

from spillway.version import __version__

if TYPE_CHECKING:
    from spillway import models
    from spillway.errors import SpillwayError
    from spillway.frames import (
        Chart,
        Charts,
        ComparisonFrames,
        ProfileFrames,
        RunFrames,
        SuiteFrames,
        SweepFrames,
        compare_arms,
        grid,
        presets,
        profile_drive,
        read,
        read_frame,
        read_profile,
        read_run,
        read_suite,
        read_sweep,
        run_plan,
        simulate_drive,
        simulate_lsm,
        write_frame,
    )

__all__ = [
    "Chart",
    "Charts",
    "ComparisonFrames",
    "ProfileFrames",
    "RunFrames",
    "SpillwayError",
    "SuiteFrames",
    "SweepFrames",
    "__version__",
    "compare_arms",
    "grid",
    "models",
    "presets",
    "profile_drive",
    "read",
    "read_frame",
    "read_profile",
    "read_run",
    "read_suite",
    "read_sweep",
    "run_plan",
    "simulate_drive",
    "simulate_lsm",
    "write_frame",
]


def __getattr__(name: str) -> Any:
    """A public name, at its first use. Raises AttributeError for any other."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    if name == "models":
        import spillway.models

        return spillway.models
    if name == "SpillwayError":
        from spillway import errors

        return errors.SpillwayError
    from spillway import frames

    return getattr(frames, name)


def __dir__() -> list[str]:
    """What a notebook completes: the public names, imported or not."""
    return sorted({*globals(), *__all__})
