"""Advice held against exhaustive measurement: drives x workloads, every candidate of a small grid run on each.

    .venv/bin/python bench/advise_grid.py [--budget SECONDS] [--only DRIVE]
    .venv/bin/python bench/advise_grid.py --recorded runs/bench/advise_grid.json

Each case runs seven configurations on an emulated drive, and asks what `spillway advise` would have chosen among them.
A case that is in runs/advise-grid/ and was undisturbed is not measured again, so that the command goes on where it was
ended; predictions are made anew each time, with --recorded beside what a record has. What is known so far is written
to runs/advise-grid/results.json after each case. A second of the drive takes six: other work on the
machine then hardly holds the engine up, and predictions are for six times the cores. Prints JSON: for each case what
was measured and predicted, and over all that other work on the machine did not disturb, and (`with_disturbed`) over all

    near          cases in which the advised configuration is within 10 % of the fastest that was measured
    worse         cases in which it is slower than RocksDB's defaults by more than 3 %
    kept          cases in which it is those defaults, since nothing is predicted to be better by more than may be wrong
    near_total    the same as `near`, ranked by wa_total (cases with puts); worse_total: as `worse`
    errors        measured / predicted over all configurations: quartiles, and the share within each interval
"""

import argparse
import json
import os
import statistics
import sys
import time
import tomllib
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import tomli_w

from spillway.advise.configuration import (
    DEFAULTS,
    FLASH,
    MIB,
    SEPARATED,
    SINGLE,
    UNIVERSAL,
    Configuration,
)
from spillway.advise.decide import decide
from spillway.advise.drive import Drive, of_preset
from spillway.advise.predict import Figure, Prediction
from spillway.advise.rank import sort_key
from spillway.advise.simulated import Span, in_parallel, simulator
from spillway.advise.space import with_cache
from spillway.advise.verify import Scaled, plan_text
from spillway.advise.workload import Limits, Workload
from spillway.errors import SpillwayError
from spillway.plan.document import load_plan
from spillway.run.execute import execute
from spillway.rundir.output import write_output

Document = dict[str, Any]

DRIVES = ("quickstart", "intel-545s", "intel-660p", "intel-s4610")  # an engine on two cores outruns each of them
CAPACITY = 768 * MIB
DATA, MEMORY, CLIENTS, CORES = 120 * MIB, 24 * MIB, 4, 2  # cores of the machine
SMALLER = 32  # times: the defaults' sizes stand to this data as they do to 4 GB
TIME_SCALE = 6.0
WARM_S, MEASURED_S = 6.0, 12.0  # of the machine's time
NEAR, WORSE = 0.10, 0.03
MOST_LATE_US, READERS = (
    250.0,
    0.3,
)  # median lateness, of loads with so many reads. Source: guess: a tenth of a read here
PLACE = Path("runs") / "advise-grid"
SEEDS = (1, 2)
FIGURES = ("throughput_ops_s", "wa_app", "wa_device", "wa_total")

LOADS = {
    "puts": (1.0, 0.0, 0.0, 1000, None),
    "puts and gets": (0.5, 0.5, 0.0, 1000, None),
    "gets": (0.05, 0.95, 0.0, 1000, None),
    "scans": (0.5, 0.3, 0.2, 1000, None),
    "zipfian puts": (0.9, 0.1, 0.0, 1000, 0.99),
    "large values": (0.7, 0.3, 0.0, 4000, None),
}


@dataclass(frozen=True)
class Case:
    """A drive and a workload."""

    drive: str
    load_name: str

    @property
    def slug(self) -> str:
        """A name for files."""
        return f"{self.drive}-{self.load_name}".replace(" ", "-")

    @property
    def load(self) -> Workload:
        """The workload."""
        puts, gets, scans, value, skew = LOADS[self.load_name]
        return Workload(DATA, 16, value, puts, gets, scans, 50, skew, CLIENTS)


def candidates(load: Workload) -> dict[str, Configuration]:
    """What is measured exhaustively; all within the memory."""
    base = replace(DEFAULTS.scaled(SMALLER), direct_io=True)
    tuned = replace(base, bits_per_key=10, compaction_threads=2, write_buffers=3)
    named = {
        "defaults": base,
        "flash configuration": replace(FLASH.scaled(SMALLER), direct_io=True),
        "leveled, F 10, filters": replace(tuned, dynamic_levels=True, subcompactions=2),
        "leveled, F 5, large memtables": replace(
            tuned, fanout=5, write_buffer_bytes=4 * MIB, level_base_bytes=16 * MIB, dynamic_levels=True
        ),
        "universal, filters": replace(tuned, shape=UNIVERSAL),
        "single level, filters": replace(tuned, shape=SINGLE, fanout=1, l0_files=8, subcompactions=2),
        "value separation": replace(tuned, shape=SEPARATED, dynamic_levels=True),
    }
    limits = Limits(memory_bytes=MEMORY)
    return {name: with_cache(each, load, limits) or each for name, each in named.items()}


