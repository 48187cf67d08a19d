"""A profile of one drive, as a directory.

    profile.toml    parameters, each {value, low, high} with its 95 % interval, and the conditions they hold under
    samples.csv     every point that was measured
    report.html     the same as charts and words

``contract`` is the version of this layout; another one is refused. Data goes one way: models and reports read a
profile, and nothing here is read by what measures.
"""

import math
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import tomli_w

from spillway import toml
from spillway.errors import SpillwayError
from spillway.fit.interval import Interval
from spillway.profile.points import Sample, from_csv, to_csv
from spillway.rundir.directory import is_directory, write_text

Document = dict[str, Any]

CONTRACT = 1
MOST = 10**300


@dataclass(frozen=True)
class Estimate(Interval):
    """A parameter of a profile with its interval. ``value`` is NaN where the points do not determine it; a bound is
    infinite or NaN where they do not bound it."""

    @property
    def known(self) -> bool:
        """Whether there is a value."""
        return math.isfinite(self.value)

    @property
    def relative_width(self) -> float:
        """Width of the interval as a share of the value; infinite where nothing is known."""
        width = self.high - self.low
        return width / abs(self.value) if self.known and self.value and math.isfinite(width) else math.inf

    def document(self) -> Document:
        """For TOML, which has nan and inf."""
        return {"value": self.value, "low": self.low, "high": self.high}


UNKNOWN = Estimate(math.nan, math.nan, math.nan)


@dataclass(frozen=True)
class Pio:
    """PIO's parameters for one access size (P2): asymmetry and the concurrencies that saturate the drive.

    ``alpha_rule`` is ``bandwidth`` (the ratio of the largest bandwidths) or ``slope`` (of a capped drive, P17).
    """

    alpha: Estimate
    k_r: Estimate
    k_w: Estimate
    k_r_latency: Estimate = UNKNOWN  # where latency bends (P14)
    k_w_latency: Estimate = UNKNOWN
    alpha_rule: str = "bandwidth"
    read_max_mb_s: float = math.nan
    write_max_mb_s: float = math.nan


@dataclass(frozen=True)
class Mqssd:
    """MQSSD's costs at one k (M9), us: sigma and tau for each random access, beta and alpha for each page.

    All are amortised over the k operations in flight; R2 is of the straight line through page cost against p = r/100.
    """

    sigma_us: Estimate
    beta_us: Estimate
    tau_us: Estimate
    alpha_us: Estimate
    r2_write: float
    r2_read: float


@dataclass(frozen=True)
class Profile:
    """Everything a profile directory holds; access sizes in bytes and concurrencies are the keys."""

    target: Document
    conditions: Document
    latency_us: Mapping[str, Estimate]
    pio: Mapping[int, Pio]
    mqssd: Mapping[int, Mqssd]
    samples: list[Sample]
    mixed: Document = field(default_factory=dict)

    @property
    def name(self) -> str:
        """The drive's name for people."""
        return str(self.target.get("name") or self.target.get("path") or "drive")


def parameters(profile: Profile) -> Document:
    """The parameters as `spillway profile --json` prints them: by access size in bytes, and by k; null is not known."""
    found: Document = _finite(_parameters(profile))
    return found


def _finite(value: Any) -> Any:
    """JSON has neither nan nor inf."""
    if isinstance(value, dict):
        return {k: _finite(v) for k, v in value.items()}
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _parameters(profile: Profile) -> Document:
    return {
        "latency_us": {op: estimate.document() for op, estimate in profile.latency_us.items()},
        "alpha": {str(bs): pio.alpha.document() for bs, pio in profile.pio.items()},
        "k_r": {str(bs): pio.k_r.document() for bs, pio in profile.pio.items()},
        "k_w": {str(bs): pio.k_w.document() for bs, pio in profile.pio.items()},
        "mqssd": {str(k): _fields(costs) for k, costs in profile.mqssd.items()},
    }


