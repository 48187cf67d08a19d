"""Whether the first of a ranking is advised or RocksDB's defaults, and that every output says so."""

from dataclasses import replace
from typing import Any

import pytest
from advised import DRIVE, LOAD, advice, prediction

from spillway.advise.configuration import DEFAULTS, SHAPES, SINGLE
from spillway.advise.decide import FIGURES, RATIO_ERROR, Decision, decide, error, gain
from spillway.advise.document import document, options
from spillway.advise.options_file import read_options
from spillway.advise.others import others
from spillway.advise.predict import Figure, Prediction
from spillway.advise.rank import ORDERS, limits_of
from spillway.advise.search import Advice
from spillway.advise.space import OF_ROCKSDB
from spillway.advise.verify import chosen
from spillway.advise.words import rival_rows
from spillway.advise.workload import Limits, Workload

BASE = prediction(LOAD, DEFAULTS)


def figure(value: float) -> Figure:
    return Figure(value, value / 2, value * 2)


def better(times: float, order: str, spread: float = 0.0) -> Prediction:
    """The defaults, so many times better by what is ranked."""
    spreads = tuple((name, spread) for name in FIGURES[order].spreads[:1])
    every: dict[str, dict[str, Any]] = {
        "throughput": {"throughput_ops_s": figure(BASE.throughput_ops_s.value * times)},
        "wa-total": {"flash_bytes_per_op": figure(BASE.flash_bytes_per_op.value / times)},
        "lifetime": {"years": figure((BASE.years.value if BASE.years else 1.0) * times)},
        "p99": {"p99_us": {kind: figure(each.value / times) for kind, each in BASE.p99_us.items()}},
        "space": {"held_bytes": figure(BASE.held_bytes.value / times)},
    }
    return replace(
        BASE, config=replace(DEFAULTS, l0_files=8), traffic=replace(BASE.traffic, spread=spreads), **every[order]
    )


def without_spread(each: Prediction) -> Prediction:
    return replace(each, traffic=replace(each.traffic, spread=()))


PLAIN = without_spread(BASE)


@pytest.mark.parametrize("order", ORDERS)
def test_the_defaults_are_left_for_more_than_may_be_wrong(order: str) -> None:
    known = 1 + RATIO_ERROR[order]
    for times, leaves in ((0.5, False), (1.0, False), (known - 0.01, False), (known + 0.01, True), (10.0, True)):
        one = better(times, order)
        assert gain(one, PLAIN, order) == pytest.approx(times)
        found = decide([one], PLAIN, order)
        assert (found.advised is one, found.place) == ((True, 1) if leaves else (False, None))
        assert found.advised is (one if leaves else PLAIN)


@pytest.mark.parametrize("order", ["throughput", "wa-total", "lifetime", "space"])
def test_what_differs_between_seeds_has_to_be_better_by_more(order: str) -> None:
    times = 1 + RATIO_ERROR[order] + 0.05
    assert decide([better(times, order)], PLAIN, order).place == 1
    uncertain = better(times, order, spread=0.5)
    assert error(uncertain, PLAIN, order) == pytest.approx((RATIO_ERROR[order] ** 2 + 0.25) ** 0.5)
    assert decide([uncertain], PLAIN, order).place is None
    shaky = replace(PLAIN, traffic=uncertain.traffic)
    assert decide([better(times, order)], shaky, order).place is None
    assert decide([uncertain, better(times, order)], PLAIN, order).place == 2


def test_the_sentence_has_the_ratio_and_its_error() -> None:
    stays = decide([better(1.12, "throughput")], PLAIN, "throughput").why
    assert stays.startswith("Advised: RocksDB's defaults. Nothing is predicted to be better")
    assert "1 has 1.12 times their operations/s" in stays and "by a factor of 1.30" in stays
    leaves = decide([better(2.0, "wa-total")], PLAIN, "wa-total").why
    assert leaves.startswith("Advised: 1. ") and "0.50 times their flash bytes an operation" in leaves
    assert "by a factor of 1.40" in leaves


def test_without_defaults_to_keep_to_the_first_is_advised() -> None:
    one = better(1.01, "throughput")
    assert decide([one], None, "throughput").advised is one
    limits = limits_of(LOAD, Limits(memory_bytes=PLAIN.memory_bytes - 1))
    found = decide([one], PLAIN, "throughput", limits)
    assert found.advised is one and "not within the limits" in found.why
    assert decide([one], PLAIN, "throughput", limits_of(LOAD, Limits(memory_bytes=2**50))).place is None