def cases(only: str | None) -> list[Case]:
    """In such an order that what is measured first has every drive and every load."""
    count = len(LOADS)
    order = [(at % len(DRIVES), (at // len(DRIVES) + at) % count) for at in range(len(DRIVES) * count)]
    found = [Case(DRIVES[drive], list(LOADS)[load]) for drive, load in dict.fromkeys(order)]
    every = [Case(drive, load) for load in LOADS for drive in DRIVES]
    found += [each for each in every if each not in found]
    return [each for each in found if only is None or each.drive == only]


def small(drive: Drive, load: Workload) -> Scaled:
    """The drive at the grid's capacity."""
    request = drive.request | {"set": drive.request["set"] | {"capacity.capacity_bytes": str(CAPACITY)}}
    own = replace(drive, capacity_bytes=CAPACITY, least_capacity_bytes=CAPACITY, request=request)
    span = Span(WARM_S / TIME_SCALE, MEASURED_S / TIME_SCALE)
    return Scaled(load, own, drive.capacity_bytes / CAPACITY, round(CORES * TIME_SCALE), span=span)


def measured(case: Case, scaled: Scaled) -> Document:
    """Figures by candidate, from runs/advise-grid/ or from runs that are made now."""
    found = kept(case)
    if found is not None:
        return found
    PLACE.mkdir(parents=True, exist_ok=True)
    plan, out = PLACE / f"{case.slug}.toml", PLACE / f"{case.slug}-{os.getpid()}"
    document = tomllib.loads(plan_text(scaled, candidates(case.load), MEASURED_S, WARM_S))
    document["drive"]["time_scale"] = TIME_SCALE
    plan.write_text(tomli_w.dumps(document))
    finished = execute(load_plan(plan), out, ["bench/advise_grid.py"])
    arms = figures_of(finished.summary)
    if finished.interrupted:
        raise KeyboardInterrupt
    (PLACE / f"{case.slug}.json").write_text(json.dumps(arms, indent=1) + "\n")
    return arms


def kept(case: Case) -> Document | None:
    """What was measured before, if arms were whole and nothing disturbed them."""
    path = PLACE / f"{case.slug}.json"
    found: Document | None = json.loads(path.read_text()) if path.is_file() else None
    return found if found and not is_disturbed(case, found) else None


def recorded(path: Path) -> dict[tuple[str, str], Document]:
    """Figures by candidate of the cases in a record of this benchmark."""
    return {
        (case["drive"], case["load"]): {name: each["measured"] for name, each in case["configurations"].items()}
        for case in json.loads(path.read_text())["result"]["results"]
    }


def figures_of(summary: Document) -> Document:
    """Of each run that was whole: its figures in the drive's time, and how late the emulator was, in the machine's."""
    arms = {}
    for name, each in summary["arms"].items():
        if each["standing"]["complete"] and each["throughput_ops_s"]:
            late = each["standing"]["pacing_error_us"] or {}
            arms[name] = {key: each.get(key) for key in FIGURES}
            arms[name] |= {"late_us": late.get("p50"), "late_p99_us": late.get("p99")}
            arms[name]["throughput_ops_s"] *= TIME_SCALE
    return arms


def is_disturbed(case: Case, figures: Document) -> bool:
    """Whether reads were served so late that their rate is the machine's and not the drive's."""
    return case.load.reads >= READERS and any((each["late_us"] or 0) > MOST_LATE_US for each in figures.values())


def case_result(case: Case, scaled: Scaled, figures: Document) -> Document:
    """What was measured and predicted, and what was advised."""
    named = candidates(case.load)
    made = in_parallel(lambda each: scaled.prediction(each, simulator(), SEEDS), list(named.values()), CORES)
    predicted: dict[str, Prediction] = dict(zip(named, made, strict=True))
    known = [name for name in named if (figures.get(name) or {}).get("throughput_ops_s")]
    result: Document = {"drive": case.drive, "load": case.load_name, "configurations": {}}
    result["disturbed"] = is_disturbed(case, figures)
    for name in known:
        result["configurations"][name] = {
            "measured": figures[name],
            "predicted": {
                "throughput_ops_s": predicted[name].throughput_ops_s.document(),
                "wa_app": predicted[name].wa_app.document(),
                "wa_device": predicted[name].wa_device.document(),
                "wa_total": predicted[name].wa_total.document(),
            },
        }
    if not known:  # every arm failed
        return result
    rates = {name: figures[name]["throughput_ops_s"] for name in known}
    advised, first = advice(known, predicted, "throughput")
    result |= {
        "advised": advised,
        "ranked_first": first,
        "best": max(rates, key=lambda name: rates[name]),
        "of_best": rates[advised] / max(rates.values()),
        "of_defaults": rates[advised] / rates["defaults"] if "defaults" in rates else None,
    }
    if case.load.puts >= 0.5:
        totals = {name: figures[name]["wa_total"] for name in known if figures[name]["wa_total"]}
        if totals:
            least, first = advice(list(totals), predicted, "wa-total")
            result |= {
                "advised_by_wa_total": least,
                "ranked_first_by_wa_total": first,
                "of_least_wa_total": totals[least] / min(totals.values()),
                "of_defaults_wa_total": totals[least] / totals["defaults"] if "defaults" in totals else None,
            }
    return result


def advice(known: list[str], predicted: dict[str, Prediction], order: str) -> tuple[str, str]:
    """Of those that were measured: what is advised, and what comes first by prediction alone."""
    by_order = sorted(known, key=lambda name: sort_key(predicted[name], order))
    defaults = predicted["defaults"] if "defaults" in known else None
    decision = decide([predicted[name] for name in by_order], defaults, order)
    return ("defaults" if decision.place is None else by_order[decision.place - 1]), by_order[0]


def summary(results: list[Document]) -> Document:
    """The verdicts over the cases that nothing disturbed, and over all in which any arm was whole."""
    every = [each for each in results if each["configurations"]]
    undisturbed = [each for each in every if not each["disturbed"]]
    return {"measured": len(results), "failed": len(results) - len(every)} | verdict(undisturbed) | {
        "with_disturbed": verdict(every)
    }  # fmt: skip


def verdict(results: list[Document]) -> Document:
    """Over these cases."""
    by_total = [each["of_least_wa_total"] for each in results if "of_least_wa_total" in each]
    return {
        "cases": len(results),
        "of": len(DRIVES) * len(LOADS),
        "near": sum(each["of_best"] >= 1 - NEAR for each in results),
        "kept": sum(each.get("advised") == "defaults" for each in results),
        "worse": sum((each["of_defaults"] or 1) < 1 - WORSE for each in results),
        "near_total": sum(each <= 1 + NEAR for each in by_total),
        "worse_total": sum((each.get("of_defaults_wa_total") or 1) > 1 + WORSE for each in results),
        "cases_total": len(by_total),
        "errors": {name: errors(results, name) for name in ("throughput_ops_s", "wa_app", "wa_device", "wa_total")},
    }


def errors(results: list[Document], name: str) -> Document:
    """Measured over predicted."""
    ratios, inside = [], []
    for case in results:
        for each in case["configurations"].values():
            value, predicted = each["measured"].get(name), Figure(**each["predicted"][name])
            if value:
                ratios.append(value / predicted.value)
                inside.append(predicted.low <= value <= predicted.high)
    if len(ratios) < 4:
        return {"count": len(ratios)}
    low, middle, high = statistics.quantiles(ratios, n=4)
    return {"count": len(ratios), "quartiles": [low, middle, high], "within_interval": sum(inside) / len(inside)}


def main() -> int:
    """Measures what is missing within the budget, predicts, prints."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--budget", type=float, default=7200.0, help="seconds of measuring; default: 7200")
    parser.add_argument("--only", choices=DRIVES, help="cases of this drive only")
    parser.add_argument("--no-predictions", action="store_true", help="measure, and print nothing")
    parser.add_argument("--recorded", type=Path, help="predict what this record has measured, and measure nothing")
    given = parser.parse_args()
    began, results, drives = time.monotonic(), [], {}
    known = recorded(given.recorded) if given.recorded else {}
    for case in cases(given.only):
        if known and (case.drive, case.load_name) not in known:
            continue
        is_known = bool(known) or kept(case) is not None
        if not is_known and time.monotonic() - began > given.budget:
            continue
        if case.drive not in drives:
            drives[case.drive] = of_preset(case.drive)
        scaled = small(drives[case.drive], case.load)
        print(f"{case.drive}, {case.load_name}{' (kept)' if is_known else ''}", file=sys.stderr, flush=True)
        try:
            figures = known.get((case.drive, case.load_name)) or measured(case, scaled)
        except SpillwayError as error:
            print(f"advise_grid: {case.slug}: {error}", file=sys.stderr)
            continue
        if not given.no_predictions:
            results.append(case_result(case, scaled, figures))
            if not known:
                write_output(
                    PLACE / "results.json", json.dumps(summary(results) | {"results": results}, indent=1) + "\n"
                )
    if not given.no_predictions:
        print(json.dumps(summary(results) | {"results": results}, indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