def to_toml(profile: Profile) -> str:
    """profile.toml."""
    document = {
        "contract": CONTRACT,
        "target": profile.target,
        "conditions": profile.conditions,
        "latency_us": {op: estimate.document() for op, estimate in profile.latency_us.items()},
        "pio": {str(bs): _fields(pio) for bs, pio in profile.pio.items()},
        "mqssd": {str(k): _fields(costs) for k, costs in profile.mqssd.items()},
        "mixed": profile.mixed,
    }
    return tomli_w.dumps(_without_none(document))


def _fields(record: Pio | Mqssd) -> Document:
    return {k: v.document() if isinstance(v, Estimate) else v for k, v in vars(record).items()}


def _without_none(value: Any) -> Any:
    """TOML has no null: what is not known is left out."""
    if isinstance(value, dict):
        return {k: _without_none(v) for k, v in value.items() if v is not None}
    return value


def write_profile(profile: Profile, directory: Path) -> None:
    """Writes profile.toml and samples.csv into ``directory``, which exists. Raises SpillwayError where it cannot."""
    write_text(directory / "samples.csv", to_csv(profile.samples))
    write_text(directory / "profile.toml", to_toml(profile))


def read_profile(path: Path) -> Profile:
    """Reads a profile directory. Raises SpillwayError for what is none, is damaged or is of another version."""
    if not is_directory(path):
        raise SpillwayError(f"{path}: there is no such profile; `spillway profile TARGET --out {path}` makes one.")
    document = _toml(path / "profile.toml")
    version = document.get("contract")
    if version != CONTRACT or isinstance(version, bool):
        raise SpillwayError(
            f"{path / 'profile.toml'}: contract is {version!r}, and this version of spillway reads {CONTRACT}: "
            "profile the drive again."
        )
    try:
        samples = from_csv(_text(path / "samples.csv").splitlines())
    except ValueError as error:
        raise SpillwayError(f"{path / 'samples.csv'}: {error}; profile the drive again.") from error
    try:
        for name in ("target", "conditions"):
            if not isinstance(document[name], dict):
                raise TypeError(f"{name} is no table")
        return Profile(
            document["target"],
            document["conditions"],
            {op: _estimate(value) for op, value in document["latency_us"].items()},
            {int(bs): Pio(**_estimates(value)) for bs, value in document["pio"].items()},
            {int(k): Mqssd(**_estimates(value)) for k, value in document["mqssd"].items()},
            samples,
            document.get("mixed", {}),
        )
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise SpillwayError(
            f"{path / 'profile.toml'}: this is no whole profile ({error}); profile the drive again."
        ) from error


def _estimates(value: Document) -> Document:
    found = {k: _estimate(v) if isinstance(v, dict) else v for k, v in value.items()}
    for key, each in found.items():
        if key == "alpha_rule":
            is_right = isinstance(each, str)
        elif key.startswith("r2_") or key.endswith("_max_mb_s"):
            is_right = _is_number(each)
        else:
            is_right = isinstance(each, Estimate)
        if not is_right:
            raise TypeError(f"{key} is {each!r}")
    return found


def _estimate(value: Document) -> Estimate:
    if not all(map(_is_number, value.values())):
        raise TypeError(f"{value!r} is no estimate")
    return Estimate(**value)


def _is_number(value: Any) -> bool:
    """Whether a float can hold it; TOML has whole numbers of any size."""
    whole = isinstance(value, int) and not isinstance(value, bool)
    return isinstance(value, float) or (whole and abs(value) < MOST)


def _toml(path: Path) -> Document:
    try:
        return toml.loads(_text(path))
    except tomllib.TOMLDecodeError as error:
        raise SpillwayError(f"{path}: this is not TOML ({error}); profile the drive again.") from error


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not text"
        raise SpillwayError(f"{path}: the profile is not whole: {why}; profile the drive again.") from error
