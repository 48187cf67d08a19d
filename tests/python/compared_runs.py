"""Run directories for tests of `spillway compare`: made by the fake native side, with figures that a test sets."""

import hashlib
import json
import os
import random
import shutil
import tomllib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import tomli_w
from conftest import PLAN, Invoke

Document = dict[str, Any]
ARMS = '\n[[arms]]\nname = "old"\n[[arms]]\nname = "new"\n"engine.options.max_background_jobs" = "4"\n'


class Made:
    """Run directories by the fake native side, in the current directory, with figures that a test sets.

    The fake does the same each time, so a run that was made before is copied from ``kept``, with the name that it had.
    """

    def __init__(self, invoke: Invoke, plan: Path, kept: Path) -> None:
        self.invoke, self.plan, self.kept = invoke, plan, kept

    def run(self, name: str, text: str = PLAN + ARMS, repetitions: int = 5, *settings: str) -> Path:
        environment = {key: value for key, value in os.environ.items() if key.startswith("FAKE_") and key != "FAKE_LOG"}
        made = json.dumps([name, text, repetitions, settings, environment], sort_keys=True)
        kept = self.kept / hashlib.sha256(made.encode()).hexdigest()
        if not kept.exists():
            self.plan.write_text(text)
            words = [word for setting in settings for word in ("--set", setting)]
            ended = self.invoke("run", self.plan, "--out", name, "--set", f"repetitions={repetitions}", *words)
            assert (ended.code, ended.err) == (0, "")
            shutil.copytree(name, kept)
        else:
            shutil.copytree(kept, name)
        return Path(name)


def edit(run: Path, change: Callable[[Document], None], name: str = "summary.json") -> None:
    document = json.loads((run / name).read_text())
    change(document)
    (run / name).write_text(json.dumps(document))


def edit_plan(run: Path, change: Callable[[Document], None]) -> None:
    plan = tomllib.loads((run / "plan.toml").read_text())
    change(plan)
    (run / "plan.toml").write_text(tomli_w.dumps(plan))


def repetitions(arm: Document) -> list[Document]:
    """Of an arm of a summary, for one repetition too."""
    several: list[Document] = arm.get("repetitions") or [arm]
    return several


def put(run: Path, arm: str, values: Sequence[float], key: str = "throughput_ops_s") -> None:
    """Gives each repetition of an arm its figure."""

    def change(summary: Document) -> None:
        for each, value in zip(repetitions(summary["arms"][arm]), values, strict=True):
            each[key] = value

    edit(run, change)


def put_steady(run: Path, arm: str, steady: Sequence[bool]) -> None:
    put(run, arm, steady, "steady")


def noisy(mean: float, noise: float, count: int, seed: int) -> list[float]:
    rng = random.Random(seed)
    return [mean * (1 + rng.gauss(0, noise)) for _ in range(count)]


def slower(run: Path, by: float = 0.05, noise: float = 0.005, seed: int = 1) -> Path:
    """The arm ``new`` has so much less throughput than ``old``; nothing else differs."""
    count = len(repetitions(json.loads((run / "summary.json").read_text())["arms"]["old"]))
    put(run, "old", noisy(10_000, noise, count, seed))
    put(run, "new", noisy(10_000 * (1 - by), noise, count, seed + 1))
    return run