def test_without_puts_nothing_is_worn_and_nothing_told_apart() -> None:
    reading = prediction(replace(LOAD, puts=0.0, gets=1.0, scans=0.0), DEFAULTS)
    for order in ("wa-total", "lifetime"):
        assert gain(reading, reading, order) == 1.0
        assert decide([reading], reading, order).place is None


# ---------------------------------------------------------------- in every output


def staying() -> Advice:
    """An answer whose first is hardly better than RocksDB's defaults."""
    found = advice()
    alike = replace(found.rivals[OF_ROCKSDB], throughput_ops_s=found.winner.throughput_ops_s)
    return replace(found, rivals=found.rivals | {OF_ROCKSDB: alike})


def test_an_answer_decides_by_its_own_figures() -> None:
    found, stays = advice(), staying()
    own = found.rivals[OF_ROCKSDB].throughput_ops_s.value
    assert found.winner.throughput_ops_s.value > 1.5 * own
    assert found.decision == Decision(found.winner, 1, found.decision.why)
    assert stays.decision.place is None and stays.decision.advised == stays.rivals[OF_ROCKSDB]
    assert stays.winner == found.winner  # the order that is shown is that of the predictions


def test_json_options_and_check_have_what_is_advised() -> None:
    for found in (advice(), staying()):
        config = found.decision.advised.config
        made = document(found, others(LOAD, found.request.drive, 2**30), [])
        assert made["options"] == options(config)
        assert made["advised"]["why"] == found.decision.why and made["advised"]["place"] == found.decision.place
        assert made["advised"]["configuration"]["shape"] == config.shape
        assert made["ratio_error"] == RATIO_ERROR
    arms = chosen(staying())
    assert "advised" not in arms and arms["ranked first"] == staying().winner.config
    assert arms[OF_ROCKSDB] == staying().decision.advised.config
    assert chosen(advice())["advised"] == advice().winner.config and "ranked first" not in chosen(advice())


def test_a_lower_line_that_is_advised_is_run_beside_the_first() -> None:
    found = advice()
    wide = replace(found.winner, traffic=replace(found.winner.traffic, spread=(("put_ops_s", 50.0),)))
    lower = replace(found, ranked=[wide, *found.ranked[1:]])
    assert lower.decision.place is not None and lower.decision.place > 1
    arms = chosen(lower)
    assert arms["advised"] == lower.decision.advised.config and arms["ranked first"] == wide.config
    configs = list(arms.values())
    assert len({str(each) for each in configs}) == len(configs)


def test_the_options_file_is_of_what_is_advised(tmp_path_factory: pytest.TempPathFactory) -> None:
    from spillway.advise.options_file import options_text

    path = tmp_path_factory.mktemp("options") / "OPTIONS"
    found = staying()
    path.write_text(options_text(found.decision.advised.config, found.decision.why))
    read = read_options(path)
    assert (read.shape, read.fanout, read.l0_files) == (DEFAULTS.shape, DEFAULTS.fanout, DEFAULTS.l0_files)
    assert read.shape != SINGLE and path.read_text().startswith("# Advised: RocksDB's defaults.")


LOADS = [LOAD, replace(LOAD, puts=1.0, gets=0.0, scans=0.0), replace(LOAD, puts=0.05, gets=0.95, scans=0.0)]


@pytest.mark.parametrize("load", LOADS)
def test_the_best_of_each_shape_is_shown(load: Workload) -> None:
    found = advice(load=load)
    ranked = {each.config.shape for each in found.ranked}
    beside = [each.config.shape for each in found.shapes.values()]
    assert ranked.isdisjoint(beside) and len({*ranked, *beside}) == len(ranked) + len(beside) == len(SHAPES)
    names = [row[0] for row in rival_rows(found)]
    assert set(found.shapes) <= set(names)
    for each in found.shapes.values():
        assert each.throughput_ops_s.value <= 1.02 * found.ranked[-1].throughput_ops_s.value
    assert set(document(found, others(load, DRIVE, 2**30), [])["shapes"]) == set(found.shapes)


@pytest.mark.parametrize("load", LOADS)
def test_reasons_are_of_the_winner_and_not_of_one_beside_it(load: Workload) -> None:
    found = advice(load=load)
    own, base = found.winner.config, found.plain[0].config
    assert (
        replace(base, extra_op=own.extra_op, discard=own.discard, spill=own.spill, spill_bytes=own.spill_bytes) == own
    )
    rate = found.winner.throughput_ops_s.value
    lines = [each for name, each in found.variants.items() if "=" in name and not name.startswith("shape=")]
    assert lines and all(each.throughput_ops_s.value <= 1.02 * rate for each in lines)
